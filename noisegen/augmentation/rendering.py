"""Print noisy rows on a terminal: clean text above noisy text, aligned column by column.

A text with several strengths or copies is printed once, its noisy versions below it.

The library rich measures the width of characters. Right-to-left text is printed in the order of
its characters in memory.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple
from zlib import crc32

from rich.columns import Columns
from rich.console import Console
from rich.style import Style
from rich.text import Text

from noisegen.augmentation.preview import ShownRow
from noisegen.runs.manifest import counted, each_once
from noisegen.text.alignment import character_errors
from noisegen.text.graphemes import Grapheme, displayed, graphemes
from noisegen.text.moves import Edit

SHOWN_MAX = 10_000  # maximum characters of a row that are printed
_FILLER = "·"
# Background colours under black text: Paul Tol's 'light' scheme, distinct to colour-blind readers.
_GROUNDS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
_IN_ORDER = "fing leet spac spel homo abr1 slng dysl abr2 abr3 cont week"
ORDER = _IN_ORDER.split()  # the transforms of mix_all, whose colours are fixed


def render(examples: Sequence[ShownRow], console: Console, *, aligned: bool = True) -> None:
    """Print the rows, clean above noisy, and a legend of signs and transforms.

    With `aligned`, the shorter texts of each change are padded, so that the unchanged text after it
    is aligned, and lines are broken at the width of the console. Otherwise each text is one line.
    The rows have the versions of a text one after the other.
    """
    if not examples:
        console.print("no rows to show")
        return
    has_colour = bool(console.is_terminal and console.color_system and not console.no_color)
    names = list(dict.fromkeys(example.version for example in examples))
    signs: set[str] = set()
    for start in range(0, len(examples), len(names)):
        versions = examples[start : start + len(names)]
        signs |= _print_row(versions, console, aligned=aligned, carets=aligned and not has_colour)
    shown = Counter(change.transform for row in examples for change in _real_changes(row))
    ending = "; changes by transform:" if shown else ""
    console.print(Text(f"{_changed_rows(examples, names)}{ending}", "dim"))
    _print_transforms(shown, console, has_colour)
    if legend := [f"{sign} {meaning}" for sign, meaning in _LEGEND.items() if sign in signs]:
        console.print(Text("   ".join(legend), "dim"))


def _changed_rows(examples: Sequence[ShownRow], versions: Sequence[str]) -> str:
    """Return the numbers of rows and of changed rows: '3 rows; changed: 1 at x0.5, 2 at x1'.

    If rows have several texts, these are counted: '3 texts'. `versions` are the names of the
    versions of each text.
    """
    changed = Counter(row.version for row in examples if row.clean != row.noisy)
    texts = len(examples) // len(versions)
    rows = counted(texts, "row" if texts == len({row.id for row in examples}) else "text")
    if versions == [""]:
        return f"{rows}, {changed['']:,} changed"
    counts = [f"{changed[version]:,} {_at(version)}" for version in versions]
    return f"{rows}; changed: {', '.join(counts)}"


def _at(version: str) -> str:
    """Return the name of a version of a text with its preposition: 'at x0.5', 'in copy 1'."""
    return f"{'in' if version.startswith('copy') else 'at'} {version}"


def _print_row(
    versions: Sequence[ShownRow], console: Console, *, aligned: bool, carets: bool
) -> set[str]:
    """Print the versions of a row and return the signs in them that the legend explains.

    With `carets` a line below each changed text marks the changes.
    """
    console.print(_head(versions), highlight=False)
    labels = ["clean", *(row.version or "noisy" for row in versions)]
    label_width = max(map(len, labels)) + 2
    width = max(console.width - label_width, 2) if aligned else sys.maxsize
    shown = [row.beginning(SHOWN_MAX) for row in versions]
    is_changed_pair = len(versions) == 1 and bool(_real_changes(versions[0]))
    signs: set[str] = set()
    for line in lines_of(shown, width, aligned):
        is_whole = is_changed_pair or any(block.is_changed for block in line)
        names = labels if is_whole else ["both" if len(versions) == 1 else "all"]
        for label, text in _sides(line, names, aligned=aligned, carets=carets):
            named = Text.assemble((f"{label:<{label_width}}", "dim"), text)
            console.print(named, soft_wrap=True)
        signs |= _signs(line, aligned=aligned)
    left = len(versions[0].clean) - min(len(row.clean) for row in shown)
    if left > 0:
        console.print(f"and {counted(left, 'more character')}", style="dim", highlight=False)
    console.print()
    return signs


def _sides(
    line: list["AlignedCells"], labels: Sequence[str], *, aligned: bool, carets: bool
) -> Iterator[tuple[str, Text]]:
    """Yield label and text of each side of a line, and the carets below it, if wanted."""
    for side, label in enumerate(labels):
        yield label, side_of(line, side, aligned=aligned)
        if carets and side and any(block.transforms[side] for block in line):
            yield "", carets_under(line, side)


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


def _head(versions: Sequence[ShownRow]) -> Text:
    first = versions[0]
    clean, drawn = first.clean, each_once(first.transforms) or "no transform"
    about = [] if first.version else [drawn]
    if all(row.noisy == clean for row in versions):
        about.append("nothing changed" if clean else "nothing changed (empty text)")
    elif not clean:
        about.append("clean is empty")
    else:
        rates = [f"{character_errors(clean, row.noisy) / len(clean):.1%}" for row in versions]
        named = zip(rates, versions, strict=True)
        rates = [f"{rate} {_at(row.version)}" if row.version else rate for rate, row in named]
        about.append(f"CER {', '.join(rates)}")
    row_id = "".join(cell.shown for cell in displayed(str(first.id)))
    return Text("  ".join([f"row {row_id}", *about]), style="dim")


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
    """A block of a line: graphemes of each side, the clean text and the noisy versions below it.

    Narrower sides are padded to the width of the widest. `transforms` has a text per side: the
    names of the transforms that changed it, '' for unchanged text. Clean text that several versions
    change has ''.
    """

    sides: list[list[Grapheme]]
    transforms: list[str]

    @property
    def width(self) -> int:
        """The width of the widest side, in columns of the terminal."""
        return max(map(_width, self.sides))

    @property
    def is_changed(self) -> bool:
        """Whether a version has a change here."""
        return any(self.transforms)


def _width(side: list[Grapheme]) -> int:
    return sum(cell.width for cell in side)


def side_of(line: list[AlignedCells], side: int, *, aligned: bool = True) -> Text:
    """Return a side of a line (0: clean), with the changes in colour."""
    text = Text()
    for block in line:
        shown = block.sides[side]
        for number, cell in enumerate(shown):
            text.append(cell.shown, style_of(block.transforms[side], number / len(shown)))
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
    cells = chain.from_iterable(side for block in line for side in block.sides)
    signs = {sign for cell in cells if cell.shown != cell.text for sign in cell.shown}
    uneven = any(len(set(map(_width, block.sides))) > 1 for block in line)
    return signs | ({_FILLER} if aligned and uneven else set())


def carets_under(line: Sequence[AlignedCells], side: int) -> Text:
    """Return a line of carets under the changes of a side, for terminals without colour."""
    carets = (("^" if block.transforms[side] else " ") * block.width for block in line)
    return Text("".join(carets).rstrip())


def lines_of(
    versions: Sequence[ShownRow], width: int, aligned: bool = True
) -> Iterator[list[AlignedCells]]:
    """Yield the lines in which versions of a row are printed, at most `width` columns wide.

    A line is a list of blocks (see `AlignedCells`). It is broken after a space, or inside a word
    that is longer than half a line.
    """
    line: list[AlignedCells] = []
    used = 0
    # With blocks of at most half a line, the last word and the block after it fit in the next line.
    for block in _blocks(versions, max(width // 2, 2), aligned):
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
    return not block.is_changed and block.sides[0][0].text.isspace()


def _blocks(versions: Sequence[ShownRow], limit: int, aligned: bool) -> Iterator[AlignedCells]:
    """Yield a row as blocks of text: one per unchanged grapheme, one or more per changed span.

    `limit` is the greatest width of a block, in columns; a wider span becomes several blocks. If
    `aligned`, signs such as ␣ stand for changed spaces.
    """
    clean, sides = min((row.clean for row in versions), key=len), len(versions) + 1
    rows = [(row, list(_whole_graphemes(row))[::-1]) for row in versions]
    spans = _changed_spans(chain.from_iterable(changes for _, changes in rows))
    done = 0
    for start, stop in [*spans, (len(clean), len(clean))]:
        for cell in displayed(clean[done:start]):
            yield AlignedCells([[cell]] * sides, [""] * sides)
        changed = [_changed_text(row, changes, start, stop) for row, changes in rows]
        names = [transforms for _, transforms in changed]
        names = [names[0] if len(names) == 1 else "", *names]
        texts = [clean[start:stop], *(text for text, _ in changed)]
        yield from _cut([displayed(text, changed=aligned) for text in texts], names, limit)
        done = stop


def _cut(sides: list[list[Grapheme]], names: list[str], limit: int) -> Iterator[AlignedCells]:
    """Yield a changed span as blocks of at most `limit` columns."""
    while any(sides):
        heads = [_fitting(side, limit) for side in sides]
        yield AlignedCells([side[:n] for side, n in zip(sides, heads, strict=True)], names)
        sides = [side[n:] for side, n in zip(sides, heads, strict=True)]


def _changed_spans(changes: Iterable[Edit]) -> list[tuple[int, int]]:
    """Return the spans of clean text that changes cover; spans that overlap are joined."""
    spans: list[tuple[int, int]] = []
    for start, stop in sorted({(change.clean_start, change.clean_end) for change in changes}):
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(stop, spans[-1][1])
        else:
            spans.append((start, stop))
    return spans


def _changed_text(row: ShownRow, ahead: list[Edit], start: int, stop: int) -> tuple[str, str]:
    """Return the noisy text of a span of clean text, and the transforms that changed it.

    Removes the changes within the span from the end of `ahead`, the changes of the row backwards.
    """
    text, names, done = "", [], start
    while ahead and (ahead[-1].clean_start < stop or ahead[-1].clean_end <= start):
        change = ahead.pop()
        text += row.clean[done : change.clean_start] + row.texts_of(change)[1]
        names += change.transform.split("+")
        done = change.clean_end
    return text + row.clean[done:stop], "+".join(dict.fromkeys(names))


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
