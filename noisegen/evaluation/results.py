"""Options and results of an evaluation.

`Results` is written to results.json beside the report. The report can be drawn again from that file
without a model.
"""

from dataclasses import asdict, dataclass, field
from itertools import combinations
from math import isfinite, sqrt
from statistics import fmean
from textwrap import shorten
from typing import Annotated, Any

import msgspec

from noisegen.augmentation import Transforms
from noisegen.errors import UsageError
from noisegen.options import argument, internal, listed, option
from noisegen.runs.options import Device
from noisegen.runs.progress import Show, silent
from noisegen.text.notebook import framed

Names = tuple[str, ...]
OUT, LIMIT = ("-o", "--out"), ("-n", "--limit")
REPR_MAX = 200  # most characters of the repr of results
PER_KIND = 3  # hard negatives per sentence in each family: number, name, statement


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of `noisegen evaluate`: models, test sets and noise."""

    models: Annotated[Names, argument("MODEL...")]
    out: Annotated[
        str,
        option("Folder for metrics.json, metrics.csv and report.html", *OUT, metavar="REPORT"),
    ]
    baseline: Annotated[
        str | None,
        option(
            "Model to compare with (default: the teacher of the first model, if noisegen trained "
            "it; else the first model)",
            metavar="SPEC",
        ),
    ] = None
    pairs: Annotated[
        Names, option("Natural noisy/clean pairs: tables, M2 files, folders", metavar="PAIRS")
    ] = ()
    pool: Annotated[
        Names,
        option(
            "For --pairs: more clean text to search for the clean side, up to 50,000 sentences",
            metavar="SOURCE",
        ),
    ] = ()
    source: Annotated[Names, option("Clean text to noise", metavar="SOURCE")] = ()
    transforms: Annotated[
        Names,
        option(
            "For --source: transforms and recipes, comma-separated (all: RoLASER's transforms, "
            "transforms of posts, mix_all and ugc)",
            metavar="NAMES",
        ),
    ] = ("all",)
    seeds: Annotated[int, option("For --source: number of noise seeds, from 100 on", ge=1)] = 10
    strengths: Annotated[tuple[float, ...], internal()] = (0.0, 0.5, 1.0, 1.5)
    sts: Annotated[
        Names, option("STS set: columns sentence1, sentence2, score", metavar="SOURCE")
    ] = ()
    retrieval: Annotated[
        Names, option("Bitext, or a table with columns source, target", metavar="SOURCE")
    ] = ()
    retrieval_set: Annotated[
        Names,
        option(
            "Queries and documents, as in BEIR: corpus.jsonl, queries.jsonl, qrels/*.tsv",
            metavar="FOLDER",
        ),
    ] = ()
    noisy_queries: Annotated[
        str | None,
        option(
            "For --retrieval-set: the queries as people typed them, by the same ids (default: "
            "queries.noisy.jsonl or query.typo.tsv in the folder, else noise of --recipe)",
            metavar="FILE",
        ),
    ] = None
    target_model: Annotated[
        str | None,
        option(
            "For --retrieval: model that encodes the target side for all models (default: each "
            "model itself)",
            metavar="SPEC",
        ),
    ] = None
    labelled: Annotated[
        Names,
        option(
            "Labelled set: columns text, label, or sentence1, sentence2, label", metavar="SOURCE"
        ),
    ] = ()
    labelled_train: Annotated[
        str | None,
        option(
            "For --labelled: labelled texts to train the classifier on (default: half of each set)",
            metavar="SOURCE",
        ),
    ] = None
    samples_per_label: Annotated[
        int,
        option("For --labelled: training texts per label and experiment, 8 or more in MTEB", ge=1),
    ] = 8
    steps: Transforms = ()
    recipe: Annotated[
        str,
        option(
            "Recipe for the noise of --sts, --retrieval-set and --labelled",
            metavar="NAME|FILE.yaml",
        ),
    ] = "ugc"
    lang: Annotated[str, option("Language of the text")] = "en"
    limit: Annotated[
        int | None,
        option(
            "Maximum rows per set, evenly spaced (default: all; for --source 2,000)", *LIMIT, ge=2
        ),
    ] = None
    hard: Annotated[bool, option("Also measure xSIM among hard negatives")] = True
    per_kind: Annotated[
        int, option("Hard negatives of each family per sentence (xSIM++: about 44 in all)", ge=1)
    ] = PER_KIND
    augmented: Annotated[
        str | None,
        option(
            "errtype.json of xSIM++, whose hard negatives replace noisegen's; also added to the "
            "English side of --retrieval",
            metavar="FILE",
        ),
    ] = None
    paper_stats: Annotated[
        bool, option("Use t-tests over the seeds, uncorrected, as in RoLASER")
    ] = False
    noisy_column: Annotated[str, option("Noisy column of --pairs")] = "noisy"
    clean_column: Annotated[str, option("Clean column of --pairs")] = "clean"
    clean_file: Annotated[
        str | None,
        option("Text file with the clean version of each line of --pairs", metavar="FILE"),
    ] = None
    text_column: Annotated[str, option("Text column of --source, --pool and --labelled")] = "text"
    label_column: Annotated[str, option("Label column of --labelled")] = "label"
    device: Device = "auto"
    force: Annotated[bool, option("Overwrite the report in this folder")] = False
    progress: Annotated[Show, internal()] = silent

    def __post_init__(self) -> None:
        given = self.pairs, self.source, self.sts, self.retrieval, self.retrieval_set, self.labelled
        if not any(given):
            raise UsageError(
                "nothing to evaluate on: give --pairs, --source, --sts, --retrieval, "
                "--retrieval-set or --labelled"
            )
        if self.noisy_queries and len(self.retrieval_set) != 1:
            raise UsageError("--noisy-queries is for one retrieval set: give --retrieval-set")
        if self.steps and self.transforms != ("all",):
            raise UsageError("--transforms and -t exclude each other: each names the noise")
        if self.pool and not self.pairs:
            raise UsageError("--pool is for natural pairs: give --pairs")
        if self.target_model and not self.retrieval:
            raise UsageError("--target-model is for translations: give --retrieval")
        if self.augmented and not (self.hard and (self.pairs or self.source or self.retrieval)):
            raise UsageError("--augmented is for --source, --pairs, --retrieval, without --no-hard")
        if self.labelled_train and not self.labelled:
            raise UsageError("--labelled-train is for labelled texts: give --labelled")
        if any(not 0 <= factor <= 100 for factor in self.strengths):
            raise UsageError("--strengths are factors from 0 to 100")

    @property
    def noise(self) -> str:
        """Name of the noise of queries and tasks: the transforms of -t, or the recipe."""
        return " + ".join(listed(self.steps)) or self.recipe


@dataclass(frozen=True)
class Model:
    """One encoder that was evaluated."""

    name: str  # unique; shown in tables
    spec: str
    width: int
    digest: str
    parameters: int | None = None  # number of weights; None if the encoder is no torch module
    baseline: bool = False


@dataclass(frozen=True)
class Dataset:
    """One test set.

    `kind` is `pairs` (natural), `noise` (a transform or recipe on clean text), `sts`, `retrieval`,
    `search` (queries and documents), `classification` or `pair_classification`. `changed` is the
    number of rows whose noisy text differs from the clean one, on average over the noise seeds.
    """

    name: str
    kind: str
    rows: int
    changed: int | None = None
    seeds: tuple[int, ...] = ()  # noise seeds of a set of kind `noise`
    note: str = ""


def floor_of(seeds: tuple[float, ...]) -> float | None:
    """Return the expected change of a metric's mean if the noise is drawn with new seeds.

    `seeds` has the value of the metric under each noise seed. The result is the mean difference
    between two values, divided by the root of the number of seeds; None for one seed.
    """
    if len(seeds) < 2:
        return None
    mean = fmean(abs(one - other) for one, other in combinations(seeds, 2))
    return mean / sqrt(len(seeds))


@dataclass(frozen=True)
class Score:
    """Value of a metric: the mean over the noise seeds, with a 95 % interval.

    `seeds` has the value under each noise seed. `low` and `high` bound the interval over sentences,
    from a bootstrap; `sd` is the standard deviation over the noise seeds. `p_null` comes from a
    one-sample t-test of `seeds` against `Metric.null` (--paper-stats). Each is None if it was not
    computed.
    """

    value: float
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    seeds: tuple[float, ...] = ()
    p_null: float | None = None

    @property
    def floor(self) -> float | None:
        """The expected change of `value` with other noise seeds; None for one seed."""
        return floor_of(self.seeds)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval to show: `low` to `high`, else `value` - `sd` to `value` + `sd`.

        None if neither is known.
        """
        if self.low is not None and self.high is not None and isfinite(self.low + self.high):
            return self.low, self.high
        if self.sd is not None and isfinite(self.sd):
            return self.value - self.sd, self.value + self.sd
        return None


@dataclass(frozen=True)
class Comparison:
    """A comparison of a model with the baseline in one metric of one dataset.

    `difference` is the model's value minus the baseline's. `p` belongs to the paired test named in
    `test` (`bootstrap`, `mcnemar`, or `t` with --paper-stats). `p_holm` is `p` corrected for tests
    of the same metric on all datasets of one kind. In metrics that count rows as right or wrong,
    `repaired` rows are right only with the model, `broken` rows only with the baseline. `floor` is
    the greater `Score.floor` of model and baseline.
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
    floor: float | None = None

    @property
    def is_within_floor(self) -> bool:
        """Whether the difference is at most the floor; False for t-tests over the seeds."""
        if self.test == "t" or not self.floor:
            return False
        return abs(self.difference) <= self.floor

    @property
    def p_shown(self) -> float:
        """The p-value for verdicts: `p_holm`, or for t-tests the uncorrected `p`, as in RoLASER."""
        return self.p if self.test == "t" else self.p_holm

    @property
    def items(self) -> str:
        """The counts in words, such as "14 newly right, 10 newly wrong"; '' if there are none."""
        if self.repaired is None or self.broken is None:
            return ""
        return f"{self.repaired:,} newly right, {self.broken:,} newly wrong"


@dataclass(frozen=True)
class StrengthCurve:
    """Mean cosine distance and xSIM error of a model on a set, at each strength of the noise.

    A strength is a factor on the rates of the recipe. A set of queries and documents has nDCG@10
    instead.
    """

    model: str
    dataset: str
    strengths: tuple[float, ...]
    distance: tuple[float, ...] = ()
    xsim_error: tuple[float, ...] = ()
    ndcg_noisy: tuple[float, ...] = ()


@dataclass(frozen=True)
class ShownPair:
    """Example pair: a clean and a noisy text, and the distance of their vectors under each model.

    `kind` is `repaired` or `broken`.
    """

    kind: str
    dataset: str
    clean: str
    noisy: str
    distances: dict[str, float]


@dataclass(frozen=True)
class Projection:
    """Clean and noisy sentences as points on the main plane of the baseline's vectors.

    The axes of the plane are the first two principal components. `points[model]` has (clean x,
    clean y, noisy x, noisy y) for every pair. `spearman` is the correlation of the distances
    between points before and after projection.
    """

    dataset: str
    texts: tuple[tuple[str, str], ...]  # clean, noisy
    points: dict[str, tuple[tuple[float, float, float, float], ...]]
    explained: tuple[float, float]  # share of the variance that each component explains
    spearman: float


@dataclass(frozen=True)
class Results:
    """Results of an evaluation: the values, and everything else that the report shows.

    `scores[model][dataset][metric]` has the values; metrics.tsv lists the metrics.
    """

    models: tuple[Model, ...]
    datasets: tuple[Dataset, ...]
    scores: dict[str, dict[str, dict[str, Score]]]
    comparisons: tuple[Comparison, ...] = ()
    doses: tuple[StrengthCurve, ...] = ()
    examples: tuple[ShownPair, ...] = ()
    projections: tuple[Projection, ...] = ()
    training: dict[str, Any] | None = None  # name, config and log of a student's training run
    settings: dict[str, Any] = field(default_factory=dict)  # options, notes, versions, duration

    @property
    def baseline(self) -> Model:
        """The model with which the others are compared; the first if none is marked."""
        return next((model for model in self.models if model.baseline), self.models[0])

    def __repr__(self) -> str:
        models = ", ".join(model.name for model in self.models)
        sets = ", ".join(dataset.name for dataset in self.datasets)
        return shorten(f"<Results of {models} on {sets}>", REPR_MAX, placeholder=" ...>")

    def _repr_html_(self) -> str:
        return framed(self, "noisegen.evaluation.page:page")

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {dataset: {metric: value}}}.

        With several noise seeds, `metric_floor` follows the metrics of a set.
        """
        return {
            model: {
                dataset: {metric: score.value for metric, score in scores.items()}
                | {
                    f"{metric}_floor": score.floor
                    for metric, score in scores.items()
                    if score.floor is not None
                }
                for dataset, scores in datasets.items()
            }
            for model, datasets in self.scores.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the content of results.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Results":
        """Restore the results from the content of results.json."""
        return msgspec.convert(content, cls)
