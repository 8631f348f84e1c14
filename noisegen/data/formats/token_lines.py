"""Formats with a token per line: CoNLL, CoNLL-U and MultiLexNorm's `.norm`, read as sentences."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.data.conll import (
    CONLLU,
    INDEX,
    NORM,
    SENTENCE,
    TEXT,
    WORDS,
    Sentence,
    after_comments,
    corrected,
    decoded_lines,
    sentence_blocks,
    surface,
    token_columns,
)
from noisegen.data.files import SCAN, Damaged
from noisegen.data.formats.base import Format, NoisyRow, RowWriter, Tables, text_blocks
from noisegen.data.noisy_sentences import rewritten
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import CODE, LISTS, RAW, ROWS, with_reasons

# Comments before a sentence whose values become columns of its row
_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")
_PAIR = dict.fromkeys(("noisy", "clean"), pa.string())
PAIR_COLUMNS = tuple(_PAIR)

Row = dict[str, Any]


# Functions that find the columns of a file.


def _token_head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange | None:
    names = token_columns(beginning, columns.tokens, columns.labels)
    if not names:
        return None
    file = replace(file, names=names, format="conllu" if names == CONLLU else "conll")
    if _reads_pairs(file, columns):
        return replace(file, schema=pa.schema(_PAIR))
    fields = [] if columns.tokens else [(TEXT, pa.string())]
    if b"# sent_id" in beginning:
        fields.append((SENTENCE, pa.string()))
    fields += [(name, LISTS) for name in names if name != INDEX]
    return replace(file, schema=pa.schema(fields))


def _reads_pairs(file: FileRange, columns: Columns) -> bool:
    """Tell whether to read sentences of a treebank as pairs: as written, and corrected."""
    return file.names == CONLLU and columns.tokens is None and columns.text in PAIR_COLUMNS


def _norm_head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange:
    schema = pa.schema(dict.fromkeys(NORM, LISTS) if columns.tokens else _PAIR)
    return replace(file, schema=schema, names=NORM)


# Functions that read sentences as rows.


def _token_tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    parts = text_blocks(file, batch_bytes)
    if _reads_pairs(file, columns):
        return _tables(parts, _pair_row, _PAIR)
    schema = {TEXT: pa.string(), SENTENCE: pa.string()} | dict.fromkeys(file.names, LISTS)
    return _tables(parts, partial(_token_row, file.names), schema)


def norm_tables(parts: Iterable[bytes]) -> Tables:
    """Yield the sentences of a `.norm` file, given in blocks, as tables with REASON and RAW.

    The columns `raw` and `norm` have the words as lists. The column `noisy` has the raw words
    joined by spaces, `clean` the normal words.
    """
    return _tables(parts, _norm_row, dict.fromkeys(NORM, LISTS) | _PAIR)


def _norm_tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    return norm_tables(text_blocks(file, batch_bytes))


def _pair_row(lines: Sentence) -> Row | str | None:
    """Return a CoNLL-U sentence as a pair: `noisy` as written, `clean` corrected.

    Returns a reason for a sentence that is dropped, None for lines without tokens.
    """
    _, fields = after_comments(lines)
    if any(len(line) != len(CONLLU) for line in fields):
        return "wrong_columns"
    return {"noisy": surface(fields), "clean": corrected(fields)} if fields else None


def _token_row(names: Sequence[str], lines: Sentence) -> Row | str | None:
    """Return a sentence as a row: its `text`, its comments, and a list per column of the file.

    Returns a reason for a sentence that is dropped, None for lines without tokens.
    """
    first, fields = after_comments(lines)
    if not fields:
        return None
    whole = all(len(line) == len(names) for line in fields)
    if names[0] == INDEX:
        fields = [line for line in fields if line[0].isdecimal()]
    if not (whole and fields):
        return "wrong_columns"
    words = next((name for name in WORDS if name in names), names[0])
    columns = dict(zip(names, map(list, zip(*fields, strict=True)), strict=True))
    return {TEXT: " ".join(columns[words])} | _named_comments(lines[:first]) | columns


def _named_comments(lines: Sentence) -> dict[str, str]:
    """Return the values of the comments `# sent_id` and `# text` before a sentence, if any."""
    matches = filter(None, map(_COMMENT.match, lines))
    return {match[1]: match[2] for match in matches}


def _norm_row(lines: Sentence) -> Row | str:
    """Return a `.norm` sentence as two lists, raw and normal words, and as two texts.

    Returns a reason for a sentence that is dropped.
    """
    fields = [[cell.strip() for cell in line.split("\t")] for line in lines]
    if any(len(line) != len(NORM) for line in fields):
        return "wrong_columns"
    sides = [list(side) for side in zip(*fields, strict=True)]
    texts = (" ".join(filter(None, side)) for side in sides)
    return dict(zip((*NORM, *_PAIR), (*sides, *texts), strict=True))


def _tables(
    parts: Iterable[bytes],
    row_of: Callable[[Sentence], Row | str | None],
    columns: dict[str, pa.DataType],
) -> Tables:
    """Yield sentences as rows in tables of about SCAN bytes; raises Damaged after the last table.

    `row_of` returns the row of a sentence, the reason why it is dropped, or None for lines without
    tokens, such as comments. `columns` maps the columns to their types. The column RAW has all
    bytes of the file: per row a sentence, lines without tokens before it, and blank lines after.
    """
    schema = pa.schema(columns | {RAW: pa.binary()})
    rows: list[Row] = []
    codes: list[int] = []
    size, raw = 0, b""
    damage: Damaged | None = None
    try:
        for block in sentence_blocks(parts):
            lines = decoded_lines(block)
            row = lines if isinstance(lines, str) else row_of(lines)
            raw += b"".join(block)
            if row is None:
                continue
            if len(rows) == ROWS or size > SCAN:
                yield _table(rows, codes, schema)
                rows, codes, size = [], [], 0
            if isinstance(row, str):
                rows.append({RAW: raw})
                codes.append(CODE[row])
            else:
                rows.append(row | {RAW: raw})
                codes.append(0)
            size, raw = size + len(raw), b""
    except Damaged as error:
        damage = error
    if rows:
        rows[-1][RAW] += raw
        yield _table(rows, codes, schema)
    if damage:
        raise damage


def _table(rows: list[Row], codes: list[int], schema: pa.Schema) -> pa.Table:
    return with_reasons(pa.Table.from_pylist(rows, schema), np.array(codes, np.int8))


# Functions that write noisy sentences.


def _sentence(form: str, row: NoisyRow) -> str:
    """Return the lines of a noisy sentence.

    If the input has this format, the lines of the clean sentence are rewritten. Otherwise each
    token becomes a line: `form.format(number, token, label)`.
    """
    columns = row.columns
    new = {str(name): row.values[str(name)] for name in (columns.tokens, columns.labels)}
    if row.line is None:
        tokens = zip(*new.values(), strict=True)
        return "".join(form.format(number, *token) for number, token in enumerate(tokens, 1))
    names = [name for name in row.values if name not in (TEXT, SENTENCE)]
    return rewritten(row.line, names, new, row.owners)


_TOKEN = "{1}\t{2}\n"
_TREEBANK_TOKEN = "{0}\t{1}\t_\t{2}" + "\t_" * 6 + "\n"

CONLL = Format(
    name="conll",
    endings=("conll", "iob2", "bio"),
    head=_token_head,
    tables=_token_tables,
    has_token_lines=True,
    writer=RowWriter(partial(_sentence, _TOKEN), keeps=("conll", "conllu"), has_columns=False),
)
TREEBANK = Format(
    name="conllu",
    endings=("conllu",),
    head=_token_head,
    tables=_token_tables,
    has_token_lines=True,
    writer=RowWriter(partial(_sentence, _TREEBANK_TOKEN), keeps=("conllu",), has_columns=False),
)
NORMALISED = Format(
    name="norm",
    endings=("norm",),
    head=_norm_head,
    tables=_norm_tables,
    has_token_lines=True,
    writer=RowWriter(partial(_sentence, _TOKEN), keeps=("norm",), has_columns=False),
)
