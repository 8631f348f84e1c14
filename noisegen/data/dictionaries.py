"""Mined dictionaries and dictionaries of translations, read from files that may be damaged.

A mined dictionary lists the wrong forms of each correct word. Dictionaries of translations may be
in the format of MUSE (a word and a translation per line; Conneau et al., 2018, "Word Translation
Without Parallel Data"), of FreeDict (TEI, an XML format), TSV, Parquet, or tables with a column per
language, as the packaged table.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby, product
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from xml.parsers import expat

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Meta

from noisegen.data.columns import by_reason
from noisegen.data.decoders import compression_of
from noisegen.data.files import SCAN, Damaged, first_line, refuse_endless
from noisegen.data.lines import BOM, blocks, read_parts
from noisegen.data.tables import is_string, read_lines
from noisegen.errors import LexiconError, SourceError, UsageError, did_you_mean
from noisegen.noising.lexicon import Entry, matchable
from noisegen.text.buffers import APOSTROPHES, WORD_BYTES_MAX
from noisegen.text.resources import DICTIONARIES

ANY = "*"  # language of entries that apply to text in every language
BYTES_MAX = 1 << 30  # most bytes of a mined dictionary; a million entries take 40 MB
ENTRIES_MAX = 20_000_000
TEXT_MAX = 100  # most characters of a word or phrase
# Most that rounded probabilities of a word may differ: in sum from 1, each from its count's share
PROB_SLACK = 0.05
PARTS = 1_000_000  # factor that turns a probability into a count, in a file without counts
ROWS = 8_192
TEXTS = ("lang", "clean", "noisy")
WEIGHTS = ("count", "weight", "prob")
_MAY_BE_ZERO = ("pages", "reverse_count", "frequency")
_KNOWN = (*TEXTS, *WEIGHTS, *_MAY_BE_ZERO)
COUNT_MAX = 1 << 48

# Per row: its location for error messages ('words.tsv line 3'), and its values by column
_Rows = Iterator[tuple[str, dict[str, Any]]]
_Word = Annotated[str, Meta(max_length=TEXT_MAX, pattern=r"\A\S+\Z")]


class _Weights(msgspec.Struct):
    """Columns that weight a row among the rows of its word; 0 if the file lacks the column."""

    count: Annotated[int, Meta(ge=1, le=COUNT_MAX)] = 0
    weight: Annotated[int, Meta(ge=1, le=COUNT_MAX)] = 0
    prob: Annotated[float, Meta(gt=0, le=1)] = 0.0


class _MinedRow(_Weights, kw_only=True):
    """Row of a mined dictionary; msgspec refuses values outside the limits."""

    clean: _Word
    noisy: _Word
    lang: _Word = ANY
    pages: Annotated[int, Meta(ge=0, le=COUNT_MAX)] = 0
    reverse_count: Annotated[int, Meta(ge=0, le=COUNT_MAX)] = 0
    frequency: Annotated[int, Meta(ge=0, le=COUNT_MAX)] = 0


class Alternative(NamedTuple):
    """A wrong form of a word, in a mined dictionary.

    `count` says how often the wrong form was found, and `prob` is its share among all kept wrong
    forms of the word. `frequency` counts correct uses of the word; 0 if unknown.
    """

    lang: str
    clean: str
    noisy: str
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    pages: int
    reverse_count: int
    prob: float
    frequency: int = 0


def load_dictionary(path: str | Path) -> list[Alternative]:
    """Return the entries of a mined dictionary: a Parquet, TSV or JSON file.

    They are sorted by language, word and falling count. A row without a count has its weight as
    count, or else a million (`PARTS`) times its probability. A word without probabilities gets them
    from its counts. Raises LexiconError with file, row and problem in one line.
    """
    path = Path(path)
    check_size(path, BYTES_MAX)
    rows = {".parquet": _parquet_rows, ".json": _json_rows}.get(path.suffix, _tsv_rows)
    is_text = rows is _tsv_rows
    with _reading(path):
        entries = [_alternative(where, values, is_text) for where, values in rows(path)]
    entries.sort(key=lambda entry: (entry.lang, entry.clean, -entry.count, entry.noisy))
    words = (list(group) for _, group in groupby(entries, key=lambda entry: entry[:2]))
    return list(chain.from_iterable(_with_shares(word, path) for word in words))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Within the `with` block, turn errors of reading `path` into a LexiconError of one line."""
    try:
        yield
    except (OSError, SourceError, Damaged) as error:
        reason = first_line(error).removeprefix(f"cannot read {path}: ")
        raise LexiconError(f"cannot read dictionary {str(path)!r}: {reason}") from error
    except UnicodeDecodeError as error:
        raise LexiconError(f"{path} is not UTF-8: {error.reason}") from error
    except pa.ArrowException as error:
        raise LexiconError(f"{path} is not a Parquet file: {first_line(error)}") from error


def _parquet_rows(path: Path) -> _Rows:
    schema = pq.read_schema(path)
    names = _known_columns(schema.names, str(path))
    for name in names:
        _check_type(name, schema.field(name).type, path)
    # Arrow reads these columns as dictionaries, so that each distinct word is in memory once
    texts = [name for name in names if name in TEXTS]
    number = 0
    with pq.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        if file.metadata.num_rows > ENTRIES_MAX:
            raise LexiconError(f"{path} has over {ENTRIES_MAX:,} rows: no dictionary")
        for batch in file.iter_batches(ROWS, columns=names):
            columns = dict(zip(names, batch.columns, strict=True))
            for name in texts:
                columns[name] = _short_words(columns[name], path)
            for row in pa.table(columns).to_pylist():
                number += 1
                yield f"{path} row {number}", row


def _check_type(name: str, kind: pa.DataType, path: Path) -> None:
    """Raise LexiconError if a column of words has no text, or another column no numbers."""
    if name in TEXTS:
        wanted, fits = "text", is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)
    else:
        wanted, fits = "a number", pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not fits:
        raise LexiconError(f"{path}: column {name!r} is not {wanted} but {kind}")


def _short_words(column: pa.Array, path: Path) -> pa.Array:
    """Return a column of words as strings; raises LexiconError for an overlong word.

    The check precedes decoding, since one long word repeated in many rows would fill the memory.
    """
    is_stored_once = pa.types.is_dictionary(column.type)
    words = column.dictionary if is_stored_once else column
    if (pc.max(pc.binary_length(words)).as_py() or 0) > 4 * TEXT_MAX:
        raise LexiconError(f"{path}: words of over {TEXT_MAX} characters")
    return column.dictionary_decode() if is_stored_once else words


def _known_columns(names: list[str], where: str) -> list[str]:
    """Return the column names of a file that a mined dictionary uses; ignore other columns.

    Raises LexiconError if a required column is missing; `where` names the file in the error.
    """
    needed = ("clean", "noisy") if {*WEIGHTS} & {*names} else ("clean", "noisy", "count")
    for name in needed:
        if name not in names:
            shown = f"{', '.join(names[:20])}{did_you_mean(name, names)}"
            raise LexiconError(f"{where}: no column {name!r} among: {shown}")
    return [name for name in _KNOWN if name in names]


def _tsv_rows(path: Path) -> _Rows:
    """Yield the rows of a TSV file with a header line.

    A line `# lang: xx` before the header names the language of all rows.
    """
    names: list[str] = []
    lang = ANY
    for number, line in enumerate(read_lines(read_parts(path)), 1):
        where = f"{path} line {number}"
        if line is None:
            raise LexiconError(f"{where} is not UTF-8")
        if not names and line.startswith("#"):
            key, _, value = line.lstrip("# ").partition(":")
            if key.strip() == "lang":
                lang = ANY if " " in value.strip() else value.strip()
        elif not names:
            names = line.split("\t")
            _known_columns(names, where)
        elif line:
            fields = line.split("\t")
            if len(fields) != len(names):
                raise LexiconError(
                    f"{where}: {len(fields)} columns, not {len(names)} (tabs between)"
                )
            yield where, {"lang": lang} | dict(zip(names, fields, strict=True))
    if not names:
        raise LexiconError(f"{path}: no header line")


def _json_rows(path: Path) -> _Rows:
    """Yield the rows of a JSON file {correct: [[wrong, probability], ...]}."""
    try:
        content = msgspec.json.decode(
            b"".join(read_parts(path)), type=dict[str, list[tuple[Any, Any]]]
        )
    except msgspec.ValidationError as error:
        raise LexiconError(
            f'{path}: a dictionary is {{"correct": [["wrong", 0.5], ...], ...}}: {error}'
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise LexiconError(f"{path} is not JSON: {error}") from error
    for clean, alternatives in content.items():
        for noisy, prob in alternatives:
            yield f"{path} at {clean[:40]!r}", {"clean": clean, "noisy": noisy, "prob": prob}


def _alternative(where: str, values: Mapping[str, Any], is_text: bool) -> Alternative:
    """Return a row of a mined dictionary; raises LexiconError for an invalid value.

    `where` names the row in errors. With `is_text` all values are text to be parsed.
    """
    try:
        row = msgspec.convert(values, _MinedRow, strict=not is_text)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        value = values[name]
        shown = f"{value[:37]}..." if isinstance(value, str) and len(value) > 40 else value
        raise LexiconError(f"{where}: {name} {shown!r} is not {_wanted(name)}") from error
    if row.clean == row.noisy:
        raise LexiconError(f"{where}: noisy {row.noisy!r} is equal to clean")
    count = row.count or row.weight or max(1, round(row.prob * PARTS))
    return Alternative(
        lang=row.lang,
        clean=row.clean,
        noisy=row.noisy,
        count=count,
        pages=row.pages,
        reverse_count=row.reverse_count,
        prob=row.prob,
        frequency=row.frequency,
    )


def _wanted(name: str) -> str:
    """Return the requirement on a column's values, for errors: 'one word' for clean."""
    if name in TEXTS:
        return "one word"
    if name == "prob":
        return "a share above 0, up to 1"
    least = 0 if name in _MAY_BE_ZERO else 1
    return f"a whole number from {least} to {COUNT_MAX:,}"


def _with_shares(word: list[Alternative], path: Path) -> list[Alternative]:
    """Return all entries of one word, with missing probabilities computed from the counts.

    Raises LexiconError if a wrong form is repeated, or probabilities contradict counts or do not
    add up to 1.
    """
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


# Functions that read dictionaries of translations.

# Packaged table with words of nine languages; each language can be translated into each other
COMMON = DICTIONARIES / "bilingual" / "common.tsv"
# Most decompressed bytes of a dictionary; the largest of MUSE have some 4 MB
UNPACKED_MAX = 256 << 20
GROWS_MAX = 50  # most decompressed bytes per compressed byte; lists of words have 3 to 10
SMALL_FILE = 1 << 16  # bytes; for GROWS_MAX, a smaller compressed file counts as this large
TRANSLATIONS_MAX = 1_000_000  # most translations held in memory; MUSE has some 100,000
WEIGHT_MAX = 1 << 40
BETWEEN = "|"  # separates alternative words in a cell of a table with a column per language
FIRST = 60  # weight of the first word in a table cell; the n-th word has the weight FIRST / n


@dataclass(frozen=True)
class Translations:
    """Translations of a dictionary in the order of its file; `dropped` counts rows by reason."""

    entries: list[Entry]
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> int:
        """The number of distinct words and phrases that have a translation."""
        return len({entry.clean for entry in self.entries})

    def by_word(self, word: str | None, most: int) -> list[list[Entry]]:
        """Group the translations by word, and return the first `most` groups.

        With `word`, only the groups of its spellings in any case are returned ('may', 'May').
        """
        ordered = sorted(self.entries, key=lambda entry: entry.clean) if word else self.entries
        groups: dict[str, list[Entry]] = {}
        for entry in ordered:
            if word is None or entry.clean.lower() == word.lower():
                groups.setdefault(entry.clean, []).append(entry)
        return list(groups.values())[:most]


@cache
def packaged_languages() -> tuple[str, ...]:
    """Return the languages of the packaged dictionary."""
    lines = COMMON.read_text("utf-8").splitlines()
    return tuple(next(line for line in lines if not line.startswith("#")).split("\t"))


def source_of(
    dictionary: str | Path | None, lang: str, into: str | None
) -> tuple[Path, str | None]:
    """Return the path of the dictionary to use, and the target language.

    These are the file `dictionary` and the language `into`. Without a file the packaged table is
    used, and `into` is by default English, or Spanish for English text. Raises UsageError if
    the packaged table lacks `lang` or the target language.
    """
    if dictionary:
        return Path(dictionary), into
    wanted, known = into or ("es" if lang == "en" else "en"), packaged_languages()
    missing = [code for code in (lang, wanted) if code not in known]
    if missing or lang == wanted:
        problem = f"nothing for {missing[0]!r}" if missing else f"no {lang!r} into {wanted!r}"
        raise UsageError(
            f"codeswitch has {problem} (it has any two of: {', '.join(known)}); "
            "give a dictionary: codeswitch:dictionary=FILE"
        )
    return COMMON, wanted


def load_translations(path: str | Path, lang: str, into: str | None = None) -> Translations:
    """Read translations of words in `lang`; with `into`, only translations into this language.

    A .parquet file is Parquet; any other file is TEI, a table with a header line, or MUSE, as its
    beginning shows. A file may be compressed (.gz, .xz, .bz2, .zst). The weights of rows with the
    same word and translation are added up. Raises LexiconError with a message of one line.
    """
    path = Path(path)
    check_size(path)
    weights: dict[tuple[str, str], int] = {}
    dropped: Counter[str] = Counter()
    with _reading(path):
        for row in _translation_rows(path, lang, into):
            if isinstance(row, str):
                dropped[row] += 1
                continue
            clean, noisy = (" ".join(text.split()) for text in row[:2])
            pair = clean.replace(APOSTROPHES[1], APOSTROPHES[0]), noisy
            if reason := _reason(*pair):
                dropped[reason] += 1
                continue
            weights[pair] = min(weights.get(pair, 0) + row.weight, WEIGHT_MAX)
            if len(weights) > TRANSLATIONS_MAX:
                raise LexiconError(
                    f"{path} has over {TRANSLATIONS_MAX:,} translations: no dictionary"
                )
    if not weights or dropped["bad_line"] > len(weights):
        lost = f", dropped: {by_reason(dropped)}" if dropped.total() else ""
        raise LexiconError(
            f"{path} is not a bilingual dictionary: {len(weights):,} translations{lost}; its lines "
            "are 'word translation', or it has a header with clean and noisy"
        )
    return Translations([Entry(*pair, weight) for pair, weight in weights.items()], +dropped)


def check_size(path: Path, most: int | None = None) -> None:
    """Raise LexiconError for a file of over `most` bytes (default: UNPACKED_MAX).

    A compressed file is measured after decompression. It is also refused if it has over GROWS_MAX
    decompressed bytes per compressed byte.
    """
    with _reading(path):
        refuse_endless(path)
    if not path.is_file():
        return
    most, size = most or UNPACKED_MAX, path.stat().st_size
    if compression_of(path):
        most, size = min(most, GROWS_MAX * max(size, SMALL_FILE)), 0
        with suppress(SourceError, Damaged):  # reading the file later raises these errors again
            for part in read_parts(path):
                size += len(part)
                if size > most:
                    break
    if size > most:
        raise LexiconError(
            f"{path} is too large for a dictionary: it has over {most >> 20} MB, or is "
            f"compressed and would grow over {GROWS_MAX} times"
        )


def _reason(clean: str, noisy: str) -> str:
    """Return the reason why a translation is dropped; '' if it is kept."""
    if not clean or not noisy:
        return "empty"
    if max(len(clean), len(noisy)) > TEXT_MAX:
        return "too_long"
    if any(len(word.encode()) > WORD_BYTES_MAX for word in clean.split(" ")):
        return "too_long"
    if not matchable(clean):
        return "signs"
    return "same_word" if clean.casefold() == noisy.casefold() else ""


def _translation_rows(path: Path, lang: str, into: str | None) -> Iterator[Entry | str]:
    """Yield the translations in a file of any format; for a dropped row, the reason."""
    if path.suffix == ".parquet":
        for _, row in _parquet_rows(path):
            yield _translation(row, lang, into)
        return
    parts = blocks(read_parts(path), SCAN)
    first = next(parts, b"").removeprefix(BOM)
    parts = chain([first], parts)
    if first.lstrip().startswith(b"<"):
        yield from tei_rows(parts, str(path))
    else:
        yield from _line_rows(read_lines(parts), path, lang, into)


def _line_rows(
    lines: Iterator[str | None], path: Path, lang: str, into: str | None
) -> Iterator[Entry | str]:
    """Yield the translations in lines of MUSE or of a table; for a dropped line, the reason.

    A table begins with a header line: the columns clean and noisy, or a column per language.
    """
    # Columns: None before the first line is read, [] in MUSE, which has no header line
    names: list[str] | None = None
    for line in lines:
        if line is None:
            yield "not_utf8"
        elif line.startswith("# "):
            _check_language(line, lang, into, path)
        elif line.strip():
            fields = line.split("\t")
            if names is None:
                is_header = {"clean", "noisy"} <= {*fields} or {lang, into} <= {*fields}
                names = fields if is_header else []
                if is_header:
                    continue
            yield from _line_translations(line, fields, names, lang, into)


def _line_translations(
    line: str, fields: list[str], names: list[str], lang: str, into: str | None
) -> Iterator[Entry | str]:
    """Yield the translations in one line; if the line is dropped, the reason.

    `fields` are the tab-separated fields of the line, and `names` the columns of the file, [] for
    MUSE.
    """
    row = dict(zip(names, fields, strict=False))
    if not names:
        words = fields if len(fields) > 1 else line.split()
        yield Entry(words[0], words[1]) if len(words) == 2 else "bad_line"
    elif not {"clean", "noisy"} <= {*names}:
        yield from _concept(row.get(lang, ""), row.get(str(into), ""))
    else:
        matches = len(fields) == len(names)
        yield _translation(row, lang, into) if matches else "bad_line"


def _check_language(line: str, lang: str, into: str | None, path: Path) -> None:
    """Raise LexiconError if the languages in a comment, `# lang: de fr`, lack the wanted one."""
    key, _, value = line[2:].partition(":")
    wanted = {"lang": lang, "into": into}.get(key.strip())
    known = value.split()
    if wanted and known and wanted not in known and ANY not in known:
        raise LexiconError(f"{path} has {key.strip()} {' '.join(known)}, not {wanted!r}")


def _concept(words: str, translations: str) -> Iterator[Entry]:
    """Yield an entry for every pair of a word in `words` and a word in `translations`.

    Both arguments are table cells such as 'car|auto'. The later the two words stand in their cells,
    the lower is the weight of the entry.
    """
    ranked = (enumerate(cell.split(BETWEEN), 1) for cell in (words, translations))
    for (rank, clean), (other, noisy) in product(*ranked):
        if clean and noisy:
            yield Entry(clean, noisy, max((FIRST // rank) * (FIRST // other), 1))


def _translation(row: Mapping[str, Any], lang: str, into: str | None) -> Entry | str:
    """Return the translation in a row of a table, or the reason why the row is dropped."""
    for name, code in (("lang", lang), ("into", into)):
        if code and row.get(name, ANY) not in (code, ANY):
            return "other_language"
    clean, noisy = row["clean"], row["noisy"]
    if not (isinstance(clean, str) and isinstance(noisy, str)):
        return "empty"
    try:
        given = msgspec.convert(row, _Weights, strict=False)
    except msgspec.ValidationError:
        return "bad_weight"
    return Entry(clean, noisy, given.weight or given.count or round(given.prob * PARTS) or 1)


# Functions that read dictionaries of FreeDict, which are in TEI (an XML format).

ELEMENTS_MAX = 200  # most levels of nested XML elements
WORDS_OF_ENTRY_MAX = 200  # most headwords, and most translations, read per entry
CHARACTERS_MAX = 1_000  # most characters of one headword or translation
WORDS_MAX = 5  # most words of a translation; a longer text is an explanation
_NOTES = re.compile(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}|<[^<>]*>")


class _Entries:
    """Handlers for an XML parser; they collect headwords with their translations in `rows`.

    A translation is a `quote` in a `cit` whose type begins with 'trans', or a `tr` (TEI P4).
    Examples and related entries (`re`) are left out.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.rows: list[Entry | str] = []
        self.path: list[str] = []  # names of the open elements; a `cit` element with its type
        self.headwords, self.translations = list[str](), list[str]()
        # Text, in parts, of the headword or translation being read; None outside of both
        self.text: list[str] | None = None
        # The list that gets the text when its element ends: `headwords` or `translations`
        self.texts: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element; raises LexiconError for too many levels."""
        name = name.rpartition(":")[2]
        if len(self.path) >= ELEMENTS_MAX:
            raise LexiconError(f"{self.where}: over {ELEMENTS_MAX} elements within each other")
        self.path.append(f"cit {attributes.get('type', '')}" if name == "cit" else name)
        if name == "entry":
            self.headwords, self.translations, self.text = [], [], None
        elif self._is_headword():
            self.text, self.texts = [], self.headwords
        elif self._is_translation():
            self.text, self.texts = [], self.translations

    def _is_headword(self) -> bool:
        """Tell whether the open element is a headword, outside quotations and related entries."""
        is_quoted = any(element.startswith("cit ") for element in self.path)
        return self.path[-1] == "orth" and not is_quoted and "re" not in self.path

    def _is_translation(self) -> bool:
        """Tell whether the open element is a translation, outside examples and related entries."""
        name = self.path[-1]
        cits = [element for element in self.path if element.startswith("cit ")]
        is_quoted = bool(cits) and name in ("quote", "orth")
        is_own = name == "tr" and "eg" not in self.path
        of_translations = all(cit.startswith("cit trans") for cit in cits)
        return (is_quoted or is_own) and of_translations and "re" not in self.path

    def characters(self, text: str) -> None:
        """Add text to the open headword or translation, if one is open."""
        if self.text is not None and sum(map(len, self.text)) <= CHARACTERS_MAX:
            self.text.append(text[: CHARACTERS_MAX + 1])

    def end(self, name: str) -> None:
        """Handle the end of an element; the end of an entry adds its translations to `rows`."""
        name = name.rpartition(":")[2]
        if self.text is not None and name in ("orth", "quote", "tr"):
            if len(self.texts) < WORDS_OF_ENTRY_MAX:
                self.texts.append(_NOTES.sub(" ", "".join(self.text)))
            self.text = None
        elif name == "entry":
            meant = [part for text in self.translations for part in re.split("[,;]", text)]
            self.rows += [
                Entry(*pair) if len(pair[1].split()) <= WORDS_MAX else "explanation"
                for pair in product(self.headwords, meant)
            ]
        self.path.pop()

    def refuse(self, name: str, *_: object) -> None:
        """Raise LexiconError for an XML entity, which may expand endlessly or read a file."""
        raise LexiconError(f"{self.where} declares an entity ({name[:40]!r}): not read")


def tei_rows(parts: Iterable[bytes], where: str) -> Iterator[Entry | str]:
    """Yield the translations in a TEI file, given in parts.

    A translation of over WORDS_MAX words is dropped: its reason, `explanation`, is yielded instead.
    Raises LexiconError for a file that is not XML. `where` names the file in errors.
    """
    parser, entries = expat.ParserCreate(), _Entries(where)
    parser.buffer_text = True
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
