"""Dose and response: distance and errors over the strength of the noise."""

from collections.abc import Callable

from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.report import curves
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import bdi, figure
from noisegen.evaluation.report.wording import heading
from noisegen.evaluation.results import Dose

_CAPTION = (
    "Strength is a factor on the rates of the recipe: 1 is the recipe as it stands, 0 clean text."
)
_SIDES: tuple[tuple[str, Callable[[Dose], tuple[float, ...]]], ...] = (
    ("distance", lambda dose: dose.distance),
    ("xsim_error", lambda dose: dose.xsim_error),
)


def content(found: Findings) -> str:
    """Return two panels a set."""
    names = dict.fromkeys(dose.dataset for dose in found.results.doses)
    return "".join(_figure(found, name) for name in names)


def _figure(found: Findings, dataset: str) -> str:
    doses = {dose.model: dose for dose in found.results.doses if dose.dataset == dataset}
    ordered = [doses[model.name] for model in found.models if model.name in doses]
    panels = "".join(_panel(found, ordered, *side) for side in _SIDES)
    return figure(panels, f"{bdi(dataset)}. {_CAPTION}") if panels else ""


def _panel(
    found: Findings, doses: list[Dose], metric: str, side: Callable[[Dose], tuple[float, ...]]
) -> str:
    drawn = [
        curves.Curve(
            dose.model,
            found.place(dose.model),
            list(zip(dose.strengths, side(dose), strict=False)),  # a side may be left out
            dots=True,
        )
        for dose in doses
    ]
    strengths = sorted({one for dose in doses for one in dose.strengths})
    ticks = strengths if len(strengths) <= 7 else None
    title = heading(METRICS[metric])
    return curves.panel(
        drawn, title=title, x_title="strength of the noise", x_ticks=ticks, linear=True
    )
