"""Punctuation: left out, repeated, set apart, run together with the next word, typed plain."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.noising.edits import Edits
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import (
    RowDraws,
    Variants,
    WeightedTexts,
    choices,
    fork,
    fork_array,
    hits,
    row_hits,
)
from noisegen.text.buffers import (
    I64,
    U64,
    Bool,
    Texts,
    code_points,
    is_byte,
    joins,
    joins_previous,
    utf8_lengths,
)
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import IS_SPACE, SPACES, Forms, LanguageFiles, rows_of

ENDS = ".!?…。！？｡।॥؟۔።։"  # of sentences (Unicode: Sentence_Terminal, those in daily use)
COMMAS = ",，、،፣"
OTHERS = ";:；：؛"
SET_APART = ",.!?;:،؟؛।"  # before which some put a space, as the French do
CLOSING = ".!?"  # behind which some leave out the space
WIDE = "。！？｡，、；："  # that no space follows
# Forms that a repeated mark takes, how often: so many of it, or with its partner.
REPEATED = {2: 4, 3: 5, 4: 2, 5: 1}
MIXED = {"!": "!?", "?": "?!", "！": "！？", "？": "？！"}
MIXED_WEIGHT = 2
SPACES_MAX = 16  # behind the mark that ends a row

WAYS = ("drop_rate", "comma_rate", "blank_rate", "repeat_rate", "glue_rate")  # in this order
LEFT_OUT = WAYS[:2]
_MARK = re.compile(f"[{ENDS + COMMAS + OTHERS}]")
_SMALL = re.compile(rb"[a-z\x80-\xff]{3}")  # the end of a word
_IS_SMALL = is_byte(bytes(byte for byte in range(256) if _SMALL.match(bytes([byte] * 3))))
_LEADS = bytes({sign.encode()[0] for sign in ENDS + COMMAS + OTHERS})
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


@dataclass(frozen=True)
class Punctuation:
    """Change marks, each way with its own rate; `limits` has the thresholds of every strength.

    Every way has a stream of its own, whose draw i is for the i-th mark of a row. What is left out
    is not repeated, set apart or glued.
    """

    limits: Mapping[str, I64]
    needs: bytes = _LEADS

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the changes of all rows."""
        if not len(texts.window):
            return Edits.none()
        starts = texts.positions_of(_LEADS)
        points = code_points(texts.values, starts)
        known = np.flatnonzero(_among(points, ENDS + COMMAS + OTHERS))
        starts, points = starts.take(known), points.take(known)
        rows, parts = texts.rows_of(starts), []
        stays = np.ones(len(rows), np.bool_)
        for rate, (eligible, begin, end, groups) in _ways(texts, rows, starts, points).items():
            limits = self.limits[rate].take(variants[rate])
            at, draws = hits(fork_array(keys, rate), rows, limits, eligible & stays)
            written = _WRITTEN.pick(groups.take(at), choices(draws))
            edits = Edits(rows.take(at), begin.take(at), end.take(at), written, _WRITTEN.pool)
            parts.append(edits)
            if rate in LEFT_OUT:
                stays[at] = False
        return Edits.join(parts)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the changes of one row."""
        edits, left_out = list[RowEdit](), set[int]()
        for rate, ways in _row_ways(row.text).items():
            if not ways:
                continue
            eligible = [number for number in ways if number not in left_out]
            limit = int(self.limits[rate][draws.variants[rate]])
            for number, drawn in row_hits(fork(draws.key, rate), eligible, limit):
                start, stop, group = ways[number]
                edits.append((start, stop, _WRITTEN.written(group, drawn)))
                if rate in LEFT_OUT:
                    left_out.add(number)
        return sorted(edits, key=itemgetter(0))


def _ways(
    texts: Texts, rows: I64, starts: I64, points: I64
) -> dict[str, tuple[Bool, I64, I64, I64]]:
    """Return for each rate which marks it may change, the byte ranges and what group is written.

    Marks that touch no other are alone: more than one ('...', '?!') mean something.
    """
    values, stops = texts.values, starts + utf8_lengths(points)
    row_starts, row_stops = texts.offsets[rows], texts.offsets[rows + 1]
    before, follows, then = (values.take(at, mode="clip") for at in (starts - 1, stops, stops + 1))
    touching = (np.diff(rows, prepend=-1) == 0) & (starts == np.roll(stops, 1))
    alone = ~touching & ~np.append(touching[1:], False)
    wide = _among(points, WIDE)
    ends_word = (stops == row_stops) | IS_SPACE[follows] | wide
    # What begins a row is not left out: a row that is '?' alone would be empty.
    inked = np.flatnonzero(~IS_SPACE[texts.window]) + texts.offsets[0]
    inked_before = np.searchsorted(inked, texts.offsets)  # each row
    later = np.searchsorted(inked, starts) > inked_before.take(rows)
    # A row ends before its last spaces, if these are not many.
    last_inked = inked.take(inked_before.take(rows + 1) - 1)
    ends = np.maximum(last_inked + 1, row_stops - SPACES_MAX)
    ends_row = (stops == ends) & _among(points, ENDS)
    comma = alone & _among(points, COMMAS)
    spaced = (starts > row_starts) & (before == ord(" "))
    left_out = starts - spaced  # with the space before: 'ça !' is left as 'ça'
    behind_word = (starts > row_starts) & ~IS_SPACE[before]
    before_mark = np.append(starts[1:], -1) == stops + 1
    one_space = (stops + 1 < row_stops) & (follows == ord(" ")) & ~IS_SPACE[then] & ~before_mark
    ends_sentence = alone & _among(points, CLOSING) & _behind_small_letters(texts, rows, starts)
    groups, repeatable = _WRITTEN.find(points)
    repeatable &= (points != ord(".")) | ends_row  # elsewhere a full stop may abbreviate
    nothing, space = (np.full(len(rows), group) for group in (_NOTHING, _SPACE))
    comma_becomes = np.where(wide & (stops < ends), space, nothing)
    set_apart = alone & ends_word & behind_word & _among(points, SET_APART)
    set_apart &= (points != ord(".")) | ends_sentence
    return {
        "drop_rate": (alone & ends_row & later, left_out, stops, nothing),
        "comma_rate": (comma & ends_word & later, left_out, stops, comma_becomes),
        "blank_rate": (set_apart, starts, starts, space),
        "repeat_rate": (alone & ends_word & repeatable, starts, stops, groups),
        "glue_rate": ((comma | ends_sentence) & one_space, stops, stops + 1, nothing),
    }


def _behind_small_letters(texts: Texts, rows: I64, starts: I64) -> Bool:
    """Tell whether a word of small letters stands before each mark: 'Mrs.' is no sentence's end."""
    values, at = texts.values, starts - texts.offsets[rows]
    letters = [_IS_SMALL[values.take(starts - back, mode="clip")] for back in (1, 2, 3)]
    behind: Bool = np.all([at >= len(letters), *letters], axis=0)
    return behind


def _row_ways(text: str) -> dict[str, dict[int, tuple[int, int, int]]]:
    """Return `_ways` of one row: what each rate may do to each mark, as range and group."""
    spans = [match.span() for match in _MARK.finditer(text)]
    first = len(text) - len(text.lstrip(SPACES))
    ends = max(len(text.rstrip(SPACES)), len(text) - SPACES_MAX)
    ways: dict[str, dict[int, tuple[int, int, int]]] = {rate: {} for rate in WAYS}
    for number, (start, stop) in enumerate(spans):
        before, after = spans[number - 1], spans[(number + 1) % len(spans)]
        if before[1] == start or after[0] == stop:  # not alone
            continue
        sign, follows, preceding = text[start], text[stop : stop + 1], text[start - 1 : start]
        wide, ends_row = sign in WIDE, stop == ends and sign in ENDS
        left_out = start - (preceding == " ")
        ends_sentence = sign in CLOSING and _SMALL.fullmatch(
            text[max(0, start - 3) : start].encode()[-3:]
        )
        if ends_row and start > first:
            ways["drop_rate"][number] = left_out, stop, _NOTHING
        if wide or not follows.strip(SPACES):  # it ends a word
            if sign in COMMAS and start > first:
                becomes = _SPACE if wide and stop < ends else _NOTHING
                ways["comma_rate"][number] = left_out, stop, becomes
            if sign in SET_APART and preceding.strip(SPACES) and (sign != "." or ends_sentence):
                ways["blank_rate"][number] = start, start, _SPACE
            group = _WRITTEN.group_of.get(ord(sign))
            if group is not None and (sign != "." or ends_row):
                ways["repeat_rate"][number] = start, stop, group
        spaced = follows == " " and text[stop + 1 : stop + 2].strip(SPACES)
        if (sign in COMMAS or ends_sentence) and spaced and after[0] != stop + 1:
            ways["glue_rate"][number] = stop, stop + 1, _NOTHING
    return ways


@kernel("punc", kind="style")
def punc(
    settings: Settings, *, drop_rate: float = 0.6, comma_rate: float = 0.3,
    repeat_rate: float = 0.1, blank_rate: float = 0.02, glue_rate: float = 0.05,
) -> Punctuation:  # fmt: skip
    """Drop, repeat and misplace punctuation: 'Really? Yes, I know.' -> 'Really?? Yes I know'.

    The chances: that a single end mark at the end of the row goes (`drop_rate`; nine in ten social
    media posts of ViLexNorm have none), that a comma goes, that an end mark is repeated, that a
    space is put before a mark, and that the space behind a comma or the end of a sentence goes.
    """
    rates = {
        "drop_rate": drop_rate, "comma_rate": comma_rate, "repeat_rate": repeat_rate,
        "blank_rate": blank_rate, "glue_rate": glue_rate,
    }  # fmt: skip
    return Punctuation({name: settings.limits(rate) for name, rate in rates.items()})


# Marks that are typed in another way than they are printed.

_TYPED = LanguageFiles("mark.tsv")


@dataclass(frozen=True)
class MarkTable:
    """Strings of marks, the longest first, and what is typed for each.

    Group 2n of `written` is for string n within a row, group 2n + 1 for it at the end of one;
    `stays` tells the alternatives that equal their string.
    """

    pattern: re.Pattern[bytes]
    numbers: dict[bytes, int]
    written: WeightedTexts
    stays: tuple[bool, ...]


@cache
def table_of(path: Path) -> MarkTable:
    """Read a table of marks: clean, noisy, weight, where ('end': of a row, 'inside', '': both)."""
    forms = defaultdict[tuple[str, bool], Forms](list)
    for clean, noisy, weight, where in rows_of(path):
        for at_end in (False, True):
            if where in ("", "end" if at_end else "inside"):
                forms[clean, at_end].append((noisy, int(weight)))
    strings = sorted({clean for clean, _ in forms}, key=len, reverse=True)
    groups = [forms[clean, at_end] or [(clean, 1)] for clean in strings for at_end in (False, True)]
    cleans = [clean for clean in strings for _ in range(2)]
    stays = [
        form == clean for clean, group in zip(cleans, groups, strict=True) for form, _ in group
    ]
    return MarkTable(
        re.compile(b"|".join(re.escape(clean.encode()) for clean in strings)),
        {clean.encode(): number for number, clean in enumerate(strings)},
        WeightedTexts.of(np.arange(len(groups)), groups),
        tuple(stays),
    )


@dataclass(frozen=True)
class TypedMarks:
    """Replace strings of marks, each with its rate; `limits`: one for every strength.

    Draw number i of a row decides on its i-th string, and what is typed for it.
    """

    table: MarkTable
    limits: I64

    @property
    def needs(self) -> bytes:
        """The bytes that tell the strings from plain text: of ' — ', the first of the dash."""
        return bytes({max(string) for string in self.table.numbers})

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        find, number_of = self.table.pattern.finditer, self.table.numbers
        found = [
            (row, *match.span(), number_of[match[0]])
            for row, content in enumerate(texts.to_arrow().to_pylist())
            for match in find(content)
        ]
        rows, starts, stops, numbers = np.array(found, np.int64).reshape(-1, 4).T
        starts, stops = starts + texts.offsets[rows], stops + texts.offsets[rows]
        at_end = stops == texts.offsets[rows + 1]
        follows = code_points(texts.values, np.minimum(stops, len(texts.values) - 1))
        whole = at_end | ~joins_previous(follows)
        hit, draws = hits(keys, rows, self.limits.take(variants["rate"]), whole)
        groups = 2 * numbers.take(hit) + at_end.take(hit)
        written = self.table.written.pick(groups, choices(draws))
        edits = Edits(
            rows.take(hit), starts.take(hit), stops.take(hit), written, self.table.written.pool
        )
        return edits.keep(~np.array(self.table.stays, np.bool_).take(written))

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of one row."""
        content = row.text.encode()
        found, edits = list(self.table.pattern.finditer(content)), list[RowEdit]()
        whole = [
            number
            for number, match in enumerate(found)
            if not joins(
                ord(content[match.end() : match.end() + 4].decode(errors="ignore")[:1] or " ")
            )
        ]
        limit, at, start = int(self.limits[draws.variants["rate"]]), 0, 0
        for number, drawn in row_hits(draws.key, whole, limit):
            match = found[number]
            group = 2 * self.table.numbers[match[0]] + (match.end() == len(content))
            start, at = start + len(content[at : match.start()].decode()), match.start()
            written, clean = self.table.written.written(group, drawn), match[0].decode()
            if written != clean:
                edits.append((start, start + len(clean), written))
        return edits


def _typed(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return the table of a language, or that for languages without their own."""
    return _TYPED.read(settings, values) or [_TYPED.of("any")]


@kernel("mark", _typed, kind="style")
def mark(settings: Settings, *, rate: float = 0.5) -> TypedMarks:
    """Type punctuation as keyboards and phones have it: '“Well…” – no' -> '"Well..." - no'."""
    [path] = _typed(settings, {})
    return TypedMarks(table_of(path), settings.limits(rate))
