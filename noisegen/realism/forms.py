"""Noisy forms of words, and texts restored from noisy forms: 'c u' becomes 'see you'.

Each step of a recipe noises posts once more, alone. Its edits of the words that posts still have in
their clean form are pairs of clean and noisy form. So any transform and any word list has forms,
without a table of forms per transform. A noisy form that is a word itself (its, were, no) is left
out.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from noisegen.noising import registry
from noisegen.noising.mix import Mix, Step, chance_of
from noisegen.noising.readings import HELD, listed_entries
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import HABIT_KINDS
from noisegen.text.alignment import Span, token_spans
from noisegen.text.buffers import APOSTROPHES
from noisegen.text.case import cased_as
from noisegen.text.spans import PROTECTED, protect_kinds, protected_in

WORDS_MAX = 5  # words of a clean form: "be right back"
COPIES = 2  # times that a step noises each text
# A noisy form with at least WORD_MIN occurrences, and over WORD_SHARE of its own and those of its
# clean form, looks like a word itself if other forms of its step have at most half of this share
WORD_MIN, WORD_SHARE = 10, 0.9
FREQUENT_MIN = 8  # least occurrences of a word, in any form, for its noisy forms to be counted
LENGTHENS = "long"  # transform that repeats letters
SHOUTED_MIN = 10  # most characters of capitals that may be an abbreviation
LIFT_MIN = 1.5  # least growth of a step's share of words, in rows that have the step

_REPOST = re.compile(r"\bRT *@\w+ *:? *")
_START = re.compile(r"(^[^\w]*|[.!?] +)([^\W\d_])")
_APOSTROPHES = tuple(APOSTROPHES)


class Form(NamedTuple):
    """A noisy form, the clean form it stands for, and the label of the step that writes it."""

    noisy: str
    clean: str
    step: str


@dataclass(frozen=True)
class Forms:
    """Noisy forms by their text in lower case.

    `counted` are the forms of words that are frequent in the posts. Only these serve to compare
    posts with noise: of a rare word, the posts may have the noisy form alone, which nothing tells.
    `long` is the label of the step that lengthens words ("" for none). Words with three equal
    letters in a row are its noisy forms; `words` are counts that tell "so" from "soo".
    """

    of: Mapping[str, Form]
    counted: frozenset[str]
    long: str = ""
    words: Mapping[str, int] = field(default_factory=Counter)

    def form_of(self, word: str) -> Form | None:
        """Return the noisy form that a word in lower case is, if it is one."""
        if word in self.of or not (self.long and _is_lengthened(word)):
            return self.of.get(word)
        once, twice = HELD.sub(r"\1", word), HELD.sub(r"\1\1", word)
        return Form(word, twice if self.words[twice] > self.words[once] else once, self.long)

    def restored(self, text: str) -> str:
        """Return the text with each noisy form replaced by its clean form, in the same case."""
        parts, at = list[str](), 0
        for start, stop in word_spans(text):
            word = text[start:stop]
            if form := self.form_of(word.lower()):
                parts += [text[at:start], cased_as(word, form.clean)]
                at = stop
        return "".join([*parts, text[at:]])

    def found(self, text: str) -> list[Form]:
        """Return the counted noisy forms in a text, in order."""
        forms = map(self.form_of, words_of(text))
        return [
            form
            for form in forms
            if form and (form.noisy in self.counted or form.step == self.long)
        ]


def _is_lengthened(word: str) -> bool:
    """Tell whether a word has a letter three times in a row, and others: not "www", "ALLL3"."""
    return bool(HELD.search(word)) and word.isalpha() and len(set(word)) > 1


def word_spans(text: str) -> list[Span]:
    """Return the spans of the tokens of a text, without web addresses, names and hashtags.

    A token before an apostrophe is left out too: the "d" of "d' accordo" is no short form of "di".
    """
    kept = protected_in(text, protect_kinds(PROTECTED))
    return [
        (start, stop)
        for start, stop in token_spans(text)
        if not text.startswith(_APOSTROPHES, stop)
        and not any(start < last and first < stop for first, last in kept)
    ]


def edited(text: str, lang: str) -> str:
    """Return a text with the capitals and the last stop of edited text: 'i came' -> 'I came.'.

    Only English has the pronoun I; "i" is "and" in Croatian and "in" in Danish. Text in scripts
    without capitals stays as it is.
    """
    if text == text.swapcase():
        return text
    text = text.lower() if text.isupper() and len(text) > SHOUTED_MIN else text
    text = _START.sub(lambda start: start[1] + start[2].upper(), text)
    text = re.sub(r"\bi\b", "I", text) if lang == "en" else text
    text = text.rstrip()
    return f"{text}." if text[-1:].isalnum() else text


def without_addresses(text: str) -> str:
    """Return a text without web addresses, names and hashtags, which no transform changes.

    The blanks before them go too, and so does the mark of a repost: "RT @ann: see you http://x.y"
    becomes "see you".
    """
    text = _REPOST.sub("", text)
    parts, at = list[str](), 0
    for start, stop in protected_in(text, protect_kinds(PROTECTED)):
        parts.append(text[at:start].rstrip(" "))
        at = stop
    return "".join([*parts, text[at:]]).strip(" ")


def words_of(text: str) -> list[str]:
    """Return the tokens that `word_spans` finds, in lower case."""
    return [text[start:stop].lower() for start, stop in word_spans(text)]


def forms_of(
    mix: Recipe, lang: str, texts: Sequence[str], known: Collection[str] = (), seed: int = 0
) -> Forms:
    """Return the noisy forms that the steps of a mix write in texts.

    A form that two steps write belongs to the step that writes it more often. `known` are words
    that are no noisy forms, beside the words that the word lists of the steps have as clean.
    """
    table = pa.table({"clean": list(texts)})
    words = {*known, *listed_words(mix, lang)}
    counts: Counter[Form] = Counter()
    for step in mix.steps():
        often = chance_of(mix, step.label)
        if registry.get(step.transform).kind not in HABIT_KINDS or not often:
            continue
        alone = Recipe.of([Step(step.transform, step.values)], step.label)
        for copy in range(COPIES):
            noised = alone.noise_batch(table, seed, copy=copy, edits=True, lang=lang)
            for clean, noisy in _word_edits(noised):
                if _may_be_form(clean, noisy, words):
                    counts[Form(noisy, clean, step.label)] += 1 + int(1_000 * often)
    best: dict[str, Form] = {}
    for form, count in sorted(counts.items()):
        if form.noisy not in best or counts[best[form.noisy]] < count:
            best[form.noisy] = form
    chances = {step.label: chance_of(mix, step.label) for step in mix.steps()}
    kept = _without_words(best, texts, chances)
    long = next((step.label for step in mix.steps() if step.transform == LENGTHENS), "")
    in_texts = Counter(word for text in texts for word in words_of(text))
    return Forms(kept, _frequent(kept, texts), long, in_texts)


def listed_words(mix: Mix, lang: str) -> set[str]:
    """Return the single words that the word lists of a mix have as clean forms, in lower case."""
    entries = chain.from_iterable(listed_entries(step, lang) for step in mix.steps())
    return {entry.clean.lower() for entry in entries if " " not in entry.clean}


def _may_be_form(clean: str, noisy: str, known: Collection[str]) -> bool:
    if noisy == clean or noisy in known or len(clean.split()) > WORDS_MAX:
        return False
    return any(map(str.isalpha, noisy)) and len(token_spans(noisy)) == 1


class _Evidence(NamedTuple):
    """Counts of words in posts: a noisy form or not (`noisy`), of all that could be (`every`)."""

    noisy: Counter[str]
    every: Counter[str]

    def share(self, key: str, prior: float = 0.5) -> float:
        """Return the share of noisy forms; two words more count as `prior`."""
        return (self.noisy[key] + 2 * prior) / (self.every[key] + 2)


def _without_words(
    forms: Mapping[str, Form], texts: Sequence[str], chances: Mapping[str, float]
) -> dict[str, Form]:
    """Leave out forms that the posts use like words.

    Such a form is much more frequent, beside its clean form, than other forms of its step; or the
    step wrote no more of the other words beside it than elsewhere, although few rows get the step.
    `chances` are the chances of the steps by label.
    """
    steps_of = defaultdict[str, set[str]](set)
    for form in forms.values():
        steps_of[form.clean].add(form.step)
    counts: Counter[str] = Counter()
    of_step, beside = (_Evidence(Counter(), Counter()) for _ in range(2))
    for text in texts:
        words = words_of(text)
        counts.update(words)
        found = [forms[word] for word in words if word in forms]
        noisy = Counter(form.step for form in found)
        every = noisy + Counter(step for word in words for step in steps_of.get(word, ()))
        of_step.noisy.update(noisy)
        of_step.every.update(every)
        for form in found:
            beside.noisy[form.noisy] += noisy[form.step] - 1
            beside.every[form.noisy] += every[form.step] - 1

    def is_word(form: Form) -> bool:
        own, both = counts[form.noisy], counts[form.noisy] + counts[form.clean]
        if own < WORD_MIN:
            return False
        rest = of_step.every[form.step] - both
        others = (of_step.noisy[form.step] - own + 1) / (max(0, rest) + 2)
        if own > WORD_SHARE * both and others < own / both / 2 and " " not in form.clean:
            return True
        share = of_step.share(form.step)
        lift = min(1 / chances[form.step], 1 / share)
        if lift < LIFT_MIN or beside.every[form.noisy] < WORD_MIN:
            return False
        expected, number = min(0.95, share * lift**0.5), beside.every[form.noisy]
        error = (expected * (1 - expected) / number) ** 0.5
        return bool(beside.share(form.noisy, share) < expected - error)

    return {name: form for name, form in forms.items() if not is_word(form)}


def _frequent(forms: Mapping[str, Form], texts: Sequence[str]) -> frozenset[str]:
    """Return the noisy forms of words that texts have `FREQUENT_MIN` times, in any form."""
    phrases = defaultdict[int, set[str]](set)
    for form in forms.values():
        phrases[form.clean.count(" ") + 1].add(form.clean)
    counts: Counter[str] = Counter()
    for text in texts:
        words = words_of(text)
        counts.update(forms[word].clean for word in words if word in forms)
        for size, known in phrases.items():
            joined = map(" ".join, zip(*(words[at:] for at in range(size)), strict=False))
            counts.update(phrase for phrase in joined if phrase in known)
    return frozenset(noisy for noisy, form in forms.items() if counts[form.clean] >= FREQUENT_MIN)


def _word_edits(noised: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield the clean and the noisy form of each edit, widened to whole tokens, in lower case."""
    columns = (noised[name].to_pylist() for name in ("clean", "noisy", "edits"))
    for clean, noisy, edits in zip(*columns, strict=True):
        spans = token_spans(clean) if edits else []
        last = -1
        for edit in edits:
            start, stop = edit["clean_start"], edit["clean_end"]
            touched = [(a, b) for a, b in spans if a < max(stop, start + 1) and start < b]
            first, end = touched[0][0] if touched else start, touched[-1][1] if touched else stop
            before, after = max(0, start - first), max(0, end - stop)
            if start - before >= last:  # a second edit of a word is left out
                before_noisy, after_noisy = edit["noisy_start"] - before, edit["noisy_end"] + after
                yield (
                    clean[start - before : stop + after].lower(),
                    noisy[before_noisy:after_noisy].lower(),
                )
            last = stop + after
