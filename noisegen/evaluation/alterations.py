"""Sentences with one thing altered: a number, a name, or what is stated.

A number keeps its magnitude and format, a name its kind. Statements are negated or not, take an
opposite or another modal verb: by spaCy's reading of the sentence (`statement_changes`), else by
words alone (`plain_statement_changes`), which finds less. Questions are not negated: "Is he not
here?" asks what "Is he here?" asks.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from noisegen.noise.rng import Draws

DATA = Path(__file__).parent / "data"
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
# What sounds otherwise than it is written: "an hour", "an 80", "a union", "a one-way street".
_VOWEL = re.compile(
    r"(?i)(?:hour|honest|honou?r|heir|8|11\b|18\b|18(?:,\d{3})+\b|[aei]|o(?!ne\b|nce\b)"
    r"|u(?!ni[^mn]|s[aeu]|k\b|sa\b|ti|to|ra|ro|gan|kr))"
)


class Alteration(NamedTuple):
    """Characters [start, stop) of a text become `new`."""

    start: int
    stop: int
    new: str

    def applied(self, text: str) -> str:
        """Return the altered text; "a" before it becomes "an" where that is needed, and back."""
        before = text[: self.start]
        article = _ARTICLE.search(before)
        if article and self.new[:1].isalnum():
            said = article[1][0] + ("n" if _VOWEL.match(self.new) else "")
            said = said.upper() if article[1].isupper() and len(article[1]) > 1 else said
            before = before[: article.start()] + said + " "
        return before + self.new + text[self.stop :]


class Opposite(NamedTuple):
    """A word's opposite as a part of speech, and neighbours that make another sense of the word."""

    word: str
    tag: str  # universal; of a verb the Penn tag, VB also for VBP
    not_before: frozenset[str]
    not_after: frozenset[str]


@cache
def opposites() -> dict[str, tuple[Opposite, ...]]:
    """Return the opposites of every word of the list, in lower case."""
    found: dict[str, tuple[Opposite, ...]] = {}
    for word, other, tag, *limits in _rows("opposites"):
        neighbours = [frozenset(limit.split()) for limit in (*limits, "", "")]
        found[word] = (*found.get(word, ()), Opposite(other, tag, neighbours[0], neighbours[1]))
    return found


@cache
def words(name: str, kind: str) -> tuple[str, ...]:
    """Return the words of one kind of a list, in its order."""
    return tuple(word for word, theirs in _rows(name) if theirs == kind)


def _rows(name: str) -> list[list[str]]:
    lines = (DATA / f"{name}.tsv").read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")][1:]


# Numbers: digits or words.

Rewrite = Callable[[re.Match[str], Draws], str | None]  # of group 1 of the match


def number_changes(text: str, draws: Draws, lang: str = "en") -> list[Alteration]:
    """Return one change for every number of the text, in its order; overlaps go to the first rule.

    What the text holds already is no change: "5 to 7" does not become "5 to 5".
    `lang` other than en: figures only, for words and dates differ.
    """
    changes: list[Alteration] = []
    taken: list[tuple[int, int]] = []
    for number, (expression, rewrite, only_english) in enumerate(_NUMBER_RULES):
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
    """Draw one of the numbers, but for `old`."""
    return str(draws.pick([option for option in options if option != old]))


def _other(known: Sequence[str]) -> Rewrite:
    """Return a rewrite to another of the known words, capitals as they are."""

    def rewrite(match: re.Match[str], draws: Draws) -> str:
        old = match[1]
        new = draws.pick([word for word in known if word.lower() != old.lower()])
        return new.upper() if old.isupper() and len(old) > 1 else _capital_of(old, new)

    return rewrite


def _between(*spans: tuple[int, int]) -> Rewrite:
    """Return a rewrite to another number of the same span, its ends included, with as many digits.

    Numbers outside the spans stay.
    """

    def rewrite(match: re.Match[str], draws: Draws) -> str | None:
        old = match[1]
        for low, high in spans:
            if low <= int(old) <= high:
                least = max(low, 10 ** (len(old) - 1)) if old[0] != "0" else low
                options = range(least, min(high, 10 ** len(old) - 1) + 1)
                return _in_script(_another(options, int(old), draws).zfill(len(old)), old)
        return None

    return rewrite


def _year(match: re.Match[str], draws: Draws) -> str:
    """Return another year of the same century, at most thirty years away."""
    old = int(match[1])
    century = old // 100 * 100
    return _another(range(max(century, old - 30), min(century + 99, old + 30) + 1), old, draws)


def _decade(match: re.Match[str], draws: Draws) -> str:
    century = int(match[1]) // 100 * 100
    return _another(range(century, century + 100, 10), int(match[1]), draws)


def _ordinal(match: re.Match[str], draws: Draws) -> str | None:
    """Return another ordinal in figures, with its ending; of two digits, a day stays one."""
    digits = match[1][:-2]
    old = int(digits)
    if not old:
        return None
    top = min(10 ** len(digits) - 1, 31 if old <= 31 else 99)
    new = int(_another(range(10 ** (len(digits) - 1), top + 1), old, draws))
    ending = "th" if new % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(new % 10, "th")
    return f"{new}{ending.upper() if match[1][-1].isupper() else ending}"


def _percent(match: re.Match[str], draws: Draws) -> str | None:
    """Return another percentage; below a hundred for a hundred."""
    is_all = match[1] == "100"
    return _another(range(10, 100, 10), 100, draws) if is_all else _figures(match, draws)


def _figures(match: re.Match[str], draws: Draws) -> str | None:
    """Return other figures with the same zeros at both ends and the same marks between them.

    Of a long number one digit in its first half changes. A single figure that counts the next word
    does not become 1 ("3 days"), and 1 stays ("1 day").
    """
    digits = re.sub(r"\D", "", match[1])
    plain = "".join(str(int(digit)) for digit in digits)  # of any script
    core, after = plain.strip("0"), match.string[match.end(1) : match.end(1) + 2]
    counts = len(match[1]) == 1 and re.match(r"[\s-]?\w", after) is not None
    if not core or (counts and core == "1"):
        return None
    if len(core) > 3:
        at = draws.below(len(core) // 2)
        new = core[:at] + _another(range(1, 10), int(core[at]), draws) + core[at + 1 :]
    else:
        numbers = range(10 ** (len(core) - 1), 10 ** len(core))
        options = (number for number in numbers if number % 10 and not (counts and number == 1))
        new = _another(options, int(core), draws)
    lead = len(plain) - len(plain.lstrip("0"))
    filled = iter("0" * lead + new + "0" * (len(plain) - lead - len(core)))
    written = "".join(next(filled) if mark.isdigit() else mark for mark in match[1])
    return _in_script(written, digits)


def _in_script(text: str, like: str) -> str:
    """Return the ASCII digits of a text as those of the script of `like`."""
    zero = ord(like[0]) - int(like[0])
    return "".join(chr(zero + int(mark)) if mark.isdigit() else mark for mark in text)


def _number_words(*kinds: str) -> tuple[str, ...]:
    return tuple(word for kind in kinds for word in words("number_words", kind))


def _either(*kinds: str) -> str:
    return "|".join(_number_words(*kinds))


DAYS, MONTHS = _number_words("day"), _number_words("long_month", "short_month")
_MONTH, _SCALES = _either("long_month", "short_month"), _either("scale")
_OTHER_ONE, _OTHER_MONTH = _other(_number_words("one")), _other(_number_words("long_month"))
_NUMBER = r"\d+(?:[.,]\d{3})*(?:[.,]\d+)?"
_START, _STOP = r"(?<![\w.,/:#@+$€£¥-])", r"(?![\w/:@-])(?![.,]\d)"
_NEAR = r"[Ii]n|[Oo]f|[Ss]ince|[Bb]y|[Uu]ntil|[Ll]ast|[Nn]ext|[Ee]arly|[Ll]ate|[Tt]his"
_NO_FEAST = "".join(f"(?<!{name} )" for name in _number_words("feast"))
# Fractions ("two thirds") stay.
_NO_PART = r"(?![ -](?:thirds?|quarters?|fifths?|halves|by|or|to)\b)(?!-\w)"
_OWNER = r"(?<=the )|(?<=his )|(?<=her )|(?<=their )|(?<=our )|(?<=your )|(?<=\bmy )|(?<=\bits )"
# Each rule: the pattern, what replaces its group 1, whether it holds for English only. The first
# rule that matches wins; the position of a rule is part of the key of its draws.
_RULES: tuple[tuple[str, Rewrite, bool], ...] = (
    (rf"\b(?:{_MONTH}) (\d\d?)\b(?![:.]\d)", _between((1, 28)), True),
    (rf"{_START}(\d\d?) (?:of )?(?:{_MONTH})\b", _between((1, 28)), True),
    (rf"\b(?:{_MONTH}),? (\d{{4}})\b", _year, True),
    (rf"\b(?:{_NEAR}) ({_MONTH})\b(?! [A-Z])", _OTHER_MONTH, True),
    (rf"\b({_MONTH})(?= \d)", _OTHER_MONTH, True),
    (rf"(?<=\d )({_MONTH})\b", _OTHER_MONTH, True),
    (rf"\b{_NO_FEAST}({_either('day')})\b(?! [A-Z])", _other(DAYS), True),
    (rf"{_START}(\d\d?):\d\d\b(?!:)", _between((1, 12), (13, 23)), False),
    (rf"{_START}((?:1[0-9]|20)\d0)s\b", _decade, True),
    (rf"{_START}((?:1[1-9]|20)\d\d){_STOP}(?! (?:[a-z]{{3,}}s|people|men|women)\b)", _year, False),
    (rf"{_START}(\d{{1,2}}(?:st|nd|rd|th|ST|ND|RD|TH))\b(?! cent)", _ordinal, True),
    (rf"{_START}(\d{{1,2}}(?:st|nd|rd|th))\b", _ordinal, True),
    (rf"(?<!\w)[$€£¥] ?({_NUMBER})(?![\d/])", _figures, False),
    (rf"{_START}({_NUMBER})(?= ?(?:%|per ?cent\b))", _percent, False),
    (rf"{_START}({_NUMBER})(?=(?:{_either('unit')})\b)", _figures, True),
    (rf"{_START}({_NUMBER})(?=-[a-z])(?!-(?:to|and)-)", _figures, True),
    (rf"{_START}({_NUMBER}){_STOP}", _figures, False),
    (rf"(?i)\b(?:{_either('ten')})[- ](one|{_either('one')})\b{_NO_PART}", _OTHER_ONE, True),
    (rf"(?i)(?<![-\w])({_either('ten')})\b{_NO_PART}", _other(_number_words("ten")), True),
    (rf"(?i)(?<![-\w])({_either('teen')})\b{_NO_PART}", _other(_number_words("teen")), True),
    (rf"(?i)(?<![-\w])(?<!or )({_either('one')})\b{_NO_PART}", _OTHER_ONE, True),
    (rf"(?i)(?<![-\w])(one)(?= (?:{_SCALES})\b)", _OTHER_ONE, True),
    (rf"(?i)(?:{_OWNER})({_either('ordinal')})(?= [a-z])(?! (?:place|thing|hand|half|of all)\b)",
     _other(_number_words("ordinal")), True),
    (rf"(?i)(?<=a )({_SCALES})\b(?! to)", _other(_number_words("scale")), True),
)  # fmt: skip
_NUMBER_RULES = [(re.compile(pattern), rewrite, english) for pattern, rewrite, english in _RULES]


# Names: another of the same kind, from the other sentences of the set.

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
            text = Alteration(*place.span(), new).applied(text)
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
        if entity.label_ in LABELS and tokens and _is_name(tokens, entity.label_):
            form = tokens[-1].tag_ + ("" if tokens[-1].dep_ not in ("amod", "compound") else "+")
            has_the = has_the or _beside(tokens[0], -1) == "the"
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


# Statements, as spaCy reads them.

_SUBJECTS = ("nsubj", "nsubjpass", "expl", "csubj")
_NEGATIVE, _SHIFTED, _SET_PHRASES = (
    frozenset(words("function_words", kind)) for kind in ("negative", "shifting", "set_phrase")
)
_MODALS = {
    "may": "will", "might": "will", "will": "might", "must": "might", "should": "need not",
    "'ll": " might", "’ll": " might",
}  # fmt: skip
_WITHOUT_NOT = {"ca": "can", "wo": "will", "sha": "shall", "ai": ""}  # "can't", "won't", ...
_WITH_NOT = {"'ll": " will not", "’ll": " will not", "'ve": " have not", "’ve": " have not"}
_NO_NOT = ("'d", "’d", "to")  # had or would
_CONTRACTED = ("'s", "’s", "'re", "’re", "'m", "’m")
_SOME = {"any": "some", "anything": "something", "anyone": "someone", "anybody": "somebody",
         "anywhere": "somewhere"}  # fmt: skip
_HELD_BY_NOT = _NEGATIVE | {"yet", "either", "until", "ever", "anymore"}  # odd without the "not"


def statement_changes(document: Any) -> list[tuple[Alteration, ...]]:
    """Return the ways to turn a parsed text round, each as changes to make together."""
    ways: list[tuple[Alteration, ...]] = []
    for sentence in document.sents:
        if not sentence.text.strip().endswith("?"):
            ways += filter(None, [_negation(sentence)])
        ways += [(change,) for change in (*_opposed(sentence), *_modals(sentence))]
    return ways


def apply(text: str, changes: tuple[Alteration, ...]) -> str:
    """Return the text with changes that do not overlap."""
    for change in sorted(changes, reverse=True):
        text = change.applied(text)
    return text


def _beside(token: Any, step: int) -> str:
    """Return the neighbour before (-1) or after (1) in lower case; '' at the edge of the text."""
    place = token.i + step
    return token.doc[place].lower_ if 0 <= place < len(token.doc) else ""


def _capital_of(old: str, new: str) -> str:
    """Return `new` with a capital where `old` begins with one."""
    return new.capitalize() if old[0].isupper() else new


def _negation(sentence: Any) -> tuple[Alteration, ...]:
    """Return what negates the main verb, or takes its "not" away; () where neither is safe."""
    root = sentence.root
    if root.pos_ not in ("VERB", "AUX"):
        return ()
    if negations := [child for child in root.children if child.dep_ == "neg"]:
        return _unnegated(sentence, negations)
    # An adverb of the clause would take the "not" to itself.
    is_shifted = any(one.lower_ in _SHIFTED and one.dep_ != "prep" for one in root.children)
    if is_shifted or any(token.lower_ in _NEGATIVE for token in sentence):
        return ()
    change = _negated(sentence, root)
    return (change,) if change else ()


def _negated(sentence: Any, root: Any) -> Alteration | None:
    """Put "not" behind the first auxiliary, else "do not" before the verb."""
    subject = next((child for child in root.children if child.dep_ in _SUBJECTS), None)
    auxiliaries = [child for child in root.children if child.dep_ in ("aux", "auxpass")]
    finite = auxiliaries[0] if auxiliaries else root
    if subject is None:
        return None if auxiliaries else _forbidden(sentence, root)
    if finite.i < subject.i or finite.tag_ in ("VBN", "VBG", "TO"):
        return None
    joined = any(child.dep_ == "conj" and child.pos_ in ("VERB", "AUX") for child in root.children)
    if joined and finite is root:  # of two verbs joined by "and" only one would be negated
        return None
    return _with_not(finite) if auxiliaries or root.lemma_ == "be" else _with_do(root, subject)


def _with_not(finite: Any) -> Alteration | None:
    end, word, following = finite.idx + len(finite), finite.lower_, _beside(finite, 1)
    if following in _SHIFTED or following == "better" or following[:1] in ("'", "’"):
        return None
    if word in _NO_NOT or (finite.is_upper and len(finite) > 1):
        return None
    if word in _WITH_NOT:
        return Alteration(finite.idx, end, _WITH_NOT[word])
    if finite.is_alpha or word in _CONTRACTED:
        return Alteration(end, end, "not" if word == "can" else " not")
    return None


def _with_do(root: Any, subject: Any) -> Alteration | None:
    """Negate a full verb: "came" -> "did not come", "often came" -> "did not often come"."""
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
    """Negate an order: "Open it." -> "Do not open it."."""
    place = root.i - sentence.start
    opens = place == 0 or (place == 1 and sentence[0].lower_ == "please")
    if root.tag_ != "VB" or not opens or root.lemma_ in _SET_PHRASES:
        return None
    order = f"{_capital_of(root.text, 'do not')} {root.text.lower()}"
    return Alteration(root.idx, root.idx + len(root), order)


def _unnegated(sentence: Any, negations: list[Any]) -> tuple[Alteration, ...]:
    """Take the "not" away; "do" goes with it where the verb then stands by itself."""
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
        without = Alteration(before.idx, verb.idx + 1, _capital_of(before.text, verb.text[0]))
    else:
        full = _WITHOUT_NOT.get(before.lower_, before.text)
        without = Alteration(before.idx, word.idx + len(word), _capital_of(before.text, full))
    return without, *(
        Alteration(token.idx, token.idx + len(token), _capital_of(token.text, _SOME[token.lower_]))
        for token in sentence if token.lower_ in _SOME
    )  # fmt: skip


def _opposed(sentence: Any) -> Iterator[Alteration]:
    """Put the opposite of a word, where neighbours let the word be what the list says."""
    present = {token.lower_ for token in sentence}
    for token in sentence:
        if token.text not in (token.lower_, token.lower_.capitalize()) or token.ent_type_:
            continue
        tags = token.pos_, "VB" if token.tag_ == "VBP" else token.tag_
        other = next((one for one in opposites().get(token.lower_, ()) if one.tag in tags), None)
        if other is None or not _fits(token, other) or other.word in present:
            continue
        if other.word in _NEGATIVE and present & _NEGATIVE:  # negative twice
            continue
        is_first = token.i == sentence.start
        if token.is_lower or is_first:
            new = other.word.capitalize() if token.is_title and is_first else other.word
            yield Alteration(token.idx, token.idx + len(token), new)


def _fits(token: Any, other: Opposite) -> bool:
    """Tell whether neighbours let a word have its opposite; no particle, no hyphen."""
    before, after = _beside(token, -1), _beside(token, 1)
    has_particle = any(child.dep_ == "prt" for child in token.children)
    limited = "-" in (before, after) or after in other.not_before or before in other.not_after
    return not (has_particle or limited or token.dep_ == "neg")


def _modals(sentence: Any) -> Iterator[Alteration]:
    """Change how sure or bound something is; only behind the subject, and without "not"."""
    for token in sentence:
        new = _MODALS.get(token.lower_) if token.tag_ == "MD" else None
        subjects = [child for child in token.head.children if child.dep_ in _SUBJECTS]
        if new is None or not subjects or subjects[0].i > token.i:
            continue
        following = _beside(token, 1)
        if following in ("not", "n't", "n’t", "have", "as", "well") or following in _SHIFTED:
            continue
        if new != "need not" or not sentence.text.strip().endswith("?"):
            yield Alteration(token.idx, token.idx + len(token), new)


# Statements, without a parser.

_AUXILIARY = re.compile(r"(?<=[a-z]) (is|are|was|were|will|would|could|should|must)\b(?! not\b)")
_WORD = re.compile(r"(?<![\w'’-])[A-Za-z]+(?![\w'’-])")


def plain_statement_changes(text: str) -> list[tuple[Alteration, ...]]:
    """Return the ways to turn a text round that words alone show."""
    matches = list(_WORD.finditer(text))
    present = [match[0].lower() for match in matches]
    ways: list[tuple[Alteration, ...]] = []
    for before, match, after in zip(["", *present], matches, [*present[1:], ""], strict=False):
        known = opposites().get(match[0], ())
        if len({one.word for one in known}) != 1:
            continue
        if after not in known[0].not_before and before not in known[0].not_after:
            ways.append((Alteration(*match.span(), known[0].word),))
    auxiliaries = list(_AUXILIARY.finditer(text))
    asks = "?" in text or "n't" in text or "n’t" in text
    if len(auxiliaries) == 1 and not asks and not (_NEGATIVE | _SHIFTED).intersection(present):
        end = auxiliaries[0].end()
        ways.append((Alteration(end, end, " not"),))
    return ways
