"""Parallel text in two languages: files found by names as in OPUS, and the rows read from them."""

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import escape, glob
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from noisegen.data.columns import TextColumns, column_named, stream_columns
from noisegen.data.decoders import SMALL, without_compression
from noisegen.data.files import Damaged
from noisegen.data.formats.layouts import layouts_of
from noisegen.data.formats.registry import file_of, format_of, name_of, read_head
from noisegen.data.lines import read_parts, refuse_other_encoding
from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import expand, is_hub, named_source
from noisegen.data.tables import UnequalFiles, lines_together, undamaged_lines
from noisegen.errors import SourceError, UsageError
from noisegen.options import Strings, listed
from noisegen.text.languages import is_known_language, language_code, language_pair

TEXT_MAX = 20_000  # characters of a source or target text; a row with a longer text is dropped
SIDES = ("source", "target")
# Columns of a table whose rows name their languages; `dataset` may be missing
MIXED = (*SIDES, "source_lang", "target_lang", "dataset")
_MEMBERS_MAX = 10_000  # most files in a zip archive that is read
# Most decompressed bytes per compressed byte of a file in a zip archive; text has about 10
_EXPANDS_MAX = 200
_UNPAIRED = ("noisy", "clean", "text")  # a table with one of these columns is no bitext
_SIDE_ENDS = ("src", "trg")
_MUSE = re.compile(r"([a-z]{2,3}-[a-z]{2,3})(?:\.\d+-\d+)?\.txt")  # name of a dictionary of MUSE
_WORD_LINES = 100  # lines at the beginning of such a file that must have two words each
# Ending that NTREX and FLORES put after the language in a file name
_TEXT_END = re.compile(r"\.(?:txt|dev|devtest)$")

Languages = tuple[str, str]  # source and target language; '' for an unknown language
Kind = tuple[str, str, str]  # source language, target language, name of the data set


@dataclass(frozen=True)
class Bitext:
    """Where bitext is stored: in two text files whose lines correspond, or in a table.

    A dictionary of MUSE is one text file, with a word and its translation per line. `columns` names
    the columns of a table; it is None for text files. `archive` is the zip archive
    that holds the text files, or ''. In files of the BUCC shared task the lines do not correspond,
    but begin with ids; each line of a third file, `gold`, has the ids of a sentence and its
    translation.
    """

    paths: tuple[str, ...]
    langs: Languages
    dataset: str
    columns: tuple[str, ...] | None = None
    archive: str = ""
    gold: str = ""

    @property
    def is_mixed(self) -> bool:
        """Whether the languages are given per row, in columns of the table."""
        return self.columns is not None and len(self.columns) > 2


class BitextRow(NamedTuple):
    """A sentence with its translation; languages are codes that `language_code` returns."""

    source: str
    target: str
    source_lang: str
    target_lang: str
    dataset: str


# Functions that find files of bitext.


def all_bitext(sources: Strings, langs: Languages | None = None) -> list[Bitext]:
    """Return the bitext of all sources; raises SourceError for a source that is not bitext.

    `find_bitext` explains `sources` and `langs`. If no languages are given for an hf:... source,
    its rows must name their languages in the columns source_lang and target_lang.
    """
    files: list[Bitext] = []
    for source in listed(sources):
        bitext = find_bitext(source, langs)
        if not bitext and is_hub(source):
            bitext = [Bitext((source,), ("", ""), source, MIXED[:4])]
        if not bitext:
            expand([source])
            raise SourceError(
                f"{source} is not bitext, or does not name its languages: give A.de,B.en, a name "
                f"such as deu-eng.tsv, or de-en={source}"
            )
        files += bitext
    return files


def find_bitext(source: str, langs: Languages | None = None) -> list[Bitext]:
    """Return the bitext of a SOURCE; [] if it is not bitext.

    SOURCE is one of:
    - `A.de,B.en`: two files of lines; B may be a glob, for a pair of A with each file;
    - `corpus.de-en`: the common beginning of corpus.de-en.de and corpus.de-en.en;
    - a zip archive of OPUS;
    - a dictionary of MUSE: `de-en.txt` or `de-en.0-5000.txt`, a word and its translation per line;
    - a table (.tsv .csv .jsonl .parquet) with columns source and target, or two columns named
      after languages; of a file `deu-eng.tsv` without a header line the first two columns;
    - a folder or glob of such files, of files de-en/test.src and de-en/test.trg, or of BUCC's
      files, which have a third file ending in .gold.
    Text files may be compressed (.gz .zst .bz2 .xz). If the file names do not say the languages,
    write `de-en=SOURCE` or give `langs`; without either, an hf:... source gives []. Raises
    SourceError if one of two files is missing, UsageError for unknown languages.
    """
    name, named = named_source(source)
    own = language_pair(name) if named != source else None
    bitext = _find(named, own) if own else _find(source, langs)
    if own and not bitext:
        expand([named])  # SourceError if the file is missing or of an unknown format
        raise SourceError(f"{source} is not bitext: neither two files nor a table with two columns")
    return bitext


def _find(source: str, langs: Languages | None) -> list[Bitext]:
    if is_hub(source):
        return [Bitext((source,), _codes(langs, source), source, SIDES)] if langs else []
    if source in ("", "-"):
        return []
    if Path(source).exists():
        return _at(Path(source), langs)
    if "," in source:
        return _with_each(source, langs)
    if paths := sorted(glob(source, recursive=True)):  # noqa: PTH207  (a path of any folder)
        return [file for path in paths for file in _at(Path(path), langs)]
    return _with_prefix(Path(source), langs)


def _at(path: Path, langs: Languages | None) -> list[Bitext]:
    """Return the bitext in a file, or in a folder and its subfolders; other files are skipped."""
    if path.is_file():
        return _in_file(path, langs)
    if not path.is_dir() or (path / "manifest.json").is_file():
        return []
    paths = sorted(file for file in path.rglob("*") if file.is_file())
    shown = [file for file in paths if not file.name.startswith(".")]
    bitext = _paired_files(map(str, shown), langs)
    for file in shown:
        bitext += _at(file, langs)
    return bitext


def _with_each(source: str, langs: Languages | None) -> list[Bitext]:
    """Return the bitext of `A,B`, or of A with each file of a glob B: 'eng_Latn.devtest,*.devtest'.

    The glob may match A, which is left out.
    """
    first, _, last = source.partition(",")
    others = sorted({*glob(last)} - {first})  # noqa: PTH207  (a path of any folder)
    if not first or Path(last).exists() or not others:
        return _two_files(source, langs)
    return [file for path in others for file in _two_files(f"{first},{path}", langs)]


def _in_file(path: Path, langs: Languages | None) -> list[Bitext]:
    """Return the bitext in an archive, a dictionary of MUSE or a table; [] for any other file."""
    if path.suffix == ".zip":
        return _in_archive(str(path), langs)
    if pair := _MUSE.fullmatch(without_compression(path.name)):
        return _dictionary(path, langs or language_pair(pair[1]))
    return _table(path, langs)


def _two_files(source: str, langs: Languages | None) -> list[Bitext]:
    """Return the bitext of `A,B`, two files of lines; [] if neither file exists.

    Raises SourceError if one file is missing or a third is named, UsageError if the file names do
    not say the languages and `langs` is None.
    """
    paths = source.split(",")
    missing = [path for path in paths if not Path(path).is_file()]
    if len(missing) == len(paths):
        return []
    if len(paths) != 2 or missing:
        reason = f"{missing[0]!r}: no such file" if missing else "give two files, not more"
        raise SourceError(f"{source}: {reason}")
    named = langs or [_language_in(Path(path).name) for path in paths]
    if not all(named):
        raise UsageError(f"{source}: no languages in these names; write de-en={source}")
    return [_aligned(paths, named, Path(paths[0]))]


def _language_in(name: str) -> str:
    """Return the language at the end of a file name, deu in 'newstest-ref.deu.txt'; '' if none."""
    end = _TEXT_END.sub("", without_compression(name)).rpartition(".")[2]
    return next(filter(language_code, (end, end.rpartition("-")[2])), "")


def _with_prefix(prefix: Path, langs: Languages | None) -> list[Bitext]:
    """Return the bitext of two files with a common prefix: 'news.de' and 'news.en' for 'news'.

    Returns [] if no file 'news.LANGUAGE' exists. Raises SourceError for one such file, or over two.
    """
    begin = f"{prefix.name}."
    paths = sorted(prefix.parent.glob(f"{escape(begin)}*")) if prefix.name else []
    ends = {without_compression(path.name).removeprefix(begin): path for path in paths}
    sides = {end: path for end, path in ends.items() if language_code(end)}
    if not sides:
        return []
    if len(sides) != 2:
        names = ", ".join(path.name for path in sides.values())
        raise SourceError(f"{prefix}: two files that begin so are wanted, there are {names}")
    first = (language_pair(prefix.name) or ("", ""))[0]
    # If the prefix names two languages, the file in the first language is the source
    named = sorted(sides, key=lambda lang: lang != first)
    return [_aligned([str(sides[lang]) for lang in named], langs or named, prefix)]


def _in_archive(archive: str, langs: Languages | None) -> list[Bitext]:
    """Return the bitext in a zip archive, which is read without unpacking it."""
    try:
        with zipfile.ZipFile(archive) as packed:
            names = packed.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"cannot read {archive}: {error}") from error
    if len(names) > _MEMBERS_MAX:
        raise SourceError(f"{archive} has {len(names):,} files, more than {_MEMBERS_MAX:,}")
    bitext = _paired_files(names, langs, archive)
    if not bitext:
        raise SourceError(f"{archive} has no bitext: no files such as NAME.de-en.de, NAME.de-en.en")
    return bitext


class _PairNames(NamedTuple):
    """Names of two aligned files: common stem, two languages, and the ending of each file."""

    stem: str
    langs: Languages
    ends: tuple[str, str]


def _pair_names(path: str, langs: Languages | None) -> tuple[_PairNames | None, str]:
    """Return the names of `path` and the file aligned with it, and the ending of `path`.

    The names are None if neither the file name nor its folder names two languages.
    """
    stem, _, end = without_compression(path).rpartition(".")
    if end in _SIDE_ENDS:
        pair = language_pair(Path(path).absolute().parent.name) or langs
        ends = _SIDE_ENDS
    else:
        pair = language_pair(Path(stem).name)
        ends = pair or ("", "")
    if pair is None or end not in ends:
        return None, end
    return _PairNames(stem, pair, ends), end


def _paired_files(paths: Iterable[str], langs: Languages | None, archive: str = "") -> list[Bitext]:
    """Return the bitext of files NAME.xx-yy.xx and NAME.xx-yy.yy among `paths`.

    Files xx-yy/NAME.src and xx-yy/NAME.trg, as in the Tatoeba Challenge, are paired too. Raises
    SourceError if one file of a pair is missing.
    """
    # For each two aligned files, {ending: path}
    found: dict[_PairNames, dict[str, str]] = {}
    for path in sorted(paths):
        names, end = _pair_names(path, langs)
        if names is not None:
            found.setdefault(names, {})[end] = path
    bitext = []
    for (stem, pair, ends), sides in sorted(found.items()):
        for end in ends:
            if end not in sides:
                where = f"{archive or stem}: {stem}.{end}"
                raise SourceError(f"{where} is missing, only its twin is there")
        bitext.append(_aligned([sides[end] for end in ends], langs or pair, Path(stem), archive))
    return bitext


def _table(path: Path, given: Languages | None) -> list[Bitext]:
    """Return the bitext of a file that is a table in two languages; [] for any other file."""
    file = file_of(path)
    names = _table_names(file)
    if not names or not {*_UNPAIRED}.isdisjoint(names):
        return []
    langs = given or language_pair(path.name)
    if {*SIDES} <= {*names}:
        return [_table_of_sides(path, names, langs or language_pair(path.absolute().parent.name))]
    by_language = _columns_by_language(names)
    if len(by_language) == 2:
        columns, both = by_language, by_language
    elif len(by_language) < 2 and langs is not None and format_of(file).has_header:
        columns, both = ["1", "2"], [*langs]
    else:
        return []
    codes, dataset = _codes(both, str(path)), _dataset(path, langs)
    return [Bitext((str(path),), codes, dataset, tuple(columns))]


def _dictionary(path: Path, langs: Languages | None) -> list[Bitext]:
    """Return the bitext of a dictionary of MUSE; [] if a line at its beginning is not two words."""
    lines = undamaged_lines(read_parts(path), path)
    head = [line.split() for line in islice(lines, _WORD_LINES) if line is not None]
    if langs is None or not head or any(len(words) != 2 for words in head):
        return []
    return [Bitext((str(path),), _codes(langs, str(path)), _dataset(path, langs))]


def _table_names(file: FileRange) -> list[str]:
    """Return the names of a table's columns; [] for plain text.

    A column with another name in published tables ('sourcestring') adds its usual name ('source').
    """
    is_table = file.format != "txt" or layouts_of(file.path)
    headed = read_head(file, Columns()) if is_table else None
    names = headed.schema.names if headed is not None else []
    return [*names, *(name for name in MIXED if column_named(name, names) in names)]


def _table_of_sides(path: Path, names: Sequence[str], langs: Languages | None) -> Bitext:
    """Return the bitext of a table with the columns source and target.

    Columns source_lang and target_lang name the languages of each row. Raises UsageError if the
    table lacks these columns and `langs` is None.
    """
    columns: tuple[str, ...] = SIDES
    if {*MIXED[2:4]} <= {*names}:
        columns = tuple(name for name in MIXED if name in names)
    elif langs is None:
        raise UsageError(f"{path}: no languages in its name or columns; write de-en={path}")
    codes = _codes(langs or ("", ""), str(path))
    return Bitext((str(path),), codes, _dataset(path, langs), columns)


def _columns_by_language(names: Sequence[str]) -> list[str]:
    """Return the column names that are languages.

    In a table of three or more columns, `id` means row ids, not Indonesian.
    """
    spoken = filter(is_known_language, names)
    return [name for name in spoken if name != "id" or len(names) == 2]


def _aligned(paths: Sequence[str], langs: Sequence[str], stem: Path, archive: str = "") -> Bitext:
    codes = _codes(langs, ",".join(paths))
    gold = Path(without_compression(paths[0])).with_suffix(".gold")
    pairs = str(gold) if not archive and gold.is_file() else ""
    return Bitext(tuple(paths), codes, _dataset(stem, langs), archive=archive, gold=pairs)


def _codes(langs: Sequence[str], source: str) -> Languages:
    """Return the codes of source and target language; raises UsageError if they are equal."""
    source_lang, target_lang = (language_code(lang) or lang for lang in langs)
    if source_lang and source_lang == target_lang:
        raise UsageError(
            f"{source} is {source_lang} on both sides: bitext is in two languages; of noisy and "
            "clean text give a table with the columns noisy and clean"
        )
    return source_lang, target_lang


def _dataset(path: Path, langs: Sequence[str] | None) -> str:
    """Return the name of a data set: 'news' for a file 'news.de-en.tsv'.

    If the file name has only languages ('de-en.tsv'), the name of the folder is returned.
    """
    name = name_of(without_compression(path.name))
    if langs:
        name = re.sub(rf"(^|[._-]){re.escape('-'.join(langs))}(?=$|[._-])", "", name)
    while (end := name.rpartition(".")) and end[0] and language_code(end[2]):
        name = end[0]
    return name.strip(".-_") or path.resolve().parent.name


# Functions that read the rows of bitext.


def stream_bitext(
    files: Iterable[Bitext], dropped: Counter[str], most: int | None = None
) -> Iterator[BitextRow]:
    """Yield rows of bitext; count dropped rows by reason in `dropped`.

    At most `most` rows are yielded per data set and language pair. Further rows are not read; in a
    table whose rows name their languages, they are dropped as `over_limit`. The other reasons are
    `empty_side`, `too_long`, `unreadable`, `unknown_language` and `same_language`. Raises
    SourceError for a damaged file, and for two text files with different numbers of lines.
    """
    yielded: Counter[Kind] = Counter()
    for file in files:
        for source, target, kind in _rows_of(file, dropped):
            if yielded[kind] == most:
                if not file.is_mixed:
                    break
                dropped["over_limit"] += 1
            elif reason := _reason(source, target, kind):
                dropped[reason] += 1
            else:
                yielded[kind] += 1
                yield BitextRow((source or "").strip(), (target or "").strip(), *kind)


def _rows_of(file: Bitext, dropped: Counter[str]) -> Iterator[tuple[str | None, str | None, Kind]]:
    """Yield source text, target text and `Kind` per row of a file; None for an unreadable text."""
    if file.columns:
        return _table_rows(file, dropped)
    if file.gold:
        return _gold_rows(file)
    return _word_rows(file) if len(file.paths) == 1 else _aligned_rows(file)


def _reason(source: str | None, target: str | None, kind: Kind) -> str:
    """Return the reason why a row with these texts and languages is dropped; '' if it is kept."""
    if source is None or target is None:
        return "unreadable"
    if not (source.strip() and target.strip()):
        return "empty_side"
    if max(len(source), len(target)) > TEXT_MAX:
        return "too_long"
    if "" in kind[:2]:
        return "unknown_language"
    return "same_language" if kind[0] == kind[1] else ""


def _table_rows(file: Bitext, dropped: Counter[str]) -> Iterator[tuple[str, str, Kind]]:
    """Yield source text, target text and `Kind` (languages and data set) per row of a table.

    Rows that do not name their languages or data set get the languages and data set of `file`. Rows
    that cannot be read are counted in `dropped`.
    """
    columns = TextColumns({})
    for texts in stream_columns(file.paths[0], [file.columns or ()], "bitext", columns):
        row = dict(zip(columns.columns, texts, strict=True))
        source_lang, target_lang = file.langs
        if file.is_mixed:
            source_lang = language_code(row[MIXED[2]]) or ""
            target_lang = language_code(row[MIXED[3]]) or ""
        yield texts[0], texts[1], (source_lang, target_lang, row.get(MIXED[4], file.dataset))
    if columns.unread.pop("truncated", 0):
        raise SourceError(f"{file.paths[0]}: damaged, its end is missing; get the file again")
    lost = {"empty_side": columns.dropped["empty_cell"], "unreadable": columns.unread.total()}
    dropped.update({reason: count for reason, count in lost.items() if count})


def _aligned_rows(file: Bitext) -> Iterator[tuple[str | None, str | None, Kind]]:
    """Yield each line of the first file with the same line of the second.

    Raises SourceError if one file ends before the other.
    """
    try:
        for source, target in lines_together([_lines(file, path) for path in file.paths]):
            yield source, target, (*file.langs, file.dataset)
    except UnequalFiles as error:
        raise SourceError(
            f"{file.paths[0]} has {error.counts[0]:,} lines and {file.paths[1]} "
            f"{error.counts[1]:,}: they are not aligned; get both from one release"
        ) from error


def _gold_rows(file: Bitext) -> Iterator[tuple[str | None, str | None, Kind]]:
    """Yield both sentences of each pair that the gold file lists by ids, as in BUCC."""
    sides = [
        dict(line.split("\t", 1) for line in _lines(file, path) if line and "\t" in line)
        for path in file.paths
    ]
    for line in filter(None, _lines(file, file.gold)):
        source, _, target = line.partition("\t")
        yield sides[0].get(source), sides[1].get(target), (*file.langs, file.dataset)


def _word_rows(file: Bitext) -> Iterator[tuple[str | None, str | None, Kind]]:
    """Yield the word and its translation per line of a dictionary; None for a line without both."""
    for line in _lines(file, file.paths[0]):
        words = (line or "").split()
        source, target = words if len(words) == 2 else (None, None)
        yield source, target, (*file.langs, file.dataset)


def _lines(file: Bitext, path: str) -> Iterator[str | None]:
    """Yield the lines of one file of bitext, None for an unreadable line.

    Raises SourceError for a damaged file.
    """
    parts = _member_parts(file.archive, path) if file.archive else read_parts(path)
    return undamaged_lines(parts, path)


def _member_parts(archive: str, name: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in a zip archive, part by part.

    Raises SourceError if the file has over `_EXPANDS_MAX` decompressed bytes per compressed byte.
    """
    try:
        with zipfile.ZipFile(archive) as packed, packed.open(name) as member:
            info = packed.getinfo(name)
            if info.file_size > _EXPANDS_MAX * max(info.compress_size, 1 << 10):
                raise SourceError(
                    f"{archive}: {name} would grow to {info.file_size:,} bytes, more than "
                    f"{_EXPANDS_MAX} times its size, which text does not"
                )
            try:
                refuse_other_encoding(member.peek(), name)  # type: ignore[attr-defined]
                yield from iter(lambda: member.read(SMALL), b"")
            except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
                raise Damaged(str(error)) from error
    except (OSError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise SourceError(f"cannot read {name} in {archive}: {error}") from error
