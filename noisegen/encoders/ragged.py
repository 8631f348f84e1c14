"""Rows of different lengths as two arrays, the form in which token ids are kept and moved."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Ragged:
    """Row i is `values[offsets[i]:offsets[i + 1]]`; `values` int32, `offsets` int64."""

    values: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Ragged":
        """Make one of lists."""
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        total = int(lengths.sum())
        values = np.fromiter((value for row in rows for value in row), np.int32, total)
        return cls(values, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def joined(cls, parts: Iterable["Ragged"]) -> "Ragged":
        """Put rows of several under each other."""
        parts = list(parts)
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)])
        values = np.concatenate([np.zeros(0, np.int32), *(part.values for part in parts)])
        return cls(values, np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> npt.NDArray[np.int32]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The length of every row."""
        return np.diff(self.offsets)

    def take(self, rows: Ints) -> "Ragged":
        """Return these rows, in this order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        shift = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        return Ragged(self.values[np.arange(offsets[-1]) + shift], offsets)

    def padded(self, fill: int) -> npt.NDArray[np.int64]:
        """Return shape (rows, longest row), filled up at the right."""
        out = np.full((len(self), max(self.lengths, default=0)), fill, np.int64)
        out[np.arange(out.shape[1]) < self.lengths[:, None]] = self.values
        return out
