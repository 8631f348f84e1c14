"""The parameters of a transform: read from a function's signature, checked when given."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from noisegen.errors import UsageError

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Parameter:
    """An option of a transform, read from the signature of its function."""

    name: str
    default: Value
    kind: type

    @property
    def is_rate(self) -> bool:
        """Whether this is a chance per word or character."""
        return self.name == "rate" or self.name.endswith("_rate")

    def read(self, owner: str, value: object) -> Value:
        """Return a value given as text or number; raises UsageError."""
        name = f"{owner}.{self.name}"
        try:
            known: Value = _READERS[self.kind](value)
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{name} = {value!r} is not a {self.kind.__name__}") from error
        if self.is_rate and not 0 <= float(known or 0) <= 1:
            raise UsageError(f"{name} = {value} is outside 0 to 1")
        return known


_READERS: dict[type, Callable[[Any], Value]] = {
    float: float,
    int: int,
    str: str,
    bool: lambda value: {"true": True, "false": False}[str(value).lower()],
}


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the keyword-only parameters of a function."""
    hints = inspect.signature(function, eval_str=True).parameters.values()
    return {
        hint.name: Parameter(hint.name, hint.default, _kind(hint.annotation, hint.default))
        for hint in hints
        if hint.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _kind(annotation: Any, default: Value) -> type:
    """Return float, int, str or bool: the annotation, or what it allows beside None."""
    options = [kind for kind in getattr(annotation, "__args__", [annotation]) if kind in _READERS]
    return options[0] if options else type(default)
