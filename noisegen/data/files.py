"""Files as bytes: one decompression, bounded, that keeps what can be decoded of damage.

`read_parts` is for text: damage ends it with `Damaged`. `salvage` is for dumps: damage is noted,
and what can be decoded after it is kept. Every bzip2 block has a checksum, so a damaged one costs
itself only; the members of a 7z archive are streamed, no file of them is ever made.
"""

import bz2
import codecs
import lzma
import re
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

import pyarrow as pa

from noisegen.errors import MissingExtra, NoisegenError, SourceError

BOM = b"\xef\xbb\xbf"
TEXT_MAX = 32 << 20  # bytes of one text
LINE_MAX = 2 * TEXT_MAX  # bytes kept of one line: a JSON line is longer than its text
SCAN = 4 << 20  # bytes of lines at once: they fit into the cache
CHUNK = 512 << 10  # bytes of a dump at once, about: they stay in the cache while they are scanned
PIECE = 8 << 10  # compressed bytes decoded at once: what is lost before damage
SMALL = 16 << 10  # the same, decompressed
UNBOUNDED_BYTES = 1 << 30  # from so many bytes on, a compressed file must not expand to ...
UNBOUNDED_RATIO = 20_000  # ... so many times its size (real dumps: 20 to 400 times)
SHARDS = "part-*.parquet"  # the files of a run, in one folder
COMPRESSIONS = ("gz", "zst", "bz2", "xz")  # of text; dumps may also be 7z
MAGICS = {  # how files of a kind begin
    "bz2": b"BZh",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "gz": b"\x1f\x8b",
    "zst": b"\x28\xb5\x2f\xfd",
    "xz": b"\xfd7zXZ\x00",
}
NAMES = {"bz2": "bzip2", "7z": "7-Zip", "gz": "gzip", "zst": "zstd", "xz": "xz"}
BLOCK = 0x314159265359.to_bytes(6, "big")  # begins every bzip2 block, at any bit; a CRC-32 follows
END = 0x177245385090.to_bytes(6, "big")  # ends a stream; its CRC-32 follows
BLOCK_MAX = 4 << 20  # compressed bytes of a block; libbz2's blocks hold 900 kB
PROGRAMS = ("7zz", "7z", "7za")
HEADER = 32  # bytes before the first stream (7zFormat.txt, SignatureHeader)
CODERS = {
    b"\x03\x01\x01": lzma.FILTER_LZMA1,
    b"\x21": lzma.FILTER_LZMA2,
    b"\x03\x03\x01\x03": lzma.FILTER_X86,
}

WIDE = {  # how text begins that is not UTF-8; the longer mark first
    codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16",
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz",
}  # fmt: skip
_AWS = ("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; "
        "for a public bucket, FSSPEC_S3_ANON=true")  # fmt: skip
_GOOGLE = "run gcloud auth application-default login; for a public bucket, FSSPEC_GS_TOKEN=anon"
_AZURE = "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
CREDENTIALS = {  # how a store learns who asks, by the scheme of its URLs
    "s3": _AWS, "s3a": _AWS, "gs": _GOOGLE, "gcs": _GOOGLE,
    "az": _AZURE, "abfs": _AZURE, "abfss": _AZURE, "hf": "run hf auth login",
}  # fmt: skip
_REFUSED = re.compile(r"credential|denied|forbidden|unauthori[sz]ed|anonymous", re.IGNORECASE)

Note = Callable[[str], None]  # takes a line that says what is lost
Parts = Generator[bytes, None, None]
T = TypeVar("T")


class Damaged(Exception):  # noqa: N818  (not an error of the caller: what came before it is kept)
    """A compressed stream ends early or is corrupt."""


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Turn what the system, a store or Arrow raises for a file into a SourceError of one line."""
    try:
        yield
    except (NoisegenError, Damaged):
        raise
    except Exception as error:
        if not (is_url(path) or isinstance(error, OSError | pa.ArrowException)):
            raise
        raise SourceError(f"cannot read {path}: {reason_of(error, path)}") from error


def reason_of(error: Exception, path: object) -> str:
    """Return in one line why a file or URL cannot be read or written, and what to do."""
    scheme, reason = str(path).partition("://")[0], first_line(error)
    if reason.startswith("Protocol not known"):
        return f"{scheme}:// is not known; use s3://, gs://, az://, hf:// or https://"
    if reason.endswith("bucket does not exist"):
        return f"{reason}; create it first"
    hint = CREDENTIALS.get(scheme) if _REFUSED.search(reason) else None
    return f"{reason}; {hint}" if hint else reason


_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_meter: ContextVar[Counter[str] | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[Counter[str]]:
    """Yield a counter of the `bytes` that the block reads of input files, as they lie on disk."""
    meter: Counter[str] = Counter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def with_bytes(items: Iterable[T]) -> Iterator[tuple[T, int]]:
    """Yield items that come of input files, each with the bytes that were read for it."""
    items, nothing = iter(items), cast(T, None)
    while True:
        with metered() as meter:
            item = next(items, nothing)
        if item is None:
            return
        yield item, meter["bytes"]


def count_bytes(count: int) -> None:
    """Add bytes of an input file to the meter, if there is one."""
    if (meter := _meter.get()) is not None:
        meter["bytes"] += count


class _Metered:
    """A file whose reads are counted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(size)
        count_bytes(len(part))
        return part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """Open an input file or URL for reading; the meter counts what is read. Raises SourceError."""
    with reading(path):
        if is_url(path):
            store, name = store_of(path)
            file = store.open(name, "rb")
        else:
            file = Path(path).open("rb")  # noqa: SIM115  (closed below)
        with file:
            yield cast(BinaryIO, _Metered(file))


@contextmanager
def for_arrow(path: str) -> Iterator[Any]:
    """Yield what Arrow opens: the path of a file, or the open file of a URL.

    Raises SourceError, also for damage that Arrow meets in the block.
    """
    with reading(path):
        try:
            if is_url(path):
                store, name = store_of(path)
                with store.open(name, "rb") as file:
                    yield file
            else:
                yield path
        except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
            if isinstance(error, OSError) and (type(error) is not OSError or error.errno):
                raise  # of the system: Arrow's own have no number
            kind = "a Parquet" if path.lower().endswith(".parquet") else "an Arrow"
            problem = f"damaged, or not {kind} file; get the file again"
            raise SourceError(f"cannot read {path}: {problem}") from error


def is_url(path: object) -> bool:
    """Tell whether a path is a URL that fsspec opens, such as s3://bucket/news.txt."""
    return bool(_URL.match(str(path)))


def store_of(url: str | Path, options: Mapping[str, bool] | None = None) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path in it; raises what fsspec does."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("fsspec", "hf") from None
    store, path = url_to_fs(str(url), **options or {})
    return store, str(path)


def size_of(path: str | Path) -> int:
    """Return the bytes of a file or URL; raises SourceError."""
    with reading(path):
        if not is_url(path):
            return Path(path).stat().st_size
        store, name = store_of(path)
        if (size := store.size(name)) is None:
            raise OSError("the server does not say its size; download it first")
        return int(size)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its name."""
    message = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return str(message).splitlines()[0]


def shard_folder(run: Path) -> Path:
    """Return the folder of a run's shards: `data`, or `run` itself in those of the first layout."""
    return run if any(run.glob(SHARDS)) else run / "data"


def shard_files(run: Path) -> list[Path]:
    """Return the shards of a run of augment or prepare, in their order."""
    return sorted(shard_folder(run).glob(SHARDS), key=lambda path: (len(path.name), path.name))


def damaged_head(path: object) -> SourceError:
    """Return the error about a compressed text whose beginning cannot be decoded."""
    kind = NAMES[compression_of(str(path))]
    return SourceError(f"{path}: damaged before its first line, or not {kind}; get the file again")


def compression_of(path: str | Path) -> str:
    """Return the compression that the ending of a file of text says, '' for none."""
    ending = str(path).lower().rpartition(".")[2]
    return ending if ending in COMPRESSIONS else ""


def read_parts(path: str | Path, start: int = 0, stop: int | None = None) -> Parts:
    """Yield a file of text, decompressed as its ending says, in parts of any size.

    `start` is a byte of the content, `stop` one of a file that is not compressed; '-' is stdin,
    and a URL is opened by fsspec.
    Raises SourceError for a file that cannot be opened or read, or is UTF-16, Damaged after the
    last part that can be decoded.
    """
    parts: Iterable[bytes]
    if path == "-":
        parts = iter(lambda: sys.stdin.buffer.read(SCAN), b"")
    elif compression := compression_of(path):
        parts = _bounded(compression, path, _refuse)
    elif start:
        yield from _plain(path, _refuse, SCAN, start, stop)
        return
    else:
        parts = _plain(path, _refuse, SCAN, stop=stop)
    for part in not_wide(parts, path):
        yield part[start:]
        start = max(0, start - len(part))


def stdin_head() -> bytes:
    """Return what standard input begins with, and leave it there to be read."""
    stdin: Any = sys.stdin.buffer
    if hasattr(stdin, "peek"):
        head = stdin.peek()
    else:
        at, head = stdin.tell(), stdin.read(SMALL)
        stdin.seek(at)
    return next(not_wide([bytes(head)], "-"))


def not_wide(parts: Iterable[bytes], path: object) -> Iterator[bytes]:
    """Yield the parts of a text; raises SourceError if it begins as UTF-16, UTF-32 or gzip."""
    for number, part in enumerate(parts):
        for name in [name for bom, name in WIDE.items() if not number and part.startswith(bom)]:
            where = "standard input" if path == "-" else path
            how = f"iconv -f {name} -t UTF-8" if name.startswith("UTF") else f"{name} -d"
            raise SourceError(f"cannot read {where}: it is {name}; convert it first: {how}")
        yield part


def _refuse(text: str) -> NoReturn:
    raise Damaged(text)


def blocks(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield whole lines, about `size` bytes of them; of a line over LINE_MAX only its beginning.

    Where blocks end depends on the content alone, but for lines over `size`.
    """
    held = bytearray()  # the beginning of a line
    for chunk in _chunks(parts, size):
        if len(held) > LINE_MAX:
            chunk = chunk[chunk.find(b"\n") :] if b"\n" in chunk else b""
        if end := chunk.rfind(b"\n") + 1:
            yield bytes(held) + chunk[:end] if held else chunk[:end]
            held = bytearray(chunk[end:])
        else:
            held += chunk
            del held[LINE_MAX + 1 :]
    if held:
        yield bytes(held)


def _chunks(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes, `size` at a time; raises Damaged, as `parts` may, after the last."""
    held, damage = bytearray(), None
    try:
        for part in parts:
            held += part
            while len(held) >= size:
                with memoryview(held) as view:
                    chunk = bytes(view[:size])
                del held[:size]
                yield chunk
    except Damaged as error:
        damage = error
    if held:
        yield bytes(held)
    if damage:
        raise damage


# Dumps.


def salvage(path: Path, note: Note) -> Iterator[bytes]:
    """Yield the decompressed bytes; damage is noted, and what follows it may be lost.

    What a file is shows in its first bytes. An empty chunk stands where bytes are missing between
    others. Raises SourceError for a file that cannot be read at all, MissingExtra without a 7z
    decoder.
    """
    held: list[bytes] = []
    size = 0
    for part in _bounded(kind_of(path), path, note):
        held.append(part)
        size += len(part)
        if size and (size >= CHUNK or not part):
            yield b"".join(held)
            held, size = [], 0
        if not part:
            yield b""
    if size:
        yield b"".join(held)


def first_bytes(path: Path) -> bytes:
    """Return the first block of a dump, decompressed, or nothing; raises what `salvage` raises."""
    with closing(DECODERS[kind_of(path)](path, lambda text: None)) as parts:
        return next(filter(None, parts), b"")


def kind_of(path: Path) -> str:
    """Return 'bz2', '7z', 'gz', 'zst', 'xz' or '' (plain) from the first bytes of a file.

    Raises SourceError for an empty file, and one that is not what its ending says.
    """
    with reading(path), path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise SourceError(f"{path}: the file is empty")
    kind = next((name for name, magic in MAGICS.items() if head.startswith(magic)), "")
    ending = path.suffix.lower().removeprefix(".")
    if ending in MAGICS and kind != ending:
        raise SourceError(f"{path}: this is not a {NAMES[ending]} file; download it again")
    return kind


# Decoders: each notes damage and ends, or goes on after it.


def _bounded(kind: str, path: str | Path, note: Note) -> Parts:
    """Decode a file; stop at what expands without bound."""
    size, most = 0, max(UNBOUNDED_BYTES, UNBOUNDED_RATIO * size_of(path))
    for part in DECODERS[kind](path, note):
        size += len(part)
        if size > most:
            note(f"expands more than {UNBOUNDED_RATIO:,} times; the rest was left out")
            return
        yield part


def _plain(
    path: str | Path, note: Note, size: int = CHUNK, start: int = 0, stop: int | None = None
) -> Parts:
    with opened(path) as file:
        file.seek(start)
        left = sys.maxsize if stop is None else stop - start
        while left > 0 and (part := file.read(min(left, size))):
            yield part
            left -= len(part)


def _streams(
    path: str | Path, note: Note, new: Callable[[], Any], magic: bytes, start: int = 0
) -> Parts:
    """Decode streams that follow one another; without a magic number one, which has no end."""
    with opened(path) as file:
        file.seek(start)
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
            data = b""
            if decoder.eof and magic:
                data = decoder.unused_data.lstrip(b"\0")  # there may be padding between streams
                while not data and (piece := file.read(PIECE)):
                    data = piece.lstrip(b"\0")
                if not data:
                    return
                data, decoder = data + file.read(PIECE), new()
                if not data.startswith(magic):
                    note("trailing garbage was left out")
                    return
            data = data or file.read(PIECE)
        note("truncated")


def _zstd(path: str | Path, note: Note) -> Parts:
    with opened(path) as file:
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
    for part in _members(path, failures):
        empty = False
        yield part
    if failures and not empty:
        note(f"damaged, the rest was left out ({failures[0]})")
    elif failures:
        chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 << 20}]  # of the strongest preset, -mx=9
        decoder = partial(lzma.LZMADecompressor, lzma.FORMAT_RAW, filters=chain)
        yield from _streams(path, note, decoder, b"", HEADER)


DECODERS: dict[str, Callable[[Any, Note], Parts]] = {
    "": _plain,
    "bz2": lambda path, note: decode_bzip2(_plain(path, note), note),
    "7z": _seven_zip,
    "gz": partial(_streams, new=partial(zlib.decompressobj, 31), magic=MAGICS["gz"]),
    "xz": partial(_streams, new=lzma.LZMADecompressor, magic=MAGICS["xz"]),
    "zst": _zstd,
}


# bzip2, block by block.


def decode_bzip2(parts: Iterable[bytes], note: Note) -> Parts:
    """Yield the blocks of one or several streams; an empty one stands for one that is lost."""
    held, start, searched, kind = b"", 0, 0, "header"
    seen = False
    for part in parts:
        held += part
        magics = [
            (at, magic) for magic in (BLOCK, END) for at in bit_positions(held, magic, searched)
        ]
        for position, magic in sorted(magics):
            if position < start or (position == start and kind == "block"):
                continue  # in a checksum, or found before
            if kind == "block":
                yield _bzip2_block(held, start, position, note)
            elif kind == "header":
                header = held[start // 8 : position // 8].lstrip(b"\0")  # behind padding
                if len(header) != 4 or not header.startswith(MAGICS["bz2"]):
                    note("trailing garbage was left out")
            seen = True
            kind = "block" if magic == BLOCK else "header"
            start = position if magic == BLOCK else -(-(position + 80) // 8) * 8
        if len(held) - start // 8 > BLOCK_MAX:
            if kind != "lost":
                note("a damaged block was left out")
                yield b""
            start, kind = 8 * len(held) - 48, "lost"
        cut = max(0, min(start // 8, len(held) - 7))
        held, start = held[cut:], start - 8 * cut
        searched = max(0, len(held) - 7)
    if kind == "block":
        with suppress(OSError):
            size = 8 * len(held) - start
            rest = (_bits(held, start, 8 * len(held)) << -size % 8).to_bytes(-(-size // 8), "big")
            content = bz2.BZ2Decompressor().decompress(b"BZh9" + rest)
            yield from filter(None, [content])
    tail = held[start // 8 :].strip(b"\0")
    if kind == "block" or not seen or start > 8 * len(held) or tail.startswith(b"BZh"):
        note("truncated")
    elif tail:
        note("trailing garbage was left out")


def _bzip2_block(data: bytes, start: int, stop: int, note: Note) -> bytes:
    """Decode the bits of a block as a stream of its own; note it and return b'' if damaged."""
    decoder = bz2.BZ2Decompressor()
    bits = _bits(data, start, stop)
    checksum = bits >> max(0, stop - start - 80) & 0xFFFFFFFF  # the same as that of the stream
    size = stop - start + 80
    end = int.from_bytes(END, "big") << 32 | checksum
    stream = bits << 80 + -size % 8 | end << -size % 8
    with suppress(OSError):
        content = decoder.decompress(b"BZh9" + stream.to_bytes(-(-size // 8), "big"))
        if decoder.eof:
            return content
    note("a damaged block was left out")
    return b""


def _bits(data: bytes, start: int, stop: int) -> int:
    """Return the bits from `start` up to `stop` as a number."""
    part = bytearray(data[start // 8 : -(-stop // 8)])
    if part:
        part[0] &= 0xFF >> start % 8
    return int.from_bytes(part, "big") >> -stop % 8


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


# 7z archives, as a stream.


# The offset of the streams, (packed bytes, bytes, filters) of each, and (bytes, checksum) of the
# members, which lie one after the other in the streams.
_Directory = tuple[int, list[tuple[int, int, list[dict[str, int]]]], list[tuple[int, int]]]


def _members(path: Path, failures: list[str]) -> Iterator[bytes]:
    """Yield the content of all members; why it ended early is added to `failures`.

    LZMA and LZMA2 are decoded here, other methods by a 7-Zip program. Raises SourceError without
    one, MissingExtra without py7zr, which reads the directory.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    directory: _Directory | None = None
    try:
        directory = _directory(path)
    except ImportError:
        if program is None:
            raise MissingExtra("py7zr", "7z") from None
    except Exception as error:  # whatever py7zr raises for a damaged archive
        if program is None:
            failures.append(str(error))
            return
    if directory is not None:
        yield from _decoded_members(path, directory, failures)
        return
    if program is None:
        raise SourceError(
            f"{path}: only a 7-Zip program ({', '.join(PROGRAMS)}) decodes it: install one"
        )
    with subprocess.Popen(
        [program, "e", "-so", "-bd", "-y", str(path.absolute())],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield from iter(lambda: cast(BinaryIO, process.stdout).read(CHUNK), b"")
        except GeneratorExit:
            process.kill()
            raise
    if process.returncode:
        failures.append(f"{Path(program).name} ended with {process.returncode}")


def _directory(path: Path) -> _Directory | None:
    """Read what an archive has; None if it is packed by a method that is not decoded here."""
    import py7zr

    decode: Any = lzma._decode_filter_properties  # type: ignore[attr-defined]
    with py7zr.SevenZipFile(path) as archive:
        header: Any = archive.header.main_streams
        streams = []
        sizes, folders = header.packinfo.packsizes, header.unpackinfo.folders
        for size, folder in zip(sizes, folders, strict=True):
            chain = []
            for coder in reversed(folder.coders):
                if (number := CODERS.get(coder["method"])) is None:
                    return None
                has_properties = number != lzma.FILTER_X86
                chain.append(
                    decode(number, coder["properties"]) if has_properties else {"id": number}
                )
            streams.append((size, folder.unpacksizes[-1], chain))
        members = [(member.uncompressed, member.crc32 or 0) for member in archive.list()]
        return HEADER + header.packinfo.packpos, streams, members


def _decoded_members(path: Path, directory: _Directory, failures: list[str]) -> Iterator[bytes]:
    """Yield the bytes of all streams, and compare the checksums of the members."""
    begin, streams, sizes = directory
    members = iter(sizes)
    size, expected = next(members, (0, 0))
    checksum = 0
    with opened(path) as file:
        for packed, left, chain in streams:
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
                while part:
                    checksum = zlib.crc32(part[:size], checksum)
                    size, part = size - len(part), part[size:]
                    if size <= 0:
                        if checksum != expected:
                            failures.append("the checksum differs")
                        size, expected = next(members, (len(part), 0))
                        checksum = 0
    if size > 0:
        failures.append("it has less than its directory says")
