"""Edits of pairs by kind: texts in which the edits of one kind are left, and all others undone.

Their distance to the baseline's vector of the clean text says which kind of noise a student has
learned to withstand.
"""

from collections.abc import Mapping, Sequence

from noisegen.text.alignment import edits, token_spans

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
    for edit in edits(clean, noisy):
        before, after = edit.texts(clean, noisy)
        parts += [clean[at : edit.clean_start], after if kind_of(before, after) == kind else before]
        at = edit.clean_stop
    return "".join([*parts, clean[at:]])


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
