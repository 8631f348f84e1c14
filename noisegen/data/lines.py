"""Text files, compressed or not: blocks of whole lines, and ranges of lines."""

import codecs
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.data.decoders import (
    NAMES,
    SMALL,
    Parts,
    compression_of,
    entries,
    plain_parts,
    text_parts,
)
from noisegen.data.files import SCAN, Damaged, is_url, metered, size_of
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError, UsageError
from noisegen.text.encodings import likely_encoding

ADVISED = 50  # lines by which the encoding of a file is guessed
_PLAIN = "\r\n,\t0a"  # characters that all supported encodings have as ASCII
BOM = b"\xef\xbb\xbf"
TEXT_MAX = 32 << 20  # most bytes of a text
LINE_MAX = 2 * TEXT_MAX  # most bytes of a line; it may be longer than a text, as in JSON
SPLIT_BYTES = 16 << 20  # a compressed text of at least this many bytes is split into ranges
# Minimum compressed bytes between two offsets where reading can begin: about a block of bzip2
ENTRY_BYTES = 256 << 10

# First bytes of files that are not UTF-8 text. UTF-32 precedes UTF-16: a file in UTF-32LE begins
# with the mark of UTF-16LE.
WIDE = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ": "xz",
}
# Encoding of a text without a byte order mark, by which bytes in a group of four are mostly zero
UNMARKED: dict[tuple[bool, ...], str] = {
    (False, True, False, True): "UTF-16LE",
    (True, False, True, False): "UTF-16BE",
    (False, True, True, True): "UTF-32LE",
    (True, True, True, False): "UTF-32BE",
}


# Functions that read bytes.


def read_parts(path: str | Path) -> Parts:
    """Yield a text file in parts of any size, decompressed if its ending names a compression.

    The path '-' is standard input. Raises SourceError for a file that cannot be opened or read, and
    for a text that begins as UTF-16, UTF-32 or compressed data. Raises Damaged after the last part
    that can be decoded.
    """
    return read_range(FileRange(str(path)))


def read_range(file: FileRange) -> Parts:
    """Yield a range of a text file in parts, with the errors of `read_parts`.

    `FileRange` explains which attributes bound the range.
    """
    parts: Iterable[bytes]
    start, stop, at = file.start, file.stop, file.content
    if file.path == "-":
        parts = iter(partial(_stdin().read, SCAN), b"")
    elif file.blocks:
        parts = (part for _, _, part in _block_parts(file))
    elif compression_of(file.path):
        parts = text_parts(file.path)
    elif start:
        yield from plain_parts(file.path, start, stop, SCAN)
        return
    else:
        parts = plain_parts(file.path, 0, stop, SCAN)
    for part in parts:
        if not at:
            refuse_other_encoding(part, file.path)
        yield part[max(0, start - at) : None if stop is None else max(0, stop - at)]
        at += len(part)
        if stop is not None and at >= stop:
            return


def with_blocks(file: FileRange) -> FileRange:
    """Return a compressed text file with `blocks`, the offsets where decompression can begin.

    A small file, a URL and a file with a very long block get no `blocks`, and are read as a whole.
    """
    if not compression_of(file.path) or is_url(file.path) or size_of(file.path) < SPLIT_BYTES:
        return file
    blocks = *entries(file.path, ENTRY_BYTES), size_of(file.path)
    longest = max(stop - start for start, stop in pairwise(blocks))
    return replace(file, blocks=blocks) if longest < SPLIT_BYTES else file


def _block_parts(file: FileRange) -> Iterator[tuple[int, int, bytes]]:
    """Decompress a range, and yield (block's index, block's offset, part of the text).

    Offsets count bytes of the decompressed text. Raises Damaged.
    """
    at = file.content
    for number, (start, stop) in enumerate(pairwise(file.blocks)):
        content = at
        for part in text_parts(file.path, start, stop):
            yield number, content, part
            at += len(part)


def _stdin() -> Any:
    if sys.stdin is None:
        raise SourceError("standard input is closed: name a file, or pipe text into noisegen")
    return sys.stdin.buffer


def stdin_head() -> bytes:
    """Return the first bytes of standard input without consuming them."""
    stdin = _stdin()
    if hasattr(stdin, "peek"):
        head = stdin.peek()
    else:
        at, head = stdin.tell(), stdin.read(SMALL)
        stdin.seek(at)
    if head.startswith(b"PAR1"):
        raise SourceError("cannot read standard input: it is Parquet; save it and name the file")
    refuse_other_encoding(head, "-")
    return bytes(head)


def head_of_text(path: str, size: int) -> bytes:
    """Return whole lines from the beginning of a file, about `size` bytes; raises SourceError."""
    try:
        with metered():  # a count of its own: the caller counts these bytes when it reads the file
            return next(blocks(read_parts(path), size), b"")
    except Damaged as damage:
        known = f"damaged before its first line, or not {NAMES[compression_of(path)]}"
        raise SourceError(f"{path}: {known}; get the file again") from damage


def refuse_other_encoding(head: bytes, path: object) -> None:
    """Raise SourceError if the first bytes of a text are UTF-16, UTF-32 or compressed data."""
    name = next((name for mark, name in WIDE.items() if head.startswith(mark)), "")
    if not name and len(head) >= 4:
        every_fourth = [head[at:SMALL:4] for at in range(4)]
        zeros = tuple(part.count(0) * 2 > len(part) for part in every_fourth)
        name = UNMARKED.get(zeros, "")
    if name:
        where = "standard input" if path == "-" else path
        how = f"iconv -f {name} -t UTF-8" if name.startswith("UTF") else f"{name} -d"
        raise SourceError(f"cannot read {where}: it is {name}; convert it first: {how}")


def encoding_advice(path: str, option: str = "") -> str:
    """Return what to do about a text file with lines that are not UTF-8, as `advice_on` does.

    The file is read up to the first block with such lines.
    """
    with suppress(Damaged), metered():
        for block in blocks(read_parts(path), SCAN):
            if not is_utf8(block):
                return advice_on(block, option)
    return ""


def advice_on(block: bytes, option: str = "") -> str:
    """Return what to do about lines of a block that are not UTF-8.

    Returns '' if all lines are UTF-8, or if a few lines are damaged in no known encoding. `option`
    is the option of the command that names the encoding of its input, if it has one.
    """
    if is_utf8(block):
        return ""
    lines = [line for line in block.split(b"\n") if not line.isascii()]
    wrong = [line for line in lines if not is_utf8(line)]
    name = likely_encoding(b"\n".join(wrong[:ADVISED]))
    if not name and len(wrong) < 3:
        return ""
    if len(wrong) * 2 < len(lines):
        return f"most lines are UTF-8, but some are not{name and f', likely {name}'}: mend them"
    how = f"iconv -f {name.upper() or 'NAME'} -t UTF-8"
    how = f"{how}, or {option} {name or 'NAME'}" if option else how
    return f"it is not UTF-8{name and f', likely {name}'}; convert it: {how}"


def is_utf8(text: bytes) -> bool:
    """Tell whether a text is valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


# Functions that convert text in other encodings.


def checked_encoding(name: str | None) -> str:
    """Return Python's name of an encoding that the user gave; '' for None and UTF-8.

    Raises UsageError for an unknown encoding, and for an encoding with other line ends than ASCII.
    """
    try:
        encoding = codecs.lookup(name or "utf-8").name
        is_plain = _PLAIN.encode(encoding) == _PLAIN.encode()
    except LookupError as error:
        raise UsageError(f"--encoding: {error}; write a name such as windows-1252") from error
    if encoding in ("utf-8", "utf-8-sig", "ascii"):
        return ""
    if not is_plain:
        raise UsageError(f"--encoding {name}: convert it first: iconv -f {name} -t UTF-8")
    return encoding


def as_utf8(text: bytes, encoding: str) -> bytes:
    """Return text in an encoding, '' for UTF-8, as UTF-8.

    A byte that the encoding lacks becomes a surrogate, so that its row is not valid UTF-8.
    """
    if not encoding:
        return text
    return text.decode(encoding, "surrogateescape").encode("utf-8", "surrogatepass")


def can_encode(text: str, encoding: str) -> bool:
    """Tell whether an encoding has all characters of a text."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def from_utf8(text: bytes, encoding: str) -> bytes:
    """Return the text that `as_utf8` converted, in its encoding again.

    Raises UnicodeEncodeError for characters that the encoding lacks.
    """
    if not encoding:
        return text
    return text.decode("utf-8", "surrogatepass").encode(encoding, "surrogateescape")


# Functions that read lines, and divide files into ranges of lines.


def blocks(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield whole lines in blocks of about `size` bytes; a line over LINE_MAX is truncated.

    The blocks depend on the text and `size`, not on how the text is divided into `parts`.
    """
    held = bytearray()  # beginning of an unfinished line
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
    """Yield the bytes of `parts` in chunks of `size` bytes; raises Damaged after the last chunk."""
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


def line_ranges(file: FileRange, first: int, step: int) -> Iterator[FileRange]:
    """Split a text file into ranges of `step` lines; the first one has `first` lines.

    If the file is damaged, the last range has `stop` None, and one more row, since the damage will
    be read as a row.
    """
    cutter = _LineCutter(file)
    wanted, ends_in_newline = first, True
    try:
        for number, content, part in _numbered_parts(file):
            cutter.enter(number, content)
            line_ends = np.flatnonzero(np.frombuffer(part, np.uint8) == 10) + (cutter.at + 1)
            while cutter.rows + len(line_ends) >= wanted:
                last = wanted - cutter.rows
                cutter.rows = wanted
                yield cutter.cut(int(line_ends[last - 1]))
                line_ends, wanted = line_ends[last:], step
            cutter.rows += len(line_ends)
            cutter.at += len(part)
            ends_in_newline = part.endswith(b"\n")
    except Damaged:
        cutter.rows += 1
        yield cutter.cut(None)
    else:
        if cutter.at > cutter.begin:
            cutter.rows += not ends_in_newline
            yield cutter.cut(cutter.at, is_last=True)


class _LineCutter:
    """State of splitting a text file into ranges of lines.

    `at` is the offset up to which the file is read. The current range starts at offset `begin`, and
    has `rows` lines so far.
    """

    def __init__(self, file: FileRange) -> None:
        self.file = file
        self.begin = self.at = file.start
        self.rows = 0
        self._first = file.first
        self._block = 0, file.content  # index and decompressed offset of the current block
        self._head = self._block  # index and offset of the block in which the range begins
        self._counted = 0  # count of the blocks whose bytes are in the `size` of earlier ranges

    def enter(self, block: int, content: int) -> None:
        """Make `block` the current block; its text begins at offset `content` of the whole text."""
        self._block = block, content
        if self.at == self.begin:
            self._head = self._block

    def cut(self, stop: int | None, *, is_last: bool = False) -> FileRange:
        """End the current range at byte `stop` and return it; the next range begins there."""
        size = 0 if stop is None else stop - self.begin
        blocks, content = self.file.blocks, 0
        if blocks:
            last = len(blocks) - 1 if is_last or stop is None else self._block[0] + 1
            size = blocks[last] - blocks[self._counted]
            self._counted = last
            number, content = self._head
            blocks = blocks[number : last + 1]
            self._head = self._block
        made = replace(
            self.file,
            start=self.begin,
            stop=stop,
            first=self._first,
            rows=self.rows,
            size=size,
            blocks=blocks,
            content=content,
        )
        self._first += self.rows
        self.begin, self.rows = stop or 0, 0
        return made


def _numbered_parts(file: FileRange) -> Iterator[tuple[int, int, bytes]]:
    """Yield (block's index, block's offset in the decompressed text, part) for parts of a text."""
    if not file.blocks:
        yield from ((0, 0, part) for part in read_range(file))
        return
    skipped = file.start
    for number, content, part in _block_parts(file):
        yield number, content, part[skipped:]
        skipped = max(0, skipped - len(part))
