"""Decompress a dump file chunk by chunk; what can be decoded of a damaged one is kept."""

import lzma
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from noisegen.errors import SourceError
from noisegen.mining import bzip2_blocks, seven_zip

CHUNK = 512 << 10  # bytes given at once, about: they stay in the cache while they are scanned
FEED = 512 << 10  # compressed bytes read at once
SMALL = 16 << 10  # decompressed at once: what is lost before damage
MAGICS = {  # how files of a kind begin
    "bz2": b"BZh",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "gz": b"\x1f\x8b",
    "zst": b"\x28\xb5\x2f\xfd",
    "xz": b"\xfd7zXZ\x00",
}
NAMES = {"bz2": "bzip2", "7z": "7-Zip", "gz": "gzip", "zst": "zstd", "xz": "xz"}
UNBOUNDED_BYTES = 1 << 30  # from so many bytes on, a dump must not be ...
UNBOUNDED_RATIO = 20_000  # ... so many times its file (real ones: 20 to 400 times)

Note = Callable[[str], None]  # is told what is lost
Parts = Generator[bytes, None, None]


def kind(path: Path) -> str:
    """Return 'bz2', '7z', 'gz', 'zst', 'xz' or '' (plain) from the first bytes of a file.

    Raises SourceError for an empty file, and one that is not what its ending says.
    """
    with _opened(path) as file:
        head = file.read(8)
    if not head:
        raise SourceError(f"{path}: the file is empty")
    found = next((name for name, magic in MAGICS.items() if head.startswith(magic)), "")
    ending = path.suffix.lower().removeprefix(".")
    if ending in MAGICS and found != ending:
        raise SourceError(f"{path}: this is no {NAMES[ending]} file; download it again?")
    return found


def chunks(path: Path, note: Note) -> Iterator[bytes]:
    """Yield the decompressed bytes; damage is told to `note`, and what follows it may be lost.

    An empty chunk stands where bytes are missing between others.

    Raises SourceError for a file that cannot be read at all, MissingExtra without a 7z decoder.
    """
    parts = DECODERS[kind(path)](path, note)
    return _joined(_bounded(parts, path.stat().st_size, note))


def first_bytes(path: Path) -> bytes:
    """Return what the file begins with, decompressed: a block of it, or nothing.

    Raises SourceError as `chunks` does.
    """
    with closing(DECODERS[kind(path)](path, lambda text: None)) as parts:
        return next(filter(None, parts), b"")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _read(file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except OSError as error:
        raise SourceError(f"cannot read {file.name}: {error.strerror}") from error


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts to chunks, but not over a gap."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size and (size >= CHUNK or not part):
            yield b"".join(held)
            held, size = [], 0
        if not part:
            yield b""
    if size:
        yield b"".join(held)


def _bounded(parts: Iterable[bytes], compressed: int, note: Note) -> Iterator[bytes]:
    """Stop at what grows beyond all measure."""
    size = 0
    for part in parts:
        size += len(part)
        if size > max(UNBOUNDED_BYTES, UNBOUNDED_RATIO * compressed):
            note(f"expands more than {UNBOUNDED_RATIO:,} times; the rest was left out")
            return
        yield part


def _plain(path: Path, note: Note) -> Parts:
    with _opened(path) as file:
        while data := _read(file, FEED):
            yield data


class _Decoder(Protocol):
    """What the decoders of the standard library have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """zlib's decoder of one gzip member, with the interface of the others."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(31)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data


def _members(new: Callable[[], _Decoder], magic: bytes) -> Callable[[Path, Note], Parts]:
    """Return the reader of a file of one or several compressed streams."""

    def decoded(path: Path, note: Note) -> Parts:
        with _opened(path) as file:
            rest = _read(file, FEED)
            while rest.startswith(magic):
                decoder = new()
                yield from _member(decoder, rest, file, note)
                rest = (decoder.unused_data or _read(file, FEED)) if decoder.eof else b""
                rest = rest.lstrip(b"\0")  # padding between streams
            if rest:
                note("trailing garbage was left out")

    return decoded


def _member(decoder: _Decoder, data: bytes, file: BinaryIO, note: Note) -> Iterator[bytes]:
    """Yield one compressed stream; `data` is its beginning."""
    while not decoder.eof:
        try:
            part = decoder.decompress(data, SMALL)
        except (zlib.error, lzma.LZMAError) as error:
            note(f"damaged, the rest was left out ({error})")
            return
        if part:
            yield part
        ended = not part and decoder.needs_input and not data
        data = _read(file, FEED) if decoder.needs_input and not ended else b""
        if ended and not decoder.eof:
            note("truncated")
            return


def _zstd(path: Path, note: Note) -> Parts:
    with _opened(path) as file:
        stream = pa.CompressedInputStream(pa.PythonFile(file), "zstd")
        try:
            while data := stream.read(SMALL):
                yield data
        except (OSError, pa.ArrowException) as error:
            cut = "Truncated" in str(error) or "truncated" in str(error)
            note("truncated" if cut else f"damaged, the rest was left out ({error})")


def _bzip2(path: Path, note: Note) -> Parts:
    with _opened(path) as file:
        yield from bzip2_blocks.decode(iter(lambda: _read(file, FEED), b""), note)


def _raw_lzma2(path: Path, note: Note) -> Parts:
    """Decode the first stream of an archive without its directory, which a cut takes away."""
    chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 << 20}]  # of 7z's strongest preset, -mx=9
    with _opened(path) as file:
        file.seek(seven_zip.HEADER)
        decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain)
        yield from _member(decoder, _read(file, FEED), file, note)
        if decoder.eof:
            note("truncated")


def _seven_zip(path: Path, note: Note) -> Parts:
    """Read through a 7-Zip program, else py7zr; if neither can, decode the raw LZMA2 stream."""
    failures: list[str] = []
    empty = True
    for part in seven_zip.members(path, failures):
        empty = False
        yield part
    if failures and empty:
        yield from _raw_lzma2(path, note)
    elif failures:
        note(f"damaged, the rest was left out ({failures[0]})")


DECODERS: dict[str, Callable[[Path, Note], Parts]] = {
    "": _plain,
    "bz2": _bzip2,
    "7z": _seven_zip,
    "gz": _members(_Gzip, MAGICS["gz"]),
    "xz": _members(lzma.LZMADecompressor, MAGICS["xz"]),
    "zst": _zstd,
}
