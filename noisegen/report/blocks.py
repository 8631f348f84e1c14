"""The blocks of a report, as plain data in sections.

A report is composed once. `report.pages` writes its sections as HTML, `report.terminal` prints
them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from noisegen.text.alignment import edits

NAME_MAX, TEXT_MAX = 60, 400  # characters of a name and of a text that are shown
_ALIGNED_MAX, _SIDE_MAX = 2_000, 280  # characters of an example that are compared, and shown
_LEAD_MAX = 60  # characters shown before the first difference, if it is far from the beginning
# Characters that neither HTML nor a terminal may get: controls and lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
SHADES = 9  # colours of heat maps in page.css


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a text, a figure or a bar.

    A cell with a `value` is a figure, sorted and copied by this value. `title` is shown when the
    pointer rests on the cell. `shade` from 0 to 1 colours the cell, `bar` from 0 to 1 is drawn as a
    bar. `pieces` are the text in parts, some of them marked. A cell with a `detail` is drawn by the
    macro of its table.
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
        """The cell's CSS classes."""
        shade = "" if self.shade is None else f"h{min(int(self.shade * SHADES), SHADES - 1)}"
        figure = "" if self.value is None else "n"
        return " ".join(filter(None, (figure, shade, self.kind)))


def figure(value: float | None, form: str = ",d") -> Cell:
    """Return a number as a cell of a table, '-' for None; `form` is a format specification."""
    return Cell("-", kind="n") if value is None else Cell(f"{value:{form}}", value)


Row = Sequence[Cell | str]  # the first cell names the row
MISSING = Cell("–", kind="none")


@dataclass(frozen=True)
class Table:
    """A table. Its `macro`, of the caller's template, draws the cells that have a `detail`.

    On a narrow page, each row of a table of `kind` 'stacked' is a list of its cells.
    """

    caption: str
    heads: Row
    rows: Sequence[Row]
    kind: str = ""
    note: str = ""  # beside the caption
    macro: str = ""

    def is_figure(self, column: int) -> bool:
        """Tell whether the cells of a column are figures, by its first row."""
        cell = self.rows[0][column] if self.rows else ""
        return isinstance(cell, Cell) and cell.classes.startswith("n")


@dataclass(frozen=True)
class Figure:
    """Charts side by side, with a caption, and a key that names their marks."""

    charts: Sequence[Markup]
    caption: str
    title: str = ""
    key: Sequence[tuple[Markup, str]] = ()


@dataclass(frozen=True)
class Bars:
    """Figures of one or more series by label: a chart in a page, a table with bars in a terminal.

    `axis` names the labels and `unit` the figures. `counts` stand beside the figures.
    """

    title: str
    unit: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float]]  # by name, a figure for each label
    caption: str = ""
    axis: str = ""
    counts: Mapping[str, Sequence[int]] = field(default_factory=dict)  # by name of series

    @property
    def most(self) -> float:
        """The greatest figure; 1 if all figures are 0."""
        return max((value for values in self.series.values() for value in values), default=0) or 1


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` is '', 'quiet', 'lead' or 'warning'."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are hidden until the reader clicks their title."""

    title: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Facts:
    """Named facts, each of one line or more."""

    lines: Mapping[str, Sequence[str]]


Piece = tuple[str, bool]  # a text, and True if it is marked


@dataclass(frozen=True)
class Example:
    """Versions of one text by name, with their differences marked."""

    versions: Mapping[str, Sequence[Piece]]
    note: str = ""
    chart: Markup | None = None


@dataclass(frozen=True)
class ExampleList:
    """A list of examples."""

    examples: Sequence[Example]


@dataclass(frozen=True)
class Custom:
    """Data that a macro of the caller's template draws."""

    macro: str
    data: Any


Block = Table | Figure | Bars | Text | Facts | ExampleList | Folded | Custom


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading; a section without blocks is left out."""

    name: str  # the anchor that links lead to
    title: str
    blocks: Sequence[Block]
    lead: str = ""


def writable(text: str) -> str:
    """Return a text with control characters and lone surrogates as U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters; an ellipsis stands for the characters cut off."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def differences(clean: str, noisy: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts as pieces; pieces that differ are marked."""
    clean, noisy = clean[:_ALIGNED_MAX], noisy[:_ALIGNED_MAX]
    changed = edits(clean, noisy)
    return (
        marked(clean, [(edit.clean_start, edit.clean_stop) for edit in changed]),
        marked(noisy, [(edit.noisy_start, edit.noisy_stop) for edit in changed]),
    )


def marked(text: str, parts: Sequence[tuple[int, int]]) -> list[Piece]:
    """Return a window of a text as pieces with these parts marked; an empty part is a caret."""
    first = parts[0][0] if parts else 0
    at = max(0, first - _LEAD_MAX) if first > _SIDE_MAX - _LEAD_MAX else 0
    stop = at + _SIDE_MAX
    pieces = [("…", False)] if at else []
    for start, end in dict.fromkeys(parts):  # several insertions at one place are one caret
        if start >= stop:
            break
        pieces += [(text[at:start], False), (text[start : min(end, stop)] or "‸", True)]
        at = min(end, stop)
    pieces.append((text[at:stop], False))
    return [*pieces, ("…", False)] if len(text) > stop else pieces
