"""What a bilingual dictionary holds, for people and programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisegen.bilingual.packaged import source
from noisegen.bilingual.reading import load
from noisegen.bilingual.translations import Translations
from noisegen.lexicon import Entry
from noisegen.manifest import counted

if TYPE_CHECKING:
    from rich.table import Table


def read(path: Path | None, lang: str, into: str | None) -> Translations:
    """Return the translations of a file, or of the packaged dictionary."""
    file, other = source(str(path) if path else None, lang, into)
    return load(file, lang, other)


def chosen(found: Translations, word: str | None, most: int) -> list[list[Entry]]:
    """Return the entries of one word in any case, or of the first words of the file."""
    ordered = sorted(found.entries, key=lambda entry: entry.clean) if word else found.entries
    kept = [one for one in ordered if word is None or one.clean.lower() == word.lower()]
    groups: dict[str, list[Entry]] = {}
    for entry in kept:
        groups.setdefault(entry.clean, []).append(entry)
    return list(groups.values())[:most]


def account(found: Translations, words: Sequence[Sequence[Entry]]) -> dict[str, Any]:
    """Return what is shown as plain data."""
    rows = [(one.clean, one.noisy, one.weight) for group in words for one in group]
    return {
        "words": found.words,
        "translations": len(found.entries),
        "dropped": dict(sorted(found.dropped.items())),
        "rows": [dict(zip(("clean", "noisy", "weight"), row, strict=True)) for row in rows],
    }


def summary(found: Translations) -> str:
    """Return one line for people."""
    lost = ", ".join(f"{reason} {count:,}" for reason, count in sorted(found.dropped.items()))
    size = f"{counted(len(found.entries), 'translation')} of {counted(found.words, 'word')}"
    return f"{size}; dropped: {lost}" if lost else size


def table(words: Sequence[Sequence[Entry]]) -> "Table":
    """Return words and their translations for the terminal; shares where weights differ."""
    from rich.table import Table

    shown = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("word", "translations"):
        shown.add_column(column)
    for group in words:
        shown.add_row(group[0].clean, _listed(group))
    return shown


def _listed(group: Sequence[Entry]) -> str:
    total, equal = sum(one.weight for one in group), len({one.weight for one in group}) == 1
    ranked = sorted(group, key=lambda one: -one.weight)
    return ", ".join(
        one.noisy if equal else f"{one.noisy} {one.weight / total:.0%}" for one in ranked
    )
