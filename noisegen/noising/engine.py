"""The engine: a recipe over one Arrow batch, and what adds noise to texts and tables with it.

Rows are noised in passes. A pass gathers the rows that have a k-th step, in the order of their
steps; every kernel proposes edits for its run of rows; all edits of the pass are applied at once.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError
from noisegen.noising import registry, rng
from noisegen.noising.edits import Composed, Edits, compose, rewritten
from noisegen.noising.lexical import LexicalKernel
from noisegen.noising.plan import Plan, Schedule, Streams
from noisegen.noising.recipe import NoiseOptions, Recipe, Step, step_values
from noisegen.noising.registry import (
    HABITS,
    Kernel,
    RowFunction,
    RowKernel,
    Settings,
    SparingKernel,
    WindowedKernel,
    edits_of_one,
)
from noisegen.noising.rng import RowDraws, id_number, id_numbers
from noisegen.text.buffers import I64, U64, Texts, Tokens, as_arrow
from noisegen.text.case import characters_in
from noisegen.text.languages import normalize_language
from noisegen.text.resources import DEFAULT_RECIPE, keep_freed_memory
from noisegen.text.rows import Memo, Row
from noisegen.text.spans import (
    NO_SPANS,
    PROTECTED,
    RowSpans,
    Spans,
    protect_kinds,
    protected,
    protected_in,
)

BATCH_BYTES = 8 << 20
HUGE_BYTES = 1 << 20  # of a row from which on it is noised in windows
BY_CHARACTER = (WindowedKernel, RowFunction)  # kernels that may change every character
FEW = 2_500  # characters per step: with fewer, row by row is faster than by arrays
Text = TypeVar("Text", str, Sequence[str])
RecipeLike = str | Recipe | Sequence[str | Step]
_OFFSETS = ("clean_start", "clean_end", "noisy_start", "noisy_end")
EDITS = pa.list_(
    pa.struct([("transform", pa.string()), *((name, pa.int32()) for name in _OFFSETS)])
)


class Noised(NamedTuple):
    """The noisy rows of a batch, what each drew, and the account of edits if it was asked for."""

    noisy: pa.Array
    plan: Plan
    account: Composed


class Engine:
    """A recipe made ready to run: its kernels, in the order of its steps."""

    def __init__(self, recipe: Recipe, settings: Settings | None = None) -> None:
        keep_freed_memory()
        self.recipe = recipe
        self.settings = replace(settings or Settings(), factors=recipe.factors)
        self.note = ""  # what a larger recipe has that the language lacks
        self._schedule = Schedule.of(recipe)
        self._steps = recipe.steps()
        self.kernels: list[Kernel] = []
        self.rates: list[list[str]] = []
        self._changes_words: list[bool] = []  # of which each may get one change
        for step in self._steps:
            transform = registry.get(step.transform)
            transform.check_language(self.settings.lang)
            by_form = bool(recipe.writers) and transform.kind in HABITS
            of_step = replace(self.settings, by_form=by_form)
            self.kernels.append(transform.make(of_step, step_values(step)))
            self.rates.append(transform.rates)
            self._changes_words.append(bool(recipe.writers) and transform.kind in ("habit", "slip"))
        self._needs: list[bytes] = [getattr(kernel, "needs", b"") for kernel in self.kernels]
        self._sparing = {n: k for n, k in enumerate(self.kernels) if isinstance(k, SparingKernel)}
        self._is_lexical = np.array([isinstance(k, LexicalKernel) for k in self.kernels], np.bool_)
        self._lexicon_of_step = np.cumsum(self._is_lexical) - 1
        is_for_rows = [isinstance(kernel, RowKernel) for kernel in self.kernels]
        self._edit_row = [
            kernel.edit_row if isinstance(kernel, RowKernel) else partial(edits_of_one, kernel)
            for kernel in self.kernels
        ]
        factors = len(recipe.factors)
        limits = [getattr(kernel, "row_limits", np.zeros(factors)) for kernel in self.kernels]
        self._row_limits = np.array(limits, np.int64).reshape(-1, factors)
        self._strengths_of_step = (len(self._steps), *[factors] * max(1, *map(len, self.rates)))
        self._variants = Memo(self._variants_of)
        self._few = (FEW if all(is_for_rows) else FEW // 8) * len(self.kernels)

    @cached_property
    def _lexical(self) -> LexicalKernel:
        """All word lists, which run over their rows together, as one kernel."""
        return LexicalKernel.joined([k for k in self.kernels if isinstance(k, LexicalKernel)])

    @property
    def batch_bytes(self) -> int:
        """How much text to noise at once: less where most words or characters change."""
        parts = [
            float(step_values(step)[name]) * (4 if isinstance(kernel, BY_CHARACTER) else 2)
            for step, names, kernel in zip(self._steps, self.rates, self.kernels, strict=True)
            for name in names
            if not isinstance(kernel, LexicalKernel)
        ]
        return int(BATCH_BYTES / max([1, *parts]))

    @property
    def tagger(self) -> str | None:
        """The name of the tagger that a word list of the recipe asks, if one does."""
        taggers = (getattr(kernel, "taggers", (None,))[0] for kernel in self.kernels)
        return next((tagger.name for tagger in taggers if tagger), None)

    def noise(
        self,
        clean: pa.Array,
        streams: Streams,
        protect: tuple[str, ...] = (),
        account: bool = False,
    ) -> Noised:
        """Return the noisy rows of a string column without nulls.

        The rows draw their steps. Then, pass by pass, the rows that have one more step are taken
        from the draft, the kernels of these steps propose edits, and the draft is rewritten.
        """
        plan = self._schedule.draw(streams)
        draft = _Draft(clean, protect, account, bool(self.recipe.writers))
        for rows, steps in plan.passes(last=self._is_lexical):
            rows = draft.take(rows, self._needs[steps[0]] if steps[0] == steps[-1] else b"")
            steps = steps[: len(rows)]  # fewer where they are all one step
            keys = self._schedule.keys(streams, rows, steps)
            parts = self._propose(draft, steps, keys, plan.writers.take(rows))
            draft.rewrite(parts, makers=np.int64(1) << steps)
        return Noised(draft.latest(), plan, draft.account())

    def noise_texts(
        self, texts: Sequence[str], streams: Streams, protect: tuple[str, ...] = ()
    ) -> list[str]:
        """Return the noisy texts, as `noise` does."""
        if sum(map(len, texts)) < self._few:
            return self.noise_few(texts, streams, protect)
        clean = Texts.from_strings(list(texts)).to_arrow(pa.string())
        noisy: list[str] = self.noise(clean, streams, protect).noisy.to_pylist()
        return noisy

    def noise_few(
        self, texts: Sequence[str], streams: Streams, protect: tuple[str, ...] = ()
    ) -> list[str]:
        """Return the noisy texts, as `noise` does, but one after another: faster for a few."""
        plan = self._schedule.draw(streams)
        rows = [Row(text, protected_in(text, protect)) for text in texts]
        pairs = zip(
            plan.rows.tolist(), plan.steps.tolist(), self._row_draws(plan, streams), strict=True
        )
        for number, step, draws in pairs:
            row, changed = rows[number], list[tuple[int, int]]()
            edits = self._edit_row[step](row, draws)
            if row.protected:
                edits = row.outside(edits)
            if edits and self._changes_words[step]:
                edits, changed = row.once(edits, self.settings.matched_by)
            if edits:
                rows[number] = row.edited(edits, changed)
        return [row.text for row in rows]

    def _row_draws(self, plan: Plan, streams: Streams) -> Iterator[RowDraws]:
        """Yield the draws of every pair of a plan; their first hits are found all at once."""
        keys, strength_keys = self._schedule.keys(streams, plan.rows, plan.steps)
        rates = len(self._strengths_of_step) - 1
        writers = plan.writers.take(plan.rows)
        strengths = self._schedule.strengths(strength_keys, rates, writers, plan.steps)
        limits = self._row_limits[plan.steps, strengths[:, 0]]
        limited = np.flatnonzero(limits)
        draws = rng.draw_array(keys.take(limited)[:, None], np.arange(rng.FIRST))
        hit = np.flatnonzero(rng.decisions(draws) < limits.take(limited)[:, None])
        numbers = (hit % rng.FIRST).tolist()
        chosen = rng.choices(draws.ravel().take(hit)).tolist()
        of_pairs = np.searchsorted(limited, np.arange(len(keys) + 1)) * rng.FIRST
        bounds = np.searchsorted(hit, of_pairs).tolist()
        first = ((numbers[a:b], chosen[a:b]) for a, b in pairwise(bounds))
        drawn = np.ravel_multi_index((plan.steps, *strengths.T), self._strengths_of_step)
        variants = map(self._variants.__getitem__, drawn.tolist())
        columns = zip(keys.tolist(), variants, limits.tolist(), first, strict=True)
        return map(partial(tuple.__new__, RowDraws), columns)  # a third of the time of RowDraws()

    def _variants_of(self, drawn: int) -> dict[str, int]:
        """Return the strength of each rate of a step, all of them as one number."""
        step, *strengths = map(int, np.unravel_index(drawn, self._strengths_of_step))
        return dict(zip(self.rates[step], strengths, strict=False))

    def _propose(
        self, draft: "_Draft", steps: I64, keys: tuple[U64, U64], writers: I64
    ) -> Iterator[Edits]:
        """Yield the edits of one pass in ascending parts.

        The rows taken from the draft are sorted by the kernel of their step. Each has `keys`, as of
        `Schedule.keys`, and a writer.
        """
        texts, spans, (own_keys, strength_keys) = draft.texts, draft.spans, keys
        kernels = np.where(self._is_lexical[steps], -1, steps)
        huge = texts.lengths >= HUGE_BYTES  # each of these rows is a run of its own
        begins = (np.diff(kernels, prepend=-2) != 0) | huge | np.append(False, huge)[:-1]
        starts = np.flatnonzero(begins).tolist()
        waiting: list[Edits] = []
        for run in map(slice, starts, [*starts[1:], len(steps)]):
            step = steps[run.start]
            kernel, rates = self._kernel_for(steps[run], spans), self.rates[step]
            strengths = self._schedule.strengths(
                strength_keys[run], len(rates), writers[run], steps[run]
            )
            of_run = texts[run], own_keys[run], dict(zip(rates, strengths.T, strict=True))
            if self._changes_words[step]:
                proposed = kernel.propose(*of_run).outside(spans)
                words = getattr(of_run[0], self.settings.matched_by)
                waiting.append(draft.once(proposed, words).from_row(run.start))
            elif huge[run.start] and isinstance(kernel, WindowedKernel):
                yield Edits.join(waiting)
                waiting.clear()
                for part in kernel.windows(*of_run):
                    yield part.outside(spans).from_row(run.start)
            else:
                waiting.append(kernel.propose(*of_run).outside(spans).from_row(run.start))
        yield Edits.join(waiting)

    def _kernel_for(self, steps: I64, spans: Spans) -> Kernel:
        """Return the kernel of neighbouring rows with these steps."""
        if steps[0] != steps[-1]:  # of word lists
            return replace(self._lexical, lexicons=self._lexicon_of_step[steps])
        sparing = self._sparing.get(step := int(steps[0]))
        return sparing.sparing(spans) if sparing else self.kernels[step]

    def transforms(self, plan: Plan, rows: int) -> pa.Array:
        """Return the column `transforms`: what each row drew, in applied order."""
        offsets = np.searchsorted(plan.rows, np.arange(rows + 1)).astype(np.int32)
        names = Texts.from_strings([step.transform for step in self._steps]).to_arrow(pa.string())
        return pa.ListArray.from_arrays(as_arrow(offsets), names.take(as_arrow(plan.steps)))

    def edits(self, clean: Texts, noisy: Texts, account: Composed) -> pa.Array:
        """Return the column `edits`, in characters: those that change their text."""
        changes = account.changes(clean, noisy)
        rows = account.rows[changes]
        makers = as_arrow(account.makers[changes]).dictionary_encode()
        names = []
        for mask in makers.dictionary.to_pylist():
            named = [step.transform for bit, step in enumerate(self._steps) if mask >> bit & 1]
            names.append("+".join(dict.fromkeys(named)))
        columns = [Texts.from_strings(names).to_arrow(pa.string()).take(makers.indices)]
        for texts, positions in zip((clean, clean, noisy, noisy), account[1:5], strict=True):
            starts = texts.offsets.take(rows)
            characters = characters_in(texts.values, starts, starts + positions[changes])
            columns.append(as_arrow(characters.astype(np.int32)))
        offsets = np.searchsorted(rows, np.arange(len(clean) + 1)).astype(np.int32)
        structs = pa.StructArray.from_arrays(columns, fields=list(EDITS.value_type))
        return pa.ListArray.from_arrays(as_arrow(offsets), structs, type=EDITS)


class _Draft:
    """The rows of a batch, rewritten pass by pass, with their protected spans and their edits."""

    def __init__(
        self, clean: pa.Array, protect: tuple[str, ...], account: bool, has_writers: bool
    ) -> None:
        self._has_writers = has_writers
        texts, rows = Texts.from_arrow(clean), np.arange(len(clean))
        self._store(texts, room=0)
        self._protected = RowSpans.of(protected(texts, protect), texts, rows)
        self._words_changed = RowSpans.of(NO_SPANS, texts, rows)
        self._edits = Composed.none() if account else None
        self._fresh = list[Spans]()  # of the words that change in this pass

    def take(self, rows: I64, needs: bytes) -> I64:
        """Take some rows, with their texts and spans, as those to be rewritten; return which.

        Rows without a byte that is needed, if some are, stay as they are.
        """
        self.texts = self._latest(rows)
        if needs:
            rows = rows.take(holding := self.texts.rows_holding(needs))
            self.texts = Texts.from_arrow(self.texts.to_arrow().take(as_arrow(holding)))
        self._rows = rows
        places = np.full(len(self._places), -1)
        places[rows] = np.arange(len(rows))
        self._protected, self.spans = self._protected.split(places, self.texts)
        self._words_changed, self._changed = self._words_changed.split(places, self.texts)
        return rows

    def once(self, edits: Edits, words: Tokens) -> Edits:
        """Return the edits of words that no such edits have changed before, one of each."""
        edits, changed = edits.once(words, self._changed)
        self._fresh.append(changed)
        return edits

    def rewrite(self, parts: Iterable[Edits], makers: I64) -> None:
        """Apply edits, made by these transforms (one bit mask per row)."""
        if self._has_writers:  # which words change is known when all have proposed
            parts = list(parts)
        accounts = list[Composed]()
        self._changed = Spans.join([self._changed, *self._fresh])
        self._fresh.clear()
        noted = parts if self._edits is None else self._noted(parts, makers, accounts)
        texts, (spans, changed) = rewritten(self.texts, noted, (self.spans, self._changed))
        self._protected = self._protected.with_those(spans, texts, self._rows)
        self._words_changed = self._words_changed.with_those(changed, texts, self._rows)
        if self._edits is not None:
            here = np.isin(self._edits.rows, self._rows)
            composed = compose(self._edits.take(here), Composed.join(accounts))
            self._edits = Composed.join([self._edits.take(~here), composed])
        self._add(texts)

    def _noted(
        self, parts: Iterable[Edits], makers: I64, accounts: list[Composed]
    ) -> Iterator[Edits]:
        """Yield parts of edits, and append the account of each; the last edit of one may grow."""
        grown = np.zeros(len(self.texts), np.int64)
        for part in parts:
            account = part.composed(self.texts, self._rows, makers, grown)
            if accounts:
                before = accounts.pop()
                accounts.append(before.take(slice(-1)))
                account = Composed.touching([before.take(slice(-1, None)), account])
            accounts.append(account)
            grown += np.diff(part.growth_of_rows(len(self.texts)))
            yield part

    def _store(self, texts: Texts, room: int) -> None:
        """Hold texts as the versions of all rows, with room for so many bytes of later ones."""
        size = len(texts.window)
        self._versions = Texts(
            np.empty(2 * size + room, np.uint8), texts.offsets - texts.offsets[0]
        )
        self._versions.values[:size] = texts.window
        self._places = np.arange(len(texts))  # of the latest version of each row

    def _add(self, texts: Texts) -> None:
        """Hold texts as the latest versions of the rows taken."""
        size = len(texts.values)
        if self._versions.offsets[-1] + size > len(self._versions.values):
            self._store(self._latest(np.arange(len(self._places))), room=size)
        values, offsets = self._versions.values, self._versions.offsets
        values[offsets[-1] : offsets[-1] + size] = texts.values
        self._places[self._rows] = len(self._versions) + np.arange(len(texts))
        self._versions = Texts(values, np.append(offsets, offsets[-1] + texts.offsets[1:]))

    def _latest(self, rows: I64) -> Texts:
        """Return the last versions of some rows."""
        places = as_arrow(self._places.take(rows))
        return Texts.from_arrow(self._versions.to_arrow().take(places))

    def latest(self) -> pa.Array:
        """Return the last version of every row."""
        return self._latest(np.arange(len(self._places))).to_arrow(pa.string())

    def account(self) -> Composed:
        """Return the edits that lead from the clean rows to the last versions."""
        return self._edits or Composed.none()


def engine_for(recipe: RecipeLike, lang: str = "en", tagger: str = "rule") -> Engine:
    """Return the engine of a recipe, made once in a process; raises UsageError for what is none.

    It is what `Recipe.named` names, a Recipe, or the steps of `Recipe.of`.
    """
    if isinstance(recipe, str) and recipe.endswith((".yaml", ".yml")):
        with suppress(OSError):
            state = os.stat(recipe)  # noqa: PTH116 - a tenth of the time
            written = state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size
            return _engine(_recipe_in(recipe, written).key, normalize_language(lang), tagger)
    if not isinstance(recipe, str | Recipe):
        recipe = _recipe_of(recipe)
    key = recipe if isinstance(recipe, str) else recipe.key
    return _engine(key, normalize_language(lang), tagger)


def _recipe_of(given: Any) -> Recipe:
    """Return the recipe of a list of steps or a path; raises UsageError for anything else."""
    listed = given if isinstance(given, list | tuple) else ()
    are_steps = bool(listed) and all(isinstance(step, str | Step) for step in listed)
    return Recipe.of(given) if are_steps else Recipe.named(given)


@lru_cache(maxsize=64)
def _recipe_in(path: str, _: tuple[int, ...]) -> Recipe:
    """Return the recipe of a file, until it is written anew."""
    return Recipe.from_yaml(path)


@lru_cache(maxsize=64)
def _engine(recipe: str, lang: str, tagger: str) -> Engine:
    is_key = recipe.startswith("{")
    known = Recipe.from_dict(json.loads(recipe)) if is_key else Recipe.named(recipe)
    made = Engine(known.for_language(lang)[0], Settings(lang, tagger=tagger))
    made.note = known.note_on(lang)
    return made


def noise(
    text: Text, recipe: RecipeLike = DEFAULT_RECIPE, *, seed: int = 0,
    id: object = None,  # noqa: A002 - the name of the column
    **options: Unpack[NoiseOptions],
) -> Text:  # fmt: skip
    """Return a text with noise, or for a list of texts a list.

    The same seed and `id` give the same noise, that of a row with this id in a run with this seed.
    For a list, `id` is a list. Without it the text itself is the id: equal texts, equal noise.

    `recipe` is a Recipe, the name of a packaged one, a .yaml file, or NAME[:parameter=value,...] of
    one transform, or a list of these for several in this order. Options: `lang` ('en') is a code or
    English name of a language, such as pt-BR, deu or Chinese; `protect` names the kinds of span to
    leave unchanged ('url,mention,hashtag,email'), or is 'none'; `tagger` ('rule', or 'spacy') finds
    the parts of speech for slng and abr3.

    Warns, once, of transforms that have no data for the language. Raises UsageError for a text that
    is not a string.
    """
    is_one = isinstance(text, str)
    texts: list[str] = strings([text] if is_one else text)
    ids = texts if id is None else [id] if is_one else id
    engine, spans = prepared(recipe, **options)
    noisy: Any = engine.noise_texts(texts, Streams(id_array(ids, len(texts)), seed), spans)
    made: Text = noisy[0] if is_one else noisy
    return made


def strings(texts: Any) -> list[str]:
    """Return texts as a list; raises UsageError for what is not a string of Unicode."""
    if isinstance(texts, bytes | Mapping | Set) or not hasattr(texts, "__iter__"):
        raise UsageError(f"noise needs a text or a list of texts, not {texts!r:.60}")
    listed: list[str] = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise UsageError(f"text {number} is {text!r:.60}, not a string")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                where = f"text {number}, character {error.start}"
                raise UsageError(f"{where}: a lone surrogate; decode your input again") from error
    return listed


def id_array(ids: Any, texts: int) -> U64:
    """Return `id_number` of the ids of so many texts; raises UsageError."""
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
    recipe: RecipeLike, lang: str = "en", protect: str = PROTECTED, tagger: str = "rule",
    *, quiet: bool = False,
) -> tuple[Engine, tuple[str, ...]]:  # fmt: skip
    """Return the engine and the kinds to protect; raises UsageError for a wrong option.

    Warns once of what the language lacks, unless `quiet`.
    """
    examples = {"lang": "'en'", "protect": "'url,mention' or 'none'", "tagger": "'rule'"}
    for (name, example), value in zip(examples.items(), (lang, protect, tagger), strict=True):
        if not isinstance(value, str):
            raise UsageError(f"{name} {value!r:.60} is not text: write it as {example}")
    engine, kinds = engine_for(recipe, lang, tagger), protect_kinds(protect)
    if engine.note and not quiet:
        _warn(engine.note)
    return engine, kinds


@cache
def _warn(note: str) -> None:
    warnings.warn(note, stacklevel=5)  # where the user calls


def noise_table(
    recipe: Recipe, table: pa.Table, seed: int = 0, *, copy: int = 0, edits: bool = False,
    **options: Unpack[NoiseOptions],
) -> pa.Table:  # fmt: skip
    """Return the table with noisy and transforms (and edits) added; also `Recipe.noise_batch`.

    `table` has a column `clean` or `text`, and `id` (else rows are numbered from 0). The options
    `lang`, `protect` and `tagger` are as for `noise`.
    """
    if not isinstance(table, pa.Table):
        kind = type(table).__name__
        raise UsageError(f"noise_batch needs a pyarrow.Table with a column text, not a {kind}")
    name = next((name for name in ("clean", "text") if name in table.column_names), None)
    if name is None:
        raise UsageError(f"the table needs a column clean or text; it has {table.column_names}")
    clean = pc.cast(table[name], pa.string()).combine_chunks()
    numbered = np.arange(len(table), dtype=np.uint64)
    ids = id_numbers(table["id"].combine_chunks()) if "id" in table.column_names else numbered
    engine, protect = prepared(recipe, **options)
    return add_noise(engine, table, clean, Streams(ids, seed, copy), protect, edits)


Recipe.noise_batch = noise_table  # type: ignore[method-assign, assignment]


def add_noise(
    engine: Engine, table: pa.Table, clean: pa.Array, streams: Streams, protect: tuple[str, ...],
    edits: bool,
) -> pa.Table:  # fmt: skip
    """Add noisy, transforms (and edits) to a table with the texts `clean`; they replace others."""
    noised = engine.noise(clean, streams, protect, account=edits)
    columns = {"noisy": noised.noisy, "transforms": engine.transforms(noised.plan, len(clean))}
    if edits:
        both = Texts.from_arrow(clean), Texts.from_arrow(noised.noisy)
        columns["edits"] = engine.edits(*both, noised.account)
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table
