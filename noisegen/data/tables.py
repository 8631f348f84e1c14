"""Rows of files as Arrow tables, a bounded block at a time: lines, TSV, CSV, JSON lines, hf:.

Every table has all rows of its block: one that cannot be read is null and says why in REASON. Types
of JSON lines are those of a file's beginning; a field or value that does not fit is left out.
"""

import csv
import io
import json
import re
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from noisegen.data.files import (
    BOM,
    HEAD,
    LINE_MAX,
    SCAN,
    TEXT_MAX,
    Damaged,
    PackedRange,
    blocks,
    entered_parts,
    first_line,
    read_parts,
)
from noisegen.errors import SourceError, naming_extras

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]
_Record = list[str] | str  # the fields, or the reason to drop them

ROWS = 4096  # decoded at once: few enough even for long texts
DEPTH_MAX = 32  # values of JSON within each other; Arrow reads no schema back that has over 60
FIELDS_MAX = 1_000  # columns of JSON, those of objects within them counted
REASON = "\x00reason"  # the column with the index into REASONS
RAW = "\x00raw"  # the column with the bytes of each row in its file, with their line end
REASONS = (
    "", "not_utf8", "null_text", "bad_json", "missing_text", "wrong_columns", "unexpected_field",
    "row_too_long", "truncated", "null_id", "unequal_labels", "open_quote",
)  # fmt: skip
CODE = {name: number for number, name in enumerate(REASONS)}
KEPT = (0, CODE["unexpected_field"])  # rows with any other code are dropped
_HALVES = re.compile("[\ud800-\udfff]")  # of a surrogate pair
_SCALARS = {bool: pa.bool_(), float: pa.float64(), int: pa.int64(), str: pa.string()}


class Lines(NamedTuple):
    """A range of lines, in bytes of the content; `entry` is what of a file is decoded for it."""

    start: int
    stop: int
    rows: int
    entry: PackedRange = HEAD


def line_ranges(
    path: str, start: int, first: int, step: int, entry: PackedRange = HEAD
) -> Iterator[Lines]:
    """Yield ranges of `first` lines, then of `step` at a time, then of the rest.

    `entry` has the pieces of a compressed file. Where it is damaged the last range has no end, and
    a row more, which stands for the damage.
    """
    begin = at = start
    rows, want, ended = 0, first, True
    head = piece = HEAD  # where the range begins, and what is read

    def lines(stop: int, rows: int, last: PackedRange) -> Lines:
        bounds = entry.bounds
        if bounds and head.bounds:
            first = bisect_left(bounds, head.bounds[0])
            bounds = bounds[first : bisect_left(bounds, last.bounds[-1], first) + 1]
        return Lines(begin, stop, rows, PackedRange(head.content, bounds))

    try:
        for piece, block in _parts(path, start, entry):
            stops = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + (at + 1)
            head = piece if at == begin else head
            while rows + len(stops) >= want:
                stop = int(stops[want - rows - 1])
                yield lines(stop, want, piece)
                begin, stops, head = stop, stops[want - rows :], piece
                rows, want = 0, step
            rows, at, ended = rows + len(stops), at + len(block), block.endswith(b"\n")
    except Damaged:
        yield lines(sys.maxsize, rows + 1, entry)
    else:
        if at > begin:
            yield lines(at, rows + (not ended), piece)


def with_sizes(ranges: Iterable[Lines], entry: PackedRange) -> Iterator[tuple[Lines, int]]:
    """Yield ranges, each with its share of the bytes of the file, compressed or not."""
    for part, following in pairwise(chain(ranges, [None])):
        assert part is not None
        if entry.bounds:
            stop = following.entry.bounds[0] if following else entry.bounds[-1]
            yield part, stop - part.entry.bounds[0]
        else:
            yield part, part.stop - part.start


def _parts(path: str, start: int, entry: PackedRange) -> Iterator[tuple[PackedRange, bytes]]:
    """Yield the content of a file from byte `start` on, each part with its piece of the file."""
    if not entry.bounds:
        yield from ((HEAD, part) for part in read_parts(path, start))
        return
    for piece, part in entered_parts(path, entry):
        yield piece, part[start:]
        start = max(0, start - len(part))


def read_lines(parts: Iterable[bytes]) -> Iterator[str | None]:
    """Yield lines without their LF or CRLF; None for one that is not UTF-8 or over LINE_MAX.

    Raises what `parts` raises, Damaged with the number of the last whole line.
    """
    count = 0
    try:
        for block in blocks(parts, SCAN):
            block = block if count else block.removeprefix(BOM)
            lines = delimited(block, ["line"], tabs=False)["line"].to_pylist()
            count += len(lines)
            yield from lines
    except Damaged as damage:
        raise Damaged(f"breaks off after line {count:,} ({damage})") from damage


def with_reasons(table: pa.Table, codes: Codes | None = None) -> pa.Table:
    """Return the table with the column REASON, by default all readable."""
    codes = np.zeros(len(table), np.int8) if codes is None else codes
    return table.append_column(REASON, pa.array(codes, pa.int8()))


def regroup(tables: Iterable[pa.Table], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `rows_max` rows, fewer where they exceed `bytes_max`."""
    held: list[pa.Table] = []
    room, size = rows_max, 0
    for table in chain.from_iterable(_halved(table, bytes_max // 8) for table in tables):
        at = 0
        while at < len(table):
            part = table.slice(at, min(room, len(table)))
            is_full = bool(held) and size + part.nbytes > bytes_max
            if not is_full:
                held.append(part)
                at, room, size = at + len(part), room - len(part), size + part.nbytes
            if is_full or not room:
                yield joined(*held)
                held, room, size = [], rows_max, 0
    if held:
        yield joined(*held)


def _halved(table: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    """Halve a table until it is small, unless the halves share what is large (a dictionary)."""
    halves = table.slice(0, len(table) // 2), table.slice(len(table) // 2)
    alone = len(table) < 2 or table.nbytes <= bytes_max
    if alone or sum(half.nbytes for half in halves) > 1.5 * table.nbytes:
        yield table
        return
    for half in halves:
        yield from _halved(half, bytes_max)


def joined(*tables: pa.Table) -> pa.Table:
    """Join tables into one chunk a column that owns no more than its rows.

    A slice is pickled with all of its parent; the empty slice makes Arrow copy.
    """
    return pa.concat_tables([*tables, tables[0].slice(0, 0)]).combine_chunks()


def as_text(column: pa.Array) -> tuple[pa.Array, Mask]:
    """Return binary values as strings, and where they are not UTF-8 (null there)."""
    wrong = np.zeros(len(column), np.bool_)
    try:
        return column.cast(pa.string()), wrong
    except pa.ArrowInvalid:
        for index, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                wrong[index] = True
        return pc.if_else(pa.array(wrong), None, column).cast(pa.string()), wrong


def is_unicode(text: str) -> bool:
    """Tell whether a string has no half of a surrogate pair."""
    return text.isascii() or not _HALVES.search(text)


def raw_lines(block: bytes) -> pa.Array:
    """Return the lines of a block as they are, with LF or CRLF if they have it."""
    stops = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
    last = [] if block.endswith(b"\n") else [len(block)]
    bounds = np.concatenate([[0], stops, last]).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def delimited(block: bytes, names: Sequence[str], *, tabs: bool, ragged: bool = False) -> pa.Table:
    """Return the fields of lines, split at tabs or not at all; LF or CRLF ends a line.

    Lines with more fields are read if they are `ragged`; those with fewer never are.
    """
    block = block if block.endswith(b"\n") else block + b"\n"
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero((data == 10) | (data == 9) if tabs else data == 10)
    is_last = data[stops] == 10
    last = np.flatnonzero(is_last)
    codes = np.zeros(len(last), np.int8)
    widths = np.diff(last, prepend=-1)
    codes[(widths < len(names)) | ((widths > len(names)) & (not ragged))] = CODE["wrong_columns"]
    codes[np.diff(stops[last], prepend=-1) > LINE_MAX] = CODE["row_too_long"]
    # Every other value is a field, those between them are the separators.
    bounds = np.zeros(2 * len(stops) + 1, np.int32)
    bounds[2::2] = stops + 1
    bounds[1::2] = stops - (is_last & (data[stops - 1] == 13) & (stops > 0))
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    values = pa.Array.from_buffers(pa.binary(), 2 * len(stops), buffers)
    columns = []
    for number in range(len(names)):
        fields = np.minimum(last - widths + 1 + number, last)
        column, wrong = as_text(values.take(pa.array(2 * fields, mask=codes != 0)))
        columns.append(column)
        codes[wrong] = CODE["not_utf8"]
    return with_reasons(pa.table(columns, list(names)), codes)


def csv_tables(parts: Iterable[bytes], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of CSV with quotes as in RFC 4180; raises Damaged after the last."""
    lines = (_text(line) for part in parts for line in io.BytesIO(part))
    damage: list[Damaged] = []
    records = _csv_records(lines, len(names), damage)
    while batch := _bounded(records):
        rows, texts = zip(*batch, strict=True)
        raw = [text.encode("utf-8", "surrogateescape") for text in texts]
        yield _csv_table(rows, names).append_column(RAW, pa.array(raw, pa.binary()))
    if damage:
        raise damage[0]


def _bounded(records: Iterator[tuple[_Record, str]]) -> list[tuple[_Record, str]]:
    """Return the next records, so many as are decoded at once."""
    batch, size = [], 0
    before = csv.field_size_limit(TEXT_MAX)
    try:
        for row, text in islice(records, ROWS):
            batch.append((row, text))
            size += len(text) if isinstance(row, str) else sum(map(len, row))
            if size >= SCAN:
                break
    finally:
        csv.field_size_limit(before)
    return batch


def _csv_records(
    lines: Iterator[str], width: int, damage: list[Damaged]
) -> Iterator[tuple[_Record, str]]:
    """Yield records of so many fields, with their lines; what ends these early goes to `damage`.

    Where a quote opens and does not close as it should, or closes lines below in a record of
    another width, only the line that it is on is lost: reading goes on with the next.
    """
    again, held = deque[str](), list[str]()  # lines to read once more, and those of the record

    def read() -> Iterator[str]:
        while again:
            held.append(again.popleft())
            yield held[-1]
        try:
            for line in lines:
                held.append(line)
                yield line
        except Damaged as error:
            damage.append(error)

    reader = csv.reader(read(), strict=True)
    record: _Record | None
    while True:
        try:
            if (record := next(reader, None)) is None:
                return
        except csv.Error as error:
            record = _csv_line(held[0], error)
        record = record or [""]
        if isinstance(record, str) or len(record) != width:
            record = record if isinstance(record, str) else "wrong_columns"
            if held[1:]:
                again.extendleft(reversed(held[1:]))
                del held[1:]
                record, reader = "open_quote", csv.reader(read(), strict=True)
        yield record, "".join(held)
        held.clear()


def _csv_line(line: str, error: csv.Error) -> _Record:
    """Return the fields of a line in which quotes are not as they should be, or why it has none."""
    if "field larger" in str(error):
        return "row_too_long"
    try:
        (record,) = csv.reader([line])
    except csv.Error:
        return "wrong_columns"
    is_open = "unexpected end" in str(error) or record[-1].endswith("\n")
    return "open_quote" if is_open else record


def _csv_table(rows: Sequence[_Record], names: Sequence[str]) -> pa.Table:
    nothing = [None] * len(names)
    fields = zip(*(nothing if isinstance(row, str) else row for row in rows), strict=True)
    try:
        columns = [pa.array(column, pa.string()) for column in fields]
    except UnicodeEncodeError:
        readable = (isinstance(row, str) or all(map(is_unicode, row)) for row in rows)
        marked = [
            row if is_whole else "not_utf8" for row, is_whole in zip(rows, readable, strict=True)
        ]
        return _csv_table(marked, names)
    codes = [CODE[row] if isinstance(row, str) else 0 for row in rows]
    return with_reasons(pa.table(columns, list(names)), np.array(codes, np.int8))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def header(head: bytes, kind: str, path: str) -> tuple[list[str], int]:
    """Return the fields of the first record and the bytes it takes; raises SourceError."""
    lines = io.StringIO(_text(head), newline="\n")
    try:
        names = (
            next(csv.reader(lines, strict=True))
            if kind == "csv"
            else next(lines).rstrip("\r\n").split("\t")
        )
    except (csv.Error, StopIteration) as error:
        raise SourceError(f"{path}: no header: {first_line(error)}") from error
    return names, len(lines.getvalue()[: lines.tell()].encode("utf-8", "surrogateescape"))


def hf_tables(spec: str) -> Iterator[pa.Table]:
    """Yield the rows of hf:NAME[:CONFIG][:SPLIT]; a lone train, validation or test is the split."""
    with naming_extras("datasets"):
        import datasets
    name, *options = spec.removeprefix("hf:").split(":")
    if options and options[0].partition("[")[0] in ("train", "validation", "test"):
        options.insert(0, "")
    config, split = (*options, "", "")[:2]
    if name in datasets.packaged_modules._PACKAGED_DATASETS_MODULES:
        raise SourceError(f"{spec}: {name} is a format, not a dataset; name the files themselves")
    try:
        data = datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
        yield from data.with_format("arrow").iter(batch_size=ROWS)
    except Exception as error:  # whatever a dataset or its network raises
        raise SourceError(f"cannot read {spec}: {first_line(error)}") from error


def json_types(block: bytes) -> dict[str, pa.DataType]:
    """Return the fields of JSON lines with their types, null where they have no value.

    A field that only has values of over `DEPTH_MAX` levels is no column: it does not fit. Neither
    is one that has, with those before it, over `FIELDS_MAX` fields: objects that are used as maps.
    """
    kinds: dict[str, _Kind] = {}
    for row, _ in map(_parsed, block.split(b"\n")):
        for name, value in row.items():
            if is_unicode(name) and name not in (REASON, RAW) and not _is_deep(value):
                kinds[name] = _common(kinds.get(name, pa.null()), _kind_of(value))
    types, left = {}, FIELDS_MAX
    for name, kind in kinds.items():
        if (size := _fields_of(kind)) <= left:
            types[name] = _type_of(kind)
            left -= size
    return types


def _parsed(line: bytes) -> tuple[dict[str, Any], str]:
    """Return the object of a line, or an empty one and the reason why there is none."""
    if len(line) > LINE_MAX:
        return {}, "row_too_long"
    try:
        row = json.loads(line.decode(), object_pairs_hook=_object)
    except UnicodeDecodeError:
        return {}, "not_utf8"
    except (ValueError, RecursionError):
        return {}, "bad_json"
    return (row, "") if isinstance(row, dict) else ({}, "bad_json")


def _object(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(row := dict(fields)) < len(fields):
        raise ValueError("a key is there twice")
    return row


def _is_deep(value: object, levels: int = DEPTH_MAX) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels < 1 or _is_deep(part, levels - 1) for part in inner)


_Kind = Any  # of values: a type, [that of the items] of a list, {name: that of a field} of objects


def _kind_of(value: object) -> _Kind:
    """Return the kind of a value; null for one that no column can hold."""
    if isinstance(value, dict):
        return {name: _kind_of(part) for name, part in value.items() if is_unicode(name)}
    if isinstance(value, list):
        return [reduce(_common, map(_kind_of, value), pa.null())]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return pa.float64() if abs(value) < 2**1000 else pa.null()
    if isinstance(value, str) and not is_unicode(value):
        return pa.null()
    return _SCALARS.get(type(value), pa.null())


def _common(first: _Kind, second: _Kind) -> _Kind:
    """Return a kind for values of both, the first where there is none; it may change the first."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name, kind in second.items():
            first[name] = _common(first.get(name, pa.null()), kind)
    elif isinstance(first, list) and isinstance(second, list):
        first[0] = _common(first[0], second[0])
    elif first == pa.null() or (first == pa.int64() and second == pa.float64()):
        return second
    return first


def fields_in(schema: pa.Schema) -> int:
    """Return how many columns of values rows have, those of objects within them counted."""
    return sum(_fields_of(_kind_in(kind)) for kind in schema.types)


def _fields_of(kind: _Kind) -> int:
    if isinstance(kind, dict):
        return sum(map(_fields_of, kind.values())) or 1
    return _fields_of(kind[0]) if isinstance(kind, list) else 1


def _type_of(kind: _Kind) -> pa.DataType:
    if isinstance(kind, dict):
        return pa.struct({name: _type_of(kind[name]) for name in sorted(kind)})
    return pa.list_(_type_of(kind[0])) if isinstance(kind, list) else kind


def _kind_in(kind: pa.DataType) -> _Kind:
    """Return the kind of the values that a column holds."""
    if pa.types.is_struct(kind):
        return {field.name: _kind_in(field.type) for field in kind}
    return [_kind_in(kind.value_type)] if pa.types.is_list(kind) else kind


def json_schema(kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return a schema of the fields, as Parquet can hold them."""
    return pa.schema({name: _settled(kind) for name, kind in kinds.items()})


def _settled(kind: pa.DataType) -> pa.DataType:
    """Return the type with strings where only null was seen, or {}, which Parquet cannot hold."""
    if pa.types.is_list(kind):
        return pa.list_(_settled(kind.value_type))
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct({field.name: _settled(field.type) for field in kind})
    return pa.string() if pa.types.is_null(kind) or pa.types.is_struct(kind) else kind


def json_table(block: bytes, schema: pa.Schema, text: str) -> pa.Table:
    """Return the rows of JSON lines; one whose field `text` is null or amiss is to be dropped."""
    block = block if block.endswith(b"\n") else block + b"\n"
    if (table := _in_order(block, schema)) is not None:
        codes = np.zeros(len(table), np.int8)
    else:
        table, codes = _line_by_line(block, schema, text)
    missing = np.isin(codes, KEPT) & pc.is_null(table[text]).to_numpy()
    codes[missing] = CODE["missing_text"]
    return with_reasons(table, codes)


def _in_order(block: bytes, schema: pa.Schema) -> pa.Table | None:
    """Parse a block in which every line is an object of just these fields; else return None."""
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero(data == 10)
    starts = np.concatenate([[0], stops[:-1] + 1])
    ends = stops - 1 - (data[stops - 1] == 13)
    # JSON has no '}{' but between objects: so each line begins and ends one, and equal counts
    # mean that each is one. Arrow itself takes any white space, or none, between objects.
    if (data[starts] != ord("{")).any() or (data[ends] != ord("}")).any():
        return None
    if (stops - starts).max() > LINE_MAX:
        return None
    options = pa.json.ReadOptions(use_threads=False, block_size=len(block))
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    try:
        pa.array([block], pa.binary()).cast(pa.string())  # the parser does not check UTF-8
        table = pa.json.read_json(pa.BufferReader(block), options, parsing)
    except pa.ArrowInvalid:
        return None
    return table.select(schema.names) if len(table) == len(stops) else None


def _line_by_line(block: bytes, schema: pa.Schema, text: str) -> tuple[pa.Table, Codes]:
    """Return what of each line fits into the columns, and the reason that goes with it."""
    kinds = {field.name: _kind_in(field.type) for field in schema}
    rows, codes = [], []
    for row, reason in map(_parsed, block.split(b"\n")[:-1]):
        if not reason and not _fitted(row.get(text), kinds[text])[1]:
            reason = "not_utf8" if isinstance(row[text], str) else "missing_text"
            row = {}
        fitted, whole = _fitted(row, kinds)
        rows.append(fitted)
        codes.append(CODE[reason or ("" if whole else "unexpected_field")])
    structs = pa.array(rows, pa.struct(list(schema)))
    table = pa.Table.from_struct_array(structs).replace_schema_metadata(schema.metadata)
    return table, np.array(codes, np.int8)


def _fitted(value: Any, kind: _Kind) -> tuple[Any, bool]:
    """Return what of a value its column can hold, and whether that is all."""
    if value is None:
        return None, True
    if isinstance(kind, dict) and isinstance(value, dict):
        fields = {name: _fitted(part, kind[name]) for name, part in value.items() if name in kind}
        whole = len(fields) == len(value) and all(whole for _, whole in fields.values())
        return {name: part for name, (part, _) in fields.items()}, whole
    if isinstance(kind, list) and isinstance(value, list):
        items = [_fitted(item, kind[0]) for item in value]
        return [item for item, _ in items], all(whole for _, whole in items)
    own = _kind_of(value) if not isinstance(value, dict | list) else pa.null()
    if kind == pa.float64() and own in (pa.int64(), kind):
        return float(value), True
    return (value, True) if own == kind else (None, False)
