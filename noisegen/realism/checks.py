"""Whether pairs are what they seem: few, unrelated, out of step, swapped, or in another language.

Each check is statistical and says what it saw; none changes a pair.
"""

from collections import Counter
from collections.abc import Iterator
from math import sqrt

from rapidfuzz.distance import Levenshtein

from noisegen.intervals import wilson
from noisegen.realism.alignment import edits, token_spans
from noisegen.realism.pairs import Pairs

FEW = 100  # pairs, below which a warning states how uncertain shares are
SAMPLE = 10_000  # pairs that are looked at
UNRELATED_MAX = 0.2  # share of pairs that may have little text in common; 0.04 in MuCGEC, the most
_LIKE_MIN = 0.4  # 1 - Levenshtein distance / length; chance pairs of one language have 0.2 to 0.35
_SWAPPED = 3.0  # standard errors
_OTHER_LANGUAGE_MAX = 0.2  # share of clean texts
_LANGUAGE_CHARS_MIN = 20  # shorter texts are not identified
_LANGUAGE_SAMPLE = 500


def warnings(pairs: Pairs, lang: str = "") -> list[str]:
    """Return a line for each doubt about the pairs, none if they look sound.

    `lang` is the language that the clean side should be in; '' asks nothing.
    """
    sample = pairs.sample(SAMPLE)
    head = pairs.take(range(min(len(pairs), SAMPLE)))  # neighbours stay neighbours
    checks = (_few(pairs), _related(head), _direction(sample), _languages(sample, lang))
    return [line for lines in checks for line in lines]


def _few(pairs: Pairs) -> Iterator[str]:
    if len(pairs) < FEW:
        changed = sum(a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True))
        low, high = wilson(changed / len(pairs), len(pairs))
        yield (
            f"only {len(pairs)} pairs: the share of changed rows is {changed / len(pairs):.0%} "
            f"(95 % interval {low:.0%} to {high:.0%}), and rarer habits are guesses; "
            f"{FEW} or more are better"
        )


def _related(pairs: Pairs) -> Iterator[str]:
    """Compare each noisy text with its own clean one, and with the next and the one before."""
    like = [_likeness(pairs, shift) for shift in (0, 1, -1)]
    unlike = sum(score < _LIKE_MIN for score in like[0]) / len(pairs)
    if unlike <= UNRELATED_MAX:
        return
    for shift, scores in zip((1, -1), like[1:], strict=True):
        if sum(score >= _LIKE_MIN for score in scores) > len(scores) / 2:
            place = "after" if shift == 1 else "before"
            yield f"the sides are out of step: most noisy texts fit the clean one {place} their own"
            return
    yield f"{unlike:.0%} of the pairs have little text in common: are these sides of the same rows?"


def _likeness(pairs: Pairs, shift: int) -> list[float]:
    clean = pairs.clean[max(0, shift) : len(pairs) + min(0, shift)]
    noisy = pairs.noisy[max(0, -shift) : len(pairs) + min(0, -shift)]
    return [
        Levenshtein.normalized_similarity(*sides, score_cutoff=_LIKE_MIN)
        for sides in zip(clean, noisy, strict=True)
    ]


def _direction(pairs: Pairs) -> Iterator[str]:
    """Count replaced words that stand in no text shared by both sides: errors are rare words."""
    known: Counter[str] = Counter()
    replaced: list[tuple[str, str]] = []
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        known.update(_words(noisy) & _words(clean))
        replaced += _replaced(clean, noisy)
    rare_noisy = sum(known[noisy] == 0 < known[clean] for clean, noisy in replaced)
    rare_clean = sum(known[clean] == 0 < known[noisy] for clean, noisy in replaced)
    if rare_clean - rare_noisy > _SWAPPED * sqrt(rare_clean + rare_noisy):
        yield (
            f"the sides look swapped: {rare_clean:,} replaced words of the clean side stand "
            f"nowhere else, and {rare_noisy:,} of the noisy side"
        )


def _words(text: str) -> set[str]:
    return {text[start:stop].lower() for start, stop in token_spans(text)}


def _replaced(clean: str, noisy: str) -> Iterator[tuple[str, str]]:
    """Yield the words that stand for one another, in small letters."""
    for edit in edits(clean, noisy):
        ours = clean[edit.clean_start : edit.clean_stop].lower()
        theirs = noisy[edit.noisy_start : edit.noisy_stop].lower()
        if ours != theirs and ours[:1].isalnum() and theirs[:1].isalnum():
            yield ours, theirs


def _languages(pairs: Pairs, lang: str) -> Iterator[str]:
    """Identify clean texts, where the package for it is installed."""
    from noisegen.preparing.identification import is_other_language, model_for

    if not lang or model_for(lang, "auto") is None:
        return
    texts = [text for text in pairs.clean if len(text) >= _LANGUAGE_CHARS_MIN]
    texts = texts[:: max(1, len(texts) // _LANGUAGE_SAMPLE)]
    other = sum(is_other_language(text, lang) for text in texts)
    if other > _OTHER_LANGUAGE_MAX * len(texts):
        yield f"{other:,} of {len(texts):,} clean texts are in another language than {lang!r}"
