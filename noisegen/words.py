"""Words with offsets and hashes.

A word character is an ASCII letter, digit or underscore, or any other character that is not in the
blocks of `is_word`; an apostrophe between two word characters belongs to the word.
"""

from dataclasses import dataclass

import numpy as np

from noisegen.draws import I64, U64, mix_array
from noisegen.text import U8, Bool, Texts, folded

WORD_BYTES_MAX = 64  # longer words are in no lexicon and match nothing
_BYTES_KEPT = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_SPREAD = np.uint64(0x9FB21C651E98DF25)
APOSTROPHES = "'\u2019"
_ASCII_WORD = bytes(c if (chr(c).isalnum() and c < 128) or c == 95 else 0 for c in range(256))
_IS_ASCII_WORD = bytes(1 if c else 0 for c in _ASCII_WORD)
_IS_WORD = bytes(1 if c or i >= 0xC3 else 0 for i, c in enumerate(_ASCII_WORD))
# Characters led by C2 (U+0080-00BF), E2 (U+2000-2FFF), E3 80 (U+3000-303F), EF B8 (U+FE00-FE3F) and
# F0 9F (U+1F000-1FFFF) are signs, not letters: quotes, dashes, arrows, variation selectors, emoji.
SIGNS = ((0x80, 0xBF), (0x2000, 0x2FFF), (0x3000, 0x303F), (0xFE00, 0xFE3F), (0x1F000, 0x1FFFF))
_SIGN_PAIRS = ((0xE3, 0x80), (0xEF, 0xB8), (0xF0, 0x9F))


def is_word(character: str) -> bool:
    """Tell whether a character belongs to a word."""
    number = ord(character)
    if number < 128:
        return character.isalnum() or character == "_"
    return not any(low <= number <= high for low, high in SIGNS)


@dataclass(frozen=True)
class Tokens:
    """Words of `Texts`: byte positions in its `values`, row, hash of the word with case folded.

    `gaps` holds the single byte between a word and the next of its row, 0 where there is none.
    """

    starts: I64
    stops: I64
    rows: I64
    hashes: U64
    gaps: I64

    def __len__(self) -> int:
        return len(self.starts)


def tokenize(texts: Texts) -> Tokens:
    """Find and hash all words."""
    starts, stops, rows = _find(texts)
    window, base = folded(texts.window), int(texts.offsets[0])
    hashes = word_hashes(window, starts - base, stops - base)
    return Tokens(starts, stops, rows, hashes, _gap_bytes(window, base, starts, stops, rows))


def _find(texts: Texts) -> tuple[I64, I64, I64]:
    """Return start, stop and row of every word."""
    base, window = int(texts.offsets[0]), texts.window
    if not len(window):
        none = np.zeros(0, np.int64)
        return none, none, none
    edges = (texts.offsets - base)[1:-1]
    edges = edges[(np.diff(edges, prepend=0) > 0) & (edges < len(window))]
    word = _word_bytes(window, texts.is_ascii)
    _join_apostrophes(window, word, edges)
    padded = np.concatenate([[False], word, [False]])
    turns = np.flatnonzero(padded[1:] != padded[:-1])  # start, stop, start, ..., stop
    glued = edges[word[edges - 1] & word[edges]]  # rows that touch without a blank between
    if len(glued):
        turns = np.sort(np.concatenate([turns, glued, glued]), kind="stable")
    starts = turns[::2] + base
    return starts, turns[1::2] + base, texts.rows_of(starts)


def _word_bytes(window: U8, is_ascii: bool) -> Bool:
    table = _IS_ASCII_WORD if is_ascii else _IS_WORD
    word = np.frombuffer(bytearray(window.tobytes().translate(table)), np.bool_)
    if not is_ascii:
        _spread_over_characters(window, word)
    return word


def _spread_over_characters(window: U8, word: Bool) -> None:
    """Give every byte of a character beyond ASCII the answer for the whole character."""
    leads = np.flatnonzero(window >= 0xC2)
    lead = window[leads]
    follow = window[leads + 1]
    sign = (lead == 0xC2) | (lead == 0xE2)
    for first, second in _SIGN_PAIRS:
        sign |= (lead == first) & (follow == second)
    for size, least in ((1, 0xC2), (2, 0xE0), (3, 0xF0)):
        longer = lead >= least
        word[leads[longer] + size] = ~sign[longer]
    word[leads] = ~sign


def _join_apostrophes(window: U8, word: Bool, edges: I64) -> None:
    """Mark apostrophes between two word characters of a row as part of the word."""
    padded = np.concatenate([[False], word, [False]])
    at_edge = np.zeros(len(word) + 1, np.bool_)
    at_edge[edges] = True
    for mark in APOSTROPHES:
        code = mark.encode()
        found = np.flatnonzero(window[: len(window) - len(code) + 1] == code[0])
        for offset in range(1, len(code)):
            found = found[window[found + offset] == code[offset]]
        inside = padded[found] & padded[found + len(code) + 1]
        inside &= ~at_edge[found] & ~at_edge[found + len(code)]
        for offset in range(len(code)):
            word[found[inside] + offset] = True


def word_hashes(window: U8, starts: I64, stops: I64) -> U64:
    """Return a 64-bit hash of every word, 0 for words over `WORD_BYTES_MAX`."""
    padded = np.concatenate([window, np.zeros(8, np.uint8)])
    loads = np.ndarray(len(window) + 1, "<u8", padded, strides=(1,))
    left = stops - starts
    hashes = left.astype(np.uint64)
    at, state = starts, hashes
    longer = np.arange(len(starts))
    while len(at):
        state = (state ^ (loads[at] & _BYTES_KEPT[np.minimum(left, 8)])) * _SPREAD
        state = state ^ (state >> np.uint64(32))
        hashes[longer] = state
        more = np.flatnonzero((left > 8) & (left <= WORD_BYTES_MAX))
        longer, state, at, left = longer[more], state[more], at[more] + 8, left[more] - 8
    hashes[stops - starts > WORD_BYTES_MAX] = 0
    return hashes


def extend(state: U64, gap: I64, hashes: U64) -> U64:
    """Return the hash of a phrase that goes on with a byte and a word."""
    mixed: U64 = mix_array(state + gap.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ hashes
    return mixed


def _gap_bytes(window: U8, base: int, starts: I64, stops: I64, rows: I64) -> I64:
    gaps = np.zeros(len(starts), np.int64)
    at = np.flatnonzero((starts[1:] - stops[:-1] == 1) & (rows[1:] == rows[:-1]))
    gaps[at] = window[stops[at] - base]
    return gaps
