"""Counts of word pairs: kept while a task is mined, spilled when many, merged as sorted streams."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.files import reading
from noisegen.mining.miner import SentencePair
from noisegen.runs.store import StorePath

Item = TypeVar("Item")

HELD_MAX = 1_000_000  # word pairs counted in memory before they are spilled: about 300 MB
STREAMS_MAX = 64  # files merged at a time, each with a batch in memory
BATCH_ROWS = 4_096  # rows of a record batch


class Count(NamedTuple):
    """The number of times that `noisy` was corrected to `clean`.

    `count` is in sentence pairs, `pages` in units (pages or rows), `reverse_count` in sentence
    pairs of the opposite direction. Both directions have a row, so a row with count 0 only carries
    its reverse count. A row with equal sides counts a word on the last revisions of all pages.
    """

    lang: str
    clean: str
    noisy: str
    kind: str
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    pages: int
    reverse_count: int


NUMBER_FIELDS = [(name, pa.int64()) for name in ("count", "pages", "reverse_count")]
WORD_FIELDS = [(name, pa.string()) for name in ("lang", "clean", "noisy")]
COUNT_SCHEMA = pa.schema([*WORD_FIELDS, ("kind", pa.string()), *NUMBER_FIELDS])


@dataclass(slots=True)
class _Tally:
    """Counts of one word pair; `last_unit` is the unit that was counted last in `pages`."""

    kind: str = ""
    count: int = 0
    pages: int = 0
    last_unit: int | None = None


class WordCounter(ExitStack):
    """Counts the word pairs of a task; the sentence pairs of a unit must follow each other."""

    def __init__(self, held_max: int = HELD_MAX) -> None:
        super().__init__()
        self._held_max = held_max
        self._held: dict[tuple[str, str, str], _Tally] = {}  # by (lang, clean, noisy)
        self._unit: int | None = None
        self._spilled: list[IO[bytes]] = []

    def add(self, pair: SentencePair) -> None:
        """Count each word pair of a sentence pair once."""
        if pair.unit != self._unit and len(self._held) >= self._held_max:
            self._spill()
        self._unit = pair.unit
        for word in set(pair.words):
            tally = self._tally(pair.lang, word.clean, word.noisy)
            tally.kind = max(tally.kind, word.kind)
            tally.count += 1
            tally.pages += tally.last_unit != pair.unit
            tally.last_unit = pair.unit

    def see(self, lang: str, words: Counter[str]) -> None:
        """Count the words of pages, and empty `words`."""
        for word, times in words.items():
            self._tally(lang, word, word).count += times
        words.clear()

    def _tally(self, lang: str, clean: str, noisy: str) -> _Tally:
        key = (lang, clean, noisy)
        tally = self._held.get(key)
        if tally is None:
            tally = self._held[key] = _Tally()
        return tally

    def rows(self) -> Iterator[Count]:
        """Yield all counts, sorted; spilled counts are read back."""
        return summed(self._sorted(), *map(read_counts, self._spilled))

    def _sorted(self) -> Iterator[Count]:
        """Return the counts in memory, sorted."""
        counts = [
            Count(*key, tally.kind, tally.count, tally.pages, 0)
            for key, tally in self._held.items()
        ]
        return with_reverses(counts)

    def _spill(self) -> None:
        """Move the counts in memory to a temporary file."""
        file = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (nameless)
        write_counts(self._sorted(), file)
        self._spilled.append(file)
        self._held.clear()


def with_reverses(counts: Sequence[Count]) -> Iterator[Count]:
    """Return counts, and a count for the reverse of each, sorted and summed."""
    reverses = [
        Count(row.lang, row.noisy, row.clean, "", 0, 0, row.count)
        for row in counts
        if row.noisy != row.clean
    ]
    return summed(sorted([*counts, *reverses]))


def summed(*streams: Iterable[Count]) -> Iterator[Count]:
    """Merge sorted streams into one in which every (lang, clean, noisy) occurs once."""
    for (lang, clean, noisy), rows in groupby(merge(*streams), key=lambda row: row[:3]):
        kinds, *numbers = zip(*(row[3:] for row in rows), strict=True)
        yield Count(lang, clean, noisy, max(kinds), *map(sum, numbers))


def merged(paths: Sequence[Path], at_once: int = STREAMS_MAX) -> Iterator[Count]:
    """Yield the counts of files, summed and sorted; more than `at_once` are merged in rounds."""
    if len(paths) <= at_once:
        yield from summed(*map(read_counts, paths))
        return
    with tempfile.TemporaryDirectory() as folder:
        larger: list[Path] = []
        for some in portions(paths, at_once):
            path = Path(folder, f"{len(larger)}.parquet")
            with path.open("wb") as file:
                write_counts(summed(*map(read_counts, some)), file)
            larger.append(path)
        yield from merged(larger, at_once)


def write_counts(rows: Iterable[Count], file: IO[bytes]) -> int:
    """Write sorted counts as Parquet; return the number of rows."""
    written = 0
    with pq.ParquetWriter(
        file, COUNT_SCHEMA, compression="zstd", use_dictionary=["lang", "kind"]
    ) as writer:
        for portion in portions(rows, BATCH_ROWS):
            writer.write_batch(record_batch(portion, COUNT_SCHEMA))
            written += len(portion)
    return written


def read_counts(source: Path | IO[bytes]) -> Iterator[Count]:
    """Yield the counts of a file that `write_counts` wrote; raises SourceError."""
    return map(Count._make, rows_of_file(source, COUNT_SCHEMA.names))


def words_of(pairs: Path) -> Path:
    """Return the file of the word counts that belong to a shard of pairs."""
    return pairs.parent.with_name("words") / pairs.name


def readable(source: Path | IO[bytes]) -> AbstractContextManager[Any]:
    """Return an object of a store as an open file, any other source as it is, for Arrow to read."""
    return source.open() if isinstance(source, StorePath) else nullcontext(source)


def rows_of_file(source: Path | IO[bytes], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a Parquet file, with a batch in memory; raises SourceError."""
    with (
        reading(source),
        readable(source) as opened,
        closing(pq.ParquetFile(opened, pre_buffer=False, buffer_size=1 << 16)) as file,
    ):
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            batch.validate(full=True)  # damaged UTF-8 shows here
            yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)


def portions(rows: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` rows; the last one may be shorter."""
    left = iter(rows)
    while portion := list(islice(left, size)):
        yield portion


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a record batch; values of a row beyond the schema are left out."""
    arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
    return pa.record_batch(arrays, schema)
