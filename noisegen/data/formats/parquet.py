"""Parquet and Arrow files, read with a limit on the decoded bytes in memory.

A column may store each distinct text once, in a dictionary, so that decoded rows can take far more
memory than the file.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.data.files import count_bytes, for_arrow, reading, size_of
from noisegen.data.formats.base import (
    Format,
    RowWriter,
    Tables,
    conform,
    plain_schema,
    refuse_many_columns,
)
from noisegen.data.lines import LINE_MAX
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import CODE, ROWS, joined, with_reasons
from noisegen.text.buffers import I64

# Most bytes of rows decoded at once, assuming that each text is as long as its column's longest
DECODED_MAX = 128 << 20
_ARROW = b"ARROW1"  # first bytes of Arrow's file format; its stream format has none
_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
_VIEWS = pa.ListViewArray | pa.LargeListViewArray
# Classes of Arrow arrays whose values are lists; an array of maps is a ListArray too
_LISTS = pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray | _VIEWS
_STORED_ONCE = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
# If any page of a column has one of these encodings, Arrow cannot read it as a dictionary
_DELTAS = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
# Assumed maximum length, in bytes, of a text in a delta-encoded column
_DELTA_MAX = 8 << 20


def parquet_head(path: str) -> tuple[pa.Schema, int]:
    """Return the schema and the count of rows of a Parquet file.

    Raises SourceError for an unreadable file, and if the counts of rows in its metadata disagree.
    """
    with for_arrow(path) as opened, pq.ParquetFile(opened) as file:
        metadata, rows = file.metadata, file.metadata.num_rows
        found = sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        if found != rows:
            raise pa.ArrowInvalid(f"it says that it has {rows:,} rows, and has {found:,}")
        return file.schema_arrow, rows


def parquet_tables(path: str, start: int, stop: int, batch_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows `start` to `stop` of a Parquet file in tables with the column REASON.

    Row groups before the one with row `start` are not read.
    """
    with for_arrow(path) as opened:
        metadata = pq.read_metadata(opened)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        starts = np.cumsum([0, *(group.num_rows for group in groups)])
        first = int(np.searchsorted(starts, start, side="right")) - 1
        last = int(np.searchsorted(starts, stop, side="left"))
        at = int(starts[first])
        size = sum(group.total_byte_size for group in groups[first:last])
        stored = batch_bytes * int(starts[last] - at) // max(size, 1)
        decoded, lists = _rows_decoded(opened, groups[first:last], first)
        rows = max(min(stored, ROWS, decoded), 1)
        with _parquet_file(opened, lists) as file:
            for batch in file.iter_batches(rows, list(range(first, last)), use_threads=False):
                skipped = min(max(start - at, 0), len(batch))
                at += len(batch)
                if skipped < len(batch):
                    wanted = batch.slice(skipped, len(batch) - skipped - max(at - stop, 0))
                    yield from _bounded_rows(wanted, rows)
                if at >= stop:
                    return


def _parquet_file(opened: Any, stored_once: Iterable[str]) -> pq.ParquetFile:
    """Open a Parquet file; the columns in `stored_once` are read as Arrow dictionaries."""
    # By default (pre_buffer=True) Arrow would hold a whole row group in memory
    names = sorted(stored_once)
    return pq.ParquetFile(opened, pre_buffer=False, buffer_size=1 << 20, read_dictionary=names)


def _rows_decoded(
    opened: Any, groups: Sequence[pq.RowGroupMetaData], first: int
) -> tuple[int, set[str]]:
    """Return how many rows surely fit in DECODED_MAX bytes, and columns to read as dictionaries.

    Every text is assumed to be as long as the longest in its column. A column of lists that could
    thus exceed LINE_MAX bytes is read as a dictionary, and its bytes are not counted.
    """
    chunks = [[group.column(place) for place in range(group.num_columns)] for group in groups]
    once = {chunk.path_in_schema for chunk in chain(*chunks) if _is_stored_once(chunk)}
    fewest, lists = sys.maxsize, set[str]()
    with _parquet_file(opened, once) as file:
        for number, group in enumerate(groups):
            size = 0
            for place, chunk in enumerate(chunks[number]):
                width = _width(file, chunk, first + number, place)
                of_chunk, is_list = chunk.num_values * width, chunk.num_values > group.num_rows
                if is_list and of_chunk > LINE_MAX and chunk.path_in_schema in once:
                    lists.add(chunk.path_in_schema)
                else:
                    size += of_chunk
            fewest = min(fewest, DECODED_MAX * group.num_rows // max(size, 1))
    return fewest, lists


def _bounded_rows(batch: pa.RecordBatch, most: int) -> Iterator[pa.Table]:
    """Yield the rows of a batch in tables of at most `most` rows and DECODED_MAX bytes.

    A row of over LINE_MAX bytes becomes null, with row_too_long in the column REASON. A text in a
    dictionary counts for each row that has it.
    """
    sizes = sum(map(_decoded_sizes, batch.columns), np.zeros(len(batch), np.int64))
    sizes[sizes > LINE_MAX] = DECODED_MAX + 1
    ends, stop = np.cumsum(sizes), 0
    while (start := stop) < len(batch):
        fitting = int(np.searchsorted(ends, ends[start] - sizes[start] + DECODED_MAX, side="right"))
        stop = max(start + 1, min(start + most, fitting))
        rows = pa.Table.from_batches([batch.slice(start, stop - start)])
        if sizes[start] > DECODED_MAX:
            nothing = pa.table([_null_column(column) for column in batch.columns], rows.schema)
            yield with_reasons(nothing, np.array([CODE["row_too_long"]], np.int8))
        else:  # casting a slice would decode all rows of the batch, so `joined` copies the slice
            yield with_reasons(joined(rows) if len(rows) < len(batch) else rows)


def _null_column(column: pa.Array) -> pa.Array:
    """Return a column with a single null, in place of a row that is too long.

    A column of list views has an empty list instead, since Arrow cannot make list views of nulls.
    """
    if isinstance(column, _VIEWS):
        at = column.offsets.slice(0, 1)
        return type(column).from_arrays(pc.subtract(at, at), pc.subtract(at, at), column.values[:0])
    return pa.nulls(1, column.type)


def _is_stored_once(chunk: pq.ColumnChunkMetaData) -> bool:
    """Tell whether a column has texts stored in a dictionary, and Arrow can read the dictionary."""
    is_text, encodings = chunk.physical_type == "BYTE_ARRAY", set(chunk.encodings)
    return is_text and bool(encodings & _STORED_ONCE) and not encodings & _DELTAS


def _width(file: pq.ParquetFile, chunk: pq.ColumnChunkMetaData, group: int, place: int) -> int:
    """Return the most bytes that one value can take in a column, within one row group.

    `place` is the index of the column, `group` the index of the row group.
    """
    if _is_stored_once(chunk):
        return _longest_stored(file, group, chunk.path_in_schema)
    if not _DELTAS.isdisjoint(chunk.encodings):
        return min(int(chunk.total_uncompressed_size), _DELTA_MAX)
    return int(file.schema.column(place).length) or 8


def _longest_stored(file: pq.ParquetFile, group: int, name: str) -> int:
    """Return the length in bytes of the longest text in a column's dictionary, in one row group."""
    batches = file.iter_batches(ROWS, [group], columns=[name], use_threads=False)
    found = (sum(map(_longest, batch.columns)) for batch in batches)
    # The first batch with a text already has the whole dictionary
    return next(filter(None, found), 0)


def _longest(column: pa.Array) -> int:
    """Sum the length in bytes of the longest text of each Arrow dictionary in a (nested) array."""
    if pa.types.is_dictionary(column.type):
        return pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    if pa.types.is_struct(column.type):
        return sum(map(_longest, column.flatten()))
    return _longest(column.values) if isinstance(column, _LISTS) else 0


def _decoded_sizes(column: pa.Array) -> I64:
    """Return the size in bytes of the texts in each row of a column, after decoding."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        texts = column.dictionary
        is_text = texts.type in (*_BYTES, *_BYTES.values())
        sizes = pc.binary_length(texts) if is_text else pa.array(_decoded_sizes(texts))
        return np.asarray(pc.fill_null(sizes.take(column.indices), 0), np.int64)
    if kind in (pa.string_view(), pa.binary_view()):
        lengths = np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset :: 4]
        return lengths[: len(column)].astype(np.int64)
    if pa.types.is_struct(kind):
        return sum(map(_decoded_sizes, column.flatten()), np.zeros(len(column), np.int64))
    if isinstance(column, _LISTS):
        sums = np.concatenate([[0], np.cumsum(_decoded_sizes(column.values))])
        starts, stops = _list_bounds(column)
        within: I64 = sums.take(stops) - sums.take(starts)
        return within
    return np.zeros(len(column), np.int64)


def _list_bounds(column: pa.Array) -> tuple[I64, I64]:
    """Return where each list of a column starts and ends, as indices of `column.values`."""
    if isinstance(column, pa.FixedSizeListArray):
        starts = (column.offset + np.arange(len(column))) * column.type.list_size
        return starts, starts + column.type.list_size
    offsets = column.offsets.to_numpy().astype(np.int64)
    if isinstance(column, _VIEWS):
        return offsets, offsets + column.sizes.to_numpy()
    return offsets[:-1], offsets[1:]


def arrow_head(path: str) -> tuple[pa.Schema, int]:
    """Return the schema and the count of rows of an Arrow file, in stream or file format."""
    rows = 0
    with for_arrow(path) as opened:
        batches = _arrow_batches(opened)
        schema = next(batches)
        for batch in batches:
            rows += len(_checked(batch))
    return schema, rows


def arrow_tables(path: str, start: int, stop: int, batch_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows `start` to `stop` of an Arrow file in tables with the column REASON."""
    at = 0
    with for_arrow(path) as opened:
        batches = _arrow_batches(opened)
        next(batches)
        for batch in batches:
            wanted = batch.slice(max(start - at, 0), max(stop - max(at, start), 0))
            at += len(batch)
            if len(wanted):
                _checked(batch)
                stored = len(wanted) * batch_bytes // max(wanted.nbytes, 1)
                yield from _bounded_rows(wanted, max(stored, 1))
            if at >= stop:
                return


def _arrow_batches(opened: Any) -> Iterator[Any]:
    """Yield first the schema, then each batch of a file in Arrow's stream or file format."""
    with pa.memory_map(opened) if isinstance(opened, str) else pa.PythonFile(opened, "r") as source:
        is_stream = source.read(len(_ARROW)) != _ARROW
        source.seek(0)
        if is_stream:
            with pa.ipc.open_stream(source) as stream:
                yield stream.schema
                yield from stream
        else:
            with pa.ipc.open_file(source) as file:
                yield file.schema
                yield from map(file.get_batch, range(file.num_record_batches))


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch after checking its offsets; raises ArrowInvalid for a wrong offset.

    Without the check Arrow could read memory outside of the batch.
    """
    # As bytes, texts that are not UTF-8 are valid here; a later check drops their rows
    for column in batch.columns:
        column.cast(_BYTES.get(column.type, column.type)).validate(full=True)
    return batch


# Declarations of the formats.


def _numbered_rows(
    name: str,
    read_head: Callable[[str], tuple[pa.Schema, int]],
    read_tables: Callable[[str, int, int, int], Tables],
    writer: RowWriter | None = None,
) -> Format:
    """Return a format whose files are divided by row number, given functions that read them."""

    def head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
        schema, rows = read_head(file.path)
        refuse_many_columns(file.path, len(schema))
        row_id = columns.of(schema.names).row_id
        kind = schema.field(row_id).type if row_id in schema.names else None
        file = replace(file, id_type=kind if kind and pa.types.is_dictionary(kind) else None)
        with reading(file.path):
            schema, size = plain_schema(schema, columns), size_of(file.path)
        return replace(file, stop=rows, rows=rows, schema=schema, size=size)

    def tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
        stop = file.start + file.rows
        for table in conform(read_tables(file.path, file.start, stop, batch_bytes), file):
            count_bytes(file.size * len(table) // file.rows)
            yield table

    return Format(name, (name,), head, tables, cut="rows", is_text=False, writer=writer)


PARQUET = _numbered_rows("parquet", parquet_head, parquet_tables, RowWriter(line=None))
ARROW = _numbered_rows("arrow", arrow_head, arrow_tables)
