"""A recipe made stronger or weaker: all of it by one factor, or each step by its own.

What is multiplied is how much noise a step makes, p times rate. In a fixed order: first the chance
`p` of what is reached first (a group, then its members) where it is below 1, until it is 1; what is
left of the factor goes to the rates of the step, those above 0 and below 1. A step with p = 1 and
only rates of 1, which are rules and no chances, has nothing but its p.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from noisegen import registry
from noisegen.recipe import Group, Member, Recipe, Step, step_values

RATE_MAX = 0.9999  # a rate of 1 would be a rule, which the strengths of a recipe do not change
DIGITS = 6  # significant digits of a chance in a recipe file


def scaled(recipe: Recipe, factor: float) -> Recipe:
    """Return the recipe with `factor` times the noise, as far as its chances can grow."""
    members = tuple(_scaled(member, factor) for member in recipe.root.members)
    return replace(recipe, root=replace(recipe.root, members=members))


def with_factors(recipe: Recipe, factors: Mapping[str, float]) -> Recipe:
    """Return the recipe with each step (by label) at its factor; the p of groups stay."""
    return replace(recipe, root=_with_factors(recipe.root, factors))


def evened(recipe: Recipe, evenness: float) -> Recipe:
    """Return the recipe with the same noise over more rows: p becomes p^(1 - evenness).

    The rates of a step make up for it; steps whose only rates are rules stay.
    """
    return replace(recipe, root=_evened(recipe.root, evenness))


def _evened(member: Any, evenness: float) -> Any:
    if isinstance(member, Group):
        return replace(member, members=tuple(_evened(part, evenness) for part in member.members))
    rates = free_rates(member)
    if not (rates and member.p):
        return member
    less = float(member.p) ** evenness
    p = Fraction(str(_rounded(float(member.p) / less)))
    return replace(
        member, p=p, values=member.values | {k: _rounded(v * less) for k, v in rates.items()}
    )


def without(recipe: Recipe, labels: Collection[str]) -> Recipe:
    """Return the recipe without some steps; of what `one_of` chooses from, they get p = 0."""
    return replace(recipe, root=_without(recipe.root, labels))


def _without(group: Group, labels: Collection[str]) -> Group:
    members: list[Member] = []
    for part in group.members:
        if isinstance(part, Group):
            inner = _without(part, labels)
            members += [inner] if inner.members or group.kind == "one_of" else []
        elif part.label not in labels:
            members.append(part)
        elif group.kind == "one_of":
            members.append(replace(part, p=Fraction(0)))
    return replace(group, members=tuple(members))


def factor_max(recipe: Recipe) -> float:
    """Return the least factor at which no chance can grow any more; 0 if there is nothing."""
    return max((_room(step, p) for step, p in _chances(recipe.root, 1.0)), default=0.0)


def rooms(recipe: Recipe) -> dict[str, float]:
    """Return how many times its noise each step (by label) can make; 0 where it makes none."""
    return {step.label: _room(step, float(step.p)) for step in recipe.steps()}


def reach(recipe: Recipe) -> dict[str, float]:
    """Return the chance of each step (by label) that a row gets it."""
    return dict(_reached(recipe.root, 1.0))


def _reached(member: Member, chance: float) -> Iterator[tuple[str, float]]:
    chance *= float(member.p)
    if isinstance(member, Step):
        yield member.label, chance
        return
    total = sum(part.weight for part in member.members)
    for part in member.members:
        share = part.weight / total if member.kind == "one_of" else 1.0
        yield from _reached(part, chance * share)


def scaled_step(step: Step, factor: float) -> Step:
    """Return a step with `factor` times the noise."""
    rates = free_rates(step)
    if step.p < 1 or not rates:
        p, factor = _grown(float(step.p), factor)
        step = replace(step, p=Fraction(str(p)))
    grown = {name: _rounded(min(RATE_MAX, rate * factor)) for name, rate in rates.items()}
    return replace(step, values={**step.values, **grown})


def free_rates(step: Step) -> dict[str, float]:
    """Return the rates of a step that are chances: above 0 and below 1; defaults included."""
    values, known = step_values(step), registry.get(step.transform).parameters
    rates = {name: float(values[name] or 0) for name in known if known[name].is_rate}
    return {name: rate for name, rate in rates.items() if 0 < rate < 1}


def one_rate_each(recipe: Recipe) -> Recipe:
    """Return the recipe with a step of several rates as several steps that have one of them.

    What `one_of` chooses from stays one step. Labels are given anew.
    """
    return replace(recipe, root=_one_rate_each(recipe.root)).with_values({})


def _one_rate_each(group: Group) -> Group:
    members: list[Member] = []
    for part in group.members:
        if isinstance(part, Group):
            members.append(_one_rate_each(part))
        else:
            members += [part] if group.kind == "one_of" else _alone(part)
    return replace(group, members=tuple(members))


def _alone(step: Step) -> list[Step]:
    """Return a step for every rate above 0, which has the other rates at 0."""
    values, known = step_values(step), registry.get(step.transform).parameters
    names = [name for name in known if known[name].is_rate and float(values[name] or 0) > 0]
    if len(names) < 2:
        return [step]
    return [
        replace(step, values={**step.values, **dict.fromkeys(names, 0.0), name: values[name]})
        for name in names
    ]


def _scaled(member: Member, factor: float) -> Member:
    if isinstance(member, Step):
        return scaled_step(member, factor)
    p, left = _grown(float(member.p), factor) if member.p < 1 else (1.0, factor)
    members = tuple(_scaled(part, left) for part in member.members)
    return replace(member, p=Fraction(str(p)), members=members)


def _with_factors(member: Any, factors: Mapping[str, float]) -> Any:
    if isinstance(member, Step):
        return scaled_step(member, factors.get(member.label, 1.0))
    return replace(member, members=tuple(_with_factors(part, factors) for part in member.members))


def _grown(p: float, factor: float) -> tuple[float, float]:
    """Return a chance times a factor, at most 1, and what is left of the factor."""
    grown = _rounded(min(1.0, p * factor))
    return grown, (max(1.0, p * factor) if p else factor)


def _rounded(chance: float) -> float:
    return float(f"{chance:.{DIGITS}g}")


def _chances(member: Member, p: float) -> Iterator[tuple[Step, float]]:
    """Yield the steps below a member, each with the product of the p on the way to it."""
    p *= float(member.p)
    if isinstance(member, Step):
        yield member, p
        return
    for part in member.members:
        yield from _chances(part, p)


def _room(step: Step, p: float) -> float:
    """Return how many times its noise a step can make, reached with a chance of p."""
    rates = free_rates(step).values()
    return max((RATE_MAX / rate for rate in rates), default=1.0) / p if p else 0.0
