"""Tasks and their metrics, RCP's hyperparameters, and the options of `evaluate-task`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from noisegen.evaluation.results import OUT
from noisegen.options import Strings, argument, internal, option
from noisegen.runs.options import Device
from noisegen.runs.progress import Show, silent

SEEDS = (1234, 1000, 2000, 3000, 4321)  # training seeds of RCP

METRICS = {
    "intent_accuracy": "intent accuracy %",
    "slot_f1": "slot F1 %",
    "ner_f1": "NER F1 %",
    "accuracy": "accuracy %",
    "hallucinated_spans": "hallucinated spans",
    "hallucinated_tokens": "hallucinated tokens",
}
HALLUCINATED = ("hallucinated_spans", "hallucinated_tokens")


@dataclass(frozen=True)
class LabelledTask:
    """Task with the name of its metric for labels ('intent_accuracy') and for tags ('slot_f1').

    A name is '' if the rows of the task have no labels or no tags.
    """

    name: str
    label_metric: str
    tag_metric: str

    @property
    def shown(self) -> list[str]:
        """The metrics of the task that tables show."""
        invented = HALLUCINATED[0] if self.tag_metric else ""
        return list(filter(None, (self.label_metric, self.tag_metric, invented)))


TASKS = {
    "intent-slots": LabelledTask("intent-slots", "intent_accuracy", "slot_f1"),
    "ner": LabelledTask("ner", "", "ner_f1"),
    "nli": LabelledTask("nli", "accuracy", ""),
}


@dataclass(frozen=True)
class FineTuning:
    """RCP's hyperparameters for one corpus, from the paper's experiments and its launch scripts.

    `epochs_augmented` and `growth` are for training with noisy copies of the rows (task-time
    augmentation): a `growth` of 2.0 doubles the number of rows. The learning rate falls linearly to
    0. `max_length` is in pieces. For WikiANN and XNLI the paper gives no augmentation and no
    length; the values here are noisegen's.
    """

    epochs: float
    epochs_augmented: float
    growth: float
    lr: float
    max_length: int


FINE_TUNING = {
    "snips": FineTuning(40, 10, 5.5, 1e-4, 50),
    "atis": FineTuning(80, 20, 3.5, 1e-4, 50),
    "wikiann": FineTuning(3, 3, 2.0, 2e-5, 128),
    "xnli": FineTuning(5, 5, 2.0, 2e-5, 128),
}
# RCP's share of noisy tokens by language, chosen so that the noise looked real to human judges.
NOISE_RATES = {"fr": 0.1, "de": 0.2, "es": 0.1, "hi": 0.05, "tr": 0.1}
NLI_NOISE_RATE = 0.05


@dataclass(frozen=True)
class EvaluateTaskOptions:
    """Options of `noisegen evaluate-task`: models, labelled data, hyperparameters.

    A hyperparameter that is None takes RCP's value for the corpus (`FINE_TUNING`). The corpus is
    recognised by the format of the training data.
    """

    models: Annotated[tuple[str, ...], argument("MODEL...")]
    out: Annotated[
        str,
        option("Folder for metrics.json, metrics.csv and report.html", *OUT, metavar="REPORT"),
    ]
    train: Annotated[
        Strings,
        option(
            "Labelled data to fine-tune on: SNIPS JSON (file, folder, glob), MultiATIS++ or "
            "MultiSNIPS tables; WikiANN text; XNLI tables; repeatable",
            metavar="FILE",
        ),
    ]
    test: Annotated[
        tuple[str, ...],
        option(
            "Labelled data to test on, in the same formats; repeatable",
            metavar="LANG=CLEAN[,NOISY]",
        ),
    ]
    task: Annotated[Literal["intent-slots", "ner", "nli"], option("Kind of labels in the data")] = (
        "intent-slots"
    )
    lang: Annotated[str, option("Language of --train")] = "en"
    recipe: Annotated[
        str | None,
        option(
            "Transform or recipe for the noisy version of test sets without one "
            "(wiki:dictionary=FILE takes RCP's rate for each language)",
            metavar="NAME|FILE.yaml",
        ),
    ] = None
    augment: Annotated[
        str | None,
        option(
            "Recipe, such as rcp-en-aggregate: also fine-tune each model on noisy copies of the "
            "data (column MODEL+t)",
            metavar="RECIPE",
        ),
    ] = None
    growth: Annotated[
        float | None,
        option(
            "Size of the training data with its noisy copies, as a multiple; needs --augment "
            "(default: 5.5 for SNIPS, 3.5 for ATIS, else 2)",
            metavar="TIMES",
            ge=1,
            le=100,
        ),
    ] = None
    seeds: Annotated[
        int,
        option("Number of seeds, from RCP's 1234, 1000, 2000, 3000, 4321", ge=1, le=len(SEEDS)),
    ] = len(SEEDS)
    epochs: Annotated[
        float | None,
        option(
            "Epochs (default: RCP's: SNIPS 40, with --augment 10; ATIS 80 and 20; WikiANN 3; "
            "XNLI 5)",
            gt=0,
            le=100_000,
        ),
    ] = None
    lr: Annotated[
        float | None,
        option("Learning rate (default: RCP's: 1e-4 for SNIPS, ATIS, else 2e-5)", gt=0, le=1_000),
    ] = None
    batch_tokens: Annotated[int, option("Tokens per update, padding included", ge=1)] = 512
    max_length: Annotated[
        int | None,
        option("Maximum tokens per row (default: 50 for SNIPS and ATIS, else 128)", ge=8),
    ] = None
    fast: Annotated[bool, option("Quick check: at most 3 epochs on at most 4,000 rows")] = False
    device: Device = "auto"
    workers: Annotated[int, option("Processes that fine-tune different seeds at once", ge=1)] = 1
    force: Annotated[bool, option("Overwrite the results in this folder")] = False
    progress: Annotated[Show, internal()] = silent
