"""Figures of a task: of one prediction, and over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from noisegen.tasks.kinds import Task
from noisegen.tasks.rows import Row
from noisegen.tasks.spans import count_spans

AVERAGE = "mean"  # the name of the mean over languages
CHANGE = "change"  # noisy minus clean, on the same rows


@dataclass(frozen=True)
class Figure:
    """A metric of a model on one language and side, by seed."""

    model: str
    lang: str
    side: str
    metric: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.values)

    @property
    def sd(self) -> float | None:
        """The sample's standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None


def measure(
    task: Task, rows: Sequence[Row], labels: Sequence[str], tags: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Return the metrics of a prediction: shares in per cent, counts as they are."""
    found: dict[str, float] = {}
    if task.has_label:
        right = sum(row.label == label for row, label in zip(rows, labels, strict=True))
        found[task.metrics[0]] = 100 * right / max(1, len(rows))
    if task.has_tags:
        counts = count_spans([row.tags for row in rows], tags)
        f1 = next(name for name in task.metrics if name.endswith("_f1"))
        found[f1] = 100 * counts.f1
        found["hallucinated_spans"] = counts.hallucinated_spans
        found["hallucinated_tokens"] = counts.hallucinated_tokens
    return found


Measured = Mapping[tuple[str, str], Mapping[str, float]]  # (language, side) -> metric -> value


def figures(model: str, by_seed: Sequence[Measured]) -> list[Figure]:
    """Return the figures of a model, and their means over languages, from one result a seed."""
    made = []
    for (lang, side), metrics in by_seed[0].items():
        for metric in metrics:
            values = tuple(found[lang, side][metric] for found in by_seed)
            made.append(Figure(model, lang, side, metric, values))
    return made + _averages(model, made)


def averaged(found: Sequence[Figure]) -> list[str]:
    """Return the languages that the mean is over: those with all sides that any of them has."""
    sides: dict[str, set[str]] = {}
    for one in found:
        sides.setdefault(one.lang, set()).add(one.side)
    sides.pop(AVERAGE, None)
    every = set[str]().union(*sides.values())
    return [lang for lang, some in sides.items() if some == every]


def _averages(model: str, found: Sequence[Figure]) -> list[Figure]:
    """Return the means over languages, the same for all sides; of one language there is none."""
    langs = averaged(found)
    if len(langs) < 2:
        return []
    kept, made = [one for one in found if one.lang in langs], []
    for side, metric in dict.fromkeys((one.side, one.metric) for one in kept):
        some = [one.values for one in kept if (one.side, one.metric) == (side, metric)]
        values = tuple(map(fmean, zip(*some, strict=True)))
        made.append(Figure(model, AVERAGE, side, metric, values))
    return made
