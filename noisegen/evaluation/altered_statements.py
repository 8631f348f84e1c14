"""Reverse the statement of a sentence: negate it, remove "not", or replace a word by its opposite.

`statement_changes` takes a text that spaCy parsed. `plain_statement_changes` takes a text without a
parse and finds fewer changes. Questions are not negated: "Is he not here?" asks the same as "Is he
here?".
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from noisegen.evaluation.alterations import (
    Alteration,
    capital_like,
    neighbour,
    replacements,
    table,
    words,
)

Way = tuple[Alteration, ...]  # changes that reverse a statement if all of them are made
_SUBJECTS = ("nsubj", "nsubjpass", "expl", "csubj")
_AUXILIARIES = ("aux", "auxpass")
_NEGATIVE = frozenset(words("function_words", "negative"))
_SHIFTING = frozenset(words("function_words", "shifting"))
_SET_PHRASES = frozenset(words("function_words", "set_phrase"))
_MODALS, _WITH_NOT = replacements("modal"), replacements("with_not")
_WITHOUT_NOT, _POSITIVE = replacements("without_not"), replacements("positive")
_NOTS = ("not", "n't", "n’t")
_AMBIGUOUS = ("'d", "’d", "to")  # no "not" is added to these auxiliaries: 'd is had or would
_CONTRACTED = ("'s", "’s", "'re", "’re", "'m", "’m")
# Words that need the "not" of their sentence ("not yet"), so it is not removed.
_HELD_BY_NOT = _NEGATIVE | {"yet", "either", "until", "ever", "anymore"}
# A modal verb is not replaced before one of these words: "may as well", "may not".
_BLOCKING_MODALS = _SHIFTING.union(_NOTS, ("have", "as", "well"))
_DO_FORMS = {"VBD": "did", "VBZ": "does", "VBP": "do"}
_SINGULARS = ("he", "she", "it", "this", "that")


class Opposite(NamedTuple):
    """Opposite of a word that has the part of speech `tag`.

    The word has another sense before a word in `not_before` and after a word in `not_after`, so it
    is not replaced there.
    """

    word: str  # the opposite
    tag: str  # universal part of speech; for verbs the Penn tag (VB stands for VBP, too)
    not_before: frozenset[str]
    not_after: frozenset[str]


@cache
def opposites() -> dict[str, list[Opposite]]:
    """Return {lower-case word: its opposites, one per part of speech}, read from opposites.tsv."""
    known: dict[str, list[Opposite]] = defaultdict(list)
    for word, other, tag, *limits in table("opposites"):
        before, after, *_ = (frozenset(limit.split()) for limit in (*limits, "", ""))
        known[word].append(Opposite(other, tag, before, after))
    return dict(known)


def statement_changes(document: Any) -> list[Way]:
    """Return all ways to reverse one statement of a text that spaCy parsed."""
    ways: list[Way] = []
    for sentence in document.sents:
        negation = () if _is_question(sentence) else _negation(sentence)
        if negation:
            ways.append(negation)
        ways += [(change,) for change in (*_opposed(sentence), *_modals(sentence))]
    return ways


def _is_question(sentence: Any) -> bool:
    return bool(sentence.text.strip().endswith("?"))


def _replaced(token: Any, new: str) -> Alteration:
    return Alteration(token.idx, token.idx + len(token), new)


def _dependents(verb: Any, roles: Sequence[str]) -> list[Any]:
    """Return the direct dependents of a verb that have one of the dependency labels `roles`."""
    return [child for child in verb.children if child.dep_ in roles]


def _negation(sentence: Any) -> Way:
    """Return the changes that negate the main verb of a sentence, or that remove its "not".

    Returns () if the changed sentence might not say the opposite.
    """
    root = sentence.root
    if root.pos_ not in ("VERB", "AUX"):
        return ()
    negations = _dependents(root, ("neg",))
    if negations:
        return _without_not(sentence, negations)
    # In a sentence with an adverb such as "always", "not" would negate the adverb, not the verb.
    is_shifted = any(word.lower_ in _SHIFTING and word.dep_ != "prep" for word in root.children)
    if is_shifted or any(token.lower_ in _NEGATIVE for token in sentence):
        return ()
    change = _added_not(sentence)
    return (change,) if change else ()


def _added_not(sentence: Any) -> Alteration | None:
    """Return the change that negates the main verb of a sentence without a negation.

    Returns None if the changed sentence might not say the opposite.
    """
    root = sentence.root
    subjects, auxiliaries = _dependents(root, _SUBJECTS), _dependents(root, _AUXILIARIES)
    if not subjects:
        return None if auxiliaries else _negated_order(sentence, root)
    subject = subjects[0]
    finite = auxiliaries[0] if auxiliaries else root
    if finite.i < subject.i or finite.tag_ in ("VBN", "VBG", "TO"):
        return None
    if not auxiliaries and _is_joined(root):  # "not" would negate only one of the two verbs
        return None
    if auxiliaries or root.lemma_ == "be":
        return _auxiliary_with_not(finite)
    return _verb_with_do_not(root, subject)


def _is_joined(verb: Any) -> bool:
    """Return whether a verb is joined to a later verb, as in "came and went"."""
    return any(child.pos_ in ("VERB", "AUX") for child in _dependents(verb, ("conj",)))


def _auxiliary_with_not(finite: Any) -> Alteration | None:
    """Return the change that adds "not" to an auxiliary verb; None if "not" would not negate it."""
    word = finite.lower_
    if not _takes_not(finite):
        return None
    if word in _WITH_NOT:
        return _replaced(finite, f" {_WITH_NOT[word]}")
    if finite.is_alpha or word in _CONTRACTED:
        end = finite.idx + len(finite)
        return Alteration(end, end, "not" if word == "can" else " not")
    return None


def _takes_not(auxiliary: Any) -> bool:
    """Return whether a "not" after an auxiliary verb would negate the sentence.

    It would not if the auxiliary is ambiguous ("he'd") or in capitals, if an apostrophe follows, or
    if "not" would negate the next word instead of the verb ("had better").
    """
    following = neighbour(auxiliary, 1)
    if following in _SHIFTING or following == "better" or following[:1] in ("'", "’"):
        return False
    is_in_capitals = auxiliary.is_upper and len(auxiliary) > 1
    return auxiliary.lower_ not in _AMBIGUOUS and not is_in_capitals


def _verb_with_do_not(root: Any, subject: Any) -> Alteration | None:
    """Return the change that negates a verb without auxiliary: "came" to "did not come".

    An adverb before the verb stays there: "did not often come". Returns None if the verb belongs to
    a set phrase, has capitals, or has no form with "do".
    """
    do = _DO_FORMS.get(root.tag_)
    if do is None or not root.is_lower or not root.is_alpha or root.lemma_ in _SET_PHRASES:
        return None
    if do == "do" and subject.lower_ in _SINGULARS:
        do = "does"
    before = root.nbor(-1) if root.i else root
    start = before.idx if before.dep_ == "advmod" and before.i > subject.i else root.idx
    adverb = root.doc.text[start : root.idx]
    return Alteration(start, root.idx + len(root), f"{do} not {adverb}{root.lemma_}")


def _negated_order(sentence: Any, root: Any) -> Alteration | None:
    """Return the change that negates an order: "Open it." to "Do not open it.".

    Returns None if the sentence does not begin with the verb, or with "please" and the verb.
    """
    before = sentence.doc[sentence.start : root.i].text.lower()
    if root.tag_ != "VB" or before not in ("", "please") or root.lemma_ in _SET_PHRASES:
        return None
    return _replaced(root, f"{capital_like(root.text, 'do not')} {root.text.lower()}")


def _without_not(sentence: Any, negations: list[Any]) -> Way:
    """Return the changes that remove a sentence's only "not": "Do not open it" to "Open it".

    Words that need a "not", such as "any", are replaced as well. Returns () if the sentence would
    be wrong without "not", or would not say the opposite.
    """
    negation = negations[0]
    if len(negations) > 1 or not _is_removable(negation, sentence):
        return ()
    before = negation.nbor(-1)
    if before.lower_ == "do" and before.dep_ == "aux" and neighbour(negation, 1):
        verb = negation.nbor()
        stop, kept = verb.idx + 1, verb.text[0]
    else:
        stop, kept = negation.idx + len(negation), _WITHOUT_NOT.get(before.lower_, before.text)
    changes = [Alteration(before.idx, stop, capital_like(before.text, kept))]
    for token in sentence:
        if token.lower_ in _POSITIVE:
            changes.append(_replaced(token, capital_like(token.text, _POSITIVE[token.lower_])))
    return tuple(changes)


def _is_removable(negation: Any, sentence: Any) -> bool:
    """Return whether a sentence without the "not" in `negation` is correct and says the opposite.

    The "not" must follow the finite verb, and no other word may need it ("not only", "not yet").
    """
    if negation.lower_ not in _NOTS or negation.i == sentence.start:
        return False
    before, following = negation.nbor(-1), neighbour(negation, 1)
    others = {token.lower_ for token in sentence} - {negation.lower_}
    if following in _SHIFTING or others & _HELD_BY_NOT or before.lower_ == "ai":
        return False
    return before.dep_ in (*_AUXILIARIES, "ROOT") and before.tag_ != "VBN"


def _opposed(sentence: Any) -> Iterator[Alteration]:
    """Yield each replacement of a word by its opposite that reverses the sentence."""
    present = {token.lower_ for token in sentence}
    for token in sentence:
        if not _is_ordinary(token, sentence):
            continue
        other = _opposite(token)
        if other is not None and _is_safe(other, token, present):
            yield _replaced(token, other.word.capitalize() if token.is_title else other.word)


def _is_ordinary(token: Any, sentence: Any) -> bool:
    """Return whether a word may be replaced by its opposite.

    Names, negations and words in capitals may not. The first word of a sentence may be capitalised.
    """
    is_plain = token.is_lower or (token.i == sentence.start and token.is_title)
    return is_plain and not token.ent_type_ and token.dep_ != "neg"


def _opposite(token: Any) -> Opposite | None:
    """Return the opposite of a word in its part of speech; None if opposites.tsv has none."""
    tags = token.pos_, "VB" if token.tag_ == "VBP" else token.tag_
    known = opposites().get(token.lower_, [])
    return next((opposite for opposite in known if opposite.tag in tags), None)


def _is_safe(other: Opposite, token: Any, present: set[str]) -> bool:
    """Return whether replacing the word `token` by its opposite `other` reverses the sentence.

    It does not if the neighbours of `token` give it another sense, if the sentence already has the
    opposite, or if the opposite would be a second negation. `present` has the sentence's words.
    """
    before, after = neighbour(token, -1), neighbour(token, 1)
    if after in other.not_before or before in other.not_after or "-" in (before, after):
        return False
    if any(child.dep_ == "prt" for child in token.children):  # the verb has a particle: "give up"
        return False
    is_negative_twice = other.word in _NEGATIVE and present & _NEGATIVE
    return other.word not in present and not is_negative_twice


def _modals(sentence: Any) -> Iterator[Alteration]:
    """Yield the replacement of each modal verb that follows its subject and has no "not"."""
    for token in sentence:
        new = _MODALS.get(token.lower_) if token.tag_ == "MD" else None
        subjects = _dependents(token.head, _SUBJECTS)
        if new is None or not subjects or subjects[0].i > token.i:
            continue
        if neighbour(token, 1) in _BLOCKING_MODALS:
            continue
        if new != "need not" or not _is_question(sentence):
            space = " " if token.text[0] in "'’" else ""
            yield _replaced(token, space + new)


_AUXILIARY = re.compile(r"(?<=[a-z]) (is|are|was|were|will|would|could|should|must)\b(?! not\b)")
_WORD = re.compile(r"(?<![\w'’-])[A-Za-z]+(?![\w'’-])")


def plain_statement_changes(text: str) -> list[Way]:
    """Return all ways to reverse one statement of a text without a parse."""
    matches = list(_WORD.finditer(text))
    present = [match[0].lower() for match in matches]
    ways: list[Way] = []
    for before, match, after in zip(["", *present], matches, [*present[1:], ""], strict=False):
        known = opposites().get(match[0], [])
        if len({opposite.word for opposite in known}) != 1:
            continue
        if after not in known[0].not_before and before not in known[0].not_after:
            ways.append((Alteration(*match.span(), known[0].word),))
    auxiliaries = list(_AUXILIARY.finditer(text))
    if len(auxiliaries) == 1 and _is_positive_statement(text, present):
        end = auxiliaries[0].end()
        ways.append((Alteration(end, end, " not"),))
    return ways


def _is_positive_statement(text: str, present: Sequence[str]) -> bool:
    """Return whether a text is a statement to which "not" can be added.

    Such a text has no question mark, no negation, and no adverb that would be negated instead of
    the verb. `present` are the words of the text in lower case.
    """
    if "?" in text or "n't" in text or "n’t" in text:
        return False
    return (_NEGATIVE | _SHIFTING).isdisjoint(present)
