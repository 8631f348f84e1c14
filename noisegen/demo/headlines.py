"""Three honest lines about a student: noise, similarity, and what did not get better."""

from collections.abc import Iterator
from statistics import fmean

from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.report.findings import ALPHA, verdict
from noisegen.evaluation.report.wording import number
from noisegen.evaluation.results import Comparison, Results

_SHOWN_MAX = 4  # figures named in the third line


def headlines(found: Results) -> tuple[str, str, str]:
    """Return one line each on distances, on STS with drift, and on all that is not better."""
    return _distances(found), _similarities(found), _not_better(found)


def _sides(found: Results, dataset: str, metric: str) -> tuple[float, float]:
    """Return the figures of the baseline and of the student."""
    student = next(model.name for model in found.models if not model.baseline)
    scores = (found.scores[name][dataset][metric] for name in (found.baseline.name, student))
    before, after = (score.value for score in scores)
    return before, after


def _distances(found: Results) -> str:
    noises = [one.name for one in found.datasets if one.kind == "noise"]
    sides = {name: _sides(found, name, "distance") for name in noises}
    halved = sum(after <= before / 2 for before, after in sides.values())
    hardest = max(sides, key=lambda name: sides[name][0])
    before, after = sides[hardest]
    ratio = fmean(after / before for before, after in sides.values() if before)
    return (
        f"distance of noisy text to its clean form: {hardest} {before:.3f} -> {after:.3f}, "
        f"x{ratio:.2f} on average; halved or better for {halved} of {len(noises)} kinds of noise"
    )


def _similarities(found: Results) -> str:
    drifts = [_sides(found, one.name, "drift")[1] for one in found.datasets if one.kind == "noise"]
    said = [
        f"{one.name} {_change(found, one.name, 'sts_clean')} clean, "
        f"{_change(found, one.name, 'sts_one_noisy')} noisy"
        for one in found.datasets
        if one.kind == "sts"
    ]
    moved = f"clean text moved by {max(drifts):.3f}"
    return f"order of similarities (Spearman): {'; '.join(said)}; {moved}"


def _change(found: Results, dataset: str, metric: str) -> str:
    before, after = _sides(found, dataset, metric)
    return " -> ".join(number(METRICS[metric], value) for value in (before, after))


def _not_better(found: Results) -> str:
    tested = [one for one in found.comparisons if METRICS[one.metric].better]
    worse = [one for one in tested if verdict(one) == "worse"]
    same = [one for one in tested if verdict(one) == "same"]
    said = "; ".join(_told(found, worse)) or "nothing"
    return (
        f"worse: {said}. No difference shown in {len(same)} of {len(tested)} comparisons "
        f"(p >= {ALPHA:g} after Holm's correction)"
    )


def _told(found: Results, worse: list[Comparison]) -> Iterator[str]:
    for one in worse[:_SHOWN_MAX]:
        change = _change(found, one.dataset, one.metric)
        yield f"{METRICS[one.metric].title} on {one.dataset} {change}"
    if len(worse) > _SHOWN_MAX:
        yield f"and {len(worse) - _SHOWN_MAX} more"
