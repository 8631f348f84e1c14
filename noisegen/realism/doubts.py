"""Warnings about pairs: few pairs, sides that are unrelated, misaligned or swapped, wrong language.

Each check looks at many pairs and reports a share, such as 35 % unrelated; it changes no pair.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import sqrt

import numpy as np
from rapidfuzz.distance import Levenshtein

from noisegen.augmentation.statistics import wilson
from noisegen.data.pairs import Pairs
from noisegen.realism.figures import jensen_shannon, lower_tokens
from noisegen.runs.manifest import counted
from noisegen.text.alignment import edits
from noisegen.text.languages import is_other_language, model_for

FEW = 100  # pairs; for fewer, a warning states how uncertain the shares are
SAMPLE = 10_000  # most pairs that the checks read
# Maximum share of dissimilar pairs without a warning; real corpora have at most 0.04 (MuCGEC)
UNRELATED_MAX = 0.2
# Only this many characters of a text are compared: the time grows with the square of the length
_LIKE_CHARACTERS = 10_000
# Minimum similarity of the texts of a pair: 1 - Levenshtein distance / length of the longer text.
# Two random texts of one language have a similarity of 0.2 to 0.35
_LIKE_MIN = 0.4
# Sides look swapped if the clean side has more rare words, by over this many standard errors
_SWAPPED = 3.0
_OTHER_LANGUAGE_MAX = 0.2  # maximum share of clean texts in another language without a warning
_LANGUAGE_CHARS_MIN = 20  # characters; the language of a shorter text is not identified
_LANGUAGE_SAMPLE = 500  # approximate number of clean texts whose language is identified
# Maximum divergence of letter pairs between sets in the same language. Measured: up to 0.045 for
# the same language, at least 0.155 for two languages
_LETTERS_MAX = 0.1
_LETTERS_TEXTS = 1_000  # approximate number of texts per set whose letter pairs are counted
_LETTER_PAIRS_MIN = 1_000  # letter pairs of a set; fewer do not show the language


def doubts(pairs: Pairs, lang: str = "") -> list[str]:
    """Return warnings about the pairs, one line each; [] if the pairs look sound.

    `lang` is the language that the clean side should be in; '' skips this check.
    """
    sample = pairs.sample(SAMPLE)
    # The first pairs, not a sample: a misaligned text matches the text of a neighbouring row
    head = pairs.take(range(min(len(pairs), SAMPLE)))
    return [*_few(pairs), *_unrelated(head), *_swapped(sample), *_foreign(sample, lang)]


def _few(pairs: Pairs) -> Iterator[str]:
    """Yield a warning for fewer than `FEW` pairs, with an interval of the share of changed rows."""
    if len(pairs) >= FEW:
        return
    changed = sum(a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True)) / len(pairs)
    low, high = wilson(changed, len(pairs))
    yield (
        f"only {counted(len(pairs), 'pair')}: the share of changed rows is {changed:.0%} "
        f"(95% interval {low:.0%} to {high:.0%}) and rarer edits are guesses; "
        f"use {FEW} pairs or more"
    )


def _unrelated(pairs: Pairs) -> Iterator[str]:
    """Yield a warning if many noisy texts have little in common with their clean texts.

    If most noisy texts match the clean text of the next row, or of the previous row, the warning
    says that the sides are misaligned.
    """
    clean, noisy = pairs.clean, pairs.noisy
    unlike = 1 - _share_alike(clean, noisy)
    if unlike <= UNRELATED_MAX:
        return
    shifted = {"after": (clean[1:], noisy[:-1]), "before": (clean[:-1], noisy[1:])}
    for step, sides in shifted.items():
        if _share_alike(*sides) > 0.5:
            yield f"the sides are misaligned: most noisy texts match the clean one {step} their own"
            return
    yield f"{unlike:.0%} of the pairs have little text in common: are these sides of the same rows?"


def _share_alike(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the share of pairs whose two texts have a similarity of at least `_LIKE_MIN`."""
    alike = 0
    for ours, theirs in zip(clean, noisy, strict=True):
        likeness = Levenshtein.normalized_similarity(
            ours[:_LIKE_CHARACTERS], theirs[:_LIKE_CHARACTERS], score_cutoff=_LIKE_MIN
        )
        alike += likeness >= _LIKE_MIN
    return alike / max(1, len(clean))


def _swapped(pairs: Pairs) -> Iterator[str]:
    """Yield a warning if clean and noisy side look swapped: the clean side has more rare words.

    Misspellings are rare, so most rare words among the replaced ones should be on the noisy side. A
    word is rare if no pair has it on both sides.
    """
    known: Counter[str] = Counter()
    replaced: list[tuple[str, str]] = []
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        known.update({*lower_tokens(noisy)} & {*lower_tokens(clean)})
        for edit in edits(clean, noisy):
            before, after = (side.lower() for side in edit.texts(clean, noisy))
            if before != after and before[:1].isalnum() and after[:1].isalnum():
                replaced.append((before, after))
    rare_clean = sum(known[before] == 0 < known[after] for before, after in replaced)
    rare_noisy = sum(known[after] == 0 < known[before] for before, after in replaced)
    if rare_clean - rare_noisy > _SWAPPED * sqrt(rare_clean + rare_noisy):
        yield (
            f"the sides look swapped: {rare_clean:,} replaced words of the clean side occur "
            f"nowhere else, {rare_noisy:,} of the noisy side"
        )


def _foreign(pairs: Pairs, lang: str) -> Iterator[str]:
    """Yield a warning if many clean texts are in another language than `lang`.

    Nothing is checked without a package that identifies languages.
    """
    if not lang or model_for(lang, "auto") is None:
        return
    texts = [text for text in pairs.clean if len(text) >= _LANGUAGE_CHARS_MIN]
    texts = texts[:: max(1, len(texts) // _LANGUAGE_SAMPLE)]
    other = sum(is_other_language(text, lang) for text in texts)
    if other > _OTHER_LANGUAGE_MAX * len(texts):
        yield f"{other:,} of {len(texts):,} clean texts are in another language than {lang!r}"


def languages_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two sets of texts seem to be in different languages.

    The frequencies of letter pairs are compared; with too few letter pairs the result is False.
    """
    counts = [_letter_pairs(texts) for texts in (a, b)]
    if min(counted.total() for counted in counts) < _LETTER_PAIRS_MIN:
        return False
    keys = sorted(counts[0].keys() | counts[1].keys())
    lines = [np.array([[counted[key] for key in keys]], float) for counted in counts]
    return bool(jensen_shannon(*lines)[0] > _LETTERS_MAX)


def _letter_pairs(texts: Sequence[str]) -> Counter[tuple[str, str]]:
    """Count the pairs of adjacent characters with at least one letter, in lower case.

    All ideographs and Hangul syllables are replaced by one letter, since each of them is rare.
    """
    letter_pairs: Counter[tuple[str, str]] = Counter()
    for text in texts[:: max(1, len(texts) // _LETTERS_TEXTS)]:
        letters = ["\u4e00" if "\u3400" <= c <= "\ud7af" else c for c in f" {text.lower()} "]
        letter_pairs.update(pair for pair in pairwise(letters) if any(map(str.isalpha, pair)))
    return letter_pairs
