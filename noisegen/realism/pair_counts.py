"""Count the changes in real pairs: of words, of gaps between words, and of whole rows."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple

from noisegen.noising import profile as profiles
from noisegen.noising.profile import (
    END,
    PHRASE_MAX,
    SAME,
    GapKey,
    HabitKey,
    Profile,
    RowKey,
    WordKey,
)
from noisegen.realism.row_factors import Repeat, RowEdits
from noisegen.text.alignment import Span, TokenEdit, edits, token_spans
from noisegen.text.buffers import is_word
from noisegen.text.case import TITLE, bare, capitals, case_of, cased, lower

ROW_WORDS_MAX = 200  # words; a row with more is counted as a row with this many
EDITS_MAX = 60  # changed words or gaps; a row with more is counted as a row with this many
_SLASH = re.compile(r"/\w*")
_UNKNOWN = (-1, -1)  # stands for unknown offsets of a word in the noisy text

CountedPair = tuple[tuple[str, str], int]  # ((clean text, noisy text), number of occurrences)
Form = tuple[str, str | None]  # (word or gap, its replacement); None stands for any replacement


@dataclass
class PairCounts:
    """Counts over a set of different pairs (clean text, noisy text).

    `counts` is a noise profile with the changes. `seen` counts the pairs with a word or gap, and
    the pairs with a replacement of it. `rows` has a clean text and its numbers of edits per pair.
    `repeats` counts words that occur twice in a text, by which of the two occurrences changed.
    """

    counts: Profile
    seen: Counter[Form] = field(default_factory=Counter)
    rows: list[RowEdits] = field(default_factory=list)
    repeats: Counter[Repeat] = field(default_factory=Counter)

    def add_pair(self, clean: str, noisy: str, times: int) -> None:
        """Add the changes of a pair that occurs `times` times."""
        row, counts = row_of(clean, noisy), self.counts
        changed = sum(word.noisy != word.clean or word.written != SAME for word in row.words)
        gap_edits = sum(gap.gap != gap.noisy for gap in row.gaps)
        totals = {"pairs": 1, "changed": int(clean != noisy), "edits": row.edits}
        for _ in range(times):
            counts.words.update(row.words)
            counts.gaps.update(row.gaps)
            counts.habits.update(row.habits)
            counts.totals.update(totals, words=len(row.words))
        size = min(len(row.words), ROW_WORDS_MAX)
        counts.rows[RowKey(size, min(changed, EDITS_MAX), min(gap_edits, EDITS_MAX))] += times
        self.rows.append(RowEdits(clean, changed, gap_edits, times))
        if changed:
            self.repeats.update(_repeats(row.words))
        self._add_seen(row)

    def _add_seen(self, row: "RowKeys") -> None:
        """Add a pair to `seen`: each word, gap and replacement once, however often it occurs."""
        word_forms = {(word.clean, word.noisy) for word in row.words}
        self.seen.update(form for form in word_forms if form[1] is not None)
        self.seen.update({(word.clean, None) for word in row.words})
        gap_forms = {(gap.gap, gap.noisy) for gap in row.gaps}
        self.seen.update(gap_forms)
        self.seen.update((gap, None) for gap, _ in gap_forms)

    def add(self, other: "PairCounts") -> "PairCounts":
        """Add the counts of other pairs to this object, and return it."""
        for name in ("totals", *profiles.TABLES):
            getattr(self.counts, name).update(getattr(other.counts, name))
        self.seen.update(other.seen)
        self.rows.extend(other.rows)
        self.repeats.update(other.repeats)
        return self


def count_pairs(lang: str, pairs: Sequence[CountedPair]) -> PairCounts:
    """Return the counts of different pairs, as one task of a worker."""
    found = PairCounts(Profile(lang))
    for (clean, noisy), times in pairs:
        found.add_pair(clean, noisy, times)
    return found


def _repeats(words: Sequence[WordKey]) -> Iterator[Repeat]:
    """Yield each word that a row repeats, and whether its first and second occurrence changed.

    Phrases are left out.
    """
    changed: dict[str, list[bool]] = {}
    for key in words:
        changed.setdefault(key.clean, []).append(key.noisy != key.clean)
    for word, flags in changed.items():
        if len(flags) > 1 and " " not in word:
            yield Repeat(word, *flags[:2])


class RowKeys(NamedTuple):
    """The keys under which a pair is counted: a key per word, gap between words, and habit.

    A habit is a way to write a whole row, such as all in lower case. `habits` has each habit that
    would change the clean row, and whether the noisy row shows this habit. `edits` is the
    number of edits in the pair.
    """

    words: list[WordKey]
    gaps: list[GapKey]
    habits: list[HabitKey]
    edits: int


def row_of(clean: str, noisy: str) -> RowKeys:
    """Return the keys (words, gaps, habits) under which a pair is counted.

    An edit before a word may be the cause of its new case ('Es alta' -> 'Ella es alta'). So if the
    gap before a word changed, or the word before it was removed, its new case is counted with that
    gap or removed word, and the word itself counts as unchanged.
    """
    habits = _habits(clean, noisy)
    shown = next((habit.habit for habit in habits if habit.shown), "")
    changes = edits(clean, noisy)
    aligned = _with_slashes(clean, noisy, list(_aligned(clean, noisy, changes)))
    words = []
    for number, (span, target) in enumerate(aligned):
        form = _form_at(noisy, target)
        words.append(_word_key(clean[slice(*span)], form, not number, shown))
    rights = [*(word.clean.partition(" ")[0] for word in words), END]
    gaps = []
    for gap in _gaps(clean, noisy, aligned):
        case = _pop_case(words, gap.word) if gap.clean != gap.noisy else SAME
        gaps.append(GapKey(rights[gap.word], not gap.word, gap.clean, gap.noisy, case))
    for number, word in enumerate(words):
        if word.noisy == "":
            words[number] = word._replace(written=_pop_case(words, number + 1))
    return RowKeys(words, gaps, habits, len(changes))


def _form_at(noisy: str, target: Span | None) -> str | None:
    """Return the noisy form of a word: the part of `noisy` between the offsets `target`.

    Returns '' for a removed word (`target` is None), and None if `target` is `_UNKNOWN`.
    """
    if target is None:
        return ""
    return None if target == _UNKNOWN else noisy[slice(*target)]


def _habits(clean: str, noisy: str) -> list[HabitKey]:
    """Return a key per habit that would change `clean`; `shown` marks the first that `noisy` has.

    A habit is a way to write a whole row, such as all in lower case.
    """
    habits: list[HabitKey] = []
    is_any_shown = False
    for name, write in profiles.ROW_HABITS.items():
        if _could_show(name, clean):
            is_so = noisy.isupper() if name == "upper" else noisy == write(noisy)
            habits.append(HabitKey(name, is_so and not is_any_shown))
            is_any_shown = is_any_shown or is_so
    return habits


def _could_show(habit: str, clean: str) -> bool:
    """Tell whether a habit such as "upper" would change two or more characters of a clean row."""
    if habit == "small":
        return sum(a != b for a, b in zip(clean, lower(clean), strict=True)) > 1
    if habit == "upper":
        return sum(character.islower() for character in clean) > 1
    return not clean.isascii() and sum(len(bare(c)) == 1 and bare(c) != c for c in clean) > 1


def _word_key(text: str, noisy: str | None, initial: bool, habit: str) -> WordKey:
    """Return the key of the word or phrase `text` and its noisy form.

    `noisy` is '' if the word was removed, None if its form is unknown. `initial` is True for the
    first word of a row. Changes that the row's `habit`, such as 'upper', causes are not counted.
    """
    clean, case = lower(text), case_of(text.partition(" ")[0], initial)
    if not noisy:
        return WordKey(clean, case, noisy, SAME)
    if habit == "bare" and noisy == bare(text):
        return WordKey(clean, case, clean, SAME)
    form = lower(noisy)
    written = profiles.UPPER_CASE if noisy == capitals(form) else SAME
    if noisy in (text, cased(form, case)) or habit in ("small", "upper"):
        written = SAME
    elif noisy in (form, cased(form, TITLE)):
        written = profiles.SMALL_CASE if noisy == form else profiles.TITLE_CASE
    return WordKey(clean, case, form, written)


def _pop_case(words: list[WordKey], number: int) -> int:
    """Return the new case of the word `words[number]`, and reset it there to SAME (unchanged).

    Nothing is reset, and SAME is returned, if the word became upper case, if its letters changed,
    or if there is no word with this index.
    """
    key = words[number] if number < len(words) else None
    if key is None or key.noisy != key.clean or key.written == profiles.UPPER_CASE:
        return SAME
    words[number] = key._replace(written=SAME)
    return key.written


# Alignment: the offsets of words and gaps in the noisy text.


class AlignedWord(NamedTuple):
    """Offsets of a word or phrase in the clean text (`span`) and in the noisy text (`target`).

    `target` is None if the word was removed, `_UNKNOWN` if its offsets are unknown.
    """

    span: Span
    target: Span | None


def _aligned(clean: str, noisy: str, changes: Sequence[TokenEdit]) -> Iterator[AlignedWord]:
    """Yield every word of the clean text with its offsets in the noisy text."""
    ours, theirs = token_spans(clean), token_spans(noisy)
    starts, noisy_starts = [span[0] for span in ours], [span[0] for span in theirs]
    at = noisy_at = 0
    end = TokenEdit(len(clean), len(clean), len(noisy), len(noisy))
    for edit in [*changes, end]:
        first = bisect_left(starts, edit.clean_start)
        stop = bisect_left(starts, edit.clean_stop)
        noisy_first = bisect_left(noisy_starts, edit.noisy_start)
        noisy_stop = bisect_left(noisy_starts, edit.noisy_stop)
        for same, noisy_same in zip(ours[at:first], theirs[noisy_at:noisy_first], strict=True):
            yield from _targets(clean, noisy, [same], [noisy_same])
        yield from _targets(clean, noisy, ours[first:stop], theirs[noisy_first:noisy_stop])
        at, noisy_at = stop, noisy_stop


def _with_slashes(clean: str, noisy: str, words: list[AlignedWord]) -> list[AlignedWord]:
    """Return the words with a slash, and letters after it, as a part of a changed form.

    'with' becomes 'w/' and 'without' 'w/o', not 'w' before another gap. A slash that the clean text
    has stays in its gap, and so do letters of the next word.
    """
    nexts = [*(word.target for word in words[1:]), (len(noisy), len(noisy))]
    joined = []
    for (span, target), following in zip(words, nexts, strict=False):
        if target and _UNKNOWN not in (target, following) and clean[span[1] : span[1] + 1] != "/":
            is_changed = lower(noisy[slice(*target)]) != lower(clean[slice(*span)])
            slash = _SLASH.match(noisy, target[1], following[0] if following else len(noisy))
            if is_changed and slash:
                target = target[0], slash.end()
        joined.append(AlignedWord(span, target))
    return joined


def _targets(
    clean: str, noisy: str, ours: Sequence[Span], theirs: Sequence[Span]
) -> Iterator[AlignedWord]:
    """Yield the words among the clean tokens `ours`, with their offsets in the noisy text.

    The noisy tokens `theirs` replace them. Words that are replaced by fewer words, as in
    'going to' -> 'gonna', are yielded as one phrase.
    """
    words = [span for span in ours if is_word(clean[span[0]])]
    if not theirs:
        yield from (AlignedWord(word, None) for word in words)
        return
    whole = theirs[0][0], theirs[-1][1]
    has_word_ends = is_word(noisy[theirs[0][0]]) and is_word(noisy[theirs[-1][0]])
    are_words = len(ours) == len(words) and has_word_ends
    is_one_form = len(ours) > 1 and len(theirs) == 1
    if is_one_form and _are_run_together(clean, words, noisy[slice(*whole)]):
        stops = accumulate((stop - start for start, stop in words), initial=whole[0])
        yield from map(AlignedWord, words, pairwise(stops))
    elif are_words and _is_phrase(clean, words, len(theirs)):
        yield AlignedWord((words[0][0], words[-1][1]), whole)
    else:
        yield from (AlignedWord(word, _UNKNOWN) for word in words)


def _are_run_together(clean: str, words: Sequence[Span], form: str) -> bool:
    """Tell whether a noisy form is the clean words without spaces: 'a lot' -> 'alot'."""
    joined = "".join(clean[slice(*word)] for word in words)
    return lower(joined) == lower(form)


def _is_phrase(clean: str, words: Sequence[Span], noisy_tokens: int) -> bool:
    """Tell whether clean words are a phrase that became fewer noisy tokens, or a single word.

    A phrase has up to `PHRASE_MAX` words with single spaces between them.
    """
    if len(words) == 1:
        return True
    if not noisy_tokens < len(words) <= PHRASE_MAX:
        return False
    phrase = clean[words[0][0] : words[-1][1]]
    return phrase.split(" ") == [clean[slice(*word)] for word in words]


class Gap(NamedTuple):
    """A gap, its replacement, and the index of the word after the gap.

    A gap is the text between two words, before the first word or after the last word of a row.
    """

    word: int
    clean: str
    noisy: str


def _gaps(clean: str, noisy: str, aligned: Sequence[AlignedWord]) -> Iterator[Gap]:
    """Yield every gap of a row whose replacement is known."""
    start = AlignedWord((0, 0), (0, 0))
    end = AlignedWord((len(clean), len(clean)), (len(noisy), len(noisy)))
    edges = [start, *aligned, end]
    first = noisy_stop = 0
    for number, (_, target) in enumerate(edges[1:], 1):
        if target is None or target == _UNKNOWN:
            continue
        between = edges[first : number + 1]
        gaps = [clean[a.span[1] : b.span[0]] for a, b in pairwise(between)]
        written = noisy[noisy_stop : target[0]]
        if all(word.target != _UNKNOWN for word in between):
            if len(gaps) == 1:
                yield Gap(first, gaps[0], written)
            # Only words were removed: the gaps around them count as unchanged
            elif written == reduce(_without_word, gaps):
                yield from (Gap(word, gap, gap) for word, gap in enumerate(gaps, first))
        first, noisy_stop = number, target[1]


def _without_word(before: str, after: str) -> str:
    """Join the gaps before and after a removed word; return the gap that remains.

    One space is removed with the word: the space before it, or after it at the start of a text.
    """
    if before.endswith(" "):
        return before[:-1] + after
    return before + (after[1:] if not before and after.startswith(" ") else after)
