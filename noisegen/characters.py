"""The character kernels: substitution by a weighted map, and blanks added or dropped.

Chances are per character. Hits are drawn over byte positions, and those that are not the first byte
of a candidate are thinned out, which leaves the rate of every candidate as asked.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from noisegen.draws import CHOICE_BITS, I64, U64, GapTables, fork_array
from noisegen.edits import Edits
from noisegen.lexicon import Entry
from noisegen.text import U8, Bool, Texts

Variants = Mapping[str, I64]  # for each rate parameter, which of its strengths every row has


def code_points(values: U8, at: I64) -> I64:
    """Return the code point that starts at each byte position, -1 inside a character."""
    padded = np.concatenate([values, np.zeros(3, np.uint8)]) if _near_end(values, at) else values
    lead = padded[at].astype(np.int64)
    points = np.where(lead < 0x80, lead, -1)
    for size, least, most, bits in (
        (2, 0xC2, 0xDF, 0x1F),
        (3, 0xE0, 0xEF, 0x0F),
        (4, 0xF0, 0xF4, 7),
    ):
        long = np.flatnonzero((lead >= least) & (lead <= most))
        found = lead[long] & bits
        for offset in range(1, size):
            found = (found << 6) | (padded[at[long] + offset].astype(np.int64) & 0x3F)
        points[long] = found
    return points


def _near_end(values: U8, at: I64) -> bool:
    return bool(len(at)) and int(at.max()) + 4 > len(values)


def utf8_lengths(points: I64) -> I64:
    """Return the bytes of every code point."""
    return 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000).astype(np.int64)


@cache
def _joins(point: int) -> bool:
    """Tell whether a character belongs to the one before it: marks, joiners, skin tones, flags."""
    character = chr(point)
    extra = point == 0x200D or 0x1F3FB <= point <= 0x1F3FF or 0x1F1E6 <= point <= 0x1F1FF
    return extra or unicodedata.category(character).startswith("M")


def joins(points: I64) -> Bool:
    """Tell for every code point whether it belongs to the character before it."""
    found = np.zeros(len(points), np.bool_)
    high = np.flatnonzero(points >= 0x300)
    kinds, which = np.unique(points[high], return_inverse=True)
    found[high] = np.array([_joins(point) for point in kinds.tolist()], np.bool_)[which]
    return found


class CharacterMap:
    """One character -> weighted replacements, compiled."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(entry.clean, []).append(entry)
        ordered = sorted(groups)
        self.points = np.array([ord(clean) for clean in ordered], np.int64)
        self.uppers = np.array(
            [
                bound
                for number, clean in enumerate(ordered)
                for bound in _bounds(number, groups[clean])
            ],
            np.int64,
        )
        noisy = [entry.noisy for clean in ordered for entry in groups[clean]]
        self.pool = Texts.from_strings(noisy).to_arrow()

    def places(self, points: I64) -> tuple[I64, Bool]:
        """Return the index of each code point in the map, and whether it is there."""
        places = np.minimum(np.searchsorted(self.points, points), len(self.points) - 1)
        return places.astype(np.int64), self.points[places] == points


def _bounds(number: int, group: list[Entry]) -> list[int]:
    sums = np.cumsum([entry.weight for entry in group])
    return [(number << 17) + (int(part) << CHOICE_BITS) // int(sums[-1]) for part in sums]


@dataclass(frozen=True)
class Substitution:
    """Replace characters of a map, each with chance `rate`."""

    characters: CharacterMap
    gaps: GapTables

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        hits = self.gaps.hits(keys, texts.lengths, variants["rate"])
        at = texts.offsets[hits.rows] + hits.positions
        points = code_points(texts.values, at)
        places, known = self.characters.places(points)
        at, rows, places = at[known], hits.rows[known], places[known]
        drawn = (places << 17) + hits.choices[known]
        replacements = np.searchsorted(self.characters.uppers, drawn, side="right")
        stops = at + utf8_lengths(points[known])
        return Edits(rows, at, stops, replacements.astype(np.int64), self.characters.pool)


_BLANKS = Texts.from_strings(["", " "]).to_arrow()


@dataclass(frozen=True)
class Blanks:
    """Drop blanks (space, tab) with one chance, add one between two non-blanks with another."""

    drop: GapTables
    add: GapTables

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the blanks dropped and added in all rows."""
        drop_rows, dropped = self._dropped(texts, keys, variants["drop_rate"])
        add_rows, added = self._added(texts, keys, variants["add_rate"])
        starts = np.concatenate([dropped, added])
        order = np.argsort(starts, kind="stable")
        kinds = np.repeat([0, 1], [len(dropped), len(added)])[order]
        starts = starts[order]
        rows = np.concatenate([drop_rows, add_rows])[order]
        return Edits(rows, starts, starts + (1 - kinds), kinds, _BLANKS)

    def _dropped(self, texts: Texts, keys: U64, variants: I64) -> tuple[I64, I64]:
        hits = self.drop.hits(fork_array(keys, "drop"), texts.lengths, variants)
        at = texts.offsets[hits.rows] + hits.positions
        blank = _is_blank(texts.values[at])
        return hits.rows[blank], at[blank]

    def _added(self, texts: Texts, keys: U64, variants: I64) -> tuple[I64, I64]:
        hits = self.add.hits(fork_array(keys, "add"), texts.lengths, variants)
        at = texts.offsets[hits.rows] + hits.positions
        points = code_points(texts.values, at)
        ends = at + utf8_lengths(points)
        fit = (points >= 0) & ~_is_space(points) & (points != 0x200D)
        fit &= ends < texts.offsets[hits.rows + 1]
        rows, ends = hits.rows[fit], ends[fit]
        following = code_points(texts.values, ends)
        apart = ~_is_space(following) & ~joins(following)
        return rows[apart], ends[apart]


def _is_blank(values: U8) -> Bool:
    blank: Bool = (values == 0x20) | (values == 0x09)
    return blank


def _is_space(points: I64) -> Bool:
    found: Bool = np.isin(points, (0x20, 0x09, 0x0A, 0x0D))
    return found


def strengths(rate: Fraction, factors: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Return a rate at every strength; a rate of 1 is a rule, not a chance, and stays."""
    return tuple(rate if rate == 1 else min(rate * factor, Fraction(1)) for factor in factors)
