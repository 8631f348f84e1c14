"""Published files that are no plain tables: how each is known by its name and how it is read.

They and the names of columns in published tables are declared in layouts.toml.
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

from noisegen.data.files import COMPRESSIONS, Damaged, is_url, read_parts
from noisegen.data.tables import CODE, delimited, read_lines, with_reasons
from noisegen.errors import SourceError

LABEL, SCORE = "label", "score"


@dataclass(frozen=True)
class FileLayout:
    """How the lines of published files become rows; the fields are those of layouts.toml."""

    name: str
    files: str
    columns: tuple[str, ...] = ()
    split: tuple[str, str] = ("", "")
    scores: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    legacy: bool = False
    edits: bool = False

    def names(self, path: str) -> tuple[str, ...]:
        """Return the columns of the rows of a file."""
        has_label = "label" in self._match(path).groupdict()
        return (*self.columns, *[LABEL] * has_label, *[SCORE] * bool(self.scores))

    def _match(self, path: str) -> re.Match[str]:
        match = re.fullmatch(self.files, _plain_name(path))
        assert match
        return match

    def problem(self, head: bytes) -> str:
        """Return why a file that begins so is none of these, '' if it is one."""
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
        """Return lines in UTF-8, their columns separated by tabs."""
        if self.legacy:
            block = b"\n".join(map(_as_utf8, block.split(b"\n")))
        pattern, replacement = (part.encode() for part in self.split)
        return re.sub(pattern, replacement, block, flags=re.MULTILINE) if pattern else block

    def tables(self, path: str, parts: Iterator[bytes]) -> Iterator[pa.Table]:
        """Yield the rows of a file, given its lines; raises SourceError for scores that differ."""
        scores, at = self._scores(path), 0
        for part in parts:
            if self.edits:
                yield _edits(part, self.columns)
                continue
            columns = list(self.columns)
            table = delimited(self._prepared(part), columns, tabs=len(columns) > 1, ragged=True)
            if self.labels:
                found = [self._label(text) for text in table[LABEL].to_pylist()]
                table = table.set_column(columns.index(LABEL), LABEL, pa.array(found, pa.string()))
            if label := self._match(path).groupdict().get("label"):
                table = table.append_column(LABEL, pa.array([label] * len(table)))
            if scores is not None:
                ours = scores[at : at + len(table)]
                at += len(table)
                ours += [None] * (len(table) - len(ours))
                table = table.append_column(SCORE, pa.array(ours, pa.string()))
            yield table
        if scores is not None and at != len(scores):
            raise SourceError(
                f"{path} has {at:,} lines and its scores {len(scores):,}: get both from one release"
            )

    def _label(self, text: str | None) -> str | None:
        labels = self.labels.items()
        return next(
            (name for name, form in labels if re.fullmatch(form, (text or "").strip())), None
        )

    def _scores(self, path: str) -> list[str | None] | None:
        """Return the scores of the lines of a file, None where it has none; raises SourceError."""
        if not self.scores:
            return None
        name, folder = self._match(path).expand(self.scores), Path(path).absolute().parent
        ending = Path(path).name[len(_plain_name(path)) :]
        there = [folder / f"{name}{end}" for end in dict.fromkeys((ending, ""))]
        there += sorted(folder.parent.glob(f"{escape(folder.name.partition('.')[0])}.*/{name}"))
        gold = next((file for file in there if not is_url(path) and file.is_file()), None)
        if gold is None:
            raise SourceError(f"{path}: its scores are in {name}, which is not there: add it")
        try:
            return list(read_lines(read_parts(gold)))
        except Damaged as damage:
            raise SourceError(f"{gold} is damaged: {damage}") from damage


def _as_utf8(line: bytes) -> bytes:
    """Return a line of UTF-8, Windows-1252 or, where it has bytes that this lacks, Latin-1."""
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
    """A line of the GitHub Typo Corpus."""

    edits: list[_Edit]


def _edits(block: bytes, columns: Sequence[str]) -> pa.Table:
    """Return the typos in the edits of commits, a commit per line."""
    rows: list[tuple[str | None, ...]] = []
    codes: list[int] = []
    for line in block.splitlines():
        try:
            edits = msgspec.json.decode(line, type=_Commit).edits
            found = [
                (e.src.text.strip(), e.tgt.text.strip(), e.src.lang) for e in edits if e.is_typo
            ]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            rows.append((None,) * len(columns))
            codes.append(CODE["bad_json"])
            continue
        rows += found
        codes += [0] * len(found)
    cells = [pa.array([row[at] for row in rows], pa.string()) for at in range(len(columns))]
    return with_reasons(pa.table(cells, list(columns)), np.array(codes, np.int8))


@cache
def _declared() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("layouts.toml").read_text("utf-8"))


@cache
def _layouts() -> list[FileLayout]:
    given = _declared()["layouts"]
    return [msgspec.convert({"name": name, **given[name]}, FileLayout) for name in given]


def _plain_name(path: str) -> str:
    """Return the name of a file without the ending of a compression."""
    name = str(path).rpartition("/")[2]
    return re.sub(rf"\.({'|'.join(COMPRESSIONS)})$", "", name)


def layouts_of(path: str) -> list[FileLayout]:
    """Return the layouts that a file may have by its name."""
    name = _plain_name(path)
    return [layout for layout in _layouts() if re.fullmatch(layout.files, name)]


def other_names(column: str) -> tuple[str, ...]:
    """Return what published tables call a column, in lower case, its own name first."""
    return (column.casefold(), *_declared()["names"].get(column, ()))
