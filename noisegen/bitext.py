"""Parallel text in two languages as rows: aligned files of lines, tables, archives of OPUS.

Reading streams: memory does not grow with the corpus. Which files belong together, and in which
languages they are, is found by `bitext_files`.
"""

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice, zip_longest
from typing import NamedTuple

import pyarrow as pa

from noisegen.bitext_files import Bitext, all_bitext
from noisegen.cells import ROWS_MAX, Cells, in_brackets, stream_cells
from noisegen.errors import SourceError
from noisegen.inputs import BOM, COMPRESSIONS
from noisegen.language_codes import language_code
from noisegen.readers import CHUNK, SCAN, Damaged, Read, blocks, delimited, opened

TEXT_MAX = 20_000  # characters of a side: more is no sentence
_EXPANDS_MAX = 200  # times that a member of an archive may grow; text does so 10 times
_ENDED = "(ended)"  # stands for the lines that a file lacks; told apart by identity
_LANGS, _SET = ("source_lang", "target_lang"), "dataset"


class Pair(NamedTuple):
    """A sentence with its translation; languages as `language_code` gives them."""

    source: str
    target: str
    source_lang: str
    target_lang: str
    dataset: str


Kind = tuple[str, str, str]  # both languages and the data set
Row = tuple[str | None, str | None, Kind]
SCHEMA = pa.schema([(name, pa.string()) for name in Pair._fields])


def read_bitext(sources: Sequence[str], *, most: int | None = None) -> pa.Table:
    """Read bitext as a table of `SCHEMA`, at most `ROWS_MAX` rows.

    `sources` as in `find_bitext`; of each language pair of each data set come the first `most`
    rows. Raises SourceError for what is no bitext, and where no row is left.
    """
    dropped: Counter[str] = Counter()
    rows = list(islice(stream_bitext(all_bitext(sources), dropped, most), ROWS_MAX))
    if not rows:
        raise SourceError(f"no rows in {', '.join(sources)}{in_brackets(dropped)}")
    return pa.table([list(column) for column in zip(*rows, strict=True)], SCHEMA)


def stream_bitext(
    files: Iterable[Bitext], dropped: Counter[str], most: int | None = None
) -> Iterator[Pair]:
    """Yield rows, at most `most` of each language pair of each data set; count those left out.

    `dropped`: `empty_side`, `too_long`, `unreadable`; of tables whose rows say their languages also
    `unknown_language`, `same_language` and `over_limit`; files are not read beyond their limit.
    Raises SourceError for aligned files of unequal length, and for damage.
    """
    taken: Counter[Kind] = Counter()
    for file in files:
        rows = _table_rows(file, dropped) if file.columns else _aligned_rows(file)
        for source, target, kind in rows:
            if taken[kind] == most:
                if not file.is_mixed:
                    break
                dropped["over_limit"] += 1
            elif reason := _fault(source, target) or _misnamed(kind):
                dropped[reason] += 1
            else:
                taken[kind] += 1
                yield Pair((source or "").strip(), (target or "").strip(), *kind)


def _fault(source: str | None, target: str | None) -> str:
    """Return why a row is left out, '' if it is not."""
    if source is None or target is None:
        return "unreadable"
    if not (source.strip() and target.strip()):
        return "empty_side"
    return "too_long" if max(len(source), len(target)) > TEXT_MAX else ""


def _misnamed(kind: Kind) -> str:
    """Return why two languages are no languages of bitext, '' if they are."""
    if "" in kind[:2]:
        return "unknown_language"
    return "same_language" if kind[0] == kind[1] else ""


def _table_rows(file: Bitext, dropped: Counter[str]) -> Iterator[Row]:
    """Yield the rows of a table, with their languages and data set."""
    assert file.columns is not None
    read = Cells({})
    for cells in stream_cells(file.paths[0], [file.columns], "bitext", read):
        yield cells[0], cells[1], _said(dict(zip(read.columns, cells, strict=True)), file)
    if read.unread.pop("truncated", 0):
        raise SourceError(f"{file.paths[0]}: damaged, its end is missing; get the file again")
    lost = {"empty_side": read.dropped["empty_cell"], "unreadable": read.unread.total()}
    dropped.update({reason: count for reason, count in lost.items() if count})


def _said(row: dict[str, str], file: Bitext) -> Kind:
    """Return the languages, '' for a word that is none, and the data set: a row's or its file's."""
    one, other = (
        language_code(row[name]) or "" if name in row else lang
        for name, lang in zip(_LANGS, file.langs, strict=True)
    )
    return one, other, row.get(_SET, file.dataset)


def _aligned_rows(file: Bitext) -> Iterator[Row]:
    """Yield line by line; raises SourceError if one file ends before the other."""
    with ExitStack() as stack:
        sides = [_lines(stack.enter_context(_opened(file, path)), path) for path in file.paths]
        for row, (source, target) in enumerate(zip_longest(*sides, fillvalue=_ENDED)):
            if source is _ENDED or target is _ENDED:
                counts = [row + (side is not _ENDED) + sum(1 for _ in lines)
                          for side, lines in zip((source, target), sides, strict=True)]  # fmt: skip
                raise SourceError(
                    f"{file.paths[0]} has {counts[0]:,} lines and {file.paths[1]} {counts[1]:,}: "
                    "they are not aligned; get both from one release"
                )
            yield source, target, (*file.langs, file.dataset)


def _lines(read: Read, path: str) -> Iterator[str | None]:
    """Yield lines without their ends; None for one that is no UTF-8, or too long to be held."""
    rows = 0
    try:
        for block in blocks(read, SCAN):
            texts = block.removeprefix(b"" if rows else BOM)
            for line in delimited(texts, ("line",), tabs=False)["line"].to_pylist():
                rows += 1
                yield line
    except Damaged as damage:
        raise SourceError(f"{path}: damaged after line {rows:,} ({damage})") from damage


@contextmanager
def _opened(file: Bitext, path: str) -> Iterator[Read]:
    """Give the function that reads a file, or a member of an archive."""
    if file.archive:
        with _member(file.archive, path) as read:
            yield read
    else:
        ending = path.lower().rpartition(".")[2]
        try:
            with opened(path, ending if ending in COMPRESSIONS else "") as read:
                yield read
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def _member(archive: str, name: str) -> Iterator[Read]:
    """Give the function that reads a member of a zip archive, of no more than it declares."""
    try:
        with zipfile.ZipFile(archive) as packed, packed.open(name) as member:
            said = packed.getinfo(name)
            if said.file_size > _EXPANDS_MAX * max(said.compress_size, 1 << 10):
                raise SourceError(
                    f"{archive}: {name} would grow to {said.file_size:,} bytes, more than "
                    f"{_EXPANDS_MAX} times its size: that is no text"
                )

            def guarded(size: int) -> bytes:
                try:
                    return member.read(min(size, CHUNK))
                except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
                    raise Damaged(str(error)) from error

            yield guarded
    except (OSError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise SourceError(f"cannot read {name} in {archive}: {error}") from error
