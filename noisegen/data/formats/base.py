"""Declaration of a file format, and functions shared by the readers of formats."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from noisegen.data.features import features, with_features
from noisegen.data.files import SCAN, reading
from noisegen.data.lines import as_utf8, blocks, read_range
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import RAW, REASON, is_unicode, raw_lines
from noisegen.errors import SourceError

COLUMNS_MAX = 50_000  # most columns of a table: time and memory grow faster than the columns

Tables = Iterator[pa.Table]


class NoisyRow(NamedTuple):
    """A noisy row to write: its values by column, and the input line of the clean row."""

    values: dict[str, Any]
    columns: Columns  # keys in `values` of the text, the tokens and the labels
    changed: Collection[str]  # columns that noise changed or added
    line: bytes | None  # input line without its line end; None if the output has another format
    # For each noisy token, the index of the clean token it was made from; None for an added token
    owners: Sequence[int | None] = ()
    # Clean text, noisy text and edits of the row, for a format that holds pairs
    pair: Mapping[str, Any] | None = None
    separator: str = ","  # character between the fields of CSV


@dataclass(frozen=True)
class RowWriter:
    """Rules for writing noisy rows as one file of a format.

    `line` returns a row as a line of text without its line end; it is None for Parquet. If the
    format of the input is in `keeps`, this is the input line with noisy values; otherwise, a new
    line. `header` tells whether the first line has the names of the columns, `has_columns`
    whether the file can have columns that noise adds. A format that holds pairs has a function
    `reason_against`, which returns the reason why it cannot hold a clean text, or ''.
    """

    line: Callable[[NoisyRow], str] | None
    keeps: tuple[str, ...] = ()
    header: bool = False
    has_columns: bool = True
    reason_against: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Format:
    """A file format: how its files are recognised, read, split into ranges and written.

    `head(file, first bytes, the user's columns)` returns the file with its `schema`, and with
    `start` after any header line; None for a file without rows. `head` gets `head_bytes` bytes of a
    text file, none of other files. `tables(file or range, the user's columns, size)` yields Arrow
    tables of about `size` bytes, with all columns of the schema and REASON, which says why a row
    cannot be read. `cut` tells whether a file is divided by lines or by rows; '' if it can only be
    read from its beginning.
    """

    name: str
    endings: tuple[str, ...]
    head: Callable[[FileRange, bytes, Columns], FileRange | None]
    tables: Callable[[FileRange, Columns, int], Tables]
    cut: Literal["lines", "rows", ""] = ""
    is_text: bool = True
    has_header: bool = False  # True if the first line names the columns
    has_token_lines: bool = False  # True if files have a token per line, as CoNLL
    head_bytes: int = 64 << 10
    writer: RowWriter | None = None


# Functions for readers of text.


def text_blocks(file: FileRange, batch_bytes: int) -> Iterator[bytes]:
    """Yield a file or range of text in blocks of whole lines, about `batch_bytes` each.

    Text in another encoding is converted to UTF-8.
    """
    found = blocks(read_range(file), min(batch_bytes, SCAN))
    return (as_utf8(block, file.encoding) for block in found) if file.encoding else found


def with_raw(table: pa.Table, block: bytes, file: FileRange, columns: Columns) -> pa.Table:
    """Add the lines of `block` to its table as column RAW, if `columns.raw` has the format."""
    is_wanted = file.format in (columns.raw or ())
    return table.append_column(RAW, raw_lines(block)) if is_wanted else table


def with_names(file: FileRange, names: Sequence[str]) -> FileRange:
    """Return the file with `names` as its columns, all strings.

    Raises SourceError for too many columns.
    """
    refuse_many_columns(file.path, len(names))
    schema = pa.schema([(name, pa.string()) for name in names])
    return replace(file, schema=schema, names=tuple(names))


def refuse_many_columns(path: str, columns: int) -> None:
    """Raise SourceError for a file with over COLUMNS_MAX columns."""
    if columns > COLUMNS_MAX:
        raise SourceError(f"{path}: {columns:,} columns, over {COLUMNS_MAX:,}; keep those you need")


# Functions for readers of Arrow tables.


def plain_schema(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return the schema of an Arrow file with simpler types.

    String views become strings, since Arrow cannot filter views. Dictionary-encoded texts, ids and
    items of lists get the type of their values; Parquet itself has no dictionary type. Every field
    may be null. The metadata stay, but for the fingerprint of `datasets`.
    """
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    types = {field.name: field.type for field in schema}
    meant = columns.of(schema.names)
    for name in (meant.source, meant.row_id):
        if pa.types.is_dictionary(kind := types.get(name, pa.null())):
            types[name] = kind.value_type
    for name, kind in types.items():
        is_view = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
        items = getattr(kind, "value_type", pa.null())
        # Arrow makes errors when it casts list views to lists, so list views keep their type
        if pa.types.is_dictionary(items) and not is_view:
            types[name] = pa.list_(items.value_type)
    fields = [
        field.with_type(plain.get(types[field.name], types[field.name])).with_nullable(True)
        for field in schema
    ]
    return with_features(pa.schema(fields, schema.metadata), features(schema))


def conform(tables: Iterable[pa.Table], file: FileRange) -> Tables:
    """Yield tables with the columns and types of the file's schema, and the column REASON."""
    with reading(file.path):
        for table in tables:
            reasons, rows = table[REASON], table.select(file.schema.names)
            rows = rows if rows.schema.equals(file.schema) else rows.cast(file.schema)
            yield rows.append_column(REASON, reasons)


# Functions that return values as text.

FLAT = str.maketrans("\r\n", "  ")  # replaces line ends by spaces, as a row must be one line


def as_cell(value: Any) -> str:
    """Return a value as the text of a table cell: '' for None, JSON for a list or an object."""
    if value is None or isinstance(value, str):
        return value or ""
    return _as_text(value) if isinstance(value, bytes) else as_json(value)


def as_json(value: Any) -> str:
    """Return a value as JSON; non-ASCII characters are escaped only if one is a lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, default=_as_text)
    return text if is_unicode(text) else json.dumps(value, default=_as_text)


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
