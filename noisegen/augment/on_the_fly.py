"""Noise on the fly: `Mapper` for `datasets`, `Collator` for a torch `DataLoader`.

The noise of a row is a function of (seed, id, epoch), whatever the number of loader workers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.augment import PROTECTED
from noisegen.errors import UsageError, did_you_mean
from noisegen.noise.engine import Engine, engine_for
from noisegen.noise.plan import Streams
from noisegen.noise.recipe import Recipe
from noisegen.noise.registry import Settings
from noisegen.noise.rng import id_numbers
from noisegen.text.spans import protect_kinds


@dataclass(frozen=True)
class Mapper:
    """For `dataset.map(Mapper("mix_all", seed=7), batched=True)`: adds a column of noisy text.

    Rows need a column of ids, or call `dataset.map(..., with_indices=True)`. `epoch` gives other
    noise to the same rows, as the copies of `augment` do.
    """

    recipe: str | Recipe = "mix_all"
    seed: int = 0
    text_column: str = "text"
    id_column: str = "id"
    noisy_column: str = "noisy"
    lang: str = "en"
    protect: str = PROTECTED
    epoch: int = 0
    tagger: str = "auto"

    def __call__(
        self, batch: Mapping[str, Sequence[Any]], indices: Sequence[int] | None = None
    ) -> dict[str, list[str | None]]:
        """Return the noisy column for a batch of columns; a row without text stays without."""
        # Not batch.get: the lazy batch of `datasets` would fall back even where the column is.
        ids = batch[self.id_column] if self.id_column in batch else indices  # noqa: SIM401
        if ids is None:
            raise UsageError(f"no column {self.id_column!r}: name one, or map with_indices=True")
        if self.text_column not in batch:
            near = did_you_mean(self.text_column, batch)
            raise UsageError(f"no column {self.text_column!r} among: {', '.join(batch)}{near}")
        return {self.noisy_column: self.noise(batch[self.text_column], ids)}

    def noise(
        self, texts: Sequence[str | None], ids: Sequence[int] | Sequence[str]
    ) -> list[str | None]:
        """Return the noisy texts of rows with these ids."""
        if not len(ids):
            return []
        numbers = pa.array(list(ids))
        if numbers.null_count or not (
            pa.types.is_integer(numbers.type) or pa.types.is_string(numbers.type)
        ):
            raise UsageError(f"ids are integers or strings, without nulls, not {numbers.type}")
        clean = pa.array(list(texts), pa.string())
        noised = engine_for(self.recipe, self.lang, self.tagger).noise(
            clean.fill_null(""), Streams(id_numbers(numbers), self.seed, self.epoch),
            protect_kinds(self.protect),
        )  # fmt: skip
        noisy: list[str | None] = pc.if_else(clean.is_valid(), noised.noisy, None).to_pylist()
        return noisy


class MapperOptions(TypedDict, total=False):
    """The options of `Mapper` beside the recipe."""

    seed: int
    text_column: str
    id_column: str
    noisy_column: str
    lang: str
    protect: str
    epoch: int
    tagger: str


class Collator:
    """For `DataLoader(rows, collate_fn=Collator(...))`: noises the text of a list of row mappings.

    The options are those of `Mapper`. The batch is a dict of lists, or what `collate` makes of the
    list of rows with noise. Call `set_epoch` before each pass for fresh noise; persistent workers
    keep the epoch they began with.
    """

    def __init__(
        self,
        recipe: str | Recipe = "mix_all",
        *,
        collate: Callable[[list[dict[str, Any]]], Any] | None = None,
        **options: Unpack[MapperOptions],
    ) -> None:
        self.mapper = Mapper(recipe, **options)
        self.collate = collate

    def __repr__(self) -> str:
        return f"Collator({self.mapper}, collate={self.collate})"

    def set_epoch(self, epoch: int) -> None:
        """Choose the noise of a pass over the data."""
        self.mapper = replace(self.mapper, epoch=epoch)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return the batch; raises UsageError for a row without text or id column."""
        mapper = self.mapper
        for name in (mapper.text_column, mapper.id_column):
            if any(name not in row for row in rows):
                raise UsageError(f"a row has no {name!r}: name the columns of text and id")
        texts = [row[mapper.text_column] for row in rows]
        noisy = mapper.noise(texts, [row[mapper.id_column] for row in rows])
        column = mapper.noisy_column
        noised = [{**row, column: text} for row, text in zip(rows, noisy, strict=True)]
        if self.collate is not None:
            return self.collate(noised)
        return {name: [row[name] for row in noised] for name in (noised or [{}])[0]}


@dataclass(frozen=True)
class Noising:
    """Options of noise on texts in memory, beside the recipe; see `noisegen.noise`."""

    lang: str = "en"
    protect: str = PROTECTED
    tagger: str = "auto"

    def noise(
        self, recipe: Recipe, texts: Sequence[str], seed: int = 0, copy: int = 0
    ) -> list[str]:
        """Return the noisy texts, whose ids count from 0.

        Steps without data for the language are left out; raises UsageError if all are.
        """
        engine = Engine(recipe.for_language(self.lang)[0], Settings(self.lang, tagger=self.tagger))
        streams = Streams(np.arange(len(texts), dtype=np.uint64), seed, copy)
        clean = pa.array(list(texts), pa.string())
        noisy: list[str] = engine.noise(
            clean, streams, protect_kinds(self.protect)
        ).noisy.to_pylist()
        return noisy
