"""Layouts of published data sets whose files are not plain tables.

A file is recognised by its name, and a file of corrections in JSON lines also by its fields.
layouts.toml declares the layouts. It also lists what published tables call the usual columns:
'tweet' for 'text'.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa

from noisegen.data.decoders import without_compression
from noisegen.data.files import is_url
from noisegen.data.formats.base import Format, Tables, text_blocks
from noisegen.data.formats.corrections import correction_table, has_form
from noisegen.data.lines import read_parts
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import LISTS, delimited, undamaged_lines
from noisegen.errors import SourceError

LABEL, SCORE = "label", "score"


@dataclass(frozen=True)
class FileLayout:
    """Rules that turn the lines of a published file into rows; layouts.toml explains the fields."""

    name: str
    files: str
    columns: tuple[str, ...] = ()
    split: tuple[str, str] = ("", "")
    scores: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    legacy: bool = False
    corrections: Literal["", "commits", "essays"] = ""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the columns of the rows in a file at `path`."""
        if self.corrections:
            return self.columns
        has_label = "label" in self._match(path).groupdict()
        return (*self.columns, *[LABEL] * has_label, *[SCORE] * bool(self.scores))

    def schema(self, path: str) -> pa.Schema:
        """Return the columns with their types: text, or lists of it for the versions of essays."""
        lists = ("clean",) if self.corrections == "essays" else ()
        return pa.schema(
            {name: LISTS if name in lists else pa.string() for name in self.names(path)}
        )

    def _match(self, path: str) -> re.Match[str]:
        match = re.fullmatch(self.files, _name(path))
        assert match
        return match

    def problem(self, head: bytes) -> str:
        """Return the reason why a file's first bytes do not fit the layout; '' if they do."""
        if not head.strip():
            return "it is empty"
        if self.corrections:
            return "" if has_form(head, self.corrections) else "its first lines have no edits"
        line = self._prepared(head.partition(b"\n")[0])
        count, wanted = line.count(b"\t") + 1, max(len(self.columns), 1 + (not self.columns))
        if count >= wanted:
            return ""
        named = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"its first line has {count} of {wanted} columns{named}"

    def _prepared(self, block: bytes) -> bytes:
        """Return a block of lines in UTF-8, with tabs between their columns."""
        if self.legacy:
            block = b"\n".join(map(_as_utf8, block.split(b"\n")))
        pattern, replacement = (part.encode() for part in self.split)
        return re.sub(pattern, replacement, block, flags=re.MULTILINE) if pattern else block

    def tables(self, path: str, parts: Iterator[bytes]) -> Tables:
        """Yield the rows of the file at `path`, a table per block of its lines in `parts`.

        Raises SourceError if a separate file of scores has more or fewer lines.
        """
        if self.corrections:
            schema = self.schema(path)
            yield from (correction_table(part, self.corrections, schema) for part in parts)
            return
        scores = self._scores(path)
        label = self._match(path).groupdict().get("label")
        count = 0
        for part in parts:
            table = self._table(part)
            if label:
                table = table.append_column(LABEL, pa.array([label] * len(table)))
            if scores is not None:
                ours = scores[count : count + len(table)]
                ours += [None] * (len(table) - len(ours))
                table = table.append_column(SCORE, pa.array(ours, pa.string()))
            count += len(table)
            yield table
        if scores is not None and count != len(scores):
            raise SourceError(
                f"{path} has {count:,} lines and its scores {len(scores):,}: get both from one "
                "release"
            )

    def _table(self, block: bytes) -> pa.Table:
        """Return a block of lines as a table, with labels renamed by `self.labels`."""
        names = list(self.columns)
        table = delimited(self._prepared(block), names, tabs=len(names) > 1, ragged=True)
        if not self.labels:
            return table
        found = [self._label(text) for text in table[LABEL].to_pylist()]
        return table.set_column(names.index(LABEL), LABEL, pa.array(found, pa.string()))

    def _label(self, text: str | None) -> str | None:
        """Return the name of the label whose pattern matches a text; None if no pattern matches."""
        plain = (text or "").strip()
        return next((name for name, form in self.labels.items() if re.fullmatch(form, plain)), None)

    def _scores(self, path: str) -> list[str | None] | None:
        """Return the score of each line of the file at `path`; None if the layout has no scores.

        The scores are in another file, with the name in `self.scores`. Raises SourceError if it is
        missing or damaged.
        """
        if not self.scores:
            return None
        name, folder = self._match(path).expand(self.scores), Path(path).absolute().parent
        ending = Path(path).name[len(_name(path)) :]
        files = [folder / f"{name}{end}" for end in dict.fromkeys((ending, ""))]
        files += sorted(folder.parent.glob(f"{escape(folder.name.partition('.')[0])}.*/{name}"))
        gold = next((file for file in files if not is_url(path) and file.is_file()), None)
        if gold is None:
            raise SourceError(f"{path}: its scores are in {name}, which is not there: add it")
        return list(undamaged_lines(read_parts(gold), gold))


def _as_utf8(line: bytes) -> bytes:
    """Return a line in UTF-8; a line that is not UTF-8 is read as Windows-1252, or as Latin-1."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding).encode()
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1").encode()


@cache
def _declared() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("layouts.toml").read_text("utf-8"))


@cache
def _layouts() -> list[tuple[re.Pattern[str], FileLayout]]:
    """Return the file name pattern and the layout of every published data set."""
    given = _declared()["layouts"]
    layouts = [msgspec.convert({"name": name, **given[name]}, FileLayout) for name in given]
    return [(re.compile(layout.files), layout) for layout in layouts]


def _name(path: str) -> str:
    """Return the file name in a path, without the ending of a compression."""
    return without_compression(path.rpartition("/")[2])


def layouts_of(path: str) -> list[FileLayout]:
    """Return the layouts whose pattern matches the file name in a path."""
    name = _name(path)
    return [layout for pattern, layout in _layouts() if pattern.fullmatch(name)]


def corrections_in(head: bytes) -> FileLayout | None:
    """Return the layout of a file of corrections by its first bytes; None for other files."""
    found = (layout for _, layout in _layouts() if layout.corrections)
    return next((layout for layout in found if not layout.problem(head)), None)


def other_names(column: str) -> tuple[str, ...]:
    """Return a column's name, then its other names in published tables, all in lower case."""
    return (column.casefold(), *_declared()["names"].get(column, ()))


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    named = (layout for layout in layouts_of(file.path) if not layout.problem(beginning))
    layout = next(named, None) or corrections_in(beginning)
    assert layout
    return replace(file, schema=layout.schema(file.path), names=layout.names(file.path))


def layout_of(file: FileRange) -> FileLayout | None:
    """Return the layout of a file whose columns were read; None for a file of another format."""
    if file.format != PUBLISHED.name:
        return None
    corrections = [layout for _, layout in _layouts() if layout.corrections]
    layouts = [*layouts_of(file.path), *corrections]
    return next(layout for layout in layouts if layout.names(file.path) == file.names)


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    layout = layout_of(file)
    assert layout
    return layout.tables(file.path, text_blocks(file, batch_bytes))


PUBLISHED = Format(name="layout", endings=(), head=_head, tables=_tables)
