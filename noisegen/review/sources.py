"""Rows from which a review draws: outputs of `noisegen augment`, or text that is noised here.

The text is clean text, or the clean side of real pairs. A review with real pairs also draws rows
with the real noise.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, chain, groupby, islice, tee
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noisegen.augmentation.annotated import one_per_text
from noisegen.augmentation.shards import CLEAN
from noisegen.augmentation.statistics import by_strength
from noisegen.data.columns import BATCH_BYTES, BATCH_ROWS
from noisegen.data.files import reading, shard_files
from noisegen.data.formats.parquet import parquet_head, parquet_tables
from noisegen.data.pairs import stream_pairs
from noisegen.data.rows import Columns
from noisegen.data.sources import expand, no_column, read, shard_ranges
from noisegen.data.tables import is_string
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.engine import Engine, add_noise
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings, load_code
from noisegen.noising.rng import fraction, id_numbers
from noisegen.review.store import REAL, Stratum
from noisegen.runs.manifest import Manifest
from noisegen.text.buffers import one_chunk
from noisegen.text.spans import PROTECTED, protect_kinds

SLOT_COLUMNS = ("tokens", "labels", "noisy_tokens", "noisy_labels")
_NUMBER = re.compile(r"x?(?:[0-9]{1,6}(?:\.[0-9]{1,12})?|\.[0-9]{1,12})")

# Rows of one stratum. The table has the text columns row_id, clean and noisy. It has either all
# columns of SLOT_COLUMNS or none.
Batch = tuple[Stratum, pa.Table]


@dataclass(frozen=True)
class ReviewSource:
    """Sources and noise options of a review, stored in the review file for the second stage.

    `recipe` is the recipe as plain data, None if the sources are outputs of `augment`.
    """

    sources: tuple[str, ...]
    recipe: dict[str, Any] | None = None
    strengths: tuple[str, ...] = ()
    seed: int = 0
    lang: str = "en"
    lang_column: str = "lang"
    text_column: str = "text"
    id_column: str | None = None
    protect: str = PROTECTED
    tagger: str = "rule"
    limit: int | None = None
    code: tuple[str, ...] = ()
    nlaug_data: str | None = None
    with_real: bool = False

    def batches(self, dropped: Counter[str]) -> Iterator[Batch]:
        """Yield all rows of the sources in batches, each of one stratum.

        A stratum is one language, recipe and strength. Unreadable rows and files are counted
        in `dropped`, by reason.
        """
        load_code(*self.code)
        yield from _noised(self, dropped) if self.recipe else _outputs(self)

    @property
    def strata(self) -> int:
        """The number of strata of one language in the sources."""
        if self.recipe:
            return len(self.strengths) + self.with_real
        runs = (_recorded(Path(folder))[1] for folder in self.sources)
        return sum(len(options.get("strength") or [""]) for options in runs)


def _outputs(source: ReviewSource) -> Iterator[Batch]:
    """Yield outputs of `augment` in batches of one stratum (language, recipe, strength) each."""
    labels = source.strengths or (None,) * len(source.sources)
    if len(labels) != len(source.sources):
        raise UsageError(
            f"{len(labels)} strengths for {len(source.sources)} outputs of augment: "
            f"name one for each, in their order"
        )
    for folder, label in zip(map(Path, source.sources), labels, strict=True):
        yield from _output(folder, label, source)


def _output(folder: Path, label: str | None, source: ReviewSource) -> Iterator[Batch]:
    """Yield one output of `augment` in batches of one stratum each; `label` names its strength.

    Clean rows of `--with-clean` are left out. Raises UsageError for a label if the output has
    several strengths.
    """
    recipe, options = _recorded(folder)
    if label and options.get("strength"):
        raise UsageError(f"{str(folder)!r} has strengths of its own: leave out --strengths")
    strength = label or strength_of(recipe) or folder.name
    lang, name = str(options.get("lang") or source.lang), str(recipe.get("name") or "unknown")
    stratum = Stratum(lang, name, strength, strength_value(strength))
    slots = _slot_columns(options)
    for table in (table for path in shard_files(folder) for table in _shard(path, slots)):
        if options.get("with_clean") and "copy" in table.column_names:
            table = table.filter(pc.not_equal(table["copy"], CLEAN))
        for part, rows in _by_strength(table, stratum, options):
            yield from _by_language(rows, part, source.lang_column)


def _by_strength(table: pa.Table, stratum: Stratum, options: Mapping[str, Any]) -> Iterator[Batch]:
    """Yield (stratum, its rows) for each strength that `augment` gave rows by its `options`."""
    if not options.get("strength"):
        yield stratum, table
        return
    for label, rows in by_strength(table):
        yield stratum._replace(strength=label, value=strength_value(label)), rows


def _recorded(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the recipe and the options from the manifest in an output folder of `augment`.

    Without a manifest, the recipe and the options are empty.
    """
    if not (folder / "manifest.json").exists():
        return {}, {}
    manifest = Manifest.load(folder)
    return manifest.recipe, manifest.options


def _slot_columns(options: Mapping[str, Any]) -> dict[str, str]:
    """Map names in SLOT_COLUMNS to the names of these columns in an output of `augment`.

    `options` are the options with which `augment` made the output.
    """
    columns = {"noisy_tokens": "noisy_tokens", "noisy_labels": "noisy_labels"}
    for name in ("tokens", "labels"):
        if options.get(name):
            columns[name] = str(options[name])
    return columns


def _shard(path: Path, slots: Mapping[str, str]) -> Iterator[pa.Table]:
    """Yield the rows of a shard (Parquet file of an output) in tables.

    `slots` maps the names in SLOT_COLUMNS to columns of the shard. Raises SourceError if the file
    is damaged or is no shard of `augment`.
    """
    with reading(str(path)):
        schema, rows = parquet_head(str(path))
        if missing := [name for name in ("id", "clean", "noisy") if name not in schema.names]:
            raise no_column(str(path), missing[0], schema.names, "; is it from noisegen augment?")
        is_complete = len(slots) == len(SLOT_COLUMNS) and set(slots.values()) <= set(schema.names)
        for batch in parquet_tables(str(path), 0, rows, BATCH_BYTES):
            batch.validate(full=True)  # raises an error for damaged UTF-8
            batch = one_per_text(batch)
            columns = {name: batch[name] for name in schema.names}
            columns |= {name: batch[slots[name]] for name in slots} if is_complete else {}
            columns["row_id"] = pc.cast(batch["id"], pa.string())
            for name in ("clean", "noisy"):
                columns[name] = pc.fill_null(pc.cast(batch[name], pa.string()), "")
            yield pa.table(columns)


def _by_language(table: pa.Table, stratum: Stratum, column: str) -> Iterator[Batch]:
    """Split a table by the language in a column; yield (stratum, its rows) per language.

    If there is no such column, or its values are not text, the whole table is one batch.
    """
    kind = table[column].type if column in table.column_names else pa.null()
    if pa.types.is_dictionary(kind):  # pandas writes categories as this type
        kind = kind.value_type
    if not is_string(kind):
        yield stratum, table
        return
    spoken = pc.fill_null(pc.cast(table[column], pa.string()), stratum.lang)
    for lang in sorted(pc.unique(spoken).to_pylist()):
        yield stratum._replace(lang=lang.lower()), table.filter(pc.equal(spoken, lang))


def _noised(source: ReviewSource, dropped: Counter[str]) -> Iterator[Batch]:
    recipe = Recipe.from_dict(source.recipe, "the recipe of the review")
    recipes = {label: at_strength(recipe, label) for label in source.strengths}
    engine = cache(lambda label, lang: _engine(recipes[label], lang, source))
    protected = protect_kinds(source.protect)
    every = Stratum(source.lang, recipe.name, "")
    for texts in (_pairs if source.with_real else _clean_texts)(source, dropped):
        for stratum, part in _by_language(texts, every, source.lang_column):
            ids, clean = (one_chunk(part[name]) for name in ("id", "clean"))
            table = pa.table({"row_id": pc.cast(ids, pa.string()), "clean": clean})
            if source.with_real:
                real = stratum._replace(recipe=REAL, strength="x1", value=1.0)
                yield real, table.append_column("noisy", part["noisy"])
            streams = Streams(id_numbers(ids), source.seed)
            for label in recipes:
                if noise := engine(label, stratum.lang):
                    noisy = add_noise(noise, table, clean, streams, protected, edits=False)
                else:
                    noisy = table.append_column("noisy", clean)
                yield stratum._replace(strength=label, value=strength_value(label)), noisy


def _clean_texts(source: ReviewSource, dropped: Counter[str]) -> Iterator[pa.Table]:
    columns = Columns.of_texts(source.text_column, source.id_column)
    named = expand(source.sources)
    inputs = [item for item in named if not item.skipped]
    dropped.update(["unread_file"] * (len(named) - len(inputs)))
    tasks = shard_ranges(inputs, columns, BATCH_ROWS, source.limit)
    for batch in chain.from_iterable(read(task, columns) for task in tasks):
        dropped.update(batch.dropped)
        yield batch.table


def _pairs(source: ReviewSource, dropped: Counter[str]) -> Iterator[pa.Table]:
    measured, pairs = tee(islice(stream_pairs(source.sources, dropped), source.limit))
    rows = ({"id": n, "noisy": noisy, "clean": clean} for n, (noisy, clean) in enumerate(pairs))
    # A batch ends after about BATCH_BYTES characters. Adding `least` to the length of each row
    # limits a batch of short rows to about BATCH_ROWS rows.
    least = BATCH_BYTES // BATCH_ROWS
    ends = accumulate(least + len(noisy) + len(clean) for noisy, clean in measured)
    for _, batch in groupby(zip(ends, rows, strict=True), lambda pair: pair[0] // BATCH_BYTES):
        yield pa.Table.from_pylist([row for _, row in batch])


def _engine(recipe: Recipe, lang: str, source: ReviewSource) -> Engine | None:
    """Return the engine that noises text in `lang`; None if the recipe has no data for `lang`.

    Raises UsageError if `lang` is the main language of the source and the recipe has no data.
    """
    data = Path(source.nlaug_data) if source.nlaug_data else None
    try:
        settings = Settings(lang, nlaug_data=data, tagger=source.tagger)
        return Engine(recipe.for_language(lang)[0], settings)
    except UsageError:
        if lang == source.lang:
            raise
        return None


# Strengths as users write them: '0.1' sets all rates of a recipe, 'x2' multiplies them.


def strength_labels(text: str) -> tuple[str, ...]:
    """Split a list of strengths such as '0.05,0.1,0.2'.

    Raises UsageError for an empty or repeated strength.
    """
    labels = [part.strip() for part in text.split(",")] if text else []
    if not all(labels) or len(set(labels)) < len(labels):
        raise UsageError(f"cannot read strengths {text!r}: write each once, as in 0.05,0.1,0.2")
    return tuple(labels)


def strength_value(label: str) -> float | None:
    """Return the number in a strength, by which strengths are ordered: 2 for 'x2', 0.1 for '0.1'.

    Returns None for a strength that is only a name.
    """
    return float(fraction(label.removeprefix("x"))) if _NUMBER.fullmatch(label) else None


def at_strength(recipe: Recipe, label: str) -> Recipe:
    """Return a copy of a recipe at the strength `label`.

    A number such as '0.1' becomes every rate of every step. A factor such as 'x2' multiplies the
    rates below 1, as the `strength` of a recipe file does. Raises UsageError for other labels.
    """
    if (value := strength_value(label)) is None:
        raise UsageError(
            f"strength {label!r} is neither a rate such as 0.1 nor a factor such as x2"
        )
    if label.startswith("x"):
        factor = fraction(label.removeprefix("x"))
        return recipe.each_mix(
            lambda mix: replace(mix, strength=tuple((s * factor, n) for s, n in mix.strength))
        )
    if value > 1:
        raise UsageError(
            f"strength {label} is above 1, and a rate is a share: write x{label} to multiply rates"
        )
    rates = {
        f"{step.transform}.{name}": label
        for mix in recipe.mixes
        for step in mix.steps()
        for name in registry.get(step.transform).rates
    }
    if not rates:
        raise UsageError(f"recipe {recipe.name} has no rate that a strength could set")
    return recipe.with_values(rates)


def strength_of(recipe: Mapping[str, Any]) -> str | None:
    """Return the rate that all steps of a recipe (plain data) share; None if the rates differ.

    >>> strength_of({"steps": [{"wiki": {"rate": 0.1}}]})
    '0.1'
    """
    rates = set(_rates(recipe.get("steps")))
    return rates.pop() if len(rates) == 1 else None


def _rates(content: object) -> Iterator[str]:
    if isinstance(content, Mapping):
        for name, part in content.items():
            is_rate = name == "rate" or str(name).endswith("_rate")
            yield from [str(part)] if is_rate else _rates(part)
    elif isinstance(content, list):
        yield from chain.from_iterable(map(_rates, content))
