"""A profile from real pairs: count what happened to words, gaps, letters and rows.

What is kept. A word is kept if it stands in at least `min_count` different pairs. What stands for
it is kept if it did so in as many pairs, or if it is a slip of the word itself: up to two letters
changed. A gap and what stands for it are kept by the first rule, with at most two words in them.
All else is counted without its text. So no text of over three words leaves the pairs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rapidfuzz.distance import OSA

from noisegen.realism import row_factors
from noisegen.realism.alignment import token_spans
from noisegen.realism.channel_habits import HABITS
from noisegen.realism.channel_model import CHANCE_BITS, Channel, compiled
from noisegen.realism.evidence import END, GapEvent, WordEvent, evidence
from noisegen.realism.letter_changes import LetterChange, changes, in_context, sites
from noisegen.realism.letters import TITLE, bare, cased, lower, shape_of
from noisegen.realism.pairs import Pairs
from noisegen.realism.profile import (
    GONE,
    LETTERS,
    OTHER,
    SAME,
    SMALL_CASE,
    TITLE_CASE,
    UPPER_CASE,
    WRITTEN,
    GapKey,
    HabitKey,
    LetterKey,
    Profile,
    RowKey,
    ShapeKey,
    WordKey,
)
from noisegen.realism.row_factors import Chances

MIN_COUNT = 2  # different pairs that a word, or what stands for it, must be seen in
SLIP_MAX = 2  # edits (Damerau) of a form that is kept though it was seen once
GAP_WORDS_MAX = 2  # words in a gap that is kept
FORM_MAX = 60  # characters of a form that is kept
CONTEXT_MIN = 5  # words that have some letters between two others, for a count without changes
ROW_WORDS_MAX = 200  # longer rows count as this long
EDITS_MAX = 60
CONTEXT_MIN = 5  # words that have some letters between two others, for a count without changes


def profile_of(pairs: Pairs, lang: str = "en", min_count: int = MIN_COUNT) -> Profile:
    """Return the profile of pairs; see the module for what is kept."""
    tally = _Tally()
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        tally.add(clean, noisy)
    return fitted(tally.profile(lang, min_count))


def fitted(profile: Profile) -> Profile:
    """Return a profile with the factors of its rows."""
    channel = compiled(profile)
    words, gaps = Counter[int](), Counter[int]()
    for key, count in profile.words.items():
        words[channel.words[key.clean, key.case]] += count
    for shape, count in profile.shapes.items():
        words[channel.shapes[shape.shape]] += count
    for gap, count in profile.gaps.items():
        gaps[channel.gaps[gap[:3]]] += count
    chances = [_chances(channel, counts) for counts in (words, gaps)]
    return replace(profile, factors=row_factors.fitted(profile.rows, *chances))


def _chances(channel: Channel, counts: Mapping[int, int]) -> Chances:
    """Return the chances of groups with how often they were met."""
    chances = [channel.groups[group].chance / (1 << CHANCE_BITS) for group in counts]
    return Chances(np.array(chances), np.array(list(counts.values()), np.float64))


@dataclass
class _Tally:
    """What was seen so far; `*_pairs` count in how many different pairs."""

    totals: Counter[str] = field(default_factory=Counter)
    words: Counter[WordKey] = field(default_factory=Counter)
    gaps: Counter[GapKey] = field(default_factory=Counter)
    rows: Counter[RowKey] = field(default_factory=Counter)
    habits: Counter[HabitKey] = field(default_factory=Counter)
    word_pairs: Counter[str] = field(default_factory=Counter)
    form_pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    gap_pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def add(self, clean: str, noisy: str) -> None:
        """Count one pair."""
        habit = self._habit(clean, noisy)
        found = evidence(clean, noisy)
        words = [_word_key(event, habit) for event in found.words]
        gaps = _gap_keys(found.gaps, words)
        self.words.update(words)
        self.gaps.update(gaps)
        changed = sum(key.noisy != key.clean or key.written != SAME for key in words)
        gap_edits = sum(gap.gap != gap.noisy for gap in gaps)
        self.rows[RowKey(min(len(words), ROW_WORDS_MAX), min(changed, EDITS_MAX),
                         min(gap_edits, EDITS_MAX))] += 1  # fmt: skip
        self.totals.update(pairs=1, changed=clean != noisy, edits=found.edits, words=len(words))
        if (clean, noisy) not in self.seen:
            self.seen.add((clean, noisy))
            self._witness(words, gaps)

    def _witness(self, words: list[WordKey], gaps: list[GapKey]) -> None:
        """Count in how many different pairs words, forms and gaps were seen."""
        self.word_pairs.update({key.clean for key in words})
        self.form_pairs.update({(key.clean, key.noisy) for key in words if key.noisy is not None})
        self.gap_pairs.update({(key.gap, key.noisy or "") for key in gaps})

    def _habit(self, clean: str, noisy: str) -> str:
        """Return the habit that a noisy row shows, '' for none; count who could and who did."""
        shown = ""
        for habit in HABITS:
            if _could_show(habit, clean):
                shows = not shown and _shows(habit, noisy)
                self.habits[HabitKey(habit, shows)] += 1
                shown = habit if shows else shown
        return shown

    def profile(self, lang: str, min_count: int) -> Profile:
        """Return what is kept."""
        known = {word for word, count in self.word_pairs.items() if count >= min_count}
        slips = _slips(self.words)
        words: Counter[WordKey] = Counter()
        shapes: Counter[ShapeKey] = Counter()
        for key, count in self.words.items():
            if key.clean not in known:
                shape = shape_of(key.clean, key.case)
                shapes[ShapeKey(shape, _change(key, slips))] += count
            elif key.noisy is None or self._is_kept(key.clean, key.noisy, min_count):
                words[key] += count
            else:
                words[key._replace(noisy=None, written=SAME)] += count
        letters = _letters(slips, {key.clean for key in self.words})
        gaps = self._gaps(known, min_count)
        return Profile(lang, self.totals, words, gaps, letters, shapes, self.rows, self.habits)

    def _is_kept(self, clean: str, noisy: str, min_count: int) -> bool:
        if clean == noisy:
            return True
        if len(noisy) > FORM_MAX or len(token_spans(noisy)) > GAP_WORDS_MAX or _breaks(noisy):
            return False
        often = self.form_pairs[clean, noisy] >= min_count
        return often or OSA.distance(clean, noisy) <= min(SLIP_MAX, len(clean) - 1)

    def _gaps(self, known: set[str], min_count: int) -> Counter[GapKey]:
        """Return the gaps that are kept, with the words to their right that are."""
        kept: Counter[GapKey] = Counter()
        known = known | {END}
        gaps = Counter[str]()
        for (gap, _), count in self.gap_pairs.items():
            gaps[gap] += count
        for key, count in self.gaps.items():
            if gaps[key.gap] < min_count or not _fits(key.gap):
                continue
            noisy = key.noisy
            if noisy is not None and noisy != key.gap:
                often = self.gap_pairs[key.gap, noisy] >= min_count
                noisy = noisy if often and _fits(noisy) else None
            right = key.right if key.right in known else ""
            written = key.written if noisy is not None else SAME
            kept[GapKey(right, key.initial, key.gap, noisy, written)] += count
        return kept


def _gap_keys(gaps: Sequence[GapEvent], words: list[WordKey]) -> list[GapKey]:
    """Return what is counted of gaps.

    Where a gap changed, or the word before is gone, and the next word only changed its case, the
    one is taken for the reason of the other: 'Es alta' -> 'Ella es alta'.
    """
    keys = []
    for number, right, gap, noisy in gaps:
        written = _take_case(words, number) if gap != noisy else SAME
        keys.append(GapKey(right, not number, gap, noisy, written))
    for number, key in enumerate(words):
        if key.noisy == "":
            words[number] = key._replace(written=_take_case(words, number + 1))
    return keys


def _take_case(words: list[WordKey], number: int) -> int:
    """Return how a word is written if that is all that changed, and take it for unchanged."""
    key = words[number] if number < len(words) else None
    if key is None or key.noisy != key.clean or key.written not in (SMALL_CASE, TITLE_CASE):
        return SAME
    words[number] = key._replace(written=SAME)
    return key.written


def _fits(gap: str) -> bool:
    words = sum(gap[start].isalnum() for start, _ in token_spans(gap))
    return len(gap) <= FORM_MAX and words <= GAP_WORDS_MAX and not _breaks(gap)


def _breaks(text: str) -> bool:
    return text != "".join(text.splitlines())


def _word_key(event: WordEvent, habit: str) -> WordKey:
    """Return what is counted of a word; what a habit of its row did to it does not count."""
    text, case, noisy = event
    clean = lower(text)
    if not noisy:
        return WordKey(clean, case, noisy, SAME)
    if habit == "bare" and noisy == bare(text):
        return WordKey(clean, case, clean, SAME)
    form = lower(noisy)
    if noisy == text or habit in ("small", "upper"):
        return WordKey(clean, case, form, SAME)
    return WordKey(clean, case, form, _written(noisy, form, case))


def _written(noisy: str, form: str, case: int) -> int:
    """Return how a form is written: as its word's case asks, or in another."""
    if noisy == cased(form, case):
        return SAME
    if noisy == form:
        return SMALL_CASE
    if noisy == cased(form, TITLE):
        return TITLE_CASE
    return UPPER_CASE if noisy == form.upper() else SAME


Slips = dict[tuple[str, str], list[LetterChange]]


def _slips(words: Iterable[WordKey]) -> Slips:
    """Return for every word and what stands for it which letters changed, if that is a slip."""
    pairs = {(key.clean, key.noisy) for key in words if key.noisy and key.noisy != key.clean}
    found = {(clean, noisy): changes(clean, noisy) for clean, noisy in sorted(pairs)}
    return {pair: made for pair, made in found.items() if made}


def _change(key: WordKey, slips: Slips) -> str:
    """Return what became of a word, without saying which."""
    if key.noisy == key.clean:
        return WRITTEN[key.written]
    if key.noisy == "":
        return GONE
    made = slips.get((key.clean, key.noisy or ""), [])
    return LETTERS[min(len(made), len(LETTERS) - 1)] or OTHER


def _letters(slips: Slips, words: Iterable[str]) -> Counter[LetterKey]:
    """Count for parts of words in their contexts how often they changed, each word once."""
    found = Counter(
        LetterKey(*in_context(clean, change), change.noisy)
        for (clean, _), made in slips.items()
        for change in made
    )
    parts = frozenset(key.clean for key in found)
    contexts = {key[:3] for key in found}
    places = Counter(site for word in words for site in set(sites(word, parts)))
    for (before, part, after), count in places.items():
        if count >= CONTEXT_MIN or (before, part, after) in contexts:
            found[LetterKey(before, part, after, part)] = count
    return found


def _could_show(habit: str, clean: str) -> bool:
    """Tell whether a clean row has what the habit would change: twice at least."""
    if habit == "small":
        return sum(a != b for a, b in zip(clean, lower(clean), strict=True)) > 1
    if habit == "upper":
        return sum(character.islower() for character in clean) > 1
    return not clean.isascii() and sum(len(bare(c)) == 1 and bare(c) != c for c in clean) > 1


def _shows(habit: str, noisy: str) -> bool:
    if habit == "small":
        return noisy == lower(noisy)
    return noisy.isupper() if habit == "upper" else noisy == bare(noisy)
