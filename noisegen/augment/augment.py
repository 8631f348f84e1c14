"""`augment`: sources in, a folder of clean/noisy shards with manifest and dataset card out."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from noisegen.augment import AugmentOptions, Request
from noisegen.augment.shards import Shard, ShardJob, make_shard
from noisegen.data.sources import Columns, Input, ShardInput, expand, shard_inputs
from noisegen.errors import RecipeError, UsageError
from noisegen.noise import registry
from noisegen.noise.lexicon import head_of
from noisegen.noise.recipe import Recipe, parse, parse_step, step_values
from noisegen.noise.registry import Settings
from noisegen.noise.rng import check_seed, id_numbers, mix_array
from noisegen.options import command_line, public
from noisegen.runs.files import file_digest
from noisegen.runs.folder import Layout, RunFolder, listed, shard_path
from noisegen.runs.manifest import (
    Manifest,
    dataset_card,
    markdown_table,
    packages,
    source_names,
    summed,
)
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
    missing = (
        task
        for task in chain([first], planned)
        if task.number % count == remainder and not _is_done(done.get(task.number), task)
    )
    digests: dict[str, str] = {}
    rows = 0

    def finished(shard: Shard) -> None:
        nonlocal rows
        digests[shard.file] = shard.sha256
        rows += shard.rows
        options.report(Progress(done=rows, unit="rows", counts={"shards": len(digests)}))

    folder.run(partial(make_shard, plan.job), missing, options, finished)
    if not digests and (manifest := _finished(folder)) is not None:
        return manifest
    return finish(plan, folder, options.command or _command(options), digests)


def _is_done(shard: Shard | None, task: ShardInput) -> bool:
    return shard is not None and (shard.first_row, shard.rows_in) == (task.first_row, task.rows)


def _command(options: AugmentOptions) -> str:
    """Return the command line that asks for the same rows; a recipe object goes by its name."""
    recipe = options.recipe.name if isinstance(options.recipe, Recipe) else options.recipe
    values = [f"{name}={value}" for name, value in (options.values or {}).items()]
    flags = [word for value in values for word in ("--set", value)]
    return command_line("augment", replace(options.asked(), recipe=recipe, part=None), *flags)


# The plan.


def make_plan(request: Request, out: Path) -> AugmentPlan:
    """Check everything that can be checked before the first row is read."""
    check_seed(request.seed)
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
        "dictionaries": dictionaries(recipe, job),
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
    skipped = [f"{item.path}: {item.skipped}" for item in named if item.skipped]
    return AugmentPlan(
        request, recipe, list(map(_absolute, inputs)), job, config, left_out, skipped
    )


_BINDING = (  # options that decide rows and shards, as the manifest lists them
    "copies", "lang", "text_column", "id_column", "tokens", "labels", "protect", "edits",
    "rows_per_shard", "limit",
)  # fmt: skip


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
    code = [Path(path).resolve() for path in listed(request.code)]
    job = ShardJob(
        out=out.resolve(),
        recipe=recipe.to_yaml(),
        config="",
        seed=request.seed,
        copies=request.copies,
        lang=request.lang,
        columns=Columns(request.text_column, request.id_column, request.tokens, request.labels),
        protect=protect_kinds(request.protect),
        edits=request.edits,
        tagger=request.tagger,
        nlaug_data=Path(request.nlaug_data).resolve() if request.nlaug_data else None,
        code=tuple((str(path), file_digest(path)) for path in code),
    )
    tagger = job.engine().tagger
    return replace(job, tagger=tagger.partition(":")[0] if tagger else request.tagger), tagger


def _absolute(item: Input) -> Input:
    """Return an input whose path means the same to workers elsewhere."""
    return replace(item, path=str(Path(item.path).resolve())) if item.size is not None else item


def dictionaries(recipe: Recipe, job: ShardJob) -> list[dict[str, str]]:
    """Return the word lists of a recipe with hash, source and licence."""
    settings = Settings(job.lang, nlaug_data=job.nlaug_data)
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


def _finished(folder: RunFolder[Shard]) -> Manifest | None:
    """Return the manifest in the folder if it lists just the shards that are there."""
    manifest = folder.earlier()
    if manifest is None or not (folder.out / "README.md").exists():
        return None
    shards = [(shard_path(folder.out, n).name, note.rows) for n, note in folder.done().items()]
    return manifest if [(x["file"], x["rows"]) for x in manifest.shards] == shards else None


def finish(
    plan: AugmentPlan, folder: RunFolder[Shard], command: str, fresh: Mapping[str, str]
) -> Manifest:
    """Write manifest and card for the shards present; again if another part added some.

    `fresh` has the digests of the shards of this run by file name.
    """
    while True:
        shards = {shard_path(folder.out, n).name: shard for n, shard in folder.done().items()}
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
    copies = plan.job.copies
    passes = sum(shard.rows for shard in shards.values()) // copies // IDS_AT_ONCE + 1
    repeated = 0
    for number in range(passes):
        parts = []
        for name in shards:
            with pq.ParquetFile(plan.job.out / name) as file:
                table = file.read(["id", "copy"] if copies > 1 else ["id"])
            if copies > 1:
                table = table.filter(table["copy"].to_numpy() == 0)
            ids = id_numbers(table["id"].combine_chunks())
            parts.append(ids if passes == 1 else ids[mix_array(ids) % np.uint64(passes) == number])
        ids = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
        repeated += int(np.count_nonzero(ids[1:] == ids[:-1]))
    return repeated


_BODY = """Made by `{command}` (seed {seed}). Again: `noisegen augment --from manifest.json -o OTHER`.

{columns}

Transforms (recipe `{recipe}`, digest `{digest}`): {transforms}.

## Sources and licences

The text comes from {sources}: its licence is theirs. Word lists that changed it:

{dictionaries}"""  # noqa: E501
_COLUMNS = {
    "id": "the row's stable name",
    "clean": "the text as given",
    "noisy": "the text with noise",
    "transforms": "what was drawn for the row, in applied order",
}


def _card(manifest: Manifest) -> str:
    """Return the text of the dataset card."""
    columns = dict(_COLUMNS)
    if manifest.options["copies"] > 1:
        columns["copy"] = "number of the noisy copy; (id, copy) names a row"
    if manifest.options["edits"]:
        columns["edits"] = "changed spans on both sides, in characters"
    if manifest.options["tokens"]:
        columns["noisy_tokens"] = "the tokens of the noisy text"
        columns["noisy_labels"] = "their labels, those of the clean tokens they came from"
    lang = manifest.options["lang"]
    recipe, _ = parse(json.dumps(manifest.recipe), "manifest").for_language(lang)
    names = dict.fromkeys(step.transform for step in recipe.steps())
    notes = [
        (note["transform"], note["file"], note.get("source", ""), note.get("license", ""))
        for note in manifest.dictionaries
    ]
    body = _BODY.format(
        command=manifest.command,
        seed=manifest.seed,
        columns=markdown_table(("column", "content"), *columns.items()),
        recipe=manifest.recipe["name"],
        digest=manifest.recipe_digest,
        transforms=", ".join(f"`{name}`" for name in names),
        sources=source_names(manifest),
        dictionaries=markdown_table(("transform", "file", "source", "licence"), *notes),
    )
    title, tags = "Clean and noisy text, made", "noise, user-generated-content"
    return dataset_card(manifest, title, tags, body, "pairs")
