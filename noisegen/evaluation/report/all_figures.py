"""All figures in one table that can be sorted, filtered and copied, and what they mean."""

from noisegen.evaluation.metrics import Metric
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import bdi, cell, row_head, table, text
from noisegen.evaluation.report.wording import figure, heading, number
from noisegen.evaluation.results import Dataset

_BETTER = {"low": "lower", "high": "higher", "": "-"}


def content(found: Findings) -> str:
    """Return the table of figures and the table of their definitions."""
    datasets = found.results.datasets
    rows = [_row(found, one, metric) for one in datasets for metric in found.metrics([one])]
    if not rows:
        return ""
    heads = ["set", "kind", "metric", *(bdi(model.name, 24) for model in found.models)]
    figures = table("All figures", heads, rows, "sortable copied filtered")
    return (
        f"{_definitions(found)}<details><summary>All {len(rows):,} rows of figures</summary>"
        f"{figures}</details>"
    )


def _row(found: Findings, one: Dataset, metric: Metric) -> list[str]:
    return [
        row_head(bdi(one.name)),
        cell(text(one.kind.replace("_", " "))),
        cell(f"<span title={chr(34)}{text(metric.name)}{chr(34)}>{text(heading(metric))}</span>"),
        *(_cell(found, one, metric, model.name) for model in found.models),
    ]


def _cell(found: Findings, one: Dataset, metric: Metric, model: str) -> str:
    score = found.score(model, one.name, metric.name)
    if score is None:
        return cell("–", "none")
    said = text(figure(metric, score))
    return cell(f'<span title="{said}">{number(metric, score.value)}</span>', "n", score.value)


def _definitions(found: Findings) -> str:
    rows = [
        [row_head(text(heading(metric))), cell(text(_BETTER.get(metric.better, "-"))),
         cell(text(metric.meaning)), cell(f"<code>{text(metric.name)}</code>")]
        for metric in found.metrics(found.results.datasets)
    ]  # fmt: skip
    heads = ["figure", "better", "what it is", "name in metrics.json"]
    return table("What the figures mean", heads, rows, "definitions")
