"""Vectors as the metrics want them: of one width, finite, of length one."""

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError

Vectors = npt.NDArray[np.floating]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_BLOCK = 1 << 17  # numbers that are converted at a time: they stay in the cache


def unit(vectors: Vectors, start: int = 0) -> F32:
    """Return the rows divided by their lengths; a zero row stays zero.

    Raises UsageError for a row that holds NaN or infinity; `start` is the number of the first row.
    """
    made = np.empty(vectors.shape, np.float32)
    for part in _parts(vectors):
        rows = np.asarray(vectors[part], np.float64)
        lengths = _lengths(rows, start + part.start)
        np.divide(rows, np.where(lengths == 0, 1, lengths)[:, None], out=made[part])
    return made


def cosines(one: Vectors, other: Vectors) -> F64:
    """Return the cosine of each pair of rows, rounded to twelve digits; 0 if one of them is zero.

    Rounded, cosines that are equal but for the order of summation are equal numbers: ties stay
    ties. Raises UsageError for a row that holds NaN or infinity, and for different shapes.
    """
    check_pairs(one, other)
    return np.concatenate([_cosines(one[part], other[part], part.start) for part in _parts(one)])


def _cosines(one: Vectors, other: Vectors, start: int) -> F64:
    sides = [np.asarray(side, np.float64) for side in (one, other)]
    products: F64 = np.einsum("ij,ij->i", *sides)
    lengths = _lengths(sides[0], start) * _lengths(sides[1], start)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).round(12)


def _parts(vectors: Vectors) -> list[slice]:
    """Return slices of rows that are small enough to stay in the cache."""
    step = max(1, _BLOCK // max(1, vectors.shape[1]))
    return [slice(start, start + step) for start in range(0, len(vectors), step)]


def _lengths(rows: F64, start: int) -> F64:
    """Return the rows' lengths; `start` is the number of the first."""
    lengths: F64 = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    wrong = np.flatnonzero(~np.isfinite(lengths))
    if len(wrong):
        place = start + int(wrong[0])
        raise UsageError(f"vector {place} holds NaN or infinity; encode its text again")
    return lengths


def check_pairs(one: Vectors, other: Vectors) -> None:
    """Raise UsageError unless both are matrices of the same shape with at least one row."""
    check_widths(one, other)
    if len(one) != len(other):
        raise UsageError(f"{len(one):,} vectors on one side of the pairs, {len(other):,} on the "
                         "other")  # fmt: skip


def check_widths(one: Vectors, other: Vectors) -> None:
    """Raise UsageError unless both are matrices of the same width with at least one row."""
    for vectors in (one, other):
        if vectors.ndim != 2 or not len(vectors):
            raise UsageError(f"vectors must have the shape (texts, width) and a text at least, not "
                             f"{vectors.shape}")  # fmt: skip
    if one.shape[1] != other.shape[1]:
        widths = f"width {one.shape[1]} cannot be compared with width {other.shape[1]}"
        raise UsageError(f"vectors of {widths}; take both from encoders of the same width")
