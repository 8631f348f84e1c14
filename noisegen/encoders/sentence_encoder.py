"""The trainable encoder: a torch module with a tokenizer, a network and a head."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from typing import Any, cast

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import (
    Encoder,
    Progress,
    Ragged,
    Tokenizer,
    Vectors,
    autocast,
    half_precision,
    move,
    open_encoder,
)
from noisegen.encoders.head import HeadSettings, SentenceHead
from noisegen.encoders.tokens import (
    PREPARATIONS,
    Packed,
    Padded,
    by_length,
    with_preparation,
    with_prompt,
)
from noisegen.runs.progress import silent

# Maximum tokens per forward pass, padding included; 1,024 tokens fit the cache of a CPU core.
CPU_TOKENS, DEVICE_TOKENS = 1_024, 32_768


class Usage(msgspec.Struct, frozen=True):
    """How sentence-transformers uses a model: the content of config_sentence_transformers.json.

    `prompts` maps names to texts that are put before each text. `similarity_fn_name` names the
    similarity of two vectors. Vectors are cut to their first `truncate_dim` numbers (None: whole).
    """

    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None
    similarity_fn_name: str | None = None
    truncate_dim: int | None = None

    @property
    def prompt(self) -> str:
        """The default prompt; "" without one. Raises KeyError if `prompts` lacks its name."""
        return (self.default_prompt_name and self.prompts[self.default_prompt_name]) or ""


PLAIN = Usage()  # usage of a model whose folder has no config_sentence_transformers.json


class SentenceEncoder(nn.Module):
    """A trainable encoder: the head turns the token states of the network into a text's vector.

    `network` is a network of transformers: it takes `input_ids` and `attention_mask`, and has a
    `config` with `hidden_size`. The default prompt of `usage` is put before each text. Prompts that
    are not the default, similarity and truncation are kept for sentence-transformers.
    """

    def __init__(
        self,
        network: nn.Module,
        tokenizer: Tokenizer,
        head: HeadSettings,
        name: str = "encoder",
        usage: Usage = PLAIN,
    ) -> None:
        super().__init__()
        self.network = network
        self.config = cast(Any, network.config)
        self.tokenizer = with_prompt(tokenizer, usage.prompt)
        self.usage = usage
        self.head = SentenceHead(self.config.hidden_size, head)
        self.name = name

    @property
    def width(self) -> int:
        """The number of dimensions of a text's vector."""
        return self.head.width

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return next(self.parameters()).device

    @cached_property
    def digest(self) -> str:
        """A hex digest of weights, head and tokenizer; computed at its first use and kept."""
        digest = sha256(f"{self.head.settings} {self.tokenizer.digest}".encode())
        for name, value in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()

    def forward(self, batch: Padded | Packed) -> Tensor:
        """Return one vector per row of a batch, shape (rows, width), float32."""
        vectors: Tensor = self.head(batch.states(self.network), batch)
        return vectors

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width); a batch has texts of similar length."""
        return self.encode_ids(self.tokenizer.tokenize(texts), progress)

    def encode_ids(self, ids: Ragged, progress: Progress | None = None) -> Vectors:
        """Return one vector per row of token ids, shape (rows, width)."""
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


@contextmanager
def encoding_on(
    device: torch.device, encoder: Encoder, precision: str, tell: Callable[[str], None] = silent
) -> Iterator[torch.dtype | None]:
    """Let an encoder compute on a device in a with block; then move it back to the CPU.

    Yield the 16-bit type in which it computes, or None. It is chosen by `precision`, as in
    `half_precision`; only a SentenceEncoder computes in 16 bits. `tell` gets a line if the encoder
    cannot move.
    """
    half = half_precision(precision, device) if isinstance(encoder, SentenceEncoder) else None
    move(encoder, device, tell)
    try:
        with autocast(half, device):
            yield half
    finally:
        move(encoder, torch.device("cpu"))


class PreparedEncoder(nn.Module):
    """An encoder that first prepares each text with a function of PREPARATIONS.

    It cannot be trained.
    """

    def __init__(self, encoder: Encoder, preparation: str) -> None:
        super().__init__()
        self.encoder, self.preparation = encoder, preparation
        self.name, self.width = f"{preparation}:{encoder.name}", encoder.width

    @property
    def digest(self) -> str:
        """A hex digest of the preparation's name and the inner encoder's digest."""
        return sha256(f"{self.preparation} {self.encoder.digest}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per prepared text, shape (texts, width)."""
        return self.encoder.encode(list(map(PREPARATIONS[self.preparation], texts)), progress)


def prepared(encoder: Encoder, preparation: str) -> Encoder:
    """Return the encoder with texts prepared by the function PREPARATIONS[`preparation`].

    A trainable encoder stays trainable. Raises MissingExtra if the preparation needs a package that
    is not installed.
    """
    PREPARATIONS[preparation]("")
    if not isinstance(encoder, SentenceEncoder):
        return PreparedEncoder(encoder, preparation)
    encoder.tokenizer = with_preparation(encoder.tokenizer, preparation)
    encoder.name = f"{preparation}:{encoder.name}"
    return encoder


def open_social(spec: str) -> Encoder:
    """Open `social:SPEC`: the encoder of SPEC, with texts prepared as in CT-XLMR-SE (section 3)."""
    return prepared(open_encoder(spec), "social")
