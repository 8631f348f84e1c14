"""The review file: one SQLite database with the sample, the reviewers and every answer."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from noisegen.errors import OutputError, SourceError
from noisegen.review.kinds import Kind, shipped_kinds

APPLICATION = 0x6E6F7276  # "norv", the mark of a review in the head of an SQLite file
VERSION = 1
SCHEMA = """
CREATE TABLE review (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE groups (
  id INTEGER PRIMARY KEY, lang TEXT NOT NULL, recipe TEXT NOT NULL, strength TEXT NOT NULL,
  value REAL, rows INTEGER NOT NULL, changed INTEGER NOT NULL, too_long INTEGER NOT NULL,
  UNIQUE (lang, recipe, strength));
CREATE TABLE items (
  id INTEGER PRIMARY KEY, stage INTEGER NOT NULL, group_id INTEGER NOT NULL REFERENCES groups,
  row_id TEXT NOT NULL, clean TEXT NOT NULL, noisy TEXT NOT NULL,
  slots TEXT NOT NULL DEFAULT 'null');
CREATE TABLE reviewers (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
  folded TEXT NOT NULL UNIQUE, langs TEXT NOT NULL, joined REAL NOT NULL);
CREATE TABLE kinds (
  id INTEGER PRIMARY KEY, letter TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL UNIQUE,
  hint TEXT NOT NULL, reviewer INTEGER REFERENCES reviewers);
CREATE TABLE answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT, reviewer INTEGER NOT NULL REFERENCES reviewers,
  item INTEGER NOT NULL REFERENCES items, question TEXT NOT NULL, value TEXT NOT NULL,
  at REAL NOT NULL, nonce TEXT NOT NULL, UNIQUE (reviewer, nonce));
CREATE TABLE latest (
  reviewer INTEGER NOT NULL, item INTEGER NOT NULL, question TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (reviewer, item, question)) WITHOUT ROWID;
CREATE INDEX answered ON latest (reviewer, question, item);
CREATE TRIGGER last_answer_counts AFTER INSERT ON answers BEGIN
  INSERT OR REPLACE INTO latest VALUES (new.reviewer, new.item, new.question, new.value);
END;
"""


class Group(NamedTuple):
    """Rows of one language, recipe and strength, and how many of them could be sampled."""

    lang: str
    recipe: str
    strength: str
    value: float | None = None
    rows: int = 0
    changed: int = 0
    too_long: int = 0

    @property
    def name(self) -> tuple[str, str, str]:
        """What tells it from other groups."""
        return self.lang, self.recipe, self.strength


def connect(path: Path, *, threads: bool = False) -> sqlite3.Connection:
    """Open a review; raises SourceError if it is missing, no review, or of another version.

    An answer is on disk when the statement that stores it returns. `threads` says that several
    threads share the connection, one at a time.
    """
    if not path.is_file():
        raise SourceError(f"there is no review {str(path)!r}; make one with noisegen review make")
    with reading(path):
        opened = sqlite3.connect(
            path, timeout=10, isolation_level=None, check_same_thread=not threads
        )
        try:
            _check(opened, path)
            opened.execute("PRAGMA journal_mode = WAL")
            opened.execute("PRAGMA synchronous = FULL")
            opened.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            opened.close()
            raise
    return opened


def _check(opened: sqlite3.Connection, path: Path) -> None:
    mark = opened.execute("PRAGMA application_id").fetchone()[0]
    version = opened.execute("PRAGMA user_version").fetchone()[0]
    if mark != APPLICATION:
        raise SourceError(f"{str(path)!r} is not a review made by noisegen review make")
    if version != VERSION:
        raise SourceError(
            f"review {str(path)!r} has format {version}, this noisegen reads {VERSION}; "
            f"use the version that made it"
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a damaged or unreadable database raises into a SourceError of one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise SourceError(f"cannot use the review {str(path)!r}: {error}") from error


def settled(opened: sqlite3.Connection, name: str) -> str:
    """Return what was settled when the review was made; raises SourceError if it is not there."""
    row = opened.execute("SELECT value FROM review WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise SourceError(f"the review is damaged: it has no {name}")
    return str(row[0])


@contextmanager
def transaction(opened: sqlite3.Connection) -> Iterator[None]:
    """Write all that is done inside, or nothing."""
    opened.execute("BEGIN IMMEDIATE")
    try:
        yield
        opened.execute("COMMIT")
    except BaseException:
        if opened.in_transaction:
            opened.execute("ROLLBACK")
        raise


@contextmanager
def created(path: Path) -> Iterator[sqlite3.Connection]:
    """Make an empty review; the file appears under its name when the block ends well.

    Raises OutputError if there is a file of this name, or what a crash left of one, or it cannot
    be written.
    """
    _must_be_free(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as made:
            made.execute("PRAGMA synchronous = OFF")  # all of it goes to disk at the end
            made.execute(f"PRAGMA application_id = {APPLICATION}")
            made.execute(f"PRAGMA user_version = {VERSION}")
            made.executescript(SCHEMA)
            add_kinds(made, shipped_kinds())
            yield made
        _on_disk(temporary)
        _must_be_free(path)  # another may have made one while rows were drawn
        temporary.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise OutputError(f"cannot write the review {str(path)!r}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _must_be_free(path: Path) -> None:
    if path.exists():
        raise OutputError(
            f"there is {str(path)!r} already; add rows with --more N, or give another name"
        )
    for ending in ("-wal", "-journal"):  # SQLite would play these answers into the new review
        if (left := path.with_name(f"{path.name}{ending}")).exists():
            raise OutputError(
                f"there is {str(left)!r} of a review that was removed: move it away, or give "
                f"another name"
            )


def _on_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def add_kinds(opened: sqlite3.Connection, kinds: list[Kind]) -> None:
    """Store the kinds that every review begins with."""
    rows = [(kind.letter, kind.name, kind.name.casefold(), kind.hint) for kind in kinds]
    opened.executemany("INSERT INTO kinds (letter, name, folded, hint) VALUES (?, ?, ?, ?)", rows)
