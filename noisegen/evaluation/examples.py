"""The pairs worth showing: those that a model repaired, those still broken, and a map of some."""

from collections.abc import Mapping, Sequence

import numpy as np

from noisegen.evaluation.measure import Measured
from noisegen.evaluation.results import Projection, ShownPair
from noisegen.evaluation.sets import MIXES, EvaluationSet, PairSet
from noisegen.evaluation.similarity import F64, I64, Vectors, check_pairs, spearman, unit

EXAMPLES = 20  # of each kind
PAIRS_MAX = 200  # on a map
_FITTED_MAX = 5_000  # vectors that components are fitted on
_POINTS_MAX = 500  # whose distances are compared, each with each

Found = Mapping[str, Mapping[str, Measured]]  # by model and set


def example_sets(sets: Sequence[EvaluationSet]) -> list[PairSet]:
    """Return the sets that examples come from: natural pairs, else a mix, else what there is.

    Of noise only one set: with several generation seeds, distances are means over texts.
    """
    pairs = [dataset for dataset in sets if isinstance(dataset, PairSet)]
    natural = [dataset for dataset in pairs if dataset.kind == "pairs"]
    mixes = [dataset for dataset in pairs if dataset.name.rpartition(" ")[2] in MIXES]
    return natural or mixes[-1:] or pairs[:1]


def examples(sets: Sequence[PairSet], found: Found, baseline: str) -> list[ShownPair]:
    """Return the pairs whose distance fell most from the baseline to the other models' mean.

    It must have halved. Then come others, whose distance is the largest still; with the baseline
    alone, only these.
    """
    rows = [
        (dataset, row) for dataset in sets for row in np.flatnonzero(dataset.changed[0]).tolist()
    ]
    if not rows:
        return []
    others = [name for name in found if name != baseline] or [baseline]
    distances = {
        name: np.array([by_set[dataset.name].rows["distance"][row] for dataset, row in rows])
        for name, by_set in found.items()
    }
    now, before = np.mean([distances[name] for name in others], axis=0), distances[baseline]
    gains = np.argsort(now - before, kind="stable")
    repaired = gains[now[gains] <= before[gains] / 2][:EXAMPLES].tolist()
    broken = [index for index in np.argsort(-now, kind="stable") if index not in repaired]
    chosen = [("repaired", index) for index in repaired]
    chosen += [("broken", index) for index in broken[:EXAMPLES]]
    shown = []
    for kind, index in chosen:
        dataset, row = rows[index]
        by_model = {name: float(values[index]) for name, values in distances.items()}
        shown.append(
            ShownPair(kind, dataset.name, dataset.clean[row], dataset.noisy[0][row], by_model)
        )
    return shown


def mapped_rows(pairs: PairSet) -> list[int]:
    """Return rows of changed pairs for the map, spread evenly; any rows if none changed."""
    rows = np.flatnonzero(pairs.changed[0]).tolist() or list(range(len(pairs)))
    return [rows[index] for index in _evenly(len(rows), PAIRS_MAX)]


def project(
    dataset: str, texts: Sequence[tuple[str, str]], baseline: Vectors,
    models: Mapping[str, tuple[Vectors, Vectors]], *, pairs_max: int = PAIRS_MAX,
) -> Projection:  # fmt: skip
    """Fit principal components on the baseline's clean vectors and project all models into them.

    `texts` are (clean, noisy), `models` gives the clean and noisy vectors of each model, the
    baseline among them; those of another width than the baseline's are left out. Vectors are
    normalised first, as in RoLASER. `spearman` compares the distances of points before and after
    (RoLASER's figure 4 has 0.69); pairs and points are taken at even steps if there are too many.
    """
    shown = _evenly(len(texts), pairs_max)
    centre, axes, explained = principal_axes(unit(baseline[_evenly(len(baseline), _FITTED_MAX)]))
    points, before, after = {}, [], []
    for name, (clean, noisy) in models.items():
        if clean.shape[1] != len(centre):
            continue
        check_pairs(clean, noisy)
        units = [unit(side[shown]).astype(np.float64) for side in (clean, noisy)]
        flat = [(side - centre) @ axes.T for side in units]
        points[name] = tuple((a, b, c, d) for a, b, c, d in np.concatenate(flat, axis=1).tolist())
        before += units
        after += flat
    rows = _evenly(sum(map(len, before)), _POINTS_MAX)
    distances = [_squared_distances(np.concatenate(side)[rows]) for side in (before, after)]
    correlation = spearman(*distances)  # NaN where all points are equal
    return Projection(
        dataset,
        tuple(texts[row] for row in shown),
        points,
        explained,
        0.0 if np.isnan(correlation) else correlation,
    )


def _evenly(count: int, most: int) -> I64:
    """Return all indices, or so many at even steps."""
    return np.arange(count) if count <= most else np.arange(most) * count // most


def principal_axes(units: Vectors) -> tuple[F64, F64, tuple[float, float]]:
    """Return centre, two axes and their shares of the variance; an axis that lacks is zero.

    An axis points where its largest entry is positive, so that equal data give equal maps.
    """
    centre = units.mean(axis=0, dtype=np.float64)
    _, spread, axes = np.linalg.svd(units - centre, full_matrices=False)
    axes, variances = axes[:2], spread**2
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    shares, filled = np.zeros(2), np.zeros((2, len(centre)))
    if (total := variances.sum()) > 0:
        shares[: len(axes)] = variances[:2] / total
    filled[: len(axes)] = axes
    return centre, filled, (float(shares[0]), float(shares[1]))


def _squared_distances(points: F64) -> F64:
    """Return the squared distance of each two points, which ranks as the distance does."""
    squares = np.einsum("ij,ij->i", points, points)
    distances: F64 = squares[:, None] + squares - 2 * points @ points.T
    return distances[np.triu_indices(len(points), 1)]
