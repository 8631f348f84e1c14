"""How much memory a backward pass will need, counted while the forward pass goes on."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class KeptGraphs:
    """The bytes that autograd keeps of what was computed under `counted`, weights left out."""

    def __init__(self, budget: float, weights: Iterable[Tensor]) -> None:
        self.budget, self.bytes = budget, 0
        self._known = {weight.untyped_storage().data_ptr() for weight in weights}

    @property
    def has_room(self) -> bool:
        """Whether the next graph is to be kept: the last one may reach over the budget."""
        return self.bytes < self.budget

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count every stretch of memory that is kept, once."""
        seen = set(self._known)

        def keep(tensor: Tensor) -> Tensor:
            memory = tensor.untyped_storage()
            if memory.data_ptr() not in seen:
                seen.add(memory.data_ptr())
                self.bytes += memory.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            yield
