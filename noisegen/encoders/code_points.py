"""CANINE: a network whose tokens are characters (Clark and others, 2022, "CANINE").

An id is the code point of a character, so there is no vocabulary and no tokenizer.json.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn
from torch.nn.functional import pad

from noisegen.encoders.encoder import Ragged, digest_of, replace_surrogates

KIND = "canine"  # model_type in config.json
LENGTH_MAX = 2_048  # maximum characters per text
# Padding after the longest row. CANINE joins blocks of 4 characters, drops the last block, and
# reads 2 characters ahead: with 9 or more, a row's states depend on no other row of its batch.
_PADDING = 12


class CodePoints(NamedTuple):
    """A text or pair as ids, with the fields of an Encoding of the library `tokenizers`."""

    ids: list[int]
    type_ids: list[int]  # 0 for the first text and its ends, 1 for the second
    offsets: list[tuple[int, int]]  # [start, stop) of each id in its text, (0, 0) for ends
    overflowing: bool  # true if characters were cut off


@dataclass(frozen=True)
class CodePointTokenizer:
    """A tokenizer whose tokens are characters: the ids are [CLS], their code points and [SEP].

    `tokenizer` is CANINE's tokenizer in transformers, which knows the ids of [CLS] and [SEP].
    """

    tokenizer: Any
    max_length: int

    @property
    def pad_id(self) -> int:
        """The id that pads shorter rows to the length of the longest row in a batch."""
        return int(self.tokenizer.pad_token_id)

    @property
    def digest(self) -> str:
        """A hex digest of `max_length` and the ids of special tokens."""
        return digest_of(KIND, self.max_length, *self.tokenizer.all_special_ids)

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of code points per text, cut to `max_length`."""
        return Ragged.of([encoding.ids for encoding in self.encodings(texts)])

    def encodings(self, texts: Sequence[str | tuple[str, str]]) -> list[CodePoints]:
        """Return the ids, types and offsets of each text or pair; of a pair, the longer is cut."""
        encodings = []
        for text in texts:
            room = self.max_length - (2 if isinstance(text, str) else 3)
            if isinstance(text, str):
                parts = [text[:room]]
            else:
                second = text[1][: max(room // 2, room - len(text[0]))]
                parts = [text[0][: room - len(second)], second]
            encodings.append(self._joined(parts, is_cut=sum(map(len, parts)) < len("".join(text))))
        return encodings

    def _joined(self, parts: Sequence[str], *, is_cut: bool) -> CodePoints:
        ids, types, offsets = [int(self.tokenizer.cls_token_id)], [0], [(0, 0)]
        for kind, text in enumerate(parts):
            ids += [*map(ord, replace_surrogates(text)), int(self.tokenizer.sep_token_id)]
            offsets += [*((at, at + 1) for at in range(len(text))), (0, 0)]
            types += [kind] * (len(text) + 1)
        return CodePoints(ids, types, offsets, is_cut)

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files into the folder of a model."""
        self.tokenizer.save_pretrained(folder)


def pad_batches(network: nn.Module) -> None:
    """Let a CANINE network pad its batches, so that a text's states depend on no other text."""
    network.register_forward_pre_hook(_padded, with_kwargs=True)
    network.register_forward_hook(_cut)


def _padded(network: Any, inputs: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return inputs, {name: pad(tensor, (0, _PADDING)) for name, tensor in named.items()}


def _cut(network: Any, inputs: Any, output: Any) -> None:
    output.last_hidden_state = output.last_hidden_state[:, :-_PADDING]
