"""Miner of parallel text: a table with a noisy and a clean column, or files aligned by line."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.batches import regroup
from noisegen.errors import SourceError, UsageError, did_you_mean
from noisegen.inputs import COMPRESSIONS, Columns, Input, expand, listed, whole
from noisegen.mining.alignment import align
from noisegen.mining.filters import Profile, judge
from noisegen.mining.languages import Language, codes_by_name, language
from noisegen.mining.pairs import Account, SentencePair, Task
from noisegen.readers import (
    CODE,
    KEPT,
    REASON,
    REASONS,
    Codes,
    as_text,
    hf_tables,
    parquet_tables,
    reading,
    with_reasons,
)
from noisegen.sources import stream

BATCH_BYTES = 4 << 20
ROWS = 10_000  # with their texts in memory as Python strings
OPTIONS = (
    "; name it with --noisy-column or --clean-column",
    "; the clean side of a text file is another one: --clean-file",
)  # advice where a column is missing: in a table, in a text file


class Row(NamedTuple):
    """A noisy text with its clean versions, and its language where a column says it."""

    noisy: str | None
    clean: Sequence[str | None]
    lang: str | None = None


@dataclass(frozen=True)
class PairsMiner:
    """Mines rows of noisy and clean text; a task is a table, or a noisy file and its clean ones.

    Columns are names, or numbers from 1 for a file without a header line; a clean one may hold
    lists. With `lang_column` each row says its language, else it is `language`. `split` is for rows
    of several sentences: they are split, and aligned by likeness. `advice` is what errors about a
    missing column end with, as in `OPTIONS`.
    """

    language: Language
    profile: Profile
    noisy_column: str = "noisy"
    clean_columns: tuple[str, ...] = ("clean",)
    lang_column: str | None = None
    split: bool = False
    advice: tuple[str, str] = OPTIONS

    def __call__(self, task: Task, account: Account) -> Iterator[SentencePair]:
        """Yield the pairs that pass the filters; a row is a unit."""
        for unit, row in enumerate(self.rows(task, account)):
            account.read["rows"] += 1
            spoken = self.language if row.lang is None else _spoken(row.lang, self.language)
            if spoken is None:
                account.dropped["unknown_lang"] += 1
                continue
            for clean in row.clean:
                if row.noisy is None or clean is None:
                    account.dropped["null_text"] += 1
                    continue
                for sides in self._sentences(row.noisy, clean, spoken, account):
                    verdict = judge(*sides, spoken, self.profile)
                    account.dropped.update(verdict.dropped_words)
                    if verdict.reason is None:
                        yield SentencePair(*sides, spoken.code, unit, verdict.words)
                    else:
                        account.dropped[verdict.reason] += 1

    def _sentences(
        self, noisy: str, clean: str, spoken: Language, account: Account
    ) -> list[tuple[str, str]]:
        """Return the pairs of sentences of a row; those that both sides share are no pairs."""
        if not self.split:
            return [(noisy, clean)]
        pairs, reason = align(spoken.sentences(noisy), spoken.sentences(clean))
        if reason:
            account.dropped[reason] += 1
        return pairs

    def check(self, item: Input) -> None:
        """Raise SourceError unless a file has the columns; those of hf:... are seen later."""
        piece = whole(item, self._columns) if item.kind != "hf" else None
        if piece is not None:
            self._named(piece.schema, item.path)

    @property
    def _columns(self) -> Columns:
        return Columns(text=self.noisy_column)

    def _named(self, schema: pa.Schema, path: str) -> list[str]:
        """Return the names of the columns: noisy, language if any, clean; raises SourceError."""
        given = (self.noisy_column, self.lang_column, *self.clean_columns)
        return [self._column(name, schema, path) for name in given if name]

    def _column(self, name: str, schema: pa.Schema, path: str) -> str:
        if name not in schema.names and name.isdecimal():
            name = f"column_{int(name)}"
        if name in schema.names:
            return name
        hint = did_you_mean(name, schema.names) or self.advice[0]
        if len(schema.names) == 1:
            hint = self.advice[1]
        raise SourceError(f"{path}: no column {name!r} among: {listed(schema.names)}{hint}")

    def rows(self, task: Task, account: Account) -> Iterator[Row]:
        """Yield the rows of a task, whatever their sides say; damage goes to the account."""
        if task.paths[1:]:
            return aligned_rows(task, account)
        return self._table_rows(task.paths[0], account)

    def _table_rows(self, path: str, account: Account) -> Iterator[Row]:
        """Yield the rows of a table; those that cannot be read are null, and counted as damage."""
        lost: Counter[str] = Counter()
        (item,) = expand([path])
        for table in regroup(_tables(item, self._columns), ROWS, BATCH_BYTES):
            codes = table[REASON].to_numpy().copy()
            names = self._named(table.schema, path)
            texts = [_texts(table[name], path, codes) for name in names]
            lost.update(REASONS[code] for code in codes.tolist() if code not in KEPT)
            langs = texts.pop(1) if self.lang_column else [None] * len(table)
            for lang, noisy, *clean in zip(langs, *texts, strict=True):
                yield Row(noisy, list(_flat(clean)), lang)
        account.damaged += [f"{path}: {count:,} rows {reason}" for reason, count in lost.items()]


def _flat(cells: Sequence[Any]) -> Iterator[str | None]:
    """Yield the texts of cells that hold one or a list of them."""
    for cell in cells:
        yield from cell if isinstance(cell, list) else [cell]


@lru_cache(maxsize=1_000)
def _spoken(name: str, like: Language) -> Language | None:
    """Return the language of a code or an English name; None for what is neither."""
    try:
        code = codes_by_name().get(name.lower(), name)
        return language(code, splitter=like.splitter, fuzzy_pinyin=like.fuzzy_pinyin)
    except UsageError:
        return None


def _tables(item: Input, columns: Columns) -> Iterator[pa.Table]:
    """Yield the rows of an input from beginning to end, with the column REASON."""
    if item.kind == "hf":
        tables = hf_tables(item.path)
    else:
        piece = whole(item, columns)
        if piece is None:
            return
        if piece.kind != "parquet":
            yield from stream(item, piece, columns)
            return
        tables = parquet_tables(piece.path, 0, piece.rows, BATCH_BYTES)
    with reading(item.path):
        for table in tables:
            yield with_reasons(table, np.zeros(len(table), np.int8))


def _texts(column: pa.ChunkedArray, path: str, codes: Codes) -> list[Any]:
    """Return a column as strings, or lists of strings; what is not UTF-8 is null and marked."""
    array, kind = column.combine_chunks(), column.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        array, wrong = as_text(array.cast(pa.binary()))
        codes[wrong] = CODE["not_utf8"]
    elif not _is_text(kind) and not pa.types.is_null(kind):
        raise SourceError(f"{path}: a column to mine is no text but {kind}")
    texts: list[Any] = array.to_pylist()
    return texts


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def table_tasks(sources: Sequence[str], miner: PairsMiner) -> tuple[list[Task], list[str]]:
    """Return a task for each table that files, folders, globs and hf:... mean, and what is skipped.

    Raises SourceError for what is missing and for columns that are not there.
    """
    inputs = expand(sources)
    read = [item for item in inputs if not item.skipped]
    for item in read:
        miner.check(item)
    paths = dict.fromkeys(map(_absolute, read))
    tasks = [Task(number, (path,)) for number, path in enumerate(paths)]
    return tasks, [f"{item.path}: {item.skipped}" for item in inputs if item.skipped]


def _absolute(item: Input) -> str:
    return str(Path(item.path).resolve()) if item.size is not None else item.path


def aligned_tasks(noisy: str, clean: Sequence[str]) -> list[Task]:
    """Return the task of a text file and its clean versions; raises SourceError."""
    paths = (noisy, *clean)
    for path in paths:
        if not Path(path).is_file():
            raise SourceError(f"{path!r}: no such file")
    return [Task(0, tuple(str(Path(path).resolve()) for path in paths))]


def aligned_rows(task: Task, account: Account) -> Iterator[Row]:
    """Yield the lines of a noisy file with those of its clean versions.

    Where one file is longer than another the rest is lost, and damage.
    """
    readers = [_lines(path) for path in task.paths]
    lost = 0
    for sides in zip_longest(*readers, fillvalue=_ENDED):
        if any(side is _ENDED for side in sides):
            lost += 1
        else:
            yield Row(sides[0], sides[1:])
    if lost:
        lengths = f"{task.paths[0]} and its clean files differ in length"
        account.damaged.append(f"{lengths}: {lost:,} lines at the end have no partner")


_ENDED = "(ended)"  # stands for the lines that a file lacks; told apart by identity


def _lines(path: str) -> Iterator[str | None]:
    """Yield the lines of a text file, compressed or not; None for one that cannot be read."""
    ending = path.lower().rpartition(".")[2]
    item = Input(path, "txt", ending if ending in COMPRESSIONS else "")
    columns = Columns()
    piece = whole(item, columns)
    assert piece is not None  # only files with a header line can hold nothing
    for table in stream(item, piece, columns):
        yield from table[columns.text].to_pylist()
