"""One row of text for work in plain Python: what `Texts` is to many rows."""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeVar

from noisegen.text.buffers import BEFORE, SIGNS, TOUCHING, UNSPACED, WHOLE, WORD_BYTES_MAX, joins
from noisegen.text.case import SENTENCE_ENDS, TITLE_BYTES_MAX, fold

Key = TypeVar("Key")
Value = TypeVar("Value")
Span = tuple[int, int]
RowEdit = tuple[int, int, str]  # characters [start, stop) become these

_SIGNS = "".join(f"{chr(low)}-{chr(high)}" for low, high in SIGNS)
_CHARACTER = rf"[^\x00-/:-@\[-^`{{-\x7f{_SIGNS}]"  # of a word, as in `buffers.is_word`
_WORD = re.compile(f"({_CHARACTER}+(?:['\u2019]{_CHARACTER}+)*)")
_PLAIN_WORD = re.compile(r"(\w+)", re.ASCII)  # the same without an apostrophe: it is faster
_ASCII_WORD = re.compile(r"(\w+(?:'\w+)*)", re.ASCII)
_SCRIPTS = ["".join(f"{chr(a)}-{chr(b)}" for a, b in ranges) for ranges in UNSPACED]
_CHARACTERS = re.compile(f"[{''.join(_SCRIPTS)}]")
_RUNS = re.compile(
    "|".join(f"[{script}]" + "+" * (n in WHOLE) for n, script in enumerate(_SCRIPTS))
)
_BEFORE = "".join(map(chr, BEFORE))
_ENDS = frozenset(SENTENCE_ENDS.decode())
_SPREAD, _MASK = 0x9FB21C651E98DF25, (1 << 64) - 1


class _once(Generic[Value]):  # noqa: N801 - a decorator
    """`cached_property` without its lock, which in Python 3.11 takes as long as what is here."""

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make

    def __get__(self, row: Any, _: type) -> Value:
        value = row.__dict__[self._make.__name__] = self._make(row)
        return value


class Row:
    """A text, its words, its spans that must not change, and its words that have changed."""

    def __init__(
        self, text: str, protected: Sequence[Span] = (), changed: Sequence[Span] = ()
    ) -> None:
        self.text = text
        self.protected = protected
        self.changed = changed

    @_once
    def _parts(self) -> list[str]:
        """Return a gap, a word, a gap, ..., a word, a gap; gaps may be empty."""
        if not self.text.isascii():
            return _WORD.split(self.text)
        return (_ASCII_WORD if "'" in self.text else _PLAIN_WORD).split(self.text)

    @_once
    def characters(self) -> "Row":
        """Return the row with words as in `Texts.characters`; `gaps` has chr(TOUCHING), not ''."""
        return self._cut(_CHARACTERS)

    @_once
    def runs(self) -> "Row":
        """Return the row with words as in `Texts.runs`, and gaps as in `characters`."""
        return self._cut(_RUNS)

    def _cut(self, pattern: re.Pattern[str]) -> "Row":
        parts = [self._parts[0]]
        for number, word in enumerate(self.words):
            parts += [part for piece in _cut(word, pattern) for part in (piece, "")]
            parts[-1] = self.gaps[number]
        row = Row(self.text, self.protected)
        row.__dict__.update(_parts=parts, gaps=[gap or chr(TOUCHING) for gap in parts[2::2]])
        return row

    @_once
    def words(self) -> list[str]:
        """Return the words, as they are written."""
        return self._parts[1::2]

    @_once
    def gaps(self) -> list[str]:
        """Return what is between each word and the next, and behind the last."""
        return self._parts[2::2]

    @_once
    def hashes(self) -> list[int]:
        """Return the hashes of the words with case folded, as those of `Tokens`."""
        return list(map(_HASHES.__getitem__, self.words))

    @_once
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self._parts)))

    def span(self, first: int, last: int | None = None) -> Span:
        """Return where a word starts and stops, or a word and a later one."""
        return self._ends[2 * first], self._ends[2 * (first if last is None else last) + 1]

    def phrase(self, first: int, last: int) -> str:
        """Return the text from a word to the end of it or of a later one."""
        return self.words[first] if first == last else self.text[slice(*self.span(first, last))]

    def is_followed(self, word: int) -> bool:
        """Tell whether a space and another word come behind a word."""
        return self.gaps[word] == " " and word + 1 < len(self.words)

    def begins_sentence(self, word: int) -> bool:
        """Tell whether a word begins a later sentence of the row, as `case.begins_sentence`."""
        gap = self.gaps[word - 1] if word else ""
        return len(gap) > 1 and not _ENDS.isdisjoint(gap)

    def is_name(self, word: int) -> bool:
        """Tell whether a word is a name, as `case.are_names`."""
        if not word or not self.words[word][0].isupper():
            return False
        before = self.words[word - 1]
        is_title = before[0].isupper() and len(before.encode()) <= TITLE_BYTES_MAX
        begins = self.begins_sentence(word) and not is_title
        return not begins and any(each[0].islower() for each in self.words)

    def edited(self, edits: Sequence[RowEdit], changed: Sequence[Span] = ()) -> "Row":
        """Return the row with edits, ascending and disjoint, outside what is protected.

        `changed` are spans of words that these edits are the first to change.
        """
        pieces, end = [], 0
        for start, stop, new in edits:
            pieces += [self.text[end:start], new]
            end = stop
        pieces.append(self.text[end:])
        protected, changed = (
            [_moved(span, edits) for span in spans]
            for spans in (self.protected, sorted([*self.changed, *changed]))
        )
        return Row("".join(pieces), protected, [(low, high) for low, high in changed if low < high])

    def outside(self, edits: list[RowEdit]) -> list[RowEdit]:
        """Return the edits that change nothing protected."""
        return [
            edit
            for edit in edits
            if not any(low < edit[1] and edit[0] < high for low, high in self.protected)
        ]

    def once(self, edits: list[RowEdit], matched_by: str) -> tuple[list[RowEdit], list[Span]]:
        """Return the edits of words that have none yet, as `Edits.once`."""
        kept, spans = list[RowEdit](), list[Span]()
        row = self if matched_by == "tokens" else getattr(self, matched_by)
        words = [row.span(number) for number in range(len(row.words))]
        for edit in edits:
            of_edit = [(a, b) for a, b in words if b > edit[0] and a < edit[1]]
            of_edit = of_edit or [(a, b) for a, b in words if b >= edit[0] and a <= edit[1]]
            start = min([edit[0], *(a for a, _ in of_edit)])
            stop = max([edit[1], *(b for _, b in of_edit)])
            is_free = not any(low < stop and start < high for low, high in self.changed)
            if is_free and not (spans and start < spans[-1][1]):
                kept.append(edit)
                spans.append((start, stop))
        return kept, spans


def _cut(word: str, pattern: re.Pattern[str]) -> list[str]:
    """Cut a word before and behind what matches, but no vowel sign or mark from its character."""
    edges = {at for match in pattern.finditer(word) for at in match.span()} - {0, len(word)}
    inner = [at for at in sorted(edges) if not joins(ord(word[at])) and word[at - 1] not in _BEFORE]
    return [word[start:stop] for start, stop in pairwise([0, *inner, len(word)])]


def _moved(span: Span, edits: Sequence[RowEdit]) -> Span:
    before = sum(len(new) - stop + start for start, stop, new in edits if stop <= span[0])
    within = sum(len(new) - stop + start for start, stop, new in edits if start < span[1])
    return span[0] + before, span[1] + within


class Memo(dict[Key, Value]):
    """What a function made of words or other keys; all is forgotten when it is too much."""

    def __init__(self, function: Callable[[Key], Value], most: int = 1 << 16) -> None:
        self._function, self._most = function, most

    def __missing__(self, key: Key) -> Value:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self._function(key)
        return value


def word_hash(word: str) -> int:
    """Return the hash of a word, as `buffers.word_hashes`; 0 for a word that is too long."""
    content = word.encode()
    if len(content) > WORD_BYTES_MAX:
        return 0
    state = len(content)
    for at in range(0, len(content), 8):
        state = (state ^ int.from_bytes(content[at : at + 8], "little")) * _SPREAD & _MASK
        state ^= state >> 32
    return state


_HASHES: Memo[str, int] = Memo(lambda word: word_hash(fold(word)))
