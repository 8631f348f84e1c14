"""Tables of a comparison, a calibrated recipe and a profile for a terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.noise.profile import END, SAME, START, HabitKey, Profile
from noisegen.realism.compare import HISTOGRAMS, NoiseFigures, Realism
from noisegen.realism.two_sample import Auc, TwoSample
from noisegen.report.terminal import bar, percent, titled

if TYPE_CHECKING:
    from noisegen.realism.calibrate import Calibrated

TITLES = {
    "kinds": "kinds of edit",
    "edits_per_row": "edits per row",
    "sentence_positions": "place in the sentence",
    "word_positions": "place in the word",
}
_BAR = 16  # columns
TOP = 15  # lines of a table
EDITS_SHOWN = 12
K = TypeVar("K", bound=tuple[object, ...])
_WRITTEN = ("", "in small letters", "with a capital", "in capitals")
_HABITS = {"small": "all in small letters", "upper": "all in capitals", "bare": "no marks"}
Line = tuple[str, str, int, float]  # what, what stands for it, how often, share of all cases


def render(realism: Realism, console: Console) -> None:
    """Print the figures as tables with bars."""
    for table in _tables(realism):
        console.print(table)
        console.print()


def rates(figures: NoiseFigures) -> dict[str, str]:
    """Return the rates of a set, written out, by what they are."""
    mean = figures.edits / figures.rows if figures.rows else 0
    return {
        "rows": f"{figures.rows:,}",
        "changed": percent(figures.changed_share),
        "CER": percent(figures.cer, 2),
        "WER": percent(figures.wer, 2),
        "edits per row": f"{mean:.2f}",
        "words unseen on the clean side": percent(figures.oov_ratio),
        "type/token ratio": _ratio(figures.type_token_ratio),
        "type/token ratio of the clean side": _ratio(figures.clean_type_token_ratio),
    }


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def tests(two_sample: TwoSample) -> Iterator[tuple[str, Auc | None, str]]:
    """Yield the AUCs: of what, the figure, how to read it."""
    yield "real and synthetic noisy text", two_sample.all_rows, "0.5: nobody could tell"
    yield ("the same, changed rows only", two_sample.changed_rows, "without rows that stayed clean")
    yield (
        "real noisy and real clean text",
        two_sample.real_against_clean,
        "how much real noise shows",
    )
    if two_sample.clean_sides:
        yield "the two clean sides", two_sample.clean_sides, "topic and style, not noise"


def auc_text(auc: Auc | None) -> str:
    """Return an AUC with its interval; '-' where there were too few texts."""
    return f"{auc.value:.3f} ({auc.low:.3f}\u2013{auc.high:.3f})" if auc else "-"


def shares(counts: Sequence[int]) -> list[float]:
    """Return counts as shares of their sum."""
    total = sum(counts)
    return [value / total if total else 0.0 for value in counts]


def visible(ngram: str) -> str:
    """Return an n-gram with its spaces and the edges of the text made visible."""
    return ngram.replace(" ", "␣").replace("\n", "¶").replace("\t", "→")


def labels(figures: NoiseFigures, name: str) -> list[str]:
    """Return the name of each bin of a histogram."""
    counts = getattr(figures, name)
    if isinstance(counts, dict):
        return list(counts)
    return [*map(str, range(len(counts) - 1)), f"{len(counts) - 1} or more"]


def _tables(realism: Realism) -> Iterator[Table]:
    how = "noise on the same clean texts" if realism.is_paired else "noise on different texts"
    table = _table(f"the sets: {how}", "", "real", "synthetic")
    synthetic = rates(realism.synthetic)
    for name, value in rates(realism.real).items():
        table.add_row(name, value, synthetic[name])
    yield table
    table = _table("told apart by a classifier: AUC", "", "AUC (95 % interval)")
    table.add_column("", style="dim")
    for name, auc, hint in tests(realism.two_sample):
        table.add_row(name, auc_text(auc), hint)
    yield table
    title = "Jensen-Shannon divergence: 0 the same, 1 nothing in common"
    table = _table(title, "", "value", "95 % interval", "real halves")
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    for name in HISTOGRAMS:
        divergence = realism.divergences[name]
        interval = f"{divergence.low:.3f}\u2013{divergence.high:.3f}"
        bars = bar(divergence.value, 1, _BAR)
        table.add_row(
            TITLES[name], f"{divergence.value:.3f}", interval, f"{divergence.floor:.3f}", bars
        )
    yield table
    yield from (_side_by_side(realism, name) for name in _HISTOGRAMS_SHOWN)
    title = "what gives the noise away, in so many rows (␣ space, ¶ end of the text)"
    table = _table(title, "", "real", "synthetic")
    table.add_column("more in")
    table.add_column("for instance", overflow="fold")
    for ngram in realism.two_sample.telling:
        figures = percent(ngram.real_share), percent(ngram.synthetic_share)
        examples = Text("   ".join(map(visible, ngram.examples)))
        table.add_row(Text(visible(ngram.ngram)), *figures, ngram.side, examples)
    yield table


_HISTOGRAMS_SHOWN = ("kinds", "edits_per_row", "word_positions")


def _side_by_side(realism: Realism, name: str) -> Table:
    """Return a histogram of both sets in per cent with bars, without kinds that neither has."""
    sides = [figures.histogram(name) for figures in (realism.real, realism.synthetic)]
    real, synthetic = map(shares, sides)
    most = max([*real, *synthetic])
    table = _table(TITLES[name], "", "real")
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    table.add_column("synthetic", justify="right", no_wrap=True)
    table.add_column("", style="yellow", no_wrap=True, min_width=_BAR)
    for label, a, b in zip(labels(realism.real, name), real, synthetic, strict=True):
        if name != "kinds" or a or b:
            bars = bar(a, most, _BAR), bar(b, most, _BAR)
            table.add_row(label, percent(a), bars[0], percent(b), bars[1])
    return table


def calibrated_table(calibrated: "Calibrated") -> Table:
    """Return the rates of a calibrated recipe: aimed at, as it was given, as it is now."""
    table = _table(f"recipe {calibrated.recipe.name}", "", "target", "before", "reached")
    sides = calibrated.target, calibrated.given.value, calibrated.reached.value
    table.add_row(calibrated.title, *(f"{side:.4f}" for side in sides))
    return table


def _table(title: str, *columns: str) -> Table:
    """Return a table: the first column to the left, the others to the right."""
    table = titled(title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


# A profile.


def render_profile(profile: Profile, console: Console, top: int = TOP) -> None:
    """Print what a profile holds, the most frequent first."""
    lines = {
        "words, with their share of all cases of the word": _word_lines(profile),
        "between words": _gap_lines(profile),
        "letters between their neighbours, in different words": _letter_lines(profile),
        "habits of whole rows": _habit_lines(profile),
    }
    tables = [_lines_table(title, islice(shown, top)) for title, shown in lines.items()]
    for table in (_summary(profile), _edits_per_row(profile), *tables):
        if table.row_count:
            console.print(table)
            console.print()


def profile_to_dict(profile: Profile, top: int = TOP) -> dict[str, object]:
    """Return the same as plain data."""
    return {
        "lang": profile.lang, "digest": profile.digest, "totals": dict(profile.totals),
        "edits_per_row": dict(sorted(_row_edits(profile).items())),
        "words": list(islice(_word_lines(profile), top)),
        "gaps": list(islice(_gap_lines(profile), top)),
        "letters": list(islice(_letter_lines(profile), top)),
        "habits": list(_habit_lines(profile)),
    }  # fmt: skip


def _word_lines(profile: Profile) -> Iterator[Line]:
    seen: Counter[str] = Counter()
    edits: Counter[tuple[str, str]] = Counter()
    for key, count in profile.words.items():
        seen[key.clean] += count
        if key.noisy is not None and (key.noisy, key.written) != (key.clean, SAME):
            noisy = key.noisy if key.noisy != key.clean else f"({_WRITTEN[key.written]})"
            edits[key.clean, noisy or "(gone)"] += count
    for (clean, noisy), count in _ranked(edits):
        yield clean, noisy, count, count / seen[clean]


def _gap_lines(profile: Profile) -> Iterator[Line]:
    seen: Counter[tuple[bool, str]] = Counter()
    edits: Counter[tuple[bool, str, str]] = Counter()
    for key, count in profile.gaps.items():
        seen[key.initial, key.gap] += count
        if key.noisy is not None and key.noisy != key.gap:
            edits[key.initial, key.gap, key.noisy] += count
    for (initial, gap, noisy), count in _ranked(edits):
        start = "(start) " if initial else ""
        yield f"{start}‹{gap}›", f"‹{noisy}›", count, count / seen[initial, gap]


def _letter_lines(profile: Profile) -> Iterator[Line]:
    seen: Counter[tuple[str, str, str]] = Counter()
    edits: Counter[tuple[str, str, str, str]] = Counter()
    for key, count in profile.letters.items():
        if key.noisy == key.clean:
            seen[key[:3]] += count
        else:
            edits[key] += count
    for (before, clean, after, noisy), count in _ranked(edits):
        left, right = before.replace(START, "|"), after.replace(END, "|")
        share = count / max(count, seen[before, clean, after])
        yield f"{left}[{clean}]{right}", f"{left}[{noisy}]{right}", count, share


def _habit_lines(profile: Profile) -> Iterator[Line]:
    for habit, name in _HABITS.items():
        shown, other = (profile.habits[HabitKey(habit, flag)] for flag in (True, False))
        if shown:
            yield "rows", name, shown, shown / (shown + other)


def _ranked(counts: Mapping[K, int]) -> list[tuple[K, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _row_edits(profile: Profile) -> Counter[int]:
    edits: Counter[int] = Counter()
    for key, count in profile.rows.items():
        edits[min(EDITS_SHOWN, key.word_edits + key.gap_edits)] += count
    return edits


def _table_with_bars(title: str, texts: tuple[str, ...]) -> Table:
    table = titled(title)
    for column in texts:
        table.add_column(column)
    for column in ("count" if len(texts) > 1 else "rows", "share"):
        table.add_column(column, justify="right")
    table.add_column("", style="cyan", no_wrap=True, min_width=24)
    return table


def _lines_table(title: str, lines: Iterator[Line]) -> Table:
    table, shown = _table_with_bars(title, ("clean", "noisy")), list(lines)
    most = max((count for *_, count, _ in shown), default=0)
    for clean, noisy, count, share in shown:
        table.add_row(Text(clean), Text(noisy), f"{count:,}", f"{share:.1%}", bar(count, most))
    return table


def _edits_per_row(profile: Profile) -> Table:
    table, edits = _table_with_bars("edits per row", ("edits",)), _row_edits(profile)
    most, rows = max(edits.values(), default=0), max(1, edits.total())
    for number in range(max(edits, default=-1) + 1):
        name = f"{number}{' or more' * (number == EDITS_SHOWN)}"
        count = edits[number]
        table.add_row(name, f"{count:,}", f"{count / rows:.1%}", bar(count, most))
    return table


def _summary(profile: Profile) -> Table:
    table = titled("the profile", None)
    table.show_header = False
    totals, kept = profile.totals, {key.clean for key in profile.words}
    pairs = max(1, totals["pairs"])
    lines = {
        "language": profile.lang,
        "digest": profile.digest,
        "pairs": f"{totals['pairs']:,}, {totals['changed'] / pairs:.1%} of them changed",
        "words": f"{totals['words']:,}; {len(kept):,} different ones are kept",
        "edits": f"{totals['edits']:,}, {totals['edits'] / pairs:.2f} a pair",
    }
    for name, line in lines.items():
        table.add_row(name, Text(line))
    return table
