"""What a SOURCE means: its files, their columns, and their rows in shards and batches with ids."""

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.data import tables
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
        return Columns(**{k: numbered(name, names) for k, name in vars(self).items() if name})


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
    name = path.name.lower().removesuffix(f".{compression}")
    stem, _, kind = name.rpartition(".")
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
    """Return all rows of a file, as its beginning shows it; None where nothing is in it, or hf:."""
    if item.kind in ("hf", ""):
        return None
    if item.path == "-":
        return FileRange("-", "txt", 0, 0, 0, *_named_columns([columns.source]))
    path = os.path.abspath(item.path)  # noqa: PTH100  (a worker may run in another folder)
    if item.kind == "parquet":
        schema, rows = tables.parquet_head(path)
        return FileRange(path, item.kind, 0, rows, rows, plain_schema(schema, columns))
    try:
        head = next(blocks(read_parts(path), SCAN if item.kind == "jsonl" else _HEAD), b"")
    except Damaged as damage:
        raise SourceError(f"{item.path}: damaged before its first row ({damage})") from damage
    if not head and item.kind != "txt":
        return None
    start, size = len(head) - len(head.removeprefix(BOM)), Path(path).stat().st_size
    head = head[start:]
    if item.kind == "jsonl":
        lists = {name: LISTS for name in (columns.tokens, columns.labels) if name}
        schema = tables.json_schema(head, {columns.text: pa.string()} | lists)
        return FileRange(path, item.kind, start, size, 0, schema)
    names = [columns.source]
    if item.kind != "txt":
        names, length = tables.header(head, item.kind, item.path)
        if columns.text.isdecimal():
            names = [f"column_{number}" for number in range(1, len(names) + 1)]
        else:
            start += length
    if not all(map(tables.is_unicode, names)):
        raise SourceError(f"{item.path}: the header is not UTF-8")
    return FileRange(path, item.kind, start, size, 0, *_named_columns(names))


def _named_columns(names: Sequence[str]) -> tuple[pa.Schema, tuple[str, ...]]:
    return pa.schema([(name, pa.string()) for name in names]), tuple(names)


def plain_schema(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return the schema without views, which Arrow cannot filter, nor a dictionary of texts."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    types = {field.name: field.type for field in schema}
    if pa.types.is_dictionary(kind := types.get(columns.source, pa.null())):
        types[columns.source] = kind.value_type
    return pa.schema([(name, plain.get(types[name], types[name])) for name in schema.names])


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
            raise no_column(file.path, name, names, headless if file.kind in ("csv", "tsv") else "")
    refuse_doubles(file.path, names)
    types = {field.name: field.type for field in file.schema}
    lists = [name for name in (columns.tokens, columns.labels) if name]
    for name in lists:
        if not (is_list(types[name]) and is_string(types[name].value_type)):
            raise SourceError(
                f"{file.path}: column {name!r} is no list of strings but {types[name]}"
            )
    kind = types[columns.source]
    if not (columns.tokens or is_string(kind) or kind in (pa.binary(), pa.large_binary())):
        raise SourceError(f"{file.path}: column {columns.source!r} is no text but {kind}")
    id_type = pa.int64() if columns.row_id is None else types[columns.row_id]
    if pa.types.is_dictionary(id_type):
        id_type = id_type.value_type
    is_integer = pa.types.is_integer(id_type) and id_type != pa.uint64()
    if not (is_integer or is_string(id_type)):
        allowed = f"ids are integers (up to int64) or strings; {columns.row_id!r} is {id_type}"
        raise SourceError(f"{file.path}: {allowed}")
    used = {columns.row_id} if columns.tokens else {columns.row_id, columns.text}
    others = {name: kind for name, kind in types.items() if name not in used}
    if reserved := next((name for name in others if name in RESERVED), None):
        hint = ", or use --id-column id" if reserved == "id" else ""
        raise SourceError(
            f"{file.path}: column {reserved!r} has a name of the output; rename it{hint}"
        )
    layout = {"id": pa.int64() if is_integer else pa.string(), "clean": pa.string()}
    return layout | others | dict.fromkeys(lists, LISTS)


def no_column(path: str, name: str, names: Sequence[str], advice: str = "") -> SourceError:
    """Return the error about a missing column; it ends with `advice` where none is like it."""
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
    first = 0
    shards = _shards(inputs, columns, min(rows_per_shard, limit or rows_per_shard))
    for number, (ranges, table) in enumerate(shards):
        rows = sum(part.rows for part in ranges) if table is None else len(table)
        if limit is not None and first + rows > limit:
            rows = limit - first
            table = table and tables.joined(table.slice(0, rows))
            starts = accumulate((part.rows for part in ranges), initial=0)
            ranges = tuple(
                replace(part, rows=min(part.rows, rows - start))
                for part, start in zip(ranges, starts, strict=False)
                if start < rows
            )
        yield ShardInput(number, first, rows, ranges, table)
        first += rows
        if first == limit:
            return
    if not first:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")


def _shards(
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int
) -> Iterator[tuple[tuple[FileRange, ...], pa.Table | None]]:
    """Yield the content of the shards; a streamed source begins and ends its own."""
    first: FileRange | None = None
    sources: list[tuple[Input, FileRange | None]] = []
    for item in inputs:
        file = whole(item, columns)
        if file is not None:
            file = agree(file, first or file, columns)
            first = first or file
        if file is not None or item.kind == "hf":
            sources.append((item, file))
    for streamed, group in groupby(sources, lambda source: source[0].streamed):
        if not streamed:
            yield from ((ranges, None) for ranges in _packed(group, rows_per_shard))
            continue
        for item, file in group:
            if file is not None:
                rows = range_tables(file, columns)
            else:
                remainder = tables.hf_tables(item.path)
                if (table := next(remainder, None)) is None:
                    continue
                file = FileRange(item.path, "hf", 0, 0, 0, plain_schema(table.schema, columns))
                file = agree(file, first or file, columns)
                first, rows = first or file, _conform(chain([table], remainder), file)
            yield from (((), table) for table in tables.regroup(rows, rows_per_shard, STREAM_BYTES))


def _packed(
    sources: Iterable[tuple[Input, FileRange | None]], rows_per_shard: int
) -> Iterator[tuple[FileRange, ...]]:
    """Yield ranges that make a shard together: pieces of large files, several small ones."""
    held: list[FileRange] = []
    room = rows_per_shard
    for _, file in sources:
        for part in _cut(file, room, rows_per_shard) if file else ():
            held.append(part)
            room -= part.rows
            if not room:
                yield tuple(held)
                held, room = [], rows_per_shard
    if held:
        yield tuple(held)


def _cut(file: FileRange, first: int, step: int) -> Iterator[FileRange]:
    """Cut a file after its first `first` rows and then after every `step`."""
    if file.kind != "parquet":
        for start, stop, rows in tables.line_ranges(file.path, file.start, first, step):
            yield replace(file, start=start, stop=stop, rows=rows)
    elif file.rows:
        for start, stop in pairwise([0, *range(first, file.rows, step), file.rows]):
            yield replace(file, start=start, stop=stop, rows=stop - start)


# From files to rows.


def range_tables(file: FileRange, columns: Columns, batch_bytes: int = SCAN) -> Iterator[pa.Table]:
    """Yield rows with the columns of the run and REASON; damage is a row; raises SourceError."""
    if file.kind == "parquet":
        yield from _conform(
            tables.parquet_tables(file.path, file.start, file.stop, batch_bytes), file
        )
        return
    names = [*file.schema.names, tables.REASON]
    parts = blocks(read_parts(file.path, file.start, file.stop), min(batch_bytes, SCAN))
    try:
        if file.kind == "csv":
            rows = tables.csv_tables(parts, file.names)
        elif file.kind == "jsonl":
            rows = (tables.json_table(part, file.schema, columns.source) for part in parts)
        else:
            rows = (tables.delimited(part, file.names, tabs=file.kind == "tsv") for part in parts)
        yield from (table.select(names) for table in rows)
    except Damaged:
        nothing = pa.table([pa.nulls(1, kind) for kind in file.schema.types], file.schema)
        yield tables.with_reasons(nothing, np.array([tables.CODE["truncated"]], np.int8))


def _conform(rows: Iterable[pa.Table], file: FileRange) -> Iterator[pa.Table]:
    """Yield rows with the columns and types of the run."""
    with reading(file.path):
        for table in rows:
            table = table.select(file.schema.names)
            yield tables.with_reasons(
                table if table.schema.equals(file.schema) else table.cast(file.schema)
            )


def _counted(file: FileRange, columns: Columns, batch_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of a range; raises SourceError if there are fewer than were counted."""
    left = file.rows
    for table in range_tables(file, columns, batch_bytes):
        yield table.slice(0, left)
        left -= len(table)
        if left <= 0:
            return
    raise SourceError(
        f"{file.path}: {left:,} rows are gone; it has changed since they were counted"
    )


# From tables to batches.


def read(
    shard: ShardInput, columns: Columns, batch_rows: int = 100_000, batch_bytes: int = 4 << 20
) -> Iterator[RowBatch]:
    """Yield the rows of a shard in batches of about so many rows and bytes at most.

    Every column is one chunk. Raises SourceError for a file that is gone, damaged or changed.
    """
    ranges = (_counted(part, columns, batch_bytes) for part in shard.ranges)
    rows = chain.from_iterable(ranges) if shard.table is None else [shard.table]
    first = shard.first_row
    for table in tables.regroup(rows, batch_rows, batch_bytes):
        yield _batch(table, columns.of(table.column_names), first)
        first += len(table)


def _batch(table: pa.Table, columns: Columns, first: int) -> RowBatch:
    """Give rows their ids and texts, and drop those that cannot be used."""
    codes = table[tables.REASON].to_numpy().copy()
    ids = as_arrow(np.arange(first, first + len(table), dtype=np.int64))
    if columns.row_id is not None:
        ids = _texts(table[columns.row_id], codes, "null_id")
    source = table[columns.source]
    texts = pc.binary_join(source.cast(LISTS), " ") if columns.tokens else source
    built = {"id": ids, "clean": _texts(texts, codes, "null_text")}
    if columns.labels:
        labels = table[columns.labels].cast(LISTS)
        equal = pc.equal(pc.list_value_length(source), pc.list_value_length(labels))
        are_whole = pc.is_valid(pc.binary_join(labels, " "))
        _mark(codes, pc.invert(pc.and_(pc.fill_null(equal, False), are_whole)), "unequal_labels")
    for name in table.column_names:
        if name in (columns.tokens, columns.labels):
            built[name] = table[name].cast(LISTS)
        elif name not in (tables.REASON, columns.row_id, columns.source):
            built[name] = table[name]
    keep = np.isin(codes, tables.KEPT)
    rows = pa.table(built)
    counts = np.bincount(codes, minlength=len(tables.REASONS)).tolist()
    counted = zip(tables.REASONS[1:], counts[1:], strict=True)
    dropped = Counter({reason: count for reason, count in counted if count})
    return RowBatch(rows if keep.all() else rows.filter(keep).combine_chunks(), dropped)


def _texts(chunked: pa.ChunkedArray, codes: tables.Codes, null_reason: str) -> pa.Array:
    """Return a column as strings, or as integers of 64 bits; mark the rows that cannot be used."""
    column = chunked.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    _mark(codes, pc.is_null(column), null_reason)
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    is_large = column.type in (pa.large_string(), pa.large_binary())
    column = column.cast(pa.large_binary() if is_large else pa.binary())
    too_long = pc.fill_null(pc.greater(pc.binary_length(column), TEXT_MAX), False)
    _mark(codes, too_long, "row_too_long")
    texts, wrong = tables.as_text(
        pc.if_else(too_long, None, column) if pc.any(too_long).as_py() else column
    )
    _mark(codes, pa.array(wrong), "not_utf8")
    return texts


def _mark(codes: tables.Codes, where: pa.Array, reason: str) -> None:
    is_marked = where.to_numpy(zero_copy_only=False)
    codes[is_marked & np.isin(codes, tables.KEPT)] = tables.CODE[reason]
