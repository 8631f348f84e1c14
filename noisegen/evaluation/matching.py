"""Sentence matching: the accuracy of nearest-neighbour retrieval, both ways."""

from dataclasses import dataclass

from noisegen.evaluation.neighbours import Precision, neighbours
from noisegen.evaluation.unit_vectors import Bool, Vectors, check_pairs, cosines


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
