"""Insertions: emoticons, emoji and interjections at the places where people put them.

They add content, so they change what a text says, and no default recipe has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.noising.edits import Edits
from noisegen.noising.lexicon import Entry, Lexicon
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import Variants, WeightedChoices, choices, hits
from noisegen.text.buffers import I64, U64, Texts, code_points, is_byte
from noisegen.text.case import characters_in
from noisegen.transforms import IS_BREAK, IS_END, IS_SPACE, LanguageFiles

START, OPENING, COMMA, BARE, MARK, STOP = range(6)  # kinds of place
# What a list may hold for a kind of place: at the start of a text before a small letter, there
# before a capital, behind a comma, at the end, before the last mark, instead of a full stop.
ROLES = (
    ("start",), ("opening",), ("comma",),
    ("end",), ("end", "before"), ("end", "before", "instead"),
)  # fmt: skip
WORDS_BESIDE_COMMA = 3  # on either side: fewer are an address or a greeting
STOPPED_WORD_MIN = 5  # characters; shorter words before a full stop are often abbreviations

_GOES_ON = is_byte(b"abcdefghijklmnopqrstuvwxyz0123456789")


@dataclass(frozen=True)
class Insertions:
    """Insert at each place with its rate; `limits` has the 48-bit threshold of every strength.

    Group k of `choices` is for places of kind k. Alternative a is `pool[a]`, begins `backs[a]`
    bytes before the place and takes `widths[a]` bytes of text. Draw number i of a row decides on
    its i-th place for which there is something.
    """

    choices: WeightedChoices
    backs: I64
    widths: I64
    pool: pa.Array
    limits: I64

    @classmethod
    def of(cls, entries: list[Entry], limits: I64) -> "Insertions":
        """Compile a list whose `clean` is the role of each insertion."""
        groups = [[entry for entry in entries if entry.clean in roles] for roles in ROLES]
        listed = [(role, noisy) for group in groups for role, noisy, *_ in group]
        written = [
            f"{noisy} " if role in ("start", "opening") else f" {noisy}" for role, noisy in listed
        ]
        return cls(
            WeightedChoices.of([entry.weight for entry in group] for group in groups),
            np.array([role in ("before", "instead") for role, _ in listed], np.int64),
            np.array([role == "instead" for role, _ in listed], np.int64),
            Texts.from_strings(written).to_arrow(),
            limits,
        )

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the insertions of all rows."""
        rows, at, kinds = places(texts)
        served = np.flatnonzero(np.isin(kinds, self.choices.groups))
        rows, at, kinds = rows.take(served), at.take(served), kinds.take(served)
        hit, draws = hits(keys, rows, self.limits.take(variants["rate"]))
        written = self.choices.pick(kinds.take(hit), choices(draws))
        starts = at.take(hit) - self.backs.take(written)
        stops = starts + self.widths.take(written)
        return Edits(rows.take(hit), starts, stops, written, self.pool)


def places(texts: Texts) -> tuple[I64, I64, I64]:
    """Return row, byte position and kind of all places, in ascending order."""
    if not len(texts.window):
        none = np.zeros(0, np.int64)
        return none, none, none
    inked = np.flatnonzero(~IS_SPACE[texts.window]) + int(texts.offsets[0])
    # An end comes first: where rows touch, it may be at the same byte as the start of the next.
    columns = zip(_ends(texts, inked), _commas(texts), _starts(texts, inked), strict=True)
    at, kinds = (np.concatenate(column) for column in columns)
    order = np.argsort(at, kind="stable")
    at, kinds = at.take(order), kinds.take(order)
    return np.searchsorted(texts.offsets, at - (kinds >= BARE), side="right") - 1, at, kinds


def _ends(texts: Texts, inked: I64) -> tuple[I64, I64]:
    """Return the ends of lines and sentences with their kinds, by the marks before them.

    Within a line a mark ends a sentence, but a full stop behind what may be an abbreviation.
    """
    base, window, words = int(texts.offsets[0]), texts.window, texts.tokens
    edges = np.concatenate([np.flatnonzero(IS_BREAK[window]) + base, texts.offsets[1:]])
    last = np.searchsorted(inked, edges) - 1  # sign of every line
    marks = np.flatnonzero(IS_END[window[:-2]])
    marks = marks[(window[marks + 1] == ord(" ")) & ~_GOES_ON[window[marks + 2]]] + base
    marks = marks[marks + 2 < texts.offsets[texts.rows_of(marks) + 1]]
    ends_sentence = window[marks - base] != ord(".")
    if len(words):
        number = np.minimum(np.searchsorted(words.stops, marks), len(words) - 1)
        starts, stops = words.starts.take(number), words.stops.take(number)
        sizes = characters_in(window, starts - base, stops - base)
        ends_sentence |= (stops == marks) & (sizes >= STOPPED_WORD_MIN)
    ends = np.union1d(inked.take(last[last >= 0]), marks[ends_sentence]) + 1
    sign, before = window[ends - base - 1], window[np.maximum(ends - base - 2, 0)]
    alone = ~IS_END[before] & ~IS_SPACE[before]  # neither "?!" nor "word ?"
    single = IS_END[sign] & alone & ~np.isin(ends - 1, texts.offsets)
    return ends, np.where(single, np.where(sign == ord("."), STOP, MARK), BARE)


def _starts(texts: Texts, inked: I64) -> tuple[I64, I64]:
    """Return the first sign of every row that begins with a letter, and its kind."""
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
    """Return the positions behind commas that are the only one of a row, between clauses."""
    base, window, words = int(texts.offsets[0]), texts.window, texts.tokens
    at = np.flatnonzero(window == ord(",")) + base
    rows = texts.rows_of(at)
    single = np.bincount(rows, minlength=len(texts)).take(rows) == 1
    spaced = window.take(at - base + 1, mode="clip") == ord(" ")
    fit = single & spaced & (at + 1 < texts.offsets[rows + 1])
    at, rows = at[fit], rows[fit]
    passed = np.searchsorted(words.starts, at)
    firsts, lasts = (np.searchsorted(words.rows, rows + more) for more in (0, 1))
    between = np.minimum(passed - firsts, lasts - passed) >= WORDS_BESIDE_COMMA
    return at[between] + 1, np.full(int(between.sum()), COMMA)


_EMOTICONS, _INTERJECTIONS = LanguageFiles("emot.tsv"), LanguageFiles("intj.tsv")


def _emoticons(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return the list of a language, or that for languages without their own."""
    return _EMOTICONS.read(settings, values) or [_EMOTICONS.of("any")]


@kernel("emot", _emoticons, keeps_meaning=False, kind="style")
def emot(settings: Settings, *, rate: float = 0.3) -> Insertions:
    """Add emoticons and emoji at the ends of sentences: 'See you.' -> 'See you :)'."""
    [path] = _emoticons(settings, {})
    return Insertions.of(Lexicon.load(path).entries, settings.limits(rate))


@kernel("intj", _INTERJECTIONS.read, _INTERJECTIONS.languages, keeps_meaning=False, kind="style")
def intj(settings: Settings, *, rate: float = 0.1) -> Insertions:
    """Add interjections: 'he forgot his keys' -> 'he forgot his keys lol'."""
    entries = Lexicon.load(_INTERJECTIONS.of(settings.lang)).entries
    return Insertions.of(entries, settings.limits(rate))
