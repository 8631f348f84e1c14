"""M2 files: tokenised sentences, each with the edits of one or more annotators."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_NOOP = "noop"
_DETECTED_ONLY = "UNK"  # ERRANT's type of an error without a correction
_FIELDS = 6  # span, type, correction, required, comment, annotator


@dataclass(frozen=True)
class Edit:
    """Replaces tokens [start, stop) by the tokens of `correction`; `order` is that of the file."""

    start: int
    stop: int
    correction: tuple[str, ...]
    order: int


@dataclass
class Block:
    """A sentence with the edits of every annotator, and a note on each line that is damaged."""

    line: int  # of the file, from 1
    tokens: list[str]
    edits: dict[str, list[Edit]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # annotators with an edit that is damaged

    def corrected(self) -> list[str]:
        """Return the sentence as each annotator has it; one whose edits overlap gives none."""
        texts = []
        for annotator, edits in self.edits.items():
            tokens = _applied(self.tokens, edits)
            if tokens is None:
                self.damaged.append(f"edits of annotator {annotator} overlap")
            elif annotator not in self.lost:
                texts.append(" ".join(tokens))
        return texts

    def add(self, line: str, number: int) -> None:
        """Read an A line; one that is damaged takes the edits of its annotator with it."""
        parts = line[2:].split("|||")
        annotator = parts[-1]
        edits = self.edits.setdefault(annotator, [])
        try:
            edit = _edit(parts, len(edits), len(self.tokens))
        except ValueError:
            self.damaged.append(f"line {number} is no edit of the sentence")
            self.lost.add(annotator)
            return
        if edit is not None:
            edits.append(edit)


def _edit(parts: list[str], order: int, tokens: int) -> Edit | None:
    """Return the edit of a line, None where it changes nothing; raises ValueError."""
    span, kind, correction = parts[:3]
    start, stop = map(int, span.split(" "))
    if kind in (_NOOP, _DETECTED_ONLY):
        return None
    if len(parts) != _FIELDS or not 0 <= start <= stop <= tokens:
        raise ValueError(span)
    correction = correction.split("||")[0]  # CoNLL writes alternatives so; the first is preferred
    words = () if correction == "-NONE-" else tuple(correction.split())
    return Edit(start, stop, words, order)


def _applied(tokens: list[str], edits: list[Edit]) -> list[str] | None:
    """Return the tokens with the edits applied from right to left; None where edits overlap."""
    after = len(tokens)
    corrected = list(tokens)
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.stop, edit.order), reverse=True):
        if edit.stop > after:
            return None
        corrected[edit.start : edit.stop] = edit.correction
        after = edit.start
    return corrected


def blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """Yield the sentences of numbered lines; a line that is neither S, A nor blank is damage."""
    block: Block | None = None
    for number, line in lines:
        if line.startswith("S ") or line == "S":
            if block is not None:
                yield block
            block = Block(number, line[2:].split())
        elif line.startswith("A ") and block is not None:
            block.add(line, number)
        elif line.strip():
            block = block or Block(number, [])
            block.damaged.append(f"line {number} is no line of M2")
    if block is not None:
        yield block
