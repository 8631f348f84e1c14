"""Report of the statistics of a run: tables on the terminal, a page, or a picture."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from noisegen.augmentation.statistics import (
    ChangedWord,
    Statistics,
    TransformFigures,
    TransformsPerRow,
    ratio,
)
from noisegen.errors import UsageError, check_extras
from noisegen.report import blocks, pages
from noisegen.report.picture import picture
from noisegen.report.terminal import percent, show
from noisegen.runs.atomic import atomic, refuse_existing
from noisegen.runs.manifest import counted, each_once

if TYPE_CHECKING:
    from rich.console import Console

_TRIED_MIN = 5  # rows that must draw a transform alone before its effect is reported
_CER_SHOWN = 0.99  # share of the changed rows in ordinary bars; the last bar takes any higher CER
_CER_BARS = 20


def render(figures: Statistics, console: "Console") -> None:
    """Print the statistics of a run as tables with bars."""
    run = blocks.Table("the run", ["", ""], [*_summary(figures)])
    drawn = [_drawn_table(figures)] if len(_drawn(figures)) > 1 else []  # no chart of one row
    show([run, *_strengths(figures), *drawn, *_figure_tables(figures)], console)


def check_plot(path: Path) -> None:
    """Raise UsageError if the name of a plot does not end in .png or .html.

    Raises OutputError if the file exists and is no plot of noisegen, and MissingExtra for PNG
    without matplotlib.
    """
    if path.suffix.lower() not in (".png", ".html"):
        raise UsageError(f"cannot plot to {str(path)!r}: the name must end in .png or .html")
    if path.suffix.lower() == ".png":
        check_extras("matplotlib")
    refuse_existing(path)


def plot(figures: Statistics, path: Path) -> None:
    """Write a self-contained HTML page with examples, or the charts alone as PNG.

    Raises what `check_plot` raises, and OutputError if the file cannot be written.
    """
    check_plot(path)
    if path.suffix.lower() == ".png":
        title = f"{counted(figures.rows, figures.unit)}, CER {percent(figures.cer, 2)}, "
        content = picture(f"{title}WER {percent(figures.wer, 2)}", _of_several(_charts(figures)))
    else:
        content = _page(figures).encode()
    with atomic(path) as file:
        file.write(content)


# Tables: names in the first column, then figures, then a bar.


def _summary(figures: Statistics) -> Iterator[tuple[str, str]]:
    """Yield name and value of each figure of the whole run, such as ('changed', '9 (90%)')."""
    tokens, shards = figures.type_token_ratio, counted(figures.shards, "shard")
    copies = f", {figures.copies:,} copies of each" if figures.copies > 1 else ""
    copies += f", at {counted(len(figures.strengths), 'strength')}" if figures.strengths else ""
    length, clean, noisy, quotient = (
        "-" if value is None else f"{value:.4f}"
        for value in (figures.length_ratio, tokens.clean, tokens.noisy, tokens.quotient)
    )
    ratios = f"clean {clean}, noisy {noisy}, noisy / clean {quotient}"
    cut = "" if figures.has_ended else "; the run is incomplete"
    yield f"{figures.unit}s", f"{figures.rows:,} in {shards}{copies}{cut}"
    yield "changed", f"{figures.changed:,} ({percent(figures.changed_share)})"
    yield "CER", f"{percent(figures.cer, 2)} of {figures.clean_characters:,} characters"
    yield "WER", f"{percent(figures.wer, 2)} of {figures.clean_words:,} words"
    yield "length", f"noisy / clean {length} in characters"
    counts = f"{counted(tokens.rows, figures.unit)}{' (a sample)' * tokens.is_sample}"
    yield "type/token", f"{ratios}; {counts}"


def _figure_tables(figures: Statistics) -> list[blocks.Table]:
    return [_transform_table(figures), _kind_table(figures), _length_table(figures)]


def _strengths(figures: Statistics) -> list[blocks.Table]:
    """Return a table with a line per strength, for a run with several strengths."""
    if not figures.strengths:
        return []
    rows: list[blocks.Row] = []
    for line in figures.strengths:
        rates = [blocks.figure(rate, ".2%") for rate in (line.cer, line.wer)]
        counts = [*_counts(line.rows, line.changed), blocks.figure(line.changed_share, ".1%")]
        rows.append((line.strength, *counts, *rates))
    heads = ("", f"{figures.unit}s", "changed", "share", "CER", "WER")
    return [blocks.Table("strengths", heads, rows)]


def _drawn_table(figures: Statistics) -> blocks.Table:
    drawn = _drawn(figures)
    most = max((line.rows for line in drawn), default=0)
    heads = ["", f"{figures.unit}s", "share"]
    if any(line.expected is not None for line in drawn):
        heads.append("expected")
    rows: list[blocks.Row] = []
    for line in drawn:
        share = _share(line.rows, figures.rows)
        counts = [*_counts(line.rows), share, *_counts(line.expected)]
        rows.append((str(line.transforms), *counts, _bar(line.rows, most)))
    return blocks.Table(f"transforms per {figures.unit}", (*heads, ""), rows)


def _transform_table(figures: Statistics) -> blocks.Table:
    unit = figures.unit
    if not _has_edits(figures):
        alone: list[blocks.Row] = [
            (line.name, *_counts(line.rows), *_changed_alone(line)) for line in figures.transforms
        ]
        title = f"transforms: {unit}s that drew each (alone: and no other)"
        note = "augment --edits records what each transform changed"
        return blocks.Table(title, ("", f"{unit}s", "changed alone", "share", ""), alone, note=note)
    most = max((line.characters or 0 for line in figures.transforms), default=0)
    rows: list[blocks.Row] = []
    for line in _by_characters(figures):
        counts = _counts(line.rows, line.changed, line.characters)
        rows.append((line.name, *counts, _bar(line.characters or 0, most)))
    note = f"{unit}s that drew each, {unit}s that it changed, and characters that it changed"
    return blocks.Table(
        "transforms", ("", f"{unit}s", "changed", "characters", ""), rows, note=note
    )


def _has_edits(figures: Statistics) -> bool:
    return any(line.edits is not None for line in figures.transforms)


def _by_characters(figures: Statistics) -> list[TransformFigures]:
    """Return the transforms with the most changed characters first."""
    return sorted(figures.transforms, key=lambda line: (-(line.characters or 0), line.name))


def _changed_alone(line: TransformFigures) -> tuple[blocks.Cell, blocks.Cell, blocks.Cell]:
    """Return count, share and bar of the changed rows among rows that drew this transform only."""
    if not line.rows_alone:
        return blocks.Cell("never alone", kind="n quiet"), blocks.Cell("", kind="n"), _bar(0, 1)
    count = blocks.Cell(f"{line.changed_alone:,} of {line.rows_alone:,}", line.changed_alone)
    counts = line.changed_alone, line.rows_alone
    return count, _share(*counts), _bar(*counts)


def _kind_table(figures: Statistics) -> blocks.Table:
    kinds = figures.edit_kinds
    source = {"edits": "from the column edits", "alignment": "from a shortest alignment"}
    changed = counted(kinds.rows, f"changed {figures.unit}")
    rows_read = f"{'a sample of ' * kinds.is_sample}{changed}"
    total = sum(line.characters + line.spaces for line in kinds.kinds)
    rows: list[blocks.Row] = []
    for line in kinds.kinds:
        both = line.characters + line.spaces
        counts = _counts(line.characters, line.spaces)
        rows.append((line.kind, *counts, _share(both, total), _bar(both, total)))
    title = f"edit kinds, {source[kinds.source]}; {rows_read}"
    return blocks.Table(title, ("", "of characters", "of spaces", "share", ""), rows)


def _length_table(figures: Statistics) -> blocks.Table:
    filled = [number for number, line in enumerate(figures.row_lengths) if line.clean + line.noisy]
    bins = figures.row_lengths[: max(filled, default=0) + 1]
    most = max(line.clean for line in bins)
    rows: list[blocks.Row] = []
    for line in bins:
        bounds = f"{line.low:,} {'or more' if line.high is None else f'to {line.high - 1:,}'}"
        rows.append((bounds, *_counts(line.clean, line.noisy), _bar(line.clean, most)))
    return blocks.Table(f"{figures.unit} lengths in characters", ("", "clean", "noisy", ""), rows)


def _drawn(figures: Statistics) -> list[TransformsPerRow]:
    """Return the counts of transforms per row that occur in a row, or are expected to."""
    return [line for line in figures.transforms_per_row if line.rows or (line.expected or 0) >= 0.5]


def _counts(*values: float | None) -> list[blocks.Cell]:
    """Return a cell for each value that is not None."""
    return [blocks.figure(value, ",.0f") for value in values if value is not None]


def _share(part: float, whole: float) -> blocks.Cell:
    return blocks.figure(ratio(part, whole), ".1%")


def _bar(part: float, whole: float) -> blocks.Cell:
    return blocks.Cell("", bar=ratio(part, whole) or 0.0)


# The page.


def _page(figures: Statistics) -> str:
    per_row, _, kinds, cer = _charts(figures)
    transforms, _, lengths = _figure_tables(figures)
    examples = _examples(figures)
    by = "the transform that made each" if _has_edits(figures) else "the transforms that each drew"
    sections = [
        blocks.Section(
            "strengths",
            "Strengths",
            _strengths(figures),
            "Each row comes once per strength, a factor of the recipe's noise.",
        ),
        blocks.Section(
            "examples",
            "Examples",
            [examples] if examples.examples else [],
            f"Changed {figures.unit}s from all over the run, with {by}.",
        ),
        blocks.Section(
            "transforms",
            "Transforms",
            [*([transforms] if transforms.rows else []), *_of_several([per_row])],
            "A transform that a row draws changes it only where it finds something to change.",
        ),
        blocks.Section(
            "edits",
            "Edits",
            [*_of_several([kinds, cer]), lengths],
            "CER: errors over the characters of the clean text.",
        ),
        blocks.Section("run", "The run", [_facts(figures)]),
    ]
    head = [blocks.Text(" ".join(_sentences(figures)))]
    rows = f"{figures.changed:,} of {counted(figures.rows, figures.unit)}"
    share = f" ({percent(figures.changed_share)})" if figures.rows else ""
    title = f"{figures.origin.recipe_name or 'The run'} changed {rows}{share}"
    return pages.page(title, sections, kicker="noisegen: stats", head=head)


def _of_several(charts: Sequence[blocks.Bars]) -> list[blocks.Bars]:
    """Return the charts that have more than one bar per series."""
    return [chart for chart in charts if len(chart.labels) > 1]


def _examples(figures: Statistics) -> blocks.ExampleList:
    """Return the changed rows with their differences marked, and the transform of each."""
    shown = []
    for row in figures.examples:
        clean, noisy = blocks.differences(row.clean, row.noisy)
        versions = {"clean": clean, "noisy": noisy}
        if row.changes:
            versions["by"] = [piece for change in row.changes for piece in _pieces(change)]
        note = "" if row.changes else each_once(row.transforms)
        strength = f"at {row.strength}" if row.strength else ""
        shown.append(blocks.Example(versions, ": ".join(filter(None, [strength, note]))))
    return blocks.ExampleList(shown)


def _pieces(change: ChangedWord) -> list[blocks.Piece]:
    """Return a changed word, marked, and its transforms; a word that is gone is shown as it was."""
    word = change.noisy or f"{change.clean} → ‸"
    return [(word, True), (f" {', '.join(change.transforms)}  ", False)]


def _facts(figures: Statistics) -> blocks.Facts:
    """Return sources, recipe, seed, language and summary of the run, as far as they are known."""
    origin = figures.origin
    facts = {
        "source": [str(source.get("path", "")) for source in origin.sources],
        "recipe": [origin.recipe_name],
        "seed": [] if origin.seed is None else [str(origin.seed)],
        "language": [str(origin.options.get("lang") or "")],
    }
    told = {"changed", "CER", "WER", "type/token"}  # in the title and the sentences of the page
    facts |= {name: [text] for name, text in _summary(figures) if name not in told}
    return blocks.Facts({name: lines for name, lines in facts.items() if any(lines)})


def _sentences(figures: Statistics) -> Iterator[str]:
    """Yield the main results of the run, each as a sentence."""
    tokens = figures.type_token_ratio
    if figures.changed:
        cer, wer = percent(figures.cer, 2), percent(figures.wer, 2)
        wrong = f"{cer} of the characters (CER) and {wer} of the words (WER) are wrong."
        yield f"In all {figures.unit}s, {wrong}"
    most = _by_characters(figures)[:1]
    if figures.changed and _has_edits(figures) and len(figures.transforms) > 1:
        total = sum(line.characters or 0 for line in figures.transforms)
        share = percent(ratio(most[0].characters, total), 0)
        yield f"Of the changed characters, {share} are the work of {most[0].name}."
    tried = [
        (found, drawn, line.name)
        for line in figures.transforms
        for found, drawn in [_tried(line)]
        if drawn >= _TRIED_MIN
    ]
    if len(tried) > 1:
        found, drawn, name = min(tried, key=lambda one: (one[0] / one[1], -one[1]))
        alone = "" if _has_edits(figures) else " alone"
        yield (
            f"The transform with the least effect is {name}: it changed {found:,} of the "
            f"{counted(drawn, figures.unit)} that drew it{alone}."
        )
    if tokens.quotient is not None and figures.changed:
        more = "more" if tokens.quotient >= 1 else "fewer"
        share = percent(abs(tokens.quotient - 1))
        ratios = f"{tokens.noisy:.4f} per word, {tokens.clean:.4f} in clean text"
        counts = f"{'a sample of ' * tokens.is_sample}{counted(tokens.rows, figures.unit)}"
        yield f"Noisy text has {share} {more} different words ({ratios}; {counts})."


def _tried(line: TransformFigures) -> tuple[int, int]:
    """Return the rows that a transform changed, and the rows in which it could.

    Without a column of edits these are rows that drew no other transform.
    """
    if line.changed is None:
        return line.changed_alone, line.rows_alone
    return line.changed, line.rows


# Charts.


def _charts(figures: Statistics) -> list[blocks.Bars]:
    """Return the four charts: transforms per row, effects of transforms, kinds of edits, CER."""
    return [
        _drawn_chart(figures),
        _effect_chart(figures),
        _kind_chart(figures),
        _cer_chart(figures),
    ]


def _drawn_chart(figures: Statistics) -> blocks.Bars:
    drawn, rows = _drawn(figures), max(1, figures.rows)
    series = {"this run": [100 * line.rows / rows for line in drawn]}
    if any(line.expected is not None for line in drawn):
        series["expected of mix_all"] = [100 * (line.expected or 0) / rows for line in drawn]
    return blocks.Bars(
        f"Transforms per {figures.unit}",
        f"% of {figures.unit}s (number of {figures.unit}s)",
        [str(line.transforms) for line in drawn],
        series,
        axis="transforms",
        counts={"this run": [line.rows for line in drawn]},
    )


def _effect_chart(figures: Statistics) -> blocks.Bars:
    """Return a chart of the characters that each transform changed.

    Without a column of edits, each bar has the changed share of the rows with no other transform.
    """
    if _has_edits(figures):
        lines = _by_characters(figures)
        return blocks.Bars(
            "Characters changed by each transform",
            "characters (edits)",
            [line.name for line in lines],
            {"changed": [line.characters or 0 for line in lines]},
            axis="transform",
            counts={"changed": [line.edits or 0 for line in lines]},
        )
    alone = [line for line in figures.transforms if line.rows_alone]
    alone.sort(key=lambda line: (-(line.changed_alone_share or 0), line.name))
    return blocks.Bars(
        "Effect of each transform drawn alone",
        f"% of its {figures.unit}s changed (number of {figures.unit}s)",
        [line.name for line in alone],
        {"changed": [100 * (line.changed_alone_share or 0) for line in alone]},
        axis="transform",
        counts={"changed": [line.changed_alone for line in alone]},
    )


def _kind_chart(figures: Statistics) -> blocks.Bars:
    kinds = figures.edit_kinds
    return blocks.Bars(
        f"Edits by kind{', a sample' * kinds.is_sample}",
        "edits",
        [line.kind for line in kinds.kinds],
        {
            "of characters": [line.characters for line in kinds.kinds],
            "of spaces": [line.spaces for line in kinds.kinds],
        },
        axis="kind",
    )


def _cer_chart(figures: Statistics) -> blocks.Bars:
    """Return a chart of the changed rows by their CER, with about `_CER_BARS` bars at most."""
    shown = _CER_SHOWN * figures.changed
    sums = accumulate(figures.cer_of_changed_rows)
    last = next((number for number, total in enumerate(sums) if total >= shown), 0)
    step = next(step for step in (1, 2, 5, 10) if last < _CER_BARS * step)
    *lows, final = range(0, last + 1, step)
    counts = np.add.reduceat(figures.cer_of_changed_rows, [*lows, final])
    return blocks.Bars(
        f"CER of the changed {figures.unit}s",
        f"% of changed {figures.unit}s (number of {figures.unit}s)",
        [*(f"{low} to {low + step}%" for low in lows), f"{final}% and above"],
        {"rows": (100 * counts / max(1, figures.changed)).tolist()},
        axis="CER",
        counts={"rows": counts.tolist()},
    )
