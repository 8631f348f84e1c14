"""Kernels that replace characters by a map, add or drop spaces, or replace words by a rule.

In each kernel, `edit_row` defines the edits of one row; `propose` returns the same edits for many
rows at once. A rate is the chance per character or word. Kernels that change characters draw which
bytes of a row are hit. A character is hit if its first byte is hit, so its chance does not depend
on its number of bytes.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import itemgetter

import numpy as np
import pyarrow as pa

from noisegen.noising import rng
from noisegen.noising.edits import Edits
from noisegen.noising.lexicon import Entry
from noisegen.noising.rng import (
    Draws,
    GapTables,
    Hits,
    RowDraws,
    Strengths,
    WeightedChoices,
    WeightedTexts,
    fork_array,
)
from noisegen.text import buffers
from noisegen.text.buffers import I64, U8, U64, Texts, code_points, utf8_lengths
from noisegen.text.case import are_names
from noisegen.text.rows import Memo, Row, RowEdit

_SPACES = Texts.from_strings(["", " "]).to_arrow()
_BLANKS, _WHITE = (0x20, 0x09), (0x20, 0x09, 0x0A, 0x0D)
_JOINERS, _JOINER_BYTES = ("\u200c", "\u200d"), 3
_DIGITS, _OF_NUMBERS = [*b"0123456789"], [*b"0123456789.,:"]
_WITHIN_NUMBER = re.compile("[0-9][0-9.,:]|[.,:][0-9]")


def character_map(entries: Iterable[Entry]) -> WeightedTexts:
    """Make a table: code point -> weighted replacements. Each entry replaces one character."""
    groups = defaultdict[int, list[tuple[str, int]]](list)
    for entry in entries:
        groups[ord(entry.clean)].append((entry.noisy, entry.weight))
    points = sorted(groups)
    return WeightedTexts.of(np.array(points, np.int64), [groups[point] for point in points])


@dataclass(frozen=True)
class Substitution:
    """Kernel that replaces each character that is in a map with a given chance.

    `characters` maps code points to weighted replacements. `gaps` draws the hits, with one table
    per strength. If `bare` is True, characters that carry a combining mark stay unchanged.
    """

    characters: WeightedTexts
    gaps: GapTables
    bare: bool = False

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the replacements of the characters of one row that are hit and in the map."""
        edits, groups, text = [], self.characters.group_of, row.text
        table = self.gaps.tables[draws.strengths["rate"]]
        for at, drawn in _row_hits(text, Draws(draws.key), table):
            group = groups.get(ord(text[at]))
            if group is None or (self.bare and _has_mark(text, at)):
                continue
            edits.append((at, at + 1, self.characters.written(group, drawn)))
        return edits

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Propose the replacements of all rows."""
        return self._edits(texts, self.gaps.hits(keys, texts.lengths, strengths["rate"]))

    def windows(self, texts: Texts, keys: U64, strengths: Strengths) -> Iterator[Edits]:
        """Yield the replacements in one huge row, window by window."""
        for hits in self.gaps.windows(keys, int(texts.lengths[0]), strengths["rate"]):
            yield self._edits(texts, hits)

    def _edits(self, texts: Texts, hits: Hits) -> Edits:
        """Return the replacements of the hit characters that are in the map."""
        starts = texts.offsets[hits.rows] + hits.positions
        points = code_points(texts.values, starts)
        groups, known = self.characters.find(points)
        if self.bare:
            stops = starts + utf8_lengths(points)
            inner = np.flatnonzero(stops < texts.offsets[hits.rows + 1])
            known[inner] &= ~buffers.joins_previous(code_points(texts.values, stops[inner]))
        chosen = self.characters.pick(groups[known], hits.choices[known])
        starts, stops = starts[known], starts[known] + utf8_lengths(points[known])
        return Edits(hits.rows[known], starts, stops, chosen, self.characters.pool)


@dataclass(frozen=True)
class CountedSubstitution:
    """Kernel that draws a fixed number of characters per row, and replaces them.

    The number of draws is the rate times the number of characters in the row, rounded down. `rates`
    has the rate at every strength. Each draw picks one of the row's candidates: characters that are
    in the map and carry no combining mark. If several draws pick the same candidate, the first draw
    chooses its replacement.
    """

    characters: WeightedTexts
    rates: tuple[Fraction, ...]

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Draw characters of one row, and return their replacements."""
        text, groups = row.text, self.characters.group_of
        edits: dict[int, RowEdit] = {}
        candidates = [
            at
            for at, letter in enumerate(text)
            if ord(letter) in groups and not _has_mark(text, at)
        ]
        rate = self.rates[draws.strengths["rate"]]
        count = len(text) * rate.numerator // rate.denominator
        for number in range(count if candidates else 0):
            drawn = rng.draw(draws.key, number)
            at = candidates[(drawn >> 32) * len(candidates) >> 32]
            if at not in edits:
                written = self.characters.written(groups[ord(text[at])], drawn & rng.CHOICE_MASK)
                edits[at] = at, at + 1, written
        return sorted(edits.values(), key=itemgetter(0))

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Propose the replacements of all rows."""
        points = code_points(texts.values, np.arange(texts.offsets[0], texts.offsets[-1]))
        starts = np.flatnonzero(points >= 0)
        points, starts = points.take(starts), starts + texts.offsets[0]
        rows = texts.rows_of(starts)
        groups, known = self.characters.find(points)
        same_row = np.diff(rows, append=-1) == 0
        marked = same_row & buffers.joins_previous(np.roll(points, -1))
        fit = np.flatnonzero(known & ~marked)
        lengths = np.bincount(rows, minlength=len(texts))
        candidates = np.bincount(rows.take(fit), minlength=len(texts))
        counts = self._counts(lengths, candidates, strengths["rate"])
        of_rows = np.repeat(np.arange(len(texts)), counts)
        draws = rng.draw_array(keys.take(of_rows), buffers.ordinals(of_rows))
        firsts = (np.cumsum(candidates) - candidates).take(of_rows)
        picked = firsts + ((rng.decisions(draws) >> 16) * candidates.take(of_rows) >> 32)
        drawn, first = np.unique(picked, return_index=True)
        at = fit.take(drawn)
        chosen = self.characters.pick(groups.take(at), rng.choices(draws.take(first)))
        stops = starts.take(at) + utf8_lengths(points.take(at))
        return Edits(rows.take(at), starts.take(at), stops, chosen, self.characters.pool)

    def _counts(self, lengths: I64, candidates: I64, strengths: I64) -> I64:
        """Return the number of draws of every row, 0 for a row without candidates.

        `lengths` has the number of characters of each row, `candidates` the number of replaceable
        characters, and `strengths` the index of the row's rate.
        """
        counts = np.zeros(len(lengths), np.int64)
        for row in np.flatnonzero(candidates).tolist():
            rate = self.rates[strengths[row]]
            counts[row] = int(lengths[row]) * rate.numerator // rate.denominator
        return counts


def _has_mark(text: str, at: int) -> bool:
    """Tell whether a combining mark or joiner follows the character at `at`."""
    return at + 1 < len(text) and buffers.joins(ord(text[at + 1]))


def _row_hits(text: str, draws: Draws, table: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the index of each character whose first byte is hit, with 16 random bits.

    `table` is the `rng.gap_table` of the rate of hits.
    """
    if text.isascii():
        yield from draws.hits(len(text), table)
        return
    ends = accumulate(len(character.encode()) for character in text)
    at_byte = {byte: at for at, byte in enumerate([0, *ends])}
    size = next(reversed(at_byte))
    yield from (
        (at_byte[byte], drawn) for byte, drawn in draws.hits(size, table) if byte in at_byte
    )


def _may_add_space(text: str, at: int) -> bool:
    """Tell whether a space may be added after the character at `at`.

    No space is added beside white space, inside a character of several code points, inside a
    number, or at the end of the text.
    """
    if at + 1 == len(text) or buffers.is_begun(ord(text[at])) or _has_mark(text, at):
        return False
    if ord(text[at]) in _WHITE or ord(text[at + 1]) in _WHITE:
        return False
    return not _WITHIN_NUMBER.fullmatch(text, at, at + 2)


@dataclass(frozen=True)
class Spacing:
    """Kernel that drops spaces and tabs at one rate, and adds spaces at another rate.

    `drop` and `add` draw the positions where spaces are dropped and added, with one table per
    strength. Spaces are added only where `_may_add_space` allows it. A space that carries a
    combining mark is not dropped.
    """

    drop: GapTables
    add: GapTables

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits that drop and add spaces in one row.

        Drops and added spaces are drawn from two separate streams.
        """
        text, stream, strengths = row.text, Draws(draws.key), draws.strengths
        edits: list[RowEdit] = []
        to_drop = self.drop.tables[strengths["drop_rate"]]
        for at, _ in _row_hits(text, stream.fork("drop"), to_drop):
            if ord(text[at]) in _BLANKS and not _has_mark(text, at):
                edits.append((at, at + 1, ""))
        to_add = self.add.tables[strengths["add_rate"]]
        for at, _ in _row_hits(text, stream.fork("add"), to_add):
            if _may_add_space(text, at):
                edits.append((at + 1, at + 1, " "))
        return sorted(edits, key=itemgetter(0))

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Propose the edits that drop and add spaces in all rows."""
        drop, add = fork_array(keys, "drop"), fork_array(keys, "add")
        dropped = self.drop.hits(drop, texts.lengths, strengths["drop_rate"])
        return self._edits(texts, dropped, self.add.hits(add, texts.lengths, strengths["add_rate"]))

    def windows(self, texts: Texts, keys: U64, strengths: Strengths) -> Iterator[Edits]:
        """Yield the edits that drop and add spaces in one huge row, window by window."""
        drop, add, length = fork_array(keys, "drop"), fork_array(keys, "add"), int(texts.lengths[0])
        dropped = self.drop.windows(drop, length, strengths["drop_rate"])
        for pair in zip(dropped, self.add.windows(add, length, strengths["add_rate"]), strict=True):
            yield self._edits(texts, *pair)

    def _edits(self, texts: Texts, to_drop: Hits, hits: Hits) -> Edits:
        dropped = texts.offsets[to_drop.rows] + to_drop.positions
        blank = np.isin(texts.values[dropped], _BLANKS)
        drop_rows, dropped = to_drop.rows[blank], dropped[blank]
        marked = buffers.joins_previous(code_points(texts.values, dropped + 1))
        marked &= dropped + 1 < texts.offsets[drop_rows + 1]
        drop_rows, dropped = drop_rows[~marked], dropped[~marked]
        # Rules of `_may_add_space`: first for the character before a space, then for the one after.
        at = texts.offsets[hits.rows] + hits.positions
        points = code_points(texts.values, at)
        ends = at + utf8_lengths(points)
        fit = (points >= 0) & ~np.isin(points, _WHITE) & ~buffers.joins_next(points)
        fit &= ends < texts.offsets[hits.rows + 1]
        add_rows, added, points = hits.rows[fit], ends[fit], points[fit]
        following = code_points(texts.values, added)
        fit = ~np.isin(following, _WHITE) & ~buffers.joins_previous(following)
        both = np.stack([points, following])
        fit &= ~(np.isin(both, _OF_NUMBERS).all(axis=0) & np.isin(both, _DIGITS).any(axis=0))
        starts = np.concatenate([dropped, added[fit]])
        order = np.argsort(starts, kind="stable")
        kinds = np.repeat([0, 1], [len(dropped), int(fit.sum())])[order]
        rows, starts = np.concatenate([drop_rows, add_rows[fit]])[order], starts[order]
        return Edits(rows, starts, starts + (1 - kinds), kinds, _SPACES)


# Function from a word to its (replacement, weight) pairs: no pairs if the word never changes.
# A replacement may be the word itself; its weight is then the chance that a hit word stays.
WordRule = Callable[[str], Sequence[tuple[str, int]]]
WORDS_MAX = 1 << 18  # with more words, the cache of `WordKernel.propose` is cleared
FORMS_MAX = 1 << 21  # with more replacements (50 MB), the cache of `WordKernel.propose` is cleared
ROW_WORDS_MAX = 1 << 14  # most words in the cache of `WordKernel.edit_row`
RowForms = tuple[list[int], list[str]]  # forms of a word: cumulative weights, and texts


@dataclass(eq=False)
class WordKernel:
    """Kernel that replaces each word with a given chance by one of its forms.

    `rule` returns the forms (possible replacements) of a word. `limits` has the 48-bit threshold of
    the chance at every strength. Draw i of a row decides whether word i is hit, and its low 16 bits
    choose a form. With `words_alike`, the draw depends on the word instead of i, so that equal
    words get equal forms. With `one_way`, one draw chooses the forms of all hit words of a row.

    The kernel skips words for which the rule has no forms: words of fewer than `bytes_min` bytes
    and, if `needs` is not empty, words with none of these bytes. With `names_stay`, it also skips
    names: words that have a capital but begin no sentence. With `drops_joiners`, a zero-width
    joiner or non-joiner between two replaced words goes with them.

    `propose` has a cache of words: `hashes` (ascending) has the hash of each word, `groups` the
    group of its forms in `choices`, -1 for a word without forms. Form f of the cache has the text
    `pool[f]`; `changed[f]` tells whether it differs from its word.
    """

    rule: WordRule
    limits: I64
    needs: bytes = b""
    words_alike: bool = False
    bytes_min: int = 0
    one_way: bool = False
    names_stay: bool = False
    drops_joiners: bool = False

    def __post_init__(self) -> None:
        needed = b"[%s]" % re.escape(self.needs)
        self._find_needed = re.compile(needed).search if self.needs else None
        self._row_forms = Memo(self._forms_of, ROW_WORDS_MAX)
        self._forget()

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the replacements of the hit words of one row."""
        numbers: Sequence[int] = range(len(row.words))
        if find := self._find_needed:
            if not find(row.text.encode()):
                return []
            numbers = [number for number in numbers if find(row.words[number].encode())]
        return self.replaced(row, draws.key, numbers, int(self.limits[draws.strengths["rate"]]))

    def replaced(self, row: Row, key: int, numbers: Sequence[int], limit: int) -> list[RowEdit]:
        """Draw which words of one row are hit, and return their replacements.

        `numbers` has the indices of the words that may be hit, `key` is the random key of the row,
        and `limit` the 48-bit threshold of its rate.
        """
        hashes = [row.hashes[number] for number in numbers] if self.words_alike else None
        hit = rng.row_hits(key, numbers, limit, hashes)
        if self.one_way:
            way = rng.draw(rng.fork(key, "way"), 0) & rng.CHOICE_MASK
            hit = [(number, way) for number, _ in hit]
        edits: list[RowEdit] = []
        for number, drawn in hit:
            word = row.words[number]
            if (forms := self._row_forms[word]) is not None:
                bounds, texts = forms
                form = texts[bisect_right(bounds, drawn)]
                if form != word and not (self.names_stay and row.is_name(number)):
                    start, stop = row.span(number)
                    if self.drops_joiners and edits and row.text[edits[-1][1] : start] in _JOINERS:
                        edits[-1] = edits[-1][0], start, edits[-1][2]
                    edits.append((start, stop, form))
        return edits

    def _forms_of(self, word: str) -> RowForms | None:
        """Return the forms of a word: their cumulative weights and their texts.

        The result is None if the rule returns no forms, or if the word is too long.
        """
        if len(word.encode()) > buffers.WORD_BYTES_MAX or not (forms := self.rule(word)):
            return None
        bounds = WeightedChoices.of([[weight for _, weight in forms]]).bounds.tolist()
        return bounds, [form for form, _ in forms]

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Propose the replacements of all rows."""
        words = texts.tokens
        limits = self.limits.take(strengths["rate"])
        forms = words.hashes if self.words_alike else None
        eligible = words.stops - words.starts >= self.bytes_min
        if self.needs:
            eligible &= words.holding(texts, self.needs)
        hit, draws = rng.hits(keys, words.rows, limits, eligible, forms)
        if self.one_way:
            draws = rng.draw_array(fork_array(keys, "way"), 0).take(words.rows.take(hit))
        groups = self._groups_of(texts.values, words.starts.take(hit), words.stops.take(hit))
        known = np.flatnonzero(groups >= 0)
        chosen = self.choices.pick(groups[known], rng.choices(draws.take(known)))
        changed = np.flatnonzero(self.changed.take(chosen))
        hit, chosen = hit.take(known.take(changed)), chosen.take(changed)
        if self.names_stay:
            others = np.flatnonzero(~are_names(texts, words, hit))
            hit, chosen = hit.take(others), chosen.take(others)
        starts, stops, rows = words.starts.take(hit), words.stops.take(hit), words.rows.take(hit)
        if self.drops_joiners:
            at = np.flatnonzero(
                (starts[1:] - stops[:-1] == _JOINER_BYTES) & (rows[1:] == rows[:-1])
            )
            joined = at[np.isin(code_points(texts.values, stops[at]), [*map(ord, _JOINERS)])]
            stops[joined] = starts[joined + 1]
        return Edits(rows, starts, stops, chosen, self.pool)

    def _forget(self) -> None:
        """Clear the cache of words that `propose` uses."""
        self.hashes, self.groups = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self.choices, self.changed = WeightedChoices.of([]), np.zeros(0, np.bool_)
        self.pool = Texts.from_strings([]).to_arrow()

    def _groups_of(self, values: U8, starts: I64, stops: I64) -> I64:
        """Return for each word, given as a byte range, the group of its forms in `choices`.

        The group is -1 for a word that has no forms or is too long. New words are added to the
        cache.
        """
        if len(self.hashes) > WORDS_MAX or len(self.choices) > FORMS_MAX:
            self._forget()
        hashes = buffers.word_hashes(values, starts, stops)
        at, known = buffers.find_sorted(self.hashes, hashes)
        new = np.flatnonzero(~known & (hashes != 0))
        if len(new):
            fresh, first = np.unique(hashes.take(new), return_index=True)
            self._learn(values, fresh, starts.take(new[first]), stops.take(new[first]))
            at, known = buffers.find_sorted(self.hashes, hashes)
        groups: I64 = np.where(known, np.append(self.groups, -1)[at], -1)
        return groups

    def _learn(self, values: U8, hashes: U64, starts: I64, stops: I64) -> None:
        """Add the words in these byte ranges and their forms to the cache.

        `hashes` are the hashes of the words, ascending; none of them is in the cache yet.
        """
        content, edges = values.data, zip(starts.tolist(), stops.tolist(), strict=True)
        words = [str(content[start:stop], "utf-8") for start, stop in edges]
        made = [self.rule(word) for word in words]
        pairs = [(word, form) for word, forms in zip(words, made, strict=True) for form, _ in forms]
        changed = [form != word for word, form in pairs]
        pool = Texts.from_strings([form for _, form in pairs]).to_arrow()
        first = int(self.groups.max(initial=-1)) + 1
        fresh = WeightedChoices.of([weight for _, weight in forms] for forms in made if forms)
        bounds = fresh.shifted(first).bounds
        is_changed = np.array([len(forms) > 0 for forms in made], np.bool_)
        groups = np.where(is_changed, first + np.cumsum(is_changed) - 1, -1)
        at = np.searchsorted(self.hashes, hashes)
        self.groups = np.insert(self.groups, at, groups)
        self.hashes = np.insert(self.hashes, at, hashes)
        self.choices = WeightedChoices(np.concatenate([self.choices.bounds, bounds]))
        self.changed = np.concatenate([self.changed, np.array(changed, np.bool_)])
        self.pool = pa.concat_arrays([self.pool, pool])
