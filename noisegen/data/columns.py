"""Columns of text of any source, named by their content: streamed, or read up to a bound."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from noisegen.data import tables
from noisegen.data.formats.layouts import other_names
from noisegen.data.formats.registry import range_tables, read_head
from noisegen.data.rows import Columns, FileRange, numbered
from noisegen.data.sources import expand, no_column, refuse_doubles
from noisegen.data.tables import is_list, is_string
from noisegen.errors import SourceError
from noisegen.text.buffers import one_chunk

_TWEET = "tweet_id"
_ONLY_IDS = "; it has ids of tweets without their text, which has to be fetched first"
_TWEET_COLUMNS = 3  # a table with fewer has ids and labels alone
_GOLD = ("label", "score")
ROWS_MAX = 1_000_000  # rows held in memory
BATCH_BYTES, BATCH_ROWS = 4 << 20, 10_000
T = TypeVar("T")
Choices = Sequence[Sequence[str]]  # sets of columns; the first set that a source has is read


@dataclass(frozen=True)
class TextColumns:
    """Columns of text of one source, lists of equal length without empty texts.

    `dropped` counts other rows by reason. `damaged` has a line per reason for which rows could not
    be read, and `unread` counts these rows by the reasons of `tables.REASONS`.
    """

    columns: dict[str, list[str]]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def sample(self, most: int) -> "TextColumns":
        """Return at most `most` rows, spread evenly over all."""
        columns = {name: evenly(texts, most) for name, texts in self.columns.items()}
        return self if len(self) <= most else TextColumns(columns, self.dropped, self.damaged)


def evenly(rows: Sequence[T], most: int) -> list[T]:
    """Return at most `most` rows, spread evenly over all."""
    if len(rows) <= most:
        return list(rows)
    return [rows[number * len(rows) // most] for number in range(most)]


def column_named(name: str, there: Sequence[str]) -> str:
    """Return the column of a name: equal, by number, or a name that published sets use for it."""
    found = numbered(name, there)
    if found in there:
        return found
    plain = {other.strip().casefold(): other for other in there}
    return next((plain[other] for other in other_names(name) if other in plain), found)


# Columns as lists of text.


def read_columns(source: str, choices: Choices, what: str, advice: str = "") -> TextColumns:
    """Read one of several sets of columns, `choices`: the first set that the source has.

    `source` is a file, folder, glob or hf:...; the one column of a text file is its lines. Names
    are found as in `column_named`; columns of a file without a header line are numbers from 1. Of
    rows with the same tweet_id the first is read. Rows after the first ROWS_MAX are counted under
    `over_limit`. `what` names the set in errors, and `advice` ends errors about a missing column.
    Raises SourceError for a missing source or column, and where no row is left.
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
    """Yield rows as `read_columns` reads them, in any number; `read` gets columns and losses."""
    choice = _Choice(choices, what, advice, read.columns)
    seen = set[str]()  # ids of tweets
    is_empty = True
    for given in expand([source]):
        if (file := read_head(given, Columns(text=choices[0][0]))) is None:
            continue
        names = choice.names(file)
        for codes, columns in text_batches(file, names):
            lost = unread_rows(codes)
            read.unread.update(lost)
            read.damaged.extend(damaged_rows(file.path, lost))
            for code, cells in zip(codes.tolist(), zip(*columns, strict=True), strict=True):
                if code not in tables.KEPT:
                    continue
                texts, tweet = cells[: len(read.columns)], cells[len(read.columns) :]
                if reason := _reason_against(texts, list(read.columns), seen.intersection(tweet)):
                    read.dropped[reason] += 1
                    continue
                is_empty = False
                seen.update(filter(None, tweet))
                yield texts
    if is_empty:
        counts = in_brackets(read.dropped + read.unread)
        why = counts or ": it is empty or has only a header; get it again"
        raise SourceError(f"{source}: no rows for {what}{why}")


@dataclass(frozen=True)
class _Choice:
    """The choice among several sets of columns: the first set that the first file has is read.

    `columns` gets an entry per column of this set.
    """

    choices: Choices
    what: str
    advice: str
    columns: dict[str, list[str]]

    def names(self, file: FileRange) -> list[str]:
        """Return the columns of a file to read, last the id of a tweet if it has one.

        Raises SourceError if it has none of the sets, or not the set of the files before it.
        """
        path, there = file.path, file.schema.names
        refuse_doubles(path, there)
        tweet = column_named(_TWEET, there)
        missing: list[str] = []
        for names in [tuple(self.columns)] if self.columns else self.choices:
            found = [column_named(name, there) for name in names]
            if lacking := [name for name in found if name not in there]:
                missing = min(missing or lacking, lacking, key=len)
                continue
            self.columns.update({name: [] for name in names})
            return [*found, *[tweet][: tweet in there]]
        raise self._error(path, missing[0], there)

    def _error(self, path: str, missing: str, there: Sequence[str]) -> SourceError:
        """Return the error about a file that has the columns `there` and none of the sets."""
        if self.columns:
            return SourceError(f"{path}: no column {missing!r}, which the files before it have")
        wanted = " or ".join(", ".join(names) for names in self.choices)
        has_only_ids = column_named(_TWEET, there) in there and len(there) < _TWEET_COLUMNS
        hint = _ONLY_IDS if has_only_ids else self.advice
        error = no_column(path, missing, there)
        return SourceError(f"{error}; {self.what} needs the columns {wanted}{hint}")


def _reason_against(texts: Sequence[Any], names: Sequence[str], seen: set[str]) -> str:
    """Return why a row is dropped, '' if it is not; `seen` has its id if an earlier row has it."""
    for name, text in zip(names, texts, strict=True):
        if not text or text.isspace():
            return f"no_{name}" if name in _GOLD else "empty_cell"
    return "duplicate_id" if seen else ""


# Columns in batches.


def column_batches(
    file: FileRange, names: Sequence[str]
) -> Iterator[tuple[tables.Codes, list[pa.Array]]]:
    """Yield any columns of a file or range, nested or not, as Arrow arrays in bounded batches.

    The file has been through `read_head`. A batch is the codes of its rows (`tables.REASONS`) and
    an array per name. Rows without a value in the first column get a reason, if it holds text.
    """
    rows = range_tables(file, Columns(text=names[0]), BATCH_BYTES)
    for table in tables.regroup(rows, BATCH_ROWS, BATCH_BYTES):
        codes = table[tables.REASON].to_numpy().copy()
        yield codes, [one_chunk(table[name]) for name in names]


def text_batches(
    file: FileRange, names: Sequence[str], *, only_text: bool = False
) -> Iterator[tuple[tables.Codes, list[list[Any]]]]:
    """Yield columns as `column_batches` does, with their values as in `_texts_of`."""
    for codes, arrays in column_batches(file, names):
        texts = []
        for name, array in zip(names, arrays, strict=True):
            where = f"{file.path}: column {name!r}"
            texts.append(_texts_of(array, where, codes, only_text=only_text))
        yield codes, texts


def _texts_of(array: pa.Array, where: str, codes: tables.Codes, *, only_text: bool) -> list[Any]:
    """Return a column as strings or None, with numbers as text; rows not in UTF-8 are marked.

    With `only_text` a column may hold lists of strings, and no numbers. Raises SourceError for
    another type; `where` names the column.
    """
    array = _plain(array, codes)
    kind = array.type.value_type if only_text and is_list(array.type) else array.type
    try:
        if only_text and not (is_string(kind) or pa.types.is_null(kind)):
            raise pa.ArrowInvalid
        return list((array if only_text else array.cast(pa.string())).to_pylist())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        or_number = "" if only_text else " or number"
        raise SourceError(f"{where} is not text{or_number} but {array.type}") from error


def _plain(array: pa.Array, codes: tables.Codes) -> pa.Array:
    """Return a column with dictionaries decoded and bytes as text; rows not in UTF-8 are marked."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        array, wrong = tables.as_text(array.cast(pa.binary()))
        codes[wrong] = tables.CODE["not_utf8"]
    return array


# Counts of rows as text.


def unread_rows(codes: tables.Codes) -> Counter[str]:
    """Return the number of rows that cannot be read, by reason."""
    return Counter(tables.REASONS[code] for code in codes.tolist() if code not in tables.KEPT)


def damaged_rows(path: str | object, lost: Mapping[str, int]) -> list[str]:
    """Return a line for each reason for which rows of a file cannot be read."""
    return [f"{path}: {count:,} rows {reason}" for reason, count in lost.items()]


def by_reason(dropped: Mapping[str, int]) -> str:
    """Return numbers of rows with their reasons, most first: '12 empty_side, 3 too_long'."""
    return ", ".join(f"{count:,} {reason}" for reason, count in Counter(dropped).most_common())


def in_brackets(dropped: Mapping[str, int]) -> str:
    """Return `by_reason` in brackets after a space, as an error ends; '' without rows."""
    return f" ({by_reason(dropped)})" if dropped else ""
