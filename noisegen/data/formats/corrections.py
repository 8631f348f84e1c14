"""JSON lines of published corrections: commits that correct typos, and essays with their edits.

Each line becomes rows of the columns `noisy` and `clean`. A row that has no texts has a reason
from `tables.REASONS`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from noisegen.data.tables import CODE, with_reasons

TYPO_MIN = 0.5  # the GitHub Typo Corpus calls an edit with a higher probability a typo
_HEAD_LINES = 50  # first lines of a file by which its form is recognised

Row = tuple[Any, ...]
Reasoned = tuple[Row, str]  # a row, and the reason why it has no texts, or ''


# Commits: the GitHub Typo Corpus.


class _Text(msgspec.Struct):
    text: str
    lang: str | None = None


class _Change(msgspec.Struct):
    """An edit of a commit; English, Chinese and Japanese edits tell whether they correct a typo."""

    src: _Text
    tgt: _Text
    is_typo: bool | None = None
    prob_typo: float | None = None

    def is_correction(self) -> bool:
        """Tell whether the edit corrects a typo; True if the corpus does not tell."""
        if self.is_typo is not None:
            return self.is_typo
        return self.prob_typo is None or self.prob_typo > TYPO_MIN


class Commit(msgspec.Struct):
    """A line of the GitHub Typo Corpus: the edits of one git commit."""

    edits: list[_Change]

    def rows(self) -> Iterator[Reasoned]:
        """Yield a row per edit: noisy text, clean text and language."""
        for edit in self.edits:
            if edit.is_correction():
                yield (edit.src.text.strip(), edit.tgt.text.strip(), edit.src.lang), ""
            else:
                yield (None, None, edit.src.lang), "not_a_typo"


# Essays: W&I+LOCNESS, FCE and other corpora of learners.


class _Edit(msgspec.Struct, array_like=True):
    """A replaced span, in characters; `text` is None for an error without a correction."""

    start: int
    stop: int
    text: str | None = None


class Essay(msgspec.Struct):
    """A text with its edits: [annotator, [edit, ...]] per annotator, or a list of edits."""

    text: str
    edits: list[list[Any]]

    def rows(self) -> Iterator[Reasoned]:
        """Yield a row per paragraph: noisy text, and a list with each annotator's clean text.

        An essay with edits outside the text, or with edits of one annotator that overlap, becomes
        one row without texts.
        """
        versions = [self._edits_of(edits) for edits in self._given()]
        if not all(map(self._are_sound, versions)):
            yield (None, None), "bad_edits"
            return
        bounds = self._bounds(versions)
        noisy = [self.text[start:stop].strip() for start, stop in pairwise(bounds)]
        clean = zip(*(self._corrected(edits, bounds) for edits in versions), strict=True)
        for texts in zip(noisy, map(list, clean), strict=True):
            if texts[0] or any(texts[1]):
                yield texts, ""

    def _given(self) -> list[Any]:
        """Return the list of edits of each annotator, as it is in the file."""
        if all(len(entry) == 2 and isinstance(entry[1], list) for entry in self.edits):
            return [edits for _, edits in self.edits] or [[]]
        return [self.edits]

    def _edits_of(self, given: Any) -> list[_Edit]:
        """Return the sorted edits of one annotator that have a correction.

        Raises msgspec.ValidationError for another form.
        """
        edits = [edit for edit in msgspec.convert(given, list[_Edit]) if edit.text is not None]
        return sorted(edits, key=attrgetter("start", "stop"))

    def _are_sound(self, edits: Sequence[_Edit]) -> bool:
        """Tell whether sorted edits are spans of the text that do not overlap."""
        at = 0
        for edit in edits:
            if not at <= edit.start <= edit.stop <= len(self.text):
                return False
            at = edit.stop
        return True

    def _bounds(self, versions: Sequence[Sequence[_Edit]]) -> list[int]:
        """Return the offsets of the paragraphs, from 0 to the end of the text.

        A paragraph ends at a line end that lies inside no edit.
        """
        inner = {at for edits in versions for e in edits for at in range(e.start + 1, e.stop)}
        ends = (end.end() for end in re.finditer("\n+", self.text))
        return [0, *(at for at in ends if at not in inner and at < len(self.text)), len(self.text)]

    def _corrected(self, edits: Sequence[_Edit], bounds: Sequence[int]) -> list[str]:
        """Return the paragraphs between `bounds`, corrected by sorted edits."""
        starts = [edit.start for edit in edits]
        paragraphs = []
        for start, stop in pairwise(bounds):
            last = len(edits) if stop == len(self.text) else bisect_left(starts, stop)
            parts, at = [], start
            for edit in edits[bisect_left(starts, start) : last]:
                parts += [self.text[at : edit.start], edit.text or ""]
                at = edit.stop
            paragraphs.append("".join([*parts, self.text[at:stop]]).strip())
        return paragraphs


# Files of either form.

FORMS: dict[str, type[Commit | Essay]] = {"commits": Commit, "essays": Essay}
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def has_form(head: bytes, form: str) -> bool:
    """Tell whether one of the first lines of a file has edits in the form named `form`."""
    for line in head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
        with suppress(*_ERRORS):
            read = msgspec.json.decode(line, type=FORMS[form])
            if read.edits and list(read.rows()):
                return True
    return False


def correction_table(block: bytes, form: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of a block of lines in the form named `form`, as a table with REASON."""
    rows: list[Row] = []
    codes: list[int] = []
    for line in block.splitlines():
        try:
            found = list(msgspec.json.decode(line, type=FORMS[form]).rows())
        except _ERRORS:
            found = [((None,) * len(schema), "bad_json")]
        rows += [row for row, _ in found]
        codes += [CODE[reason] for _, reason in found]
    cells = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
    return with_reasons(pa.table(cells, schema), np.array(codes, np.int8))
