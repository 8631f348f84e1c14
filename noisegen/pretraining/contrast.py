"""Contrast of clean and noisy side: NT-Xent, as in RCP's code and as its paper prints it."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from noisegen.training.losses import TEMPERATURE, pair_scores

Contrast = Callable[[Tensor, Tensor | None, float], Tensor]


def nt_xent(
    vectors: Tensor, others: Tensor | None = None, temperature: float = TEMPERATURE
) -> Tensor:
    """Return NT-Xent: the mean of 2N anchors, the temperature on both sides (RCP's code).

    `vectors` (2N, width): the noisy sides of N pairs, then their clean sides. Each anchor has its
    own other side against the 2N - 2 of other pairs, and against `others` (any number, width).
    """
    scores = pair_scores(vectors, temperature, others)
    return cross_entropy(scores, _partner(vectors))


def nt_xent_printed(
    vectors: Tensor, others: Tensor | None = None, temperature: float = TEMPERATURE
) -> Tensor:
    """Return what RCP's eq. 1 prints: no temperature above the line, and a sum of 2N anchors."""
    scores = pair_scores(vectors, temperature, others)
    near = scores.gather(1, _partner(vectors)[:, None])[:, 0] * temperature
    return (scores.logsumexp(1) - near).sum()


FORMS: Mapping[str, Contrast] = {"nt_xent": nt_xent, "nt_xent:printed": nt_xent_printed}


def _partner(vectors: Tensor) -> Tensor:
    """Return the row of each anchor's other side."""
    return torch.arange(len(vectors), device=vectors.device).roll(len(vectors) // 2)


class Memory(nn.Module):
    """The newest `size` vectors of earlier updates (cross-batch memory); a checkpoint has them."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.vectors: Tensor
        self.filled: Tensor
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    def known(self) -> Tensor | None:
        """Return what is there, newest first; None where that is nothing."""
        return self.vectors[: int(self.filled)] if len(self.vectors) and self.filled else None

    def add(self, vectors: Tensor) -> None:
        """Put vectors in the place of the oldest."""
        size = len(self.vectors)
        if size:
            both = torch.cat([vectors.detach(), self.vectors[: int(self.filled)]])[:size]
            self.vectors[: len(both)] = both
            self.filled.fill_(len(both))
