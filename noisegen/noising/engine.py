"""The engine, which adds the noise of a mix: to few texts row by row, to many texts in passes.

`Engine.noise_few` defines the result: it applies the steps that a row drew, one after another.
`Engine.noise` returns the same texts for an Arrow array, in passes. Pass k takes all rows that have
a k-th step, sorted by this step. Each kernel proposes edits for its rows, and all edits of the pass
are applied at once.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.draft import Draft, PassRows
from noisegen.noising.edits import EditRecord, Edits
from noisegen.noising.lexical import LexicalKernel
from noisegen.noising.mix import Mix, Step, step_values
from noisegen.noising.plan import PairDraws, Plan, Schedule, Streams
from noisegen.noising.registry import (
    HABIT_KINDS,
    Kernel,
    RowFunction,
    RowKernel,
    Settings,
    SparingKernel,
    WindowedKernel,
    edits_of_one,
)
from noisegen.noising.rng import RowDraws, id_numbers
from noisegen.text.buffers import I64, Texts, as_arrow
from noisegen.text.case import characters_in
from noisegen.text.resources import keep_freed_memory
from noisegen.text.rows import Row, RowEdit, Span
from noisegen.text.spans import Spans, protected_in_each

BATCH_BYTES = 8 << 20
HUGE_BYTES = 1 << 20  # rows from this size on are processed alone, in windows
BY_CHARACTER = (WindowedKernel, RowFunction)  # kernels that may change every character
FEW = 2_500  # characters per step of the mix; shorter texts are noised faster row by row
RowEditor = Callable[[Row, RowDraws], list[RowEdit]]
_OFFSETS = ("clean_start", "clean_end", "noisy_start", "noisy_end")
EDITS = pa.list_(
    pa.struct([("transform", pa.string()), *((name, pa.int32()) for name in _OFFSETS)])
)


@dataclass(frozen=True)
class ReadyStep:
    """A step of a mix, ready to run in one language.

    `rates` has the names of the rate parameters; a row draws a strength for each rate. If `needs`
    is not empty, rows that contain none of these bytes are left unchanged. `words_once` is True if
    the step edits words and skips words that other steps have changed. `edit_row` returns the edits
    of one row. `sparing` makes a kernel that avoids protected spans; it is None for most steps.
    """

    transform: str
    kernel: Kernel
    values: dict[str, Any]
    rates: list[str]
    needs: bytes
    words_once: bool
    edit_row: RowEditor
    sparing: Callable[[Spans], Kernel] | None

    @classmethod
    def of(cls, step: Step, settings: Settings, has_writers: bool) -> "ReadyStep":
        """Make the kernel of a step; raises UsageError for a language without data.

        `has_writers` is True if the mix has writers; each word is then changed at most once.
        """
        transform, values = registry.get(step.transform), step_values(step)
        transform.check_language(settings.lang)
        words_alike = has_writers and transform.kind in HABIT_KINDS
        kernel = transform.make(replace(settings, words_alike=words_alike), values)
        edit_row: RowEditor = partial(edits_of_one, kernel)
        if isinstance(kernel, RowKernel):
            edit_row = kernel.edit_row
        return cls(
            transform=step.transform,
            kernel=kernel,
            values=values,
            rates=transform.rates,
            needs=getattr(kernel, "needs", b""),
            words_once=has_writers and transform.kind in ("habit", "slip"),
            edit_row=edit_row,
            sparing=kernel.sparing if isinstance(kernel, SparingKernel) else None,
        )


class Noised(NamedTuple):
    """The noisy rows of a batch, the plan of their steps, and the record of their edits.

    `record` is empty if `Engine.noise` was called without `with_record`.
    """

    noisy: pa.Array
    plan: Plan
    record: EditRecord


class Engine:
    """A mix made ready to run in one language: its `Schedule`, and its steps with their kernels.

    `note` is a line for the user that names the recipe's steps without data for the language; it is
    '' if all steps have data.
    """

    def __init__(self, recipe: Mix, settings: Settings | None = None, note: str = "") -> None:
        keep_freed_memory()
        self.recipe = recipe
        self.settings = replace(settings or Settings(), factors=recipe.factors)
        self.note = note
        self.schedule = Schedule.of(recipe)
        has_writers = bool(recipe.writers)
        self.steps = [ReadyStep.of(step, self.settings, has_writers) for step in recipe.steps()]
        self._rates = np.array([len(step.rates) for step in self.steps], np.int64)
        self._is_lexical = np.array(
            [isinstance(step.kernel, LexicalKernel) for step in self.steps], np.bool_
        )
        have_row_forms = all(isinstance(step.kernel, RowKernel) for step in self.steps)
        self._few = (FEW if have_row_forms else FEW // 8) * len(self.steps)

    @property
    def batch_bytes(self) -> int:
        """Bytes of text per batch: fewer for steps with a high rate."""
        most = 1.0
        for step in self.steps:
            if isinstance(step.kernel, LexicalKernel):
                continue
            weight = 4 if isinstance(step.kernel, BY_CHARACTER) else 2
            most = max([most, *(weight * float(step.values[rate]) for rate in step.rates)])
        return int(BATCH_BYTES / most)

    @property
    def tagger(self) -> str | None:
        """Name of the tagger that finds parts of speech for word lists, None if none is needed."""
        for step in self.steps:
            if isinstance(step.kernel, LexicalKernel) and (tagger := step.kernel.lists[0].tagger):
                return tagger.name
        return None

    def noise_texts(
        self, texts: Sequence[str], streams: Streams, protect: tuple[str, ...] = ()
    ) -> list[str]:
        """Add noise to texts, row by row or in arrays, whichever is faster, and return them."""
        if sum(map(len, texts)) < self._few:
            return self.noise_few(texts, streams, protect)
        clean = Texts.from_strings(list(texts)).to_arrow(pa.string())
        noisy: list[str] = self.noise(clean, streams, protect).noisy.to_pylist()
        return noisy

    def noise_few(
        self, texts: Sequence[str], streams: Streams, protect: tuple[str, ...] = ()
    ) -> list[str]:
        """Add noise row by row: apply the steps of each row in turn; return the noisy texts."""
        rows = list(map(Row, texts, protected_in_each(texts, protect)))
        plan = self.schedule.draw(streams)
        writers = plan.writers.take(plan.rows)
        pairs = plan.rows, plan.steps
        rates = int(self._rates.max(initial=0))
        keys, strengths = self.schedule.pair_draws(streams, *pairs, writers, rates)
        columns = zip(*map(np.ndarray.tolist, (*pairs, keys, strengths)), strict=True)
        for number, step_number, key, drawn in columns:
            row, step = rows[number], self.steps[step_number]
            draws = RowDraws(key, dict(zip(step.rates, drawn, strict=False)))
            edits = step.edit_row(row, draws)
            changed: list[Span] = []
            if row.protected:
                edits = row.outside(edits)
            if edits and step.words_once:
                edits, changed = row.once(edits, self.settings.matched_by)
            if edits:
                rows[number] = row.edited(edits, changed)
        return [row.text for row in rows]

    def noise(
        self,
        clean: pa.Array,
        streams: Streams,
        protect: tuple[str, ...] = (),
        with_record: bool = False,
    ) -> Noised:
        """Add noise to a string array without nulls; `with_record` also records the edits.

        Each row draws its steps. A pass takes rows from the draft, lets kernels propose the edits
        of one step per row, and puts the rewritten rows back into the draft.
        """
        plan = self.schedule.draw(streams)
        draft = Draft(clean, protect, with_record)
        for rows, steps in plan.passes(last=self._is_lexical):
            first = self.steps[steps[0]]
            taken = draft.take(rows, first.needs if steps[0] == steps[-1] else b"")
            steps = steps[: len(taken.numbers)]  # `take` drops rows only if all have the same step
            writers = plan.writers.take(taken.numbers)
            rates = int(self._rates.take(steps).max(initial=0))
            draws = self.schedule.pair_draws(streams, taken.numbers, steps, writers, rates)
            changed = [taken.changed]
            parts = self._propose(taken, steps, draws, changed)
            if self.recipe.writers:  # run `_propose` to its end, as it adds to `changed`
                parts = iter(list(parts))
            draft.put(taken, parts, Spans.join(changed), step_bits=np.int64(1) << steps)
        return Noised(draft.latest(), plan, draft.record)

    def _propose(
        self, taken: PassRows, steps: I64, draws: PairDraws, changed: list[Spans]
    ) -> Iterator[Edits]:
        """Yield the edits of a pass in portions, sorted by position; `steps` has each row's step.

        For steps with `words_once`, the spans of the changed words are appended to `changed`.
        """
        waiting = list[Edits]()
        for run in self._runs(taken.texts, steps):
            step = self.steps[steps[run.start]]
            kernel = self.kernel_for(steps[run], taken.protected)
            texts, keys = taken.texts[run], draws.keys[run]
            strengths = dict(zip(step.rates, draws.strengths[run].T, strict=False))
            is_huge = len(texts) == 1 and texts.lengths[0] >= HUGE_BYTES
            if is_huge and not step.words_once and isinstance(kernel, WindowedKernel):
                yield Edits.join(waiting)
                waiting.clear()
                for part in kernel.windows(texts, keys, strengths):
                    yield part.outside(taken.protected).from_row(run.start)
                continue
            edits = kernel.propose(texts, keys, strengths).outside(taken.protected)
            if step.words_once:
                words = texts.words(self.settings.matched_by)
                edits, of_edits = edits.once(words, taken.changed)
                changed.append(of_edits)
            waiting.append(edits.from_row(run.start))
        yield Edits.join(waiting)

    def _runs(self, texts: Texts, steps: I64) -> Iterator[slice]:
        """Return slices of neighbouring rows that one kernel can process together.

        The rows of a slice have the same step, or only steps that are word lists. A huge row is
        alone in its slice.
        """
        kernels = np.where(self._is_lexical[steps], -1, steps)
        huge = texts.lengths >= HUGE_BYTES
        begins = (np.diff(kernels, prepend=-2) != 0) | huge | np.append(False, huge)[:-1]
        starts = np.flatnonzero(begins).tolist()
        return map(slice, starts, [*starts[1:], len(steps)])

    def kernel_for(self, steps: I64, spans: Spans) -> Kernel:
        """Return the kernel for rows of one slice of `_runs`; `spans` are their protected spans."""
        if steps[0] != steps[-1]:  # several word lists
            return replace(self._word_lists, lexicons=self._list_numbers[steps])
        step: ReadyStep = self.steps[steps[0]]
        return step.sparing(spans) if step.sparing else step.kernel

    @cached_property
    def _word_lists(self) -> LexicalKernel:
        """Kernel that joins all word lists of the mix, for slices of rows with different lists."""
        kernels = [step.kernel for step in self.steps]
        return LexicalKernel.joined([one for one in kernels if isinstance(one, LexicalKernel)])

    @cached_property
    def _list_numbers(self) -> I64:
        """Index of each step's word list among the word lists of the mix."""
        return np.cumsum(self._is_lexical) - 1

    def transforms(self, plan: Plan, rows: int) -> pa.Array:
        """Return the column `transforms`: the transforms applied to each row, in their order."""
        offsets = np.searchsorted(plan.rows, np.arange(rows + 1)).astype(np.int32)
        names = Texts.from_strings([step.transform for step in self.steps]).to_arrow(pa.string())
        return pa.ListArray.from_arrays(as_arrow(offsets), names.take(as_arrow(plan.steps)))

    def edits(self, clean: Texts, noisy: Texts, record: EditRecord) -> pa.Array:
        """Return the column `edits`: for each row its edits, with positions in characters.

        Edits that leave their text as it was are dropped. An edit made by several steps has the
        names of their transforms joined by '+'.
        """
        changes = record.changes(clean, noisy)
        rows = record.rows[changes]
        step_bits = as_arrow(record.step_bits[changes]).dictionary_encode()
        names = [self._names_of(mask) for mask in step_bits.dictionary.to_pylist()]
        columns = [Texts.from_strings(names).to_arrow(pa.string()).take(step_bits.indices)]
        for texts, positions in zip((clean, clean, noisy, noisy), record[1:5], strict=True):
            starts = texts.offsets.take(rows)
            characters = characters_in(texts.values, starts, starts + positions[changes])
            columns.append(as_arrow(characters.astype(np.int32)))
        offsets = np.searchsorted(rows, np.arange(len(clean) + 1)).astype(np.int32)
        structs = pa.StructArray.from_arrays(columns, fields=list(EDITS.value_type))
        return pa.ListArray.from_arrays(as_arrow(offsets), structs, type=EDITS)

    def _names_of(self, step_bits: int) -> str:
        """Return the transforms of the steps in a bit mask, each name once, joined by '+'."""
        named = [step.transform for bit, step in enumerate(self.steps) if step_bits >> bit & 1]
        return "+".join(dict.fromkeys(named))


def check_options(lang: str, protect: str, tagger: str) -> None:
    """Raise UsageError if `lang`, `protect` or `tagger` is not a string."""
    examples = {"lang": "'en'", "protect": "'url,mention' or 'none'", "tagger": "'rule'"}
    for (name, example), value in zip(examples.items(), (lang, protect, tagger), strict=True):
        if not isinstance(value, str):
            raise UsageError(f"{name} {value!r:.60} is not text: write it as {example}")


@cache
def warn_once(note: str) -> None:
    """Show a note as a warning, once per process, unless it is ''.

    The warning names the line of the user's code that called noisegen.
    """
    if not note:
        return
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("noisegen", "contextlib")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(note, stacklevel=level)


def noise_table(
    engine: Engine,
    table: pa.Table,
    seed: int,
    copy: int,
    protect: tuple[str, ...],
    edits: bool,
) -> pa.Table:
    """Return a table with columns of noisy text added, see `Recipe.noise_batch`.

    If the table has no column `id`, its rows are numbered from 0. Raises UsageError if it is not an
    Arrow table with a column `clean` or `text`.
    """
    if not isinstance(table, pa.Table):
        kind = type(table).__name__
        raise UsageError(f"noise_batch needs a pyarrow.Table with a column text, not a {kind}")
    name = next((name for name in ("clean", "text") if name in table.column_names), None)
    if name is None:
        raise UsageError(f"the table needs a column clean or text; it has {table.column_names}")
    clean = pc.cast(table[name], pa.string()).combine_chunks()
    if "id" in table.column_names:
        ids = id_numbers(table["id"].combine_chunks())
    else:
        ids = np.arange(len(table), dtype=np.uint64)
    return add_noise(engine, table, clean, Streams(ids, seed, copy), protect, edits)


def add_noise(
    engine: Engine,
    table: pa.Table,
    clean: pa.Array,
    streams: Streams,
    protect: tuple[str, ...],
    edits: bool,
) -> pa.Table:
    """Add noise to the texts `clean`, and add the result to `table` as new columns.

    The new columns are `noisy` and `transforms`, and with `edits` also `edits`. Columns of the same
    names are replaced.
    """
    noised = engine.noise(clean, streams, protect, with_record=edits)
    columns = {"noisy": noised.noisy, "transforms": engine.transforms(noised.plan, len(clean))}
    if edits:
        both = Texts.from_arrow(clean), Texts.from_arrow(noised.noisy)
        columns["edits"] = engine.edits(*both, noised.record)
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table
