"""Transforms that insert emoticons, emoji and interjections at ends and beginnings of sentences.

Insertions add content to a text, so the meaning of the text may change. No packaged recipe uses
these transforms.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.noising.edits import Edits
from noisegen.noising.lexicon import Entry, Lexicon
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import RowDraws, Strengths, WeightedChoices, choices, hits, row_hits
from noisegen.text.buffers import I64, U64, Texts, code_points, is_byte
from noisegen.text.case import characters_in
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import IS_BREAK, IS_END, IS_SPACE, SPACES, LanguageFiles

START, OPENING, COMMA, BARE, MARK, STOP = range(6)  # kinds of places for insertions
# For each kind of place, the roles of the list entries that may be inserted there.
ROLES = (
    ("start",),  # START: before the first letter of a row, if it is no capital
    ("opening",),  # OPENING: before the first letter of a row, if it is a capital
    ("comma",),  # COMMA: after the only comma of a row
    ("end",),  # BARE: any other end of a line or sentence than MARK and STOP
    ("end", "before"),  # MARK: the end of a line or sentence, after a single ! or ?
    ("end", "before", "instead"),  # STOP: the end of a line or sentence, after a single full stop
)
WORDS_BESIDE_COMMA = 3  # fewest words on each side of a comma: 'Hi Ann,' is only a greeting
STOPPED_WORD_MIN = 5  # fewest characters of a word whose full stop ends a sentence: not 'etc.'

_LINE_END = re.compile(r"[^ \t\n\r\v\f](?=[ \t\v\f]*(?:[\n\r]|\Z))")
_SENTENCE_END = re.compile(r"[.!?](?= [^a-z0-9])")  # no end before a small letter or a digit


class Insertion(NamedTuple):
    """A text to insert at a position: it replaces the `width` characters from `back` before it."""

    text: str
    back: int
    width: int

    @classmethod
    def of(cls, role: str, noisy: str) -> "Insertion":
        """Return the insertion for a list entry: its text `noisy`, and its role (see `ROLES`)."""
        text = f"{noisy} " if role in ("start", "opening") else f" {noisy}"
        return cls(text, int(role in ("before", "instead")), int(role == "instead"))


@dataclass(frozen=True)
class Insertions:
    """Kernel that inserts a listed text at each suitable place of a row, with chance `rate`.

    `limits` has `rate` at each strength of the recipe, in units of 2^-48. `listed` has the
    insertions, grouped by the kind of place where they fit (see `ROLES`), and `choices` their
    weights, one group per kind. The i-th random number of a row decides on its i-th suitable place
    and chooses the insertion.
    """

    choices: WeightedChoices
    listed: tuple[Insertion, ...]
    limits: I64

    @classmethod
    def of(cls, entries: list[Entry], limits: I64) -> "Insertions":
        """Compile a list of insertions; the `clean` field of each entry has its role (`ROLES`)."""
        groups = [[entry for entry in entries if entry.clean in roles] for roles in ROLES]
        listed = [Insertion.of(entry.clean, entry.noisy) for group in groups for entry in group]
        weights = WeightedChoices.of([entry.weight for entry in group] for group in groups)
        return cls(weights, tuple(listed), limits)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return an edit for each insertion in one row."""
        served = [(at, kind) for at, kind in row_places(row) if kind in self._kinds]
        limit = int(self.limits[draws.strengths["rate"]])
        edits: list[RowEdit] = []
        for number, drawn in row_hits(draws.key, range(len(served)), limit):
            at, kind = served[number]
            text, back, width = self.listed[self.choices.pick_one(kind, drawn)]
            edits.append((at - back, at - back + width, text))
        return edits

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return an edit for each insertion in a batch of rows."""
        rows, at, kinds = places(texts)
        served = np.flatnonzero(np.isin(kinds, self.choices.groups))
        rows, at, kinds = rows.take(served), at.take(served), kinds.take(served)
        hit, draws = hits(keys, rows, self.limits.take(strengths["rate"]))
        written = self.choices.pick(kinds.take(hit), choices(draws))
        pool, backs, widths = self._columns
        starts = at.take(hit) - backs.take(written)
        return Edits(rows.take(hit), starts, starts + widths.take(written), written, pool)

    @cached_property
    def _kinds(self) -> frozenset[int]:
        """Kinds of places for which the list has insertions."""
        return frozenset(self.choices.groups.tolist())

    @cached_property
    def _columns(self) -> tuple[pa.Array, I64, I64]:
        """Three arrays: `text`, `back` and `width` of each listed insertion."""
        texts = Texts.from_strings([insertion.text for insertion in self.listed]).to_arrow()
        backs = np.array([insertion.back for insertion in self.listed], np.int64)
        return texts, backs, np.array([insertion.width for insertion in self.listed], np.int64)


# Places for insertions in one row.


def row_places(row: Row) -> list[tuple[int, int]]:
    """Return the (position, kind) of all places in a row, in ascending order.

    Positions count characters. At the same position, an end of a line or sentence comes before
    other places.
    """
    found = [*_row_ends(row), *_row_comma(row), *_row_start(row)]
    return sorted(found, key=itemgetter(0))


def _row_ends(row: Row) -> Iterator[tuple[int, int]]:
    """Yield the (position, kind) of each end of a line or sentence in a row.

    A sentence ends at a full stop, question mark or exclamation mark. A full stop after a word of
    fewer than `STOPPED_WORD_MIN` characters may mark an abbreviation, so it ends no sentence.
    """
    text = row.text
    ends = {match.end() for match in _LINE_END.finditer(text)}
    marks = [match.start() for match in _SENTENCE_END.finditer(text)]
    if marks:
        words = {row.span(number)[1]: word for number, word in enumerate(row.words)}
        ends.update(
            at + 1 for at in marks if text[at] != "." or len(words.get(at, "")) >= STOPPED_WORD_MIN
        )
    for end in ends:
        yield end, _kind_of_end(text, end)


def _kind_of_end(text: str, end: int) -> int:
    """Return the kind of place at the end of a line or sentence: STOP, MARK or BARE.

    `ROLES` explains the kinds.
    """
    sign, before = text[end - 1], text[end - 2 : end - 1] if end > 1 else ""
    is_single = sign in ".!?" and before and before not in ".!?" + SPACES  # not "?!", not "word ?"
    if not is_single:
        return BARE
    return STOP if sign == "." else MARK


def _row_start(row: Row) -> Iterator[tuple[int, int]]:
    """Yield the place (position, kind) before a row's first letter, if only spaces precede it."""
    stripped = row.text.lstrip(SPACES)
    if stripped[:1].isalpha():
        yield len(row.text) - len(stripped), OPENING if stripped[0].isupper() else START


def _row_comma(row: Row) -> Iterator[tuple[int, int]]:
    """Yield the (position, kind) after the comma of a row that has a single comma.

    The row must have at least `WORDS_BESIDE_COMMA` words on each side of the comma.
    """
    if row.text.count(",") == 1 and ", " in row.text:
        at = row.text.index(",")
        before = sum(row.span(number)[0] < at for number in range(len(row.words)))
        if min(before, len(row.words) - before) >= WORDS_BESIDE_COMMA:
            yield at + 1, COMMA


# Places for insertions in a batch of rows.


def places(texts: Texts) -> tuple[I64, I64, I64]:
    """Return three arrays: row, byte position and kind of all places in a batch.

    Places are ordered by row, and within a row as in `row_places`.
    """
    if not len(texts.window):
        none = np.zeros(0, np.int64)
        return none, none, none
    inked = np.flatnonzero(~IS_SPACE[texts.window]) + int(texts.offsets[0])
    # The end of a row and the start of the next may be the same byte. The stable sort below then
    # keeps this order: ends before starts.
    columns = zip(_ends(texts, inked), _commas(texts), _starts(texts, inked), strict=True)
    at, kinds = (np.concatenate(column) for column in columns)
    order = np.argsort(at, kind="stable")
    at, kinds = at.take(order), kinds.take(order)
    return np.searchsorted(texts.offsets, at - (kinds >= BARE), side="right") - 1, at, kinds


def _ends(texts: Texts, inked: I64) -> tuple[I64, I64]:
    """Return position and kind of each end of a line or sentence in a batch, as `_row_ends`.

    `inked` has the positions of all bytes other than spaces.
    """
    base, window, words = int(texts.offsets[0]), texts.window, texts.tokens
    line_ends = np.concatenate([np.flatnonzero(IS_BREAK[window]) + base, texts.offsets[1:]])
    last = np.searchsorted(inked, line_ends) - 1
    marks = np.flatnonzero(IS_END[window[:-2]])
    goes_on = _GOES_ON[window[marks + 2]]
    marks = marks[(window[marks + 1] == ord(" ")) & ~goes_on] + base
    marks = marks[marks + 2 < texts.offsets[texts.rows_of(marks) + 1]]
    ends_sentence = window[marks - base] != ord(".")
    if len(words):
        number = np.minimum(np.searchsorted(words.stops, marks), len(words) - 1)
        starts, stops = words.starts.take(number), words.stops.take(number)
        sizes = characters_in(window, starts - base, stops - base)
        ends_sentence |= (stops == marks) & (sizes >= STOPPED_WORD_MIN)
    ends = np.union1d(inked.take(last[last >= 0]), marks[ends_sentence]) + 1
    sign, before = window[ends - base - 1], window[np.maximum(ends - base - 2, 0)]
    is_alone = ~IS_END[before] & ~IS_SPACE[before]
    is_single = IS_END[sign] & is_alone & ~np.isin(ends - 1, texts.offsets)
    return ends, np.where(is_single, np.where(sign == ord("."), STOP, MARK), BARE)


_GOES_ON = is_byte(b"abcdefghijklmnopqrstuvwxyz0123456789")


def _starts(texts: Texts, inked: I64) -> tuple[I64, I64]:
    """Return position and kind of the start of each row in a batch, as `_row_start`.

    `inked` has the positions of all bytes other than spaces.
    """
    first = np.searchsorted(inked, texts.offsets[:-1])
    rows = np.flatnonzero(first < len(inked))
    at = inked.take(first.take(rows))
    at = at[at < texts.offsets[rows + 1]]
    points, which = np.unique(code_points(texts.values, at), return_inverse=True)
    signs = [chr(point) for point in points.tolist()]
    kinds = np.array([OPENING if sign.isupper() else START for sign in signs], np.int64)
    is_letter = np.array([sign.isalpha() for sign in signs], np.bool_)[which]
    return at[is_letter], kinds[which][is_letter]


def _commas(texts: Texts) -> tuple[I64, I64]:
    """Return position and kind of the place after each single comma in a batch, as `_row_comma`."""
    base, window, words = int(texts.offsets[0]), texts.window, texts.tokens
    at = np.flatnonzero(window == ord(",")) + base
    rows = texts.rows_of(at)
    is_only = np.bincount(rows, minlength=len(texts)).take(rows) == 1
    is_spaced = window.take(at - base + 1, mode="clip") == ord(" ")
    fits = is_only & is_spaced & (at + 1 < texts.offsets[rows + 1])
    at, rows = at[fits], rows[fits]
    passed = np.searchsorted(words.starts, at)
    firsts, lasts = (np.searchsorted(words.rows, rows + more) for more in (0, 1))
    is_between = np.minimum(passed - firsts, lasts - passed) >= WORDS_BESIDE_COMMA
    return at[is_between] + 1, np.full(int(is_between.sum()), COMMA)


# The transforms.

_EMOTICONS, _INTERJECTIONS = LanguageFiles("emot.tsv"), LanguageFiles("intj.tsv")


@kernel("emot", _EMOTICONS.read_or_any, keeps_meaning=False, kind="style")
def emot(settings: Settings, *, rate: float = 0.3) -> Insertions:
    """Add emoticons and emoji at the ends of sentences: 'See you.' -> 'See you :)'."""
    [path] = _EMOTICONS.read_or_any(settings, {})
    return Insertions.of(Lexicon.load(path).entries, settings.limits(rate))


@kernel("intj", _INTERJECTIONS.read, _INTERJECTIONS.languages, keeps_meaning=False, kind="style")
def intj(settings: Settings, *, rate: float = 0.1) -> Insertions:
    """Add interjections: 'he forgot his keys' -> 'he forgot his keys lol'."""
    entries = Lexicon.load(_INTERJECTIONS.of(settings.lang)).entries
    return Insertions.of(entries, settings.limits(rate))
