"""Runs of `prepare`: raw text becomes a folder of clean sentences with manifest and dataset card.

Workers write the candidates of each portion of the input: sentences that meet the criteria, with
keys. At the end, the keys give the duplicates of the whole run, and the shards are written.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from itertools import chain, count, islice, pairwise
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.sources import (
    STREAM_BYTES,
    Columns,
    FileRange,
    completed,
    expand,
    read,
    shard_ranges,
    total_size,
)
from noisegen.errors import SourceError, UsageError
from noisegen.noising.rng import name_number
from noisegen.options import Strings, argument, decode, listed, option, public
from noisegen.preparation.duplicates import KEPT, REASONS, SPAN, Range, Search
from noisegen.preparation.fingerprints import (
    BANDS,
    COMPARED_MIN,
    SHINGLE_SPACED,
    SHINGLE_UNSPACED,
    band_keys,
    normal_form,
)
from noisegen.preparation.intermediate import (
    BATCH,
    CANDIDATES,
    FOUND,
    INTERMEDIATE,
    WORK,
    checked,
    key_writer,
    read_batch,
    work_path,
)
from noisegen.preparation.sentences import Criteria, sentences
from noisegen.runs.atomic import atomic, file_digest, remove
from noisegen.runs.card import Card, dataset_card
from noisegen.runs.executors import is_remote
from noisegen.runs.folder import Layout, RunFolder, shard_path
from noisegen.runs.lock import WHOLE
from noisegen.runs.manifest import Manifest, packages, summed
from noisegen.runs.options import (
    Folder,
    IdColumn,
    Lang,
    Limit,
    PartOptions,
    RowsPerShard,
    Splitter,
    TextColumn,
)
from noisegen.runs.progress import BYTES, Progress, Show, Tracker, live_path, publishing, silent
from noisegen.runs.records import File, Record
from noisegen.runs.store import StorePath, listing, output_path
from noisegen.text import languages
from noisegen.text.segmentation import Language, language
from noisegen.version import __version__

NUMBERS = 1 << 24  # sentences of a row that ids leave room for: a text has 32 MiB at most
COLUMNS = ("id", "text", "source", "row")
ROWS_AT_ONCE = 2_000  # rows read between two reports of progress
PROFILES: dict[str, dict[str, Any]] = {
    "noisegen": {
        "min_chars": Criteria.min_chars,
        "max_chars": Criteria.max_chars,
        "min_common": Criteria.min_common,
        "min_letters": Criteria.min_letters,
        "tidy": "yes",
        "identify": "auto",
        "duplicates": "near",
    },
    # OSCAR came without duplicates: its authors split it into lines and sentences, and dropped
    # sentences by their share of common characters, no more.
    "rolaser": {
        "min_chars": 1,
        "max_chars": 1 << 25,
        "min_common": Criteria.min_common,
        "min_letters": 0.0,
        "tidy": "no",
        "identify": "no",
        "duplicates": "keep",
    },
}
CARD = Path(__file__).with_name("card.txt")


@dataclass(frozen=True)
class PrepareOptions(PartOptions):
    """Options of preparing sentences: criteria of a sentence, and of a duplicate."""

    sources: Annotated[Strings, argument("SOURCE...")]
    out: Annotated[Folder, option("Output folder for the shards", "-o", "--out", metavar="FOLDER")]
    _: KW_ONLY
    lang: Lang = "en"
    text_column: TextColumn = "text"
    id_column: IdColumn = None
    splitter: Splitter = "sentencex"
    profile: Annotated[
        Literal["noisegen", "rolaser"],
        option("Defaults of the options below; rolaser: as its authors prepared OSCAR"),
    ] = "noisegen"
    min_chars: Annotated[
        int | None, option("Minimum sentence length in characters (default: 10; rolaser: 1)", ge=1)
    ] = None
    max_chars: Annotated[
        int | None,
        option("Maximum sentence length in characters (default: 1,000; rolaser: none)", ge=1),
    ] = None
    min_common: Annotated[
        float | None,
        option("Minimum share of characters that are common in the language (0.9)", ge=0, le=1),
    ] = None
    min_letters: Annotated[
        float | None,
        option("Minimum share of letters among non-spaces (default: 0.5; rolaser: 0)", ge=0, le=1),
    ] = None
    tidy: Annotated[
        Literal["yes", "no"] | None,
        option("Decode entities, remove control characters, collapse spaces (rolaser: no)"),
    ] = None
    identify: Annotated[
        Literal["auto", "yes", "no"] | None,
        option(
            "Drop sentences that a model identifies as another language; auto: if it is installed"
            " (default: auto; rolaser: no)"
        ),
    ] = None
    duplicates: Annotated[
        Literal["near", "exact", "keep"] | None,
        option("Duplicates to drop (default: near; rolaser: keep)"),
    ] = None
    similarity: Annotated[
        float,
        option("Minimum similarity of near duplicates (Jaccard, on character n-grams)", gt=0, le=1),
    ] = 0.75
    rows_per_shard: RowsPerShard = 100_000
    limit: Limit = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = (self.decided[name] for name in ("min_chars", "max_chars"))
        if low > high:
            raise UsageError(f"--min-chars {low} is above --max-chars {high}")

    @property
    def decided(self) -> dict[str, Any]:
        """The options that a profile sets: given values, else the values of the profile."""
        given = {name: getattr(self, name) for name in PROFILES[self.profile]}
        chosen = {name: value for name, value in given.items() if value is not None}
        return {**PROFILES[self.profile], **chosen}

    def job(self, inputs: Sequence[FileRange]) -> tuple["PortionJob", dict[str, Any]]:
        """Return the job of the workers, and the configuration as it reads back from JSON.

        Raises UsageError and MissingExtra.
        """
        spoken = language(self.lang, splitter=self.splitter)
        columns = Columns(self.text_column, self.id_column)
        columns = replace(columns, row_id=completed(inputs, columns)[0].row_id)
        decided = self.decided
        model = languages.model_for(spoken.code, decided["identify"])
        apart = {"profile", "sources", "out", *(each.name for each in fields(PartOptions))}
        names = [each.name for each in fields(self) if each.name not in apart]
        config = {
            "version": __version__,
            "lang": spoken.code,
            "options": {name: decided.get(name, getattr(self, name)) for name in names},
            "identification": model,
            "sources": [{"path": i.path, "bytes": i.file_size} for i in inputs if not i.skipped],
        }
        out = output_path(self.out)
        job = PortionJob(
            out.resolve() if is_remote(self.executor) else out,
            spoken,
            Criteria(
                **{name: decided[name] for name in ("min_chars", "max_chars", "min_common")},
                min_letters=decided["min_letters"],
                tidy=decided["tidy"] == "yes",
                identified=model is not None,
            ),
            columns,
            decided["duplicates"],
        )
        return job, json.loads(json.dumps(config))


@dataclass(frozen=True)
class Candidates:
    """Counts of a portion: its candidates (`rows`) among all its sentences, and the losses."""

    first_row: int
    rows_in: int
    rows: int = 0
    sentences: int = 0
    damaged: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    def is_of(self, rows: "Rows") -> bool:
        """Tell whether these are the candidates of a portion of these rows."""
        return (self.first_row, self.rows_in) == rows


SHARDS = "data/part-*.parquet"
LAYOUT = Layout(
    "prepare",
    parts=(SHARDS,),
    scratch=INTERMEDIATE,
    result=Candidates,
    columns=frozenset(COLUMNS),
)


@dataclass(frozen=True)
class PortionJob:
    """The settings of a worker for any task of a run; small, since each task pickles them."""

    out: Path
    spoken: Language
    criteria: Criteria
    columns: Columns
    duplicates: str = "near"
    batch: int = BATCH  # rows of a record batch of candidates

    @property
    def shingle(self) -> int:
        """The length of a shingle in characters."""
        return SHINGLE_SPACED if self.spoken.is_spaced else SHINGLE_UNSPACED

    @property
    def schema(self) -> pa.Schema:
        """The columns of candidates and of the output."""
        row = pa.int64() if self.columns.row_id is None else pa.string()
        texts = pa.string()
        return pa.schema([("id", pa.int64()), ("source", texts), ("row", row), ("text", texts)])


Rows = tuple[int, int]  # first row and number of rows of a portion


@dataclass(frozen=True)
class Portion:
    """Rows of one or several sources that one worker prepares as one shard."""

    number: int
    first_row: int
    rows: int
    parts: tuple[tuple[str, FileRange], ...]  # (source, its rows)


@public
def prepare(
    sources: Strings,
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    resume: bool = False,
    force: bool = False,
    progress: Show = silent,
    command: str | None = None,
    part: str | None = None,
    lang: str = "en",
    text_column: str = "text",
    id_column: str | None = None,
    splitter: Literal["sentencex", "punkt", "spacy"] = "sentencex",
    profile: Literal["noisegen", "rolaser"] = "noisegen",
    min_chars: int | None = None,
    max_chars: int | None = None,
    min_common: float | None = None,
    min_letters: float | None = None,
    tidy: Literal["yes", "no"] | None = None,
    identify: Literal["auto", "yes", "no"] | None = None,
    duplicates: Literal["near", "exact", "keep"] | None = None,
    similarity: float = 0.75,
    rows_per_shard: int = 100_000,
    limit: int | None = None,
) -> Manifest:
    """Write the clean sentences of `sources` to `out` as Parquet shards; return the manifest.

    The rows are the same whatever the workers and parts; while parts are missing, the manifest says
    how many tasks are to do, and is not written. `progress` is called with a `Progress` every
    second and after every task. Raises NoisegenError.
    """
    return _run(decode(PrepareOptions, locals()))


def _run(options: PrepareOptions) -> Manifest:
    """Run `prepare` with checked options."""
    inputs = expand(listed(options.sources))
    job, config = options.job(inputs)
    planned = _portions(inputs, job.columns, options)
    first = next(planned, None)  # so that a source that cannot be read leaves the folder alone
    if first is None:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")
    folder = RunFolder(job.out, LAYOUT, config, options.share)
    folder.refuse_inputs(item.path for item in inputs)
    resume = options.resume or options.part is not None
    with folder.opened(resume=resume, force=options.force, show=options.progress) as done:
        parts = folder.share[1]
        tracker = Tracker(
            options.progress,
            "splitting",
            "rows",
            ("sentences",),
            total=total_size(inputs) // parts,
            most=(options.limit or 0) // parts,
        )
        return _prepared(folder, job, chain([first], planned), done, options, tracker)


def _prepared(
    folder: RunFolder[Candidates],
    job: PortionJob,
    planned: Iterable[Portion],
    done: Mapping[int, Record[Candidates]],
    options: PrepareOptions,
    tracker: Tracker,
) -> Manifest:
    """Make the missing candidates; once all portions are made, finish the run."""
    with folder.alone("finish"):
        if manifest := _finished(folder):
            return manifest
    portions = _make_portions(folder, job, planned, done, options, tracker)
    with folder.alone("finish"):
        if manifest := _finished(folder):  # by another part
            return manifest
        done = folder.done()
        present = {
            number: done[number].result
            for number, rows in portions.items()
            if number in done and done[number].result.is_of(rows)
        }
        folder.expect_all(len(portions), present)
        there = list(present.values())
        if missing := len(portions) - len(there):
            return _manifest(folder, options, there, missing_tasks=missing)
        folder.share = WHOLE  # this process does the rest for all parts
        return _finish(folder, job, there, options)


def _make_portions(
    folder: RunFolder[Candidates],
    job: PortionJob,
    planned: Iterable[Portion],
    done: Mapping[int, Record[Candidates]],
    options: PrepareOptions,
    tracker: Tracker,
) -> dict[int, Rows]:
    """Make the missing candidates of this share; return the rows of all portions by number."""
    remainder, parts = folder.share
    portions: dict[int, Rows] = {}
    sizes: dict[int, int] = {}  # bytes of the portions in work, by number

    def add(record: Record[Candidates]) -> None:
        made, size = record.result, sizes.pop(record.number)
        tracker.add({"rows": made.rows_in, "sentences": made.rows, BYTES: size})

    def missing() -> Iterator[Portion]:
        for portion in planned:
            portions[portion.number] = rows = portion.first_row, portion.rows
            if portion.number % parts != remainder:
                continue
            sizes[portion.number] = sum(task.size for _, task in portion.parts)
            record = done.get(portion.number)
            if record and record.result.is_of(rows):
                add(record)
            else:
                tracker.report()
                yield portion

    def finished(record: Record[Candidates]) -> None:
        add(record)
        tracker.report()

    to_do = missing()
    if head := list(islice(to_do, 1)):  # arrays found among other candidates are stale
        remove(*(path for kind in FOUND for path in (job.out / WORK).glob(f"{kind}-*")))
    with tracker.watching(partial(folder.live, job.out / WORK)):
        folder.run(partial(make_candidates, job), chain(head, to_do), options, finished)
    return portions


def _finished(folder: RunFolder[Candidates]) -> Manifest | None:
    """Return the manifest of an ended run if all its shards are there, else None.

    Left-over intermediate files are removed.
    """
    manifest = folder.earlier_manifest()
    if manifest is None or not (folder.out / "README.md").exists():
        return None
    shards = {shard["file"]: shard["sha256"] for shard in manifest.shards}
    there = {name for name, _ in listing(folder.out, SHARDS)}
    is_whole = isinstance(folder.out, StorePath) or all(
        file_digest(folder.out / name) == shards[name] for name in there & shards.keys()
    )
    if not (shards.keys() <= there and is_whole):
        return None
    folder.remove_scratch()
    return folder.end(manifest)


def _portions(
    inputs: Sequence[FileRange], columns: Columns, options: PrepareOptions
) -> Iterator[Portion]:
    """Pack the rows of all inputs, in order, into portions; small files share a portion."""
    held: list[tuple[str, FileRange]] = []
    number = first = rows = size = 0
    for source, task in _tasks(inputs, columns, options):
        task_size = 0 if task.table is None else task.table.nbytes
        is_full = rows + task.rows > options.rows_per_shard or size + task_size > STREAM_BYTES
        if held and is_full:
            yield Portion(number, first, rows, tuple(held))
            number, first = number + 1, first + rows
            held, rows, size = [], 0, 0
        held.append((source, task))
        rows += task.rows
        size += task_size
    if held:
        yield Portion(number, first, rows, tuple(held))


def _tasks(
    inputs: Sequence[FileRange], columns: Columns, options: PrepareOptions
) -> Iterator[tuple[str, FileRange]]:
    """Yield the path and the ranges of each input; inputs may differ in their columns."""
    left = options.limit
    for item in inputs:
        if item.skipped or left == 0:
            continue
        there = replace(item, path=item.absolute) if is_remote(options.executor) else item
        try:
            for ranges in shard_ranges([there], columns, options.rows_per_shard, left):
                yield from ((item.path, task) for task in ranges)
                left = None if left is None else left - sum(task.rows for task in ranges)
        except SourceError as error:
            if not str(error).startswith("no rows in"):  # an empty file among others is none
                raise


# A portion.


@dataclass
class _Account:
    """Counts of a portion so far: rows read, damaged rows and dropped sentences by reason."""

    read: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


def make_candidates(job: PortionJob, portion: Portion) -> Record[Candidates]:
    """Write the candidates of a portion and their keys; return its record."""
    account = _Account()
    candidates, rows = _candidates(job, portion, account), 0
    paths = {kind: work_path(job.out, kind, portion.number) for kind in CANDIDATES}
    with (
        atomic(paths["texts"]) as file,
        publishing(live_path(paths["texts"]), account.read),
        pa.ipc.new_file(file, job.schema) as texts,
        key_writer(paths["forms"], "key", "mark", "row") as add_forms,
        key_writer(paths["bands"], "key", "row") as add_bands,
    ):
        while batch := list(islice(candidates, job.batch)):
            *columns, normal_forms, marks, keys = zip(*batch, strict=True)
            texts.write_batch(pa.record_batch(list(map(pa.array, columns)), schema=job.schema))
            indices = np.arange(rows, rows + len(batch))
            rows += len(batch)
            account.read["sentences"] = rows
            if job.duplicates != "keep":
                add_forms(keys, marks, indices)
            if job.duplicates == "near":
                size = COMPARED_MIN * job.shingle
                long = [at for at, form in enumerate(normal_forms) if len(form) >= size]
                found = band_keys([normal_forms[at] for at in long], job.shingle)
                add_bands(found.ravel(), np.repeat(indices[long], BANDS))
    made = Candidates(
        first_row=portion.first_row,
        rows_in=portion.rows,
        rows=rows,
        sentences=rows + account.dropped.total(),
        damaged=dict(account.damaged),
        dropped=dict(account.dropped),
    )
    return Record(portion.number, tuple(_file(path, job.out) for path in paths.values()), made)


def _file(path: Path, out: Path) -> File:
    """Return the record of a file of candidates; objects are not read back for a hash."""
    if isinstance(path, StorePath):
        return File(path.relative_to(out).as_posix())
    return File.of(path, out)


class _Candidate(NamedTuple):
    """A sentence that passes: the four columns, normal form, key of the text, key of the form."""

    id: int
    source: str
    row: Any
    text: str
    form: str
    mark: int
    key: int


def _candidates(job: PortionJob, portion: Portion, account: _Account) -> Iterator[_Candidate]:
    """Yield the sentences of a portion that pass; reasons against the others are counted.

    A repeated sentence of the portion is dropped. A repeated form is '', since its key is enough.
    """
    seen_texts: set[int] = set()
    seen_forms: set[int] = set()
    for source, row_id, ordinal, text in _rows(job, portion, account):
        for sentence in sentences(text, job.spoken, job.criteria):
            reason, form, mark, key = sentence.reason, "", 0, 0
            if not reason and job.duplicates != "keep":
                mark = key = name_number(sentence.text)
                reason = "duplicate" if mark in seen_texts else ""
                seen_texts.add(mark)
            if reason:
                account.dropped[reason] += 1
                continue
            if job.duplicates == "near":
                form = normal_form(sentence.text)
                key = name_number(form)
                form = "" if key in seen_forms else form
                seen_forms.add(key)
            identity = ordinal * NUMBERS + sentence.number
            yield _Candidate(identity, source, row_id, sentence.text, form, mark, key)


def _rows(
    job: PortionJob, portion: Portion, account: _Account
) -> Iterator[tuple[str, Any, int, str]]:
    """Yield the rows of a portion: source, id, ordinal in the whole input, and text."""
    first, numbered = portion.first_row, job.columns.row_id is None
    for source, task in portion.parts:
        kept = 0
        for batch in read([task], job.columns, batch_rows=ROWS_AT_ONCE):
            account.damaged.update(batch.dropped)
            ids, texts = batch.table["id"].to_pylist(), batch.table["clean"].to_pylist()
            for row_id, text in zip(ids, texts, strict=True):
                ordinal = first + (row_id - task.first if numbered else kept)
                yield source, ordinal if numbered else str(row_id), ordinal, text
                kept += 1
            rows = len(texts) + batch.dropped.total()
            account.read.update({"rows": rows, BYTES: task.size * rows // task.rows})
        first += task.rows


# The end of a run.


class WrittenShard(NamedTuple):
    """The entry of a shard in the manifest, and counts of its dropped candidates by reason."""

    number: int
    line: dict[str, Any]
    dropped: dict[str, int]


def _finish(
    folder: RunFolder[Candidates], job: PortionJob, notes: list[Candidates], options: PrepareOptions
) -> Manifest:
    """Find duplicates, write shards, manifest and card, and remove the working files."""
    counts = [note.rows for note in notes]
    # Processes without work would only cost their start.
    options = replace(options, workers=min(options.workers, sum(counts) // SPAN + 1))
    with _at_hand(folder, len(notes), options) as (out, options):
        search = Search(out, job.duplicates == "near", job.shingle, options.similarity, job.batch)
        search.begin(counts)
        search.find(lambda do, tasks, then: folder.run(do, tasks, options, then), options.progress)
        shards = _write_shards(folder, job, search, options)
    manifest = _manifest(folder, options, notes, shards)
    folder.end(manifest, _card(manifest))
    folder.remove_scratch()
    return manifest


@contextmanager
def _at_hand(
    folder: RunFolder[Candidates], portions: int, options: PrepareOptions
) -> Iterator[tuple[Path, PrepareOptions]]:
    """Yield a folder whose candidates can be mapped, and the options for work in it.

    Candidates in a store are copied to this machine, and its processes do the work, whatever the
    executor of the run.
    """
    if not isinstance(folder.out, StorePath):
        yield folder.out, options
        return
    options = replace(options, executor="processes")
    with TemporaryDirectory(prefix="noisegen-") as here:
        (Path(here) / WORK).mkdir()
        options.progress(Progress("copying", 0, portions, "portions"))
        copied = count(1)

        def show(_: None) -> None:
            options.progress(Progress("copying", next(copied), portions, "portions"))

        folder.run(partial(_copy, folder.out, Path(here)), range(portions), options, show)
        yield Path(here), options


def _copy(out: Path, here: Path, number: int) -> None:
    """Copy the candidates of a portion from a store; raises OutputError for a damaged object."""
    for kind in CANDIDATES:
        source, to = work_path(out, kind, number), work_path(here, kind, number)
        with source.open("rb") as file, atomic(to) as copy:
            copyfileobj(file, copy)
        with checked(source):
            copied = pa.ipc.open_file(pa.memory_map(str(to)))
            for batch in range(copied.num_record_batches):
                copied.get_batch(batch).validate(full=True)


def _write_shards(
    folder: RunFolder[Candidates], job: PortionJob, search: Search, options: PrepareOptions
) -> list[WrittenShard]:
    """Write the shards, one for each portion."""
    shards: list[WrittenShard] = []
    edges = pairwise(search.edges().tolist())
    tasks = [Range(number, start, stop) for number, (start, stop) in enumerate(edges)]
    options.progress(Progress("writing", 0, len(tasks), "shards"))

    def written(shard: WrittenShard) -> None:
        shards.append(shard)
        options.progress(Progress("writing", len(shards), len(tasks), "shards"))

    folder.run(partial(_write_shard, job, folder.shards, search), tasks, options, written)
    return sorted(shards)


def _manifest(
    folder: RunFolder[Candidates],
    options: PrepareOptions,
    notes: Sequence[Candidates],
    shards: Sequence[WrittenShard] = (),
    missing_tasks: int = 0,
) -> Manifest:
    """Return the manifest of the portions and shards that are made."""
    dropped = summed([*(note.dropped for note in notes), *(shard.dropped for shard in shards)])
    totals = {
        "rows_in": sum(note.rows_in for note in notes),
        "sentences": sum(note.sentences for note in notes),
        "kept": sum(shard.line["rows"] for shard in shards),
        "dropped": {reason: count for reason, count in dropped.items() if count},
        "damaged": summed(note.damaged for note in notes),
    }
    return Manifest(
        kind="prepare",
        totals=totals,
        packages=packages(),
        missing_tasks=missing_tasks,
        command=options.command or "noisegen prepare",
        shards=[shard.line for shard in shards],
        **folder.config,
    )


def _write_shard(job: PortionJob, folder: Path, search: Search, task: Range) -> WrittenShard:
    """Write the kept candidates of a portion as a shard."""
    path = shard_path(folder, task.number)
    codes = search.codes()[task.start : task.stop]
    texts = work_path(search.out, "texts", task.number)
    with checked(texts):
        batches = pa.ipc.open_file(pa.memory_map(str(texts))).num_record_batches
    schema = pa.schema([job.schema.field(name) for name in COLUMNS])
    with (
        atomic(path) as file,
        pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=["source"]) as writer,
    ):
        at = 0
        for number in range(batches):
            batch = read_batch(texts, number)
            kept = pa.array(codes[at : at + len(batch)] == KEPT)
            writer.write_batch(batch.filter(kept).select(COLUMNS))
            at += len(batch)
    line = {
        "file": path.relative_to(job.out).as_posix(),
        "rows": int((codes == KEPT).sum()),
        "sha256": file_digest(path),
    }
    dropped = {reason: int((codes == code).sum()) for code, reason in REASONS.items()}
    return WrittenShard(task.number, line, dropped)


def _card(manifest: Manifest) -> str:
    """Return the text of the dataset card."""
    card = Card(
        title="Clean sentences",
        verb="prepared",
        tags=("text", "sentences"),
        template=CARD,
        tasks=("feature-extraction", "fill-mask"),
        variable="sentences",
    )
    return dataset_card(manifest, card)
