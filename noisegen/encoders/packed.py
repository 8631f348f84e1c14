"""A batch of token ids on its way through a network: rows one behind the other, without padding.

A token attends to its own row alone: by `varlen_attn` of torch on CUDA in half precision, elsewhere
by a mask of blocks, which is slow for many tokens and there to be compared with.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from noisegen.encoders.ragged import Ragged
from noisegen.errors import UsageError

ATTENTION = "noisegen_packed"
_AFTER_PADDING = {"bert": False, "roberta": True, "xlm-roberta": True}  # where positions begin
_HALF = (torch.bfloat16, torch.float16)  # what varlen_attn computes in


@dataclass(frozen=True)
class Packed:
    """Row i is `ids[offsets[i]:offsets[i + 1]]`, for the first `rows` rows and `used` tokens.

    `ids`, `places` (in the row, from 0) and `owner` (the row) have one int64 for each token.
    `offsets` is int32 and goes on behind the rows: over a tail of padding ids in rows of their own,
    so that no token is left undefined, then over empty rows. No row has more than `longest` tokens.
    """

    ids: Tensor
    places: Tensor
    owner: Tensor
    offsets: Tensor
    rows: int
    used: int
    longest: int

    @classmethod
    def of(
        cls, rows: Ragged, pad_id: int, device: str | torch.device = "cpu",
        *, tokens: int = 0, longest: int = 1,
    ) -> "Packed":  # fmt: skip
        """Make one of rows of ids.

        With `tokens` it has that many, or those of the rows if they are more, and its number of
        rows is a power of two: few shapes, as a compiled network wants them.
        """
        longest = max(longest, int(rows.lengths.max(initial=1)))
        filled = _filled(rows, pad_id, tokens, longest) if tokens else rows
        owner = np.repeat(np.arange(len(filled)), filled.lengths)
        places = np.arange(len(owner)) - filled.offsets[owner]
        columns = _moved(np.stack([filled.values.astype(np.int64), places, owner]), device)
        offsets = _moved(filled.offsets.astype(np.int32), device)
        used = len(rows.values)
        return cls(columns[0], columns[1], columns[2], offsets, len(rows), used, longest)

    @property
    def tokens(self) -> int:
        """Tokens that are computed, those of the tail included."""
        return self.ids.numel()

    def states(self, network: nn.Module) -> Tensor:
        """Return the last hidden states, (tokens, hidden); raises UsageError."""
        config: Any = network.config
        positions = self.places + first_position(config)
        with attending(config, ATTENTION):
            output: Any = network(
                input_ids=self.ids[None], position_ids=positions[None],
                cu_seq_lens_q=self.offsets, max_length_q=self.longest, seq_idx=self.owner,
            )  # fmt: skip
        states: Tensor = output.last_hidden_state[0]
        return states

    def mean(self, states: Tensor) -> Tensor:
        """Return the mean of each row's states."""
        return self._reduced(states, "mean")

    def max(self, states: Tensor) -> Tensor:
        """Return the largest of each row's states, number by number."""
        return self._reduced(states, "max")

    def cls(self, states: Tensor) -> Tensor:
        """Return the state of each row's first token."""
        return states[self.offsets[: self.rows]]

    def _reduced(self, states: Tensor, how: str) -> Tensor:
        lengths = self.offsets[: self.rows + 1].diff().long()
        known = states[: self.used]
        return torch.segment_reduce(known, how, lengths=lengths, axis=0, unsafe=True)


def first_position(config: Any) -> int:
    """Return the number of a row's first position; raises UsageError for an unknown network."""
    kind = str(config.model_type)
    if kind not in _AFTER_PADDING:
        known = ", ".join(_AFTER_PADDING)
        raise UsageError(f"a {kind} network takes no packed batches, only {known}: packed=false")
    return int(config.pad_token_id) + 1 if _AFTER_PADDING[kind] else 0


def is_packable(config: Any) -> bool:
    """Tell whether such a network takes packed batches, and this torch has the attention."""
    try:
        from torch.nn.attention import varlen  # noqa: F401 - since torch 2.10
    except ImportError:
        return False
    return config.model_type in _AFTER_PADDING


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
    *, scaling: float, cu_seq_lens_q: Tensor, max_length_q: int, seq_idx: Tensor, **ignored: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Return attention of shape (1, tokens, heads, size), each token's over its own row.

    Sides have shape (1, heads, tokens, size). `varlen_attn` drops no weights, so none are dropped.
    """
    if query.is_cuda and query.dtype in _HALF:
        q, k, v = (side[0].transpose(0, 1) for side in (query, key, value))
        return attend_by_kernel(q, k, v, cu_seq_lens_q, max_length_q, scaling)[None], None
    same_row = seq_idx[:, None] == seq_idx
    out = nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=same_row, scale=scaling
    )
    return out.transpose(1, 2), None


def attend_by_kernel(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor, longest: int, scaling: float
) -> Tensor:
    """Return attention by torch's kernel for CUDA; all have shape (tokens, heads, size)."""
    from torch.nn.attention.varlen import varlen_attn

    out = varlen_attn(query, key, value, offsets, offsets, longest, longest, scale=scaling)
    return cast(Tensor, out)


AttentionInterface.register(ATTENTION, attend)  # no mask of that name: transformers makes none


@contextmanager
def attending(config: Any, name: str) -> Iterator[None]:
    """Let the network attend by this implementation of transformers; afterwards as it did."""
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before


def _filled(rows: Ragged, pad_id: int, tokens: int, longest: int) -> Ragged:
    """Put padding in rows of its own behind the rows, then empty rows."""
    tail = max(0, tokens - len(rows.values))
    lengths = [longest] * (tail // longest) + [tail % longest]
    count = len(rows) + len(lengths)
    lengths += [0] * ((1 << (count - 1).bit_length()) - count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Ragged.joined([rows, Ragged(np.full(tail, pad_id, np.int32), offsets)])


def _moved(values: "np.ndarray[Any, Any]", device: str | torch.device) -> Tensor:
    """Put an array on the device; to CUDA from pinned memory, so that nothing waits for it."""
    found = torch.from_numpy(values)
    cuda = torch.device(device).type == "cuda"
    return (found.pin_memory() if cuda else found).to(device, non_blocking=True)
