"""Tables of a set: metrics by models, each figure with its interval and its test."""

from collections.abc import Sequence

from noisegen.evaluation.metrics import Metric
from noisegen.evaluation.report import slopes
from noisegen.evaluation.report.findings import ALPHA, Findings, verdict
from noisegen.evaluation.report.markup import bdi, cell, paragraph, row_head, table, tag, text
from noisegen.evaluation.report.wording import heading, interval, items, number, p_value, signed
from noisegen.evaluation.results import Dataset

_TASKS = ("sts", "retrieval", "classification", "pair_classification")
_NAMES = {"better": "better", "worse": "worse", "same": "n.s."}


def natural(found: Findings) -> str:
    """Return the slope charts and tables of natural pairs."""
    datasets = found.datasets("pairs")
    return slopes.charts(found, datasets) + _tables(found, datasets)


def tasks(found: Findings) -> str:
    """Return the tables of STS, retrieval and classification."""
    return _tables(found, found.datasets(*_TASKS))


def _tables(found: Findings, datasets: Sequence[Dataset]) -> str:
    drawn = "".join(_table(found, one) for one in datasets)
    if not drawn:
        return ""
    note = (
        "In brackets: 95 % interval over sentences; ±: standard deviation over seeds. Second line: "
        f"difference from the baseline, its verdict (n.s.: not significant, p ≥ {ALPHA:g} after "
        "Holm) and p after Holm. Repaired and broken: items that only the model, or only the "
        "baseline, gets right."
    )
    return f'<div class="stack">{drawn}</div>{paragraph(note, "quiet")}'


def _table(found: Findings, one: Dataset) -> str:
    metrics = found.metrics([one])
    if not metrics:
        return ""
    heads = ["figure", *(_model_head(found, model.name) for model in found.models)]
    rows = [
        [
            row_head(_metric_head(metric)),
            *(_cell(found, one, metric, model.name) for model in found.models),
        ]
        for metric in metrics
    ]
    return table(_caption(one), heads, rows, "compared")


def _model_head(found: Findings, model: str) -> str:
    return f'<span class="{found.style(model)} named">{bdi(model, 24)}</span>'


def _metric_head(metric: Metric) -> str:
    better = {"low": "↓", "high": "↑"}.get(metric.better, "")
    said = {"low": "lower is better", "high": "higher is better"}.get(metric.better, "")
    mark = f' <span class="quiet" title="{said}">{better}</span>' if better else ""
    return text(heading(metric)) + mark


def _caption(one: Dataset) -> str:
    changed = "" if one.changed is None else f", {one.changed:,} of them changed"
    note = f" {text(one.note)}" if one.note else ""
    about = f"{one.kind.replace('_', ' ')}, {one.rows:,} rows{changed}.{note}"
    return f'{bdi(one.name)} <span class="quiet">{about}</span>'


def _cell(found: Findings, one: Dataset, metric: Metric, model: str) -> str:
    score = found.score(model, one.name, metric.name)
    if score is None:
        return cell("–", "none")
    around = interval(metric, score)
    first = f"<strong>{number(metric, score.value)}</strong>"
    first += f' <span class="quiet">{around}</span>' if around else ""
    return cell(f"{first}{_test(found, one, metric, model)}", "n", score.value)


def _test(found: Findings, one: Dataset, metric: Metric, model: str) -> str:
    """Return the second line of a cell: the difference, what it shows, p, the items."""
    test = found.compared.get((model, one.name, metric.name))
    if test is None:
        return ""
    state, how = verdict(test), text(f"{test.test}, {p_value(test.p)} before Holm")
    parts = [
        signed(metric, test.difference),
        tag("b", _NAMES[state], state),
        f'<span class="quiet" title="{how}">{text(p_value(test.p_holm))}</span>',
        f'<span class="quiet">{items(test)}</span>' if items(test) else "",
    ]
    return f'<div class="test">{" ".join(parts).strip()}</div>'
