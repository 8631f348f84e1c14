"""Formats by file ending, and functions that open, split and read a file of any format."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisegen.data.conll import has_token_lines, is_normalisation
from noisegen.data.decoders import COMPRESSIONS, compression_of, without_compression
from noisegen.data.files import SCAN, Damaged, is_url, size_of
from noisegen.data.formats.base import Format, Tables
from noisegen.data.formats.hub import HUB
from noisegen.data.formats.json_document import JSON, is_document
from noisegen.data.formats.json_lines import JSONL
from noisegen.data.formats.layouts import PUBLISHED, corrections_in, layouts_of
from noisegen.data.formats.m2 import M2
from noisegen.data.formats.parquet import ARROW, PARQUET
from noisegen.data.formats.separated import CSV, SEPARATORS, TSV, TXT
from noisegen.data.formats.slot_files import SLOTS
from noisegen.data.formats.token_lines import CONLL, NORMALISED, PAIR_COLUMNS, TREEBANK
from noisegen.data.lines import (
    BOM,
    as_utf8,
    encoding_advice,
    from_utf8,
    head_of_text,
    line_ranges,
    stdin_head,
    with_blocks,
)
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import CODE, RAW, REASON, with_reasons
from noisegen.errors import SourceError
from noisegen.text.languages import listed_code

_SIDE = re.compile(r"(src|trg|tgt|ref|hyp|source|target)\d*")  # ending that names a side of bitext
_OBJECT = re.compile(rb'\s*\{\s*["}]')  # beginning of a JSON object
_ARRAY = re.compile(rb"\s*\[\s*\{")  # beginning of a JSON array of objects

# To add a format, write a module beside this one and add its Format to this list.
_TABLES = (TXT, TSV, CSV, JSONL, JSON, PARQUET, ARROW)
_ALL = (*_TABLES, CONLL, TREEBANK, NORMALISED, PUBLISHED, HUB, SLOTS, M2)
FORMATS = {each.name: each for each in _ALL}
# Names of the formats in which augment can write its output as one file
WRITTEN = tuple(each.name for each in _ALL if each.writer)
ENDINGS = {each.endings[0]: each.name for each in _ALL if each.endings}
ENDINGS |= {ending: each.name for each in _ALL for ending in each.endings[1:]}
TEXT_ENDINGS = tuple(ending for ending, name in ENDINGS.items() if FORMATS[name].is_text)


def format_of(file: FileRange) -> Format:
    """Return the format of a file."""
    return FORMATS[file.format]


def file_of(path: str | Path) -> FileRange:
    """Return a file with the format that its ending names, or `skipped` for an unknown ending."""
    compression = compression_of(path)
    name = str(path).rpartition("/")[2] if is_url(path) else os.path.basename(path)  # noqa: PTH119
    stem, _, ending = name.lower().removesuffix(f".{compression}").rpartition(".")
    known = ENDINGS.get(ending, "")
    if known and (FORMATS[known].is_text or not compression) and (stem or compression):
        return FileRange(str(path), known)
    if layouts_of(str(path)):
        return FileRange(str(path), PUBLISHED.name)
    return FileRange(str(path), skipped="unknown ending")


def bitext_ending(path: str | Path) -> str:
    """Return the ending of a text file named as in Moses and OPUS: 'de' of corpus.de.gz, or 'src'.

    Such an ending is the code of a language, or names a side of bitext. Returns '' for other names.
    """
    stem, _, ending = without_compression(re.split(r"[/\\]", str(path))[-1]).rpartition(".")
    return ending if stem and (_SIDE.fullmatch(ending) or listed_code(ending)) else ""


def name_of(source: str) -> str:
    """Return the name of a file or data set without folder and known endings: 'a' for 'x/a.tsv'."""
    name = source.rstrip("/").rpartition("/")[2] or source
    for ending in (*COMPRESSIONS, *ENDINGS, M2.name):
        name = name.removesuffix(f".{ending}")
    return name


# Functions that read the beginning of a file.


def read_head(file: FileRange, columns: Columns) -> FileRange | None:
    """Return a file with its columns, read from its beginning; None if it has no rows.

    The first lines decide the format of standard input, of a file of a published data set, and of
    a .tsv file, which may have a token per line or be CSV. `keys` of the file become columns,
    except for names that the file has as columns. Raises SourceError.
    """
    headed = _read_head(file, columns) if file.format else None
    if headed is None or not file.keys:
        return headed
    keys = tuple(key for key in file.keys if key[0] not in headed.schema.names)
    schema = headed.schema
    for name, value in keys:
        schema = schema.append(pa.field(name, value.type))
    return replace(headed, schema=schema, keys=keys)


def _read_head(file: FileRange, columns: Columns) -> FileRange | None:
    """Return a file with its own columns, read from its beginning; None if it has no rows."""
    if not format_of(file).is_text:
        return format_of(file).head(file, b"", columns)
    head = _first_lines(file)
    text = head.removeprefix(BOM)
    file = replace(file, format=_format_in(file, text, columns.text), start=len(head) - len(text))
    if not text and file.format != TXT.name:
        return None
    if file.path != "-" and not compression_of(file.path):
        file = replace(file, stop=size_of(file.path))
    elif file.path != "-" and format_of(file).cut == "lines":
        file = with_blocks(file)
    return format_of(file).head(file, text, columns)


def beginning_of(file: FileRange) -> tuple[bytes, bytes]:
    """Return the bytes of a text file before its first row, and the end of its first line.

    The bytes are a byte order mark and a header line. `file` is a result of `read_head`, and no row
    of standard input has been read.
    """
    head = from_utf8(_first_lines(file), file.encoding)
    beginning = as_utf8(head[: file.start], file.encoding)
    return beginning, b"\r\n" if head.partition(b"\n")[0].endswith(b"\r") else b"\n"


def _first_lines(file: FileRange) -> bytes:
    """Return the first lines of a text file; raises SourceError if lines end in CR without LF."""
    size = format_of(file).head_bytes
    head = stdin_head() if file.path == "-" else head_of_text(file.path, size)
    head = as_utf8(head, file.encoding)
    if b"\n" not in head and b"\r" in head.rstrip(b"\r"):
        raise SourceError(
            f"{file.path}: its lines end in CR alone; convert them: tr '\\r' '\\n' < FILE > NEW"
        )
    return head


def _format_in(file: FileRange, head: bytes, text: str) -> str:
    """Return the name of a text file's format, judged by its name and its first lines, `head`.

    A file named as in a published data set has the format of this data set if its lines fit. This
    is not tried if `text`, the column of text that the user named, is a number.
    """
    if published := _published_format(file, head, text):
        return published
    if text in PAIR_COLUMNS and _has_corrections(file, head, text):
        return PUBLISHED.name
    is_stream = file.path == "-"
    if file.format == JSON.name:
        return JSON.name if is_document(head) else JSONL.name
    if file.format == JSONL.name and _ARRAY.match(head):
        return JSON.name
    is_prose = file.format == TXT.name and b"\n\n" not in head.replace(b"\r", b"")
    if not is_stream and (is_prose or file.format not in (TSV.name, TXT.name)):
        return file.format
    if not text.isdecimal() and has_token_lines(head, [text]):
        return NORMALISED.name if is_normalisation(head) else CONLL.name
    if not is_stream and file.format == TXT.name:
        return file.format
    found = _format_of_stream(head, text)
    return found if is_stream or found == CSV.name else file.format


def _published_format(file: FileRange, head: bytes, text: str) -> str:
    """Return the name of the format if a file is of a published data set; '' for other files.

    Raises SourceError for such a file if it is empty, or if it has another layout and no
    other format.
    """
    layouts = [] if text.isdecimal() else layouts_of(file.path)
    if not layouts:
        return ""
    problems = [layout.problem(head) for layout in layouts]
    if "" in problems:
        return PUBLISHED.name if layouts[problems.index("")].columns else TSV.name
    if file.format == PUBLISHED.name or not head.strip():
        raise SourceError(
            f"{file.path} is not as {layouts[0].name} is published: {problems[0]}; get it again, "
            "or rename it if it is another file"
        )
    return ""


def _has_corrections(file: FileRange, head: bytes, text: str) -> bool:
    """Tell whether a file has JSON lines of published corrections, which lack the column `text`."""
    if file.format not in (JSONL.name, JSON.name) and file.path != "-":
        return False
    has_field = f'"{text}"'.encode() in head.partition(b"\n")[0]
    return not has_field and corrections_in(head) is not None


def _format_of_stream(head: bytes, text: str) -> str:
    """Return the name of the format of standard input or of a .tsv file, by its first line.

    `text` is the user's column of text.
    """
    if _ARRAY.match(head) or (_OBJECT.match(head) and is_document(head, is_stream=True)):
        return JSON.name
    if _OBJECT.match(head):
        return JSONL.name
    line = head.partition(b"\n")[0].decode("utf-8", "replace").strip()
    for separator in ("\t", *SEPARATORS):
        names = [name.strip('"') for name in line.split(separator)]
        if names[1:] and text in names:
            return TSV.name if separator == "\t" else CSV.name
    return TXT.name


def advice_on_file(file: FileRange, option: str = "") -> str:
    """Return what to do about a local text file with lines that are not UTF-8, or ''.

    `option` is the option of the command that names the encoding of its input, if it has one.
    """
    is_text = bool(file.format) and format_of(file).is_text and not is_url(file.path)
    return encoding_advice(file.path, option) if is_text and Path(file.path).is_file() else ""


def has_rows(file: FileRange) -> bool:
    """Tell whether a file has rows; a stream is assumed to have some."""
    if format_of(file).cut == "rows":
        return file.rows > 0
    if file.path == "-" or not format_of(file).is_text:
        return True
    return next(line_ranges(file, 1, 1), None) is not None


# Functions that divide a file into ranges and read their rows.


def is_streamed(file: FileRange) -> bool:
    """Tell whether only this process can read a file, since it cannot be divided into ranges."""
    is_here = file.path == "-" or file.path.startswith("memory:")
    is_packed = bool(compression_of(file.path)) and not file.blocks
    return is_here or not format_of(file).cut or is_packed


def ranges(file: FileRange, first: int, step: int) -> Iterator[FileRange]:
    """Split a file into ranges of `step` rows, after a first range of `first` rows."""
    if format_of(file).cut == "lines":
        yield from line_ranges(file, first, step)
    elif (file.start, file.stop, file.first) == (0, file.rows, 0) and 0 < file.rows <= first:
        yield file  # the object itself, not a copy: there may be many files
    elif file.rows:
        for start, stop in pairwise([0, *range(first, file.rows, step), file.rows]):
            rows, size = stop - start, file.size * (stop - start) // file.rows
            yield replace(file, start=start, stop=stop, first=start, rows=rows, size=size)


def pieces(file: FileRange, columns: Columns, rows: int) -> list[FileRange]:
    """Split a file into ranges of `rows` rows each; [file] if it cannot be split.

    A text file at a URL is not split, since it would be downloaded twice, first to count its lines.
    """
    headed = read_head(file, columns)
    if headed is None or is_streamed(headed):
        return [file]
    if is_url(file.path) and format_of(headed).is_text:
        return [file]
    found = list(ranges(headed, rows, rows))
    return found if found[1:] else [file]


def range_tables(file: FileRange, columns: Columns, batch_bytes: int = SCAN) -> Tables:
    """Yield the rows of a file or range in tables with all columns of its schema, and REASON.

    If `columns.raw` is set, the tables also have the column RAW of input lines. If the file is
    damaged, a last row with the reason `truncated` stands for the missing rows. Raises SourceError.
    """
    if file.table is not None:
        yield file.table
        return
    names = [*file.schema.names, REASON]
    own = file
    if file.keys:
        added = {name for name, _ in file.keys}
        fields = [field for field in file.schema if field.name not in added]
        own = replace(file, schema=pa.schema(fields, file.schema.metadata))
    try:
        for table in format_of(file).tables(own, columns, batch_bytes):
            yield _completed(table, names, file, columns)
    except Damaged:
        nothing = pa.table([pa.nulls(1, kind) for kind in file.schema.types], file.schema)
        damage = with_reasons(nothing, np.array([CODE["truncated"]], np.int8))
        yield _completed(damage, names, file, columns)


def _completed(table: pa.Table, names: list[str], file: FileRange, columns: Columns) -> pa.Table:
    """Return the columns `names` of a table, and the column RAW if `columns.raw` is set.

    Columns that the table lacks are in the file's `keys`. RAW has the input line of each row, or
    null if `columns.raw` lacks the file's format.
    """
    for name, value in file.keys:
        if name not in table.column_names:
            table = table.append_column(name, pa.repeat(value, len(table)))
    rows = table.select(names)
    if columns.raw is not None:
        has_raw = RAW in table.column_names and file.format in columns.raw
        raw = table[RAW] if has_raw else pa.nulls(len(table), pa.binary())
        rows = rows.append_column(RAW, raw)
    return rows.replace_schema_metadata(file.schema.metadata)
