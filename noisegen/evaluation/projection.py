"""A map of the baseline's space: pairs in its first two principal components."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from noisegen.evaluation.results import Projection
from noisegen.evaluation.similarity import spearman
from noisegen.evaluation.unit_vectors import F64, Vectors, check_pairs, unit

PAIRS_MAX = 200  # that are shown
_FITTED_MAX = 5_000  # vectors that components are fitted on
_POINTS_MAX = 500  # whose distances are compared, each with each


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
    shown = _even(len(texts), pairs_max)
    centre, axes, explained = _components(unit(baseline[_even(len(baseline), _FITTED_MAX)]))
    kept = {name: sides for name, sides in models.items() if sides[0].shape[1] == len(centre)}
    units = {}
    for name, (clean, noisy) in kept.items():
        check_pairs(clean, noisy)
        units[name] = [unit(side[shown]).astype(np.float64) for side in (clean, noisy)]
    flat = {name: [(side - centre) @ axes.T for side in sides] for name, sides in units.items()}
    points = {name: _tuples(np.concatenate(sides, axis=1)) for name, sides in flat.items()}
    before, after = (np.concatenate([side for two in sides.values() for side in two])
                     for sides in (units, flat))  # fmt: skip
    return Projection(dataset, tuple(texts[row] for row in shown), points, explained,
                      _kept_order(before, after))  # fmt: skip


def _even(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return all places, or so many at even steps."""
    return np.arange(count) if count <= most else np.arange(most) * count // most


def _components(units: npt.NDArray[np.float32]) -> tuple[F64, F64, tuple[float, float]]:
    """Return centre, two axes and their shares of the variance; an axis that lacks is zero.

    An axis points where its largest entry is positive, so that equal data give equal maps.
    """
    centre = units.mean(axis=0, dtype=np.float64)
    _, spread, axes = np.linalg.svd(units - centre, full_matrices=False)
    axes, spread = axes[:2], spread**2
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    whole = spread.sum()
    shares = np.zeros(2)
    if whole > 0:
        shares[: len(axes)] = spread[:2] / whole
    filled = np.zeros((2, len(centre)))
    filled[: len(axes)] = axes
    return centre, filled, (float(shares[0]), float(shares[1]))


def _tuples(points: F64) -> tuple[tuple[float, float, float, float], ...]:
    return tuple((a, b, c, d) for a, b, c, d in points.tolist())


def _kept_order(before: F64, after: F64) -> float:
    """Return Spearman's correlation of the distances between points; 0 where all are equal."""
    rows = _even(len(before), _POINTS_MAX)
    found = spearman(_distances(before[rows]), _distances(after[rows]))
    return 0.0 if np.isnan(found) else found


def _distances(points: F64) -> F64:
    """Return the squared distance of each two points, which ranks as the distance does."""
    squares = np.einsum("ij,ij->i", points, points)
    distances: F64 = squares[:, None] + squares - 2 * points @ points.T
    return distances[np.triu_indices(len(points), 1)]
