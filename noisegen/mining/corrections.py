"""Corrected sentences read from Lang-8 corrections, without tags, struck-out words and comments."""

import re
from itertools import islice
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

# Least characters of an addition at the end that is a comment (gector-ja's rule)
COMMENT_CHARS = 10
# Sentence ends of a correction after which a comment may begin; later ones are not tried
_ENDS_MAX = 20
_TAG = re.compile(r"\[(/?)(f-[a-z]+|sline)\]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’»)\]」』）]*")
_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】")
_NO_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if not chr(code).isspace()}
_PRAISE = re.compile(r"\s*(?<![a-z])(?:ok|good|perfect|nice|great)[!.！。]*$", re.IGNORECASE)
# Signs between alternatives, or before explanations
_ALTERNATIVES = ("/", "／", "→", "->", "=>", "＝")


class Correction(NamedTuple):
    """A corrected sentence, or the reason why a correction gives none."""

    text: str
    reason: str | None = None


def read_correction(noisy: str, correction: str) -> Correction:
    """Return the sentence that a correction of the learner's sentence `noisy` stands for.

    Struck-out words are removed; colour tags are removed and their content stays. Brackets, praise
    at the end, and comments after the sentence are removed unless the learner wrote them. The
    result is empty with the reason `comment` if the correction offers alternatives or is only a
    comment, and with the reason `unclosed_tag` if a strike-out is not closed.
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
    """Return a text without tags and struck-out words; None if a strike-out is not closed.

    Tags may be nested or overlap; an end tag without a start tag is ignored.
    """
    pieces: list[str] = []
    start = struck = 0  # `struck` counts the open strike-outs
    for tag in _TAG.finditer(text):
        if not struck:
            pieces.append(text[start : tag.start()])
        start = tag.end()
        if tag[2].lower() == "sline":
            struck = max(0, struck - 1) if tag[1] else struck + 1
    return None if struck else "".join([*pieces, text[start:]])


def _without_comment(noisy: str, text: str) -> str:
    """Return the correction `text` without a comment after the sentence.

    `text` is cut at the sentence end that makes it most like the learner's sentence `noisy`. If no
    sentence ends before the end of `text`, only an addition of at least `COMMENT_CHARS` characters
    at the end is cut.
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
