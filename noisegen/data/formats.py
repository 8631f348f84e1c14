"""The formats of files: how each is known by its ending, how its columns and its rows are read."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from noisegen.data import conll, parquet, tables
from noisegen.data.conll import LISTS
from noisegen.data.features import class_names, with_class_names
from noisegen.data.files import (
    ALL,
    BOM,
    COMPRESSIONS,
    HEAD,
    SCAN,
    Damaged,
    PackedRange,
    Piece,
    blocks,
    compression_of,
    count_bytes,
    head_of_text,
    is_url,
    pieces_of_text,
    read_parts,
    reading,
    size_of,
    stdin_head,
)
from noisegen.data.layouts import layouts_of
from noisegen.errors import SourceError

_OBJECT = re.compile(r'\{\s*["}]')  # begins a line of JSON
_HEAD = 64 << 10  # bytes in which a header line ends
COLUMNS_MAX = 50_000  # of a table: time and memory grow faster than their number
FIELDS = 128  # of JSON; of rows with more, fewer bytes are read at once


@dataclass(frozen=True)
class Columns:
    """The columns that a user named; a whole number as text: column of a file without header.

    A column `id` is the id where no other is named. `raw` is for one noisy file: columns may have
    names of a run's output, and rows have tables.RAW, their bytes in a file of this kind.
    """

    text: str = "text"
    row_id: str | None = None
    tokens: str | None = None
    labels: str | None = None
    raw: str = ""

    @property
    def source(self) -> str:
        """The column that the text is made from."""
        return self.tokens or self.text

    def of(self, names: Sequence[str]) -> "Columns":
        """Return the same, completed, with the names of a file instead of numbers."""
        found = {key: numbered(name, names) for key, name in vars(self).items() if name}
        if ID in names and ID not in found.values():
            found = {"row_id": ID} | found
        return Columns(**found)


ID = "id"


def numbered(name: str, names: Sequence[str]) -> str:
    """Return the column that a name means: '2' is the second of a file without a header line."""
    return name if name in names or not name.isdecimal() else f"column_{int(name)}"


@dataclass(frozen=True, slots=True)
class Input:
    """A file, URL, '-' or 'hf:...' that a SOURCE means; `skipped` says why it is not read."""

    path: str
    kind: str = ""
    skipped: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file, here or in a store."""
        return self.path != "-" and self.kind != "hf"

    @property
    def size(self) -> int | None:
        """The bytes of a file; None for what is no file."""
        return size_of(self.path) if self.is_file else None

    @property
    def absolute(self) -> str:
        """The path as it means the same to a worker in another folder."""
        is_local = self.is_file and not is_url(self.path)
        return os.path.abspath(self.path) if is_local else self.path  # noqa: PTH100


@dataclass(frozen=True, slots=True)
class FileRange:
    """A range of rows: bytes [start, stop) of lines, or rows [start, stop) of Parquet or Arrow.

    `rows` counts them; `schema` has the columns in the order of the run, and `names` in that of the
    file; `size` is their share of the bytes of the file. Bytes of a compressed file are those of
    its content; `entry` is what of it is decoded.
    """

    path: str
    kind: str
    start: int
    stop: int
    rows: int
    schema: pa.Schema
    names: tuple[str, ...] = ()
    size: int = 0
    entry: PackedRange = HEAD

    @property
    def format(self) -> str:
        """The format: its kind, or conllu."""
        return "conllu" if self.names == conll.CONLLU else self.kind

    def is_like(self, other: "FileRange") -> bool:
        """Tell whether it has the format and the columns of another file."""
        same = self.schema.equals(other.schema, check_metadata=True)
        return same and self.kind == other.kind

    @property
    def streamed(self) -> bool:
        """Whether only the caller can read it, from the beginning."""
        is_ours = self.path == "-" or self.path.startswith("memory:")  # of this process
        is_packed = bool(compression_of(self.path)) and not self.entry.bounds
        return is_ours or not FORMATS[self.kind].cut or is_packed


Tables = Iterator[pa.Table]
Rows = Callable[[FileRange, Columns, int], Tables]


@dataclass(frozen=True)
class Format:
    """How files of one format are read.

    `head` adds the columns to a file, of text by the bytes that it begins with, or returns None
    where nothing is in it; `rows` yields those of a range, about so many bytes at once. `cut` says
    where ranges may begin: at lines or at numbers of rows; nowhere where a file is read from its
    beginning.
    """

    head: Callable[[FileRange, bytes, Columns], FileRange | None]
    rows: Rows
    cut: Literal["lines", "rows", ""] = ""
    is_text: bool = True


def input_of(path: str | Path) -> Input:
    """Return a file with the format that its ending says."""
    compression = compression_of(path)
    name = str(path).rpartition("/")[2] if is_url(path) else os.path.basename(path)  # noqa: PTH119
    stem, _, ending = name.lower().removesuffix(f".{compression}").rpartition(".")
    kind = ENDINGS.get(ending, "")
    if kind and (FORMATS[kind].is_text or not compression) and (stem or compression):
        return Input(str(path), kind)
    if layouts_of(str(path)):
        return Input(str(path), "layout")
    return Input(str(path), skipped="unknown ending")


def name_of(source: str) -> str:
    """Return a short name of a source: the file's without folder and endings."""
    name = source.rstrip("/").rpartition("/")[2] or source
    for ending in (*COMPRESSIONS, *ENDINGS, "m2"):
        name = name.removesuffix(f".{ending}")
    return name


def whole(item: Input, columns: Columns) -> FileRange | None:
    """Return all rows of an input, as its beginning shows it; None where nothing is in it.

    Its kind may be another than that of the ending: of standard input, and of a TSV with a token
    per line.
    """
    if not item.kind:
        return None
    file = FileRange(item.path, item.kind, 0, 0, 0, pa.schema([]))
    if not FORMATS[item.kind].is_text:
        return FORMATS[item.kind].head(file, b"", columns)
    size = SCAN if item.kind == "jsonl" else _HEAD
    head = stdin_head() if item.path == "-" else head_of_text(item.path, size)
    text = head.removeprefix(BOM)
    if b"\n" not in text and b"\r" in text.rstrip(b"\r"):
        raise SourceError(
            f"{item.path}: its lines end in CR alone; convert them: tr '\\r' '\\n' < FILE > NEW"
        )
    kind = _kind_of(item, text, columns.text)
    if not text and kind != "txt":
        return None
    entry = pieces_of_text(item.path) if FORMATS[kind].cut == "lines" else HEAD
    is_plain = item.path != "-" and not compression_of(item.path)
    stop = size_of(item.path) if is_plain else sys.maxsize
    file = replace(file, kind=kind, start=len(head) - len(text), stop=stop, entry=entry)
    return FORMATS[kind].head(file, text, columns)


def _kind_of(item: Input, head: bytes, text: str) -> str:
    """Return the format that a file of text has: of standard input, and of a TSV, by its head.

    A published file has its layout, unless its lines are other ones, or a number names its columns.
    """
    if found := [] if text.isdecimal() else layouts_of(item.path):
        problems = [layout.problem(head) for layout in found]
        if "" in problems:
            return "layout" if found[problems.index("")].columns else "tsv"
        if item.kind == "layout" or not head.strip():
            raise SourceError(
                f"{item.path} is not as {found[0].name} is published: {problems[0]}; get it again, "
                "or rename it if it is another file"
            )
    if item.path != "-" and item.kind != "tsv":
        return item.kind
    if not text.isdecimal() and conll.looks_split(head, [text]):
        return "norm" if conll.is_normalisation(head) else "conll"
    if item.path != "-":
        return item.kind
    line = head.partition(b"\n")[0].decode("utf-8", "replace").strip()
    if _OBJECT.match(line):
        return "jsonl"
    separators = {"\t": "tsv", ",": "csv"}
    kinds = (kind for sep, kind in separators.items() if sep in line and text in line.split(sep))
    return next(kinds, "txt")


def range_tables(file: FileRange, columns: Columns, batch_bytes: int = SCAN) -> Tables:
    """Yield rows with the columns of the run and REASON; damage is a row; raises SourceError."""
    names = [*file.schema.names, tables.REASON, *([tables.RAW] if columns.raw else [])]

    def complete(table: pa.Table) -> pa.Table:
        if columns.raw and (tables.RAW not in table.column_names or file.kind != columns.raw):
            lines = pa.nulls(len(table), pa.binary())
            table = table.select(names[:-1]).append_column(tables.RAW, lines)
        return table.select(names).replace_schema_metadata(file.schema.metadata)

    try:
        yield from map(complete, FORMATS[file.kind].rows(file, columns, batch_bytes))
    except Damaged:
        nothing = pa.table([pa.nulls(1, kind) for kind in file.schema.types], file.schema)
        code = np.array([tables.CODE["truncated"]], np.int8)
        yield complete(tables.with_reasons(nothing, code))


def ranges(file: FileRange, first: int, step: int) -> Iterator[FileRange]:
    """Cut a file after its first `first` rows and then after every `step`."""
    if FORMATS[file.kind].cut == "lines":
        lines = tables.line_ranges(file.path, file.start, first, step, file.entry)
        for (start, stop, rows, entry), size in tables.with_sizes(lines, file.entry):
            yield replace(file, start=start, stop=stop, rows=rows, size=size, entry=entry)
    elif file.rows:
        for start, stop in pairwise([0, *range(first, file.rows, step), file.rows]):
            size = file.size * (stop - start) // file.rows
            yield replace(file, start=start, stop=stop, rows=stop - start, size=size)


def pieces(item: Input, columns: Columns, rows: int) -> list[Piece]:
    """Return the pieces of an input, of so many rows each; one if it cannot be cut.

    Lines are counted, so those of a store, which would be read twice, are one piece.
    """
    file = whole(item, columns)
    if file is None or file.streamed or (is_url(file.path) and FORMATS[file.kind].is_text):
        return [ALL]
    found = list(ranges(file, rows, rows))
    cut = [
        Piece(one.start, one.stop, rows * number, one.rows, one.size, one.entry)
        for number, one in enumerate(found)
    ]
    return cut if cut[1:] else [ALL]


def has_rows(file: FileRange) -> bool:
    """Tell whether anything is below the head of a file; a stream is taken to have rows."""
    if FORMATS[file.kind].cut == "rows":
        return file.rows > 0
    if file.path == "-" or not FORMATS[file.kind].is_text:
        return True
    return next(tables.line_ranges(file.path, file.start, 1, 1, file.entry), None) is not None


# Heads.


def _table_head(file: FileRange, head: bytes, columns: Columns) -> FileRange:
    names, length = tables.header(head, file.kind, file.path)
    if columns.text.isdecimal():
        return _named(file, [f"column_{number}" for number in range(1, len(names) + 1)])
    if not all(map(tables.is_unicode, names)):
        raise SourceError(f"{file.path}: the header is not UTF-8")
    return _named(replace(file, start=file.start + length), names)


def _named(file: FileRange, names: Sequence[str]) -> FileRange:
    _refuse_endless(file.path, len(names))
    schema = pa.schema([(name, pa.string()) for name in names])
    return replace(file, schema=schema, names=tuple(names))


def _refuse_endless(path: str, columns: int) -> None:
    if columns > COLUMNS_MAX:
        raise SourceError(f"{path}: {columns:,} columns, over {COLUMNS_MAX:,}; keep those you need")


def _json_head(file: FileRange, head: bytes, columns: Columns) -> FileRange:
    kinds = tables.json_types(head)
    if columns.text in kinds:
        kinds[columns.text] = pa.string()
    for name in (columns.tokens, columns.labels):
        kind = kinds.get(str(name), pa.string())
        if pa.types.is_null(kind) or pa.types.is_list(kind):
            is_classes = name == columns.labels and kind == pa.list_(pa.int64())
            kinds[str(name)] = kind if is_classes else LISTS
    return replace(file, schema=tables.json_schema(kinds))


def _token_head(file: FileRange, head: bytes, columns: Columns) -> FileRange | None:
    names = conll.token_columns(head, columns.tokens, columns.labels)
    if _is_corrected(names, columns):
        return replace(file, schema=conll.pair_schema(), names=names)
    schema = conll.token_schema(names, columns.tokens, has_id=b"# sent_id" in head)
    return replace(file, schema=schema, names=names) if names else None


def _token_rows(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    parts = _parts(file, batch_bytes)
    if _is_corrected(file.names, columns):
        return conll.corrected_tables(parts)
    return conll.token_tables(parts, file.names)


def _is_corrected(names: Sequence[str], columns: Columns) -> bool:
    """Tell whether the sentences of a treebank are read as pairs, with their corrections."""
    is_pair = columns.tokens is None and columns.text in conll.pair_schema().names
    return is_pair and names == conll.CONLLU


def _norm_head(file: FileRange, head: bytes, columns: Columns) -> FileRange:
    return replace(file, schema=conll.pair_schema(columns.tokens), names=conll.NORM)


def _layout_head(file: FileRange, head: bytes, columns: Columns) -> FileRange:
    layout = next(layout for layout in layouts_of(file.path) if not layout.problem(head))
    return _named(file, layout.names(file.path))


def _layout_rows(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    layouts = layouts_of(file.path)
    layout = next(layout for layout in layouts if layout.names(file.path) == file.names)
    return layout.tables(file.path, _parts(file, batch_bytes))


def _hub_head(file: FileRange, head: bytes, columns: Columns) -> FileRange | None:
    first = next(tables.hf_tables(file.path), None)
    return None if first is None else replace(file, schema=plain_schema(first.schema, columns))


def plain_schema(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return the schema without views, which Arrow cannot filter, nor a dictionary of texts or ids.

    Lists of texts have none either: Parquet copies it out. Of its metadata the names of classes are
    left.
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
        if pa.types.is_dictionary(items) and not is_view:  # Arrow casts views to wrong lists
            types[name] = pa.list_(items.value_type)
    columns_of = pa.schema([(name, plain.get(types[name], types[name])) for name in schema.names])
    return with_class_names(columns_of, class_names(schema))


# Rows.


def _parts(file: FileRange, batch_bytes: int) -> Iterator[bytes]:
    size = min(batch_bytes, SCAN)
    if file.kind == "jsonl":  # a field that a row lacks takes memory too
        size //= max(1, tables.fields_in(file.schema) // FIELDS)
    return blocks(read_parts(file.path, file.start, file.stop, file.entry), size)


def _by_lines(parse: Callable[[FileRange, Columns, bytes], pa.Table]) -> Rows:
    """Return the reader of a format in which every line is a row."""

    def rows(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
        for part in _parts(file, batch_bytes):
            table = parse(file, columns, part)
            is_raw = columns.raw == file.kind
            yield table.append_column(tables.RAW, tables.raw_lines(part)) if is_raw else table

    return rows


def _by_numbers(
    read_head: Callable[[str], tuple[pa.Schema, int]],
    read_rows: Callable[[str, int, int, int], Tables],
) -> Format:
    """Return a format whose rows have numbers, by the readers of its schema and of its rows."""

    def head(file: FileRange, _: bytes, columns: Columns) -> FileRange:
        schema, rows = read_head(file.path)
        _refuse_endless(file.path, len(schema))
        with reading(file.path):
            schema, size = plain_schema(schema, columns), size_of(file.path)
        return replace(file, stop=rows, rows=rows, schema=schema, size=size)

    def rows(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
        for table in _conform(read_rows(file.path, file.start, file.stop, batch_bytes), file):
            count_bytes(file.size * len(table) // file.rows)
            yield table

    return Format(head, rows, "rows", is_text=False)


def _conform(rows: Iterable[pa.Table], file: FileRange) -> Tables:
    """Yield rows with the columns and types of the run."""
    with reading(file.path):
        for table in rows:
            reasons, table = table[tables.REASON], table.select(file.schema.names)
            table = table if table.schema.equals(file.schema) else table.cast(file.schema)
            yield table.append_column(tables.REASON, reasons)


FORMATS = {
    "txt": Format(
        lambda file, _, columns: _named(file, [columns.source]),
        _by_lines(lambda file, _, part: tables.delimited(part, file.names, tabs=False)), "lines",
    ),
    "tsv": Format(
        _table_head,
        _by_lines(lambda file, _, part: tables.delimited(part, file.names, tabs=True)), "lines",
    ),
    "csv": Format(
        _table_head, lambda file, _, size: tables.csv_tables(_parts(file, size), file.names)
    ),
    "jsonl": Format(
        _json_head,
        _by_lines(lambda file, cols, part: tables.json_table(part, file.schema, cols.source)),
        "lines",
    ),
    "conll": Format(_token_head, _token_rows),
    "norm": Format(
        _norm_head, lambda file, _, size: conll.norm_tables(_parts(file, size))
    ),
    "layout": Format(_layout_head, _layout_rows),
    "parquet": _by_numbers(parquet.parquet_head, parquet.parquet_tables),
    "arrow": _by_numbers(parquet.arrow_head, parquet.arrow_tables),
    "hf": Format(
        _hub_head,
        lambda file, *_: _conform(map(tables.with_reasons, tables.hf_tables(file.path)), file),
        is_text=False,
    ),
}  # fmt: skip
ENDINGS = {kind: kind for kind in FORMATS if kind not in ("hf", "layout")} | {
    "ndjson": "jsonl", "conllu": "conll", "iob2": "conll", "bio": "conll", "dev": "txt",
    "devtest": "txt",
}  # fmt: skip
TEXT_ENDINGS = tuple(ending for ending, kind in ENDINGS.items() if FORMATS[kind].is_text)
