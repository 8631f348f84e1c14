"""RoLASER, c-RoLASER and LASER3 from a user's own files, in plain torch: checkpoints of fairseq.

Layout, pieces and pooling are those of the repositories lydianish/fairseq and lydianish/LASER
(branch rolaser); nothing in the files is executed, and fairseq is not needed.
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

Split = Callable[[str], list[str]]  # a prepared text into pieces
Count = Annotated[int, msgspec.Meta(ge=1)]
_NEEDED = (
    "RoLASER is rolaser.pt, rolaser.cvocab and roberta-base's tokenizer.json, c-RoLASER "
    "c-rolaser.pt and c-rolaser.cvocab, LASER3 a .pt, a .cvocab and an .spm"
)
_TOKENS_MIN = 3  # the first, a piece, the last
_POOLINGS = {"maxpool": "max", "meanpool": "mean", "cls": "cls"}
_FLAG = re.compile(r" #fairseq:(overwrite|duplicate)$")
# Modules of a layer: fairseq's names, and torch's.
_LAYER = {
    "self_attn.out_proj": "self_attn.out_proj", "self_attn_layer_norm": "norm1", "fc1": "linear1",
    "fc2": "linear2", "final_layer_norm": "norm2",
}  # fmt: skip
_SIDES = ("q_proj", "k_proj", "v_proj")


class FairseqSettings(msgspec.Struct):
    """What `cfg` of a checkpoint says of its encoder, with the defaults of fairseq."""

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
    """The weights of an encoder, without `encoder.` before their names, and its settings."""

    weights: dict[str, Tensor]
    settings: FairseqSettings


class RoLaser(LaserEncoder):
    """A transformer over embeddings of pieces or words, a projection of each token, and pooling."""

    tokens = 4_096  # of one forward pass

    def __init__(
        self, name: str, checkpoint: FairseqCheckpoint, vocabulary: Mapping[str, int], split: Split,
        files: tuple[Path, ...],
    ) -> None:  # fmt: skip
        super().__init__(name, files)
        weights, settings = checkpoint.weights, checkpoint.settings
        self.settings, self._vocabulary, self._split = settings, vocabulary, split
        self.layers = _transformer(weights, settings)
        hidden = weights["layers.0.fc1.weight"].shape[1]
        self.scale = 1.0 if settings.no_scale_embedding else hidden**0.5
        part = _part(weights, "embed_tokens.")
        if settings.encoder_character_embeddings:
            self.pad_id, self.words = NO_WORD, WordIds()
            self.embed_tokens: nn.Module = CharacterCNN(hidden, self.words)
            part = {renamed(key): value for key, value in part.items()}
        else:
            self.embed_tokens = nn.Embedding(*part["weight"].shape)
        self.embed_tokens.load_state_dict(part)
        self.normalize: nn.Module | None = None
        if part := _part(weights, "layernorm_embedding."):
            self.normalize = nn.LayerNorm(hidden)
            self.normalize.load_state_dict(part)
        self.projection: nn.Module | None = None
        if (matrix := weights.get("output_projection.weight")) is not None:
            if not matrix.numel():
                raise ValueError("its projection is empty")
            self.projection = nn.Linear(hidden, len(matrix), bias=False)
            self.projection.load_state_dict({"weight": matrix})
        self.width = hidden if matrix is None else len(matrix)
        self.learned = weights.get("embed_positions.weight")
        self.longest = settings.max_source_positions or 1_024
        if self.learned is not None:
            self.longest = min(self.longest, len(self.learned) - PAD - 1)
        if self.longest < _TOKENS_MIN:
            raise ValueError(f"it takes {self.longest} tokens")
        self.requires_grad_(False).float()

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return ids of pieces, or of words: with as many ids of no word as c-RoLASER has there.

        c-RoLASER's batches hold characters, of which it makes words in front of padding. Its mask
        stays that of the characters, and padding takes part like words.
        """
        settings, get, rows = self.settings, self._vocabulary.get, []
        first = [START] if settings.prepend_bos else []
        for text in texts:
            pieces = self._split(laser_text(replace_surrogates(text)))
            if settings.encoder_character_embeddings:
                known = ["".join(c if c in self._vocabulary else "<unk>" for c in word)
                         for word in pieces]  # fmt: skip
                ids = [self.words.known.get(word) or self.words.add(word) for word in known]
                length = len(first) + max(1, sum(map(len, pieces)) + len(pieces)) + 1
                rows.append([*ids, *[NO_WORD] * (length - len(ids))][: self.longest])
            else:
                ids = [get(piece, UNKNOWN) for piece in pieces][: self.longest - len(first) - 1]
                rows.append([*first, *ids, END])
        return Ragged.of(rows)

    def forward(self, batch: Padded) -> Tensor:
        """Return shape (rows, width)."""
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
        """Return the vectors of positions, which begin after that of padding."""
        if self.learned is not None:
            return self.learned[PAD + 1 : PAD + 1 + length]
        half = hidden // 2
        rates = torch.exp(torch.arange(half) * -(log(10_000) / (half - 1)))
        angles = torch.arange(PAD + 1, PAD + 1 + length)[:, None] * rates
        signs = torch.cat([angles.sin(), angles.cos()], 1)
        return nn.functional.pad(signs, (0, hidden - 2 * half))


def _named(value: Any) -> Mapping[str, Any]:
    """Return the values that a dictionary or a namespace has, by their names."""
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})


def _part(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}


def _transformer(weights: Mapping[str, Tensor], settings: FairseqSettings) -> nn.TransformerEncoder:
    """Return the layers; raises KeyError, RuntimeError for weights that are missing or unfit."""
    count = len({name.split(".")[1] for name in weights if name.startswith("layers.")})
    inner, hidden = weights["layers.0.fc1.weight"].shape
    if hidden % settings.encoder_attention_heads:
        raise ValueError(f"{hidden} is not a multiple of {settings.encoder_attention_heads} heads")
    with torch.device("meta"):  # no memory until the file's own tensors are assigned
        layer = nn.TransformerEncoderLayer(
            hidden, settings.encoder_attention_heads, inner, activation=settings.activation_fn,
            batch_first=True, norm_first=settings.encoder_normalize_before,
        )  # fmt: skip
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
    """Open a folder with a checkpoint of fairseq (*.pt), its vocabulary (*.cvocab), and pieces.

    Pieces are those of a SentencePiece model (*.spm), of RoBERTa's tokenizer.json, or vocab.json
    and merges.txt; c-RoLASER needs none. Raises SourceError, MissingExtra.
    """
    folder = Path(folder)
    path, symbols = (only_file(folder, f"*.{end}", _NEEDED) for end in ("pt", "cvocab"))
    laser_text("")  # report a missing package before the long work
    weights, settings = checkpoint = _read_checkpoint(path)
    vocabulary = _read_vocabulary(symbols)
    if not settings.encoder_character_embeddings:
        rows = len(weights["embed_tokens.weight"])
        size = max(vocabulary.values()) + 1
        if rows not in (size, size + ("<mask>" not in vocabulary)):  # which fairseq may add
            sizes = f"{size:,} symbols, {path.name} {rows:,} embeddings"
            raise SourceError(f"{symbols} is not that of the checkpoint: it has {sizes}")
    split, files = _open_split(folder, settings)
    with reading(path, RuntimeError, LookupError, ValueError, TypeError, hint="; it is no RoLASER"):
        files = (path, symbols, *files)
        encoder = RoLaser(f"rolaser:{folder}", checkpoint, vocabulary, split, files).eval()
        if not np.isfinite(encoder.encode(["a"])).all():
            raise ValueError("its vectors are no numbers")
        return encoder


def _read_checkpoint(path: Path) -> FairseqCheckpoint:
    """Return the encoder's weights, and what `cfg`, or `args`, says of it; raises SourceError."""
    content = load_checkpoint(path, mmap=True, inert=True)
    found = content if isinstance(content, dict) else {}
    told = _named(found.get("cfg")).get("model")
    named = _named(found.get("args") if told is None else told)
    kept = {name: named[name] for name in FairseqSettings.__struct_fields__ if name in named}
    try:
        settings = msgspec.convert(kept, FairseqSettings)
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


def _read_vocabulary(path: Path) -> dict[str, int]:
    """Return the number of each symbol in a dictionary of fairseq: `SYMBOL COUNT [FLAG]`.

    The first four are fixed; a symbol that comes again keeps its number, unless it is flagged as a
    duplicate.
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
    """Return what splits texts, and its files; raises SourceError."""
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
