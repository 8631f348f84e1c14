"""Queries, documents and judgements of a retrieval set, as BEIR, MS MARCO and TREC publish them.

Thakur et al., "BEIR" (NeurIPS 2021), has the files corpus.jsonl, queries.jsonl and qrels/test.tsv.
Zhuang and Zuccon, "CharacterBERT and Self-Teaching" (SIGIR 2022), publish DL-Typo: query.typo.tsv
with the queries as people typed them, query.tsv with their corrections, and qrels.txt.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from noisegen.data.columns import (
    ROWS_MAX,
    TextColumns,
    in_brackets,
    stream_columns,
    within_memory,
)
from noisegen.data.decoders import without_compression
from noisegen.data.lines import read_parts
from noisegen.data.tables import undamaged_lines
from noisegen.errors import SourceError

_CORPUS, _QUERIES = ("corpus", "collection"), ("queries", "query")
_TYPED = ("queries.noisy", "query.typo")  # queries as people typed them
_ENDINGS = ("jsonl", "parquet", "tsv")
_QRELS = "qrels"
_QRELS_ENDINGS = (".tsv", ".txt")
_GRADE = re.compile(r"-?\d{1,9}(\.0+)?")
_LAYOUT = "a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv, as in BEIR"


@dataclass(frozen=True)
class JudgedQueries:
    """Queries with the documents that people judged for them.

    `queries` has the columns `id`, `clean` and, if people typed them with errors, `noisy`.
    `documents` are texts; `rows` maps the id of a document to its index, for documents that are
    judged or have the id of a query. `grades` maps the id of a query to {id of a document: grade},
    where grades above 0 mean relevant. `lost` counts, by reason, the documents ('documents') and
    judgements ('judgements') that are left out.
    """

    queries: TextColumns
    documents: list[str]
    rows: dict[str, int]
    grades: dict[str, dict[str, int]]
    lost: dict[str, Counter[str]]


def read_judged(source: str, noisy: str | None = None) -> JudgedQueries:
    """Read a retrieval set from a folder, or from one file of judgements in it.

    `noisy` is a file with the queries as people typed them, by the same ids; by default it is
    queries.noisy.jsonl or query.typo.tsv in the folder, if one is there. Documents are title and
    text joined by a space, as in BEIR. Documents that are not judged are dropped as `over_limit`
    after the first ROWS_MAX. Documents and queries without text are dropped as `empty_cell`, with
    an earlier id as `duplicate_id`. Queries without a relevant document are dropped as
    `no_relevant_document`, without a noisy form as `no_noisy_query`. Raises SourceError for missing
    or empty files.
    """
    folder, path = _places(Path(source))
    texts, queries = _texts(_file(folder, _QUERIES), "queries")
    typos = Path(noisy) if noisy else _find(folder, _TYPED)
    typed, read_typed = _texts(typos, "noisy queries") if typos else (texts, TextColumns({}))
    lost = Counter[str]()
    grades = _grades(path, lost)
    if unknown := grades.keys() - texts.keys():
        lost["query_not_found"] = sum(len(grades.pop(name)) for name in unknown)
    relevant = {name for name, found in grades.items() if max(found.values()) > 0}
    kept = [name for name in texts if name in relevant and name in typed]
    dropped = Counter(
        no_relevant_document=len(texts.keys() - relevant),
        no_noisy_query=len(texts.keys() & relevant - typed.keys()),
    )
    if not kept:
        counts = in_brackets(+dropped + lost)
        raise SourceError(f"{source}: no query has a relevant document in {path.name}{counts}")
    columns = {"id": kept, "clean": [texts[name] for name in kept]}
    if typos:
        columns["noisy"] = [typed[name] for name in kept]
    wanted = {*kept, *chain.from_iterable(grades[name] for name in kept)}
    documents, rows, corpus = _corpus(_file(folder, _CORPUS), wanted)
    lost["document_not_found"] = sum(one not in rows for name in kept for one in grades[name])
    damaged = [*queries.damaged, *read_typed.damaged, *corpus.damaged]
    return JudgedQueries(
        TextColumns(columns, queries.dropped + dropped, damaged),
        documents,
        rows,
        {name: grades[name] for name in kept},
        {"documents": corpus.dropped, "judgements": +lost},
    )


# Functions that find files.


def _places(source: Path) -> tuple[Path, Path]:
    """Return the folder of a retrieval set and its file of judgements; raises SourceError.

    The file is test.tsv if qrels/ has several.
    """
    if source.is_file():
        parent = source.parent
        return (parent.parent if parent.name == _QRELS else parent), source
    if not source.is_dir():
        raise SourceError(f"{source}: no such folder; a retrieval set is {_LAYOUT}")
    found = [
        path
        for folder in (source / _QRELS, source)
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if _is_judgements(path) and (folder.name == _QRELS or path.name.startswith(_QRELS))
    ]
    tests = [path for path in found if path.name.startswith("test.")]
    if not found:
        raise SourceError(f"{source}: no judgements; a retrieval set is {_LAYOUT}")
    if len(tests or found) > 1:
        names = ", ".join(path.name for path in found)
        raise SourceError(f"{source}: several files of judgements; name one of {names}")
    return source, (tests or found)[0]


def _is_judgements(path: Path) -> bool:
    return without_compression(path.name).endswith(_QRELS_ENDINGS) and path.is_file()


def _find(folder: Path, stems: tuple[str, ...]) -> Path | None:
    """Return the file of a folder with one of these names and a known ending; None if none is."""
    names = {without_compression(path.name): path for path in sorted(folder.iterdir())}
    wanted = (f"{stem}.{ending}" for stem in stems for ending in _ENDINGS)
    return next((names[name] for name in wanted if name in names), None)


def _file(folder: Path, stems: tuple[str, ...]) -> Path:
    path = _find(folder, stems)
    if path is None:
        wanted = " or ".join(f"{stem}.{ending}" for stem in stems for ending in _ENDINGS[::2])
        raise SourceError(f"{folder}: no {wanted}; a retrieval set is {_LAYOUT}")
    return path


# Functions that read files.


def _rows(path: Path, what: str, read: TextColumns) -> Iterator[tuple[str, str]]:
    """Yield id and text of each row; count rows without text, and rows with an earlier id.

    A .tsv file has no header line: its columns are id and text, as in MS MARCO.
    """
    is_plain = without_compression(path.name).endswith(".tsv")
    choices = [("1", "2")] if is_plain else [("_id", "title", "text"), ("_id", "text")]
    seen = set[str]()
    for name, *parts in stream_columns(str(path), choices, what, read, needed=1):
        text = " ".join(part.strip() for part in parts if part).strip()
        if not text or name in seen:
            read.dropped["duplicate_id" if text else "empty_cell"] += 1
            continue
        seen.add(name)
        yield name, text


def _texts(path: Path, what: str) -> tuple[dict[str, str], TextColumns]:
    """Return the texts of a file by id, and the counts of its rows that are left out."""
    read = TextColumns({})
    return dict(within_memory(_rows(path, what, read), read.dropped)), read


def _corpus(path: Path, wanted: set[str]) -> tuple[list[str], dict[str, int], TextColumns]:
    """Return documents, the index of each id in `wanted`, and the counts of rows left out.

    The limit of ROWS_MAX documents does not drop documents in `wanted`.
    """
    read, documents, rows = TextColumns({}), list[str](), dict[str, int]()
    for name, text in _rows(path, "documents", read):
        if name in wanted:
            rows[name] = len(documents)
        elif len(documents) >= ROWS_MAX:
            read.dropped["over_limit"] += 1
            continue
        documents.append(text)
    return documents, rows, read


def _grades(path: Path, lost: Counter[str]) -> dict[str, dict[str, int]]:
    """Return {query: {document: grade}} of a file of judgements, BEIR's or TREC's.

    BEIR has three fields separated by tabs, below a header line; TREC has four, separated by tabs
    or spaces, the second of them unused. A line of another form is counted as `malformed`, a second
    judgement of the same document as `duplicate`.
    """
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(undamaged_lines(read_parts(path), path)):
        fields = (line or "").split("\t" if line and "\t" in line else None)
        if line == "" or (number == 0 and fields[-1:] == ["score"]):
            continue
        if len(fields) not in (3, 4) or not _GRADE.fullmatch(fields[-1]):
            lost["malformed"] += 1
            continue
        of_query = grades.setdefault(fields[0], {})
        if fields[-2] in of_query:
            lost["duplicate"] += 1
        else:
            of_query[fields[-2]] = int(float(fields[-1]))
    return grades
