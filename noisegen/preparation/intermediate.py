"""Intermediate files of `prepare`: candidates, their keys, and found duplicates.

The files are in the folder WORK of the output and are removed at the end of a run.
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

WORK = "work"  # folder of the intermediate files
# Files per portion: candidates, hashes of their normal forms, and their band keys
CANDIDATES = ("texts", "forms", "bands")
# Files per task of the search for duplicates: repeated candidates, pairs to compare, similar pairs
FOUND = ("equal", "links", "similar")
INTERMEDIATE = (
    f"{WORK}/edges.npy",
    f"{WORK}/codes.bin",
    *(f"{WORK}/{kind}-*.arrow" for kind in CANDIDATES),
    *(f"{WORK}/{kind}-*.npy" for kind in FOUND),
)
BATCH = 8_192  # candidates per record batch; only the last batch of a file has fewer
HELD = 500_000  # rows of a file of keys that are sorted in memory at once: about 30 MB


def work_path(out: Path, kind: str, number: int) -> Path:
    """Return the path of an intermediate file in the output folder `out`.

    `number` is the index of a portion of the input if `kind` is one of CANDIDATES, and of a task
    if it is one of FOUND.
    """
    ending = "npy" if kind in FOUND else "arrow"
    return out / WORK / f"{kind}-{number:05d}.{ending}"


@contextmanager
def checked(path: Path) -> Iterator[None]:
    """Raise OutputError if the `with` block fails to read the intermediate file `path`.

    A damaged file is removed, so that a resumed run makes it again.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
            raise OutputError(f"cannot read {path}: {error.strerror}") from error
        remove(path)
        problem = f"{path} was damaged while the run used it; run again with --resume"
        raise OutputError(problem).as_temporary() from error


def read_batch(path: Path, number: int) -> pa.RecordBatch:
    """Return record batch `number` of a file of candidates, memory-mapped; raises OutputError."""
    with checked(path):
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(number)
        batch.validate(full=True)
        return batch


def write_array(path: Path, array: I64) -> None:
    """Write an array to a file, followed by the digest of the array."""
    with atomic(path) as file:
        np.save(file, array)
        file.write(sha256(array.tobytes()).digest())


def is_whole(path: Path) -> bool:
    """Return whether a file consists of an array and the correct digest of it."""
    try:
        with path.open("rb") as file:
            return sha256(np.load(file).tobytes()).digest() == file.read()
    except (OSError, ValueError, EOFError):
        return False


@contextmanager
def key_writer(path: Path, *names: str, held_max: int = HELD) -> Iterator[Callable[..., None]]:
    """Yield a function that adds rows to a file of keys; it takes a sequence for each column.

    The first column has the keys, the last one the indices of their candidates in the portion. Runs
    of about `held_max` rows are sorted by key and written, so that a range of keys can be read
    without the rest of the file.
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
        # Write the remaining rows. Without rows, the empty array makes an empty run.
        held.append(np.zeros((len(names), 0), np.uint64))
        write_run()


def keys_between(paths: Sequence[Path], firsts: Sequence[int], start: int, stop: int) -> U64:
    """Read the rows of files of keys whose keys are at least `start` and below `stop`, as columns.

    Other rows are not read. `firsts` has for each file the index of its first candidate in the run.
    It is added to the last column, which turns indices in a portion into indices in the run.
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
    """Yield the columns of each sorted run of rows in a file of keys, memory-mapped."""
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    for number in range(file.num_record_batches):
        yield [column.to_numpy() for column in file.get_batch(number).columns]
