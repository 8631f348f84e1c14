"""Readers of M2 files (sentences with the edits of annotators), and of numbered lines of text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, dropwhile, takewhile

from noisegen.data.decoders import compression_of, without_compression
from noisegen.data.files import Damaged, is_url
from noisegen.data.lines import BOM, head_of_text, line_ranges, read_range, with_blocks
from noisegen.data.rows import FileRange
from noisegen.data.tables import read_lines

M2_STARTS = (b"S ", b"S\n", b"S\r")
_HEAD = 1 << 16  # bytes read from the beginning of a file to see its format
# Tabs and the like become spaces, other control characters are removed
NO_CONTROLS = {code: " " if chr(code) in "\t\v\f\r" else None for code in range(32)}

# Edit: index of the first replaced token, index after the last, index of the edit among those of
# its annotator, new tokens
M2Edit = tuple[int, int, int, tuple[str, ...]]


@dataclass
class M2Sentence:
    """A sentence with the edits of each annotator; `damaged` describes what cannot be read."""

    line: int  # line number, from 1, of the line that begins with S
    tokens: list[str]
    edits: dict[str, list[M2Edit]] = field(default_factory=dict)  # edits of each annotator
    damaged: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # annotators with an unreadable edit

    def corrected(self) -> list[str]:
        """Return the corrected sentence of each annotator.

        Annotators with overlapping or unreadable edits are left out; `damaged` names the overlaps.
        """
        texts = []
        for annotator, edits in self.edits.items():
            tokens, after = list(self.tokens), len(self.tokens)
            for start, stop, _, words in sorted(edits, reverse=True):
                if stop > after:
                    self.damaged.append(f"edits of annotator {annotator} overlap")
                    break
                tokens[start:stop] = words
                after = start
            else:
                if annotator not in self.lost:
                    texts.append(" ".join(tokens))
        return texts

    def notes(self, path: str) -> list[str]:
        """Return `damaged` as 'file:line: message'; `corrected` adds messages, so call it first."""
        return [f"{path}:{self.line}: {note}" for note in self.damaged]

    def add(self, line: str, number: int) -> None:
        """Add the edit of a line that begins with A.

        Its fields are span, type, correction, required, comment and annotator. If it cannot be
        read, all edits of its annotator are ignored.
        """
        parts = line[2:].split("|||")
        edits = self.edits.setdefault(parts[-1], [])
        try:
            span, kind, correction = parts[:3]
            start, stop = map(int, span.split(" "))
            # The edit type noop means no change; UNK means an error without a correction
            if kind in ("noop", "UNK"):
                return
            if len(parts) != 6 or not 0 <= start <= stop <= len(self.tokens):
                raise ValueError(span)
        except ValueError:
            self.damaged.append(f"line {number} is not an edit of the sentence")
            self.lost.add(parts[-1])
            return
        correction = correction.split("||")[0]  # CoNLL separates alternatives by ||, the best first
        words = () if correction == "-NONE-" else tuple(correction.split())
        edits.append((start, stop, len(edits), words))


def read_m2(file: FileRange, damaged: list[str]) -> Iterator[M2Sentence]:
    """Yield the sentences of an M2 file; of a range of a file, the sentences that begin in it.

    A message per line that cannot be read is added to `damaged`.
    """
    lines = text_lines(file, damaged)
    if file.start:
        lines = dropwhile(lambda line: not _begins_sentence(line[1]), lines)
    if file.stop is not None and (first := next(lines, None)):
        after = text_lines(_rest_of(file), [])
        rest = takewhile(lambda line: not _begins_sentence(line[1]), after)
        lines = chain([first], lines, rest)
    return m2_sentences(lines)


def _rest_of(file: FileRange) -> FileRange:
    """Return the range from the end of the range `file` to the end of the whole file."""
    blocks = with_blocks(FileRange(file.path)).blocks if file.blocks else ()
    return replace(
        file,
        start=file.stop or 0,
        stop=None,
        first=file.first + file.rows,
        blocks=tuple(block for block in blocks if block >= file.blocks[0]),
    )


def _begins_sentence(line: str) -> bool:
    return line.startswith("S ") or line == "S"


def m2_sentences(lines: Iterable[tuple[int, str]]) -> Iterator[M2Sentence]:
    """Yield the sentences of numbered lines; wrong lines are reported in `M2Sentence.damaged`."""
    sentence: M2Sentence | None = None
    for number, line in lines:
        if _begins_sentence(line):
            if sentence is not None:
                yield sentence
            sentence = M2Sentence(number, line[2:].split())
        elif line.startswith("A ") and sentence is not None:
            sentence.add(line, number)
        elif line.strip():
            sentence = sentence or M2Sentence(number, [])
            sentence.damaged.append(f"line {number} is not an M2 line")
    if sentence is not None:
        yield sentence


def is_m2(path: str) -> bool:
    """Tell whether a path names an M2 file, compressed or not: news.m2 or news.m2.gz."""
    return without_compression(path.lower()).endswith(".m2")


def text_head(path: str) -> bytes:
    """Return the first bytes of a text file, without leading white space; raises SourceError."""
    return head_of_text(path, _HEAD).removeprefix(BOM).lstrip()


def line_pieces(path: str, lines: int) -> list[FileRange]:
    """Return the ranges of a text file, of `lines` lines each; [file] if it cannot be split."""
    file = with_blocks(FileRange(path))
    if is_url(path) or (compression_of(path) and not file.blocks):
        return [file]
    found = list(line_ranges(file, lines, lines))
    return found if found[1:] else [FileRange(path)]


def text_lines(file: FileRange, damaged: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file or range, without control characters.

    Tabs and other white space become spaces. A message is added to `damaged` per unreadable line,
    and if the file ends early.
    """
    try:
        for number, line in enumerate(read_lines(read_range(file)), file.first + 1):
            if line is None:
                damaged.append(f"{file.path}:{number}: not UTF-8, or too long")
            else:
                yield number, line if line.isprintable() else line.translate(NO_CONTROLS)
    except Damaged as damage:
        damaged.append(f"{file.path}: {damage}")
