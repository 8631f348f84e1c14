"""What a report is made of: sections of blocks, as plain data.

`report.pages` writes them as HTML, `report.terminal` prints them: a report is composed once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

NAME_MAX, TEXT_MAX = 60, 400  # characters of a name and of a text that are shown
SHADES = 9  # of heat maps, in page.css


@dataclass(frozen=True)
class Cell:
    """A cell of a table: text, or a chart.

    `value` makes it a figure, which is sorted and copied by it; `title` is shown where the pointer
    rests. `shade` from 0 to 1 colours it, `bar` from 0 to 1 is drawn as a bar. `detail` is drawn by
    the page's macro of the table instead.
    """

    text: str
    value: float | None = None
    title: str = ""
    kind: str = ""
    shade: float | None = None
    bar: float | None = None
    detail: Any = None

    @property
    def classes(self) -> str:
        """The cell's CSS classes."""
        shade = "" if self.shade is None else f"h{min(int(self.shade * SHADES), SHADES - 1)}"
        figure = "" if self.value is None else "n"
        return " ".join(filter(None, (figure, shade, self.kind)))


Row = Sequence[Cell | str]  # the first cell names the row
MISSING = Cell("–", kind="none")


@dataclass(frozen=True)
class Table:
    """A table; the caller's `macro` draws the cells that have a `detail`."""

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
    """Charts side by side, what they show in words, and the key of their marks."""

    charts: Sequence[Markup]
    caption: str
    title: str = ""
    key: Sequence[tuple[Markup, str]] = ()


@dataclass(frozen=True)
class Bars:
    """Figures by label, one of each series: a chart in a page, a table with bars in a terminal."""

    title: str
    unit: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float]]  # by name, a figure for each label
    caption: str = ""

    @property
    def most(self) -> float:
        """The greatest figure; 1 where all are 0."""
        return max((value for values in self.series.values() for value in values), default=0) or 1


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` is '', 'quiet', 'lead' or 'warning'."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks behind a title that opens them."""

    title: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Custom:
    """Data for a macro of the caller's template."""

    macro: str
    data: Any


Block = Table | Figure | Bars | Text | Folded | Custom


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading; one without blocks is left out."""

    name: str  # of the link to it
    title: str
    blocks: Sequence[Block]
    lead: str = ""


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, with an ellipsis where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
