"""Transforms of a word's letters: dropped apostrophes, marks, vowels, repeats, hyphens.

Each transform is a rule for `WordKernel`. A rule takes a word and returns its possible noisy forms
with whole-number weights. If the rule returns no form, the word stays unchanged.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from noisegen.noising.kernels import WordKernel
from noisegen.noising.lexical import LexicalKernel, ListRules
from noisegen.noising.lexicon import Entry, Lexicon
from noisegen.noising.phrases import PhraseTable, build
from noisegen.noising.registry import Kernel, Settings, kernel
from noisegen.text.buffers import APOSTROPHES
from noisegen.text.languages import script_of
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms import Forms, LanguageFiles, existing, rows_of


class Misplacing(NamedTuple):
    """Ways to write 'don't' wrongly, and how many of 1,000 wrong apostrophes each accounts for."""

    dropped: int  # dont
    spaced: int  # don t
    other_sign: int  # don;t
    early: int  # do'nt, in English only
    late: int  # dont', in English only


WITHIN_WORDS = Misplacing(980, 4, 6, 8, 2)  # for apostrophes within a word; counted in tweets
BETWEEN_WORDS = Misplacing(600, 320, 80, 0, 0)  # for apostrophes that join words, as in j'ai, c'è
JOINING = ("ca", "fr", "it", "oc")  # languages whose apostrophes join two words
ACCENTS = ("`", "´")  # accents that people type instead of an apostrophe
NEAR = (";", ",")  # signs on keys near the apostrophe of the American keyboard
AMERICAN = ("en", "nl", "af", "id", "ms", "pl", "vi", "sw", "tl")  # languages with this keyboard
_LEADS = bytes(sign.encode()[0] for sign in APOSTROPHES)
_NO_APOSTROPHE = str.maketrans(dict.fromkeys(APOSTROPHES))
ENDING_MAX = 2  # most letters of an English ending ('t, 's, 're) whose apostrophe is misplaced


def misplaced(word: str, lang: str) -> Forms:
    """Return noisy forms of a word: without apostrophes, or with the first apostrophe misplaced."""
    at = next((at for at, sign in enumerate(word) if sign in APOSTROPHES), 0)
    before, sign, after = word[:at], word[at : at + 1], word[at + 1 :]
    if not before or (before + after).isdecimal():  # numbers such as 5'11 are measures and stay
        return []
    shares = BETWEEN_WORDS if lang in JOINING else WITHIN_WORDS
    others = ACCENTS + NEAR if lang in AMERICAN else ACCENTS
    forms = {
        word.translate(_NO_APOSTROPHE): shares.dropped * len(others),
        f"{before} {after}": shares.spaced * len(others),
    }
    for other in others:
        forms[before + other + after] = shares.other_sign
    if lang == "en" and len(after) <= ENDING_MAX:
        forms[before + after + sign] = shares.late * len(others)
        if len(before) > 1:
            forms[before[:-1] + sign + before[-1] + after] = shares.early * len(others)
    return list(forms.items())


@kernel("apos", kind="habit")
def apos(settings: Settings, *, rate: float = 0.5) -> WordKernel:
    """Drop or misplace apostrophes: 'I don't know' -> 'I dont know'.

    `rate` is the chance that a word with an apostrophe changes.
    """
    rule = partial(misplaced, lang=settings.lang)
    return WordKernel(rule, settings.limits(rate), _LEADS, settings.words_alike)


# Diacritical marks are left out of Latin and Greek letters, which are legible without marks.
# Vowel points are left out of Arabic and Hebrew words, as people write them for learners only.
# Marks in other scripts stay: they make another letter (Cyrillic й) or carry the vowel (Thai).
DECOMPOSED = ("LATIN", "GREEK")  # scripts in which a mark is dropped from a composed character: é
POINTED = (*DECOMPOSED, "ARABIC", "HEBREW")  # scripts in which combining marks are dropped

_BEYOND_ASCII = bytes(range(0x80, 0x100))
_OWN_LETTERS = LanguageFiles("diac.tsv")


def unmarked(word: str, lang: str) -> Forms:
    """Return the word written without diacritics, in each of the language's `spellings`.

    Some of these forms may equal the word. Returns [] if all forms do.
    """
    ways = [] if word.isascii() else spellings(lang)
    forms = [(_without_marks(word, letters), weight) for letters, weight in ways]
    return forms if any(form != word for form, _ in forms) else []


def _without_marks(word: str, letters: Mapping[str, str]) -> str:
    """Return a word without diacritical marks.

    `letters` maps small letters to their plain spellings, such as ä to ae. The spelling of a
    capital begins with a capital: Ä becomes Ae, or AE in a word of capitals.
    """
    written, script = "", ""
    for sign in word:
        if unicodedata.category(sign) == "Mn":
            written += "" if script in POINTED else sign
            continue
        script, lower = script_of(sign), sign.lower()
        if not sign.isascii() and lower in letters:
            plain = letters[lower]
            raised = plain.upper() if word.isupper() else plain.capitalize()
            written += plain if sign == lower else raised
        else:
            first = unicodedata.normalize("NFD", sign)[0]
            written += first if script_of(first) in DECOMPOSED else sign
    return written


@cache
def spellings(lang: str) -> list[tuple[dict[str, str], int]]:
    """Return the ways to write a language without marks, such as ä always as ae, or always as a.

    A way is a dictionary {letter: plain spelling}, with a weight. The letter list of the language
    has one or more spellings per letter. Way k uses spelling k of every letter; a letter with fewer
    spellings keeps its last one. The weight of way k is the largest weight of spelling k among the
    letters with the most spellings. Where people also keep the mark, spelling 0 is the letter
    itself.
    """
    groups = []
    for lexicon in map(Lexicon.load, _letter_files(Settings(lang), {})):
        for group in lexicon.groups().values():
            groups.append(sorted(group, key=lambda entry: entry.noisy != entry.clean))
    ways, count = [], max(map(len, groups))
    for rank in range(count):
        chosen = [group[min(rank, len(group) - 1)] for group in groups]
        weight = max(group[rank].weight for group in groups if len(group) == count)
        ways.append(({entry.clean: entry.noisy for entry in chosen}, weight))
    return ways


def _letter_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return the letter files of `diac`: one for all languages, then the language's own, if any."""
    return [_OWN_LETTERS.of("any"), *_OWN_LETTERS.read(settings, values)]


@kernel("diac", _letter_files, kind="script")
def diac(settings: Settings, *, rate: float = 0.7) -> WordKernel:
    """Drop diacritics: 'déjà vu in a café' -> 'deja vu in a cafe'.

    `rate` is the chance that a word with diacritics loses all of them. All words of a row are
    written in the same way: 'ä' as 'ae', or as 'a'. The default comes from essays of learners
    (COWS-L2H): writers who leave out at least one mark leave out seven in ten of their marks.
    """
    rule, limits = partial(unmarked, lang=settings.lang), settings.limits(rate)
    return WordKernel(rule, limits, _BEYOND_ASCII, settings.words_alike, one_way=True)


VOWELS_LEFT_OUT = range(4, 10)  # lengths of words that may lose vowels
# A word may lose vowels only if at least so many letters, and so many consonants, are left.
LEFT_MIN, CONSONANTS_MIN = 3, 2
NOUNS_HAVE_CAPITALS = ("de",)  # languages in which a capital within a sentence marks no name
_VOWELS = DICTIONARIES / "any" / "vowels.tsv"


def without_vowels(word: str, vowels: frozenset[str]) -> Forms:
    """Return the forms of a word without inner vowels, which are between first and last letter.

    One form lacks all inner vowels, one form only the first group of adjacent vowels, one form only
    the last group. If the word ends in a consonant and a vowel, a further form lacks all inner
    vowels and the last vowel.
    """
    if len(word) not in VOWELS_LEFT_OUT or not word.isalpha():
        return []
    is_vowel = [letter.lower()[0] in vowels for letter in word]
    forms = dict[str, int]()
    for places, weight in _vowels_to_drop(word, is_vowel):
        form = "".join(letter for at, letter in enumerate(word) if at not in places)
        forms[form] = weight
    return list(forms.items())


def _vowels_to_drop(word: str, is_vowel: Sequence[bool]) -> list[tuple[set[int], int]]:
    """Return for each form without vowels the positions of the dropped vowels, and its weight.

    `is_vowel` has a flag per letter. Returns [] if readers would not recognise the word.
    """
    inner = _inner_vowels(word, is_vowel)
    last, left = len(word) - 1, len(word) - len(inner)
    if not inner or left < LEFT_MIN or is_vowel.count(False) < CONSONANTS_MIN:
        return []
    dropped = [({*inner}, 6)]
    if is_vowel[last] and not is_vowel[last - 1] and left > LEFT_MIN:
        dropped.append(({*inner, last}, 2))
    groups = _neighbours(inner)
    if len(groups) > 1:
        dropped += [(groups[0], 1), (groups[-1], 1)]
    return dropped


def _inner_vowels(word: str, is_vowel: Sequence[bool]) -> list[int]:
    """Return the positions of the vowels that may be dropped between first and last letter.

    A vowel must stay if the last letter of the word follows it and is a vowel or y.
    """
    last = len(word) - 1
    inner = [at for at in range(1, last) if is_vowel[at]]
    if last - 1 in inner and (is_vowel[last] or word[-1] in "yY"):  # never 'thy' for 'they'
        inner.remove(last - 1)
    return inner


def _neighbours(places: list[int]) -> list[set[int]]:
    """Split ascending positions into groups of consecutive positions."""
    groups = list[set[int]]()
    for place in places:
        if groups and place - 1 in groups[-1]:
            groups[-1].add(place)
        else:
            groups.append({place})
    return groups


@cache
def vowels_by_language() -> dict[str, frozenset[str]]:
    """Return the vowels of each language in the packaged table `vowels.tsv`."""
    return {lang: frozenset(letters) for lang, letters in rows_of(_VOWELS)}


@kernel("vowl", lambda *_: [_VOWELS], lambda: sorted(vowels_by_language()), kind="habit")
def vowl(settings: Settings, *, rate: float = 0.1) -> WordKernel:
    """Drop vowels inside words: 'some text from you' -> 'sme txt frm you'.

    `rate` is the chance that a word loses vowels, if it has 4 to 9 letters and readers recognise it
    without the vowels. A capitalised word within a sentence is a name and stays, except in German,
    where all nouns are capitalised.
    """
    rule = partial(without_vowels, vowels=vowels_by_language()[settings.lang])
    return WordKernel(
        rule,
        settings.limits(rate),
        words_alike=settings.words_alike,
        bytes_min=VOWELS_LEFT_OUT.start,
        names_stay=settings.lang not in NOUNS_HAVE_CAPITALS,
    )


BROKEN_MIN, LEFT_ON_LINE = 6, 2  # fewest letters of a word that breaks, and of each of its parts
# Pairs of consonants that write one sound, which no line end separates.
ONE_SOUND = frozenset(("ch", "ck", "gh", "gn", "ph", "qu", "rh", "sh", "sz", "th", "wh"))


def at_line_end(word: str, vowels: frozenset[str]) -> Forms:
    """Return the forms of a word with a hyphen and a space before a syllable.

    A syllable begins with the consonant before a vowel; a vowel must come before it, too.
    """
    if len(word) < BROKEN_MIN or not word.isalpha():
        return []
    lower = word.lower()
    is_vowel = [letter in vowels for letter in lower]
    return [
        (f"{word[:at]}- {word[at:]}", 1)
        for at in range(LEFT_ON_LINE, len(lower) - LEFT_ON_LINE + 1)
        if not is_vowel[at] and is_vowel[at + 1] and any(is_vowel[:at])
        if lower[at - 1 : at + 1] not in ONE_SOUND
    ]


@kernel("hyph", lambda *_: [_VOWELS], lambda: sorted(vowels_by_language()), kind="slip")
def hyph(settings: Settings, *, rate: float = 0.1) -> WordKernel:
    """Break words as lines of print end: 'the recent election' -> 'the re- cent elec- tion'.

    `rate` is the chance that a word of at least 6 letters is broken, before a syllable.
    """
    rule = partial(at_line_end, vowels=vowels_by_language()[settings.lang])
    return WordKernel(rule, settings.limits(rate), bytes_min=BROKEN_MIN)


ADDED = (24, 32, 19, 11, 7, 4, 2, 1)  # weights of writing a letter 1, 2, ... 8 more times
# Vowels, without diacritical marks: Latin, Cyrillic, Greek, Arabic, and vowel signs of Devanagari.
VOWELS = frozenset("aeiouyæøœıə" + "аеиоуыэюяіє" + "αεηιουω" + "اوي" + "ाीुूेैोौ")
# Consonants that may be lengthened at the end of a word.
LAST_CONSONANTS = frozenset("lmnrsyhzfw" + "лмнрсшхйвз" + "λμνρς")
UNLISTED_LENGTHS = range(2, 9)  # lengths of words outside `long.tsv` that may be lengthened
FULL = 8  # a word whose weights in `long.tsv` sum to this is lengthened with chance `rate`
OTHERS_SHARE = 40  # words outside `long.tsv` are lengthened with one 40th of the chance `rate`

_LISTED_WORDS, _FUNCTION_WORDS = LanguageFiles("long.tsv"), LanguageFiles("before.tsv")
Places = list[tuple[int, int]]  # letters of a word that may be repeated, as (position, weight)


def lengthened(word: str, lang: str) -> Forms:
    """Return the weighted forms of a word in which one letter is repeated.

    The kernel changes every word with chance `rate`. A word that should be lengthened less often
    has itself as a further form, so that it may stay when it is chosen.
    """
    lower = word.lower()
    listed = listed_places(lang).get(lower) if len(lower) == len(word) else None
    places: Places = listed or []
    if listed is None and lower not in function_words(lang):
        places = _guessed_places(word)
    forms = []
    for at, weight in places:
        longer = _lengthened_at(word, at)
        forms += [(form, weight * often) for form, often in zip(longer, ADDED, strict=True)]
    weights = sum(weight for _, weight in places)
    stays = FULL - weights if listed else weights * (OTHERS_SHARE - 1)
    return [*forms, (word, stays * sum(ADDED))] if stays > 0 else forms


def _lengthened_at(word: str, at: int) -> Iterator[str]:
    """Yield the forms of a word in which the letter at `at` is written 1, 2, ... 8 more times."""
    # The added letters are small, even after a capital ('Oooh'), except in a word of capitals.
    letter = lengthening_of(word[at] if word.isupper() else word[at].lower()[0])
    for count in range(1, len(ADDED) + 1):
        yield word[: at + 1] + letter * count + word[at + 1 :]


def lengthening_of(letter: str) -> str:
    """Return the letter to repeat after `letter`: itself, or the vowel of an Indic vowel sign."""
    try:
        vowel = unicodedata.name(letter).replace("VOWEL SIGN", "LETTER")
        return unicodedata.lookup(vowel)
    except (KeyError, ValueError):
        return letter


def _guessed_places(word: str) -> Places:
    """Return positions and weights of the letters to repeat in a word that `long.tsv` lacks.

    They may be the last letter, the last vowel and the first vowel. Returns [] if the word does not
    look ordinary, see `_looks_ordinary`.
    """
    if not _looks_ordinary(word):
        return []
    vowels, last = _vowel_places(word), len(word) - 1
    ends_long = last in vowels or word[last].lower()[0] in LAST_CONSONANTS
    places = [(last, 4)] if ends_long else []
    if vowels and vowels[-1] != last:
        places.append((vowels[-1], 3))
    if len(vowels) > 1 and vowels[0] != last:
        places.append((vowels[0], 1))
    return places


def _looks_ordinary(word: str) -> bool:
    """Tell whether a word may be lengthened although `long.tsv` lacks it.

    An ordinary word has a length in `UNLISTED_LENGTHS`, only letters and their marks, no first
    capital, and no letter three times in a row. Its letters are composed (NFC), as a separate mark
    would follow only the last of the repeated letters.
    """
    has_long_letter = re.search(r"(.)\1\1", word.lower())
    if len(word) not in UNLISTED_LENGTHS or word[0].isupper() or has_long_letter:
        return False
    if not unicodedata.is_normalized("NFC", word):
        return False
    return all(unicodedata.category(sign)[0] in "LM" for sign in word)


def _vowel_places(word: str) -> list[int]:
    """Return the positions of a word's vowels, except an Arabic alef at the start of the word."""
    first = int(word[0] == "ا")  # an alef at the start usually belongs to the article
    return [at for at in range(first, len(word)) if _is_vowel(word[at].lower()[0])]


def _is_vowel(letter: str) -> bool:
    return letter not in LAST_CONSONANTS and unicodedata.normalize("NFD", letter)[0] in VOWELS


@cache
def listed_places(lang: str) -> dict[str, Places]:
    """Return the words in `long.tsv` of a language, with position and weight of letters to repeat.

    A word that is listed because it must never be lengthened has an empty list.
    """
    places = defaultdict[str, Places](list)
    for entry in _listed_entries(lang):
        pairs = zip(entry.clean, entry.noisy, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        here = [(same - 1, entry.weight)] if entry.noisy != entry.clean else []
        places[entry.clean] += here
    return dict(places)


@cache
def function_words(lang: str) -> frozenset[str]:
    """Return the function words in `before.tsv`; they stay unless `long.tsv` lists them too."""
    paths = existing(_FUNCTION_WORDS.of(lang))
    return frozenset(word for path in paths for word, *_ in rows_of(path))


def _listed_entries(lang: str) -> list[Entry]:
    paths = _LISTED_WORDS.read(Settings(lang), {})
    return [entry for path in paths for entry in Lexicon.load(path).entries]


def listed_phrases(lang: str, matched_by: str) -> PhraseTable:
    """Return the phrase table of `long.tsv`, for a language without spaces between words."""
    stay = [entry for entry in _listed_entries(lang) if entry.noisy == entry.clean]
    forms = [(word, form) for word in listed_places(lang) for form in lengthened(word, lang)]
    entries = [Entry(word, form, weight) for word, (form, weight) in forms]
    return build(Lexicon({"name": "long"}, [*stay, *entries]), matched_by)


def _word_files(settings: Settings, _: Mapping[str, Any]) -> list[Path]:
    return existing(_LISTED_WORDS.of(settings.lang), _FUNCTION_WORDS.of(settings.lang))


@kernel("long", _word_files)
def long(settings: Settings, *, rate: float = 0.2) -> Kernel:
    """Lengthen words by repeating letters: 'so good' -> 'soooo goood'.

    `rate` is the chance for words that people often lengthen, such as 'so' and 'please'. Other
    words in the language's `long.tsv` have a part of `rate` as their chance. Words of 2 to 8
    letters outside this list have one fortieth of `rate`. Half of the lengthened words have three
    or four equal letters in a row; one in fourteen has seven or more. In Thai, which has no spaces
    between words, only listed words are lengthened.
    """
    if settings.matched_by != "tokens" and listed_places(settings.lang):
        table = listed_phrases(settings.lang, settings.matched_by)
        return LexicalKernel(table, (ListRules(settings.limits(rate)),))
    return WordKernel(partial(lengthened, lang=settings.lang), settings.limits(rate))
