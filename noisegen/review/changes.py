"""What differs between two texts, for the eye: whole words, and single signs of CJK text."""

import unicodedata
from collections.abc import Sequence
from typing import Literal

from rapidfuzz.distance import Levenshtein

from noisegen.graphemes import graphemes

Part = tuple[bool, str]  # whether it differs, text
Block = tuple[bool, str, str]  # whether they differ, clean text, noisy text
_SINGLE = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")  # no blanks


def marked(clean: str, noisy: str) -> tuple[list[Part], list[Part]]:
    """Return both texts cut into parts that are equal and parts that differ.

    The parts of a side joined are that side; the parts that are equal are so on both sides, in
    order.

    >>> marked("see you", "see u")
    ([(False, 'see '), (True, 'you')], [(False, 'see '), (True, 'u')])
    """
    sides = tokens(clean), tokens(noisy)
    numbers = {token: place for place, token in enumerate(dict.fromkeys([*sides[0], *sides[1]]))}
    coded = [[numbers[token] for token in side] for side in sides]
    blocks: list[Block] = []
    for code in Levenshtein.opcodes(*coded):
        texts = sides[0][code.src_start : code.src_end], sides[1][code.dest_start : code.dest_end]
        blocks.append((code.tag != "equal", "".join(texts[0]), "".join(texts[1])))
    joined = _joined(blocks)
    return _side(joined, 1), _side(joined, 2)


def tokens(text: str) -> list[str]:
    """Cut a text into words, runs of blanks, and other signs one by one; no grapheme is cut."""
    found: list[str] = []
    kinds: list[str] = []
    for cluster in graphemes(text):
        kind = _kind(cluster[0])
        if found and kind and kinds[-1] == kind:
            found[-1] += cluster
        else:
            found.append(cluster)
            kinds.append(kind)
    return found


def _kind(character: str) -> str:
    """Return 'word', 'blank', or '' for a sign that stands alone."""
    if character.isspace():
        return "blank"
    if not character.isalnum():
        return ""
    single = ord(character) > 0x0E00 and unicodedata.name(character, "").startswith(_SINGLE)
    return "" if single else "word"


def _joined(blocks: Sequence[Block]) -> list[Block]:
    """Join neighbours that differ."""
    joined: list[Block] = []
    for differs, clean, noisy in blocks:
        if joined and joined[-1][0] == differs:
            _, *before = joined.pop()
            clean, noisy = before[0] + clean, before[1] + noisy
        joined.append((differs, clean, noisy))
    return joined


def _side(blocks: Sequence[Block], side: Literal[1, 2]) -> list[Part]:
    return [(block[0], block[side]) for block in blocks if block[side]]
