"""Where the parts of a clean text are in its noisy text."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

ALIGNED_MAX = 5_000  # most characters of an edit whose texts are aligned, which takes square time


class Edit(NamedTuple):
    """A changed span: its offsets in the clean and in the noisy text, in characters.

    `transform` names the transforms that changed it, such as 'fing+spac'.
    """

    transform: str
    clean_start: int
    clean_end: int
    noisy_start: int
    noisy_end: int


class Moves:
    """The way from a clean text to its noisy text, by which spans are moved.

    `edits` ascend and do not touch each other; the text outside of them is equal on both sides.
    """

    def __init__(self, clean: str, noisy: str, edits: Sequence[Edit]) -> None:
        self.clean = clean
        self.noisy = noisy
        self.edits = edits
        self._starts = [edit.clean_start for edit in edits]
        self._ends = [edit.clean_end for edit in edits]

    def moved(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the offsets in the noisy text of a span of the clean text; None if it is lost.

        Offsets count characters; `end` is exclusive. The text of an edit inside the span belongs to
        the span, the text of an edit outside does not. If an edit crosses a border, the border goes
        where a minimal alignment of the edit's two texts has it. Letters that are inserted at a
        border belong to the word that they continue, other characters stay outside. A span begins
        and ends in white space only if it did so before. Raises ValueError for offsets outside the
        clean text.
        """
        if not 0 <= start <= end <= len(self.clean):
            raise ValueError(f"no span {start}:{end} in a text of {len(self.clean)} characters")
        if start == end:
            at = self._start(start, start)
            return at, at
        low, high = self._start(start, end), self._end(start, end)
        while low < high and self.noisy[low].isspace() and not self.clean[start].isspace():
            low += 1
        while low < high and self.noisy[high - 1].isspace() and not self.clean[end - 1].isspace():
            high -= 1
        return (low, high) if low < high else None

    def _start(self, start: int, end: int) -> int:
        """Return the noisy offset at which the span begins."""
        edit = self._edit_at(start)
        if edit is None:
            return self._shifted(start)
        if edit.clean_end == start:
            return edit.noisy_end - self._joining(edit, start) * (edit.clean_start == start)
        if edit.clean_start == start and edit.clean_end <= end:
            return edit.noisy_start
        return self._across(edit, start)

    def _end(self, start: int, end: int) -> int:
        """Return the noisy offset at which the span ends."""
        edit = self._edit_at(end)
        if edit is None:
            return self._shifted(end)
        if edit.clean_start == end:
            return edit.noisy_start + self._continuing(edit, end) * (edit.clean_end == end)
        if edit.clean_end == end and edit.clean_start >= start:
            return edit.noisy_end
        return self._across(edit, end)

    def _edit_at(self, border: int) -> Edit | None:
        """Return the edit that holds or touches a border; there is at most one."""
        number = bisect_left(self._ends, border)
        has_edit = number < len(self.edits) and self._starts[number] <= border
        return self.edits[number] if has_edit else None

    def _shifted(self, border: int) -> int:
        """Return the noisy offset of a border that no edit touches."""
        number = bisect_right(self._ends, border) - 1
        return border + (self.edits[number].noisy_end - self._ends[number] if number >= 0 else 0)

    def _joining(self, edit: Edit, start: int) -> int:
        """Count the inserted characters before a span that begin its first word."""
        before = self.noisy[edit.noisy_start - 1 : edit.noisy_start]
        if _in_word(before) or not _in_word(self.clean[start : start + 1]):
            return 0
        return _letters(self.noisy[edit.noisy_start : edit.noisy_end][::-1])

    def _continuing(self, edit: Edit, end: int) -> int:
        """Count the inserted characters after a span that continue its last word."""
        if not _in_word(self.clean[end - 1 : end]):
            return 0
        return _letters(self.noisy[edit.noisy_start : edit.noisy_end])

    def _across(self, edit: Edit, border: int) -> int:
        """Return the noisy offset of a border that lies in an edit."""
        clean = self.clean[edit.clean_start : edit.clean_end]
        noisy = self.noisy[edit.noisy_start : edit.noisy_end]
        at = border - edit.clean_start
        if len(clean) == len(noisy) and clean.casefold() == noisy.casefold():
            return edit.noisy_start + at
        if max(len(clean), len(noisy)) > ALIGNED_MAX:
            return edit.noisy_start + at * len(noisy) // len(clean)
        plain = [text.lower() for text in (clean, noisy)]
        if list(map(len, plain)) == [len(clean), len(noisy)]:
            clean, noisy = plain
        for part in Levenshtein.opcodes(clean, noisy):
            if at <= part.src_end and part.tag != "insert":
                within = min(at - part.src_start, part.dest_end - part.dest_start)
                return edit.noisy_start + part.dest_start + within
        return edit.noisy_end


def _in_word(character: str) -> bool:
    """Tell whether a character is part of a word: a letter, a digit or a combining mark."""
    return bool(character) and (
        character.isalnum() or unicodedata.category(character).startswith("M")
    )


def _letters(text: str) -> int:
    """Count the characters of words with which a text begins."""
    return next((at for at, character in enumerate(text) if not _in_word(character)), len(text))
