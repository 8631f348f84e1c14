"""Translations of words and phrases: what is kept of the rows of a dictionary, and why not more."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from noisegen.errors import LexiconError
from noisegen.lexicon import Entry, matchable
from noisegen.words import APOSTROPHES, WORD_BYTES_MAX

TEXT_MAX = 100  # characters of a word or phrase
WEIGHT_MAX = 1 << 40
ENTRIES_MAX = 1_000_000  # that are held in memory; MUSE has some 100,000


class Row(NamedTuple):
    """A row of a dictionary; `reason` says why it cannot be read, '' if it can."""

    clean: str = ""
    noisy: str = ""
    weight: int = 1
    reason: str = ""


@dataclass(frozen=True)
class Translations:
    """The translations of a dictionary, words in the order of the file; dropped rows by reason."""

    entries: list[Entry]
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> int:
        """Words and phrases that have a translation."""
        return len({entry.clean for entry in self.entries})


def gathered(rows: Iterable[Row], where: str) -> Translations:
    """Return the rows that can be used; the weights of equal ones add up.

    Raises LexiconError for more than `ENTRIES_MAX`; `where` they are from.
    """
    weights: dict[tuple[str, str], int] = {}
    dropped: Counter[str] = Counter()
    for row in rows:
        pair = plain(row.clean).replace(APOSTROPHES[1], APOSTROPHES[0]), plain(row.noisy)
        reason = row.reason or _reason(*pair)
        if reason:
            dropped[reason] += 1
        else:
            weights[pair] = min(weights.get(pair, 0) + row.weight, WEIGHT_MAX)
            if len(weights) > ENTRIES_MAX:
                raise LexiconError(f"{where} has over {ENTRIES_MAX:,} translations: no dictionary")
    return Translations([Entry(*pair, weight) for pair, weight in weights.items()], dropped)


def plain(text: str) -> str:
    """Return a text with single blanks and none at its ends."""
    return " ".join(text.split())


def _reason(clean: str, noisy: str) -> str:
    """Return why a translation cannot be used; '' if it can."""
    if not clean or not noisy:
        return "empty"
    may_be_long = 4 * len(clean) > WORD_BYTES_MAX  # a character has 4 bytes at most
    if max(len(clean), len(noisy)) > TEXT_MAX or (may_be_long and any(_long_words(clean))):
        return "too_long"
    if not matchable(clean):
        return "signs"
    return "same_word" if clean.casefold() == noisy.casefold() else ""


def _long_words(clean: str) -> Iterator[bool]:
    return (len(word.encode()) > WORD_BYTES_MAX for word in clean.split(" "))
