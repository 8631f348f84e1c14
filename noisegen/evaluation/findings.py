"""Verdicts on results, in words, for the terminal table and the report."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from rich.console import Console
from rich.text import Text

from noisegen.evaluation.metrics import KINDS, METRICS, NBSP, Metric, metric_of
from noisegen.evaluation.results import Comparison, Dataset, Model, Results, Score
from noisegen.evaluation.statistics import LEVELS, stars
from noisegen.report.terminal import titled

ALPHA = 0.05  # a difference counts as shown where p after Holm is below
STYLES = 8  # colours of models that can be read as text
_AGAINST_BASELINE = ("drift", "anchored_distance")  # nothing to see where it stands alone
_COLOURS = {"better": "green", "worse": "red"}
_NAME_COLUMNS, _WIDEST = 40, 1_000  # of a name in a table, and of a table


Part = tuple[str, str]  # on how many sets of a kind, and the figures that show it
Groups = dict[tuple[str, str | None], list[Comparison]]  # by metric and kind of set


@dataclass(frozen=True)
class Findings:
    """Look-ups over `Results`."""

    results: Results

    @cached_property
    def students(self) -> list[Model]:
        """All models but the baseline, in order."""
        return [model for model in self.results.models if model is not self.results.baseline]

    @cached_property
    def models(self) -> list[Model]:
        """All models, the baseline first."""
        return [self.results.baseline, *self.students]

    @cached_property
    def compared(self) -> dict[tuple[str, str, str], Comparison]:
        """The comparisons by (model, dataset, metric)."""
        return {(test.model, test.dataset, test.metric): test for test in self.results.comparisons}

    def style(self, model: str) -> int:
        """Return the number of a model's colour and mark."""
        names = [known.name for known in self.models]
        return names.index(model) % STYLES if model in names else STYLES - 1

    def datasets(self, *kinds: str) -> list[Dataset]:
        """Return the sets of these kinds, in the order of `kinds`."""
        return [
            dataset for kind in kinds for dataset in self.results.datasets if dataset.kind == kind
        ]

    def score(self, model: str, dataset: str, metric: str) -> Score | None:
        """Return a figure, or None if there is none or it is not finite."""
        score = self.results.scores.get(model, {}).get(dataset, {}).get(metric)
        return score if score is not None and isfinite(score.value) else None

    def scores(self, dataset: str, metric: str) -> list[Score | None]:
        """Return the figure of each model."""
        return [self.score(model.name, dataset, metric) for model in self.models]

    def metrics(self, datasets: Iterable[Dataset]) -> list[Metric]:
        """Return the metrics that any model has on any of these sets, in the order of METRICS.

        Figures that METRICS lacks come last, under their own names.
        """
        wanted, names = {dataset.name for dataset in datasets}, set[str]()
        for by_set in self.results.scores.values():
            names.update(*(figures for name, figures in by_set.items() if name in wanted))
        known = [metric for metric in METRICS.values() if metric.name in names]
        return known + [metric_of(name) for name in sorted(names - set(METRICS))]

    def charted(self, datasets: Sequence[Dataset]) -> list[Metric]:
        """Return the metric to draw of each group that shares a chart: the first available."""
        first: dict[str, Metric] = {}
        for metric in self.metrics(datasets):
            if metric.chart:
                first.setdefault(metric.chart, metric)
        return list(first.values())

    @property
    def sets_in_words(self) -> str:
        """The numbers of sets of each kind."""
        kinds = [dataset.kind for dataset in self.results.datasets]
        names = {kind: KINDS.get(kind, (kind, kind))[:2] for kind in dict.fromkeys(kinds)}
        return ", ".join(counted(kinds.count(kind), *both) for kind, both in names.items())

    def clauses(self, model: str, state: str) -> list[tuple[str, list[Part]]]:
        """Return what is 'better', 'same' or 'worse' for a model: each metric with its parts.

        'worse' has all metrics, the others only the leading ones, if there are any.
        """
        kinds = {dataset.name: dataset.kind for dataset in self.results.datasets}
        groups: Groups = defaultdict(list)
        for test in self.results.comparisons:
            if test.model == model and metric_of(test.metric).better:
                groups[test.metric, kinds.get(test.dataset)].append(test)
        leading = state != "worse" and self._clauses(groups, state, only_leading=True)
        return leading or self._clauses(groups, state, only_leading=False)

    def _clauses(
        self, groups: Groups, state: str, *, only_leading: bool
    ) -> list[tuple[str, list[Part]]]:
        clauses = []
        for metric in METRICS.values():
            parts = [
                self._part(kind, groups[metric.name, kind], state) for kind in KINDS
                if not only_leading or (metric.leads and kind in metric.kinds)
            ]  # fmt: skip
            if known := [part for part in parts if part]:
                clauses.append((metric.title, known))
        return clauses

    def _part(self, kind: str, tested: Sequence[Comparison], state: str) -> Part | None:
        """Return on which sets of a kind the tests of a metric are in a state, and figures."""
        chosen = [test for test in tested if verdict(test) == state]
        if not chosen:
            return None
        widest = max(chosen, key=lambda test: abs(test.difference))
        metric, names = metric_of(widest.metric), (self.results.baseline.name, widest.model)
        scores = [self.score(name, widest.dataset, metric.name) for name in names]
        values = [score.value for score in scores if score]
        words = [metric.change(*values) if len(values) == 2 else metric.signed(widest.difference)]
        words += [widest.items, p_value(widest.p_shown) if state == "same" else ""]
        evidence, all_sets = ", ".join(filter(None, words)), counted(len(tested), *KINDS[kind][:2])
        if len(chosen) == 1:
            return f"{widest.dataset}{'' if len(tested) == 1 else f', one of {all_sets}'}", evidence
        share = "all" if len(chosen) == len(tested) else f"{len(chosen)} of"
        if state == "same":
            return f"{share} {all_sets}", listed([test.dataset for test in chosen])
        return f"{share} {all_sets}", f"most on {widest.dataset}: {evidence}"


def verdict(comparison: Comparison) -> str:
    """Return the verdict of a comparison at `ALPHA`: 'better', 'worse' or 'same'."""
    better = metric_of(comparison.metric).better
    if not better or not comparison.p_shown < ALPHA or not comparison.difference:
        return "same"
    return "better" if (comparison.difference < 0) == (better == "low") else "worse"


def p_value(p: float) -> str:
    """Return 'p < 0.001', 'p = 0.034', with spaces that do not break."""
    return ("p < 0.001" if p < 0.001 else f"p = {p:.3f}").replace(" ", NBSP)


def counted(number: int, one: str, many: str) -> str:
    """Return '1 set', '2,000 sets'."""
    return f"{number:,} {one if number == 1 else many}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return 'a, b and c', or 'a, b, c and 4 more' if there are many."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def render(results: Results, console: Console) -> None:
    """Print a table per kind of set: the baseline's figure beside the model's.

    No figure is cut: on a console that is too narrow, lines are longer than it is wide.
    """
    findings = Findings(results)
    baseline, others = results.baseline.name, [model.name for model in findings.students]
    for kind, (*_, title) in KINDS.items():
        if not (datasets := findings.datasets(kind)):
            continue
        shown = [
            metric for metric in findings.metrics(datasets)
            if kind in metric.kinds and (others or metric.name not in _AGAINST_BASELINE)
        ]  # fmt: skip
        table = titled(f"{title}: {baseline}{' → model' if others else ''}")
        names = ["", "model"] if len(others) > 1 else [""]
        for head in (*names, "rows", *(metric.headline for metric in shown)):
            is_name = head in names
            table.add_column(head, justify="left" if is_name else "right", no_wrap=True,
                             max_width=_NAME_COLUMNS if is_name else None)  # fmt: skip
        for dataset in datasets:
            first, rows = dataset.name, f"{dataset.rows:,}"
            for model in others or [baseline]:
                names = [first, model] if len(others) > 1 else [first]
                cells = [_cell(findings, dataset.name, model, metric) for metric in shown]
                table.add_row(*map(Text, [*names, rows]), *cells)
                first = rows = ""
        table.width = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
        console.print(table, crop=False)
        console.print()
    if results.comparisons:
        levels = ", ".join(f"{stars(level / 2)} p < {level:g}" for level in LEVELS)
        kinds = {test.test for test in results.comparisons}
        how = ["t-tests over the seeds, uncorrected"] if "t" in kinds else []
        how += ["paired tests, Holm's correction"] if kinds - {"t"} else []
        console.print("; ".join([levels, *how]), style="dim", highlight=False)


def _cell(findings: Findings, dataset: str, model: str, metric: Metric) -> Text:
    """Return '0.113→0.091**', green where it is better and red where it is worse for sure."""
    baseline = findings.results.baseline.name
    before, after = (findings.score(name, dataset, metric.name) for name in (baseline, model))
    if after is None:
        return Text("-")
    if model == baseline or before is None or metric.name == "drift":  # the baseline has no drift
        return Text(metric.short(after.value))
    test = findings.compared.get((model, dataset, metric.name))
    mark = stars(test.p_shown) if test else ""
    figures = f"{metric.short(before.value)}→{metric.short(after.value)}"
    return Text(figures + mark.ljust(3, NBSP), _COLOURS.get(verdict(test), "") if test else "")
