"""The engine: a recipe over one Arrow batch, and what adds noise to texts and tables with it.

Rows are noised in passes. A pass gathers the rows that have a k-th step, in the order of their
steps; every kernel proposes edits for its run of rows; all edits of the pass are applied at once.
"""

import json
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError
from noisegen.noise import registry
from noisegen.noise.edits import Composed, Edits, compose
from noisegen.noise.lexical import LexicalKernel
from noisegen.noise.plan import Plan, Streams, draw_plan, draw_strengths, strength_label
from noisegen.noise.recipe import NoiseOptions, Recipe, parse, step_values
from noisegen.noise.registry import Kernel, Settings, SparingKernel
from noisegen.noise.rng import id_number, id_numbers
from noisegen.text.buffers import I64, Texts, as_arrow
from noisegen.text.case import characters_in
from noisegen.text.languages import normalize_language
from noisegen.text.resources import keep_freed_memory
from noisegen.text.spans import PROTECTED, Spans, protect_kinds, protected

BATCH_BYTES = 8 << 20
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
        self._steps = recipe.steps()
        self.kernels: list[Kernel] = []
        self.rates: list[list[str]] = []
        for step in self._steps:
            transform = registry.get(step.transform)
            transform.check_language(self.settings.lang)
            self.kernels.append(transform.make(self.settings, step_values(step)))
            self.rates.append(transform.rates)
        # All word lists run over their rows together, as one kernel.
        lexical = [kernel for kernel in self.kernels if isinstance(kernel, LexicalKernel)]
        self._lexical = LexicalKernel.joined(lexical) if lexical else None
        self._is_lexical = np.array([isinstance(k, LexicalKernel) for k in self.kernels], np.bool_)
        self._lexicon_of_step = np.cumsum(self._is_lexical) - 1

    @property
    def batch_bytes(self) -> int:
        """How much text to noise at once: less where most characters change, for memory."""
        rates = [
            float(step_values(step)[name])
            for step, names, lexical in zip(self._steps, self.rates, self._is_lexical, strict=True)
            for name in names
            if not lexical
        ]
        return int(BATCH_BYTES / max(1, 4 * max(rates, default=0)))

    @property
    def tagger(self) -> str | None:
        """The name of the tagger that a word list of the recipe asks, if one does."""
        taggers = self._lexical.taggers if self._lexical else ()
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
        plan = draw_plan(self.recipe, streams)
        draft = _Draft(clean, protect, account)
        for rows, steps in plan.passes(last=self._is_lexical):
            texts, spans = draft.take(rows)
            edits = self._propose(texts, spans, rows, steps, streams)
            draft.rewrite(edits, makers=np.int64(1) << steps)
        return Noised(draft.texts(), plan, draft.account())

    def _propose(
        self, texts: Texts, spans: Spans, rows: I64, steps: I64, streams: Streams
    ) -> Edits:
        """Return the edits of one pass; the rows are sorted by the kernel of their step."""
        keys = streams.keys_of_each([step.label for step in self._steps], steps, rows)
        strength_keys = streams.keys_of_each(map(strength_label, self._steps), steps, rows)
        kernels = np.where(self._is_lexical[steps], -1, steps)
        starts = np.flatnonzero(np.diff(kernels, prepend=-2)).tolist()
        edits = []
        for run in map(slice, starts, [*starts[1:], len(rows)]):
            step = int(steps[run.start])
            kernel = self.kernels[step]
            if self._lexical and self._is_lexical[step]:
                kernel = replace(self._lexical, lexicons=self._lexicon_of_step[steps[run]])
            elif isinstance(kernel, SparingKernel):
                kernel = kernel.sparing(spans)
            strengths = draw_strengths(self.recipe, strength_keys[run], self.rates[step])
            proposed = kernel.propose(texts[run], keys[run], strengths).outside(spans)
            edits.append(replace(proposed, rows=proposed.rows + run.start))
        return Edits.join(edits)

    def transforms(self, plan: Plan, rows: int) -> pa.Array:
        """Return the column `transforms`: what each row drew, in applied order."""
        offsets = np.searchsorted(plan.rows, np.arange(rows + 1)).astype(np.int32)
        names = Texts.from_strings([step.transform for step in self._steps]).to_arrow(pa.string())
        return pa.ListArray.from_arrays(as_arrow(offsets), names.take(as_arrow(plan.steps)))

    def edits(self, clean: Texts, noisy: Texts, account: Composed) -> pa.Array:
        """Return the column `edits`, in characters."""
        makers = as_arrow(account.makers).dictionary_encode()
        names = []
        for mask in makers.dictionary.to_pylist():
            named = [step.transform for bit, step in enumerate(self._steps) if mask >> bit & 1]
            names.append("+".join(dict.fromkeys(named)))
        columns = [Texts.from_strings(names).to_arrow(pa.string()).take(makers.indices)]
        for texts, positions in zip((clean, clean, noisy, noisy), account[1:5], strict=True):
            starts = texts.offsets.take(account.rows)
            characters = characters_in(texts.values, starts, starts + positions)
            columns.append(as_arrow(characters.astype(np.int32)))
        offsets = np.searchsorted(account.rows, np.arange(len(clean) + 1)).astype(np.int32)
        structs = pa.StructArray.from_arrays(columns, fields=list(EDITS.value_type))
        return pa.ListArray.from_arrays(as_arrow(offsets), structs, type=EDITS)


class _Draft:
    """The rows of a batch, rewritten pass by pass, with their protected spans and their edits.

    A row in one pass was in every pass before: only the texts of the last pass are read.
    """

    def __init__(self, clean: pa.Array, protect: tuple[str, ...], account: bool) -> None:
        self._versions = [clean.cast(pa.binary())]  # of the rows of each pass, in its order
        self._latest = np.arange(len(clean))  # of each row: its last version, among all versions
        self._pass_start = 0  # the first version of the last pass
        self._texts = Texts.from_arrow(self._versions[0])
        self._spans = protected(self._texts, protect)
        self._rows = self._latest
        self._edits = Composed.none() if account else None
        self._finished: list[Composed] = []  # the edits of rows that have no further step

    def take(self, rows: I64) -> tuple[Texts, Spans]:
        """Return the texts and spans of rows, which then are those to be rewritten."""
        at = self._latest[rows] - self._pass_start
        texts = Texts.from_arrow(self._versions[-1].take(as_arrow(at)))
        self._spans = self._spans.taken(self._texts, at, texts)
        self._texts, self._rows = texts, rows
        return texts, self._spans

    def rewrite(self, edits: Edits, makers: I64) -> None:
        """Apply edits, made by these transforms (one bit mask per row)."""
        if self._edits is not None:
            continued = np.isin(self._edits.rows, self._rows)
            self._finished.append(self._edits.take(~continued))
            fresh = edits.composed(self._texts, self._rows, makers)
            self._edits = compose(self._edits.take(continued), fresh)
        self._spans = edits.moved(self._spans, int(self._texts.offsets[0]))
        self._texts = edits.apply(self._texts)
        self._pass_start += len(self._versions[-1])
        self._latest[self._rows] = self._pass_start + np.arange(len(self._rows))
        self._versions.append(self._texts.to_arrow())

    def texts(self) -> pa.Array:
        """Return the last version of every row."""
        return pa.concat_arrays(self._versions).take(as_arrow(self._latest)).cast(pa.string())

    def account(self) -> Composed:
        """Return the edits that lead from the clean rows to the last versions."""
        return Composed.join([*self._finished, self._edits or Composed.none()])


def engine_for(recipe: str | Recipe, lang: str = "en", tagger: str = "auto") -> Engine:
    """Return the engine of a recipe or of what `Recipe.named` names, made once in a process."""
    if isinstance(recipe, str) and recipe.endswith((".yaml", ".yml")):
        recipe = Recipe.named(recipe)
    key = recipe if isinstance(recipe, str) else json.dumps(recipe.to_dict(), default=str)
    return _engine(key, normalize_language(lang), tagger)


@lru_cache(maxsize=64)
def _engine(recipe: str, lang: str, tagger: str) -> Engine:
    known = parse(recipe, "recipe") if recipe.startswith("{") else Recipe.named(recipe)
    return Engine(known.for_language(lang)[0], Settings(lang, tagger=tagger))


def noise(
    text: str, recipe: str | Recipe = "mix_all", *, seed: int = 0,
    id: int | str = 0,  # noqa: A002 - the name of the column
    lang: str = "en", protect: str = PROTECTED, tagger: str = "auto",
) -> str:  # fmt: skip
    """Return one text with noise; the same as for a row of this id in a run with this seed.

    `recipe` is a Recipe, the name of a packaged one, a .yaml file, or NAME[:parameter=value,...] of
    one transform. `lang` is a code or English name of a language: en, pt-BR, deu, Chinese.
    `protect` names the kinds of span that stay, as in 'url,mention', or 'none'. `tagger` is auto,
    spacy or rule: what slng and abr3 ask for parts of speech.
    """
    ids, clean = np.array([id_number(id)], np.uint64), Texts.from_strings([text])
    engine, spans = _prepared(recipe, lang, protect, tagger)
    noised = engine.noise(clean.to_arrow(pa.string()), Streams(ids, seed), spans)
    return str(noised.noisy[0])


def _prepared(
    recipe: str | Recipe, lang: str = "en", protect: str = PROTECTED, tagger: str = "auto"
) -> tuple[Engine, tuple[str, ...]]:
    return engine_for(recipe, lang, tagger), protect_kinds(protect)


def noise_table(
    recipe: Recipe, table: pa.Table, seed: int = 0, *, copy: int = 0, edits: bool = False,
    **options: Unpack[NoiseOptions],
) -> pa.Table:  # fmt: skip
    """Return the table with noisy and transforms (and edits) added; also `Recipe.noise_batch`.

    `table` has a column `clean` or `text`, and `id` (else rows are numbered from 0). The options
    `lang`, `protect` and `tagger` are as for `noise`.
    """
    name = next((name for name in ("clean", "text") if name in table.column_names), None)
    if name is None:
        raise UsageError(f"the table needs a column clean or text; it has {table.column_names}")
    clean = pc.cast(table[name], pa.string()).combine_chunks()
    numbered = np.arange(len(table), dtype=np.uint64)
    ids = id_numbers(table["id"].combine_chunks()) if "id" in table.column_names else numbered
    engine, protect = _prepared(recipe, **options)
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
