"""Which tokens of a noisy text stand for which of the clean one, and where they differ.

A token is a word, a sign that is no blank, or one character of a script that writes no blanks.
Tokens that both texts share in order are partners; between them words are matched by likeness,
one to one, or one to several where words were run together or broken.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

TOKENS_MAX = 40  # of a changed part on either side; a longer one is a single edit
PARTS_MAX = 3  # words that one word was broken into, or that were run together
_SKIP, _SUBSTITUTE, _JOIN = 1.0, 0.2, 0.3  # the price of a step before its share of unlike letters
_NEVER = 9.0

# Word characters as in `words.is_word`, but for scripts that write no blanks between words: Thai,
# Lao, Burmese, Khmer, kana, Han.
_WORD = (
    "[0-9A-Za-z_\u00c0-\u0dff\u0f00-\u0fff\u10a0-\u177f\u1800-\u1fff"
    "\u3100-\u33ff\ua000-\uf8ff\ufb00-\ufdff\ufe40-\U0001efff]"
)
_TOKEN = re.compile(f"{_WORD}+(?:['\u2019]{_WORD}+)*|\\S")


class Edit(NamedTuple):
    """Characters [clean_start, clean_stop) became [noisy_start, noisy_stop)."""

    clean_start: int
    clean_stop: int
    noisy_start: int
    noisy_stop: int


Span = tuple[int, int]
Step = tuple[int, int]  # how many tokens of the clean and of the noisy side belong together


def token_spans(text: str) -> list[Span]:
    """Return start and stop of every token, in characters.

    >>> token_spans("don't, 好的")
    [(0, 5), (5, 6), (7, 8), (8, 9)]
    """
    return [match.span() for match in _TOKEN.finditer(text)]


def edits(clean: str, noisy: str) -> list[Edit]:
    """Return where the two differ, in order: words, signs, and the blanks between partners.

    The empty side of an insertion or a deletion stands where its token would begin.
    """
    if clean == noisy:
        return []
    spans = token_spans(clean), token_spans(noisy)
    words = [clean[slice(*span)] for span in spans[0]], [noisy[slice(*span)] for span in spans[1]]
    found: list[Edit] = []
    for step in Levenshtein.opcodes(*words):
        here = slice(step.src_start, step.src_end), slice(step.dest_start, step.dest_end)
        if step.tag == "equal":
            found += _blanks(clean, noisy, spans[0][here[0]], spans[1][here[1]])
            continue
        clean_at, noisy_at = here[0].start, here[1].start
        for more, less in _matched(words[0][here[0]], words[1][here[1]]):
            clean_span = _hull(spans[0], clean_at, clean_at + more, len(clean))
            noisy_span = _hull(spans[1], noisy_at, noisy_at + less, len(noisy))
            clean_at, noisy_at = clean_at + more, noisy_at + less
            if clean[slice(*clean_span)] != noisy[slice(*noisy_span)]:
                found.append(Edit(*clean_span, *noisy_span))
    return found


def _hull(spans: Sequence[Span], first: int, stop: int, length: int) -> Span:
    """Return the characters of tokens [first, stop); where there are none, where they would be."""
    if first < stop:
        return spans[first][0], spans[stop - 1][1]
    at = spans[first][0] if first < len(spans) else length
    return at, at


def _blanks(clean: str, noisy: str, ours: Sequence[Span], theirs: Sequence[Span]) -> list[Edit]:
    """Return the edits of what lies between neighbours that are partners."""
    gaps = zip(pairwise(ours), pairwise(theirs), strict=True)
    between = [Edit(a[1], b[0], c[1], d[0]) for (a, b), (c, d) in gaps]
    return [one for one in between if clean[one[0] : one[1]] != noisy[one[2] : one[3]]]


def _matched(clean: Sequence[str], noisy: Sequence[str]) -> Sequence[Step]:
    """Return which tokens of a changed part belong together, as steps through both sides."""
    if max(len(clean), len(noisy)) > TOKENS_MAX:
        return [(len(clean), len(noisy))]
    return _cheapest(tuple(clean), tuple(noisy))


@lru_cache(maxsize=1 << 14)
def _cheapest(clean: tuple[str, ...], noisy: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the cheapest steps from one end of both lists to the other."""
    best: dict[Step, tuple[float, Step]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(clean) + 1):
        for j in range(len(noisy) + 1):
            options = [
                (best[i - a, j - b][0] + _price(clean[i - a : i], noisy[j - b : j]), (a, b))
                for a, b in _STEPS
                if a <= i and b <= j
            ]
            if options:
                best[i, j] = min(options)
    steps, at = [], (len(clean), len(noisy))
    while at != (0, 0):
        steps.append(best[at][1])
        at = at[0] - steps[-1][0], at[1] - steps[-1][1]
    return tuple(reversed(steps))


_STEPS: tuple[Step, ...] = (
    (1, 0), (0, 1), (1, 1),
    *((parts, 1) for parts in range(2, PARTS_MAX + 1)),
    *((1, parts) for parts in range(2, PARTS_MAX + 1)),
)  # fmt: skip


def _price(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the price of taking these tokens for one another; one token missing costs 1."""
    if not (clean and noisy):
        return _SKIP
    if clean == noisy:
        return 0.0
    tokens = [*clean, *noisy]
    if len({token[0].isalnum() for token in tokens}) > 1:
        return _NEVER  # a sign is no word
    ours, theirs = "".join(clean).lower(), "".join(noisy).lower()
    unlike = Levenshtein.distance(ours, theirs)
    if len(tokens) > 2 and unlike >= min(map(len, tokens)):
        return _NEVER  # a word is missing, not run together with its neighbour
    price = _JOIN if len(tokens) > 2 else _SUBSTITUTE
    return price + unlike / max(len(ours), len(theirs))
