"""Columns of text that a user named by what they hold: read bounded, or streamed, and cleaned."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from noisegen.data import tables
from noisegen.data.files import ALL, Piece
from noisegen.data.formats import Columns, Input, numbered, range_tables, whole
from noisegen.data.layouts import other_names
from noisegen.data.sources import expand, is_list, is_string, no_column, refuse_doubles
from noisegen.errors import SourceError
from noisegen.text.buffers import one_chunk

_TWEET = "tweet_id"
_ONLY_IDS = "; it has ids of tweets without their text, which has to be fetched first"
_TWEET_COLUMNS = 3  # a table with fewer has ids and labels alone
_GOLD = ("label", "score")
ROWS_MAX = 1_000_000  # that are held in memory
BATCH_BYTES, BATCH_ROWS = 4 << 20, 10_000
T = TypeVar("T")
Choices = Sequence[Sequence[str]]  # sets of columns, the first that a source has is read


@dataclass(frozen=True)
class TextColumns:
    """Columns of text of one source; `dropped` counts rows by reason, `damaged` says what was lost.

    The lists are equally long, and no text is blank. `unread` counts the rows of `damaged`, by the
    reasons of `tables.REASONS`.
    """

    columns: dict[str, list[str]]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def sample(self, most: int) -> "TextColumns":
        """Return at most so many rows, spread evenly over all."""
        columns = {name: evenly(texts, most) for name, texts in self.columns.items()}
        return self if len(self) <= most else TextColumns(columns, self.dropped, self.damaged)


def evenly(rows: Sequence[T], most: int) -> list[T]:
    """Return at most so many rows, spread evenly over all."""
    if len(rows) <= most:
        return list(rows)
    return [rows[number * len(rows) // most] for number in range(most)]


def column_named(name: str, there: Sequence[str]) -> str:
    """Return the column that a name means: its own, its number, or what published sets call it."""
    found = numbered(name, there)
    if found in there:
        return found
    plain = {other.strip().casefold(): other for other in there}
    return next((plain[other] for other in other_names(name) if other in plain), found)


def read_columns(source: str, choices: Choices, what: str, advice: str = "") -> TextColumns:
    """Read the first of the `choices` of columns that the source has.

    `source` is a file, folder, glob or hf:...; of a text file, the one column is its lines. Columns
    of a file without a header are numbers from 1; `column_named` tells what else a name means. Of
    rows with the same tweet_id the first is read. `what` names the set in errors, and `advice` ends
    those about a missing column. Rows after the first ROWS_MAX are counted under `over_limit`.
    Raises SourceError for what is missing and where no row is left.
    """
    read = TextColumns({})
    rows = list(within_memory(stream_columns(source, choices, what, read, advice), read.dropped))
    columns = {name: [row[index] for row in rows] for index, name in enumerate(read.columns)}
    return replace(read, columns=columns)


def within_memory(rows: Iterable[T], dropped: Counter[str]) -> Iterator[T]:
    """Yield the first ROWS_MAX rows; count the others under `over_limit`."""
    for number, row in enumerate(rows):
        if number < ROWS_MAX:
            yield row
        else:
            dropped["over_limit"] += 1


def stream_columns(
    source: str, choices: Choices, what: str, read: TextColumns, advice: str = ""
) -> Iterator[tuple[str, ...]]:
    """Yield any number of rows as `read_columns` reads them; `read` gets columns and losses."""
    empty, ids = True, set[str]()
    for item in expand([source]):

        def choose(there: Sequence[str], path: str = item.path) -> tuple[str, ...]:
            refuse_doubles(path, there)
            given = [tuple(read.columns)] if read.columns else choices
            chosen = [tuple(column_named(name, there) for name in names) for names in given]
            missing = [[name for name in names if name not in there] for names in chosen]
            row_id = column_named(_TWEET, there)
            if read.columns and missing[0]:
                name = missing[0][0]
                raise SourceError(f"{path}: no column {name!r}, which the files before it have")
            if all(missing):
                error = no_column(path, min(missing, key=len)[0], there)
                wanted = " or ".join(", ".join(names) for names in choices)
                hint = _ONLY_IDS if row_id in there and len(there) < _TWEET_COLUMNS else advice
                raise SourceError(f"{error}; {what} needs the columns {wanted}{hint}")
            at = missing.index([])
            read.columns.update({name: [] for name in given[at]})
            return (*chosen[at], *{row_id}.intersection(there))

        for _, codes, columns in text_batches(item, Columns(text=choices[0][0]), choose):
            lost = unread_rows(codes)
            read.unread.update(lost)
            read.damaged.extend(damaged_rows(item.path, lost))
            for code, cells in zip(codes.tolist(), zip(*columns, strict=True), strict=True):
                texts, row_id = cells[: len(read.columns)], cells[len(read.columns) :]
                if code not in tables.KEPT:
                    continue
                blank = [not text or text.isspace() for text in texts]
                if any(blank):
                    name = list(read.columns)[blank.index(True)]
                    read.dropped[f"no_{name}" if name in _GOLD else "empty_cell"] += 1
                elif row_id and row_id[0] and row_id[0] in ids:
                    read.dropped["duplicate_id"] += 1
                else:
                    empty = False
                    ids.update(filter(None, row_id))
                    yield texts
    if empty:
        why = (
            in_brackets(read.dropped + read.unread)
            or ": it is empty or has only a header; get it again"
        )
        raise SourceError(f"{source}: no rows for {what}{why}")


def text_batches(
    item: Input, columns: Columns, choose: Callable[[Sequence[str]], Sequence[str]],
    *, only_text: bool = False, piece: Piece = ALL,
) -> Iterator[tuple[Sequence[str], tables.Codes, list[list[Any]]]]:  # fmt: skip
    """Yield the rows of an input, or a piece of it, in batches that fit into memory as `str`.

    A batch is the columns that `choose` returns of those that are there (it may raise SourceError),
    the codes of the rows (`tables.REASONS`) and the columns' texts, as in `_texts_of`.
    """
    if (file := whole(item, columns)) is None:
        return
    chosen = choose(file.schema.names)  # also where there are no rows
    if piece.stop is not None:
        file = replace(file, start=piece.start, stop=piece.stop, entry=piece.entry)
    rows = range_tables(file, replace(columns, text=chosen[0]), BATCH_BYTES)
    for table in tables.regroup(rows, BATCH_ROWS, BATCH_BYTES):
        names, codes = choose(table.column_names), table[tables.REASON].to_numpy().copy()
        where = f"{item.path}: column "
        yield names, codes, [
            _texts_of(table[name], f"{where}{name!r}", codes, only_text=only_text) for name in names
        ]  # fmt: skip


def _texts_of(
    column: pa.ChunkedArray, where: str, codes: tables.Codes, *, only_text: bool
) -> list[Any]:
    """Return a column as strings or None, numbers written out; what is not UTF-8 is marked.

    With `only_text` a column may hold lists of strings, and no numbers. Raises SourceError for
    another type.
    """
    array = one_chunk(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        array, wrong = tables.as_text(array.cast(pa.binary()))
        codes[wrong] = tables.CODE["not_utf8"]
    kind = array.type.value_type if only_text and is_list(array.type) else array.type
    try:
        if only_text and not (is_string(kind) or pa.types.is_null(kind)):
            raise pa.ArrowInvalid
        return list((array if only_text else array.cast(pa.string())).to_pylist())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        or_number = "" if only_text else " or number"
        raise SourceError(f"{where} is not text{or_number} but {array.type}") from error


def unread_rows(codes: tables.Codes) -> Counter[str]:
    """Return how many rows cannot be read, by reason."""
    return Counter(tables.REASONS[code] for code in codes.tolist() if code not in tables.KEPT)


def damaged_rows(path: str | object, lost: Mapping[str, int]) -> list[str]:
    """Return a line for each reason for which rows of a file cannot be read."""
    return [f"{path}: {count:,} rows {reason}" for reason, count in lost.items()]


def by_reason(dropped: Mapping[str, int]) -> str:
    """Return numbers of rows with their reasons, most first: '12 empty_side, 3 too_long'."""
    return ", ".join(f"{count:,} {reason}" for reason, count in Counter(dropped).most_common())


def in_brackets(dropped: Mapping[str, int]) -> str:
    """Return the same as the end of an error, '' where there is none."""
    return f" ({by_reason(dropped)})" if dropped else ""
