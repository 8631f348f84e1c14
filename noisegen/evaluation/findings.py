"""Results as tables and the report ask for them: by name, in order, judged and put into words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.evaluation.metrics import KINDS, METRICS, NBSP, Metric, metric_of
from noisegen.evaluation.results import Comparison, Dataset, Model, Results, Score
from noisegen.evaluation.statistics import LEVELS, stars
from noisegen.report.terminal import titled

ALPHA = 0.05  # a difference counts as shown where p after Holm is below
STYLES = 8  # colours of models that can be read as text
_NAMES_MAX = 3  # sets named in a clause


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
        return {
            (comparison.model, comparison.dataset, comparison.metric): comparison
            for comparison in self.results.comparisons
        }

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
        """Return a figure, or None where there is none or it is no number."""
        score = self.results.scores.get(model, {}).get(dataset, {}).get(metric)
        return score if score is not None and isfinite(score.value) else None

    def values(self, model: str, datasets: Iterable[Dataset], metric: str) -> list[float]:
        """Return the figures there are of one metric over several sets."""
        scores = (self.score(model, dataset.name, metric) for dataset in datasets)
        return [score.value for score in scores if score]

    def metrics(self, datasets: Sequence[Dataset]) -> list[Metric]:
        """Return the metrics that any model has on any of these sets, in the order of METRICS.

        A figure that METRICS does not know comes last, under its own name.
        """
        scored = self.results.scores.values()
        names = {
            name
            for by_set in scored
            for dataset in datasets
            for name in by_set.get(dataset.name, ())
        }
        known = [metric for metric in METRICS.values() if metric.name in names]
        return known + [metric_of(name) for name in sorted(names - set(METRICS))]

    def charted(self, datasets: Sequence[Dataset]) -> list[Metric]:
        """Return the metric to draw of each group that shares a chart: the first there is."""
        first: dict[str, Metric] = {}
        for metric in self.metrics(datasets):
            if metric.chart:
                first.setdefault(metric.chart, metric)
        return list(first.values())


def verdict(comparison: Comparison) -> str:
    """Return 'better', 'worse' or 'same': what a comparison shows at `ALPHA` after Holm."""
    better = metric_of(comparison.metric).better
    if not better or not comparison.p_holm < ALPHA or not comparison.difference:
        return "same"
    return "better" if (comparison.difference < 0) == (better == "low") else "worse"


# Words.


def bounds(score: Score) -> tuple[float, float] | None:
    """Return the interval of a figure: the bootstrap's, else one sd on either side."""
    if score.low is not None and score.high is not None and isfinite(score.low + score.high):
        return score.low, score.high
    if score.sd is not None and isfinite(score.sd):
        return score.value - score.sd, score.value + score.sd
    return None


def interval(metric: Metric, score: Score) -> str:
    """Return '[0.101, 0.130]', '± 0.004' or the empty string."""
    if bounds(score) is None:
        return ""
    if score.low is not None and score.high is not None:
        return f"[{metric.number(score.low)}, {metric.number(score.high)}]"
    return f"± {metric.number(score.sd or 0)}"


def with_interval(metric: Metric, score: Score) -> str:
    """Return a figure with its unit and its interval."""
    return f"{metric.with_unit(score.value)} {interval(metric, score)}".strip()


def p_value(p: float) -> str:
    """Return 'p < 0.001', 'p = 0.034', with spaces that do not break."""
    return ("p < 0.001" if p < 0.001 else f"p = {p:.3f}").replace(" ", NBSP)


def items(comparison: Comparison) -> str:
    """Return '14 repaired, 10 broken', or the empty string where items are not counted."""
    if comparison.repaired is None or comparison.broken is None:
        return ""
    return f"{comparison.repaired:,} repaired, {comparison.broken:,} broken"


def counted(number: int, one: str, many: str) -> str:
    """Return '1 set', '2,000 sets'."""
    return f"{number:,} {one if number == 1 else many}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return 'a, b and c'; 'a, b, c and 4 more' where there are many."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sets_in_words(results: Results) -> str:
    """Return how many sets of every kind there are."""
    kinds = [dataset.kind for dataset in results.datasets]
    names = {kind: KINDS.get(kind, (kind, kind))[:2] for kind in dict.fromkeys(kinds)}
    return ", ".join(counted(kinds.count(kind), *both) for kind, both in names.items())


# The verdict: what got better, what did not move, what got worse.


class Part(NamedTuple):
    """On how many sets of a kind a metric is in a state, and the figures that show it."""

    sets: str
    evidence: str


class Clause(NamedTuple):
    """A metric and the kinds of sets that it is in a state on."""

    metric: str
    parts: list[Part]


def clauses(findings: Findings, model: str, state: str) -> list[Clause]:
    """Return what is 'better', 'same' or 'worse' for a model, metric by metric.

    'worse' leaves nothing out; of the others the metrics that lead, where there are any.
    """
    kinds = {comparison.name: comparison.kind for comparison in findings.results.datasets}
    compared = [
        comparison
        for comparison in findings.results.comparisons
        if comparison.model == model and metric_of(comparison.metric).better
    ]
    main = [
        comparison
        for comparison in compared
        if metric_of(comparison.metric).leads
        and kinds.get(comparison.dataset) in metric_of(comparison.metric).kinds
    ]
    leading = [] if state == "worse" else _clauses(findings, main, state)
    return leading or _clauses(findings, compared, state)


def _clauses(findings: Findings, compared: Sequence[Comparison], state: str) -> list[Clause]:
    clauses = []
    for metric in METRICS.values():
        tested = [comparison for comparison in compared if comparison.metric == metric.name]
        if parts := list(_parts(findings, tested, state)):
            clauses.append(Clause(metric.title, parts))
    return clauses


def _parts(findings: Findings, compared: Sequence[Comparison], state: str) -> Iterator[Part]:
    for kind, (one_set, sets, _) in KINDS.items():
        names = {comparison.name for comparison in findings.datasets(kind)}
        tested = [comparison for comparison in compared if comparison.dataset in names]
        chosen = [comparison for comparison in tested if verdict(comparison) == state]
        if not chosen:
            continue
        most = max(chosen, key=lambda comparison: abs(comparison.difference))
        evidence, all_sets = _evidence(findings, most), counted(len(tested), one_set, sets)
        if len(chosen) == 1:
            of = "" if len(tested) == 1 else f", one of {all_sets}"
            yield Part(f"{most.dataset}{of}", evidence)
            continue
        if state == "same":
            evidence = listed([comparison.dataset for comparison in chosen], _NAMES_MAX)
        else:
            evidence = f"most on {most.dataset}: {evidence}"
        share = "all" if len(chosen) == len(tested) else f"{len(chosen)} of"
        yield Part(f"{share} {all_sets}", evidence)


def _evidence(findings: Findings, comparison: Comparison) -> str:
    """Return the two figures, the items repaired and broken, and p where nothing was shown."""
    metric = metric_of(comparison.metric)
    models = findings.results.baseline.name, comparison.model
    scores = [findings.score(name, comparison.dataset, comparison.metric) for name in models]
    values = [score.value for score in scores if score]
    words = [metric.change(*values) if len(values) == 2 else metric.signed(comparison.difference)]
    words += [items(comparison)] if items(comparison) else []
    words += [p_value(comparison.p_holm)] if verdict(comparison) == "same" else []
    return ", ".join(words)


def render(results: Results, console: Console) -> None:
    """Print a table for every kind of set: the baseline's figure, and the model's beside it."""
    findings = Findings(results)
    for kind in KINDS:
        if datasets := findings.datasets(kind):
            console.print(_table(findings, kind, datasets))
            console.print()
    if results.comparisons:
        levels = ", ".join(f"{stars(level / 2)} p < {level:g}" for level in LEVELS)
        console.print(f"{levels}; paired tests, Holm's correction", style="dim", highlight=False)


def _table(findings: Findings, kind: str, datasets: Sequence[Dataset]) -> Table:
    baseline, others = (
        findings.results.baseline.name,
        [dataset.name for dataset in findings.students],
    )
    shown = [
        metric
        for metric in findings.metrics(datasets)
        if kind in metric.kinds and (others or metric.name not in ("drift", "anchored_distance"))
    ]
    table = titled(f"{KINDS[kind][2]}: {baseline}{' → model' if others else ''}")
    table.padding, table.collapse_padding = (0, 1, 0, 0), True
    for title in ("", *(["model"] if len(others) > 1 else [])):
        table.add_column(title, no_wrap=True)
    for title in ("rows", *(metric.headline for metric in shown)):
        table.add_column(title, justify="right", no_wrap=True)
    for dataset in datasets:
        for number, model in enumerate(others or [baseline]):
            named = [model] if len(others) > 1 else []
            head = ["", *named, ""] if number else [dataset.name, *named, f"{dataset.rows:,}"]
            cells = [_cell(findings, dataset.name, model, metric) for metric in shown]
            table.add_row(*map(Text, head), *cells)
    return table


def _cell(findings: Findings, dataset: str, model: str, metric: Metric) -> Text:
    """Return '0.113→0.091**', green where it is better and red where it is worse for sure."""
    baseline = findings.results.baseline.name
    scores = [findings.score(name, dataset, metric.name) for name in (baseline, model)]
    if scores[1] is None:
        return Text("-")
    decimals = metric.format.short
    if model == baseline or metric.name == "drift":  # the baseline drifts from nothing
        scores = scores[1:]
    text = "→".join(f"{score.value:.{decimals}f}" for score in scores if score)
    if len(scores) == 1:
        return Text(text)
    compared = findings.compared.get((model, dataset, metric.name))
    mark = stars(compared.p_holm) if compared else ""
    return Text(text + mark.ljust(3, NBSP), style=_style(compared) if mark else "")


def _style(comparison: Comparison | None) -> str:
    better = METRICS[comparison.metric].better if comparison else ""
    if comparison is None or not better:
        return ""
    return "green" if (comparison.difference < 0) == (better == "low") else "red"
