"""Profiles: what was counted in real pairs, as a folder of small files that can be added up.

A profile holds counts, no chances and no sentence: single words, what stands for them, gaps between
words with at most two words in them, and pieces of words.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from noisegen.errors import UsageError

SAME, SMALL_CASE, TITLE_CASE, UPPER_CASE = range(4)  # how a form is written
KEPT, GONE, OTHER = "kept", "gone", "other"  # what became of a word; else how it is written, or ...
WRITTEN = (KEPT, "small", "title", "upper")
LETTERS = ("", "letters1", "letters2", "letters3")  # ... in how many places its letters changed
CHANGES = (*WRITTEN, *LETTERS[1:], GONE, OTHER)


class WordKey(NamedTuple):
    """A word (small letters) in a case, what stands for it, and how that is written.

    `noisy` equal to `clean` and SAME: it stayed; '': it is gone, and `written` says how the next
    word is written then; None: it became something that is not kept.
    """

    clean: str
    case: int
    noisy: str | None
    written: int


class GapKey(NamedTuple):
    """A gap before the word `right` ('': any other), and what stands for it (None: not kept).

    `initial`: it begins its row. `written`: how the word behind is written then.
    """

    right: str
    initial: bool
    gap: str
    noisy: str | None
    written: int


class LetterKey(NamedTuple):
    """Up to three letters between two others became `noisy`; equal: words that have them there."""

    before: str
    clean: str
    after: str
    noisy: str


class ShapeKey(NamedTuple):
    """What became of a word of this shape that is in no table; see `learning.Change`."""

    shape: int
    change: str


class RowKey(NamedTuple):
    """Words of a row, how many of them changed, and how many gaps did."""

    words: int
    word_edits: int
    gap_edits: int


class HabitKey(NamedTuple):
    """A habit of whole rows, and whether a row that could show it did."""

    habit: str
    shown: bool


@dataclass(frozen=True)
class Profile:
    """Counts of what happened in real pairs.

    `factors` follow from the counts: see `row_factors`.
    """

    lang: str
    totals: Counter[str] = field(default_factory=Counter)
    words: Counter[WordKey] = field(default_factory=Counter)
    gaps: Counter[GapKey] = field(default_factory=Counter)
    letters: Counter[LetterKey] = field(default_factory=Counter)
    shapes: Counter[ShapeKey] = field(default_factory=Counter)
    rows: Counter[RowKey] = field(default_factory=Counter)
    habits: Counter[HabitKey] = field(default_factory=Counter)
    factors: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """A hash of all that is counted."""
        content = hashlib.sha256(self.lang.encode())
        for name in TABLES:
            lines = sorted(map(repr, getattr(self, name).items()))
            content.update("\n".join([name, *lines]).encode("utf-8", "surrogatepass"))
        return content.hexdigest()[:16]


# Each table: the kind of its keys, and the columns with their types ("count" comes last).
TABLES: dict[str, tuple[type, dict[str, str]]] = {
    "words": (WordKey, {"clean": "string", "case": "int8", "noisy": "string?", "written": "int8"}),
    "gaps": (
        GapKey,
        {"right": "string", "initial": "bool", "gap": "string", "noisy": "string?",
         "written": "int8"},
    ),
    "letters": (
        LetterKey, {"before": "string", "clean": "string", "after": "string", "noisy": "string"},
    ),
    "shapes": (ShapeKey, {"shape": "int8", "change": "string"}),
    "rows": (RowKey, {"words": "int32", "word_edits": "int32", "gap_edits": "int32"}),
    "habits": (HabitKey, {"habit": "string", "shown": "bool"}),
}  # fmt: skip


def merged(profiles: Sequence[Profile]) -> Profile:
    """Add up the counts of profiles of one language; raises UsageError for several languages."""
    langs = sorted({profile.lang for profile in profiles})
    if len(langs) != 1:
        raise UsageError(f"profiles of several languages cannot be merged: {', '.join(langs)}")
    names = ("totals", *TABLES)
    sums: dict[str, Any] = {name: Counter() for name in names}
    for profile in profiles:
        for name in names:
            sums[name].update(getattr(profile, name))
    return Profile(langs[0], **sums)
