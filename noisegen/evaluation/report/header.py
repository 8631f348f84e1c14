"""The head of the report: which models, on what, with which noise, how long."""

from collections.abc import Iterator, Mapping
from typing import Any

from noisegen.evaluation.report import svg
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import TEXT_MAX, bdi, text
from noisegen.evaluation.report.wording import KINDS, listed, several
from noisegen.evaluation.results import Model

_TRAINED_BY = (
    "preset",
    "teacher",
    "student",
    "objective",
    "noise",
    "seed",
)  # keys of a run's configuration


def title(found: Findings) -> str:
    """Return the title of the page, as text."""
    if not found.students:
        return f"{found.baseline.name} under noise"
    names = listed([model.name for model in found.students])
    return f"{names} against {found.baseline.name} under noise"


def content(found: Findings) -> str:
    """Return the cards of the models and the facts of the evaluation."""
    cards = "".join(_card(found, model) for model in found.models)
    facts = "".join(f"<dt>{text(name)}</dt><dd>{said}</dd>" for name, said in _facts(found))
    return f'<ul class="models">{cards}</ul><dl class="facts">{facts}</dl>'


def _card(found: Findings, model: Model) -> str:
    place = found.place(model.name)
    sign = svg.chart(20, 20, f"mark of {model.name}", "", svg.mark(place, 10, 10, 6))
    role = "baseline" if model is found.baseline else "model"
    size = "" if model.parameters is None else f", {_millions(model.parameters)} parameters"
    return (
        f'<li class="m{place}"><div>{sign} <strong>{bdi(model.name)}</strong> '
        f'<span class="quiet">{role}</span></div>'
        f'<div class="quiet">{bdi(model.spec)}: {model.width:,} wide{size}</div></li>'
    )


def _millions(count: int) -> str:
    return f"{count / 1e6:.1f} M" if count >= 100_000 else f"{count:,}"


def _facts(found: Findings) -> Iterator[tuple[str, str]]:
    """Yield what is known, by name; values are HTML."""
    settings, training = found.results.settings, found.results.training or {}
    rows = sum(one.rows for one in found.results.datasets)
    counted = several(rows, "sentence or pair", "sentences or pairs")
    yield "evaluated on", f"{text(sets(found))}; {counted}"
    seeds = sorted({seed for one in found.results.datasets for seed in one.seeds})
    if seeds:
        yield "seeds of the noise", text(_ranges(seeds))
    if recipe := settings.get("recipe"):
        yield "noise recipe", bdi(recipe)
    if trained := _trained(training):
        yield "trained", trained
    if minutes := _minutes(settings):
        yield "evaluated in", minutes
    for name in ("notes", "damaged"):
        if noted := settings.get(name):
            yield name, "<br>".join(bdi(line, TEXT_MAX) for line in noted)
    versions = settings.get("versions")
    if isinstance(versions, Mapping) and versions:
        yield "with", ", ".join(f"{text(name)} {text(one)}" for name, one in versions.items())


def sets(found: Findings) -> str:
    """Return how many sets of every kind there are."""
    counts = [
        several(len(found.datasets(kind)), *KINDS.get(kind, (kind, kind)))
        for kind in dict.fromkeys(one.kind for one in found.results.datasets)
    ]
    return ", ".join(counts)


def _ranges(seeds: list[int]) -> str:
    """Return '0 to 9' where seeds follow one another, else a list."""
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return listed([str(seed) for seed in seeds], most=12)


def _trained(training: Mapping[str, Any]) -> str:
    """Return how the student was made, as HTML."""
    config = training.get("config") or {}
    last = {key: one for row in training.get("log") or [] for key, one in row.items()}
    said = [f"{key} {bdi(config[key])}" for key in _TRAINED_BY if config.get(key) not in (None, "")]
    counted = (("step", "steps"), ("sentences", "sentences"), ("tokens", "tokens"))
    said += [f"{last[key]:,} {name}" for key, name in counted if isinstance(last.get(key), int)]
    minutes = _minutes(training) or _minutes(last)
    return ", ".join([*said, *([minutes] if minutes else [])])


def _minutes(known: Mapping[str, Any]) -> str:
    seconds = known.get("seconds")
    if not isinstance(seconds, int | float) or seconds <= 0:
        return ""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:,.1f} minutes"
