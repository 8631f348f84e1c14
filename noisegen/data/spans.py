"""Spans that annotate the text of a row, in the forms in which people write them.

A span is an object with a start and an end, or with a start and the covered text (SQuAD), or with
an offset and a length; a list [start, end, type]; an object of such lists; or two columns. Starts
and ends count characters; ends are exclusive, unless the covered text shows that they are not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from noisegen.data.paths import Place, general
from noisegen.text.moves import Moves

_BEGIN = re.compile(r"start|begin|Start|Begin|START|BEGIN")
_ENDS = {"start": "end", "begin": "end", "Start": "End", "Begin": "End"}
_ENDS |= {"START": "END", "BEGIN": "END"}
_BOUND = re.compile(r"start|begin|end|offset|length", re.IGNORECASE)
_LENGTHS = {"offset": "length", "Offset": "Length"}
# Names of fields whose lists [1, 5] may be spans; other lists may be pairs of anything
_LISTS = re.compile(r"span|entit|label|offset|answer|mention|annotation|indices", re.IGNORECASE)
# Names of fields that count other things than characters: 'token_start'
_UNITS = re.compile(r"tok|word|sent|line|page|time|date|byte", re.IGNORECASE)
# Names of fields that may equal the covered text only by chance
_KINDS = re.compile(r"label|type|tag|class|category|\bid\b", re.IGNORECASE)
# Names of fields of an annotation that have nothing else than the covered text
_COVERED = re.compile(r"((covered|span|entity|mention|answer)_?)?[tT]ext")
_NOTHING = (None, "", -1)  # values of a start or an end where there is no span


class Span(NamedTuple):
    """A span of a row: the places of its start, its end or length, and the texts beside them.

    A span without end and length ends where its covered text does. `beside` are the places of texts
    in the same object, one of which may be the covered text. Labels and types are not in `beside`.
    A value in an unknown form is the start of a span that fits no text.
    """

    start: Place
    end: Place | None
    length: Place | None
    beside: tuple[Place, ...]

    @property
    def is_known(self) -> bool:
        """Whether the span has a known form."""
        return _is_offset(self.start.value)

    @property
    def path(self) -> str:
        """The path of all spans like this one: 'data[].entities'."""
        return general(self.start.parts[:-1] or self.start.parts).removesuffix("[]")

    def bounds(self, text: str) -> tuple[int, int] | None:
        """Return start and end of the span in a text; None if they do not fit the text."""
        if not self.is_known:
            return None
        start = int(self.start.value)
        end = self._end(text, start)
        if end is None or not 0 <= start <= end <= len(text):
            return None
        end += self.is_inclusive(text, start, end)
        return None if any(text[start:end] != one for one in self._covered()) else (start, end)

    def _end(self, text: str, start: int) -> int | None:
        """Return the end as it is written; without one, the end of the covered text."""
        if self.end:
            return int(self.end.value)
        if self.length:
            return start + int(self.length.value)
        covered = next((one.value for one in self.beside if _reads(text, start, one)), None)
        return start + len(covered) if covered else None

    def _covered(self) -> Iterator[str]:
        """Yield the texts beside the span that can only be its covered text."""
        if len(self.start.parts) > 1:  # beside a span in a column are other columns
            for one in self.beside:
                name = next(part for part in one.parts[::-1] if isinstance(part, str))
                if one.value and _COVERED.fullmatch(name):
                    yield one.value

    def is_inclusive(self, text: str, start: int, end: int) -> bool:
        """Tell whether the end is the last character of the span, as its covered text shows."""
        texts = [one.value for one in self.beside]
        return bool(self.end) and text[start:end] not in texts and text[start : end + 1] in texts

    def move(self, moves: Moves) -> None:
        """Move the span, which must not be lost, along with its text.

        Its start, its end or length and its covered text change in their places.
        """
        start, end = self.bounds(moves.clean) or (0, 0)
        new_start, new_end = moves.moved(start, end) or (0, 0)
        for one in self.beside:
            if one.value == moves.clean[start:end]:
                one.put(moves.noisy[new_start:new_end])
        if self.end:
            added = end - int(self.end.value)  # 1 if the end is the last character
            self.end.put(type(self.end.value)(new_end - added))
        if self.length:
            self.length.put(type(self.length.value)(new_end - new_start))
        self.start.put(type(self.start.value)(new_start))


def _reads(text: str, start: int, beside: Place) -> bool:
    """Tell whether the text reads as the text `beside` at offset `start`."""
    return bool(beside.value) and text.startswith(beside.value, start)


# Functions that find spans.


def spans_at(place: Place) -> Iterator[Span]:
    """Yield the spans in the value at a place, at any depth; some may be of unknown form."""
    value = place.value
    found: Iterable[Span] = ()
    if isinstance(value, dict | list):
        found = _spans_in(place, may_be_lists=True)
    elif _is_offset(value) and isinstance(place.holder, dict):
        outer = Place({"": place.holder}, "", place.parts[:-1])
        found = _in_object(outer, str(place.key))
    found = list(found)
    values = value if _is_flat(value) else [] if isinstance(value, dict | list) else [value]
    if not found and any(one not in _NOTHING for one in values):
        found = [Span(place, None, None, ())]
    yield from found


def is_start(key: str) -> bool:
    """Tell whether a field with this name may hold the start of a span: 'answer_start'."""
    return bool(_BEGIN.search(key)) or key in _LENGTHS


def is_bound(key: str) -> bool:
    """Tell whether a field with this name may hold the start, the end or the length of a span."""
    return bool(_BOUND.search(key))


def _spans_in(place: Place, *, may_be_lists: bool) -> Iterator[Span]:
    value = place.value
    if isinstance(value, dict):
        yield from _in_fields(place)
    elif isinstance(value, list) and may_be_lists and (_is_pair(value) or _is_flat(value)):
        yield from _in_list(place)
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from _spans_in(place.inner(at), may_be_lists=may_be_lists)


def _in_fields(place: Place) -> Iterator[Span]:
    """Yield the spans of an object and of its fields."""
    fields = place.value
    own = list(filter(None, (list(_in_object(place, key)) for key in fields)))
    known = [spans for spans in own if any(span.is_known for span in spans)]
    yield from chain.from_iterable(known or own)
    for key, inner in list(fields.items()):
        # A list of values beside a start has an item per span, such as its class
        if not (_is_offset(inner) or (own and _is_flat(inner))):
            yield from _spans_in(place.inner(key), may_be_lists=bool(_LISTS.search(key)))


def _is_pair(value: list[Any]) -> bool:
    numbers = [one for one in value[:2] if not isinstance(one, str)]
    return len(numbers) > 1 and all(map(_is_offset, numbers))


def _is_flat(value: Any) -> bool:
    """Tell whether a value is a list without lists and objects."""
    return isinstance(value, list) and not any(isinstance(one, list | dict) for one in value)


def _in_list(place: Place) -> Iterator[Span]:
    """Yield the span [start, end, type] in a list, also in an unknown form.

    A list that is no pair is a span only as an item of a list, and if it has numbers: a field may
    have a list of scores.
    """
    value = place.value
    if _is_pair(value):
        texts = [place.inner(at) for at, one in enumerate(value) if at > 2 and isinstance(one, str)]
        yield Span(place.inner(0), place.inner(1), None, tuple(texts))
    elif isinstance(place.key, int) and _has_numbers(value):
        yield Span(place, None, None, ())


def _has_numbers(value: list[Any]) -> bool:
    """Tell whether a list has a number other than -1, or two numbers in texts."""
    is_offset = any(_is_number(one) and one != -1 for one in value)
    return is_offset or sum(map(_is_offset, value)) > 1


def _in_object(place: Place, key: str) -> Iterator[Span]:
    """Yield the spans of an object that begin in its field `key`, which may have a list of them."""
    fields, length = place.value, _LENGTHS.get(key)
    if not (other := _end_name(key)) or (length and other not in fields):
        return
    start = place.inner(key)
    end = place.inner(other) if other in fields else None
    texts = [place.inner(name) for name in fields if _may_be_covered(name, key, fields)]
    if not isinstance(start.value, list):
        yield from _whole(start, end, length, texts)
    elif end and _count(end.value) != len(start.value):
        yield Span(start, None, None, ())
    else:
        for at in range(len(start.value)):
            yield from _whole(start.inner(at), end and end.inner(at), length, _items(texts, at))


def _end_name(key: str) -> str:
    """Return the field with the ends or lengths of spans that begin in field `key`; '' if none."""
    begin = None if _UNITS.search(key) else _BEGIN.search(key)
    if begin is None:
        return _LENGTHS.get(key, "")
    return key[: begin.start()] + _ENDS[begin[0]] + key[begin.end() :]


def _may_be_covered(name: str, start: str, fields: dict[str, Any]) -> bool:
    """Tell whether a field may have the covered text of the span that begins in field `start`.

    Labels and types are none, and `tail` belongs to `tail_start`, if there is such a field.
    """
    if not _has_text(fields[name]) or _KINDS.search(name):
        return False
    others = (
        key[: begin.start()] for key in fields if key != start and (begin := _BEGIN.search(key))
    )
    return not any(f"{name}_".startswith(other) for other in others if other.endswith("_"))


def _whole(
    start: Place, end: Place | None, length: str | None, beside: Sequence[Place]
) -> Iterator[Span]:
    """Yield the span that begins at `start`; an end that is no offset is left out.

    A start that is none needs an end or a text beside it: a `start_node` may be anything.
    """
    texts = tuple(one for one in beside if isinstance(one.value, str))
    if _is_offset(start.value) or ((end or texts) and _is_scalar(start.value)):
        other = end if end and _is_offset(end.value) else None
        yield Span(start, None if length else other, other if length else None, texts)


def _items(places: Sequence[Place], at: int) -> list[Place]:
    """Return the items with index `at` of those places that have lists of this length."""
    return [one.inner(at) for one in places if at < _count(one.value)]


def _count(value: Any) -> int:
    """Return the count of items of a list; -1 for other values."""
    return len(value) if isinstance(value, list) else -1


def _has_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and isinstance((*value, 0)[0], str))


def _is_offset(value: Any) -> bool:
    """Tell whether a value may be an offset: a whole number, also as text; -1 means no span."""
    if isinstance(value, str):
        return value.isdecimal()
    return _is_number(value) and value == value // 1 and value != -1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    """Tell whether a value is a text or a number that may be meant as an offset."""
    return (_is_number(value) or isinstance(value, str)) and value not in _NOTHING


# Which text a span annotates.


def nearest(place: Place, texts: Sequence[Place]) -> list[Place]:
    """Return the texts of a row that are nearest to an annotation; [] if none gets noise.

    The nearest text shares most of the names and indices that lead to the annotation. Texts in
    other items of a list are of other annotations, unless they are items themselves: in the list
    [text, spans], item 1 annotates item 0.
    """
    shared = [_shared(place.parts, text.parts) for text in texts]
    most = max([0, *shared])
    return [text for text, count in zip(texts, shared, strict=True) if count == most]


def _shared(place: Sequence[str | int], text: Sequence[str | int]) -> int:
    """Count the parts that two places share; -1 if the text belongs to another item of a list."""
    for count, (one, other) in enumerate(zip(place, text, strict=False)):
        if one != other:
            is_inside = count + 1 < len(text)
            return -1 if is_inside and isinstance(one, int) and isinstance(other, int) else count
    return min(len(place), len(text))
