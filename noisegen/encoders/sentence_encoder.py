"""The encoder that can be trained: tokenizer, network and head as one torch module."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import Progress, Tokenizer, Vectors
from noisegen.encoders.head import Head, HeadSettings
from noisegen.encoders.packed import Packed
from noisegen.encoders.ragged import Ints, Ragged
from noisegen.encoders.tokens import Padded

CPU_TOKENS, DEVICE_TOKENS = 1_024, 32_768  # of a forward pass: a core's cache holds so many


class SentenceEncoder(nn.Module):
    """Texts to vectors, by a network of transformers and a head.

    `network` takes `input_ids` and `attention_mask` and has a `config` with `hidden_size`.
    """

    def __init__(
        self, network: nn.Module, tokenizer: Tokenizer, head: HeadSettings, name: str = "encoder"
    ) -> None:
        super().__init__()
        self.network = network
        self.config = cast(Any, network.config)
        self.tokenizer = tokenizer
        self.head = Head(self.config.hidden_size, head)
        self.name = name

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return self.head.width

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @cached_property
    def digest(self) -> str:
        """Names weights, head and tokenizer, as they are at the first use."""
        found = sha256(f"{self.head.settings} {self.tokenizer.digest}".encode())
        for name, value in sorted(self.state_dict().items()):
            found.update(name.encode())
            found.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return found.hexdigest()

    def forward(self, batch: Padded | Packed) -> Tensor:
        """Return shape (rows, width), float32."""
        vectors: Tensor = self.head(batch.states(self.network), batch)
        return vectors

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width); longest texts first, so that little is padding."""
        return self.encode_ids(self.tokenizer.tokenize(texts), progress)

    def encode_ids(self, ids: Ragged, progress: Progress | None = None) -> Vectors:
        """Return shape (rows, width), of texts that are tokenised."""
        out = np.zeros((len(ids), self.width), np.float32)
        budget = CPU_TOKENS if self.device.type == "cpu" else DEVICE_TOKENS
        training = self.training
        self.eval()
        with torch.inference_mode():
            for rows in by_length(ids.lengths, budget):
                batch = Padded.of(ids.take(rows), self.tokenizer.pad_id, self.device)
                out[rows] = self(batch).cpu().numpy()
                if progress:
                    progress(len(rows))
        self.train(training)
        return out


def by_length(lengths: Ints, budget: int) -> Iterator[Ints]:
    """Yield rows, longest first, in groups whose rectangle has at most `budget` tokens."""
    order = np.argsort(-lengths, kind="stable")
    at = 0
    while at < len(order):
        rows = max(1, budget // max(1, int(lengths[order[at]])))
        yield order[at : at + rows]
        at += rows
