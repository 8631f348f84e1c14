"""Sentences with a token per line and a blank line after each: CoNLL-2003, CoNLL-U, IOB2, `.norm`.

CoNLL files have a token, its tags and more per line, split by tabs or spaces. MultiLexNorm's
`.norm` has a raw word and its normal form, which may be several words or none.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from noisegen.data.files import SCAN
from noisegen.data.lines import TEXT_MAX, blocks

TOKENS, LABELS, TEXT, SENTENCE = "tokens", "labels", "text", "sent_id"
INDEX = "index"  # column that numbers the tokens of a sentence; it is not kept in rows
CONLLU = (INDEX, "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NORM = ("raw", "norm")
# Default columns of tokens, and of labels: the first name that a file has is used
WORDS, LABELLED = (TOKENS, "form", "raw"), (LABELS, "upos", "norm")
HEAD, DEPS = CONLLU.index("head"), CONLLU.index("deps")
TAG = re.compile(r"O|[BIESLUM]-\S+")
IO_TAG = re.compile(r"[A-Z][A-Z0-9_-]*")  # such as LOC, in a scheme whose only other tag is O
# Number in the first field of CoNLL-U: 3 of a token, 3-4 of a contraction, 3.1 of an empty node
NUMBER = re.compile(r"(\d{1,9})([-.]\d{1,9})?")
FIELD = re.compile(r"[^ \r\n]+")  # one field, in files whose fields are separated by spaces
# Minimum share of lines whose first field has no space, in a file with a token per line
_WORDS_MIN = 0.95
# Minimum share of lines whose two words are equal, in a file of words with their normal forms
_SAME_MIN = 0.3
_START = "-DOCSTART-"  # first field of a line that begins a document
# First and last field of a header line, in lower case
_TOKEN_NAMES = {"token", "tokens", "word", "words", "form"}
_LABEL_NAMES = {"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "pos", "upos"}
_NO_SPACE = "SpaceAfter=No"
_CORRECT, _CORRECT_SPACE = "CorrectForm", "CorrectSpaceAfter"

Sentence = list[str]  # lines of one sentence
Fields = list[list[str]]  # fields of each line of a sentence


def sentences(parts: Iterable[bytes]) -> Iterator[Sentence | str]:
    """Yield the lines of each sentence, or the reason why the sentence is dropped.

    `parts` yields the bytes of a file; an error that it raises is passed on.
    """
    return map(decoded_lines, sentence_blocks(parts))


def head_sentences(head: bytes) -> list[Sentence]:
    """Return the sentences in `head`, the first bytes of a file; the last one may be incomplete."""
    return [lines for lines in sentences([head]) if isinstance(lines, list)]


def has_token_lines(head: bytes, wanted: Sequence[str]) -> bool:
    """Tell whether a file with these first bytes has one token per line.

    Such a file has blank lines between sentences, and the same number of fields on all other lines.
    Without tabs, the last field of each line must be a tag such as B-x or LOC. A file whose first
    line has a column name in the list `wanted` is a table with a header line.
    """
    found = head_sentences(head[: head.rfind(b"\n") + 1] or head)
    lines = [cells for sentence in found for cells in after_comments(sentence)[1]]
    if len(found) < 2 or not lines or {*wanted} & {*lines[0]}:
        return False
    words = sum(" " not in line[0] for line in lines)
    has_tabs_or_tags = b"\t" in head or _are_tags([line[-1] for line in lines])
    has_columns = {len(line) for line in lines} == {max(len(lines[0]), 2)}
    return has_columns and has_tabs_or_tags and words >= _WORDS_MIN * len(lines)


def is_normalisation(head: bytes) -> bool:
    """Tell whether a file with these first bytes has words with their normal forms, as `.norm`.

    In such a file many lines have the same word in both columns.
    """
    lines = [line.lower().split("\t") for sentence in head_sentences(head) for line in sentence]
    return sum(line[:1] == line[1:2] for line in lines) > _SAME_MIN * len(lines)


def token_columns(head: bytes, tokens: str | None, labels: str | None) -> tuple[str, ...]:
    """Return the names of a file's columns in their order; () for a file without tokens.

    Columns of CoNLL-U have their standard names. Other columns are 'index' (a first column of token
    numbers), 'tokens' (the next column), 'labels' (the last column with only tags such as B-x, or
    else the last column), and 'column_2' and so on. If the user names other columns in `tokens` or
    `labels`, the default columns are numbered too, or have the names of a header line that has one
    of these.
    """
    blocks = head_sentences(head)
    found = [after_comments(lines)[1] for lines in blocks]
    lines = list(chain.from_iterable(found))
    if not lines:
        return ()
    width = Counter(map(len, lines)).most_common(1)[0][0]
    has_index = _are_numbered(found, width)
    if has_index and width == len(CONLLU):
        return CONLLU
    names = [f"column_{number}" for number in range(1, width + 1)]
    headers = (cells for cells in fields_of(blocks[0]) if _is_header(cells))
    if (header := next(headers, [])) and len(header) == width and {tokens, labels} & {*header}:
        names = header
    if has_index:
        names[0] = INDEX
    if tokens in (None, TOKENS):
        names[has_index] = TOKENS
    has_labels = width > has_index + 1
    if has_labels and labels in (None, LABELS):
        names[_label_place(lines, has_index + 1, width)] = LABELS
    return tuple(names)


def _are_numbered(found: Iterable[Fields], width: int) -> bool:
    """Tell whether there are three or more columns, and the first has token numbers.

    Ignores sentences that have a line with more or fewer than `width` fields.
    """
    whole = [lines for lines in found if all(len(line) == width for line in lines)]
    return width > 2 and bool(whole) and all(map(_counts, whole))


def _label_place(lines: Fields, first: int, width: int) -> int:
    """Return the index of the column of labels: the last that has a tag on every line.

    If no column has only tags (`_are_tags`), it is the last column. Ignores columns before index
    `first`, and lines with more or fewer than `width` fields.
    """
    lines = [line for line in lines if len(line) == width]
    for place in reversed(range(first, width)):
        if _are_tags([line[place] for line in lines]):
            return place
    return width - 1


def _are_tags(fields: Sequence[str]) -> bool:
    """Tell whether these are the tags of tokens: B-x and the like, or LOC and the like beside O."""
    with_prefix = all(map(TAG.fullmatch, fields))
    return with_prefix or ("O" in fields and all(map(IO_TAG.fullmatch, fields)))


def _counts(lines: Fields) -> bool:
    """Tell whether the first fields of the lines are token numbers: 0 1 2 or 1 2 3."""
    numbers = [NUMBER.fullmatch(line[0]) for line in lines]
    whole = [int(match[1]) for match in numbers if match and not match[2]]
    return all(numbers) and whole in ([*range(len(whole))], [*range(1, len(whole) + 1)])


def fields_of(lines: Sentence) -> Fields:
    """Split each line into fields: at tabs, or at spaces if the last line has no tab."""
    if "\t" in lines[-1]:
        return [line.rstrip("\r\n").split("\t") for line in lines]
    return [FIELD.findall(line) for line in lines]


def after_comments(lines: Sentence) -> tuple[int, Fields]:
    """Return the count of lines before a sentence's first token, and the fields of its tokens.

    Lines before the first token are comments, begin a document (-DOCSTART-) or name the columns
    (`token tag`). A line that begins with # is a token if it has the same number of fields as the
    last line, else a comment.
    """
    fields = fields_of(lines)
    may_be_token = not lines[-1].startswith("# ")
    for number, (line, cells) in enumerate(zip(lines, fields, strict=True)):
        is_comment = line[0] == "#" and not (may_be_token and len(cells) == len(fields[-1]))
        if not (is_comment or cells[0] == _START or _is_header(cells)):
            return number, fields[number:]
    return len(lines), []


def _is_header(cells: Sequence[str]) -> bool:
    return cells[0].lower() in _TOKEN_NAMES and cells[-1].lower() in _LABEL_NAMES


def sentence_blocks(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of each sentence, with the blank lines around it, as bytes.

    A sentence of over TEXT_MAX bytes is cut after the line with which it exceeds them.
    `parts` yields the bytes of a file; an error that it raises is passed on.
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


def decoded_lines(block: Sequence[bytes]) -> Sentence | str:
    """Return the lines of a sentence as strings, or the reason why the sentence is dropped."""
    lines = [line for line in block if not line.isspace()]
    if sum(map(len, lines)) > TEXT_MAX:
        return "row_too_long"
    try:
        return [line.rstrip(b"\r\n").decode() for line in lines]
    except UnicodeDecodeError:
        return "not_utf8"


# Functions that return the text of a CoNLL-U sentence.


def surface(rows: Fields) -> str:
    """Return the text of a CoNLL-U sentence, with its contractions ('du', not 'de' and 'le')."""
    return "".join(cells[1] + " " * (not is_tight(cells)) for cells in _words(rows)).rstrip(" ")


def _words(rows: Fields) -> Iterator[list[str]]:
    """Yield the line of each contraction, and of each word that is in no contraction."""
    inside = -1  # number of the last word in the current contraction
    for cells in rows:
        number, _, last = cells[0].partition("-")
        if number_of(number) > inside:
            inside = number_of(last)
            yield cells


def number_of(field: str) -> int:
    """Return the number in a field; -1 if it is not a number or has 10 digits or more."""
    return int(field) if field.isdecimal() and len(field) < 10 else -1


def corrected(rows: Fields) -> str:
    """Return the corrected text of a CoNLL-U sentence, from CorrectForm and CorrectSpaceAfter.

    A word written in parts, as 'with out' (relation `goeswith`), becomes the CorrectForm of its
    first part, or else the joined parts.
    """
    text, space, has_whole = "", "", False
    for cells in _words(rows):
        form = _correct_form(cells, rows)
        if cells[HEAD + 1] == "goeswith":
            form, space = "" if has_whole else form, ""
        else:
            has_whole = _CORRECT in _notes(cells)
        if form:
            text += space * bool(text) + form
        right = _notes(cells).get(_CORRECT_SPACE) or ("No" if is_tight(cells) else "Yes")
        space = " " * right.startswith("Yes")
    return text


def _correct_form(cells: list[str], rows: Fields) -> str:
    """Return the corrected form of a word or contraction; '' for a word that is to be deleted.

    A contraction such as 'cannot' that equals its joined words, 'can' and 'not', is corrected word
    by word.
    """
    form = _notes(cells).get(_CORRECT, cells[1])
    first, _, last = cells[0].partition("-")
    numbers = range(max(number_of(first), 0), number_of(last) + 1)
    words = [word for word in rows if number_of(word[0]) in numbers]
    if form == "".join(word[1] for word in words):
        return "".join(_correct_form(word, rows) for word in words)
    return "" if form == "_" else form


def _notes(cells: Sequence[str]) -> dict[str, str]:
    """Return the notes in the last column of a word as a dict: {'SpaceAfter': 'No'}."""
    return dict(note.partition("=")[::2] for note in cells[-1].split("|"))


def is_tight(cells: Sequence[str]) -> bool:
    """Tell whether no space follows a word."""
    return _NO_SPACE in cells[-1].split("|")


def with_space_note(notes: str, *, tight: bool) -> str:
    """Return the notes of a word with SpaceAfter=No added if `tight`, else removed."""
    kept = [note for note in notes.split("|") if note not in ("_", _NO_SPACE)]
    if tight:
        kept.append(_NO_SPACE)
    return "|".join(kept) or "_"
