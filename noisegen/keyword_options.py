"""Keyword options of a Python function to the dataclass that checks them."""

from dataclasses import fields
from typing import Any, TypeVar

from noisegen.errors import UsageError

T = TypeVar("T")


def request_of(kind: type[T], options: dict[str, Any], function: str) -> T:
    """Return the request that the options make; raises UsageError for one that it has not."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    wrong = next((name for name in options if name not in known), None)
    if wrong is not None:
        raise UsageError(f"{function} has no option {wrong!r}; known: {', '.join(known)}")
    return kind(**options)
