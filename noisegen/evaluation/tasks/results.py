"""Results of `noisegen evaluate-task`: metrics of predictions, means over seeds, and tables."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from textwrap import shorten
from typing import Any, NamedTuple

from noisegen.data.labelled import OUTSIDE, LabelledRow
from noisegen.encoders.stored import write_json
from noisegen.evaluation.evaluate import write_csv
from noisegen.evaluation.results import REPR_MAX
from noisegen.evaluation.tasks.by_class import ClassCounts, ClassFigure, WonClasses, spans, won
from noisegen.evaluation.tasks.fine_tuning import Answer
from noisegen.evaluation.tasks.kinds import HALLUCINATED, METRICS, LabelledTask
from noisegen.evaluation.tasks.sets import AVERAGE, CHANGE, CLEAN, NOISY, TaskData
from noisegen.report import blocks
from noisegen.report.charts import bars, sample
from noisegen.report.pages import page
from noisegen.runs.atomic import write_text

_SIDES = (CLEAN, NOISY, CHANGE)
_TEST = ("model", "lang", "side", "metric")
_COLUMNS = (*_TEST, "value", "sd", "seeds")
_CLASSES = (*_TEST, "class", "gold", "predicted", "correct", "f1")
_CONFUSIONS = (*_TEST, "gold", "predicted", "count")
_CONFUSED = 15  # confused classes that the page shows per test set and metric
Metrics = dict[str, float]
ByTest = Mapping[tuple[str, str], Metrics]  # (language, side) -> metrics


class SpanCounts(NamedTuple):
    """Numbers of spans: in gold tags, in predicted tags, and in both (`correct`).

    Hallucinations are counted as well. A hallucinated token has a predicted tag where gold has O
    (no tag). A hallucinated span is a predicted span whose tokens all have O in gold.
    """

    correct: int
    gold: int
    predicted: int
    hallucinated_tokens: int
    hallucinated_spans: int

    @property
    def f1(self) -> float:
        """Micro-averaged F1 of the spans, from 0 to 1; 0 if there is no span."""
        return 2 * self.correct / max(1, self.gold + self.predicted)


def count_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> SpanCounts:
    """Count the spans in rows of gold tags and in the predicted tags of the same tokens."""
    counts = [_count_row(*rows) for rows in zip(gold, predicted, strict=True)]
    return SpanCounts(*map(sum, zip(*counts, strict=True))) if counts else SpanCounts(0, 0, 0, 0, 0)


def _count_row(gold: Sequence[str], predicted: Sequence[str]) -> SpanCounts:
    gold_spans, predicted_spans = spans(gold), spans(predicted)
    is_outside = [tag == OUTSIDE for tag in gold]
    return SpanCounts(
        correct=len({*gold_spans} & {*predicted_spans}),
        gold=len(gold_spans),
        predicted=len(predicted_spans),
        hallucinated_tokens=sum(
            tag != OUTSIDE and outside for tag, outside in zip(predicted, is_outside, strict=True)
        ),
        hallucinated_spans=sum(all(is_outside[start:stop]) for _, start, stop in predicted_spans),
    )


def measure(task: LabelledTask, rows: Sequence[LabelledRow], answers: Sequence[Answer]) -> Metrics:
    """Return the metrics of a model's answers to rows: percentages, counts of hallucinations."""
    metrics: Metrics = {}
    if task.label_metric:
        right = sum(row.label == answer.label for row, answer in zip(rows, answers, strict=True))
        metrics[task.label_metric] = 100 * right / max(1, len(rows))
    if task.tag_metric:
        counts = count_spans([row.tags for row in rows], [answer.tags for answer in answers])
        metrics[task.tag_metric] = 100 * counts.f1
        metrics |= {name: getattr(counts, name) for name in HALLUCINATED}
    return metrics


def measure_all(data: TaskData, answers: Mapping[tuple[str, str], Sequence[Answer]]) -> ByTest:
    """Return the metrics of each language for clean rows, for noisy rows, and for the change.

    `answers` has predictions by (language, 'clean' or 'noisy'). The change is noisy minus clean,
    over the clean rows that have a noisy form.
    """
    by_test: dict[tuple[str, str], Metrics] = {}
    for test in data.tests:
        for side, rows in test.sides.items():
            by_test[test.lang, side] = measure(data.task, rows, answers[test.lang, side])
        if NOISY in test.sides and test.shared is not None:
            rows, clean_answers = test.sides[CLEAN], answers[test.lang, CLEAN]
            shared_rows = [rows[number] for number in test.shared]
            shared_answers = [clean_answers[number] for number in test.shared]
            clean = measure(data.task, shared_rows, shared_answers)
            noisy = by_test[test.lang, NOISY]
            by_test[test.lang, CHANGE] = {name: noisy[name] - clean[name] for name in clean}
    return by_test


@dataclass(frozen=True)
class TaskFigure:
    """Values of a metric, one per seed; `side` is clean, noisy or change (noisy minus clean)."""

    model: str
    lang: str
    side: str
    metric: str
    values: tuple[float, ...]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The tuple (model, language, side, metric), which is unique in the results."""
        return self.model, self.lang, self.side, self.metric

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.values)

    @property
    def sd(self) -> float | None:
        """The sample standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    def cell(self) -> str:
        """Return mean and standard deviation in the format of the tables."""
        sign = "+" if self.side == CHANGE else ""
        digits = 1 if self.metric not in HALLUCINATED or len(self.values) > 1 else 0
        spread = "" if self.sd is None else f"±{self.sd:.{digits}f}"
        return f"{self.mean:{sign}.{digits}f}{spread}"


def figures(model: str, by_seed: Sequence[ByTest]) -> list[TaskFigure]:
    """Return the values of a model for each language, side and metric, and means over languages.

    `by_seed` has one mapping per seed: {(language, side): metrics}, where a side is clean, noisy or
    change (noisy minus clean). Means are over the languages that `averaged` returns, if there are
    several.
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
    """Return the languages to average over: each has figures for every side (clean, noisy)."""
    by_lang: dict[str, set[str]] = defaultdict(set)
    for figure in figures:
        if figure.lang != AVERAGE:
            by_lang[figure.lang].add(figure.side)
    all_sides = set().union(*by_lang.values())
    return [lang for lang, sides in by_lang.items() if sides == all_sides]


@dataclass(frozen=True)
class TaskResults:
    """Results of an evaluation on a task: all values, counts by class, and settings."""

    task: LabelledTask
    figures: Sequence[TaskFigure]
    settings: dict[str, Any]
    by_class: ClassCounts = field(default_factory=ClassCounts)

    def __repr__(self) -> str:
        models = ", ".join(dict.fromkeys(figure.model for figure in self.figures))
        line = f"<TaskResults of {models} on {self.task.name}>"
        return shorten(line, REPR_MAX, placeholder=" ...>")

    @property
    def classes(self) -> list[ClassFigure]:
        """The counts and F1 of each class."""
        return self.by_class.figures()

    @property
    def won(self) -> list[WonClasses]:
        """In how many classes each model has a higher or lower F1 than the first model."""
        return list(won(self.classes))

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {'es noisy': {metric: value}}}.

        A value is the mean over seeds. With two seeds or more `METRIC_sd` has the standard
        deviation over the seeds.
        """
        by_model: dict[str, dict[str, Metrics]] = defaultdict(lambda: defaultdict(dict))
        for figure in self.figures:
            side = by_model[figure.model][f"{figure.lang} {figure.side}"]
            side[figure.metric] = figure.mean
            if figure.sd is not None:
                side[f"{figure.metric}_sd"] = figure.sd
        return by_model

    def write(self, out: Path) -> None:
        """Write metrics.json, results.json, three CSV files and a page; raises OutputError."""
        write_json(out / "metrics.json", self.metrics())
        content = {
            "figures": [asdict(figure) for figure in self.figures],
            "won": [asdict(won) for won in self.won],
            "settings": self.settings,
        }
        write_json(out / "results.json", content)
        rows: list[tuple[object, ...]] = [_COLUMNS]
        for figure in self.figures:
            by_seed = " ".join(f"{value:.6g}" for value in figure.values)
            rows.append((*figure.key, figure.mean, figure.sd, by_seed))
        write_csv(out / "metrics.csv", rows)
        classes = ((*vars(figure).values(), figure.f1) for figure in self.classes)
        write_csv(out / "classes.csv", [_CLASSES, *classes])
        rows = [_CONFUSIONS]
        for test, pairs in self.by_class.confusion.items():
            rows += [(*test, *pair, count) for pair, count in pairs.most_common()]
        write_csv(out / "confusion.csv", rows)
        write_text(out / "report.html", self.page())

    def page(self) -> str:
        """Return an HTML page: the tables, classes won and lost (RCP, Figure 4), confusions."""
        models = list(dict.fromkeys(figure.model for figure in self.figures))
        charts = [bars(shown) for shown in _bars_of_won(self.won)]
        key = [sample(number, name) for number, name in ((1, "won"), (2, "lost"))]
        caption = f"Classes in which a model has a higher or lower F1 than {models[0]}."
        won = [blocks.Figure(charts, caption, key=key)] if charts else []
        sections = [
            blocks.Section("won", "Classes won and lost", won),
            blocks.Section("confused", "Confused classes", self._confused(models)),
        ]
        head: list[blocks.Block] = [*self.tables(), blocks.Text(self.legend())]
        return page(self.title(), sections, kicker="noisegen: evaluate-task", head=head)

    def title(self) -> str:
        """Return the main result in words: 'base on ner: NER F1 7.7% on clean text (en)'.

        The result is the first metric of the task, for the model with its highest value on noisy
        text, or on clean text if no other is tested. It is the mean over the languages with all
        sides, or the value of the first language.
        """
        models = dict.fromkeys(figure.model for figure in self.figures)
        metric = self.task.shown[0]
        langs = averaged(self.figures) or [self.figures[0].lang]
        lang = AVERAGE if len(langs) > 1 else langs[0]
        tested = [one for one in self.figures if (one.lang, one.metric) == (lang, metric)]
        by_side = {side: [one for one in tested if one.side == side] for side in (CLEAN, NOISY)}
        best = max(by_side[NOISY] or by_side[CLEAN], key=lambda one: one.mean).model
        values = [
            f"{one.mean:.1f}% on {side} text"
            for side, found in by_side.items()
            for one in found
            if one.model == best
        ]
        among = f", the best of {len(models)} models," if len(models) > 1 else ""
        where = f"mean of {', '.join(langs)}" if lang == AVERAGE else lang
        result = f"{_plain(metric)} {', '.join(values)} ({where})"
        return f"{best}{among} on {self.task.name}: {result}"

    def _confused(self, models: Sequence[str]) -> list[blocks.Block]:
        """Return a table per test set and metric: the most confused classes, counts per model."""
        pairs: dict[tuple[str, ...], Counter[tuple[str, str]]] = defaultdict(Counter)
        for (_, *test), counts in self.by_class.confusion.items():
            pairs[tuple(test)].update({p: n for p, n in counts.items() if p[0] != p[1]})
        tables: list[blocks.Block] = []
        for (lang, side, metric), total in pairs.items():
            counted = [self.by_class.confusion[name, lang, side, metric] for name in models]
            rows: list[blocks.Row] = [
                [*pair, *(blocks.figure(counts[pair]) for counts in counted)]
                for pair, _ in total.most_common(_CONFUSED)
            ]
            caption = f"{lang} {side}, {_plain(metric)}, counts over all seeds"
            if rows:
                tables.append(blocks.Table(caption, ["gold", "predicted", *models], rows))
        return tables

    def tables(self) -> Iterator[blocks.Table]:
        """Yield a table per metric, with a column per model as in RCP, then a table of classes won.

        The last table needs two models.
        """
        models = list(dict.fromkeys(figure.model for figure in self.figures))
        for metric in self.task.shown:
            yield self._metric_table(metric, models)
        if won := self.won:
            yield _table_of_won(won, models)

    def _metric_table(self, metric: str, models: Sequence[str]) -> blocks.Table:
        """Return the table of a metric: a row per language and side, a column per model."""
        by_key = {figure.key: figure for figure in self.figures}
        rows: list[blocks.Row] = []
        for lang, side in self._tests():
            found = [by_key.get((model, lang, side, metric)) for model in models]
            cells = [_number(figure.cell() if figure else "-") for figure in found]
            rows.append([lang if side == CLEAN else "", side, *cells])
        return blocks.Table(METRICS[metric], ["", "", *models], rows)

    def _tests(self) -> list[tuple[str, str]]:
        """Return (language, side) for each row of a table, in order."""
        tested = {(figure.lang, figure.side) for figure in self.figures}
        langs = dict.fromkeys(figure.lang for figure in self.figures)
        return [(lang, side) for lang in langs for side in _SIDES if (lang, side) in tested]

    def legend(self) -> str:
        """Return a line that explains the tables: training rows, seeds, and how means are taken."""
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


def _table_of_won(won: Sequence[WonClasses], models: Sequence[str]) -> blocks.Table:
    """Return a table of the classes (by F1) won and lost against the first model, such as '5-2'."""
    cells: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for one in won:
        cells[one.lang, one.side, one.metric][one.model] = f"{one.won}-{one.lost}"
    rows: list[blocks.Row] = [
        [lang, side, _plain(metric), *(_number(by_model.get(model, "-")) for model in models[1:])]
        for (lang, side, metric), by_model in cells.items()
    ]
    caption = f"classes won-lost against {models[0]} (the others have equal F1)"
    return blocks.Table(caption, ["", "", "", *models[1:]], rows)


def _bars_of_won(won: Sequence[WonClasses]) -> Iterator[blocks.Bars]:
    """Yield a chart per side and metric: classes won and lost by each model in each language."""
    charts: dict[tuple[str, str], list[WonClasses]] = defaultdict(list)
    for one in won:
        charts[one.side, one.metric].append(one)
    for (side, metric), shown in charts.items():
        series = {"won": [one.won for one in shown], "lost": [one.lost for one in shown]}
        labels = [f"{one.model}, {one.lang}" for one in shown]
        yield blocks.Bars(f"{_plain(metric)}, {side}", "classes", labels, series, axis="model")


def _plain(metric: str) -> str:
    """Return the title of a metric without its unit: 'slot F1'."""
    return METRICS[metric].rpartition(" ")[0]


def _number(text: str) -> blocks.Cell:
    return blocks.Cell(text, kind="n")
