"""The word lists that sentences are altered by."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"


class Opposite(NamedTuple):
    """A word's opposite as a part of speech, and neighbours that make another sense of the word."""

    word: str
    tag: str  # universal; of a verb the Penn tag, VB also for VBP
    not_before: frozenset[str]
    not_after: frozenset[str]


@cache
def opposites() -> dict[str, tuple[Opposite, ...]]:
    """Return the opposites of every word of the list, in lower case."""
    found: dict[str, tuple[Opposite, ...]] = {}
    for word, other, tag, *limits in _rows("opposites"):
        neighbours = [frozenset(limit.split()) for limit in (*limits, "", "")]
        found[word] = (*found.get(word, ()), Opposite(other, tag, neighbours[0], neighbours[1]))
    return found


@cache
def words(name: str, kind: str) -> tuple[str, ...]:
    """Return the words of one kind of a list, in its order."""
    return tuple(word for word, theirs in _rows(name) if theirs == kind)


def _rows(name: str) -> list[list[str]]:
    lines = (DATA / f"{name}.tsv").read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")][1:]
