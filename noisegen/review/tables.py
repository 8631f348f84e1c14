"""The report of a review on the terminal."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from noisegen.manifest import counted
from noisegen.review.figures import Report
from noisegen.tables import percent, titled

if TYPE_CHECKING:
    from rich.console import Console

_KINDS_SHOWN = 8


def render(report: Report, console: "Console") -> None:
    """Print the figures as tables."""
    parts = counted(len(report.reviewers), "reviewer"), counted(report.answers, "answer")
    judged = f"{report.judged:,} of {counted(report.items, 'row')} judged"
    console.print(f"{judged}; {parts[0]}, {parts[1]} (changes counted)", highlight=False)
    for table in (_groups, _verdicts, _agreement, _kinds, _reviewers):
        if (made := table(report)).row_count:
            console.print()
            console.print(made)


def _table(title: str, *columns: str, left: int = 1) -> Table:
    """Return a table whose first `left` columns stand to the left, the others to the right."""
    table = titled(title)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", no_wrap=place >= left)
    return table


def _groups(report: Report) -> Table:
    table = _table(
        "realism; the interval is of 95 %; moderate: realistic or moderately so",
        "lang", "recipe", "strength", "judged", "realistic", "interval", "moderate", "same meaning",
        left=3,
    )  # fmt: skip
    for one in report.groups:
        interval = f"{100 * one.low:.0f} to {100 * one.high:.0f}%" if one.judged else "-"
        table.add_row(
            Text(one.lang), Text(one.recipe), Text(one.strength), f"{one.judged:,}/{one.items:,}",
            percent(one.realistic), interval, percent(one.moderate_or_better),
            percent(one.meaning_kept),
        )  # fmt: skip
    return table


def _verdicts(report: Report) -> Table:
    title = f"the strength to choose; cut-off {report.cut_off:.0%} realistic"
    table = _table(title, "lang", "recipe", "strength", "", "why", left=5)
    for one in report.verdicts:
        word, style = {True: ("pass", "green"), False: ("fail", "red"), None: ("open", "yellow")}[
            one.passes
        ]
        table.add_row(
            Text(one.lang), Text(one.recipe), Text(one.strength or "-"), Text(word, style),
            Text(one.reason),
        )  # fmt: skip
    return table


def _agreement(report: Report) -> Table:
    table = _table("agreement: Krippendorff's alpha", "question", "metric", "alpha", "rows", left=2)
    for one in report.agreement:
        alpha = "-" if one.alpha is None else f"{one.alpha:.3f}"
        if one.items:
            table.add_row(Text(one.question), one.metric, alpha, f"{one.items:,}")
    return table


def _kinds(report: Report) -> Table:
    """Return the most frequent kinds; all are in the page and in JSON."""
    totals = {
        name: sum(one.shares[name] * one.items for one in report.kinds)
        for name in (report.kinds[0].shares if report.kinds else {})
    }
    names = sorted((name for name in totals if totals[name]), key=lambda n: -totals[n])
    shown = names[:_KINDS_SHOWN]
    table = _table("kinds of noise seen, of the judged rows", "lang", "rows", *shown)
    for one in report.kinds if shown else []:
        table.add_row(Text(one.lang), f"{one.items:,}", *(percent(one.shares[n], 0) for n in shown))
    return table


def _reviewers(report: Report) -> Table:
    columns = ("reviewer", "judged", "complete", "realistic", "seconds a row", "comments")
    table = _table("reviewers", *columns)
    for one in report.reviewers:
        seconds = "-" if one.seconds is None else f"{one.seconds:.0f}"
        table.add_row(
            Text(one.name), f"{one.items:,}", f"{one.complete:,}", percent(one.realistic), seconds,
            f"{one.comments:,}",
        )  # fmt: skip
    return table
