"""Rows with annotated texts, in the forms, nestings and files in which people have them.

A row is a dict with its `id`, its `texts` and for each text its `spans`, as [start, end]. A layout
gives it a shape, a form writes the spans, and a file format holds the rows.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.files import shard_files

Row = dict[str, Any]
Spans = Sequence[tuple[int, int]]
Form = Callable[[Spans, str, Sequence[str]], Any]  # spans, their text, and a label for each


def _objects(start: str, end: str, *, last: int = 0, covered: str = "") -> Form:
    """Return the form of objects with these names; ends are less by `last`."""

    def write(spans: Spans, text: str, labels: Sequence[str]) -> Any:
        made = []
        for (low, high), label in zip(spans, labels, strict=True):
            one = {start: low, end: high - last, "label": label}
            made.append(one | ({covered: text[low:high]} if covered else {}))
        return made

    return write


def _lists(spans: Spans, _: str, labels: Sequence[str]) -> Any:
    return [[*span, label] for span, label in zip(spans, labels, strict=True)]


def _covered_lists(spans: Spans, text: str, labels: Sequence[str]) -> Any:
    return [[*span, label, text[slice(*span)]] for span, label in zip(spans, labels, strict=True)]


def _answers(spans: Spans, text: str, _: Sequence[str]) -> Any:
    covered = [text[slice(*span)] for span in spans]
    return {"text": covered, "answer_start": [low for low, _ in spans]}


def _single_answers(spans: Spans, text: str, _: Sequence[str]) -> Any:
    return [{"text": text[slice(*span)], "answer_start": span[0]} for span in spans]


def _parallel(spans: Spans, _: str, labels: Sequence[str]) -> Any:
    starts, ends = [low for low, _ in spans], [high for _, high in spans]
    return {"label": [*labels], "start": starts, "end": ends}


def _lengths(spans: Spans, _: str, labels: Sequence[str]) -> Any:
    pairs = zip(spans, labels, strict=True)
    return [{"offset": low, "length": high - low, "type": label} for (low, high), label in pairs]


def _studio(spans: Spans, text: str, labels: Sequence[str]) -> Any:
    values = _objects("start", "end", covered="text")(spans, text, labels)
    return [{"id": 1, "result": [{"from_name": "ner", "value": value} for value in values]}]


FORMS: dict[str, Form] = {
    "start and end": _objects("start", "end"),
    "startOffset": _objects("startOffset", "endOffset"),
    "char_start": _objects("char_start", "char_end"),
    "begin and text": _objects("begin", "end", covered="text"),
    "last character": _objects("start", "end", last=1, covered="surface"),
    "lists": _lists,
    "pairs": lambda spans, *_: [[*span] for span in spans],
    "lists with text": _covered_lists,
    "spaCy": lambda *given: {"entities": _lists(*given)},
    "answers": _answers,
    "single answers": _single_answers,
    "parallel lists": _parallel,
    "offset and length": _lengths,
    "Label Studio": _studio,
    "JSON in a text": lambda *given: json.dumps(_lists(*given)),
    "two columns": _objects("start", "end"),
    "two columns and text": _objects("start", "end", covered="word"),
    "relation": _objects("start", "end", covered="word"),
}
MIXED = ("lists", "lists with text", "spaCy")  # lists of numbers and texts, which Arrow has not
WHOLE = ("last character", "answers", "single answers", "relation")  # no empty spans
OF_ROW = ("two columns", "two columns and text", "relation")  # spans in columns of the row


_TEXTUAL = "JSON in a text"  # only columns may have it
IN_COLUMNS = tuple(name for name in FORMS if name not in OF_ROW)
IN_FIELDS = tuple(name for name in IN_COLUMNS if name != _TEXTUAL)


# Layouts.


@dataclass(frozen=True)
class Layout:
    """The shape of a row: paths to its texts and spans, and a function that makes it.

    `build` gets the row, its texts, and a function that writes the spans of a text; the function
    takes the index of the text, and a slice to write only some of its spans. `texts` is the number
    of texts per row, None for any number.
    """

    paths: tuple[str, ...]
    spans: tuple[str, ...]
    texts: int | None
    build: Callable[[Row, Sequence[str], Callable[..., Any]], Row]
    align: str | None = None
    forms: tuple[str, ...] = IN_COLUMNS
    is_flat: bool = False


def _flat(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    return {"id": row["id"], "other": "1.50 – é", "text": texts[0], "n": 1.5, "spans": write(0)}


def _in_columns(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    sides = {"left": write(0), "premise": texts[0], "hypothesis": texts[1], "right": write(1)}
    return {"id": row["id"], **sides, "label": 2}


def _field(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    inner = {"title": "I do not", "text": texts[0], "spans": write(0)}
    return {"doc": {"meta": {"n": [1, 2]}, **inner}, "id": row["id"]}


def _chat(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    turns = [
        {
            "role": "user" if number % 2 == 0 else "assistant",
            "content": text,
            "spans": write(number),
        }
        for number, text in enumerate(texts)
    ]
    return {"id": row["id"], "messages": turns, "source": "I do not know."}


def _paragraphs(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    made = []
    for number, text in enumerate(texts):
        parts = [slice(0, 1), slice(1, None)]
        qas = [{"question": "Do you not?", "answers": write(number, part)} for part in parts]
        made.append({"context": text, "qas": qas})
    return {"id": row["id"], "title": "T", "paragraphs": made}


def _of_row(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    columns = write(0)[0]
    del columns["label"]
    return {"id": row["id"], "text": texts[0], **columns, "other": "7"}


def _relation(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    made = {"id": row["id"], "text": texts[0]}
    for name, one in zip(("head", "tail"), write(0), strict=True):
        made |= {f"{name}_start": one["start"], f"{name}_end": one["end"], name: one["word"]}
    return made


def _bitext(row: Row, texts: Sequence[str], write: Callable[..., Any]) -> Row:
    sides = {"source": texts[0], "target": texts[1]}
    return {"id": row["id"], **sides, "links": row["links"], "spans": write(0)}


LAYOUTS: dict[str, Layout] = {
    "text": Layout(("text",), ("spans",), 1, _flat, is_flat=True),
    "columns": Layout(
        ("premise", "hypothesis"), ("left=premise", "right=hypothesis"), 2, _in_columns
    ),
    "field": Layout(("doc.text",), ("doc.spans",), 1, _field, forms=IN_FIELDS),
    "chat": Layout(
        ("messages[role=user].content",), ("messages[].spans",), None, _chat, forms=IN_FIELDS
    ),
    "paragraphs": Layout(
        ("paragraphs[].context",),
        ("paragraphs[].qas[].answers",),
        None,
        _paragraphs,
        forms=IN_FIELDS,
    ),
    "columns of spans": Layout(("text",), ("start",), 1, _of_row, forms=OF_ROW[:2], is_flat=True),
    "relation": Layout(
        ("text",), ("head_start", "tail_start"), 1, _relation, forms=OF_ROW[2:], is_flat=True
    ),
    "bitext": Layout(
        ("source",), ("spans=source",), 2, _bitext, align="links=source,target", is_flat=True
    ),
    "bitext, both": Layout(
        ("source", "target"), ("spans=source",), 2, _bitext, align="links=source,target"
    ),
}


def noised(layout: str, row: Row) -> list[bool]:
    """Tell for each text of a row whether it gets noise."""
    other = {"chat": 2, "bitext": 2}.get(layout, 1)  # every second text, or each
    return [number % other == 0 for number in range(len(row["texts"]))]


def in_shape(layout: str, form: str, row: Row, texts: Sequence[str], spans: Sequence[Spans]) -> Row:
    """Return a row in the shape of a layout, with these texts and spans."""

    def write(number: int, part: slice = slice(None)) -> Any:
        labels = row["labels"][number]
        some = [tuple(span) for span in spans[number]]
        return FORMS[form](some[part], texts[number], labels[part])

    return LAYOUTS[layout].build(row, texts, write)


# Files.


@dataclass(frozen=True)
class File:
    """How a file is written; `records` is the path of its rows, with which columns begin."""

    ending: str
    records: str = ""
    style: dict[str, Any] = field(default_factory=dict)
    is_table: bool = False  # True for CSV and TSV, whose cells are texts


FILES = {
    "JSON lines": File("jsonl"),
    "JSON lines, escaped": File("jsonl", style={"ensure_ascii": True, "separators": (",", ":")}),
    "JSON array": File("json", style={"indent": 1}),
    "JSON object": File("json", "data[]", {"indent": None}),
    "Parquet": File("parquet"),
    "CSV": File("csv", is_table=True),
    "CSV, quoted": File("csv", style={"always": True}, is_table=True),
    "TSV": File("tsv", is_table=True),
}


def path_of(file: str, path: str) -> str:
    """Return the path of a column as the columns of a file begin: 'data[].text' for 'text'."""
    first, equals, text = path.partition("=") if "[" not in path else (path, "", "")
    head = f"{FILES[file].records}." if FILES[file].records else ""
    texts = ",".join(head + one for one in text.split(",")) if equals else ""
    return f"{head}{first}{equals}{texts}"


def written(file: str, rows: Sequence[Row], folder: Path) -> Path:
    """Write rows into a file in a folder, and return its path."""
    how = FILES[file]
    path = folder / f"rows.{how.ending}"
    if how.ending == "parquet":
        pq.write_table(pa.Table.from_pylist([*rows]), path, row_group_size=97)
    else:
        path.write_bytes(_bytes(file, rows).encode("utf-8"))
    return path


def _bytes(file: str, rows: Sequence[Row]) -> str:
    how = FILES[file]
    style = {"ensure_ascii": False} | how.style
    if how.ending == "jsonl":
        return "".join(json.dumps(row, **style) + "\n" for row in rows)
    if how.records:
        return json.dumps({"version": "é", "data": rows, "end": [1, {"text": "I do"}]}, **style)
    if how.ending == "json":
        return json.dumps(rows, **style)
    cells = [[*rows[0]], *([cell(value) for value in row.values()] for row in rows)]
    if how.ending == "tsv":
        return "".join("\t".join(line) + "\n" for line in cells)
    return "".join(",".join(_quoted(one, **how.style) for one in line) + "\n" for line in cells)


def _quoted(text: str, *, always: bool = False) -> str:
    is_plain = not always and set(text).isdisjoint(',"\r\n')
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def cell(value: Any) -> str:
    """Return a value as the cell of a table."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_rows(file: str, path: Path) -> list[Row]:
    """Return the rows of a file, or of a folder of shards; cells of tables stay texts."""
    how = FILES[file]
    if path.is_dir():
        tables = [pq.ParquetFile(shard).read() for shard in shard_files(path)]
        return pa.concat_tables(tables).to_pylist()
    if how.ending == "parquet":
        return pq.read_table(path).to_pylist()
    text = path.read_bytes().decode("utf-8")
    if how.ending == "jsonl":
        return [json.loads(line) for line in text.split("\n")[:-1]]
    if how.ending == "json":
        whole = json.loads(text)
        return whole["data"] if how.records else whole
    if how.ending == "tsv":
        names, *lines = (line.split("\t") for line in text.split("\n")[:-1])
    else:
        names, *lines = csv.reader(io.StringIO(text, newline=""))
    return [dict(zip(names, line, strict=True)) for line in lines]


_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+|\s+|.', re.DOTALL)
_CSV = re.compile(r'(?:(?<=[,\n])|^)(?:"(?:[^"]|"")*"|[^,\n"]*)|,|\n')


def odd_byte(before: str, after: str, *, of_csv: bool = False) -> str:
    """Return where two JSON or CSV texts differ though their values there are equal; else ''."""
    split = _CSV if of_csv else _JSON
    pieces = split.findall(before), split.findall(after)
    if len(pieces[0]) != len(pieces[1]):
        first = next((pair for pair in zip(*pieces, strict=False) if pair[0] != pair[1]), "")
        return f"{len(pieces[0])} pieces became {len(pieces[1])}, the first {first}"
    pairs = zip(*pieces, strict=True)
    for one, other in pairs:
        if one != other and _value(one, of_csv=of_csv) == _value(other, of_csv=of_csv):
            return f"{one!r} became {other!r}"
    return ""


def _value(text: str, *, of_csv: bool) -> Any:
    if of_csv:
        return text[1:-1].replace('""', '"') if text[:1] == '"' else text
    try:
        return json.loads(text)
    except ValueError:
        return None  # white space and brackets, which must not differ at all
