"""Search sentences by the cosine of their vectors: xSIM, and accuracy of matching and retrieval.

All searches find exact nearest neighbours. xSIM is the margin-based search of Artetxe and Schwenk,
"Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings" (ACL 2019), as LASER
computes it. Hard negatives are searched as in Chen et al., "xSIM++" (ACL 2023).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

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

_ROWS, _COLUMNS = 2_048, 8_192  # rows of x, of y in a block of cosines: 64 MB in float32
_COLUMNS_FIRST = 1_024  # rows of y in the first block of cosines
LARGE = 1 << 30  # multiplications; smaller searches do not gain by importing torch
_PRODUCTS = 1 << 17  # numbers per matrix multiplied at a time, to fit the processor's cache


class Neighbours(NamedTuple):
    """The k rows of y nearest to each row of x, and their cosines: two arrays of shape (rows, k).

    The nearest row comes first; rows with equal cosines are in the order of their indices.
    """

    cosines: F64
    rows: I64


def neighbours(x: Vectors, y: Vectors, k: int, precision: Precision = "auto") -> Neighbours:
    """Return the k rows of y (all, if there are fewer) that are nearest to each row of x.

    Cosines are computed in blocks of rows, so x and y may be memory maps. A fast multiplication
    in `precision` finds the pairs that can be among the nearest. Only their cosines are then
    computed in float64 and rounded to twelve digits, so all precisions and numbers of threads give
    the same result. `auto` takes bfloat16 for large searches if torch is installed and the
    processor computes in bfloat16, else float32.
    """
    check_widths(x, y)
    if precision == "auto":
        precision = best_precision(len(x) * y.size)
    starts = range(0, len(x), _ROWS)
    blocks = [_nearest_to(x[n : n + _ROWS], n, y, min(k, len(y)), precision) for n in starts]
    return Neighbours(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _nearest_to(x: Vectors, x_start: int, y: Vectors, k: int, precision: Precision) -> Neighbours:
    """Return the k rows of y nearest to each row of x; y is read in blocks of rows.

    `x_start` is the index that error messages give to the first row of x.
    """
    count, width = x.shape
    multiply = _multiplier(unit(x, x_start), precision)
    error = _ERROR[precision] + _ROUNDING * width
    nearest = Neighbours(np.full((count, k), -np.inf), np.full((count, k), len(y), np.int64))
    step = max(1, _PRODUCTS // width)
    start = 0
    while start < len(y):
        # The first blocks are small, as later ones skip rows below the k-th best cosine so far.
        block = y[start : start + min(_COLUMNS, max(_COLUMNS_FIRST, start))]
        products, least = multiply(unit(block, start)), nearest.cosines[:, -1]
        if k <= len(block) and np.isneginf(least).all():  # first block: no cosines yet
            least = np.partition(products.T, -k)[:, -k].astype(np.float64) - error
        near = np.flatnonzero(products >= (least - error).astype(np.float32))
        rows, columns = near % count, near // count
        parts = [slice(at, at + step) for at in range(0, len(near), step)]
        exact = [cosines(x[rows[part]], block[columns[part]]) for part in parts]
        rows = np.concatenate([np.repeat(np.arange(count), k), rows])
        values = np.concatenate([nearest.cosines.ravel(), *exact])
        columns = np.concatenate([nearest.rows.ravel(), columns + start])
        order = np.lexsort((columns, -values, rows))
        best = order[np.searchsorted(rows[order], np.arange(count))[:, None] + np.arange(k)]
        nearest = Neighbours(values[best], columns[best])
        start += len(block)
    return nearest


def best_precision(multiplications: int) -> Precision:
    """Return bfloat16 for a large search if torch and the processor support it, else float32."""
    if multiplications < LARGE:
        return "float32"
    try:
        return "bfloat16" if cpu_has_bf16() else "float32"
    except ImportError:  # torch is not installed
        return "float32"


def _multiplier(x: F32, precision: Precision) -> Callable[[F32], F32]:
    """Return a function that multiplies rows of y by all rows of x.

    Its result has the shape (rows of y, rows of x).
    """
    if precision == "float32":
        return lambda y: y @ x.T
    import torch

    right = torch.from_numpy(x).bfloat16().T
    return lambda y: (torch.from_numpy(y).bfloat16() @ right).float().numpy()


# Bounds on the error of a product of unit vectors: `_ROUNDING` per dimension, plus `_ERROR`.
# In float32 each factor and each addition is off by at most 2**-24, in all less than 2**-22.
# bfloat16 rounds both factors and the product by 2**-9 each.
_ROUNDING = 2.0**-22
_ERROR = {"float32": 0, "bfloat16": 3 * 2.0**-9}


Margin = Literal["ratio", "distance", "absolute"]

MARGINS = get_args(Margin)
MISALIGNED = "misaligned"
_K = 4  # nearest neighbours, as in LASER


@dataclass(frozen=True)
class XSim:
    """Result of a search, with one item per sentence of x.

    `predictions` has the index of the row of y that was found; an index from len(y) on is a hard
    negative. `correct` is a mask of the right predictions. `lost_to` has the kind of the hard
    negative found, 'misaligned' for another wrong row, '' for the right row. `kinds` counts the
    wrong rows of each kind, 0 included. Without hard negatives `lost_to` and `kinds` are empty.
    """

    predictions: I64
    correct: Bool
    lost_to: tuple[str, ...] = ()
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        """The number of sentences of x that found a wrong row."""
        return int((~self.correct).sum())

    @property
    def error_rate(self) -> float:
        """The percentage of sentences of x that found a wrong row."""
        return 100 * self.errors / len(self.correct)

    @property
    def kind_rates(self) -> dict[str, float]:
        """The percentage of sentences of x that found a wrong row, by the kind of that row."""
        return {kind: 100 * count / len(self.correct) for kind, count in self.kinds.items()}


def xsim(
    x: Vectors,
    y: Vectors,
    k: int = _K,
    margin: Margin = "ratio",
    texts: Sequence[str] | None = None,
    *,
    precision: Precision = "auto",
) -> XSim:
    """Search every row of x in y, where row i of x belongs to row i of y; y may have more rows.

    The candidates for x_i are its k nearest y_j by cosine. The margin averages two mean cosines: of
    x_i and its k nearest rows of y, and of y_j and its k nearest rows of x. The score of a
    candidate is cos(x_i, y_j) divided by the margin (`ratio`; 0 if the margin is 0), minus the
    margin (`distance`), or the plain cosine (`absolute`). The candidate with the best score is
    found; among scores equal to twelve digits, the one with the lowest index. If the `texts` of y
    are given, a row with the same text as the right row counts as correct, as in LASER.

    Zero vectors have cosine 0 with all others. Raises UsageError for NaN, for different widths, if
    y has fewer rows than x, and for an unknown margin.
    """
    _check(x, y, k, margin, texts)
    predictions = _predictions(x, y, k, margin, precision)
    return XSim(predictions, _same(predictions, np.arange(len(x)), texts))


class BothWays(NamedTuple):
    """Results of searching x in y (`forward`), y in x (`backward`), and `matching_accuracy`."""

    forward: XSim
    backward: XSim
    matching: "Matching"


def search_both_ways(
    x: Vectors,
    y: Vectors,
    x_texts: Sequence[str] | None = None,
    y_texts: Sequence[str] | None = None,
) -> BothWays:
    """Return `xsim(x, y)`, `xsim(y, x)` and `matching_accuracy(x, y)`, from one search each way."""
    check_pairs(x, y)
    there, back = neighbours(x, y, _K), neighbours(y, x, _K)

    def searched(nearest: Neighbours, other: Neighbours, texts: Sequence[str] | None) -> XSim:
        predictions = _best(nearest, other.cosines.mean(axis=1)[nearest.rows], "ratio")
        return XSim(predictions, _same(predictions, np.arange(len(x)), texts))

    own = cosines(x, y)
    matching = Matching(*(own >= nearest.cosines[:, 0] for nearest in (there, back)))
    return BothWays(searched(there, back, y_texts), searched(back, there, x_texts), matching)


class HardVectors(NamedTuple):
    """Vectors of hard negatives.

    `sources` has the index of the row of y that each negative was made from, `kinds` its kind.
    """

    vectors: Vectors
    sources: npt.NDArray[np.integer]
    kinds: Sequence[str]


def xsim_hard(
    x: Vectors,
    y: Vectors,
    negatives: HardVectors,
    k: int = _K,
    margin: Margin = "ratio",
    texts: Sequence[str] | None = None,
) -> XSim:
    """Search every row of x among the rows of y and hard negatives; finding a negative is an error.

    An error is of the negative's kind if the negative was made from the right row or an equal text,
    else of the kind 'misaligned'. The k nearest rows may be negatives, too. All other arguments are
    described at `xsim`.
    """
    _check(x, y, k, margin, texts)
    vectors, sources, kinds = negatives
    sources = np.asarray(sources, np.int64)
    if not len(vectors) == len(sources) == len(kinds):
        counts = f"{len(sources):,} sources and {len(kinds):,} kinds"
        raise UsageError(f"{len(vectors):,} hard negatives, but {counts}")
    if len(sources) and not 0 <= sources.min() <= sources.max() < len(y):
        raise UsageError(f"a hard negative was made from none of the {len(y):,} lines")
    pool = np.concatenate([y, vectors]) if len(vectors) else y
    predictions = _predictions(x, pool, k, margin, "auto")
    origins = np.concatenate([np.arange(len(y)), sources])[predictions]
    from_right, is_line = _same(origins, np.arange(len(x)), texts), predictions < len(y)
    pool_kinds = np.array([""] * len(y) + list(kinds), np.object_)
    lost_to = tuple(np.where(from_right, pool_kinds[predictions], MISALIGNED).tolist())
    by_kind = {kind: lost_to.count(kind) for kind in [*sorted(set(kinds)), MISALIGNED]}
    return XSim(predictions, from_right & is_line, lost_to, by_kind)


def _check(x: Vectors, y: Vectors, k: int, margin: str, texts: Sequence[str] | None) -> None:
    """Raise UsageError for an unknown margin, k below 1, and wrong numbers of rows or texts."""
    if margin not in MARGINS:
        raise UsageError(f"no margin {margin!r}; use {', '.join(MARGINS)}")
    if k < 1:
        raise UsageError(f"k must be 1 or more, not {k}")
    if len(y) < len(x):
        raise UsageError(f"{len(x):,} vectors to search for in only {len(y):,} lines")
    if texts is not None and len(texts) != len(y):
        raise UsageError(f"{len(texts):,} texts for {len(y):,} lines")


def _same(x: I64, y: I64, texts: Sequence[str] | None) -> Bool:
    """Tell for each i if texts[x[i]] equals texts[y[i]]; without texts, if x[i] equals y[i]."""
    if texts is None:
        return np.equal(x, y)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([texts[left] == texts[right] for left, right in pairs], bool)


def _predictions(x: Vectors, y: Vectors, k: int, margin: Margin, precision: Precision) -> I64:
    """Return, for each row of x, the index of the row of y that the search finds."""
    nearest = neighbours(x, y, 1 if margin == "absolute" else k, precision)
    if margin == "absolute":
        return nearest.rows[:, 0]
    # The margin needs the nearest rows of x to the candidates only, not to all rows of y.
    candidates, indices = np.unique(nearest.rows, return_inverse=True)
    means = neighbours(y[candidates], x, k, precision).cosines.mean(axis=1)
    return _best(nearest, means[indices].reshape(nearest.rows.shape), margin)


def _best(nearest: Neighbours, means_back: F64, margin: Margin) -> I64:
    """Return, for each row of x, the index of its candidate with the best score.

    The candidates are the rows in `nearest`. `means_back` has for each candidate the mean cosine to
    its own nearest neighbours in x.
    """
    margins = (nearest.cosines.mean(axis=1, keepdims=True) + means_back) / 2
    if margin == "ratio":
        scores = np.divide(nearest.cosines, margins, out=0 * margins, where=margins != 0)
    else:
        scores = nearest.cosines - margins
    scores = scores.round(12)
    best = scores.max(axis=1, keepdims=True)
    rows: I64 = np.where(scores == best, nearest.rows, np.iinfo(np.int64).max).min(axis=1)
    return rows


_COSINES = 1 << 22  # cosines held in memory at a time


@dataclass(frozen=True)
class Matching:
    """Masks of the rows whose nearest row in the other matrix has the same index.

    `forward` is for rows of x searched in y, `backward` for rows of y searched in x. A row that is
    as near as the nearest one counts, too.
    """

    forward: Bool
    backward: Bool

    @property
    def accuracy_forward(self) -> float:
        """Percentage of rows of x to which no row of y is nearer than the row of the same index."""
        return 100 * float(self.forward.mean())

    @property
    def accuracy_backward(self) -> float:
        """Percentage of rows of y to which no row of x is nearer than the row of the same index."""
        return 100 * float(self.backward.mean())

    @property
    def accuracy(self) -> float:
        """The mean of `accuracy_forward` and `accuracy_backward`."""
        return (self.accuracy_forward + self.accuracy_backward) / 2


def matching_accuracy(x: Vectors, y: Vectors) -> Matching:
    """Return masks of the rows of x, and of y, whose nearest row in the other has the same index.

    Ties count as correct (CT-XLMR-SE, equation 3). Cosines are compared to twelve digits.
    """
    return search_both_ways(x, y).matching


def retrieval_accuracy(x: Vectors, y: Vectors) -> tuple[float, float]:
    """Return what percentage of the rows of x, and of y, retrieve the row of the same index.

    If k rows tie for the nearest, each is found with chance 1 / k. So a model with equal vectors
    for all texts finds almost nothing, while `matching_accuracy` counts each text as a match. All
    cosines are computed in float64.
    """
    check_pairs(x, y)
    units = [unit(side).astype(np.float64) for side in (x, y)]
    step = max(1, _COSINES // len(y))
    rates = []
    for left, right in (units, units[::-1]):
        chances = []
        for start in range(0, len(left), step):
            products = (left[start : start + step] @ right.T).round(12)
            own = np.diagonal(products, start)[:, None]
            chances.append(np.where((products > own).any(1), 0.0, 1 / (products == own).sum(1)))
        rates.append(100 * float(np.concatenate(chances).mean()))
    return rates[0], rates[1]
