"""A comparison, a calibrated recipe and a profile as blocks of a report, for page and terminal."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from noisegen.noising.profile import END, SAME, START, HabitKey, Profile
from noisegen.realism.compare import HISTOGRAMS, NoiseFigures, Realism
from noisegen.realism.two_sample import Auc
from noisegen.report import blocks, pages
from noisegen.report.terminal import percent
from noisegen.runs.manifest import counted

if TYPE_CHECKING:
    from noisegen.realism.calibrate import Calibrated

TOP = 15  # lines of a table
EDITS_SHOWN = 12
_SIDES = ("real", "synthetic")
KINDS_NAMED, GAP_MIN = 3, 0.02  # kinds of edit in a sentence, and how far shares must be apart
_VISIBLE = str.maketrans({" ": "␣", "\n": "¶", "\t": "→"})
_FOLDERS = re.compile(r"[^\s,(]*/(?=\S)")  # of the paths in a title
_WRITTEN = ("", "in lower case", "with a capital", "in upper case")
_HABITS = {"small": "all in lower case", "upper": "all in upper case", "bare": "no diacritics"}
_CAPTIONS = {  # of the tables of a profile
    "words": "words, with their share of all cases of the word",
    "gaps": "between words",
    "letters": "letters between their neighbours, in different words",
    "habits": "habits of whole rows",
}
Line = tuple[str, str, int, float]  # clean, noisy, how often, share of all cases


def comparison_page(realism: Realism) -> str:
    """Return a comparison as one HTML page that needs nothing beside it."""
    about, *sections = comparison_sections(realism)
    head = [*about.blocks, *(blocks.Text(line, "warning") for line in realism.warnings)]
    return pages.page(about.title, sections, kicker="noisegen: realism", head=head)


def comparison_sections(realism: Realism) -> list[blocks.Section]:
    """Return the figures of a comparison; the first section says what was compared."""
    examples = [_example(versions) for versions in realism.examples]
    return [
        _about(realism),
        blocks.Section("examples", "Examples", [blocks.ExampleList(examples)] if examples else [],
                "Whole rows with their real noise and with the synthetic noise."),
        blocks.Section("tests", "Can a classifier tell them apart?", [_tests(realism)],
                "AUC: how often a classifier on character n-grams, trained on other texts, picks "
                "the synthetic one of two texts. 0.5 is guessing: the best that noise can reach."),
        blocks.Section("divergences", "Divergences", [_divergences(realism)],
                "Jensen-Shannon divergence, base 2: 0 is equal, 1 has nothing in common. The last "
                "column is the divergence of two halves of the real set: the best to hope for."),
        blocks.Section("rates", "Rates", [_rates(realism)]),
        blocks.Section("histograms", "Histograms", [_bars(realism, name) for name in HISTOGRAMS],
                "Places are those in the clean text."),
        blocks.Section("ngrams", "What gives the noise away", [_ngrams(realism)],
                "Character n-grams that the classifier relies on, and the share of rows that "
                "contain them. ␣ is a space, ¶ the beginning or the end of a text."),
    ]  # fmt: skip


def _about(realism: Realism) -> blocks.Section:
    """Return what was compared, and what came out in words."""
    real, synthetic = realism.names
    how = "noise on the same clean texts" if realism.is_paired else "noise on different texts"
    facts = {
        "real": [real],
        "synthetic": [synthetic],
        "compared": [f"{counted(realism.real.rows, 'row')} of each, {how}"],
        "language": [realism.lang],
    }
    known = blocks.Facts({name: lines for name, lines in facts.items() if any(lines)})
    title = "How real the noise is"
    if synthetic:
        title = _FOLDERS.sub("", f"{synthetic} against {real}").replace("recipe ", "Recipe ", 1)
    return blocks.Section("about", title, [*map(blocks.Text, _sentences(realism)), known])


def _sentences(realism: Realism) -> Iterator[str]:
    """Yield the main results in words."""
    real, synthetic, auc = realism.real, realism.synthetic, realism.two_sample.all_rows
    if auc:
        interval = f"95% interval {auc.low:.0%} to {auc.high:.0%}"
        yield (
            f"A classifier picks the synthetic one of two texts in {auc.value:.0%} of all cases "
            f"({interval}; 50% is guessing)."
        )
    yield (
        f"The synthetic noise changes {percent(synthetic.changed_share)} of the rows with a CER of "
        f"{percent(synthetic.cer)}, the real noise {percent(real.changed_share)} with "
        f"{percent(real.cer)}."
    )
    gaps = []  # of the shares of a kind, and what is said of it
    for kind, count in real.kinds.items():
        ours, theirs = count / max(1, real.edits), synthetic.kinds[kind] / max(1, synthetic.edits)
        gaps.append((ours - theirs, f"{kind} ({theirs:.0%} of edits, real {ours:.0%})"))
    for words, sign in (("Too rare", 1), ("Too frequent", -1)):
        most = sorted(gaps, key=lambda gap: -sign * gap[0])[:KINDS_NAMED]
        if listed := [said for gap, said in most if sign * gap > GAP_MIN]:
            yield f"{words}: {', '.join(listed)}."


def _example(versions: Mapping[str, str]) -> blocks.Example:
    clean, *others = versions
    pieces = {name: blocks.differences(versions[clean], versions[name])[1] for name in others}
    return blocks.Example({clean: blocks.marked(versions[clean], []), **pieces})


def _tests(realism: Realism) -> blocks.Table:
    found = realism.two_sample
    tests: list[tuple[str, Auc | None, str]] = [
        ("real and synthetic noisy text", found.all_rows, "0.5 is the goal"),
        ("the same, changed rows only", found.changed_rows, "without rows that stayed clean"),
        ("real noisy and real clean text", found.real_against_clean,
         "how visible the real noise is"),
    ]  # fmt: skip
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


def _rates(realism: Realism) -> blocks.Table:
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
        [name, *(blocks.figure(rate(side), form) for side in (realism.real, realism.synthetic))]
        for name, form, rate in rates
    ]
    return blocks.Table("Rates of both sets", ["rate", *_SIDES], rows)


def _bars(realism: Realism, name: str) -> blocks.Bars:
    """Return a histogram of both sets in per cent, without kinds that neither has."""
    counts = [side.histogram(name) for side in (realism.real, realism.synthetic)]
    shown = [
        number for number, pair in enumerate(zip(*counts, strict=True))
        if name != "kinds" or any(pair)
    ]  # fmt: skip
    series = {
        side: [100 * side_counts[number] / max(1, sum(side_counts)) for number in shown]
        for side, side_counts in zip(_SIDES, counts, strict=True)
    }
    histogram = HISTOGRAMS[name]
    unit = "% of rows" if name == "edits_per_row" else "% of edits"
    labels = [histogram.bins[number] for number in shown]
    return blocks.Bars(histogram.title.capitalize(), unit, labels, series, axis=histogram.axis)


def _ngrams(realism: Realism) -> blocks.Table:
    rows: list[blocks.Row] = []
    for found in realism.two_sample.contrasts:
        ngram, example = found.ngram.translate(_VISIBLE), found.example
        both = found.real_share, found.synthetic_share
        shares = (blocks.figure(share, ".1%") for share in both)
        pieces = blocks.marked(example.text, [(example.start, example.stop)]) if example else []
        shown = [(ngram if is_ngram else text, is_ngram) for text, is_ngram in pieces]
        rows.append([ngram, *shares, found.side, blocks.Cell("-", kind=found.side, pieces=shown)])
    return blocks.Table("n-grams", ["n-gram", *_SIDES, "more in", "example"], rows, "code stacked")


def calibration(calibrated: "Calibrated") -> blocks.Table:
    """Return the rates of a calibrated recipe: aimed at, as it was given, as it is now."""
    rates = calibrated.given, calibrated.reached, calibrated.check
    sides = calibrated.target, *(rate.value for rate in rates)
    row: blocks.Row = [calibrated.title, *(blocks.figure(side, ".4f") for side in sides)]
    heads = ["", "target", "before", "reached", "check"]
    texts = f"reached on {counted(calibrated.texts, 'text')}"
    note = f"{texts}, checked on {calibrated.texts_checked:,} others"
    return blocks.Table(f"recipe {calibrated.recipe.name}", heads, [row], note=note)


# A profile.


def profile_blocks(profile: Profile, top: int = TOP) -> list[blocks.Block]:
    """Return what a profile holds, the most frequent first."""
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
    edit_lines = [
        (f"{number}{' or more' * (number == EDITS_SHOWN)}", edits[number],
         edits[number] / edits.total())
        for number in range(max(edits, default=-1) + 1)
    ]  # fmt: skip
    return [
        blocks.Table("the profile", ["", ""], list(summary.items())),
        _with_bars("edits per row", ["edits", "rows"], edit_lines),
        *(
            _with_bars(_CAPTIONS[name], ["clean", "noisy", "count"], lines)
            for name, lines in _lines(profile, top).items()
        ),
    ]


def _with_bars(
    caption: str, heads: Sequence[str], lines: Sequence[tuple[str, int, float] | Line]
) -> blocks.Table:
    """Return a table of texts, each with its count, share and a bar."""
    most = max((line[-2] for line in lines), default=1)
    rows: list[blocks.Row] = []
    for *texts, count, share in lines:
        bar = blocks.Cell("", bar=count / most)
        rows.append([*texts, blocks.figure(count, ",d"), blocks.figure(share, ".1%"), bar])
    return blocks.Table(caption, [*heads, "share", ""], rows)


def profile_to_dict(profile: Profile, top: int = TOP) -> dict[str, object]:
    """Return the same as plain data."""
    return {
        "lang": profile.lang, "digest": profile.digest, "source": profile.source,
        "license": profile.license, "totals": dict(profile.totals),
        "edits_per_row": dict(sorted(_row_edits(profile).items())),
        **_lines(profile, top),
    }  # fmt: skip


def _row_edits(profile: Profile) -> Counter[int]:
    edits: Counter[int] = Counter()
    for key, count in profile.rows.items():
        edits[min(EDITS_SHOWN, key.word_edits + key.gap_edits)] += count
    return edits


def _lines(profile: Profile, top: int) -> dict[str, list[Line]]:
    """Return the edits of each table, the most frequent first."""
    seen, edits = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    for table, clean, noisy, count in _entries(profile):
        if noisy is not None:
            edits[table, clean, noisy] += count
        if noisy is None or table != "letters":  # of letters the cases are counted apart
            seen[table, clean] += count
    lines: dict[str, list[Line]] = {name: [] for name in _CAPTIONS}
    for (table, clean, noisy), count in sorted(edits.items(), key=lambda item: (-item[1], item[0])):
        lines[table].append((clean, noisy, count, count / max(count, seen[table, clean])))
    for habit, name in _HABITS.items():
        shown, other = (profile.habits[HabitKey(habit, flag)] for flag in (True, False))
        if shown:
            lines["habits"].append(("rows", name, shown, shown / (shown + other)))
    return {name: table_lines[:top] for name, table_lines in lines.items()}


def _entries(profile: Profile) -> Iterator[tuple[str, str, str | None, int]]:
    """Yield table, clean text, its replacement if that is known to differ, and count."""
    for word, count in profile.words.items():
        noisy = word.noisy if word.noisy != word.clean else f"({_WRITTEN[word.written]})"
        is_edit = word.noisy is not None and (word.noisy, word.written) != (word.clean, SAME)
        yield "words", word.clean, noisy or "(dropped)" if is_edit else None, count
    for gap, count in profile.gaps.items():
        noisy = None if gap.noisy in (None, gap.gap) else f"‹{gap.noisy}›"
        yield "gaps", f"{'(start) ' * gap.initial}‹{gap.gap}›", noisy, count
    for (before, clean, after, letters), count in profile.letters.items():
        left, right = before.replace(START, "|"), after.replace(END, "|")
        noisy = None if letters == clean else f"{left}[{letters}]{right}"
        yield "letters", f"{left}[{clean}]{right}", noisy, count
