"""SPEC `heads:RUN/heads`: a frozen encoder and a head as one encoder; `#language` is the other."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.disentangling.heads import SIDES, load_heads
from noisegen.encoders.encoder import Encoder, Progress, Vectors
from noisegen.encoders.specs import open_encoder
from noisegen.errors import SourceError

PREFIX = "heads:"


class HeadEncoder:
    """The vectors of an encoder after a linear layer."""

    def __init__(
        self, name: str, frozen: Encoder, weight: npt.NDArray[np.float32],
        bias: npt.NDArray[np.float32],
    ) -> None:  # fmt: skip
        self.name, self.frozen = name, frozen
        self.width = len(weight)
        self._weight, self._bias = weight, bias

    @property
    def digest(self) -> str:
        """Names the encoder and the layer."""
        weights = sha256(self._weight.tobytes() + self._bias.tobytes()).hexdigest()
        return sha256(f"{self.frozen.digest} {weights}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width), not normalised."""
        made: Vectors = self.frozen.encode(texts, progress) @ self._weight.T + self._bias
        return made


def open_heads(spec: str) -> HeadEncoder:
    """Open FOLDER, FOLDER#meaning (the same) or FOLDER#language.

    Raises SourceError for a folder that has no heads, or whose encoder is no longer what they were
    trained on.
    """
    path, mark, side = spec.rpartition("#")
    folder, side = (path, side) if mark and side in SIDES else (spec, SIDES[0])
    heads, config = load_heads(Path(folder))
    if config.encoder.startswith(PREFIX):
        raise SourceError(f"{folder}: heads on heads are not known; train heads on an encoder")
    frozen = open_encoder(config.encoder)
    if (frozen.width, frozen.digest) != (config.width, config.digest):
        raise SourceError(
            f"{folder}: its heads were trained on another {config.encoder} (width {config.width}, "
            f"digest {config.digest[:8]}) than this (width {frozen.width}, digest "
            f"{frozen.digest[:8]}); train heads anew"
        )
    layer = getattr(heads, side)
    return HeadEncoder(f"{PREFIX}{spec}", frozen, layer.weight.numpy(), layer.bias.numpy())
