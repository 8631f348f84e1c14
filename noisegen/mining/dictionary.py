"""Dictionaries of real errors: word pairs counted, merged, filtered, written and chosen from.

Counts are kept while a task is mined, spilled when many, and merged as sorted streams.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from functools import cache
from heapq import merge, nlargest
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.dictionaries import ANY, Alternative, load_dictionary
from noisegen.data.files import reading
from noisegen.errors import UsageError
from noisegen.mining.miner import SentencePair, Thresholds
from noisegen.runs.atomic import atomic
from noisegen.runs.manifest import Manifest
from noisegen.runs.store import StorePath
from noisegen.text.segmentation import language

Item = TypeVar("Item")

HELD_MAX = 1_000_000  # word pairs counted in memory before they are spilled: about 300 MB
STREAMS_MAX = 64  # files merged at a time, each with a batch in memory
BATCH_ROWS = 4_096  # of a batch


class Count(NamedTuple):
    """How often `noisy` was corrected to `clean`: in sentence pairs, in units, and in reverse.

    Rows of both directions are kept, so one with count 0 says only how often its reverse occurs.
    One of a word with itself says how often the word stands on the pages as they are at last.
    """

    lang: str
    clean: str
    noisy: str
    kind: str
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    pages: int
    reverse_count: int


_NUMBERS = [(name, pa.int64()) for name in ("count", "pages", "reverse_count")]
_WORDS = [(name, pa.string()) for name in ("lang", "clean", "noisy")]
COUNT_SCHEMA = pa.schema([*_WORDS, ("kind", pa.string()), *_NUMBERS])
ENTRY_SCHEMA = pa.schema([*_WORDS, *_NUMBERS, ("prob", pa.float64())])
FREQUENCY = pa.field("frequency", pa.int64())  # of entries of runs that counted the words of pages


class WordCounter(ExitStack):
    """Counts the word pairs of a task; the sentence pairs of a unit follow each other."""

    def __init__(self, held_max: int = HELD_MAX) -> None:
        super().__init__()
        self._held_max = held_max
        self._held: dict[tuple[str, ...], list[Any]] = {}  # kind, count, pages, last unit
        self._unit: int | None = None
        self._spilled: list[IO[bytes]] = []

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

    def see(self, lang: str, words: Counter[str]) -> None:
        """Count the words of pages, and take them away."""
        for word, times in words.items():
            self._held.setdefault((lang, word, word), ["", 0, 0, None])[1] += times
        words.clear()

    def rows(self) -> Iterator[Count]:
        """Yield all counts, sorted; spilled ones are read back."""
        return summed(self._sorted(), *map(read_counts, self._spilled))

    def _sorted(self) -> Iterator[Count]:
        return _both_ways(Count._make((*key, *entry[:3], 0)) for key, entry in self._held.items())

    def _spill(self) -> None:
        file = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (nameless)
        write_counts(self._sorted(), file)
        self._spilled.append(file)
        self._held.clear()


def _both_ways(counts: Iterable[Count]) -> Iterator[Count]:
    """Return counts sorted, together with a count for the reverse of each."""
    counts = list(counts)
    reverses = [
        Count(c.lang, c.noisy, c.clean, "", 0, 0, c.count) for c in counts if c.noisy != c.clean
    ]
    return summed(sorted(counts + reverses))


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
        larger: list[Path] = []
        for some in portions(paths, STREAMS_MAX):
            larger.append(Path(folder, f"{len(larger)}.parquet"))
            with larger[-1].open("wb") as file:
                write_counts(summed(*map(read_counts, some)), file)
        yield from merged(larger)


def write_counts(rows: Iterable[Count], file: IO[bytes]) -> int:
    """Write sorted counts as Parquet; return how many."""
    written = 0
    with pq.ParquetWriter(
        file, COUNT_SCHEMA, compression="zstd", use_dictionary=["lang", "kind"]
    ) as writer:
        for portion in portions(rows, BATCH_ROWS):
            writer.write_batch(_batch(portion, COUNT_SCHEMA))
            written += len(portion)
    return written


def read_counts(source: Path | IO[bytes]) -> Iterator[Count]:
    """Yield the counts of a file that `write_counts` wrote; raises SourceError."""
    return map(Count._make, _rows(source, COUNT_SCHEMA.names))


def readable(source: Path | IO[bytes]) -> AbstractContextManager[Any]:
    """Return what Arrow reads: an object of a store as an open file, anything else as it is."""
    return source.open() if isinstance(source, StorePath) else nullcontext(source)


def _rows(source: Path | IO[bytes], columns: list[str]) -> Iterator[tuple[Any, ...]]:
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


def _batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
    return pa.record_batch(arrays, schema)


Frequencies = Mapping[tuple[str, str], int]  # of (language, word)
ENTRY_ROWS = 65_536  # written at once
SUPPORT_PAGES = 2  # that make the same correction, of a word that is on no page as it is at last
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
    if seen and not clean and row.pages < SUPPORT_PAGES:
        return "unseen"
    return "real_word" if clean < thresholds.frequency * noisy else None


@dataclass
class ThresholdTotals:
    """Counts of word pairs left out, by reason, and of words that keep an alternative."""

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
        passed, frequency = [], 0
        for row in rows:
            if row.noisy == row.clean:
                frequency = row.count
            elif row.count and (reason := reason_against(row, thresholds, seen)):
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
            share = count / total
            yield Alternative(lang, clean, noisy, count, pages, reverse, share, frequency)


def counts_of(entries: Iterable[Alternative]) -> Iterator[Count]:
    """Return a dictionary's entries as sorted counts, to be merged and filtered again.

    `reverse_count` of an entry holds where the reverse is no entry, else its own count does.
    """
    entries = list(entries)
    known = {entry[:3] for entry in entries}
    counts = [
        Count(lang, clean, noisy, "", count, pages, 0 if (lang, noisy, clean) in known else reverse)
        for lang, clean, noisy, count, pages, reverse, *_ in entries
    ]
    words = {(entry.lang, entry.clean, entry.frequency) for entry in entries if entry.frequency}
    return _both_ways(
        [*counts, *(Count(lang, word, word, "", times, 0, 0) for lang, word, times in words)]
    )


def write_dictionary(entries: Iterable[Alternative], out: Path) -> int:
    """Write dictionary.parquet and dictionary.tsv of a folder; return the number of entries."""
    written, parts = 0, portions(entries, ENTRY_ROWS)
    first = next(parts, [])
    schema = _schema_of(first)
    with (
        atomic(out / "dictionary.parquet") as table,
        atomic(out / "dictionary.tsv") as text,
        pq.ParquetWriter(table, schema, compression="zstd") as writer,
    ):
        text.write(_line(schema.names))
        for portion in chain([first][: len(first)], parts):
            writer.write_batch(_batch(portion, schema))
            text.writelines(_tsv_line(entry, schema) for entry in portion)
            written += len(portion)
    return written


def _schema_of(entries: Sequence[Alternative]) -> pa.Schema:
    """Return the columns of a dictionary, with frequencies if these are known."""
    is_known = any(entry.frequency for entry in entries)
    return ENTRY_SCHEMA.append(FREQUENCY) if is_known else ENTRY_SCHEMA


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
    langs = sorted({entry.lang for entry in entries})
    head = {"name": out.stem, "lang": langs[0] if langs else ANY, **head}
    schema = _schema_of(entries)
    if kind is None:
        raise UsageError(f"{out}: unknown file extension; use .parquet, .tsv or .json")
    if kind in ("json", "lexicon") and len(langs) > 1:
        raise UsageError(f"a {kind} file holds one language: choose with --lang {langs[0]}")
    for key, value in head.items():
        if kind == "lexicon" and len(value.splitlines()) > 1:
            raise UsageError(f"{key} {value!r} must be one line")
    with atomic(out) as file:
        match kind:
            case "parquet":
                table = pa.Table.from_batches([_batch(entries, schema)])
                pq.write_table(table, file, compression="zstd", row_group_size=ENTRY_ROWS)
            case "tsv":
                file.write(_line(schema.names))
                file.writelines(_tsv_line(entry, schema) for entry in entries)
            case "json":
                forms: dict[str, list[tuple[str, float]]] = {}
                for entry in entries:
                    forms.setdefault(entry.clean, []).append((entry.noisy, round(entry.prob, 6)))
                file.write(json.dumps(forms, ensure_ascii=False).encode() + b"\n")
            case _:
                file.writelines(f"# {key}: {value}\n".encode() for key, value in head.items())
                more = schema.names[len(ENTRY_SCHEMA) :]
                file.write(_line(("clean", "noisy", "weight", *more)))
                written = attrgetter("clean", "noisy", "count", *more)
                file.writelines(_line(map(str, written(entry))) for entry in entries)


def _tsv_line(entry: Alternative, schema: pa.Schema) -> bytes:
    fields = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in entry]
    return _line(fields[: len(schema)])


def _line(fields: Iterable[str]) -> bytes:
    return ("\t".join(fields) + "\n").encode()


def seen_words(words: Sequence[Path], pairs: Sequence[Path], thresholds: Thresholds) -> Frequencies:
    """Return how often counted words occur in corrected sentences, if a threshold needs it.

    `words` and `pairs` are the shards of one mining run or of several. Where the words of whole
    pages were counted, it is on these.
    """
    if not thresholds.frequency:
        return {}
    wanted, seen, has_pages = set[tuple[str, str]](), Counter[tuple[str, str]](), False
    for row in merged(list(words)):
        if row.noisy == row.clean:
            has_pages = True
        elif row.count:
            wanted |= {(row.lang, row.clean), (row.lang, row.noisy)}
    if has_pages:
        rows = (row for row in merged(list(words)) if row.noisy == row.clean)
        return {row[:2]: row.count for row in rows if row[:2] in wanted}
    tokenizer = cache(lambda lang: language(lang).tokens)
    for path in pairs:
        for lang, clean in _rows(path, ["lang", "clean"]):
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
    """Return the entries of summed dictionaries that pass, and how many were left out.

    Of a mining run all that was counted takes part, and its sentences tell how frequent words are;
    of a file what it has.
    """
    totals = ThresholdTotals()
    runs = list(filter(Path.is_dir, sources))
    files = [path for path in sources if path not in runs]
    pairs = [run / shard["file"] for run in runs for shard in Manifest.load(run).shards]
    words = list(map(words_of, pairs))
    counts = summed(merged(words), *(counts_of(load_dictionary(path)) for path in files))
    chosen = (row for row in counts if lang in (None, row.lang))
    seen = seen_words(words, pairs, thresholds)
    return list(apply_thresholds(chosen, thresholds, totals, seen)), totals


def words_of(pairs: Path) -> Path:
    """Return the file of the word counts that belong to a shard of pairs."""
    return pairs.parent.with_name("words") / pairs.name
