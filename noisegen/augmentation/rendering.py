"""Print noisy rows on a terminal: clean text above noisy text, aligned column by column.

The library rich measures the width of characters. Right-to-left text is printed in the order of
its characters in memory.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

from rich.columns import Columns
from rich.console import Console
from rich.style import Style
from rich.text import Text

from noisegen.augmentation.preview import ShownRow
from noisegen.runs.manifest import counted
from noisegen.text.alignment import character_errors
from noisegen.text.graphemes import Grapheme, displayed, graphemes
from noisegen.text.moves import Edit

SHOWN_MAX = 10_000  # maximum characters of a row that are printed
_FILLER = "·"
_LABEL_WIDTH = 7
# Background colours under black text: Paul Tol's 'light' scheme, distinct to colour-blind readers.
_GROUNDS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
_IN_ORDER = "fing leet spac spel homo abr1 slng dysl abr2 abr3 cont week"
ORDER = _IN_ORDER.split()  # the transforms of mix_all, whose colours are fixed


def render(examples: Sequence[ShownRow], console: Console, *, aligned: bool = True) -> None:
    """Print the rows, clean above noisy, and a legend of signs and transforms.

    With `aligned`, the shorter text of each change is padded, so that the unchanged text after it
    is aligned, and lines are broken at the width of the console. Otherwise each text is one line.
    """
    if not examples:
        console.print("no rows to show")
        return
    has_colour = bool(console.is_terminal and console.color_system and not console.no_color)
    shown: Counter[str] = Counter()
    signs: set[str] = set()
    for example in examples:
        shown.update(change.transform for change in _real_changes(example))
        signs |= _print_row(example, console, aligned=aligned, carets=aligned and not has_colour)
    changed = sum(example.clean != example.noisy for example in examples)
    ending = "; changes by transform:" if shown else ""
    console.print(Text(f"{counted(len(examples), 'row')}, {changed:,} changed{ending}", "dim"))
    _print_transforms(shown, console, has_colour)
    if legend := [f"{sign} {meaning}" for sign, meaning in _LEGEND.items() if sign in signs]:
        console.print(Text("   ".join(legend), "dim"))


def _print_row(example: ShownRow, console: Console, *, aligned: bool, carets: bool) -> set[str]:
    """Print a row and return the signs in it that the legend explains.

    With `carets` a line below the text marks the changes.
    """
    console.print(_head(example), highlight=False)
    width = max(console.width - _LABEL_WIDTH, 2) if aligned else sys.maxsize
    sides = ("clean", "noisy") if _real_changes(example) else ("both",)
    shown = example.beginning(SHOWN_MAX)
    signs: set[str] = set()
    for line in lines_of(shown, width, aligned):
        for side in sides:
            console.print(side_of(line, side, aligned=aligned), soft_wrap=True)
        if carets and any(block.transforms for block in line):
            console.print(carets_under(line), soft_wrap=True)
        signs |= _signs(line, aligned=aligned)
    if (left := len(example.clean) - len(shown.clean)) > 0:
        console.print(f"and {counted(left, 'more character')}", style="dim", highlight=False)
    console.print()
    return signs


def _print_transforms(shown: Counter[str], console: Console, has_colour: bool) -> None:
    """Print the number of changes of each transform, in its colour."""
    entries = []
    for transforms, count in sorted(shown.items(), key=lambda pair: (-pair[1], pair[0])):
        entry = Text()
        if has_colour:
            entry.append(" a", style_of(transforms)).append("b ", style_of(transforms, 0.99))
            entry.append(" ")
        entries.append(entry.append(f"{transforms.replace('+', ' + ')} {count:,}"))
    console.print(Columns(entries, padding=(0, 3)))


def _head(example: ShownRow) -> Text:
    row = "".join(cell.shown for cell in displayed(str(example.id)))
    drawn = ", ".join(example.transforms) or "no transform"
    if example.clean == example.noisy:
        changed = "nothing changed" if example.clean else "nothing changed (empty text)"
    elif not example.clean:
        changed = "clean is empty"
    else:
        changed = f"CER {character_errors(example.clean, example.noisy) / len(example.clean):.1%}"
    return Text(f"row {row}  {drawn}  {changed}", style="dim")


def style_of(transforms: str, part: float = 0.0) -> Style:
    """Return the style of a character in a changed span.

    `transforms` has the names of the transforms that changed the span, joined by '+'. Each colours
    an equal part of it, from left to right. `part` is the position of the character: 0 at the start
    of the span, almost 1 at its end.
    """
    if not transforms:
        return Style()
    names = transforms.split("+")
    name = names[int(part * len(names))]
    number = ORDER.index(name) if name in ORDER else crc32(name.encode())
    underline = bool(number // len(_GROUNDS) % 2)
    ground = _GROUNDS[number % len(_GROUNDS)]
    return Style(color="black", bgcolor=ground, underline=underline, bold=len(names) > 1)


# Lines of a row, each a list of `AlignedCells`.


class AlignedCells(NamedTuple):
    """A block of a line: graphemes of clean text, and the noisy graphemes printed below them.

    The narrower text is padded to the width of the other. `transforms` names the transforms that
    changed the text; it is '' for unchanged text.
    """

    clean: list[Grapheme]
    noisy: list[Grapheme]
    transforms: str = ""

    @property
    def width(self) -> int:
        """The width of the wider text, in columns of the terminal."""
        return max(_width(self.clean), _width(self.noisy))


def _width(side: list[Grapheme]) -> int:
    return sum(cell.width for cell in side)


def side_of(line: list[AlignedCells], side: str, *, aligned: bool = True) -> Text:
    """Return the clean or noisy text of a line, after its label, with the changes in colour."""
    text = Text().append(f"{side:<{_LABEL_WIDTH}}", "dim")
    for block in line:
        shown = block.noisy if side == "noisy" else block.clean
        for number, cell in enumerate(shown):
            text.append(cell.shown, style_of(block.transforms, number / len(shown)))
        text.append(_FILLER * (block.width - _width(shown)) * aligned, "dim")
    return text


_LEGEND = {
    _FILLER: "filler, not part of the text",
    "␣": "space",
    "⍽": "no-break space",
    "⇥": "tab",
    "↵": "line break",
    "▯": "invisible character",
}


def _signs(line: Sequence[AlignedCells], *, aligned: bool) -> set[str]:
    """Return the signs in a line that the legend explains, such as ␣ for a changed space."""
    cells = [cell for block in line for cell in (*block.clean, *block.noisy)]
    signs = {sign for cell in cells if cell.shown != cell.text for sign in cell.shown}
    uneven = any(_width(block.clean) != _width(block.noisy) for block in line)
    return signs | ({_FILLER} if aligned and uneven else set())


def carets_under(line: Sequence[AlignedCells]) -> Text:
    """Return a line of carets under the changes, for terminals without colour."""
    carets = "".join(("^" if block.transforms else " ") * block.width for block in line)
    return Text(" " * _LABEL_WIDTH + carets.rstrip())


def lines_of(example: ShownRow, width: int, aligned: bool = True) -> Iterator[list[AlignedCells]]:
    """Yield the lines in which a row is printed, at most `width` columns wide.

    A line is a list of blocks (see `AlignedCells`). It is broken after a space, or inside a word
    that is longer than half a line.
    """
    line: list[AlignedCells] = []
    used = 0
    # With blocks of at most half a line, the last word and the block after it fit in the next line.
    for block in _blocks(example, max(width // 2, 2), aligned):
        if line and used + block.width > width:
            cut = len(line) if _is_space(block) else _last_word(line, width // 2)
            yield line[:cut]
            line = line[cut:]
            used = sum(part.width for part in line)
        line.append(block)
        used += block.width
    if line:
        yield line


def _last_word(line: Sequence[AlignedCells], limit: int) -> int:
    """Return the index of the block with which the next line begins: the last word's first block.

    If the line is one word, or its last word is wider than `limit` columns, the next line begins
    after the whole line.
    """
    spaces = [number for number, part in enumerate(line, 1) if _is_space(part)]
    start = spaces[-1] if spaces else len(line)
    return start if sum(part.width for part in line[start:]) <= limit else len(line)


def _is_space(block: AlignedCells) -> bool:
    return not block.transforms and block.clean[0].text.isspace()


def _blocks(example: ShownRow, limit: int, aligned: bool) -> Iterator[AlignedCells]:
    """Yield a row as blocks of text: one per unchanged grapheme, one or more per change.

    `limit` is the greatest width of a block, in columns; a wider change becomes several blocks. If
    `aligned`, signs such as ␣ stand for changed spaces.
    """
    done = 0
    for change in _whole_graphemes(example):
        same = displayed(example.clean[done : change.clean_start])
        yield from (AlignedCells([cell], [cell]) for cell in same)
        clean, noisy = (displayed(text, changed=aligned) for text in example.texts_of(change))
        while clean or noisy:
            heads = _fitting(clean, limit), _fitting(noisy, limit)
            yield AlignedCells(clean[: heads[0]], noisy[: heads[1]], change.transform)
            clean, noisy = clean[heads[0] :], noisy[heads[1] :]
        done = change.clean_end
    yield from (AlignedCells([cell], [cell]) for cell in displayed(example.clean[done:]))


def _fitting(side: list[Grapheme], limit: int) -> int:
    """Return the number of graphemes that fit into `limit` columns, at least 1."""
    return max(sum(total <= limit for total in accumulate(cell.width for cell in side)), 1)


def _whole_graphemes(example: ShownRow) -> Iterator[Edit]:
    """Yield the changes of a row, widened to whole graphemes.

    Changes within the same grapheme are joined into one.
    """
    # Positions at which a grapheme of the clean text, or of the noisy text, begins or ends
    clean, noisy = (
        {0, *accumulate(len(cluster) for cluster in graphemes(text))}
        for text in (example.clean, example.noisy)
    )
    ahead = _real_changes(example)[::-1]
    while ahead:
        transforms, start, stop, noisy_start, noisy_end = ahead.pop()
        while start not in clean or noisy_start not in noisy:
            start, noisy_start = start - 1, noisy_start - 1
        while stop not in clean or noisy_end not in noisy:
            if ahead and ahead[-1].clean_start == stop:
                transform, _, stop, _, noisy_end = ahead.pop()
                names = dict.fromkeys(f"{transforms}+{transform}".split("+"))
                transforms = "+".join(names)
            else:
                stop, noisy_end = stop + 1, noisy_end + 1
        yield Edit(transforms, start, stop, noisy_start, noisy_end)


def _real_changes(example: ShownRow) -> list[Edit]:
    """Return the edits of a row in order; an edit that replaces a text by itself is left out."""
    edits = (Edit(**edit) for edit in example.edits)
    changes = sorted(edits, key=lambda change: change[1:])
    return [change for change in changes if len(set(example.texts_of(change))) == 2]
