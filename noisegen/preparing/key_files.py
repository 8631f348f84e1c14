"""Files of 64-bit keys, sorted in runs, so that a range of keys is read without the rest."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.draws import I64, U64

HELD = 500_000  # entries sorted at a time while a file is written: about 30 MB
GROUP = 1 << 16  # entries of a row group, the least that is read
RANGE = 1_000_000  # entries of a range, about, all in memory at once: about 100 MB


class KeyWriter:
    """Writes (key, mark, row); what the mark says is the caller's matter."""

    def __init__(self, file: IO[bytes]) -> None:
        schema = pa.schema([("key", pa.uint64()), ("mark", pa.uint64()), ("row", pa.uint32())])
        self._to = pq.ParquetWriter(
            file, schema, compression={"mark": "zstd"}, use_dictionary=False
        )
        self._held: list[tuple[U64, U64, I64]] = []
        self._size = 0

    def add(self, keys: U64, marks: U64, rows: I64) -> None:
        """Add entries, arrays of equal length."""
        if len(keys):
            self._held.append((keys, marks, rows))
            self._size += len(keys)
        if self._size >= HELD:
            self._spill()

    def _spill(self) -> None:
        keys, marks, rows = map(np.concatenate, zip(*self._held, strict=True))
        order = np.argsort(keys, kind="stable")
        columns = [keys[order], marks[order], rows[order].astype(np.uint32)]
        self._to.write_table(pa.table(columns, self._to.schema), row_group_size=GROUP)
        self._held, self._size = [], 0

    def close(self) -> None:
        """Write what is held and the end of the file."""
        if self._held:
            self._spill()
        self._to.close()


def ranges(paths: Sequence[Path], firsts: Sequence[int]) -> Iterator[tuple[U64, U64, I64]]:
    """Yield the entries of all files, a range of keys at a time: keys, marks, places.

    The place of a row is its number plus that of the first row of its file.
    """
    entries = sum(pq.read_metadata(path).num_rows for path in paths)
    count = entries // RANGE + 1
    bounds = [number * (1 << 64) // count for number in range(count + 1)]
    for start, stop in pairwise(bounds):
        parts = [
            _part(path, first, start, stop - 1) for path, first in zip(paths, firsts, strict=True)
        ]
        keys, marks, places = map(np.concatenate, zip(*parts, strict=True))
        yield keys, marks, places


def _part(path: Path, first: int, least: int, most: int) -> tuple[U64, U64, I64]:
    """Return the entries of a file from one key to another; row groups outside are not read."""
    with pq.ParquetFile(path) as file:
        groups = [
            number for number in range(file.num_row_groups) if _meets(file, number, least, most)
        ]
        table = file.read_row_groups(groups, use_threads=False)
    keys = table["key"].to_numpy()
    inside = (keys >= np.uint64(least)) & (keys <= np.uint64(most))
    places = table["row"].to_numpy().astype(np.int64) + first
    return keys[inside], table["mark"].to_numpy()[inside], places[inside]


def _meets(file: pq.ParquetFile, group: int, least: int, most: int) -> bool:
    found = file.metadata.row_group(group).column(0).statistics
    return bool(found.min <= most and found.max >= least)
