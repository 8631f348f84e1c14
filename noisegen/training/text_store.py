"""Many texts on disk, memory-mapped: any rows of them at once, in little memory."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.atomic import atomic
from noisegen.encoders.mapped import let_go


class TextStore:
    """A column of texts in two files, NAME.text (UTF-8) and NAME.offsets (int64)."""

    def __init__(self, folder: Path, name: str) -> None:
        self._given = folder, name
        text, offsets = folder / f"{name}.text", folder / f"{name}.offsets"
        self._rows = offsets.stat().st_size // 8 - 1
        self._parts = _mapped(offsets), _mapped(text)
        self._array = pa.LargeStringArray.from_buffers(
            self._rows, *(pa.py_buffer(part) for part in self._parts)
        )

    def __len__(self) -> int:
        return self._rows

    def __reduce__(self) -> tuple[type, tuple[Path, str]]:
        return type(self), self._given  # a copy opens the files, it does not hold their text

    def take(self, rows: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> pa.Array:
        """Return these texts, in this order, as an array of strings."""
        found = self._array.take(pa.array(rows))
        for part in self._parts:
            let_go(part)
        return found


def _mapped(path: Path) -> npt.NDArray[np.uint8]:
    """Map a file; an empty one cannot be."""
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> TextStore:
    """Write texts as they come, then open them; raises OutputError."""
    end = 0
    with atomic(folder / f"{name}.text") as values, atomic(folder / f"{name}.offsets") as offsets:
        offsets.write(np.int64(0).tobytes())
        for text in texts:
            content = text.encode("utf-8", "replace")
            end += len(content)
            values.write(content)
            offsets.write(np.int64(end).tobytes())
    return TextStore(folder, name)
