"""`evaluate-task`: fine-tune models on a task, test them clean and noisy, write the figures."""

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from rich.table import Table
from rich.text import Text

from noisegen.data.columns import evenly
from noisegen.data.labelled import OUTSIDE, LabelledRow, tag_kind
from noisegen.encoders.encoder import find_device
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import OutputError, UsageError
from noisegen.evaluation.evaluate import Named, named_models, opened
from noisegen.evaluation.tasks.fine_tuning import (
    NO_PIECE,
    Examples,
    Predicted,
    Step,
    TaskNetwork,
    Tuning,
    cut_into_pieces,
    piece_tokenizer,
    prepared_rows,
    renumbered,
    vocabulary_of,
)
from noisegen.evaluation.tasks.kinds import (
    FINE_TUNING,
    HALLUCINATED,
    METRICS,
    SEEDS,
    TASKS,
    EvaluateTaskOptions,
    LabelledTask,
)
from noisegen.evaluation.tasks.sets import (
    AVERAGE,
    CHANGE,
    CLEAN,
    NOISY,
    TaskData,
    augmented,
    read_data,
)
from noisegen.noise.recipe import Recipe
from noisegen.options import public
from noisegen.report.terminal import titled
from noisegen.runs.files import write_text
from noisegen.runs.folder import make_folder
from noisegen.runs.progress import Progress, Show
from noisegen.version import __version__

FAST_EPOCHS, FAST_ROWS = 3.0, 4_000
AUGMENTED = "+t"  # suffix of a model with task-time augmentation, as in RCP's tables
# Options that results.json has.
_SHOWN = (
    "train", "test", "task", "lang", "seeds", "augment", "noise", "epochs", "growth", "lr",
    "max_length", "batch_tokens", "fast", "device",
)  # fmt: skip
_SIDES = (CLEAN, NOISY, CHANGE)
_COLUMNS = ("model", "lang", "side", "metric", "value", "sd", "seeds")
Span = tuple[str, int, int]  # kind, first token, behind the last
Measured = Mapping[tuple[str, str], Mapping[str, float]]  # (language, side) -> metric -> value


def spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans of a row of tags.

    A span begins at B-x, and at any x or I-x after O or another kind, as in conlleval and in
    seqeval's default mode. So tags without B- and I- make a span of every run of equal ones.
    """
    out: list[Span] = []
    previous = OUTSIDE
    for position, tag in enumerate(tags):
        kind = tag_kind(tag)
        if kind != OUTSIDE:
            if tag[:2] == "B-" or kind != previous:
                out.append((kind, position, position + 1))
            else:
                out[-1] = (kind, out[-1][1], position + 1)
        previous = kind
    return out


@dataclass(frozen=True)
class SpanCounts:
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
    totals = [0] * 5
    for truth, guess in zip(gold, predicted, strict=True):
        real, ours = spans(truth), spans(guess)
        is_out = [tag == OUTSIDE for tag in truth]
        invented = [tag != OUTSIDE and empty for tag, empty in zip(guess, is_out, strict=True)]
        counts = (
            len(set(real) & set(ours)), len(real), len(ours), sum(invented),
            sum(all(is_out[start:stop]) for _, start, stop in ours),
        )  # fmt: skip
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
    return SpanCounts(*totals)


def measure(
    task: LabelledTask,
    rows: Sequence[LabelledRow],
    labels: Sequence[str],
    tags: Sequence[Sequence[str]],
) -> dict[str, float]:
    """Return the metrics of a prediction: shares in per cent, counts as they are."""
    metrics: dict[str, float] = {}
    if task.has_label:
        right = sum(row.label == label for row, label in zip(rows, labels, strict=True))
        metrics[task.metrics[0]] = 100 * right / max(1, len(rows))
    if task.has_tags:
        counts = count_spans([row.tags for row in rows], tags)
        f1 = next(name for name in task.metrics if name.endswith("_f1"))
        metrics[f1] = 100 * counts.f1
        metrics |= {name: getattr(counts, name) for name in HALLUCINATED}
    return metrics


@dataclass(frozen=True)
class TaskFigure:
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

    def cell(self) -> str:
        """Return mean and deviation as tables show them."""
        sign = "+" if self.side == CHANGE else ""
        digits = 1 if self.metric not in HALLUCINATED or len(self.values) > 1 else 0
        spread = "" if self.sd is None else f"±{self.sd:.{digits}f}"
        return f"{self.mean:{sign}.{digits}f}{spread}"


def figures(model: str, by_seed: Sequence[Measured]) -> list[TaskFigure]:
    """Return the figures of a model, and their means over languages, from one result per seed.

    The mean is over the same languages on all sides; there is none of a single language.
    """
    out = [
        TaskFigure(model, lang, side, metric, tuple(run[lang, side][metric] for run in by_seed))
        for (lang, side), metrics in by_seed[0].items()
        for metric in metrics
    ]
    langs = averaged(out)
    if len(langs) < 2:
        return out
    values: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for figure in out:
        if figure.lang in langs:
            values.setdefault((figure.side, figure.metric), []).append(figure.values)
    return out + [
        TaskFigure(model, AVERAGE, side, metric, tuple(map(fmean, zip(*rows, strict=True))))
        for (side, metric), rows in values.items()
    ]


def averaged(figures: Sequence[TaskFigure]) -> list[str]:
    """Return the languages that the mean is over: those with all sides that any of them has."""
    sides: dict[str, set[str]] = {}
    for figure in figures:
        if figure.lang != AVERAGE:
            sides.setdefault(figure.lang, set()).add(figure.side)
    every = set[str]().union(*sides.values())
    return [lang for lang, theirs in sides.items() if theirs == every]


@dataclass(frozen=True)
class TaskResults:
    """All figures of an evaluation on a task, and its settings."""

    task: LabelledTask
    figures: Sequence[TaskFigure]
    settings: dict[str, Any]

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {'es noisy': {metric: value}}}.

        A metric is the mean over seeds; `METRIC_sd` is their standard deviation, if there are two.
        """
        out: dict[str, dict[str, dict[str, float]]] = {}
        for figure in self.figures:
            side = out.setdefault(figure.model, {}).setdefault(f"{figure.lang} {figure.side}", {})
            side[figure.metric] = figure.mean
            if figure.sd is not None:
                side[f"{figure.metric}_sd"] = figure.sd
        return out

    def write(self, out: Path) -> None:
        """Write metrics.json, metrics.csv and results.json; raises OutputError."""
        listed = [asdict(figure) for figure in self.figures]
        contents = {
            "metrics.json": self.metrics(),
            "results.json": {"figures": listed, "settings": self.settings},
        }
        for name, content in contents.items():
            write_text(out / name, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        lines = io.StringIO()
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(_COLUMNS)
        for one in self.figures:
            values = " ".join(f"{value:.6g}" for value in one.values)
            table.writerow((one.model, one.lang, one.side, one.metric, one.mean, one.sd, values))
        write_text(out / "metrics.csv", lines.getvalue())

    def tables(self) -> Iterator[Table]:
        """Yield a table for every metric that is shown, as RCP prints them: one column a model."""
        models = list(dict.fromkeys(figure.model for figure in self.figures))
        by_key = {(f.model, f.lang, f.side, f.metric): f for f in self.figures}
        keys = dict.fromkeys((figure.lang, figure.side) for figure in self.figures)
        for metric in self.task.shown:
            table = titled(METRICS[metric])
            table.padding, table.collapse_padding = (0, 1, 0, 0), True
            table.min_width = len(METRICS[metric])  # or the title breaks
            for name in ("", "", *models):
                table.add_column(name, justify="right" if name else "left", no_wrap=True)
            for lang in dict.fromkeys(lang for lang, _ in keys):
                for side in (side for side in _SIDES if (lang, side) in keys):
                    row = [by_key.get((model, lang, side, metric)) for model in models]
                    cells = [Text(figure.cell() if figure else "-") for figure in row]
                    table.add_row(Text(lang if side == CLEAN else ""), Text(side), *cells)
            yield table

    def legend(self) -> str:
        """Return what a reader of the tables must know."""
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


class Trial:
    """A model with the rows that it is trained on and tested on, cut into its pieces."""

    def __init__(
        self, encoder: SentenceEncoder, data: TaskData, training: Sequence[LabelledRow],
        max_length: int,
    ) -> None:  # fmt: skip
        self.encoder, self.data = encoder, data
        task, rows = data.task, data.training
        self.labels = sorted({row.label for row in rows}) if task.has_label else []
        self.tags = sorted({tag for row in rows for tag in row.tags}) if task.has_tags else []
        sides = {(t.lang, side): rows for t in data.tests for side, rows in t.sides.items()}
        tokenizer = piece_tokenizer(encoder.tokenizer, encoder.name)
        self.max_length = min(max_length, tokenizer.max_length)
        cut = [
            cut_into_pieces(tokenizer, prepared_rows(encoder.tokenizer, rows), max_length)
            for rows in (training, *sides.values())
        ]
        self.vocabulary = vocabulary_of(cut, encoder.tokenizer.pad_id)
        pieces, *tests = (renumbered(part, self.vocabulary) for part in cut)
        self.tests = dict(zip(sides, tests, strict=True))
        tag_classes = {tag: number for number, tag in enumerate(self.tags)}
        label_classes = {label: number for number, label in enumerate(self.labels)}
        self.training = Examples.of(
            pieces,
            [[tag_classes[tag] for tag in row.tags] for row in training],
            [label_classes.get(row.label, 0) for row in training],
        )

    def truncation_notes(self) -> list[str]:
        """Return notes on test rows that are longer than the model reads."""
        tests = self.tests.values()
        rows = sum(int(pieces.is_cut.sum()) for pieces in tests)
        if not rows:
            return []
        note = f"{rows:,} of {sum(map(len, tests)):,} test rows are cut at {self.max_length} pieces"
        if self.tags:
            tokens = sum(len(pieces.firsts.values) for pieces in tests)
            beyond = sum(pieces.beyond() for pieces in tests)
            note += f": {beyond:,} of {tokens:,} tokens lie beyond and are predicted as outside"
        return [note]

    def network(self, device: torch.device) -> TaskNetwork:
        """Return a new network with heads drawn by torch's generator."""
        labels, tags = len(self.labels), len(self.tags)
        return TaskNetwork(self.encoder, self.vocabulary, labels, tags, device)

    def named(self, predicted: Predicted) -> tuple[list[str], list[list[str]]]:
        """Return predicted classes as labels and tags; a token without a piece is outside."""
        tags = [*self.tags, OUTSIDE]  # the last is that of NO_PIECE, which is -1
        labels = [self.labels[number] for number in predicted.labels if number != NO_PIECE]
        return labels, [[tags[number] for number in row] for row in predicted.tags]

    def run(self, tuning: Tuning, device: torch.device, step: Step) -> Measured:
        """Fine-tune with the seed of `tuning`; return the metrics of all sides, and their change.

        The change from clean to noisy is measured on the rows that both sides have.
        """
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(tuning.seed)
            network = self.network(device)
            network.fine_tune(self.training, tuning, step)
        answers = {
            key: self.named(network.predict(pieces, tuning.batch_tokens, step))
            for key, pieces in self.tests.items()
        }
        task, out = self.data.task, {}
        for test in self.data.tests:
            for side, rows in test.sides.items():
                out[test.lang, side] = measure(task, rows, *answers[test.lang, side])
            if NOISY in test.sides and test.shared is not None:
                labels, tags = answers[test.lang, CLEAN]
                clean = measure(
                    task,
                    [test.sides[CLEAN][number] for number in test.shared],
                    [labels[number] for number in test.shared] if labels else [],
                    [tags[number] for number in test.shared],
                )
                noisy = out[test.lang, NOISY]
                out[test.lang, CHANGE] = {name: noisy[name] - clean[name] for name in clean}
        return out


@dataclass(frozen=True)
class Variant:
    """A way to train: the rows, and how; `suffix` is added to the model's name."""

    suffix: str
    rows: list[LabelledRow]
    tuning: Tuning

    def described(self) -> dict[str, Any]:
        """Return what results.json says of it."""
        tuning = {name: value for name, value in asdict(self.tuning).items() if name != "seed"}
        return {"suffix": self.suffix, "rows": len(self.rows), **tuning}


def _evaluate_task(options: EvaluateTaskOptions) -> TaskResults:
    """Fine-tune models on labelled data, test them in other languages, write the figures.

    `models` are SPECs, or NAME=SPEC. The weights after the last epoch count: no development data
    chooses among epochs, and RCP does not say how it chose. Writes metrics.json, metrics.csv and
    results.json, in a folder that is not empty only with `force`. Raises NoisegenError.
    """
    began, out, task = time.monotonic(), Path(options.out), TASKS[options.task]
    device = find_device(options.device)
    recipe = Recipe.named(options.augment) if options.augment else None
    models = named_models(options.models, next(iter(options.models), None))
    if make_folder(out) and not options.force:
        raise OutputError(f"{out} is not empty; add --force to replace the figures in it")
    show = options.progress or (lambda event: None)
    notes = _projection_notes(models, show)
    show(Progress("reading"))
    data = read_data(task, options.train, options.test, lang=options.lang, noise=options.noise)
    data.notes += notes
    variants = _variants(data, options, recipe)
    seeds = SEEDS[: options.seeds]
    tested = sum(len(rows) for test in data.tests for rows in test.sides.values())
    once = sum(round(v.tuning.epochs * len(v.rows)) + tested for v in variants)
    done, total = 0, once * len(seeds) * len(models)

    def count(doing: str, rows: int) -> None:
        nonlocal done
        done += rows
        show(Progress(doing, done, max(total, done), "rows"))

    measured: list[TaskFigure] = []
    for model in models:
        encoder = _open_trainable(model)
        for variant in variants:
            name = f"{model.name}{variant.suffix}"
            count(f"{name}: tokenising", 0)
            trial = Trial(encoder, data, variant.rows, variant.tuning.max_length)
            if variant is variants[0]:  # the same rows are tested in all ways
                data.notes += [f"{model.name}: {note}" for note in trial.truncation_notes()]
            runs = [
                trial.run(
                    replace(variant.tuning, seed=seed),
                    device,
                    partial(count, f"{name}, seed {seed}"),
                )
                for seed in seeds
            ]
            measured += figures(name, runs)
        settings = _settings(options, models, data, variants, time.monotonic() - began)
        results = TaskResults(task, tuple(measured), settings)
        results.write(out)  # so that a stop leaves the figures of the models before it
    return results


evaluate_task = public(EvaluateTaskOptions, _evaluate_task)


def _projection_notes(models: Sequence[Named], show: Show) -> list[str]:
    """Note projections, which are not fine-tuned; a wrong SPEC shows before minutes of work."""
    notes = []
    for model in models:
        show(Progress(f"opening {model.name}"))
        head = _open_trainable(model).head
        if head.projection is not None:
            side = "before" if head.settings.place == "before" else "after"
            notes.append(
                f"{model.name}: its projection {side} pooling is left out: token states are what "
                "is fine-tuned"
            )
    return notes


def _open_trainable(model: Named) -> SentenceEncoder:
    encoder = opened(model)
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"model {model.name} cannot be fine-tuned: give a Hugging Face folder")
    piece_tokenizer(encoder.tokenizer, model.name)
    return encoder


def _variants(data: TaskData, options: EvaluateTaskOptions, recipe: Recipe | None) -> list[Variant]:
    """Return plain training, and with a recipe also training on augmented data."""
    paper = FINE_TUNING[data.corpus]
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
        more = augmented(rows, recipe, options.growth or paper.growth, lang=options.lang)
        share = 1.0 if options.epochs else paper.epochs_augmented / paper.epochs
        shorter = replace(tuning, epochs=tuning.epochs * share)
        variants.append(Variant(AUGMENTED, more, shorter))
    return variants


def _settings(
    options: EvaluateTaskOptions, models: Sequence[Named], data: TaskData,
    variants: Sequence[Variant], seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Return what results.json says besides the figures."""
    given = {name: value for name, value in vars(options).items() if name in _SHOWN}
    return {
        **given, "test": list(options.test), "corpus": data.corpus,
        "models": {model.name: model.spec for model in models},
        "seeds": list(SEEDS[: options.seeds]),
        "training": [variant.described() for variant in variants],
        "rows": {t.lang: {side: len(rows) for side, rows in t.sides.items()} for t in data.tests},
        "notes": data.notes, "damaged": data.damaged, "seconds": round(seconds, 1),
        "versions": {"noisegen": __version__, "torch": str(torch.__version__)},
    }  # fmt: skip
