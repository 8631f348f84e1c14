"""The registry of objectives, and weighted sums of them, written `two_term+0.2*info_nce`.

An objective is a function of a batch and the network's output that returns named losses. The
decorator `objective` registers it: in `noisegen.training.losses`, in a file given as `--code`, or
in a package that names it under the entry-point group `noisegen.objectives`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from math import inf
from typing import Any, TypeVar

import torch
from torch import Tensor

from noisegen.errors import NoisegenError, UsageError, did_you_mean

ENTRY_POINTS = "noisegen.objectives"
NEEDS = ("clean", "negatives", "discriminator", "partners")
PRESETS = {"distil": "quickstart", "pretrain": "rcp-small", "heads": "oracle-small"}
Losses = dict[str, Tensor]
F = TypeVar("F", bound=Callable[..., Losses])


@dataclass(frozen=True)
class Objective:
    """A registered objective of a method; `needs` are the names of optional inputs that it uses."""

    name: str
    method: str
    function: Callable[..., Losses]
    needs: tuple[str, ...] = ()


REGISTERED: dict[tuple[str, str], Objective] = {}


def objective(name: str, method: str = "distil", *needs: str) -> Callable[[F], F]:
    """Return a decorator that registers an objective of a method: distil, pretrain or heads.

    `needs` names the optional inputs that the objective uses. In distil these may be clean (the
    student's vectors of the clean side) and negatives (the teacher's vectors of other texts); in
    heads, discriminator (a classifier trained together with the heads) and partners (other pairs of
    the batch). Raises UsageError if another file has registered the name.
    """
    if method not in PRESETS or not {*needs} <= {*NEEDS}:
        raise UsageError(
            f"objective {name!r}: its method must be one of {', '.join(PRESETS)}, its needs "
            f"of {', '.join(NEEDS)}"
        )

    def add(function: F) -> F:
        before = REGISTERED.get((method, name))
        if before and before.function.__code__.co_filename != function.__code__.co_filename:
            raise UsageError(f"an objective named {name!r} is already registered")
        REGISTERED[method, name] = Objective(name, method, function, needs)
        return function

    return add


def objectives(method: str) -> list[str]:
    """Return the names of a method's objectives, including objectives of loaded plug-ins."""
    return [name for owner, name in REGISTERED if owner == method]


def find_objective(name: str, method: str) -> Objective:
    """Return the objective of this name; if none is registered, import the plug-in of this name.

    A plug-in is a function under an entry point of an installed package. If it does not register
    itself, it becomes an objective of distil. Raises UsageError, which suggests the nearest known
    name, and NoisegenError if the import fails.
    """
    if name not in objectives(method):
        for point in entry_points(group=ENTRY_POINTS, name=name):
            try:
                function = point.load()
            except Exception as error:
                raise NoisegenError(f"plug-in {name!r} cannot be imported: {error!r}") from error
            # The import of a plug-in may have registered the objective.
            if not any(known == name for _, known in REGISTERED):
                objective(name)(function)
    known = objectives(method)
    if name not in known:
        near = did_you_mean(name, known)
        raise UsageError(f"no objective {name!r} among {', '.join(known)}{near}")
    return REGISTERED[method, name]


def preset_for(text: str) -> str:
    """Return the name of the default preset for objectives, such as `two_term+0.2*info_nce`.

    It is the default preset of the method that the first objective belongs to.
    """
    first = text.partition("+")[0].rpartition("*")[2].strip()
    if first == "mlm":
        return PRESETS["pretrain"]
    for method in ("distil", "heads"):
        if first.partition(":")[0] in objectives(method) or first in objectives(method):
            return PRESETS[method]
    return PRESETS["distil"]


@dataclass(frozen=True)
class WeightedSum:
    """Weighted sum of objectives of a method: `parts` has tuples (weight, objective)."""

    parts: tuple[tuple[float, Objective], ...]

    @classmethod
    def parse(cls, text: str, method: str = "distil") -> "WeightedSum":
        """Read a sum of NAME or WEIGHT*NAME, such as `two_term+0.2*info_nce`; raises UsageError."""
        parts = []
        for part in map(str.strip, text.split("+")):
            weight, star, name = part.rpartition("*")
            known = find_objective(name, method)
            try:
                value = float(weight) if star else 1.0
            except ValueError:
                raise UsageError(
                    f"objective {part!r}: write WEIGHT*NAME, such as 0.2*{name}"
                ) from None
            if not 0 < value < inf:
                raise UsageError(f"objective {part!r}: its weight must be positive and finite")
            parts.append((value, known))
        return cls(tuple(parts))

    def needs(self, what: str) -> bool:
        """Return whether any of the objectives needs the input `what`, one of `NEEDS`."""
        return any(what in part.needs for _, part in self.parts)

    def __call__(self, *inputs: Any) -> tuple[Tensor, Losses]:
        """Return the weighted sum of all losses, and each loss by name.

        The losses by name are unweighted and detached from the graph. Each objective is called with
        `inputs`: batch and output.
        """
        weighted, parts = [], Losses()
        for weight, part in self.parts:
            for name, value in part.function(*inputs).items():
                weighted.append(weight * value)
                parts[name] = parts.get(name, 0) + value.detach()
        return sum(weighted, torch.zeros((), device=weighted[0].device)), parts

    def means(
        self, batches: Iterable[tuple[int, tuple[Any, ...]]]
    ) -> tuple[float, dict[str, float]]:
        """Return the mean of the weighted sum over batches, and the means of the losses by name.

        `batches` yields the size of each batch, and the arguments of the objectives for this batch.
        The means weight batches by size.
        """
        rows, whole = 0, 0.0
        sums: dict[str, float] = defaultdict(float)
        for size, inputs in batches:
            loss, parts = self(*inputs)
            rows += size
            whole += float(loss) * size
            for name, value in parts.items():
                sums[name] += float(value) * size
        return whole / rows, {name: value / rows for name, value in sums.items()}
