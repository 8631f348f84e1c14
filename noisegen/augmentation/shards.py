"""Make one shard: read its rows, noise them, carry token labels over, write Parquet."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import accumulate, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augmentation import annotated
from noisegen.augmentation.row_languages import Groups, language_groups, noise_groups, texts_of
from noisegen.data.conll import NORM
from noisegen.data.features import class_names, features, label_names, with_features, with_list
from noisegen.data.labels import carried, carried_forms, tags_like
from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import no_column, read
from noisegen.data.tables import is_string
from noisegen.errors import OutputError, RecipeError, SourceError, UsageError
from noisegen.noising import registry
from noisegen.noising.engine import EDITS, Engine
from noisegen.noising.mix import read_factor
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.noising.rng import id_numbers
from noisegen.runs.atomic import atomic
from noisegen.runs.folder import shard_path
from noisegen.runs.progress import live_path, publishing
from noisegen.runs.records import File, Record
from noisegen.text.alignment import error_counts, words_in
from noisegen.text.buffers import I64, U64, one_chunk

# zstd at level 1 is faster and smaller than snappy. Dictionary pages save nothing for unique text.
_PARQUET = {
    "compression": "zstd",
    "compression_level": 1,
    "write_statistics": ["id"],
    "use_dictionary": [
        "transforms.list.element",
        "noisy_labels.list.element",
        "edits.list.element.transform",
    ],
}
SAMPLED_ROWS = 2_000  # about so many rows per shard, evenly spaced, have their errors counted
CLEAN = -1  # number of the copy that is the clean row, which `--with-clean` adds


class Version(NamedTuple):
    """A row of output for each row of input: the number of its copy, and its strength.

    The strength is a factor as the user writes it, such as 'x0.5'; None without --strength.
    """

    copy: int = 0
    strength: str | None = None

    @property
    def is_clean(self) -> bool:
        """Whether this is the clean row."""
        return self.copy == CLEAN


NOISY = Version()


@dataclass(frozen=True, slots=True)
class Shard:
    """Counts of one shard.

    `rows_in` counts the rows of input, `rows` the noisy rows. Characters, words and their errors
    are estimated from a sample of the rows. `transforms` names the transforms that were drawn for
    rows that changed.
    """

    rows: int
    changed: int
    first_row: int = 0
    rows_in: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    transforms: list[str] = field(default_factory=list)
    characters: int = 0
    character_errors: int = 0
    words: int = 0
    word_errors: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "transforms", _names(tuple(self.transforms)))
        if not self.dropped:
            object.__setattr__(self, "dropped", _NOTHING_DROPPED)

    def is_of(self, task: "ShardTask") -> bool:
        """Return whether the shard was made from the input rows of `task`."""
        return (self.first_row, self.rows_in) == (task.first_row, task.rows)


_NOTHING_DROPPED: dict[str, int] = {}


@cache
def _names(names: tuple[str, ...]) -> list[str]:
    """Return the names as a list.

    Equal names get the same list, which saves memory in long runs.
    """
    return list(names)


@dataclass(frozen=True)
class ShardTask:
    """A shard to make: its number in the run, and the ranges of input files with its rows."""

    number: int
    ranges: tuple[FileRange, ...]

    @property
    def first_row(self) -> int:
        """The number of the first row of the shard among all rows of the run."""
        return self.ranges[0].first

    @property
    def rows(self) -> int:
        """The number of rows of the shard."""
        return sum(part.rows for part in self.ranges)

    @property
    def size(self) -> int:
        """The bytes of input with the shard's rows; 0 if the size of the input is unknown."""
        return sum(part.size for part in self.ranges)


@dataclass(frozen=True)
class ShardJob:
    """Everything that a worker needs to noise the rows of a run; pickled with every task.

    `recipe` is the recipe for the language of the run; with `lang_column`, the column with the
    language of each row, it is the recipe for all languages. `columns` are the columns of input.
    Each row gets `copies` noisy copies at each `strength`, and a clean one if `with_clean`.
    `edits` asks for a column with the changed spans. `group_by` is the column with the author or
    thread of a row. `spans_lost` says what becomes of rows that lose a span. `code` has the Python
    files with transforms, and the SHA-256 of each. `letters` has the letters of the tags among
    the labels. Rows stay clean if `encoding` lacks a character of their noise; '' is UTF-8.
    """

    out: Path
    recipe: Recipe
    settings: Settings
    columns: Columns
    seed: int = 0
    copies: int = 1
    with_clean: bool = False
    strength: tuple[str, ...] = ()
    lang_column: str | None = None
    protect: tuple[str, ...] = ()
    edits: bool = False
    group_by: str | None = None
    spans_lost: str = "keep-clean"
    code: tuple[tuple[str, str], ...] = ()
    letters: str = ""
    encoding: str = ""

    def engine(self, strength: str | None = None, lang: str | None = None) -> Engine:
        """Return the engine that applies the recipe in a language; it is made once per process.

        The default language is the language of the settings.
        """
        settings = replace(self.settings, lang=lang) if lang else self.settings
        return _engine(self.recipe, settings, self.code, strength)

    @property
    def versions(self) -> list[Version]:
        """The rows of output for each row of input, in their order."""
        levels = self.strength or (None,)
        clean = [Version(CLEAN, "x0" if self.strength else None)] * self.with_clean
        return clean + [Version(copy, level) for level in levels for copy in range(self.copies)]

    @property
    def version_columns(self) -> tuple[str, ...]:
        """The columns that tell the versions of a row apart."""
        has_copies = self.copies > 1 or self.with_clean
        return ("copy",) * has_copies + ("strength",) * bool(self.strength)

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that options add to one noisy file."""
        return (*self.version_columns, *["edits"] * self.edits)

    def with_version(self, table: pa.Table, version: Version) -> pa.Table:
        """Return a table with the columns that tell the versions of a row apart."""
        for name in self.version_columns:
            kind = pa.int32() if name == "copy" else pa.string()
            value = pa.scalar(getattr(version, name), kind)
            table = table.append_column(name, pa.repeat(value, len(table)))
        return table

    @cached_property
    def is_way_back(self) -> bool:
        """Whether all steps of the recipe repair noise: then the given text is the noisy side."""
        return all(registry.get(step.transform).kind == "repair" for step in self.recipe.steps())

    def with_sides(self, table: pa.Table) -> pa.Table:
        """Return a table with its columns named by side: after repairs, the result is clean."""
        if not self.is_way_back:
            return table
        names = table.column_names
        if "edits" in names:
            table = annotated.replaced(table, "edits", _turned(one_chunk(table["edits"])))
        return table.rename_columns([_OTHER_SIDE.get(name, name) for name in names])

    @property
    def group_column(self) -> str | None:
        """The name of the column `group_by` in rows that were read; None without `group_by`.

        It differs if the column is the text or the id, which become `clean` and `id`.
        """
        return self._renamed(self.group_by)

    @property
    def language_column(self) -> str | None:
        """The name of the column with the language in rows that were read; None without it."""
        return self._renamed(self.lang_column)

    def _renamed(self, name: str | None) -> str | None:
        renamed = {self.columns.text: "clean", self.columns.row_id: "id"}
        return renamed.get(name, name) if name else None

    def noised(self, rows: pa.Table, version: Version = NOISY, *, edits: bool) -> pa.Table:
        """Add columns of noise to rows, which have the columns `id` and `clean`.

        Each copy gets other noise. For the columns see `add_noise`, for rows with several texts or
        with annotations `annotated.noised`. The column `annotated.LOST` has the reason for a row
        that stays clean, if there are such rows.
        """
        ids = id_numbers(one_chunk(rows["id"]))
        writers = _writer_ids(rows, self.group_column, ids)
        groups, reasons = self._groups(rows, version)
        if self.columns.is_annotated:

            def noise(texts: pa.Table, keys: U64, owners: I64) -> pa.Table:
                of_writers = (ids if writers is None else writers)[owners]
                streams = Streams(keys, self.seed, version.copy, of_writers)
                of_texts = texts_of(groups, owners)
                return noise_groups(texts, streams, of_texts, self.protect, edits=True)

            noised = annotated.noised(rows, self.columns, ids, noise, self.encoding)
        else:
            streams = Streams(ids, self.seed, version.copy, writers)
            noised = noise_groups(rows, streams, groups, self.protect, edits=edits)
            noised = annotated.encodable(noised, self.encoding) if self.encoding else noised
        return annotated.with_reasons(noised, reasons) if reasons else noised

    def settled(self, noised: pa.Table, version: Version) -> annotated.Settled:
        """Return the masks and counts of rows that were noised for a version."""
        is_last = version == self.versions[-1]
        return annotated.settled(noised, drop=self.spans_lost == "drop", is_last=is_last)

    def _groups(self, rows: pa.Table, version: Version) -> tuple[Groups, pa.Array | None]:
        """Return the rows of each engine, and the reason of each row whose language has none.

        The reason is '' for most rows; None stands for no such reasons.
        """
        everything = np.arange(len(rows))
        if version.is_clean:
            return [(None, everything)], None
        if self.language_column is None:
            return [(self.engine(version.strength), everything)], None
        engine_in = partial(self.engine, version.strength)
        return language_groups(rows, self.language_column, self.recipe, engine_in)


@cache
def _engine(
    recipe: Recipe, settings: Settings, code: tuple[tuple[str, str], ...], strength: str | None
) -> Engine:
    """Return the engine for a recipe, after loading `code`, Python files with its transforms."""
    registry.load_code(*(path for path, _ in code))
    mix, _ = recipe.for_language(settings.lang)
    return Engine(mix.scaled(factor_of(strength)) if strength else mix, settings)


def factor_of(strength: str) -> float:
    """Return the factor of a strength such as 'x0.5'; raises UsageError for another text."""
    try:
        if strength.startswith("x"):
            return float(read_factor(strength.removeprefix("x"), f"--strength {strength}"))
    except RecipeError as error:
        raise UsageError(str(error)) from error
    raise UsageError(f"--strength {strength!r} is no factor: write x0.5, or several: x0.5,x1,x2")


def _writer_ids(rows: pa.Table, group_by: str | None, ids: U64) -> U64 | None:
    """Return a number per row, from which the recipe's writer is drawn; equal in rows of a group.

    A row without a group gets a number of its own, from its id. Raises SourceError if the column is
    missing or holds neither text nor integers.
    """
    if group_by is None:
        return None
    if group_by not in rows.column_names:
        raise no_column("a source", group_by, rows.column_names)
    groups = one_chunk(rows[group_by])
    if pa.types.is_dictionary(groups.type):
        groups = groups.dictionary_decode()
    if not (is_string(groups.type) or pa.types.is_integer(groups.type)):
        raise SourceError(f"column {group_by!r} holds {groups.type}, not text or integers")
    known, nothing = groups.is_valid(), "" if is_string(groups.type) else 0
    filled = pc.fill_null(groups, nothing)
    if is_string(groups.type):  # '' means no group, since formats such as TSV have no null
        known = pc.not_equal(filled, nothing)
    return np.where(known.to_numpy(zero_copy_only=False), id_numbers(filled), ids)


def make_shard(job: ShardJob, folder: Path, task: ShardTask) -> Record[Shard]:
    """Make one shard in a folder and return its `Record`, with its counts and its file.

    Raises OutputError if the shard cannot be written.
    """
    path, versions = shard_path(folder, task.number), job.versions
    sums, dropped = Counter[str](), Counter[str]()
    read_so_far: Counter[str] = Counter()
    drawn: set[str] = set()
    writer: pq.ParquetWriter | None = None
    with atomic(path) as file, publishing(live_path(path), read_so_far), ExitStack() as stack:
        for batch in read(task.ranges, job.columns, batch_bytes=job.engine().batch_bytes):
            dropped.update(batch.dropped)
            for version in versions:
                noised = job.noised(
                    batch.table, version, edits=job.edits or bool(job.columns.tokens)
                )
                settled = job.settled(noised, version)
                dropped.update(settled.lost)
                noised = settled.left(noised)
                sums.update(counts_of(job, noised, max(1, task.rows // SAMPLED_ROWS), version))
                drawn.update(_drawn(noised))
                table = _in_order(job, noised, version)
                writer = writer or stack.enter_context(
                    pq.ParquetWriter(file, table.schema, **_PARQUET)
                )
                writer.write_table(table, row_group_size=max(1, len(table)))
                share = len(table) / len(versions) / task.rows
                read_so_far.update(rows=len(table), bytes=int(task.size * share))
        if writer is None:
            raise OutputError(f"no rows for shard {task.number}")
        counts: dict[str, Any] = {**sums, "dropped": dict(dropped), "transforms": sorted(drawn)}
    shard = Shard(first_row=task.first_row, rows_in=task.rows, **counts)
    return Record(task.number, (File.of(path, job.out),), shard)


def counts_of(job: ShardJob, noised: pa.Table, step: int, version: Version) -> dict[str, int]:
    """Return the counts of a batch; of clean rows only their number.

    Characters and words of the clean side, and errors, are counted in every `step`-th row and
    multiplied by `step`.
    """
    if version.is_clean:
        return {"rows": len(noised)}
    texts = annotated.one_per_text(noised)
    clean, noisy = texts["clean"], texts["noisy"]
    differ = pc.not_equal(clean, noisy)
    changed = pc.sum(differ).as_py() or 0
    if texts is not noised:
        owners = pc.list_parent_indices(one_chunk(noised["clean"]))
        changed = len(pc.unique(owners.filter(one_chunk(differ))))
    cleans, noisies = clean[::step].to_pylist(), noisy[::step].to_pylist()
    if job.is_way_back:
        cleans, noisies = noisies, cleans
    character_errors, word_errors = error_counts(cleans, noisies)
    return {
        "rows": len(noised),
        "changed": changed,
        "characters": step * sum(map(len, cleans)),
        "words": step * sum(map(words_in, cleans)),
        "character_errors": step * character_errors,
        "word_errors": step * word_errors,
    }


def _drawn(noised: pa.Table) -> list[str]:
    """Return the names of the transforms drawn for rows whose text changed."""
    noised = annotated.one_per_text(noised)
    changed = pc.not_equal(noised["clean"], noised["noisy"])
    return list(pc.unique(pc.list_flatten(noised["transforms"].filter(changed))).to_pylist())


def _in_order(job: ShardJob, noised: pa.Table, version: Version) -> pa.Table:
    """Return noised rows with the columns of a shard in order.

    Columns with fixed names come first, then the columns of the input, then edits and labels.
    """
    first = ["id", *["paths"] * bool(job.columns.paths), "clean", "noisy", "transforms"]
    first += job.version_columns
    noised = job.with_version(noised, version)
    others = [name for name in noised.column_names if name not in (*first, "edits")]
    table = noised.select([*first, *others, *["edits"] * job.edits])
    tokens, labels = job.columns.tokens, job.columns.labels
    if tokens:
        words, owners = align(noised, job.columns)
        table = table.append_column("noisy_tokens", words)
    if tokens and labels:
        carried_over = aligned_labels(noised, tokens, labels, owners, job.letters)
        table = table.append_column("noisy_labels", carried_over)
        found = features(noised.schema)
        if labels in found:
            schema = with_features(table.schema, found | {"noisy_labels": found[labels]})
            schema = with_list(schema, "noisy_labels")
            table = table.replace_schema_metadata(schema.metadata)
    table = job.with_sides(table)
    shown = job.columns.shown(table.column_names)
    return table if shown == table.column_names else table.rename_columns(shown)


_OTHER_SIDE = {
    "clean": "noisy",
    "noisy": "clean",
    "noisy_tokens": "clean_tokens",
    "noisy_labels": "clean_labels",
}


def _turned(edits: pa.Array) -> pa.Array:
    """Return a column of edits with the ranges of both sides exchanged."""
    if pa.types.is_list(edits.type.value_type):  # a list per text
        return pa.ListArray.from_arrays(edits.offsets, _turned(edits.values), type=edits.type)
    name, *ranges = edits.values.flatten()
    turned = pa.StructArray.from_arrays(
        [name, *ranges[2:], *ranges[:2]], fields=[*EDITS.value_type]
    )
    return pa.ListArray.from_arrays(edits.offsets, turned, type=edits.type)


# Labels.


Edit = Mapping[str, Any]
SPACE_OF_EDIT = -1  # in place of the token after a space: the space was written by an edit
_NOTHING = dict.fromkeys(("clean_start", "clean_end", "noisy_start", "noisy_end"), 0)


def align(noised: pa.Table, columns: Columns) -> tuple[pa.Array, pa.Array]:
    """Return the noisy tokens of each row, and for each of them the index of its clean token."""
    changes = (noised[str(name)].to_pylist() for name in (columns.tokens, "noisy", "edits"))
    rows = [noisy_tokens(*row) for row in zip(*changes, strict=True)]
    words, owners = zip(*rows, strict=True) if rows else ((), ())
    return pa.array(words, pa.list_(pa.string())), pa.array(owners, pa.list_(pa.int32()))


def aligned_labels(
    noised: pa.Table, tokens: str, name: str, owners: pa.Array, letters: str = ""
) -> pa.Array:
    """Return the labels of the noisy tokens, carried over from the labels in column `name`.

    `owners` has the index of the clean token of each noisy token, from `align`. If a token with
    label B-x is split, its second part gets I-x. Labels may also be numbers of classes; if there is
    no class I-x, the second part gets B-x. A row with fewer or more labels than tokens keeps its
    labels. `letters` has the letters of the tags of the column, if they are known.
    """
    carry_labels = carried_forms if name == NORM[1] else partial(carried, seen=letters)
    names = class_names(noised.schema).get(name, ())
    counts = pc.list_value_length(noised[tokens])
    rows = zip(*(column.to_pylist() for column in (noised[name], counts, owners)), strict=True)
    made = [
        carry_labels(label_names(marks, names) if names else marks, numbers_of_row)
        if marks is not None and len(marks) == count
        else marks
        for marks, count, numbers_of_row in rows
    ]
    kind = noised.schema.field(name).type
    if pa.types.is_integer(kind.value_type):
        numbers = _numbers_of(names)
        made = [marks and [numbers.get(mark, mark) for mark in marks] for marks in made]
    return pa.array(made, pa.list_(kind.value_type))


def _numbers_of(names: Sequence[str]) -> dict[str, int]:
    """Return {label: number of its class}; `names` are the names of the classes in order.

    If a tag such as I-x is no class, it gets the number of the first class of x. If O is no class,
    it gets 0.
    """
    numbers = {label: number for number, label in enumerate(names)}
    others = {tag: numbers[label] for label in reversed(names) for tag in tags_like(label)}
    return {"O": 0} | others | numbers


def carry(
    tokens: Sequence[str], labels: Sequence[Any], noisy: str, edits: Sequence[Edit]
) -> tuple[list[str], list[Any]]:
    """Return the tokens of a noisy text and their labels.

    `tokens` and `labels` belong to the clean text, which `edits` turned into the text `noisy`.
    """
    words, owners = noisy_tokens(tokens, noisy, edits)
    return words, carried(labels, owners)


def noisy_tokens(
    tokens: Sequence[str], noisy: str, edits: Sequence[Edit]
) -> tuple[list[str], list[int | None]]:
    """Return the tokens of the noisy text, and for each the index of the clean token it came from.

    The clean text is the tokens joined by one space. The noisy text is split at the
    joining spaces that no edit changed, and at every space that an edit wrote. A noisy token that
    begins in unchanged text comes from the clean token there. The noisy tokens that begin in a
    changed span are assigned to the clean tokens of the span in order, about equally many to each.
    """
    if not edits:
        return list(tokens), list(range(len(tokens)))
    edits = [_NOTHING, *edits]
    starts = list(accumulate((len(token) + 1 for token in tokens), initial=0))[:-1]
    pieces = list(_pieces(tokens, starts, noisy, edits))
    begins = [begin for begin, _ in pieces]
    owners = [_owner(begin, starts, edits, begins) if starts else None for begin in begins]
    return [noisy[begin:end] for begin, end in pieces], owners


def _pieces(
    tokens: Sequence[str], starts: list[int], noisy: str, edits: Sequence[Edit]
) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each token in the noisy text.

    A noisy token is empty only where the clean token is.
    """
    ends = [(-1, 0), *_spaces(starts, noisy, edits), (len(noisy), len(tokens))]
    for (before, token), (end, following) in pairwise(ends):
        untouched = token != SPACE_OF_EDIT and following == token + 1
        if end > before + 1 or (untouched and not tokens[token]):
            yield before + 1, end


def _spaces(starts: list[int], noisy: str, edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """Return the positions of the spaces that split the noisy text, in order.

    With each position comes the index of the clean token after the space, or SPACE_OF_EDIT.
    """
    spaces = []
    for token, start in enumerate(starts[1:], 1):
        edit = edits[bisect_right(edits, start - 1, key=itemgetter("clean_start")) - 1]
        if edit["clean_end"] <= start - 1:
            spaces.append((start - 1 + edit["noisy_end"] - edit["clean_end"], token))
    for edit in edits:
        span = range(edit["noisy_start"], edit["noisy_end"])
        spaces += [(at, SPACE_OF_EDIT) for at in span if noisy[at].isspace()]
    return sorted(spaces)


def _owner(begin: int, starts: list[int], edits: Sequence[Edit], begins: list[int]) -> int:
    """Return the index of the clean token that the noisy token at position `begin` came from."""
    edit = edits[bisect_right(edits, begin, key=itemgetter("noisy_start")) - 1]
    if begin >= edit["noisy_end"]:
        return _token_at(starts, begin + edit["clean_end"] - edit["noisy_end"])
    last = _token_at(starts, max(edit["clean_start"], edit["clean_end"] - 1))
    first = min(bisect_left(starts, edit["clean_start"]), last)
    begun, at, ended = (
        bisect_left(begins, place) for place in (edit["noisy_start"], begin, edit["noisy_end"])
    )
    return first + (at - begun) * (last + 1 - first) // (ended - begun)


def _token_at(starts: list[int], position: int) -> int:
    return max(0, bisect_right(starts, position) - 1)
