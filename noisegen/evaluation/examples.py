"""Example pairs of a report: repaired ones, those still broken, and a map of some."""

from collections.abc import Mapping, Sequence

import numpy as np

from noisegen.data.columns import evenly
from noisegen.errors import naming_extras
from noisegen.evaluation.measure import BySet
from noisegen.evaluation.results import Projection, ShownPair
from noisegen.evaluation.sets import MIXES, EvaluationSet, PairSet
from noisegen.evaluation.similarity import Vectors, check_pairs, principal_axes, spearman, unit

EXAMPLES = 20  # of each kind
PAIRS_MAX = 200  # on a map
_FITTED_MAX = 5_000  # vectors that components are fitted on
_POINTS_MAX = 500  # whose distances are compared, each with each


def example_sets(sets: Sequence[EvaluationSet]) -> list[PairSet]:
    """Return the sets that examples come from: natural pairs, else a mix, else any.

    Only one set of noise: with several seeds, distances are means over texts.
    """
    pairs = [dataset for dataset in sets if isinstance(dataset, PairSet)]
    natural = [dataset for dataset in pairs if dataset.kind == "pairs"]
    mixes = [dataset for dataset in pairs if dataset.name.rpartition(" ")[2] in MIXES]
    return natural or mixes[-1:] or pairs[:1]


def examples(
    sets: Sequence[PairSet], measured: Mapping[str, BySet], baseline: str
) -> list[ShownPair]:
    """Return the pairs whose distance fell most from the baseline to the other models' mean.

    Only those whose distance halved, followed by those with the largest distance; without other
    models only the latter. `measured` is by model and set.
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
    """Return an even sample of changed pairs for the map, clean and noisy; any if none changed."""
    rows = np.flatnonzero(pairs.changed[0]).tolist() or range(len(pairs))
    return [(pairs.clean[row], pairs.noisy[0][row]) for row in evenly(rows, PAIRS_MAX)]


def project(
    dataset: str, texts: Sequence[tuple[str, str]], baseline: Vectors,
    models: Mapping[str, tuple[Vectors, Vectors]],
) -> Projection:  # fmt: skip
    """Fit principal components on the baseline's clean vectors and project all models into them.

    `texts` are (clean, noisy); `models` has the clean and noisy vectors of each model, with those
    of the baseline; models of another width are left out. Vectors are normalised first, as in
    RoLASER. `spearman` compares distances before and after projection (RoLASER's figure 4 has
    0.69). Pairs and points are sampled evenly if there are too many.
    """
    with naming_extras():
        from scipy.spatial.distance import pdist

    shown = evenly(range(len(texts)), PAIRS_MAX)
    fitted = baseline[evenly(range(len(baseline)), _FITTED_MAX)]
    axes = principal_axes(unit(fitted))
    points, before, after = {}, [], []
    for name, (clean, noisy) in models.items():
        if clean.shape[1] != len(axes.centre):
            continue
        check_pairs(clean, noisy)
        units = [unit(side[shown]).astype(np.float64) for side in (clean, noisy)]
        flat = list(map(axes.project, units))
        points[name] = tuple((a, b, c, d) for a, b, c, d in np.concatenate(flat, axis=1).tolist())
        before += units
        after += flat
    rows = evenly(range(sum(map(len, before))), _POINTS_MAX)
    distances = [pdist(np.concatenate(side)[rows], "sqeuclidean") for side in (before, after)]
    correlation = spearman(*distances)  # NaN where all points are equal
    correlation = 0.0 if np.isnan(correlation) else correlation
    pairs = tuple(texts[row] for row in shown)
    return Projection(dataset, pairs, points, axes.explained, correlation)
