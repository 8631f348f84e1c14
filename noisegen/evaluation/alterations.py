"""Replace parts of a sentence, and read the word lists in data/.

Three modules choose the replacements: `altered_numbers` (another number), `altered_names` (another
name) and `altered_statements` (words that turn a statement into its opposite).
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from noisegen.text.resources import rows_of

DATA = Path(__file__).parent / "data"
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
# Matches the beginning of words that take the article "an" instead of "a".
# Spelling alone does not decide: "an hour" and "an 80", but "a union" and "a one-way street".
_VOWEL = re.compile(
    r"(?i)(?:hour|honest|honou?r|heir|8|11\b|18\b|18(?:,\d{3})+\b|[aei]|o(?!ne\b|nce\b)"
    r"|u(?!ni[^mn]|s[aeu]|k\b|sa\b|ti|to|ra|ro|gan|kr))"
)


class Alteration(NamedTuple):
    """Replacement of the characters [start, stop) of a text by the text `new`."""

    start: int
    stop: int
    new: str

    def applied(self, text: str) -> str:
        """Return `text` with the replacement made.

        An article "a" or "an" just before the replacement is changed to the form that fits `new`.
        """
        before = text[: self.start]
        article = _ARTICLE.search(before)
        if article and self.new[:1].isalnum():
            fitting = article[1][0] + ("n" if _VOWEL.match(self.new) else "")
            fitting = fitting.upper() if article[1] == "AN" else fitting
            before = before[: article.start()] + fitting + " "
        return before + self.new + text[self.stop :]


def apply(text: str, changes: Iterable[Alteration]) -> str:
    """Return `text` with all `changes` made; the changes must not overlap."""
    for change in sorted(changes, reverse=True):
        text = change.applied(text)
    return text


def capital_like(old: str, new: str) -> str:
    """Return `new`, with a capital first letter if `old` begins with a capital."""
    return new.capitalize() if old[0].isupper() else new


def neighbour(token: Any, step: int) -> str:
    """Return the text, in lower case, of the token before (-1) or after (1) a spaCy token.

    Returns '' at the beginning or end of the document.
    """
    index = token.i + step
    return token.doc[index].lower_ if 0 <= index < len(token.doc) else ""


@cache
def table(name: str) -> list[list[str]]:
    """Return the rows of the file data/`name`.tsv, each as a list of cells."""
    return rows_of(DATA / f"{name}.tsv")


def words(name: str, *kinds: str) -> tuple[str, ...]:
    """Return the words of data/`name`.tsv (columns word, kind) that have one of these kinds.

    All words of the first kind come first. Words of the same kind are in file order.
    """
    return tuple(word for kind in kinds for word, its_kind in table(name) if its_kind == kind)


def replacements(kind: str) -> dict[str, str]:
    """Return {word: replacement} of one kind, such as 'modal', from data/replacements.tsv."""
    rows = table("replacements")
    return {word: instead for word, its_kind, instead in rows if its_kind == kind}
