"""Name the kind of an edit: one of `KINDS`, decided by rules in a fixed order.

The kinds follow van der Goot, van Noord and van Noord (2018), "A taxonomy for in-depth evaluation
of normalization for user generated content", for what happens inside words, and Sanguinetti et al.
(2020), "Treebanking user-generated content", for punctuation, word boundaries and media;
docs/realism.md has the table. Case is ignored from the rule `casing` on, diacritics from
`diacritics` on.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from noisegen.errors import MissingExtra
from noisegen.text.alignment import TokenEdit, common_prefix, is_initialism, plain, token_spans

SOUNDS = Path(__file__).with_name("sounds.tsv")
_CONTEXTS = 1 << 10  # texts whose tokens and emoticons are cached
_CHANGES = 1 << 16  # changes of words whose kind is cached
_APOSTROPHES = re.compile(r"\s*['\u2018\u2019\u02bc`\u00b4]+\s*")
_EMOJI = "\u2600-\u27bf\u2b50-\u2b55\ufe0f\u200d\U0001f000-\U0001faff"
_EMOTICON = re.compile(
    rf"[{_EMOJI}]+"
    r"|(?:[:;=]|(?<!\w)[8xX]) ?['\u2019]?[-^o~]?(?: ?[)(\]\[])+(?!\w)"  # :) ;-( =)))
    r"|(?<!\w)[:;=][-^]?(?:[DPpOoSsVv3*/|\\](?!\w)|[DPp]{2,}(?!\w))"  # :D :P :v :3
    r"|(?<!\w)[xX]D+(?!\w)|<3+|\^[_.-]*\^|[-TtoO>][_.][-TtoO<](?!\w)"  # xD <3 ^_^ -_- T_T
    r"|\)(?: ?\))+"  # )))
)
_VOWELS = re.compile("[aeiouyæœøаеёиоуыэюяіїєαεηιουωəı]+")
_TWICE = re.compile(r"(.{1,3}?)\1+")
_THRICE = re.compile(r"(.{1,3}?)\1\1")
_SPELLED_OUT = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "ß": "ss"}
_STEM, _ENDING = 3, 3  # letters


class EditTexts(NamedTuple):
    """An edit with its texts: what was there before, what is there after."""

    before: str
    after: str
    clean: str
    noisy: str
    edit: TokenEdit


def kind_of(clean: str, noisy: str, edit: TokenEdit, lang: str = "") -> str:
    """Return the kind of an edit of `clean`, one of `KINDS`.

    `lang` matters where spelling does not show the sound: with "zh" (which needs the extra zh) a
    character replaced by one of the same reading is `phonetic`. Raises MissingExtra.
    """
    before, after = edit.texts(clean, noisy)
    change = EditTexts(before, after, clean, noisy, edit)
    for kind, applies in _IN_CONTEXT:
        if applies(change):
            return kind
    return _kind_of_words(before, after, lang)


@lru_cache(_CHANGES)
def _kind_of_words(before: str, after: str, lang: str) -> str:
    return next(kind for kind, applies in _BY_ITSELF if applies(before, after, lang))


# Rules that look at the text around an edit.


def _is_punctuation(change: EditTexts) -> bool:
    return not any(character.isalnum() for character in change.before + change.after)


def _is_emoticon(change: EditTexts) -> bool:
    edit = change.edit
    return any(
        start < stop and first <= start and stop <= last
        for text, start, stop in (
            (change.clean, edit.clean_start, edit.clean_stop),
            (change.noisy, edit.noisy_start, edit.noisy_stop),
        )
        for first, last in _emoticons(text)
    )


@lru_cache(_CONTEXTS)
def _emoticons(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in _EMOTICON.finditer(text))


def _is_apostrophe(change: EditTexts) -> bool:
    sides = change.before, change.after
    return _is_punctuation(change) and not any(_APOSTROPHES.sub("", side) for side in sides)


def _is_repetition(change: EditTexts) -> bool:
    """Tell whether more of the punctuation that stands there, or beside it, was written."""
    before, after = change.before, change.after
    if not _is_punctuation(change) or len(after) <= len(before) or len(set(after)) > 1:
        return False
    around = change.noisy[max(0, change.edit.noisy_start - 1) : change.edit.noisy_stop + 1]
    return set(before) == set(after) or (not before and around.count(after[0]) > len(after))


def _is_move(change: EditTexts) -> bool:
    """Tell whether what is missing here stands elsewhere, and what is here is missing there."""
    before, after = change.before.casefold(), change.after.casefold()
    if _is_punctuation(change) or before == after:
        return False
    clean, noisy = _words(change.clean), _words(change.noisy)
    gone = all(noisy[word] >= clean[word] for word in _words(change.before))
    return gone and all(clean[word] >= noisy[word] for word in _words(change.after))


@lru_cache(_CONTEXTS)
def _words(text: str) -> Counter[str]:
    folded = text.casefold()
    return Counter(folded[start:stop] for start, stop in token_spans(folded))


_IN_CONTEXT: tuple[tuple[str, Callable[[EditTexts], bool]], ...] = (
    ("blanks", lambda change: not (change.before + change.after).strip()),
    ("emoticon", _is_emoticon),
    ("apostrophe", _is_apostrophe),
    ("mark repeated", _is_repetition),
    ("mark dropped", lambda change: _is_punctuation(change) and not change.after),
    ("mark added", lambda change: _is_punctuation(change) and not change.before),
    ("mark changed", _is_punctuation),
    ("word moved", _is_move),
    ("word dropped", lambda change: not change.after),
    ("word added", lambda change: not change.before),
)


# Rules on the words alone, before and after.


def _same_but_diacritics(before: str, after: str) -> bool:
    spelled_out = "".join(_SPELLED_OUT.get(letter, letter) for letter in before.lower())
    return plain(after) in (plain(before), plain(spelled_out))


def _same_but_apostrophes(before: str, after: str) -> bool:
    return len({_APOSTROPHES.sub("", side).casefold() for side in (before, after)}) == 1


def _other_script(before: str, after: str) -> bool:
    """Tell whether letters came in of a script that the clean form does not use."""
    clean, noisy = ({_script(c) for c in side if c.isalpha()} for side in (before, after))
    return bool(clean and noisy - clean)


@cache
def _script(letter: str) -> str:
    return "LATIN" if letter.isascii() else unicodedata.name(letter, "?").partition(" ")[0]


def _digits_for_letters(before: str, after: str) -> bool:
    """Tell whether digits replace letters or words, or words digits: gr8, 6 for six."""
    return any(map(str.isdigit, before)) != any(map(str.isdigit, after))


def _same_without_spaces(before: str, after: str) -> bool:
    return similar("".join(before.split()), "".join(after.split()))


def _is_split(before: str, after: str) -> bool:
    return len(after.split()) > len(before.split()) and _same_without_spaces(before, after)


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
    bare = _VOWELS.sub("", noisy)
    return (dropped > 1 or bare == noisy) and _VOWELS.sub("", clean) == bare != ""


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


def transposed(clean: str, noisy: str) -> bool:
    """Tell whether two neighbours changed places."""
    at = common_prefix(clean, noisy)
    return clean != noisy and clean[:at] + clean[at : at + 2][::-1] + clean[at + 2 :] == noisy


def other_ending(clean: str, noisy: str) -> bool:
    """Tell whether the word begins the same and ends otherwise: needs -> need, going -> goin."""
    stem = common_prefix(clean, noisy)
    ends = len(clean) - stem, len(noisy) - stem
    if max(ends) > _ENDING or stem < max(_STEM, max(ends)):
        return False
    return stem > _STEM or 0 in ends


def inserted(clean: str, noisy: str) -> bool:
    """Tell whether the noisy form has one character more and is otherwise the same."""
    at = common_prefix(clean, noisy)
    return len(noisy) == len(clean) + 1 and noisy[at + 1 :] == clean[at:]


def substituted(clean: str, noisy: str) -> bool:
    """Tell whether one character of at least three is another."""
    at = common_prefix(clean, noisy)
    return len(clean) == len(noisy) >= _STEM and clean[at + 1 :] == noisy[at + 1 :]


def similar(clean: str, noisy: str) -> bool:
    """Tell whether fewer than half of the characters differ."""
    return Levenshtein.distance(clean, noisy) * 2 < max(len(clean), len(noisy))


def sounds_alike(clean: str, noisy: str, lang: str = "") -> bool:
    """Tell whether two words are read alike, roughly: by rules of their script and language.

    Vowels count only where words are short. Raises MissingExtra for "zh" without its extra.
    """
    if len(clean) == len(noisy) == 1 and _script(clean) == "CJK":
        return lang.startswith("zh") and bool(_readings(clean) & _readings(noisy))
    sounds = _sound(plain(clean), lang), _sound(plain(noisy), lang)
    if sounds[0] == sounds[1]:
        return sounds[0] != ""
    bare = _VOWELS.sub("a", sounds[0])
    if bare != _VOWELS.sub("a", sounds[1]):
        return False
    consonants = len(bare) - bare.count("a")
    same_end = sounds[0][-1] == sounds[1][-1]
    return (len(clean) > _STEM and consonants > 1) or (consonants == 0 and same_end)


def _sound(word: str, lang: str) -> str:
    """Return the sound of a word, doubled letters as one."""
    for pattern, sound in _sound_rules(lang.partition("-")[0], _script(word[:1] or "a").lower()):
        word = pattern.sub(sound, word)
    return "".join(b for a, b in pairwise(f" {word}") if a != b)


@cache
def _sound_rules(lang: str, script: str) -> list[tuple[re.Pattern[str], str]]:
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


_WordRule = Callable[[str, str, str], bool]  # before, after, lang


def _raw(applies: Callable[[str, str], bool]) -> _WordRule:
    return lambda before, after, lang: applies(before, after)


def _without_diacritics(applies: Callable[[str, str], bool]) -> _WordRule:
    return lambda before, after, lang: applies(plain(before), plain(after))


_BY_ITSELF: tuple[tuple[str, _WordRule], ...] = (
    ("casing", _raw(lambda before, after: before.lower() == after.lower())),
    ("diacritics", _raw(_same_but_diacritics)),
    ("apostrophe", _raw(_same_but_apostrophes)),
    ("script", _raw(_other_script)),
    ("initialism", _raw(lambda before, after: is_initialism(before.split(), after))),
    ("digits", _raw(_digits_for_letters)),
    ("split", _raw(_is_split)),
    ("merge", _raw(lambda before, after: _is_split(after, before))),
    ("lengthening", _without_diacritics(is_lengthened)),
    ("vowels dropped", _without_diacritics(drops_vowels)),
    ("shortening", _without_diacritics(is_shortened)),
    ("transposition", _without_diacritics(transposed)),
    ("phonetic", sounds_alike),
    ("ending", _without_diacritics(other_ending)),
    ("insertion", _without_diacritics(inserted)),
    ("deletion", _without_diacritics(lambda before, after: inserted(after, before))),
    ("substitution", _without_diacritics(substituted)),
    ("spelling", _without_diacritics(similar)),
    ("word replaced", _raw(lambda a, b: len(a.split()) == len(b.split()) == 1)),
    ("other", _raw(lambda before, after: True)),
)
KINDS: tuple[str, ...] = tuple(dict.fromkeys(kind for kind, _ in (*_IN_CONTEXT, *_BY_ITSELF)))
