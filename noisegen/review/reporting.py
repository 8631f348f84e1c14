"""Report of a review: realistic rows per strength, the strength to choose, agreement, noise kinds.

`measure` computes the figures. `compose` puts them into sections of a report, which are printed on
a terminal or written as a self-contained HTML page.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from noisegen.augmentation.statistics import wilson
from noisegen.errors import UsageError
from noisegen.report import pages
from noisegen.report.blocks import (
    MISSING,
    Bars,
    Block,
    Cell,
    Figure,
    Row,
    Section,
    Table,
    Text,
    figure,
)
from noisegen.report.charts import Dot, DotRow, bars, between, dots, sample
from noisegen.report.terminal import percent
from noisegen.review import store
from noisegen.review.store import REALISM, JudgedItem, JudgedStrength, Stratum, mean
from noisegen.runs.atomic import refuse_existing, write_text
from noisegen.runs.manifest import counted
from noisegen.text.notebook import framed

# A strength passes if at least this share of judged rows is realistic, as in RCP's human check
CUT_OFF = 0.95
ALL_ROWS = store.FIRST_STAGE + store.SECOND_STAGE  # rows judged in RCP for the chosen strength
BREAK_SECONDS = 600  # a reviewer who takes longer between two rows has taken a break
Metric = Literal["nominal", "ordinal"]


@dataclass(frozen=True)
class StratumFigures:
    """Figures of one stratum: a language, recipe and strength.

    `items` counts the rows in the review, `judged` rows with an answer on realism, `second_stage`
    rows of the second stage. `realistic`, `moderate_or_better` and `meaning_kept` are the share of
    reviewers who gave this answer, averaged over the judged rows; None if no row is judged. `low`
    and `high` bound the 95 % Wilson interval of `realistic`. `rows`, `changed` and `too_long` count
    rows of the source.
    """

    lang: str
    recipe: str
    strength: str
    items: int
    judged: int
    second_stage: int
    realistic: float | None
    low: float
    high: float
    moderate_or_better: float | None
    meaning_kept: float | None
    rows: int
    changed: int
    too_long: int


@dataclass(frozen=True)
class StrengthVerdict:
    """The strength to choose for one language and recipe, with the reason as text.

    `passes` tells whether the strength reaches the cut-off; it is None until the second stage is
    complete. `strength` is None as long as no row is judged.
    """

    lang: str
    recipe: str
    strength: str | None
    passes: bool | None
    reason: str


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha of one question over the items with two or more reviewers."""

    question: str
    metric: str
    alpha: float | None
    items: int


@dataclass(frozen=True)
class KindShares:
    """Kinds of noise that reviewers saw in one language.

    `items` counts the judged items of the language. `shares` maps each kind to the share of
    reviewers who saw it in an item, averaged over these items.
    """

    lang: str
    items: int
    shares: dict[str, float]


@dataclass(frozen=True)
class ReviewerFigures:
    """Figures of one reviewer.

    `items` counts the items that the reviewer judged for realism, `complete` the items judged for
    both realism and meaning. `realistic` is the share of `items` judged realistic. `seconds` is the
    median time from the last answer on one item to the last answer on the next item, without breaks
    of over ten minutes.
    """

    name: str
    items: int
    complete: int
    realistic: float | None
    seconds: float | None
    comments: int


@dataclass(frozen=True)
class ReviewReport:
    """All figures of a review.

    A strength passes if its share of realistic items is at least `cut_off`. `answers` counts all
    answers, including answers replaced later. `comments` has (reviewer, stratum, text) for each
    comment.
    """

    cut_off: float
    items: int
    judged: int
    answers: int
    groups: list[StratumFigures]
    verdicts: list[StrengthVerdict]
    agreement: list[Agreement]
    kinds: list[KindShares]
    reviewers: list[ReviewerFigures]
    comments: list[tuple[str, str, str]]

    def __repr__(self) -> str:
        judged = f"{self.judged:,} of {counted(self.items, 'row')} judged"
        return f"<ReviewReport: {_headline(self)}; {judged}>"

    def _repr_html_(self) -> str:
        return framed(self, "noisegen.review.reporting:report_page")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold."""
        return asdict(self)


def report(path: str | Path, out: str | Path | None = None) -> ReviewReport:
    """Return the figures of a review and, with `out`, write them as a self-contained HTML page.

    The review may be judged in part only, and a server may be using it. Raises SourceError for a
    file that is no review, UsageError if `out` is the review itself, OutputError if the page cannot
    be written or would replace a file that noisegen did not make.
    """
    if out is not None and Path(out).exists():
        if Path(path).exists() and Path(out).samefile(path):
            raise UsageError(f"-o {str(out)!r} is the review itself: give the page another name")
        refuse_existing(Path(out))
    with store.reading(Path(path)), closing(store.connect(Path(path))) as opened:
        figures = measure(opened)
    if out is not None:
        write_text(Path(out), report_page(figures))
    return figures


def report_page(figures: ReviewReport) -> str:
    """Return the report of a review as a self-contained HTML page."""
    headline, summary, *sections = compose(figures)
    kicker = "noisegen: realism review"
    return pages.page(headline.text, sections, kicker=kicker, head=[summary])


def measure(opened: sqlite3.Connection) -> ReviewReport:
    """Compute all figures of a review from its open database."""
    judged = store.judged_items(opened)
    strata = {stratum: items for group in judged.values() for stratum, items in group.items()}
    items = list(chain.from_iterable(strata.values()))
    kinds: dict[int, str] = dict(opened.execute("SELECT id, name FROM kinds").fetchall())
    names: dict[int, str] = dict(opened.execute("SELECT id, name FROM reviewers").fetchall())
    ranked = sorted(strata, key=lambda s: (s.lang, s.recipe, s.value is None, s.value or 0))
    figures = {stratum: _figures(stratum, strata[stratum]) for stratum in ranked}
    return ReviewReport(
        cut_off=CUT_OFF,
        items=len(items),
        judged=sum(bool(item.realism) for item in items),
        answers=opened.execute("SELECT count(*) FROM answers").fetchone()[0],
        groups=list(figures.values()),
        verdicts=[
            _verdict(name, store.most_realistic(group), [figures[stratum] for stratum in group])
            for name, group in sorted(judged.items())
            if name[1] != store.REAL
        ],
        agreement=_agreement(items, kinds),
        kinds=_kinds(strata, kinds),
        reviewers=[_reviewer(opened, number, name, items) for number, name in names.items()],
        comments=list(_comments(strata, names)),
    )


def _comments(
    strata: Mapping[Stratum, Sequence[JudgedItem]], names: Mapping[int, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield every comment: the reviewer's name, the language, recipe and strength, the text."""
    for stratum, items in strata.items():
        place = f"{stratum.lang}, {stratum.recipe} at {stratum.strength}"
        for item in items:
            for reviewer, text in item.comment.items():
                if text.strip():
                    yield names[reviewer], place, text


def _figures(stratum: Stratum, items: Sequence[JudgedItem]) -> StratumFigures:
    judged = [item for item in items if item.realism]
    realistic = mean(item.share("realism", "realistic") for item in judged)
    low, high = wilson(realistic or 0.0, len(judged))
    return StratumFigures(
        *stratum.name,
        items=len(items),
        judged=len(judged),
        second_stage=sum(item.stage > 1 for item in items),
        realistic=realistic,
        low=low,
        high=high,
        moderate_or_better=mean(item.share("realism", "realistic", "moderate") for item in judged),
        meaning_kept=mean(item.share("meaning", "yes") for item in items if item.meaning),
        rows=stratum.rows,
        changed=stratum.changed,
        too_long=stratum.too_long,
    )


def _verdict(
    name: tuple[str, str], best: JudgedStrength | None, strata: Sequence[StratumFigures]
) -> StrengthVerdict:
    """Return the verdict on the strengths of one language and recipe, by the rule of RCP.

    Once a strength has rows of the second stage, it is the chosen one. Before that, the choice is
    `best`, the most realistic strength of the first stage. The chosen strength passes if its share
    of realistic rows, over both stages, reaches the cut-off.
    """
    if best is None:
        has_rows = any(stratum.items for stratum in strata)
        reason = "nothing is judged yet" if has_rows else "no row was drawn"
        return StrengthVerdict(*name, None, None, reason)
    if not any(stratum.second_stage for stratum in strata):
        waiting = sum(stratum.items - stratum.judged for stratum in strata)
        more = f"review make --more {store.SECOND_STAGE}"
        rows = counted(best.items, "row")
        reason = f"most realistic of the first stage ({best.realistic:.1%} of {rows}); next: "
        reason += (
            f"judge {counted(waiting, 'row')} of the first stage, then {more}" if waiting else more
        )
        return StrengthVerdict(*name, best.strength, None, reason)
    chosen = max(strata, key=lambda stratum: (stratum.second_stage, stratum.realistic or 0))
    return _second_stage_verdict(name, chosen)


def _second_stage_verdict(name: tuple[str, str], chosen: StratumFigures) -> StrengthVerdict:
    """Return the verdict on the chosen strength, which has rows of the second stage."""
    share, waiting = chosen.realistic or 0.0, chosen.items - chosen.judged
    reason = f"{share:.1%} of {counted(chosen.judged, 'row')} realistic"
    if waiting:
        reason += f"; {counted(waiting, 'row')} not judged yet"
        return StrengthVerdict(*name, chosen.strength, None, reason)
    passes = share >= CUT_OFF
    reason += f": {'reaches' if passes else 'below'} the cut-off of {CUT_OFF:.0%}"
    reason += f" (95% interval {chosen.low:.1%} to {chosen.high:.1%})"
    reason += f"; RCP judged {ALL_ROWS} rows" if chosen.judged < ALL_ROWS else ""
    return StrengthVerdict(*name, chosen.strength, passes, reason)


def _kinds(
    strata: Mapping[Stratum, Sequence[JudgedItem]], kinds: Mapping[int, str]
) -> list[KindShares]:
    """Return for each language the shares of reviewers who saw each kind of noise.

    `kinds` maps the number of each kind to its name. Languages without items are left out.
    """
    by_language: dict[str, list[JudgedItem]] = {}
    for stratum, items in strata.items():
        if items:
            by_language.setdefault(stratum.lang, []).extend(items)
    languages = []
    for lang, items in sorted(by_language.items()):
        judged = [item for item in items if item.realism]
        shares = {name: _share_seen(judged, number) for number, name in kinds.items()}
        languages.append(KindShares(lang, len(judged), shares))
    return languages


def _share_seen(items: Sequence[JudgedItem], kind: int) -> float:
    """Return the share of reviewers who saw a kind of noise in an item, averaged over the items.

    Returns 0 if there are no items.
    """
    votes = [_seen(item, kind) for item in items]
    return mean(Fraction(sum(seen), len(seen)) for seen in votes) or 0.0


def _seen(item: JudgedItem, kind: int) -> list[int]:
    """Return, for each reviewer of an item, 1 for seeing the noise number `kind` in it, else 0."""
    return [int(kind in item.kinds.get(reviewer, [])) for reviewer in item.realism]


def _reviewer(
    opened: sqlite3.Connection, number: int, name: str, items: Sequence[JudgedItem]
) -> ReviewerFigures:
    answered = [item.realism[number] for item in items if number in item.realism]
    complete = sum(number in item.realism and number in item.meaning for item in items)
    realistic = mean(answer == "realistic" for answer in answered)
    comments = sum(bool(item.comment.get(number, "").strip()) for item in items)
    seconds = _seconds_per_row(opened, number)
    return ReviewerFigures(name, len(answered), complete, realistic, seconds, comments)


def _seconds_per_row(opened: sqlite3.Connection, reviewer: int) -> float | None:
    """Return the median seconds from one answered row of a reviewer to the next, without breaks.

    Returns None if no two rows were answered without a break between them.
    """
    query = "SELECT max(at) FROM answers WHERE reviewer = ? GROUP BY item ORDER BY 1"
    times = [time for (time,) in opened.execute(query, (reviewer,))]
    gaps = [gap for gap in np.diff(times).tolist() if gap <= BREAK_SECONDS]
    return median(gaps) if gaps else None


def _agreement(items: Sequence[JudgedItem], kinds: Mapping[int, str]) -> list[Agreement]:
    """Return the agreement of reviewers on realism, on meaning, and on each kind of noise.

    Kinds of noise that nobody saw are left out. Reviewers agree on a kind in an item if they all
    saw it there, or all did not. `kinds` maps the number of each kind to its name.
    """
    realism = [[REALISM.index(answer) for answer in item.realism.values()] for item in items]
    meaning = [[store.MEANING.index(answer) for answer in item.meaning.values()] for item in items]
    agreement = [
        _agreement_on("realism", "ordinal", realism),
        _agreement_on("meaning unchanged", "nominal", meaning),
    ]
    used = {number for item in items for chosen in item.kinds.values() for number in chosen}
    for number in sorted(used & kinds.keys()):
        seen = [_seen(item, number) for item in items]
        agreement.append(_agreement_on(f"kind: {kinds[number]}", "nominal", seen))
    return agreement


def _agreement_on(question: str, metric: Metric, answers: Iterable[Sequence[int]]) -> Agreement:
    """Return the agreement on one question; `answers` has a sequence of answers per item."""
    units = [unit for unit in answers if len(unit) > 1]
    alpha = krippendorff_alpha(units, len(REALISM), metric)
    return Agreement(question, metric, alpha, len(units))


def krippendorff_alpha(
    units: Iterable[Sequence[int]], categories: int, metric: Metric
) -> float | None:
    """Return Krippendorff's alpha: 1 is full agreement, 0 is agreement by chance.

    `units` has one sequence per item: the values, from 0 to `categories` - 1, that reviewers gave
    it. Missing values are left out. `metric` tells whether the order of the values matters.
    Returns None if no unit has two values or all values are the same. Source: Krippendorff,
    Computing Krippendorff's Alpha-Reliability (2011), general form with coincidence matrices.
    """
    # `observed[a, b]` counts the pairs of values a and b in the same unit. In a unit of m values,
    # a pair has the weight 1 / (m - 1).
    observed = np.zeros((categories, categories))
    for unit in units:
        if len(unit) > 1:
            counts = np.bincount(unit, minlength=categories)
            observed += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    totals = observed.sum(axis=0)
    distance = 1 - np.eye(categories)
    # Ordinal distance of two categories: sort all values; count those from the middle of one
    # category to the middle of the other; square the count.
    if metric == "ordinal":
        middles = np.cumsum(totals) - totals / 2
        distance = (middles[:, None] - middles[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distance).sum())
    if not expected:
        return None
    return float(1 - (totals.sum() - 1) * (observed * distance).sum() / expected)


# Sections of the report, for a terminal and for a page.

_PASSES = {
    True: Cell("pass", kind="better"),
    False: Cell("fail", kind="worse"),
    None: Cell("open"),
}
_SHARES = "lang", "recipe", "strength", "judged", "realistic", "interval", "moderate", "meaning"
_SOURCES = "lang", "recipe", "strength", "rows", "unchanged", "too long"


def compose(report: ReviewReport) -> tuple[Text, Text, *tuple[Section, ...]]:
    """Return the result and a summary line of a review, and the sections of its report.

    As long as the review is not finished, sections that have nothing to show are left out.
    """
    judged = f"{report.judged:,} of {counted(report.items, 'row')} judged"
    people = counted(len(report.reviewers), "reviewer")
    answers = f"{counted(report.answers, 'answer')} (changes counted)"
    cut_off = f"The cut-off is {report.cut_off:.0%} realistic."
    comments = [Table("Comments", ["reviewer", "row", "comment"], report.comments, "stacked")]
    shares = (
        "A row judged by several reviewers counts once, with the mean of their answers. "
        "Intervals are 95% Wilson intervals. Moderate: at least moderately realistic; meaning: "
        "meaning unchanged."
    )
    return (
        Text(_headline(report), "named"),
        Text(f"{judged}; {people}, {answers}"),
        Section("verdicts", "The strength to choose", _verdict_blocks(report), cut_off),
        Section("groups", "Realism by strength", _group_blocks(report), shares),
        Section("kinds", "Kinds of noise by language", _kind_blocks(report)),
        Section("agreement", "Agreement", _agreement_blocks(report)),
        Section("reviewers", "Reviewers", _reviewer_blocks(report)),
        Section("comments", "Comments", comments if report.comments else []),
    )


def _headline(report: ReviewReport) -> str:
    """Return the result of a review in one line."""
    if not report.judged:
        return "Nothing is judged yet"
    words = {True: "reaches the cut-off", False: "is below the cut-off", None: "is not decided yet"}
    if len(report.verdicts) == 1:
        verdict = report.verdicts[0]
        at = "" if verdict.strength is None else f" at {verdict.strength}"
        return f"{verdict.recipe}{at} {words[verdict.passes]}"
    passes = [verdict.passes for verdict in report.verdicts]
    if not passes:
        return f"{report.judged:,} of {counted(report.items, 'row')} judged"
    states = {state: cell.text for state, cell in _PASSES.items() if state in passes}
    counts = ", ".join(f"{passes.count(state)} {word}" for state, word in states.items())
    return f"{len(passes)} languages and recipes: {counts}"


def _is_finished(report: ReviewReport) -> bool:
    return all(verdict.passes is not None for verdict in report.verdicts)


def _verdict_blocks(report: ReviewReport) -> Sequence[Block]:
    rows: list[Row] = []
    if not report.judged:
        return []
    for verdict in report.verdicts:
        name = [verdict.lang, verdict.recipe, verdict.strength or "-"]
        rows.append([*name, _PASSES[verdict.passes], verdict.reason])
    return [Table("Verdicts", ["lang", "recipe", "strength", "cut-off", "why"], rows, "stacked")]


def _group_blocks(report: ReviewReport) -> Sequence[Block]:
    shares: list[Row] = []
    sources: list[Row] = []
    for group in report.groups:
        if not group.judged and not _is_finished(report):
            continue
        name = [group.lang, group.recipe, group.strength]
        judged = Cell(f"{group.judged:,}/{group.items:,}", group.judged)
        interval = Cell("-", kind="quiet") if group.realistic is None else _interval(group)
        others = (figure(share, ".1%") for share in (group.moderate_or_better, group.meaning_kept))
        shares.append([*name, judged, figure(group.realistic, ".1%"), interval, *others])
        counts = group.rows, group.rows - group.changed, group.too_long
        sources.append([*name, *map(figure, counts)])
    of_sources = Table("Rows of the sources", _SOURCES, sources)
    return [
        *_intervals(report),
        *([Table("Shares by strength", _SHARES, shares, "stacked")] if shares else []),
        *([of_sources] if _is_finished(report) else []),
    ]


def _interval(group: StratumFigures) -> Cell:
    return Cell(f"{100 * group.low:.0f} to {100 * group.high:.0f}%", group.low)


def _intervals(report: ReviewReport) -> Iterator[Figure]:
    """Yield a figure with a chart per language and recipe; nothing if no row is judged.

    A chart shows the share of realistic rows of each strength as a dot with its interval.
    """
    rows: dict[str, list[DotRow]] = {}
    for group in report.groups:
        if group.realistic is None:
            continue
        share, low, high = (100 * value for value in (group.realistic, group.low, group.high))
        figures = f"{share:.0f}% of {group.judged:,}"
        tip = f"{group.strength}: {figures} realistic, interval {_interval(group).text}"
        row = DotRow([Dot(share, 1, (low, high))], group.strength, figures, tip=tip)
        rows.setdefault(f"{group.lang}, {group.recipe}", []).append(row)
    scale, cut_off = between(0, 100, 180, 360), 100 * report.cut_off
    charts = [
        dots(group, name, scale, heading=name, threshold=cut_off) for name, group in rows.items()
    ]
    caption = (
        "Share of realistic rows in per cent, with its interval; the dashed line is the cut-off "
        f"of {report.cut_off:.0%}."
    )
    if charts:
        yield Figure(charts, caption)


def _kind_blocks(report: ReviewReport) -> Sequence[Block]:
    judged = [language for language in report.kinds if language.items]
    names = judged[0].shares if judged else {}
    used = [name for name in names if any(language.shares[name] for language in judged)]
    if not used:
        return [Text("No kind was named.", "quiet")] if _is_finished(report) else []
    rows: list[Row] = []
    for name in used:
        rows.append([name, *(_kind_cell(name, each.lang, each.shares[name]) for each in judged)])
    heads = ["kind", *(language.lang for language in judged)]
    note = Text(
        "Share of a language's judged rows in which a kind was seen, in per cent; – where a "
        "language does not have a kind."
    )
    return [note, _chart_of_kinds(judged, used), Table("Kinds by language", heads, rows, "heat")]


def _chart_of_kinds(judged: Sequence[KindShares], kinds: Sequence[str]) -> Figure:
    """Return bars of the shares of `kinds` in each language (RCP, Figure 2)."""
    series = {each.lang: [100 * each.shares[name] for name in kinds] for each in judged}
    drawn = bars(Bars("Kinds of noise by language", "% of judged rows", kinds, series, axis="kind"))
    key = [sample(number, lang) for number, lang in enumerate(series, 1)]
    return Figure([drawn], "Kinds of noise that reviewers saw.", key=key)


def _kind_cell(name: str, lang: str, share: float) -> Cell:
    if not share and not store.is_offered(name, lang):
        return MISSING
    return Cell(f"{100 * share:.0f}", share, f"{lang}, {name}: {percent(share)}", shade=share)


def _agreement_blocks(report: ReviewReport) -> Sequence[Block]:
    rows: list[Row] = [
        [answers.question, answers.metric, figure(answers.alpha, ".3f"), figure(answers.items)]
        for answers in report.agreement
        if answers.items
    ]
    if not rows:
        missing = Text("Agreement needs rows judged by two reviewers.", "quiet")
        return [missing] if _is_finished(report) else []
    note = (
        "Krippendorff's alpha: 1 is full agreement, 0 is chance. It is undefined (-) where "
        "all answers are the same."
    )
    return [Text(note), Table("Alpha", ["question", "metric", "alpha", "rows"], rows)]


def _reviewer_blocks(report: ReviewReport) -> Sequence[Block]:
    rows: list[Row] = [
        [
            reviewer.name,
            figure(reviewer.items),
            figure(reviewer.complete),
            figure(reviewer.realistic, ".1%"),
            figure(reviewer.seconds, ".0f"),
            figure(reviewer.comments),
        ]
        for reviewer in report.reviewers
    ]
    if not rows:
        return []
    heads = ["reviewer", "judged", "complete", "realistic", "seconds per row", "comments"]
    return [Table("Reviewers", heads, rows, "stacked")]
