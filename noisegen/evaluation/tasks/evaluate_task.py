"""`noisegen evaluate-task`: fine-tunes models on a task and tests them on clean and noisy text."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, cast

import torch
from rich.table import Table
from rich.text import Text

from noisegen.data.columns import evenly
from noisegen.data.labelled import OUTSIDE, LabelledRow
from noisegen.encoders.encoder import Encoder, find_device
from noisegen.encoders.head import TOKENS, Dense
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.stored import write_json
from noisegen.encoders.tokens import piece_tokenizer
from noisegen.errors import UsageError
from noisegen.evaluation.evaluate import (
    Named,
    named_models,
    open_all,
    recorded,
    write_csv,
)
from noisegen.evaluation.tasks import kinds, sets
from noisegen.evaluation.tasks.by_class import ClassCounts, ClassFigure, WonClasses, spans, won
from noisegen.evaluation.tasks.fine_tuning import OTHER_MODEL, Answer, Trial, Tuning
from noisegen.evaluation.tasks.kinds import HALLUCINATED, EvaluateTaskOptions, LabelledTask
from noisegen.evaluation.tasks.sets import AVERAGE, CHANGE, CLEAN, NOISY, TaskData
from noisegen.noising.recipe import Recipe
from noisegen.options import Strings, decode, public
from noisegen.report.terminal import titled
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.progress import Progress, Show, silent
from noisegen.version import __version__

FAST_EPOCHS, FAST_ROWS = 3.0, 4_000
AUGMENTED = "+t"  # suffix of a model with task-time augmentation, as in RCP's tables
_SIDES = (CLEAN, NOISY, CHANGE)
_TEST = ("model", "lang", "side", "metric")
_COLUMNS = (*_TEST, "value", "sd", "seeds")
_CLASSES = (*_TEST, "class", "gold", "predicted", "correct", "f1")
_CONFUSIONS = (*_TEST, "gold", "predicted", "count")
Metrics = dict[str, float]
ByTest = Mapping[tuple[str, str], Metrics]  # by language and side


class SpanCounts(NamedTuple):
    """Counts over rows: spans that agree, those of the gold tags, and those predicted.

    Hallucinated are predicted tags where gold has O, and predicted spans that lie on O alone.
    """

    correct: int
    gold: int
    predicted: int
    hallucinated_tokens: int
    hallucinated_spans: int

    @property
    def f1(self) -> float:
        """Micro-averaged F1 from 0 to 1; 0 without any span."""
        return 2 * self.correct / max(1, self.gold + self.predicted)


def count_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> SpanCounts:
    """Compare rows of tags; the rows of a pair are equally long."""
    counts = [(0, 0, 0, 0, 0)]
    for truth, guess in zip(gold, predicted, strict=True):
        real, ours = spans(truth), spans(guess)
        is_out = [tag == OUTSIDE for tag in truth]
        invented = [tag != OUTSIDE and empty for tag, empty in zip(guess, is_out, strict=True)]
        wholly = sum(all(is_out[start:stop]) for _, start, stop in ours)
        counts.append((len({*real} & {*ours}), len(real), len(ours), sum(invented), wholly))
    return SpanCounts(*map(sum, zip(*counts, strict=True)))


def measure(task: LabelledTask, rows: Sequence[LabelledRow], answers: Sequence[Answer]) -> Metrics:
    """Return the metrics of a prediction: percentages and counts."""
    metrics: Metrics = {}
    if task.label_metric:
        right = sum(row.label == label for row, (label, _) in zip(rows, answers, strict=True))
        metrics[task.label_metric] = 100 * right / max(1, len(rows))
    if task.tag_metric:
        counts = count_spans([row.tags for row in rows], [tags for _, tags in answers])
        metrics[task.tag_metric] = 100 * counts.f1
        metrics |= {name: getattr(counts, name) for name in HALLUCINATED}
    return metrics


def measure_all(data: TaskData, answers: Mapping[tuple[str, str], Sequence[Answer]]) -> ByTest:
    """Return the metrics of all sides, and their change, on the rows that both sides have."""
    by_test: dict[tuple[str, str], Metrics] = {}
    for test in data.tests:
        for side, rows in test.sides.items():
            by_test[test.lang, side] = measure(data.task, rows, answers[test.lang, side])
        if NOISY in test.sides and test.shared is not None:
            rows, answered = test.sides[CLEAN], answers[test.lang, CLEAN]
            both = [rows[n] for n in test.shared], [answered[n] for n in test.shared]
            clean, noisy = measure(data.task, *both), by_test[test.lang, NOISY]
            by_test[test.lang, CHANGE] = {name: noisy[name] - clean[name] for name in clean}
    return by_test


@dataclass(frozen=True)
class TaskFigure:
    """A metric of a model on one language and side, by seed."""

    model: str
    lang: str
    side: str
    metric: str
    values: tuple[float, ...]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Model, language, side and metric."""
        return self.model, self.lang, self.side, self.metric

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.values)

    @property
    def sd(self) -> float | None:
        """The sample's standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    def cell(self) -> str:
        """Return mean and deviation as tables show them."""
        sign = "+" if self.side == CHANGE else ""
        digits = 1 if self.metric not in HALLUCINATED or len(self.values) > 1 else 0
        spread = "" if self.sd is None else f"±{self.sd:.{digits}f}"
        return f"{self.mean:{sign}.{digits}f}{spread}"


def figures(model: str, by_seed: Sequence[ByTest]) -> list[TaskFigure]:
    """Return the figures of a model, and their means over languages, from one result per seed.

    The mean is over the same languages on all sides; there is none of a single language.
    """
    tested = [
        TaskFigure(model, lang, side, metric, tuple(run[lang, side][metric] for run in by_seed))
        for (lang, side), metrics in by_seed[0].items()
        for metric in metrics
    ]
    langs = averaged(tested)
    if len(langs) < 2:
        return tested
    values: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    for figure in tested:
        if figure.lang in langs:
            values[figure.side, figure.metric].append(figure.values)
    return tested + [
        TaskFigure(model, AVERAGE, side, metric, tuple(map(fmean, zip(*rows, strict=True))))
        for (side, metric), rows in values.items()
    ]


def averaged(figures: Sequence[TaskFigure]) -> list[str]:
    """Return the languages that the mean is over: those that have all sides."""
    tested = [figure for figure in figures if figure.lang != AVERAGE]
    sides = dict.fromkeys((figure.lang, figure.side) for figure in tested)
    count, langs = len({side for _, side in sides}), [lang for lang, _ in sides]
    return [lang for lang in dict.fromkeys(langs) if langs.count(lang) == count]


@dataclass(frozen=True)
class TaskResults:
    """All figures of an evaluation on a task, also by class, and its settings."""

    task: LabelledTask
    figures: Sequence[TaskFigure]
    settings: dict[str, Any]
    by_class: ClassCounts = field(default_factory=ClassCounts)

    @property
    def classes(self) -> list[ClassFigure]:
        """The counts and F1 of each class."""
        return self.by_class.figures()

    @property
    def won(self) -> list[WonClasses]:
        """In how many classes each model beats the first one, or is beaten."""
        return list(won(self.classes))

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {'es noisy': {metric: value}}}.

        A metric is the mean over seeds; `METRIC_sd` is their standard deviation, if there are two.
        """
        by_model: dict[str, dict[str, Metrics]] = defaultdict(lambda: defaultdict(dict))
        for figure in self.figures:
            side = by_model[figure.model][f"{figure.lang} {figure.side}"]
            side[figure.metric] = figure.mean
            if figure.sd is not None:
                side[f"{figure.metric}_sd"] = figure.sd
        return by_model

    def write(self, out: Path) -> None:
        """Write metrics.json, results.json and the tables in CSV; raises OutputError."""
        write_json(out / "metrics.json", self.metrics())
        figures, won = list(map(asdict, self.figures)), list(map(asdict, self.won))
        content = {"figures": figures, "won": won, "settings": self.settings}
        write_json(out / "results.json", content)
        rows = (
            (*f.key, f.mean, f.sd, " ".join(f"{value:.6g}" for value in f.values))
            for f in self.figures
        )
        write_csv(out / "metrics.csv", [_COLUMNS, *rows])
        classes = ((*vars(figure).values(), figure.f1) for figure in self.classes)
        write_csv(out / "classes.csv", [_CLASSES, *classes])
        confusion = self.by_class.confusion.items()
        counts = ((*t, *pair, n) for t, pairs in confusion for pair, n in pairs.most_common())
        write_csv(out / "confusion.csv", [_CONFUSIONS, *counts])

    def tables(self) -> Iterator[Table]:
        """Yield a table per metric, as RCP prints them: one column per model."""
        models = list(dict.fromkeys(figure.model for figure in self.figures))
        by_key = {figure.key: figure for figure in self.figures}
        tests = {(figure.lang, figure.side) for figure in self.figures}
        langs = dict.fromkeys(figure.lang for figure in self.figures)
        for metric in self.task.shown:
            table = titled(kinds.METRICS[metric])
            table.min_width = len(kinds.METRICS[metric])  # or the title breaks
            for name in ("", "", *models):
                table.add_column(name, justify="right" if name else "left", no_wrap=True)
            for lang, side in ((lang, side) for lang in langs for side in _SIDES):
                if (lang, side) in tests:
                    row = [by_key.get((model, lang, side, metric)) for model in models]
                    cells = [Text(figure.cell() if figure else "-") for figure in row]
                    table.add_row(Text(lang if side == CLEAN else ""), Text(side), *cells)
            yield table
        if won := self.won:
            yield _table_of_won(won, models)

    def legend(self) -> str:
        """Return the legend of the tables."""
        rows, seeds = self.settings["training"][0]["rows"], len(self.settings["seeds"])
        text = f"trained on {rows:,} {self.settings['lang']} rows, "
        text += f"mean±sd of {seeds} seeds" if seeds > 1 else "one seed"
        if any(figure.side == CHANGE for figure in self.figures):
            text += f"; {CHANGE}: noisy minus clean, same rows"
        langs = averaged(self.figures)
        if {figure.lang for figure in self.figures} <= {*langs, AVERAGE}:
            return text
        if len(langs) < 2:
            return f"{text}; no {AVERAGE}: only {langs[0]} has all sides"
        return f"{text}; {AVERAGE}: of {', '.join(langs)}, which have all sides"


def _table_of_won(won: Sequence[WonClasses], models: Sequence[str]) -> Table:
    """Return a table of how many classes each model won and lost against the first one."""
    table = titled(f"classes won-lost against {models[0]} (of equal F1: the rest)")
    for name in ("", "", "", *models[1:]):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    cells = {(one.lang, one.side, one.metric, one.model): f"{one.won}-{one.lost}" for one in won}
    for test in dict.fromkeys((one.lang, one.side, one.metric) for one in won):
        row = (*test[:2], kinds.METRICS[test[2]].rpartition(" ")[0])
        table.add_row(*row, *(cells.get((*test, model), "-") for model in models[1:]))
    return table


LAYOUT: Layout[None] = Layout(
    "write", "results.json", frozenset({"figures", "settings"}),
    whole=("metrics.json", "metrics.csv", "results.json", "classes.csv", "confusion.csv"),
)  # fmt: skip


class Variant(NamedTuple):
    """Training rows and hyperparameters; `suffix` is added to the model's name."""

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

    `models` are SPECs, or NAME=SPEC. The weights after the last epoch are tested: there is no
    selection on development data, since RCP does not describe its own. Writes metrics.json,
    metrics.csv, results.json, and by class classes.csv and confusion.csv; a folder that is not
    empty needs `force`. Raises NoisegenError.
    """
    return _evaluate_task(decode(EvaluateTaskOptions, locals()))


def _evaluate_task(options: EvaluateTaskOptions) -> TaskResults:
    """Run `evaluate_task` with options that are checked."""
    device = find_device(options.device)
    recipe = Recipe.named(options.augment) if options.augment else None
    models = named_models(options.models, next(iter(options.models), None))
    folder = RunFolder(Path(options.out), LAYOUT, {})
    with folder.locked(force=options.force, can_resume=False, show=options.progress):
        return _measured(folder.out, models, recipe, device, options)


def _measured(
    out: Path, models: Sequence[Named], recipe: Recipe | None, device: torch.device,
    options: EvaluateTaskOptions,
) -> TaskResults:  # fmt: skip
    """Measure the models, one after the other, and write the results after each."""
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
        results.write(out)  # so that a stop leaves the figures of the models before it
    return results


@dataclass
class _TaskRun:
    """Trials of models in all variants, by all seeds; `done` counts rows of `total`."""

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
        """The rows that a model is trained and tested on."""
        tested = sum(len(rows) for test in self.data.tests for rows in test.sides.values())
        trained = [round(variant.tuning.epochs * len(variant.rows)) for variant in self.variants]
        return len(self.seeds) * (sum(trained) + tested * len(trained))

    def figures(self, model: str, encoder: SentenceEncoder) -> list[TaskFigure]:
        """Fine-tune and test a model."""
        measured: list[TaskFigure] = []
        for variant in self.variants:
            name, tuning = f"{model}{variant.suffix}", variant.tuning
            self._count(f"{name}: tokenising", 0)
            trial = Trial(encoder, self.data, variant.rows, tuning.max_length)
            if variant is self.variants[0]:  # the same rows are tested in all ways
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
    """Return the encoder, if it can be fine-tuned; raises UsageError."""
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"model {name} cannot be fine-tuned: give a Hugging Face folder")
    piece_tokenizer(encoder.tokenizer, f"model {name}", OTHER_MODEL)
    return encoder


def _left_out(name: str, encoder: SentenceEncoder) -> str:
    """Return a note on the projection of an encoder, '' if it has none."""
    head = encoder.head.settings
    layers = [number for number, step in enumerate(head.steps) if isinstance(step, Dense)]
    if not layers:
        return ""
    side = "before" if head.place(layers[0]) == TOKENS else "after"
    return f"{name}: its projection {side} pooling is left out: token states are what is fine-tuned"


def _variants(data: TaskData, options: EvaluateTaskOptions, recipe: Recipe | None) -> list[Variant]:
    """Return plain training, and with a recipe also training on augmented data."""
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
    options: EvaluateTaskOptions, models: Sequence[Named], data: TaskData, variants: list[Variant]
) -> dict[str, Any]:
    """Return what results.json says besides the figures."""
    training = [
        {"suffix": suffix, "rows": len(rows), **asdict(tuning)} for suffix, rows, tuning in variants
    ]
    for variant in training:
        del variant["seed"]
    return {
        **recorded(options), "corpus": data.corpus,
        "models": {model.name: model.spec for model in models},
        "seeds": list(kinds.SEEDS[: options.seeds]), "training": training,
        "rows": {t.lang: {side: len(rows) for side, rows in t.sides.items()} for t in data.tests},
        "notes": data.notes, "damaged": data.damaged,
        "versions": {"noisegen": __version__, "torch": str(torch.__version__)},
    }  # fmt: skip
