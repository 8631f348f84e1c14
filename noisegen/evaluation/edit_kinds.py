"""Edits of pairs by kind: texts in which the edits of one kind are left, and all others undone.

Their distance to the baseline's vector of the clean text says which kind of noise a student has
learned to withstand.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from rapidfuzz.distance import Indel

from noisegen.text.alignment import TokenEdit, edits, token_spans

UNLIKE = 0.5  # most likeness of two words of which one stands for more than the other
_BLANKS = re.compile(r"\s+")
KINDS = ("word", "words", "missing", "signs", "case")


def kind_of(clean: str, noisy: str) -> str:
    """Return the kind of an edit that turns `clean`, a part of a text, into `noisy`.

    - case: the same letters in another case;
    - signs: the same words with other punctuation or spaces;
    - word: a word became another word;
    - missing: words were left out or added;
    - words: several words became other words, or one word.
    """
    if clean.casefold() == noisy.casefold():
        return "case"
    ours, theirs = _words(clean), _words(noisy)
    if ours == theirs:
        return "signs"
    if not ours or not theirs:
        return "missing"
    return "word" if len(ours) == len(theirs) == 1 else "words"


def _words(text: str) -> list[str]:
    words = (text[start:stop].casefold() for start, stop in token_spans(text))
    return [word for word in words if word[0].isalnum()]


def with_edits_of(kind: str, clean: str, noisy: str) -> str:
    """Return the clean text with those edits of the noisy text that are of this kind.

    >>> with_edits_of("word", "I want to see you.", "i wanna see u")
    'I want to see u.'
    """
    parts, at = list[str](), 0
    for start, stop, after in _changes(clean, noisy):
        before = clean[start:stop]
        is_chosen = kind_of(before, after) == kind
        parts += [clean[at:start], f" {after} " if is_chosen and not before else ""]
        parts.append((after if is_chosen else before) if before else "")
        at = stop
    text = "".join([*parts, clean[at:]])
    return _BLANKS.sub(" ", text).strip() if text != clean else clean


def _changes(clean: str, noisy: str) -> Iterator[tuple[int, int, str]]:
    """Yield each change as (start, stop, noisy text), with places in the clean text.

    Words that were left out belong to an unlike word before them: 'I do not know' became 'idk'.
    """
    found, is_phrase = list[TokenEdit](), False
    for edit in edits(clean, noisy):
        removed, added = edit.texts(clean, noisy)
        is_next = found and not clean[found[-1].clean_stop : edit.clean_start].strip()
        if is_phrase and is_next and _words(removed) and not added:
            found[-1] = found[-1]._replace(clean_stop=edit.clean_stop)
            continue
        likeness = Indel.normalized_similarity(removed.casefold(), added.casefold())
        is_phrase = bool(added) and likeness <= UNLIKE
        found.append(edit)
    yield from ((e.clean_start, e.clean_stop, e.texts(clean, noisy)[1]) for e in found)


def by_kind(
    clean: Sequence[str], noisy: Sequence[str]
) -> Mapping[str, tuple[list[int], list[str]]]:
    """Return for each kind the indices of the pairs that have it, and their texts with it alone."""
    found: dict[str, tuple[list[int], list[str]]] = {}
    for kind in KINDS:
        made = [with_edits_of(kind, *pair) for pair in zip(clean, noisy, strict=True)]
        rows = [row for row, text in enumerate(made) if text != clean[row]]
        if rows:
            found[kind] = rows, [made[row] for row in rows]
    return found
