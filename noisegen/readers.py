"""Read the rows of one file as Arrow tables, a bounded block at a time.

Every table has all rows of its block: one that cannot be read is null and says why in REASON.
"""

import bz2
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.errors import MissingExtra, SourceError

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]
Read = Callable[[int], bytes]
_CsvRow = list[str] | str  # fields, or the reason to drop them

TEXT_MAX = 32 << 20  # bytes of one text
LINE_MAX = 2 * TEXT_MAX  # bytes kept of one line: a JSON line is longer than its text
SCAN = 4 << 20  # bytes at once while lines are counted: fits into the cache
CHUNK = 16 << 10  # decompressed at once: what is lost before damage in .zst, which gives no less
ROWS = 4096  # decoded at once: few enough even for long texts
REASON = "\x00reason"  # the column with the index into REASONS
REASONS = (
    "", "not_utf8", "null_text", "bad_json", "missing_text", "wrong_columns", "unexpected_field",
    "row_too_long", "truncated", "null_id", "unequal_labels",
)  # fmt: skip
CODE = {name: number for number, name in enumerate(REASONS)}
KEPT = (0, CODE["unexpected_field"])  # rows with any other code are dropped
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowException)


class Damaged(Exception):  # noqa: N818  (not an error of the caller: rows before it are kept)
    """A compressed stream ends early or is corrupt."""


@contextmanager
def opened(
    path: str, compression: str = "", start: int = 0, stop: int | None = None
) -> Iterator[Read]:
    """Give the function that reads up to so many bytes, decompressed; it raises Damaged."""
    with open(path, "rb") as file:  # noqa: PTH123  (a path of any kind, as named)
        file.seek(start)
        if stop is None:
            yield _reader(file, compression) if compression else file.read
        else:
            yield lambda size: file.read(min(size, stop - file.tell()))


def _reader(file: io.BufferedReader, compression: str) -> Read:
    read: Read
    if compression == "zst":
        read = pa.CompressedInputStream(pa.PythonFile(file), "zstd").read
    elif compression == "gz":  # read1, because read loses what it has when damage follows
        read = gzip.open(file).read1  # noqa: SIM115  (closed with its file)
    else:
        read = (bz2.open if compression == "bz2" else lzma.open)(file).read1

    def guarded(size: int) -> bytes:
        try:
            return bytes(read(min(size, CHUNK)))
        except _DAMAGE as error:
            raise Damaged(str(error)) from error

    return guarded


def blocks(read: Read, size: int) -> Iterator[bytes]:
    """Yield whole lines, about `size` bytes of them; of a line over LINE_MAX only its beginning."""
    held, end = bytearray(), 0
    try:
        while chunk := read(size - len(held) % size):
            if not end and len(held) > LINE_MAX:
                del held[LINE_MAX + 1 :]
                chunk = chunk[at:] if (at := chunk.find(b"\n")) >= 0 else b""
            if (at := chunk.rfind(b"\n")) >= 0:
                end = len(held) + at + 1
            held += chunk
            if end and len(held) >= size:
                yield _taken(held, end)
                end = 0
    except Damaged:
        if end:
            yield _taken(held, end)
        raise
    if held:
        yield bytes(held)


def _taken(held: bytearray, end: int) -> bytes:
    """Remove the beginning and return it, copied once."""
    with memoryview(held) as view:
        taken = bytes(view[:end])
    del held[:end]
    return taken


def line_ranges(path: str, start: int, first: int, step: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, stop, rows) in bytes: `first` lines, then `step` at a time, then the rest."""
    begin = at = start
    rows, want, ended = 0, first, True
    with open(path, "rb") as file:  # noqa: PTH123
        file.seek(start)
        while block := file.read(SCAN):
            stops = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + (at + 1)
            while rows + len(stops) >= want:
                stop = int(stops[want - rows - 1])
                yield begin, stop, want
                begin, stops = stop, stops[want - rows :]
                rows, want = 0, step
            rows, at, ended = rows + len(stops), at + len(block), block.endswith(b"\n")
    if at > begin:
        yield begin, at, rows + (not ended)


def with_reasons(table: pa.Table, codes: Codes) -> pa.Table:
    """Return the table with the column REASON."""
    return table.append_column(REASON, pa.array(codes, pa.int8()))


def as_text(column: pa.Array) -> tuple[pa.Array, Mask]:
    """Return binary values as strings, and where they are not UTF-8 (null there)."""
    try:
        return column.cast(pa.string()), np.zeros(len(column), np.bool_)
    except pa.ArrowInvalid:
        wrong = np.array([not _is_utf8(value) for value in column.to_pylist()], np.bool_)
        return pc.if_else(pa.array(wrong), None, column).cast(pa.string()), wrong


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def is_unicode(text: str) -> bool:
    """Tell whether a string has no half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def delimited(block: bytes, names: Sequence[str], *, tabs: bool) -> pa.Table:
    """Return the fields of lines, split at tabs or not at all; LF or CRLF ends a line."""
    block = block if block.endswith(b"\n") else block + b"\n"
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero((data == 10) | (data == 9) if tabs else data == 10)
    is_last = data[stops] == 10
    last = np.flatnonzero(is_last)
    codes = np.zeros(len(last), np.int8)
    codes[np.diff(last, prepend=-1) != len(names)] = CODE["wrong_columns"]
    codes[np.diff(stops[last], prepend=-1) > LINE_MAX] = CODE["row_too_long"]
    # Every other value is a field, those between them are the separators.
    bounds = np.zeros(2 * len(stops) + 1, np.int32)
    bounds[2::2] = stops + 1
    bounds[1::2] = stops - (is_last & (data[stops - 1] == 13) & (stops > 0))
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    values = pa.Array.from_buffers(pa.binary(), 2 * len(stops), buffers)
    columns = []
    for number in range(len(names)):
        fields = np.maximum(last - (len(names) - 1 - number), 0)
        column, wrong = as_text(values.take(pa.array(2 * fields, mask=codes != 0)))
        columns.append(column)
        codes[wrong] = CODE["not_utf8"]
    return with_reasons(pa.table(columns, list(names)), codes)


def csv_tables(parts: Iterator[bytes], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of CSV with quotes as in RFC 4180."""
    reader = csv.reader(line for part in parts for line in _text_lines(part))
    while True:
        rows, failure = _csv_rows(reader, len(names))
        if rows:
            yield _csv_table(rows, names)
        if isinstance(failure, Damaged):
            raise failure
        if failure:
            return


def _csv_table(rows: list[_CsvRow], names: Sequence[str]) -> pa.Table:
    nothing = [None] * len(names)
    fields = zip(*(nothing if isinstance(row, str) else row for row in rows), strict=True)
    try:
        columns = [pa.array(column, pa.string()) for column in fields]
    except UnicodeEncodeError:
        return _csv_table([row if all(map(is_unicode, row)) else "not_utf8" for row in rows], names)
    codes = [CODE[row] if isinstance(row, str) else 0 for row in rows]
    return with_reasons(pa.table(columns, list(names)), np.array(codes, np.int8))


def _text_lines(block: bytes) -> io.StringIO:
    return io.StringIO(block.decode("utf-8", "surrogateescape"), newline="\n")


def _csv_rows(reader: Iterator[list[str]], width: int) -> tuple[list[_CsvRow], Exception | None]:
    """Return up to a batch of rows, and what ended the file if it has ended."""
    rows: list[_CsvRow] = []
    size, before = 0, csv.field_size_limit(TEXT_MAX)
    try:
        while len(rows) < ROWS and size < SCAN:
            try:
                row = next(reader) or [""]
            except csv.Error as error:
                rows.append("row_too_long" if "field larger" in str(error) else "wrong_columns")
                continue
            size += sum(map(len, row))
            rows.append(row if len(row) == width else "wrong_columns")
    except (StopIteration, Damaged) as failure:
        return rows, failure
    finally:
        csv.field_size_limit(before)
    return rows, None


def header(head: bytes, kind: str) -> tuple[list[str], int]:
    """Return the fields of the first record and the bytes it takes; raises SourceError."""
    lines = _text_lines(head)
    try:
        names = next(csv.reader(lines)) if kind == "csv" else next(lines).rstrip("\r\n").split("\t")
    except (csv.Error, StopIteration) as error:
        raise SourceError(f"no header: {first_line(error)}") from error
    return names, len(lines.getvalue()[: lines.tell()].encode("utf-8", "surrogateescape"))


def parquet_head(path: str) -> tuple[pa.Schema, int]:
    """Return the columns and the number of rows of a Parquet file."""
    with reading(path), pq.ParquetFile(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def parquet_tables(path: str, start: int, stop: int, batch_bytes: int) -> Iterator[pa.Table]:
    """Yield a range of rows, reading pages from the row group that holds the first."""
    # Without pre_buffer=False a whole row group lies in memory at once.
    with (
        reading(path),
        pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file,
    ):
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        starts = np.cumsum([0, *(group.num_rows for group in groups)])
        first = int(np.searchsorted(starts, start, side="right")) - 1
        last = int(np.searchsorted(starts, stop, side="left"))
        at = int(starts[first])
        size = sum(group.total_byte_size for group in groups[first:last])
        rows = batch_bytes * int(starts[last] - at) // max(size, 1)
        rows = min(max(rows, 1), ROWS)
        for batch in file.iter_batches(rows, list(range(first, last)), use_threads=False):
            skipped = min(max(start - at, 0), len(batch))
            at += len(batch)
            if skipped < len(batch):
                kept = batch.slice(skipped, len(batch) - skipped - max(at - stop, 0))
                yield pa.Table.from_batches([kept])
            if at >= stop:
                return


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what Arrow raises for a file it cannot read into a SourceError of one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"cannot read {path}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its name."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def hf_tables(spec: str) -> Iterator[pa.Table]:
    """Yield the rows of hf:NAME[:CONFIG][:SPLIT]; a lone train, validation or test is the split."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "hf") from None
    name, *rest = spec.removeprefix("hf:").split(":")
    if rest and rest[0].partition("[")[0] in ("train", "validation", "test"):
        rest.insert(0, "")
    config, split = (*rest, "", "")[:2]
    try:
        data = datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
        yield from data.with_format("arrow").iter(batch_size=ROWS)
    except Exception as error:  # whatever a dataset or its network raises
        raise SourceError(f"cannot read {spec}: {first_line(error)}") from error
