"""Punctuation: left out, repeated, set apart, run together with the next word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from noisegen.noise.edits import Edits
from noisegen.noise.registry import Settings, kernel
from noisegen.noise.rng import Variants, WeightedTexts, choices, fork_array, hits
from noisegen.text.buffers import I64, U64, Bool, Texts, code_points, utf8_lengths
from noisegen.transforms import any_language, no_files

ENDS = ".!?…。！？｡।॥؟۔።։"  # of sentences (Unicode: Sentence_Terminal, those in daily use)
COMMAS = ",，、،፣"
OTHERS = ";:；：؛"
SET_APART = ",!?;:،؟؛।"  # before which some put a space, as the French do
WIDE = "。！？｡，、；："  # that no space follows
# Forms that a repeated mark takes, how often: so many of it, or with its partner.
REPEATED = {2: 4, 3: 5, 4: 2, 5: 1}
MIXED = {"!": "!?", "?": "?!", "！": "！？", "？": "？！"}
MIXED_WEIGHT = 2
SPACES_MAX = 16  # behind the mark that ends a row

_LEADS = np.isin(np.arange(256), [sign.encode()[0] for sign in ENDS + COMMAS + OTHERS])
_IS_SPACE = np.isin(np.arange(256), [9, 10, 11, 12, 13, 32])


_REPEATABLE = sorted(set(ENDS) - set("…॥"))  # these two are repeated already
_NOTHING, _SPACE = len(_REPEATABLE), len(_REPEATABLE) + 1  # groups behind those of the marks
_BEYOND = 0x110000  # a key that is no code point
_WRITTEN = WeightedTexts.of(
    np.array([*map(ord, _REPEATABLE), _BEYOND, _BEYOND + 1]),
    [
        *([(mark * count, often) for count, often in REPEATED.items()]
          + ([(MIXED[mark], MIXED_WEIGHT)] if mark in MIXED else []) for mark in _REPEATABLE),
        [("", 1)], [(" ", 1)],
    ],
)  # fmt: skip


def _among(points: I64, signs: str) -> Bool:
    return np.isin(points, [ord(sign) for sign in signs])


class Marks(NamedTuple):
    """Marks of `Texts`: row, byte range, code point."""

    rows: I64
    starts: I64
    stops: I64
    points: I64

    @classmethod
    def of(cls, texts: Texts) -> "Marks":
        """Find the marks of all rows."""
        at = np.flatnonzero(_LEADS[texts.window]) + texts.offsets[0]
        points = code_points(texts.values, at)
        known = np.flatnonzero(_among(points, ENDS + COMMAS + OTHERS))
        at, points = at.take(known), points.take(known)
        return cls(texts.rows_of(at), at, at + utf8_lengths(points), points)


class Way(NamedTuple):
    """A way to change marks: its rate, which ones may be, and byte range and group written."""

    rate: str
    eligible: Bool
    starts: I64
    stops: I64
    groups: I64


def _ways(texts: Texts, marks: Marks) -> list[Way]:
    """Return the ways to change these marks; the first two leave them out.

    Alone are marks that touch no other: more than one ('...', '?!') mean something.
    """
    rows, starts, stops, points = marks
    values, final = texts.values, len(texts.values) - 1
    row_starts, row_stops = texts.offsets[rows], texts.offsets[rows + 1]
    before, follows, then = (
        values.take(np.clip(at, 0, final)) for at in (starts - 1, stops, stops + 1)
    )
    touching = (np.diff(rows, prepend=-1) == 0) & (starts == np.roll(stops, 1))
    alone = ~touching & ~np.append(touching[1:], False)
    wide = _among(points, WIDE)
    ends_word = (stops == row_stops) | _IS_SPACE[follows] | wide
    inked = np.flatnonzero(~_IS_SPACE[texts.window]) + texts.offsets[0]
    # What begins a row is not left out: a row that is '?' alone would be empty.
    later = np.searchsorted(inked, starts) > np.searchsorted(inked, texts.offsets).take(rows)
    ends = _row_ends(texts)[rows]
    ends_row = (stops == ends) & _among(points, ENDS)
    comma = alone & _among(points, COMMAS)
    spaced = (starts > row_starts) & (before == ord(" "))
    left_out = starts - spaced  # with the space before: 'ça !' is left as 'ça'
    behind_word = (starts > row_starts) & ~_IS_SPACE[before]
    before_mark = np.append(starts[1:], -1) == stops + 1
    one_space = (stops + 1 < row_stops) & (follows == ord(" ")) & ~_IS_SPACE[then] & ~before_mark
    groups, repeatable = _WRITTEN.find(points)
    repeatable &= (points != ord(".")) | ends_row  # elsewhere a full stop may abbreviate
    nothing, space = (np.full(len(rows), group) for group in (_NOTHING, _SPACE))
    comma_becomes = np.where(wide & (stops < ends), space, nothing)
    return [
        Way("drop_rate", alone & ends_row & later, left_out, stops, nothing),
        Way("comma_rate", comma & ends_word & later, left_out, stops, comma_becomes),
        Way("blank_rate", alone & ends_word & behind_word & _among(points, SET_APART),
            starts, starts, space),
        Way("repeat_rate", alone & ends_word & repeatable, starts, stops, groups),
        Way("glue_rate", comma & one_space, stops, stops + 1, nothing),
    ]  # fmt: skip


def _row_ends(texts: Texts) -> I64:
    """Return where rows end, up to `SPACES_MAX` spaces left out."""
    ends = texts.offsets[1:].copy()
    for _ in range(SPACES_MAX):
        space = np.flatnonzero((ends > texts.offsets[:-1]) & _IS_SPACE[texts.values[ends - 1]])
        if not len(space):
            break
        ends[space] -= 1
    return ends


@dataclass(frozen=True)
class Punctuation:
    """Change marks, each way with its own rate; `limits` has the thresholds of every strength.

    Every way has a stream of its own, whose draw i is for the i-th mark of a row. What is left out
    is not repeated, set apart or glued.
    """

    limits: Mapping[str, I64]

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the changes of all rows."""
        if not len(texts.window):
            return Edits.none()
        marks, parts = Marks.of(texts), []
        kept = np.ones(len(marks.rows), np.bool_)
        for way in _ways(texts, marks):
            limits = self.limits[way.rate].take(variants[way.rate])
            stream = fork_array(keys, way.rate)
            at, draws = hits(stream, marks.rows, limits, way.eligible & kept)
            written = _WRITTEN.pick(way.groups.take(at), choices(draws))
            edges = way.starts.take(at), way.stops.take(at)
            parts.append(Edits(marks.rows.take(at), *edges, written, _WRITTEN.pool))
            if way.rate in ("drop_rate", "comma_rate"):
                kept[at] = False
        return Edits.join(parts)


@kernel("punc", no_files, any_language)
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
