"""Noise on the rows of a task, their tags carried along."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.engine import noise_table
from noisegen.labels import carry
from noisegen.recipe import Recipe
from noisegen.tasks.kinds import NLI_NOISE_RATE, NOISE_RATES
from noisegen.tasks.rows import Row
from noisegen.training.plan import generator

_ROWS = 10_000  # noised at once


def noised(
    rows: Sequence[Row], recipe: Recipe, *, lang: str, seed: int = 0, copy: int = 0
) -> list[Row]:
    """Return every row with the noise that its number draws; both sentences of a pair get noise.

    A tag goes to the tokens that its own became; a row whose every word went stays as it was.
    """
    made: list[Row] = []
    for first in range(0, len(rows), _ROWS):
        some = rows[first : first + _ROWS]
        numbers = range(first, first + len(some))
        options: dict[str, Any] = {"seed": seed, "copy": copy, "lang": lang}
        told = _noise([row.text for row in some], [f"{n}" for n in numbers], recipe, options)
        seconds = _noise([row.second for row in some], [f"{n}/2" for n in numbers], recipe, options)
        for row, one, second in zip(some, told, seconds, strict=True):
            made.append(_with_noise(row, one["noisy"], one["edits"], second["noisy"]))
    return made


def _noise(
    texts: list[str], ids: list[str], recipe: Recipe, options: dict[str, Any]
) -> list[dict[str, Any]]:
    table = pa.table({"text": pa.array(texts, pa.string()), "id": pa.array(ids, pa.string())})
    rows: list[dict[str, Any]] = noise_table(recipe, table, edits=True, **options).to_pylist()
    return rows


def _with_noise(row: Row, noisy: str, edits: list[dict[str, Any]], second: str) -> Row:
    tokens, tags = carry(row.tokens, row.tags or row.tokens, noisy, edits)
    if not tokens or (row.second and not second.strip()):
        return row
    return replace(row, tokens=tuple(tokens), tags=tuple(tags) if row.tags else (), second=second)


def augmented(
    rows: Sequence[Row], recipe: Recipe, growth: float, *, lang: str, seed: int = 0
) -> list[Row]:
    """Return the rows and noisy copies of them: `growth` times as many in all, rounded.

    The last copy is of some rows, drawn by the seed.
    """
    made, copy = list(rows), 0
    wanted = round(growth * len(rows))
    while len(made) < wanted:
        copy += 1
        noisy = noised(rows, recipe, lang=lang, seed=seed, copy=copy)
        left = wanted - len(made)
        if left < len(rows):
            chosen = np.sort(generator(seed, copy).permutation(len(rows))[:left])
            noisy = [noisy[number] for number in chosen.tolist()]
        made += noisy
    return made


def noise_recipe(given: str, lang: str, *, is_nli: bool) -> Recipe:
    """Return the recipe that noises a test set; `wiki` without a rate has RCP's of the language."""
    kind, _, rest = given.partition(":")
    if kind == "wiki" and "rate=" not in rest:
        rate = NLI_NOISE_RATE if is_nli else NOISE_RATES.get(lang, 0.1)
        given = f"wiki:{rest},rate={rate}" if rest else f"wiki:rate={rate}"
    return Recipe.named(given)
