"""What miners produce: sentence pairs with the words replaced in them, and an account of losses."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self


class WordPair(NamedTuple):
    """A token of the noisy sentence that the clean sentence replaced by one token."""

    clean: str
    noisy: str
    kind: str = ""  # homophone, synonym, kana ... where a language tells; else ''


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A noisy sentence, its clean form, and the word pairs that passed the filters.

    `unit` is what counts once in a dictionary: the page of a revision history, else the row. The
    fields from `rev_old` on are those of a revision history.
    """

    noisy: str
    clean: str
    lang: str
    unit: int
    words: tuple[WordPair, ...] = ()
    rev_old: int | None = None
    rev_new: int | None = None
    timestamp: str | None = None
    minor: bool | None = None
    comment_flag: bool | None = None
    reverted: bool | None = None
    survived: bool | None = None


@dataclass(frozen=True)
class Task:
    """What one worker mines at a time: files to be read one after the other."""

    number: int
    paths: tuple[str, ...]


DAMAGE_MAX = 1_000  # lines kept of a task


class Damage(list[str]):
    """Lines that say where something was lost, and what; `total` counts those beyond the first."""

    total = 0

    def append(self, line: str) -> None:
        """Count a line, and keep it if there is room."""
        self.total += 1
        if len(self) < DAMAGE_MAX:
            super().append(line)

    def extend(self, lines: Iterable[str]) -> None:
        """Append every line."""
        for line in lines:
            self.append(line)

    def __iadd__(self, lines: Iterable[str]) -> Self:  # type: ignore[misc,override]
        self.extend(lines)
        return self


@dataclass
class Account:
    """What a miner read (pages, revisions, bytes, ...), dropped for what reason, and lost."""

    read: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: Damage = field(default_factory=Damage)


class Miner(Protocol):
    """Yields the pairs of a task; pickled with every task, so it holds options only."""

    def __call__(self, task: Task, account: Account) -> Iterator[SentencePair]:
        """Mine the files of the task."""
        ...
