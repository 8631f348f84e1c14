"""How a student computes on a device: precision, batches padded or packed, compiled or not."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

from noisegen.encoders.packed import Packed, attending, first_position, is_packable
from noisegen.encoders.precision import cpu_has_bf16
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import Padded
from noisegen.errors import UsageError
from noisegen.training.estimate import flop_per_token
from noisegen.training.peaks import peak_of

# Tokens of a row up to which products of matrices attend faster than torch's fused kernel, in bf16
# on a CPU: forward and backward of 64 x 32 tokens, 12 heads, 7 ms against 57; of 4 x 512, 146: 102.
_PLAIN_LONGEST = 256


class ComputationSettings(Protocol):
    """What a method's settings say about how to compute."""

    @property
    def precision(self) -> str:
        """One of auto, bf16 and fp32."""
        ...

    @property
    def packed(self) -> bool | None:
        """Whether rows are without padding; None: where that is possible and fast."""
        ...

    @property
    def compile(self) -> bool:
        """Whether the network is compiled, for packed batches on CUDA."""
        ...

    @property
    def dropout(self) -> float:
        """The share of states that is dropped."""
        ...

    @property
    def batch_tokens(self) -> int:
        """The tokens of a batch, padding included."""
        ...


class Computation:
    """Rows of ids to vectors, as settings and device have it; raises UsageError for what cannot be.

    `network` is the student's, or the same weights compiled.
    """

    def __init__(
        self, settings: ComputationSettings, student: SentenceEncoder, device: torch.device
    ) -> None:
        self.settings, self.student, self.device = settings, student, device
        self.bf16 = uses_bf16(settings.precision, device)
        self.packed = self._uses_packed()
        self.network: Any = student.network
        if settings.compile:
            if not (self.packed and device.type == "cuda"):
                raise UsageError("compile=true is for packed batches on CUDA: leave it out")
            self.network = torch.compile(student.network)
        self.peak = peak_of(device)

    def _uses_packed(self) -> bool:
        """Unless asked for, not with dropout: the kernel drops no weights of the attention."""
        settings, cuda = self.settings, self.device.type == "cuda"
        if settings.packed is None:
            return cuda and self.bf16 and not settings.dropout and is_packable(self.student.config)
        if settings.packed:
            first_position(self.student.config)
            if cuda and not self.bf16:
                raise UsageError("packed batches on CUDA need precision bf16: or give packed=false")
        return settings.packed

    def precision(self) -> AbstractContextManager[Any]:
        """Return what the network is to run in; heads and losses compute in float32 anyway."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def batch(self, ids: Ragged) -> Padded | Packed:
        """Put rows of ids on the device; for a compiled network in few shapes."""
        pad_id = self.student.tokenizer.pad_id
        if not self.packed:
            return Padded.of(ids, pad_id, self.device)
        if not self.settings.compile:
            return Packed.of(ids, pad_id, self.device)
        tokens, longest = self.settings.batch_tokens, self.student.tokenizer.max_length
        return Packed.of(ids, pad_id, self.device, tokens=tokens, longest=longest)

    def states(self, batch: Padded | Packed) -> Tensor:
        """Return the last hidden states, of shape as `batch.states` has them."""
        with self._attention(batch):
            return batch.states(self.network)

    def vectors(self, batch: Padded | Packed) -> Tensor:
        """Return shape (rows, width), float32."""
        vectors: Tensor = self.student.head(self.states(batch), batch)
        return vectors

    def _attention(self, batch: Padded | Packed) -> AbstractContextManager[Any]:
        if not (self.bf16 and isinstance(batch, Padded)):
            return nullcontext()
        return attending_fast(self.student.config, batch)

    def mfu(self, tokens_per_second: float, tokens_per_row: float) -> float | None:
        """Return the share of the device's bf16 peak at this speed; None where it is not known."""
        if not self.peak:
            return None
        return tokens_per_second * flop_per_token(self.student, tokens_per_row) / self.peak


def attending_fast(config: Any, batch: Padded) -> AbstractContextManager[Any]:
    """Let a network attend in the way that is the fastest for these rows, in bf16."""
    if batch.ids.device.type != "cpu" or batch.ids.shape[1] > _PLAIN_LONGEST:
        return nullcontext()
    return attending(config, "eager")  # what transformers calls plain products


def uses_bf16(precision: str, device: torch.device) -> bool:
    """Tell whether the network runs in bf16: as asked, or where the machine computes in it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return cpu_has_bf16()
