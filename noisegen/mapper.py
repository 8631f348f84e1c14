"""Noise on the fly: `Mapper` for `datasets`, `Collator` for a torch `DataLoader`.

The noise of a row is a function of (seed, id, epoch), whatever the number of loader workers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from noisegen.engine import PROTECTED, engine_for
from noisegen.errors import UsageError
from noisegen.ids import id_numbers
from noisegen.mixing import Dice
from noisegen.recipe import Recipe
from noisegen.text import protect_kinds


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

    def __call__(
        self, batch: Mapping[str, Sequence[Any]], indices: Sequence[int] | None = None
    ) -> dict[str, list[str]]:
        """Return the noisy column for a batch of columns."""
        ids = batch.get(self.id_column, indices)
        if ids is None:
            raise UsageError(f"no column {self.id_column!r}: name one, or map with_indices=True")
        return {self.noisy_column: self.noise(batch[self.text_column], ids)}

    def noise(self, texts: Sequence[str], ids: Sequence[int] | Sequence[str]) -> list[str]:
        """Return the noisy texts of rows with these ids."""
        dice = Dice(id_numbers(pa.array(list(ids))), self.seed, self.epoch)
        engine = engine_for(self.recipe, self.lang)
        clean = pa.array(list(texts), pa.string())
        noisy: list[str] = engine.noise(clean, dice, protect_kinds(self.protect)).noisy.to_pylist()
        return noisy


@dataclass
class Collator:
    """For `DataLoader(rows, collate_fn=Collator(...))`: noises the text of a list of row mappings.

    The batch is a dict of lists, or what `collate` makes of the list of rows with noise. Call
    `set_epoch` before each pass for fresh noise; persistent workers keep the epoch they began with.
    """

    recipe: str | Recipe = "mix_all"
    seed: int = 0
    text_column: str = "text"
    id_column: str = "id"
    noisy_column: str = "noisy"
    lang: str = "en"
    protect: str = PROTECTED
    collate: Callable[[list[dict[str, Any]]], Any] | None = None
    epoch: int = field(default=0)

    def set_epoch(self, epoch: int) -> None:
        """Choose the noise of a pass over the data."""
        self.epoch = epoch

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return the batch."""
        mapper = Mapper(
            self.recipe, self.seed, self.text_column, self.id_column, self.noisy_column,
            self.lang, self.protect, self.epoch,
        )  # fmt: skip
        texts = [row[self.text_column] for row in rows]
        noisy = mapper.noise(texts, [row[self.id_column] for row in rows])
        noised = [{**row, self.noisy_column: text} for row, text in zip(rows, noisy, strict=True)]
        if self.collate is not None:
            return self.collate(noised)
        return {name: [row[name] for row in noised] for name in noised[0]}
