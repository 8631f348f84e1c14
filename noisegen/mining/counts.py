"""Counts of word pairs: kept while a task is mined, spilled when many, merged as sorted streams."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.mining.pairs import SentencePair

HELD_MAX = 1_000_000  # word pairs counted in memory before they are spilled: about 300 MB
STREAMS_MAX = 64  # files merged at a time, each with a batch in memory
ROWS = 4_096  # of a batch


class Count(NamedTuple):
    """How often `clean` stands where `noisy` stood: in sentence pairs, in units, the other way.

    Rows of both directions are kept, so one with count 0 says only how often its reverse occurs.
    """

    lang: str
    clean: str
    noisy: str
    kind: str
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    pages: int
    reverse_count: int


SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("lang", "clean", "noisy", "kind")),
        *((name, pa.int64()) for name in ("count", "pages", "reverse_count")),
    ]
)


class WordCounter(AbstractContextManager["WordCounter"]):
    """Counts the word pairs of a task; the sentence pairs of a unit follow each other."""

    def __init__(self, held_max: int = HELD_MAX) -> None:
        self._held_max = held_max
        self._held: dict[tuple[str, str, str], list[Any]] = {}  # kind, count, pages, last unit
        self._unit: int | None = None
        self._runs: list[IO[bytes]] = []

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.close()

    def add(self, pair: SentencePair) -> None:
        """Count each word pair of a sentence pair once."""
        if pair.unit != self._unit and len(self._held) >= self._held_max:
            self._spill()
        self._unit = pair.unit
        for word in set(pair.words):
            found = self._held.setdefault((pair.lang, word.clean, word.noisy), ["", 0, 0, None])
            found[0] = max(found[0], word.kind)
            found[1] += 1
            found[2] += found[3] != pair.unit
            found[3] = pair.unit

    def rows(self) -> Iterator[Count]:
        """Yield all counts, sorted; spilled ones are read back."""
        return summed(self._sorted(), *map(_read_run, self._runs))

    def _sorted(self) -> Iterator[Count]:
        both: list[Count] = []
        for (lang, clean, noisy), (kind, count, pages, _) in self._held.items():
            both.append(Count(lang, clean, noisy, kind, count, pages, 0))
            both.append(Count(lang, noisy, clean, "", 0, 0, count))
        return summed(sorted(both))

    def _spill(self) -> None:
        run = tempfile.TemporaryFile()  # noqa: SIM115  (without a name, so gone with the process)
        with pa.ipc.new_stream(run, SCHEMA) as writer:
            for batch in _batches(self._sorted()):
                writer.write_batch(batch)
        self._runs.append(run)
        self._held.clear()


def summed(*streams: Iterable[Count]) -> Iterator[Count]:
    """Merge sorted streams into one in which every (lang, clean, noisy) occurs once."""
    for (lang, clean, noisy), rows in groupby(merge(*streams), key=lambda row: row[:3]):
        kinds, *numbers = zip(*(row[3:] for row in rows), strict=True)
        yield Count(lang, clean, noisy, max(kinds), *map(sum, numbers))


def merged(paths: list[Path]) -> Iterator[Count]:
    """Yield the counts of files, summed and sorted; many files are merged in rounds."""
    if len(paths) <= STREAMS_MAX:
        yield from summed(*map(read_counts, paths))
        return
    with tempfile.TemporaryDirectory() as folder:
        larger = []
        for first in range(0, len(paths), STREAMS_MAX):
            larger.append(Path(folder, f"{first}.parquet"))
            with larger[-1].open("wb") as file:
                write_counts(summed(*map(read_counts, paths[first : first + STREAMS_MAX])), file)
        yield from merged(larger)


def write_counts(rows: Iterable[Count], file: IO[bytes]) -> int:
    """Write sorted counts as Parquet; return how many."""
    written = 0
    with pq.ParquetWriter(file, SCHEMA, compression="zstd", use_dictionary=["lang", "kind"]) as to:
        for batch in _batches(rows):
            to.write_batch(batch)
            written += len(batch)
    return written


def read_counts(path: Path) -> Iterator[Count]:
    """Yield the counts of a file that `write_counts` wrote."""
    with closing(pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)) as file:
        for batch in file.iter_batches(ROWS, use_threads=False):
            yield from _rows(batch)


def _read_run(run: IO[bytes]) -> Iterator[Count]:
    run.seek(0)
    for batch in pa.ipc.open_stream(run):
        yield from _rows(batch)


def _rows(batch: pa.RecordBatch) -> Iterator[Count]:
    return map(Count, *(column.to_pylist() for column in batch.columns))


def _batches(rows: Iterable[Count]) -> Iterator[pa.RecordBatch]:
    left = iter(rows)
    while part := list(islice(left, ROWS)):
        columns = zip(*part, strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, SCHEMA.types, strict=True)]
        yield pa.record_batch(arrays, SCHEMA)
