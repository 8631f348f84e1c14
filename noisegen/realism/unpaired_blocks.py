"""Blocks of the report on noise beside posts, which have no clean version."""

from collections.abc import Iterator, Sequence

from noisegen.realism.report_blocks import ngram_table, page_of, verdict_word
from noisegen.realism.two_sample import Auc
from noisegen.realism.unpaired import ROWS_SHOWN, Mark, Unpaired
from noisegen.report import blocks
from noisegen.runs.manifest import counted

MARKS_SHOWN = 15  # most habits in the table
_NOTABLE = 3.0  # standard errors from which on a habit is called too rare or too frequent
LIMITS = (
    "The classifier sees function words, noisy forms of the word lists, signs and the shapes of "
    "all other words. It cannot see typos and slang in these, and a part of what it tells apart is "
    "the style of the clean text, not its noise."
)
_OF_MARKS = (
    "Noisy forms that a step can write are counted per text, capitals and ends as shares of the "
    "texts, signs and words per ten words. The difference is that of noise and posts in standard "
    "errors."
)


def unpaired_page(found: Unpaired) -> str:
    """Return the report on noise beside posts as an HTML page."""
    return page_of("realism", unpaired_sections(found), found.warnings)


def unpaired_sections(found: Unpaired, rows: int = ROWS_SHOWN) -> list[blocks.Section]:
    """Return the sections of the report on noise beside posts: the main results come first.

    `rows` is the number of posts that are shown, each beside a noisy text.
    """
    marks = sorted(found.marks, key=lambda mark: -abs(mark.difference))[:MARKS_SHOWN]
    auc = found.classifier.all_rows
    title = "Too few texts for a classifier: give at least 20 posts and 20 clean texts"
    if auc:
        title = (
            f"{verdict_word(auc).capitalize()}: a classifier picks the synthetic text in "
            f"{auc.value:.0%} of pairs with a post (50% is guessing)"
        )
    return [
        blocks.Section("about", title, list(map(blocks.Text, _sentences(found)))),
        blocks.Section("habits", "Habits that differ most", [_table(marks)], _OF_MARKS),
        blocks.Section(
            "ngrams",
            "What gives the noise away",
            [ngram_table(found.classifier.contrasts, "noise", ("posts", "noise"))],
            "Character n-grams that the classifier relies on, and the share of rows that contain "
            "them. x, X and 0 are letters and digits of words that it cannot see.",
        ),
        rows_section(found.rows[:rows]),
    ]


def rows_section(rows: Sequence[tuple[str, str]]) -> blocks.Section:
    """Return a section with posts, each beside a noisy text."""
    numbered = [[str(number), *texts] for number, texts in enumerate(rows, 1)]
    table = blocks.Table("Posts beside noisy texts", ["", "posts", "noise"], numbered, "stacked")
    lead = "Texts of one row have nothing to do with each other."
    return blocks.Section("rows", "Posts beside noise", [table] if rows else [], lead)


def _sentences(found: Unpaired) -> Iterator[str]:
    """Yield the main results and their limits as sentences."""
    yield f"{found.names[1].capitalize()}, beside {counted(found.read[0], 'post')}."
    noise, clean = found.classifier.all_rows, found.classifier.clean_sides
    if noise and clean and found.floor:
        yield (
            f"The share is {percent(noise)}. In pairs of a post and a clean text without noise it "
            f"is {percent(clean)}, in pairs of two posts {percent(found.floor)}."
        )
        yield LIMITS
    far = sorted(found.marks, key=lambda mark: -abs(mark.difference))
    for name, sign in (("too seldom", -1), ("too often", 1)):
        if named := [mark.name for mark in far if mark.difference * sign > _NOTABLE][:3]:
            yield f"Habits that the noise has {name}: {', '.join(named)}."


def percent(auc: Auc) -> str:
    """Return an AUC with its interval as percentages: '62% (58% to 66%)'."""
    return f"{auc.value:.0%} ({auc.low:.0%} to {auc.high:.0%})"


def _table(marks: Sequence[Mark]) -> blocks.Table:
    rows: list[blocks.Row] = [
        [
            mark.name,
            *(blocks.figure(share, ".3f") for share in (mark.posts, mark.noise, mark.clean)),
            blocks.figure(mark.difference, "+.1f"),
        ]
        for mark in marks
    ]
    heads = ["habit", "posts", "noise", "clean text", "difference"]
    return blocks.Table("Habits of posts, noise and clean text", heads, rows)
