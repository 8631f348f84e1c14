"""The kernel of a learned channel: words, gaps, letters and whole rows of a batch, as arrays.

A row draws a pair of factors and its habit; each word and each gap is hit with its chance times the
factor, and becomes one of its options. Draws of a word or gap are numbered by its position in the
row, in streams of their own ("words", "gaps", "row"), so that rows do not depend on others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa

from noisegen.noise.channel_tables import (
    CASINGS,
    END_POINT,
    SIZES,
    START_POINT,
    Gaps,
    GapTable,
    LetterTable,
    Options,
    Words,
    WordTable,
)
from noisegen.noise.edits import Edits
from noisegen.noise.profile import (
    AS_WRITTEN,
    CHANCE_BITS,
    COARSER,
    FACTOR_BITS,
    FORM,
    HABITS,
    SAME,
    SOME_LETTERS,
    WORD_GONE,
    Channel,
    Factors,
)
from noisegen.noise.rng import CERTAIN, DECISION_BITS, Variants, decisions, draw_array, fork_array
from noisegen.text.buffers import (
    I64,
    U8,
    U64,
    Bool,
    Texts,
    as_arrow,
    code_points,
    ordinals,
    utf8_lengths,
)
from noisegen.text.case import SMALL, TITLE, UPPER, cased, lower

PART_BYTES = 2 << 20  # of text that is noised at once: what a cache holds
STRENGTH_BITS = 16
DRAWS_EACH = 8  # of a word or gap, see below; three for letters
HIT, OPTION, COARSE, LETTER = range(4)
ROW_FACTORS, ROW_MUST, ROW_HABIT = range(3)  # draws of a row
_CASING_OF = np.array([0, 1, 2, 1])  # of a word's case
_WRITTEN_CASES = (SMALL, SMALL, TITLE, UPPER)  # see `profile.SAME`
_BELOW = CHANCE_BITS + FACTOR_BITS + STRENGTH_BITS - DECISION_BITS  # bits of a chance times factors
_HALF = np.uint64(64 - CHANCE_BITS)
_HABITS = list(HABITS.values())


@dataclass(frozen=True)
class _Units:
    """The words, or the gaps, of a batch: row, number in the row, group, and threshold."""

    rows: I64
    numbers: I64
    groups: I64
    limits: I64
    keys: U64

    def draws(self, chosen: I64, which: int) -> U64:
        """Return a draw of some units."""
        keys = self.keys.take(self.rows.take(chosen))
        return draw_array(keys, self.numbers.take(chosen) * DRAWS_EACH + which)


class ChannelKernel:
    """Noise with the chances of a channel."""

    def __init__(self, channel: Channel, factors: Factors, rates: Sequence[Fraction]) -> None:
        self._options = Options.of(channel)
        self._words = WordTable(channel)
        self._gaps = GapTable(channel, self._words)
        self._letters = LetterTable(channel)
        self._habits = np.array(channel.habits, np.int64)
        self._factors = np.array([pair[:2] for pair in factors], np.int64)
        sums = list(accumulate(weight for *_, weight in factors))
        self._bounds = np.array([part * CERTAIN // sums[-1] for part in sums], np.int64)
        self._strengths = np.array([int(rate * (1 << STRENGTH_BITS)) for rate in rates], np.int64)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the edits of all rows."""
        strengths = self._strengths.take(variants["rate"])
        size = max(1, len(texts) * PART_BYTES // max(1, len(texts.window)))
        parts = []
        for start in range(0, len(texts), size):
            chosen = slice(start, start + size)
            edits = self._propose(texts[chosen], keys[chosen], strengths[chosen])
            parts.append(replace(edits, rows=edits.rows + start))
        return Edits.join(parts)

    def _propose(self, texts: Texts, keys: U64, strengths: I64) -> Edits:
        """Propose the edits of a few rows."""
        words = Words.of(texts)
        gaps, row_keys = Gaps.of(texts, words), fork_array(keys, "row")
        drawn = decisions(draw_array(row_keys, ROW_FACTORS))
        pairs = self._factors.take(np.searchsorted(self._bounds, drawn, side="right"), axis=0)
        factors = pairs * strengths[:, None]  # in 2^-24
        chances = np.append(self._options.chances, 0)  # the last one for no group: -1
        numbers = self._words.find(words)
        groups = self._words.groups(words, numbers), self._gaps.groups(texts, gaps, numbers)
        of_words, of_gaps = (
            _Units(of.rows, of.numbers, group, chances.take(group) * factor.take(of.rows), stream)
            for of, group, factor, stream in (
                (words, groups[0], factors[:, 0], fork_array(keys, "words")),
                (gaps, groups[1], factors[:, 1], fork_array(keys, "gaps")),
            )
        )
        must = decisions(draw_array(row_keys, ROW_MUST)) >> DECISION_BITS - STRENGTH_BITS
        hits = _hits(of_words, of_gaps, must < strengths)
        batch = _Batch(self._options, self._words, self._letters, texts, words, gaps, *hits)
        drawn = decisions(draw_array(row_keys, ROW_HABIT))
        drawn = drawn << CHANCE_BITS + STRENGTH_BITS - DECISION_BITS
        habits = (drawn[:, None] >= self._habits * strengths[:, None]).sum(axis=1)
        return _with_habits(batch.edits(of_words, of_gaps), texts, habits)


def _hits(words: _Units, gaps: _Units, must: Bool) -> tuple[I64, I64]:
    """Return which words and gaps are hit; in rows that `must` change, the nearest one at least."""
    settled, hit = ~must, []
    decided = [decisions(of.draws(np.arange(len(of.rows)), HIT)) for of in (words, gaps)]
    for of, drawn in zip((words, gaps), decided, strict=True):
        hit.append(drawn << _BELOW < of.limits)
        settled[of.rows[hit[-1]]] = True
    rows, scores, units = [], [], []
    for of, drawn in zip((words, gaps), decided, strict=True):
        here = np.flatnonzero(~settled.take(of.rows) & (of.limits > 0))
        near = drawn.take(here) << 62 - DECISION_BITS
        scores.append(near // np.maximum(of.limits.take(here) >> 34, 1))
        rows.append(of.rows.take(here))
        units.append(here)
    order = np.lexsort((np.concatenate(scores), np.concatenate(rows)))
    in_order = np.concatenate(rows).take(order)
    nearest = order[np.flatnonzero(np.diff(in_order, prepend=-1))]
    is_word = nearest < len(units[0])
    hit[0][units[0][nearest[is_word]]] = True
    hit[1][units[1][nearest[~is_word] - len(units[0])]] = True
    return np.flatnonzero(hit[0]), np.flatnonzero(hit[1])


@dataclass(frozen=True)
class _Batch:
    """What is needed to write the edits of the words and gaps that are hit."""

    options: Options
    table: WordTable
    letters: LetterTable
    texts: Texts
    words: Words
    gaps: Gaps
    word_hits: I64
    gap_hits: I64

    def edits(self, of_words: _Units, of_gaps: _Units) -> Edits:
        """Return the edits of all words and gaps, in the order of these."""
        hit, gaps = self.word_hits, self.gap_hits
        gap_options = self._drawn(of_gaps, gaps, by_shape=False)
        options = self._drawn(of_words, hit, by_shape=True)
        kinds = self.options.kinds.take(options)
        form, written, gone, spelled = (
            (hit[kinds == kind], options[kinds == kind])
            for kind in (FORM, AS_WRITTEN, WORD_GONE, SOME_LETTERS)
        )
        rows, starts, stops = self.gaps.rows, self.gaps.starts, self.gaps.stops
        gap_edges = rows.take(gaps), starts.take(gaps), stops.take(gaps)
        after = np.concatenate([self.gaps.rights.take(gaps), self.words.behind(gone[0])])
        hows = self.options.hows.take(np.concatenate([gap_options, gone[1]]))
        parts = [
            self._forms(*form),
            self._rewritten(written[0], self.options.hows.take(written[1])),
            self._gone(self._may_go(gone[0])),
            self._spelled(*spelled, of_words),
            self._next_words(after, hows),
        ]
        # A word has an odd number between the even ones of its gaps.
        order = [gaps * 2, *((words + self.words.rows.take(words)) * 2 + 1 for words, _ in parts)]
        edits = [Edits(*gap_edges, gap_options * CASINGS, self.options.pool)]
        edits += [part for _, part in parts]
        starts = np.concatenate([part.starts for part in edits])
        return Edits.join(edits, (np.concatenate(order) << 32) + starts)

    def _drawn(self, of: _Units, hit: I64, by_shape: bool) -> I64:
        """Return the option of every unit that is hit; a coarse one stands for a second draw."""
        options = self.options.pick(of.groups.take(hit), of.draws(hit, OPTION))
        coarse = np.flatnonzero(self.options.kinds.take(options) == COARSER)
        groups = self.options.hows.take(options.take(coarse))
        if by_shape:
            groups = self.table.shape_groups(self.words, hit.take(coarse))
        options[coarse] = self.options.pick(groups, of.draws(hit.take(coarse), COARSE))
        return options

    def _edits(
        self, words: I64, starts: I64, stops: I64, written: I64, pool: pa.Array
    ) -> tuple[I64, Edits]:
        return words, Edits(self.words.rows.take(words), starts, stops, written, pool)

    def _forms(self, words: I64, options: I64) -> tuple[I64, Edits]:
        """Put the form of an option in the place of words."""
        hows = self.options.hows.take(options)
        casings = np.where(hows > 0, hows - 1, _CASING_OF.take(self.words.cases.take(words)))
        edges = self.words.starts.take(words), self.words.stops.take(words)
        return self._edits(words, *edges, options * CASINGS + casings, self.options.pool)

    def _rewritten(self, words: I64, hows: I64) -> tuple[I64, Edits]:
        """Write words in another case, unless they are so."""
        starts, stops = self.words.starts.take(words), self.words.stops.take(words)
        content, base = self.texts.window.tobytes(), self.words.base
        spans = zip((starts - base).tolist(), (stops - base).tolist(), hows.tolist(), strict=True)
        forms = [_recased(content[start:stop], how) for start, stop, how in spans]
        changed = np.flatnonzero(np.array([form is not None for form in forms], np.bool_))
        pool = Texts.from_strings([form for form in forms if form is not None]).to_arrow()
        edges = starts.take(changed), stops.take(changed)
        return self._edits(words.take(changed), *edges, np.arange(len(changed)), pool)

    def _next_words(self, after: I64, hows: I64) -> tuple[I64, Edits]:
        """Change the case of words behind a gap that changed or a word that went, as learned."""
        asked = (hows != SAME) & (after >= 0) & ~np.isin(after, self.word_hits)
        words, first = np.unique(after[asked], return_index=True)
        return self._rewritten(words, hows[asked].take(first))

    def _may_go(self, gone: I64) -> I64:
        """Return the words that may go: where all of a row would, the first stays."""
        rows = self.words.rows.take(gone)
        counts = np.bincount(rows, minlength=len(self.texts))
        last = self.words.behind(gone) < 0
        emptied = np.zeros(len(self.texts), np.bool_)
        sizes = self.words.numbers.take(gone[last]) + 1
        emptied[rows[last]] = counts.take(rows[last]) == sizes
        stays = emptied.take(rows) & (self.words.numbers.take(gone) == 0)
        return gone.take(np.flatnonzero(~stays))

    def _gone(self, gone: I64) -> tuple[I64, Edits]:
        """Take words out, with the space before them, or else with that behind.

        That behind goes at the start of a row, and where the gap before has changed.
        """
        starts, stops = self.words.starts.take(gone), self.words.stops.take(gone)
        changed = np.zeros(len(self.gaps.starts), np.bool_)
        changed[self.gap_hits] = True
        gap = gone + self.words.rows.take(gone)
        padded = np.append(self.texts.values, np.uint8(0))
        size = starts - self.gaps.starts.take(gap)
        before = (size > 0) & (padded.take(starts - 1) == 0x20) & ~changed.take(gap)
        behind = (self.words.numbers.take(gone) == 0) & (size == 0) | changed.take(gap)
        behind &= (padded.take(stops) == 0x20) & ~changed.take(gap + 1)
        behind &= ~np.isin(gone + 1, gone)  # it goes with the next word
        nothing = np.full(len(gone), len(self.options.pool) - 1)
        return self._edits(gone, starts - before, stops + behind, nothing, self.options.pool)

    def _spelled(self, hit: I64, options: I64, of: _Units) -> tuple[I64, Edits]:
        """Change letters of words, each part chosen by its weight; equal words share one search.

        Parts that begin at or before an earlier one, or overlap it, are left out.
        """
        words, base = self.words, self.words.base
        starts, stops = words.starts.take(hit) - base, words.stops.take(hit) - base
        hashes = words.hashes.take(hit)
        alone = np.arange(len(hit)).astype(np.uint64)  # a word without hash equals no other
        hashes = np.where(hashes == 0, alone, hashes)
        _, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        framed = Framed.of(words.small, starts.take(firsts), stops.take(firsts))
        weights, groups = framed.parts(self.letters)
        sums = np.concatenate([[0], np.cumsum(weights)])
        edges = np.append(framed.firsts, len(framed.letters)) * SIZES
        low, high = sums.take(edges[:-1]).take(which), sums.take(edges[1:]).take(which)

        counts = self.options.hows.take(options)  # how many parts of each word change
        numbers = np.arange(int(counts.max(initial=0)))
        number, owners = np.nonzero((counts > numbers[:, None]) & (high > low))
        keys = of.keys.take(words.rows.take(hit.take(owners)))
        draws = draw_array(
            keys, words.numbers.take(hit.take(owners)) * DRAWS_EACH + LETTER + number
        )
        # The high half of the draw chooses the part, the low half what comes there.
        target = (draws >> _HALF).astype(np.int64)
        target = low.take(owners) + (target * (high - low).take(owners) >> CHANCE_BITS)
        part = np.searchsorted(sums, target, side="right") - 1
        order = np.lexsort((part, owners))  # stable: equal parts stay in the order of their draws
        order = order.take(_apart(owners.take(order), part.take(order)))
        owners, part, draws = owners.take(order), part.take(order), draws.take(order)

        written = self.options.pick(groups.take(part), draws << _HALF)
        coarse = np.flatnonzero(self.options.kinds.take(written) == COARSER)
        coarser = self.options.hows.take(written.take(coarse))
        written[coarse] = self.options.pick(coarser, draw_array(draws.take(coarse), 0))
        hit, starts = hit.take(owners), starts.take(owners)
        moved, at = (
            starts - framed.starts.take(framed.firsts).take(which.take(owners)),
            part // SIZES,
        )
        begins = framed.starts.take(at) + moved
        ends = framed.starts.take(at + part % SIZES) + moved
        cases = words.cases.take(hit)
        casings = np.where(cases == UPPER, 2, (cases > 0) & (begins == starts))
        pool = self.options.pool
        return self._edits(hit, begins + base, ends + base, written * CASINGS + casings, pool)


@lru_cache(maxsize=1 << 16)
def _recased(word: bytes, how: int) -> str | None:
    """Return a word in another case, None if it is so already."""
    text = word.decode()
    form = cased(lower(text), _WRITTEN_CASES[how])
    return form if form != text else None


@dataclass(frozen=True)
class Framed:
    """The letters of words one after the other, each word between START and END.

    `starts` has the byte where each letter begins (for END, where the word stops), `firsts` the
    position of the START of each word.
    """

    letters: I64
    starts: I64
    firsts: I64

    @classmethod
    def of(cls, small: U8, starts: I64, stops: I64) -> "Framed":
        """Find the letters of words in these byte ranges of `small`."""
        sizes = stops - starts
        words = np.repeat(np.arange(len(starts)), sizes)
        at = np.arange(len(words)) - np.repeat(np.cumsum(sizes) - sizes - starts, sizes)
        solid = np.flatnonzero((small.take(at) & 0xC0) != 0x80)
        at, words = at.take(solid), words.take(solid)
        counts = np.bincount(words, minlength=len(starts))
        firsts = np.cumsum(counts + 2) - counts - 2
        lasts, inside = firsts + counts + 1, np.arange(len(at)) + 2 * words + 1
        letters = np.empty(len(at) + 2 * len(starts), np.int64)
        begins = np.empty_like(letters)
        letters[firsts], letters[lasts] = START_POINT, END_POINT
        letters[inside] = code_points(small, at)
        begins[firsts], begins[lasts], begins[inside] = starts, stops, at
        return cls(letters, begins, firsts)

    def parts(self, table: LetterTable) -> tuple[I64, I64]:
        """Return weight and group of every part: number `SIZES` * first letter + size."""
        count = len(self.letters)
        weights, groups = np.zeros((count, SIZES), np.int64), np.full((count, SIZES), -1)
        starts_word = np.zeros(count + 1, np.bool_)
        starts_word[self.firsts] = True
        inside = np.flatnonzero(~starts_word[:-1])
        for size in range(SIZES):
            here = table.known(self.letters, inside, size)
            groups[here, size], weights[here, size] = table.look_up(self.letters, here, size)
            inside = inside[inside + size + 1 < count]
            inside = inside[~starts_word[inside + size + 1]]
        return weights.ravel(), groups.ravel()


def _apart(words: I64, parts: I64) -> I64:
    """Return which of the parts, which ascend, do not conflict with one before them."""
    at = parts // SIZES
    ends, number = at + parts % SIZES, ordinals(words)
    keep = np.ones(len(words), np.bool_)
    for back in range(1, int(number.max(initial=0)) + 1):
        here = np.flatnonzero(number >= back)
        earlier = here - back
        keep[here] &= (at.take(here) >= ends.take(earlier)) & (at.take(here) > at.take(earlier))
    return np.flatnonzero(keep)


def _with_habits(edits: Edits, texts: Texts, habits: I64) -> Edits:
    """Return the edits with those of habits: the number of each row's, or one behind the last."""
    rows = np.flatnonzero(habits < len(_HABITS))
    if not len(rows):
        return edits
    kinds = habits.take(edits.rows)
    here = np.flatnonzero(kinds < len(_HABITS))
    written = edits.pool.take(as_arrow(edits.replacements.take(here))).to_pylist()
    forms = [
        _HABITS[kind](text.decode())
        for text, kind in zip(written, kinds.take(here).tolist(), strict=True)
    ]
    replacements = edits.replacements.copy()
    replacements[here] = np.arange(len(forms)) + len(edits.pool)
    pool = pa.concat_arrays([edits.pool, Texts.from_strings(forms).to_arrow()])
    edits = replace(edits, replacements=replacements, pool=pool)

    at, rows = _characters_left(texts, rows, edits)
    points = code_points(texts.values, at)
    pairs, which = np.unique(points * len(_HABITS) + habits.take(rows), return_inverse=True)
    forms, same = [], []
    for point, kind in (divmod(pair, len(_HABITS)) for pair in pairs.tolist()):
        forms.append(_HABITS[kind](chr(point)))
        same.append(forms[-1] == chr(point))
    stops = at + utf8_lengths(points)
    characters = Edits(rows, at, stops, which, Texts.from_strings(forms).to_arrow())
    changed: Bool = ~np.array(same, np.bool_)
    return Edits.join([edits, characters.keep(changed[which])])


def _characters_left(texts: Texts, rows: I64, edits: Edits) -> tuple[I64, I64]:
    """Return where the characters of some rows begin that no edit covers, and the rows."""
    sizes = texts.lengths.take(rows)
    firsts = np.cumsum(sizes) - sizes
    at = np.arange(int(sizes.sum())) + np.repeat(texts.offsets[:-1].take(rows) - firsts, sizes)
    owners = np.repeat(rows, sizes)
    covering = np.searchsorted(edits.starts, at, side="right") - 1
    reach = np.append(np.maximum.accumulate(edits.stops), 0).take(covering)
    free = ((texts.values.take(at) & 0xC0) != 0x80) & (at >= reach)
    return at[free], owners[free]
