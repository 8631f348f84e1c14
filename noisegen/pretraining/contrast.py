"""Contrast of clean and noisy side: NT-Xent, as in RCP's code and as its paper prints it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from noisegen.training.losses import TEMPERATURE, other_sides, pair_scores


@dataclass(frozen=True)
class Sides:
    """Vectors (2N, width) of both sides of N pairs, the noisy ones first, and earlier ones.

    `others` (any number, width) are negatives alone. `owners` (2N,) and `owners_of_others` number
    the clean text that each belongs to.
    """

    vectors: Tensor
    owners: Tensor
    others: Tensor | None = None
    owners_of_others: Tensor | None = None

    def scores(self, temperature: float) -> Tensor:
        """Return cosines over the temperature, shape (2N, 2N + others), -inf for no negative.

        That is a vector itself, and the sides of other pairs with the same clean text (copies of
        `augment`, an earlier epoch's in a memory): an anchor is not to be far from its own.
        """
        scores = pair_scores(self.vectors, temperature, self.others)
        known = [self.owners] if self.owners_of_others is None else [
            self.owners, self.owners_of_others
        ]  # fmt: skip
        same = self.owners[:, None] == torch.cat(known)
        rows = torch.arange(len(same), device=same.device)
        same[rows, other_sides(self.vectors)] = False
        return scores.masked_fill(same, -inf)


Contrast = Callable[[Sides, float], Tensor]


def nt_xent(sides: Sides, temperature: float = TEMPERATURE) -> Tensor:
    """Return NT-Xent: the mean of 2N anchors, the temperature on both sides (RCP's code).

    Each anchor has its own other side against the sides of pairs of other clean texts (2N - 2 where
    no two share one), and against earlier vectors.
    """
    return cross_entropy(sides.scores(temperature), other_sides(sides.vectors))


def nt_xent_printed(sides: Sides, temperature: float = TEMPERATURE) -> Tensor:
    """Return what RCP's eq. 1 prints: no temperature above the line, and a sum of 2N anchors."""
    scores = sides.scores(temperature)
    near = scores.gather(1, other_sides(sides.vectors)[:, None])[:, 0] * temperature
    return (scores.logsumexp(1) - near).sum()


FORMS: Mapping[str, Contrast] = {"nt_xent": nt_xent, "nt_xent:printed": nt_xent_printed}


class Memory(nn.Module):
    """The newest `size` vectors of earlier updates (cross-batch memory); a checkpoint has them."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.vectors: Tensor
        self.owners: Tensor
        self.filled: Tensor
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("owners", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    def beside(self, vectors: Tensor, owners: Tensor) -> Sides:
        """Return the vectors of an update with what is there, newest first."""
        count = int(self.filled)
        if not count:
            return Sides(vectors, owners)
        return Sides(vectors, owners, self.vectors[:count], self.owners[:count])

    def add(self, vectors: Tensor, owners: Tensor) -> None:
        """Put vectors and their owners in the place of the oldest."""
        count = int(self.filled)
        for kept, new in ((self.vectors, vectors), (self.owners, owners)):
            both = torch.cat([new.detach(), kept[:count]])[: len(kept)]
            kept[: len(both)] = both
        self.filled.fill_(min(len(self.vectors), count + len(vectors)))
