"""The kernel of a learned channel: words, gaps, letters and whole rows of a batch, as arrays.

A row draws a pair of factors and its habit; each word and each gap is hit with its chance times the
factor, and becomes one of its options. Draws of a word or gap are numbered by its place in the row,
in streams of their own ("words", "gaps", "row"), so that rows do not depend on others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa

from noisegen.characters import Variants
from noisegen.draws import (
    CERTAIN,
    DECISION_BITS,
    I64,
    U64,
    decisions,
    draw_array,
    fork_array,
)
from noisegen.edits import Edits
from noisegen.realism.channel_habits import with_habits
from noisegen.realism.channel_letters import LetterTable, Misspelt, letter_edits
from noisegen.realism.channel_model import (
    AS_WRITTEN,
    CHANCE_BITS,
    COARSER,
    FORM,
    SOME_LETTERS,
    WORD_GONE,
    Channel,
)
from noisegen.realism.channel_tables import CASINGS, GapTable, Options, WordTable
from noisegen.realism.channel_text import Gaps, Words, gaps_of, words_of
from noisegen.realism.letters import SMALL, TITLE, UPPER, cased, lower
from noisegen.realism.profile import SAME
from noisegen.realism.row_factors import FACTOR_BITS
from noisegen.text import Bool, Texts

PART_BYTES = 2 << 20  # of text that is noised at once: what a cache holds
STRENGTH_BITS = 16
DRAWS_EACH = 8  # of a word or gap, see below; three for letters
HIT, OPTION, COARSE, LETTER = range(4)
FACTORS, MUST, HABIT = range(3)  # draws of a row
_CASING_OF = np.array([0, 1, 2, 1])  # of a word's case
_WRITTEN_CASES = (SMALL, SMALL, TITLE, UPPER)  # see `profile.SAME`
_BELOW = CHANCE_BITS + FACTOR_BITS + STRENGTH_BITS - DECISION_BITS  # bits of a chance times factors


@dataclass(frozen=True)
class _Units:
    """The words, or the gaps, of a batch: row, number in the row, group, and the row's factor."""

    rows: I64
    numbers: I64
    groups: I64
    limits: I64
    keys: U64

    def draws(self, chosen: I64, which: int) -> U64:
        """Return a draw of some units."""
        return draw_array(self.keys.take(self.rows.take(chosen)),
                          self.numbers.take(chosen) * DRAWS_EACH + which)  # fmt: skip

    def decided(self, chosen: I64) -> I64:
        """Return the decisions that are hits below the limit."""
        return decisions(self.draws(chosen, HIT)) << _BELOW


@dataclass(frozen=True)
class _Part:
    """Edits with their places in the order of all words and gaps: even for gaps, odd for words."""

    places: I64
    edits: Edits


class ChannelKernel:
    """Noise with the chances of a channel."""

    def __init__(
        self, channel: Channel, factors: Sequence[tuple[int, int, int]], rates: Sequence[Fraction]
    ) -> None:
        self._options = Options.of(channel)
        self._words = WordTable(channel)
        self._gaps = GapTable(channel, self._words)
        self._letters = LetterTable(channel)
        self._habits = np.array(channel.habits, np.int64)
        self._factors = np.array([pair[:2] for pair in factors], np.int64)
        total = sum(weight for *_, weight in factors)
        sums = accumulate(weight for *_, weight in factors)
        self._bounds = np.array([part * CERTAIN // total for part in sums], np.int64)
        self._strengths = np.array([int(rate * (1 << STRENGTH_BITS)) for rate in rates], np.int64)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the edits of all rows."""
        strengths = self._strengths.take(variants["rate"])
        size = max(1, len(texts) * PART_BYTES // max(1, len(texts.window)))
        parts = []
        for first in range(0, len(texts), size):
            here = slice(first, first + size)
            edits = self._propose(texts[here], keys[here], strengths[here])
            parts.append(replace(edits, rows=edits.rows + first))
        return _joined(parts)

    def _propose(self, texts: Texts, keys: U64, strengths: I64) -> Edits:
        """Propose the edits of a few rows."""
        words = words_of(texts)
        gaps = gaps_of(texts, words)
        row_keys = fork_array(keys, "row")
        factors = self._row_factors(row_keys, strengths)
        numbers = self._words.find(words)
        of_words = self._units(words.rows, words.numbers, self._words.groups(words, numbers),
                               factors[:, 0], fork_array(keys, "words"))  # fmt: skip
        of_gaps = self._units(gaps.rows, gaps.numbers, self._gaps.groups(texts, gaps, numbers),
                              factors[:, 1], fork_array(keys, "gaps"))  # fmt: skip
        must = decisions(draw_array(row_keys, MUST)) >> DECISION_BITS - STRENGTH_BITS < strengths
        hits = _hits(of_words, of_gaps, must)
        edits = _Batch(self._options, texts, words, gaps, *hits).edits(
            of_words, of_gaps, self._words, self._letters
        )
        return with_habits(edits, texts, self._row_habits(row_keys, strengths))

    def _row_factors(self, keys: U64, strengths: I64) -> I64:
        """Return the factors of words and gaps of each row, in 2^-24."""
        drawn = decisions(draw_array(keys, FACTORS))
        pairs = self._factors.take(np.searchsorted(self._bounds, drawn, side="right"), axis=0)
        scaled: I64 = pairs * strengths[:, None]
        return scaled

    def _row_habits(self, keys: U64, strengths: I64) -> I64:
        """Return the number of each row's habit, that behind the last for none."""
        drawn = decisions(draw_array(keys, HABIT)) << CHANCE_BITS + STRENGTH_BITS - DECISION_BITS
        found: I64 = (drawn[:, None] >= self._habits * strengths[:, None]).sum(axis=1)
        return found

    def _units(self, rows: I64, numbers: I64, groups: I64, factors: I64, keys: U64) -> _Units:
        chances = np.append(self._options.chances, 0).take(groups)  # no group: -1
        return _Units(rows, numbers, groups, chances * factors.take(rows), keys)


def _hits(words: _Units, gaps: _Units, must: Bool) -> tuple[I64, I64]:
    """Return which words and gaps are hit; in rows that `must` change, the nearest one at least."""
    every = [np.arange(len(units.rows)) for units in (words, gaps)]
    decided = [units.decided(all_) for units, all_ in zip((words, gaps), every, strict=True)]
    hit = [d < units.limits for d, units in zip(decided, (words, gaps), strict=True)]
    settled = ~must
    for flags, units in zip(hit, (words, gaps), strict=True):
        settled[units.rows[flags]] = True
    open_ = [np.flatnonzero(~settled.take(units.rows) & (units.limits > 0))
             for units in (words, gaps)]  # fmt: skip
    scores = [
        (d.take(here) >> _BELOW << 62 - DECISION_BITS)
        // np.maximum(units.limits.take(here) >> 34, 1)
        for d, here, units in zip(decided, open_, (words, gaps), strict=True)
    ]
    rows = np.concatenate([words.rows.take(open_[0]), gaps.rows.take(open_[1])])
    order = np.lexsort((np.concatenate(scores), rows))
    first = order[np.flatnonzero(np.diff(rows.take(order), prepend=-1))]
    hit[0][open_[0][first[first < len(open_[0])]]] = True
    hit[1][open_[1][first[first >= len(open_[0])] - len(open_[0])]] = True
    return np.flatnonzero(hit[0]), np.flatnonzero(hit[1])


@dataclass(frozen=True)
class _Batch:
    """What is needed to write the edits of the words and gaps that are hit."""

    options: Options
    texts: Texts
    words: Words
    gaps: Gaps
    word_hits: I64
    gap_hits: I64

    def edits(
        self, of_words: _Units, of_gaps: _Units, table: WordTable, letters: LetterTable
    ) -> Edits:
        """Return the edits of all words and gaps."""
        hit = self.word_hits
        gap_options = self._drawn(of_gaps, self.gap_hits, None)
        options = self._drawn(of_words, hit, table)
        kind = self.options.kinds.take(options)
        chosen = {one: np.flatnonzero(kind == one) for one in range(COARSER)}
        words = {one: (hit.take(here), options.take(here)) for one, here in chosen.items()}
        gone = self._left(words[WORD_GONE][0])
        parts = [
            self._gap_forms(gap_options),
            self._forms(*words[FORM]),
            self._rewritten(words[AS_WRITTEN][0], self.options.hows.take(words[AS_WRITTEN][1])),
            self._gone(gone),
            self._spelled(*words[SOME_LETTERS], of_words, letters),
            self._next_words(gap_options, *words[WORD_GONE]),
        ]
        return _together(parts)

    def _drawn(self, units: _Units, hit: I64, table: WordTable | None) -> I64:
        """Return the option of every unit that is hit; a coarse one stands for a second draw."""
        options = self.options.drawn(units.groups.take(hit), units.draws(hit, OPTION))
        coarse = np.flatnonzero(self.options.kinds.take(options) == COARSER)
        groups = self.options.hows.take(options.take(coarse))
        if table is not None:
            groups = table.shape_groups(self.words, hit.take(coarse))
        options[coarse] = self.options.drawn(groups, units.draws(hit.take(coarse), COARSE))
        return options

    def _gap_forms(self, options: I64) -> _Part:
        hit, gaps = self.gap_hits, self.gaps
        rows, starts, stops = gaps.rows.take(hit), gaps.starts.take(hit), gaps.stops.take(hit)
        return _Part(hit * 2, Edits(rows, starts, stops, options * CASINGS, self.options.pool))

    def _forms(self, hit: I64, options: I64) -> _Part:
        """Put the form of an option in the place of words."""
        hows = self.options.hows.take(options)
        casings = np.where(hows > 0, hows - 1, _CASING_OF.take(self.words.cases.take(hit)))
        edges = self.words.starts.take(hit), self.words.stops.take(hit)
        return self._part(hit, *edges, options * CASINGS + casings, self.options.pool)

    def _rewritten(self, hit: I64, hows: I64) -> _Part:
        """Write words in another case, unless they are so."""
        starts, stops = self.words.starts.take(hit), self.words.stops.take(hit)
        content, base = self.texts.window.tobytes(), self.words.base
        spans = zip((starts - base).tolist(), (stops - base).tolist(), hows.tolist(), strict=True)
        forms = [_recased(content[start:stop], how) for start, stop, how in spans]
        chosen = np.flatnonzero(np.array([form is not None for form in forms], np.bool_))
        made = [form for form in forms if form is not None]
        edges = starts.take(chosen), stops.take(chosen)
        pool = Texts.from_strings(made).to_arrow()
        return self._part(hit.take(chosen), *edges, np.arange(len(made)), pool)

    def _gone(self, hit: I64) -> _Part:
        """Take words out, with the blank before them, or else with that behind.

        That behind goes at the start of a row, and where the gap before has changed.
        """
        rows, starts, stops = (
            c.take(hit) for c in (self.words.rows, self.words.starts, self.words.stops)
        )
        moved = np.zeros(len(self.gaps.starts), np.bool_)
        moved[self.gap_hits] = True
        before, padded = hit + rows, np.append(self.texts.values, np.uint8(0))
        size = starts - self.gaps.starts.take(before)
        blank = (size > 0) & (padded.take(starts - 1) == 0x20) & ~moved.take(before)
        behind = (self.words.numbers.take(hit) == 0) & (size == 0) | moved.take(before)
        behind &= (padded.take(stops) == 0x20) & ~moved.take(before + 1)
        behind &= ~np.isin(hit + 1, hit)  # it goes with the next word
        empty = np.full(len(hit), len(self.options.pool) - 1)
        return self._part(hit, starts - blank, stops + behind, empty, self.options.pool)

    def _left(self, gone: I64) -> I64:
        """Return the words that may go: where all of a row would, the first stays."""
        rows = self.words.rows.take(gone)
        counts = np.bincount(rows, minlength=len(self.texts))
        last = self._behind(gone) < 0
        emptied = np.zeros(len(self.texts), np.bool_)
        sizes = self.words.numbers.take(gone[last]) + 1
        emptied[rows[last]] = counts.take(rows[last]) == sizes
        first = self.words.numbers.take(gone) == 0
        return gone.take(np.flatnonzero(~(emptied.take(rows) & first)))

    def _next_words(self, gap_options: I64, gone: I64, options: I64) -> _Part:
        """Change the case of words behind a gap that changed or a word that went, as learned."""
        after = np.concatenate([self.gaps.rights.take(self.gap_hits), self._behind(gone)])
        hows = self.options.hows.take(np.concatenate([gap_options, options]))
        asked = (hows != SAME) & (after >= 0) & ~np.isin(after, self.word_hits)
        after, hows = after[asked], hows[asked]
        after, first = np.unique(after, return_index=True)
        return self._rewritten(after, hows.take(first))

    def _behind(self, words: I64) -> I64:
        """Return the word behind each word, -1 at the end of its row."""
        found: I64 = self.gaps.rights.take(words + self.words.rows.take(words) + 1)
        return found

    def _spelled(self, hit: I64, options: I64, units: _Units, letters: LetterTable) -> _Part:
        """Change letters of words."""
        words, base = self.words, self.words.base
        starts = words.starts.take(hit) - base
        asked = Misspelt(
            starts,
            words.stops.take(hit) - base,
            words.hashes.take(hit),
            self.options.hows.take(options),
            units.keys.take(words.rows.take(hit)),
            words.numbers.take(hit) * DRAWS_EACH + LETTER,
        )
        found = letter_edits(letters, words.small, asked)
        # The high half of the draw chose the place, the low half chooses what comes there.
        made = self.options.drawn(found.groups, found.draws << np.uint64(64 - CHANCE_BITS))
        coarse = np.flatnonzero(self.options.kinds.take(made) == COARSER)
        again = draw_array(found.draws.take(coarse), 0)
        made[coarse] = self.options.drawn(self.options.hows.take(made.take(coarse)), again)
        cases = words.cases.take(hit.take(found.words))
        initial = found.starts == starts.take(found.words)
        casings = np.where(cases == UPPER, 2, (cases > 0) & initial)
        edges = found.starts + base, found.stops + base
        return self._part(
            hit.take(found.words), *edges, made * CASINGS + casings, self.options.pool
        )

    def _part(self, hit: I64, starts: I64, stops: I64, chosen: I64, pool: pa.Array) -> _Part:
        rows = self.words.rows.take(hit)
        return _Part((hit + rows) * 2 + 1, Edits(rows, starts, stops, chosen, pool))


@lru_cache(maxsize=1 << 16)
def _recased(word: bytes, how: int) -> str | None:
    """Return a word in another case, None if it is so already."""
    text = word.decode()
    form = cased(lower(text), _WRITTEN_CASES[how])
    return form if form != text else None


def _together(parts: Sequence[_Part]) -> Edits:
    """Return the edits of all parts in order."""
    edits = _joined([part.edits for part in parts])
    order = np.lexsort((edits.starts, np.concatenate([part.places for part in parts])))
    columns = (edits.rows, edits.starts, edits.stops, edits.replacements)
    rows, starts, stops, chosen = (column.take(order) for column in columns)
    return Edits(rows, starts, stops, chosen, edits.pool)


def _joined(parts: Sequence[Edits]) -> Edits:
    """Return edits one after the other, with each pool that several share once."""
    if not parts:
        return Edits.none()
    pools = {id(part.pool): part.pool for part in parts}
    sizes = accumulate((len(pool) for pool in pools.values()), initial=0)
    bases = dict(zip(pools, sizes, strict=False))
    return Edits(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.stops for part in parts]),
        np.concatenate([part.replacements + bases[id(part.pool)] for part in parts]),
        pa.concat_arrays(list(pools.values())),
    )
