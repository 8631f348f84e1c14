"""Lexicons: weighted replacements of phrases, with their licence, read from TSV or Parquet."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from noisegen.errors import LexiconError
from noisegen.text.buffers import SIGNS
from noisegen.text.case import fold
from noisegen.text.languages import MATCHED_BY

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES_MAX = 1 << 28  # largest file that is read; a million entries take 40 MB
ROWS_MAX, TEXT_BYTES_MAX = 20_000_000, 1_000  # most rows of a Parquet file, most bytes of a text
POS = ("", "NOUN", "ADJ", "ADV", "VERB")  # universal parts of speech; '' for an entry without one
CODESPELL = {
    "name": "spel",
    "lang": "en",
    "source": "codespell's dictionary.txt",
    "license": "CC-BY-SA-3.0",
}

_ASCII_SIGN = r"\x00-/:-@\[-^`{-\x7f"
_SIGN = _ASCII_SIGN + "".join(f"{chr(low)}-{chr(high)}" for low, high in SIGNS)
_MATCHABLE = re.compile(f"[^{_SIGN}]+(?:[{_ASCII_SIGN}][^{_SIGN}]+)*")
_MISSPELLED_MIN = 4  # fewest letters of a word that people misspell; shorter words are mistyped
_MISSPELLINGS_MAX = 3  # most errors in a plausible misspelling
_SOUND_ALIKE = "aeiouy", "ckqsxz", "fp", "gj"  # first letters that people confuse: "imbarrass"
_SILENT = "gn", "ho", "kn", "mn", "pn", "ps", "pt", "wh", "wr"  # beginnings with a silent letter


class Entry(NamedTuple):
    """One replacement: `clean` may become `noisy`, with a chance proportional to `weight`.

    `pos` is the part of speech that `clean` must have in the text, '' for any.
    """

    clean: str
    noisy: str
    weight: int = 1
    pos: str = ""


@dataclass(frozen=True)
class Lexicon:
    """A word list: its `entries`, and a `head` with at least name, lang, source and license.

    With `of: 1000` in the head, the weight of an entry is the chance, out of 1000, that the phrase
    becomes this replacement when it is hit. If the weights of a phrase sum to less than 1000, the
    phrase stays with the remaining chance.
    """

    head: dict[str, str]
    entries: list[Entry] = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> "Lexicon":
        """Read a lexicon from TSV or Parquet; raises LexiconError, which names file and line."""
        path = Path(path)
        return parser_of(path)(read_lexicon_file(path), str(path))

    def groups(self) -> dict[tuple[str, str], list[Entry]]:
        """Return a dictionary: (phrase in lower case, part of speech) -> entries.

        If the head has `of`, an entry that keeps the phrase is added, so that the weights of each
        phrase sum to `of`. Raises LexiconError for a phrase whose weights sum to more.
        """
        of, groups = self.head.get("of", ""), dict[tuple[str, str], list[Entry]]()
        for entry in self.entries:
            groups.setdefault((fold(entry.clean), entry.pos), []).append(entry)
        for group in groups.values() if of else ():
            total, (clean, *_, pos) = sum(entry.weight for entry in group), group[0]
            if not (of.isdecimal() and total <= int(of)):
                raise LexiconError(
                    f"lexicon {self.head['name']}: the weights of {clean!r} sum to {total}, over "
                    f"'of: {of}' in the head; lower them, or write a whole number that is larger"
                )
            if rest := int(of) - total:
                group.append(Entry(clean, clean, rest, pos))
        return groups


Parser = Callable[[bytes, str], Lexicon]  # takes the content of a file, and its name for errors


def read_lexicon_file(path: Path) -> bytes:
    """Return the content of a lexicon file; raises LexiconError if unreadable or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise LexiconError(f"cannot read lexicon {str(path)!r}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        size = f"{FILE_BYTES_MAX >> 20:,} MiB"
        raise LexiconError(f"cannot read lexicon {str(path)!r}: it is over {size}")
    return content


def parser_of(path: Path) -> Parser:
    """Return the parser for a file: codespell's dictionary, Parquet by its name, else TSV."""
    if path.name == "dictionary.txt":
        return parse_codespell
    return parse_parquet if path.suffix == ".parquet" else parse_tsv


def matchable(phrase: str) -> bool:
    """Tell whether a phrase is a word, or words joined by single ASCII characters: 'e-mail'."""
    return _MATCHABLE.fullmatch(phrase) is not None


def head_of(path: Path, *keys: str) -> dict[str, str]:
    """Return the fields named by `keys` in the head of a word list or profile, if present.

    The default `keys` are source and license. Codespell's dictionary is a file without a head; its
    fields are in `CODESPELL`.
    """
    if path.name == "dictionary.txt":
        head = CODESPELL
    elif path.name == "profile.json":
        head = _json_fields(path)
    elif path.suffix == ".parquet":
        head = _parquet_fields(path)
    else:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = _head_fields(takewhile(lambda line: line.startswith("#"), file))
    return {key: head[key] for key in keys or ("source", "license") if key in head}


def _parquet_fields(path: Path) -> dict[str, str]:
    """Return the text fields in the head of a Parquet file; {} if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(OSError, pa.ArrowException, UnicodeDecodeError):
        metadata = pq.read_schema(path).metadata or {}
        return {key.decode(): value.decode() for key, value in metadata.items()}
    return {}


def _json_fields(path: Path) -> dict[str, str]:
    """Return the text fields in the head of a profile, a JSON file; {} if the file is damaged."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return {}
    fields = content.items() if isinstance(content, dict) else ()
    return {key: value for key, value in fields if isinstance(value, str)}


def _head_fields(lines: Iterable[str]) -> dict[str, str]:
    """Return the fields in lines `# key: value`; fields in one line are separated by 3 spaces."""
    fields = (part.strip("# \r\n") for line in lines for part in line.split("   "))
    pairs = (part.partition(":") for part in fields if ":" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def parse_tsv(content: bytes, where: str) -> Lexicon:
    """Read a word list from a TSV file, given as its content.

    The file has lines `# key: value`, a header (clean, noisy[, weight][, pos]), and one entry per
    line. `where` names the file in errors. Raises LexiconError for a wrong line.
    """
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise LexiconError(f"{where} is not UTF-8: {error}") from error
    comments = list(takewhile(lambda line: line.startswith("#"), lines))
    head = _checked_head(comments, where)
    header, *lines = lines[len(comments) :] or [""]
    columns = header.rstrip("\r").split("\t")
    if columns[:2] != ["clean", "noisy"] or not set(columns[2:]) <= {"weight", "pos", "frequency"}:
        raise LexiconError(
            f"{where} line {len(comments) + 1}: the header must be clean, noisy, weight[, pos]"
        )
    entries = []
    for number, line in enumerate(lines, len(comments) + 2):
        values = line.rstrip("\r").split("\t")
        if values != [""]:
            if len(values) != len(columns):
                count = f"{len(values)} columns, not {len(columns)} (tabs between)"
                raise LexiconError(f"{where} line {number}: {count}")
            row = dict(zip(columns, values, strict=True))
            entries.append(_entry(row, f"{where} line {number}", head))
    if not entries:
        raise LexiconError(f"{where} has no entries")
    return Lexicon(head, entries)


def _checked_head(comments: list[str], where: str) -> dict[str, str]:
    """Return the fields of the comment lines at the head of a lexicon, by name.

    Raises LexiconError if a required field is missing; `where` names the file.
    """
    head = _head_fields(comments)
    missing = [key for key in ("name", "lang", "source", "license") if not head.get(key)]
    if missing:
        raise LexiconError(
            f"{where} does not say its {' and '.join(missing)}; begin it with '# {missing[0]}: ...'"
        )
    return head


def parse_parquet(content: bytes, where: str) -> Lexicon:
    """Read a mined dictionary from a Parquet file, given as its content.

    The file has the columns clean, noisy and count (or weight). Phrases that are not `matchable`
    are skipped. `where` names the file in errors. Raises LexiconError for a wrong row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pa.BufferReader(content)
    entries: list[Entry] = []
    try:
        weight = "count" if "count" in pq.read_schema(source).names else "weight"
        kinds = {"clean": pa.string(), "noisy": pa.string(), weight: pa.int64()}
        fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
        for batch in bounded_batches(source, list(kinds)):
            table = pa.Table.from_batches([batch]).select(list(kinds)).cast(pa.schema(fields))
            entries += [
                _entry({**row, "weight": str(row[weight])}, f"{where} row {number}")
                for number, row in enumerate(table.to_pylist(), len(entries))
                if matchable(row["clean"])  # mined phrases such as "no, I" are not
            ]
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise LexiconError(
            f"{where} is not a Parquet file with the columns clean, noisy (text) and count (whole "
            f"numbers), without empty places: {str(error).partition(chr(10))[0]}"
        ) from error
    head = {"name": Path(where).stem, "lang": "*", "source": where, "license": "see its manifest"}
    if not entries:
        raise LexiconError(f"{where} has no entries that can be matched")
    return Lexicon(head, entries)


def bounded_batches(source: Any, columns: list[str]) -> "Iterator[pa.RecordBatch]":
    """Yield some columns of a Parquet file in batches; raises ValueError for a huge file or text.

    Text columns are read with dictionary encoding, in which each distinct text occurs once. So a
    long text that occurs in many rows is refused before it is copied for each row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = pq.read_schema(source)
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
        if file.metadata.num_rows > ROWS_MAX:
            raise ValueError(f"over {ROWS_MAX:,} rows")
        for batch in file.iter_batches(1 << 13, columns=columns):
            for number, column in enumerate(batch.columns):
                if pa.types.is_dictionary(column.type):
                    column.validate(full=True)  # damaged indices may point outside the dictionary
                    lengths = pc.binary_length(column.dictionary)
                    if (pc.max(lengths).as_py() or 0) > TEXT_BYTES_MAX:
                        raise ValueError(f"a text of over {TEXT_BYTES_MAX:,} bytes")
                    name = batch.schema.names[number]
                    batch = batch.set_column(number, name, column.dictionary_decode())
            yield batch


def _entry(
    row: dict[str, str], where: str, head: Mapping[str, str] = MappingProxyType({})
) -> Entry:
    """Return the entry in a row of a word list; raises LexiconError for a wrong row.

    `where` names file and row in errors; `head` is the head of the list. In languages without
    spaces between words, an empty `noisy` means that the phrase is removed. In these languages, and
    in lists with a field `of`, `noisy` may be equal to `clean`: the entry keeps the phrase. A
    phrase that has only this entry is never replaced, nor are the shorter phrases inside it.
    """
    unspaced = head.get("lang") in MATCHED_BY
    may_be = ("", row["clean"]) if unspaced else (row["clean"],) if head.get("of") else ()
    clean, noisy, weight = row["clean"], row["noisy"], row.get("weight", "1")
    pos, wrong = row.get("pos", ""), ""
    if not weight.isdecimal() or int(weight) < 1:
        wrong = f"weight {weight!r} is not a whole number of at least 1"
    elif pos not in POS:
        wrong = f"pos {pos!r} is not one of {', '.join(POS[1:])}"
    elif noisy not in may_be and not _may_replace(noisy, clean):
        wrong = f"noisy {noisy!r} is empty, equal to clean or of several lines"
    elif not matchable(clean):
        wrong = f"clean {clean!r} must be words with one ASCII sign between them"
    if wrong:
        raise LexiconError(f"{where}: {wrong}")
    return Entry(clean, noisy, int(weight), pos)


def _may_replace(noisy: str, clean: str) -> bool:
    """Tell whether a text may replace a phrase: it has one line, is not blank, and differs."""
    return bool(noisy.strip()) and noisy != clean and len(noisy.splitlines()) == 1


def codespell_dictionary() -> Path:
    """Return the path of codespell's dictionary file, found without importing codespell.

    Raises LexiconError if codespell is not installed.
    """
    spec = find_spec("codespell_lib")
    if spec is None or spec.origin is None:
        raise LexiconError("codespell is not installed; run: pip install codespell")
    return Path(spec.origin).parent / "data" / "dictionary.txt"


def parse_codespell(content: bytes, where: str) -> Lexicon:
    """Read codespell's dictionary, with lines `wrong->right[, right2,][ reason]`, as a lexicon.

    Each correction gives an entry; the entries of one misspelling share the weight 12 equally.
    Misspellings that people hardly make are dropped, see `_plausible`.
    """
    entries = set(chain.from_iterable(map(_misspellings, content.decode().splitlines())))
    return Lexicon(dict(CODESPELL), sorted(e for e in entries if _plausible(e.clean, e.noisy)))


def _misspellings(line: str) -> Iterator[Entry]:
    """Yield an entry for each correction of a misspelling in a line of codespell's dictionary.

    A line whose reason begins with "disabled" gives no entries. If a line has several corrections,
    multi-word corrections are left out.
    """
    wrong, _, corrections = line.partition("->")
    rights = [part.strip() for part in corrections.split(",")]
    reason = rights.pop() if len(rights) > 1 else ""
    if reason.startswith("disabled"):
        return
    for right in rights:
        if matchable(right) and (len(rights) == 1 or " " not in right):
            yield Entry(fold(right), fold(wrong), max(1, 12 // len(rights)))


def _plausible(clean: str, noisy: str) -> bool:
    """Tell whether people would misspell `clean` as `noisy`, which must be ASCII.

    A misspelling may have up to three errors. Codespell has a single odd misspelling for many
    frequent words (ois for is, inh for in), which would otherwise occur in up to a fifth of all
    sentences. Therefore a word under four letters may only have two letters swapped, one letter
    left out, or one letter doubled.
    """
    from rapidfuzz.distance import OSA

    if clean == noisy or not noisy.isascii() or OSA.distance(clean, noisy) > _MISSPELLINGS_MAX:
        return False
    if len(clean) >= _MISSPELLED_MIN:
        return _begins_alike(clean, noisy)
    if sorted(clean) == sorted(noisy):
        return True
    splits = [(clean[:at], clean[at], clean[at + 1 :]) for at in range(len(clean))]
    doubled = {before + letter * 2 + after for before, letter, after in splits}
    dropped = {before + after for before, _, after in splits if len(clean) > 2}
    return noisy in doubled | dropped


def _begins_alike(clean: str, noisy: str) -> bool:
    """Tell whether a misspelling begins with the same letter as its word, or a letter like it.

    Writers rarely get the first letter wrong ("Nedia" for Media). But they confuse letters that
    sound alike, swap the first two letters, or leave out a silent first letter ("nife").
    """
    first, second = clean[0], clean[1:2]
    alike = next((letters for letters in _SOUND_ALIKE if first in letters), first)
    return (
        noisy[0] in alike
        or noisy[:2] == second + first
        or (clean[:2] in _SILENT and noisy[0] == second)
    )
