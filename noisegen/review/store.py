"""The review file: one SQLite database with the sample, the reviewers and every answer.

The last answer to each question counts.
"""

import csv
import json
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from noisegen.errors import OutputError, SourceError

FIRST_STAGE, SECOND_STAGE = 15, 60  # rows of a strength, as in RCP
KINDS_FILE = Path(__file__).with_name("kinds.tsv")
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


class NoiseKind(NamedTuple):
    """A kind of noise that a reviewer can name: the key that chooses it, and what it means."""

    letter: str
    name: str
    hint: str


@cache
def shipped_kinds() -> tuple[NoiseKind, ...]:
    """Return the kinds that every review begins with."""
    with KINDS_FILE.open(encoding="utf-8", newline="") as file:
        next(file)  # source and licence
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return tuple(NoiseKind(row["letter"], row["name"], row["hint"]) for row in rows)


class Stratum(NamedTuple):
    """Rows of one language, recipe and strength, and how many of them could be sampled.

    `value` orders strengths. `rows`, `changed` and `too_long` count the source.
    """

    lang: str
    recipe: str
    strength: str
    value: float | None = None
    rows: int = 0
    changed: int = 0
    too_long: int = 0

    @property
    def name(self) -> tuple[str, str, str]:
        """Language, recipe and strength, which no other stratum has."""
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
            mark = opened.execute("PRAGMA application_id").fetchone()[0]
            version = opened.execute("PRAGMA user_version").fetchone()[0]
            if mark != APPLICATION:
                raise SourceError(f"{str(path)!r} is not a review made by noisegen review make")
            if version != VERSION:
                raise SourceError(
                    f"review {str(path)!r} has format {version}, this noisegen reads {VERSION}; "
                    f"use the version that made it"
                )
            opened.execute("PRAGMA journal_mode = WAL")
            opened.execute("PRAGMA synchronous = FULL")
            opened.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            opened.close()
            raise
    return opened


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a damaged or unreadable database raises into a SourceError of one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise SourceError(f"cannot use the review {str(path)!r}: {error}") from error


def stored(opened: sqlite3.Connection, name: str) -> str:
    """Return what was fixed when the review was made; raises SourceError if it is not there."""
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
    _check_free(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as made:
            made.execute("PRAGMA synchronous = OFF")  # all of it goes to disk at the end
            made.execute(f"PRAGMA application_id = {APPLICATION}")
            made.execute(f"PRAGMA user_version = {VERSION}")
            made.executescript(SCHEMA)
            made.executemany(
                "INSERT INTO kinds (letter, name, folded, hint) VALUES (?, ?, ?, ?)",
                [(kind.letter, kind.name, kind.name.casefold(), kind.hint)
                 for kind in shipped_kinds()],
            )  # fmt: skip
            yield made
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        _check_free(path)  # another process may have made one while rows were drawn
        temporary.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise OutputError(f"cannot write the review {str(path)!r}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _check_free(path: Path) -> None:
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


# What the reviewers answered.

REALISM = ("unrealistic", "moderate", "realistic")  # ordered
MEANING = ("no", "unsure", "yes")
_FORMS = {
    "realism": re.compile(rf'"(?:{"|".join(REALISM)})"'),
    "meaning": re.compile(rf'"(?:{"|".join(MEANING)})"'),
    "kinds": re.compile(r"\[(?:[0-9]{1,9}(?:, [0-9]{1,9})*)?\]"),
    "comment": re.compile(r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"'),
}


@dataclass(frozen=True)
class JudgedItem:
    """One row of the review and the last answers to it, by reviewer."""

    item: int
    stage: int
    lang: str
    recipe: str
    strength: str
    realism: dict[int, str] = field(default_factory=dict)
    meaning: dict[int, str] = field(default_factory=dict)
    kinds: dict[int, list[int]] = field(default_factory=dict)
    comment: dict[int, str] = field(default_factory=dict)

    def share(self, *values: str) -> Fraction:
        """Return the share of its reviewers who answered question 1 with one of `values`."""
        named = sum(answer in values for answer in self.realism.values())
        return Fraction(named, len(self.realism))


class JudgedStrength(NamedTuple):
    """How realistic the reviewers found one strength in the first stage."""

    strength: str
    value: float | None
    items: int
    realistic: float  # share of items, each the mean of its reviewers


def judged_items(opened: sqlite3.Connection) -> list[JudgedItem]:
    """Return all rows with their answers; raises SourceError for an answer that cannot be one."""
    query = (
        "SELECT items.id, stage, lang, recipe, strength FROM items"
        " JOIN groups ON groups.id = group_id ORDER BY items.id"
    )
    items = {row[0]: JudgedItem(*row) for row in opened.execute(query)}
    reviewers = {number for (number,) in opened.execute("SELECT id FROM reviewers")}
    answers = opened.execute("SELECT reviewer, item, question, value FROM latest")
    for reviewer, item, question, value in answers:
        form = _FORMS.get(question)  # the file may come from anywhere
        if not (form and form.fullmatch(value)) or item not in items or reviewer not in reviewers:
            raise SourceError(f"the review is damaged: no such answer to {question!r}: {value!r}")
        answer = json.loads(value)
        answer = well_formed(answer) if question == "comment" else answer
        getattr(items[item], question)[reviewer] = answer
    return list(items.values())


def judged(opened: sqlite3.Connection) -> dict[tuple[str, str], list[JudgedStrength]]:
    """Return the first stage's judgement of every strength, by language and recipe.

    Strengths are in the order of the review.
    """
    strata = opened.execute("SELECT lang, recipe, strength, value FROM groups ORDER BY id")
    shares: defaultdict[tuple[str, str, str], list[Fraction]] = defaultdict(list)
    for item in judged_items(opened):
        if item.stage == 1 and item.realism:
            shares[item.lang, item.recipe, item.strength].append(item.share("realistic"))
    strengths: dict[tuple[str, str], list[JudgedStrength]] = {}
    for lang, recipe, strength, value in strata:
        of_items = shares[lang, recipe, strength]
        judgement = JudgedStrength(strength, value, len(of_items), mean(of_items))
        strengths.setdefault((lang, recipe), []).append(judgement)
    return strengths


def most_realistic(strengths: Iterable[JudgedStrength]) -> JudgedStrength | None:
    """Return the strength with the highest share (the rule of RCP); None of none.

    Of equal ones it is the strongest; strengths without a number rank by the order given.
    """
    ranked = [
        (strength.realistic, strength.value or 0, number, strength)
        for number, strength in enumerate(strengths)
        if strength.items
    ]
    return max(ranked)[-1] if ranked else None


def mean(shares: Iterable[Fraction | float]) -> float:
    """Return the mean, 0 of nothing.

    It is rounded once, at the end: thirds that add up to the cut-off reach it.
    """
    listed = [Fraction(share) for share in shares]
    return float(sum(listed) / len(listed)) if listed else 0.0


def well_formed(text: str) -> str:
    """Return a text with lone surrogates, which no file takes, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
