"""Write one noisy file instead of a folder of shards, in the format of the input or another.

The text column gets the noisy text. Other columns stay unchanged. If the format stays the same,
comments, separators and line ends are kept too. Rows keep their order. A row that cannot be noised
is copied if the format can hold it, else left out; both are counted.
"""

import base64
import bz2
import gzip
import lzma
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from glob import escape
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augmentation.annotated import RowLayout, replaced
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
from noisegen.data.features import (
    class_names,
    fit_pandas,
    label_names,
    with_label_names,
    with_list,
)
from noisegen.data.formats.base import NoisyRow, RowWriter
from noisegen.data.formats.json_document import NO_ITEM, Document, without_item
from noisegen.data.formats.json_lines import MARK, OBJECTS, as_line, field_of, patched
from noisegen.data.formats.registry import ENDINGS, FORMATS, WRITTEN, bitext_ending, file_of
from noisegen.data.lines import BOM, from_utf8
from noisegen.data.rows import Columns, FileRange, RowBatch
from noisegen.data.sources import read
from noisegen.data.tables import CODE, KEPT, NO_ROW, RAW, REASON, REASONS, Mask, is_list
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.options import listed
from noisegen.runs.atomic import atomic, refuse_existing, remove_left
from noisegen.runs.store import output_path
from noisegen.text.buffers import as_arrow, one_chunk

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
_SAME = "\x00same"  # column that is True for a row that noise left as it was
# Reasons why a row is not noised: of rows that were read completely, and of rows cut off.
_WHOLE = ("null_text", "null_id", "unequal_labels", "unknown_label")
_CUT = ("row_too_long", "truncated")
# Codes of lines that are no JSON objects
_UNREAD = [CODE["not_utf8"], CODE["bad_json"], NO_ROW]
# Codes of rows that are objects, in JSON
_LACKING = [CODE[name] for name in ("missing_text", *_WHOLE)]


@dataclass(frozen=True)
class Target:
    """The noisy file to write: its path ('-' for standard output), format and compression.

    `added` names the columns from the names of folders. `beginning` has the bytes before the first
    row of an input of this format, as UTF-8: a byte order mark and a header line. Lines that are
    new, or have no line end in the input, get `line_end`. `separator` is the character between the
    fields of CSV. `encoding` is the encoding of text in the format of the input, '' for UTF-8. If
    `holds_objects` is False, the rows of JSON are texts or other values without fields. Ids are
    stored in a dictionary of `id_type`. `has_many` tells whether a file with one row may become
    several rows.
    """

    path: str
    format: str
    compression: str = ""
    has_header: bool = True
    beginning: bytes = b""
    line_end: bytes = b"\n"
    separator: str = ","
    added: tuple[str, ...] = ()
    encoding: str = ""
    holds_objects: bool = True
    id_type: pa.DataType | None = None
    has_many: bool = False

    @property
    def writer(self) -> RowWriter:
        """The functions that write rows in the format."""
        writer = FORMATS[self.format].writer
        assert writer
        return writer

    @property
    def has_fields(self) -> bool:
        """Whether rows are JSON objects, to which fields can be added."""
        return self.format in OBJECTS and self.holds_objects

    @property
    def has_token_lines(self) -> bool:
        """Whether the file has a token per line."""
        return FORMATS[self.format].has_token_lines

    @property
    def holds_pairs(self) -> bool:
        """Whether the file holds pairs, so the clean text too."""
        return self.writer.reason_against is not None

    def packed(self, content: bytes) -> bytes:
        """Return a part of the file, given in UTF-8, in its encoding and compressed."""
        return _COMPRESS[self.compression](from_utf8(content, self.encoding))

    def rows(self, rows_per_shard: int) -> int:
        """Return the number of rows per task of a worker: at most ROWS, so that output begins soon.

        For Parquet it is `rows_per_shard`, because the rows of a task become a row group.
        """
        return min(ROWS, rows_per_shard) if self.writer.line else rows_per_shard

    def check(self, job: ShardJob) -> None:
        """Raise UsageError if the format cannot hold the output that an option asks for."""
        tables = "write jsonl, json, parquet, csv or tsv"
        if flag := _column_option(job):
            self._check_columns(flag, tables)
        if job.columns.paths and (self.holds_pairs or not self.writer.has_columns):
            raise UsageError(f"{self.format} holds one text per row: name one column, or {tables}")
        if self.has_token_lines and not job.columns.labels:
            problem = f"{self.format} has a token per line, so it needs --tokens and --labels"
            raise UsageError(f"{problem}: for texts write txt, or {tables.removeprefix('write ')}")
        if self.format == "parquet" and self.compression:
            raise UsageError(
                f"{self.path}: Parquet compresses itself: leave out .{self.compression}"
            )

    def _check_columns(self, flag: str, tables: str) -> None:
        """Raise UsageError if the format has no column that the option `flag` adds."""
        if self.format in OBJECTS and not self.holds_objects:
            problem = f"an array of texts in {self.format} has no column for {flag}"
            raise UsageError(f"{problem}: write parquet, csv or tsv")
        if not self.writer.has_columns:
            raise UsageError(f"{self.format} has no column for {flag}: {tables}")

    def check_columns(self, names: Sequence[str], job: ShardJob) -> None:
        """Raise SourceError if the source has a column such as 'copy' that the output adds."""
        for name in job.added:
            if name in names:
                raise SourceError(
                    f"the source has a column {name!r}, as the output will; rename it"
                )


def _column_option(job: ShardJob) -> str:
    """Return the first option given that adds a column to the output; '' without one."""
    options = {
        "--copies": job.copies > 1,
        "--with-clean": job.with_clean,
        "--strength": job.strength,
        "--edits": job.edits,
    }
    return next((name for name, is_given in options.items() if is_given), "")


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
    if not ending and bitext_ending(out) and not output_path(out).is_dir():
        ending = "txt"
    if not _is_one_file(out, to, ending):
        return None
    source = plan.first.format if plan.first else ""
    kind = _format_of(to, ending, source, plan)
    if kind == "norm" and source in ("conll", "conllu"):
        _check_norm(source, plan.job.columns.labels)
    has_header = not plan.job.columns.text.isdecimal()
    target = Target(out, kind, compression, has_header)
    if plan.first:
        target = _like_source(target, plan, plan.first)
    if source:  # an input without rows has no format; the reader reports that
        target.check(plan.job)
    return target


def _like_source(target: Target, plan: AugmentPlan, first: FileRange) -> Target:
    """Return the target with the separator and encoding of `first`, the first input with rows."""
    return replace(
        target,
        separator=first.separator,
        added=tuple(name for name, _ in first.keys),
        encoding=first.encoding if target.format == first.format else "",
        id_type=_id_type(plan),
        has_many=len(plan.job.versions) > 1 or len(plan.inputs) > 1,
        holds_objects=not (first.format == "json" and "" in map(field_of, first.schema.names)),
    )


def _id_type(plan: AugmentPlan) -> pa.DataType | None:
    """Return the type of ids that the first input stores in a dictionary; None for other ids.

    The ids of several inputs may need larger indices.
    """
    kind = plan.first.id_type if plan.first and plan.job.columns.row_id else None
    return pa.dictionary(pa.int32(), kind.value_type) if kind and plan.inputs[1:] else kind


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

    Files with a token per line are often named .tsv or .txt. An output with the ending of such
    sources, or of sources with an unknown ending, keeps their format.
    """
    kind = to or ending or source
    is_plain = ending in ("tsv", "txt") and not to
    if is_plain and source in FORMATS and FORMATS[source].has_token_lines:
        sources = listed(plan.request.sources)
        if all(file_of(name).format in (ending, "") for name in sources):
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


def write_parts(
    file: IO[bytes], parts: Iterable["NoisyPart"], target: Target
) -> Iterator["NoisyPart"]:
    """Write the parts of a noisy file in the order given; yield each part after it is written."""
    table: pq.ParquetWriter | None = None
    document = Document(has_many=target.has_many)
    rows, end = 0, b""
    mark = target.beginning  # a document has no header, so this is a byte order mark or nothing
    with ExitStack() as stack:
        for part in parts:
            if isinstance(part.content, bytes):
                file.write(end + part.content if part.shard.rows else part.content)
                end = part.end if part.shard.rows else end
            elif isinstance(part.content, list):
                file.write(target.packed(mark + document.add(part.content)))
                mark = b""
            else:
                table = table or stack.enter_context(
                    pq.ParquetWriter(file, part.content.schema, compression="zstd")
                )
                table.write_table(part.content)
                rows += len(part.content)
            yield part
        if table:
            _fit_metadata(table, rows)
    if closing := document.end():
        file.write(target.packed(closing))


def _fit_metadata(file: pq.ParquetWriter, rows: int) -> None:
    """Correct the metadata of a Parquet file with `rows` rows, whose schema was written first."""
    schema = fit_pandas(file.schema, rows)
    if schema.metadata != file.schema.metadata:
        # Arrow takes the metadata from a copy of the schema, other readers from the file
        copy = base64.b64encode(schema.serialize().to_pybytes())
        file.add_key_value_metadata(schema.metadata | {b"ARROW:schema": copy})


# One task: its rows become a part of the file.


@dataclass(frozen=True)
class NoisyPart:
    """The part of a noisy file that one task of a worker made.

    `content` are the bytes to write, a table for Parquet, or the rows of a JSON document. `size` is
    the number of bytes of input. `as_is` counts by reason the rows that are copied without noise.
    `shard` has the counts of all rows; it counts the copied rows as dropped. `end` are the bytes to
    write before a next row, if the last row is of an input file without a line end at its end.
    """

    number: int
    size: int
    shard: Shard
    content: bytes | list[bytes] | pa.Table
    as_is: Counter[str]
    end: bytes = b""


def make_part(job: ShardJob, target: Target, columns: Columns, task: ShardTask) -> NoisyPart:
    """Return the noisy rows of a task in the format of the file to write."""
    counts = _TaskCounts()
    job = replace(job, columns=columns)
    tables = []
    for batch in read(task.ranges, columns, batch_bytes=job.engine().batch_bytes):
        codes, has_line = batch.read[REASON].to_numpy(), _are_valid(batch.read[RAW])
        batch = _fitting(target, columns, batch)
        stays = _as_is(target, columns, batch)
        counts.as_is.update(REASONS[code] for code in codes[stays & (codes != NO_ROW)].tolist())
        counts.dropped.update(batch.dropped)
        # A row with too many fields does not count as damaged: its line is copied unchanged.
        whole = np.count_nonzero(has_line & (codes == CODE["unexpected_field"]))
        counts.dropped.subtract({"unexpected_field": int(whole)})
        step = max(1, task.rows // SAMPLED_ROWS)
        tables.append(_noised(job, target, batch, stays, step, counts))
    if not tables:
        raise OutputError(f"no rows for part {task.number}")
    counts.dropped.pop("not_in_encoding", 0)  # the row itself is not damaged
    sums: dict[str, Any] = {**counts.sums, "dropped": dict(+counts.dropped)}
    shard = Shard(rows_in=task.rows, **sums)
    content, end = _content(target, columns, tables, job.added, is_first=task.number == 0)
    return NoisyPart(task.number, task.size, shard, content, +counts.as_is, end)


@dataclass(frozen=True)
class _TaskCounts:
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
    if target.format == "json":  # a JSON line that is no object is no item of a document
        is_item = [MARK in (raw or b"") for raw in batch.read[RAW].to_pylist()]
        stays &= np.array(is_item, np.bool_) | ~np.isin(codes, _UNREAD)
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
    job: ShardJob, target: Target, batch: RowBatch, stays: Mask, step: int, counts: _TaskCounts
) -> pa.Table:
    """Return all rows of the output for a batch, in the order of the input.

    Noisy copies of a row follow each other. Rows for which `stays` is True, and rows without a
    text, come once, unchanged. The counts of the batch are added to `counts`; errors are counted in
    every `step`-th row.
    """
    tables: list[pa.Table] = []
    numbers = []
    edits = job.edits or bool(job.columns.tokens) or target.holds_pairs
    given = _with_lines(job, batch)
    for version in job.versions:
        noised = job.noised(given, version, edits=edits)
        settled = job.settled(noised, version)
        counts.dropped.update(settled.lost)
        counts.as_is.update(settled.kept)
        counts.sums.update(counts_of(job, settled.left(noised), step, version))
        present = batch.keep.copy()
        present[batch.keep] = ~(settled.is_empty | settled.is_gone)
        table = batch.read
        for name, values in _changed(job, target, batch.read.schema, noised).items():
            table = _with_values(table, name, values, batch.keep)
        if not (job.added or target.added):
            table = _with_values(table, _SAME, _are_same(noised), batch.keep)
        if not tables:
            stays = stays.copy()
            stays[batch.keep] = settled.is_empty
            table, present = _with_clean_rows(target, table, present, stays)
        tables.append(job.with_version(table, version).filter(present))
        numbers.append(np.flatnonzero(present))
    are_rows = batch.read[REASON].to_numpy() != NO_ROW
    counts.sums["rows"] += int(np.count_nonzero(stays & are_rows))
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return pa.concat_tables(tables).take(as_arrow(order))


def _are_same(noised: pa.Table) -> pa.Array:
    """Tell for each row whether noise left its texts as they were."""
    if "paths" not in noised.column_names:
        return pc.equal(noised["noisy"], noised["clean"])
    sides = zip(noised["clean"].to_pylist(), noised["noisy"].to_pylist(), strict=True)
    return pa.array([clean == noisy for clean, noisy in sides])


def _with_clean_rows(
    target: Target, table: pa.Table, present: Mask, stays: Mask
) -> tuple[pa.Table, Mask]:
    """Return the rows of the first copy, and the mask of those that the output has.

    `present` are the rows that were noised. To them come the rows for which `stays` is True,
    unchanged, and in a document the texts around rows that are left out.
    """
    codes = table[REASON].to_numpy()
    codes = np.where(stays & np.isin(codes, KEPT), CODE["missing_text"], codes)
    table = replaced(table, REASON, pa.array(codes, pa.int8()))
    present = present | stays
    return _with_ends(table, present) if target.format == "json" else (table, present)


def _with_ends(table: pa.Table, present: Mask) -> tuple[pa.Table, Mask]:
    """Keep rows of a document that are not present without their items, for the texts around them.

    Returns the table, and the mask `present` with these rows.
    """
    if present.all():
        return table, present
    raws = table[RAW].to_pylist()
    for row in np.flatnonzero(~present).tolist():
        raws[row] = raws[row] and without_item(raws[row])
    table = replaced(table, RAW, pa.array(raws, pa.binary()))
    return table, present | np.array([bool(raw) and NO_ITEM in raw for raw in raws], np.bool_)


def _with_lines(job: ShardJob, batch: RowBatch) -> pa.Table:
    """Return the usable rows of a batch; with their lines if the rows have annotations."""
    if not job.columns.is_annotated:
        return batch.table
    lines = one_chunk(batch.read[RAW]).filter(pa.array(batch.keep))
    return batch.table.append_column(RAW, lines)


def _changed(job: ShardJob, target: Target, schema: pa.Schema, noised: pa.Table) -> dict[str, Any]:
    """Return the columns that noise changes or adds, by name.

    `schema` has the columns of the input. `noised` has its rows, with the columns of `add_noise`.
    """
    names = schema.names
    columns = job.columns.of(names)
    if target.holds_pairs:
        sides = ("clean", "noisy", "edits")
        pair = job.with_sides(noised)
        return {_PAIR: pa.StructArray.from_arrays([one_chunk(pair[s]) for s in sides], sides)}
    new = {"edits": job.with_sides(noised)["edits"]} if job.edits else {}
    if columns.is_annotated:
        moved = RowLayout.of(columns, names).columns
        new |= {name: noised[name] for name in moved if name in noised.column_names}
        new |= {RAW: noised[RAW]} if set(columns.raw or ()) & set(OBJECTS) else {}
    if columns.paths:
        return new
    if not columns.tokens:
        return {columns.source: noised["noisy"]} | new
    return _changed_tokens(job, columns, schema, noised) | new


def _changed_tokens(
    job: ShardJob, columns: Columns, schema: pa.Schema, noised: pa.Table
) -> dict[str, Any]:
    """Return the noisy tokens with their owners, and the lists that follow them, by column."""
    words, owners = align(noised, columns)
    made = {str(columns.tokens): words, _OWNERS: owners}
    for name in {*_lists(columns, schema)} & {*noised.column_names}:
        letters = job.letters if name == columns.labels else ""
        made[name] = aligned_labels(noised, str(columns.tokens), name, owners, letters)
    return made


def _lists(columns: Columns, schema: pa.Schema) -> list[str]:
    """Return the list columns beside the tokens, whose lists may have an item per token."""
    names = [field.name for field in schema if is_list(field.type)]
    return [name for name in names if columns.tokens and name != columns.tokens]


def _with_values(table: pa.Table, name: str, values: Any, keep: Any) -> pa.Table:
    """Return the table with `values` in the column `name`, in the rows for which `keep` is True.

    The other rows keep their values in this column. If the column is new, they get null.
    """
    if name not in table.column_names:
        table = table.append_column(name, pa.nulls(len(table), values.type))
    field = table.schema.field(name)
    kind = field.type
    if pa.types.is_fixed_size_list(kind):
        kind = pa.list_(kind.value_type)
    index = np.where(keep, np.cumsum(keep) - 1, len(values) + np.arange(len(keep)))
    parts = [pa.table({name: column.cast(kind)}) for column in (values, table[name])]
    both = pa.concat_tables(parts)[name]
    at = table.column_names.index(name)
    table = table.set_column(at, field.with_type(kind), both.take(as_arrow(index)))
    if kind == field.type:
        return table
    return table.replace_schema_metadata(with_list(table.schema, name).metadata)


# Writing rows as bytes.


def _content(
    target: Target,
    columns: Columns,
    tables: Sequence[pa.Table],
    added: Sequence[str],
    *,
    is_first: bool,
) -> tuple[bytes | list[bytes] | pa.Table, bytes]:
    """Return the rows of tables as bytes of the file to write.

    `added` names the columns that the source lacks. For Parquet the rows are returned as one table,
    for a JSON document as the text of each row. Also returns the bytes to write before a next row,
    see `NoisyPart.end`.
    """
    table = pa.concat_tables(tables)
    names = _names(table)
    if target.writer.line is None:
        return _parquet_table(target, columns, table.select(names)), b""
    if target.has_token_lines and columns.label_names:
        named = with_label_names(table.schema, str(columns.labels), columns.label_names)
        table = table.replace_schema_metadata(named.metadata)
    columns = columns.of(table.column_names)
    changed = {*added, *target.added}
    if not columns.is_annotated:  # with annotations, the lines of JSON have the noise already
        changed |= {columns.source}
    lists = _lists(columns, table.select(names).schema)
    shown = columns.shown(names) if target.writer.has_columns else names
    writer = _LineWriter(target, columns, names, shown, changed, lists)
    lines: list[bytes] = []
    missing = b""
    for row in _rows(table, names):
        line, end, missing = _without_end(target, row.raw)
        lines.append(writer.line(row, line) + end)
    if target.format == "json":
        return lines, b""
    if lines:
        lines[-1] = lines[-1].removesuffix(missing)
    if is_first:
        lines.insert(0, _beginning(target, shown, is_changed=_SAME not in table.column_names))
    return target.packed(b"".join(lines)), missing and target.packed(missing)


def _parquet_table(target: Target, columns: Columns, table: pa.Table) -> pa.Table:
    """Return the table to write to Parquet."""
    names = table.column_names
    if target.id_type:
        table = _coded(table, str(columns.of(names).row_id), target.id_type)
    shown = columns.shown(names)
    return table if shown == names else table.rename_columns(shown)  # renaming loses metadata


def _coded(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    """Return the table with a column as a dictionary again, of the type `kind`."""
    coded = one_chunk(table[name]).dictionary_encode()
    indices, values = coded.indices.cast(kind.index_type), coded.dictionary.cast(kind.value_type)
    column = pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
    return table.set_column(table.column_names.index(name), pa.field(name, column.type), column)


class _Row(NamedTuple):
    """A row of output: its values, its input bytes, its REASON, and values of hidden columns."""

    values: tuple[Any, ...]
    raw: bytes | None
    code: int
    owners: Sequence[int | None]
    pair: Mapping[str, Any] | None
    is_same: bool


def _rows(table: pa.Table, names: Sequence[str]) -> Iterator[_Row]:
    """Yield the rows of a table, with the values of the columns `names`."""
    values = zip(*(_values(table, name) for name in names), strict=True)
    owners, pairs = _hidden(table, _OWNERS, ()), _hidden(table, _PAIR, None)
    raws, codes, same = table[RAW].to_pylist(), table[REASON].to_pylist(), _hidden(table, _SAME)
    return map(_Row, values, raws, codes, owners, pairs, same)


@dataclass(frozen=True)
class _LineWriter:
    """Writes rows as lines.

    `names` are the columns of the rows, `shown` their names in new lines, `changed` the columns
    that noise or an option changed. `lists` are columns whose lists change too, in the rows where
    they have an item per token.
    """

    target: Target
    columns: Columns
    names: Sequence[str]
    shown: Sequence[str]
    changed: Collection[str]
    lists: Collection[str]

    @cached_property
    def _codes(self) -> tuple[int, ...]:
        """Codes of rows whose lines change: rows of a table need new cells, also without a text."""
        return (*KEPT, *_LACKING) if self.target.writer.header else tuple(KEPT)

    def line(self, row: _Row, line: bytes | None) -> bytes:
        """Return a row as a line; `line` is its input line, None for a new one."""
        cells = dict(zip(self.shown if line is None else self.names, row.values, strict=True))
        if line is None or (row.code in self._codes and not row.is_same and NO_ITEM not in line):
            return self._noisy(row, cells, line)
        if self.target.has_fields and row.code in _LACKING:
            return patched(line, {name: cells[name] for name in self.target.added})
        return line

    def _noisy(self, row: _Row, cells: dict[str, Any], line: bytes | None) -> bytes:
        """Return a noisy row with the values `cells` as a line."""
        lists = {name: cells.get(name) for name in self.lists}
        follow = {
            name
            for name, values in lists.items()
            if values is not None and len(values) == len(row.owners)
        }
        made = (row.owners, row.pair, self.target.separator)
        noisy = NoisyRow(cells, self.columns, {*self.changed, *follow}, line, *made)
        assert self.target.writer.line
        return self.target.writer.line(noisy).encode("utf-8")


def _without_end(target: Target, raw: bytes | None) -> tuple[bytes | None, bytes, bytes]:
    """Return a row of input without its line end, its line end, and bytes that it lacks.

    The last row of a file may have no line end, and the last sentence of a file with a token per
    line may have no empty line after it. The row is returned with these bytes.
    """
    end = target.line_end
    if target.format == "json":
        return raw if raw is None or MARK in raw else raw.rstrip(b"\r\n"), b"", b""
    if raw is None:
        return None, end, b""
    raw = as_line(raw) if target.format == "jsonl" else raw
    if raw.endswith(b"\n"):
        end = b"\r\n" if raw.endswith(b"\r\n") else b"\n"
    missing = b"" if raw.endswith(b"\n") else end
    last_line = raw[raw.rfind(b"\n", 0, -1) + 1 :]
    if target.has_token_lines and last_line.strip():
        missing += end
    return (raw + missing).removesuffix(end), end, missing


def _beginning(target: Target, names: Sequence[str], *, is_changed: bool) -> bytes:
    """Return the bytes before the first row: the input's, or a new header line.

    A byte order mark stays. If `is_changed`, the output has other columns than the input.
    """
    mark = BOM if target.beginning.startswith(BOM) else b""
    header = target.beginning.removeprefix(mark)
    if (header and not is_changed) or not (target.writer.header and target.has_header):
        return target.beginning
    line = header.removesuffix(target.line_end) if header else None
    cells = {name: name for name in names}
    row = NoisyRow(cells, Columns(), (), line, separator=target.separator)
    assert target.writer.line
    return mark + target.writer.line(row).encode("utf-8") + target.line_end


def _hidden(table: pa.Table, name: str, default: Any = False) -> list[Any]:
    """Return the values of a column that noise adds but the output lacks; defaults without it."""
    return table[name].to_pylist() if name in table.column_names else [default] * len(table)


def _values(table: pa.Table, name: str) -> list[Any]:
    """Return the values of a column, with the names of their classes instead of numbers."""
    values: list[Any] = table[name].to_pylist()
    if (classes := class_names(table.schema).get(name)) is None:
        return values
    if is_list(table[name].type):
        return [label_names(numbers, classes) if numbers else numbers for numbers in values]
    return label_names(values, classes)


def _names(table: pa.Table) -> list[str]:
    hidden = REASON, RAW, _OWNERS, _PAIR, _SAME
    return [name for name in table.column_names if name not in hidden]
