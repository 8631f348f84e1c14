"""One row of text for work in plain Python: the counterpart of `Texts` for a single row."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeVar

from noisegen.text.buffers import BEFORE, SIGNS, TOUCHING, UNSPACED, WHOLE, WORD_BYTES_MAX, joins
from noisegen.text.case import SENTENCE_ENDS, TITLE_BYTES_MAX, fold

Key = TypeVar("Key")
Value = TypeVar("Value")
Span = tuple[int, int]
RowEdit = tuple[int, int, str]  # characters [start, stop) become the text

_SIGNS = "".join(f"{chr(low)}-{chr(high)}" for low, high in SIGNS)
_CHARACTER = rf"[^\x00-/:-@\[-^`{{-\x7f{_SIGNS}]"  # word characters, as in `buffers.is_word`
_WORD = re.compile(f"({_CHARACTER}+(?:['\u2019]{_CHARACTER}+)*)")
_PLAIN_WORD = re.compile(r"(\w+)", re.ASCII)  # for text without an apostrophe: it is faster
_ASCII_WORD = re.compile(r"(\w+(?:'\w+)*)", re.ASCII)
_SCRIPTS = ["".join(f"{chr(a)}-{chr(b)}" for a, b in ranges) for ranges in UNSPACED]
_RUNS = "|".join(f"[{script}]" + "+" * (n in WHOLE) for n, script in enumerate(_SCRIPTS))
_PIECES = {  # pieces into which words of scripts without spaces are cut, as in `Texts.words`
    "characters": re.compile(f"[{''.join(_SCRIPTS)}]"),
    "runs": re.compile(_RUNS),
}
_BEFORE = "".join(map(chr, BEFORE))
_ENDS = frozenset(SENTENCE_ENDS.decode())
_SPREAD, _MASK = 0x9FB21C651E98DF25, (1 << 64) - 1


class Row:
    """A text with its words, its protected spans and the spans of its changed words.

    The text is split when its words are first read, because three in ten rows are edited again
    before anything reads their words. This saves a small batch up to a sixth of its time.
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
        """The text as a gap, a word, a gap, ..., a word, a gap."""
        pattern = _WORD
        if self.text.isascii():
            pattern = _ASCII_WORD if "'" in self.text else _PLAIN_WORD
        return pattern.split(self.text)

    @cached_property
    def words(self) -> list[str]:
        """The words in the order of the text."""
        return self._parts[1::2]

    @cached_property
    def gaps(self) -> list[str]:
        """The text between each word and the next one, and the text behind the last word.

        In rows that `cut` returns, words with nothing between them have the gap chr(TOUCHING).
        """
        return self._parts[2::2]

    def cut(self, words: str) -> "Row":
        """Return the row with other words: 'tokens', 'characters' or 'runs', see `Texts.words`."""
        if words == "tokens":
            return self
        if words not in self._cuts:
            self._cuts[words] = self._with_pieces(_PIECES[words])
        return self._cuts[words]

    def _with_pieces(self, pattern: re.Pattern[str]) -> "Row":
        """Return the row with words cut at the matches of a pattern."""
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
        """The hashes of the words with case folded, equal to `Tokens.hashes`."""
        return list(map(_HASHES.__getitem__, self.words))

    @cached_property
    def _ends(self) -> list[int]:
        """Where each part of the text ends."""
        return list(accumulate(map(len, self._parts)))

    def span(self, first: int, last: int | None = None) -> Span:
        """Return the start of a word, and its stop or the stop of a later word."""
        return self._ends[2 * first], self._ends[2 * (first if last is None else last) + 1]

    def phrase(self, first: int, last: int) -> str:
        """Return the text from the start of a word to the stop of a word, the same or a later."""
        return self.words[first] if first == last else self.text[slice(*self.span(first, last))]

    def is_followed(self, word: int) -> bool:
        """Tell whether a single space and another word follow a word."""
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
        """Return the row with edits, which are ascending, disjoint and outside protected spans.

        `changed` are the spans of the words that these edits are the first to change.
        """
        pieces, end = [], 0
        for start, stop, new in edits:
            pieces += [self.text[end:start], new]
            end = stop
        pieces.append(self.text[end:])
        every = sorted([*self.changed, *changed])
        return Row("".join(pieces), moved(self.protected, edits), moved(every, edits))

    def outside(self, edits: list[RowEdit]) -> list[RowEdit]:
        """Return the edits that change nothing protected."""
        return [edit for edit in edits if not overlaps(edit[:2], self.protected)]

    def once(self, edits: list[RowEdit], words: str) -> tuple[list[RowEdit], list[Span]]:
        """Return the edits of words that are unchanged so far, one edit per word, and their spans.

        An edit belongs to the words that it overlaps, or else to the words that it touches.
        `Edits.once` is the form for many rows.
        """
        kept: list[RowEdit] = []
        spans: list[Span] = []
        row = self.cut(words)
        every = list(zip(row._ends[::2], row._ends[1::2], strict=False))  # spans of all words
        for edit in edits:
            span = _with_words(edit[:2], every)
            is_first = not spans or span[0] >= spans[-1][1]
            if is_first and not overlaps(span, self.changed):
                kept.append(edit)
                spans.append(span)
        return kept, spans


def overlaps(span: Span, others: Iterable[Span]) -> bool:
    """Tell whether a span overlaps one of several other spans."""
    start, stop = span
    return any(low < stop and start < high for low, high in others)


def _with_words(span: Span, words: Sequence[Span]) -> Span:
    """Return a span extended to the ends of the words that it overlaps, or else touches."""
    start, stop = span
    own = [word for word in words if word[1] > start and word[0] < stop]
    if not own:
        own = [word for word in words if word[1] >= start and word[0] <= stop]
    if not own:
        return span
    return min(start, own[0][0]), max(stop, own[-1][1])


def _cut(word: str, pattern: re.Pattern[str]) -> list[str]:
    """Cut a word before and behind each match, but leave marks and vowel signs at their letter."""
    edges = {at for match in pattern.finditer(word) for at in match.span()} - {0, len(word)}
    inner = [at for at in sorted(edges) if not joins(ord(word[at])) and word[at - 1] not in _BEFORE]
    return [word[start:stop] for start, stop in pairwise([0, *inner, len(word)])]


def moved(spans: Sequence[Span], edits: Sequence[RowEdit]) -> list[Span]:
    """Return spans after edits, with all text written inside them; spans left empty are dropped."""
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
    """Cache of the results of a function, cleared when it holds `most` of them."""

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
