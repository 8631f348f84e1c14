"""Replace a name in a sentence by a name of the same kind from another sentence."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from noisegen.evaluation.alterations import (
    Alteration,
    apply,
    neighbour,
    replacements,
    words,
)
from noisegen.noising.rng import Draws

LABELS = ("PERSON", "GPE", "LOC", "ORG", "NORP", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART")
WORDS_MAX = 3  # names of three or more words all have this word count in their keys
_NAME_TAGS = ("NNP", "NNPS")
_GENITIVES = ("'s", "’s", "'", "’")
# Each set holds names of one thing, such as UK and Britain, in the form that `_letters` returns.
_SYNONYMS = [{name, *others.split()} for name, others in replacements("same").items()]
_NO_NAMES = frozenset(
    words("function_words", "capital") + words("number_words", "day", "long_month", "short_month")
)
_CAPITALISED_RUN = re.compile(r"(?<![\w.'’-])[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*(?![\w-])")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\"“”(\[]\s*)$")
# A token that a name may contain: a word, initials, a hyphen or an ampersand.
_NAME_PART = re.compile(r"[^\W\d_][^\W\d_.'’]*\.?(?:[^\W\d_]\.)*|[-&]")
_PLACE_PREPOSITIONS = ("in", "at", "from", "to", "near")


class Name(NamedTuple):
    """Name at the characters [start, stop) of a text.

    `key` describes the form of the name. Names with equal keys may replace each other.
    """

    start: int
    stop: int
    key: tuple[object, ...]


@dataclass(frozen=True)
class Names:
    """Names found in `texts`.

    `rows[i]` are the names in `texts[i]`. `pool` maps each key of a name to the distinct names,
    from all texts, that have this key.
    """

    texts: Sequence[str]
    rows: list[list[Name]]
    pool: dict[tuple[object, ...], list[str]]

    @classmethod
    def of(cls, texts: Sequence[str], documents: Sequence[Any] | None) -> "Names":
        """Find the names in texts; `documents` are the texts as parsed by spaCy.

        Names are the entities that spaCy marks. If `documents` is None, names are runs of
        capitalised words.
        """
        if documents is None:
            rows = [list(_capitalised_runs(text)) for text in texts]
        else:
            rows = [list(_entities(document)) for document in documents]
        pool: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for text, row in zip(texts, rows, strict=True):
            for name in row:
                pool[name.key].add(text[name.start : name.stop])
        return cls(texts, rows, {key: sorted(known) for key, known in pool.items()})

    def altered(self, row: int, draws: Draws) -> str | None:
        """Return the text `texts[row]` with one of its names replaced wherever it occurs.

        The name and its replacement are drawn; both have the same key. Returns None if the text has
        no name, or if no other name fits.
        """
        text, names = self.texts[row], self.rows[row]
        if not names:
            return None
        name = draws.pick(names)
        old = text[name.start : name.stop]
        others = _exchangeable(old, text, self.pool[name.key])
        if not others:
            return None
        new = draws.pick(others)
        places = re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", text)
        return apply(text, [Alteration(*place.span(), new) for place in places])


def _exchangeable(old: str, text: str, candidates: Sequence[str]) -> list[str]:
    """Return the candidates that may replace the name `old` in a text.

    A candidate must not occur in the text, contain the old name, or name the same thing.
    """
    old_letters, text_letters = _letters(old), _letters(text)
    synonyms = {word for group in _SYNONYMS if old_letters in group for word in group}
    others = []
    for candidate in candidates:
        letters = _letters(candidate)
        if old_letters in letters or letters in text_letters or letters in synonyms:
            continue
        others.append(candidate)
    return others


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case and without spaces."""
    return re.sub(r"[\W_]", "", text).lower()


def _entities(document: Any) -> Iterator[Name]:
    """Yield the entities of a spaCy document that look like names.

    A document that is all upper-case has no names.
    """
    if document.text.isupper():
        return
    for entity in document.ents:
        name = _name_of(entity)
        if name is not None:
            yield name


def _name_of(entity: Any) -> Name | None:
    """Convert a spaCy entity to a Name; return None if the entity does not look like a name.

    A leading "the" and a trailing "'s" are cut off. The key of the name holds the label of the
    entity, the number of words, the grammatical form of the last word, and whether "the" comes
    before.
    """
    tokens = [token for token in entity if token.text not in _GENITIVES]
    has_the = bool(tokens) and tokens[0].lower_ == "the"
    if has_the:
        tokens = tokens[1:]
    if not _is_name(tokens, entity.label_):
        return None
    first, last = tokens[0], tokens[-1]
    form = last.tag_ + ("+" if last.dep_ in ("amod", "compound") else "")
    has_the = has_the or neighbour(first, -1) == "the"
    key = (entity.label_, min(len(tokens), WORDS_MAX), form, has_the)
    return Name(first.idx, last.idx + len(last), key)


def _is_name(tokens: Sequence[Any], label: str) -> bool:
    """Return whether the tokens of an entity with this label form a name that can be replaced.

    The first token must be capitalised. The last token must be tagged as a proper noun (or, in
    names of peoples, as an adjective). The tokens must follow each other in the document, so that
    the name is one slice of the text.
    """
    if label not in LABELS or not tokens:
        return False
    first, last = tokens[0], tokens[-1]
    is_tagged = last.tag_ in _NAME_TAGS or (last.tag_ == "JJ" and label == "NORP")
    is_adjacent = last.i - first.i == len(tokens) - 1
    is_capital = first.text[0].isupper() and first.text not in _NO_NAMES
    has_plain_parts = all(_NAME_PART.fullmatch(token.text) for token in tokens)
    return is_tagged and is_adjacent and is_capital and has_plain_parts


def _capitalised_runs(text: str) -> Iterator[Name]:
    """Yield runs of capitalised words as names, for texts without a parse.

    A run at the beginning of a sentence is no name. The key holds the number of words, what comes
    before them ('place' for a word such as "in", 'the', or ''), and whether they end in s. A text
    has no names if more than a third of it is upper-case.
    """
    if sum(character.isupper() for character in text) > len(text) / 3:
        return
    for match in _CAPITALISED_RUN.finditer(text):
        parts = match[0].split()
        before = text[: match.start()]
        if _SENTENCE_START.search(before) or not _NO_NAMES.isdisjoint(parts):
            continue
        previous = before.rsplit(None, 1)[-1:]
        if previous and previous[0].lower() in _PLACE_PREPOSITIONS:
            kind = "place"
        else:
            kind = "the" if previous and previous[0].lower() == "the" else ""
        yield Name(*match.span(), (min(len(parts), WORDS_MAX), kind, match[0].endswith("s")))
