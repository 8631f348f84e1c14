"""Semantic similarity: whether cosines rank pairs of sentences as people do."""

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError
from noisegen.evaluation.unit_vectors import F64, Vectors, cosines


def sts_spearman(x: Vectors, y: Vectors, scores: npt.ArrayLike) -> float:
    """Return 100 x Spearman's correlation of the cosine of each pair and its human score."""
    return 100 * spearman(cosines(x, y), np.asarray(scores, np.float64))


def spearman(one: F64, other: F64) -> float:
    """Return the rank correlation; equal values share the mean of their ranks.

    NaN if all values of a side are equal. Raises UsageError for sides of different length.
    """
    if len(one) != len(other):
        raise UsageError(f"{len(one):,} similarities, but {len(other):,} scores")
    ranks = [mean_ranks(side) - (len(side) + 1) / 2 for side in (one, other)]
    spread = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / spread if spread else float("nan")


def mean_ranks(values: npt.NDArray[np.floating]) -> F64:
    """Return ranks from 1; equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: F64 = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks
