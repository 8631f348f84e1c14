"""Vectors that a contrastive objective pushes away: those of other texts, and of hard negatives.

A hard negative is a clean text with a number, a name or a statement altered, made by the generator
of `evaluation.negatives`: what a sentence is not, in nearly the same words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.atomic import atomic
from noisegen.encoders.encoder import Vectors
from noisegen.evaluation.negatives import hard_negatives
from noisegen.training.plan import generator
from noisegen.training.teacher_vectors import TeacherVectors
from noisegen.training.text_store import TextStore, write_texts

_TEXTS = 16_384  # clean texts whose hard negatives are made together; names come from among them
Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class HardTexts:
    """Hard negatives of clean text i are `texts[offsets[i]:offsets[i + 1]]`."""

    texts: TextStore
    offsets: npt.NDArray[np.int64]

    def rows(self, clean: Ints) -> Ints:
        """Return the numbers of all hard negatives of these clean texts."""
        spans = zip(self.offsets[clean], self.offsets[clean + 1], strict=True)
        return np.concatenate([np.arange(first, stop) for first, stop in spans])


@dataclass(frozen=True)
class Negatives:
    """`count` vectors of texts drawn anew for every batch, and those hard for its own texts."""

    vectors: TeacherVectors
    count: int
    seed: int
    hard: tuple[HardTexts, TeacherVectors] | None = None

    def take(self, clean: Ints, *place: int) -> Vectors:
        """Return shape (any number, width); `place` names the batch."""
        count = min(self.count, len(self.vectors))
        rows = generator(self.seed, *place, 2).integers(0, len(self.vectors), count)
        found = [self.vectors.take(np.sort(rows))]
        if self.hard is not None:
            texts, vectors = self.hard
            found.append(vectors.take(texts.rows(np.unique(clean))))
        return np.concatenate(found)


def write_hard_texts(folder: Path, clean: TextStore, most: int, seed: int, lang: str) -> HardTexts:
    """Make up to `most` hard negatives of each text and keep them in the folder.

    English has three kinds, a text's number says with which one begins; other languages have
    numbers alone. They are made by rules, without a parser. Raises OutputError.
    """
    counts: list[int] = []
    write_texts(folder, "hard", _altered(clean, most, seed, lang, counts))
    with atomic(folder / "hard.rows") as file:
        file.write(np.cumsum([0, *counts], dtype=np.int64).tobytes())
    return open_hard_texts(folder)


def open_hard_texts(folder: Path) -> HardTexts:
    """Open what `write_hard_texts` wrote."""
    return HardTexts(TextStore(folder, "hard"), np.memmap(folder / "hard.rows", np.int64, "r"))


def _altered(clean: TextStore, most: int, seed: int, lang: str, counts: list[int]) -> Iterator[str]:
    """Yield the hard negatives text by text, and note how many each has."""
    for first in range(0, len(clean), _TEXTS):
        texts = clean.take(np.arange(first, min(first + _TEXTS, len(clean)))).to_pylist()
        found = hard_negatives(texts, seed=seed, lang=lang, per_kind=most, parse=False)
        bounds = np.searchsorted(found.sources, np.arange(len(texts) + 1))
        for number in range(len(texts)):
            mine = found.texts[bounds[number] : bounds[number + 1]]
            turn = (first + number) % max(1, len(mine))
            chosen = [*mine[turn:], *mine[:turn]][:most]
            counts.append(len(chosen))
            yield from chosen
