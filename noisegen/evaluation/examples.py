"""Choose the example pairs that a report shows, and draw vectors as points on a plane (a map).

A pair (clean text, noisy text) is repaired if the models bring its two vectors much closer together
than the baseline does. The report also shows pairs that are still far apart.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from noisegen.data.columns import evenly
from noisegen.errors import naming_extras
from noisegen.evaluation.measure import BySet
from noisegen.evaluation.results import Projection, ShownPair
from noisegen.evaluation.sets import MIXES, EvaluationSet, PairSet
from noisegen.evaluation.similarity import F64, Vectors, check_pairs, principal_axes, spearman, unit

EXAMPLES = 20  # maximum repaired pairs in the report, and maximum broken pairs
PAIRS_MAX = 200  # pairs that a map shows
_FITTED_MAX = 5_000  # vectors that the principal components are fitted to
_POINTS_MAX = 500  # points of a map from which `Projection.spearman` is computed


def example_sets(sets: Sequence[EvaluationSet]) -> list[PairSet]:
    """Return the sets from which the report takes its example pairs.

    These are all sets of natural pairs (noise written by people). If there are none, it is one set
    of synthetic noise: the last whose recipe is in `MIXES`, else the first.
    """
    pairs = [dataset for dataset in sets if isinstance(dataset, PairSet)]
    natural = [dataset for dataset in pairs if dataset.kind == "pairs"]
    mixes = [dataset for dataset in pairs if dataset.name.rpartition(" ")[2] in MIXES]
    return natural or mixes[-1:] or pairs[:1]


def examples(
    sets: Sequence[PairSet], measured: Mapping[str, BySet], baseline: str
) -> list[ShownPair]:
    """Return the repaired and the broken pairs of `sets` to show in the report.

    A pair is repaired if the other models, on average, at least halve the cosine distance that it
    has under the baseline; all other pairs are broken. First come the repaired pairs with the
    largest gain and the broken pairs with the largest distance. `measured` has the measurements by
    model and set. With the baseline alone all pairs are broken.
    """
    rows = _changed_rows(sets)
    if not rows:
        return []
    distances = {
        model: np.array([by_set[dataset.name].rows["distance"][row] for dataset, row in rows])
        for model, by_set in measured.items()
    }
    others = [model for model in measured if model != baseline] or [baseline]
    now = np.mean([distances[model] for model in others], axis=0)
    shown = []
    for kind, chosen in _repaired_and_broken(distances[baseline], now).items():
        for index in chosen:
            dataset, row = rows[index]
            by_model = {model: float(values[index]) for model, values in distances.items()}
            sides = dataset.clean[row], dataset.noisy[0][row]
            shown.append(ShownPair(kind, dataset.name, *sides, by_model))
    return shown


def _changed_rows(sets: Sequence[PairSet]) -> list[tuple[PairSet, int]]:
    """Return (set, row index) for each pair whose noisy text differs from the clean one.

    In sets with several noise seeds, only the noisy texts made with the first seed are compared.
    """
    rows = []
    for dataset in sets:
        rows += [(dataset, row) for row in np.flatnonzero(dataset.changed[0]).tolist()]
    return rows


def _repaired_and_broken(before: F64, now: F64) -> dict[str, list[int]]:
    """Return the indices of the repaired and of the broken pairs to show.

    `before` has the distance of each pair under the baseline, `now` its mean distance under the
    other models.
    """
    gains = np.argsort(now - before, kind="stable")
    repaired = gains[now[gains] <= before[gains] / 2][:EXAMPLES].tolist()
    broken = [index for index in np.argsort(-now, kind="stable").tolist() if index not in repaired]
    return {"repaired": repaired, "broken": broken[:EXAMPLES]}


def mapped_texts(pairs: PairSet) -> list[tuple[str, str]]:
    """Return the pairs (clean, noisy) whose vectors the map of a test set shows as arrows.

    They are an even sample of the pairs whose texts differ, or of all pairs if no texts differ.
    """
    rows = np.flatnonzero(pairs.changed[0]).tolist() or range(len(pairs))
    return [(pairs.clean[row], pairs.noisy[0][row]) for row in evenly(rows, PAIRS_MAX)]


def project(
    dataset: str,
    texts: Sequence[tuple[str, str]],
    baseline: Vectors,
    models: Mapping[str, tuple[Vectors, Vectors]],
) -> Projection:
    """Project the vectors of all models onto the plane that shows the baseline's vectors best.

    `texts` are pairs (clean, noisy). `models` maps each model, the baseline included, to its clean
    and its noisy vectors. `baseline` has the baseline's clean vectors; the axes are their first two
    principal components. Models of another width are left out. Vectors are normalised first, as in
    RoLASER. In the result, `spearman` is the rank correlation of distances before and after
    projection (0.69 in RoLASER's Figure 2). More than `PAIRS_MAX` pairs are evenly sampled.
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
