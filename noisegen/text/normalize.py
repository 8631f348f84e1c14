"""Prepare text as encoders saw it in training: for LASER, and for encoders of posts."""

import re
import unicodedata
from functools import cache
from html import unescape
from typing import Any

from noisegen.errors import naming_extras
from noisegen.text.spans import PROTECTABLE, WEB_ADDRESS

URL = re.compile(WEB_ADDRESS, re.IGNORECASE)
MENTION = re.compile(PROTECTABLE["mention"])
_ADDRESS = re.compile(rf"{URL.pattern}|{MENTION.pattern}", re.IGNORECASE)
_MAY_HAVE_ADDRESS = re.compile(r"@|:/|www\.", re.IGNORECASE)
_LOW_QUOTES = ("‘", "‚")  # RoLASER's code makes them double quotes, sacremoses 0.2 does not


def without_addresses(text: str) -> str:
    """Replace each web address and mention by a space, as they belong to no language."""
    return _ADDRESS.sub(" ", text) if _MAY_HAVE_ADDRESS.search(text) else text


def social_text(text: str, *, mention: str = "@MENTION") -> str:
    """Prepare a post: '@ann  see https://t.co/x &lt;3 🔥' -> '@MENTION see HTTPURL <3 :fire:'.

    CrisisTransformers' CT-XLMR-SE has the same steps in the same order: web addresses, mentions,
    HTML entities, white space, wrongly decoded characters, emoji. `mention` replaces each mention;
    BERTweet expects '@USER'. Raises MissingExtra if ftfy or emoji is not installed.
    """
    with naming_extras():
        from emoji import demojize
        from ftfy import fix_encoding
    text = MENTION.sub(lambda _: mention, URL.sub("HTTPURL", text))
    return demojize(fix_encoding(" ".join(unescape(text).split())))


def laser_text(text: str, *, unescape: bool = False, lower: bool = True) -> str:
    """Prepare a text for LASER: 'He said : “Hi” …' -> 'he said: "hi" ...'.

    RoLASER has the same steps in the same order. Each character of the Unicode category C (control
    characters and others) becomes a space. Punctuation is normalised as by the Moses script for
    English. `unescape` decodes XML entities, `lower` makes letters lower-case. Spaces at both ends
    are removed. Raises MissingExtra if sacremoses is not installed.
    """
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in text)
    for pattern, replacement in _moses_substitutions():
        text = pattern.sub(replacement, text)
    text = text.strip()
    if unescape:
        text = _moses_detokenizer().unescape_xml(text)
    return text.lower() if lower else text


@cache
def _moses_detokenizer() -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer()


@cache
def _moses_substitutions() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of the Moses script that normalises punctuation, and their replacements.

    `_LOW_QUOTES` become double quotes.
    """
    with naming_extras():
        from sacremoses import MosesPunctNormalizer
    rules = MosesPunctNormalizer("en", perl_parity=True).substitutions
    quotes = dict.fromkeys(_LOW_QUOTES, '"')
    return [(re.compile(pattern), quotes.get(pattern, written)) for pattern, written in rules]
