"""Edits of rows of text: how they are checked, written, and joined over successive transforms.

A transform never writes text. It proposes replacements of byte ranges and `rewritten` writes them,
so no byte outside of an edit can change. `compose` joins the edits of successive transforms into
edits that lead from the clean text to the noisy text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.text.buffers import (
    I64,
    U8,
    Bool,
    Texts,
    Tokens,
    are_typed,
    as_arrow,
    code_points,
    joins_previous,
    overlapping,
    within,
)
from noisegen.text.sequences import forbidden_sequences
from noisegen.text.spans import Spans

SIGNS_LEAD = 0xE0  # first UTF-8 byte of U+0800 to U+0FFF, where the checked vowel signs lie
REACH = 192  # bytes before and after an edit that are searched for forbidden sequences


def _faults(text: bytes) -> int:
    """Count the forbidden letter sequences in UTF-8 bytes; incomplete characters are skipped."""
    return forbidden_sequences(text.decode(errors="ignore")).total()


def _legal(text: bytes, edits: Sequence[tuple[int, int, bytes]]) -> list[bool]:
    """Tell for each edit whether to keep it, so that `text` gets no new forbidden sequences.

    An edit is (start, stop, replacement). If all edits together add no forbidden sequence, all are
    kept. Otherwise each edit is checked in turn with the text around it, as forbidden sequences are
    short and never cross a space.
    """
    ends = [0, *(stop for _, stop, _ in edits)]
    parts = [text[end:start] + new for end, (start, _, new) in zip(ends, edits, strict=False)]
    most = count = _faults(text)
    if _faults(b"".join([*parts, text[ends[-1] :]])) <= most:
        return [True] * len(edits)
    kept, before = list[bool](), b""
    for end, (start, stop, new) in zip(ends, edits, strict=False):
        before = (before + text[end:start]).rpartition(b" ")[2][-REACH:]
        reach = stop + REACH
        clean, behind = text[start:stop], text[stop : text.find(b" ", stop, reach) + 1 or reach]
        more = _faults(before + new + behind) - _faults(before + clean + behind)
        kept.append(count + more <= most)
        count += more * kept[-1]
        before += new if kept[-1] else clean
    return kept


@dataclass(frozen=True)
class Edits:
    """Replacements of byte ranges in rows of text, ascending and disjoint.

    Edit i replaces the bytes from starts[i] to stops[i] of `Texts.values` by the text
    pool[replacements[i]] of a binary Arrow array. An insertion has start == stop. `rows` has the
    index of each edit's row; index 0 is the first row of the texts.
    """

    rows: I64
    starts: I64
    stops: I64
    replacements: I64
    pool: pa.Array

    @classmethod
    def none(cls) -> "Edits":
        """Return an empty set of edits."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, none, Texts.from_strings([]).to_arrow())

    @classmethod
    def join(cls, parts: Sequence["Edits"], order_by: I64 | None = None) -> "Edits":
        """Join several sets of edits into one, in ascending order; no two edits may overlap.

        Edits are sorted by their start, or by `order_by`, which has a sort key for each edit of all
        sets. The sort is stable. The `pool` of the result has at most one text per edit.
        """
        parts = [part for part in parts if len(part)]
        if not parts:
            return cls.none()
        if len(parts) == 1 and order_by is None and len(parts[0].pool) <= len(parts[0]):
            return parts[0]
        rows, starts, stops = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("rows", "starts", "stops")
        )
        pool = pa.concat_arrays([part.pool.take(as_arrow(part.replacements)) for part in parts])
        order = np.argsort(starts if order_by is None else order_by, kind="stable")
        return cls(rows.take(order), starts.take(order), stops.take(order), order, pool)

    def __len__(self) -> int:
        return len(self.starts)

    def keep(self, chosen: Bool) -> "Edits":
        """Return the edits whose flag in `chosen` is set."""
        if chosen.all():
            return self
        rows, starts, stops = self.rows[chosen], self.starts[chosen], self.stops[chosen]
        return Edits(rows, starts, stops, self.replacements[chosen], self.pool)

    def outside(self, spans: Spans) -> "Edits":
        """Return the edits that overlap none of the spans."""
        return self.keep(~spans.touch(self.starts, self.stops))

    def whole(self, texts: Texts) -> "Edits":
        """Return the edits that begin and end between characters, not inside a flag or emoji.

        Marks that a key of its own writes, such as vowel signs, count as characters here.
        """
        if not len(self) or texts.is_ascii:
            return self
        kept = np.ones(len(self), np.bool_)
        for edges in (self.starts, self.stops):
            points = code_points(texts.values, edges)
            inside = joins_previous(points) & ~are_typed(points)
            inside &= texts.offsets.take(self.rows) < edges
            kept &= ~(inside & (edges < texts.offsets.take(self.rows + 1)))
        return self.keep(kept)

    def legal(self, texts: Texts) -> "Edits":
        """Return the edits that create no letter sequence that the script of their row forbids.

        An edit is dropped if the row would have more forbidden sequences with it than in `texts`.
        Only rows in scripts such as Devanagari and Thai, which have vowel signs, are checked.
        """
        if not len(self) or not (texts.window == SIGNS_LEAD).any():
            return self
        written, kept = self.written().to_arrow().to_pylist(), np.ones(len(self), np.bool_)
        rows, firsts = np.unique(self.rows, return_index=True)
        for row, first, last in zip(rows, firsts, np.append(firsts[1:], len(self)), strict=True):
            base, end = texts.offsets[row], texts.offsets[row + 1]
            text = texts.values[base:end].tobytes()
            edges = zip(self.starts[first:last] - base, self.stops[first:last] - base, strict=True)
            edits = [(*edge, new) for edge, new in zip(edges, written[first:last], strict=True)]
            if SIGNS_LEAD in text:
                kept[first:last] = _legal(text, edits)
        return self.keep(kept)

    def from_row(self, first: int) -> "Edits":
        """Return the same edits for a larger batch, in which row 0 has the index `first`."""
        return replace(self, rows=self.rows + first)

    def written(self) -> Texts:
        """Return the replacement text of every edit."""
        return Texts.from_arrow(self.pool.take(as_arrow(self.replacements)))

    @cached_property
    def _sizes(self) -> I64:
        """Size in bytes of the replacement of each edit."""
        return Texts.from_arrow(self.pool).lengths.take(self.replacements)

    @cached_property
    def _growth(self) -> I64:
        """Number of bytes that the first 0, 1, 2, ... edits add to the text."""
        return np.concatenate([[0], np.cumsum(self._sizes - (self.stops - self.starts))])

    def growth_at(self, spans: Spans) -> tuple[I64, I64]:
        """Return by how many bytes the edits move the start and the stop of each span."""
        before = self._growth[np.searchsorted(self.stops, spans.starts, side="right")]
        within = self._growth[np.searchsorted(self.starts, spans.stops, side="left")]
        return before, within

    def growth_of_rows(self, count: int) -> I64:
        """Return how many bytes the edits add before each of `count` rows, and in total."""
        ends = np.cumsum(np.bincount(self.rows, minlength=count))
        return np.append(0, self._growth.take(ends))

    def written_over(self, stretch: U8, base: int) -> U8:
        """Apply all edits to `stretch`, a range of bytes that contains them, and return the result.

        `base` is the offset of the stretch in `Texts.values`. One Arrow call gathers the unchanged
        pieces and the replacements in turn.
        """
        count = len(self)
        cuts = np.empty(2 * count + 2, np.int64)  # edges of the bytes kept, replaced, ..., kept
        cuts[0], cuts[-1] = 0, len(stretch)
        cuts[1:-1:2], cuts[2:-1:2] = self.starts - base, self.stops - base
        pool = Texts.from_arrow(self.pool)
        pieces = Texts(
            np.concatenate([stretch, pool.window]),
            np.concatenate([cuts, cuts[-1] + pool.offsets[1:] - pool.offsets[0]]),
        )
        order = np.arange(2 * count + 1)
        order[1::2] = 2 * count + 1 + self.replacements
        return Texts.from_arrow(pieces.to_arrow().take(as_arrow(order))).window

    def once(self, words: Tokens, changed: Spans) -> tuple["Edits", Spans]:
        """Return the edits of words that no step has changed yet, and the spans of these words.

        `changed` has the spans of words that earlier steps changed. An edit belongs to the words
        that it overlaps or, if it overlaps none, to the words that it touches. If several edits
        belong to a word, the first is kept. `Row.once` does the same for one row.
        """
        starts, stops = self.starts, self.stops
        if len(words):
            of_row = np.searchsorted(words.rows, np.stack([self.rows, self.rows + 1]))
            firsts = np.searchsorted(words.stops, starts, side="right")
            lasts = np.searchsorted(words.starts, stops) - 1
            apart = np.flatnonzero(firsts > lasts)
            low, high = starts.take(apart), stops.take(apart)
            firsts[apart] = np.searchsorted(words.stops, low)
            lasts[apart] = np.searchsorted(words.starts, high, side="right") - 1
            firsts, lasts = np.maximum(firsts, of_row[0]), np.minimum(lasts, of_row[1] - 1)
            has_word = np.flatnonzero(firsts <= lasts)
            starts, stops = starts.copy(), stops.copy()
            first, last = firsts.take(has_word), lasts.take(has_word)
            starts[has_word] = np.minimum(starts.take(has_word), words.starts.take(first))
            stops[has_word] = np.maximum(stops.take(has_word), words.stops.take(last))
        free = np.flatnonzero(~changed.touch(starts, stops))
        free = np.delete(free, overlapping(starts.take(free), stops.take(free)))
        kept = np.zeros(len(self), np.bool_)
        kept[free] = True
        return self.keep(kept), Spans(starts.take(free), stops.take(free))

    def recorded(
        self, texts: Texts, row_numbers: I64, step_bits: I64, bytes_added: I64
    ) -> "EditRecord":
        """Return the record of these edits; edits that touch each other become one edit.

        For each row of `texts`, `row_numbers` has its index in the batch, `step_bits` the bit
        `1 << step`, and `bytes_added` the bytes that earlier portions of the pass added.
        """
        origin = texts.offsets[self.rows]
        starts, stops, rows = self.starts - origin, self.stops - origin, row_numbers[self.rows]
        of_row = self._growth[np.searchsorted(self.rows, self.rows, side="left")]
        noisy = starts + self._growth[:-1] - of_row + bytes_added[self.rows]
        record = EditRecord(rows, starts, stops, noisy, noisy + self._sizes, step_bits[self.rows])
        return EditRecord.touching([record])


def rewritten(
    texts: Texts, parts: Iterable[Edits], spans: Sequence[Spans] = ()
) -> tuple[Texts, list[Spans]]:
    """Return the texts with all edits written, and each set of spans moved along with the text.

    A moved span covers all text that is written inside it. `parts` yields the edits in ascending
    portions. Each portion is written before the next one is taken, to bound the memory.
    """
    at, stop = int(texts.offsets[0]), int(texts.offsets[-1])
    offsets, pieces = texts.offsets - at, []
    shifts = [np.full((2, len(these.starts)), -at) for these in spans]
    for part in parts:
        if len(part):
            end = int(part.stops[-1])
            pieces.append(part.written_over(texts.values[at:end], at))
            offsets = offsets + part.growth_of_rows(len(texts))
            for these, shift in zip(spans, shifts, strict=True):
                shift += part.growth_at(these)
            at = end
    values = np.concatenate([*pieces, texts.values[at:stop]])
    moved = (
        Spans.join([Spans(these.starts + before, these.stops + within)])
        for these, (before, within) in zip(spans, shifts, strict=True)
    )
    return Texts(values, offsets), list(moved)


class EditRecord(NamedTuple):
    """The edits that turn the clean rows of a batch into its noisy rows.

    An edit has a range in the clean row and a range in the noisy row, in bytes from the start of
    the row. Edits are sorted by row and position, and no two edits of a row touch. If step s made
    an edit, alone or with other steps, bit s of the edit's `step_bits` is set.
    """

    rows: I64
    clean_starts: I64
    clean_stops: I64
    noisy_starts: I64
    noisy_stops: I64
    step_bits: I64

    @classmethod
    def none(cls) -> "EditRecord":
        """Return no edits: arrays of length 0."""
        return cls(*np.zeros((6, 0), np.int64))

    def take(self, chosen: Bool | I64 | slice) -> "EditRecord":
        """Return the edits that a mask, an array of indices or a slice selects."""
        return EditRecord(*(column[chosen] for column in self))

    def changes(self, clean: Texts, noisy: Texts) -> Bool:
        """Tell for each edit whether its noisy text differs from its clean text.

        The texts are equal if one transform undid the edit of another.
        """
        sizes = self.clean_stops - self.clean_starts
        different: Bool = sizes != self.noisy_stops - self.noisy_starts
        for start in range(0, len(sizes), _COMPARED):
            equal = start + np.flatnonzero(~different[start : start + _COMPARED])
            rows, same = self.rows[equal], sizes[equal]
            ours, owners = within(clean.offsets[rows] + self.clean_starts[equal], same)
            theirs, _ = within(noisy.offsets[rows] + self.noisy_starts[equal], same)
            different[equal[owners[clean.values[ours] != noisy.values[theirs]]]] = True
        return different

    @classmethod
    def join(cls, parts: Iterable["EditRecord"]) -> "EditRecord":
        """Join sets of edits, each of other rows, into one set sorted by row."""
        parts = [part for part in parts if len(part.rows)] or [cls.none()]
        joined = (
            parts[0] if len(parts) == 1 else cls(*map(np.concatenate, zip(*parts, strict=True)))
        )
        if (joined.rows[1:] >= joined.rows[:-1]).all():
            return joined
        return joined.take(np.argsort(joined.rows, kind="stable"))

    @classmethod
    def touching(cls, parts: Sequence["EditRecord"]) -> "EditRecord":
        """Join the edits of a pass's portions, in order of position; touching edits become one."""
        record = cls.join(parts)
        heads = _group_heads(record.rows, record.clean_starts, record.clean_stops)
        if len(heads) == len(record.rows):
            return record
        lasts = np.append(heads[1:], len(record.rows)) - 1
        stops = {name: getattr(record, name)[lasts] for name in ("clean_stops", "noisy_stops")}
        return record.take(heads)._replace(**stops)


_COMPARED = 1 << 16  # edits whose clean and noisy bytes `changes` compares at once
# Sorting by row * `_ROW` + position sorts by row, then by position: rows have under 2^31 bytes.
_ROW = 1 << 32


def compose(first: EditRecord, second: EditRecord) -> EditRecord:
    """Join the edits `first` and the edits `second`, which follow them, into one set of edits.

    The noisy text of `first` is the clean text of `second`: the middle text. Edits of the two
    sets that overlap or touch in the middle text become one edit. The joined edit covers the
    whole range from the first to the last of these edits, in the clean and in the noisy text.
    """
    if not len(first.rows) or not len(second.rows):
        return second if not len(first.rows) else first
    rows = np.concatenate([first.rows, second.rows])
    starts = np.concatenate([first.noisy_starts, second.clean_starts])
    stops = np.concatenate([first.noisy_stops, second.clean_stops])
    order = np.argsort(rows * _ROW + starts, kind="stable")  # fast, as both sets are sorted
    rows, starts, stops = rows[order], starts[order], stops[order]
    heads = _group_heads(rows, starts, stops)
    step_bits = np.concatenate([first.step_bits, second.step_bits])[order]
    rows, low, high = rows[heads], starts[heads], np.maximum.reduceat(stops, heads)

    def other_side(edited: I64, middle: tuple[I64, I64], other: tuple[I64, I64]) -> tuple[I64, I64]:
        """Convert the ranges of the joined edits from the middle text to the other text.

        The other text is the clean one for `first`, the noisy one for `second`. `edited` has the
        rows of the edits in one of these sets, `middle` their ranges in the middle text, and
        `other` their ranges in the other text. No edit crosses an end of a joined range, so each
        end moves by the bytes that the edits before it in the row add.
        """
        total = np.concatenate([[0], np.cumsum(other[1] - other[0] - middle[1] + middle[0])])
        of_row = total[np.searchsorted(edited, rows, side="left")]
        axis, at = edited * _ROW, rows * _ROW
        before = np.searchsorted(axis + middle[1], at + low, side="left")
        inside = np.searchsorted(axis + middle[0], at + high, side="right")
        return low + total[before] - of_row, high + total[inside] - of_row

    clean = other_side(first.rows, first[3:5], first[1:3])
    noisy = other_side(second.rows, second[1:3], second[3:5])
    return EditRecord(rows, *clean, *noisy, np.bitwise_or.reduceat(step_bits, heads))


def _group_heads(rows: I64, starts: I64, stops: I64) -> I64:
    """Group the byte ranges that overlap or touch; return the index of each group's first range.

    Ranges must be sorted by row and start; ranges of different rows never touch.
    """
    reach = np.maximum.accumulate(rows * _ROW + stops)
    apart = (rows * _ROW + starts)[1:] > reach[:-1]
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), np.bool_), apart]))
