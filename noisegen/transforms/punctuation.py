"""Transforms of punctuation: `punc` drops, repeats and misplaces signs, `mark` types plain signs.

A sign is one of `SIGNS`. `changes` decides how a sign may be changed under each rate of `punc`. It
is used for single rows, with facts about one sign as bools and numbers, and for batches, with facts
about all signs as arrays.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisegen.noising.edits import Edits
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import (
    RowDraws,
    Strengths,
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
    find_sorted,
    is_byte,
    joins,
    joins_previous,
    utf8_lengths,
)
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import IS_SPACE, SPACES, Forms, LanguageFiles, rows_of

ENDS = ".!?…。！？｡।॥؟۔።։"  # signs that end a sentence: Unicode's Sentence_Terminal, in daily use
COMMAS = ",，、،፣"
OTHERS = ";:；：؛"
SIGNS = "".join(sorted(ENDS + COMMAS + OTHERS))
SET_APART = ",!?;:،؟؛।"  # signs before which some writers put a space, as in French
CLOSING = ".!?"  # signs after which some writers leave out the space
WIDE = "。！？｡，、；："  # East Asian signs, which no space follows
REPEATED = {2: 4, 3: 5, 4: 2, 5: 1}  # count of signs in a row -> weight: '!!' 4, '!!!' 5, ...
# Sign -> the sign followed by another sign.
MIXED = {
    "!": "!?",
    "?": "?!",
    "！": "！？",
    "？": "？！",
}
MIXED_WEIGHT = 2  # weight of a form in `MIXED`
SPACES_MAX = 16  # a sign ends its row even if up to so many spaces follow it

# The rates of `punc`: each is the chance of one kind of change. They are applied in this order.
RATES = ("drop_rate", "comma_rate", "blank_rate", "repeat_rate", "glue_rate")
LEAVING_OUT = RATES[:2]  # rates of the changes that drop a sign


# `_GROUPS` has what is written for a sign: the repeated forms of each sign, then '', then a space.


def _repeated(sign: str) -> Forms:
    """Return the ways to repeat a sign, with their weights: '!!', '!!!', ..., '!?' for '!'."""
    forms = [(sign * count, weight) for count, weight in REPEATED.items()]
    return [*forms, (MIXED[sign], MIXED_WEIGHT)] if sign in MIXED else forms


_REPEATABLE = [sign for sign in SIGNS if sign in ENDS and sign not in "…॥"]
_NOTHING = len(_REPEATABLE)
_SPACE = _NOTHING + 1
_GROUPS = [*map(_repeated, _REPEATABLE), [("", 1)], [(" ", 1)]]
_WRITTEN = WeightedTexts.of(np.arange(len(_GROUPS)), _GROUPS)


Fact = Any  # a bool or number about a punctuation sign, or an array for all signs of a batch


class Kind(NamedTuple):
    """Facts about a character in `SIGNS` that hold in any text."""

    is_end: Fact
    is_comma: Fact
    is_wide: Fact
    is_set_apart: Fact
    is_closing: Fact
    is_full_stop: Fact
    is_repeated: Fact  # may be repeated within a row; false for '.', which may mark abbreviations
    repeated: Fact  # index in `_GROUPS` of the repeated forms of the sign


def _kind(sign: str) -> Kind:
    is_repeatable = sign in _REPEATABLE
    return Kind(
        is_end=sign in ENDS,
        is_comma=sign in COMMAS,
        is_wide=sign in WIDE,
        is_set_apart=sign in SET_APART,
        is_closing=sign in CLOSING,
        is_full_stop=sign == ".",
        is_repeated=is_repeatable and sign != ".",
        repeated=_REPEATABLE.index(sign) if is_repeatable else _NOTHING,
    )


class Sign(NamedTuple):
    """Facts about one sign in its row, or arrays of these facts for all signs of a batch.

    Positions are character offsets in the row for one sign, byte offsets in the batch for arrays.
    """

    kind: Kind
    start: Fact
    stop: Fact
    text_stop: Fact  # position of the end of the row, without up to `SPACES_MAX` last spaces
    is_behind_text: Fact  # a character other than a space is somewhere before the sign in its row
    is_behind_space: Fact
    is_behind_word: Fact  # a character other than a space is directly before the sign
    is_behind_small: Fact  # 3 bytes of small letters precede the sign, as in 'said.', not in 'Mr.'
    is_before_space: Fact  # a space or the end of the row follows the sign
    is_before_word: Fact  # a space and then a character that is no space or sign follow the sign


# Change of a sign: (is allowed, start and stop of the text to replace, index in `_GROUPS`).
Change = tuple[Fact, Fact, Fact, Fact]


def changes(sign: Sign) -> dict[str, Change]:
    """Return {name of a rate of `punc`: its change of a sign, or of each sign of a batch}.

    A sign at the beginning of its row is not dropped, as a row of '?' alone would become empty.
    """
    kind, start, stop = sign.kind, sign.start, sign.stop
    ends_word = sign.is_before_space | kind.is_wide
    ends_row = kind.is_end & (stop == sign.text_stop)
    ends_sentence = kind.is_closing & sign.is_behind_small
    drops_comma = kind.is_comma & ends_word & sign.is_behind_text
    is_set_apart = kind.is_set_apart | (kind.is_full_stop & ends_sentence)
    is_repeated = kind.is_repeated | (kind.is_full_stop & ends_row)
    is_glued = (kind.is_comma | ends_sentence) & sign.is_before_word
    without_space = start - sign.is_behind_space  # drops the space too: 'ça !' -> 'ça'
    keeps_words_apart = kind.is_wide & (stop < sign.text_stop)
    return {
        "drop_rate": (ends_row & sign.is_behind_text, without_space, stop, _NOTHING),
        "comma_rate": (drops_comma, without_space, stop, _NOTHING + keeps_words_apart),
        "blank_rate": (ends_word & sign.is_behind_word & is_set_apart, start, start, _SPACE),
        "repeat_rate": (ends_word & is_repeated, start, stop, kind.repeated),
        "glue_rate": (is_glued, stop, stop + 1, _NOTHING),
    }


@dataclass(frozen=True)
class Punctuation:
    """Kernel that changes punctuation signs in several ways, each with its own rate.

    `limits` maps 'drop_rate' and so on to the rate at each strength of the recipe, in units of
    2^-48. Each rate has its own random stream, whose i-th number decides on the i-th sign of a row.
    A dropped sign gets no other change. Signs that touch another sign stay, because '...' and '?!'
    have a meaning.
    """

    limits: Mapping[str, I64]
    needs: bytes = bytes({sign.encode()[0] for sign in SIGNS})

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits of the signs that change in one row."""
        edits: list[RowEdit] = []
        possible = _row_changes(row.text)
        for rate in RATES if possible else ():
            limit = int(self.limits[rate][draws.strengths[rate]])
            for number, drawn in row_hits(fork(draws.key, rate), list(possible), limit):
                is_allowed, start, stop, group = possible[number][rate]
                if is_allowed:
                    edits.append((start, stop, _WRITTEN.written(group, drawn)))
                    if rate in LEAVING_OUT:
                        del possible[number]
        return sorted(edits, key=itemgetter(0))

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits of the signs that change in a batch of rows."""
        if not len(texts.window):
            return Edits.none()
        parts = list[Edits]()
        rows, may_change, signs = _signs_of(texts, self.needs)
        possible = changes(signs)
        for rate in RATES:
            is_allowed, starts, stops, groups = possible[rate]
            limits = self.limits[rate].take(strengths[rate])
            at, draws = hits(fork_array(keys, rate), rows, limits, is_allowed & may_change)
            if isinstance(groups, np.ndarray):  # else one group serves all signs
                groups = groups.take(at)
            written = _WRITTEN.pick(groups, choices(draws))
            edges = starts.take(at), stops.take(at)
            parts.append(Edits(rows.take(at), *edges, written, _WRITTEN.pool))
            if rate in LEAVING_OUT:
                may_change[at] = False
        return Edits.join(parts)


_KINDS = {sign: _kind(sign) for sign in SIGNS}
_SIGN = re.compile(f"[{SIGNS}]")
_SMALL = re.compile(rb"[a-z\x80-\xff]{3}")


def _row_changes(text: str) -> dict[int, dict[str, Change]]:
    """Return the result of `changes` for each sign of a row, by the sign's index among all signs.

    Signs that touch another sign are left out.
    """
    found: dict[int, dict[str, Change]] = {}
    starts = [match.start() for match in _SIGN.finditer(text)]
    text_start = len(text) - len(text.lstrip(SPACES))
    text_stop = max(len(text.rstrip(SPACES)), len(text) - SPACES_MAX)
    for number, start in enumerate(starts):
        stop = start + 1
        before, behind = text[start - 1 : start], text[stop : stop + 1]  # '' counts as a space
        if before in _KINDS or behind in _KINDS:
            continue
        kind, is_before_word = _KINDS[text[start]], False
        if behind == " ":
            then = text[stop + 1 : stop + 2]
            is_before_word = not (then in SPACES or then in _KINDS)
        last_bytes = text[max(0, start - 3) : start].encode()[-3:] if kind.is_closing else b""
        found[number] = changes(
            Sign(
                kind,
                start,
                stop,
                text_stop,
                is_behind_text=start > text_start,
                is_behind_space=before == " ",
                is_behind_word=before not in SPACES,
                is_behind_small=_SMALL.fullmatch(last_bytes) is not None,
                is_before_space=behind in SPACES,
                is_before_word=is_before_word,
            )
        )
    return found


_POINTS = np.array(list(map(ord, SIGNS)))
_KINDS_OF_POINTS = Kind(*map(np.array, zip(*_KINDS.values(), strict=True)))
_IS_SMALL = is_byte(bytes(byte for byte in range(256) if _SMALL.match(bytes([byte] * 3))))


def _signs_of(texts: Texts, lead_bytes: bytes) -> tuple[I64, Bool, Sign]:
    """Find all signs of a batch; return their rows, whether each is alone, and facts about them.

    A sign is alone if it touches no other sign. `lead_bytes` has the first UTF-8 byte of each sign.
    """
    starts = texts.positions_of(lead_bytes)
    numbers, known = find_sorted(_POINTS, code_points(texts.values, starts))
    starts, numbers = starts[known], numbers[known]
    values, stops = texts.values, starts + utf8_lengths(_POINTS[numbers])
    rows = texts.rows_of(starts)
    row_starts, row_stops = texts.offsets[rows], texts.offsets[rows + 1]
    touches_earlier = (np.diff(rows, prepend=-1) == 0) & (starts == np.roll(stops, 1))
    is_alone = ~touches_earlier & ~np.append(touches_earlier[1:], False)
    before, behind, then = (values.take(at, mode="clip") for at in (starts - 1, stops, stops + 1))
    is_inner = starts > row_starts
    small = [_IS_SMALL[values.take(starts - back, mode="clip")] for back in (1, 2, 3)]
    inked = np.flatnonzero(~IS_SPACE[texts.window]) + texts.offsets[0]
    inked_before = np.searchsorted(inked, texts.offsets)  # count of non-space bytes before a row
    last_inked = inked.take(inked_before.take(rows + 1) - 1)
    is_before_word = (stops + 1 < row_stops) & (behind == ord(" ")) & ~IS_SPACE[then]
    return (
        rows,
        is_alone,
        Sign(
            Kind(*(fact.take(numbers) for fact in _KINDS_OF_POINTS)),
            starts,
            stops,
            np.maximum(last_inked + 1, row_stops - SPACES_MAX),
            is_behind_text=np.searchsorted(inked, starts) > inked_before.take(rows),
            is_behind_space=is_inner & (before == ord(" ")),
            is_behind_word=is_inner & ~IS_SPACE[before],
            is_behind_small=np.all([starts - row_starts >= len(small), *small], axis=0),
            is_before_space=(stops == row_stops) | IS_SPACE[behind],
            is_before_word=is_before_word & (np.append(starts[1:], -1) != stops + 1),
        ),
    )


@kernel("punc", kind="style")
def punc(
    settings: Settings,
    *,
    drop_rate: float = 0.6,
    comma_rate: float = 0.3,
    repeat_rate: float = 0.1,
    blank_rate: float = 0.02,
    glue_rate: float = 0.05,
) -> Punctuation:
    """Drop, repeat and misplace punctuation: 'Really? Yes, I know.' -> 'Really?? Yes I know'.

    `drop_rate` is the chance that a single end mark at the end of the row is dropped; nine in ten
    social media posts of ViLexNorm have no end mark there. The other rates are the chances that a
    comma is dropped (`comma_rate`), that an end mark is repeated (`repeat_rate`), that a space is
    put before a mark (`blank_rate`), and that the space after a comma or the end of a sentence is
    dropped (`glue_rate`).
    """
    rates = {
        "drop_rate": drop_rate,
        "comma_rate": comma_rate,
        "repeat_rate": repeat_rate,
        "blank_rate": blank_rate,
        "glue_rate": glue_rate,
    }
    return Punctuation({name: settings.limits(rate) for name, rate in rates.items()})


# Punctuation that people type otherwise than books print it: '"' for '“', '...' for '…'.

_TYPED = LanguageFiles("mark.tsv")


@dataclass(frozen=True)
class TypedForms:
    """Printed strings, such as '“', and the forms in which people type each string.

    `strings` has the printed strings, the longest first. `written` has two groups of typed forms
    per string: group 2n for string n within a row, group 2n + 1 for string n at the end of a row.
    `stays` tells for each typed form whether it equals the printed string.
    """

    strings: tuple[str, ...]
    written: WeightedTexts
    stays: Bool

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern that finds the printed strings in a row."""
        return re.compile("|".join(map(re.escape, self.strings)))

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Dictionary from each printed string to its number: its index in `strings`."""
        return {string: number for number, string in enumerate(self.strings)}


@cache
def table_of(path: Path) -> TypedForms:
    """Read the forms typed for printed strings; the columns are clean, noisy, weight, where.

    `where` is 'end' (of a row), 'inside' (a row) or '' for both.
    """
    forms = defaultdict[tuple[str, bool], Forms](list)
    for clean, noisy, weight, where in rows_of(path):
        for at_end in (False, True):
            if where in ("", "end" if at_end else "inside"):
                forms[clean, at_end].append((noisy, int(weight)))
    strings = sorted({clean for clean, _ in forms}, key=len, reverse=True)
    groups, stays = list[Forms](), list[bool]()
    for clean in strings:
        for at_end in (False, True):
            group = forms[clean, at_end] or [(clean, 1)]
            groups.append(group)
            stays += [noisy == clean for noisy, _ in group]
    written = WeightedTexts.of(np.arange(len(groups)), groups)
    return TypedForms(tuple(strings), written, np.array(stays, np.bool_))


@dataclass(frozen=True)
class TypedMarks:
    """Kernel that replaces printed strings by typed forms, each string with chance `rate`.

    `limits` has `rate` at each strength of the recipe, in units of 2^-48. The i-th random number of
    a row decides on its i-th printed string and chooses the typed form. A string stays if a
    combining mark follows it.
    """

    table: TypedForms
    limits: I64

    @property
    def needs(self) -> bytes:
        """Bytes, one per printed string: rows with none of them stay unchanged.

        It is the string's largest UTF-8 byte, which most rows lack: for ' — ', a byte of the dash.
        """
        return bytes({max(string.encode()) for string in self.table.strings})

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return an edit for each string of one row that is replaced."""
        edits: list[RowEdit] = []
        found = list(self.table.pattern.finditer(row.text))
        is_followed = [joins(ord(row.text[m.end() : m.end() + 1] or " ")) for m in found]
        whole = [number for number, joined in enumerate(is_followed) if not joined]
        limit = int(self.limits[draws.strengths["rate"]])
        for number, drawn in row_hits(draws.key, whole, limit):
            match = found[number]
            group = 2 * self.table.number_of[match[0]] + (match.end() == len(row.text))
            typed = self.table.written.written(group, drawn)
            if typed != match[0]:
                edits.append((*match.span(), typed))
        return edits

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return an edit for each string of a batch that is replaced."""
        rows, starts, stops, numbers = self._found_in(texts)
        at_end = stops == texts.offsets[rows + 1]
        behind = code_points(texts.values, np.minimum(stops, len(texts.values) - 1))
        whole = at_end | ~joins_previous(behind)
        hit, draws = hits(keys, rows, self.limits.take(strengths["rate"]), whole)
        groups = 2 * numbers.take(hit) + at_end.take(hit)
        written = self.table.written.pick(groups, choices(draws))
        edges = starts.take(hit), stops.take(hit)
        edits = Edits(rows.take(hit), *edges, written, self.table.written.pool)
        return edits.keep(~self.table.stays.take(written))

    def _found_in(self, texts: Texts) -> I64:
        """Find the printed strings of a batch; return an array of shape (4, strings found).

        It has for each find its row, start and stop in bytes, and the index in `strings`.
        """
        pattern = re.compile(self.table.pattern.pattern.encode())
        number_of = {string.encode(): n for string, n in self.table.number_of.items()}
        found = [
            (row, *match.span(), number_of[match[0]])
            for row, content in enumerate(texts.to_arrow().to_pylist())
            for match in pattern.finditer(content)
        ]
        columns: I64 = np.array(found, np.int64).reshape(-1, 4).T
        columns[1:3] += texts.offsets[columns[0]]
        return columns


@kernel("mark", _TYPED.read_or_any, kind="style")
def mark(settings: Settings, *, rate: float = 0.5) -> TypedMarks:
    """Type punctuation as keyboards and phones have it: '“Well…” – no' -> '"Well..." - no'."""
    [path] = _TYPED.read_or_any(settings, {})
    return TypedMarks(table_of(path), settings.limits(rate))
