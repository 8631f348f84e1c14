"""Noise for rows with several or nested texts, and annotations that follow it.

A row of the input is a dict of columns here. Noise is added to all texts of a batch at once; then
each row gets its noisy texts, and its spans and alignments are moved along.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.data.formats.json_lines import (
    OBJECTS,
    as_column,
    exact_values,
    object_in,
    patched,
    with_value,
)
from noisegen.data.lines import can_encode
from noisegen.data.paths import (
    Items,
    Path,
    Place,
    general,
    parsed,
    parts_of,
    path_in,
    records_of,
    text_paths,
)
from noisegen.data.rows import Columns
from noisegen.data.spans import Span, is_bound, is_start, nearest, spans_at
from noisegen.data.tables import RAW, Mask, is_unicode
from noisegen.errors import UsageError, one_line
from noisegen.noising.engine import warn_once
from noisegen.noising.rng import name_number, row_keys
from noisegen.text.buffers import I64, U64, as_arrow, one_chunk
from noisegen.text.moves import Edit, Moves

# Adds noise to a table of texts, given the key of each text and the index of its row
Noise = Callable[[pa.Table, U64, I64], pa.Table]
LOST = "\x00lost"  # column with the reason why a row keeps its clean texts; '' for most rows
# Reasons of a row whose annotations cannot follow the noise
_UNMOVED = ("wrong_span", "span_lost", "wrong_alignment")
_OF_NOISE = ("span_lost", "not_in_encoding")  # reasons that may differ between copies of a row
PER_TEXT = ("paths", "clean", "noisy", "transforms", "edits")  # columns with an item per text
_PAIR = re.compile(r"(\d+)-(\d+)")  # a link of an alignment, as Pharaoh writes it
_FITTING = 0.9  # share of the spans inside of a text by which they are taken for its spans
_WORD = re.compile(r"\S+")
_SHOWN = 30  # most characters of a text in an error
_VALUES_SHOWN = 10  # most values of a field in an error


class Annotation(NamedTuple):
    """A place of spans or alignments: the option's value, the path, and the paths of its texts."""

    given: str
    path: Path
    texts: tuple[Path, ...]

    @classmethod
    def of(cls, given: str, names: Sequence[str]) -> "Annotation":
        """Return the place that an option names in a file with the columns `names`."""
        first, *others = (_path(text, names) for text in parts_of(given))
        return cls(given, first, tuple(others))

    def among(self, texts: Sequence[Place], row: dict[str, Any]) -> Sequence[Place]:
        """Return the texts of a row that spans at this place may annotate."""
        if not self.texts:
            return texts
        named = {place.parts for place in self.texts[0].places(row)}
        return [text for text in texts if text.parts in named]


def _path(text: str, names: Sequence[str]) -> Path:
    return path_in(text, names) or Path(text)


def _columns_read(
    spans: Sequence[Annotation], align: Annotation | None, names: Iterable[str]
) -> dict[str, bool]:
    """Return the columns of annotations, with True for those whose texts may hold JSON.

    `names` are the columns that may have the ends and the covered texts of spans.
    """
    annotations = [*spans, *([align] if align else [])]
    used = {one.path.column: one is not align for one in annotations}
    if any(not one.path.steps and is_start(one.path.column) for one in spans):
        used |= {name: is_bound(name) for name in names if name not in (RAW, *used)}
    return used | {one.column: False for annotation in annotations for one in annotation.texts}


@dataclass(frozen=True)
class RowLayout:
    """Where the rows of an input have their texts, their spans and their alignment.

    `columns` has the columns that are read, with True for those whose texts may hold JSON.
    `document` is the beginning of the columns of a document with an array: 'data[].'.
    """

    texts: tuple[Path, ...]
    spans: tuple[Annotation, ...]
    align: Annotation | None
    columns: dict[str, bool]
    is_flat: bool  # True if the row has one text, in a plain column
    document: str = ""

    @classmethod
    def of(cls, columns: Columns, names: Sequence[str]) -> "RowLayout":
        """Return the layout of a file; `names` are its columns, in which all paths begin."""
        columns = columns.of(names)
        texts = tuple(_path(text, names) for text in columns.texts)
        spans = tuple(Annotation.of(given, names) for given in columns.spans)
        align = Annotation.of(columns.align, names) if columns.align else None
        # A span may have its end and covered text in other columns; `clean` is the text of the row.
        beside = [name for name in names if columns.paths or name != "clean"]
        used = _columns_read(spans, align, beside)
        used |= {one.column: bool(one.steps) for one in texts}
        records = records_of(columns.text)
        document = f"{records}[]." if records and records not in names else ""
        return cls(texts, spans, align, used, not columns.paths, document)

    def places(self, row: dict[str, Any]) -> list[Place]:
        """Return the places of the texts of a row, each once."""
        found = {}
        for path in self.texts:
            for place in path.places(row):
                if isinstance(place.value, str) and is_unicode(place.value):
                    found[id(place.holder), place.key] = place
        return list(found.values())

    def moved_spans(
        self, row: dict[str, Any], texts: Sequence[Place]
    ) -> Iterator[tuple[Span, Place]]:
        """Yield the spans of a row, each once, with the text that it annotates.

        Spans of a text without noise are left out. Raises UsageError for a span that may belong to
        several texts.
        """
        parts = {text.parts for text in texts}
        for one, span in self.spans_of(row):
            near = nearest(span.start, one.among(texts, row))
            if len(near) > 1:
                raise UsageError(f"--spans {one.given}: {_choice(one, near[:2])}")
            if near:  # a text beside the span is not its covered text
                covered = tuple(text for text in span.beside if text.parts not in parts)
                yield span._replace(beside=covered), near[0]

    def spans_of(self, row: dict[str, Any]) -> Iterator[tuple[Annotation, Span]]:
        """Yield the spans of a row, each once, with the first option that names its place."""
        seen = set()
        for one in self.spans:
            for span in (span for place in one.path.places(row) for span in spans_at(place)):
                if span.start.parts not in seen:
                    seen.add(span.start.parts)
                    yield one, span


def _choice(one: Annotation, texts: Sequence[Place]) -> str:
    """Return what to do about spans that may belong to either of two texts of a row."""
    first, second = (general(text.parts) for text in texts)
    if first != second:
        return f"of {first!r} or {second!r}? Write --spans {one.path}=PATH"
    places = " or ".join(f"{text.path} ({text.value[:_SHOWN]!r})" for text in texts)
    name = f"name a text, as in --spans {one.path}={texts[0].path}"
    return f"of {places} in one row? Put the spans into the items that have the texts, or {name}"


# Rows of a batch as dicts, and back.


def _rows_of(table: pa.Table, columns: Columns, layout: RowLayout) -> list[dict[str, Any]]:
    """Return the rows of a table; values come from the lines of JSON input, if the table has them.

    Texts that hold JSON are parsed in the columns of `layout` that may have some.
    """
    values = _values_of(table, layout)
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    for number, raw in enumerate(_json_lines(table, columns)):
        if raw is not None:
            rows[number] = object_in(raw, layout.columns)
    may_be_json = [name for name, is_json in layout.columns.items() if is_json]
    return [_parsed(row, may_be_json) for row in rows]


def _values_of(table: pa.Table, layout: RowLayout) -> dict[str, list[Any]]:
    """Return the values of the columns of a layout, as far as the table has them."""
    names = [name for name in layout.columns if name in table.column_names]
    values = {name: exact_values(table[name], table.schema.field(name)) for name in names}
    if layout.is_flat:
        values[layout.texts[0].column] = table["clean"].to_pylist()
    return values


def _parsed(row: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a row with the JSON in its columns `names` as values."""
    return row | {name: parsed(row[name]) for name in names if name in row}


def _json_lines(table: pa.Table, columns: Columns) -> list[bytes | None]:
    """Return the line of JSON of each row; None for rows of other formats."""
    has_json = not set(OBJECTS).isdisjoint(columns.raw or ())
    return table[RAW].to_pylist() if has_json else [None] * len(table)


def _with_rows(table: pa.Table, rows: Sequence[Mapping[str, Any]], columns: Columns) -> pa.Table:
    """Return the table with the values of `rows` in its columns, or in its lines of JSON."""
    raws = _json_lines(table, columns)
    if any(raw is not None for raw in raws):
        lines = [raw and _with_row(raw, row) for raw, row in zip(raws, rows, strict=True)]
        table = replaced(table, RAW, pa.array(lines, pa.binary()))
    if None not in raws:
        return table
    for name in rows[0] if rows else ():
        if name in table.column_names:
            field = table.schema.field(name)
            before = exact_values(table[name], field)
            values = [
                was if raw is not None else as_before(row[name], was)
                for row, raw, was in zip(rows, raws, before, strict=True)
            ]
            if values != before:
                table = replaced(table, name, as_column(values, field))
    return table


def _with_row(raw: bytes, row: Mapping[str, Any]) -> bytes:
    """Return the JSON of a row with the values of `row`."""
    before = object_in(raw, row)
    return patched(raw, {name: as_before(row[name], was) for name, was in before.items()})


def as_before(value: Any, was: Any) -> Any:
    """Return a value as the JSON text that it was parsed from, with its changes; else the value."""
    return with_value(was, value) if isinstance(was, str) and not isinstance(value, str) else value


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Return the table with other values in a column."""
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), values)


# Noise.


def noised(
    table: pa.Table, columns: Columns, ids: U64, noise: Noise, encoding: str = ""
) -> pa.Table:
    """Add noise to all texts of the rows of a table, and move their annotations.

    Texts, spans and alignments change in their columns. New columns are `clean`, `noisy`,
    `transforms`, `edits`, and for several or nested texts `paths`: with an item per text, or for
    one text in a plain column without lists. The column LOST has the reason for a row whose texts
    stay clean.

    `ids` are the numbers of the row ids. Rows stay clean if `encoding` lacks a noisy character.
    """
    layout = RowLayout.of(columns, table.column_names)
    rows = _rows_of(table, columns, layout)
    made, counts, reasons = noise_rows(layout, rows, ids, noise, encoding)
    table = _with_rows(table, rows, columns)
    for name in PER_TEXT[layout.is_flat :]:
        column = one_chunk(made[name])
        if not layout.is_flat:
            offsets = as_arrow(np.append(0, np.cumsum(counts)).astype(np.int32))
            column = pa.ListArray.from_arrays(offsets, column)
        table = table.drop_columns([name] if name in table.column_names else [])
        table = table.append_column(name, column)
    return table.append_column(LOST, pa.array(reasons, pa.string()))


def noise_rows(
    layout: RowLayout,
    rows: Sequence[dict[str, Any]],
    ids: U64,
    noise: Noise,
    encoding: str = "",
) -> tuple[pa.Table, list[int], list[str]]:
    """Add noise to all texts of rows, and move their annotations; the rows change in place.

    Returns a table with a row per text, the count of texts per row, and for each row '' or the
    reason why it stays as it was. `ids` are the numbers of the row ids. Rows stay clean if
    `encoding` lacks a noisy character.
    """
    places = [layout.places(row) for row in rows]
    counts = [len(texts) for texts in places]
    flat = [place for texts in places for place in texts]
    owners = np.repeat(np.arange(len(rows)), counts)
    keys = ids[owners]
    paths = [place.path.removeprefix(layout.document) for place in flat]
    if not layout.is_flat:
        keys = row_keys(np.array(list(map(name_number, paths)), np.uint64), keys)
    texts = pa.table(
        {
            "paths": pa.array(paths, pa.string()),
            "clean": pa.array([place.value for place in flat], pa.string()),
        }
    )
    made = noise(texts, keys, owners)
    reasons = _put(layout, rows, places, made, encoding)
    stays = np.repeat(np.array([bool(reason) for reason in reasons], np.bool_), counts)
    return _cleaned(made, stays), counts, reasons


def _put(
    layout: RowLayout,
    rows: Sequence[dict[str, Any]],
    places: Sequence[Sequence[Place]],
    made: pa.Table,
    encoding: str,
) -> list[str]:
    """Put the noisy texts into their rows, and move the annotations of the rows.

    Returns for each row '', or the reason why it stays as it was.
    """
    pairs = zip(made["noisy"].to_pylist(), made["edits"].to_pylist(), strict=True)
    reasons = []
    for row, texts in zip(rows, places, strict=True):
        made_of_row = list(zip(texts, pairs, strict=False))
        followers = _followers(layout, row, made_of_row)
        reason = followers.reason
        if encoding and not all(can_encode(noisy, encoding) for _, (noisy, _) in made_of_row):
            reason = reason or "not_in_encoding"
        if not reason:
            followers.move()
            for place, (noisy, _) in made_of_row:
                place.put(noisy)
        reasons.append(reason)
    return reasons


class _Followers(NamedTuple):
    """The annotations of a row: `reason` says why they cannot follow the noise, '' if they can.

    `spans` are its spans with their texts' moves, `links` the places of its alignments with their
    new values.
    """

    reason: str = ""
    spans: Sequence[tuple[Span, Moves]] = ()
    links: Sequence[tuple[Place, str]] = ()

    def move(self) -> None:
        """Move the annotations in their row."""
        for span, moves in self.spans:
            span.move(moves)
        for place, links in self.links:
            place.put(links)


def _followers(
    layout: RowLayout, row: dict[str, Any], made: Sequence[tuple[Place, tuple[str, Any]]]
) -> _Followers:
    """Return the annotations of a row; `made` has its texts with their noisy texts and edits."""
    if not made:
        return _Followers("missing_text")
    if not (layout.spans or layout.align):
        return _Followers()
    texts = [place for place, _ in made]
    moves = {place.parts: _moves_of(place.value, *noised) for place, noised in made}
    spans = _spans_of(layout, row, texts, moves)
    if spans is None:
        return _Followers("wrong_span")
    links = _aligned(layout.align, row, moves) if layout.align else []
    if links is None:
        return _Followers("wrong_alignment")
    if any(way.moved(*(span.bounds(way.clean) or (0, 0))) is None for span, way in spans):
        return _Followers("span_lost")
    return _Followers("", spans, links)


def _moves_of(clean: str, noisy: str, edits: Sequence[Mapping[str, Any]]) -> Moves:
    return Moves(clean, noisy, [Edit(**edit) for edit in edits])


def _spans_of(
    layout: RowLayout, row: dict[str, Any], texts: Sequence[Place], moves: Mapping[Any, Moves]
) -> list[tuple[Span, Moves]] | None:
    """Return the spans of a row with the moves of their texts; None if one does not fit."""
    spans = [(span, moves[text.parts]) for span, text in layout.moved_spans(row, texts)]
    return None if any(span.bounds(way.clean) is None for span, way in spans) else spans


def _aligned(
    align: Annotation, row: dict[str, Any], moves: Mapping[Any, Moves]
) -> list[tuple[Place, str]] | None:
    """Return the alignments of a row, renumbered by noisy words; None if one does not fit."""
    new = []
    for place in align.path.places(row):
        if place.value in (None, ""):
            continue
        sides = [nearest(place, list(path.places(row))) for path in align.texts]
        texts = [side[0].value if side else None for side in sides]
        if not all(isinstance(text, str) for text in (place.value, *texts)):
            return None
        made = _renumbered(place.value, *(_ways(side[0], moves) for side in sides))
        if made is None:
            return None
        new.append((place, made))
    return new


def _renumbered(
    links: str, source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]
) -> str | None:
    """Return links '0-0 1-3' with the numbers that words have on each side; None if one is wrong.

    `source` and `target` have for each word the numbers of the noisy words that it became.
    """
    made: dict[str, None] = {}
    for link in links.split():
        match = _PAIR.fullmatch(link)
        one, other = map(int, match.groups()) if match else (len(source), 0)
        if one >= len(source) or other >= len(target):
            return None
        made |= {f"{i}-{j}": None for i in source[one] for j in target[other]}
    return " ".join(made)


def _ways(place: Place, moves: Mapping[Any, Moves]) -> list[list[int]]:
    """Return for each word of a text the numbers of the noisy words that it became."""
    words = [match.span() for match in _WORD.finditer(place.value)]
    if (way := moves.get(place.parts)) is None:
        return [[number] for number in range(len(words))]
    after = [match.span() for match in _WORD.finditer(way.noisy)]
    found = []
    for word in words:
        low, high = way.moved(*word) or (0, 0)
        found.append([n for n, (start, end) in enumerate(after) if start < high and low < end])
    return found


def _cleaned(made: pa.Table, stays: Mask) -> pa.Table:
    """Return noised texts with their clean text and no edits where `stays` is True."""
    if not stays.any():
        return made
    index = as_arrow(np.where(stays, len(made), np.arange(len(made))))
    columns = {"noisy": pc.if_else(pa.array(stays), made["clean"], made["noisy"])}
    for name in {"transforms", "edits"}.intersection(made.column_names):
        kind = made.schema.field(name).type
        with_empty = pa.concat_arrays([one_chunk(made[name]), pa.array([[]], kind)])
        columns[name] = with_empty.take(index)
    for name, values in columns.items():
        made = made.set_column(made.column_names.index(name), name, values)
    return made


# Noised rows, with one text or several each.


def encodable(noised: pa.Table, encoding: str) -> pa.Table:
    """Return noised rows with one text each; those stay clean whose noise `encoding` lacks."""
    stays = np.array([not can_encode(text, encoding) for text in noised["noisy"].to_pylist()])
    reasons = pa.array(np.where(stays, "not_in_encoding", ""), pa.string())
    return _cleaned(noised, stays).append_column(LOST, reasons)


def with_reasons(noised: pa.Table, reasons: pa.Array) -> pa.Table:
    """Return noised rows with `reasons` in the column LOST, where a row has no other reason."""
    if LOST not in noised.column_names:
        return noised.append_column(LOST, reasons)
    known = one_chunk(noised[LOST])
    return replaced(noised, LOST, pc.if_else(pc.equal(known, ""), reasons, known))


def one_per_text(noised: pa.Table) -> pa.Table:
    """Return a row per text for a table with the column `paths`; another table as it is.

    A text has the id of its row.
    """
    if "paths" not in noised.column_names:
        return noised
    owners = pc.list_parent_indices(one_chunk(noised["paths"]))
    columns = {}
    for name in noised.column_names:
        is_per_text = name in PER_TEXT
        columns[name] = (
            pc.list_flatten(one_chunk(noised[name])) if is_per_text else noised[name].take(owners)
        )
    return pa.table(columns)


class Settled(NamedTuple):
    """What becomes of noised rows that get no noise.

    `is_empty` is the mask of rows without a text, `is_gone` the mask of rows to be dropped. `lost`
    counts the rows without noise by reason, `kept` those of them that are not dropped.
    """

    is_empty: Mask
    is_gone: Mask
    lost: Counter[str]
    kept: Counter[str]

    def left(self, noised: pa.Table) -> pa.Table:
        """Return the rows that have texts and are not dropped, without the column LOST."""
        is_out = self.is_empty | self.is_gone
        noised = noised.drop_columns([LOST] if LOST in noised.column_names else [])
        return noised.filter(pa.array(~is_out)) if is_out.any() else noised


def settled(noised: pa.Table, *, drop: bool, is_last: bool) -> Settled:
    """Return the masks and counts of noised rows; with `drop`, lost annotations drop their rows.

    A reason that all copies of a row share is counted with the last copy alone.
    """
    if LOST not in noised.column_names:
        none = np.zeros(len(noised), np.bool_)
        return Settled(none, none, Counter(), Counter())
    reasons = noised[LOST].to_numpy()
    is_gone = np.isin(reasons, _UNMOVED) & drop
    is_counted = (reasons != "") & (is_last | np.isin(reasons, _OF_NOISE))
    lost, kept = (Counter(reasons[some].tolist()) for some in (is_counted, is_counted & ~is_gone))
    return Settled(reasons == "missing_text", is_gone, lost, kept)


# A look at the first rows.


def checked(table: pa.Table, columns: Columns, schema: pa.Schema) -> tuple[Columns, list[str]]:
    """Return the columns with the texts of an alignment named, and a line on each annotation.

    `table` has the first rows of the input, `schema` the columns of its first file. Raises
    UsageError if a path leads to no text or no annotation in these rows.
    """
    layout = RowLayout.of(columns, table.column_names)
    rows = _rows_of(table, columns, layout)
    for given, path in zip(columns.texts, layout.texts, strict=True):
        if not any(isinstance(value, str) for value in _values_at(path, rows)):
            there = _values_instead(path, rows) or _listed_texts(text_paths(table.schema))
            raise UsageError(f"--text-column {given}: no text there in the first rows; {there}")
    notes = [_checked_note(layout, one, rows) for one in layout.spans]
    if layout.align:
        _check_links(layout.align, rows)
    if columns.align and len(parts_of(columns.align)) == 1:
        columns = replace(columns, align=_with_sides(table, columns, schema))
    return columns, list(filter(None, notes))


def _listed_texts(paths: Iterable[str]) -> str:
    return f"texts: {', '.join(paths) or 'none'}"


def _values_instead(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    """Return the values of the field by which a path selects no item: 'role: assistant, user'.

    Returns '' if the path ends elsewhere, and if no item has the field.
    """
    step = path.dead_end(rows)
    if not isinstance(step, Items) or not step.key:
        return ""
    before = path.steps[: path.steps.index(step)]
    values = _values_at(Path(path.column, (*before, Items(), step.key)), rows)
    found = sorted({one_line(value) for value in values if value is not None})
    return f"{step.key}: {', '.join(found[:_VALUES_SHOWN])}" if found else ""


def _checked_note(layout: RowLayout, one: Annotation, rows: Sequence[dict[str, Any]]) -> str:
    if one.path.dead_end(rows) is not None:
        raise UsageError(f"--spans {one.given}: nothing there in the first rows")
    return checked_spans(layout, one, rows)


def checked_spans(layout: RowLayout, one: Annotation, rows: Sequence[dict[str, Any]]) -> str:
    """Return a line on the form of the spans at a place; '' if the first rows have none.

    Raises UsageError if there are other values, and if no span fits its text.
    """
    alone = replace(layout, spans=(one,))
    pairs = (pair for row in rows for pair in alone.moved_spans(row, layout.places(row)))
    found = [(span, text) for span, text in pairs if span.is_known]
    if not found:
        return _note_without_noise(one, _values_at(one.path, rows))
    span, text = found[0]
    of = general(text.parts)
    if not any(span.bounds(text.value) for span, text in found):
        raise UsageError(
            f"--spans {one.given}: none fits {of} in the first rows; offsets count characters, and "
            f"a field 'text' is the covered text; for spans of another text: --spans "
            f"{one.path}=PATH"
        )
    return f"{one.given}: {_form(span)} of {of}"


def _note_without_noise(one: Annotation, values: Sequence[Any]) -> str:
    """Return a line on spans of texts without noise; raises UsageError if there are no spans."""
    if any(map(_has_spans, values)):
        return f"{one.given}: spans of texts without noise stay as they are"
    if any(map(_has_leaf, values)):
        raise UsageError(
            f"--spans {one.given}: no start and end there in the first rows; if they are deeper, "
            "give their path"
        )
    return ""


def check_paths(layout: RowLayout, rows: Sequence[dict[str, Any]]) -> None:
    """Raise UsageError if a path names fields that the first rows of a loop do not have.

    A text may be missing by chance, as with [role=user] in a few rows: then there is a warning.
    """
    for path in () if layout.is_flat else layout.texts:
        if not any(isinstance(value, str) for value in _values_at(path, rows)):
            _refuse_or_warn(path, rows)
    for one in layout.spans:
        if isinstance(one.path.dead_end(rows), str):
            raise UsageError(f"spans {one.given}: nothing there in the first rows")


def _refuse_or_warn(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Raise UsageError if the path to texts names a missing field or an object; else warn."""
    message = f"column {path}: no text there in the first rows"
    is_object = any(isinstance(value, dict) for value in _values_at(path, rows))
    if is_object or isinstance(path.dead_end(rows), str):
        places = (Place.of(row, path.column) for row in rows if path.column in row)
        there = dict.fromkeys(chain.from_iterable(map(_texts_in, places)))
        raise UsageError(f"{message}; {_listed_texts(there)}")
    warn_once("; ".join(filter(None, [message, _values_instead(path, rows)])))


def _values_at(path: Path, rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the values to which a path leads in rows."""
    return [place.value for row in rows for place in path.places(row)]


def _texts_in(place: Place) -> Iterator[str]:
    """Yield the path of each text in the value at a place."""
    value = place.value
    if isinstance(value, str):
        yield general(place.parts)
    elif isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _texts_in(place.inner(key))


def _check_links(align: Annotation, rows: Sequence[dict[str, Any]]) -> None:
    """Raise UsageError if the first rows have other values than links, or for one text alone."""
    if len(align.texts) not in (0, 2):
        raise UsageError(f"--align {align.given}: name two texts: {align.path}=SOURCE,TARGET")
    values = _values_at(align.path, rows)
    if any(map(_has_leaf, values)) and not any(map(_are_links, values)):
        raise UsageError(
            f"--align {align.given}: no links there in the first rows; write a text: '0-0 1-2'"
        )


def _with_sides(table: pa.Table, columns: Columns, schema: pa.Schema) -> str:
    """Return the option --align with the paths of its two texts, source and target.

    These are two texts beside each other that have all words that the first rows link, one of them
    with noise. They come in the order of their columns; fields of an object have no order. Raises
    UsageError if no two texts fit, or several.
    """
    named = columns.of(schema.names)
    head = named.texts[0].rpartition(".")[0]
    beside = [path for path in text_paths(schema) if path.rpartition(".")[0] == head]
    beside = [path for path in beside if path not in (named.align, named.row_id)]
    fitting = []
    for sides in permutations(beside, 2) if head else combinations(beside, 2):
        given = f"{named.align}={','.join(sides)}"
        layout = RowLayout.of(replace(named, align=given), table.column_names)
        rows = _rows_of(table, columns, layout)
        if set(sides) & set(named.texts) and layout.align:
            fits = [_aligned(layout.align, row, {}) is not None for row in rows]
            fitting += [given] * (sum(fits) >= _FITTING * len(fits))
    if len(fitting) != 1:
        raise UsageError(f"--align {columns.align}: name its texts: {columns.align}=SOURCE,TARGET")
    return fitting[0]


def _has_leaf(value: Any) -> bool:
    """Tell whether a value has more than empty lists and objects."""
    inner = value.values() if isinstance(value, dict) else value
    return any(map(_has_leaf, inner)) if isinstance(value, dict | list) else value not in ("", None)


def _has_spans(value: Any) -> bool:
    return any(span.is_known for span in spans_at(Place.of({"": value}, "")))


def _form(span: Span) -> str:
    """Return the form of a span for a line to the user: 'spans with start and end'."""
    places = [one for one in (span.start, span.end, span.length) if one]
    if isinstance(span.start.key, int) and span.end and span.end.holder is span.start.holder:
        return "spans [start, end]"
    is_list = isinstance(span.start.key, int)
    names = [next(part for part in one.parts[::-1] if isinstance(part, str)) for one in places]
    return f"spans with {'lists ' * is_list}{' and '.join(names)}"


def stale_columns(table: pa.Table, columns: Columns) -> tuple[str, ...]:
    """Return a warning for each place that looks like an annotation and was not named.

    Spans count if nearly all of them are inside of a text of their row, alignments if all values
    have their form. `table` has the first rows of the input.
    """
    layout = RowLayout.of(columns, table.column_names)
    others = [name for name in table.column_names if name not in ("id", "clean", *layout.columns)]
    every = replace(layout, columns=dict.fromkeys(others, True) | layout.columns)
    rows = _rows_of(table, columns, every)
    found = [(path, "spans") for path in _other_spans(layout, rows)]
    for name in others:
        if _are_alignments([row[name] for row in rows]):
            found.append((name, "alignments"))
    options = {"spans": "--spans", "alignments": "--align"}
    return tuple(
        f"{place!r} looks like {what} of the text, which the noise moves: add {options[what]} "
        f"{place}, or they no longer fit"
        for path, what in found
        for place in [path.removeprefix("column_") if columns.text.isdecimal() else path]
    )


def _other_spans(layout: RowLayout, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the paths of spans that the layout does not name, nearly all inside of their text."""
    fits: defaultdict[str, list[bool]] = defaultdict(list)
    for row in rows:
        for path, is_inside in _unnamed_spans(layout, row):
            fits[path].append(is_inside)
    likely = [path for path, inside in fits.items() if sum(inside) >= _FITTING * len(inside)]
    return [path for path in likely if not _has_other_lists(path, rows)]


def _unnamed_spans(layout: RowLayout, row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the path of each span that the layout does not name, and whether it fits its text."""
    texts = layout.places(row)
    named = {span.start.parts for _, span in layout.spans_of(row)}
    for span in (span for name in row for span in spans_at(Place.of(row, name))):
        if span.start.parts in named or not span.is_known:
            continue
        if near := nearest(span.start, texts):
            bounds = span.bounds(max((text.value for text in near), key=len))
            yield span.path, bounds is not None and bounds[0] < bounds[1]


def _has_other_lists(path: str, rows: Sequence[dict[str, Any]]) -> bool:
    """Tell whether a column has lists of numbers that are no pairs, such as a class per token."""
    values = [row[path] for row in rows if isinstance(row.get(path), list) and row[path]]
    return any(all(isinstance(one, int) for one in value) and len(value) != 2 for value in values)


def _are_alignments(values: Sequence[Any]) -> bool:
    given = [value for value in values if isinstance(value, str) and value]
    return all(map(_are_links, given)) and any(" " in value for value in given)


def _are_links(value: Any) -> bool:
    """Tell whether a value is a text of links: '0-0 1-2'."""
    return isinstance(value, str) and bool(value) and all(map(_PAIR.fullmatch, value.split()))
