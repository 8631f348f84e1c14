"""One row of text for work in plain Python: what `Texts` is to many rows."""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from noisegen.text.buffers import SIGNS, WORD_BYTES_MAX
from noisegen.text.case import fold

Key = TypeVar("Key")
Value = TypeVar("Value")
Span = tuple[int, int]
RowEdit = tuple[int, int, str]  # characters [start, stop) become these

_SIGNS = "".join(f"{chr(low)}-{chr(high)}" for low, high in SIGNS)
_CHARACTER = rf"[^\x00-/:-@\[-^`{{-\x7f{_SIGNS}]"  # of a word, as in `buffers.is_word`
_WORD = re.compile(f"({_CHARACTER}+(?:['\u2019]{_CHARACTER}+)*)")
_PLAIN_WORD = re.compile(r"(\w+)", re.ASCII)  # the same without an apostrophe: it is faster
_ASCII_WORD = re.compile(r"(\w+(?:'\w+)*)", re.ASCII)
_SPREAD, _MASK = 0x9FB21C651E98DF25, (1 << 64) - 1


class _once(Generic[Value]):  # noqa: N801 - a decorator
    """`cached_property` without its lock, which in Python 3.11 takes as long as what is here."""

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make

    def __get__(self, row: Any, _: type) -> Value:
        value = row.__dict__[self._make.__name__] = self._make(row)
        return value


class Row:
    """A text, its words, and its spans that must not change."""

    def __init__(self, text: str, protected: Sequence[Span] = ()) -> None:
        self.text = text
        self.protected = protected

    @_once
    def _parts(self) -> list[str]:
        """Return a gap, a word, a gap, ..., a word, a gap; gaps may be empty."""
        if not self.text.isascii():
            return _WORD.split(self.text)
        return (_ASCII_WORD if "'" in self.text else _PLAIN_WORD).split(self.text)

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

    def edited(self, edits: Sequence[RowEdit]) -> "Row":
        """Return the row with edits, ascending and disjoint, outside what is protected."""
        pieces, end = [], 0
        for start, stop, new in edits:
            pieces += [self.text[end:start], new]
            end = stop
        pieces.append(self.text[end:])
        return Row("".join(pieces), [_moved(span, edits) for span in self.protected])

    def outside(self, edits: list[RowEdit]) -> list[RowEdit]:
        """Return the edits that change nothing protected."""
        return [
            edit
            for edit in edits
            if not any(low < edit[1] and edit[0] < high for low, high in self.protected)
        ]


def _moved(span: Span, edits: Sequence[RowEdit]) -> Span:
    shift = sum(len(new) - stop + start for start, stop, new in edits if stop <= span[0])
    return span[0] + shift, span[1] + shift


class Memo(dict[Key, Value]):
    """What a function made of words or other keys; all is forgotten when it is too much."""

    def __init__(self, function: Callable[[Key], Value], most: int = 1 << 16) -> None:
        self._function, self._most = function, most

    def __missing__(self, key: Key) -> Value:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self._function(key)
        return value


def _hash_of(word: str) -> int:
    """Return the hash of a word with case folded, as `buffers.word_hashes` does."""
    folded = fold(word).encode()
    if len(folded) > WORD_BYTES_MAX:
        return 0
    state = len(folded)
    for at in range(0, len(folded), 8):
        state = (state ^ int.from_bytes(folded[at : at + 8], "little")) * _SPREAD & _MASK
        state ^= state >> 32
    return state


_HASHES = Memo(_hash_of)
