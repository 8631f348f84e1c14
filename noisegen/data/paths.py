"""Paths to texts and annotations inside a row: `messages[role=user].content`.

A path begins with the name of a column. Then follow fields (`.content`), all items of a list
(`[]`), the items whose field has a value (`[role=user]`), or one item (`[0]`, `[-1]`).
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from noisegen.errors import UsageError

_STEP = re.compile(
    r"\.(?P<field>[^.\[\]]+)|\[(?P<index>-?\d{1,9})\]|\[(?:(?P<key>[^\[\]=]+)=(?P<value>[^\[\]]*))?\]"
)
# Beginning of a JSON text that is a list or an object, or all of a number
_JSON = re.compile(r"\s*[\[{]|\d+(\.\d+)?\Z")
_GIVEN = re.compile(r"(?P<path>(?:[^=\[\]]|\[[^\]]*\])+)=(?P<texts>.+)")
_SHOWN = 30  # most paths that an error lists


class Items(NamedTuple):
    """A step to the items of a list: all of them, or those objects whose `key` has the `value`."""

    key: str = ""
    value: str = ""

    def has(self, item: Any) -> bool:
        """Tell whether the step leads to an item of the list."""
        if not self.key:
            return True
        found = item.get(self.key) if isinstance(item, dict) else None
        return found is not None and str(found) == self.value


class NamedIndex(int):
    """An index that a path names, such as 0 in `[0]`; it equals any other index 0."""


class Place(NamedTuple):
    """A place in a row: `holder[key]`.

    Its `parts` lead to it: names of fields and indices of items.
    """

    holder: Any
    key: str | int
    parts: tuple[str | int, ...]

    @classmethod
    def of(cls, row: dict[str, Any], column: str) -> "Place":
        """Return the place of a column in a row, which maps columns to values."""
        return cls(row, column, (column,))

    @property
    def value(self) -> Any:
        """The value at the place."""
        return self.holder[self.key]

    @property
    def path(self) -> str:
        """The path of the place: `messages[2].content`."""
        return written(self.parts)

    def put(self, value: Any) -> None:
        """Write a value at the place."""
        self.holder[self.key] = value

    def inner(self, key: str | int) -> "Place":
        """Return the place of a field or an item of the value."""
        return Place(self.value, key, (*self.parts, key))


def written(parts: Sequence[str | int]) -> str:
    """Return the path with these parts."""
    first, *others = parts
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in others)
    return "".join([str(first), *steps])


def general(parts: Sequence[str | int]) -> str:
    """Return the path of all places like one with these parts: `messages[].content`.

    An index stays if a path names it.
    """
    first, *others = parts
    return str(Path(str(first), tuple(Items() if type(part) is int else part for part in others)))


@dataclass(frozen=True)
class Path:
    """A path whose column is known: the name of the column, and the steps that follow it."""

    column: str
    steps: tuple[str | int | Items, ...] = ()

    def __str__(self) -> str:
        return "".join([self.column, *map(_step_text, self.steps)])

    def places(self, row: dict[str, Any]) -> Iterator[Place]:
        """Yield the places of a row that the path leads to; `row` maps columns to values."""
        found = [Place.of(row, self.column)] if self.column in row else []
        for step in self.steps:
            found = [inner for place in found for inner in _stepped(place, step)]
        yield from found

    def dead_end(self, rows: Sequence[dict[str, Any]]) -> str | int | Items | None:
        """Return the step at which the path ends in all rows; None if it leads on in some.

        Rows that end before it with an empty list or object, a text or null do not count.
        """
        found = [Place.of(row, self.column) for row in rows if self.column in row]
        for step in self.steps:
            inner = [one for place in found for one in _stepped(place, step)]
            if not inner:
                is_end = any(isinstance(one.value, dict | list) and one.value for one in found)
                return step if is_end else None
            found = inner
        return None

    def fits(self, schema: pa.Schema) -> bool:
        """Tell whether the path may lead to values; a text may hold JSON with further fields."""
        kind = schema.field(self.column).type
        for step in self.steps:
            if _is_text(kind):
                return True
            if isinstance(step, str):
                number = kind.get_field_index(step) if pa.types.is_struct(kind) else -1
                kind = kind.field(number).type if number >= 0 else None
            else:
                kind = getattr(kind, "value_type", None)
            if kind is None:
                return False
        return True


def _step_text(step: str | int | Items) -> str:
    if isinstance(step, Items):
        return f"[{step.key}={step.value}]" if step.key else "[]"
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _stepped(place: Place, step: str | int | Items) -> Iterator[Place]:
    """Yield the places one step further than `place`."""
    value = place.value
    if isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield place.inner(step)
    elif isinstance(value, list) and isinstance(step, int):
        if -len(value) <= step < len(value):
            at = step % len(value)
            yield Place(value, at, (*place.parts, NamedIndex(at)))
    elif isinstance(value, list) and isinstance(step, Items):
        yield from (place.inner(at) for at, item in enumerate(value) if step.has(item))


def values_at(table: pa.Table, path: Path) -> list[list[Any]]:
    """Return for each row of a table the values to which a path leads."""
    rows = ({path.column: parsed(value)} for value in table[path.column].to_pylist())
    return [[place.value for place in path.places(row)] for row in rows]


def parsed(value: Any) -> Any:
    """Return a text that is a JSON list, object or number as its value; other values stay."""
    if isinstance(value, str) and _JSON.match(value):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def path_in(text: str, columns: Sequence[str]) -> Path | None:
    """Return the path that `text` writes, in a file with these columns; None without its column.

    The longest name of a column with which the text begins is its column, as a name may contain
    dots. Raises UsageError if the rest is no path.
    """
    column = max((name for name in columns if _begins(text, name)), key=len, default=None)
    return None if column is None else Path(column, _steps(text, len(column)))


def leads(text: str, schema: pa.Schema) -> bool:
    """Tell whether a text is a path that may lead to values in a file with this schema."""
    path = path_in(text, schema.names)
    return path is not None and path.fits(schema)


def _begins(text: str, name: str) -> bool:
    return text == name or (text.startswith(name) and text[len(name)] in ".[")


def _steps(text: str, at: int) -> tuple[str | int | Items, ...]:
    """Return the steps of a path from the character `at` on; raises UsageError."""
    steps: list[str | int | Items] = []
    while at < len(text):
        match = _STEP.match(text, at)
        if not match:
            raise UsageError(
                f"cannot read the path {text!r} at {text[at:]!r}: write .NAME for a field, [] for "
                "all items, [NAME=VALUE] for some, [0] for the first"
            )
        field, index, key, value = match.group("field", "index", "key", "value")
        steps.append(
            field or (int(index) if index else Items(key or "", (value or "").strip("\"'")))
        )
        at = match.end()
    return tuple(steps)


def parts_of(given: str) -> list[str]:
    """Split PATH or PATH=TEXT,TEXT, the value of an option, into its paths."""
    match = _GIVEN.fullmatch(given)
    return [match["path"], *match["texts"].split(",")] if match else [given]


def is_path(text: str) -> bool:
    """Tell whether a text has the form of a path with steps, not only the form of a name."""
    return not set(text).isdisjoint(".[")


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def records_of(path: str) -> str:
    """Return the part of a path before its first list: 'data' for 'data[].text', '' for 'text'."""
    head, bracket, _ = path.partition("[]")
    return head if bracket and _STEP.fullmatch(f".{head.rpartition('.')[2]}") else ""


def text_paths(schema: pa.Schema) -> list[str]:
    """Return the paths of all texts in a schema, for errors: `messages[].content`."""
    return [path for field in schema for path in _leaves(field.name, field.type)][:_SHOWN]


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    if _is_text(kind):
        yield path
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif hasattr(kind, "value_type") and not pa.types.is_dictionary(kind):
        yield from _leaves(f"{path}[]", kind.value_type)
