"""Dictionaries of real errors: word pairs counted, merged, filtered, written and chosen from.

Counts are kept while a task is mined, spilled when many, and merged as sorted streams.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from heapq import merge, nlargest
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.dictionaries import ANY, Alternative, load_dictionary
from noisegen.errors import UsageError
from noisegen.mining.miner import SentencePair, Thresholds
from noisegen.runs.files import atomic
from noisegen.runs.manifest import Manifest
from noisegen.text.segmentation import language

HELD_MAX = 1_000_000  # word pairs counted in memory before they are spilled: about 300 MB
STREAMS_MAX = 64  # files merged at a time, each with a batch in memory
BATCH_ROWS = 4_096  # of a batch


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


COUNT_SCHEMA = pa.schema(
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
            entry = self._held.setdefault((pair.lang, word.clean, word.noisy), ["", 0, 0, None])
            entry[0] = max(entry[0], word.kind)
            entry[1] += 1
            entry[2] += entry[3] != pair.unit
            entry[3] = pair.unit

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
        with pa.ipc.new_stream(run, COUNT_SCHEMA) as writer:
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
    with pq.ParquetWriter(
        file, COUNT_SCHEMA, compression="zstd", use_dictionary=["lang", "kind"]
    ) as to:
        for batch in _batches(rows):
            to.write_batch(batch)
            written += len(batch)
    return written


def read_counts(path: Path) -> Iterator[Count]:
    """Yield the counts of a file that `write_counts` wrote."""
    with closing(pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)) as file:
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            yield from _counts_in(batch)


def _read_run(run: IO[bytes]) -> Iterator[Count]:
    run.seek(0)
    for batch in pa.ipc.open_stream(run):
        yield from _counts_in(batch)


def _counts_in(batch: pa.RecordBatch) -> Iterator[Count]:
    return map(Count, *(column.to_pylist() for column in batch.columns))


def _batches(rows: Iterable[Count]) -> Iterator[pa.RecordBatch]:
    left = iter(rows)
    while part := list(islice(left, BATCH_ROWS)):
        columns = zip(*part, strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, COUNT_SCHEMA.types, strict=True)]
        yield pa.record_batch(arrays, COUNT_SCHEMA)


Frequencies = Mapping[tuple[str, str], int]  # of (language, word)
ENTRY_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("lang", "clean", "noisy")),
        *((name, pa.int64()) for name in ("count", "pages", "reverse_count")),
        ("prob", pa.float64()),
    ]
)
ENTRY_ROWS = 65_536  # written at once
FORMATS = {".parquet": "parquet", ".tsv": "tsv", ".json": "json"}  # of the endings of files


def reason_against(row: Count, thresholds: Thresholds, seen: Frequencies) -> str | None:
    """Return why a word pair is left out; None if it passes."""
    if row.pages < thresholds.min_pages:
        return "few_pages"
    if row.count < thresholds.min_count:
        return "few_counts"
    if row.count < thresholds.balance * row.reverse_count:
        return "variant"
    clean, noisy = seen.get((row.lang, row.clean), 0), seen.get((row.lang, row.noisy), 0)
    return "real_word" if clean < thresholds.frequency * noisy else None


@dataclass
class ThresholdTotals:
    """How many word pairs were left out for what reason, and the words that have some left."""

    dropped: Counter[str] = field(default_factory=Counter)
    words: int = 0


def apply_thresholds(
    counts: Iterable[Count], thresholds: Thresholds, totals: ThresholdTotals | None = None,
    seen: Frequencies = MappingProxyType({}),
) -> Iterator[Alternative]:  # fmt: skip
    """Yield the alternatives of sorted counts that pass, the most frequent of a word first.

    Adds to `totals`; `seen` is how often words stand in corrected sentences.
    """
    totals = totals or ThresholdTotals()
    for _, rows in groupby(counts, key=attrgetter("lang", "clean")):
        passed = []
        for row in rows:
            if row.count and (reason := reason_against(row, thresholds, seen)):
                totals.dropped[reason] += 1
            elif row.count:
                passed.append(row)
        passed.sort(key=lambda row: (-row.count, -row.pages, row.noisy))
        if thresholds.top and len(passed) > thresholds.top:
            totals.dropped["beyond_top"] += len(passed) - thresholds.top
            del passed[thresholds.top :]
        totals.words += bool(passed)
        total = sum(row.count for row in passed)
        for lang, clean, noisy, _, count, pages, reverse in passed:
            yield Alternative(lang, clean, noisy, count, pages, reverse, count / total)


def counts_of(entries: Iterable[Alternative]) -> Iterator[Count]:
    """Return a dictionary's entries as sorted counts, to be merged and filtered again.

    `reverse_count` of an entry holds where the reverse is no entry, else its own count does.
    """
    entries = list(entries)
    known = {entry[:3] for entry in entries}
    rows = []
    for lang, clean, noisy, count, pages, reverse, _ in entries:
        reverse = 0 if (lang, noisy, clean) in known else reverse
        rows.append(Count(lang, clean, noisy, "", count, pages, reverse))
        rows.append(Count(lang, noisy, clean, "", 0, 0, count))
    return summed(sorted(rows))


def write_dictionary(entries: Iterable[Alternative], out: Path) -> int:
    """Write dictionary.parquet and dictionary.tsv of a folder; return the number of entries."""
    written = 0
    with ExitStack() as stack:
        table = stack.enter_context(atomic(out / "dictionary.parquet"))
        text = stack.enter_context(atomic(out / "dictionary.tsv"))
        parquet = stack.enter_context(pq.ParquetWriter(table, ENTRY_SCHEMA, compression="zstd"))
        text.write(_line(ENTRY_SCHEMA.names))
        left = iter(entries)
        while part := list(islice(left, ENTRY_ROWS)):
            parquet.write_table(_table(part))
            text.writelines(map(_tsv_line, part))
            written += len(part)
    return written


def save_dictionary(
    entries: Sequence[Alternative], out: Path, kind: str | None = None,
    head: Mapping[str, str] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Write entries as 'parquet', 'tsv', 'json' or 'lexicon', or as the file's ending says.

    JSON is {correct: [[wrong, probability], ...]}, the form of RCP's paper. A lexicon has clean,
    noisy, weight below a head with name, lang and what `head` adds: source and license. Raises
    UsageError for an unknown ending, a value of several lines, and several languages where the
    format names none.
    """
    kind = kind or FORMATS.get(out.suffix)
    if kind is None:
        raise UsageError(f"{out}: unknown ending; write .parquet, .tsv or .json")
    langs = sorted({entry.lang for entry in entries})
    if kind in ("json", "lexicon") and len(langs) > 1:
        raise UsageError(f"a {kind} file holds one language: choose with --lang {langs[0]}")
    head = {"name": out.stem, "lang": langs[0] if langs else ANY, **head}
    wrong = next((key for key, value in head.items() if len(value.splitlines()) > 1), None)
    if kind == "lexicon" and wrong is not None:
        raise UsageError(f"{wrong} {head[wrong]!r} must be one line")
    with atomic(out) as file:
        if kind == "parquet":
            pq.write_table(_table(entries), file, compression="zstd", row_group_size=ENTRY_ROWS)
        elif kind == "tsv":
            file.write(_line(ENTRY_SCHEMA.names))
            file.writelines(map(_tsv_line, entries))
        elif kind == "json":
            forms: dict[str, list[tuple[str, float]]] = {}
            for entry in entries:
                forms.setdefault(entry.clean, []).append((entry.noisy, round(entry.prob, 6)))
            file.write(json.dumps(forms, ensure_ascii=False).encode() + b"\n")
        else:
            file.writelines(f"# {key}: {value}\n".encode() for key, value in head.items())
            file.write(_line(("clean", "noisy", "weight")))
            file.writelines(_line((*entry[1:3], str(entry.count))) for entry in entries)


def _table(entries: Sequence[Alternative]) -> pa.Table:
    columns: list[Any] = list(zip(*entries, strict=True)) or [()] * len(ENTRY_SCHEMA)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, ENTRY_SCHEMA.types, strict=True)]
    return pa.table(arrays, schema=ENTRY_SCHEMA)


def _tsv_line(entry: Alternative) -> bytes:
    return _line([*map(str, entry[:-1]), f"{entry.prob:.6g}"])


def _line(fields: Iterable[str]) -> bytes:
    return ("\t".join(fields) + "\n").encode()


def seen_words(words: Sequence[Path], pairs: Sequence[Path], thresholds: Thresholds) -> Frequencies:
    """Return how often the words of word counts stand in the corrected sentences, if it matters.

    `words` and `pairs` are the shards of one mining run or of several.
    """
    if not thresholds.frequency:
        return {}
    counted = ((row.lang, row[1:3]) for row in merged(list(words)) if row.count)
    wanted = {(lang, word) for lang, pair in counted for word in pair}
    seen: Counter[tuple[str, str]] = Counter()
    tokenizer = cache(lambda lang: language(lang).tokens)
    for path in pairs:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=["lang", "clean"]):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                for lang, clean in rows:
                    tokens = ((lang, token) for token in tokenizer(lang)(clean))
                    seen.update(token for token in tokens if token in wanted)
    return seen


def entries_of(source: Path, lang: str | None = None) -> list[Alternative]:
    """Return the entries of a dictionary file, or of the dictionary in a folder."""
    entries = load_dictionary(source / "dictionary.parquet" if source.is_dir() else source)
    return [entry for entry in entries if lang in (None, entry.lang)]


def most_frequent(entries: Sequence[Alternative], rows: int) -> list[Alternative]:
    """Return the most frequent entries, those of more pages first among equals."""
    return nlargest(rows, entries, key=lambda entry: (entry.count, entry.pages, entry.prob))


def select(
    sources: Sequence[Path], thresholds: Thresholds, lang: str | None = None
) -> tuple[list[Alternative], ThresholdTotals]:
    """Return what passes of the added counts of dictionaries, and how many were left out.

    Of a mining run all that was counted takes part, and its sentences tell how frequent words are;
    of a file what it has.
    """
    totals = ThresholdTotals()
    pairs = [path for source in filter(Path.is_dir, sources) for path in _shards(source)]
    seen = seen_words([_words(path) for path in pairs], pairs, thresholds)
    counts = summed(*map(_counts_of_source, sources))
    chosen = (row for row in counts if lang in (None, row.lang))
    return list(apply_thresholds(chosen, thresholds, totals, seen)), totals


def _counts_of_source(source: Path) -> Iterator[Count]:
    if not source.is_dir():
        return counts_of(load_dictionary(source))
    return merged([_words(path) for path in _shards(source)])


def _shards(folder: Path) -> list[Path]:
    return [folder / shard["file"] for shard in Manifest.load(folder).shards]


def _words(pairs: Path) -> Path:
    return pairs.parent.with_name("words") / pairs.name
