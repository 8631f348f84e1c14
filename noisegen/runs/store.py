"""Output in object stores: `StorePath`, a URL with the methods of `pathlib.Path` that a run needs.

The package `fsspec` reaches the stores. An object appears only when its upload is complete, so an
upload is as safe as the rename of a finished file.
"""

# ruff: noqa: D102 - the methods are those of pathlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import IO, Any, cast

from noisegen.errors import NoisegenError, OutputError

# Protocols of the stores in which an object appears only when its upload is complete
SAFE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")


def output_path(out: str | Path) -> Path:
    """Return an output folder or file as a `Path`, or as a `StorePath` if `out` is a URL.

    Raises OutputError for a URL of a kind that noisegen does not write to, and for a URL without a
    bucket.
    """
    protocol, is_url, name = str(out).partition("://")
    if not is_url:
        return Path(out)
    if protocol not in SAFE:
        raise OutputError(
            f"{out}: only a folder, s3://, gs:// and az:// are written to; elsewhere a run that is "
            "interrupted would leave half a file"
        )
    if not name.strip("/"):
        raise OutputError(f"{out} has no bucket: name one, such as {protocol}://bucket/folder")
    return cast(Path, StorePath(str(out).rstrip("/")))


@dataclass(frozen=True, order=True)
class StorePath:
    """URL of an object in a store, or of a prefix of object names that serves as a folder."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "StorePath":
        return StorePath(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> "StorePath":
        return StorePath(self.url.rpartition("/")[0])

    def with_name(self, name: str) -> "StorePath":
        return self.parent / name

    def relative_to(self, other: "StorePath") -> PurePosixPath:
        return PurePosixPath(self.url.removeprefix(f"{other.url}/"))

    def resolve(self) -> "StorePath":
        return self

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a store has folders only in the names of objects."""

    def rmdir(self) -> None:
        """Do nothing: a folder without objects does not exist."""

    def exists(self) -> bool:
        return bool(self._ask("exists"))

    def is_dir(self) -> bool:
        return bool(self._ask("isdir"))

    def is_file(self) -> bool:
        return bool(self._ask("isfile"))

    def is_symlink(self) -> bool:
        return False

    def iterdir(self) -> Iterator["StorePath"]:
        names = self._ask("ls", detail=False) if self.is_dir() else []
        return (self / name.rstrip("/").rpartition("/")[2] for name in sorted(names))

    def glob(self, pattern: str) -> Iterator["StorePath"]:
        folder, _, name = pattern.rpartition("/")
        start = self / folder if folder else self
        return (path for path in start.iterdir() if fnmatchcase(path.name, name))

    def listing(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Yield (name, mark) of each object in this folder whose name fits a glob pattern."""
        for entry in self._ask("ls", detail=True) if self.is_dir() else []:
            name = entry["name"].rstrip("/").rpartition("/")[2]
            if fnmatchcase(name, pattern):
                yield name, _mark(entry)

    def mark(self) -> str:
        """Return the mark of the object: a text that changes with its content."""
        return _mark(self._ask("info"))

    def stat(self) -> Any:
        """Return time and size of the object; its `st_ino` changes when the content changes."""
        time, size = self._ask("modified").timestamp(), self._ask("size")
        number = int(self._ask("ukey"), 16)
        return SimpleNamespace(st_dev=0, st_ino=number, st_mtime_ns=int(time * 1e9), st_size=size)

    def open(self, mode: str = "rb") -> IO[bytes]:
        return cast(IO[bytes], self._ask("open", mode=mode))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        with self.open() as file:
            return file.read().decode(encoding, errors)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.exists():
            self._ask("rm_file")

    def remove_tree(self) -> None:
        """Remove all objects of a folder."""
        self._ask("rm", recursive=True)

    def _ask(self, what: str, **options: Any) -> Any:
        store, path = self._store()
        with _storing(self):
            return getattr(store, what)(path, **options)

    def _store(self, *, own: bool = False) -> tuple[Any, str]:
        """Return the `fsspec` file system of the store, and the path of the object in it.

        With `own`, the file system is a new instance, which no other `StorePath` uses.
        """
        from noisegen.data.files import store_of  # imports pyarrow, which is slow

        with _storing(self):
            return store_of(self.url, {"use_listings_cache": False, "skip_instance_cache": own})

    @contextmanager
    def upload(self) -> Iterator[IO[bytes]]:
        """Yield a file to write; it becomes an object when the `with` block ends without error."""
        store, path = self._store(own=True)  # its transaction then has no other upload
        store.transaction.start()
        with _storing(self):
            file = store.open(path, "wb")
        try:
            yield file
        except BaseException:
            store.transaction.complete(commit=False)
            with suppress(AttributeError):  # Python would upload an open file when it frees it
                file.closed = True
            raise
        with _storing(self):
            file.close()
            store.transaction.complete()


def _mark(entry: Mapping[str, Any]) -> str:
    """Return the mark of an object: its size, and its tag or, in stores without tags, its time."""
    tags = (entry.get(name) for name in ("ETag", "etag", "LastModified", "mtime", "created"))
    tag = next(filter(None, tags), "")  # the first that the store lists
    return f"{entry['size']} {tag.timestamp() if isinstance(tag, datetime) else tag}"


@contextmanager
def _storing(path: StorePath) -> Iterator[None]:
    """Turn any error of the `with` block, which uses a store, into an OutputError of one line."""
    from noisegen.data.files import reason_of

    try:
        yield
    except NoisegenError:
        raise
    except Exception as error:
        raise OutputError(f"cannot write {path}: {reason_of(error, path)}") from error


# Files of a folder or of a store.


def listing(out: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield (name, mark) of each file in `out` that fits a pattern, such as data/*.parquet.

    The mark is a text with the file's size and time: if the content changes, it changes too. A
    store is asked only once for all files.
    """
    folder, slash, pattern = pattern.rpartition("/")
    place = out / folder if folder else out
    found = place.listing(pattern) if isinstance(place, StorePath) else _listing(place, pattern)
    for name, mark in found:
        yield f"{folder}{slash}{name}", mark


def _listing(folder: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield (name, mark) of each file in a local folder that fits a pattern.

    `pathlib` is not used, as it would hold all names of the folder in memory.
    """
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if fnmatchcase(entry.name, pattern):
                try:
                    yield entry.name, _local_mark(entry.stat())
                except FileNotFoundError:  # a broken link, or a file that was just removed
                    yield entry.name, ""


def mark_of(path: Path | str) -> str:
    """Return the mark of a file or object; raises OSError or OutputError if it is missing."""
    return path.mark() if isinstance(path, StorePath) else _local_mark(os.stat(path))  # noqa: PTH116


def _local_mark(stat: os.stat_result) -> str:
    return f"{stat.st_size} {stat.st_mtime_ns}"
