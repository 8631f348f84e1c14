"""Options and results of an evaluation.

`Results` is written as results.json beside the report, from which the report can be drawn again
without a model.
"""

from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Annotated, Any

import msgspec

from noisegen.errors import UsageError
from noisegen.options import argument, internal, option
from noisegen.runs.progress import Show, silent

Names = tuple[str, ...]
PER_KIND = 3  # hard negatives of each family per sentence


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of `noisegen evaluate`: models, test sets and noise."""

    models: Annotated[Names, argument("MODEL...")]
    out: Annotated[
        str, option("Folder for metrics.json, metrics.csv and report.html", "-o", "--out",
                    metavar="REPORT"),
    ]  # fmt: skip
    baseline: Annotated[
        str | None,
        option("Model to compare with (default: the teacher of the first model, if noisegen "
               "trained it; else the first model)", metavar="SPEC"),
    ] = None  # fmt: skip
    pairs: Annotated[
        Names, option("Natural noisy/clean pairs: tables, M2 files, folders", metavar="PAIRS")
    ] = ()
    pool: Annotated[
        Names,
        option("For --pairs: more clean text to find the clean side in, up to 50,000 sentences",
               metavar="SOURCE"),
    ] = ()  # fmt: skip
    source: Annotated[Names, option("Clean text to noise", metavar="SOURCE")] = ()
    transforms: Annotated[
        Names,
        option("For --source: transforms and recipes, comma-separated (all: those of RoLASER, "
               "those of posts, mix_all and ugc)", metavar="NAMES"),
    ] = ("all",)  # fmt: skip
    seeds: Annotated[
        int, option("For --source: number of noise seeds, from 100 on", ge=1)
    ] = 10  # fmt: skip
    strengths: Annotated[tuple[float, ...], internal()] = (0.0, 0.5, 1.0, 1.5)
    sts: Annotated[
        Names, option("STS set: columns sentence1, sentence2, score", metavar="SOURCE")
    ] = ()
    retrieval: Annotated[
        Names, option("Bitext, or a table with columns source, target", metavar="SOURCE")
    ] = ()
    target_model: Annotated[
        str | None,
        option("For --retrieval: model of the target side, for all models (default: each its own)",
               metavar="SPEC"),
    ] = None  # fmt: skip
    labelled: Annotated[
        Names,
        option(
            "Labelled set: columns text, label, or sentence1, sentence2, label", metavar="SOURCE"
        ),
    ] = ()
    recipe: Annotated[
        str, option("Recipe for the noise of --sts and --labelled", metavar="NAME|FILE.yaml")
    ] = "ugc"
    lang: Annotated[str, option("Language of the text")] = "en"
    limit: Annotated[
        int | None,
        option("Maximum rows per set, evenly spaced (default: all; of --source 2,000)",
               "-n", "--limit", ge=2),
    ] = None  # fmt: skip
    hard: Annotated[bool, option("Also measure xSIM among hard negatives")] = True
    per_kind: Annotated[
        int, option("Hard negatives of each family per sentence (xSIM++: about 44 in all)", ge=1)
    ] = PER_KIND
    augmented: Annotated[
        str | None,
        option("Hard negatives of xSIM++ in place of noisegen's (its errtype.json); also added to "
               "the English side of --retrieval", metavar="FILE"),
    ] = None  # fmt: skip
    paper_stats: Annotated[
        bool, option("Use t-tests over the seeds, uncorrected, as in RoLASER")
    ] = False
    noisy_column: Annotated[str, option("Noisy column of --pairs")] = "noisy"
    clean_column: Annotated[str, option("Clean column of --pairs")] = "clean"
    clean_file: Annotated[
        str | None,
        option("Text file with the clean version of each line of --pairs", metavar="FILE"),
    ] = None  # fmt: skip
    text_column: Annotated[str, option("Text column of --source, --pool and --labelled")] = "text"
    label_column: Annotated[str, option("Label column of --labelled")] = "label"
    force: Annotated[bool, option("Overwrite the report in this folder")] = False
    progress: Annotated[Show, internal()] = silent

    def __post_init__(self) -> None:
        if not any((self.pairs, self.source, self.sts, self.retrieval, self.labelled)):
            raise UsageError(
                "nothing to evaluate on: give --pairs, --source, --sts, --retrieval or --labelled"
            )
        if self.pool and not self.pairs:
            raise UsageError("--pool is for natural pairs: give --pairs")
        if self.target_model and not self.retrieval:
            raise UsageError("--target-model is for translations: give --retrieval")
        if self.augmented and not (self.hard and (self.pairs or self.source or self.retrieval)):
            raise UsageError("--augmented is for --source, --pairs, --retrieval, without --no-hard")
        if any(not 0 <= factor <= 100 for factor in self.strengths):
            raise UsageError("--strengths are factors from 0 to 100")


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
    """One figure: the mean over `seeds`, with a 95 % interval.

    `low` and `high` come from a bootstrap over sentences, `sd` from the noise seeds, `p_null` from
    a one-sample t-test over them against the metric's null (--paper-stats); None if there is none.
    """

    value: float
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    seeds: tuple[float, ...] = ()
    p_null: float | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval: the bootstrap's, else one sd on either side."""
        if self.low is not None and self.high is not None and isfinite(self.low + self.high):
            return self.low, self.high
        if self.sd is not None and isfinite(self.sd):
            return self.value - self.sd, self.value + self.sd
        return None


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

    @property
    def p_shown(self) -> float:
        """The p that counts: after Holm, but of RoLASER's t-tests as they are, as in the paper."""
        return self.p if self.test == "t" else self.p_holm

    @property
    def items(self) -> str:
        """'14 repaired, 10 broken', or the empty string if items are not counted."""
        if self.repaired is None or self.broken is None:
            return ""
        return f"{self.repaired:,} repaired, {self.broken:,} broken"


@dataclass(frozen=True)
class StrengthCurve:
    """Mean cosine distance and xSIM error over the strength of the noise, a factor on its rates."""

    model: str
    dataset: str
    strengths: tuple[float, ...]
    distance: tuple[float, ...]
    xsim_error: tuple[float, ...]


@dataclass(frozen=True)
class ShownPair:
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
    doses: tuple[StrengthCurve, ...] = ()
    examples: tuple[ShownPair, ...] = ()
    projections: tuple[Projection, ...] = ()
    training: dict[str, Any] | None = None  # config and log of the run that made a student
    settings: dict[str, Any] = field(default_factory=dict)  # options, versions, seconds

    @property
    def baseline(self) -> Model:
        """The model that the others are compared with; the first if none is marked."""
        return next((model for model in self.models if model.baseline), self.models[0])

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {dataset: {metric: value}}}."""
        return {
            model: {
                dataset: {metric: score.value for metric, score in scores.items()}
                for dataset, scores in datasets.items()
            }
            for model, datasets in self.scores.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the content of results.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Results":
        """Return the results from what `to_dict` returned, also after a round trip through JSON."""
        return msgspec.convert(content, cls)
