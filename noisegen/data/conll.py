"""Files with a token per line and a blank line after each sentence, as rows of an Arrow table.

CoNLL-2003, CoNLL-U and IOB2 have a token, its tags and more per line, split by tabs or spaces;
MultiLexNorm's `.norm` has a raw word and its normal form, which may be several words or none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.data.files import SCAN, TEXT_MAX, Damaged, blocks
from noisegen.data.tables import CODE, ROWS, with_reasons

LISTS = pa.list_(pa.string())
TOKENS, LABELS, TEXT, SENTENCE = "tokens", "labels", "text", "sent_id"
INDEX = "index"  # a column that counts the tokens; it is not among those of the rows
CONLLU = (INDEX, "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
WORDS, LABELLED = (TOKENS, "form"), (LABELS, "upos")  # what is usually meant
_WORDS_MIN = 0.95  # share of first fields without a space in a file with a token per line
_SAME_MIN = 0.3  # share of equal words in normalised text; of tags that are words far fewer
_NORM = ("noisy", "clean")
_START = "-DOCSTART-"  # a line that begins a document, in the place of a sentence
_TAG = re.compile(r"O|[BIESLU]-\S+")
_INDEX = re.compile(r"(\d+)([-.]\d+)?")  # 3, the span 3-4 of a contraction, the empty node 3.1
_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")  # those that are columns

Sentence = list[str]  # its lines
Fields = list[list[str]]  # of its lines
Row = dict[str, Any]


def head_sentences(head: bytes) -> list[Sentence]:
    """Return the sentences of the beginning of a file; the last may be cut."""
    return [part for part in sentences([head]) if isinstance(part, list)]


def looks_split(head: bytes, wanted: Sequence[str]) -> bool:
    """Tell whether a table is rather a token per line: blank lines, and none of its columns."""
    found = head_sentences(head)
    lines = [line.split("\t") for sentence in found for line in sentence if line[:1] != "#"]
    if len(found) < 2 or not lines or {*wanted} & {*lines[0]}:
        return False
    words = sum(" " not in line[0] for line in lines)
    return {len(line) for line in lines} == {max(len(lines[0]), 2)} and words >= _WORDS_MIN * len(
        lines
    )


def is_normalisation(head: bytes) -> bool:
    """Tell whether many lines have the same word twice: raw, and as it should be."""
    lines = [line.lower().split("\t") for sentence in head_sentences(head) for line in sentence]
    return sum(line[:1] == line[1:2] for line in lines) > _SAME_MIN * len(lines)


def token_columns(head: bytes, tokens: str | None, labels: str | None) -> tuple[str, ...]:
    """Return the names of the columns of a file, in its order.

    Those of CoNLL-U have the names of the format. Elsewhere the tokens are the first column that
    does not count them, the labels the last with tags such as B-x, else the last; where `tokens`
    and `labels` name others, those keep their numbers (`column_2`).
    """
    found = [_without_comments(lines)[0] for lines in head_sentences(head)]
    rows = [lines for lines in found if lines and lines[0][0] != _START]
    if not rows:
        return ()
    width = len(rows[0][0])
    has_index = width > 2 and all(map(_counts, rows))
    if has_index and width == len(CONLLU):
        return CONLLU
    names = [f"column_{number}" for number in range(1, width + 1)]
    if has_index:
        names[0] = INDEX
    if tokens in (None, TOKENS):
        names[has_index] = TOKENS
    others = range(has_index + 1, width)
    if others and labels in (None, LABELS):
        lines = [line for row in rows for line in row if len(line) == width]
        tagged = [at for at in others if all(_TAG.fullmatch(line[at]) for line in lines)]
        names[(tagged or others)[-1]] = LABELS
    return tuple(names)


def _counts(lines: Fields) -> bool:
    """Tell whether the first fields of a sentence count its tokens."""
    numbers = [_INDEX.fullmatch(line[0]) for line in lines]
    whole = [int(match[1]) for match in numbers if match and not match[2]]
    return all(numbers) and whole in ([*range(len(whole))], [*range(1, len(whole) + 1)])


def _without_comments(lines: Sentence) -> tuple[Fields, dict[str, str]]:
    """Return the fields of the lines of a sentence, and the values of the comments before them.

    A comment has another number of fields than the last line, unlike the token # with its tags.
    """
    separator = "\t" if any("\t" in line for line in lines) else None
    fields = [line.split(separator) for line in lines]
    first = 0
    while first < len(lines) and lines[first].startswith("#"):
        if len(fields[first]) == len(fields[-1]) and not lines[-1].startswith("# "):
            break
        first += 1
    comments = (_COMMENT.match(line) for line in lines[:first])
    return fields[first:], {match[1]: match[2] for match in comments if match}


# Rows.


def token_schema(names: Sequence[str], tokens: str | None, *, has_id: bool) -> pa.Schema:
    """Return the columns of the rows: lists, and the text of a sentence if no tokens are asked."""
    columns = [(TEXT, pa.string())] if tokens is None else []
    columns += [(SENTENCE, pa.string())] if has_id else []
    return pa.schema([*columns, *((name, LISTS) for name in names if name != INDEX)])


def token_tables(parts: Iterable[bytes], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield sentences as rows, a list for each column, with their `text` and `sent_id`."""
    words = next((name for name in WORDS if name in names), names[0])
    schema = pa.schema({TEXT: pa.string(), SENTENCE: pa.string()} | dict.fromkeys(names, LISTS))

    def row(lines: Sentence) -> Row | str | None:
        fields, comments = _without_comments(lines)
        if not fields or fields[0][0] == _START:
            return None
        if names[0] == INDEX:
            fields = [line for line in fields if line[0].isdecimal()]
        if not fields or any(len(line) != len(names) for line in fields):
            return "wrong_columns"
        columns = dict(zip(names, map(list, zip(*fields, strict=True)), strict=True))
        return {TEXT: " ".join(columns[words])} | comments | columns

    return _tables(parts, row, schema)


def norm_tables(parts: Iterable[bytes]) -> Iterator[pa.Table]:
    """Yield the sentences of a `.norm` file as rows with the columns noisy and clean."""

    def row(lines: Sentence) -> Row | str | None:
        fields = [line.split("\t") for line in lines]
        if any(len(line) < 2 for line in fields):
            return "wrong_columns"
        return {name: " ".join(filter(None, (line[side].strip() for line in fields)))
                for side, name in enumerate(_NORM)}  # fmt: skip

    return _tables(parts, row, NORM_SCHEMA)


NORM_SCHEMA = pa.schema(dict.fromkeys(_NORM, pa.string()))


def _tables(
    parts: Iterable[bytes], row_of: Callable[[Sentence], Row | str | None], schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the rows of sentences, about SCAN bytes at once; None is no row, a text its reason."""
    rows: list[Row] = []
    codes: list[int] = []
    size = 0

    def table() -> pa.Table:
        built = pa.Table.from_pylist(rows, schema)
        return with_reasons(built, np.array(codes, np.int8))

    damage: Damaged | None = None
    try:
        for lines in sentences(parts):
            row = lines if isinstance(lines, str) else row_of(lines)
            if row is None:
                continue
            size += sum(map(len, lines))
            rows.append({} if isinstance(row, str) else row)
            codes.append(CODE[row] if isinstance(row, str) else 0)
            if len(rows) == ROWS or size > SCAN:
                yield table()
                rows, codes, size = [], [], 0
    except Damaged as error:
        damage = error
    if rows:
        yield table()
    if damage:
        raise damage


def sentences(parts: Iterable[bytes]) -> Iterator[Sentence | str]:
    """Yield the lines between blank lines, or why they cannot be read; raises what `parts` does."""
    held: list[bytes] = []
    size = 0
    for block in blocks(parts, SCAN):
        *lines, last = block.split(b"\n")
        for line in (*lines, *([last] if last else [])):
            if line.strip():
                size += len(line)
                if size <= TEXT_MAX:
                    held.append(line)
            elif held:
                yield _decoded(held, size)
                held, size = [], 0
    if held:
        yield _decoded(held, size)


def _decoded(lines: Sequence[bytes], size: int) -> Sentence | str:
    if size > TEXT_MAX:
        return "row_too_long"
    try:
        return [line.rstrip(b"\r").decode() for line in lines]
    except UnicodeDecodeError:
        return "not_utf8"
