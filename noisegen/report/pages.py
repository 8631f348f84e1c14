"""Pages from templates: one HTML file with its styles and script inside, everything in it escaped.

A page is a list of sections, a section a list of blocks. What no block here can show is a `Custom`
one, drawn by a macro in a template of the caller.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

_TEMPLATES = Path(__file__).parent / "templates"
NAME_MAX, TEXT_MAX = 60, 400  # characters of a name and of a text that are shown
SHADES = 9  # of heat maps, in page.css
# What HTML cannot hold: controls, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Cell:
    """A cell of a table: text, or a chart.

    `value` makes it a figure, which is sorted and copied by it; `title` is shown where the pointer
    rests. `shade` from 0 to 1 colours it. `detail` is drawn by the macro of the table instead.
    """

    text: str
    value: float | None = None
    title: str = ""
    kind: str = ""
    shade: float | None = None
    detail: Any = None

    @property
    def classes(self) -> str:
        """The cell's CSS classes."""
        shade = "" if self.shade is None else f"h{min(int(self.shade * SHADES), SHADES - 1)}"
        figure = "" if self.value is None else "n"
        return " ".join(filter(None, (figure, shade, self.kind)))


Row = Sequence[Cell | str]  # the first cell names the row
MISSING = Cell("–", kind="none")


@dataclass(frozen=True)
class Table:
    """A table; the caller's `macro` draws the cells that have a `detail`."""

    caption: str
    heads: Row
    rows: Sequence[Row]
    kind: str = ""
    note: str = ""  # beside the caption
    macro: str = ""

    def is_figure(self, column: int) -> bool:
        """Tell whether the cells of a column are figures, by its first row."""
        cell = self.rows[0][column] if self.rows else ""
        return isinstance(cell, Cell) and cell.classes.startswith("n")


@dataclass(frozen=True)
class Figure:
    """Charts side by side, what they show in words, and the key of their marks."""

    charts: Sequence[Markup]
    caption: str
    title: str = ""
    key: Sequence[tuple[Markup, str]] = ()


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` is '', 'quiet', 'lead' or 'warning'."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks behind a title that opens them."""

    title: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Custom:
    """Data for a macro of the caller's template."""

    macro: str
    data: Any


Block = Table | Figure | Text | Folded | Custom


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading; one without blocks is left out."""

    name: str  # of the link to it
    title: str
    blocks: Sequence[Block]
    lead: str = ""


def page(
    title: str,
    sections: Sequence[Section],
    *,
    kicker: str = "noisegen",
    head: Sequence[Block] = (),
    macros: Path | None = None,
    script: bool = False,
) -> str:
    """Return a page that needs nothing from elsewhere.

    `macros` is a template of the caller for its `Custom` blocks; a file of the same name that ends
    in .css or .js joins the page. With `script`, tables of kind 'sortable' can be sorted, those of
    kind 'copied' filtered and copied. All text is cut, escaped and free of controls.
    """
    style, code = _asset("css", macros), _asset("js", macros) if script else ""
    policy = f"default-src 'none'; style-src {_digest(style)}; img-src data:; base-uri 'none'"
    policy += (
        f"; form-action 'none'; script-src {_digest(code)}" if code else "; form-action 'none'"
    )
    rendered: str = _template(macros).render(
        title=title,
        sections=[section for section in sections if section.blocks],
        kicker=kicker,
        head=head,
        policy=Markup(policy),
        style=Markup(style),
        script=Markup(code),
    )
    return rendered


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, with an ellipsis where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _asset(kind: str, macros: Path | None) -> str:
    """Return the styles or the script of the kit, and those of the caller after them."""
    paths = [_TEMPLATES / f"page.{kind}", *([macros.with_suffix(f".{kind}")] if macros else [])]
    return "\n".join(path.read_text("utf-8") for path in paths if path.exists())


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@cache
def _template(macros: Path | None) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folders = [_TEMPLATES, *([macros.parent] if macros else [])]
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_writable,
    )
    environment.filters["cut"] = _cut
    environment.globals.update(NAME_MAX=NAME_MAX, TEXT_MAX=TEXT_MAX)
    environment.globals["macros"] = macros.name if macros else None
    environment.tests["markup"] = lambda value: isinstance(value, Markup)
    environment.globals["kind_of"] = lambda block: type(block).__name__
    return environment.get_template("page.html")


def _cut(text: object, most: int = TEXT_MAX) -> object:
    return text if isinstance(text, Markup) else cut(str(text), most)


def _writable(value: object) -> object:
    """Return a text with control characters and lone surrogates as U+FFFD."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNSAFE.sub("\ufffd", value)
    return value
