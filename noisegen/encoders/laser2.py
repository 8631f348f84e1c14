"""LASER2 from a user's own files, in plain torch: a teacher of 1,024 numbers.

Layout of the checkpoint, preparation of the text and pooling are those of the LASER repository
(`laser2.pt`, `laser2.spm`); nothing in the files is executed.
"""

import pickle
import re
import zipfile
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from noisegen.atomic import file_digest
from noisegen.encoders.encoder import Progress, Vectors
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.sentence_encoder import by_length
from noisegen.encoders.surrogates import whole
from noisegen.encoders.tokens import Padded
from noisegen.errors import MissingExtra, SourceError
from noisegen.preparing.laser import laser_text

PAD, END, UNKNOWN = 1, 2, 3  # whatever the dictionary of the file says, as LASER does it
LENGTH_MAX = 12_000  # pieces of a text: LASER's bound for a batch
_TEXTS = 8_192  # prepared and sorted together
_TOKENS = 16_384  # of one forward pass
_WEIGHT = re.compile(r"lstm\.weight_hh_l(\d+)(_reverse)?")


class Laser2Network(nn.Module):
    """Embeddings, a bidirectional LSTM, and the maximum over time; sizes are the file's."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        layers = len({found[1] for found in map(_WEIGHT.fullmatch, weights) if found})
        pieces, width = weights["embed_tokens.weight"].shape
        hidden = weights["lstm.weight_hh_l0"].shape[1]
        with torch.device("meta"):  # no memory until the file's own tensors take their places
            self.embed_tokens = nn.Embedding(pieces, width, PAD)
            self.lstm = nn.LSTM(
                width, hidden, layers, bidirectional="lstm.weight_hh_l0_reverse" in weights
            )
        self.load_state_dict(weights, assign=True)
        self.requires_grad_(False).float()
        self.width = hidden * (2 if self.lstm.bidirectional else 1)

    def forward(self, batch: Padded) -> Tensor:
        """Return shape (rows, width); rows come longest first."""
        lengths = batch.mask.sum(1).cpu()
        packed = pack_padded_sequence(self.embed_tokens(batch.ids), lengths, batch_first=True)
        states, _ = self.lstm(packed)
        padded, _ = pad_packed_sequence(states, batch_first=True, padding_value=-torch.inf)
        vectors: Tensor = padded.amax(1)
        return vectors


class Laser2(nn.Module):
    """The encoder of a folder, on the device it was moved to; its vectors are not normalised."""

    def __init__(
        self, name: str, network: Laser2Network, dictionary: dict[str, int], pieces: Any,
        files: tuple[Path, ...],
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = name
        self.network = network
        self._dictionary, self._pieces, self._files = dictionary, pieces, files

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return self.network.width

    @cached_property
    def digest(self) -> str:
        """Names the content of the files."""
        return sha256(" ".join(map(file_digest, self._files)).encode()).hexdigest()

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return the ids of the prepared texts, each with the end sign last."""
        prepared = [laser_text(whole(text)) for text in texts]
        return Ragged.of([self._ids(row) for row in self._pieces.encode(prepared, out_type=str)])

    def _ids(self, pieces: Sequence[str]) -> list[int]:
        get = self._dictionary.get
        return [*(get(piece, UNKNOWN) for piece in pieces[: LENGTH_MAX - 1]), END]

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width)."""
        out = np.zeros((len(texts), self.width), np.float32)
        device = next(self.network.parameters()).device
        with torch.inference_mode():
            for first in range(0, len(texts), _TEXTS):
                ids = self.tokenize(texts[first : first + _TEXTS])
                for rows in by_length(ids.lengths, _TOKENS):
                    batch = Padded.of(ids.take(rows), PAD, device)
                    out[first + rows] = self.network(batch).cpu().numpy()
                    if progress:
                        progress(len(rows))
        return out


def open_laser2(folder: str | Path) -> Laser2:
    """Open a folder with LASER2's checkpoint (*.pt) and SentencePiece model (*.spm).

    Raises SourceError for files that are missing or something else, MissingExtra without
    sentencepiece or sacremoses.
    """
    folder = Path(folder)
    checkpoint, model = _one(folder, "*.pt"), _one(folder, "*.spm")
    pieces = _sentence_pieces(model)
    laser_text("")  # a missing package is told before the long work
    network, dictionary = _read(checkpoint)
    return Laser2(f"laser2:{folder}", network, dictionary, pieces, (checkpoint, model)).eval()


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        count = "none" if not found else ", ".join(path.name for path in found[:3])
        raise SourceError(
            f"{folder} must hold one file {pattern}, found {count}; LASER2 is laser2.pt and "
            "laser2.spm"
        )
    return found[0]


def _sentence_pieces(path: Path) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise MissingExtra("sentencepiece", "laser") from None
    try:
        pieces = SentencePieceProcessor()
        pieces.LoadFromSerializedProto(path.read_bytes())
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{path} is no SentencePiece model; give LASER2's laser2.spm") from error
    return pieces


def _read(path: Path) -> tuple[Laser2Network, dict[str, int]]:
    """Return network and dictionary of a checkpoint; raises SourceError."""
    try:
        said = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise SourceError(
            f"{path} is no checkpoint of LASER2: it cannot be read as plain tensors "
            f"({type(error).__name__}); LASER3's transformers are not known here"
        ) from error
    reason = _unlike(said)
    if reason:
        raise SourceError(f"{path} is no checkpoint of LASER2: {reason}")
    dictionary: dict[str, int] = said["dictionary"] | {
        "<s>": 0, "<pad>": PAD, "</s>": END, "<unk>": UNKNOWN
    }  # fmt: skip
    try:
        network = Laser2Network(said["model"])
    except (RuntimeError, KeyError, ValueError) as error:
        raise SourceError(
            f"{path}: the weights do not make an LSTM: {str(error).splitlines()[-1].strip()}"
        ) from error
    if max(dictionary.values()) >= network.embed_tokens.num_embeddings:
        raise SourceError(f"{path}: the dictionary has more pieces than there are embeddings")
    return network, dictionary


def _unlike(said: Any) -> str:
    """Return in which way the content is unlike LASER2's; the empty string where it is not."""
    if isinstance(said, dict) and "cfg" in said:
        return "it is a transformer of LASER3 (`cfg`), and only LASER2's LSTM is known"
    missing = [key for key in ("params", "dictionary", "model") if not _is_dict(said, key)]
    if missing:
        return f"it has no dictionary {missing[0]!r}"
    if not all(isinstance(value, Tensor) for value in said["model"].values()):
        return "'model' holds other things than tensors"
    pieces = said["dictionary"]
    if not all(isinstance(key, str) and type(pieces[key]) is int for key in pieces):
        return "'dictionary' does not lead from pieces to numbers"
    return "" if min(pieces.values(), default=0) >= 0 else "'dictionary' has negative numbers"


def _is_dict(said: Any, key: str) -> bool:
    return isinstance(said, dict) and isinstance(said.get(key), dict)
