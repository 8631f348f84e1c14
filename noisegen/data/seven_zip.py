"""7z archives as streams: their directory, and their members, decoded without unpacking files."""

import lzma
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

HEADER = 32  # bytes of an archive before its first packed stream (SignatureHeader, 7zFormat.txt)
CHUNK = 512 << 10  # compressed or decompressed bytes processed at once
CODERS = {
    b"\x03\x01\x01": lzma.FILTER_LZMA1,
    b"\x21": lzma.FILTER_LZMA2,
    b"\x03\x03\x01\x03": lzma.FILTER_X86,
}

# Directory of an archive: offset of the first stream, streams, and members (packed files). A stream
# is (packed size, decompressed size, filters), a member is (size, checksum). The members follow
# each other in the decompressed streams. The 7z format calls a stream a folder.
Directory = tuple[int, list[tuple[int, int, list[dict[str, int]]]], list[tuple[int, int]]]


def read_directory(path: Path) -> Directory | None:
    """Read the directory of an archive; None if it uses a method that is not in CODERS."""
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


def within(directory: Directory, start: int, stop: int | None) -> Directory:
    """Return the directory of the streams that begin at bytes `start` to `stop`.

    It has the members in these streams.
    """
    begin, streams, members = directory
    starts = list(accumulate((packed for packed, *_ in streams), initial=begin))
    first = bisect_left(starts, start, hi=len(streams))
    last = len(streams) if stop is None else bisect_left(starts, stop, hi=len(streams))
    sizes = list(accumulate((size for _, size, _ in streams), initial=0))
    ends = list(accumulate(size for size, _ in members))
    chosen = slice(
        bisect_right(ends, sizes[first]) if first else 0, bisect_right(ends, sizes[last])
    )
    return starts[first], streams[first:last], members[chosen]


def stream_starts(directory: Directory) -> list[int]:
    """Return the offsets in the file at which the streams of an archive begin."""
    begin, streams, _ = directory
    return list(accumulate((packed for packed, *_ in streams), initial=begin))[:-1]


def decoded_members(file: BinaryIO, directory: Directory, failures: list[str]) -> Iterator[bytes]:
    """Yield the decompressed bytes of all streams in parts.

    A message is added to `failures` for damage and for a member with a wrong checksum.
    """
    begin, streams, sizes = directory
    members = _Members(sizes, failures)
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
            members.check(part)
    if members.left > 0:
        failures.append("it has less than its directory says")


class _Members:
    """Checks the checksum of each member of an archive while the members are read.

    `left` is the count of bytes of the current member that are still to be read.
    """

    def __init__(self, sizes: Iterable[tuple[int, int]], failures: list[str]) -> None:
        self.left = 0
        self._sizes, self._failures = iter(sizes), failures
        self._open(0)

    def _open(self, surplus: int) -> None:
        """Begin the next member; after the last, one of `surplus` bytes that fails its checksum."""
        self.left, self._expected = next(self._sizes, (surplus, 0))
        self._checksum = 0

    def check(self, part: bytes) -> None:
        """Add `part` to the checksums; report each completed member with a wrong checksum."""
        while part:
            self._checksum = zlib.crc32(part[: self.left], self._checksum)
            self.left, part = self.left - len(part), part[self.left :]
            if self.left <= 0:
                if self._checksum != self._expected:
                    self._failures.append("the checksum differs")
                self._open(len(part))
