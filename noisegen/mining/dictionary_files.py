"""Dictionary files: Parquet and TSV with all columns, the paper's JSON, a lexicon; and back."""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.atomic import atomic
from noisegen.errors import UsageError
from noisegen.mining.dictionary import Alternative

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("lang", "clean", "noisy")),
        *((name, pa.int64()) for name in ("count", "pages", "reverse_count")),
        ("prob", pa.float64()),
    ]
)
ROWS = 65_536  # written at once


def write_both(entries: Iterable[Alternative], out: Path) -> int:
    """Write dictionary.parquet and dictionary.tsv of a folder; return the number of entries."""
    written = 0
    with ExitStack() as stack:
        table = stack.enter_context(atomic(out / "dictionary.parquet"))
        text = stack.enter_context(atomic(out / "dictionary.tsv"))
        parquet = stack.enter_context(pq.ParquetWriter(table, SCHEMA, compression="zstd"))
        text.write(_line(SCHEMA.names))
        for part in _parts(entries):
            parquet.write_table(_table(part))
            text.writelines(_line(_fields(entry)) for entry in part)
            written += len(part)
    return written


def _parts(entries: Iterable[Alternative]) -> Iterator[list[Alternative]]:
    left = iter(entries)
    while part := list(islice(left, ROWS)):
        yield part


def _table(entries: list[Alternative]) -> pa.Table:
    columns = list(zip(*entries, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def _line(fields: Iterable[str]) -> bytes:
    return ("\t".join(fields) + "\n").encode()


def _fields(entry: Alternative) -> list[str]:
    return [*map(str, entry[:-1]), f"{entry.prob:.6g}"]


def write_parquet(entries: Iterable[Alternative], path: Path) -> None:
    """Write a dictionary as Parquet."""
    with atomic(path) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for part in _parts(entries):
            writer.write_table(_table(part))


def write_tsv(entries: Iterable[Alternative], path: Path) -> None:
    """Write a dictionary as TSV with a header line."""
    with atomic(path) as file:
        file.write(_line(SCHEMA.names))
        file.writelines(_line(_fields(entry)) for entry in entries)


def write_lexicon(entries: Iterable[Alternative], path: Path, head: dict[str, str]) -> None:
    """Write clean, noisy, weight below a head with name, lang, source and license.

    Raises UsageError for a value of several lines.
    """
    for key, value in head.items():
        if len(value.splitlines()) > 1:
            raise UsageError(f"{key} {value!r} must be one line")
    with atomic(path) as file:
        file.writelines(f"# {key}: {value}\n".encode() for key, value in head.items())
        file.write(_line(("clean", "noisy", "weight")))
        file.writelines(_line((entry.clean, entry.noisy, str(entry.count))) for entry in entries)


def write_json(entries: Iterable[Alternative], path: Path) -> None:
    """Write {correct: [[wrong, probability], ...]}, the form of RCP's paper."""
    found: dict[str, list[tuple[str, float]]] = {}
    for entry in entries:
        found.setdefault(entry.clean, []).append((entry.noisy, round(entry.prob, 6)))
    with atomic(path) as file:
        file.write(json.dumps(found, ensure_ascii=False).encode() + b"\n")
