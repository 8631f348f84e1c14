"""Several slips of the fingers in one word: 'amazing' as 'amzaign'."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from noisegen import keyboards
from noisegen.characters import CharacterMap, Variants, code_points, utf8_lengths
from noisegen.draws import (
    CHOICE_BITS,
    DECISION_BITS,
    I64,
    U64,
    choices,
    decisions,
    draw_array,
    fork_array,
)
from noisegen.edits import Edits
from noisegen.registry import Settings, kernel
from noisegen.text import Bool, Texts, ordinals
from noisegen.words import WORD_BYTES_MAX

SLIPS_FROM = (3, 6, 10)  # letters from which on a word gets one, two, three slips
ADDED, SWAPPED, DOUBLED, DROPPED = range(4)  # ADDED: a neighbouring key is hit too
KINDS = np.array([ADDED] * 3 + [SWAPPED] * 2 + [DOUBLED] + [DROPPED] * 2)  # of eight slips
_POINT_BITS = 21  # of a code point


@dataclass(frozen=True)
class Letters:
    """The letters of words: byte range, code point and place in the map of keys.

    Word i has `counts[i]` letters, and `firsts[i]` is the number of its first one.
    """

    starts: I64
    stops: I64
    points: I64
    places: I64
    firsts: I64
    counts: I64


@dataclass(frozen=True)
class Slips:
    """Slips in ascending order: word, kind, letter, and the draw that says which key."""

    words: I64
    kinds: I64
    letters: I64
    draws: U64


@dataclass(frozen=True)
class Mashing:
    """Mash words, each with its rate; a word is letters of the keyboard, three of them at least.

    Draw i of a row decides on its i-th word. The first letter stays, as it is seldom wrong (Kukich,
    1992). The others are parted into as many
    runs as there are slips; draws 6i + 2k and 6i + 2k + 1 of the stream "slip" make the k-th.
    """

    keys: CharacterMap
    limits: I64

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the slips of all rows."""
        words, numbers = texts.tokens, ordinals(texts.tokens.rows)
        drawn = decisions(draw_array(keys.take(words.rows), numbers))
        sizes = words.stops - words.starts
        fits = (sizes >= SLIPS_FROM[0]) & (sizes <= WORD_BYTES_MAX)
        hit = np.flatnonzero((drawn < self.limits.take(variants["rate"]).take(words.rows)) & fits)
        rows = words.rows.take(hit)
        letters, typed = self._letters(texts, words.starts.take(hit), words.stops.take(hit))
        slips = _drawn(letters, typed, fork_array(keys, "slip").take(rows), numbers.take(hit))
        return self._edits(letters, slips, rows)

    def _letters(self, texts: Texts, starts: I64, stops: I64) -> tuple[Letters, Bool]:
        """Return the letters of words, and whether a word has no other signs."""
        sizes = stops - starts
        at = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        points = code_points(texts.values, at)
        lead = np.flatnonzero(points >= 0)
        at, points = at.take(lead), points.take(lead)
        owners = np.repeat(np.arange(len(starts)), sizes).take(lead)
        places, known = self.keys.places(points)
        counts = np.bincount(owners, minlength=len(starts))
        typed: Bool = np.bincount(owners, known, len(starts)) == counts
        firsts = np.cumsum(counts) - counts
        return Letters(at, at + utf8_lengths(points), points, places, firsts, counts), typed

    def _edits(self, letters: Letters, slips: Slips, rows: I64) -> Edits:
        """Return the edits of slips; `rows` has the row of every word."""
        starts = letters.starts.take(slips.letters)
        stops = letters.stops.take(slips.letters + (slips.kinds == SWAPPED))
        codes, written = np.unique(self._written(letters, slips), return_inverse=True)
        pool = Texts.from_strings([_text(code) for code in codes.tolist()]).to_arrow()
        return Edits(rows.take(slips.words), starts, stops, written.astype(np.int64), pool)

    def _written(self, letters: Letters, slips: Slips) -> I64:
        """Return the code of what each slip writes: two code points, or 0 for nothing."""
        points, following = (letters.points.take(slips.letters + k, mode="clip") for k in (0, 1))
        drawn = (letters.places.take(slips.letters) << 17) + choices(slips.draws)
        keys = self._neighbours.take(np.searchsorted(self.keys.uppers, drawn, side="right"))
        behind = decisions(slips.draws) & 1 == 1
        added = np.where(behind, _code(points, keys), _code(keys, points))
        swapped, doubled = _code(following, points), _code(points, points)
        written: I64 = np.choose(slips.kinds, [added, swapped, doubled, 0 * points])
        return written

    @cached_property
    def _neighbours(self) -> I64:
        """The code point of every alternative of the map."""
        pool = Texts.from_arrow(self.keys.pool)
        return code_points(pool.values, pool.offsets[:-1])


def _code(first: I64, second: I64) -> I64:
    code: I64 = first << _POINT_BITS | second
    return code


def _text(code: int) -> str:
    first, second = code >> _POINT_BITS, code & ((1 << _POINT_BITS) - 1)
    return chr(first) + chr(second) if code else ""


def _drawn(letters: Letters, typed: Bool, keys: U64, numbers: I64) -> Slips:
    """Draw the slips of words, which are words `numbers` of the rows with these keys."""
    counts = np.searchsorted(SLIPS_FROM, letters.counts, side="right") * typed
    words = np.repeat(np.arange(len(counts)), counts)
    part, parts = ordinals(words), counts.take(words)
    first = 2 * (len(SLIPS_FROM) * numbers.take(words) + part)
    draws, others = (draw_array(keys.take(words), first + k) for k in (0, 1))
    kinds = KINDS[(choices(draws) * len(KINDS)) >> CHOICE_BITS]
    left = letters.counts.take(words) - 1
    low, high = (1 + left * (part + k) // parts for k in (0, 1))
    at = low + ((decisions(draws) * (high - low)) >> DECISION_BITS)
    at = letters.firsts.take(words) + np.minimum(at, high - 1 - (kinds == SWAPPED))
    same = letters.points.take(at) == letters.points.take(at + 1, mode="clip")
    kept = np.flatnonzero((kinds != SWAPPED) | ~same)
    return Slips(words.take(kept), kinds.take(kept), at.take(kept), others.take(kept))


def _layout_file(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    layout = keyboards.keyboard_of(settings.lang, values.get("layout"))
    return [keyboards.KEYBOARDS / f"{layout.name}.tsv"]


@kernel("mash", _layout_file, keyboards.languages)
def mash(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Mashing:
    """Slip several times in a word: 'amazing' -> 'amzaign'.

    A neighbouring key is hit beside the right one, letters are swapped, doubled or left out: one
    slip in a word of three to five letters, two in one of up to nine, three in a longer one.
    """
    entries = keyboards.keyboard_of(settings.lang, layout).neighbours()
    return Mashing(CharacterMap(entries), settings.limits(rate))
