"""The kernel of a noise channel: it makes errors with the chances that real text pairs show.

It changes words, gaps (texts between words), letters and whole rows. Each row draws a factor for
its words, a factor for its gaps, at most one habit (a change of all its text, such as to capitals),
and whether equal words are changed alike. A phrase, word or gap is hit (chosen for a change) with
its own chance times the factor of the row. It then draws one of its options (possible changes).
Draws depend on the index of the word or gap in its row; where equal words are changed alike, the
draws of a known word depend on the word. A row has the random streams "row", "phrases", "words",
"forms" (for words that are changed alike) and "gaps".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa

from noisegen.noising.channel_model import (
    AS_WRITTEN,
    CHANCE_BITS,
    COARSER,
    FORM,
    SOME_LETTERS,
    WORD_GONE,
    Channel,
)
from noisegen.noising.channel_tables import CASINGS, SIZES, ChannelTables, Units, Words, units_of
from noisegen.noising.edits import Edits
from noisegen.noising.profile import FACTOR_BITS, LETTERS, ROW_HABITS, SAME, Factors
from noisegen.noising.rng import (
    CERTAIN,
    DECISION_BITS,
    Strengths,
    decisions,
    draw_array,
    fork_array,
)
from noisegen.text.buffers import (
    I64,
    U64,
    Bool,
    Texts,
    as_arrow,
    code_points,
    ordinals,
    utf8_lengths,
    within,
)
from noisegen.text.case import SMALL, TITLE, UPPER, cased, lower

PART_BYTES = 2 << 20  # bytes of text processed at once: arrays fit into the cache of a CPU
RATE_BITS = 16
RATE_MAX = 4  # greatest rate: its product with a chance and the largest factor fits 63 bits
DRAWS_EACH = 8  # draws reserved per word or gap: hit, option, coarser option, changes of letters
HIT, OPTION, COARSE, LETTER = range(4)
ATTEMPTS = 4  # most attempts to misspell a word without a letter pair unknown to the channel
_CASING_OF = np.array([0, 1, 2, 1])  # case of a word -> small (0), Title (1) or UPPER (2)
_WRITTEN_CASES = (SMALL, SMALL, TITLE, UPPER)  # for profile.SAME, SMALL_CASE, ...
# A draw of 48 bits is shifted left by this number before it is compared with the product
# chance * factor * rate, which has more bits.
_BELOW = CHANCE_BITS + FACTOR_BITS + RATE_BITS - DECISION_BITS
_HALF = np.uint64(64 - CHANCE_BITS)
_HABITS = list(ROW_HABITS.values())


class ChannelKernel:
    """Kernel that changes phrases, words, gaps and letters with the chances of a `Channel`.

    Each row draws one of the `factors`: a pair of numbers that multiply the chances of its words
    and of its gaps. `rates` has the value of the parameter `rate` at every strength. `consistency`
    is the number of rows, out of 256, in which equal words are changed alike.
    """

    def __init__(
        self, channel: Channel, factors: Factors, rates: Sequence[Fraction], consistency: int = 0
    ) -> None:
        self._consistency = consistency << DECISION_BITS - FACTOR_BITS
        self._tables = ChannelTables(channel)
        self._habits = np.array(channel.habits, np.int64)
        self._factors = np.array([factor[:2] for factor in factors], np.int64)
        self._must = np.array([factor.must for factor in factors], np.bool_)
        sums = list(accumulate(factor.weight for factor in factors))
        self._bounds = np.array([part * CERTAIN // sums[-1] for part in sums], np.int64)
        self._rates = np.array([int(rate * (1 << RATE_BITS)) for rate in rates], np.int64)

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits of all rows, see `Kernel.propose`; rows are processed in portions."""
        rates = self._rates.take(strengths["rate"])
        size = max(1, len(texts) * PART_BYTES // max(1, len(texts.window)))
        parts = []
        for start in range(0, len(texts), size):
            chosen = slice(start, start + size)
            edits = self._propose(texts[chosen], keys[chosen], rates[chosen])
            parts.append(replace(edits, rows=edits.rows + start))
        return Edits.join(parts).legal(texts)

    def _propose(self, texts: Texts, keys: U64, rates: I64) -> Edits:
        """Return the edits of some rows; `rates` has the `rate` that each row drew, times 2^16."""
        row_keys = fork_array(keys, "row")
        pair, must, habit, style = (decisions(draw_array(row_keys, number)) for number in range(4))
        drawn = np.searchsorted(self._bounds, pair, side="right")
        factors = self._factors.take(drawn, axis=0) * rates[:, None]  # in units of 2^-24
        words = Words.of(texts)
        units = Units.of(texts, words)
        groups = self._tables.groups(texts, words, units)
        draws = self._draws(keys, words, units, style < self._consistency)
        # `kinds` has the index of each unit in `factors.ravel()`: 2 * row for words, + 1 for gaps.
        kinds = units.rows * 2 + (units.words < 0)
        limits = self._tables.chances.take(groups) * factors.ravel().take(kinds)
        must_change = self._must.take(drawn) & (must >> DECISION_BITS - RATE_BITS < rates)
        firsts, lasts, of_phrases = self._phrases(keys, words, factors[:, 0])
        heads = units_of(words, firsts)
        limits[within(heads, 2 * (lasts - firsts) + 1)[0]] = 0
        must_change[words.rows.take(firsts)] = False
        hit = _hit(units, decisions(draw_array(draws[0], draws[1] + HIT)), limits, must_change)
        hit[heads], groups[heads], units.stops[heads] = True, of_phrases, words.stops.take(lasts)
        edits = _Batch(self._tables, texts, words, units, groups, draws, hit).edits()
        habit = habit << CHANCE_BITS + RATE_BITS - DECISION_BITS
        habits = (habit[:, None] >= self._habits * rates[:, None]).sum(axis=1)
        return _with_habits(edits.whole(texts), texts, habits)

    def _draws(self, keys: U64, words: Words, units: Units, words_alike: Bool) -> tuple[U64, I64]:
        """Return for each word and gap the key of its random stream, and its first draw's index.

        In rows whose flag in `words_alike` is set, equal words that the channel knows have equal
        draws.
        """
        streams = np.stack([fork_array(keys, "words"), fork_array(keys, "gaps")], axis=1)
        streams = streams.ravel().take(units.rows * 2 + (units.words < 0))
        numbers, forms = units.numbers.copy(), np.flatnonzero(words_alike.take(words.rows))
        known = self._tables.known(words.hashes.take(forms))
        forms, known = forms[known >= 0], known[known >= 0]
        at = units_of(words, forms)
        streams[at] = fork_array(keys, "forms").take(words.rows.take(forms))
        numbers[at] = known
        return streams, numbers * DRAWS_EACH

    def _phrases(self, keys: U64, words: Words, factors: I64) -> tuple[I64, I64, I64]:
        """Return the phrases to replace: indices of first and last words, and option groups.

        If drawn phrases overlap, the first is kept; if they begin together, the longest is kept.
        `keys` has the random key of each row, `factors` the factor that it drew for its words.
        """
        streams, numbers = fork_array(keys, "phrases"), ordinals(words.rows)
        parts = []
        for firsts, lasts, groups in self._tables.phrases(words):
            rows, draws = words.rows.take(firsts), numbers.take(firsts) * DRAWS_EACH
            drawn = decisions(draw_array(streams.take(rows), draws + (lasts - firsts)))
            limits = self._tables.chances.take(groups) * factors.take(rows)
            hit = np.flatnonzero(drawn << _BELOW < limits)
            parts.append([part.take(hit) for part in (firsts, lasts, groups)])
        firsts, lasts, groups = np.concatenate(parts, axis=1)
        kept, reach = [], -1
        for number in np.lexsort((-lasts, firsts)).tolist():  # by first word, longer phrases first
            if firsts[number] > reach:
                kept.append(number)
                reach = lasts[number]
        return firsts[kept], lasts[kept], groups[kept]


def _hit(units: Units, drawn: I64, limits: I64, must: Bool) -> Bool:
    """Tell which units (words and gaps) are hit: those whose draw is below their limit.

    A row flagged in `must` has at least one hit: if no draw is below its limit, the unit with the
    smallest ratio of draw to limit is hit.
    """
    hit: Bool = drawn << _BELOW < limits
    settled = ~must
    settled[units.rows.take(np.flatnonzero(hit))] = True
    left = np.flatnonzero(~settled.take(units.rows) & (limits > 0))
    scores = (drawn.take(left) << 62 - DECISION_BITS) // np.maximum(limits.take(left) >> 34, 1)
    rows, is_gap = units.rows.take(left), units.words.take(left) < 0
    order = np.lexsort((is_gap, scores, rows))
    hit[left[order[np.flatnonzero(np.diff(rows.take(order), prepend=-1))]]] = True
    return hit


@dataclass(frozen=True)
class _Batch:
    """The words and gaps (texts between words) of some rows, and the draws of each of them.

    `groups` has the group of options (possible changes) of each word or gap, `hit` tells whether it
    changes, and `draws` (the result of `ChannelKernel._draws`) gives access to its random draws.
    """

    tables: ChannelTables
    texts: Texts
    words: Words
    units: Units
    groups: I64
    draws: tuple[U64, I64]
    hit: Bool

    def edits(self) -> Edits:
        """Return the edits of all hit words and gaps, in the order of the text."""
        hit = np.flatnonzero(self.hit)
        options = self._options(hit)
        kinds, details = self.tables.kinds.take(options), self.tables.details.take(options)
        is_word = self.units.words.take(hit) >= 0
        # A changed gap or a removed word sets the case of the next word. If both come before a
        # word, the gap sets the case: in reversed order it is the first, which `np.unique` keeps.
        near = np.flatnonzero(((kinds == WORD_GONE) | ~is_word) & (details != SAME))
        near = near[::-1]
        behind = hit.take(near) + 1 + is_word.take(near)
        rows = np.append(self.units.rows, [-1, -1])
        free = ~np.append(self.hit, [True, True]).take(behind)
        free &= rows.take(behind) == rows.take(hit.take(near))
        following, first = np.unique(behind[free], return_index=True)
        form, written, gone, spelled = (
            np.flatnonzero(kinds == kind) for kind in (FORM, AS_WRITTEN, WORD_GONE, SOME_LETTERS)
        )
        parts = [
            self._forms(hit.take(form), options.take(form)),
            self._rewritten(hit.take(written), details.take(written)),
            self._gone(hit.take(gone)),
            self._spelled(hit.take(spelled), details.take(spelled)),
            self._rewritten(following, details.take(near)[free].take(first)),
        ]
        starts = np.concatenate([edits.starts for _, edits in parts])
        order = (np.concatenate([units for units, _ in parts]) << 32) + starts
        return Edits.join([edits for _, edits in parts], order)

    def _draws(self, units: I64, which: I64 | int) -> U64:
        streams, numbers = self.draws
        return draw_array(streams.take(units), numbers.take(units) + which)

    def _options(self, hit: I64) -> I64:
        """Return the index of the option that each hit word or gap draws from its group.

        If the option is COARSER, another is drawn from a more general group: for a word, from the
        group of the unknown words with its shape (case and length class).
        """
        options = self.tables.pick(self.groups.take(hit), self._draws(hit, OPTION))
        coarse = np.flatnonzero(self.tables.kinds.take(options) == COARSER)
        groups = self.tables.details.take(options.take(coarse))
        words = self.units.words.take(hit.take(coarse))
        groups[words >= 0] = self.tables.shape_groups(self.words, words[words >= 0])
        options[coarse] = self.tables.pick(groups, self._draws(hit.take(coarse), COARSE))
        return options

    def _edits(
        self, units: I64, starts: I64, stops: I64, written: I64, pool: pa.Array
    ) -> tuple[I64, Edits]:
        return units, Edits(self.units.rows.take(units), starts, stops, written, pool)

    def _forms(self, units: I64, options: I64) -> tuple[I64, Edits]:
        """Return the edits that replace words and gaps by the texts of the options they drew."""
        words, details = self.units.words.take(units), self.tables.details.take(options)
        cases = np.append(self.words.cases, SMALL).take(words)  # SMALL for gaps: their index is -1
        casings = np.where((details > 0) & (words >= 0), details - 1, _CASING_OF.take(cases))
        edges = self.units.starts.take(units), self.units.stops.take(units)
        return self._edits(units, *edges, options * CASINGS + casings, self.tables.pool)

    def _rewritten(self, units: I64, cases: I64) -> tuple[I64, Edits]:
        """Return the edits that write words (`units`) in another case: 'so' -> 'So'.

        `cases` has the case of each word (`profile.SMALL_CASE`, ...). A word that already has this
        case has no edit.
        """
        starts, stops = self.units.starts.take(units), self.units.stops.take(units)
        content, base = self.texts.window.tobytes(), self.words.base
        spans = zip((starts - base).tolist(), (stops - base).tolist(), cases.tolist(), strict=True)
        forms = [_recased(content[start:stop], case) for start, stop, case in spans]
        changed = np.flatnonzero(np.array([form is not None for form in forms], np.bool_))
        pool = Texts.from_strings([form for form in forms if form is not None]).to_arrow()
        edges = starts.take(changed), stops.take(changed)
        return self._edits(units.take(changed), *edges, np.arange(len(changed)), pool)

    def _gone(self, gone: I64) -> tuple[I64, Edits]:
        """Return the edits that remove words, and one space beside each word.

        `gone` has the unit indices of the words.

        The space before the word is removed. At the start of a row, or if another edit changes the
        gap before the word, the space after the word is removed instead. If all words of a row
        would be removed, the first word stays.
        """
        units, count = self.units, len(self.texts)
        rows = units.rows.take(gone)
        all_go = np.bincount(rows, minlength=count) == np.bincount(self.words.rows, minlength=count)
        gone = gone[~all_go.take(rows) | (units.numbers.take(gone) > 0)]
        starts, stops = units.starts.take(gone), units.stops.take(gone)
        padded = np.append(self.texts.values, np.uint8(0))
        is_joined, moved = starts == units.starts.take(gone - 1), self.hit.take(gone - 1)
        before = ~is_joined & ~moved & (padded.take(starts - 1) == 0x20)
        behind = (units.numbers.take(gone) == 0) & is_joined | moved
        behind &= ~self.hit.take(gone + 1) & (padded.take(stops) == 0x20)
        behind &= ~np.isin(gone + 2, gone)  # removing the next word removes this space
        nothing = np.full(len(gone), len(self.tables.pool) - 1)
        return self._edits(gone, starts - before, stops + behind, nothing, self.tables.pool)

    def _spelled(self, hit: I64, counts: I64) -> tuple[I64, Edits]:
        """Return the edits that change letters of each hit word.

        `counts` has for each word the number of places where letters change. If the new word has a
        letter pair unknown to the channel, its edits are drawn again. After `ATTEMPTS` draws in
        all, the word stays unchanged.
        """
        parts, left = [], np.arange(len(hit))
        for attempt in range(ATTEMPTS):
            units, edits = self._respelled(hit.take(left), counts.take(left), attempt)
            bad = np.isin(units, self._odd(units, edits))
            parts.append((units[~bad], edits.keep(~bad)))
            left = left[np.isin(hit.take(left), units[bad])]
        units = np.concatenate([units for units, _ in parts])
        return np.sort(units), Edits.join([edits for _, edits in parts], units)

    def _odd(self, units: I64, edits: Edits) -> list[int]:
        """Return the indices in `self.units` of words that get a letter pair the channel lacks."""
        small, base = self.words.small.tobytes(), self.words.base
        edges = edits.starts - base, edits.stops - base, edits.replacements // CASINGS
        found = []
        every = zip(units.tolist(), *(part.tolist() for part in edges), strict=True)
        for unit, own in groupby(every, key=itemgetter(0)):
            at = start = int(self.units.starts[unit]) - base
            stop = int(self.units.stops[unit]) - base
            form = ""
            for _, first, last, option in own:
                form += small[at:first].decode() + self.tables.forms[option]
                at = last
            if self.tables.lacks(small[start:stop].decode(), form + small[at:stop].decode()):
                found.append(unit)
        return found

    def _respelled(self, hit: I64, counts: I64, attempt: int) -> tuple[I64, Edits]:
        """Return edits that replace parts (up to three letters) of each hit word.

        `counts` has the number of parts to draw for each word. Parts are drawn by their weights,
        anew for each `attempt` (0, 1, ...). A drawn part is dropped if it overlaps an earlier part
        of the word, or begins at the same letter. Equal words are searched for parts only once.
        """
        words, tables, chosen = self.words, self.tables, self.units.words.take(hit)
        starts, stops = words.starts.take(chosen), words.stops.take(chosen)
        hashes = words.hashes.take(chosen)
        # Words that are too long for a hash have hash 0: each gets a number of its own instead.
        alone = np.arange(len(hit)).astype(np.uint64)
        hashes = np.where(hashes == 0, alone, hashes)
        _, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        edges = starts.take(firsts) - words.base, stops.take(firsts) - words.base
        begins, heads, weights, groups = tables.parts(words.small, *edges)
        sums = np.concatenate([[0], np.cumsum(weights)])
        bounds = np.append(heads, len(begins)) * SIZES
        low, high = sums.take(bounds[:-1]).take(which), sums.take(bounds[1:]).take(which)

        numbers = np.arange(int(counts.max(initial=0)))
        number, owners = np.nonzero((counts > numbers[:, None]) & (high > low))
        draws = self._draws(hit.take(owners), LETTER + number)
        draws = draw_array(draws, attempt) if attempt else draws
        # The high half of the draw chooses the part, the low half its replacement.
        target = (draws >> _HALF).astype(np.int64)
        target = low.take(owners) + (target * (high - low).take(owners) >> CHANCE_BITS)
        part = np.searchsorted(sums, target, side="right") - 1
        order = np.lexsort((part, owners))  # stable: of equal parts, the first draw is first
        order = order.take(_compatible(owners.take(order), part.take(order)))
        owners, part, draws = owners.take(order), part.take(order), draws.take(order)

        written = tables.pick(groups.take(part), draws << _HALF)
        coarse = np.flatnonzero(tables.kinds.take(written) == COARSER)
        coarser = tables.details.take(written.take(coarse))
        written[coarse] = tables.pick(coarser, draw_array(draws.take(coarse), 0))
        starts, cases = starts.take(owners), words.cases.take(chosen.take(owners))
        moved = starts - begins.take(heads).take(which.take(owners))
        first, last = (begins.take(part // SIZES + more) + moved for more in (0, part % SIZES))
        casings = np.where(cases == UPPER, 2, (cases > 0) & (first == starts))
        return self._edits(hit.take(owners), first, last, written * CASINGS + casings, tables.pool)


@lru_cache(maxsize=1 << 16)
def _recased(word: bytes, case: int) -> str | None:
    """Return a word, given as UTF-8, in the case `case` (`profile.SMALL_CASE`, ...).

    Returns None if the word already has this case.
    """
    text = word.decode()
    form = cased(lower(text), _WRITTEN_CASES[case])
    return form if form != text else None


def _compatible(words: I64, parts: I64) -> I64:
    """Return the indices of drawn parts of words that can all change: they do not overlap.

    Draw i chose part `parts[i]` (an index in `ChannelTables.parts`) of word `words[i]`. Draws are
    sorted by word, then by part. If parts begin at the same letter, the first is kept.
    """
    at = parts // SIZES
    ends, keep = at + parts % SIZES, np.ones(len(words), np.bool_)
    for back in range(1, len(LETTERS)):
        same = words[back:] == words[:-back]
        keep[back:] &= ~same | ((at[back:] >= ends[:-back]) & (at[back:] > at[:-back]))
    return np.flatnonzero(keep)


def _with_habits(edits: Edits, texts: Texts, habits: I64) -> Edits:
    """Apply the habit of each row, such as writing in capitals, to all text of the row.

    `habits` has for each row an index in `_HABITS`; `len(_HABITS)` means no habit. The replacements
    of `edits` are rewritten, and edits that rewrite the text between them are added.
    """
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

    # The habit is applied to all characters of these rows that no edit replaces.
    at, owners = within(texts.offsets.take(rows), texts.lengths.take(rows))
    rows = rows.take(owners)
    covering = np.searchsorted(edits.starts, at, side="right") - 1
    reach = np.append(np.maximum.accumulate(edits.stops), 0).take(covering)
    free = ((texts.values.take(at) & 0xC0) != 0x80) & (at >= reach)
    at, rows = at[free], rows[free]
    points = code_points(texts.values, at)
    pairs, which = np.unique(points * len(_HABITS) + habits.take(rows), return_inverse=True)
    clean = [divmod(pair, len(_HABITS)) for pair in pairs.tolist()]
    forms = [_HABITS[kind](chr(point)) for point, kind in clean]
    changed = np.array(
        [form != chr(c) for form, (c, _) in zip(forms, clean, strict=True)], np.bool_
    )
    pool = Texts.from_strings(forms).to_arrow()
    characters = Edits(rows, at, at + utf8_lengths(points), which, pool)
    return Edits.join([edits, characters.keep(changed[which])])
