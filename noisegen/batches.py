"""Tables of rows as read, grouped and made into batches with ids and texts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.inputs import LISTS, Columns
from noisegen.readers import CODE, KEPT, REASON, REASONS, TEXT_MAX, Codes, Mask, as_text
from noisegen.text import as_arrow


@dataclass(frozen=True)
class Batch:
    """Rows with `id`, `clean` and all other columns, and how many were dropped for what reason."""

    table: pa.Table
    dropped: Counter[str]


def regroup(tables: Iterable[pa.Table], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `rows_max` rows, fewer where they exceed `bytes_max`."""
    held: list[pa.Table] = []
    room, size = rows_max, 0
    for table in chain.from_iterable(_small(table, bytes_max // 8) for table in tables):
        at = 0
        while at < len(table):
            part = table.slice(at, room)
            if held and size + part.nbytes > bytes_max:
                yield joined(*held)
                held, room, size = [], rows_max, 0
                continue
            held.append(part)
            at, room, size = at + len(part), room - len(part), size + part.nbytes
            if not room:
                yield joined(*held)
                held, room, size = [], rows_max, 0
    if held:
        yield joined(*held)


def _small(table: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    """Halve a table until it is small, unless the halves share what is large (a dictionary)."""
    halves = table.slice(0, len(table) // 2), table.slice(len(table) // 2)
    alone = len(table) < 2 or table.nbytes <= bytes_max
    if alone or sum(half.nbytes for half in halves) > 1.5 * table.nbytes:
        yield table
        return
    for half in halves:
        yield from _small(half, bytes_max)


def joined(*tables: pa.Table) -> pa.Table:
    """Join tables into one chunk a column that owns no more than its rows.

    A slice is pickled with all of its parent; the empty slice makes Arrow copy.
    """
    return pa.concat_tables([*tables, tables[0].slice(0, 0)]).combine_chunks()


def batch_of(table: pa.Table, columns: Columns, first: int) -> Batch:
    """Give rows their ids and texts, and drop those that cannot be used."""
    codes = table[REASON].to_numpy().copy()
    built = {
        "id": _ids(table, columns, first, codes),
        "clean": _texts(table, columns, codes),
    }
    for name in table.column_names:
        if name in (columns.tokens, columns.labels):
            built[name] = table[name].cast(LISTS)
        elif name not in (REASON, columns.row_id, columns.source):
            built[name] = table[name]
    keep = np.isin(codes, KEPT)
    made = pa.table(built)
    counts = np.bincount(codes, minlength=len(REASONS))
    dropped = {reason: int(counts[CODE[reason]]) for reason in REASONS[1:] if counts[CODE[reason]]}
    return Batch(made if keep.all() else made.filter(keep).combine_chunks(), Counter(dropped))


def _mark(codes: Codes, where: Mask, reason: str) -> None:
    codes[where & np.isin(codes, KEPT)] = CODE[reason]


def _mask(booleans: pa.Array) -> Mask:
    """Return booleans with null as false."""
    return np.asarray(pc.fill_null(booleans, False).to_numpy(zero_copy_only=False), np.bool_)


def _ids(table: pa.Table, columns: Columns, first: int, codes: Codes) -> pa.Array:
    if columns.row_id is None:
        return as_arrow(np.arange(first, first + len(table), dtype=np.int64))
    column = table[columns.row_id].combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    _mark(codes, _mask(pc.is_null(column)), "null_id")
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    ids, wrong = as_text(_binary(column))
    _mark(codes, wrong, "not_utf8")
    return ids


def _texts(table: pa.Table, columns: Columns, codes: Codes) -> pa.Array:
    column = table[columns.source].combine_chunks()
    tokens = column
    if columns.tokens:
        column = pc.binary_join(tokens.cast(LISTS), " ")
    _mark(codes, _mask(pc.is_null(column)), "null_text")
    if columns.labels:
        labels = table[columns.labels].combine_chunks().cast(LISTS)
        equal = pc.equal(pc.list_value_length(tokens), pc.list_value_length(labels))
        whole = pc.is_valid(pc.binary_join(labels, " "))
        _mark(codes, ~(_mask(equal) & _mask(whole)), "unequal_labels")
    column = _binary(column)
    too_long = _mask(pc.greater(pc.binary_length(column), TEXT_MAX))
    _mark(codes, too_long, "row_too_long")
    texts, wrong = as_text(pc.if_else(too_long, None, column) if too_long.any() else column)
    _mark(codes, wrong, "not_utf8")
    return texts


def _binary(column: pa.Array) -> pa.Array:
    """Return strings as the bytes that they are."""
    return column.cast(pa.large_binary() if column.type == pa.large_string() else pa.binary())
