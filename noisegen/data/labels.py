"""Labels of clean tokens, transferred to noisy tokens."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from noisegen.data.lines import read_parts
from noisegen.data.tables import undamaged_lines
from noisegen.errors import UsageError

# For each noisy token, the index of the clean token it was made from; None for an added token
Owners = Sequence[int | None]
Kind = tuple[str, str]  # a tag without its letter: the text before the letter and after it
Mark = tuple[str, Kind]  # ("B", ("", "-PER")) for B-PER, ("B", ("PER-", "")) for PER-B

_UNMARKED: Mark = ("", ("", ""))  # mark of O
# Letters of tags: B begins an entity, I and M continue it, E and L end it, S and U are a whole one
_LETTERS = frozenset("BIMELSU")
_ENDS = (("E", "S"), ("L", "U"))  # per scheme, the letters of a last and of a lone token
_FORM = "()([BIMELSU])(-.*)"  # form of tags such as B-PER
# Other forms: a letter alone, B_PER, PER-B and PER_B
_OTHER_FORMS = ("()([BIMELSU])()", "()([BIMELSU])(_.+)", "(.+-)([BIMELSU])()", "(.+_)([BIMELSU])()")
_CLOSED = ("", "E", "L", "S", "U")  # letters after which no entity continues


def carried(labels: Sequence[Any], owners: Owners, seen: Collection[str] = ()) -> list[Any]:
    """Return the label of each noisy token: its clean token's label, or O for an added token.

    A merged token has the label of its first clean token. The noisy tokens of an entity are tagged
    anew in the scheme of the sentence: IOB1, IOB2, IO, BIOES, BILOU or BMES. `seen` has the letters
    of the tags of the whole column, since a sentence may lack some of them.
    """
    made = ["O" if owner is None else labels[owner] for owner in owners]
    known = _marks(labels, seen)
    if not known or [*owners] == [*range(len(labels))]:
        return made
    marks = [known.get(label, _UNMARKED) for label in labels]
    starts = [*_starts(marks), None]
    scheme = _Scheme.of(marks, seen)
    begin, kind_before = 0, None
    for start, run in groupby([None if owner is None else starts[owner] for owner in owners]):
        kind, end = None, begin + len([*run])
        if start is not None:
            letter, kind = marks[start]
            before, after = kind
            letters = scheme.letters(letter, end - begin, follows=kind == kind_before)
            clean = range(start, (owners[end - 1] or 0) + 1)
            is_whole = starts[clean.stop] != start and [*owners[begin:end]] == [*clean]
            if not (scheme.end and is_whole):
                made[begin:end] = [before + letter + after for letter in letters]
        begin, kind_before = end, kind
    return made


def tag_letters(labels: Iterable[Any]) -> str:
    """Return the letters of the tags among the labels of a column: 'BI' for B-PER, I-PER and O."""
    return "".join(sorted({letter for letter, _ in _marks([*labels], ()).values()}))


def scheme_name(letters: Collection[str]) -> str:
    """Return the name of the scheme whose tags have these letters; '' for plain labels.

    IOB1 and IOB2 have the same letters.
    """
    if {"L", "U"} & {*letters}:
        return "BILOU"
    if {"E", "S"} & {*letters}:
        return "BMES" if "M" in letters else "BIOES"
    return "IOB1 or IOB2" if "B" in letters else "IO" if "I" in letters else ""


def tags_like(label: str) -> list[str]:
    """Return the tags of all letters with the type of a tag: B-x, I-x, ...; [] for other labels."""
    _, (before, after) = _marks([label], ()).get(label, _UNMARKED)
    return [before + letter + after for letter in sorted(_LETTERS)] if before or after else []


def _marks(labels: Sequence[Any], seen: Collection[str]) -> dict[Any, Mark]:
    """Return {tag: its mark} for the tags among labels; other labels, and O, are left out.

    Tags are B-x and I-x. If all labels are tags or O, other letters count too, and so do letters
    alone and the forms B_x, x-B and x_B if there is a B or I among the letters or in `seen`.
    """
    texts = {label for label in labels if isinstance(label, str)} - {"O"}
    usual = _marks_of(_FORM, texts)
    if usual and len(usual) < len(texts):
        return {text: mark for text, mark in usual.items() if mark[0] in ("B", "I")}
    return usual or _other_marks(texts, seen)


def _other_marks(texts: Collection[str], seen: Collection[str]) -> dict[Any, Mark]:
    """Return {tag: its mark} for tags that all have one of the other forms; {} for other labels."""
    for marks in (_marks_of(form, texts) for form in _OTHER_FORMS):
        letters = {letter for letter, _ in marks.values()}
        if len(marks) == len(texts) and {"B", "I"} & {*letters, *seen}:
            return marks
    return {}


def _marks_of(form: str, texts: Collection[str]) -> dict[Any, Mark]:
    """Return {tag: its mark} for the texts that have a form of tags."""
    found = ((text, re.fullmatch(form, text, re.DOTALL)) for text in texts)
    return {text: (match[2], (match[1], match[3])) for text, match in found if match}


def _starts(marks: Sequence[Mark]) -> list[int | None]:
    """Return the index of the first token of each token's entity; None outside of all entities."""
    starts: list[int | None] = []
    start, before = None, _UNMARKED
    for at, mark in enumerate(marks):
        if mark == _UNMARKED:
            start = None
        elif mark[0] not in "IMEL" or before[0] in _CLOSED or mark[1] != before[1]:
            start = at
        starts.append(start)
        before = mark
    return starts


@dataclass(frozen=True)
class _Scheme:
    """Letters with which a sentence tags its entities.

    `inside` continues an entity. `end` is its last letter and `lone` the letter of an entity of one
    token; both are '' in IOB. `may_begin` tells whether B is used, `is_iob1` whether B is used only
    after an entity of the same type.
    """

    inside: str
    end: str
    lone: str
    may_begin: bool
    is_iob1: bool

    @classmethod
    def of(cls, marks: Sequence[Mark], seen: Collection[str]) -> "_Scheme":
        """Return the scheme of a sentence with these marks."""
        letters = {letter for letter, _ in marks}
        inside = "M" if "M" in letters or ("M" in seen and "I" not in letters) else "I"
        end, lone = next((ends for ends in _ENDS if letters & {*ends}), ("", ""))
        before = [_UNMARKED, *marks]
        is_iob1 = all(
            mark[0] != "B" or (former[0] and former[1] == mark[1])
            for former, mark in zip(before, marks, strict=False)
        )
        return cls(inside, end, lone, "B" in letters or "B" in seen, is_iob1)

    def letters(self, first: str, count: int, *, follows: bool) -> list[str]:
        """Return the letters of an entity of `count` noisy tokens.

        `first` is the letter of its first clean token; `follows` tells whether an entity of the
        same type comes right before it.
        """
        if self.end:
            inner = [self.inside] * (count - 2)
            return [self.lone] if count == 1 else ["B", *inner, self.end]
        if first == "B" and self.is_iob1 and not follows:
            first = self.inside
        elif follows and self.may_begin:
            first = "B"
        return [first, *[self.inside] * (count - 1)]


def carried_forms(forms: Sequence[str], owners: Owners) -> list[str]:
    """Return the normal form of each noisy word by the rules of MultiLexNorm.

    The first part of a split word has the normal form of the word, the other parts have ''. A word
    merged from several has their normal forms, joined by a space.
    """
    made = [""] * len(owners)
    for clean, noisy in units(owners, len(forms)):
        made[noisy.start] = " ".join(filter(None, (forms[number] for number in clean)))
    return made


def units(owners: Owners, count: int) -> list[tuple[range, range]]:
    """Return pairs (range of clean tokens, range of noisy tokens made from them) for a sentence.

    `count` is the count of clean tokens. Each range has one token, unless a token was split into
    several noisy ones, or several clean ones were merged. A deleted token is in the range of the
    clean token before it, or in the first range.
    """
    if not owners:
        return []
    starts = [at for at, owner in enumerate(owners) if at and owner != owners[at - 1]]
    clean = pairwise([0, *(owners[at] or 0 for at in starts), count])
    noisy = pairwise([0, *starts, len(owners)])
    return [(range(*ours), range(*theirs)) for ours, theirs in zip(clean, noisy, strict=True)]


def given_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return the class names that the user gave: a list, or one text.

    The text has names with commas between them, or is the path of a file with a name per line.
    Raises UsageError for an empty or repeated name, and SourceError for a file that cannot be read.
    """
    found: Sequence[str | None] = given
    if len(given) == 1:
        text = given[0]
        is_path = "," not in text
        found = [*undamaged_lines(read_parts(text), text)] if is_path else text.split(",")
    names = tuple((name or "").strip() for name in found)
    for number, name in enumerate(names):
        if not name or name in names[:number]:
            problem = f"{name!r} is repeated" if name else "is empty"
            raise UsageError(f"--label-names: name {number} {problem}; numbers begin at 0")
    return names
