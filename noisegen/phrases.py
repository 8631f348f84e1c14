"""The phrase kernel: a lexicon compiled to a hash table, and all its matches in a batch of rows.

A phrase is found word by word: the hash of its first words, the byte between, and the next word
gives the hash of one word more. Matches are whole words, leftmost first, then longest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.draws import CHOICE_BITS, I64, U64
from noisegen.errors import LexiconError
from noisegen.lexicon import POS, Entry, Lexicon
from noisegen.text import U8, Bool, Texts, capitalize, fold, is_upper, upper
from noisegen.words import APOSTROPHES, WORD_BYTES_MAX, Tokens, extend

_SLOTS_PER_ENTRY = 4
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Matches:
    """Matches in `Texts`: row, byte range, key of the table, numbers of first and last word.

    Ascending and disjoint.
    """

    rows: I64
    starts: I64
    stops: I64
    keys: I32
    firsts: I64
    lasts: I64

    def take(self, chosen: I64) -> "Matches":
        """Return the matches of these numbers."""
        return Matches(*(getattr(self, column.name).take(chosen) for column in fields(self)))

    def without(self, dropped: I64) -> "Matches":
        """Return the other matches."""
        if not len(dropped):
            return self
        keep = np.ones(len(self), np.bool_)
        keep[dropped] = False
        return self.take(np.flatnonzero(keep))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PhraseTable:
    """A compiled lexicon, or several side by side: a row of text is searched in one of them.

    `slots` (hash or 0) and `slot_entries` (key * 2 + 1 if the phrase goes on; key 0 is a mere
    prefix) form an open hash table, of `sizes` slots for each lexicon. Key k has the alternatives
    of group `groups[k, pos]` (-1: none); `uppers` holds group * 2^17 + cumulative weight out of
    2^16, ascending; alternative a is `pool[3 * a + case]`.
    """

    slots: U64
    slot_entries: I32
    sizes: I64
    cases_asked: U8
    groups: I32
    uppers: I64
    pool_values: U8
    pool_offsets: I32
    head: dict[str, str]
    words_max: int

    @cached_property
    def pool(self) -> pa.Array:
        """All replacements, three a case."""
        return Texts(self.pool_values, self.pool_offsets.astype(np.int64)).to_arrow()

    def moved(self, keys: int, groups: int) -> "PhraseTable":
        """Return the table with its keys and groups numbered from these."""
        entries = np.where(self.slot_entries > 1, self.slot_entries + 2 * keys, self.slot_entries)
        ranked = np.where(self.groups >= 0, self.groups + groups, -1)
        return replace(
            self, slot_entries=entries, groups=ranked, uppers=self.uppers + (groups << 17)
        )

    @cached_property
    def _bases(self) -> I64:
        """The first slot of each lexicon."""
        return np.cumsum(self.sizes) - self.sizes

    def find(self, texts: Texts, lexicons: I64 | None = None) -> Matches:
        """Find all matches, leftmost-longest; every row in its lexicon (default: the first)."""
        words = texts.tokens
        where = np.zeros(len(words), np.int64) if lexicons is None else lexicons.take(words.rows)
        entries = self.look_up(words.hashes, where)
        first = np.flatnonzero(entries != 0)
        entries = entries.take(first)
        keys, last = entries >> 1, first.copy()
        self._grow(words, where, first, keys, last, np.flatnonzero(entries & 1))
        found = np.flatnonzero(keys != 0)
        first, last, keys = first.take(found), last.take(found), keys.take(found)
        places = words.rows.take(first), words.starts.take(first), words.stops.take(last)
        return _leftmost(self._cases_met(texts.values, Matches(*places, keys, first, last)))

    def _grow(
        self, words: Tokens, where: I64, first: I64, keys: I32, last: I64, going: I64
    ) -> None:
        """Put the longest phrase of the matches `going` in `keys` and `last`, word by word."""
        state = words.hashes.take(first.take(going))
        for more in range(1, self.words_max):
            end = first.take(going) + more
            gaps = words.gaps.take(end - 1)
            on = np.flatnonzero(gaps != 0)
            if not len(on):
                return
            going, end = going.take(on), end.take(on)
            state = extend(state.take(on), gaps.take(on), words.hashes.take(end))
            entries = self.look_up(state, where.take(end))
            whole = np.flatnonzero(entries > 1)
            keys[going.take(whole)] = entries.take(whole) >> 1
            last[going.take(whole)] = end.take(whole)
            on = np.flatnonzero(entries & 1)
            going, state = going.take(on), state.take(on)

    def _cases_met(self, values: U8, matches: Matches) -> Matches:
        """Drop matches whose key asks for a capital that the text lacks."""
        asked = self.cases_asked.take(matches.keys)
        asking = np.flatnonzero(asked)
        starts, stops = matches.starts.take(asking), matches.stops.take(asking)
        lacking = case_classes(values, starts, stops) < asked.take(asking)
        return matches.without(asking[lacking])

    def look_up(self, hashes: U64, lexicons: I64) -> I32:
        """Return the entry of every hash in its lexicon, 0 where there is none."""
        entries = np.zeros(len(hashes), np.int32)
        masks, bases = (self.sizes - 1).take(lexicons), self._bases.take(lexicons)
        places, left = hashes.view(np.int64) & masks, np.arange(len(hashes))
        while len(left):
            slots = bases + places
            stored = self.slots.take(slots)
            equal = stored == hashes
            hit = np.flatnonzero(equal)
            entries[left.take(hit)] = self.slot_entries.take(slots.take(hit))
            on = np.flatnonzero((stored != 0) > equal)
            left, hashes = left.take(on), hashes.take(on)
            masks, bases = masks.take(on), bases.take(on)
            places = (places.take(on) + _steps(hashes)) & masks
        return entries

    def alternatives(self, values: U8, matches: Matches, pos: I64, chosen: I64) -> I64:
        """Return the index in `pool` of matches in `values`, given tags and choices."""
        groups = self.groups[matches.keys, pos].astype(np.int64)
        drawn = np.searchsorted(self.uppers, (groups << 17) + chosen, side="right")
        cases: I64 = case_classes(values, matches.starts, matches.stops)
        return drawn * 3 + cases


ARRAYS = [one.name for one in fields(PhraseTable) if one.name not in ("head", "words_max")]


def case_classes(values: U8, starts: I64, stops: I64) -> I64:
    """Return 1 where the first letter is a capital, 2 where the match looks all upper-case.

    UPPER needs two bytes or more of which neither the second character's first nor the last is a
    lower-case ASCII letter.
    """
    padded = np.concatenate([values, np.zeros(2, np.uint8)]) if len(values) < 3 else values
    first = values[starts]
    follow = padded[np.minimum(starts + 1, len(padded) - 1)]
    accented = (first == 0xC3) & (follow >= 0x80) & (follow <= 0x9E) & (follow != 0x97)
    title: Bool = ((first >= 65) & (first <= 90)) | accented
    second = padded[np.minimum(starts + 1 + accented, len(padded) - 1)]
    end = values[stops - 1]
    shouted = title & (stops - starts > 1 + accented) & ~_is_lower(second) & ~_is_lower(end)
    classes: I64 = title.astype(np.int64) + shouted
    return classes


def _is_lower(bytes_: U8) -> Bool:
    return (bytes_ >= 97) & (bytes_ <= 122)


def _leftmost(matches: Matches) -> Matches:
    """Drop matches that overlap an earlier kept one; only runs that overlap are walked."""
    apart = np.ones(len(matches) + 1, np.bool_)
    apart[1:-1] = matches.starts[1:] >= np.maximum.accumulate(matches.stops)[:-1]
    walked = np.flatnonzero(~(apart[1:] & apart[:-1]))
    dropped, reach = [], 0
    starts, stops = matches.starts.take(walked).tolist(), matches.stops.take(walked).tolist()
    for at, start, stop in zip(walked.tolist(), starts, stops, strict=True):
        if start < reach:
            dropped.append(at)
        else:
            reach = stop
    return matches.without(np.array(dropped, np.int64))


def build(lexicon: Lexicon) -> PhraseTable:
    """Compile a lexicon."""
    groups: dict[tuple[int, int], list[Entry]] = {}
    keys: dict[str, int] = {}
    cleans: list[str] = [""]  # key 0 is a mere prefix
    for entry in lexicon.entries:
        key = keys.setdefault(fold(entry.clean), len(cleans))
        if key == len(cleans):
            cleans.append(entry.clean)
        if cleans[key] != entry.clean:
            both = f"{cleans[key]!r} and {entry.clean!r}"
            raise LexiconError(f"lexicon {lexicon.head['name']}: {both} differ only in case")
        groups.setdefault((key, POS.index(entry.pos)), []).append(entry)
    table = np.full((len(cleans), len(POS)), -1, np.int32)
    for number, place in enumerate(groups):
        table[place] = number
    slots, entries, words_max = _hash_table(cleans[1:], lexicon.head["name"])
    pool = Texts.from_strings(
        [form for group in groups.values() for e in group for form in _forms(e)]
    )
    return PhraseTable(
        slots, entries, np.array([len(slots)]), np.array(list(map(_case_asked, cleans)), np.uint8),
        table, _uppers(list(groups.values())), pool.window, pool.offsets.astype(np.int32),
        lexicon.head, words_max,
    )  # fmt: skip


def _forms(entry: Entry) -> tuple[str, str, str]:
    """Return a replacement as written, Title and UPPER.

    Initials are never Title ('Oh my god' becomes 'omg'), an acronym's expansion never UPPER.
    """
    initials = "".join(word[0] for word in entry.clean.split(" "))
    plain = len(initials) > 1 and entry.noisy == initials
    acronym = entry.clean == upper(entry.clean)
    return (
        entry.noisy,
        entry.noisy if plain else capitalize(entry.noisy),
        entry.noisy if acronym else upper(entry.noisy),
    )


def _case_asked(clean: str) -> int:
    """Return the case class that a key asks for: 2 an acronym, 1 another with a capital."""
    if not any(map(is_upper, clean)):
        return 0
    return 2 if len(clean) > 1 and clean == upper(clean) else 1


def side_by_side(tables: Sequence[PhraseTable]) -> PhraseTable:
    """Return the table of several lexicons, numbered in this order."""
    keys = accumulate([len(table.groups) for table in tables], initial=0)
    groups = accumulate([int(table.groups.max(initial=-1)) + 1 for table in tables], initial=0)
    moved = [table.moved(*bases) for table, *bases in zip(tables, keys, groups, strict=False)]
    lengths = np.concatenate([[0], *(np.diff(table.pool_offsets) for table in moved)])
    joined = {name: np.concatenate([getattr(table, name) for table in moved]) for name in ARRAYS}
    joined["pool_offsets"] = np.cumsum(lengths).astype(np.int32)
    return PhraseTable(**joined, head={}, words_max=max(table.words_max for table in tables))


def _uppers(groups: list[list[Entry]]) -> I64:
    uppers: list[int] = []
    for number, group in enumerate(groups):
        sums = np.cumsum([entry.weight for entry in group])
        shares = [(int(part) << CHOICE_BITS) // int(sums[-1]) for part in sums]
        uppers += [(number << 17) + share for share in shares]
    return np.array(uppers, np.int64)


def _spellings(clean: str) -> set[str]:
    """Return a phrase with straight and with curly apostrophes."""
    return {clean.replace(APOSTROPHES[0], mark) for mark in APOSTROPHES}


def _hash_table(cleans: list[str], name: str) -> tuple[U64, I32, int]:
    spelled = [(form, key) for key, clean in enumerate(cleans, 1) for form in _spellings(clean)]
    texts = Texts.from_strings([form for form, _ in spelled])
    words = texts.tokens
    hashes, gaps = words.hashes, words.gaps
    firsts = np.searchsorted(words.rows, np.arange(len(spelled) + 1))
    entries: dict[int, int] = {}
    for row, (form, key) in enumerate(spelled):
        span = range(firsts[row], firsts[row + 1])
        if 0 in hashes[span.start : span.stop]:
            raise LexiconError(f"lexicon {name}: a word of {form!r} is over {WORD_BYTES_MAX} bytes")
        state = hashes[span.start : span.start + 1]
        for word in span[1:]:
            entries[int(state[0])] = entries.get(int(state[0]), 0) | 1
            state = extend(state, gaps[word - 1 : word], hashes[word : word + 1])
        entries[int(state[0])] = entries.get(int(state[0]), 0) | key * 2
    words_max = int(np.diff(firsts).max()) if spelled else 0
    return *_fill(entries), words_max


def _fill(entries: dict[int, int]) -> tuple[U64, I32]:
    """Place the entries in an open hash table, double hashing, a quarter full at most."""
    size = 1 << (len(entries) * _SLOTS_PER_ENTRY).bit_length()
    hashes = np.fromiter(entries, np.uint64, len(entries))
    values = np.fromiter(entries.values(), np.int32, len(entries))
    slots, stored = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    at = hashes.view(np.int64) & (size - 1)
    while len(hashes):
        free = np.flatnonzero(slots[at] == 0)
        places, winners = np.unique(at[free], return_index=True)
        slots[places], stored[places] = hashes[free[winners]], values[free[winners]]
        left = np.flatnonzero(slots[at] != hashes)
        hashes, values = hashes[left], values[left]
        at = (at[left] + _steps(hashes)) & (size - 1)
    return slots, stored


def _steps(hashes: U64) -> I64:
    """Return how far on the next slot of every hash is."""
    return (hashes >> np.uint64(32) | np.uint64(1)).view(np.int64)
