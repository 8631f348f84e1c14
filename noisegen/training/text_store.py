"""Many texts on disk, memory-mapped: any rows of them at once, in little memory."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisegen.atomic import atomic


class TextStore:
    """A column of texts in two files, NAME.text (UTF-8) and NAME.offsets (int64)."""

    def __init__(self, folder: Path, name: str) -> None:
        text, offsets = folder / f"{name}.text", folder / f"{name}.offsets"
        self._rows = offsets.stat().st_size // 8 - 1
        self._array = pa.LargeStringArray.from_buffers(self._rows, _mapped(offsets), _mapped(text))

    def __len__(self) -> int:
        return self._rows

    def take(self, rows: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> pa.Array:
        """Return these texts, in this order, as an array of strings."""
        return self._array.take(pa.array(rows))


def _mapped(path: Path) -> pa.Buffer:
    size = path.stat().st_size  # an empty file cannot be mapped
    return pa.py_buffer(np.memmap(path, np.uint8, "r") if size else b"")


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
