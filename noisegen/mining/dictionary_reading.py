"""Dictionaries read back from files that nobody vouches for: every row is checked."""

import json
import math
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.errors import LexiconError, did_you_mean
from noisegen.mining.dictionary import ANY, Alternative
from noisegen.readers import is_unicode

BYTES_MAX = 1 << 30  # of a file; a dictionary of a million entries has 40 MB
ENTRIES_MAX = 20_000_000
TEXT_MAX = 100  # characters of a word
NUMBER_MAX = 1 << 48
PROB_SLACK = 0.05  # probabilities rounded to two digits do not add up to 1
PARTS = 1_000_000  # the count of a probability of 1 where a file has no counts
ROWS = 8_192
TEXTS = ("lang", "clean", "noisy")
NUMBERS = ("count", "pages", "reverse_count")


def load(path: str | Path) -> list[Alternative]:
    """Return the entries of a Parquet, TSV or JSON file, by language, word and falling count.

    Where it has no counts they are `PARTS` times the probability; without probabilities, those are
    shares of the counts. Raises LexiconError of one line: file, row, and what is wrong.
    """
    path = Path(path)
    read = {".parquet": parquet_rows, ".json": _json_rows}.get(path.suffix, _tsv_rows)
    try:
        if path.stat().st_size > BYTES_MAX:
            raise LexiconError(f"{path} has over {BYTES_MAX >> 30} GB: no dictionary")
        return _whole(list(map(_entry, read(path))), path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LexiconError(f"cannot read dictionary {str(path)!r}: {reason}") from error
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise LexiconError(f"{path} is not a Parquet file: {reason}") from error


def parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each row of a Parquet file is, and its known columns; raises LexiconError."""
    names = _parquet_columns(pq.read_schema(path), path)
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


def _parquet_columns(schema: pa.Schema, path: Path) -> list[str]:
    """Return the columns to read; raises LexiconError for a type that is wrong."""
    names = _needed(schema.names, str(path))
    for name in names:
        kind, wanted = schema.field(name).type, "text" if name in TEXTS else "number"
        if not (_is_text if name in TEXTS else _is_number)(kind):
            raise LexiconError(f"{path}: column {name!r} is no {wanted} but {kind}")
    return names


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
    return [None if place is None else words[place] for place in column.indices.to_pylist()]


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _needed(names: list[str], where: str) -> list[str]:
    """Return the columns that are used; raises LexiconError if one is missing."""
    missing = next((name for name in ("clean", "noisy") if name not in names), None)
    if missing is None and not {"count", "weight", "prob"} & set(names):
        missing = "count"
    if missing:
        hint = did_you_mean(missing, names)
        raise LexiconError(f"{where}: no column {missing!r} among: {', '.join(names[:20])}{hint}")
    known = (*TEXTS, *NUMBERS, "weight", "prob")
    return [name for name in known if name in names]


def _tsv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a TSV with a header line; `# lang: xx` above it is their language."""
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        try:
            lines = enumerate((line.rstrip("\r\n") for line in file), 1)
            head, number, names = _head(lines, path)
            used = _needed(names, f"{path} line {number}")
            lang = head.get("lang", ANY)
            yield from _fields(lines, names, used, lang if " " not in lang else ANY, path)
        except UnicodeDecodeError as error:
            raise LexiconError(f"{path} is not UTF-8: {error.reason}") from error


def _head(lines: Iterator[tuple[int, str]], path: Path) -> tuple[dict[str, str], int, list[str]]:
    """Read the lines that begin with '#', and the names of the columns below them."""
    head: dict[str, str] = {}
    for number, line in lines:
        if not line.startswith("#"):
            return head, number, line.split("\t")
        key, _, value = line.lstrip("# ").partition(":")
        head[key.strip()] = value.strip()
    raise LexiconError(f"{path}: no header line")


def _fields(
    lines: Iterator[tuple[int, str]], names: list[str], used: list[str], lang: str, path: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in lines:
        where, fields = f"{path} line {number}", line.split("\t")
        if not line:
            continue
        if len(fields) != len(names):
            raise LexiconError(f"{where}: {len(fields)} columns, not {len(names)} (tabs between)")
        row = dict(zip(names, fields, strict=True))
        read = {name: _parsed(name, row[name], where) for name in used}
        yield where, {"lang": lang} | read


def _parsed(name: str, text: str, where: str) -> str | int | float:
    if name in TEXTS:
        return text
    try:
        return float(text) if name == "prob" else int(text)
    except ValueError as error:
        raise LexiconError(f"{where}: {name} {text[:40]!r} is no number") from error


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
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


def _entry(found: tuple[str, dict[str, Any]]) -> Alternative:
    """Return a row as an entry; its probability is 0 where it is not given."""
    where, row = found
    lang = row.get("lang", ANY)
    for name, text in (("lang", lang), ("clean", row["clean"]), ("noisy", row["noisy"])):
        if not isinstance(text, str) or text.split() != [text] or len(text) > TEXT_MAX:
            shown = repr(text if text is None or len(str(text)) <= 40 else f"{str(text)[:37]}...")
            raise LexiconError(f"{where}: {name} {shown} is not one word")
        if not is_unicode(text):
            raise LexiconError(f"{where}: {name} is not Unicode: half a surrogate pair")
    if row["clean"] == row["noisy"]:
        raise LexiconError(f"{where}: noisy {row['noisy']!r} is equal to clean")
    prob = _prob(row["prob"], where) if "prob" in row else 0.0
    counted = row.get("count", row.get("weight", max(1, round(prob * PARTS))))
    count = _number("count", counted, 1, where)
    pages, reverse = (_number(name, row.get(name, 0), 0, where) for name in NUMBERS[1:])
    return Alternative(lang, row["clean"], row["noisy"], count, pages, reverse, prob)


def _prob(value: Any, where: str) -> float:
    known = isinstance(value, float | int) and not isinstance(value, bool)
    if not known or not math.isfinite(value) or not 0 < value <= 1:
        raise LexiconError(f"{where}: prob {str(value)[:40]} is not a share above 0, up to 1")
    return float(value)


def _number(name: str, value: Any, least: int, where: str) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= NUMBER_MAX:
        raise LexiconError(f"{where}: {name} {str(value)[:40]} is no whole number from {least} up")
    return int(value)


def _whole(entries: list[Alternative], path: Path) -> list[Alternative]:
    """Sort the entries, and check those of each word together."""
    entries.sort(key=lambda entry: (entry.lang, entry.clean, -entry.count, entry.noisy))
    words = (list(group) for _, group in groupby(entries, key=lambda entry: entry[:2]))
    return list(chain.from_iterable(_word(word, path) for word in words))


def _word(word: list[Alternative], path: Path) -> list[Alternative]:
    noisy = [entry.noisy for entry in word]
    if len(set(noisy)) < len(noisy):
        raise LexiconError(f"{path}: {word[0].clean!r} has the same wrong form twice")
    total = sum(entry.prob for entry in word)
    if not total:
        counts = sum(entry.count for entry in word)
        return [entry._replace(prob=entry.count / counts) for entry in word]
    if abs(total - 1) > PROB_SLACK:
        raise LexiconError(f"{path}: the prob of {word[0].clean!r} add up to {total:.3g}, not to 1")
    counts = sum(entry.count for entry in word)
    if any(abs(entry.prob - entry.count / counts) > PROB_SLACK for entry in word):
        raise LexiconError(
            f"{path}: prob and count of {word[0].clean!r} disagree; give one of them"
        )
    return word
