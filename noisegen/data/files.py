"""Bytes of input files: open local files and URLs, count the bytes read, and report errors.

fsspec opens the URLs, such as s3://bucket/news.txt.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import pyarrow as pa

from noisegen.errors import NoisegenError, SourceError, check_extras, naming_extras

SCAN = 4 << 20  # bytes of text read at once; they fit into the processor's cache
SHARDS = "part-*.parquet"  # file names of the shards that augment or prepare writes
_AWS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; "
    "for a public bucket, FSSPEC_S3_ANON=true"
)
_GOOGLE = "run gcloud auth application-default login; for a public bucket, FSSPEC_GS_TOKEN=anon"
_AZURE = "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
CREDENTIALS = {  # how to sign in to a store (for error messages), by URL scheme
    "s3": _AWS,
    "s3a": _AWS,
    "gs": _GOOGLE,
    "gcs": _GOOGLE,
    "az": _AZURE,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "hf": "run hf auth login",
}
# URL scheme -> package that reaches its stores; `fsspec` alone reaches others, or says what to do.
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}
_REFUSED = re.compile(r"credential|denied|forbidden|unauthori[sz]ed|anonymous", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

T = TypeVar("T")


class Damaged(Exception):  # noqa: N818  (no error of the caller: rows before the damage are kept)
    """A compressed stream ends early or is corrupt."""


# Functions that report errors.


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Turn errors of the system, a store or Arrow about a file into a one-line SourceError."""
    try:
        yield
    except (NoisegenError, Damaged):
        raise
    except Exception as error:
        if not (is_url(path) or isinstance(error, OSError | pa.ArrowException)):
            raise
        raise SourceError(f"cannot read {path}: {reason_of(error, path)}") from error


def reason_of(error: Exception, path: object) -> str:
    """Return the reason in one line why a file or URL cannot be read or written, and what to do."""
    scheme, reason = str(path).partition("://")[0], first_line(error)
    if reason.startswith("Protocol not known"):
        return f"{scheme}:// is not known; use s3://, gs://, az://, hf:// or https://"
    if reason.endswith("bucket does not exist"):
        return f"{reason}; create it first"
    hint = CREDENTIALS.get(scheme) if _REFUSED.search(reason) else None
    return f"{reason}; {hint}" if hint else reason


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class name if it has no message."""
    message = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return str(message).splitlines()[0]


def refuse_endless(path: str | Path) -> None:
    """Raise SourceError for a pipe or device, which may never end and cannot be read twice.

    `path` must not be a URL.
    """
    file = Path(path)
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise SourceError(f"cannot read {path}: it is a pipe or device; save it as a file first")


# Functions that count the bytes read from input files.

_meter: ContextVar[Counter[str] | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[Counter[str]]:
    """Count the bytes read from input files within the `with` block, before decompression.

    Yields the counter, whose key is `bytes`.
    """
    meter: Counter[str] = Counter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def with_bytes(items: Iterable[T]) -> Iterator[tuple[T, int]]:
    """Yield each item of an iterator with the count of input bytes that were read to make it."""
    items, nothing = iter(items), cast(T, None)
    while True:
        with metered() as meter:
            item = next(items, nothing)
        if item is None:
            return
        yield item, meter["bytes"]


def count_bytes(count: int) -> None:
    """Add `count` to the bytes counted within a `with metered()` block, if there is one."""
    if (meter := _meter.get()) is not None:
        meter["bytes"] += count


class _MeteredFile:
    """An open file that counts the bytes read from it, and ends after `left` more bytes."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file, self._left = file, left

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(part)
        count_bytes(len(part))
        return part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


# Functions that open files and URLs.


@contextmanager
def opened(path: str | Path, start: int = 0, stop: int | None = None) -> Iterator[BinaryIO]:
    """Open an input file or URL to read the bytes `start` to `stop`; raises SourceError.

    Within a `with metered()` block, the bytes that are read are counted.
    """
    with reading(path):
        if is_url(path):
            store, name = store_of(path)
            # Without block_size, the s3 file system would read 50 MB ahead
            file = store.open(name, "rb", block_size=SCAN)
        else:
            refuse_endless(path)
            file = Path(path).open("rb")  # noqa: SIM115  (closed below)
        with file:
            file.seek(start)
            length = sys.maxsize if stop is None else stop - start
            yield cast(BinaryIO, _MeteredFile(file, length))


@contextmanager
def for_arrow(path: str) -> Iterator[Any]:
    """Yield a file as Arrow can open it: the path of a local file, or an open file for a URL.

    Raises SourceError if the file cannot be read, or if Arrow finds damage within the `with`
    block.
    """
    with reading(path):
        try:
            if is_url(path):
                store, name = store_of(path)
                with store.open(name, "rb") as file:
                    yield file
            else:
                refuse_endless(path)
                yield path
        except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
            # An OSError without errno is Arrow's and means damage; any other is raised again
            if isinstance(error, OSError) and (type(error) is not OSError or error.errno):
                raise
            kind = "a Parquet" if path.lower().endswith(".parquet") else "an Arrow"
            problem = f"damaged, or not {kind} file; get the file again"
            raise SourceError(f"cannot read {path}: {problem}") from error


def is_url(path: object) -> bool:
    """Tell whether a path is a URL that fsspec opens, such as s3://bucket/news.txt."""
    return bool(_URL.match(str(path)))


def absolute(path: str) -> str:
    """Return the absolute path with symbolic links resolved; a URL is returned unchanged."""
    return path if is_url(path) else str(Path(path).resolve())


def store_of(url: str | Path, options: Mapping[str, bool] | None = None) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and its path there; raises the errors of fsspec."""
    check_extras(_PACKAGES.get(str(url).partition("://")[0].lower(), "fsspec"))
    with naming_extras("fsspec"):
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    store, path = url_to_fs(str(url), **options or {})
    return store, str(path)


def size_of(path: str | Path) -> int:
    """Return the size of a file or URL in bytes; raises SourceError."""
    with reading(path):
        if not is_url(path):
            return os.stat(path).st_size  # noqa: PTH116 - faster, for hundreds of thousands of files
        store, name = store_of(path)
        if (size := store.size(name)) is None:
            raise OSError("the server does not say its size; download it first")
        return int(size)


def modified(url: str) -> int | None:
    """Return when the file at a URL was last written, in ns; None if its store does not say."""
    with reading(url), suppress(NotImplementedError):
        store, name = store_of(url)
        if written := store.modified(name):
            return int(written.timestamp()) * 10**9
    return None


def shard_files(run: Path) -> list[Path]:
    """Return the Parquet files (shards) that augment or prepare wrote, in order."""
    return sorted((run / "data").glob(SHARDS), key=lambda path: (len(path.name), path.name))
