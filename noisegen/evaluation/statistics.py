"""Intervals and tests: paired bootstrap over sentences, McNemar, Holm, RoLASER's t-tests.

Sources: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13; for paired
tests of language systems Koehn, "Statistical Significance Tests for Machine Translation Evaluation"
(EMNLP 2004).
"""

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError, naming_extras
from noisegen.evaluation.similarity import F64, Bool

RESAMPLES = 10_000
_INTERVAL = (2.5, 97.5)  # percentiles that bound a 95 % interval
_BLOCK = 1 << 20  # random draws held in memory at a time

K = TypeVar("K", bound=Hashable)  # the name of a column, such as a metric
Columns = Mapping[K, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Resampled:
    """A mean, correlation or difference, with its 95 % bootstrap interval and a p-value.

    `p` is two-sided and tests whether the true value is 0: it is twice the share of resamples that
    are 0 or have the opposite sign. It is below 0.05 if the interval excludes 0, except in
    borderline cases.
    """

    value: float
    low: float
    high: float
    p: float


def mean_intervals(
    columns: Columns[K], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[K, Resampled]:
    """Return the mean of each column with its bootstrap interval.

    A column has one value per sentence. Sentences are resampled; where there are several noise
    seeds, each value must be the mean over the seeds. Raises UsageError for columns of different
    length or without sentences.
    """
    return _of_means(columns, _matrix(columns), seed, resamples)


def mean_differences(
    ours: Columns[K], theirs: Columns[K], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[K, Resampled]:
    """Return the mean of `ours` minus the mean of `theirs`, metric by metric, with its interval.

    Both arguments map each metric to a value per sentence. A resample draws the same sentences for
    both.
    """
    return _of_means(ours, np.subtract(*_paired(ours, theirs)), seed, resamples)


def spearman_intervals(
    columns: Columns[K], scores: npt.ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[K, Resampled]:
    """Return Spearman's correlation of each column with the scores (-1 to 1), with its interval.

    A resample in which all values or all scores are equal counts as 0.
    """
    return _estimates(columns, _correlations(_matrix(columns), scores, seed, resamples))


def spearman_differences(
    ours: Columns[K],
    theirs: Columns[K],
    scores: npt.ArrayLike,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[K, Resampled]:
    """Return differences in Spearman correlation, `ours` minus `theirs`, with intervals.

    Both arguments map each metric to a value per sentence; it is correlated with `scores`.
    """
    values = np.concatenate(_paired(ours, theirs), axis=1)
    drawn = _correlations(values, scores, seed, resamples)
    return _estimates(ours, drawn[:, : len(ours)] - drawn[:, len(ours) :])


def _matrix(columns: Columns[K]) -> F64:
    """Return the columns as a matrix, shape (sentences, columns).

    Raises UsageError for columns of different length or without sentences.
    """
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise UsageError(
            "metrics to resample need the same number of sentences, at least one, "
            f"not {sorted(lengths)}"
        )
    return np.stack([np.asarray(column, np.float64) for column in columns.values()], axis=1)


def _paired(ours: Columns[K], theirs: Columns[K]) -> tuple[F64, F64]:
    """Return the values of both models, each of shape (sentences, columns).

    Raises UsageError if the models differ in metrics or in the number of sentences.
    """
    if ours.keys() != theirs.keys():
        differing = ", ".join(sorted(map(str, ours.keys() ^ theirs.keys())))
        raise UsageError(f"metrics of two models differ: {differing}")
    values = _matrix(ours), _matrix({name: theirs[name] for name in ours})
    if len(values[0]) != len(values[1]):
        counts = f"{len(values[0]):,} sentences of one model, {len(values[1]):,} of the other"
        raise UsageError(counts)
    return values


def _weights(count: int, seed: int, resamples: int) -> Iterator[F64]:
    """Yield arrays (resamples, sentences) that count how often a resample drew a sentence."""
    generator = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _BLOCK // count)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, count, (rows, count), np.int64)
        drawn += np.arange(0, rows * count, count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * count)
        yield counts.reshape(rows, count).astype(np.float64)


def _of_means(names: Columns[K], values: F64, seed: int, resamples: int) -> dict[K, Resampled]:
    """Return the mean of each column of `values` with its interval; `names` names the columns."""
    sums = [weights @ values for weights in _weights(len(values), seed, resamples)]
    means = np.concatenate(sums) / len(values)
    return _estimates(names, np.vstack([values.mean(axis=0), means]))


def _correlations(values: F64, scores: npt.ArrayLike, seed: int, resamples: int) -> F64:
    """Return the Spearman correlation of columns and scores, shape (1 + resamples, columns).

    Row 0 is the correlation over all sentences; each other row is over one resample.
    """
    gold = np.asarray(scores, np.float64)
    if len(gold) != len(values):
        raise UsageError(f"{len(gold):,} scores, but another number of similarities")
    blocks = []
    for weights in chain([np.ones((1, len(gold)))], _weights(len(gold), seed, resamples)):
        gold_ranks, gold_spread = _ranks(weights, gold)
        weighted, correlations = weights * gold_ranks, np.zeros((len(weights), values.shape[1]))
        for index, column in enumerate(values.T):
            ranks, spread = _ranks(weights, column)
            products, scale = np.einsum("ij,ij->i", weighted, ranks), np.sqrt(gold_spread * spread)
            np.divide(products, scale, out=correlations[:, index], where=scale > 0)
        blocks.append(correlations)
    return np.concatenate(blocks)


def _ranks(weights: F64, values: F64) -> tuple[F64, F64]:
    """Return the rank of each value in each resample, and each resample's sum of squared ranks.

    Ranks are centred. Equal values share their mean rank c - (w - 1) / 2, where w counts the copies
    of the value in the resample, and c its copies and all smaller values.
    """
    _, places = np.unique(values, return_inverse=True)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    copies = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(copies, axis=1) - (copies - 1) / 2 - (len(values) + 1) / 2
    return ranks[:, places], np.einsum("ij,ij,ij->i", copies, ranks, ranks)


def _estimates(names: Columns[K], figures: F64) -> dict[K, Resampled]:
    """Return row 0 of `figures` with interval and p-value from the other rows, the resamples."""
    drawn = figures[1:]
    lesser = np.minimum((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))
    p_values = np.minimum(1, 2 * (lesser + 1) / (len(drawn) + 1))
    columns = np.stack([figures[0], *np.percentile(drawn, _INTERVAL, axis=0), p_values], axis=1)
    return {name: Resampled(*row) for name, row in zip(names, columns.tolist(), strict=True)}


LEVELS = (0.05, 0.01, 0.001)  # a p-value gets a star for each level it is below


@dataclass(frozen=True)
class McNemar:
    """Result of McNemar's test: its two-sided p, and the items on which the models differ.

    `repaired` counts the items that only our model got right, `broken` the items that only the
    other model got right.
    """

    repaired: int
    broken: int
    p: float


def mcnemar(ours: Bool, theirs: Bool) -> McNemar:
    """Compare two models by masks of the items they got right: McNemar's exact test (1947).

    If the models differ on m items and are equally good, each of these items is repaired or broken
    with chance 1/2. So p = min(1, 2 P(X <= min(repaired, broken))) with X binomial (m, 1/2).
    """
    if len(ours) != len(theirs):
        raise UsageError(f"{len(ours):,} items of one model, {len(theirs):,} of the other")
    with naming_extras():
        from scipy.special import bdtr

    repaired, broken = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    differing = repaired + broken
    tail = float(bdtr(min(repaired, broken), differing, 0.5)) if differing else 1.0
    return McNemar(repaired, broken, min(1.0, 2 * tail))


def holm(p_values: Sequence[float] | F64) -> F64:
    """Return the p-values corrected for multiple tests by Holm's step-down method (1979)."""
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1, np.maximum.accumulate(steps))
    return corrected


def two_sample_t(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float:
    """Return the two-sided p of the hypothesis that two samples have the same mean and variance.

    RoLASER tests a student against its teacher in this way, over the values under ten noise seeds.
    If neither sample varies, p is 1 for equal values, else 0. Raises UsageError for fewer than two
    values per sample.
    """
    samples = _samples(ours, theirs)
    if not any(map(np.ptp, samples)):
        return float(samples[0][0] == samples[1][0])
    with naming_extras():
        from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy warns of a sample of equal values
        return float(ttest_ind(*samples, equal_var=True).pvalue)


def one_sample_t(values: npt.ArrayLike, null: float) -> float:
    """Return the two-sided p of the hypothesis that a sample has the mean `null`.

    RoLASER tests metrics against 0, and the type/token ratio of noisy text against the ratio of
    standard text; noisegen divides the two ratios and tests the quotient against 1. If all values
    are equal, p is 1 if they equal `null`, else 0. Raises UsageError for fewer than two values.
    """
    [sample] = _samples(values)
    if not np.ptp(sample):
        return float(sample[0] == null)
    with naming_extras():
        from scipy.stats import ttest_1samp

    return float(ttest_1samp(sample, null).pvalue)


def _samples(*given: npt.ArrayLike) -> list[F64]:
    samples = [np.asarray(sample, np.float64) for sample in given]
    if any(sample.ndim != 1 or len(sample) < 2 for sample in samples):
        raise UsageError("a t-test needs at least two noise seeds")
    return samples


def stars(p: float) -> str:
    """Return a star for each of the levels 0.05, 0.01 and 0.001 that p is below."""
    return "*" * sum(p < level for level in LEVELS)
