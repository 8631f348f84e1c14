"""What miners produce: sentence pairs with their words, losses; which words enter a dictionary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple, Protocol, Self

from noisegen.data.rows import FileRange
from noisegen.options import option
from noisegen.text.segmentation import Language

DAMAGE_MAX = 1_000  # lines of damage kept of a task, and in the manifest


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
    """The files that one worker mines, one after the other, or a range of one file."""

    number: int
    files: tuple[FileRange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files."""
        return tuple(file.path for file in self.files)


class Damage(list[str]):
    """Lines that say where something was lost, and what; `total` counts those beyond the first."""

    total = 0

    def append(self, line: str) -> None:
        """Count a line, and keep it if there is room."""
        self.total += 1
        if len(self) < DAMAGE_MAX:
            super().append(line)

    def __iadd__(self, lines: Iterable[str]) -> Self:  # type: ignore[misc,override]
        for line in lines:
            self.append(line)
        return self


@dataclass
class Account:
    """Counts of what a miner read and dropped (by reason), and lines about what was lost.

    `input` has the bytes of the input that are read so far, as they lie; `words` those of pages as
    they stand at last, if the profile counts them, until they are taken away.
    """

    input: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: Damage = field(default_factory=Damage)
    words: Counter[str] = field(default_factory=Counter)


class Miner(Protocol):
    """Yields the pairs of a task; pickled with every task, so it holds options only."""

    kind: ClassVar[str]  # wiki, lang8 or pairs

    @property
    def language(self) -> Language:
        """The language of the run."""

    def __call__(self, task: Task, account: Account) -> Iterator[SentencePair]:
        """Mine the files of the task."""


# Which counted words enter a dictionary: options of a run and of a filter.
THRESHOLD_OPTIONS = {
    "min_pages": option("Minimum number of pages (or rows) with a word pair", ge=0),
    "min_count": option("Minimum number of sentence pairs with a word pair", ge=0),
    "balance": option("Minimum ratio of a word pair's count to that of its reverse (0: any)", ge=0),
    "frequency": option("Minimum ratio of the right word's frequency to that of the wrong form "
                        "in the corrected sentences of a mining run (0: any)", ge=0),
    "top": option("Maximum number of wrong forms per word (0: no limit)", ge=0),
}  # fmt: skip


@dataclass(frozen=True)
class Thresholds:
    """What a word pair needs to enter a dictionary; 0 asks nothing.

    `balance`: its count must be that many times the count of its reverse, else both are variants
    of each other. `frequency`: the right word must be that many times as frequent in the corrected
    sentences as the wrong form, else both are words. `top`: the most frequent alternatives of a
    word that are kept.
    """

    min_pages: Annotated[int, THRESHOLD_OPTIONS["min_pages"]] = 0
    min_count: Annotated[int, THRESHOLD_OPTIONS["min_count"]] = 1
    balance: Annotated[int, THRESHOLD_OPTIONS["balance"]] = 0
    frequency: Annotated[int, THRESHOLD_OPTIONS["frequency"]] = 0
    top: Annotated[int, THRESHOLD_OPTIONS["top"]] = 20


# RCP names no thresholds; the others are ours. A pair that goes both ways is no error but a
# variant, what one page alone has is often the matter of that page, and a wrong form that is common
# on the pages, or among corrected sentences, is a word of its own.
THRESHOLDS: Mapping[str, Thresholds] = {
    "spelling": Thresholds(min_pages=1, balance=3, frequency=10),
    "rcp": Thresholds(min_pages=1),
    "strict": Thresholds(min_pages=2, balance=3, frequency=10),
    "all": Thresholds(min_pages=1),
}
