"""Files that take their name when all of them is on disk: temporary name, fsync, rename."""

import errno
import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO

from noisegen.errors import NoisegenError, OutputError
from noisegen.runs.store import StorePath

_HOST = re.sub(r"\W", "", platform.node())  # other machines may write into the same folder


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a full disk or a forbidden folder raises into an OutputError of one line."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "; free some space, then run again" if full else ""
        reason = error.strerror or str(error).splitlines()[0]
        problem = OutputError(f"cannot write {path}: {reason}{hint}")
        raise (problem.passes() if full else problem) from error


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write that takes its name at the end; raises OutputError.

    If the block fails, nothing of the file remains. A lack of memory becomes a NoisegenError.
    """
    with writing(path):
        try:
            with path.upload() if isinstance(path, StorePath) else _renamed(path) as file:
                yield file
        except MemoryError as error:
            hint = "lower --workers or --rows-per-shard, then run again"
            problem = NoisegenError(f"not enough memory to make {path}; {hint}")
            raise problem.passes() from error


@contextmanager
def _renamed(path: Path) -> Iterator[IO[bytes]]:
    temporary = path.with_name(f"{path.name}.{_HOST}-{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_left(path: Path) -> None:
    """Remove what processes of this machine that were killed left of a file that they wrote."""
    for left in path.parent.glob(f"{escape(path.name)}.{_HOST}-*.tmp"):
        number = left.name.rpartition("-")[2].removesuffix(".tmp")
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            remove(left)
        except OSError:  # another user's, and alive
            continue


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
            follow_umask(temporary)
            for file in temporary.rglob("*"):
                sync(file)
            try:
                temporary.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def follow_umask(path: Path) -> None:
    """Give a file, or a folder and all in it, the mode of new ones; libraries write some 0600."""
    probe = Path(tempfile.mkdtemp(".tmp", dir=path.parent))
    try:
        (probe / "folder").mkdir()  # the only way to read the umask that other threads do not see
        mode = (probe / "folder").stat().st_mode
    finally:
        shutil.rmtree(probe)
    for file in (path, *path.rglob("*")):
        file.chmod(mode & (0o777 if file.is_dir() else 0o666))


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
