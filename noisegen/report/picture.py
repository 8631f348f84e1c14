"""Bar charts as a PNG picture for papers and slides; `charts.bars` draws them as SVG for pages."""

import io
from collections.abc import Sequence
from warnings import catch_warnings, filterwarnings

from noisegen.errors import naming_extras
from noisegen.report.blocks import Bars
from noisegen.report.charts import bar_labels

_COLORS = ("#0072b2", "#e69f00")  # two colours of Okabe and Ito's palette for colour-blind readers
_ABOUT = {"Software": "noisegen"}  # metadata that marks a picture as made by noisegen
_LABELS_MAX = 16  # charts with more labels make the picture higher


def picture(title: str, panels: Sequence[Bars]) -> bytes:
    """Return a PNG picture of the bar charts in `panels`, two a row, below the common `title`.

    Raises MissingExtra if matplotlib is not installed.
    """
    with naming_extras("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    longest = max((len(panel.labels) for panel in panels), default=0)
    height = 8 + max(0, longest - _LABELS_MAX) * 0.25  # height of the picture in inches
    drawn = Figure(figsize=(11, height), layout="constrained")
    drawn.suptitle(title, fontsize=13)
    lines = -(-len(panels) // 2)
    for index, panel in enumerate(panels, 1):
        axes = drawn.add_subplot(lines, 2, index)
        thickness, labels = 0.8 / len(panel.series), bar_labels(panel)
        for order, (name, values) in enumerate(panel.series.items()):
            rows = [row + order * thickness for row in range(len(values))]
            bars = axes.barh(rows, values, thickness, color=_COLORS[order], label=name)
            axes.bar_label(bars, labels[name], padding=2, fontsize=7)
        axes.margins(x=0.15)
        axes.set_yticks(range(len(panel.labels)), panel.labels, parse_math=False)
        axes.set_title(panel.title, loc="left")
        axes.set(xlabel=panel.unit, ylabel=panel.axis)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        if len(panel.series) > 1:
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    content = io.BytesIO()
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")  # the font may lack characters of a label
        FigureCanvasAgg(drawn).print_figure(content, format="png", dpi=150, metadata=_ABOUT)
    return content.getvalue()
