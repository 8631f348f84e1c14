"""The plan of a run of `augment`: inputs, recipe and job, checked before a row is read."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.augmentation import NoiseRequest, Request
from noisegen.augmentation.row_languages import (
    LANGUAGES,
    NO_COLUMN,
    first_language,
    languages_in,
)
from noisegen.augmentation.shards import ShardJob, ShardTask, factor_of
from noisegen.data.conll import NORM
from noisegen.data.features import class_names
from noisegen.data.files import metered
from noisegen.data.formats.registry import bitext_ending, format_of, range_tables, read_head
from noisegen.data.labels import given_names, scheme_name, tag_letters
from noisegen.data.lines import advice_on, checked_encoding, stdin_head
from noisegen.data.paths import records_of
from noisegen.data.rows import Columns, FileRange, numbered
from noisegen.data.sources import (
    Head,
    completed,
    expand,
    first_file,
    no_column,
    refuse_reserved,
    shard_ranges,
)
from noisegen.data.tables import is_list, is_string
from noisegen.errors import OutputError, UsageError
from noisegen.noising import registry
from noisegen.noising.lexicon import head_of
from noisegen.noising.mix import step_values
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.noising.rng import check_seed
from noisegen.options import listed, refuse_unknown
from noisegen.runs.atomic import file_digest
from noisegen.runs.manifest import Manifest, packages
from noisegen.text.languages import listed_code, normalize_language
from noisegen.text.spans import protect_kinds
from noisegen.version import __version__


@dataclass(frozen=True)
class AugmentPlan:
    """A checked request: its recipe for the language, input files, and the `job` of the workers.

    `first` is the first input file with rows, its columns read; None without rows. `config` has the
    fields of the manifest that the request decides. `hints` are lines for the user, such as one
    on transforms without data for the language. `skipped` has a line on each file that is not read,
    with the reason. `notes` describe
    the annotations that follow the noise, `warnings` columns that the noise makes wrong.
    """

    request: Request
    recipe: Recipe
    inputs: list[FileRange]
    first: FileRange | None
    job: ShardJob
    config: dict[str, Any]
    hints: list[str]
    skipped: list[str]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def absolute(self) -> "AugmentPlan":
        """Return the plan with absolute paths, for workers in other folders or machines."""
        inputs = [
            item if (path := item.absolute) == item.path else replace(item, path=path)
            for item in self.inputs
        ]
        return replace(self, inputs=inputs, job=replace(self.job, out=self.job.out.resolve()))

    @property
    def size(self) -> int:
        """The size of all inputs in bytes; 0 if the size of an input is unknown."""
        sizes = [source["bytes"] for source in self.config["sources"]]
        return 0 if None in sizes else sum(sizes)

    def tasks(self, head: Head = read_head) -> Iterator[ShardTask]:
        """Yield the tasks of the run, one per shard; `head` counts the rows of an input file.

        Raises SourceError for an input column with the name of an output column.
        """
        if self.first:
            refuse_reserved(self.first, self.job.columns, self.job.version_columns)
        return self.tasks_of(self.request.rows_per_shard, self.job.columns, head)

    def manifest(
        self,
        command: str | None,
        totals: dict[str, Any],
        shards: list[dict[str, Any]],
        missing_tasks: int = 0,
    ) -> Manifest:
        """Return the manifest of a run of this plan; `command` is the command line, if known."""
        told = {"notes": self.notes, "warnings": self.warnings}
        return Manifest(
            kind="augment",
            command=command or "noisegen augment",
            shards=shards,
            totals=totals | {name: list(lines) for name, lines in told.items() if lines},
            packages=packages(),
            missing_tasks=missing_tasks,
            **self.config,
        )

    def tasks_of(self, rows: int, columns: Columns, head: Head = read_head) -> Iterator[ShardTask]:
        """Yield tasks of `rows` rows each; `columns` and `head` are used to read the input."""
        shards = shard_ranges(self.inputs, columns, rows, self.request.limit, head)
        return map(ShardTask, count(), shards)


LANGUAGES_SHOWN = 8  # most languages that a line for the user names

# Options of a request that the manifest lists, since they decide the rows and shards of a run
_RECORDED = (
    "copies with_clean strength lang lang_column text_column spans spans_lost align id_column "
    "tokens labels protect edits rows_per_shard limit"
)


def make_plan(request: Request, out: Path) -> AugmentPlan:
    """Check a request and return the plan of its run, which writes to `out`.

    Raises NoisegenError for every problem that can be found without reading rows.
    """
    _check(request)
    found = expand(request.sources)
    inputs = _with_encoding([item for item in found if not item.skipped], request.encoding)
    columns, hints = completed(inputs, _columns(request))
    first = first_file(inputs, columns)
    asked = request.lang_column
    request, seen = _with_languages(request, inputs, first, columns)
    whole = recipe_of(request)  # its steps are checked in the language that is known now
    base = request.lang or first_language(whole, seen)
    recipe = whole if request.lang_column else whole.for_language(base)[0]
    hints += _notes_on_languages(request, whole, seen, is_asked=bool(asked))
    if request.group_by:
        _check_groups(request.group_by, recipe, first)
    columns, letters = _with_tags(columns, listed(request.label_names), first)
    if letters:
        hints.append(f"the labels in column {columns.labels!r} are {scheme_name(letters)} tags")
    job = replace(_job(request, recipe, base, columns, out), letters=letters)
    job, tagger = _with_tagger(job)
    config = _config(request, whole, job, tagger)
    config["dictionaries"] = dictionaries(whole, job.settings, seen or [base])
    config["sources"] = [{"path": item.path, "bytes": item.file_size} for item in inputs]
    hints += _notes_on_sources(request, first)
    skipped = [f"{item.path}: {item.skipped}" for item in found if item.skipped]
    return AugmentPlan(request, recipe, inputs, first, job, config, hints, skipped)


def _with_tagger(job: ShardJob) -> tuple[ShardJob, str | None]:
    """Return the job with the tagger that was found here, for all workers, and its full name."""
    if not (tagger := job.engine().tagger):
        return job, None
    program = tagger.partition(":")[0]
    return replace(job, settings=replace(job.settings, tagger=program)), tagger


def _check(request: Request) -> None:
    """Check the options that need no source; raises UsageError or RecipeError."""
    check_seed(request.seed)
    if request.lang and request.lang_column not in (None, NO_COLUMN):
        raise UsageError("--lang is for all rows, --lang-column for each row: choose one")
    if request.nlaug_data and not Path(request.nlaug_data).is_dir():
        raise UsageError(f"--nlaug-data {request.nlaug_data!r}: no such folder")
    registry.load_code(*listed(request.code))
    recipe_of(request)
    strengths = listed(request.strength)
    for strength in strengths:
        factor_of(strength)
    numbers = filter(re.compile(r"x?[\d.]+").fullmatch, listed(request.sources))
    if strengths and (stray := [one for one in numbers if not Path(one).exists()]):
        hint = "--strength takes its factors joined by commas: " + ",".join([*strengths, *stray])
        raise UsageError(f"{stray[0]!r}: no such file or folder; {hint}")


def _columns(request: Request) -> Columns:
    """Return the columns that the user named."""
    texts = tuple(listed(request.text_column))
    return Columns(
        text=texts[0],
        row_id=request.id_column,
        tokens=request.tokens,
        labels=request.labels,
        paths=texts,
        spans=tuple(listed(request.spans)),
        align=request.align,
    )


def _with_encoding(files: Sequence[FileRange], given: str | None) -> list[FileRange]:
    """Return the files; text files get the encoding that the user gave."""
    encoding = checked_encoding(given)
    are_text = [bool(encoding) and format_of(item).is_text for item in files]
    return [
        replace(item, encoding=encoding) if is_text else item
        for item, is_text in zip(files, are_text, strict=True)
    ]


def _with_tags(
    columns: Columns, names: Sequence[str], first: FileRange | None
) -> tuple[Columns, str]:
    """Return the columns with the names of label numbers, and the letters of the labels' tags.

    `names` are the names that the user gave, `first` is the first input with rows. Raises
    UsageError for names without labels.
    """
    if names and not columns.labels:
        raise UsageError("--label-names goes with --tokens and --labels")
    if not first or columns.labels not in first.schema.names:
        return columns, ""
    columns = _with_label_names(columns, names, first)
    return columns, _tag_letters(first, columns)


def _notes_on_sources(request: Request, first: FileRange | None) -> list[str]:
    """Return lines for the user on the encoding of standard input and the language in a name."""
    notes = []
    if request.encoding and codecs.lookup(request.encoding).name == "ascii":
        notes.append("--encoding ascii: the text is read as UTF-8, which includes ASCII")
    if "-" in listed(request.sources) and not request.encoding:
        advice = advice_on(stdin_head(), "--encoding")
        notes += [f"standard input: {advice}"] if advice else []
    code = listed_code(bitext_ending(first.path)) if first else ""
    if code and request.lang and code != normalize_language(request.lang):
        notes.append(f"the text is noised as {request.lang}; by its name it is --lang {code}")
    return notes


def _config(request: Request, whole: Recipe, job: ShardJob, tagger: str | None) -> dict[str, Any]:
    """Return the fields of the manifest that the request decides, without files.

    The options name the columns that were found in the input. `whole` is the recipe with its steps
    for all languages, `tagger` names the part-of-speech tagger in use.
    """
    options: dict[str, Any] = {name: getattr(request, name) for name in _RECORDED.split()}
    columns = job.columns
    if len(texts := listed(request.text_column)) == 1:
        options["text_column"] = texts[0]
    options |= {"id_column": columns.row_id, "tokens": columns.tokens, "labels": columns.labels}
    for name in ("group_by", "encoding"):
        if value := getattr(request, name):
            options[name] = value
    if columns.label_names:
        options["label_names"] = columns.label_names
    digests = [digest for _, digest in job.code]
    options |= {"code": request.code, "nlaug_data": request.nlaug_data, "code_sha256": digests}
    config = {
        "version": __version__,
        "seed": request.seed,
        "recipe": whole.to_dict(),
        "recipe_digest": whole.digest,
        "options": options | {"tagger": tagger},
    }
    # JSON turns tuples into lists, as in the config that a later run reads from a manifest.
    return json.loads(json.dumps(config))  # type: ignore[no-any-return]


def _check_groups(name: str, recipe: Recipe, file: FileRange | None) -> None:
    """Check that rows can be grouped by the column `name`, which --group-by gives.

    Raises UsageError if the recipe has no writers that groups can share, and SourceError if `file`,
    the first input with rows, lacks the column.
    """
    if not recipe.writers:
        raise UsageError(f"--group-by needs a recipe with writers; {recipe.name} has none")
    if file and name not in file.schema.names:
        raise no_column(file.path, name, file.schema.names)


def _with_label_names(columns: Columns, given: Sequence[str], file: FileRange) -> Columns:
    """Return the columns with the names of the classes of their labels, if labels are numbers.

    `given` is the value of --label-names, `file` the first input with rows. Raises UsageError if
    numbers have no names, and if names are given for labels that have names.
    """
    name = str(columns.labels)
    kind = file.schema.field(name).type
    are_named = name in class_names(file.schema)
    if not (is_list(kind) and pa.types.is_integer(kind.value_type)) or are_named:
        if given:
            raise UsageError(f"column {name!r} has names of its labels: leave out --label-names")
        return columns
    if not given:
        raise UsageError(
            f"column {name!r} has numbers without names: --label-names O,B-PER,I-PER,... "
            "(in the order of the numbers), or a file with a name per line"
        )
    return replace(columns, label_names=given_names(given))


def _tag_letters(file: FileRange, columns: Columns) -> str:
    """Return the letters of the tags in the labels, from the first rows or the names of classes.

    `file` is the first input with rows. Returns '' for standard input, which is read only once.
    """
    name = str(columns.labels)
    if names := columns.label_names or class_names(file.schema).get(name):
        return tag_letters(names)
    if file.path == "-" or name == NORM[1]:
        return ""
    with metered():  # so that these bytes do not count: the tasks read and count them again
        rows = next(range_tables(file, columns), None)
    if rows is None or not is_list(rows[name].type):
        return ""
    return tag_letters(pc.unique(pc.list_flatten(rows[name])).to_pylist())


def _with_languages(
    request: Request, inputs: Sequence[FileRange], file: FileRange | None, columns: Columns
) -> tuple[Request, list[str]]:
    """Return the request with its language or its column of languages, and the languages there.

    `file` is the first of the inputs with rows; only its first rows are read. Raises SourceError
    for a column that is missing or holds no text.
    """
    asked = request.lang_column
    if file and asked != NO_COLUMN and (asked or not request.lang):
        name = _language_column(file, columns, asked)
        seen, are_languages = _first_languages(inputs, file, columns, name)
        if asked or are_languages:
            return replace(request, lang_column=name), seen
    return replace(request, lang=request.lang or "en", lang_column=None), []


def _language_column(file: FileRange, columns: Columns, asked: str | None) -> str:
    """Return the column of languages in a file: the one that is asked for, or 'lang' if it may be.

    It is '' if no column may be one. Raises SourceError for a column that is missing.
    """
    names = file.schema.names
    name = numbered(asked or LANGUAGES, names)
    inner = f"{records_of(columns.text)}[].{name}"
    name = inner if name not in names and inner in names else name
    if asked and name not in names:
        raise no_column(file.path, name, names)
    used = (columns.text, columns.row_id, *columns.lists, *columns.paths)
    may_be = name in names and name not in used and is_string(file.schema.field(name).type)
    return name if asked or may_be else ""


def _first_languages(
    inputs: Sequence[FileRange], file: FileRange, columns: Columns, name: str
) -> tuple[list[str], bool]:
    """Return the languages in the first rows of a file, and whether most of their tags are known.

    If the languages are in the names of folders, the names of all folders count. Rows of standard
    input are read only once, so their column is taken for languages.
    """
    if file.path == "-" and name:
        return [], True
    rows = _first_tags(inputs, file, columns, name) if name else None
    if rows is None:
        return [], False
    numbers, languages = languages_in(rows, name)
    written = pc.sum(pc.not_equal(rows[name].cast(pa.string()), "")).as_py() or 0
    return [lang for lang in languages if lang], 2 * int(np.count_nonzero(numbers)) > written


def _first_tags(
    inputs: Sequence[FileRange], file: FileRange, columns: Columns, name: str
) -> pa.Table | None:
    """Return a table with the languages in the column `name`: of all folders, or of first rows."""
    if name in dict(file.keys):
        tags = [tag.as_py() for item in inputs for key, tag in item.keys if key == name]
        return pa.table({name: pa.array(tags, pa.string())})
    with metered():  # so that these bytes do not count: the tasks read and count them again
        return next(range_tables(file, columns), None)


def _notes_on_languages(
    request: Request, recipe: Recipe, seen: Sequence[str], *, is_asked: bool
) -> list[str]:
    """Return lines for the user on a column of languages, and on languages without some data.

    `is_asked` tells that the user named the column, which then gets no line.
    """
    if request.lang:
        return list(filter(None, [recipe.note_on(request.lang)]))
    other = "--lang-column none: all rows are English"
    named = f"column {request.lang_column!r} has the language of each row ({other})"
    notes = [] if is_asked else [named]
    if lacking := [lang for lang in seen if recipe.note_on(lang)]:
        some = ", ".join(lacking[:LANGUAGES_SHOWN]) + ", ..." * (len(lacking) > LANGUAGES_SHOWN)
        notes.append(f"{recipe.name} leaves out transforms without data in {some}")
    return notes


def _job(request: Request, recipe: Recipe, lang: str, columns: Columns, out: Path) -> ShardJob:
    """Return the options of a request that the workers need.

    `lang` is the language of the rows, or of the first rows if each has its own. Paths of code and
    data are absolute, since a worker may have another working directory.
    """
    nlaug_data = Path(request.nlaug_data).resolve() if request.nlaug_data else None
    code = []
    for name in listed(request.code):
        path = Path(name).resolve()
        code.append((str(path), file_digest(path)))
    return ShardJob(
        out=out,
        recipe=recipe,
        settings=Settings(lang, nlaug_data=nlaug_data, tagger=request.tagger),
        columns=columns,
        seed=request.seed,
        copies=request.copies,
        with_clean=request.with_clean,
        strength=tuple(listed(request.strength)),
        lang_column=request.lang_column,
        protect=protect_kinds(request.protect),
        edits=request.edits,
        group_by=request.group_by,
        spans_lost=request.spans_lost,
        code=tuple(code),
    )


def recipe_of(request: NoiseRequest) -> Recipe:
    """Return the recipe of a request, with its steps for all languages."""
    return Recipe.chosen(request.recipe, request.transforms, request.values, request.lang)


def dictionaries(
    recipe: Recipe, settings: Settings, languages: Sequence[str]
) -> list[dict[str, str]]:
    """Return the word lists that a recipe reads in languages, with hash, source and licence."""
    notes: list[dict[str, str]] = []
    steps = [
        (replace(settings, lang=lang), step)
        for lang in languages
        if recipe.has_language(lang)
        for step in recipe.for_language(lang)[0].steps()
    ]
    for of_language, step in steps:
        for path in registry.get(step.transform).data(of_language, step_values(step)):
            note = {"transform": step.transform, "file": path.name, "sha256": file_digest(path)}
            if (note := note | head_of(path)) not in notes:
                notes.append(note)
    return notes


def values_of(manifest: Manifest, code: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options by which a run made the rows of a manifest (`--from`).

    Code that the manifest names does not run, since a manifest may come from anywhere: only the
    files in `code` run. Raises UsageError if the manifest names code and the caller gives none.
    """
    options = {name: value for name, value in manifest.options.items() if name != "code_sha256"}
    try:
        if (named := options.pop("code")) and not code:
            again = " ".join(f"--code {path}" for path in named)
            raise UsageError(
                f"the manifest names code, which runs only if you name it: read it, add {again}"
            )
        options["tagger"] = (options["tagger"] or "rule").partition(":")[0]
        sources = [str(source["path"]) for source in manifest.sources]
    except (KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"the manifest is damaged: its options or sources: {error!r}") from error
    refuse_unknown(options, [field.name for field in fields(Request)])
    registry.load_code(*code)  # the recipe may name transforms of this code
    recipe = Recipe.from_dict(manifest.recipe, "manifest")
    return {**options, "sources": sources, "recipe": recipe, "seed": manifest.seed, "code": code}
