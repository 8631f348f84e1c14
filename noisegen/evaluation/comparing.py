"""Figures with their intervals, and models against the baseline: paired tests, Holm's correction.

Paired bootstrap over sentences for means and for Spearman's correlation; McNemar's exact test where
an item is right or wrong and there is one generation seed; t-tests over the seeds if asked for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeVar

import numpy as np

from noisegen.evaluation.bootstrap import (
    Difference,
    Estimate,
    mean_differences,
    mean_intervals,
    spearman_differences,
    spearman_intervals,
)
from noisegen.evaluation.measuring import F64, RIGHT, WRONG, Measured
from noisegen.evaluation.results import Comparison, Score
from noisegen.evaluation.sets import EvaluationSet, PairSet, StsSet
from noisegen.evaluation.significance import holm, mcnemar, two_sample_t
from noisegen.intervals import wilson

Found = Mapping[str, Measured]  # by the name of the set
_NOT_COMPARED = ("drift",)  # the baseline has none
_POINTS = 100  # sts figures are 100 x Spearman


def scores(sets: Sequence[EvaluationSet], found: Found) -> dict[str, dict[str, Score]]:
    """Return the figures of one model by set and metric."""
    intervals = _intervals(sets, found)
    made: dict[str, dict[str, Score]] = {}
    for one in sets:
        made[one.name] = {
            metric: _score(values, intervals.get((one.name, metric)))
            for metric, values in found[one.name].seeds.items()
            if values and all(map(isfinite, values))
        }
    return made


def _score(values: tuple[float, ...], interval: Estimate | None) -> Score:
    mean = float(np.mean(values))
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    seeds = values if len(values) > 1 else ()
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Score(mean, low, high, sd, seeds)


Key = tuple[str, str]  # set, metric
T = TypeVar("T")


def _intervals(sets: Sequence[EvaluationSet], found: Found) -> dict[Key, Estimate]:
    made: dict[Key, Estimate] = {}
    for names in _groups(sets):
        columns = _columns(names, found)
        if columns:
            made |= _keyed(columns, mean_intervals(_named(columns)))
        made |= {key: _of_share(rows) for key, rows in columns.items() if _is_share(key, rows)}
    for one in sets:
        cosines = found[one.name].cosines
        if isinstance(one, StsSet) and cosines:
            for metric, estimate in spearman_intervals(cosines, one.scores).items():
                made[one.name, metric] = Estimate(*(_POINTS * v for v in vars(estimate).values()))
    return made


def _is_share(key: Key, rows: F64) -> bool:
    return key[1] in (*WRONG, *RIGHT) and set(np.unique(rows)) <= {0.0, 100.0}


def _of_share(rows: F64) -> Estimate:
    """Return a share with Wilson's interval: a bootstrap of no errors would be sure of none."""
    share = float(rows.mean()) / 100
    return Estimate(100 * share, *(100 * bound for bound in wilson(share, len(rows))))


def _groups(sets: Sequence[EvaluationSet]) -> Iterator[list[str]]:
    """Yield the names of sets with the same rows, which are resampled together."""
    groups: dict[str, list[str]] = defaultdict(list)
    for one in sets:
        key = f"rows of {one.group}" if isinstance(one, PairSet) and one.seeds else one.name
        groups[key].append(one.name)
    yield from groups.values()


def _columns(names: Sequence[str], found: Found) -> dict[Key, F64]:
    return {(name, metric): rows for name in names for metric, rows in found[name].rows.items()}


def _named(columns: Mapping[Key, F64]) -> dict[str, F64]:
    return {str(place): rows for place, rows in enumerate(columns.values())}


def _keyed(columns: Mapping[Key, F64], made: Mapping[str, T]) -> dict[Key, T]:
    return dict(zip(columns, made.values(), strict=True))


@dataclass(frozen=True)
class Contest:
    """A model's name, what it made of the sets, and the same of the baseline."""

    model: str
    ours: Found
    theirs: Found


def compare(
    sets: Sequence[EvaluationSet], tested: Contest, *, paper_stats: bool = False
) -> list[Comparison]:
    """Compare a model with the baseline in each metric of each set that both have by row.

    `paper_stats`: two-sample t-tests over the generation seeds, as in RoLASER, where there are two
    seeds or more.
    """
    made = [*_by_means(sets, tested), *_by_spearman(sets, tested)]
    if paper_stats:
        made = [_by_seeds(one, tested) for one in made]
    kinds = {one.name: one.kind for one in sets}
    return _corrected(made, lambda one: (kinds[one.dataset], one.metric))


def _by_means(sets: Sequence[EvaluationSet], tested: Contest) -> Iterator[Comparison]:
    for names in _groups(sets):
        sides = [_columns(names, found) for found in (tested.ours, tested.theirs)]
        shared = [key for key in sides[0] if key in sides[1] and key[1] not in _NOT_COMPARED]
        if not shared:
            continue
        ours, theirs = ({key: side[key] for key in shared} for side in sides)
        found = _keyed(ours, mean_differences(_named(ours), _named(theirs)))
        for key, difference in found.items():
            yield _mean_comparison(tested, key, difference)


def _mean_comparison(tested: Contest, key: Key, difference: Difference) -> Comparison:
    """Return a comparison by the bootstrap, or by McNemar's test where that is the sharper one."""
    name, metric = key
    ours, theirs = tested.ours[name], tested.theirs[name]
    p = 1.0 if np.array_equal(ours.rows[metric], theirs.rows[metric]) else difference.p
    made = Comparison(tested.model, name, metric, difference.value, "bootstrap", p, p)
    if metric not in (*WRONG, *RIGHT) or len(ours.seeds[metric]) > 1:
        return made
    right = [side.rows[metric] == (0 if metric in WRONG else 100) for side in (ours, theirs)]
    found = mcnemar(*right)
    return replace(made, test="mcnemar", p=found.p, repaired=found.repaired, broken=found.broken)


def _by_spearman(sets: Sequence[EvaluationSet], tested: Contest) -> Iterator[Comparison]:
    for one in sets:
        if not isinstance(one, StsSet):
            continue
        ours, theirs = tested.ours[one.name].cosines, tested.theirs[one.name].cosines
        for metric, found in spearman_differences(ours, theirs, one.scores).items():
            p = 1.0 if np.array_equal(ours[metric], theirs[metric]) else found.p
            difference = _POINTS * found.value
            yield Comparison(tested.model, one.name, metric, difference, "bootstrap", p, p)


def _by_seeds(one: Comparison, tested: Contest) -> Comparison:
    ours, theirs = (side[one.dataset].seeds[one.metric] for side in (tested.ours, tested.theirs))
    if min(len(ours), len(theirs)) < 2:
        return one
    return replace(one, test="t", p=two_sample_t(ours, theirs))


def _corrected(
    made: Sequence[Comparison], family: Callable[[Comparison], tuple[str, str]]
) -> list[Comparison]:
    """Correct p within each family; the order stays."""
    families: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, one in enumerate(made):
        families[family(one)].append(place)
    found = list(made)
    for places in families.values():
        corrected = holm([made[place].p for place in places])
        for place, p in zip(places, corrected.tolist(), strict=True):
            found[place] = replace(made[place], p_holm=p)
    return found
