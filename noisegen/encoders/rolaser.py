"""The encoders RoLASER, c-RoLASER and LASER3 from a user's own fairseq checkpoints.

The layout of checkpoints, the pieces and the pooling follow the repositories lydianish/fairseq and
lydianish/LASER (branch rolaser). Nothing in the files is executed. The network is plain torch;
fairseq is not needed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from noisegen.encoders.character_cnn import PAD as NO_WORD
from noisegen.encoders.character_cnn import CharacterCNN, WordIds, renamed, split_words
from noisegen.encoders.encoder import Ragged, replace_surrogates
from noisegen.encoders.laser2 import (
    END,
    PAD,
    SPECIAL,
    START,
    UNKNOWN,
    LaserEncoder,
    only_file,
    open_pieces,
)
from noisegen.encoders.stored import check_sizes, load_checkpoint, reading
from noisegen.encoders.tokens import Padded, naming_panics
from noisegen.errors import SourceError
from noisegen.text.normalize import laser_text

Split = Callable[[str], list[str]]  # splits a prepared text into pieces, or words for c-RoLASER
Count = Annotated[int, msgspec.Meta(ge=1)]
_NEEDED = (
    "RoLASER is rolaser.pt, rolaser.cvocab and roberta-base's tokenizer.json, c-RoLASER "
    "c-rolaser.pt and c-rolaser.cvocab, LASER3 a .pt, a .cvocab and an .spm"
)
_TOKENS_MIN = 3  # minimum length of a row: a first token, a piece, a last token
_POOLINGS = {"maxpool": "max", "meanpool": "mean", "cls": "cls"}
_FLAG = re.compile(r" #fairseq:(overwrite|duplicate)$")
# Modules of a transformer layer: name in fairseq -> name in torch.
_LAYER = {
    "self_attn.out_proj": "self_attn.out_proj",
    "self_attn_layer_norm": "norm1",
    "fc1": "linear1",
    "fc2": "linear2",
    "final_layer_norm": "norm2",
}
_SIDES = ("q_proj", "k_proj", "v_proj")


class FairseqSettings(msgspec.Struct):
    """Settings of the encoder in a fairseq checkpoint; the defaults are fairseq's."""

    encoder_attention_heads: Count
    sentemb_criterion: Literal["maxpool", "meanpool", "cls"] = "maxpool"
    prepend_bos: bool = False
    encoder_normalize_before: bool = False
    activation_fn: Literal["relu", "gelu"] = "relu"
    no_scale_embedding: bool = False
    no_token_positional_embeddings: bool = False
    encoder_character_embeddings: bool = False
    max_source_positions: Count | None = None


class FairseqCheckpoint(NamedTuple):
    """The weights of an encoder by name, without the prefix `encoder.`, and its settings."""

    weights: dict[str, Tensor]
    settings: FairseqSettings


class RoLaser(LaserEncoder):
    """RoLASER's network: embeddings of pieces or words, transformer, token projection, pooling."""

    tokens = 4_096  # maximum tokens per forward pass

    def __init__(
        self,
        name: str,
        checkpoint: FairseqCheckpoint,
        vocabulary: Mapping[str, int],
        split: Split,
        files: tuple[Path, ...],
    ) -> None:
        super().__init__(name, files)
        weights, settings = checkpoint.weights, checkpoint.settings
        self.settings, self._vocabulary, self._split = settings, vocabulary, split
        self.layers = _transformer(weights, settings)
        hidden = weights["layers.0.fc1.weight"].shape[1]
        self.scale = 1.0 if settings.no_scale_embedding else hidden**0.5
        embeddings = _part(weights, "embed_tokens.")
        if settings.encoder_character_embeddings:
            self.pad_id, self.words = NO_WORD, WordIds()
            embeddings = {renamed(key): value for key, value in embeddings.items()}
            self.embed_tokens: nn.Module = CharacterCNN(hidden, self.words)
        else:
            self.embed_tokens = nn.Embedding(*embeddings["weight"].shape)
        self.embed_tokens.load_state_dict(embeddings)
        self.normalize: nn.Module | None = None
        if layer_norm := _part(weights, "layernorm_embedding."):
            self.normalize = nn.LayerNorm(hidden)
            self.normalize.load_state_dict(layer_norm)
        self.projection = _projection(weights.get("output_projection.weight"), hidden)
        self.width = hidden if self.projection is None else self.projection.out_features
        self.learned = weights.get("embed_positions.weight")
        self.longest = settings.max_source_positions or 1_024
        if self.learned is not None:
            self.longest = min(self.longest, len(self.learned) - PAD - 1)
        if self.longest < _TOKENS_MIN:
            raise ValueError(f"it takes {self.longest} tokens")
        self.requires_grad_(False).float()

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Prepare the texts as LASER does, and return one row of ids per text.

        The ids are ids of pieces, or for c-RoLASER ids of words.
        """
        ids_of = self._word_ids if self.settings.encoder_character_embeddings else self._piece_ids
        return Ragged.of([ids_of(self._split(laser_text(replace_surrogates(t)))) for t in texts])

    def _piece_ids(self, pieces: list[str]) -> list[int]:
        """Return the row of ids for the pieces of a text, cut to the maximum length.

        The row ends with END. It begins with START if the checkpoint sets `prepend_bos`.
        """
        first = [START] if self.settings.prepend_bos else []
        ids = [self._vocabulary.get(piece, UNKNOWN) for piece in pieces]
        return [*first, *ids[: self.longest - len(first) - 1], END]

    def _word_ids(self, words: list[str]) -> list[int]:
        """Return the ids of a text's words, with padding up to the text's number of characters.

        c-RoLASER's padding mask counts the characters of a text, but its network reads words, which
        are fewer. So its transformer also attends to the padding after the words, and the vectors
        depend on it.
        """
        ids = []
        for word in words:
            known = "".join(sign if sign in self._vocabulary else "<unk>" for sign in word)
            ids.append(self.words.known.get(known) or self.words.add(known))
        characters = max(1, sum(map(len, words)) + len(words))  # one space per word
        length = self.settings.prepend_bos + characters + 1
        return [*ids, *[NO_WORD] * (length - len(ids))][: self.longest]

    def forward(self, batch: Padded) -> Tensor:
        """Return one vector per row of a batch, shape (rows, width)."""
        states = self.scale * self.embed_tokens(batch.ids)
        if not self.settings.no_token_positional_embeddings:
            states = states + self._positions(*states.shape[1:]).to(states)
        if self.normalize is not None:
            states = self.normalize(states)
        states = self.layers(states, src_key_padding_mask=~batch.mask)
        if self.projection is not None:
            states = self.projection(states)
        return batch.pooled(states, _POOLINGS[self.settings.sentemb_criterion])

    def _positions(self, length: int, hidden: int) -> Tensor:
        """Return the position vectors of a row of `length` tokens, shape (length, hidden).

        They are the checkpoint's learned vectors, or sines and cosines if it has none. The first
        token has position PAD + 1, as in fairseq.
        """
        if self.learned is not None:
            return self.learned[PAD + 1 : PAD + 1 + length]
        half = hidden // 2
        rates = torch.exp(torch.arange(half) * -(log(10_000) / (half - 1)))
        angles = torch.arange(PAD + 1, PAD + 1 + length)[:, None] * rates
        signs = torch.cat([angles.sin(), angles.cos()], 1)
        return nn.functional.pad(signs, (0, hidden - 2 * half))


def _named(value: Any) -> Mapping[str, Any]:
    """Return settings, given as a dictionary or a namespace, as a mapping.

    Other objects give {}.
    """
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})


def _part(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return {name without `prefix`: weight} for the weights whose names begin with `prefix`."""
    return {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}


def _projection(matrix: Tensor | None, hidden: int) -> nn.Linear | None:
    """Return the linear layer that projects token states, with the weights `matrix`.

    Returns None if `matrix` is None; raises ValueError for an empty tensor.
    """
    if matrix is None:
        return None
    if not matrix.numel():
        raise ValueError("its projection is empty")
    projection = nn.Linear(hidden, len(matrix), bias=False)
    projection.load_state_dict({"weight": matrix})
    return projection


def _transformer(weights: Mapping[str, Tensor], settings: FairseqSettings) -> nn.TransformerEncoder:
    """Return the transformer's layers with the checkpoint's weights.

    Raises KeyError for missing weights, RuntimeError or ValueError for weights of unfit shapes.
    """
    count = len({name.split(".")[1] for name in weights if name.startswith("layers.")})
    inner, hidden = weights["layers.0.fc1.weight"].shape
    if hidden % settings.encoder_attention_heads:
        raise ValueError(f"{hidden} is not a multiple of {settings.encoder_attention_heads} heads")
    with torch.device("meta"):  # no memory: `load_state_dict` assigns the file's tensors
        layer = nn.TransformerEncoderLayer(
            hidden,
            settings.encoder_attention_heads,
            inner,
            activation=settings.activation_fn,
            batch_first=True,
            norm_first=settings.encoder_normalize_before,
        )
        last = nn.LayerNorm(hidden) if "layer_norm.weight" in weights else None
        layers = nn.TransformerEncoder(layer, count, last, enable_nested_tensor=False)
    named = {f"norm.{name}": value for name, value in _part(weights, "layer_norm.").items()}
    for number in range(count):
        part = _part(weights, f"layers.{number}.")
        for end in ("weight", "bias"):
            sides = [part[f"self_attn.{side}.{end}"] for side in _SIDES]
            named[f"layers.{number}.self_attn.in_proj_{end}"] = torch.cat(sides)
            for theirs, ours in _LAYER.items():
                named[f"layers.{number}.{ours}.{end}"] = part[f"{theirs}.{end}"]
    layers.load_state_dict(named, assign=True)
    return layers


def open_rolaser(folder: str | Path) -> RoLaser:
    """Open a folder with a fairseq checkpoint (*.pt), its vocabulary (*.cvocab), and a tokenizer.

    The tokenizer is a SentencePiece model (*.spm), RoBERTa's tokenizer.json, or RoBERTa's
    vocab.json and merges.txt. c-RoLASER needs no tokenizer. Raises SourceError for missing or wrong
    files, MissingExtra without sacremoses or sentencepiece.
    """
    folder = Path(folder)
    path, symbols = (only_file(folder, f"*.{end}", _NEEDED) for end in ("pt", "cvocab"))
    laser_text("")  # reports a missing sacremoses before the slow reading of the checkpoint
    weights, settings = checkpoint = _read_checkpoint(path)
    vocabulary = read_vocabulary(symbols)
    if not settings.encoder_character_embeddings:
        rows = len(weights["embed_tokens.weight"])
        size = max(vocabulary.values()) + 1
        # There may be one more embedding than symbols: fairseq adds the symbol <mask>.
        if rows not in (size, size + ("<mask>" not in vocabulary)):
            sizes = f"{size:,} symbols, {path.name} {rows:,} embeddings"
            raise SourceError(f"{symbols} does not belong to the checkpoint: it has {sizes}")
    split, files = _open_split(folder, settings)
    with reading(path, RuntimeError, LookupError, ValueError, TypeError, hint="; it is no RoLASER"):
        files = (path, symbols, *files)
        encoder = RoLaser(f"rolaser:{folder}", checkpoint, vocabulary, split, files).eval()
        if not np.isfinite(encoder.encode(["a"])).all():
            raise ValueError("its vectors are no numbers")
        return encoder


def _read_checkpoint(path: Path) -> FairseqCheckpoint:
    """Read the encoder's weights and settings from a fairseq checkpoint; raises SourceError."""
    content = load_checkpoint(path, mmap=True, inert=True)
    found = content if isinstance(content, dict) else {}
    try:
        settings = msgspec.convert(_known_settings(found), FairseqSettings)
        weights = msgspec.convert(found.get("model"), dict[str, Tensor])
    except msgspec.ValidationError as error:
        raise SourceError(f"{path} is not a checkpoint of RoLASER: {error}") from error
    check_sizes(weights, path)
    prefix = "encoder." if any(name.startswith("encoder.") for name in weights) else ""
    part = {name: value.clone() for name, value in _part(weights, prefix).items()}
    table = part.get("embed_tokens.weight")
    if not settings.encoder_character_embeddings and (table is None or table.dim() != 2):
        raise SourceError(f"{path} is not a checkpoint of RoLASER: no {prefix}embed_tokens.weight")
    return FairseqCheckpoint(part, settings)


def _known_settings(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a checkpoint that are fields of FairseqSettings, {name: value}.

    A checkpoint stores its settings under `cfg`, an older one under `args`.
    """
    configured = _named(content.get("cfg")).get("model")
    named = _named(content.get("args") if configured is None else configured)
    return {name: named[name] for name in FairseqSettings.__struct_fields__ if name in named}


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read a dictionary of fairseq with lines `SYMBOL COUNT [FLAG]`; return the id of each symbol.

    The special symbols have the ids 0 to 3; the ids of the other symbols follow in the order of the
    lines. A line that repeats a symbol is skipped, unless it has the flag `#fairseq:duplicate`,
    which gives the symbol a new id. Raises SourceError.
    """
    vocabulary, count = dict(SPECIAL), len(SPECIAL)
    with reading(path, OSError, ValueError, hint="; it is no dictionary of fairseq"):
        for line in path.read_text("utf-8").split("\n"):
            if not line.strip():
                continue
            flag = _FLAG.search(line := line.rstrip())
            symbol, _, number = (line[: flag.start()] if flag else line).rpartition(" ")
            int(number)
            if symbol not in vocabulary or (flag and flag[1] == "duplicate"):
                vocabulary[symbol], count = count, count + 1
    return vocabulary | SPECIAL


def _open_split(folder: Path, settings: FairseqSettings) -> tuple[Split, tuple[Path, ...]]:
    """Return the function that splits prepared texts, and the tokenizer files that it uses.

    Raises SourceError if the folder has no tokenizer, or a damaged one.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers

    if settings.encoder_character_embeddings:
        return split_words, ()
    if models_found := sorted(folder.glob("*.spm")):
        pieces = open_pieces(models_found[0])
        return lambda text: pieces.encode(text, out_type=str), (models_found[0],)
    whole, parts = folder / "tokenizer.json", (folder / "vocab.json", folder / "merges.txt")
    files = (whole,) if whole.is_file() else parts
    if not all(file.is_file() for file in files):
        raise SourceError(f"{folder} has no tokenizer; {_NEEDED}")
    with naming_panics(files[0]):
        if whole.is_file():
            backend = Tokenizer.from_file(str(whole))
        else:
            backend = Tokenizer(models.BPE.from_file(*map(str, parts)))
            backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.no_truncation()
    return lambda text: backend.encode(text, add_special_tokens=False).tokens, files
