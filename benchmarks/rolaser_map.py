"""RoLASER's Figure 2: sentences, their noisy forms and translations in one plane.

`python -m benchmarks.rolaser_map NOISY CLEAN TRANSLATION... --teacher laser2:FOLDER --student
RoLASER=run/student -o FILE.html`: the files have a sentence per line. The teacher encodes clean
text, noisy text and translations, each student clean and noisy text. Two principal components are
fitted to all vectors together, each of length one. Around the teacher's vector of a clean sentence,
a circle goes through each other vector of the sentence. Prints Spearman's correlation of squared
distances before and after projection, 0.69 in the paper.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from math import dist
from pathlib import Path

import numpy as np
from markupsafe import Markup
from scipy.spatial.distance import pdist

from noisegen.data.columns import evenly
from noisegen.encoders.encoder import open_encoder
from noisegen.evaluation.similarity import F64, principal_axes, spearman, unit
from noisegen.report import charts, pages
from noisegen.report.blocks import Figure, Section

CLEAN = "clean"
COMPARED = 2_000  # most vectors whose distances are compared
_SIZE, _EDGE = 340, 40  # pixels of a panel and its margin


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file."""
    return path.read_text("utf-8").splitlines()


def stacked(given: argparse.Namespace) -> dict[str, F64]:
    """Return {name of a group: unit vectors}, the teacher's vectors of clean text first."""
    sides = {CLEAN: lines_of(given.clean), "noisy": lines_of(given.noisy)}
    texts = {"teacher": sides | {path.name: lines_of(path) for path in given.translations}}
    specs = {"teacher": given.teacher}
    for student in given.student:
        name, _, spec = student.rpartition("=")
        texts[name or spec], specs[name or spec] = sides, spec
    groups = {}
    for model, by_name in texts.items():
        encoder = open_encoder(specs[model])
        for name, rows in by_name.items():
            groups[f"{model} {name}"] = unit(encoder.encode(rows)).astype(np.float64)
    if len({len(rows) for rows in groups.values()}) > 1:
        raise SystemExit("the files have different numbers of lines")
    return groups


def projected(groups: Mapping[str, F64]) -> tuple[dict[str, F64], float]:
    """Return the points of all groups in the plane of their components, and the correlation."""
    every = np.concatenate(list(groups.values()))
    axes = principal_axes(every)
    rows = evenly(range(len(every)), COMPARED)
    distances = [pdist(side[rows], "sqeuclidean") for side in (every, axes.project(every))]
    return {name: axes.project(rows) for name, rows in groups.items()}, spearman(*distances)


def panel(points: Mapping[str, Sequence[float]], title: str) -> Markup:
    """Return a chart of one sentence's points, with circles around the first of them."""
    centre = next(iter(points.values()))
    radius = max(dist(centre, point) for point in points.values()) or 1.0
    scale, middle = (_SIZE / 2 - _EDGE) / radius, _SIZE / 2
    drawn = []
    for style, (name, (x, y)) in enumerate(points.items()):
        place = middle + (x - centre[0]) * scale, middle - (y - centre[1]) * scale
        ring = {"cx": middle, "cy": middle, "r": dist(centre, (x, y)) * scale}
        drawn.append(charts.element("circle", fill="none", stroke="#8888", **ring))
        drawn.append(charts.tip(name, charts.mark(style, *place, 4)))
        drawn.append(charts.label(name, place[0] + 6, place[1], "tiny"))
    return charts.chart(_SIZE, _SIZE, title, "", *drawn)


def main() -> None:
    """Read the arguments; encode, project, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("noisy", type=Path)
    parser.add_argument("clean", type=Path)
    parser.add_argument("translations", type=Path, nargs="*")
    parser.add_argument("--teacher", required=True, help="SPEC")
    parser.add_argument("--student", action="append", default=[], metavar="NAME=SPEC")
    parser.add_argument("--rows", type=int, nargs="+", default=[0], help="sentences to draw")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    points, correlation = projected(stacked(given))
    clean = lines_of(given.clean)
    drawn = [
        panel({name: rows[row].tolist() for name, rows in points.items()}, clean[row])
        for row in given.rows
    ]
    caption = f"Spearman's correlation of squared distances: {correlation:.2f} (paper: 0.69)."
    section = Section("map", "Sentences and translations", [Figure(drawn, caption)])
    given.out.write_text(pages.page("RoLASER's Figure 2", [section], kicker="noisegen: papers"))
    print(json.dumps({"spearman": correlation, "groups": list(points)}))


if __name__ == "__main__":
    main()
