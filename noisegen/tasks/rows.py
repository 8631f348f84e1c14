"""Labelled rows of a task: tokens with a tag each, a label, a second sentence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

OUTSIDE = "O"
MARKS = ("B-", "I-")


@dataclass(frozen=True)
class Row:
    """One text, as tokens; what a task does not have is empty.

    `tags` has one for each token, `label` is an intent or a class, `second` the sentence after the
    first in a pair, and `key` what names the row in its file.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...] = ()
    label: str = ""
    second: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """The tokens, joined by one blank."""
        return " ".join(self.tokens)


@dataclass
class RowSet:
    """Rows that were read; `dropped` counts others by reason, `damaged` says what was lost.

    `corpus` names the paper's data whose format it is. `noisy` has the rows' noisy versions where
    the same file holds them.
    """

    corpus: str
    rows: list[Row] = field(default_factory=list)
    noisy: list[Row] | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)


def kind_of(tag: str) -> str:
    """Return the x of B-x, I-x or x."""
    return tag[2:] if tag[:2] in MARKS else tag


def is_marked(rows: Iterable[Row]) -> bool:
    """Tell whether all tags but O have B- or I-."""
    tags = {tag for row in rows for tag in row.tags}
    return all(tag == OUTSIDE or tag[:2] in MARKS for tag in tags)


def unmarked(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the B- and I- of their tags taken off."""
    return [replace(row, tags=tuple(map(kind_of, row.tags))) for row in rows]


def spread(rows: Sequence[Row], most: int) -> list[Row]:
    """Return at most so many rows, spread evenly over all."""
    if len(rows) <= most:
        return list(rows)
    return [rows[number * len(rows) // most] for number in range(most)]
