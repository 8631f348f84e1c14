"""Robustness against drift: a model that collapsed looks robust until its drift is seen."""

from collections.abc import Sequence
from typing import NamedTuple

from noisegen.evaluation.metrics import Metric
from noisegen.evaluation.report import svg
from noisegen.evaluation.report.curves import short
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import figure
from noisegen.evaluation.report.scales import Scale, fitting, spread
from noisegen.evaluation.report.wording import cut, heading, title_case, with_unit
from noisegen.evaluation.report.wording import figure as worded
from noisegen.evaluation.results import Dataset

_WIDTH, _HEIGHT = 380, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 272, 34, 256
_CAPTION = (
    "Across: how far vectors of clean text moved from the baseline’s; up: error on noisy text. "
    "Lower left is better. Large marks are means over the sets, small ones single sets. A model "
    "to which all sentences are alike has small distances too: its drift and its xSIM errors give "
    "it away."
)


class _Point(NamedTuple):
    model: str
    x: float
    y: float
    said: str


def content(found: Findings) -> str:
    """Return a panel for distance and one for xSIM errors."""
    datasets = found.datasets("noise", "pairs")
    chosen = (
        found.first_metric(datasets, "distance", "distance_changed"),
        found.first_metric(datasets, "xsim_error", "xsim_hard_error"),
    )
    panels = "".join(_panel(found, metric, datasets) for metric in chosen if metric)
    return figure(panels, _CAPTION) if panels else ""


def _panel(found: Findings, metric: Metric, datasets: Sequence[Dataset]) -> str:
    points = [
        point
        for model in found.models
        for one in datasets
        if (point := _point(found, metric, one, model.name))
    ]
    if not any(point.x for point in points):
        return ""
    means = [mean for model in found.models if (mean := _mean(points, metric, model.name))]
    across = fitting([0.0, *(point.x for point in points)], _LEFT + 8, _RIGHT, linear=True)
    up = fitting((point.y for point in points), _BOTTOM, _TOP)
    title = f"{heading(metric)} over clean drift"
    parts = [
        svg.label(
            f"{title_case(heading(metric))}{', log scale' if up.is_log else ''}", 0, 12, "bold"
        ),
        _axes(across, up),
        *(_marked(found, point, across, up, 2.5, "faint") for point in points),
        *(_marked(found, point, across, up, 7, "strong") for point in means),
        _names(found, means, across, up),
    ]
    return svg.chart(_WIDTH, _HEIGHT, title, "; ".join(mean.said for mean in means), *parts)


def _point(found: Findings, metric: Metric, one: Dataset, model: str) -> _Point | None:
    drift, score = (found.score(model, one.name, name) for name in ("drift", metric.name))
    moved = drift.value if drift else 0.0 if model == found.baseline.name else None
    if moved is None or score is None:
        return None
    said = f"{model} on {one.name}: drift {moved:.3f}, {metric.title} {worded(metric, score)}"
    return _Point(model, moved, score.value, said)


def _mean(points: Sequence[_Point], metric: Metric, model: str) -> _Point | None:
    own = [point for point in points if point.model == model]
    if not own:
        return None
    x, y = (sum(values) / len(own) for values in zip(*((p.x, p.y) for p in own), strict=True))
    said = f"{model}: mean drift {x:.3f}, mean {metric.title} {with_unit(metric, y)}"
    return _Point(model, x, y, said)


def _marked(
    found: Findings, point: _Point, across: Scale, up: Scale, size: float, kind: str
) -> str:
    place = found.place(point.model)
    return svg.tip(point.said, svg.mark(place, across.at(point.x), up.at(point.y), size, kind))


def _axes(across: Scale, up: Scale) -> str:
    lines = [
        svg.line("grid", (_LEFT, up.at(one)), (_RIGHT, up.at(one)))
        + svg.label(short(one), _LEFT - 6, up.at(one), "small quiet", "end")
        for one in up.ticks()
    ]
    lines += [
        svg.line("axis", (across.at(one), _BOTTOM), (across.at(one), _BOTTOM + 4))
        + svg.label(short(one), across.at(one), _BOTTOM + 15, "small quiet", "middle")
        for one in across.ticks()
    ]
    middle = (_LEFT + _RIGHT) / 2
    named = svg.label("clean drift", middle, _BOTTOM + 34, "small quiet", "middle")
    return svg.line("axis", (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)) + "".join(lines) + named


def _names(found: Findings, means: Sequence[_Point], across: Scale, up: Scale) -> str:
    places = spread([up.at(mean.y) for mean in means], 15, _TOP, _BOTTOM - 8)
    drawn = []
    for mean, place in zip(means, places, strict=True):
        x, style = across.at(mean.x), f"{found.style(mean.model)} named halo"
        drawn.append(svg.line("leader", (x + 8, up.at(mean.y)), (x + 13, place)))
        drawn.append(svg.label(cut(mean.model, svg.LABEL_MAX), x + 15, place, style))
    return "".join(drawn)
