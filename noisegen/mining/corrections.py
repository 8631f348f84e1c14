"""Corrections as people type them on Lang-8: colour tags, struck-out words, comments, praise."""

import re
from itertools import islice
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

COMMENT_CHARS = 10  # an addition at the end as long as this is a comment (gector-ja's rule)
_ENDS_MAX = 20  # sentence ends that are tried
_TAG = re.compile(r"\[(/?)(f-[a-z]+|sline)\]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’»)\]」』）]*")
_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】")
_NO_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if not chr(code).isspace()}
_PRAISE = re.compile(r"\s*(?<![a-z])(?:ok|good|perfect|nice|great)[!.！。]*$", re.IGNORECASE)
_ALTERNATIVES = ("/", "／", "→", "->", "=>", "＝")  # one of several, or an explanation


class Correction(NamedTuple):
    """The corrected sentence, or why there is none."""

    text: str
    reason: str | None = None


def read_correction(noisy: str, correction: str) -> Correction:
    """Return what a correction makes of a learner's sentence.

    Struck-out words go, colour tags go and leave their content. Of what the learner did not write,
    brackets, praise at the end and comments after it are left out; a correction that offers
    alternatives is none (`comment`), nor is one with a tag that is never closed (`unclosed_tag`).
    """
    bare = without_tags(correction)
    if bare is None:
        return Correction("", "unclosed_tag")
    text = _BRACKETS.sub(lambda found: found[0] if found[0] in noisy else "", one_line(bare))
    if not _PRAISE.search(noisy):
        text = _PRAISE.sub("", text)
    text = one_line(_without_comment(noisy, text))
    if not text or any(sign in text and sign not in noisy for sign in _ALTERNATIVES):
        return Correction("", "comment")
    return Correction(text)


def one_line(text: str) -> str:
    """Return a text without control characters, with single blanks between words."""
    return " ".join(text.translate(_NO_CONTROLS).split())


def without_tags(text: str) -> str | None:
    """Return a text without tags and struck-out words; None where a strike-out has no end.

    Tags may be nested or out of order; an end without a beginning is passed over.
    """
    kept, start, struck = [], 0, 0
    for tag in _TAG.finditer(text):
        if not struck:
            kept.append(text[start : tag.start()])
        start = tag.end()
        if tag[2].lower() == "sline":
            struck = max(0, struck - 1) if tag[1] else struck + 1
    return None if struck else "".join([*kept, text[start:]])


def _without_comment(noisy: str, text: str) -> str:
    """Cut what follows the sentence end up to which a correction is nearest to the sentence.

    Where no sentence end tells, an addition of COMMENT_CHARS or more is cut.
    """
    found = [end.end() for end in islice(_SENTENCE_END.finditer(text), _ENDS_MAX)]
    if found and found[0] < len(text):
        ends = [*found, len(text)]
        return text[: min(ends, key=lambda end: Levenshtein.distance(noisy, text[:end]))]
    added = len(text)
    for tag, source, _ in reversed(Levenshtein.editops(noisy, text).as_list()):
        if tag != "insert" or source != len(noisy):
            break
        added -= 1
    return text[:added] if len(text) - added >= COMMENT_CHARS else text
