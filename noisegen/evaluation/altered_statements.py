"""Sentences with a statement turned round: negated or not, an opposite, another modal verb.

With spaCy's reading of the sentence (`changes`), else by words alone (`plain_changes`), which finds
less. Questions are not negated: "Is he not here?" asks what "Is he here?" asks.
"""

import re
from collections.abc import Iterator
from typing import Any

from noisegen.evaluation.alterations import Change
from noisegen.evaluation.altering_words import Opposite, opposites, words

_SUBJECTS = ("nsubj", "nsubjpass", "expl", "csubj")
_NEGATIVE, _SHIFTED, _SET_PHRASES = (
    frozenset(words("function_words", kind)) for kind in ("negative", "shifting", "set_phrase")
)
_MODALS = {
    "may": "will", "might": "will", "will": "might", "must": "might", "should": "need not",
    "'ll": "might", "’ll": "might",
}  # fmt: skip
_FULL = {"ca": "can", "wo": "will", "sha": "shall", "ai": ""}
_SOME = {"any": "some", "anything": "something", "anyone": "someone", "anybody": "somebody",
         "anywhere": "somewhere"}  # fmt: skip
_CONTRACTED = ("'s", "’s", "'re", "’re", "'m", "’m", "'ve", "’ve", "'d", "’d", "'ll", "’ll")
_OPENING = ("can", "could", "will", "would", "shall", "should", "may", "might", "must")


def changes(document: Any) -> list[tuple[Change, ...]]:
    """Return the ways to turn a parsed text round, each as changes to make together."""
    found: list[tuple[Change, ...]] = []
    for sentence in document.sents:
        if not sentence.text.strip().endswith("?"):
            found += _negations(sentence)
        found += [(change,) for change in _opposed(sentence)]
        found += [(change,) for change in _modals(sentence)]
    return found


def apply(text: str, made: tuple[Change, ...]) -> str:
    """Return the text with changes that do not overlap."""
    for change in sorted(made, reverse=True):
        text = change.applied(text)
    return text


# Negation.


def _negations(sentence: Any) -> Iterator[tuple[Change, ...]]:
    root = sentence.root
    if root.pos_ not in ("VERB", "AUX"):
        return
    negation = [child for child in root.children if child.dep_ == "neg"]
    if negation:
        yield from _unnegated(sentence, root, negation)
    elif not any(token.lower_ in _NEGATIVE for token in sentence) and not _is_shifted(root):
        yield from _negated(sentence, root)


def _is_shifted(root: Any) -> bool:
    """Tell whether an adverb of the clause would take the "not" to itself."""
    return any(token.lower_ in _SHIFTED and token.dep_ != "prep" for token in root.children)


def _negated(sentence: Any, root: Any) -> Iterator[tuple[Change, ...]]:
    """Put "not" behind the first auxiliary, else "do not" before the verb."""
    subject = next((child for child in root.children if child.dep_ in _SUBJECTS), None)
    auxiliaries = [child for child in root.children if child.dep_ in ("aux", "auxpass")]
    finite = auxiliaries[0] if auxiliaries else root
    if subject is None:
        yield from _forbidden(sentence, root, auxiliaries)
    elif finite.i < subject.i or finite.tag_ in ("VBN", "VBG", "TO") or not _is_own(root, finite):
        return
    elif auxiliaries or root.lemma_ == "be":
        yield from _with_not(finite)
    else:
        yield from _with_do(root, subject)


def _is_own(root: Any, finite: Any) -> bool:
    """Tell whether the verb stands alone: of two joined by "and" only one would be negated."""
    joined = any(child.dep_ == "conj" and child.pos_ in ("VERB", "AUX") for child in root.children)
    return not joined or finite is not root


def _with_not(finite: Any) -> Iterator[tuple[Change, ...]]:
    end = finite.idx + len(finite)
    following = finite.nbor().lower_ if finite.i + 1 < len(finite.doc) else ""
    if following in _SHIFTED or following == "better" or following[:1] in ("'", "’"):
        return
    if finite.lower_ in ("'d", "’d", "to") or (finite.is_upper and len(finite) > 1):
        return
    if finite.lower_ == "can":
        yield (Change(end, end, "not"),)
    elif finite.lower_ in ("'ll", "’ll"):
        yield (Change(finite.idx, end, " will not"),)
    elif finite.lower_ in ("'ve", "’ve"):
        yield (Change(finite.idx, end, " have not"),)
    elif finite.lower_ == "'s" or finite.is_alpha or finite.lower_ in _CONTRACTED:
        yield (Change(end, end, " not"),)


def _with_do(root: Any, subject: Any) -> Iterator[tuple[Change, ...]]:
    """Negate a full verb: "came" -> "did not come", "often came" -> "did not often come"."""
    do = {"VBD": "did", "VBZ": "does", "VBP": "do"}.get(root.tag_)
    if do is None or not root.is_lower or not root.is_alpha or root.lemma_ in _SET_PHRASES:
        return
    if do == "do" and subject.lower_ in ("he", "she", "it", "this", "that"):
        do = "does"
    before = root.nbor(-1) if root.i else root
    start = before.idx if before.dep_ == "advmod" and before.i > subject.i else root.idx
    between = root.doc.text[start : root.idx]
    yield (Change(start, root.idx + len(root), f"{do} not {between}{root.lemma_}"),)


def _forbidden(sentence: Any, root: Any, auxiliaries: list[Any]) -> Iterator[tuple[Change, ...]]:
    """Negate an order: "Open it." -> "Do not open it."."""
    opens = root.i == sentence.start or (
        root.i == sentence.start + 1 and sentence[0].lower_ == "please"
    )
    if auxiliaries or root.tag_ != "VB" or not opens or root.lemma_ in _SET_PHRASES:
        return
    do = "Do not" if root.text[0].isupper() else "do not"
    yield (Change(root.idx, root.idx + len(root), f"{do} {root.text.lower()}"),)


def _unnegated(sentence: Any, root: Any, negation: list[Any]) -> Iterator[tuple[Change, ...]]:
    """Take the "not" away; "do" goes with it where the verb then stands by itself."""
    word = negation[0]
    if len(negation) > 1 or word.lower_ not in ("not", "n't", "n’t") or word.i == sentence.start:
        return
    before = word.nbor(-1)
    following = word.nbor().lower_ if word.i + 1 < len(word.doc) else ""
    kept = {token.lower_ for token in sentence} & (_NEGATIVE | {"yet", "either", "until", "ever",
                                                                "anymore"})  # fmt: skip
    if following in _SHIFTED or kept - {word.lower_} or before.lower_ == "ai":
        return
    if before.dep_ not in ("aux", "auxpass", "ROOT") or before.tag_ == "VBN":
        return
    yield (_without(before, word, root), *_positive(sentence))


def _without(before: Any, word: Any, root: Any) -> Change:
    """Return the change that takes "not" or "n't" away, with the auxiliary where it is "do"."""
    if before.lower_ == "do" and before.dep_ == "aux" and word.i + 1 < len(word.doc):
        following = word.nbor()
        first = following.text[0]
        first = first.upper() if before.text[0].isupper() else first
        return Change(before.idx, following.idx + 1, first)
    full = _FULL.get(before.lower_, before.text)
    full = full.capitalize() if before.text[0].isupper() else full
    return Change(before.idx, word.idx + len(word), full)


def _positive(sentence: Any) -> Iterator[Change]:
    for token in sentence:
        if token.lower_ in _SOME:
            new = _SOME[token.lower_]
            new = new.capitalize() if token.text[0].isupper() else new
            yield Change(token.idx, token.idx + len(token), new)


# Opposites and modal verbs.


def _is_odd(new: str, present: set[str]) -> bool:
    """Tell whether the sentence has the word already, or would be negative twice."""
    return new in present or (new in _NEGATIVE and bool(present & _NEGATIVE))


def _opposed(sentence: Any) -> Iterator[Change]:
    present = {token.lower_ for token in sentence}
    for token in sentence:
        if token.text not in (token.lower_, token.lower_.capitalize()) or token.ent_type_:
            continue
        known = opposites().get(token.lower_, ())
        other = next((one for one in known if one.tag in (token.pos_, _penn(token))), None)
        if other is None or not _fits(token, other) or _is_odd(other.word, present):
            continue
        new = (
            other.word.capitalize() if token.is_title and token.i == sentence.start else other.word
        )
        if token.is_lower or token.i == sentence.start:
            yield Change(token.idx, token.idx + len(token), new)


def _penn(token: Any) -> str:
    return "VB" if token.tag_ == "VBP" else str(token.tag_)


def _fits(token: Any, other: Opposite) -> bool:
    """Tell whether the neighbours let the word be what the list says; no particle, no hyphen."""
    document = token.doc
    before = document[token.i - 1].lower_ if token.i else ""
    after = document[token.i + 1].lower_ if token.i + 1 < len(document) else ""
    particle = any(child.dep_ == "prt" for child in token.children)
    hyphen = "-" in (before, after)
    return not (
        particle or hyphen or after in other.not_before or before in other.not_after
        or (token.dep_ == "neg")
    )  # fmt: skip


def _modals(sentence: Any) -> Iterator[Change]:
    """Change how sure or bound something is; only behind the subject, and without "not"."""
    for token in sentence:
        new = _MODALS.get(token.lower_) if token.tag_ == "MD" else None
        subjects = [child for child in token.head.children if child.dep_ in _SUBJECTS]
        if new is None or not subjects or subjects[0].i > token.i:
            continue
        following = token.nbor().lower_ if token.i + 1 < len(token.doc) else ""
        if following in ("not", "n't", "n’t", "have", "as", "well") or following in _SHIFTED:
            continue
        if new == "need not" and sentence.text.strip().endswith("?"):
            continue
        lead = " " if token.lower_[0] in "'’" else ""
        yield Change(token.idx, token.idx + len(token), lead + new)


# Without a parser.

_AUXILIARY = re.compile(r"(?<=[a-z]) (is|are|was|were|will|would|could|should|must)\b(?! not\b)")
_WORD = re.compile(r"(?<![\w'’-])[A-Za-z]+(?![\w'’-])")


def plain_changes(text: str) -> list[tuple[Change, ...]]:
    """Return the ways to turn a text round that words alone show."""
    found: list[tuple[Change, ...]] = [(change,) for change in _plain_opposed(text)]
    present = {word.lower() for word in _WORD.findall(text)}
    auxiliaries = list(_AUXILIARY.finditer(text))
    asks = "?" in text or "n't" in text or "n’t" in text
    if len(auxiliaries) == 1 and not asks and not present & (_NEGATIVE | _SHIFTED):
        end = auxiliaries[0].end()
        found.append((Change(end, end, " not"),))
    return found


def _plain_opposed(text: str) -> Iterator[Change]:
    matches = list(_WORD.finditer(text))
    for place, match in enumerate(matches):
        known = opposites().get(match[0], ())
        if len({one.word for one in known}) != 1:
            continue
        before = matches[place - 1][0].lower() if place else ""
        after = matches[place + 1][0].lower() if place + 1 < len(matches) else ""
        if after not in known[0].not_before and before not in known[0].not_after:
            yield Change(*match.span(), known[0].word)
