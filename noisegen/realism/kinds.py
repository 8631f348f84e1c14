"""Name the kind of an edit: one of `KINDS`, decided by rules in a fixed order.

The kinds follow van der Goot, van Noord and van Noord (2018), "A taxonomy for in-depth evaluation
of normalization for user generated content", for what happens inside words, and Sanguinetti et al.
(2020), "Treebanking user-generated content", for punctuation, word boundaries and media;
docs/guides/realism.md has the table. Case is ignored from the rule `casing` on, diacritics from
`diacritics` on.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, pairwise
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
_SPELLED_OUT = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "ß": "ss"}
)
_STEM, _ENDING = 3, 3  # letters


def kind_of(clean: str, noisy: str, edit: TokenEdit, lang: str = "") -> str:
    """Return the kind of an edit of `clean`, one of `KINDS`.

    `lang` matters where spelling does not show the sound: with "zh" (which needs the extra zh) a
    character replaced by one of the same reading is `phonetic`. Raises MissingExtra.
    """
    kind = next((kind for kind, fits in _rules_in_context(clean, noisy, edit) if fits), None)
    return kind or _kind_of_words(*edit.texts(clean, noisy), lang)


def _rules_in_context(clean: str, noisy: str, edit: TokenEdit) -> Iterator[tuple[str, bool]]:
    """Yield the kinds that depend on the text around an edit, and whether it is of this kind."""
    before, after = edit.texts(clean, noisy)
    is_punctuation = not any(map(str.isalnum, before + after))
    yield "spaces", not (before + after).strip()
    yield "emoticon", _in_emoticon(clean, *edit[:2]) or _in_emoticon(noisy, *edit[2:])
    yield "apostrophe", not any(_APOSTROPHES.sub("", side) for side in (before, after))
    repeats = is_punctuation and _is_repeated(before, after, noisy, edit)
    yield "punctuation repeated", repeats
    yield "punctuation dropped", is_punctuation and not after
    yield "punctuation added", is_punctuation and not before
    yield "punctuation changed", is_punctuation
    is_same = before.casefold() == after.casefold()
    stand_elsewhere = _is_elsewhere(before, clean, noisy) and _is_elsewhere(after, noisy, clean)
    yield "word moved", stand_elsewhere and not is_same
    yield "word dropped", not after
    yield "word added", not before


@lru_cache(_CHANGES)
def _kind_of_words(before: str, after: str, lang: str) -> str:
    return next(kind for kind, fits in _rules_of_words(before, after, lang) if fits)


def _rules_of_words(before: str, after: str, lang: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the kinds that depend on the words alone, and whether an edit is of this kind."""
    yield "casing", before.lower() == after.lower()
    clean, noisy = plain(before), plain(after)
    yield "diacritics", noisy in (clean, plain(before.lower().translate(_SPELLED_OUT)))
    letters = {_APOSTROPHES.sub("", side).casefold() for side in (before, after)}
    yield "apostrophe", len(letters) == 1
    scripts, noisy_scripts = (set(map(script_of, filter(str.isalpha, s))) for s in (before, after))
    yield "script", bool(scripts and noisy_scripts - scripts)
    words, noisy_words = before.split(), after.split()
    yield "initialism", is_initialism(words, after)
    yield "digits", any(map(str.isdigit, before)) != any(map(str.isdigit, after))
    is_alike = _is_similar("".join(words), "".join(noisy_words))
    yield "split", is_alike and len(noisy_words) > len(words)
    is_merge = is_alike and len(noisy_words) < len(words)
    yield "merge", is_merge or is_fused(words, after)
    repeats = len(noisy) > len(clean) and bool(_THRICE.search(noisy))
    yield "lengthening", repeats and _TWICE.sub(r"\1", clean) == _TWICE.sub(r"\1", noisy)
    dropped, rest = len(clean) - len(noisy), iter(clean)
    is_part = dropped > 0 and noisy != "" and all(letter in rest for letter in noisy)
    bare, noisy_bare = (_VOWELS.sub("", side) for side in (clean, noisy))
    drops_more = dropped > 1 or noisy == noisy_bare  # than one of several vowels
    yield "vowels dropped", is_part and len(noisy) > 1 and drops_more and bare == noisy_bare != ""
    is_head = is_part and clean[0] == noisy[0] and len(noisy) * 5 < len(clean) * 3
    is_end = clean.endswith(noisy) and len(noisy) >= _STEM
    yield "shortening", dropped > 1 and " " not in clean and (is_head or is_end)
    start = common_prefix(clean, noisy)
    swapped = clean[:start] + clean[start : start + 2][::-1] + clean[start + 2 :]
    yield "transposition", swapped == noisy != clean
    yield "phonetic", _sounds_alike(before, after, lang)
    tails = len(clean) - start, len(noisy) - start
    has_stem = start > _STEM or (start == _STEM and 0 in tails)
    yield "ending", has_stem and max(tails) <= min(_ENDING, start)
    grown = len(noisy) - len(clean)
    yield "insertion", grown == 1 and noisy[start + 1 :] == clean[start:]
    yield "deletion", grown == -1 and clean[start + 1 :] == noisy[start:]
    is_same_end = clean[start + 1 :] == noisy[start + 1 :]
    yield "substitution", grown == 0 and is_same_end and len(clean) >= _STEM
    yield "spelling", _is_similar(clean, noisy)
    yield "word replaced", len(words) == len(noisy_words) == 1
    yield "other", True


# Rules that look at the text around an edit.


@lru_cache(_CONTEXTS)
def _emoticons(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in _EMOTICON.finditer(text))


def _in_emoticon(text: str, start: int, stop: int) -> bool:
    return start < stop and any(first <= start and stop <= last for first, last in _emoticons(text))


def _is_repeated(before: str, after: str, noisy: str, edit: TokenEdit) -> bool:
    """Tell whether a sign that is there, or beside it, was repeated."""
    if len(after) <= len(before) or len(set(after)) > 1:
        return False
    around = noisy[max(0, edit.noisy_start - 1) : edit.noisy_stop + 1]
    return set(before) == set(after) or (not before and around.count(after[0]) > len(after))


@lru_cache(_CONTEXTS)
def _words(text: str) -> Counter[str]:
    folded = text.casefold()
    return Counter(folded[start:stop] for start, stop in token_spans(folded))


def _is_elsewhere(words: str, text: str, other: str) -> bool:
    """Tell whether the other text has these words at least as often as their own text."""
    ours, theirs = _words(text), _words(other)
    return all(theirs[word] >= ours[word] for word in _words(words))


def _is_similar(clean: str, noisy: str) -> bool:
    """Tell whether fewer than half of the characters differ."""
    return Levenshtein.distance(clean, noisy) * 2 < max(len(clean), len(noisy))


def _sounds_alike(clean: str, noisy: str, lang: str) -> bool:
    """Tell whether two words are read alike, roughly: by rules of their script and language.

    Vowels count only where words are short. Raises MissingExtra for "zh" without its extra.
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
    """Return the sound of a word, doubled letters as one."""
    script = "latin" if word[:1].isascii() else script_of(word[0]).lower()
    for pattern, sound in _sound_rules(lang.partition("-")[0], script):
        word = pattern.sub(sound, word)
    return "".join(b for a, b in pairwise(f" {word}") if a != b)


@cache
def _sound_rules(lang: str, script: str) -> list[tuple[re.Pattern[str], str]]:
    wanted = {lang, script}
    return [(re.compile(letters), sound) for where, letters, sound in rows_of(SOUNDS)
            if wanted & set(where.split())]  # fmt: skip


@cache
def _readings(character: str) -> frozenset[str]:
    """Return the readings of a Chinese character, without tones."""
    with naming_extras():
        from pypinyin import Style, pinyin
    return frozenset(pinyin(character, style=Style.NORMAL, heteronym=True)[0])


_NO_EDIT = TokenEdit(0, 0, 0, 0)
_RULES = chain(_rules_in_context("", "", _NO_EDIT), _rules_of_words("", ""))
KINDS: tuple[str, ...] = tuple(dict.fromkeys(kind for kind, _ in _RULES))
