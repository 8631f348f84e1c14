"""What a SOURCE means: its files, their columns, and their rows in shards and batches with ids."""

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.data.files import (
    BOM,
    COMPRESSIONS,
    SCAN,
    TEXT_MAX,
    Damaged,
    blocks,
    compression_of,
    read_parts,
    reading,
)
from noisegen.data.tables import (
    CODE,
    KEPT,
    REASON,
    REASONS,
    Codes,
    Mask,
    as_text,
    csv_tables,
    delimited,
    header,
    hf_tables,
    is_unicode,
    json_schema,
    json_table,
    line_ranges,
    parquet_head,
    parquet_tables,
    with_reasons,
)
from noisegen.errors import SourceError, did_you_mean
from noisegen.text.buffers import as_arrow

KINDS = ("txt", "tsv", "csv", "jsonl", "parquet")
ENDINGS = ".txt, .tsv, .csv, .jsonl (each also with .gz, .zst, .bz2, .xz) and .parquet"
RESERVED = (
    "id", "clean", "noisy", "transforms", "edits", "copy", "noisy_tokens", "noisy_labels",
)  # fmt: skip
LISTS = pa.list_(pa.string())
STREAM_BYTES = 64 << 20  # of rows in a shard that carries them
_HEAD = 64 << 10  # bytes in which a header line ends


@dataclass(frozen=True)
class Columns:
    """The columns that a user named; a whole number as text: column of a file without header."""

    text: str = "text"
    row_id: str | None = None
    tokens: str | None = None
    labels: str | None = None

    @property
    def source(self) -> str:
        """The column that the text is made from."""
        return self.tokens or self.text

    def of(self, names: Sequence[str]) -> "Columns":
        """Return the same with numbers replaced by the names of a file without header."""
        given = {field: numbered(name, names) for field, name in vars(self).items() if name}
        return Columns(**given)


def numbered(name: str, names: Sequence[str]) -> str:
    """Return the column that a name means: '2' is the second of a file without a header line."""
    return name if name in names or not name.isdecimal() else f"column_{int(name)}"


@dataclass(frozen=True)
class Input:
    """A file, '-' or 'hf:...' that a SOURCE means; `skipped` says why it is not read."""

    path: str
    kind: str = ""
    skipped: str = ""

    @property
    def streamed(self) -> bool:
        """Whether only the caller can read it, from the beginning."""
        return self.path == "-" or self.kind in ("csv", "hf") or bool(compression_of(self.path))

    @property
    def size(self) -> int | None:
        """The bytes of a file; None for what is no file."""
        return Path(self.path).stat().st_size if self.path != "-" and self.kind != "hf" else None


@dataclass(frozen=True)
class FileRange:
    """A range of rows: bytes [start, stop) of lines, or rows [start, stop) of Parquet.

    `rows` counts them; `schema` has the columns in the order of the run, and `names` in that of the
    file.
    """

    path: str
    kind: str
    start: int
    stop: int
    rows: int
    schema: pa.Schema
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardInput:
    """The rows of one shard: ranges of files, or the rows of a source that can only be streamed."""

    number: int
    first_row: int
    rows: int
    ranges: tuple[FileRange, ...] = ()
    table: pa.Table | None = None


@dataclass(frozen=True)
class RowBatch:
    """Rows with `id`, `clean` and all other columns, and how many were dropped for what reason."""

    table: pa.Table
    dropped: Counter[str]


# From a SOURCE to its files.


def expand(sources: Sequence[str]) -> list[Input]:
    """Return the inputs that files, folders, globs, '-' and 'hf:...' mean, in order.

    Raises SourceError for what is missing, and where there is nothing to read.
    """
    inputs = [item for source in sources for item in _expanded(str(source))]
    if all(item.skipped for item in inputs):
        problem = f"{inputs[0].path}: unknown ending" if len(inputs) == 1 else "nothing to read"
        raise SourceError(f"{problem}; {ENDINGS} are read (searched: {', '.join(sources)})")
    return inputs


def _expanded(source: str) -> Iterator[Input]:
    path = Path(source)
    if source == "-" or source.startswith("hf:"):
        yield Input(source, "txt" if source == "-" else "hf")
    elif source and path.is_dir():  # the path of '' is the current folder
        for folder, _, files in sorted(os.walk(path)):
            if not any(part.startswith(".") for part in Path(folder).relative_to(path).parts):
                shown = (name for name in sorted(files) if not name.startswith("."))
                yield from (file_input(Path(folder, name)) for name in shown)
    elif source and path.exists():
        yield file_input(path)
    elif matches := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        yield from chain.from_iterable(map(_expanded, matches))
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def file_input(path: Path) -> Input:
    """Return a file with the format that its ending says."""
    compression = compression_of(path)
    name = path.name.lower()
    stem, _, kind = (name.removesuffix(f".{compression}") if compression else name).rpartition(".")
    if kind not in KINDS or (compression and kind == "parquet") or not (stem or compression):
        return Input(str(path), skipped="unknown ending")
    return Input(str(path), kind)


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


# From a file to its columns.


def whole(item: Input, columns: Columns) -> FileRange | None:
    """Return all rows of a file, as its beginning shows it; None where there is nothing in it."""
    if item.path == "-":
        return _whole_lines("-", "txt", b"", columns, 0)
    path = os.path.abspath(item.path)  # noqa: PTH100  (a worker may run in another folder)
    if item.kind == "parquet":
        schema, rows = parquet_head(path)
        return FileRange(path, item.kind, 0, rows, rows, plain_schema(schema, columns))
    try:
        parts = blocks(read_parts(path), SCAN if item.kind == "jsonl" else _HEAD)
        head = next(parts, b"")
    except Damaged as damage:
        raise SourceError(f"{item.path}: damaged before its first row ({damage})") from damage
    if not head and item.kind != "txt":
        return None
    try:
        return _whole_lines(path, item.kind, head, columns, Path(path).stat().st_size)
    except SourceError as error:
        raise SourceError(f"{item.path}: {error}") from error


def _whole_lines(path: str, kind: str, head: bytes, columns: Columns, size: int) -> FileRange:
    """Return all rows of a file of lines."""
    start = len(BOM) if head.startswith(BOM) else 0
    head = head[start:]
    if kind == "txt":
        names = [columns.source]
    elif kind == "jsonl":
        lists = {name: LISTS for name in (columns.tokens, columns.labels) if name}
        wanted = {columns.text: pa.string()} | lists
        return FileRange(path, kind, start, size, 0, json_schema(head, wanted))
    else:
        names, length = header(head, kind)
        if columns.text.isdecimal():
            names = [f"column_{number}" for number in range(1, len(names) + 1)]
        else:
            start += length
    if not all(map(is_unicode, names)):
        raise SourceError("the header is not UTF-8")
    schema = pa.schema([(name, pa.string()) for name in names])
    return FileRange(path, kind, start, size, 0, schema, tuple(names))


def plain_schema(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return the schema without views, which Arrow cannot filter, nor a dictionary of texts."""

    def plain(field: pa.Field) -> pa.DataType:
        kind = field.type
        if field.name == columns.source and pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_string_view(kind):
            return pa.string()
        return pa.binary() if pa.types.is_binary_view(kind) else kind

    return pa.schema([(field.name, plain(field)) for field in schema])


def agree(file: FileRange, first: FileRange, columns: Columns) -> FileRange:
    """Return the file with the columns in the order of the first file of the run.

    Raises SourceError for columns that are missing, of a wrong type or unlike those of the first.
    """
    ours, theirs = _layout(file, columns), _layout(first, columns)
    for name in dict.fromkeys([*theirs, *ours]):
        if (wanted := theirs.get(name, "absent")) != (given := ours.get(name, "absent")):
            difference = f"column {name!r} is {wanted} in the first and {given} in the second"
            raise SourceError(f"{first.path} and {file.path} differ: {difference}")
    order = {name: number for number, name in enumerate(theirs)}
    names = sorted(file.schema.names, key=lambda name: order.get(name, -1))
    return replace(file, schema=pa.schema([file.schema.field(name) for name in names]))


def _layout(file: FileRange, columns: Columns) -> dict[str, pa.DataType]:
    """Return the columns that the rows will have, with their types; raises SourceError."""
    names, columns = file.schema.names, columns.of(file.schema.names)
    for name in (columns.source, columns.row_id, columns.labels):
        if name is not None and name not in names:
            headless = "; without a header line, use --text-column 1"
            hint = headless if file.kind in ("csv", "tsv") else ""
            raise no_column(file.path, name, names, hint)
    refuse_doubles(file.path, names)
    used = {columns.row_id} if columns.tokens else {columns.row_id, columns.text}
    kinds = {"id": _id_type(file, columns.row_id), "clean": _text_type(file, columns)}
    for field in file.schema:
        if field.name in used:
            continue
        if field.name in RESERVED:
            hint = ", or use --id-column id" if field.name == "id" else ""
            raise SourceError(
                f"{file.path}: column {field.name!r} has a name of the output; rename it{hint}"
            )
        is_list = field.name in (columns.tokens, columns.labels)
        kinds[field.name] = LISTS if is_list else field.type
    return kinds


def no_column(path: str, name: str, names: Sequence[str], advice: str = "") -> SourceError:
    """Return the error about a column that is missing; `advice` where no name is like it.

    Long names, and long lists of them, are cut; control characters, as a file that is no text has
    them, are escaped.
    """
    plain = (name if name.isprintable() else repr(name)[1:-1] for name in names[:30])
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in plain]
    listed = ", ".join([*shown, *["..."][: len(names) - len(shown)]]) or "none"
    hint = did_you_mean(name, names) or advice
    return SourceError(f"{path}: no column {name!r} among: {listed}{hint}")


def refuse_doubles(path: str, names: Sequence[str]) -> None:
    """Raise SourceError if two columns have one name."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: two columns are named {twice!r}")


def _id_type(file: FileRange, name: str | None) -> pa.DataType:
    kind = pa.int64() if name is None else file.schema.field(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if is_string(kind):
        return pa.string()
    raise SourceError(f"{file.path}: ids are integers (up to int64) or strings; {name!r} is {kind}")


def _text_type(file: FileRange, columns: Columns) -> pa.DataType:
    """Check the types of text, tokens and labels."""
    for name in filter(None, (columns.tokens, columns.labels)):
        kind = file.schema.field(name).type
        if not (is_list(kind) and is_string(kind.value_type)):
            raise SourceError(f"{file.path}: column {name!r} is no list of strings but {kind}")
    kind = file.schema.field(columns.source).type
    if columns.tokens or is_string(kind) or kind in (pa.binary(), pa.large_binary()):
        return pa.string()
    raise SourceError(f"{file.path}: column {columns.source!r} is no text but {kind}")


def is_string(kind: pa.DataType) -> bool:
    """Tell whether a type of Arrow is a string."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a type of Arrow is a list."""
    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


# From files to shards.


def shard_inputs(
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int, limit: int | None = None
) -> Iterator[ShardInput]:
    """Yield the shards in input order; files are checked first, and lines counted on the way.

    Raises SourceError for files that cannot be read, do not agree, or have no rows at all.
    """
    rows_per_shard = min(rows_per_shard, limit or rows_per_shard)
    first = 0
    for number, (ranges, table) in enumerate(_shards(inputs, columns, rows_per_shard)):
        rows = sum(part.rows for part in ranges) if table is None else len(table)
        if limit is not None and first + rows >= limit:
            rows = limit - first
            table = table and joined(table.slice(0, rows))
            starts = accumulate((part.rows for part in ranges), initial=0)
            ranges = tuple(
                replace(part, rows=min(part.rows, rows - start))
                for part, start in zip(ranges, starts, strict=False)
                if start < rows
            )
            yield ShardInput(number, first, rows, ranges, table)
            return
        yield ShardInput(number, first, rows, ranges, table)
        first += rows
    if not first:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")


def _shards(
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int
) -> Iterator[tuple[tuple[FileRange, ...], pa.Table | None]]:
    """Yield the content of the shards; a streamed source begins and ends its own."""
    files = _agreed(inputs, columns)
    first = next((file for _, file in files if file), None)
    held: list[FileRange] = []
    room = rows_per_shard
    for item, file in files:
        if file and not item.streamed:
            for part in _cut(file, room, rows_per_shard):
                held.append(part)
                room -= part.rows
                if not room:
                    yield tuple(held), None
                    held, room = [], rows_per_shard
            continue
        if held:
            yield tuple(held), None
            held, room = [], rows_per_shard
        if file is not None:
            tables = _lines(file, columns)
        else:
            given = hf_tables(item.path)
            if (table := next(given, None)) is None:
                continue
            file = FileRange(item.path, "hf", 0, 0, 0, plain_schema(table.schema, columns))
            file = agree(file, first or file, columns)
            first, tables = first or file, _conform(chain([table], given), file)
        yield from (((), table) for table in regroup(tables, rows_per_shard, STREAM_BYTES))
    if held:
        yield tuple(held), None


def _agreed(inputs: Sequence[Input], columns: Columns) -> list[tuple[Input, FileRange | None]]:
    """Return the inputs that hold something, files with the same columns."""
    first: FileRange | None = None
    files: list[tuple[Input, FileRange | None]] = []
    for item in inputs:
        file = whole(item, columns) if item.kind not in ("hf", "") else None
        if file is not None:
            file = agree(file, first or file, columns)
            first = first or file
        if file is not None or item.kind == "hf":
            files.append((item, file))
    return files


def _cut(file: FileRange, first: int, step: int) -> Iterator[FileRange]:
    """Cut a file after its first `first` rows and then after every `step`."""
    if file.kind == "parquet":
        bounds = [0, *range(first, file.rows, step), file.rows]
        for start, stop in pairwise(bounds if file.rows else []):
            yield replace(file, start=start, stop=stop, rows=stop - start)
        return
    for start, stop, rows in line_ranges(file.path, file.start, first, step):
        yield replace(file, start=start, stop=stop, rows=rows)


# From files to tables.


def input_tables(
    item: Input,
    columns: Columns,
    check: Callable[[Sequence[str]], object] = lambda names: None,
    batch_bytes: int = SCAN,
) -> Iterator[pa.Table]:
    """Yield all rows of an input, with all its columns and REASON; damage ends it with a row.

    `check` is called with the names of the columns before they are read. Raises SourceError for
    what cannot be read at all.
    """
    file = whole(item, columns) if item.kind != "hf" else None
    if file is not None:
        check(file.schema.names)
    if file is not None and file.kind != "parquet":
        yield from _lines(file, columns)
    elif file is not None:
        yield from map(_readable, parquet_tables(file.path, 0, file.rows, batch_bytes))
    elif item.kind == "hf":
        for table in hf_tables(item.path):
            check(table.column_names)
            yield _readable(table)


def _readable(table: pa.Table) -> pa.Table:
    return with_reasons(table, np.zeros(len(table), np.int8))


def _lines(file: FileRange, columns: Columns) -> Iterator[pa.Table]:
    """Yield the rows of a file of lines, or of stdin, from beginning to end."""
    parts = blocks(read_parts(file.path), SCAN)
    try:
        head = next(parts, b"")
        head = head.removeprefix(BOM) if file.path == "-" else head[file.start :]
        yield from _line_tables(chain([head], parts), file, columns)
    except Damaged:
        nothing = pa.table([pa.nulls(1, kind) for kind in file.schema.types], file.schema)
        yield with_reasons(nothing, np.array([CODE["truncated"]], np.int8))


def _line_tables(parts: Iterable[bytes], file: FileRange, columns: Columns) -> Iterator[pa.Table]:
    """Yield whole lines as tables, with the columns in the order of the run."""
    parts = (part for part in parts if part)
    if file.kind == "csv":
        tables = csv_tables(parts, file.names)
    elif file.kind == "jsonl":
        tables = (json_table(part, file.schema, columns.source) for part in parts)
    else:
        tabs = file.kind == "tsv"
        tables = (delimited(part, file.names, tabs=tabs) for part in parts)
    yield from (table.select([*file.schema.names, REASON]) for table in tables)


def _conform(tables: Iterable[pa.Table], file: FileRange) -> Iterator[pa.Table]:
    """Yield tables with the columns and types of the run."""
    with reading(file.path):
        for table in tables:
            table = table.select(file.schema.names)
            yield _readable(table if table.schema.equals(file.schema) else table.cast(file.schema))


def _range_tables(file: FileRange, columns: Columns, batch_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of a range; raises SourceError if there are fewer than were counted."""
    left = file.rows
    if file.kind == "parquet":
        rows = parquet_tables(file.path, file.start, file.start + left, batch_bytes)
        tables = _conform(rows, file)
    else:
        lines = read_parts(file.path, file.start, file.stop)
        tables = _line_tables(blocks(lines, min(batch_bytes, SCAN)), file, columns)
    for table in tables:
        yield table.slice(0, left)
        left -= len(table)
        if left <= 0:
            return
    raise SourceError(
        f"{file.path}: {left:,} rows are gone; it has changed since they were counted"
    )


def regroup(tables: Iterable[pa.Table], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `rows_max` rows, fewer where they exceed `bytes_max`."""
    held: list[pa.Table] = []
    room, size = rows_max, 0
    for table in chain.from_iterable(_halved(table, bytes_max // 8) for table in tables):
        at = 0
        while at < len(table):
            part = table.slice(at, room)
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


# From tables to batches.


def read(
    shard: ShardInput, columns: Columns, batch_rows: int = 100_000, batch_bytes: int = 4 << 20
) -> Iterator[RowBatch]:
    """Yield the rows of a shard in batches of about so many rows and bytes at most.

    Every column is one chunk. Raises SourceError for a file that is gone, damaged or changed.
    """
    ranges = (_range_tables(part, columns, batch_bytes) for part in shard.ranges)
    tables = chain.from_iterable(ranges) if shard.table is None else [shard.table]
    first = shard.first_row
    for table in regroup(tables, batch_rows, batch_bytes):
        yield _batch(table, columns.of(table.column_names), first)
        first += len(table)


def _batch(table: pa.Table, columns: Columns, first: int) -> RowBatch:
    """Give rows their ids and texts, and drop those that cannot be used."""
    codes = table[REASON].to_numpy().copy()
    built = {"id": _ids(table, columns, first, codes), "clean": _texts(table, columns, codes)}
    for name in table.column_names:
        if name in (columns.tokens, columns.labels):
            built[name] = table[name].cast(LISTS)
        elif name not in (REASON, columns.row_id, columns.source):
            built[name] = table[name]
    keep = np.isin(codes, KEPT)
    rows = pa.table(built)
    counts = np.bincount(codes, minlength=len(REASONS)).tolist()
    dropped = {reason: counts[CODE[reason]] for reason in REASONS[1:] if counts[CODE[reason]]}
    return RowBatch(rows if keep.all() else rows.filter(keep).combine_chunks(), Counter(dropped))


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
        are_whole = pc.is_valid(pc.binary_join(labels, " "))
        _mark(codes, ~(_mask(equal) & _mask(are_whole)), "unequal_labels")
    column = _binary(column)
    too_long = _mask(pc.greater(pc.binary_length(column), TEXT_MAX))
    _mark(codes, too_long, "row_too_long")
    texts, wrong = as_text(pc.if_else(too_long, None, column) if too_long.any() else column)
    _mark(codes, wrong, "not_utf8")
    return texts


def _binary(column: pa.Array) -> pa.Array:
    """Return strings as the bytes that they are."""
    return column.cast(pa.large_binary() if column.type == pa.large_string() else pa.binary())
