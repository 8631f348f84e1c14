"""A comparison of noise as one HTML page that needs nothing beside it."""

from pathlib import Path

from markupsafe import Markup

from noisegen.realism.compare import HISTOGRAMS, Realism
from noisegen.realism.terminal_tables import TITLES, auc_text, rates, shares, tests, visible
from noisegen.report import charts, pages
from noisegen.report.pages import Cell, Figure, Row, Section, Table, Text
from noisegen.report.terminal import percent
from noisegen.runs.files import write_text

_SIDES = ("real", "synthetic")


def write(realism: Realism, path: Path) -> None:
    """Write the page; raises OutputError if it cannot be written."""
    write_text(path, page(realism))


def page(realism: Realism) -> str:
    """Return the page as HTML."""
    how = "on the same clean texts" if realism.is_paired else "on different texts"
    about = f"Real noise against synthetic noise {how}: {realism.real.rows:,} rows of each."
    return pages.page(
        "How real the noise is",
        [
            Section("tests", "Told apart by a classifier", [
                Text("AUC: the chance that a classifier on character n-grams, trained on other "
                     "texts, takes a synthetic text for the more synthetic of two. 0.5 is "
                     "perfect."),
                _tests(realism),
            ]),
            Section("divergences", "Divergences", [
                Text("Jensen-Shannon, base 2: 0 the same, 1 nothing in common. Two halves of the "
                     "real set differ by what the last column says."),
                _divergences(realism),
            ]),
            Section("rates", "Rates", [_rates(realism)]),
            Section("histograms", "Histograms", [_histograms(realism)]),
            Section("ngrams", "What gives the noise away", [
                Text("n-grams the classifier goes by, and the share of rows that have them; ␣ is "
                     "a space, ¶ the beginning or the end of a text."),
                _ngrams(realism),
            ]),
        ],
        kicker="noisegen: realism",
        head=[Text(about), *(Text(line, "warning") for line in realism.warnings)],
    )  # fmt: skip


def _tests(realism: Realism) -> Table:
    rows: list[Row] = [
        [name, Cell(auc_text(auc), auc.value if auc else None), reading]
        for name, auc, reading in tests(realism.two_sample)
    ]
    return Table("AUC of the classifier", ["texts", "AUC (95 % interval)", "how to read it"], rows)


def _divergences(realism: Realism) -> Table:
    rows: list[Row] = []
    for name in HISTOGRAMS:
        divergence = realism.divergences[name]
        between = Cell(f"{divergence.low:.3f}–{divergence.high:.3f}", divergence.low)
        floor = Cell(f"{divergence.floor:.3f}", divergence.floor)
        rows.append(
            [TITLES[name], Cell(f"{divergence.value:.3f}", divergence.value), between, floor]
        )
    heads = ["histogram", "divergence", "95 % interval", "two halves of real"]
    return Table("Divergence of the histograms", heads, rows)


def _rates(realism: Realism) -> Table:
    real, synthetic = rates(realism.real), rates(realism.synthetic)
    rows: list[Row] = [
        [name, Cell(value, kind="n"), Cell(synthetic[name], kind="n")]
        for name, value in real.items()
    ]
    return Table("Rates of both sets", ["rate", *_SIDES], rows)


def _ngrams(realism: Realism) -> Table:
    rows: list[Row] = [
        [
            visible(feature.ngram),
            Cell(percent(feature.real_share), feature.real_share),
            Cell(percent(feature.synthetic_share), feature.synthetic_share),
            feature.side,
            " · ".join(map(visible, feature.examples)),
        ]
        for feature in realism.two_sample.telling
    ]
    return Table("n-grams", ["n-gram", *_SIDES, "more in", "examples"], rows, "code")


def _histograms(realism: Realism) -> Figure:
    caption = "Shares of the edits, or of the rows, in per cent; places by the clean text before."
    key = [charts.sample(style, name) for style, name in enumerate(_SIDES, 1)]
    return Figure([_bars(realism, name) for name in HISTOGRAMS], caption, key=key)


def _bars(realism: Realism, name: str) -> Markup:
    """Return a histogram of both sets side by side."""
    sides = [shares(side.histogram(name)) for side in (realism.real, realism.synthetic)]
    bins = len(sides[0])
    if name == "edits_per_row":
        labels = [*map(str, range(bins - 1)), f"{bins - 1}+"]
    elif name == "sentence_positions":
        labels = [f"from {100 * part // bins} %" for part in range(bins)]
    else:
        labels = list(getattr(realism.real, name))
    shown = [row for row in range(bins) if name != "kinds" or sides[0][row] + sides[1][row]]
    return charts.bars(
        [labels[row] for row in shown],
        [[100 * side[row] for row in shown] for side in sides],
        title=TITLES[name].capitalize(),
        unit="% of rows" if name == "edits_per_row" else "% of edits",
    )
