"""A panel of curves, each named at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from noisegen.evaluation.report import svg
from noisegen.evaluation.report.scales import Scale, between, fitting, spread
from noisegen.evaluation.report.wording import cut, title_case

WIDTH, HEIGHT = 380, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 272, 34, 208  # the field of the curves
_LINE, _NAME_MAX = 14, 15


@dataclass(frozen=True)
class Curve:
    """One line: `place` is its colour and mark; `dots` draws a mark at every point."""

    name: str
    place: int
    points: Sequence[tuple[float, float]]
    dots: bool = False

    @property
    def known(self) -> list[tuple[float, float]]:
        """The points that are numbers."""
        return [(x, y) for x, y in self.points if isfinite(x) and isfinite(y)]


def panel(
    curves: Sequence[Curve],
    *,
    title: str,
    x_title: str,
    x_ticks: Sequence[float] | None = None,
    linear: bool = False,
) -> str:
    """Return a chart of the curves that have points, or the empty string."""
    drawn = [curve for curve in curves if curve.known]
    if not drawn:
        return ""
    points = [point for curve in drawn for point in curve.known]
    across = between(min(x for x, _ in points), max(x for x, _ in points), _LEFT + 8, _RIGHT - 6)
    up = fitting((y for _, y in points), _BOTTOM, _TOP, linear=linear)
    parts = [
        svg.label(f"{title_case(title)}{', log scale' if up.is_log else ''}", 0, 12, "bold"),
        _grid(up),
        _ticks(across, across.ticks() if x_ticks is None else x_ticks),
        svg.label(x_title, (_LEFT + _RIGHT) / 2, _BOTTOM + 34, "small quiet", "middle"),
        *(_curve(curve, across, up) for curve in drawn),
        _names(drawn, across, up),
    ]
    return svg.chart(WIDTH, HEIGHT, title, _told(drawn), *parts)


def short(value: float) -> str:
    """Return a tick's figure: 20k, 0.005, 1e-4."""
    if abs(value) >= 1e4:
        return f"{value / 1e6:g}M" if abs(value) >= 1e6 else f"{value / 1e3:g}k"
    if 0 < abs(value) < 0.001:
        return f"{value:.1e}".replace("e-0", "e-").replace(".0e", "e")
    return f"{value:g}"


def _told(drawn: Sequence[Curve]) -> str:
    ends = ((curve.name, curve.known[0][1], curve.known[-1][1]) for curve in drawn)
    return "; ".join(
        f"{name}: {first:.4g} at first, {last:.4g} at last" for name, first, last in ends
    )


def _grid(up: Scale) -> str:
    lines = [
        svg.line("grid", (_LEFT, up.at(one)), (_RIGHT, up.at(one)))
        + svg.label(short(one), _LEFT - 6, up.at(one), "small quiet", "end")
        for one in up.ticks()
    ]
    return "".join(lines)


def _ticks(across: Scale, ticks: Sequence[float]) -> str:
    marks = [
        svg.line("axis", (across.at(one), _BOTTOM), (across.at(one), _BOTTOM + 4))
        + svg.label(short(one), across.at(one), _BOTTOM + 15, "small quiet", "middle")
        for one in ticks
    ]
    return svg.line("axis", (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)) + "".join(marks)


def _curve(curve: Curve, across: Scale, up: Scale) -> str:
    places = [(across.at(x), up.at(y)) for x, y in curve.known]
    drawn = svg.line(f"m{curve.place} curve", *places) if len(places) > 1 else ""
    if not curve.dots and len(places) > 1:
        return drawn
    return drawn + "".join(
        svg.tip(f"{curve.name}, {x:g}: {y:.4g}", svg.mark(curve.place, *place, 3.5))
        for (x, y), place in zip(curve.known, places, strict=True)
    )


def _names(drawn: Sequence[Curve], across: Scale, up: Scale) -> str:
    ends = [(across.at(curve.known[-1][0]), up.at(curve.known[-1][1])) for curve in drawn]
    places = spread([y for _, y in ends], _LINE, _TOP, _BOTTOM)
    return "".join(
        svg.line("leader", (x + 5, y), (_RIGHT + 4, place))
        + svg.label(cut(curve.name, _NAME_MAX), _RIGHT + 8, place, f"m{curve.place} named small")
        for curve, (x, y), place in zip(drawn, ends, places, strict=True)
    )
