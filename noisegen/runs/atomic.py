"""Files that get their final name only once they are whole on disk.

A file is written under a temporary name, forced to the disk (fsync), and renamed.
"""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

from noisegen.errors import NoisegenError, OutputError
from noisegen.runs.store import StorePath

# Ending of a file name -> bytes near the start of each HTML page or picture that noisegen writes.
MARKS = {
    ".html": b'<meta name="generator" content="noisegen">',
    ".png": b"Software\0noisegen",
}
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp$")  # end of the name of a temporary file


@contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Turn an OSError that the `with` block raises into an OutputError: cannot write `path`.

    Its message is one line; it ends with `hint`, or if the disk is full, with advice to free space.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "; free some space, then run again" if full else hint
        reason = error.strerror or str(error).splitlines()[0]
        problem = OutputError(f"cannot write {path}: {reason}{hint}")
        raise (problem.as_temporary() if full else problem) from error


@contextmanager
def atomic(path: Path, hint: str = "") -> Iterator[IO[bytes]]:
    """Yield an open file that appears as `path` when the `with` block ends without an error.

    If the block fails, the file is removed. An OSError becomes an OutputError that ends with
    `hint`, a MemoryError becomes a NoisegenError.
    """
    if not path.name:
        raise OutputError(f"{str(path)!r} is not the name of a file")
    with writing(path, hint):
        try:
            with path.upload() if isinstance(path, StorePath) else _renamed(path) as file:
                yield file
        except MemoryError as error:
            hint = "free some, or use fewer workers, then run again"
            problem = NoisegenError(f"not enough memory to make {path}; {hint}")
            raise problem.as_temporary() from error


@contextmanager
def _renamed(path: Path) -> Iterator[IO[bytes]]:
    temporary, file = _opened_beside(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":  # Windows cannot rename an open file
                temporary.replace(path)
        if os.name == "nt":
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _opened_beside(path: Path) -> tuple[Path, IO[bytes]]:
    """Open a file with a temporary name beside `path`; return its path and the file.

    The file is locked while it is open, so that `remove_left` does not remove it.
    """
    while True:
        temporary = path.with_name(f"{path.name}.{token_hex(8)}.tmp")
        file = temporary.open("xb")
        lock_file(file, wait=True)
        if temporary.exists():
            return temporary, file
        file.close()  # `remove_left` removed the file before it was locked


def lock_file(file: IO[bytes], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    With `wait`, wait until the other process unlocks it.
    """
    try:
        import fcntl  # not on Windows

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def remove_left(folder: Path, name: str = "*") -> None:
    """Remove the temporary files that killed processes left in a folder.

    Only files are removed whose final name fits the glob pattern `name`.
    """
    for left in folder.glob(f"{name}.*.tmp"):
        if TEMPORARY.search(left.name):
            with suppress(OSError), left.open("rb") as file:
                if lock_file(file):
                    remove(left)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it is renamed to `path` when the `with` block ends.

    If another process has made a folder `path` meanwhile, that folder stays and this one is
    removed. It is also removed if the block fails. Raises OutputError.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{token_hex(8)}.tmp")
        temporary.mkdir()
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
    """Give a file, or a folder and its content, the permissions that the umask gives new files.

    Some libraries write files that only their owner can read.
    """
    probe = Path(tempfile.mkdtemp(".tmp", dir=path.parent))
    try:
        (probe / "folder").mkdir()  # shows the umask; os.umask would change it for other threads
        mode = (probe / "folder").stat().st_mode
    finally:
        shutil.rmtree(probe)
    for file in (path, *path.rglob("*")):
        file.chmod(mode & (0o777 if file.is_dir() else 0o666))


def sync(path: Path) -> None:
    """Wait until the content of a file, or the list of files in a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_existing(path: Path, force: bool | None = None) -> None:
    """Raise OutputError if `path` is an existing file that may not be overwritten.

    With `force`, any file may be overwritten, but no folder or device. If `force` is None, the
    output is an HTML page or picture, and may replace only a page or picture of noisegen.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise OutputError(f"{str(path)!r} is not the name of a file")
    if force is None:
        with path.open("rb") as file:
            if MARKS.get(path.suffix.lower(), b"\0") not in file.read(4_096):
                raise OutputError(
                    f"{path} exists, and not by noisegen; move it, or give another name"
                )
    elif not force:
        raise OutputError(f"{path} exists; add --force to overwrite it")


def write_text(path: Path, text: str) -> None:
    """Write a text to a file that appears only when it is complete; raises OutputError."""
    with atomic(path) as file:
        file.write(text.encode())


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(*paths: Path) -> None:
    """Remove files, and folders with their content, if they exist; raises OutputError."""
    for path in paths:
        with writing(path):
            if path.is_dir() and not path.is_symlink():
                path.remove_tree() if isinstance(path, StorePath) else shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
