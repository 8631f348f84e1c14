"""Tiers of rows: which factors of all steps, for which shares of the rows, give the real spread.

Real rows differ more than draws alone make them: many are untouched, a few are noisy throughout.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from noisegen.realism.signatures import EDITS, F64, KIND, RARE, distance, nonnegative, unchanged

LADDER = (0.2, 0.45, 1.0, 2.2, 5.0)  # factors of all steps among which tiers are chosen
TIERS_MAX = 3
SHARE_MIN = 0.005  # of the rows, for a tier to be kept
_TIER_COST = 0.02  # what another tier must gain in `distance`
_SUM_TO_ONE = 10.0  # weight of the line that makes shares of shares


@dataclass(frozen=True)
class Tier:
    """Rows that get the steps at `factor`: their share of all rows."""

    factor: float
    share: float


def chosen(real: F64, ladder: Sequence[F64], most: int) -> tuple[Tier, ...]:
    """Return the tiers, at most so many, whose mix comes nearest to the real vector.

    `ladder` has the vector measured at each factor of `LADDER`.
    """
    options = [found for rungs in _choices(most) if (found := _shares(real, ladder, rungs))]
    least = (Tier(LADDER[0], SHARE_MIN),)  # where real rows hardly ever change
    return min(options or [least], key=lambda tiers: _price(real, ladder, tiers))


def mixed(ladder: Sequence[F64], tiers: Sequence[Tier]) -> F64:
    """Return the vector of all rows, those that are in no tier unchanged."""
    rest = 1 - sum(tier.share for tier in tiers)
    parts = [tier.share * ladder[LADDER.index(tier.factor)] for tier in tiers]
    return np.asarray(np.sum([rest * unchanged(), *parts], axis=0))


def _choices(most: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, max(1, min(most, TIERS_MAX)) + 1):
        yield from combinations(range(len(LADDER)), size)


def _price(real: F64, ladder: Sequence[F64], tiers: Sequence[Tier]) -> float:
    return distance(real, mixed(ladder, tiers)) + _TIER_COST * len(tiers)


def _shares(real: F64, ladder: Sequence[F64], rungs: Sequence[int]) -> tuple[Tier, ...]:
    """Return the shares of some rungs that fit the histogram of edits per row best."""
    weights = 1 / np.sqrt(real[EDITS] + RARE)
    columns = np.array([unchanged(), *(ladder[rung] for rung in rungs)]).T
    edits = columns[KIND].sum(axis=0) / real[KIND].sum()
    lines = [columns[EDITS] * weights[:, None], edits, np.full(len(edits), _SUM_TO_ONE)]
    target = np.concatenate([real[EDITS] * weights, [1.0, _SUM_TO_ONE]])
    found = nonnegative(np.vstack(lines), target)
    shares = (found / max(found.sum(), 1e-9))[1:].tolist()
    return tuple(
        Tier(LADDER[rung], share)
        for rung, share in zip(rungs, shares, strict=True)
        if share > SHARE_MIN
    )
