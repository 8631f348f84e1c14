"""Warnings about pairs: few pairs, sides that are unrelated, misaligned or swapped, wrong language.

Each check is statistical: it states the share of pairs that it found and changes no pair.
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
# Largest share of unlike pairs without a warning; real sets have 0.04 at most (MuCGEC)
UNRELATED_MAX = 0.2
# Most characters of a text that are compared: time grows with the square of the characters
_LIKE_CHARACTERS = 10_000
# Least likeness of the sides of a pair: 1 - Levenshtein distance / length of the longer side. Two
# random texts of one language have 0.2 to 0.35
_LIKE_MIN = 0.4
# Sides look swapped if the clean side has more rare words, by more than this many standard errors
_SWAPPED = 3.0
_OTHER_LANGUAGE_MAX = 0.2  # largest share of clean texts in another language without a warning
_LANGUAGE_CHARS_MIN = 20  # characters; the language of a shorter text is not identified
_LANGUAGE_SAMPLE = 500  # about how many clean texts are identified
# Largest divergence of the letter pairs of one language: sets in one language have up to 0.045,
# sets in two languages at least 0.155
_LETTERS_MAX = 0.1
_LETTERS_TEXTS = 1_000  # about how many texts of a set have their letter pairs counted
_LETTER_PAIRS_MIN = 1_000  # letter pairs of a set; fewer do not show the language


def doubts(pairs: Pairs, lang: str = "") -> list[str]:
    """Return a line per doubt about the pairs; [] if they look sound.

    `lang` is the language that the clean side should be in; '' skips this check.
    """
    sample = pairs.sample(SAMPLE)
    # The first pairs, not a sample, since misaligned sides match the texts of neighbouring rows
    head = pairs.take(range(min(len(pairs), SAMPLE)))
    return [*_few(pairs), *_unrelated(head), *_swapped(sample), *_foreign(sample, lang)]


def _few(pairs: Pairs) -> Iterator[str]:
    """Yield a warning for fewer than `FEW` pairs, with the interval of the changed rows' share."""
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
    """Yield a warning if many noisy texts are unlike the clean texts of their rows.

    The warning says that the sides are misaligned if most noisy texts are like the clean text of
    the next row, or of the previous row.
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
    """Return the share of pairs of texts with a likeness of at least `_LIKE_MIN`."""
    alike = 0
    for ours, theirs in zip(clean, noisy, strict=True):
        likeness = Levenshtein.normalized_similarity(
            ours[:_LIKE_CHARACTERS], theirs[:_LIKE_CHARACTERS], score_cutoff=_LIKE_MIN
        )
        alike += likeness >= _LIKE_MIN
    return alike / max(1, len(clean))


def _swapped(pairs: Pairs) -> Iterator[str]:
    """Yield a warning if the replaced words are rarer on the clean side than on the noisy side.

    Errors are rare words, so the sides then look swapped. A word is rare unless some pair has it on
    both sides.
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
    """Tell whether two sets of texts are in different languages, by pairs of adjacent characters.

    False if a set has too few letter pairs.
    """
    counts = [_letter_pairs(texts) for texts in (a, b)]
    if min(counted.total() for counted in counts) < _LETTER_PAIRS_MIN:
        return False
    keys = sorted(counts[0].keys() | counts[1].keys())
    lines = [np.array([[counted[key] for key in keys]], float) for counted in counts]
    return bool(jensen_shannon(*lines)[0] > _LETTERS_MAX)


def _letter_pairs(texts: Sequence[str]) -> Counter[tuple[str, str]]:
    """Count pairs of adjacent characters in texts, with at least one letter, in lower case.

    All ideographs and Hangul syllables count as the same letter, since each alone is rare.
    """
    letter_pairs: Counter[tuple[str, str]] = Counter()
    for text in texts[:: max(1, len(texts) // _LETTERS_TEXTS)]:
        letters = ["\u4e00" if "\u3400" <= c <= "\ud7af" else c for c in f" {text.lower()} "]
        letter_pairs.update(pair for pair in pairwise(letters) if any(map(str.isalpha, pair)))
    return letter_pairs
