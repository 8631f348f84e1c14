"""Search by cosine: xSIM, sentence matching, retrieval, over exact nearest neighbours.

xSIM is the margin-based search of Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with
Multilingual Sentence Embeddings" (ACL 2019), as LASER computes it; with hard negatives as in Chen
et al., "xSIM++" (ACL 2023).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from noisegen.encoders.encoder import cpu_has_bf16
from noisegen.errors import UsageError
from noisegen.evaluation.similarity import (
    F32,
    F64,
    I64,
    Bool,
    Vectors,
    check_pairs,
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
    blocks = [
        _nearest_to(x[start : start + _ROWS], start, y, k, precision)
        for start in range(0, len(x), _ROWS)
    ]
    return Neighbours(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _nearest_to(x: Vectors, x_start: int, y: Vectors, k: int, precision: Precision) -> Neighbours:
    """Go through y in blocks, keeping the nearest so far; x are the rows from `x_start` on."""
    multiply = _MULTIPLY[precision](unit(x, x_start))
    error = _ERROR[precision] + _ROUNDING * x.shape[1]
    nearest = Neighbours(np.full((len(x), k), -np.inf), np.full((len(x), k), len(y), np.int64))
    step = max(1, _PRODUCTS // x.shape[1])
    start = 0
    while start < len(y):
        # The first blocks are small: a bound on the nearest is found soon, and few pass it later.
        block = y[start : start + min(_COLUMNS, max(_COLUMNS_FIRST, start))]
        rows, columns = _candidates(multiply(unit(block, start)), nearest.cosines[:, -1], k, error)
        exact = [
            cosines(x[rows[at : at + step]], block[columns[at : at + step]])
            for at in range(0, len(rows), step)
        ]
        nearest = _merged(nearest, rows, np.concatenate([np.zeros(0), *exact]), columns + start)
        start += len(block)
    return nearest


def _candidates(products: F32, least: F64, k: int, error: float) -> tuple[I64, I64]:
    """Return rows of x and of y that may be among the k nearest, given the k-th cosine so far.

    In the first block that is not known: there it is the k-th product, minus its error.
    """
    columns, count = products.shape
    if k <= columns and np.isneginf(least).all():
        least = np.partition(products.T, columns - k)[:, columns - k].astype(np.float64) - error
    indices = np.flatnonzero(products >= (least - error).astype(np.float32))
    return indices % count, indices // count


def _merged(nearest: Neighbours, rows: I64, cosines: F64, columns: I64) -> Neighbours:
    """Return the k nearest of those so far and the new ones."""
    count, k = nearest.rows.shape
    rows = np.concatenate([np.repeat(np.arange(count), k), rows])
    cosines = np.concatenate([nearest.cosines.ravel(), cosines])
    columns = np.concatenate([nearest.rows.ravel(), columns])
    order = np.lexsort((columns, -cosines, rows))
    starts = np.searchsorted(rows[order], np.arange(count))
    best = order[(starts[:, None] + np.arange(k)).ravel()]
    return Neighbours(cosines[best].reshape(count, k), columns[best].reshape(count, k))


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


# xSIM.

Margin = Literal["ratio", "distance", "absolute"]

MARGINS = ("ratio", "distance", "absolute")
MISALIGNED = "misaligned"


@dataclass(frozen=True)
class XSim:
    """The result of a search: one entry a sentence of x.

    `predictions` are rows of y; those from len(y) on are hard negatives. `lost_to` names the kind
    of hard negative that won, `misaligned` for any other wrong line, '' for a right one. `kinds`
    counts them, those that never won included. Both are empty without hard negatives.
    """

    predictions: I64
    correct: Bool
    lost_to: tuple[str, ...] = ()
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        """How many sentences found a wrong line."""
        return int((~self.correct).sum())

    @property
    def error_rate(self) -> float:
        """The same in per cent of all."""
        return 100 * self.errors / len(self.correct)

    @property
    def kind_rates(self) -> dict[str, float]:
        """`kinds` in per cent of all sentences."""
        return {kind: 100 * count / len(self.correct) for kind, count in self.kinds.items()}


def xsim(
    x: Vectors, y: Vectors, k: int = 4, margin: Margin = "ratio",
    texts: Sequence[str] | None = None, *, precision: Precision = "auto",
) -> XSim:  # fmt: skip
    """Search every row of x in y, where row i of x belongs to row i of y; y may have more rows.

    Candidates of x_i are its k nearest y_j by cosine. Their score is cos(x_i, y_j) against the
    mean of two means: of x_i's cosines to its k nearest y, and of y_j's to its k nearest x. `ratio`
    divides by it (a score of 0 if it is 0), `distance` subtracts it, `absolute` is plain nearest
    neighbour. The best score wins, of equal ones the lowest row; equal means to twelve digits.
    `texts`, those of y, decide what is right: a line that says the same is no error, as in LASER.

    Zero vectors have cosine 0 with all. Raises UsageError for NaN, for different widths, if y has
    fewer rows than x, and for an unknown margin.
    """
    _check(x, y, k, margin, texts)
    predictions = _predictions(x, y, k, margin, precision)
    return XSim(predictions, _same(predictions, np.arange(len(x)), texts))


def xsim_hard(
    x: Vectors, y: Vectors, negatives: Vectors, *, sources: npt.NDArray[np.integer],
    kinds: Sequence[str], k: int = 4, margin: Margin = "ratio",
    texts: Sequence[str] | None = None, precision: Precision = "auto",
) -> XSim:  # fmt: skip
    """Search every row of x in y and hard negatives together; finding one of these is an error.

    Negative j is of the kind `kinds[j]` and was made of row `sources[j]` of y. Neighbours are
    those among all lines. An error counts as that kind if the line was made of the right one (or of
    one with the same text), else as misaligned. For the rest see `xsim`.
    """
    _check(x, y, k, margin, texts)
    made_of = np.asarray(sources, np.int64)
    if not len(negatives) == len(made_of) == len(kinds):
        raise UsageError(
            f"{len(negatives):,} hard negatives, but {len(made_of):,} sources and "
            f"{len(kinds):,} kinds"
        )
    if len(made_of) and not 0 <= made_of.min() <= made_of.max() < len(y):
        raise UsageError(f"a hard negative is made of a line that is not among the {len(y):,}")
    pool = np.concatenate([y, negatives]) if len(negatives) else y
    predictions = _predictions(x, pool, k, margin, precision)
    origins = np.concatenate([np.arange(len(y)), made_of])[predictions]
    from_right, is_negative = _same(origins, np.arange(len(x)), texts), predictions >= len(y)
    pool_kinds = [MISALIGNED] * len(y) + list(kinds)
    lost_to = tuple(
        "" if right and not negative else pool_kinds[row] if right else MISALIGNED
        for right, negative, row in zip(from_right, is_negative, predictions, strict=True)
    )
    counts = {kind: lost_to.count(kind) for kind in [*sorted(set(kinds)), MISALIGNED]}
    return XSim(predictions, from_right & ~is_negative, lost_to, counts)


def _check(x: Vectors, y: Vectors, k: int, margin: str, texts: Sequence[str] | None) -> None:
    if margin not in MARGINS:
        raise UsageError(f"no margin {margin!r}; take {', '.join(MARGINS)}")
    if k < 1:
        raise UsageError(f"k must be 1 or more, not {k}")
    if len(y) < len(x):
        raise UsageError(f"{len(x):,} vectors to search, but only {len(y):,} lines to find")
    if texts is not None and len(texts) != len(y):
        raise UsageError(f"{len(texts):,} texts for {len(y):,} lines")


def _same(x: I64, y: I64, texts: Sequence[str] | None) -> Bool:
    """Tell which lines are equal: their text, or their row where there are no texts."""
    if texts is None:
        return np.equal(x, y)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([texts[left] == texts[right] for left, right in pairs], bool)


def _predictions(x: Vectors, y: Vectors, k: int, margin: Margin, precision: Precision) -> I64:
    nearest = neighbours(x, y, 1 if margin == "absolute" else k, precision)
    if margin == "absolute":
        return nearest.rows[:, 0]
    # Only the candidates' own neighbours are searched.
    candidates, indices = np.unique(nearest.rows, return_inverse=True)
    means = neighbours(y[candidates], x, k, precision).cosines.mean(axis=1)
    means_back = means[indices].reshape(nearest.rows.shape)
    middles = (nearest.cosines.mean(axis=1, keepdims=True) + means_back) / 2
    if margin == "ratio":
        scores = np.divide(nearest.cosines, middles, out=0 * middles, where=middles != 0)
    else:
        scores = nearest.cosines - middles
    scores = scores.round(12)
    best = scores.max(axis=1, keepdims=True)
    rows: I64 = np.where(scores == best, nearest.rows, len(y)).min(axis=1)
    return rows


# Matching and retrieval.

_COSINES = 1 << 22  # that are held at a time


@dataclass(frozen=True)
class Matching:
    """Which rows of x find their own row of y (`forward`), and the other way round."""

    forward: Bool
    backward: Bool

    @property
    def accuracy_forward(self) -> float:
        """Per cent of x that find their y."""
        return 100 * float(self.forward.mean())

    @property
    def accuracy_backward(self) -> float:
        """Per cent of y that find their x."""
        return 100 * float(self.backward.mean())

    @property
    def accuracy(self) -> float:
        """The mean of both."""
        return (self.accuracy_forward + self.accuracy_backward) / 2


def matching_accuracy(x: Vectors, y: Vectors, precision: Precision = "auto") -> Matching:
    """Tell for each pair whether its cosine is at least that with every other row.

    Ties count as correct (CT-XLMR-SE, equation 3); cosines are compared to twelve digits.
    """
    check_pairs(x, y)
    own = cosines(x, y)
    best = [neighbours(left, right, 1, precision).cosines[:, 0] for left, right in ((x, y), (y, x))]
    return Matching(own >= best[0], own >= best[1])


def retrieval_accuracy(x: Vectors, y: Vectors) -> tuple[float, float]:
    """Return the per cent of x that find their own row of y by cosine, and of y their x.

    Of k rows that tie for the nearest, each is found with chance 1 / k: vectors that are all the
    same find nothing, while `matching_accuracy` counts each as a match. Float64, every pair.
    """
    check_pairs(x, y)
    return _chance_of_own(x, y), _chance_of_own(y, x)


def _chance_of_own(x: Vectors, y: Vectors) -> float:
    others = unit(y).astype(np.float64)
    step = max(1, _COSINES // len(y))
    chances = []
    for start in range(0, len(x), step):
        products = (unit(x[start : start + step]).astype(np.float64) @ others.T).round(12)
        rows = np.arange(len(products))
        own = products[rows, start + rows][:, None]
        chances.append(np.where((products > own).any(1), 0.0, 1 / (products == own).sum(1)))
    return 100 * float(np.concatenate(chances).mean())
