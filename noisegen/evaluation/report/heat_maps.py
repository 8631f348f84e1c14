"""Heat maps: models by kinds of noise, as tables with a number in every cell."""

from collections.abc import Sequence

from noisegen.evaluation.metrics import Metric
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import bdi, cell, row_head, table, text
from noisegen.evaluation.report.scales import Scale, fitting
from noisegen.evaluation.report.wording import figure, heading, number, title_case
from noisegen.evaluation.results import Dataset

_SHADES = 9  # of page.css
_METRICS = ("distance", "xsim_error", "xsim_hard_error")


def content(found: Findings) -> str:
    """Return a heat map a metric."""
    datasets = found.datasets("noise")
    shown = [metric for metric in found.metrics(datasets) if metric.name in _METRICS]
    maps = "".join(_map(found, metric, datasets) for metric in shown)
    return f'<div class="maps">{maps}</div>' if maps else ""


def _map(found: Findings, metric: Metric, datasets: Sequence[Dataset]) -> str:
    values = [
        value for model in found.models for value in found.values(model.name, datasets, metric.name)
    ]
    scale = fitting(values, 0, 100)
    heads = ["noise", *(bdi(model.name, 24) for model in found.models)]
    rows = [
        [
            row_head(bdi(one.name, 24)),
            *(_cell(found, metric, one, model.name, scale) for model in found.models),
        ]
        for one in datasets
        if any(found.score(model.name, one.name, metric.name) for model in found.models)
    ]
    return table(text(title_case(heading(metric))), heads, rows, "heat sortable")


def _cell(found: Findings, metric: Metric, one: Dataset, model: str, scale: Scale) -> str:
    score = found.score(model, one.name, metric.name)
    if score is None:
        return cell("–", "none")
    shade = min(int(scale.at(score.value) / 100 * _SHADES), _SHADES - 1)
    said = text(figure(metric, score))
    shown = f'<span title="{said}">{number(metric, score.value)}</span>'
    return cell(shown, f"n h{max(shade, 0)}", score.value)
