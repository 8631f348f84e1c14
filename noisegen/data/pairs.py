"""Pairs of noisy and clean text from tables, aligned text files, M2 files and output folders."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from noisegen.data.columns import damaged_rows, evenly, in_brackets, text_batches, unread_rows
from noisegen.data.files import SHARDS, Damaged, absolute, is_url
from noisegen.data.formats.layouts import layout_of
from noisegen.data.formats.registry import has_rows, read_head
from noisegen.data.lines import read_range
from noisegen.data.m2 import M2_STARTS, is_m2, read_m2, text_head
from noisegen.data.paths import is_path, leads, text_paths
from noisegen.data.rows import Columns, FileRange, numbered
from noisegen.data.sources import expand, no_column, shown_names
from noisegen.data.tables import CODE, KEPT, NO_ROW, UnequalFiles, lines_together, read_lines
from noisegen.errors import SourceError, UsageError
from noisegen.noising.rng import DECISION_BITS, name_number, splitmix, threshold
from noisegen.options import Strings, listed

PAIRS_MAX = 1_000_000  # most pairs held in memory
# Most characters of a noisy or clean text; aligning a longer one would take minutes
SIDE_MAX = 1_000_000
HELD_BACK = 0.3  # default share of pairs held out from fitting
OPTIONS = (
    "; name it with --noisy-column or --clean-column",
    "; the clean side of a text file is another one: --clean-file",
)  # advice added to errors about a missing column: first for tables, then for text files
_NESTED = "; name the paths of your pairs: --noisy-column PATH --clean-column PATH"
UNREADABLE, NOT_A_TYPO = "unreadable", "not_a_typo"  # reasons why a row has no pair
PAIRS_ARE = "; pairs are tables with the columns noisy and clean"


@dataclass(frozen=True)
class Pairs:
    """Noisy texts with their clean versions, in the order of the source.

    `dropped` counts rows without a usable pair, by reason; `damaged` has messages about damage.
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
        """Return at most `most` pairs, spread evenly over all pairs."""
        return self if len(self) <= most else self.take(evenly(range(len(self)), most))

    def split(self, share: float = HELD_BACK, seed: int = 0) -> tuple["Pairs", "Pairs"]:
        """Split the pairs at random: pairs to fit a noise profile on, and held-out pairs.

        No clean text is in both sets. `share` is the expected share of held-out pairs.
        """
        limit, key = threshold(share), splitmix(seed)
        held = [
            splitmix(key ^ name_number(text)) >> (64 - DECISION_BITS) < limit for text in self.clean
        ]
        fitted = self.take([number for number, is_held in enumerate(held) if not is_held])
        return fitted, self.take([number for number, is_held in enumerate(held) if is_held])


class PairRow(NamedTuple):
    """A noisy text with its clean versions, and its language if a column has it.

    `reason` is 'unreadable' if the row, or one of its texts, cannot be read, NOT_A_TYPO for a
    published edit that corrects nothing, else ''. `is_paragraph` tells that the texts have several
    sentences.
    """

    noisy: str | None
    clean: Sequence[str | None]
    lang: str | None = None
    reason: str = ""
    is_paragraph: bool = False


@dataclass(frozen=True)
class PairColumns:
    """Columns of pairs in a table: names, or '1', '2' and so on without a header line.

    A clean column may hold lists of clean versions. `advice` has two texts to add to errors about a
    missing column: for tables, and for text files.
    """

    noisy: str = "noisy"
    clean: tuple[str, ...] = ("clean",)
    lang: str | None = None
    advice: tuple[str, str] = OPTIONS

    def chosen(self, schema: pa.Schema, path: str) -> list[str]:
        """Return the columns to read from a table with the columns of `schema`.

        These are noisy, language and clean. Raises SourceError for a missing column; the error
        lists the paths of nested values.
        """
        names = schema.names
        wanted = [self.noisy, *([self.lang] if self.lang else []), *self.clean]
        chosen = [numbered(name, names) for name in wanted]
        missing = next((name for name in chosen if not leads(name, schema)), None)
        if missing is not None:
            leaves = text_paths(schema)
            if any(map(is_path, leaves)):
                among = shown_names(leaves)
                raise SourceError(f"{path}: no column {missing!r} among: {among}{_NESTED}")
            raise no_column(path, missing, names, self.advice[len(names) == 1])
        return chosen


def pair_rows(
    files: Sequence[FileRange], columns: PairColumns, damaged: list[str]
) -> Iterator[PairRow]:
    """Yield the rows of one table (or range of it), or of a noisy text file and its clean files.

    A text that cannot be read is None. Messages about unreadable rows are added to `damaged`. If
    text files have different numbers of lines, lines after the end of the shortest are lost.
    """
    return _aligned_rows(files, damaged) if files[1:] else _table_rows(files[0], columns, damaged)


def _aligned_rows(files: Sequence[FileRange], damaged: list[str]) -> Iterator[PairRow]:
    try:
        for noisy, *versions in lines_together([_lines(file, damaged) for file in files]):
            yield PairRow(noisy, versions, reason=UNREADABLE * (None in (noisy, *versions)))
    except UnequalFiles as error:
        lost = max(error.counts) - min(error.counts)
        damaged.append(
            f"{files[0].path} and its clean files differ in length: {lost:,} lines at the end have "
            "no partner"
        )


def _lines(file: FileRange, damaged: list[str]) -> Iterator[str | None]:
    """Yield the lines of a file, None for an unreadable one.

    Stops where the file is damaged, and adds a message to `damaged`.
    """
    try:
        yield from read_lines(read_range(file))
    except Damaged as damage:
        damaged.append(f"{file.path}: {damage}")


def _table_rows(given: FileRange, columns: PairColumns, damaged: list[str]) -> Iterator[PairRow]:
    file = given if given.schema.names else read_head(given, Columns.of_texts(columns.noisy))
    if file is None:
        return
    layout = layout_of(file)
    if layout and columns.lang is None and "lang" in layout.columns:
        columns = replace(columns, lang="lang")
    is_paragraph = layout is not None and layout.corrections == "essays"
    unread: Counter[str] = Counter()
    names = columns.chosen(file.schema, file.path)
    for codes, texts in text_batches(file, names, only_text=True):
        unread.update(unread_rows(codes))
        langs = texts.pop(1) if columns.lang else [None] * len(codes)
        for code, lang, noisy, *clean in zip(codes.tolist(), langs, *texts, strict=True):
            if code == NO_ROW:
                continue
            versions: list[str | None] = []
            for cell in clean:
                versions += cell if isinstance(cell, list) else [cell]
            yield PairRow(noisy, versions, lang, _reason(code), is_paragraph)
    unread.pop(NOT_A_TYPO, None)
    damaged += damaged_rows(file.path, unread)


def _reason(code: int) -> str:
    """Return the reason for which a row with a code from the column REASON has no pair, or ''."""
    if code in KEPT:
        return ""
    return NOT_A_TYPO if code == CODE[NOT_A_TYPO] else UNREADABLE


def pair_tables(sources: Strings, columns: PairColumns) -> tuple[list[FileRange], list[str]]:
    """Return the tables that `sources` name, each once, and a message per file that is skipped.

    A source is a file, folder, glob or hf:... Raises SourceError for a missing source or column,
    and if no table has rows.
    """
    found, skipped, are_empty = dict[str, FileRange](), [], True
    for file in expand(sources):
        if file.skipped:
            skipped.append(f"{file.path}: {file.skipped}")
            continue
        if (headed := read_head(file, Columns.of_texts(columns.noisy))) is not None:
            columns.chosen(headed.schema, file.path)
            are_empty = are_empty and not has_rows(headed)
        found.setdefault(file.absolute, replace(file, path=file.absolute))
    if are_empty:
        raise SourceError(f"no pairs in {', '.join(found)}: empty, or with only a header")
    return list(found.values()), skipped


def aligned_files(noisy: str, clean: Sequence[str]) -> list[FileRange]:
    """Return a noisy file of lines and its clean versions, with absolute paths.

    Raises SourceError for a missing file.
    """
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
    """Read at most PAIRS_MAX pairs; a pair with an empty or very long text is dropped.

    `sources` are tables (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), words with their
    normal forms (.norm), corrected treebanks (.conllu), M2 files (.m2, compressed or not), folders
    written by augment or mine-*, or one noisy text file with `clean_file`. The first of several
    clean versions or annotators is used. `PairColumns` explains `advice`. Pairs are dropped as
    `over_limit`, `empty_side`, `unreadable` or `too_long`. Raises SourceError for a missing source
    or column and if no pair is left, UsageError if `clean_file` is given with several sources.
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
    """Yield (noisy, clean) per row; rows that lack one of the two texts are counted in `dropped`.

    `read_pairs` explains the sources and errors. Damaged input raises SourceError. `advice` is
    added to errors about a missing column.
    """
    damaged: list[str] = []
    columns = PairColumns(advice=(advice, advice))
    yield from _first_versions(listed(sources), columns, None, dropped, damaged)
    if damaged:
        raise damage(damaged)


def damage(lines: Sequence[str]) -> SourceError:
    """Return an error about damaged input, with the first message in `lines`."""
    return SourceError(f"damaged input: {lines[0]}: fix the file, or drop these rows")


def refuse_onto(out: Path, sources: Strings) -> None:
    """Raise UsageError if writing the output `out` would overwrite one of the sources."""
    for source in listed(sources):
        if out.exists() and Path(source).exists() and out.samefile(source):
            raise UsageError(f"-o {str(out)!r} is one of the sources: give another name")


def shards_of(source: str) -> str:
    """Return the folder or glob of the pairs in a folder that augment or mine-* wrote.

    Any other source is returned unchanged.
    """
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
    """Yield the noisy text and the first clean version of each row of all sources.

    Rows that lack one of the two are counted in `dropped`. Messages about damage are added to
    `damaged`.
    """
    annotated = [source for source in sources if is_m2(source)]
    yield from _annotated_pairs(annotated, dropped, damaged)
    tables = [shards_of(source) for source in sources if source not in annotated]
    for files in _files_of_pairs(tables, columns, clean_file):
        yield from _whole_pairs(pair_rows(files, columns, damaged), dropped)


def _whole_pairs(rows: Iterable[PairRow], dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the noisy text and the first clean version of each row that has both.

    Other rows are counted in `dropped`.
    """
    for row in rows:
        noisy, clean = row.noisy or "", next(iter(row.clean), None) or ""
        if noisy.strip() and clean.strip():
            yield noisy, clean
        else:
            dropped[row.reason or "empty_side"] += 1


def _files_of_pairs(
    sources: Sequence[str], columns: PairColumns, clean_file: str | None
) -> list[list[FileRange]]:
    """Return lists of files to read together: one table each, or a noisy file and its clean file.

    Raises SourceError for a missing file or column, UsageError if a clean file is given with
    several sources.
    """
    if clean_file is None:
        return [[table] for table in pair_tables(sources, columns)[0]] if sources else []
    if len(sources) != 1:
        raise UsageError(f"--clean-file goes with one text file, not with {len(sources)}")
    return [aligned_files(sources[0], [clean_file])]


def _annotated_pairs(
    sources: Sequence[str], dropped: Counter[str], damaged: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield (sentence, the first annotator's correction) for each sentence of the M2 files."""
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
