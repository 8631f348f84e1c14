"""Texts and the teacher's vectors on disk, memory-mapped, and the negatives taken from them.

Vectors are computed once per clean text and kept as float16. A file holds the vectors of
`BLOCK_ROWS` texts in a row and is named by what decides them: the teacher's digest and the texts
themselves. Files are shared by all runs and made one by one, so a run that was cut short loses one
block at most.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.bitext import TEXT_MAX
from noisegen.encoders.encoder import Encoder, Ints, Vectors
from noisegen.encoders.stored import release_pages
from noisegen.encoders.tokens import generator
from noisegen.errors import NoisegenError
from noisegen.evaluation.negatives import hard_negatives
from noisegen.runs.atomic import atomic
from noisegen.runs.progress import Progress, Show

BLOCK_ROWS = 4_096
_TEXTS = 16_384  # clean texts whose hard negatives are made together; names come from among them


class TextStore:
    """A column of texts in two files, NAME.text (UTF-8) and NAME.offsets (int64)."""

    def __init__(self, folder: Path, name: str) -> None:
        self._given = folder, name
        text, offsets = folder / f"{name}.text", folder / f"{name}.offsets"
        self._rows = offsets.stat().st_size // 8 - 1
        self._parts = [  # an empty file cannot be mapped
            np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
            for path in (offsets, text)
        ]
        self._array = pa.LargeStringArray.from_buffers(
            self._rows, *(pa.py_buffer(part) for part in self._parts)
        )

    def __len__(self) -> int:
        return self._rows

    def __reduce__(self) -> tuple[type, tuple[Path, str]]:
        return type(self), self._given  # a copy opens the files, it does not hold their text

    def take(self, rows: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> pa.Array:
        """Return these texts, in this order, as an array of strings."""
        texts = self._array.take(pa.array(rows))
        for part in self._parts:
            release_pages(part)
        return texts

    def blocks(self, size: int) -> Iterator[list[str]]:
        """Yield all texts, so many at a time."""
        for first in range(0, len(self), size):
            yield self.take(np.arange(first, min(first + size, len(self)))).to_pylist()


@contextmanager
def writing_texts(folder: Path, name: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that adds a text to a store; it can be opened after the block.

    Raises OutputError.
    """
    end = 0
    with atomic(folder / f"{name}.text") as values, atomic(folder / f"{name}.offsets") as offsets:
        offsets.write(np.int64(0).tobytes())

        def add(text: str) -> None:
            nonlocal end
            end += values.write(text.encode("utf-8", "replace"))
            offsets.write(np.int64(end).tobytes())

        yield add


@contextmanager
def writing_distinct(folder: Path, name: str) -> Iterator[Callable[[str], int]]:
    """Yield a function that adds a text, cut to TEXT_MAX characters, if it is new.

    It returns the text's number in the store.
    """
    numbers: dict[bytes, int] = {}
    with writing_texts(folder, name) as add:

        def number_of(text: str) -> int:
            key = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
            if key not in numbers:
                numbers[key] = len(numbers)
                add(text[:TEXT_MAX])
            return numbers[key]

        yield number_of


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> TextStore:
    """Write texts as they come, then open them; raises OutputError."""
    with writing_texts(folder, name) as add:
        for text in texts:
            add(text)
    return TextStore(folder, name)


class TeacherVectors:
    """Rows of vectors over several memory-mapped files."""

    def __init__(self, blocks: list[npt.NDArray[np.float16]]) -> None:
        self._blocks = blocks
        self.width = blocks[0].shape[1]

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks)

    def __reduce__(self) -> tuple[Callable[[list[str]], "TeacherVectors"], tuple[list[str]]]:
        # a copy opens the files, it does not hold them
        return _reopened, ([str(cast(Any, block).filename) for block in self._blocks],)

    def take(self, rows: npt.NDArray[np.integer]) -> Vectors:
        """Return shape (rows, width), float32."""
        out = np.empty((len(rows), self.width), np.float32)
        for number in np.unique(rows // BLOCK_ROWS).tolist():
            here = rows // BLOCK_ROWS == number
            out[here] = self._blocks[number][rows[here] % BLOCK_ROWS]
            release_pages(self._blocks[number])
        return out


def _reopened(paths: list[str]) -> TeacherVectors:
    return TeacherVectors([np.load(path, mmap_mode="r", allow_pickle=False) for path in paths])


def teacher_vectors(
    teacher: Encoder, texts: TextStore, folder: Path, what: str = "vectors",
    progress: Show = lambda event: None,
) -> TeacherVectors:  # fmt: skip
    """Return the teacher's vectors of all texts, from the folder where they are there.

    `progress` gets an event for each block, of `what` is computed. Raises NoisegenError if the
    teacher yields numbers that are not finite, or nothing but zeros.
    """
    home, paths, done = folder / teacher.digest[:16], [], 0
    home.mkdir(parents=True, exist_ok=True)
    for block in texts.blocks(BLOCK_ROWS):
        path = home / f"{sha256(chr(0).join(block).encode()).hexdigest()[:32]}.npy"
        if not _has_vectors(path, len(block), teacher.width):
            with np.errstate(over="ignore"):  # what float16 cannot hold is refused below
                vectors = teacher.encode(block).astype(np.float16)
            if not np.isfinite(vectors).all():
                raise NoisegenError(
                    f"teacher {teacher.name} gives vectors that are no float16 numbers"
                )
            if not vectors.any(axis=1).all():
                raise NoisegenError(
                    f"teacher {teacher.name} gives a vector of zeros: nothing to learn from"
                )
            with atomic(path) as file:
                np.save(file, vectors, allow_pickle=False)
        paths.append(str(path))
        done += len(block)
        progress(Progress(what, done, len(texts), "texts"))
    return _reopened(paths)


def _has_vectors(path: Path, rows: int, width: int) -> bool:
    """Tell whether a file is there and whole; a full disk may have cut it short."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return False
    return bool(vectors.shape == (rows, width) and vectors.dtype == np.float16)


@dataclass(frozen=True)
class Negatives:
    """`count` vectors of texts drawn anew for every batch, and those hard for its own texts.

    `hard` are vectors of hard negatives; those of clean text i begin at `hard_rows[i]`.
    """

    vectors: TeacherVectors
    count: int
    seed: int
    hard: TeacherVectors | None = None
    hard_rows: npt.NDArray[np.int64] | None = None

    def take(self, clean: Ints, *batch: int) -> Vectors:
        """Return shape (any number, width); `batch` are its numbers."""
        count = min(self.count, len(self.vectors))
        rows = generator(self.seed, *batch, 2).integers(0, len(self.vectors), count)
        negatives = [self.vectors.take(np.sort(rows))]
        if self.hard is not None and self.hard_rows is not None:
            own = np.unique(clean)
            spans = map(np.arange, self.hard_rows[own], self.hard_rows[own + 1])
            negatives.append(self.hard.take(np.concatenate(list(spans))))
        return np.concatenate(negatives)


def write_hard_texts(folder: Path, clean: TextStore, most: int, seed: int, lang: str) -> None:
    """Make up to `most` hard negatives of each text and keep them in the folder.

    They are texts with a number, a name or a statement altered: what a sentence is not, in nearly
    the same words. English has three kinds, a text's number says with which one begins; other
    languages have numbers alone. They are made by rules, without a parser. Raises OutputError.
    """
    counts: list[int] = []
    with writing_texts(folder, "hard") as add:
        for texts in clean.blocks(_TEXTS):
            altered = hard_negatives(texts, seed=seed, lang=lang, per_kind=most, parse=False)
            bounds = np.searchsorted(altered.sources, np.arange(len(texts) + 1)).tolist()
            for first, stop in pairwise(bounds):
                own = altered.texts[first:stop]
                turn = len(counts) % max(1, len(own))
                chosen = [*own[turn:], *own[:turn]][:most]
                counts.append(len(chosen))
                for text in chosen:
                    add(text)
    with atomic(folder / "hard.rows") as file:
        file.write(np.cumsum([0, *counts], dtype=np.int64).tobytes())


def open_hard_texts(folder: Path) -> tuple[TextStore, npt.NDArray[np.int64]]:
    """Open what `write_hard_texts` wrote: the texts, and where those of each clean text begin."""
    return TextStore(folder, "hard"), np.memmap(folder / "hard.rows", np.int64, "r")
