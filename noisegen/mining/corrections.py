"""The corrected sentence in a Lang-8 correction: without tags, struck-out words and comments."""

import re
from itertools import islice
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

COMMENT_CHARS = 10  # characters; an addition at the end this long is a comment (gector-ja's rule)
_ENDS_MAX = 20  # sentence ends that are tried
_TAG = re.compile(r"\[(/?)(f-[a-z]+|sline)\]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’»)\]」』）]*")
_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】")
_NO_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if not chr(code).isspace()}
_PRAISE = re.compile(r"\s*(?<![a-z])(?:ok|good|perfect|nice|great)[!.！。]*$", re.IGNORECASE)
_ALTERNATIVES = ("/", "／", "→", "->", "=>", "＝")  # between alternatives or before explanations


class Correction(NamedTuple):
    """A corrected sentence, or the reason why there is none."""

    text: str
    reason: str | None = None


def read_correction(noisy: str, correction: str) -> Correction:
    """Return the corrected sentence that a correction of a learner's sentence stands for.

    Struck-out words are removed; colour tags are removed, their content stays. Brackets, praise at
    the end and comments after the sentence are removed unless the learner wrote them. A correction
    that offers alternatives is rejected (`comment`), and so is one with a strike-out that is never
    closed (`unclosed_tag`).
    """
    bare = without_tags(correction)
    if bare is None:
        return Correction("", "unclosed_tag")
    text = _BRACKETS.sub(lambda bracket: bracket[0] if bracket[0] in noisy else "", one_line(bare))
    if not _PRAISE.search(noisy):
        text = _PRAISE.sub("", text)
    text = one_line(_without_comment(noisy, text))
    offers_alternatives = any(sign in text and sign not in noisy for sign in _ALTERNATIVES)
    if not text or offers_alternatives:
        return Correction("", "comment")
    return Correction(text)


def one_line(text: str) -> str:
    """Return a text without control characters, with single spaces between words."""
    return " ".join(text.translate(_NO_CONTROLS).split())


def without_tags(text: str) -> str | None:
    """Return a text without tags and struck-out words; None where a strike-out has no end.

    Tags may be nested or out of order; an end tag without a start tag is ignored.
    """
    pieces: list[str] = []
    start = struck = 0  # `struck` is the depth of nested strike-outs
    for tag in _TAG.finditer(text):
        if not struck:
            pieces.append(text[start : tag.start()])
        start = tag.end()
        if tag[2].lower() == "sline":
            struck = max(0, struck - 1) if tag[1] else struck + 1
    return None if struck else "".join([*pieces, text[start:]])


def _without_comment(noisy: str, text: str) -> str:
    """Cut the correction after the sentence end where it is most like the learner's sentence.

    If no sentence end lies within it, an addition of COMMENT_CHARS or more at the end is cut.
    """
    stops = [end.end() for end in islice(_SENTENCE_END.finditer(text), _ENDS_MAX)]
    if stops and stops[0] < len(text):
        ends = [*stops, len(text)]
        return text[: min(ends, key=lambda end: Levenshtein.distance(noisy, text[:end]))]
    added = len(text)
    for tag, source, _ in reversed(Levenshtein.editops(noisy, text).as_list()):
        if tag != "insert" or source != len(noisy):
            break
        added -= 1
    return text[:added] if len(text) - added >= COMMENT_CHARS else text
