"""The teacher's vectors, computed once per clean text and kept as float16 files.

A file holds the vectors of `BLOCK_ROWS` texts in a row and is named by what decides them: the
teacher's digest and the texts themselves. Files are memory-mapped, shared by all runs, and made
one by one, so a run that was cut short loses one block at most.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from noisegen.atomic import atomic
from noisegen.encoders.encoder import Encoder, Vectors
from noisegen.encoders.mapped import let_go
from noisegen.errors import NoisegenError
from noisegen.training.text_store import TextStore

BLOCK_ROWS = 4_096


class TeacherVectors:
    """Rows of vectors over several memory-mapped files."""

    def __init__(self, blocks: list[npt.NDArray[np.float16]]) -> None:
        self._blocks = blocks
        self.width = blocks[0].shape[1]

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks)

    def __reduce__(self) -> tuple[Callable[[list[str]], "TeacherVectors"], tuple[list[str]]]:
        return _reopened, ([str(cast(Any, block).filename) for block in self._blocks],)

    def take(self, rows: npt.NDArray[np.integer]) -> Vectors:
        """Return shape (rows, width), float32."""
        out = np.empty((len(rows), self.width), np.float32)
        for number in np.unique(rows // BLOCK_ROWS).tolist():
            here = rows // BLOCK_ROWS == number
            out[here] = self._blocks[number][rows[here] % BLOCK_ROWS]
            let_go(self._blocks[number])
        return out


def teacher_vectors(
    teacher: Encoder, texts: TextStore, folder: Path, progress: Callable[[int], None] | None = None
) -> TeacherVectors:
    """Return the teacher's vectors of all texts, from the folder where they are there.

    Raises NoisegenError if the teacher yields what is no finite number, or nothing but zeros.
    """
    home = folder / teacher.digest[:16]
    home.mkdir(parents=True, exist_ok=True)
    blocks = []
    for first in range(0, len(texts), BLOCK_ROWS):
        some = texts.take(np.arange(first, min(first + BLOCK_ROWS, len(texts)))).to_pylist()
        path = home / f"{sha256(chr(0).join(some).encode()).hexdigest()[:32]}.npy"
        blocks.append(_block(teacher, some, path))
        if progress:
            progress(len(some))
    return TeacherVectors(blocks)


def _reopened(paths: list[str]) -> TeacherVectors:
    """Open files that are there: a copy of vectors does not hold them."""
    return TeacherVectors([_mapped(Path(path)) for path in paths])


def _mapped(path: Path) -> npt.NDArray[np.float16]:
    found: npt.NDArray[np.float16] = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def _block(teacher: Encoder, texts: list[str], path: Path) -> npt.NDArray[np.float16]:
    try:
        found = _mapped(path)
        if found.shape == (len(texts), teacher.width) and found.dtype == np.float16:
            return found
    except (OSError, ValueError):
        pass  # not there, or cut short by a full disk: made anew
    with np.errstate(over="ignore"):  # what float16 cannot hold is refused below
        vectors = teacher.encode(texts).astype(np.float16)
    if not np.isfinite(vectors).all():
        raise NoisegenError(f"teacher {teacher.name} gives vectors that are no float16 numbers")
    if not vectors.any(axis=1).all():
        raise NoisegenError(
            f"teacher {teacher.name} gives a vector of zeros: nothing to learn from"
        )
    with atomic(path) as file:
        np.save(file, vectors, allow_pickle=False)
    return _mapped(path)
