"""Slips on a keyboard: a key hit for its neighbour, and several slips in one word.

The neighbours of a key are computed from the positions of keys on the layout of a language.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.errors import UsageError, did_you_mean
from noisegen.noise.edits import Edits
from noisegen.noise.kernels import Substitution, character_map
from noisegen.noise.lexicon import Entry, head_of
from noisegen.noise.registry import Settings, kernel
from noisegen.noise.rng import (
    CHOICE_BITS,
    DECISION_BITS,
    Variants,
    WeightedTexts,
    choices,
    decisions,
    draw_array,
    fork_array,
    hits,
)
from noisegen.text.buffers import (
    I64,
    U64,
    WORD_BYTES_MAX,
    Bool,
    Texts,
    code_points,
    ordinals,
    utf8_lengths,
)
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms import rows_of
from noisegen.transforms.nlaugmenter import original_characters, original_files

KEYBOARDS = DICTIONARIES / "keyboards"
REACH = 1.3  # in key widths: the keys that touch a key, up to six


@dataclass(frozen=True)
class Key:
    """A key: its place in key widths, and its letters without and with shift ('': none)."""

    x: float
    y: float
    plain: str
    shifted: str


@dataclass(frozen=True)
class Keyboard:
    """A layout and the languages that are typed on it."""

    name: str
    langs: tuple[str, ...]
    keys: tuple[Key, ...]

    def neighbours(self) -> list[Entry]:
        """Return every letter with the letters of the keys within `REACH`, at the same shift."""
        near = [
            (key, other)
            for key in self.keys
            for other in self.keys
            if 0 < hypot(key.x - other.x, key.y - other.y) <= REACH
        ]
        typed = {(key.plain, other.plain) for key, other in near}
        typed |= {(key.shifted, other.shifted) for key, other in near}
        return sorted(Entry(wanted, hit) for wanted, hit in typed if wanted and hit)


@cache
def read(path: Path) -> Keyboard:
    """Read a layout: `# key: value` lines, a header, then x, y, key, shifted."""
    head = head_of(path, "name", "lang")
    keys = (Key(float(x), float(y), plain, shifted) for x, y, plain, shifted in rows_of(path))
    return Keyboard(head["name"], tuple(head["lang"].split()), tuple(keys))


def all_keyboards() -> list[Keyboard]:
    """Return the packaged layouts."""
    return [read(path) for path in sorted(KEYBOARDS.glob("*.tsv"))]


def languages() -> list[str]:
    """Return the languages that have a layout."""
    return sorted({lang for keyboard in all_keyboards() for lang in keyboard.langs})


def keyboard_of(lang: str, layout: str | None = None) -> Keyboard:
    """Return the named layout, or that of a language; raises UsageError for an unknown name."""
    layouts = {keyboard.name: keyboard for keyboard in all_keyboards()}
    if layout is None:
        return next(keyboard for keyboard in layouts.values() if lang in keyboard.langs)
    if layout not in layouts:
        near = did_you_mean(layout, layouts) or f"; known: {', '.join(layouts)}"
        raise UsageError(f"no keyboard layout named {layout!r}{near}")
    return layouts[layout]


def _layout_file(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    return [KEYBOARDS / f"{keyboard_of(settings.lang, values.get('layout')).name}.tsv"]


def _key_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    layout = _layout_file(settings, values)  # raises for an unknown one
    return original_files(settings.nlaug_data, "fing") or layout


@kernel("fing", _key_files, languages)
def fing(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Substitution:
    """Hit a neighbouring key: 'soon' -> 'aiib'."""
    entries = original_characters(settings.nlaug_data, "fing")
    entries = entries or keyboard_of(settings.lang, layout).neighbours()
    return Substitution(character_map(entries), settings.gaps(rate))


SLIPS_FROM = (3, 6, 10)  # letters from which on a word gets one, two, three slips
ADDED, SWAPPED, DOUBLED, DROPPED = range(4)  # ADDED: a neighbouring key is hit too
KINDS = np.array([ADDED] * 3 + [SWAPPED] * 2 + [DOUBLED] + [DROPPED] * 2)  # of eight slips
_POINT_BITS = 21  # of a code point


@dataclass(frozen=True)
class Letters:
    """The letters of words: byte, code point, group in the map of keys.

    Word i has `counts[i]` letters, the first of which is number `firsts[i]`; `typed` tells whether
    all of them are on the keyboard.
    """

    starts: I64
    points: I64
    groups: I64
    firsts: I64
    counts: I64
    typed: Bool

    @classmethod
    def of(cls, texts: Texts, starts: I64, stops: I64, keys: WeightedTexts) -> "Letters":
        """Find the letters of the words in these byte ranges."""
        sizes = stops - starts
        at = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        points = code_points(texts.values, at)
        lead = np.flatnonzero(points >= 0)
        at, points = at.take(lead), points.take(lead)
        words = np.repeat(np.arange(len(starts)), sizes).take(lead)
        groups, known = keys.find(points)
        counts = np.bincount(words, minlength=len(starts))
        typed: Bool = np.bincount(words, known, len(starts)) == counts
        return cls(at, points, groups, np.cumsum(counts) - counts, counts, typed)


@dataclass(frozen=True)
class Mashing:
    """Mash words, each with its rate; a word is letters of the keyboard, three of them at least.

    Draw i of a row decides on its i-th word. The first letter stays, as it is seldom wrong (Kukich,
    1992). The others are split into as many runs as there are slips; draws 6i + 2k and 6i + 2k + 1
    of the stream "slip" make the k-th.
    """

    keys: WeightedTexts
    limits: I64

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the slips of all rows."""
        words = texts.tokens
        sizes = words.stops - words.starts
        fits = (sizes >= SLIPS_FROM[0]) & (sizes <= WORD_BYTES_MAX)
        hit, _ = hits(keys, words.rows, self.limits.take(variants["rate"]), fits)
        rows, numbers = words.rows.take(hit), ordinals(words.rows).take(hit)
        letters = Letters.of(texts, words.starts.take(hit), words.stops.take(hit), self.keys)
        slips = Slips.drawn(letters, fork_array(keys, "slip").take(rows), numbers)
        last = slips.letters + (slips.kinds == SWAPPED)
        stops = letters.starts.take(last) + utf8_lengths(letters.points.take(last))
        codes, written = np.unique(self._codes(letters, slips), return_inverse=True)
        pairs = [divmod(code, 1 << _POINT_BITS) for code in codes.tolist()]
        pool = Texts.from_strings(["".join(map(chr, pair)) if any(pair) else "" for pair in pairs])
        starts = letters.starts.take(slips.letters)
        edges = rows.take(slips.words), starts, stops
        return Edits(*edges, written.astype(np.int64), pool.to_arrow())

    def _codes(self, letters: Letters, slips: "Slips") -> I64:
        """Return what each slip writes: two code points as one number, or 0 for nothing."""
        here, following = (letters.points.take(slips.letters + k, mode="clip") for k in (0, 1))
        keys = self.keys.pick(letters.groups.take(slips.letters), choices(slips.draws))
        hit = self._neighbours.take(keys)
        behind = decisions(slips.draws) & 1 == 1
        first = np.where(behind, here, hit), following, here
        second = np.where(behind, hit, here), here, here
        pairs = [a << _POINT_BITS | b for a, b in zip(first, second, strict=True)]
        codes: I64 = np.choose(slips.kinds, [*pairs, np.zeros_like(here)])
        return codes

    @cached_property
    def _neighbours(self) -> I64:
        """The code point of every alternative of the map."""
        pool = Texts.from_arrow(self.keys.pool)
        return code_points(pool.values, pool.offsets[:-1])


@dataclass(frozen=True)
class Slips:
    """Slips in ascending order: word, kind, letter, and the draw that chooses the key."""

    words: I64
    kinds: I64
    letters: I64
    draws: U64

    @classmethod
    def drawn(cls, letters: Letters, keys: U64, numbers: I64) -> "Slips":
        """Draw the slips of words, which are words `numbers` of the rows with these keys."""
        counts = np.searchsorted(SLIPS_FROM, letters.counts, side="right") * letters.typed
        words = np.repeat(np.arange(len(counts)), counts)
        part, parts = ordinals(words), counts.take(words)
        number = 2 * (len(SLIPS_FROM) * numbers.take(words) + part)
        draws, key_draws = (draw_array(keys.take(words), number + k) for k in (0, 1))
        kinds = KINDS[(choices(draws) * len(KINDS)) >> CHOICE_BITS]
        left = letters.counts.take(words) - 1
        low, high = (1 + left * (part + k) // parts for k in (0, 1))
        at = low + ((decisions(draws) * (high - low)) >> DECISION_BITS)
        at = letters.firsts.take(words) + np.minimum(at, high - 1 - (kinds == SWAPPED))
        same = letters.points.take(at) == letters.points.take(at + 1, mode="clip")
        kept = np.flatnonzero((kinds != SWAPPED) | ~same)
        return cls(words.take(kept), kinds.take(kept), at.take(kept), key_draws.take(kept))


@kernel("mash", _layout_file, languages)
def mash(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Mashing:
    """Slip several times in a word: 'amazing' -> 'amzaign'.

    A neighbouring key is hit beside the right one, letters are swapped, doubled or left out: one
    slip in a word of three to five letters, two in one of up to nine, three in a longer one.
    """
    entries = keyboard_of(settings.lang, layout).neighbours()
    return Mashing(character_map(entries), settings.limits(rate))
