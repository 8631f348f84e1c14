"""Portions of the input of `prepare`, and their candidates: sentences that meet the criteria.

A worker reads the rows of a portion. It writes the candidates, and keys by which the duplicates of
the whole run are found later.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import STREAM_BYTES, read, shard_ranges
from noisegen.errors import SourceError
from noisegen.noising.rng import name_number
from noisegen.preparation.fingerprints import (
    BANDS,
    COMPARED_MIN,
    SHINGLE_SPACED,
    SHINGLE_UNSPACED,
    band_keys,
    normal_form,
)
from noisegen.preparation.intermediate import BATCH, CANDIDATES, key_writer, work_path
from noisegen.preparation.sentences import Criteria, sentences
from noisegen.runs.atomic import atomic
from noisegen.runs.progress import BYTES, live_path, publishing
from noisegen.runs.records import File, Record
from noisegen.runs.store import StorePath
from noisegen.text.segmentation import Language

# The id of a sentence is NUMBERS * (index of its row) + (its index in the row). A row has at most
# NUMBERS sentences, since its text has at most 32 MiB.
NUMBERS = 1 << 24
ROWS_AT_ONCE = 2_000  # rows read between two reports of progress


@dataclass(frozen=True)
class Candidates:
    """Counts of the rows, sentences and candidates of a portion."""

    first_row: int  # index of the portion's first row in the whole input
    rows_in: int  # rows of the portion
    rows: int = 0  # candidates: the output rows, plus duplicates to drop
    sentences: int = 0  # candidates and dropped sentences
    damaged: dict[str, int] = field(default_factory=dict)  # damaged rows by reason
    dropped: dict[str, int] = field(default_factory=dict)  # dropped sentences by reason

    def is_of(self, rows: "Rows") -> bool:
        """Return whether the counts are of the portion with these `Rows` (first row, row count)."""
        return (self.first_row, self.rows_in) == rows


@dataclass(frozen=True)
class PortionJob:
    """Settings of a run that workers need; small, since they are pickled for each task."""

    out: Path
    spoken: Language
    criteria: Criteria
    columns: Columns
    duplicates: str = "near"
    batch: int = BATCH  # candidates per record batch

    @property
    def shingle(self) -> int:
        """Length of a shingle in characters; it depends on the language of the run."""
        return SHINGLE_SPACED if self.spoken.is_spaced else SHINGLE_UNSPACED

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of the files of candidates and of the shards."""
        row = pa.string() if self.columns.row_id else pa.int64()
        texts = pa.string()
        return pa.schema([("id", pa.int64()), ("source", texts), ("row", row), ("text", texts)])


Rows = tuple[int, int]  # (index of the first row, count of rows) of a portion


@dataclass(frozen=True)
class Portion:
    """Consecutive rows of the input, from one or more sources, whose sentences become one shard."""

    number: int
    first_row: int
    rows: int
    parts: tuple[tuple[str, FileRange], ...]  # (path of a source, rows of it)


def portions_of(
    inputs: Sequence[FileRange],
    columns: Columns,
    most: int,
    limit: int | None,
    *,
    absolute: bool,
) -> Iterator[Portion]:
    """Yield portions of all inputs in order; small files share a portion.

    `most` is the approximate maximum of rows per portion, `limit` the maximum in all portions. With
    `absolute`, portions name files by absolute paths, so that other machines can read them. Raises
    SourceError.
    """
    held: list[tuple[str, FileRange]] = []
    number = first = rows = size = 0
    for source, task in _ranges(inputs, columns, most, limit, absolute):
        task_size = 0 if task.table is None else task.table.nbytes
        is_full = rows + task.rows > most or size + task_size > STREAM_BYTES
        if held and is_full:
            yield Portion(number, first, rows, tuple(held))
            number, first = number + 1, first + rows
            held, rows, size = [], 0, 0
        held.append((source, task))
        rows += task.rows
        size += task_size
    if held:
        yield Portion(number, first, rows, tuple(held))


def _ranges(
    inputs: Sequence[FileRange], columns: Columns, most: int, left: int | None, absolute: bool
) -> Iterator[tuple[str, FileRange]]:
    """Yield pairs of an input's path and a range of its rows, about `most` rows or fewer.

    All ranges together have at most `left` rows. Inputs are read separately, since their columns
    may differ.
    """
    for item in inputs:
        if item.skipped or left == 0:
            continue
        there = replace(item, path=item.absolute) if absolute else item
        try:
            for ranges in shard_ranges([there], columns, most, left):
                yield from ((item.path, task) for task in ranges)
                left = None if left is None else left - sum(task.rows for task in ranges)
        except SourceError as error:
            if not str(error).startswith("no rows in"):  # empty files are skipped
                raise


@dataclass
class _PortionCounts:
    """Running counts of a portion whose candidates are being made."""

    read: Counter[str] = field(default_factory=Counter)  # rows, sentences and bytes, for progress
    damaged: Counter[str] = field(default_factory=Counter)  # damaged rows by reason
    dropped: Counter[str] = field(default_factory=Counter)  # dropped sentences by reason


def make_candidates(job: PortionJob, portion: Portion) -> Record[Candidates]:
    """Write the candidates of a portion and their keys; return the record of the files."""
    counts = _PortionCounts()
    candidates, rows = _candidates(job, portion, counts), 0
    paths = {kind: work_path(job.out, kind, portion.number) for kind in CANDIDATES}
    with (
        atomic(paths["texts"]) as file,
        publishing(live_path(paths["texts"]), counts.read),
        pa.ipc.new_file(file, job.schema) as texts,
        key_writer(paths["forms"], "key", "mark", "row") as add_forms,
        key_writer(paths["bands"], "key", "row") as add_bands,
    ):
        while batch := list(islice(candidates, job.batch)):
            *columns, normal_forms, text_hashes, keys = zip(*batch, strict=True)
            texts.write_batch(pa.record_batch(list(map(pa.array, columns)), schema=job.schema))
            indices = np.arange(rows, rows + len(batch))
            rows += len(batch)
            counts.read["sentences"] = rows
            if job.duplicates != "keep":
                add_forms(keys, text_hashes, indices)
            if job.duplicates == "near":
                size = COMPARED_MIN * job.shingle
                long = [at for at, form in enumerate(normal_forms) if len(form) >= size]
                found = band_keys([normal_forms[at] for at in long], job.shingle)
                add_bands(found.ravel(), np.repeat(indices[long], BANDS))
    made = Candidates(
        first_row=portion.first_row,
        rows_in=portion.rows,
        rows=rows,
        sentences=rows + counts.dropped.total(),
        damaged=dict(counts.damaged),
        dropped=dict(counts.dropped),
    )
    return Record(portion.number, tuple(_file(path, job.out) for path in paths.values()), made)


def _file(path: Path, out: Path) -> File:
    """Return the record of a written file: name and hash, or only the name in a remote store."""
    if isinstance(path, StorePath):
        return File(path.relative_to(out).as_posix())
    return File.of(path, out)


def _candidates(
    job: PortionJob, portion: Portion, counts: _PortionCounts
) -> Iterator[tuple[int, str, Any, str, str, int, int]]:
    """Yield the candidates of a portion; count dropped sentences by reason.

    A candidate is a tuple: id, source, row, text, normal form, hash of the text, hash of the normal
    form. A sentence whose text occurred earlier in the portion is dropped, unless duplicates are
    kept. If only its normal form occurred earlier, the form is yielded as '', since its hash is
    enough to find the near duplicate.
    """
    seen_texts: set[int] = set()
    seen_forms: set[int] = set()
    for source, row_id, ordinal, text in _rows(job, portion, counts):
        for sentence in sentences(text, job.spoken, job.criteria):
            reason, form, text_hash, key = sentence.reason, "", 0, 0
            if not reason and job.duplicates != "keep":
                text_hash = key = name_number(sentence.text)
                reason = "duplicate" if text_hash in seen_texts else ""
                seen_texts.add(text_hash)
            if reason:
                counts.dropped[reason] += 1
                continue
            if job.duplicates == "near":
                form = normal_form(sentence.text)
                key = name_number(form)
                form = "" if key in seen_forms else form
                seen_forms.add(key)
            identity = ordinal * NUMBERS + sentence.number
            yield identity, source, row_id, sentence.text, form, text_hash, key


def _rows(
    job: PortionJob, portion: Portion, counts: _PortionCounts
) -> Iterator[tuple[str, Any, int, str]]:
    """Yield for each row of a portion: source, id, index of the row in the whole input, text.

    Without a column of ids, the id is the index.
    """
    first, numbered = portion.first_row, not job.columns.row_id
    for source, task in portion.parts:
        kept = 0
        for batch in read([task], job.columns, batch_rows=ROWS_AT_ONCE):
            counts.damaged.update(batch.dropped)
            ids, texts = batch.table["id"].to_pylist(), batch.table["clean"].to_pylist()
            for row_id, text in zip(ids, texts, strict=True):
                ordinal = first + (row_id - task.first if numbered else kept)
                yield source, ordinal if numbered else str(row_id), ordinal, text
                kept += 1
            rows = len(texts) + batch.dropped.total()
            counts.read.update({"rows": rows, BYTES: task.size * rows // task.rows})
        first += task.rows
