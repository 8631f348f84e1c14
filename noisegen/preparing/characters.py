"""The common characters of a language: its letters, digits, the blank, common punctuation."""

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

from noisegen.mining.languages import _marks, _scripts
from noisegen.preparing.social import without_addresses

# Signs of markup and code (<>{}[]|\^~`_=*) are left out: they mark text that is none.
PUNCTUATION = ".,;:!?'\"()-/%&$+@#“”‘’„‚«»‹›–—…·°€£§"
# First words of Unicode names that belong to a script besides its own name.
_NAMED = {"CJK": ("CJK", "IDEOGRAPHIC", "FULLWIDTH"), "ARABIC": ("ARABIC", "EXTENDED")}
_JOINERS = "\u200c\u200d"
_ALPHABETS = "alphabets.tsv"


def common_share(text: str, lang: str) -> float:
    """Return the share of a text's characters that are common in the language, from 0 to 1."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return sum(map(len, _common(lang).findall(text))) / max(1, len(text))


def letter_share(text: str) -> float:
    """Return the share of letters (with their marks) among the characters that are no blanks.

    Addresses and mentions are left out: a text of nothing else has none.
    """
    text = without_addresses(text)
    others = sum(len(run) for pattern in _no_letters() for run in pattern.findall(text))
    return (len(text) - others) / max(1, len(text) - text.count(" "))


@cache
def _no_letters() -> tuple[re.Pattern[str], ...]:
    """Return patterns of runs without letters or their marks (two, for one is much slower)."""
    return re.compile(rf"[^\w{_marks()}]+"), re.compile(r"[\d_]+")


@cache
def _common(lang: str) -> re.Pattern[str]:
    """Return the pattern of runs of common characters."""
    codes = sorted(map(ord, common_characters(lang)))
    runs = groupby(enumerate(codes), lambda one: one[1] - one[0])
    ends = ([code for _, code in run] for _, run in runs)
    ranges = "".join(f"\\U{codes[0]:08x}-\\U{codes[-1]:08x}" for codes in ends)
    return re.compile(f"[{ranges}]+")


@cache
def common_characters(lang: str) -> frozenset[str]:
    """Return the common characters of a language.

    A Latin alphabet of the table counts with its own letters, other languages with all letters,
    marks, digits and punctuation of their scripts; an unknown one with all letters there are.
    """
    common = set(" 0123456789" + PUNCTUATION)
    extra = _alphabets().get(lang)
    scripts = _scripts().get(lang, ())
    if extra is not None and scripts == ("LATIN",):
        letters = "abcdefghijklmnopqrstuvwxyz" + extra
        return frozenset(common.union(letters, letters.upper()))
    return frozenset(common.union(extra or "", _JOINERS, _written_in(scripts)))


def _written_in(scripts: tuple[str, ...]) -> Iterable[str]:
    """Yield what Unicode names after scripts; without a script every letter and mark."""
    names = {name for script in scripts for name in _NAMED.get(script, (script,))}
    foreign = names and "LATIN" not in names
    for sign in map(chr, range(0x80 if foreign else 0x41, sys.maxunicode + 1)):
        kind = unicodedata.category(sign)[0]
        if kind not in "LMNP":
            continue
        if not names:
            if kind in "LM":
                yield sign
        elif re.split("[ -]", unicodedata.name(sign, ""), maxsplit=1)[0] in names:
            yield sign


@cache
def _alphabets() -> dict[str, str]:
    """Read the table: code -> letters beyond a to z, or signs that Unicode gives to no script."""
    lines = Path(__file__).with_name(_ALPHABETS).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line[:1] != "#"]
    return {row[0]: row[1] for row in rows[1:]}
