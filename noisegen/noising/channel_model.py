"""Noise channels: chances of errors, estimated from the counts of errors in a `Profile`.

A chance known from few examples is corrected ("smoothed") towards a more general chance:

- of a word in its case, towards the word in any case, and on towards words of its length and case;
- of a gap (text between words) before one word, towards the same gap before any word;
- of letters between two certain letters, towards the same letters between any two (counted apart
  for the start, the inside and the end of words).

Chances are computed in Python's floats and rounded down to whole numbers, so that all machines get
the same ones.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from noisegen.noising.profile import (
    END,
    GONE,
    KEPT,
    LETTERS,
    OTHER,
    ROW_HABITS,
    SAME,
    START,
    WRITTEN,
    GapKey,
    HabitKey,
    LetterKey,
    Profile,
)
from noisegen.text.case import CASES, SHAPES, shape_of

_IDEOGRAPHS = "\u2e80"  # first ideograph; its pairs are not recorded: it may stand beside any other

CHANCE_BITS = 32
WEIGHT_BITS = 20
# Weights of the more general chance, in occurrences: `prior` in `_smoothed`.
WORD_PRIOR, CASE_PRIOR, SHAPE_PRIOR, GAP_PRIOR, LETTER_PRIOR = 3.0, 4.0, 4.0, 10.0, 3.0
FORM, AS_WRITTEN, WORD_GONE, SOME_LETTERS, COARSER = range(5)  # kinds of an `Option`


class Option(NamedTuple):
    """One possible change of a word, phrase, gap or part of a word.

    `kind` is the kind of change and determines the meaning of `detail`:

    - FORM: a word becomes `noisy` (small letters), written in the case `detail` (SAME, ...); a gap
      becomes `noisy`, and the next word is written in the case `detail`;
    - AS_WRITTEN: the word keeps its letters and is written in the case `detail`;
    - WORD_GONE: the word is removed, and the next word is written in the case `detail`;
    - SOME_LETTERS: letters of the word change in `detail` places;
    - COARSER: an option is drawn from the option group of index `detail` (-1: of the word's shape).
    """

    kind: int
    noisy: str = ""
    detail: int = SAME


BY_SHAPE = Option(COARSER, "", -1)
_OF_CHANGE = {  # change of an unknown word, as named in `profile.CHANGES` -> option
    **{name: Option(AS_WRITTEN, "", written) for written, name in enumerate(WRITTEN)},
    **{name: Option(SOME_LETTERS, "", places) for places, name in enumerate(LETTERS)},
    OTHER: Option(SOME_LETTERS, "", 1),
    GONE: Option(WORD_GONE),
}
Weights = dict[Option, float]
Outcomes = Counter[tuple[str | None, int]]  # (replacement, the case it is written in) -> count


class OptionGroup(NamedTuple):
    """The options of a word, gap or part of a word, and the chance that it changes at all.

    `chance` is out of 2^32. `bounds` has the cumulative chances of the options if there is a
    change, also out of 2^32.
    """

    chance: int
    options: tuple[Option, ...]
    bounds: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """Option groups of words, of shapes (case and length class), of gaps and of parts of words.

    - `words`: (word, case) -> index in `groups`;
    - `shapes`: index in `groups` for the unknown words of each shape;
    - `gaps`: (word after the gap or '' for any, whether the gap begins its row, gap) -> index in
      `groups`;
    - `letters`: (letter before, letters, letter after) -> (index in `groups`, weight); the weight
      is the rate of change of these letters; for any letters before and after, the key is
      ('', letters, START, END or '' for the inside of a word);
    - `habits`: cumulative chances of the habits of rows, out of 2^32;
    - `pairs`: pairs of neighbouring letters in the words and replacements of the profile; START and
      END stand for the start and the end of a word.
    """

    lang: str
    groups: list[OptionGroup] = field(default_factory=list)
    words: dict[tuple[str, int], int] = field(default_factory=dict)
    shapes: list[int] = field(default_factory=list)
    gaps: dict[tuple[str, bool, str], int] = field(default_factory=dict)
    letters: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    habits: list[int] = field(default_factory=list)
    pairs: set[str] = field(default_factory=set)

    def lacks(self, word: str, noisy: str) -> bool:
        """Tell whether `noisy` has a pair of letters found neither in `pairs` nor in `word`."""
        made, known = (set(map("".join, pairwise(f"{START}{form}{END}"))) for form in (noisy, word))
        return any(map(letter_pairs, made - self.pairs - known))

    def add(self, chance: float, weights: Mapping[Option, float]) -> int:
        """Add a group of weighted options and return its index in `groups`.

        `chance` is the rate of change, from 0 to 1. Options of weight 0 are left out.
        """
        options = tuple(option for option, weight in weights.items() if weight > 0)
        sums = list(accumulate(weights[option] for option in options))
        bounds = tuple(int(part / sums[-1] * (1 << CHANCE_BITS)) for part in sums)
        whole = int(min(chance, 1.0) * (1 << CHANCE_BITS)) if options else 0
        self.groups.append(OptionGroup(whole, options, bounds))
        return len(self.groups) - 1


def letter_pairs(framed: str) -> set[str]:
    """Return the pairs of neighbouring letters of `framed`, a word between START and END.

    Pairs with an ideograph are left out.
    """
    return {
        a + b
        for a, b in pairwise(framed)
        if max(a, b) < _IDEOGRAPHS
        and all(c in (START, END) or unicodedata.category(c)[0] in "LM" for c in (a, b))
    }


def channel_of(profile: Profile) -> Channel:
    """Estimate the chances of a channel from the counts of errors in a profile."""
    channel = Channel(profile.lang)
    _add_shapes(channel, profile)
    _add_words(channel, profile)
    _add_gaps(channel, profile.gaps)
    _add_letters(channel, profile.letters)
    _add_pairs(channel, profile)
    total = 0.0
    for habit in ROW_HABITS:
        shown, other = (profile.habits.get(HabitKey(habit, shows), 0) for shows in (True, False))
        total += shown / max(1, shown + other)
        channel.habits.append(int(min(total, 1.0) * (1 << CHANCE_BITS)))
    return channel


def _add_pairs(channel: Channel, profile: Profile) -> None:
    """Record the letter pairs of all words of a profile, and of all their replacements."""
    forms = {form for key in profile.words for form in (key.clean, key.noisy) if form}
    for word in {word for form in forms for word in form.split(" ")}:
        channel.pairs.update(letter_pairs(f"{START}{word}{END}"))
    for before, _, after, noisy in profile.letters:
        channel.pairs.update(letter_pairs(f"{before}{noisy}{after}"))


def _smoothed(changed: float, total: float, rate: float, prior: float) -> float:
    """Return a smoothed rate of change: `changed` of `total` occurrences were changed.

    The result is as if there were `prior` more occurrences, which change at the rate `rate`.
    """
    return (changed + prior * rate) / (total + prior)


def _add_shapes(channel: Channel, profile: Profile) -> None:
    """Add a group of options for the unknown words of each shape (case and length class)."""
    changed = [Counter[str]() for _ in range(SHAPES)]
    for key, count in profile.shapes.items():
        changed[key.shape][key.change] += count
    kept = [counts.pop(KEPT, 0) for counts in changed]
    every = sum(changed, Counter[str]())
    rate = every.total() / max(1, sum(kept) + every.total())
    every = every or Counter({LETTERS[1]: 1})
    for counts, same in zip(changed[:-1], kept, strict=False):
        weights: Weights = defaultdict(float)
        for change in sorted(every):
            share = SHAPE_PRIOR * max(rate, 1e-9) * every[change] / every.total()
            weights[_OF_CHANGE[change]] += counts[change] + share
        chance = _smoothed(counts.total(), same + counts.total(), rate, SHAPE_PRIOR)
        channel.shapes.append(channel.add(chance, weights))
    channel.shapes.append(_add_numbers(channel, changed[-1], kept[-1]))


def _add_numbers(channel: Channel, changed: Counter[str], kept: int) -> int:
    """Add the option group of words that begin with a digit, and return its index.

    Such a word is removed or changes case as often as in the profile; its letters never change.
    """
    weights = {_OF_CHANGE[name]: float(changed[name]) for name in (*WRITTEN[1:], GONE)}
    number = channel.add(sum(weights.values()) / max(1, changed.total() + kept), weights)
    if not channel.groups[number].options:  # `BY_SHAPE` may draw from it, so it needs an option
        channel.groups[number] = OptionGroup(0, (Option(AS_WRITTEN),), (1 << CHANCE_BITS,))
    return number


def _shape_rates(profile: Profile) -> list[float]:
    """Return the share of changed words for each shape, smoothed towards the overall share."""
    seen, changed = Counter[int](), Counter[int]()  # shape -> number of words, of changed words
    for key, count in profile.words.items():
        if " " not in key.clean:
            shape = shape_of(key.clean, key.case)
            seen[shape] += count
            if (key.noisy, key.written) != (key.clean, SAME):
                changed[shape] += count
    for unknown, count in profile.shapes.items():
        seen[unknown.shape] += count
        if unknown.change != KEPT:
            changed[unknown.shape] += count
    overall = changed.total() / max(1, seen.total())
    return [_smoothed(changed[n], seen[n], overall, SHAPE_PRIOR) for n in range(SHAPES)]


def _add_words(channel: Channel, profile: Profile) -> None:
    """Add the option groups of all words and phrases in a profile."""
    rates = _shape_rates(profile)
    by_word: dict[str, list[Outcomes]] = defaultdict(lambda: [Counter() for _ in CASES])
    for key, count in sorted(profile.words.items(), key=lambda item: item[0][:2]):
        by_word[key.clean][key.case][key.noisy, key.written] += count
    for word, cases in by_word.items():
        _add_word(channel, word, cases, rates)


def _add_word(
    channel: Channel, word: str, cases: Sequence[Outcomes], shape_rates: Sequence[float]
) -> None:
    """Add four groups of options for a word or phrase, one per case of the word.

    `cases` has the counts of replacements per case of the word. `shape_rates` is the result of
    `_shape_rates`. The options of a group are the replacements counted in its case, those counted
    in any case, and `BY_SHAPE`: a change as in unknown words of the same shape.
    """
    pooled = _pooled(word, cases)
    totals = [outcomes.total() for outcomes in cases]
    shape = shape_of(word, max(range(len(CASES)), key=lambda case: (totals[case], case)))
    # Most options of a shape change letters, so numbers and phrases are not smoothed with them.
    has_letters = shape != SHAPES - 1 and " " not in word
    prior = WORD_PRIOR * shape_rates[shape] * has_letters
    weight = pooled.total() + prior
    rate = weight / (sum(totals) + WORD_PRIOR)
    share = CASE_PRIOR * rate / weight if weight else 0.0
    for case, own in enumerate(cases):
        weights: Weights = defaultdict(float)
        for outcomes, factor in ((own, 1.0), (pooled, share)):
            for (noisy, written), count in outcomes.items():
                if (noisy, written) != (word, SAME):
                    weights[_word_option(noisy, written)] += count * factor
        weights[BY_SHAPE] += prior * share
        chance = _smoothed(totals[case] - own[word, SAME], totals[case], rate, CASE_PRIOR)
        channel.words[word, case] = channel.add(chance, weights)


def _pooled(word: str, cases: Sequence[Outcomes]) -> Outcomes:
    """Return the counts of the replacements of a word in all cases together.

    Each replacement is counted as if it had been written in the case of the word.
    """
    pooled: Outcomes = Counter()
    for outcomes in cases:
        for (noisy, _), count in outcomes.items():
            if noisy != word:
                pooled[noisy, SAME] += count
    return pooled


def _word_option(noisy: str | None, written: int) -> Option:
    """Return the option that stands for a counted replacement of a word.

    `noisy` is None for rare replacements, which the profile does not list. Their option is
    BY_SHAPE: a change that is usual for unknown words of this shape (case and length class).
    """
    if noisy is None:
        return BY_SHAPE
    return Option(FORM if noisy else WORD_GONE, noisy, written)


def _add_gaps(channel: Channel, counts: Mapping[GapKey, int]) -> None:
    """Add a group of options for each gap, and for each counted pair of gap and following word."""
    by_gap: dict[tuple[bool, str], dict[str, Outcomes]] = {}
    for key, count in sorted(counts.items(), key=lambda item: item[0][:3]):
        rights = by_gap.setdefault((key.initial, key.gap), {})
        for right in {key.right, ""}:
            rights.setdefault(right, Counter())[key.noisy, key.written] += count
    for (initial, gap), rights in by_gap.items():
        every = rights.pop("")
        rate = 1 - every[gap, SAME] / every.total()
        base = channel.gaps["", initial, gap] = channel.add(rate, _form_weights(every, gap))
        for right, outcomes in rights.items():
            group, _ = _add_finer(channel, outcomes, gap, (base, rate), GAP_PRIOR)
            channel.gaps[right, initial, gap] = group


def _add_letters(channel: Channel, counts: Mapping[LetterKey, int]) -> None:
    """Add groups of options (possible replacements) for the word parts in `counts`.

    A part has a group for each pair of letters around it, and up to three groups for any letters
    around it: at the START of a word, at its END, and inside ('').
    """
    near: dict[tuple[str, str, str], Outcomes] = defaultdict(Counter)
    far: dict[tuple[str, str, str], Outcomes] = defaultdict(Counter)
    for (before, part, after, noisy), count in sorted(counts.items()):
        near[before, part, after][noisy, SAME] += count
        far["", part, _place(before, after)][noisy, SAME] += count
    coarser: dict[tuple[str, str, str], tuple[int, float]] = {}
    for key, outcomes in far.items():
        # `outcomes` counts the changes of the part, and the words that contain it. If no word is
        # counted, the + 1 keeps the rate below 1.
        rate = (outcomes.total() - outcomes[key[1], SAME]) / (outcomes.total() + 1)
        group = channel.add(rate, _form_weights(outcomes, key[1]))
        coarser[key] = group, rate
        channel.letters[key] = group, int(rate * (1 << WEIGHT_BITS))
    for key, outcomes in near.items():
        base = coarser["", key[1], _place(key[0], key[2])]
        group, chance = _add_finer(channel, outcomes, key[1], base, LETTER_PRIOR)
        channel.letters[key] = group, int(chance * (1 << WEIGHT_BITS))


def _place(before: str, after: str) -> str:
    return START if before == START else END if after == END else ""


def _form_weights(outcomes: Outcomes, clean: str) -> Weights:
    """Return {option: weight} for the counted replacements of `clean`, a gap or some letters.

    A gap is the text between two words. Options are sorted, so that every run has the same order.
    """
    changed = sorted(
        (noisy, written, count)
        for (noisy, written), count in outcomes.items()
        if noisy is not None and (noisy, written) != (clean, SAME)
    )
    return {Option(FORM, noisy, written): float(count) for noisy, written, count in changed}


def _add_finer(
    channel: Channel, outcomes: Outcomes, clean: str, coarser: tuple[int, float], prior: float
) -> tuple[int, float]:
    """Add the group of a gap or of letters in one context; return its index and rate of change.

    `outcomes` counts the replacements of `clean`, the gap or letters. `coarser` has index
    and rate of the group for all contexts; `prior` is the weight of this rate in `_smoothed`. Rare
    replacements, which the profile does not list, are drawn from that group if it has options.
    """
    base, rate = coarser
    weights = _form_weights(outcomes, clean)
    if channel.groups[base].options:
        weights[Option(COARSER, "", base)] = prior * rate + outcomes[None, SAME]
    total = outcomes.total()
    chance = _smoothed(total - outcomes[clean, SAME], total, rate, prior)
    return channel.add(chance, weights), chance
