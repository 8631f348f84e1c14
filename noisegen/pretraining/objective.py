"""The objective of RCP: L = contrast(noisy, clean) + MLM(noisy) + MLM(clean)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.nn.functional import cross_entropy

from noisegen.pretraining.contrast import FORMS, Contrast, Sides
from noisegen.pretraining.masked_model import MaskedModel
from noisegen.pretraining.settings import MLM, PretrainSettings

SIDES = ("noisy", "clean")
_SCORES_MAX = 2**27  # that are computed together: half a gigabyte in float32


@dataclass(frozen=True)
class Objective:
    """`contrast` of the vectors, None for masks alone."""

    contrast: Contrast | None
    temperature: float

    @classmethod
    def of(cls, settings: PretrainSettings) -> "Objective":
        """Return what the settings name."""
        return cls(FORMS.get(settings.objective.removeprefix(f"{MLM}+")), settings.temperature)

    def contrasted(self, sides: Sides) -> Tensor:
        """Return the contrast of both sides of pairs, 0 without one."""
        if self.contrast is None:
            return sides.vectors.new_zeros(())
        return self.contrast(sides, self.temperature)


def token_losses(model: MaskedModel, states: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy under every mask, from its state and the token that was there."""
    return cross_entropy(model.scores(states).float(), targets, reduction="none")


def pieces(model: MaskedModel, masks: int) -> Iterator[slice]:
    """Cut so many masks into pieces whose scores fit into memory; no masks are one piece."""
    size = max(1, _SCORES_MAX // len(model.embeddings))
    for first in range(0, max(1, masks), size):
        yield slice(first, first + size)


def by_side(
    losses: Tensor, clean: Tensor, masked: npt.NDArray[np.bool_]
) -> dict[str, Tensor]:  # fmt: skip
    """Return the sums over the masks of each side; `clean` tells which side a mask is on.

    A side that is not `masked` at all has no sum: there was nothing to predict.
    """
    return {
        f"loss_mlm_{name}": losses[clean == at].sum()
        for at, name in enumerate(SIDES) if masked[at]
    }  # fmt: skip
