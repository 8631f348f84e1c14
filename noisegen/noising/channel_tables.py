"""A channel's groups of options as arrays, and the search for the group of a word or gap.

`realism.pair_counts` finds the same words and gaps when it counts errors for a profile.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from noisegen.noising.channel_model import CHANCE_BITS, Channel
from noisegen.noising.profile import END, LETTERS_MAX, PHRASE_MAX, START
from noisegen.noising.rng import WeightedChoices, splitmix_array
from noisegen.text import case
from noisegen.text.buffers import (
    I64,
    SINGLE,
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

CASINGS = 3  # texts of each option in the pool: in small letters, Title and UPPER
SIZES = LETTERS_MAX + 1  # possible sizes of a part of a word: 0 to LETTERS_MAX letters
START_POINT, END_POINT = ord(START), ord(END)
# Position of a part in its word (start, end, inside) -> code. In the hash of a part, the code
# replaces the letter before the part if the letters around the part are not recorded.
_PLACES = {START: 1, END: 2, "": 3}


class Words(NamedTuple):
    """Words of rows of text, with one entry per word: byte range, row, case and hash.

    The hash is of the word in small letters. In scripts without spaces, each character is a word.
    Byte ranges refer to `Texts.values`, in which the first row begins at byte `base`. `small` has
    the bytes of all rows in small letters: `small[p - base]` for byte p of `Texts.values`.
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
            # The hashes in `tokens` are of whole tokens, lower-cased in ASCII and Latin-1 only.
            # Words cut from a token, and words with a non-ASCII byte, get new hashes.
            cut = stops - starts < (tokens.stops - tokens.starts).take(token)
            high = np.maximum.reduceat(texts.window, starts - base) >= 0x80
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
        """Return the shape (see `case.shape_of`) of each word whose index is in `chosen`."""
        starts, stops = self.starts.take(chosen) - self.base, self.stops.take(chosen) - self.base
        sizes = case.characters_in(self.small, starts, stops)
        shapes = self.cases.take(chosen) * (len(case.LENGTHS) + 1)
        shapes += np.searchsorted(case.LENGTHS, sizes, side="right")
        first = self.small.take(starts)
        return np.where((first >= 48) & (first <= 57), case.SHAPES - 1, shapes)


def _single_characters(texts: Texts, starts: I64, stops: I64) -> tuple[I64, I64, I64]:
    """Cut words of scripts without spaces into single characters.

    Words are byte ranges. Returns for each new word the index of the word from which it was cut,
    its start, and its stop.
    """
    leads = np.flatnonzero(texts.window >= 0xE0)
    points = code_points(texts.window, leads)
    single = np.zeros(len(leads), np.bool_)
    for low, high in SINGLE:
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
    # If a cut leaves an apostrophe at the start or end of a word, remove it from the word.
    # A curly apostrophe has three bytes; the first byte is E2.
    values = texts.values
    firsts = firsts + (values[firsts] == 0x27) + 3 * (values[firsts] == 0xE2)
    lasts = lasts - (values[lasts - 1] == 0x27) - 3 * (values[lasts - 3] == 0xE2)
    solid = np.flatnonzero(firsts < lasts)
    return word.take(solid), firsts.take(solid), lasts.take(solid)


class Units(NamedTuple):
    """The units of rows: their gaps (texts between words) and words: gap, word, ..., word, gap.

    Each unit has a byte range and a row. `numbers` has the index of a word among the words of its
    row, and of a gap among the gaps of its row. `words` has the index of a word among the words of
    all rows, -1 for a gap.
    """

    starts: I64
    stops: I64
    rows: I64
    numbers: I64
    words: I64

    @classmethod
    def of(cls, texts: Texts, words: Words) -> "Units":
        """Return the words of all rows, with a gap before each word and one after the last."""
        sizes = 2 * np.bincount(words.rows, minlength=len(texts)) + 1
        rows, lasts = np.repeat(np.arange(len(texts)), sizes), np.cumsum(sizes) - 1
        starts, stops, numbers = np.empty_like(rows), np.empty_like(rows), np.full(len(rows), -1)
        starts[lasts - sizes + 1], stops[lasts] = texts.offsets[:-1], texts.offsets[1:]
        at = units_of(words, np.arange(len(words.rows)))
        starts[at], stops[at], numbers[at] = words.starts, words.stops, np.arange(len(words.rows))
        starts[at + 1], stops[at - 1] = words.stops, words.starts
        return cls(starts, stops, rows, ordinals(rows) >> 1, numbers)


def units_of(words: Words, chosen: I64) -> I64:
    """Return the unit indices (see `Units`) of the words that have the indices `chosen`."""
    return 2 * chosen + words.rows.take(chosen) + 1


def _text_table(texts: list[str]) -> HashTable:
    """Return a table from the hash of each text to its position in the list, counted from 1.

    Texts that are too long for a hash are left out.
    """
    rows = Texts.from_strings(texts)
    hashes = word_hashes(rows.values, rows.offsets[:-1], rows.offsets[1:])
    hashed = np.flatnonzero(hashes)
    return HashTable.of(hashes[hashed], hashed + 1)


class ChannelTables:
    """Arrays of a channel's option groups, and tables from words, gaps and letters to groups.

    A word or gap of group g changes with chance `chances[g]`. Group -1 means no group, and its
    chance is 0. The options of all groups are in one sequence. Option o has its `Option.kind` in
    `kinds[o]`, its `Option.detail` in `details[o]`, and its text in small letters, Title and UPPER
    in `pool[CASINGS * o]` and the next two. The last text in `pool` is empty.
    """

    def __init__(self, channel: Channel) -> None:
        self._take_options(channel)
        words = sorted({word for word, _ in channel.words})
        self._take_words(channel, words)
        self._take_gaps(channel, words)
        self._take_letters(channel)

    def _take_options(self, channel: Channel) -> None:
        """Copy all groups and their options into arrays."""
        options = [option for group in channel.groups for option in group.options]
        self.chances = np.array([*(group.chance for group in channel.groups), 0], np.int64)
        bounds = [
            (number << (CHANCE_BITS + 1)) + bound
            for number, group in enumerate(channel.groups)
            for bound in group.bounds
        ]
        self._choices = WeightedChoices(np.array(bounds, np.int64), CHANCE_BITS)
        self.kinds = np.array([option.kind for option in options], np.int64)
        self.details = np.array([option.detail for option in options], np.int64)
        forms = [
            case.cased(option.noisy, casing) for option in options for casing in range(CASINGS)
        ]
        self.pool = Texts.from_strings([*forms, ""]).to_arrow()
        self.forms, self.lacks = [option.noisy for option in options], channel.lacks

    def _take_words(self, channel: Channel, words: list[str]) -> None:
        """Copy the group numbers of known words and of the shapes of unknown words into arrays."""
        self._words = _text_table(words)
        cases = range(len(case.CASES))
        of_words = [channel.words[word, number] for word in words for number in cases]
        self._word_groups, self._shapes = np.array(of_words, np.int64), np.array(channel.shapes)
        heads = {word.partition(" ")[0] for word in words if " " in word}
        self._heads = _text_table(sorted(heads))

    def _take_gaps(self, channel: Channel, words: list[str]) -> None:
        """Make the table from keys of gaps to their groups.

        The key of a gap is computed from the index of its text, whether it begins its row, and
        the index of the next word: a known word, any other word, or the end of the row.
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
        """Make the table from (letter before, word part, letter after) to group and weight."""
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
        """Return for each group the index of the option that the high half of its draw chooses."""
        return self._choices.pick(groups, (draws >> np.uint64(64 - CHANCE_BITS)).astype(np.int64))

    def known(self, hashes: U64) -> I64:
        """Return the index of each word (given by its hash) in the channel's words, else -1."""
        return self._words.find(hashes).astype(np.int64) - 1

    def groups(self, texts: Texts, words: Words, units: Units) -> I64:
        """Return the option group of every unit (word or gap), -1 for a gap without a group."""
        numbers = self.known(words.hashes)
        groups = np.empty(len(units.rows), np.int64)
        is_word = units.words >= 0
        groups[is_word] = self._groups_of_words(words, numbers)
        groups[~is_word] = self._groups_between(texts, words, units, numbers)
        return groups

    def _groups_of_words(self, words: Words, numbers: I64) -> I64:
        """Return the option group of every word; `numbers` is the result of `known`."""
        known, unknown = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
        groups = np.empty(len(words.rows), np.int64)
        keys = numbers.take(known) * len(case.CASES) + words.cases.take(known)
        groups[known] = self._word_groups.take(keys)
        groups[unknown] = self.shape_groups(words, unknown)
        return groups

    def _groups_between(self, texts: Texts, words: Words, units: Units, numbers: I64) -> I64:
        """Return the option group of every gap, -1 for a gap that never changes.

        `numbers` is the result of `known` for all words.
        """
        at = np.flatnonzero(units.words < 0)
        starts, stops = units.starts.take(at), units.stops.take(at)
        is_initial = units.numbers.take(at) == 0
        rights = np.full(len(at), self._end)
        rights[np.arange(len(words.rows)) + words.rows] = np.where(numbers < 0, self._any, numbers)
        padded = np.append(texts.values, np.uint8(0))

        groups = self._of_space.take(rights)  # most gaps are a single space
        is_space = (stops - starts == 1) & (padded.take(starts) == 0x20) & ~is_initial
        other = np.flatnonzero(~is_space)
        hashes = word_hashes(texts.values, starts.take(other), stops.take(other))
        gaps = self._gaps.find(hashes).astype(np.int64) - 1
        gaps[starts.take(other) == stops.take(other)] = self._no_gap
        keys = (gaps * 2 + is_initial.take(other)) * self._rights + rights.take(other)
        groups[other] = np.where(gaps < 0, -1, self._groups_of_gaps(keys))

        # A gap between two digits never changes, whether they belong to one number or to two.
        is_digit = [(side >= 48) & (side <= 57) for side in (padded[starts - 1], padded[stops])]
        is_between = ~is_initial & (rights != self._end)
        groups[is_between & is_digit[0] & is_digit[1]] = -1
        return groups

    def phrases(self, words: Words) -> Iterator[tuple[I64, I64, I64]]:
        """Find the known phrases: first yield the phrases of two words, then of three, and so on.

        Phrases are yielded as three arrays: the indices of their first words, the indices of their
        last words, and their groups.
        """
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
        """Return the group of each gap, given by its key (see `_take_gaps`); -1 for no group.

        A gap whose following word has no group of its own gets the group for all following words.
        """
        groups = self._gap_groups.find(_key_hashes(keys)).astype(np.int64) - 1
        missing = np.flatnonzero(groups < 0)
        asked = keys.take(missing)
        coarse = asked - asked % self._rights + self._any
        groups[missing] = self._gap_groups.find(_key_hashes(coarse)).astype(np.int64) - 1
        return groups

    def shape_groups(self, words: Words, chosen: I64) -> I64:
        """Return the group of the shape of each word whose index is in `chosen`."""
        return self._shapes.take(words.shapes(chosen))

    def parts(self, small: U8, starts: I64, stops: I64) -> tuple[I64, I64, I64, I64]:
        """Return the weights and option groups of all parts (up to three letters) of words.

        The words are byte ranges of `small`. Their letters form one sequence, in which each word
        stands between a START and an END. Returns four arrays:

        - begins: the byte offset of each letter of the sequence;
        - firsts: the index in the sequence of the START of each word;
        - weights: the chance that each part changes, in units of 2^-`WEIGHT_BITS`;
        - groups: the option group of each part, -1 for a part that never changes.

        Part `SIZES` * i + n consists of n letters of the sequence, the first at index i.
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
        """Return index of the first letter, group and weight of word parts of `size` letters.

        `framed` has the code points of all words, each word between START and END; the parts begin
        at the indices `at` of `framed`. The weight is the chance that a part changes. A part of
        two or more letters is left out if the channel never changes it.
        """
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
    return splitmix_array(keys.astype(np.uint64) + np.uint64(1))


def _part_hashes(letters: I64) -> U64:
    """Return the hash of each word part; a column of `letters` has the code points of one part."""
    hashes = np.zeros(letters.shape[1], np.uint64)
    for row in letters.astype(np.uint64):
        hashes = splitmix_array(hashes + row)
    return hashes


def _context_hashes(before: I64, letters: U64, after: I64, size: int) -> U64:
    near = before.astype(np.uint64) << np.uint64(24) | after.astype(np.uint64)
    return splitmix_array(splitmix_array(near ^ np.uint64(size << 60)) + letters)
