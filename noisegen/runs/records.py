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
    """Content of run.json: the kind of run, its configuration, and whether it has ended.

    `verb` stands for the kind of run, such as 'write' or 'mine'.
    """

    verb: str
    config: dict[str, Any]
    has_ended: bool = False

    @classmethod
    def read(cls, out: Path, verb: str) -> "Run | None":
        """Return the content of run.json in the folder `out`; None if absent or of another kind."""
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
    """A file of a finished task: its name in the output folder, and what shows if it has changed.

    `mark` has size and time of the file, or size and tag of an object in a store. A file with
    another mark, as in a copy of the folder, is unchanged if its digest equals `sha256`; if
    `sha256` is '', it counts as changed.
    """

    name: str
    sha256: str = ""
    mark: str = ""

    @classmethod
    def of(cls, path: Path, out: Path) -> "File":
        """Hash the file `path` in the folder `out`; return a `File` without a mark."""
        return cls(path.relative_to(out).as_posix(), file_digest(path))


class Record(msgspec.Struct, Generic[N], array_like=True, frozen=True):
    """A finished task: its number, its files, and its result of type `N`."""

    number: int
    files: tuple[File, ...]
    result: N

    def marked(self, out: Path) -> "Record[N]":
        """Return a copy in which each file has its present mark (size and time) in `out`."""
        files = (File(file.name, file.sha256, mark_of(out / file.name)) for file in self.files)
        return Record(self.number, tuple(files), self.result)


@dataclass
class Records(Generic[N]):
    """The records of finished tasks in the folder `out`.

    `kind` is the Python type of the tasks' results. `key` is `Run.key`, the configuration as bytes:
    records that were written with another configuration are ignored.
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
        """Return {task number: record} of the finished tasks of all processes.

        Files of records that have not changed since the last call are not read again.
        """
        decoder = msgspec.json.Decoder(Record[self.kind])  # type: ignore[name-defined]
        # Names begin with a time. The oldest file is read first, so that newer records replace its.
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

        Its line is written at once in a local folder, together with later lines in a store.
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
        """Write all lines that are not in the store yet, as one object."""
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
    """Return 'checksum line'; the checksum covers the line and the `key` of the run."""
    return b"%08x %b\n" % (crc32(line, crc32(key)), line)


def checked_lines(path: Path, key: bytes) -> Iterator[bytes]:
    """Yield the lines of a file, without their checksums; stop at the first wrong checksum.

    A checksum is wrong if its line is damaged or was written with another `key`. Yields nothing if
    the file cannot be read.
    """
    start = crc32(key)
    with suppress(OSError, OutputError), path.open("rb") as file:
        for line in file:
            checksum, _, content = line.rstrip(b"\n").partition(b" ")
            if checksum != b"%08x" % crc32(content, start):
                return
            yield content


class SourceHead(msgspec.Struct, array_like=True):
    """Count of rows and bytes of an input file, and its mark (size and time) at the count.

    If the mark is '', the file has to be read again.
    """

    mark: str = ""
    rows: int = 0
    bytes: int = 0


def read_heads(out: Path, key: bytes) -> Iterator[SourceHead]:
    """Yield the `SourceHead` of each input file, in input order, as `write_heads` saved it."""
    for line in checked_lines(out / HEADS, key):
        yield msgspec.json.decode(line, type=SourceHead)


def write_heads(out: Path, lines: Iterator[bytes], key: bytes) -> None:
    """Save the `SourceHead` of each input file, as JSON lines, for later processes of the run."""
    # If this fails, a later process reads the input files again, so the error is suppressed.
    with suppress(OutputError), atomic(out / HEADS) as file:
        file.writelines(with_checksum(line.rstrip(b"\n"), key) for line in lines)
