"""Which sentence pairs are noise, and which words in them: rules as data, each with a reason.

Sentences are dropped as equal, too_short, too_long, length_differs, too_different, and by strict
also as markup, held_key, numbers_differ. Word pairs are dropped as word_no_letter, word_equal,
word_too_far, word_moved, by spelling and strict as word_case, by spelling as word_other_signs, and
for reasons that a language gives.
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

_HELD_KEY = re.compile(r"([^\W\d_])\1{4}")  # a letter five times
_BETWEEN_LETTERS = re.compile("['’-]")
_DIGITS = re.compile(r"\d+")
_MARKUP = ("[[", "]]", "{{", "}}", "''", "</", "/>", "||", "==", "://")


@dataclass(frozen=True)
class FilterProfile:
    """Thresholds in tokens; `distance_percent` is of the shorter sentence.

    `char_distance_max` is between two words of a language with spaces between words.
    `spelling_only` asks of them to be words of letters that differ in more than case.
    """

    tokens_min: int = 2
    tokens_max: int | None = 120
    length_difference_max: int = 4
    distance_percent: int = 30
    char_distance_max: int | None = 2
    has_quality_rules: bool = False
    spelling_only: bool = False


# RCP: section 3.1 and appendix B; its pre-training pairs meet only the difference and distance.
PROFILES = {
    "spelling": FilterProfile(spelling_only=True),
    "rcp": FilterProfile(),
    "strict": FilterProfile(has_quality_rules=True),
    "all": FilterProfile(tokens_min=1, tokens_max=None),
}


class Delta(NamedTuple):
    """Neighbouring tokens of the noisy sentence, and those of the clean one in their place."""

    noisy: Sequence[str]
    clean: Sequence[str]

    def pairs(self, is_spaced: bool) -> list[tuple[str, str]]:
        """Pair the tokens; a misspelt word falls apart where no spaces separate words."""
        if len(self.noisy) == len(self.clean):
            return list(zip(self.noisy, self.clean, strict=True))
        if len(self.clean) == 1 and self.noisy and not is_spaced:
            return [("".join(self.noisy), self.clean[0])]
        return []


def judge(
    noisy: str, clean: str, language: Language, profile: FilterProfile, dropped: Counter[str]
) -> tuple[WordPair, ...] | None:
    """Return the words replaced one by one in a sentence pair; None if it does not pass.

    Adds to `dropped` the reason against the pair, or those against words of it.
    """
    reason, ours, theirs = _compared(noisy, clean, language, profile)
    if reason is not None:
        dropped[reason] += 1
        return None
    most = profile.char_distance_max if language.is_spaced else None
    words = []
    for delta in deltas(ours, theirs):
        for wrong, right in delta.pairs(language.is_spaced):
            reason, kind = "word_moved", ""
            if wrong not in delta.clean and right not in delta.noisy:
                reason, kind = language.word_kind(right, wrong)
            if reason is None and most is not None:
                distance = Levenshtein.distance(wrong, right, score_cutoff=most)
                reason = "word_too_far" if distance > most else None
            if reason is None and kind == "case" and profile.has_quality_rules:
                reason = "word_case"  # style, and names, which are words of their own
            if reason is None and profile.spelling_only and language.is_spaced:
                reason = _no_spelling(wrong, right)
            if reason is None:
                words.append(WordPair(right, wrong, kind))
            else:
                dropped[reason] += 1
    return tuple(words)


def _no_spelling(noisy: str, clean: str) -> str | None:
    """Return why two words are not spellings of one; None if they may be."""
    if not (is_word(noisy) and is_word(clean)):
        return "word_other_signs"
    same_case = noisy[0].isupper() == clean[0].isupper() and noisy.lower() != clean.lower()
    return None if same_case else "word_case"


def is_word(token: str) -> bool:
    """Tell whether a token is letters and marks, with apostrophes and hyphens between them."""
    if token.isalpha():
        return True
    parts = _BETWEEN_LETTERS.split(token)
    return all(part[:1].isalpha() for part in parts) and all(
        unicodedata.category(sign)[0] in "LM" for sign in "".join(parts)
    )


def _compared(
    noisy: str, clean: str, language: Language, profile: FilterProfile
) -> tuple[str | None, list[str], list[str]]:
    """Return why a pair is dropped (None: it is kept), and the tokens from the first difference."""
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
    if noisy == clean or noisy.isascii() or clean.isascii():
        return noisy == clean
    return unicodedata.normalize("NFC", noisy) == unicodedata.normalize("NFC", clean)


def _differing(noisy: str, clean: str, language: Language) -> tuple[int, list[str], list[str]]:
    """Return how many tokens both share at their ends, and the tokens between.

    What both sentences share up to a boundary of tokens is tokenised once: half of the time.
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
    """Return the numbers in tokens that begin with a digit: '1987', '1830s', not 'g00d'."""
    return sorted(
        number for token in tokens if token[:1].isdecimal() for number in _DIGITS.findall(token)
    )


def deltas(noisy: list[str], clean: list[str]) -> list[Delta]:
    """Return where two token lists differ: the longest runs without a token in common."""
    if len(noisy) == len(clean) == 1:
        return [Delta(noisy, clean)] if noisy != clean else []
    differences: list[Delta] = []
    start = clean_start = 0
    for stop, clean_stop, size in Levenshtein.opcodes(noisy, clean).as_matching_blocks():
        if stop > start or clean_stop > clean_start:
            differences.append(Delta(noisy[start:stop], clean[clean_start:clean_stop]))
        start, clean_start = stop + size, clean_stop + size
    return differences
