"""Sources of input: their files, the columns of the files, and their rows in shards and batches."""

import glob
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.data import conll, tables
from noisegen.data.decoders import SMALL, compression_of
from noisegen.data.features import (
    class_names,
    features,
    with_features,
    with_label_names,
    with_list,
)
from noisegen.data.files import is_url, with_bytes
from noisegen.data.folders import in_folder, in_store
from noisegen.data.formats.layouts import layouts_of
from noisegen.data.formats.registry import (
    ENDINGS,
    TEXT_ENDINGS,
    advice_on_file,
    bitext_ending,
    file_of,
    format_of,
    is_streamed,
    name_of,
    range_tables,
    ranges,
    read_head,
)
from noisegen.data.formats.slot_files import SPLIT_FILES, is_split, slot_file
from noisegen.data.formats.token_lines import PAIR_COLUMNS
from noisegen.data.lines import TEXT_MAX, head_of_text
from noisegen.data.paths import is_path, leads, parts_of, path_in, text_paths, values_at
from noisegen.data.rows import ID, Columns, FileRange, RowBatch
from noisegen.data.tables import LISTS, is_list, is_string
from noisegen.errors import SourceError, UsageError, did_you_mean
from noisegen.options import Strings, listed
from noisegen.text.buffers import as_arrow, one_chunk

_IDS = "ids are integers (up to int64) or strings"
NUMBERS = pa.list_(pa.int64())  # type of a column of labels that are class numbers
RESERVED = ("id", "clean", "noisy", "transforms", "edits", "copy", "noisy_tokens", "noisy_labels")
_SEPARATED = re.compile(r"[;|^~\t\x01]")  # possible separators in a header of one field
_NUMBERED = re.compile(r"column_\d+")  # name of a column of a token file without a default name
# Most bytes of a shard whose rows are held in memory, as those of standard input
STREAM_BYTES = 64 << 20

Head = Callable[[FileRange, Columns], FileRange | None]


# Functions that find the files of a source.


def expand(sources: Strings) -> list[FileRange]:
    """Return the files of sources in order; a source is a file, folder, glob, URL, '-' or 'hf:...'.

    A folder that `datasets` saved gives the Arrow files of the split `train`, or of the only split.
    Raises SourceError for a missing source, and if no file can be read.
    """
    given = listed(sources)
    files = [file for source in given for file in _expanded(source)]
    if all(file.skipped for file in files):
        problem = f"{files[0].path}: unknown ending" if len(files) == 1 else "nothing to read"
        if [file.path for file in files] != given:
            problem += f" (searched: {', '.join(given)})"
        raise SourceError(
            f"{problem}; {_readable()} are read{_DUMP_ADVICE if _are_dumps(files) else ''}"
        )
    return files


_DUMP_ADVICE = "; mine-wiki reads the dumps of Wikipedia"


def _are_dumps(files: Sequence[FileRange]) -> bool:
    return bool(files) and all(re.search(r"wik[^/]*\.xml\b", file.path) for file in files)


def _readable() -> str:
    """Return a list of all readable file endings, for an error message."""
    text = ", ".join(f".{ending}" for ending in TEXT_ENDINGS)
    others = " and ".join(f".{ending}" for ending in ENDINGS if ending not in TEXT_ENDINGS)
    return f"{text} (each also with .gz, .zst, .bz2, .xz), {others}"


def total_size(files: Iterable[FileRange]) -> int:
    """Return the total size in bytes of the files that are read; 0 if any size is unknown."""
    sizes = [file.file_size for file in files if not file.skipped]
    return 0 if None in sizes else sum(filter(None, sizes))


def is_hub(source: str) -> bool:
    """Tell whether a source is 'hf:NAME', a data set that `datasets` streams, not an hf:// URL."""
    return source.startswith("hf:") and not is_url(source)


def _expanded(source: str) -> Iterator[FileRange]:
    path = Path(source)
    if source == "-":
        yield FileRange(source, "txt")
    elif is_hub(source):
        yield FileRange(source, "hf")
    elif is_url(source):
        yield from in_store(source)
    elif source and path.is_dir():  # Path('') is the current folder
        yield from _in_local_folder(str(path))
    elif source and path.exists():
        yield _named_file(path)
    elif matches := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        for match in matches:
            is_other = not bitext_ending(source) and Path(match).is_file()
            yield from [file_of(match)] if is_other else _expanded(match)
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def _named_file(path: Path) -> FileRange:
    """Return a file that the user named.

    A text named as bitext, such as corpus.de, is plain text. A text with another unknown ending and
    a token per line, such as eng.testa, is CoNLL. Files that are found in a folder are not read by
    such names: x.pl may be a program.
    """
    if path.name == SPLIT_FILES[0] and is_split(path.parent):
        return slot_file(str(path))
    file = file_of(path)
    if not file.skipped or not path.is_file():
        return file
    is_bitext = bitext_ending(path)
    if compression_of(path) and not is_bitext:
        return file
    head = head_of_text(str(path), SMALL)
    is_text = b"\0" not in head and (is_bitext or conll.has_token_lines(head, []))
    return replace(file, format="txt", skipped="") if is_text else file


def _in_local_folder(folder: str) -> Iterator[FileRange]:
    """Yield the files in a folder and its subfolders.

    If some files have the name of a file in a published data set, other plain text files, such as
    a README, are yielded as skipped files. So are JSON documents beside files of other formats,
    since they rather describe these files.
    """
    files = list(in_folder(folder))
    published = {file.path for file in files if layouts_of(file.path)}
    has_tables = any(file.format not in ("", "json") for file in files)
    for file in files:
        if published and file.format == "txt" and file.path not in published:
            yield FileRange(file.path, skipped="beside published files")
        elif has_tables and file.format == "json":
            yield FileRange(file.path, skipped="beside files of other formats")
        else:
            yield file


def named_source(given: str) -> tuple[str, str]:
    """Split NAME=SOURCE into name and source; the default name is the name of the file."""
    name, equals, source = given.partition("=")
    if equals and source and not Path(given).exists() and not set(name) & set("/\\:*"):
        return name, source
    return name_of(given), given


# Functions that choose and check the columns of files.


def first_file(files: Iterable[FileRange], columns: Columns) -> FileRange | None:
    """Return the first file that has rows, with its columns read; None if no file has rows."""
    for each in files:
        if file := read_head(each, columns):
            return file
    return None


def completed(files: Sequence[FileRange], columns: Columns) -> tuple[Columns, list[str]]:
    """Return the user's columns with defaults filled in, and a message about each default.

    The default column of ids is 'id' if it has integers or strings; otherwise rows are numbered.
    Files with a token per line also have default columns of tokens and labels; if the user gave one
    by number, its name replaces the number. The number of a text column stays, since it means that
    there is no header line. Raises UsageError for labels without tokens.
    """
    file = first_file(files, columns)
    meant = replace(columns.of(file.schema.names if file else []), text=columns.text)
    if file and format_of(file).has_token_lines and columns.text not in PAIR_COLUMNS:
        meant = _with_token_columns(meant, file, columns)
    if len(meant.paths) == 1 and not is_path(meant.text):
        meant = replace(meant, paths=())
    if meant.tokens and meant.is_annotated:
        raise UsageError("--tokens goes with one text: leave out --spans, --align and other texts")
    if meant.labels and not meant.tokens:
        raise UsageError("--labels goes with --tokens")
    notes = _notes_on_defaults(meant, columns, file) if file else []
    if columns.row_id is None and meant.row_id and file and not _may_be_ids(file, meant.row_id):
        meant = replace(meant, row_id="")
    return meant, notes


def _may_be_ids(file: FileRange, name: str) -> bool:
    """Tell whether a column is taken as ids without being named: one of integers or strings."""
    kind = file.schema.field(name).type
    return not pa.types.is_floating(kind) and _id_type(kind) is not None


def _notes_on_defaults(meant: Columns, columns: Columns, file: FileRange) -> list[str]:
    """Return a message per default: a column set in `meant`, but not by the user in `columns`."""
    notes = []
    if meant.row_id and not columns.row_id:
        name, kind = meant.row_id, file.schema.field(meant.row_id).type
        other = f"column {name!r} holds {kind}: rows are numbered (others: --id-column)"
        taken = f"column {name!r} is taken as the id of each row"
        notes.append(taken if _may_be_ids(file, name) else other)
    if meant.labels and not (columns.tokens and columns.labels):
        notes.append(
            f"column {meant.tokens!r} has the tokens and {meant.labels!r} their labels "
            "(others: --tokens, --labels)"
        )
    if file.separator != ",":
        notes.append(f"fields are separated by {file.separator!r}")
    return notes


def _with_token_columns(meant: Columns, file: FileRange, columns: Columns) -> Columns:
    """Return the columns `meant` with tokens and labels set, if the file has labels."""
    labels = _token_column(file, columns.labels, conll.LABELLED)
    if not labels:
        return meant
    return replace(meant, tokens=_token_column(file, columns.tokens, conll.WORDS), labels=labels)


def _token_column(file: FileRange, given: str | None, usual: Sequence[str]) -> str | None:
    """Return the name of a column that the user gave by name or number; else the default.

    The default is the first name in `usual` that the file has, or None.
    """
    if given is None:
        return next((name for name in usual if name in file.names), None)
    is_place = given.isdecimal() and 0 < int(given) <= len(file.names)
    return file.names[int(given) - 1] if is_place else given


def agree(file: FileRange, first: FileRange, columns: Columns) -> FileRange:
    """Return a file with its columns in the order of `first`, the first input file.

    Raises SourceError if columns are missing, have a wrong type, or differ from the first file's.
    """
    if file is not first and file.is_like(first):
        # All files share one schema object, since there may be many
        return file if file.schema is first.schema else replace(file, schema=first.schema)
    ours = _output_types(file, columns)
    if file is first:
        return file
    theirs = _output_types(first, columns)
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
    # Texts and ids may have another type in the first file; its type is read
    fields = [(first if name in order else file).schema.field(name) for name in names]
    return replace(file, schema=pa.schema(fields, file.schema.metadata))


def _output_types(file: FileRange, columns: Columns) -> dict[str, pa.DataType]:
    """Return {column: type} of the output for `file`, without columns that noise adds.

    `columns` are the columns that the user named. Raises SourceError for missing columns and wrong
    types.
    """
    columns = columns.of(file.schema.names)
    _refuse_missing(file, columns)
    refuse_doubles(file.path, file.schema.names)
    types = {field.name: field.type for field in file.schema}
    for name in columns.lists:
        types[name] = _list_type(file, name, types[name], may_be_classes=name == columns.labels)
    if not columns.tokens and not columns.paths:
        _refuse_other_than_text(file, columns.text, types[columns.text])
    id_type = _checked_id_type(file, columns.row_id)
    carried = _kept_columns(file, columns)
    _refuse_reserved(file, (name for name in columns.lists if name in carried))
    layout = {"id": id_type, "clean": pa.string()}
    return layout | {name: types[name] for name in (*carried, *columns.lists)}


def _refuse_missing(file: FileRange, columns: Columns) -> None:
    """Raise SourceError if a file lacks a column that the user named."""
    for given in (*columns.paths, *columns.spans, *filter(None, [columns.align])):
        _refuse_wrong_path(file, given)
    for name in (columns.required, columns.row_id, columns.labels):
        if name and name not in file.schema.names:
            advice = _advice(file) if name == columns.source == columns.text else ""
            raise no_column(file.path, name, file.schema.names, advice)


def _refuse_wrong_path(file: FileRange, given: str) -> None:
    """Raise SourceError if a path leads nowhere in a file; the error lists its texts."""
    for part in parts_of(given):
        if not is_path(part) and part not in file.schema.names:
            raise no_column(file.path, part, file.schema.names)
        if not leads(part, file.schema):
            there = ", ".join(text_paths(file.schema)) or "no text"
            raise SourceError(f"{file.path}: nothing at {part!r}; there is: {there}")


def _list_type(
    file: FileRange, name: str, kind: pa.DataType, *, may_be_classes: bool
) -> pa.DataType:
    """Return the output type of a column of tokens or labels.

    The column must hold lists of strings; with `may_be_classes`, lists of class numbers are
    allowed. Raises SourceError for other types.
    """
    items = kind.value_type if is_list(kind) else pa.null()
    if is_string(items):
        return LISTS
    if may_be_classes and pa.types.is_integer(items):
        return NUMBERS
    wanted = "strings or classes" if may_be_classes else "strings"
    raise SourceError(f"{file.path}: column {name!r} is not a list of {wanted} but {kind}")


def _refuse_other_than_text(file: FileRange, name: str, kind: pa.DataType) -> None:
    """Raise SourceError if a column holds neither strings nor bytes."""
    if not (is_string(kind) or kind in (pa.binary(), pa.large_binary())):
        texts = [
            path for path in text_paths(file.schema) if path.startswith((f"{name}.", f"{name}["))
        ]
        inside = f"; texts in it: {', '.join(texts)}" if texts else ""
        raise SourceError(f"{file.path}: column {name!r} is not text but {kind}{inside}")


def _checked_id_type(file: FileRange, name: str | None) -> pa.DataType:
    """Return the output type of the ids in the column `name`: integers or strings.

    Without `name`, the ids are row numbers, which are integers. Raises SourceError for a column of
    another type.
    """
    kind = file.schema.field(name).type if name else pa.int64()
    if (found := _id_type(kind)) is None:
        raise SourceError(f"{file.path}: {_IDS}; {name!r} is {kind}; number rows: --id-column none")
    return found


def _id_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the output type of ids of the type `kind`; None if values of this type are no ids.

    Floating-point numbers are ids if they are whole, which is checked when rows are read.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if is_string(kind):
        return pa.string()
    if pa.types.is_floating(kind):
        return pa.int64()
    return _wide(kind) if pa.types.is_integer(kind) else None


def _wide(kind: pa.DataType) -> pa.DataType:
    """Return the type with 64 bits for a type of integers."""
    return kind if kind == pa.uint64() else pa.int64()


def _kept_columns(file: FileRange, columns: Columns) -> list[str]:
    """Return the input columns that the output keeps, under the same names."""
    stays = columns.tokens or columns.paths
    row_id = ID if columns.row_id == "" else columns.row_id
    used = {row_id} if stays else {row_id, columns.text}
    return [name for name in file.schema.names if name not in used]


def refuse_reserved(file: FileRange, columns: Columns, more: Sequence[str] = ()) -> None:
    """Raise SourceError if an input column has the name of an output column, such as 'noisy'.

    `more` names columns that some options add.
    """
    columns = columns.of(file.schema.names)
    more = (*more, *["paths"] * bool(columns.paths))
    _refuse_reserved(file, _kept_columns(file, columns), more)


def _refuse_reserved(file: FileRange, names: Iterable[str], more: Sequence[str] = ()) -> None:
    if reserved := next((name for name in names if name in (*RESERVED, *more)), None):
        raise SourceError(
            f"{file.path}: column {reserved!r} has a name of the output; rename it, or write one "
            "file (-o noisy.parquet), which keeps the columns of its source"
        )


def _advice(file: FileRange) -> str:
    """Return advice for the error about a file that lacks the column of text."""
    if format_of(file).has_header:
        return "; name it: --text-column NAME, or its number if there is no header line"
    nested = [path for path in text_paths(file.schema) if path not in file.schema.names]
    named = f"; name it: --text-column NAME{' or PATH: ' * bool(nested)}{', '.join(nested[:5])}"
    kinds = [field.type for field in file.schema]
    if any(is_list(kind) and is_string(kind.value_type) for kind in kinds):
        return f"{named}; for lists of strings: --tokens NAME of augment or normalize"
    return named if kinds else ""


def no_column(path: str, name: str, names: Sequence[str], advice: str = "") -> SourceError:
    """Return the error that a file with the columns `names` lacks the column `name`.

    If a name in `names` is similar, the error suggests it; otherwise `advice` is added. A file of
    JSON in another encoding than UTF-8 may have no names at all.
    """
    hint = did_you_mean(name, names) or advice
    if len(names) == 1 and _SEPARATED.search(names[0]):
        hint = "; the header is one field: separate fields by a comma, semicolon, tab or |"
    elif not names and (known := advice_on_file(file_of(path))):
        hint = f"; {known}"
    elif names and all(map(_NUMBERED.fullmatch, names)):
        hint = "; columns without names have numbers: 1 is the first"
    elif len(names) < 2 and (published := layouts_of(path)):
        hint = f"; by its name it is of {published[0].name}, but not by its lines"
    return SourceError(f"{path}: no column {name!r} among: {shown_names(names)}{hint}")


def shown_names(names: Sequence[str]) -> str:
    """Return the first names of columns for an error message, long ones cut; 'none' for none."""
    plain = (name if name.isprintable() else repr(name)[1:-1] for name in names[:30])
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in plain]
    return ", ".join([*shown, *["..."][: len(names) - len(shown)]]) or "none"


def refuse_doubles(path: str, names: Sequence[str]) -> None:
    """Raise SourceError if two columns have the same name."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: two columns are named {twice!r}")


# Functions that divide files into shards.


def shard_ranges(
    files: Sequence[FileRange],
    columns: Columns,
    rows_per_shard: int,
    limit: int | None = None,
    head: Head = read_head,
) -> Iterator[tuple[FileRange, ...]]:
    """Divide files into shards, and yield the ranges of rows in each, in input order.

    A shard has at most `rows_per_shard` rows, all shards together at most `limit`. The `first` of a
    range is the index of its first row among the rows of all files. All files are opened by the
    function `head` before the first shard is yielded; lines are counted later, shard by shard.
    Raises SourceError if a file cannot be read or has other columns, or if no file has rows.
    """
    first = 0
    found = _headed(files, columns, head)
    for held in _packed(found, columns, min(rows_per_shard, limit or rows_per_shard), limit):
        shard = []
        for part in held:
            if limit is not None and first + part.rows > limit:
                part = _first_rows(part, limit - first)
            if part.rows:
                shard.append(replace(part, first=first))
                first += part.rows
        yield tuple(shard)
        if first == limit:
            return
    if not first:
        raise SourceError(f"no rows in {', '.join(file.path for file in files)}")


def _headed(files: Sequence[FileRange], columns: Columns, head: Head) -> list[FileRange]:
    """Return the files that have rows, all with the columns in one order; raises SourceError."""
    found: list[FileRange] = []
    for each in files:
        if (file := head(each, columns)) is not None:
            found.append(agree(file, found[0] if found else file, columns))
    return found


def _first_rows(part: FileRange, rows: int) -> FileRange:
    """Return the first `rows` rows of the range `part`."""
    if part.table is None:
        return replace(part, rows=rows)
    return replace(part, rows=rows, table=tables.joined(part.table.slice(0, rows)))


def _packed(
    files: Sequence[FileRange], columns: Columns, rows_per_shard: int, limit: int | None
) -> Iterator[list[FileRange]]:
    """Yield the ranges of rows in each shard; a streamed file shares no shard with other files.

    Of a streamed file, `limit` rows are enough.
    """
    for streamed, group in groupby(files, is_streamed):
        if streamed:
            for file in group:
                first = replace(file, rows=file.rows or limit or 0)
                for part in _streamed(first, columns, rows_per_shard):
                    yield [part]
            continue
        held: list[FileRange] = []
        room = rows_per_shard
        for file in group:
            for part in ranges(file, room, rows_per_shard):
                held.append(part)
                room -= part.rows
                if not room:
                    yield held
                    held, room = [], rows_per_shard
        if held:
            yield held


def _streamed(file: FileRange, columns: Columns, rows_per_shard: int) -> Iterator[FileRange]:
    """Yield ranges of a file that only this process can read, with their rows in `table`.

    If `file.rows` is set, so many rows are enough.
    """
    read_here = tables.regroup(range_tables(file, columns), rows_per_shard, STREAM_BYTES)
    for table, size in with_bytes(read_here):
        yield replace(file, rows=len(table), size=size, table=table)


# Functions that read shards in batches.


def read(
    shard: Sequence[FileRange],
    columns: Columns,
    batch_rows: int = 100_000,
    batch_bytes: int = 4 << 20,
) -> Iterator[RowBatch]:
    """Yield the rows of a shard in batches of at most `batch_rows` rows and about `batch_bytes`.

    Every column is a single Arrow chunk. Raises SourceError for a file that is missing, damaged or
    changed.
    """
    rows = chain.from_iterable(_counted(part, columns, batch_bytes) for part in shard)
    first = shard[0].first
    for table in tables.regroup(rows, batch_rows, batch_bytes):
        meant = columns.of(table.column_names)
        batch = _batch(table, meant, first)
        yield _per_text(batch, meant) if meant.per_text and meant.paths else batch
        first += len(table)


def _counted(file: FileRange, columns: Columns, batch_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of a range in tables; raises SourceError if the file has too few rows."""
    left = file.rows
    for table in range_tables(file, columns, batch_bytes):
        yield table.slice(0, left)
        left -= len(table)
        if left <= 0:
            return
    raise SourceError(
        f"{file.path}: {left:,} rows are gone; it has changed since they were counted"
    )


def _batch(table: pa.Table, columns: Columns, first: int) -> RowBatch:
    """Return the rows of a table as a batch without its unusable rows.

    Rows of a source without ids get their row numbers as ids, from `first` on.
    """
    codes = table[tables.REASON].to_numpy().copy()
    if not columns.row_id:
        ids = as_arrow(np.arange(first, first + len(table), dtype=np.int64))
    else:
        ids = _usable(_whole(table[columns.row_id], columns.row_id), codes, "null_id")
    built = {"id": ids}
    if not columns.paths:
        source = table[columns.source]
        texts = pc.binary_join(source.cast(LISTS), " ") if columns.tokens else source
        built["clean"] = _usable(texts, codes, "null_text")
    described = table.schema
    if columns.labels:
        if columns.label_names:
            described = with_label_names(described, columns.labels, columns.label_names)
        _mark_unequal(table[columns.source], table[columns.labels], codes)
        classes = class_names(described).get(columns.labels, ())
        _mark_unknown(table[columns.labels], classes, codes)
    rows = pa.table(built | _other_columns(table, columns, known=built))
    rows = pa.Table.from_arrays(rows.columns, schema=_described(rows.schema, described))
    keep = np.isin(codes, tables.KEPT)
    counts = np.bincount(codes, minlength=len(tables.REASONS)).tolist()
    counts[tables.NO_ROW] = 0
    dropped = Counter(dict(zip(tables.REASONS[1:], counts[1:], strict=True)))
    return RowBatch(
        table=rows if keep.all() else rows.filter(keep).combine_chunks(),
        dropped=+dropped,
        read=tables.with_reasons(table.drop_columns(tables.REASON), codes),
        keep=keep,
    )


def _per_text(batch: RowBatch, columns: Columns) -> RowBatch:
    """Return a batch whose table has a row per text, in the column `clean`."""
    table = batch.table
    path = path_in(columns.paths[0], table.column_names)
    values = values_at(table, path) if path else []
    texts = [[value for value in of_row if isinstance(value, str)] for of_row in values]
    owners = np.repeat(np.arange(len(texts)), [len(of_row) for of_row in texts])
    clean = pa.array(chain.from_iterable(texts), pa.string())
    dropped = batch.dropped + Counter(missing_text=texts.count([]))
    rows = table.take(as_arrow(owners)).append_column("clean", clean)
    return replace(batch, table=rows, dropped=dropped)


def _described(schema: pa.Schema, source: pa.Schema) -> pa.Schema:
    """Return the schema of rows with the metadata of their columns in `source`, the input."""
    found = features(source)
    schema = with_features(schema, {name: found[name] for name in found if name in schema.names})
    for name in {*schema.names} & {*source.names}:
        at, field = schema.names.index(name), source.field(name)
        if field.type == schema.field(at).type:
            schema = schema.set(at, field)
        elif is_list(field.type):
            schema = with_list(schema, name)
    return schema


def _whole(ids: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return ids, with whole floating-point numbers as integers and NaN as null.

    Raises SourceError for another number in the column `name`.
    """
    if not pa.types.is_floating(ids.type):
        return ids
    numbers = pc.if_else(pc.is_nan(ids), None, ids)
    try:
        return numbers.cast(pa.int64())
    except pa.ArrowInvalid as error:
        problem = f"column {name!r} has other numbers"
        raise SourceError(f"{_IDS}; {problem}; number rows: --id-column none") from error


def _other_columns(
    table: pa.Table, columns: Columns, known: Collection[str]
) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table except the ids, the text, and columns with names in `known`.

    Columns of tokens and labels are cast to lists of strings or of 64-bit integers.
    """
    left_out = {tables.REASON, tables.RAW, columns.row_id, *known}
    left_out |= set() if columns.paths else {columns.source}
    others = {}
    for name in table.column_names:
        if name in columns.lists:
            is_number = pa.types.is_integer(table[name].type.value_type)
            others[name] = table[name].cast(NUMBERS if is_number else LISTS)
        elif name not in left_out:
            others[name] = table[name]
    return others


def _usable(chunked: pa.ChunkedArray, codes: tables.Codes, null_reason: str) -> pa.Array:
    """Return a column as strings or 64-bit integers.

    `codes` gets the code of a reason for each row with an unusable value; `null_reason` is the
    reason for a null.
    """
    column = one_chunk(chunked)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    _mark(codes, pc.is_null(column), null_reason)
    if pa.types.is_integer(column.type):
        return column.cast(_wide(column.type))
    is_large = column.type in (pa.large_string(), pa.large_binary())
    column = column.cast(pa.large_binary() if is_large else pa.binary())
    too_long = pc.fill_null(pc.greater(pc.binary_length(column), TEXT_MAX), False)
    _mark(codes, too_long, "row_too_long")
    if pc.any(too_long).as_py():
        column = pc.if_else(too_long, None, column)
    texts, wrong = tables.as_text(column)
    _mark(codes, pa.array(wrong), "not_utf8")
    return texts


def _mark_unequal(tokens: pa.ChunkedArray, labels: pa.ChunkedArray, codes: tables.Codes) -> None:
    """Set the codes of rows with null labels, or too many or too few, to unequal_labels."""
    labels = labels.cast(LISTS)
    lengths = pc.equal(pc.list_value_length(tokens), pc.list_value_length(labels))
    are_whole = pc.is_valid(pc.binary_join(labels, " "))  # joining gives null if one label is null
    is_good = pc.and_(pc.fill_null(lengths, False), are_whole)
    _mark(codes, pc.invert(is_good), "unequal_labels")


def _mark_unknown(labels: pa.ChunkedArray, names: Sequence[str], codes: tables.Codes) -> None:
    """Set the codes of rows with a number that has no class name to unknown_label.

    Negative numbers, such as -100, mark tokens without a label.
    """
    if names and pa.types.is_integer(labels.type.value_type):
        above = pc.greater_equal(pc.list_flatten(labels), len(names))
        rows = pc.list_parent_indices(labels).filter(pc.fill_null(above, False))
        _mark(codes, pa.array(np.isin(np.arange(len(codes)), rows)), "unknown_label")


def _mark(codes: tables.Codes, where: pa.Array, reason: str) -> None:
    is_marked = where.to_numpy(zero_copy_only=False)
    codes[is_marked & np.isin(codes, tables.KEPT)] = tables.CODE[reason]
