"""HTML pages made from a template: one file with styles and script inside, and all text escaped.

A page is a list of sections, and a section is a list of blocks. For other data the caller makes a
`Custom` block, and a template with a macro that draws it.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from noisegen.report import charts
from noisegen.report.blocks import NAME_MAX, TEXT_MAX, Block, Section, cut, writable

_TEMPLATES = Path(__file__).parent / "templates"


def page(
    title: str,
    sections: Sequence[Section],
    *,
    kicker: str = "noisegen",
    head: Sequence[Block] = (),
    macros: Path | None = None,
    script: bool = False,
) -> str:
    """Return the text of an HTML page that loads no other file.

    `kicker` is a line above the title; the blocks `head` are shown above the sections. `macros` is
    a template file of the caller, with macros that draw `Custom` blocks; its styles and script are
    in files of the same name that end in .css and .js. With `script`, readers of the page can sort
    tables of the kind 'sortable', and filter and copy tables of the kind 'copied'. All text is cut
    to `TEXT_MAX` characters and escaped; control characters are replaced.
    """
    style, code = _asset("css", macros), _asset("js", macros) if script else ""
    policy = f"default-src 'none'; style-src {_digest(style)}; img-src data:; base-uri 'none'"
    policy += "; form-action 'none'" + (f"; script-src {_digest(code)}" if code else "")
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


def _asset(kind: str, macros: Path | None) -> str:
    """Return the CSS styles (if `kind` is 'css') or the script ('js') to include in a page.

    This is page.css or page.js, and after it the caller's file named like `macros`, if any.
    """
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
    environment.globals.update(bar_chart=charts.bars, sample=charts.sample)
    environment.globals["macros"] = macros.name if macros else None
    environment.tests["markup"] = lambda value: isinstance(value, Markup)
    environment.globals["kind_of"] = lambda block: type(block).__name__
    return environment.get_template("page.html")


def _cut(text: object, most: int = TEXT_MAX) -> object:
    return text if isinstance(text, Markup) else cut(str(text), most)


def _writable(value: object) -> object:
    return writable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
