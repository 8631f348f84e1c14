"""Labelled rows of a task: tokens with a tag each, a label, a second sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

OUTSIDE = "O"
MARKS = ("B-", "I-")
# Of a row: a file of WikiANN without blank lines is one row.
TOKENS_MAX, CHARACTERS_MAX = 10_000, 100_000


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
    noisy: list[Row] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)

    def add(self, row: Row, *noisy: Row) -> None:
        """Add a row, and its noisy version if there is one; count it where one is too long."""
        if any(map(_is_too_long, (row, *noisy))):
            self.dropped["too_long"] += 1
        else:
            self.rows.append(row)
            self.noisy += noisy

    def lose(self, path: Path, lost: Mapping[str, int]) -> None:
        """Tell of the rows of a file that could not be read, by reason, as for tables."""
        self.damaged += [f"{path}: {count:,} rows {reason}" for reason, count in lost.items()]

    def drop_strays(self) -> None:
        """Where most tags but O have B- or I-, drop rows with another tag, and count them."""
        tags = Counter(tag for row in self.rows for tag in row.tags if tag != OUTSIDE)
        strays = {tag for tag in tags if not has_mark(tag)}
        if 2 * sum(tags[tag] for tag in strays) >= tags.total():
            return
        before = len(self.rows)
        self.rows, self.noisy = (
            [row for row in rows if strays.isdisjoint(row.tags)] for rows in (self.rows, self.noisy)
        )
        self.dropped += Counter(unknown_tag=before - len(self.rows))


def _is_too_long(row: Row) -> bool:
    return len(row.tokens) > TOKENS_MAX or len(row.text) + len(row.second) > CHARACTERS_MAX


def has_mark(tag: str) -> bool:
    """Tell whether a tag is B-x or I-x."""
    return tag[:2] in MARKS and len(tag) > 2


def kind_of(tag: str) -> str:
    """Return the x of B-x, I-x or x."""
    return tag[2:] if has_mark(tag) else tag


def is_marked(rows: Iterable[Row]) -> bool:
    """Tell whether all tags but O have B- or I-."""
    tags = {tag for row in rows for tag in row.tags}
    return all(tag == OUTSIDE or has_mark(tag) for tag in tags)


def unmarked(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the B- and I- of their tags taken off."""
    return [replace(row, tags=tuple(map(kind_of, row.tags))) for row in rows]


def spread(rows: Sequence[Row], most: int) -> list[Row]:
    """Return at most so many rows, spread evenly over all."""
    if len(rows) <= most:
        return list(rows)
    return [rows[number * len(rows) // most] for number in range(most)]
