"""The figures of a run as one picture of four panels, PNG or self-contained HTML."""

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from noisegen.atomic import atomic
from noisegen.errors import MissingExtra
from noisegen.figures import Statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by the colour-blind.
_CER_SHOWN = 0.99  # of the changed rows; the others are in the last bar
_BLUE, _ORANGE, _GREEN, _PURPLE, _GREY = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#595959"
_MARKER: dict[str, Any] = {"color": _ORANGE, "mec": "black", "clip_on": False}
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>
<style>body {{ margin: 1em auto; max-width: 80em }} svg {{ width: 100%; height: auto }}</style>
</head>
<body><main role="img" aria-label="{title}">
{svg}
</main></body>
</html>
"""


def write(statistics: Statistics, path: Path) -> None:
    """Write the picture: HTML with the drawing inside if `path` ends in .html, else PNG.

    Raises MissingExtra without matplotlib, OutputError if the file cannot be written.
    """
    figure = _draw(statistics)
    with catch_warnings():  # a transform may have a name that the font cannot write
        filterwarnings("ignore", "Glyph .* missing")
        content = _page(statistics, figure) if path.suffix.lower() == ".html" else _png(figure)
    with atomic(path) as file:
        file.write(content)


def _png(figure: "Figure") -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _page(statistics: Statistics, figure: "Figure") -> bytes:
    from matplotlib import rc_context

    content = io.StringIO()
    with rc_context({"svg.hashsalt": "noisegen"}):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    svg = content.getvalue()
    page = _PAGE.format(title=escape(_title(statistics)), svg=svg[svg.index("<svg") :])
    return page.encode()


def _draw(statistics: Statistics) -> "Figure":
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot") from error
    names = len(statistics.transforms)
    figure = Figure(figsize=(11, 8 + max(0, names - 16) * 0.25), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_title(statistics), fontsize=13)
    panels = (_draw_per_row, _draw_transforms, _draw_edit_kinds, _draw_cer)
    for axes, panel in zip(figure.subplots(2, 2).flat, panels, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        panel(axes, statistics)
    return figure


def _title(statistics: Statistics) -> str:
    errors = (("CER", statistics.cer), ("WER", statistics.wer))
    shares = [f"{name} {'-' if share is None else f'{share:.2%}'}" for name, share in errors]
    return "   ".join([f"{statistics.rows:,} rows", *shares])


def _say(axes: "Axes", message: str) -> None:
    """Write a message instead of a panel that has nothing to show."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, message, ha="center", va="center", color=_GREY, transform=axes.transAxes)


def _draw_per_row(axes: "Axes", statistics: Statistics) -> None:
    axes.set_title("Transforms per row")
    drawn = [x for x in statistics.transforms_per_row if x.rows or (x.expected or 0) >= 0.5]
    if not statistics.rows:
        _say(axes, "no rows")
        return
    numbers = [line.transforms for line in drawn]
    shares = [100 * line.rows / statistics.rows for line in drawn]
    axes.bar(numbers, shares, color=_BLUE, label="this run")
    if any(line.expected is not None for line in drawn):
        expected = [100 * (line.expected or 0) / statistics.rows for line in drawn]
        axes.plot(numbers, expected, "D", label="expected of mix_all", **_MARKER)
        axes.legend(frameon=False)
    axes.set_xticks(numbers if len(numbers) <= 16 else numbers[:: len(numbers) // 8])
    axes.set_xlabel("transforms drawn")
    axes.set_ylabel("% of rows")


def _draw_transforms(axes: "Axes", statistics: Statistics) -> None:
    axes.set_title("Rows changed by a transform drawn alone")
    alone = [line for line in statistics.transforms if line.changed_alone_share is not None]
    if not alone:
        _say(axes, "no transform was drawn alone")
        return
    alone.sort(key=lambda line: (line.changed_alone_share or 0, line.name))
    shares = [100 * (line.changed_alone_share or 0) for line in alone]
    bars = axes.barh(range(len(alone)), shares, color=_GREEN)
    labels = [f"{line.changed_alone:,} of {line.rows_alone:,}" for line in alone]
    axes.bar_label(bars, labels, padding=3, fontsize=8, color=_GREY)
    axes.set_yticks(range(len(alone)), [line.name for line in alone], parse_math=False)
    axes.set_xlim(0, 125)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("% changed of the rows that drew nothing else")


def _draw_edit_kinds(axes: "Axes", statistics: Statistics) -> None:
    from matplotlib.ticker import MaxNLocator

    found = statistics.edit_kinds
    sample = f", a sample of {found.rows:,} changed rows" if found.is_sample else ""
    axes.set_title(f"Edits by kind{sample}")
    kinds = found.kinds[::-1]
    if not any(line.characters + line.blanks for line in kinds):
        _say(axes, "no edits")
        return
    for shift, color, name in ((0.2, _BLUE, "characters"), (-0.2, _ORANGE, "blanks")):
        counts = [getattr(line, name) for line in kinds]
        places = [place + shift for place in range(len(kinds))]
        bars = axes.barh(places, counts, 0.38, color=color, label=f"of {name}")
        axes.bar_label(bars, [f"{count:,}" for count in counts], padding=3, fontsize=8)
    axes.set_yticks(range(len(kinds)), [line.kind for line in kinds])
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("edits")
    axes.legend(frameon=False)


def _draw_cer(axes: "Axes", statistics: Statistics) -> None:
    axes.set_title("CER of the changed rows")
    counts = statistics.cer_of_changed_rows
    if not statistics.changed:
        _say(axes, "no changed rows")
        return
    reached = [sum(counts[: place + 1]) for place in range(len(counts))]
    last = next(i for i, rows in enumerate(reached) if rows >= _CER_SHOWN * statistics.changed)
    heights = [*counts[:last], sum(counts[last:])]
    shares = [100 * rows / statistics.changed for rows in heights]
    axes.bar(range(last + 1), shares, 1, align="edge", color=_PURPLE, edgecolor="white")
    rest = f"; the last bar: {last}% and above" if reached[last] < statistics.changed else ""
    axes.set_xlabel(f"character error rate in %{rest}")
    axes.set_ylabel("% of changed rows")
