-- A review: the sample, its reviewers, and every answer; `latest` has those that count.
CREATE TABLE review (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE groups (
  id INTEGER PRIMARY KEY, lang TEXT NOT NULL, recipe TEXT NOT NULL, strength TEXT NOT NULL,
  value REAL, rows INTEGER NOT NULL, changed INTEGER NOT NULL, too_long INTEGER NOT NULL,
  UNIQUE (lang, recipe, strength)) STRICT;
CREATE TABLE items (
  id INTEGER PRIMARY KEY, stage INTEGER NOT NULL, group_id INTEGER NOT NULL REFERENCES groups,
  row_id TEXT NOT NULL, clean TEXT NOT NULL, noisy TEXT NOT NULL,
  slots TEXT NOT NULL DEFAULT 'null') STRICT;
CREATE TABLE reviewers (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
  folded TEXT NOT NULL UNIQUE, langs TEXT NOT NULL, joined REAL NOT NULL) STRICT;
CREATE TABLE kinds (
  id INTEGER PRIMARY KEY, letter TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL UNIQUE,
  hint TEXT NOT NULL, reviewer INTEGER REFERENCES reviewers) STRICT;
CREATE TABLE answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT, reviewer INTEGER NOT NULL REFERENCES reviewers,
  item INTEGER NOT NULL REFERENCES items, question TEXT NOT NULL, value TEXT NOT NULL,
  at REAL NOT NULL, nonce TEXT NOT NULL, UNIQUE (reviewer, nonce)) STRICT;
CREATE TABLE latest (
  reviewer INTEGER NOT NULL, item INTEGER NOT NULL, question TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (reviewer, item, question)) WITHOUT ROWID, STRICT;
CREATE INDEX answered ON latest (reviewer, question, item);
CREATE TRIGGER last_answer_counts AFTER INSERT ON answers BEGIN
  INSERT OR REPLACE INTO latest VALUES (new.reviewer, new.item, new.question, new.value);
END;
