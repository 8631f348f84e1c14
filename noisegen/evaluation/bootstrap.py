"""Intervals and tests by resampling sentences: the paired bootstrap.

Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13; for paired tests of
language systems see Koehn, "Statistical Significance Tests for Machine Translation Evaluation"
(EMNLP 2004).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError
from noisegen.evaluation.unit_vectors import F64

RESAMPLES = 10_000
_INTERVAL = (2.5, 97.5)  # per cent
_BLOCK = 1 << 20  # draws at a time

Columns = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % percentile interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A figure of one model minus that of another, its 95 % interval, and the two-sided p.

    p is twice the share of resamples on the other side of 0 (or on it), so it is below 0.05 where
    the interval excludes 0, up to the grain of the resamples.
    """

    value: float
    low: float
    high: float
    p: float


def mean_intervals(
    columns: Columns, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Return the mean of each column, one value a sentence, with its interval.

    Of several generation seeds take each sentence's mean first: sentences are what is sampled.
    Raises UsageError for columns of different length or without sentences.
    """
    values = _matrix(columns)
    return _estimates(columns, values.mean(axis=0), _means(values, seed, resamples))


def mean_differences(
    ours: Columns, theirs: Columns, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Difference]:
    """Compare two models by the same sentences, metric by metric: mean of ours - mean of theirs."""
    values = _paired(ours, theirs)
    differences = values[0] - values[1]
    return _differences(ours, differences.mean(axis=0), _means(differences, seed, resamples))


def spearman_intervals(
    columns: Columns, scores: npt.ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Return Spearman's correlation of each column with the scores, with its interval, -1 to 1.

    A resample whose values are all equal counts as 0.
    """
    values, gold = _matrix(columns), _gold(columns, scores)
    found = _spearmans(np.ones((1, len(values))), values, gold)[0]
    drawn = [_spearmans(weights, values, gold) for weights in _weights(len(gold), seed, resamples)]
    return _estimates(columns, found, np.concatenate(drawn))


def spearman_differences(
    ours: Columns, theirs: Columns, scores: npt.ArrayLike, *, seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Difference]:  # fmt: skip
    """Compare two models by the same pairs: Spearman's correlation of ours - that of theirs."""
    (one, other), gold = _paired(ours, theirs), _gold(ours, scores)
    values, count = np.concatenate([one, other], axis=1), one.shape[1]
    found = _spearmans(np.ones((1, len(values))), values, gold)[0]
    drawn = np.concatenate(
        [_spearmans(weights, values, gold) for weights in _weights(len(gold), seed, resamples)]
    )
    return _differences(ours, found[:count] - found[count:], drawn[:, :count] - drawn[:, count:])


def _matrix(columns: Columns) -> F64:
    """Return shape (sentences, columns)."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise UsageError(f"metrics to resample need the same number of sentences, one at least, "
                         f"not {sorted(lengths)}")  # fmt: skip
    return np.stack([np.asarray(column, np.float64) for column in columns.values()], axis=1)


def _paired(ours: Columns, theirs: Columns) -> tuple[F64, F64]:
    if ours.keys() != theirs.keys():
        differing = ", ".join(sorted(ours.keys() ^ theirs.keys()))
        raise UsageError(f"metrics of two models differ: {differing}")
    values = _matrix(ours), _matrix({name: theirs[name] for name in ours})
    if len(values[0]) != len(values[1]):
        raise UsageError(f"{len(values[0]):,} sentences of one model, {len(values[1]):,} of the "
                         "other")  # fmt: skip
    return values


def _gold(columns: Columns, scores: npt.ArrayLike) -> F64:
    gold = np.asarray(scores, np.float64)
    if any(len(column) != len(gold) for column in columns.values()):
        raise UsageError(f"{len(gold):,} scores, but another number of similarities")
    return gold


def _weights(count: int, seed: int, resamples: int) -> Iterator[F64]:
    """Yield blocks of how often each sentence is in a resample, (resamples, sentences)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _BLOCK // count)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, count, (rows, count), np.int64)
        drawn += np.arange(0, rows * count, count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * count)
        yield counts.reshape(rows, count).astype(np.float64)


def _means(values: F64, seed: int, resamples: int) -> F64:
    """Return the columns' means in each resample."""
    blocks = [weights @ values for weights in _weights(len(values), seed, resamples)]
    return np.concatenate(blocks) / len(values)


def _spearmans(weights: F64, values: F64, gold: F64) -> F64:
    """Return each column's correlation with the gold scores in each resample."""
    gold_ranks, gold_spread = _ranks(weights, gold)
    weighted = weights * gold_ranks
    found = np.zeros((len(weights), values.shape[1]))
    for place, column in enumerate(values.T):
        ranks, spread = _ranks(weights, column)
        product = np.einsum("ij,ij->i", weighted, ranks)
        scale = np.sqrt(gold_spread * spread)
        np.divide(product, scale, out=found[:, place], where=scale > 0)
    return found


def _ranks(weights: F64, values: F64) -> tuple[F64, F64]:
    """Return each value's centred mean rank within each resample, and its sum of squares.

    With w_j copies of value j, and c_j copies of it and all smaller ones, that is c_j - (w_j-1)/2.
    """
    _, places = np.unique(values, return_inverse=True)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    copies = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(copies, axis=1) - (copies - 1) / 2 - (len(values) + 1) / 2
    return ranks[:, places], np.einsum("ij,ij,ij->i", copies, ranks, ranks)


def _estimates(names: Columns, values: F64, drawn: F64) -> dict[str, Estimate]:
    low, high = np.percentile(drawn, _INTERVAL, axis=0)
    figures = zip(names, values.tolist(), low.tolist(), high.tolist(), strict=True)
    return {name: Estimate(value, bottom, top) for name, value, bottom, top in figures}


def _differences(names: Columns, values: F64, drawn: F64) -> dict[str, Difference]:
    lesser = np.minimum((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))
    p_values = np.minimum(1, 2 * (lesser + 1) / (len(drawn) + 1))
    found = _estimates(names, values, drawn).items()
    return {
        name: Difference(one.value, one.low, one.high, float(p))
        for (name, one), p in zip(found, p_values, strict=True)
    }
