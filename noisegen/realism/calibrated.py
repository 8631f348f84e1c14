"""What a calibration gives: the recipe, how near it came, and the file that says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisegen.atomic import write_text
from noisegen.recipe import Recipe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One figure: what was aimed at, the recipe as it was given, and as it is now."""

    name: str
    target: float
    given: float
    reached: float


@dataclass(frozen=True)
class Missing:
    """Edits of a kind that the recipe hardly makes: their share of all edits, and real examples."""

    kind: str
    share: float
    reached: float
    examples: tuple[tuple[str, str], ...]  # clean, noisy


@dataclass(frozen=True)
class Calibrated:
    """A recipe, the figures it was fitted to, and what to know about it.

    `about` are the lines of comment in the head of the file: nothing of a source's text, no date.
    """

    recipe: Recipe
    figures: tuple[Figure, ...]
    about: tuple[str, ...]
    details: Mapping[str, Any]
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_yaml(self) -> str:
        """Return the recipe file: a head of comments, then the recipe."""
        head = "".join(f"# {line}\n" for line in self.about)
        return head + self.recipe.to_yaml()

    def save(self, path: str | Path) -> None:
        """Write the recipe file at once, or not at all; raises OutputError."""
        write_text(Path(path), self.to_yaml())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "recipe": self.recipe.to_dict(),
            "figures": {one.name: _sides(one) for one in self.figures},
            "missing": [
                {**vars(one), "examples": [list(sides) for sides in one.examples]}
                for one in self.missing
            ],
            "warnings": list(self.warnings),
            **self.details,
        }


def _sides(figure: Figure) -> dict[str, float]:
    return {"target": figure.target, "given": figure.given, "reached": figure.reached}


def render(found: Calibrated, console: "Console") -> None:
    """Print the figures as a table, then what the recipe hardly makes."""
    console.print(_figures(found))
    if found.missing:
        console.print()
        console.print(_missing(found))


_NUMBERS = ("target", "before", "reached", "real")


def _table(title: str, *columns: str) -> "Table":
    from noisegen.tables import titled

    table = titled(title)
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    return table


def _figures(found: Calibrated) -> "Table":
    table = _table(f"recipe {found.recipe.name}", "", "target", "before", "reached")
    for one in found.figures:
        table.add_row(one.name, *(f"{side:.4f}" for side in (one.target, one.given, one.reached)))
    return table


def _missing(found: Calibrated) -> "Table":
    from rich.text import Text

    table = _table("hardly made by this recipe", "", "real", "reached", "such as")
    for one in found.missing:
        words = ", ".join(f"'{clean}' -> '{noisy}'" for clean, noisy in one.examples)
        table.add_row(one.kind, f"{one.share:.1%}", f"{one.reached:.1%}", Text(words))
    return table
