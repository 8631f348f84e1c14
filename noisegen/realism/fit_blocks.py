"""Blocks of the report on a fitted recipe: its habits and writers, and what still differs."""

from collections.abc import Iterator

from noisegen.realism.fit import Fitted, FittedHabit
from noisegen.realism.report_blocks import comparison_sections, page_of
from noisegen.realism.unpaired_blocks import LIMITS, percent, rows_section
from noisegen.report import blocks
from noisegen.runs.manifest import counted

_LIMITS = (
    "The AUC compares posts with noise on the same posts, restored by the word lists of the recipe "
    "and with the capitals and last stops of edited text. It cannot see noise that was not "
    "restored: typos, missing words, and slang that the lists lack are the same on both sides."
)


def fit_page(fitted: Fitted) -> str:
    """Return the report on a fitted recipe as an HTML page."""
    sections = [*fit_sections(fitted), rows_section(fitted.rows)]
    if fitted.left:
        _, *left = comparison_sections(fitted.left)
        sections += left
    return page_of("fit", sections, fitted.warnings)


def fit_sections(fitted: Fitted) -> list[blocks.Section]:
    """Return the sections on the result of a fit: in words, habits, and writers."""
    title = f"{fitted.base} fitted to {counted(fitted.posts, 'post')}"
    sections = [blocks.Section("about", title, list(map(blocks.Text, _sentences(fitted))))]
    if fitted.habits:
        lead = "Marks are noisy forms of words that the step can write, per 100 posts."
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


def _sentences(fitted: Fitted) -> Iterator[str]:
    """Yield the main results and their limits as sentences."""
    given = counted(fitted.clean, "clean text") if fitted.clean else "no clean text"
    yield f"The recipe was fitted to {counted(fitted.posts, 'post')} and {given}."
    before, after = (fitted.aucs.get(name) for name in ("before", "after"))
    if before and after:
        base = f"with {fitted.base} {percent(before)}"
        other = "noise on clean text" if fitted.clean else "noise on its restored text"
        yield (
            f"Shown a post that was kept out of the fit and {other}, a classifier picks the noise "
            f"{percent(after)} of the time; {base}. 50% is guessing."
        )
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
        blocks.Cell(f"{habit.low:.2f} to {habit.high:.2f}", kind="n"),
    ]


def _writers(fitted: Fitted) -> blocks.Table:
    rows: list[blocks.Row] = [
        [name, *(blocks.figure(share, ".1%") for share in shares)]
        for name, shares in fitted.writers.items()
    ]
    heads = ["writer", fitted.base, "fitted"]
    return blocks.Table("Share of the rows that each writer writes", heads, rows)
