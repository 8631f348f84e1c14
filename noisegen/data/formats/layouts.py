"""Layouts of published data sets whose files are not plain tables, recognised by file name.

layouts.toml declares the layouts. It also lists what published tables call the usual columns:
'tweet' for 'text'.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from noisegen.data.decoders import without_compression
from noisegen.data.files import is_url
from noisegen.data.formats.base import Format, Tables, text_blocks, with_names
from noisegen.data.lines import read_parts
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import CODE, delimited, undamaged_lines, with_reasons
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
    edits: bool = False

    def names(self, path: str) -> tuple[str, ...]:
        """Return the columns of the rows in a file at `path`."""
        has_label = "label" in self._match(path).groupdict()
        return (*self.columns, *[LABEL] * has_label, *[SCORE] * bool(self.scores))

    def _match(self, path: str) -> re.Match[str]:
        match = re.fullmatch(self.files, _name(path))
        assert match
        return match

    def problem(self, head: bytes) -> str:
        """Return the reason why a file's first bytes do not fit the layout; '' if they do."""
        if not head.strip():
            return "it is empty"
        line = self._prepared(head.partition(b"\n")[0])
        if self.edits:
            return "" if b'"edits"' in line else "its first line has no edits"
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
        if self.edits:
            yield from (_edits(part, self.columns) for part in parts)
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


class _Sentence(msgspec.Struct):
    text: str
    lang: str


class _Edit(msgspec.Struct):
    src: _Sentence
    tgt: _Sentence
    is_typo: bool | None = None


class _Commit(msgspec.Struct):
    """A line of the GitHub Typo Corpus: the edits of one git commit."""

    edits: list[_Edit]


def _edits(block: bytes, columns: Sequence[str]) -> pa.Table:
    """Return a table with a row per corrected typo; each line of `block` is a git commit."""
    rows: list[tuple[str | None, ...]] = []
    codes: list[int] = []
    for line in block.splitlines():
        try:
            edits = msgspec.json.decode(line, type=_Commit).edits
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            rows.append((None,) * len(columns))
            codes.append(CODE["bad_json"])
            continue
        for edit in edits:
            if edit.is_typo:
                rows.append((edit.src.text.strip(), edit.tgt.text.strip(), edit.src.lang))
                codes.append(0)
    cells = [pa.array([row[at] for row in rows], pa.string()) for at in range(len(columns))]
    return with_reasons(pa.table(cells, list(columns)), np.array(codes, np.int8))


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


def other_names(column: str) -> tuple[str, ...]:
    """Return a column's name, then its other names in published tables, all in lower case."""
    return (column.casefold(), *_declared()["names"].get(column, ()))


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    layout = next(layout for layout in layouts_of(file.path) if not layout.problem(beginning))
    return with_names(file, layout.names(file.path))


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    layouts = layouts_of(file.path)
    layout = next(layout for layout in layouts if layout.names(file.path) == file.names)
    return layout.tables(file.path, text_blocks(file, batch_bytes))


PUBLISHED = Format(name="layout", endings=(), head=_head, tables=_tables)
