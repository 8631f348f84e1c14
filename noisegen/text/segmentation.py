"""Words and sentences of a language, and the kind of noise in a pair of words."""

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

# Languages without spaces between words, for which noisegen has no word list: Thai, Lao, Khmer,
# Burmese, Tibetan, Dzongkha, and Chinese other than Mandarin.
UNSEGMENTED = ("th", "lo", "km", "my", "bo", "dz", "yue", "wuu", "lzh", "gan")
SPLITTERS = ("sentencex", "punkt", "spacy")
PIECE_CHARS = 10_000  # most characters that a sentence splitter gets at once
SCRIPT_SHARE_MIN = 0.7  # minimum share of letters in the language's scripts; the rest may be quotes
_PACKAGES = {"zh": ("jieba", "pypinyin", "opencc"), "ja": ("fugashi", "ipadic")}
# Sentence splitter -> its package, and the extra of noisegen that installs the package.
_SPLITTER_PACKAGES = {"punkt": [("punkt", "punkt")], "spacy": [("spacy", "en")]}
_BOUNDARIES = {"zh": "，"}
_APOSTROPHES = "'’"
_INSIDE = _APOSTROPHES + "׳״·"  # signs inside words: also Hebrew geresh, gershayim, Catalan dot
# Patterns of elided words (l', qu'), which are split from the next word; aujourd'hui stays one
# word.
_ELIDED = {
    "fr": rf"(?i:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)[{_APOSTROPHES}](?=\w)",
    "it": rf"[^\W\d_]{{1,8}}[{_APOSTROPHES}](?=[^\W\d_])",
    "ca": rf"(?i:[dlmnst])[{_APOSTROPHES}](?=\w)",
}
_DOTLESS = {"tr", "az"}  # languages in which ı is the small letter of I, and İ the capital of i

Tokenizer = Callable[[str], list[str]]


@dataclass(frozen=True)
class Language:
    """A language by its code, with the name of its sentence splitter.

    `fuzzy_pinyin` is used for Chinese only, as `fuzzy` of `east_asian.chinese_word_kind`. A
    `Language` can be pickled, as it holds no tokenizer: packages are loaded on first use.
    """

    code: str
    splitter: str = "sentencex"
    fuzzy_pinyin: bool = False

    @property
    def is_spaced(self) -> bool:
        """Whether spaces separate words in this language."""
        return self.code not in _PACKAGES and self.code not in UNSEGMENTED

    @property
    def boundary(self) -> str:
        """A character at which a text may be cut without a change of its tokens; '' if none."""
        return _BOUNDARIES.get(self.code, " " if self.is_spaced else "")

    def tokens(self, text: str) -> list[str]:
        """Split a text into words, numbers and single other characters, without white space.

        >>> Language("fr").tokens("l'homme d'aujourd'hui, 1,5 m")
        ["l'", 'homme', "d'", "aujourd'hui", ',', '1,5', 'm']
        """
        return _tokenizer(self.code)(text)

    def sentences(self, text: str) -> list[str]:
        """Split a text into sentences, without the spaces around them.

        A text longer than `PIECE_CHARS` is cut at spaces first, because the time that splitters
        take grows with the square of the length.
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
        """Tell whether most letters of a text are in a script of this language.

        Returns True if the scripts of the language are not known.
        """
        own = language_scripts().get(self.code)
        if not own or (own == ("LATIN",) and text.isascii()):
            return True
        letters = [script_of(sign) for sign in text if sign.isalpha()]
        return sum(script in own for script in letters) >= SCRIPT_SHARE_MIN * len(letters)

    def word_kind(self, clean: str, noisy: str) -> tuple[str | None, str]:
        """Tell whether the change of one word to another is noise, and its kind.

        Returns (None, kind) for noise, where kind may be '', else (reason, ''). Another function
        checks how much the words differ. The rules follow RCP (docs/papers/rcp.md), section 3.1 and
        appendix B; those for Chinese and Japanese are in `east_asian`.
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
        """Return a word in lower case; in Turkish and Azerbaijani, I becomes ı."""
        if self.code in _DOTLESS:
            word = word.replace("İ", "i").replace("I", "ı")
        return word.lower()


def language(tag: str, *, splitter: str = "sentencex", fuzzy_pinyin: bool = False) -> Language:
    """Return the language of a tag such as 'en' or 'pt-BR', see `normalize_language`.

    `splitter` is one of SPLITTERS. Raises UsageError for an unknown language, or for a splitter
    that does not know the language. Raises MissingExtra if a package is not installed.
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
    """Return the function that splits a text of a language into words.

    To save time, the pattern for most languages tests for a space first. Its loops never backtrack,
    as nothing follows them; possessive loops would say so, but Python 3.11.2 has a bug in them.
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
    """Return the combining marks and joiners of Unicode as ranges for a character class of `re`."""
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
