"""The network of a character-aware encoder as a folder, for us and for sentence-transformers.

The folder's config.json says `noisegen_characters`, so that no other program takes it for a BERT
with random embeddings of words.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from noisegen.encoders.character_start import NETWORKS, character_network, load
from noisegen.encoders.character_words import FILE, WordTokenizer
from noisegen.encoders.files import read_json, read_weights, write_json
from noisegen.errors import SourceError, UsageError

KIND = "noisegen_characters"
WEIGHTS = "model.safetensors"


def save_network(network: Any, tokenizer: WordTokenizer, folder: Path) -> None:
    """Write config.json, model.safetensors and words.json."""
    from safetensors.torch import save_file

    said = {"model_type": KIND, "network": network.config.to_dict()}
    write_json(folder / "config.json", said)
    weights = {name: value.contiguous() for name, value in network.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    tokenizer.save(folder)


def open_network(folder: Path) -> tuple[Any, WordTokenizer]:
    """Return network and tokenizer that save_network wrote; raises SourceError."""
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig

    said, words = read_json(folder / "config.json"), read_json(folder / FILE)
    inner = said.get("network") if said.get("model_type") == KIND else None
    if not isinstance(inner, dict) or inner.get("model_type") not in NETWORKS:
        raise SourceError(f"{folder}/config.json is not of a character-aware encoder")
    try:
        tokenizer = WordTokenizer(int(words["max_length"]), lower=bool(words["lower"]))
        network = character_network(AutoConfig.for_model(**inner), tokenizer)
    except (
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
        UsageError,
        StrictDataclassError,
    ) as e:
        raise SourceError(f"cannot open the model {folder}: {' '.join(str(e).split())}") from e
    load(network, read_weights(folder / WEIGHTS), folder)
    return network.eval(), tokenizer


class CharacterTransformer(nn.Module):
    """The first module of sentence-transformers: texts to states of words.

    Opened by `SentenceTransformer(folder, trust_remote_code=True)`, where noisegen is installed.
    """

    save_in_root = True
    modalities = ("text",)

    network: Any

    def __init__(self, network: nn.Module, tokenizer: WordTokenizer) -> None:
        super().__init__()
        self.network, self.tokenizer = network, tokenizer

    @classmethod
    def load(cls, folder: str, subfolder: str = "", **_: Any) -> "CharacterTransformer":
        """Open a folder; settings meant for networks of transformers have no effect."""
        return cls(*open_network(Path(folder) / subfolder))

    def save(self, folder: str, **_: Any) -> None:
        """Write what `load` reads."""
        save_network(self.network, self.tokenizer, Path(folder))

    @property
    def max_seq_length(self) -> int:
        """How many words of a text are read."""
        return self.tokenizer.max_length

    @max_seq_length.setter
    def max_seq_length(self, words: int) -> None:
        self.tokenizer = self.tokenizer.with_rules(words, lower=self.tokenizer.lower)

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **_: Any
    ) -> dict[str, Tensor]:
        """Return `characters` (texts, words, 50) and the mask of words.

        Word ids would mean nothing to another process, and data loaders have several.
        """
        ids = self.tokenizer.tokenize([f"{prompt or ''}{text}" for text in inputs])
        words, where = self.tokenizer.table.distinct(ids.padded(self.tokenizer.pad_id))
        mask = torch.arange(where.shape[1]) < torch.from_numpy(ids.lengths)[:, None]
        return {"characters": torch.from_numpy(words[where]), "attention_mask": mask.long()}

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add the states of the words."""
        words = self.network.get_input_embeddings().of_characters(features["characters"])
        found = self.network(inputs_embeds=words, attention_mask=features["attention_mask"])
        return features | {"token_embeddings": found.last_hidden_state}

    def get_embedding_dimension(self) -> int:
        """How many numbers the state of a word has."""
        return int(self.network.config.hidden_size)
