"""Tests of one model against another: McNemar, Holm's correction, and the t-tests of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError
from noisegen.evaluation.unit_vectors import F64, Bool

LEVELS = (0.05, 0.01, 0.001)  # one star each


@dataclass(frozen=True)
class McNemar:
    """Items that only one model got right: `repaired` by ours, `broken` by it; two-sided p."""

    repaired: int
    broken: int
    p: float


def mcnemar(ours: Bool, theirs: Bool) -> McNemar:
    """Compare two models by which of the same items they got right, exactly.

    Given that the models differ on m items, each is repaired or broken by the toss of a coin:
    p = min(1, 2 P(X <= min(repaired, broken))) with X binomial (m, 1/2). McNemar (1947) in its
    exact form.
    """
    if len(ours) != len(theirs):
        raise UsageError(f"{len(ours):,} items of one model, {len(theirs):,} of the other")
    repaired, broken = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return McNemar(repaired, broken, _sign_test(repaired, broken))


def _sign_test(one: int, other: int) -> float:
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(one, other), one + other, 0.5))) if one + other else 1.0


def holm(p_values: Sequence[float] | F64) -> F64:
    """Return p-values corrected for their number: Holm's step-down method (1979)."""
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1, np.maximum.accumulate(steps))
    return corrected


def two_sample_t(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float:
    """Return the two-sided p of two samples having the same mean, variances taken as equal.

    RoLASER's test of a student against its teacher over the figures of ten generation seeds.
    Samples without any variance give 0 or 1. Raises UsageError for fewer than two figures a side.
    """
    one, other = _figures(ours), _figures(theirs)
    if one.ptp == 0 and other.ptp == 0:
        return float(one.values[0] == other.values[0])
    from scipy.stats import ttest_ind

    return float(ttest_ind(one.values, other.values, equal_var=True).pvalue)


def one_sample_t(figures: npt.ArrayLike, expected: float) -> float:
    """Return the two-sided p of a sample having this mean, as RoLASER tests distances against 0.

    A sample without any variance gives 0 or 1. Raises UsageError for fewer than two figures.
    """
    given = _figures(figures)
    if given.ptp == 0:
        return float(given.values[0] == expected)
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(given.values, expected).pvalue)


@dataclass(frozen=True)
class _Figures:
    values: F64

    @property
    def ptp(self) -> float:
        return float(np.ptp(self.values))


def _figures(given: npt.ArrayLike) -> _Figures:
    values = np.asarray(given, np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise UsageError("a t-test needs the figures of two generation seeds at least")
    return _Figures(values)


def stars(p: float) -> str:
    """Return a star for each of the levels 0.05, 0.01 and 0.001 that p is below."""
    return "*" * sum(p < level for level in LEVELS)
