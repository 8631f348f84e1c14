"""Make a review file: the blind sample of the first stage, and more rows for the second.

The rows come from outputs of `noisegen augment`, or from clean text that is noised here.
"""

import json
import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augment import Request
from noisegen.augment.augment import recipe_of
from noisegen.data.sources import Columns, expand, read, shard_inputs
from noisegen.errors import SourceError, UsageError
from noisegen.noise import registry
from noisegen.noise.engine import Engine, add_noise
from noisegen.noise.plan import Streams
from noisegen.noise.recipe import Recipe, parse
from noisegen.noise.registry import Settings, load_code
from noisegen.noise.rng import fraction, id_numbers, row_keys, stream_key
from noisegen.options import Strings, option, public
from noisegen.review.store import (
    FIRST_STAGE,
    SECOND_STAGE,
    Stratum,
    connect,
    created,
    judged,
    most_realistic,
    reading,
    stored,
    transaction,
)
from noisegen.runs.folder import Folder, listed
from noisegen.runs.manifest import Manifest, counted
from noisegen.text.spans import PROTECTED, protect_kinds

SHARD_ROWS = 100_000
TEXT_MAX = 2_000  # characters that a reviewer is asked to read
SLOT_COLUMNS = ("tokens", "labels", "noisy_tokens", "noisy_labels")
_NUMBER = re.compile(r"x?(?:[0-9]{1,6}(?:\.[0-9]{1,12})?|\.[0-9]{1,12})")

# Rows of one stratum: columns row_id, clean, noisy (strings), and all of SLOT_COLUMNS or none.
Batch = tuple[Stratum, pa.Table]
Slots = tuple[list[tuple[str, str]], list[tuple[str, str]]]
StratumName = tuple[str, str, str]


@dataclass(frozen=True)
class MakeOptions(Request):
    """The rows that a review is drawn from, the strengths of their noise, and the file to write.

    `sources` are outputs of `noisegen augment`, one per strength, or clean text that is noised at
    `strengths` by the recipe and other options of `augment`.
    """

    out: Annotated[
        Folder,
        option("The review to make, or with --more to continue", "-o", "--out",
               metavar="REVIEW.sqlite"),
    ]  # fmt: skip
    _: KW_ONLY
    lang_column: Annotated[
        str, option("Column with the language of each row (without it: --lang for all)")
    ] = "lang"
    strengths: Annotated[
        str,
        option("For clean text: 0.05,0.1,0.2 sets every rate of the recipe, x0.5,x1,x2 multiplies "
               "the rates below 1. For outputs of augment: a name for each", metavar="S,S,S"),
    ] = ""  # fmt: skip
    rows: Annotated[int, option("Rows per language and strength in the first stage", ge=1)] = (
        FIRST_STAGE
    )


@dataclass(frozen=True)
class MoreOptions:
    """The review that gets more rows, and which.

    `sources` are named where those of the review have moved, `code` where it was made with some.
    """

    out: Annotated[Folder, option("The review", "-o", "--out", metavar="REVIEW.sqlite")]
    _: KW_ONLY
    rows: Annotated[
        int, option("Rows per language and recipe in the second stage", "--more", ge=1)
    ] = SECOND_STAGE
    strength: Annotated[
        str,
        option("Strength that --more adds (best: the most realistic of the first stage)",
               metavar="best|S"),
    ] = "best"  # fmt: skip
    sources: Annotated[Strings, option("Where the sources are now")] = ()
    code: Annotated[Strings, option("Files that register transforms")] = ()


class SampledRow(NamedTuple):
    """A row that was drawn; `slots` are those of the clean and of the noisy side."""

    key: int
    row_id: str
    clean: str
    noisy: str
    slots: Slots | None = None


Sample = list[tuple[Stratum, list[SampledRow]]]


@dataclass(frozen=True)
class SampleSummary:
    """What was put into a review: for every stratum, how many rows were drawn of how many.

    `unjudged` rows of the first stage had no say in which strength is the best.
    """

    path: Path
    stage: int
    asked: int
    drawn: list[tuple[Stratum, int]]
    unjudged: int = 0

    @property
    def items(self) -> int:
        """How many rows were added."""
        return sum(count for _, count in self.drawn)

    def lines(self) -> list[str]:
        """Return what people should know, a line per stratum."""
        lines = []
        for stratum, count in self.drawn:
            name, rows = ", ".join(stratum.name[:2]), counted(stratum.rows, "row")
            line = f"{name} at {stratum.strength}: "
            if stratum.changed:
                same = stratum.rows - stratum.changed
                line += f"drew {counted(count, 'row')} of {stratum.changed:,} changed; "
                line += f"{same:,} of {rows} unchanged"
                line += f"; {stratum.too_long:,} too long" if stratum.too_long else ""
                line += f"; {self.asked - count:,} fewer than asked" if count < self.asked else ""
            else:
                line += f"none of {rows} changed; nothing drawn"
            lines.append(line)
        if self.unjudged:
            left = counted(self.unjudged, "row")
            lines.append(f"warning: {left} of the first stage not judged yet; the best may change")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        strata = [{**stratum._asdict(), "drawn": count} for stratum, count in self.drawn]
        added = {"stage": self.stage, "items": self.items, "unjudged": self.unjudged}
        return {"out": str(self.path), **added, "groups": strata}


def _make(options: MakeOptions) -> SampleSummary:
    """Draw a blind sample of `rows` changed rows at every strength and write it as a review.

    `sources` are outputs of `noisegen augment`, a strength each, or clean text that is noised here
    at `strengths` ('0.05,0.1,0.2' are rates, 'x0.5,x1,x2' factors of the recipe's rates). Every
    language has its own sample. Raises NoisegenError.
    """
    source = ReviewSource.of(options)
    path = Path(options.out)
    with created(path) as database:
        review = {"id": secrets.token_hex(8), "seed": str(source.seed), "plan": source.dumps()}
        database.executemany("INSERT INTO review VALUES (?, ?)", review.items())
        sample = _drawn(source, options.rows, {}, None)
        with transaction(database):
            _insert(database, sample, source.seed, stage=1)
    return SampleSummary(path, 1, options.rows, [(stratum, len(rows)) for stratum, rows in sample])


make = public(MakeOptions, _make)


def _more(options: MoreOptions) -> SampleSummary:
    """Add `rows` rows of one strength to a review, none with a text that is in it.

    `strength` 'best' is for each language and recipe the one that was judged most realistic. The
    rows come from the sources of the review, or from `sources` where those have moved. `code` are
    the Python files that the review was made with: a review is data, none of it is run on its word.
    Raises NoisegenError.
    """
    path, is_best = Path(options.out), options.strength == "best"
    with reading(path), closing(connect(path)) as database:
        source = ReviewSource.loads(stored(database, "plan"))
        if source.code and not options.code:
            raise UsageError(f"the review was made with --code {source.code[0]}: name it again")
        if "-" in source.sources and not options.sources:
            raise UsageError("the review was made from standard input: name its source again")
        sources = _absolute(listed(options.sources)) or source.sources
        source = replace(source, sources=sources, code=_absolute(listed(options.code)))
        chosen = _best(database) if is_best else _named(database, options.strength)
        unjudged = _count(database, _UNJUDGED) if is_best else 0
        newest = _count(database, _NEWEST)
        taken: dict[str, set[str]] = {}
        query = "SELECT lang, clean FROM items JOIN groups ON groups.id = group_id"
        for lang, clean in database.execute(query):
            taken.setdefault(lang, set()).add(clean)
        sample = _drawn(source, options.rows, taken, chosen)
        with transaction(database):
            if _count(database, _NEWEST) != newest:
                raise UsageError("the review was given other rows meanwhile: run again")
            _insert(database, sample, source.seed, stage=2)
    strata = [(stratum, len(rows)) for stratum, rows in sample]
    return SampleSummary(path, 2, options.rows, strata, unjudged)


more = public(MoreOptions, _more)

_NEWEST = "SELECT ifnull(max(id), 0) FROM items"
_UNJUDGED = (
    "SELECT count(*) FROM items WHERE stage = 1"
    " AND id NOT IN (SELECT item FROM latest WHERE question = 'realism')"
)


def _count(database: sqlite3.Connection, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def _best(database: sqlite3.Connection) -> set[StratumName]:
    """Return the most realistic stratum of every language and recipe; raises UsageError of none."""
    best = {name: most_realistic(strengths) for name, strengths in judged(database).items()}
    if waiting := [f"{lang}, {recipe}" for (lang, recipe), group in best.items() if group is None]:
        raise UsageError(
            f"no strength is the best of {waiting[0]}: nothing is judged yet; "
            f"review first, or name one: --strength VALUE"
        )
    return {(*name, group.strength) for name, group in best.items() if group}


def _named(database: sqlite3.Connection, strength: str) -> set[StratumName]:
    names = database.execute("SELECT lang, recipe, strength FROM groups ORDER BY id").fetchall()
    chosen = {(lang, recipe, label) for lang, recipe, label in names if label == strength}
    if not chosen:
        known = ", ".join(dict.fromkeys(label for _, _, label in names))
        raise UsageError(f"the review has no strength {strength!r}; it has {known}")
    return chosen


def _insert(database: sqlite3.Connection, sample: Sample, seed: int, stage: int) -> None:
    """Add the rows of all strata, in an order that tells nothing of their stratum."""
    database.executemany(
        "INSERT INTO groups (lang, recipe, strength, value, rows, changed, too_long)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [stratum for stratum, _ in sample],
    )
    rows = [(stratum, row) for stratum, part in sample for row in part]
    texts = pa.array([f"{stratum.lang}\t{row.clean}" for stratum, row in rows], pa.string())
    keys = row_keys(stream_key(seed, "review/shuffle"), id_numbers(texts))
    for at in np.argsort(keys, kind="stable").tolist():
        stratum, row = rows[at]
        database.execute(
            "INSERT INTO items (stage, group_id, row_id, clean, noisy, slots) SELECT"
            " ?, id, ?, ?, ?, ? FROM groups WHERE (lang, recipe, strength) = (?, ?, ?)",
            (stage, row.row_id, row.clean, row.noisy, json.dumps(row.slots), *stratum.name),
        )


# The sample: changed rows by keyed draws, each text once.


def _drawn(
    source: "ReviewSource", count: int, taken: dict[str, set[str]], only: set[StratumName] | None
) -> Sample:
    """Draw `count` rows of every stratum, or of `only` some; raises SourceError if there is none.

    Of one language, no text is drawn twice, nor one that is `taken`.
    """
    strata = max(len(source.strengths), len(source.sources))
    room = count * strata + max(map(len, taken.values()), default=0)
    pools: dict[StratumName, _Pool] = {}
    for stratum, table in source.batches():
        if only is None or stratum.name in only:
            pools.setdefault(stratum.name, _Pool(stratum, source.seed, room)).add(table)
    sample: Sample = [(pool.stratum, []) for pool in pools.values()]
    queues = [iter(sorted(pool.rows.values())) for pool in pools.values()]
    for _ in range(count):  # one of each stratum in turn, so that scarce texts are shared
        for (stratum, rows), queue in zip(sample, queues, strict=True):
            used = taken.setdefault(stratum.lang, set())
            if row := next((row for row in queue if row.clean not in used), None):
                rows.append(row)
                used.add(row.clean)
    if not any(rows for _, rows in sample):
        seen = sum(stratum.rows for stratum, _ in sample)
        raise SourceError(f"nothing to review: of {counted(seen, 'row')} none changed or is new")
    return sample


class _Pool:
    """The rows of one stratum that come first in the keyed order, and counts of all its rows."""

    def __init__(self, stratum: Stratum, seed: int, room: int) -> None:
        self.stratum = stratum
        self.rows: dict[str, SampledRow] = {}  # by clean text
        self._stream = stream_key(seed, f"review/{stratum.recipe}/{stratum.strength}")
        self._room = room

    def add(self, table: pa.Table) -> None:
        """Count the rows of a batch and keep those that changed and come early."""
        changed = pc.not_equal(table["clean"], table["noisy"]).to_numpy()
        lengths = [pc.utf8_length(table[name]).to_numpy() for name in ("clean", "noisy")]
        too_long = changed & (np.maximum(*lengths) > TEXT_MAX)
        old = self.stratum
        self.stratum = old._replace(
            rows=old.rows + len(table), changed=old.changed + int(changed.sum()),
            too_long=old.too_long + int(too_long.sum()),
        )  # fmt: skip
        table = table.take(np.flatnonzero(changed & ~too_long))
        keys = row_keys(self._stream, id_numbers(table["clean"].combine_chunks()))
        keys, indices = np.unique(keys, return_index=True)  # equal texts have equal keys
        keys, indices = keys[: self._room], indices[: self._room]
        has_slots = set(SLOT_COLUMNS) <= set(table.column_names)
        columns = ["row_id", "clean", "noisy", *(SLOT_COLUMNS if has_slots else ())]
        rows = table.select(columns).take(indices).to_pylist()
        for key, row in zip(keys.tolist(), rows, strict=True):
            slots = None
            if has_slots:
                tokens, labels, noisy_tokens, noisy_labels = (row[name] for name in SLOT_COLUMNS)
                slots = slots_of(tokens, labels), slots_of(noisy_tokens, noisy_labels)
            sampled = SampledRow(key, row["row_id"], row["clean"], row["noisy"], slots)
            self.rows.setdefault(sampled.clean, sampled)
        if len(self.rows) > self._room:
            self.rows = {row.clean: row for row in sorted(self.rows.values())[: self._room]}


def slots_of(tokens: Sequence[Any], labels: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the labelled spans of a sentence: label, text.

    >>> slots_of(["to", "new", "york"], ["O", "B-city", "I-city"])
    [('city', 'new york')]
    """
    slots: list[tuple[str, str]] = []
    before = "O"
    for token, label in zip(tokens or [], map(str, labels or []), strict=False):
        kind = label[2:] if label[:2] in ("B-", "I-") else label
        if label.startswith("I-") and before[2:] == kind:
            slots[-1] = kind, f"{slots[-1][1]} {token}"
        elif label != "O":
            slots.append((kind, str(token)))
        before = label
    return slots


# Where the rows come from.


@dataclass(frozen=True)
class ReviewSource:
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
    def of(cls, options: MakeOptions) -> "ReviewSource":
        """Return the source that is asked for; raises UsageError for options that do not fit it."""
        sources = listed(options.sources)
        if not sources:
            raise UsageError("name at least one SOURCE")
        strengths = parse_strengths(options.strengths) if options.strengths else ()
        data, code = options.nlaug_data, listed(options.code)
        source = cls(
            _absolute(sources), None, tuple(strength.label for strength in strengths),
            options.seed, options.lang, options.lang_column, options.text_column,
            options.id_column, options.protect, options.tagger, options.limit,
            _absolute(code), str(Path(data).resolve()) if data else None,
        )  # fmt: skip
        outputs = [source for source in sources if is_output(source)]
        if len(outputs) == len(sources):
            bare = Request(options.sources)
            for name in ("recipe", "transforms", "values", "limit", "text_column", "id_column"):
                if getattr(options, name) not in (getattr(bare, name), {}):
                    raise UsageError(
                        f"outputs of augment have their noise and columns: leave out {name}"
                    )
            return source
        if outputs:
            raise UsageError(
                f"{outputs[0]!r} is an output of augment, others are not: use one kind"
            )
        if not strengths:
            raise UsageError("clean text needs --strengths, such as 0.05,0.1,0.2 or x0.5,x1,x2")
        for path in code:
            load_code(path)
        return replace(source, recipe=recipe_of(options).to_dict())

    @classmethod
    def loads(cls, text: str) -> "ReviewSource":
        """Read what `dumps` wrote; raises SourceError for anything else."""
        try:
            content = json.loads(text)
            lists = {name: tuple(content[name]) for name in ("sources", "strengths", "code")}
            return cls(**{**content, **lists})
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError("the review is damaged: nothing says how it was made") from error

    def dumps(self) -> str:
        """Return the source as JSON."""
        return json.dumps(vars(self), ensure_ascii=False, default=str)

    def batches(self) -> Iterator[Batch]:
        """Yield all rows in batches of one stratum."""
        for path in self.code:
            load_code(path)
        yield from _noised(self) if self.recipe else _outputs(self)


def _absolute(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the sources so that they can be found again from another folder."""
    return tuple(str(Path(name).resolve()) if Path(name).exists() else name for name in sources)


def is_output(source: str) -> bool:
    """Tell whether a source is an output of `noisegen augment`."""
    folder = Path(source)
    return folder.is_dir() and any(folder.glob("part-*.parquet"))


def _outputs(source: ReviewSource) -> Iterator[Batch]:
    if source.strengths and len(source.strengths) != len(source.sources):
        raise UsageError(
            f"{len(source.strengths)} strengths for {len(source.sources)} outputs of augment: "
            f"name one for each, in their order"
        )
    for number, folder in enumerate(map(Path, source.sources)):
        manifest = Manifest.load(folder) if (folder / "manifest.json").exists() else None
        recipe, options = (manifest.recipe, manifest.options) if manifest else ({}, {})
        rate = strength_of(recipe) or folder.name
        label = source.strengths[number] if source.strengths else rate
        lang, name = str(options.get("lang") or source.lang), str(recipe.get("name") or "unknown")
        stratum = Stratum(lang, name, label, Strength(label).value)
        slots = {"noisy_tokens": "noisy_tokens", "noisy_labels": "noisy_labels"}
        slots |= {key: str(options[key]) for key in ("tokens", "labels") if options.get(key)}
        for path in sorted(folder.glob("part-*.parquet")):
            for table in _shard(path, slots):
                yield from _by_language(table, stratum, source.lang_column)


def _shard(path: Path, slots: Mapping[str, str]) -> Iterator[pa.Table]:
    """Yield the rows of a shard; raises SourceError if it is damaged or not from augment.

    `slots` says which column of the shard becomes which of SLOT_COLUMNS.
    """
    try:
        with pq.ParquetFile(path) as shard:
            names = shard.schema_arrow.names
            missing = [name for name in ("id", "clean", "noisy") if name not in names]
            if missing:
                raise SourceError(
                    f"{str(path)!r} has no column {missing[0]!r}; is it from noisegen augment?"
                )
            is_complete = set(slots) == set(SLOT_COLUMNS) and set(slots.values()) <= set(names)
            for batch in shard.iter_batches(SHARD_ROWS):
                batch.validate(full=True)  # damaged UTF-8 shows here
                table = pa.Table.from_batches([batch])
                columns = {name: table[name] for name in names}
                if is_complete:
                    columns |= {name: table[column] for name, column in slots.items()}
                columns["row_id"] = pc.cast(table["id"], pa.string())
                for name in ("clean", "noisy"):
                    columns[name] = pc.fill_null(pc.cast(table[name], pa.string()), "")
                yield pa.table(columns)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"cannot read {str(path)!r} as Parquet: {reason}") from error


def _by_language(table: pa.Table, stratum: Stratum, column: str) -> Iterator[Batch]:
    """Yield the rows of each language: that in `column` if there is one, else the stratum's."""
    kind = table[column].type if column in table.column_names else pa.null()
    if pa.types.is_dictionary(kind):  # as pandas writes categories
        kind = kind.value_type
    if kind not in (pa.string(), pa.large_string()):
        yield stratum, table
        return
    spoken = pc.fill_null(pc.cast(table[column], pa.string()), stratum.lang)
    for lang in sorted(pc.unique(spoken).to_pylist()):
        rows = np.flatnonzero(pc.equal(spoken, lang).to_numpy())
        yield stratum._replace(lang=lang.lower()), table.take(rows)


def _noised(source: ReviewSource) -> Iterator[Batch]:
    recipe = parse(json.dumps(source.recipe), "the recipe of the review")
    strengths = {label: Strength(label).applied(recipe) for label in source.strengths}
    columns = Columns(source.text_column, source.id_column)
    inputs = [item for item in expand(source.sources) if not item.skipped]
    engine = cache(lambda label, lang: _engine(strengths[label], lang, source))
    for task in shard_inputs(inputs, columns, SHARD_ROWS, source.limit):
        for batch in read(task, columns):
            spoken = _by_language(batch.table, Stratum(source.lang, "", ""), source.lang_column)
            for (lang, *_), table in spoken:
                for label in strengths:
                    stratum = Stratum(lang, recipe.name, label, Strength(label).value)
                    yield stratum, _with_noise(engine(label, lang), table, source)


def _engine(recipe: Recipe, lang: str, source: ReviewSource) -> Engine | None:
    """Return the engine; None for a language of the column that the recipe has no data for."""
    data = Path(source.nlaug_data) if source.nlaug_data else None
    settings = Settings(lang, nlaug_data=data, tagger=source.tagger)
    try:
        return Engine(recipe.for_language(lang)[0], settings)
    except UsageError:
        if lang == source.lang:
            raise
        return None


def _with_noise(engine: Engine | None, table: pa.Table, source: ReviewSource) -> pa.Table:
    row_ids, clean = table["id"].combine_chunks(), table["clean"].combine_chunks()
    bare = pa.table({"row_id": pc.cast(row_ids, pa.string()), "clean": clean})
    if engine is None:
        return bare.append_column("noisy", clean)
    streams = Streams(id_numbers(row_ids), source.seed)
    return add_noise(engine, bare, clean, streams, protect_kinds(source.protect), edits=False)


@dataclass(frozen=True)
class Strength:
    """A strength as the user wrote it: '0.1' sets rates, 'x2' multiplies them."""

    label: str

    @property
    def value(self) -> float | None:
        """The number by which strengths are ordered; None for a mere name."""
        return float(self._number) if _NUMBER.fullmatch(self.label) else None

    @property
    def _number(self) -> Fraction:
        return fraction(self.label.removeprefix("x"))

    def applied(self, recipe: Recipe) -> Recipe:
        """Return the recipe at this strength.

        A number becomes every rate of every step. A factor multiplies the rates below 1, as the
        `strength` of a recipe file does. Raises UsageError for what is neither.
        """
        if self.value is None:
            raise UsageError(
                f"strength {self.label!r} is no rate such as 0.1 and no factor such as x2"
            )
        if self.label.startswith("x"):
            scaled = tuple((part * self._number, weight) for part, weight in recipe.strength)
            return replace(recipe, strength=scaled)
        rates = {
            f"{step.transform}.{name}": self.label
            for step in recipe.steps() for name in registry.get(step.transform).rates
        }  # fmt: skip
        if not rates:
            raise UsageError(f"recipe {recipe.name} has no rate that a strength could set")
        return recipe.with_values(rates)


def parse_strengths(text: str) -> tuple[Strength, ...]:
    """Read '0.05,0.1,0.2'; raises UsageError for an empty or repeated strength."""
    labels = [part.strip() for part in text.split(",")]
    if not all(labels) or len(set(labels)) < len(labels):
        raise UsageError(f"cannot read strengths {text!r}: write each once, as in 0.05,0.1,0.2")
    return tuple(Strength(label) for label in labels)


def strength_of(recipe: Mapping[str, Any]) -> str | None:
    """Return the one rate that a recipe (plain data) gives to all its steps; None if there is none.

    >>> strength_of({"steps": [{"wiki": {"rate": 0.1}}]})
    '0.1'
    """
    rates = {str(rate) for rate in _rates(recipe.get("steps"))}
    return rates.pop() if len(rates) == 1 else None


def _rates(content: object) -> Iterator[object]:
    if isinstance(content, list):
        for part in content:
            yield from _rates(part)
    elif isinstance(content, Mapping):
        for name, part in content.items():
            if name == "rate" or str(name).endswith("_rate"):
                yield part
            else:
                yield from _rates(part)
