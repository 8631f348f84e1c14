"""Files with a token per line and a blank line after each sentence: read as rows, written anew.

CoNLL-2003, CoNLL-U and IOB2 have a token, its tags and more per line, split by tabs or spaces;
MultiLexNorm's `.norm` has a raw word and its normal form, which may be several words or none.
"""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise, takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.data.files import SCAN, TEXT_MAX, Damaged, blocks
from noisegen.data.tables import CODE, RAW, ROWS, with_reasons

LISTS = pa.list_(pa.string())
TOKENS, LABELS, TEXT, SENTENCE = "tokens", "labels", "text", "sent_id"
INDEX = "index"  # a column that counts the tokens; it is not among those of the rows
CONLLU = (INDEX, "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NORM = ("raw", "norm")
WORDS, LABELLED = (TOKENS, "form", "raw"), (LABELS, "upos", "norm")  # what is usually meant
_WORDS_MIN = 0.95  # share of first fields without a space in a file with a token per line
_SAME_MIN = 0.3  # share of equal words in normalised text; of tags that are words far fewer
_START = "-DOCSTART-"  # begins a line that begins a document
_BLANK = " \t\n\r\v\f"
_FIELD = re.compile(r"[^ \r\n]+")  # where spaces split
_TAG = re.compile(r"O|[BIESLU]-\S+")
_INDEX = re.compile(r"(\d{1,9})([-.]\d{1,9})?")  # 3, the span 3-4 of a contraction, empty node 3.1
_TEXT = re.compile(r"(#\s*text\s*=\s*).*?(?=\r?\n)")
_REFERENCE = re.compile(r"(?<![^|])\d+(\.\d+)?(?=:)")  # to a word, in the column deps
_HEAD, _DEPS = CONLLU.index("head"), CONLLU.index("deps")
_NO_SPACE = "SpaceAfter=No"
_CORRECT, _CORRECT_SPACE = "CorrectForm", "CorrectSpaceAfter"
_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")  # those that are columns

Sentence = list[str]  # its lines
Fields = list[list[str]]  # of its lines
Row = dict[str, Any]


def sentences(parts: Iterable[bytes]) -> Iterator[Sentence | str]:
    """Yield the lines of each sentence, or why they cannot be read; raises what `parts` does."""
    return map(_decoded, _blocks(parts))


def head_sentences(head: bytes) -> list[Sentence]:
    """Return the sentences of the beginning of a file; the last may be cut."""
    return [lines for lines in sentences([head]) if isinstance(lines, list)]


def looks_split(head: bytes, wanted: Sequence[str]) -> bool:
    """Tell whether lines have a token each: blank lines, equal columns, none of those wanted.

    Where spaces split them, text is told by the tags at the ends of lines.
    """
    found = head_sentences(head[: head.rfind(b"\n") + 1] or head)
    lines = [cells for sentence in found for cells in _after_comments(sentence)[1]]
    if len(found) < 2 or not lines or {*wanted} & {*lines[0]}:
        return False
    words = sum(" " not in line[0] for line in lines)
    is_told = b"\t" in head or all(_TAG.fullmatch(line[-1]) for line in lines)
    has_columns = {len(line) for line in lines} == {max(len(lines[0]), 2)}
    return has_columns and is_told and words >= _WORDS_MIN * len(lines)


def is_normalisation(head: bytes) -> bool:
    """Tell whether many lines have the same word twice: raw, and as it should be."""
    lines = [line.lower().split("\t") for sentence in head_sentences(head) for line in sentence]
    return sum(line[:1] == line[1:2] for line in lines) > _SAME_MIN * len(lines)


def token_columns(head: bytes, tokens: str | None, labels: str | None) -> tuple[str, ...]:
    """Return the names of the columns of a file, in its order.

    Those of CoNLL-U have the names of the format. Elsewhere the tokens are the first column that
    does not count them, the labels the last with tags such as B-x, else the last; where `tokens`
    and `labels` name others, those keep their numbers (`column_2`).
    """
    rows = [_after_comments(lines)[1] for lines in head_sentences(head)]
    lines = [line for row in rows for line in row]
    if not lines:
        return ()
    width = Counter(map(len, lines)).most_common(1)[0][0]
    lines = [line for line in lines if len(line) == width]
    whole = [row for row in rows if all(len(line) == width for line in row)]
    has_index = width > 2 and bool(whole) and all(map(_counts, whole))
    if has_index and width == len(CONLLU):
        return CONLLU
    names = [f"column_{number}" for number in range(1, width + 1)]
    if has_index:
        names[0] = INDEX
    if tokens in (None, TOKENS):
        names[has_index] = TOKENS
    others = range(has_index + 1, width)
    if others and labels in (None, LABELS):
        tagged = [at for at in others if all(_TAG.fullmatch(line[at]) for line in lines)]
        names[(tagged or others)[-1]] = LABELS
    return tuple(names)


def _counts(lines: Fields) -> bool:
    """Tell whether the first fields of a sentence count its tokens."""
    numbers = [_INDEX.fullmatch(line[0]) for line in lines]
    whole = [int(match[1]) for match in numbers if match and not match[2]]
    return all(numbers) and whole in ([*range(len(whole))], [*range(1, len(whole) + 1)])


def _fields(lines: Sentence) -> Fields:
    """Return the fields of the lines of a sentence: split at tabs, if there are any, or spaces."""
    if "\t" in lines[-1]:
        return [line.rstrip("\r\n").split("\t") for line in lines]
    return [_FIELD.findall(line) for line in lines]


def _after_comments(lines: Sentence) -> tuple[int, Fields]:
    """Return how many lines are before the tokens, and the fields of those of the tokens.

    Before them are comments, with another number of fields than the last line, unlike the token #
    with its tags, and what begins a document.
    """
    fields = _fields(lines)
    may_be_token = not lines[-1].startswith("# ")
    for number, (line, cells) in enumerate(zip(lines, fields, strict=True)):
        is_comment = line[0] == "#" and not (may_be_token and len(cells) == len(fields[-1]))
        if not is_comment and cells[0] != _START:
            return number, fields[number:]
    return len(lines), []


# Rows.


def token_schema(names: Sequence[str], tokens: str | None, *, has_id: bool) -> pa.Schema:
    """Return the columns of the rows: lists, and the text of a sentence if no tokens are asked."""
    columns = [(TEXT, pa.string())] if tokens is None else []
    columns += [(SENTENCE, pa.string())] if has_id else []
    return pa.schema([*columns, *((name, LISTS) for name in names if name != INDEX)])


def pair_schema(tokens: str | None = None) -> pa.Schema:
    """Return the columns of normalised text: noisy and clean, or lists of words."""
    return pa.schema(dict.fromkeys(NORM, LISTS) if tokens else _PAIR)


_PAIR = dict.fromkeys(("noisy", "clean"), pa.string())


def corrected_tables(parts: Iterable[bytes]) -> Iterator[pa.Table]:
    """Yield the sentences of CoNLL-U as pairs: as they are, and with their corrections."""

    def row(lines: Sentence) -> Row | str | None:
        _, fields = _after_comments(lines)
        if any(len(line) != len(CONLLU) for line in fields):
            return "wrong_columns"
        return {"noisy": _surface(fields), "clean": _corrected(fields)} if fields else None

    return _tables(parts, row, _PAIR)


def token_tables(parts: Iterable[bytes], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield sentences as rows, a list for each column, with their `text` and `sent_id`.

    RAW has the bytes of each sentence with the blank lines after it, and with what is no sentence
    before it: together they are the file.
    """
    words = next((name for name in WORDS if name in names), names[0])
    schema = {TEXT: pa.string(), SENTENCE: pa.string()} | dict.fromkeys(names, LISTS)

    def row(lines: Sentence) -> Row | str | None:
        first, fields = _after_comments(lines)
        if not fields:
            return None
        whole = all(len(line) == len(names) for line in fields)
        if names[0] == INDEX:
            fields = [line for line in fields if line[0].isdecimal()]
        if not (whole and fields):
            return "wrong_columns"
        comments = {match[1]: match[2] for line in lines[:first] if (match := _COMMENT.match(line))}
        columns = dict(zip(names, map(list, zip(*fields, strict=True)), strict=True))
        return {TEXT: " ".join(columns[words])} | comments | columns

    return _tables(parts, row, schema)


def norm_tables(parts: Iterable[bytes]) -> Iterator[pa.Table]:
    """Yield the sentences of a `.norm` file as rows: words as lists, both sides also as text."""

    def row(lines: Sentence) -> Row | str | None:
        fields = [[cell.strip() for cell in line.split("\t")] for line in lines]
        if any(len(line) != len(NORM) for line in fields):
            return "wrong_columns"
        sides = [list(side) for side in zip(*fields, strict=True)]
        texts = (" ".join(filter(None, side)) for side in sides)
        return dict(zip((*NORM, *_PAIR), (*sides, *texts), strict=True))

    return _tables(parts, row, dict.fromkeys(NORM, LISTS) | _PAIR)


def _tables(
    parts: Iterable[bytes], row_of: Callable[[Sentence], Row | str | None],
    columns: dict[str, pa.DataType],
) -> Iterator[pa.Table]:  # fmt: skip
    """Yield the rows of sentences, about SCAN bytes at once; None is no row, a text its reason."""
    schema = pa.schema(columns | {RAW: pa.binary()})
    rows: list[Row] = []
    codes: list[int] = []
    size, raw, end = 0, b"", b"\n"

    def table() -> pa.Table:
        built = pa.Table.from_pylist(rows, schema)
        return with_reasons(built, np.array(codes, np.int8))

    damage: Damaged | None = None
    try:
        for block in _blocks(parts):
            lines = _decoded(block)
            row = lines if isinstance(lines, str) else row_of(lines)
            raw += b"".join(block)
            end = b"\r\n" if block[0].endswith(b"\r\n") else end
            if row is None:
                continue
            if len(rows) == ROWS or size > SCAN:
                yield table()
                rows, codes, size = [], [], 0
            rows.append(({} if isinstance(row, str) else row) | {RAW: raw})
            codes.append(CODE[row] if isinstance(row, str) else 0)
            size, raw = size + len(raw), b""
    except Damaged as error:
        damage = error
    if rows:
        rows[-1][RAW] = rows[-1][RAW] + raw if raw else _ended(rows[-1][RAW], end)
        yield table()
    if damage:
        raise damage


def _ended(raw: bytes, end: bytes) -> bytes:
    """Return the last sentence of a file with a blank line after it."""
    raw = raw if raw.endswith(b"\n") else raw + end
    return raw if raw.endswith((b"\n\n", b"\n\r\n")) else raw + end


def _blocks(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of each sentence and of the blank lines around it; raises what `parts` does.

    Of a sentence over TEXT_MAX only the beginning is kept.
    """
    held: list[bytes] = []
    size, is_over = 0, False
    for line in chain.from_iterable(map(io.BytesIO, blocks(parts, SCAN))):
        if line.isspace():
            is_over = size > 0
        elif is_over:
            yield held
            held, size, is_over = [], 0, False
        if size <= TEXT_MAX:
            held.append(line)
        size += 0 if line.isspace() else len(line)
    if size:
        yield held


def _decoded(block: Sequence[bytes]) -> Sentence | str:
    """Return the lines of a sentence as text, or why they cannot be read."""
    lines = [line for line in block if not line.isspace()]
    if sum(map(len, lines)) > TEXT_MAX:
        return "row_too_long"
    try:
        return [line.rstrip(b"\r\n").decode() for line in lines]
    except UnicodeDecodeError:
        return "not_utf8"


# Labels and lines of noisy tokens.


Owners = Sequence[int | None]  # for each noisy token the number of the clean one, in their order


def carried(labels: Sequence[Any], owners: Owners) -> list[Any]:
    """Return the labels of noisy tokens: those of their clean tokens, O without one.

    A token split in two continues its label (B-x, then I-x); tokens merged into one keep the first
    label, and what is left of a span whose B-x went into such a token begins with B-x.
    """
    made: list[Any] = []
    for before, owner in pairwise([None, *owners]):
        label = "O" if owner is None else labels[owner]
        if isinstance(label, str) and label[:2] in ("B-", "I-"):
            begun, inside = f"B-{label[2:]}", f"I-{label[2:]}"
            label = inside if owner == before else label
            if label == inside and (not made or made[-1] not in (begun, inside)):
                span = takewhile({begun, inside}.__contains__, reversed(labels[:owner]))
                label = begun if begun in span else inside
        made.append(label)
    return made


def carried_forms(forms: Sequence[str], owners: Owners) -> list[str]:
    """Return the normal forms of noisy words, as MultiLexNorm has them.

    The first part of a split word has its form and the others none; words merged into one have
    theirs joined.
    """
    made = [""] * len(owners)
    for clean, noisy in units(owners, len(forms)):
        made[noisy.start] = " ".join(filter(None, (forms[number] for number in clean)))
    return made


def units(owners: Owners, count: int) -> list[tuple[range, range]]:
    """Return which of `count` clean tokens became which noisy tokens, in their order.

    Several noisy tokens come from a split, several clean ones from a merger. A clean token that
    noise removed counts with the one before it, or with the first one left.
    """
    if not owners:
        return []
    starts = [at for at, owner in enumerate(owners) if at and owner != owners[at - 1]]
    clean = pairwise([0, *(owners[at] or 0 for at in starts), count])
    noisy = pairwise([0, *starts, len(owners)])
    return [(range(*ours), range(*theirs)) for ours, theirs in zip(clean, noisy, strict=True)]


def rewritten(
    raw: bytes, names: Sequence[str], new: Mapping[str, Sequence[str]], owners: Owners
) -> str:
    """Return the lines of a sentence, RAW of a row, with its noisy tokens.

    `names` are the columns of the row; `new` has some of them for the noisy tokens. In the others
    these have what their clean tokens have, tags such as B-x by the rule of labels. Comments but
    `# text`, separators and line ends stay, and so does a sentence that has lost all tokens.
    """
    if not owners:
        return raw.decode()
    before, lines, after = _parts(raw)
    fields = _fields(lines)
    names = (INDEX, *names)[-len(fields[0]) :]
    kind = Treebank if names == CONLLU else NoisySentence
    new = {name: new[name] for name in new if kind is not Treebank or name != "upos"}
    rows = list(kind(fields, names, owners).rows(new))
    if [cells for _, cells in rows] == fields:
        return raw.decode()
    if kind is Treebank:
        text = _surface([cells for _, cells in rows])
        before = [_TEXT.sub(lambda match: match[1] + text, line) for line in before]
    return "".join([*before, *(_line(lines[at], cells) for at, cells in rows), *after])


def _parts(raw: bytes) -> tuple[Sentence, Sentence, Sentence]:
    """Return the lines before the tokens of a sentence, with the tokens, and after them."""
    lines = list(io.StringIO(raw.decode(), newline="\n"))
    at = 0
    for is_text, group in groupby(lines, lambda line: bool(line.strip(_BLANK))):
        block = list(group)
        first, fields = _after_comments(block) if is_text else (0, [])
        if fields:
            break
        at += len(block)
    return lines[: at + first], block[first:], lines[at + len(block) :]


def _line(line: str, cells: Sequence[str]) -> str:
    """Return a line with other fields between the same separators."""
    if "\t" in line:
        return "\t".join(cells) + line[len(line.rstrip("\r\n")) :]
    fields = iter(cells)
    return _FIELD.sub(lambda _: next(fields), line)


def _surface(rows: Fields) -> str:
    """Return the text of a sentence of CoNLL-U: its words, or contractions, as they are spaced."""
    return "".join(cells[1] + " " * (not _is_tight(cells)) for cells in _outer(rows)).rstrip(" ")


def _outer(rows: Fields) -> Iterator[list[str]]:
    """Yield the lines that a text is made of: contractions, and the words that are in none."""
    inside = -1  # the number of the last word of a contraction
    for cells in rows:
        number, _, last = cells[0].partition("-")
        if _number(number) > inside:
            inside = _number(last)
            yield cells


def _number(field: str) -> int:
    """Return the number in a field, -1 if it is none; of endless digits Python makes none."""
    return int(field) if field.isdecimal() and len(field) < 10 else -1


def _corrected(rows: Fields) -> str:
    """Return the text of a sentence of CoNLL-U as its notes correct forms and spaces.

    The other parts of a broken word, `goeswith`, are joined to the first, or are in its form.
    """
    text, space, has_whole = "", "", False
    for cells in _outer(rows):
        form = _correct_form(cells, rows)
        if cells[_HEAD + 1] == "goeswith":
            form, space = "" if has_whole else form, ""
        else:
            has_whole = _CORRECT in _notes(cells)
        if form:
            text += space * bool(text) + form
        right = _notes(cells).get(_CORRECT_SPACE) or ("No" if _is_tight(cells) else "Yes")
        space = " " * right.startswith("Yes")
    return text


def _correct_form(cells: list[str], rows: Fields) -> str:
    """Return the form of a line that was meant; '' for a word that should not be there.

    That of a contraction is made of its words if they spell it.
    """
    form = _notes(cells).get(_CORRECT, cells[1])
    first, _, last = cells[0].partition("-")
    numbers = range(max(_number(first), 0), _number(last) + 1)
    words = [word for word in rows if _number(word[0]) in numbers]
    if form == "".join(word[1] for word in words):
        return "".join(_correct_form(word, rows) for word in words)
    return "" if form == "_" else form


def _notes(cells: Sequence[str]) -> dict[str, str]:
    """Return the notes in the last column of a line."""
    return dict(note.partition("=")[::2] for note in cells[-1].split("|"))


class NoisySentence:
    """The fields of the lines of a sentence, and what becomes of them with other tokens."""

    def __init__(self, fields: Fields, names: tuple[str, ...], owners: Owners) -> None:
        self.fields, self.names, self.owners = fields, names, owners
        self.words = [cells for cells in fields if self._is_word(cells)]
        self.units = units(owners, len(self.words))
        self.first = _number(self.words[0][0]) if names[0] == INDEX else 1
        self.ids = self._new_ids() if names[0] == INDEX else {}

    def _is_word(self, cells: Sequence[str]) -> bool:
        return self.names[0] != INDEX or cells[0].isdecimal()

    def rows(self, new: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines with the noisy tokens, each with the number of the line that it was."""
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
                yield line, self.other(number, cells, tokens)

    def tokens(self) -> Fields:
        """Return the fields of the noisy tokens, as far as they come from the clean ones."""
        columns = []
        for name, values in zip(self.names, zip(*self.words, strict=True), strict=True):
            if name == INDEX:
                columns.append([str(self.first + number) for number in range(len(self.owners))])
            elif all(map(_TAG.fullmatch, values)):
                columns.append(carried(values, self.owners))
            else:
                columns.append([values[owner or 0] for owner in self.owners])
        return [list(cells) for cells in zip(*columns, strict=True)]

    def other(self, number: str, cells: Sequence[str], tokens: Fields) -> list[str]:
        """Return the fields of a line that is no word, with its new number."""
        return [number, *cells[1:]]

    def _new_ids(self) -> dict[str, str]:
        """Return the new numbers of words, contractions and empty nodes; '' where one is gone."""
        bounds = {
            self.words[word][0]: (self.first + noisy.start, self.first + noisy.stop - 1)
            for clean, noisy in self.units for word in clean
        }  # fmt: skip
        ids: dict[str, str] = {}
        nodes: Counter[object] = Counter()  # empty ones after a word
        for number, *_ in self.fields:
            whole, part = match.groups() if (match := _INDEX.fullmatch(number)) else (number, None)
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
    """The same in CoNLL-U, with the relations between the words.

    The first part of a split word has its columns; the others are X and joined to it as `goeswith`.
    A merged word has the columns of its first word, and the relation of that nearest to the root.
    """

    def __init__(self, fields: Fields, names: tuple[str, ...], owners: Owners) -> None:
        super().__init__(fields, names, owners)
        self._heads = {cells[0]: cells[_HEAD] for cells in self.words}
        self._tight = {  # the last numbers of words and contractions without a space after them
            cells[0].rpartition("-")[2] for cells in fields
            if _is_tight(cells) and (self._is_word(cells) or not self.ids[cells[0]])
        }  # fmt: skip

    def tokens(self) -> Fields:
        """Return the fields of the noisy tokens, as far as they come from the clean ones."""
        tokens = [cells for unit in self.units for cells in self._unit(*unit)]
        for number, cells in enumerate(tokens, self.first):
            cells[0] = str(number)
        return tokens

    def _unit(self, clean: range, noisy: range) -> Fields:
        """Return the fields of the noisy tokens that some clean ones became."""
        own = self.words[self.owners[noisy.start] or 0]
        top = self.words[min(clean, key=self._depth)]
        relation = [self.ids.get(top[_HEAD], top[_HEAD]), top[_HEAD + 1], self._deps(top[_DEPS])]
        begin = str(self.first + noisy.start)
        part = ["_", "_", "_", "X", "_", "_", begin, "goeswith", "_", "_"]
        tokens = [[*own[:_HEAD], *relation, own[-1]], *(list(part) for _ in noisy[1:])]
        if len(clean) + len(noisy) > 2:
            is_tight = self.words[clean[-1]][0] in self._tight
            tokens[0][-1] = _misc(tokens[0][-1], is_tight=is_tight and len(noisy) == 1)
            tokens[-1][-1] = _misc(tokens[-1][-1], is_tight=is_tight)
        return tokens

    def _depth(self, word: int) -> int:
        """Return how far a word is from the root; much where its heads are a circle."""
        number, steps = self.words[word][0], 0
        while number in self._heads and steps <= len(self._heads):
            number, steps = self._heads[number], steps + 1
        return steps

    def _deps(self, relations: str) -> str:
        return _REFERENCE.sub(lambda match: self.ids.get(match[0], match[0]), relations)

    def other(self, number: str, cells: Sequence[str], tokens: Fields) -> list[str]:
        """Return the fields of an empty node, or of a contraction, spelled as its words if it was.

        One that its words do not spell, such as du of de and le, stays.
        """
        numbers, form = [word[0] for word in self.words], cells[1]
        first, _, last = cells[0].partition("-")
        if first in numbers and last in numbers:
            words = self.words[numbers.index(first) : numbers.index(last) + 1]
            if "".join(word[1] for word in words) == form:
                start, stop = (_number(bound) - self.first for bound in number.split("-"))
                form = "".join(token[1] for token in tokens[start : stop + 1])
        return [number, form, *cells[2:_DEPS], self._deps(cells[_DEPS]), *cells[_DEPS + 1 :]]


def _is_tight(cells: Sequence[str]) -> bool:
    return _NO_SPACE in cells[-1].split("|")


def _misc(values: str, *, is_tight: bool) -> str:
    """Return the last field of a word with or without the note that no space follows."""
    others = [value for value in values.split("|") if value not in ("_", _NO_SPACE)]
    return "|".join([*others, *[_NO_SPACE] * is_tight]) or "_"
