"""Profiles: counts of errors in real pairs, stored as a folder of small files.

A profile holds no chances and no sentence, only counts: of single words and their replacements, of
gaps between words with at most two words in them, and of parts of words. `channel_model` makes
chances of the counts. All files are checked and bounded when they are read, as a profile may come
from anywhere.
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
from noisegen.text.case import CASES, SHAPES, bare, lower
from noisegen.version import __version__

START, END = "^", "$"  # marks at the edges of a word or row; no word contains them
SAME, SMALL_CASE, TITLE_CASE, UPPER_CASE = range(4)  # the case in which a form is written
# Changes of a word: kept in its case, written in another case, with letters changed in one to three
# places, gone, or something else.
KEPT, GONE, OTHER = "kept", "gone", "other"
WRITTEN = (KEPT, "small", "title", "upper")
LETTERS = ("", "letters1", "letters2", "letters3")
CHANGES = (*WRITTEN, *LETTERS[1:], GONE, OTHER)
LETTERS_MAX = 3  # letters of a part of a word that becomes another part
PHRASE_MAX = 3  # words of a phrase that becomes fewer words: want to -> wanna
HABITS: dict[str, Callable[[str], str]] = {"small": lower, "upper": str.upper, "bare": bare}

FACTOR_BITS = 8  # bits of the fraction of a factor
FACTORS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 18.0)
WEIGHT_TOTAL = 1 << 16  # sum of the weights of all factors

FORMAT = 2  # version of the files: raise it when a change alters their meaning
HEAD = "profile.json"
TABLE_ROWS_MAX = 2_000_000
TABLE_BYTES_MAX = 1 << 29  # size of a table in memory
FILE_BYTES_MAX = 1 << 28
CHARACTERS_MAX = 200  # longest text in a table
COUNT_MAX = 1 << 40


class WordKey(NamedTuple):
    """A word or phrase in small letters, its case, its replacement, and the case of that.

    A phrase has single spaces between its words; its case is the case of its first word.

    `noisy` is equal to `clean`, with `written` SAME, if the word stayed. It is '' if the word is
    gone; then `written` is the case in which the next word is written. It is None for replacements
    that are not recorded.
    """

    clean: str
    case: int
    noisy: str | None
    written: int


class GapKey(NamedTuple):
    """A gap before the word `right` ('': any other word), and its replacement.

    `initial` tells that the gap begins its row. `noisy` is None for replacements that are not
    recorded. `written` is the case in which the word behind the gap is written.
    """

    right: str
    initial: bool
    gap: str
    noisy: str | None
    written: int


class LetterKey(NamedTuple):
    """Up to three letters between two others, and their replacement.

    `noisy` equal to `clean` counts the words that contain the letters at such a place.
    """

    before: str
    clean: str
    after: str
    noisy: str


class ShapeKey(NamedTuple):
    """The shape of a word that is in no table, and its change: one of `CHANGES`."""

    shape: int
    change: str


class RowKey(NamedTuple):
    """The number of words of a row, of its changed words, and of its changed gaps."""

    words: int
    word_edits: int
    gap_edits: int


class Factor(NamedTuple):
    """Factors of the chances of the words and gaps of a row, in 1/256, and the weight of the pair.

    Weights sum to `WEIGHT_TOTAL`. If a row that `must` change has no hit, the word or gap that came
    nearest to a hit is changed.
    """

    words: int
    gaps: int
    weight: Annotated[int, msgspec.Meta(gt=0, le=WEIGHT_TOTAL)]
    must: bool


Factors = list[Factor]


class HabitKey(NamedTuple):
    """A habit of whole rows, one of `HABITS`, and whether rows that could show it did."""

    habit: str
    shown: bool


@dataclass(frozen=True)
class Profile:
    """Counts of the errors in real pairs.

    `factors` scale the chances of whole rows. `consistency` is the share of rows, out of 256, in
    which equal words are changed alike (see `realism.row_factors`). `source` and `license` describe
    the pairs, if they are known.
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
        """A hash of the language and all counts."""
        content = hashlib.sha256(self.lang.encode())
        for name in TABLES:
            lines = sorted(map(repr, getattr(self, name).items()))
            content.update("\n".join([name, *lines]).encode("utf-8", "surrogatepass"))
        return content.hexdigest()[:16]


def merged(profiles: Sequence[Profile]) -> Profile:
    """Return the sum of profiles of one language; raises UsageError for several languages."""
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
    """Return the factors of all profiles; each profile counts by its number of pairs."""
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
_ONE_OF = {"change": CHANGES, "habit": tuple(HABITS)}
_LINE_BREAK = "[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]"


def _schema(key: type) -> pa.Schema:
    """Return the schema of a table whose rows are keys of one kind and their counts."""
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
    """The content of the file `HEAD`."""

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
    """Read a profile; raises SourceError, which says what to do."""
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
    """Read the head of a profile; raises SourceError."""
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
    """Read a table of counts; raises SourceError for a damaged, foreign or huge file."""
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
    """Raise ValueError for a long text, a text with a line break, or a number out of range."""
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
