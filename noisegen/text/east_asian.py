"""Words of Chinese and Japanese, split by jieba and MeCab, and the changes that count as noise.

In Chinese, a homophone or a synonym counts as noise. In Japanese, a kanji with the same reading or
a wrong kana does. The rules follow the paper RCP (docs/papers/rcp.md).
"""

import re
import unicodedata
import warnings
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from noisegen.text.resources import cache_folder

_WORDS_CACHED = 1 << 16

_HAN = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")
_NUMERALS = re.compile("[零〇一二三四五六七八九十百千万萬亿億两兩]")
_OPEN_CLASSES = set("nvd")  # first letters of jieba's tags for nouns, verbs and adverbs
_FUZZY_INITIALS = {"zh": "z", "ch": "c", "sh": "s", "n": "l"}
_FUZZY_INITIAL, _FUZZY_FINAL = re.compile("^(?:[zcs]h|n)"), re.compile("(?<=[ei])ng$")
_KANJI = re.compile("[\u3400-\u9fff々〆\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_KANJI_OR_KANA = re.compile(f"{_KANJI.pattern}|{_KANA.pattern}")
_READING = 7  # index of the reading among the features that IPADIC gives of a word
_KATAKANA = {code: code + 0x60 for code in range(0x3041, 0x3097)}
# Kana -> another kana for the same sound, today (ず, づ) or in traditional spelling (わ, は).
_ALIKE = str.maketrans("わおえゆずじ", "はをへいづぢ")


def chinese_tokens(text: str) -> list[str]:
    """Split a Chinese text into words; traditional characters are looked up as simplified."""
    words, start = [], 0
    for word in _segmenter().cut(text.translate(_simplified())):
        stop = start + len(word)
        if not word.isspace():
            words.append(text[start:stop])
        start = stop
    return words


def chinese_word_kind(clean: str, noisy: str, fuzzy: bool = False) -> tuple[str | None, str]:
    """Tell whether the change of one Chinese word to another is noise, and its kind.

    Returns (None, kind) for noise, else (reason, ''). The kind is 'homophone' if the words sound
    alike, tones aside. It is 'synonym' if neither is a noun, verb or adverb (RCP, section 3.1).
    With `fuzzy`, it is 'fuzzy' if the words differ only in sounds that many confuse, such as zh and
    z, n and l, in and ing. A change of numerals only, or from traditional to simplified characters,
    is not noise.
    """
    clean, noisy = clean.translate(_simplified()), noisy.translate(_simplified())
    if not (_HAN.search(clean) and _HAN.search(noisy)):
        return "word_no_letter", ""
    if clean == noisy:
        return "word_variant", ""
    if _NUMERALS.sub("", clean) == _NUMERALS.sub("", noisy):
        return "word_number", ""
    if pinyin(clean) == pinyin(noisy):
        return None, "homophone"
    if fuzzy and _fuzzy_pinyin(clean) == _fuzzy_pinyin(noisy):
        return None, "fuzzy"
    kinds = {_tags().get(word, "n")[0] for word in (clean, noisy)}
    return ("word_unrelated", "") if kinds & _OPEN_CLASSES else (None, "synonym")


@lru_cache(_WORDS_CACHED)
def pinyin(word: str) -> tuple[str, ...]:
    """Return the syllables of a Chinese word in pinyin, without tones.

    A character with several readings gets the reading that it has in this word.
    """
    from pypinyin import lazy_pinyin

    return tuple(lazy_pinyin(word))


def _fuzzy_pinyin(word: str) -> list[str]:
    """Return the syllables of a word in pinyin, with one spelling for sounds that many confuse."""
    initials = [_FUZZY_INITIAL.sub(lambda m: _FUZZY_INITIALS[m[0]], part) for part in pinyin(word)]
    return [_FUZZY_FINAL.sub("n", part) for part in initials]


@cache
def _segmenter() -> Any:
    """Load the word list of jieba, once per process.

    jieba keeps a cache of the list. It is put into noisegen's cache folder, as any user can write
    to the folder that jieba would choose.
    """
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
    """Return the part of speech of every word in the word list of jieba, by jieba's names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jieba import posseg
    tags: dict[str, str] = posseg.POSTokenizer(_segmenter()).word_tag_tab
    return tags


@cache
def _simplified() -> dict[int, str]:
    """Return a table for `str.translate` that makes traditional characters simplified."""
    table = files("opencc").joinpath("dictionary", "TSCharacters.txt").read_text("utf-8")
    rows = (line.split("\t") for line in table.splitlines())
    return {ord(row[0]): row[1].split(" ")[0] for row in rows}


def japanese_tokens(text: str) -> list[str]:
    """Split a Japanese text into words, without white space."""
    words = _tagger()(text.replace("\0", " "))  # MeCab would stop at a zero byte
    return [word.surface for word in words if not word.surface.isspace()]


def japanese_word_kind(clean: str, noisy: str) -> tuple[str | None, str]:
    """Tell whether the change of one Japanese word to another is noise, and its kind.

    Returns (None, kind) for noise, else (reason, '').

    The kind is 'kanji' if the words have different kanji and the same reading (Tanaka et al. 2020,
    as in RCP). It is 'kana' if one kana is replaced by another that differs only in voice (か, が),
    size (つ, っ) or script (か, カ), or that sounds the same (は, わ).

    Other changes are not noise: kana for kanji, another ending, another particle (は, が).
    """
    clean_kanji, noisy_kanji = "".join(_KANJI.findall(clean)), "".join(_KANJI.findall(noisy))
    if clean_kanji and noisy_kanji and clean_kanji != noisy_kanji:
        return (None, "kanji") if reading(clean) == reading(noisy) else ("word_unrelated", "")
    if not (_KANJI_OR_KANA.search(clean) and _KANJI_OR_KANA.search(noisy)):
        return "word_no_letter", ""
    if clean_kanji == noisy_kanji and _differ_in_one_kana(clean, noisy):
        return None, "kana"
    return "word_variant" if reading(clean) == reading(noisy) else "word_unrelated", ""


def _differ_in_one_kana(clean: str, noisy: str) -> bool:
    """Tell whether two words with equal kanji differ in one kana only.

    The two kana may differ in voice, size or script, or be two spellings of one sound.
    """
    if len(clean) != len(noisy):
        return False
    changed = [pair for pair in zip(clean, noisy, strict=True) if pair[0] != pair[1]]
    return len(changed) == 1 and _skeleton(changed[0][0]) == _skeleton(changed[0][1])


@lru_cache(_WORDS_CACHED)
def reading(text: str) -> str:
    """Return the reading of a text in katakana.

    A word that MeCab does not know stays as it is written; its hiragana become katakana.
    """
    words = [(word.surface, word.feature) for word in _tagger()(text)]
    parts = [known[_READING] if len(known) > _READING else surface for surface, known in words]
    return "".join(map(str, parts)).translate(_KATAKANA)


@cache
def _skeleton(sign: str) -> str:
    """Return a kana as large hiragana without voice mark; return other characters unchanged."""
    if not _KANA.fullmatch(sign):
        return sign
    name = unicodedata.name(sign).replace("KATAKANA", "HIRAGANA").replace("SMALL ", "")
    try:
        large = unicodedata.lookup(name)
    except KeyError:  # ヷ and a few other katakana have no hiragana
        return sign
    return unicodedata.normalize("NFD", large.translate(_ALIKE))[0]


@cache
def _tagger() -> Any:
    """Load MeCab with its dictionary IPADIC, once per process."""
    import fugashi
    import ipadic

    return fugashi.GenericTagger(ipadic.MECAB_ARGS)
