"""Letters that are held: 'soooo', 'pleaseee', 'nooo'."""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from noisegen.lexicon import Lexicon
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.word_kernel import WordKernel

ADDED = (24, 32, 19, 11, 7, 4, 2, 1)  # how often 1 to 8 letters are added: a long tail
# Vowels without their marks: Latin, Cyrillic, Greek, Arabic, Devanagari signs.
VOWELS = frozenset("aeiouyæøœıə" + "аеиоуыэюяіє" + "αεηιουω" + "اوي" + "ाीुूेैोौ")
HELD = frozenset("lmnrsyhzfw" + "лмнрсшхйвз" + "λμνρς")  # consonants held at the end of a word
LENGTHS = range(2, 9)  # of the words that are lengthened though no list has them
FULL = 8  # of the weights of a listed word; with less it is held that much less often
OTHERS_SHARE = 40  # a word on no list is held so many times less often

Place = tuple[int, int]  # position of the letter that is held, weight


def lengthened(word: str, lang: str) -> list[tuple[str, int]]:
    """Return what a word may become with a letter held, as a `word_kernel.WordRule`."""
    lower = word.lower()
    listed = listed_places(lang).get(lower, []) if len(lower) == len(word) else []
    places = listed or list(_guessed_places(word))
    forms = [
        (_held(word, at, count), weight * often)
        for at, weight in places
        for count, often in enumerate(ADDED, 1)
    ]
    weights = sum(weight for _, weight in places)
    left = FULL - weights if listed else weights * (OTHERS_SHARE - 1)
    return [*forms, (word, left * sum(ADDED))] if left > 0 else forms


def _held(word: str, at: int, count: int) -> str:
    """Write a letter `count` times more; behind a capital that begins a word, in small."""
    letter = word[at] if word.isupper() else word[at].lower()[0]
    return word[: at + 1] + letter * count + word[at + 1 :]


def _guessed_places(word: str) -> Iterator[Place]:
    """Yield where a word on no list is held: its end, its last vowel, its first vowel."""
    if not _may_be_held(word):
        return
    letters = [letter.lower()[0] for letter in word]
    vowels = [at for at, letter in enumerate(letters) if _is_vowel(letter)]
    last = len(word) - 1
    if last in vowels or letters[last] in HELD:
        yield last, 4
    if vowels and vowels[-1] != last:
        yield vowels[-1], 3
    if len(vowels) > 1 and vowels[0] != last:
        yield vowels[0], 1


def _is_vowel(letter: str) -> bool:
    return letter not in HELD and unicodedata.normalize("NFD", letter)[0] in VOWELS


def _may_be_held(word: str) -> bool:
    """Tell whether a word is letters, each with its marks, no acronym, and holds none yet."""
    if not unicodedata.is_normalized("NFC", word):  # the mark would stay behind at the last letter
        return False
    letters = all(unicodedata.category(sign)[0] in "LM" for sign in word)
    thrice = any(a == b == c for (a, b), (_, c) in pairwise(pairwise(word.lower())))
    return letters and len(word) in LENGTHS and not word.isupper() and not thrice


@cache
def listed_places(lang: str) -> dict[str, list[Place]]:
    """Return the words of a language's list with where they are held."""
    path = _list_of(lang)
    found: dict[str, list[Place]] = {}
    for entry in Lexicon.load(path).entries if path.exists() else []:
        ends = zip(entry.clean, entry.noisy, strict=False)
        same = next((at for at, (a, b) in enumerate(ends) if a != b), len(entry.clean))
        found.setdefault(entry.clean, []).append((same - 1, entry.weight))
    return found


def _list_of(lang: str) -> Path:
    return DICTIONARIES / lang / "long.tsv"


def _files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    path = _list_of(settings.lang)
    return [path] if path.exists() else []


@kernel("long", _files, lambda: ["*"])
def long(settings: Settings, *, rate: float = 0.2) -> WordKernel:
    """Hold letters: 'so good' -> 'soooo goood'.

    `rate` is the chance of words that people often write so, as 'so' and 'please'; other words of
    the language's list have a share of it, and words of 2 to 8 letters on no list a fortieth. Half
    of the words held have three or four letters alike, one in fourteen seven or more.
    """
    return WordKernel(partial(lengthened, lang=settings.lang), settings.limits(rate))
