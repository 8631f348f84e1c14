"""Files that take their name when all of them is on disk: temporary name, fsync, rename."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from noisegen.errors import NoisegenError, OutputError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a full disk or a forbidden folder raises into an OutputError of one line."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "; free some space, then run again with --resume" if full else ""
        reason = error.strerror or str(error).splitlines()[0]
        raise OutputError(f"cannot write {path}: {reason}{hint}") from error


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write that takes its name at the end; raises OutputError.

    If the block fails, nothing of the file remains. A lack of memory becomes a NoisegenError.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except MemoryError as error:
            hint = "run again with --resume, fewer --workers or smaller shards"
            raise NoisegenError(f"not enough memory to make {path}; {hint}") from error
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill that takes its name at the end; raises OutputError.

    If another process took the name meanwhile, its folder stays. A failure leaves nothing.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(".tmp", f"{path.name}.", path.parent))
        try:
            yield temporary
            for file in temporary.rglob("*"):
                sync(file)
            temporary.chmod(0o755)
            try:
                temporary.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a small file at once; raises OutputError."""
    with atomic(path) as file:
        file.write(text.encode())


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(*paths: Path) -> None:
    """Remove files, and folders with all that is in them, if they exist; raises OutputError."""
    for path in paths:
        with writing(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
