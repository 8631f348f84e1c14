"""Rows that could be reviewed: outputs of `noisegen augment`, or clean text noised here."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.engine import PROTECTED, Engine, add_noise
from noisegen.errors import SourceError, UsageError
from noisegen.ids import id_numbers
from noisegen.manifest import Manifest
from noisegen.mixing import Dice
from noisegen.recipe import Recipe, parse
from noisegen.registry import Settings, load_code
from noisegen.review.store import Group
from noisegen.review.strengths import Strength, strength_of
from noisegen.sources import Columns, expand, read, tasks
from noisegen.spans import protect_kinds

SHARD_ROWS = 100_000
SLOTS = ("tokens", "labels", "noisy_tokens", "noisy_labels")


@dataclass(frozen=True)
class Plan:
    """Where the rows of a review come from; it is kept in the review for its second stage.

    `recipe` is plain data, None where the sources are outputs of augment.
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
    tagger: str = "auto"
    limit: int | None = None
    code: tuple[str, ...] = ()
    nlaug_data: str | None = None

    @classmethod
    def loads(cls, text: str) -> "Plan":
        """Read what `dumps` wrote; raises SourceError for anything else."""
        try:
            content = json.loads(text)
            lists = {name: tuple(content[name]) for name in ("sources", "strengths", "code")}
            return cls(**{**content, **lists})
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError("the review is damaged: nothing says how it was made") from error

    def dumps(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(vars(self), ensure_ascii=False, default=str)


@dataclass(frozen=True)
class Candidates:
    """Rows of one group: columns row_id, clean, noisy (strings), and those of SLOTS or none."""

    group: Group
    table: pa.Table = field(repr=False)


def is_output(source: str) -> bool:
    """Tell whether a source is an output of `noisegen augment`."""
    folder = Path(source)
    return folder.is_dir() and any(folder.glob("part-*.parquet"))


def candidates(plan: Plan) -> Iterator[Candidates]:
    """Yield all rows of the plan, in batches."""
    for path in plan.code:
        load_code(path)
    yield from _noised(plan) if plan.recipe else _outputs(plan)


# Outputs of augment.


def _outputs(plan: Plan) -> Iterator[Candidates]:
    if plan.strengths and len(plan.strengths) != len(plan.sources):
        raise UsageError(
            f"{len(plan.strengths)} strengths for {len(plan.sources)} outputs of augment: "
            f"name one for each, in their order"
        )
    for place, source in enumerate(plan.sources):
        folder = Path(source)
        manifest = Manifest.load(folder) if (folder / "manifest.json").exists() else None
        recipe = manifest.recipe if manifest else {}
        label = plan.strengths[place] if plan.strengths else strength_of(recipe) or folder.name
        options = manifest.options if manifest else {}
        lang = str(options.get("lang") or plan.lang)
        name = str(recipe.get("name") or "unknown")
        group = Group(lang, name, label, Strength(label).value)
        for path in sorted(folder.glob("part-*.parquet")):
            for table in _shard(path, _columns(options)):
                yield from _by_language(table, group, plan.lang_column)


def _columns(options: Mapping[str, Any]) -> dict[str, str]:
    """Return which column of a shard has what, for the columns that only some have."""
    named = {"noisy_tokens": "noisy_tokens", "noisy_labels": "noisy_labels"}
    return named | {name: str(options[name]) for name in ("tokens", "labels") if options.get(name)}


def _shard(path: Path, slots: Mapping[str, str]) -> Iterator[pa.Table]:
    """Yield the rows of a shard; raises SourceError if it is damaged or not from augment."""
    try:
        with pq.ParquetFile(path) as shard:
            names = shard.schema_arrow.names
            missing = [name for name in ("id", "clean", "noisy") if name not in names]
            if missing:
                raise SourceError(
                    f"{str(path)!r} has no column {missing[0]!r}; is it from noisegen augment?"
                )
            complete = set(slots) == set(SLOTS) and set(slots.values()) <= set(names)
            for batch in shard.iter_batches(SHARD_ROWS):
                batch.validate(full=True)  # damaged UTF-8 shows here
                table = pa.Table.from_batches([batch])
                yield _renamed(table, slots if complete else {})
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"cannot read {str(path)!r} as Parquet: {reason}") from error


def _renamed(table: pa.Table, slots: Mapping[str, str]) -> pa.Table:
    made = {name: table[column] for name, column in slots.items()}
    others = [name for name in table.column_names if name not in made]
    made |= {name: table[name] for name in others}
    made["row_id"] = pc.cast(table["id"], pa.string())
    for name in ("clean", "noisy"):
        made[name] = pc.fill_null(pc.cast(table[name], pa.string()), "")
    return pa.table(made)


# Clean text.


def _noised(plan: Plan) -> Iterator[Candidates]:
    recipe = parse(json.dumps(plan.recipe), "the recipe of the review")
    strengths = {label: Strength(label).applied(recipe) for label in plan.strengths}
    columns = Columns(plan.text_column, plan.id_column)
    inputs = [item for item in expand(plan.sources) if not item.skipped]
    engine = cache(lambda label, lang: _engine(strengths[label], lang, plan))
    for task in tasks(inputs, columns, SHARD_ROWS, plan.limit):
        for batch in read(task, columns):
            for one in _by_language(batch.table, Group(plan.lang, "", ""), plan.lang_column):
                for label in strengths:
                    lang = one.group.lang
                    group = Group(lang, recipe.name, label, Strength(label).value)
                    yield Candidates(group, _with_noise(engine(label, lang), one.table, plan))


def _engine(recipe: Recipe, lang: str, plan: Plan) -> Engine | None:
    """Return the engine; None for a language of the column that the recipe has no data for."""
    data = Path(plan.nlaug_data) if plan.nlaug_data else None
    settings = Settings(lang, nlaug_data=data, tagger=plan.tagger)
    try:
        return Engine(recipe.for_language(lang)[0], settings)
    except UsageError:
        if lang == plan.lang:
            raise
        return None


def _with_noise(engine: Engine | None, table: pa.Table, plan: Plan) -> pa.Table:
    row_ids = table["id"].combine_chunks()
    clean = table["clean"].combine_chunks()
    bare = pa.table({"row_id": pc.cast(row_ids, pa.string()), "clean": clean})
    if engine is None:
        return bare.append_column("noisy", clean)
    dice = Dice(id_numbers(row_ids), plan.seed)
    return add_noise(engine, bare, clean, dice, protect_kinds(plan.protect), edits=False)


def _by_language(table: pa.Table, group: Group, column: str) -> Iterator[Candidates]:
    """Yield the rows of each language: that in `column` if there is one, else the group's."""
    if column not in table.column_names or not _is_text(table[column].type):
        yield Candidates(group, table)
        return
    spoken = pc.fill_null(pc.cast(table[column], pa.string()), group.lang)
    for lang in sorted(pc.unique(spoken).to_pylist()):
        rows = np.flatnonzero(pc.equal(spoken, lang).to_numpy())
        yield Candidates(group._replace(lang=lang.lower()), table.take(rows))


def _is_text(kind: pa.DataType) -> bool:
    """Tell whether a column has text, also as pandas (categories) and other programs write it."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
