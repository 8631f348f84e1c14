"""Memory-mapped files of texts and of the teacher's vectors; negatives for contrastive losses.

Vectors are computed once per clean text and kept as float16. A file has the vectors of a block,
`BLOCK_ROWS` consecutive texts. Its name is a digest of these texts, the name of its folder a digest
of the teacher, so all runs can share the files. They are written one by one, so an interrupted run
loses at most one block.
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
from noisegen.runs.lock import ALL_TASKS, Share
from noisegen.runs.progress import Progress, Show, silent
from noisegen.training.computation import Workers

BLOCK_ROWS = 4_096
_FIRST_ROWS = 16  # rows of the first timed sample; each further sample has twice the rows
# Clean texts per block. Names in hard negatives are replaced by names from the same block.
_TEXTS = 16_384
DAMAGED = "; train again in another folder"
_CACHE = "; set NOISEGEN_CACHE to another folder"


class TextStore:
    """A column of texts in two files, NAME.text (UTF-8) and NAME.offsets (int64).

    Raises OSError or ValueError for files that are missing or damaged.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._offsets = _mapped(folder / f"{name}.offsets")
        self._text = _mapped(folder / f"{name}.text")
        self._rows = len(self._offsets) // 8 - 1
        buffers = pa.py_buffer(self._offsets), pa.py_buffer(self._text)
        self._array = pa.LargeStringArray.from_buffers(self._rows, *buffers)
        self._array.validate(full=True)
        self._release()

    def _release(self) -> None:
        release_pages(self._offsets)
        release_pages(self._text)

    def __len__(self) -> int:
        return self._rows

    def __reduce__(self) -> tuple[type, tuple[Path, str]]:
        return type(self), (self.folder, self.name)  # a pickle has file names, not texts

    def take(self, rows: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> pa.Array:
        """Return the texts with the indices `rows`, in this order, as an array of strings."""
        texts = self._array.take(pa.array(rows))
        self._release()
        return texts

    def blocks(self, size: int) -> Iterator[list[str]]:
        """Yield all texts in blocks of `size` texts."""
        yield from (self.block(number, size) for number in range(-(-len(self) // size)))

    def block(self, number: int, size: int) -> list[str]:
        """Return the texts of block `number`; block 0 has the first `size` texts."""
        first = number * size
        texts: list[str] = self.take(np.arange(first, min(first + size, len(self)))).to_pylist()
        return texts


def _mapped(path: Path) -> npt.NDArray[np.uint8]:
    """Return the bytes of a file, mapped into memory; an empty array for an empty file."""
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)


@contextmanager
def writing_texts(folder: Path, name: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that adds a text to the store NAME; the files appear after the with block.

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
    """Yield a function that adds a text to the store NAME if it is new, and returns its index.

    Texts are compared in full, but only their first TEXT_MAX characters are stored.
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
    """The teacher's vectors of texts, in memory-mapped blocks of `BLOCK_ROWS` texts.

    A block is None if its texts have no vectors, for lack of time. `rows` has the indices of the
    texts with vectors.
    """

    def __init__(self, blocks: Sequence[Block | None]) -> None:
        self._blocks = blocks
        spans = []
        for number, block in enumerate(blocks):
            if block is not None:
                spans.append(number * BLOCK_ROWS + np.arange(len(block)))
                self.width = block.shape[1]
        self.rows = np.concatenate(spans)

    def __len__(self) -> int:
        return len(self.rows)

    def __reduce__(self) -> "tuple[Callable[..., TeacherVectors], tuple[list[str | None]]]":
        # A pickle has the names of the files, not the vectors.
        return _reopened, ([getattr(block, "filename", None) for block in self._blocks],)

    def take(self, rows: npt.NDArray[np.integer]) -> Vectors:
        """Return the vectors of the texts with the indices `rows`, (texts, width), float32."""
        out = np.empty((len(rows), self.width), np.float32)
        for number in np.unique(rows // BLOCK_ROWS).tolist():
            here, block = rows // BLOCK_ROWS == number, cast(Block, self._blocks[number])
            out[here] = block[rows[here] % BLOCK_ROWS]
            release_pages(block)
        return out


def random_vectors(texts: int, width: int) -> TeacherVectors:
    """Return random vectors of length about 1, which replace the teacher's in a dry run."""
    drawn = generator(0).standard_normal((min(texts, BLOCK_ROWS), width)) / width**0.5
    block = drawn.astype(np.float16)
    full, rest = divmod(texts, BLOCK_ROWS)
    blocks = [block] * full
    if rest:
        blocks.append(block[:rest])
    return TeacherVectors(blocks)


def encoding_seconds(teacher: Encoder, texts: TextStore) -> float:
    """Estimate the seconds that a teacher takes for all texts, from a sample timed for a second."""

    def encode(rows: int) -> None:
        some = np.linspace(0, len(texts) - 1, rows).astype(np.int64)
        teacher.encode(texts.take(some).to_pylist())

    return sampled_seconds(encode, len(texts))


def sampled_seconds(work: Callable[[int], object], size: int) -> float:
    """Estimate the seconds of work on `size` rows, from a sample of rows timed for a second.

    `work` is called with the number of rows of a sample.
    """
    rows = min(_FIRST_ROWS, size)
    work(rows)  # not timed: the first call takes longer
    while True:
        began = time.perf_counter()
        work(rows)
        seconds = time.perf_counter() - began
        if seconds > SAMPLE_SECONDS / 2 or rows >= size:
            return seconds * size / rows
        rows = min(2 * rows, size)


def _reopened(paths: list[str | None]) -> TeacherVectors:
    return TeacherVectors([np.load(path, mmap_mode="r") if path else None for path in paths])


@dataclass(frozen=True)
class VectorLimit:
    """Limit on computing vectors: a number of texts (`texts`), or the time left.

    A block of texts is encoded only if `seconds_left()` is enough for the slowest block so far.
    """

    texts: int | None = None
    seconds_left: Callable[[], float] = lambda: inf


@dataclass(frozen=True)
class VectorFiles:
    """Files with the teacher's vectors of the texts of a store: one per block, in `folder`.

    Raises OutputError for a folder that cannot be written.
    """

    teacher: Encoder
    texts: TextStore
    folder: Path

    def __post_init__(self) -> None:
        with writing(self._home, _CACHE):
            self._home.mkdir(parents=True, exist_ok=True)

    @property
    def _home(self) -> Path:
        return self.folder / self.teacher.digest[:16]

    @property
    def order(self) -> list[int]:
        """Numbers of all blocks, in the fixed random order in which they are encoded."""
        count = -(-len(self.texts) // BLOCK_ROWS)
        order: list[int] = generator(count).permutation(count).tolist()
        return order

    def encode(
        self, what: str, progress: Show, limit: VectorLimit, share: Share = ALL_TASKS
    ) -> list[str | None]:
        """Compute the vectors of the blocks in a share, unless their files have them.

        Return the path of each block's file, None for blocks that are not in the share. Blocks are
        encoded until `limit` is reached, but at least one. `progress` gets an event named `what`
        per block. Raises NoisegenError if a vector is zero or has numbers that float16 cannot hold.
        """
        remainder, count = share
        own = self.order[remainder::count]
        paths: list[str | None] = [None] * len(self.order)
        done, slowest, left = 0, 0.0, limit.seconds_left()
        total = len(self.texts) // count
        progress(Progress(what, 0, total, "texts"))
        for number in own:
            block = self.texts.block(number, BLOCK_ROWS)
            path = self._path(block)
            is_known = _has_vectors(path, len(block), self.teacher.width)
            if limit.texts is None:
                is_over = done > 0 and left < (0.0 if is_known else slowest)
            else:
                is_over = done >= limit.texts
            if is_over:
                break
            if not is_known:
                with atomic(path, _CACHE) as file:
                    np.save(file, _encoded(self.teacher, block), allow_pickle=False)
            paths[number] = str(path)
            done += len(block)
            before, left = left, limit.seconds_left()
            slowest = max(slowest, before - left)
            progress(Progress(what, min(done, total), total, "texts"))
        return paths

    def texts_encoded(self) -> int:
        """Return the number of texts in the blocks of `order` before the first without a file."""
        done = 0
        for number in self.order:
            block = self.texts.block(number, BLOCK_ROWS)
            if not self._path(block).exists():
                break
            done += len(block)
        return done

    def _path(self, block: Sequence[str]) -> Path:
        return self._home / f"{sha256(chr(0).join(block).encode()).hexdigest()[:32]}.npy"


def teacher_vectors(
    teacher: Encoder, texts: TextStore, folder: Path, what: str = "vectors", progress: Show = silent
) -> TeacherVectors:
    """Return the teacher's vectors of all texts, read from files in `folder` or computed."""
    return _reopened(VectorFiles(teacher, texts, folder).encode(what, progress, VectorLimit()))


def _encoded(teacher: Encoder, texts: Sequence[str]) -> Block:
    with np.errstate(over="ignore"):  # numbers too large for float16 raise the error below
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
    """A text store in RUN/data whose texts get the teacher's vectors, as far as time allows.

    `left` returns the seconds left. The file NAME.known records the number of texts that have
    vectors, so that other processes and a resumed run use the same vectors.
    """

    folder: Path
    name: str
    left: Callable[[], float] = lambda: inf

    def vectors(
        self, teacher: Encoder, cache: Path, what: str, progress: Show, workers: Workers
    ) -> TeacherVectors:
        """Return the teacher's vectors of all texts, or of the texts that get vectors in time.

        Each process of the run encodes a share of the texts. A process that finds no file of
        another one, because their caches are on different disks, encodes those texts too.
        """
        path, texts = self.folder / f"{self.name}.known", TextStore(self.folder, self.name)
        files = VectorFiles(teacher, texts, cache)
        if not path.exists():
            share = workers.rank, workers.world
            files.encode(what, progress, VectorLimit(seconds_left=self.left), share)
            workers.wait()
            if workers.leads:
                write_text(path, str(files.texts_encoded()))
            workers.wait()
        with reading(path, OSError, ValueError, hint=DAMAGED):
            count = int(path.read_text())
            if not 0 < count <= len(texts):
                raise ValueError(f"vectors of {count:,} texts, of which there are {len(texts):,}")
        return _reopened(files.encode(what, silent, VectorLimit(count)))


def _has_vectors(path: Path, rows: int, width: int) -> bool:
    """Return whether a file exists, is complete, and all its vectors are finite and not zero."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):  # EOFError: an empty file
        return False
    if getattr(vectors, "dtype", None) != np.float16 or vectors.shape != (rows, width):
        return False
    is_sound = bool(np.isfinite(vectors).all() and vectors.any(axis=1).all())
    release_pages(vectors)
    return is_sound


@dataclass(frozen=True)
class Negatives:
    """Negatives of a batch: `count` random texts, and the hard negatives of its clean texts.

    The random texts are chosen from `vectors`. The hard negatives of clean text i are rows
    `hard_rows[i]` to `hard_rows[i + 1]` - 1 of `hard`.
    """

    vectors: TeacherVectors
    count: int
    seed: int
    hard: TeacherVectors | None = None
    hard_rows: npt.NDArray[np.int64] | None = None

    def take(self, clean: Ints, *batch: int) -> Vectors:
        """Return the vectors of a batch's negatives, shape (any number, width).

        `clean` has the indices of the clean texts in the batch. The numbers in `batch`, such as
        the indices of the update and of the batch in it, seed the random choice.
        """
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
    is changed. In English, which of these changes is preferred varies from text to text; in other
    languages only numbers are changed. The changes are made by rules, without a parser. Raises
    OutputError.
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
    """Return the hard negatives that `write_hard_texts` wrote, and an array `offsets`.

    The hard negatives of clean text i have the indices `offsets[i]` to `offsets[i + 1]` - 1.
    `clean` is the number of clean texts. Raises SourceError if a file is missing or damaged.
    """
    with reading(f"hard negatives in {folder}", OSError, ValueError, hint=DAMAGED):
        texts, rows = TextStore(folder, "hard"), np.memmap(folder / "hard.rows", np.int64, "r")
        if len(rows) != clean + 1 or rows[-1] != len(texts):
            raise ValueError(f"{len(rows) - 1:,} clean texts of {clean:,}")
    return texts, rows
