"""What a SOURCE means: its files, their columns, and their rows in shards and batches with ids."""

import glob
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.data import conll, tables
from noisegen.data.conll import LISTS
from noisegen.data.features import class_names, with_class_names
from noisegen.data.files import TEXT_MAX, is_url, with_bytes
from noisegen.data.folders import in_folder, in_store
from noisegen.data.formats import (
    TEXT_ENDINGS,
    input_of,
    name_of,
    range_tables,
    ranges,
    whole,
)
from noisegen.data.formats import Columns as Columns
from noisegen.data.formats import FileRange as FileRange
from noisegen.data.formats import Input as Input
from noisegen.data.layouts import layouts_of
from noisegen.errors import SourceError, UsageError, did_you_mean
from noisegen.options import Strings
from noisegen.options import listed as listed
from noisegen.text.buffers import as_arrow, one_chunk

NUMBERS = pa.list_(pa.int64())  # labels that are the numbers of classes
ENDINGS = (
    f"{', '.join(f'.{ending}' for ending in TEXT_ENDINGS)} (each also with .gz, .zst, .bz2, .xz), "
    ".parquet and .arrow"
)
RESERVED = (
    "id", "clean", "noisy", "transforms", "edits", "copy", "noisy_tokens", "noisy_labels",
)  # fmt: skip
_NAMED = RESERVED[:2]  # what the text and its id are called, whatever the source calls so
Head = Callable[[Input, Columns], FileRange | None]
STREAM_BYTES = 64 << 20  # of rows in a shard that carries them


@dataclass(frozen=True)
class ShardInput:
    """The rows of one shard: ranges of files, or the rows of a source that can only be streamed.

    `size` is what it takes of the bytes of the input, 0 where they are not known.
    """

    number: int
    first_row: int
    rows: int
    ranges: tuple[FileRange, ...] = ()
    table: pa.Table | None = None
    size: int = 0


@dataclass(frozen=True)
class RowBatch:
    """Rows with `id`, `clean` and all other columns, and how many were dropped for what reason.

    `read` has all rows as they were read, with their reasons; `keep` says which are in `table`.
    """

    table: pa.Table
    dropped: Counter[str]
    read: pa.Table
    keep: npt.NDArray[np.bool_]


# From a SOURCE to its files.


def expand(sources: Strings) -> list[Input]:
    """Return the inputs that files, folders, globs, URLs, '-' and 'hf:...' mean, in order.

    A folder that `datasets` saved is its table; of several splits it is `train`. Raises SourceError
    for what is missing, and where there is nothing to read.
    """
    given = listed(sources)
    inputs = [item for source in given for item in _expanded(source)]
    if all(item.skipped for item in inputs):
        problem = f"{inputs[0].path}: unknown ending" if len(inputs) == 1 else "nothing to read"
        raise SourceError(f"{problem}; {ENDINGS} are read (searched: {', '.join(given)})")
    return inputs


def total_size(inputs: Iterable[Input]) -> int:
    """Return the bytes of all inputs that are read; 0 if those of one are not known."""
    sizes = [item.size for item in inputs if not item.skipped]
    return 0 if None in sizes else sum(filter(None, sizes))


def is_hub(source: str) -> bool:
    """Tell whether a source is 'hf:NAME', a dataset that `datasets` streams, and no URL."""
    return source.startswith("hf:") and not is_url(source)


def _expanded(source: str) -> Iterator[Input]:
    path = Path(source)
    if source == "-" or is_hub(source):
        yield Input(source, "txt" if source == "-" else "hf")
    elif is_url(source):
        yield from in_store(source)
    elif source and path.is_dir():  # the path of '' is the current folder
        items = list(in_folder(str(path)))
        with_layout = [item for item in items if layouts_of(item.path)]
        for item in items:
            is_beside = with_layout and item.kind == "txt" and item not in with_layout
            yield Input(item.path, skipped="beside published files") if is_beside else item
    elif source and path.exists():
        yield input_of(path)
    elif matches := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        yield from chain.from_iterable(map(_expanded, matches))
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def named_source(given: str) -> tuple[str, str]:
    """Split NAME=SOURCE; a source without a name is called as its file."""
    name, equals, source = given.partition("=")
    if equals and source and not Path(given).exists() and not set(name) & set("/\\:*"):
        return name, source
    return name_of(given), given


# From a file to its columns.


def first_file(inputs: Iterable[Input], columns: Columns) -> FileRange | None:
    """Return the first file that has rows, if one has."""
    return next((file for item in inputs if (file := whole(item, columns))), None)


def completed(inputs: Sequence[Input], columns: Columns) -> tuple[Columns, list[str]]:
    """Return the columns that are meant where none are named, and notes that say so.

    A column `id` has the ids. A file with a token per line has tokens and, beside them, labels or
    normal forms; a number is the place of a column in it. Raises UsageError for tokens without
    labels.
    """
    file = first_file(inputs, columns)
    meant = columns.of(file.schema.names if file else [])
    if (
        file
        and file.kind in ("conll", "norm")
        and columns.text not in conll.pair_schema().names
        and (labels := _token_column(file, columns.labels, conll.LABELLED))
    ):
        tokens = _token_column(file, columns.tokens, conll.WORDS)
        meant = replace(meant, tokens=tokens, labels=labels)
    if (meant.tokens is None) != (meant.labels is None):
        raise UsageError("--tokens and --labels go together")
    notes = []
    if meant.row_id and not columns.row_id:
        notes.append(f"column {meant.row_id!r} is taken as the id of each row")
    if meant.tokens and not (columns.tokens and columns.labels):
        notes.append(
            f"column {meant.tokens!r} gets the noise and {meant.labels!r} has its labels "
            "(others: --tokens, --labels)"
        )
    return meant, notes


def _token_column(file: FileRange, given: str | None, usual: Sequence[str]) -> str | None:
    """Return the column of a file with a token per line that is meant: by number, or as usual."""
    if given is None:
        return next((name for name in usual if name in file.names), None)
    is_place = given.isdecimal() and 0 < int(given) <= len(file.names)
    return file.names[int(given) - 1] if is_place else given


def agree(file: FileRange, first: FileRange, columns: Columns) -> FileRange:
    """Return the file with the columns in the order of the first file of the run.

    Raises SourceError for columns that are missing, of a wrong type or unlike those of the first.
    """
    if file is not first and file.schema.equals(first.schema, check_metadata=True):
        return replace(file, schema=first.schema)  # one object, for there may be many files
    ours, theirs = _layout(file, columns), _layout(first, columns)
    for name in dict.fromkeys([*theirs, *ours]):
        if (wanted := theirs.get(name, "absent")) != (given := ours.get(name, "absent")):
            difference = f"column {name!r} is {wanted} in the first and {given} in the second"
            raise SourceError(f"{first.path} and {file.path} differ: {difference}")
    classes = class_names(file.schema)
    for name, known in class_names(first.schema).items():
        if known != classes.get(name):
            raise SourceError(
                f"{first.path} and {file.path} differ: column {name!r} has other names of classes"
            )
    order = {name: number for number, name in enumerate(first.schema.names)}
    names = sorted(file.schema.names, key=lambda name: order.get(name, -1))
    schema = pa.schema([file.schema.field(name) for name in names], file.schema.metadata)
    return replace(file, schema=schema)


def _layout(file: FileRange, columns: Columns) -> dict[str, pa.DataType]:
    """Return the columns that the rows will have, with their types; raises SourceError."""
    names, columns = file.schema.names, columns.of(file.schema.names)
    for name in (columns.source, columns.row_id, columns.labels):
        if name is not None and name not in names:
            advice = _advice(file) if name == columns.source == columns.text else ""
            raise no_column(file.path, name, names, advice)
    refuse_doubles(file.path, names)
    types = {field.name: field.type for field in file.schema}
    lists = [name for name in (columns.tokens, columns.labels) if name]
    for name in lists:
        items = types[name].value_type if is_list(types[name]) else pa.null()
        has_numbers = name == columns.labels and pa.types.is_integer(items)
        if not (is_string(items) or has_numbers):
            wanted = "strings" if name == columns.tokens else "strings or classes"
            raise SourceError(
                f"{file.path}: column {name!r} is not a list of {wanted} but {types[name]}"
            )
        types[name] = NUMBERS if has_numbers else LISTS
    kind = types[columns.source]
    if not (columns.tokens or is_string(kind) or kind in (pa.binary(), pa.large_binary())):
        raise SourceError(f"{file.path}: column {columns.source!r} is not text but {kind}")
    id_type = pa.int64() if columns.row_id is None else types[columns.row_id]
    if pa.types.is_dictionary(id_type):
        id_type = id_type.value_type
    is_integer = pa.types.is_integer(id_type) and id_type != pa.uint64()
    if not (is_integer or is_string(id_type)):
        allowed = f"ids are integers (up to int64) or strings; {columns.row_id!r} is {id_type}"
        raise SourceError(f"{file.path}: {allowed}")
    carried = _carried(file, columns)
    _refuse_reserved(file, (name for name in lists if name in carried))
    layout = {"id": pa.int64() if is_integer else pa.string(), "clean": pa.string()}
    return layout | {name: types[name] for name in (*carried, *lists)}


def _carried(file: FileRange, columns: Columns) -> list[str]:
    """Return the columns that a run carries to its output, as they are or noised."""
    used = {columns.row_id} if columns.tokens else {columns.row_id, columns.text}
    return [name for name in file.schema.names if name not in used]


def refuse_reserved(inputs: Sequence[Input], columns: Columns) -> None:
    """Raise SourceError for a column that a run would carry beside its own of that name."""
    if file := first_file(inputs, columns):
        _refuse_reserved(file, _carried(file, columns.of(file.schema.names)))


def _refuse_reserved(file: FileRange, names: Iterable[str]) -> None:
    if reserved := next((name for name in names if name in RESERVED), None):
        raise SourceError(
            f"{file.path}: column {reserved!r} has a name of the output; rename it, or write one "
            "file (-o noisy.parquet), which keeps the columns of its source"
        )


def _advice(file: FileRange) -> str:
    """Return what to do about a file without the column of the text."""
    if file.kind in ("csv", "tsv"):
        return "; without a header line, use --text-column 1"
    kinds = [field.type for field in file.schema]
    if any(is_list(kind) and is_string(kind.value_type) for kind in kinds):
        tokens = "noisegen augment --tokens NAME --labels NAME"
        return f"; name it: --text-column NAME; for lists of strings: {tokens}"
    return "; name it: --text-column NAME" if kinds else ""


def no_column(path: str, name: str, names: Sequence[str], advice: str = "") -> SourceError:
    """Return the error about a missing column; it ends with `advice` where none is like it."""
    plain = (name if name.isprintable() else repr(name)[1:-1] for name in names[:30])
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in plain]
    listed = ", ".join([*shown, *["..."][: len(names) - len(shown)]]) or "none"
    hint = did_you_mean(name, names) or advice
    if len(names) < 2 and (published := layouts_of(path)):
        hint = f"; by its name it is of {published[0].name}, but not by its lines"
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
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int, limit: int | None = None,
    head: Head = whole,
) -> Iterator[ShardInput]:  # fmt: skip
    """Yield the shards in input order; files are checked first, and lines counted on the way.

    `head` is asked for what `whole` returns, once per input and in their order. Raises SourceError
    for files that cannot be read, do not agree, or have no rows at all.
    """
    first = 0
    shards = _shards(inputs, columns, min(rows_per_shard, limit or rows_per_shard), head)
    for number, (parts, table, size) in enumerate(shards):
        rows = sum(part.rows for part in parts) if table is None else len(table)
        if limit is not None and first + rows > limit:
            rows = limit - first
            table = table and tables.joined(table.slice(0, rows))
            starts = [0, *accumulate(part.rows for part in parts)][:-1]
            parts = tuple(
                replace(part, rows=min(part.rows, rows - start))
                for part, start in zip(parts, starts, strict=True)
                if start < rows
            )
        yield ShardInput(number, first, rows, parts, table, size)
        first += rows
        if first == limit:
            return
    if not first:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")


def _shards(
    inputs: Sequence[Input], columns: Columns, rows_per_shard: int, head: Head
) -> Iterator[tuple[tuple[FileRange, ...], pa.Table | None, int]]:
    """Yield the ranges or rows of shards, and their bytes; a streamed source has its own shards."""
    files: list[FileRange] = []
    for item in inputs:
        if (file := head(item, columns)) is not None:
            files.append(agree(file, files[0] if files else file, columns))
    for streamed, group in groupby(files, lambda file: file.streamed):
        if not streamed:
            for parts in _packed(group, rows_per_shard):
                yield parts, None, sum(part.size for part in parts)
            continue
        for file in group:
            rows = tables.regroup(range_tables(file, columns), rows_per_shard, STREAM_BYTES)
            for table, size in with_bytes(rows):
                yield (), table, size


def _packed(files: Iterable[FileRange], rows_per_shard: int) -> Iterator[tuple[FileRange, ...]]:
    """Yield ranges that make a shard together: pieces of large files, several small ones."""
    held: list[FileRange] = []
    room = rows_per_shard
    for file in files:
        for part in ranges(file, room, rows_per_shard):
            held.append(part)
            room -= part.rows
            if not room:
                yield tuple(held)
                held, room = [], rows_per_shard
    if held:
        yield tuple(held)


# From files to rows.


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
    parts = (_counted(part, columns, batch_bytes) for part in shard.ranges)
    rows = chain.from_iterable(parts) if shard.table is None else [shard.table]
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
        labels = table[columns.labels].cast(LISTS)  # numbers too, to see which are null
        equal = pc.equal(pc.list_value_length(source), pc.list_value_length(labels))
        are_whole = pc.is_valid(pc.binary_join(labels, " "))
        _mark(codes, pc.invert(pc.and_(pc.fill_null(equal, False), are_whole)), "unequal_labels")
    for name in table.column_names:
        if name in (columns.tokens, columns.labels):
            is_number = pa.types.is_integer(table[name].type.value_type)
            built[name] = table[name].cast(NUMBERS if is_number else LISTS)
        elif name not in (tables.REASON, tables.RAW, columns.row_id, columns.source, *_NAMED):
            built[name] = table[name]
    keep = np.isin(codes, tables.KEPT)
    rows = pa.table(built)
    names = {name: known for name, known in class_names(table.schema).items() if name in built}
    rows = rows.replace_schema_metadata(with_class_names(rows.schema, names).metadata)
    counts = np.bincount(codes, minlength=len(tables.REASONS)).tolist()
    counted = zip(tables.REASONS[1:], counts[1:], strict=True)
    dropped = Counter({reason: count for reason, count in counted if count})
    kept = rows if keep.all() else rows.filter(keep).combine_chunks()
    read_rows = tables.with_reasons(table.drop_columns(tables.REASON), codes)
    return RowBatch(kept, dropped, read_rows, keep)


def _texts(chunked: pa.ChunkedArray, codes: tables.Codes, null_reason: str) -> pa.Array:
    """Return a column as strings, or as integers of 64 bits; mark the rows that cannot be used."""
    column = one_chunk(chunked)
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
