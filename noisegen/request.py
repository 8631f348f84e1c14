"""What a user asks of `augment`, and what it means: recipe, inputs, the job of a worker."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from noisegen import registry
from noisegen.atomic import file_digest
from noisegen.draws import check_seed
from noisegen.engine import PROTECTED
from noisegen.errors import RecipeError, UsageError
from noisegen.lexicon import head_of
from noisegen.manifest import Manifest
from noisegen.recipe import Recipe, parse, parse_step, step_values
from noisegen.registry import Settings
from noisegen.shards import Job
from noisegen.sources import Columns, Input, Task, expand, tasks
from noisegen.spans import protect_kinds
from noisegen.version import __version__


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
        for name in ("transforms", "code"):  # one alone may be given as it is
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, (given,))
        object.__setattr__(self, "lang", self.lang.lower())
        check_seed(self.seed)
        for name in ("copies", "rows_per_shard", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"--{_option(name)} {value} must be at least 1")
        if (self.tokens is None) != (self.labels is None):
            raise UsageError("--tokens and --labels go together")

    @property
    def columns(self) -> Columns:
        """The columns that the user named."""
        return Columns(self.text_column, self.id_column, self.tokens, self.labels)

    def command(self, out: str | Path) -> str:
        """Return the command line that asks the same; a recipe object goes by its name."""
        words = ["noisegen", "augment", *self.sources, "-o", str(out)]
        for option in fields(self)[1:]:
            value = getattr(self, option.name)
            if value != option.default:
                words += _words(option.name, value)
        return shlex.join(words)


def _option(name: str) -> str:
    return {"transforms": "transform", "values": "set"}.get(name, name).replace("_", "-")


def _words(name: str, value: Any) -> list[str]:
    option = f"--{_option(name)}"
    if value is True:
        return [option]
    if isinstance(value, Mapping):
        value = [f"{key}={setting}" for key, setting in value.items()]
    values = value if isinstance(value, list | tuple) else [value]
    return [w for v in values for w in (option, v.name if isinstance(v, Recipe) else str(v))]


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


def prepare(request: Request, out: Path) -> Run:
    """Check everything that can be checked before the first row is read."""
    for path in request.code:
        registry.load_code(path)
    whole = recipe_of(request)
    recipe, left_out = whole.for_language(request.lang)
    found = expand(request.sources)
    inputs = [item for item in found if not item.skipped]
    job, tagger = _job(request, whole, out)
    config = {
        "version": __version__,
        "seed": request.seed,
        "recipe": whole.to_dict(),
        "recipe_digest": whole.digest,
        "sources": [{"path": item.path, "bytes": item.size} for item in inputs],
        "dictionaries": dictionaries(recipe, job),
        "options": _options(request, job) | {"tagger": tagger},
    }
    config = json.loads(json.dumps(config))  # as it comes back from the manifest
    job = replace(job, config=json.dumps(config, sort_keys=True, ensure_ascii=False))
    skipped = [f"{item.path}: {item.skipped}" for item in found if item.skipped]
    return Run(
        request, recipe, [_absolute(item) for item in inputs], job, config, left_out, skipped
    )


def recipe_of(request: Request) -> Recipe:
    """Return the recipe that a request means, for all languages."""
    if request.transforms:
        try:
            steps = [parse_step(text) for text in request.transforms]
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


def _job(request: Request, recipe: Recipe, out: Path) -> tuple[Job, str | None]:
    """Return the job, and the tagger that it will use wherever it runs; None if it needs none."""
    job = Job(
        out=out.resolve(),
        recipe=recipe.to_yaml(),
        config="",
        seed=request.seed,
        copies=request.copies,
        lang=request.lang,
        columns=request.columns,
        protect=protect_kinds(request.protect),
        edits=request.edits,
        tagger=request.tagger,
        nlaug_data=Path(request.nlaug_data).resolve() if request.nlaug_data else None,
        code=tuple(_with_digest(path) for path in request.code),
    )
    tagger = job.engine().tagger
    return replace(job, tagger=tagger.partition(":")[0] if tagger else request.tagger), tagger


def _with_digest(path: str) -> tuple[str, str]:
    return str(Path(path).resolve()), file_digest(Path(path))


def _absolute(item: Input) -> Input:
    """Return an input whose path means the same to workers elsewhere."""
    return replace(item, path=str(Path(item.path).resolve())) if item.size is not None else item


def _options(request: Request, job: Job) -> dict[str, Any]:
    """Return the options that decide rows and shards, for the manifest."""
    left_out = ("sources", "recipe", "transforms", "values", "seed", "tagger")
    chosen = {name: value for name, value in asdict(request).items() if name not in left_out}
    return {**chosen, "code_sha256": [digest for _, digest in job.code], "code": list(request.code)}


def dictionaries(recipe: Recipe, job: Job) -> list[dict[str, str]]:
    """Return the word lists of a recipe with hash, source and licence."""
    settings = Settings(job.lang, nlaug_data=job.nlaug_data)
    found = []
    for step in recipe.steps():
        for path in registry.get(step.transform).data(settings, step_values(step)):
            digest = file_digest(path)
            note = {"transform": step.transform, "file": path.name, "sha256": digest}
            found.append(note | head_of(path))
    return [note for place, note in enumerate(found) if note not in found[:place]]


def request_of(made: Manifest) -> Request:
    """Return the request that a manifest answers (`--from`)."""
    options = {name: value for name, value in made.options.items() if name != "code_sha256"}
    options["code"] = tuple(options["code"])
    options["tagger"] = (options["tagger"] or "auto").partition(":")[0]
    for path in options["code"]:
        registry.load_code(path)  # the recipe may name what it registers
    recipe = parse(json.dumps(made.recipe), "manifest")
    sources = tuple(source["path"] for source in made.sources)
    return Request(sources, recipe, seed=made.seed, **options)
