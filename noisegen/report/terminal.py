"""Print the blocks of a report on a terminal: as tables, bars and paragraphs."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.report import blocks

BAR_COLUMNS = 24
EXAMPLES = 3  # most examples shown of an `ExampleList`
_BESIDE = 12  # most characters shown of a text between two marked differences, in a table cell
_SHADES = "▏▎▍▌▋▊▉"  # characters filled to one eighth, two eighths, ... seven eighths
_COLOURS = ("cyan", "yellow", "magenta", "green")
_SHOWN = blocks.Table | blocks.Bars | blocks.Text | blocks.Facts | blocks.ExampleList
_VERSIONS = {"clean": "cyan", "noisy": "yellow", "real": "magenta", "synthetic": "yellow"}
_STYLES = {  # for each `kind` of a cell or paragraph, its style in terminals (as rich names it)
    "better": "green",
    "worse": "red",
    "same": "dim",
    "none": "dim",
    "quiet": "dim",
    "named": "bold",
    "lead": "bold",
    "warning": "yellow",
    "code": "cyan",
}


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share from 0 to 1 as text in per cent, with `digits` decimals; '-' for None."""
    return "-" if share is None else f"{share:.{digits}%}"


def bar(value: float, most: float, columns: int = BAR_COLUMNS) -> str:
    """Return a bar of block characters for `value`; the bar of `most` has `columns` characters.

    The last character may be filled in eighths. A value above 0 has at least one eighth.
    """
    eighths = max(round(value / most * columns * 8), 1) if most and value else 0
    return "█" * (eighths // 8) + (_SHADES[eighths % 8 - 1] if eighths % 8 else "")


def titled(title: str = "", heads: bool = True, lines: bool = True) -> Table:
    """Return an empty table without a frame.

    With `heads`, the names of the columns are shown, and with `lines` a line below them. A table
    with a `title` has narrower spaces between columns.
    """
    words = Text(title, "bold") if title else None
    style = box.SIMPLE_HEAD if heads and lines else None
    table = Table(title=words, title_justify="left", box=style, show_header=heads)
    table.show_edge = table.pad_edge = False
    table.padding, table.collapse_padding = (0, 1, 0, 0) if title else (0, 1), bool(title)
    return table


def show(content: Sequence[blocks.Section | blocks.Block], console: Console) -> None:
    """Print sections and blocks of a report, without SVG charts and `Custom` blocks."""
    for block in content:
        match block:
            case blocks.Section() if any(isinstance(b, _SHOWN) for b in block.blocks):
                console.print(Text(block.title, "bold underline"))
                show([blocks.Text(block.lead, "quiet"), *block.blocks], console)
            case blocks.Folded():
                show(block.blocks, console)
            case blocks.Text() if block.text:
                _print(console, Text(block.text, _style(block.kind)))
            case blocks.Facts():
                facts = {name: "\n".join(lines) for name, lines in block.lines.items()}
                _print(console, _table(blocks.Table("", ["", ""], list(facts.items()))))
            case blocks.ExampleList():
                for example in block.examples[:EXAMPLES]:
                    _print(console, _example(example))
            case blocks.Table() if block.rows:
                _print(console, _table(block), block.caption, block.note)
            case blocks.Bars() if block.labels:
                _print(console, _bars(block), block.title, block.unit)


def _print(console: Console, content: Table | Text, title: str = "", note: str = "") -> None:
    """Print a title with a note beside it, then a table or text, then an empty line.

    The title is printed apart from a table, since it may be wider than the table.
    """
    if title:
        console.print(Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim")))
    console.print(content)
    console.print()


def _example(example: blocks.Example) -> Table:
    """Return a table with a row per version of an example text, with differences underlined."""
    table = titled(heads=False)
    for name, pieces in example.versions.items():
        table.add_row(Text(name, "dim"), _marked(pieces, name))
    if example.note:
        table.add_row("", Text(example.note, "dim"))
    return table


def _marked(pieces: Sequence[blocks.Piece], kind: str) -> Text:
    """Return a text with its marked pieces underlined; `kind` ('noisy') decides their colour."""
    style = f"underline {_VERSIONS.get(kind, _COLOURS[0])}"
    parts = [(blocks.writable(text), style if is_marked else "") for text, is_marked in pieces]
    return Text.assemble(*parts)


def _around(pieces: Sequence[blocks.Piece]) -> list[blocks.Piece]:
    """Cut each unmarked piece of a text to the `_BESIDE` characters beside a difference.

    The first piece, before the first difference, keeps its last characters, others their first.
    """
    return [
        (text if is_marked else text[-_BESIDE:] if number == 0 else text[:_BESIDE], is_marked)
        for number, (text, is_marked) in enumerate(pieces)
    ]


def _style(kind: str) -> str:
    return next((_STYLES[word] for word in kind.split() if word in _STYLES), "")


def _table(block: blocks.Table) -> Table:
    table = titled(heads=any(_text(head).plain for head in block.heads))
    for column, head in enumerate(block.heads):
        cells = [cell for row in block.rows if isinstance(cell := row[column], blocks.Cell)]
        is_bar = any(cell.bar is not None for cell in cells)
        table.add_column(
            _text(head),
            justify="right" if block.is_figure(column) else "left",
            min_width=BAR_COLUMNS if is_bar else None,
            no_wrap=is_bar,
            overflow="fold",
        )
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _text(cell: blocks.Cell | str) -> Text:
    if isinstance(cell, str):
        return Text(blocks.writable(cell))
    if cell.pieces:
        return _marked(_around(cell.pieces), cell.kind)
    if cell.bar is not None:
        return Text(bar(cell.bar, 1), _COLOURS[0])
    return Text(blocks.writable(cell.text), _style(cell.kind))


def _bars(block: blocks.Bars) -> Table:
    """Return a table with a row per label: the label, and a number and its bar for each series.

    Bars are shorter the more series there are, so that four fit into 80 columns.
    """
    table = titled(heads=len(block.series) > 1)
    table.add_column("")
    columns = BAR_COLUMNS // 2 ** (len(block.series) - 1)
    for number, name in enumerate(block.series):
        table.add_column(Text(name), justify="right", no_wrap=True)
        table.add_column("", style=_COLOURS[number % 4], no_wrap=True, min_width=columns)
    for row, label in enumerate(block.labels):
        figures = [series[row] for series in block.series.values()]
        pairs = [(f"{figure:,.1f}", bar(figure, block.most, columns)) for figure in figures]
        table.add_row(Text(label), *(text for pair in pairs for text in pair))
    return table
