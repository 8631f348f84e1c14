"""Sums of objectives with weights, written `two_term+0.2*info_nce`: read, and added up."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import torch
from torch import Tensor

from noisegen.errors import UsageError, did_you_mean

Losses = dict[str, Tensor]
Parts = tuple[tuple[float, str], ...]  # weight and name


def read_weighted(text: str, known: Mapping[str, Any]) -> Parts:
    """Read NAME or WEIGHT*NAME, joined by +; raises UsageError."""
    return tuple(_part(part.strip(), known) for part in text.split("+"))


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


def weighted_sum(
    found: Iterable[tuple[float, Losses]], device: torch.device
) -> tuple[Tensor, Losses]:
    """Return the weighted sum of all losses, and the losses by name, unweighted and detached."""
    total, parts = torch.zeros((), device=device), Losses()
    for weight, losses in found:
        for name, value in losses.items():
            total = total + weight * value
            parts[name] = parts.get(name, 0) + value.detach()
    return total, parts
