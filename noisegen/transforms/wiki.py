"""Real errors from a mined dictionary, put into text by the rule of RCP.

The rule is the one that fits the errors that RCP released: n tokens, n uniform on 1 to
ceil(min(4, rate * L)), drawn without replacement, each for one of its wrong forms by probability.
A token is what white space separates. It matches a word of the dictionary as it is, or without the
signs around it, which stay: 'word,' is 'word'. Case counts, as in RCP.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from noisegen.characters import Variants, code_points, utf8_lengths
from noisegen.draws import CHOICE_BITS, DECISION_BITS, I64, U64, choices, decisions, draw_array
from noisegen.edits import Edits
from noisegen.errors import UsageError
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.text import U8, Bool, Texts, ordinals
from noisegen.words import word_hashes

if TYPE_CHECKING:
    from noisegen.mining.dictionary import Alternative

REPLACED_MAX = 4  # tokens of a row, in RCP
SIGNS_MAX = 16  # taken off either end of a token; with more around it, it matches nothing
NEVER = np.iinfo(np.int64).max
_BLANKS = np.isin(np.arange(256), [9, 10, 11, 12, 13, 32])
_BARE = np.array([chr(byte).isalnum() and byte < 128 for byte in range(256)], np.bool_)


@dataclass(frozen=True)
class Tokens:
    """What white space separates in `Texts`: row, byte range."""

    rows: I64
    starts: I64
    stops: I64


@dataclass(frozen=True)
class WordTable:
    """Words with weighted alternatives, compiled.

    `hashes` are ascending; `uppers` holds word * 2^17 + cumulative weight out of 2^16, ascending;
    its places are those of the alternatives in `pool`.
    """

    hashes: U64
    uppers: I64
    pool: pa.Array

    @classmethod
    def of(cls, entries: Sequence["Alternative"]) -> "WordTable":
        """Compile the entries of one language; of words over 64 bytes there are none."""
        words = [list(group) for _, group in groupby(entries, key=lambda entry: entry.clean)]
        texts = Texts.from_strings([word[0].clean for word in words])
        hashes = word_hashes(texts.values, texts.offsets[:-1], texts.offsets[1:])
        order = [number for number in np.argsort(hashes).tolist() if hashes[number]]
        chosen = [words[number] for number in order]
        uppers = [upper for number, word in enumerate(chosen) for upper in _uppers(number, word)]
        noisy = [entry.noisy for word in chosen for entry in word]
        pool = Texts.from_strings(noisy).to_arrow()
        return cls(hashes[order], np.array(uppers, np.int64), pool)

    def places(self, values: U8, starts: I64, stops: I64) -> I64:
        """Return the number of the word in each byte range, -1 where there is none."""
        hashes = word_hashes(values, starts, stops)
        found = np.searchsorted(self.hashes, hashes)
        found[found == len(self.hashes)] = 0
        known = (self.hashes[found] == hashes) & (hashes != 0) if len(self.hashes) else hashes < 0
        places: I64 = np.where(known, found, -1)
        return places


def _uppers(number: int, word: Sequence["Alternative"]) -> list[int]:
    sums = np.cumsum([entry.count for entry in word], dtype=object)
    return [(number << 17) + (int(part) << CHOICE_BITS) // int(sums[-1]) for part in sums]


def least_tokens(rate: Fraction) -> list[int]:
    """Return from which length on n may be 1, 2, 3, 4: n goes up to ceil(min(4, rate * length)).

    >>> least_tokens(Fraction(1, 10))
    [1, 11, 21, 31]
    """
    if not rate:
        return [int(NEVER)] * REPLACED_MAX
    return [int(n / rate) + 1 for n in range(REPLACED_MAX)]


@dataclass(frozen=True)
class WordSubstitution:
    """Replace n tokens of a row that are in the table, n uniform on 1..ceil(min(4, rate * L)).

    L counts all tokens of the row. `least` has the `least_tokens` of every strength. Draw 0 of a
    row says n; draw 1 + t of its t-th token says its turn and which alternative.
    """

    table: WordTable
    least: I64

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        tokens = white_space_tokens(texts)
        places, starts, stops = self._matches(texts.values, tokens)
        at = np.flatnonzero(places >= 0)
        rows = tokens.rows.take(at)
        draws = draw_array(keys.take(rows), 1 + ordinals(tokens.rows).take(at))
        turns = np.lexsort((decisions(draws), rows))
        first = ordinals(rows) < self._wanted(texts, tokens, keys, variants["rate"]).take(rows)
        chosen = np.sort(turns[first])
        at, draws = at.take(chosen), draws.take(chosen)
        drawn = np.searchsorted(
            self.table.uppers, (places.take(at) << 17) + choices(draws), "right"
        )
        edges = starts.take(at), stops.take(at)
        return Edits(rows.take(chosen), *edges, drawn.astype(np.int64), self.table.pool)

    def _wanted(self, texts: Texts, tokens: Tokens, keys: U64, strengths: I64) -> I64:
        """Return how many tokens of every row are to be replaced."""
        lengths = np.bincount(tokens.rows, minlength=len(texts))
        highest = (lengths[:, None] >= self.least[strengths]).sum(axis=1)
        uniform = (decisions(draw_array(keys, 0)) * highest) >> DECISION_BITS
        wanted: I64 = np.where(highest > 0, uniform + 1, 0)
        return wanted

    def _matches(self, values: U8, tokens: Tokens) -> tuple[I64, I64, I64]:
        """Return the word of every token (-1: none) and where it stands in the text."""
        starts, stops = tokens.starts.copy(), tokens.stops.copy()
        places = self.table.places(values, starts, stops)
        bare = _BARE[values[starts]] & _BARE[values[stops - 1]]
        other = np.flatnonzero((places < 0) & ~bare)
        starts[other], stops[other] = without_signs(values, starts[other], stops[other])
        places[other] = self.table.places(values, starts[other], stops[other])
        return places, starts, stops


def white_space_tokens(texts: Texts) -> Tokens:
    """Find what blanks, tabs and line ends separate."""
    base, window = int(texts.offsets[0]), texts.window
    solid = np.concatenate([[False], ~_BLANKS[window], [False]])
    turns = np.flatnonzero(solid[1:] != solid[:-1])  # start, stop, start, ..., stop
    edges = texts.offsets[1:-1] - base
    edges = edges[(np.diff(edges, prepend=0) > 0) & (edges < len(window))]
    glued = edges[solid[edges] & solid[edges + 1]]  # rows without white space between
    turns = np.sort(np.concatenate([turns, glued, glued]), kind="stable") + base
    return Tokens(texts.rows_of(turns[::2]), turns[::2], turns[1::2])


def without_signs(values: U8, starts: I64, stops: I64) -> tuple[I64, I64]:
    """Return byte ranges without the signs at their ends, up to `SIGNS_MAX` at each."""
    starts, stops = starts.copy(), stops.copy()
    for ahead in (True, False):
        left = np.arange(len(starts))
        for _ in range(SIGNS_MAX):
            left = left[starts[left] < stops[left]]
            at = starts[left] if ahead else _last_characters(values, stops[left])
            points = code_points(values, at)
            sign = np.flatnonzero(is_sign(points))
            left, points = left[sign], points[sign]
            if not len(left):
                break
            if ahead:
                starts[left] += utf8_lengths(points)
            else:
                stops[left] -= utf8_lengths(points)
    return starts, stops


def _last_characters(values: U8, stops: I64) -> I64:
    """Return where the character before each position starts."""
    at = stops - 1
    for _ in range(3):
        at = at - ((values[at] & 0xC0) == 0x80)
    return at


def is_sign(points: I64) -> Bool:
    """Tell which code points are punctuation, symbols, separators or controls."""
    signs = ~_BARE[np.minimum(points, 255)]
    beyond = np.flatnonzero(points > 127)
    kinds, which = np.unique(points[beyond], return_inverse=True)
    signs[beyond] = np.array([_is_sign(point) for point in kinds.tolist()], np.bool_)[which]
    return signs


@cache
def _is_sign(point: int) -> bool:
    return unicodedata.category(chr(point))[0] in "PSZC"


def _packaged(lang: str) -> Path:
    return DICTIONARIES / lang / "wiki.tsv"


def _path(dictionary: str | None, lang: str) -> Path:
    """Return the dictionary that is read: a file, that of a mining run, or the packaged one."""
    path = Path(dictionary) if dictionary else _packaged(lang)
    return path / "dictionary.parquet" if path.is_dir() else path


def _files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    path = _path(values.get("dictionary"), settings.lang)
    return [path] if path.exists() else []


@kernel("wiki", _files, lambda: ["*"])
def wiki(
    settings: Settings, *, dictionary: str | None = None, rate: float = 0.1
) -> WordSubstitution:
    """Make real errors from a mined dictionary: 'the hierarchy' -> 'the heirarchy'."""
    least = np.array([least_tokens(part) for part in settings.rates(rate)], np.int64)
    return WordSubstitution(_table(_path(dictionary, settings.lang), settings.lang), least)


def _table(path: Path, lang: str) -> WordTable:
    """Return a compiled dictionary; raises UsageError where there is none for the language."""
    if path == _packaged(lang) and not path.exists():
        known = sorted(one.parent.name for one in DICTIONARIES.glob("*/wiki.tsv"))
        raise UsageError(
            f"wiki has no packaged dictionary for language {lang!r} "
            f"(it has: {', '.join(known) or 'none'}); mine one and give it: wiki:dictionary=FILE"
        )
    written = path.stat().st_mtime_ns if path.exists() else 0
    return _compiled(path.resolve(), written, lang)


@lru_cache(maxsize=8)
def _compiled(path: Path, written: int, lang: str) -> WordTable:
    """Return the table of a file as it was `written`; raises UsageError without the language."""
    from noisegen.mining.dictionary import ANY
    from noisegen.mining.dictionary_reading import load

    entries = load(path)
    chosen = [entry for entry in entries if entry.lang in (lang, ANY)]
    if entries and not chosen:
        langs = ", ".join(sorted({entry.lang for entry in entries})[:20])
        raise UsageError(f"{path} has no entries for language {lang!r}; it has {langs}")
    return WordTable.of(sorted(chosen, key=lambda entry: entry.clean))
