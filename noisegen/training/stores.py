"""Texts and the teacher's vectors on disk, memory-mapped, and the negatives taken from them.

Vectors are computed once per clean text and kept as float16. A file holds the vectors of
`BLOCK_ROWS` texts in a row and is named by what decides them: the teacher's digest and the texts
themselves. Files are shared by all runs and made one by one, so a run that was cut short loses one
block at most.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.encoders.encoder import Encoder, Ints, Vectors
from noisegen.encoders.stored import release_pages
from noisegen.encoders.tokens import generator
from noisegen.errors import NoisegenError
from noisegen.evaluation.negatives import hard_negatives
from noisegen.runs.files import atomic
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
        found = self._array.take(pa.array(rows))
        for part in self._parts:
            release_pages(part)
        return found


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
            release_pages(self._blocks[number])
        return out


def teacher_vectors(
    teacher: Encoder, texts: TextStore, folder: Path, what: str = "vectors",
    progress: Show = lambda event: None,
) -> TeacherVectors:  # fmt: skip
    """Return the teacher's vectors of all texts, from the folder where they are there.

    `progress` gets an event for each block, of `what` is computed. Raises NoisegenError if the
    teacher yields numbers that are not finite, or nothing but zeros.
    """
    home, blocks = folder / teacher.digest[:16], []
    home.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(texts), BLOCK_ROWS):
        some = texts.take(np.arange(first, min(first + BLOCK_ROWS, len(texts)))).to_pylist()
        path = home / f"{sha256(chr(0).join(some).encode()).hexdigest()[:32]}.npy"
        blocks.append(_block(teacher, some, path))
        progress(Progress(what, first + len(some), len(texts), "texts"))
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


@dataclass(frozen=True)
class HardTexts:
    """Clean texts with a number, a name or a statement altered, and which text each is of.

    Those of clean text i are `texts[offsets[i]:offsets[i + 1]]`: what a sentence is not, in nearly
    the same words.
    """

    texts: TextStore
    offsets: npt.NDArray[np.int64]

    def rows(self, clean: Ints) -> Ints:
        """Return the numbers of all hard negatives of these clean texts."""
        spans = zip(self.offsets[clean], self.offsets[clean + 1], strict=True)
        return np.concatenate([np.arange(first, stop) for first, stop in spans])


@dataclass(frozen=True)
class Negatives:
    """`count` vectors of texts drawn anew for every batch, and those hard for its own texts."""

    vectors: TeacherVectors
    count: int
    seed: int
    hard: tuple[HardTexts, TeacherVectors] | None = None

    def take(self, clean: Ints, *place: int) -> Vectors:
        """Return shape (any number, width); `place` names the batch."""
        count = min(self.count, len(self.vectors))
        rows = generator(self.seed, *place, 2).integers(0, len(self.vectors), count)
        found = [self.vectors.take(np.sort(rows))]
        if self.hard is not None:
            texts, vectors = self.hard
            found.append(vectors.take(texts.rows(np.unique(clean))))
        return np.concatenate(found)


def write_hard_texts(folder: Path, clean: TextStore, most: int, seed: int, lang: str) -> HardTexts:
    """Make up to `most` hard negatives of each text and keep them in the folder.

    English has three kinds, a text's number says with which one begins; other languages have
    numbers alone. They are made by rules, without a parser. Raises OutputError.
    """
    counts: list[int] = []
    write_texts(folder, "hard", _altered(clean, most, seed, lang, counts))
    with atomic(folder / "hard.rows") as file:
        file.write(np.cumsum([0, *counts], dtype=np.int64).tobytes())
    return open_hard_texts(folder)


def open_hard_texts(folder: Path) -> HardTexts:
    """Open what `write_hard_texts` wrote."""
    return HardTexts(TextStore(folder, "hard"), np.memmap(folder / "hard.rows", np.int64, "r"))


def _altered(clean: TextStore, most: int, seed: int, lang: str, counts: list[int]) -> Iterator[str]:
    """Yield the hard negatives text by text, and note how many each has."""
    for first in range(0, len(clean), _TEXTS):
        texts = clean.take(np.arange(first, min(first + _TEXTS, len(clean)))).to_pylist()
        found = hard_negatives(texts, seed=seed, lang=lang, per_kind=most, parse=False)
        bounds = np.searchsorted(found.sources, np.arange(len(texts) + 1))
        for number in range(len(texts)):
            negatives = found.texts[bounds[number] : bounds[number + 1]]
            start = (first + number) % max(1, len(negatives))
            chosen = [*negatives[start:], *negatives[:start]][:most]
            counts.append(len(chosen))
            yield from chosen
