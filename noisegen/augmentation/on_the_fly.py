"""Noise on the fly: `Mapper` for `datasets`, `Collator` for a torch `DataLoader`.

The noise of a row depends on seed, id and epoch alone, not on the number of loader workers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.augmentation.annotated import (
    RowLayout,
    as_before,
    check_paths,
    checked_spans,
    noise_rows,
)
from noisegen.augmentation.row_languages import (
    LANGUAGES,
    NO_COLUMN,
    Groups,
    first_language,
    language_groups,
    noise_groups,
    texts_of,
)
from noisegen.data.paths import parsed, parts_of, path_in
from noisegen.data.rows import ID, Columns
from noisegen.errors import UsageError, did_you_mean
from noisegen.noising.engine import Engine, warn_once
from noisegen.noising.noise import (
    RecipeLike,
    engine_for,
    id_array,
    prepared,
    recipe_for,
    strings,
)
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import check_seed
from noisegen.options import Strings, checked_init, listed
from noisegen.text.buffers import I64, U64
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.text.spans import PROTECTED, protect_kinds

Row = Mapping[str, Any]
Batch = Mapping[str, Sequence[Any]]  # columns of rows
LAYOUTS_MAX = 64  # most layouts in the cache
_CLEAN = {  # warnings of rows that stay clean
    "unknown_language": "rows without a known language in column {column!r} stay clean: lang='en' "
    "noises all rows in English",
    "no_data_for_language": "rows in a language of column {column!r} stay clean: the recipe has no "
    "data for it",
    "wrong_span": "rows with spans that do not fit their text stay clean",
}


class UsedColumns(NamedTuple):
    """The columns that decide the noise of a batch: texts and spans, and languages if any."""

    layout: RowLayout
    languages: str | None

    @property
    def is_plain(self) -> bool:
        """Whether noise only adds a column: one plain column has the text, and no spans follow."""
        return self.layout.is_flat and not self.layout.spans

    @property
    def names(self) -> dict[str, bool]:
        """The names of the columns, each once, in a dict for lookups."""
        return self.layout.columns | ({self.languages: False} if self.languages else {})


@lru_cache(LAYOUTS_MAX)
def _used_columns(columns: Columns, languages: str | None, names: tuple[str, ...]) -> UsedColumns:
    """Return the columns of a batch, whose names are `names`, that decide its noise.

    `languages` is the option lang_column. Raises UsageError for a column that is missing.
    """
    paths = [path for given in (*columns.texts, *columns.spans) for path in parts_of(given)]
    for path in paths:
        if path_in(path, names) is None:
            raise UsageError(_no_column(path, names))
    if languages not in (None, NO_COLUMN, *names):
        raise UsageError(_no_column(str(languages), names))
    layout = RowLayout.of(columns, names)
    others = (columns.row_id, *(path.column for path in layout.texts))
    if languages is None and LANGUAGES not in others:
        languages = LANGUAGES
    return UsedColumns(layout, languages if languages in names else None)


def _no_column(name: str, names: Iterable[str]) -> str:
    """Return the message that a column is not among `names`, with the remedy."""
    there = ", ".join(map(str, names))
    named = "; name the column of text: column=NAME" if name == "text" else ""
    return f"no column {name!r} among: {there}{did_you_mean(name, names) or named}"


def refuse_rows_without(name: str, rows: Sequence[Row], places: Sequence[int | None]) -> None:
    """Raise UsageError for a row without a column; `places` number the rows in the message."""
    for row, place in zip(rows, places, strict=True):
        if name not in row:
            raise UsageError(f"{_named(place)}: {_no_column(name, row)}")


def _refuse_other_rows(rows: Sequence[Any], places: Sequence[int | None]) -> None:
    """Raise UsageError for a row that is no mapping."""
    for row, place in zip(rows, places, strict=True):
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise UsageError(f"{_named(place)} is of type {kind}: give rows that are dicts")


def _named(place: int | None) -> str:
    return "a row" if place is None else f"row {place}"


@contextmanager
def _as_python() -> Iterator[None]:
    """Write the option --spans of the command line as in Python in an error of the block."""
    try:
        yield
    except UsageError as error:
        raise UsageError(str(error).replace("--spans ", "spans ")) from error


@dataclass
class _OnTheFly:
    """Noise for rows with ids, made when the rows are used.

    In epoch n, a row gets the noise of its copy n in the output of `augment`.
    """

    recipe: RecipeLike = DEFAULT_RECIPE
    seed: int = 0
    column: Strings = "text"
    id_column: str = ID
    noisy_column: str = "noisy"
    lang: str | None = None
    protect: str = PROTECTED
    epoch: int = 0
    tagger: str = "rule"
    spans: Strings = ()
    lang_column: str | None = None
    _is_checked: bool = field(default=False, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the options: a copy checks its own first rows, and `datasets` hashes no state."""
        return vars(self) | {"_is_checked": False}

    def __post_init__(self) -> None:
        """Check the options; a warning of missing word lists comes only with the first batch."""
        check_seed(self.seed)
        check_epoch(self.epoch)
        if self.lang is not None and self.lang_column not in (None, NO_COLUMN):
            raise UsageError("lang is for all rows, lang_column for each row: choose one")
        lang = self.lang
        if lang is None:
            of_rows = self.lang_column != NO_COLUMN
            lang = first_language(recipe_for(self.recipe)) if of_rows else "en"
        prepared(self.recipe, lang, self.protect, self.tagger, quiet=True)

    def noise(
        self,
        texts: Sequence[str | None],
        ids: Iterable[int] | Iterable[str],
        languages: Sequence[str | None] | None = None,
    ) -> list[str | None]:
        """Return the noisy texts of rows with these ids; None stays None.

        `languages` has the language of each text (default: `lang`). A text without a known
        language, or in one without data, stays clean.
        """
        given = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
        clean = strings(["" if text is None else text for text in given])
        streams, kinds = self._streams(id_array(ids, len(clean))), protect_kinds(self.protect)
        noisy: list[str | None] = list(clean)
        for engine, index in self._groups(languages, len(clean)):
            if engine:
                some = engine.noise_texts([clean[at] for at in index], streams.take(index), kinds)
                for at, text in zip(index, some, strict=True):
                    noisy[at] = text
        return [None if text is None else made for text, made in zip(given, noisy, strict=True)]

    @_as_python()
    def columns(self, batch: Batch, ids: Any) -> dict[str, list[Any]]:
        """Return the columns that noise adds or changes in a batch of rows with these ids.

        Raises UsageError for a column that is missing.
        """
        used = self.used(batch)
        if used.is_plain:
            name, of_rows = used.layout.texts[0].column, used.languages
            tags = batch[of_rows] if of_rows else None
            return {self.noisy_column: self.noise(batch[name], ids, tags)}
        return self._in_place(batch, ids, used, rows_of(batch, used.layout))

    def used(self, names: Iterable[str]) -> UsedColumns:
        """Return which columns of a batch decide its noise; `names` are all its columns.

        Raises UsageError for a column that is missing.
        """
        texts, spans = tuple(listed(self.column)), tuple(listed(self.spans))
        columns = Columns(texts[0], self.id_column, paths=texts, spans=spans)
        of_rows = self.lang_column if self.lang is None else NO_COLUMN
        names = getattr(names, "columns", names)  # a DataFrame of Polars iterates over its columns
        known = tuple(name for name in names if isinstance(name, str))
        return _used_columns(columns, of_rows, known)

    def batch_of(self, rows: Sequence[Row], places: Sequence[int | None]) -> dict[str, list[Any]]:
        """Return the columns of rows that decide their noise; `places` number the rows in errors.

        Raises UsageError for a row that is no mapping or lacks a column.
        """
        _refuse_other_rows(rows, places)
        names = dict.fromkeys([*rows[0], *(LANGUAGES for row in rows if LANGUAGES in row)])
        try:
            used = self.used(names)
        except UsageError as error:
            raise UsageError(f"{_named(places[0])}: {error}") from error
        for name in used.names:
            refuse_rows_without(name, rows, places)
        batch = {name: [row[name] for row in rows] for name in used.names}
        if not used.is_plain:
            plain = rows_of(batch, used.layout, parses=False)
            batch |= {name: [row[name] for row in plain] for name in used.layout.columns}
        return batch

    @_as_python()
    def check_first(self, batch: Batch, *, are_many: bool) -> None:
        """Raise UsageError if the first rows show that there is nothing at the places named.

        With `are_many` rows, the form of the spans is checked, too.
        """
        if not (used := self.used(batch)).is_plain:
            rows = rows_of(batch, used.layout)
            check_paths(used.layout, rows)
            for one in used.layout.spans if are_many else ():
                checked_spans(used.layout, one, rows)

    def text_ids(self, batch: Batch) -> list[str]:
        """Return the texts of a batch without a column of ids: a text is its own id, as in `noise`.

        Raises UsageError if `id_column` was named, and for nested or several texts.
        """
        used = self.used(batch)
        if self.id_column != ID or not used.is_plain:
            raise UsageError(
                f"{_no_column(self.id_column, batch)}; name the column of ids with id_column=..."
            )
        return [text or "" for text in batch[used.layout.texts[0].column]]

    def _in_place(
        self, batch: Batch, ids: Any, used: UsedColumns, rows: list[dict[str, Any]]
    ) -> dict[str, list[Any]]:
        """Return the columns with noisy texts or moved spans for a batch; `rows` are changed."""
        layout = used.layout
        numbers, kinds = id_array(ids, len(rows)), protect_kinds(self.protect)
        tags = batch[used.languages] if used.languages else None
        groups = self._groups(tags, len(rows))

        def noise(texts: pa.Table, keys: U64, owners: I64) -> pa.Table:
            of_texts = texts_of(groups, owners)
            streams = self._streams(keys, numbers[owners])
            return noise_groups(texts, streams, of_texts, kinds, edits=True)

        _, _, reasons = noise_rows(layout, rows, numbers, noise)
        if "wrong_span" in reasons:
            warn_once(_CLEAN["wrong_span"])
        made = {
            name: [as_before(row[name], was) for row, was in zip(rows, batch[name], strict=True)]
            for name in layout.columns
        }
        if layout.is_flat:
            made[self.noisy_column] = made.pop(layout.texts[0].column)
        return made

    def _streams(self, keys: U64, writers: U64 | None = None) -> Streams:
        return Streams(keys, self.seed, int(self.epoch), writers)

    def _groups(self, tags: Iterable[Any] | None, rows: int) -> Groups:
        """Return the rows of each engine; `tags` has the languages of the rows, if they differ."""
        column, tags = self.lang_column or LANGUAGES, self._languages(tags)
        if tags is None:
            lang = "en" if self.lang is None else self.lang
            engine, _ = prepared(self.recipe, lang, self.protect, self.tagger)
            return [(engine, np.arange(rows))]
        recipe = recipe_for(self.recipe)

        def engine_in(lang: str) -> Engine:
            return engine_for(recipe, lang, self.tagger)

        table = pa.table({column: pa.array(tags, pa.string())})
        groups, reasons = language_groups(table, column, recipe, engine_in)
        for reason in reasons.unique().to_pylist():
            warn_once(_CLEAN.get(reason, "").format(column=column))
        return groups

    def _languages(self, tags: Iterable[Any] | None) -> list[str | None] | None:
        """Return the languages of rows; None for a default column that holds no text.

        Raises UsageError if a column that was named holds no text.
        """
        listed_tags = [] if tags is None else list(tags)
        others = [tag for tag in listed_tags if not isinstance(tag, str | None)]
        if others and self.lang_column:
            kind = type(others[0]).__name__
            raise UsageError(f"column {self.lang_column!r} holds {kind}, not languages")
        return None if tags is None or others else listed_tags


def rows_of(batch: Batch, layout: RowLayout, *, parses: bool = True) -> list[dict[str, Any]]:
    """Return copies of the rows of a batch with the columns of a layout, as Python values.

    With `parses`, texts that hold JSON are parsed. Tuples become lists, and so do arrays of texts
    and of spans.
    """
    columns = [
        [copied(parsed(value) if parses and may_be_json else value) for value in batch[name]]
        for name, may_be_json in layout.columns.items()
    ]
    rows = [dict(zip(layout.columns, row, strict=True)) for row in zip(*columns, strict=True)]
    for row in rows:
        for place in (place for one in layout.spans for place in one.path.places(row)):
            place.put(copied(place.value, arrays=True))
    return rows


def copied(value: Any, *, arrays: bool = False) -> Any:
    """Return a copy of lists, tuples and objects at any depth; the other values are shared.

    Tuples and arrays of texts become lists, and with `arrays` also other arrays, such as tensors.
    An array of one number without dimensions becomes the number.
    """
    if isinstance(value, dict):
        return {name: copied(inner, arrays=arrays) for name, inner in value.items()}
    if hasattr(value, "tolist") and (arrays or _is_of_objects(value)):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [copied(inner, arrays=arrays) for inner in value]
    return value


def _is_of_objects(value: Any) -> bool:
    """Tell whether an array has texts or other objects, or is a number without dimensions."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind in ("O", "U", "T") or getattr(value, "ndim", None) == 0


def joined(rows: Sequence[Row], made: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows with the columns `made` in them."""
    of_rows = zip(*made.values(), strict=True)
    return [
        {**row, **dict(zip(made, new, strict=True))} for row, new in zip(rows, of_rows, strict=True)
    ]


def check_epoch(epoch: object) -> None:
    """Raise UsageError if an epoch is not a whole number of at least 0."""
    if isinstance(epoch, bool) or not isinstance(epoch, Integral) or int(epoch) < 0:
        raise UsageError(f"epoch {epoch!r} is not a whole number of at least 0")


@checked_init
@dataclass
class Mapper(_OnTheFly):
    """Callable for `dataset.map(Mapper("ugc", seed=7), batched=True)`: adds a column of noisy text.

    `recipe`, `seed`, `lang`, `protect` and `tagger` are the options of `noise`. `noisy_column` is
    the name of the new column. Raises UsageError for a wrong option.

    `id_column` has the ids of the rows. Without it, the text is its own id, as in `noise`: equal
    texts get equal noise. With `with_indices=True` in `map`, the indices are the ids, and the noise
    is that of `augment`. Another `epoch` gives other noise.

    `column` may also be a path, such as `messages[role=user].content`, or several columns or paths;
    then the texts get their noise in place. Spans in the columns or paths `spans` follow the noise;
    a row that would lose a span stays clean.

    `lang_column` has the language of each row (default without `lang`: the column `lang`, if there
    is one; 'none': no column). Rows without a known language, or in one for which the recipe has no
    data, stay clean, with a warning.
    """

    def __call__(self, batch: Batch, indices: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return the columns that change for a batch, a dict of columns; a text None stays None."""
        first = listed(self.column)[0]
        if not hasattr(batch, "keys") and (batch is None or first not in batch):
            raise UsageError(f"a Mapper takes a dict of columns, not {type(batch).__name__}")
        # Not `batch.get`: for a lazy batch of `datasets`, it returns the default even if the batch
        # has the column.
        ids = batch[self.id_column] if self.id_column in batch else indices  # noqa: SIM401
        if isinstance(ids, int | str) or (first in batch and isinstance(batch[first], str)):
            raise UsageError("a Mapper takes a batch of columns, not a row: map with batched=True")
        if ids is None:
            ids = self.text_ids(batch)
        if not self._is_checked:
            self.check_first(batch, are_many=True)
            self._is_checked = True
        return self.columns(batch, ids)


@checked_init
@dataclass
class Collator(_OnTheFly):
    """Callable for `DataLoader(rows, collate_fn=Collator(...))`: adds noisy text to rows.

    A row is a mapping with an id in `id_column`, or without one: then its text is the id, as in
    `noise`. The other options and the noise are the same as for `Mapper`: `recipe`, `seed`,
    `column`, `noisy_column`, `lang`, `protect`, `epoch`, `tagger`, `spans`, `lang_column`. A batch
    is a dict of lists, or the result of `collate` for the list of noisy rows. Call `set_epoch`
    before each pass for new noise; persistent workers keep their first epoch.
    """

    collate: Callable[[list[dict[str, Any]]], Any] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the pass over the data: 0, 1, 2, ...

        Raises UsageError for another value.
        """
        check_epoch(epoch)
        self.epoch = epoch

    def __call__(self, rows: Sequence[Row]) -> Any:
        """Return a batch of the rows with their noise.

        Raises UsageError for a row without a text, without an id where other rows have one, or
        without a language.
        """
        rows = list(rows)
        noised = self._noised(rows) if rows else []
        if self.collate is not None:
            return self.collate(noised)
        return {name: [row[name] for row in noised] for name in (noised or [{}])[0]}

    def _noised(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the rows with their noise."""
        places = [None] * len(rows)
        batch = self.batch_of(rows, places)
        has_ids = any(self.id_column in row for row in rows)
        if has_ids:
            refuse_rows_without(self.id_column, rows, places)
        ids = [row[self.id_column] for row in rows] if has_ids else self.text_ids(batch)
        if not self._is_checked:
            self.check_first(batch, are_many=False)
            self._is_checked = True
        return joined(rows, self.columns(batch, ids))


@dataclass(frozen=True)
class Noising:
    """Options of noise for texts in memory; the fields are options of `noisegen.noise`."""

    lang: str = "en"
    protect: str = PROTECTED
    tagger: str = "rule"

    def noise(
        self, recipe: Recipe, texts: Sequence[str], seed: int = 0, copy: int = 0
    ) -> list[str]:
        """Return the noisy forms of texts; the ids of the texts are 0, 1, 2, ...

        Steps without data for the language are left out. Raises UsageError if no step has data.
        """
        engine, kinds = prepared(recipe, self.lang, self.protect, self.tagger, quiet=True)
        streams = Streams(np.arange(len(texts), dtype=np.uint64), seed, copy)
        return engine.noise_texts(strings(texts), streams, kinds)
