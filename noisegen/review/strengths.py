"""Strengths of noise to compare: a rate for every step of a recipe, or a factor of its rates."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from noisegen import registry
from noisegen.draws import fraction
from noisegen.errors import UsageError
from noisegen.recipe import Recipe

_NUMBER = re.compile(r"x?(?:[0-9]{1,6}(?:\.[0-9]{1,12})?|\.[0-9]{1,12})")


@dataclass(frozen=True)
class Strength:
    """A strength as the user wrote it: '0.1' sets rates, 'x2' multiplies them."""

    label: str

    @property
    def value(self) -> float | None:
        """The number by which strengths are ordered; None for a mere name."""
        return float(self._number) if _NUMBER.fullmatch(self.label) else None

    @property
    def _number(self) -> Fraction:
        return fraction(self.label.removeprefix("x"))

    def applied(self, recipe: Recipe) -> Recipe:
        """Return the recipe at this strength.

        A number becomes every rate of every step. A factor multiplies the rates below 1, as the
        `strength` of a recipe file does. Raises UsageError for what is neither.
        """
        if self.value is None:
            raise UsageError(
                f"strength {self.label!r} is no rate such as 0.1 and no factor such as x2"
            )
        if self.label.startswith("x"):
            scaled = tuple((part * self._number, weight) for part, weight in recipe.strength)
            return replace(recipe, strength=scaled)
        rates = {
            f"{step.transform}.{parameter.name}": self.label
            for step in recipe.steps()
            for parameter in registry.get(step.transform).parameters.values()
            if parameter.is_rate
        }
        if not rates:
            raise UsageError(f"recipe {recipe.name} has no rate that a strength could set")
        return recipe.with_values(rates)


def parse_strengths(text: str) -> tuple[Strength, ...]:
    """Read '0.05,0.1,0.2'; raises UsageError for an empty or repeated strength."""
    labels = [part.strip() for part in text.split(",")]
    if not all(labels) or len(set(labels)) < len(labels):
        raise UsageError(f"cannot read strengths {text!r}: write each once, as in 0.05,0.1,0.2")
    return tuple(Strength(label) for label in labels)


def strength_of(recipe: Mapping[str, Any]) -> str | None:
    """Return the one rate that a recipe (plain data) gives to all its steps; None if there is none.

    >>> strength_of({"steps": [{"wiki": {"rate": 0.1}}]})
    '0.1'
    """
    rates = {str(rate) for rate in _rates(recipe.get("steps"))}
    return rates.pop() if len(rates) == 1 else None


def _rates(content: object) -> Iterator[object]:
    if isinstance(content, list):
        for part in content:
            yield from _rates(part)
    elif isinstance(content, Mapping):
        for name, part in content.items():
            if name == "rate" or str(name).endswith("_rate"):
                yield part
            else:
                yield from _rates(part)
