"""One noisy file instead of a folder of shards: the format that came in, or another.

The text column holds the noisy text, all other columns are as they came. Rows stay in their order;
one that cannot be noised is written as it came, and counted.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augment import Request
from noisegen.augment.shards import SAMPLED_ROWS, Shard, ShardJob, aligned_labels, counts_of
from noisegen.data.features import class_names, label_names
from noisegen.data.files import compression_of
from noisegen.data.formats import ENDINGS, Columns
from noisegen.data.sources import RowBatch, ShardInput, is_list, read
from noisegen.data.tables import CODE, KEPT, RAW, REASON, is_unicode
from noisegen.errors import OutputError, UsageError
from noisegen.runs.atomic import atomic
from noisegen.runs.store import output_path
from noisegen.text.buffers import as_arrow

ROWS = 10_000  # of a task, so that standard output gets some soon
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {  # parts of a file, one after the other
    "": lambda content: content,
    "gz": partial(gzip.compress, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
}
_ENDING = re.compile(r"[^/\\]\.[A-Za-z]{1,5}$")  # looks like that of a file
_TOKEN_LINES = {"conll": "{1}\t{2}\n", "conllu": "{0}\t{1}\t_\t{2}" + "\t_" * 6 + "\n"}


@dataclass(frozen=True)
class Target:
    """Where one noisy file goes, '-' for standard output, and how its rows are written."""

    path: str
    format: str
    compression: str = ""
    has_header: bool = True

    def rows(self, rows_per_shard: int) -> int:
        """Return how many rows a task has: few, so that a stream begins soon; a row group many."""
        return rows_per_shard if self.format == "parquet" else min(ROWS, rows_per_shard)

    def refuse(self, request: Request) -> None:
        """Raise UsageError for what the format cannot hold."""
        tables = "write jsonl, parquet, csv or tsv"
        for flag, given in (("--copies", request.copies > 1), ("--edits", request.edits)):
            if given and self.format in ("txt", *_TOKEN_LINES):
                raise UsageError(f"{self.format} has no column for {flag}: {tables}")
        if self.format in _TOKEN_LINES and not request.tokens:
            raise UsageError(f"{self.format} needs --tokens and --labels: {tables}, or txt")
        if self.format == "parquet" and self.compression:
            raise UsageError(
                f"{self.path}: Parquet compresses itself: leave out .{self.compression}"
            )


def target_of(out: str, to: str | None, request: Request, came: Callable[[], str]) -> Target | None:
    """Return the file that `out` names, '-' or a name with an ending; None for a folder of shards.

    Its format is `to`, else that of the ending, else that which `came` in. Raises UsageError, also
    for a new folder that has the name of a file.
    """
    known = {**ENDINGS, "conllu": "conllu"}
    compression = compression_of(out)
    name = out.lower().removesuffix(f".{compression}")
    ending = known.get(name.rpartition(".")[2], "") if "." in name else ""
    if output_path(out).is_dir() or not (to or ending in _FORMATS or out == "-"):
        if to:
            raise UsageError(f"{out} is a folder: --to writes one file")
        if _ENDING.search(out) and not output_path(out).is_dir():
            endings = ", ".join(f".{name}" for name in _FORMATS)
            raise UsageError(
                f"{out}: one file ends in {endings}, or with .gz, .bz2, .xz or .zst after it; "
                f"a folder of this name is {out}/"
            )
        return None
    kind = to or ending or came()
    kind = kind if kind in _FORMATS else "jsonl"
    target = Target(out, kind, compression, not request.text_column.isdecimal())
    target.refuse(request)
    return target


@contextmanager
def opened(target: Target, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield the file to write, whose name is taken at the end; standard output and pipes stream."""
    path = output_path(target.path)
    if target.path == "-":
        if target.format == "parquet":
            raise UsageError("parquet is not for standard output: write jsonl, or name a file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as pipe:
            yield pipe
    elif path.exists() and not force:
        raise OutputError(f"{target.path} exists; add --force to overwrite it")
    else:
        with atomic(path) as file:
            yield file


# From tasks to the file.


def write_parts(file: IO[bytes], parts: Iterable["Part"]) -> Iterator["Part"]:
    """Write the parts in their order, and yield each that is written."""
    table: pq.ParquetWriter | None = None
    for part in _in_order(parts):
        if isinstance(part.content, bytes):
            file.write(part.content)
        else:
            table = table or pq.ParquetWriter(file, part.content.schema, compression="zstd")
            table.write_table(part.content)
        yield part
    if table:
        table.close()


def _in_order(parts: Iterable["Part"]) -> Iterator["Part"]:
    waiting: dict[int, Part] = {}
    number = 0
    for arrived in parts:
        waiting[arrived.number] = arrived
        while number in waiting:
            yield waiting.pop(number)
            number += 1


# A task: rows in, the bytes of a part of the file out.


@dataclass(frozen=True)
class Part:
    """Rows of one task, as bytes, or as a table for Parquet; `size` are the bytes of its input."""

    number: int
    size: int
    shard: Shard
    content: bytes | pa.Table


def make_part(job: ShardJob, target: Target, columns: Columns, task: ShardInput) -> Part:
    """Noise the rows of a task and write them in the format of the target."""
    sums, dropped = Counter[str](), Counter[str]()
    tables = []
    for batch in read(task, columns, batch_bytes=job.engine().batch_bytes):
        dropped.update(batch.dropped)
        step = max(1, task.rows // SAMPLED_ROWS)
        tables.append(_noised(job, batch, step, sums))
    counts: dict[str, Any] = {**sums, "dropped": dict(dropped)}
    shard = Shard("", rows_in=task.rows, **counts)
    if target.format == "parquet":
        table = pa.concat_tables(tables)
        return Part(task.number, task.size, shard, table.select(_names(table)))
    lines = [line for table in tables for line in _lines(target, table, columns)]
    if task.number == 0 and target.has_header:
        lines.insert(0, _header(target, tables[0]))
    content = _COMPRESS[target.compression](b"".join(lines))
    return Part(task.number, task.size, shard, content)


def _noised(job: ShardJob, batch: RowBatch, step: int, sums: Counter[str]) -> pa.Table:
    """Return the rows as they were read, with noisy text; copies of a row follow one another."""
    request = job.request
    copies = []
    for copy in range(request.copies):
        noised = job.noised(batch.table, copy, edits=request.edits or request.labels is not None)
        sums.update(counts_of(noised, step))
        table = batch.read
        for name, values in _changed(job, batch.read.column_names, noised).items():
            table = _with_values(table, name, values, batch.keep)
        if request.copies > 1:
            table = table.append_column("copy", as_arrow(np.full(len(table), copy, np.int32)))
        copies.append(table)
    order = np.arange(request.copies * len(batch.read)).reshape(request.copies, -1).T.ravel()
    table = pa.concat_tables(copies).take(as_arrow(order))
    table = table.filter(pc.not_equal(table[REASON], CODE["truncated"]))  # where the input ends
    sums["rows"] += len(table) - int(np.count_nonzero(batch.keep)) * request.copies
    return table


def _changed(job: ShardJob, names: Sequence[str], noised: pa.Table) -> dict[str, Any]:
    """Return the columns that noise changes or adds, by their names in the input."""
    columns, new = job.columns.of(names), {"edits": noised["edits"]} if job.request.edits else {}
    if not (columns.tokens and columns.labels):
        return {columns.source: noised["noisy"]} | new
    classes = class_names(noised.schema).get(columns.labels, ())
    words, labels = noised[columns.tokens], noised[columns.labels]
    carried = aligned_labels(words, labels, noised["noisy"], noised["edits"], classes)
    return dict(zip((columns.tokens, columns.labels), carried.values(), strict=True)) | new


def _with_values(table: pa.Table, name: str, values: Any, keep: Any) -> pa.Table:
    """Return the table with values of a column, new or old, in the rows of the mask `keep`."""
    if name not in table.column_names:
        table = table.append_column(name, pa.nulls(len(table), values.type))
    field = table.schema.field(name)
    kind = pa.list_(field.type.value_type) if is_list(field.type) else field.type
    index = np.where(keep, np.cumsum(keep) - 1, len(values) + np.arange(len(keep)))
    both = pa.concat_tables(pa.table({name: c.cast(kind)}) for c in (values, table[name]))[name]
    at = table.column_names.index(name)
    return table.set_column(at, field.with_type(kind), both.take(as_arrow(index)))


# Formats: a row is the values of its columns, and the line that it was read from if known.


_Row = dict[str, Any]


def _lines(target: Target, table: pa.Table, columns: Columns) -> Iterator[bytes]:
    """Yield rows as lines of the format; one that could not be read is the line that it was."""
    columns, names = columns.of(table.column_names), _names(table)
    write = _WRITERS[target.format]
    rows = zip(*(_values(table, name) for name in names), strict=True)
    for row, line, code in zip(
        rows, table[RAW].to_pylist(), table[REASON].to_pylist(), strict=True
    ):
        if line is not None and code not in KEPT:
            yield line + b"\n"
        else:
            yield write(dict(zip(names, row, strict=True)), columns, line).encode("utf-8")


def _values(table: pa.Table, name: str) -> list[Any]:
    """Return the values of a column, with the names of their classes instead of numbers."""
    values: list[Any] = table[name].to_pylist()
    if (classes := class_names(table.schema).get(name)) is None:
        return values
    if is_list(table[name].type):
        return [numbers and label_names(numbers, classes) for numbers in values]
    return label_names(values, classes)


def _names(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name not in (REASON, RAW)]


def _header(target: Target, table: pa.Table) -> bytes:
    """Return the line with the names of the columns, where the format has one."""
    has_names = target.format in ("tsv", "csv")
    names = {name: name for name in _names(table)}
    return _WRITERS[target.format](names, Columns(), None).encode("utf-8") if has_names else b""


def _text_line(row: _Row, columns: Columns, line: bytes | None) -> str:
    return _cell(row[columns.source]).replace("\n", " ") + "\n"


def _tsv_line(row: _Row, columns: Columns, line: bytes | None) -> str:
    cells = (_cell(value).replace("\t", " ").replace("\n", " ") for value in row.values())
    return "\t".join(cells) + "\n"


def _csv_line(row: _Row, columns: Columns, line: bytes | None) -> str:
    record = io.StringIO()
    csv.writer(record, lineterminator="\n").writerow(map(_cell, row.values()))
    return record.getvalue()


def _json_line(row: _Row, columns: Columns, line: bytes | None) -> str:
    if line is not None:  # its other fields stay just as they were
        changed = {columns.tokens or columns.text, columns.labels, "copy", "edits"}
        row = json.loads(line) | {name: value for name, value in row.items() if name in changed}
    text = json.dumps(row, ensure_ascii=False, default=str)
    return f"{text if is_unicode(text) else json.dumps(row, default=str)}\n"


def _token_lines(form: str, row: _Row, columns: Columns, line: bytes | None) -> str:
    tokens, labels = (row[str(name)] or () for name in (columns.tokens, columns.labels))
    numbered = enumerate(zip(tokens, labels, strict=False), 1)
    return "".join(form.format(n, *token) for n, token in numbered) + "\n"


def _cell(value: Any) -> str:
    """Return a value as text: that of a list or of fields is JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


_WRITERS: dict[str, Callable[[_Row, Columns, bytes | None], str]] = {
    "txt": _text_line, "tsv": _tsv_line, "csv": _csv_line, "jsonl": _json_line,
    **{name: partial(_token_lines, form) for name, form in _TOKEN_LINES.items()},
}  # fmt: skip
_FORMATS = (*_WRITERS, "parquet")
