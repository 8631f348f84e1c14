"""Noisy forms of words, and texts restored from them: 'c u' was 'see you'; 'c' and 'u' are forms.

Each step of a recipe noises posts once more, alone. What it writes where posts still have the clean
form shows its pairs of clean and noisy form, so that any transform and any word list has forms
without a table of them. A noisy form that is a word itself (its, were, no) is left out.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from noisegen.errors import LexiconError
from noisegen.noising import registry
from noisegen.noising.lexicon import parser_of, read_lexicon_file
from noisegen.noising.mix import Mix, Step, step_values
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import HABIT_KINDS, Settings
from noisegen.text.alignment import Span, token_spans
from noisegen.text.spans import PROTECTED, protect_kinds, protected_in

WORDS_MAX = 5  # words of a clean form: "be right back"
COPIES = 2  # times that a step noises each text
# A noisy form with at least WORD_MIN occurrences, and at least WORD_SHARE of its own and those of its
# clean form, looks like a word itself if other forms of its step have at most half of such a share
WORD_MIN, WORD_SHARE = 10, 0.9


class Form(NamedTuple):
    """A noisy form, the clean form it stands for, and the label of the step that writes it."""

    noisy: str
    clean: str
    step: str


@dataclass(frozen=True)
class Forms:
    """Noisy forms by their text in lower case."""

    of: Mapping[str, Form]

    def restored(self, text: str) -> str:
        """Return the text with each noisy form replaced by its clean form, in the same case."""
        parts, at = list[str](), 0
        for start, stop in word_spans(text):
            word = text[start:stop]
            if form := self.of.get(word.lower()):
                parts += [text[at:start], _cased_as(word, form.clean)]
                at = stop
        return "".join([*parts, text[at:]])

    def found(self, text: str) -> list[Form]:
        """Return the noisy forms in a text, in order."""
        return [form for word in words_of(text) if (form := self.of.get(word))]


def word_spans(text: str) -> list[Span]:
    """Return the spans of the tokens of a text, without web addresses, names and hashtags."""
    kept = protected_in(text, protect_kinds(PROTECTED))
    if not kept:
        return token_spans(text)
    return [
        (start, stop)
        for start, stop in token_spans(text)
        if not any(start < last and first < stop for first, last in kept)
    ]


def words_of(text: str) -> list[str]:
    """Return the tokens that `word_spans` finds, in lower case."""
    return [text[start:stop].lower() for start, stop in word_spans(text)]


def _cased_as(noisy: str, clean: str) -> str:
    if len(noisy) > 1 and noisy.isupper():
        return clean.upper()
    return clean[:1].upper() + clean[1:] if noisy[:1].isupper() else clean


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
    return Forms(_without_words(best, texts))


def listed_words(mix: Mix, lang: str) -> set[str]:
    """Return the single words that the word lists of a mix have as clean forms, in lower case."""
    words = set[str]()
    for step in mix.steps():
        for path in registry.get(step.transform).data(Settings(lang), step_values(step)):
            with suppress(LexiconError, ValueError):  # other data than a word list
                entries = parser_of(path)(read_lexicon_file(path), str(path)).entries
                words.update(entry.clean.lower() for entry in entries if " " not in entry.clean)
    return words


def chance_of(mix: Mix, label: str) -> float:
    """Return the chance that a row gets the step with this label, over all writers of a mix."""
    (p,) = [float(step.p) for step in mix.steps() if step.label == label]
    total = sum(writer.weight for writer in mix.writers)
    if not total:
        return p
    own = (
        (writer.weight, float(writer.habits[label].p) if label in writer.habits else p)
        for writer in mix.writers
    )
    return sum(weight * chance for weight, chance in own) / total


def _may_be_form(clean: str, noisy: str, known: Collection[str]) -> bool:
    if noisy == clean or noisy in known or len(clean.split()) > WORDS_MAX:
        return False
    return any(map(str.isalpha, noisy)) and len(token_spans(noisy)) == 1


def _without_words(forms: Mapping[str, Form], texts: Sequence[str]) -> dict[str, Form]:
    """Leave out forms that are much more frequent, beside their clean form, than others."""
    counts: Counter[str] = Counter()
    phrases = {form.clean for form in forms.values() if " " in form.clean}
    for text in texts:
        words = words_of(text)
        counts.update(words)
        if phrases:
            joined = f" {' '.join(words)} "
            counts.update(phrase for phrase in phrases if f" {phrase} " in joined)
    noisy, every = Counter[str](), Counter[str]()
    for form in forms.values():
        noisy[form.step] += counts[form.noisy]
        every[form.step] += counts[form.noisy] + counts[form.clean]

    def is_word(form: Form) -> bool:
        own, both = counts[form.noisy], counts[form.noisy] + counts[form.clean]
        others = (noisy[form.step] - own + 1) / (every[form.step] - both + 2)
        return own >= WORD_MIN and own > WORD_SHARE * both and others < own / both / 2

    return {name: form for name, form in forms.items() if not is_word(form)}


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
