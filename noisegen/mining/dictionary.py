"""Dictionaries of real errors: correct word -> wrong forms with counts and probabilities."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from noisegen.errors import UsageError
from noisegen.mining.counts import Count, summed

ANY = "*"  # the language of entries that hold for any
Frequencies = Mapping[tuple[str, str], int]  # of (language, word)


class Alternative(NamedTuple):
    """A wrong form of a word: `prob` is its share of the count of all wrong forms that are kept."""

    lang: str
    clean: str
    noisy: str
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    pages: int
    reverse_count: int
    prob: float


@dataclass(frozen=True)
class Thresholds:
    """What a word pair needs to enter a dictionary; 0 asks nothing.

    `balance`: its count must be that many times the count of its reverse, else both are variants
    of each other. `frequency`: the right word must be that many times as frequent in the corrected
    sentences as the wrong form, else both are words. `top`: the most frequent alternatives of a
    word that are kept.
    """

    min_pages: int = 1
    min_count: int = 1
    balance: int = 0
    frequency: int = 0
    top: int = 20

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise UsageError(f"--{name.replace('_', '-')} {value} must be at least 0")

    def reason(self, row: Count, seen: Frequencies) -> str | None:
        """Return why a word pair is left out; None if it is kept."""
        if row.pages < self.min_pages:
            return "few_pages"
        if row.count < self.min_count:
            return "few_counts"
        if row.count < self.balance * row.reverse_count:
            return "variant"
        clean, noisy = seen.get((row.lang, row.clean), 0), seen.get((row.lang, row.noisy), 0)
        return "real_word" if clean < self.frequency * noisy else None


# RCP names no thresholds; those of `strict` are ours. A pair that goes both ways is no error but a
# variant, what one page alone has is often the matter of that page, and a wrong form that is common
# among corrected sentences is a word of its own.
THRESHOLDS: Mapping[str, Thresholds] = MappingProxyType(
    {
        "rcp": Thresholds(),
        "strict": Thresholds(min_pages=2, balance=3, frequency=10),
        "all": Thresholds(),
    }
)

_WORD = attrgetter("lang", "clean")


@dataclass
class Left:
    """How many word pairs were left out for what reason, and the words that have some left."""

    dropped: Counter[str] = field(default_factory=Counter)
    words: int = 0


def kept(
    counts: Iterable[Count], thresholds: Thresholds, left: Left | None = None,
    seen: Frequencies = MappingProxyType({}),
) -> Iterator[Alternative]:  # fmt: skip
    """Yield the alternatives of sorted counts that pass, the most frequent of a word first.

    Keeps account in `left`; `seen` is how often words stand in corrected sentences.
    """
    left = left or Left()
    for _, rows in groupby(counts, key=_WORD):
        passed = _passed(rows, thresholds, left.dropped, seen)
        left.words += bool(passed)
        total = sum(row.count for row in passed)
        for lang, clean, noisy, _, count, pages, reverse in passed:
            yield Alternative(lang, clean, noisy, count, pages, reverse, count / total)


def _passed(
    rows: Iterable[Count], thresholds: Thresholds, dropped: Counter[str], seen: Frequencies
) -> list[Count]:
    """Return the alternatives of one word that pass, the most frequent first."""
    passed = []
    for row in (row for row in rows if row.count):
        reason = thresholds.reason(row, seen)
        if reason is None:
            passed.append(row)
        else:
            dropped[reason] += 1
    passed.sort(key=lambda row: (-row.count, -row.pages, row.noisy))
    beyond = max(0, len(passed) - thresholds.top) if thresholds.top else 0
    if beyond:
        dropped["beyond_top"] += beyond
    return passed[: len(passed) - beyond]


def counts_of(entries: Iterable[Alternative]) -> Iterator[Count]:
    """Return a dictionary's entries as sorted counts, to be merged and filtered again.

    `reverse_count` of an entry holds where the reverse is no entry, else its own count does.
    """
    entries = list(entries)
    known = {entry[:3] for entry in entries}
    rows = []
    for lang, clean, noisy, count, pages, reverse, _ in entries:
        reverse = 0 if (lang, noisy, clean) in known else reverse
        rows.append(Count(lang, clean, noisy, "", count, pages, reverse))
        rows.append(Count(lang, noisy, clean, "", 0, 0, count))
    return summed(sorted(rows))
