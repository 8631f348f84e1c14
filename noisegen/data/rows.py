"""Rows of files: a `FileRange` says where rows are, a `RowBatch` holds rows that were read.

`Columns` names the columns that the user chose.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.files import is_url, size_of

ID = "id"  # default column of row ids


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file, URL, '-' (standard input) or 'hf:NAME', or a range of the rows of one.

    `format` is the name of a registered format; `skipped` says why the file is not read. `schema`
    has the columns in the order that all files of a run share, `names` the names in the order of
    this file; both are empty until `read_head` has read the beginning of the file.

    `start` and `stop` bound the range: in bytes of decompressed text, or in row numbers of Parquet
    and Arrow. Without `stop` it reaches to the end. `first` is the number of the first row of the
    range, `rows` the number of its rows (0: not counted), `size` its share of the bytes of the
    file.

    `blocks` are offsets in a compressed file at which decompression can begin; the last offset is
    the end of the range. `content` is the offset of the first block in the decompressed text.
    `table` has the rows themselves if a worker process could not read them, as from standard input.
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
        """Whether this is a local file or a URL, not standard input or a data set of the Hub."""
        return self.path != "-" and self.format != "hf"

    @property
    def file_size(self) -> int | None:
        """The bytes of the whole file; None for standard input and data sets of the Hub."""
        return size_of(self.path) if self.is_file else None

    @property
    def absolute(self) -> str:
        """The path as a worker in another working directory can open it."""
        is_local = self.is_file and not is_url(self.path)
        return os.path.abspath(self.path) if is_local else self.path  # noqa: PTH100

    def is_like(self, other: "FileRange") -> bool:
        """Tell whether two files have the same format and the same columns."""
        same = self.schema.equals(other.schema, check_metadata=True)
        return same and self.format == other.format


@dataclass(frozen=True)
class Columns:
    """Columns that a user named; a number is the place of a column in a file without a header line.

    `tokens` and `labels` name lists with an item per token. With `tokens` the text of a row is its
    tokens joined by spaces. If `row_id` is None, a column `id` has the ids. `raw` names formats:
    with it, rows get a column `tables.RAW`, which has the bytes of a row in files of these formats
    and null in other files.
    """

    text: str = "text"
    row_id: str | None = None
    tokens: str | None = None
    labels: str | None = None
    raw: tuple[str, ...] | None = None

    @property
    def source(self) -> str:
        """The column that has the text of a row: its tokens, or else its text."""
        return self.tokens or self.text

    @property
    def lists(self) -> tuple[str, ...]:
        """The columns that hold a list per row: tokens and labels, if named."""
        return tuple(name for name in (self.tokens, self.labels) if name)

    def of(self, names: Sequence[str]) -> "Columns":
        """Return the columns as a file with the columns `names` names them: `column_2` for '2'.

        A `row_id` of None becomes `id` if the file has a column `id` that is not used otherwise.
        """

        def named(name: str | None) -> str | None:
            return name and numbered(name, names)

        text, row_id = numbered(self.text, names), named(self.row_id)
        tokens, labels = named(self.tokens), named(self.labels)
        if row_id is None and ID in names and ID not in (text, tokens, labels):
            row_id = ID
        return Columns(text, row_id, tokens, labels, self.raw)


def numbered(name: str, names: Sequence[str]) -> str:
    """Return the column that a name means: '2' means `column_2` in a file without a header line."""
    return name if name in names or not name.isdecimal() else f"column_{int(name)}"


@dataclass(frozen=True)
class RowBatch:
    """A batch of rows that were read.

    `table` has the usable rows with `id`, `clean` (the text) and all other columns. `read` has all
    rows as in the input, with every column of the file and `tables.REASON`. `keep` is a mask over
    the rows of `read`: True for rows in `table`. `dropped` counts the rows that are not in
    `table`, by reason.
    """

    table: pa.Table
    dropped: Counter[str]
    read: pa.Table
    keep: npt.NDArray[np.bool_]
