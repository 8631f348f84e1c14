"""The pairs worth showing: those that a model repaired, those still broken, and a map of some."""

from collections.abc import Mapping, Sequence

import numpy as np

from noisegen.data.columns import evenly
from noisegen.evaluation.measure import BySet
from noisegen.evaluation.results import Projection, ShownPair
from noisegen.evaluation.sets import MIXES, EvaluationSet, PairSet
from noisegen.evaluation.similarity import F64, Vectors, check_pairs, spearman, unit

EXAMPLES = 20  # of each kind
PAIRS_MAX = 200  # on a map
_FITTED_MAX = 5_000  # vectors that components are fitted on
_POINTS_MAX = 500  # whose distances are compared, each with each


def example_sets(sets: Sequence[EvaluationSet]) -> list[PairSet]:
    """Return the sets that examples come from: natural pairs, else a mix, else what there is.

    Of noise only one set: with several generation seeds, distances are means over texts.
    """
    pairs = [dataset for dataset in sets if isinstance(dataset, PairSet)]
    natural = [dataset for dataset in pairs if dataset.kind == "pairs"]
    mixes = [dataset for dataset in pairs if dataset.name.rpartition(" ")[2] in MIXES]
    return natural or mixes[-1:] or pairs[:1]


def examples(
    sets: Sequence[PairSet], measured: Mapping[str, BySet], baseline: str
) -> list[ShownPair]:
    """Return the pairs whose distance fell most from the baseline to the other models' mean.

    It must have halved. Then come others, whose distance is the largest still; with the baseline
    alone, only these. `measured` is by model and set.
    """
    rows = [
        (dataset, row) for dataset in sets for row in np.flatnonzero(dataset.changed[0]).tolist()
    ]
    if not rows:
        return []
    distances = {
        model: np.array([by_set[dataset.name].rows["distance"][row] for dataset, row in rows])
        for model, by_set in measured.items()
    }
    others = [model for model in measured if model != baseline] or [baseline]
    now, before = np.mean([distances[model] for model in others], axis=0), distances[baseline]
    gains = np.argsort(now - before, kind="stable")
    repaired = gains[now[gains] <= before[gains] / 2][:EXAMPLES].tolist()
    broken = [index for index in np.argsort(-now, kind="stable").tolist() if index not in repaired]
    shown = []
    for kind, chosen in (("repaired", repaired), ("broken", broken[:EXAMPLES])):
        for index in chosen:
            dataset, row = rows[index]
            by_model = {model: float(values[index]) for model, values in distances.items()}
            sides = dataset.clean[row], dataset.noisy[0][row]
            shown.append(ShownPair(kind, dataset.name, *sides, by_model))
    return shown


def mapped_texts(pairs: PairSet) -> list[tuple[str, str]]:
    """Return changed pairs for the map, clean and noisy, spread evenly; any if none changed."""
    rows = np.flatnonzero(pairs.changed[0]).tolist() or range(len(pairs))
    return [(pairs.clean[row], pairs.noisy[0][row]) for row in evenly(rows, PAIRS_MAX)]


def project(
    dataset: str, texts: Sequence[tuple[str, str]], baseline: Vectors,
    models: Mapping[str, tuple[Vectors, Vectors]],
) -> Projection:  # fmt: skip
    """Fit principal components on the baseline's clean vectors and project all models into them.

    `texts` are (clean, noisy), `models` gives the clean and noisy vectors of each model, the
    baseline among them; those of another width than the baseline's are left out. Vectors are
    normalised first, as in RoLASER. `spearman` compares the distances of points before and after
    (RoLASER's figure 4 has 0.69); pairs and points are taken at even steps if there are too many.
    """
    from scipy.spatial.distance import pdist

    shown = evenly(range(len(texts)), PAIRS_MAX)
    fitted = baseline[evenly(range(len(baseline)), _FITTED_MAX)]
    centre, axes, explained = _principal_axes(unit(fitted))
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
    rows = evenly(range(sum(map(len, before))), _POINTS_MAX)
    distances = [pdist(np.concatenate(side)[rows], "sqeuclidean") for side in (before, after)]
    correlation = spearman(*distances)  # NaN where all points are equal
    correlation = 0.0 if np.isnan(correlation) else correlation
    return Projection(dataset, tuple(texts[row] for row in shown), points, explained, correlation)


def _principal_axes(units: Vectors) -> tuple[F64, F64, tuple[float, float]]:
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
