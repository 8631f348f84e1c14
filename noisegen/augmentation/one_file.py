"""Write one noisy file instead of a folder of shards, in the format of the input or another.

The text column gets the noisy text. Other columns stay unchanged. If the format stays the same,
comments, separators and line ends are kept too. Rows keep their order. A row that cannot be noised
is copied if the format can hold it, else left out; both are counted.
"""

import bz2
import gzip
import lzma
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from glob import escape
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augmentation.annotated import LOST, RowLayout
from noisegen.augmentation.plan import AugmentPlan
from noisegen.augmentation.shards import (
    SAMPLED_ROWS,
    Shard,
    ShardJob,
    ShardTask,
    align,
    aligned_labels,
    counts_of,
)
from noisegen.data import conll
from noisegen.data.decoders import compression_of
from noisegen.data.features import class_names, label_names, with_class_names
from noisegen.data.files import metered
from noisegen.data.formats.base import NoisyRow, RowWriter
from noisegen.data.formats.json_document import Document
from noisegen.data.formats.json_lines import OBJECTS
from noisegen.data.formats.registry import ENDINGS, FORMATS, WRITTEN, file_of
from noisegen.data.rows import Columns, FileRange, RowBatch
from noisegen.data.sources import read
from noisegen.data.tables import CODE, KEPT, RAW, REASON, REASONS, Mask, is_list
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.options import listed
from noisegen.runs.atomic import atomic, refuse_existing, remove_left
from noisegen.runs.store import output_path
from noisegen.text.buffers import as_arrow, one_chunk

FIRST = 100  # number of first rows by which columns with an item per token are found
ROWS = 10_000  # maximum rows per task of a worker; small, so that standard output begins soon
# Compression -> function that compresses a part of a file.
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    "gz": partial(gzip.compress, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
}
_ENDING = re.compile(r"[^/\\]\.[A-Za-z]{1,5}$")  # the end of a file name, such as x.html
_OWNERS = "\x00owners"  # column with the index of the clean token of each noisy token
_PAIR = "\x00pair"  # column with the clean text, the noisy text and the edits of each row
# Reasons why a row is not noised: of rows that were read completely, and of rows cut off.
_WHOLE = ("null_text", "null_id", "unequal_labels", "unknown_label")
_CUT = ("row_too_long", "truncated")


@dataclass(frozen=True)
class Target:
    """The noisy file to write: its path ('-' for standard output), format and compression.

    `parallel` names the columns with a list that has an item per token.
    """

    path: str
    format: str
    compression: str = ""
    has_header: bool = True
    parallel: tuple[str, ...] = ()

    @property
    def writer(self) -> RowWriter:
        """The functions that write rows in the format."""
        writer = FORMATS[self.format].writer
        assert writer
        return writer

    @property
    def has_token_lines(self) -> bool:
        """Whether the file has a token per line."""
        return FORMATS[self.format].has_token_lines

    @property
    def holds_pairs(self) -> bool:
        """Whether the file holds pairs, so the clean text too."""
        return self.writer.reason_against is not None

    def rows(self, rows_per_shard: int) -> int:
        """Return the number of rows per task of a worker: at most ROWS, so that output begins soon.

        For Parquet it is `rows_per_shard`, because the rows of a task become a row group.
        """
        return min(ROWS, rows_per_shard) if self.writer.line else rows_per_shard

    def check(self, job: ShardJob) -> None:
        """Raise UsageError if the format cannot hold the output that an option asks for."""
        tables = "write jsonl, parquet, csv or tsv"
        for flag, is_given in (("--copies", job.copies > 1), ("--edits", job.edits)):
            if is_given and not self.writer.has_columns:
                raise UsageError(f"{self.format} has no column for {flag}: {tables}")
        if self.holds_pairs and job.columns.paths:
            raise UsageError(f"{self.format} holds one text per row: name one column, or {tables}")
        if self.has_token_lines and not job.columns.tokens:
            problem = f"{self.format} needs --tokens and --labels, for it holds no plain text"
            raise UsageError(f"{problem}: {tables}, or txt")
        if self.format == "parquet" and self.compression:
            raise UsageError(
                f"{self.path}: Parquet compresses itself: leave out .{self.compression}"
            )

    def check_columns(self, names: Sequence[str], job: ShardJob) -> None:
        """Raise SourceError if the source has a column 'copy' or 'edits' that the output adds."""
        for name, is_added in (("copy", job.copies > 1), ("edits", job.edits)):
            if is_added and name in names:
                raise SourceError(
                    f"the source has a column {name!r}, as the output will; rename it"
                )


def target_of(out: str, to: str | None, plan: AugmentPlan) -> Target | None:
    """Return the file to write if `out` names one; None if it names a folder of shards.

    '-' and names with an ending such as .jsonl are files, and with `to` every name is. The format
    of the file is `to`, else the format of the ending, else the format of the input. Raises
    UsageError for a format that cannot hold the output, and for a name that may mean both.
    """
    compression = compression_of(out)
    name = out.lower().removesuffix(f".{compression}")
    last = name.rpartition(".")[2] if "." in name else ""
    ending = ENDINGS.get(last, last if last in WRITTEN else "")
    if not _is_one_file(out, to, ending):
        return None
    source = plan.first.format if plan.first else ""
    kind = _format_of(to, ending, source, plan)
    if kind == "norm" and source in ("conll", "conllu"):
        _check_norm(source, plan.job.columns.labels)
    has_header = not plan.job.columns.text.isdecimal()
    target = Target(out, kind, compression, has_header)
    if source:  # an input without rows has no format; the reader reports that
        target.check(plan.job)
    return target


def _is_one_file(out: str, to: str | None, ending: str) -> bool:
    """Return whether `out` names one file to write, not a folder for shards.

    `to` is the format that the user gave, `ending` the format that the ending of `out` names, or
    ''. Raises UsageError for an existing folder if `to` is given, for an empty folder named like a
    file, and for a name with an unknown ending.
    """
    path = output_path(out)
    if path.is_dir():
        if ending in WRITTEN and not any(path.iterdir()):
            raise UsageError(
                f"{out} is an empty folder: remove it, or write {out}/ for shards in it"
            )
        if to:
            raise UsageError(f"{out} is a folder: --to writes one file")
        return False
    if to or ending in WRITTEN or out == "-":
        return True
    if _ENDING.search(out):
        endings = ", ".join(f".{name}" for name in WRITTEN)
        raise UsageError(
            f"{out}: one file ends in {endings}, or with .gz, .bz2, .xz or .zst after it; "
            f"a folder of this name is {out}/"
        )
    return False


def _format_of(to: str | None, ending: str, source: str, plan: AugmentPlan) -> str:
    """Return the format of the output file, given the format of its ending and of the source.

    Files with a token per line are often named .tsv. If all sources are such files, an output named
    .tsv keeps their format.
    """
    kind = to or ending or source
    if ending == "tsv" and not to and source in FORMATS and FORMATS[source].has_token_lines:
        sources = listed(plan.request.sources)
        if all(file_of(name).format == "tsv" for name in sources):
            kind = source
    return kind if kind in WRITTEN else "jsonl"


def _check_norm(source: str, labels: str | None) -> None:
    """Raise UsageError if a .norm file would get tags where it has normal forms.

    `source` is the format of the input, `labels` the column of the input with the normal forms.
    """
    if labels in conll.LABELLED[:2]:
        raise UsageError(
            f"norm holds normal forms, and column {labels!r} of {source} has tags: write "
            "conll or conllu, or name a column of normal forms: --tokens, --labels"
        )


@contextmanager
def opened(target: Target, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield the output stream: standard output, a pipe, or a file that gets its name at the end."""
    path = output_path(target.path)
    if target.path == "-":
        if target.format == "parquet":
            raise UsageError("parquet is not for standard output: write jsonl, or name a file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as pipe:
            yield pipe
    else:
        refuse_existing(path, force)
        if isinstance(path, Path):
            remove_left(path.parent, escape(path.name))
        with atomic(path) as file:
            yield file


# From tasks to the file.


def write_parts(file: IO[bytes], parts: Iterable["NoisyPart"]) -> Iterator["NoisyPart"]:
    """Write the parts of a noisy file in the order given; yield each part after it is written."""
    table: pq.ParquetWriter | None = None
    document = Document()
    with ExitStack() as stack:
        for part in parts:
            if isinstance(part.content, bytes):
                file.write(part.content)
            elif isinstance(part.content, list):
                file.write(document.add(part.content))
            else:
                table = table or stack.enter_context(
                    pq.ParquetWriter(file, part.content.schema, compression="zstd")
                )
                table.write_table(part.content)
            yield part
    file.write(document.end())


# One task: its rows become a part of the file.


@dataclass(frozen=True)
class NoisyPart:
    """The part of a noisy file that one task of a worker made.

    `content` are the bytes to write, a table for Parquet, or the rows of a JSON document. `size` is
    the number of bytes of input. `as_is` counts by reason the rows that are copied without noise.
    `shard` has the counts of all rows; it counts the copied rows as dropped.
    """

    number: int
    size: int
    shard: Shard
    content: bytes | list[bytes] | pa.Table
    as_is: Counter[str]


def make_part(job: ShardJob, target: Target, columns: Columns, task: ShardTask) -> NoisyPart:
    """Return the noisy rows of a task in the format of the file to write."""
    counts = _Counts()
    job = replace(job, columns=columns)
    tables = []
    for batch in read(task.ranges, columns, batch_bytes=job.engine().batch_bytes):
        codes, has_line = batch.read[REASON].to_numpy(), _are_valid(batch.read[RAW])
        batch = _fitting(target, columns, batch)
        stays = _as_is(target, columns, batch)
        counts.as_is.update(REASONS[code] for code in codes[stays].tolist())
        counts.dropped.update(batch.dropped)
        # A row with too many fields does not count as damaged: its line is copied unchanged.
        whole = np.count_nonzero(has_line & (codes == CODE["unexpected_field"]))
        counts.dropped.subtract({"unexpected_field": int(whole)})
        step = max(1, task.rows // SAMPLED_ROWS)
        tables.append(_noised(job, target, batch, stays, step, counts))
    if not tables:
        raise OutputError(f"no rows for part {task.number}")
    sums: dict[str, Any] = {**counts.sums, "dropped": dict(+counts.dropped)}
    shard = Shard(rows_in=task.rows, **sums)
    content = _content(target, columns, tables, has_header=task.number == 0 and target.has_header)
    return NoisyPart(task.number, task.size, shard, content, counts.as_is)


@dataclass(frozen=True)
class _Counts:
    """Counts of a task: of `counts_of`, of rows by the reason why they got no noise, and copied."""

    sums: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    as_is: Counter[str] = field(default_factory=Counter)


def _as_is(target: Target, columns: Columns, batch: RowBatch) -> Mask:
    """Return a mask of the rows that cannot be noised, but can be copied unchanged."""
    codes = batch.read[REASON].to_numpy()
    stays = _are_valid(batch.read[RAW]) & ~np.isin(codes, [CODE[name] for name in _CUT])
    if target.writer.has_columns:
        stays |= np.isin(codes, [CODE[name] for name in _WHOLE])
    if target.writer.line is None and not columns.paths:
        stays |= _are_valid(batch.read[columns.of(batch.read.column_names).source])
    return stays & ~batch.keep


def _fitting(target: Target, columns: Columns, batch: RowBatch) -> RowBatch:
    """Drop the rows from a batch that the format cannot hold, such as sentences without tokens."""
    if target.has_token_lines:
        tokens = batch.table[columns.of(batch.read.column_names).source]
        reasons = ["" if each else "no_tokens" for each in tokens.to_pylist()]
    elif against := target.writer.reason_against:
        reasons = list(map(against, batch.table["clean"].to_pylist()))
    else:
        return batch
    fits = np.array([not reason for reason in reasons], np.bool_)
    keep = batch.keep.copy()
    keep[keep] = fits
    dropped = batch.dropped + Counter(filter(None, reasons))
    return RowBatch(batch.table.filter(fits), dropped, batch.read, keep)


def _are_valid(column: pa.ChunkedArray) -> Mask:
    return np.asarray(pc.is_valid(column).to_numpy(), np.bool_)


def _noised(
    job: ShardJob, target: Target, batch: RowBatch, stays: Mask, step: int, counts: _Counts
) -> pa.Table:
    """Return all rows of the output for a batch, in the order of the input.

    Noisy copies of a row follow each other. Rows for which `stays` is True come once, unchanged.
    The counts of the batch are added to `counts`; errors are counted in every `step`-th row.
    """
    tables, numbers = [], []
    edits = job.edits or job.has_labels or target.holds_pairs
    for copy in range(job.copies):
        noised = job.noised(_with_lines(job, batch), copy, edits=edits)
        present = batch.keep if copy else batch.keep | stays
        noised, present = _settled(job, noised, present, batch.keep, counts)
        is_there = present[batch.keep]
        there = noised if is_there.all() else noised.filter(pa.array(is_there))
        counts.sums.update(counts_of(there, step))
        table = batch.read
        for name, values in _changed(job, target, batch.read.column_names, noised).items():
            table = _with_values(table, name, values, batch.keep)
        if job.copies > 1:
            table = table.append_column("copy", as_arrow(np.full(len(table), copy, np.int32)))
        tables.append(table.filter(present))
        numbers.append(np.flatnonzero(present))
    counts.sums["rows"] += int(np.count_nonzero(stays))
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return pa.concat_tables(tables).take(as_arrow(order))


def _with_lines(job: ShardJob, batch: RowBatch) -> pa.Table:
    """Return the usable rows of a batch; with their lines if the rows have annotations."""
    if not job.columns.is_annotated:
        return batch.table
    lines = one_chunk(batch.read[RAW]).filter(pa.array(batch.keep))
    return batch.table.append_column(RAW, lines)


def _settled(
    job: ShardJob, noised: pa.Table, present: Mask, keep: Mask, counts: _Counts
) -> tuple[pa.Table, Mask]:
    """Return noised rows, and the mask `present` of all rows without the rows that are dropped.

    A row that stays clean for an annotation is counted by its reason; it is dropped if the job says
    so.
    """
    if LOST not in noised.column_names:
        return noised, present
    reasons = noised[LOST].to_numpy()
    lost = Counter(reasons[reasons != ""].tolist())
    counts.dropped.update(lost)
    gone = np.zeros(len(keep), np.bool_)
    if job.spans_lost == "drop":
        gone[keep] = ~np.isin(reasons, ("", "missing_text"))
        lost = Counter(missing_text=lost["missing_text"])
    counts.as_is.update(+lost)
    return noised, present & ~gone


def _changed(
    job: ShardJob, target: Target, names: Sequence[str], noised: pa.Table
) -> dict[str, Any]:
    """Return the columns that noise changes or adds, by name.

    `names` are the columns of the input. `noised` has its rows, with the columns of `add_noise`.
    """
    columns = job.columns.of(names)
    if target.holds_pairs:
        sides = ("clean", "noisy", "edits")
        return {_PAIR: pa.StructArray.from_arrays([one_chunk(noised[s]) for s in sides], sides)}
    new = {"edits": noised["edits"]} if job.edits else {}
    if columns.is_annotated:
        moved = RowLayout.of(columns, names).columns
        new |= {name: noised[name] for name in moved if name in noised.column_names}
        new |= {RAW: noised[RAW]} if set(columns.raw or ()) & set(OBJECTS) else {}
    if columns.paths:
        return new
    if not (columns.tokens and columns.labels):
        return {columns.source: noised["noisy"]} | new
    words, owners = align(noised, columns)
    letters = dict.fromkeys(target.parallel, "") | {columns.labels: job.letters}
    made = {
        name: aligned_labels(noised, columns.tokens, name, owners, letters[name])
        for name in target.parallel
    }
    return {columns.tokens: words, _OWNERS: owners} | made | new


def parallel_columns(ranges: Sequence[FileRange], columns: Columns) -> tuple[str, ...]:
    """Return the columns with an item per token: the labels, and lists as long as the tokens.

    Only the first rows of the file ranges are looked at.
    """
    if not (columns.tokens and columns.labels):
        return ()
    with metered():  # so that these bytes do not count: the task reads and counts them again
        rows = next((batch.table.slice(0, FIRST) for batch in read(ranges, columns)), None)
    if rows is None:
        return ()
    columns = columns.of(rows.column_names)
    lengths = pc.list_value_length(rows[columns.tokens])
    lists = {field.name for field in rows.schema if is_list(field.type)} - {columns.tokens}
    equal = {name for name in lists if pc.list_value_length(rows[name]).equals(lengths)}
    return tuple(sorted(equal | {str(columns.labels)}))


def _with_values(table: pa.Table, name: str, values: Any, keep: Any) -> pa.Table:
    """Return the table with `values` in the column `name`, in the rows for which `keep` is True.

    The other rows keep their values in this column. If the column is new, they get null.
    """
    if name not in table.column_names:
        table = table.append_column(name, pa.nulls(len(table), values.type))
    field = table.schema.field(name)
    kind = pa.list_(field.type.value_type) if is_list(field.type) else field.type
    index = np.where(keep, np.cumsum(keep) - 1, len(values) + np.arange(len(keep)))
    parts = [pa.table({name: column.cast(kind)}) for column in (values, table[name])]
    both = pa.concat_tables(parts)[name]
    at = table.column_names.index(name)
    return table.set_column(at, field.with_type(kind), both.take(as_arrow(index)))


# Writing rows as bytes.


def _content(
    target: Target, columns: Columns, tables: Sequence[pa.Table], *, has_header: bool
) -> bytes | list[bytes] | pa.Table:
    """Return the rows of tables as bytes of the file to write.

    For Parquet they are returned as one table, for a JSON document as the text of each row.
    """
    table, write = pa.concat_tables(tables), target.writer.line
    names = _names(table)
    if write is None:
        return table.select(names)
    if target.has_token_lines and columns.label_names:
        names_of = class_names(table.schema) | {str(columns.labels): columns.label_names}
        table = table.cast(with_class_names(table.schema, names_of))
    columns, end = columns.of(table.column_names), "\n"
    changed = {columns.source, "copy", "edits", *target.parallel}
    if columns.is_annotated:  # the lines of JSON have the noise already
        changed = {"copy", "edits"}
    has_owners, has_pairs = (name in table.column_names for name in (_OWNERS, _PAIR))
    owners = table[_OWNERS].to_pylist() if has_owners else [()] * len(table)
    pairs = table[_PAIR].to_pylist() if has_pairs else [None] * len(table)
    values = zip(*(_values(table, name) for name in names), strict=True)
    raws, codes = table[RAW].to_pylist(), table[REASON].to_pylist()
    lines: list[bytes] = []
    for row, raw, code, owner, pair in zip(values, raws, codes, owners, pairs, strict=True):
        line, end = (raw, end) if target.format == "json" else _without_end(raw, end)
        if line is None or code in KEPT:
            cells = dict(zip(names, row, strict=True))
            noisy = NoisyRow(cells, columns, changed, line, owner, pair)
            line = write(noisy).encode("utf-8")
        lines.append(line if target.format == "json" else line + end.encode())
    if has_header and target.writer.header:
        header = NoisyRow({name: name for name in names}, Columns(), (), None)
        lines.insert(0, write(header).encode("utf-8") + end.encode())
    return lines if target.format == "json" else _COMPRESS[target.compression](b"".join(lines))


def _without_end(raw: bytes | None, end: str) -> tuple[bytes | None, str]:
    """Split a line of input into its text and its line end.

    If `raw` has no line end, or is None, `end` is returned as the line end.
    """
    if raw is None or not raw.endswith(b"\n"):
        return raw, end
    end = "\r\n" if raw.endswith(b"\r\n") else "\n"
    return raw[: -len(end)], end


def _values(table: pa.Table, name: str) -> list[Any]:
    """Return the values of a column, with the names of their classes instead of numbers."""
    values: list[Any] = table[name].to_pylist()
    if (classes := class_names(table.schema).get(name)) is None:
        return values
    if is_list(table[name].type):
        return [label_names(numbers, classes) if numbers else numbers for numbers in values]
    return label_names(values, classes)


def _names(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name not in (REASON, RAW, _OWNERS, _PAIR)]
