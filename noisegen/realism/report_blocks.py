"""Tables, charts and texts of reports on a comparison, a calibration or a noise profile."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from noisegen.noising.profile import END, SAME, START, HabitKey, Profile
from noisegen.realism.advice import DIFFERENCE_MIN, TRIAL_ROWS, Advice, AllChanges, Change
from noisegen.realism.compare import Realism
from noisegen.realism.figures import HISTOGRAMS, NoiseFigures
from noisegen.realism.two_sample import Auc, NgramContrast
from noisegen.report import blocks, pages
from noisegen.report.terminal import percent
from noisegen.runs.manifest import counted
from noisegen.text.resources import rows_of

if TYPE_CHECKING:
    from noisegen.realism.calibrate import Calibrated

TOP = 15  # maximum lines per table in the report on a noise profile
EDITS_SHOWN = 12  # last line of the table "edits per row": rows with this many edits or more
_SIDES = ("real", "synthetic")
_VERDICTS = Path(__file__).with_name("verdicts.tsv")  # word: the AUC up to which it is right
_OF_AUC = (
    "AUC: how often a classifier on character n-grams, trained on other texts, picks the synthetic "
    "one when it is shown one real and one synthetic text. 0.5 is guessing: the best that noise "
    "can reach."
)
_OF_DIVERGENCE = "Jensen-Shannon divergence, base 2: 0 means equal, 1 means nothing in common."
_VISIBLE = str.maketrans({" ": "␣", "\n": "¶", "\t": "→"})
_FOLDERS = re.compile(r"[^\s,(]*/(?=\S)")  # folders of a path, which a title leaves out
_WRITTEN = ("", "in lower case", "with a capital", "in upper case")
_HABITS = {"small": "all in lower case", "upper": "all in upper case", "bare": "no diacritics"}
_CAPTIONS = {  # captions of tables, by the field of `Profile` that has the counts
    "words": "words, with their share of all cases of the word",
    "gaps": "between words",
    "letters": "letters between their neighbours, in different words",
    "habits": "habits of whole rows",
}


class Line(NamedTuple):
    """A line in a table of a noise profile: an edit, and how often it occurs.

    `share` is `times` divided by the number of occurrences of `clean`, edited or not.
    """

    clean: str
    noisy: str
    times: int
    share: float


def page_of(kicker: str, sections: Sequence[blocks.Section], warnings: Sequence[str]) -> str:
    """Return the report of a command as one self-contained HTML page.

    The first section has the title and the main results; warnings are shown below these. `kicker`
    is the line above the title, after "noisegen: ".
    """
    about, *others = sections
    head = [*about.blocks, *(blocks.Text(line, "warning") for line in warnings)]
    return pages.page(about.title, others, kicker=f"noisegen: {kicker}", head=head)


def comparison_page(realism: Realism) -> str:
    """Return the report on a comparison as an HTML page."""
    kicker = f"realism {_compared_names(realism)}".rstrip()
    return page_of(kicker, comparison_sections(realism), realism.warnings)


def comparison_sections(realism: Realism) -> list[blocks.Section]:
    """Return the sections of the report on a comparison.

    The first section states the verdict and what to change; the last one names both sets.
    """
    examples = [_example(versions) for versions in realism.examples]
    return [
        _verdict(realism),
        blocks.Section(
            "examples",
            "Examples",
            [blocks.ExampleList(examples)] if examples else [],
            "Whole rows with their real noise and with the synthetic noise.",
        ),
        *(_strengths(realism) if realism.levels else _figures(realism)),
        blocks.Section(
            "histograms",
            "Histograms",
            [_bars(realism, name) for name in HISTOGRAMS],
            "Places are places in the clean text.",
        ),
        blocks.Section(
            "ngrams",
            "Letters that give the noise away",
            [
                ngram_table(one.two_sample.contrasts, _caption(name))
                for name, one in _compared(realism).items()
            ],
            "Character n-grams that the classifier relies on, and the share of rows that "
            "contain them. ␣ is a space, ¶ the beginning or the end of a text. In an example noise "
            "wrote the n-gram; - means that it comes from the clean text.",
        ),
        _about(realism),
    ]


def _compared(realism: Realism) -> dict[str, Realism]:
    """Return the comparisons of a result by the name of their synthetic set."""
    return realism.levels or {"synthetic": realism}


def _caption(name: str) -> str:
    """Return the caption of the n-grams of the synthetic set with this name."""
    return "n-grams" if name == "synthetic" else f"n-grams at {name}"


def _figures(realism: Realism) -> list[blocks.Section]:
    return [
        blocks.Section("tests", "Can a classifier tell them apart?", [_tests(realism)], _OF_AUC),
        blocks.Section(
            "divergences",
            "Divergences",
            [_divergences(realism)],
            f"{_OF_DIVERGENCE} The last column is the divergence of two halves of the real set: "
            "the best value within reach.",
        ),
        blocks.Section("rates", "Rates", [_rates(realism)]),
    ]


def _strengths(realism: Realism) -> list[blocks.Section]:
    """Return a section with all figures, a column for each strength."""
    levels = realism.levels.values()
    tests = [one.two_sample for one in levels]
    rows: list[blocks.Row] = [
        ["AUC", "", *(_auc(found.all_rows) for found in tests)],
        ["AUC, changed rows only", "", *(_auc(found.changed_rows) for found in tests)],
    ]
    for name, histogram in HISTOGRAMS.items():
        values = [one.divergences[name] for one in levels]
        shares = [values[0].floor, *(found.value for found in values)]
        figures = [blocks.figure(share, ".3f") for share in shares]
        rows.append([f"divergence: {histogram.title}", *figures])
    table = blocks.Table(
        "AUC of the classifier ± half of its 95% interval, and divergences of the histograms",
        ["", "real", *realism.levels],
        rows,
    )
    lead = (
        f"{_OF_AUC} {_OF_DIVERGENCE} In the column real it is that of two halves of the real set."
    )
    return [blocks.Section("strengths", "Strengths", [_rates(realism), table], lead)]


def _auc(auc: Auc | None) -> blocks.Cell:
    shown = f"{auc.value:.3f} ±{(auc.high - auc.low) / 2:.3f}" if auc else "-"
    return blocks.Cell(shown, kind="n")


def _about(realism: Realism) -> blocks.Section:
    """Return the section that names the two sets."""
    real, synthetic = realism.names
    how = "noise on the same clean texts" if realism.is_paired else "noise on different texts"
    facts = {
        "real": [real],
        "synthetic": [synthetic],
        "compared": [f"{counted(realism.real.rows, 'row')} of each, {how}"],
        "language": [realism.lang],
    }
    known = blocks.Facts({name: lines for name, lines in facts.items() if any(lines)})
    return blocks.Section("about", "What was compared", [known])


def _compared_names(realism: Realism) -> str:
    """Return the names of both sets without folders, '' if the synthetic set has none."""
    real, synthetic = realism.names
    return _FOLDERS.sub("", f"of {synthetic} against {real}") if synthetic else ""


def verdict_word(auc: Auc) -> str:
    """Return the word of verdicts.tsv for an AUC.

    If the upper end of its interval has another word, both are returned: 'close or visible', or
    'close to obvious' with a word between them.
    """
    limits = [(word, float(most)) for word, most in rows_of(_VERDICTS)]
    first, last = (
        next(place for place, (_, most) in enumerate(limits) if value <= most)
        for value in (auc.value, auc.high)
    )
    words = dict.fromkeys(limits[place][0] for place in (first, last))
    return (" to " if last - first > 1 else " or ").join(words)


def _verdict(realism: Realism) -> blocks.Section:
    """Return the section with the verdict in words and the kinds of edit to change.

    With --strength, the verdict is on the strength that the classifier tells apart least.
    """
    one, at = realism, ""
    judged = {
        name: (level, auc)
        for name, level in realism.levels.items()
        if (auc := level.two_sample.all_rows)
    }
    if judged:
        name = min(judged, key=lambda name: judged[name][1].value)
        one, at = judged[name][0], f"at {name} "
    elif realism.levels:
        one, at = next((level, f"at {name} ") for name, level in realism.levels.items())
    auc, synthetic = one.two_sample.all_rows, one.synthetic
    title, sentences = "Too few texts for a classifier to judge the noise", list[str]()
    if auc:
        title = (
            f"{verdict_word(auc).capitalize()}: {at}a classifier picks the synthetic text in "
            f"{auc.value:.0%} of pairs (50% is guessing)"
        )
        sentences.append(
            "A pair is a real and a synthetic text that the classifier was not trained on; "
            f"95% interval {auc.low:.0%} to {auc.high:.0%}."
        )
        if changed := one.two_sample.changed_rows:
            sentences.append(f"Among changed rows alone it picks {changed.value:.0%}.")
    if len(judged) > 1:
        others = (f"{auc.value:.0%} at {name}" for name, (_, auc) in judged.items())
        sentences.append(f"It picks {', '.join(others)}.")
    sentences.append(
        f"The synthetic noise {at}changes {percent(synthetic.changed_share)} of the rows with a "
        f"CER (character error rate) of {percent(synthetic.cer)}, the real noise "
        f"{percent(one.real.changed_share)} with {percent(one.real.cer)}."
    )
    rows = [_what_to_do(advice, realism) for advice in one.advice]
    if one.changes and one.changes.changes:
        sentences.append(_all_changes(one.changes))
    word = verdict_word(auc) if auc else ""
    is_stuck = one.changes and not one.changes.has_gain and word in ("close", "visible")
    if ("obvious" in word or is_stuck) and "channel" not in realism.transforms:
        sentences.append(
            "Noise learned from other pairs like the real ones comes nearer: noisegen learn PAIRS "
            "-o PROFILE, then -t channel:profile=PROFILE."
        )
    if not rows:
        sentences.append(f"No kind of edit differs by {DIFFERENCE_MIN:.0%} of all edits or more.")
    heads = ["kind of edit", "synthetic", "real", "what to do"]
    note = "kinds of edit, and their share of all edits"
    table = blocks.Table("What gives it away most", heads, rows, "stacked", note)
    return blocks.Section("verdict", title, [table, *map(blocks.Text, sentences)])


def _all_changes(found: AllChanges) -> str:
    """Return the sentence on all changes that were tried, with their recipe file if they help."""
    tried = ", ".join(map(_told, found.changes))
    told = f"Tried on up to {TRIAL_ROWS} rows: {tried}."
    if found.before and found.after:
        told += (
            f" With all of it a classifier picks the synthetic text in {found.after.value:.0%} of "
            f"pairs of these rows, without it in {found.before.value:.0%}."
        )
    factors = {one.transform: one.amount for one in found.changes if not one.is_added}
    if not found.has_gain or not found.extends or not factors:
        return told
    content = {"extends": found.extends, "scale": factors}
    shown = yaml.safe_dump(content, default_flow_style=True, sort_keys=False, width=1 << 10)
    added = " or ".join(one.transform for one in found.changes if one.is_added)
    return (
        f"{told} The factors{f', without {added},' * bool(added)} in a recipe file: {shown.strip()}"
    )


def _told(change: Change) -> str:
    """Return a change in words: 'apos x2', or 'add drop with p 0.3'."""
    if change.is_added:
        return f"add {change.transform} with p {change.amount:g}"
    return f"{change.transform} x{change.amount:g}"


def _what_to_do(advice: Advice, realism: Realism) -> blocks.Row:
    """Return a table row: a kind of edit, its shares, and what changes them.

    It is the change that was tried, if all changes together help. Where nothing was tried, it is
    the transforms that make such edits.
    """
    found, change = realism.changes, advice.change
    known = [name for name in advice.transforms if name in realism.transforms]
    names = " or ".join(known or advice.transforms)
    if not names:
        told = "no transform makes such edits"
    elif found and change and found.has_gain and change in found.changes:
        told = f"{_told(change)}: then {change.share:.0%}"
    elif found:
        told = "no change helps"
    elif advice.real < advice.synthetic:
        told = f"less {names}"
    else:
        told = f"{'add' if realism.transforms and not known else 'more'} {names}"
    shares = (blocks.figure(share, ".0%") for share in (advice.synthetic, advice.real))
    return [advice.kind, *shares, told]


def _example(versions: Mapping[str, str]) -> blocks.Example:
    """Return an example row: its clean version, and its noisy versions with the changes marked."""
    clean, *others = versions
    pieces = {name: blocks.differences(versions[clean], versions[name])[1] for name in others}
    return blocks.Example({clean: blocks.marked(versions[clean], []), **pieces})


def _tests(realism: Realism) -> blocks.Table:
    found = realism.two_sample
    tests: list[tuple[str, Auc | None, str]] = [
        ("real and synthetic noisy text", found.all_rows, "0.5 is the goal"),
        ("the same, changed rows only", found.changed_rows, "without rows that stayed clean"),
        ("real noisy and clean text", found.real_against_clean, "how visible the real noise is"),
    ]
    if found.clean_sides:
        tests.append(("the two clean sides", found.clean_sides, "topic and style, not noise"))
    rows: list[blocks.Row] = []
    for name, auc, reading in tests:
        shown = f"{auc.value:.3f} ({auc.low:.3f}–{auc.high:.3f})" if auc else "-"
        rows.append([name, blocks.Cell(shown, kind="n"), reading])
    heads = ["texts", "AUC (95% interval)", "how to read it"]
    return blocks.Table("AUC of the classifier", heads, rows, "stacked")


def _divergences(realism: Realism) -> blocks.Table:
    rows: list[blocks.Row] = []
    for name, found in realism.divergences.items():
        value, floor = (blocks.figure(share, ".3f") for share in (found.value, found.floor))
        interval = blocks.Cell(f"{found.low:.3f}–{found.high:.3f}", found.low)
        rows.append([HISTOGRAMS[name].title, value, interval, floor])
    heads = ["histogram", "divergence", "95% interval", "two halves of real"]
    return blocks.Table("Divergence of the histograms", heads, rows, "stacked")


def _sides(realism: Realism) -> dict[str, NoiseFigures]:
    """Return the figures of the real set and of all synthetic sets."""
    synthetic = {name: one.synthetic for name, one in _compared(realism).items()}
    return {"real": realism.real, **synthetic}


def _rates(realism: Realism) -> blocks.Table:
    sides = _sides(realism)
    rates: list[tuple[str, str, Callable[[NoiseFigures], float | None]]] = [
        ("rows", ",d", lambda side: side.rows),
        ("changed", ".1%", lambda side: side.changed_share),
        ("CER", ".2%", lambda side: side.cer),
        ("WER", ".2%", lambda side: side.wer),
        ("edits per row", ".2f", lambda side: side.edits / max(1, side.rows)),
        ("words unseen on the clean side", ".1%", lambda side: side.oov_ratio),
        ("type/token ratio", ".4f", lambda side: side.type_token_ratio),
        ("type/token ratio of the clean side", ".4f", lambda side: side.clean_type_token_ratio),
    ]
    rows: list[blocks.Row] = [
        [name, *(blocks.figure(rate(side), form) for side in sides.values())]
        for name, form, rate in rates
    ]
    return blocks.Table("Rates of both sets", ["rate", *sides], rows)


def _bars(realism: Realism, name: str) -> blocks.Bars:
    """Return a bar chart of one histogram, real and synthetic, in per cent of rows or edits.

    Kinds of edit that occur in no set are left out.
    """
    counts = {side: figures.histogram(name) for side, figures in _sides(realism).items()}
    bins = enumerate(zip(*counts.values(), strict=True))
    shown = [number for number, of_sets in bins if name != "kinds" or any(of_sets)]
    series = {
        side: [100 * side_counts[number] / max(1, sum(side_counts)) for number in shown]
        for side, side_counts in counts.items()
    }
    histogram = HISTOGRAMS[name]
    unit = "% of rows" if name == "edits_per_row" else "% of edits"
    labels = [histogram.bins[number] for number in shown]
    return blocks.Bars(histogram.title.capitalize(), unit, labels, series, axis=histogram.axis)


def ngram_table(
    contrasts: Sequence[NgramContrast], caption: str, sides: tuple[str, str] = _SIDES
) -> blocks.Table:
    """Return a table of the n-grams that tell real from synthetic texts; `sides` names the two."""
    rows: list[blocks.Row] = []
    names = dict(zip(_SIDES, sides, strict=True))
    for found in contrasts:
        ngram, example = found.ngram.translate(_VISIBLE), found.example
        both = found.real_share, found.synthetic_share
        shares = (blocks.figure(share, ".1%") for share in both)
        pieces = blocks.marked(example.text, [(example.start, example.stop)]) if example else []
        shown = [(ngram if is_ngram else text, is_ngram) for text, is_ngram in pieces]
        cell = blocks.Cell("-", kind=found.side, pieces=shown)
        rows.append([ngram, *shares, names[found.side], cell])
    return blocks.Table(caption, ["n-gram", *sides, "more in", "example"], rows, "code stacked")


def calibration(calibrated: "Calibrated") -> blocks.Table:
    """Return a table of the error rates of a calibrated recipe.

    It has the target, the rates before and after scaling, and the rate on other texts.
    """
    rates = calibrated.given, calibrated.reached, calibrated.check
    sides = calibrated.target, *(rate.value for rate in rates)
    row: blocks.Row = [calibrated.title, *(blocks.figure(side, ".4f") for side in sides)]
    heads = ["", "target", "before", "reached", "check"]
    texts = f"reached on {counted(calibrated.texts, 'text')}"
    note = f"{texts}, checked on {calibrated.texts_checked:,} others"
    return blocks.Table(f"recipe {calibrated.recipe.name}", heads, [row], note=note)


# Report on a profile.


def profile_blocks(profile: Profile, top: int = TOP) -> list[blocks.Block]:
    """Return a summary of a noise profile, and tables of its `top` most frequent edits by type."""
    totals, pairs = profile.totals, max(1, profile.totals["pairs"])
    different = len({key.clean for key in profile.words})
    summary = {
        "language": profile.lang,
        "digest": profile.digest,
        **({"source": f"{profile.source} ({profile.license})"} if profile.source else {}),
        "pairs": f"{totals['pairs']:,}, {totals['changed'] / pairs:.1%} of them changed",
        "words": f"{totals['words']:,}; {different:,} different ones are kept",
        "edits": f"{totals['edits']:,}, {totals['edits'] / pairs:.2f} per pair",
    }
    edits = _row_edits(profile)
    edit_lines = []
    for number in range(max(edits, default=-1) + 1):
        name = f"{number} or more" if number == EDITS_SHOWN else str(number)
        edit_lines.append((name, edits[number], edits[number] / edits.total()))
    tables = [
        _with_bars(_CAPTIONS[name], ["clean", "noisy", "count"], lines)
        for name, lines in _lines(profile, top).items()
    ]
    return [
        blocks.Table("the profile", ["", ""], list(summary.items())),
        _with_bars("edits per row", ["edits", "rows"], edit_lines),
        *tables,
    ]


def _with_bars(
    caption: str, heads: Sequence[str], lines: Sequence[tuple[str, int, float] | Line]
) -> blocks.Table:
    """Return a table of lines (texts, count, share), with a bar for each count."""
    most = max((line[-2] for line in lines), default=1)
    rows: list[blocks.Row] = []
    for *texts, count, share in lines:
        bar = blocks.Cell("", bar=count / most)
        rows.append([*texts, blocks.figure(count, ",d"), blocks.figure(share, ".1%"), bar])
    return blocks.Table(caption, [*heads, "share", ""], rows)


def profile_to_dict(profile: Profile, top: int = TOP) -> dict[str, object]:
    """Return the contents of `profile_blocks` as plain data."""
    return {
        "lang": profile.lang,
        "digest": profile.digest,
        "source": profile.source,
        "license": profile.license,
        "totals": dict(profile.totals),
        "edits_per_row": dict(sorted(_row_edits(profile).items())),
        **_lines(profile, top),
    }


def _row_edits(profile: Profile) -> Counter[int]:
    """Return {edits per row: number of rows}; a row with more edits has the key `EDITS_SHOWN`."""
    edits: Counter[int] = Counter()
    for key, count in profile.rows.items():
        edits[min(EDITS_SHOWN, key.word_edits + key.gap_edits)] += count
    return edits


def _lines(profile: Profile, top: int) -> dict[str, list[Line]]:
    """Return {table: lines of its `top` most frequent edits} for the tables in `_CAPTIONS`."""
    cases, edits = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    for entry in _entries(profile):
        if entry.noisy is not None:
            edits[entry.table, entry.clean, entry.noisy] += entry.times
        # Counts of unchanged letters already include changed words, which must not count twice
        if entry.noisy is None or entry.table != "letters":
            cases[entry.table, entry.clean] += entry.times
    lines: dict[str, list[Line]] = {name: [] for name in _CAPTIONS}
    for (table, clean, noisy), count in sorted(edits.items(), key=lambda item: (-item[1], item[0])):
        share = count / max(count, cases[table, clean])
        lines[table].append(Line(clean, noisy, count, share))
    lines["habits"] += _habit_lines(profile)
    return {name: table_lines[:top] for name, table_lines in lines.items()}


def _habit_lines(profile: Profile) -> Iterator[Line]:
    """Yield a line per habit (way to write a whole row, such as all in lower case) that occurs."""
    for habit, name in _HABITS.items():
        shown = profile.habits[HabitKey(habit, True)]
        other = profile.habits[HabitKey(habit, False)]
        if shown:
            yield Line("rows", name, shown, shown / (shown + other))


class _Entry(NamedTuple):
    """A count in a noise profile, with the texts to show for it in the table `table`.

    `noisy` is None if `clean` stayed unchanged or its replacement is unknown.
    """

    table: str
    clean: str
    noisy: str | None
    times: int


def _entries(profile: Profile) -> Iterator[_Entry]:
    """Yield the counts of words, gaps between words, and letters in a noise profile."""
    for word, count in profile.words.items():
        noisy = word.noisy if word.noisy != word.clean else f"({_WRITTEN[word.written]})"
        is_edit = word.noisy is not None and (word.noisy, word.written) != (word.clean, SAME)
        yield _Entry("words", word.clean, noisy or "(dropped)" if is_edit else None, count)
    for gap, count in profile.gaps.items():
        noisy = None if gap.noisy in (None, gap.gap) else f"‹{gap.noisy}›"
        yield _Entry("gaps", f"{'(start) ' * gap.initial}‹{gap.gap}›", noisy, count)
    for (before, clean, after, letters), count in profile.letters.items():
        left, right = before.replace(START, "|"), after.replace(END, "|")
        noisy = None if letters == clean else f"{left}[{letters}]{right}"
        yield _Entry("letters", f"{left}[{clean}]{right}", noisy, count)
