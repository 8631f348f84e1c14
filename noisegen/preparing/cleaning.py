"""Raw text to lines: HTML line breaks, entities, control characters, white space."""

import re
from html import unescape

# A tag that ends a line, as such or with its brackets as entities; attributes are bounded.
_BREAK = re.compile(
    r"(?:<|&lt;)\s{0,9}/?\s{0,9}(?:br|p)(?:\s[^<>&]{0,200})?\s{0,9}/?(?:>|&gt;)", re.I
)
_LINES = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]+")
# Soft hyphen, zero-width blank, word joiner and the like, BOM, marks of direction. ZWJ and ZWNJ
# stay: they shape emoji and the letters of Persian and of Indic scripts.
_INVISIBLE = re.compile(r"[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def clean_lines(text: str) -> list[str]:
    """Return the lines that are not blank, 'a &amp; b<br>c' -> ['a & b', 'c'].

    Line breaks are also <br> and <p>; entities are decoded once; control characters become blanks,
    invisible ones go; white space is squeezed. Nothing else changes, other tags included.
    """
    if "<" in text or "&" in text:
        text = unescape(_BREAK.sub("\n", text))
    lines = (_squeezed(line) for line in _LINES.split(text))
    return [line for line in lines if line]


def _squeezed(line: str) -> str:
    if not line.isprintable():
        line = _CONTROLS.sub(" ", _INVISIBLE.sub("", line))
    return " ".join(line.split())
