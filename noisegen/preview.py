"""Aligned before and after on a terminal: unchanged text stands in the same column of both lines.

Widths are those of rich.cells; text that runs from right to left stands as it is stored.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

from rich.columns import Columns
from rich.console import Console
from rich.style import Style
from rich.text import Text

from noisegen.errors import UsageError
from noisegen.graphemes import Cell, cells, graphemes
from noisegen.measures import character_errors


class Change(NamedTuple):
    """A replaced span, in characters of either side; two makers are named 'fing+spac'."""

    transform: str
    clean_start: int
    clean_stop: int
    noisy_start: int
    noisy_stop: int


@dataclass(frozen=True)
class Example:
    """One row to show; the text outside `changes` is equal on both sides."""

    row_id: int | str
    clean: str
    noisy: str
    transforms: list[str]
    changes: list[Change]


def render(examples: Sequence[Example], console: Console) -> None:
    """Print the rows, clean above noisy, and a legend of the transforms.

    Raises UsageError for a row whose texts differ outside its changes.
    """
    if not examples:
        console.print("no rows to show")
        return
    shown: Counter[str] = Counter()
    for example in examples:
        changes = _real_changes(example)
        shown.update(change.transform for change in changes)
        _print_example(example, changes, console)
        console.print()
    _print_legend(examples, shown, console)


_PAD = "·"
_LABELS = {"clean": "clean  ", "noisy": "noisy  ", "both": "both   ", "": "       "}


def _print_example(example: Example, changes: list[Change], console: Console) -> None:
    console.print(_head(example), highlight=False)
    width = max(console.width - len(_LABELS[""]), 2)
    # Half a line, so that a word carried over and a block after it always fit into one line.
    blocks = _blocks(_pieces(example, changes), max(width // 2, 2))
    for line in _wrap(blocks, width):
        if not changes:
            _print_line(_side(line, "both"), console)
            continue
        _print_line(_side(line, "clean"), console)
        _print_line(_side(line, "noisy"), console)
        if not _has_colour(console) and any(block.makers for block in line):
            _print_line(_carets(line), console)


def _print_line(line: Text, console: Console) -> None:
    console.print(line, soft_wrap=True)


def _has_colour(console: Console) -> bool:
    return console.is_terminal and console.color_system is not None and not console.no_color


def _head(example: Example) -> Text:
    row = "".join(cell.shown for cell in cells(str(example.row_id)))
    drawn = ", ".join(example.transforms) or "no transform"
    return Text(f"row {row}  {drawn}  {_verdict(example)}", style="dim")


def _verdict(example: Example) -> str:
    if example.clean == example.noisy:
        return "nothing changed" if example.clean else "nothing changed (empty text)"
    errors = character_errors(example.clean, example.noisy)
    return f"CER {errors / len(example.clean):.1%}" if example.clean else "clean is empty"


# From changes to pieces.


def _real_changes(example: Example) -> list[Change]:
    """Return the changes in order, without those that replace a text by itself."""
    changes = sorted(example.changes, key=lambda change: change[1:])
    kept = [[0, 0], *([change.clean_stop, change.noisy_stop] for change in changes)]
    ends = Change(
        "", len(example.clean), len(example.clean), len(example.noisy), len(example.noisy)
    )
    for (clean, noisy), change in zip(kept, [*changes, ends], strict=True):
        same = (
            example.clean[clean : change.clean_start] == example.noisy[noisy : change.noisy_start]
        )
        ordered = clean <= change.clean_start <= change.clean_stop <= len(example.clean)
        if not (same and ordered and noisy <= change.noisy_start <= change.noisy_stop):
            raise UsageError(f"row {example.row_id!r}: clean and noisy differ outside its changes")
    return [change for change in changes if len(set(_texts(example, change))) == 2]


def _texts(example: Example, change: Change) -> tuple[str, str]:
    clean = example.clean[change.clean_start : change.clean_stop]
    return clean, example.noisy[change.noisy_start : change.noisy_stop]


class _Piece(NamedTuple):
    """Text of both sides, equal where `makers` is empty."""

    clean: str
    noisy: str
    makers: str


def _pieces(example: Example, changes: list[Change]) -> Iterator[_Piece]:
    """Yield the row from left to right; no piece begins or ends inside a grapheme."""
    done = 0
    for change in _whole_graphemes(example, changes):
        same = example.clean[done : change.clean_start]
        yield _Piece(same, same, "")
        yield _Piece(*_texts(example, change), change.transform)
        done = change.clean_stop
    yield _Piece(example.clean[done:], example.clean[done:], "")


def _whole_graphemes(example: Example, changes: list[Change]) -> list[Change]:
    """Widen changes until they cut no grapheme of either side, joining those that then meet."""
    clean, noisy = _edges(example.clean), _edges(example.noisy)
    ahead, done = changes[::-1], []
    while ahead:
        makers, start, stop, noisy_start, noisy_stop = ahead.pop()
        while start not in clean or noisy_start not in noisy:
            start, noisy_start = start - 1, noisy_start - 1
        while stop not in clean or noisy_stop not in noisy:
            if ahead and ahead[-1].clean_start == stop:
                maker, _, stop, _, noisy_stop = ahead.pop()
                makers = "+".join(dict.fromkeys([*makers.split("+"), *maker.split("+")]))
            else:
                stop, noisy_stop = stop + 1, noisy_stop + 1
        done.append(Change(makers, start, stop, noisy_start, noisy_stop))
    return done


def _edges(text: str) -> set[int]:
    return {0, *accumulate(len(cluster) for cluster in graphemes(text))}


# Layout.


class _Block(NamedTuple):
    """Cells that stay on one line: as wide as the wider side, the other is padded."""

    clean: list[Cell]
    noisy: list[Cell]
    makers: str

    @property
    def width(self) -> int:
        return max(_width(self.clean), _width(self.noisy))

    @property
    def is_blank(self) -> bool:
        return not self.makers and self.clean[0].text.isspace()


def _width(side: list[Cell]) -> int:
    return sum(cell.width for cell in side)


def _blocks(pieces: Iterator[_Piece], limit: int) -> Iterator[_Block]:
    """Yield the unchanged graphemes and the changes; a change over `limit` columns is cut."""
    for piece in pieces:
        if not piece.makers:
            yield from (_Block([cell], [cell], "") for cell in cells(piece.clean))
            continue
        clean, noisy = cells(piece.clean, changed=True), cells(piece.noisy, changed=True)
        while clean or noisy:
            heads = _fitting(clean, limit), _fitting(noisy, limit)
            yield _Block(clean[: heads[0]], noisy[: heads[1]], piece.makers)
            clean, noisy = clean[heads[0] :], noisy[heads[1] :]


def _fitting(side: list[Cell], limit: int) -> int:
    """Return how many cells fit, but at least one."""
    return max(sum(total <= limit for total in accumulate(cell.width for cell in side)), 1)


def _wrap(blocks: Iterator[_Block], width: int) -> Iterator[list[_Block]]:
    """Yield lines, broken after a blank where the word begun there is shorter than half a line."""
    line: list[_Block] = []
    used = 0
    for block in blocks:
        if line and used + block.width > width:
            blank = max((i + 1 for i, part in enumerate(line) if part.is_blank), default=0)
            word = sum(part.width for part in line[blank:])
            begun = blank and word <= width // 2 and not block.is_blank
            cut = blank if begun else len(line)
            yield line[:cut]
            line = line[cut:]
            used = sum(part.width for part in line)
        line.append(block)
        used += block.width
    if line:
        yield line


def _side(line: list[_Block], side: str) -> Text:
    text = Text().append(_LABELS[side], "dim")
    for block in line:
        shown = block.noisy if side == "noisy" else block.clean
        for number, cell in enumerate(shown):
            text.append(cell.shown, _style(block.makers, number / len(shown)))
        text.append(_PAD * (block.width - _width(shown)), "dim")
    return text


def _carets(line: list[_Block]) -> Text:
    marks = "".join((" ", "^")[bool(block.makers)] * block.width for block in line)
    return Text(_LABELS[""] + marks.rstrip())


# Colours and legend.

# Paul Tol's 'light' scheme: made for black text on coloured ground, told apart by the colour-blind.
_GROUNDS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
_ORDER = (
    "fing", "leet", "spac", "spel", "homo", "abr1", "slng", "dysl", "abr2", "abr3", "cont", "week",
)  # fmt: skip


def _style(makers: str, part: float = 0.0) -> Style:
    """Return the style at a part, 0 to 1, of a span: its makers share it from left to right."""
    if not makers:
        return Style()
    names = makers.split("+")
    name = names[int(part * len(names))]
    number = _ORDER.index(name) if name in _ORDER else crc32(name.encode())
    underline = bool(number // len(_GROUNDS) % 2)
    ground = _GROUNDS[number % len(_GROUNDS)]
    return Style(color="black", bgcolor=ground, underline=underline, bold=len(names) > 1)


def _print_legend(examples: Sequence[Example], shown: Counter[str], console: Console) -> None:
    changed = sum(example.clean != example.noisy for example in examples)
    ending = "; changes by transform:" if shown else ""
    rows = f"{len(examples):,} row{'s' * (len(examples) != 1)}, {changed:,} changed{ending}"
    console.print(Text(rows, "dim"))
    order = sorted(shown, key=lambda makers: (-shown[makers], makers))
    entries = [_entry(makers, shown[makers], _has_colour(console)) for makers in order]
    console.print(Columns(entries, padding=(0, 3)))


def _entry(makers: str, count: int, swatch: bool) -> Text:
    entry = Text()
    if swatch:
        entry.append(" a", _style(makers)).append("b ", _style(makers, 0.99)).append(" ")
    return entry.append(f"{makers.replace('+', ' + ')} {count:,}")
