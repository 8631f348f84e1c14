"""JSON documents: one array whose items are the rows, or one object with such an array.

The columns of an array of objects are their fields: `text`. In an object, the columns begin with
the path of the array: `data[].text`; the user's first path of a text tells which array is meant.
An object without such a path is a single row. When one noisy file is written, only the values that
noise changes differ.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from noisegen.data.files import SCAN, first_line, metered
from noisegen.data.formats.base import Format, Tables
from noisegen.data.formats.json_lines import DECODE, JSONL, MARK, SPACES, field_of, json_table
from noisegen.data.lines import LINE_MAX, read_range
from noisegen.data.paths import records_of
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import RAW, REASON
from noisegen.errors import SourceError

NO_ITEM = MARK + MARK  # in a row whose item is left out
_HEAD_ITEMS = 1_000  # items by which the types of the columns are found


def is_document(head: bytes, *, is_stream: bool = False) -> bool:
    """Tell whether a JSON file is one document and not JSON lines, by its first lines.

    Lines that begin with whole objects are JSON lines. A single line with an object is a document
    in a file, and a JSON line in a stream.
    """
    if not head.lstrip().startswith(b"{"):
        return True
    line, _, others = head.decode("utf-8", "replace").lstrip().partition("\n")
    is_only = not others.strip()
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        is_open = error.pos >= len(line.rstrip())  # the object goes on in the next line
        return not is_stream if is_only else is_open or not others.lstrip().startswith("{")
    except RecursionError:
        return not is_only
    return is_only and not is_stream


class _Reader:
    """The text of a document, decoded as far as needed, and the index `at` up to which it is read.

    Bytes that the encoding lacks become lone surrogates; `bytes_of` gives a text in UTF-8, with
    such bytes as `as_utf8` does.
    """

    def __init__(self, path: str, parts: Iterable[bytes], encoding: str) -> None:
        self.path = path
        self._parts = iter(parts)
        self._decoder = codecs.getincrementaldecoder(encoding or "utf-8")("surrogateescape")
        self._errors = "surrogatepass" if encoding else "surrogateescape"
        self._text = ""
        self._taken = 0
        self.at = 0

    def bytes_of(self, text: str) -> bytes:
        """Return a text of the document in UTF-8."""
        return text.encode("utf-8", self._errors)

    def _more(self) -> bool:
        """Decode more text, about the size of the held text; return False at the document's end."""
        self._text, self.at, self._taken = self._text[self._taken :], self.at - self._taken, 0
        room, made = max(1, len(self._text)), [self._text]
        for part in self._parts:
            made.append(self._decoder.decode(part))
            room -= len(part)
            if room <= 0:
                break
        before, self._text = len(self._text), "".join(made)
        return len(self._text) > before

    def next(self) -> str:
        """Go to the next character that is not white space, and return it; '' at the end."""
        while True:
            while self._text[self.at : self.at + 1] in SPACES:
                self.at += 1
            if self.at < len(self._text) or not self._more():
                return self._text[self.at : self.at + 1]

    def value(self) -> Any:
        """Return the JSON value at `at`, and go behind it; raises SourceError."""
        while True:
            problem = ""
            try:
                value, end = DECODE(self._text, self.at)
            except (ValueError, RecursionError) as error:
                problem = first_line(error)
            # The end of the text may cut a number
            if not problem and (end < len(self._text) or not self._more()):
                self.at = end
                return value
            if len(self._text) - self.at > LINE_MAX:
                problem = f"a value has over {LINE_MAX >> 20} MiB"
            elif not problem or self._more():
                continue
            raise SourceError(f"{self.path} is not a JSON document that can be read: {problem}")

    def taken(self) -> str:
        """Return the text between the place of the last call and `at`."""
        begin, self._taken = self._taken, self.at
        return self._text[begin : self.at]

    def rest(self) -> str:
        """Return the text from the place of the last call of `taken` to the end."""
        while self._more():
            pass
        self.at = len(self._text)
        return self.taken()


def _enter(reader: _Reader, records: str) -> str | None:
    """Go into the array of a document; return the path by which its columns begin.

    It is '' for a document that is an array, and `records` for an object with such an array.
    Returns None, at the begin of the document, if there is no array: the whole document is then
    one item.
    """
    first = reader.next()
    begin = reader.at
    names = records.split(".") if records and first == "{" else []
    if all(_go_to(reader, name) for name in names) and reader.next() == "[":
        reader.at += 1
        return ".".join(names)
    reader.at = begin
    return None


def _go_to(reader: _Reader, name: str) -> bool:
    """Go to the value of a field of the object at `at`; return False if there is none."""
    is_object = reader.next() == "{"
    reader.at += is_object
    while is_object and reader.next() == '"':
        found = reader.value()
        if reader.next() != ":":
            return False
        reader.at += 1
        reader.next()
        if found == name:
            return True
        reader.value()
        reader.at += reader.next() == ","
    return False


def _items(reader: _Reader) -> Iterator[tuple[str, str]]:
    """Yield the items of an array, or values in a row: (text before the item, its text).

    The last pair is (text after the last item, ''). Raises SourceError.
    """
    opening = ""
    while reader.next() not in ("]", ""):
        before = reader.taken()
        opening = opening or before
        reader.value()
        yield before, reader.taken()
        if reader.next() == ",":
            reader.at += 1
            if reader.next() == "]":
                reader.value()  # raises the error: no value follows the comma
    rest = reader.rest()
    try:
        json.loads(f"{opening}{rest}" if opening.strip() else f"[{rest}]")
    except ValueError as error:
        problem = f"after the last item: {first_line(error)}"
        raise SourceError(
            f"{reader.path} is not a JSON document that can be read: {problem}"
        ) from error
    yield rest, ""


# Functions that read rows.


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange | None:
    records, lines = _first_lines(file, beginning, columns)
    text = field_of(columns.text)
    head = JSONL.head(file, b"".join(lines), replace(columns, text=text)) if lines else None
    if head is None:
        return None
    # A text is in the fields of objects; items that are no objects then give no column
    fields = [field for field in head.schema if field.name or not text] or head.schema
    return replace(head, schema=_renamed(pa.schema(fields), records))


def _first_lines(
    file: FileRange, beginning: bytes, columns: Columns
) -> tuple[str | None, list[bytes]]:
    """Return the path by which the columns of a document begin, and its first items as lines."""
    if file.path == "-":
        reader = _Reader(file.path, [beginning], "")
    else:
        reader = _Reader(file.path, read_range(file), file.encoding)
    lines = list[bytes]()
    with metered():  # so that these bytes do not count: they are read and counted again
        records = _enter(reader, records_of(columns.text))
        try:
            items = (item for _, item in islice(_items(reader), _HEAD_ITEMS) if item)
            lines.extend(_line_of(reader.bytes_of(item)) for item in items)
        except SourceError:
            if file.path != "-" or not lines:
                raise
    return records, lines


def _renamed(schema: pa.Schema, records: str | None) -> pa.Schema:
    """Return the schema of items with the names of columns: 'data[].text' for 'text'."""
    fields = []
    for field in schema:
        name = field.name
        if records or not name:
            name = f"{records or ''}[]{'.' if name else ''}{name}"
        fields.append(field.with_name(name))
    return pa.schema(fields)


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    reader = _Reader(file.path, read_range(file), file.encoding)
    _enter(reader, records_of(columns.text))
    schema = pa.schema([field.with_name(field_of(field.name)) for field in file.schema])
    required = columns.required and field_of(columns.required)
    reads_on = file.format in (columns.raw or ())  # for the text after the array
    rows = list[list[bytes]]()  # text before an item, the item, text after it
    size = 0
    for before, item in _first_items(reader, file.rows, reads_on=reads_on):
        if rows and (not item or size >= min(batch_bytes, SCAN)):
            rows[-1][2] = b"" if item else reader.bytes_of(before)
            yield _table(rows, schema, required).rename_columns([*file.schema.names, REASON, RAW])
            rows, size = [], 0
        rows.append([reader.bytes_of(before), reader.bytes_of(item), b""])
        size += len(item)


def _first_items(reader: _Reader, rows: int, *, reads_on: bool) -> Iterator[tuple[str, str]]:
    """Yield the first `rows` items as `_items` does, all if it is 0, and the text after the last.

    That text is missing if items are left out, unless `reads_on` asks to read to the end.
    """
    for number, (before, item) in enumerate(_items(reader)):
        if not item or not rows or number < rows:
            yield before, item
        elif not reads_on:
            yield "", ""
            return


def _table(rows: Sequence[Sequence[bytes]], schema: pa.Schema, required: str | None) -> pa.Table:
    lines = (_line_of(item, is_object="" not in schema.names) for _, item, _ in rows)
    table = json_table(b"".join(lines), schema, required)
    return table.append_column(RAW, pa.array([MARK.join(row) for row in rows], pa.binary()))


def _line_of(item: bytes, *, is_object: bool = False) -> bytes:
    """Return an item as a line of JSON lines; a value that is no object becomes the field ''.

    If `is_object`, all items should be objects, and another value stays as it is.
    """
    text = item.replace(b"\n", b" ").replace(b"\r", b" ")
    return text + b"\n" if is_object or text.startswith(b"{") else b'{"": ' + text + b"}\n"


# Functions that write noisy rows.


def without_item(row: bytes) -> bytes:
    """Return a row in the form of MARK with the texts around its item alone; a line stays."""
    before, _, rest = row.partition(MARK)
    return before + NO_ITEM + rest.partition(MARK)[2] if rest else row


class Document:
    """A document that is written row by row, from rows of documents or JSON lines.

    It keeps the texts around the items of its input, and around items that are left out. Rows of
    several arrays become one array. An object without an array becomes an array if it `has_many`
    rows, such as copies.
    """

    def __init__(self, *, has_many: bool = False) -> None:
        self._has_many = has_many
        self._opening: bytes | None = None
        self._has_items = False
        self._closing = b""

    def add(self, rows: Iterable[bytes]) -> bytes:
        """Return the text of the next rows; a row is a line, or has the form of MARK."""
        made = []
        for row in rows:
            before, item, after = row.split(MARK) if MARK in row else (b"[\n", row, b"")
            made += [self._text_before(before, item), item]
            self._has_items = self._has_items or bool(item)
            self._closing = after or self._closing
        return b"".join(made)

    def _text_before(self, before: bytes, item: bytes) -> bytes:
        """Return the text to write before an item, given the text before it in the input."""
        text = before.strip()
        if self._opening is None and (item or text not in (b"", b",")):
            is_bare = not text and self._has_many  # an object without an array
            self._opening = b"[\n" if is_bare or text == b"," else before
            return self._opening
        if not (self._has_items and item):
            return b""
        if text == b"," or not (text or self._has_many):
            return before or b"\n"
        return b",\n"  # the text is the beginning of another array

    def end(self) -> bytes:
        """Return the text after the last row, which closes all that is open."""
        opened = re.findall(rb"[\[{]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", self._opening or b""))
        brackets = b"".join({b"[": b"]", b"{": b"}"}[one] for one in reversed(opened))
        closing = self._closing.strip() and self._closing
        return closing or (b"\n" + brackets + b"\n" if brackets else self._closing)


JSON = Format(
    name="json",
    endings=("json",),
    head=_head,
    tables=_tables,
    writer=JSONL.writer,
)
