"""`augment`: write shards of clean/noisy pairs, with a manifest and a dataset card."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augmentation import AugmentOptions, Format
from noisegen.augmentation.annotated import RowLayout, checked, stale_columns
from noisegen.augmentation.dry_run import ROWS_COUNTED, estimate
from noisegen.augmentation.one_file import (
    Target,
    make_part,
    opened,
    target_of,
    write_parts,
)
from noisegen.augmentation.plan import AugmentPlan, make_plan
from noisegen.augmentation.shards import Shard, ShardTask, make_shard
from noisegen.data.features import class_names
from noisegen.data.files import is_url, metered, modified, size_of
from noisegen.data.formats.registry import beginning_of, format_of, read_head
from noisegen.data.pairs import refuse_onto
from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import RESERVED, read, shard_ranges
from noisegen.errors import UsageError
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import id_numbers, splitmix_array
from noisegen.options import Strings, decode, public
from noisegen.runs import executors
from noisegen.runs.card import Card, dataset_card
from noisegen.runs.estimate import RunEstimate
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.lock import ALL_TASKS
from noisegen.runs.manifest import Manifest, summed
from noisegen.runs.progress import BYTES, Show, Tracker, silent
from noisegen.runs.records import File, Record, SourceHead, read_heads, write_heads
from noisegen.runs.store import mark_of, output_path
from noisegen.text.spans import PROTECTED

LAYOUT = Layout(
    "write",
    parts=("data/part-*.parquet",),
    result=Shard,
    columns=frozenset({"id", "clean", "noisy"}),
)
LOOK_ROWS, LOOK_BYTES = 100, 1 << 20  # first rows of a run that are looked at
IDS_AT_ONCE = 4_000_000  # ids, 32 MB, held in memory at a time while duplicates are counted


@public
def augment(
    sources: Strings,
    out: str | Path,
    to: Format | None = None,
    *,
    transforms: Strings = (),
    recipe: str | Recipe = "ugc",
    values: Mapping[str, object] | None = None,
    seed: int = 0,
    lang: str | None = None,
    protect: str = PROTECTED,
    code: Strings = (),
    nlaug_data: str | None = None,
    tagger: Literal["rule", "spacy"] = "rule",
    text_column: Strings = ("text",),
    spans: Strings = (),
    spans_lost: Literal["keep-clean", "drop"] = "keep-clean",
    align: str | None = None,
    id_column: str | None = None,
    encoding: str | None = None,
    lang_column: str | None = None,
    group_by: str | None = None,
    tokens: str | None = None,
    labels: str | None = None,
    label_names: Strings = (),
    copies: int = 1,
    with_clean: bool = False,
    strength: Strings = (),
    edits: bool = False,
    rows_per_shard: int = 100_000,
    limit: int | None = None,
    workers: int = 1,
    executor: str = "processes",
    resume: bool = False,
    force: bool = False,
    progress: Show = silent,
    command: str | None = None,
    part: str | None = None,
) -> Manifest:
    """Write clean/noisy pairs of `sources` to `out` as Parquet shards and return the manifest.

    One noisy file is written instead, with its rows and columns kept, if `to` names a format, if
    `out` is '-', or if it ends in .jsonl, .json, .csv, .tsv, .txt, .parquet, .conll or .m2 (also
    with .gz, .bz2, .xz or .zst). `noisegen augment --help` describes all options. `progress` is
    called with a `Progress` every second and after every shard. A script that asks for several
    `workers` must call this function below `if __name__ == "__main__":`. Raises NoisegenError.
    """
    options = decode(AugmentOptions, locals())
    return make(make_plan(options, output_path(options.out)), options)


def make(plan: AugmentPlan, options: AugmentOptions) -> Manifest:
    """Run the plan: write a folder of shards, or one noisy file."""
    if executors.is_remote(options.executor):
        plan = plan.absolute()
    target = target_of(str(options.out), options.to, plan)
    return make_file(plan, options, target) if target else make_shards(plan, options)


def make_file(plan: AugmentPlan, options: AugmentOptions, target: Target) -> Manifest:
    """Write one noisy file and return its manifest, which is not written."""
    if options.resume or options.part:
        raise UsageError("one file is written at once: --resume and --part need a folder")
    refuse_onto(Path(target.path), [item.path for item in plan.inputs])
    columns = replace(plan.job.columns, raw=target.writer.keeps)
    if head := read_head(plan.inputs[0], columns):
        target.check_columns(plan.job.columns.shown(head.schema.names), plan.job)
    if plan.first and plan.first.format in target.writer.keeps:
        beginning, line_end = beginning_of(plan.first)
        is_same = plan.first.format == target.format
        target = replace(target, beginning=beginning if is_same else b"", line_end=line_end)
    tasks = plan.tasks_of(target.rows(plan.request.rows_per_shard), columns)
    first = next(tasks)  # a source that cannot be read fails here, before the file is touched
    plan = looked(plan, first)
    columns = replace(plan.job.columns, raw=target.writer.keeps)
    job = replace(plan.job, encoding=target.encoding)
    function = partial(make_part, job, target, columns)
    parts = options.in_order(function, chain([first], tasks))
    tracker = _tracker(plan, options)
    written: list[Shard] = []
    as_is: Counter[str] = Counter()
    with opened(target, force=options.force) as file, closing(parts):
        for part in write_parts(file, parts, target):
            written.append(part.shard)
            as_is.update(part.as_is)
            tracker.add({"rows": part.shard.rows, BYTES: part.size})
            tracker.report()
    totals = _totals(written, 0) | {"as_is": summed([as_is])}
    return plan.manifest(options.command, totals, [])


def looked(plan: AugmentPlan, first: ShardTask) -> AugmentPlan:
    """Return the plan after a look at the rows of its first task, whose annotations are checked.

    Columns that look like annotations and that the user did not name get a line in `warnings`.
    Raises UsageError for paths that lead to nothing in these rows.
    """
    columns = plan.job.columns
    with metered():  # so that these bytes do not count: the task reads and counts them again
        batches = read(first.ranges, columns, batch_bytes=LOOK_BYTES)
        rows = next((batch.table.slice(0, LOOK_ROWS) for batch in batches), None)
    if rows is None or not len(rows) or columns.tokens:
        return plan
    if not columns.is_annotated:
        return replace(plan, warnings=stale_columns(rows, columns))
    columns, notes = checked(rows, columns, first.ranges[0].schema)
    return replace(
        plan,
        notes=tuple(notes),
        warnings=stale_columns(rows, columns),
        job=replace(plan.job, columns=columns),
    )


def _tracker(plan: AugmentPlan, options: AugmentOptions, *others: str) -> Tracker:
    """Return the progress tracker of a run; it shows the rows, and the counts named in `others`."""
    _, parts = options.share
    most = (options.limit or 0) * len(plan.job.versions)
    return Tracker(
        options.progress, "noising", "rows", others, total=plan.size // parts, most=most // parts
    )


def make_shards(plan: AugmentPlan, options: AugmentOptions) -> Manifest:
    """Write the shards that the folder of a run lacks, and its manifest and card."""
    folder = RunFolder(plan.job.out, LAYOUT, plan.config, options.share)
    heads = None
    if any(map(_has_head, plan.inputs)):
        heads = NotedHeads(read_heads(folder.out, folder.records.key))
    planned = plan.tasks(heads.head if heads else read_head)
    first = next(planned)  # a source that cannot be read fails here, before the folder is touched
    plan = looked(plan, first)
    folder.refuse_inputs(item.path for item in plan.inputs)
    resume = options.resume or options.part is not None
    with folder.opened(resume=resume, force=options.force, show=options.progress) as done:
        if heads:
            heads.note(folder)
        count = _make_missing(plan, folder, chain([first], planned), done, options)
        return finish(plan, folder, options.command, count)


class NotedHeads:
    """Row counts and sizes of the Parquet and Arrow files of the input, kept in the output folder.

    `augment` reads these numbers, the head of a file, from the file's footer. A later process of
    the run takes them from the folder instead. A head is kept if its file has the columns of the
    first file, and used again if both files are unchanged.
    """

    def __init__(self, noted: Iterator[SourceHead]) -> None:
        self._noted = noted
        self._lines = BytesIO()
        self._first: FileRange | None = None
        self._is_same = False  # True: the first input file is unchanged since its head was kept
        self._are_new = False

    def head(self, item: FileRange, columns: Columns) -> FileRange | None:
        """Return the result of `read_head` for the next input file; do not read an unchanged file.

        The files must be given in the order of the input.
        """
        file: FileRange | None
        noted, mark = next(self._noted, SourceHead()), _mark_of(item)
        is_same = bool(mark) and noted.mark == mark
        if self._first is None:
            self._is_same = is_same
        if self._first and self._is_same and is_same:
            rows, size = noted.rows, noted.bytes
            added = {name for name, _ in self._first.keys}
            keys = tuple(key for key in item.keys if key[0] in added)
            file = replace(self._first, path=item.path, stop=rows, rows=rows, size=size, keys=keys)
        else:
            file = read_head(item, columns)
            self._first = self._first or file
        is_alike = file and self._first and file.is_like(self._first)
        head = SourceHead(mark, file.rows, file.size) if file and is_alike else SourceHead()
        self._lines.write(msgspec.json.encode(head) + b"\n")
        self._are_new |= head != noted
        return file

    def note(self, folder: RunFolder[Shard]) -> None:
        """Write the heads of the input files to the run's folder, unless it has all already."""
        if self._are_new:
            self._lines.seek(0)
            write_heads(folder.out, self._lines, folder.records.key)
        self._lines.close()


def _has_head(item: FileRange) -> bool:
    """Return whether a file is in a format that stores its number of rows, such as Parquet."""
    return bool(item.format) and format_of(item).cut == "rows"


def _mark_of(item: FileRange) -> str:
    """Return a text that changes whenever the content of an input file changes.

    It is '' for a missing file, and for a format without row counts, such as plain text.
    """
    if not _has_head(item):
        return ""
    if is_url(item.path):
        written = modified(item.path)
        return f"{size_of(item.path)} {written}" if written else ""
    with suppress(OSError):
        return mark_of(item.path)
    return ""


def _make_missing(
    plan: AugmentPlan,
    folder: RunFolder[Shard],
    planned: Iterator[ShardTask],
    done: Mapping[int, Record[Shard]],
    options: AugmentOptions,
) -> int:
    """Make the shards that this `--part` of the run lacks; return the shard count of the run."""
    remainder, count = options.share
    sizes: dict[int, int] = {}  # bytes of input per shard, by the number of its first row
    number_of_tasks = 0
    tracker = _tracker(plan, options, "shards")

    def add(shard: Shard) -> None:
        tracker.add({"rows": shard.rows, "shards": 1, BYTES: sizes.pop(shard.first_row)})

    def missing() -> Iterator[ShardTask]:
        nonlocal number_of_tasks
        for task in planned:
            number_of_tasks += 1
            if task.number % count != remainder:
                continue
            sizes[task.first_row] = task.size
            record = done.get(task.number)
            if record and record.result.is_of(task):
                add(record.result)
            else:
                tracker.report()
                yield task

    def finished(record: Record[Shard]) -> None:
        add(record.result)
        tracker.report()

    with tracker.watching(partial(folder.live, folder.shards)):
        folder.run(partial(make_shard, plan.job, folder.shards), missing(), options, finished)
    return number_of_tasks


def estimate_of(plan: AugmentPlan, workers: int) -> RunEstimate | None:
    """Estimate the output and the time of a planned run by a run on its first rows.

    Returns None if the size of the input is unknown.
    """
    request = plan.request
    if not (total := plan.size):
        return None

    def run(out: str, rows: int, copies: int) -> Manifest:
        first = replace(request, limit=rows, copies=copies)
        job = replace(plan.job, out=Path(out), copies=copies, with_clean=False)
        part = replace(plan, request=first, job=job)
        return make_shards(part, AugmentOptions(first.sources, out, limit=rows, copies=copies))

    shards = shard_ranges(plan.inputs, plan.job.columns, ROWS_COUNTED, request.limit)
    return estimate(chain.from_iterable(shards), total, run, request, workers)


# The end of a run.


def finish(
    plan: AugmentPlan, folder: RunFolder[Shard], command: str | None, tasks: int
) -> Manifest:
    """Write manifest and card for the shards in the folder of a run.

    Manifest and card are written again if another `--part` of the run adds shards meanwhile. A
    manifest that already lists exactly these shards is kept. `tasks` is the number of shards of the
    whole run. Raises OutputError if a shard of this part is missing.
    """
    while True:
        done = folder.done()
        folder.expect_all(tasks, done)
        shards = {record.files[0]: record.result for record in done.values()}
        listed = [
            {
                "file": file.name,
                "rows": shard.rows,
                "changed": shard.changed,
                "sha256": file.sha256,
            }
            for file, shard in shards.items()
        ]
        earlier = folder.earlier_manifest() if (folder.out / "README.md").exists() else None
        if earlier and earlier.shards == listed:
            return folder.end(earlier)
        duplicates = _duplicate_ids(plan, shards) if plan.job.columns.row_id else 0
        totals = _totals(shards.values(), duplicates)
        manifest = plan.manifest(command, totals, listed, tasks - len(shards))
        folder.end(manifest, _card(plan, manifest, shards.values()))
        if folder.share == ALL_TASKS or len(folder.done()) == len(shards):
            return manifest


def _totals(shards: Collection[Shard], duplicate_ids: int) -> dict[str, Any]:
    """Return the totals of all shards for the manifest.

    CER is the number of character errors per clean character, WER the number of word errors per
    clean word.
    """
    names = ("rows", "rows_in", "changed", "characters", "character_errors", "words", "word_errors")
    sums: Counter[str] = Counter()
    for shard in shards:
        sums.update({name: getattr(shard, name) for name in names})
    repeated = {"duplicate_id": duplicate_ids} if duplicate_ids else {}
    return {
        "rows": sums["rows"],
        "changed": sums["changed"],
        "cer": round(sums["character_errors"] / max(1, sums["characters"]), 6),
        "wer": round(sums["word_errors"] / max(1, sums["words"]), 6),
        "rows_in": sums["rows_in"],
        "dropped": summed([repeated, *(shard.dropped for shard in shards)]),
    }


def _duplicate_ids(plan: AugmentPlan, shards: Mapping[File, Shard]) -> int:
    """Return the number of input rows that repeat the id of an earlier row.

    Above IDS_AT_ONCE ids, the shards are read several times, with some of the ids counted each
    time, to save memory.
    """
    repeated = 0
    passes = sum(shard.rows for shard in shards.values()) // IDS_AT_ONCE + 1
    version, names = plan.job.versions[0], plan.job.version_columns
    for number in range(passes):
        parts = [np.zeros(0, np.uint64)]
        for shard in shards:
            with (plan.job.out / shard.name).open("rb") as file:
                rows = pq.read_table(file, columns=["id", *names])
            for name in names:
                rows = rows.filter(pc.equal(rows[name], getattr(version, name)))
            ids = id_numbers(rows["id"].combine_chunks())
            parts.append(ids[splitmix_array(ids) % np.uint64(passes) == number])
        ordered = np.sort(np.concatenate(parts))  # seven times faster than np.unique
        repeated += int(np.count_nonzero(np.diff(ordered) == 0))
    return repeated


def _card(plan: AugmentPlan, manifest: Manifest, shards: Collection[Shard]) -> str:
    """Return the text of the dataset card.

    It names the columns that come from the input and the transforms of the recipe. It names word
    lists only for transforms that were drawn in at least one changed row.
    """
    drawn = {name for shard in shards for name in shard.transforms}
    labelled = ("token-classification",) if manifest.options["tokens"] else ()
    card = Card(
        title="Clean and noisy text",
        verb="made",
        tags=("noise", "user-generated-content"),
        tasks=("sentence-similarity", *labelled),
        template=Path(__file__).with_name("card.txt"),
        values={
            "columns": _input_columns(plan, manifest),
            "is_way_back": plan.job.is_way_back,
            "transforms": dict.fromkeys(step.transform for step in plan.recipe.steps()),
            "word_lists": [note for note in manifest.dictionaries if note["transform"] in drawn],
        },
    )
    return dataset_card(manifest, card)


def _input_columns(plan: AugmentPlan, manifest: Manifest) -> dict[str, str]:
    """Return the type and the content of each column of the input that the shards keep, by name.

    If a column has classes, the type is followed by the names of the classes.
    """
    if not manifest.shards:
        return {}
    with (plan.job.out / manifest.shards[0]["file"]).open("rb") as file:
        schema = pq.read_schema(file)
    classes = class_names(schema)
    contents = _changed_columns(plan)
    columns = {}
    for field in schema:
        if field.name not in (*RESERVED, *plan.job.version_columns):
            of_classes = f" of {', '.join(classes[field.name])}" if field.name in classes else ""
            content = contents.get(field.name, "as it came")
            columns[field.name] = f"{field.type}{of_classes}, {content}"
    return columns


def _changed_columns(plan: AugmentPlan) -> dict[str, str]:
    """Return the content of each input column that noise changes: 'with noise', by name."""
    columns, names = plan.job.columns, plan.first.schema.names if plan.first else []
    if not columns.is_annotated:
        return {}
    layout = RowLayout.of(columns, names)
    texts = [path.column for path in layout.texts]
    moved = [name for name, is_moved in layout.columns.items() if is_moved]
    moved += [layout.align.path.column] if layout.align else []
    contents = dict.fromkeys(moved, "moved with the noise") | dict.fromkeys(texts, "with noise")
    shown = dict(zip(names, columns.shown(names), strict=True))
    paths = {"paths": "the places of the texts in their row"} if columns.paths else {}
    return {shown.get(name, name): content for name, content in contents.items()} | paths
