"""Which sentence pairs are noise, and which words in them: rules as data, each with a reason.

Sentences are dropped as equal, too_short, too_long, length_differs, too_different, and by strict
also as markup, held_key, numbers_differ. Word pairs are dropped as word_no_letter, word_equal,
word_too_far, word_moved, by strict also as word_case, and for reasons that a language gives.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein, Postfix, Prefix

from noisegen.errors import UsageError
from noisegen.mining.miner import WordPair
from noisegen.text.segmentation import Language

_HELD_KEY = re.compile(r"([^\W\d_])\1{4}")  # a letter five times
_DIGITS = re.compile(r"\d+")
_MARKUP = ("[[", "]]", "{{", "}}", "''", "</", "/>", "||", "==", "://")


@dataclass(frozen=True)
class FilterProfile:
    """Thresholds in tokens; `distance_percent` is of the shorter sentence.

    `char_distance_max` is between two words of a language with blanks between words.
    """

    name: str
    tokens_min: int = 2
    tokens_max: int | None = 120
    length_difference_max: int = 4
    distance_percent: int = 30
    char_distance_max: int | None = 2
    has_quality_rules: bool = False


# RCP: section 3.1 and appendix B; its pre-training pairs meet only the difference and distance.
PROFILES = {
    "rcp": FilterProfile("rcp"),
    "strict": FilterProfile("strict", has_quality_rules=True),
    "all": FilterProfile("all", tokens_min=1, tokens_max=None),
}


def profile(name: str, max_char_distance: str | None = None) -> FilterProfile:
    """Return a profile by its name; `max_char_distance` is 1, 2 ..., 'none', or not given.

    Raises UsageError for an unknown profile and for what is no distance.
    """
    if name not in PROFILES:
        raise UsageError(f"no profile {name!r}; write {', '.join(PROFILES)}")
    if max_char_distance is None:
        return PROFILES[name]
    if not re.fullmatch("none|[1-9][0-9]{0,3}", max_char_distance):
        raise UsageError(
            f"no distance between words: {max_char_distance!r}; write 1, 2 ... or none"
        )
    distance = None if max_char_distance == "none" else int(max_char_distance)
    return replace(PROFILES[name], char_distance_max=distance)


class PairVerdict(NamedTuple):
    """Why a sentence pair is dropped (None: it is kept), its word pairs, and why others are not."""

    reason: str | None
    words: tuple[WordPair, ...]
    dropped_words: Counter[str]


class Delta(NamedTuple):
    """Neighbouring tokens of the noisy sentence, and those of the clean one in their place."""

    noisy: Sequence[str]
    clean: Sequence[str]


def judge(noisy: str, clean: str, language: Language, profile: FilterProfile) -> PairVerdict:
    """Apply the rules of a profile to a sentence pair and to the words replaced in it."""
    reason, ours, theirs = _sentences(noisy, clean, language, profile)
    if reason is not None:
        return PairVerdict(reason, (), Counter())
    words: list[WordPair] = []
    dropped: Counter[str] = Counter()
    for pair, why in _word_pairs(ours, theirs, language, profile):
        if why is None:
            words.append(pair)
        else:
            dropped[why] += 1
    return PairVerdict(None, tuple(words), dropped)


def _sentences(
    noisy: str, clean: str, language: Language, profile: FilterProfile
) -> tuple[str | None, list[str], list[str]]:
    """Return why a pair is dropped, if it is, and the tokens from the first that differ."""
    if _same(noisy, clean):
        return "equal", [], []
    shared, ours, theirs = _differing(noisy, clean, language)
    shorter = shared + min(len(ours), len(theirs))
    longer = shared + max(len(ours), len(theirs))
    if shorter < profile.tokens_min:
        return "too_short", [], []
    if profile.tokens_max is not None and longer > profile.tokens_max:
        return "too_long", [], []
    if longer - shorter > profile.length_difference_max:
        return "length_differs", [], []
    if not _is_near(ours, theirs, shorter * profile.distance_percent // 100):
        return "too_different", [], []
    if ours == theirs:
        return "equal", [], []
    reason = _quality(noisy, clean, ours, theirs) if profile.has_quality_rules else None
    return reason, ours, theirs


def _same(noisy: str, clean: str) -> bool:
    if noisy == clean:
        return True
    if noisy.isascii() or clean.isascii():
        return False
    return unicodedata.normalize("NFC", noisy) == unicodedata.normalize("NFC", clean)


def _differing(noisy: str, clean: str, language: Language) -> tuple[int, list[str], list[str]]:
    """Return how many tokens both share at their ends, and the tokens between.

    What both sentences share up to a boundary of tokens is tokenised once: half of the time.
    """
    tokens, boundary = language.tokens, language.boundary
    if not boundary:
        return 0, tokens(noisy), tokens(clean)
    same = Prefix.similarity(noisy, clean)
    start = noisy.rfind(boundary, 0, same) + 1
    room = min(len(noisy), len(clean)) - start
    same = min(Postfix.similarity(noisy, clean), room)
    stop = noisy.find(boundary, len(noisy) - same)
    end = len(noisy) - stop if stop >= 0 else 0
    shared = noisy[:start] + noisy[len(noisy) - end :]
    ours, theirs = noisy[start : len(noisy) - end], clean[start : len(clean) - end]
    return len(tokens(shared)), tokens(ours), tokens(theirs)


def _is_near(ours: list[str], theirs: list[str], distance_max: int) -> bool:
    if len(ours) == len(theirs) == 1:
        return distance_max >= (ours != theirs)
    return Levenshtein.distance(ours, theirs, score_cutoff=distance_max) <= distance_max


def _quality(noisy: str, clean: str, ours: list[str], theirs: list[str]) -> str | None:
    """Return what speaks against a pair: mark-up left over, a held-down key, another number."""
    both = f"{noisy}\n{clean}"
    for sign in _MARKUP:  # a loop, for `any` over a generator takes four times as long
        if sign in both:
            return "markup"
    if _HELD_KEY.search(" ".join(ours)) or _HELD_KEY.search(" ".join(theirs)):
        return "held_key"
    return "numbers_differ" if _numbers(ours) != _numbers(theirs) else None


def _numbers(tokens: list[str]) -> list[str]:
    """Return the numbers in tokens that begin with a digit: '1987', '1830s', not 'g00d'."""
    return sorted(
        number for token in tokens if token[:1].isdecimal() for number in _DIGITS.findall(token)
    )


def _word_pairs(
    ours: list[str], theirs: list[str], language: Language, profile: FilterProfile
) -> Iterator[tuple[WordPair, str | None]]:
    """Yield the words replaced one by one, each with the reason not to take it."""
    for delta in deltas(ours, theirs):
        for noisy, clean in _one_to_one(delta, language):
            if noisy in delta.clean or clean in delta.noisy:
                yield WordPair(clean, noisy), "word_moved"
                continue
            reason, kind = language.word_kind(clean, noisy)
            most = profile.char_distance_max
            if reason is None and language.is_spaced and most is not None:
                distance = Levenshtein.distance(noisy, clean, score_cutoff=most)
                reason = "word_too_far" if distance > most else None
            if reason is None and kind == "case" and profile.has_quality_rules:
                reason = "word_case"  # style, and names, which are words of their own
            yield WordPair(clean, noisy, kind), reason


def _one_to_one(delta: Delta, language: Language) -> Iterator[tuple[str, str]]:
    """Pair the tokens of a delta; a misspelt word falls apart where no blanks separate words."""
    if len(delta.noisy) == len(delta.clean):
        yield from zip(delta.noisy, delta.clean, strict=True)
    elif len(delta.clean) == 1 and delta.noisy and not language.is_spaced:
        yield "".join(delta.noisy), delta.clean[0]


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
