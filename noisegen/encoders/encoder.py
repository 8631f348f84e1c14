"""Protocols of encoders and tokenizers, the opening of encoders, and the choice of a device.

A SPEC is a string that names an encoder: a registered name (`minilm`), KIND:REST (`hf:NAME`) or a
folder. Names and kinds are entry points, so other packages can add encoders.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError, did_you_mean
from noisegen.runs.progress import silent

if TYPE_CHECKING:
    import torch

Ints = npt.NDArray[np.integer]
Vectors = npt.NDArray[np.float32]
_DEVICE = re.compile(r"auto|cpu|cuda(?::\d+)?")  # names of devices that users may give
_TENSOR_CORES = (7, 0)  # first compute capability whose GPUs multiply fast in fp16
PRECISIONS = {"bf16": "bfloat16", "fp16": "float16", "fp32": ""}  # setting -> torch's 16-bit type
LENGTH_MAX = 512  # maximum tokens per text; a model may allow fewer
Progress = Callable[[int], None]  # is called with the number of texts encoded since its last call


@dataclass(frozen=True)
class Ragged:
    """Rows of token ids. Rows differ in length, so two flat arrays hold them.

    Row i is `values[offsets[i]:offsets[i + 1]]`; `values` are int32, `offsets` int64.
    """

    values: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Ragged":
        """Make a Ragged from rows given as lists of token ids."""
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        values = (value for row in rows for value in row)
        flat = np.fromiter(values, np.int32, int(lengths.sum()))
        return cls(flat, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def joined(cls, parts: Iterable["Ragged"]) -> "Ragged":
        """Concatenate several Ragged objects: the rows of the first, then the rows of the next."""
        parts = list(parts)
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)])
        values = np.concatenate([np.zeros(0, np.int32), *(part.values for part in parts)])
        return cls(values, np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> npt.NDArray[np.int32]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of token ids in each row."""
        return np.diff(self.offsets)

    def take(self, rows: Ints) -> "Ragged":
        """Return the rows with the indices `rows`: row i of the result is row `rows[i]`."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        shift = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        return Ragged(self.values[np.arange(offsets[-1]) + shift], offsets)

    def padded(self, fill: int) -> npt.NDArray[np.int64]:
        """Return the ids as an array (rows, longest row); shorter rows are padded with `fill`."""
        out = np.full((len(self), max(self.lengths, default=0)), fill, np.int64)
        out[np.arange(out.shape[1]) < self.lengths[:, None]] = self.values
        return out


@runtime_checkable
class Encoder(Protocol):
    """An encoder: turns each text into a vector of `width` numbers, the same at every call.

    `name` is shown to users; it is usually the SPEC. Caches of vectors use `digest` as the key.
    """

    name: str

    @property
    def width(self) -> int:
        """The number of dimensions of a text's vector."""

    @property
    def digest(self) -> str:
        """A hex digest of all that the vectors depend on, such as weights and tokenizer."""

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width); most encoders do not normalise them.

        `progress` is called after each batch, with the number of texts in the batch.
        """


class Tokenizer(Protocol):
    """A tokenizer: turns each text into a row of token ids, special tokens included."""

    @property
    def pad_id(self) -> int:
        """The token id that pads shorter rows to the length of the longest row in a batch."""

    @property
    def max_length(self) -> int:
        """The maximum number of tokens per text, special tokens included; longer texts are cut."""

    @property
    def digest(self) -> str:
        """A hex digest of the vocabulary, the rules of splitting, and `max_length`."""

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of token ids per text, cut to `max_length`.

        The row of an empty text has the ids of special tokens.
        """

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files into the folder of a model."""


def digest_of(*parts: object) -> str:
    """Return the SHA-256 hex digest of values, converted to strings and joined by spaces."""
    return sha256(" ".join(map(str, parts)).encode()).hexdigest()


def replace_surrogates(text: str) -> str:
    """Return the text with `?` for each lone surrogate, which UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# Groups of entry points: functions that open a registered name, functions that open KIND:REST.
# A function of the first group has no argument, a function of the second group gets REST.
ENTRY_POINTS, KINDS = "noisegen.encoders", "noisegen.encoder_kinds"


def open_encoder(spec: str) -> Encoder:
    """Open the encoder that a SPEC names, on the CPU.

    A SPEC is a registered name, KIND:REST or a folder. Raises UsageError for an unknown SPEC,
    SourceError for a model that cannot be opened, MissingExtra if a package that the model needs is
    not installed.
    """
    kind, colon, rest = spec.partition(":")
    names, kinds = entry_points(group=ENTRY_POINTS), entry_points(group=KINDS)
    if spec in names.names:
        return cast(Encoder, names[spec].load()())
    if colon and kind in kinds.names:
        if not rest:
            raise UsageError(f"{spec!r} has nothing after {kind}:")
        return cast(Encoder, kinds[kind].load()(rest))
    if names_model(spec):
        return cast(Encoder, kinds["folder"].load()(spec))
    known = [*sorted(names.names), *(f"{kind}:..." for kind in sorted(kinds.names))]
    near = did_you_mean(spec, names.names)
    raise UsageError(f"no model {spec!r}: give a folder, or one of {', '.join(known)}{near}")


def names_model(spec: str) -> bool:
    """Return whether a SPEC is a registered name, begins with a known KIND:, or is a folder."""
    kind, colon, _ = spec.partition(":")
    if colon and kind in entry_points(group=KINDS).names:
        return True
    is_folder = bool(spec) and Path(spec).is_dir()  # Path("") is the current folder
    return is_folder or spec in entry_points(group=ENTRY_POINTS).names


def find_device(name: str, local_rank: int = 0, world: int = 1) -> "torch.device":
    """Return the torch device named `auto`, `cpu`, `cuda` or `cuda:NUMBER`.

    `local_rank` is the index of this process on its machine. It is also the index of its GPU,
    unless the name has a NUMBER. `world` is the number of processes in a distributed run. Raises
    UsageError for an unknown name, a GPU that is missing, or `cuda:NUMBER` for several processes.
    On a GPU, products of float32 matrices are then computed in TF32.
    """
    import torch

    kind, colon, number = name.partition(":")
    if not _DEVICE.fullmatch(name):
        raise UsageError(f"device {name!r}: give cpu, cuda, cuda:1 or auto")
    if kind == "cpu" or (kind == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if colon and world > 1:
        raise UsageError(
            f"device {name!r} is a single one for {world} processes: give --device cuda"
        )
    if not torch.cuda.is_available():
        raise UsageError(f"device {name!r}: torch finds no CUDA device; give --device cpu")
    index, count = int(number or local_rank), torch.cuda.device_count()
    if index >= count:
        raise UsageError(f"device 'cuda:{index}': only {count} found, numbered from 0")
    torch.set_float32_matmul_precision("high")
    return torch.device(f"cuda:{index}")


def half_precision(precision: str, device: "torch.device") -> "torch.dtype | None":
    """Return the 16-bit type in which a network computes on a device; None for float32.

    `precision` is a key of PRECISIONS, or auto: bf16 if the device supports it, else fp16 on GPUs
    with tensor cores (V100, T4).
    """
    import torch

    if precision != "auto":
        name = PRECISIONS[precision]
        return getattr(torch, name) if name else None
    if device.type != "cuda":
        return torch.bfloat16 if cpu_has_bf16() else None
    if torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float16 if torch.cuda.get_device_capability(device) >= _TENSOR_CORES else None


def precision_name(half: "torch.dtype | None") -> str:
    """Return the key of PRECISIONS for a 16-bit type; fp32 for None."""
    types = {f"torch.{name}": key for key, name in PRECISIONS.items()}
    return types.get(str(half), "fp32")


def autocast(half: "torch.dtype | None", device: "torch.device") -> AbstractContextManager[Any]:
    """Return a context in which networks on a device compute in the 16-bit type `half`, if any.

    Each product casts its weights anew. torch keeps 16-bit copies until the outermost block of a
    thread ends, for all threads in one place: inside a block of the caller an update would not be
    seen, and a block that ends in another thread would change the rounding of this one.
    """
    import torch

    return torch.autocast(device.type, half, cache_enabled=False) if half else nullcontext()


def move(encoder: Encoder, device: "torch.device", tell: Callable[[str], None] = silent) -> None:
    """Move an encoder to the device on which it shall compute.

    An encoder without weights of torch, such as `use`, stays on the CPU: then `tell` gets a line
    that says so.
    """
    import torch

    if isinstance(encoder, torch.nn.Module) and any(True for _ in encoder.parameters()):
        encoder.to(device)
    elif device.type != "cpu":
        tell(f"{encoder.name} stays on the CPU: it has no weights of torch")


def cpu_has_bf16() -> bool:
    """Return whether the processor multiplies in bf16; raises ImportError without torch."""
    import torch

    units = torch.cpu.get_capabilities()
    return bool(units.get("avx512_bf16") or units.get("amx_bf16"))
