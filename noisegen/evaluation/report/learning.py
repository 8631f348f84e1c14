"""The learning curve of a student, from the rows of its log."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from noisegen.evaluation.report import curves
from noisegen.evaluation.report.findings import STYLES, Findings
from noisegen.evaluation.report.markup import figure

_POINTS_MAX = 160  # of a curve; of more, neighbours are averaged
_CURVES_MAX = STYLES
_CAPTION = (
    "The loss and its parts, in training and on pairs kept out of it; missed: share of noisy "
    "sentences nearer to the baseline’s vector of another sentence. Of long runs, a point is the "
    "mean of neighbouring rows of the log."
)
Point = tuple[float, float]


def content(found: Findings) -> str:
    """Return the panels that the log has rows for."""
    log = (found.results.training or {}).get("log") or []
    names = list(dict.fromkeys(key for row in log for key in row))
    validation = [name for name in names if name.startswith("validation")]
    losses = [name for name in validation if "loss" in name]
    groups = (
        ("training loss", [n for n in names if n == "loss" or n.startswith("loss_")], False),
        ("validation loss", losses, False),
        ("validation distances", [name for name in validation if name not in losses], True),
        ("learning rate", [name for name in names if name == "lr"], True),
    )
    panels = "".join(_panel(log, title, keys, linear) for title, keys, linear in groups)
    return figure(panels, _CAPTION) if panels else ""


def _panel(log: Sequence[Mapping[str, Any]], title: str, keys: Sequence[str], linear: bool) -> str:
    drawn = [
        curves.Curve(_named(key, title), (place + 1) % STYLES, _thinned(_points(log, key)))
        for place, key in enumerate(keys[:_CURVES_MAX])
    ]
    return curves.panel(drawn, title=title, x_title="step", linear=linear)


def _named(key: str, title: str) -> str:
    """Return what a curve is called beside its panel's title."""
    short = key.removeprefix("validation").strip("_").removeprefix("loss_")
    return {"loss": "loss", "lr": "rate", "": title}.get(short, short)


def _points(log: Sequence[Mapping[str, Any]], key: str) -> list[Point]:
    pairs = ((row.get("step"), row.get(key)) for row in log)
    return [(float(x), float(y)) for x, y in pairs if _is_number(x) and _is_number(y)]  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Return means over neighbours, so that few points are left."""
    size = -(-len(points) // _POINTS_MAX)
    parts = [points[start : start + size] for start in range(0, len(points), size or 1)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts]
