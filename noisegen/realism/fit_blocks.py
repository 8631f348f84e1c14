"""Blocks of the report on a fitted recipe: its habits and writers, and what still differs."""

from collections.abc import Iterator
from dataclasses import replace

from noisegen.realism.fit import Fitted, FittedHabit
from noisegen.realism.report_blocks import comparison_sections, page_of, verdict_word
from noisegen.realism.unpaired_blocks import LIMITS, rows_section
from noisegen.report import blocks
from noisegen.runs.manifest import counted

_LEFT = (
    "From here on: posts that were kept out of the fit, against noise on the same posts. Clean "
    "text is the post as the word lists restored it."
)
_LIMITS = (
    "The classifier compares posts with noise on the same posts, restored by the word lists of the "
    "recipe and with the capitals and last stops of edited text. It cannot see noise that was not "
    "restored: typos, missing words, and slang that the lists lack are the same on both sides."
)


def fit_page(fitted: Fitted) -> str:
    """Return the report on a fitted recipe as an HTML page."""
    sections = [*fit_sections(fitted), rows_section(fitted.rows)]
    if fitted.left:
        _, examples, *others = comparison_sections(fitted.left)
        sections += [replace(examples, lead=_LEFT), *others]
    kicker = f"fit {fitted.base} to {counted(fitted.posts, 'post')}"
    return page_of(kicker, sections, fitted.warnings)


def fit_sections(fitted: Fitted) -> list[blocks.Section]:
    """Return the sections on the result of a fit: the verdict, habits, and writers."""
    sections = [_verdict(fitted)]
    if fitted.habits:
        lead = (
            "Marks are noisy forms of words that the step can write, per 100 posts. With few marks "
            "a factor stays near 1: more posts move it further."
        )
        habits = {habit.step for habit in fitted.habits}
        labels = dict.fromkeys(step.label for step in fitted.recipe.steps() if step.p)
        if kept := [label for label in labels if label not in habits]:
            lead += (
                " Steps that are not in the table keep their strength: posts show too few marks of "
                f"them, or none, or none without --clean. They are {', '.join(kept)}."
            )
        sections.append(blocks.Section("habits", "Habits", [_habits(fitted)], lead))
    if len(fitted.writers) > 1:
        sections.append(blocks.Section("writers", "Writers", [_writers(fitted)]))
    return sections


def _verdict(fitted: Fitted) -> blocks.Section:
    """Return the section that says how near to posts the fitted noise is, beside the base recipe.

    Its title and table have the words of the report of `realism`.
    """
    judged = {
        name: found
        for name, key in ((fitted.base, "before"), ("fitted", "after"))
        if (found := fitted.aucs.get(key))
    }
    made: list[blocks.Block] = list(map(blocks.Text, _sentences(fitted)))
    if len(judged) < 2:
        return blocks.Section("verdict", f"{fitted.base} fitted, but not judged", made)
    before, after = judged.values()
    title = (
        f"{verdict_word(after).capitalize()}: a classifier picks the synthetic text in "
        f"{after.value:.0%} of pairs, with {fitted.base} in {before.value:.0%} (50% is guessing)"
    )
    rows: list[blocks.Row] = [
        [
            name,
            verdict_word(found),
            blocks.figure(found.value, ".0%"),
            blocks.Cell(f"{found.low:.0%}–{found.high:.0%}", kind="n"),
        ]
        for name, found in judged.items()
    ]
    heads = ["noise", "", "picked in", "95% interval"]
    table = blocks.Table("How near the noise is to the posts", heads, rows)
    return blocks.Section("verdict", title, [table, *made])


def _sentences(fitted: Fitted) -> Iterator[str]:
    """Yield sentences on the fitted texts, on the judgement of the noise, and on its limits."""
    given = counted(fitted.clean, "clean text") if fitted.clean else "no clean text"
    yield f"The recipe was fitted to {counted(fitted.posts, 'post')} and {given}."
    if fitted.aucs.get("after"):
        other = "noise on clean text" if fitted.clean else "noise on its restored text"
        yield f"A pair is a post that was kept out of the fit and {other}."
        if all(habit.factor == 1 for habit in fitted.habits):
            yield f"No change brought the noise nearer to the posts: it is that of {fitted.base}."
        yield LIMITS if fitted.clean else _LIMITS
    elif not fitted.aucs:
        yield "No classifier judged the recipe: pip install 'noisegen[realism]'."
    else:
        yield "Too few posts were kept out of the fit for a classifier to judge the recipe."


def _habits(fitted: Fitted) -> blocks.Table:
    rows = [_habit(habit) for habit in fitted.habits]
    heads = ["step", "posts", fitted.base, "fitted", "factor", "95% interval"]
    return blocks.Table("Marks per 100 posts, and factor of each step", heads, rows)


def _habit(habit: FittedHabit) -> list[blocks.Cell | str]:
    marks = (habit.posts, habit.before, habit.after)
    return [
        habit.step,
        *(blocks.figure(mark, ".1f") for mark in marks),
        blocks.figure(habit.factor, ".2f"),
        blocks.Cell(f"{habit.low:.2f}–{habit.high:.2f}", kind="n"),
    ]


def _writers(fitted: Fitted) -> blocks.Table:
    rows: list[blocks.Row] = [
        [name, *(blocks.figure(share, ".1%") for share in shares)]
        for name, shares in fitted.writers.items()
    ]
    heads = ["writer", fitted.base, "fitted"]
    return blocks.Table("Share of the rows that each writer writes", heads, rows)
