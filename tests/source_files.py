"""Inputs in every format, and all rows of a run: what the tests of sources share."""

import bz2
import csv
import gzip
import io
import json
import lzma
import pickle
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisegen.augmentation.shards import ShardTask
from noisegen.data import lines, sources, tables
from noisegen.data.formats import json_lines, separated
from noisegen.data.rows import Columns
from noisegen.data.sources import expand, read, shard_ranges
from noisegen.data.tables import RAW, REASON, REASONS

TEXT = Columns()
NAMED = Columns(tokens="words", labels="tags")
File = Callable[[str, bytes], Path]


def zst(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def bgzf(data: bytes) -> bytes:
    """Return a member of gzip that says its size, as bgzip writes them."""
    packer = zlib.compressobj(wbits=-15)
    content = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\0BC\x02\0"
    size, check = struct.pack("<H", len(content) + 25), struct.pack("<II", crc32(data), len(data))
    return head + size + content + check


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zst,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def as_csv(texts: Sequence[str]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("n", "text"), *enumerate(texts)])
    return file.getvalue().encode()


def as_parquet(texts: Sequence[str]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), sink, row_group_size=2)
    return bytes(sink.getvalue())


FORMATS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "txt": lambda texts: "".join(f"{text}\n" for text in texts).encode(),
    "tsv": lambda texts: "".join(f"{text}\tx\n" for text in ["text", *texts]).encode(),
    "csv": as_csv,
    "jsonl": lambda texts: "".join(json.dumps({"text": t}) + "\n" for t in texts).encode(),
    "parquet": as_parquet,
}


def all_tasks(
    *paths: object, columns: Columns = TEXT, shard: int = 1000, limit: int | None = None
) -> list[ShardTask]:
    shards = shard_ranges(expand([str(path) for path in paths]), columns, shard, limit)
    return [ShardTask(number, ranges) for number, ranges in enumerate(shards)]


def rows_of(
    *paths: object,
    columns: Columns = TEXT,
    shard: int = 1000,
    limit: int | None = None,
    batch_bytes: int = 1 << 20,
    batch_rows: int = 50,
) -> tuple[pa.Table, Counter[str]]:
    dropped: Counter[str] = Counter()
    tables = []
    for task in all_tasks(*paths, columns=columns, shard=shard, limit=limit):
        sent = pickle.loads(pickle.dumps(task))
        for batch in read(sent.ranges, columns, batch_rows, batch_bytes):
            tables.append(batch.table)
            dropped += batch.dropped
    return pa.concat_tables(tables), dropped


def clean(*paths: object, **options: object) -> list[str]:
    table: pa.Table = rows_of(*paths, **options)[0]  # type: ignore[arg-type]
    return list(table["clean"].to_pylist())


def writer(folder: Path) -> File:
    """Return the function that writes a file into a folder."""

    def write(name: str, data: bytes) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


def on_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Give bytes to standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def cut_finely(monkeypatch: pytest.MonkeyPatch, size: int, distance: int) -> None:
    """Cut compressed texts from `size` bytes on, at offsets `distance` bytes apart."""
    monkeypatch.setattr(lines, "SPLIT_BYTES", size)
    monkeypatch.setattr(lines, "ENTRY_BYTES", distance)


def limit_bytes(monkeypatch: pytest.MonkeyPatch, text: int, line: int) -> None:
    """Let a text have at most `text` bytes, and a line `line` bytes."""
    limits = {"TEXT_MAX": (separated, sources), "LINE_MAX": (tables, lines, json_lines)}
    for name, bytes_max in (("TEXT_MAX", text), ("LINE_MAX", line)):
        for module in limits[name]:
            monkeypatch.setattr(module, name, bytes_max)


def reasons(table: pa.Table) -> list[str]:
    return [REASONS[code] for code in table[REASON].to_pylist()]


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    names = [name for name in table.column_names if name not in (RAW, REASON)]
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))
