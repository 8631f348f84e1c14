"""How close texts of the same class are: D_avg."""

from collections.abc import Hashable, Sequence

import numpy as np

from noisegen.errors import UsageError
from noisegen.evaluation.unit_vectors import Vectors, unit


def mean_class_similarity(vectors: Vectors, labels: Sequence[Hashable]) -> float:
    """Return D_avg: the mean cosine of two texts of a class, classes weighted by their texts.

    CT-XLMR-SE, equation 2, over all pairs of a class. Of unit vectors u they sum up to
    |sum u|^2 - sum |u|^2, so it takes O(n d). Classes of one text have no pair and no weight;
    raises UsageError if all are such.
    """
    means = class_similarities(vectors, labels)
    if not means:
        raise UsageError("no class has two texts, so there is no similarity within classes")
    weights = [count for _, count in means.values()]
    return float(np.average([mean for mean, _ in means.values()], weights=weights))


def class_similarities(
    vectors: Vectors, labels: Sequence[Hashable]
) -> dict[Hashable, tuple[float, int]]:
    """Return each class's mean cosine over its pairs, and its number of texts, two at least."""
    if len(vectors) != len(labels):
        raise UsageError(f"{len(vectors):,} vectors, but {len(labels):,} labels")
    units = unit(vectors)
    rows: dict[Hashable, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    found = {}
    for label, of_class in rows.items():
        if len(of_class) > 1:
            found[label] = _mean_cosine(units[of_class].astype(np.float64)), len(of_class)
    return found


def _mean_cosine(units: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    count, total = len(units), units.sum(axis=0)
    return float((total @ total - np.einsum("ij,ij->", units, units)) / (count * (count - 1)))
