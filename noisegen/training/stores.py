"""Texts and the teacher's vectors on disk, memory-mapped, and negatives drawn from them.

Vectors are computed once per clean text and kept as float16. A file has the vectors of
`BLOCK_ROWS` consecutive texts and is named by the teacher's digest and that of the texts. All runs
share the files, which are written one by one, so an interrupted run loses at most one block.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.bitext import TEXT_MAX
from noisegen.encoders.encoder import Encoder, Ints, Vectors
from noisegen.encoders.stored import reading, release_pages
from noisegen.encoders.tokens import generator
from noisegen.errors import NoisegenError
from noisegen.evaluation.negatives import hard_negatives
from noisegen.runs.atomic import atomic, write_text, writing
from noisegen.runs.estimate import SAMPLE_SECONDS
from noisegen.runs.progress import Progress, Show, silent

BLOCK_ROWS = 4_096
_FIRST_ROWS = 16  # of a sample that is timed
_TEXTS = 16_384  # clean texts whose hard negatives are made together; names come from among them


DAMAGED = "; train again in another folder"
_CACHE = "; set NOISEGEN_CACHE to another folder"


class TextStore:
    """A column of texts in two files, NAME.text (UTF-8) and NAME.offsets (int64).

    Raises OSError or ValueError for files that are missing or damaged.
    """

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
        self._array.validate(full=True)
        self._release()

    def _release(self) -> None:
        for part in self._parts:
            release_pages(part)

    def __len__(self) -> int:
        return self._rows

    def __reduce__(self) -> tuple[type, tuple[Path, str]]:
        return type(self), self._given  # a copy opens the files, it does not hold their text

    def take(self, rows: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> pa.Array:
        """Return these texts, in this order, as an array of strings."""
        texts = self._array.take(pa.array(rows))
        self._release()
        return texts

    def blocks(self, size: int) -> Iterator[list[str]]:
        """Yield all texts in blocks of this size."""
        yield from (self.block(number, size) for number in range(-(-len(self) // size)))

    def block(self, number: int, size: int) -> list[str]:
        """Return one of the blocks of this size."""
        first = number * size
        texts: list[str] = self.take(np.arange(first, min(first + size, len(self)))).to_pylist()
        return texts


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


Block = npt.NDArray[np.float16]


class TeacherVectors:
    """Vectors in blocks, each a memory-mapped file; `rows` are those of the blocks that exist."""

    def __init__(self, blocks: Sequence[Block | None]) -> None:
        known = [(number, block) for number, block in enumerate(blocks) if block is not None]
        spans = [number * BLOCK_ROWS + np.arange(len(block)) for number, block in known]
        self._blocks, self.rows, self.width = blocks, np.concatenate(spans), known[0][1].shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __reduce__(self) -> "tuple[Callable[..., TeacherVectors], tuple[list[str | None]]]":
        # a copy opens the files, it does not hold them
        return _reopened, ([getattr(block, "filename", None) for block in self._blocks],)

    def take(self, rows: npt.NDArray[np.integer]) -> Vectors:
        """Return shape (rows, width), float32."""
        out = np.empty((len(rows), self.width), np.float32)
        for number in np.unique(rows // BLOCK_ROWS).tolist():
            here, block = rows // BLOCK_ROWS == number, cast(Block, self._blocks[number])
            out[here] = block[rows[here] % BLOCK_ROWS]
            release_pages(block)
        return out


def random_vectors(texts: int, width: int) -> TeacherVectors:
    """Return random vectors of length 1 or so, which stand for a teacher's in a rehearsal."""
    drawn = generator(0).standard_normal((min(texts, BLOCK_ROWS), width)) / width**0.5
    block, (full, last) = drawn.astype(np.float16), divmod(texts, BLOCK_ROWS)
    return TeacherVectors([block] * full + [block[:last]] * bool(last))


def encoding_seconds(teacher: Encoder, texts: TextStore) -> float:
    """Return the seconds that a teacher takes for all texts, by a measured second for some."""

    def encode(rows: int) -> None:
        some = np.linspace(0, len(texts) - 1, rows).astype(np.int64)
        teacher.encode(texts.take(some).to_pylist())

    return sampled_seconds(encode, len(texts))


def sampled_seconds(work: Callable[[int], object], size: int) -> float:
    """Return the seconds of work on so many rows, by a measured second for some."""
    rows = min(_FIRST_ROWS, size)
    work(rows)  # the first time takes longer
    while True:
        began = time.perf_counter()
        work(rows)
        seconds = time.perf_counter() - began
        if seconds > SAMPLE_SECONDS / 2 or rows >= size:
            return seconds * size / rows
        rows = min(2 * rows, size)


def _reopened(paths: list[str | None]) -> TeacherVectors:
    return TeacherVectors([np.load(path, mmap_mode="r") if path else None for path in paths])


def teacher_vectors(
    teacher: Encoder, texts: TextStore, folder: Path, what: str = "vectors",
    progress: Show = silent, stop: Callable[[int, bool], bool] = lambda texts, is_known: False,
) -> TeacherVectors:  # fmt: skip
    """Return the teacher's vectors of the texts, from the folder if it has them.

    `progress` gets an event per block; `what` names what is computed. Blocks come in a fixed random
    order until `stop` returns true, called before each with the number of texts so far and whether
    the folder has the vectors of the block. Raises NoisegenError if the teacher yields numbers that
    are not finite, or a zero vector, and OutputError for a folder that cannot be written.
    """
    home, done = folder / teacher.digest[:16], 0
    with writing(home, _CACHE):
        home.mkdir(parents=True, exist_ok=True)
    count = -(-len(texts) // BLOCK_ROWS)
    paths: list[str | None] = [None] * count
    progress(Progress(what, 0, len(texts), "texts"))
    for number in generator(count).permutation(count).tolist():
        block = texts.block(number, BLOCK_ROWS)
        path = home / f"{sha256(chr(0).join(block).encode()).hexdigest()[:32]}.npy"
        is_known = _has_vectors(path, len(block), teacher.width)
        if stop(done, is_known):
            break
        if not is_known:
            vectors = _encoded(teacher, block)
            with atomic(path, _CACHE) as file:
                np.save(file, vectors, allow_pickle=False)
        paths[number] = str(path)
        done += len(block)
        progress(Progress(what, done, len(texts), "texts"))
    return _reopened(paths)


def _encoded(teacher: Encoder, texts: Sequence[str]) -> Block:
    with np.errstate(over="ignore"):  # what float16 cannot hold is refused below
        vectors = teacher.encode(texts).astype(np.float16)
    if not np.isfinite(vectors).all():
        raise NoisegenError(f"teacher {teacher.name} gives vectors that float16 cannot hold")
    if not vectors.any(axis=1).all():
        raise NoisegenError(
            f"teacher {teacher.name} gives a zero vector, which a student cannot learn"
        )
    return vectors


@dataclass(frozen=True)
class StoredTexts:
    """The texts NAME in the data of a run, of which some blocks, or all, have teacher's vectors.

    Blocks are computed until the next one would take longer than the seconds that are `left`.
    NAME.known records how many texts have vectors: other processes and a resumed run use the same
    ones.
    """

    folder: Path
    name: str
    left: Callable[[], float] = lambda: inf

    def vectors(self, teacher: Encoder, cache: Path, what: str, progress: Show) -> TeacherVectors:
        """Return the teacher's vectors, of one block at least."""
        path, texts = self.folder / f"{self.name}.known", TextStore(self.folder, self.name)
        with reading(path, OSError, ValueError, hint=DAMAGED):
            count = int(path.read_text()) if path.exists() else None
            if count is not None and not 0 < count <= len(texts):
                raise ValueError(f"vectors of {count:,} texts, of which there are {len(texts):,}")

        left, longest = self.left(), 0.0

        def stop(done: int, is_known: bool) -> bool:
            nonlocal left, longest
            if count or not done:
                return done == count
            longest, left = max(longest, left - (now := self.left())), now
            return left < (0.0 if is_known else longest)

        vectors = teacher_vectors(teacher, texts, cache, what, progress, stop)
        if count is None:
            write_text(path, str(len(vectors)))
        return vectors


def _has_vectors(path: Path, rows: int, width: int) -> bool:
    """Return whether a file exists, is complete, and has vectors that a teacher may yield."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):  # the last for an empty file
        return False
    if getattr(vectors, "dtype", None) != np.float16 or vectors.shape != (rows, width):
        return False
    is_sound = bool(np.isfinite(vectors).all() and vectors.any(axis=1).all())
    release_pages(vectors)
    return is_sound


@dataclass(frozen=True)
class Negatives:
    """`count` vectors of random texts for each batch, and hard negatives of its own texts.

    `hard` are vectors of hard negatives; those of clean text i begin at `hard_rows[i]`.
    """

    vectors: TeacherVectors
    count: int
    seed: int
    hard: TeacherVectors | None = None
    hard_rows: npt.NDArray[np.int64] | None = None

    def take(self, clean: Ints, *batch: int) -> Vectors:
        """Return shape (any number, width); `batch` are the numbers that identify a batch."""
        count = min(self.count, len(self.vectors))
        places = generator(self.seed, *batch, 2).integers(0, len(self.vectors), count)
        negatives = [self.vectors.take(self.vectors.rows[np.sort(places)])]
        if self.hard is not None and self.hard_rows is not None:
            own = np.unique(clean)
            spans = map(np.arange, self.hard_rows[own], self.hard_rows[own + 1])
            rows = np.concatenate(list(spans))
            negatives.append(self.hard.take(rows[np.isin(rows, self.hard.rows)]))
        return np.concatenate(negatives)


def write_hard_texts(folder: Path, clean: TextStore, most: int, seed: int, lang: str) -> None:
    """Write up to `most` hard negatives of each text into the folder.

    A hard negative says something else in nearly the same words: a number, a name or a statement
    is changed. English has all three kinds, in turn by the text's number; other languages have
    numbers only. They come from rules, without a parser. Raises OutputError.
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


def open_hard_texts(folder: Path, clean: int) -> tuple[TextStore, npt.NDArray[np.int64]]:
    """Open what `write_hard_texts` wrote for so many clean texts: texts, and the first one of each.

    Raises SourceError if it is missing or damaged.
    """
    with reading(f"hard negatives in {folder}", OSError, ValueError, hint=DAMAGED):
        texts, rows = TextStore(folder, "hard"), np.memmap(folder / "hard.rows", np.int64, "r")
        if len(rows) != clean + 1 or rows[-1] != len(texts):
            raise ValueError(f"{len(rows) - 1:,} clean texts of {clean:,}")
    return texts, rows
