"""Read JSON lines as Arrow tables: by Arrow where a block is in order, else line by line.

The types are those of the beginning of a file; a field or value that does not fit is left out and
counted.
"""

import json
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from noisegen.readers import CODE, KEPT, LINE_MAX, Codes, is_unicode, with_reasons

_SCALARS = {bool: pa.bool_(), float: pa.float64(), int: pa.int64(), str: pa.string()}


def json_schema(block: bytes, wanted: dict[str, pa.DataType]) -> pa.Schema:
    """Return the fields of JSON lines with their types; those in `wanted` have the type given."""
    found: dict[str, pa.DataType] = {}
    for line in block.split(b"\n"):
        row = _parsed(line)
        for name, value in row.items() if isinstance(row, dict) else ():
            if is_unicode(name):
                found[name] = _joined(found.get(name, pa.null()), _json_type(value))
    return pa.schema({name: wanted.get(name, _settled(kind)) for name, kind in found.items()})


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError):
        return None


def _json_type(value: object) -> pa.DataType:
    """Return the type of a value; null for one that no column can hold."""
    if isinstance(value, dict):
        return pa.struct(
            {name: _json_type(value[name]) for name in sorted(value) if is_unicode(name)}
        )
    if isinstance(value, list):
        return pa.list_(reduce(_joined, map(_json_type, value), pa.null()))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return pa.float64() if abs(value) < 2**1000 else pa.null()
    if isinstance(value, str) and not is_unicode(value):
        return pa.null()
    return _SCALARS.get(type(value), pa.null())


def _joined(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type for values of both; the first where there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one) or (one, other) == (pa.int64(), pa.float64()):
        return other
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_joined(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        both = {field.name: field.type for field in one}
        for field in other:
            both[field.name] = _joined(both.get(field.name, pa.null()), field.type)
        return pa.struct(dict(sorted(both.items())))
    return one


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
    table = _in_order(block, schema)
    codes = np.zeros(0 if table is None else len(table), np.int8)
    if table is None:
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
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(block))
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    try:
        pa.array([block], pa.binary()).cast(pa.string())  # the parser does not check UTF-8
        table = pa.json.read_json(pa.BufferReader(block), reading, parsing)
    except pa.ArrowInvalid:
        return None
    return table.select(schema.names) if len(table) == len(stops) else None


def _line_by_line(block: bytes, schema: pa.Schema, text: str) -> tuple[pa.Table, Codes]:
    rows = [_row(line, schema, text) for line in block.split(b"\n")[:-1]]
    table = pa.Table.from_pylist([row for row, _ in rows], schema=schema)
    return table, np.array([CODE[reason] for _, reason in rows], np.int8)


def _row(line: bytes, schema: pa.Schema, text: str) -> tuple[dict[str, Any], str]:
    """Return what fits into the columns, and the reason that goes with it."""
    if len(line) > LINE_MAX:
        return {}, "row_too_long"
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        return {}, "not_utf8"
    except (ValueError, RecursionError):
        return {}, "bad_json"
    if not isinstance(row, dict):
        return {}, "bad_json"
    if not _fitted(row.get(text), schema.field(text).type)[1]:
        return {}, "not_utf8" if isinstance(row[text], str) else "missing_text"
    fitted, whole = _fitted(row, pa.struct(list(schema)))
    return fitted, "" if whole else "unexpected_field"


def _fitted(value: Any, kind: pa.DataType) -> tuple[Any, bool]:
    """Return what of a value its column can hold, and whether that is all."""
    if value is None:
        return None, True
    if pa.types.is_struct(kind) and isinstance(value, dict):
        fields = {field.name: _fitted(value.get(field.name), field.type) for field in kind}
        whole = value.keys() <= fields.keys() and all(whole for _, whole in fields.values())
        return {name: part for name, (part, _) in fields.items()}, whole
    if pa.types.is_list(kind) and isinstance(value, list):
        items = [_fitted(item, kind.value_type) for item in value]
        return [item for item, _ in items], all(whole for _, whole in items)
    found = pa.null() if isinstance(value, dict | list) else _json_type(value)
    if kind == pa.float64() and found in (pa.int64(), kind):
        return float(value), True
    return (value, True) if found == kind else (None, False)
