"""Batches of pairs as frozen vectors: gathered in chunks from the cache, shuffled over all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisegen.disentangling.labelled_pairs import LabelledPairs
from noisegen.disentangling.objectives import PairBatch
from noisegen.encoders.encoder import Vectors
from noisegen.training.plan import Rows, generator
from noisegen.training.teacher_vectors import TeacherVectors

CHUNK_BATCHES = 64  # whose vectors are in memory together
_ROWS = 8_192  # that are measured at a time
_SPLIT = 2**32  # the draw that parts training and validation, apart from all epochs


@dataclass(frozen=True)
class Standard:
    """What makes vectors of mean 0 and, over all entries, mean square 1: (e - centre) * scale.

    Where all vectors share a direction, as most encoders' do, or are short beside the start of a
    bias, language vectors would rather become one constant than tell languages apart.
    """

    centre: Vectors
    scale: float

    @classmethod
    def of(cls, vectors: TeacherVectors) -> "Standard":
        """Measure all of these vectors."""
        total, squares = np.zeros(vectors.width), 0.0
        for first in range(0, len(vectors), _ROWS):
            rows = np.arange(first, min(first + _ROWS, len(vectors)))
            some = vectors.take(rows).astype(np.float64)
            total += some.sum(0)
            squares += float(np.square(some).sum())
        centre = total / len(vectors)
        spread = squares / len(vectors) - float(centre @ centre)
        scale = (vectors.width / spread) ** 0.5 if spread > 0 else 1.0
        return cls(centre.astype(np.float32), scale)

    @classmethod
    def none(cls, width: int) -> "Standard":
        """Leave vectors as they are."""
        return cls(np.zeros(width, np.float32), 1.0)


@dataclass(frozen=True)
class PairVectors:
    """Frozen vectors of pairs; `vectors` has a row for each distinct text."""

    pairs: LabelledPairs
    vectors: TeacherVectors
    device: torch.device
    standard: Standard

    def epoch(self, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[PairBatch]:
        """Yield full batches of these pairs in an order of this epoch; what is left over rests.

        Fewer pairs than `size` are one batch.
        """
        order = generator(seed, epoch).permutation(rows)
        size = min(size, len(order))
        yield from self.batches(order[: len(order) // size * size], size)

    def batches(self, rows: Rows, size: int) -> Iterator[PairBatch]:
        """Yield all of these pairs in this order; the last batch may be smaller."""
        for first in range(0, len(rows), size * CHUNK_BATCHES):
            chunk = self._chunk(rows[first : first + size * CHUNK_BATCHES])
            for at in range(0, len(chunk[0]), size):
                yield PairBatch(*(part[at : at + size] for part in chunk))

    def _chunk(self, rows: Rows) -> list[Tensor]:
        pairs = self.pairs
        vectors = [self._standard(side[rows]) for side in (pairs.source, pairs.target)]
        labels = [side[rows].astype(np.int64) for side in (pairs.source_label, pairs.target_label)]
        return [torch.from_numpy(part).to(self.device) for part in (*vectors, *labels)]

    def _standard(self, rows: npt.NDArray[np.int32]) -> Vectors:
        made: Vectors = self.vectors.take(rows)
        made -= self.standard.centre
        made *= np.float32(self.standard.scale)
        return made


def parted(pairs: int, held_out: int, seed: int) -> tuple[Rows, Rows]:
    """Return the numbers of pairs to train on and to validate by: a tenth at most, one at least."""
    order: npt.NDArray[np.int64] = generator(seed, _SPLIT).permutation(pairs)
    kept = max(1, min(held_out, pairs // 10))
    return order[kept:], order[:kept]
