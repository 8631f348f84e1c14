"""Read the content of a 7z archive as a stream: no file of its members is ever made."""

import lzma
import queue
import shutil
import subprocess
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from noisegen.errors import MissingExtra

PROGRAMS = ("7zz", "7z", "7za")
CHUNK = 1 << 20  # bytes read at once
HEADER = 32  # bytes before the first stream (7zFormat.txt, SignatureHeader)
LZMA, LZMA2 = b"\x03\x01\x01", b"\x21"  # ids of coders


def members(path: Path, failures: list[str]) -> Iterator[bytes]:
    """Yield the content of all members; why it ended early is added to `failures`.

    An archive as Wikimedia makes them is decoded here, others by a 7-Zip program, else by py7zr.
    Raises MissingExtra with neither.
    """
    if stream := _only_stream(path):
        return _decoded(path, stream, failures)
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    return _piped(program, path, failures) if program else _py7zr(path, failures)


@dataclass(frozen=True)
class _Stream:
    """The only stream of an archive, with one member and one coder."""

    offset: int
    chain: list[dict[str, int]]
    size: int
    checksum: int


def _only_stream(path: Path) -> _Stream | None:
    """Return what the directory of an archive says; None if it says more, or cannot be read."""
    try:
        import py7zr

        with py7zr.SevenZipFile(path) as archive:
            (member,) = archive.list()
            streams: Any = archive.header.main_streams
            (folder,) = streams.unpackinfo.folders
            (coder,) = folder.coders
            offset = HEADER + streams.packinfo.packpos
            return _Stream(offset, [_filter(coder)], member.uncompressed, member.crc32 or 0)
    except Exception:  # whatever py7zr raises for a damaged archive, or its insides have changed
        return None


def _filter(coder: Mapping[str, bytes]) -> dict[str, int]:
    """Return a coder as lzma's filter; raises KeyError for another one."""
    given = coder["properties"]
    if coder["method"] == LZMA2:
        size = (2 | given[0] & 1) << given[0] // 2 + 11
        return {"id": lzma.FILTER_LZMA2, "dict_size": size}
    if coder["method"] != LZMA:
        raise KeyError(coder["method"])
    rest, lc = divmod(given[0], 9)
    pb, lp = divmod(rest, 5)
    size = int.from_bytes(given[1:5], "little")
    return {"id": lzma.FILTER_LZMA1, "dict_size": size, "lc": lc, "lp": lp, "pb": pb}


def _decoded(path: Path, stream: _Stream, failures: list[str]) -> Iterator[bytes]:
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=stream.chain)
    left, checksum = stream.size, 0
    with path.open("rb") as file:
        file.seek(stream.offset)
        while left > 0:
            data = file.read(CHUNK) if decoder.needs_input else b""
            try:
                part = decoder.decompress(data, min(left, CHUNK))
            except (lzma.LZMAError, EOFError) as error:
                failures.append(str(error))
                return
            if not (part or data):
                failures.append("truncated")
                return
            left -= len(part)
            checksum = zlib.crc32(part, checksum)
            yield part
    if checksum != stream.checksum:
        failures.append("the checksum differs")


def _piped(program: str, path: Path, failures: list[str]) -> Iterator[bytes]:
    """Yield what a program writes into a pipe."""
    command = [program, "e", "-so", "-bd", "-y", str(path.absolute())]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield from iter(lambda: cast(BinaryIO, process.stdout).read(CHUNK), b"")
        except GeneratorExit:
            process.kill()
            raise
    if process.returncode:
        failures.append(f"{Path(program).name} ended with {process.returncode}")


def _py7zr(path: Path, failures: list[str]) -> Iterator[bytes]:
    """Yield what py7zr pushes into a queue, from a thread."""
    try:
        import py7zr
        from py7zr.io import Py7zIO, WriterFactory
    except ImportError:
        raise MissingExtra("py7zr", "7z") from None
    parts: queue.Queue[bytes | None] = queue.Queue(maxsize=2)
    left = threading.Event()

    def push(part: bytes | None) -> None:
        while not left.is_set():
            with suppress(queue.Full):
                return parts.put(part, timeout=0.1)
        raise BrokenPipeError

    class Member(Py7zIO):
        def write(self, s: bytes | bytearray) -> int:
            push(bytes(s))
            return len(s)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return 0

        def flush(self) -> None:
            pass

        def size(self) -> int:
            return 0

    class Members(WriterFactory):
        def create(self, filename: str) -> Py7zIO:
            return Member()

    def extract() -> None:
        try:
            with py7zr.SevenZipFile(path) as archive:
                archive.extractall(factory=Members())
        except Exception as error:  # whatever its decoders raise for a damaged archive
            failures.append(str(error) or type(error).__name__)
        with suppress(BrokenPipeError):
            push(None)

    thread = threading.Thread(target=extract, daemon=True)
    thread.start()
    try:
        yield from iter(parts.get, None)
    finally:
        left.set()
        thread.join()
