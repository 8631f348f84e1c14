"""Japanese: words by MeCab, and the noise of input methods: kanji of the same reading, kana."""

import re
import unicodedata
from functools import cache, lru_cache
from typing import Any

_KANJI = re.compile("[\u3400-\u9fff々〆\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_READING = 7  # place of the reading among the features of a word in IPADIC
_KATAKANA = {code: code + 0x60 for code in range(0x3041, 0x3097)}
# Kana that sound alike, or did when the spelling was fixed.
_ALIKE = str.maketrans("わおえゆずじ", "はをへいづぢ")
_WORDS_CACHED = 1 << 16


def tokens(text: str) -> list[str]:
    """Return the words of a text without blanks."""
    words = _tagger()(text.replace("\0", " "))  # MeCab stops at it
    return [word.surface for word in words if not word.surface.isspace()]


def word_kind(clean: str, noisy: str) -> tuple[str | None, str]:
    """Return why a pair of words is no noise, and its kind: kanji or kana.

    `kanji`: the same reading written with other kanji (Tanaka et al. 2020, as RCP has it), so not
    a word with kanji on one side and kana on the other, nor another ending in kana. `kana`: one
    kana stands for another that differs in voice (か, が), size (つ, っ), script (か, カ) or not in
    sound (は, わ), so not a particle for another (は, が).
    """
    ours, theirs = "".join(_KANJI.findall(clean)), "".join(_KANJI.findall(noisy))
    if ours and theirs and ours != theirs:
        return (None, "kanji") if reading(clean) == reading(noisy) else ("word_unrelated", "")
    if not (_has_letter(clean) and _has_letter(noisy)):
        return "word_no_letter", ""
    if ours == theirs and _is_kana_swap(clean, noisy):
        return None, "kana"
    return "word_variant" if reading(clean) == reading(noisy) else "word_unrelated", ""


@lru_cache(_WORDS_CACHED)
def reading(text: str) -> str:
    """Return the reading of a text in katakana; an unknown word reads as it is written."""
    return "".join(_read(word) for word in _tagger()(text)).translate(_KATAKANA)


def _read(word: Any) -> str:
    known = len(word.feature) > _READING
    return str(word.feature[_READING] if known else word.surface)


def _has_letter(word: str) -> bool:
    return bool(_KANA.search(word) or _KANJI.search(word))


def _is_kana_swap(clean: str, noisy: str) -> bool:
    """Tell whether one kana of a word is another, much like it, on the other side."""
    if len(clean) != len(noisy):
        return False
    changed = [pair for pair in zip(clean, noisy, strict=True) if pair[0] != pair[1]]
    return len(changed) == 1 and _skeleton(changed[0][0]) == _skeleton(changed[0][1])


@cache
def _skeleton(sign: str) -> str:
    """Return a kana as large hiragana without voice; another sign as it is."""
    if not _KANA.fullmatch(sign):
        return sign
    name = unicodedata.name(sign).replace("KATAKANA", "HIRAGANA").replace("SMALL ", "")
    try:
        large = unicodedata.lookup(name)
    except KeyError:  # ヷ and its like are katakana only
        return sign
    return unicodedata.normalize("NFD", large.translate(_ALIKE))[0]


@cache
def _tagger() -> Any:
    """Load the dictionary, once a process."""
    import fugashi
    import ipadic

    return fugashi.GenericTagger(ipadic.MECAB_ARGS)
