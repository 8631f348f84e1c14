"""Marks of punctuation: left out, repeated, set apart, run together with the next word."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.characters import CharacterMap, Variants, code_points, utf8_lengths
from noisegen.draws import I64, U64, choices, decisions, draw_array, fork_array
from noisegen.edits import Edits
from noisegen.lexicon import Entry
from noisegen.registry import Settings, kernel
from noisegen.text import Bool, Texts, ordinals

ENDS = ".!?…。！？｡।॥؟۔።։"  # of sentences (Unicode: Sentence_Terminal, those in daily use)
COMMAS = ",，、،፣"
OTHERS = ";:；：؛"
SET_APART = ",!?;:،؟؛।"  # before which some put a blank, as the French do
# Forms that a repeated mark takes, how often: so many of it, or with its partner.
REPEATED = {2: 4, 3: 5, 4: 2, 5: 1}
MIXED = {"!": "!?", "?": "?!", "！": "！？", "？": "？！"}
MIXED_WEIGHT = 2
BLANKS_MAX = 16  # behind the mark that ends a row


def _points(signs: str) -> I64:
    return np.array(sorted(map(ord, signs)), np.int64)


def _repeats() -> list[Entry]:
    """Return what marks may be repeated to; '…' and its like are repeated already."""
    marks = [mark for mark in ENDS if mark not in "…॥"]
    forms = [Entry(mark, mark * n, often) for mark in marks for n, often in REPEATED.items()]
    return forms + [Entry(mark, form, MIXED_WEIGHT) for mark, form in MIXED.items()]


_MARKS, _ENDS, _COMMAS = _points(ENDS + COMMAS + OTHERS), _points(ENDS), _points(COMMAS)
_SET_APART, _WIDE = _points(SET_APART), _points("。！？｡，、；：")  # _WIDE: no blank follows
_LEADS = np.isin(np.arange(256), [sign.encode()[0] for sign in ENDS + COMMAS + OTHERS])
_BLANKS = np.isin(np.arange(256), [9, 10, 11, 12, 13, 32])
_REPEATS = CharacterMap(_repeats())
_NOTHING, _BLANK = len(_REPEATS.pool), len(_REPEATS.pool) + 1
_POOL = pa.concat_arrays([_REPEATS.pool, Texts.from_strings(["", " "]).to_arrow()])


@dataclass(frozen=True)
class Marks:
    """Marks of `Texts`: row, byte range, code point. `row_ends` is where rows end but for blanks.

    A mark is `free` if a blank or the row's end follows, or if none needs to; it is `first` if only
    blanks stand before it in its row; it is `single` if it touches no other mark.
    """

    rows: I64
    starts: I64
    stops: I64
    points: I64
    free: Bool
    first: Bool
    row_ends: I64

    @classmethod
    def of(cls, texts: Texts) -> "Marks":
        """Find the marks of all rows."""
        at = np.flatnonzero(_LEADS[texts.window]) + texts.offsets[0]
        points = code_points(texts.values, at)
        known = np.flatnonzero(np.isin(points, _MARKS))
        at, points = at.take(known), points.take(known)
        rows, stops = texts.rows_of(at), at + utf8_lengths(points)
        last = stops == texts.offsets[rows + 1]
        follows = texts.values.take(np.where(last, at, stops))
        free = last | _BLANKS[follows] | np.isin(points, _WIDE)
        inked = np.flatnonzero(~_BLANKS[texts.window]) + texts.offsets[0]
        first = np.searchsorted(inked, at) == np.searchsorted(inked, texts.offsets).take(rows)
        return cls(rows, at, stops, points, free, first, _row_ends(texts))

    @cached_property
    def single(self) -> Bool:
        """Whether each mark touches no other."""
        same = np.diff(self.rows, prepend=-1) == 0
        touching = same & (self.starts == np.roll(self.stops, 1))  # the one before it
        found: Bool = ~touching & ~np.append(touching[1:], False)
        return found

    @cached_property
    def final(self) -> Bool:
        """Whether each mark is an end mark that ends its row."""
        found: Bool = (self.stops == self.row_ends[self.rows]) & np.isin(self.points, _ENDS)
        return found


def _row_ends(texts: Texts) -> I64:
    """Return where rows end, up to `BLANKS_MAX` blanks left out."""
    ends = texts.offsets[1:].copy()
    for _ in range(BLANKS_MAX):
        blank = np.flatnonzero((ends > texts.offsets[:-1]) & _BLANKS[texts.values[ends - 1]])
        if not len(blank):
            break
        ends[blank] -= 1
    return ends


class Change(NamedTuple):
    """Changes in ascending order: number of the mark, byte range, what is written (of `_POOL`)."""

    marks: I64
    starts: I64
    stops: I64
    written: I64

    @classmethod
    def to(cls, written: int, at: I64, starts: I64, stops: I64) -> "Change":
        """Return changes that all write the same."""
        return cls(at, starts, stops, np.full(len(at), written))


@dataclass(frozen=True)
class MarkDraws:
    """The draws of marks: stream of a name, draw i of a row for its i-th mark."""

    marks: Marks
    keys: U64
    limits: Mapping[str, I64]
    variants: Variants

    def hit(self, name: str, eligible: Bool) -> tuple[I64, U64]:
        """Return which of the eligible marks are hit, and their draws."""
        at = np.flatnonzero(eligible)
        rows = self.marks.rows.take(at)
        keys = fork_array(self.keys, name).take(rows)
        draws = draw_array(keys, ordinals(self.marks.rows).take(at))
        limits = self.limits[name].take(self.variants[name].take(rows))
        hit = np.flatnonzero(decisions(draws) < limits)
        return at.take(hit), draws.take(hit)


@dataclass(frozen=True)
class Punctuation:
    """Change marks, each way with its own rate; `limits` has the thresholds of every strength.

    What is left out is not repeated, set apart or glued. What begins a row is not left out: a row
    that is '?' alone would be empty.
    """

    limits: Mapping[str, I64]

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the changes of all rows."""
        if not len(texts.window):
            return Edits.none()
        marks = Marks.of(texts)
        drawn = MarkDraws(marks, keys, self.limits, variants)
        lost = [_ends_lost(texts, marks, drawn), _commas_lost(texts, marks, drawn)]
        left = np.ones(len(marks.rows), np.bool_)
        left[np.concatenate([change.marks for change in lost])] = False
        parts = [
            _set_apart(texts, marks, drawn, left), *lost,
            _repeated(marks, drawn, left), _glued(texts, marks, drawn, left),
        ]  # fmt: skip
        at, starts, stops, written = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(starts, kind="stable")  # a blank, then what becomes of its mark
        edges = starts.take(order), stops.take(order)
        return Edits(marks.rows.take(at.take(order)), *edges, written.take(order), _POOL)


def _ends_lost(texts: Texts, marks: Marks, drawn: MarkDraws) -> Change:
    """Leave out the mark that ends a row; more than one ('...', '?!') mean something."""
    at, _ = drawn.hit("drop_rate", marks.final & marks.single & ~marks.first)
    return Change.to(_NOTHING, at, _with_blank(texts, marks, at), marks.stops.take(at))


def _commas_lost(texts: Texts, marks: Marks, drawn: MarkDraws) -> Change:
    """Leave commas out; a wide one, which no blank follows, becomes a blank."""
    between = marks.single & marks.free & ~marks.first
    at, _ = drawn.hit("comma_rate", between & np.isin(marks.points, _COMMAS))
    wide = np.isin(marks.points.take(at), _WIDE)
    inside = marks.stops.take(at) < marks.row_ends.take(marks.rows.take(at))
    written = np.where(wide & inside, _BLANK, _NOTHING)
    return Change(at, _with_blank(texts, marks, at), marks.stops.take(at), written)


def _with_blank(texts: Texts, marks: Marks, at: I64) -> I64:
    """Return where marks start, or the blank before them: 'ça !' is left as 'ça'."""
    starts = marks.starts.take(at)
    inside = starts > texts.offsets[marks.rows.take(at)]
    found: I64 = starts - (inside & (texts.values.take(np.maximum(starts - 1, 0)) == ord(" ")))
    return found


def _repeated(marks: Marks, drawn: MarkDraws, left: Bool) -> Change:
    """Repeat end marks; a full stop only at the end of a row: elsewhere it may abbreviate."""
    places, known = _REPEATS.places(marks.points)
    stop = marks.points == ord(".")
    eligible = left & known & marks.single & marks.free & (~stop | marks.final)
    at, draws = drawn.hit("repeat_rate", eligible)
    wanted = (places.take(at) << 17) + choices(draws)
    written = np.searchsorted(_REPEATS.uppers, wanted, side="right").astype(np.int64)
    return Change(at, marks.starts.take(at), marks.stops.take(at), written)


def _set_apart(texts: Texts, marks: Marks, drawn: MarkDraws, left: Bool) -> Change:
    """Put a blank before marks that stand behind a word."""
    before = texts.values.take(np.maximum(marks.starts - 1, 0))
    behind = (marks.starts > texts.offsets[marks.rows]) & ~_BLANKS[before]
    eligible = left & marks.single & marks.free & behind & np.isin(marks.points, _SET_APART)
    at, _ = drawn.hit("blank_rate", eligible)
    starts = marks.starts.take(at)
    return Change.to(_BLANK, at, starts, starts)


def _glued(texts: Texts, marks: Marks, drawn: MarkDraws, left: Bool) -> Change:
    """Leave out the one blank between a comma and a word."""
    stops, last = marks.stops, len(texts.values) - 1
    follows, then = (texts.values.take(np.minimum(stops + k, last)) for k in (0, 1))
    inside = stops + 1 < texts.offsets[marks.rows + 1]
    before_mark = np.append(marks.starts[1:], -1) == stops + 1
    blank = inside & (follows == ord(" ")) & ~_BLANKS[then] & ~before_mark
    at, _ = drawn.hit("glue_rate", left & marks.single & blank & np.isin(marks.points, _COMMAS))
    starts = stops.take(at)
    return Change.to(_NOTHING, at, starts, starts + 1)


@kernel("punc", lambda *_: [], lambda: ["*"])
def punc(
    settings: Settings, *, drop_rate: float = 0.6, comma_rate: float = 0.3,
    repeat_rate: float = 0.1, blank_rate: float = 0.02, glue_rate: float = 0.05,
) -> Punctuation:  # fmt: skip
    """Leave out, repeat and misplace marks: 'Really? Yes, I know.' -> 'Really?? Yes I know'.

    The chances: that a single end mark at the end of the row goes (`drop_rate`; nine in ten social
    media posts of ViLexNorm have none), that a comma goes, that an end mark is repeated, that a
    blank is put before a mark, and that the blank behind a comma goes.
    """
    rates = {
        "drop_rate": drop_rate, "comma_rate": comma_rate, "repeat_rate": repeat_rate,
        "blank_rate": blank_rate, "glue_rate": glue_rate,
    }  # fmt: skip
    return Punctuation({name: settings.limits(rate) for name, rate in rates.items()})
