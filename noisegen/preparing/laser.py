"""The text preparation of LASER and RoLASER, up to its sub-word tokenizer."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from noisegen.errors import MissingExtra

_LOW_QUOTES = ("‘", "‚")  # RoLASER's code makes both double, where sacremoses 0.2 does not


def laser_text(text: str, *, unescape: bool = False, lower: bool = True) -> str:
    """Prepare a text for LASER: 'He said : “Hi” …' -> 'he said: "hi" ...'.

    RoLASER's order: each character of category C becomes a blank, punctuation is normalised as by
    the Moses script for English, its XML entities are optionally decoded, and letters are made
    lower-case. Ends are stripped. Raises MissingExtra without sacremoses.
    """
    text = _without_controls(text)
    for pattern, replacement in _substitutions():
        text = pattern.sub(replacement, text)
    text = text.strip()
    if unescape:
        text = _unescape()(text)
    return text.lower() if lower else text


def _without_controls(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in text)


@cache
def _unescape() -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    unescape: Callable[[str], str] = MosesDetokenizer().unescape_xml
    return unescape


@cache
def _substitutions() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of the Moses script, with those two quotes as the script has them."""
    try:
        from sacremoses import MosesPunctNormalizer
    except ImportError:
        raise MissingExtra("sacremoses", "laser") from None
    rules = MosesPunctNormalizer("en", perl_parity=True).substitutions
    return tuple(
        (re.compile(pattern), '"' if pattern in _LOW_QUOTES else replacement)
        for pattern, replacement in rules
    )
