"""The sentences of a row of raw text, each with the reason why it is dropped, if any."""

import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from noisegen.text.languages import SHORT, is_other_language, language_scripts
from noisegen.text.normalize import without_addresses
from noisegen.text.resources import rows_of
from noisegen.text.segmentation import Language, mark_ranges

LETTERS_MIN = 0.5  # share of letters among non-spaces; tables, scores and addresses have less

# A tag that ends a line, also with its brackets written as entities; attributes are bounded.
_BREAK = re.compile(
    r"(?:<|&lt;)\s{0,9}/?\s{0,9}(?:br|p)(?:\s[^<>&]{0,200})?\s{0,9}/?(?:>|&gt;)", re.I
)
_LINES = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]+")
# Soft hyphen, zero-width space, word joiner and similar, BOM, direction marks. ZWJ and ZWNJ stay:
# they shape emoji and the letters of Persian and of Indic scripts.
_INVISIBLE = re.compile(r"[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

# Characters of markup and code (<>{}[]|\^~`_=*) are left out: they are rare in prose.
PUNCTUATION = ".,;:!?'\"()-/%&$+@#“”‘’„‚«»‹›–—…·°€£§"
# Unicode character names of these scripts begin with one of several words.
_NAMED = {"CJK": ("CJK", "IDEOGRAPHIC", "FULLWIDTH"), "ARABIC": ("ARABIC", "EXTENDED")}
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Criteria:
    """Thresholds of a sentence; lengths are in characters."""

    min_chars: int = 10  # the minimum of wikiedits, from which RCP's corpus came
    max_chars: int = 1_000  # about 250 tokens: fits an encoder's 512 tokens, even with noise
    min_common: float = 0.9  # the value of RoLASER's preparation of OSCAR
    min_letters: float = LETTERS_MIN
    tidy: bool = True  # decode entities, remove control characters, collapse white space
    identified: bool = False


class Sentence(NamedTuple):
    """A sentence, its number in its row, and the reason why it is dropped (empty: it is kept)."""

    number: int
    text: str
    reason: str


def sentences(text: str, spoken: Language, criteria: Criteria) -> Iterator[Sentence]:
    """Yield the sentences of a row, dropped sentences too; none crosses a line break."""
    number = 0
    for line in clean_lines(text, criteria.tidy):
        for sentence in spoken.sentences(line):
            yield Sentence(number, sentence, _reason(sentence, line, spoken.code, criteria))
            number += 1


def _reason(sentence: str, line: str, lang: str, criteria: Criteria) -> str:
    """Return the first criterion that a sentence fails; cheap ones come first."""
    if len(sentence) < criteria.min_chars:
        return "too_short"
    if len(sentence) > criteria.max_chars:
        return "too_long"
    if common_share(sentence, lang) < criteria.min_common:
        return "uncommon_characters"
    if criteria.min_letters and letter_share(sentence) < criteria.min_letters:
        return "few_letters"
    if criteria.identified:
        evidence = sentence if len(sentence) >= SHORT else line  # a few words are not enough
        if is_other_language(evidence, lang):
            return "other_language"
    return ""


def clean_lines(text: str, tidy: bool = True) -> list[str]:
    """Return the lines that are not blank, 'a &amp; b<br>c' -> ['a & b', 'c'].

    <br> and <p> break lines too; entities are decoded once; control characters become spaces,
    invisible characters are removed; runs of white space become one space. Nothing else changes,
    so other tags stay. Without `tidy`, the text is only broken into lines.
    """
    if not tidy:
        return [line for line in _LINES.split(_BREAK.sub("\n", text)) if line.strip()]
    if "<" in text or "&" in text:
        text = unescape(_BREAK.sub("\n", text))
    lines = []
    for line in _LINES.split(text):
        if not line.isprintable():
            line = _CONTROLS.sub(" ", _INVISIBLE.sub("", line))
        if words := line.split():
            lines.append(" ".join(words))
    return lines


def letter_share(text: str) -> float:
    """Return the share of letters (with their diacritics) among the characters other than spaces.

    Addresses and mentions do not count: the share of a text of addresses alone is 0.
    """
    text = without_addresses(text)
    others = sum(len(run) for pattern in _non_letters() for run in pattern.findall(text))
    return (len(text) - others) / max(1, len(text) - text.count(" "))


@cache
def _non_letters() -> tuple[re.Pattern[str], ...]:
    """Return patterns of runs without letters or diacritics (one for both would be much slower)."""
    return re.compile(rf"[^\w{mark_ranges()}]+"), re.compile(r"[\d_]+")


def common_share(text: str, lang: str) -> float:
    """Return the share of a text's characters that are common in the language, from 0 to 1."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return sum(map(len, _common_runs(lang).findall(text))) / max(1, len(text))


@cache
def _common_runs(lang: str) -> re.Pattern[str]:
    """Return a pattern of runs of the common characters of a language."""
    codes = sorted(map(ord, common_characters(lang)))
    ranges = []
    for _, run in groupby(enumerate(codes), lambda numbered: numbered[1] - numbered[0]):
        points = [code for _, code in run]
        ranges.append(f"\\U{points[0]:08x}-\\U{points[-1]:08x}")
    return re.compile(f"[{''.join(ranges)}]+")


@cache
def common_characters(lang: str) -> frozenset[str]:
    """Return the common characters of a language.

    For a language with a Latin alphabet in alphabets.tsv, its letters are common; for other
    languages all letters, diacritics, digits and punctuation of their scripts; for an unknown
    language all letters of Unicode.
    """
    common = set(" 0123456789" + PUNCTUATION)
    extra = _alphabets().get(lang)
    scripts = language_scripts().get(lang, ())
    if extra is not None and scripts == ("LATIN",):
        letters = "abcdefghijklmnopqrstuvwxyz" + extra
        return frozenset(common.union(letters, letters.upper()))
    return frozenset(common.union(extra or "", _JOINERS, _script_characters(scripts)))


def _script_characters(scripts: tuple[str, ...]) -> Iterator[str]:
    """Yield the characters of these scripts; without a script, all letters and diacritics."""
    names = {name for script in scripts for name in _NAMED.get(script, (script,))}
    first = 0x80 if names and "LATIN" not in names else 0x41
    kinds = "LMNP" if names else "LM"  # letters, diacritics, numbers, punctuation
    for character in map(chr, range(first, sys.maxunicode + 1)):
        if unicodedata.category(character)[0] not in kinds:
            continue
        if not names or _first_word(unicodedata.name(character, "")) in names:
            yield character


def _first_word(name: str) -> str:
    return re.split("[ -]", name, maxsplit=1)[0]


@cache
def _alphabets() -> dict[str, str]:
    """Read the table: language -> letters beyond a to z, or characters without a script."""
    return dict(rows_of(Path(__file__).with_name("alphabets.tsv")))
