"""What mining must know of a language: its words, its sentences, and which word pairs are noise."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from noisegen.errors import MissingExtra, UsageError

# Thai, Lao, Khmer, Burmese, Tibetan, Dzongkha, and Chinese other than Mandarin: written without
# blanks, and with no word list here.
UNSEGMENTED = ("th", "lo", "km", "my", "bo", "dz", "yue", "wuu", "lzh", "gan")
SPLITTERS = ("sentencex", "punkt", "spacy")
_NEEDED = {"zh": ("jieba", "pypinyin", "opencc"), "ja": ("fugashi", "ipadic")}
_WIKIPEDIA_CODES = {"simple": "en", "zh-yue": "yue", "zh-min-nan": "nan", "zh-classical": "lzh"}
_BOUNDARIES = {"zh": "，"}
_SPLITTER_NEEDS = {"punkt": ("punkt", "punkt"), "spacy": ("spacy", "en")}
_APOSTROPHES = "'’"
_INSIDE = _APOSTROPHES + "׳״·"  # Hebrew geresh and gershayim, Catalan middle dot
_JOINERS = "\u200c\u200d"
# What a French, Italian or Catalan word loses its vowel to; `aujourd'hui` stays one word.
_ELIDED = {
    "fr": rf"(?i:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)[{_APOSTROPHES}](?=\w)",
    "it": rf"[^\W\d_]{{1,8}}[{_APOSTROPHES}](?=[^\W\d_])",
    "ca": rf"(?i:[dlmnst])[{_APOSTROPHES}](?=\w)",
}
_NO_DOT = {"tr", "az"}  # lower-case I is dotless there, and İ is the capital of i

PIECE_CHARS = 10_000  # given to a splitter at once
_SHARE = 0.7  # of letters in the script of the language; other scripts are quoted, not written

Tokenizer = Callable[[str], list[str]]


@dataclass(frozen=True)
class Language:
    """A language by its code, with options; pickles, for what it needs is loaded where used."""

    code: str
    splitter: str = "sentencex"
    fuzzy_pinyin: bool = False

    @property
    def is_spaced(self) -> bool:
        """Whether blanks separate words."""
        return self.code not in _NEEDED and self.code not in UNSEGMENTED

    @property
    def boundary(self) -> str:
        """A sign at which a text can be cut and tokenised in parts; empty where there is none."""
        return _BOUNDARIES.get(self.code, " " if self.is_spaced else "")

    def tokens(self, text: str) -> list[str]:
        """Return words, numbers and single other signs, without blanks.

        >>> Language("fr").tokens("l'homme d'aujourd'hui, 1,5 m")
        ["l'", 'homme', "d'", "aujourd'hui", ',', '1,5', 'm']
        """
        return _tokenizer(self.code)(text)

    def sentences(self, text: str) -> list[str]:
        """Split a text into sentences, without the blanks around them.

        A very long text is cut at blanks first: splitters take a time that grows with its square.
        """
        split = _splitter(self.splitter, self.code)
        parts = (part.strip() for piece in _pieces(text) for part in split(piece))
        return [part for part in parts if part]

    def is_written_in(self, text: str) -> bool:
        """Tell whether most letters of a text are of a script of the language, if that is known."""
        scripts = _scripts().get(self.code)
        if not scripts or (scripts == ("LATIN",) and text.isascii()):
            return True
        letters = [script_of(sign) for sign in text if sign.isalpha()]
        return sum(script in scripts for script in letters) >= _SHARE * len(letters)

    def word_kind(self, clean: str, noisy: str) -> tuple[str | None, str]:
        """Return why a pair of words is no noise (None where it is), and what kind of noise it is.

        Methods: RCP, section 3.1 and appendix B; for Chinese and Japanese see their modules. The
        distance between the words is not looked at: that is the matter of a profile.
        """
        if self.code == "zh":
            from noisegen.mining import chinese

            return chinese.word_kind(clean, noisy, self.fuzzy_pinyin)
        if self.code == "ja":
            from noisegen.mining import japanese

            return japanese.word_kind(clean, noisy)
        if self.code in UNSEGMENTED:
            return "word_unsegmented", ""
        return _word_kind(clean, noisy, self.code)


def language(code: str, *, splitter: str = "sentencex", fuzzy_pinyin: bool = False) -> Language:
    """Return the language of a code such as 'en' or 'pt-BR', of which the primary tag counts.

    Wikipedia's own codes 'simple', 'zh-yue', 'zh-min-nan' and 'zh-classical' are known, too.

    Raises UsageError for a code that is none and for a splitter that cannot do the language, and
    MissingExtra where a package is not installed.
    """
    tag = code.lower().replace("_", "-")
    primary = _WIKIPEDIA_CODES.get(tag, tag.partition("-")[0])
    if not re.fullmatch("[a-z]{2,8}", primary):
        raise UsageError(f"no language code: {code!r}; write one like en, de or zh")
    chosen = Language(primary, splitter, fuzzy_pinyin)
    _check_splitter(chosen)
    for package in _NEEDED.get(primary, ()):
        _require(package, extra=primary)
    return chosen


def _check_splitter(chosen: Language) -> None:
    if chosen.splitter not in SPLITTERS:
        raise UsageError(f"no splitter {chosen.splitter!r}; write {', '.join(SPLITTERS)}")
    if chosen.splitter == "punkt" and chosen.code not in punkt_names():
        known = ", ".join(sorted(punkt_names()))
        raise UsageError(f"punkt has no model for {chosen.code!r}, only for {known}")
    if chosen.splitter == "spacy" and not chosen.is_spaced:
        raise UsageError(f"spacy splits no sentences of {chosen.code!r}; leave --splitter out")
    if chosen.splitter in _SPLITTER_NEEDS:
        _require(*_SPLITTER_NEEDS[chosen.splitter])


def _require(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise MissingExtra(package, extra)


@cache
def _tokenizer(code: str) -> Tokenizer:
    if code == "zh":
        from noisegen.mining.chinese import tokens

        return tokens
    if code == "ja":
        from noisegen.mining.japanese import tokens

        return tokens
    if code in UNSEGMENTED:
        return re.compile(rf"[A-Za-z0-9]+|\w[{_marks()}]*|[^\s\w]").findall
    elided = f"{_ELIDED[code]}|" if code in _ELIDED else ""
    fast = re.compile(_pattern(elided, ""), re.ASCII).findall
    full = re.compile(_pattern(elided, f"[{_marks()}]+|")).findall
    return lambda text: fast(text) if text.isascii() else full(text)


def _pattern(elided: str, marks: str) -> str:
    """Return the pattern of a token, with a look at the blank first, for speed.

    Nothing follows its loops, so they never go back; Python 3.11.2 has possessive ones wrong.
    """
    inside = rf"{marks}[{_INSIDE}](?=\w)|[.,](?<=\d.)(?=\d)"
    return rf"{elided}\w+(?:(?! )(?:{inside})\w*)*|[^\s\w\x1c-\x1f]"


@cache
def _marks() -> str:
    """Return combining marks and joiners as ranges of a character class; `re` has no name."""
    signs = [code for code in range(0x20000) if unicodedata.category(chr(code))[0] == "M"]
    starts = [code for code in signs if unicodedata.category(chr(code - 1))[0] != "M"]
    stops = [code for code in signs if unicodedata.category(chr(code + 1))[0] != "M"]
    ranges = [f"{chr(start)}-{chr(stop)}" for start, stop in zip(starts, stops, strict=True)]
    return "".join(ranges) + _JOINERS + "\U000e0100-\U000e01ef"


def _word_kind(clean: str, noisy: str, code: str) -> tuple[str | None, str]:
    if not (any(map(str.isalpha, clean)) and any(map(str.isalpha, noisy))):
        return "word_no_letter", ""
    if not (clean.isascii() and noisy.isascii()):
        clean, noisy = unicodedata.normalize("NFC", clean), unicodedata.normalize("NFC", noisy)
    if clean == noisy:
        return "word_equal", ""
    clean, noisy = folded(clean, code), folded(noisy, code)
    if clean == noisy:
        return None, "case"
    if clean.isascii() and noisy.isascii():
        return None, ""
    return None, "accent" if _bare(clean) == _bare(noisy) else ""


def folded(word: str, code: str) -> str:
    """Return a word in lower case, by the rules of the language: 'I' is 'ı' in Turkish."""
    if code in _NO_DOT:
        word = word.replace("İ", "i").replace("I", "ı")
    return word.lower()


def _bare(word: str) -> str:
    """Return a word without accents; the dotless ı, which Unicode does not take apart, is an i."""
    parts = unicodedata.normalize("NFD", word.replace("ı", "i"))
    return "".join(sign for sign in parts if not "\u0300" <= sign <= "\u036f")


@cache
def _splitter(name: str, code: str) -> Tokenizer:
    """Load a splitter; the package is imported here, once a process."""
    if name == "punkt":
        import punkt

        return punkt.tokenizer_for(punkt_names()[code]).tokenize
    if name == "spacy":
        return _spacy_splitter(code)
    import sentencex

    return lambda text: sentencex.segment(code, text)


def _spacy_splitter(code: str) -> Tokenizer:
    import spacy

    try:
        pipeline: Any = spacy.blank(code)
    except ImportError:  # spaCy has no rules for the language
        pipeline = spacy.blank("xx")
    pipeline.add_pipe("sentencizer")
    return lambda text: [sentence.text for sentence in pipeline(text).sents]


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of PIECE_CHARS at most, cut at blanks if there are any."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        blank = text.rfind(" ", start + 1, start + PIECE_CHARS)
        stop = blank if blank > 0 else start + PIECE_CHARS
        yield text[start:stop]
        start = stop
    yield text[start:]


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


@cache
def _table() -> list[dict[str, str]]:
    """Read the table of languages: code, name, name of the Punkt model, scripts."""
    path = Path(__file__).with_name("languages.tsv")
    lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "#"]
    names, *rows = (line.split("\t") for line in lines)
    return [dict(zip(names, row, strict=True)) for row in rows]


@cache
def _scripts() -> dict[str, tuple[str, ...]]:
    return {row["code"]: tuple(row["scripts"].split(" ")) for row in _table()}


@cache
def punkt_names() -> dict[str, str]:
    """Return the codes of the languages that have a Punkt model, with its name."""
    return {row["code"]: row["punkt"] for row in _table() if row["punkt"]}


@cache
def codes_by_name() -> dict[str, str]:
    """Return the codes of languages by their English names in lower case."""
    return {row["name"].lower(): row["code"] for row in _table()}
