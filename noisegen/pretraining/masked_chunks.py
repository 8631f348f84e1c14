"""Chunks of an epoch with masks, and their updates: true batches, cut for the network."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from noisegen.pretraining.masking import Masked, Masker
from noisegen.training.chunks import Chunks, Position, made_ahead
from noisegen.training.pair_data import Rows
from noisegen.training.plan import chunks_of, generator, plan


@dataclass(frozen=True)
class MaskedChunk:
    """Row i of `texts` is the noisy side of pair i; row `pairs` + i is its clean side.

    `masks` counts those of every row, `owners` numbers the clean text that it belongs to. A step
    has whole pairs; its batches are rows of like length, of either side.
    """

    texts: Masked
    masks: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    pairs: int
    steps: list[list[Rows]]


@dataclass(frozen=True)
class MaskedChunks:
    """The chunks of all epochs; `batch_pairs` of an update, `chunks.world` processes."""

    chunks: Chunks
    masker: Masker
    batch_pairs: int

    def make(self, epoch: int, number: int) -> MaskedChunk | None:
        """Return a chunk; None where the epoch has no more."""
        data, seed = self.chunks.data, self.chunks.seed
        chunks = chunks_of(data.training, seed, epoch)
        if number >= len(chunks):
            return None
        pairs = chunks[number]
        texts = self.texts(pairs, epoch)
        order = generator(seed, epoch, number, 3).permutation(len(pairs))
        parts = np.array_split(order, -(-len(pairs) // self.batch_pairs))
        steps = [self._batches(texts, part, len(pairs), epoch, number) for part in parts]
        owners = np.tile(data.owner[pairs].astype(np.int64), 2)
        return MaskedChunk(texts, texts.counts(), owners, len(pairs), steps)

    def texts(self, pairs: Rows, epoch: int) -> Masked:
        """Return the noisy sides of these pairs, then their clean sides, masked."""
        noisy, clean, _ = self.chunks.tokens(pairs, epoch)
        return Masked.joined(
            self.masker.masked(noisy, pairs, "noisy", epoch),
            self.masker.masked(clean, pairs, "clean", epoch),
        )

    def _batches(
        self, texts: Masked, part: Rows, pairs: int, epoch: int, number: int
    ) -> list[Rows]:
        """Cut the texts of these pairs into batches; every process has as many."""
        rows, world = np.concatenate([part, part + pairs]), self.chunks.world
        lengths = texts.ids.lengths[rows][:, None]
        dealt = plan(lengths, self.chunks.budget, self.chunks.seed, epoch, number, world)
        return [rows[batch] for turn in dealt for batch in turn]

    def from_position(self, start: Position) -> Iterator[tuple[Position, MaskedChunk]]:
        """Yield chunks without end, with where they are; the next one is made meanwhile."""
        return made_ahead(self.make, start)
