"""Files as bytes and lines: one decompression, bounded, that keeps what can be decoded of damage.

`read_parts` is for text: damage ends it with `Damaged`. `salvage` is for dumps: damage is noted,
and what can be decoded after it is kept. Every bzip2 block has a checksum, so a damaged one costs
itself only; the members of a 7z archive are streamed, no file of them is ever made.
"""

import bz2
import lzma
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import pyarrow as pa

from noisegen.errors import MissingExtra, SourceError

BOM = b"\xef\xbb\xbf"
TEXT_MAX = 32 << 20  # bytes of one text
LINE_MAX = 2 * TEXT_MAX  # bytes kept of one line: a JSON line is longer than its text
SCAN = 4 << 20  # bytes of lines at once: they fit into the cache
CHUNK = 512 << 10  # bytes of a dump at once, about: they stay in the cache while they are scanned
FEED = 64 << 10  # compressed bytes read at once, of bzip2 `CHUNK`
SMALL = 16 << 10  # decompressed at once: what is lost before damage
UNBOUNDED_BYTES = 1 << 30  # from so many bytes on, a compressed file must not expand to ...
UNBOUNDED_RATIO = 20_000  # ... so many times its size (real dumps: 20 to 400 times)
COMPRESSIONS = ("gz", "zst", "bz2", "xz")  # of text; dumps may also be 7z
MAGICS = {  # how files of a kind begin
    "bz2": b"BZh",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "gz": b"\x1f\x8b",
    "zst": b"\x28\xb5\x2f\xfd",
    "xz": b"\xfd7zXZ\x00",
}
NAMES = {"bz2": "bzip2", "7z": "7-Zip", "gz": "gzip", "zst": "zstd", "xz": "xz"}
BLOCK = 0x314159265359.to_bytes(6, "big")  # begins every bzip2 block, at any bit
END = 0x177245385090.to_bytes(6, "big")  # ends a stream; a 32-bit checksum follows
BLOCK_MAX = 4 << 20  # compressed bytes of a block; libbz2's blocks hold 900 kB
PROGRAMS = ("7zz", "7z", "7za")
HEADER = 32  # bytes before the first stream (7zFormat.txt, SignatureHeader)
LZMA, LZMA2, BCJ = b"\x03\x01\x01", b"\x21", b"\x03\x03\x01\x03"  # ids of coders

Note = Callable[[str], None]  # takes a line that says what is lost
Parts = Generator[bytes, None, None]


class Damaged(Exception):  # noqa: N818  (not an error of the caller: what came before it is kept)
    """A compressed stream ends early or is corrupt."""


def compression_of(path: str | Path) -> str:
    """Return the compression that the ending of a file of text says, '' for none."""
    ending = str(path).lower().rpartition(".")[2]
    return ending if ending in COMPRESSIONS else ""


def read_parts(path: str | Path, start: int = 0, stop: int | None = None) -> Parts:
    """Yield a file of text, decompressed as its ending says, in parts of any size.

    `start` and `stop` are bytes of a file that is not compressed; '-' is stdin. Raises SourceError
    for a file that cannot be opened or read, Damaged after the last part that can be decoded.
    """
    if path == "-":
        yield from iter(lambda: sys.stdin.buffer.read(SCAN), b"")
    elif compression := compression_of(path):
        path = Path(path)
        yield from _bounded(DECODERS[compression](path, _refuse), path, _refuse)
    else:
        yield from _plain(Path(path), _refuse, SCAN, start, stop)


def _refuse(text: str) -> NoReturn:
    raise Damaged(text)


def read_whole(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file, decompressed; raises SourceError if it is too large."""
    held = bytearray()
    try:
        for part in read_parts(path):
            held += part
            if len(held) > bytes_max:
                raise SourceError(f"{path} is larger than {bytes_max >> 20} MiB: split it")
    except Damaged as damage:
        raise SourceError(f"{path} is damaged: {damage}") from damage
    return bytes(held)


def blocks(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield whole lines, about `size` bytes of them; of a line over LINE_MAX only its beginning.

    Where blocks end depends on the content alone, but for lines over `size`.
    """
    held, end = bytearray(), 0
    try:
        for part in parts:
            taken = 0
            while taken < len(part):
                chunk = part[taken : taken + size - len(held) % size]
                taken += len(chunk)
                if not end and len(held) > LINE_MAX:
                    del held[LINE_MAX + 1 :]
                    chunk = chunk[at:] if (at := chunk.find(b"\n")) >= 0 else b""
                if (at := chunk.rfind(b"\n")) >= 0:
                    end = len(held) + at + 1
                held += chunk
                if end and len(held) >= size:
                    yield _cut_off(held, end)
                    end = 0
    except Damaged:
        if end:
            yield _cut_off(held, end)
        raise
    if held:
        yield bytes(held)


def _cut_off(held: bytearray, end: int) -> bytes:
    """Remove the beginning and return it, copied once."""
    with memoryview(held) as view:
        beginning = bytes(view[:end])
    del held[:end]
    return beginning


def read_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file without their LF or CRLF, and without a byte order mark.

    A line over LINE_MAX is cut. Raises SourceError, and Damaged after the last whole line.
    """
    first = True
    for block in blocks(read_parts(path), SCAN):
        for line in (block.removeprefix(BOM) if first else block).removesuffix(b"\n").split(b"\n"):
            yield line.removesuffix(b"\r")
        first = False


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what Arrow raises for a file it cannot read into a SourceError of one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"cannot read {path}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its name."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# Dumps.


def salvage(path: Path, note: Note) -> Iterator[bytes]:
    """Yield the decompressed bytes; damage is noted, and what follows it may be lost.

    What a file is shows in its first bytes. An empty chunk stands where bytes are missing between
    others. Raises SourceError for a file that cannot be read at all, MissingExtra without a 7z
    decoder.
    """
    return _joined(_bounded(DECODERS[kind_of(path)](path, note), path, note))


def first_bytes(path: Path) -> bytes:
    """Return what a dump begins with, decompressed: a block of it, or nothing.

    Raises SourceError as `salvage` does.
    """
    with closing(DECODERS[kind_of(path)](path, lambda text: None)) as parts:
        return next(filter(None, parts), b"")


def kind_of(path: Path) -> str:
    """Return 'bz2', '7z', 'gz', 'zst', 'xz' or '' (plain) from the first bytes of a file.

    Raises SourceError for an empty file, and one that is not what its ending says.
    """
    with _opened(path) as file:
        head = file.read(8)
    if not head:
        raise SourceError(f"{path}: the file is empty")
    kind = next((name for name, magic in MAGICS.items() if head.startswith(magic)), "")
    ending = path.suffix.lower().removeprefix(".")
    if ending in MAGICS and kind != ending:
        raise SourceError(f"{path}: this is no {NAMES[ending]} file; download it again?")
    return kind


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


# Decoders: each notes damage and ends, or goes on after it.


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


def _bounded(parts: Iterable[bytes], path: Path, note: Note) -> Parts:
    """Stop at what expands beyond all measure."""
    size, most = 0, max(UNBOUNDED_BYTES, UNBOUNDED_RATIO * path.stat().st_size)
    for part in parts:
        size += len(part)
        if size > most:
            note(f"expands more than {UNBOUNDED_RATIO:,} times; the rest was left out")
            return
        yield part


def _plain(
    path: Path, note: Note, size: int = CHUNK, start: int = 0, stop: int | None = None
) -> Parts:
    with _opened(path) as file:
        file.seek(start)
        left = sys.maxsize if stop is None else stop - start
        while left > 0 and (part := _read(file, min(left, size))):
            yield part
            left -= len(part)


def _streams(new: Callable[[], Any], kind: str) -> Callable[[Path, Note], Parts]:
    """Return the decoder of a file of one or several compressed streams."""

    def decoded(path: Path, note: Note) -> Parts:
        with _opened(path) as file:
            data = _read(file, FEED)
            if data and not data.startswith(MAGICS[kind]):
                note(f"this is no {NAMES[kind]} file")
                return
            while data.startswith(MAGICS[kind]):
                decoder = new()
                yield from _stream(decoder, data, file, note)
                data = decoder.unused_data.lstrip(b"\0")  # there may be padding between streams
                while decoder.eof and not data and (data := _read(file, FEED)):
                    data = data.lstrip(b"\0")
            if data:
                note("trailing garbage was left out")

    return decoded


def _stream(decoder: Any, data: bytes, file: BinaryIO, note: Note) -> Iterator[bytes]:
    """Yield one compressed stream; `data` is its beginning, `decoder` zlib's or lzma's."""
    while not decoder.eof:
        held = getattr(decoder, "unconsumed_tail", b"")  # zlib gives back what lzma holds
        try:
            part = decoder.decompress(held + data, SMALL)
        except (zlib.error, lzma.LZMAError, EOFError) as error:
            note(f"damaged, the rest was left out ({error})")
            return
        if part:
            yield part
        is_hungry = getattr(decoder, "needs_input", not getattr(decoder, "unconsumed_tail", b""))
        ended = not part and is_hungry and not data
        data = _read(file, FEED) if is_hungry and not ended else b""
        if ended and not decoder.eof:
            note("truncated")
            return


def _zstd(path: Path, note: Note) -> Parts:
    with _opened(path) as file:
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


def _seven_zip(path: Path, note: Note) -> Parts:
    """Read the members of an archive; of a cut one, which lacks its directory, the first stream."""
    failures: list[str] = []
    empty = True
    for part in read_7z(path, failures):
        empty = False
        yield part
    if failures and not empty:
        note(f"damaged, the rest was left out ({failures[0]})")
    elif failures:
        chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 << 20}]  # of the strongest preset, -mx=9
        with _opened(path) as file:
            file.seek(HEADER)
            decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain)
            yield from _stream(decoder, _read(file, FEED), file, note)
            if decoder.eof:
                note("truncated")


DECODERS: dict[str, Callable[[Path, Note], Parts]] = {
    "": _plain,
    "bz2": lambda path, note: decode_bzip2(_plain(path, note), note),
    "7z": _seven_zip,
    "gz": _streams(lambda: zlib.decompressobj(31), "gz"),
    "xz": _streams(lzma.LZMADecompressor, "xz"),
    "zst": _zstd,
}


# bzip2, block by block.


def decode_bzip2(parts: Iterable[bytes], note: Note) -> Parts:
    """Yield the blocks of a file of one or several streams; an empty one stands for one lost."""
    last = False
    for block, skipped, last in _bzip2_blocks(parts):
        losses: list[str] = []
        content = _bzip2_block(block, skipped, last, losses.append)
        if content:
            yield content
        for loss in losses:
            note(loss)
        if content is None:
            yield b""
    if not last:
        note("truncated")


def bit_positions(data: bytes, magic: bytes, start: int = 0) -> list[int]:
    """Return the positions in bits, from byte `start` on, at which six bytes begin."""
    wanted, positions = int.from_bytes(magic, "big"), []
    for shift in range(8):
        middle = (wanted << (8 - shift)).to_bytes(7, "big")[1:6] if shift else magic
        offset = 1 if shift else 0
        at = data.find(middle, start + offset)
        while at >= 0:
            seven = data[at - offset : at - offset + 7].ljust(7, b"\0")
            if int.from_bytes(seven, "big") >> (8 - shift) & 0xFFFFFFFFFFFF == wanted:
                positions.append(8 * (at - offset) + shift)
            at = data.find(middle, at + 1)
    return sorted(positions)


def _bzip2_blocks(parts: Iterable[bytes]) -> Iterator[tuple[bytes, int, bool]]:
    """Yield the bits from a block's magic to the end of the next one, moved to the first of a byte.

    With them go the number of bits they were moved by, and whether they are the last. The decoder
    stops early at the end of its input, so the next magic must be there.
    """
    held, begin, searched = b"", -1, 0
    for part in parts:
        held += part
        for position in bit_positions(held, BLOCK, searched):
            if position > begin >= 0:
                yield _moved(held, begin, position + 48), begin % 8, False
            begin = max(begin, position)
        if len(held) - begin // 8 > BLOCK_MAX and begin >= 0:
            yield _moved(held, begin, begin + 8 * BLOCK_MAX), begin % 8, False
            begin = -1
        cut = begin // 8 if begin >= 0 else max(0, len(held) - 32)
        held, begin = held[cut:], begin - 8 * cut if begin >= 0 else -1
        searched = max(0, len(held) - 7)
    if begin >= 0:
        yield _moved(held, begin, 8 * len(held)), begin % 8, True
    elif bit_positions(held, END):
        yield held, 0, True


def _moved(data: bytes, begin: int, end: int) -> bytes:
    """Return the bits from `begin` on, at least up to `end`, in whole bytes."""
    if begin % 8 == 0:
        return data[begin // 8 : -(-end // 8)]
    part = data[begin // 8 : -(-end // 8)]
    number = int.from_bytes(part, "big") << begin % 8
    return number.to_bytes(len(part) + 1, "big")[1:]


def _bzip2_block(data: bytes, skipped: int, last: bool, note: Note) -> bytes | None:
    """Decode a block, whose stream may end in it; None for a damaged one."""
    decoder = bz2.BZ2Decompressor()
    content: bytes | None = b""
    try:
        if data.startswith(BLOCK):
            content = decoder.decompress(b"BZh9" + data)
    except OSError:
        content = None  # also where a stream ends: its checksum is over all its blocks
    if content is not None and not decoder.eof and not last:
        return content
    ends = bit_positions(data, END)
    if content is None and ends:  # the last block of a stream, without the stream's checksum
        end = ends[0] + 48
        whole = int.from_bytes(data[: -(-end // 8)], "big") >> -end % 8 << -end % 8
        with suppress(OSError):
            decoder = bz2.BZ2Decompressor()
            content = decoder.decompress(b"BZh9" + whole.to_bytes(-(-end // 8), "big"))
    if content is None:
        note("a damaged block was left out")
    if last and (not ends or ends[0] + 80 > 8 * len(data) - skipped):
        note("truncated")
    elif ends:  # after a stream comes another one, or nothing
        end = ends[0] + 80
        end += -(skipped + end) % 8  # to a whole byte of the file
        tail = _moved(data, end, 8 * len(data)).strip(b"\0")
        if tail and not tail.startswith(b"BZh"):
            note("trailing garbage was left out")
    return content


# 7z archives, as a stream.


class _OtherMethod(Exception):  # noqa: N818
    """An archive is packed by a method that lzma has not."""


@dataclass(frozen=True)
class _Directory:
    """The streams of an archive, (packed bytes, bytes, filters), and (bytes, checksum) of members.

    The members lie one after the other in the streams.
    """

    offset: int
    streams: list[tuple[int, int, list[dict[str, int]]]]
    members: list[tuple[int, int]]


def read_7z(path: Path, failures: list[str]) -> Iterator[bytes]:
    """Yield the content of all members; why it ended early is added to `failures`.

    LZMA and LZMA2 are decoded here, other methods by a 7-Zip program. Raises SourceError without
    one, MissingExtra without py7zr, which reads the directory.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    try:
        directory = _directory(path)
    except ImportError:
        if program is None:
            raise MissingExtra("py7zr", "7z") from None
    except _OtherMethod as error:
        if program is None:
            raise SourceError(
                f"{path}: only a 7-Zip program ({', '.join(PROGRAMS)}) decodes it: install one"
            ) from error
    except Exception as error:  # whatever py7zr raises for a damaged archive
        if program is None:
            failures.append(str(error))
            return
    else:
        yield from _decoded_streams(path, directory, failures)
        return
    yield from _piped(program, path, failures)


def _directory(path: Path) -> _Directory:
    """Read what an archive has; raises _OtherMethod for what is not decoded here."""
    import py7zr

    with py7zr.SevenZipFile(path) as archive:
        streams: Any = archive.header.main_streams
        sizes = streams.packinfo.packsizes
        folders = streams.unpackinfo.folders
        packed = [
            (size, folder.unpacksizes[-1], [*map(_filter, reversed(folder.coders))])
            for size, folder in zip(sizes, folders, strict=True)
        ]
        members = [(member.uncompressed, member.crc32 or 0) for member in archive.list()]
        return _Directory(HEADER + streams.packinfo.packpos, packed, members)


def _filter(coder: Mapping[str, bytes]) -> dict[str, int]:
    """Return a coder as lzma's filter; raises _OtherMethod."""
    given = coder["properties"]
    if coder["method"] == BCJ:
        return {"id": lzma.FILTER_X86}
    if coder["method"] == LZMA2:
        size = (2 | given[0] & 1) << given[0] // 2 + 11
        return {"id": lzma.FILTER_LZMA2, "dict_size": size}
    if coder["method"] != LZMA:
        raise _OtherMethod
    others, lc = divmod(given[0], 9)
    pb, lp = divmod(others, 5)
    size = int.from_bytes(given[1:5], "little")
    return {"id": lzma.FILTER_LZMA1, "dict_size": size, "lc": lc, "lp": lp, "pb": pb}


def _decoded_streams(path: Path, directory: _Directory, failures: list[str]) -> Iterator[bytes]:
    """Yield the bytes of all streams, and compare the checksums of the members."""
    members = iter(directory.members)
    size, expected = next(members, (0, 0))
    checksum = 0
    for part in _stream_parts(path, directory, failures):
        yield part
        while part:
            checksum, size, part = zlib.crc32(part[:size], checksum), size - len(part), part[size:]
            if size <= 0:
                if checksum != expected:
                    failures.append("the checksum differs")
                size, expected = next(members, (len(part), 0))
                checksum = 0
    if size > 0 and not failures:
        failures.append("it has less than its directory says")


def _stream_parts(path: Path, directory: _Directory, failures: list[str]) -> Iterator[bytes]:
    begin = directory.offset
    with path.open("rb") as file:
        for packed, left, chain in directory.streams:
            decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain)
            file.seek(begin)
            begin += packed
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
                yield part


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
