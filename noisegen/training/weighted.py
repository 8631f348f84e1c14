"""Sums of objectives with weights, written `two_term+0.2*info_nce`: read, and added up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor

from noisegen.errors import UsageError, did_you_mean

Losses = dict[str, Tensor]
B = TypeVar("B")  # a method's batches
V = TypeVar("V")  # what its network makes of them


@dataclass(frozen=True)
class WeightedSum(Generic[B, V]):
    """Objectives of a method with their weights; a subclass says which are `known`."""

    known: ClassVar[Mapping[str, Callable[..., Losses]]]
    parts: tuple[tuple[float, str], ...]  # weight and name

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read NAME or WEIGHT*NAME, joined by +; raises UsageError."""
        return cls(tuple(_part(part.strip(), cls.known) for part in text.split("+")))

    def has(self, *names: str) -> bool:
        """Tell whether one of these objectives is among them."""
        return any(name in names for _, name in self.parts)

    def __call__(self, batch: B, output: V) -> tuple[Tensor, Losses]:
        """Return the weighted sum of all losses, and these by name, unweighted and detached."""
        weighted, parts = [], Losses()
        for weight, objective in self.parts:
            for name, value in self.known[objective](batch, output).items():
                weighted.append(weight * value)
                parts[name] = parts.get(name, 0) + value.detach()
        return sum(weighted, torch.zeros((), device=weighted[0].device)), parts


def _part(text: str, known: Mapping[str, Any]) -> tuple[float, str]:
    weight, star, name = text.rpartition("*")
    if name not in known:
        near = did_you_mean(name, known)
        raise UsageError(f"no objective {name!r} among {', '.join(known)}{near}")
    try:
        found = float(weight) if star else 1.0
    except ValueError:
        raise UsageError(f"objective {text!r}: write WEIGHT*NAME, such as 0.2*{name}") from None
    if not 0 < found < inf:
        raise UsageError(f"objective {text!r}: its weight must be above 0 and finite")
    return found, name
