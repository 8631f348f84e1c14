"""Slips on a keyboard: a key hit for its neighbour, and several slips in one word.

The neighbours of a key are computed from the positions of keys on the layout of a language.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.errors import UsageError, did_you_mean
from noisegen.noising import rng
from noisegen.noising.edits import Edits
from noisegen.noising.kernels import Substitution, character_map
from noisegen.noising.lexicon import Entry, head_of
from noisegen.noising.registry import Settings, kernel
from noisegen.text import buffers
from noisegen.text.buffers import I64, U64, Bool, Texts, Tokens
from noisegen.text.resources import DICTIONARIES
from noisegen.text.rows import Row, RowEdit
from noisegen.text.sequences import forbidden_sequences, may_replace
from noisegen.transforms import rows_of
from noisegen.transforms.nlaugmenter import original_characters, original_files

KEYBOARDS = DICTIONARIES / "keyboards"
REACH = 1.3  # in key widths: the keys that touch a key, up to six


# The place of a key in key widths, and its letters without and with shift ('': none).
Key = tuple[float, float, str, str]


@dataclass(frozen=True)
class Keyboard:
    """A layout, the languages that are typed on it, its keys."""

    name: str
    langs: tuple[str, ...]
    keys: tuple[Key, ...]

    def neighbours(self) -> list[Entry]:
        """Return every letter with the letters of the keys within `REACH`, at the same shift.

        The letters of the row of numbers, as the French é, are not hit for others.
        """
        pairs = {
            pair
            for (x, y, *letters), (other_x, other_y, *others) in permutations(self.keys, 2)
            if hypot(x - other_x, y - other_y) <= REACH and (other_y or not y)
            for pair in zip(letters, others, strict=True)
        }
        return sorted(Entry(wanted, hit) for wanted, hit in pairs if wanted and hit)

    def substitutes(self) -> list[Entry]:
        """Return the neighbours that may stand wherever the letter may: no vowel sign for a letter.

        This matters on Inscript alone, where vowel signs have keys of their own.
        """
        return [entry for entry in self.neighbours() if may_replace(entry.clean, entry.noisy)]


@cache
def all_keyboards() -> list[Keyboard]:
    """Read the packaged layouts: `# key: value` lines, a header, then x, y, key, shifted."""
    keyboards = []
    for path in sorted(KEYBOARDS.glob("*.tsv")):
        keys = [(float(x), float(y), plain, shifted) for x, y, plain, shifted in rows_of(path)]
        langs = head_of(path, "lang")["lang"].split()
        keyboards.append(Keyboard(path.stem, tuple(langs), tuple(keys)))
    return keyboards


def languages() -> list[str]:
    """Return the languages that have a layout."""
    return sorted({lang for keyboard in all_keyboards() for lang in keyboard.langs})


def keyboard_of(lang: str, layout: str | None = None) -> Keyboard:
    """Return the named layout, or that of a language; raises UsageError for an unknown name."""
    if layout is None:
        return next(keyboard for keyboard in all_keyboards() if lang in keyboard.langs)
    layouts = {keyboard.name: keyboard for keyboard in all_keyboards()}
    if layout not in layouts:
        near = did_you_mean(layout, layouts) or f"; known: {', '.join(layouts)}"
        raise UsageError(f"no keyboard layout named {layout!r}{near}")
    return layouts[layout]


def _layout_file(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    layout = keyboard_of(settings.lang, values.get("layout"))
    return [KEYBOARDS / f"{layout.name}.tsv"]


def _key_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    layout = _layout_file(settings, values)  # raises for an unknown one
    return original_files(settings.nlaug_data, "fing") or layout


@kernel("fing", _key_files, languages)
def fing(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Substitution:
    """Hit a neighbouring key: 'soon' -> 'aiib'."""
    entries = original_characters(settings.nlaug_data, "fing")
    entries = entries or keyboard_of(settings.lang, layout).substitutes()
    return Substitution(character_map(entries), settings.gaps(rate))


SLIPS_FROM = (3, 6, 10)  # letters from which on a word gets one, two, three slips
ADDED, SWAPPED, DOUBLED, DROPPED = range(4)  # ADDED: a neighbouring key is hit too
KINDS = np.array([ADDED] * 3 + [SWAPPED] * 2 + [DOUBLED] + [DROPPED] * 2)  # of eight slips
_POINT_BITS = 21  # of a code point


@dataclass(frozen=True)
class Mashing:
    """Mash words, each with its rate; a word is letters of the keyboard, three of them at least.

    Draw i of a row decides on its i-th word. The first letter stays, as it is seldom wrong (Kukich,
    1992). The others are split into as many runs as there are slips; draws 6i + 2k and 6i + 2k + 1
    of the stream "slip" make the k-th.
    """

    keys: rng.WeightedTexts
    row_limits: I64

    def propose(self, texts: Texts, keys: U64, variants: rng.Variants) -> Edits:
        """Propose the slips of all rows."""
        words = texts.tokens
        sizes = words.stops - words.starts
        fits = (sizes >= SLIPS_FROM[0]) & (sizes <= buffers.WORD_BYTES_MAX)
        hit, _ = rng.hits(keys, words.rows, self.row_limits.take(variants["rate"]), fits)
        starts, points, firsts, lengths = self._letters(texts, words, hit)
        # As many slips as a word is long: their draws, what each is, and at which letter.
        counts = np.searchsorted(SLIPS_FROM, lengths, side="right")
        slipped = np.repeat(np.arange(len(hit)), counts)
        rows = words.rows.take(hit.take(slipped))
        part, parts = buffers.ordinals(slipped), counts.take(slipped)
        word_numbers = buffers.ordinals(words.rows).take(hit.take(slipped))
        number = 2 * (len(SLIPS_FROM) * word_numbers + part)
        stream = rng.fork_array(keys, "slip").take(rows)
        draws, key_draws = (rng.draw_array(stream, number + k) for k in (0, 1))
        kinds = KINDS[(rng.choices(draws) * len(KINDS)) >> rng.CHOICE_BITS]
        left = lengths.take(slipped) - 1
        low, high = (1 + left * (part + k) // parts for k in (0, 1))
        at = low + ((rng.decisions(draws) * (high - low)) >> rng.DECISION_BITS)
        at = firsts.take(slipped) + np.minimum(at, high - 1 - (kinds == SWAPPED))
        here, following = (points.take(at + k, mode="clip") for k in (0, 1))
        last = at + (kinds == SWAPPED)
        stops = starts.take(last) + buffers.utf8_lengths(points.take(last))
        codes = self._written(kinds, here, following, key_draws)
        codes, written = np.unique(codes, return_inverse=True)
        pairs = [divmod(code, 1 << _POINT_BITS) for code in codes.tolist()]
        pool = Texts.from_strings(["".join(map(chr, pair)) if any(pair) else "" for pair in pairs])
        edits = Edits(rows, starts.take(at), stops, written.astype(np.int64), pool.to_arrow())
        edits = edits.keep(changed := (kinds != SWAPPED) | (here != following))
        return edits.keep(self._fits(texts, words, hit.take(slipped)[changed], edits))

    def _fits(self, texts: Texts, words: Tokens, owners: I64, edits: Edits) -> Bool:
        """Tell which slips are made, as `fitting` does; `owners` are the words of the edits."""
        fits = np.ones(len(edits), np.bool_)
        if not len(edits):
            return fits
        written = edits.written().to_strings()
        for slips in np.split(np.arange(len(edits)), np.flatnonzero(np.diff(owners)) + 1):
            if len(slips) == 1 and not self.has_marks:
                continue
            start, stop = words.starts[owners[slips[0]]], words.stops[owners[slips[0]]]
            word = texts.values[start:stop].tobytes()
            edges = zip(edits.starts[slips] - start, edits.stops[slips] - start, strict=True)
            row_edits = [
                (len(word[:low].decode()), len(word[:high].decode()), written[slip])
                for (low, high), slip in zip(edges, slips, strict=True)
            ]
            fits[slips[len(fitting(word.decode(), row_edits)) :]] = False
        return fits

    def edit_row(self, row: Row, draws: rng.RowDraws) -> list[RowEdit]:
        """Propose the slips of one row."""
        edits, stream = list[RowEdit](), rng.fork(draws.key, "slip")
        for number, _ in draws.hits(len(row.words)):
            letters = row.words[number]
            fits = SLIPS_FROM[0] <= len(letters.encode()) <= buffers.WORD_BYTES_MAX
            if not fits or not all(ord(letter) in self.keys.group_of for letter in letters):
                continue
            begin, slips = row.span(number)[0], bisect_right(SLIPS_FROM, len(letters))
            of_word = list[RowEdit]()
            for part in range(slips):
                first = 2 * (len(SLIPS_FROM) * number + part)
                both = rng.draw(stream, first), rng.draw(stream, first + 1)
                at, size, written = self._slip(letters, (part, slips), both)
                if written != letters[at : at + size]:
                    of_word.append((at, at + size, written))
            of_word = fitting(letters, of_word)
            edits += [(begin + start, begin + stop, written) for start, stop, written in of_word]
        return edits

    def _slip(
        self, letters: str, part: tuple[int, int], draws: tuple[int, int]
    ) -> tuple[int, int, str]:
        """Return where a slip is in a word, how many letters it replaces, and by what."""
        number, slips = part
        kind = KINDS[(draws[0] & rng.CHOICE_MASK) * len(KINDS) >> rng.CHOICE_BITS]
        low, high = (1 + (len(letters) - 1) * (number + k) // slips for k in (0, 1))
        at = low + ((draws[0] >> rng.CHOICE_BITS) * (high - low) >> rng.DECISION_BITS)
        at = min(at, high - 1 - int(kind == SWAPPED))
        here = letters[at]
        if kind == ADDED:
            group = self.keys.group_of[ord(here)]
            hit = self.keys.written(group, draws[1] & rng.CHOICE_MASK)[0]
            return at, 1, here + hit if draws[1] >> rng.CHOICE_BITS & 1 else hit + here
        if kind == SWAPPED:
            return at, 2, letters[at + 1] + here
        return at, 1, here + here if kind == DOUBLED else ""

    def _letters(self, texts: Texts, words: Tokens, hit: I64) -> tuple[I64, I64, I64, I64]:
        """Return byte and code point of the letters of the words that are hit.

        Then, for each of these words, the number of its first letter, and how many it has: 0 if
        not all of them are on the keyboard.
        """
        starts = words.starts.take(hit)
        sizes = words.stops.take(hit) - starts
        at = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        points = buffers.code_points(texts.values, at)
        lead = np.flatnonzero(points >= 0)
        at, points = at.take(lead), points.take(lead)
        owners = np.repeat(np.arange(len(hit)), sizes).take(lead)
        _, known = self.keys.find(points)
        counts = np.bincount(owners, minlength=len(hit))
        typed = counts * (np.bincount(owners, known, len(hit)) == counts)
        return at, points, np.cumsum(counts) - counts, typed

    @cached_property
    def has_marks(self) -> bool:
        """Whether there are keys of vowel signs, which stand behind their letters alone."""
        return any(map(buffers.joins, self.keys.group_of))

    @cached_property
    def key_points(self) -> I64:
        """The code points of the keys."""
        pool = Texts.from_arrow(self.keys.pool)
        return buffers.code_points(pool.values, pool.offsets[:-1])

    def _written(self, kinds: I64, here: I64, following: I64, draws: U64) -> I64:
        """Return what each slip writes: two code points as one number, or 0 for nothing."""
        groups, _ = self.keys.find(here)
        hit = self.key_points.take(self.keys.pick(groups, rng.choices(draws)))
        behind = rng.decisions(draws) & 1 == 1
        first = np.where(behind, here, hit), following, here
        second = np.where(behind, hit, here), here, here
        pairs = [a << _POINT_BITS | b for a, b in zip(first, second, strict=True)]
        codes: I64 = np.choose(kinds, [*pairs, np.zeros_like(here)])
        return codes


def fitting(word: str, slips: list[RowEdit]) -> list[RowEdit]:
    """Return as many of the slips of a word, from the first, as leave what its script allows.

    None if together they leave the word as it is: a letter is left out, its double doubled.
    """
    most = forbidden_sequences(word).total()
    while slips:
        written = word
        for start, stop, letters in reversed(slips):
            written = written[:start] + letters + written[stop:]
        if forbidden_sequences(written).total() <= most:
            return slips if written != word else []
        slips = slips[:-1]
    return slips


@kernel("mash", _layout_file, languages)
def mash(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Mashing:
    """Mistype several letters of a word: 'amazing' -> 'amzaign'.

    A neighbouring key is hit beside the right one, letters are swapped, doubled or left out: one
    slip in a word of three to five letters, two in one of up to nine, three in a longer one.
    """
    entries = keyboard_of(settings.lang, layout).neighbours()
    return Mashing(character_map(entries), settings.limits(rate))
