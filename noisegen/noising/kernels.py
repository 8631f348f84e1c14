"""Kernels of characters (replaced by a map, spaces added or dropped) and of words (by a rule).

Chances are per character or word. Hits of characters are drawn over byte positions, and those that
are not the first byte of a candidate are thinned out, which leaves its rate as asked.
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
    Variants,
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
_DIGITS, _OF_NUMBERS = [*b"0123456789"], [*b"0123456789.,:"]
_WITHIN_NUMBER = re.compile("[0-9][0-9.,:]|[.,:][0-9]")
_NOT_BEFORE_SPACE = (*_WHITE, 0x200D, *buffers.BEFORE)  # the zero-width joiner


def character_map(entries: Iterable[Entry]) -> WeightedTexts:
    """Compile weighted replacements of single characters; the keys are their code points."""
    groups = defaultdict[int, list[tuple[str, int]]](list)
    for entry in entries:
        groups[ord(entry.clean)].append((entry.noisy, entry.weight))
    points = sorted(groups)
    return WeightedTexts.of(np.array(points, np.int64), [groups[point] for point in points])


@dataclass(frozen=True)
class Substitution:
    """Replace characters of a map, each with chance `rate`; if `bare`, only those without marks."""

    characters: WeightedTexts
    gaps: GapTables
    bare: bool = False

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        return self._edits(texts, self.gaps.hits(keys, texts.lengths, variants["rate"]))

    def windows(self, texts: Texts, keys: U64, variants: Variants) -> Iterator[Edits]:
        """Yield the replacements of one row in parts."""
        for hits in self.gaps.windows(keys, int(texts.lengths[0]), variants["rate"]):
            yield self._edits(texts, hits)

    def _edits(self, texts: Texts, hits: Hits) -> Edits:
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

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of one row."""
        edits, groups, text = [], self.characters.group_of, row.text
        for at, drawn in _row_hits(
            text, Draws(draws.key), self.gaps.tables[draws.variants["rate"]]
        ):
            if self.bare and buffers.joins(ord(text[at + 1 : at + 2] or " ")):
                continue
            if (group := groups.get(ord(text[at]))) is not None:
                edits.append((at, at + 1, self.characters.written(group, drawn)))
        return edits


@dataclass(frozen=True)
class CountedSubstitution:
    """Replace characters of a map without marks: rate x length of a row, rounded down, are drawn.

    A character may be drawn twice: draw i of a row says which of its candidates is the i-th, and
    the first draw of one says what is written. `rates` has the rate of every strength.
    """

    characters: WeightedTexts
    rates: tuple[Fraction, ...]

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        points = code_points(texts.values, np.arange(texts.offsets[0], texts.offsets[-1]))
        starts = np.flatnonzero(points >= 0)
        points, starts = points.take(starts), starts + texts.offsets[0]
        rows, groups_known = texts.rows_of(starts), self.characters.find(points)
        same_row = np.diff(rows, append=-1) == 0
        marked = same_row & buffers.joins_previous(np.roll(points, -1))
        fit = np.flatnonzero(groups_known[1] & ~marked)
        lengths, candidates = (
            np.bincount(of, minlength=len(texts)).tolist() for of in (rows, rows.take(fit))
        )
        rates = [self.rates[variant] for variant in variants["rate"].tolist()]
        counts = np.array(
            [
                size * rate.numerator // rate.denominator * (among > 0)
                for size, rate, among in zip(lengths, rates, candidates, strict=True)
            ],
            np.int64,
        )
        of_rows, among = np.repeat(np.arange(len(texts)), counts), np.array(candidates, np.int64)
        draws = rng.draw_array(keys.take(of_rows), buffers.ordinals(of_rows))
        firsts = (np.cumsum(among) - among).take(of_rows)
        picked = firsts + ((rng.decisions(draws) >> 16) * among.take(of_rows) >> 32)
        drawn, first = np.unique(picked, return_index=True)
        at = fit.take(drawn)
        chosen = self.characters.pick(groups_known[0].take(at), rng.choices(draws.take(first)))
        stops = starts.take(at) + utf8_lengths(points.take(at))
        return Edits(rows.take(at), starts.take(at), stops, chosen, self.characters.pool)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of one row."""
        text, groups, edits = row.text, self.characters.group_of, dict[int, RowEdit]()
        fit = [
            at for at, letter in enumerate(text)
            if ord(letter) in groups and not buffers.joins(ord(text[at + 1 : at + 2] or " "))
        ]  # fmt: skip
        rate = self.rates[draws.variants["rate"]]
        for number in range(len(text) * rate.numerator // rate.denominator if fit else 0):
            drawn = rng.draw(draws.key, number)
            at = fit[(drawn >> 32) * len(fit) >> 32]
            if at not in edits:
                written = self.characters.written(groups[ord(text[at])], drawn & rng.CHOICE_MASK)
                edits[at] = at, at + 1, written
        return sorted(edits.values(), key=itemgetter(0))


def _row_hits(text: str, draws: Draws, table: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the characters of a row whose first byte is hit, each with 16 bits that choose."""
    if text.isascii():
        yield from draws.hits(len(text), table)
        return
    ends = accumulate(len(character.encode()) for character in text)
    at_byte = {byte: at for at, byte in enumerate([0, *ends])}
    size = next(reversed(at_byte))
    yield from (
        (at_byte[byte], drawn) for byte, drawn in draws.hits(size, table) if byte in at_byte
    )


@dataclass(frozen=True)
class Spacing:
    """Drop spaces (and tabs) with one chance, add one between two non-spaces with another.

    Numbers stay whole.
    """

    drop: GapTables
    add: GapTables

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the spaces dropped and added in all rows."""
        drop, add = fork_array(keys, "drop"), fork_array(keys, "add")
        dropped = self.drop.hits(drop, texts.lengths, variants["drop_rate"])
        return self._edits(texts, dropped, self.add.hits(add, texts.lengths, variants["add_rate"]))

    def windows(self, texts: Texts, keys: U64, variants: Variants) -> Iterator[Edits]:
        """Yield the spaces dropped and added in one row in parts."""
        drop, add, length = fork_array(keys, "drop"), fork_array(keys, "add"), int(texts.lengths[0])
        dropped = self.drop.windows(drop, length, variants["drop_rate"])
        for pair in zip(dropped, self.add.windows(add, length, variants["add_rate"]), strict=True):
            yield self._edits(texts, *pair)

    def _edits(self, texts: Texts, to_drop: Hits, hits: Hits) -> Edits:
        dropped = texts.offsets[to_drop.rows] + to_drop.positions
        blank = np.isin(texts.values[dropped], _BLANKS)
        drop_rows, dropped = to_drop.rows[blank], dropped[blank]
        # A space may follow a character that is neither white nor joined to the next one.
        at = texts.offsets[hits.rows] + hits.positions
        points = code_points(texts.values, at)
        ends = at + utf8_lengths(points)
        fit = (points >= 0) & ~np.isin(points, _NOT_BEFORE_SPACE)
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

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the spaces dropped and added in one row."""
        text, stream, variants = row.text, Draws(draws.key), draws.variants
        dropped = _row_hits(text, stream.fork("drop"), self.drop.tables[variants["drop_rate"]])
        edits = [(at, at + 1, "") for at, _ in dropped if ord(text[at]) in _BLANKS]
        added = _row_hits(text, stream.fork("add"), self.add.tables[variants["add_rate"]])
        edits += [
            (at + 1, at + 1, " ")
            for at, _ in added
            if at + 1 < len(text)
            and ord(text[at]) not in _NOT_BEFORE_SPACE
            and ord(text[at + 1]) not in _WHITE
            and not buffers.joins(ord(text[at + 1]))
            and not _WITHIN_NUMBER.fullmatch(text, at, at + 2)
        ]
        return sorted(edits, key=itemgetter(0))


# A word -> what may replace it, with whole-number weights; nothing if it stays. The word itself
# among them is the chance that it stays though it is hit.
WordRule = Callable[[str], Sequence[tuple[str, int]]]
WORDS_MAX = 1 << 18  # distinct words remembered; then all are forgotten and asked for anew
FORMS_MAX = 1 << 21  # and so for what the rule made of them: about 50 MB
RowForms = tuple[list[int], list[str]]  # bounds as in `WeightedChoices`, texts
ROW_WORDS_MAX = 1 << 14  # remembered for rows alone


class WordKernel:
    """Replace words, each with its rate, by what a rule makes of them.

    `limits` holds the 48-bit threshold of every strength. Draw number i of a row decides on its
    i-th word, and which alternative it gets; `by_form` equal words get the same. The rule changes
    no word without one of the bytes that it `needs`, and none of fewer than `bytes_min`.

    The words met so far are remembered: `hashes` are ascending; `groups` say which alternatives
    each has in `choices`, `pool` and `changed`, which tells those that differ from their word; -1
    is that of a word that stays.
    """

    def __init__(
        self, rule: WordRule, limits: I64, needs: bytes = b"", by_form: bool = False,
        bytes_min: int = 0,
    ) -> None:  # fmt: skip
        self._rule = rule
        self.needs = needs
        self._is_needed = re.compile(b"[%s]" % re.escape(needs)).search if needs else bool
        self._limits, self._by_form, self._bytes_min = limits, by_form, bytes_min
        self.one_way = False  # whether one draw, of a stream "way", chooses for all words of a row
        if not needs and not by_form:
            self.row_limits = limits
        self.row_forms = Memo(self._forms_of, ROW_WORDS_MAX)
        self._forget()

    def _forget(self) -> None:
        self.hashes, self.groups = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self.choices, self.changed = WeightedChoices.of([]), np.zeros(0, np.bool_)
        self.pool = Texts.from_strings([]).to_arrow()

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        words = texts.tokens
        limits, forms = self._limits.take(variants["rate"]), words.hashes if self._by_form else None
        eligible = words.stops - words.starts >= self._bytes_min
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
        edges = words.starts.take(hit), words.stops.take(hit)
        return Edits(words.rows.take(hit), *edges, chosen, self.pool)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of one row."""
        if not self.needs and not self._by_form:
            return self.replaced(row, draws.hits(len(row.words)))
        is_needed = self._is_needed
        if not is_needed(row.text.encode()):
            return []
        fit = [number for number, word in enumerate(row.words) if is_needed(word.encode())]
        limit = int(self._limits[draws.variants["rate"]])
        return self.replaced(row, self.hits_in(row, draws.key, fit, limit))

    def hits_in(
        self, row: Row, key: int, numbers: Sequence[int], limit: int
    ) -> list[tuple[int, int]]:
        """Return which of the words with these numbers are hit, each with 16 bits that choose."""
        forms = [row.hashes[number] for number in numbers] if self._by_form else numbers
        hits = [(numbers[at], drawn) for at, drawn in rng.form_hits(key, forms, limit)]
        way = rng.draw(rng.fork(key, "way"), 0) & rng.CHOICE_MASK if self.one_way and hits else 0
        return [(number, way) for number, _ in hits] if self.one_way else hits

    def replaced(self, row: Row, hits: Iterable[tuple[int, int]]) -> list[RowEdit]:
        """Return the replacements of the words that are hit in one row."""
        edits = list[RowEdit]()
        for number, drawn in hits:
            word = row.words[number]
            if (forms := self.row_forms[word]) is not None:
                form = forms[1][bisect_right(forms[0], drawn)]
                if form != word:
                    edits.append((*row.span(number), form))
        return edits

    def _forms_of(self, word: str) -> RowForms | None:
        """Return the bounds and texts of what a word may become, None if it stays."""
        if len(word.encode()) > buffers.WORD_BYTES_MAX or not (forms := self._rule(word)):
            return None
        bounds = WeightedChoices.of([[weight for _, weight in forms]]).bounds.tolist()
        return bounds, [form for form, _ in forms]

    def _groups_of(self, values: U8, starts: I64, stops: I64) -> I64:
        """Return the group of the word in each byte range, -1 for one that is too long or stays."""
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
        """Ask the rule for new words, those in these byte ranges."""
        content, edges = values.data, zip(starts.tolist(), stops.tolist(), strict=True)
        words = [str(content[start:stop], "utf-8") for start, stop in edges]
        made = [self._rule(word) for word in words]
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


class NamesStay(WordKernel):
    """A kernel of words that changes no name: no word with a capital within a sentence."""

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        edits, words = super().propose(texts, keys, variants), texts.tokens
        return edits.keep(~are_names(texts, words, np.searchsorted(words.starts, edits.starts)))

    def replaced(self, row: Row, hits: Iterable[tuple[int, int]]) -> list[RowEdit]:
        """Return the replacements of the words that are hit in one row."""
        return super().replaced(row, [hit for hit in hits if not row.is_name(hit[0])])
