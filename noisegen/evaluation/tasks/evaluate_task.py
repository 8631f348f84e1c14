"""`noisegen evaluate-task`: fine-tune models on a task, and test them on clean and noisy text."""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
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
from noisegen.evaluation.tasks.fine_tuning import Answers, Trial, Tuning, tunable_tokenizer
from noisegen.evaluation.tasks.kinds import EvaluateTaskOptions
from noisegen.evaluation.tasks.results import TaskFigure, TaskResults, figures, measure_all
from noisegen.evaluation.tasks.sets import TaskData
from noisegen.noising.recipe import Recipe
from noisegen.options import Strings, decode, public
from noisegen.runs.executors import run_in_order
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
    workers: int = 1,
    force: bool = False,
    progress: Show = silent,
) -> TaskResults:
    """Fine-tune models on labelled data and test them in other languages, clean and noisy.

    `models` are SPECs, or NAME=SPEC. The weights after the last epoch are tested. No weights are
    selected on development data, because RCP does not describe how it selects its own. `workers`
    processes fine-tune different seeds at the same time, on all GPUs if there are several. Writes
    metrics.json, metrics.csv, results.json, classes.csv, confusion.csv and report.html. A folder
    that is not empty needs `force`. Raises NoisegenError.
    """
    return _evaluate_task(decode(EvaluateTaskOptions, locals()))


def _evaluate_task(options: EvaluateTaskOptions) -> TaskResults:
    """Run `evaluate_task` with checked options."""
    find_device(options.device)  # raises UsageError before anything is written
    recipe = Recipe.named(options.augment) if options.augment else None
    models = named_models(options.models, next(iter(options.models), None))
    folder = RunFolder(Path(options.out), LAYOUT, {})
    with folder.claimed(force=options.force, can_resume=False, show=options.progress):
        return _measured(folder.out, models, recipe, options)


def _measured(
    out: Path, models: Sequence[NamedModel], recipe: Recipe | None, options: EvaluateTaskOptions
) -> TaskResults:
    """Fine-tune and test the models one after the other, and write all results after each model."""
    began, task, show = time.monotonic(), kinds.TASKS[options.task], options.progress
    encoders = {name: _trainable(encoder, name) for name, encoder in open_all(models, show).items()}
    show(Progress("reading"))
    train = cast(tuple[str, ...], options.train)
    data = sets.read_data(task, train, options.test, lang=options.lang, recipe=options.recipe)
    data.notes += filter(None, map(_left_out, encoders, encoders.values()))
    variants, seeds = _variants(data, options, recipe), kinds.SEEDS[: options.seeds]
    jobs = [SeedJob(*job) for job in product(models, variants, seeds)]
    workers = min(options.workers, len(jobs))
    run = _SeedRuns(data, options.device, workers, encoders, show)
    run.total = sum(map(run.rows_of, jobs))
    measured: list[TaskFigure] = []
    by_class, expected = ClassCounts(), 0
    with closing(run_in_order(run, enumerate(jobs), workers=workers)) as ended:
        for model in models:
            for variant in variants:
                name, values = f"{model.name}{variant.suffix}", []
                for seed, (answers, notes) in zip(seeds, ended, strict=False):
                    job = SeedJob(model, variant, seed)
                    expected += run.rows_of(job)
                    run.count(job, max(0, expected - run.done))
                    data.notes += [note for note in notes if note not in data.notes]
                    values.append(measure_all(data, answers))
                    by_class.add_all(data, name, answers)
                measured += figures(name, values)
            settings = _settings(options, models, data, variants)
            settings["seconds"] = round(time.monotonic() - began, 1)
            results = TaskResults(task, tuple(measured), settings, by_class)
            results.write(out)  # keeps the values if the run stops during the next model
            del encoders[model.name]
    return results


class SeedJob(NamedTuple):
    """A model, the variant in which a process fine-tunes it, and the seed."""

    model: NamedModel
    variant: Variant
    seed: int


@dataclass
class _SeedRuns:
    """Runs jobs in this process, or in worker processes, which get copies without the models.

    `workers` processes share the CPUs; job number n takes GPU n modulo their number, unless
    `device` names one. Progress: `done` of `total` rows are processed.
    """

    data: TaskData
    device: str
    workers: int
    encoders: dict[str, SentenceEncoder]
    show: Show
    total: int = 0
    done: int = 0
    latest: tuple[tuple[str, str], Trial] | None = None  # (model, variant) and their trial

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "encoders": {}, "show": silent, "latest": None}

    def __call__(self, numbered: tuple[int, SeedJob]) -> tuple[Answers, list[str]]:
        """Return the predictions of a job, and notes on test rows that were cut."""
        number, job = numbered
        if self.workers > 1:
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // self.workers))
        device = find_device(self.device, number % max(1, torch.cuda.device_count()))
        trial = self._trial(job)
        tuning = replace(job.variant.tuning, seed=job.seed)
        answers = trial.run(tuning, device, partial(self.count, job))
        return answers, [f"{job.model.name}: {note}" for note in trial.truncation_notes()]

    def _trial(self, job: SeedJob) -> Trial:
        model, variant, _ = job
        key = model.name, variant.suffix
        if self.latest is None or self.latest[0] != key:
            self.count(job, 0, "tokenising")
            if model.name not in self.encoders:  # in a worker process
                encoders = open_all([model], silent)
                self.encoders = {name: _trainable(encoders[name], name) for name in encoders}
            encoder, length = self.encoders[model.name], variant.tuning.max_length
            self.latest = key, Trial(encoder, self.data, variant.rows, length)
        return self.latest[1]

    def rows_of(self, job: SeedJob) -> int:
        """Return the number of rows that a job processes, over its epochs and all tests."""
        tested = sum(len(rows) for test in self.data.tests for rows in test.sides.values())
        return round(job.variant.tuning.epochs * len(job.variant.rows)) + tested

    def count(self, job: SeedJob, rows: int, doing: str = "") -> None:
        """Add `rows` to the rows that jobs have processed, and show their number."""
        self.done += rows
        name = f"{job.model.name}{job.variant.suffix}"
        stage = f"{name}: {doing}" if doing else f"{name}, seed {job.seed}"
        self.show(Progress(stage, self.done, max(self.total, self.done), "rows"))


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
