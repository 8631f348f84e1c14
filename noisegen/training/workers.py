"""The processes of a run: one, or those that torchrun started."""

import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn

from noisegen.errors import UsageError


@dataclass(frozen=True)
class Workers:
    """The place of one process: number `rank` of `world`."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def sum_gradients(self, weights: list[nn.Parameter]) -> None:
        """Put the sum of all processes' gradients in the place of each one's, at one go."""
        if self.world == 1:
            return
        gradients = [w.grad if w.grad is not None else torch.zeros_like(w) for w in weights]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for weight, part in zip(weights, parts, strict=True):
            weight.grad = part.view_as(weight)

    def agreed(self, value: float) -> float:
        """Return the largest of all processes' values, such as the seconds that went by."""
        if self.world == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, dist.ReduceOp.MAX)
        return float(shared)

    def summed(self, value: float) -> float:
        """Return the sum of all processes' values."""
        if self.world == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared)
        return float(shared)

    def gather(self, rows: Tensor) -> Tensor:
        """Put together what each process has of the rows, zeros where another has them."""
        if self.world > 1:
            dist.all_reduce(rows)
        return rows

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.world > 1:
            dist.barrier()


def join_workers(device: str = "auto") -> Workers:
    """Return the place of this process, from the variables that torchrun sets.

    `device` is cpu, cuda, cuda:NUMBER, or auto: CUDA where there is any. Raises UsageError.
    """
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    here = _device(device, int(os.environ.get("LOCAL_RANK", 0)), world)
    cuda = here.type == "cuda"
    if cuda:
        torch.cuda.set_device(here)
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if cuda else "gloo")
    return Workers(rank, world, here)


def _device(name: str, local_rank: int, world: int) -> torch.device:
    """Return what is meant; of several processes on a machine each has a device of its own."""
    kind, colon, number = name.partition(":")
    is_known = name in ("auto", "cpu", "cuda") or (kind == "cuda" and number.isdecimal())
    if not is_known:
        raise UsageError(f"device {name!r}: write cpu, cuda, cuda:1 or auto")
    if kind == "cpu" or (kind == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if colon and world > 1:
        raise UsageError(f"device {name!r} is one for {world} processes: give --device cuda")
    index, count = int(number or local_rank), torch.cuda.device_count()
    if not torch.cuda.is_available():
        raise UsageError(f"device {name!r}: torch finds no CUDA here; give --device cpu")
    if index >= count:
        raise UsageError(f"device 'cuda:{index}': there are {count}, counted from 0")
    return torch.device(f"cuda:{index}")
