"""`augment`: sources in, a folder of clean/noisy shards with manifest and dataset card out."""

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from noisegen import executors, manifest, registry
from noisegen.card import card
from noisegen.draws import mix_array
from noisegen.engine import PROTECTED
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.ids import id_numbers
from noisegen.lexicon import head_of
from noisegen.manifest import Manifest, Shard
from noisegen.recipe import Recipe, parse, parse_step
from noisegen.registry import Settings
from noisegen.shards import Job, make_shard, read_note
from noisegen.sources import Columns, Input, Task, expand, tasks
from noisegen.text import protect_kinds
from noisegen.version import __version__

OURS = ("part-*.parquet", "part-*.parquet.*.tmp", "manifest.json", "README.md", "*.json.*.tmp")
IDS_AT_ONCE = 4_000_000  # held in memory while duplicate ids are counted: 32 MB

Progress = Callable[[Shard], None]


@dataclass(frozen=True)
class Request:
    """What a user asks of `augment`; every field is an option of the command."""

    sources: tuple[str, ...]
    recipe: str | Recipe = "mix_all"
    transforms: tuple[str, ...] = ()
    values: Mapping[str, object] | None = None
    seed: int = 0
    copies: int = 1
    lang: str = "en"
    text_column: str = "text"
    id_column: str | None = None
    tokens: str | None = None
    labels: str | None = None
    protect: str = PROTECTED
    edits: bool = False
    rows_per_shard: int = 100_000
    limit: int | None = None
    code: tuple[str, ...] = ()
    nlaug_data: str | None = None
    tagger: str = "auto"

    def __post_init__(self) -> None:
        for name in ("copies", "rows_per_shard"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} = {getattr(self, name)} must be at least 1")
        if (self.tokens is None) != (self.labels is None):
            raise UsageError("--tokens and --labels go together")

    @property
    def columns(self) -> Columns:
        """The columns that the user named."""
        return Columns(self.text_column, self.id_column, self.tokens, self.labels)


@dataclass(frozen=True)
class Run:
    """A request made definite: the recipe for its language, its inputs, the job of a worker."""

    request: Request
    recipe: Recipe
    inputs: list[Input]
    job: Job
    config: dict[str, Any]
    left_out: list[str]
    skipped: list[str]

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks, one a shard."""
        request = self.request
        return tasks(self.inputs, request.columns, request.rows_per_shard, request.limit)


def augment(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    part: str | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    command: str | None = None,
    **options: Any,
) -> Manifest:
    """Write clean/noisy pairs of `sources` to `out` as Parquet shards and return the manifest.

    `options` are the fields of `Request`: recipe, transforms, seed, copies, lang, text_column,
    id_column, tokens, labels, protect, edits, rows_per_shard, limit, code, nlaug_data, tagger,
    values. `part` 'I/N' makes every N-th shard beginning with the I-th. Raises NoisegenError.
    """
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    run = prepare(Request(tuple(map(str, given)), **options), Path(out))
    return carry_out(
        run, workers=workers, executor=executor, part=part, resume=resume, force=force,
        progress=progress, command=command or _command(run, out),
    )  # fmt: skip


def prepare(request: Request, out: Path) -> Run:
    """Check everything that can be checked before the first row is read."""
    for path in request.code:
        registry.load_code(path)
    recipe, left_out = recipe_of(request)
    found = expand(request.sources)
    inputs = [item for item in found if not item.skipped]
    nlaug_data = Path(request.nlaug_data).resolve() if request.nlaug_data else None
    job = Job(
        out.resolve(), recipe.to_yaml(), "", request.seed, request.copies, request.lang,
        request.columns, protect_kinds(request.protect), request.edits, request.tagger, nlaug_data,
        tuple(str(Path(path).resolve()) for path in request.code),
    )  # fmt: skip
    taggers = sorted({name for kernel in job.engine().kernels if (name := _tagger(kernel))})
    job = replace(job, tagger=taggers[0].partition(":")[0] if taggers else request.tagger)
    config = {
        "version": __version__,
        "seed": request.seed,
        "recipe": recipe.to_dict(),
        "recipe_digest": recipe.digest,
        "sources": [{"path": item.path, "bytes": item.size} for item in inputs],
        "dictionaries": dictionaries(recipe, job),
        "options": _options(request) | {"tagger": taggers[0] if taggers else None},
    }
    job = replace(job, config=json.dumps(config, sort_keys=True, ensure_ascii=False))
    skipped = [f"{item.path}: {item.skipped}" for item in found if item.skipped]
    return Run(
        request, recipe, [_absolute(item) for item in inputs], job, config, left_out, skipped
    )


def _absolute(item: Input) -> Input:
    """Return an input whose path means the same to workers elsewhere."""
    return replace(item, path=str(Path(item.path).resolve())) if item.size is not None else item


def recipe_of(request: Request) -> tuple[Recipe, list[str]]:
    """Return the recipe that a request means, and the steps left out for want of data."""
    if request.transforms:
        steps = [parse_step(text) for text in request.transforms]
        for step in steps:
            registry.get(step.transform).check_language(request.lang)
        recipe = Recipe.of(steps, "+".join(step.transform for step in steps))
    else:
        recipe = (
            request.recipe if isinstance(request.recipe, Recipe) else Recipe.named(request.recipe)
        )
    return recipe.with_values(request.values or {}).for_language(request.lang)


def _tagger(kernel: object) -> str | None:
    tagger = getattr(kernel, "tagger", None)
    return tagger.name if tagger else None


def _options(request: Request) -> dict[str, Any]:
    """Return the options that decide rows and shards, for the manifest."""
    left_out = ("sources", "recipe", "transforms", "values", "seed", "tagger")
    return {name: value for name, value in asdict(request).items() if name not in left_out}


def dictionaries(recipe: Recipe, job: Job) -> list[dict[str, str]]:
    """Return the word lists of a recipe with hash, source and licence."""
    settings = Settings(job.lang, nlaug_data=job.nlaug_data)
    found = []
    for name in dict.fromkeys(step.transform for step in recipe.steps()):
        for path in registry.get(name).data(settings):
            note = {"transform": name, "file": path.name, "sha256": manifest.file_digest(path)}
            found.append(note | head_of(path))
    return found


def carry_out(
    run: Run, *, workers: int, executor: str, part: str | None, resume: bool, force: bool,
    progress: Progress | None, command: str,
) -> Manifest:  # fmt: skip
    """Make the shards that are missing and write manifest and card."""
    out = run.job.out
    done = _open_folder(
        run, resume=resume or part is not None, force=force, shared=part is not None
    )
    mine, planned = parse_part(part), 0

    def missing() -> Iterator[Task]:
        nonlocal planned
        for task in run.tasks():
            planned += 1
            if task.number % mine[1] == mine[0] and not _is_done(done.get(task.number), task):
                yield task

    for shard in executors.run(partial(make_shard, run.job), missing(), executor, workers):
        if progress:
            progress(shard)
    if not planned:
        raise SourceError(f"no rows in {', '.join(run.request.sources)}")
    return _finish(run, out, command)


def parse_part(part: str | None) -> tuple[int, int]:
    """Read 'I/N' (I from 1 to N): the remainder of the shard numbers to make, and N."""
    if part is None:
        return 0, 1
    number, _, count = part.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UsageError(f"cannot read part {part!r}: write I/N with I from 1 to N, such as 2/8")
    return int(number) - 1, int(count)


def _open_folder(run: Run, *, resume: bool, force: bool, shared: bool) -> dict[int, Shard]:
    """Make the folder or check what is in it; return the shards that are there to keep."""
    out = run.job.out
    try:
        out.mkdir(parents=True, exist_ok=True)
        present = list(out.iterdir())
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}") from error
    if force:
        _remove(out, OURS)
        return {}
    if present and not resume:
        raise OutputError(f"{out} is not empty; add --resume to go on or --force to write over it")
    if not shared:
        _remove(out, [pattern for pattern in OURS if pattern.endswith(".tmp")])
    return {number: shard for number, shard in _shards(run) if number >= 0}


def _remove(out: Path, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        for path in out.glob(pattern):
            path.unlink()


def _shards(run: Run) -> Iterator[tuple[int, Shard]]:
    """Yield the finished shards in the folder; raises OutputError for another configuration."""
    for path in sorted(run.job.out.glob("part-*.parquet")):
        note = read_note(path)
        if note is None:
            continue  # damaged: it will be made again
        if note[0] != run.job.config:
            difference = _difference(json.loads(note[0]), json.loads(run.job.config))
            raise OutputError(
                f"{run.job.out} was made with another configuration ({difference}); "
                "use another folder, or --force to write over it"
            )
        yield int(path.stem.removeprefix("part-")), note[1]


def _difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Name the first thing that differs between two configurations."""
    for name in ours:
        old, new = theirs.get(name), ours[name]
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict) and name == "options":
            return _difference(old, new)
        shown = f"{name} {old!r}, not {new!r}"
        return shown if len(shown) < 80 else f"other {name}"
    return "other noisegen"


def _is_done(shard: Shard | None, task: Task) -> bool:
    return shard is not None and (shard.first_row, shard.rows_in) == (task.first_row, task.rows)


def _finish(run: Run, out: Path, command: str) -> Manifest:
    """Write manifest and card for the shards present; again if another part added some."""
    while True:
        shards = [shard for _, shard in sorted(_shards(run), key=lambda pair: pair[0])]
        duplicates = duplicate_ids(out, run) if run.request.id_column else 0
        made = _manifest(run, out, shards, duplicates, command)
        manifest.write_text(out / "manifest.json", made.to_json())
        manifest.write_text(out / "README.md", card(made))
        if len(list(out.glob("part-*.parquet"))) == len(shards):
            return made


def _manifest(run: Run, out: Path, shards: list[Shard], duplicates: int, command: str) -> Manifest:
    listed = [
        {
            "file": shard.file,
            "rows": shard.rows,
            "changed": shard.changed,
            "sha256": manifest.file_digest(out / shard.file),
        }
        for shard in shards
    ]
    return Manifest(
        command=command, shards=listed, totals=manifest.totals(shards, duplicates),
        packages=manifest.packages(), **run.config,
    )  # fmt: skip


def duplicate_ids(out: Path, run: Run) -> int:
    """Count the rows whose id an earlier row has, in bounded memory."""
    paths = sorted(out.glob("part-*.parquet"))
    rows = sum(pq.read_metadata(path).num_rows for path in paths) // run.request.copies
    passes = rows // IDS_AT_ONCE + 1
    return sum(_repeated(paths, run.request.copies, number, passes) for number in range(passes))


def _repeated(paths: list[Path], copies: int, number: int, passes: int) -> int:
    parts = [np.zeros(0, np.uint64)]
    for path in paths:
        table = pq.read_table(path, columns=["id", "copy"] if copies > 1 else ["id"])
        if copies > 1:
            table = table.filter(table["copy"].to_numpy() == 0)
        ids = id_numbers(table["id"].combine_chunks())
        parts.append(ids[mix_array(ids) % np.uint64(passes) == number])
    ids = np.concatenate(parts)
    return len(ids) - len(np.unique(ids))


def _command(run: Run, out: str | Path) -> str:
    sources = " ".join(map(shlex.quote, run.request.sources))
    return f"noisegen augment {sources} -o {shlex.quote(str(out))}"


def request_of(made: Manifest) -> Request:
    """Return the request that a manifest answers (`--from`)."""
    recipe = parse(json.dumps(made.recipe), "manifest")
    tagger = (made.options["tagger"] or "auto").partition(":")[0]
    options = {**made.options, "tagger": tagger, "code": tuple(made.options["code"])}
    sources = tuple(source["path"] for source in made.sources)
    return Request(sources, recipe, seed=made.seed, **options)


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
