"""Intermediate files of `prepare`: texts and keys of candidates, and arrays that tasks found.

All of them lie in the folder `WORK` and are removed at the end of a run.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic, remove
from noisegen.text.buffers import I64, U64, as_arrow

WORK = "work"  # folder of the intermediate files, three per portion
CANDIDATES = ("texts", "forms", "bands")  # texts, keys of normal forms and of bands
FOUND = ("equal", "links", "similar")  # arrays that the tasks of a search write
INTERMEDIATE = (
    f"{WORK}/edges.npy",
    f"{WORK}/codes.bin",
    *(f"{WORK}/{kind}-*.arrow" for kind in CANDIDATES),
    *(f"{WORK}/{kind}-*.npy" for kind in FOUND),
)
BATCH = 8_192  # rows of a record batch of candidates; only the last batch has fewer
HELD = 500_000  # entries of a key file sorted at a time: about 30 MB


def work_path(out: Path, kind: str, number: int) -> Path:
    """Return a file of a portion, one of CANDIDATES, or of a task of the search."""
    ending = "npy" if kind in FOUND else "arrow"
    return out / WORK / f"{kind}-{number:05d}.{ending}"


@contextmanager
def checked(path: Path) -> Iterator[None]:
    """Raise OutputError for an intermediate file that cannot be read, and remove the file.

    A resumed run then makes it again.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
            raise OutputError(f"cannot read {path}: {error.strerror}") from error
        remove(path)
        problem = f"{path} was damaged while the run used it; run again with --resume"
        raise OutputError(problem).passes() from error


def read_batch(path: Path, number: int) -> pa.RecordBatch:
    """Return a batch of texts as a view of the mapped file; raises OutputError."""
    with checked(path):
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(number)
        batch.validate(full=True)
        return batch


def write_array(path: Path, array: I64) -> None:
    """Write an array, and its digest behind it."""
    with atomic(path) as file:
        np.save(file, array)
        file.write(sha256(array.tobytes()).digest())


def is_whole(path: Path) -> bool:
    """Tell whether an array is there and agrees with its digest."""
    try:
        with path.open("rb") as file:
            return sha256(np.load(file).tobytes()).digest() == file.read()
    except (OSError, ValueError, EOFError):
        return False


@contextmanager
def key_writer(path: Path, *names: str, held_max: int = HELD) -> Iterator[Callable[..., None]]:
    """Yield a function that adds columns of entries, the keys first, the row numbers last.

    Entries are written in sorted runs of about `held_max`, so that a range of keys is read without
    the others.
    """
    schema = pa.schema([(name, pa.uint64()) for name in names])
    held: list[U64] = []
    with atomic(path) as file, pa.ipc.new_file(file, schema) as to:

        def write_run() -> None:
            entries = np.concatenate(held, axis=1)
            order = np.argsort(entries[0], kind="stable")
            to.write_batch(pa.record_batch([as_arrow(c[order]) for c in entries], schema))
            held.clear()

        def add(*columns: Sequence[int] | U64) -> None:
            held.append(np.array(columns, np.uint64).reshape(len(names), -1))
            if sum(part.shape[1] for part in held) >= held_max:
                write_run()

        yield add
        held.append(np.zeros((len(names), 0), np.uint64))  # even an empty file has a run
        write_run()


def keys_between(paths: Sequence[Path], firsts: Sequence[int], start: int, stop: int) -> U64:
    """Return the columns of all files for the keys from `start` up to `stop`.

    The bytes of other keys are not read. `firsts` are the candidates before each file; they are
    added to its row numbers.
    """
    parts = []
    for path, first in zip(paths, firsts, strict=True):
        with checked(path):
            for columns in _runs(path):
                low = np.searchsorted(columns[0], np.uint64(start))
                high = np.searchsorted(columns[0], np.uint64(stop - 1), side="right")
                part = np.stack([column[low:high] for column in columns])
                part[-1] += np.uint64(first)
                parts.append(part)
    return np.concatenate(parts, axis=1)


def _runs(path: Path) -> Iterator[list[U64]]:
    """Yield the columns of each sorted run as views of the mapped file."""
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    for number in range(file.num_record_batches):
        yield [column.to_numpy() for column in file.get_batch(number).columns]
