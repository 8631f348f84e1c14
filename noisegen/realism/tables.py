"""A comparison as tables for a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.realism.comparison import Realism
from noisegen.realism.figures import HISTOGRAMS, NoiseFigures
from noisegen.realism.two_sample import Auc, TwoSample
from noisegen.tables import bar, percent, titled

TITLES = {
    "kinds": "kinds of edit",
    "edits_per_row": "edits per row",
    "sentence_positions": "place in the sentence",
    "word_positions": "place in the word",
}
_BAR = 16  # columns


def render(found: Realism, console: Console) -> None:
    """Print the figures as tables with bars."""
    for table in (_summary, _tests, _divergences, _kinds, _edits_per_row, _places, _telling):
        console.print(table(found))
        console.print()


def rates(found: NoiseFigures) -> dict[str, str]:
    """Return the rates of a set, written out, by what they are."""
    mean = found.edits / found.rows if found.rows else 0
    return {
        "rows": f"{found.rows:,}",
        "changed": percent(found.changed_share),
        "CER": percent(found.cer, 2),
        "WER": percent(found.wer, 2),
        "edits per row": f"{mean:.2f}",
        "words unseen on the clean side": percent(found.oov_ratio),
        "type/token ratio": _ratio(found.type_token_ratio),
        "type/token ratio of the clean side": _ratio(found.clean_type_token_ratio),
    }


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def tests(found: TwoSample) -> Iterator[tuple[str, Auc | None, str]]:
    """Yield the AUCs: of what, the figure, how to read it."""
    yield "real and synthetic noisy text", found.all_rows, "0.5: nobody could tell"
    yield (
        "the same, changed rows only",
        found.changed_rows,
        "without rows that stayed clean",
    )
    yield (
        "real noisy and real clean text",
        found.real_against_clean,
        "how much real noise shows",
    )
    if found.clean_sides:
        yield "the two clean sides", found.clean_sides, "topic and style, not noise"


def auc_text(auc: Auc | None) -> str:
    """Return an AUC with its interval; '-' where there were too few texts."""
    return f"{auc.value:.3f} ({auc.low:.3f}\u2013{auc.high:.3f})" if auc else "-"


def shares(counts: Sequence[int]) -> list[float]:
    """Return counts as shares of their sum."""
    total = sum(counts)
    return [value / total if total else 0.0 for value in counts]


def visible(ngram: str) -> str:
    """Return an n-gram with its blanks and the edges of the text made visible."""
    return ngram.replace(" ", "␣").replace("\n", "¶").replace("\t", "→")


# Tables.


def _titled(title: str, *columns: str) -> Table:
    """Return a table: the first column to the left, the others to the right."""
    table = titled(title)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    return table


def _summary(found: Realism) -> Table:
    how = "noise on the same clean texts" if found.is_paired else "noise on different texts"
    table = _titled(f"the sets: {how}", "", "real", "synthetic")
    real, synthetic = rates(found.real), rates(found.synthetic)
    for name, value in real.items():
        table.add_row(name, value, synthetic[name])
    return table


def _tests(found: Realism) -> Table:
    table = _titled("told apart by a classifier: AUC", "", "AUC (95 % interval)")
    table.add_column("", style="dim")
    for name, auc, reading in tests(found.two_sample):
        table.add_row(name, auc_text(auc), reading)
    return table


def _divergences(found: Realism) -> Table:
    title = "Jensen-Shannon divergence: 0 the same, 1 nothing in common"
    table = _titled(title, "", "value", "95 % interval", "real halves")
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    for name in HISTOGRAMS:
        one = found.divergences[name]
        interval = f"{one.low:.3f}\u2013{one.high:.3f}"
        figures = f"{one.value:.3f}", interval, f"{one.floor:.3f}"
        table.add_row(TITLES[name], *figures, bar(one.value, 1, _BAR))
    return table


def _kinds(found: Realism) -> Table:
    names = list(found.real.kinds)
    order = [n for n in names if found.real.kinds[n] + found.synthetic.kinds[n]]
    return _side_by_side(found, "kinds", names, order)


def _edits_per_row(found: Realism) -> Table:
    names = [str(number) for number in range(len(found.real.edits_per_row))]
    names[-1] += " or more"
    return _side_by_side(found, "edits_per_row", names, names)


def _places(found: Realism) -> Table:
    names = list(found.real.word_positions)
    return _side_by_side(found, "word_positions", names, names)


def _side_by_side(found: Realism, name: str, names: Sequence[str], shown: Sequence[str]) -> Table:
    """Return a histogram of both sets, in per cent with bars."""
    sides = [shares(one.histogram(name)) for one in (found.real, found.synthetic)]
    most = max([*sides[0], *sides[1]])
    table = _titled(TITLES[name], "", "real")
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    table.add_column("synthetic", justify="right", no_wrap=True)
    table.add_column("", style="yellow", no_wrap=True, min_width=_BAR)
    for place, label in enumerate(names):
        if label in shown:
            real, synthetic = sides[0][place], sides[1][place]
            bars = bar(real, most, _BAR), bar(synthetic, most, _BAR)
            table.add_row(label, percent(real), bars[0], percent(synthetic), bars[1])
    return table


def _telling(found: Realism) -> Table:
    table = _titled(
        "what gives the noise away, in so many rows (␣ blank, ¶ end of the text)",
        "",
        "real",
        "synthetic",
    )
    table.add_column("more in")
    table.add_column("for instance", overflow="fold")
    for one in found.two_sample.telling:
        examples = Text("   ".join(visible(text) for text in one.examples))
        figures = percent(one.real_share), percent(one.synthetic_share)
        table.add_row(Text(visible(one.ngram)), *figures, one.side, examples)
    return table
