"""Words and gaps of a batch of rows as arrays; `evidence` sees the same ones row by row."""

from dataclasses import dataclass

import numpy as np

from noisegen.characters import code_points, utf8_lengths
from noisegen.draws import I64, U64
from noisegen.realism.letters import INITIAL, LENGTHS, SHAPES, SMALL, TITLE, UPPER, lowered
from noisegen.text import U8, Bool, Texts, ordinals
from noisegen.words import APOSTROPHES, word_hashes

# Scripts that write no blanks, as in `alignment`: Thai and Lao, Burmese, Khmer, kana, Han.
_NO_BLANKS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF),
    (0xF900, 0xFAFF), (0x20000, 0x10FFFF),
)  # fmt: skip
_BLANK = 0x20


@dataclass(frozen=True)
class Words:
    """Words of `Texts`: byte range, row, number in the row, case, and hash in small letters.

    `small` holds the bytes of the rows in small letters, from `base` on.
    """

    starts: I64
    stops: I64
    rows: I64
    numbers: I64
    cases: I64
    hashes: U64
    small: U8
    base: int

    def __len__(self) -> int:
        return len(self.starts)

    def shapes(self, chosen: I64) -> I64:
        """Return the shapes of some words, as `letters.shape_of`."""
        starts, stops = self.starts.take(chosen) - self.base, self.stops.take(chosen) - self.base
        sizes = self._characters(starts, stops)
        shapes = self.cases.take(chosen) * (len(LENGTHS) + 1)
        shapes += np.searchsorted(LENGTHS, sizes, side="right")
        first = self.small.take(starts)
        return np.where((first >= 48) & (first <= 57), SHAPES - 1, shapes)

    def _characters(self, starts: I64, stops: I64) -> I64:
        return characters_in(self.small, starts, stops)


def characters_in(values: U8, starts: I64, stops: I64) -> I64:
    """Return how many characters begin in each byte range."""
    sizes = stops - starts
    if len(values) and int(values.max()) >= 0x80:
        inside = np.flatnonzero((values & 0xC0) == 0x80)
        sizes = sizes - (np.searchsorted(inside, stops) - np.searchsorted(inside, starts))
    return sizes


def words_of(texts: Texts) -> Words:
    """Find the words of all rows."""
    small, capital = lowered(texts)
    base = int(texts.offsets[0])
    tokens = texts.tokens
    starts, stops, rows, hashes = tokens.starts, tokens.stops, tokens.rows, tokens.hashes
    if not texts.is_ascii:
        starts, stops, rows, whole = _single_characters(texts, starts, stops, rows)
        hashes = hashes.take(whole)
        high = np.flatnonzero(texts.window >= 0x80) + base
        word = np.searchsorted(starts, high, side="right") - 1
        other = whole < 0
        other[word[(word >= 0) & (high < np.append(stops, 0).take(word))]] = True
        again = np.flatnonzero(other)
        edges = starts.take(again) - base, stops.take(again) - base
        hashes[again] = word_hashes(small, *edges)
    numbers = ordinals(rows)
    cases = _cases(small, capital, starts - base, stops - base, numbers)
    return Words(starts, stops, rows, numbers, cases, hashes, small, base)


def _single_characters(
    texts: Texts, starts: I64, stops: I64, rows: I64
) -> tuple[I64, I64, I64, I64]:
    """Cut words where a script writes no blanks: each of its characters is a word.

    Returns starts, stops and rows, and which word each was before, -1 for what was cut.
    """
    begins, ends = _unspaced(texts)
    word = np.searchsorted(starts, begins, side="right") - 1
    inside = np.flatnonzero((word >= 0) & (begins < np.append(stops, 0).take(word)))
    if not len(inside):
        return starts, stops, rows, np.arange(len(starts))
    begins, ends, word = begins.take(inside), ends.take(inside), word.take(inside)
    touched = np.zeros(len(starts), np.bool_)
    touched[word] = True
    cut, whole = np.flatnonzero(touched), np.flatnonzero(~touched)
    first, last = _cut(starts.take(cut), stops.take(cut), begins, ends)
    owner = rows.take(np.searchsorted(starts, first, side="right") - 1)
    first, last = _without_apostrophes(texts, first, last)
    solid = np.flatnonzero(first < last)
    starts = np.concatenate([starts.take(whole), first.take(solid)])
    stops = np.concatenate([stops.take(whole), last.take(solid)])
    order = np.argsort(starts, kind="stable")
    rows = np.concatenate([rows.take(whole), owner.take(solid)])
    before = np.concatenate([whole, np.full(len(solid), -1)])
    return starts.take(order), stops.take(order), rows.take(order), before.take(order)


def _unspaced(texts: Texts) -> tuple[I64, I64]:
    """Return where the characters of scripts without blanks begin and end."""
    window, base = texts.window, int(texts.offsets[0])
    leads = np.flatnonzero(window >= 0xE0)
    points = code_points(window, leads)
    single = np.zeros(len(leads), np.bool_)
    for low, high in _NO_BLANKS:
        single |= (points >= low) & (points <= high)
    begins = leads[single] + base
    return begins, begins + utf8_lengths(points[single])


def _cut(starts: I64, stops: I64, begins: I64, ends: I64) -> tuple[I64, I64]:
    """Return the parts of words that lie between all these edges."""
    cuts = np.sort(np.concatenate([starts, stops, begins, ends]))
    cuts = cuts[np.diff(cuts, prepend=-1) > 0]
    first, last = cuts[:-1], cuts[1:]
    word = np.searchsorted(starts, first, side="right") - 1
    kept = np.flatnonzero(first < stops.take(word))
    return first.take(kept), last.take(kept)


def _without_apostrophes(texts: Texts, starts: I64, stops: I64) -> tuple[I64, I64]:
    """Take off an apostrophe at either end, which a cut has left there."""
    values = np.concatenate([texts.values, np.zeros(4, np.uint8)])
    for mark in APOSTROPHES:
        code = mark.encode()
        for ahead in (True, False):
            at = starts if ahead else np.maximum(stops - len(code), 0)
            hit = stops - starts >= len(code)
            for offset, byte in enumerate(code):
                hit &= values.take(at + offset) == byte
            starts = starts + (len(code) * hit if ahead else 0)
            stops = stops - (0 if ahead else len(code) * hit)
    return starts, stops


def _cases(small: U8, capital: Bool, starts: I64, stops: I64, numbers: I64) -> I64:
    """Return the case of every word, as `letters.case_of`."""
    cases = np.full(len(starts), SMALL)
    places = np.flatnonzero(capital)
    if not len(places) or not len(starts):
        return cases
    word = np.searchsorted(starts, places, side="right") - 1
    inside = (word >= 0) & (places < stops.take(word))
    word, places = word[inside], places[inside]
    counts = np.bincount(word, minlength=len(starts))
    first = word[places == starts.take(word)]
    cases[first] = np.where(numbers.take(first) == 0, INITIAL, TITLE)
    several = np.flatnonzero(counts > 1)
    sizes = characters_in(small, starts.take(several), stops.take(several))
    cases[several[counts.take(several) * 2 > sizes]] = UPPER
    return cases


@dataclass(frozen=True)
class Gaps:
    """Gaps of `Texts`: one before each word, and one at the end of each row.

    The gap before word w of row r is number w + r. `rights` has the word behind, -1 at the end.
    """

    starts: I64
    stops: I64
    rows: I64
    numbers: I64
    rights: I64


def gaps_of(texts: Texts, words: Words) -> Gaps:
    """Find the gaps of all rows."""
    counts = np.bincount(words.rows, minlength=len(texts))
    rows = np.repeat(np.arange(len(texts)), counts + 1)
    total = len(words) + len(texts)
    rights = np.full(total, -1)
    before = np.arange(len(words)) + words.rows
    rights[before] = np.arange(len(words))
    stops = texts.offsets[1:].take(rows)
    stops[before] = words.starts
    starts = texts.offsets[:-1].take(rows)
    starts[before + 1] = words.stops
    return Gaps(starts, stops, rows, ordinals(rows), rights)


class HashIndex:
    """Where each of some 64-bit hashes stands among them: an open hash table."""

    def __init__(self, hashes: U64) -> None:
        self._bits = max(4, (len(hashes) * 4).bit_length())
        self._slots = np.zeros(1 << self._bits, np.uint64)
        self._numbers = np.full(1 << self._bits, -1, np.int32)
        left, at = np.arange(len(hashes)), self._first(hashes)
        while len(left):
            free = np.flatnonzero(self._numbers.take(at) < 0)
            places, winners = np.unique(at.take(free), return_index=True)
            self._slots[places] = hashes.take(left.take(free.take(winners)))
            self._numbers[places] = left.take(free.take(winners))
            unplaced = np.flatnonzero(self._numbers.take(at) != left)
            left, at = left.take(unplaced), self._next(at.take(unplaced))

    def _first(self, hashes: U64) -> I64:
        spread = hashes * np.uint64(0x9E3779B97F4A7C15)
        return (spread >> np.uint64(64 - self._bits)).astype(np.int64)

    def _next(self, at: I64) -> I64:
        return (at + 1) & ((1 << self._bits) - 1)

    def find(self, hashes: U64) -> I64:
        """Return the number of each hash, -1 for those that are not there."""
        found = np.full(len(hashes), -1)
        at, left = self._first(hashes), np.arange(len(hashes))
        while len(left):
            numbers = self._numbers.take(at)
            equal = (self._slots.take(at) == hashes.take(left)) & (numbers >= 0)
            found[left[equal]] = numbers[equal]
            on = np.flatnonzero((numbers >= 0) & ~equal)
            left, at = left.take(on), self._next(at.take(on))
        return found
