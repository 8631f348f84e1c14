"""What every encoder offers, and what the parts of a trainable one are."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from noisegen.encoders.ragged import Ragged

Vectors = npt.NDArray[np.float32]
LENGTH_MAX = 512  # tokens of a text, where a model does not say fewer
Progress = Callable[[int], None]  # is told how many texts were done since the last call


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors of `width` numbers; the same text gives the same vector.

    `name` is what people read, mostly the SPEC; vectors are cached under `digest`.
    """

    name: str

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def digest(self) -> str:
        """Names all that decides a vector, in hex."""
        ...

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width), not normalised unless the encoder itself does that."""
        ...


class Tokenizer(Protocol):
    """Cuts texts into ids of the encoder's vocabulary, special tokens included."""

    pad_id: int
    max_length: int

    @property
    def digest(self) -> str:
        """Names vocabulary, rules and the length where texts are cut."""
        ...

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of ids a text, cut to `max_length`; an empty text has its special ids."""
        ...

    def save(self, folder: Path) -> None:
        """Write the files from which the folder's encoder is opened again."""
        ...
