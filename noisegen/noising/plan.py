"""Which transforms each row draws, in which order and how strong, over arrays of rows.

Every decision is keyed by the label of the member it is about, so a step added to a recipe changes
only the rows that draw it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from noisegen.noising import registry, rng
from noisegen.noising.recipe import Habit, Member, Recipe, Step, Writer
from noisegen.noising.rng import DECISION_BITS, WeightedChoices, name_number
from noisegen.text.buffers import I64, U64, Bool, ordinals

BLOCK = 1 << 15  # decisions that are drawn at once: what a cache holds


@dataclass(frozen=True)
class Streams:
    """The random streams of a batch of rows, one per name: functions of seed, name and row id.

    `writer_ids` are equal for rows of one writer; by default every row has its own.
    """

    row_ids: U64
    seed: int
    copy: int = 0
    writer_ids: U64 | None = None

    def __post_init__(self) -> None:
        rng.check_seed(self.seed)

    @property
    def of_writers(self) -> "Streams":
        """The streams of what is the same in all rows of a writer."""
        return self if self.writer_ids is None else Streams(self.writer_ids, self.seed, self.copy)

    def keys(self, names: str | U64, rows: I64) -> U64:
        """Return the keys of some rows in one stream, or each in that of a `name_number`."""
        numbers = _numbers([names]) if isinstance(names, str) else names
        return rng.row_keys(rng.stream_keys(self.seed, numbers, self.copy), self.row_ids[rows])

    def decide(self, names: str | U64, rows: I64) -> I64:
        """Return one 48-bit decision for every row, in streams as of `keys`."""
        return rng.decisions(rng.draw_array(self.keys(names, rows), 0))


class Plan(NamedTuple):
    """The steps that rows drew: (row, step) pairs sorted by row, then by order of application."""

    rows: I64
    steps: I64
    writers: I64  # of every row of the batch
    in_order: bool  # whether the steps of a row are ascending

    def passes(self, last: Bool) -> Iterator[tuple[I64, I64]]:
        """Yield the rows that have a first step and these steps, then those of second steps, ...

        The rows of a pass are sorted by step; steps flagged in `last` come after the others. Where
        all rows have their steps in one order, a pass is one step of all rows that have it.
        """
        if not len(self.rows):
            return
        if self.in_order:
            by_step = np.argsort(self.steps.astype(np.uint8), kind="stable")  # a radix sort
            for at in np.split(by_step, np.flatnonzero(np.diff(self.steps[by_step])) + 1):
                yield self.rows[at], self.steps[at]
            return
        passes = ordinals(self.rows)
        for number in range(int(passes.max(initial=-1)) + 1):
            at = np.flatnonzero(passes == number)
            steps = self.steps[at]
            at = at[np.argsort(steps + last[steps] * len(last), kind="stable")]
            yield self.rows[at], self.steps[at]


# The decision in this stream is at least the first number and below the second, or below that of
# the row's writer.
Condition = tuple[str, int, tuple[int, ...]]
Turn = int | str  # a number, or the stream whose decision is it


@dataclass(frozen=True)
class Schedule:
    """The decisions of a recipe laid out as arrays, so that all are drawn at once.

    A row draws a step if it meets all conditions of its path: `paths` holds their numbers. The last
    condition is met by every row. The steps of a row are applied in the order of `turns`, from the
    outermost group on, else in that of the recipe. What a row draws is its writer's; the own key of
    a step is the writer's too where `is_habit`.
    """

    conditions: tuple[U64, I64, I64]  # stream, low, high of each writer
    paths: I64
    turns: tuple[tuple[I64, U64], ...]  # of each level: numbers, or else streams
    labels: U64
    strength_labels: U64
    weights: WeightedChoices | None
    writers: WeightedChoices | None
    factors: I64  # of each writer and step: what of `Recipe.factors` each strength becomes
    is_habit: Bool

    @classmethod
    def of(cls, recipe: Recipe) -> "Schedule":
        """Lay out a recipe."""
        writers = recipe.writers or (Writer("", 1, {}),)
        reached = list(_reached(recipe.root, (), (), writers))
        conditions = list(dict.fromkeys(met for _, path, _ in reached for met in path))
        paths = np.full((len(reached), max((len(path) for _, path, _ in reached), default=0)), -1)
        for number, (_, path, _) in enumerate(reached):
            paths[number, : len(path)] = [conditions.index(met) for met in path]
        names, lows, highs = zip(*conditions, strict=True) if conditions else ((), (), ())
        steps = [step for step, _, _ in reached]
        habits = [registry.get(step.transform).kind in registry.HABITS for step in steps]
        return cls(
            (_numbers(names), np.array(lows, np.int64),
             np.array(highs, np.int64).reshape(len(names), len(writers))),
            paths,
            tuple(_levels([turns for _, _, turns in reached])),
            _numbers(step.label for step in steps),
            _numbers(map(strength_label, steps)),
            _weighted([weight for _, weight in recipe.strength]),
            _weighted([writer.weight for writer in writers]),
            _factors(recipe, writers, steps),
            np.array(habits, np.bool_) & bool(recipe.writers),
        )  # fmt: skip

    def draw(self, streams: Streams) -> Plan:
        """Draw the steps of every row."""
        rows, size = np.arange(len(streams.row_ids)), BLOCK // (1 + self.paths.size)
        streams, writers = streams.of_writers, np.zeros(len(rows), np.int64)
        if self.writers:
            writers = self.writers.pick(0, streams.decide("writer", rows))
        blocks = (rows[start : start + size] for start in range(0, len(rows), size))
        parts = (self._drawn(streams, block, writers[block]) for block in blocks)
        rows, steps = np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1)
        if not self.turns:
            return Plan(rows, steps, writers, in_order=True)
        levels = []
        for numbers, names in self.turns:
            order, streamed = numbers.take(steps), names.take(steps)
            at = np.flatnonzero(streamed)
            order[at] = streams.decide(streamed.take(at), rows.take(at))
            levels.append(order)
        order = np.lexsort((steps, *reversed(levels), rows))
        return Plan(rows.take(order), steps.take(order), writers, in_order=False)

    def _drawn(self, streams: Streams, rows: I64, writers: I64) -> I64:
        """Return the pairs of row and step of some rows, shape (2, pairs), in their order."""
        names, lows, highs = self.conditions
        drawn = streams.decide(names, rows[:, None])
        met = np.ones((len(rows), len(names) + 1), np.bool_)
        met[:, :-1] = (drawn >= lows) & (drawn < highs.T.take(writers, axis=0))
        at, steps = np.nonzero(met[:, self.paths].all(axis=2))
        return np.stack([rows.take(at), steps])

    def keys(self, streams: Streams, rows: I64, steps: I64) -> tuple[U64, U64]:
        """Return the keys of pairs of row and step: of the step itself, and of its strength."""
        traits = streams.of_writers
        own = streams.keys(self.labels.take(steps), rows)
        if traits is not streams and self.is_habit.any():
            habits = traits.keys(self.labels.take(steps), rows)
            own = np.where(self.is_habit.take(steps), habits, own)
        return own, traits.keys(self.strength_labels.take(steps), rows)

    def strengths(self, keys: U64, rates: int, writers: I64, steps: I64) -> I64:
        """Draw which factor of the recipe each of so many rates has, shape (pairs, rates).

        `keys` are the second that the method of this name returns for pairs of row and step;
        `writers` are those of the rows.
        """
        drawn = np.zeros((len(keys), rates), np.int64)
        if self.weights is not None:
            draws = rng.draw_array(keys[:, None], np.arange(rates))
            drawn = self.weights.pick(0, rng.decisions(draws))
        return self.factors[writers[:, None], steps[:, None], drawn] if self.writers else drawn


def strength_label(step: Step) -> str:
    """Return the name of the stream that decides how strong a step is."""
    return f"{step.label}/strength"


def _numbers(names: Iterable[str]) -> U64:
    return np.array([name_number(name) for name in names], np.uint64)


def _weighted(weights: Sequence[int]) -> WeightedChoices | None:
    """Return the choice among these, None where there is only one."""
    return WeightedChoices.of([weights], DECISION_BITS) if len(weights) > 1 else None


def _factors(recipe: Recipe, writers: Sequence[Writer], steps: Sequence[Step]) -> I64:
    """Return the numbers of factors, shape (writers, steps, strengths)."""
    number_of = {factor: number for number, factor in enumerate(recipe.factors)}
    habits = [
        [writer.habits.get(step.label, Habit(step.p)) for step in steps] for writer in writers
    ]
    of_strengths = [
        [[number_of[factor * habit.strength] for factor, _ in recipe.strength]
         for habit in of_writer] for of_writer in habits
    ]  # fmt: skip
    return np.array(of_strengths, np.int64)


def _reached(
    member: Member, path: tuple[Condition, ...], turns: tuple[Turn, ...], writers: Sequence[Writer]
) -> Iterator[tuple[Step, tuple[Condition, ...], tuple[Turn, ...]]]:
    """Yield every step below a member with the conditions and the turns on the way to it."""
    if isinstance(member, Step):
        yield member, path, turns
        return
    weights = WeightedChoices.of([[part.weight for part in member.members]], DECISION_BITS)
    bounds = [0, *weights.bounds.tolist()]
    for number, part in enumerate(member.members):
        met = path
        gates = [writer.habits.get(part.label, Habit(part.p)).p for writer in writers]
        if any(p != 1 for p in gates):
            met += ((f"{part.label}/gate", 0, tuple(map(rng.threshold, gates))),)
        if member.kind == "one_of":
            high = (bounds[number + 1],) * len(writers)
            met += ((f"{member.label}/one_of", bounds[number], high),)
        turn = f"{part.label}/order" if member.kind == "shuffle" else number
        yield from _reached(part, met, (*turns, turn), writers)


def _levels(turns: Sequence[tuple[Turn, ...]]) -> Iterator[tuple[I64, U64]]:
    """Yield the turns of all steps level by level, down to the last that is shuffled."""
    shuffled = [depth for of_step in turns for depth, turn in enumerate(of_step, 1)
                if isinstance(turn, str)]  # fmt: skip
    for level in range(max(shuffled, default=0)):
        at_level = [of_step[level] if level < len(of_step) else 0 for of_step in turns]
        if len(set(at_level)) == 1:  # all members of one group
            continue
        numbers = [turn if isinstance(turn, int) else 0 for turn in at_level]
        names = [name_number(turn) if isinstance(turn, str) else 0 for turn in at_level]
        yield np.array(numbers, np.int64), np.array(names, np.uint64)
