"""A recipe over one Arrow batch.

Turn by turn: the rows that have a k-th step are gathered in the order of their steps, every kernel
proposes edits for its run of rows, and all edits of the turn are applied at once.
"""

import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen import registry
from noisegen.draws import I64, row_keys
from noisegen.edits import Composed, Edits, Rewrite, compose
from noisegen.errors import UsageError
from noisegen.ids import id_numbers
from noisegen.memory import keep_freed_memory
from noisegen.mixing import Dice, Plan, draw_plan, draw_strengths, factors, strength_label
from noisegen.phrase_kernel import LexicalKernel, side_by_side
from noisegen.recipe import Recipe, parse, step_values
from noisegen.registry import Kernel, Settings, SparingKernel
from noisegen.spans import Spans, protect_kinds, protected
from noisegen.text import Texts, as_arrow

BATCH_BYTES = 8 << 20
PROTECTED = "url,mention,hashtag,email"
EDITS = pa.list_(
    pa.struct(
        [
            ("transform", pa.string()),
            ("clean_start", pa.int32()),
            ("clean_end", pa.int32()),
            ("noisy_start", pa.int32()),
            ("noisy_end", pa.int32()),
        ]
    )
)


@dataclass(frozen=True)
class Noised:
    """The noisy rows of a batch, what each drew, and the account of edits if it was asked for."""

    noisy: pa.Array
    plan: Plan
    account: Composed


@dataclass(frozen=True)
class RowSpans:
    """Protected spans per row: positions are bytes in the row; sorted."""

    rows: I64
    starts: I64
    stops: I64

    @classmethod
    def of(cls, texts: Texts, kinds: tuple[str, ...]) -> "RowSpans":
        """Find the spans of all rows."""
        found = protected(texts, kinds)
        rows = texts.rows_of(found.starts)
        origin = texts.offsets[rows]
        return cls(rows, found.starts - origin, found.stops - origin)

    def placed(self, texts: Texts, places: I64) -> tuple["RowSpans", Spans]:
        """Return the spans of the rows that have a place (>= 0) in `texts`, and where they lie."""
        here = np.flatnonzero(places[self.rows] >= 0)
        here = here[np.argsort(places[self.rows[here]], kind="stable")]
        rows = self.rows[here]
        origin = texts.offsets[places[rows]]
        spans = Spans(origin + self.starts[here], origin + self.stops[here])
        return RowSpans(rows, self.starts[here], self.stops[here]), spans

    def updated(self, ours: "RowSpans", moved: Spans, texts: Texts, places: I64) -> "RowSpans":
        """Return all spans, those of the rows placed in `texts` (`ours`) where they moved to."""
        if not len(ours.rows):
            return self
        rest, origin = places[self.rows] < 0, texts.offsets[places[ours.rows]]
        rows = np.concatenate([self.rows[rest], ours.rows])
        starts = np.concatenate([self.starts[rest], moved.starts - origin])
        stops = np.concatenate([self.stops[rest], moved.stops - origin])
        order = np.lexsort((starts, rows))
        return RowSpans(rows[order], starts[order], stops[order])


class Engine:
    """A recipe made ready to run: its kernels, in the order of its steps."""

    def __init__(self, recipe: Recipe, settings: Settings | None = None) -> None:
        keep_freed_memory()
        self.recipe = recipe
        self.settings = replace(settings or Settings(), factors=factors(recipe))
        self._steps = recipe.steps()
        self._labels = [step.label for step in self._steps]
        self._strength_labels = [strength_label(step) for step in self._steps]
        self.kernels: list[Kernel] = []
        self.rates: list[list[str]] = []
        for step in self._steps:
            transform = registry.get(step.transform)
            transform.check_language(self.settings.lang)
            self.kernels.append(transform.make(self.settings, step_values(step)))
            self.rates.append([p.name for p in transform.parameters.values() if p.is_rate])
        lexical = [kernel for kernel in self.kernels if isinstance(kernel, LexicalKernel)]
        self._lexical = side_by_side(lexical) if lexical else None
        self._is_lexical = np.array([isinstance(k, LexicalKernel) for k in self.kernels], np.bool_)
        self._lexicons = np.cumsum(self._is_lexical) - 1

    @cached_property
    def names(self) -> pa.Array:
        """The transform of every step."""
        return Texts.from_strings([step.transform for step in self._steps]).to_arrow(pa.string())

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
        self, clean: pa.Array, dice: Dice, protect: tuple[str, ...] = (), account: bool = False
    ) -> Noised:
        """Return the noisy rows of a string column without nulls."""
        plan = draw_plan(self.recipe, dice)
        outputs, last = [clean.cast(pa.binary())], np.arange(len(clean))
        spans = RowSpans.of(Texts.from_arrow(outputs[0]), protect)
        composed, settled, turn, first = Composed.none(), [Composed.none()], 0, 0
        while len((drawn := plan.turn(turn, ~self._is_lexical))[0]):
            rows, steps = drawn
            texts = Texts.from_arrow(outputs[-1].take(as_arrow(last[rows] - first)))
            places = np.full(len(clean), -1)
            places[rows] = np.arange(len(rows))
            ours, here = spans.placed(texts, places)
            rewrite = Rewrite.of(self._propose(texts, rows, steps, dice, here))
            written = rewrite.apply(texts)
            spans = spans.updated(ours, rewrite.moved(here, int(texts.offsets[0])), written, places)
            if account:
                composed, rest = composed.split(places >= 0)
                settled.append(rest)
                makers = np.int64(1) << steps
                composed = compose(composed, rewrite.composed(texts, rows, makers))
            first += len(outputs[-1])
            last[rows] = first + places[rows]
            outputs.append(written.to_arrow())
            turn += 1
        noisy = pa.concat_arrays(outputs).take(as_arrow(last)) if turn else outputs[0]
        return Noised(noisy.cast(pa.string()), plan, Composed.join([*settled, composed]))

    def _propose(
        self, texts: Texts, rows: I64, steps: I64, dice: Dice, spans: Spans
    ) -> list[tuple[int, Edits]]:
        """Return the edits of one turn: the first row of every run of a kernel, and its edits.

        All word lists are one kernel: they run over their rows together.
        """
        ids = dice.row_ids[rows]
        keys = row_keys(dice.streams(self._labels)[steps], ids)
        strengths = row_keys(dice.streams(self._strength_labels)[steps], ids)
        runs = np.flatnonzero(np.diff(np.where(self._is_lexical[steps], -1, steps), prepend=-2))
        parts = []
        for first, stop in zip(runs.tolist(), [*runs[1:].tolist(), len(rows)], strict=True):
            here, number = slice(first, stop), int(steps[first])
            variants = draw_strengths(self.recipe, strengths[here], self.rates[number])
            if self._lexical and self._is_lexical[number]:
                lexicons = self._lexicons[steps[here]]
                edits = self._lexical.propose(texts[here], keys[here], variants, lexicons)
            else:
                kernel = self.kernels[number]
                kernel = kernel.sparing(spans) if isinstance(kernel, SparingKernel) else kernel
                edits = kernel.propose(texts[here], keys[here], variants)
            parts.append((first, edits.outside(spans)))
        return parts

    def transforms(self, plan: Plan, rows: int) -> pa.Array:
        """Return the column `transforms`: what each row drew, in applied order."""
        offsets = np.searchsorted(plan.rows, np.arange(rows + 1)).astype(np.int32)
        return pa.ListArray.from_arrays(as_arrow(offsets), self.names.take(as_arrow(plan.steps)))

    def edits(self, clean: Texts, noisy: Texts, account: Composed) -> pa.Array:
        """Return the column `edits`, in characters."""
        makers = as_arrow(account.makers).dictionary_encode()
        names = [self._makers(mask) for mask in makers.dictionary.to_pylist()]
        columns = [Texts.from_strings(names).to_arrow(pa.string()).take(makers.indices)]
        for texts, positions in (
            (clean, account.clean_starts), (clean, account.clean_stops),
            (noisy, account.noisy_starts), (noisy, account.noisy_stops),
        ):  # fmt: skip
            columns.append(as_arrow(characters(texts, account.rows, positions).astype(np.int32)))
        offsets = np.searchsorted(account.rows, np.arange(len(clean) + 1)).astype(np.int32)
        structs = pa.StructArray.from_arrays(columns, fields=list(EDITS.value_type))
        return pa.ListArray.from_arrays(as_arrow(offsets), structs, type=EDITS)

    def _makers(self, mask: int) -> str:
        numbers = [number for number in range(len(self.kernels)) if mask >> number & 1]
        return "+".join(dict.fromkeys(self._steps[number].transform for number in numbers))


def characters(texts: Texts, rows: I64, positions: I64) -> I64:
    """Turn byte positions in rows into character positions."""
    if texts.is_ascii:
        return positions
    continues = np.flatnonzero((texts.values & 0xC0) == 0x80)
    before = np.searchsorted(continues, texts.offsets)[rows]
    found: I64 = positions - np.searchsorted(continues, texts.offsets[rows] + positions) + before
    return found


def noise_table(
    recipe: Recipe,
    table: pa.Table,
    *,
    seed: int = 0,
    copy: int = 0,
    edits: bool = False,
    lang: str = "en",
    protect: str = PROTECTED,
    tagger: str = "auto",
) -> pa.Table:
    """Return the table with noisy and transforms (and edits) added; see `Recipe.noise_batch`."""
    name = next((name for name in ("clean", "text") if name in table.column_names), None)
    if name is None:
        raise UsageError(f"the table needs a column clean or text; it has {table.column_names}")
    clean = pc.cast(table[name], pa.string()).combine_chunks()
    numbered = np.arange(len(table), dtype=np.uint64)
    ids = id_numbers(table["id"].combine_chunks()) if "id" in table.column_names else numbered
    engine = engine_for(recipe, lang, tagger)
    return add_noise(engine, table, clean, Dice(ids, seed, copy), protect_kinds(protect), edits)


def add_noise(
    engine: Engine,
    table: pa.Table,
    clean: pa.Array,
    dice: Dice,
    protect: tuple[str, ...],
    edits: bool,
) -> pa.Table:
    """Add noisy, transforms (and edits) to a table with the texts `clean`; they replace others."""
    noised = engine.noise(clean, dice, protect, account=edits)
    made = {"noisy": noised.noisy, "transforms": engine.transforms(noised.plan, len(clean))}
    if edits:
        both = Texts.from_arrow(clean), Texts.from_arrow(noised.noisy)
        made["edits"] = engine.edits(*both, noised.account)
    table = table.drop_columns([name for name in made if name in table.column_names])
    for name, column in made.items():
        table = table.append_column(name, column)
    return table


def noise(
    text: str,
    recipe: str | Recipe = "mix_all",
    *,
    seed: int = 0,
    id: int | str = 0,  # noqa: A002 - the name of the column
    lang: str = "en",
    protect: str = PROTECTED,
    tagger: str = "auto",
) -> str:
    """Return one text with noise; the same as for a row of this id in a run with this seed.

    `recipe` is a Recipe, the name of a packaged one, a .yaml file, or NAME[:parameter=value,...] of
    one transform. `tagger` is auto, spacy or rule: what slng and abr3 ask for parts of speech.
    """
    from noisegen.ids import id_number

    engine = engine_for(recipe, lang, tagger)
    dice = Dice(np.array([id_number(id)], np.uint64), seed)
    noised = engine.noise(
        Texts.from_strings([text]).to_arrow(pa.string()), dice, protect_kinds(protect)
    )
    return str(noised.noisy[0])


def engine_for(recipe: str | Recipe, lang: str = "en", tagger: str = "auto") -> Engine:
    """Return the engine of a recipe or of what `Recipe.named` names, made once in a process."""
    if isinstance(recipe, str) and not recipe.endswith((".yaml", ".yml")):
        return _named_engine(recipe, lang, tagger)
    recipe = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    return _engine_of(json.dumps(recipe.to_dict(), default=str), lang, tagger)


@lru_cache(maxsize=64)
def _named_engine(name: str, lang: str, tagger: str) -> Engine:
    return _engine(Recipe.named(name), lang, tagger)


@lru_cache(maxsize=64)
def _engine_of(recipe: str, lang: str, tagger: str) -> Engine:
    return _engine(parse(recipe, "recipe"), lang, tagger)


def _engine(recipe: Recipe, lang: str, tagger: str) -> Engine:
    return Engine(recipe.for_language(lang)[0], Settings(lang, tagger=tagger))
