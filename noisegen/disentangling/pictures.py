"""Meaning and language vectors in two dimensions, coloured by label: one HTML file of SVG."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.atomic import write_text
from noisegen.disentangling.heads import SIDES, Heads
from noisegen.disentangling.measures import applied
from noisegen.encoders.encoder import Vectors
from noisegen.errors import MissingExtra, UsageError
from noisegen.evaluation.report import svg
from noisegen.evaluation.report.markup import bdi, figure, tag, text
from noisegen.evaluation.unit_vectors import unit

POINTS_MAX = 1_200  # of a panel
TEXTS_MIN = 3
PERPLEXITY, ITERATIONS = 10, 300  # of t-SNE, as in the ORACLE paper; metric cosine
_WIDTH, _HEIGHT, _TOP, _EDGE = 420, 400, 28, 12
_MARK = 3.0  # pixels
_COLOURS = (
    "#4269d0", "#e07b00", "#d6403f", "#189c8c", "#3c8f3c", "#c64f9b", "#8256c9", "#8a6242",
    "#6f7a86", "#a39200", "#00789f", "#7d1f3f",
)  # fmt: skip
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--edge:#c8cdd3}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--paper:#15181c;--edge:#454c54}}
body{margin:2rem auto;max-width:60rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;
color:var(--ink);background:var(--paper)}
.panels{display:flex;flex-wrap:wrap;gap:1rem}.chart{flex:1 1 20rem;max-width:28rem}
.chart text{font:13px system-ui,sans-serif;fill:var(--ink)}figure{margin:1rem 0}
.field{fill:none;stroke:var(--edge)}.mark{stroke:none;fill-opacity:.75}
.legend svg{vertical-align:middle;width:16px;height:16px;margin-inline:.9rem .3rem}
@media print{body{margin:0}}
"""
Points = npt.NDArray[np.float64]


def write(groups: Mapping[str, Vectors], heads: Heads, path: Path) -> None:
    """Draw texts, given as frozen vectors by their language or other label, by PCA and by t-SNE.

    Raises MissingExtra without scikit-learn, UsageError for fewer than `TEXTS_MIN` texts.
    """
    vectors, names = _sample(groups)
    panels = {name: _panels(heads, vectors, names, flatten) for name, flatten in _WAYS.items()}
    figures = "".join(figure("".join(two), _CAPTIONS[name]) for name, two in panels.items())
    title = f"Meaning and language vectors of {len(names):,} texts"
    head = f'<meta charset="utf-8"><title>{text(title)}</title><style>{_STYLE}{_colours()}</style>'
    body = f"<h1>{text(title)}</h1>{_legend(names)}{figures}"
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    write_text(path, page)


def _sample(groups: Mapping[str, Vectors]) -> tuple[Vectors, list[str]]:
    """Return at most POINTS_MAX vectors, of each group the same share, with their names."""
    total = sum(map(len, groups.values()))
    if total < TEXTS_MIN:
        raise UsageError(f"a picture of {total} texts shows nothing: give more pairs")
    share = min(1.0, POINTS_MAX / total)
    kept = {name: some[: max(1, int(share * len(some)))] for name, some in groups.items()}
    names = [name for name, some in kept.items() for _ in some]
    return np.concatenate(list(kept.values())), names


Flatten = Callable[[Vectors], Points]


def _panels(heads: Heads, vectors: Vectors, names: list[str], flatten: Flatten) -> Iterator[str]:
    for side in SIDES:
        points = flatten(applied(heads, side)(vectors))
        yield _panel(side, points, names)


def principal_components(vectors: Vectors) -> Points:
    """Return the first two principal components of the normalised vectors, shape (rows, 2)."""
    units = unit(vectors).astype(np.float64)
    made = units - units.mean(0)
    _, _, axes = np.linalg.svd(made, full_matrices=False)
    points: Points = made @ axes[:2].T
    return points


def neighbour_map(vectors: Vectors) -> Points:
    """Return t-SNE's map by cosine distances, shape (rows, 2), the same for the same vectors."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingExtra("scikit-learn", "train") from error
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 2)
    made = TSNE(metric="cosine", perplexity=perplexity, max_iter=ITERATIONS, init="random",
                random_state=0)  # fmt: skip
    points: Points = made.fit_transform(vectors).astype(np.float64)
    return points


_WAYS: dict[str, Flatten] = {"PCA": principal_components, "t-SNE": neighbour_map}
_CAPTIONS = {
    "PCA": "First two principal components of the vectors, each of length one.",
    "t-SNE": f"t-SNE by cosine distance, perplexity {PERPLEXITY}, {ITERATIONS} iterations.",
}


def _panel(side: str, points: Points, names: Sequence[str]) -> str:
    """Return one chart: every text a mark, its language in colour and shape."""
    low, high = points.min(0), points.max(0)
    scale = np.array([_WIDTH - 2 * _EDGE, _HEIGHT - _TOP - 2 * _EDGE]) / np.maximum(
        high - low, 1e-12
    )
    placed = (points - low) * scale + [_EDGE, _TOP + _EDGE]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    marks = [
        svg.mark(places[name], x, y, _MARK, f"c{places[name] % len(_COLOURS)}")
        for name, (x, y) in zip(names, placed.tolist(), strict=True)
    ]
    ground = svg.element(
        "rect", kind="field", x=0.5, y=_TOP, width=_WIDTH - 1, height=_HEIGHT - _TOP - 1, rx=6
    )
    head = svg.label(f"{side} vectors", 0, 12)
    said = f"{len(names)} texts in {len(places)} languages"
    return svg.chart(_WIDTH, _HEIGHT, f"{side} vectors", said, ground, head, *marks)


def _legend(names: Sequence[str]) -> str:
    keys = (
        f'<svg viewBox="0 0 16 16" aria-hidden="true">'
        f"{svg.mark(place, 8, 8, 5, f'c{place % len(_COLOURS)}')}</svg>{bdi(name)}"
        for place, name in enumerate(dict.fromkeys(names))
    )
    return tag("p", "".join(keys), "legend")


def _colours() -> str:
    return "".join(f".c{place}{{fill:{colour}}}" for place, colour in enumerate(_COLOURS))
