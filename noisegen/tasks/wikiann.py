"""Named entities in the format of WikiANN: a line a token, `lang:token TAB tag`."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from noisegen.cells import ROWS_MAX
from noisegen.errors import SourceError
from noisegen.tasks.files import lines_of
from noisegen.tasks.rows import TOKENS_MAX, Row, RowSet

_PREFIXED = re.compile(r"([a-z]{2,3}(?:-[a-z-]+)?):.")
_DAMAGE = ("not_utf8", "wrong_columns")  # what counts as damage in tables


def read_wikiann(source: str, lang: str) -> RowSet:
    """Read the sentences of one language; raises SourceError where there is none.

    A token without `lang:` before it counts as of the language that is asked for.
    """
    path = Path(source)
    if path.is_dir():
        raise SourceError(f"{source!r} is a folder: name a file in it")
    if not path.is_file():
        raise SourceError(f"{source!r}: no such file")
    found, lost = RowSet("wikiann"), Counter[str]()
    for lines in islice(_sentences(path, found.damaged), ROWS_MAX):
        row = _row(lines, lang)
        if isinstance(row, Row):
            found.add(row)
        else:
            (lost if row in _DAMAGE else found.dropped)[row] += 1
    found.lose(path, lost)
    return found


def _sentences(path: Path, damaged: list[str]) -> Iterator[list[bytes]]:
    """Yield the lines of sentences; of one that is too long only the first."""
    held: list[bytes] = []
    for line in lines_of(path, damaged):
        if line.strip():
            held += [line] if len(held) <= TOKENS_MAX else []
        elif held:
            yield held
            held = []
    if held:
        yield held


def _row(lines: list[bytes], lang: str) -> Row | str:
    """Return a sentence, or the reason to drop it."""
    if len(lines) > TOKENS_MAX:
        return "too_long"
    try:
        cells = [line.decode().split("\t") for line in lines]
    except UnicodeDecodeError:
        return "not_utf8"
    if any(len(cell) != 2 for cell in cells):
        return "wrong_columns"
    if not all(token.strip() and tag.strip() for token, tag in cells):
        return "unequal_labels"
    tokens, tags = zip(*((token, tag.strip()) for token, tag in cells), strict=True)
    found = _language(tokens)
    if found not in (None, lang):
        return "other_language"
    shown = tokens if found is None else tuple(token.removeprefix(f"{lang}:") for token in tokens)
    return Row(shown, tags)


def _language(tokens: Sequence[str]) -> str | None:
    """Return the code that stands before every token; None where none does."""
    codes = {match[1] if (match := _PREFIXED.match(token)) else None for token in tokens}
    return codes.pop() if len(codes) == 1 else None
