"""The records of a run: its configuration, and one line per finished task.

Records lie in the hidden folder OUT/.noisegen and stay there after the run. `run.json` holds the
configuration. Several processes may run tasks at once, so each writes its lines to a file of its
own. A task is finished if it has a line and its files are as the line says.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Generic, TypeVar
from zlib import crc32

import msgspec

from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic, file_digest, remove, write_text, writing
from noisegen.runs.lock import STATE
from noisegen.runs.store import StorePath, listing, mark_of

N = TypeVar("N")

RUN = f"{STATE}/run.json"
LINES = f"{STATE}/records-*.jsonl"
HEADS = f"{STATE}/heads.jsonl"
BATCH = 256  # lines per object in a store, where a file cannot grow line by line
SECONDS_HELD = 10.0  # after this time, even fewer lines than BATCH go to a store


class Run(msgspec.Struct, frozen=True):
    """Content of run.json: the kind of run (`verb`), its configuration, and whether it has ended.

    `verb` names the work of the run, such as 'write' or 'mine'.
    """

    verb: str
    config: dict[str, Any]
    has_ended: bool = False

    @classmethod
    def read(cls, out: Path, verb: str) -> "Run | None":
        """Return the run that a folder records; None without one, or with another `verb`."""
        with suppress(OSError, OutputError, ValueError, RecursionError):
            run = msgspec.json.decode((out / RUN).read_text("utf-8"), type=Run)
            return run if run.verb == verb else None
        return None

    def write(self, out: Path) -> None:
        """Write run.json in the folder `out`; raises OutputError."""
        write_text(out / RUN, msgspec.json.encode(self).decode())

    @property
    def key(self) -> bytes:
        """The configuration as bytes, equal for equal configurations; part of every checksum."""
        return msgspec.json.encode(self.config, order="sorted")


class File(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A file of a finished task: its name in the output folder, and signs that it is unchanged.

    `mark` is size and time of the file, or size and tag of an object in a store. If the mark has
    changed, as in a copy of the folder, `sha256` decides. A file without `sha256` counts as changed
    then.
    """

    name: str
    sha256: str = ""
    mark: str = ""

    @classmethod
    def of(cls, path: Path, out: Path) -> "File":
        """Hash the file `path` in the folder `out` and return its entry, without a mark."""
        return cls(path.relative_to(out).as_posix(), file_digest(path))


class Record(msgspec.Struct, Generic[N], array_like=True, frozen=True):
    """A finished task: its number, its files, and its result of type `N`."""

    number: int
    files: tuple[File, ...]
    result: N

    def marked(self, out: Path) -> "Record[N]":
        """Return the record with the present marks of its files in the folder `out`."""
        files = (File(file.name, file.sha256, mark_of(out / file.name)) for file in self.files)
        return Record(self.number, tuple(files), self.result)


@dataclass
class Records(Generic[N]):
    """The records of finished tasks in the folder `out`.

    `kind` is the type of the tasks' results. `key` stands for the configuration of the run:
    records of a run with another key are ignored.
    """

    out: Path
    kind: type[N]
    key: bytes
    by_number: dict[int, Record[N]] = field(default_factory=dict)
    _token: str = field(default_factory=lambda: f"{time.time_ns():020d}-{token_hex(8)}")
    _file: IO[bytes] | None = None
    _held: list[bytes] = field(default_factory=list)  # lines not yet uploaded to the store
    _objects: int = 0
    _flushed: float = field(default_factory=time.monotonic)
    _seen: dict[str, str] = field(default_factory=dict)  # record file -> mark when it was read

    def read(self) -> dict[int, Record[N]]:
        """Return the records of all processes by task number.

        Only record files that changed since the last call are read.
        """
        decoder = msgspec.json.Decoder(Record[self.kind])  # type: ignore[name-defined]
        # The oldest process comes first, so that the newest record of a task counts.
        for name, mark in sorted(listing(self.out, LINES)):
            if self._token in name or self._seen.get(name) == mark:
                continue
            self._seen[name] = mark
            for line in checked_lines(self.out / name, self.key):
                with suppress(ValueError):  # another version of noisegen wrote the record
                    record = decoder.decode(line)
                    self.by_number[record.number] = record
        return self.by_number

    def add(self, record: Record[N]) -> None:
        """Add the record of a finished task; raises OutputError.

        In a folder its line is written at once, in a store together with later lines.
        """
        self.by_number[record.number] = record
        line = with_checksum(msgspec.json.encode(record), self.key)
        if isinstance(self.out, StorePath):
            self._held.append(line)
            if len(self._held) == BATCH or time.monotonic() - self._flushed > SECONDS_HELD:
                self._upload()
            return
        path = self.out / LINES.replace("*", self._token)
        with writing(path):
            if self._file is None:
                self._file = path.open("ab", buffering=0)
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _upload(self) -> None:
        """Write the lines that are not yet in the store as one object."""
        name = LINES.replace("*", f"{self._token}-{self._objects:05d}")
        if self._held:
            with atomic(self.out / name) as file:
                file.writelines(self._held)
            self._objects += 1
        self._held.clear()
        self._flushed = time.monotonic()

    def close(self) -> None:
        """Wait until all lines are on the disk or in the store; raises OutputError."""
        self._upload()
        if self._file is not None:
            with writing(self.out), self._file:
                os.fsync(self._file.fileno())
            self._file = None

    def remove(self) -> None:
        """Remove the records of all processes from the folder."""
        self.by_number.clear()
        self._held.clear()
        if self._file is not None:
            self._file.close()
            self._file = None
        remove(*(self.out / name for name, _ in listing(self.out, LINES)))


def with_checksum(line: bytes, key: bytes) -> bytes:
    """Return a line with a checksum before it, made of the line and the `key` of the run."""
    return b"%08x %b\n" % (crc32(line, crc32(key)), line)


def checked_lines(path: Path, key: bytes) -> Iterator[bytes]:
    """Yield the lines of a file without their checksums, up to the first with a wrong one.

    A checksum is wrong if its line is damaged or belongs to a run with another `key`. A file that
    cannot be read has no lines.
    """
    start = crc32(key)
    with suppress(OSError, OutputError), path.open("rb") as file:
        for line in file:
            checksum, _, content = line.rstrip(b"\n").partition(b" ")
            if checksum != b"%08x" % crc32(content, start):
                return
            yield content


class SourceHead(msgspec.Struct, array_like=True):
    """Rows and bytes of an input file, and the mark of the file when they were counted.

    Without a mark the file has to be read again.
    """

    mark: str = ""
    rows: int = 0
    bytes: int = 0


def read_heads(out: Path, key: bytes) -> Iterator[SourceHead]:
    """Yield the heads of the input files, in input order, that an earlier process kept in `out`."""
    for line in checked_lines(out / HEADS, key):
        yield msgspec.json.decode(line, type=SourceHead)


def write_heads(out: Path, lines: Iterator[bytes], key: bytes) -> None:
    """Keep the heads of the input files, a line of JSON each, for later processes of the run."""
    # Without them a later process reads the input files again, so an error is no loss.
    with suppress(OutputError), atomic(out / HEADS) as file:
        file.writelines(with_checksum(line.rstrip(b"\n"), key) for line in lines)
