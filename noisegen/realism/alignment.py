"""Which tokens of a noisy text stand for which of the clean one, and where they differ.

A token is a word, a sign that is no blank, or one character of a script that writes no blanks.
Tokens that both texts share in order are partners; between them words are matched by likeness,
one to one, or one to several where words were run together or broken.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from noisegen.realism.respelling import is_initialism

TOKENS_MAX = 40  # of a changed part on either side; a longer one is a single edit
PARTS_MAX = 3  # words that one word was broken into, or that were run together
_SKIP, _SUBSTITUTE, _JOIN = 1.0, 0.2, 0.3  # the price of a step before its share of unlike letters
_TWO_INITIALS = 1.75  # "in Spain" -> "is": two letters may be a word by chance
_INITIALS = 0.5  # "người ta" -> "ngta"
_NEVER = 9.0
_ALIKE = 0.5
_INNER = frozenset("'\u2019-*@$")  # signs inside a word: moment's, anti-slip, sh*t, p@ss
_NO_INNER = str.maketrans(dict.fromkeys(_INNER))

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
    for equal, ours, theirs in _blocks(*words):
        if equal:
            found += _blanks(clean, noisy, spans[0][ours], spans[1][theirs])
            continue
        clean_at, noisy_at = ours.start, theirs.start
        for more, less in _matched(words[0][ours], words[1][theirs]):
            clean_span = _hull(spans[0], clean_at, clean_at + more, len(clean))
            noisy_span = _hull(spans[1], noisy_at, noisy_at + less, len(noisy))
            clean_at, noisy_at = clean_at + more, noisy_at + less
            if clean[slice(*clean_span)] != noisy[slice(*noisy_span)]:
                found.append(Edit(*clean_span, *noisy_span))
    return found


def _blocks(clean: Sequence[str], noisy: Sequence[str]) -> Iterator[tuple[bool, slice, slice]]:
    """Yield whether neighbouring tokens are shared, and which they are on both sides.

    What differs is one block up to the next token that is shared: where an insertion ends and a
    replacement begins is for `_matched` to say.
    """
    codes = Levenshtein.opcodes(clean, noisy)
    for equal, group in groupby(codes, lambda code: code.tag == "equal"):
        steps = list(group)
        first, last = steps[0], steps[-1]
        ours, theirs = (first.src_start, last.src_end), (first.dest_start, last.dest_end)
        yield equal, slice(*ours), slice(*theirs)


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
    initials = _initialisms(clean, noisy)
    for i in range(len(clean) + 1):
        for j in range(len(noisy) + 1):
            options = [
                (best[i - a, j - b][0] + _price(clean[i - a : i], noisy[j - b : j]), (a, b))
                for a, b in _STEPS
                if a <= i and b <= j
            ]
            if size := initials.get((i, j)):
                price = _JOIN if size > 2 else _TWO_INITIALS
                options.append((best[i - size, j - 1][0] + price, (size, 1)))
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


def _initialisms(clean: Sequence[str], noisy: Sequence[str]) -> dict[Step, int]:
    """Return how many clean tokens a noisy one is the initials of, by where both end."""
    found: dict[Step, int] = {}
    initials = "".join(token[0].lower()[0] for token in clean)
    for number, token in enumerate(noisy, 1):
        size, start = len(token), initials.find(token.lower())
        while size > 1 and start >= 0:
            found[start + size, number] = size
            start = initials.find(token.lower(), start + 1)
    return found


def _price(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the price of taking these tokens for one another; one token missing costs 1."""
    if not (clean and noisy):
        return _SKIP
    if clean == noisy:
        return 0.0
    if len(clean) + len(noisy) > 2:
        return _JOIN + _price_of_parts(clean, noisy)
    if clean[0][0].isalnum() != noisy[0][0].isalnum():
        return _NEVER  # a sign is no word
    return _SUBSTITUTE + _unlike(clean[0].lower(), noisy[0].lower())


def _price_of_parts(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the price of a word run together from several, or broken into several."""
    parts = [*clean, *noisy]
    words = [part for part in parts if part[0].isalnum()]
    ends = clean[0], clean[-1], noisy[0], noisy[-1]
    if not all(end[0].isalnum() for end in ends) or not _INNER.issuperset(set(parts) - set(words)):
        return _NEVER
    ours, theirs = "".join(clean).lower(), "".join(noisy).lower()
    if len(words) < len(parts):
        unlike = _unlike(ours, theirs)
        same = ours.translate(_NO_INNER) == theirs.translate(_NO_INNER)
        return 0.0 if same else unlike if unlike < _ALIKE else _NEVER
    if Levenshtein.distance(ours, theirs) < min(map(len, words)):
        return _unlike(ours, theirs)
    # A word is missing, not run together with the next, unless the beginnings of both are left.
    is_short = len(noisy) == 1 and len(noisy[0]) > len(clean) and is_initialism(clean, noisy[0])
    return _INITIALS if is_short else _NEVER


def _unlike(ours: str, theirs: str) -> float:
    return Levenshtein.distance(ours, theirs) / max(len(ours), len(theirs))
