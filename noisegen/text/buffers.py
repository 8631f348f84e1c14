"""Rows of text as Arrow buffers: their bytes, code points and words.

A word consists of word characters: ASCII letters, ASCII digits, underscores, and characters beyond
ASCII outside the Unicode blocks in `SIGNS`. An apostrophe between two word characters belongs to
the word.
"""

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bool = npt.NDArray[np.bool_]
# UTF-8 of characters beyond ASCII: (count of bytes, least and greatest first byte, mask of the data
# bits in the first byte).
_LONG_CHARACTERS = ((2, 0xC2, 0xDF, 0x1F), (3, 0xE0, 0xEF, 0x0F), (4, 0xF0, 0xF4, 7))


def as_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """View a NumPy array of numbers as an Arrow array; `pa.array` would import pandas for it."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; a single chunk is not copied, as `combine_chunks` would do."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def as_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """View an Arrow array of numbers without nulls as a NumPy array."""
    dtype = array.type.to_pandas_dtype()
    return np.frombuffer(array.buffers()[1], dtype)[array.offset :][: len(array)]


def is_byte(wanted: bytes) -> Bool:
    """Return 256 flags, one per byte value: True for the bytes in `wanted`."""
    return np.isin(np.arange(256), list(wanted))


@cache
def _table_of(wanted: bytes) -> bytes:
    return is_byte(wanted).tobytes()


def ordinals(rows: I64) -> I64:
    """Return 0, 1, 2, ... for the items of each row; `rows` has the row of each item, ascending.

    >>> ordinals(np.array([3, 3, 5])).tolist()
    [0, 1, 0]
    """
    heads = np.flatnonzero(np.diff(rows, prepend=-1))
    return np.arange(len(rows)) - np.repeat(heads, np.diff(np.append(heads, len(rows))))


def within(starts: I64, sizes: I64) -> tuple[I64, I64]:
    """Return all positions inside ranges, and for each position the index of its range.

    >>> [part.tolist() for part in within(np.array([3, 9]), np.array([2, 1]))]
    [[3, 4, 9], [0, 0, 1]]
    """
    owners = np.repeat(np.arange(len(starts)), sizes)
    return np.arange(len(owners)) - (np.cumsum(sizes) - sizes - starts).take(owners), owners


def find_sorted(known: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> tuple[I64, Bool]:
    """Look up each `wanted` value in `known`, which is ascending; return indices and found flags.

    The index of a value that is not found is some valid index without meaning.
    """
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    indices = np.minimum(np.searchsorted(known, wanted), len(known) - 1).astype(np.int64)
    return indices, known[indices] == wanted


def code_points(values: U8, at: I64) -> I64:
    """Return the code point of the character at each byte position; -1 inside a character."""
    near_end = len(at) and int(at.max()) + 4 > len(values)
    padded = np.concatenate([values, np.zeros(3, np.uint8)]) if near_end else values
    points = padded[at].astype(np.int64)
    long = np.flatnonzero(points >= 0x80)
    at, lead = at.take(long), points.take(long)
    points[long] = -1
    for size, least, most, bits in _LONG_CHARACTERS if len(long) else ():
        these = np.flatnonzero((lead >= least) & (lead <= most))
        point = lead.take(these) & bits
        for offset in range(1, size):
            point = (point << 6) | (padded[at.take(these) + offset].astype(np.int64) & 0x3F)
        points[long.take(these)] = point
    return points


def utf8_lengths(points: I64) -> I64:
    """Return the number of UTF-8 bytes of each code point."""
    return 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000).astype(np.int64)


def joins_previous(points: I64) -> Bool:
    """Tell for each code point whether it extends the character before it, see `joins`."""
    return _told(points, joins)


def joins_next(points: I64) -> Bool:
    """Tell for each code point whether the character after it extends it, see `is_begun`."""
    return _told(points, is_begun)


def are_typed(points: I64) -> Bool:
    """Tell for each mark whether a key of its own writes it, as in Hebrew, Arabic and Hindi."""
    typed: Bool = (points >= 0x590) & (points < 0x1D00) & ~((points >= 0x1100) & (points < 0x1200))
    return typed


def _told(points: I64, rule: Callable[[int], bool]) -> Bool:
    """Return the result of `rule` for each code point; False for code points below 0x300."""
    told = np.zeros(len(points), np.bool_)
    high = np.flatnonzero(points >= 0x300)
    distinct, which = np.unique(points[high], return_inverse=True)
    told[high] = np.array([rule(point) for point in distinct.tolist()], np.bool_)[which]
    return told


@cache
def joins(point: int) -> bool:
    """Tell whether a code point extends the character before it.

    Marks, zero-width joiners, skin tones, the letters and tags of flags, Hangul vowels and final
    consonants, and Thai vowels in `BEHIND` do so.
    """
    extra = any(low <= point <= high for low, high in _EXTENDING) or point in BEHIND
    return extra or unicodedata.category(chr(point)).startswith("M")


@cache
def is_begun(point: int) -> bool:
    """Tell whether a code point begins a character that the next code point extends.

    Zero-width joiners, Thai vowels in `BEFORE`, initial Hangul consonants, Arabic number signs and
    Indic viramas do so. A virama joins two consonants to one conjunct.
    """
    return point in BEFORE or any(low <= point <= high for low, high in _BEGUN)


# Code points, besides marks, that extend the character before them (UAX #29): Hangul V and T,
# zero-width joiners, voiced marks of halfwidth kana, regional indicators, skin tones, tags.
_EXTENDING = (
    *((0x1160, 0x11FF), (0x200C, 0x200D), (0xD7B0, 0xD7FB), (0xFF9E, 0xFF9F)),
    *((0x1F1E6, 0x1F1FF), (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F)),
)
# Code points that the next code point extends: Hangul L, zero-width joiner, prepended signs, and
# viramas of the scripts with conjuncts.
_BEGUN = (
    *((0x1100, 0x115F), (0xA960, 0xA97C), (0x200D, 0x200D)),
    *((0x600, 0x605), (0x6DD, 0x6DD), (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2)),
    *((0x94D, 0x94D), (0x9CD, 0x9CD), (0xACD, 0xACD), (0xB4D, 0xB4D), (0xC4D, 0xC4D)),
    *((0xD4D, 0xD4E), (0x1039, 0x1039), (0x17D2, 0x17D2)),
)
# Thai and Lao vowels that Unicode counts as letters. Each belongs to a consonant: the vowels in
# BEFORE are written before it, the vowels in BEHIND after it.
BEFORE = (*range(0xE40, 0xE45), *range(0xEC0, 0xEC5))
BEHIND = (0xE30, 0xE32, 0xE33, 0xE45, 0xEB0, 0xEB2, 0xEB3)
WORD_BYTES_MAX = 64  # maximum length of a word in a lexicon; longer words have the hash 0
APOSTROPHES = "'\u2019"
# Unicode blocks of characters in no word: quotes, dashes, arrows, variation selectors, emoji. They
# have all characters whose UTF-8 begins with C2, E2, E3 80, EF B8 or F0 9F.
SIGNS = ((0x80, 0xBF), (0x2000, 0x2FFF), (0x3000, 0x303F), (0xFE00, 0xFE3F), (0x1F000, 0x1FFFF))
# Code points of scripts without spaces. `Texts.characters` and `Texts.runs` cut text in these
# scripts into words.
HIRAGANA, KATAKANA, HAN, THAI = range(4)
UNSPACED = (
    ((0x3041, 0x3098), (0x309B, 0x309F)),
    ((0x30A0, 0x30FF),),
    ((0x3400, 0x9FFF), (0x20000, 0x3FFFF)),
    ((0xE01, 0xE4F), (0xE81, 0xECF)),
)
# Scripts without spaces of which each character is a token where errors are counted: Thai, Lao,
# Burmese, Khmer, kana, Han.
SINGLE = (
    (0xE00, 0xEFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x10FFFF),
)
WHOLE = (KATAKANA, HAN)  # scripts whose neighbouring characters are one word in `Texts.runs`
TOUCHING = 0xFF  # gap "byte" of two words with nothing between them; UTF-8 never has this byte
_SIGN_PAIRS = ((0xE3, 0x80), (0xEF, 0xB8), (0xF0, 0x9F))
_IS_ASCII_WORD = bytes((chr(c).isalnum() and c < 128) or c == 95 for c in range(256))
_LOW_BYTES = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_SPREAD = np.uint64(0x9FB21C651E98DF25)


def character_class(ranges: Iterable[tuple[int, int]]) -> str:
    """Return ranges of code points in the form that stands between the brackets of a pattern."""
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


NO_WORD = r"\x00-/:-@\[-^`{-\x7f" + character_class(SIGNS)  # characters that are in no word


def is_word(character: str) -> bool:
    """Tell whether a character is a word character."""
    point = ord(character)
    if point < 128:
        return bool(_IS_ASCII_WORD[point])
    return not any(low <= point <= high for low, high in SIGNS)


@dataclass(frozen=True)
class Tokens:
    """Words of rows of text: word i has the bytes [starts[i], stops[i]) and is in row rows[i].

    Positions are as in `Texts`. `window` has the bytes of all rows; its first byte has the position
    `base`.
    """

    starts: I64
    stops: I64
    rows: I64
    window: U8
    base: int

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def hashes(self) -> U64:
        """The hash of each word, equal for words that differ only in ASCII or Latin-1 case."""
        return word_hashes(folded(self.window), self.starts - self.base, self.stops - self.base)

    def gaps(self, numbers: I64) -> I64:
        """Return the byte between each word and the next word; `numbers` has the words' indices.

        The result is `TOUCHING` if there is no byte between the two words, and 0 if there are
        several bytes or if the word is the last of its row.
        """
        nexts, stops = np.minimum(numbers + 1, len(self) - 1), self.stops.take(numbers)
        between = self.starts.take(nexts) - stops
        between[self.rows.take(nexts) != self.rows.take(numbers)] = -1
        single = self.window.take(stops - self.base, mode="clip").astype(np.int64)
        return np.where(between == 1, single, np.where(between == 0, TOUCHING, 0))

    def holding(self, texts: "Texts", wanted: bytes) -> Bool:
        """Tell for each word of `texts` whether it has at least one of the bytes in `wanted`."""
        at = texts.positions_of(wanted)
        before = np.searchsorted(at, np.stack([self.starts, self.stops]))
        holds: Bool = before[1] > before[0]
        return holds


def overlapping(starts: I64, stops: I64) -> I64:
    """Return the indices of the ranges that overlap an earlier range, so that they can be dropped.

    The ranges are sorted by start. A dropped range does not count as an earlier range. The loop in
    Python visits only ranges that overlap a neighbour.
    """
    apart = np.ones(len(starts) + 1, np.bool_)
    apart[1:-1] = starts[1:] >= np.maximum.accumulate(stops)[:-1]
    runs = np.flatnonzero(~(apart[1:] & apart[:-1]))
    dropped, reach = [], 0
    ranges = (edges.take(runs).tolist() for edges in (starts, stops))
    for number, start, stop in zip(runs.tolist(), *ranges, strict=True):
        if start < reach:
            dropped.append(number)
        else:
            reach = stop
    return np.array(dropped, np.int64)


def _word_edges(window: U8, offsets: I64) -> tuple[I64, I64]:
    """Return the starts and the stops of all words in `window`, which has the bytes of all rows.

    `offsets` has the index in `window` at which each row begins, and the end of the last row.
    """
    if not len(window):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    edges = offsets[1:-1]
    edges = edges[(np.diff(edges, prepend=0) > 0) & (edges < len(window))]
    word = np.frombuffer(bytearray(window).translate(_IS_ASCII_WORD), np.bool_)
    if int(window.max()) >= 128:  # in `word`, give all bytes of a non-ASCII character one flag
        leads = np.flatnonzero(window >= 0xC2)
        lead, follow = window[leads], window[leads + 1]
        sign = (lead == 0xC2) | (lead == 0xE2)
        for first, second in _SIGN_PAIRS:
            sign |= (lead == first) & (follow == second)
        for offset, least in enumerate((0, 0xC2, 0xE0, 0xF0)):
            longer = lead >= least
            word[leads[longer] + offset] = ~sign[longer]
    _join_apostrophes(window, word, edges)
    padded = np.concatenate([[False], word, [False]])
    bounds = np.flatnonzero(padded[1:] != padded[:-1])  # start, stop, start, ..., stop
    touching = edges[word[edges - 1] & word[edges]]  # a word ends one row, a word begins the next
    if len(touching):
        bounds = np.sort(np.concatenate([bounds, touching, touching]), kind="stable")
    return bounds[::2], bounds[1::2]


def _cut(window: U8, starts: I64, stops: I64, whole: tuple[int, ...]) -> tuple[I64, I64]:
    """Split the words [starts, stops) at every character of a script in `UNSPACED`.

    Neighbouring characters of the same script stay together if the script is in `whole`. Returns
    the starts and stops of the new words.
    """
    leads = np.flatnonzero(window >= 0xE0)
    points = code_points(window, leads)
    scripts = np.full(len(points), -1)
    for script, ranges in enumerate(UNSPACED):
        for low, high in ranges:
            scripts[(points >= low) & (points <= high)] = script
    unspaced = np.flatnonzero(scripts >= 0)
    leads, scripts, points = (of.take(unspaced) for of in (leads, scripts, points))
    ends = leads + utf8_lengths(points)
    touching = leads[1:] == ends[:-1]
    goes_on = touching & (scripts[1:] == scripts[:-1]) & np.isin(scripts[1:], whole)
    last = ends[~np.append(touching, False)] if len(ends) else ends
    inside = last[last < len(window)]
    cut = np.zeros(len(window) + 1, np.bool_)
    cut[leads] = True
    cut[leads[1:][goes_on]] = False
    cut[inside[~joins_previous(code_points(window, inside))]] = True
    cut[leads[joins_previous(points)]] = False  # a mark stays with the consonant before it
    cut[ends[np.isin(points, BEFORE)]] = False  # a vowel stays with the consonant after it
    edges = []
    for outer in (starts, stops):
        cut[starts], cut[stops] = False, False
        cut[outer] = True
        edges.append(np.flatnonzero(cut))
    return edges[0], edges[1]


def _join_apostrophes(window: U8, word: Bool, edges: I64) -> None:
    """Mark each apostrophe between two word characters as a part of a word.

    `word` has a flag per byte of `window`: whether the byte is in a word. `edges` has the indices
    at which rows begin, so that an apostrophe does not join words of two rows.
    """
    is_edge = np.zeros(len(window) + 1, np.bool_)
    is_edge[edges] = True
    for mark in map(str.encode, APOSTROPHES):
        at = 1 + np.flatnonzero(window[1 : len(window) - len(mark)] == mark[0])
        for offset, byte in enumerate(mark[1:], 1):
            at = at[window[at + offset] == byte]
        at = at[word[at - 1] & word[at + len(mark)] & ~(is_edge[at] | is_edge[at + len(mark)])]
        for offset in range(len(mark)):
            word[at + offset] = True


def folded(window: U8) -> U8:
    """Return UTF-8 bytes with ASCII and Latin-1 capitals made lower-case, as by `case.fold`."""
    lowered = np.frombuffer(bytearray(window).lower(), np.uint8)
    leads = np.flatnonzero(lowered[:-1] == 0xC3)
    capital = is_latin1_capital(lowered[leads + 1])
    lowered[leads[capital] + 1] += 32
    return lowered


def is_latin1_capital(second: U8) -> Bool:
    """Tell for each byte whether C3 and this byte are a Latin-1 capital in UTF-8."""
    capital: Bool = (second >= 0x80) & (second <= 0x9E) & (second != 0x97)
    return capital


def word_hashes(window: U8, starts: I64, stops: I64) -> U64:
    """Return a 64-bit hash of each byte range, or 0 for a range over `WORD_BYTES_MAX` bytes."""
    padded = np.concatenate([window, np.zeros(8, np.uint8)])
    loads = np.ndarray(len(window) + 1, "<u8", padded, strides=(1,))

    def mixed(state: U64, at: I64, left: I64) -> U64:
        state = (state ^ (loads[at] & _LOW_BYTES.take(left, mode="clip"))) * _SPREAD
        state ^= state >> np.uint64(32)
        return state

    sizes = stops - starts
    hashes = mixed(sizes.astype(np.uint64), starts, sizes)
    longer, done = np.flatnonzero((sizes > 8) & (sizes <= WORD_BYTES_MAX)), 8
    while len(longer):
        at, left = starts.take(longer) + done, sizes.take(longer) - done
        hashes[longer] = mixed(hashes.take(longer), at, left)
        longer, done = longer[left > 8], done + 8
    hashes[sizes > WORD_BYTES_MAX] = 0
    return hashes


@dataclass(frozen=True)
class HashTable:
    """One or more hash tables from 64-bit hashes to values, one after another in the same arrays.

    `slots` has the hash in each slot, or 0 for a free slot; `values` has the value in each slot.
    `sizes` has the number of slots of each table, a power of two. At most a quarter of the slots of
    a table are used.
    """

    slots: U64
    values: I32
    sizes: I64

    @classmethod
    def of(cls, hashes: U64, values: npt.NDArray[Any]) -> "HashTable":
        """Build one table from distinct hashes and their values, which are not 0.

        A hash whose slot is taken goes to another slot (double hashing, see `_steps`).
        """
        size = 1 << (len(hashes) * 4).bit_length()
        slots, stored = np.zeros(size, np.uint64), np.zeros(size, np.int32)
        at = hashes.view(np.int64) & (size - 1)
        while len(hashes):
            free = np.flatnonzero(slots[at] == 0)
            taken, winners = np.unique(at[free], return_index=True)
            slots[taken], stored[taken] = hashes[free[winners]], values[free[winners]]
            left = np.flatnonzero(slots[at] != hashes)
            hashes, values = hashes[left], values[left]
            at = (at[left] + _steps(hashes)) & (size - 1)
        return cls(slots, stored, np.array([size]))

    def find(self, hashes: U64, tables: I64 | None = None) -> I32:
        """Return the value of each hash, or 0 if the table does not have the hash.

        `tables` has the index of the table in which each hash is looked up (default: the first
        table).
        """
        values = np.zeros(len(hashes), np.int32)
        masks, bases = self.sizes[:1] - 1, np.zeros(1, np.int64)
        if tables is not None:
            masks, bases = (self.sizes - 1)[tables], (np.cumsum(self.sizes) - self.sizes)[tables]
        at, left = hashes.view(np.int64) & masks, np.arange(len(hashes))
        while len(left):
            slots = bases + at
            stored = self.slots.take(slots)
            equal = stored == hashes
            hit = np.flatnonzero(equal)
            values[left.take(hit)] = self.values.take(slots.take(hit))
            on = np.flatnonzero((stored != 0) > equal)
            left, hashes = left.take(on), hashes.take(on)
            if tables is not None:
                masks, bases = masks.take(on), bases.take(on)
            at = (at.take(on) + _steps(hashes)) & masks
        return values


def _steps(hashes: U64) -> I64:
    """Return how many slots ahead each hash tries next; odd numbers reach all slots in the end."""
    return (hashes >> np.uint64(32) | np.uint64(1)).view(np.int64)


@dataclass(frozen=True)
class Texts:
    """Rows of UTF-8 text: row i has the bytes values[offsets[i]:offsets[i + 1]].

    Positions of bytes, here and in other classes, are indices of `values`.
    """

    values: U8
    offsets: I64

    @classmethod
    def from_arrow(cls, array: pa.Array) -> "Texts":
        """View an Arrow array of strings or bytes without nulls as rows; its text is not copied."""
        array = array.cast(pa.binary()) if not pa.types.is_binary(array.type) else array
        buffer = array.buffers()[2]
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
        values = np.frombuffer(buffer, np.uint8) if buffer else np.zeros(0, np.uint8)
        return cls(values, offsets.astype(np.int64))

    @classmethod
    def from_strings(cls, rows: list[str]) -> "Texts":
        """Encode Python strings as rows."""
        encoded = [row.encode() for row in rows]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def to_arrow(self, kind: pa.DataType = pa.binary()) -> pa.Array:  # noqa: B008 - a constant
        """Return the rows as an Arrow array of the type `kind`, on the same buffer."""
        offsets = pa.py_buffer(np.ascontiguousarray(self.offsets, dtype=np.int32))
        return pa.Array.from_buffers(kind, len(self), [None, offsets, pa.py_buffer(self.values)])

    def to_strings(self) -> list[str]:
        """Return the rows as Python strings."""
        strings: list[str] = self.to_arrow(pa.string()).to_pylist()
        return strings

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> "Texts":
        """Return the rows of a slice, on the same buffer."""
        return Texts(self.values, self.offsets[rows.start : rows.stop + 1])

    @property
    def lengths(self) -> I64:
        """The number of bytes of each row."""
        return np.diff(self.offsets)

    @property
    def window(self) -> U8:
        """The bytes of all rows; the first byte has the position `offsets[0]`."""
        return self.values[self.offsets[0] : self.offsets[-1]]

    def positions_of(self, wanted: bytes) -> I64:
        """Return the positions in all rows of the bytes that are in `wanted`."""
        found: I64 = np.flatnonzero(self._are(wanted)) + self.offsets[0]
        return found

    def rows_holding(self, wanted: bytes) -> I64:
        """Return the indices of the rows that have at least one of the bytes in `wanted`."""
        filled = np.flatnonzero(self.lengths)
        starts = self.offsets.take(filled) - self.offsets[0]
        return filled[np.logical_or.reduceat(self._are(wanted), starts)] if len(filled) else filled

    def _are(self, wanted: bytes) -> Bool:
        """Tell for each byte of `window` whether it is in `wanted`."""
        return np.frombuffer(self.window.tobytes().translate(_table_of(wanted)), np.bool_)

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all rows are ASCII."""
        return not len(self.window) or int(self.window.max()) < 128

    def words(self, kind: str) -> Tokens:
        """Return the words of all rows, cut as by the property `kind`, such as `tokens`."""
        words: Tokens = getattr(self, kind)
        return words

    @cached_property
    def tokens(self) -> Tokens:
        """The words of all rows; text of a script without spaces is not cut into words."""
        return self._words(*_word_edges(self.window, self.offsets - self.offsets[0]))

    @cached_property
    def characters(self) -> Tokens:
        """The words of all rows; each character of a script without spaces is one word."""
        edges = _word_edges(self.window, self.offsets - self.offsets[0])
        return self._words(*_cut(self.window, *edges, whole=()))

    @cached_property
    def runs(self) -> Tokens:
        """The words of all rows, for Japanese.

        Neighbouring kanji are one word, neighbouring katakana too. Any other character of a script
        without spaces is one word.
        """
        edges = _word_edges(self.window, self.offsets - self.offsets[0])
        return self._words(*_cut(self.window, *edges, whole=WHOLE))

    def _words(self, starts: I64, stops: I64) -> Tokens:
        base = int(self.offsets[0])
        starts, stops = starts + base, stops + base
        return Tokens(starts, stops, self.rows_of(starts), self.window, base)

    def rows_of(self, positions: I64) -> I64:
        """Return the index of the row of each byte position; positions are ascending."""
        counts = np.diff(np.searchsorted(positions, self.offsets, side="left"))
        return np.repeat(np.arange(len(self)), counts)
