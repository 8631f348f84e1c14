"""How good a student is on pairs kept out of training: the figures that choose a checkpoint."""

from dataclasses import dataclass

import numpy as np

from noisegen.encoders.encoder import Vectors
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.evaluation.unit_vectors import cosines, unit


@dataclass(frozen=True)
class Validation:
    """Pairs with the teacher's vectors of their clean side."""

    noisy: Ragged
    clean: Ragged
    teacher: Vectors

    def measure(self, student: SentenceEncoder) -> dict[str, float]:
        """Return the two-term loss of RoLASER, clean drift, distances and xSIM hits lost.

        `loss`: MSE(T[clean], S[clean]) + MSE(T[clean], S[noisy]), means over all entries, times the
        width (RoLASER, section 5.1; the factor keeps figures readable). `drift`, `anchored`,
        `distance`: mean 1 - cosine of S[clean] and T[clean], S[noisy] and T[clean], S[noisy] and
        S[clean]. `missed`: share of noisy sides whose nearest teacher vector is another's.
        """
        noisy, clean = (student.encode_ids(side) for side in (self.noisy, self.clean))
        found = {
            "loss_clean": _squared(self.teacher, clean),
            "loss_noisy": _squared(self.teacher, noisy),
            "drift": _distance(self.teacher, clean),
            "anchored": _distance(self.teacher, noisy),
            "distance": _distance(clean, noisy),
            "missed": _missed(noisy, self.teacher),
        }
        return {"loss": found["loss_clean"] + found["loss_noisy"], **found}


def _squared(a: Vectors, b: Vectors) -> float:
    return float(np.square(a - b).sum(1).mean())


def _distance(a: Vectors, b: Vectors) -> float:
    return float(1 - cosines(a, b).mean())


def _missed(noisy: Vectors, teacher: Vectors) -> float:
    """Return the share of rows with another vector nearer than their own, or its equal."""
    scores = unit(noisy) @ unit(teacher).T
    return float((scores.max(1) > np.diag(scores) + 1e-6).mean())
