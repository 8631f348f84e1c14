"""Counts of words, and of pairs of neighbouring words, in clean text.

They tell which clean form a noisy word stands for where several are possible: "ur" in "ur late" is
"you're", in "ur dog" it is "your".
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.errors import LexiconError, one_line
from noisegen.noising.lexicon import bounded_batches
from noisegen.noising.profile import END, START
from noisegen.text.alignment import token_spans
from noisegen.text.resources import DICTIONARIES

FILE = "neighbours.parquet"  # in the dictionary folder of a language
COLUMNS = ("before", "word", "count", "usual")
DISCOUNT = 0.75  # taken from the count of each pair (absolute discounting)
UNSEEN = 0.02  # added to the count of each word
SPREAD_MIN = 0.01  # least share of words that are not known to follow a word
USUAL_MIN, USUAL_SHARE = 3, 0.95  # least count and share of a word's capitals inside sentences
OWN_MAX = 12  # most times that a small text of the user counts beside the packaged counts


@dataclass(frozen=True)
class NeighbourCounts:
    """Counts of words in lower case, and of pairs of them.

    START and END stand for the edges of a text. `usual` has the usual form of words that have a
    capital wherever they stand: "London".
    """

    words: Counter[str]
    pairs: Counter[tuple[str, str]]
    usual: Mapping[str, str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "NeighbourCounts":
        """Count the words and signs of texts."""
        words, pairs = Counter[str](), Counter[tuple[str, str]]()
        inside = defaultdict[str, Counter[str]](Counter)
        for text in texts:
            written = [text[start:stop] for start, stop in token_spans(text)]
            counted = [as_counted(word) for word in written]
            words.update([START, *counted])
            pairs.update(pairwise([START, *counted, END]))
            for before, word, count in zip(written, written[1:], counted[1:], strict=False):
                if before[-1].isalnum():
                    inside[count][word] += 1
        return cls(words, pairs, dict(_usual(inside)))

    @classmethod
    def load(cls, lang: str) -> "NeighbourCounts":
        """Return the packaged counts of a language; they are empty for other languages."""
        return _packaged(DICTIONARIES / lang / FILE)

    def joined(self, own: "NeighbourCounts") -> "NeighbourCounts":
        """Return the sum of these counts and of a user's `own` counts.

        The `own` counts are multiplied so that both sums are equal, but at most by `OWN_MAX`.
        """
        times = max(1, min(OWN_MAX, round(self.total / max(1, own.total))))
        words, pairs = self.words.copy(), self.pairs.copy()
        words.update({word: times * count for word, count in own.words.items()})
        pairs.update({pair: times * count for pair, count in own.pairs.items()})
        return NeighbourCounts(words, pairs, {**self.usual, **own.usual})

    def share(self, word: str) -> float:
        """Return the share of a word among all words; unseen words have a small share too."""
        return (self.words[word] + UNSEEN) / (self.total + 2 * UNSEEN * len(self.words) + 1)

    def lift(self, before: str, word: str) -> float:
        """Return log(share of `word` after `before` / share of `word`); 0 if `before` is unseen."""
        count = self.words[before]
        if not count:
            return 0.0
        share = max(0.0, self.pairs[before, word] - DISCOUNT) / count
        spread = max(SPREAD_MIN, 1 - self._followed[before] / count)
        return math.log(share / self.share(word) + spread)

    @cached_property
    def total(self) -> int:
        """The number of words counted."""
        return self.words.total()

    @cached_property
    def _followed(self) -> Counter[str]:
        """The sum of the discounted counts of the words that follow each word."""
        sums = Counter[str]()
        for (before, _), count in self.pairs.items():
            sums[before] += max(0.0, count - DISCOUNT)  # type: ignore[assignment]
        return sums

    def save(self, path: Path, head: Mapping[str, str]) -> None:
        """Write the counts as a Parquet file; `head` names their source and licence."""
        rows = [("", word, count, self.usual.get(word, "")) for word, count in self.words.items()]
        rows += [(before, word, count, "") for (before, word), count in self.pairs.items()]
        rows.sort(key=lambda row: (row[0], -row[2], row[1]))
        columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        table = pa.table(columns).replace_schema_metadata(dict(head))
        pq.write_table(table, path, compression="zstd", compression_level=19)


def as_counted(word: str) -> str:
    """Return a word as it is counted: in lower case, with straight apostrophes."""
    return word.lower().replace("\u2019", "'")


def _usual(inside: Mapping[str, Counter[str]]) -> Iterator[tuple[str, str]]:
    """Yield words that always have a capital after another word, each with its usual form."""
    for word, forms in inside.items():
        form, count = forms.most_common(1)[0]
        if form != word and count >= max(USUAL_MIN, USUAL_SHARE * forms.total()):
            yield word, form


@lru_cache(maxsize=4)
def _packaged(path: Path) -> NeighbourCounts:
    words, pairs, usual = Counter[str](), Counter[tuple[str, str]](), dict[str, str]()
    if not path.exists():
        return NeighbourCounts(words, pairs, usual)
    try:
        for batch in bounded_batches(path, list(COLUMNS)):
            columns = (batch.column(name).to_pylist() for name in COLUMNS)
            for before, word, count, form in zip(*columns, strict=True):
                if before:
                    pairs[before, word] = count
                else:
                    words[word] = count
                if form:
                    usual[word] = form
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LexiconError(f"cannot read {path}: {one_line(error)}") from error
    return NeighbourCounts(words, pairs, usual)
