"""Edits: proposed on byte positions, applied once, composed over successive transforms.

A transform never writes text. It proposes replacements; `apply` writes them, so bytes outside them
are equal by construction, and `compose` keeps the account from the clean text to the noisy one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from noisegen.text.buffers import I64, Bool, Texts, as_arrow
from noisegen.text.spans import Spans


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
        equal ones stay in the order of the parts.
        """
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else cls.none()
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
        here = np.flatnonzero(chosen)
        rows, starts, stops = self.rows.take(here), self.starts.take(here), self.stops.take(here)
        return Edits(rows, starts, stops, self.replacements.take(here), self.pool)

    def outside(self, spans: Spans) -> "Edits":
        """Return the edits that change no protected span."""
        return self.keep(~spans.touch(self.starts, self.stops))

    def written(self) -> Texts:
        """Return the replacement of every edit."""
        return Texts.from_arrow(self.pool.take(as_arrow(self.replacements)))


@dataclass(frozen=True)
class Rewrite:
    """Edits with their replacements at hand, ready to be applied to `Texts`."""

    rows: I64
    starts: I64
    stops: I64
    written: Texts

    @classmethod
    def of(cls, parts: list[tuple[int, Edits]]) -> "Rewrite":
        """Join edits of neighbouring row ranges, each with the number of its first row."""
        parts = [part for part in parts if len(part[1])] or [(0, Edits.none())]
        written = [edits.written() for _, edits in parts]
        lengths = np.concatenate([text.lengths for text in written])
        return cls(
            np.concatenate([edits.rows + first for first, edits in parts]),
            np.concatenate([edits.starts for _, edits in parts]),
            np.concatenate([edits.stops for _, edits in parts]),
            Texts(
                np.concatenate([text.window for text in written]),
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
        )

    @property
    def growth(self) -> I64:
        """Bytes that each edit adds."""
        return self.written.lengths - (self.stops - self.starts)

    def apply(self, texts: Texts) -> Texts:
        """Write the edits: one gather over kept segments and replacements."""
        count, base = len(self.starts), int(texts.offsets[0])
        cuts = np.empty(2 * count + 2, np.int64)  # kept, removed, kept, ..., kept
        cuts[0], cuts[-1] = 0, texts.offsets[-1] - base
        cuts[1:-1:2], cuts[2:-1:2] = self.starts - base, self.stops - base
        pieces = Texts(
            np.concatenate([texts.window, self.written.window]),
            np.concatenate([cuts, cuts[-1] + self.written.offsets[1:]]),
        )
        order = np.arange(2 * count + 1)
        order[1::2] = 2 * count + 1 + np.arange(count)
        joined = Texts.from_arrow(pieces.to_arrow().take(as_arrow(order)))
        added = np.bincount(self.rows, self.growth, len(texts)).astype(np.int64)
        return Texts(joined.window, np.concatenate([[0], np.cumsum(texts.lengths + added)]))

    def moved(self, spans: Spans, base: int) -> Spans:
        """Return protected spans, none touched, in the texts that `apply` returns.

        `base` is the offset of the first row before; after, it is 0.
        """
        total = np.concatenate([[0], np.cumsum(self.growth)])
        shift = total[np.searchsorted(self.stops, spans.starts, side="right")] - base
        return Spans(spans.starts + shift, spans.stops + shift)

    def composed(self, texts: Texts, row_numbers: I64, makers: I64) -> "Composed":
        """Return the edits as an account of rows `row_numbers`, made by `makers` (both per row)."""
        origin = texts.offsets[self.rows]
        starts, stops = self.starts - origin, self.stops - origin
        total = np.concatenate([[0], np.cumsum(self.growth)])
        before = total[:-1] - total[np.searchsorted(self.rows, self.rows, side="left")]
        noisy = starts + before
        columns = (
            row_numbers[self.rows], starts, stops, noisy, noisy + self.written.lengths,
            makers[self.rows],
        )  # fmt: skip
        return Composed(*columns).take(np.argsort(columns[0], kind="stable")).touching_merged()


@dataclass(frozen=True)
class Composed:
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
        return cls(*(np.zeros(0, np.int64) for _ in range(6)))

    def columns(self) -> list[I64]:
        """Return the six columns."""
        return [getattr(self, column.name) for column in fields(self)]

    def take(self, chosen: Bool | I64) -> "Composed":
        """Return the chosen edits."""
        return Composed(*(column[chosen] for column in self.columns()))

    @classmethod
    def join(cls, parts: list["Composed"]) -> "Composed":
        """Return the account of parts that have no row in common."""
        columns = zip(*(part.columns() for part in parts), strict=True)
        joined = cls(*map(np.concatenate, columns))
        return joined.take(np.argsort(joined.rows, kind="stable"))

    def touching_merged(self) -> "Composed":
        """Return the edits of one transform with those that touch joined into one."""
        heads = _group_heads(self.rows, self.clean_starts, self.clean_stops)
        if len(heads) == len(self.rows):
            return self
        tails = np.append(heads[1:], len(self.rows)) - 1
        return Composed(
            self.rows[heads], self.clean_starts[heads], self.clean_stops[tails],
            self.noisy_starts[heads], self.noisy_stops[tails],
            np.bitwise_or.reduceat(self.makers, heads),
        )  # fmt: skip


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
    hulls = rows[heads], starts[heads], np.maximum.reduceat(stops, heads)
    before = first.noisy_starts, first.noisy_stops
    clean = _other_side(first.rows, before, (first.clean_starts, first.clean_stops), hulls)
    after = second.clean_starts, second.clean_stops
    noisy = _other_side(second.rows, after, (second.noisy_starts, second.noisy_stops), hulls)
    return Composed(hulls[0], *clean, *noisy, np.bitwise_or.reduceat(makers, heads))


def _group_heads(rows: I64, starts: I64, stops: I64) -> I64:
    """Return the first index of every run of ranges that overlap or touch (sorted by start)."""
    reach = np.maximum.accumulate(rows * _ROW + stops)
    apart = (rows * _ROW + starts)[1:] > reach[:-1]
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), np.bool_), apart]))


def _other_side(
    rows: I64, middle: tuple[I64, I64], other: tuple[I64, I64], hulls: tuple[I64, I64, I64]
) -> tuple[I64, I64]:
    """Map hulls (row, start, stop) of the middle text to the other side of the given edits.

    Every edit lies inside a hull or apart from all of them, so an end of a hull moves by the growth
    of the edits of its row before it.
    """
    hull_rows, low, high = hulls
    growth = (other[1] - other[0]) - (middle[1] - middle[0])
    total = np.concatenate([[0], np.cumsum(growth)])
    of_row = total[np.searchsorted(rows, hull_rows, side="left")]
    axis, hull_axis = rows * _ROW, hull_rows * _ROW
    before = np.searchsorted(axis + middle[1], hull_axis + low, side="left")
    inside = np.searchsorted(axis + middle[0], hull_axis + high, side="right")
    return low + total[before] - of_row, high + total[inside] - of_row
