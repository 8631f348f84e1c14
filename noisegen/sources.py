"""SOURCE to Arrow tables with ids: rows are cut into tasks, and a task is read in batches."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa

from noisegen.batches import Batch, batch_of, joined, regroup
from noisegen.errors import SourceError
from noisegen.inputs import BOM, Columns, Input, Piece, agree, expand, plain, whole
from noisegen.json_lines import json_table
from noisegen.readers import (
    CODE,
    REASON,
    SCAN,
    Damaged,
    blocks,
    csv_tables,
    delimited,
    hf_tables,
    line_ranges,
    opened,
    parquet_tables,
    reading,
    with_reasons,
)  # fmt: skip

__all__ = ["Batch", "Columns", "Input", "Piece", "Task", "expand", "read", "tasks"]

STREAM_BYTES = 64 << 20  # of rows in a task that carries them


@dataclass(frozen=True)
class Task:
    """One shard: rows named by pieces, or the rows of a source that can only be streamed."""

    number: int
    first_row: int
    rows: int
    pieces: tuple[Piece, ...] = ()
    table: pa.Table | None = None


def tasks(
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int, limit: int | None = None
) -> Iterator[Task]:
    """Yield the shards in input order; files are checked first, and lines counted on the way.

    Raises SourceError for files that cannot be read, do not agree, or have no rows at all.
    """
    rows_per_shard = min(rows_per_shard, limit or rows_per_shard)
    first = 0
    for number, (pieces, table) in enumerate(_shards(inputs, columns, rows_per_shard)):
        rows = sum(piece.rows for piece in pieces) if table is None else len(table)
        if limit is not None and first + rows >= limit:
            rows = limit - first
            pieces = _first_rows(pieces, rows)
            yield Task(number, first, rows, pieces, table and joined(table.slice(0, rows)))
            return
        yield Task(number, first, rows, pieces, table)
        first += rows
    if not first:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")


def _first_rows(pieces: tuple[Piece, ...], rows: int) -> tuple[Piece, ...]:
    kept = []
    for piece in pieces:
        if rows > 0:
            kept.append(replace(piece, rows=min(piece.rows, rows)))
        rows -= piece.rows
    return tuple(kept)


def _shards(
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int
) -> Iterator[tuple[tuple[Piece, ...], pa.Table | None]]:
    """Yield the content of the tasks; a streamed source begins and ends its own."""
    files = _agreed(inputs, columns)
    first = next((piece for _, piece in files if piece), None)
    held: list[Piece] = []
    room = rows_per_shard
    for item, piece in files:
        if piece and not item.streamed:
            for part in _cut(piece, room, rows_per_shard):
                held.append(part)
                room -= part.rows
                if not room:
                    yield tuple(held), None
                    held, room = [], rows_per_shard
            continue
        if held:
            yield tuple(held), None
            held, room = [], rows_per_shard
        tables: Iterator[pa.Table] = hf_tables(item.path) if piece is None else iter(())
        if piece is None and (table := next(tables, None)) is not None:
            piece = Piece(item.path, "hf", 0, 0, 0, plain(table.schema, columns))
            piece = agree(piece, first or piece, columns)
            first, tables = first or piece, _conform(chain([table], tables), piece)
        elif piece:
            tables = stream(item, piece, columns)
        yield from (((), table) for table in regroup(tables, rows_per_shard, STREAM_BYTES))
    if held:
        yield tuple(held), None


def _agreed(inputs: Sequence[Input], columns: Columns) -> list[tuple[Input, Piece | None]]:
    """Return the inputs that hold something, files as pieces with the same columns."""
    first: Piece | None = None
    files: list[tuple[Input, Piece | None]] = []
    for item in inputs:
        piece = whole(item, columns) if item.kind not in ("hf", "") else None
        if piece is not None:
            piece = agree(piece, first or piece, columns)
            first = first or piece
        if piece is not None or item.kind == "hf":
            files.append((item, piece))
    return files


def _cut(piece: Piece, first: int, step: int) -> Iterator[Piece]:
    """Cut a file after its first `first` rows and then after every `step`."""
    if piece.kind == "parquet":
        bounds = [0, *range(first, piece.rows, step), piece.rows]
        for start, stop in pairwise(bounds if piece.rows else []):
            yield replace(piece, start=start, stop=stop, rows=stop - start)
        return
    with reading(piece.path):
        for start, stop, rows in line_ranges(piece.path, piece.start, first, step):
            yield replace(piece, start=start, stop=stop, rows=rows)


def stream(item: Input, piece: Piece, columns: Columns) -> Iterator[pa.Table]:
    """Yield the rows of a file or of stdin from beginning to end; damage ends them with a row."""
    opening = opened(piece.path, item.compression)
    with reading(piece.path), opening if piece.path != "-" else nullcontext(_stdin) as read:
        parts = blocks(read, SCAN)
        try:
            head = next(parts, b"")
            head = head.removeprefix(BOM) if read is _stdin else head[piece.start :]
            yield from _tables(chain([head], parts), piece, columns)
        except Damaged:
            nothing = pa.table([pa.nulls(1, kind) for kind in piece.schema.types], piece.schema)
            yield with_reasons(nothing, np.array([CODE["truncated"]], np.int8))


def _stdin(size: int) -> bytes:
    return sys.stdin.buffer.read(size)


def _tables(parts: Iterable[bytes], piece: Piece, columns: Columns) -> Iterator[pa.Table]:
    """Yield whole lines as tables, with the columns in the order of the run."""
    parts = (part for part in parts if part)
    if piece.kind == "csv":
        tables = csv_tables(parts, piece.names)
    elif piece.kind == "jsonl":
        tables = (json_table(part, piece.schema, columns.source) for part in parts)
    else:
        tabs = piece.kind == "tsv"
        tables = (delimited(part, piece.names, tabs=tabs) for part in parts)
    yield from (table.select([*piece.schema.names, REASON]) for table in tables)


def _conform(tables: Iterable[pa.Table], piece: Piece) -> Iterator[pa.Table]:
    """Yield tables with the columns and types of the piece."""
    with reading(piece.path):
        for table in tables:
            table = table.select(piece.schema.names)
            table = table if table.schema.equals(piece.schema) else table.cast(piece.schema)
            yield with_reasons(table, np.zeros(len(table), np.int8))


def read(
    task: Task, columns: Columns, batch_rows: int = 100_000, batch_bytes: int = 4 << 20
) -> Iterator[Batch]:
    """Yield the rows of a task in batches of about so many rows and bytes at most.

    Every column is one chunk. Raises SourceError for a file that is gone, damaged or changed.
    """
    pieces = (_piece_tables(piece, columns, batch_bytes) for piece in task.pieces)
    tables = chain.from_iterable(pieces) if task.table is None else [task.table]
    first = task.first_row
    for table in regroup(tables, batch_rows, batch_bytes):
        yield batch_of(table, columns.of(table.column_names), first)
        first += len(table)


def _piece_tables(piece: Piece, columns: Columns, batch_bytes: int) -> Iterator[pa.Table]:
    left = piece.rows
    if piece.kind == "parquet":
        stop = piece.start + left
        tables = _conform(parquet_tables(piece.path, piece.start, stop, batch_bytes), piece)
    else:
        tables = _line_tables(piece, columns, batch_bytes)
    for table in tables:
        yield table.slice(0, left)
        left -= len(table)
        if left <= 0:
            return
    raise SourceError(
        f"{piece.path}: {left:,} rows are gone; it has changed since they were counted"
    )


def _line_tables(piece: Piece, columns: Columns, batch_bytes: int) -> Iterator[pa.Table]:
    with reading(piece.path), opened(piece.path, "", piece.start, piece.stop) as lines:
        yield from _tables(blocks(lines, min(batch_bytes, SCAN)), piece, columns)
