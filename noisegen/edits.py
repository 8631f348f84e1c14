"""Edits: proposed on byte positions, applied once, composed over successive transforms.

A transform never writes text. It proposes replacements; `apply` writes them, so bytes outside them
are equal by construction, and `compose` keeps the account from the clean text to the noisy one.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisegen.draws import I64
from noisegen.spans import Spans
from noisegen.text import Bool, Texts, as_arrow


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
        sizes = self.written.lengths
        columns = (row_numbers[self.rows], starts, stops, noisy, noisy + sizes, makers[self.rows])
        order = np.argsort(columns[0], kind="stable")
        return merge_touching(Composed(*columns).take(order))


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

    def take(self, chosen: Bool | I64) -> "Composed":
        """Return the chosen edits."""
        return Composed(*(column[chosen] for column in self.columns()))

    def split(self, chosen: Bool) -> tuple["Composed", "Composed"]:
        """Return the edits of the chosen rows (one flag a row of the batch), and the rest."""
        here = chosen[self.rows]
        return self.take(here), self.take(~here)

    @classmethod
    def join(cls, parts: list["Composed"]) -> "Composed":
        """Return the account of parts that have no row in common."""
        columns = [
            np.concatenate(column) for column in zip(*(p.columns() for p in parts), strict=True)
        ]
        return cls(*columns).take(np.argsort(columns[0], kind="stable"))

    def columns(self) -> tuple[I64, I64, I64, I64, I64, I64]:
        """Return rows, clean starts and stops, noisy starts and stops, makers."""
        clean, noisy = (self.clean_starts, self.clean_stops), (self.noisy_starts, self.noisy_stops)
        return (self.rows, *clean, *noisy, self.makers)


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
    owner, low = rows[heads], starts[heads]
    high = np.maximum.reduceat(stops, heads)
    return Composed(
        owner,
        *_seen_from(first.rows, first.noisy_starts, first.noisy_stops,
                    first.clean_starts, first.clean_stops, owner, low, high),
        *_seen_from(second.rows, second.clean_starts, second.clean_stops,
                    second.noisy_starts, second.noisy_stops, owner, low, high),
        np.bitwise_or.reduceat(makers, heads),
    )  # fmt: skip


_ROW = 1 << 32  # rows side by side on one axis; no row is longer than 2^31 bytes


def _group_heads(rows: I64, starts: I64, stops: I64) -> I64:
    """Return the first index of every run of ranges that overlap or touch (sorted by start)."""
    reach = np.maximum.accumulate(rows * _ROW + stops)
    apart = (rows * _ROW + starts)[1:] > reach[:-1]
    return np.flatnonzero(np.concatenate([[True], apart]))


def _seen_from(
    rows: I64, starts: I64, stops: I64, other_starts: I64, other_stops: I64,
    owner: I64, low: I64, high: I64,
) -> tuple[I64, I64]:  # fmt: skip
    """Map hulls [low, high) of rows `owner` to the other side of the given edits.

    Every edit lies inside a hull or apart from all of them, so an end of a hull moves by the growth
    of the edits of its row before it.
    """
    growth = (other_stops - other_starts) - (stops - starts)
    total = np.concatenate([[0], np.cumsum(growth)])
    row_first = np.searchsorted(rows, owner, side="left")
    axis = rows * _ROW
    before = np.searchsorted(axis + stops, owner * _ROW + low, side="left")
    inside = np.searchsorted(axis + starts, owner * _ROW + high, side="right")
    return low + total[before] - total[row_first], high + total[inside] - total[row_first]


def merge_touching(edits: Composed) -> Composed:
    """Return the edits of one transform with those that touch joined into one."""
    if not len(edits.rows):
        return edits
    heads = _group_heads(edits.rows, edits.clean_starts, edits.clean_stops)
    if len(heads) == len(edits.rows):
        return edits
    tails = np.append(heads[1:], len(edits.rows)) - 1
    return Composed(
        edits.rows[heads], edits.clean_starts[heads], edits.clean_stops[tails],
        edits.noisy_starts[heads], edits.noisy_stops[tails],
        np.bitwise_or.reduceat(edits.makers, heads),
    )  # fmt: skip
