"""Sentence matching: the accuracy of nearest-neighbour retrieval, both ways."""

from dataclasses import dataclass

import numpy as np

from noisegen.evaluation.neighbours import Precision, neighbours
from noisegen.evaluation.unit_vectors import F64, Bool, Vectors, check_pairs, cosines, unit

_BLOCK = 1 << 22  # cosines that are held at a time


@dataclass(frozen=True)
class Matching:
    """Which rows of x find their own row of y (`forward`), and the other way round."""

    forward: Bool
    backward: Bool

    @property
    def accuracy_forward(self) -> float:
        """Per cent of x that find their y."""
        return 100 * float(self.forward.mean())

    @property
    def accuracy_backward(self) -> float:
        """Per cent of y that find their x."""
        return 100 * float(self.backward.mean())

    @property
    def accuracy(self) -> float:
        """The mean of both."""
        return (self.accuracy_forward + self.accuracy_backward) / 2


def matching_accuracy(x: Vectors, y: Vectors, precision: Precision = "auto") -> Matching:
    """Tell for each pair whether its cosine is at least that with every other row.

    Ties count as correct (CT-XLMR-SE, equation 3); cosines are compared to twelve digits.
    """
    check_pairs(x, y)
    own = cosines(x, y)
    best = [neighbours(one, other, 1, precision).cosines[:, 0] for one, other in ((x, y), (y, x))]
    return Matching(own >= best[0], own >= best[1])


def retrieval_accuracy(x: Vectors, y: Vectors) -> tuple[float, float]:
    """Return the per cent of x that find their own row of y by cosine, and of y their x.

    Of k rows that tie for the nearest, each is found with chance 1 / k: vectors that are all the
    same find nothing, while `matching_accuracy` counts each as a match. Float64, every pair.
    """
    check_pairs(x, y)
    return _found(x, y), _found(y, x)


def _found(x: Vectors, y: Vectors) -> float:
    others = unit(y).astype(np.float64)
    step = max(1, _BLOCK // len(y))
    shares = [
        _shares(unit(x[first : first + step]).astype(np.float64) @ others.T, first)
        for first in range(0, len(x), step)
    ]
    return 100 * float(np.concatenate(shares).mean())


def _shares(found: F64, first: int) -> F64:
    """Return each row's chance to find its own column, of columns `first` on the diagonal."""
    found = found.round(12)
    rows = np.arange(len(found))
    own = found[rows, first + rows][:, None]
    ties = (found == own).sum(1)
    return np.where((found > own).any(1), 0.0, 1 / ties)
