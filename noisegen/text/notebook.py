"""HTML for notebooks, which show the last value of a cell with its method `_repr_html_`."""

from html import escape

TEXT_MAX = 100_000  # most characters of a folded text


def folded(line: str, text: str) -> str:
    """Return HTML that shows a line, and a text when the reader unfolds it."""
    shown = text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}\n..."
    return f"<details><summary>{escape(line)}</summary><pre>{escape(shown)}</pre></details>"


def framed(page: str, height: int = 600) -> str:
    """Return HTML that shows a whole page in a frame, `height` pixels high, of its own style."""
    style = f"width: 100%; height: {height}px; border: 1px solid #ccc"
    return f'<iframe srcdoc="{escape(page)}" style="{style}"></iframe>'
