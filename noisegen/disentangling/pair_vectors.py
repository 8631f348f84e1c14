"""Batches of pairs as frozen vectors: gathered in chunks from the cache, shuffled over all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisegen.disentangling.labelled_pairs import LabelledPairs
from noisegen.disentangling.objectives import PairBatch
from noisegen.training.plan import Rows, generator
from noisegen.training.teacher_vectors import TeacherVectors

CHUNK_BATCHES = 64  # whose vectors are in memory together
_SPLIT = 2**32  # the draw that parts training and validation, apart from all epochs


@dataclass(frozen=True)
class PairVectors:
    """Frozen vectors of pairs; `vectors` has a row for each distinct text."""

    pairs: LabelledPairs
    vectors: TeacherVectors
    device: torch.device

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
        vectors = [self.vectors.take(side[rows]) for side in (pairs.source, pairs.target)]
        labels = [side[rows].astype(np.int64) for side in (pairs.source_label, pairs.target_label)]
        return [torch.from_numpy(part).to(self.device) for part in (*vectors, *labels)]


def parted(pairs: int, held_out: int, seed: int) -> tuple[Rows, Rows]:
    """Return the numbers of pairs to train on and to validate by: a tenth at most, one at least."""
    order: npt.NDArray[np.int64] = generator(seed, _SPLIT).permutation(pairs)
    kept = max(1, min(held_out, pairs // 10))
    return order[kept:], order[:kept]
