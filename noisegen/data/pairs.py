"""Pairs of noisy and clean text: tables, aligned files of lines, M2, and folders of runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import NamedTuple

from noisegen.data.columns import damaged_rows, evenly, in_brackets, text_batches, unread_rows
from noisegen.data.files import SHARDS, Damaged, absolute, is_url
from noisegen.data.formats.registry import has_rows, read_head
from noisegen.data.lines import read_range
from noisegen.data.m2 import M2_STARTS, is_m2, read_m2, text_head
from noisegen.data.rows import Columns, FileRange, numbered
from noisegen.data.sources import expand, listed, no_column
from noisegen.data.tables import KEPT, UnequalFiles, lines_together, read_lines
from noisegen.errors import SourceError, UsageError
from noisegen.noising.rng import DECISION_BITS, mix, name_number, threshold
from noisegen.options import Strings

PAIRS_MAX = 1_000_000  # pairs held in memory
SIDE_MAX = 1_000_000  # characters of a side: a longer text would be aligned for minutes
HELD_BACK = 0.3  # share of held-out pairs
OPTIONS = (
    "; name it with --noisy-column or --clean-column",
    "; the clean side of a text file is another one: --clean-file",
)  # advice if a column is missing: in a table, in a text file
PAIRS_ARE = "; pairs are tables with the columns noisy and clean"


@dataclass(frozen=True)
class Pairs:
    """Noisy texts with their clean versions, in the order of the source.

    `dropped` counts other rows by reason; `damaged` has a line for each loss in the input.
    """

    noisy: list[str]
    clean: list[str]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.noisy)

    def take(self, numbers: Sequence[int]) -> "Pairs":
        """Return the pairs with these indices."""
        return Pairs([self.noisy[n] for n in numbers], [self.clean[n] for n in numbers])

    def sample(self, most: int) -> "Pairs":
        """Return at most `most` pairs, spread evenly over all."""
        return self if len(self) <= most else self.take(evenly(range(len(self)), most))

    def split(self, share: float = HELD_BACK, seed: int = 0) -> tuple["Pairs", "Pairs"]:
        """Return the pairs to fit and a share of held-out pairs; the two share no clean text."""
        limit, key = threshold(share), mix(seed)
        held = [mix(key ^ name_number(text)) >> (64 - DECISION_BITS) < limit for text in self.clean]
        fitted = self.take([number for number, is_held in enumerate(held) if not is_held])
        return fitted, self.take([number for number, is_held in enumerate(held) if is_held])


class PairRow(NamedTuple):
    """A noisy text with its clean versions, and its language where a column says it."""

    noisy: str | None
    clean: Sequence[str | None]
    lang: str | None = None
    is_read: bool = True


@dataclass(frozen=True)
class PairColumns:
    """Columns of a table that hold pairs: names, or numbers from 1 for a file without a header.

    A clean column may hold lists. `advice` ends errors about a missing column: in a table, and in a
    text file.
    """

    noisy: str = "noisy"
    clean: tuple[str, ...] = ("clean",)
    lang: str | None = None
    advice: tuple[str, str] = OPTIONS

    def chosen(self, names: Sequence[str], path: str) -> list[str]:
        """Return the names of the columns: noisy, language if any, clean; raises SourceError."""
        wanted = [self.noisy, *([self.lang] if self.lang else []), *self.clean]
        chosen = [numbered(name, names) for name in wanted]
        missing = next((name for name in chosen if name not in names), None)
        if missing is not None:
            raise no_column(path, missing, names, self.advice[len(names) == 1])
        return chosen


def pair_rows(
    files: Sequence[FileRange], columns: PairColumns, damaged: list[str]
) -> Iterator[PairRow]:
    """Yield the rows of a table or a range of it, or of a noisy file of lines and its clean files.

    A side that cannot be read is None; `damaged` gets a line per loss. Where one of several files
    is longer than another, the rest is lost.
    """
    return _aligned_rows(files, damaged) if files[1:] else _table_rows(files[0], columns, damaged)


def _aligned_rows(files: Sequence[FileRange], damaged: list[str]) -> Iterator[PairRow]:
    try:
        for noisy, *versions in lines_together([_lines(file, damaged) for file in files]):
            yield PairRow(noisy, versions, is_read=None not in (noisy, *versions))
    except UnequalFiles as error:
        lost = max(error.counts) - min(error.counts)
        damaged.append(
            f"{files[0].path} and its clean files differ in length: {lost:,} lines at the end have "
            "no partner"
        )


def _lines(file: FileRange, damaged: list[str]) -> Iterator[str | None]:
    """Yield lines, None for an unreadable line; damage ends them and adds a line to `damaged`."""
    try:
        yield from read_lines(read_range(file))
    except Damaged as damage:
        damaged.append(f"{file.path}: {damage}")


def _table_rows(given: FileRange, columns: PairColumns, damaged: list[str]) -> Iterator[PairRow]:
    file = given if given.schema.names else read_head(given, Columns(columns.noisy))
    if file is None:
        return
    unread: Counter[str] = Counter()
    names = columns.chosen(file.schema.names, file.path)
    for codes, texts in text_batches(file, names, only_text=True):
        unread.update(unread_rows(codes))
        langs = texts.pop(1) if columns.lang else [None] * len(codes)
        for code, lang, noisy, *clean in zip(codes.tolist(), langs, *texts, strict=True):
            versions: list[str | None] = []
            for cell in clean:
                versions += cell if isinstance(cell, list) else [cell]
            yield PairRow(noisy, versions, lang, code in KEPT)
    damaged += damaged_rows(file.path, unread)


def pair_tables(sources: Strings, columns: PairColumns) -> tuple[list[FileRange], list[str]]:
    """Return the tables of files, folders, globs and hf:..., each once, and the skipped files.

    Raises SourceError for a missing source or column, and where no table has rows.
    """
    found, skipped, are_empty = dict[str, FileRange](), [], True
    for file in expand(sources):
        if file.skipped:
            skipped.append(f"{file.path}: {file.skipped}")
            continue
        if (headed := read_head(file, Columns(columns.noisy))) is not None:
            columns.chosen(headed.schema.names, file.path)
            are_empty = are_empty and not has_rows(headed)
        found.setdefault(file.absolute, replace(file, path=file.absolute))
    if are_empty:
        raise SourceError(f"no pairs in {', '.join(found)}: empty, or with only a header")
    return list(found.values()), skipped


def aligned_files(noisy: str, clean: Sequence[str]) -> list[FileRange]:
    """Return a file of lines and its clean versions with absolute paths; raises SourceError."""
    for path in (noisy, *clean):
        if not (is_url(path) or Path(path).is_file()):
            raise SourceError(f"{path!r}: no such file")
    return [FileRange(absolute(path)) for path in (noisy, *clean)]


def read_pairs(
    sources: Strings,
    *,
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | None = None,
    advice: tuple[str, str] = OPTIONS,
) -> Pairs:
    """Read pairs, at most PAIRS_MAX; a pair with an empty or very long side is dropped.

    Dropped pairs are counted under `over_limit`, `empty_side`, `unreadable` and `too_long`. Of
    several clean versions of a row the first counts. `advice` as in `PairColumns`.
    `sources` are tables (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), normalised text
    (.norm), corrected treebanks (.conllu), M2 files (.m2, compressed or not; the first annotator),
    folders written by augment or mine-*, or one text file with `clean_file`. Raises SourceError for
    a missing source or column and where no pair is left, UsageError for options that do not fit.
    """
    pairs, sources = Pairs([], []), listed(sources)
    columns = PairColumns(noisy_column, (clean_column,), advice=advice)
    for noisy, clean in _first_versions(sources, columns, clean_file, pairs.dropped, pairs.damaged):
        if max(len(noisy), len(clean)) > SIDE_MAX:
            pairs.dropped["too_long"] += 1
        elif len(pairs) == PAIRS_MAX:
            pairs.dropped["over_limit"] += 1
        else:
            pairs.noisy.append(noisy)
            pairs.clean.append(clean)
    if not pairs.noisy:
        raise SourceError(f"no pairs in {', '.join(sources)}{in_brackets(pairs.dropped)}")
    return pairs


def stream_pairs(
    sources: Strings, dropped: Counter[str], advice: str = PAIRS_ARE
) -> Iterator[tuple[str, str]]:
    """Yield (noisy, clean) row by row; pairs that lack one of the two are counted in `dropped`.

    Sources and errors as in `read_pairs`; `advice` ends errors about a missing column. Damage in an
    input raises SourceError.
    """
    damaged: list[str] = []
    columns = PairColumns(advice=(advice, advice))
    yield from _first_versions(listed(sources), columns, None, dropped, damaged)
    if damaged:
        raise damage(damaged)


def damage(lines: Sequence[str]) -> SourceError:
    """Return the error about damaged rows, for callers that must not lose a row silently."""
    return SourceError(f"damaged input: {lines[0]}: fix the file, or drop these rows")


def refuse_onto(out: Path, sources: Strings) -> None:
    """Raise UsageError if the output `out` would replace one of the sources."""
    for source in listed(sources):
        if out.exists() and Path(source).exists() and out.samefile(source):
            raise UsageError(f"-o {str(out)!r} is one of the sources: give another name")


def shards_of(source: str) -> str:
    """Return the files with pairs of a folder that augment or mine-* wrote; else the source."""
    folder = Path(source)
    if not (folder / "manifest.json").is_file():
        return source
    mined = folder / "pairs"
    return str(mined) if mined.is_dir() else f"{escape(str(folder / 'data'))}/{SHARDS}"


def _first_versions(
    sources: Sequence[str],
    columns: PairColumns,
    clean_file: str | None,
    dropped: Counter[str],
    damaged: list[str],
) -> Iterator[tuple[str, str]]:
    """Yield noisy text with its first clean version; count pairs that lack one of the two."""
    annotated = [source for source in sources if is_m2(source)]
    yield from _annotated_pairs(annotated, dropped, damaged)
    tables = [shards_of(source) for source in sources if source not in annotated]
    for files in _files_of_pairs(tables, columns, clean_file):
        yield from _whole_pairs(pair_rows(files, columns, damaged), dropped)


def _whole_pairs(rows: Iterable[PairRow], dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the noisy text and the first clean version of rows that have both; count others."""
    for row in rows:
        noisy, clean = row.noisy or "", next(iter(row.clean), None) or ""
        if noisy.strip() and clean.strip():
            yield noisy, clean
        else:
            dropped["empty_side" if row.is_read else "unreadable"] += 1


def _files_of_pairs(
    sources: Sequence[str], columns: PairColumns, clean_file: str | None
) -> list[list[FileRange]]:
    """Return the files to read together: a text file with its clean file, or each table alone.

    Raises SourceError for a missing file or column, UsageError for a clean file of several sources.
    """
    if clean_file is None:
        return [[table] for table in pair_tables(sources, columns)[0]] if sources else []
    if len(sources) != 1:
        raise UsageError(f"--clean-file goes with one text file, not with {len(sources)}")
    return [aligned_files(sources[0], [clean_file])]


def _annotated_pairs(
    sources: Sequence[str], dropped: Counter[str], damaged: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield the sentences of M2 files with the version of their first annotator."""
    files = {file.path: file for source in sources for file in aligned_files(source, [])}
    for path, file in files.items():
        if not text_head(path).startswith(M2_STARTS):
            raise SourceError(f"{path}: not an M2 file: its first line does not begin with S")
        for sentence in read_m2(file, damaged):
            noisy, corrected = " ".join(sentence.tokens), sentence.corrected()
            damaged += sentence.notes(path)
            if noisy and (clean := next(iter(corrected), noisy)):
                yield noisy, clean
            elif noisy:
                dropped["empty_side"] += 1
