"""Which letters of a word became which: the smallest parts that differ, with their neighbours."""

from collections.abc import Iterator
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from noisegen.realism.evidence import END, START

LETTERS_MAX = 3  # of a part of the clean word; one that is longer is no slip
WRITTEN_MAX = 4
UNLIKE_MAX = 0.5  # share of a word's letters that may differ


class LetterChange(NamedTuple):
    """Letters [start, stop) of a word became `noisy`."""

    start: int
    stop: int
    noisy: str


def changes(clean: str, noisy: str) -> list[LetterChange]:
    """Return the parts that differ, none if the words are too unlike for a slip.

    >>> changes("receive", "recieve")
    [LetterChange(start=3, stop=5, noisy='ie')]
    """
    found = list(_blocks(clean, noisy))
    unlike = sum(max(stop - start, len(written)) for start, stop, written in found)
    longest = max(len(clean), len(noisy))
    if unlike > max(1, UNLIKE_MAX * longest):
        return []
    fits = all(c.stop - c.start <= LETTERS_MAX and len(c.noisy) <= WRITTEN_MAX for c in found)
    return found if fits else []


def _blocks(clean: str, noisy: str) -> Iterator[LetterChange]:
    """Yield the parts of a shortest alignment; two letters that changed places are one part."""
    steps = [step for step in Levenshtein.opcodes(clean, noisy) if step.tag != "equal"]
    at = 0
    while at < len(steps):
        step = steps[at]
        start, stop, begin, end = step.src_start, step.src_end, step.dest_start, step.dest_end
        at += 1
        while at < len(steps) and _together(clean, noisy, (start, begin), steps[at], stop):
            stop, end = steps[at].src_end, steps[at].dest_end
            at += 1
        yield LetterChange(start, stop, noisy[begin:end])


def _together(clean: str, noisy: str, head: tuple[int, int], step: object, stop: int) -> bool:
    """Tell whether a step goes on where the last one ended, or completes a swap of neighbours."""
    first, last, end = step.src_start, step.src_end, step.dest_end  # type: ignore[attr-defined]
    if first == stop:
        return True
    ours, theirs = clean[head[0] : last], noisy[head[1] : end]
    return len(ours) == 2 and ours == theirs[::-1]


def sites(word: str, parts: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Yield every part of a word that is among `parts`, between its neighbours."""
    framed = START + word + END
    for start in range(1, len(framed)):
        for size in range(min(LETTERS_MAX, len(framed) - 1 - start) + 1):
            part = framed[start : start + size]
            if part in parts:
                yield framed[start - 1], part, framed[start + size]


def in_context(word: str, change: LetterChange) -> tuple[str, str, str]:
    """Return the letter before a change, what changed, and the letter behind it."""
    framed = START + word + END
    start, stop = change.start + 1, change.stop + 1
    return framed[start - 1], framed[start:stop], framed[stop]
