"""LASER2 from a user's own files, in plain torch: a teacher of 1,024 numbers.

Checkpoint layout, text preparation and pooling are those of the LASER repository (`laser2.pt`,
`laser2.spm`); nothing in the files is executed.
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

from noisegen.encoders.encoder import Progress, Ragged, Vectors, replace_surrogates
from noisegen.encoders.tokens import Padded, by_length
from noisegen.errors import MissingExtra, SourceError
from noisegen.runs.files import file_digest
from noisegen.text.normalize import laser_text

PAD, END, UNKNOWN = 1, 2, 3  # as LASER does it, whatever the dictionary of the file says
LENGTH_MAX = 12_000  # pieces of a text: LASER's bound for a batch
_TEXTS = 8_192  # prepared and sorted together
_TOKENS = 16_384  # of one forward pass
_WEIGHT = re.compile(r"lstm\.weight_hh_l(\d+)(_reverse)?")


class Laser2Network(nn.Module):
    """Embeddings, a bidirectional LSTM, and the maximum over time; sizes are the file's."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        layers = len({match[1] for match in map(_WEIGHT.fullmatch, weights) if match})
        pieces, width = weights["embed_tokens.weight"].shape
        hidden = weights["lstm.weight_hh_l0"].shape[1]
        is_bidirectional = "lstm.weight_hh_l0_reverse" in weights
        with torch.device("meta"):  # no memory until the file's own tensors are assigned
            self.embed_tokens = nn.Embedding(pieces, width, PAD)
            self.lstm = nn.LSTM(width, hidden, layers, bidirectional=is_bidirectional)
        self.load_state_dict(weights, assign=True)
        self.requires_grad_(False).float()
        self.width = hidden * (2 if is_bidirectional else 1)

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
        """A hex digest of the content of the files."""
        return sha256(" ".join(map(file_digest, self._files)).encode()).hexdigest()

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return the ids of the prepared texts, each with the end token last."""
        prepared = [laser_text(replace_surrogates(text)) for text in texts]
        get, rows = self._dictionary.get, []
        for pieces in self._pieces.encode(prepared, out_type=str):
            rows.append([*(get(piece, UNKNOWN) for piece in pieces[: LENGTH_MAX - 1]), END])
        return Ragged.of(rows)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width)."""
        out = np.zeros((len(texts), self.width), np.float32)
        device = next(self.network.parameters()).device
        with torch.inference_mode():
            for start in range(0, len(texts), _TEXTS):
                ids = self.tokenize(texts[start : start + _TEXTS])
                for rows in by_length(ids.lengths, _TOKENS):
                    batch = Padded.of(ids.take(rows), PAD, device)
                    out[start + rows] = self.network(batch).cpu().numpy()
                    if progress:
                        progress(len(rows))
        return out


def open_laser2(folder: str | Path) -> Laser2:
    """Open a folder with LASER2's checkpoint (*.pt) and SentencePiece model (*.spm).

    Raises SourceError for files that are missing or something else, MissingExtra without
    sentencepiece or sacremoses.
    """
    folder = Path(folder)
    checkpoint, model = _only_file(folder, "*.pt"), _only_file(folder, "*.spm")
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise MissingExtra("sentencepiece", "laser") from None
    try:
        pieces = SentencePieceProcessor()
        pieces.LoadFromSerializedProto(model.read_bytes())
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{model} is no SentencePiece model; give LASER2's laser2.spm") from error
    laser_text("")  # report a missing package before the long work
    network, dictionary = _read_checkpoint(checkpoint)
    return Laser2(f"laser2:{folder}", network, dictionary, pieces, (checkpoint, model)).eval()


def _only_file(folder: Path, pattern: str) -> Path:
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        shown = "none" if not paths else ", ".join(path.name for path in paths[:3])
        raise SourceError(
            f"{folder} must hold one file {pattern}, found {shown}; LASER2 is laser2.pt and "
            "laser2.spm"
        )
    return paths[0]


def _read_checkpoint(path: Path) -> tuple[Laser2Network, dict[str, int]]:
    """Return network and dictionary of a checkpoint; raises SourceError."""
    try:
        content = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise SourceError(
            f"{path} is no checkpoint of LASER2: it cannot be read as plain tensors "
            f"({type(error).__name__}); LASER3's transformers are not known here"
        ) from error
    if reason := _reason_against(content):
        raise SourceError(f"{path} is no checkpoint of LASER2: {reason}")
    dictionary: dict[str, int] = content["dictionary"] | {
        "<s>": 0, "<pad>": PAD, "</s>": END, "<unk>": UNKNOWN
    }  # fmt: skip
    try:
        network = Laser2Network(content["model"])
    except (RuntimeError, KeyError, ValueError) as error:
        raise SourceError(
            f"{path}: the weights do not make an LSTM: {str(error).splitlines()[-1].strip()}"
        ) from error
    if max(dictionary.values()) >= network.embed_tokens.num_embeddings:
        raise SourceError(f"{path}: the dictionary has more pieces than there are embeddings")
    return network, dictionary


def _reason_against(content: Any) -> str:
    """Return why the content is not LASER2's; the empty string if it is."""
    checkpoint = content if isinstance(content, dict) else {}
    if "cfg" in checkpoint:
        return "it is a transformer of LASER3 (`cfg`), and only LASER2's LSTM is known"
    for key in ("params", "dictionary", "model"):
        if not isinstance(checkpoint.get(key), dict):
            return f"it has no dictionary {key!r}"
    if not all(isinstance(value, Tensor) for value in checkpoint["model"].values()):
        return "'model' holds other things than tensors"
    pieces = checkpoint["dictionary"]
    if not all(isinstance(key, str) and type(pieces[key]) is int for key in pieces):
        return "'dictionary' does not lead from pieces to numbers"
    return "" if min(pieces.values(), default=0) >= 0 else "'dictionary' has negative numbers"
