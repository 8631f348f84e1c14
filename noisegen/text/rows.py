"""A single row of text in plain Python, the counterpart of `buffers.Texts`."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeVar

from noisegen.text.buffers import (
    BEFORE,
    NO_WORD,
    TOUCHING,
    UNSPACED,
    WHOLE,
    WORD_BYTES_MAX,
    character_class,
    joins,
)
from noisegen.text.case import SENTENCE_ENDS, TITLE_BYTES_MAX, fold

Key = TypeVar("Key")
Value = TypeVar("Value")
Span = tuple[int, int]
RowEdit = tuple[int, int, str]  # start and stop in characters, and the text written there

_CHARACTER = f"[^{NO_WORD}]"
_WORD = re.compile(f"({_CHARACTER}+(?:['\u2019]{_CHARACTER}+)*)")
_PLAIN_WORD = re.compile(r"(\w+)", re.ASCII)  # for text without apostrophes, where it is faster
_ASCII_WORD = re.compile(r"(\w+(?:'\w+)*)", re.ASCII)
_SCRIPTS = list(map(character_class, UNSPACED))
_RUNS = "|".join(f"[{script}]" + "+" * (n in WHOLE) for n, script in enumerate(_SCRIPTS))
_PIECES = {  # kind of words -> pattern of a word in a script without spaces; see `Texts.words`
    "characters": re.compile(f"[{''.join(_SCRIPTS)}]"),
    "runs": re.compile(_RUNS),
}
_BEFORE = "".join(map(chr, BEFORE))
_ENDS = frozenset(SENTENCE_ENDS.decode())
_SPREAD, _MASK = 0x9FB21C651E98DF25, (1 << 64) - 1


class Row:
    """A text with its words, its protected spans and the spans of its changed words.

    The text is split into words only when they are first needed. Three in ten rows never need them,
    as they are edited again before. This saves a small batch up to a sixth of its time.
    """

    def __init__(
        self, text: str, protected: Sequence[Span] = (), changed: Sequence[Span] = ()
    ) -> None:
        self.text = text
        self.protected = protected
        self.changed = changed
        self._cuts: dict[str, Row] = {}

    @cached_property
    def _parts(self) -> list[str]:
        """The text split into gap, word, gap, ..., word, gap: ['', 'see', ' ', 'you', '!']."""
        pattern = _WORD
        if self.text.isascii():
            pattern = _ASCII_WORD if "'" in self.text else _PLAIN_WORD
        return pattern.split(self.text)

    @cached_property
    def words(self) -> list[str]:
        """The words of the text, in order."""
        return self._parts[1::2]

    @cached_property
    def gaps(self) -> list[str]:
        """The text after each word, up to the next word or the end of the text.

        In a row that `cut` returned, the gap between words that touch is chr(TOUCHING), not ''.
        """
        return self._parts[2::2]

    def cut(self, kind: str) -> "Row":
        """Return the row with its text split into words of another kind.

        `kind` is 'tokens', 'characters' or 'runs', see `Texts.words`.
        """
        if kind == "tokens":
            return self
        if kind not in self._cuts:
            self._cuts[kind] = self._with_pieces(_PIECES[kind])
        return self._cuts[kind]

    def _with_pieces(self, pattern: re.Pattern[str]) -> "Row":
        """Return the row with each match of a pattern inside a word as a word of its own."""
        parts = [self._parts[0]]
        for word, gap in zip(self.words, self.gaps, strict=True):
            for piece in _cut(word, pattern):
                parts += [piece, ""]
            parts[-1] = gap
        row = Row(self.text, self.protected)
        row._parts = parts
        row.gaps = [gap or chr(TOUCHING) for gap in parts[2::2]]
        return row

    @cached_property
    def hashes(self) -> list[int]:
        """The hash of each word, equal for words that differ only in case; see `Tokens.hashes`."""
        return list(map(_HASHES.__getitem__, self.words))

    @cached_property
    def _ends(self) -> list[int]:
        """The position in the text where each word and each gap ends, in the order of `_parts`."""
        return list(accumulate(map(len, self._parts)))

    def span(self, first: int, last: int | None = None) -> Span:
        """Return start and stop of the words `first` to `last` (default: of one word)."""
        return self._ends[2 * first], self._ends[2 * (first if last is None else last) + 1]

    def phrase(self, first: int, last: int) -> str:
        """Return the text of the words `first` to `last`, with the gaps between them."""
        return self.words[first] if first == last else self.text[slice(*self.span(first, last))]

    def is_followed(self, word: int) -> bool:
        """Tell whether a single space and another word follow the word with the index `word`."""
        return self.gaps[word] == " " and word + 1 < len(self.words)

    def begins_sentence(self, word: int) -> bool:
        """Tell whether the word with index `word` begins a sentence; see `case.begins_sentence`."""
        gap = self.gaps[word - 1] if word else ""
        return len(gap) > 1 and not _ENDS.isdisjoint(gap)

    def is_name(self, word: int) -> bool:
        """Tell whether the word with the index `word` is a name; see `case.are_names`."""
        if not word or not self.words[word][0].isupper():
            return False
        before = self.words[word - 1]
        is_title = before[0].isupper() and len(before.encode()) <= TITLE_BYTES_MAX
        begins = self.begins_sentence(word) and not is_title
        return not begins and any(each[0].islower() for each in self.words)

    def edited(self, edits: Sequence[RowEdit], changed: Sequence[Span] = ()) -> "Row":
        """Return the row after edits; they are sorted and overlap no protected span or other edit.

        `changed` has the spans of the words that these edits change.
        """
        pieces, end = [], 0
        for start, stop, new in edits:
            pieces += [self.text[end:start], new]
            end = stop
        pieces.append(self.text[end:])
        every = sorted([*self.changed, *changed])
        return Row("".join(pieces), moved(self.protected, edits), moved(every, edits))

    def outside(self, edits: list[RowEdit]) -> list[RowEdit]:
        """Return the edits that overlap no protected span."""
        return [edit for edit in edits if not overlaps(edit[:2], self.protected)]

    def once(self, edits: list[RowEdit], kind: str) -> tuple[list[RowEdit], list[Span]]:
        """Keep at most one edit per word; return these edits and the spans of their words.

        Edits of words that an earlier transform changed are left out.

        An edit belongs to the words that it overlaps. If it overlaps no word, it belongs to the
        words that it touches. `kind` is the kind of words, as in `cut`. `Edits.once` does this for
        many rows.
        """
        kept: list[RowEdit] = []
        spans: list[Span] = []
        row = self.cut(kind)
        every = list(zip(row._ends[::2], row._ends[1::2], strict=False))  # spans of all words
        for edit in edits:
            span = _with_words(edit[:2], every)
            is_first = not spans or span[0] >= spans[-1][1]
            if is_first and not overlaps(span, self.changed):
                kept.append(edit)
                spans.append(span)
        return kept, spans


def overlaps(span: Span, others: Iterable[Span]) -> bool:
    """Tell whether a span overlaps at least one of `others`."""
    start, stop = span
    return any(low < stop and start < high for low, high in others)


def _with_words(span: Span, words: Sequence[Span]) -> Span:
    """Extend a span over all words that it overlaps or, if it overlaps none, that it touches."""
    start, stop = span
    own = [word for word in words if word[1] > start and word[0] < stop]
    if not own:
        own = [word for word in words if word[1] >= start and word[0] <= stop]
    if not own:
        return span
    return min(start, own[0][0]), max(stop, own[-1][1])


def _cut(word: str, pattern: re.Pattern[str]) -> list[str]:
    """Split a word before and after each match of a pattern.

    Marks stay with the letter before them, and Thai vowels with their consonant.
    """
    edges = {at for match in pattern.finditer(word) for at in match.span()} - {0, len(word)}
    inner = [at for at in sorted(edges) if not joins(ord(word[at])) and word[at - 1] not in _BEFORE]
    return [word[start:stop] for start, stop in pairwise([0, *inner, len(word)])]


def moved(spans: Sequence[Span], edits: Sequence[RowEdit]) -> list[Span]:
    """Return where `spans` of a text are after `edits` of the text.

    Text that an edit writes inside a span is part of the span. Empty spans are left out.
    """
    found = []
    for low, high in spans:
        before = within = 0
        for start, stop, new in edits:
            growth = len(new) - (stop - start)
            before += growth * (stop <= low)
            within += growth * (start < high)
        if low + before < high + within:
            found.append((low + before, high + within))
    return found


class Memo(dict[Key, Value]):
    """Cache of a function's results, {argument: result}, emptied when it has `most` results."""

    def __init__(self, function: Callable[[Key], Value], most: int = 1 << 16) -> None:
        self._function, self._most = function, most

    def __missing__(self, key: Key) -> Value:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self._function(key)
        return value


def word_hash(word: str) -> int:
    """Return the hash of a word, as `buffers.word_hashes`: 0 for a word of too many bytes."""
    content = word.encode()
    if len(content) > WORD_BYTES_MAX:
        return 0
    state = len(content)
    for at in range(0, len(content), 8):
        state = (state ^ int.from_bytes(content[at : at + 8], "little")) * _SPREAD & _MASK
        state ^= state >> 32
    return state


_HASHES: Memo[str, int] = Memo(lambda word: word_hash(fold(word)))
