"""How far noisy text is from clean text: Levenshtein distances over characters and over words."""

from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein

EXACT_MAX = 20_000  # characters or words: time grows with the square, to 6 ms here
HEAD = 10_000  # of a longer text is aligned, and the errors in its first half are scaled


def character_errors(clean: str, noisy: str) -> int:
    """Return the Levenshtein distance in characters (code points, no normalisation).

    That of texts over `EXACT_MAX` is estimated from their beginning.
    """
    return _distance(clean, noisy)


def word_errors(clean: str, noisy: str) -> int:
    """Return the same distance in words; a word is what lies between white space."""
    return _distance(clean.split(), noisy.split())


def _distance(clean: Sequence[str], noisy: Sequence[str]) -> int:
    if len(clean) * len(noisy) <= EXACT_MAX**2:
        return Levenshtein.distance(clean, noisy)
    # What lies near the ends of two heads of equal length may find its partner beyond.
    counted = min(HEAD // 2, len(clean))
    operations = Levenshtein.editops(clean[:HEAD], noisy[:HEAD])
    return sum(one.src_pos < counted for one in operations) * len(clean) // counted


def error_counts(clean: Sequence[str], noisy: Sequence[str]) -> tuple[int, int]:
    """Return the character errors and the word errors of all pairs, each summed.

    Raises ValueError if the two sides have different numbers of rows.
    """
    changed = [pair for pair in zip(clean, noisy, strict=True) if pair[0] != pair[1]]
    characters = sum(character_errors(*pair) for pair in changed)
    return characters, sum(word_errors(*pair) for pair in changed)
