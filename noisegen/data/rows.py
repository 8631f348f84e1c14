"""Rows of files: a `FileRange` can be read, a `RowBatch` was read.

`Columns` are the columns that the user named.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.files import is_url, size_of

ID = "id"  # column taken as the id of each row where no other is named


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file, URL, '-' (standard input) or 'hf:NAME', or a range of its rows.

    `format` names one of the registered formats; `skipped` says why the file is not read.
    `schema` has the columns in the order of the run and `names` those in the order of the file;
    both are empty until `read_head` has seen the beginning of the file.

    `start` and `stop` bound the range: bytes of decompressed text, or numbers of rows of Parquet
    and Arrow; without `stop` it goes on to the end. `first` is the number of its first row,
    `rows` counts its rows (0: not counted), `size` is its share of the bytes of the file.

    `blocks` are offsets in a compressed file at which decompression can begin and, last, end;
    `content` is the offset in the decompressed text of the first block.
    `table` holds the rows themselves where a worker cannot read them again.
    """

    path: str
    format: str = ""
    skipped: str = ""
    schema: pa.Schema = pa.schema([])  # noqa: RUF009  (immutable)
    names: tuple[str, ...] = ()
    start: int = 0
    stop: int | None = None
    first: int = 0
    rows: int = 0
    size: int = 0
    blocks: tuple[int, ...] = ()
    content: int = 0
    table: pa.Table | None = None

    @property
    def is_file(self) -> bool:
        """Whether this is a file here or in a store, not standard input or a data set."""
        return self.path != "-" and self.format != "hf"

    @property
    def file_size(self) -> int | None:
        """The bytes of the whole file; None for standard input and data sets."""
        return size_of(self.path) if self.is_file else None

    @property
    def absolute(self) -> str:
        """The path in a form that a worker in another folder can open."""
        is_local = self.is_file and not is_url(self.path)
        return os.path.abspath(self.path) if is_local else self.path  # noqa: PTH100

    def is_like(self, other: "FileRange") -> bool:
        """Tell whether this file has the same format and columns as another file."""
        same = self.schema.equals(other.schema, check_metadata=True)
        return same and self.format == other.format


@dataclass(frozen=True)
class Columns:
    """Columns that a user named; a number is the place of a column in a file without header.

    `tokens` and `labels` are lists with an item per token; with `tokens` the text of a row is its
    tokens, joined by one space. A column `id` has the ids where `row_id` names no other.
    With `raw` rows have a column `tables.RAW`: their bytes in a file of one of these formats, null
    in files of other formats.
    """

    text: str = "text"
    row_id: str | None = None
    tokens: str | None = None
    labels: str | None = None
    raw: tuple[str, ...] | None = None

    @property
    def source(self) -> str:
        """The column that the text of a row is made from."""
        return self.tokens or self.text

    @property
    def lists(self) -> tuple[str, ...]:
        """The columns that hold a list per row."""
        return tuple(name for name in (self.tokens, self.labels) if name)

    def of(self, names: Sequence[str]) -> "Columns":
        """Return the columns of a file with these `names`: numbers replaced, `row_id` filled in."""

        def named(name: str | None) -> str | None:
            return name and numbered(name, names)

        text, row_id = numbered(self.text, names), named(self.row_id)
        tokens, labels = named(self.tokens), named(self.labels)
        if row_id is None and ID in names and ID not in (text, tokens, labels):
            row_id = ID
        return Columns(text, row_id, tokens, labels, self.raw)


def numbered(name: str, names: Sequence[str]) -> str:
    """Return the column that a name means: '2' is `column_2` of a file without a header line."""
    return name if name in names or not name.isdecimal() else f"column_{int(name)}"


@dataclass(frozen=True)
class RowBatch:
    """Rows that were read.

    `table` has the usable rows with `id`, `clean` (the text) and all other columns.
    `read` has all rows as they were read, every column of the file and `tables.REASON`;
    `keep` is a mask of the rows of `read` that are in `table`.
    `dropped` counts the other rows by reason.
    """

    table: pa.Table
    dropped: Counter[str]
    read: pa.Table
    keep: npt.NDArray[np.bool_]
