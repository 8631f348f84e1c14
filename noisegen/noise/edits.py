"""Edits: proposed on byte positions, applied once, composed over successive transforms.

A transform never writes text. It proposes replacements; `rewritten` writes them, so bytes outside
are equal by construction, and `compose` keeps the account from the clean text to the noisy one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.text.buffers import I64, U8, Bool, Texts, as_arrow, within
from noisegen.text.spans import NO_SPANS, Spans


@dataclass(frozen=True)
class Edits:
    """Replacements in `Texts`: bytes [start, stop) of `values` become pool[replacement].

    Ascending and disjoint; an insertion has start == stop. `rows` counts from the first row of the
    texts. `pool` is a binary Arrow array.
    """

    rows: I64
    starts: I64
    stops: I64
    replacements: I64
    pool: pa.Array

    @classmethod
    def none(cls) -> "Edits":
        """Return no edits at all."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, none, Texts.from_strings([]).to_arrow())

    @classmethod
    def join(cls, parts: Sequence["Edits"], order_by: I64 | None = None) -> "Edits":
        """Return the edits of all parts, which do not overlap, in ascending order.

        They are sorted by where they start, or by `order_by` (one entry per edit of all parts);
        equal ones stay in the order of the parts; a single part is returned as it is. Their pool is
        no larger than they need.
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
        """Return the chosen edits."""
        if chosen.all():
            return self
        rows, starts, stops = self.rows[chosen], self.starts[chosen], self.stops[chosen]
        return Edits(rows, starts, stops, self.replacements[chosen], self.pool)

    def outside(self, spans: Spans) -> "Edits":
        """Return the edits that change no protected span."""
        return self.keep(~spans.touch(self.starts, self.stops))

    def from_row(self, first: int) -> "Edits":
        """Return the edits in texts that have so many more rows before these."""
        return replace(self, rows=self.rows + first)

    def written(self) -> Texts:
        """Return the replacement of every edit."""
        return Texts.from_arrow(self.pool.take(as_arrow(self.replacements)))

    @cached_property
    def _sizes(self) -> I64:
        """The number of bytes that each edit writes."""
        return Texts.from_arrow(self.pool).lengths.take(self.replacements)

    @cached_property
    def _growth(self) -> I64:
        """How many bytes the edits before each one add, and behind the last one all of them."""
        return np.concatenate([[0], np.cumsum(self._sizes - (self.stops - self.starts))])

    def growth_before(self, spans: Spans) -> I64:
        """Return how many bytes the edits before each span add."""
        grown: I64 = self._growth[np.searchsorted(self.stops, spans.starts, side="right")]
        return grown

    def growth_of_rows(self, count: int) -> I64:
        """Return how many bytes the edits before each of so many rows add, and behind all."""
        grown: I64 = self._growth[np.searchsorted(self.rows, np.arange(count + 1))]
        return grown

    def written_over(self, stretch: U8, base: int) -> U8:
        """Return the bytes from `base` with these edits: one gather over what is kept or new."""
        count = len(self)
        cuts = np.empty(2 * count + 2, np.int64)  # kept, removed, kept, ..., kept
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

    def composed(self, texts: Texts, row_numbers: I64, makers: I64) -> "Composed":
        """Return the edits as an account of rows `row_numbers`, made by `makers` (both per row).

        Edits of a row that touch are joined into one.
        """
        origin = texts.offsets[self.rows]
        starts, stops, rows = self.starts - origin, self.stops - origin, row_numbers[self.rows]
        of_row = self._growth[np.searchsorted(self.rows, self.rows, side="left")]
        noisy = starts + self._growth[:-1] - of_row
        account = Composed(rows, starts, stops, noisy, noisy + self._sizes, makers[self.rows])
        account = account.take(np.argsort(rows, kind="stable"))
        heads = _group_heads(account.rows, account.clean_starts, account.clean_stops)
        if len(heads) == len(rows):
            return account
        first, last = account.take(heads), account.take(np.append(heads[1:], len(rows)) - 1)
        return first._replace(clean_stops=last.clean_stops, noisy_stops=last.noisy_stops)


def rewritten(texts: Texts, parts: Iterable[Edits], spans: Spans = NO_SPANS) -> tuple[Texts, Spans]:
    """Write edits, and return the texts and their protected spans, which no edit touches.

    Each part of the edits lies behind the one before, and is forgotten when it is written.
    """
    at, stop = int(texts.offsets[0]), int(texts.offsets[-1])
    offsets, shift, pieces = texts.offsets - at, np.full(len(spans.starts), -at), []
    for part in parts:
        if len(part):
            end = int(part.stops[-1])
            pieces.append(part.written_over(texts.values[at:end], at))
            offsets = offsets + part.growth_of_rows(len(texts))
            shift += part.growth_before(spans)
            at = end
    values = np.concatenate([*pieces, texts.values[at:stop]])
    return Texts(values, offsets), Spans(spans.starts + shift, spans.stops + shift)


class Composed(NamedTuple):
    """Edits from the clean rows to the noisy rows of a batch; positions are bytes in their row.

    Sorted by row and position, no two of a row touch; `makers` is a bit mask of the transforms.
    """

    rows: I64
    clean_starts: I64
    clean_stops: I64
    noisy_starts: I64
    noisy_stops: I64
    makers: I64

    @classmethod
    def none(cls) -> "Composed":
        """Return the account of rows that nothing changed."""
        return cls(*np.zeros((6, 0), np.int64))

    def take(self, chosen: Bool | I64) -> "Composed":
        """Return the chosen edits."""
        return Composed(*(column[chosen] for column in self))

    def changes(self, clean: Texts, noisy: Texts) -> Bool:
        """Tell which edits change their text: one transform may undo what another did."""
        sizes = self.clean_stops - self.clean_starts
        different: Bool = sizes != self.noisy_stops - self.noisy_starts
        equal = np.flatnonzero(~different)
        rows, sizes = self.rows[equal], sizes[equal]
        ours, owners = within(clean.offsets[rows] + self.clean_starts[equal], sizes)
        theirs, _ = within(noisy.offsets[rows] + self.noisy_starts[equal], sizes)
        different[equal[owners[clean.values[ours] != noisy.values[theirs]]]] = True
        return different

    @classmethod
    def join(cls, parts: Iterable["Composed"]) -> "Composed":
        """Return the account of parts that have no row in common."""
        joined = cls(*map(np.concatenate, zip(*parts, strict=True)))
        return joined.take(np.argsort(joined.rows, kind="stable"))


_ROW = 1 << 32  # rows side by side on one axis; no row is longer than 2^31 bytes


def compose(first: Composed, second: Composed) -> Composed:
    """Return the edits of `first` followed by `second`.

    The noisy side of `first` is the clean side of `second`. Edits that overlap or touch on that
    middle text become one, whose span on either side is the hull of its parts.
    """
    if not len(first.rows) or not len(second.rows):
        return second if not len(first.rows) else first
    rows = np.concatenate([first.rows, second.rows])
    starts = np.concatenate([first.noisy_starts, second.clean_starts])
    stops = np.concatenate([first.noisy_stops, second.clean_stops])
    order = np.argsort(rows * _ROW + starts, kind="stable")  # two ascending runs: a merge
    rows, starts, stops = rows[order], starts[order], stops[order]
    heads = _group_heads(rows, starts, stops)
    makers = np.concatenate([first.makers, second.makers])[order]
    rows, low, high = rows[heads], starts[heads], np.maximum.reduceat(stops, heads)

    def other_side(edited: I64, middle: tuple[I64, I64], other: tuple[I64, I64]) -> tuple[I64, I64]:
        """Map the hulls from the middle text to the other side of the edits of rows `edited`.

        Every edit lies inside a hull or apart from all of them, so an end of a hull moves by the
        growth of the edits of its row before it.
        """
        total = np.concatenate([[0], np.cumsum(other[1] - other[0] - middle[1] + middle[0])])
        of_row = total[np.searchsorted(edited, rows, side="left")]
        axis, at = edited * _ROW, rows * _ROW
        before = np.searchsorted(axis + middle[1], at + low, side="left")
        inside = np.searchsorted(axis + middle[0], at + high, side="right")
        return low + total[before] - of_row, high + total[inside] - of_row

    clean = other_side(first.rows, first[3:5], first[1:3])
    noisy = other_side(second.rows, second[1:3], second[3:5])
    return Composed(rows, *clean, *noisy, np.bitwise_or.reduceat(makers, heads))


def _group_heads(rows: I64, starts: I64, stops: I64) -> I64:
    """Return the first index of every run of ranges that overlap or touch (sorted by start)."""
    reach = np.maximum.accumulate(rows * _ROW + stops)
    apart = (rows * _ROW + starts)[1:] > reach[:-1]
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), np.bool_), apart]))
