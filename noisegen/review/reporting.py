"""The report of a review: shares with intervals, the strength to choose, agreement, kinds."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

from noisegen.errors import UsageError
from noisegen.intervals import wilson
from noisegen.manifest import counted
from noisegen.review.agreement import Metric, krippendorff_alpha
from noisegen.review.choice import CUT_OFF, FIRST_STAGE, SECOND_STAGE, Judged, most_realistic
from noisegen.review.figures import (
    Agreement,
    GroupFigures,
    KindShares,
    Report,
    ReviewerFigures,
    Verdict,
)
from noisegen.review.judgements import MEANING, REALISM, Item, items_of, judged, mean
from noisegen.review.store import connect, reading

BREAK_SECONDS = 600
ALL_ROWS = FIRST_STAGE + SECOND_STAGE


def report(path: str | Path, out: str | Path | None = None) -> Report:
    """Return the figures of a review and, with `out`, write them as one self-contained HTML page.

    Raises SourceError for a file that is no review, UsageError for `out` that is the review,
    OutputError if the page cannot be written.
    """
    found = measure(Path(path))
    if out is not None:
        if Path(out).exists() and Path(out).samefile(path):
            raise UsageError(f"-o {str(out)!r} is the review itself: give the page another name")
        from noisegen.atomic import write_text
        from noisegen.review.report_page import page

        write_text(Path(out), page(found))
    return found


def measure(path: Path) -> Report:
    """Return the figures of a review, judged or not; a server may be using it."""
    with reading(path), closing(connect(path)) as opened:
        items = items_of(opened)
        kinds: dict[int, str] = dict(opened.execute("SELECT id, name FROM kinds").fetchall())
        names: dict[int, str] = dict(opened.execute("SELECT id, name FROM reviewers").fetchall())
        groups = _groups(opened, items)
        return Report(
            cut_off=CUT_OFF,
            items=len(items),
            judged=sum(bool(one.realism) for one in items),
            answers=opened.execute("SELECT count(*) FROM answers").fetchone()[0],
            groups=groups,
            verdicts=_verdicts(judged(opened), groups),
            agreement=_agreement(items, kinds),
            kinds=_kinds(items, kinds),
            reviewers=[_reviewer(opened, number, name, items) for number, name in names.items()],
            comments=[
                (names[reviewer], f"{one.lang}, {one.recipe} at {one.strength}", text)
                for one in items for reviewer, text in one.comment.items() if text.strip()
            ],
        )  # fmt: skip


def _groups(opened: sqlite3.Connection, items: Sequence[Item]) -> list[GroupFigures]:
    by_group: defaultdict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for one in items:
        by_group[one.lang, one.recipe, one.strength].append(one)
    rows = opened.execute(
        "SELECT lang, recipe, strength, rows, changed, too_long FROM groups"
        " ORDER BY lang, recipe, value IS NULL, value, id"
    )
    return [_group(row[:3], by_group[row[:3]], row[3:]) for row in rows]


def _group(
    name: tuple[str, str, str], items: Sequence[Item], counts: Sequence[int]
) -> GroupFigures:
    seen = [one for one in items if one.realism]
    realistic = mean(one.share("realistic") for one in seen)
    low, high = wilson(realistic, len(seen))
    better = mean(one.share("realistic", "moderate") for one in seen)
    told = [
        mean(answer == "yes" for answer in one.meaning.values()) for one in items if one.meaning
    ]
    rows, changed, too_long = counts
    return GroupFigures(
        *name, len(items), len(seen), sum(one.stage > 1 for one in items),
        realistic if seen else None, low, high, better if seen else None,
        mean(told) if told else None, rows, changed, too_long,
    )  # fmt: skip


# The rule.


def _verdicts(
    first: Mapping[tuple[str, str], Sequence[Judged]], groups: Sequence[GroupFigures]
) -> list[Verdict]:
    return [
        _verdict(lang, recipe, strengths,
                 [one for one in groups if (one.lang, one.recipe) == (lang, recipe)])
        for (lang, recipe), strengths in sorted(first.items())
    ]  # fmt: skip


def _verdict(
    lang: str, recipe: str, strengths: Sequence[Judged], groups: Sequence[GroupFigures]
) -> Verdict:
    """Apply RCP's rule: the most realistic of the first stage, then the cut-off over all its rows.

    Where the second stage has rows, the strength that got them is the chosen one.
    """
    best = most_realistic(strengths)
    continued = [one for one in groups if one.second_stage]
    if best is None:
        return Verdict(lang, recipe, None, None, "nothing is judged yet")
    if not continued:
        waiting = sum(one.items - one.judged for one in groups)
        left = f"; {counted(waiting, 'row')} of the first stage not judged yet" if waiting else ""
        reason = f"most realistic of the first stage ({best.realistic:.1%} of {best.items:,}){left}"
        return Verdict(lang, recipe, best.strength, None, f"{reason}; next: review make --more 60")
    chosen = max(continued, key=lambda one: (one.second_stage, one.realistic or 0))
    share, waiting = chosen.realistic or 0.0, chosen.items - chosen.judged
    figures = f"{share:.1%} of {counted(chosen.judged, 'row')} realistic"
    interval = f"95 % interval {chosen.low:.1%} to {chosen.high:.1%}"
    if waiting:
        reason = f"{figures}; {counted(waiting, 'row')} not judged yet"
        return Verdict(lang, recipe, chosen.strength, None, reason)
    passes = share >= CUT_OFF
    word = "reaches" if passes else "is below"
    few = f"; fewer than the {ALL_ROWS} rows of RCP" if chosen.judged < ALL_ROWS else ""
    reason = f"{figures}: {word} the cut-off of {CUT_OFF:.0%} ({interval}){few}"
    return Verdict(lang, recipe, chosen.strength, passes, reason)


# Agreement.


def _agreement(items: Sequence[Item], kinds: Mapping[int, str]) -> list[Agreement]:
    found = [
        _alpha("realism", "ordinal", 3, items, lambda one: _places(one.realism, REALISM)),
        _alpha("meaning unchanged", "nominal", 3, items, lambda one: _places(one.meaning, MEANING)),
    ]
    used = {number for one in items for chosen in one.kinds.values() for number in chosen}
    for number in sorted(used & kinds.keys()):
        seen = partial(_seen, kind=number)
        found.append(_alpha(f"kind: {kinds[number]}", "nominal", 2, items, seen))
    return found


def _alpha(
    question: str, metric: Metric, categories: int, items: Sequence[Item],
    values: Callable[[Item], list[int]],
) -> Agreement:  # fmt: skip
    units = [unit for unit in map(values, items) if len(unit) > 1]
    return Agreement(question, metric, krippendorff_alpha(units, categories, metric), len(units))


def _places(answers: Mapping[int, str], known: Sequence[str]) -> list[int]:
    return [known.index(answer) for answer in answers.values()]


def _seen(item: Item, kind: int) -> list[int]:
    """Return 1 or 0 of every reviewer who judged the item: none chosen means none seen."""
    return [int(kind in item.kinds.get(reviewer, [])) for reviewer in item.realism]


# Kinds and reviewers.


def _kinds(items: Sequence[Item], kinds: Mapping[int, str]) -> list[KindShares]:
    found = []
    for lang in sorted({one.lang for one in items}):
        seen = [one for one in items if one.lang == lang and one.realism]
        shares = {name: mean(mean(_seen(one, number)) for one in seen)
                  for number, name in kinds.items()}  # fmt: skip
        found.append(KindShares(lang, len(seen), shares))
    return found


def _reviewer(
    opened: sqlite3.Connection, number: int, name: str, items: Sequence[Item]
) -> ReviewerFigures:
    answered = [one.realism[number] for one in items if number in one.realism]
    complete = sum(number in one.realism and number in one.meaning for one in items)
    realistic = mean(answer == "realistic" for answer in answered) if answered else None
    rows = opened.execute(
        "SELECT max(at) FROM answers WHERE reviewer = ? GROUP BY item ORDER BY 1", (number,)
    )
    gaps = [after - before for (before,), (after,) in pairwise(rows)]
    short = [gap for gap in gaps if gap <= BREAK_SECONDS]
    comments = sum(bool(one.comment.get(number, "").strip()) for one in items)
    seconds = median(short) if short else None
    return ReviewerFigures(name, len(answered), complete, realistic, seconds, comments)
