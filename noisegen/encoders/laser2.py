"""The encoder LASER2 from a user's own files: a teacher with vectors of 1,024 numbers.

The layout of the checkpoint, the preparation of texts and the pooling follow the LASER repository
(`laser2.pt`, `laser2.spm`). Nothing in the files is executed; the network is plain torch.
"""

import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from noisegen.encoders.encoder import Progress, Ragged, Vectors, digest_of, replace_surrogates
from noisegen.encoders.stored import check_sizes, load_checkpoint, reading
from noisegen.encoders.tokens import Padded, by_length
from noisegen.errors import SourceError, naming_extras
from noisegen.runs.atomic import file_digest
from noisegen.text.normalize import laser_text

START, PAD, END, UNKNOWN = range(4)  # ids of the special symbols in all LASER dictionaries
SPECIAL = {"<s>": START, "<pad>": PAD, "</s>": END, "<unk>": UNKNOWN}
LENGTH_MAX = 12_000  # maximum pieces per text; LASER has the same maximum per batch
_TEXTS = 8_192  # texts tokenised and sorted by length at once
_WEIGHT = re.compile(r"lstm\.weight_hh_l(\d+)(_reverse)?")


class Checkpoint(msgspec.Struct):
    """The content of LASER2's checkpoint; `dictionary` maps pieces of words to their ids."""

    params: dict[Any, Any]
    dictionary: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    model: dict[str, Tensor]


class LaserEncoder(nn.Module):
    """Base class of encoders opened from a user's LASER files.

    They are not trained, their vectors are not normalised, and they run on the device to which they
    were moved. `tokens` is the maximum number of tokens per forward pass.
    """

    preparation = "laser"  # key in PREPARATIONS: how this teacher and its students prepare texts
    pad_id = PAD
    width: int
    tokens: int

    def __init__(self, name: str, files: tuple[Path, ...]) -> None:
        super().__init__()
        self.name, self._files = name, files

    @cached_property
    def digest(self) -> str:
        """A hex digest of the content of the encoder's files."""
        return digest_of(*map(file_digest, self._files))

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Prepare the texts as LASER does, and return one row of token ids per text."""

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width)."""
        out = np.zeros((len(texts), self.width), np.float32)
        device = next(self.parameters()).device
        with torch.inference_mode():
            for start in range(0, len(texts), _TEXTS):
                ids = self.tokenize(texts[start : start + _TEXTS])
                for rows in by_length(ids.lengths, self.tokens):
                    batch = Padded.of(ids.take(rows), self.pad_id, device)
                    out[start + rows] = self(batch).cpu().numpy()
                    if progress:
                        progress(len(rows))
        return out


class Laser2(LaserEncoder):
    """LASER2's network: embeddings, a bidirectional LSTM, and the maximum of its states.

    The checkpoint gives the sizes.
    """

    tokens = 16_384  # maximum tokens per forward pass

    def __init__(
        self, name: str, checkpoint: Checkpoint, pieces: Any, files: tuple[Path, ...]
    ) -> None:
        super().__init__(name, files)
        weights = checkpoint.model
        layers = len({match[1] for match in map(_WEIGHT.fullmatch, weights) if match})
        count, width = weights["embed_tokens.weight"].shape
        hidden = weights["lstm.weight_hh_l0"].shape[1]
        is_bidirectional = "lstm.weight_hh_l0_reverse" in weights
        with torch.device("meta"):  # no memory: `load_state_dict` assigns the file's tensors
            self.embed_tokens = nn.Embedding(count, width, PAD)
            self.lstm = nn.LSTM(width, hidden, layers, bidirectional=is_bidirectional)
        self.load_state_dict(weights, assign=True)
        self.requires_grad_(False).float()
        self.width = hidden * (2 if is_bidirectional else 1)
        self._pieces = pieces
        self._dictionary = checkpoint.dictionary | SPECIAL
        if max(self._dictionary.values()) >= count:
            raise ValueError("the dictionary has more pieces than there are embeddings")

    def forward(self, batch: Padded) -> Tensor:
        """Return one vector per row, shape (rows, width); a batch has its longest rows first."""
        lengths = batch.mask.sum(1).cpu()
        packed = pack_padded_sequence(self.embed_tokens(batch.ids), lengths, batch_first=True)
        states, _ = self.lstm(packed)
        padded, _ = pad_packed_sequence(states, batch_first=True, padding_value=-torch.inf)
        vectors: Tensor = padded.amax(1)
        return vectors

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Prepare the texts as LASER does, and return a row of piece ids and END per text."""
        prepared = [laser_text(replace_surrogates(text)) for text in texts]
        get, rows = self._dictionary.get, []
        for pieces in self._pieces.encode(prepared, out_type=str):
            rows.append([*(get(piece, UNKNOWN) for piece in pieces[: LENGTH_MAX - 1]), END])
        return Ragged.of(rows)


def open_laser2(folder: str | Path) -> Laser2:
    """Open a folder with LASER2's checkpoint (*.pt) and SentencePiece model (*.spm).

    Raises SourceError if a file is missing or not LASER2's, MissingExtra without sentencepiece or
    sacremoses.
    """
    folder = Path(folder)
    needed = "LASER2 is laser2.pt and laser2.spm"
    path, model = only_file(folder, "*.pt", needed), only_file(folder, "*.spm", needed)
    pieces = open_pieces(model)
    laser_text("")  # reports a missing sacremoses before the slow reading of the checkpoint
    checkpoint = _read_checkpoint(path)
    errors = RuntimeError, LookupError, ValueError, TypeError
    with reading(path, *errors, hint="; it is no LSTM like LASER2's"):
        return Laser2(f"laser2:{folder}", checkpoint, pieces, (path, model)).eval()


def open_pieces(model: Path) -> Any:
    """Open a SentencePiece model; raises SourceError, MissingExtra without sentencepiece."""
    with naming_extras("sentencepiece"):
        from sentencepiece import SentencePieceProcessor
    pieces = SentencePieceProcessor()
    with reading(
        model, OSError, RuntimeError, hint="; it is no SentencePiece model: give LASER2's"
    ):
        pieces.LoadFromSerializedProto(model.read_bytes())
    return pieces


def only_file(folder: Path, pattern: str, needed: str) -> Path:
    """Return the one file in a folder that matches `pattern`.

    Raises SourceError if no file or several files match. The message ends with `needed`, a list of
    the files that the folder must have.
    """
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        shown = "none" if not paths else ", ".join(path.name for path in paths[:3])
        raise SourceError(f"{folder} must hold one file {pattern}, found {shown}; {needed}")
    return paths[0]


def _read_checkpoint(path: Path) -> Checkpoint:
    """Read LASER2's checkpoint; raises SourceError for other files."""
    content = load_checkpoint(path, mmap=True, inert=True)
    if isinstance(content, dict) and "cfg" in content:
        raise SourceError(f"{path} is a transformer, as RoLASER's: give rolaser:{path.parent}")
    try:
        checkpoint = msgspec.convert(content, Checkpoint)
    except msgspec.ValidationError as error:
        raise SourceError(f"{path} is not a checkpoint of LASER2's LSTM: {error}") from error
    check_sizes(checkpoint.model, path)
    return checkpoint
