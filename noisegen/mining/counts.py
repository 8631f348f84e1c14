"""Counts of word pairs, held in memory, spilled to temporary files and merged as sorted streams."""

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

HELD_MAX = 1_000_000  # word pairs counted in memory, about 300 MB; more are spilled to a file
STREAMS_MAX = 64  # files merged at once; each holds a batch of rows in memory
BATCH_ROWS = 4_096  # rows of a record batch that is read or written


class Count(NamedTuple):
    """Counts of one word pair: how often `noisy` was corrected to `clean`.

    `count` is the number of sentence pairs with this correction, `pages` the number of pages or
    input rows with it. `reverse_count` is the number of sentence pairs that correct `clean` to
    `noisy` instead; this reverse word pair also has a `Count`, even if its `count` is 0. If `noisy`
    equals `clean`, `count` is how often the word occurs in the last revisions of all pages.
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
    """Counts of one word pair; `last_unit` is the last page or input row counted in `pages`."""

    kind: str = ""
    count: int = 0
    pages: int = 0
    last_unit: int | None = None


class WordCounter(ExitStack):
    """Counts of the word pairs of a task; more than `held_max` are moved to temporary files.

    All sentence pairs of one page or input row must be added consecutively.
    """

    def __init__(self, held_max: int = HELD_MAX) -> None:
        super().__init__()
        self._held_max = held_max
        self._held: dict[tuple[str, str, str], _Tally] = {}  # counts by (lang, clean, noisy)
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
        """Add the counts of words in last revisions of pages, then clear `words`."""
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
        """Yield all counts in sorted order, from memory and from the temporary files."""
        return summed(self._sorted(), *map(read_counts, self._spilled))

    def _sorted(self) -> Iterator[Count]:
        """Yield the counts in memory and their reverses, in sorted order."""
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
    """Yield counts and their reverses, sorted, one row per (lang, clean, noisy).

    The reverse of a count has `clean` and `noisy` swapped, and the count in `reverse_count`.
    """
    reverses = [
        Count(row.lang, row.noisy, row.clean, "", 0, 0, row.count)
        for row in counts
        if row.noisy != row.clean
    ]
    return summed(sorted([*counts, *reverses]))


def summed(*streams: Iterable[Count]) -> Iterator[Count]:
    """Merge sorted streams of counts; rows with equal (lang, clean, noisy) are added up."""
    for (lang, clean, noisy), rows in groupby(merge(*streams), key=lambda row: row[:3]):
        kinds, *numbers = zip(*(row[3:] for row in rows), strict=True)
        yield Count(lang, clean, noisy, max(kinds), *map(sum, numbers))


def merged(paths: Sequence[Path], at_once: int = STREAMS_MAX) -> Iterator[Count]:
    """Yield the sorted counts of several files; equal word pairs are added up as in `summed`.

    At most `at_once` files are open at a time: more files are first merged into temporary files.
    """
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
    """Write sorted counts as a Parquet file; return the number of rows."""
    written = 0
    with pq.ParquetWriter(
        file, COUNT_SCHEMA, compression="zstd", use_dictionary=["lang", "kind"]
    ) as writer:
        for portion in portions(rows, BATCH_ROWS):
            writer.write_batch(record_batch(portion, COUNT_SCHEMA))
            written += len(portion)
    return written


def read_counts(source: Path | IO[bytes]) -> Iterator[Count]:
    """Yield the counts in a file that `write_counts` wrote; raises SourceError."""
    return map(Count._make, rows_of_file(source, COUNT_SCHEMA.names))


def words_of(pairs: Path) -> Path:
    """Return the path of the word counts for a file of pairs: words/NAME for pairs/NAME."""
    return pairs.parent.with_name("words") / pairs.name


def readable(source: Path | IO[bytes]) -> AbstractContextManager[Any]:
    """Return a source that Arrow can read: an opened object of a store, or the source unchanged."""
    return source.open() if isinstance(source, StorePath) else nullcontext(source)


def rows_of_file(source: Path | IO[bytes], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `columns` per row of a Parquet file; raises SourceError.

    One batch of rows is held in memory.
    """
    with (
        reading(source),
        readable(source) as opened,
        closing(pq.ParquetFile(opened, pre_buffer=False, buffer_size=1 << 16)) as file,
    ):
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            batch.validate(full=True)  # finds text that is damaged and so not UTF-8
            yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)


def portions(rows: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the rows in lists of `size`; the last list may be shorter."""
    left = iter(rows)
    while portion := list(islice(left, size)):
        yield portion


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a record batch; values beyond the columns of `schema` are ignored."""
    arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
    return pa.record_batch(arrays, schema)
