"""JSON lines: every line is an object whose fields are columns, nested or not.

The first lines of a file decide the types of its columns. If values have no common type, their
column has strings, and other values as JSON text. A field or value that does not fit is left out.
When one noisy file is written, only the values that noise changes differ from the input line.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from noisegen.data.files import SCAN
from noisegen.data.formats.base import (
    Format,
    NoisyRow,
    RowWriter,
    Tables,
    as_json,
    text_blocks,
    with_raw,
)
from noisegen.data.lines import LINE_MAX
from noisegen.data.paths import parsed
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import CODE, KEPT, LISTS, RAW, REASON, Codes, is_unicode, with_reasons

DEPTH_MAX = 32  # most levels of nested values; Arrow cannot read back a schema with over 60
FIELDS_MAX = 1_000  # most columns of a file, counting the fields of nested objects
FIELDS = 128  # files with more fields are read in smaller blocks, since empty fields take memory
_SCALARS = {bool: pa.bool_(), float: pa.float64(), str: pa.string()}
_NATURAL = pa.uint32()  # stands for integers from 0 to 2**63 - 1, which fit int64 and uint64
_JSON = pa.json_()  # stands for values of several types: strings, and other values as JSON text
# Common type of two types of numbers; float64 and uint64 have none, as floats would be rounded
_COMMON = {
    frozenset((_NATURAL, pa.int64())): pa.int64(),
    frozenset((_NATURAL, pa.uint64())): pa.uint64(),
    frozenset((_NATURAL, pa.float64())): pa.float64(),
    frozenset((pa.int64(), pa.float64())): pa.float64(),
}
_MARK = {b"noisegen": b"JSON text"}  # metadata of a field with JSON text in its strings

# A row of a JSON document: the text before its item, MARK, the item, MARK, the text after the last
# item of the document; no JSON holds this byte
MARK = b"\x00"
OBJECTS = ("jsonl", "json")  # names of the formats whose rows are JSON
DECODE = json.JSONDecoder().raw_decode
SPACES = (" ", "\t", "\r", "\n")
# Type of a JSON value: an Arrow type; for a list [type of its items]; for an object {name: type}
_Kind = Any


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    kinds = json_types(beginning)
    is_only = len(columns.paths) < 2  # among several texts a value of another type has no noise
    if is_only and columns.text in kinds and not pa.types.is_nested(kinds[columns.text]):
        kinds[columns.text] = pa.string()
    for name in (columns.tokens, columns.labels):
        kind = kinds.get(str(name), pa.string())
        if pa.types.is_null(kind) or pa.types.is_list(kind) or kind == _JSON:
            is_classes = name == columns.labels and kind == pa.list_(pa.int64())
            kinds[str(name)] = kind if is_classes else LISTS
    return replace(file, schema=json_schema(kinds))


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    size = min(batch_bytes, SCAN) // max(1, fields_in(file.schema) // FIELDS)
    for block in text_blocks(file, size):
        yield with_raw(json_table(block, file.schema, columns.required), block, file, columns)


# Functions that find the types of columns.


def json_types(block: bytes) -> dict[str, pa.DataType]:
    """Return {column: Arrow type} for a block of JSON lines; type null if all values are null.

    The type is Arrow's JSON type for values of several types, and for integers beyond 64 bits.
    Leaves out a column if all its values are nested over `DEPTH_MAX` levels deep, or if it would
    raise the count of fields, nested ones included, to over `FIELDS_MAX`.
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
    """Return (object, '') for a line of JSON, or ({}, reason) for a line that is dropped."""
    if not line.strip():
        return {}, "blank_line"
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


def _kind_of(value: object) -> _Kind:
    """Return the type of a JSON value; Arrow's null for a value that no column can hold."""
    if isinstance(value, dict):
        return {name: _kind_of(part) for name, part in value.items() if is_unicode(name)}
    if isinstance(value, list):
        items = reduce(_common, map(_kind_of, value), pa.null())
        return _JSON if items is _JSON else [items]
    if type(value) is int:
        return _kind_of_integer(value)
    if isinstance(value, str) and not is_unicode(value):
        return pa.null()
    return _SCALARS.get(type(value), pa.null())


def _kind_of_integer(value: int) -> pa.DataType:
    if value < 0:
        return pa.int64() if value >= -(2**63) else _JSON
    return _NATURAL if value < 2**63 else pa.uint64() if value < 2**64 else _JSON


def _common(first: _Kind, second: _Kind) -> _Kind:
    """Return a type for values of both types: float64 for int64 and float64.

    If no type fits both, or if lists have items without a common type, the type is `_JSON`. If
    `first` is a dict, it is changed in place.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        for name, kind in second.items():
            first[name] = _common(first.get(name, pa.null()), kind)
        return first
    if isinstance(first, list) and isinstance(second, list):
        items = _common(first[0], second[0])
        return _JSON if items is _JSON else [items]
    if first == second or second == pa.null():
        return first
    if first == pa.null():
        return second
    if isinstance(first, dict | list) or isinstance(second, dict | list):
        return _JSON
    return _COMMON.get(frozenset((first, second)), _JSON)


def fields_in(schema: pa.Schema) -> int:
    """Return the count of fields in a schema, including the fields of nested objects."""
    return sum(_fields_of(_kind_in(field)) for field in schema)


def _fields_of(kind: _Kind) -> int:
    if isinstance(kind, dict):
        return sum(map(_fields_of, kind.values())) or 1
    return _fields_of(kind[0]) if isinstance(kind, list) else 1


def _type_of(kind: _Kind) -> pa.DataType:
    if isinstance(kind, dict):
        return pa.struct({name: _type_of(kind[name]) for name in sorted(kind)})
    if isinstance(kind, list):
        return pa.list_(_type_of(kind[0]))
    return pa.int64() if kind is _NATURAL else kind


def _kind_in(field: pa.Field) -> _Kind:
    """Return the type of a field as a `_Kind`: [int64] for a list of int64."""
    if (field.metadata or {}).items() >= _MARK.items():
        return _JSON
    if pa.types.is_struct(field.type):
        return {inner.name: _kind_in(inner) for inner in field.type}
    return [_kind_in(field.type.value_field)] if pa.types.is_list(field.type) else field.type


def json_schema(kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return a schema of the given columns, with types that Parquet can hold.

    A column or field of JSON text has the type string, and metadata that say so.
    """
    return pa.schema([_storable_field(name, kind) for name, kind in kinds.items()])


def _storable_field(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, _storable(kind), metadata=_MARK if kind == _JSON else None)


def _storable(kind: pa.DataType) -> pa.DataType:
    """Return a type with strings in place of types that Parquet cannot hold, and of JSON text.

    Parquet cannot hold null and empty objects.
    """
    if pa.types.is_list(kind):
        return pa.list_(_storable(kind.value_type))
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([_storable_field(field.name, field.type) for field in kind])
    is_text = pa.types.is_null(kind) or pa.types.is_struct(kind) or kind == _JSON
    return pa.string() if is_text else kind


# Functions that read rows.


def json_table(block: bytes, schema: pa.Schema, text: str | None) -> pa.Table:
    """Return a block of JSON lines as a table with the column REASON.

    A row without a value in the column `text` gets the reason `missing_text`; see
    `Columns.required`.
    """
    block = block if block.endswith(b"\n") else block + b"\n"
    if (table := block_table(block, schema)) is not None:
        codes = np.zeros(len(table), np.int8)
    else:
        table, codes = table_by_line(block, schema, text)
    if text is not None:
        missing = np.isin(codes, KEPT) & pc.is_null(table[text]).to_numpy()
        codes[missing] = CODE["missing_text"]
    return with_reasons(table, codes)


def block_table(block: bytes, schema: pa.Schema) -> pa.Table | None:
    """Return a block parsed by Arrow; None unless every line is an object that fits the schema."""
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero(data == 10)
    starts = np.concatenate([[0], stops[:-1] + 1])
    ends = stops - 1 - (data[stops - 1] == 13)
    # Arrow also accepts several objects per line. Each line has one if every line begins with { and
    # ends with }, and there are as many objects as lines.
    if (data[starts] != ord("{")).any() or (data[ends] != ord("}")).any():
        return None
    if (stops - starts).max() > LINE_MAX:
        return None
    options = pa.json.ReadOptions(use_threads=False, block_size=len(block))
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    try:
        # The cast raises ArrowInvalid for invalid UTF-8, which the JSON parser does not check
        pa.array([block], pa.binary()).cast(pa.string())
        table = pa.json.read_json(pa.BufferReader(block), options, parsing)
    except pa.ArrowInvalid:
        return None
    return table.select(schema.names) if len(table) == len(stops) else None


def table_by_line(block: bytes, schema: pa.Schema, text: str | None) -> tuple[pa.Table, Codes]:
    """Return a block parsed line by line as a table, and an array with a code per line.

    Codes are indices into `tables.REASONS`. Values that do not fit their column are left out; in a
    column of strings they become JSON text. If the value of the column `text` does not fit, all
    values of its row are null.
    """
    kinds = {field.name: _kind_in(field) for field in schema}
    rows, codes = [], []
    for row, reason in map(_parsed, block.split(b"\n")[:-1]):
        if text is not None and not reason and not _fitted(row.get(text), kinds[text])[1]:
            reason = "not_utf8" if isinstance(row[text], str) else "missing_text"
            row = {}
        fitted, whole = _fitted(row, kinds)
        rows.append(fitted)
        codes.append(CODE[reason or ("" if whole else "unexpected_field")])
    structs = pa.array(rows, pa.struct(list(schema)))
    table = pa.Table.from_struct_array(structs).replace_schema_metadata(schema.metadata)
    return table, np.array(codes, np.int8)


def _fitted(value: Any, kind: _Kind) -> tuple[Any, bool]:
    """Return the part of a JSON value that fits the type `kind`, and whether all of it fits."""
    if value is None:
        return None, True
    if isinstance(kind, dict) and isinstance(value, dict):
        return _fitted_object(value, kind)
    if isinstance(kind, list) and isinstance(value, list):
        return _fitted_list(value, kind[0])
    if kind in (pa.string(), _JSON):
        return _fitted_text(value, is_json=kind == _JSON)
    return _fitted_scalar(value, kind)


def _fitted_scalar(value: Any, kind: _Kind) -> tuple[Any, bool]:
    """Return a value of a column that has no strings, and whether it fits."""
    if kind == pa.float64() and type(value) is int and abs(value) < 2**1000:
        return float(value), True
    own = _kind_of(value) if not isinstance(value, dict | list) else pa.null()
    fits = own != pa.null() and _common(kind, own) == kind
    return (value, True) if fits else (None, False)


def _fitted_text(value: Any, *, is_json: bool) -> tuple[str | None, bool]:
    """Return a value as the text of a column of strings, and whether it fits: a text, or JSON."""
    if isinstance(value, str):
        return (value, True) if is_unicode(value) else (None, False)
    return (None, False) if _is_deep(value) else (as_json(value), is_json)


def _fitted_list(values: list[Any], kind: _Kind) -> tuple[list[Any], bool]:
    """Return the fitting part of each item, and whether all items fit `kind` entirely."""
    items = [_fitted(value, kind) for value in values]
    return [item for item, _ in items], all(is_whole for _, is_whole in items)


def _fitted_object(value: dict[str, Any], kinds: dict[str, _Kind]) -> tuple[dict[str, Any], bool]:
    """Return the part of an object that fits `kinds`, {field: type}, and whether all fields fit."""
    fields, is_whole = {}, True
    for name, part in value.items():
        if name in kinds:
            fields[name], fits = _fitted(part, kinds[name])
            is_whole = is_whole and fits
        else:
            is_whole = False
    return fields, is_whole


def exact_values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Return the values of a column; a text that stands for other JSON is that JSON."""
    kind = _kind_in(field)
    return [_exact(value, kind) for value in column.to_pylist()]


def _exact(value: Any, kind: _Kind) -> Any:
    if kind == _JSON:
        return parsed(value)
    if isinstance(kind, dict) and isinstance(value, dict):
        return {name: _exact(part, kind[name]) for name, part in value.items()}
    if isinstance(kind, list) and isinstance(value, list):
        return [_exact(item, kind[0]) for item in value]
    return value


def as_column(values: Iterable[Any], field: pa.Field) -> pa.Array:
    """Return values of `exact_values` as a column again."""
    kind = _kind_in(field)
    return pa.array([_stored(value, kind) for value in values], field.type)


def _stored(value: Any, kind: _Kind) -> Any:
    """Return a value of `_exact` with JSON text again, where the column holds it."""
    if kind == _JSON:
        return value if value is None or isinstance(value, str) else as_json(value)
    if isinstance(kind, dict) and isinstance(value, dict):
        return {name: _stored(part, kind[name]) for name, part in value.items() if name in kind}
    if isinstance(kind, list) and isinstance(value, list):
        return [_stored(item, kind[0]) for item in value]
    return value


# Functions that write noisy rows.


def as_line(raw: bytes) -> bytes:
    """Return the JSON of a row as a line of JSON lines, with its line end."""
    if MARK not in raw:
        return raw
    return raw.split(MARK)[1].replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _line(row: NoisyRow) -> str:
    if row.line is None:
        return as_json(row.values)
    changed = {name: value for name, value in row.values.items() if name in row.changed}
    return patched(row.line, changed).decode()


def object_in(raw: bytes, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of the columns `names` in the JSON of a row.

    `raw` is a line of JSON lines, or an item of a document between its neighbours, see `MARK`. A
    row that is nested too deeply for Python has no values.
    """
    try:
        value = json.loads(raw.split(MARK)[1] if MARK in raw else raw)
    except RecursionError:
        return {}
    fields = value if isinstance(value, dict) else {"": value}
    return {name: fields[field] for name in names if (field := field_of(name)) in fields}


def patched(raw: bytes, new: Mapping[str, Any]) -> bytes:
    """Return the JSON of a row, given as in `object_in`, with new values; other bytes are kept.

    `new` has values by column. A value without a field in the JSON is added as a field.
    """
    if not new:
        return raw
    before, item, after = raw.split(MARK) if MARK in raw else (b"", raw, b"")
    fields = {field_of(name): value for name, value in new.items()}
    item = with_value(item.decode(), fields.get("", fields)).encode()
    return MARK.join([before, item, after]) if MARK in raw else item


def field_of(column: str) -> str:
    """Return the field of a column of a JSON document: 'title' for 'data[].title'.

    It is '' for items that are no objects, whose only column is 'data[]'.
    """
    head, bracket, field = column.partition("[]")
    return field.removeprefix(".") if bracket else head


def with_value(text: str, new: Any) -> str:
    """Return the JSON of a value with a new value; the text of equal parts is kept.

    Fields that `new` lacks are kept too, and fields that only `new` has are added.
    """
    start = _space(text, 0)
    made, end = _with_value(text, start, new)
    return text[:start] + made + text[end:]


def _with_value(text: str, at: int, new: Any) -> tuple[str, int]:
    """Return the JSON of the value at index `at` with a new value, and the index of its end."""
    old, end = DECODE(text, at)
    if old == new:
        return text[at:end], end
    if (left := _parts(old, new)) is None:
        return as_json(new), end
    made, begin = list[str](), at  # output so far, and the index up to which it is copied
    at = _space(text, at + 1)
    for key, part in (_parts(old, old) or {}).items():
        if isinstance(old, dict):
            at = _space(text, DECODE(text, at)[1])
            at = _space(text, at + 1)  # the index of the value, after the colon
        new_part, stop = _with_value(text, at, left.pop(key, part))
        made += [text[begin:at], new_part]
        begin, at = stop, _space(text, stop)
        at = _space(text, at + 1) if text[at] == "," else at
    added = [f"{as_json(name)}: {as_json(value)}" for name, value in left.items()]
    comma = ", " if old and added else ""
    return f"{''.join(made)}{text[begin:at]}{comma}{', '.join(added)}{text[at]}", at + 1


def _parts(old: Any, new: Any) -> dict[Any, Any] | None:
    """Return the parts of a new value by key or index, if they can take the place of the old's."""
    if isinstance(old, dict) and isinstance(new, dict):
        return dict(new)
    is_list = isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    return dict(enumerate(new)) if is_list else None


def _space(text: str, at: int) -> int:
    """Return the index of the first character, `at` or later, that is not white space."""
    while text[at : at + 1] in SPACES:
        at += 1
    return at


JSONL = Format(
    name="jsonl",
    endings=("jsonl", "ndjson"),
    head=_head,
    tables=_tables,
    cut="lines",
    head_bytes=SCAN,
    writer=RowWriter(_line, keeps=OBJECTS),
)
