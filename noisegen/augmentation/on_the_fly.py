"""Noise on the fly: `Mapper` for `datasets`, `Collator` for a torch `DataLoader`.

The noise of a row depends on seed, id and epoch alone, not on the number of loader workers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.augmentation.annotated import RowLayout, as_before, checked_spans, noise_rows
from noisegen.data.paths import parsed, parts_of, path_in
from noisegen.data.rows import Columns
from noisegen.errors import UsageError, did_you_mean
from noisegen.noising.engine import add_noise
from noisegen.noising.noise import RecipeLike, id_array, prepared, strings
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import check_seed
from noisegen.options import Strings, checked_init, listed
from noisegen.text.buffers import I64, U64, one_chunk
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.text.spans import PROTECTED


@dataclass
class _OnTheFly:
    """Noise for rows with ids, made when the rows are used.

    In epoch n, a row gets the noise of its copy n in the output of `augment`.
    """

    recipe: RecipeLike = DEFAULT_RECIPE
    seed: int = 0
    column: str = "text"
    id_column: str = "id"
    noisy_column: str = "noisy"
    lang: str = "en"
    protect: str = PROTECTED
    epoch: int = 0
    tagger: str = "rule"

    def __post_init__(self) -> None:
        """Check the options; a warning of missing word lists comes only with the first batch."""
        check_seed(self.seed)
        check_epoch(self.epoch)
        prepared(self.recipe, self.lang, self.protect, self.tagger, quiet=True)

    def noise(
        self, texts: Sequence[str | None], ids: Iterable[int] | Iterable[str]
    ) -> list[str | None]:
        """Return the noisy texts of rows with these ids; None stays None."""
        given = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
        clean = strings(["" if text is None else text for text in given])
        streams = Streams(id_array(ids, len(clean)), self.seed, int(self.epoch))
        engine, kinds = prepared(self.recipe, self.lang, self.protect, self.tagger)
        noised = zip(given, engine.noise_texts(clean, streams, kinds), strict=True)
        return [None if text is None else noisy for text, noisy in noised]


def check_epoch(epoch: object) -> None:
    """Raise UsageError if an epoch is not a whole number of at least 0."""
    if isinstance(epoch, bool) or not isinstance(epoch, Integral) or int(epoch) < 0:
        raise UsageError(f"epoch {epoch!r} is not a whole number of at least 0")


@checked_init
@dataclass
class Mapper(_OnTheFly):
    """Callable for `dataset.map(Mapper("ugc", seed=7), batched=True)`: adds a column of noisy text.

    Rows need a column of ids. Without one, call `map` with `with_indices=True`: the indices are
    then the ids. Another `epoch` gives other noise.

    `column` may also be a path, such as `messages[role=user].content`; then the texts get their
    noise in place. Spans in the columns or paths `spans` follow the noise; a row that would lose a
    span stays clean.
    """

    spans: Strings = ()

    def __call__(
        self, batch: Mapping[str, Sequence[Any]], indices: Sequence[int] | None = None
    ) -> dict[str, list[Any]]:
        """Return the columns that change for a batch, a dict of columns; a text None stays None."""
        self._check(batch)
        texts = batch[self.column] if self.column in batch else ()  # noqa: SIM401
        if texts is None or isinstance(texts, str) or isinstance(indices, int):
            raise UsageError("a Mapper takes a batch of columns, not a row: map with batched=True")
        # Not `batch.get`: for a lazy batch of `datasets`, it returns the default even if the batch
        # has the column.
        ids = batch[self.id_column] if self.id_column in batch else indices  # noqa: SIM401
        if ids is None:
            raise UsageError(f"no column {self.id_column!r}: name one, or map with_indices=True")
        if self.column in batch and not listed(self.spans):
            return {self.noisy_column: self.noise(texts, ids)}
        return self._in_place(batch, ids)

    def _check(self, batch: Any) -> None:
        """Raise UsageError if a batch is no dict of columns, or lacks a column that is named."""
        if not hasattr(batch, "keys") and (batch is None or self.column not in batch):
            raise UsageError(f"a Mapper takes a dict of columns, not {type(batch).__name__}")
        paths = [path for given in (self.column, *listed(self.spans)) for path in parts_of(given)]
        for path in paths:
            if path_in(path, list(batch)) is None:
                near = did_you_mean(path, batch)
                raise UsageError(f"no column {path!r} among: {', '.join(batch)}{near}")

    def _in_place(self, batch: Mapping[str, Sequence[Any]], ids: Any) -> dict[str, list[Any]]:
        """Return the columns with noisy texts or moved spans for a batch."""
        paths = () if self.column in batch else (self.column,)
        columns = Columns(self.column, paths=paths, spans=tuple(listed(self.spans)))
        layout = RowLayout.of(columns, list(batch))
        values = {
            name: [deepcopy(parsed(value) if may_be_json else value) for value in batch[name]]
            for name, may_be_json in layout.columns.items()
        }
        rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        for one in layout.spans:
            list(checked_spans(layout, one, rows))
        engine, kinds = prepared(self.recipe, self.lang, self.protect, self.tagger)
        numbers = id_array(ids, len(rows))

        def noise(texts: pa.Table, keys: U64, owners: I64) -> pa.Table:
            streams = Streams(keys, self.seed, int(self.epoch), numbers[owners])
            return add_noise(engine, texts, one_chunk(texts["clean"]), streams, kinds, edits=True)

        noise_rows(layout, rows, numbers, noise)
        made = {
            name: [as_before(row[name], was) for row, was in zip(rows, batch[name], strict=True)]
            for name in values
        }
        if layout.is_flat:
            made[self.noisy_column] = made.pop(self.column)
        return made


@checked_init
@dataclass
class Collator(_OnTheFly):
    """Callable for `DataLoader(rows, collate_fn=Collator(...))`: adds noisy text to rows.

    A row is a mapping. A batch is a dict of lists, or the result of `collate` for the list of noisy
    rows. Call `set_epoch` before each pass for new noise; persistent workers keep their first
    epoch.
    """

    collate: Callable[[list[dict[str, Any]]], Any] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the pass over the data: 0, 1, 2, ...

        Raises UsageError for another value.
        """
        check_epoch(epoch)
        self.epoch = epoch

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return a batch of the rows with their noise.

        Raises UsageError for a row without the column of text or the column of ids.
        """
        rows, columns = list(rows), (self.column, self.id_column)
        for name in columns:
            if any(name not in row for row in rows):
                raise UsageError(f"a row has no {name!r}: name the columns of text and id")
        texts, ids = ([row[name] for row in rows] for name in columns)
        noisy = zip(rows, self.noise(texts, ids), strict=True)
        noised = [{**row, self.noisy_column: text} for row, text in noisy]
        if self.collate is not None:
            return self.collate(noised)
        return {name: [row[name] for row in noised] for name in (noised or [{}])[0]}


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
