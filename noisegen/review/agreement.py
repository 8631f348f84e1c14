"""Agreement of several reviewers."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Metric = Literal["nominal", "ordinal"]


def krippendorff_alpha(
    units: Iterable[Sequence[int]], categories: int, metric: Metric
) -> float | None:
    """Return Krippendorff's alpha of values 0 to `categories` - 1, one sequence a unit.

    A unit has the values that its reviewers gave; missing ones are left out, so units may differ in
    length. 1 is full agreement, 0 that of chance; None where no unit has two values or all values
    are the same. Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), the
    general form with coincidence matrices.
    """
    observed = coincidences(units, categories)
    totals = observed.sum(axis=0)
    distance = _distances(totals, metric)
    expected = float((np.outer(totals, totals) * distance).sum())
    if not expected:
        return None
    return float(1 - (totals.sum() - 1) * (observed * distance).sum() / expected)


def coincidences(units: Iterable[Sequence[int]], categories: int) -> F64:
    """Return the matrix of value pairs within units, a unit of m values weighing 1 / (m - 1)."""
    matrix = np.zeros((categories, categories))
    for unit in units:
        if len(unit) > 1:
            counts = np.bincount(unit, minlength=categories)
            matrix += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    return matrix


def _distances(totals: F64, metric: Metric) -> F64:
    """Return the squared difference of every pair of values."""
    if metric == "nominal":
        return 1 - np.eye(len(totals))
    # The values between two ranks, both ends counted by half.
    middles = np.cumsum(totals) - totals / 2
    squared: F64 = (middles[:, None] - middles[None, :]) ** 2
    return squared
