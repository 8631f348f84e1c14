"""Values of rows as text: cells of a table, and JSON."""

import json
from typing import Any

from noisegen.data.tables import is_unicode

FLAT = str.maketrans("\r\n", "  ")  # replaces line ends by spaces: a row is one line


def as_cell(value: Any) -> str:
    """Return a value as the text of a cell; a list or an object becomes JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return _as_text(value) if isinstance(value, bytes) else as_json(value)


def as_json(value: Any) -> str:
    """Return a value as JSON, not escaped unless it has half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, default=_as_text)
    return text if is_unicode(text) else json.dumps(value, default=_as_text)


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
