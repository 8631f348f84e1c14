"""From the states of the tokens to the vector of the sentence: projection and pooling."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from noisegen.encoders.packed import Packed
from noisegen.encoders.tokens import Padded

POOLINGS = ("mean", "max", "cls")
PLACES = (
    "before",
    "after",
    "last",
)  # where the projection is: max-pooling is not linear


@dataclass(frozen=True)
class HeadSettings:
    """How a sentence is pooled.

    `projection` is the width that a linear layer makes of the network's, None for none. It comes
    before pooling, per token (RoLASER, section 4), after it, or last: after normalising too.
    """

    pooling: str = "mean"
    projection: int | None = None
    place: str = "before"
    bias: bool = True
    normalize: bool = False


class Head(nn.Module):
    """Projection and pooling, computed in float32 whatever the network's precision."""

    def __init__(self, hidden: int, settings: HeadSettings) -> None:
        super().__init__()
        self.settings = settings
        self.width = settings.projection or hidden
        self.projection = (
            nn.Linear(hidden, settings.projection, bias=settings.bias)
            if settings.projection
            else None
        )

    def forward(self, states: Tensor, batch: Padded | Packed) -> Tensor:
        """Return shape (rows, width), float32."""
        with torch.autocast(states.device.type, enabled=False):
            vectors = states.float()
            for step in self._steps(batch):
                vectors = step(vectors)
            return vectors

    def _steps(self, batch: Padded | Packed) -> list[Any]:
        pool = getattr(batch, self.settings.pooling)
        steps = [pool]
        if self.settings.normalize:
            steps.append(nn.functional.normalize)
        if self.projection is not None:
            at = {"before": 0, "after": 1, "last": len(steps)}[self.settings.place]
            steps.insert(at, self.projection)
        return steps
