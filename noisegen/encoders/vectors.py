"""Vectors that somebody else computed: FILE.npy, and FILE.txt with their texts, a line a row."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.atomic import file_digest
from noisegen.encoders.encoder import Progress, Vectors
from noisegen.encoders.mapped import let_go
from noisegen.errors import SourceError

_KEY_BYTES = 16  # of a text's digest: no two texts will ever share one
_ROWS = 8_192  # copied at once
_SHOWN = 60  # characters of a text in a message
_BOM = b"\xef\xbb\xbf"

Keys = npt.NDArray[np.bytes_]


class StoredVectors:
    """Looks texts up by their content; in memory are 24 bytes a row, the rest stays on disk."""

    def __init__(self, path: Path, texts: Path, vectors: npt.NDArray[np.floating]) -> None:
        self.name = f"npy:{path}"
        self.width = int(vectors.shape[1])
        self._path, self._texts, self._vectors = path, texts, vectors
        keys = np.fromiter(map(_key, _lines(texts)), f"S{_KEY_BYTES}")
        if len(keys) != len(vectors):
            raise SourceError(
                f"{path} has {len(vectors):,} vectors, but {texts} has {len(keys):,} lines"
            )
        self._rows = np.argsort(keys, kind="stable")
        self._keys = keys[self._rows]

    @cached_property
    def digest(self) -> str:
        """Names the content of both files."""
        return sha256(f"{file_digest(self._path)} {file_digest(self._texts)}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width); raises SourceError for texts that have no vector.

        Of a text that has several the first counts.
        """
        rows = self._found(texts)
        out = np.empty((len(texts), self.width), np.float32)
        for first in range(0, len(texts), _ROWS):
            some = rows[first : first + _ROWS]
            out[first : first + len(some)] = self._vectors[some]
            let_go(self._vectors)
            if progress:
                progress(len(some))
        if not np.isfinite(out).all():
            wrong = rows[~np.isfinite(out).all(1)][0]
            raise SourceError(f"{self._path}: row {wrong + 1:,} is not finite; compute it anew")
        return out

    def _found(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        wanted = np.fromiter(map(_key, map(_encoded, texts)), f"S{_KEY_BYTES}", len(texts))
        at = np.searchsorted(self._keys, wanted)
        missing = np.ones(len(texts), np.bool_)
        inside = at < len(self._keys)
        missing[inside] = self._keys[at[inside]] != wanted[inside]
        if missing.any():
            shown = texts[int(missing.argmax())]
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
            raise SourceError(
                f"{self._texts} lacks {missing.sum():,} of {len(texts):,} texts, the first is "
                f"{shown!r}; compute their vectors too"
            )
        return self._rows[at]


def _key(text: bytes) -> bytes:
    return blake2b(text, digest_size=_KEY_BYTES).digest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines; LF or CRLF ends one, as in every text file that noisegen reads."""
    with path.open("rb") as file:
        start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(start)
        for line in file:
            yield line[: -2 if line.endswith(b"\r\n") else -1] if line.endswith(b"\n") else line


def open_vectors(file: str | Path) -> StoredVectors:
    """Open FILE.npy, float16 or float32 of shape (texts, width), with FILE.txt beside it.

    Raises SourceError if one of them is missing, damaged or does not belong to the other.
    """
    path = Path(file)
    texts = path.with_suffix(".txt")
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        texts.stat()
    except (OSError, ValueError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(
            f"cannot open {path} with its texts {texts.name}: {reason}; needed are an array of "
            "numpy and a text a line"
        ) from error
    kind = getattr(vectors, "dtype", None)
    if kind not in (np.float16, np.float32) or vectors.ndim != 2 or not vectors.shape[1]:
        found = f"{kind} of shape {vectors.shape}" if kind else "an archive"
        raise SourceError(f"{path} holds {found}; needed is float16 or float32, a row a text")
    return StoredVectors(path, texts, vectors)
