"""The words of a bitext as numbers, and the cells of its sentence pairs: every word with every."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from noisegen.draws import I64
from noisegen.text import Bool, Texts, ordinals
from noisegen.words import word_hashes

I32 = npt.NDArray[np.int32]
F32 = npt.NDArray[np.float32]
BLOCK = 1 << 20  # cells made at once
WITHIN = 1_000_000  # how much more a spelling counts that is not the first of its sentence


@dataclass(frozen=True)
class Side:
    """The words of one language: `words` are numbers into `spellings`, row after row.

    Words that differ only in case are one; its spelling is the most frequent one within sentences.
    `counts` has how often each occurs.
    """

    words: I64
    rows: I64
    spellings: list[str]
    counts: I64

    @classmethod
    def of(cls, texts: Sequence[str], count_min: int) -> "Side":
        """Return the words that have a letter and occur at least so often."""
        packed = Texts.from_strings(list(texts))
        tokens = packed.tokens
        hashes = word_hashes(packed.values, tokens.starts, tokens.stops)
        _, first, surface = np.unique(hashes, return_index=True, return_inverse=True)
        edges = zip(tokens.starts[first].tolist(), tokens.stops[first].tolist(), strict=True)
        surfaces = [packed.values[start:stop].tobytes().decode() for start, stop in edges]
        weights = np.bincount(surface, np.where(ordinals(tokens.rows) > 0, WITHIN, 1))
        spelled, number_of = _merged(surfaces, weights.astype(np.int64))
        words = number_of[surface]
        words[(words >= 0) & (hashes == 0)] = -1  # over the longest
        return cls(words, tokens.rows, spelled, np.zeros(0, np.int64))._frequent(count_min)

    def _frequent(self, count_min: int) -> "Side":
        known = self.words >= 0
        counts = np.bincount(self.words[known], minlength=len(self.spellings))
        kept = np.flatnonzero(counts >= count_min)
        numbers = np.full(len(self.spellings) + 1, -1)
        numbers[kept] = np.arange(len(kept))
        words = numbers[self.words]
        here = words >= 0
        spellings = [self.spellings[number] for number in kept.tolist()]
        return Side(words[here], self.rows[here], spellings, counts[kept])

    def lengths(self, pairs: int) -> I64:
        """Return how many words each row has."""
        return np.bincount(self.rows, minlength=pairs)

    def of_rows(self, kept: Bool) -> "Side":
        """Return the words of some rows only, numbered anew."""
        here = kept[self.rows]
        rows = (np.cumsum(kept) - 1)[self.rows[here]]
        return Side(self.words[here], rows, self.spellings, self.counts)


def _merged(surfaces: list[str], weights: I64) -> tuple[list[str], I64]:
    """Return a spelling for each word, and the word of each surface; -1: it has no letter."""
    found: dict[str, int] = {}
    best: list[tuple[int, str]] = []
    numbers = np.full(len(surfaces), -1)
    for place, (surface, weight) in enumerate(zip(surfaces, weights.tolist(), strict=True)):
        if any(character.isalpha() for character in surface):
            number = numbers[place] = found.setdefault(surface.lower(), len(best))
            if number == len(best):
                best.append((0, ""))
            best[number] = max(best[number], (weight, surface))
    return [surface for _, surface in best], numbers


@dataclass(frozen=True)
class Cells:
    """Every pair of a word with a word of its translation.

    `firsts` and `seconds` number the two words among all of their side, `keys` the pair of kinds of
    words among `pairs`, which has first * (kinds of second) + second, ascending. `distances` are
    between relative places in the sentences, 0 to 1. Cells of a sentence pair are neighbours.
    """

    firsts: I32
    seconds: I32
    keys: I32
    pairs: I64
    distances: F32

    @classmethod
    def of(cls, first: Side, second: Side, rows: int) -> "Cells":
        """Return the cells of as many sentence pairs."""
        widths, heights = first.lengths(rows), second.lengths(rows)
        ends = np.cumsum(widths * heights)
        total = int(ends[-1])
        edges = np.searchsorted(ends, np.arange(BLOCK, total + BLOCK, BLOCK))
        stops = np.unique(np.append(edges[(edges > 0) & (edges < rows)], rows)).tolist()
        firsts, seconds = np.empty(total, np.int32), np.empty(total, np.int32)
        distances, met = np.empty(total, np.float32), np.empty(total, np.int64)
        for start, stop in pairwise([0, *stops]):
            here = slice(int(ends[start - 1]) if start else 0, int(ends[stop - 1]))
            block = _block(first, second, widths, heights, start, stop)
            firsts[here], seconds[here], distances[here], met[here] = block
        pairs, keys = np.unique(met, return_inverse=True)
        return cls(firsts, seconds, keys.astype(np.int32), pairs, distances)

    def __len__(self) -> int:
        return len(self.keys)


def _block(
    first: Side, second: Side, widths: I64, heights: I64, start: int, stop: int
) -> tuple[I32, I32, F32, I64]:
    """Return numbers of both words, distances and keys of the cells of some neighbouring pairs."""
    widths_here, heights_here = widths[start:stop], heights[start:stop]
    sizes = widths_here * heights_here
    row = np.repeat(np.arange(stop - start), sizes)
    width, height = widths_here[row], heights_here[row]
    within = np.arange(len(row)) - (np.cumsum(sizes) - sizes)[row]
    column, line = within // height, within % height
    firsts = (np.cumsum(widths_here) - widths_here)[row] + column + widths[:start].sum()
    seconds = (np.cumsum(heights_here) - heights_here)[row] + line + heights[:start].sum()
    distances = np.abs((column + 0.5) / width - (line + 0.5) / height).astype(np.float32)
    met = first.words[firsts] * len(second.spellings) + second.words[seconds]
    return firsts.astype(np.int32), seconds.astype(np.int32), distances, met
