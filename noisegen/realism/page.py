"""A comparison as one HTML page: figures, plots drawn into it, and nothing from elsewhere."""

import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings, filterwarnings

from noisegen.atomic import write_text
from noisegen.errors import MissingExtra
from noisegen.realism.comparison import Realism
from noisegen.realism.figures import HISTOGRAMS
from noisegen.realism.tables import TITLES, auc_text, rates, shares, tests, visible
from noisegen.tables import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE = "#0072b2", "#e69f00"  # Okabe and Ito's palette, told apart by the colour-blind
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>How real the noise is</title>
<style>
body {{ margin: 2em auto; max-width: 62em; padding: 0 1em; font: 16px/1.45 system-ui, sans-serif;
  color: #1a1a1a; background: #fff }}
table {{ border-collapse: collapse; margin: .5em 0 1.5em }}
th, td {{ text-align: left; padding: .2em 1.2em .2em 0; border-bottom: 1px solid #ddd;
  vertical-align: top }}
td.n {{ font-variant-numeric: tabular-nums; white-space: nowrap }}
code {{ background: #f2f2f2; padding: .1em .3em; white-space: pre-wrap }}
svg {{ width: 100%; height: auto }}
.warning {{ border-left: .3em solid #e69f00; padding: .3em .8em; margin: .5em 0 }}
</style>
</head>
<body><main>
<h1>How real the noise is</h1>
<p>{about}</p>
{warnings}
<h2>Told apart by a classifier</h2>
<p>AUC: the chance that a classifier on character n-grams, trained on other texts, takes a synthetic
text for the more synthetic of two. 0.5 is perfect.</p>
{tests}
<h2>Divergences</h2>
<p>Jensen-Shannon, base 2: 0 the same, 1 nothing in common. Two halves of the real set differ by
what the last column says.</p>
{divergences}
<h2>Rates</h2>
{rates}
<h2>Histograms</h2>
<div role="img" aria-label="Histograms of real and synthetic noise">{svg}</div>
<h2>What gives the noise away</h2>
<p>n-grams the classifier goes by, and the share of rows that have them; ␣ is a blank, ¶ the
beginning or the end of a text.</p>
{telling}
</main></body>
</html>
"""


def write(found: Realism, path: Path) -> None:
    """Write the page; raises MissingExtra without matplotlib, OutputError if it cannot."""
    write_text(path, page(found))


def page(found: Realism) -> str:
    """Return the page as HTML."""
    how = "on the same clean texts" if found.is_paired else "on different texts"
    return _PAGE.format(
        about=f"Real noise against synthetic noise {how}: {found.real.rows:,} rows of each.",
        warnings="\n".join(f'<p class="warning">{escape(line)}</p>' for line in found.warnings),
        tests=_tests(found),
        divergences=_divergences(found),
        rates=_rates(found),
        svg=_svg(_draw(found)),
        telling=_telling(found),
    )


# Tables.


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are HTML, and all but the first are figures."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = (
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f'<td class="n">{cell}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _tests(found: Realism) -> str:
    lines = tests(found.two_sample)
    rows = [(escape(name), auc_text(auc), escape(reading)) for name, auc, reading in lines]
    return _table(("", "AUC (95 % interval)", ""), rows)


def _divergences(found: Realism) -> str:
    head = ("", "divergence", "95 % interval", "two halves of real")
    lines = [(TITLES[name], found.divergences[name]) for name in HISTOGRAMS]
    rows = [
        (name, f"{one.value:.3f}", f"{one.low:.3f}\u2013{one.high:.3f}", f"{one.floor:.3f}")
        for name, one in lines
    ]
    return _table(head, rows)


def _rates(found: Realism) -> str:
    real, synthetic = rates(found.real), rates(found.synthetic)
    return _table(("", "real", "synthetic"), [(name, real[name], synthetic[name]) for name in real])


def _telling(found: Realism) -> str:
    rows = [
        (
            f"<code>{escape(visible(one.ngram))}</code>",
            percent(one.real_share),
            percent(one.synthetic_share),
            one.side,
            " ".join(f"<code>{escape(visible(text))}</code>" for text in one.examples),
        )
        for one in found.two_sample.telling
    ]
    return _table(("", "real", "synthetic", "more in", "for instance"), rows)


# Plots.


def _svg(figure: "Figure") -> str:
    from matplotlib import rc_context

    content = io.StringIO()
    with rc_context({"svg.hashsalt": "noisegen"}), catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    svg = content.getvalue()
    return svg[svg.index("<svg") :]


def _draw(found: Realism) -> "Figure":
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot") from error
    figure = Figure(figsize=(11, 10), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplot_mosaic(
        [["kinds", "edits_per_row"], ["kinds", "sentence_positions"], ["kinds", "word_positions"]]
    )
    for name, axes in panels.items():
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(TITLES[name].capitalize())
        _bars(axes, found, name)
    panels["edits_per_row"].legend(frameon=False)
    return figure


def _bars(axes: "Axes", found: Realism, name: str) -> None:
    """Draw a histogram of both sets side by side, in per cent."""
    labels = _labels(found, name)
    sides = [shares(one.histogram(name)) for one in (found.real, found.synthetic)]
    shown = [
        place
        for place in range(len(labels))
        if name != "kinds" or sides[0][place] + sides[1][place]
    ]
    flat = name == "kinds"
    for shift, side, color, label in (
        (-0.2, sides[0], _BLUE, "real"), (0.2, sides[1], _ORANGE, "synthetic"),
    ):  # fmt: skip
        places = [number + shift for number in range(len(shown))]
        heights = [100 * side[place] for place in shown]
        (axes.barh if flat else axes.bar)(places, heights, 0.38, color=color, label=label)
    names = [labels[place] for place in shown]
    (axes.set_yticks if flat else axes.set_xticks)(range(len(shown)), names)
    if flat:
        axes.invert_yaxis()
    if name == "sentence_positions":
        axes.set_xlabel("% of the clean text before it")
    unit = "% of rows" if name == "edits_per_row" else "% of edits"
    (axes.set_xlabel if flat else axes.set_ylabel)(unit)


def _labels(found: Realism, name: str) -> list[str]:
    counts = found.real.histogram(name)
    if name == "edits_per_row":
        return [*map(str, range(len(counts) - 1)), f"{len(counts) - 1}+"]
    if name == "sentence_positions":
        return [f"{100 * place // len(counts)}" for place in range(len(counts))]
    return list(getattr(found.real, name))
