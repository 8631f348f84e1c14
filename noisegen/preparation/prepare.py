"""Runs of `prepare`: raw text becomes a folder of clean sentences with manifest and dataset card.

Workers write the candidates of each portion of the input (see `portions`). Once all portions are
done, duplicates are searched in the whole run (see `duplicates`) and the shards are written.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import completed, expand, total_size
from noisegen.errors import SourceError, UsageError
from noisegen.options import Strings, argument, decode, listed, option, public
from noisegen.preparation.duplicates import KEPT, REASONS, SPAN, Range, Search
from noisegen.preparation.intermediate import (
    CANDIDATES,
    FOUND,
    INTERMEDIATE,
    WORK,
    checked,
    read_batch,
    work_path,
)
from noisegen.preparation.portions import (
    Candidates,
    Portion,
    PortionJob,
    Rows,
    make_candidates,
    portions_of,
)
from noisegen.preparation.sentences import Criteria
from noisegen.runs.atomic import atomic, file_digest, remove
from noisegen.runs.card import Card, dataset_card
from noisegen.runs.executors import is_remote
from noisegen.runs.folder import Layout, RunFolder, shard_path
from noisegen.runs.lock import ALL_TASKS
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
from noisegen.runs.progress import BYTES, Progress, Show, Tracker, silent
from noisegen.runs.records import Record
from noisegen.runs.store import StorePath, listing, output_path
from noisegen.text import languages
from noisegen.text.segmentation import language
from noisegen.version import __version__

COLUMNS = ("id", "text", "source", "row")
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
    # RoLASER's authors split the web corpus OSCAR, which had no duplicates, into lines and
    # sentences. They dropped only sentences with a small share of common characters.
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
CARD = Card(
    title="Clean sentences",
    verb="prepared",
    tags=("text", "sentences"),
    template=Path(__file__).with_name("card.txt"),
    tasks=("feature-extraction", "fill-mask"),
    variable="sentences",
)
Result = TypeVar("Result")
_THRESHOLDS = ("min_chars", "max_chars", "min_common", "min_letters")


@dataclass(frozen=True)
class PrepareOptions(PartOptions):
    """Options of `prepare`: what sentences must meet, and which of them count as duplicates."""

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
        """The options that a profile sets: the user's value of each, or else the profile's."""
        given = {name: getattr(self, name) for name in PROFILES[self.profile]}
        chosen = {name: value for name, value in given.items() if value is not None}
        return {**PROFILES[self.profile], **chosen}

    def job(self, inputs: Sequence[FileRange]) -> tuple[PortionJob, dict[str, Any]]:
        """Return the settings for workers, and the configuration that the manifest records.

        A run resumes only with an equal configuration. Raises UsageError and MissingExtra.
        """
        spoken = language(self.lang, splitter=self.splitter)
        columns = Columns.of_texts(self.text_column, self.id_column)
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
                **{name: decided[name] for name in _THRESHOLDS},
                tidy=decided["tidy"] == "yes",
                identified=model is not None,
            ),
            columns,
            decided["duplicates"],
        )
        return job, json.loads(json.dumps(config))


SHARDS = "data/part-*.parquet"
LAYOUT = Layout(
    "prepare",
    parts=(SHARDS,),
    scratch=INTERMEDIATE,
    result=Candidates,
    columns=frozenset(COLUMNS),
)


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

    The rows do not depend on `workers` or `part`. While tasks of other parts are missing, the
    manifest is not written, and the returned one has their count, `missing_tasks`.
    `progress` is called with a `Progress` every second and after each task. Raises NoisegenError.
    """
    return _run(decode(PrepareOptions, locals()))


def _run(options: PrepareOptions) -> Manifest:
    """Run `prepare` with options that are checked already."""
    inputs = expand(listed(options.sources))
    job, config = options.job(inputs)
    planned = portions_of(
        inputs,
        job.columns,
        options.rows_per_shard,
        options.limit,
        absolute=is_remote(options.executor),
    )
    first = next(planned, None)  # fails on a bad source before the folder is changed
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
    """Make the candidates of this process's unfinished portions; finish the run if all are done."""
    with folder.alone("finish"):
        if manifest := _finished(folder):
            return manifest
    portions = _make_portions(folder, job, planned, done, options, tracker)
    with folder.alone("finish"):
        if manifest := _finished(folder):  # another process finished the run meanwhile
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
        folder.share = ALL_TASKS  # this process does the rest of the run alone
        return _finish(folder, job, there, options)


def _make_portions(
    folder: RunFolder[Candidates],
    job: PortionJob,
    planned: Iterable[Portion],
    done: Mapping[int, Record[Candidates]],
    options: PrepareOptions,
    tracker: Tracker,
) -> dict[int, Rows]:
    """Make the candidates of this process's unfinished portions (see `--part`).

    Return the `Rows` (first row, row count) of each portion of the run, by number.
    `planned` are all portions of the run, `done` the records of finished portions by number.
    """
    remainder, parts = folder.share
    portions: dict[int, Rows] = {}
    sizes: dict[int, int] = {}  # input bytes of portions in progress, by number

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
    if head := list(islice(to_do, 1)):  # new candidates: found duplicates are out of date
        remove(*(path for kind in FOUND for path in (job.out / WORK).glob(f"{kind}-*")))
    with tracker.watching(partial(folder.live, job.out / WORK)):
        folder.run(partial(make_candidates, job), chain(head, to_do), options, finished)
    return portions


def _finished(folder: RunFolder[Candidates]) -> Manifest | None:
    """Return the manifest of a finished run whose shards are all there and undamaged, else None.

    Intermediate files that are left in the folder are removed.
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


# The end of a run: find duplicates, write the shards and the manifest.


class WrittenShard(NamedTuple):
    """A written shard: its manifest entry, and counts of its dropped candidates by reason."""

    number: int
    line: dict[str, Any]
    dropped: dict[str, int]


def _finish(
    folder: RunFolder[Candidates], job: PortionJob, notes: list[Candidates], options: PrepareOptions
) -> Manifest:
    """Find duplicates, write shards, manifest and card, and remove the intermediate files.

    `notes` has the counts of each portion, in order.
    """
    counts = [note.rows for note in notes]
    # There is one task per SPAN candidates, so further processes would have no work.
    options = replace(options, workers=min(options.workers, sum(counts) // SPAN + 1))
    with _local_folder(folder, len(notes), options) as (out, options):
        search = Search(out, job.duplicates == "near", job.shingle, options.similarity, job.batch)
        search.begin(counts)
        search.find(lambda do, tasks, then: folder.run(do, tasks, options, then), options.progress)
        shards = _write_shards(folder, job, search, options)
    manifest = _manifest(folder, options, notes, shards)
    folder.end(manifest, dataset_card(manifest, CARD))
    folder.remove_scratch()
    return manifest


@contextmanager
def _local_folder(
    folder: RunFolder[Candidates], portions: int, options: PrepareOptions
) -> Iterator[tuple[Path, PrepareOptions]]:
    """Yield a local folder with the candidates, and the run's options for tasks that read it.

    Candidates in a remote store are copied to a temporary folder. The options then make tasks run
    on this machine, since other machines cannot read that folder.
    """
    if not isinstance(folder.out, StorePath):
        yield folder.out, options
        return
    options = replace(options, executor="processes")
    with TemporaryDirectory(prefix="noisegen-") as here:
        (Path(here) / WORK).mkdir()
        copy = partial(_copy, folder.out, Path(here))
        _run_all(folder, copy, range(portions), options, "copying", "portions")
        yield Path(here), options


def _copy(out: Path, here: Path, number: int) -> None:
    """Copy the files of a portion from a store to a folder; raises OutputError if damaged."""
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
    """Write a shard per portion, without duplicates; return the shards in order."""
    edges = pairwise(search.edges().tolist())
    tasks = [Range(number, start, stop) for number, (start, stop) in enumerate(edges)]
    write = partial(_write_shard, job, folder.shards, search)
    return sorted(_run_all(folder, write, tasks, options, "writing", "shards"))


def _run_all(
    folder: RunFolder[Candidates],
    function: Callable[[Any], Result],
    tasks: Sequence[Any],
    options: PrepareOptions,
    doing: str,
    unit: str,
) -> list[Result]:
    """Run `function` on each task in the workers; return the results, first finished first.

    Progress is reported under the name `doing`; `unit` says what tasks are, such as 'shards'.
    """
    results: list[Result] = []

    def finished(result: Result) -> None:
        results.append(result)
        options.progress(Progress(doing, len(results), len(tasks), unit))

    options.progress(Progress(doing, 0, len(tasks), unit))
    folder.run(function, tasks, options, finished)
    return results


def _manifest(
    folder: RunFolder[Candidates],
    options: PrepareOptions,
    notes: Sequence[Candidates],
    shards: Sequence[WrittenShard] = (),
    missing_tasks: int = 0,
) -> Manifest:
    """Return the manifest; `notes` has the counts of finished portions, `shards` those written."""
    dropped = summed([*(note.dropped for note in notes), *(shard.dropped for shard in shards)])
    totals = {
        "rows_in": sum(note.rows_in for note in notes),
        "sentences": sum(note.sentences for note in notes),
        "kept": sum(shard.line["rows"] for shard in shards),
        "dropped": dropped,
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
    """Write the kept candidates of a portion to a shard in `folder`.

    `task` has the index of the portion and the range of its candidate indices.
    """
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
    counts = {reason: int((codes == code).sum()) for code, reason in REASONS.items()}
    dropped = {reason: count for reason, count in counts.items() if count}
    return WrittenShard(task.number, line, dropped)
