"""Parts of the tables that commands print: shares, bars, a table with a title."""

from rich import box
from rich.table import Table

_SHADES = "▏▎▍▌▋▊▉"  # one to seven eighths of a column


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in per cent, '-' for None."""
    return "-" if share is None else f"{share:.{digits}%}"


def bar(value: float, most: float, columns: int = 24) -> str:
    """Return a bar of eighths of a column; a value above 0 shows at least one eighth."""
    eighths = max(round(value / most * columns * 8), 1) if most and value else 0
    return "█" * (eighths // 8) + (_SHADES[eighths % 8 - 1] if eighths % 8 else "")


def titled(title: str, lines: box.Box | None = box.SIMPLE_HEAD) -> Table:
    """Return a table with its title at the left and no edges."""
    table = Table(title=title, title_justify="left", title_style="bold", box=lines)
    table.show_edge = table.pad_edge = False
    return table
