"""What an evaluation found, as data: everything that tables, files and the report show.

`Results` is written as results.json beside the report and read back from it, so a report can be
drawn again without a model.
"""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Model:
    """One encoder that was evaluated."""

    name: str  # unique in the results; what tables show
    spec: str
    width: int
    digest: str
    parameters: int | None = None  # None where they cannot be counted
    baseline: bool = False


@dataclass(frozen=True)
class Dataset:
    """One set that the models were evaluated on.

    `kind` is `pairs` (natural), `noise` (a transform or recipe on clean text), `sts`, `retrieval`,
    `classification` or `pair_classification`. `changed` counts rows whose two sides differ.
    """

    name: str
    kind: str
    rows: int
    changed: int | None = None
    seeds: tuple[int, ...] = ()  # of generation, for `noise`
    note: str = ""


@dataclass(frozen=True)
class Score:
    """One figure: the mean over `seeds` (of one: the figure itself), with a 95 % interval.

    `low` and `high` come from a bootstrap over sentences; `sd` is over generation seeds. None where
    there is none.
    """

    value: float
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    seeds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """A model against the baseline in one metric of one dataset.

    `difference` = model - baseline. `p` is of the paired test named in `test` (`bootstrap`,
    `mcnemar`, or `t` with --paper-stats); `p_holm` is corrected over the comparisons of the same
    model, kind of dataset and metric. `repaired` and `broken` count items right in one model only,
    where items are right or wrong.
    """

    model: str
    dataset: str
    metric: str
    difference: float
    test: str
    p: float
    p_holm: float
    repaired: int | None = None
    broken: int | None = None


@dataclass(frozen=True)
class Dose:
    """Mean cosine distance and xSIM error over the strength of the noise, a factor on its rates."""

    model: str
    dataset: str
    strengths: tuple[float, ...]
    distance: tuple[float, ...]
    xsim_error: tuple[float, ...]


@dataclass(frozen=True)
class Example:
    """One pair with its cosine distance by model; `kind` is `repaired` or `broken`."""

    kind: str
    dataset: str
    clean: str
    noisy: str
    distances: dict[str, float]


@dataclass(frozen=True)
class Projection:
    """Clean and noisy points of some pairs in the first two components of the baseline's space.

    `points[model]` is (clean x, clean y, noisy x, noisy y) of every pair; `spearman` that of
    distances before and after projection.
    """

    dataset: str
    texts: tuple[tuple[str, str], ...]  # clean, noisy
    points: dict[str, tuple[tuple[float, float, float, float], ...]]
    explained: tuple[float, float]  # share of the variance of each component
    spearman: float


@dataclass(frozen=True)
class Results:
    """All of an evaluation. `scores[model][dataset][metric]`; the metrics' names: `metrics.py`."""

    models: tuple[Model, ...]
    datasets: tuple[Dataset, ...]
    scores: dict[str, dict[str, dict[str, Score]]]
    comparisons: tuple[Comparison, ...] = ()
    doses: tuple[Dose, ...] = ()
    examples: tuple[Example, ...] = ()
    projections: tuple[Projection, ...] = ()
    training: dict[str, Any] | None = None  # config and log of the run that made a student
    settings: dict[str, Any] = field(default_factory=dict)  # options, versions, seconds

    @property
    def baseline(self) -> Model:
        """The model that the others are compared with."""
        return next(model for model in self.models if model.baseline)

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {dataset: {metric: value}}}."""
        return {
            model: {
                dataset: {metric: score.value for metric, score in found.items()}
                for dataset, found in datasets.items()
            }
            for model, datasets in self.scores.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the content of results.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> "Results":
        """Return what `to_dict` told, also where it went through JSON."""
        found = {
            name: tuple(_made(kind, one) for one in said[name]) for name, kind in _LISTED.items()
        }
        scores = {
            model: {
                dataset: {metric: _made(Score, score) for metric, score in of_set.items()}
                for dataset, of_set in of_model.items()
            }
            for model, of_model in said["scores"].items()
        }
        return cls(scores=scores, training=said["training"], settings=said["settings"], **found)


_LISTED = {
    "models": Model, "datasets": Dataset, "comparisons": Comparison, "doses": Dose,
    "examples": Example, "projections": Projection,
}  # fmt: skip


def _made(kind: Any, said: dict[str, Any]) -> Any:
    return kind(**{name: _tuples(value) for name, value in said.items()})


def _tuples(value: Any) -> Any:
    """Return lists as the tuples they were before JSON, in dictionaries too."""
    if isinstance(value, dict):
        return {name: _tuples(one) for name, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
