"""`noisegen.noise`: noise for texts in memory."""

import os
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
import pyarrow as pa

from noisegen.errors import UsageError
from noisegen.noising.engine import Engine, check_options, warn_once
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import ENGINES_MAX, FILE_ENDINGS, Recipe
from noisegen.noising.rng import id_number
from noisegen.options import public
from noisegen.text.buffers import U64, Texts
from noisegen.text.moves import Edit, Moves
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.text.spans import PROTECTED, protect_kinds

Text = TypeVar("Text", str, Sequence[str])
RecipeLike = str | Recipe | Sequence[str | Step]


@dataclass(frozen=True)
class EditedText:
    """A text with the text that was given, and the edits that made one of the other.

    The edits ascend; the text outside of them is equal on both sides.
    """

    text: str
    given: str
    edits: list[Edit]

    def __str__(self) -> str:
        return self.text

    def moved(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the offsets in `text` of a span of the given text; None if it is lost.

        `Moves.moved` explains what becomes of a span that an edit touches. Raises TypeError for
        offsets that are no whole numbers.
        """
        try:
            first, last = index(start), index(end)
        except TypeError:
            raise TypeError(f"offsets are whole numbers, not {start!r}, {end!r}") from None
        return Moves(self.given, self.text, self.edits).moved(first, last)


class _Options(TypedDict, total=False):
    """Options of `noise` that do not change the type of its result."""

    seed: int
    id: object
    lang: str
    protect: str
    tagger: str


@overload
def noise(
    text: Text,
    recipe: RecipeLike = ...,
    *,
    edits: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Text: ...
@overload
def noise(
    text: str, recipe: RecipeLike = ..., *, edits: Literal[True], **options: Unpack[_Options]
) -> EditedText: ...
@overload
def noise(
    text: list[str] | tuple[str, ...],
    recipe: RecipeLike = ...,
    *,
    edits: Literal[True],
    **options: Unpack[_Options],
) -> list[EditedText]: ...
@public
def noise(
    text: Any,
    recipe: RecipeLike = DEFAULT_RECIPE,
    *,
    seed: int = 0,
    id: object = None,  # noqa: A002 - the name of the column
    lang: str = "en",
    protect: str = PROTECTED,
    tagger: str = "rule",
    edits: bool = False,
) -> Any:
    """Return `text`, or each text of a list, with noise.

    The same `seed` and `id` give the same noise, equal to the noise of a row with this id in a run
    with this seed. For a list, `id` is a list. Without `id` the text itself is the id: equal texts
    get equal noise.

    `recipe` is a Recipe, the name of a packaged recipe, a .yaml file, NAME[:parameter=value,...]
    for one transform, or a list of such steps, applied in order. `lang` is a code or English name
    of a language, such as pt-BR, deu or Chinese. `protect` names the kinds of span to leave
    unchanged, such as 'url,number,/[A-Z]{3}/', or is 'none'. `tagger` ('rule' or 'spacy') finds
    the parts of speech for slng and abr3. With `edits` a text is returned as a `EditedText`, which
    also has the edits, and moves spans of the given text.

    Warns once of transforms that have no data for the language. Raises UsageError for a text that
    is not a string, and for a wrong option.
    """
    is_one = isinstance(text, str)
    texts: list[str] = strings([text] if is_one else text)
    ids = texts if id is None else [id] if is_one else id
    engine, kinds = prepared(recipe, lang, protect, tagger)
    streams = Streams(id_array(ids, len(texts)), seed)
    noisy: Sequence[Any]
    if edits:
        noisy = _with_edits(engine, texts, streams, kinds)
    else:
        noisy = engine.noise_texts(texts, streams, kinds)
    return noisy[0] if is_one else noisy


@public
def normalize(
    text: Any,
    lang: str = "en",
    *,
    recipe: str = DEFAULT_RECIPE,
    clean: str | None = None,
    pairs: str | None = None,
    words_only: bool = False,
    protect: str = PROTECTED,
    edits: bool = False,
) -> Any:
    """Return `text`, or each text of a list, as edited text is written: 'c u' -> 'See you.'.

    `recipe` is the noise to undo: a packaged recipe or a .yaml file, such as one that `fit` made.
    `clean` is a file or folder of clean text of the same kind, `pairs` is a file or folder of real
    pairs of noisy and clean text; both make the result better. With `words_only`, capitals and last
    stops stay as they are. `lang` and `protect` are as in `noise`. With `edits` a text is returned
    as an `EditedText`, whose `moved` moves spans of the given text.

    The result is the same at every call. Raises UsageError for a text that is not a string, for a
    wrong option, and for a language without counts of words.
    """
    values = {"recipe": recipe, "clean": clean, "pairs": pairs, "style": not words_only}
    given = {name: value for name, value in values.items() if value is not None}
    step = Step("normalize", values=given)
    return cast(Any, noise)(text, [step], lang=lang, protect=protect, edits=edits)


def _with_edits(
    engine: Engine, texts: Sequence[str], streams: Streams, protect: tuple[str, ...]
) -> list[EditedText]:
    """Return the texts with noise, each with its edits."""
    clean = Texts.from_strings(list(texts))
    noised = engine.noise(clean.to_arrow(pa.string()), streams, protect, with_record=True)
    edits = engine.edits(clean, Texts.from_arrow(noised.noisy), noised.record).to_pylist()
    return [
        EditedText(noisy, text, [Edit(**edit) for edit in of_text])
        for text, noisy, of_text in zip(texts, noised.noisy.to_pylist(), edits, strict=True)
    ]


def strings(texts: Any) -> list[str]:
    """Return the texts as a list; raises UsageError if one of them is not a Unicode string."""
    if isinstance(texts, bytes | Mapping | Set) or not hasattr(texts, "__iter__"):
        raise UsageError(f"give a text or a list of texts, not {texts!r:.60}")
    listed: list[str] = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            are_tokens = isinstance(text, list) and all(isinstance(one, str) for one in text)
            hint = "; noise tokens and their labels with noisegen.augment(..., tokens=COLUMN)"
            raise UsageError(f"text {number} is {text!r:.60}, not a string{hint * are_tokens}")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                where = f"text {number}, character {error.start}"
                raise UsageError(f"{where}: a lone surrogate; decode your input again") from error
    return listed


def id_array(ids: Any, texts: int) -> U64:
    """Convert row ids to 64-bit numbers; `texts` is the count of texts.

    Raises UsageError if there is not one integer or string per text.
    """
    listed = list(ids) if hasattr(ids, "__iter__") and not isinstance(ids, str) else [None]
    listed = ids.tolist() if hasattr(ids, "tolist") else listed
    numbers = np.asarray(listed) if listed else np.zeros(0, np.uint64)
    if all(isinstance(key, str) for key in listed):
        numbers = np.fromiter(map(id_number, listed), np.uint64, len(listed))
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise UsageError("ids are integers or strings, one per text, without nulls")
    if len(numbers) != texts:
        raise UsageError(f"{texts} texts but {len(numbers)} ids: give one per text")
    return numbers.astype(np.uint64)


def prepared(
    recipe: RecipeLike, lang: str, protect: str, tagger: str, *, quiet: bool = False
) -> tuple[Engine, tuple[str, ...]]:
    """Return the engine of a recipe and the kinds of span to protect.

    Warns once of transforms without data for the language, unless `quiet`. Raises UsageError for a
    wrong option.
    """
    check_options(lang, protect, tagger)
    engine = engine_for(recipe, lang, tagger)
    if engine.note and not quiet:
        warn_once(engine.note)
    return engine, protect_kinds(protect)


def engine_for(recipe: RecipeLike, lang: str = "en", tagger: str = "rule") -> Engine:
    """Return the engine of a recipe, given in any form that `noise` takes.

    The engine is made once per process and then cached. Raises UsageError if `recipe` is in no
    such form.
    """
    return recipe_for(recipe).engine(lang, tagger)


def recipe_for(recipe: RecipeLike) -> Recipe:
    """Return a recipe, given in any form that `noise` takes; raises UsageError for another form."""
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        given: Any = recipe
        listed = given if isinstance(given, list | tuple) else ()
        are_steps = bool(listed) and all(isinstance(step, str | Step) for step in listed)
        return Recipe.of(given) if are_steps else Recipe.named(given)
    if recipe.endswith(FILE_ENDINGS):
        with suppress(OSError):
            state = os.stat(recipe)  # noqa: PTH116 - a tenth of the time
            return _recipe_in(
                recipe, (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)
            )
    return _recipe_in(recipe, ())


@lru_cache(ENGINES_MAX)
def _recipe_in(name: str, _: tuple[int, ...]) -> Recipe:
    """Return a recipe; the cache key of a file includes its version, so a changed file is read."""
    return Recipe.named(name)
