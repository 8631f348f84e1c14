"""Noise on the fly: `Mapper` for `datasets`, `Collator` for a torch `DataLoader`.

The noise of a row is a function of (seed, id, epoch), whatever the number of loader workers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError, did_you_mean
from noisegen.noise.engine import engine_for
from noisegen.noise.plan import Streams
from noisegen.noise.recipe import Recipe
from noisegen.noise.rng import id_numbers
from noisegen.text.spans import PROTECTED, protect_kinds


@dataclass
class _OnTheFly:
    """Noise for rows with ids; `epoch` gives other noise, as the copies of `augment` do."""

    recipe: str | Recipe = "mix_all"
    seed: int = 0
    text_column: str = "text"
    id_column: str = "id"
    noisy_column: str = "noisy"
    lang: str = "en"
    protect: str = PROTECTED
    epoch: int = 0
    tagger: str = "auto"

    def noise(self, texts: Sequence[str | None], ids: Iterable[int] | Iterable[str]) -> list[Any]:
        """Return the noisy texts of rows with these ids, None for None."""
        numbers = pa.array(list(ids))
        if not len(numbers):
            return []
        if numbers.null_count or not (
            pa.types.is_integer(numbers.type) or pa.types.is_string(numbers.type)
        ):
            raise UsageError(f"ids are integers or strings, without nulls, not {numbers.type}")
        clean = pa.array(list(texts), pa.string())
        streams = Streams(id_numbers(numbers), self.seed, self.epoch)
        engine = engine_for(self.recipe, self.lang, self.tagger)
        noised = engine.noise(clean.fill_null(""), streams, protect_kinds(self.protect))
        noisy: list[Any] = pc.if_else(clean.is_valid(), noised.noisy, None).to_pylist()
        return noisy


@dataclass
class Mapper(_OnTheFly):
    """For `dataset.map(Mapper("mix_all", seed=7), batched=True)`: adds a column of noisy text.

    Rows need a column of ids, or call `dataset.map(..., with_indices=True)`. `epoch` gives other
    noise to the same rows, as the copies of `augment` do.
    """

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


@dataclass
class Collator(_OnTheFly):
    """For `DataLoader(rows, collate_fn=Collator(...))`: noises the text of a list of row mappings.

    The batch is a dict of lists, or what `collate` makes of the list of rows with noise. Call
    `set_epoch` before each pass for fresh noise; persistent workers keep the epoch they began with.
    """

    collate: Callable[[list[dict[str, Any]]], Any] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the noise of a pass over the data."""
        self.epoch = epoch

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return the batch; raises UsageError for a row without text or id column."""
        for name in (self.text_column, self.id_column):
            if any(name not in row for row in rows):
                raise UsageError(f"a row has no {name!r}: name the columns of text and id")
        texts, ids = ([row[name] for row in rows] for name in (self.text_column, self.id_column))
        noised = [
            {**row, self.noisy_column: noisy}
            for row, noisy in zip(rows, self.noise(texts, ids), strict=True)
        ]
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
        options = {"lang": self.lang, "protect": self.protect, "tagger": self.tagger}
        return _OnTheFly(recipe, seed, epoch=copy, **options).noise(texts, range(len(texts)))
