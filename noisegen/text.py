"""Text as Arrow buffers: rows of UTF-8 bytes, and case.

Case is folded for ASCII and Latin-1 letters only, where it never changes the length of a text.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.draws import I64

if TYPE_CHECKING:
    from noisegen.words import Tokens

U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]


def fold(text: str) -> str:
    """Lower ASCII and Latin-1 letters; the length in bytes stays."""
    return text.translate(_FOLD)


def is_upper(character: str) -> bool:
    """Tell whether `fold` would change a character."""
    return ord(character) in _FOLD


_FOLD = {c: c + 32 for c in chain(range(65, 91), range(0xC0, 0xDF)) if c != 0xD7}
_UNFOLD = {lower: upper for upper, lower in _FOLD.items()}


def upper(text: str) -> str:
    """Raise the letters that `fold` lowers."""
    return text.translate(_UNFOLD)


def capitalize(text: str) -> str:
    """Raise the first character where `fold` would lower it again."""
    return upper(text[:1]) + text[1:]


def as_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """View numbers as an Arrow array; `pa.array` would import pandas where it is installed."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def as_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """View an Arrow array of numbers without nulls."""
    dtype = array.type.to_pandas_dtype()
    return np.frombuffer(array.buffers()[1], dtype)[array.offset :][: len(array)]


@dataclass(frozen=True)
class Texts:
    """Rows of UTF-8: row i is values[offsets[i]:offsets[i + 1]]; positions index `values`."""

    values: U8
    offsets: I64

    @classmethod
    def from_arrow(cls, array: pa.Array) -> "Texts":
        """View a string or binary array (no nulls) without copying its text."""
        array = array.cast(pa.binary()) if not pa.types.is_binary(array.type) else array
        buffer = array.buffers()[2]
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
        values = np.frombuffer(buffer, np.uint8) if buffer else np.zeros(0, np.uint8)
        return cls(values, offsets.astype(np.int64))

    @classmethod
    def from_strings(cls, rows: list[str]) -> "Texts":
        """Encode Python strings."""
        encoded = [row.encode() for row in rows]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def to_arrow(self, kind: pa.DataType = pa.binary()) -> pa.Array:  # noqa: B008 - a constant
        """Return the rows as an Arrow array over the same buffer."""
        offsets = pa.py_buffer(np.ascontiguousarray(self.offsets, dtype=np.int32))
        return pa.Array.from_buffers(kind, len(self), [None, offsets, pa.py_buffer(self.values)])

    def to_strings(self) -> list[str]:
        """Return the rows as Python strings."""
        strings: list[str] = self.to_arrow(pa.string()).to_pylist()
        return strings

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> "Texts":
        """Return neighbouring rows over the same buffer."""
        return Texts(self.values, self.offsets[rows.start : rows.stop + 1])

    @cached_property
    def tokens(self) -> "Tokens":
        """The words of all rows."""
        from noisegen.words import tokenize

        return tokenize(self)

    @property
    def lengths(self) -> I64:
        """Bytes of every row."""
        return np.diff(self.offsets)

    @property
    def window(self) -> U8:
        """The bytes of these rows; a position minus `offsets[0]` indexes it."""
        return self.values[self.offsets[0] : self.offsets[-1]]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether every byte is a character."""
        return not len(self.window) or int(self.window.max()) < 128

    def rows_of(self, positions: I64) -> I64:
        """Return the row of every position, given in ascending order."""
        counts = np.diff(np.searchsorted(positions, self.offsets, side="left"))
        return np.repeat(np.arange(len(self)), counts)


def folded(window: U8) -> U8:
    """Return the bytes with case folded as `fold` does."""
    lowered = np.frombuffer(bytearray(window.tobytes().lower()), np.uint8)
    leads = np.flatnonzero(lowered[:-1] == 0xC3)
    follow = lowered[leads + 1]
    capital = (follow >= 0x80) & (follow <= 0x9E) & (follow != 0x97)
    lowered[leads[capital] + 1] += 32
    return lowered


def ordinals(rows: I64) -> I64:
    """Return for ascending row numbers the place of each among its equals, from 0."""
    heads = np.flatnonzero(np.diff(rows, prepend=-1))
    return np.arange(len(rows)) - np.repeat(heads, np.diff(np.append(heads, len(rows))))
