"""Alter one thing in a sentence: a number, a name, or the statement.

A number keeps its magnitude and format, a name its kind. A statement is negated, loses its "not",
or gets an opposite or another modal verb: by spaCy's parse (`statement_changes`), else by words
alone (`plain_statement_changes`), which finds fewer. Questions are not negated: "Is he not here?"
asks the same as "Is he here?".
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from noisegen.noising.rng import Draws
from noisegen.text.resources import rows_of

DATA = Path(__file__).parent / "data"
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
# Words that do not sound as they are spelled: "an hour", "an 80", "a union", "a one-way street".
_VOWEL = re.compile(
    r"(?i)(?:hour|honest|honou?r|heir|8|11\b|18\b|18(?:,\d{3})+\b|[aei]|o(?!ne\b|nce\b)"
    r"|u(?!ni[^mn]|s[aeu]|k\b|sa\b|ti|to|ra|ro|gan|kr))"
)


class Alteration(NamedTuple):
    """A replacement of the characters [start, stop) of a text by `new`."""

    start: int
    stop: int
    new: str

    def applied(self, text: str) -> str:
        """Return the altered text; an article before the change becomes "a" or "an" as needed."""
        before = text[: self.start]
        article = _ARTICLE.search(before)
        if article and self.new[:1].isalnum():
            fitting = article[1][0] + ("n" if _VOWEL.match(self.new) else "")
            fitting = fitting.upper() if article[1] == "AN" else fitting
            before = before[: article.start()] + fitting + " "
        return before + self.new + text[self.stop :]


class Opposite(NamedTuple):
    """A word's opposite for a part of speech, and neighbours that give the word another sense."""

    word: str
    tag: str  # universal; of a verb the Penn tag, VB also for VBP
    not_before: frozenset[str]
    not_after: frozenset[str]


@cache
def opposites() -> dict[str, list[Opposite]]:
    """Return the opposites of every word of the list, in lower case."""
    known: dict[str, list[Opposite]] = defaultdict(list)
    for word, other, tag, *limits in _rows("opposites"):
        before, after, *_ = (frozenset(limit.split()) for limit in (*limits, "", ""))
        known[word].append(Opposite(other, tag, before, after))
    return dict(known)


def words(name: str, *kinds: str) -> tuple[str, ...]:
    """Return the words of some kinds of a list, in its order."""
    return tuple(word for kind in kinds for word, theirs in _rows(name) if theirs == kind)


def instead(kind: str) -> dict[str, str]:
    """Return the replacement of each word of a kind."""
    return {word: other for word, theirs, other in _rows("replacements") if theirs == kind}


@cache
def _rows(name: str) -> list[list[str]]:
    return rows_of(DATA / f"{name}.tsv")


_COUNTED = re.compile(r"[\s-]?\w")
Rewrite = Callable[[re.Match[str], Draws], str | None]  # of group 1 of the match


def number_changes(text: str, draws: Draws, lang: str = "en") -> list[Alteration]:
    """Return one change for each number of the text, in order; of overlaps the first rule wins.

    A number that the text contains is not put in twice: "5 to 7" does not become "5 to 5". In
    languages other than English only figures change: words and dates differ.
    """
    changes: list[Alteration] = []
    taken: list[tuple[int, int]] = []
    for number, (expression, rewrite, only_english) in enumerate(_number_rules()):
        if only_english and lang != "en":
            continue
        for match in expression.finditer(text):
            start, stop = match.span(1)
            if any(start < end and begin < stop for begin, end in taken):
                continue
            taken.append((start, stop))
            new = rewrite(match, draws.fork(f"{number}:{start}"))
            if new is not None and not re.search(rf"(?i)\b{re.escape(new)}\b", text):
                changes.append(Alteration(start, stop, new))
    return sorted(changes)


def _another(options: Iterable[int], old: int, draws: Draws) -> str:
    """Draw one of the numbers other than `old`."""
    return str(draws.pick([option for option in options if option != old]))


def _other(known: Sequence[str]) -> Rewrite:
    """Return a rewrite to another known word, with the same capitals."""

    def rewrite(match: re.Match[str], draws: Draws) -> str:
        old = match[1]
        new = draws.pick([word for word in known if word.lower() != old.lower()])
        return new.upper() if old.isupper() and len(old) > 1 else _capital_of(old, new)

    return rewrite


def _within(span: Callable[[int], range]) -> Rewrite:
    """Return a rewrite to another number of the span, with as many digits; others are kept."""

    def rewrite(match: re.Match[str], draws: Draws) -> str | None:
        old, numbers = match[1], span(int(match[1]))
        if int(old) not in numbers:
            return None
        alike = [number for number in numbers if len(str(number)) == len(old) or old[0] == "0"]
        return _in_script(_another(alike, int(old), draws).zfill(len(old)), old)

    return rewrite


def _years(old: int) -> range:
    """Return the years of the same century, at most thirty years away."""
    century = old // 100 * 100
    return range(max(century, old - 30), min(century + 99, old + 30) + 1)


def _ordinal(match: re.Match[str], draws: Draws) -> str | None:
    """Return another ordinal in figures, with its ending; one up to 31 stays a day."""
    digits = match[1][:-2]
    old, least = int(digits), 10 ** (len(digits) - 1)
    if not old:
        return None
    new = int(_another(range(least, min(10 * least - 1, 31 if old <= 31 else 99) + 1), old, draws))
    ending = "th" if new % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(new % 10, "th")
    return f"{new}{ending.upper() if match[1][-1].isupper() else ending}"


def _percent(match: re.Match[str], draws: Draws) -> str | None:
    """Return another percentage; 100 becomes a smaller one."""
    is_all = match[1] == "100"
    return _another(range(10, 100, 10), 100, draws) if is_all else _figures(match, draws)


def _figures(match: re.Match[str], draws: Draws) -> str | None:
    """Return other figures with the same zeros at both ends and the same punctuation.

    In a long number one digit of its first half changes. A single figure that counts the next word
    does not become 1 ("3 days"), and 1 is kept ("1 day").
    """
    digits = re.sub(r"\D", "", match[1])
    plain = "".join(str(int(digit)) for digit in digits)  # of any script
    core = plain.strip("0")
    counts = len(match[1]) == 1 and _COUNTED.match(match.string, match.end(1)) is not None
    if not core or (counts and core == "1"):
        return None
    if len(core) > 3:
        at = draws.below(len(core) // 2)
        new = core[:at] + _another(range(1, 10), int(core[at]), draws) + core[at + 1 :]
    else:
        numbers = range(10 ** (len(core) - 1), 10 ** len(core))
        options = (number for number in numbers if number % 10 and not (counts and number == 1))
        new = _another(options, int(core), draws)
    before, _, after = plain.partition(core)
    filled = iter(before + new + after)
    written = "".join(next(filled) if mark.isdigit() else mark for mark in match[1])
    return _in_script(written, digits)


def _in_script(text: str, like: str) -> str:
    """Return the text with its ASCII digits in the script of `like`."""
    zero = ord(like[0]) - int(like[0])
    return "".join(chr(zero + int(mark)) if mark.isdigit() else mark for mark in text)


_REWRITES: Mapping[str, Rewrite] = {
    "day_of_month": _within(lambda _: range(1, 29)),
    "hour": _within(lambda old: range(1, 13) if old < 13 else range(13, 24)),
    "year": _within(_years),
    "decade": _within(lambda old: range(old // 100 * 100, old // 100 * 100 + 100, 10)),
    "figure_ordinal": _ordinal,
    "percent": _percent,
    "figures": _figures,
}


@cache
def _number_rules() -> list[tuple[re.Pattern[str], Rewrite, bool]]:
    """Return patterns, the rewrite of their group 1, and whether they are for English only."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for word, kind in _rows("number_words"):
        kinds[kind].append(word)
    parts, rules = {kind: "|".join(members) for kind, members in kinds.items()}, []
    for lang, name, pattern, *_ in _rows("number_rules"):
        whole = re.sub(r"~(\w+)~", lambda match: parts[match[1]], pattern)
        if lang == "=":
            parts[name] = whole
        else:
            rewrite = _REWRITES.get(name) or _other(kinds[name])
            rules.append((re.compile(whole), rewrite, lang == "en"))
    return rules


LABELS = ("PERSON", "GPE", "LOC", "ORG", "NORP", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART")
WORDS_MAX = 3  # names of as many words or more are of one length
_TAGS = ("NNP", "NNPS")
_SAME = [{name, *others.split()} for name, others in instead("same").items()]
_NO_NAMES = frozenset(
    words("function_words", "capital") + words("number_words", "day", "long_month", "short_month")
)
_RUN = re.compile(r"(?<![\w.'’-])[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*(?![\w-])")
_BEGINS = re.compile(r"(?:^|[.!?:;\"“”(\[]\s*)$")
# Of a name: a word, initials, a joint.
_PART = re.compile(r"[^\W\d_][^\W\d_.'’]*\.?(?:[^\W\d_]\.)*|[-&]")
_PLACED = ("in", "at", "from", "to", "near")


class Name(NamedTuple):
    """A name in a text, characters [start, stop); names of one `key` may replace each other."""

    start: int
    stop: int
    key: tuple[object, ...]


@dataclass(frozen=True)
class Names:
    """The names in texts: in `rows` those of each text, in `pool` all of a key."""

    texts: Sequence[str]
    rows: list[list[Name]]
    pool: dict[tuple[object, ...], list[str]]

    @classmethod
    def of(cls, texts: Sequence[str], documents: Sequence[Any] | None) -> "Names":
        """Find names: spaCy's entities, or without documents runs of capitalised words."""
        names = map(_runs, texts) if documents is None else map(_entities, documents)
        rows = list(map(list, names))
        pool: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for text, row in zip(texts, rows, strict=True):
            for name in row:
                pool[name.key].add(text[name.start : name.stop])
        return cls(texts, rows, {key: sorted(known) for key, known in pool.items()})

    def altered(self, row: int, draws: Draws) -> str | None:
        """Return a text with one of its names replaced throughout; None if there is none.

        The other name is of the same kind and form, and does not occur in the text.
        """
        text, names = self.texts[row], self.rows[row]
        if not names:
            return None
        name = draws.pick(names)
        old = text[name.start : name.stop]
        own, known = _letters(old), _letters(text)
        same = {word for group in _SAME if own in group for word in group}
        others = [
            other for other in self.pool[name.key]
            if (letters := _letters(other)) not in same and letters not in known
            and own not in letters
        ]  # fmt: skip
        if not others:
            return None
        new = draws.pick(others)
        return apply(text, [
            Alteration(*match.span(), new)
            for match in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", text)
        ])  # fmt: skip


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _entities(document: Any) -> Iterator[Name]:
    """Yield spaCy's entities that look like names, without a leading "the" and a trailing "'s".

    They are capitalised, have a tag of names (or, for peoples, of adjectives), and are adjacent
    words, so that exactly the entity is replaced.
    """
    for entity in () if document.text.isupper() else document.ents:
        tokens = [token for token in entity if token.text not in ("'s", "’s", "'", "’")]
        has_the = bool(tokens) and tokens[0].lower_ == "the"
        tokens = tokens[1:] if has_the else tokens
        if entity.label_ not in LABELS or not tokens:
            continue
        first, last = tokens[0], tokens[-1]
        is_tagged = last.tag_ in _TAGS or (last.tag_ == "JJ" and entity.label_ == "NORP")
        is_whole = last.i - first.i == len(tokens) - 1
        is_capital = first.text[0].isupper() and first.text not in _NO_NAMES
        is_plain = all(_PART.fullmatch(token.text) for token in tokens)
        if is_tagged and is_whole and is_capital and is_plain:
            form = last.tag_ + ("+" if last.dep_ in ("amod", "compound") else "")
            has_the = has_the or _beside(first, -1) == "the"
            key = (entity.label_, min(len(tokens), WORDS_MAX), form, has_the)
            yield Name(first.idx, last.idx + len(last), key)


def _runs(text: str) -> Iterator[Name]:
    """Yield runs of capitalised words that do not begin a sentence, where there is no parser.

    Their key has the kind of the word before them: "in" and the like, "the", or another.
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


_SUBJECTS = ("nsubj", "nsubjpass", "expl", "csubj")
_NEGATIVE, _SHIFTED, _SET_PHRASES = (
    frozenset(words("function_words", kind)) for kind in ("negative", "shifting", "set_phrase")
)
_MODALS, _WITH_NOT = instead("modal"), instead("with_not")
_WITHOUT_NOT, _POSITIVE = instead("without_not"), instead("positive")
_NO_NOT = ("'d", "’d", "to")  # had or would
_CONTRACTED = ("'s", "’s", "'re", "’re", "'m", "’m")
_HELD_BY_NOT = _NEGATIVE | {"yet", "either", "until", "ever", "anymore"}  # odd without the "not"


def statement_changes(document: Any) -> list[tuple[Alteration, ...]]:
    """Return the ways to reverse what a parsed text states, each as changes to make together."""
    ways: list[tuple[Alteration, ...]] = []
    for sentence in document.sents:
        if not sentence.text.strip().endswith("?"):
            ways += filter(None, [_negation(sentence)])
        ways += [(change,) for change in (*_opposed(sentence), *_modals(sentence))]
    return ways


def apply(text: str, changes: Iterable[Alteration]) -> str:
    """Return the text with changes that do not overlap."""
    for change in sorted(changes, reverse=True):
        text = change.applied(text)
    return text


def _instead(token: Any, new: str) -> Alteration:
    return Alteration(token.idx, token.idx + len(token), new)


def _beside(token: Any, step: int) -> str:
    """Return the neighbour before (-1) or after (1) in lower case; '' at the edge of the text."""
    index = token.i + step
    return token.doc[index].lower_ if 0 <= index < len(token.doc) else ""


def _capital_of(old: str, new: str) -> str:
    """Return `new` with a capital where `old` begins with one."""
    return new.capitalize() if old[0].isupper() else new


def _negation(sentence: Any) -> tuple[Alteration, ...]:
    """Return the changes that negate the main verb or remove its "not"; () if neither is safe."""
    root = sentence.root
    if root.pos_ not in ("VERB", "AUX"):
        return ()
    if negations := [child for child in root.children if child.dep_ == "neg"]:
        return _unnegated(sentence, negations)
    # An adverb of the clause would take the "not" to itself.
    is_shifted = any(word.lower_ in _SHIFTED and word.dep_ != "prep" for word in root.children)
    if is_shifted or any(token.lower_ in _NEGATIVE for token in sentence):
        return ()
    subject = next((child for child in root.children if child.dep_ in _SUBJECTS), None)
    auxiliaries = [child for child in root.children if child.dep_ in ("aux", "auxpass")]
    if subject is None:
        change = None if auxiliaries else _forbidden(sentence, root)
        return (change,) if change else ()
    finite = auxiliaries[0] if auxiliaries else root
    if finite.i < subject.i or finite.tag_ in ("VBN", "VBG", "TO"):
        return ()
    joined = any(child.dep_ == "conj" and child.pos_ in ("VERB", "AUX") for child in root.children)
    if joined and finite is root:  # of two verbs joined by "and" only one would be negated
        return ()
    is_full = not auxiliaries and root.lemma_ != "be"
    change = _with_do(root, subject) if is_full else _with_not(finite)
    return (change,) if change else ()


def _with_not(finite: Any) -> Alteration | None:
    """Return the change that adds "not" to an auxiliary; None if that is not safe."""
    end, word, following = finite.idx + len(finite), finite.lower_, _beside(finite, 1)
    if following in _SHIFTED or following == "better" or following[:1] in ("'", "’"):
        return None
    if word in _NO_NOT or (finite.is_upper and len(finite) > 1):
        return None
    if word in _WITH_NOT:
        return _instead(finite, f" {_WITH_NOT[word]}")
    if finite.is_alpha or word in _CONTRACTED:
        return Alteration(end, end, "not" if word == "can" else " not")
    return None


def _with_do(root: Any, subject: Any) -> Alteration | None:
    """Return the change that negates a full verb: "often came" to "did not often come"."""
    do = {"VBD": "did", "VBZ": "does", "VBP": "do"}.get(root.tag_)
    if do is None or not root.is_lower or not root.is_alpha or root.lemma_ in _SET_PHRASES:
        return None
    if do == "do" and subject.lower_ in ("he", "she", "it", "this", "that"):
        do = "does"
    before = root.nbor(-1) if root.i else root
    start = before.idx if before.dep_ == "advmod" and before.i > subject.i else root.idx
    between = root.doc.text[start : root.idx]
    return Alteration(start, root.idx + len(root), f"{do} not {between}{root.lemma_}")


def _forbidden(sentence: Any, root: Any) -> Alteration | None:
    """Return the change that negates an order: "Open it." to "Do not open it."."""
    before = sentence.doc[sentence.start : root.i].text.lower()
    if root.tag_ != "VB" or before not in ("", "please") or root.lemma_ in _SET_PHRASES:
        return None
    return _instead(root, f"{_capital_of(root.text, 'do not')} {root.text.lower()}")


def _unnegated(sentence: Any, negations: list[Any]) -> tuple[Alteration, ...]:
    """Return the changes that remove "not", and "do" where the verb then stands alone."""
    word = negations[0]
    if len(negations) > 1 or word.lower_ not in ("not", "n't", "n’t") or word.i == sentence.start:
        return ()
    before, following = word.nbor(-1), _beside(word, 1)
    held = {token.lower_ for token in sentence} & _HELD_BY_NOT
    if following in _SHIFTED or held - {word.lower_} or before.lower_ == "ai":
        return ()
    if before.dep_ not in ("aux", "auxpass", "ROOT") or before.tag_ == "VBN":
        return ()
    if before.lower_ == "do" and before.dep_ == "aux" and following:
        verb = word.nbor()
        stop, full = verb.idx + 1, verb.text[0]
    else:
        stop, full = word.idx + len(word), _WITHOUT_NOT.get(before.lower_, before.text)
    return Alteration(before.idx, stop, _capital_of(before.text, full)), *(
        _instead(token, _capital_of(token.text, _POSITIVE[token.lower_]))
        for token in sentence if token.lower_ in _POSITIVE
    )  # fmt: skip


def _opposed(sentence: Any) -> Iterator[Alteration]:
    """Yield replacements of words by their opposites, unless neighbours give another sense."""
    present = {token.lower_ for token in sentence}
    for token in sentence:
        is_first = token.i == sentence.start
        if not (token.is_lower or (is_first and token.is_title)) or token.ent_type_:
            continue
        tags = token.pos_, "VB" if token.tag_ == "VBP" else token.tag_
        known = opposites().get(token.lower_, [])
        other = next((opposite for opposite in known if opposite.tag in tags), None)
        if other is None or other.word in present or token.dep_ == "neg":
            continue
        before, after = _beside(token, -1), _beside(token, 1)
        is_limited = (
            after in other.not_before or before in other.not_after or "-" in (before, after)
        )
        if is_limited or any(child.dep_ == "prt" for child in token.children):
            continue
        if other.word in _NEGATIVE and present & _NEGATIVE:  # negative twice
            continue
        yield _instead(token, other.word.capitalize() if token.is_title else other.word)


def _modals(sentence: Any) -> Iterator[Alteration]:
    """Yield replacements of modal verbs after the subject and without "not"."""
    for token in sentence:
        new = _MODALS.get(token.lower_) if token.tag_ == "MD" else None
        subjects = [child for child in token.head.children if child.dep_ in _SUBJECTS]
        if new is None or not subjects or subjects[0].i > token.i:
            continue
        following = _beside(token, 1)
        if following in ("not", "n't", "n’t", "have", "as", "well") or following in _SHIFTED:
            continue
        if new != "need not" or not sentence.text.strip().endswith("?"):
            joint = " " if token.text[0] in "'’" else ""
            yield _instead(token, joint + new)


_AUXILIARY = re.compile(r"(?<=[a-z]) (is|are|was|were|will|would|could|should|must)\b(?! not\b)")
_WORD = re.compile(r"(?<![\w'’-])[A-Za-z]+(?![\w'’-])")


def plain_statement_changes(text: str) -> list[tuple[Alteration, ...]]:
    """Return the ways to reverse what a text states that need no parser."""
    matches = list(_WORD.finditer(text))
    present = [match[0].lower() for match in matches]
    ways: list[tuple[Alteration, ...]] = []
    for before, match, after in zip(["", *present], matches, [*present[1:], ""], strict=False):
        known = opposites().get(match[0], [])
        if len({opposite.word for opposite in known}) != 1:
            continue
        if after not in known[0].not_before and before not in known[0].not_after:
            ways.append((Alteration(*match.span(), known[0].word),))
    auxiliaries = list(_AUXILIARY.finditer(text))
    asks = "?" in text or "n't" in text or "n’t" in text
    if len(auxiliaries) == 1 and not asks and not (_NEGATIVE | _SHIFTED).intersection(present):
        end = auxiliaries[0].end()
        ways.append((Alteration(end, end, " not"),))
    return ways
