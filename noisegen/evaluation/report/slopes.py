"""The slope chart: every kind of noise from the baseline (left) to a model (right)."""

from collections.abc import Sequence
from typing import NamedTuple

from noisegen.evaluation.metrics import Metric
from noisegen.evaluation.report import svg
from noisegen.evaluation.report.findings import Findings, bounds, verdict
from noisegen.evaluation.report.markup import figure, text
from noisegen.evaluation.report.scales import Scale, fitting, spread
from noisegen.evaluation.report.wording import cut, heading, number, p_value, title_case
from noisegen.evaluation.report.wording import figure as worded
from noisegen.evaluation.results import Dataset, Model, Score

_WIDTH, _LEFT, _RIGHT = 380, 134, 246  # pixels: the chart, and its two axes
_TOP, _LINE, _NAME_MAX = 44, 15, 13
_KEY = (("better", "better"), ("same", "no difference shown"), ("worse", "worse"))
_BARS = "Broad bars: 95 % intervals over sentences, or one standard deviation over seeds."


class _Slope(NamedTuple):
    name: str
    scores: tuple[Score, Score]
    state: str  # 'better', 'worse', 'same', or '' where there was no test
    said: str


def content(found: Findings) -> str:
    """Return the charts of distance and of xSIM errors for every model."""
    return charts(found, found.datasets("noise"))


def charts(found: Findings, datasets: Sequence[Dataset]) -> str:
    """Return a figure a metric, with a panel for each model."""
    chosen = (
        found.first_metric(datasets, "distance", "distance_changed", "anchored_distance"),
        found.first_metric(datasets, "xsim_error", "xsim_hard_error"),
    )
    figures = [_figure(found, metric, datasets) for metric in chosen if metric]
    if not any(figures):
        return ""
    kind = "beside" if len(found.students) == 1 else "below"
    return f'<div class="{kind}">{"".join(figures)}</div>{_key(found)}'


def _key(found: Findings) -> str:
    """Return what the lines stand for, drawn and in words."""
    style = found.style(found.students[0].name)
    samples = "".join(
        f'<span class="sample">{svg.chart(36, 12, words, "", _sample(style, state))} {words}</span>'
        for state, words in _KEY
    )
    return f'<p class="key quiet">{samples} <span>{_BARS}</span></p>'


def _sample(style: str, state: str) -> str:
    return svg.line(f"{style} slope {state}", (2, 6), (34, 6))


def _figure(found: Findings, metric: Metric, datasets: Sequence[Dataset]) -> str:
    panels = [(model, _slopes(found, metric, model, datasets)) for model in found.students]
    values = [score.value for _, lines in panels for line in lines for score in line.scores]
    if not values:
        return ""
    height = _TOP + max(200, _LINE * max(len(lines) for _, lines in panels)) + 12
    scale = fitting(values, height - 12, _TOP)
    drawn = "".join(
        _panel(found, metric, model, lines, scale, height) for model, lines in panels if lines
    )
    kind = "logarithmic scale" if scale.is_log else "linear scale"
    caption = f"{text(title_case(metric.meaning))}; {kind}, lower is better."
    return figure(drawn, caption, text(title_case(heading(metric))))


def _slopes(
    found: Findings, metric: Metric, model: Model, datasets: Sequence[Dataset]
) -> list[_Slope]:
    lines = []
    for one in datasets:
        before = found.score(found.baseline.name, one.name, metric.name)
        after = found.score(model.name, one.name, metric.name)
        if before and after:
            test = found.compared.get((model.name, one.name, metric.name))
            said = f"{one.name}: {worded(metric, before)} to {worded(metric, after)}"
            said += f", {p_value(test.p_holm)} after Holm" if test else ""
            state = verdict(test) if test else ""
            lines.append(_Slope(one.name, (before, after), state, said))
    return lines


def _panel(
    found: Findings,
    metric: Metric,
    model: Model,
    lines: Sequence[_Slope],
    scale: Scale,
    height: float,
) -> str:
    names = found.baseline.name, model.name
    style = found.style(model.name)
    heads = [
        svg.label(cut(name, 20), x, 16, f"{found.style(name)} named", anchor)
        for name, x, anchor in zip(names, (_LEFT, _RIGHT), ("end", "start"), strict=True)
    ]
    axes = [svg.line("axis", (x, _TOP - 16), (x, height - 6)) for x in (_LEFT, _RIGHT)]
    drawn = [svg.tip(line.said, _slope(line, scale, style)) for line in lines]
    labels = [_labels(metric, lines, side, scale, height) for side in (0, 1)]
    title = f"{metric.title} from {names[0]} to {names[1]}"
    told = "; ".join(line.said for line in lines)
    return svg.chart(_WIDTH, height, title, told, *axes, *heads, *drawn, *labels)


def _slope(line: _Slope, scale: Scale, style: str) -> str:
    """Return the line, its two points and their intervals."""
    ends = [(x, scale.at(s.value)) for x, s in zip((_LEFT, _RIGHT), line.scores, strict=True)]
    kind = f"{style} slope {line.state}".strip()
    parts = [svg.line(f"{kind} reach", *ends), svg.line(kind, *ends)]
    for (x, y), score in zip(ends, line.scores, strict=True):
        if limits := bounds(score):
            low, high = limits
            parts.append(svg.line(f"{kind} whisker", (x, scale.at(low)), (x, scale.at(high))))
        parts.append(svg.element("circle", kind=f"{kind} dot", cx=x, cy=y, r=3))
    return "".join(parts)


def _labels(metric: Metric, lines: Sequence[_Slope], side: int, scale: Scale, height: float) -> str:
    """Return names and figures beside an axis, moved apart and led to their points."""
    x, way, anchor = ((_LEFT, -1, "end"), (_RIGHT, 1, "start"))[side]
    points = [scale.at(line.scores[side].value) for line in lines]
    places = spread(points, _LINE, _TOP - 8, height - 12)
    drawn = []
    for line, point, place in zip(lines, points, places, strict=True):
        name, value = cut(line.name, _NAME_MAX), number(metric, line.scores[side].value)
        words = f"{name} {value}" if side == 0 else f"{value} {name}"
        drawn.append(svg.line("leader", (x + 5 * way, point), (x + 15 * way, place)))
        drawn.append(svg.label(words, x + 18 * way, place, f"small {line.state}", anchor))
    return "".join(drawn)
