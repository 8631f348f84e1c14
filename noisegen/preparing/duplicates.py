"""When two sentences are near duplicates, and keys by which such pairs are found: MinHash bands.

Broder (1997) for MinHash; bands as in Leskovec, Rajaraman and Ullman, Mining of Massive Datasets,
section 3.4: pairs of similarity s share a key with probability 1 - (1 - s^ROWS)^BANDS.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np

from noisegen.draws import GOLDEN, I64, MASK, U64, mix, mix_array
from noisegen.mining.languages import _marks
from noisegen.preparing.social import without_addresses

BANDS, ROWS = 8, 4  # found: 98.5 % of pairs at 0.8, 95 % at 0.75, 6 % at 0.35, all compared then
SHINGLE_SPACED, SHINGLE_UNSPACED = 5, 2  # characters; an ideograph says as much as several letters
COMPARED_MIN = 5  # shingles side by side: in shorter forms one other word is another sense
_CHUNK = 1 << 18  # shingles hashed at a time, so that they stay in the cache
_BASE = 0x100000001B3  # of the rolling hash (the prime of FNV-1a)

_REPOST = re.compile(r"^rt\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_SIGNS = re.compile(r"[^\w\s]+")


def normal_form(text: str) -> str:
    """Return what is left when case, signs, numbers, addresses and mentions do not count."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = _REPOST.sub("", without_addresses(text))
    text = _DIGITS.sub("0", text).casefold().replace("_", " ")
    signs = _SIGNS if text.isascii() else _signs_but_marks()
    return " ".join(signs.sub(" ", text).split())


@cache
def _signs_but_marks() -> re.Pattern[str]:
    return re.compile(rf"[^\w\s{_marks()}]+")  # `\w` has no marks: Indic words would fall apart


def shingles(form: str, size: int) -> set[str]:
    """Return all runs of `size` characters of a normal form; a shorter one is filled up."""
    form = form.ljust(size)
    return {form[at : at + size] for at in range(len(form) - size + 1)}


def similarity(ours: set[str], theirs: set[str]) -> float:
    """Return the Jaccard similarity of the shingles of two normal forms."""
    shared = len(ours & theirs)
    return shared / (len(ours) + len(theirs) - shared)


def band_keys(forms: Sequence[str], size: int) -> U64:
    """Return BANDS keys for each normal form, as an array (forms, BANDS)."""
    keys = np.empty((len(forms), BANDS), np.uint64)
    lengths = np.array([max(len(form), size) for form in forms], np.int64)
    stops = np.cumsum(lengths)
    first = 0
    while first < len(forms):
        limit = (stops[first - 1] if first else 0) + _CHUNK
        last = max(first + 1, int(np.searchsorted(stops, limit, side="right")))
        text = "".join(form.ljust(size) for form in forms[first:last])
        keys[first:last] = _bands(_minima(text, lengths[first:last], size))
        first = last
    return keys


def _minima(text: str, lengths: I64, size: int) -> U64:
    """Return, for each of BANDS * ROWS hash functions, the least hash of a form's shingles."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    hashes = np.zeros(len(codes) - size + 1, np.uint64)
    for at in range(size):
        hashes = hashes * np.uint64(_BASE) + codes[at : at + len(hashes)]
    inside = np.ones(len(codes), np.bool_)
    for back in range(1, size):  # a shingle that begins here ends in the next form
        inside[np.cumsum(lengths) - back] = False
    hashes = mix_array(hashes[inside[: len(hashes)]])
    starts = np.concatenate(([0], np.cumsum(lengths - size + 1)[:-1]))
    minima = np.empty((len(lengths), BANDS * ROWS), np.uint64)
    for number in range(BANDS * ROWS):
        spread = (hashes ^ np.uint64(_salt(number))) * np.uint64(_factor(number))
        minima[:, number] = np.minimum.reduceat(spread, starts)
    return minima


def _salt(number: int) -> int:
    return mix((number + 1) * GOLDEN & MASK)


def _factor(number: int) -> int:
    return mix((number + 1_001) * GOLDEN & MASK) | 1


def _bands(minima: U64) -> U64:
    """Return one key for the minima of each band."""
    keys = np.zeros((len(minima), BANDS), np.uint64)
    for row in range(ROWS):
        keys = mix_array(keys + np.uint64(GOLDEN) + minima[:, row::ROWS])
    return keys ^ np.array([_salt(band) for band in range(BANDS)], np.uint64)
