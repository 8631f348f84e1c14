"""An even sample of a stream whose length nobody knows beforehand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Spread(Generic[T]):
    """An evenly spaced sample of a stream of unknown length: at most `limit` entries are kept."""

    limit: int
    seen: int = 0
    every: int = 1
    kept: list[T] = field(default_factory=list)

    def offer(self, make: Callable[[], T]) -> None:
        """Count an entry, and make and keep it if it is due."""
        if self.seen % self.every == 0:
            self.kept.append(make())
        self.seen += 1
        if len(self.kept) > self.limit:
            del self.kept[1::2]
            self.every *= 2
