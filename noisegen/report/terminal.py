"""The blocks of a report in a terminal: tables with bars, and paragraphs."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from noisegen.report.blocks import (
    Bars,
    Block,
    Cell,
    Example,
    ExampleList,
    Facts,
    Folded,
    Piece,
    Section,
    Table,
    Text,
    writable,
)

BAR_COLUMNS = 24
EXAMPLES = 3  # shown of those of a page
_BESIDE = 12  # characters that are shown on each side of the marked part of a cell
_SHADES = "▏▎▍▌▋▊▉"  # one to seven eighths of a column
_COLOURS = ("cyan", "yellow", "magenta", "green")
_SHOWN = Table | Bars | Text | Facts | ExampleList
_VERSIONS = {"clean": "cyan", "noisy": "yellow", "real": "magenta", "synthetic": "yellow"}
_STYLES = {
    "better": "green", "worse": "red", "same": "dim", "none": "dim", "quiet": "dim",
    "named": "bold", "lead": "bold", "warning": "yellow", "code": "cyan",
}  # fmt: skip


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in per cent, '-' for None."""
    return "-" if share is None else f"{share:.{digits}%}"


def bar(value: float, most: float, columns: int = BAR_COLUMNS) -> str:
    """Return a bar of eighths of a column; a value above 0 shows at least one eighth."""
    eighths = max(round(value / most * columns * 8), 1) if most and value else 0
    return "█" * (eighths // 8) + (_SHADES[eighths % 8 - 1] if eighths % 8 else "")


def titled(title: str, note: str = "", heads: bool = True, lines: bool = True) -> RichTable:
    """Return a table without edges, its title and a note at the left, a line under its heads."""
    words = RichText.assemble((title, "bold"), (f"  {note}" if note else "", "dim"))
    style = box.SIMPLE_HEAD if heads and lines else None
    table = RichTable(title=words if title else None, title_justify="left", box=style)
    table.show_header = heads
    table.show_edge = table.pad_edge = False
    return table


def show(blocks: Sequence[Section | Block], console: Console) -> None:
    """Print sections and blocks as `pages.page` writes them; charts but `Bars` are left out."""
    for block in blocks:
        match block:
            case Section() if any(isinstance(b, _SHOWN) for b in block.blocks):
                console.print(RichText(block.title, "bold underline"))
                show([*([Text(block.lead, "quiet")] if block.lead else []), *block.blocks], console)
            case Folded():
                show(block.blocks, console)
            case Text() if block.text:
                console.print(RichText(block.text, _style(block.kind)))
                console.print()
            case Facts():
                facts = {name: "\n".join(lines) for name, lines in block.lines.items()}
                console.print(_table(Table("", ["", ""], list(facts.items()))))
                console.print()
            case ExampleList():
                for example in block.examples[:EXAMPLES]:
                    console.print(_example(example))
                    console.print()
            case Table() if block.rows:
                console.print(_table(block))
                console.print()
            case Bars() if block.labels:
                console.print(_bars(block))
                console.print()


def _example(example: Example) -> RichTable:
    """Return a line for each version of a text, its marks in colour and underlined."""
    table = titled("", heads=False)
    for name, pieces in example.versions.items():
        table.add_row(RichText(name, "dim"), _marked(pieces, name))
    if example.note:
        table.add_row("", RichText(example.note, "dim"))
    return table


def _marked(pieces: Sequence[Piece], kind: str) -> RichText:
    """Return a text with its marked parts in colour and underlined."""
    style = f"underline {_VERSIONS.get(kind, _COLOURS[0])}"
    parts = [(writable(text), style if is_marked else "") for text, is_marked in pieces]
    return RichText.assemble(*parts)


def _around(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces, those that are not marked cut to the characters beside a marked one."""
    return [
        (text if is_marked else text[-_BESIDE:] if number == 0 else text[:_BESIDE], is_marked)
        for number, (text, is_marked) in enumerate(pieces)
    ]


def _style(kind: str) -> str:
    return next((_STYLES[word] for word in kind.split() if word in _STYLES), "")


def _table(block: Table) -> RichTable:
    has_heads = any(_text(head).plain for head in block.heads)
    table = titled(block.caption, block.note, has_heads)
    for column, head in enumerate(block.heads):
        cells = [cell for row in block.rows if isinstance(cell := row[column], Cell)]
        is_bar = any(cell.bar is not None for cell in cells)
        table.add_column(
            _text(head), justify="right" if block.is_figure(column) else "left",
            min_width=BAR_COLUMNS if is_bar else None, no_wrap=is_bar, overflow="fold",
        )  # fmt: skip
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _text(cell: Cell | str) -> RichText:
    if isinstance(cell, str):
        return RichText(writable(cell))
    if cell.pieces:
        return _marked(_around(cell.pieces), cell.kind)
    if cell.bar is not None:
        return RichText(bar(cell.bar, 1), _COLOURS[0])
    return RichText(writable(cell.text), _style(cell.kind))


def _bars(block: Bars) -> RichTable:
    """Return a line for each label: a figure and its bar for each series."""
    table = titled(block.title, block.unit, len(block.series) > 1)
    table.add_column("")
    columns = BAR_COLUMNS // min(2, len(block.series))
    for number, name in enumerate(block.series):
        table.add_column(RichText(name), justify="right", no_wrap=True)
        table.add_column("", style=_COLOURS[number % 4], no_wrap=True, min_width=columns)
    for row, label in enumerate(block.labels):
        figures = [series[row] for series in block.series.values()]
        pairs = [(f"{figure:,.1f}", bar(figure, block.most, columns)) for figure in figures]
        table.add_row(RichText(label), *(text for pair in pairs for text in pair))
    return table
