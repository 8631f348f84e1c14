"""The figures of an evaluation as tables for a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.results import Comparison, Dataset, Results
from noisegen.evaluation.significance import LEVELS, stars
from noisegen.tables import titled

_PAIRED = {
    "distance": "distance", "anchored_distance": "anchored", "xsim_error": "xSIM %",
    "xsim_hard_error": "hard %", "drift": "drift",
}  # fmt: skip
HEADLINES = {  # kind of set: metrics with their short titles
    "pairs": _PAIRED,
    "noise": _PAIRED,
    "sts": {"sts_clean": "clean", "sts_one_noisy": "one noisy", "sts_both_noisy": "both noisy"},
    "retrieval": {"accuracy_forward": "to target %", "accuracy_backward": "to source %"},
    "classification": {
        "accuracy_clean": "clean %", "accuracy_noisy": "noisy %", "class_similarity": "D_avg",
    },
    "pair_classification": {
        "average_precision_clean": "clean %", "average_precision_noisy": "noisy %",
    },
}  # fmt: skip
TITLES = {
    "pairs": "natural pairs", "noise": "noise on clean text", "sts": "STS, Spearman x 100",
    "retrieval": "retrieval accuracy", "classification": "classification accuracy",
    "pair_classification": "pair classification, AP",
}  # fmt: skip


def render(found: Results, console: Console) -> None:
    """Print a table for every kind of set: the baseline's figure, and the model's beside it."""
    for kind in HEADLINES:
        datasets = [one for one in found.datasets if one.kind == kind]
        if datasets:
            console.print(_table(found, kind, datasets))
            console.print()
    if found.comparisons:
        levels = ", ".join(f"{stars(level / 2)} p < {level:g}" for level in LEVELS)
        console.print(f"{levels}; paired tests, Holm's correction", style="dim", highlight=False)


def _table(found: Results, kind: str, datasets: Sequence[Dataset]) -> Table:
    others = [model.name for model in found.models if not model.baseline]
    shown = {
        metric: title
        for metric, title in HEADLINES[kind].items()
        if any(metric in of_sets.get(one.name, {}) for one in datasets
               for of_sets in found.scores.values())
        and (others or metric not in ("drift", "anchored_distance"))
    }  # fmt: skip
    table = titled(f"{TITLES[kind]}: {found.baseline.name}{' → model' if others else ''}")
    table.padding, table.collapse_padding = (0, 1, 0, 0), True
    table.add_column("", no_wrap=True)
    for title in ["model"] if len(others) > 1 else []:
        table.add_column(title, no_wrap=True)
    for title in ("rows", *shown.values()):
        table.add_column(title, justify="right", no_wrap=True)
    for one in datasets:
        for place, model in enumerate(others or [found.baseline.name]):
            named = [model] if len(others) > 1 else []
            head = [one.name, *named, f"{one.rows:,}"] if not place else ["", *named, ""]
            cells = [_cell(found, one.name, model, metric) for metric in shown]
            table.add_row(*map(Text, head), *cells)
    return table


def _cell(found: Results, dataset: str, model: str, metric: str) -> Text:
    """Return '0.113→0.091**', green where it is better and red where it is worse for sure."""
    ours, theirs = (
        found.scores.get(name, {}).get(dataset, {}).get(metric)
        for name in (model, found.baseline.name)
    )
    if ours is None:
        return Text("-")
    if model == found.baseline.name or theirs is None or metric == "drift":
        return Text(_number(metric, ours.value))
    compared = next(
        (one for one in found.comparisons
         if (one.model, one.dataset, one.metric) == (model, dataset, metric)), None,
    )  # fmt: skip
    text = f"{_number(metric, theirs.value)}→{_number(metric, ours.value)}"
    mark = stars(compared.p_holm) if compared else ""
    return Text(text + mark.ljust(3, "\N{NO-BREAK SPACE}"), style=_style(compared, metric))


def _style(compared: Comparison | None, metric: str) -> str:
    if compared is None or not stars(compared.p_holm) or not METRICS[metric].better:
        return ""
    lower = compared.difference < 0
    return "green" if lower == (METRICS[metric].better == "low") else "red"


def _number(metric: str, value: float) -> str:
    return f"{value:.1f}" if METRICS[metric].unit else f"{value:.3f}"
