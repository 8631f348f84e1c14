"""Readings: the clean forms that a noisy word may stand for, each with its chance.

By Bayes' rule, the chance of a clean form is proportional to two factors: how frequent the form is
in clean text (`neighbours`), and how often somebody who means it writes the noisy word. The steps
of a recipe give the second factor: their word lists, and their chances that apostrophes, diacritics
and repeated letters are changed. Real pairs of noisy and clean text correct both factors.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from noisegen.errors import LexiconError
from noisegen.noising import registry
from noisegen.noising.lexicon import Entry, parser_of, read_lexicon_file
from noisegen.noising.mix import Mix, Step, chance_of, step_values
from noisegen.noising.neighbours import NeighbourCounts, as_counted
from noisegen.noising.registry import Settings
from noisegen.text.alignment import aligned_words
from noisegen.text.case import bare, cased_as

# Share of an unknown word of n letters among all words: UNKNOWN * SHORTER ** n, times ODD if it has
# letters and digits (gr8), a letter three times in a row (sooo) or no vowel (brk). A number has at
# least the share NUMBER. Of the values tried, these were best on the dev parts of MultiLexNorm2.
UNKNOWN, SHORTER, ODD, NUMBER = 3e-4, 0.5, 0.05, 2e-2
LENGTHENED = 0.05  # chance that a writer who lengthens words lengthens this one
SLIP, SLIP_MIN, SLIP_KNOWN = 0.005, 5, 3  # chance of a typing error, fewest letters, least count
LONGEST = 40  # most letters of a word that is read; longer ones stay
SLIP_TEXT = 300_000  # fewest words of clean text that tell a typing error from a rare word
KNOWN = 0.1  # share of the chance of a rule that counts for a word of clean text: its, for it's
KEPT_MIN = 0.3  # least chance that a word is written as it is
OWN, LISTED = 1.0, 1.5  # pairs that count as much as the same words in other case, and as lists
LEAST = 1e-4  # readings with a smaller chance are left out

RULES = ("apos", "diac")  # transforms whose rule is read backwards

HELD = re.compile(r"([^\W\d_])\1\1+")  # a letter three times in a row or more
_ODD = re.compile(rf"{HELD.pattern}|[^\W\d_]\d|\d[^\W\d_]|^[b-df-hj-np-tv-xz]+$")
_APOSTROPHE = "'"
_LAST_SIGNS = re.compile(r"[^\w\s]+$")


@dataclass(frozen=True)
class Readings:
    """The clean forms of noisy words, with their chances.

    `listed` has noisy word -> clean form -> chance that the clean form is written so, all in lower
    case. `rules` has the chances that a word loses its apostrophe ('apos') and its diacritics
    ('diac'). `seen` has noisy word -> clean form -> count in real pairs, as they are written.
    """

    neighbours: NeighbourCounts
    listed: Mapping[str, Mapping[str, float]]
    rules: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        mix: Mix,
        lang: str,
        clean: Iterable[str] = (),
        pairs: Iterable[tuple[str, str]] = (),
    ) -> "Readings":
        """Make the readings of a recipe's mix for a language.

        `clean` is clean text of the kind that writers mean. `pairs` are (noisy, clean) texts, whose
        clean sides are counted like `clean`.
        """
        pairs = list(pairs)
        neighbours = NeighbourCounts.load(lang)
        own = NeighbourCounts.of([*clean, *(clean for _, clean in pairs)])
        if own.words:
            neighbours = neighbours.joined(own) if neighbours.words else own
        rules = {s.transform: _chance(mix, s) for s in mix.steps() if s.transform in RULES}
        return cls(neighbours, _listed(mix, lang, neighbours), rules, _seen(pairs))

    def of_word(self, word: str) -> dict[str, float]:
        """Return the clean forms that a word may stand for, the word itself included.

        The chances sum to 1. Clean forms are in the case of the word, or as the pairs have them.
        """
        if len(word) > LONGEST:
            return {word: 1.0}
        chances = {_like(word, form): p for form, p in self._without_pairs(word).items()}
        small = self._seen_small.get(as_counted(word), Counter[str]())
        in_case = Counter({_like(word, form): count for form, count in small.items()})
        chances = _corrected(chances, in_case, LISTED)
        chances = _corrected(chances, self.seen.get(word, Counter[str]()), OWN)
        return {form: p for form, p in chances.items() if p >= LEAST}

    @cached_property
    def _seen_small(self) -> dict[str, Counter[str]]:
        """`seen` in lower case."""
        found = defaultdict[str, Counter[str]](Counter)
        for form, words in self.seen.items():
            for word, count in words.items():
                found[as_counted(form)][as_counted(word)] += count
        return dict(found)

    def _without_pairs(self, word: str) -> dict[str, float]:
        """Return the clean forms of a word in lower case with their chances, without pairs."""
        may_slip = not word[:1].isupper()  # an unknown word with a capital is a name
        word = as_counted(word)
        written = self._written_as(word, may_slip=may_slip)
        meant = {form: self._share(form) * p for form, p in written.items()}
        known = self.neighbours.share(word) if self.neighbours.words[word] else 0.0
        if not known and word in self._listed_words:
            known = 1 / len(self._listed_words)
        unknown = UNKNOWN * SHORTER ** len(word) * (ODD if _ODD.search(word) else 1)
        known = max(known, NUMBER if word.isdecimal() else unknown)
        meant[word] = meant.get(word, 0.0) + known * max(KEPT_MIN, 1 - self._lost.get(word, 0.0))
        total = sum(meant.values())
        return {form: p / total for form, p in meant.items()}

    def _share(self, form: str) -> float:
        """Return the share of a word or phrase among all words of clean text."""
        before, *others = form.split()
        known = self.neighbours.words or before not in self._listed_words
        share = self.neighbours.share(before) if known else 1 / len(self._listed_words)
        for word in others:
            share *= max(self.neighbours.pairs[before, word], 0.02) / max(
                self.neighbours.words[before], 1
            )
            before = word
        return share

    def _written_as(self, word: str, *, may_slip: bool) -> Mapping[str, float]:
        """Return the clean forms of a word other than itself, and how often each is written so.

        With `may_slip`, an unknown word may be a typing error of a known one.
        """
        found = defaultdict[str, float](float, self.listed.get(word, {}))
        for rule, forms in self._by_rule.items():
            for form in forms.get(word, ()):
                caution = KNOWN if self.neighbours.words[word] else 1
                found[form] = max(found[form], caution * self.rules[rule])
        if HELD.search(word) and len(set(word)) > 1:
            for short in {HELD.sub(r"\1", word), HELD.sub(r"\1\1", word)}:
                if self.neighbours.words[short]:
                    found[short] = max(found[short], LENGTHENED)
                for form, chance in self.listed.get(short, {}).items():
                    found[form] = max(found[form], LENGTHENED * chance)
        is_unknown = not found and not self.neighbours.words[word]
        if may_slip and is_unknown and len(word) >= SLIP_MIN:
            found.update(dict.fromkeys(self._one_slip_away(word), SLIP))
        return found

    def _one_slip_away(self, word: str) -> Iterator[str]:
        """Yield the known words that become `word` by one typing error."""
        counts = self.neighbours.words
        if not word.isalpha() or self.neighbours.total < SLIP_TEXT:
            return
        cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
        near = {head + tail[1:] for head, tail in cuts if tail}
        near |= {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if tail[1:]}
        near |= {
            head + letter + tail[1:] for head, tail in cuts if tail for letter in self._letters
        }
        near |= {head + letter + tail for head, tail in cuts for letter in self._letters}
        yield from (form for form in sorted(near) if form != word and counts[form] >= SLIP_KNOWN)

    @cached_property
    def _letters(self) -> str:
        counts = Counter[str]()
        for word, count in self.neighbours.words.items():
            if count >= SLIP_KNOWN and word.isalpha():
                counts.update(word)
        return "".join(letter for letter, _ in counts.most_common(60))

    @cached_property
    def _lost(self) -> dict[str, float]:
        """How often each clean form is written in another way that a list has."""
        lost = defaultdict[str, float](float)
        for forms in self.listed.values():
            for form, chance in forms.items():
                lost[form] += chance
        return dict(lost)

    @cached_property
    def _listed_words(self) -> frozenset[str]:
        """The single words that are clean forms of a list."""
        return frozenset(form for form in self._lost if " " not in form)

    @cached_property
    def _by_rule(self) -> dict[str, dict[str, list[str]]]:
        """Noisy form -> known words that the rule of a step writes so."""
        found = {rule: defaultdict[str, list[str]](list) for rule, p in self.rules.items() if p}
        for word in {*self.neighbours.words, *self._listed_words}:
            if "apos" in found and _APOSTROPHE in word.strip(_APOSTROPHE):
                found["apos"][word.replace(_APOSTROPHE, "")].append(word)
            if "diac" in found and (plain := bare(word)) != word:
                found["diac"][plain].append(word)
        return {rule: dict(forms) for rule, forms in found.items()}


def _listed(mix: Mix, lang: str, neighbours: NeighbourCounts) -> Mapping[str, Mapping[str, float]]:
    """Return the forms in the word lists of a mix: noisy -> clean -> chance, in lower case.

    Slips that make real words are left out: one word before them does not tell that others are
    meant.
    """
    listed = defaultdict[str, dict[str, float]](dict)
    for step in mix.steps():
        entries, totals = list(listed_entries(step, lang)), Counter[str]()
        for entry in entries:
            totals[entry.clean] += entry.weight
        chance, is_slip = _chance(mix, step), registry.get(step.transform).kind == "slip"
        for entry in entries:
            noisy, word = as_counted(entry.noisy), as_counted(entry.clean)
            is_real = all(neighbours.words[part] for part in noisy.split(" "))
            is_kept = noisy != word and word and not (is_slip and is_real)
            if chance and is_kept and totals[entry.clean]:
                share = chance * entry.weight / totals[entry.clean]
                listed[noisy][word] = listed[noisy].get(word, 0.0) + share
    return dict(listed)


def _seen(pairs: Iterable[tuple[str, str]]) -> Mapping[str, Counter[str]]:
    """Return the words in (noisy, clean) pairs of texts: noisy word -> clean form -> count.

    Signs that end a clean form alone are not part of it: the stop of 'rn' -> 'right now.'.
    """
    seen = defaultdict[str, Counter[str]](Counter)
    for noisy, clean in pairs:
        for form, word in aligned_words(noisy, clean):
            if form[-1].isalnum():
                word = _LAST_SIGNS.sub("", word) or word
            seen[form][word] += 1
    return dict(seen)


def _corrected(
    chances: Mapping[str, float], counts: Counter[str], weight: float
) -> dict[str, float]:
    """Return the chances of clean forms, corrected by the counts of the forms in real pairs.

    The chances given weigh as much as `weight` pairs.
    """
    total = counts.total() + weight
    forms = dict.fromkeys([*chances, *counts])
    return {form: (weight * chances.get(form, 0.0) + counts[form]) / total for form in forms}


def listed_entries(step: Step, lang: str) -> Iterator[Entry]:
    """Yield the entries of the word lists that a step reads."""
    for path in registry.get(step.transform).data(Settings(lang), step_values(step)):
        with suppress(LexiconError, ValueError):  # other data than a word list
            yield from parser_of(path)(read_lexicon_file(path), str(path)).entries


def _chance(mix: Mix, step: Step) -> float:
    """Return the chance that a word is changed by a step that has a form for it."""
    rate = step_values(step).get("rate")
    return chance_of(mix, step.label) * min(1.0, float(1 if rate is None else rate))


def _like(word: str, form: str) -> str:
    """Return a clean form in the case of a word; the word itself if it is the same word."""
    return word if as_counted(word) == form else cased_as(word, form)
