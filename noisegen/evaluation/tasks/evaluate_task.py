"""`noisegen evaluate-task`: fine-tune models on a task, and test them on clean and noisy text."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import torch

from noisegen.data.columns import evenly
from noisegen.data.labelled import LabelledRow
from noisegen.encoders.encoder import Encoder, find_device
from noisegen.encoders.head import TOKENS, Dense
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import UsageError
from noisegen.evaluation.evaluate import METRICS_BEGIN, recorded
from noisegen.evaluation.models import NamedModel, named_models, open_all
from noisegen.evaluation.tasks import kinds, sets
from noisegen.evaluation.tasks.by_class import ClassCounts
from noisegen.evaluation.tasks.fine_tuning import Trial, Tuning, tunable_tokenizer
from noisegen.evaluation.tasks.kinds import EvaluateTaskOptions
from noisegen.evaluation.tasks.results import TaskFigure, TaskResults, figures, measure_all
from noisegen.evaluation.tasks.sets import TaskData
from noisegen.noising.recipe import Recipe
from noisegen.options import Strings, decode, public
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.progress import Progress, Show, silent
from noisegen.version import __version__

FAST_EPOCHS, FAST_ROWS = 3.0, 4_000
AUGMENTED = "+t"  # added to the name of a model with task-time augmentation, as in RCP
LAYOUT: Layout[None] = Layout(
    "write",
    whole={
        "metrics.json": METRICS_BEGIN,
        "results.json": r'\{\n "figures": ',
        **dict.fromkeys(("metrics.csv", "classes.csv", "confusion.csv", "report.html"), ""),
    },
    is_overwritten=True,
)


class Variant(NamedTuple):
    """One way to fine-tune: rows and hyperparameters. `suffix` is added to the model's name."""

    suffix: str
    rows: list[LabelledRow]
    tuning: Tuning


@public
def evaluate_task(
    models: tuple[str, ...],
    out: str,
    train: Strings,
    test: tuple[str, ...],
    task: Literal["intent-slots", "ner", "nli"] = "intent-slots",
    lang: str = "en",
    recipe: str | None = None,
    augment: str | None = None,
    growth: float | None = None,
    seeds: int = 5,
    epochs: float | None = None,
    lr: float | None = None,
    batch_tokens: int = 512,
    max_length: int | None = None,
    fast: bool = False,
    device: str = "auto",
    force: bool = False,
    progress: Show = silent,
) -> TaskResults:
    """Fine-tune models on labelled data and test them in other languages, clean and noisy.

    `models` are SPECs, or NAME=SPEC. The weights after the last epoch are tested. No weights are
    selected on development data, because RCP does not describe how it selects its own. Writes
    metrics.json, metrics.csv, results.json, classes.csv, confusion.csv and report.html. A folder
    that is not empty needs `force`. Raises NoisegenError.
    """
    return _evaluate_task(decode(EvaluateTaskOptions, locals()))


def _evaluate_task(options: EvaluateTaskOptions) -> TaskResults:
    """Run `evaluate_task` with checked options."""
    device = find_device(options.device)
    recipe = Recipe.named(options.augment) if options.augment else None
    models = named_models(options.models, next(iter(options.models), None))
    folder = RunFolder(Path(options.out), LAYOUT, {})
    with folder.claimed(force=options.force, can_resume=False, show=options.progress):
        return _measured(folder.out, models, recipe, device, options)


def _measured(
    out: Path,
    models: Sequence[NamedModel],
    recipe: Recipe | None,
    device: torch.device,
    options: EvaluateTaskOptions,
) -> TaskResults:
    """Fine-tune and test the models one after the other, and write all results after each model."""
    began, task, show = time.monotonic(), kinds.TASKS[options.task], options.progress
    encoders = {name: _trainable(encoder, name) for name, encoder in open_all(models, show).items()}
    show(Progress("reading"))
    train = cast(tuple[str, ...], options.train)
    data = sets.read_data(task, train, options.test, lang=options.lang, recipe=options.recipe)
    data.notes += filter(None, map(_left_out, encoders, encoders.values()))
    variants = _variants(data, options, recipe)
    run = _TaskRun(data, variants, kinds.SEEDS[: options.seeds], device, show)
    run.total = run.rows * len(models)
    measured: list[TaskFigure] = []
    for model in models:
        measured += run.figures(model.name, encoders.pop(model.name))
        settings = _settings(options, models, data, variants)
        settings["seconds"] = round(time.monotonic() - began, 1)
        results = TaskResults(task, tuple(measured), settings, run.by_class)
        results.write(out)  # keeps the values if the run stops during the next model
    return results


@dataclass
class _TaskRun:
    """Fine-tuning and tests of models: each in all variants (rows, settings) with all seeds.

    Progress: `done` of `total` rows are processed.
    """

    data: TaskData
    variants: Sequence[Variant]
    seeds: Sequence[int]
    device: torch.device
    show: Show
    total: int = 0
    done: int = 0
    by_class: ClassCounts = field(default_factory=ClassCounts)

    @property
    def rows(self) -> int:
        """The number of rows that one model processes, over all variants and seeds.

        It is the sum of the rows in training epochs and in tests.
        """
        tested = sum(len(rows) for test in self.data.tests for rows in test.sides.values())
        trained = [round(variant.tuning.epochs * len(variant.rows)) for variant in self.variants]
        return len(self.seeds) * (sum(trained) + tested * len(trained))

    def figures(self, model: str, encoder: SentenceEncoder) -> list[TaskFigure]:
        """Fine-tune and test a model in all variants with all seeds; return its values."""
        measured: list[TaskFigure] = []
        for variant in self.variants:
            name, tuning = f"{model}{variant.suffix}", variant.tuning
            self._count(f"{name}: tokenising", 0)
            trial = Trial(encoder, self.data, variant.rows, tuning.max_length)
            if variant is self.variants[0]:  # noted once: all variants have the same test rows
                self.data.notes += [f"{model}: {note}" for note in trial.truncation_notes()]
            runs = []
            for seed in self.seeds:
                step = partial(self._count, f"{name}, seed {seed}")
                answers = trial.run(replace(tuning, seed=seed), self.device, step)
                runs.append(measure_all(self.data, answers))
                for test in self.data.tests:
                    for side, rows in test.sides.items():
                        at = name, test.lang, side
                        self.by_class.add(self.data.task, at, rows, answers[test.lang, side])
            measured += figures(name, runs)
        return measured

    def _count(self, doing: str, rows: int) -> None:
        self.done += rows
        self.show(Progress(doing, self.done, max(self.total, self.done), "rows"))


def _trainable(encoder: Encoder, name: str) -> SentenceEncoder:
    """Return the encoder if it can be fine-tuned, else raise UsageError."""
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"model {name} cannot be fine-tuned: give a Hugging Face folder")
    tunable_tokenizer(encoder, name)
    return encoder


def _left_out(name: str, encoder: SentenceEncoder) -> str:
    """Return a note that an encoder's projection (dense layer) is left out; '' without one."""
    head = encoder.head.settings
    layers = [number for number, step in enumerate(head.steps) if isinstance(step, Dense)]
    if not layers:
        return ""
    side = "before" if head.inputs_of(layers[0]) == TOKENS else "after"
    return f"{name}: its projection {side} pooling is left out: token states are what is fine-tuned"


def _variants(data: TaskData, options: EvaluateTaskOptions, recipe: Recipe | None) -> list[Variant]:
    """Return a variant trained on the data; with `recipe` also a variant with noisy copies."""
    paper = kinds.FINE_TUNING[data.corpus]
    rows = evenly(data.training, FAST_ROWS) if options.fast else data.training
    epochs = min(FAST_EPOCHS, paper.epochs) if options.fast else paper.epochs
    tuning = Tuning(
        epochs=options.epochs or epochs,
        lr=options.lr or paper.lr,
        max_length=options.max_length or paper.max_length,
        batch_tokens=options.batch_tokens,
    )
    variants = [Variant("", rows, tuning)]
    if recipe is not None:
        more = sets.augmented(rows, recipe, options.growth or paper.growth, lang=options.lang)
        share = 1.0 if options.epochs else paper.epochs_augmented / paper.epochs
        shorter = replace(tuning, epochs=tuning.epochs * share)
        variants.append(Variant(AUGMENTED, more, shorter))
    return variants


def _settings(
    options: EvaluateTaskOptions,
    models: Sequence[NamedModel],
    data: TaskData,
    variants: list[Variant],
) -> dict[str, Any]:
    """Return the settings that results.json records."""
    training = []
    for suffix, rows, tuning in variants:
        settings = {"suffix": suffix, "rows": len(rows), **asdict(tuning)}
        del settings["seed"]
        training.append(settings)
    tested = {
        test.lang: {side: len(rows) for side, rows in test.sides.items()} for test in data.tests
    }
    return {
        **recorded(options),
        "corpus": data.corpus,
        "models": {model.name: model.spec for model in models},
        "seeds": list(kinds.SEEDS[: options.seeds]),
        "training": training,
        "rows": tested,
        "notes": data.notes,
        "damaged": data.damaged,
        "versions": {"noisegen": __version__, "torch": str(torch.__version__)},
    }
