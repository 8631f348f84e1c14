"""Put the results of an evaluation into words, for the terminal and for the report."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.evaluation.metrics import (
    FACTOR_MIN,
    KINDS,
    METRICS,
    NBSP,
    Metric,
    SetKind,
    metric_of,
)
from noisegen.evaluation.results import Comparison, Dataset, Model, Results, Score
from noisegen.evaluation.statistics import LEVELS, stars
from noisegen.report.terminal import titled

ALPHA = 0.05  # a difference is shown if its p-value after Holm's correction is below this
STYLES = 8  # colours that are legible as text; a ninth model has the first colour again
_AGAINST_BASELINE = ("drift", "anchored_distance")  # need a model besides the baseline
UNHARMED = 0.05  # greatest mean clean drift with which clean text counts as unharmed
_GOLD_MIN = 99  # Spearman x 100 of a baseline whose own similarity is the gold score
_UNHARMED = "clean text unharmed"
_WITHIN = "within the floor of another seed"
_FLOOR = (
    "floor: how much a figure changes with other noise seeds and nothing else; a difference "
    "between models that is not larger does not count"
)
_NO_FLOOR = (
    "no floor: one noise seed does not show how much another seed changes a figure; --seeds 2 does"
)
_CLEAN = ("sts_clean", "ndcg_clean", "accuracy_clean", "average_precision_clean")
_COLOURS = {"better": "green", "worse": "red"}
_NAME_COLUMNS, _WIDEST = 40, 1_000  # characters: widest column of names, widest table


class SetsFinding(NamedTuple):
    """Sets of one kind on which a metric is better, worse or the same, and its values, in words."""

    sets: str  # such as "12 of 13 kinds of noise"
    evidence: str  # such as "most on fing: 0.302 to 0.121, 2.5 times lower"


class MetricFinding(NamedTuple):
    """A metric that is better, worse or the same, with a finding per kind of set."""

    title: str
    on_sets: list[SetsFinding]


Groups = dict[tuple[str, str | None], list[Comparison]]  # (metric, kind of set) -> comparisons


@dataclass(frozen=True)
class Findings:
    """Results of an evaluation, looked up, filtered, and put into words."""

    results: Results

    @cached_property
    def students(self) -> list[Model]:
        """All models except the baseline, in the order of the results."""
        return [model for model in self.results.models if model is not self.results.baseline]

    @cached_property
    def models(self) -> list[Model]:
        """All models, the baseline first."""
        return [self.results.baseline, *self.students]

    @cached_property
    def compared(self) -> dict[tuple[str, str, str], Comparison]:
        """The comparisons with the baseline, by (model, dataset, metric)."""
        return {(test.model, test.dataset, test.metric): test for test in self.results.comparisons}

    def style(self, model: str) -> int:
        """Return the number of a model's colour and symbol in charts, from 0 to `STYLES` - 1."""
        names = [known.name for known in self.models]
        return names.index(model) % STYLES if model in names else STYLES - 1

    def datasets(self, *kinds: str) -> list[Dataset]:
        """Return the sets of these kinds, in the order of `kinds`."""
        return [
            dataset for kind in kinds for dataset in self.results.datasets if dataset.kind == kind
        ]

    def score(self, model: str, dataset: str, metric: str) -> Score | None:
        """Return a model's score in a metric on a set; None if it is missing or not finite."""
        score = self.results.scores.get(model, {}).get(dataset, {}).get(metric)
        return score if score is not None and isfinite(score.value) else None

    def scores(self, dataset: str, metric: str) -> list[Score | None]:
        """Return the score of each model in a metric on a set, the baseline first."""
        return [self.score(model.name, dataset, metric) for model in self.models]

    def floor(self, dataset: str, metric: str) -> float | None:
        """Return the greatest `Score.floor` of all models in a metric on a set, None without."""
        floors = [score.floor for score in self.scores(dataset, metric) if score]
        return max((floor for floor in floors if floor is not None), default=None)

    @property
    def floor_note(self) -> str:
        """A sentence on the floor of artificial noise; '' without such noise."""
        if not self.datasets("noise"):
            return ""
        return _FLOOR if self.has_floor else _NO_FLOOR

    @property
    def has_floor(self) -> bool:
        """Whether a figure on artificial noise has a floor: there are several noise seeds."""
        return any(
            self.floor(dataset.name, metric.name) is not None
            for dataset in self.datasets("noise")
            for metric in self.metrics([dataset])
        )

    def metrics(self, datasets: Iterable[Dataset]) -> list[Metric]:
        """Return the metrics that any model has on any of these sets, in the order of METRICS.

        Metrics that METRICS lacks come last, with their names as titles.
        """
        wanted = {dataset.name for dataset in datasets}
        names: set[str] = set()
        for by_set in self.results.scores.values():
            for name, figures in by_set.items():
                if name in wanted:
                    names.update(figures)
        known = [metric for metric in METRICS.values() if metric.name in names]
        return known + [metric_of(name) for name in sorted(names - set(METRICS))]

    def charted(self, datasets: Sequence[Dataset]) -> list[Metric]:
        """Return the metrics to chart: the first distance and first error that these sets have."""
        first: dict[str, Metric] = {}
        for metric in self.metrics(datasets):
            if metric.chart:
                first.setdefault(metric.chart, metric)
        return list(first.values())

    @property
    def sets_in_words(self) -> str:
        """The numbers of sets of each kind: '1 natural set, 13 kinds of noise'."""
        kinds = [dataset.kind for dataset in self.results.datasets]
        return ", ".join(
            KINDS.get(kind, SetKind(kind, kind, kind)).counted(kinds.count(kind))
            for kind in dict.fromkeys(kinds)
        )

    @property
    def headline(self) -> str:
        """The main result of the best model, in one line.

        The best model leaves clean text unharmed if any model does, and comes nearest.
        """
        baseline, names = self.results.baseline.name, [model.name for model in self.students]
        if not names:
            return f"{baseline} under noise"
        best = min(names, key=lambda name: (self.harm(name) != _UNHARMED, self._ratio(name)))
        among = f" (best of {len(names)} models)" if len(names) > 1 else ""
        found = ", ".join(filter(None, [self._nearness(best), self._search(best), self.harm(best)]))
        return f"{best}{among}: {found}" if found else f"{best}{among} against {baseline}"

    def _distances(self, model: str, *kinds: str) -> dict[str, tuple[float, float]]:
        """Return {set: distances of baseline and model} for the first kind that has them."""
        names = (self.results.baseline.name, model)
        for kind in kinds:
            found = {}
            for dataset in self.datasets(kind):
                before, after = (self.score(name, dataset.name, "distance") for name in names)
                if before and after and before.value > 0:
                    found[dataset.name] = before.value, after.value
            if found:
                return found
        return {}

    def _ratio(self, model: str) -> float:
        """Return a model's mean distance divided by the baseline's, 1 if it is not known."""
        found = self._distances(model, "pairs", "noise").values()
        return (
            fmean(after for _, after in found) / fmean(before for before, _ in found)
            if found
            else 1
        )

    def _nearness(self, model: str) -> str:
        """Return how much nearer noisy text is to its clean form, such as '1.5 times nearer'."""
        distances = self._distances(model, "pairs", "noise")
        if not distances:
            return ""
        kind = (
            "real" if any(one.name in distances for one in self.datasets("pairs")) else "synthetic"
        )
        tests = [self.compared.get((model, name, "distance")) for name in distances]
        shown = {verdict(test) for test in tests if test}
        is_within = all(test and test.is_within_floor for test in tests)
        ratio = self._ratio(model)
        factor, way = (ratio, "farther") if ratio > 1 else (1 / ratio, "nearer")
        said = f"{factor:.1f} times {way}"
        if factor < FACTOR_MIN:
            tested = {"better": "slightly nearer", "worse": "slightly farther"}
            found = shown & {*tested}
            agrees = len(found) == 1 and tested[min(found)].endswith(way)
            said = tested[min(found)] if agrees else "about as near"
        if shown == {"same"}:
            said = _WITHIN if is_within else "no difference shown"
        return f"{said} on {kind} noise"

    def _search(self, model: str) -> str:
        """Return nDCG@10 of noisy queries, mean over the sets; '' without retrieval sets."""
        names, sets = (self.results.baseline.name, model), self.datasets("search")
        found = [[self.score(name, one.name, "ndcg_noisy") for name in names] for one in sets]
        scores = [(before.value, after.value) for before, after in found if before and after]
        if not scores:
            return ""
        tests = [self.compared.get((model, one.name, "ndcg_noisy")) for one in sets]
        if {verdict(test) for test in tests if test} == {"same"}:
            return "no difference shown in search with noisy queries"
        before, after = map(fmean, zip(*scores, strict=True))
        return f"nDCG@10 of noisy queries {after:.1f} instead of {before:.1f}"

    def harm(self, model: str) -> str:
        """Return the effect of a model on clean text in words, '' if it is not known.

        A set with the baseline's own similarity as gold score is left out: no model can win there.
        """
        own = {dataset.name for dataset in self.results.datasets if self.gold(dataset)}
        clean = [
            test
            for test in self.results.comparisons
            if test.model == model and test.metric in _CLEAN and test.dataset not in own
        ]
        worse = [metric_of(test.metric).title for test in clean if verdict(test) == "worse"]
        drift = self.drift(model)
        if worse:
            return f"clean text worse ({listed([*dict.fromkeys(worse)])})"
        if drift is not None and drift > UNHARMED:
            return f"clean text shifted by {drift:.3f}"
        return _UNHARMED if clean or drift is not None else ""

    def drift(self, model: str) -> float | None:
        """Return a model's mean clean drift over the sets that have it, None if none has."""
        sets = self.datasets("pairs", "noise")
        scores = [self.score(model, dataset.name, "drift") for dataset in sets]
        return fmean(score.value for score in scores if score) if any(scores) else None

    def extremes(self, model: str) -> str:
        """Return a model's best and worst noise with their distances, '' with fewer than two."""
        found = self._distances(model, "noise", "pairs")
        if len(found) < 2:
            return ""
        order = sorted(found, key=lambda name: found[name][1] / found[name][0])
        best, worst = (
            f"{name} ({self._change(model, name, 'distance')})" for name in (order[0], order[-1])
        )
        return f"Distance to the clean form, best: {best}; worst: {worst}."

    def nearly_nothing(self, metric: Metric, datasets: Sequence[Dataset]) -> str:
        """Return a sentence on a metric whose chart would be empty, '' if there is more to see.

        A chart is empty if all values are 0, or if no model makes more than one error on any set.
        """
        found = [
            (score.value, model.name, dataset)
            for dataset in datasets
            for model in self.models
            if (score := self.score(model.name, dataset.name, metric.name))
        ]
        value, name, widest = max(found, key=lambda one: one[0], default=(1.0, "", None))
        if value == 0:
            return f"{metric.title}: 0 for every model on every set."
        if widest and metric.chart == "errors" and is_one_error(value, widest.rows):
            most = f"at most one error in {widest.rows:,} sentences"
            return f"{metric.title}: {most} for every model on every set (most: {name})."
        return ""

    def terms(self, metrics: Iterable[Metric]) -> str:
        """Return the meanings of metrics as a sentence: 'drift: ...; anchored distance: ...'."""
        said = {metric.title: metric.gloss for metric in metrics if metric.gloss}
        return "; ".join(f"{title}: {gloss}" for title, gloss in said.items())

    def gold(self, dataset: Dataset) -> str:
        """Return a note if the gold score of a set is the baseline's own similarity, else ''."""
        name = self.results.baseline.name
        score = self.score(name, dataset.name, "sts_clean")
        is_own = score is not None and score.value >= _GOLD_MIN
        return f"the gold score is the similarity that {name} itself gives" if is_own else ""

    @property
    def model_word(self) -> str:
        """The name of the model that is compared with the baseline; 'a model' if there are more."""
        return self.students[0].name if len(self.students) == 1 else "a model"

    def by_metric(self, model: str, state: str) -> list[MetricFinding]:
        """Return the metrics in which a model has the verdict `state`, with the sets that show it.

        `state` is 'better', 'worse' or 'same', compared with the baseline. For 'better' and 'same'
        only main metrics (`Metric.leads`) are returned, or all if no main metric has the verdict.
        """
        kinds = {dataset.name: dataset.kind for dataset in self.results.datasets}
        groups: Groups = defaultdict(list)
        for test in self.results.comparisons:
            if test.model == model and metric_of(test.metric).better:
                groups[test.metric, kinds.get(test.dataset)].append(test)
        leading = state != "worse" and self._by_metric(groups, state, only_leading=True)
        return leading or self._by_metric(groups, state, only_leading=False)

    def _by_metric(self, groups: Groups, state: str, *, only_leading: bool) -> list[MetricFinding]:
        found = []
        for metric in METRICS.values():
            on_sets = []
            for kind in KINDS:
                if only_leading and not (metric.leads and kind in metric.kinds):
                    continue
                finding = self._on_sets(kind, groups[metric.name, kind], state)
                if finding is not None:
                    on_sets.append(finding)
            if on_sets:
                found.append(MetricFinding(metric.title, on_sets))
        return found

    def _on_sets(self, kind: str, tested: Sequence[Comparison], state: str) -> SetsFinding | None:
        """Describe the sets of one kind on which a metric has the verdict `state`.

        `tested` are the comparisons of the metric on all sets of the kind. Returns None if no set
        has this verdict.
        """
        chosen = [test for test in tested if verdict(test) == state]
        if not chosen:
            return None
        widest = max(chosen, key=lambda test: abs(test.difference))
        evidence = self._evidence(widest, with_p=state == "same")
        all_sets = KINDS[kind].counted(len(tested))
        if len(chosen) == 1:
            others = "" if len(tested) == 1 else f", one of {all_sets}"
            return SetsFinding(widest.dataset + others, evidence)
        share = "all" if len(chosen) == len(tested) else f"{len(chosen)} of"
        if state == "same":
            within = sum(test.is_within_floor for test in chosen)
            floor = f"; {within} {_WITHIN}" if within else ""
            named = listed([test.dataset for test in chosen])
            return SetsFinding(f"{share} {all_sets}", named + floor)
        return SetsFinding(f"{share} {all_sets}", f"most on {widest.dataset}: {evidence}")

    def _evidence(self, test: Comparison, *, with_p: bool) -> str:
        """Return the values of baseline and model as a phrase, such as '0.302 to 0.121'.

        If the test has counts, they follow: rows that only the model gets right (newly right), and
        rows that only the baseline gets right (newly wrong). `with_p` adds the p-value at the end.
        """
        change = self._change(test.model, test.dataset, test.metric)
        p = p_value(test.p_shown) if with_p else ""
        return ", ".join(filter(None, [change, test.items, p]))

    def _change(self, model: str, dataset: str, metric: str) -> str:
        """Return the values of baseline and model, such as '0.302 to 0.121, floor 0.004'."""
        known, test = metric_of(metric), self.compared.get((model, dataset, metric))
        names = (self.results.baseline.name, model)
        scores = [self.score(name, dataset, metric) for name in names]
        values = [score.value for score in scores if score]
        parts = [known.change(*values)] if len(values) == 2 else []
        if test and not parts:
            parts = [known.signed(test.difference)]
        return ", ".join([*parts, *filter(None, [floor_words(test)])])


def is_one_error(percent: float, rows: int) -> bool:
    """Tell whether an error rate in per cent means at most one error in `rows` rows."""
    return percent * rows <= 100 + 1e-6


def floor_words(test: Comparison | None) -> str:
    """Return the floor of a comparison, or that its difference is within it; '' if it is 0."""
    if test is None or not test.floor:
        return ""
    return _WITHIN if test.is_within_floor else f"floor {metric_of(test.metric).number(test.floor)}"


def verdict(comparison: Comparison) -> str:
    """Return whether a model is 'better' or 'worse' than the baseline.

    It is the 'same' if p >= `ALPHA`, or if the difference is within the floor of another seed.
    """
    better = metric_of(comparison.metric).better
    if comparison.is_within_floor:
        return "same"
    if not better or not comparison.p_shown < ALPHA or not comparison.difference:
        return "same"
    return "better" if (comparison.difference < 0) == (better == "low") else "worse"


def p_value(p: float) -> str:
    """Format a p-value as 'p < 0.001' or 'p = 0.034', with no-break spaces."""
    return ("p < 0.001" if p < 0.001 else f"p = {p:.3f}").replace(" ", NBSP)


def listed(names: Sequence[str], most: int = 3) -> str:
    """Join names to 'a, b and c', or to 'a, b, c and 4 more' if there are more than `most`."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def render(results: Results, console: Console) -> None:
    """Print the main result, then a table per kind of set, then what its columns mean.

    A cell has the baseline's value, then the model's. Cells are not cut: on a narrow console the
    lines of a table are wider than the console.
    """
    findings, shown = Findings(results), dict[str, Metric]()
    for line in _headlines(findings):
        console.print(line, highlight=False)
    for kind in KINDS:
        datasets = findings.datasets(kind)
        if not datasets:
            continue
        table = _table(findings, kind, datasets)
        table.width = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
        console.print(table, crop=False)
        console.print()
        shown |= {metric.headline: metric for metric in _table_metrics(findings, kind, datasets)}
    for note in _legend(findings, shown):
        console.print(note, style="dim", highlight=False, markup=False)


def _headlines(findings: Findings) -> list[Text]:
    """Return the main result and each model's best and worst noise; [] for a baseline alone."""
    students = findings.students
    if not students:
        return []
    said = {model.name: findings.extremes(model.name) for model in students}
    names = {name: f"{name}: " if len(students) > 1 else "" for name in said}
    lines = [Text(names[name] + line) for name, line in said.items() if line]
    return [Text(findings.headline, "bold"), *lines, Text()]


def _legend(findings: Findings, shown: Mapping[str, Metric]) -> Iterator[str]:
    """Yield notes on gold scores, the meanings of columns {head: metric}, and notes on tests."""
    results = findings.results
    for dataset in results.datasets:
        if (note := findings.gold(dataset)) and findings.students:
            yield f"{dataset.name}: {note}"
    yield from (f"{head}: {metric.gloss}" for head, metric in shown.items() if metric.gloss)
    if findings.floor_note:
        yield findings.floor_note
    if results.comparisons:
        levels = ", ".join(f"{stars(level / 2)} p < {level:g}" for level in LEVELS)
        tests = {test.test for test in results.comparisons}
        legend = [levels]
        if "t" in tests:
            legend.append("t-tests over the seeds, uncorrected")
        if tests - {"t"}:
            legend.append("paired tests, Holm's correction")
        yield "; ".join(legend)


def _table(findings: Findings, kind: str, datasets: Sequence[Dataset]) -> Table:
    """Return the table of all sets of one kind: a row per set and model, a column per metric."""
    baseline, students = findings.results.baseline, findings.students
    metrics = _table_metrics(findings, kind, datasets)
    name = "model" if len(students) > 1 else findings.model_word
    table = titled(f"{KINDS[kind].title}: {baseline.name}{f' → {name}' if students else ''}")
    for head in ["", "model"] if len(students) > 1 else [""]:
        table.add_column(head, justify="left", no_wrap=True, max_width=_NAME_COLUMNS)
    for head in ("rows", *(metric.headline for metric in metrics)):
        table.add_column(head, justify="right", no_wrap=True)
    for dataset in datasets:
        for cells in _table_rows(findings, dataset, metrics):
            table.add_row(*cells)
        floors = _floor_cells(findings, dataset, metrics)
        if any(floors):
            before = len(table.columns) - len(floors) - 1  # columns between the name and the floors
            table.add_row("  floor", *[""] * before, *floors, style="dim")
    return table


def _floor_cells(findings: Findings, dataset: Dataset, metrics: Sequence[Metric]) -> list[str]:
    """Return the floors of metrics on a set, in line with the figures of `_cell`.

    Drift has none: it is of clean text.
    """
    stars_width = 3 if findings.students else 0
    floors = [findings.floor(dataset.name, metric.name) for metric in metrics]
    return [
        "" if floor is None or metric.name == "drift" else metric.short(floor) + NBSP * stars_width
        for metric, floor in zip(metrics, floors, strict=True)
    ]


def _table_metrics(findings: Findings, kind: str, datasets: Sequence[Dataset]) -> list[Metric]:
    """Return the metrics that have a column in the table of this kind of set."""
    metrics = [metric for metric in findings.metrics(datasets) if kind in metric.kinds]
    if findings.students:
        return metrics
    return [metric for metric in metrics if metric.name not in _AGAINST_BASELINE]


def _table_rows(
    findings: Findings, dataset: Dataset, metrics: Sequence[Metric]
) -> Iterator[list[Text]]:
    """Yield the row of cells of each model on a set.

    Only the first row shows the name of the set and its number of rows. Models are named if several
    are compared with the baseline.
    """
    models = findings.students or [findings.results.baseline]
    for model in models:
        is_first = model is models[0]
        cells = [Text(dataset.name if is_first else "")]
        if len(models) > 1:
            cells.append(Text(model.name))
        cells.append(Text(f"{dataset.rows:,}" if is_first else ""))
        cells += [_cell(findings, dataset.name, model.name, metric) for metric in metrics]
        yield cells


def _cell(findings: Findings, dataset: str, model: str, metric: Metric) -> Text:
    """Return a cell such as '0.113→0.091**': the baseline's value, the model's, and stars for p.

    It is green if the model is better than the baseline, red if it is worse.
    """
    baseline = findings.results.baseline.name
    before, after = (findings.score(name, dataset, metric.name) for name in (baseline, model))
    if after is None:
        return Text("-")
    if model == baseline or before is None or metric.name == "drift":  # the baseline's drift is 0
        return Text(metric.short(after.value))
    test = findings.compared.get((model, dataset, metric.name))
    mark = stars(test.p_shown) if test else ""
    figures = f"{metric.short(before.value)}→{metric.short(after.value)}"
    return Text(figures + mark.ljust(3, NBSP), _COLOURS.get(verdict(test), "") if test else "")
