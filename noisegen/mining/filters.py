"""Filters for sentence pairs and word pairs; each dropped pair is counted under a reason.

Reasons for sentence pairs: equal, too_short, too_long, length_differs, too_different. The filter
profile strict adds markup, numbers_differ and held_key (a letter five times in a row). Reasons for
word pairs: word_no_letter, word_equal, word_too_far, word_moved. The profiles spelling and strict
add word_case; spelling also adds word_other_signs. Some languages add reasons of their own.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein, Postfix, Prefix

from noisegen.mining.miner import WordPair
from noisegen.text.segmentation import Language

_HELD_KEY = re.compile(r"([^\W\d_])\1{4}")  # a key held down: a letter five times in a row
_BETWEEN_LETTERS = re.compile("['’-]")
_DIGITS = re.compile(r"\d+")
_MARKUP = ("[[", "]]", "{{", "}}", "''", "</", "/>", "||", "==", "://")


@dataclass(frozen=True)
class FilterProfile:
    """Thresholds for sentence pairs and word pairs.

    `tokens_min` and `tokens_max` limit the tokens of a sentence, and `length_difference_max` the
    difference in tokens of noisy and clean sentence. `distance_percent` limits their Levenshtein
    distance, in per cent of the tokens of the shorter one. `char_distance_max` is the largest
    distance of two words, in characters, in languages with spaces between words.
    `has_quality_rules` adds the checks of the profile strict. With `spelling_only`, the two words
    of a word pair must consist of letters and differ in more than case.
    """

    tokens_min: int = 2
    tokens_max: int | None = 120
    length_difference_max: int = 4
    distance_percent: int = 30
    char_distance_max: int | None = 2
    has_quality_rules: bool = False
    spelling_only: bool = False


# Thresholds of the RCP paper, section 3.1 and appendix B. RCP filtered its pre-training pairs only
# by difference in length and by distance.
PROFILES = {
    "spelling": FilterProfile(spelling_only=True),
    "rcp": FilterProfile(),
    "strict": FilterProfile(has_quality_rules=True),
    "all": FilterProfile(tokens_min=1, tokens_max=None),
}


class Delta(NamedTuple):
    """Adjacent tokens of a noisy sentence, and the tokens that replace them in the clean one."""

    noisy: Sequence[str]
    clean: Sequence[str]

    def pairs(self, is_spaced: bool) -> list[tuple[str, str]]:
        """Return (noisy, clean) token pairs; [] if the tokens do not correspond one to one.

        In a language without spaces, several noisy tokens are joined if one clean token replaces
        them.
        """
        if len(self.noisy) == len(self.clean):
            return list(zip(self.noisy, self.clean, strict=True))
        if len(self.clean) == 1 and self.noisy and not is_spaced:
            # Without spaces, a tokenizer uses a word list, so it splits a misspelt word.
            return [("".join(self.noisy), self.clean[0])]
        return []


def judge(
    noisy: str, clean: str, language: Language, profile: FilterProfile, dropped: Counter[str]
) -> tuple[WordPair, ...] | None:
    """Return the word pairs of a sentence pair that pass; None if the sentence pair is dropped.

    The reason for dropping the sentence pair, or each of its word pairs, is counted in `dropped`.
    """
    reason, ours, theirs = _compared(noisy, clean, language, profile)
    if reason is not None:
        dropped[reason] += 1
        return None
    words = []
    for delta in deltas(ours, theirs):
        for wrong, right in delta.pairs(language.is_spaced):
            if wrong in delta.clean or right in delta.noisy:
                dropped["word_moved"] += 1
                continue
            reason, kind = language.word_kind(right, wrong)
            reason = reason or _reason_against_words(wrong, right, kind, language, profile)
            if reason is None:
                words.append(WordPair(right, wrong, kind))
            else:
                dropped[reason] += 1
    return tuple(words)


def _reason_against_words(
    noisy: str, clean: str, kind: str, language: Language, profile: FilterProfile
) -> str | None:
    """Return the reason why a filter profile drops a word pair; None if it passes.

    `kind` is the kind of noise that `language` found in the word pair, such as 'case', or ''.
    """
    most = profile.char_distance_max
    if language.is_spaced and most is not None:
        distance = Levenshtein.distance(noisy, clean, score_cutoff=most)
        if distance > most:
            return "word_too_far"
    if kind == "case" and profile.has_quality_rules:
        return "word_case"  # case is a matter of style, or tells a name from another word
    if profile.spelling_only and language.is_spaced:
        return _not_a_spelling(noisy, clean)
    return None


def _not_a_spelling(noisy: str, clean: str) -> str | None:
    """Return the reason why two words cannot be spellings of one word; None if they can."""
    if not (is_word(noisy) and is_word(clean)):
        return "word_other_signs"
    same_case = noisy[0].isupper() == clean[0].isupper() and noisy.lower() != clean.lower()
    return None if same_case else "word_case"


def is_word(token: str) -> bool:
    """Tell whether a token has only letters and diacritics, and apostrophes or hyphens between."""
    if token.isalpha():
        return True
    parts = _BETWEEN_LETTERS.split(token)
    if not all(part[:1].isalpha() for part in parts):
        return False
    return all(unicodedata.category(character)[0] in "LM" for character in "".join(parts))


def _compared(
    noisy: str, clean: str, language: Language, profile: FilterProfile
) -> tuple[str | None, list[str], list[str]]:
    """Return the reason why a sentence pair is dropped (None if it is kept), and its tokens.

    The tokens are two lists, noisy and clean, without the tokens that both sentences share at the
    beginning and at the end.
    """
    if _same(noisy, clean):
        return "equal", [], []
    shared, ours, theirs = _differing(noisy, clean, language)

    def faults() -> Iterator[tuple[str, bool]]:
        shorter, longer = sorted((shared + len(ours), shared + len(theirs)))
        yield "too_short", shorter < profile.tokens_min
        yield "too_long", profile.tokens_max is not None and longer > profile.tokens_max
        yield "length_differs", longer - shorter > profile.length_difference_max
        most = shorter * profile.distance_percent // 100
        distance = Levenshtein.distance(ours, theirs, score_cutoff=most)
        yield "too_different", distance > most
        yield "equal", ours == theirs
        if profile.has_quality_rules:
            yield "markup", any(map(f"{noisy}\n{clean}".__contains__, _MARKUP))
            yield "held_key", any(_HELD_KEY.search(" ".join(side)) for side in (ours, theirs))
            yield "numbers_differ", _numbers(ours) != _numbers(theirs)

    return next((reason for reason, is_so in faults() if is_so), None), ours, theirs


def _same(noisy: str, clean: str) -> bool:
    """Tell whether two texts are equal in Unicode's normal form C."""
    if noisy == clean or noisy.isascii() or clean.isascii():
        return noisy == clean
    return unicodedata.normalize("NFC", noisy) == unicodedata.normalize("NFC", clean)


def _differing(noisy: str, clean: str, language: Language) -> tuple[int, list[str], list[str]]:
    """Return the number of tokens that two sentences share at both ends, and the other tokens.

    The other tokens are two lists: noisy and clean. Sentences are cut at `language.boundary`, such
    as a space, so no token is split. Shared text is tokenized once, which halves the time.
    """
    tokens, boundary = language.tokens, language.boundary
    if not boundary:
        return 0, tokens(noisy), tokens(clean)
    start = noisy.rfind(boundary, 0, Prefix.similarity(noisy, clean)) + 1
    room = min(len(noisy), len(clean)) - start
    same = min(Postfix.similarity(noisy, clean), room)
    stop = noisy.find(boundary, len(noisy) - same)
    end = len(noisy) - stop if stop >= 0 else 0
    shared = noisy[:start] + noisy[len(noisy) - end :]
    ours, theirs = noisy[start : len(noisy) - end], clean[start : len(clean) - end]
    return len(tokens(shared)), tokens(ours), tokens(theirs)


def _numbers(tokens: list[str]) -> list[str]:
    """Return the sorted numbers in tokens that begin with a digit: '1987', '1830s', not 'g00d'."""
    numbers: list[str] = []
    for token in tokens:
        if token[:1].isdecimal():
            numbers += _DIGITS.findall(token)
    return sorted(numbers)


def deltas(noisy: list[str], clean: list[str]) -> list[Delta]:
    """Align two lists of tokens, and return each run of adjacent tokens in which they differ."""
    if len(noisy) == len(clean) == 1:
        return [Delta(noisy, clean)] if noisy != clean else []
    differences: list[Delta] = []
    start = clean_start = 0
    for stop, clean_stop, size in Levenshtein.opcodes(noisy, clean).as_matching_blocks():
        if stop > start or clean_stop > clean_start:
            differences.append(Delta(noisy[start:stop], clean[clean_start:clean_stop]))
        start, clean_start = stop + size, clean_stop + size
    return differences
