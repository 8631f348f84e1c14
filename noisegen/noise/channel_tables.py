"""What a channel looks up: the words and gaps of a batch of rows, and the tables that know them.

`realism.learn` sees the same words and gaps row by row.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisegen.noise.profile import CHANCE_BITS, END, LETTERS_MAX, START, Channel
from noisegen.noise.rng import WeightedChoices, mix_array
from noisegen.text.buffers import (
    APOSTROPHES,
    I64,
    U8,
    U64,
    WORD_BYTES_MAX,
    Bool,
    Texts,
    code_points,
    ordinals,
    utf8_lengths,
    word_hashes,
)
from noisegen.text.case import (
    CASES,
    INITIAL,
    LENGTHS,
    SHAPES,
    SMALL,
    TITLE,
    UPPER,
    cased,
    characters_in,
    lowered,
)

# Scripts that write no spaces, as in `alignment`: Thai and Lao, Burmese, Khmer, kana, Han.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF),
    (0xF900, 0xFAFF), (0x20000, 0x10FFFF),
)  # fmt: skip
CASINGS = 3  # forms of an option in the pool: small, title, upper
SIZES = LETTERS_MAX + 1  # of a part of a word
_PRIME = np.uint64(0x100000001B3)
START_POINT, END_POINT = ord(START), ord(END)
_PLACES = {START: 1, END: 2, "": 3}  # instead of a letter before


@dataclass(frozen=True)
class Words:
    """Words of `Texts`: byte range, row, number in the row, case, and hash in small letters.

    Where a script writes no spaces, each character is a word. `small` holds the bytes of the rows
    in small letters, from `base` on.
    """

    starts: I64
    stops: I64
    rows: I64
    numbers: I64
    cases: I64
    hashes: U64
    small: U8
    base: int

    @classmethod
    def of(cls, texts: Texts) -> "Words":
        """Find the words of all rows."""
        small, capital = lowered(texts.window)
        base, tokens = int(texts.offsets[0]), texts.tokens
        starts, stops, rows, hashes = tokens.starts, tokens.stops, tokens.rows, tokens.hashes
        if not texts.is_ascii:
            starts, stops, rows, token = _single_characters(texts, starts, stops, rows)
            high = np.flatnonzero(texts.window >= 0x80) + base
            word = np.searchsorted(starts, high, side="right") - 1
            other = token < 0  # tokens hash with ASCII and Latin-1 folded only
            other[word[(word >= 0) & (high < np.append(stops, 0).take(word))]] = True
            again = np.flatnonzero(other)
            hashes = hashes.take(token)
            hashes[again] = word_hashes(small, starts.take(again) - base, stops.take(again) - base)
        numbers = ordinals(rows)
        cases = _cases(small, capital, starts - base, stops - base, numbers)
        return cls(starts, stops, rows, numbers, cases, hashes, small, base)

    def __len__(self) -> int:
        return len(self.starts)

    def shapes(self, chosen: I64) -> I64:
        """Return the shapes of some words, as `case.shape_of`."""
        starts, stops = self.starts.take(chosen) - self.base, self.stops.take(chosen) - self.base
        shapes = self.cases.take(chosen) * (len(LENGTHS) + 1)
        shapes += np.searchsorted(LENGTHS, characters_in(self.small, starts, stops), side="right")
        first = self.small.take(starts)
        return np.where((first >= 48) & (first <= 57), SHAPES - 1, shapes)

    def behind(self, words: I64) -> I64:
        """Return the word behind each word, -1 at the end of its row."""
        following = np.append(self.rows, -1).take(words + 1) == self.rows.take(words)
        return np.where(following, words + 1, -1)


def _single_characters(
    texts: Texts, starts: I64, stops: I64, rows: I64
) -> tuple[I64, I64, I64, I64]:
    """Cut words where a script writes no spaces: each of its characters is a word.

    Returns starts, stops and rows, and which word each was before, -1 for what was cut.
    """
    leads = np.flatnonzero(texts.window >= 0xE0)
    points = code_points(texts.window, leads)
    single = np.zeros(len(leads), np.bool_)
    for low, high in _UNSPACED:
        single |= (points >= low) & (points <= high)
    begins = leads[single] + int(texts.offsets[0])
    ends = begins + utf8_lengths(points[single])
    word = np.searchsorted(starts, begins, side="right") - 1
    inside = np.flatnonzero((word >= 0) & (begins < np.append(stops, 0).take(word)))
    if not len(inside):
        return starts, stops, rows, np.arange(len(starts))
    touched = np.zeros(len(starts), np.bool_)
    touched[word.take(inside)] = True
    cut, whole = np.flatnonzero(touched), np.flatnonzero(~touched)
    firsts, lasts = starts.take(cut), stops.take(cut)
    edges = np.sort(np.concatenate([firsts, lasts, begins.take(inside), ends.take(inside)]))
    edges = edges[np.diff(edges, prepend=-1) > 0]
    owner = np.searchsorted(firsts, edges[:-1], side="right") - 1
    kept = np.flatnonzero(edges[:-1] < lasts.take(owner))
    part_rows = rows.take(cut.take(owner.take(kept)))
    first, last = _without_apostrophes(texts, edges[:-1].take(kept), edges[1:].take(kept))
    solid = np.flatnonzero(first < last)
    starts = np.concatenate([starts.take(whole), first.take(solid)])
    stops = np.concatenate([stops.take(whole), last.take(solid)])
    rows = np.concatenate([rows.take(whole), part_rows.take(solid)])
    before = np.concatenate([whole, np.full(len(solid), -1)])
    order = np.argsort(starts, kind="stable")
    return starts.take(order), stops.take(order), rows.take(order), before.take(order)


def _without_apostrophes(texts: Texts, starts: I64, stops: I64) -> tuple[I64, I64]:
    """Take off an apostrophe at either end, which a cut has left there."""
    values = np.concatenate([texts.values, np.zeros(4, np.uint8)])
    for mark in APOSTROPHES:
        code = np.frombuffer(mark.encode(), np.uint8)
        offsets = np.arange(len(code))[:, None]
        for is_start in (True, False):
            at = starts if is_start else np.maximum(stops - len(code), 0)
            is_mark = (values.take(at + offsets) == code[:, None]).all(axis=0)
            size = len(code) * (is_mark & (stops - starts >= len(code)))
            starts, stops = (starts + size, stops) if is_start else (starts, stops - size)
    return starts, stops


def _cases(small: U8, capital: Bool, starts: I64, stops: I64, numbers: I64) -> I64:
    """Return the case of every word, as `case.case_of`."""
    cases = np.full(len(starts), SMALL)
    capitals = np.flatnonzero(capital)
    if not len(capitals) or not len(starts):
        return cases
    word = np.searchsorted(starts, capitals, side="right") - 1
    inside = (word >= 0) & (capitals < stops.take(word))
    word, capitals = word[inside], capitals[inside]
    counts = np.bincount(word, minlength=len(starts))
    first = word[capitals == starts.take(word)]
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

    @classmethod
    def of(cls, texts: Texts, words: Words) -> "Gaps":
        """Find the gaps of all rows."""
        counts = np.bincount(words.rows, minlength=len(texts))
        rows = np.repeat(np.arange(len(texts)), counts + 1)
        rights = np.full(len(rows), -1)
        before = np.arange(len(words)) + words.rows
        rights[before] = np.arange(len(words))
        starts, stops = texts.offsets[:-1].take(rows), texts.offsets[1:].take(rows)
        starts[before + 1], stops[before] = words.stops, words.starts
        return cls(starts, stops, rows, ordinals(rows), rights)


class HashIndex:
    """An open hash table of 64-bit hashes, numbered in the order given."""

    def __init__(self, hashes: U64) -> None:
        self._bits = max(4, (len(hashes) * 4).bit_length())
        self._slots = np.zeros(1 << self._bits, np.uint64)
        self._numbers = np.full(1 << self._bits, -1, np.int32)
        left, at = np.arange(len(hashes)), self._home(hashes)
        while len(left):
            free = np.flatnonzero(self._numbers.take(at) < 0)
            slots, winners = np.unique(at.take(free), return_index=True)
            self._slots[slots] = hashes.take(left.take(free.take(winners)))
            self._numbers[slots] = left.take(free.take(winners))
            unplaced = np.flatnonzero(self._numbers.take(at) != left)
            left, at = left.take(unplaced), self._next(at.take(unplaced))

    def _home(self, hashes: U64) -> I64:
        spread = hashes * np.uint64(0x9E3779B97F4A7C15)
        return (spread >> np.uint64(64 - self._bits)).astype(np.int64)

    def _next(self, at: I64) -> I64:
        return (at + 1) & ((1 << self._bits) - 1)

    def find(self, hashes: U64) -> I64:
        """Return the number of each hash, -1 for those that are not there."""
        numbers = np.full(len(hashes), -1)
        at, left = self._home(hashes), np.arange(len(hashes))
        while len(left):
            stored = self._numbers.take(at)
            equal = (self._slots.take(at) == hashes.take(left)) & (stored >= 0)
            numbers[left[equal]] = stored[equal]
            on = np.flatnonzero((stored >= 0) & ~equal)
            left, at = left.take(on), self._next(at.take(on))
        return numbers


def _index_of(texts: list[str]) -> HashIndex:
    rows = Texts.from_strings(texts)
    return HashIndex(word_hashes(rows.values, rows.offsets[:-1], rows.offsets[1:]))


@dataclass(frozen=True)
class Options:
    """Groups of options as arrays; option o of the channel is `pool[3 * o + casing]`.

    The last text of the pool is empty.
    """

    chances: I64
    choices: WeightedChoices
    kinds: I64
    hows: I64
    pool: pa.Array

    @classmethod
    def of(cls, channel: Channel) -> "Options":
        """Lay out the groups of a channel."""
        options = [option for group in channel.groups for option in group.options]
        forms = [cased(option.noisy, case) for option in options for case in range(CASINGS)]
        return cls(
            np.array([group.chance for group in channel.groups], np.int64),
            WeightedChoices.from_shares((group.bounds for group in channel.groups), CHANCE_BITS),
            np.array([option.kind for option in options], np.int64),
            np.array([option.how for option in options], np.int64),
            Texts.from_strings([*forms, ""]).to_arrow(),
        )

    def pick(self, groups: I64, draws: U64) -> I64:
        """Return an option of each group, by the high half of a draw."""
        return self.choices.pick(groups, (draws >> np.uint64(64 - CHANCE_BITS)).astype(np.int64))


class WordTable:
    """The groups of words by hash and case, or by shape."""

    def __init__(self, channel: Channel) -> None:
        words = sorted({word for word, _ in channel.words if len(word.encode()) <= WORD_BYTES_MAX})
        self.numbers = {word: number for number, word in enumerate(words)}
        self._index = _index_of(words)
        groups = [channel.words[word, case] for word in words for case in range(len(CASES))]
        self._groups, self._shapes = np.array(groups, np.int64), np.array(channel.shapes)

    def find(self, words: Words) -> I64:
        """Return the number of every word, -1 if it is not known."""
        return self._index.find(words.hashes)

    def groups(self, words: Words, numbers: I64) -> I64:
        """Return the group of every word."""
        groups = np.empty(len(numbers), np.int64)
        known = numbers >= 0
        here, other = np.flatnonzero(known), np.flatnonzero(~known)
        groups[here] = self._groups.take(numbers.take(here) * len(CASES) + words.cases.take(here))
        groups[other] = self.shape_groups(words, other)
        return groups

    def shape_groups(self, words: Words, chosen: I64) -> I64:
        """Return the groups of the shapes of some words."""
        return self._shapes.take(words.shapes(chosen))


class GapTable:
    """The groups of gaps by their bytes, whether they begin a row, and the word behind.

    They are under one number, (gap * 2 + initial) * rights + right, where any word and the end are
    the last two rights.
    """

    def __init__(self, channel: Channel, words: WordTable) -> None:
        gaps = sorted({gap for _, _, gap in channel.gaps})
        self._numbers = {gap: number for number, gap in enumerate(gaps)}
        self._index = _index_of(gaps)
        self._rights = len(words.numbers) + 2
        self._end, self._any = self._rights - 1, self._rights - 2
        rights = words.numbers | {END: self._end}
        keys = {
            (self._numbers[gap] * 2 + initial) * self._rights + rights.get(right, self._any): group
            for (right, initial, gap), group in channel.gaps.items()
        }
        self._keys = HashIndex(np.array(sorted(keys), np.uint64))
        self._groups = np.array([keys[key] for key in sorted(keys)] + [-1], np.int64)
        space = self._numbers.get(" ", -1) * 2 * self._rights
        every = np.arange(self._rights)
        self._of_space = self._look_up(every + space) if space >= 0 else np.full(self._rights, -1)

    def _look_up(self, keys: I64) -> I64:
        """Return the group of each key, or that of its gap before any word; -1 for neither."""
        numbers = self._keys.find(keys.astype(np.uint64))
        missing = np.flatnonzero(numbers < 0)
        asked = keys.take(missing)
        coarse = asked - asked % self._rights + self._any
        numbers[missing] = self._keys.find(coarse.astype(np.uint64))
        return self._groups.take(numbers)

    def groups(self, texts: Texts, gaps: Gaps, words: I64) -> I64:
        """Return the group of every gap, -1 for none; `words` are the numbers of the words."""
        rights = np.full(len(gaps.rights), self._end)
        inner = np.flatnonzero(gaps.rights >= 0)
        known = words.take(gaps.rights.take(inner))
        rights[inner] = np.where(known >= 0, known, self._any)
        padded = np.append(texts.values, np.uint8(0))
        space = (gaps.stops - gaps.starts == 1) & (padded.take(gaps.starts) == 0x20)
        space &= gaps.numbers > 0
        groups = self._of_space.take(rights)
        other = np.flatnonzero(~space)
        starts, stops = gaps.starts.take(other), gaps.stops.take(other)
        numbers = self._index.find(word_hashes(texts.values, starts, stops))
        numbers = np.where(starts == stops, self._numbers.get("", -1), numbers)
        numbers = np.where(stops - starts > WORD_BYTES_MAX, -1, numbers)
        initial = gaps.numbers.take(other) == 0
        keys = (numbers * 2 + initial) * self._rights + rights.take(other)
        groups[other] = np.where(numbers >= 0, self._look_up(np.maximum(keys, 0)), -1)
        return groups


class LetterTable:
    """The contexts of a channel: group and weight of letters between neighbours, or at a place.

    `framed` are code points of words, each between START and END.
    """

    def __init__(self, channel: Channel) -> None:
        keys = sorted(channel.letters, key=lambda key: len(key[1]))
        contexts, parts = [], []
        for size in range(SIZES):
            sized = [key for key in keys if len(key[1]) == size]
            letters = _part_hashes(_points([part for _, part, _ in sized], size))
            near = [(ord(b), ord(a)) if b else (_PLACES[a], 0) for b, _, a in sized]
            before, after = np.array(near, np.int64).reshape(-1, 2).T
            contexts.append(_context_hashes(before, letters, after, size))
            if size > 1:
                parts.append(np.unique(letters))
        self._index, self._parts = (
            HashIndex(np.concatenate(hashes)) for hashes in (contexts, parts)
        )
        values = [*(channel.letters[key] for key in keys), (-1, 0)]
        self._groups, self._weights = np.array(values, np.int64).T.copy()

    def known(self, framed: I64, at: I64, size: int) -> I64:
        """Return those positions from which on `size` letters are a part that has changed."""
        if size < 2:
            return at
        numbers = self._parts.find(_part_hashes(_slices(framed, at, size)))
        return at.take(np.flatnonzero(numbers >= 0))

    def look_up(self, framed: I64, at: I64, size: int) -> tuple[I64, I64]:
        """Return group and weight of `size` letters from each position on, between neighbours.

        Positions too near the end of `framed` must not be asked for.
        """
        before, after = framed.take(at - 1), framed.take(at + size)
        letters = _part_hashes(_slices(framed, at, size))
        numbers = self._index.find(_context_hashes(before, letters, after, size))
        missing = np.flatnonzero(numbers < 0)
        edge = np.where(after.take(missing) == END_POINT, _PLACES[END], _PLACES[""])
        edge = np.where(before.take(missing) == START_POINT, _PLACES[START], edge)
        coarse = _context_hashes(edge, letters.take(missing), np.zeros_like(edge), size)
        numbers[missing] = self._index.find(coarse)
        return self._groups.take(numbers), self._weights.take(numbers)


def _slices(framed: I64, at: I64, size: int) -> I64:
    """Return the `size` letters from each position on, a row per letter."""
    return framed.take(np.arange(size)[:, None] + at)


def _points(parts: list[str], size: int) -> I64:
    """Return the code points of parts of `size` letters, a row per letter."""
    points = np.array(list(map(ord, "".join(parts))), np.int64)
    return points.reshape(len(parts), size).T


def _part_hashes(letters: I64) -> U64:
    """Return a hash of the letters in each column."""
    hashes = np.zeros(letters.shape[1], np.uint64)
    for row in letters.astype(np.uint64):
        hashes = (hashes + row) * _PRIME
    return hashes


def _context_hashes(before: I64, letters: U64, after: I64, size: int) -> U64:
    near = before.astype(np.uint64) << np.uint64(24) | after.astype(np.uint64)
    return mix_array(mix_array(near ^ np.uint64(size << 60)) + letters)
