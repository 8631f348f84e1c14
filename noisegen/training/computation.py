"""How a run computes: its processes, its device, and a student's vectors on that device."""

import os
import re
from collections.abc import MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from noisegen.encoders.encoder import Ragged, autocast, find_device, half_precision
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import Packed, Padded, attending_fast, first_position, is_packable
from noisegen.errors import UsageError
from noisegen.training.peers import Peers
from noisegen.training.settings import DistilSettings, PretrainSettings

# A process may wait this long for the rows of another one. `Peers` notices a dead process earlier.
_LOADING_MAX = timedelta(days=7)


@dataclass(frozen=True)
class Workers:
    """Index of this process (`rank`) among the `world` processes of a run, and its device.

    `peers` are the processes, if there are several. `loading` is their group for the threads that
    load data, whose exchanges must not mix with those of the main threads.
    """

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    peers: Peers | None = None
    loading: dist.ProcessGroup | None = None

    @property
    def leads(self) -> bool:
        """Whether this is the first process: only that one writes files and prints."""
        return self.rank == 0

    def sum_gradients(self, weights: list[nn.Parameter]) -> None:
        """Replace the gradients of the weights by their sums over all processes."""
        if self.world == 1:
            return
        sums = []
        for weight in weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            sums.append(dist.all_reduce(weight.grad, async_op=True))
        for each in sums:
            each.wait()

    def maximum(self, value: float) -> float:
        """Return the maximum of a value over all processes."""
        return self._reduced(value, dist.ReduceOp.MAX)

    def summed(self, value: float) -> float:
        """Return the sum of a value over all processes."""
        return self._reduced(value, dist.ReduceOp.SUM)

    def _reduced(self, value: float, operation: Any) -> float:
        if self.world == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(shared, operation)
        return float(shared)

    def gather(self, rows: Tensor) -> Tensor:
        """Replace `rows` by its sum over all processes, and return it.

        Each process sets its own rows of the array to values and all other rows to 0, so the sum
        has the values of all rows.
        """
        if self.world > 1:
            dist.all_reduce(rows)
        return rows

    def gathered(self, value: Any) -> list[Any]:
        """Return the values of all processes, in the order of their ranks.

        `value` is this process's own. The threads that load data may call this.
        """
        if self.loading is None:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value, group=self.loading)
        return values

    def wait(self) -> None:
        """Wait, however long, until all processes of the run have called this method.

        Raises NoisegenError if another process fails.
        """
        if self.peers is not None:
            self.peers.wait()

    def together(self) -> AbstractContextManager[None]:
        """Return a context in which an exception of one process ends all processes."""
        return nullcontext() if self.peers is None else self.peers.together()


def join_workers(device: str = "auto") -> Workers:
    """Join the processes of a run that torchrun started; return this process's rank and device.

    Without the environment variables of torchrun, the run has one process. `device` is cpu,
    cuda, cuda:NUMBER, or auto (CUDA if there is any). Raises UsageError for another device.
    """
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    here = find_device(device, int(os.environ.get("LOCAL_RANK", 0)), world)
    cuda = here.type == "cuda"
    if cuda:
        torch.cuda.set_device(here)
    if world == 1:
        return Workers(device=here)
    if not dist.is_initialized():
        join_group(here)
    loading = dist.new_group(timeout=_LOADING_MAX, backend="gloo")
    store, _, _ = next(rendezvous("env://", rank, world))
    return Workers(rank, world, here, Peers(store, rank, world), loading)


def join_group(device: torch.device) -> None:
    """Join the group of processes that exchange gradients by NCCL on CUDA, numbers by Gloo.

    Gloo exchanges numbers of the host without a wait for the GPU.
    """
    if device.type == "cuda":  # without device_id, NCCL guesses the device
        dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    else:
        dist.init_process_group("gloo")


class Computation:
    """Computes a student's vectors from rows of token ids, in bf16, fp16 or float32.

    The rows of a batch are padded, or packed: joined without padding. Raises UsageError if settings
    and device conflict. `network` is the student's network, compiled if the settings ask for it.
    """

    def __init__(
        self,
        settings: DistilSettings | PretrainSettings,
        student: SentenceEncoder,
        device: torch.device,
        world: int = 1,
    ) -> None:
        self.student, self.device, self.world = student, device, world
        self.half = half_precision(settings.precision, device)
        self.packed = _packs(settings, student.config, device, self.half)
        # In fp16, small gradients would be 0: losses are multiplied by a number that the scaler
        # adapts, and gradients are divided by it. An update with gradients that are too large is
        # skipped. In other types, the scaler does nothing.
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.half == torch.float16)
        cuda = device.type == "cuda"
        self.shape: dict[str, int] = {}  # fixed size of packed batches if compiled
        if settings.compile:
            tokens = settings.tokens_per_batch(world)
            self.shape = {"tokens": tokens, "longest": student.tokenizer.max_length}
        self.compiled = bool(self.shape)
        if self.compiled and not (self.packed and cuda):
            raise UsageError("compile=true needs packed batches on CUDA: drop it")
        self.network: Any = torch.compile(student.network) if self.compiled else student.network
        self.peak = peak_flop_per_second(torch.cuda.get_device_name(device)) if cuda else None

    def precision(self) -> AbstractContextManager[Any]:
        """Return the context in which the network runs: autocast to 16 bits, or no autocast.

        Heads and losses always compute in float32.
        """
        return autocast(self.half, self.device)

    def scaled(self, loss: Tensor) -> Tensor:
        """Return a loss as its gradient is computed: in fp16 multiplied by the scaler's number."""
        scaled: Tensor = self.scaler.scale(loss)
        return scaled

    def batch(self, ids: Ragged) -> Padded | Packed:
        """Return rows of token ids as a batch on the device.

        A compiled network gets batches of few shapes: each new shape may cause another compilation.
        """
        pad_id = self.student.tokenizer.pad_id
        if self.packed:
            return Packed.of(ids, pad_id, self.device, **self.shape)
        return Padded.of(ids, pad_id, self.device)

    def states(self, batch: Padded | Packed) -> Tensor:
        """Return the network's last hidden states for a batch.

        Their shape is (rows, longest row, hidden), or (tokens, hidden) if the batch is packed.
        """
        if isinstance(batch, Padded) and self.half:
            with attending_fast(self.student.config, batch):
                return batch.states(self.network)
        return batch.states(self.network)

    def vectors(
        self, batch: Padded | Packed, counts: MutableMapping[str, Any] | None = None
    ) -> Tensor:
        """Return the student's vectors of the rows of a batch, (rows, width) float32.

        Counts the batch in `counts`. With several processes, the backward pass averages the
        gradients of all processes (but see `alone`).
        """
        if counts is not None:
            count(batch, counts)
        vectors: Tensor = self._encoding(batch)
        return vectors

    @cached_property
    def _encoding(self) -> nn.Module:
        """The student as a function from batches to vectors; its gradients are averaged.

        It is made at the first update: until then, weights may be added to the student.
        """
        encoding = _Encoding(self)
        if self.world == 1:
            return encoding
        self._freeze_unused()
        return DistributedDataParallel(encoding, forward_sync_buffers=False)

    def _freeze_unused(self) -> None:
        """Freeze weights without influence on the vectors, such as a pooler's.

        They never get a gradient, and DistributedDataParallel would wait for it.
        """
        student, training = self.student, self.student.training
        weights = [weight for weight in student.parameters() if weight.requires_grad]
        student.eval()  # draws no random numbers
        with self.precision():
            batch = self.batch(student.tokenizer.tokenize(["a"]))
            vectors = student.head(batch.states(student.network), batch)
        gradients = torch.autograd.grad(vectors.sum(), weights, allow_unused=True)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.requires_grad_(gradient is not None)
        student.train(training)

    def alone(self) -> AbstractContextManager[None]:
        """Return a context in which backward passes do not average gradients over processes."""
        encoding = self._encoding
        if isinstance(encoding, DistributedDataParallel):
            return encoding.no_sync()
        return nullcontext()

    def mfu(self, tokens_per_second: float, tokens_per_row: float) -> float | None:
        """Return the share of the bf16 peak that training at `tokens_per_second` uses.

        `tokens_per_row` is the mean length of a row. Return None if the peak is unknown.
        """
        if not self.peak:
            return None
        return tokens_per_second * flop_per_token(self.student, tokens_per_row) / self.peak


class _Encoding(nn.Module):
    """A student with a method `forward` from batches to vectors."""

    def __init__(self, computation: Computation) -> None:
        super().__init__()
        self.student = computation.student  # registers its weights
        self._states = computation.states

    def forward(self, batch: Padded | Packed) -> Tensor:
        """Return the vectors of a batch, (rows, width) float32."""
        vectors: Tensor = self.student.head(self._states(batch), batch)
        return vectors


def count(batch: Padded | Packed, counts: MutableMapping[str, Any]) -> None:
    """Increase counts["rows"], counts["tokens"], and counts["computed"] (tokens with padding)."""
    counts["rows"] += batch.rows
    counts["tokens"] += batch.used
    counts["computed"] += batch.tokens


def _packs(
    settings: DistilSettings | PretrainSettings,
    config: Any,
    device: torch.device,
    half: torch.dtype | None,
) -> bool:
    """Return whether batches are packed; raises UsageError if settings and device conflict."""
    is_fast = device.type == "cuda" and half == torch.bfloat16  # V100 and T4 lack the kernel
    if settings.packed is None:
        return is_fast and is_packable(config)
    if settings.packed:
        first_position(config)  # raises UsageError if the network cannot use packed batches
        if device.type == "cuda" and not is_fast:
            raise UsageError("packed batches on CUDA need precision bf16; else set packed=false")
    return settings.packed


def peak_flop_per_second(name: str) -> float | None:
    """Return the bf16 peak of the device called `name`, in FLOP per second.

    Return None for an unknown device, and for a MIG slice of a GPU.
    """
    words = set(re.findall(r"\w+", name))
    for line in (Path(__file__).parent / "peaks.tsv").read_text("utf-8").splitlines()[2:]:
        device, peak, _ = line.split("\t")
        if words >= {*device.split()} and "MIG" not in words:
            return float(peak)
    return None


def flop_per_token(student: SentenceEncoder, length: float) -> float:
    """Return the FLOP per token of forward and backward pass, in rows of `length` tokens.

    Each weight outside the embeddings costs 6 FLOP. Attention costs 12 x layers x hidden size x
    `length` FLOP.
    """
    embedded = student.network.get_input_embeddings()  # type: ignore[operator]
    table = sum(weight.numel() for weight in embedded.parameters())
    dense = sum(weight.numel() for weight in student.parameters()) - table
    config = student.config
    return float(6 * dense + 12 * config.num_hidden_layers * config.hidden_size * length)
