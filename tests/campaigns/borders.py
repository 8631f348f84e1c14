"""Where a span goes when its text gets noise, by a slow and obvious way.

The edits are applied one after another to a text whose span is marked by two borders. Where the
rule leaves a choice, all choices are returned.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product

from rapidfuzz.distance import Levenshtein

Bounds = tuple[int, int]
Parts = tuple[str, str, str]  # text before, inside and after a span
_LONG = 5_000  # characters of an edit whose borders are moved in proportion


def moved(
    clean: str, edits: Iterable[Mapping[str, int]], noisy: str, span: Bounds
) -> set[Bounds | None]:
    """Return the places that a span may have in the noisy text; None is a lost span."""
    made: set[Parts] = {("", "", "")}
    at = 0
    for edit in edits:
        low, high = edit["clean_start"], edit["clean_end"]
        made = _added(made, [_cut(clean, at, low, span)])
        new = noisy[edit["noisy_start"] : edit["noisy_end"]]
        before = noisy[: edit["noisy_start"]]
        made = _added(made, _shares(clean, (low, high), before, new, span))
        at = high
    made = _added(made, [_cut(clean, at, len(clean), span)])
    return {_trimmed(clean, parts, span) for parts in made}


def _cut(clean: str, low: int, high: int, span: Bounds) -> Parts:
    """Cut unchanged text at the borders of the span."""
    start, end = (min(max(border, low), high) for border in span)
    return clean[low:start], clean[start:end], clean[end:high]


def _added(made: set[Parts], more: Iterable[Parts]) -> set[Parts]:
    return {
        tuple(one + two for one, two in zip(before, after, strict=True))  # type: ignore[misc]
        for before, after in product(made, more)
    }


def _shares(clean: str, edit: Bounds, before: str, new: str, span: Bounds) -> Iterator[Parts]:
    """Yield the ways in which the new text of an edit may lie before, inside and after the span."""
    (low, high), (start, end) = edit, span
    if low == high and low in span:
        yield _inserted(clean, low, before, new, span)
    elif start == end:
        cuts = _cuts(clean[low:high], new, start - low) if low <= start < high else {0}
        cuts = {len(new)} if high <= start else cuts
        yield from ((new[:cut], "", new[cut:]) for cut in cuts)
    elif start <= low and high <= end:
        yield "", new, ""
    elif high <= start:
        yield new, "", ""
    elif end <= low:
        yield "", "", new
    else:
        yield from _crossed(clean[low:high], new, start - low, end - low)


def _inserted(clean: str, at: int, before: str, new: str, span: Bounds) -> Parts:
    """Cut a text that is inserted at a border: letters belong to the word that they continue."""
    start, end = span
    if at == end and start < end:
        count = _letters(new) if _is_of_word(clean[end - 1]) else 0
        return "", new[:count], new[count:]
    begins = _is_of_word(clean[start : start + 1]) and not _is_of_word(before[-1:])
    cut = len(new) - (_letters(new[::-1]) if begins else 0)
    return (new[:cut], new[cut:], "") if start < end else (new[:cut], "", new[cut:])


def _crossed(old: str, new: str, start: int, end: int) -> Iterator[Parts]:
    """Yield the cuts of a new text by borders in an edit, each as a minimal alignment has them."""
    starts = _cuts(old, new, start) if start >= 0 else {0}
    ends = _cuts(old, new, end) if end <= len(old) else {len(new)}
    for low, high in product(starts, ends):
        if low <= high:
            yield new[:low], new[low:high], new[high:]


@cache
def _cuts(old: str, new: str, at: int) -> set[int]:
    """Return where a minimal alignment of two texts may have the place `at` of the old text."""
    if len(old) == len(new) and old.casefold() == new.casefold():
        return {at}
    if max(len(old), len(new)) > _LONG:
        return {at * len(new) // len(old)}
    if (len(old.lower()), len(new.lower())) == (len(old), len(new)):
        old, new = old.lower(), new.lower()  # capitals count as the same letters
    least = Levenshtein.distance(old, new)
    return {
        cut
        for cut in range(len(new) + 1)
        if Levenshtein.distance(old[:at], new[:cut]) + Levenshtein.distance(old[at:], new[cut:])
        == least
    }


def _is_of_word(character: str) -> bool:
    return bool(character) and (character.isalnum() or unicodedata.category(character)[0] == "M")


def _letters(text: str) -> int:
    """Count the characters of words with which a text begins."""
    return [*map(_is_of_word, text), False].index(False)


def _trimmed(clean: str, parts: Parts, span: Bounds) -> Bounds | None:
    """Return the place of the inner text, without white space at its ends that is new there."""
    (before, inside, _), (start, end) = parts, span
    if start == end:
        return len(before), len(before)
    low, high = len(before), len(before) + len(inside)
    if not clean[start].isspace():
        low += len(inside) - len(inside.lstrip())
    if not clean[end - 1].isspace():
        high -= len(inside) - len(inside.rstrip())
    return (low, high) if low < high else None
