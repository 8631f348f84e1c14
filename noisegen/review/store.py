"""The review file: an SQLite database with the sample, the reviewers and all their answers.

If a reviewer answers a question on an item several times, the last answer counts.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from noisegen.errors import OutputError, SourceError, one_line
from noisegen.runs.atomic import sync
from noisegen.text.languages import language_code, language_scripts
from noisegen.text.resources import rows_of
from noisegen.text.segmentation import Language

FIRST_STAGE, SECOND_STAGE = 15, 60  # rows per language and strength in each stage, as in RCP
REAL = "real noise"  # name in place of a recipe, for strata whose noise was written by people
APPLICATION_ID = 0x6E6F7276  # "norv": the ID in the header of an SQLite file that is a review
VERSION = 1
COMMENT_MAX = 2_000  # maximum characters of a reviewer's comment
CASED = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}  # scripts with capital letters
SCHEMA = Path(__file__).with_name("schema.sql")
KINDS_FILE = Path(__file__).with_name("kinds.tsv")

Realism = Literal["unrealistic", "moderate", "realistic"]  # in ascending order
Meaning = Literal["no", "unsure", "yes"]
REALISM, MEANING = get_args(Realism), get_args(Meaning)
ANSWERS: dict[str, Any] = {  # type of the answers to each question
    "realism": Realism,
    "meaning": Meaning,
    "kinds": list[Annotated[int, msgspec.Meta(ge=0, lt=10**9)]],
    "comment": Annotated[str, msgspec.Meta(max_length=COMMENT_MAX)],
}


class NoiseKind(NamedTuple):
    """A kind of noise that reviewers can choose.

    `letter` is the key on the keyboard that chooses it; `hint` explains it. `langs` names the
    languages with this kind of noise: '*' for all, 'cased' for languages with capital letters,
    'spaced' for languages with spaces between words, or language codes. '-en' excludes English.
    """

    letter: str
    name: str
    hint: str
    langs: str

    def is_of(self, lang: str) -> bool:
        """Tell whether a language, given by its code, has this kind of noise.

        A language of unknown script counts as one with capital letters.
        """
        code, wanted = language_code(lang.partition("-")[0]) or lang, set(self.langs.split())
        traits = {"*", code} | ({"spaced"} if Language(code).is_spaced else set())
        if CASED & set(language_scripts().get(code, CASED)):
            traits.add("cased")
        return bool(wanted & traits) and f"-{code}" not in wanted


@cache
def shipped_kinds() -> tuple[NoiseKind, ...]:
    """Return the kinds of noise that every new review has, from kinds.tsv."""
    return tuple(map(NoiseKind._make, rows_of(KINDS_FILE)))


def is_offered(name: str, lang: str) -> bool:
    """Tell whether the kind of noise `name` suits a language.

    A kind that a reviewer added suits all languages.
    """
    return all(kind.is_of(lang) for kind in shipped_kinds() if kind.name == name)


class Stratum(NamedTuple):
    """A group of rows: one language, recipe and strength.

    `value` is the strength as a number, which orders strengths. `rows` counts all rows of the
    source in this group, and `changed` the rows with noise. `too_long` counts the changed rows that
    are too long to be reviewed.
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
        """Language, recipe and strength; no two strata of a review have the same name."""
        return self.lang, self.recipe, self.strength


def connect(path: Path, *, threads: bool = False) -> sqlite3.Connection:
    """Open the database of a review.

    Every change is on the disk before its SQL statement returns. With `threads`, several threads
    may use the connection, one at a time. Raises SourceError if the file is missing, is no review,
    is damaged or has another format version.
    """
    if not path.is_file():
        raise SourceError(f"there is no review {str(path)!r}; make one with noisegen review make")
    with reading(path):
        opened = sqlite3.connect(
            path, timeout=10, isolation_level=None, check_same_thread=not threads
        )
        try:
            (mark,) = opened.execute("PRAGMA application_id").fetchone()
            (version,) = opened.execute("PRAGMA user_version").fetchone()
            if mark != APPLICATION_ID:
                raise SourceError(f"{str(path)!r} is not a review made by noisegen review make")
            if version != VERSION:
                raise SourceError(
                    f"review {str(path)!r} has format {version}, this noisegen reads {VERSION}; "
                    f"use the version that made it"
                )
            opened.execute("PRAGMA trusted_schema = OFF")
            if foreign := sorted(_statements(opened) - _own_statements()):
                what = f"{foreign[0][0]!r} is not as review make writes it"
                raise SourceError(f"the review {str(path)!r} is damaged: {what}")
            # This checks the whole database, up to the first error.
            (found,) = opened.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                what = found.splitlines()[-1]
                raise SourceError(f"the review {str(path)!r} is damaged: {what}")
            for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                opened.execute(f"PRAGMA {setting}")
        except BaseException:
            opened.close()
            raise
    return opened


def _statements(opened: sqlite3.Connection) -> set[tuple[str, str]]:
    """Return (name, SQL statement) of each table, index and trigger in a database."""
    return set(opened.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL"))


@cache
def _own_statements() -> set[tuple[str, str]]:
    """Return (name, SQL statement) of each table, index and trigger that a review must have.

    A review with another statement is refused, since a trigger could run any SQL.
    """
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(SCHEMA.read_text("utf-8"))
        return _statements(own)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of a damaged or unreadable database, in this block, into a SourceError."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's message may be invalid UTF-8
        raise SourceError(f"cannot use the review {str(path)!r}: {one_line(error)}") from error


def stored(opened: sqlite3.Connection, name: str) -> str:
    """Return a value that was stored when the review was made: 'id', 'seed' or 'plan' (sources).

    Raises SourceError if the review has no value of this name.
    """
    row = opened.execute("SELECT value FROM review WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise SourceError(f"the review is damaged: it has no {name}")
    return str(row[0])


@contextmanager
def transaction(opened: sqlite3.Connection) -> Iterator[None]:
    """Commit the database changes of the block together, or none of them if the block fails."""
    opened.execute("BEGIN IMMEDIATE")
    with opened:
        yield


@contextmanager
def created(path: Path) -> Iterator[sqlite3.Connection]:
    """Create a review without items and yield its database, for the block to fill.

    The file gets its name when the block ends without an error. Raises OutputError if a file with
    this name exists, if SQLite files of a removed review with this name exist, or if the review
    cannot be written.
    """
    _check_free(path)
    temporary = path.with_name(f"{path.name}.{token_hex(8)}.tmp")
    kinds = [(kind.letter, kind.name, kind.name.casefold(), kind.hint) for kind in shipped_kinds()]
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = OFF")  # `sync` writes it to disk at the end
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {VERSION}")
            database.executescript(SCHEMA.read_text("utf-8"))
            insert = "INSERT INTO kinds (letter, name, folded, hint) VALUES (?, ?, ?, ?)"
            database.executemany(insert, kinds)
            yield database
        sync(temporary)
        _check_free(path)  # another process may have made this file while rows were drawn
        temporary.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise OutputError(f"cannot write the review {str(path)!r}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _check_free(path: Path) -> None:
    if path.exists():
        raise OutputError(
            f"{str(path)!r} already exists; add rows with --more N, or give another name"
        )
    for ending in ("-wal", "-journal"):  # SQLite would replay such an old file into the new review
        if (left := path.with_name(f"{path.name}{ending}")).exists():
            raise OutputError(
                f"{str(left)!r} is left from a removed review: move it away, or give another name"
            )


# The answers of the reviewers.


@dataclass(frozen=True)
class JudgedItem:
    """A row of a review with its answers.

    `realism`, `meaning`, `kinds` and `comment` hold the answers to the questions of these names,
    each as {reviewer number: last answer}.
    """

    stage: int
    realism: dict[int, str] = field(default_factory=dict)
    meaning: dict[int, str] = field(default_factory=dict)
    kinds: dict[int, list[int]] = field(default_factory=dict)
    comment: dict[int, str] = field(default_factory=dict)

    def share(self, question: str, *values: str) -> Fraction:
        """Return the share of reviewers whose answer to a question is one of `values`."""
        answers = getattr(self, question).values()
        return Fraction(sum(answer in values for answer in answers), len(answers))


# {(language, recipe): {stratum: its items}}
Judged = dict[tuple[str, str], dict[Stratum, list[JudgedItem]]]


class JudgedStrength(NamedTuple):
    """A strength, the number of its judged rows in the first stage, and their realistic share."""

    strength: str
    items: int
    realistic: float  # share of reviewers who answered "realistic", averaged over the rows


def judged_items(opened: sqlite3.Connection) -> Judged:
    """Return all rows of a review with answers, {(language, recipe): {stratum: rows}}.

    Strata and rows are in the order in which they were added. Raises SourceError for an answer that
    its question does not allow.
    """
    items: dict[int, JudgedItem] = {}
    judged: Judged = {}
    query = (
        "SELECT lang, recipe, strength, value, rows, changed, too_long, items.id, stage"
        " FROM groups LEFT JOIN items ON group_id = groups.id ORDER BY groups.id, items.id"
    )
    for *columns, number, stage in opened.execute(query):
        stratum = Stratum(*columns)
        of_stratum = judged.setdefault((stratum.lang, stratum.recipe), {}).setdefault(stratum, [])
        if number is not None:
            items[number] = JudgedItem(stage)
            of_stratum.append(items[number])
    reviewers = {number for (number,) in opened.execute("SELECT id FROM reviewers")}
    answers = opened.execute("SELECT reviewer, item, question, value FROM latest")
    for reviewer, item, question, value in answers:
        try:  # anybody may have made the file, so any value may be stored as an answer
            answer = msgspec.convert(json.loads(value), ANSWERS[question])
            if reviewer not in reviewers:
                raise KeyError(reviewer)
            by_reviewer = getattr(items[item], question)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            wrong = f"no such answer to {question!r}: {value!r}"
            raise SourceError(f"the review is damaged: {wrong}") from error
        by_reviewer[reviewer] = well_formed(answer) if question == "comment" else answer
    return judged


def most_realistic(strata: Mapping[Stratum, Sequence[JudgedItem]]) -> JudgedStrength | None:
    """Return the most realistic strength of the first stage, by the rule of RCP.

    Ties go to the strength with the largest `Stratum.value` (None counts as 0), then to the last
    strength in `strata`. Returns None if no row is judged.
    """
    ranked = []
    for place, (stratum, items) in enumerate(strata.items()):
        judged = [item for item in items if item.stage == 1 and item.realism]
        first = [item.share("realism", "realistic") for item in judged]
        if (share := mean(first)) is not None:
            strength = JudgedStrength(stratum.strength, len(first), share)
            ranked.append((share, stratum.value or 0, place, strength))
    return max(ranked)[-1] if ranked else None


def mean(shares: Iterable[Fraction | float]) -> float | None:
    """Return the mean of shares; None for no shares.

    Shares are summed as exact fractions. If shares such as 1/3 were rounded first, a mean that
    equals the cut-off could come out below it.
    """
    exact = [Fraction(share) for share in shares]
    return float(sum(exact) / len(exact)) if exact else None


def well_formed(text: str) -> str:
    """Return a text in which U+FFFD replaces lone surrogates, which cannot be stored as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
