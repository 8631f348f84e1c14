"""Sentences with a name altered: another of the same kind, from the other sentences of the set."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from noisegen.draws import Draws
from noisegen.evaluation.alterations import Change
from noisegen.evaluation.altered_numbers import DAYS, MONTHS
from noisegen.evaluation.altering_words import words

LABELS = ("PERSON", "GPE", "LOC", "ORG", "NORP", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART")
WORDS_MAX = 3  # names of as many words or more are of one length
_TAGS = ("NNP", "NNPS")
_SAME = (  # names of one thing that share no letters to tell by
    ("us", "usa", "america", "unitedstates", "unitedstatesofamerica"),
    ("uk", "britain", "greatbritain", "unitedkingdom", "england"),
    ("ussr", "sovietunion", "russia"),
    ("holland", "netherlands"),
    ("american", "us"),
    ("british", "english"),
    ("eu", "europeanunion", "europe"),
)
_NO_NAMES = frozenset([*words("function_words", "capital"), *DAYS, *MONTHS])
_RUN = re.compile(r"(?<![\w.'’-])[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*(?![\w-])")
_BEGINS = re.compile(r"(?:^|[.!?:;\"“”(\[]\s*)$")
_PART = re.compile(
    r"[^\W\d_][^\W\d_.'’]*\.?(?:[^\W\d_]\.)*|[-&]"
)  # of a name: a word, initials, a joint
_PLACED = ("in", "at", "from", "to", "near")


class Name(NamedTuple):
    """A name in a text: characters [start, stop), and what may take its place (`key`)."""

    start: int
    stop: int
    key: tuple[object, ...]


@dataclass(frozen=True)
class Names:
    """The names of a set of texts: of each text, and by their key."""

    texts: Sequence[str]
    rows: list[list[Name]]
    pool: dict[tuple[object, ...], list[str]]

    @classmethod
    def of(cls, texts: Sequence[str], documents: Sequence[Any] | None) -> "Names":
        """Find the names: those that spaCy sees, else runs of capitalised words."""
        if documents is None:
            rows = [list(_runs(text)) for text in texts]
        else:
            rows = [list(_entities(document)) for document in documents]
        pool: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for text, row in zip(texts, rows, strict=True):
            for name in row:
                pool[name.key].add(text[name.start : name.stop])
        return cls(texts, rows, {key: sorted(found) for key, found in pool.items()})

    def altered(self, row: int, draws: Draws) -> str | None:
        """Return a text with one of its names replaced wherever it stands; None if there is none.

        What takes its place is of the same kind and form, and not in the text already.
        """
        text = self.texts[row]
        if not self.rows[row]:
            return None
        name = draws.pick(self.rows[row])
        old = text[name.start : name.stop]
        known = _letters(text)
        others = [
            other
            for other in self.pool[name.key]
            if not _is_same(_letters(old), _letters(other)) and _letters(other) not in known
        ]
        if not others:
            return None
        new, places = draws.pick(others), list(re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", text))
        for place in reversed(places):
            text = Change(*place.span(), new).applied(text)
        return text


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _is_same(one: str, other: str) -> bool:
    """Tell whether two names, as their letters, may mean the same."""
    if one in other or other in one:
        return True
    return any(one in group and other in group for group in _SAME)


def _entities(document: Any) -> Iterator[Name]:
    """Yield what spaCy takes for names, without "the" before and "'s" behind."""
    if document.text.isupper():
        return
    for entity in document.ents:
        tokens = [token for token in entity if token.text not in ("'s", "’s", "'", "’")]
        has_the = bool(tokens) and tokens[0].lower_ == "the"
        tokens = tokens[1:] if has_the else tokens
        if entity.label_ not in LABELS or not tokens or not _is_name(tokens, entity.label_):
            continue
        before = document[tokens[0].i - 1].lower_ if tokens[0].i else ""
        form = tokens[-1].tag_ + ("" if tokens[-1].dep_ not in ("amod", "compound") else "+")
        has_the = has_the or before == "the"
        key = (entity.label_, min(len(tokens), WORDS_MAX), form, has_the)
        yield Name(tokens[0].idx, tokens[-1].idx + len(tokens[-1]), key)


def _is_name(tokens: Sequence[Any], label: str) -> bool:
    """Tell whether words look like a name: capitals, and a tag of names (of peoples: or adjective).

    Neighbours without a gap, so that what is replaced is what was seen.
    """
    last = tokens[-1]
    whole = last.idx + len(last) - tokens[0].idx == sum(len(t.text_with_ws) for t in tokens) - len(
        last.whitespace_
    )
    tags = (*_TAGS, "JJ") if label == "NORP" else _TAGS
    plain = all(_PART.fullmatch(token.text) for token in tokens)
    capital = tokens[0].text[0].isupper()
    return whole and plain and capital and last.tag_ in tags and tokens[0].text not in _NO_NAMES


def _runs(text: str) -> Iterator[Name]:
    """Yield runs of capitalised words that do not open a sentence; for want of a parser.

    What may replace them stands after a like word: "in", "the", or another.
    """
    if sum(mark.isupper() for mark in text) > len(text) / 3:
        return
    for match in _RUN.finditer(text):
        parts = match[0].split()
        before = text[: match.start()].rstrip()
        if _BEGINS.search(text[: match.start()]) or not _NO_NAMES.isdisjoint(parts):
            continue
        word = before.rsplit(None, 1)[-1].lower() if before else ""
        kind = "place" if word in _PLACED else "the" if word == "the" else ""
        yield Name(*match.span(), (min(len(parts), WORDS_MAX), kind, match[0].endswith("s")))
