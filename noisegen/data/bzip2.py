"""Decoder of bzip2 files block by block: it can start at any byte and skips damaged blocks."""

import bz2
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

# Magic number at the beginning of every block; blocks begin at any bit, and a CRC-32 follows
BLOCK = 0x314159265359.to_bytes(6, "big")
END = 0x177245385090.to_bytes(6, "big")  # magic number at the end of a stream; a CRC-32 follows
BLOCK_MAX = 4 << 20  # most compressed bytes of a block; libbz2 compresses 900 kB at once

Note = Callable[[str], None]  # function that takes one line of text about lost content


def decode_bzip2(
    parts: Iterable[bytes], note: Note, *, inside: bool = False, stop: int | None = None
) -> Generator[bytes, None, None]:
    """Yield the decoded blocks of one or several bzip2 streams; b'' stands for a lost block.

    The bytes in `parts` are a file, or with `inside` the rest of a file from any offset on; then
    decoding starts with the first block found. Blocks that begin at byte `stop` of these bytes or
    later are not decoded, so that a file can be divided among calls. Truncated streams, and bytes
    that belong to no stream, are reported to the function `note`.
    """
    scan = _Scan(note, _LOST if inside else _HEADER)
    last = sys.maxsize if stop is None else stop
    for part in parts:
        scan.held += part
        for position, magic in scan.new_magics():
            if scan.is_known(position):
                continue
            if scan.kind == _BLOCK:
                yield _block(scan.held, scan.start, position, note)
            elif scan.kind == _HEADER:
                scan.check_header(position)
            if 8 * scan.before + position >= 8 * last:
                return
            scan.begin(position, magic)
        if scan.is_without_end():
            yield from scan.give_up()
        end = scan.before + len(scan.held)
        if scan.kind == _LOST and end > last + len(BLOCK):
            return
        scan.forget()
    if scan.kind == _BLOCK:
        yield from _unended_block(scan.held, scan.start)
    # If no block begins in this range, the file's end is checked by the call for an earlier range
    if scan.has_begun or not inside:
        scan.check_end()


_BLOCK, _HEADER, _LOST = "block", "header", "lost"


@dataclass
class _Scan:
    """State of decoding a bzip2 file: `held` has bytes of the file, decoded up to bit `start`.

    `kind` says what begins at bit `start`: a block, the header of a stream, or the rest of a
    damaged block, which is skipped.
    """

    note: Note
    kind: str
    held: bytes = b""
    start: int = 0
    before: int = 0  # count of the bytes that precede `held` in the file
    has_begun: bool = False  # True once a block or the end of a stream was found
    _searched: int = 0  # count of the bytes of `held` that were searched for magics

    def new_magics(self) -> list[tuple[int, bytes]]:
        """Search the new bytes in `held`; return (bit offset, magic) of each BLOCK and END."""
        found = [
            (at, magic)
            for magic in (BLOCK, END)
            for at in bit_positions(self.held, magic, self._searched)
        ]
        return sorted(found)

    def is_known(self, position: int) -> bool:
        """Tell whether the magic at bit `position` was found before, or is part of a checksum."""
        return position < self.start or (position == self.start and self.kind == _BLOCK)

    def begin(self, position: int, magic: bytes) -> None:
        """Move `start` to the block at bit `position`, or after the stream that ends there."""
        self.has_begun = True
        if magic == BLOCK:
            self.kind, self.start = _BLOCK, position
        else:
            after_checksum = position + 80
            self.kind, self.start = _HEADER, -(-after_checksum // 8) * 8

    def is_without_end(self) -> bool:
        """Tell whether the block at `start` is damaged: it has no end within BLOCK_MAX bytes."""
        return len(self.held) - self.start // 8 > BLOCK_MAX

    def give_up(self) -> list[bytes]:
        """Skip a damaged block: all bytes in `held` but the last six, where a magic may begin.

        Reports the block and returns [b'']. Returns [] if it was reported before.
        """
        lost = [] if self.kind == _LOST else [b""]
        if lost:
            self.note("a damaged block was left out")
        self.start, self.kind = 8 * len(self.held) - 48, _LOST
        return lost

    def check_header(self, position: int) -> None:
        """Report bytes before a block that are neither the header of a stream nor padding."""
        header = self.held[self.start // 8 : position // 8].lstrip(b"\0")
        if len(header) != 4 or not header.startswith(b"BZh"):
            self.note("trailing garbage was left out")

    def forget(self) -> None:
        """Remove the decoded bytes from `held`, but not its last 7, where a magic may begin."""
        cut = max(0, min(self.start // 8, len(self.held) - 7))
        self.held = self.held[cut:]
        self.start -= 8 * cut
        self.before += cut
        self._searched = max(0, len(self.held) - 7)

    def check_end(self) -> None:
        """Report a file that ends within a stream, or has other bytes after the last stream."""
        tail = self.held[self.start // 8 :].strip(b"\0")
        is_cut = self.kind == _BLOCK or not self.has_begun or self.start > 8 * len(self.held)
        if is_cut or tail.startswith(b"BZh"):
            self.note("truncated")
        elif tail:
            self.note("trailing garbage was left out")


def _unended_block(data: bytes, start: int) -> Iterator[bytes]:
    """Yield the content of the last block of a truncated file, if all of its bits are there."""
    size = 8 * len(data) - start
    bits = _bits(data, start, 8 * len(data)) << -size % 8
    with suppress(OSError):
        content = bz2.BZ2Decompressor().decompress(b"BZh9" + bits.to_bytes(-(-size // 8), "big"))
        if content:
            yield content


def _block(data: bytes, start: int, stop: int, note: Note) -> bytes:
    """Return the content of the block in bits `start` to `stop` of `data`; b'' if it is damaged.

    `note` is called for a damaged block. Since libbz2 decodes only whole streams, the bits of the
    block are made a stream of their own.
    """
    decoder = bz2.BZ2Decompressor()
    bits = _bits(data, start, stop)
    # The checksum of a stream with one block is the checksum of that block.
    checksum = bits >> max(0, stop - start - 80) & 0xFFFFFFFF
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
    """Return the bits `start` to `stop` of `data` as a number."""
    part = bytearray(data[start // 8 : -(-stop // 8)])
    if part:
        part[0] &= 0xFF >> start % 8
    return int.from_bytes(part, "big") >> -stop % 8


def bit_positions(data: bytes, magic: bytes, start: int = 0) -> list[int]:
    """Return the bit offsets in `data`, from byte `start` on, where the six bytes `magic` begin."""
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
