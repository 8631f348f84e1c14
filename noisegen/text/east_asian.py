"""Chinese and Japanese: their words, by jieba and MeCab, and the noise of their input methods.

Chinese noise is homophones and synonyms, as in RCP. Japanese noise is kanji of the same reading,
and kana.
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
_OPEN_CLASSES = set("nvd")  # first letters of jieba's tags of nouns, verbs and adverbs
_FUZZY_INITIALS = {"zh": "z", "ch": "c", "sh": "s", "n": "l"}
_FUZZY_INITIAL, _FUZZY_FINAL = re.compile("^(?:[zcs]h|n)"), re.compile("(?<=[ei])ng$")
_KANJI = re.compile("[\u3400-\u9fff々〆\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_KANJI_OR_KANA = re.compile(f"{_KANJI.pattern}|{_KANA.pattern}")
_READING = 7  # index of the reading in the features of a word in IPADIC
_KATAKANA = {code: code + 0x60 for code in range(0x3041, 0x3097)}
# Kana that sound alike now, or did when the spelling was fixed.
_ALIKE = str.maketrans("わおえゆずじ", "はをへいづぢ")


def chinese_tokens(text: str) -> list[str]:
    """Return the words of a Chinese text; traditional characters are read as simplified."""
    words, start = [], 0
    for word in _segmenter().cut(text.translate(_simplified())):
        stop = start + len(word)
        if not word.isspace():
            words.append(text[start:stop])
        start = stop
    return words


def chinese_word_kind(clean: str, noisy: str, fuzzy: bool = False) -> tuple[str | None, str]:
    """Return the reason why a pair of words is not noise (or None), and the kind of noise.

    Homophones have equal sounds, without regard to tones, and different characters. Synonyms are
    words other than nouns, verbs and adverbs (RCP, section 3.1). With `fuzzy`, words that differ
    only in zh and z, sh and s, ch and c, n and l, in and ing, or en and eng are noise, too.
    Differences of numerals, and of traditional and simplified characters, are not noise.
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
    """Return the syllables of a word, without tones, in the reading of the word."""
    from pypinyin import lazy_pinyin

    return tuple(lazy_pinyin(word))


def _fuzzy_pinyin(word: str) -> list[str]:
    """Return the syllables of a word; sounds that many speakers do not distinguish are merged."""
    initials = [_FUZZY_INITIAL.sub(lambda m: _FUZZY_INITIALS[m[0]], part) for part in pinyin(word)]
    return [_FUZZY_FINAL.sub("n", part) for part in initials]


@cache
def _segmenter() -> Any:
    """Load the word list of jieba; its cache is in our folder, as anyone can write to jieba's."""
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
    """Return the part of speech of every word in the word list of jieba."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jieba import posseg
    tags: dict[str, str] = posseg.POSTokenizer(_segmenter()).word_tag_tab
    return tags


@cache
def _simplified() -> dict[int, str]:
    """Return a table for `str.translate` from traditional to simplified characters."""
    table = files("opencc").joinpath("dictionary", "TSCharacters.txt").read_text("utf-8")
    rows = (line.split("\t") for line in table.splitlines())
    return {ord(row[0]): row[1].split(" ")[0] for row in rows}


def japanese_tokens(text: str) -> list[str]:
    """Return the words of a Japanese text."""
    words = _tagger()(text.replace("\0", " "))  # MeCab stops at a zero byte
    return [word.surface for word in words if not word.surface.isspace()]


def japanese_word_kind(clean: str, noisy: str) -> tuple[str | None, str]:
    """Return the reason why a pair of words is not noise (or None), and the kind of noise.

    `kanji`: both words have the same reading and different kanji (Tanaka et al. 2020, as in RCP).
    Kanji on one side and kana on the other, or another ending in kana, is not noise. `kana`: one
    kana stands for another that differs in voice (か, が), size (つ, っ), script (か, カ) or not in
    sound (は, わ). A particle for another (は, が) is not noise.
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
    """Tell whether two words differ in one kana only: in its voice, size, script or spelling.

    The kanji of both words are equal.
    """
    if len(clean) != len(noisy):
        return False
    changed = [pair for pair in zip(clean, noisy, strict=True) if pair[0] != pair[1]]
    return len(changed) == 1 and _skeleton(changed[0][0]) == _skeleton(changed[0][1])


@lru_cache(_WORDS_CACHED)
def reading(text: str) -> str:
    """Return the reading of a text in katakana; an unknown word stays as it is written."""
    words = [(word.surface, word.feature) for word in _tagger()(text)]
    parts = [known[_READING] if len(known) > _READING else surface for surface, known in words]
    return "".join(map(str, parts)).translate(_KATAKANA)


@cache
def _skeleton(sign: str) -> str:
    """Return a kana as large hiragana without voice; any other sign stays."""
    if not _KANA.fullmatch(sign):
        return sign
    name = unicodedata.name(sign).replace("KATAKANA", "HIRAGANA").replace("SMALL ", "")
    try:
        large = unicodedata.lookup(name)
    except KeyError:  # ヷ and some others exist in katakana only
        return sign
    return unicodedata.normalize("NFD", large.translate(_ALIKE))[0]


@cache
def _tagger() -> Any:
    """Load the dictionary of MeCab, once per process."""
    import fugashi
    import ipadic

    return fugashi.GenericTagger(ipadic.MECAB_ARGS)
