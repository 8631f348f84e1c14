"""Pairs of noisy and clean text: tables, aligned files of lines, M2, and folders of runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from glob import escape
from itertools import chain, dropwhile, takewhile, zip_longest
from pathlib import Path
from typing import NamedTuple

from noisegen.data.columns import damaged_rows, evenly, in_brackets, text_batches, unread_rows
from noisegen.data.files import (
    ALL,
    BOM,
    COMPRESSIONS,
    SHARDS,
    Damaged,
    Piece,
    absolute,
    compression_of,
    head_of_text,
    is_url,
    pieces_of_text,
    read_parts,
    shard_folder,
)
from noisegen.data.formats import Columns, Input, has_rows, numbered, whole
from noisegen.data.sources import expand, listed, no_column
from noisegen.data.tables import KEPT, line_ranges, read_lines, with_sizes
from noisegen.errors import SourceError, UsageError
from noisegen.noising.rng import DECISION_BITS, mix, name_number, threshold
from noisegen.options import Strings

PAIRS_MAX = 1_000_000  # pairs that are held in memory
SIDE_MAX = 1_000_000  # characters of a side: a longer one is no sentence, and aligned for minutes
HELD_BACK = 0.3  # share of the pairs that nothing is fitted to
OPTIONS = (
    "; name it with --noisy-column or --clean-column",
    "; the clean side of a text file is another one: --clean-file",
)  # advice where a column is missing: in a table, in a text file
PAIRS_ARE = "; pairs are tables with the columns noisy and clean"
M2_ENDINGS = (".m2", *(f".m2.{ending}" for ending in COMPRESSIONS))
M2_STARTS = (b"S ", b"S\n", b"S\r")
_HEAD = 1 << 16  # bytes in which the kind of a file shows
_NO_CONTROLS = {code: " " if chr(code) in "\t\v\f\r" else None for code in range(32)}


@dataclass(frozen=True)
class Pairs:
    """Noisy texts with their clean versions, in the order of the source.

    `dropped` counts rows by reason; `damaged` has a line for each loss in the input.
    """

    noisy: list[str]
    clean: list[str]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.noisy)

    def take(self, numbers: Sequence[int]) -> "Pairs":
        """Return the pairs of these numbers."""
        return Pairs([self.noisy[n] for n in numbers], [self.clean[n] for n in numbers])

    def sample(self, most: int) -> "Pairs":
        """Return at most so many pairs, spread evenly over all."""
        return self if len(self) <= most else self.take(evenly(range(len(self)), most))

    def split(self, share: float = HELD_BACK, seed: int = 0) -> tuple["Pairs", "Pairs"]:
        """Return the pairs to fit and a share held back to judge by; they share no clean text."""
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
    """Which columns of a table hold pairs; names, or numbers from 1 for a file without a header.

    A clean column may hold lists. `advice` is what errors about a missing column end with, as in
    `OPTIONS`.
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
    paths: Sequence[str], columns: PairColumns, damaged: list[str], piece: Piece = ALL
) -> Iterator[PairRow]:
    """Yield the rows of a table or a piece of it, or of a noisy file of lines and its clean ones.

    A side that cannot be read is None; a line on what is damaged goes to `damaged`. Where one of
    several files is longer than another the rest is lost.
    """
    if paths[1:]:
        lost, ended = 0, "(ended)"  # stands for the lines that a file lacks; known by identity
        files = [_lines(path, damaged) for path in paths]
        for noisy, *versions in zip_longest(*files, fillvalue=ended):
            if noisy is ended or any(line is ended for line in versions):
                lost += 1
            else:
                yield PairRow(noisy, versions, is_read=None not in (noisy, *versions))
        if lost:
            lengths = f"{paths[0]} and its clean files differ in length"
            damaged.append(f"{lengths}: {lost:,} lines at the end have no partner")
        return
    (item,) = expand(paths)
    unread: Counter[str] = Counter()
    choose = partial(columns.chosen, path=item.path)
    only_noisy = Columns(columns.noisy)
    for _, codes, texts in text_batches(item, only_noisy, choose, only_text=True, piece=piece):
        unread.update(unread_rows(codes))
        langs = texts.pop(1) if columns.lang else [None] * len(codes)
        for code, lang, noisy, *clean in zip(codes.tolist(), langs, *texts, strict=True):
            cells = (cell if isinstance(cell, list) else [cell] for cell in clean)
            yield PairRow(noisy, list(chain.from_iterable(cells)), lang, code in KEPT)
    damaged += damaged_rows(item.path, unread)


def pair_tables(sources: Strings, columns: PairColumns) -> tuple[dict[str, Input], list[str]]:
    """Return the tables that files, folders, globs and hf:... mean, by path, and what is skipped.

    Raises SourceError for what is missing, for columns that are not there, and for no rows at all.
    """
    found, skipped, are_empty = dict[str, Input](), [], True
    for item in expand(sources):
        if item.skipped:
            skipped.append(f"{item.path}: {item.skipped}")
            continue
        if (file := whole(item, Columns(columns.noisy))) is not None:
            columns.chosen(file.schema.names, item.path)
        are_empty = are_empty and bool(item.kind) and not (file and has_rows(file))
        found.setdefault(item.absolute, item)
    if are_empty:
        raise SourceError(f"no pairs in {', '.join(found)}: empty, or with only a header")
    return found, skipped


def aligned_files(noisy: str, clean: Sequence[str]) -> list[str]:
    """Return the paths of a file of lines and its clean versions; raises SourceError."""
    for path in (noisy, *clean):
        if not (is_url(path) or Path(path).is_file()):
            raise SourceError(f"{path!r}: no such file")
    return [absolute(path) for path in (noisy, *clean)]


def read_pairs(
    sources: Strings,
    *,
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | None = None,
    advice: tuple[str, str] = OPTIONS,
) -> Pairs:
    """Read pairs, at most PAIRS_MAX; those without a side or with a long one are left out.

    What is left out is counted under `over_limit`, `empty_side`, `unreadable` and `too_long`.
    Errors about a missing column end with `advice`, in a table or in a text file.
    `sources` are tables (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), normalised text
    (.norm), corrected treebanks (.conllu), M2 files (.m2, compressed or not; the first annotator),
    folders written by augment or mine-*, or one text file with `clean_file`. Where a row has
    several clean versions the first counts. Raises SourceError for what is missing and where no
    pair is left, UsageError for options that do not fit.
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
    """Yield (noisy, clean) row by row; pairs without one of them are counted in `dropped`.

    Sources and errors as in `read_pairs`, those about a missing column with `advice`; damage in an
    input raises SourceError.
    """
    damaged: list[str] = []
    columns = PairColumns(advice=(advice, advice))
    yield from _first_versions(listed(sources), columns, None, dropped, damaged)
    if damaged:
        raise damage(damaged)


def damage(lines: Sequence[str]) -> SourceError:
    """Return the error about damaged rows where no row may be lost silently."""
    return SourceError(f"damaged input: {lines[0]}: fix the file, or drop these rows")


def refuse_onto(out: Path, sources: Strings) -> None:
    """Raise UsageError if what is written to `out` would replace one of the sources."""
    for source in listed(sources):
        if out.exists() and Path(source).exists() and out.samefile(source):
            raise UsageError(f"-o {str(out)!r} is one of the sources: give another name")


def shards_of(source: str) -> str:
    """Return what to read of a folder that augment or mine-* wrote; else the source itself."""
    folder = Path(source)
    if not (folder / "manifest.json").is_file():
        return source
    mined = folder / "pairs"
    return str(mined) if mined.is_dir() else f"{escape(str(shard_folder(folder)))}/{SHARDS}"


def _first_versions(
    sources: Sequence[str], columns: PairColumns, clean_file: str | None, dropped: Counter[str],
    damaged: list[str],
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Yield noisy text with the first of its clean versions; count pairs without one of them."""
    annotated = [source for source in sources if source.lower().endswith(M2_ENDINGS)]
    for path in dict.fromkeys(path for source in annotated for path in aligned_files(source, [])):
        if not text_head(path).startswith(M2_STARTS):
            raise SourceError(f"{path}: not an M2 file: its first line does not begin with S")
        for sentence in read_m2(path, damaged):
            noisy, corrected = " ".join(sentence.tokens), sentence.corrected()
            damaged += sentence.notes(path)
            if noisy and (clean := next(iter(corrected), noisy)):
                yield noisy, clean
            elif noisy:
                dropped["empty_side"] += 1
    tables = [shards_of(source) for source in sources if source not in annotated]
    if clean_file is not None:
        if len(tables) != 1:
            raise UsageError(f"--clean-file goes with one text file, not with {len(tables)}")
        files = [aligned_files(tables[0], [clean_file])]
    else:
        files = [[path] for path in pair_tables(tables, columns)[0]] if tables else []
    for paths in files:
        for row in pair_rows(paths, columns, damaged):
            noisy, clean = row.noisy or "", next(iter(row.clean), None) or ""
            if noisy.strip() and clean.strip():
                yield noisy, clean
            else:
                dropped["empty_side" if row.is_read else "unreadable"] += 1


# M2: tokenised sentences, each with the edits of one or more annotators. A line of an edit: span,
# type, correction, required, comment, annotator.

M2Edit = tuple[int, int, int, tuple[str, ...]]  # first token, stop, order in the file, new tokens


@dataclass
class M2Sentence:
    """A sentence with the edits of every annotator, and a note on each line that is damaged."""

    line: int  # of the file, from 1
    tokens: list[str]
    edits: dict[str, list[M2Edit]] = field(default_factory=dict)  # by annotator
    damaged: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # annotators with an edit that is damaged

    def corrected(self) -> list[str]:
        """Return the sentence as each annotator has it; one whose edits overlap gives none."""
        texts = []
        for annotator, edits in self.edits.items():
            tokens, after = list(self.tokens), len(self.tokens)
            for start, stop, _, words in sorted(edits, reverse=True):
                if stop > after:
                    self.damaged.append(f"edits of annotator {annotator} overlap")
                    break
                tokens[start:stop] = words
                after = start
            else:
                if annotator not in self.lost:
                    texts.append(" ".join(tokens))
        return texts

    def notes(self, path: str) -> list[str]:
        """Return what is damaged, with the place; of edits after `corrected`."""
        return [f"{path}:{self.line}: {note}" for note in self.damaged]

    def add(self, line: str, number: int) -> None:
        """Read an A line; one that is damaged takes the edits of its annotator with it."""
        parts = line[2:].split("|||")
        edits = self.edits.setdefault(parts[-1], [])
        try:
            span, kind, correction = parts[:3]
            start, stop = map(int, span.split(" "))
            if kind in ("noop", "UNK"):  # the latter is an error without a correction
                return
            if len(parts) != 6 or not 0 <= start <= stop <= len(self.tokens):
                raise ValueError(span)
        except ValueError:
            self.damaged.append(f"line {number} is not an edit of the sentence")
            self.lost.add(parts[-1])
            return
        correction = correction.split("||")[0]  # CoNLL writes alternatives so; the first is best
        words = () if correction == "-NONE-" else tuple(correction.split())
        edits.append((start, stop, len(edits), words))


def read_m2(path: str, damaged: list[str], piece: Piece = ALL) -> Iterator[M2Sentence]:
    """Yield the sentences of an M2 file, or that begin in a piece of it, compressed or not.

    Unreadable lines go to `damaged`.
    """
    lines = text_lines(path, damaged, piece)
    if piece.start:
        lines = dropwhile(lambda line: not _begins_sentence(line[1]), lines)
    if piece.stop is not None and (first := next(lines, None)):
        after = text_lines(
            path, [], Piece(piece.stop, None, piece.first + piece.rows, entry=piece.entry)
        )
        rest = takewhile(lambda line: not _begins_sentence(line[1]), after)
        lines = chain([first], lines, rest)
    return m2_sentences(lines)


def _begins_sentence(line: str) -> bool:
    return line.startswith("S ") or line == "S"


def m2_sentences(lines: Iterable[tuple[int, str]]) -> Iterator[M2Sentence]:
    """Yield the sentences of numbered lines; a line that is neither S, A nor empty is damage."""
    sentence: M2Sentence | None = None
    for number, line in lines:
        if _begins_sentence(line):
            if sentence is not None:
                yield sentence
            sentence = M2Sentence(number, line[2:].split())
        elif line.startswith("A ") and sentence is not None:
            sentence.add(line, number)
        elif line.strip():
            sentence = sentence or M2Sentence(number, [])
            sentence.damaged.append(f"line {number} is not an M2 line")
    if sentence is not None:
        yield sentence


def text_head(path: str) -> bytes:
    """Return what a file of text begins with after white space; raises SourceError."""
    return head_of_text(path, _HEAD).removeprefix(BOM).lstrip()


def line_pieces(path: str, lines: int) -> list[Piece]:
    """Return the pieces of a file of text, of so many lines each; one if it is not cut."""
    whole = pieces_of_text(path)
    if is_url(path) or (compression_of(path) and not whole.bounds):
        return [ALL]
    found = with_sizes(line_ranges(path, 0, lines, lines, whole), whole)
    cut = [
        Piece(start, stop, lines * number, rows, size, entry)
        for number, ((start, stop, rows, entry), size) in enumerate(found)
    ]
    return cut if cut[1:] else [ALL]


def text_lines(path: str, damaged: list[str], piece: Piece = ALL) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without control characters; tabs and the like are spaces.

    Unreadable lines, and where a compressed file breaks off, go to `damaged`.
    """
    for number, line in enumerate(_lines(path, damaged, piece), piece.first + 1):
        if line is None:
            damaged.append(f"{path}:{number}: not UTF-8, or too long")
        else:
            yield number, line if line.isprintable() else line.translate(_NO_CONTROLS)


def _lines(path: str, damaged: list[str], piece: Piece = ALL) -> Iterator[str | None]:
    """Yield lines, None for one that cannot be read; damage ends them and goes to `damaged`."""
    try:
        yield from read_lines(read_parts(path, piece.start, piece.stop, piece.entry))
    except Damaged as damage:
        damaged.append(f"{path}: {damage}")
