"""Letters without their marks: 'está allí' as 'esta alli'.

Marks are left out of Latin and Greek letters, which stay legible without, and Arabic and Hebrew
vowel points, which writers add for learners only. They stay where the mark makes another letter or
carries the vowel, as in Devanagari, Thai and kana, and in Cyrillic й and ї.
"""

import unicodedata
from collections.abc import Mapping
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from noisegen.lexicon import Entry, Lexicon
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.word_kernel import WordKernel

DECOMPOSED = ("LATIN", "GREEK")  # scripts whose letters lose the mark they are written with
POINTED = (*DECOMPOSED, "ARABIC", "HEBREW")  # scripts whose letters lose the marks that follow

Spelling = tuple[Mapping[str, str], int]  # letter -> without its mark, weight


def unmarked(word: str, lang: str) -> list[tuple[str, int]]:
    """Return what a word may become without marks, as a `word_kernel.WordRule`."""
    if word.isascii():
        return []
    forms: dict[str, int] = {}
    for letters, weight in spellings(lang):
        form = _plain_word(word, letters)
        forms[form] = forms.get(form, 0) + weight
    return [(form, weight) for form, weight in forms.items() if form != word]


def _plain_word(word: str, letters: Mapping[str, str]) -> str:
    written, script = "", ""
    for sign in word:
        if unicodedata.category(sign) == "Mn":
            written += "" if script in POINTED else sign
        else:
            script = _script(sign)
            written += _plain(sign, letters, word.isupper())
    return written


def _plain(sign: str, letters: Mapping[str, str], capitals: bool) -> str:
    """Return a letter without its mark; what a capital becomes is a capital, then small letters."""
    if sign.isascii():
        return sign
    lower = sign.lower()
    if lower in letters:
        plain = letters[lower]
        raised = plain.upper() if capitals else plain.capitalize()
        return plain if sign == lower else raised
    first = unicodedata.normalize("NFD", sign)[0]
    return first if _script(first) in DECOMPOSED else sign


@cache
def _script(sign: str) -> str:
    """Return the first word of a character's name, the script of a letter."""
    return unicodedata.name(sign, "").partition(" ")[0]


@cache
def spellings(lang: str) -> list[Spelling]:
    """Return the ways to write a language without marks: ä as ae throughout, or as a."""
    files = [path for path in _files(Settings(lang), {}) if path.exists()]
    entries = [entry for path in files for entry in Lexicon.load(path).entries]
    groups = [list(group) for _, group in groupby(entries, key=lambda entry: entry.clean)]
    ranks = max(map(len, groups))
    return [_spelling(groups, rank) for rank in range(ranks)]


def _spelling(groups: list[list[Entry]], rank: int) -> Spelling:
    """Take the alternative of this rank of every letter, or its last."""
    chosen = [group[min(rank, len(group) - 1)] for group in groups]
    weight = max(group[rank].weight for group in groups if rank < len(group))
    return {entry.clean: entry.noisy for entry in chosen}, weight


def _files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return the letters of any language, then those that this one writes in its own way."""
    paths = [DICTIONARIES / folder / "diac.tsv" for folder in ("any", settings.lang)]
    return [path for path in paths if path.exists()]


@kernel("diac", _files, lambda: ["*"])
def diac(settings: Settings, *, rate: float = 0.7) -> WordKernel:
    """Leave out the marks of letters: 'déjà vu in a café' -> 'deja vu in a cafe'.

    `rate` is the chance of each word that has one; all of its marks go. Who leaves one out leaves
    out seven in ten (learners' essays, COWS-L2H).
    """
    return WordKernel(partial(unmarked, lang=settings.lang), settings.limits(rate))
