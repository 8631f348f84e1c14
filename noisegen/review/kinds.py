"""The kinds of noise that a reviewer can name: those of a TSV, and additions."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("kinds.tsv")


class Kind(NamedTuple):
    """A kind of noise: the key that chooses it, its name, and what it means."""

    letter: str
    name: str
    hint: str


@cache
def _shipped() -> tuple[Kind, ...]:
    with FILE.open(encoding="utf-8", newline="") as file:
        next(file)  # source and licence
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return tuple(Kind(row["letter"], row["name"], row["hint"]) for row in rows)


def shipped_kinds() -> list[Kind]:
    """Return the kinds that every review begins with."""
    return list(_shipped())
