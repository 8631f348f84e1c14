"""Scaling: one factor for the chances and rates of a mix, for more or less noise."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from noisegen.noising import registry
from noisegen.noising.mix import (
    Habit,
    M,
    Member,
    Mix,
    Step,
    Writer,
    over_members,
    step_values,
    steps_below,
)

RATE_MAX = 0.9999  # maximum of a scaled rate; not 1, as strengths do not multiply a rate of 1
DIGITS = 6  # significant digits of a scaled chance


def scaled(mix: M, factor: float) -> M:
    """Return a mix with `factor` times the noise, as far as its chances can grow.

    For each step, the product of its chances and rates is multiplied by the factor. First the
    chances `p` below 1 are multiplied, up to 1, from the outermost group down to the step. The rest
    of the factor multiplies the step's rates between 0 and 1. If p is 1 and there is no such rate,
    a factor below 1 lowers p. Habits of writers are scaled in the same way.
    """
    if factor == 1:
        return mix
    return _scaled(mix, lambda _: factor, whole=True)


def with_factors(mix: M, factors: Mapping[str, float]) -> M:
    """Return a mix in which some steps have more or less noise; the chances of groups stay.

    `factors` maps the labels of steps, or the names of transforms, to the factors of their noise
    (see `scaled`). Other steps stay as they are.
    """
    of_step = {
        step.label: factors.get(step.label, factors.get(step.transform, 1.0))
        for step in mix.steps()
    }
    return _scaled(mix, lambda step: of_step[step.label], whole=False)


def _scaled(mix: M, factor_of: Callable[[Member], float], whole: bool) -> M:
    """Return a mix with the noise of its members multiplied by `factor_of(member)`.

    If `whole`, the factor of a group multiplies its chance first, and its steps get the rest of it;
    otherwise only steps have factors.
    """
    with_habits = {label for writer in mix.writers for label in writer.habits}
    left = dict[str, float]()  # label of a member -> what its groups leave of the factor

    def scaled_member(member: Member, factor: float) -> Member:
        left[member.label] = factor
        rates = free_rates(member) if isinstance(member, Step) else {}
        if member.label in with_habits:  # the strengths of writers' habits are scaled instead
            rates = {}
        if member.p < 1 or (isinstance(member, Step) and not rates):
            wanted = float(member.p) * factor
            factor = max(1.0, wanted) if member.p else factor
            member = replace(member, p=_chance(wanted))
        if isinstance(member, Step):
            grown = {name: _rounded(min(RATE_MAX, rate * factor)) for name, rate in rates.items()}
            return replace(member, values={**member.values, **grown})
        return over_members(member, lambda part: scaled_member(part, factor))

    def scaled_part(member: Member) -> Member:
        if whole or isinstance(member, Step):
            factor = factor_of(member)
            return member if factor == 1 else scaled_member(member, factor)
        return over_members(member, scaled_part)

    def scaled_writer(writer: Writer) -> Writer:
        habits = {
            label: _scaled_habit(habit, left.get(label, 1.0))
            for label, habit in writer.habits.items()
        }
        return replace(writer, habits=habits)

    root = over_members(mix.root, scaled_part)
    return replace(mix, root=root).with_writers(scaled_writer)


def _scaled_habit(habit: Habit, factor: float) -> Habit:
    wanted = float(habit.p) * factor
    strength = float(habit.strength) * max(1.0, wanted)
    return Habit(_chance(wanted), Fraction(str(_rounded(strength))))


def _chance(wanted: float) -> Fraction:
    return Fraction(str(_rounded(min(1.0, wanted))))


def _rounded(chance: float) -> float:
    return float(f"{chance:.{DIGITS}g}")


def free_rates(step: Step) -> dict[str, float]:
    """Return the rates of a step, given or default, that lie strictly between 0 and 1."""
    values = step_values(step)
    rates = {name: float(values[name] or 0) for name in registry.get(step.transform).rates}
    return {name: rate for name, rate in rates.items() if 0 < rate < 1}


def factor_max(mixes: Iterable[Mix]) -> float:
    """Return the factor beyond which `scaled` adds no further noise to any of the mixes.

    It is 0 if the mixes add no noise.
    """
    return max((growth for mix in mixes for growth in _growths(mix)), default=0.0)


def _growths(mix: Mix) -> Iterator[float]:
    """Yield for each step and habit the factor beyond which `scaled` adds no noise to it."""
    for step, own_chance in steps_below(mix.root):
        rates = free_rates(step).values()
        for p, strength in [(own_chance, 1.0), *_habits_of(step, mix.writers)]:
            if p and strength:
                yield max((RATE_MAX / (rate * strength) for rate in rates), default=1.0) / p


def _habits_of(step: Step, writers: Sequence[Writer]) -> Iterator[tuple[float, float]]:
    """Yield `p` and `strength` of the habit of each writer who has a habit for a step."""
    for writer in writers:
        if habit := writer.habits.get(step.label):
            yield float(habit.p), float(habit.strength)
