"""The errors a caller can act on: each message says what is wrong, where, and what to do.

NoisegenError
├── UsageError      an unknown name, parameter or value
├── RecipeError     a recipe that cannot be read or run
├── LexiconError    a word list that cannot be read
├── SourceError     an input that cannot be read
├── OutputError     an output folder that cannot be written or continued
└── MissingExtra    an optional package that is not installed
"""

from collections.abc import Iterable


class NoisegenError(Exception):
    """Base of every error that noisegen raises on purpose."""


class UsageError(NoisegenError):
    """An unknown name, parameter or value."""


class RecipeError(NoisegenError):
    """A recipe that cannot be read or run."""


class LexiconError(NoisegenError):
    """A word list that cannot be read."""


class SourceError(NoisegenError):
    """An input that cannot be read."""


class OutputError(NoisegenError):
    """An output folder that cannot be written or continued."""


class MissingExtra(NoisegenError):  # noqa: N818 - reads as what it is
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package!r} is not installed; run: pip install 'noisegen[{extra}]'")
        self._given = package, extra

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), self._given  # raised in a worker, it is pickled


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean 'x'?' for the nearest known name, or the empty string."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
