"""A comparison, a calibrated recipe and a profile as blocks of a report, for page and terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from noisegen.noise.profile import END, SAME, START, HabitKey, Profile
from noisegen.realism.compare import HISTOGRAMS, NoiseFigures, Realism
from noisegen.realism.two_sample import Auc
from noisegen.report import pages
from noisegen.report.blocks import Bars, Block, Cell, Row, Section, Table, Text

if TYPE_CHECKING:
    from noisegen.realism.calibrate import Calibrated

TOP = 15  # lines of a table
EDITS_SHOWN = 12
_SIDES = ("real", "synthetic")
_WRITTEN = ("", "in small letters", "with a capital", "in capitals")
_HABITS = {"small": "all in small letters", "upper": "all in capitals", "bare": "no marks"}
_CAPTIONS = {  # of the tables of a profile
    "words": "words, with their share of all cases of the word",
    "gaps": "between words",
    "letters": "letters between their neighbours, in different words",
    "habits": "habits of whole rows",
}
Line = tuple[str, str, int, float]  # what, what stands for it, how often, share of all cases


def comparison_page(realism: Realism) -> str:
    """Return a comparison as one HTML page that needs nothing beside it."""
    about, *sections = comparison_sections(realism)
    head = [*about.blocks, *(Text(line, "warning") for line in realism.warnings)]
    return pages.page("How real the noise is", sections, kicker="noisegen: realism", head=head)


def comparison_sections(realism: Realism) -> list[Section]:
    """Return the figures of a comparison; the first section says what was compared."""
    how = "on the same clean texts" if realism.is_paired else "on different texts"
    about = f"Real noise against synthetic noise {how}: {realism.real.rows:,} rows of each."
    return [
        Section("about", "How real the noise is", [Text(about)]),
        Section("tests", "Told apart by a classifier", [_tests(realism)],
                "AUC: the chance that a classifier on character n-grams, trained on other texts, "
                "takes a synthetic text for the more synthetic of two. 0.5 is perfect."),
        Section("divergences", "Divergences", [_divergences(realism)],
                "Jensen-Shannon, base 2: 0 the same, 1 nothing in common. Two halves of the real "
                "set differ by what the last column says."),
        Section("rates", "Rates", [_rates(realism)]),
        Section("histograms", "Histograms", [_bars(realism, name) for name in HISTOGRAMS],
                "Shares of the edits, or of the rows, in per cent; places by the clean text "
                "before."),
        Section("ngrams", "What gives the noise away", [_ngrams(realism)],
                "n-grams the classifier goes by, and the share of rows that have them; ␣ is a "
                "space, ¶ the beginning or the end of a text."),
    ]  # fmt: skip


def _figure(value: float | None, form: str) -> Cell:
    return Cell("-" if value is None else f"{value:{form}}", value)


def _tests(realism: Realism) -> Table:
    found = realism.two_sample
    tests: list[tuple[str, Auc | None, str]] = [
        ("real and synthetic noisy text", found.all_rows, "0.5: nobody could tell"),
        ("the same, changed rows only", found.changed_rows, "without rows that stayed clean"),
        ("real noisy and real clean text", found.real_against_clean, "how much real noise shows"),
    ]
    if found.clean_sides:
        tests.append(("the two clean sides", found.clean_sides, "topic and style, not noise"))
    rows: list[Row] = []
    for name, auc, reading in tests:
        shown = f"{auc.value:.3f} ({auc.low:.3f}–{auc.high:.3f})" if auc else "-"
        rows.append([name, Cell(shown, kind="n"), reading])
    return Table("AUC of the classifier", ["texts", "AUC (95 % interval)", "how to read it"], rows)


def _divergences(realism: Realism) -> Table:
    rows: list[Row] = [
        [HISTOGRAMS[name].title, _figure(value.value, ".3f"),
         Cell(f"{value.low:.3f}–{value.high:.3f}", value.low), _figure(value.floor, ".3f")]
        for name, value in realism.divergences.items()
    ]  # fmt: skip
    heads = ["histogram", "divergence", "95 % interval", "two halves of real"]
    return Table("Divergence of the histograms", heads, rows)


def _rates(realism: Realism) -> Table:
    def rates(figures: NoiseFigures) -> dict[str, Cell]:
        return {
            "rows": _figure(figures.rows, ",d"),
            "changed": _figure(figures.changed_share, ".1%"),
            "CER": _figure(figures.cer, ".2%"),
            "WER": _figure(figures.wer, ".2%"),
            "edits per row": _figure(figures.edits / max(1, figures.rows), ".2f"),
            "words unseen on the clean side": _figure(figures.oov_ratio, ".1%"),
            "type/token ratio": _figure(figures.type_token_ratio, ".4f"),
            "type/token ratio of the clean side": _figure(figures.clean_type_token_ratio, ".4f"),
        }

    real, synthetic = rates(realism.real), rates(realism.synthetic)
    rows: list[Row] = [[name, cell, synthetic[name]] for name, cell in real.items()]
    return Table("Rates of both sets", ["rate", *_SIDES], rows)


def _bars(realism: Realism, name: str) -> Bars:
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
    return Bars(histogram.title.capitalize(), unit, labels, series)


def _ngrams(realism: Realism) -> Table:
    visible = str.maketrans({" ": "␣", "\n": "¶", "\t": "→"})
    rows: list[Row] = [
        [found.ngram.translate(visible), _figure(found.real_share, ".1%"),
         _figure(found.synthetic_share, ".1%"), found.side,
         " · ".join(example.translate(visible) for example in found.examples)]
        for found in realism.two_sample.telling
    ]  # fmt: skip
    return Table("n-grams", ["n-gram", *_SIDES, "more in", "examples"], rows, "code")


def calibration(calibrated: "Calibrated") -> Table:
    """Return the rates of a calibrated recipe: aimed at, as it was given, as it is now."""
    sides = calibrated.target, calibrated.given.value, calibrated.reached.value
    row: Row = [calibrated.title, *(_figure(side, ".4f") for side in sides)]
    return Table(f"recipe {calibrated.recipe.name}", ["", "target", "before", "reached"], [row])


# A profile.


def profile_blocks(profile: Profile, top: int = TOP) -> list[Block]:
    """Return what a profile holds, the most frequent first."""
    totals, pairs = profile.totals, max(1, profile.totals["pairs"])
    different = len({key.clean for key in profile.words})
    summary = {
        "language": profile.lang,
        "digest": profile.digest,
        "pairs": f"{totals['pairs']:,}, {totals['changed'] / pairs:.1%} of them changed",
        "words": f"{totals['words']:,}; {different:,} different ones are kept",
        "edits": f"{totals['edits']:,}, {totals['edits'] / pairs:.2f} a pair",
    }
    edits = _row_edits(profile)
    edit_lines = [
        (f"{number}{' or more' * (number == EDITS_SHOWN)}", edits[number],
         edits[number] / edits.total())
        for number in range(max(edits, default=-1) + 1)
    ]  # fmt: skip
    return [
        Table("the profile", ["", ""], list(summary.items())),
        _with_bars("edits per row", ["edits", "rows"], edit_lines),
        *(
            _with_bars(_CAPTIONS[name], ["clean", "noisy", "count"], lines)
            for name, lines in _lines(profile, top).items()
        ),
    ]


def _with_bars(
    caption: str, heads: Sequence[str], lines: Sequence[tuple[str, int, float] | Line]
) -> Table:
    """Return a table of texts, each with its count, share and a bar."""
    most = max((line[-2] for line in lines), default=1)
    rows: list[Row] = [
        [*texts, _figure(count, ",d"), _figure(share, ".1%"), Cell("", bar=count / most)]
        for *texts, count, share in lines
    ]
    return Table(caption, [*heads, "share", ""], rows)


def profile_to_dict(profile: Profile, top: int = TOP) -> dict[str, object]:
    """Return the same as plain data."""
    return {
        "lang": profile.lang, "digest": profile.digest, "totals": dict(profile.totals),
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
    """Yield table, what stands in the clean text, what for it if that is known to differ, count."""
    for word, count in profile.words.items():
        noisy = word.noisy if word.noisy != word.clean else f"({_WRITTEN[word.written]})"
        is_edit = word.noisy is not None and (word.noisy, word.written) != (word.clean, SAME)
        yield "words", word.clean, noisy or "(gone)" if is_edit else None, count
    for gap, count in profile.gaps.items():
        noisy = None if gap.noisy in (None, gap.gap) else f"‹{gap.noisy}›"
        yield "gaps", f"{'(start) ' * gap.initial}‹{gap.gap}›", noisy, count
    for (before, clean, after, letters), count in profile.letters.items():
        left, right = before.replace(START, "|"), after.replace(END, "|")
        noisy = None if letters == clean else f"{left}[{letters}]{right}"
        yield "letters", f"{left}[{clean}]{right}", noisy, count
