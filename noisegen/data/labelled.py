"""Labelled rows of three tasks, from WikiANN, SNIPS, MultiATIS++, MultiSNIPS and XNLI.

The tasks are named entities, slots with intents, and natural language inference. The test files of
the noise benchmark RCP have the same formats.
"""

import glob
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from noisegen.data.columns import (
    ROWS_MAX,
    TextColumns,
    damaged_rows,
    stream_columns,
    within_memory,
)
from noisegen.data.conll import sentences
from noisegen.data.decoders import without_compression
from noisegen.data.features import class_names, label_names
from noisegen.data.files import Damaged
from noisegen.data.folders import in_folder
from noisegen.data.formats.registry import file_of
from noisegen.data.formats.slot_files import split_lines
from noisegen.data.lines import BOM, read_parts
from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import completed, expand, first_file, read, shard_ranges
from noisegen.errors import SourceError

OUTSIDE = "O"
# Most tokens and characters of a row: a WikiANN file without blank lines would be a single row
TOKENS_MAX, CHARACTERS_MAX = 10_000, 100_000
FILE_MAX = 256 << 20  # most decompressed bytes of a JSON file

SLOT_COLUMNS = {  # the corpus (value) whose tables have these columns (key)
    ("id", "old_utterance", "new_utterance", "slot_labels", "intent"): "snips",
    ("id", "utterance", "slot_labels", "intent"): "atis",
    ("utterance", "slot_labels", "intent"): "atis",
}
NLI_COLUMNS = (
    ("language", "sentence1", "sentence2", "gold_label"),
    ("sentence1", "sentence2", "gold_label"),
    ("premise", "hypothesis", "label"),
    ("premise", "hypo", "label"),
)
TAG_COLUMNS = ("ner_tags", "labels", "tags", "upos", "pos_tags")
_UNREADABLE = (  # reasons for dropping a row because its input is damaged
    "not_utf8",
    "bad_json",
    "bad_row",
    "wrong_columns",
    "open_quote",
    "row_too_long",
    "truncated",
)
_REPLACED = re.compile(r"<(\S+?)\|\d+>")  # a noisy token in files of RCP: <tomorow|1>
# Names of XNLI's classes. 'contradictory' is in the English training data; RCP and Hugging Face
# have numbers.
_NUMBERED = ("entailment", "neutral", "contradiction")
_CLASSES = {"contradictory": "contradiction"} | {str(n): c for n, c in enumerate(_NUMBERED)}
_WIKIANN_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")  # in order of number
# Labels of pairs on which annotators disagreed: in XNLI, and in Hugging Face's copy
_NO_CLASS = ("-", "-1")
_PREFIXED = re.compile(r"([a-z]{2,3}(?:-[a-z-]+)?):.")


@dataclass(frozen=True)
class LabelledRow:
    """A text as tokens, with the labels of its task.

    `tags` has one tag per token, `label` is the intent of a request or the class of a sentence
    pair, `second` is the second sentence of a pair, and `key` is the id of the row in its file.
    Fields that the task does not use are empty.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...] = ()
    label: str = ""
    second: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """The tokens joined by spaces."""
        return " ".join(self.tokens)

    @property
    def is_too_long(self) -> bool:
        """Whether the row has over TOKENS_MAX tokens or CHARACTERS_MAX characters."""
        size = len(self.text) + len(self.second)
        return len(self.tokens) > TOKENS_MAX or size > CHARACTERS_MAX


@dataclass
class LabelledRows:
    """Labelled rows of a source, and counts of rows that were left out.

    `corpus` names the format of the source ('snips'). `noisy` has a noisy version of each row; it
    is empty if the source has none. `dropped` counts dropped rows by reason; `damaged` describes
    unreadable rows in lines for the user: 'test.tsv: 3 rows not_utf8'.
    """

    corpus: str
    rows: list[LabelledRow] = field(default_factory=list)
    noisy: list[LabelledRow] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)

    def add(self, row: LabelledRow | str, *noisy: LabelledRow) -> None:
        """Add a row, and its noisy version if there is one.

        A row is dropped and counted if it or its noisy version is too long. If `row` is the reason
        why a row was dropped, the reason is counted.
        """
        if isinstance(row, str):
            self.dropped[row] += 1
        elif any(version.is_too_long for version in (row, *noisy)):
            self.dropped["too_long"] += 1
        else:
            self.rows.append(row)
            self.noisy += noisy

    def report_unreadable(self, source: object) -> None:
        """Move the counts of unreadable rows from `dropped` to `damaged`, as lines for the user."""
        unreadable = [reason for reason in self.dropped if reason in _UNREADABLE]
        lost = {reason: self.dropped.pop(reason) for reason in unreadable}
        self.damaged += damaged_rows(source, lost)

    def drop_strays(self) -> None:
        """Drop and count rows with a tag without B- or I-, if most tags have B- or I-.

        The tag O is ignored.
        """
        tags = Counter(tag for row in self.rows for tag in row.tags if tag != OUTSIDE)
        strays = {tag for tag in tags if tag_kind(tag) == tag}
        if 2 * sum(tags[tag] for tag in strays) >= tags.total():
            return
        before = len(self.rows)
        self.rows = [row for row in self.rows if strays.isdisjoint(row.tags)]
        self.noisy = [row for row in self.noisy if strays.isdisjoint(row.tags)]
        self.dropped += Counter(unknown_tag=before - len(self.rows))


def tag_kind(tag: str) -> str:
    """Return a tag without B- or I-: 'PER' for 'B-PER', 'I-PER' and 'PER'."""
    return tag[2:] if tag[:2] in ("B-", "I-") and len(tag) > 2 else tag


def is_marked(rows: Iterable[LabelledRow]) -> bool:
    """Tell whether all tags but O begin with B- or I-."""
    return all(tag == OUTSIDE or tag_kind(tag) != tag for row in rows for tag in row.tags)


def unmarked(rows: Iterable[LabelledRow]) -> list[LabelledRow]:
    """Return the rows with B- and I- removed from all tags."""
    return [replace(row, tags=tuple(map(tag_kind, row.tags))) for row in rows]


# Functions that read tables of requests and of sentence pairs.


def read_slots(source: str) -> LabelledRows:
    """Read requests from a table, with an intent, a slot label per token, and any noisy versions.

    Raises SourceError.
    """
    read = TextColumns({})
    rows = LabelledRows("")
    for texts in _table_rows(source, list(SLOT_COLUMNS), "intent-slots", rows, read):
        tags = tuple(texts["slot_labels"].split())
        clean = tuple(texts.get("old_utterance", texts.get("utterance", "")).split())
        noisy = tuple(_REPLACED.sub(r"\1", texts.get("new_utterance", "")).split())
        if len(clean) != len(tags) or (noisy and len(noisy) != len(tags)):
            rows.dropped["unequal_labels"] += 1
            continue
        row = LabelledRow(clean, tags, texts["intent"].strip(), key=texts.get("id", ""))
        rows.add(row, *([replace(row, tokens=noisy)] if noisy else []))
    rows.corpus = SLOT_COLUMNS[tuple(read.columns)]
    return rows


def read_nli(source: str, lang: str) -> LabelledRows:
    """Read sentence pairs with their class; drop rows in another language than `lang`.

    Raises SourceError.
    """
    rows = LabelledRows("xnli")
    for texts in _table_rows(source, NLI_COLUMNS, "nli", rows, TextColumns({})):
        *_, first, second, label = (text.strip() for text in texts.values())
        if texts.get("language", lang) != lang:
            rows.dropped["other_language"] += 1
        elif label in _NO_CLASS:
            rows.dropped["no_label"] += 1
        else:
            if label.isdecimal():  # as in files of RCP, which also have apostrophes around texts
                first, second = map(_unquoted, (first, second))
            label = _CLASSES.get(label, label)
            rows.add(LabelledRow(tuple(first.split()), (), label, " ".join(second.split())))
    return rows


def _unquoted(text: str) -> str:
    return text[1:-1].strip() if text[:1] == text[-1:] == "'" and len(text) > 1 else text


def read_split(source: str) -> LabelledRows:
    """Read requests with slots and intents from the `SPLIT_FILES` of a folder; raises SourceError.

    Lines after the first ROWS_MAX are dropped as `over_limit`.
    """
    rows = LabelledRows("atis" if "atis" in Path(source).resolve().parts else "snips")
    for lines in within_memory(split_lines(source), rows.dropped):
        rows.add(_request_row(*lines))
    rows.report_unreadable(source)
    return rows


def _request_row(text: str | None, slots: str | None, intent: str | None) -> LabelledRow | str:
    """Return a request with its slots and its intent, or the reason why it is dropped."""
    if text is None or slots is None or intent is None:
        return "not_utf8"
    if not (text.strip() and intent.strip()):
        return "empty_cell"
    tokens, tags = tuple(text.split()), tuple(slots.split())
    if len(tokens) != len(tags):
        return "unequal_labels"
    return LabelledRow(tokens, tags, intent.strip())


def _table_rows(
    source: str, choices: Sequence[Sequence[str]], what: str, rows: LabelledRows, read: TextColumns
) -> Iterator[dict[str, str]]:
    """Yield each row of a table as {column: text}; rows left out are counted in `rows`."""
    for texts in within_memory(stream_columns(source, choices, what, read), read.dropped):
        yield dict(zip(read.columns, texts, strict=True))
    rows.dropped += read.dropped
    rows.damaged += read.damaged


# Functions that read SNIPS, JSON files of {intent: requests}. A request is a list of pieces of its
# text; a slot is a piece: "play ", "Queen" (slot artist).


class _Piece(msgspec.Struct):
    text: str
    entity: str | None = None


class _Request(msgspec.Struct):
    data: list[_Piece]


def is_snips(source: str) -> bool:
    """Tell whether a source is a JSON file, or a folder or glob with JSON files."""
    return bool(_json_files(source))


def _json_files(source: str) -> list[Path]:
    path = Path(source)
    named = [path] if path.exists() else map(Path, glob.glob(source))  # noqa: PTH207
    paths = path.iterdir() if path.is_dir() else named
    return sorted(
        path for path in paths if without_compression(path.name.lower()).endswith(".json")
    )


def read_snips(source: str) -> LabelledRows:
    """Read JSON files of SNIPS, compressed or not: a file, folder or glob; raises SourceError.

    Each piece of a request is split into tokens at spaces by itself, so that a token has at most
    one slot: if in "Queen's" only "Queen" is a slot, the tokens are "Queen" and "'s". Slots become
    tags B-x and I-x.
    """
    rows = LabelledRows("snips")
    for path in _json_files(source):
        for intent, request in _requests(path):
            rows.add(_snips_row(intent, request))
        rows.report_unreadable(path)
    return rows


def _snips_row(intent: str, request: Any) -> LabelledRow | str:
    """Return a request of SNIPS, or the reason why it is dropped."""
    try:
        pieces = msgspec.convert(request, _Request).data
    except msgspec.ValidationError:
        return "bad_row"
    tokens: list[str] = []
    tags: list[str] = []
    for piece in pieces:
        words = piece.text.split()
        marks = ("B" + "I" * len(words))[: len(words)]
        tokens += words
        tags += [f"{mark}-{piece.entity}" if piece.entity else OUTSIDE for mark in marks]
    if any("\N{REPLACEMENT CHARACTER}" in token for token in tokens):
        return "not_utf8"
    return LabelledRow(tuple(tokens), tuple(tags), intent) if tokens else "empty_cell"


def _requests(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (intent, request) for each request in a file of SNIPS.

    Yields (intent, None) for an intent without a list of requests. Raises SourceError.
    """
    content = _content(path)
    try:  # one published file encodes an emoji as two surrogates, which are joined here
        halves = content.decode("utf-8", "surrogatepass")
        text = halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
    try:
        intents = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.ValidationError as error:
        raise SourceError(f"{path} is not a SNIPS file: it has no object of intents") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"{path} is not JSON: {error}") from error
    for intent, requests in intents.items():
        for request in requests if isinstance(requests, list) else [None]:
            yield intent, request


def _content(path: Path) -> bytes:
    """Return the decompressed content of a file.

    Raises SourceError if the file is damaged, empty or too large.
    """
    content = bytearray()
    try:
        for part in read_parts(path):
            content += part
            if len(content) > FILE_MAX:
                raise SourceError(f"{path} is larger than {FILE_MAX >> 20} MiB: split it")
    except Damaged as damage:
        raise SourceError(f"{path} is damaged: {damage}") from damage
    if not content.removeprefix(BOM).strip():
        raise SourceError(f"{path} is empty: get it again")
    return bytes(content.removeprefix(BOM))


# Functions that read tokens with tags: from tables of lists, from files with a token per line, and
# from WikiANN, whose lines are `lang:token TAB tag`.


def read_tags(source: str, lang: str) -> LabelledRows:
    """Read tokens with tags from WikiANN, another file with a token per line, or a table.

    A table has its tokens in the column `tokens`, and its tags in the first of `TAG_COLUMNS` that
    it has. Numbers are replaced by the table's class names; in `ner_tags` without class names, by
    WikiANN's tags. Rows whose column `langs` has another language than `lang` are dropped, and rows
    after the first ROWS_MAX, as `over_limit`. Raises SourceError.
    """
    if _is_wikiann(Path(source)):
        return read_wikiann(source, lang)
    files = [file for file in expand(source) if not file.skipped]
    columns, _ = completed(files, Columns())
    if not columns.labels:
        columns = replace(columns, tokens="tokens", labels=_tag_column(files, columns))
    rows = LabelledRows("wikiann")
    for row in within_memory(_table_tags(files, columns, lang, rows.dropped), rows.dropped):
        rows.add(row)
    rows.report_unreadable(source)
    return rows


def _is_wikiann(path: Path) -> bool:
    """Tell whether `path` may be WikiANN: its files end in .txt, .tsv or an unknown ending."""
    files = in_folder(str(path)) if path.is_dir() else [file_of(path)]
    return path.exists() and all(file.format in ("", "txt", "tsv") for file in files)


def _tag_column(files: Sequence[FileRange], columns: Columns) -> str:
    """Return the column of tags in a table: the first of `TAG_COLUMNS` that it has.

    If it has none, the first of `TAG_COLUMNS` is returned, and later reported as missing.
    """
    file = first_file(files, columns)
    names = file.schema.names if file else []
    return next((name for name in TAG_COLUMNS if name in names), TAG_COLUMNS[0])


def _table_tags(
    files: Sequence[FileRange], columns: Columns, lang: str, dropped: Counter[str]
) -> Iterator[LabelledRow]:
    """Yield the rows of tables; rows in languages other than `lang` are dropped and counted."""
    for shard in shard_ranges(files, columns, ROWS_MAX):
        for batch in read(shard, columns):
            schema = batch.table.schema
            classes = class_names(schema).get(columns.labels or "", ())
            # RCP's tables have numbers without class names
            if columns.labels == TAG_COLUMNS[0] and not classes:
                classes = _WIKIANN_TAGS
            used = [columns.tokens, columns.labels, *{"langs"}.intersection(schema.names)]
            cells = (batch.table[name].to_pylist() for name in used)
            for words, numbers, *langs in zip(*cells, strict=True):
                if langs and {*(langs[0] or ())} - {lang}:
                    dropped["other_language"] += 1
                else:
                    tags = map(str, label_names(numbers, classes))
                    yield LabelledRow(tuple(words), tuple(tags))
            dropped += batch.dropped


def read_wikiann(source: str, lang: str) -> LabelledRows:
    """Read the sentences in `lang` of a WikiANN file; raises SourceError if there is no such file.

    A sentence is in another language if all its tokens begin with this language's code (de:Haus).
    """
    path = Path(source)
    if not path.is_file():
        is_folder = f"{source!r} is a folder: name a file in it"
        raise SourceError(is_folder if path.is_dir() else f"{source!r}: no such file")
    rows = LabelledRows("wikiann")
    try:
        for lines in within_memory(sentences(read_parts(path)), rows.dropped):
            rows.add(lines if isinstance(lines, str) else _sentence_row(lines, lang))
    except Damaged as damage:
        rows.damaged.append(f"{path}: {damage}")
    rows.report_unreadable(path)
    return rows


def _sentence_row(lines: Sequence[str], lang: str) -> LabelledRow | str:
    """Return the lines of a WikiANN sentence as a row, or the reason why it is dropped."""
    if len(lines) > TOKENS_MAX:
        return "too_long"
    fields = [line.removeprefix("\N{BOM}").split("\t") for line in lines]
    if any(len(fields_of_line) != 2 for fields_of_line in fields):
        return "wrong_columns"
    if not all(token.strip() and tag.strip() for token, tag in fields):
        return "unequal_labels"
    tokens, tags = zip(*((token, tag.strip()) for token, tag in fields), strict=True)
    code = _code_of_all(tokens)
    if code not in ("", lang):
        return "other_language"
    if code:
        tokens = tuple(token.removeprefix(f"{code}:") for token in tokens)
    return LabelledRow(tokens, tags)


def _code_of_all(tokens: Sequence[str]) -> str:
    """Return the language code that all tokens begin with, as en in `en:word`; '' if none."""
    matches = (_PREFIXED.match(token) for token in tokens)
    codes = {match[1] if match else "" for match in matches}
    return codes.pop() if len(codes) == 1 else ""
