"""Objectives: functions of a batch and the student's output that return named losses.

Every loss is a mean over the sentences of the batch, so that the loop can weigh batches by their
sentences and one process or many give the same gradient. `dream`, `meat` and `oracle` train heads
on frozen vectors: they have batches and outputs of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, mse_loss, normalize

from noisegen.training.weighted import Losses, WeightedSum

TEMPERATURE = 0.05  # of NT-Xent, as in RCP's code
_OF_HEADS = ("dream", "meat", "oracle")


def __getattr__(name: str) -> Any:
    """Return an objective of heads, whose package is built on this one."""
    if name not in _OF_HEADS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from noisegen.disentangling import objectives

    return getattr(objectives, name)


@dataclass(frozen=True)
class Batch:
    """What the student is compared with.

    `teacher` (sentences, width): the teacher's vectors of the clean text. `negatives`
    (any number, width): its vectors of other texts, for contrastive objectives.
    """

    teacher: Tensor
    negatives: Tensor | None = None
    temperature: float = TEMPERATURE


@dataclass(frozen=True)
class Output:
    """The student's vectors of the noisy side, and of the clean one where an objective asks."""

    noisy: Tensor
    clean: Tensor | None = None

    @property
    def clean_side(self) -> Tensor:
        """The vectors of the clean side; raises ValueError where they were not computed."""
        if self.clean is None:
            raise ValueError("this objective needs the student's vectors of the clean side")
        return self.clean


def mse_sum(batch: Batch, output: Output) -> Losses:
    """Squared error summed over dimensions, T(clean) against S(noisy) (RoLASER, section 4)."""
    return {"noisy": _squared(batch.teacher, output.noisy)}


def mse_mean(batch: Batch, output: Output) -> Losses:
    """Squared error averaged over dimensions, the scale of sentence-transformers' MSELoss."""
    return {"noisy": mse_loss(output.noisy, batch.teacher)}


def two_term(batch: Batch, output: Output) -> Losses:
    """Squared error of the clean and the noisy side against T(clean) (CT-XLMR-SE, section 3)."""
    return {
        "clean": _squared(batch.teacher, output.clean_side),
        "noisy": _squared(batch.teacher, output.noisy),
    }


def snr(batch: Batch, output: Output) -> Losses:
    """Length of the error over the teacher's length (RoLASER's released launcher)."""
    error = torch.linalg.vector_norm(batch.teacher - output.noisy, dim=1)
    return {"noisy": (error / torch.linalg.vector_norm(batch.teacher, dim=1)).mean()}


def cosine(batch: Batch, output: Output) -> Losses:
    """1 - cosine of S(noisy) and T(clean) (RoLASER's criterion by default)."""
    return {"noisy": (1 - cosine_similarity(batch.teacher, output.noisy)).mean()}


def info_nce(batch: Batch, output: Output) -> Losses:
    """Find T(clean) of one's own among those of the batch and `batch.negatives`, from S(noisy)."""
    targets = batch.teacher
    if batch.negatives is not None:
        targets = torch.cat([targets, batch.negatives])
    scores = normalize(output.noisy) @ normalize(targets).T / batch.temperature
    right = torch.arange(len(scores), device=scores.device)
    return {"contrast": cross_entropy(_without_equals(scores, targets, right), right)}


def nt_xent(batch: Batch, output: Output) -> Losses:
    """NT-Xent of the two sides of the student: 2N anchors, 2N - 2 negatives each (RCP, eq. 1)."""
    scores = pair_scores(torch.cat([output.noisy, output.clean_side]), batch.temperature)
    return {"contrast": cross_entropy(scores, other_sides(scores))}


def pair_scores(vectors: Tensor, temperature: float, others: Tensor | None = None) -> Tensor:
    """Return cosines over the temperature of all vectors to all, and to `others`; -inf to itself.

    `vectors` (2N, width): one side of N pairs, then the other. Shape (2N, 2N + others).
    """
    sides = normalize(vectors)
    scores = sides @ sides.T / temperature
    itself = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    scores = scores.masked_fill(itself, -inf)
    if others is None:
        return scores
    return torch.cat([scores, sides @ normalize(others).T / temperature], 1)


def other_sides(vectors: Tensor) -> Tensor:
    """Return the row of the other side of each row: of N pairs, one side before the other."""
    return torch.arange(len(vectors), device=vectors.device).roll(len(vectors) // 2)


def _squared(teacher: Tensor, student: Tensor) -> Tensor:
    return (teacher - student).square().sum(1).mean()


def _without_equals(scores: Tensor, targets: Tensor, right: Tensor) -> Tensor:
    """Leave out targets that are the right one again: the same clean text in another pair."""
    own = targets[: len(right)]
    same = (normalize(own) @ normalize(targets).T) > 1 - 1e-4
    same[right, right] = False
    return scores.masked_fill(same, -torch.inf)


Objective = Callable[[Batch, Output], Losses]
OBJECTIVES: Mapping[str, Objective] = {
    function.__name__: function
    for function in (mse_sum, mse_mean, two_term, snr, cosine, info_nce, nt_xent)
}
NEED_CLEAN = ("two_term", "nt_xent")


class Weighted(WeightedSum[Batch, Output]):
    """Objectives with weights, written `two_term+0.2*info_nce`."""

    known = OBJECTIVES

    @property
    def needs_clean(self) -> bool:
        """Whether the student must encode the clean side too."""
        return self.has(*NEED_CLEAN)

    @property
    def is_contrastive(self) -> bool:
        """Whether it reads `batch.negatives`."""
        return self.has("info_nce")
