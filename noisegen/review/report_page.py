"""The report of a review as one self-contained HTML page with inline SVG."""

from collections.abc import Iterable, Sequence
from html import escape

from noisegen.manifest import counted
from noisegen.review.figures import GroupFigures, KindShares, Report
from noisegen.tables import percent

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Realism review: report</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root {{ color-scheme: light dark; --ink: #1b1f24; --quiet: #51585f; --ground: #fff;
  --line: #80868c; --mark: #0b5394; --pass: #11551f; --fail: #8c1d10; --open: #573c00 }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #eceff1; --quiet: #b3bac0;
  --ground: #15181b; --line: #7c858d; --mark: #8ec2f5; --pass: #bdf0c8; --fail: #ffc9c0;
  --open: #ffe9b0 }} }}
body {{ margin: 1rem auto; max-width: 68rem; padding: 0 1rem; background: var(--ground);
  color: var(--ink); font: 1rem/1.5 system-ui, "Noto Sans", sans-serif }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.15rem; margin-top: 2rem }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse }}
th, td {{ padding: .3rem .8rem .3rem 0; text-align: start; border-bottom: 1px solid var(--line);
  vertical-align: top }}
td.n, th.n {{ text-align: end }}
td.n {{ font-variant-numeric: tabular-nums; white-space: nowrap }}
.pass {{ color: var(--pass); font-weight: 600 }} .fail {{ color: var(--fail); font-weight: 600 }}
.open {{ color: var(--open); font-weight: 600 }} .quiet {{ color: var(--quiet) }}
td svg {{ display: block }}
svg text {{ fill: currentcolor; font: 12px system-ui, "Noto Sans", sans-serif }}
.axis {{ stroke: var(--line) }} .bar {{ stroke: var(--mark); stroke-width: 2 }}
.dot {{ fill: var(--mark) }} .cut {{ stroke: var(--fail); stroke-dasharray: 3 2 }}
</style>
</head>
<body><main>
<h1>Realism review</h1>
{content}
</main></body>
</html>
"""


def page(report: Report) -> str:
    """Return the page; every text in it is escaped."""
    sections = (_summary, _verdicts, _groups, _kinds, _agreement, _reviewers, _comments)
    return _PAGE.format(content="\n".join(section(report) for section in sections))


def _summary(report: Report) -> str:
    people = counted(len(report.reviewers), "reviewer")
    return (
        f"<p>{report.judged:,} of {counted(report.items, 'row')} judged by {people}. A row that "
        f"several reviewers judged counts once, with the mean of their answers. Intervals are "
        f"Wilson's of 95&nbsp;%; the cut-off is {report.cut_off:.0%} realistic.</p>"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], figures: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML already; columns in `figures` stand to the right."""
    kinds = [' class="n"' if place in figures else "" for place in range(len(heads))]
    top = "".join(f'<th scope="col"{k}>{head}</th>' for k, head in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{cell}</td>" for k, cell in zip(kinds, row, strict=True))
        + "</tr>\n" for row in rows
    )  # fmt: skip
    table = f"<table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>\n{content}\n</section>"


def _verdicts(report: Report) -> str:
    words = {True: "pass", False: "fail", None: "open"}
    rows = (
        (escape(one.lang), escape(one.recipe), escape(one.strength or "-"),
         f'<span class="{words[one.passes]}">{words[one.passes]}</span>', escape(one.reason))
        for one in report.verdicts
    )  # fmt: skip
    heads = ("language", "recipe", "strength", "cut-off", "why")
    return _section("The strength to choose", _table(heads, rows))


def _groups(report: Report) -> str:
    rows = (
        (escape(one.lang), escape(one.recipe), escape(one.strength),
         f"{one.judged:,} of {one.items:,}", percent(one.realistic),
         _interval(one, report.cut_off), percent(one.moderate_or_better),
         percent(one.meaning_kept), f"{one.rows - one.changed:,} of {one.rows:,}")
        for one in report.groups
    )  # fmt: skip
    heads = ("language", "recipe", "strength", "judged", "realistic", "0 to 100 %",
             "at least moderately", "meaning kept", "source rows unchanged")  # fmt: skip
    return _section("Realism by strength", _table(heads, rows, figures=(3, 4, 6, 7, 8)))


def _interval(one: GroupFigures, cut_off: float) -> str:
    """Return a share with its interval as a line and a dot, and the cut-off."""
    if one.realistic is None:
        return '<span class="quiet">not judged</span>'
    said = f"{percent(one.realistic)}, interval {percent(one.low)} to {percent(one.high)}"
    low, high, share, cut = (
        10 + 200 * part for part in (one.low, one.high, one.realistic, cut_off)
    )
    return (
        f'<svg role="img" aria-label="{said}" width="220" height="20"><title>{said}</title>'
        f'<path class="axis" d="M10 16H210M10 14v4M110 14v4M210 14v4"/>'
        f'<path class="cut" d="M{cut:.1f} 2V18"/><path class="bar" d="M{low:.1f} 9H{high:.1f}"/>'
        f'<circle class="dot" cx="{share:.1f}" cy="9" r="4"/></svg>'
    )


# The heat map of kinds by language.

_CELL, _LEFT, _ROW = 56, 70, 30  # pixels
_LABEL_MAX = 24  # characters of a kind's name; all of it is in the title of each cell


def _kinds(report: Report) -> str:
    judged = [one for one in report.kinds if one.items]
    names = [name for name in (judged[0].shares if judged else {})
             if any(one.shares[name] for one in judged)]  # fmt: skip
    if not names:
        return _section("Kinds of noise", '<p class="quiet">No kind was named yet.</p>')
    note = "<p>Share of a language's judged rows in which a kind was seen, in per cent.</p>"
    return _section(
        "Kinds of noise by language", note + f'<div class="wide">{_heat(judged, names)}</div>'
    )


def _heat(judged: Sequence[KindShares], names: Sequence[str]) -> str:
    labels = [name if len(name) <= _LABEL_MAX else f"{name[:_LABEL_MAX]}…" for name in names]
    top = 24 + 5 * max(map(len, labels))  # they stand at 40 degrees
    width, height = _LEFT + _CELL * len(names) + 140, top + _ROW * len(judged) + 4
    heads = "".join(
        f'<text transform="translate({_LEFT + _CELL * (place + 0.5):g} {top - 8}) rotate(-40)">'
        f"{escape(label)}</text>" for place, label in enumerate(labels)
    )  # fmt: skip
    rows = "".join(_heat_row(top + _ROW * place, one, names) for place, one in enumerate(judged))
    said = "Heat map: kinds of noise by language"
    return (
        f'<svg role="img" aria-label="{said}" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}"><title>{said}</title>{heads}{rows}</svg>'
    )


def _heat_row(top: int, one: KindShares, names: Sequence[str]) -> str:
    cells = [f'<text x="{_LEFT - 8}" y="{top + 19}" text-anchor="end">{escape(one.lang)}</text>']
    for column, name in enumerate(names):
        share = one.shares[name]
        ground, ink = _shade(share)
        left = _LEFT + _CELL * column
        cells.append(
            f'<rect x="{left}" y="{top}" width="{_CELL - 2}" height="{_ROW - 2}" fill="{ground}">'
            f"<title>{escape(one.lang)}, {escape(name)}: {percent(share)}</title></rect>"
            f'<text x="{left + _CELL / 2 - 1:g}" y="{top + 19}" text-anchor="middle"'
            f' style="fill:{ink}">{100 * share:.0f}</text>'
        )
    return "".join(cells)


def _shade(share: float) -> tuple[str, str]:
    """Return the ground of a cell, white to dark blue, and an ink that can be read on it."""
    light, dark = (0xF2, 0xF6, 0xFA), (0x08, 0x30, 0x6B)
    mixed = [round(a + (b - a) * share) for a, b in zip(light, dark, strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mixed), "#ffffff" if share > 0.45 else "#1b1f24"


# Agreement, reviewers, comments.


def _agreement(report: Report) -> str:
    rows = [
        (escape(one.question), one.metric, "-" if one.alpha is None else f"{one.alpha:.3f}",
         f"{one.items:,}") for one in report.agreement if one.items
    ]  # fmt: skip
    if not rows:
        note = "Agreement needs rows that two reviewers judged."
        return _section("Agreement", f'<p class="quiet">{note}</p>')
    note = (
        "<p>Krippendorff's alpha: 1 is full agreement, 0 that of chance. It is not defined (-) "
        "where all answers are the same.</p>"
    )
    heads = ("question", "metric", "alpha", "rows")
    return _section("Agreement", note + _table(heads, rows, figures=(2, 3)))


def _reviewers(report: Report) -> str:
    rows = [
        (escape(one.name), f"{one.items:,}", f"{one.complete:,}", percent(one.realistic),
         "-" if one.seconds is None else f"{one.seconds:.0f}") for one in report.reviewers
    ]  # fmt: skip
    if not rows:
        return _section("Reviewers", '<p class="quiet">Nobody has reviewed yet.</p>')
    heads = ("reviewer", "judged", "complete", "realistic", "seconds a row")
    return _section("Reviewers", _table(heads, rows, figures=(1, 2, 3, 4)))


def _comments(report: Report) -> str:
    rows = [tuple(f'<span dir="auto">{escape(part)}</span>' for part in one)
            for one in report.comments]  # fmt: skip
    return _section("Comments", _table(("reviewer", "row", "comment"), rows)) if rows else ""
