"""Noise profiles: counts of errors in pairs of clean and noisy text, stored as a folder of files.

A profile counts words, gaps (texts between words) and parts of words, each with its replacements;
the replacement of a gap may contain up to two words. A profile has no sentences, and no chances
of errors: `channel_model` estimates the chances. It may come from an unknown source, so all files
are checked for damage and size when they are read.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.errors import SourceError, UsageError
from noisegen.noising.lexicon import bounded_batches
from noisegen.text.case import CASES, SHAPES, bare, capitals, lower
from noisegen.version import __version__

START, END = "^", "$"  # mark the edges of a word or row; no word contains them
SAME, SMALL_CASE, TITLE_CASE, UPPER_CASE = range(4)  # case in which a replacement is written
# What happened to a word: it was kept, written in another case, misspelled in one to three places,
# removed ("gone"), or changed in any other way.
KEPT, GONE, OTHER = "kept", "gone", "other"
WRITTEN = (KEPT, "small", "title", "upper")
LETTERS = ("", "letters1", "letters2", "letters3")
CHANGES = (*WRITTEN, *LETTERS[1:], GONE, OTHER)
LETTERS_MAX = 3  # most letters of a part of a word, see `LetterKey`
PHRASE_MAX = 3  # most words of a recorded phrase: 'want to' -> 'wanna'
ROW_HABITS: dict[str, Callable[[str], str]] = {"small": lower, "upper": capitals, "bare": bare}

FACTOR_BITS = 8  # factors are stored in units of 1/256
FACTORS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 18.0)
WEIGHT_TOTAL = 1 << 16  # sum of the weights of all factors

FORMAT = 2  # version of the files: raise it when their layout or meaning changes
HEAD = "profile.json"
TABLE_ROWS_MAX = 2_000_000
TABLE_BYTES_MAX = 1 << 29  # maximum bytes of a table in memory
FILE_BYTES_MAX = 1 << 28
CHARACTERS_MAX = 200  # maximum characters of a text in a table
COUNT_MAX = 1 << 40


class WordKey(NamedTuple):
    """A word or phrase and its replacement, both in small letters, and the case of each in text.

    A phrase has single spaces between its words; its case is the case of its first word. `written`
    is the case in which the replacement is written (SAME, ...). `noisy` has three special values:

    - `clean` itself, with `written` SAME: the word stayed;
    - '': the word was removed, and `written` is the case of the next word;
    - None: all replacements that are not recorded one by one.
    """

    clean: str
    case: int
    noisy: str | None
    written: int


class GapKey(NamedTuple):
    """A gap (text between words) before the word `right`, and its replacement.

    `right` is '' for all words that are not recorded one by one. `initial` is True if the gap
    begins its row. `noisy` is None for all replacements that are not recorded one by one. `written`
    is the case in which the word after the gap is written.
    """

    right: str
    initial: bool
    gap: str
    noisy: str | None
    written: int


class LetterKey(NamedTuple):
    """A part of a word (up to three letters) between two letters, and its replacement.

    A profile counts the changes of each key. For `noisy` equal to `clean`, it counts the words that
    contain this part between these letters.
    """

    before: str
    clean: str
    after: str
    noisy: str


class ShapeKey(NamedTuple):
    """The shape (`case.shape_of`) of a word not recorded itself, and its change (in `CHANGES`)."""

    shape: int
    change: str


class RowKey(NamedTuple):
    """Numbers of words, of changed words and of changed gaps (texts between words) in a row."""

    words: int
    word_edits: int
    gap_edits: int


class Factor(NamedTuple):
    """Two factors, in units of 1/256, for the chances that the words and gaps of a row change.

    A row draws its factors by `weight`; all weights sum to `WEIGHT_TOTAL`. With `must`, at least
    one word or gap of the row changes: if none is hit, the one nearest to a hit changes.
    """

    words: int
    gaps: int
    weight: Annotated[int, msgspec.Meta(gt=0, le=WEIGHT_TOTAL)]
    must: bool


Factors = list[Factor]


class HabitKey(NamedTuple):
    """A habit (a change of all text of a row), one of `ROW_HABITS`, and whether a row shows it.

    `shown` is False for rows that could show the habit but do not.
    """

    habit: str
    shown: bool


@dataclass(frozen=True)
class Profile:
    """Counts of the errors in real pairs of clean and noisy text.

    `factors` has the pairs of factors that a noised row may draw, see `Factor`. `consistency` is
    the share of rows, out of 256, in which equal words are changed alike (see
    `realism.row_factors`). `source` and `license` describe the text pairs; '' if unknown.
    """

    lang: str
    totals: Counter[str] = field(default_factory=Counter)
    words: Counter[WordKey] = field(default_factory=Counter)
    gaps: Counter[GapKey] = field(default_factory=Counter)
    letters: Counter[LetterKey] = field(default_factory=Counter)
    shapes: Counter[ShapeKey] = field(default_factory=Counter)
    rows: Counter[RowKey] = field(default_factory=Counter)
    habits: Counter[HabitKey] = field(default_factory=Counter)
    factors: Factors = field(default_factory=list)
    consistency: int = 0
    source: str = ""
    license: str = ""

    @property
    def digest(self) -> str:
        """Hash of the language and all counts."""
        content = hashlib.sha256(self.lang.encode())
        for name in TABLES:
            lines = sorted(map(repr, getattr(self, name).items()))
            content.update("\n".join([name, *lines]).encode("utf-8", "surrogatepass"))
        return content.hexdigest()[:16]


def merged(profiles: Sequence[Profile]) -> Profile:
    """Add up the counts of several profiles; raises UsageError unless they share one language."""
    langs = sorted({profile.lang for profile in profiles})
    if len(langs) != 1:
        raise UsageError(f"profiles of several languages cannot be merged: {', '.join(langs)}")
    sums: dict[str, Any] = {name: Counter() for name in ("totals", *TABLES)}
    for profile in profiles:
        for name, counts in sums.items():
            counts.update(getattr(profile, name))
    sources, licenses = (
        dict.fromkeys(getattr(one, name) for one in profiles if getattr(one, name))
        for name in ("source", "license")
    )
    pairs = max(1, sums["totals"]["pairs"])
    consistency = sum(one.consistency * one.totals["pairs"] for one in profiles) // pairs
    return Profile(
        langs[0],
        **sums,
        factors=_mixed(profiles),
        consistency=consistency,
        source="; ".join(sources),
        license=" AND ".join(licenses),
    )


def _mixed(profiles: Sequence[Profile]) -> Factors:
    """Merge the factors of profiles, each weighted by the count of text pairs in its profile."""
    weights: Counter[tuple[int, int, bool]] = Counter()
    for profile in profiles:
        for words, gaps, weight, must in profile.factors:
            weights[words, gaps, must] += weight * profile.totals["pairs"]
    total = max(1, weights.total())
    shares = {key: round(weight * WEIGHT_TOTAL / total) for key, weight in weights.items()}
    return [
        Factor(words, gaps, share, must)
        for (words, gaps, must), share in sorted(shares.items())
        if share
    ]


_BELOW = {"case": len(CASES), "written": len(WRITTEN), "shape": SHAPES, "count": COUNT_MAX}
_ONE_OF = {"change": CHANGES, "habit": tuple(ROW_HABITS)}
_LINE_BREAK = "[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]"


def _schema(key: type) -> pa.Schema:
    """Return the Arrow schema of a table of counts: the fields of a key class, and `count`."""
    kinds = {str: pa.string(), str | None: pa.string(), bool: pa.bool_()}
    columns = [
        pa.field(
            name,
            pa.int8() if name in _BELOW else kinds.get(kind, pa.int32()),
            nullable=kind == str | None,
        )
        for name, kind in key.__annotations__.items()
    ]
    return pa.schema([*columns, pa.field("count", pa.int64(), nullable=False)])


_KEYS = {
    "words": WordKey,
    "gaps": GapKey,
    "letters": LetterKey,
    "shapes": ShapeKey,
    "rows": RowKey,
    "habits": HabitKey,
}
TABLES = {name: (key, _schema(key)) for name, key in _KEYS.items()}


class ProfileHead(msgspec.Struct, omit_defaults=True):
    """The content of `profile.json`, the head of a profile."""

    format: int
    lang: str
    version: str
    digest: str
    totals: dict[str, Annotated[int, msgspec.Meta(ge=0, lt=COUNT_MAX)]]
    factors: Annotated[
        list[Factor],
        msgspec.Meta(min_length=1, max_length=2 * len(FACTORS) ** 2),
    ]
    consistency: Annotated[int, msgspec.Meta(ge=0, le=1 << FACTOR_BITS)] = 0
    source: str = ""
    license: str = ""


def load(folder: str | Path) -> Profile:
    """Read a profile from its folder; raises SourceError, which says what to do."""
    folder = Path(folder)
    head = _head(folder)
    tables = {name: _counts(folder / f"{name}.parquet", name) for name in TABLES}
    profile = Profile(
        head.lang,
        Counter(head.totals),
        **tables,
        factors=head.factors,
        consistency=head.consistency,
        source=head.source,
        license=head.license,
    )
    if profile.digest != head.digest:
        raise SourceError(
            f"profile {folder} is damaged: its files do not belong together; learn it again"
        )
    return profile


def _head(folder: Path) -> ProfileHead:
    """Read and check the head of a profile; raises SourceError if it is missing or wrong."""
    path = folder / HEAD
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ValueError("it is too large")
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if content.get("format") != FORMAT:
            raise SourceError(
                f"profile {folder} has format {content.get('format')!r}, this noisegen "
                f"{__version__} reads {FORMAT}; learn it again from its pairs"
            )
        head = msgspec.convert(content, ProfileHead)
        grid = {int(factor * (1 << FACTOR_BITS)) for factor in FACTORS}
        if not {factor for pair in head.factors for factor in pair[:2]} <= grid:
            raise ValueError("its factors cannot be")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(
            f"{folder} is no profile, it has no {HEAD}; make one: noisegen learn PAIRS -o {folder}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(
            f"{path} cannot be read as the head of a profile: {reason}; learn the profile again"
        ) from error
    return head


def _counts(path: Path, name: str) -> Counter[Any]:
    """Read a table of counts; raises SourceError for a wrong, damaged or too large file.

    `name` is the name of the table in `TABLES`.
    """
    key, schema = TABLES[name]
    counts: Counter[Any] = Counter()
    size = 0
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ValueError(f"over {FILE_BYTES_MAX:,} bytes")
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > TABLE_ROWS_MAX:
                raise ValueError(f"over {TABLE_ROWS_MAX:,} rows")
            if not file.schema_arrow.equals(schema):
                raise ValueError("its columns are not those of a profile")
        for batch in bounded_batches(path, schema.names):
            size += batch.nbytes
            if size > TABLE_BYTES_MAX:
                raise ValueError(f"over {TABLE_BYTES_MAX:,} bytes in memory")
            batch.validate(full=True)
            for column, values in zip(schema, batch.columns, strict=True):
                _check(column, values)
            for *parts, number in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                counts[key(*parts)] += number
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{path} cannot be read as part of a profile: {reason}") from error
    return counts


def _check(column: pa.Field, values: pa.Array) -> None:
    """Raise ValueError if a column of a table has a wrong value.

    Wrong are nulls where none are allowed, long texts, texts with a line break, unknown names, and
    numbers out of range.
    """
    if not column.nullable and values.null_count:
        raise ValueError(f"column {column.name!r} has empty places")
    if pa.types.is_string(values.type):
        long = pc.any(pc.greater(pc.utf8_length(values), CHARACTERS_MAX)).as_py()
        if long or pc.any(pc.match_substring_regex(values, _LINE_BREAK)).as_py():
            raise ValueError(f"a text of column {column.name!r} is too long or has a line break")
        if column.name in _ONE_OF and not set(values.to_pylist()) <= set(_ONE_OF[column.name]):
            raise ValueError(f"column {column.name!r} has an unknown name")
    elif not pa.types.is_boolean(values.type):
        low, high = pc.min_max(values).as_py().values()
        if low is not None and not 0 <= low <= high < _BELOW.get(column.name, COUNT_MAX):
            raise ValueError(f"a number of column {column.name!r} is out of range")
