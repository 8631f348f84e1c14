"""The report of a review as one HTML page that needs nothing beside it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from noisegen.errors import UsageError
from noisegen.report import pages
from noisegen.report.charts import Dot, DotRow, between, dots
from noisegen.report.pages import Block, Cell, Row, Section, Table, Text
from noisegen.report.terminal import percent
from noisegen.review.reporting import ReviewReport, StratumFigures, measure
from noisegen.review.store import connect, reading
from noisegen.runs.files import write_text
from noisegen.runs.manifest import counted

_VERDICTS = {True: ("pass", "better"), False: ("fail", "worse"), None: ("open", "open")}


def report(path: str | Path, out: str | Path | None = None) -> ReviewReport:
    """Return the figures of a review and, with `out`, write them as one self-contained HTML page.

    The review may be half judged, and a server may be using it. Raises SourceError for a file that
    is no review, UsageError for `out` that is the review, OutputError if the page cannot be
    written.
    """
    with reading(Path(path)), closing(connect(Path(path))) as opened:
        figures = measure(opened)
    if out is not None:
        if Path(out).exists() and Path(out).samefile(path):
            raise UsageError(f"-o {str(out)!r} is the review itself: give the page another name")
        write_text(Path(out), page(figures))
    return figures


def page(report: ReviewReport) -> str:
    """Return the page; every text in it is escaped."""
    people = counted(len(report.reviewers), "reviewer")
    about = (
        f"{report.judged:,} of {counted(report.items, 'row')} judged by {people}. A row that "
        "several reviewers judged counts once, with the mean of their answers. Intervals are "
        f"Wilson's of 95 %; the cut-off is {report.cut_off:.0%} realistic."
    )
    return pages.page(
        "Realism review",
        [
            Section("verdicts", "The strength to choose", [_verdicts(report)]),
            Section("groups", "Realism by strength", [_groups(report)]),
            Section("kinds", "Kinds of noise by language", _kinds(report)),
            Section("agreement", "Agreement", _agreement(report)),
            Section("reviewers", "Reviewers", _reviewers(report)),
            Section("comments", "Comments", _comments(report)),
        ],
        kicker="noisegen: review",
        head=[Text(about)],
    )


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def _share(value: float | None) -> Cell:
    return Cell(percent(value), value, kind="n" if value is None else "")


def _verdicts(report: ReviewReport) -> Table:
    rows: list[Row] = []
    for verdict in report.verdicts:
        word, kind = _VERDICTS[verdict.passes]
        rows.append(
            [
                verdict.lang,
                verdict.recipe,
                verdict.strength or "-",
                Cell(word, kind=kind),
                verdict.reason,
            ]
        )
    return Table("Verdicts", ["language", "recipe", "strength", "cut-off", "why"], rows)


def _groups(report: ReviewReport) -> Table:
    rows: list[Row] = [
        [
            group.lang,
            group.recipe,
            group.strength,
            Cell(f"{group.judged:,} of {group.items:,}", group.judged),
            _share(group.realistic),
            _interval(group, report.cut_off),
            _share(group.moderate_or_better),
            _share(group.meaning_kept),
            Cell(f"{group.rows - group.changed:,} of {group.rows:,}", group.rows - group.changed),
        ]
        for group in report.groups
    ]
    heads = ["language", "recipe", "strength", "judged", "realistic", "0 to 100 %",
             "at least moderately", "meaning kept", "source rows unchanged"]  # fmt: skip
    return Table("Shares by strength", heads, rows)


def _interval(group: StratumFigures, cut_off: float) -> Cell:
    """Return a share with its interval as a dot on a line, and the cut-off."""
    if group.realistic is None:
        return Cell("not judged", kind="quiet")
    words = f"{percent(group.realistic)}, interval {percent(group.low)} to {percent(group.high)}"
    row = DotRow([Dot(group.realistic, 1, (group.low, group.high))], tip=words)
    scale = between(0, 1, 10, 210)
    return Cell(dots([row], words, scale, threshold=cut_off))


def _kinds(report: ReviewReport) -> Sequence[Block]:
    judged = [language for language in report.kinds if language.items]
    names = [name for name in (judged[0].shares if judged else {})
             if any(language.shares[name] for language in judged)]  # fmt: skip
    if not names:
        return [Text("No kind was named yet.", "quiet")]
    rows: list[Row] = [
        [name, *(_kind(name, language.lang, language.shares[name]) for language in judged)]
        for name in names
    ]
    heads = ["kind", *(language.lang for language in judged)]
    note = Text("Share of a language's judged rows in which a kind was seen, in per cent.")
    return [note, Table("Kinds by language", heads, rows, "heat")]


def _kind(name: str, lang: str, share: float) -> Cell:
    return Cell(f"{100 * share:.0f}", share, f"{lang}, {name}: {percent(share)}", shade=share)


def _agreement(report: ReviewReport) -> Sequence[Block]:
    rows: list[Row] = [
        [answers.question, answers.metric,
         Cell("-" if answers.alpha is None else f"{answers.alpha:.3f}", kind="n"),
         _number(answers.items)]
        for answers in report.agreement if answers.items
    ]  # fmt: skip
    if not rows:
        return [Text("Agreement needs rows that two reviewers judged.", "quiet")]
    note = (
        "Krippendorff's alpha: 1 is full agreement, 0 that of chance. It is not defined (-) where "
        "all answers are the same."
    )
    return [Text(note), Table("Alpha", ["question", "metric", "alpha", "rows"], rows)]


def _reviewers(report: ReviewReport) -> Sequence[Block]:
    rows: list[Row] = [
        [reviewer.name, _number(reviewer.items), _number(reviewer.complete),
         _share(reviewer.realistic),
         Cell("-" if reviewer.seconds is None else f"{reviewer.seconds:.0f}", kind="n")]
        for reviewer in report.reviewers
    ]  # fmt: skip
    if not rows:
        return [Text("Nobody has reviewed yet.", "quiet")]
    heads = ["reviewer", "judged", "complete", "realistic", "seconds per row"]
    return [Table("Reviewers", heads, rows)]


def _comments(report: ReviewReport) -> Sequence[Block]:
    heads = ["reviewer", "row", "comment"]
    return [Table("Comments", heads, report.comments)] if report.comments else []
