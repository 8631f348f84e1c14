"""Decompression as a stream with bounded output: gzip, bzip2, xz, zstd and 7z.

A damaged text file is read up to the damage, then `Damaged` is raised. In a Wikipedia dump, damage
is reported and later content is decoded where possible: of a bzip2 file only the damaged block is
lost. Members of a 7z archive are decoded without unpacking a file.
"""

import lzma
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import pyarrow as pa

from noisegen.data import seven_zip
from noisegen.data.bzip2 import Note, decode_bzip2
from noisegen.data.files import Damaged, is_url, metered, opened, size_of
from noisegen.errors import MissingExtra, SourceError

# Bytes of a dump per yielded part, which stays in the processor's cache while scanned
CHUNK = 512 << 10
# Bytes of a bzip2 file read at once; small, to read little beyond the last block of a range
BITS = 64 << 10
# Compressed bytes decoded at once; where they are damaged, all of them are lost
PIECE = 8 << 10
# Decompressed bytes read at once from a zstd file; where it is damaged, all of them are lost
SMALL = 16 << 10
WINDOW_MAX = 1 << 30  # most bytes of memory that the decoder of an xz file may take
UNBOUNDED_BYTES = 1 << 30  # decompressed bytes that a file may have at any compression ratio
UNBOUNDED_RATIO = 20_000  # most decompressed bytes per compressed byte; real dumps have 20 to 400
COMPRESSIONS = ("gz", "zst", "bz2", "xz")  # endings of compressed text files; dumps may also be .7z
_FRAME = b"\x28\xb5\x2f\xfd"  # first bytes of every zstd frame (RFC 8878)
_SIZED = b"\x1f\x8b\x08\x04"  # first bytes of a gzip member that may say its size (RFC 1952)
# First bytes of a zstd frame without content; the first byte may be 0x50 to 0x5f
_SKIPPABLE = b"\x50\x2a\x4d\x18"
_RUN_LENGTH = 1  # type of a zstd block that stores one repeated byte
MAGICS = {  # first bytes of a file, by its compression
    "bz2": b"BZh",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "gz": b"\x1f\x8b",
    "zst": _FRAME,
    "xz": b"\xfd7zXZ\x00",
}
NAMES = {"bz2": "bzip2", "7z": "7-Zip", "gz": "gzip", "zst": "zstd", "xz": "xz"}
PROGRAMS = ("7zz", "7z", "7za")

Parts = Generator[bytes, None, None]


def compression_of(path: str | Path) -> str:
    """Return the compression that the ending of a text file names: gz, zst, bz2, xz or ''."""
    ending = str(path).lower().rpartition(".")[2]
    return ending if ending in COMPRESSIONS else ""


def kind_of(path: str | Path) -> str:
    """Return the compression that a dump's first bytes show: bz2, 7z, gz, zst, xz or '' (none).

    Raises SourceError for an empty file, and if the ending names another compression.
    """
    with metered(), opened(path) as file:
        head = file.read(8)
    if not head:
        raise SourceError(f"{path}: the file is empty")
    kind = next((name for name, magic in MAGICS.items() if head.startswith(magic)), "")
    ending = str(path).lower().rpartition(".")[2]
    if ending in MAGICS and kind != ending:
        raise SourceError(f"{path}: this is not a {NAMES[ending]} file; download it again")
    return kind


def without_compression(name: str) -> str:
    """Return a file name without the ending of a compression, such as .gz."""
    stem, dot, _ = name.rpartition(".")
    return stem if dot and compression_of(name) else name


# Functions that decompress text files and dumps.


def text_parts(path: str | Path, start: int = 0, stop: int | None = None) -> Parts:
    """Decompress a text file and yield it in parts; raises Damaged.

    Decodes only the compressed blocks that begin at bytes `start` to `stop` of the file.
    """
    return _bounded(compression_of(path), path, _refuse, start, stop)


def plain_parts(path: str | Path, start: int, stop: int | None, size: int) -> Parts:
    """Yield the bytes `start` to `stop` of a file in parts of `size` bytes."""
    with opened(path, start, stop) as file:
        while part := file.read(size):
            yield part


def _refuse(text: str) -> NoReturn:
    raise Damaged(text)


def salvage(path: str | Path, note: Note, start: int = 0, stop: int | None = None) -> Parts:
    """Decompress a dump and yield it in parts; b'' stands where content is lost.

    `note` is called with a line of text per damaged place; content after the place may be lost.
    Only the blocks that begin at bytes `start` to `stop` are decoded; the function `entries`
    returns such offsets. Raises SourceError for a file that cannot be read at all, and MissingExtra
    for a 7z archive if no decoder of 7z is installed.
    """
    held: list[bytes] = []
    size = 0
    for part in _bounded(kind_of(path), path, note, start, stop):
        held.append(part)
        size += len(part)
        if size and (size >= CHUNK or not part):
            yield b"".join(held)
            held, size = [], 0
        if not part:
            yield b""
    if size:
        yield b"".join(held)


def first_bytes(path: str | Path) -> bytes:
    """Return the first decompressed bytes of a dump, or b''; raises the errors of `salvage`."""
    with closing(DECODERS[kind_of(path)](path, lambda text: None, 0, None)) as parts:
        return next(filter(None, parts), b"")


def _bounded(
    kind: str, path: str | Path, note: Note, start: int = 0, stop: int | None = None
) -> Parts:
    """Decode the blocks that begin at bytes `start` to `stop`, and yield the content in parts.

    Against files made to fill the disk, decoding stops and `note` is called when the content
    exceeds both UNBOUNDED_BYTES and UNBOUNDED_RATIO times the size of the file.
    """
    size, most = 0, max(UNBOUNDED_BYTES, UNBOUNDED_RATIO * size_of(path))
    for part in DECODERS[kind](path, note, start, stop):
        size += len(part)
        if size > most:
            note(f"expands more than {UNBOUNDED_RATIO:,} times; the rest was left out")
            return
        yield part


# Decoders of each compression. After damage, a decoder calls `note`, then goes on or ends.


def _plain(path: str | Path, note: Note, start: int, stop: int | None) -> Parts:
    return plain_parts(path, start, stop, CHUNK)


def _bzip2(path: str | Path, note: Note, start: int, stop: int | None) -> Parts:
    size = None if stop is None else stop - start
    return decode_bzip2(plain_parts(path, start, None, BITS), note, inside=start > 0, stop=size)


def _streams(
    path: str | Path,
    note: Note,
    start: int,
    stop: int | None,
    *,
    new: Callable[[], Any],
    magic: bytes,
) -> Parts:
    """Decode the streams of a file one after the other, each with a decoder that `new` returns.

    `magic` are the first bytes of every stream. With an empty `magic`, the file is one truncated
    stream, and is reported as such.
    """
    with opened(path, start, stop) as file:
        data, decoder = file.read(PIECE), new()
        if not data:
            return
        if not data.startswith(magic):
            note("its compression is another one than its name says")
            return
        while data:
            try:
                part = decoder.decompress(data)
            except (zlib.error, lzma.LZMAError, EOFError) as error:
                note(f"damaged, the rest was left out ({error})")
                return
            if part:
                yield part
            if not (decoder.eof and magic):
                data = file.read(PIECE)
                continue
            data, decoder = _after_padding(decoder.unused_data, file), new()
            if not data:
                return
            if not data.startswith(magic):
                note("trailing garbage was left out")
                return
        note("truncated")


def _after_padding(unused: bytes, file: BinaryIO) -> bytes:
    """Return the next bytes after a stream and its padding of zeros; b'' at the end of the file.

    `unused` are the bytes after the stream that were read already; more are read from `file`.
    """
    data = unused.lstrip(b"\0")
    while not data:
        if not (piece := file.read(PIECE)):
            return b""
        data = piece.lstrip(b"\0")
    return data + file.read(PIECE)


def _zstd(path: str | Path, note: Note, start: int, stop: int | None) -> Parts:
    with opened(path, start, stop) as file:
        stream = pa.CompressedInputStream(pa.PythonFile(file), "zstd")
        while True:
            try:
                data = stream.read(SMALL)
            except (OSError, pa.ArrowException) as error:
                cut = "truncated" in str(error).lower()
                note("truncated" if cut else f"damaged, the rest was left out ({error})")
                return
            if not data:
                return
            yield data


def _seven_zip(path: str | Path, note: Note, start: int, stop: int | None) -> Parts:
    """Decode the members of a 7z archive; raises SourceError for a URL.

    A truncated archive lacks its directory, which is at the end. Only its first stream is decoded,
    if it is LZMA2.
    """
    if is_url(path):
        raise SourceError(f"{path}: a 7z archive is read from a folder here: download it first")
    failures: list[str] = []
    empty = True
    for part in _members(Path(path), failures, start, stop):
        empty = False
        yield part
    if failures and not empty:
        note(f"damaged, the rest was left out ({failures[0]})")
    elif failures:
        # Filter that 7-Zip uses at its highest compression level, -mx=9
        chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 << 20}]
        decoder = partial(lzma.LZMADecompressor, lzma.FORMAT_RAW, filters=chain)
        yield from _streams(path, note, seven_zip.HEADER, None, new=decoder, magic=b"")


DECODERS: dict[str, Callable[[str | Path, Note, int, int | None], Parts]] = {
    "": _plain,
    "bz2": _bzip2,
    "7z": _seven_zip,
    "gz": partial(_streams, new=partial(zlib.decompressobj, 31), magic=MAGICS["gz"]),
    "xz": partial(
        _streams, new=partial(lzma.LZMADecompressor, memlimit=WINDOW_MAX), magic=MAGICS["xz"]
    ),
    "zst": _zstd,
}


# Functions that find offsets in a dump at which decoding can begin.


def entries(path: str | Path, size: int) -> list[int]:
    """Return offsets in a dump at which decoding can begin: 0, then offsets at least `size` apart.

    In a bzip2 or uncompressed file decoding can begin at any byte. In a zstd file it begins at a
    frame, in a gzip file of the program bgzip at a member, in a 7z archive at a stream ("folder").
    For any other file, and for a compressed URL other than bzip2, only 0 is returned.
    """
    kind, total = kind_of(path), size_of(path)
    if total <= size:
        return [0]
    if kind in ("", "bz2"):
        return list(range(0, total, size))
    # Finding the offsets in a URL would download the whole file
    if kind in _STARTS and not is_url(path):
        with opened(path) as file:
            return _spaced(_STARTS[kind](file), size)
    if kind == "7z" and not is_url(path):
        # py7zr may raise any exception for a damaged archive; the archive is then not divided
        with suppress(Exception):
            if directory := seven_zip.read_directory(Path(path)):
                return _spaced(seven_zip.stream_starts(directory), size)
    return [0]


def _spaced(starts: Iterable[int], size: int) -> list[int]:
    """Return 0 and each offset in `starts` that is at least `size` after the last returned one."""
    chosen = [0]
    for start in starts:
        if start - chosen[-1] >= size:
            chosen.append(start)
    return chosen


def _frame_starts(file: BinaryIO) -> list[int]:
    """Return the offsets of the frames in a zstd file.

    In a damaged file, offsets after the damage are missing.
    """
    starts = [0]
    while head := file.read(6):
        at = starts[-1]
        if head[:4] == _FRAME:
            flags = head[4]
            is_single = flags >> 5 & 1
            content = (is_single, 2, 4, 8)[flags >> 6]
            file.seek(at + 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3] + content)
            is_last = False
            while not is_last and len(block := file.read(3)) == 3:
                bits = int.from_bytes(block, "little")
                is_last = bool(bits & 1)
                file.seek(1 if bits >> 1 & 3 == _RUN_LENGTH else bits >> 3, os.SEEK_CUR)
            file.seek(4 * (flags >> 2 & 1), os.SEEK_CUR)
        elif head[1:4] == _SKIPPABLE[1:] and head[0] & 0xF0 == _SKIPPABLE[0]:
            file.seek(at + 8 + int.from_bytes(head[4:] + file.read(2), "little"))
        else:
            break
        starts.append(file.tell())
    return starts[:-1] or starts


def _member_starts(file: BinaryIO) -> Iterator[int]:
    """Yield the offsets of the members of a gzip file.

    bgzip writes the size of each member into its header (BGZF); stops at a member without a size.
    """
    start = 0
    while (head := file.read(18)).startswith(_SIZED) and head[12:16] == b"BC\2\0":
        yield start
        start += 1 + int.from_bytes(head[16:], "little")
        file.seek(start)


_STARTS: dict[str, Callable[[BinaryIO], Iterable[int]]]
_STARTS = {"zst": _frame_starts, "gz": _member_starts}


# Function that decodes the members of a 7z archive as a stream.


def _members(
    path: Path, failures: list[str], start: int = 0, stop: int | None = None
) -> Iterator[bytes]:
    """Yield the content of the members of a 7z archive in parts.

    LZMA and LZMA2 are decoded in Python, other methods by a 7-Zip program. If decoding ends early,
    the reason is added to `failures`. Raises SourceError if a 7-Zip program is needed and not
    installed, MissingExtra if neither py7zr nor such a program is installed.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    directory: seven_zip.Directory | None = None
    try:
        directory = seven_zip.read_directory(path)
    except ImportError:
        if program is None:
            raise MissingExtra("py7zr", "7z") from None
    except Exception as error:  # py7zr may raise any exception for a damaged archive
        if program is None:
            failures.append(str(error))
            return
    if directory is not None:
        with opened(path) as file:
            chosen = seven_zip.within(directory, start, stop)
            yield from seven_zip.decoded_members(file, chosen, failures)
        return
    if program is None:
        raise SourceError(
            f"{path}: only a 7-Zip program ({', '.join(PROGRAMS)}) decodes it: install one"
        )
    with subprocess.Popen(
        [program, "e", "-so", "-bd", "-y", str(path.absolute())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield from iter(lambda: cast(BinaryIO, process.stdout).read(CHUNK), b"")
        except GeneratorExit:
            process.kill()
            raise
    if process.returncode:
        failures.append(f"{Path(program).name} ended with {process.returncode}")
