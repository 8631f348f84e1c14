"""`augment`: sources in, a folder of clean/noisy shards with manifest and dataset card out."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from noisegen.augment import AugmentOptions, Request
from noisegen.augment.shards import Shard, ShardJob, make_shard
from noisegen.data.sources import Input, ShardInput, expand, shard_inputs
from noisegen.errors import RecipeError, UsageError
from noisegen.noise import registry
from noisegen.noise.lexicon import head_of
from noisegen.noise.recipe import Recipe, parse, parse_step, step_values
from noisegen.noise.registry import Settings
from noisegen.noise.rng import check_seed, id_numbers, mix_array
from noisegen.options import command_line, public
from noisegen.runs.atomic import file_digest
from noisegen.runs.folder import Layout, RunFolder, listed, shard_path
from noisegen.runs.manifest import Manifest, dataset_card, packages, source_names, summed
from noisegen.runs.progress import Progress
from noisegen.text.spans import protect_kinds
from noisegen.version import __version__

LAYOUT = Layout(
    "write", "manifest.json", frozenset({"recipe_digest"}), parts=("part-*.parquet",),
    notes="part-*.parquet", note=Shard,
)  # fmt: skip
IDS_AT_ONCE = 4_000_000  # held in memory while duplicate ids are counted: 32 MB


@dataclass(frozen=True)
class AugmentPlan:
    """A request made definite: the recipe for its language, its inputs, the job of a worker.

    `left_out` are the transforms without data for the language, `skipped` the files not read.
    """

    request: Request
    recipe: Recipe
    inputs: list[Input]
    job: ShardJob
    config: dict[str, Any]
    left_out: list[str]
    skipped: list[str]

    def tasks(self) -> Iterator[ShardInput]:
        """Yield the tasks, one a shard."""
        request = self.request
        return shard_inputs(self.inputs, self.job.columns, request.rows_per_shard, request.limit)


def _augment(options: AugmentOptions) -> Manifest:
    """Write clean/noisy pairs of `sources` to `out` as Parquet shards and return the manifest.

    `progress` is called with a `Progress` after every shard. With several `workers` a script must
    call it below `if __name__ == "__main__":`. Raises NoisegenError.
    """
    return make_shards(make_plan(options, Path(options.out)), options)


augment = public(AugmentOptions, _augment)


def make_shards(plan: AugmentPlan, options: AugmentOptions) -> Manifest:
    """Make the shards that are missing and write manifest and card."""
    folder = RunFolder(plan.job.out, LAYOUT, plan.config, options.share)
    remainder, count = options.share
    planned = plan.tasks()
    first = next(planned)  # so that a source that cannot be read leaves the folder alone
    folder.refuse_inputs(item.path for item in plan.inputs)
    in_parts = options.part is not None
    done = folder.open(resume=options.resume or in_parts, force=options.force)
    finished = {(number, shard.first_row, shard.rows_in) for number, shard in done.items()}
    missing = (
        task
        for task in chain([first], planned)
        if task.number % count == remainder
        and (task.number, task.first_row, task.rows) not in finished
    )
    digests: dict[str, str] = {}
    rows = 0

    def note(shard: Shard) -> None:
        nonlocal rows
        digests[shard.file] = shard.sha256
        rows += shard.rows
        options.report(Progress(done=rows, unit="rows", counts={"shards": len(digests)}))

    folder.run(partial(make_shard, plan.job), missing, options, note)
    return finish(plan, folder, options.command or _command(options), digests)


def _command(options: AugmentOptions) -> str:
    """Return the command line that asks for the same rows; a recipe object goes by its name."""
    recipe = options.recipe.name if isinstance(options.recipe, Recipe) else options.recipe
    values = (options.values or {}).items()
    flags = [word for name, value in values for word in ("--set", f"{name}={value}")]
    return command_line("augment", replace(options.asked(), recipe=recipe, part=None), *flags)


# The plan.

_BINDING = (  # options that decide rows and shards, as the manifest lists them
    "copies", "lang", "text_column", "id_column", "tokens", "labels", "protect", "edits",
    "rows_per_shard", "limit",
)  # fmt: skip


def make_plan(request: Request, out: Path) -> AugmentPlan:
    """Check everything that can be checked before the first row is read."""
    check_seed(request.seed)
    protect_kinds(request.protect)
    if request.nlaug_data and not Path(request.nlaug_data).is_dir():
        raise UsageError(f"--nlaug-data {request.nlaug_data!r}: no such folder")
    code = listed(request.code)
    for path in code:
        registry.load_code(path)
    whole = recipe_of(request)
    recipe, left_out = whole.for_language(request.lang)
    named = expand(listed(request.sources))
    inputs = [item for item in named if not item.skipped]
    job, tagger = _job(request, whole, out)
    config = {
        "version": __version__,
        "seed": request.seed,
        "recipe": whole.to_dict(),
        "recipe_digest": whole.digest,
        "sources": [{"path": item.path, "bytes": item.size} for item in inputs],
        "dictionaries": dictionaries(recipe, job.engine().settings),
        "options": {
            **{name: getattr(request, name) for name in _BINDING},
            "code": code,
            "nlaug_data": request.nlaug_data,
            "code_sha256": [digest for _, digest in job.code],
            "tagger": tagger,
        },
    }
    config = json.loads(json.dumps(config))  # as it comes back from the manifest
    job = replace(job, config=json.dumps(config, sort_keys=True, ensure_ascii=False))
    # Paths mean the same to workers elsewhere.
    absolute = [
        item if item.size is None else replace(item, path=str(Path(item.path).resolve()))
        for item in inputs
    ]
    skipped = [f"{item.path}: {item.skipped}" for item in named if item.skipped]
    return AugmentPlan(request, recipe, absolute, job, config, left_out, skipped)


def recipe_of(request: Request) -> Recipe:
    """Return the recipe that a request means, for all languages."""
    if request.transforms:
        try:
            steps = [parse_step(text) for text in listed(request.transforms)]
        except RecipeError as error:  # of the command line, so wrong usage
            raise UsageError(str(error)) from error
        for step in steps:
            registry.get(step.transform).check_language(request.lang)
        recipe = Recipe.of(steps, "+".join(step.transform for step in steps))
    elif isinstance(request.recipe, Recipe):
        recipe = request.recipe
    else:
        recipe = Recipe.named(request.recipe)
    return recipe.with_values(request.values or {})


def _job(request: Request, recipe: Recipe, out: Path) -> tuple[ShardJob, str | None]:
    """Return the job, and the tagger that it will use wherever it runs; None if it needs none."""
    given = {field.name: getattr(request, field.name) for field in fields(Request)}
    without: dict[str, Any] = dict.fromkeys(("sources", "transforms", "code"), ())
    without |= {"recipe": "", "values": None}
    if request.nlaug_data:
        without["nlaug_data"] = str(Path(request.nlaug_data).resolve())
    rows = Request(**given | without)
    code = [Path(path).resolve() for path in listed(request.code)]
    digests = tuple((str(path), file_digest(path)) for path in code)
    job = ShardJob(out.resolve(), rows, recipe.to_yaml(), digests)
    if (tagger := job.engine().tagger) is None:
        return job, None
    program: Any = tagger.partition(":")[0]
    return replace(job, request=replace(rows, tagger=program)), tagger


def dictionaries(recipe: Recipe, settings: Settings) -> list[dict[str, str]]:
    """Return the word lists of a recipe with hash, source and licence."""
    notes: list[dict[str, str]] = []
    for step in recipe.steps():
        for path in registry.get(step.transform).data(settings, step_values(step)):
            note = {"transform": step.transform, "file": path.name, "sha256": file_digest(path)}
            if (note := note | head_of(path)) not in notes:
                notes.append(note)
    return notes


def request_of(manifest: Manifest) -> Request:
    """Return the request that a manifest answers (`--from`)."""
    options = {name: value for name, value in manifest.options.items() if name != "code_sha256"}
    options["code"] = tuple(options["code"])
    options["tagger"] = (options["tagger"] or "auto").partition(":")[0]
    for path in options["code"]:
        registry.load_code(path)  # the recipe may name what it registers
    recipe = parse(json.dumps(manifest.recipe), "manifest")
    sources = tuple(source["path"] for source in manifest.sources)
    return Request(sources, recipe=recipe, seed=manifest.seed, **options)


# The end of a run.


def finish(
    plan: AugmentPlan, folder: RunFolder[Shard], command: str, fresh: Mapping[str, str]
) -> Manifest:
    """Write manifest and card for the shards present; again if another part added some.

    `fresh` has the digests of the shards of this run by file name. Where there is none, and the
    manifest in the folder lists just the shards that are there, it stays.
    """
    while True:
        shards = {shard_path(folder.out, n).name: shard for n, shard in folder.done().items()}
        earlier = folder.earlier_manifest() if (folder.out / "README.md").exists() else None
        if earlier and not fresh:
            rows = [(name, shard.rows) for name, shard in shards.items()]
            if rows == [(shard["file"], shard["rows"]) for shard in earlier.shards]:
                return earlier
        digest = folder.digests(fresh)
        duplicates = _duplicate_ids(plan, shards) if plan.request.id_column else 0
        manifest = Manifest(
            kind="augment", command=command, totals=_totals(shards.values(), duplicates),
            shards=[
                {"file": name, "rows": shard.rows, "changed": shard.changed, "sha256": digest(name)}
                for name, shard in shards.items()
            ],
            packages=packages(), **plan.config,
        )  # fmt: skip
        folder.publish(manifest, _card(manifest))
        if len(folder.done()) == len(shards):
            return manifest


def _totals(shards: Collection[Shard], duplicate_ids: int) -> dict[str, Any]:
    """Add the shards up; rates are errors per clean character and word."""
    sums: Counter[str] = Counter()
    for shard in shards:
        sums.update({name: n for name, n in asdict(shard).items() if isinstance(n, int)})
    repeated = {"duplicate_id": duplicate_ids} if duplicate_ids else {}
    return {
        "rows": sums["rows"],
        "changed": sums["changed"],
        "cer": round(sums["character_errors"] / max(1, sums["characters"]), 6),
        "wer": round(sums["word_errors"] / max(1, sums["words"]), 6),
        "rows_in": sums["rows_in"],
        "dropped": summed([repeated, *(shard.dropped for shard in shards)]),
    }


def _duplicate_ids(plan: AugmentPlan, shards: Mapping[str, Shard]) -> int:
    """Count the rows whose id an earlier row has, in several passes where they are many."""
    rows, distinct = sum(shard.rows for shard in shards.values()), 0
    passes = rows // IDS_AT_ONCE + 1
    for number in range(passes):
        parts = [np.zeros(0, np.uint64)]
        for name in shards:
            with pq.ParquetFile(plan.job.out / name) as file:
                ids = id_numbers(file.read(["id"])["id"].combine_chunks())
            parts.append(ids[mix_array(ids) % np.uint64(passes) == number])
        ordered = np.sort(np.concatenate(parts))  # np.unique takes seven times as long
        distinct += int(np.count_nonzero(np.diff(ordered))) + bool(len(ordered))
    return rows // plan.request.copies - distinct


def _card(manifest: Manifest) -> str:
    """Return the text of the dataset card."""
    from jinja2 import Template

    lang, text = manifest.options["lang"], Path(__file__).with_name("card.txt").read_text("utf-8")
    recipe, _ = parse(json.dumps(manifest.recipe), "manifest").for_language(lang)
    transforms = dict.fromkeys(step.transform for step in recipe.steps())
    card = Template(text, trim_blocks=True, lstrip_blocks=True)
    body = card.render(run=manifest, transforms=transforms, sources=source_names(manifest))
    title, tags = "Clean and noisy text, made", "noise, user-generated-content"
    return dataset_card(manifest, title, tags, body, "pairs")
