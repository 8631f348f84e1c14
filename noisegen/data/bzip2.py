"""bzip2 block by block: a damaged block costs itself only, and a file can be entered anywhere."""

import bz2
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress

BLOCK = 0x314159265359.to_bytes(6, "big")  # begins every block, at any bit; a CRC-32 follows
END = 0x177245385090.to_bytes(6, "big")  # ends a stream; its CRC-32 follows
BLOCK_MAX = 4 << 20  # compressed bytes of a block; libbz2's blocks hold 900 kB

Note = Callable[[str], None]  # takes a line that says what is lost


def decode_bzip2(
    parts: Iterable[bytes], note: Note, *, inside: bool = False,
    stop: int | None = None,
) -> Generator[bytes, None, None]:  # fmt: skip
    """Yield the blocks of one or several streams; an empty one stands for one that is lost.

    `inside`: the parts begin anywhere in a file, and so with the first block that begins in them.
    Blocks that begin at byte `stop` of the parts or later are left to who reads on from there; what
    ends a stream belongs to who reads the bytes where the end begins.
    """
    held, start, searched, kind = b"", 0, 0, "lost" if inside else "header"
    seen, before = False, 0  # bytes before those held
    for part in parts:
        held += part
        magics = [
            (at, magic) for magic in (BLOCK, END) for at in bit_positions(held, magic, searched)
        ]
        for position, magic in sorted(magics):
            if position < start or (position == start and kind == "block"):
                continue  # in a checksum, or found before
            if kind == "block":
                yield _block(held, start, position, note)
            if kind == "header":
                header = held[start // 8 : position // 8].lstrip(b"\0")  # behind padding
                if len(header) != 4 or not header.startswith(b"BZh"):
                    note("trailing garbage was left out")
            if stop is not None and 8 * before + position >= 8 * stop:
                return
            seen = True
            kind = "block" if magic == BLOCK else "header"
            start = position if magic == BLOCK else -(-(position + 80) // 8) * 8
        if len(held) - start // 8 > BLOCK_MAX:
            if kind != "lost":
                note("a damaged block was left out")
                yield b""
            start, kind = 8 * len(held) - 48, "lost"
        if kind == "lost" and stop is not None and before + len(held) > stop + len(BLOCK):
            return
        cut = max(0, min(start // 8, len(held) - 7))
        held, start, before = held[cut:], start - 8 * cut, before + cut
        searched = max(0, len(held) - 7)
    if kind == "block":
        with suppress(OSError):
            size = 8 * len(held) - start
            rest = (_bits(held, start, 8 * len(held)) << -size % 8).to_bytes(-(-size // 8), "big")
            content = bz2.BZ2Decompressor().decompress(b"BZh9" + rest)
            yield from filter(None, [content])
    if inside and not seen:
        return  # nothing begins here: who reads what is before says how it ends
    tail = held[start // 8 :].strip(b"\0")
    if kind == "block" or not seen or start > 8 * len(held) or tail.startswith(b"BZh"):
        note("truncated")
    elif tail:
        note("trailing garbage was left out")


def _block(data: bytes, start: int, stop: int, note: Note) -> bytes:
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
