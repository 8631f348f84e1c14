"""A profile compiled to chances: for each word, gap and part of a word, what it becomes how often.

Counts are smoothed towards coarser ones: a word in its case, the word in any case, words of its
length and case; a gap before its word, the gap before any word; letters between their neighbours,
the letters by their place in the word. The arithmetic is that of Python's floats, the results are
whole numbers, so that all machines have the same.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from noisegen.realism.channel_habits import HABITS
from noisegen.realism.evidence import END, START
from noisegen.realism.letters import CASES, SHAPES, shape_of
from noisegen.realism.profile import (
    GONE,
    KEPT,
    LETTERS,
    OTHER,
    SAME,
    WRITTEN,
    GapKey,
    HabitKey,
    Profile,
    ShapeKey,
)

CHANCE_BITS = 32
WEIGHT_BITS = 20
# Counts that a coarser estimate is worth.
WORD_PRIOR, CASE_PRIOR, SHAPE_PRIOR, GAP_PRIOR, LETTER_PRIOR = 3.0, 4.0, 4.0, 10.0, 3.0
FORM, AS_WRITTEN, WORD_GONE, SOME_LETTERS, COARSER = range(5)  # kinds of option


class Option(NamedTuple):
    """What a thing may become.

    FORM: `noisy`, in small letters for words, `how` it is written (see `profile`); AS_WRITTEN: the
    word itself, written so; WORD_GONE; SOME_LETTERS: changes of letters in `how` many places;
    COARSER: what group `how` says, or the group of the word's shape for -1. Of gaps and words gone
    `how` says how the next word is written.
    """

    kind: int
    noisy: str = ""
    how: int = SAME


@dataclass(frozen=True)
class Group:
    """What may become of a thing.

    `chance` is out of 2^32; of the options one is drawn by `bounds`, cumulative out of 2^32.
    """

    chance: int
    options: tuple[Option, ...]
    bounds: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """All groups, and which of them a thing has.

    `words`: by word and case; `shapes`: by shape; `gaps`: by word behind ('': any), whether it
    begins its row, gap; `letters`: by neighbours and letters, or ('', letters, place): group and
    weight. `habits`: cumulative chances of the habits of rows.
    """

    lang: str
    groups: list[Group] = field(default_factory=list)
    words: dict[tuple[str, int], int] = field(default_factory=dict)
    shapes: list[int] = field(default_factory=list)
    gaps: dict[tuple[str, bool, str], int] = field(default_factory=dict)
    letters: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    habits: list[int] = field(default_factory=list)

    def add(self, chance: float, weights: Mapping[Option, float]) -> int:
        """Add a group and return its number."""
        options = tuple(option for option, weight in weights.items() if weight > 0)
        sums = list(accumulate(weights[option] for option in options))
        bounds = tuple(int(part / sums[-1] * (1 << CHANCE_BITS)) for part in sums)
        whole = int(min(chance, 1.0) * (1 << CHANCE_BITS)) if options else 0
        self.groups.append(Group(whole, options, bounds))
        return len(self.groups) - 1


def compiled(profile: Profile) -> Channel:
    """Return the chances of a profile."""
    channel = Channel(profile.lang)
    _add_shapes(channel, profile.shapes)
    _add_words(channel, profile)
    _add_gaps(channel, profile.gaps)
    _add_letters(channel, profile)
    _add_habits(channel, profile.habits)
    return channel


def _add_habits(channel: Channel, counts: Mapping[HabitKey, int]) -> None:
    """Add up the chances of the habits; with all of them a row still may have none."""
    total = 0.0
    for habit in HABITS:
        shown, other = (counts.get(HabitKey(habit, shows), 0) for shows in (True, False))
        total += shown / max(1, shown + other)
        channel.habits.append(int(min(total, 1.0) * (1 << CHANCE_BITS)))


def _add_shapes(channel: Channel, counts: Mapping[ShapeKey, int]) -> None:
    """Add the groups of words that nothing is known of."""
    kept = Counter({key.shape: count for key, count in counts.items() if key.change == KEPT})
    changed: dict[int, Counter[str]] = {shape: Counter() for shape in range(SHAPES)}
    every: Counter[str] = Counter()
    for key, count in counts.items():
        if key.change != KEPT:
            changed[key.shape][key.change] += count
            every[key.change] += count
    rate = every.total() / max(1, kept.total() + every.total())
    every = every or Counter({LETTERS[1]: 1})
    for shape in range(SHAPES):
        mine = changed[shape]
        total = kept[shape] + mine.total()
        weights: dict[Option, float] = {}
        for change in sorted(every):
            share = SHAPE_PRIOR * max(rate, 1e-9) * every[change] / every.total()
            option = _shape_option(change)
            weights[option] = weights.get(option, 0.0) + mine[change] + share
        chance = (mine.total() + SHAPE_PRIOR * rate) / (total + SHAPE_PRIOR)
        channel.shapes.append(channel.add(chance, weights))


def _shape_option(change: str) -> Option:
    if change == GONE:
        return Option(WORD_GONE)
    if change in WRITTEN:
        return Option(AS_WRITTEN, "", WRITTEN.index(change))
    return Option(SOME_LETTERS, "", 1 if change == OTHER else LETTERS.index(change))


Outcome = tuple[str | None, int]  # noisy and how it is written, as in a WordKey


def _add_words(channel: Channel, profile: Profile) -> None:
    """Add four groups for each word that is known, one for each case."""
    by_word: dict[str, dict[int, Counter[Outcome]]] = {}
    for key, count in sorted(profile.words.items(), key=lambda item: item[0][:2]):
        cases = by_word.setdefault(key.clean, {})
        cases.setdefault(key.case, Counter())[key.noisy, key.written] += count
    rates = _shape_rates(profile)
    for word, cases in by_word.items():
        pooled, seen = _pooled(word, cases)
        common = max(cases, key=lambda case: (cases[case].total(), case))
        prior = WORD_PRIOR * rates[shape_of(word, common)]
        rate = (pooled.total() + prior) / (seen + WORD_PRIOR)
        for case in range(len(CASES)):
            mine = cases.get(case, Counter())
            weights = _word_weights(word, mine, pooled, prior, CASE_PRIOR * rate)
            changed = mine.total() - mine[word, SAME]
            chance = (changed + CASE_PRIOR * rate) / (mine.total() + CASE_PRIOR)
            channel.words[word, case] = channel.add(chance, weights)


def _pooled(word: str, cases: Mapping[int, Counter[Outcome]]) -> tuple[Counter[Outcome], int]:
    """Return what a word became in all its cases, but for how it is written, and its count."""
    pooled: Counter[Outcome] = Counter()
    for outcomes in cases.values():
        for (noisy, _), count in outcomes.items():
            if noisy != word:
                pooled[noisy, SAME] += count
    return pooled, sum(outcomes.total() for outcomes in cases.values())


def _word_weights(
    word: str, mine: Counter[Outcome], pooled: Counter[Outcome], prior: float, coarser: float
) -> dict[Option, float]:
    """Return the options of a word in a case: its own, those of any case, those of its shape."""
    weights: dict[Option, float] = {}
    share = coarser / (pooled.total() + prior) if pooled.total() + prior else 0.0
    for outcomes, factor in ((mine, 1.0), (pooled, share)):
        for (noisy, written), count in outcomes.items():
            if (noisy, written) != (word, SAME):
                option = _word_option(noisy, written)
                weights[option] = weights.get(option, 0.0) + count * factor
    vague = Option(COARSER, "", -1)
    weights[vague] = weights.get(vague, 0.0) + prior * share
    return weights


def _word_option(noisy: str | None, written: int) -> Option:
    if noisy is None:
        return Option(COARSER, "", -1)
    return Option(FORM, noisy, written) if noisy else Option(WORD_GONE, "", written)


def _shape_rates(profile: Profile) -> list[float]:
    """Return for every shape the share of all its words that changed."""
    changed, seen = Counter[int](), Counter[int]()
    for key, count in profile.words.items():
        shape = shape_of(key.clean, key.case)
        seen[shape] += count
        changed[shape] += count * ((key.noisy, key.written) != (key.clean, SAME))
    for unknown, count in profile.shapes.items():
        seen[unknown.shape] += count
        changed[unknown.shape] += count * (unknown.change != KEPT)
    rate = changed.total() / max(1, seen.total())
    return [
        (changed[shape] + SHAPE_PRIOR * rate) / (seen[shape] + SHAPE_PRIOR)
        for shape in range(SHAPES)
    ]


def _add_gaps(channel: Channel, counts: Mapping[GapKey, int]) -> None:
    """Add the groups of gaps, and of gaps before certain words."""
    found: dict[tuple[bool, str], dict[str, Counter[Outcome]]] = {}
    for key, count in sorted(counts.items(), key=lambda item: item[0][:3]):
        place = found.setdefault((key.initial, key.gap), {})
        for right in {key.right, ""}:
            place.setdefault(right, Counter())[key.noisy, key.written] += count
    for (initial, gap), words in found.items():
        every = words.pop("")
        rate = 1 - every[gap, SAME] / every.total()
        weights = _gap_weights(every, gap)
        base = channel.add(rate, weights)
        channel.gaps["", initial, gap] = base
        for right, outcomes in words.items():
            mine = _gap_weights(outcomes, gap)
            if weights:
                mine[Option(COARSER, "", base)] = GAP_PRIOR * rate + outcomes[None, SAME]
            total = outcomes.total()
            chance = (total - outcomes[gap, SAME] + GAP_PRIOR * rate) / (total + GAP_PRIOR)
            channel.gaps[right, initial, gap] = channel.add(chance, mine)


def _gap_weights(outcomes: Mapping[Outcome, int], gap: str) -> dict[Option, float]:
    changed = sorted(
        (noisy, written, count)
        for (noisy, written), count in outcomes.items()
        if noisy is not None and (noisy, written) != (gap, SAME)
    )
    return {Option(FORM, noisy, written): float(count) for noisy, written, count in changed}


def _sorted(outcomes: Mapping[str, int], kept: str) -> list[tuple[str, int]]:
    return sorted((noisy, count) for noisy, count in outcomes.items() if noisy != kept)


def place_of(before: str, after: str) -> str:
    """Return where in its word a part between these letters stands: START, END or ''."""
    return START if before == START else END if after == END else ""


def _add_letters(channel: Channel, profile: Profile) -> None:
    """Add the groups of parts of words, by neighbours and by place."""
    near: dict[tuple[str, str, str], Counter[str]] = {}
    far: dict[tuple[str, str, str], Counter[str]] = {}
    for (before, part, after, noisy), count in sorted(profile.letters.items()):
        near.setdefault((before, part, after), Counter())[noisy] += count
        far.setdefault(("", part, place_of(before, after)), Counter())[noisy] += count
    for key, outcomes in far.items():
        rate = _rate(outcomes, key[1])
        weights = {Option(FORM, noisy): float(n) for noisy, n in _sorted(outcomes, key[1])}
        channel.letters[key] = channel.add(rate, weights), _weight(rate)
    for (before, part, after), outcomes in near.items():
        coarse = "", part, place_of(before, after)
        rate = _rate(far[coarse], part)
        total = sum(outcomes.values())
        weights = {Option(FORM, noisy): float(n) for noisy, n in _sorted(outcomes, part)}
        weights[Option(COARSER, "", channel.letters[coarse][0])] = LETTER_PRIOR * rate
        mine = (total - outcomes[part] + LETTER_PRIOR * rate) / (total + LETTER_PRIOR)
        channel.letters[before, part, after] = channel.add(mine, weights), _weight(mine)


def _rate(outcomes: Mapping[str, int], part: str) -> float:
    """Return how often a part changed; words that have it and changes are counted apart."""
    changed = sum(count for noisy, count in outcomes.items() if noisy != part)
    return changed / (changed + outcomes.get(part, 0) + 1)


def _weight(rate: float) -> int:
    return int(rate * (1 << WEIGHT_BITS))
