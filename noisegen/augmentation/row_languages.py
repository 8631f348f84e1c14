"""Rows in several languages: each row gets the noise of its own language."""

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from noisegen.data.sources import no_column
from noisegen.data.tables import is_string
from noisegen.errors import SourceError
from noisegen.noising import registry
from noisegen.noising.engine import EDITS, Engine, add_noise
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.text.buffers import I64, as_arrow, one_chunk
from noisegen.text.languages import known_language

LANGUAGES = "lang"  # default column of languages
NO_COLUMN = "none"  # value of --lang-column: rows are in one language
UNDETERMINED = "und"  # code of a text in a language that nobody determined
Groups = list[tuple[Engine | None, I64]]  # the engine of some rows, and their indices


def languages_in(rows: pa.Table, name: str) -> tuple[I64, list[str | None]]:
    """Return the languages in a column of rows, and for each row the index of its language.

    An unknown or missing language is None, the first item of the list. Raises SourceError if the
    column is missing or holds no text.
    """
    if name not in rows.column_names:
        raise no_column("a source", name, rows.column_names)
    tags = one_chunk(rows[name])
    if pa.types.is_dictionary(tags.type):
        tags = tags.dictionary_decode()
    if not is_string(tags.type):
        raise SourceError(f"column {name!r} holds {tags.type}, not languages")
    coded = tags.cast(pa.string()).dictionary_encode()
    known = map(known_language, coded.dictionary.to_pylist())
    of_tags = [None, *(None if lang == UNDETERMINED else lang for lang in known)]
    languages = list(dict.fromkeys(of_tags))
    number_of = {lang: number for number, lang in enumerate(languages)}
    numbers = np.array([number_of[lang] for lang in of_tags], np.int64)
    places = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return numbers[places + 1], languages


def first_language(recipe: Recipe, seen: Sequence[str] = ()) -> str:
    """Return the first language for which a recipe has data, of `seen`, or else of all."""
    of_steps = (registry.get(step.transform).languages() for step in recipe.steps())
    known = (lang for lang in chain(seen, ["en"], *of_steps) if recipe.has_language(lang))
    return next(known, "en")


def language_groups(
    rows: pa.Table, name: str, recipe: Recipe, engine_in: Callable[[str], Engine]
) -> tuple[Groups, pa.Array]:
    """Return the rows of each engine, and the reason of each row whose language has none.

    The column `name` has the languages; `engine_in` returns the engine of the recipe for a
    language. The reason is '' for most rows.
    """
    numbers, languages = languages_in(rows, name)
    groups: Groups = []
    reasons = np.full(len(rows), "", object)
    for number, lang in enumerate(languages):
        index = np.flatnonzero(numbers == number)
        has_data = lang is not None and recipe.has_language(lang)
        groups.append((engine_in(lang) if lang and has_data else None, index))
        if not has_data:
            reasons[index] = "no_data_for_language" if lang else "unknown_language"
    return groups, pa.array(reasons, pa.string())


def texts_of(groups: Groups, owners: I64) -> Groups:
    """Return the groups of the texts of rows; `owners` has the index of each text's row."""
    return [(engine, np.flatnonzero(np.isin(owners, index))) for engine, index in groups]


def noise_groups(
    rows: pa.Table, streams: Streams, groups: Groups, protect: tuple[str, ...], *, edits: bool
) -> pa.Table:
    """Add the columns of `add_noise` to rows; each group gets the noise of its engine.

    Rows of a group without an engine stay clean.
    """
    clean = one_chunk(rows["clean"])
    if len(groups) == 1 and (engine := groups[0][0]):
        return add_noise(engine, rows, clean, streams, protect, edits)
    made = []
    for engine, index in groups:
        some = clean.take(as_arrow(index))
        texts = _unchanged(some, edits=edits)
        if engine:
            texts = add_noise(engine, texts, some, streams.take(index), protect, edits)
        made.append(texts)
    order = np.argsort(np.concatenate([index for _, index in groups]))
    noised = pa.concat_tables(made).take(as_arrow(order)).combine_chunks()
    rows = rows.drop_columns([name for name in rows.column_names if name in noised.schema.names])
    for name in noised.schema.names:
        rows = rows.append_column(name, noised[name])
    return rows


def _unchanged(clean: pa.Array, *, edits: bool) -> pa.Table:
    """Return the columns of `add_noise` for texts that stay clean."""
    kinds = {"transforms": pa.list_(pa.string())} | ({"edits": EDITS} if edits else {})
    offsets = as_arrow(np.zeros(len(clean) + 1, np.int32))
    empty = {
        name: pa.ListArray.from_arrays(offsets, pa.array([], kind.value_type))
        for name, kind in kinds.items()
    }
    return pa.table({"noisy": clean.cast(pa.string()), **empty})
