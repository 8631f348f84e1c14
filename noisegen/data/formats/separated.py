"""Text by lines: plain text, TSV split at tabs, and CSV with quotes as in RFC 4180.

The fields of CSV may be separated by semicolons, tabs or pipes instead of commas.

Every line of plain text is a row. The first line of a table has the names of its columns; if the
user gives a column by number, the first line is a row. If a quote in CSV is never closed, only the
line with the quote is dropped.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import islice, starmap, zip_longest

import numpy as np
import pyarrow as pa

from noisegen.data.files import SCAN, Damaged, first_line
from noisegen.data.formats.base import (
    FLAT,
    Format,
    NoisyRow,
    RowWriter,
    Tables,
    as_cell,
    text_blocks,
    with_names,
    with_raw,
)
from noisegen.data.lines import TEXT_MAX, advice_on, from_utf8
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import CODE, RAW, ROWS, delimited, is_unicode, with_reasons
from noisegen.errors import SourceError

_Record = list[str] | str  # fields of a CSV record, or the reason why it is dropped
SEPARATORS = (",", ";", "\t", "|")  # characters that may separate the fields of CSV
_SAMPLED = 100  # records after the header line by which the separator of a file is found
_NO_TABS = FLAT | {ord("\t"): " "}


# Functions that read and write plain text, and rows of TSV.


def _text_head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    return with_names(file, [columns.source])


def _line_tables(file: FileRange, columns: Columns, batch_bytes: int, *, tabs: bool) -> Tables:
    for block in text_blocks(file, batch_bytes):
        yield with_raw(delimited(block, file.names, tabs=tabs), block, file, columns)


def _text_line(row: NoisyRow) -> str:
    text = row.values[row.columns.source]
    return as_cell(" ".join(text) if isinstance(text, list) else text).translate(FLAT)


def _tsv_line(row: NoisyRow) -> str:
    return "\t".join(as_cell(value).translate(_NO_TABS) for value in row.values.values())


# Functions that read header lines.


def _table_head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    if file.format == "csv":
        file = replace(file, separator=separator_in(beginning, columns.text))
    names, length = _header(beginning, file)
    if columns.text.isdecimal():
        return with_names(file, [f"column_{number}" for number in range(1, len(names) + 1)])
    if not all(map(is_unicode, names)):
        raise SourceError(f"{file.path}: the header is not UTF-8; {advice_on(beginning)}")
    return with_names(replace(file, start=file.start + length), names)


def _header(beginning: bytes, file: FileRange) -> tuple[list[str], int]:
    """Return the names in a header line, and its length in the file; raises SourceError."""
    lines = io.StringIO(_decoded(beginning), newline="\n")
    try:
        if file.format == "csv":
            names = next(csv.reader(lines, delimiter=file.separator, strict=True))
        else:
            names = next(lines).rstrip("\r\n").split("\t")
    except (csv.Error, StopIteration) as error:
        raise SourceError(f"{file.path}: no header: {first_line(error)}") from error
    header = lines.getvalue()[: lines.tell()]
    return names, len(from_utf8(header.encode("utf-8", "surrogateescape"), file.encoding))


def separator_in(head: bytes, text: str) -> str:
    """Return the character between the fields of a CSV file with these first bytes.

    A character that gives the header a column `text`, the user's column of text, is preferred. Then
    the share of sampled records with the field count of the header decides; it must be over a half.
    The default is the comma.
    """
    best, chosen = (False, 0.5), ","
    for separator in SEPARATORS:
        names, fit = _fit(head, separator)
        is_named = text in names
        if len(names) > 1 and (is_named, fit) > best:
            best, chosen = (is_named, fit), separator
    return chosen


def _fit(head: bytes, separator: str) -> tuple[list[str], float]:
    """Return the header's fields, and the share of sampled records with the same field count.

    Without records, the share is 0.
    """
    records: list[list[str]] = []
    lines = io.StringIO(_decoded(head), newline="\n")
    with suppress(csv.Error):
        records.extend(islice(csv.reader(lines, delimiter=separator), _SAMPLED + 1))
    names, *sample = filter(None, records or [[""]])
    return names, sum(len(record) == len(names) for record in sample) / max(1, len(sample))


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


# Functions that read and write CSV.


def _csv_tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    return csv_tables(text_blocks(file, batch_bytes), file.names, file.separator)


def csv_tables(parts: Iterable[bytes], names: Sequence[str], separator: str = ",") -> Tables:
    """Yield blocks of CSV lines as tables of rows; raises Damaged after the last row."""
    lines = (_decoded(line) for part in parts for line in io.BytesIO(part))
    damage: list[Damaged] = []
    records = _csv_records(lines, len(names), separator, damage)
    while batch := _next_records(records):
        rows, texts = zip(*batch, strict=True)
        raw = [text.encode("utf-8", "surrogateescape") for text in texts]
        yield _csv_table(rows, names).append_column(RAW, pa.array(raw, pa.binary()))
    if damage:
        raise damage[0]


def _next_records(records: Iterator[tuple[_Record, str]]) -> list[tuple[_Record, str]]:
    """Return the next records for one table, each with its raw lines.

    These are at most ROWS records, or fewer if they reach SCAN characters.
    """
    batch, size = [], 0
    before = csv.field_size_limit(TEXT_MAX)
    try:
        for row, text in islice(records, ROWS):
            batch.append((row, text))
            size += len(text) if isinstance(row, str) else sum(map(len, row))
            if size >= SCAN:
                break
    finally:
        csv.field_size_limit(before)
    return batch


def _csv_records(
    lines: Iterator[str], width: int, separator: str, damage: list[Damaged]
) -> Iterator[tuple[_Record, str]]:
    """Yield the records of a CSV file, or reasons to drop them, each with its raw lines.

    A record must have `width` fields, and may extend over several lines within quotes. If a record
    of several lines is wrong, only its first line is dropped, and reading resumes with the next
    line. A `Damaged` that `lines` raises is added to `damage`.
    """
    again = deque[str]()  # lines after a dropped line, to be read again as new records
    held = list[str]()  # lines of the current record

    def read() -> Iterator[str]:
        while again:
            held.append(again.popleft())
            yield held[-1]
        try:
            for line in lines:
                held.append(line)
                yield line
        except Damaged as error:
            damage.append(error)

    reader = csv.reader(read(), delimiter=separator, strict=True)
    record: _Record | None
    while True:
        try:
            if (record := next(reader, None)) is None:
                return
        except csv.Error as error:
            record = _csv_line(held[0], separator, error)
        record = record or [""]
        if isinstance(record, str) or len(record) != width:
            record = record if isinstance(record, str) else "wrong_columns"
            if held[1:]:
                again.extendleft(reversed(held[1:]))
                del held[1:]
                reader = csv.reader(read(), delimiter=separator, strict=True)
                record = "open_quote"
        yield record, "".join(held)
        held.clear()


def _csv_line(line: str, separator: str, error: csv.Error) -> _Record:
    """Return the fields of a line that is not strict CSV, or the reason why it is dropped."""
    if "field larger" in str(error):
        return "row_too_long"
    try:
        (record,) = csv.reader([line], delimiter=separator)
    except csv.Error:
        return "wrong_columns"
    is_open = "unexpected end" in str(error) or record[-1].endswith("\n")
    return "open_quote" if is_open else record


def _csv_table(rows: Sequence[_Record], names: Sequence[str]) -> pa.Table:
    nothing = [None] * len(names)
    fields = zip(*(nothing if isinstance(row, str) else row for row in rows), strict=True)
    try:
        columns = [pa.array(column, pa.string()) for column in fields]
    except UnicodeEncodeError:
        return _csv_table(list(map(_if_unicode, rows)), names)
    codes = [CODE[row] if isinstance(row, str) else 0 for row in rows]
    return with_reasons(pa.table(columns, list(names)), np.array(codes, np.int8))


def _if_unicode(row: _Record) -> _Record:
    return row if isinstance(row, str) or all(map(is_unicode, row)) else "not_utf8"


def _csv_line_of(row: NoisyRow) -> str:
    """Return a row as a line of CSV; cells in quotes keep them, others get them if needed."""
    field, write = _fields_by(row.separator)
    cells = [as_cell(value) for value in row.values.values()]
    was = field.findall(row.line.decode())[: len(cells)] if row.line is not None else []
    return row.separator.join(starmap(write, zip_longest(cells, was, fillvalue=""))) or '""'


@cache
def _fields_by(separator: str) -> tuple[re.Pattern[str], Callable[[str, str], str]]:
    """Return a pattern of one field in a line of CSV with its quotes, and `_csv_field` for cells.

    Cells with the separator, a quote or a line end need quotes.
    """
    end = re.escape(separator)
    field = re.compile(rf'(?:^|{end})("[^"]*(?:""[^"]*)*"(?={end}|$)|[^"{end}][^{end}]*|)')
    return field, partial(_csv_field, frozenset(f'"\r\n{separator}'))


def _csv_field(special: Set[str], cell: str, was: str) -> str:
    """Return a cell of CSV, in quotes if `was`, the input cell, has them or if it needs them.

    A cell with a character in `special` needs quotes.
    """
    has_quotes = was.startswith('"') or (was != cell and not special.isdisjoint(cell))
    return '"' + cell.replace('"', '""') + '"' if has_quotes else cell


TXT = Format(
    name="txt",
    endings=("txt", "dev", "devtest"),
    head=_text_head,
    tables=partial(_line_tables, tabs=False),
    cut="lines",
    writer=RowWriter(_text_line, keeps=("txt",), has_columns=False),
)
TSV = Format(
    name="tsv",
    endings=("tsv",),
    head=_table_head,
    tables=partial(_line_tables, tabs=True),
    cut="lines",
    has_header=True,
    writer=RowWriter(_tsv_line, keeps=("tsv",), header=True),
)
CSV = Format(
    name="csv",
    endings=("csv",),
    head=_table_head,
    tables=_csv_tables,
    has_header=True,
    writer=RowWriter(_csv_line_of, keeps=("csv",), header=True),
)
