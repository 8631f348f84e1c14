"""Arrow tables of rows that were read, with a column REASON.

In a row that cannot be read all values are null, and REASON says why.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.data.files import SCAN, Damaged
from noisegen.data.lines import BOM, LINE_MAX, blocks
from noisegen.errors import SourceError

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

LISTS = pa.list_(pa.string())
ROWS = 4096  # rows decoded at once; with long texts they still fit into memory
REASON = "\x00reason"  # column of indices into REASONS
RAW = "\x00raw"  # column of the bytes of each row in its file, line end included
REASONS = (
    "",
    "not_utf8",
    "null_text",
    "bad_json",
    "missing_text",
    "wrong_columns",
    "unexpected_field",
    "row_too_long",
    "truncated",
    "null_id",
    "unequal_labels",
    "open_quote",
    "unknown_label",
    "bad_edits",
    "not_a_typo",
    "blank_line",
)
CODE = {name: number for number, name in enumerate(REASONS)}
KEPT = (0, CODE["unexpected_field"])  # codes of rows that are used, not dropped
NO_ROW = CODE["blank_line"]  # code of a line of JSON lines that is no row, and is not counted
# A lone surrogate, half of a pair that would encode a character in UTF-16
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_string(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type is a string."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_list(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type is a list; False for list views."""
    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


def with_reasons(table: pa.Table, codes: Codes | None = None) -> pa.Table:
    """Return the table with `codes` as its column REASON; None marks all rows as readable."""
    codes = np.zeros(len(table), np.int8) if codes is None else codes
    return table.append_column(REASON, pa.array(codes, pa.int8()))


def regroup(tables: Iterable[pa.Table], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """Yield the rows of tables in new tables, of at most `rows_max` rows and `bytes_max` bytes."""
    held: list[pa.Table] = []
    room, size = rows_max, 0
    for table in chain.from_iterable(_halved(table, bytes_max // 8) for table in tables):
        at = 0
        while at < len(table):
            part = table.slice(at, min(room, len(table)))
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
    """Halve a table until its parts have at most `bytes_max` bytes; yield the parts.

    A table stays whole if halving saves few bytes, since both halves share a large dictionary.
    """
    halves = table.slice(0, len(table) // 2), table.slice(len(table) // 2)
    alone = len(table) < 2 or table.nbytes <= bytes_max
    if alone or sum(half.nbytes for half in halves) > 1.5 * table.nbytes:
        yield table
        return
    for half in halves:
        yield from _halved(half, bytes_max)


def joined(*tables: pa.Table) -> pa.Table:
    """Join tables into one, with a single chunk per column, and copy their rows.

    A slice that is not copied is pickled together with the whole table it was taken from.
    """
    return pa.concat_tables([*tables, tables[0].slice(0, 0)]).combine_chunks()


def as_text(column: pa.Array) -> tuple[pa.Array, Mask]:
    """Return bytes as strings, and a mask of the values that are not UTF-8 and become null."""
    wrong = np.zeros(len(column), np.bool_)
    try:
        return column.cast(pa.string()), wrong
    except pa.ArrowInvalid:
        for index, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                wrong[index] = True
        return pc.if_else(pa.array(wrong), None, column).cast(pa.string()), wrong


def is_unicode(text: str) -> bool:
    """Tell whether a string is valid Unicode, without lone surrogates."""
    return text.isascii() or not _SURROGATE.search(text)


def raw_lines(block: bytes) -> pa.Array:
    """Return the lines of a block, with their line ends, as an array of bytes."""
    stops = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
    last = [] if block.endswith(b"\n") else [len(block)]
    bounds = np.concatenate([[0], stops, last]).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def delimited(block: bytes, names: Sequence[str], *, tabs: bool, ragged: bool = False) -> pa.Table:
    """Return the lines of a block as the rows of a table with the columns `names`.

    Lines end in LF or CRLF; with `tabs`, they are split into fields at tabs. A line with too few
    fields has the reason `wrong_columns` and null values. Surplus fields are ignored if `ragged`;
    otherwise a line with too many fields is also `wrong_columns`.
    """
    block = block if block.endswith(b"\n") else block + b"\n"
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero((data == 10) | (data == 9) if tabs else data == 10)
    is_last = data[stops] == 10
    last = np.flatnonzero(is_last)
    codes = np.zeros(len(last), np.int8)
    widths = np.diff(last, prepend=-1)
    codes[(widths < len(names)) | ((widths > len(names)) & (not ragged))] = CODE["wrong_columns"]
    codes[np.diff(stops[last], prepend=-1) > LINE_MAX] = CODE["row_too_long"]
    # Values with even indices are fields, values with odd indices the separators between fields.
    bounds = np.zeros(2 * len(stops) + 1, np.int32)
    bounds[2::2] = stops + 1
    bounds[1::2] = stops - (is_last & (data[stops - 1] == 13) & (stops > 0))
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    values = pa.Array.from_buffers(pa.binary(), 2 * len(stops), buffers)
    columns = []
    for number in range(len(names)):
        fields = np.minimum(last - widths + 1 + number, last)
        column, wrong = as_text(values.take(pa.array(2 * fields, mask=codes != 0)))
        columns.append(column)
        codes[wrong] = CODE["not_utf8"]
    return with_reasons(pa.table(columns, list(names)), codes)


def read_lines(parts: Iterable[bytes]) -> Iterator[str | None]:
    """Yield lines without LF or CRLF; None for a line that is not UTF-8 or has over LINE_MAX bytes.

    Passes on the errors of `parts`; the message of a `Damaged` names the last line that was read.
    """
    count = 0
    try:
        for block in blocks(parts, SCAN):
            block = block if count else block.removeprefix(BOM)
            lines = delimited(block, ["line"], tabs=False)["line"].to_pylist()
            count += len(lines)
            yield from lines
    except Damaged as damage:
        raise Damaged(f"breaks off after line {count:,} ({damage})") from damage


def undamaged_lines(parts: Iterable[bytes], path: object) -> Iterator[str | None]:
    """Yield the lines of a file as `read_lines` does, None for an unreadable line.

    Raises SourceError for a compressed file that is damaged.
    """
    try:
        yield from read_lines(parts)
    except Damaged as damage:
        raise SourceError(f"{path} is damaged: it {damage}") from damage


class UnequalFiles(Exception):  # noqa: N818  (each caller says what it means)
    """Files that should be aligned have different numbers of lines, given in `counts`."""

    def __init__(self, counts: Sequence[int]) -> None:
        super().__init__(counts)
        self.counts = counts


def lines_together(
    files: Sequence[Iterator[str | None]],
) -> Iterator[tuple[str | None, ...]]:
    """Yield line n of all files as a tuple, for each n.

    Raises UnequalFiles after the end of the shortest file if another file has more lines.
    """
    ended = "(ended)"  # stands for lines after the end of a file; compared with `is`
    for number, lines in enumerate(zip_longest(*files, fillvalue=ended)):
        if any(line is ended for line in lines):
            counts = []
            for line, rest in zip(lines, files, strict=True):
                counts.append(number + (line is not ended) + sum(1 for _ in rest))
            raise UnequalFiles(counts)
        yield lines
