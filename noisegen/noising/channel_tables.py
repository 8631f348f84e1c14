"""What a channel looks up: the words and gaps of a batch of rows, and the tables that know them.

`realism.pair_counts` sees the same words and gaps row by row.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from noisegen.noising.profile import CHANCE_BITS, END, LETTERS_MAX, PHRASE_MAX, START, Channel
from noisegen.noising.rng import WeightedChoices, mix_array
from noisegen.text import case
from noisegen.text.buffers import (
    I64,
    U8,
    U64,
    HashTable,
    Texts,
    code_points,
    ordinals,
    utf8_lengths,
    within,
    word_hashes,
)

# Scripts that write no spaces, as in `alignment`: Thai and Lao, Burmese, Khmer, kana, Han.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF),
    (0xF900, 0xFAFF), (0x20000, 0x10FFFF),
)  # fmt: skip
CASINGS = 3  # forms of an option in the pool: small, title, upper
SIZES = LETTERS_MAX + 1  # of a part of a word
START_POINT, END_POINT = ord(START), ord(END)
_PLACES = {START: 1, END: 2, "": 3}  # instead of a letter before


class Words(NamedTuple):
    """Words of `Texts`: byte range, row, case, and hash in small letters.

    Where a script writes no spaces, each character is a word. `small` holds the bytes of the rows
    in small letters, from `base` on.
    """

    starts: I64
    stops: I64
    rows: I64
    cases: I64
    hashes: U64
    small: U8
    base: int

    @classmethod
    def of(cls, texts: Texts) -> "Words":
        """Find the words of all rows."""
        small, capital = case.lowered(texts.window)
        base, tokens = int(texts.offsets[0]), texts.tokens
        starts, stops, rows, hashes = tokens.starts, tokens.stops, tokens.rows, tokens.hashes
        if not texts.is_ascii:
            token, starts, stops = _single_characters(texts, starts, stops)
            rows, hashes = rows.take(token), hashes.take(token)
            # Tokens hash with ASCII and Latin-1 folded only, and as they were before they were cut.
            cut = stops - starts < (tokens.stops - tokens.starts).take(token)
            high = np.maximum.reduceat(texts.window, starts - base) >= 0x80  # it or what follows
            again = np.flatnonzero(cut | high)
            hashes[again] = word_hashes(small, starts.take(again) - base, stops.take(again) - base)
        cases = np.full(len(starts), case.SMALL)
        capitals = np.flatnonzero(capital) + base
        word = np.searchsorted(starts, capitals, side="right") - 1
        inside = (word >= 0) & (capitals < np.append(stops, 0).take(word))
        word, capitals = word[inside], capitals[inside]
        first = word[capitals == starts.take(word)]
        is_initial = np.diff(rows, prepend=-1) > 0
        cases[first] = np.where(is_initial.take(first), case.INITIAL, case.TITLE)
        counts = np.bincount(word, minlength=len(starts))
        several = np.flatnonzero(counts > 1)
        sizes = case.characters_in(small, starts.take(several) - base, stops.take(several) - base)
        cases[several[counts.take(several) * 2 > sizes]] = case.UPPER
        return cls(starts, stops, rows, cases, hashes, small, base)

    def shapes(self, chosen: I64) -> I64:
        """Return the shapes of some words, as `case.shape_of`."""
        starts, stops = self.starts.take(chosen) - self.base, self.stops.take(chosen) - self.base
        sizes = case.characters_in(self.small, starts, stops)
        shapes = self.cases.take(chosen) * (len(case.LENGTHS) + 1)
        shapes += np.searchsorted(case.LENGTHS, sizes, side="right")
        first = self.small.take(starts)
        return np.where((first >= 48) & (first <= 57), case.SHAPES - 1, shapes)


def _single_characters(texts: Texts, starts: I64, stops: I64) -> tuple[I64, I64, I64]:
    """Cut words where a script writes no spaces: each of its characters is a word.

    Returns for every word which one it was in, start, and stop.
    """
    leads = np.flatnonzero(texts.window >= 0xE0)
    points = code_points(texts.window, leads)
    single = np.zeros(len(leads), np.bool_)
    for low, high in _UNSPACED:
        single |= (points >= low) & (points <= high)
    if not single.any():
        return np.arange(len(starts)), starts, stops
    begins = leads[single] + int(texts.offsets[0])
    edges = np.unique(
        np.concatenate([starts, stops, begins, begins + utf8_lengths(points[single])])
    )
    word = np.searchsorted(starts, edges[:-1], side="right") - 1
    inside = np.flatnonzero(edges[:-1] < stops.take(word))
    word, firsts, lasts = word.take(inside), edges.take(inside), edges.take(inside + 1)
    # A cut may leave an apostrophe at either end; of the curly one, E2 is the first byte of three.
    values = texts.values
    firsts = firsts + (values[firsts] == 0x27) + 3 * (values[firsts] == 0xE2)
    lasts = lasts - (values[lasts - 1] == 0x27) - 3 * (values[lasts - 3] == 0xE2)
    solid = np.flatnonzero(firsts < lasts)
    return word.take(solid), firsts.take(solid), lasts.take(solid)


class Units(NamedTuple):
    """The gaps and words of rows in their order: gap, word, gap, ..., word, gap.

    `numbers` counts the gaps of a row, and its words, from 0. `words` has the number of a word
    among all words, -1 for a gap.
    """

    starts: I64
    stops: I64
    rows: I64
    numbers: I64
    words: I64

    @classmethod
    def of(cls, texts: Texts, words: Words) -> "Units":
        """Put the words of all rows between gaps, one before each word and one behind the last."""
        sizes = 2 * np.bincount(words.rows, minlength=len(texts)) + 1
        rows, lasts = np.repeat(np.arange(len(texts)), sizes), np.cumsum(sizes) - 1
        starts, stops, numbers = np.empty_like(rows), np.empty_like(rows), np.full(len(rows), -1)
        starts[lasts - sizes + 1], stops[lasts] = texts.offsets[:-1], texts.offsets[1:]
        at = units_of(words, np.arange(len(words.rows)))
        starts[at], stops[at], numbers[at] = words.starts, words.stops, np.arange(len(words.rows))
        starts[at + 1], stops[at - 1] = words.stops, words.starts
        return cls(starts, stops, rows, ordinals(rows) >> 1, numbers)


def units_of(words: Words, chosen: I64) -> I64:
    """Return the numbers of some words among all units."""
    return 2 * chosen + words.rows.take(chosen) + 1


def _text_table(texts: list[str]) -> HashTable:
    """Return where texts are in a list, counted from 1; not those without a hash."""
    rows = Texts.from_strings(texts)
    hashes = word_hashes(rows.values, rows.offsets[:-1], rows.offsets[1:])
    hashed = np.flatnonzero(hashes)
    return HashTable.of(hashes[hashed], hashed + 1)


class ChannelTables:
    """The groups of a channel as arrays, and the groups of words, gaps and letters.

    Group g changes a thing with `chances[g]`; the last chance is 0, for no group (-1). Option o of
    the channel has `kinds[o]` and `hows[o]`, and is written `pool[3 * o + casing]`; the last text
    of the pool is empty.
    """

    def __init__(self, channel: Channel) -> None:
        self._take_options(channel)
        words = sorted({word for word, _ in channel.words})
        self._take_words(channel, words)
        self._take_gaps(channel, words)
        self._take_letters(channel)

    def _take_options(self, channel: Channel) -> None:
        """Take over the groups and what each may do."""
        options = [option for group in channel.groups for option in group.options]
        self.chances = np.array([*(group.chance for group in channel.groups), 0], np.int64)
        bounds = [
            (number << (CHANCE_BITS + 1)) + bound
            for number, group in enumerate(channel.groups)
            for bound in group.bounds
        ]
        self._choices = WeightedChoices(np.array(bounds, np.int64), CHANCE_BITS)
        self.kinds = np.array([option.kind for option in options], np.int64)
        self.hows = np.array([option.how for option in options], np.int64)
        forms = [case.cased(option.noisy, how) for option in options for how in range(CASINGS)]
        self.pool = Texts.from_strings([*forms, ""]).to_arrow()
        self.forms, self.lacks = [option.noisy for option in options], channel.lacks

    def _take_words(self, channel: Channel, words: list[str]) -> None:
        """Take over the groups of known words, and of the shapes of others."""
        self._words = _text_table(words)
        cases = range(len(case.CASES))
        of_words = [channel.words[word, number] for word in words for number in cases]
        self._word_groups, self._shapes = np.array(of_words, np.int64), np.array(channel.shapes)
        heads = {word.partition(" ")[0] for word in words if " " in word}
        self._heads = _text_table(sorted(heads))

    def _take_gaps(self, channel: Channel, words: list[str]) -> None:
        """Take over the groups of gaps.

        A gap has the key (gap * 2 + initial) * rights + right; the last two of the rights are any
        word and the end of a row.
        """
        gaps = {gap: number for number, gap in enumerate(sorted({key[2] for key in channel.gaps}))}
        self._gaps, self._no_gap = _text_table(list(gaps)), gaps.get("", -1)
        self._any, self._end, self._rights = (len(words) + more for more in range(3))
        rights = {word: number for number, word in enumerate(words)} | {END: self._end}
        keys = [
            (gaps[gap] * 2 + initial) * self._rights + rights.get(right, self._any)
            for right, initial, gap in channel.gaps
        ]
        of_gaps = np.array(list(channel.gaps.values()), np.int64)
        self._gap_groups = HashTable.of(_key_hashes(np.array(keys, np.int64)), of_gaps + 1)
        space = np.arange(self._rights) + gaps.get(" ", -1) * 2 * self._rights
        self._of_space = self._groups_of_gaps(space)

    def _take_letters(self, channel: Channel) -> None:
        """Take over the weights and groups of parts of words, by what is around them."""
        contexts, parts, values = [], [], []
        for size in range(SIZES):
            sized = [key for key in channel.letters if len(key[1]) == size]
            points = [ord(letter) for _, part, _ in sized for letter in part]
            letters = _part_hashes(np.array(points, np.int64).reshape(len(sized), size).T)
            near = [(ord(b), ord(a)) if b else (_PLACES[a], 0) for b, _, a in sized]
            before, after = np.array(near, np.int64).reshape(-1, 2).T
            contexts.append(_context_hashes(before, letters, after, size))
            parts.append(letters)
            values += [channel.letters[key] for key in sized]
        self._contexts = HashTable.of(np.concatenate(contexts), np.arange(len(values)) + 1)
        known = np.unique(np.concatenate(parts[2:]))
        self._parts = HashTable.of(known, np.ones(len(known)))
        self._letters = np.array([(-1, 0), *values], np.int64).T.copy()

    def pick(self, groups: I64, draws: U64) -> I64:
        """Return an option of each group, by the high half of a draw."""
        return self._choices.pick(groups, (draws >> np.uint64(64 - CHANCE_BITS)).astype(np.int64))

    def known(self, hashes: U64) -> I64:
        """Return the number of each word among those of the channel, -1 for an unknown one."""
        return self._words.find(hashes).astype(np.int64) - 1

    def groups(self, texts: Texts, words: Words, units: Units) -> I64:
        """Return the group of every word and gap, -1 for none."""
        numbers = self.known(words.hashes)
        known, unknown = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
        of_words = np.empty(len(words.rows), np.int64)
        keys = numbers.take(known) * len(case.CASES) + words.cases.take(known)
        of_words[known] = self._word_groups.take(keys)
        of_words[unknown] = self.shape_groups(words, unknown)

        gaps = np.flatnonzero(units.words < 0)
        rights = np.full(len(gaps), self._end)
        rights[np.arange(len(words.rows)) + words.rows] = np.where(numbers < 0, self._any, numbers)
        starts, stops = units.starts.take(gaps), units.stops.take(gaps)
        later = units.numbers.take(gaps) > 0
        padded = np.append(texts.values, np.uint8(0))
        other = np.flatnonzero((stops - starts != 1) | (padded.take(starts) != 0x20) | ~later)
        starts, stops = starts.take(other), stops.take(other)
        numbers = self._gaps.find(word_hashes(texts.values, starts, stops)).astype(np.int64) - 1
        numbers[starts == stops] = self._no_gap
        keys = (numbers * 2 + ~later.take(other)) * self._rights + rights.take(other)
        of_gaps = self._of_space.take(rights)
        of_gaps[other] = np.where(numbers < 0, -1, self._groups_of_gaps(keys))
        is_inside = later & (rights != self._end)  # of a row
        starts, stops = units.starts.take(gaps), units.stops.take(gaps)
        is_digit = [(side >= 48) & (side <= 57) for side in (padded[starts - 1], padded[stops])]
        of_gaps[is_inside & is_digit[0] & is_digit[1]] = -1  # within a number, or between two

        groups = np.empty(len(units.rows), np.int64)
        groups[np.flatnonzero(units.words >= 0)], groups[gaps] = of_words, of_gaps
        return groups

    def phrases(self, words: Words) -> Iterator[tuple[I64, I64, I64]]:
        """Yield the phrases of each length: number of the first word and of the last, and group."""
        heads = np.flatnonzero(self._heads.find(words.hashes))
        for more in range(1, PHRASE_MAX):
            heads = heads[heads + more < len(words.rows)]
            lasts = heads + more
            starts, stops = words.starts.take(heads), words.stops.take(lasts)
            hashes = word_hashes(words.small, starts - words.base, stops - words.base)
            hashes[words.rows.take(heads) != words.rows.take(lasts)] = 0
            numbers = self._words.find(hashes).astype(np.int64) - 1
            known = np.flatnonzero((numbers >= 0) & (hashes > 0))
            first = heads.take(known)
            keys = numbers.take(known) * len(case.CASES) + words.cases.take(first)
            yield first, first + more, self._word_groups.take(keys)

    def _groups_of_gaps(self, keys: I64) -> I64:
        """Return the group of each key, or that of its gap before any word; -1 for neither."""
        groups = self._gap_groups.find(_key_hashes(keys)).astype(np.int64) - 1
        missing = np.flatnonzero(groups < 0)
        asked = keys.take(missing)
        coarse = asked - asked % self._rights + self._any
        groups[missing] = self._gap_groups.find(_key_hashes(coarse)).astype(np.int64) - 1
        return groups

    def shape_groups(self, words: Words, chosen: I64) -> I64:
        """Return the groups of the shapes of some words."""
        return self._shapes.take(words.shapes(chosen))

    def parts(self, small: U8, starts: I64, stops: I64) -> tuple[I64, I64, I64, I64]:
        """Return what may change in the words in these byte ranges of `small`.

        Letter l of all words, each between START and END, begins at byte `begins[l]` (END where the
        word stops); `firsts` has the START of each word. Part `SIZES` * l + size, so many letters
        from l on, has `weights` and `groups`. Returns begins, firsts, weights, groups.
        """
        at, words = within(starts, stops - starts)
        solid = np.flatnonzero((small.take(at) & 0xC0) != 0x80)
        at, words = at.take(solid), words.take(solid)
        counts = np.bincount(words, minlength=len(starts))
        firsts = np.cumsum(counts + 2) - counts - 2
        lasts, inside = firsts + counts + 1, np.arange(len(at)) + 2 * words + 1
        count = len(at) + 2 * len(starts)
        letters, begins = np.empty(count, np.int64), np.empty(count, np.int64)
        letters[firsts], letters[lasts], letters[inside] = (
            START_POINT,
            END_POINT,
            code_points(small, at),
        )
        begins[firsts], begins[lasts], begins[inside] = starts, stops, at

        weights, groups = np.zeros((count, SIZES), np.int64), np.full((count, SIZES), -1)
        starts_word = np.zeros(count + 1, np.bool_)
        starts_word[firsts] = True
        at = np.flatnonzero(~starts_word[:-1])
        for size in range(SIZES):
            here, of_part, weight = self._letter_groups(letters, at, size)
            groups[here, size], weights[here, size] = of_part, weight
            at = at[at + size + 1 < count]
            at = at[~starts_word[at + size + 1]]
        return begins, firsts, weights.ravel(), groups.ravel()

    def _letter_groups(self, framed: I64, at: I64, size: int) -> tuple[I64, I64, I64]:
        """Return where `size` letters are a part that has changed, and its group and weight."""
        letters = _part_hashes(framed.take(np.arange(size)[:, None] + at))
        if size > 1:
            known = np.flatnonzero(self._parts.find(letters))
            at, letters = at.take(known), letters.take(known)
        before, after = framed.take(at - 1), framed.take(at + size)
        numbers = self._contexts.find(_context_hashes(before, letters, after, size))
        missing = np.flatnonzero(numbers == 0)
        edge = np.where(after.take(missing) == END_POINT, _PLACES[END], _PLACES[""])
        edge = np.where(before.take(missing) == START_POINT, _PLACES[START], edge)
        coarse = _context_hashes(edge, letters.take(missing), np.zeros_like(edge), size)
        numbers[missing] = self._contexts.find(coarse)
        return at, *self._letters.take(numbers, axis=1)


def _key_hashes(keys: I64) -> U64:
    return mix_array(keys.astype(np.uint64) + np.uint64(1))


def _part_hashes(letters: I64) -> U64:
    """Return a hash of the letters in each column."""
    hashes = np.zeros(letters.shape[1], np.uint64)
    for row in letters.astype(np.uint64):
        hashes = mix_array(hashes + row)
    return hashes


def _context_hashes(before: I64, letters: U64, after: I64, size: int) -> U64:
    near = before.astype(np.uint64) << np.uint64(24) | after.astype(np.uint64)
    return mix_array(mix_array(near ^ np.uint64(size << 60)) + letters)
