"""The journal of a run: notes of finished tasks, so that a resumed run lists files and opens none.

Every process that runs tasks writes files of JSON lines of its own, some hundred notes at a time.
A note counts while its file has the mark that it had: size and time, or the tag of an object. What
is in no journal is read from the files: a journal that is lost or damaged costs time alone.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from secrets import token_hex
from typing import Generic, TypeVar

import msgspec

from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic, remove
from noisegen.runs.store import StorePath

N = TypeVar("N")

BATCH = 256  # notes in a file
FILES = "journal-*.jsonl"


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
            with suppress(OutputError), atomic(path) as file:
                lines = (self.config, *self._entries)
                file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
        self._files += 1
        self._entries.clear()

    def read(self) -> Iterator[Noted[N]]:
        """Yield what processes with the same configuration have noted since the last call."""
        decoder = msgspec.json.Decoder(Noted[self.kind])  # type: ignore[name-defined]
        names = {name for name, _ in listing(self.folder, FILES)} - self._known
        self._known |= names
        for name in sorted(names):
            with (
                suppress(OSError, ValueError, OutputError),
                (self.folder / name).open("rb") as file,
            ):
                config, _, lines = file.read().partition(b"\n")
                if msgspec.json.decode(config) == self.config:
                    yield from decoder.decode_lines(lines)

    def remove(self) -> None:
        """Remove all journals in the folder."""
        self._entries.clear()
        remove(*(self.folder / name for name, _ in listing(self.folder, FILES)))


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
