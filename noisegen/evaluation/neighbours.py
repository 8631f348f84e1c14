"""The nearest vectors by cosine, found in blocks and exact to the last tie."""

from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from noisegen.encoders.precision import cpu_has_bf16
from noisegen.evaluation.unit_vectors import (
    F32,
    F64,
    I64,
    Vectors,
    check_widths,
    cosines,
    unit,
)

Precision = Literal["auto", "float32", "bfloat16"]

_ROWS, _COLUMNS = 2_048, 8_192  # of a block of cosines: 64 MB in float32
_COLUMNS_FIRST = 1_024
_LARGE = 1 << 30  # products of numbers, for which starting torch pays
_PRODUCTS = 1 << 17  # numbers of a side that are multiplied at a time: they stay in the cache


class Neighbours(NamedTuple):
    """Shape (rows, k), nearest first; of equal cosines the lower index comes first."""

    cosines: F64
    rows: I64


def neighbours(x: Vectors, y: Vectors, k: int, precision: Precision = "auto") -> Neighbours:
    """Return the k rows of y (all, if there are fewer) that are nearest to each row of x.

    Memory is bounded by blocks, so both may be memory maps. Products in `precision` only tell
    which pairs can be among the nearest; the cosines of those are computed again in float64 and
    rounded to twelve digits. So all precisions give the same result, whatever the number of
    threads. `auto` takes bfloat16 for large searches where the processor computes in it, which
    needs torch, else float32.
    """
    check_widths(x, y)
    k = min(k, len(y))
    if precision == "auto":
        large = len(x) * y.size >= _LARGE
        precision = "bfloat16" if large and _computes_in_bfloat16() else "float32"
    blocks = [_of_block(x[start : start + _ROWS], start, y, k, precision)
              for start in range(0, len(x), _ROWS)]  # fmt: skip
    return Neighbours(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _of_block(x: Vectors, first: int, y: Vectors, k: int, precision: Precision) -> Neighbours:
    """Go through y in blocks, keeping the nearest so far; x are the rows from `first` on."""
    multiply = _MULTIPLY[precision](unit(x, first))
    error = _ERROR[precision] + _ROUNDING * x.shape[1]
    found = Neighbours(np.full((len(x), k), -np.inf), np.full((len(x), k), len(y), np.int64))
    start = 0
    while start < len(y):
        # The first blocks are small: a bound on the nearest is found soon, and few pass it later.
        block = y[start : start + min(_COLUMNS, max(_COLUMNS_FIRST, start))]
        rows, columns = _candidates(multiply(unit(block, start)), found.cosines[:, -1], k, error)
        found = _merged(found, rows, _exact(x, block, rows, columns), columns + start)
        start += len(block)
    return found


@cache
def _computes_in_bfloat16() -> bool:
    """Tell whether torch is there and the processor multiplies in bfloat16."""
    try:
        return cpu_has_bf16()
    except ImportError:
        return False


def _in_bfloat16(x: F32) -> Callable[[F32], F32]:
    """Return a function that multiplies y by x: shape (rows of y, rows of x)."""
    import torch

    right = torch.from_numpy(x).bfloat16().T

    def multiply(y: F32) -> F32:
        products: F32 = (torch.from_numpy(y).bfloat16() @ right).float().numpy()
        return products

    return multiply


_MULTIPLY: dict[str, Callable[[F32], Callable[[F32], F32]]] = {
    "float32": lambda x: lambda y: y @ x.T,
    "bfloat16": _in_bfloat16,
}
# Bounds on the error of a product of unit vectors. Each factor and each of `width` additions is off
# by 2**-24 at most in float32: with slack, 2**-22 a number. bfloat16 rounds both factors and the
# product by 2**-9 each.
_ROUNDING = 2.0**-22
_ERROR = {"float32": 0, "bfloat16": 3 * 2.0**-9}


def _candidates(products: F32, least: F64, k: int, error: float) -> tuple[I64, I64]:
    """Return the places that may be among the k nearest, given the k-th cosine so far.

    In the first block that is not known: there it is the k-th product, minus its error.
    """
    columns, count = products.shape
    if k <= columns and np.isneginf(least).all():
        least = np.partition(products.T, columns - k)[:, columns - k].astype(np.float64) - error
    places = np.flatnonzero(products >= (least - error).astype(np.float32))
    return places % count, places // count


def _exact(x: Vectors, y: Vectors, rows: I64, columns: I64) -> F64:
    step = max(1, _PRODUCTS // x.shape[1])
    parts = [cosines(x[rows[start : start + step]], y[columns[start : start + step]])
             for start in range(0, len(rows), step)]  # fmt: skip
    return np.concatenate([np.zeros(0), *parts])


def _merged(found: Neighbours, rows: I64, cosines: F64, columns: I64) -> Neighbours:
    """Return the k nearest of those found before and the new ones."""
    count, k = found.rows.shape
    rows = np.concatenate([np.repeat(np.arange(count), k), rows])
    cosines = np.concatenate([found.cosines.ravel(), cosines])
    columns = np.concatenate([found.rows.ravel(), columns])
    order = np.lexsort((columns, -cosines, rows))
    starts = np.searchsorted(rows[order], np.arange(count))
    kept = order[(starts[:, None] + np.arange(k)).ravel()]
    return Neighbours(cosines[kept].reshape(count, k), columns[kept].reshape(count, k))
