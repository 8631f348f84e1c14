"""Files as bytes: one decompression, bounded, that keeps what can be decoded of damage.

`read_parts` is for text: damage ends it with `Damaged`. `salvage` is for dumps: damage is noted,
and what can be decoded after it is kept. Every bzip2 block has a checksum, so a damaged one costs
itself only; the members of a 7z archive are streamed, no file of them is ever made.
"""

import codecs
import lzma
import os
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
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeVar, cast

import pyarrow as pa

from noisegen.data import seven_zip
from noisegen.data.bzip2 import Note, decode_bzip2
from noisegen.errors import MissingExtra, NoisegenError, SourceError, naming_extras

BOM = b"\xef\xbb\xbf"
TEXT_MAX = 32 << 20  # bytes of one text
LINE_MAX = 2 * TEXT_MAX  # bytes kept of one line: a JSON line is longer than its text
SCAN = 4 << 20  # bytes of lines at once: they fit into the cache
CHUNK = 512 << 10  # bytes of a dump at once, about: they stay in the cache while they are scanned
ENTERED_BYTES = 16 << 20  # of a compressed text that is cut where it can be entered ...
ENTRY_BYTES = 256 << 10  # ... at places so far from each other: about a block of bzip2
BITS = 64 << 10  # of a bzip2 file at once: its last block goes on beyond the piece it begins in
PIECE = 8 << 10  # compressed bytes decoded at once: what is lost before damage
SMALL = 16 << 10  # the same, decompressed
WINDOW_MAX = 1 << 30  # bytes that the decoder of an xz or 7z file may hold
UNBOUNDED_BYTES = 1 << 30  # from so many bytes on, a compressed file must not expand to ...
UNBOUNDED_RATIO = 20_000  # ... so many times its size (real dumps: 20 to 400 times)
SHARDS = "part-*.parquet"  # the files of a run, in one folder
COMPRESSIONS = ("gz", "zst", "bz2", "xz")  # of text; dumps may also be 7z
_FRAME = b"\x28\xb5\x2f\xfd"  # begins every frame of zstd (RFC 8878)
_SIZED = b"\x1f\x8b\x08\x04"  # begins a gzip member with fields of its own (RFC 1952)
_SKIPPABLE = b"\x50\x2a\x4d\x18"  # begins a zstd frame without content; 0x50 to 0x5f
_RUN_LENGTH = 1  # a zstd block of one byte, repeated
MAGICS = {  # how files of a kind begin
    "bz2": b"BZh",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "gz": b"\x1f\x8b",
    "zst": _FRAME,
    "xz": b"\xfd7zXZ\x00",
}
NAMES = {"bz2": "bzip2", "7z": "7-Zip", "gz": "gzip", "zst": "zstd", "xz": "xz"}
PROGRAMS = ("7zz", "7z", "7za")

WIDE = {  # how text begins that is not UTF-8; the longer mark first
    codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16",
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz",
}  # fmt: skip
UNMARKED: dict[tuple[bool, ...], str] = {  # bytes of four that are mostly zero
    (False, True, False, True): "UTF-16LE", (True, False, True, False): "UTF-16BE",
    (False, True, True, True): "UTF-32LE", (True, True, True, False): "UTF-32BE",
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

Parts = Generator[bytes, None, None]
T = TypeVar("T")


class PackedRange(NamedTuple):
    """Which pieces of a compressed file are decoded, and of what it holds the byte they begin with.

    `bounds` are where each piece begins, and where the last ends; none for a file as a whole.
    """

    content: int = 0
    bounds: tuple[int, ...] = ()


HEAD = PackedRange()  # of a file


class Piece(NamedTuple):
    """A piece of a file: what begins from `start` to `stop`, in bytes or in rows.

    `first` is the number of its first line or row, `rows` counts them, `size` is its share of the
    bytes of the file, `entry` which pieces of a compressed one are decoded.
    """

    start: int = 0
    stop: int | None = None
    first: int = 0
    rows: int = 0
    size: int = 0
    entry: PackedRange = HEAD


ALL = Piece()  # of a file


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
    """A file whose reads are counted, and end after so many bytes."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file, self._left = file, left

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(part)
        count_bytes(len(part))
        return part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def opened(path: str | Path, start: int = 0, stop: int | None = None) -> Iterator[BinaryIO]:
    """Open an input file or URL to read from byte `start` to `stop`; raises SourceError.

    The meter counts what is read.
    """
    with reading(path):
        refuse_endless(path)
        if is_url(path):
            store, name = store_of(path)
            file = store.open(name, "rb", block_size=SCAN)  # that of s3 reads 50 MB ahead
        else:
            file = Path(path).open("rb")  # noqa: SIM115  (closed below)
        with file:
            file.seek(start)
            yield cast(BinaryIO, _Metered(file, (sys.maxsize if stop is None else stop) - start))


@contextmanager
def for_arrow(path: str) -> Iterator[Any]:
    """Yield what Arrow opens: the path of a file, or the open file of a URL.

    Raises SourceError, also for damage that Arrow meets in the block.
    """
    with reading(path):
        refuse_endless(path)
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


def refuse_endless(path: str | Path) -> None:
    """Raise SourceError for a pipe or a device, which may have no end and is not read twice."""
    file = Path(path)
    if not is_url(path) and file.exists() and not (file.is_file() or file.is_dir()):
        raise SourceError(f"cannot read {path}: it is a pipe or device; save it as a file first")


def is_url(path: object) -> bool:
    """Tell whether a path is a URL that fsspec opens, such as s3://bucket/news.txt."""
    return bool(_URL.match(str(path)))


def absolute(path: str) -> str:
    """Return the path as it means the same in any folder, links followed; a URL is as it is."""
    return path if is_url(path) else str(Path(path).resolve())


def store_of(url: str | Path, options: Mapping[str, bool] | None = None) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path in it; raises what fsspec does."""
    with naming_extras("fsspec"):
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    store, path = url_to_fs(str(url), **options or {})
    return store, str(path)


def size_of(path: str | Path) -> int:
    """Return the bytes of a file or URL; raises SourceError."""
    with reading(path):
        if not is_url(path):
            return os.stat(path).st_size  # noqa: PTH116 - of hundreds of thousands of files
        store, name = store_of(path)
        if (size := store.size(name)) is None:
            raise OSError("the server does not say its size; download it first")
        return int(size)


def modified(url: str) -> int | None:
    """Return when a URL was last written, in ns; None where its store does not say."""
    with reading(url), suppress(NotImplementedError):
        store, name = store_of(url)
        if written := store.modified(name):
            return int(written.timestamp()) * 10**9
    return None


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


def compression_of(path: str | Path) -> str:
    """Return the compression that the ending of a file of text says, '' for none."""
    ending = str(path).lower().rpartition(".")[2]
    return ending if ending in COMPRESSIONS else ""


def read_parts(
    path: str | Path, start: int = 0, stop: int | None = None, entry: PackedRange = HEAD
) -> Parts:
    """Yield a file of text, decompressed as its ending says, in parts of any size.

    `start` and `stop` are bytes of the content, `entry` says what of a compressed file is decoded.
    '-' is stdin, and a URL is opened by fsspec.
    Raises SourceError for a file that cannot be opened or read, or is UTF-16, Damaged after the
    last part that can be decoded.
    """
    parts: Iterable[bytes]
    if path == "-":
        parts = iter(partial(_stdin().read, SCAN), b"")
    elif compression := compression_of(path):
        parts = _bounded(compression, path, _refuse)
        if entry.bounds:
            parts = (part for _, part in entered_parts(path, entry))
    elif start:
        yield from _plain(path, _refuse, start, stop, SCAN)
        return
    else:
        parts = _plain(path, _refuse, 0, stop, SCAN)
    at = entry.content
    for part in parts if entry.content else not_wide(parts, path):
        yield part[max(0, start - at) : None if stop is None else max(0, stop - at)]
        at += len(part)
        if stop is not None and at >= stop:
            return


def pieces_of_text(path: str) -> PackedRange:
    """Return the pieces of a compressed text that can be entered; none if it is small or remote."""
    if not compression_of(path) or is_url(path) or size_of(path) < ENTERED_BYTES:
        return HEAD
    bounds = *entries(path, ENTRY_BYTES), size_of(path)
    are_near = max(stop - start for start, stop in pairwise(bounds)) < ENTERED_BYTES
    return PackedRange(0, bounds) if are_near else HEAD


def entered_parts(path: str | Path, entry: PackedRange) -> Iterator[tuple[PackedRange, bytes]]:
    """Yield pieces of a compressed text, each part with its piece; raises Damaged."""
    content = entry.content
    for bounds in pairwise(entry.bounds):
        piece = PackedRange(content, bounds)
        for part in _bounded(compression_of(path), path, _refuse, *bounds):
            yield piece, part
            content += len(part)


def _stdin() -> Any:
    if sys.stdin is None:
        raise SourceError("standard input is closed: name a file, or pipe text into noisegen")
    return sys.stdin.buffer


def stdin_head() -> bytes:
    """Return what standard input begins with, and leave it there to be read."""
    stdin = _stdin()
    if hasattr(stdin, "peek"):
        head = stdin.peek()
    else:
        at, head = stdin.tell(), stdin.read(SMALL)
        stdin.seek(at)
    if head.startswith(b"PAR1"):
        raise SourceError("cannot read standard input: it is Parquet; save it and name the file")
    return next(not_wide([bytes(head)], "-"))


def not_wide(parts: Iterable[bytes], path: object) -> Iterator[bytes]:
    """Yield the parts of a text; raises SourceError if it begins as UTF-16, UTF-32 or gzip."""
    for number, part in enumerate(parts):
        if not number and (name := _other_encoding(part)):
            where = "standard input" if path == "-" else path
            how = f"iconv -f {name} -t UTF-8" if name.startswith("UTF") else f"{name} -d"
            raise SourceError(f"cannot read {where}: it is {name}; convert it first: {how}")
        yield part


def head_of_text(path: str, size: int) -> bytes:
    """Return the first lines of a file, about `size` bytes of them; raises SourceError."""
    try:
        with metered():  # they count when they are read again with the others
            return next(blocks(read_parts(path), size), b"")
    except Damaged as damage:
        known = f"damaged before its first line, or not {NAMES[compression_of(path)]}"
        raise SourceError(f"{path}: {known}; get the file again") from damage


def _other_encoding(head: bytes) -> str:
    """Return what a text is, by its mark or its zeros, if it is not UTF-8; else ''."""
    marked = next((name for mark, name in WIDE.items() if head.startswith(mark)), "")
    every_fourth = [head[at:SMALL:4] for at in range(4)] if len(head) >= 4 else []
    zeros = tuple(part.count(0) * 2 > len(part) for part in every_fourth)
    return marked or UNMARKED.get(zeros, "")


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


def salvage(path: str | Path, note: Note, start: int = 0, stop: int | None = None) -> Parts:
    """Yield the decompressed bytes; damage is noted, and what follows it may be lost.

    What a file is shows in its first bytes. An empty chunk stands where bytes are missing between
    others. With `start` and `stop`, of `entries`, only what begins between them. Raises SourceError
    for a file that cannot be read at all, MissingExtra without a 7z decoder.
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
    """Return the first block of a dump, decompressed, or nothing; raises what `salvage` raises."""
    with closing(DECODERS[kind_of(path)](path, lambda text: None, 0, None)) as parts:
        return next(filter(None, parts), b"")


def kind_of(path: str | Path) -> str:
    """Return 'bz2', '7z', 'gz', 'zst', 'xz' or '' (plain) from the first bytes of a file.

    Raises SourceError for an empty file, and one that is not what its ending says.
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


# Decoders: each notes damage and ends, or goes on after it.


def _bounded(
    kind: str, path: str | Path, note: Note, start: int = 0, stop: int | None = None
) -> Parts:
    """Decode a file, or what begins in it from `start` to `stop`; end at a boundless expansion."""
    size, most = 0, max(UNBOUNDED_BYTES, UNBOUNDED_RATIO * size_of(path))
    for part in DECODERS[kind](path, note, start, stop):
        size += len(part)
        if size > most:
            note(f"expands more than {UNBOUNDED_RATIO:,} times; the rest was left out")
            return
        yield part


def _plain(path: str | Path, note: Note, start: int, stop: int | None, size: int = CHUNK) -> Parts:
    with opened(path, start, stop) as file:
        yield from iter(lambda: file.read(size), b"")


def _bzip2(path: str | Path, note: Note, start: int, stop: int | None) -> Parts:
    size, parts = None if stop is None else stop - start, _plain(path, note, start, None, BITS)
    return decode_bzip2(parts, note, inside=start > 0, stop=size)


def _streams(
    path: str | Path, note: Note, start: int, stop: int | None, *, new: Callable[[], Any],
    magic: bytes,
) -> Parts:  # fmt: skip
    """Decode streams that follow one another; without a magic number one, which has no end."""
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
    """Read the members of an archive; of a cut one, which lacks its directory, the first stream.

    Raises SourceError for a URL: its directory is at its end, and only a file here is decoded.
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
        chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 64 << 20}]  # of the strongest preset, -mx=9
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


# Entries: where decoding can begin.


def entries(path: str | Path, size: int) -> list[int]:
    """Return bytes of a dump, 0 first, about `size` apart, at which it can be entered.

    bzip2 has blocks, which are found from any byte; zstd has frames, gzip of bgzip members, and 7z
    folders, as large as who made the file chose. Others are read from the beginning.
    """
    kind, total = kind_of(path), size_of(path)
    if total <= size:
        return [0]
    if kind in ("", "bz2"):
        return list(range(0, total, size))
    if kind in _STARTS and not is_url(path):  # of a store all would be read
        with opened(path) as file:
            return _spaced(_STARTS[kind](file), size)
    if kind == "7z" and not is_url(path):
        with suppress(Exception):  # whatever py7zr raises for a damaged archive: it is not cut
            if directory := seven_zip.read_directory(Path(path)):
                return _spaced(seven_zip.folder_starts(directory), size)
    return [0]


def _spaced(starts: Iterable[int], size: int) -> list[int]:
    """Return 0 and those of the starts that are at least `size` apart."""
    chosen = [0]
    for start in starts:
        if start - chosen[-1] >= size:
            chosen.append(start)
    return chosen


def _frame_starts(file: BinaryIO) -> list[int]:
    """Return where the frames of zstd begin; the last of a damaged file takes all that follows."""
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
    """Yield where the members of a gzip file begin, as long as each says its size (BGZF)."""
    start = 0
    while (head := file.read(18)).startswith(_SIZED) and head[12:16] == b"BC\2\0":
        yield start
        start += 1 + int.from_bytes(head[16:], "little")
        file.seek(start)


_STARTS: dict[str, Callable[[BinaryIO], Iterable[int]]]
_STARTS = {"zst": _frame_starts, "gz": _member_starts}


# 7z archives, as a stream.


def _members(
    path: Path, failures: list[str], start: int = 0, stop: int | None = None
) -> Iterator[bytes]:
    """Yield the content of the members; why it ended early is added to `failures`.

    LZMA and LZMA2 are decoded here, other methods by a 7-Zip program. Raises SourceError without
    one, MissingExtra without py7zr, which reads the directory.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    directory: seven_zip.Directory | None = None
    try:
        directory = seven_zip.read_directory(path)
    except ImportError:
        if program is None:
            raise MissingExtra("py7zr", "7z") from None
    except Exception as error:  # whatever py7zr raises for a damaged archive
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
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield from iter(lambda: cast(BinaryIO, process.stdout).read(CHUNK), b"")
        except GeneratorExit:
            process.kill()
            raise
    if process.returncode:
        failures.append(f"{Path(program).name} ended with {process.returncode}")
