"""Blocks that a report is made of, such as tables and charts: plain data, grouped in sections.

A command composes a report once. `report.pages` writes its sections as an HTML page, and
`report.terminal` prints the same sections.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from noisegen.text.alignment import edits

NAME_MAX, TEXT_MAX = 60, 400  # most characters shown of a name, and of any other text
_ALIGNED_MAX, _SIDE_MAX = 2_000, 280  # most characters of an example: compared, shown
_LEAD_MAX = 60  # characters shown before the first difference, if the beginning of a text is cut
# Characters that are unsafe in HTML and on terminals: control characters and lone surrogates
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
SHADES = 9  # number of background colours that page.css has for the cells of heat maps


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a text, a number or a bar.

    `text` is shown, or `pieces` of text, some of them marked. `value` is the number in `text`, for
    sorting and copying. `title` is a tooltip. `kind` has CSS classes. `shade`, from 0 to 1, chooses
    a background colour. `bar`, from 0 to 1, is drawn as a bar of this length. If `detail` is set,
    the template macro named by `Table.macro` draws the cell.
    """

    text: str
    value: float | None = None
    title: str = ""
    kind: str = ""
    shade: float | None = None
    bar: float | None = None
    detail: Any = None
    pieces: "Sequence[Piece]" = ()

    @property
    def classes(self) -> str:
        """CSS classes of the cell, separated by spaces."""
        shade = "" if self.shade is None else f"h{min(int(self.shade * SHADES), SHADES - 1)}"
        figure = "" if self.value is None else "n"
        return " ".join(filter(None, (figure, shade, self.kind)))


def figure(value: float | None, form: str = ",d") -> Cell:
    """Return a cell that shows a number, formatted as `form` says (',d'), or '-' for None."""
    return Cell("-", kind="n") if value is None else Cell(f"{value:{form}}", value)


Row = Sequence[Cell | str]  # cells of a table row; the first cell is the name of the row
MISSING = Cell("–", kind="none")


@dataclass(frozen=True)
class Table:
    """A table with a caption.

    `macro` names a Jinja macro in the caller's page template; it draws the cells with a `detail`.
    If `kind` has the word 'stacked', a narrow page shows the cells of a row below each other.
    """

    caption: str
    heads: Row
    rows: Sequence[Row]
    kind: str = ""
    note: str = ""  # text shown beside the caption
    macro: str = ""

    def is_figure(self, column: int) -> bool:
        """Tell whether a column has numbers, judged by its cell in the first row."""
        cell = self.rows[0][column] if self.rows else ""
        return isinstance(cell, Cell) and cell.classes.startswith("n")


@dataclass(frozen=True)
class Figure:
    """Charts side by side, with a common caption.

    `key` is the legend: the marks in the charts, each with its meaning.
    """

    charts: Sequence[Markup]
    caption: str
    title: str = ""
    key: Sequence[tuple[Markup, str]] = ()


@dataclass(frozen=True)
class Bars:
    """Series of numbers, shown as a bar chart in a page, and as a table with bars in a terminal.

    Each series has one number per label. `axis` is the kind of label ('transform'), `unit` the unit
    of the numbers. `counts` has a count for each number, shown in brackets beside it: '7.5 (120)'.
    """

    title: str
    unit: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float]]  # {name of a series: a number per label}
    caption: str = ""
    axis: str = ""
    counts: Mapping[str, Sequence[int]] = field(default_factory=dict)  # {name of a series: counts}

    @property
    def most(self) -> float:
        """The greatest number of all series; 1 if all numbers are 0."""
        return max((value for values in self.series.values() for value in values), default=0) or 1


@dataclass(frozen=True)
class Text:
    """A paragraph; its style `kind` is '', 'quiet', 'lead' or 'warning'."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are hidden until the reader clicks their title."""

    title: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Facts:
    """A list of facts: `lines` maps the name of each fact to one or more lines of text."""

    lines: Mapping[str, Sequence[str]]


Piece = tuple[str, bool]  # part of a text; True if the part is marked as different


@dataclass(frozen=True)
class Example:
    """Versions of one text, such as clean and noisy, with the differences between them marked.

    `versions` maps the name of each version to its pieces.
    """

    versions: Mapping[str, Sequence[Piece]]
    note: str = ""
    chart: Markup | None = None


@dataclass(frozen=True)
class ExampleList:
    """Examples shown one after the other."""

    examples: Sequence[Example]


@dataclass(frozen=True)
class Custom:
    """Data drawn by a Jinja macro in the caller's page template; not shown in a terminal."""

    macro: str
    data: Any


Block = Table | Figure | Bars | Text | Facts | ExampleList | Folded | Custom


@dataclass(frozen=True)
class Section:
    """Blocks of a report below a common heading; a section without blocks is not shown."""

    name: str  # anchor in the page, for links to the section
    title: str
    blocks: Sequence[Block]
    lead: str = ""


def writable(text: str) -> str:
    """Return a text in which U+FFFD replaces control characters and lone surrogates."""
    return _UNSAFE.sub("\ufffd", text)


def cut(text: str, most: int) -> str:
    """Cut a text to at most `most` characters; its last character is an ellipsis if it was cut."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def differences(clean: str, noisy: str) -> tuple[list[Piece], list[Piece]]:
    """Return each text as a list of pieces, (text, whether it differs from the other text).

    A long text is cut to `_SIDE_MAX` characters around its first difference.
    """
    clean, noisy = clean[:_ALIGNED_MAX], noisy[:_ALIGNED_MAX]
    changed = edits(clean, noisy)
    return (
        marked(clean, [(edit.clean_start, edit.clean_stop) for edit in changed]),
        marked(noisy, [(edit.noisy_start, edit.noisy_stop) for edit in changed]),
    )


def marked(text: str, parts: Sequence[tuple[int, int]]) -> list[Piece]:
    """Return at most `_SIDE_MAX` characters of a text as pieces, with the given parts marked.

    `parts` are ascending (start, end) indices of characters; an empty part is marked by a caret. If
    the first part is far from the beginning of the text, the pieces begin shortly before it.
    """
    first = parts[0][0] if parts else 0
    at = max(0, first - _LEAD_MAX) if first > _SIDE_MAX - _LEAD_MAX else 0
    stop = at + _SIDE_MAX
    pieces = [("…", False)] if at else []
    for start, end in dict.fromkeys(parts):  # several insertions at one index share a caret
        if start >= stop:
            break
        pieces += [(text[at:start], False), (text[start : min(end, stop)] or "‸", True)]
        at = min(end, stop)
    pieces.append((text[at:stop], False))
    return [*pieces, ("…", False)] if len(text) > stop else pieces
