"""One change of a sentence, and the article before it."""

import re
from typing import NamedTuple

_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
# What sounds otherwise than it is written: "an hour", "an 80", "a union", "a one-way street".
_VOWEL = re.compile(
    r"(?i)(?:hour|honest|honou?r|heir|8|11\b|18\b|18(?:,\d{3})+\b|[aei]|o(?!ne\b|nce\b)"
    r"|u(?!ni[^mn]|s[aeu]|k\b|sa\b|ti|to|ra|ro|gan|kr))"
)


class Change(NamedTuple):
    """Characters [start, stop) of a text become `new`."""

    start: int
    stop: int
    new: str

    def applied(self, text: str) -> str:
        """Return the altered text; "a" before it becomes "an" where that is needed, and back."""
        before = text[: self.start]
        article = _ARTICLE.search(before)
        if article and self.new[:1].isalnum():
            said = article[1][0] + ("n" if _VOWEL.match(self.new) else "")
            said = said.upper() if article[1].isupper() and len(article[1]) > 1 else said
            before = before[: article.start()] + said + " "
        return before + self.new + text[self.stop :]
