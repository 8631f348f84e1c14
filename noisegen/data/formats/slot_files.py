"""Requests in three aligned files of a folder, as SNIPS and ATIS have them.

Line n of `seq.in` has the tokens of request n, of `seq.out` their slots, of `label` its intent.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisegen.data.conll import LABELS, TEXT, TOKENS
from noisegen.data.files import SCAN
from noisegen.data.formats.base import Format, Tables
from noisegen.data.lines import as_utf8, blocks, read_parts
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import (
    CODE,
    LISTS,
    ROWS,
    UnequalFiles,
    lines_together,
    undamaged_lines,
    with_reasons,
)
from noisegen.errors import SourceError

SPLIT_FILES = ("seq.in", "seq.out", "label")
_INTENT = "label"  # column with the intent of a request

Lines = tuple[str | None, ...]


def is_split(source: str | Path) -> bool:
    """Tell whether to read the three `SPLIT_FILES` of a folder: it has them, and no data.tsv."""
    folder = Path(source)
    has_all = all((folder / name).is_file() for name in SPLIT_FILES)
    return has_all and not (folder / "data.tsv").is_file()


def slot_file(path: str) -> FileRange:
    """Return the file seq.in at a path; it stands for all `SPLIT_FILES` of its folder."""
    return FileRange(path, SLOTS.name)


def split_lines(source: str | Path, encoding: str = "") -> Iterator[Lines]:
    """Yield the tokens, slots and intent of each request in a folder, None for a line not in UTF-8.

    Raises SourceError if a file has more lines than another.
    """
    paths = [Path(source, name) for name in SPLIT_FILES]
    parts = [(as_utf8(part, encoding) for part in blocks(read_parts(path), SCAN)) for path in paths]
    sides = [undamaged_lines(each, path) for each, path in zip(parts, paths, strict=True)]
    try:
        yield from lines_together(sides)
    except UnequalFiles as error:
        counts = zip(SPLIT_FILES, error.counts, strict=True)
        found = ", ".join(f"{name} {count:,}" for name, count in counts)
        raise SourceError(
            f"{source}: files of unequal length ({found} lines): get them again"
        ) from error


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    text = [] if columns.tokens else [(TEXT, pa.string())]
    fields = [*text, (TOKENS, LISTS), (LABELS, LISTS), (_INTENT, pa.string())]
    return replace(file, schema=pa.schema(fields), names=(TOKENS, LABELS, _INTENT))


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    lines = split_lines(Path(file.path).parent, file.encoding)
    while rows := list(islice(lines, ROWS)):
        is_wrong = np.array([None in row for row in rows])
        texts, slots, intents = zip(*rows, strict=True)
        made = {
            TEXT: pa.array(texts, pa.string()),
            TOKENS: pa.array([None if text is None else text.split() for text in texts], LISTS),
            LABELS: pa.array([None if tags is None else tags.split() for tags in slots], LISTS),
            _INTENT: pa.array(intents, pa.string()),
        }
        yield with_reasons(pa.table(made), np.where(is_wrong, CODE["not_utf8"], 0).astype(np.int8))


SLOTS = Format(name="slots", endings=(), head=_head, tables=_tables, has_token_lines=True)
