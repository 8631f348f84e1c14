"""The character-aware student at its start: random weights, or those of a CharacterBERT folder."""

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from noisegen.encoders.character_cnn import CharacterCNN
from noisegen.encoders.character_words import CHARACTER_KINDS, PAD, WordTokenizer
from noisegen.encoders.encoder import LENGTH_MAX
from noisegen.encoders.files import read_json, read_weights
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import SourceError, UsageError

NETWORKS = ("bert", "roberta")  # whose embeddings of words can be taken out
# Names of weights: CharacterBERT's, and ours.
_RENAMED = (
    (re.compile(r"\._char_embedding_weights$"), ".characters.weight"),
    (re.compile(r"\.char_conv_(\d+)\."), r".convolutions.\1."),
    (re.compile(r"\._highways\._layers\."), ".highways."),
    (re.compile(r"\._projection\."), ".projection."),
)
_MARK = "embeddings.word_embeddings._char_embedding_weights"


def character_student(
    config: Any = None, head: HeadSettings | None = None, *,
    max_length: int = LENGTH_MAX, lower: bool = False,
) -> SentenceEncoder:  # fmt: skip
    """Return an encoder of words by their characters, its weights drawn from torch's generator.

    `config` is a BertConfig or RobertaConfig, 12 layers of 768 by default; `max_length` is in
    words. Raises UsageError for another network, or one with too few positions.
    """
    from transformers import BertConfig

    tokenizer = WordTokenizer(max_length, lower=lower)
    network = character_network(config or BertConfig(), tokenizer)
    return SentenceEncoder(network, tokenizer, head or HeadSettings(), "char").eval()


def character_network(config: Any, tokenizer: WordTokenizer) -> Any:
    """Return a network of transformers whose embeddings of words are a CharacterCNN."""
    from transformers import AutoConfig, AutoModel

    if config.model_type not in NETWORKS:
        raise UsageError(
            f"characters: {config.model_type!r} is not known, only {' and '.join(NETWORKS)}"
        )
    said = config.to_dict() | {"vocab_size": CHARACTER_KINDS, "pad_token_id": PAD}
    positions = config.max_position_embeddings - (config.model_type == "roberta")
    if tokenizer.max_length > positions:
        raise UsageError(
            f"characters: {tokenizer.max_length} words a text, but the network has {positions} "
            "positions; lower max_length"
        )
    made: Any = AutoModel  # it has no types
    network = made.from_config(AutoConfig.for_model(**said))
    network.pooler = None  # nothing here uses it, and its weights would never be trained
    network.set_input_embeddings(
        CharacterCNN(config.hidden_size, tokenizer.table, config.initializer_range)
    )
    return network


def open_character_bert(
    folder: str | Path, head: HeadSettings | None = None, *,
    max_length: int = LENGTH_MAX, lower: bool = False,
) -> SentenceEncoder:  # fmt: skip
    """Open a folder of CharacterBERT (config.json, model.safetensors) as a student's beginning.

    Raises SourceError for another model, or one whose weights are pickled.
    """
    from huggingface_hub.errors import StrictDataclassError
    from transformers import BertConfig

    folder = Path(folder)
    said = read_json(folder / "config.json")
    weights = read_weights(folder / "model.safetensors")
    found = [name for name in weights if name.endswith(_MARK)]
    if len(found) != 1:
        raise SourceError(f"{folder} is no CharacterBERT: no weights {_MARK}")
    known = BertConfig().to_dict().keys() - {"model_type"}
    try:
        config = BertConfig(**{key: said[key] for key in known & said.keys()})
    except StrictDataclassError as error:
        raise SourceError(f"{folder}/config.json: {' '.join(str(error).split())}") from error
    encoder = character_student(config, head, max_length=max_length, lower=lower)
    load(encoder.network, _renamed(weights, found[0].removesuffix(_MARK)), folder)
    return encoder


def _renamed(weights: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    out = {}
    for name, value in weights.items():
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            for pattern, ours in _RENAMED:
                name = pattern.sub(ours, name)
            out[name] = value
    return out


def load(network: Any, weights: dict[str, Tensor], folder: Path) -> None:
    """Give the network its weights; raises SourceError where one is missing or of another size."""
    try:
        missing = network.load_state_dict(weights, strict=False).missing_keys
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise SourceError(f"{folder}: weights do not fit config.json: {reason}") from error
    if missing:
        raise SourceError(f"{folder} lacks {len(missing)} weights, the first is {missing[0]}")
