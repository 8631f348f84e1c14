"""Rewrite sentences of CoNLL files and treebanks with noisy tokens; keep everything else."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from noisegen.data.conll import (
    CONLLU,
    DEPS,
    FIELD,
    HEAD,
    INDEX,
    NUMBER,
    TAG,
    Fields,
    Sentence,
    after_comments,
    fields_of,
    is_tight,
    number_of,
    surface,
    with_space_note,
)
from noisegen.data.labels import Owners, carried, units

_SPACES = " \t\n\r\v\f"
_TEXT = re.compile(r"(#\s*text\s*=\s*).*?(?=\r?\n)")  # comment with the text of a sentence
_REFERENCE = re.compile(r"(?<![^|])\d+(\.\d+)?(?=:)")  # word number in the column deps: 4 in 4:obj


def rewritten(
    raw: bytes, names: Sequence[str], new: Mapping[str, Sequence[str]], owners: Owners
) -> str:
    """Return the lines `raw` of a sentence, with its clean tokens replaced by noisy tokens.

    The list `names` has the columns, `owners` the index of each noisy token's clean token. The dict
    `new` maps some columns to a value per noisy token. In other columns a noisy token has the value
    of its clean token; tags such as B-x are transferred by `labels.carried`. Separators, line ends
    and comments other than `# text` are kept. Without noisy tokens, the sentence stays unchanged.
    """
    if not owners:
        return raw.decode()
    before, lines, after = _parts(raw)
    fields = fields_of(lines)
    names = (INDEX, *names)[-len(fields[0]) :]
    kind = Treebank if names == CONLLU else NoisySentence
    new = {name: new[name] for name in new if kind is not Treebank or name != "upos"}
    rows = list(kind(fields, names, owners).rows(new))
    if [cells for _, cells in rows] == fields:
        return raw.decode()
    if kind is Treebank:
        text = surface([cells for _, cells in rows])
        before = [_TEXT.sub(lambda match: match[1] + text, line) for line in before]
    return "".join([*before, *(_line(lines[at], cells) for at, cells in rows), *after])


def _parts(raw: bytes) -> tuple[Sentence, Sentence, Sentence]:
    """Split a sentence into three lists of lines: before its tokens, its tokens, and after them."""
    lines = list(io.StringIO(raw.decode(), newline="\n"))
    at = 0
    for is_text, group in groupby(lines, lambda line: bool(line.strip(_SPACES))):
        block = list(group)
        first, fields = after_comments(block) if is_text else (0, [])
        if fields:
            break
        at += len(block)
    return lines[: at + first], block[first:], lines[at + len(block) :]


def _line(line: str, cells: Sequence[str]) -> str:
    """Return a line with its fields replaced and its separators kept."""
    if "\t" in line:
        return "\t".join(cells) + line[len(line.rstrip("\r\n")) :]
    fields = iter(cells)
    return FIELD.sub(lambda _: next(fields), line)


class NoisySentence:
    """A sentence in which noisy tokens replace clean ones; `fields` has a list per clean line."""

    def __init__(self, fields: Fields, names: tuple[str, ...], owners: Owners) -> None:
        self.fields, self.names, self.owners = fields, names, owners
        self.words = [cells for cells in fields if self._is_word(cells)]
        self.units = units(owners, len(self.words))
        self.first = number_of(self.words[0][0]) if names[0] == INDEX else 1
        self.ids = self._new_ids() if names[0] == INDEX else {}

    def _is_word(self, cells: Sequence[str]) -> bool:
        return self.names[0] != INDEX or cells[0].isdecimal()

    def rows(self, new: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, list[str]]]:
        """Yield (index of the clean line, fields) for each line of the noisy sentence.

        The dict `new` maps some columns to a value per noisy token.
        """
        tokens = self.tokens()
        for name, values in new.items():
            at = self.names.index(name)
            for cells, value in zip(tokens, values, strict=True):
                cells[at] = value
        noisy = {clean.start: noisy for clean, noisy in self.units}
        word = 0
        for line, cells in enumerate(self.fields):
            if self._is_word(cells):
                yield from ((line, tokens[number]) for number in noisy.get(word, ()))
                word += 1
            elif number := self.ids.get(cells[0], cells[0]):
                yield line, self.renumbered(number, cells, tokens)

    def tokens(self) -> Fields:
        """Return the fields of each noisy token: its clean token's fields, with a new number."""
        columns = []
        for name, values in zip(self.names, zip(*self.words, strict=True), strict=True):
            if name == INDEX:
                columns.append([str(self.first + number) for number in range(len(self.owners))])
            elif all(map(TAG.fullmatch, values)):
                columns.append(carried(values, self.owners))
            else:
                columns.append([values[owner or 0] for owner in self.owners])
        return [list(cells) for cells in zip(*columns, strict=True)]

    def renumbered(self, number: str, cells: Sequence[str], tokens: Fields) -> list[str]:
        """Return the fields `cells` of a line that is no word, with its new number, `number`."""
        return [number, *cells[1:]]

    def _new_ids(self) -> dict[str, str]:
        """Return {old number: new number} for the words, contractions and empty nodes.

        The new number is '' for a contraction whose words are merged into one token.
        """
        bounds = {}  # {number of a word: new numbers of its first and last noisy token}
        for clean, noisy in self.units:
            for word in clean:
                number = self.words[word][0]
                bounds[number] = self.first + noisy.start, self.first + noisy.stop - 1
        ids: dict[str, str] = {}
        nodes: Counter[object] = Counter()  # {new number of a word: count of empty nodes after it}
        for number, *_ in self.fields:
            whole, part = match.groups() if (match := NUMBER.fullmatch(number)) else (number, None)
            first, last = bounds.get(whole, (whole, whole))
            if part and part[0] == "-":
                _, last = bounds.get(part[1:], (0, part[1:]))
                ids[number] = f"{first}-{last}" if first != last else ""
            elif part:
                nodes[last] += 1
                ids[number] = f"{last}.{nodes[last]}"
            else:
                ids[number] = str(first)
        return ids


class Treebank(NoisySentence):
    """A CoNLL-U sentence, in which each word depends on another word, its head.

    The first part of a split word keeps the fields of the word; each other part has the tag X and
    depends on the first part as `goeswith`. A word merged from several has the fields of the first
    word, and the head and relation of the word that is nearest to the root.
    """

    def __init__(self, fields: Fields, names: tuple[str, ...], owners: Owners) -> None:
        super().__init__(fields, names, owners)
        self._heads = {cells[0]: cells[HEAD] for cells in self.words}
        self._tight = set()  # numbers of words without a space after them
        for cells in fields:
            if is_tight(cells) and (self._is_word(cells) or not self.ids[cells[0]]):
                self._tight.add(cells[0].rpartition("-")[2])

    def tokens(self) -> Fields:
        """Return the fields of each noisy token, with new numbers also in `head` and `deps`."""
        tokens = [cells for unit in self.units for cells in self._unit(*unit)]
        for number, cells in enumerate(tokens, self.first):
            cells[0] = str(number)
        return tokens

    def _unit(self, clean: range, noisy: range) -> Fields:
        """Return the fields of the noisy tokens that replace clean words; both are index ranges."""
        own = self.words[self.owners[noisy.start] or 0]
        top = self.words[min(clean, key=self._depth)]
        relation = [self.ids.get(top[HEAD], top[HEAD]), top[HEAD + 1], self._deps(top[DEPS])]
        begin = str(self.first + noisy.start)
        part = ["_", "_", "_", "X", "_", "_", begin, "goeswith", "_", "_"]
        tokens = [[*own[:HEAD], *relation, own[-1]], *(list(part) for _ in noisy[1:])]
        if len(clean) + len(noisy) > 2:
            tight = self.words[clean[-1]][0] in self._tight
            tokens[0][-1] = with_space_note(tokens[0][-1], tight=tight and len(noisy) == 1)
            tokens[-1][-1] = with_space_note(tokens[-1][-1], tight=tight)
        return tokens

    def _depth(self, word: int) -> int:
        """Return the distance of a word from the root; a high number if its heads form a cycle."""
        number, steps = self.words[word][0], 0
        while number in self._heads and steps <= len(self._heads):
            number, steps = self._heads[number], steps + 1
        return steps

    def _deps(self, relations: str) -> str:
        return _REFERENCE.sub(lambda match: self.ids.get(match[0], match[0]), relations)

    def renumbered(self, number: str, cells: Sequence[str], tokens: Fields) -> list[str]:
        """Return the fields of an empty node or a contraction, with `number` as its new number.

        If a contraction equals its joined clean words ('can' + 'not'), it becomes its joined noisy
        words. Another contraction, such as 'du' for 'de' and 'le', is left unchanged.
        """
        numbers, form = [word[0] for word in self.words], cells[1]
        first, _, last = cells[0].partition("-")
        if first in numbers and last in numbers:
            words = self.words[numbers.index(first) : numbers.index(last) + 1]
            if "".join(word[1] for word in words) == form:
                start, stop = (number_of(bound) - self.first for bound in number.split("-"))
                form = "".join(token[1] for token in tokens[start : stop + 1])
        return [number, form, *cells[2:DEPS], self._deps(cells[DEPS]), *cells[DEPS + 1 :]]
