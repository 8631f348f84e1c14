"""Which files make bitext: by the names that OPUS, Moses and others give them."""

import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import escape, glob
from itertools import groupby
from pathlib import Path

from noisegen.cells import name_of, named_source
from noisegen.errors import SourceError, UsageError
from noisegen.inputs import COMPRESSIONS, Columns, expand, file_input, whole
from noisegen.language_codes import is_known, language_code, language_pair

SIDES = ("source", "target")
MIXED = (*SIDES, "source_lang", "target_lang", "dataset")  # a table that says all itself
_MEMBERS_MAX = 10_000  # files that an archive may have
_UNPAIRED = ("noisy", "clean", "text")  # a table with one of these columns is no bitext
_COMPRESSED = re.compile(rf"\.(?:{'|'.join(COMPRESSIONS)})$", re.IGNORECASE)


@dataclass(frozen=True)
class Bitext:
    """Two aligned files of lines, or with `columns` a table; `archive` is the zip they lie in.

    With `is_mixed` the rows of the table may say languages and data set themselves.
    """

    paths: tuple[str, ...]
    langs: tuple[str, str]
    dataset: str
    columns: tuple[str, ...] | None = None
    archive: str = ""

    @property
    def is_mixed(self) -> bool:
        """Whether the rows may be of several languages or data sets."""
        return self.columns is not None and len(self.columns) > 2


def all_bitext(sources: Sequence[str], langs: tuple[str, str] | None = None) -> list[Bitext]:
    """Return the bitext of sources that must all be bitext; raises SourceError for one that is not.

    Sources and `langs` as in `find_bitext`; rows of hf:... say their languages themselves where
    nothing else does.
    """
    files: list[Bitext] = []
    for source in sources:
        found = find_bitext(source, langs)
        if not found and source.startswith("hf:"):
            found = [Bitext((source,), ("", ""), source, MIXED[:4])]
        if not found:
            expand([source])
            raise SourceError(
                f"{source} is no bitext, or does not say its languages: give A.de,B.en, a name "
                f"such as deu-eng.tsv, or de-en={source}"
            )
        files += found
    return files


def find_bitext(source: str, langs: tuple[str, str] | None = None) -> list[Bitext]:
    """Return the bitext that a SOURCE means, [] where it is none.

    SOURCE is `A.de,B.en` (two files of lines), the beginning that two files share (`corpus.de-en`
    of corpus.de-en.de and corpus.de-en.en), a zip of OPUS, a folder or glob of all such files, or a
    table (.tsv .csv .jsonl .parquet) with columns source and target, or named by two languages; of
    a table `deu-eng.tsv` without a header the first two columns count. Text may be .gz .zst .bz2
    .xz. `de-en=SOURCE` says the languages where names do not (and makes hf:... bitext); so do
    `langs`, of a SOURCE without it. Raises SourceError for a file without its twin, UsageError for
    languages that are none.
    """
    name, rest = named_source(source)
    said = language_pair(name) if rest != source else None
    if said is None:
        rest = source
    found = _found(rest, said or langs)
    if said is not None and not found:
        expand([rest])  # says so of a file that is missing, or of another format
        raise SourceError(f"{source} is no bitext: no two files and no table of two columns")
    return found


def _found(source: str, said: tuple[str, str] | None) -> list[Bitext]:
    if source.startswith("hf:"):
        return [Bitext((source,), _codes(said, source), source, SIDES)] if said else []
    if source in ("", "-"):
        return []
    if Path(source).exists():
        return _at(Path(source), said)
    if "," in source:
        return _two_files(source, said)
    if there := sorted(glob(source, recursive=True)):  # noqa: PTH207  (a path of any folder)
        return [file for one in there for file in _at(Path(one), said)]
    return _with_prefix(Path(source), said)


def _at(path: Path, said: tuple[str, str] | None) -> list[Bitext]:
    """Return the bitext of a folder or file that is there."""
    if path.is_dir():
        return [] if (path / "manifest.json").is_file() else _in_folder(path, said)
    if not path.is_file():
        return []
    return _in_archive(str(path), said) if path.suffix == ".zip" else _table(path, said)


def _two_files(source: str, said: tuple[str, str] | None) -> list[Bitext]:
    """Return the bitext of `A,B`."""
    paths = source.split(",")
    there = [Path(path).is_file() for path in paths]
    if not any(there):
        return []
    if len(paths) != 2 or not all(there):
        missing = next((path for path, found in zip(paths, there, strict=True) if not found), "")
        reason = f"{missing!r}: no such file" if missing else "give two files, not more"
        raise SourceError(f"{source}: {reason}")
    langs = said or tuple(filter(None, map(_last_code, paths)))
    if len(langs) != 2:
        raise UsageError(f"{source}: no languages in these names; write de-en={source}")
    return [_lines(paths, langs, _dataset(Path(paths[0]), langs))]


def _with_prefix(prefix: Path, said: tuple[str, str] | None) -> list[Bitext]:
    """Return the bitext of two files that begin with the same name and end with a language."""
    begin = f"{prefix.name}."
    there = sorted(prefix.parent.glob(f"{escape(begin)}*")) if prefix.name else []
    named = [path for path in there if language_code(_plain(path.name).removeprefix(begin))]
    if not named:
        return []
    if len(named) != 2:
        found = ", ".join(path.name for path in named)
        raise SourceError(f"{prefix}: two files that begin so are wanted, there are {found}")
    written = (language_pair(prefix.name) or ("", ""))[::-1]
    named.sort(key=lambda path: _last_part(path.name) == written[0])  # the order of the name
    langs = said or (_last_part(named[0].name), _last_part(named[1].name))
    return [_lines([str(path) for path in named], langs, _dataset(prefix, langs))]


def _in_folder(folder: Path, said: tuple[str, str] | None) -> list[Bitext]:
    """Return all bitext in a folder and below; other files are passed over."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    shown = [path for path in paths if not path.name.startswith(".")]
    found = _halves(map(str, shown), said)
    for path in shown:
        if path.suffix == ".zip":
            found += _in_archive(str(path), said)
        elif not file_input(path).skipped:
            found += _table(path, said)
    return found


def _in_archive(archive: str, said: tuple[str, str] | None) -> list[Bitext]:
    """Return the bitext in a zip archive, which is not unpacked."""
    try:
        with zipfile.ZipFile(archive) as packed:
            names = packed.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"cannot read {archive}: {error}") from error
    if len(names) > _MEMBERS_MAX:
        raise SourceError(f"{archive} has {len(names):,} files, more than {_MEMBERS_MAX:,}")
    found = _halves(names, said, archive)
    if not found:
        raise SourceError(f"{archive} has no bitext: no files such as NAME.de-en.de, NAME.de-en.en")
    return found


def _halves(paths: Iterable[str], said: tuple[str, str] | None, archive: str = "") -> list[Bitext]:
    """Return the files NAME.xx-yy.xx with their NAME.xx-yy.yy; raises SourceError without it."""
    half = {path: pair for path in paths if (pair := _half(path))}
    found = []
    ordered = sorted(half, key=lambda path: half[path])
    for (stem, langs), group in groupby(ordered, lambda path: half[path]):
        sides = {_last_part(path): path for path in group}
        if len(sides) != 2:
            missing = next(lang for lang in langs if lang not in sides)
            raise SourceError(
                f"{archive or stem}: {stem}.{missing} is missing, only its twin is there"
            )
        both = [sides[lang] for lang in langs]
        found.append(_lines(both, said or langs, _dataset(Path(stem), langs), archive))
    return found


def _half(path: str) -> tuple[str, tuple[str, str]] | None:
    """Return stem and languages of a file that is one side; None for any other."""
    plain = _plain(path)
    stem, _, lang = plain.rpartition(".")
    langs = language_pair(Path(stem).name)
    return (stem, langs) if langs is not None and lang in langs else None


def _table(path: Path, said: tuple[str, str] | None) -> list[Bitext]:
    """Return a table of two languages."""
    item = file_input(path)
    if item.skipped or item.kind == "txt":
        return []
    piece = whole(item, Columns())
    names = piece.schema.names if piece is not None else []
    langs = said or language_pair(path.name)
    spoken = _spoken(names)
    if not names or set(_UNPAIRED) & set(names):
        return []
    if set(SIDES) <= set(names):
        says = set(MIXED[2:4]) <= set(names)
        langs = langs or language_pair(path.absolute().parent.name)
        if langs is None and not says:
            raise UsageError(f"{path}: no languages in its name or columns; write de-en={path}")
        columns = tuple(name for name in MIXED if name in names) if says else SIDES
        both = _codes(langs or ("", ""), str(path))
        return [Bitext((str(path),), both, _dataset(path, langs), columns)]
    if len(spoken) == 2:
        return [Bitext((str(path),), _codes(spoken, str(path)), _dataset(path, langs), spoken)]
    if langs is None or len(spoken) > 2 or item.kind not in ("tsv", "csv"):
        return []
    return [Bitext((str(path),), _codes(langs, str(path)), _dataset(path, langs), ("1", "2"))]


def _spoken(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are named by languages; beside others `id` is a number."""
    return tuple(name for name in names if is_known(name) and (name != "id" or len(names) == 2))


def _lines(paths: Sequence[str], langs: tuple[str, ...], dataset: str, archive: str = "") -> Bitext:
    return Bitext(tuple(paths), _codes(langs, ",".join(paths)), dataset, archive=archive)


def _codes(langs: Sequence[str], source: str) -> tuple[str, str]:
    """Return the codes of both languages; raises UsageError for a source that has one alone."""
    one, other = (language_code(lang) or lang for lang in langs)
    if one and one == other:
        raise UsageError(
            f"{source} is {one} on both sides: bitext is in two languages; of noisy and clean text "
            "give a table with the columns noisy and clean"
        )
    return one, other


def _dataset(path: Path, langs: Sequence[str] | None) -> str:
    """Return what a file is called without its languages, or else its folder."""
    name = name_of(_plain(path.name))
    if langs:
        name = re.sub(rf"(^|[._-]){re.escape('-'.join(langs))}(?=$|[._-])", "", name)
    while (end := name.rpartition(".")) and end[0] and language_code(end[2]):
        name = end[0]
    return name.strip(".-_") or path.resolve().parent.name


def _plain(name: str) -> str:
    """Return a name without the ending of a compression."""
    return _COMPRESSED.sub("", name)


def _last_part(name: str) -> str:
    return _plain(name).rpartition(".")[2]


def _last_code(path: str) -> str | None:
    """Return the language at the end of a name: 'newstest-ref.deu.txt' is deu."""
    parts = _plain(Path(path).name).removesuffix(".txt").split(".")
    return next(
        (one for one in (parts[-1], parts[-1].rpartition("-")[2]) if language_code(one)), None
    )
