"""Labels of clean tokens, transferred to noisy tokens."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

# For each noisy token, the index of the clean token it was made from; None for an added token
Owners = Sequence[int | None]
Mark = tuple[str, str]  # letter and rest of a tag: ("B", "-PER") for B-PER; _UNMARKED for O

_UNMARKED: Mark = ("", "")
# Letters of tags: B begins an entity, I and M continue it, E and L end it, S and U are a whole one
_LETTERS = frozenset("BIMELSU")
_ENDS = (("E", "S"), ("L", "U"))  # per scheme, the letters of a last and of a lone token
_CLOSED = ("", "E", "L", "S", "U")  # letters after which no entity continues


def carried(labels: Sequence[Any], owners: Owners, seen: Collection[str] = ()) -> list[Any]:
    """Return the label of each noisy token: its clean token's label, or O for an added token.

    A merged token has the label of its first clean token. The noisy tokens of an entity are tagged
    anew in the scheme of the sentence: IOB1, IOB2, IO, BIOES, BILOU or BMES. `seen` has the letters
    of the tags of the whole column, since a sentence may lack some of them.
    """
    made = ["O" if owner is None else labels[owner] for owner in owners]
    marks = _marks(labels, seen)
    if [*owners] == [*range(len(labels))] or not any(letter for letter, _ in marks):
        return made
    entities = _entities(marks)
    scheme = _Scheme.of(marks, seen)
    begin, before = 0, None
    for entity, run in groupby(None if owner is None else entities[owner] for owner in owners):
        end = begin + len([*run])
        if entity:
            letter, kind = marks[entity.start]
            if [*owners[begin:end]] != [*entity] or not scheme.end:
                follows = before is not None and marks[before.start][1] == kind
                letters = scheme.letters(letter, end - begin, follows=follows)
                made[begin:end] = [letter + kind for letter in letters]
        begin, before = end, entity
    return made


def tag_letters(labels: Iterable[Any]) -> str:
    """Return the letters of the tags among the labels of a column: 'BI' for B-PER, I-PER and O."""
    return "".join(sorted({letter for letter, _ in _marks([*labels], ())}))


def scheme_name(letters: Collection[str]) -> str:
    """Return the name of the scheme whose tags have these letters; '' for plain labels."""
    if {"L", "U"} & {*letters}:
        return "BILOU"
    if {"E", "S"} & {*letters}:
        return "BMES" if "M" in letters else "BIOES"
    return "IOB" if "B" in letters else "IO" if "I" in letters else ""


def tags_like(label: str) -> list[str]:
    """Return the tags of all letters with the type of a tag: B-x, I-x, ...; [] for other labels."""
    _, kind = _marks([label], ())[0]
    return [letter + kind for letter in sorted(_LETTERS)] if kind else []


def _marks(labels: Sequence[Any], seen: Collection[str]) -> list[Mark]:
    """Return the mark of each label; _UNMARKED for O and for labels that are no tags.

    Tags are B-x and I-x. If all labels are tags or O, other letters count too, and so do letters
    alone if there is a B or I among the letters or in `seen`.
    """
    texts = {label for label in labels if isinstance(label, str)} - {"O"}
    marks: dict[Any, Mark] = {}
    if texts <= _LETTERS:
        if {"B", "I"} & {*texts, *seen}:
            marks = {text: (text, "") for text in texts}
    else:
        are_tags = all(text[0:1] in _LETTERS and text[1:2] == "-" for text in texts)
        known = _LETTERS if are_tags else ("B", "I")
        marks = {text: (text[0], text[1:]) for text in texts if text[1:2] == "-"}
        marks = {text: mark for text, mark in marks.items() if mark[0] in known}
    return [
        marks.get(label, _UNMARKED) if isinstance(label, str) else _UNMARKED for label in labels
    ]


def _entities(marks: Sequence[Mark]) -> list[range | None]:
    """Return the range of the tokens of each token's entity; None for a token outside of all."""
    starts: list[int | None] = []
    for at, (letter, kind) in enumerate(marks):
        before, kind_before = marks[at - 1] if at else _UNMARKED
        continues = letter in "IMEL" and before not in _CLOSED and kind == kind_before
        starts.append((starts[-1] if continues else at) if letter else None)
    entities: list[range | None] = []
    for start, run in groupby(starts):
        count = len([*run])
        entities += [None if start is None else range(start, start + count)] * count
    return entities


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
