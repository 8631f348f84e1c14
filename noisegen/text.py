"""Text as Arrow buffers: rows of UTF-8 bytes, words with offsets, protected spans, case.

A word character is an ASCII letter, digit or underscore, or any other character that is not in the
blocks of `is_word`; an apostrophe between two word characters belongs to the word. Case is folded
for ASCII and Latin-1 letters only, where it never changes the length of a text.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.draws import I64
from noisegen.errors import UsageError

U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]

APOSTROPHES = "'\u2019"
_ASCII_WORD = bytes(c if (chr(c).isalnum() and c < 128) or c == 95 else 0 for c in range(256))
_IS_ASCII_WORD = bytes(1 if c else 0 for c in _ASCII_WORD)
_IS_WORD = bytes(1 if c or i >= 0xC3 else 0 for i, c in enumerate(_ASCII_WORD))
# Characters led by C2 (U+0080-00BF), E2 (U+2000-2FFF), E3 80 (U+3000-303F), EF B8 (U+FE00-FE3F) and
# F0 9F (U+1F000-1FFFF) are signs, not letters: quotes, dashes, arrows, variation selectors, emoji.
_SIGN_PAIRS = ((0xE3, 0x80), (0xEF, 0xB8), (0xF0, 0x9F))


def is_word(character: str) -> bool:
    """Tell whether a character belongs to a word."""
    number = ord(character)
    if number < 128:
        return character.isalnum() or character == "_"
    signs = ((0x80, 0xBF), (0x2000, 0x2FFF), (0x3000, 0x303F), (0xFE00, 0xFE3F), (0x1F000, 0x1FFFF))
    return not any(low <= number <= high for low, high in signs)


def fold(text: str) -> str:
    """Lower ASCII and Latin-1 letters; the length in bytes stays."""
    return text.translate(_FOLD)


def is_upper(character: str) -> bool:
    """Tell whether `fold` would change a character."""
    return ord(character) in _FOLD


_FOLD = {c: c + 32 for c in chain(range(65, 91), range(0xC0, 0xDF)) if c != 0xD7}
_UNFOLD = {lower: upper for upper, lower in _FOLD.items()}


def upper(text: str) -> str:
    """Raise the letters that `fold` lowers."""
    return text.translate(_UNFOLD)


def capitalize(text: str) -> str:
    """Raise the first character where `fold` would lower it again."""
    return upper(text[:1]) + text[1:]


@dataclass(frozen=True)
class Texts:
    """Rows of UTF-8: row i is values[offsets[i]:offsets[i + 1]]; positions index `values`."""

    values: U8
    offsets: I64

    @classmethod
    def from_arrow(cls, array: pa.Array) -> "Texts":
        """View a string or binary array (no nulls) without copying its text."""
        array = array.cast(pa.binary()) if not pa.types.is_binary(array.type) else array
        buffer = array.buffers()[2]
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
        values = np.frombuffer(buffer, np.uint8) if buffer else np.zeros(0, np.uint8)
        return cls(values, offsets.astype(np.int64))

    @classmethod
    def from_strings(cls, rows: list[str]) -> "Texts":
        """Encode Python strings."""
        return cls.from_arrow(pa.array(rows, pa.string()))

    def to_arrow(self, kind: pa.DataType = pa.binary()) -> pa.Array:  # noqa: B008 - a constant
        """Return the rows as an Arrow array over the same buffer."""
        offsets = pa.py_buffer(np.ascontiguousarray(self.offsets, dtype=np.int32))
        return pa.Array.from_buffers(kind, len(self), [None, offsets, pa.py_buffer(self.values)])

    def to_strings(self) -> list[str]:
        """Return the rows as Python strings."""
        strings: list[str] = self.to_arrow(pa.string()).to_pylist()
        return strings

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> "Texts":
        """Return neighbouring rows over the same buffer."""
        return Texts(self.values, self.offsets[rows.start : rows.stop + 1])

    @property
    def lengths(self) -> I64:
        """Bytes of every row."""
        return np.diff(self.offsets)

    @property
    def window(self) -> U8:
        """The bytes of these rows; a position minus `offsets[0]` indexes it."""
        return self.values[self.offsets[0] : self.offsets[-1]]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether every byte is a character."""
        return not len(self.window) or int(self.window.max()) < 128

    def rows_of(self, positions: I64) -> I64:
        """Return the row of every position, given in ascending order."""
        counts = np.diff(np.searchsorted(positions, self.offsets, side="left"))
        return np.repeat(np.arange(len(self)), counts)


def folded(window: U8) -> U8:
    """Return the bytes with case folded as `fold` does."""
    lowered = np.frombuffer(bytearray(window.tobytes().lower()), np.uint8)
    leads = np.flatnonzero(lowered[:-1] == 0xC3)
    follow = lowered[leads + 1]
    capital = (follow >= 0x80) & (follow <= 0x9E) & (follow != 0x97)
    lowered[leads[capital] + 1] += 32
    return lowered


@dataclass(frozen=True)
class Words:
    """Words of `Texts`: byte positions in its `values`, and the row of each; ascending."""

    starts: I64
    stops: I64
    rows: I64


def words_of(texts: Texts) -> Words:
    """Find all words."""
    base, window = int(texts.offsets[0]), texts.window
    if not len(window):
        return Words(*(np.zeros(0, np.int64) for _ in range(3)))
    edges = (texts.offsets - base)[1:-1]
    edges = edges[(edges > 0) & (edges < len(window))]
    word = _word_bytes(window, texts.is_ascii)
    _join_apostrophes(window, word, edges)
    before = np.empty_like(word)  # whether the byte before, in the same row, is of a word
    before[0], before[1:] = False, word[:-1]
    before[edges] = False
    after = np.empty_like(word)
    after[-1], after[:-1] = False, word[1:]
    after[edges - 1] = False
    starts = np.flatnonzero(word & ~before) + base
    stops = np.flatnonzero(word & ~after) + 1 + base
    return Words(starts, stops, texts.rows_of(starts))


def ordinals(rows: I64) -> I64:
    """Return for ascending row numbers the place of each among its equals, from 0."""
    heads = np.flatnonzero(np.diff(rows, prepend=-1))
    return np.arange(len(rows)) - np.repeat(heads, np.diff(np.append(heads, len(rows))))


def _word_bytes(window: U8, is_ascii: bool) -> Bool:
    table = _IS_ASCII_WORD if is_ascii else _IS_WORD
    word = np.frombuffer(bytearray(window.tobytes().translate(table)), np.bool_)
    if not is_ascii:
        _spread_over_characters(window, word)
    return word


def _spread_over_characters(window: U8, word: Bool) -> None:
    """Give every byte of a character beyond ASCII the answer for the whole character."""
    leads = np.flatnonzero(window >= 0xC2)
    lead = window[leads]
    follow = window[leads + 1]
    sign = (lead == 0xC2) | (lead == 0xE2)
    for first, second in _SIGN_PAIRS:
        sign |= (lead == first) & (follow == second)
    for size, least in ((1, 0xC2), (2, 0xE0), (3, 0xF0)):
        longer = lead >= least
        word[leads[longer] + size] = ~sign[longer]
    word[leads] = ~sign


def _join_apostrophes(window: U8, word: Bool, edges: I64) -> None:
    """Mark apostrophes between two word characters of a row as part of the word."""
    padded = np.concatenate([[False], word, [False]])
    at_edge = np.zeros(len(word) + 1, np.bool_)
    at_edge[edges] = True
    for mark in APOSTROPHES:
        code = mark.encode()
        found = np.flatnonzero(window[: len(window) - len(code) + 1] == code[0])
        for offset in range(1, len(code)):
            found = found[window[found + offset] == code[offset]]
        inside = padded[found] & padded[found + len(code) + 1]
        inside &= ~at_edge[found] & ~at_edge[found + len(code)]
        for offset in range(len(code)):
            word[found[inside] + offset] = True


PROTECTABLE = {
    "url": r"(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+"
    r"|\b(?:[a-z0-9-]{1,63}\.){1,8}(?:com|org|net|edu|gov|info|io|co|uk|de|fr|es|it|tr|in|ru|eu|tv|me)\b"
    r"(?:/[^\s<>\"]*)?",
    "mention": r"(?<![\w@])@\w+",
    "hashtag": r"(?<![\w#&])#\w+",
    "email": r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
}
_SIGNALS = {"url": ("./", ":/"), "mention": "@", "hashtag": "#", "email": "@"}


def protect_kinds(names: str) -> tuple[str, ...]:
    """Return the kinds of span named in 'url,mention' ('none': no kind)."""
    kinds = () if names == "none" else tuple(part.strip() for part in names.split(","))
    for kind in kinds:
        if kind not in PROTECTABLE:
            raise UsageError(f"cannot protect {kind!r}; known: {', '.join(PROTECTABLE)}, or none")
    return kinds


@dataclass(frozen=True)
class Spans:
    """Byte ranges that must not change, ascending, disjoint; a blank beside one belongs to it."""

    starts: I64
    stops: I64

    def touch(self, starts: I64, stops: I64) -> Bool:
        """Tell which ranges [start, stop) change a span; an insertion only strictly inside."""
        if not len(self.starts):
            return np.zeros(len(starts), np.bool_)
        nearest = np.searchsorted(self.stops, starts, side="right")
        padded = np.append(self.starts, np.iinfo(np.int64).max)
        touched: Bool = np.where(starts == stops, padded[nearest] < starts, padded[nearest] < stops)
        return touched


def protected(texts: Texts, kinds: tuple[str, ...]) -> Spans:
    """Find the spans of the given kinds."""
    starts: list[int] = []
    stops: list[int] = []
    if kinds and len(texts.window):
        pattern = re.compile("|".join(PROTECTABLE[kind] for kind in kinds), re.IGNORECASE)
        for row in _candidate_rows(texts, kinds):
            _find_in_row(texts, int(row), pattern, starts, stops)
    return Spans(np.array(starts, np.int64), np.array(stops, np.int64))


def _candidate_rows(texts: Texts, kinds: tuple[str, ...]) -> I64:
    """Return the rows holding a sign without which no pattern of these kinds matches."""
    window = texts.window
    found = [np.zeros(0, np.int64)]
    for sign in sorted({sign for kind in kinds for sign in _SIGNALS[kind]}):
        places = np.flatnonzero(window[:-1] == ord(sign[0]))
        if sign == "./":  # an address has a letter behind its dot ...
            places = places[(window[places + 1] | 0x20) >= ord("a")]
        elif sign == ":/":  # ... or a slash behind its colon
            places = places[window[places + 1] == ord("/")]
        places = places + texts.offsets[0]
        rows = texts.rows_of(places)
        found.append(rows[places + 1 < texts.offsets[rows + 1]])
    return np.unique(np.concatenate(found))


def _find_in_row(
    texts: Texts, row: int, pattern: re.Pattern[str], starts: list[int], stops: list[int]
) -> None:
    base = int(texts.offsets[row])
    text = texts.values[base : texts.offsets[row + 1]].tobytes().decode()
    done = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        start -= text[start - 1 : start] == " "
        stop += text[stop : stop + 1] == " "
        start = max(start, done)
        starts.append(base + len(text[:start].encode()))
        stops.append(base + len(text[:stop].encode()))
        done = stop
