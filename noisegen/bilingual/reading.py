"""Bilingual dictionaries read from files: MUSE, FreeDict, TSV, Parquet, tables of languages.

MUSE (Conneau et al., 2018, "Word Translation Without Parallel Data") has a word and a translation
in a line, and as many lines for a word as it has translations.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import pyarrow as pa

from noisegen.bilingual.freedict import tei_rows
from noisegen.bilingual.translations import WEIGHT_MAX, Row, Translations, gathered
from noisegen.errors import LexiconError
from noisegen.inputs import COMPRESSIONS
from noisegen.mining.dictionary_reading import parquet_rows
from noisegen.readers import Damaged, blocks, first_line, opened

BYTES_MAX = 256 << 20  # of a file, decompressed; MUSE's largest have some 4 MB
GROWS_MAX = 50  # times that a compressed file may grow; words do so 3 to 10 times
SMALL = 1 << 16  # a compressed file below may grow as one of that size
BLOCK = 1 << 20
PARTS = 1_000_000  # the weight of a probability of 1
BETWEEN = "|"  # two alternatives of a cell
FIRST = 60  # the weight of the first; the n-th has 1/n of it
WEIGHTS = ("weight", "count", "prob")


@dataclass(frozen=True)
class Languages:
    """The language of the text, and that of the translations if it is known."""

    lang: str
    into: str | None = None


def load(path: str | Path, lang: str, into: str | None = None) -> Translations:
    """Read the translations of a file; raises LexiconError of one line.

    The file is Parquet by its ending; else what it begins with tells TEI, a table with a header
    line, and MUSE apart. It may be compressed (.gz, .xz, .bz2, .zst).
    """
    path, languages = Path(path), Languages(lang, into)
    check_size(path)
    try:
        read = _parquet if path.suffix == ".parquet" else _read
        found = gathered(read(path, languages), str(path))
    except (OSError, Damaged) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LexiconError(f"cannot read dictionary {str(path)!r}: {reason}") from error
    except pa.ArrowException as error:
        raise LexiconError(f"{path} is not a Parquet file: {first_line(error)}") from error
    return _usable(found, path)


def check_size(path: Path) -> None:
    """Raise LexiconError for a file that is, or would unpacked be, too large for a dictionary."""
    if not path.is_file():
        return
    size, ending = path.stat().st_size, _ending(path)
    if size > BYTES_MAX:
        raise _too_large(path)
    most = min(BYTES_MAX, GROWS_MAX * max(size, SMALL))
    with suppress(OSError, Damaged), opened(str(path), ending) as read:  # said when it is read
        grown = 0
        while ending and (part := read(BLOCK)):
            grown += len(part)
            if grown > most:
                raise _too_large(path)


def _too_large(path: Path) -> LexiconError:
    return LexiconError(
        f"{path} is too large for a dictionary: it has over {BYTES_MAX >> 20} MB, or is compressed "
        f"and would grow over {GROWS_MAX} times"
    )


def _ending(path: Path) -> str:
    """Return the ending of a compression, '' where there is none."""
    ending = path.name.lower().rpartition(".")[2]
    return ending if ending in COMPRESSIONS else ""


def _usable(found: Translations, path: Path) -> Translations:
    """Refuse a file that holds no dictionary."""
    bad, good = found.dropped["bad_line"], len(found.entries)
    if not good or bad > good:
        lost = ", ".join(f"{reason} {count:,}" for reason, count in found.dropped.most_common())
        raise LexiconError(
            f"{path} is no bilingual dictionary: {good:,} translations"
            f"{f', dropped: {lost}' if lost else ''}; its lines are 'word translation', or it has "
            "a header with clean and noisy"
        )
    return found


def _parquet(path: Path, languages: Languages) -> Iterator[Row]:
    for _, row in parquet_rows(path):
        if row.get("lang", "*") not in (languages.lang, "*"):
            yield Row(reason="other_language")
        elif not (isinstance(row["clean"], str) and isinstance(row["noisy"], str)):
            yield Row(reason="empty")
        else:
            yield _weighted(row["clean"], row["noisy"], next(_weights(row), 1))


def _read(path: Path, languages: Languages) -> Iterator[Row]:
    with opened(str(path), _ending(path)) as read:
        parts = _bounded(blocks(read, BLOCK), path)
        first = next(parts, b"").removeprefix(b"\xef\xbb\xbf")
        parts = chain([first], parts)
        if first.lstrip().startswith(b"<"):
            yield from tei_rows(parts, str(path))
        else:
            yield from _lines(parts, languages, str(path))


def _bounded(parts: Iterator[bytes], path: Path) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > BYTES_MAX:
            raise _too_large(path)
        yield part


def _lines(parts: Iterator[bytes], languages: Languages, where: str) -> Iterator[Row]:
    """Yield the rows of a file of lines, by its header line if it has one."""
    lines = (line.rstrip(b"\r") for part in parts for line in part.split(b"\n") if line.strip())
    read: Callable[[str], Iterator[Row]] | None = None
    for line in lines:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            yield Row(reason="not_utf8")
            continue
        if text.startswith("# "):
            _check_language(text, languages, where)
        elif read is None:
            read = _layout(text.split("\t"), languages) or _muse
            yield from _muse(text) if read is _muse else ()
        else:
            yield from read(text)


def _check_language(line: str, languages: Languages, where: str) -> None:
    """Raise LexiconError where the head says that the words are of other languages."""
    key, _, value = line[2:].partition(":")
    wanted = {"lang": languages.lang, "into": languages.into}.get(key.strip())
    known = value.split()
    if wanted and known and wanted not in known and "*" not in known:
        raise LexiconError(f"{where} has {key.strip()} {' '.join(known)}, not {wanted!r}")


def _layout(names: Sequence[str], languages: Languages) -> Callable[[str], Iterator[Row]] | None:
    """Return the reader of a table whose header line is this; None if it is none."""
    if {"clean", "noisy"} <= set(names):
        return lambda line: _table_row(names, line, languages)
    if {languages.lang, languages.into} <= set(names):
        return lambda line: _concept(names, line, languages)
    return None


def _muse(line: str) -> Iterator[Row]:
    fields = line.split("\t") if "\t" in line else line.split()
    yield Row(fields[0], fields[1]) if len(fields) == 2 else Row(reason="bad_line")


def _table_row(names: Sequence[str], line: str, languages: Languages) -> Iterator[Row]:
    fields = line.split("\t")
    if len(fields) != len(names):
        yield Row(reason="bad_line")
        return
    row = dict(zip(names, fields, strict=True))
    ours = {"lang": languages.lang, "into": languages.into}
    if any(row.get(name, "*") not in (wanted, "*") for name, wanted in ours.items() if wanted):
        yield Row(reason="other_language")
    else:
        yield _weighted(row["clean"], row["noisy"], next(_weights(row), 1))


def _concept(names: Sequence[str], line: str, languages: Languages) -> Iterator[Row]:
    """Yield the pairs of a row that has the words of several languages for one thing.

    The alternatives of a cell stand in the order of their use.
    """
    row = dict(zip(names, line.split("\t"), strict=False))
    cells = (row.get(str(name), "").split(BETWEEN) for name in (languages.lang, languages.into))
    sides = [[(word, FIRST // place) for place, word in enumerate(cell, 1)] for cell in cells]
    for (clean, one), (noisy, other) in product(*sides):
        if clean and noisy:
            yield Row(clean, noisy, max(one * other, 1))


def _weights(row: dict[str, Any]) -> Iterator[Any]:
    return (_share(row[name]) if name == "prob" else row[name] for name in WEIGHTS if name in row)


def _share(value: Any) -> Any:
    """Return a probability as a weight; what is none stays."""
    try:
        return max(1, round(float(value) * PARTS)) if 0 < float(value) <= 1 else value
    except (ValueError, TypeError):
        return value


def _weighted(clean: str, noisy: str, weight: Any) -> Row:
    text = str(weight)
    if not text.isdecimal() or not 1 <= int(text[:20]) <= WEIGHT_MAX:
        return Row(reason="bad_weight")
    return Row(clean, noisy, int(text))
