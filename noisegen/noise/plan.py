"""Which transforms each row draws, in which order and how strong, over arrays of rows.

Every decision is keyed by the label of the member it is about, so a step added to a recipe changes
only the rows that draw it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from noisegen.noise import rng
from noisegen.noise.recipe import Member, Recipe, Step
from noisegen.noise.rng import DECISION_BITS, WeightedChoices
from noisegen.text.buffers import I64, U64, Bool, ordinals


@dataclass(frozen=True)
class Streams:
    """The random streams of a batch of rows, one per name: functions of seed, name and row id."""

    row_ids: U64
    seed: int
    copy: int = 0

    def __post_init__(self) -> None:
        rng.check_seed(self.seed)

    def keys(self, name: str, rows: I64) -> U64:
        """Return the keys of some rows in one stream."""
        return rng.row_keys(rng.stream_key(self.seed, name, self.copy), self.row_ids[rows])

    def keys_of_each(self, names: Iterable[str], chosen: I64, rows: I64) -> U64:
        """Return the keys of some rows, each in the stream of its own chosen name."""
        streams = [rng.stream_key(self.seed, name, self.copy) for name in names]
        return rng.row_keys(np.array(streams, np.uint64)[chosen], self.row_ids[rows])

    def decide(self, name: str, rows: I64) -> I64:
        """Return one 48-bit decision for every row."""
        return rng.decisions(rng.draw_array(self.keys(name, rows), 0))


class Plan(NamedTuple):
    """The steps that rows drew: (row, step) pairs sorted by row, then by order of application."""

    rows: I64
    steps: I64

    def passes(self, last: Bool) -> Iterator[tuple[I64, I64]]:
        """Yield the rows that have a first step and these steps, then those of second steps, ...

        The rows of a pass are sorted by step; steps flagged in `last` come after the others.
        """
        passes = ordinals(self.rows)
        for number in range(int(passes.max(initial=-1)) + 1):
            at = np.flatnonzero(passes == number)
            steps = self.steps[at]
            at = at[np.argsort(steps + last[steps] * len(last), kind="stable")]
            yield self.rows[at], self.steps[at]


def draw_plan(recipe: Recipe, streams: Streams) -> Plan:
    """Draw the steps of every row."""
    numbers = {step.label: index for index, step in enumerate(recipe.steps())}
    drawn = list(_drawn(recipe.root, np.arange(len(streams.row_ids)), [], streams))
    if not drawn:
        return Plan(*np.zeros((2, 0), np.int64))
    rows = np.concatenate([rows for _, rows, _ in drawn])
    steps = np.repeat([numbers[step.label] for step, _, _ in drawn], [len(r) for _, r, _ in drawn])
    depth = max(len(sort_keys) for _, _, sort_keys in drawn)
    levels = [
        np.concatenate([k[level] if level < len(k) else np.zeros_like(r) for _, r, k in drawn])
        for level in reversed(range(depth))
    ]
    order = np.lexsort((steps, *(keys for keys in levels if keys.any()), rows))
    return Plan(rows[order], steps[order])


def _drawn(
    member: Member, rows: I64, sort_keys: list[I64], streams: Streams
) -> Iterator[tuple[Step, I64, list[I64]]]:
    """Yield every step below a member with the rows that drew it and their sort keys."""
    if isinstance(member, Step):
        yield member, rows, sort_keys
        return
    if member.kind == "one_of":
        weights = WeightedChoices.of([[part.weight for part in member.members]], DECISION_BITS)
        choice = weights.pick(0, streams.decide(f"{member.label}/one_of", rows))
    for number, part in enumerate(member.members):
        gated = np.ones(len(rows), np.bool_)
        if part.p != 1:
            gated = streams.decide(f"{part.label}/gate", rows) < rng.threshold(part.p)
        if member.kind == "one_of":
            gated &= choice == number
        chosen, order = rows[gated], np.full(int(gated.sum()), number)
        if member.kind == "shuffle":
            order = streams.decide(f"{part.label}/order", chosen)
        yield from _drawn(part, chosen, [*(keys[gated] for keys in sort_keys), order], streams)


def strength_label(step: Step) -> str:
    """Return the name of the stream that decides how strong a step is."""
    return f"{step.label}/strength"


def draw_strengths(recipe: Recipe, keys: U64, rates: list[str]) -> dict[str, I64]:
    """Draw which factor each rate of a step has in every row: an index in `recipe.factors`.

    `keys` are those of the rows in the streams of `strength_label`.
    """
    if len(recipe.strength) == 1:
        return {rate: np.zeros(len(keys), np.int64) for rate in rates}
    weights = WeightedChoices.of([[weight for _, weight in recipe.strength]], DECISION_BITS)
    draws = (rng.decisions(rng.draw_array(keys, number)) for number in range(len(rates)))
    return {rate: weights.pick(0, drawn) for rate, drawn in zip(rates, draws, strict=True)}
