"""Changes of letters in words that no table knows: in one place or more, by their context."""

from dataclasses import dataclass

import numpy as np

from noisegen.characters import code_points
from noisegen.draws import I64, MASK, U64, draw_array, mix_array
from noisegen.realism.channel_model import CHANCE_BITS, Channel
from noisegen.realism.channel_text import HashIndex
from noisegen.realism.evidence import END, START
from noisegen.realism.letter_changes import LETTERS_MAX
from noisegen.text import U8, ordinals

SIZES = LETTERS_MAX + 1
_PRIME = np.uint64(0x100000001B3)
_START, _END = ord(START), ord(END)
_PLACES = {START: 1, END: 2, "": 3}  # instead of a letter before


class LetterTable:
    """The contexts of a channel: group and weight of letters between neighbours, or at a place."""

    def __init__(self, channel: Channel) -> None:
        keys = list(channel.letters)
        self._index = HashIndex(np.array([_hash_of(*key) for key in keys], np.uint64))
        found = [channel.letters[key] for key in keys]
        self._groups = np.array([group for group, _ in found] + [-1], np.int64)
        self._weights = np.array([weight for _, weight in found] + [0], np.int64)
        parts = sorted({part for _, part, _ in keys if len(part) > 1})
        self._parts = HashIndex(np.array([_letters_hash(part) for part in parts], np.uint64))

    def known(self, framed: I64, at: I64, size: int) -> I64:
        """Return those places from which on `size` letters are a part that has changed."""
        if size < 2:
            return at
        return at.take(np.flatnonzero(self._parts.find(_joined(framed, at, size)) >= 0))

    def look_up(self, framed: I64, at: I64, size: int) -> tuple[I64, I64]:
        """Return group and weight of `size` letters from each place on, between their neighbours.

        Places too near the end of `framed` must not be asked for.
        """
        before, after = framed.take(at - 1), framed.take(at + size)
        letters = _joined(framed, at, size)
        found = self._index.find(_hashes(before, letters, after, size))
        missing = np.flatnonzero(found < 0)
        edge = np.where(after.take(missing) == _END, _PLACES[END], _PLACES[""])
        edge = np.where(before.take(missing) == _START, _PLACES[START], edge)
        coarse = _hashes(edge, letters.take(missing), np.zeros(len(missing), np.int64), size)
        found[missing] = self._index.find(coarse)
        return self._groups.take(found), self._weights.take(found)


def _joined(framed: I64, at: I64, size: int) -> U64:
    """Return a hash of `size` letters from each place on."""
    letters = np.zeros(len(at), np.uint64)
    for offset in range(size):
        letters = (letters + framed.take(at + offset).astype(np.uint64)) * _PRIME
    return letters


def _letters_hash(part: str) -> int:
    """Return `_joined` of one part."""
    letters = 0
    for letter in part:
        letters = (letters + ord(letter)) * int(_PRIME) & MASK
    return letters


def _hashes(before: I64, letters: U64, after: I64, size: int) -> U64:
    near = before.astype(np.uint64) << np.uint64(24) | after.astype(np.uint64)
    return mix_array(mix_array(near ^ np.uint64(size << 60)) + letters)


def _hash_of(before: str, part: str, after: str) -> int:
    """Return the hash of a key of `Channel.letters`."""
    near = (ord(before), ord(after)) if before else (_PLACES[after], 0)
    sides = (np.array([one], np.int64) for one in near)
    first, second = sides
    return int(_hashes(first, np.array([_letters_hash(part)], np.uint64), second, len(part))[0])


@dataclass(frozen=True)
class Framed:
    """The letters of words one after the other, each word between START and END.

    `starts` has the byte where each letter begins (for END, where the word stops), `firsts` the
    place of the START of each word, `words` the word of each letter.
    """

    letters: I64
    starts: I64
    firsts: I64
    words: I64


def framed(small: U8, starts: I64, stops: I64) -> Framed:
    """Return the letters of words in these byte ranges of `small`."""
    sizes = stops - starts
    begins = np.cumsum(sizes) - sizes
    words = np.repeat(np.arange(len(starts)), sizes)
    at = np.arange(len(words)) - np.repeat(begins - starts, sizes)
    solid = np.flatnonzero((small.take(at) & 0xC0) != 0x80)
    at, words = at.take(solid), words.take(solid)
    counts = np.bincount(words, minlength=len(starts))
    firsts = np.cumsum(counts + 2) - counts - 2
    letters = np.empty(len(at) + 2 * len(starts), np.int64)
    places = np.empty_like(letters)
    lasts = firsts + counts + 1
    inside = np.arange(len(at)) + 2 * words + 1
    letters[firsts], letters[lasts], letters[inside] = _START, _END, code_points(small, at)
    places[firsts], places[lasts], places[inside] = starts, stops, at
    return Framed(letters, places, firsts, np.repeat(np.arange(len(starts)), counts + 2))


@dataclass(frozen=True)
class Misspelt:
    """Words whose letters change: byte range in small letters, hash, in how many places.

    Draw `numbers` + k of `keys` is for place k.
    """

    starts: I64
    stops: I64
    hashes: U64
    places: I64
    keys: U64
    numbers: I64

    def distinct(self) -> tuple[I64, I64]:
        """Return one of each equal words, and which of those each word equals."""
        alone = np.arange(len(self.hashes)).astype(np.uint64)  # a word without hash equals none
        hashes = np.where(self.hashes == 0, alone, self.hashes)
        _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        return first, which


@dataclass(frozen=True)
class LetterEdits:
    """Changes, ascending and disjoint: numbers of the words, byte ranges, groups, and draws."""

    words: I64
    starts: I64
    stops: I64
    groups: I64
    draws: U64


def letter_edits(table: LetterTable, small: U8, words: Misspelt) -> LetterEdits:
    """Choose the parts of words that change.

    Parts that begin at or before an earlier one, or overlap it, are left out.
    """
    first, which = words.distinct()
    frame = framed(small, words.starts.take(first), words.stops.take(first))
    weights, groups = _sites(table, frame)
    sums = np.concatenate([[0], np.cumsum(weights.ravel())])
    bounds = np.append(frame.firsts, len(frame.letters)) * SIZES
    low, high = sums.take(bounds[:-1]).take(which), sums.take(bounds[1:]).take(which)
    parts = []
    for turn in range(int(words.places.max(initial=0))):
        here = np.flatnonzero((words.places > turn) & (high > low))
        draws = draw_array(words.keys.take(here), words.numbers.take(here) + turn)
        target = (draws >> np.uint64(64 - CHANCE_BITS)).astype(np.int64)
        target = low.take(here) + (target * (high - low).take(here) >> CHANCE_BITS)
        parts.append((here, np.searchsorted(sums, target, side="right") - 1, draws))
    if not parts:
        none = np.zeros(0, np.int64)
        return LetterEdits(none, none, none, none, none.astype(np.uint64))
    owners, site = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    draws = np.concatenate([part[2] for part in parts])
    order = np.lexsort((site, owners))  # stable: at the same place in the order of the turns
    owners, site, draws = owners.take(order), site.take(order), draws.take(order)
    kept = _apart(owners, site)
    owners, site, draws = owners.take(kept), site.take(kept), draws.take(kept)
    at, moved = site // SIZES, words.starts - words.starts.take(first).take(which)
    starts, stops = frame.starts.take(at), frame.starts.take(at + site % SIZES)
    shift = moved.take(owners)
    return LetterEdits(owners, starts + shift, stops + shift, groups.ravel().take(site), draws)


def _sites(table: LetterTable, frame: Framed) -> tuple[I64, I64]:
    """Return weight and group of every part, by its first letter and its size."""
    count = len(frame.letters)
    weights = np.zeros((count, SIZES), np.int64)
    groups = np.full((count, SIZES), -1)
    starts_word = np.zeros(count + 1, np.bool_)
    starts_word[frame.firsts] = True
    inside = np.flatnonzero(~starts_word[:-1])
    for size in range(SIZES):
        here = table.known(frame.letters, inside, size)
        groups[here, size], weights[here, size] = table.look_up(frame.letters, here, size)
        inside = inside[inside + size + 1 < count]
        inside = inside[~starts_word[inside + size + 1]]
    return weights, groups


def _apart(words: I64, site: I64) -> I64:
    """Return which of the changes, which ascend, do not conflict with one before them."""
    at = site // SIZES
    ends = at + site % SIZES
    turn = ordinals(words)
    keep = np.ones(len(words), np.bool_)
    for back in range(1, int(turn.max(initial=0)) + 1):
        here = np.flatnonzero(turn >= back)
        earlier = here - back
        keep[here] &= (at.take(here) >= ends.take(earlier)) & (at.take(here) > at.take(earlier))
    return np.flatnonzero(keep)
