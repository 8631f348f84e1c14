"""The copy limit: read the input and write noisegen's columns with noisy = clean, and no noise."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import inputs
from benchmarks.measure import Result, best, cpu, rates, report

NAME = "the copy limit"


def copy(source: Path, out: Path) -> None:
    """Write one shard a row group: zstd 1, dictionaries for `transforms` only, fsync, sha256."""
    with pq.ParquetFile(source, pre_buffer=False) as file:
        for group in range(file.num_row_groups):
            read = file.read_row_group(group, use_threads=False)
            write(_columns(read), out / f"copy-{group}.parquet")


def _columns(read: pa.Table) -> pa.Table:
    offsets = pa.array(np.arange(len(read) + 1, dtype=np.int32))
    names = pa.DictionaryArray.from_arrays(np.zeros(len(read), np.int8), ["fing"])
    transforms = pa.ListArray.from_arrays(offsets, names.cast(pa.string()))
    columns = [read["id"], read["text"], read["text"], transforms]
    return pa.table(columns, ["id", "clean", "noisy", "transforms"])


def write(table: pa.Table, path: Path) -> str:
    """Write a table as noisegen does and return its sha256."""
    with path.open("wb") as file:
        with pq.ParquetWriter(
            file,
            table.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=["transforms.list.element"],
            write_statistics=["id"],
        ) as writer:
            writer.write_table(table, row_group_size=len(table))
        file.flush()
        os.fsync(file.fileno())
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def job(source: Path) -> Callable[[], float]:
    """Return the job that measures the copy limit of a file."""
    return cpu(lambda: copy(source, source.parent))


def results(rows: int) -> Iterator[Result]:
    """Measure the copy against reading alone."""
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        source = inputs.parquet(Path(folder), rows)
        read = cpu(lambda: pq.read_table(source, use_threads=False))
        speed = rates(best({"copy": job(source), "read": read}), rows)
    note = f"{inputs.texts(rows).nbytes / rows:.0f} bytes a row"
    yield Result("copy limit", speed["copy"], speed["read"], "k rows/s", "reading alone", note=note)


if __name__ == "__main__":
    report(results)
