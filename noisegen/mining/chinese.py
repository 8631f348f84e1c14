"""Chinese: words by jieba, and the two kinds of noise that RCP takes: homophones and synonyms."""

import re
import warnings
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from noisegen.compiled import cache_folder

_HAN = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")
_NUMERALS = re.compile("[零〇一二三四五六七八九十百千万萬亿億两兩]")
_OPEN_CLASSES = "nvd"  # jieba's tags of nouns, verbs and adverbs begin so
_FUZZY = (("zh", "z"), ("ch", "c"), ("sh", "s"), ("n", "l"))
_FUZZY_END = re.compile("(?<=[ei])ng$")
_WORDS_CACHED = 1 << 16


def tokens(text: str) -> list[str]:
    """Return the words of a text without blanks; traditional characters are read as simplified."""
    found, start = [], 0
    for word in _segmenter().cut(text.translate(_simplified())):
        stop = start + len(word)
        if not word.isspace():
            found.append(text[start:stop])
        start = stop
    return found


def word_kind(clean: str, noisy: str, fuzzy: bool = False) -> tuple[str | None, str]:
    """Return why a pair of words is no noise, and its kind: homophone, fuzzy or synonym.

    Homophones sound alike but for the tones, and are written with other characters; synonyms are
    words other than nouns, verbs and adverbs (RCP, section 3.1). With `fuzzy`, words are also taken
    that sound alike to who does not tell zh from z, sh from s, ch from c, n from l, in from ing,
    en from eng. Numerals are numbers, and the two scripts of Chinese are no noise.
    """
    ours, theirs = clean.translate(_simplified()), noisy.translate(_simplified())
    if not (_HAN.search(ours) and _HAN.search(theirs)):
        return "word_no_letter", ""
    if ours == theirs:
        return "word_variant", ""
    if _NUMERALS.sub("", ours) == _NUMERALS.sub("", theirs):
        return "word_number", ""
    if pinyin(ours) == pinyin(theirs):
        return None, "homophone"
    if fuzzy and _blurred(ours) == _blurred(theirs):
        return None, "fuzzy"
    if _is_closed_class(ours) and _is_closed_class(theirs):
        return None, "synonym"
    return "word_unrelated", ""


@lru_cache(_WORDS_CACHED)
def pinyin(word: str) -> tuple[str, ...]:
    """Return the syllables of a word without tones, as they are read in it."""
    from pypinyin import lazy_pinyin

    return tuple(lazy_pinyin(word))


def _blurred(word: str) -> list[str]:
    """Return the syllables with those sounds joined that many speakers do not tell apart."""
    return [_FUZZY_END.sub("n", _blurred_initial(syllable)) for syllable in pinyin(word)]


def _blurred_initial(syllable: str) -> str:
    for one, other in _FUZZY:
        if syllable.startswith(one):
            return other + syllable[len(one) :]
    return syllable


def _is_closed_class(word: str) -> bool:
    """Tell whether a word is known and neither noun, verb nor adverb."""
    tag = _tags().get(word, "n")
    return tag[0] not in _OPEN_CLASSES


@cache
def _segmenter() -> Any:
    """Load the word list; its cache goes to our folder, for anyone can write to jieba's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba's source has invalid escapes
        import jieba
    jieba.setLogLevel("CRITICAL")
    segmenter = jieba.Tokenizer()
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    segmenter.tmp_dir = str(folder)
    return segmenter


@cache
def _tags() -> dict[str, str]:
    """Return the part of speech of every word in jieba's list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jieba import posseg
    tags: dict[str, str] = posseg.POSTokenizer(_segmenter()).word_tag_tab
    return tags


@cache
def _simplified() -> dict[int, str]:
    """Return a translation of traditional characters to simplified, one to one."""
    table = files("opencc").joinpath("dictionary", "TSCharacters.txt").read_text("utf-8")
    rows = (line.split("\t") for line in table.splitlines())
    return {ord(row[0]): row[1].split(" ")[0] for row in rows}
