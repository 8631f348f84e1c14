"""What happened to each word of a clean text, to each gap between words, and to single letters.

A gap is all that stands between two words, before the first or behind the last: spaces and signs.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from noisegen.noise.profile import END, LETTERS_MAX, START
from noisegen.text.alignment import Span, TokenEdit, edits, token_spans
from noisegen.text.buffers import is_word
from noisegen.text.case import case_of, lower

WRITTEN_MAX = 4  # letters that a part of a word becomes; with more it is no slip
UNLIKE_MAX = 0.5  # share of a word's letters that may differ


class WordEvent(NamedTuple):
    """A word of the clean text with its case, and what stands for it.

    `noisy` is '' where the word is gone, None where nothing says what became of it.
    """

    text: str
    case: int
    noisy: str | None


class GapEvent(NamedTuple):
    """The gap before a word (its number, and its text in small letters), and what stands for it.

    The gap behind the last word is before END.
    """

    number: int
    right: str
    gap: str
    noisy: str


class Events(NamedTuple):
    """The events of one pair, and the number of its edits."""

    words: list[WordEvent]
    gaps: list[GapEvent]
    edits: int


class _Alignment(NamedTuple):
    """The words of the clean text and where they stand in the noisy one (None: gone).

    Of the words in `lost` nothing is known.
    """

    words: list[Span]
    targets: list[Span | None]
    lost: set[int]


def events_of(clean: str, noisy: str) -> Events:
    """Put every difference of a pair down to words and gaps."""
    changes = edits(clean, noisy)
    aligned = _aligned(clean, noisy, changes)
    words = []
    for number, (span, target) in enumerate(zip(aligned.words, aligned.targets, strict=True)):
        text = clean[slice(*span)]
        form = None if number in aligned.lost else noisy[slice(*target)] if target else ""
        words.append(WordEvent(text, case_of(text, not number), form))
    return Events(words, list(_gaps(clean, noisy, aligned)), len(changes))


def _aligned(clean: str, noisy: str, changes: Sequence[TokenEdit]) -> _Alignment:
    """Return where every word went, by the edits and the tokens that they leave alone."""
    ours, theirs = token_spans(clean), token_spans(noisy)
    starts, others = [span[0] for span in ours], [span[0] for span in theirs]
    aligned = _Alignment([], [], set())
    at, there = 0, 0
    for edit in [*changes, TokenEdit(len(clean), len(clean), len(noisy), len(noisy))]:
        first, stop = (bisect_left(starts, start) for start in edit[:2])
        begin, end = (bisect_left(others, start) for start in edit[2:])
        for mine, other in zip(ours[at:first], theirs[there:begin], strict=True):
            _align(clean, noisy, [mine], [other], aligned)
        _align(clean, noisy, ours[first:stop], theirs[begin:end], aligned)
        at, there = stop, end
    return aligned


def _align(
    clean: str, noisy: str, ours: Sequence[Span], theirs: Sequence[Span], aligned: _Alignment
) -> None:
    """Add the words among some tokens of the clean side; `theirs` stand for them."""
    words = [span for span in ours if is_word(clean[span[0]])]
    first = len(aligned.words)
    aligned.words.extend(words)
    if not words:
        return
    if len(ours) == 1 and theirs and all(is_word(noisy[theirs[end][0]]) for end in (0, -1)):
        aligned.targets.append((theirs[0][0], theirs[-1][1]))
        return
    joined = "".join(clean[slice(*span)] for span in words)
    if len(theirs) == 1 and lower(joined) == lower(noisy[slice(*theirs[0])]):  # run together
        stops = accumulate((stop - start for start, stop in words), initial=theirs[0][0])
        aligned.targets.extend(pairwise(stops))
        return
    aligned.targets.extend([None] * len(words))
    if theirs:
        aligned.lost.update(range(first, first + len(words)))


def _gaps(clean: str, noisy: str, aligned: _Alignment) -> Iterator[GapEvent]:
    """Yield what became of every gap; none beside a lost word."""
    spans = [(0, 0), *aligned.words, (len(clean), len(clean))]
    targets = [(0, 0), *aligned.targets, (len(noisy), len(noisy))]
    lost = {number + 1 for number in aligned.lost}
    names = ["", *(lower(clean[slice(*span)]) for span in aligned.words), END]
    before, last = 0, (0, 0)
    for number in range(1, len(spans)):
        target = targets[number]
        if target is None:
            continue
        gaps = [clean[a[1] : b[0]] for a, b in pairwise(spans[before : number + 1])]
        written = noisy[last[1] : target[0]]
        known = lost.isdisjoint(range(before, number + 1))
        if known and len(gaps) == 1:
            yield GapEvent(number - 1, names[number], gaps[0], written)
        elif known and written == reduce(without_word, gaps):
            for at, gap in enumerate(gaps, before + 1):
                yield GapEvent(at - 1, names[at], gap, gap)
        before, last = number, target


def without_word(before: str, after: str) -> str:
    """Return the gap where a word stood between two; the space before it goes, or that behind."""
    if before.endswith(" "):
        return before[:-1] + after
    return before + (after[1:] if not before and after.startswith(" ") else after)


class LetterChange(NamedTuple):
    """Letters [start, stop) of a word became `noisy`."""

    start: int
    stop: int
    noisy: str


def letter_changes(clean: str, noisy: str) -> list[LetterChange]:
    """Return the parts that differ, none if the words are too unlike for a slip.

    >>> letter_changes("receive", "recieve")
    [LetterChange(start=3, stop=5, noisy='ie')]
    """
    changes = list(_blocks(clean, noisy))
    unlike = sum(max(stop - start, len(written)) for start, stop, written in changes)
    if unlike > max(1, UNLIKE_MAX * max(len(clean), len(noisy))):
        return []
    fit = all(c.stop - c.start <= LETTERS_MAX and len(c.noisy) <= WRITTEN_MAX for c in changes)
    return changes if fit else []


def _blocks(clean: str, noisy: str) -> Iterator[LetterChange]:
    """Yield the parts of a shortest alignment; two letters that changed places are one part."""
    block: list[int] = []  # start and stop in the one word, start and stop in the other
    for step in Levenshtein.opcodes(clean, noisy):
        if step.tag == "equal":
            continue
        if block:
            ours, theirs = clean[block[0] : step.src_end], noisy[block[2] : step.dest_end]
            swapped = len(ours) == 2 and ours == theirs[::-1]
            if step.src_start == block[1] or swapped:
                block[1], block[3] = step.src_end, step.dest_end
                continue
            yield LetterChange(block[0], block[1], noisy[block[2] : block[3]])
        block = [step.src_start, step.src_end, step.dest_start, step.dest_end]
    if block:
        yield LetterChange(block[0], block[1], noisy[block[2] : block[3]])


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
