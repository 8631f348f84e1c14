"""A batch of token ids on its way through a network: padded to a rectangle."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from noisegen.encoders.ragged import Ragged


@dataclass(frozen=True)
class Padded:
    """`ids` (rows, longest) int64 and `mask` (rows, longest) bool: where a token is."""

    ids: Tensor
    mask: Tensor

    @classmethod
    def of(cls, rows: Ragged, pad_id: int, device: str | torch.device = "cpu") -> "Padded":
        """Make one of rows of ids."""
        ids = torch.from_numpy(rows.padded(pad_id))
        lengths = torch.from_numpy(rows.lengths)
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        return cls(ids.to(device, non_blocking=True), mask.to(device, non_blocking=True))

    @property
    def tokens(self) -> int:
        """Tokens that are computed, padding included."""
        return self.ids.numel()

    def states(self, network: nn.Module) -> Tensor:
        """Return the last hidden states, (rows, longest, hidden)."""
        output: Any = network(input_ids=self.ids, attention_mask=self.mask.long())
        states: Tensor = output.last_hidden_state
        return states

    def mean(self, states: Tensor) -> Tensor:
        """Return the mean of each row's states."""
        kept = self.mask[..., None]
        return (states * kept).sum(1) / kept.sum(1).clamp(min=1)

    def max(self, states: Tensor) -> Tensor:
        """Return the largest of each row's states, number by number."""
        return states.masked_fill(~self.mask[..., None], -torch.inf).amax(1)

    def cls(self, states: Tensor) -> Tensor:
        """Return the state of each row's first token."""
        return states[:, 0]
