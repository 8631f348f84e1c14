"""Results as the sections of the report ask for them: by name, in order, only what is a number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from noisegen.evaluation.metrics import METRICS, Metric
from noisegen.evaluation.results import Comparison, Dataset, Model, Results, Score

ALPHA = 0.05  # a difference counts as shown where p after Holm is below
STYLES = 8  # colours and marks of models in page.css and svg.py


@dataclass(frozen=True)
class Findings:
    """Look-ups over `Results`."""

    results: Results

    @cached_property
    def baseline(self) -> Model:
        """The model that the others are compared with; the first where none is marked."""
        models = self.results.models
        return next((model for model in models if model.baseline), models[0])

    @cached_property
    def students(self) -> list[Model]:
        """All other models, in order."""
        return [model for model in self.results.models if model is not self.baseline]

    @cached_property
    def models(self) -> list[Model]:
        """All models, the baseline first."""
        return [self.baseline, *self.students]

    @cached_property
    def compared(self) -> dict[tuple[str, str, str], Comparison]:
        """The comparisons by (model, dataset, metric)."""
        return {(one.model, one.dataset, one.metric): one for one in self.results.comparisons}

    def style(self, model: str) -> str:
        """Return the class that gives a model its colour."""
        return f"m{self.place(model)}"

    def place(self, model: str) -> int:
        """Return the number of a model's colour and mark."""
        names = [one.name for one in self.models]
        return names.index(model) % STYLES if model in names else STYLES - 1

    def datasets(self, *kinds: str) -> list[Dataset]:
        """Return the sets of these kinds, in the order of `kinds`."""
        return [one for kind in kinds for one in self.results.datasets if one.kind == kind]

    def score(self, model: str, dataset: str, metric: str) -> Score | None:
        """Return a figure, or None where there is none or it is no number."""
        found = self.results.scores.get(model, {}).get(dataset, {}).get(metric)
        return found if found is not None and isfinite(found.value) else None

    def values(self, model: str, datasets: Iterable[Dataset], metric: str) -> list[float]:
        """Return the figures there are of one metric over several sets."""
        scores = (self.score(model, one.name, metric) for one in datasets)
        return [score.value for score in scores if score]

    def metrics(self, datasets: Sequence[Dataset]) -> list[Metric]:
        """Return the metrics that any model has on any of these sets, in the order of METRICS.

        A figure that METRICS does not know comes last, under its own name.
        """
        scored = self.results.scores.values()
        found = {name for by_set in scored for one in datasets for name in by_set.get(one.name, ())}
        unknown = sorted(found - set(METRICS))
        known = [metric for metric in METRICS.values() if metric.name in found]
        return known + [metric_of(name) for name in unknown]

    def first_metric(self, datasets: Sequence[Dataset], *names: str) -> Metric | None:
        """Return the first of these metrics that these sets have."""
        found = {metric.name: metric for metric in self.metrics(datasets)}
        return next((found[name] for name in names if name in found), None)


def metric_of(name: str) -> Metric:
    """Return what is known of a metric; of an unknown one its name."""
    return METRICS.get(name) or Metric(name, name, "", "", "")


def verdict(one: Comparison) -> str:
    """Return 'better', 'worse' or 'same': what a comparison shows at `ALPHA` after Holm."""
    better = metric_of(one.metric).better
    if not better or not one.p_holm < ALPHA or not one.difference:
        return "same"
    return "better" if (one.difference < 0) == (better == "low") else "worse"


def bounds(score: Score) -> tuple[float, float] | None:
    """Return the interval of a figure: bootstrap's, else one sd on either side."""
    if score.low is not None and score.high is not None and isfinite(score.low + score.high):
        return score.low, score.high
    if score.sd is not None and isfinite(score.sd):
        return score.value - score.sd, score.value + score.sd
    return None
