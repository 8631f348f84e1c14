"""The records of a run: its configuration, and one line per finished task.

Records lie in the hidden folder OUT/.noisegen and stay there. `run.json` holds the configuration.
Every process that runs tasks writes a file of lines of its own, so that several may work at once. A
task is finished when it has a line and its files are as the line says.
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
BATCH = 256  # records per object in a store, which has no appending
SECONDS_HELD = 10.0  # after which records go to a store even if there are fewer


class Run(msgspec.Struct, frozen=True):
    """A run as its folder knows it: the kind, the configuration, and whether it has ended."""

    verb: str
    config: dict[str, Any]
    has_ended: bool = False

    @classmethod
    def read(cls, out: Path, verb: str) -> "Run | None":
        """Return the run of a kind in a folder; None if there is none, or one of another kind."""
        with suppress(OSError, OutputError, ValueError, RecursionError):
            run = msgspec.json.decode((out / RUN).read_text("utf-8"), type=Run)
            return run if run.verb == verb else None
        return None

    def write(self, out: Path) -> None:
        """Write the run to its folder; raises OutputError."""
        write_text(out / RUN, msgspec.json.encode(self).decode())

    @property
    def key(self) -> bytes:
        """The bytes that stand for the configuration."""
        return msgspec.json.encode(self.config, order="sorted")


class File(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A file of a task: its name in the output folder, and how to tell that it is unchanged.

    `mark` is size and time, or the tag of an object. `sha256` decides where the mark has changed,
    as in a copy of the folder; '' for a file that counts by its mark alone.
    """

    name: str
    sha256: str = ""
    mark: str = ""

    @classmethod
    def of(cls, path: Path, out: Path) -> "File":
        """Return the entry of a file below the folder `out`."""
        return cls(path.relative_to(out).as_posix(), file_digest(path))


class Record(msgspec.Struct, Generic[N], array_like=True, frozen=True):
    """A finished task: its number, its files, and its result."""

    number: int
    files: tuple[File, ...]
    result: N

    def marked(self, out: Path) -> "Record[N]":
        """Return the record with the marks that its files have now."""
        files = (File(file.name, file.sha256, mark_of(out / file.name)) for file in self.files)
        return Record(self.number, tuple(files), self.result)


@dataclass
class Records(Generic[N]):
    """The records of the tasks in a folder, whose results are of the type `kind`.

    `key` stands for the configuration: records of another one do not count.
    """

    out: Path
    kind: type[N]
    key: bytes
    by_number: dict[int, Record[N]] = field(default_factory=dict)
    _token: str = field(default_factory=lambda: f"{time.time_ns():020d}-{token_hex(8)}")
    _file: IO[bytes] | None = None
    _held: list[bytes] = field(default_factory=list)  # lines that a store lacks
    _objects: int = 0
    _flushed: float = field(default_factory=time.monotonic)
    _seen: dict[str, str] = field(default_factory=dict)  # marks of files of other processes

    def read(self) -> dict[int, Record[N]]:
        """Return all records by number, including records that other processes have added."""
        decoder = msgspec.json.Decoder(Record[self.kind])  # type: ignore[name-defined]
        for name, mark in sorted(listing(self.out, LINES)):  # a later process knows better
            if self._token in name or self._seen.get(name) == mark:
                continue
            self._seen[name] = mark
            for line in checked_lines(self.out / name, self.key):
                with suppress(ValueError):  # a record of another version of noisegen
                    record = decoder.decode(line)
                    self.by_number[record.number] = record
        return self.by_number

    def add(self, record: Record[N]) -> None:
        """Note a finished task; in a folder the line is written at once. Raises OutputError."""
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
        """Write the lines that a store lacks as one object."""
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
        """Remove all records of the folder."""
        self.by_number.clear()
        self._held.clear()
        if self._file is not None:
            self._file.close()
            self._file = None
        remove(*(self.out / name for name, _ in listing(self.out, LINES)))


def with_checksum(line: bytes, key: bytes) -> bytes:
    """Return a line below a checksum of the line and of the configuration that it belongs to."""
    return b"%08x %b\n" % (crc32(line, crc32(key)), line)


def checked_lines(path: Path, key: bytes) -> Iterator[bytes]:
    """Yield the lines of a file up to the first whose checksum does not fit."""
    start = crc32(key)
    with suppress(OSError, OutputError), path.open("rb") as file:
        for line in file:
            checksum, _, content = line.rstrip(b"\n").partition(b" ")
            if checksum != b"%08x" % crc32(content, start):
                return
            yield content


class SourceHead(msgspec.Struct, array_like=True):
    """The rows and bytes of a source file, and its mark; '' for a file that is to be read again."""

    mark: str = ""
    rows: int = 0
    bytes: int = 0


def read_heads(out: Path, key: bytes) -> Iterator[SourceHead]:
    """Yield the heads of the sources, in their order, as far as an earlier process noted them."""
    for line in checked_lines(out / HEADS, key):
        yield msgspec.json.decode(line, type=SourceHead)


def write_heads(out: Path, lines: Iterator[bytes], key: bytes) -> None:
    """Note the heads of the sources, a line of JSON each; without them planning takes longer."""
    with suppress(OutputError), atomic(out / HEADS) as file:
        file.writelines(with_checksum(line.rstrip(b"\n"), key) for line in lines)
