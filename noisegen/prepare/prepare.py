"""`prepare`: raw text in, a folder of clean sentences with manifest and dataset card out.

Workers write the sentences that pass on their own, with keys to find duplicates by; at the end the
duplicates of the whole run are found and the shards written.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.sources import (
    STREAM_BYTES,
    Columns,
    Input,
    ShardInput,
    expand,
    read,
    shard_inputs,
)
from noisegen.errors import SourceError, UsageError
from noisegen.options import Strings, argument, command_line, option, public
from noisegen.prepare.duplicates import (
    BANDS,
    BATCH,
    COMPARED_MIN,
    KEPT,
    KINDS,
    REASONS,
    SHINGLE_SPACED,
    SHINGLE_UNSPACED,
    WORK,
    Codes,
    KeyWriter,
    band_keys,
    duplicates,
    normal_form,
    work_path,
)
from noisegen.prepare.sentences import Criteria, sentences
from noisegen.runs.files import atomic, file_digest, write_text
from noisegen.runs.folder import (
    Folder,
    IdColumn,
    Lang,
    Layout,
    Limit,
    RowsPerShard,
    RunFolder,
    RunOptions,
    Splitter,
    TextColumn,
    listed,
    note_text,
    shard_path,
)
from noisegen.runs.manifest import (
    Manifest,
    dataset_card,
    markdown_table,
    packages,
    source_names,
    summed,
)
from noisegen.runs.progress import Progress
from noisegen.text import languages
from noisegen.text.buffers import U64
from noisegen.text.segmentation import Language, language
from noisegen.version import __version__

NUMBERS = 1 << 24  # sentences that ids leave room for in a row: a text has 32 MiB at most
COLUMNS = ("id", "text", "source", "row")


@dataclass(frozen=True)
class PrepareOptions(RunOptions):
    """Which sentences of raw text are kept, and what counts as a duplicate."""

    sources: Annotated[Strings, argument("SOURCE...")]
    out: Annotated[Folder, option("Output folder for the shards", "-o", "--out", metavar="FOLDER")]
    _: KW_ONLY
    lang: Lang = "en"
    text_column: TextColumn = "text"
    id_column: IdColumn = None
    splitter: Splitter = "sentencex"
    # wikiedits, from which RCP's corpus came, drops shorter sentences.
    chars_min: Annotated[int, option("Minimum sentence length in characters", ge=1)] = 10
    # About 250 tokens: an encoder's 512 hold it, also when noisy.
    chars_max: Annotated[int, option("Maximum sentence length in characters", ge=1)] = 1_000
    common_min: Annotated[  # RoLASER, preparation of OSCAR
        float, option("Minimum share of common characters of the language", ge=0, le=1)
    ] = 0.9
    identify: Annotated[
        Literal["auto", "yes", "no"],
        option("Drop sentences that a model takes for another language; auto: with noisegen[lid]"),
    ] = "auto"
    duplicates: Annotated[Literal["near", "exact", "keep"], option("Duplicates to drop")] = "near"
    similarity: Annotated[
        float, option("Minimum share of common character sequences of near duplicates", gt=0, le=1)
    ] = 0.75
    rows_per_shard: RowsPerShard = 100_000
    limit: Limit = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chars_min > self.chars_max:
            raise UsageError(f"--chars-min {self.chars_min} is above --chars-max {self.chars_max}")


@dataclass(frozen=True)
class Candidates:
    """What a portion gave: `rows` candidates of `sentences`; damaged rows, dropped sentences."""

    number: int
    first_row: int
    rows_in: int
    rows: int = 0
    sentences: int = 0
    damaged: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)


LAYOUT = Layout(
    "prepare", "manifest.json", frozenset({"identification"}), parts=("part-*.parquet",),
    notes=f"{WORK}/note-*.json", note=Candidates, columns=frozenset(COLUMNS), scratch=WORK,
    temporary=(f"{WORK}/*.tmp", f"{WORK}/links-*"),
)  # fmt: skip


@dataclass(frozen=True)
class PortionJob:
    """All that a worker needs for any task of a run; small, and pickled with every task."""

    out: Path
    config: str  # JSON that binds a folder to one configuration
    spoken: Language
    criteria: Criteria
    columns: Columns
    duplicates: str = "near"

    @property
    def shingle(self) -> int:
        """The length of a shingle in characters."""
        return SHINGLE_SPACED if self.spoken.is_spaced else SHINGLE_UNSPACED


@dataclass(frozen=True)
class Portion:
    """What one worker prepares at a time: tasks of sources one after the other, as one shard."""

    number: int
    first_row: int
    rows: int
    parts: tuple[tuple[str, ShardInput], ...]  # (source, its rows)


def _prepare(options: PrepareOptions) -> Manifest:
    """Write the clean sentences of `sources` to `out` as Parquet shards; return the manifest.

    The rows are the same whatever the workers. `progress` is called with a `Progress` after every
    shard. Raises NoisegenError.
    """
    inputs = expand(listed(options.sources))
    job, config = _job(options, inputs)
    planned = _portions(inputs, job.columns, options)
    first = next(planned, None)  # so that a source that cannot be read leaves the folder alone
    if first is None:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")
    folder = RunFolder(job.out, LAYOUT, config)
    folder.refuse_inputs(item.path for item in inputs)
    done = folder.open(resume=options.resume, force=options.force)
    if (manifest := _finished(folder)) is not None:
        folder.remove_scratch()
        return manifest
    done = {number: note for number, note in done.items() if _is_whole(job.out, number)}
    notes: dict[int, Candidates] = {}

    def missing() -> Iterator[Portion]:
        for portion in chain([first], planned):
            note = done.get(portion.number)
            if note and (note.first_row, note.rows_in) == (portion.first_row, portion.rows):
                notes[portion.number] = note
            else:
                yield portion

    kept = 0

    def finished(note: Candidates) -> None:
        nonlocal kept
        notes[note.number] = note
        kept += note.rows
        options.report(Progress(done=kept, unit="sentences", counts={"shards": len(notes)}))

    folder.run(partial(make_candidates, job), missing(), options, finished)
    return _finish(folder, job, [note for _, note in sorted(notes.items())], options)


prepare = public(PrepareOptions, _prepare)


def _job(options: PrepareOptions, inputs: Sequence[Input]) -> tuple[PortionJob, dict[str, Any]]:
    """Return the job of a worker, and the configuration that its folder is bound to."""
    spoken = language(options.lang, splitter=options.splitter)
    model = languages.model_for(spoken.code, options.identify)
    criteria = Criteria(
        options.chars_min, options.chars_max, options.common_min, identified=model is not None
    )
    config: dict[str, Any] = {
        "version": __version__,
        "lang": spoken.code,
        "options": {name: getattr(options, name) for name in _BINDING},
        "identification": model,
        "sources": [{"path": item.path, "bytes": item.size} for item in inputs if not item.skipped],
    }
    columns = Columns(options.text_column, options.id_column)
    bound = json.dumps(config, sort_keys=True, ensure_ascii=False)
    out = Path(options.out).resolve()
    return PortionJob(out, bound, spoken, criteria, columns, options.duplicates), json.loads(bound)


_BINDING = (  # options that decide the sentences, as the manifest lists them
    "lang", "text_column", "id_column", "splitter", "chars_min", "chars_max", "common_min",
    "identify", "duplicates", "similarity", "rows_per_shard", "limit",
)  # fmt: skip


def _portions(
    inputs: Sequence[Input], columns: Columns, options: PrepareOptions
) -> Iterator[Portion]:
    """Pack the rows of all inputs, in order, into shards; a small file shares one with others."""
    held: list[tuple[str, ShardInput]] = []
    number = first = rows = size = 0
    for source, task in _tasks(inputs, columns, options):
        grown = size + (0 if task.table is None else task.table.nbytes)
        if held and (rows + task.rows > options.rows_per_shard or grown > STREAM_BYTES):
            yield Portion(number, first, rows, tuple(held))
            number, first, rows, grown, held = number + 1, first + rows, 0, grown - size, []
        held.append((source, task))
        rows, size = rows + task.rows, grown
    if held:
        yield Portion(number, first, rows, tuple(held))


def _tasks(
    inputs: Sequence[Input], columns: Columns, options: PrepareOptions
) -> Iterator[tuple[str, ShardInput]]:
    """Yield the tasks of each input by itself, for its path, and since columns need not agree."""
    left = options.limit
    for item in inputs:
        if item.skipped or left == 0:
            continue
        try:
            for task in shard_inputs([item], columns, options.rows_per_shard, left):
                yield item.path, task
                left = None if left is None else left - task.rows
        except SourceError as error:
            if not str(error).startswith("no rows in"):  # an empty file among others is none
                raise


# A portion.


def make_candidates(job: PortionJob, portion: Portion) -> Candidates:
    """Write the candidates of a portion and its keys, and last the note that says all is there."""
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context(atomic(work_path(job.out, kind, portion.number)))
            for kind in KINDS[:-1]
        }
        note = _Writer(job, files).take(portion)
    write_text(work_path(job.out, "note", portion.number), note_text(job.config, note))
    return note


def schema_of(columns: Columns) -> pa.Schema:
    """Return the columns of candidates and of the output."""
    row = pa.int64() if columns.row_id is None else pa.string()
    texts = pa.string()
    return pa.schema([("id", pa.int64()), ("source", texts), ("row", row), ("text", texts)])


def text_key(text: str) -> int:
    """Return the 64-bit number of a text (BLAKE2b, 8 bytes)."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class _Writer:
    """Writes the candidates of a portion; a text that it had is dropped at once."""

    def __init__(self, job: PortionJob, files: dict[str, IO[bytes]]) -> None:
        self.job = job
        self.schema = schema_of(job.columns)
        self.writer = pa.ipc.new_file(files["texts"], self.schema)
        self.forms, self.bands = KeyWriter(files["forms"]), KeyWriter(files["bands"])
        self.held: list[tuple[int, str, Any, str, str, int, int]] = []
        self.seen_texts: set[int] = set()
        self.seen_forms: set[int] = set()
        self.rows = 0
        self.damaged: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def take(self, portion: Portion) -> Candidates:
        """Read, judge and write all rows of a portion; return the account."""
        count = 0
        for source, row_id, ordinal, text in self._rows(portion):
            for sentence in sentences(text, self.job.spoken, self.job.criteria):
                count += 1
                identity = ordinal * NUMBERS + sentence.number
                if sentence.reason:
                    self.dropped[sentence.reason] += 1
                else:
                    self._add(identity, sentence.text, source, row_id)
        self._flush()
        self.writer.close()
        self.forms.close()
        self.bands.close()
        return Candidates(
            portion.number, portion.first_row, portion.rows, self.rows, count,
            dict(self.damaged), dict(self.dropped),
        )  # fmt: skip

    def _rows(self, portion: Portion) -> Iterator[tuple[str, Any, int, str]]:
        """Yield source, id, ordinal in the whole input, and text."""
        first, numbered = portion.first_row, self.job.columns.row_id is None
        for source, task in portion.parts:
            kept = 0
            for batch in read(task, self.job.columns):
                self.damaged.update(batch.dropped)
                ids, texts = batch.table["id"].to_pylist(), batch.table["clean"].to_pylist()
                for row_id, text in zip(ids, texts, strict=True):
                    ordinal = first + (row_id - task.first_row if numbered else kept)
                    yield source, ordinal if numbered else str(row_id), ordinal, text
                    kept += 1
            first += task.rows

    def _add(self, identity: int, text: str, source: str, row_id: Any) -> None:
        """Hold a sentence, unless the portion had it."""
        form, mark, key = "", 0, 0
        if self.job.duplicates != "keep":
            key = mark = text_key(text)
            if mark in self.seen_texts:
                self.dropped["duplicate"] += 1
                return
            self.seen_texts.add(mark)
        if self.job.duplicates == "near":
            form = normal_form(text)
            key = text_key(form)
            form = "" if key in self.seen_forms else form  # its key says all: no bands
            self.seen_forms.add(key)
        self.held.append((identity, source, row_id, text, form, mark, key))
        if len(self.held) == BATCH:
            self._flush()

    def _flush(self) -> None:
        """Write what is held, and its keys."""
        if not self.held:
            return
        ids, sources, row_ids, texts, forms, marks, keys = zip(*self.held, strict=True)
        columns = {"id": ids, "source": sources, "row": row_ids, "text": texts}
        self.writer.write_batch(pa.record_batch(columns, self.schema))
        self._add_keys(forms, np.array(marks, np.uint64), np.array(keys, np.uint64))
        self.rows += len(texts)
        self.held = []

    def _add_keys(self, forms: tuple[str, ...], marks: U64, keys: U64) -> None:
        if self.job.duplicates == "keep":
            return
        indices = np.arange(self.rows, self.rows + len(forms))
        self.forms.add(keys, marks, indices)
        if self.job.duplicates == "exact":
            return
        long = [at for at, form in enumerate(forms) if len(form) >= COMPARED_MIN * self.job.shingle]
        bands = band_keys([forms[at] for at in long], self.job.shingle)
        rows = np.repeat(indices[long], BANDS)
        self.bands.add(bands.ravel(), np.zeros(bands.size, np.uint64), rows)


# The end of a run.


def _is_whole(out: Path, number: int) -> bool:
    return all(work_path(out, kind, number).exists() for kind in KINDS)


def _finished(folder: RunFolder[Candidates]) -> Manifest | None:
    """Return the manifest in the folder if its shards and the card are whole."""
    manifest = folder.earlier()
    if manifest is None or not (folder.out / "README.md").exists():
        return None
    paths = {folder.out / shard["file"]: shard["sha256"] for shard in manifest.shards}
    whole = all(path.exists() and file_digest(path) == digest for path, digest in paths.items())
    return manifest if whole else None


def _finish(
    folder: RunFolder[Candidates],
    job: PortionJob,
    notes: Sequence[Candidates],
    options: PrepareOptions,
) -> Manifest:
    """Find the duplicates, write shards, manifest and card, remove what led there."""
    counts = [note.rows for note in notes]
    codes = duplicates(
        job.out, counts, near=job.duplicates == "near", shingle=job.shingle,
        similarity_min=options.similarity,
    )  # fmt: skip
    firsts = np.concatenate(([0], np.cumsum(counts))).tolist()
    shards = [
        _write_shard(job, number, codes[firsts[number] : firsts[number + 1]])
        for number in range(len(notes))
    ]
    repeated = {reason: int(np.count_nonzero(codes == code)) for code, reason in REASONS.items()}
    totals = {
        "rows_in": sum(note.rows_in for note in notes),
        "sentences": sum(note.sentences for note in notes),
        "kept": int(np.count_nonzero(codes == KEPT)),
        "dropped": summed(
            [*(note.dropped for note in notes), {name: n for name, n in repeated.items() if n}]
        ),
        "damaged": summed(note.damaged for note in notes),
    }
    command = options.command or command_line("prepare", options.asked())
    manifest = Manifest(
        kind="prepare", command=command, shards=shards, totals=totals, packages=packages(),
        **folder.config,
    )  # fmt: skip
    folder.publish(manifest, _card(manifest))
    folder.remove_scratch()
    return manifest


def _write_shard(job: PortionJob, number: int, codes: Codes) -> dict[str, Any]:
    """Write a shard, a batch of candidates at a time; return its line of the manifest."""
    path, schema = shard_path(job.out, number), schema_of(job.columns)
    at = rows = 0
    with atomic(path) as file, pq.ParquetWriter(
        file, pa.schema([schema.field(name) for name in COLUMNS]),
        compression="zstd", use_dictionary=["source"],
    ) as to:  # fmt: skip
        source = pa.ipc.open_file(pa.memory_map(str(work_path(job.out, "texts", number))))
        for batch in map(source.get_batch, range(source.num_record_batches)):
            kept = batch.filter(pa.array(codes[at : at + len(batch)] == KEPT)).select(COLUMNS)
            at, rows = at + len(batch), rows + len(kept)
            to.write_batch(kept)
    return {"file": path.name, "rows": rows, "sha256": file_digest(path)}


_BODY = """{columns}

Dropped, by the first reason that held:

{dropped}

Made by `{command}`. The text comes from {sources}: its licence is theirs.

Noise for it: `noisegen augment path/of/this/folder -o OUT --id-column id`"""
_ID = "stable name: number of the row * 2^24 + number of the sentence in the row, both from 0"


def _card(manifest: Manifest) -> str:
    """Return the text of the dataset card."""
    column = manifest.options["id_column"]
    columns = {
        "id": _ID,
        "text": "the sentence",
        "source": "the file it comes from",
        "row": "number of its row in the whole input"
        + (f", from column `{column}`" * bool(column)),
    }
    dropped = [(reason, f"{count:,}") for reason, count in manifest.totals["dropped"].items()]
    body = _BODY.format(
        columns=markdown_table(("column", "content"), *columns.items()),
        dropped=markdown_table(("reason", "sentences"), *dropped),
        command=manifest.command,
        sources=source_names(manifest),
    )
    return dataset_card(manifest, "Clean sentences, prepared", "text, sentences", body, "sentences")
