"""Kernels of characters (replaced by a map, spaces added or dropped) and of words (by a rule).

Chances are per character or word. Hits of characters are drawn over byte positions, and those that
are not the first byte of a candidate are thinned out, which leaves its rate as asked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisegen.noise.edits import Edits
from noisegen.noise.lexicon import Entry
from noisegen.noise.rng import (
    GapTables,
    Variants,
    WeightedChoices,
    WeightedTexts,
    choices,
    fork_array,
    hits,
)
from noisegen.text.buffers import (
    I64,
    U8,
    U64,
    Texts,
    code_points,
    find_sorted,
    joins_previous,
    utf8_lengths,
    word_hashes,
)

_SPACES = Texts.from_strings(["", " "]).to_arrow()
_WHITE = (0x20, 0x09, 0x0A, 0x0D)
_ZERO_WIDTH_JOINER = 0x200D


def character_map(entries: Iterable[Entry]) -> WeightedTexts:
    """Compile weighted replacements of single characters; the keys are their code points."""
    groups: dict[int, list[tuple[str, int]]] = {}
    for entry in entries:
        groups.setdefault(ord(entry.clean), []).append((entry.noisy, entry.weight))
    points = sorted(groups)
    return WeightedTexts.of(np.array(points, np.int64), [groups[point] for point in points])


@dataclass(frozen=True)
class Substitution:
    """Replace characters of a map, each with chance `rate`."""

    characters: WeightedTexts
    gaps: GapTables

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        hits = self.gaps.hits(keys, texts.lengths, variants["rate"])
        starts = texts.offsets[hits.rows] + hits.positions
        points = code_points(texts.values, starts)
        groups, known = self.characters.find(points)
        chosen = self.characters.pick(groups[known], hits.choices[known])
        starts, stops = starts[known], starts[known] + utf8_lengths(points[known])
        return Edits(hits.rows[known], starts, stops, chosen, self.characters.pool)


@dataclass(frozen=True)
class Spacing:
    """Drop spaces (and tabs) with one chance, add one between two non-spaces with another."""

    drop: GapTables
    add: GapTables

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the spaces dropped and added in all rows."""
        drop_rows, dropped = _hits(
            self.drop, texts, fork_array(keys, "drop"), variants["drop_rate"]
        )
        space = np.isin(texts.values[dropped], (0x20, 0x09))
        drop_rows, dropped = drop_rows[space], dropped[space]
        add_rows, added = self._added(texts, keys, variants["add_rate"])
        starts = np.concatenate([dropped, added])
        order = np.argsort(starts, kind="stable")
        kinds = np.repeat([0, 1], [len(dropped), len(added)])[order]
        starts = starts[order]
        rows = np.concatenate([drop_rows, add_rows])[order]
        return Edits(rows, starts, starts + (1 - kinds), kinds, _SPACES)

    def _added(self, texts: Texts, keys: U64, variants: I64) -> tuple[I64, I64]:
        """Return row and position behind each character hit that a space may follow."""
        rows, at = _hits(self.add, texts, fork_array(keys, "add"), variants)
        points = code_points(texts.values, at)
        ends = at + utf8_lengths(points)
        fit = (points >= 0) & ~np.isin(points, _WHITE) & (points != _ZERO_WIDTH_JOINER)
        fit &= ends < texts.offsets[rows + 1]
        rows, ends = rows[fit], ends[fit]
        following = code_points(texts.values, ends)
        apart = ~np.isin(following, _WHITE) & ~joins_previous(following)
        return rows[apart], ends[apart]


def _hits(gaps: GapTables, texts: Texts, keys: U64, variants: I64) -> tuple[I64, I64]:
    """Return row and byte position of every hit."""
    hits = gaps.hits(keys, texts.lengths, variants)
    return hits.rows, texts.offsets[hits.rows] + hits.positions


# A word -> what may replace it, with whole-number weights; nothing if it stays. The word itself
# among them is the chance that it stays though it is hit.
WordRule = Callable[[str], Sequence[tuple[str, int]]]
WORDS_MAX = 1 << 18  # distinct words remembered; then all are forgotten and asked for anew
FORMS_MAX = 1 << 21  # and so for what the rule made of them: about 50 MB


class WordKernel:
    """Replace words, each with its rate, by what a rule makes of them.

    `limits` holds the 48-bit threshold of every strength. Draw number i of a row decides on its
    i-th word, and which alternative it gets.

    The words met so far are remembered: `hashes` are ascending; `groups` (-1: none) say which
    alternatives each has in `choices`, `pool` and `changed`, which tells those that differ from
    their word.
    """

    def __init__(self, rule: WordRule, limits: I64) -> None:
        self._rule = rule
        self._limits = limits
        self._forget()

    def _forget(self) -> None:
        self.hashes, self.groups = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self.choices, self.changed = WeightedChoices.of([]), np.zeros(0, np.bool_)
        self.pool = Texts.from_strings([]).to_arrow()
        self._group_count = 0

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        words = texts.tokens
        hit, draws = hits(keys, words.rows, self._limits.take(variants["rate"]))
        groups = self._groups_of(texts.values, words.starts.take(hit), words.stops.take(hit))
        known = np.flatnonzero(groups >= 0)
        hit, chosen = hit.take(known), self.choices.pick(groups[known], choices(draws.take(known)))
        changed = np.flatnonzero(self.changed.take(chosen))
        hit, chosen = hit.take(changed), chosen.take(changed)
        edges = words.starts.take(hit), words.stops.take(hit)
        return Edits(words.rows.take(hit), *edges, chosen, self.pool)

    def _groups_of(self, values: U8, starts: I64, stops: I64) -> I64:
        """Return the group of the word in each byte range, -1 where the rule changes nothing."""
        if len(self.hashes) > WORDS_MAX or len(self.choices) > FORMS_MAX:
            self._forget()
        hashes = word_hashes(values, starts, stops)
        at, known = find_sorted(self.hashes, hashes)
        new = np.flatnonzero(~known & (hashes != 0))
        if len(new):
            fresh, first = np.unique(hashes.take(new), return_index=True)
            self._learn(values, fresh, starts.take(new[first]), stops.take(new[first]))
            at, known = find_sorted(self.hashes, hashes)
        groups: I64 = np.where(known, np.append(self.groups, -1)[at], -1)  # 0: a word too long
        return groups

    def _learn(self, values: U8, hashes: U64, starts: I64, stops: I64) -> None:
        """Ask the rule for new words, those in these byte ranges."""
        groups = np.full(len(hashes), -1)
        alternatives: list[Sequence[tuple[str, int]]] = []
        changed: list[bool] = []
        for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            word = values[start:stop].tobytes().decode()
            forms = self._rule(word)
            if forms:
                groups[number] = self._group_count + len(alternatives)
                alternatives.append(forms)
                changed += [form != word for form, _ in forms]
        fresh = WeightedChoices.of(
            ([weight for _, weight in forms] for forms in alternatives), first=self._group_count
        )
        texts = Texts.from_strings([form for forms in alternatives for form, _ in forms])
        at = np.searchsorted(self.hashes, hashes)
        self.hashes = np.insert(self.hashes, at, hashes)
        self.groups = np.insert(self.groups, at, groups)
        self.choices = WeightedChoices(np.concatenate([self.choices.bounds, fresh.bounds]))
        self.changed = np.concatenate([self.changed, np.array(changed, np.bool_)])
        self.pool = pa.concat_arrays([self.pool, texts.to_arrow()])
        self._group_count += len(alternatives)
