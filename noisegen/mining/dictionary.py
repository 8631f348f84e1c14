"""Dictionaries of real errors from counted word pairs: filtered, written, merged and selected."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import nlargest
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.dictionaries import ANY, Alternative, load_dictionary
from noisegen.errors import UsageError
from noisegen.mining.counts import (
    NUMBER_FIELDS,
    WORD_FIELDS,
    Count,
    merged,
    portions,
    record_batch,
    rows_of_file,
    summed,
    with_reverses,
    words_of,
)
from noisegen.mining.miner import Thresholds
from noisegen.runs.atomic import atomic
from noisegen.runs.manifest import Manifest
from noisegen.text.segmentation import language

ENTRY_SCHEMA = pa.schema([*WORD_FIELDS, *NUMBER_FIELDS, ("prob", pa.float64())])
# Extra column, for dictionaries of mining runs that counted the words of pages
FREQUENCY = pa.field("frequency", pa.int64())
ENTRY_ROWS = 65_536  # entries written at once
# Minimum pages with a word pair, if its clean word occurs nowhere in corrected text
SUPPORT_PAGES = 2

Word = tuple[str, str]  # language and word
Frequencies = Mapping[Word, int]  # number of occurrences of each word


def reason_against(row: Count, thresholds: Thresholds, seen: Frequencies) -> str | None:
    """Return the reason why a word pair is dropped, such as 'few_pages'; None if it is kept.

    `seen` has the frequencies of words in corrected text. If it is empty, frequencies are not
    checked.
    """
    if row.pages < thresholds.min_pages:
        return "few_pages"
    if row.count < thresholds.min_count:
        return "few_counts"
    if row.count < thresholds.balance * row.reverse_count:
        return "variant"
    clean = seen.get((row.lang, row.clean), 0)
    noisy = seen.get((row.lang, row.noisy), 0)
    if seen and not clean and row.pages < SUPPORT_PAGES:
        return "unseen"
    return "real_word" if clean < thresholds.frequency * noisy else None


@dataclass
class ThresholdTotals:
    """Totals of a dictionary: dropped word pairs by reason, and the number of clean words in it."""

    dropped: Counter[str] = field(default_factory=Counter)
    words: int = 0


def apply_thresholds(
    counts: Iterable[Count],
    thresholds: Thresholds,
    totals: ThresholdTotals | None = None,
    seen: Frequencies = MappingProxyType({}),
) -> Iterator[Alternative]:
    """Yield the word pairs that pass the thresholds; per clean word, the most frequent first.

    `counts` must be sorted. Dropped word pairs and clean words are counted in `totals`. `seen` has
    the frequencies of words in corrected text.
    """
    totals = totals or ThresholdTotals()
    for _, rows in groupby(counts, key=attrgetter("lang", "clean")):
        pairs = []
        frequency = 0
        for row in rows:
            if row.noisy == row.clean:
                frequency = row.count
            elif row.count:
                pairs.append(row)
        passed = _passing(pairs, thresholds, totals, seen)
        totals.words += bool(passed)
        total = sum(row.count for row in passed)
        for lang, clean, noisy, _, count, pages, reverse in passed:
            share = count / total
            yield Alternative(lang, clean, noisy, count, pages, reverse, share, frequency)


def _passing(
    pairs: Iterable[Count], thresholds: Thresholds, totals: ThresholdTotals, seen: Frequencies
) -> list[Count]:
    """Return the word pairs of one clean word that pass the thresholds, the most frequent first.

    The other word pairs are counted in `totals`.
    """
    passed: list[Count] = []
    for pair in pairs:
        if reason := reason_against(pair, thresholds, seen):
            totals.dropped[reason] += 1
        else:
            passed.append(pair)
    passed.sort(key=lambda pair: (-pair.count, -pair.pages, pair.noisy))
    if thresholds.top and len(passed) > thresholds.top:
        totals.dropped["beyond_top"] += len(passed) - thresholds.top
        del passed[thresholds.top :]
    return passed


def counts_of(entries: Iterable[Alternative]) -> Iterator[Count]:
    """Return the entries of a dictionary as sorted counts, to be merged and filtered again.

    If a dictionary has a word pair and its reverse (clean and noisy word swapped), the `count` of
    each becomes the `reverse_count` of the other.
    """
    entries = list(entries)
    known = {entry[:3] for entry in entries}
    counts = []
    for lang, clean, noisy, count, pages, reverse_count, *_ in entries:
        reverse = 0 if (lang, noisy, clean) in known else reverse_count
        counts.append(Count(lang, clean, noisy, "", count, pages, reverse))
    frequencies = {(entry.lang, entry.clean, entry.frequency) for entry in entries}
    for lang, word, times in frequencies:
        if times:
            counts.append(Count(lang, word, word, "", times, 0, 0))
    return with_reverses(counts)


def write_dictionary(entries: Iterable[Alternative], out: Path) -> int:
    """Write dictionary.parquet and dictionary.tsv into `out`; return the number of entries."""
    parts = portions(entries, ENTRY_ROWS)
    first = next(parts, [])
    schema = _schema_of(first)
    written = 0
    with (
        atomic(out / "dictionary.parquet") as table,
        atomic(out / "dictionary.tsv") as text,
        pq.ParquetWriter(table, schema, compression="zstd") as writer,
    ):
        text.write(_line(schema.names))
        for portion in chain([first] if first else [], parts):
            writer.write_batch(record_batch(portion, schema))
            text.writelines(_tsv_line(entry, schema) for entry in portion)
            written += len(portion)
    return written


def _schema_of(entries: Sequence[Alternative]) -> pa.Schema:
    """Return the schema of a dictionary, with a column `frequency` if any entry has a frequency."""
    is_known = any(entry.frequency for entry in entries)
    return ENTRY_SCHEMA.append(FREQUENCY) if is_known else ENTRY_SCHEMA


def save_dictionary(
    entries: Sequence[Alternative],
    out: Path,
    kind: str | None = None,
    head: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write entries in the format `kind`: parquet, tsv, json or lexicon (default: by extension).

    JSON is {correct: [[wrong, probability], ...]}, as in RCP's paper. A lexicon begins with comment
    lines for its name, its language and each key of `head`, such as source and license; its columns
    are clean, noisy and weight. Raises UsageError for an unknown extension, a value of `head` with
    several lines, and entries of several languages in JSON or a lexicon.
    """
    kind = kind or FORMATS.get(out.suffix)
    langs = sorted({entry.lang for entry in entries})
    head = {"name": out.stem, "lang": langs[0] if langs else ANY, **head}
    if kind is None:
        raise UsageError(f"{out}: unknown file extension; use .parquet, .tsv or .json")
    if kind in ("json", "lexicon") and len(langs) > 1:
        raise UsageError(f"a {kind} file holds one language: choose with --lang {langs[0]}")
    lines = _head_lines(head) if kind == "lexicon" else []
    with atomic(out) as file:
        file.writelines(lines)
        WRITERS[kind](entries, file)


def _head_lines(head: Mapping[str, str]) -> list[bytes]:
    """Return a comment line per key of `head`, a dict; raises UsageError for a multi-line value."""
    for key, value in head.items():
        if len(value.splitlines()) > 1:
            raise UsageError(f"{key} {value!r} must be one line")
    return [f"# {key}: {value}\n".encode() for key, value in head.items()]


def _write_parquet(entries: Sequence[Alternative], file: IO[bytes]) -> None:
    table = pa.Table.from_batches([record_batch(entries, _schema_of(entries))])
    pq.write_table(table, file, compression="zstd", row_group_size=ENTRY_ROWS)


def _write_tsv(entries: Sequence[Alternative], file: IO[bytes]) -> None:
    schema = _schema_of(entries)
    file.write(_line(schema.names))
    file.writelines(_tsv_line(entry, schema) for entry in entries)


def _write_json(entries: Sequence[Alternative], file: IO[bytes]) -> None:
    forms: dict[str, list[tuple[str, float]]] = {}
    for entry in entries:
        forms.setdefault(entry.clean, []).append((entry.noisy, round(entry.prob, 6)))
    file.write(json.dumps(forms, ensure_ascii=False).encode() + b"\n")


def _write_lexicon(entries: Sequence[Alternative], file: IO[bytes]) -> None:
    more = _schema_of(entries).names[len(ENTRY_SCHEMA) :]
    file.write(_line(("clean", "noisy", "weight", *more)))
    values_of = attrgetter("clean", "noisy", "count", *more)
    file.writelines(_line(map(str, values_of(entry))) for entry in entries)


FORMATS = {".parquet": "parquet", ".tsv": "tsv", ".json": "json"}  # format by file extension
WRITERS: dict[str, Callable[[Sequence[Alternative], IO[bytes]], None]] = {
    "parquet": _write_parquet,
    "tsv": _write_tsv,
    "json": _write_json,
    "lexicon": _write_lexicon,
}


def _tsv_line(entry: Alternative, schema: pa.Schema) -> bytes:
    fields = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in entry]
    return _line(fields[: len(schema)])


def _line(fields: Iterable[str]) -> bytes:
    return ("\t".join(fields) + "\n").encode()


def seen_words(words: Sequence[Path], pairs: Sequence[Path], thresholds: Thresholds) -> Frequencies:
    """Return how often each word of the word pairs, clean or noisy, occurs in corrected text.

    `words` are the files of mining runs with word counts, `pairs` the files with sentence pairs.
    Corrected text means the last revisions of pages if a run counted their words, otherwise the
    clean sentences. The result is {} if no threshold needs frequencies.
    """
    if not thresholds.frequency:
        return {}
    wanted: set[Word] = set()
    has_pages = False
    for row in merged(words):
        if row.noisy == row.clean:
            has_pages = True
        elif row.count:
            wanted |= {(row.lang, row.clean), (row.lang, row.noisy)}
    return _seen_on_pages(words, wanted) if has_pages else _seen_in_sentences(pairs, wanted)


def _seen_on_pages(words: Sequence[Path], wanted: set[Word]) -> Frequencies:
    """Return how often each wanted word occurs in the last revisions of pages."""
    seen: dict[Word, int] = {}
    for row in merged(words):
        word = row.lang, row.clean
        if row.noisy == row.clean and word in wanted:
            seen[word] = row.count
    return seen


def _seen_in_sentences(pairs: Sequence[Path], wanted: set[Word]) -> Frequencies:
    """Return how often each wanted word occurs in the corrected sentences of shards of pairs."""
    tokenizer = cache(lambda lang: language(lang).tokens)
    seen: Counter[Word] = Counter()
    for path in pairs:
        for lang, clean in rows_of_file(path, ["lang", "clean"]):
            tokens = ((lang, token) for token in tokenizer(lang)(clean))
            seen.update(token for token in tokens if token in wanted)
    return seen


def entries_of(source: Path, lang: str | None = None) -> list[Alternative]:
    """Return the entries of a dictionary file, or of the dictionary in a folder of a run.

    With `lang`, only the entries of this language are returned.
    """
    entries = load_dictionary(source / "dictionary.parquet" if source.is_dir() else source)
    return [entry for entry in entries if lang in (None, entry.lang)]


def most_frequent(entries: Sequence[Alternative], rows: int) -> list[Alternative]:
    """Return the `rows` most frequent entries, sorted by count, then pages, highest first."""
    return nlargest(rows, entries, key=lambda entry: (entry.count, entry.pages, entry.prob))


def select(
    sources: Sequence[Path], thresholds: Thresholds, lang: str | None = None
) -> tuple[list[Alternative], ThresholdTotals]:
    """Merge dictionaries; return the entries that pass the thresholds, and the totals.

    `sources` are folders of mining runs and dictionary files. A run contributes all word pairs that
    it counted, and the frequencies of words in its sentences or pages. A file contributes its
    entries. With `lang`, only word pairs of this language are chosen.
    """
    totals = ThresholdTotals()
    runs = [path for path in sources if path.is_dir()]
    files = [path for path in sources if path not in runs]
    pairs = [run / shard["file"] for run in runs for shard in Manifest.load(run).shards]
    words = [words_of(path) for path in pairs]
    counts = summed(merged(words), *(counts_of(load_dictionary(path)) for path in files))
    chosen = (row for row in counts if lang in (None, row.lang))
    seen = seen_words(words, pairs, thresholds)
    return list(apply_thresholds(chosen, thresholds, totals, seen)), totals
