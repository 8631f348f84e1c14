"""The text preparation of CrisisTransformers' sentence encoders, for posts and messages."""

import re
from html import unescape

from noisegen.errors import MissingExtra
from noisegen.spans import PROTECTABLE

URL = re.compile(r"(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+", re.IGNORECASE)
MENTION = re.compile(PROTECTABLE["mention"])
_ADDRESS = re.compile(rf"{URL.pattern}|{MENTION.pattern}", re.IGNORECASE)
_MAY_HAVE = re.compile(r"@|:/|www\.", re.IGNORECASE)


def without_addresses(text: str) -> str:
    """Return a text with a blank for each web address and mention: they are of no language."""
    return _ADDRESS.sub(" ", text) if _MAY_HAVE.search(text) else text


def social_text(text: str, *, mention: str = "@MENTION") -> str:
    """Prepare a post: '@ann  see https://t.co/x &lt;3 🔥' -> '@MENTION see HTTPURL <3 :fire:'.

    The steps and their order are those of CT-XLMR-SE: addresses, mentions (BERTweet writes
    mention='@USER'), entities, white space, mojibake, emoji. Raises MissingExtra without ftfy and
    emoji.
    """
    try:
        from emoji import demojize
        from ftfy import fix_encoding
    except ImportError as error:
        raise MissingExtra(error.name or "emoji", "social") from None
    text = URL.sub("HTTPURL", text)
    text = MENTION.sub(lambda _: mention, text)
    text = " ".join(unescape(text).split())
    return demojize(fix_encoding(text))
