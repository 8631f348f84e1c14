"""Doubts about pairs: few, unrelated, misaligned or swapped sides, another language.

Each check is statistical, reports the share that it found, and changes no pair.
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

FEW = 100  # pairs; with fewer, a warning states how uncertain shares are
SAMPLE = 10_000  # pairs that the checks read
UNRELATED_MAX = 0.2  # share of unlike pairs without a warning; real sets have 0.04 at most (MuCGEC)
_LIKE_CHARACTERS = 10_000  # characters of a text that are compared: time grows with their square
_LIKE_MIN = 0.4  # 1 - Levenshtein distance / length; chance pairs of one language have 0.2 to 0.35
_SWAPPED = 3.0  # standard errors by which rare words must differ between swapped sides
_OTHER_LANGUAGE_MAX = 0.2  # share of clean texts in another language without a warning
_LANGUAGE_CHARS_MIN = 20  # characters; shorter texts are not identified
_LANGUAGE_SAMPLE = 500  # clean texts that are identified
_LETTERS_MAX = 0.1  # divergence of letter pairs: up to 0.045 in one language, else from 0.155
_LETTERS_TEXTS = 1_000  # texts whose letter pairs are counted
_LETTER_PAIRS_MIN = 1_000  # letter pairs; fewer tell nothing about the language


def doubts(pairs: Pairs, lang: str = "") -> list[str]:
    """Return a line for each doubt about the pairs, none if they look sound.

    `lang` is the language that the clean side should be in; '' leaves that check out.
    """
    sample = pairs.sample(SAMPLE)
    head = pairs.take(range(min(len(pairs), SAMPLE)))  # neighbours stay neighbours
    return [*_few(pairs), *_unrelated(head), *_swapped(sample), *_foreign(sample, lang)]


def _few(pairs: Pairs) -> Iterator[str]:
    """Warn of fewer than `FEW` pairs, with the interval of the share of changed rows."""
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
    """Compare each noisy text with its own clean one, then with the next and the one before."""
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
    """Return the share of pairs with a similarity of at least `_LIKE_MIN`."""
    alike = 0
    for ours, theirs in zip(clean, noisy, strict=True):
        likeness = Levenshtein.normalized_similarity(
            ours[:_LIKE_CHARACTERS], theirs[:_LIKE_CHARACTERS], score_cutoff=_LIKE_MIN
        )
        alike += likeness >= _LIKE_MIN
    return alike / max(1, len(clean))


def _swapped(pairs: Pairs) -> Iterator[str]:
    """Compare how many replaced words of each side are unknown: errors are rare words.

    A word is known if some pair has it on both sides.
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
    """Identify the language of clean texts, if a package for that is installed."""
    if not lang or model_for(lang, "auto") is None:
        return
    texts = [text for text in pairs.clean if len(text) >= _LANGUAGE_CHARS_MIN]
    texts = texts[:: max(1, len(texts) // _LANGUAGE_SAMPLE)]
    other = sum(is_other_language(text, lang) for text in texts)
    if other > _OTHER_LANGUAGE_MAX * len(texts):
        yield f"{other:,} of {len(texts):,} clean texts are in another language than {lang!r}"


def languages_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two sets of texts differ in their letter pairs as languages do."""
    counts = [_letter_pairs(texts) for texts in (a, b)]
    if min(counted.total() for counted in counts) < _LETTER_PAIRS_MIN:
        return False
    keys = sorted(counts[0].keys() | counts[1].keys())
    lines = [np.array([[counted[key] for key in keys]], float) for counted in counts]
    return bool(jensen_shannon(*lines)[0] > _LETTERS_MAX)


def _letter_pairs(texts: Sequence[str]) -> Counter[tuple[str, str]]:
    """Count neighbouring letters.

    All ideographs and Hangul syllables count as one letter: each of them alone is rare.
    """
    letter_pairs: Counter[tuple[str, str]] = Counter()
    for text in texts[:: max(1, len(texts) // _LETTERS_TEXTS)]:
        letters = ["\u4e00" if "\u3400" <= c <= "\ud7af" else c for c in f" {text.lower()} "]
        letter_pairs.update(pair for pair in pairwise(letters) if any(map(str.isalpha, pair)))
    return letter_pairs
