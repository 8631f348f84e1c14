"""How a word was respelled: tests on a clean and a noisy form, in lower case without marks."""

import csv
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from noisegen.errors import MissingExtra

SOUNDS = Path(__file__).parent / "sounds.tsv"
_VOWELS = "aeiouyæœøаеёиоуыэюяіїєαεηιουωəı"
_ANY_VOWEL = re.compile(f"[{_VOWELS}]+")
_TWICE = re.compile(r"(.{1,3}?)\1+")
_THRICE = re.compile(r"(.{1,3}?)\1\1")
# Letters that no decomposition takes apart, and the two letters that stand for an umlaut.
_STROKES = str.maketrans("đðøłħıŋ", "ddolhin")
_SPELLED_OUT = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "ß": "ss"}
_VIRAMA = 9  # a combining class that is part of the spelling
_STEM, _ENDING = 3, 3  # letters


def plain(word: str) -> str:
    """Return a word in lower case without the marks on its letters.

    >>> plain("Đã Nổi")
    'da noi'
    """
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFD", word.casefold()).translate(_STROKES)
    kept = (part for part in parts if unicodedata.combining(part) in (0, _VIRAMA))
    return unicodedata.normalize("NFC", "".join(kept))


def spelled_out(word: str) -> str:
    """Return a word in lower case with ae for ä and the like.

    >>> spelled_out("schön")
    'schoen'
    """
    return plain("".join(_SPELLED_OUT.get(letter, letter) for letter in word.lower()))


def other_script(clean: str, noisy: str) -> bool:
    """Tell whether letters of a script came in that the clean form does not use."""
    ours, theirs = _scripts(clean), _scripts(noisy)
    return bool(ours and theirs - ours)


def _scripts(text: str) -> set[str]:
    return {_script(letter) for letter in text if letter.isalpha()}


@cache
def _script(letter: str) -> str:
    return "LATIN" if letter.isascii() else unicodedata.name(letter, "?").partition(" ")[0]


def digits_for_letters(clean: str, noisy: str) -> bool:
    """Tell whether figures stand for letters or words, or words for figures: gr8, 6 for six."""
    ours, theirs = _digits(clean), _digits(noisy)
    return (ours != theirs) and not (ours and theirs)


def _digits(text: str) -> bool:
    return any(character.isdigit() for character in text)


def is_initialism(words: Sequence[str], noisy: str) -> bool:
    """Tell whether the noisy form is the initials of several words, or their first letters.

    >>> is_initialism(["be", "right", "back"], "brb"), is_initialism(["người", "ta"], "ngta")
    (True, True)
    """
    short, words = plain(noisy), [plain(word) for word in words]
    if len(words) < 2 or len(short) < len(words) or not all(words):
        return False
    if short == "".join(word[0] for word in words):
        return True
    return len(short) * 5 < sum(map(len, words)) * 3 and _of_prefixes(words, short)


def _of_prefixes(words: Sequence[str], short: str) -> bool:
    """Tell whether a form is made of a beginning of each word."""
    reached = {0}
    for word in words:
        reached = {
            at + size for at in reached for size in range(1, common_prefix(word, short[at:]) + 1)
        }
    return len(short) in reached


def is_lengthened(clean: str, noisy: str) -> bool:
    """Tell whether letters or syllables were repeated: so -> sooo, haha -> hahahaha."""
    return (
        len(noisy) > len(clean)
        and bool(_THRICE.search(noisy))
        and _TWICE.sub(r"\1", clean) == _TWICE.sub(r"\1", noisy)
    )


def drops_vowels(clean: str, noisy: str) -> bool:
    """Tell whether only vowels are missing, at least two or all there are, and more than a letter.

    >>> drops_vowels("people", "ppl"), drops_vowels("text", "txt"), drops_vowels("are", "ar")
    (True, True, False)
    """
    dropped = len(clean) - len(noisy)
    if dropped < 1 or len(noisy) < 2 or not _within(noisy, clean):
        return False
    bare = _ANY_VOWEL.sub("", noisy)
    return (dropped > 1 or bare == noisy) and _ANY_VOWEL.sub("", clean) == bare != ""


def is_shortened(clean: str, noisy: str) -> bool:
    """Tell whether at least two letters are missing, so that little or only the end is left."""
    if len(clean) - len(noisy) < 2 or not noisy or " " in clean:
        return False
    if clean.endswith(noisy) and len(noisy) >= _STEM:
        return True
    return clean[0] == noisy[0] and len(noisy) * 5 < len(clean) * 3 and _within(noisy, clean)


def _within(short: str, long: str) -> bool:
    """Tell whether the letters of one stand in the other, in order."""
    letters = iter(long)
    return all(letter in letters for letter in short)


def other_ending(clean: str, noisy: str) -> bool:
    """Tell whether the word begins alike and has another ending: needs -> need, going -> goin."""
    stem = common_prefix(clean, noisy)
    ends = len(clean) - stem, len(noisy) - stem
    if max(ends) > _ENDING or stem < max(_STEM, max(ends)):
        return False
    return stem > _STEM or 0 in ends


def common_prefix(one: str, other: str) -> int:
    """Return how many characters two texts share at the beginning."""
    shortest = min(len(one), len(other))
    return next((at for at in range(shortest) if one[at] != other[at]), shortest)


def transposed(clean: str, noisy: str) -> bool:
    """Tell whether two neighbours changed places."""
    at = common_prefix(clean, noisy)
    swapped = clean[:at] + clean[at : at + 2][::-1] + clean[at + 2 :]
    return clean != noisy and swapped == noisy


def inserted(clean: str, noisy: str) -> bool:
    """Tell whether the noisy form has one character more and is else the same."""
    at = common_prefix(clean, noisy)
    return len(noisy) == len(clean) + 1 and noisy[at + 1 :] == clean[at:]


def substituted(clean: str, noisy: str) -> bool:
    """Tell whether one character of at least three is another."""
    at = common_prefix(clean, noisy)
    return len(clean) == len(noisy) >= _STEM and clean[at + 1 :] == noisy[at + 1 :]


def alike(clean: str, noisy: str) -> bool:
    """Tell whether fewer than half of the characters differ."""
    return Levenshtein.distance(clean, noisy) * 2 < max(len(clean), len(noisy))


# Sounds.


def sounds_alike(clean: str, noisy: str, lang: str = "") -> bool:
    """Tell whether two words are read alike, roughly: by rules of their script and language.

    Vowels count only where words are short. Raises MissingExtra for "zh" without its extra.
    """
    if len(clean) == len(noisy) == 1 and _script(clean) == "CJK":
        return lang.startswith("zh") and bool(_readings(clean) & _readings(noisy))
    ours, theirs = _sound(plain(clean), lang), _sound(plain(noisy), lang)
    if ours == theirs:
        return ours != ""
    bare = _ANY_VOWEL.sub("a", ours)
    if bare != _ANY_VOWEL.sub("a", theirs):
        return False
    consonants = len(bare) - bare.count("a")
    return (len(clean) > _STEM and consonants > 1) or (consonants == 0 and ours[-1] == theirs[-1])


def _sound(word: str, lang: str) -> str:
    """Return the sound of a word, doubled letters as one."""
    for pattern, sound in _rules(lang.partition("-")[0], _script(word[:1] or "a").lower()):
        word = pattern.sub(sound, word)
    return "".join(b for a, b in pairwise(f" {word}") if a != b)


@cache
def _rules(lang: str, script: str) -> list[tuple[re.Pattern[str], str]]:
    with SOUNDS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[2:]
    wanted = {lang, script}
    return [(re.compile(letters), sound) for where, letters, sound in rows
            if wanted & set(where.split())]  # fmt: skip


@cache
def _readings(character: str) -> frozenset[str]:
    """Return the readings of a Chinese character, without tones."""
    try:
        from pypinyin import Style, pinyin
    except ImportError as error:
        raise MissingExtra("pypinyin", "zh") from error
    return frozenset(pinyin(character, style=Style.NORMAL, heteronym=True)[0])
