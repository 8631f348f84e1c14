"""The baseline's space in two dimensions, with arrows from noisy to clean."""

from collections.abc import Mapping, Sequence
from math import hypot, isfinite

from noisegen.evaluation.report import svg
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import bdi, figure
from noisegen.evaluation.report.wording import cut
from noisegen.evaluation.results import Projection

_WIDTH, _HEIGHT, _TOP, _EDGE = 380, 320, 30, 10
_PAIRS_MAX = 150  # arrows of a panel; more would hide one another
_TEXT_MAX = 90  # characters of a text in a tooltip
_HEAD, _DOT = 5.0, 2.0  # pixels of an arrow's head and of a dot
_LONG = 6.0  # pixels from which an arrow has a line
Points = Sequence[tuple[float, float, float, float]]


def content(found: Findings) -> str:
    """Return a figure a projection, with a panel for every model, all to one scale."""
    return "".join(_figure(found, one) for one in found.results.projections)


def _figure(found: Findings, one: Projection) -> str:
    shown = {name: points[:_PAIRS_MAX] for name, points in one.points.items()}
    values = [value for points in shown.values() for four in points for value in four]
    if not values or not all(map(isfinite, values)):
        return ""
    frame = _frame(shown)
    panels = "".join(
        _panel(found, one, model.name, shown[model.name], frame)
        for model in found.models
        if model.name in shown
    )
    return figure(panels, _caption(found, one))


def _caption(found: Findings, one: Projection) -> str:
    first, second = (f"{100 * share:.0f} %" for share in one.explained)
    shown = min(len(one.texts), _PAIRS_MAX)
    drawn = f"{shown} of {len(one.texts):,} pairs drawn" if shown < len(one.texts) else ""
    return (
        f"{bdi(one.dataset)}: arrows lead from the noisy sentence to its clean form (dot); the "
        f"shorter, the better. First two principal components of {bdi(found.baseline.name)}’s "
        f"vectors of clean text, which explain {first} and {second} of their variance; Spearman "
        f"correlation of distances before and after projection {one.spearman:.2f}. "
        f"{drawn}{'.' if drawn else ''}"
    )


def _frame(shown: Mapping[str, Points]) -> tuple[float, float, float]:
    """Return left, upper end and pixels a unit, the same for both directions."""
    xs = [x for points in shown.values() for four in points for x in four[::2]]
    ys = [y for points in shown.values() for four in points for y in four[1::2]]
    wide, tall = _WIDTH - 2 * _EDGE, _HEIGHT - _TOP - 2 * _EDGE
    unit = min(wide / (max(xs) - min(xs) or 1), tall / (max(ys) - min(ys) or 1))
    left = min(xs) - (wide / unit - (max(xs) - min(xs))) / 2
    upper = max(ys) + (tall / unit - (max(ys) - min(ys))) / 2
    return left, upper, unit


def _panel(
    found: Findings,
    one: Projection,
    model: str,
    points: Points,
    frame: tuple[float, float, float],
) -> str:
    left, upper, unit = frame
    placed = [
        tuple(_EDGE + (v - left) * unit if i % 2 == 0 else _TOP + _EDGE + (upper - v) * unit
              for i, v in enumerate(four))
        for four in points
    ]  # fmt: skip
    mean = sum(hypot(a - c, b - d) for a, b, c, d in points) / max(1, len(points))
    said = f"{model}: arrows of mean length {mean:.3f} in the plane"
    ground = svg.element(
        "rect", kind="field", x=0.5, y=_TOP, width=_WIDTH - 1, height=_HEIGHT - _TOP - 1, rx=6
    )
    head = svg.label(cut(model, 24), 0, 12, f"{found.style(model)} named")
    note = svg.label(f"mean arrow {mean:.3f}", _WIDTH, 12, "small quiet", "end")
    arrows = [
        svg.tip(_told(texts), _arrow(found.style(model), *four))
        for four, texts in zip(placed, one.texts, strict=False)  # all of the texts, some points
    ]
    return svg.chart(_WIDTH, _HEIGHT, f"Projection of {model}", said, ground, head, note, *arrows)


def _told(texts: tuple[str, str]) -> str:
    clean, noisy = (cut(text, _TEXT_MAX) for text in texts)
    return f"{noisy} → {clean}"


def _arrow(style: str, x: float, y: float, noisy_x: float, noisy_y: float) -> str:
    """Return the dot of the clean sentence and the arrow that leads there."""
    dot = svg.element("circle", kind=f"{style} dot", cx=x, cy=y, r=_DOT)
    length = hypot(x - noisy_x, y - noisy_y)
    if length < _LONG:
        return dot
    dx, dy = (x - noisy_x) / length, (y - noisy_y) / length
    tip_x, tip_y = x - dx * _DOT, y - dy * _DOT
    back_x, back_y = tip_x - dx * _HEAD, tip_y - dy * _HEAD
    corners = [
        (tip_x, tip_y),
        (back_x - dy * _HEAD / 2, back_y + dx * _HEAD / 2),
        (back_x + dy * _HEAD / 2, back_y - dx * _HEAD / 2),
    ]
    head = svg.element("path", kind=f"{style} head", d=svg.path(corners) + "Z")
    return svg.line(f"{style} arrow", (noisy_x, noisy_y), (back_x, back_y)) + head + dot
