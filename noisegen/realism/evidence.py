"""What happened to each word of a clean text, and to each gap between words, in its noisy version.

A gap is all that stands between two words, before the first or behind the last: blanks and signs.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple

from noisegen.realism.alignment import Edit, Span, edits, token_spans
from noisegen.realism.letters import case_of, lower
from noisegen.words import is_word

START, END = "^", "$"  # stand for the edges of a word or row; no word looks so


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


class Evidence(NamedTuple):
    """The events of one pair, and the number of its edits."""

    words: list[WordEvent]
    gaps: list[GapEvent]
    edits: int


class _Alignment(NamedTuple):
    """Where the words of the clean text stand in the noisy one: `places` by word (None: gone).

    Of the words in `lost` nothing is known.
    """

    words: list[Span]
    places: list[Span | None]
    lost: set[int]


def evidence(clean: str, noisy: str) -> Evidence:
    """Put every difference of a pair down to words and gaps."""
    found = edits(clean, noisy)
    aligned = _aligned(clean, noisy, found)
    words = []
    for number, (span, place) in enumerate(zip(aligned.words, aligned.places, strict=True)):
        text = clean[slice(*span)]
        form = None if number in aligned.lost else noisy[slice(*place)] if place else ""
        words.append(WordEvent(text, case_of(text, not number), form))
    return Evidence(words, list(_gaps(clean, noisy, aligned)), len(found))


def _aligned(clean: str, noisy: str, found: Sequence[Edit]) -> _Alignment:
    """Return where every word went, by the edits and the tokens that they leave alone."""
    ours, theirs = token_spans(clean), token_spans(noisy)
    starts, others = [span[0] for span in ours], [span[0] for span in theirs]
    made = _Alignment([], [], set())
    at, there = 0, 0
    for edit in [*found, Edit(len(clean), len(clean), len(noisy), len(noisy))]:
        first, stop = (bisect_left(starts, place) for place in edit[:2])
        begin, end = (bisect_left(others, place) for place in edit[2:])
        for mine, other in zip(ours[at:first], theirs[there:begin], strict=True):
            _place(clean, noisy, [mine], [other], made)
        _place(clean, noisy, ours[first:stop], theirs[begin:end], made)
        at, there = stop, end
    return made


def _place(
    clean: str, noisy: str, ours: Sequence[Span], theirs: Sequence[Span], made: _Alignment
) -> None:
    """Add the words among some tokens of the clean side; `theirs` stand for them."""
    words = [span for span in ours if is_word(clean[span[0]])]
    first = len(made.words)
    made.words.extend(words)
    if not words:
        return
    if not theirs:
        made.places.extend([None] * len(words))
    elif len(ours) == 1 and is_word(noisy[theirs[0][0]]) and is_word(noisy[theirs[-1][0]]):
        made.places.append((theirs[0][0], theirs[-1][1]))
    elif len(theirs) == 1 and _run_together(clean, noisy, words, theirs[0]):
        stops = accumulate((stop - start for start, stop in words), initial=theirs[0][0])
        made.places.extend(pairwise(stops))
    else:
        made.places.extend([None] * len(words))
        made.lost.update(range(first, first + len(words)))


def _run_together(clean: str, noisy: str, words: Sequence[Span], token: Span) -> bool:
    joined = "".join(clean[slice(*span)] for span in words)
    return lower(joined) == lower(noisy[slice(*token)])


def _gaps(clean: str, noisy: str, aligned: _Alignment) -> Iterator[GapEvent]:
    """Yield what became of every gap; none beside a lost word."""
    spans = [(0, 0), *aligned.words, (len(clean), len(clean))]
    places = [(0, 0), *aligned.places, (len(noisy), len(noisy))]
    lost = {number + 1 for number in aligned.lost}
    names = ["", *(lower(clean[slice(*span)]) for span in aligned.words), END]
    before = 0
    for number in range(1, len(spans)):
        place, last = places[number], places[before]
        if place is None or last is None:
            continue  # `last` is never None: it stands for the type checker
        gaps = [clean[a[1] : b[0]] for a, b in pairwise(spans[before : number + 1])]
        written = noisy[last[1] : place[0]]
        known = lost.isdisjoint(range(before, number + 1))
        if known and len(gaps) == 1:
            yield GapEvent(number - 1, names[number], gaps[0], written)
        elif known and written == _closed(gaps):
            for at, gap in enumerate(gaps, before + 1):
                yield GapEvent(at - 1, names[at], gap, gap)
        before = number


def _closed(gaps: Sequence[str]) -> str:
    """Return what is left between words when those in the midst go, each with a blank."""
    return reduce(without_word, gaps)


def without_word(before: str, after: str) -> str:
    """Return the gap where a word stood between two; the blank before it goes, or that behind."""
    if before.endswith(" "):
        return before[:-1] + after
    return before + (after[1:] if not before and after.startswith(" ") else after)
