"""How much memory a backward pass will need, counted while the forward pass goes on."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class KeptGraphs:
    """The bytes that autograd keeps of what was computed under `counted`, weights left out.

    One graph is always kept, unless the budget is 0.
    """

    def __init__(self, budget: float, weights: Iterable[Tensor]) -> None:
        self.budget, self.bytes, self._largest = budget, 0, 0
        self._known = {weight.untyped_storage().data_ptr() for weight in weights}

    @property
    def has_room(self) -> bool:
        """Whether the next graph is to be kept: whether one as large as any before fits."""
        return self.budget > 0 and self.bytes + self._largest <= self.budget

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count every stretch of memory that is kept, once; all graphs are there until the end."""
        before = self.bytes

        def keep(tensor: Tensor) -> Tensor:
            memory = tensor.untyped_storage()
            if memory.data_ptr() not in self._known:
                self._known.add(memory.data_ptr())
                self.bytes += memory.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            yield
        self._largest = max(self._largest, self.bytes - before)
