"""Sequences that a script forbids, such as a vowel sign without its consonant or half an emoji."""

import re
import unicodedata
from collections import Counter
from functools import cache
from itertools import product

_INDIC = range(0x900, 0xD80, 0x80)  # blocks from Devanagari to Malayalam, with equal layouts
_VOWELS_KILLED = (0x980, 0xD00)  # blocks of Bengali and Malayalam: a virama may follow a vowel
_LAO = 0x80  # distance in code points from a Thai character to its Lao counterpart
_EMOJI = "©®\u2190-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
_FLAG = "\U0001f1e6-\U0001f1ff"


def _indic(block: int) -> list[str]:
    """Return patterns for signs of an Indic script that do not follow the letter they need.

    `block` is the first code point of the script.
    """

    def among(*ranges: tuple[int, int]) -> str:
        return "".join(f"{chr(block + low)}-{chr(block + high)}" for low, high in ranges)

    nukta, virama = chr(block + 0x3C), chr(block + 0x4D)
    plain = among((0x15, 0x39), (0x58, 0x5F), (0x70, 0x7F))
    consonants = plain + nukta
    vowels = among((0x04, 0x14), (0x50, 0x50), (0x60, 0x61))
    matras = among((0x3A, 0x3B), (0x3E, 0x4C), (0x55, 0x57), (0x62, 0x63))
    killed = consonants + (vowels + matras if block in _VOWELS_KILLED else "")
    return [
        f"(?<![{consonants}])[{matras}]",
        f"(?<![{plain}]){nukta}",
        f"(?<![{killed}]){virama}",
        f"(?<![{consonants}{vowels}{matras}])[{among((0x01, 0x02))}]",
    ]


def _thai(shift: int) -> list[str]:
    """Return patterns for vowels and tone marks of Thai or Lao without a consonant.

    `shift` is added to the code points of Thai: 0 for Thai, `_LAO` for Lao.
    """

    def shifted(signs: str) -> str:
        return "".join(sign if sign == "-" else chr(ord(sign) + shift) for sign in signs)

    consonants, marks, tones = shifted("ก-ฮ"), shifted("ัิ-\u0e3b็ํ"), shifted("่-์๎")
    after, before = shifted("ะาำๅ"), shifted("เ-ไ")
    consonants += "ຼຽໜໝ" if shift else ""
    return [
        f"(?<![{consonants}])[{marks}]",
        f"(?<![{consonants}{marks}])[{tones}]",
        f"(?<![{consonants}{marks}{tones}{after}])[{after}]",
        f"[{before}](?![{consonants}{before}])",
    ]


def _in_block(first: int, parts: list[str]) -> str:
    """Join patterns into one; to save time, it is tried only at characters of one Unicode block.

    `first` is the first of the 128 code points of the block.
    """
    return f"(?=[{chr(first)}-{chr(first + 0x7F)}])(?:{'|'.join(parts)})"


_PATTERNS = [
    *(_in_block(block, _indic(block)) for block in _INDIC),
    *(_in_block(0xE00 + shift, _thai(shift)) for shift in (0, _LAO)),
    "(?<![\u1100-\u11a7])[\u1160-\u11a7]",
    "(?<![\u1160-\u11ff])[\u11a8-\u11ff]",
    "[\u1100-\u115f](?![\u1100-\u11a7])",  # these three: letters of an incomplete Hangul syllable
    rf"(?<![^\s\u200d])\u200d|[{_EMOJI}\ufe0f]\u200d(?![{_EMOJI}])",
    rf"(?<![{_EMOJI}\ufe0f])[\U0001f3fb-\U0001f3ff]",  # a skin tone without an emoji
    rf"(?<![{_FLAG}])(?:[{_FLAG}]{{2}})*[{_FLAG}](?![{_FLAG}])",  # half of a flag
    "\ufffd",
]
_FORBIDDEN = re.compile("|".join(_PATTERNS))
_FIRST_MARK = "\u0300"  # first combining mark; only texts with it or higher code points are checked
_FIRST_SIGN = "\u0900"  # first code point of the scripts that have vowel signs


def forbidden_sequences(text: str) -> Counter[str]:
    """Count the forbidden sequences in a text; a key has the character before and the sequence."""
    if max(text, default="") < _FIRST_MARK:
        return Counter()
    text = unicodedata.normalize("NFC", text)
    found = {match.span() for match in _FORBIDDEN.finditer(text)}
    for at, sign in enumerate(text):
        is_mark = unicodedata.category(sign)[0] == "M"
        if is_mark and unicodedata.category(text[at - 1 : at] or " ")[0] not in "LMNS":
            found.add((at, at + 1))
    return Counter(text[max(0, start - 1) : stop] for start, stop in found)


_BEFORE = ("", "क", "कि", "क़", "कं", "क्", "अ", "ก", "กิ", "ก่", "เ")
_AFTER = ("", "ि", "ं", "्", "़", "า", "ิ", "่")


def may_replace(clean: str, noisy: str) -> bool:
    """Tell whether the text `noisy` may stand wherever the character `clean` may stand."""
    both = clean + noisy
    is_plain = both.isascii() or (both.isalpha() and max(both) < _FIRST_SIGN)
    return is_plain or places_of(clean) <= places_of(noisy)


@cache
def places_of(character: str) -> frozenset[tuple[str, str]]:
    """Return the pairs (text of `_BEFORE`, text of `_AFTER`) that a character may stand between."""
    around = product(_BEFORE, _AFTER)
    return frozenset(pair for pair in around if not forbidden_sequences(character.join(pair)))
