"""Lexicons: phrase -> weighted alternatives, read from TSV or Parquet, with their licence."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from noisegen.errors import LexiconError
from noisegen.text import fold
from noisegen.words import SIGNS

POS = ("", "NOUN", "ADJ", "ADV", "VERB")  # universal part-of-speech tags that an entry may ask for


CODESPELL = {
    "name": "spel",
    "lang": "en",
    "source": "codespell's dictionary.txt",
    "license": "CC-BY-SA-3.0",
}


_ASCII_SIGN = r"\x00-/:-@\[-^`{-\x7f"
_SIGN = _ASCII_SIGN + "".join(f"{chr(low)}-{chr(high)}" for low, high in SIGNS)
_MATCHABLE = re.compile(f"[^{_SIGN}]+(?:[{_ASCII_SIGN}][^{_SIGN}]+)*")


class Entry(NamedTuple):
    """One alternative: `clean` may become `noisy`, with chance proportional to `weight`."""

    clean: str
    noisy: str
    weight: int = 1
    pos: str = ""


@dataclass(frozen=True)
class Lexicon:
    """A word list. `head` holds at least name, lang, source and license."""

    head: dict[str, str]
    entries: list[Entry] = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> "Lexicon":
        """Read a TSV or Parquet lexicon; raises LexiconError with file and line."""
        path = Path(path)
        return parser_of(path)(read_lexicon_file(path), str(path))

    def by_clean(self) -> dict[str, list[Entry]]:
        """Return the alternatives of every phrase."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.clean, []).append(entry)
        return found


Parser = Callable[[bytes, str], Lexicon]


def read_lexicon_file(path: Path) -> bytes:
    """Return the bytes of a lexicon file; raises LexiconError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise LexiconError(f"cannot read lexicon {str(path)!r}: {error.strerror}") from error


def parser_of(path: Path) -> Parser:
    """Return the parser for a file by its ending: Parquet, else TSV."""
    return parse_parquet if path.suffix == ".parquet" else parse_tsv


def parse_tsv(content: bytes, where: str) -> Lexicon:
    """Read `# key: value` lines, a header (clean, noisy[, weight][, pos]), then the entries."""
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise LexiconError(f"{where} is not UTF-8: {error}") from error
    head: dict[str, str] = {}
    number = 0
    while number < len(lines) and lines[number].startswith("#"):
        head |= _head_fields(lines[number])
        number += 1
    _check_head(head, where)
    columns = lines[number].rstrip("\r").split("\t") if number < len(lines) else []
    if columns[:2] != ["clean", "noisy"] or not set(columns[2:]) <= {"weight", "pos"}:
        raise LexiconError(
            f"{where} line {number + 1}: the header must be clean, noisy, weight[, pos]"
        )
    entries = list(_tsv_entries(lines[number + 1 :], columns, where, number + 2))
    return Lexicon(head, _some(entries, where))


def head_of(path: Path, *keys: str) -> dict[str, str]:
    """Return source and license, or other keys, of a word list; codespell's has no head."""
    if path.name == "dictionary.txt":
        head = CODESPELL
    else:
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = takewhile(lambda line: line.startswith("#"), file)
            head = {key: value for line in lines for key, value in _head_fields(line).items()}
    return {key: head[key] for key in keys or ("source", "license") if key in head}


def _head_fields(line: str) -> dict[str, str]:
    """Read `# key: value`, also several in a line when three blanks or more part them."""
    fields = (part.strip("# \r") for part in line.split("   "))
    pairs = (part.partition(":") for part in fields if ":" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _check_head(head: dict[str, str], where: str) -> None:
    missing = [key for key in ("name", "lang", "source", "license") if not head.get(key)]
    if missing:
        raise LexiconError(
            f"{where} does not say its {' and '.join(missing)}; begin it with '# {missing[0]}: ...'"
        )


def _tsv_entries(
    lines: list[str], columns: list[str], where: str, first_line: int
) -> Iterator[Entry]:
    for number, line in enumerate(lines, first_line):
        fields = line.rstrip("\r").split("\t")
        if fields == [""]:
            continue
        if len(fields) != len(columns):
            raise LexiconError(
                f"{where} line {number}: {len(fields)} columns, not {len(columns)} (tabs between)"
            )
        row = dict(zip(columns, fields, strict=True))
        yield _entry(row["clean"], row["noisy"], row.get("weight", "1"), row.get("pos", ""),
                     f"{where} line {number}")  # fmt: skip


def _some(entries: list[Entry], where: str) -> list[Entry]:
    if not entries:
        raise LexiconError(f"{where} has no entries")
    return entries


def _entry(clean: str, noisy: str, weight: str, pos: str, where: str) -> Entry:
    if not weight.isdecimal() or int(weight) < 1:
        raise LexiconError(f"{where}: weight {weight!r} is not a whole number of at least 1")
    if pos not in POS:
        raise LexiconError(f"{where}: pos {pos!r} is not one of {', '.join(POS[1:])}")
    if not noisy.strip() or noisy == clean or len(noisy.splitlines()) > 1:
        what = "empty, equal to clean or of several lines"
        raise LexiconError(f"{where}: noisy {noisy!r} is {what}")
    if not matchable(clean):
        raise LexiconError(
            f"{where}: clean {clean!r} must be words with one ASCII sign between them"
        )
    return Entry(clean, noisy, int(weight), pos)


def parse_parquet(content: bytes, where: str) -> Lexicon:
    """Read a mined dictionary: columns clean, noisy and count (or weight)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
    except pa.ArrowInvalid as error:
        raise LexiconError(f"{where} is not a Parquet file: {error}") from error
    weight = next((name for name in ("count", "weight") if name in table.column_names), None)
    if weight is None or not {"clean", "noisy"} <= set(table.column_names):
        raise LexiconError(f"{where} needs the columns clean, noisy and count")
    try:
        kinds = pa.schema([("clean", pa.string()), ("noisy", pa.string()), (weight, pa.int64())])
        table = table.select(kinds.names).cast(kinds)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise LexiconError(f"{where}: clean and noisy are text, {weight} whole numbers") from error
    if any(table[name].null_count for name in kinds.names):
        raise LexiconError(f"{where}: clean, noisy and {weight} have no empty places")
    columns = (column.to_pylist() for column in table.columns)
    entries = [
        _entry(clean, noisy, str(count), "", f"{where} row {number}")
        for number, (clean, noisy, count) in enumerate(zip(*columns, strict=True))
        if matchable(clean)  # "пов’язана" is one word to its miner and none to a lexicon
    ]
    head = {"name": Path(where).stem, "lang": "*", "source": where, "license": "see its manifest"}
    return Lexicon(head, _some(entries, where))


def parse_codespell(content: bytes, where: str) -> Lexicon:
    """Invert codespell's dictionary: `wrong->right[, right2,][ reason]` per line.

    A word's misspellings share its weight equally; one with n corrections counts 1/n. What nobody
    would write for the word is left out, see `_plausible`.
    """
    entries = []
    for line in content.decode().splitlines():
        wrong, _, rest = line.partition("->")
        *rights, reason = [part.strip() for part in rest.split(",")] if "," in rest else [rest, ""]
        if reason.startswith("disabled"):
            continue
        weight = max(1, 12 // len(rights))
        if len(rights) > 1:
            rights = [right for right in rights if " " not in right.strip()]
        pairs = [(fold(right.strip()), fold(wrong)) for right in rights if matchable(right.strip())]
        entries += [Entry(*pair, weight) for pair in pairs if _plausible(*pair)]
    return Lexicon(dict(CODESPELL), sorted(set(entries)))


_SPELLED_MIN, _ERRORS_MAX = 4, 3


def _plausible(clean: str, noisy: str) -> bool:
    """Tell whether people misspell so: up to three errors, in ASCII.

    Codespell lists one odd slip for many of the commonest words (is: ois, in: inh), which would
    stand in a fifth of all sentences. Words under four letters are mistyped, not misspelled: two
    letters swapped, one left out, or one doubled.
    """
    from rapidfuzz.distance import OSA

    if clean == noisy or not noisy.isascii() or OSA.distance(clean, noisy) > _ERRORS_MAX:
        return False
    if len(clean) >= _SPELLED_MIN:
        return True
    doubled = {clean[:at] + clean[at] + clean[at:] for at in range(len(clean))}
    dropped = (
        {clean[:at] + clean[at + 1 :] for at in range(len(clean))} if len(clean) > 2 else set()
    )
    return sorted(clean) == sorted(noisy) or noisy in doubled | dropped


def matchable(phrase: str) -> bool:
    """Tell whether a phrase is words with one ASCII character between neighbours."""
    return _MATCHABLE.fullmatch(phrase) is not None
