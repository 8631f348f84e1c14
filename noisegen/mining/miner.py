"""Types of mining: sentence and word pairs, tasks, accounts, the miner protocol, thresholds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple, Protocol, Self

from noisegen.data.rows import FileRange
from noisegen.options import option
from noisegen.text.segmentation import Language

DAMAGE_MAX = 1_000  # lines of damage that are kept per task, and in the manifest


class WordPair(NamedTuple):
    """A token of the noisy sentence that the clean sentence replaced by one token."""

    clean: str
    noisy: str
    kind: str = ""  # homophone, synonym, kana ... in languages with such kinds


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A noisy sentence, its clean form, and the word pairs that passed the filters.

    `unit` is the page of a revision history, else the row; `pages` in dictionaries counts units.
    The fields from `rev_old` on are set for revision histories only.
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
    """Files that one worker mines one after the other, or a range of one file."""

    number: int
    files: tuple[FileRange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files."""
        return tuple(file.path for file in self.files)


class Damage(list[str]):
    """Lines that name a place and a loss; the first `DAMAGE_MAX` are kept, `total` counts all."""

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
    """Counts of read and of dropped items (by reason), and lines about lost input.

    `input` has the number of bytes read so far, compressed as they lie in the files. `words` has
    the words of last revisions, if the profile counts them, until the run takes them away.
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


THRESHOLD_OPTIONS = {  # options of mining runs and of `dictionary filter`
    "min_pages": option("Minimum number of pages (or rows) with a word pair", ge=0),
    "min_count": option("Minimum number of sentence pairs with a word pair", ge=0),
    "balance": option("Minimum ratio of a word pair's count to that of its reverse (0: any)", ge=0),
    "frequency": option(
        "Minimum ratio of the right word's frequency to that of the wrong form "
        "in the corrected sentences of a mining run (0: any)",
        ge=0,
    ),
    "top": option("Maximum number of wrong forms per word (0: no limit)", ge=0),
}


@dataclass(frozen=True)
class Thresholds:
    """Thresholds that a word pair must reach to enter a dictionary; 0 turns a threshold off.

    `balance`: minimum ratio of its count to the count of its reverse; below it, the two words are
    variants of each other. `frequency`: minimum ratio of the right word's frequency in corrected
    sentences to the wrong form's; below it, both are words. `top`: maximum number of alternatives
    per word; the most frequent are kept.
    """

    min_pages: Annotated[int, THRESHOLD_OPTIONS["min_pages"]] = 0
    min_count: Annotated[int, THRESHOLD_OPTIONS["min_count"]] = 1
    balance: Annotated[int, THRESHOLD_OPTIONS["balance"]] = 0
    frequency: Annotated[int, THRESHOLD_OPTIONS["frequency"]] = 0
    top: Annotated[int, THRESHOLD_OPTIONS["top"]] = 20


# RCP names no thresholds; the others are ours. A word pair that goes both ways is a variant, not an
# error. A pair of a single page is often about the topic of that page. A wrong form that is common
# on the pages, or in corrected sentences, is a word of its own.
THRESHOLDS: Mapping[str, Thresholds] = {
    "spelling": Thresholds(min_pages=1, balance=3, frequency=10),
    "rcp": Thresholds(min_pages=1),
    "strict": Thresholds(min_pages=2, balance=3, frequency=10),
    "all": Thresholds(min_pages=1),
}
