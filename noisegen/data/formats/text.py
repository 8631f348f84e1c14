"""Plain text: every line is a row."""

from noisegen.data.formats.base import (
    FLAT,
    Format,
    NoisyRow,
    RowWriter,
    Tables,
    as_cell,
    text_blocks,
    with_names,
    with_raw,
)
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import delimited


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    return with_names(file, [columns.source])


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    for block in text_blocks(file, batch_bytes):
        yield with_raw(delimited(block, file.names, tabs=False), block, file, columns)


def _line(row: NoisyRow) -> str:
    text = row.values[row.columns.source]
    return as_cell(" ".join(text) if isinstance(text, list) else text).translate(FLAT)


TXT = Format(
    name="txt",
    endings=("txt", "dev", "devtest"),
    head=_head,
    tables=_tables,
    cut="lines",
    writer=RowWriter(_line, keeps=("txt",), has_columns=False),
)
