"""Vectors of texts, each encoded once."""

from collections.abc import Iterable, Sequence

import numpy as np

from noisegen.encoders.encoder import Encoder, Progress, Vectors

KEPT_BYTES = 1 << 30  # of vectors; when there are more, all are forgotten and made again as needed


class VectorStore:
    """Gives the vectors of texts by one encoder, and remembers them."""

    def __init__(self, encoder: Encoder, progress: Progress | None = None) -> None:
        self.encoder = encoder
        self._progress = progress
        self._places: dict[str, int] = {}
        self._blocks: list[Vectors] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return shape (texts, width)."""
        self.add(texts)
        return self._joined()[[self._places[text] for text in texts]]

    def add(self, texts: Iterable[str]) -> None:
        """Encode those texts that are new, all at once."""
        wanted = list(dict.fromkeys(texts))
        new = [text for text in wanted if text not in self._places]
        if (len(self._places) + len(new)) * self.encoder.width * 4 > KEPT_BYTES:
            self._places, self._blocks, new = {}, [], wanted
        if new:
            self._blocks.append(self.encoder.encode(new, self._progress))
            start = len(self._places)
            self._places.update(zip(new, range(start, start + len(new)), strict=True))

    def _joined(self) -> Vectors:
        if len(self._blocks) != 1:
            empty = np.zeros((0, self.encoder.width), np.float32)
            self._blocks = [np.concatenate([empty, *self._blocks])]
        return self._blocks[0]
