"""Report a review: shares with intervals, the strength to choose, agreement, kinds of noise."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.augment.statistics import wilson
from noisegen.report.terminal import percent, titled
from noisegen.review.store import (
    FIRST_STAGE,
    MEANING,
    REALISM,
    SECOND_STAGE,
    JudgedItem,
    JudgedStrength,
    judged,
    judged_items,
    mean,
    most_realistic,
)
from noisegen.runs.manifest import counted

CUT_OFF = 0.95  # of the judged rows (RCP, human check of the noise)
ALL_ROWS = FIRST_STAGE + SECOND_STAGE
BREAK_SECONDS = 600


@dataclass(frozen=True)
class StratumFigures:
    """The judged items of one language, recipe and strength; shares are means over items.

    `low` and `high` are the 95 % Wilson interval of `realistic`; shares are None of no item.
    `rows`, `changed` and `too_long` count the source, not the sample.
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
    """The strength to choose for one language and recipe, and why.

    `passes` is None as long as the second stage is not complete.
    """

    lang: str
    recipe: str
    strength: str | None
    passes: bool | None
    reason: str


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha of one question over the items that two reviewers or more judged."""

    question: str
    metric: str
    alpha: float | None
    items: int


@dataclass(frozen=True)
class KindShares:
    """In what share of a language's judged items a kind of noise was seen (mean of reviewers)."""

    lang: str
    items: int
    shares: dict[str, float]


@dataclass(frozen=True)
class ReviewerFigures:
    """What one reviewer did; `seconds` is the median time from one item's last answer to the next.

    Times over ten minutes are taken for a break and left out.
    """

    name: str
    items: int
    complete: int
    realistic: float | None
    seconds: float | None
    comments: int


@dataclass(frozen=True)
class ReviewReport:
    """All figures of a review; `cut_off` is the share of realistic items that is asked."""

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def measure(opened: sqlite3.Connection) -> ReviewReport:
    """Return the figures of an opened review."""
    items = judged_items(opened)
    kinds: dict[int, str] = dict(opened.execute("SELECT id, name FROM kinds").fetchall())
    names: dict[int, str] = dict(opened.execute("SELECT id, name FROM reviewers").fetchall())
    strata = _strata(opened, items)
    return ReviewReport(
        cut_off=CUT_OFF,
        items=len(items),
        judged=sum(bool(item.realism) for item in items),
        answers=opened.execute("SELECT count(*) FROM answers").fetchone()[0],
        groups=strata,
        verdicts=[
            _verdict(name, strengths, [part for part in strata if (part.lang, part.recipe) == name])
            for name, strengths in sorted(judged(opened).items())
        ],
        agreement=_agreement(items, kinds),
        kinds=_kinds(items, kinds),
        reviewers=[_reviewer(opened, number, name, items) for number, name in names.items()],
        comments=[
            (names[reviewer], f"{item.lang}, {item.recipe} at {item.strength}", text)
            for item in items for reviewer, text in item.comment.items() if text.strip()
        ],
    )  # fmt: skip


def _strata(opened: sqlite3.Connection, items: Sequence[JudgedItem]) -> list[StratumFigures]:
    items_of: defaultdict[tuple[str, str, str], list[JudgedItem]] = defaultdict(list)
    for item in items:
        items_of[item.lang, item.recipe, item.strength].append(item)
    rows = opened.execute(
        "SELECT lang, recipe, strength, rows, changed, too_long FROM groups"
        " ORDER BY lang, recipe, value IS NULL, value, id"
    )
    strata = []
    for lang, recipe, strength, *counts in rows:
        part = items_of[lang, recipe, strength]
        seen = [item for item in part if item.realism]
        realistic = mean(item.share("realistic") for item in seen)
        better = mean(item.share("realistic", "moderate") for item in seen)
        meanings = [item.meaning.values() for item in part if item.meaning]
        kept = mean(mean(answer == "yes" for answer in answers) for answers in meanings)
        low, high = wilson(realistic, len(seen))
        strata.append(StratumFigures(
            lang, recipe, strength, len(part), len(seen), sum(item.stage > 1 for item in part),
            realistic if seen else None, low, high, better if seen else None,
            kept if meanings else None, *counts,
        ))  # fmt: skip
    return strata


def _verdict(
    name: tuple[str, str], strengths: Sequence[JudgedStrength], strata: Sequence[StratumFigures]
) -> StrengthVerdict:
    """Apply RCP's rule: the most realistic of the first stage, then the cut-off over all its rows.

    Where the second stage has rows, the strength that got them is the chosen item.
    """
    best = most_realistic(strengths)
    continued = [part for part in strata if part.second_stage]
    if best is None:
        return StrengthVerdict(*name, None, None, "nothing is judged yet")
    if not continued:
        waiting = sum(item.items - item.judged for item in strata)
        left = f"; {counted(waiting, 'row')} of the first stage not judged yet" if waiting else ""
        reason = f"most realistic of the first stage ({best.realistic:.1%} of {best.items:,}){left}"
        return StrengthVerdict(*name, best.strength, None, f"{reason}; next: review make --more 60")
    chosen = max(continued, key=lambda item: (item.second_stage, item.realistic or 0))
    share, waiting = chosen.realistic or 0.0, chosen.items - chosen.judged
    reason = f"{share:.1%} of {counted(chosen.judged, 'row')} realistic"
    if waiting:
        reason += f"; {counted(waiting, 'row')} not judged yet"
        return StrengthVerdict(*name, chosen.strength, None, reason)
    passes = share >= CUT_OFF
    reason += f": {'reaches' if passes else 'is below'} the cut-off of {CUT_OFF:.0%}"
    reason += f" (95 % interval {chosen.low:.1%} to {chosen.high:.1%})"
    reason += f"; fewer than the {ALL_ROWS} rows of RCP" if chosen.judged < ALL_ROWS else ""
    return StrengthVerdict(*name, chosen.strength, passes, reason)


def _kinds(items: Sequence[JudgedItem], kinds: Mapping[int, str]) -> list[KindShares]:
    by_language = []
    for lang in sorted({item.lang for item in items}):
        seen = [item for item in items if item.lang == lang and item.realism]
        shares = {name: mean(mean(_seen(item, number)) for item in seen)
                  for number, name in kinds.items()}  # fmt: skip
        by_language.append(KindShares(lang, len(seen), shares))
    return by_language


def _seen(item: JudgedItem, kind: int) -> list[int]:
    """Return 1 or 0 of every reviewer who judged the item: none chosen means none seen."""
    return [int(kind in item.kinds.get(reviewer, [])) for reviewer in item.realism]


def _reviewer(
    opened: sqlite3.Connection, number: int, name: str, items: Sequence[JudgedItem]
) -> ReviewerFigures:
    answered = [item.realism[number] for item in items if number in item.realism]
    complete = sum(number in item.realism and number in item.meaning for item in items)
    realistic = mean(answer == "realistic" for answer in answered) if answered else None
    rows = opened.execute(
        "SELECT max(at) FROM answers WHERE reviewer = ? GROUP BY item ORDER BY 1", (number,)
    )
    gaps = [after - before for (before,), (after,) in pairwise(rows)]
    short = [gap for gap in gaps if gap <= BREAK_SECONDS]
    comments = sum(bool(item.comment.get(number, "").strip()) for item in items)
    seconds = median(short) if short else None
    return ReviewerFigures(name, len(answered), complete, realistic, seconds, comments)


# Agreement.

Metric = Literal["nominal", "ordinal"]


def _agreement(items: Sequence[JudgedItem], kinds: Mapping[int, str]) -> list[Agreement]:
    questions: list[tuple[str, Metric, int, Callable[[JudgedItem], list[int]]]] = [
        ("realism", "ordinal", 3, lambda item: [*map(REALISM.index, item.realism.values())]),
        ("meaning unchanged", "nominal", 3,
         lambda item: [*map(MEANING.index, item.meaning.values())]),
    ]  # fmt: skip
    used = {number for item in items for chosen in item.kinds.values() for number in chosen}
    for number in sorted(used & kinds.keys()):
        questions.append((f"kind: {kinds[number]}", "nominal", 2, partial(_seen, kind=number)))
    agreement = []
    for question, metric, categories, values in questions:
        units = [unit for unit in map(values, items) if len(unit) > 1]
        alpha = krippendorff_alpha(units, categories, metric)
        agreement.append(Agreement(question, metric, alpha, len(units)))
    return agreement


def krippendorff_alpha(
    units: Iterable[Sequence[int]], categories: int, metric: Metric
) -> float | None:
    """Return Krippendorff's alpha of values 0 to `categories` - 1, one sequence per unit.

    A unit has the values that its reviewers gave; missing ones are left out, so units may differ in
    length. 1 is full agreement, 0 that of chance; None where no unit has two values or all values
    are the same. Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), the
    general form with coincidence matrices.
    """
    observed = np.zeros((categories, categories))  # pairs of values within units of m values,
    for unit in units:  # each pair weighing 1 / (m - 1)
        if len(unit) > 1:
            counts = np.bincount(unit, minlength=categories)
            observed += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    totals = observed.sum(axis=0)
    distance = 1 - np.eye(categories)
    if metric == "ordinal":  # by the values between two ranks, both ends counted by half
        middles = np.cumsum(totals) - totals / 2
        distance = (middles[:, None] - middles[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distance).sum())
    if not expected:
        return None
    return float(1 - (totals.sum() - 1) * (observed * distance).sum() / expected)


# On the terminal.

_KINDS_SHOWN = 8
_PASSES = {True: ("pass", "green"), False: ("fail", "red"), None: ("open", "yellow")}


def render(report: ReviewReport, console: Console) -> None:
    """Print the figures as tables."""
    people = counted(len(report.reviewers), "reviewer")
    judged = f"{report.judged:,} of {counted(report.items, 'row')} judged; {people}"
    answers = f"{counted(report.answers, 'answer')} (changes counted)"
    console.print(f"{judged}, {answers}", highlight=False)
    for table in _tables(report):
        if table.row_count:
            console.print()
            console.print(table)


def _tables(report: ReviewReport) -> Iterator[Table]:
    title = "realism; the interval is of 95 %; moderate: realistic or moderately so"
    heads = ["lang", "recipe", "strength", "judged", "realistic", "interval", "moderate"]
    yield _table(title, [*heads, "same meaning"], 3, [
        [group.lang, group.recipe, group.strength, f"{group.judged:,}/{group.items:,}",
         percent(group.realistic),
         f"{100 * group.low:.0f} to {100 * group.high:.0f}%" if group.judged else "-",
         percent(group.moderate_or_better), percent(group.meaning_kept)]
        for group in report.groups
    ])  # fmt: skip
    title = f"the strength to choose; cut-off {report.cut_off:.0%} realistic"
    yield _table(title, ("lang", "recipe", "strength", "", "why"), 5, [
        [verdict.lang, verdict.recipe, verdict.strength or "-", Text(*_PASSES[verdict.passes]),
         verdict.reason]
        for verdict in report.verdicts
    ])  # fmt: skip
    title = "agreement: Krippendorff's alpha"
    yield _table(title, ("question", "metric", "alpha", "rows"), 2, [
        [agreed.question, agreed.metric,
         "-" if agreed.alpha is None else f"{agreed.alpha:.3f}", f"{agreed.items:,}"]
        for agreed in report.agreement if agreed.items
    ])  # fmt: skip
    totals = {
        name: sum(part.shares[name] * part.items for part in report.kinds)
        for name in (report.kinds[0].shares if report.kinds else {})
    }  # the page and JSON have all kinds, the terminal the most frequent
    names = sorted((name for name in totals if totals[name]), key=lambda name: -totals[name])
    names = names[:_KINDS_SHOWN]
    yield _table("kinds of noise seen, of the judged rows", ("lang", "rows", *names), 1, [
        [part.lang, f"{part.items:,}", *(percent(part.shares[name], 0) for name in names)]
        for part in report.kinds if names
    ])  # fmt: skip
    heads = ["reviewer", "judged", "complete", "realistic", "seconds a row", "comments"]
    yield _table("reviewers", heads, 1, [
        [person.name, f"{person.items:,}", f"{person.complete:,}", percent(person.realistic),
         "-" if person.seconds is None else f"{person.seconds:.0f}", f"{person.comments:,}"]
        for person in report.reviewers
    ])  # fmt: skip


def _table(
    title: str, heads: Sequence[str], left: int, rows: Iterable[Sequence[str | Text]]
) -> Table:
    """Return a table whose first `left` columns are aligned left, the others right."""
    table = titled(title)
    for number, head in enumerate(heads):
        is_left = number < left
        table.add_column(head, justify="left" if is_left else "right", no_wrap=not is_left)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table
