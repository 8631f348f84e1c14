"""Kinds of edit: each kind has a rule, and an edit has the kind of the first rule that fits.

The rules in `TEXT_RULES` come first, the rules in `WORD_RULES` after them. Kinds of change inside
words follow van der Goot, van Noord and van Noord (2018), "A taxonomy for in-depth evaluation of
normalization for user generated content". Kinds of change in punctuation, word boundaries and media
follow Sanguinetti et al. (2020), "Treebanking user-generated content". docs/guides/realism.md lists
all kinds. The rules after `casing` ignore case; the rules after `diacritics` also ignore
diacritics.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from noisegen.errors import naming_extras
from noisegen.text.alignment import (
    TokenEdit,
    common_prefix,
    is_fused,
    is_initialism,
    plain,
    token_spans,
)
from noisegen.text.languages import script_of
from noisegen.text.resources import rows_of

SOUNDS = Path(__file__).with_name("sounds.tsv")
_CONTEXTS = 1 << 10  # texts whose words and emoticons are cached
_CHANGES = 1 << 16  # changes (clean and noisy words) whose kind is cached
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
_REPEATED = re.compile(r"(.{1,3}?)\1+")
_REPEATED_THREE_TIMES = re.compile(r"(.{1,3}?)\1\1")
_SPELLED_OUT = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "ß": "ss"}
)
_STEM, _ENDING = 3, 3  # minimum letters of a stem, maximum letters of an ending


def kind_of(clean: str, noisy: str, edit: TokenEdit, lang: str = "") -> str:
    """Return the kind of an edit that turns a part of `clean` into a part of `noisy`.

    The kind is one of `KINDS`. `lang` chooses the rules for `phonetic` edits: with "zh", a
    character replaced by a character with the same reading is phonetic. Raises MissingExtra for
    "zh" without the extra zh.
    """
    before, after = edit.texts(clean, noisy)
    in_text = EditInText(clean, noisy, edit, before, after)
    for kind, fits in TEXT_RULES.items():
        if fits(in_text):
            return kind
    return _kind_of_words(before, after, lang)


@lru_cache(_CHANGES)
def _kind_of_words(before: str, after: str, lang: str) -> str:
    """Return the kind of a change by its words alone: the first of `WORD_RULES` that fits."""
    words = WordChange(before, after, lang)
    return next(kind for kind, fits in WORD_RULES.items() if fits(words))


# Rules that need the whole texts.


@dataclass(frozen=True)
class EditInText:
    """An edit from `before` to `after`, with the whole texts `clean` and `noisy`."""

    clean: str
    noisy: str
    edit: TokenEdit
    before: str
    after: str

    @property
    def is_punctuation(self) -> bool:
        """Whether neither side of the edit has a letter or digit."""
        return not any(map(str.isalnum, self.before + self.after))


def _is_emoticon(found: EditInText) -> bool:
    """Tell whether the edit is inside an emoticon or emoji run of the clean or noisy text."""
    edit = found.edit
    return _in_emoticon(found.clean, edit.clean_start, edit.clean_stop) or _in_emoticon(
        found.noisy, edit.noisy_start, edit.noisy_stop
    )


def _in_emoticon(text: str, start: int, stop: int) -> bool:
    return start < stop and any(first <= start and stop <= last for first, last in _emoticons(text))


@lru_cache(_CONTEXTS)
def _emoticons(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in _EMOTICON.finditer(text))


def _has_only_apostrophes(found: EditInText) -> bool:
    return not any(_APOSTROPHES.sub("", side) for side in (found.before, found.after))


def _is_repeated_punctuation(found: EditInText) -> bool:
    """Tell whether the edit repeats a punctuation character: 'hi!' -> 'hi!!!'."""
    before, after, edit = found.before, found.after, found.edit
    if not found.is_punctuation or len(after) <= len(before) or len(set(after)) > 1:
        return False
    around = found.noisy[max(0, edit.noisy_start - 1) : edit.noisy_stop + 1]
    return set(before) == set(after) or (not before and around.count(after[0]) > len(after))


def _is_moved(found: EditInText) -> bool:
    """Tell whether the edit moves words: all words that it removes or adds are in both texts."""
    if found.before.casefold() == found.after.casefold():
        return False
    return _is_elsewhere(found.before, found.clean, found.noisy) and _is_elsewhere(
        found.after, found.noisy, found.clean
    )


def _is_elsewhere(words: str, text: str, other: str) -> bool:
    """Tell whether the text `other` has each word in `words` at least as often as `text` has it."""
    ours, theirs = _words(text), _words(other)
    return all(theirs[word] >= ours[word] for word in _words(words))


@lru_cache(_CONTEXTS)
def _words(text: str) -> Counter[str]:
    folded = text.casefold()
    return Counter(folded[start:stop] for start, stop in token_spans(folded))


TEXT_RULES: dict[str, Callable[[EditInText], bool]] = {
    "spaces": lambda found: not (found.before + found.after).strip(),
    "emoticon": _is_emoticon,
    "apostrophe": _has_only_apostrophes,
    "punctuation repeated": _is_repeated_punctuation,
    "punctuation dropped": lambda found: found.is_punctuation and not found.after,
    "punctuation added": lambda found: found.is_punctuation and not found.before,
    "punctuation changed": lambda found: found.is_punctuation,
    "word moved": _is_moved,
    "word dropped": lambda found: not found.after,
    "word added": lambda found: not found.before,
}


# Rules that need only the words of an edit.


@dataclass(frozen=True)
class WordChange:
    """The clean words of an edit (`before`), the noisy words (`after`) and their language."""

    before: str
    after: str
    lang: str = ""

    @cached_property
    def clean(self) -> str:
        """The clean words in lower case, without diacritics."""
        return plain(self.before)

    @cached_property
    def noisy(self) -> str:
        """The noisy words in lower case, without diacritics."""
        return plain(self.after)

    @cached_property
    def start(self) -> int:
        """The number of characters that `clean` and `noisy` share at the start."""
        return common_prefix(self.clean, self.noisy)

    @cached_property
    def growth(self) -> int:
        """The number of characters by which `noisy` is longer than `clean`."""
        return len(self.noisy) - len(self.clean)

    @cached_property
    def is_abbreviated(self) -> bool:
        """Whether `noisy` is `clean` with some, but not all, of its letters left out."""
        letters = iter(self.clean)
        return self.growth < 0 and self.noisy != "" and all(c in letters for c in self.noisy)

    @cached_property
    def added_words(self) -> int:
        """The number of words on the noisy side, minus the number of words on the clean side."""
        return len(self.after.split()) - len(self.before.split())

    @cached_property
    def is_alike_without_spaces(self) -> bool:
        """Whether both sides, without spaces, differ in fewer than half of their characters."""
        return _is_similar("".join(self.before.split()), "".join(self.after.split()))


def _differs_in_diacritics(words: WordChange) -> bool:
    spelled_out = plain(words.before.lower().translate(_SPELLED_OUT))
    return words.noisy in (words.clean, spelled_out)


def _differs_in_apostrophes(words: WordChange) -> bool:
    before, after = (_APOSTROPHES.sub("", side).casefold() for side in (words.before, words.after))
    return before == after


def _has_other_script(words: WordChange) -> bool:
    """Tell whether the noisy side has letters of a script that the clean side does not use."""
    scripts, noisy_scripts = (
        {script_of(letter) for letter in side if letter.isalpha()}
        for side in (words.before, words.after)
    )
    return bool(scripts and noisy_scripts - scripts)


def _swaps_digits(words: WordChange) -> bool:
    """Tell whether exactly one of the two sides has digits: 'great' -> 'gr8'."""
    return any(map(str.isdigit, words.before)) != any(map(str.isdigit, words.after))


def _is_merge(words: WordChange) -> bool:
    is_joined = words.is_alike_without_spaces and words.added_words < 0
    return is_joined or is_fused(words.before.split(), words.after)


def _is_lengthening(words: WordChange) -> bool:
    """Tell whether the only change is that letters are repeated, three times or more: 'sooo'."""
    if words.growth <= 0 or not _REPEATED_THREE_TIMES.search(words.noisy):
        return False
    return _REPEATED.sub(r"\1", words.clean) == _REPEATED.sub(r"\1", words.noisy)


def _drops_vowels(words: WordChange) -> bool:
    """Tell whether only vowels were left out: at least two vowels, or all vowels of the word."""
    consonants, noisy_consonants = (_VOWELS.sub("", side) for side in (words.clean, words.noisy))
    drops_enough = words.growth < -1 or words.noisy == noisy_consonants
    is_rest = words.is_abbreviated and len(words.noisy) > 1 and consonants != ""
    return is_rest and drops_enough and consonants == noisy_consonants


def _is_shortening(words: WordChange) -> bool:
    """Tell whether a single word lost two or more letters, but kept its beginning or its end."""
    clean, noisy = words.clean, words.noisy
    if words.growth > -2 or " " in clean:
        return False
    is_head = words.is_abbreviated and clean[0] == noisy[0] and len(noisy) * 5 < len(clean) * 3
    is_end = clean.endswith(noisy) and len(noisy) >= _STEM
    return is_head or is_end


def _is_transposition(words: WordChange) -> bool:
    clean, start = words.clean, words.start
    swapped = clean[:start] + clean[start : start + 2][::-1] + clean[start + 2 :]
    return swapped == words.noisy != clean


def _is_other_ending(words: WordChange) -> bool:
    """Tell whether only a short ending after a shared stem differs: 'walked' -> 'walking'."""
    start = words.start
    tails = len(words.clean) - start, len(words.noisy) - start
    has_stem = start > _STEM or (start == _STEM and 0 in tails)
    return has_stem and max(tails) <= min(_ENDING, start)


def _is_insertion(words: WordChange) -> bool:
    return words.growth == 1 and words.noisy[words.start + 1 :] == words.clean[words.start :]


def _is_deletion(words: WordChange) -> bool:
    return words.growth == -1 and words.clean[words.start + 1 :] == words.noisy[words.start :]


def _is_substitution(words: WordChange) -> bool:
    rest = words.start + 1
    is_same_end = words.clean[rest:] == words.noisy[rest:]
    return words.growth == 0 and is_same_end and len(words.clean) >= _STEM


WORD_RULES: dict[str, Callable[[WordChange], bool]] = {
    "casing": lambda words: words.before.lower() == words.after.lower(),
    "diacritics": _differs_in_diacritics,
    "apostrophe": _differs_in_apostrophes,
    "script": _has_other_script,
    "initialism": lambda words: is_initialism(words.before.split(), words.after),
    "digits": _swaps_digits,
    "split": lambda words: words.is_alike_without_spaces and words.added_words > 0,
    "merge": _is_merge,
    "lengthening": _is_lengthening,
    "vowels dropped": _drops_vowels,
    "shortening": _is_shortening,
    "transposition": _is_transposition,
    "phonetic": lambda words: _sounds_alike(words.before, words.after, words.lang),
    "ending": _is_other_ending,
    "insertion": _is_insertion,
    "deletion": _is_deletion,
    "substitution": _is_substitution,
    "spelling": lambda words: _is_similar(words.clean, words.noisy),
    "word replaced": lambda words: len(words.before.split()) == len(words.after.split()) == 1,
    "other": lambda words: True,
}
KINDS: tuple[str, ...] = tuple(TEXT_RULES | WORD_RULES)


def _is_similar(clean: str, noisy: str) -> bool:
    """Tell whether two words differ in fewer than half of the characters of the longer word."""
    return Levenshtein.distance(clean, noisy) * 2 < max(len(clean), len(noisy))


def _sounds_alike(clean: str, noisy: str, lang: str) -> bool:
    """Tell whether two words sound alike, by rough rules for their script and language.

    Different vowels count as alike unless a word is short. Raises MissingExtra for "zh" without the
    extra zh.
    """
    if len(clean) == len(noisy) == 1 and script_of(clean) == "CJK":
        return lang.startswith("zh") and bool(_readings(clean) & _readings(noisy))
    sound, noisy_sound = _sound(plain(clean), lang), _sound(plain(noisy), lang)
    if sound == noisy_sound:
        return sound != ""
    bare = _VOWELS.sub("a", sound)
    if bare != _VOWELS.sub("a", noisy_sound):
        return False
    consonants = len(bare) - bare.count("a")
    same_end = sound[-1] == noisy_sound[-1]
    return (len(clean) > _STEM and consonants > 1) or (consonants == 0 and same_end)


def _sound(word: str, lang: str) -> str:
    """Return a word respelled by its sound, such as 'fon' for 'phone' and 'fone'."""
    script = "latin" if word[:1].isascii() else script_of(word[0]).lower()
    for pattern, sound in _sound_rules(lang.partition("-")[0], script):
        word = pattern.sub(sound, word)
    return "".join(b for a, b in pairwise(f" {word}") if a != b)


@cache
def _sound_rules(lang: str, script: str) -> list[tuple[re.Pattern[str], str]]:
    wanted = {lang, script}
    return [
        (re.compile(letters), sound)
        for where, letters, sound in rows_of(SOUNDS)
        if wanted & set(where.split())
    ]


@cache
def _readings(character: str) -> frozenset[str]:
    """Return the pinyin readings of a Chinese character, without tones."""
    with naming_extras():
        from pypinyin import Style, pinyin
    return frozenset(pinyin(character, style=Style.NORMAL, heteronym=True)[0])
