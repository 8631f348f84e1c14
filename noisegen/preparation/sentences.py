"""Split a row of raw text into clean sentences, and decide which sentences are dropped."""

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

# Minimum share of letters among a sentence's characters other than spaces. Lines of tables and of
# match results have a smaller share.
LETTERS_MIN = 0.5

# The tag <br> or <p>, also written as &lt;br&gt;. The lengths of spaces and attributes are limited,
# so that the pattern stays fast.
_BREAK = re.compile(
    r"(?:<|&lt;)\s{0,9}/?\s{0,9}(?:br|p)(?:\s[^<>&]{0,200})?\s{0,9}/?(?:>|&gt;)", re.I
)
_LINES = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]+")
# Soft hyphen, zero-width space, word joiner and similar, BOM, direction marks. Zero-width joiner
# and non-joiner are not listed: they shape emoji and the letters of Persian and of Indic scripts.
_INVISIBLE = re.compile(r"[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

# Punctuation that counts as common in each language. Characters of markup and code
# (<>{}[]|\^~`_=*) are left out: they are rare in prose.
PUNCTUATION = ".,;:!?'\"()-/%&$+@#“”‘’„‚«»‹›–—…·°€£§"
# Script -> possible first words of the Unicode names of its characters. In all other scripts, names
# begin with the name of the script.
_NAMED = {"CJK": ("CJK", "IDEOGRAPHIC", "FULLWIDTH"), "ARABIC": ("ARABIC", "EXTENDED")}
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Criteria:
    """Criteria that a sentence must meet to be kept; lengths are in characters."""

    min_chars: int = 10  # the minimum of wikiedits, the program that made RCP's corpus
    max_chars: int = 1_000  # about 250 tokens: fits an encoder's 512 tokens, even with noise
    min_common: float = 0.9  # minimum share of `common_characters`; RoLASER's value for OSCAR
    min_letters: float = LETTERS_MIN
    tidy: bool = True  # decode entities, remove control characters, collapse white space
    identified: bool = False  # drop sentences that a model identifies as another language


class Sentence(NamedTuple):
    """A sentence, its index in the row, and the reason why it is dropped ('' if it is kept)."""

    number: int
    text: str
    reason: str


def sentences(text: str, spoken: Language, criteria: Criteria) -> Iterator[Sentence]:
    """Yield the sentences of a row's text, including dropped ones.

    Each line is split on its own, so no sentence crosses a line break.
    """
    number = 0
    for line in clean_lines(text, criteria.tidy):
        for sentence in spoken.sentences(line):
            yield Sentence(number, sentence, _reason(sentence, line, spoken.code, criteria))
            number += 1


def _reason(sentence: str, line: str, lang: str, criteria: Criteria) -> str:
    """Return the reason why a sentence is dropped ('' if it is kept); cheap checks come first.

    `line` is the line that contains the sentence.
    """
    if len(sentence) < criteria.min_chars:
        return "too_short"
    if len(sentence) > criteria.max_chars:
        return "too_long"
    if common_share(sentence, lang) < criteria.min_common:
        return "uncommon_characters"
    if criteria.min_letters and letter_share(sentence) < criteria.min_letters:
        return "few_letters"
    if criteria.identified:
        evidence = sentence if len(sentence) >= SHORT else line  # short: identify its line
        if is_other_language(evidence, lang):
            return "other_language"
    return ""


def clean_lines(text: str, tidy: bool = True) -> list[str]:
    """Split a text into clean lines that are not blank: 'a &amp; b<br>c' -> ['a & b', 'c'].

    The tags <br> and <p> end a line too. Entities are decoded once, control characters become
    spaces, invisible characters are removed, and white space is collapsed. Other tags stay. Without
    `tidy`, the text is only split into lines.
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
    """Return the share of letters and diacritics among a text's characters other than spaces.

    Addresses and mentions are removed first. If nothing else is left, the share is 0.
    """
    text = without_addresses(text)
    others = sum(len(run) for pattern in _non_letters() for run in pattern.findall(text))
    return (len(text) - others) / max(1, len(text) - text.count(" "))


@cache
def _non_letters() -> tuple[re.Pattern[str], ...]:
    """Return two patterns: runs of punctuation, spaces and symbols; and runs of digits and '_'.

    A single pattern for both would be much slower. Diacritics count as letters.
    """
    return re.compile(rf"[^\w{mark_ranges()}]+"), re.compile(r"[\d_]+")


def common_share(text: str, lang: str) -> float:
    """Return the share of a text's characters that are common in a language, from 0 to 1."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return sum(map(len, _common_runs(lang).findall(text))) / max(1, len(text))


@cache
def _common_runs(lang: str) -> re.Pattern[str]:
    """Return a pattern that matches runs of characters that are common in a language."""
    codes = sorted(map(ord, common_characters(lang)))
    ranges = []
    for _, run in groupby(enumerate(codes), lambda numbered: numbered[1] - numbered[0]):
        points = [code for _, code in run]
        ranges.append(f"\\U{points[0]:08x}-\\U{points[-1]:08x}")
    return re.compile(f"[{''.join(ranges)}]+")


@cache
def common_characters(lang: str) -> frozenset[str]:
    """Return the common characters of a language.

    Spaces, the digits 0 to 9 and PUNCTUATION are common in each language. A language with a Latin
    alphabet in alphabets.tsv adds the letters of the alphabet. Other languages add all letters,
    diacritics, digits and punctuation of their scripts, and an unknown language adds all letters
    and diacritics of Unicode.
    """
    common = set(" 0123456789" + PUNCTUATION)
    extra = _alphabets().get(lang)
    scripts = language_scripts().get(lang, ())
    if extra is not None and scripts == ("LATIN",):
        letters = "abcdefghijklmnopqrstuvwxyz" + extra
        return frozenset(common.union(letters, letters.upper()))
    return frozenset(common.union(extra or "", _JOINERS, _script_characters(scripts)))


def _script_characters(scripts: tuple[str, ...]) -> Iterator[str]:
    """Yield the letters, diacritics, numbers and punctuation of scripts.

    Without scripts, all letters and diacritics of Unicode are yielded.
    """
    names = {name for script in scripts for name in _NAMED.get(script, (script,))}
    first = 0x80 if names and "LATIN" not in names else 0x41
    kinds = "LMNP" if names else "LM"  # Unicode: letters, diacritics, numbers, punctuation
    for character in map(chr, range(first, sys.maxunicode + 1)):
        if unicodedata.category(character)[0] not in kinds:
            continue
        if not names or _first_word(unicodedata.name(character, "")) in names:
            yield character


def _first_word(name: str) -> str:
    return re.split("[ -]", name, maxsplit=1)[0]


@cache
def _alphabets() -> dict[str, str]:
    """Read alphabets.tsv: a mapping from languages to further common characters.

    They are letters of a Latin alphabet besides a to z, and signs of no script, such as '「'.
    """
    return dict(rows_of(Path(__file__).with_name("alphabets.tsv")))
