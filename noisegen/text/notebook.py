"""HTML for notebooks, which show the last value of a cell with its method `_repr_html_`."""

from html import escape
from pkgutil import resolve_name

TEXT_MAX = 100_000  # most characters of a folded text
FRAME_HEIGHT = 600  # pixels


def folded(line: str, text: str) -> str:
    """Return HTML that shows a line, and a text when the reader unfolds it."""
    shown = text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}\n..."
    return f"<details><summary>{escape(line)}</summary><pre>{escape(shown)}</pre></details>"


def framed(value: object, page: str) -> str:
    """Return HTML that shows the page of a value in a frame, which keeps its style apart.

    `page` names the function that writes the page, 'noisegen.evaluation.page:page'. It is found
    when it is needed, since its module imports the class of the value.
    """
    written = resolve_name(page)(value)
    style = f"width: 100%; height: {FRAME_HEIGHT}px; border: 1px solid #ccc"
    return f'<iframe srcdoc="{escape(written)}" style="{style}"></iframe>'
