"""Text columns of any source, found by name and read as lists or as a stream of rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from noisegen.data import tables
from noisegen.data.formats.layouts import other_names
from noisegen.data.formats.registry import advice_on_file, file_of, range_tables, read_head
from noisegen.data.paths import Path, is_path, leads, path_in, values_at
from noisegen.data.rows import Columns, FileRange, numbered
from noisegen.data.sources import expand, no_column, refuse_doubles
from noisegen.data.tables import is_list, is_string
from noisegen.errors import SourceError
from noisegen.text.buffers import one_chunk

_TWEET = "tweet_id"
_ONLY_IDS = "; it has ids of tweets without their text, which has to be fetched first"
_TWEET_COLUMNS = 3  # a table of tweets with fewer columns has ids and labels but no text
_GOLD = ("label", "score")
ROWS_MAX = 1_000_000  # most rows of a source that are held in memory
BATCH_BYTES, BATCH_ROWS = 4 << 20, 10_000
T = TypeVar("T")
# Alternative lists of column names; the first list whose columns are all in the source is read
Choices = Sequence[Sequence[str]]
CLEAN_TEXT = (("clean",), ("text",))  # columns that may have clean text, in order of preference


@dataclass(frozen=True)
class TextColumns:
    """Text columns of one source: {name: texts}, with equally many texts, none of them empty.

    `unread` counts rows that could not be read, by a reason in `tables.REASONS`, and `dropped`
    counts other rows that were left out, by reason. `damaged` describes the unread rows in lines
    for the user: 'news.tsv: 3 rows not_utf8'.
    """

    columns: dict[str, list[str]]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def sample(self, most: int) -> "TextColumns":
        """Return at most `most` rows, spread evenly over all rows."""
        columns = {name: evenly(texts, most) for name, texts in self.columns.items()}
        return self if len(self) <= most else TextColumns(columns, self.dropped, self.damaged)


def evenly(rows: Sequence[T], most: int) -> list[T]:
    """Return at most `most` rows, spread evenly over all rows."""
    if len(rows) <= most:
        return list(rows)
    return [rows[number * len(rows) // most] for number in range(most)]


def column_named(name: str, names: Sequence[str]) -> str:
    """Return the name by which a file with the columns `names` has the column `name`.

    `name` may be a number ('2') in a file without a header line, a path into a column, or the usual
    name of a column that published data sets name otherwise. If the file has no such column, `name`
    is returned.
    """
    found = numbered(name, names)
    if found in names or (is_path(name) and path_in(name, names)):
        return found
    plain = {other.strip().casefold(): other for other in names}
    return next((plain[other] for other in other_names(name) if other in plain), found)


# Functions that read columns as lists of text.


def read_columns(source: str, choices: Choices, what: str, advice: str = "") -> TextColumns:
    """Read the columns in the first list of `choices` that the source has in full.

    `source` is a file, folder, glob or hf:...; a text file has one column, its lines.
    `column_named` explains the names in `choices`. Rows with the tweet_id of an earlier row are
    dropped, and rows after the first ROWS_MAX as `over_limit`. In errors, `what` names the purpose
    of the rows ('bitext'); `advice` is added to errors about a missing column. Raises SourceError
    for a missing source or column, and if no row is left.
    """
    read = TextColumns({})
    rows = list(within_memory(stream_columns(source, choices, what, read, advice), read.dropped))
    columns = {name: [row[index] for row in rows] for index, name in enumerate(read.columns)}
    return replace(read, columns=columns)


def within_memory(rows: Iterable[T], dropped: Counter[str]) -> Iterator[T]:
    """Yield the first ROWS_MAX rows; count the others in `dropped` under `over_limit`."""
    for number, row in enumerate(rows):
        if number < ROWS_MAX:
            yield row
        else:
            dropped["over_limit"] += 1


def stream_columns(
    source: str,
    choices: Choices,
    what: str,
    read: TextColumns,
    advice: str = "",
    needed: int | None = None,
) -> Iterator[tuple[str, ...]]:
    """Yield the rows that `read_columns` describes, but without its limit of ROWS_MAX rows.

    Fills `read` with the names of the columns, and with the counts of rows that are left out. If
    `needed` is given, only the first `needed` cells of a row must have text; the others may be
    None.
    """
    choice = _Choice(choices, what, advice, read.columns)
    seen = set[str]()  # tweet_id of every row so far
    is_empty = True
    for given in expand([source]):
        if (file := read_head(given, Columns.of_texts(choices[0][0]))) is None:
            continue
        names = choice.names(file)
        filled = list(read.columns)[:needed]
        for codes, columns in text_batches(file, names):
            lost = unread_rows(codes)
            read.unread.update(lost)
            read.damaged.extend(damaged_rows(file.path, lost))
            for code, cells in zip(codes.tolist(), zip(*columns, strict=True), strict=True):
                if code not in tables.KEPT:
                    continue
                texts, tweet = cells[: len(read.columns)], cells[len(read.columns) :]
                if reason := _reason_against(texts, filled, seen.intersection(tweet)):
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
    """The columns to read: the first list in `choices` that the first file has in full.

    The method `names` makes them the keys of the dict `columns` when it is first called. `what` and
    `advice` are for errors, as in `read_columns`.
    """

    choices: Choices
    what: str
    advice: str
    columns: dict[str, list[str]]

    def names(self, file: FileRange) -> list[str]:
        """Return the columns to read from a file: the columns of the chosen list, and any tweet_id.

        Raises SourceError if every list in `choices` has a column that the first file lacks, or if
        a later file lacks a column of the chosen list.
        """
        path, present = file.path, file.schema.names
        refuse_doubles(path, present)
        tweet = column_named(_TWEET, present)
        missing: list[str] = []
        for names in [tuple(self.columns)] if self.columns else self.choices:
            found = [column_named(name, present) for name in names]
            if lacking := [name for name in found if not leads(name, file.schema)]:
                missing = min(missing or lacking, lacking, key=len)
                continue
            self.columns.update({name: [] for name in names})
            return [*found, *[tweet][: tweet in present]]
        raise self._error(path, missing[0], present)

    def _error(self, path: str, missing: str, present: Sequence[str]) -> SourceError:
        """Return the error: the columns `present` of the file lack the column `missing`."""
        if self.columns:
            return SourceError(f"{path}: no column {missing!r}, which the files before it have")
        wanted = " or ".join(", ".join(names) for names in self.choices)
        has_only_ids = column_named(_TWEET, present) in present and len(present) < _TWEET_COLUMNS
        hint = _ONLY_IDS if has_only_ids else self.advice
        error = no_column(path, missing, present)
        return SourceError(f"{error}; {self.what} needs the columns {wanted}{hint}")


def _reason_against(texts: Sequence[Any], names: Sequence[str], seen: set[str]) -> str:
    """Return the reason why a row is dropped; '' if it is kept.

    The first of the `texts` are the row's values in the columns `names`, which must have text. The
    set `seen` has the row's tweet_id if an earlier row has it too.
    """
    for name, text in zip(names, texts, strict=False):
        if not text or text.isspace():
            return f"no_{name}" if name in _GOLD else "empty_cell"
    return "duplicate_id" if seen else ""


# Functions that read columns in batches.


def column_batches(
    file: FileRange, names: Sequence[str]
) -> Iterator[tuple[tables.Codes, list[pa.Array]]]:
    """Yield the columns `names` of a file or range in batches of at most `BATCH_ROWS` rows.

    `file` is a result of `read_head`. A batch is an array with a code per row, and an Arrow array
    per column. A code is an index in `tables.REASONS`, which say why a row cannot be read; 0 if it
    can. A JSON line without a value in the first column has the code of `missing_text`.
    """
    if "paths" in file.schema.names:  # a shard of rows with several texts
        names = [f"{name}[]" if name in ("clean", "noisy") else name for name in names]
    rows = range_tables(file, Columns.of_texts(names[0]), BATCH_BYTES)
    for table in tables.regroup(rows, BATCH_ROWS, BATCH_BYTES):
        codes = table[tables.REASON].to_numpy().copy()
        if all(name in table.column_names for name in names):
            yield codes, [one_chunk(table[name]) for name in names]
        else:
            yield _at_paths(table, codes, names)


def _at_paths(
    table: pa.Table, codes: tables.Codes, names: Sequence[str]
) -> tuple[tables.Codes, list[pa.Array]]:
    """Return the codes and the values at paths; a row becomes a row for each of its values.

    Paths with one value in a row repeat it. A row without values, or with unequally many, has the
    code of `missing_text`.
    """
    paths = [path_in(name, table.column_names) or Path(name) for name in names]
    rows = list(zip(*(values_at(table, path) for path in paths), strict=True))
    counts = [max(map(len, values)) for values in rows]
    made: list[list[Any]] = [[] for _ in names]
    for number, (values, count) in enumerate(zip(rows, counts, strict=True)):
        are_good = count and all(len(of_path) in (1, count) for of_path in values)
        if not are_good and codes[number] in tables.KEPT:
            codes[number] = tables.CODE["missing_text"]
        for column, of_path in zip(made, values, strict=True):
            column += (of_path * count)[:count] if are_good else [None] * max(count, 1)
    return codes.repeat(np.maximum(counts, 1)), [pa.array(column) for column in made]


def text_batches(
    file: FileRange, names: Sequence[str], *, only_text: bool = False
) -> Iterator[tuple[tables.Codes, list[list[Any]]]]:
    """Yield batches as `column_batches` does, but each column is a list of strings and None."""
    for codes, arrays in column_batches(file, names):
        texts = []
        for name, array in zip(names, arrays, strict=True):
            where = f"{file.path}: column {name!r}"
            texts.append(_texts_of(array, where, codes, only_text=only_text))
        yield codes, texts


def _texts_of(array: pa.Array, where: str, codes: tables.Codes, *, only_text: bool) -> list[Any]:
    """Return a column as a list of strings and None; numbers become text.

    Sets the codes of rows that are not UTF-8 to `not_utf8`. With `only_text` the column may hold
    lists of strings but no numbers. Raises SourceError for other types; `where` names the column
    in the error.
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
    """Return a column with dictionaries decoded and bytes as strings.

    Sets the codes of rows that are not UTF-8 to `not_utf8`.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        array, wrong = tables.as_text(array.cast(pa.binary()))
        codes[wrong] = tables.CODE["not_utf8"]
    return array


# Functions that count rows by reason and describe the counts.


def unread_rows(codes: tables.Codes) -> Counter[str]:
    """Return the number of rows that cannot be read, by reason."""
    unread = (code for code in codes.tolist() if code not in (*tables.KEPT, tables.NO_ROW))
    return Counter(tables.REASONS[code] for code in unread)


def damaged_rows(path: str | object, lost: Mapping[str, int]) -> list[str]:
    """Return a line of text for each reason why rows of a file could not be read.

    For lines of text that are not UTF-8, it says what to do.
    """
    lines = {reason: f"{path}: {count:,} rows {reason}" for reason, count in lost.items()}
    if "not_utf8" in lines and (advice := advice_on_file(file_of(str(path)))):
        lines["not_utf8"] += f"; {advice}"
    return list(lines.values())


def by_reason(dropped: Mapping[str, int]) -> str:
    """Return counts of rows with their reasons, largest first: '12 empty_side, 3 too_long'."""
    return ", ".join(f"{count:,} {reason}" for reason, count in Counter(dropped).most_common())


def in_brackets(dropped: Mapping[str, int]) -> str:
    """Return the end of an error message, ' (12 empty_side, 3 too_long)'; '' without counts."""
    return f" ({by_reason(dropped)})" if dropped else ""
