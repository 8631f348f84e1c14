"""HTML from untrusted text: everything that is not made here goes through `text` or `bdi`."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from noisegen.evaluation.report.wording import cut

NAME_MAX, TEXT_MAX = 60, 400  # characters of a name and of a sentence that are shown
# What HTML cannot hold (controls, lone surrogates) and what would turn the line of its neighbours.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def text(value: object, most: int = TEXT_MAX) -> str:
    """Return a text as HTML, cut; control characters and lone surrogates become U+FFFD."""
    return escape(_UNSAFE.sub("\ufffd", cut(str(value), most)))


def bdi(value: object, most: int = NAME_MAX) -> str:
    """Return a text as HTML that keeps its own direction, whatever stands beside it."""
    return f"<bdi>{text(value, most)}</bdi>"


def tag(name: str, content: str, kind: str = "") -> str:
    """Return an element of HTML content, with a class or without."""
    return f"<{name}{_class(kind)}>{content}</{name}>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table in a box that scrolls; cells are HTML, complete with their td or th."""
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{plain(caption)}">'
        f"<table{_class(kind)}><caption>{caption}</caption>"
        f"<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def plain(html: str) -> str:
    """Return HTML of this module without its tags, for an attribute."""
    return re.sub("<[^>]*>", "", html).replace('"', "&quot;")


def cell(content: str, kind: str = "", value: float | None = None) -> str:
    """Return a cell; `value` is what it is sorted by and copied as."""
    raw = "" if value is None else f' data-value="{value!r}"'
    return f"<td{_class(kind)}{raw}>{content}</td>"


def row_head(content: str) -> str:
    """Return the cell that names its row."""
    return f'<th scope="row">{content}</th>'


def figure(content: str, caption: str, title: str = "") -> str:
    """Return one chart or several with a title or without, and what they show in words."""
    head = f"<h3>{title}</h3>" if title else ""
    words = f"<figcaption>{caption}</figcaption>"
    return f'<figure>{head}<div class="panels">{content}</div>{words}</figure>'


def paragraph(content: str, kind: str = "") -> str:
    """Return a paragraph of HTML."""
    return tag("p", content, kind)
