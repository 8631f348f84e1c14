"""How far noisy text is from clean text: Levenshtein distances over characters and over words."""

from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein


def character_errors(clean: str, noisy: str) -> int:
    """Return the Levenshtein distance in characters (code points, no normalisation)."""
    return Levenshtein.distance(clean, noisy)


def word_errors(clean: str, noisy: str) -> int:
    """Return the Levenshtein distance in words; a word is what lies between white space."""
    return Levenshtein.distance(clean.split(), noisy.split())


def error_counts(clean: Sequence[str], noisy: Sequence[str]) -> tuple[int, int]:
    """Return the character errors and the word errors of all pairs, each summed.

    Raises ValueError if the two sides have different numbers of rows.
    """
    changed = [pair for pair in zip(clean, noisy, strict=True) if pair[0] != pair[1]]
    characters = sum(character_errors(*pair) for pair in changed)
    return characters, sum(word_errors(*pair) for pair in changed)
