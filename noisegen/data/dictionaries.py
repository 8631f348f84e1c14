"""Dictionaries, read from files nobody vouches for: mined ones, and those of translations.

A mined dictionary leads from a correct word to its wrong forms. Translations come as MUSE (Conneau
et al., 2018, "Word Translation Without Parallel Data"; a word and a translation per line), FreeDict
(TEI, an XML format: streamed, bounded, entities refused), TSV, Parquet, tables of languages, and
the packaged table.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.data.columns import by_reason
from noisegen.data.files import BOM, SCAN, Damaged, blocks, compression_of, first_line, read_parts
from noisegen.data.sources import is_string
from noisegen.data.tables import is_unicode
from noisegen.errors import LexiconError, SourceError, UsageError, did_you_mean
from noisegen.noise.lexicon import Entry, matchable
from noisegen.text.buffers import APOSTROPHES, WORD_BYTES_MAX
from noisegen.text.resources import DICTIONARIES

ANY = "*"  # the language of entries that hold for any
BYTES_MAX = 1 << 30  # of a file; a dictionary of a million entries has 40 MB
ENTRIES_MAX = 20_000_000
TEXT_MAX = 100  # characters of a word or phrase
NUMBER_MAX = 1 << 48
PROB_SLACK = 0.05  # probabilities rounded to two digits do not add up to 1
PARTS = 1_000_000  # the count of a probability of 1 where a file has no counts
ROWS = 8_192
TEXTS = ("lang", "clean", "noisy")
NUMBERS = ("count", "pages", "reverse_count")
_KNOWN = (*TEXTS, *NUMBERS, "weight", "prob")
_Place = tuple[str, dict[str, Any]]  # where a row is, and what it has


class Alternative(NamedTuple):
    """A wrong form of a word: `prob` is its share of the count of all wrong forms that are kept."""

    lang: str
    clean: str
    noisy: str
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    pages: int
    reverse_count: int
    prob: float


def load_dictionary(path: str | Path) -> list[Alternative]:
    """Return the entries of a Parquet, TSV or JSON file, by language, word and falling count.

    Where it has no counts they are `PARTS` times the probability; without probabilities, those are
    shares of the counts. Raises LexiconError of one line: file, row, and what is wrong.
    """
    path = Path(path)
    rows = {".parquet": parquet_rows, ".json": _json_rows}.get(path.suffix, _tsv_rows)
    try:
        if path.stat().st_size > BYTES_MAX:
            raise LexiconError(f"{path} has over {BYTES_MAX >> 30} GB: no dictionary")
        entries = [_entry(where, row) for where, row in rows(path)]
    except OSError as error:
        reason = error.strerror or str(error)
        raise LexiconError(f"cannot read dictionary {str(path)!r}: {reason}") from error
    except pa.ArrowException as error:
        raise LexiconError(f"{path} is not a Parquet file: {first_line(error)}") from error
    entries.sort(key=lambda entry: (entry.lang, entry.clean, -entry.count, entry.noisy))
    words = (list(group) for _, group in groupby(entries, key=lambda entry: entry[:2]))
    return list(chain.from_iterable(_with_shares(word, path) for word in words))


def parquet_rows(path: Path) -> Iterator[_Place]:
    """Yield where each row of a Parquet file is, and its known columns; raises LexiconError."""
    schema = pq.read_schema(path)
    names = _used_columns(schema.names, str(path))
    for name in names:
        kind, is_word = schema.field(name).type, name in TEXTS
        fits = (
            _is_text(kind) if is_word else pa.types.is_integer(kind) or pa.types.is_floating(kind)
        )
        if not fits:
            raise LexiconError(
                f"{path}: column {name!r} is no {'text' if is_word else 'number'} but {kind}"
            )
    texts = [name for name in names if name in TEXTS]  # as numbers of words that are stored once
    number = 0
    with pq.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        if file.metadata.num_rows > ENTRIES_MAX:
            raise LexiconError(f"{path} has over {ENTRIES_MAX:,} rows: no dictionary")
        for batch in file.iter_batches(ROWS, columns=names):
            _refuse_huge(batch, path)
            for values in zip(*map(_values, batch.columns), strict=True):
                number += 1
                yield f"{path} row {number}", dict(zip(batch.schema.names, values, strict=True))


def _refuse_huge(batch: pa.RecordBatch, path: Path) -> None:
    """Refuse huge words before they are copied out, as many times as they occur."""
    for column in batch.columns:
        words = column.dictionary if pa.types.is_dictionary(column.type) else column
        if _is_text(words.type) and (pc.max(pc.binary_length(words)).as_py() or 0) > 4 * TEXT_MAX:
            raise LexiconError(f"{path}: words of over {TEXT_MAX} characters")


def _values(column: pa.Array) -> list[Any]:
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    words = column.dictionary.to_pylist()  # decoded once, not for every row
    return [None if index is None else words[index] for index in column.indices.to_pylist()]


def _is_text(kind: pa.DataType) -> bool:
    return is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _used_columns(names: list[str], where: str) -> list[str]:
    """Return the columns that are used; raises LexiconError if one is missing."""
    missing = next((name for name in ("clean", "noisy") if name not in names), None)
    if missing is None and not {"count", "weight", "prob"} & set(names):
        missing = "count"
    if missing:
        hint = did_you_mean(missing, names)
        raise LexiconError(f"{where}: no column {missing!r} among: {', '.join(names[:20])}{hint}")
    return [name for name in _KNOWN if name in names]


def _tsv_rows(path: Path) -> Iterator[_Place]:
    """Yield the rows of a TSV with a header line; `# lang: xx` above it is their language."""
    names: list[str] = []
    used: list[str] = []
    lang = ANY
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate((line.rstrip("\r\n") for line in file), 1):
                where, fields = f"{path} line {number}", line.split("\t")
                if not names and line.startswith("#"):
                    key, _, value = line.lstrip("# ").partition(":")
                    if key.strip() == "lang":
                        lang = ANY if " " in value.strip() else value.strip()
                elif not names:
                    names, used = fields, _used_columns(fields, where)
                elif line and len(fields) != len(names):
                    raise LexiconError(
                        f"{where}: {len(fields)} columns, not {len(names)} (tabs between)"
                    )
                elif line:
                    row = dict(zip(names, fields, strict=True))
                    parsed = {name: _parsed(name, row[name], where) for name in used}
                    yield where, {"lang": lang} | parsed
    except UnicodeDecodeError as error:
        raise LexiconError(f"{path} is not UTF-8: {error.reason}") from error
    if not names:
        raise LexiconError(f"{path}: no header line")


def _parsed(name: str, text: str, where: str) -> str | int | float:
    if name in TEXTS:
        return text
    try:
        return float(text) if name == "prob" else int(text)
    except ValueError as error:
        raise LexiconError(f"{where}: {name} {text[:40]!r} is no number") from error


def _json_rows(path: Path) -> Iterator[_Place]:
    """Yield the rows of {correct: [[wrong, probability], ...]}."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LexiconError(f"{path} is not JSON: {str(error)[:100]}") from error
    if not isinstance(content, dict):
        raise LexiconError(f'{path}: a dictionary is {{"correct": [["wrong", 0.5], ...], ...}}')
    for clean, wrong in content.items():
        where = f"{path} at {clean[:40]!r}"
        if not isinstance(wrong, list):
            raise LexiconError(f"{where}: no list of [wrong, probability]")
        for pair in wrong:
            if not (isinstance(pair, list) and len(pair) == 2):
                raise LexiconError(f"{where}: {str(pair)[:40]} is not [wrong, probability]")
            yield where, {"clean": clean, "noisy": pair[0], "prob": pair[1]}


def _entry(where: str, row: dict[str, Any]) -> Alternative:
    """Return a row as an entry; its probability is 0 where it is not given."""
    lang, clean, noisy = (row.get(name, ANY) for name in TEXTS)
    for name, text in (("lang", lang), ("clean", clean), ("noisy", noisy)):
        if not isinstance(text, str) or text.split() != [text] or len(text) > TEXT_MAX:
            shown = repr(text if text is None or len(str(text)) <= 40 else f"{str(text)[:37]}...")
            raise LexiconError(f"{where}: {name} {shown} is not one word")
        if not is_unicode(text):
            raise LexiconError(f"{where}: {name} is not Unicode: half a surrogate pair")
    if clean == noisy:
        raise LexiconError(f"{where}: noisy {noisy!r} is equal to clean")
    prob = row.get("prob", 0.0)
    if "prob" in row and not (_is_number(prob, float | int) and 0 < prob <= 1):
        raise LexiconError(f"{where}: prob {str(prob)[:40]} is not a share above 0, up to 1")
    counted = row.get("count", row.get("weight", max(1, round(prob * PARTS))))
    numbers = (("count", counted, 1), *((name, row.get(name, 0), 0) for name in NUMBERS[1:]))
    for name, value, least in numbers:
        if not (_is_number(value, int) and least <= value <= NUMBER_MAX):
            raise LexiconError(
                f"{where}: {name} {str(value)[:40]} is no whole number from {least} up"
            )
    count, pages, reverse = (value for _, value, _ in numbers)
    return Alternative(lang, clean, noisy, count, pages, reverse, float(prob))


def _is_number(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _with_shares(word: list[Alternative], path: Path) -> list[Alternative]:
    """Check the entries of one word together, and give them shares where the file has none."""
    if len({entry.noisy for entry in word}) < len(word):
        raise LexiconError(f"{path}: {word[0].clean!r} has the same wrong form twice")
    total, counts = sum(entry.prob for entry in word), sum(entry.count for entry in word)
    if not total:
        return [entry._replace(prob=entry.count / counts) for entry in word]
    if abs(total - 1) > PROB_SLACK:
        raise LexiconError(f"{path}: the prob of {word[0].clean!r} add up to {total:.3g}, not to 1")
    if any(abs(entry.prob - entry.count / counts) > PROB_SLACK for entry in word):
        raise LexiconError(
            f"{path}: prob and count of {word[0].clean!r} disagree; give one of them"
        )
    return word


COMMON = DICTIONARIES / "bilingual" / "common.tsv"  # words of nine languages, any into any other
UNPACKED_MAX = 256 << 20  # of a file, decompressed; MUSE's largest have some 4 MB
GROWS_MAX = 50  # times that a compressed file may grow; words do so 3 to 10 times
SMALL_FILE = 1 << 16  # a compressed file below may grow as one of that size
TRANSLATIONS_MAX = 1_000_000  # that are held in memory; MUSE has some 100,000
WEIGHT_MAX = 1 << 40
BETWEEN = "|"  # two alternatives of a cell
FIRST = 60  # the weight of the first; the n-th has 1/n of it
WEIGHTS = ("weight", "count", "prob")


class Translation(NamedTuple):
    """A row of a dictionary; `reason` says why it cannot be read, '' if it can."""

    clean: str = ""
    noisy: str = ""
    weight: int = 1
    reason: str = ""


@dataclass(frozen=True)
class Translations:
    """The translations of a dictionary, words in the order of the file; dropped rows by reason."""

    entries: list[Entry]
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> int:
        """Words and phrases that have a translation."""
        return len({entry.clean for entry in self.entries})

    def by_word(self, word: str | None, most: int) -> list[list[Entry]]:
        """Return the entries of one word in any case, or of the first words of the file."""
        ordered = sorted(self.entries, key=lambda entry: entry.clean) if word else self.entries
        groups: dict[str, list[Entry]] = {}
        for entry in ordered:
            if word is None or entry.clean.lower() == word.lower():
                groups.setdefault(entry.clean, []).append(entry)
        return list(groups.values())[:most]


# The packaged dictionary.


@cache
def packaged_languages() -> tuple[str, ...]:
    """Return the languages of the packaged dictionary."""
    lines = COMMON.read_text("utf-8").splitlines()
    return tuple(next(line for line in lines if not line.startswith("#")).split("\t"))


def partner(lang: str, into: str | None) -> str:
    """Return the language of the translations: English by default, of English text Spanish.

    Raises UsageError where the packaged dictionary has not both.
    """
    wanted = into or ("es" if lang == "en" else "en")
    missing = [code for code in (lang, wanted) if code not in packaged_languages()]
    if missing or lang == wanted:
        problem = f"nothing for {missing[0]!r}" if missing else f"no {lang!r} into {wanted!r}"
        raise UsageError(
            f"codeswitch has {problem} (it has any two of: {', '.join(packaged_languages())}); "
            "give a dictionary: codeswitch:dictionary=FILE"
        )
    return wanted


def source_of(
    dictionary: str | Path | None, lang: str, into: str | None
) -> tuple[Path, str | None]:
    """Return the file that is read, the user's or the packaged one, and the other language."""
    return (Path(dictionary), into) if dictionary else (COMMON, partner(lang, into))


# Any dictionary.


def load_translations(path: str | Path, lang: str, into: str | None = None) -> Translations:
    """Read the translations of words in `lang`; raises LexiconError of one line.

    The file is Parquet by its ending; else what it begins with tells TEI, a table with a header
    line, and MUSE apart. It may be compressed (.gz, .xz, .bz2, .zst). `into` is the language of the
    translations if it is known.
    """
    path = Path(path)
    check_size(path)
    read = _parquet if path.suffix == ".parquet" else _text
    try:
        loaded = _gathered(read(path, lang, into), path)
    except (OSError, SourceError, Damaged) as error:
        reason = str(error).removeprefix(f"cannot read {path}: ")
        raise LexiconError(f"cannot read dictionary {str(path)!r}: {reason}") from error
    except pa.ArrowException as error:
        raise LexiconError(f"{path} is not a Parquet file: {first_line(error)}") from error
    bad, good = loaded.dropped["bad_line"], len(loaded.entries)
    if not good or bad > good:
        lost = f", dropped: {by_reason(loaded.dropped)}" if loaded.dropped else ""
        raise LexiconError(
            f"{path} is no bilingual dictionary: {good:,} translations{lost}; its lines are "
            "'word translation', or it has a header with clean and noisy"
        )
    return loaded


def check_size(path: Path) -> None:
    """Raise LexiconError for a file that is, or would unpacked be, too large for a dictionary."""
    if not path.is_file():
        return
    if compression_of(path):
        most = min(UNPACKED_MAX, GROWS_MAX * max(path.stat().st_size, SMALL_FILE))
        with suppress(SourceError, Damaged):  # raised again when it is read
            for _ in _bounded(read_parts(path), path, most):
                pass
    elif path.stat().st_size > UNPACKED_MAX:
        raise _too_large(path)


def _bounded(parts: Iterable[bytes], path: Path, most: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > most:
            raise _too_large(path)
        yield part


def _too_large(path: Path) -> LexiconError:
    return LexiconError(
        f"{path} is too large for a dictionary: it has over {UNPACKED_MAX >> 20} MB, or is "
        f"compressed and would grow over {GROWS_MAX} times"
    )


def _gathered(rows: Iterable[Translation], path: Path) -> Translations:
    """Return the rows that can be used; the weights of equal ones add up."""
    weights: dict[tuple[str, str], int] = {}
    dropped: Counter[str] = Counter()
    for row in rows:
        clean, noisy = (" ".join(text.split()) for text in (row.clean, row.noisy))
        pair = clean.replace(APOSTROPHES[1], APOSTROPHES[0]), noisy
        if reason := row.reason or _reason(*pair):
            dropped[reason] += 1
            continue
        weights[pair] = min(weights.get(pair, 0) + row.weight, WEIGHT_MAX)
        if len(weights) > TRANSLATIONS_MAX:
            raise LexiconError(f"{path} has over {TRANSLATIONS_MAX:,} translations: no dictionary")
    return Translations([Entry(*pair, weight) for pair, weight in weights.items()], dropped)


def _reason(clean: str, noisy: str) -> str:
    """Return why a translation cannot be used; '' if it can."""
    if not clean or not noisy:
        return "empty"
    if max(len(clean), len(noisy)) > TEXT_MAX:
        return "too_long"
    if any(len(word.encode()) > WORD_BYTES_MAX for word in clean.split(" ")):
        return "too_long"
    if not matchable(clean):
        return "signs"
    return "same_word" if clean.casefold() == noisy.casefold() else ""


def _parquet(path: Path, lang: str, into: str | None) -> Iterator[Translation]:
    for _, row in parquet_rows(path):
        if row.get("lang", "*") not in (lang, "*"):
            yield Translation(reason="other_language")
        elif not (isinstance(row["clean"], str) and isinstance(row["noisy"], str)):
            yield Translation(reason="empty")
        else:
            yield _weighted(row)


def _text(path: Path, lang: str, into: str | None) -> Iterator[Translation]:
    """Yield the rows of TEI, or of lines by their header if they have one."""
    parts = blocks(_bounded(read_parts(path), path, UNPACKED_MAX), SCAN)
    first = next(parts, b"").removeprefix(BOM)
    parts = chain([first], parts)
    if first.lstrip().startswith(b"<"):
        yield from tei_rows(parts, str(path))
        return
    rows_of: Callable[[str], Iterator[Translation]] | None = None
    for line in (line for part in parts for line in part.split(b"\n") if line.strip()):
        try:
            text = line.rstrip(b"\r").decode()
        except UnicodeDecodeError:
            yield Translation(reason="not_utf8")
            continue
        if text.startswith("# "):
            _check_language(text, lang, into, path)
        elif rows_of is not None:
            yield from rows_of(text)
        elif (rows_of := _layout(text.split("\t"), lang, into)) is None:
            rows_of = _muse
            yield from _muse(text)


def _check_language(line: str, lang: str, into: str | None, path: Path) -> None:
    """Raise LexiconError where the head says that the words are of other languages."""
    key, _, value = line[2:].partition(":")
    wanted = {"lang": lang, "into": into}.get(key.strip())
    known = value.split()
    if wanted and known and wanted not in known and "*" not in known:
        raise LexiconError(f"{path} has {key.strip()} {' '.join(known)}, not {wanted!r}")


def _layout(
    names: Sequence[str], lang: str, into: str | None
) -> Callable[[str], Iterator[Translation]] | None:
    """Return the reader of a table whose header line is this; None if it is none."""
    if {"clean", "noisy"} <= set(names):
        return lambda line: _table_row(names, line, lang, into)
    if {lang, into} <= set(names):
        return lambda line: _concept(dict(zip(names, line.split("\t"), strict=False)), lang, into)
    return None


def _muse(line: str) -> Iterator[Translation]:
    fields = line.split("\t") if "\t" in line else line.split()
    yield Translation(fields[0], fields[1]) if len(fields) == 2 else Translation(reason="bad_line")


def _table_row(
    names: Sequence[str], line: str, lang: str, into: str | None
) -> Iterator[Translation]:
    fields = line.split("\t")
    if len(fields) != len(names):
        yield Translation(reason="bad_line")
        return
    row = dict(zip(names, fields, strict=True))
    wanted = {"lang": lang, "into": into}
    if any(code and row.get(name, "*") not in (code, "*") for name, code in wanted.items()):
        yield Translation(reason="other_language")
    else:
        yield _weighted(row)


def _concept(row: dict[str, str], lang: str, into: str | None) -> Iterator[Translation]:
    """Yield the pairs of a row that has the words of several languages for one thing.

    The alternatives of a cell stand in the order of their use.
    """
    columns = (row.get(str(name), "").split(BETWEEN) for name in (lang, into))
    sides = [[(word, FIRST // rank) for rank, word in enumerate(words, 1)] for words in columns]
    for (clean, weight), (noisy, other_weight) in product(*sides):
        if clean and noisy:
            yield Translation(clean, noisy, max(weight * other_weight, 1))


def _weighted(row: dict[str, Any]) -> Translation:
    """Return a row with its weight: a count, `PARTS` times a probability, or 1 without either."""
    name = next((name for name in WEIGHTS if name in row), None)
    weight = row[name] if name else 1
    if name == "prob":
        with suppress(ValueError, TypeError):  # what is no probability is no weight either
            weight = max(1, round(float(weight) * PARTS)) if 0 < float(weight) <= 1 else weight
    text = str(weight)
    if not text.isdecimal() or not 1 <= int(text[:20]) <= WEIGHT_MAX:
        return Translation(reason="bad_weight")
    return Translation(row["clean"], row["noisy"], int(text))


# FreeDict's TEI.

ELEMENTS_MAX = 200  # elements within each other
WORDS_OF_ENTRY_MAX = 200  # headwords, or translations, that are read of one entry
CHARACTERS_MAX = 1_000  # of one headword or translation
WORDS_MAX = 5  # of a translation; a longer one is an explanation
_NOTES = re.compile(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}|<[^<>]*>")
_COMMA = re.compile("[,;]")


class _Entries:
    """The handlers of a parser: they gather headwords and translations, entry by entry.

    A translation is a `quote` in a `cit` whose type begins with 'trans', or a `tr` (TEI P4);
    those of examples and of related entries (`re`) stay out.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.rows: list[Translation] = []
        self.path: list[str] = []  # the open elements; a cit with its type
        self._forget()

    def _forget(self) -> None:
        self.headwords, self.translations = list[str](), list[str]()
        self.text: list[str] | None = None
        self.size = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        name = name.rpartition(":")[2]
        if len(self.path) >= ELEMENTS_MAX:
            raise LexiconError(f"{self.where}: over {ELEMENTS_MAX} elements within each other")
        self.path.append(f"cit {attributes.get('type', '')}" if name == "cit" else name)
        if name == "entry":
            self._forget()
        elif "re" not in self.path and (self._is_headword() or self._is_translation()):
            self.text, self.size = [], 0

    def _is_headword(self) -> bool:
        return self.path[-1] == "orth" and not any(name.startswith("cit") for name in self.path)

    def _is_translation(self) -> bool:
        cits = [name for name in self.path if name.startswith("cit ")]
        is_quoted = self.path[-1] in ("quote", "orth") and bool(cits)
        is_translated = all(name.startswith("cit trans") for name in cits)
        return is_translated and (is_quoted or (self.path[-1] == "tr" and "eg" not in self.path))

    def characters(self, text: str) -> None:
        """Take the text of a headword or translation."""
        if self.text is not None and self.size <= CHARACTERS_MAX:
            self.text.append(text[: CHARACTERS_MAX + 1])
            self.size += len(text)

    def end(self, name: str) -> None:
        """Close an element."""
        name = name.rpartition(":")[2]
        if self.text is not None and name in ("orth", "quote", "tr"):
            texts = self.headwords if self._is_headword() else self.translations
            if len(texts) < WORDS_OF_ENTRY_MAX:
                texts.append("".join(self.text))
            self.text = None
        elif name == "entry":
            plain = [_NOTES.sub(" ", text) for text in self.translations]
            meant = [part for text in plain for part in _COMMA.split(text)]
            for headword, noisy in product(self.headwords, meant):
                reason = "explanation" if len(noisy.split()) > WORDS_MAX else ""
                self.rows.append(Translation(_NOTES.sub(" ", headword), noisy, reason=reason))
        self.path.pop()

    def refuse(self, name: str, *_: object) -> None:
        """Refuse entities: they could expand without bound, or name files."""
        raise LexiconError(f"{self.where} declares an entity ({name[:40]!r}): not read")


def tei_rows(parts: Iterable[bytes], where: str) -> Iterator[Translation]:
    """Yield the translations of a TEI file given in parts; raises LexiconError if it is none."""
    parser, entries = expat.ParserCreate(), _Entries(where)
    parser.StartElementHandler, parser.EndElementHandler = entries.start, entries.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = entries.characters, entries.refuse
    try:
        for part in parts:
            parser.Parse(part, False)
            yield from entries.rows
            entries.rows.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise LexiconError(f"{where} is not XML: {error}") from error
