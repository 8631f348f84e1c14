"""Which transforms each row draws, in which order and how strong: a recipe's dice, over arrays.

Every decision is keyed by the label of the member it is about, so a step added to a recipe changes
only the rows that draw it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from noisegen.draws import (
    CERTAIN,
    I64,
    U64,
    check_seed,
    decisions,
    draw_array,
    row_keys,
    stream_key,
    threshold,
)
from noisegen.recipe import Group, Member, Recipe, Step
from noisegen.text import Bool, ordinals


@dataclass(frozen=True)
class Dice:
    """The streams of a batch of rows."""

    row_ids: U64
    seed: int
    copy: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def keys(self, name: str, rows: I64) -> U64:
        """Return the row keys of a stream."""
        return row_keys(stream_key(self.seed, name, self.copy), self.row_ids[rows])

    def streams(self, names: Iterable[str]) -> U64:
        """Return the keys of streams."""
        return np.array([stream_key(self.seed, name, self.copy) for name in names], np.uint64)

    def decide(self, name: str, rows: I64, number: int = 0) -> I64:
        """Return one 48-bit decision for every row."""
        return decisions(draw_array(self.keys(name, rows), number))


@dataclass(frozen=True)
class Plan:
    """The steps that rows drew: (row, step) pairs sorted by row, then by order of application."""

    rows: I64
    steps: I64

    @cached_property
    def turns(self) -> I64:
        """The place of each pair in its row, from 0."""
        return ordinals(self.rows)

    def turn(self, number: int, last: Bool) -> tuple[I64, I64]:
        """Return the rows that have a step of this number and the steps.

        Rows are sorted by step; steps flagged in `last` come after the others.
        """
        at = np.flatnonzero(self.turns == number)
        steps = self.steps[at]
        at = at[np.argsort(steps + last[steps] * len(last), kind="stable")]
        return self.rows[at], self.steps[at]


def draw_plan(recipe: Recipe, dice: Dice) -> Plan:
    """Draw the steps of every row."""
    number = {step.label: place for place, step in enumerate(recipe.steps())}
    every = np.arange(len(dice.row_ids))
    drawn = list(_drawn(recipe.root, every, [], dice))
    if not drawn:
        return Plan(np.zeros(0, np.int64), np.zeros(0, np.int64))
    depth = max(len(order) for _, _, order in drawn)
    rows = np.concatenate([rows for _, rows, _ in drawn])
    steps = np.repeat([number[step.label] for step, _, _ in drawn], [len(r) for _, r, _ in drawn])
    orders = [
        np.concatenate([o[level] if level < len(o) else np.zeros_like(r) for _, r, o in drawn])
        for level in reversed(range(depth))
    ]
    sorted_ = np.lexsort((steps, *(order for order in orders if order.any()), rows))
    return Plan(rows[sorted_], steps[sorted_])


Drawn = tuple[Step, I64, list[I64]]


def _drawn(member: Member, rows: I64, order: list[I64], dice: Dice) -> Iterator[Drawn]:
    """Yield every step below a member with the rows that drew it and their sort keys."""
    if isinstance(member, Step):
        yield member, rows, order
        return
    choice = _choice(member, rows, dice) if member.kind == "one_of" else None
    for place, part in enumerate(member.members):
        kept = _gate(part, rows, dice)
        if choice is not None:
            kept &= choice == place
        chosen = rows[kept]
        if member.kind == "shuffle":
            turn = dice.decide(f"{part.label}/order", chosen)
        else:
            turn = np.full(len(chosen), place)
        yield from _drawn(part, chosen, [*(keys[kept] for keys in order), turn], dice)


def _gate(member: Member, rows: I64, dice: Dice) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if member.p == 1:
        return np.ones(len(rows), np.bool_)
    return dice.decide(f"{member.label}/gate", rows) < threshold(member.p)


def _choice(group: Group, rows: I64, dice: Dice) -> I64:
    bounds = _bounds([member.weight for member in group.members])
    chosen = np.searchsorted(bounds, dice.decide(f"{group.label}/one_of", rows), side="right")
    return chosen.astype(np.int64)


def _bounds(weights: list[int]) -> I64:
    """Return the upper bound of each option among 2^48 decisions."""
    sums = np.cumsum(weights)
    return np.array([CERTAIN * int(part) // int(sums[-1]) for part in sums], np.int64)


def factors(recipe: Recipe) -> tuple[Fraction, ...]:
    """Return the factors that strengths choose from."""
    return tuple(factor for factor, _ in recipe.strength)


def strength_label(step: Step) -> str:
    """Return the name of the stream that decides how strong a step is."""
    return f"{step.label}/strength"


def draw_strengths(recipe: Recipe, keys: U64, rates: list[str]) -> dict[str, I64]:
    """Draw which factor each rate of a step has in every row: an index in `factors`.

    `keys` are those of the rows in the streams of `strength_label`.
    """
    if len(recipe.strength) == 1:
        return {rate: np.zeros(len(keys), np.int64) for rate in rates}
    bounds = _bounds([weight for _, weight in recipe.strength])
    return {
        rate: np.searchsorted(bounds, decisions(draw_array(keys, number)), side="right")
        for number, rate in enumerate(rates)
    }
