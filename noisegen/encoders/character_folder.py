"""Encoders that read the characters of words: making, saving and opening them.

The config.json of a saved folder has the model type `noisegen_characters`, so that other programs
refuse it instead of opening a BERT with random word embeddings. Its modules.json has the import
path of `CharacterTransformer`, so saved folders cannot be opened if this file is renamed.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from noisegen.encoders.character_cnn import (
    CHARACTER_KINDS,
    FILE,
    PAD,
    CharacterCNN,
    WordRules,
    WordTokenizer,
    renamed,
)
from noisegen.encoders.encoder import LENGTH_MAX, Tokenizer
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.stored import (
    check_config,
    read_json,
    read_weights,
    reading,
    reading_model,
    save_tensors,
    write_json,
)
from noisegen.errors import SourceError, UsageError

KIND = "noisegen_characters"
WEIGHTS = "model.safetensors"
NETWORKS = ("bert", "roberta")  # model types whose word embeddings can be replaced
# Name of CharacterBERT's character embeddings.
_CHARACTERS = "embeddings.word_embeddings._char_embedding_weights"
# Setting in config.json -> name of a weight whose first dimension must have this size.
_SIZES = {
    "hidden_size": "embeddings.LayerNorm.bias",
    "intermediate_size": "encoder.layer.0.intermediate.dense.bias",
    "max_position_embeddings": "embeddings.position_embeddings.weight",
}
_OF_A_LAYER = re.compile(r"\.\d+\..*\.(weight|bias)$")


def character_student(
    config: Any = None,
    head: HeadSettings | None = None,
    *,
    max_length: int = LENGTH_MAX,
    lower: bool = False,
) -> SentenceEncoder:
    """Return a new encoder that reads the characters of words; its weights are random.

    `config` is a BertConfig (default: 12 layers of width 768) or a RobertaConfig. `max_length` is
    the maximum number of words per text. With `lower`, texts are converted to lower case. Raises
    UsageError for another type of network, or for fewer positions than `max_length` needs.
    """
    from transformers import BertConfig

    tokenizer = WordTokenizer(max_length, lower=lower)
    network = character_network(config or BertConfig(), tokenizer)
    return SentenceEncoder(network, tokenizer, head or HeadSettings(), "char").eval()


def open_character_bert(folder: str | Path) -> SentenceEncoder:
    """Open a folder of CharacterBERT (config.json and its weights) as the start of a student.

    The tokenizer converts texts to lower case, as in CharacterBERT's training. The head is mean
    pooling. Raises SourceError for another model.
    """
    from transformers import BertConfig

    folder = Path(folder)
    given, weights = read_json(folder / "config.json"), read_weights(folder / WEIGHTS)
    found = [name for name in weights if name.endswith(_CHARACTERS)]
    if len(found) != 1:
        raise SourceError(f"{folder} is no CharacterBERT: it has no weights {_CHARACTERS}")
    check_config(given, folder / "config.json")
    prefix = found[0].removesuffix(_CHARACTERS)
    known = given.keys() & BertConfig().to_dict().keys() - {"model_type", "architectures", "dtype"}
    with reading_model(folder):
        config = BertConfig(**{name: given[name] for name in known})
        for size, name in _SIZES.items():  # checked first: a network too large fills the memory
            if len(weights[prefix + name]) != getattr(config, size):
                raise ValueError(f"{size} of its config.json differs from its weights")
        longest = min(LENGTH_MAX, config.max_position_embeddings)
        encoder = character_student(config, max_length=longest, lower=True)
        ours = {renamed(name.removeprefix(prefix)): weights[name] for name in weights}
        missing, unexpected = encoder.network.load_state_dict(ours, strict=False)
    check_weights(folder, encoder.network, missing, unexpected)
    return encoder


def character_network(config: Any, tokenizer: WordTokenizer) -> Any:
    """Return a new transformers network whose word embeddings are a CharacterCNN.

    `config` is a BertConfig or RobertaConfig. The CNN reads the word ids of `tokenizer`. Raises
    UsageError for another type of network, or if texts may have more words than it has positions.
    """
    from transformers import AutoConfig, AutoModel

    if config.model_type not in NETWORKS:
        known = " and ".join(NETWORKS)
        raise UsageError(f"characters: {config.model_type!r} is not supported, only {known}")
    settings = config.to_dict() | {"vocab_size": CHARACTER_KINDS, "pad_token_id": PAD}
    positions = config.max_position_embeddings - (config.model_type == "roberta")
    if tokenizer.max_length > positions:
        needed = f"{tokenizer.max_length} words per text, but the network has {positions} positions"
        raise UsageError(f"characters: {needed}; lower max_length")
    untyped: Any = AutoModel
    network = untyped.from_config(AutoConfig.for_model(**settings))
    network.pooler = None  # no head uses it, and its weights would never be trained
    network.set_input_embeddings(
        CharacterCNN(config.hidden_size, tokenizer.table, config.initializer_range)
    )
    return network


def save_network(network: Any, tokenizer: Tokenizer, folder: Path) -> None:
    """Write the network and its tokenizer to config.json, model.safetensors and words.json."""
    config = {"model_type": KIND, "network": network.config.to_dict()}
    write_json(folder / "config.json", config)
    weights = {name: value.contiguous() for name, value in network.state_dict().items()}
    save_tensors(weights, folder / WEIGHTS, format="pt")
    tokenizer.save(folder)


def open_network(folder: Path) -> tuple[Any, WordTokenizer]:
    """Return the network and the tokenizer in a folder of `save_network`; raises SourceError."""
    from transformers import AutoConfig

    config, rules = read_json(folder / "config.json"), read_json(folder / FILE, WordRules)
    inner = config.get("network") if config.get("model_type") == KIND else None
    if not isinstance(inner, dict) or inner.get("model_type") not in NETWORKS:
        raise SourceError(f"{folder}/config.json describes no character-aware encoder")
    with reading_model(folder):
        tokenizer = WordTokenizer(rules.max_length, lower=rules.lower)
        network = character_network(AutoConfig.for_model(**inner), tokenizer)
    weights = read_weights(folder / WEIGHTS)
    with reading(folder, RuntimeError, hint="; its weights do not fit config.json"):
        missing, unexpected = network.load_state_dict(weights, strict=False)
    check_weights(folder, network, missing, unexpected)
    return network.eval(), tokenizer


def check_weights(
    folder: Path, network: Any, missing: Iterable[str], unexpected: Iterable[str]
) -> None:
    """Raise SourceError if a folder lacks weights, or has layers that the network lacks.

    `missing` names the weights that only the network has, `unexpected` the weights that only the
    folder has. Unexpected weights outside the network's layers belong to heads, and are ignored.
    """
    if lacking := sorted(missing):
        raise SourceError(f"{folder} lacks {len(lacking)} weights, the first is {lacking[0]}")
    names = (name.removeprefix(f"{network.base_model_prefix}.") for name in sorted(unexpected))
    parts = {part for part, _ in network.named_children()}
    if extra := [n for n in names if n.partition(".")[0] in parts and _OF_A_LAYER.search(n)]:
        raise SourceError(
            f"{folder} has {len(extra)} weights of layers that its config.json lacks, the first is "
            f"{extra[0]}; get the model again"
        )


class CharacterTransformer(nn.Module):
    """The first module of a sentence-transformers model: turns texts into a hidden state per word.

    `SentenceTransformer(folder, trust_remote_code=True)` opens it if noisegen is installed.
    """

    save_in_root = True
    modalities = ("text",)

    network: Any

    def __init__(self, network: nn.Module, tokenizer: WordTokenizer) -> None:
        super().__init__()
        self.network, self.tokenizer = network, tokenizer

    @classmethod
    def load(cls, folder: str, subfolder: str = "", **_: object) -> "CharacterTransformer":
        """Open the module's folder; further arguments of sentence-transformers have no effect."""
        return cls(*open_network(Path(folder) / subfolder))

    def save(self, folder: str, **_: object) -> None:
        """Write the network and the tokenizer into a folder, for `load`."""
        save_network(self.network, self.tokenizer, Path(folder))

    @property
    def max_seq_length(self) -> int:
        """The maximum number of words per text, [CLS] and [SEP] included."""
        return self.tokenizer.max_length

    @max_seq_length.setter
    def max_seq_length(self, words: int) -> None:
        self.tokenizer = self.tokenizer.with_rules(words, lower=self.tokenizer.lower)

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **_: object
    ) -> dict[str, Tensor]:
        """Return texts as `characters` (texts, words, 50), and an `attention_mask`, 0 at padding.

        The result has character ids, not word ids: a word id is valid in one process only, and data
        loaders use several processes.
        """
        ids = self.tokenizer.tokenize([f"{prompt or ''}{text}" for text in inputs])
        words, word_of = self.tokenizer.table.distinct(ids.padded(self.tokenizer.pad_id))
        mask = torch.arange(word_of.shape[1]) < torch.from_numpy(ids.lengths)[:, None]
        return {"characters": torch.from_numpy(words[word_of]), "attention_mask": mask.long()}

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the features with the hidden states of the words added as `token_embeddings`."""
        words = self.network.get_input_embeddings().of_characters(features["characters"])
        output = self.network(inputs_embeds=words, attention_mask=features["attention_mask"])
        return features | {"token_embeddings": output.last_hidden_state}

    def get_embedding_dimension(self) -> int:
        """Return the number of dimensions of a word's hidden state."""
        return int(self.network.config.hidden_size)
