"""Decode bzip2 block by block: a damaged one costs itself only, for every block has a checksum."""

import bz2
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

BLOCK = 0x314159265359.to_bytes(6, "big")  # begins every bzip2 block, at any bit
END = 0x177245385090.to_bytes(6, "big")  # ends a stream; a 32-bit checksum follows
BLOCK_MAX = 4 << 20  # compressed bytes of a block; libbz2's blocks hold 900 kB


def decode(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the blocks of a file of one or several streams; an empty one stands for one lost."""
    last = False
    for block, skipped, last in _blocks(parts):
        found = _block(block, skipped, last, note)
        if found is None:
            yield b""
        elif found:
            yield found
    if not last:
        note("truncated")


def bit_positions(data: bytes, magic: bytes, start: int = 0) -> list[int]:
    """Return the positions in bits, from byte `start` on, at which six bytes begin."""
    wanted, found = int.from_bytes(magic, "big"), []
    for shift in range(8):
        middle = (wanted << (8 - shift)).to_bytes(7, "big")[1:6] if shift else magic
        offset = 1 if shift else 0
        at = data.find(middle, start + offset)
        while at >= 0:
            seven = data[at - offset : at - offset + 7].ljust(7, b"\0")
            if int.from_bytes(seven, "big") >> (8 - shift) & 0xFFFFFFFFFFFF == wanted:
                found.append(8 * (at - offset) + shift)
            at = data.find(middle, at + 1)
    return sorted(found)


def _blocks(parts: Iterable[bytes]) -> Iterator[tuple[bytes, int, bool]]:
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


def _block(data: bytes, skipped: int, last: bool, note: Callable[[str], None]) -> bytes | None:
    """Decode a block, whose stream may end in it; None for a damaged one."""
    decoder = bz2.BZ2Decompressor()
    found: bytes | None = b""
    try:
        if data.startswith(BLOCK):
            found = decoder.decompress(b"BZh9" + data)
    except OSError:
        found = None  # also where a stream ends: its checksum is over all its blocks
    if found is not None and not decoder.eof and not last:
        return found
    ends = bit_positions(data, END)
    if found is None and ends:
        found = _decoded(data, ends[0])
    if found is None:
        note("a damaged block was left out")
    if ends:
        _check_tail(data, skipped, ends[0] + 80, note)
    elif last:
        note("truncated")
    return found


def _decoded(data: bytes, end: int) -> bytes | None:
    """Decode the last block of a stream without the stream's checksum; None if it is damaged."""
    end += 48
    whole = int.from_bytes(data[: -(-end // 8)], "big") >> -end % 8 << -end % 8
    with suppress(OSError):
        return bz2.BZ2Decompressor().decompress(b"BZh9" + whole.to_bytes(-(-end // 8), "big"))
    return None


def _check_tail(data: bytes, skipped: int, end: int, note: Callable[[str], None]) -> None:
    """After a stream comes another one, or nothing; `end` is in bits of the moved data."""
    end += -(skipped + end) % 8
    tail = _moved(data, end, 8 * len(data)).strip(b"\0")
    if tail and not tail.startswith(b"BZh"):
        note("trailing garbage was left out")
