"""Case, marks and shapes of words, for every script; small letters keep the bytes in place."""

import unicodedata
from functools import cache

import numpy as np

from noisegen.characters import code_points
from noisegen.draws import I64
from noisegen.text import U8, Bool, Texts

SMALL, TITLE, UPPER, INITIAL = range(4)  # cases of a word; INITIAL: TITLE, and it begins its row
CASES = ("small", "title", "upper", "initial")
LENGTHS = (2, 3, 5, 8)  # characters from which a word counts as longer
SHAPES = len(CASES) * (len(LENGTHS) + 1) + 1  # case and length; the last: a digit comes first
_PLANE = 0x10000  # beyond it few scripts have case


@cache
def lower_table() -> I64:
    """Return for every code point of the first plane its small letter of the same length."""
    table = np.arange(_PLANE)
    for point in range(_PLANE):
        small = chr(point).lower()
        if len(small) == 1 and _bytes(ord(small)) == _bytes(point):
            table[point] = ord(small)
    return table


def _bytes(point: int) -> int:
    return 1 + (point >= 0x80) + (point >= 0x800)


@cache
def _lower_map() -> dict[int, int]:
    table = lower_table()
    points = np.flatnonzero(table != np.arange(_PLANE))
    return dict(zip(points.tolist(), table[points].tolist(), strict=True))


def lower(text: str) -> str:
    """Return the text in small letters; it has as many bytes as before."""
    return text.lower() if text.isascii() else text.translate(_lower_map())


def case_of(word: str, initial: bool) -> int:
    """Return the case of a word: UPPER with two capitals or more that are over half of it."""
    small = lower(word)
    capitals = sum(a != b for a, b in zip(word, small, strict=True))
    if capitals > 1 and capitals * 2 > len(word):
        return UPPER
    if word[0] == small[0]:
        return SMALL
    return INITIAL if initial else TITLE


def cased(form: str, case: int) -> str:
    """Return a form in small letters as a word of this case is written."""
    if case == UPPER:
        return form.upper()
    return form[:1].upper() + form[1:] if case else form


def shape_of(word: str, case: int) -> int:
    """Return what a word that nothing is known of is judged by: its case and its length."""
    if word[0] in "0123456789":
        return SHAPES - 1
    return case * (len(LENGTHS) + 1) + sum(len(word) >= least for least in LENGTHS)


def bare(text: str) -> str:
    """Return the text without marks on its letters."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text).replace("đ", "d").replace("Đ", "D")
    return "".join(one for one in parts if unicodedata.category(one) != "Mn")


def lowered(texts: Texts) -> tuple[U8, Bool]:
    """Return the bytes of the rows in small letters, and where a capital begins."""
    window = texts.window
    small = np.frombuffer(bytearray(window.tobytes().lower()), np.uint8)
    capital: Bool = small != window
    if not texts.is_ascii:
        leads = np.flatnonzero((window >= 0xC3) & (window < 0xF0))
        points = code_points(window, leads)
        lowers = lower_table().take(points)
        changed = np.flatnonzero(lowers != points)
        leads, lowers = leads.take(changed), lowers.take(changed)
        capital[leads] = True
        _write(small, leads, lowers)
    return small, capital


def _write(values: U8, at: I64, points: I64) -> None:
    """Put code points of two or three bytes in the place of others as long."""
    for chosen, size, mark in ((points < 0x800, 2, 0xC0), (points >= 0x800, 3, 0xE0)):
        here, left = at[chosen], points[chosen]
        for offset in range(size - 1, 0, -1):
            values[here + offset] = 0x80 | (left & 0x3F)
            left = left >> 6
        values[here] = mark | left
