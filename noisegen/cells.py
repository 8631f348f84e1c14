"""Columns of text that a user named by what they hold: read bounded, or streamed, and cleaned."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.batches import regroup
from noisegen.errors import SourceError, did_you_mean
from noisegen.inputs import COMPRESSIONS, KINDS, Columns, Input, expand, listed, whole
from noisegen.readers import (
    CODE,
    KEPT,
    REASON,
    REASONS,
    as_text,
    hf_tables,
    parquet_tables,
    reading,
    with_reasons,
)
from noisegen.sources import stream

ROWS_MAX = 1_000_000  # that are held in memory
_BATCH_BYTES, _BATCH_ROWS = 4 << 20, 10_000
Choices = Sequence[Sequence[str]]  # sets of columns, the first that a source has is read


@dataclass(frozen=True)
class Cells:
    """Columns of text of one source; `dropped` counts rows by reason, `damaged` says what was lost.

    The lists are equally long, and no cell is blank. `unread` counts the rows of `damaged`, by the
    reasons of `readers.REASONS`.
    """

    columns: dict[str, list[str]]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def sample(self, most: int) -> "Cells":
        """Return at most so many rows, spread evenly over all."""
        if len(self) <= most:
            return self
        rows = [number * len(self) // most for number in range(most)]
        kept = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return Cells(kept, self.dropped, self.damaged)


def read_cells(source: str, choices: Choices, what: str) -> Cells:
    """Read the first of the `choices` of columns that the source has.

    `source` is a file, folder, glob or hf:...; of a text file, the one column is its lines. Columns
    of a file without a header are numbers from 1. `what` names the set in errors. Raises
    SourceError for what is missing and where no row is left.
    """
    read = Cells({})
    rows = list(islice(stream_cells(source, choices, what, read), ROWS_MAX))
    return replace(
        read,
        columns={name: [cells[place] for cells in rows] for place, name in enumerate(read.columns)},
    )


def stream_cells(
    source: str, choices: Choices, what: str, read: Cells
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a source of any size, as `read_cells` reads them.

    `read` is told the names of the columns, what was dropped and what is damaged.
    """
    empty = True
    for item in expand([source]):
        for names, table in _tables(item, choices, what) if not item.skipped else ():
            if not read.columns:
                read.columns.update({name: [] for name in names})
            for cells in _rows(table, tuple(read.columns), item.path, read):
                empty = False
                yield cells
    if empty:
        raise SourceError(f"{source}: no rows for {what}{in_brackets(read.dropped)}")


def by_reason(dropped: Mapping[str, int]) -> str:
    """Return numbers of rows with their reasons, most first: '12 empty_side, 3 too_long'."""
    return ", ".join(f"{count:,} {reason}" for reason, count in Counter(dropped).most_common())


def in_brackets(dropped: Mapping[str, int]) -> str:
    """Return the same as the end of an error, '' where there is none."""
    return f" ({by_reason(dropped)})" if dropped else ""


def name_of(source: str) -> str:
    """Return a short name of a source: the file's without folder and endings."""
    name = source.rstrip("/").rpartition("/")[2] or source
    for ending in (*COMPRESSIONS, *KINDS, "m2"):
        name = name.removesuffix(f".{ending}")
    return name


def named_source(given: str) -> tuple[str, str]:
    """Split NAME=SOURCE; a source without a name is called as its file."""
    name, equals, source = given.partition("=")
    if equals and source and not Path(given).exists() and not set(name) & set("/\\:*"):
        return name, source
    return name_of(given), given


def _tables(item: Input, choices: Choices, what: str) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """Yield the rows of an input in small tables, with the columns to read and REASON."""
    columns = Columns(text=choices[0][0])
    piece = whole(item, columns) if item.kind != "hf" else None
    if piece is not None:
        chosen = _chosen(piece.schema.names, choices, item.path, what)
        if piece.kind != "parquet":
            for table in regroup(stream(item, piece, columns), _BATCH_ROWS, _BATCH_BYTES):
                yield chosen, table
            return
        tables = parquet_tables(piece.path, 0, piece.rows, _BATCH_BYTES)
    elif item.kind == "hf":
        tables = hf_tables(item.path)
    else:
        return
    with reading(item.path):
        for table in regroup(tables, _BATCH_ROWS, _BATCH_BYTES):
            chosen = _chosen(table.column_names, choices, item.path, what)
            yield chosen, with_reasons(table, np.zeros(len(table), np.int8))


def _chosen(there: list[str], choices: Choices, path: str, what: str) -> tuple[str, ...]:
    twice = next((name for name in there if there.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: two columns are named {twice!r}")
    numbered = [[Columns(text=name).of(there).text for name in names] for names in choices]
    found = next((names for names in numbered if set(names) <= set(there)), None)
    if found is not None:
        return tuple(found)
    lacking = [
        [name for name, column in zip(*pair, strict=True) if column not in there]
        for pair in zip(choices, numbered, strict=True)
    ]
    lacks = min(lacking, key=len)[0]
    wanted = " or ".join(", ".join(names) for names in choices)
    raise SourceError(
        f"{path}: no column {lacks!r} among: {listed(there)}"
        f"{did_you_mean(lacks, there)}; {what} needs the columns {wanted}"
    )


def _rows(
    table: pa.Table, names: Sequence[str], path: str, read: Cells
) -> Iterator[tuple[str, ...]]:
    """Yield the rows whose cells all hold something; count the others."""
    codes = table[REASON].to_numpy().copy()
    for name in names:
        if name not in table.column_names:
            raise SourceError(f"{path}: no column {name!r}, which the files before it have")
    columns = [_texts(table[name], name, path, codes) for name in names]
    lost = Counter(REASONS[code] for code in codes.tolist() if code not in KEPT)
    read.unread.update(lost)
    read.damaged.extend(f"{path}: {count:,} rows {reason}" for reason, count in lost.items())
    for code, cells in zip(codes.tolist(), zip(*columns, strict=True), strict=True):
        if code not in KEPT:
            continue
        if all(cell and not cell.isspace() for cell in cells):
            yield cells
        else:
            read.dropped["empty_cell"] += 1


def _texts(column: pa.ChunkedArray, name: str, path: str, codes: Any) -> list[str | None]:
    """Return a column as strings, numbers written out; what is not UTF-8 is null and marked."""
    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        array, wrong = as_text(array.cast(pa.binary()))
        codes[wrong] = CODE["not_utf8"]
    try:
        texts: list[str | None] = array.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(f"{path}: column {name!r} is no text or number: {array.type}") from error
    return texts
