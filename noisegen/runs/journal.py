"""The journal of a run: notes of finished tasks, so that a resumed run lists files and opens none.

Every process that runs tasks writes files of JSON lines of its own, some hundred notes at a time.
A note counts while its file has the mark that it had: size and time, or the tag of an object. What
is in no journal is read from the files: a journal that is lost or damaged costs time alone.
Beside it lie the heads of the sources, so that neither a resumed run nor another part reads them.
"""

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Generic, TypeVar

import msgspec

from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic, remove
from noisegen.runs.store import StorePath

N = TypeVar("N")
T = TypeVar("T")

BATCH = 256  # notes in a file
FILES = "journal-*.jsonl"
HEADS = "heads.jsonl"


class SourceHead(msgspec.Struct, array_like=True):
    """How many rows a source has; the mark of its file, '' for what has to be read again."""

    mark: str = ""
    rows: int = 0
    bytes: int = 0


class Noted(msgspec.Struct, Generic[N]):
    """The note of a task, and the mark of its file."""

    mark: str
    note: N


@dataclass
class Journal(Generic[N]):
    """The journal in a folder of notes of a type; `config` is what all of them are bound to."""

    folder: Path
    kind: type[N]
    config: str
    _token: str = field(default_factory=lambda: token_hex(8))
    _files: int = 0
    _known: set[str] = field(default_factory=set)
    _entries: list[Noted[N]] = field(default_factory=list)

    def add(self, entry: Noted[N]) -> None:
        """Note a finished task, on disk once there are enough of them."""
        self._entries.append(entry)
        if len(self._entries) == BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is not yet on disk, if that is possible."""
        path = self.folder / f"journal-{self._token}-{self._files:05d}.jsonl"
        self._known.add(path.name)
        if self._entries:
            self._write(path, b"".join(msgspec.json.encode(one) + b"\n" for one in self._entries))
        self._files += 1
        self._entries.clear()

    def read(self) -> Iterator[Noted[N]]:
        """Yield what processes with the same configuration have noted since the last call."""
        decoder = msgspec.json.Decoder(Noted[self.kind])  # type: ignore[name-defined]
        names = {name for name, _ in listing(self.folder, FILES)} - self._known
        self._known |= names
        for name in sorted(names):
            yield from self._read(self.folder / name, decoder)

    def heads(self) -> Iterator[SourceHead]:
        """Yield what is noted of the sources, in their order; nothing where it is damaged."""
        return self._read(self.folder / HEADS, msgspec.json.Decoder(SourceHead))

    def note_heads(self, lines: bytes) -> None:
        """Note the heads of the sources, a line of JSON each, if that is possible."""
        self._write(self.folder / HEADS, lines)

    def _write(self, path: Path, lines: bytes) -> None:
        """Write lines of JSON below one that binds them to the configuration, if possible."""
        bound_to = msgspec.json.encode([self.config, sha256(lines).hexdigest()])
        with suppress(OutputError), atomic(path) as file:
            file.writelines((bound_to, b"\n", lines))

    def _read(self, path: Path, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
        """Yield what was written; nothing for another configuration, or if it is damaged."""
        with suppress(OSError, ValueError, OutputError), path.open("rb") as file:
            bound_to, lines = msgspec.json.decode(file.readline()), file.read()
            if bound_to == [self.config, sha256(lines).hexdigest()]:
                yield from map(decoder.decode, io.BytesIO(lines))

    def remove(self) -> None:
        """Remove all journals in the folder."""
        self._entries.clear()
        files = (self.folder / name for name, _ in listing(self.folder, FILES))
        remove(*files, self.folder / HEADS)


def listing(out: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the names in a folder that such a pattern means, and the marks of their files.

    A store is asked once, not once a file. A mark is another one for other content.
    """
    folder, slash, pattern = pattern.rpartition("/")
    place = out / folder if folder else out
    if isinstance(place, StorePath):
        found = ((name, mark) for name, mark in place.listing() if fnmatchcase(name, pattern))
    else:
        found = _listing(place, pattern)
    yield from ((f"{folder}{slash}{name}", mark) for name, mark in found)


def _listing(folder: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield names as they come: pathlib holds a whole folder in memory."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if fnmatchcase(entry.name, pattern):
                try:
                    yield entry.name, _mark(entry.stat())
                except FileNotFoundError:  # a link to nothing, or a file that has gone
                    yield entry.name, ""


def mark_of(path: Path) -> str:
    """Return the mark of a file; raises OSError, OutputError."""
    return path.mark() if isinstance(path, StorePath) else _mark(path.stat())


def _mark(stat: os.stat_result) -> str:
    return f"{stat.st_size} {stat.st_mtime_ns}"
