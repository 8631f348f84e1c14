"""What a SOURCE means: its files, their formats, and columns that must agree."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from noisegen.errors import SourceError, did_you_mean
from noisegen.json_lines import json_schema
from noisegen.readers import (
    SCAN,
    Damaged,
    blocks,
    header,
    is_unicode,
    opened,
    parquet_head,
    reading,
)

KINDS = ("txt", "tsv", "csv", "jsonl", "parquet")
COMPRESSIONS = ("gz", "zst", "bz2", "xz")
ENDINGS = ".txt, .tsv, .csv, .jsonl (each also with .gz, .zst, .bz2, .xz) and .parquet"
RESERVED = (
    "id", "clean", "noisy", "transforms", "edits", "copy", "noisy_tokens", "noisy_labels",
)  # fmt: skip
BOM = b"\xef\xbb\xbf"
LISTS = pa.list_(pa.string())
_HEAD = 64 << 10


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
        given = {
            field: name if name in names or not name.isdecimal() else f"column_{int(name)}"
            for field, name in vars(self).items()
            if name is not None
        }
        return Columns(**given)


@dataclass(frozen=True)
class Input:
    """A file, '-' or 'hf:...' that a SOURCE means; `skipped` says why it is not read."""

    path: str
    kind: str = ""
    compression: str = ""
    skipped: str = ""

    @property
    def streamed(self) -> bool:
        """Whether only the caller can read it, from the beginning."""
        return bool(self.compression) or self.path == "-" or self.kind in ("csv", "hf")

    @property
    def size(self) -> int | None:
        """The bytes of a file; None for what is no file."""
        return Path(self.path).stat().st_size if self.path != "-" and self.kind != "hf" else None


@dataclass(frozen=True)
class Piece:
    """A name of rows: bytes [start, stop) of lines, or rows [start, stop) of Parquet.

    `rows` counts all rows of the input; `schema` has its columns in the order of the run, and
    `names` in that of the file.
    """

    path: str
    kind: str
    start: int
    stop: int
    rows: int
    schema: pa.Schema
    names: tuple[str, ...] = ()


def expand(sources: Sequence[str]) -> list[Input]:
    """Return the inputs that files, folders, globs, '-' and 'hf:...' mean, in order.

    Raises SourceError for what is missing, and where there is nothing to read.
    """
    inputs = [item for source in sources for item in _expanded(str(source))]
    if all(item.skipped for item in inputs):
        found = f"{inputs[0].path}: unknown ending" if len(inputs) == 1 else "nothing to read"
        raise SourceError(f"{found}; {ENDINGS} are read (searched: {', '.join(sources)})")
    return inputs


def _expanded(source: str) -> Iterator[Input]:
    path = Path(source)
    if source == "-" or source.startswith("hf:"):
        yield Input(source, "txt" if source == "-" else "hf")
    elif source and path.is_dir():  # the path of '' is the current folder
        for folder, _, files in sorted(os.walk(path)):
            if not any(part.startswith(".") for part in Path(folder).relative_to(path).parts):
                yield from (
                    file_input(Path(folder, name)) for name in sorted(files) if name[0] != "."
                )
    elif source and path.exists():
        yield file_input(path)
    elif found := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        yield from chain.from_iterable(map(_expanded, found))
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def file_input(path: Path) -> Input:
    """Return a file with the format that its ending says."""
    stem, _, ending = path.name.lower().rpartition(".")
    compression = ending if ending in COMPRESSIONS else ""
    kind = stem.rpartition(".")[2] if compression else ending
    if kind not in KINDS or (compression and kind == "parquet") or not stem:
        return Input(str(path), skipped="unknown ending")
    return Input(str(path), kind, compression)


def whole(item: Input, columns: Columns) -> Piece | None:
    """Return a file as one piece, as its beginning shows it; None where there is nothing in it."""
    if item.path == "-":
        return _lines("-", "txt", b"", columns, 0)
    path = os.path.abspath(item.path)  # noqa: PTH100  (a worker may run in another folder)
    with reading(item.path):
        if item.kind == "parquet":
            schema, rows = parquet_head(path)
            return Piece(path, item.kind, 0, rows, rows, plain(schema, columns))
        try:
            with opened(path, item.compression) as read:
                head = next(blocks(read, SCAN if item.kind == "jsonl" else _HEAD), b"")
        except Damaged as damage:
            raise SourceError(f"{item.path}: damaged before its first row ({damage})") from damage
        size = Path(path).stat().st_size
    if not head and item.kind != "txt":
        return None
    try:
        return _lines(path, item.kind, head, columns, size)
    except SourceError as error:
        raise SourceError(f"{item.path}: {error}") from error


def _lines(path: str, kind: str, head: bytes, columns: Columns, size: int) -> Piece:
    """Return a file of lines as one piece."""
    start = len(BOM) if head.startswith(BOM) else 0
    head = head[start:]
    if kind == "txt":
        names = [columns.source]
    elif kind == "jsonl":
        lists = {name: LISTS for name in (columns.tokens, columns.labels) if name}
        wanted = {columns.text: pa.string()} | lists
        return Piece(path, kind, start, size, 0, json_schema(head, wanted))
    else:
        names, length = header(head, kind)
        if columns.text.isdecimal():
            names = [f"column_{number}" for number in range(1, len(names) + 1)]
        else:
            start += length
    if not all(map(is_unicode, names)):
        raise SourceError("the header is not UTF-8")
    schema = pa.schema([(name, pa.string()) for name in names])
    return Piece(path, kind, start, size, 0, schema, tuple(names))


def plain(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return the schema without views, which Arrow cannot filter, nor a dictionary of texts."""
    kinds = [(field.name, field.type, field.name == columns.source) for field in schema]
    return pa.schema([(name, _plain(kind, is_text)) for name, kind, is_text in kinds])


def _plain(kind: pa.DataType, is_text: bool) -> pa.DataType:
    if is_text and pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def agree(piece: Piece, first: Piece, columns: Columns) -> Piece:
    """Return the piece with the columns in the order of the first piece of the run.

    Raises SourceError for columns that are missing, of a wrong type or unlike those of the first.
    """
    ours, theirs = _layout(piece, columns), _layout(first, columns)
    for name in dict.fromkeys([*theirs, *ours]):
        one, other = theirs.get(name, "absent"), ours.get(name, "absent")
        if one != other:
            difference = f"column {name!r} is {one} in the first and {other} in the second"
            raise SourceError(f"{first.path} and {piece.path} differ: {difference}")
    order = {name: number for number, name in enumerate(theirs)}
    names = sorted(piece.schema.names, key=lambda name: order.get(name, -1))
    return replace(piece, schema=pa.schema([piece.schema.field(name) for name in names]))


def _layout(piece: Piece, columns: Columns) -> dict[str, pa.DataType]:
    """Return the columns that the rows will have, with their types; raises SourceError."""
    names, columns = piece.schema.names, columns.of(piece.schema.names)
    for name in (columns.source, columns.row_id, columns.labels):
        if name is not None and name not in names:
            raise SourceError(_no_column(piece, name))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{piece.path}: two columns are named {twice!r}")
    used = {columns.row_id} if columns.tokens else {columns.row_id, columns.text}
    kinds = {"id": _id_type(piece, columns.row_id), "clean": _text_type(piece, columns)}
    for field in piece.schema:
        if field.name in used:
            continue
        if field.name in RESERVED:
            hint = ", or use --id-column id" if field.name == "id" else ""
            raise SourceError(
                f"{piece.path}: column {field.name!r} has a name of the output; rename it{hint}"
            )
        is_list = field.name in (columns.tokens, columns.labels)
        kinds[field.name] = LISTS if is_list else field.type
    return kinds


def _no_column(piece: Piece, name: str) -> str:
    hint = did_you_mean(name, piece.schema.names)
    if not hint and piece.kind in ("csv", "tsv"):
        hint = "; without a header line, use --text-column 1"
    return f"{piece.path}: no column {name!r} among: {listed(piece.schema.names)}{hint}"


def listed(names: Sequence[str]) -> str:
    """Return names of columns for an error, long ones and long lists of them cut.

    Control characters, as a file that is no text has them, are written as escapes.
    """
    plain = (name if name.isprintable() else repr(name)[1:-1] for name in names[:30])
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in plain]
    return ", ".join([*shown, *["..."][: len(names) - len(shown)]]) or "none"


def _id_type(piece: Piece, name: str | None) -> pa.DataType:
    kind = pa.int64() if name is None else piece.schema.field(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if _is_string(kind):
        return pa.string()
    raise SourceError(
        f"{piece.path}: ids are integers (up to int64) or strings; {name!r} is {kind}"
    )


def _text_type(piece: Piece, columns: Columns) -> pa.DataType:
    """Check the types of text, tokens and labels."""
    for name in filter(None, (columns.tokens, columns.labels)):
        kind = piece.schema.field(name).type
        is_list = any(
            is_kind(kind)
            for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        )
        if not (is_list and _is_string(kind.value_type)):
            raise SourceError(f"{piece.path}: column {name!r} is no list of strings but {kind}")
    kind = piece.schema.field(columns.source).type
    if columns.tokens or _is_string(kind) or kind in (pa.binary(), pa.large_binary()):
        return pa.string()
    raise SourceError(f"{piece.path}: column {columns.source!r} is no text but {kind}")


def _is_string(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())
