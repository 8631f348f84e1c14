"""Rows of files: a `FileRange` says where rows are, a `RowBatch` holds rows that were read.

`Columns` names the columns that the user chose.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.features import class_names
from noisegen.data.files import is_url, size_of
from noisegen.data.paths import is_path, records_of

ID = "id"  # default column of row ids
_NUMBER = re.compile(r"\d+")
_NUMBERS = re.compile(r"\d+(=\d+(,\d+)*)?")


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file, URL, '-' (standard input) or 'hf:NAME', or a range of its rows.

    `format` is the name of a registered format; `skipped` says why the file is not read. `schema`
    has the columns in the order of the first input file, `names` in the order of this file; both
    are empty until `read_head` has read the beginning of the file.

    `start` and `stop` bound the range: byte offsets in the decompressed text, or row indices in
    Parquet and Arrow. If `stop` is None, the range reaches to the end. `first` is the index of the
    range's first row among all rows, `rows` the count of its rows (0 if not counted), and `size`
    its share of the bytes of the file.

    `blocks` are offsets in a compressed file at which decompression can begin; the last one is the
    end of the range. The first block begins at offset `content` of the decompressed text. `table`
    has the rows of a file that worker processes cannot read, such as standard input.

    `separator` is the character between the fields of a CSV file. `keys` are columns whose values
    are in the path of the file, such as lang=en/a.parquet. `encoding` is the encoding of a text
    file, '' for UTF-8. `id_type` is the type of ids that the file stores in a dictionary.
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
    separator: str = ","
    keys: tuple[tuple[str, pa.Scalar], ...] = ()
    encoding: str = ""
    id_type: pa.DataType | None = None

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
        """Tell whether two files have the same format, columns and names of classes."""
        if self.format != other.format or not self.schema.equals(other.schema):
            return False
        if self.schema.metadata == other.schema.metadata:
            return True
        return class_names(self.schema) == class_names(other.schema)


@dataclass(frozen=True)
class Columns:
    """Columns that a user named; in a file without a header line '2' means the second column.

    `tokens` and `labels` are columns of lists with an item per token. If `tokens` is set, the text
    of a row is its tokens joined by spaces. If `row_id` is None, the ids are in the column 'id', if
    there is one; if it is '', rows are numbered. If `raw`, a list of formats, is set, tables get a
    column `tables.RAW`: the input bytes of each row, or null in files of other formats.
    `label_names` are the names of the classes if the labels are numbers and the user named them.

    `paths` leads to the texts of a row that has several or nested ones. `spans` leads to spans that
    annotate its texts, `align` to an alignment of its words; for the notation see
    `noisegen.data.paths`. With `per_text`, a row that is read becomes a row for each of its texts.
    """

    text: str = "text"
    row_id: str | None = None
    tokens: str | None = None
    labels: str | None = None
    raw: tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    align: str | None = None
    per_text: bool = False
    label_names: tuple[str, ...] = ()

    @classmethod
    def of_texts(cls, text: str, row_id: str | None = None) -> "Columns":
        """Return columns for reading texts alone, each as a row of its own; `text` is a path."""
        paths = (text,) if is_path(text) else ()
        return cls(text=text, row_id=row_id, paths=paths, per_text=True)

    @property
    def source(self) -> str:
        """The column that has the text of a row: its tokens, or else its text."""
        return self.tokens or self.text

    @property
    def is_annotated(self) -> bool:
        """Whether rows have several or nested texts, or annotations that follow the noise."""
        return bool(self.paths or self.spans or self.align)

    @property
    def required(self) -> str | None:
        """The column without whose text a row is unusable; None if rows may have several texts."""
        return None if self.paths else self.source

    @property
    def texts(self) -> tuple[str, ...]:
        """The paths of all texts of a row; a plain column is its own path."""
        return self.paths or (self.source,)

    def shown(self, names: Sequence[str]) -> list[str]:
        """Return the names that columns get in an output: 'title' for 'data[].title'.

        A name stays if the output has the other already.
        """
        records = records_of(self.text)
        plain = [name.removeprefix(f"{records}[].") if records else name for name in names]
        return [
            name if plain.count(other) > 1 else other
            for name, other in zip(names, plain, strict=True)
        ]

    @property
    def lists(self) -> tuple[str, ...]:
        """The columns of tokens and of labels, which hold a list per row; () if not named."""
        return tuple(name for name in (self.tokens, self.labels) if name)

    def of(self, names: Sequence[str]) -> "Columns":
        """Return the columns by their names in a file, whose columns are `names`.

        '2' becomes 'column_2' in a file without a header line. A `row_id` of None becomes 'id' if
        the file has a column 'id' that is not the text, the tokens or the labels. A `row_id` of
        'none' becomes '' if the file has no such column.
        """
        records = records_of(self.text)

        def named(name: str | None) -> str | None:
            found = name and numbered(name, names)
            inner = f"{records}[].{found}"
            return inner if records and found not in names and inner in names else found

        text, row_id = numbered(self.text, names), named(self.row_id)
        tokens, labels = named(self.tokens), named(self.labels)
        paths = tuple(numbered(path, names) for path in self.paths)
        paths = () if len(paths) == 1 and paths[0] in names else paths
        spans = tuple(_numbered_parts(given, names) for given in self.spans)
        align = self.align and _numbered_parts(self.align, names)
        default = named(ID)
        if row_id is None and default in names and default not in (text, tokens, labels, *paths):
            row_id = default
        elif row_id == "none" and row_id not in names:
            row_id = ""
        return replace(
            self,
            text=text,
            row_id=row_id,
            tokens=tokens,
            labels=labels,
            paths=paths,
            spans=spans,
            align=align,
        )


def _numbered_parts(given: str, names: Sequence[str]) -> str:
    """Return the value of an option, such as '3=1,2', with names of columns for its numbers."""
    if not _NUMBERS.fullmatch(given):
        return given
    return _NUMBER.sub(lambda match: numbered(match[0], names), given)


def numbered(name: str, names: Sequence[str]) -> str:
    """Return a column's name in a file; in one without a header line, 'column_2' for '2'."""
    return name if name in names or not name.isdecimal() else f"column_{int(name)}"


@dataclass(frozen=True)
class RowBatch:
    """A batch of rows that were read.

    `table` has the usable rows, with the columns `id`, `clean` (the text) and all others. If the
    columns have `paths`, the texts stay in their columns, and `clean` is missing. `read`
    has all rows as in the input, with every column of the file and `tables.REASON`. `keep` is True
    for each row of `read` that is also in `table`. `dropped` counts the other rows by reason.
    """

    table: pa.Table
    dropped: Counter[str]
    read: pa.Table
    keep: npt.NDArray[np.bool_]
