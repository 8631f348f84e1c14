"""Types for mining: word and sentence pairs, tasks and their counts, miners, thresholds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple, Protocol, Self

from noisegen.data.rows import FileRange
from noisegen.options import option
from noisegen.text.segmentation import Language

DAMAGE_MAX = 1_000  # maximum messages about damage kept per task, and in the manifest


class WordPair(NamedTuple):
    """A token of the noisy sentence, and the token of the clean sentence that replaced it."""

    clean: str
    noisy: str
    kind: str = ""  # kind of noise, such as homophone or kana; '' if it has no kind


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A noisy sentence, its clean form, and its word pairs that passed the filters.

    `unit` is the id of the page in a revision history, or the index of the row in a table; the
    column `pages` of a dictionary counts different units. `rev_old` and all fields after it are
    set for revision histories only.
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
    """Files that one worker mines in sequence, or a range of one file."""

    number: int
    files: tuple[FileRange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the task's files."""
        return tuple(file.path for file in self.files)


class Damage(list[str]):
    """Messages about damaged input, each with the file and the position; at most `DAMAGE_MAX`.

    `total` also counts the messages that are not kept.
    """

    total = 0

    def append(self, line: str) -> None:
        """Count a message; keep it if fewer than `DAMAGE_MAX` are kept so far."""
        self.total += 1
        if len(self) < DAMAGE_MAX:
            super().append(line)

    def __iadd__(self, lines: Iterable[str]) -> Self:  # type: ignore[misc,override]
        for line in lines:
            self.append(line)
        return self


@dataclass
class Tally:
    """Counts of the data read and dropped by a task, and its messages about damage.

    `dropped` counts by reason. `input` counts the bytes read so far, before decompression. `words`
    counts the words in last revisions of pages, only with the filter profile spelling; `mine_task`
    moves these counts to its `WordCounter`.
    """

    input: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: Damage = field(default_factory=Damage)
    words: Counter[str] = field(default_factory=Counter)


class Miner(Protocol):
    """A callable that yields the sentence pairs of a mining task.

    It is pickled with every task, so it must hold options only.
    """

    kind: ClassVar[str]  # kind of mining: wiki, lang8 or pairs

    @property
    def language(self) -> Language:
        """The language of the run."""

    def __call__(self, task: Task, tally: Tally) -> Iterator[SentencePair]:
        """Yield the pairs of the task; add its counts and messages about damage to `tally`."""


THRESHOLD_OPTIONS = {  # shared by mining runs and `dictionary filter`
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

    `balance` is the minimum ratio of a word pair's count to its reverse count; below it, the two
    words are variants. `frequency` is the minimum ratio of the clean word's frequency in corrected
    text to the noisy word's; below it, the noisy word is a correct word too. `top` is the maximum
    number of noisy words per clean word; the most frequent are kept.
    """

    min_pages: Annotated[int, THRESHOLD_OPTIONS["min_pages"]] = 0
    min_count: Annotated[int, THRESHOLD_OPTIONS["min_count"]] = 1
    balance: Annotated[int, THRESHOLD_OPTIONS["balance"]] = 0
    frequency: Annotated[int, THRESHOLD_OPTIONS["frequency"]] = 0
    top: Annotated[int, THRESHOLD_OPTIONS["top"]] = 20


# RCP names no thresholds; these values are ours. Words that are often corrected to each other are
# variants, not errors (balance). A word pair of a single page is often about the topic of that
# page (min_pages). A wrong form that is common in corrected text is another word (frequency).
THRESHOLDS: Mapping[str, Thresholds] = {
    "spelling": Thresholds(min_pages=1, balance=3, frequency=10),
    "rcp": Thresholds(min_pages=1),
    "strict": Thresholds(min_pages=2, balance=3, frequency=10),
    "all": Thresholds(min_pages=1),
}
