"""SVG by hand: elements, labels, the marks of the models, a chart with its title."""

from collections.abc import Sequence
from math import cos, pi, sin

from noisegen.evaluation.report.markup import text

LABEL_MAX = 14  # characters of a name inside a chart; all of it is in the tooltip
DESCRIPTION_MAX = 4_000  # characters of what a chart shows in words


def element(name: str, *content: str, **attributes: str | float) -> str:
    """Return an element; `kind` is its class, and `_` in a name stands for a hyphen.

    >>> element("circle", kind="dot", cx=3.14159, r=2)
    '<circle class="dot" cx="3.1" r="2"/>'
    """
    written = "".join(f' {_attribute(key)}="{_value(one)}"' for key, one in attributes.items())
    inside = "".join(content)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def _attribute(key: str) -> str:
    return "class" if key == "kind" else key.replace("_", "-")


def _value(one: str | float) -> str:
    return text(one, len(one)) if isinstance(one, str) else f"{round(one, 1):g}"


def label(words: str, x: float, y: float, kind: str = "", anchor: str = "start") -> str:
    """Return a short text, cut; `y` is the middle of the line."""
    return element("text", text(words, 2 * LABEL_MAX), kind=kind, x=x, y=y + 4, text_anchor=anchor)


def line(kind: str, *points: tuple[float, float]) -> str:
    """Return a line through points."""
    return element("path", kind=kind, d=path(points))


def path(points: Sequence[tuple[float, float]]) -> str:
    """Return the `d` of a line through points."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def tip(words: str, *content: str) -> str:
    """Return a group that shows a text where the pointer rests."""
    return element("g", element("title", text(words)), *content, kind="tip")


def chart(width: float, height: float, title: str, description: str, *content: str) -> str:
    """Return an <svg> of this size at most, with its name and description for readers."""
    named = element("title", text(title)) + element("desc", text(description, DESCRIPTION_MAX))
    return (
        f'<svg role="img" viewBox="0 0 {width:g} {height:g}" class="chart w{width:g}">'
        f"{named}{''.join(content)}</svg>"
    )


# Marks: told apart by shape where colour cannot tell.

_CORNERS: tuple[tuple[int, float, float], ...] = (
    (0, 0, 1.0), (4, pi / 4, 1.2), (3, -pi / 2, 1.3), (4, 0, 1.3),
    (3, pi / 2, 1.3), (5, -pi / 2, 1.2), (6, 0, 1.15), (8, pi / 8, 1.1),
)  # fmt: skip


def mark(place: int, x: float, y: float, size: float, kind: str = "") -> str:
    """Return the mark of the model at a place: a circle, a square, a triangle, ..."""
    corners, turn, factor = _CORNERS[place % len(_CORNERS)]
    styled = f"m{place} mark {kind}".strip()
    if not corners:
        return element("circle", kind=styled, cx=x, cy=y, r=size)
    angles = [turn + 2 * pi * number / corners for number in range(corners)]
    around = [(x + factor * size * cos(one), y + factor * size * sin(one)) for one in angles]
    return element("path", kind=styled, d=path(around) + "Z")
