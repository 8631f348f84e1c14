"""Plans: the steps that each row of a batch draws, with their order and strengths.

Each decision is drawn from a stream named after the step or group that it concerns. A step added to
a recipe therefore changes only the rows that draw this step.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from noisegen.noising import registry, rng
from noisegen.noising.mix import Habit, Member, Mix, Step, Writer
from noisegen.noising.rng import DECISION_BITS, WeightedChoices, name_number
from noisegen.text.buffers import I64, U64, Bool, ordinals

BLOCK = 1 << 15  # number of decisions drawn at once, so that they fit into the cache of a CPU


@dataclass(frozen=True)
class Streams:
    """Random streams of a batch of rows, by name.

    Draws depend only on the seed, `copy` (the index of the noisy copy of the data), the name of
    the stream and the row id. Rows of the same writer have equal `writer_ids`. Without
    `writer_ids`, every row has a writer of its own.
    """

    row_ids: U64
    seed: int
    copy: int = 0
    writer_ids: U64 | None = None

    def __post_init__(self) -> None:
        rng.check_seed(self.seed)

    def take(self, rows: I64) -> "Streams":
        """Return the streams of the rows with these indices."""
        writers = None if self.writer_ids is None else self.writer_ids[rows]
        return replace(self, row_ids=self.row_ids[rows], writer_ids=writers)

    @property
    def of_writers(self) -> "Streams":
        """Streams for decisions that are the same in all rows of a writer."""
        return self if self.writer_ids is None else Streams(self.writer_ids, self.seed, self.copy)

    def keys(self, names: str | U64, rows: I64) -> U64:
        """Return the keys of rows in a named stream.

        `rows` has the indices of the rows in the batch. `names` is the name of the stream, or an
        array with the `name_number`s of several streams, which is broadcast with `rows`.
        """
        numbers = _numbers([names]) if isinstance(names, str) else names
        streams = rng.splitmix_array(numbers ^ np.uint64(rng.copy_seed(self.seed, self.copy)))
        return rng.row_keys(streams, self.row_ids[rows])

    def decide(self, names: str | U64, rows: I64) -> I64:
        """Draw a 48-bit number per row and stream; `names` and `rows` are as in `keys`."""
        return rng.decisions(rng.draw_array(self.keys(names, rows), 0))


class Plan(NamedTuple):
    """The steps that the rows of a batch drew, as (row, step) pairs.

    Pairs are sorted by row, then by the order in which the steps are applied. `writers` has one
    entry per row of the batch: the index of the writer that the row drew. `in_order` is True if
    all rows apply their steps in the order of the recipe.
    """

    rows: I64
    steps: I64
    writers: I64
    in_order: bool

    def passes(self, last: Bool) -> Iterator[tuple[I64, I64]]:
        """Yield the rows and steps of each pass; a row has at most one step in a pass.

        Pass k has the k-th step of each row, sorted by step. `last` has a flag per step of the
        mix: flagged steps come last in each pass. If the plan is `in_order`, there is one pass per
        step instead, with all rows that drew this step.
        """
        if not len(self.rows):
            return
        if self.in_order:
            # Step numbers fit into a byte, and NumPy sorts bytes fastest (by radix).
            by_step = np.argsort(self.steps.astype(np.uint8), kind="stable")
            for at in np.split(by_step, np.flatnonzero(np.diff(self.steps[by_step])) + 1):
                yield self.rows[at], self.steps[at]
            return
        passes = ordinals(self.rows)
        for number in range(int(passes.max(initial=-1)) + 1):
            at = np.flatnonzero(passes == number)
            steps = self.steps[at]
            at = at[np.argsort(steps + last[steps] * len(last), kind="stable")]
            yield self.rows[at], self.steps[at]


class PairDraws(NamedTuple):
    """Random keys and strengths of (row, step) pairs; `RowDraws` has the same for one pair.

    `keys` has the key of the random stream of each pair. `strengths`, shape (pairs, rates), has the
    factor drawn for each rate parameter of the step, as an index in `Mix.factors`.
    """

    keys: U64
    strengths: I64


class Condition(NamedTuple):
    """A condition that a row must meet to get a step.

    The row draws a 48-bit number from the random stream named `stream`. The number must be at least
    `low`, and below `highs[w]`, where w is the index of the row's writer.
    """

    stream: str
    low: int
    highs: tuple[int, ...]


SortKey = int | str  # orders the members of a group: a number, or the stream that draws it


class PlacedStep(NamedTuple):
    """A step of a recipe, the conditions under which a row gets it, and the keys of its order.

    `sort_keys` has a sort key for each of the nested groups around the step, the outermost first.
    """

    step: Step
    conditions: tuple[Condition, ...]
    sort_keys: tuple[SortKey, ...]


class SortLevel(NamedTuple):
    """The keys by which steps are ordered in the groups at one depth of a recipe's nested groups.

    Each step has an entry in both arrays. A key that is the same in all rows is in `numbers`, with
    0 in `streams`. If each row draws the key, `streams` has the `name_number` of its random stream.
    """

    numbers: I64
    streams: U64

    @classmethod
    def of(cls, sort_keys: Sequence[SortKey]) -> "SortLevel":
        """Make a level; `sort_keys` has the sort key of each step."""
        numbers = [key if isinstance(key, int) else 0 for key in sort_keys]
        streams = [name_number(key) if isinstance(key, str) else 0 for key in sort_keys]
        return cls(np.array(numbers, np.int64), np.array(streams, np.uint64))


class Conditions(NamedTuple):
    """The conditions under which rows get the steps of a recipe, as arrays.

    `streams`, `lows` and `highs` have a row per `Condition`; `highs` has a column per writer. A
    row of text gets step s if it meets all conditions whose indices are in `paths[s]`; an index of
    -1 is padding.
    """

    streams: U64
    lows: I64
    highs: I64
    paths: I64

    @classmethod
    def of(cls, placed: Sequence[PlacedStep], writers: int) -> "Conditions":
        """Make arrays of the conditions of all steps; equal conditions are stored once.

        `writers` is the number of writers in the recipe.
        """
        every = list(dict.fromkeys(each for step in placed for each in step.conditions))
        longest = max((len(step.conditions) for step in placed), default=0)
        paths = np.full((len(placed), longest), -1)
        for number, step in enumerate(placed):
            path = [every.index(each) for each in step.conditions]
            paths[number, : len(path)] = path
        highs = np.array([each.highs for each in every], np.int64).reshape(len(every), writers)
        lows = np.array([each.low for each in every], np.int64)
        return cls(_numbers(each.stream for each in every), lows, highs, paths)


@dataclass(frozen=True)
class Schedule:
    """The random decisions that a recipe asks of each row, as arrays: many rows draw at once.

    Rows of one writer (equal writer ids) draw the same steps, order and strengths. In steps flagged
    in `is_habit` they also make equal draws; in other steps each row has a stream of its own.
    """

    conditions: Conditions
    levels: tuple[SortLevel, ...]
    labels: U64  # `name_number` of the stream of each step
    strength_labels: U64  # `name_number` of the stream that draws the strengths of each step
    is_habit: Bool
    weights: WeightedChoices | None  # choice among the recipe's strengths, None if it has one
    writers: WeightedChoices | None  # choice among the writers, None if there is one
    factors: I64  # indices in `Mix.factors`, shape (writers, steps, strengths)

    @classmethod
    def of(cls, recipe: Mix) -> "Schedule":
        """Convert the random decisions of a mix to arrays."""
        writers = recipe.writers or (Writer("", 1, {}),)
        placed = list(_placed_steps(recipe.root, (), (), writers))
        steps = [each.step for each in placed]
        habits = [registry.get(step.transform).kind in registry.HABIT_KINDS for step in steps]
        return cls(
            conditions=Conditions.of(placed, len(writers)),
            levels=tuple(_levels([each.sort_keys for each in placed])),
            labels=_numbers(step.label for step in steps),
            strength_labels=_numbers(f"{step.label}/strength" for step in steps),
            is_habit=np.array(habits, np.bool_) & bool(recipe.writers),
            weights=_weighted([weight for _, weight in recipe.strength]),
            writers=_weighted([writer.weight for writer in writers]),
            factors=_factors(recipe, writers, steps),
        )

    def draw(self, streams: Streams) -> Plan:
        """Draw the steps of every row and the order in which the row applies them."""
        streams = streams.of_writers
        rows = np.arange(len(streams.row_ids))
        writers = np.zeros(len(rows), np.int64)
        if self.writers is not None:
            writers = self.writers.pick(0, streams.decide(_WRITER, rows))
        rows, steps = self._drawn(streams, writers)
        if not self.levels:
            return Plan(rows, steps, writers, in_order=True)
        keys = [steps]  # sort keys, the least significant first as `lexsort` expects
        for level in reversed(self.levels):
            numbers, names = level.numbers.take(steps), level.streams.take(steps)
            decided = np.flatnonzero(names)
            numbers[decided] = streams.decide(names.take(decided), rows.take(decided))
            keys.append(numbers)
        order = np.lexsort([*keys, rows])
        return Plan(rows.take(order), steps.take(order), writers, in_order=False)

    def _drawn(self, streams: Streams, writers: I64) -> tuple[I64, I64]:
        """Return the (row, step) pairs in which the row meets all conditions of the step.

        The pairs are ascending; `writers` has the writer of each row.
        """
        names, lows, highs, paths = self.conditions
        size = BLOCK // (1 + paths.size)
        parts = [np.zeros((2, 0), np.int64)]
        for start in range(0, len(writers), size):
            rows = np.arange(start, min(start + size, len(writers)))
            drawn = streams.decide(names, rows[:, None])
            # The last column, index -1 (the padding in `paths`), stays True.
            met = np.ones((len(rows), len(names) + 1), np.bool_)
            met[:, :-1] = (drawn >= lows) & (drawn < highs.T.take(writers.take(rows), axis=0))
            at, steps = np.nonzero(met[:, paths].all(axis=2))
            parts.append(np.stack([rows.take(at), steps]))
        rows, steps = np.concatenate(parts, axis=1)
        return rows, steps

    def pair_draws(
        self, streams: Streams, rows: I64, steps: I64, writers: I64, rates: int
    ) -> PairDraws:
        """Return the keys and strengths of (row, step) pairs.

        `writers` has the index of the writer of each pair. `rates` is the maximum count of rate
        parameters in a step.
        """
        traits, labels = streams.of_writers, self.labels.take(steps)
        keys = streams.keys(labels, rows)
        if streams.writer_ids is not None and self.is_habit.any():
            keys = np.where(self.is_habit.take(steps), traits.keys(labels, rows), keys)
        drawn = np.zeros((len(steps), rates), np.int64)
        if self.weights is not None:
            strength_keys = traits.keys(self.strength_labels.take(steps), rows)
            draws = rng.draw_array(strength_keys[:, None], np.arange(rates))
            drawn = self.weights.pick(0, rng.decisions(draws))
        if self.writers is not None:
            drawn = self.factors[writers[:, None], steps[:, None], drawn]
        return PairDraws(keys, drawn)


_WRITER = np.array([name_number("writer")], np.uint64)  # the stream that draws the writer of a row


def _numbers(names: Iterable[str]) -> U64:
    return np.array([name_number(name) for name in names], np.uint64)


def _weighted(weights: Sequence[int]) -> WeightedChoices | None:
    """Return a choice among alternatives with these weights, None if there is one alternative."""
    return WeightedChoices.of([weights], DECISION_BITS) if len(weights) > 1 else None


def _factors(recipe: Mix, writers: Sequence[Writer], steps: Sequence[Step]) -> I64:
    """Return an array of indices in `recipe.factors`, shape (writers, steps, strengths).

    Entry (w, s, k) is the index of a product: factor k of `recipe.strength` times the strength of
    writer w's habit for step s, which is 1 without a habit.
    """
    index = {factor: number for number, factor in enumerate(recipe.factors)}
    factors = np.zeros((len(writers), len(steps), len(recipe.strength)), np.int64)
    for writer_number, writer in enumerate(writers):
        for step_number, step in enumerate(steps):
            habit = writer.habits.get(step.label, Habit(step.p))
            scaled = [factor * habit.strength for factor, _ in recipe.strength]
            factors[writer_number, step_number] = [index[factor] for factor in scaled]
    return factors


def _placed_steps(
    member: Member,
    conditions: tuple[Condition, ...],
    sort_keys: tuple[SortKey, ...],
    writers: Sequence[Writer],
) -> Iterator[PlacedStep]:
    """Yield a `PlacedStep` for every step in a member (step or group) of a recipe.

    `conditions` and `sort_keys` come from the groups around the member, outermost first.
    Habits of the `writers` replace the chances `p` of steps.
    """
    if isinstance(member, Step):
        yield PlacedStep(member, conditions, sort_keys)
        return
    weights = WeightedChoices.of([[part.weight for part in member.members]], DECISION_BITS)
    bounds = [0, *weights.bounds.tolist()]
    for number, part in enumerate(member.members):
        met = conditions
        chances = [writer.habits.get(part.label, Habit(part.p)).p for writer in writers]
        if any(p != 1 for p in chances):
            met += (Condition(f"{part.label}/gate", 0, tuple(map(rng.threshold, chances))),)
        if member.kind == "one_of":
            highs = (bounds[number + 1],) * len(writers)
            met += (Condition(f"{member.label}/one_of", bounds[number], highs),)
        sort_key = f"{part.label}/order" if member.kind == "shuffle" else number
        yield from _placed_steps(part, met, (*sort_keys, sort_key), writers)


def _levels(sort_keys: Sequence[tuple[SortKey, ...]]) -> Iterator[SortLevel]:
    """Yield a level for each depth of nested groups, down to the deepest shuffled group.

    `sort_keys` has the sort keys of each step in the groups around it, outermost first. A level in
    which all steps have the same sort key is left out, as it does not affect the order.
    """
    depths = [
        depth
        for of_step in sort_keys
        for depth, key in enumerate(of_step, 1)
        if isinstance(key, str)
    ]
    for depth in range(max(depths, default=0)):
        at_depth = [of_step[depth] if depth < len(of_step) else 0 for of_step in sort_keys]
        if len(set(at_depth)) > 1:
            yield SortLevel.of(at_depth)
