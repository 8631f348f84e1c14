"""Requests of SNIPS as its JSON files have them: intent -> pieces of text, some with a slot."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from noisegen.errors import SourceError
from noisegen.tasks.files import read_bytes, task_files
from noisegen.tasks.rows import OUTSIDE, Row, RowSet

ENDINGS = (".json",)
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"


def is_snips(source: str) -> bool:
    """Tell whether a source has JSON files: a file, or a folder or glob of them."""
    return bool(task_files(source, ENDINGS))


def read_snips(source: str) -> RowSet:
    """Read JSON files of SNIPS; raises SourceError.

    A piece of text is split at white space, so that a token never has two slots: in "artist's"
    with artist as a slot, 's is a token of its own, outside. Slots become B-x, I-x.
    """
    found = RowSet("snips")
    for path in task_files(source, ENDINGS):
        lost: Counter[str] = Counter()
        for intent, request in _requests(path, lost):
            row = _row(intent, request)
            if row is None:
                lost["bad_row"] += 1
            elif _UNREADABLE in row.text:
                lost["not_utf8"] += 1
            elif not row.tokens:
                found.dropped["empty_cell"] += 1
            else:
                found.add(row)
        found.lose(path, lost)
    return found


def _requests(path: Path, lost: Counter[str]) -> Iterator[tuple[str, Any]]:
    try:
        content = json.loads(_decoded(read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is no JSON: {str(error).splitlines()[0]}") from error
    if not isinstance(content, Mapping):
        raise SourceError(f"{path} is no SNIPS file: it has no object of intents")
    for intent, requests in content.items():
        if isinstance(requests, list):
            yield from ((intent, request) for request in requests)
        else:
            lost["bad_row"] += 1


def _decoded(content: bytes) -> str:
    """Return UTF-8 as text; the published files have an emoji as two halves of a pair in it."""
    try:
        halves = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _row(intent: str, request: Any) -> Row | None:
    """Return a request as a row; None for one that is not of the format."""
    tokens: list[str] = []
    tags: list[str] = []
    try:
        for piece in request["data"]:
            slot, words = piece.get("entity"), piece["text"].split()
            if not isinstance(slot, str | None):
                return None
            tokens += words
            tags += [f"{mark}-{slot}" if slot else OUTSIDE for mark in _marks(len(words))]
    except (TypeError, KeyError, AttributeError):
        return None
    return Row(tuple(tokens), tuple(tags), intent)


def _marks(words: int) -> str:
    return "B" + "I" * (words - 1) if words else ""
