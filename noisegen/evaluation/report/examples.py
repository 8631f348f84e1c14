"""Sentences repaired and sentences lost, with their edits marked."""

from collections.abc import Iterator, Sequence

from noisegen.evaluation.report import svg
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import bdi, text
from noisegen.evaluation.report.scales import fitting
from noisegen.evaluation.results import Example
from noisegen.realism.alignment import edits

_ALIGNED_MAX = 2_000  # characters of a side that are compared
_SHOWN_MAX = 280  # characters of a side that are shown
_BEFORE = 60  # characters before the first edit, where it stands far from the beginning
_WIDTH, _ROW = 240, 18
_OPEN = 6  # examples of a kind that are shown at once
_KINDS = {
    "repaired": ("Most repaired", "Where a model brought the two sides closest to each other."),
    "broken": ("Still broken", "Where the two sides are still far apart."),
}
Part = tuple[int, int]


def content(found: Findings) -> str:
    """Return the examples of both kinds."""
    return "".join(_group(found, kind) for kind in _KINDS)


def _group(found: Findings, kind: str) -> str:
    chosen = [one for one in found.results.examples if one.kind == kind]
    if not chosen:
        return ""
    title, about = _KINDS[kind]
    most = max(
        (value for one in found.results.examples for value in one.distances.values()), default=1
    )
    items = [_item(found, one, most) for one in chosen]
    more = len(items) - _OPEN
    rest = f"<details><summary>{more} more</summary>{_list(items[_OPEN:])}</details>"
    return (
        f'<div class="examples-group"><h3>{title}</h3><p class="quiet">{about}</p>'
        f"{_list(items[:_OPEN])}{rest if more > 0 else ''}</div>"
    )


def _list(items: Sequence[str]) -> str:
    return f'<ol class="examples">{"".join(items)}</ol>'


def _item(found: Findings, one: Example, most: float) -> str:
    clean, noisy = one.clean[:_ALIGNED_MAX], one.noisy[:_ALIGNED_MAX]
    changed = edits(clean, noisy)
    sides = (
        _side(noisy, [(edit.noisy_start, edit.noisy_stop) for edit in changed], "noisy"),
        _side(clean, [(edit.clean_start, edit.clean_stop) for edit in changed], "clean"),
    )
    return (
        f'<li class="card" data-set="{text(one.dataset)}"><dl class="sides">{"".join(sides)}</dl>'
        f'<div class="measured">{_distances(found, one, most)}'
        f'<span class="quiet">{bdi(one.dataset)}</span></div></li>'
    )


def _side(whole: str, parts: Sequence[Part], kind: str) -> str:
    return f"<dt>{kind}</dt><dd><bdi>{''.join(_marked(whole, parts, kind))}</bdi></dd>"


def _marked(whole: str, parts: Sequence[Part], kind: str) -> Iterator[str]:
    """Yield a window of a text as HTML, what differs inside <mark>; an empty place is a caret."""
    first = parts[0][0] if parts else 0
    at = max(0, first - _BEFORE) if first > _SHOWN_MAX - _BEFORE else 0
    stop = at + _SHOWN_MAX
    yield "…" if at else ""
    for start, end in dict.fromkeys(parts):  # several insertions at one place are one caret
        if start >= stop:
            break
        yield text(whole[at:start], _SHOWN_MAX)
        inside = whole[start : min(end, stop)]
        yield f'<mark class="{kind}">{text(inside, _SHOWN_MAX) or "‸"}</mark>'
        at = min(end, stop)
    yield text(whole[at:stop], _SHOWN_MAX)
    yield "…" if len(whole) > stop else ""


def _distances(found: Findings, one: Example, most: float) -> str:
    """Return the distance of every model as a mark on a line, with its figure."""
    models = [model.name for model in found.models if model.name in one.distances]
    scale = fitting([0.0, most], 8, _WIDTH - 130, linear=True)
    rows = []
    for number, model in enumerate(models):
        y, x = _ROW * (number + 0.5), scale.at(one.distances[model])
        rows.append(svg.line("grid", (8, y), (_WIDTH - 130, y)))
        rows.append(svg.line(f"{found.style(model)} curve", (8, y), (x, y)))
        rows.append(svg.mark(found.place(model), x, y, 4))
        words = f"{one.distances[model]:.3f} {model}"
        rows.append(svg.label(words, _WIDTH - 118, y, f"{found.style(model)} named small"))
    said = ", ".join(f"{model} {one.distances[model]:.3f}" for model in models)
    return svg.chart(_WIDTH, _ROW * max(1, len(models)), "Cosine distance", said, *rows)
