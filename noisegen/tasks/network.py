"""An encoder with linear heads: one for the label of a text, one for the tag of every token."""

from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from noisegen.encoders.ragged import Ints, Ragged
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import Padded
from noisegen.tasks.pieces import NO_PIECE, Pieces
from noisegen.training.computation import attending_fast, uses_bf16

IGNORED = -100  # the class that cross-entropy leaves out


@dataclass(frozen=True)
class Examples:
    """Rows ready to train on: pieces, the class of each token's tag, the class of each label."""

    pieces: Pieces
    tags: Ragged
    labels: Ints

    def __len__(self) -> int:
        return len(self.pieces)


def examples(pieces: Pieces, tags: Sequence[Sequence[int]], labels: Sequence[int]) -> Examples:
    """Put classes to pieces; a token without a piece is left out of the loss."""
    classes = Ragged.of(tags)
    classes.values[pieces.firsts.values == NO_PIECE] = IGNORED
    return Examples(pieces, classes, np.array(labels, np.int64))


@dataclass(frozen=True)
class TaskBatch:
    """A batch on its device; `types` where the network knows sentences of a pair apart.

    `firsts` (rows, tokens) has the place of every token's first piece, 0 where there is none; it
    ends at the last token that has one in any row: a row may have far more tokens than pieces.
    """

    padded: Padded
    types: Tensor | None
    firsts: Tensor

    @classmethod
    def of(
        cls, pieces: Pieces, rows: Ints, pad_id: int, device: torch.device, *, typed: bool
    ) -> "TaskBatch":
        """Make one of some rows."""
        types = torch.from_numpy(pieces.types.take(rows).padded(0)).to(device) if typed else None
        firsts = pieces.firsts.take(rows).padded(NO_PIECE)
        stop = int(np.flatnonzero((firsts != NO_PIECE).any(0)).max(initial=-1)) + 1
        places = torch.from_numpy(firsts[:, :stop]).clamp(min=0).to(device)
        return cls(Padded.of(pieces.ids.take(rows), pad_id, device), types, places)


class TaskNetwork(nn.Module):
    """Encoder and heads; the encoder is a copy, and has rows of its embedding for `kept` ids alone.

    The label is read from the first piece, [CLS] or <s>, a tag from the first piece of its token.
    New weights come from torch's generator.
    """

    def __init__(
        self, encoder: SentenceEncoder, kept: Ints, labels: int, tags: int, device: torch.device
    ) -> None:
        super().__init__()
        self.network = deepcopy(encoder.network)
        keep_embeddings(self.network, kept)
        self.config: Any = self.network.config
        self.pad_id, self.device = encoder.tokenizer.pad_id, device
        self.typed = getattr(self.config, "type_vocab_size", 0) > 1
        hidden: int = encoder.config.hidden_size
        self.dropout = nn.Dropout(getattr(encoder.config, "hidden_dropout_prob", 0.1))
        self.label_head = nn.Linear(hidden, labels) if labels else None
        self.tag_head = nn.Linear(hidden, tags) if tags else None
        self.bf16 = uses_bf16("auto", device)
        self.to(device)

    def forward(self, batch: TaskBatch) -> tuple[Tensor | None, Tensor | None]:
        """Return logits (rows, labels) and (rows, tokens in `firsts`, tags); None without head."""
        states = self.dropout(self._states(batch))
        label = self.label_head(states[:, 0]) if self.label_head is not None else None
        if self.tag_head is None:
            return label, None
        places = batch.firsts[..., None].expand(-1, -1, states.shape[-1])
        return label, self.tag_head(states.gather(1, places))

    def batch(self, pieces: Pieces, rows: Ints) -> TaskBatch:
        """Put rows on the device."""
        return TaskBatch.of(pieces, rows, self.pad_id, self.device, typed=self.typed)

    def _states(self, batch: TaskBatch) -> Tensor:
        typed = {} if batch.types is None else {"token_type_ids": batch.types}
        fast = attending_fast(self.config, batch.padded) if self.bf16 else nullcontext()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16), fast:
            output: Any = self.network(
                input_ids=batch.padded.ids, attention_mask=batch.padded.mask.long(), **typed
            )
        states: Tensor = output.last_hidden_state.float()
        return states


def keep_embeddings(network: nn.Module, kept: Ints) -> None:
    """Leave the network the embeddings of these ids alone, which are renumbered by their place.

    Pieces that no text has get no gradient, so without weight decay nothing changes but the cost:
    250,000 rows of 384 numbers take 0.14 s of a core for each update, and 1.5 GB.
    """
    holder: Any = network
    full = holder.get_input_embeddings()
    rows = torch.from_numpy(kept).to(full.weight.device)
    weights = full.weight.detach()[rows].clone()
    made: Any = nn.Embedding.from_pretrained  # unlike the constructor it draws no random weights
    holder.set_input_embeddings(made(weights, freeze=False, padding_idx=full.padding_idx))
