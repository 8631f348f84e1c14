"""What the reviewers said, as read from a review file: the last answer to each question counts."""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from noisegen.errors import SourceError
from noisegen.review.choice import Judged

REALISM = ("unrealistic", "moderate", "realistic")  # ordered
MEANING = ("no", "unsure", "yes")
_NEVER = re.compile(r"(?!)")
_FORMS = {
    "realism": re.compile(rf'"(?:{"|".join(REALISM)})"'),
    "meaning": re.compile(rf'"(?:{"|".join(MEANING)})"'),
    "kinds": re.compile(r"\[(?:[0-9]{1,9}(?:, [0-9]{1,9})*)?\]"),
    "comment": re.compile(r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"'),
}


@dataclass(frozen=True)
class Item:
    """One row of the review and the last answers to it, by reviewer."""

    item: int
    stage: int
    lang: str
    recipe: str
    strength: str
    realism: dict[int, str] = field(default_factory=dict)
    meaning: dict[int, str] = field(default_factory=dict)
    kinds: dict[int, list[int]] = field(default_factory=dict)
    comment: dict[int, str] = field(default_factory=dict)

    def share(self, *values: str) -> Fraction:
        """Return the share of its reviewers who answered question 1 with one of `values`."""
        named = sum(answer in values for answer in self.realism.values())
        return Fraction(named, len(self.realism))


def items_of(opened: sqlite3.Connection) -> list[Item]:
    """Return all rows with their answers."""
    query = (
        "SELECT items.id, stage, lang, recipe, strength FROM items"
        " JOIN groups ON groups.id = group_id ORDER BY items.id"
    )
    found = {row[0]: Item(*row) for row in opened.execute(query)}
    known = {number for (number,) in opened.execute("SELECT id FROM reviewers")}
    answers = opened.execute("SELECT reviewer, item, question, value FROM latest")
    for reviewer, item, question, value in answers:
        given = json.loads(value) if _may_be(question, value) else None
        if given is None or item not in found or reviewer not in known:
            raise SourceError(f"the review is damaged: no such answer to {question!r}: {value!r}")
        getattr(found[item], question)[reviewer] = whole(given) if question == "comment" else given
    return list(found.values())


def _may_be(question: str, value: str) -> bool:
    """Tell whether a stored answer has the form of one: the file may come from anywhere."""
    return bool(_FORMS.get(question, _NEVER).fullmatch(value))


def judged(opened: sqlite3.Connection) -> dict[tuple[str, str], list[Judged]]:
    """Return for every language and recipe what was said of its strengths in the first stage.

    Strengths stand in the order of the review.
    """
    values = opened.execute("SELECT lang, recipe, strength, value FROM groups ORDER BY id")
    by_group: defaultdict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for one in items_of(opened):
        if one.stage == 1 and one.realism:
            by_group[one.lang, one.recipe, one.strength].append(one)
    found: dict[tuple[str, str], list[Judged]] = {}
    for lang, recipe, strength, value in values:
        items = by_group[lang, recipe, strength]
        share = mean(one.share("realistic") for one in items)
        found.setdefault((lang, recipe), []).append(Judged(strength, value, len(items), share))
    return found


def mean(shares: Iterable[Fraction | float]) -> float:
    """Return the mean, 0 of nothing.

    It is rounded once, at the end: thirds that add up to the cut-off reach it.
    """
    listed = [Fraction(share) for share in shares]
    return float(sum(listed) / len(listed)) if listed else 0.0


def whole(text: str) -> str:
    """Return a text with half signs (lone surrogates), which no file takes, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
