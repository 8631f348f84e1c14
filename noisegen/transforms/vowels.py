"""Vowels left out: 'txt', 'frm', 'wld'."""

from functools import cache, partial
from itertools import groupby

from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.word_kernel import WordKernel

VOWELS = DICTIONARIES / "any" / "vowels.tsv"
LENGTHS = range(4, 10)  # of the words that lose vowels
LEFT_MIN, CONSONANTS_MIN = 3, 2  # letters that a word needs to be known without its vowels


def without_vowels(word: str, vowels: frozenset[str]) -> list[tuple[str, int]]:
    """Return what a word may become without inner vowels, as a `word_kernel.WordRule`.

    The first letter stays, the last nearly always. Some lose their first or last vowels only.
    """
    if len(word) not in LENGTHS or not word.isalpha():
        return []
    silent = [letter.lower()[0] in vowels for letter in word]
    last = len(word) - 1
    inner = [at for at in range(1, last) if silent[at] and not _glides(word, at)]
    few = len(word) - len(inner) < LEFT_MIN or silent.count(False) < CONSONANTS_MIN
    if few or not inner:
        return []
    forms = {_without(word, set(inner)): 6}
    if silent[last] and len(word) - len(inner) > LEFT_MIN:
        forms[_without(word, {*inner, last})] = 2
    runs = groupby(enumerate(inner), key=lambda pair: pair[1] - pair[0])  # equal among neighbours
    groups = [{at for _, at in run} for _, run in runs]
    if len(groups) > 1:
        forms |= {_without(word, group): 1 for group in (groups[0], groups[-1])}
    return list(forms.items())


def _glides(word: str, at: int) -> bool:
    """Tell whether a letter is one vowel with a y that ends the word: 'they' is no 'thy'."""
    return at == len(word) - 2 and word[-1] in "yY"


def _without(word: str, places: set[int]) -> str:
    return "".join(letter for at, letter in enumerate(word) if at not in places)


@cache
def vowels_by_language() -> dict[str, frozenset[str]]:
    """Return the vowels of every language that has some."""
    lines = VOWELS.read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("# ")][1:]
    return {lang: frozenset(letters) for lang, letters in rows}


@kernel("vowl", lambda *_: [VOWELS], lambda: sorted(vowels_by_language()))
def vowl(settings: Settings, *, rate: float = 0.1) -> WordKernel:
    """Leave out vowels inside words: 'some text from you' -> 'sme txt frm you'.

    `rate` is the chance of each word of 4 to 9 letters that is known without them.
    """
    vowels = vowels_by_language()[settings.lang]
    return WordKernel(partial(without_vowels, vowels=vowels), settings.limits(rate))
