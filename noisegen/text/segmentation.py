"""Words and sentences of a language, and the kind of noise in a pair of its words."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from noisegen.errors import MissingExtra, UsageError
from noisegen.text import east_asian
from noisegen.text.languages import language_scripts, normalize_language, punkt_names, script_of

# Thai, Lao, Khmer, Burmese, Tibetan, Dzongkha, and Chinese other than Mandarin: they are written
# without spaces, and there is no word list for them here.
UNSEGMENTED = ("th", "lo", "km", "my", "bo", "dz", "yue", "wuu", "lzh", "gan")
SPLITTERS = ("sentencex", "punkt", "spacy")
PIECE_CHARS = 10_000  # characters that a splitter gets at once
SCRIPT_SHARE_MIN = 0.7  # least share of letters in a script of the language; others are quoted
_PACKAGES = {"zh": ("jieba", "pypinyin", "opencc"), "ja": ("fugashi", "ipadic")}
_SPLITTER_PACKAGES = {"punkt": [("punkt", "punkt")], "spacy": [("spacy", "en")]}  # (package, extra)
_BOUNDARIES = {"zh": "，"}
_APOSTROPHES = "'’"
_INSIDE = _APOSTROPHES + "׳״·"  # Hebrew geresh and gershayim, Catalan middle dot
# Elided French, Italian and Catalan words, cut from the next word; `aujourd'hui` stays one word.
_ELIDED = {
    "fr": rf"(?i:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)[{_APOSTROPHES}](?=\w)",
    "it": rf"[^\W\d_]{{1,8}}[{_APOSTROPHES}](?=[^\W\d_])",
    "ca": rf"(?i:[dlmnst])[{_APOSTROPHES}](?=\w)",
}
_DOTLESS = {"tr", "az"}  # lower-case I is dotless there, and İ is the capital of i

Tokenizer = Callable[[str], list[str]]


@dataclass(frozen=True)
class Language:
    """A language by its code, with options; it pickles, as packages are loaded where used."""

    code: str
    splitter: str = "sentencex"
    fuzzy_pinyin: bool = False

    @property
    def is_spaced(self) -> bool:
        """Whether spaces separate words."""
        return self.code not in _PACKAGES and self.code not in UNSEGMENTED

    @property
    def boundary(self) -> str:
        """A character at which a text can be cut and tokenized in parts; '' if there is none."""
        return _BOUNDARIES.get(self.code, " " if self.is_spaced else "")

    def tokens(self, text: str) -> list[str]:
        """Return words, numbers and single other characters, without white space.

        >>> Language("fr").tokens("l'homme d'aujourd'hui, 1,5 m")
        ["l'", 'homme', "d'", "aujourd'hui", ',', '1,5', 'm']
        """
        return _tokenizer(self.code)(text)

    def sentences(self, text: str) -> list[str]:
        """Split a text into sentences, without the spaces around them.

        A very long text is cut at spaces first: the time of splitters grows with its square.
        """
        split, pieces, start = _splitter(self.splitter, self.code), [], 0
        while len(text) - start > PIECE_CHARS:
            space = text.rfind(" ", start + 1, start + PIECE_CHARS)
            stop = space if space > 0 else start + PIECE_CHARS
            pieces.append(text[start:stop])
            start = stop
        parts = (part.strip() for piece in [*pieces, text[start:]] for part in split(piece))
        return [part for part in parts if part]

    def is_written_in(self, text: str) -> bool:
        """Tell whether most letters of a text are in a script of the language, if that is known."""
        own = language_scripts().get(self.code)
        if not own or (own == ("LATIN",) and text.isascii()):
            return True
        letters = [script_of(sign) for sign in text if sign.isalpha()]
        return sum(script in own for script in letters) >= SCRIPT_SHARE_MIN * len(letters)

    def word_kind(self, clean: str, noisy: str) -> tuple[str | None, str]:
        """Return the reason why a pair of words is not noise (or None), and the kind of noise.

        The rules follow RCP, section 3.1 and appendix B; Chinese and Japanese have rules of their
        own in `east_asian`. The distance between the words is not limited here.
        """
        if self.code == "zh":
            return east_asian.chinese_word_kind(clean, noisy, self.fuzzy_pinyin)
        if self.code == "ja":
            return east_asian.japanese_word_kind(clean, noisy)
        if self.code in UNSEGMENTED:
            return "word_unsegmented", ""
        return self._spaced_word_kind(clean, noisy)

    def _spaced_word_kind(self, clean: str, noisy: str) -> tuple[str | None, str]:
        """Return the result of `word_kind` for a language with spaces between words."""
        if not (any(map(str.isalpha, clean)) and any(map(str.isalpha, noisy))):
            return "word_no_letter", ""
        if not (clean.isascii() and noisy.isascii()):
            clean, noisy = unicodedata.normalize("NFC", clean), unicodedata.normalize("NFC", noisy)
        if clean == noisy:
            return "word_equal", ""
        clean, noisy = self._lowered(clean), self._lowered(noisy)
        if clean == noisy:
            return None, "case"
        if clean.isascii() and noisy.isascii():
            return None, ""
        return None, "accent" if _without_accents(clean) == _without_accents(noisy) else ""

    def _lowered(self, word: str) -> str:
        """Return a word in lower case, in Turkish and Azerbaijani with I as the capital of ı."""
        if self.code in _DOTLESS:
            word = word.replace("İ", "i").replace("I", "ı")
        return word.lower()


def language(tag: str, *, splitter: str = "sentencex", fuzzy_pinyin: bool = False) -> Language:
    """Return the language of a tag that `normalize_language` knows.

    Raises UsageError for an unknown language or a splitter that cannot split it, and MissingExtra
    if a package is not installed.
    """
    chosen = Language(normalize_language(tag), splitter, fuzzy_pinyin)
    if splitter not in SPLITTERS:
        raise UsageError(f"no splitter {splitter!r}; write {', '.join(SPLITTERS)}")
    if splitter == "punkt" and chosen.code not in punkt_names():
        known = ", ".join(sorted(punkt_names()))
        raise UsageError(f"punkt has no model for {chosen.code!r}, only for {known}")
    if splitter == "spacy" and not chosen.is_spaced:
        raise UsageError(f"spacy splits no sentences of {chosen.code!r}; leave --splitter out")
    needed = [(package, chosen.code) for package in _PACKAGES.get(chosen.code, ())]
    for package, extra in [*needed, *_SPLITTER_PACKAGES.get(splitter, [])]:
        if find_spec(package) is None:
            raise MissingExtra(package, extra)
    return chosen


@cache
def _tokenizer(code: str) -> Tokenizer:
    """Return the function that finds the words of a language.

    The pattern tests for a space first, which is faster. Its loops are never followed by anything,
    so they never backtrack; possessive loops are wrong in Python 3.11.2.
    """
    if code == "zh":
        return east_asian.chinese_tokens
    if code == "ja":
        return east_asian.japanese_tokens
    if code in UNSEGMENTED:
        return re.compile(rf"[A-Za-z0-9]+|\w[{mark_ranges()}]*|[^\s\w]").findall
    elided = f"{_ELIDED[code]}|" if code in _ELIDED else ""
    pattern = (
        rf"{elided}\w+(?:(?! )(?:%s[{_INSIDE}](?=\w)|[.,](?<=\d.)(?=\d))\w*)*|[^\s\w\x1c-\x1f]"
    )
    fast = re.compile(pattern % "", re.ASCII).findall
    full = re.compile(pattern % f"[{mark_ranges()}]+|").findall
    return lambda text: fast(text) if text.isascii() else full(text)


@cache
def mark_ranges() -> str:
    """Return the ranges of combining marks and joiners for a character class of `re`."""
    marks = [code for code in range(0x20000) if unicodedata.category(chr(code))[0] == "M"]
    starts = [code for code in marks if unicodedata.category(chr(code - 1))[0] != "M"]
    stops = [code for code in marks if unicodedata.category(chr(code + 1))[0] != "M"]
    ranges = [f"{chr(start)}-{chr(stop)}" for start, stop in zip(starts, stops, strict=True)]
    return "".join(ranges) + "\u200c\u200d\U000e0100-\U000e01ef"


def _without_accents(word: str) -> str:
    """Return a word without accents; the dotless ı, which Unicode does not decompose, becomes i."""
    parts = unicodedata.normalize("NFD", word.replace("ı", "i"))
    return "".join(sign for sign in parts if not "\u0300" <= sign <= "\u036f")


@cache
def _splitter(name: str, code: str) -> Tokenizer:
    if name == "punkt":
        import punkt

        return punkt.tokenizer_for(punkt_names()[code]).tokenize
    if name == "sentencex":
        import sentencex

        return lambda text: sentencex.segment(code, text)
    import spacy

    try:
        pipeline: Any = spacy.blank(code)
    except ImportError:  # spaCy has no rules for the language
        pipeline = spacy.blank("xx")
    pipeline.add_pipe("sentencizer")
    return lambda text: [sentence.text for sentence in pipeline(text).sents]
