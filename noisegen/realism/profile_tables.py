"""A profile as tables for a terminal."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from noisegen.realism.evidence import END, START
from noisegen.realism.profile import SAME, HabitKey, Profile
from noisegen.tables import bar, titled

TOP = 15  # lines of a table
EDITS_SHOWN = 12
K = TypeVar("K", bound=tuple[object, ...])
_BAR = 24  # columns
_WRITTEN = ("", "in small letters", "with a capital", "in capitals")


def render(profile: Profile, console: Console, top: int = TOP) -> None:
    """Print what a profile holds, the most frequent first."""
    tables = (
        _summary(profile), _edits_per_row(profile), _words(profile, top), _gaps(profile, top),
        _letters(profile, top), _habits(profile),
    )  # fmt: skip
    for table in tables:
        if table.row_count:
            console.print(table)
            console.print()


def to_dict(profile: Profile, top: int = TOP) -> dict[str, object]:
    """Return the same as plain data."""
    return {
        "lang": profile.lang, "digest": profile.digest, "totals": dict(profile.totals),
        "edits_per_row": dict(sorted(_row_edits(profile).items())),
        "words": list(islice(_word_lines(profile), top)),
        "gaps": list(islice(_gap_lines(profile), top)),
        "letters": list(islice(_letter_lines(profile), top)),
        "habits": list(_habit_lines(profile)),
    }  # fmt: skip


Line = tuple[str, str, int, float]  # what, what stands for it, how often, share of all cases


def _word_lines(profile: Profile) -> Iterator[Line]:
    seen: Counter[str] = Counter()
    for key, count in profile.words.items():
        seen[key.clean] += count
    edits: Counter[tuple[str, str]] = Counter()
    for key, count in profile.words.items():
        if key.noisy is None or (key.noisy, key.written) == (key.clean, SAME):
            continue
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
        place = "(start) " if initial else ""
        yield place + _visible(gap), _visible(noisy), count, count / seen[initial, gap]


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
    names = {"small": "all in small letters", "upper": "all in capitals", "bare": "no marks"}
    for habit, name in names.items():
        shown, other = (profile.habits[HabitKey(habit, flag)] for flag in (True, False))
        if shown:
            yield "rows", name, shown, shown / (shown + other)


def _ranked(counts: Counter[K]) -> list[tuple[K, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _visible(gap: str) -> str:
    return f"‹{gap}›"


def _row_edits(profile: Profile) -> Counter[int]:
    edits: Counter[int] = Counter()
    for key, count in profile.rows.items():
        edits[min(EDITS_SHOWN, key.word_edits + key.gap_edits)] += count
    return edits


def _titled(title: str, *columns: str) -> Table:
    table = titled(title)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < len(columns) - 2 else "right")
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    return table


def _lines(title: str, lines: Iterator[Line], top: int) -> Table:
    table = _titled(title, "clean", "noisy", "count", "share")
    shown = list(islice(lines, top))
    most = max((count for *_, count, _ in shown), default=0)
    for clean, noisy, count, share in shown:
        drawn = bar(count, most)
        table.add_row(Text(clean), Text(noisy), f"{count:,}", f"{share:.1%}", drawn)
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


def _edits_per_row(profile: Profile) -> Table:
    table = _titled("edits per row", "edits", "rows", "share")
    edits = _row_edits(profile)
    most, rows = max(edits.values(), default=0), max(1, edits.total())
    for number in range(max(edits, default=-1) + 1):
        name = f"{number}{' or more' * (number == EDITS_SHOWN)}"
        count = edits[number]
        table.add_row(name, f"{count:,}", f"{count / rows:.1%}", bar(count, most))
    return table


def _words(profile: Profile, top: int) -> Table:
    return _lines("words, with their share of all cases of the word", _word_lines(profile), top)


def _gaps(profile: Profile, top: int) -> Table:
    return _lines("between words", _gap_lines(profile), top)


def _letters(profile: Profile, top: int) -> Table:
    return _lines("letters between their neighbours, in different words", _letter_lines(profile),
                  top)  # fmt: skip


def _habits(profile: Profile) -> Table:
    return _lines("habits of whole rows", _habit_lines(profile), len(_WRITTEN))
