"""Profiles learned from real pairs: what happened to words, gaps, letters and rows is counted.

What is kept. A word is kept if it occurs in at least `min_count` different pairs. Its replacement
is kept if it was seen in as many pairs, or if it is a slip of the word itself: up to two letters
changed. A gap and its replacement are kept by the first rule, with at most two words in them, and
phrases of up to three words. All else is counted without its text. So no text of more than three
words leaves the pairs.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial, reduce
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from rapidfuzz.distance import OSA, Levenshtein

from noisegen.data.pairs import Pairs, refuse_onto
from noisegen.errors import OutputError
from noisegen.noising import profile as profiles
from noisegen.noising.profile import (
    END,
    PHRASE_MAX,
    SAME,
    GapKey,
    HabitKey,
    LetterKey,
    Profile,
    WordKey,
)
from noisegen.noising.rng import mix, name_number
from noisegen.options import Strings, argument, decode, listed, option, public
from noisegen.realism.compare import FEW, PairOptions, doubts
from noisegen.realism.row_factors import Repeat, RowEdits, consistency, row_factors
from noisegen.runs.atomic import atomic, write_text, writing
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.lock import STATE
from noisegen.runs.options import ALONE, Folder, WorkerOptions
from noisegen.text.alignment import Span, TokenEdit, edits, token_spans
from noisegen.text.buffers import is_word
from noisegen.text.case import SMALL, TITLE, bare, case_of, cased, lower, shape_of
from noisegen.version import __version__

PAIRS_AT_ONCE = 2_000  # of a task
MIN_COUNT = 2  # different pairs that a word, or its replacement, must be seen in
SLIP_MAX = 2  # edits (Damerau) of a form that is kept though it was seen once
GAP_WORDS_MAX = 2  # words in a gap that is kept
FORM_MAX = 60  # characters of a form that is kept
CONTEXT_MIN = 5  # words that have some letters between two others, for a count without changes
ROW_WORDS_MAX = 200  # longer rows count as this long
EDITS_MAX = 60
WRITTEN_MAX = 4  # letters that a part of a word becomes; with more it is no slip
UNLIKE_MAX = 0.5  # share of a word's letters that may differ
LAYOUT: Layout[None] = Layout(
    "learn", profiles.HEAD, frozenset({"format", "digest", "factors"}),
    whole=(*(f"{name}.parquet" for name in profiles.TABLES), profiles.HEAD),
    columns=frozenset({"count"}),
)  # fmt: skip
CountedPair = tuple[tuple[str, str], int]  # clean and noisy text, and how often they occur
_LOST = (-1, -1)  # stands for the place of a word where nothing says what became of it


@dataclass(frozen=True)
class LearnOptions(PairOptions, WorkerOptions):
    """The pairs to learn from, the folder of the profile, and how the pairs are read."""

    sources: Annotated[Strings, argument("PAIRS...")]
    out: Annotated[Folder, option("Folder for the profile", "-o", "--out", metavar="PROFILE")]
    _: KW_ONLY
    min_count: Annotated[
        int, option("Minimum number of different pairs with a word and its replacement", ge=1)
    ] = MIN_COUNT
    force: Annotated[bool, option("Overwrite a profile")] = False


@dataclass(frozen=True)
class Learned:
    """A profile that was written, and what is reported of its pairs."""

    profile: Profile
    warnings: list[str]
    dropped: dict[str, int]
    damaged: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"digest": self.profile.digest, "lang": self.profile.lang,
                **self.profile.totals, "warnings": self.warnings,
                "dropped": self.dropped, "damaged": self.damaged}  # fmt: skip


@public
def learn(
    sources: Strings,
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    lang: str = "en",
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | Path | None = None,
    min_count: int = 2,
    force: bool = False,
) -> Learned:
    """Learn from pairs (see `pairs.read_pairs`) and write the profile; raises NoisegenError."""
    return _learn(decode(LearnOptions, locals()))


def _learn(options: LearnOptions) -> Learned:
    """Run `learn` with options that are checked."""
    check_free(options.out, options.force)
    refuse_onto(Path(options.out), listed(options.sources))
    with RunFolder(Path(options.out), LAYOUT, {}).locked(force=options.force):
        pairs = options.read(options.sources)
        profile = profile_of(pairs, options.lang, options.min_count, options)
        warnings = doubts(pairs, options.lang)
        if not profile.totals["edits"]:
            warnings.append("no pair differs: the profile makes no noise")
        save(profile, options.out)
    return Learned(profile, warnings, dict(sorted(pairs.dropped.items())), pairs.damaged)


def merge_profiles(sources: Sequence[str | Path], out: str | Path, force: bool = False) -> Profile:
    """Add up profiles of one language and write the sum; raises NoisegenError."""
    check_free(out, force)
    with RunFolder(Path(out), LAYOUT, {}).locked(force=force):
        profile = profiles.merged([profiles.load(source) for source in sources])
        save(profile, out)
    return profile


def check_free(out: str | Path, force: bool) -> None:
    """Raise OutputError for a folder with files; with `force` only if they are no profile.

    What a command that was killed has left is one that is not complete.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; a profile is a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not force:
        raise OutputError(f"{folder} is not empty; choose another folder or use --force")
    if not (folder / profiles.HEAD).is_file() and not (folder / STATE).is_dir():
        raise OutputError(f"{folder} holds files but no profile; choose another folder")


def save(profile: Profile, folder: str | Path) -> None:
    """Write the files of a profile, rows sorted by their keys; raises OutputError."""
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, (_, schema) in profiles.TABLES.items():
        counts = getattr(profile, name)
        keys = sorted(counts, key=lambda key: [(part is None, part) for part in key])
        rows = [dict(zip(schema.names, (*key, counts[key]), strict=True)) for key in keys]
        with atomic(folder / f"{name}.parquet") as file:
            pq.write_table(pa.Table.from_pylist(rows, schema), file, compression="zstd")
    totals = dict(sorted(profile.totals.items()))
    head = profiles.ProfileHead(
        profiles.FORMAT, profile.lang, __version__, profile.digest, totals, profile.factors,
        profile.consistency, profile.source, profile.license,
    )  # fmt: skip
    content = json.dumps(msgspec.to_builtins(head), ensure_ascii=False)
    write_text(folder / profiles.HEAD, content + "\n")


def profile_of(
    pairs: Pairs, lang: str = "en", min_count: int = MIN_COUNT,
    workers: WorkerOptions = ALONE,
) -> Profile:  # fmt: skip
    """Return the profile of pairs; see the module for what is kept.

    The factors of rows are fitted to one half with the chances of the other: with its own a row
    with errors looks as if they had been likely.
    """
    distinct = list(Counter(zip(pairs.clean, pairs.noisy, strict=True)).items())
    if len(distinct) < FEW:
        every = _all_counted(distinct, lang, workers)
        profile = _kept(every, min_count)
        return replace(profile, factors=row_factors(profile, every.rows))
    halves: tuple[list[CountedPair], list[CountedPair]] = [], []
    for pair in distinct:
        halves[mix(name_number(pair[0][0])) & 1].append(pair)  # those of a clean text together
    fitted, held = (_all_counted(half, lang, workers) for half in halves)
    factors = row_factors(_kept(fitted, min_count), held.rows)
    return replace(_kept(_added(fitted, held), min_count), factors=factors)


def _all_counted(pairs: list[CountedPair], lang: str, workers: WorkerOptions) -> "PairCounts":
    tasks = (pairs[at : at + PAIRS_AT_ONCE] for at in range(0, len(pairs), PAIRS_AT_ONCE))
    with closing(workers.in_order(partial(_counted, lang), tasks)) as counted:
        return reduce(_added, counted, PairCounts.none(lang))


class PairCounts(NamedTuple):
    """All that is counted in some pairs, in how many different ones each form is, and the rows.

    `repeats` counts words that are twice in a row, by whether the first and the second changed.
    """

    counts: Profile
    seen: Counter["Form"]
    rows: list[RowEdits]
    repeats: Counter[Repeat]

    @classmethod
    def none(cls, lang: str) -> "PairCounts":
        """Return the counts of no pairs."""
        return cls(Profile(lang), Counter(), [], Counter())


def _added(ours: PairCounts, theirs: PairCounts) -> PairCounts:
    """Add up the counts of different pairs, in place."""
    for name in ("totals", *profiles.TABLES):
        getattr(ours.counts, name).update(getattr(theirs.counts, name))
    ours.seen.update(theirs.seen)
    ours.rows.extend(theirs.rows)
    ours.repeats.update(theirs.repeats)
    return ours


def _counted(lang: str, pairs: Sequence[CountedPair]) -> PairCounts:
    """Count what is in different pairs, each of which occurs so often."""
    found = PairCounts.none(lang)
    counts, seen, rows, repeats = found
    for (clean, noisy), times in pairs:
        row = row_of(clean, noisy)
        changed = sum(word.noisy != word.clean or word.written != SAME for word in row.words)
        gap_edits = sum(gap.gap != gap.noisy for gap in row.gaps)
        totals = {"pairs": 1, "changed": int(clean != noisy), "edits": row.edits}
        for _ in range(times):
            counts.words.update(row.words)
            counts.gaps.update(row.gaps)
            counts.habits.update(row.habits)
            counts.totals.update(totals, words=len(row.words))
        size = min(len(row.words), ROW_WORDS_MAX)
        row_key = profiles.RowKey(size, min(changed, EDITS_MAX), min(gap_edits, EDITS_MAX))
        counts.rows[row_key] += times
        rows.append(RowEdits(clean, changed, gap_edits, times))
        if changed:
            repeats.update(_repeats(row.words))
        forms = {(word.clean, word.noisy) for word in row.words}
        gap_forms = {(gap.gap, gap.noisy) for gap in row.gaps}
        seen.update({(clean, None) for clean, _ in forms})
        seen.update(form for form in forms if form[1] is not None)
        seen.update([*gap_forms, *((gap, None) for gap, _ in gap_forms)])
    return found


def _repeats(words: Sequence[WordKey]) -> Iterator[Repeat]:
    """Yield each word that is twice in a row, with whether the first and the second changed."""
    changed: dict[str, list[bool]] = {}
    for key in words:
        changed.setdefault(key.clean, []).append(key.noisy != key.clean)
    for word, flags in changed.items():
        if len(flags) > 1 and " " not in word:
            yield Repeat(word, *flags[:2])


class RowKeys(NamedTuple):
    """What is counted of a pair."""

    words: list[WordKey]
    gaps: list[GapKey]
    habits: list[HabitKey]  # that it could show
    edits: int


def row_of(clean: str, noisy: str) -> RowKeys:
    """Return what is counted of a pair.

    Where a gap changed, or the word before is gone, and the next word only changed its case, the
    one is taken for the reason of the other: 'Es alta' -> 'Ella es alta'.
    """
    habits: list[HabitKey] = []
    for name, write in profiles.HABITS.items():
        if _could_show(name, clean):
            is_so = noisy.isupper() if name == "upper" else noisy == write(noisy)
            habits.append(HabitKey(name, is_so and not any(habit.shown for habit in habits)))
    shown = next((habit.habit for habit in habits if habit.shown), "")
    changes = edits(clean, noisy)
    aligned = list(_aligned(clean, noisy, changes))
    words, gaps = [], []
    for number, (span, target) in enumerate(aligned):
        form = None if target == _LOST else noisy[slice(*target)] if target else ""
        words.append(_word_key(clean[slice(*span)], form, not number, shown))
    rights = [*(word.clean.partition(" ")[0] for word in words), END]
    for number, gap, written in _gaps(clean, noisy, aligned):
        case = _take_case(words, number) if gap != written else SAME
        gaps.append(GapKey(rights[number], not number, gap, written, case))
    for number, word in enumerate(words):
        if word.noisy == "":
            words[number] = word._replace(written=_take_case(words, number + 1))
    return RowKeys(words, gaps, habits, len(changes))


def _could_show(habit: str, clean: str) -> bool:
    """Tell whether a clean row has what the habit would change: twice at least."""
    if habit == "small":
        return sum(a != b for a, b in zip(clean, lower(clean), strict=True)) > 1
    if habit == "upper":
        return sum(character.islower() for character in clean) > 1
    return not clean.isascii() and sum(len(bare(c)) == 1 and bare(c) != c for c in clean) > 1


def _word_key(text: str, noisy: str | None, initial: bool, habit: str) -> WordKey:
    """Return what is counted of a word; what a habit of its row did to it does not count."""
    clean, case = lower(text), case_of(text.partition(" ")[0], initial)
    if not noisy:
        return WordKey(clean, case, noisy, SAME)
    if habit == "bare" and noisy == bare(text):
        return WordKey(clean, case, clean, SAME)
    form = lower(noisy)
    written = profiles.UPPER_CASE if noisy == form.upper() else SAME
    if noisy in (text, cased(form, case)) or habit in ("small", "upper"):
        written = SAME
    elif noisy in (form, cased(form, TITLE)):
        written = profiles.SMALL_CASE if noisy == form else profiles.TITLE_CASE
    return WordKey(clean, case, form, written)


def _take_case(words: list[WordKey], number: int) -> int:
    """Return a word's case if only that changed, and mark the word as unchanged."""
    key = words[number] if number < len(words) else None
    if key is None or key.noisy != key.clean or key.written == profiles.UPPER_CASE:
        return SAME
    words[number] = key._replace(written=SAME)
    return key.written


# Where words and gaps went.


def _aligned(
    clean: str, noisy: str, changes: Sequence[TokenEdit]
) -> Iterator[tuple[Span, Span | None]]:
    """Yield every clean word with its place in the noisy text (None: it is gone)."""
    ours, theirs = token_spans(clean), token_spans(noisy)
    starts, noisy_starts = [span[0] for span in ours], [span[0] for span in theirs]
    at = noisy_at = 0
    for edit in [*changes, TokenEdit(len(clean), len(clean), len(noisy), len(noisy))]:
        first, stop = (bisect_left(starts, start) for start in edit[:2])
        noisy_first, noisy_stop = (bisect_left(noisy_starts, start) for start in edit[2:])
        for pair in zip(ours[at:first], theirs[noisy_at:noisy_first], strict=True):
            yield from _targets(clean, noisy, pair[:1], pair[1:])
        yield from _targets(clean, noisy, ours[first:stop], theirs[noisy_first:noisy_stop])
        at, noisy_at = stop, noisy_stop


def _targets(
    clean: str, noisy: str, ours: Sequence[Span], theirs: Sequence[Span]
) -> Iterator[tuple[Span, Span | None]]:
    """Yield the words among clean tokens, each with its place among the noisy ones, `theirs`.

    Words that became fewer are yielded as one, a phrase.
    """
    words = [span for span in ours if is_word(clean[span[0]])]
    texts = [noisy[slice(*span)] for span in theirs]
    joined = "".join(clean[slice(*span)] for span in words)
    targets: list[Span | None] = [_LOST if theirs else None] * len(words)
    is_words = bool(texts) and is_word(texts[0][0]) and is_word(texts[-1][0])
    if len(ours) == len(words) == 1 and is_words:
        targets = [(theirs[0][0], theirs[-1][1])]
    elif len(texts) == 1 and lower(joined) == lower(texts[0]):  # run together
        stops = accumulate((stop - start for start, stop in words), initial=theirs[0][0])
        targets = list(pairwise(stops))
    elif is_words and len(texts) < len(ours) == len(words) <= PHRASE_MAX:
        phrase = words[0][0], words[-1][1]
        if clean[slice(*phrase)].split(" ") == [clean[slice(*span)] for span in words]:
            words, targets = [phrase], [(theirs[0][0], theirs[-1][1])]
    yield from zip(words, targets, strict=True)


def _gaps(
    clean: str, noisy: str, aligned: Sequence[tuple[Span, Span | None]]
) -> Iterator[tuple[int, str, str]]:
    """Yield every gap and its replacement, with the number of the word after it.

    A gap is all that stands between two words, before the first or behind the last.
    """
    edges = [((0, 0), (0, 0)), *aligned, ((len(clean), len(clean)), (len(noisy), len(noisy)))]
    first = noisy_stop = 0
    for number, (_, target) in enumerate(edges[1:], 1):
        if target is None or target == _LOST:
            continue
        between = edges[first : number + 1]
        gaps = [clean[a[1] : b[0]] for (a, _), (b, _) in pairwise(between)]
        written = noisy[noisy_stop : target[0]]
        if all(place != _LOST for _, place in between):
            if len(gaps) == 1:
                yield first, gaps[0], written
            elif written == reduce(_without_word, gaps):
                yield from ((word, gap, gap) for word, gap in enumerate(gaps, first))
        first, noisy_stop = number, target[1]


def _without_word(before: str, after: str) -> str:
    """Return the gap where a word stood between two; the space before it goes, or that behind."""
    if before.endswith(" "):
        return before[:-1] + after
    return before + (after[1:] if not before and after.startswith(" ") else after)


# What is kept.


def _kept(found: PairCounts, min_count: int) -> Profile:
    """Return the profile of what was counted, without factors."""
    often = {form for form, number in found.seen.items() if number >= min_count}
    every = _without_rare_phrases(found.counts.words, often)
    changed_forms = sorted({(key.clean, key.noisy) for key in every if key.noisy})
    slips = {form: letter_changes(*form) for form in changed_forms}  # none: not a slip
    words, shapes = _kept_words(every, often, slips)
    return replace(
        found.counts,
        words=words + _phrases_that_stayed(found.rows, words),
        shapes=shapes,
        gaps=_kept_gaps(found.counts.gaps, often),
        letters=_letters(slips, {key.clean for key in every if " " not in key.clean}),
        consistency=consistency(found.repeats, every),
    )


Form = tuple[str, str | None]  # a word or a gap, and what stands for it; with None any
Slips = dict[tuple[str, str], list[LetterKey]]


def _without_rare_phrases(words: Counter[WordKey], often: set[Form]) -> Counter[WordKey]:
    """Return the counts with the words of rare phrases, of which it is not kept what they became.

    A phrase is kept with a form that it became in several pairs.
    """
    counts: Counter[WordKey] = Counter()
    for key, count in words.items():
        if " " not in key.clean or (
            (key.clean, key.noisy) in often and not _breaks(key.noisy or "")
        ):
            counts[key] += count
            continue
        for number, word in enumerate(key.clean.split(" ")):
            counts[WordKey(word, SMALL if number else key.case, None, SAME)] += count
    return counts


def _phrases_that_stayed(rows: Iterable[RowEdits], words: Counter[WordKey]) -> Counter[WordKey]:
    """Count where the phrases among the words stand in clean texts, less where they changed."""
    changed = Counter[WordKey]()
    for key, count in words.items():
        if " " in key.clean:
            changed[WordKey(key.clean, key.case, key.clean, SAME)] += count
    phrases = {key.clean for key in changed}
    heads = {phrase.partition(" ")[0] for phrase in phrases}
    found = Counter[WordKey]()
    for clean, _, _, times in rows if phrases else ():
        small = lower(clean)
        spans = [span for span in token_spans(clean) if is_word(clean[span[0]])]
        for number, (start, stop) in enumerate(spans):
            if small[start:stop] not in heads:
                continue
            for _, end in spans[number + 1 : number + PHRASE_MAX]:
                if (phrase := small[start:end]) in phrases:
                    case = case_of(clean[start:stop], not number)
                    found[WordKey(phrase, case, phrase, SAME)] += times
    return found - changed


def _kept_words(
    words: Counter[WordKey], often: set[Form], slips: Slips
) -> tuple[Counter[WordKey], Counter[profiles.ShapeKey]]:
    """Return the counts of frequent words, and of all others by their shape only."""
    kept: Counter[WordKey] = Counter()
    shapes: Counter[profiles.ShapeKey] = Counter()
    for key, count in words.items():
        if (key.clean, None) not in often:
            shape = shape_of(key.clean, key.case)
            shapes[profiles.ShapeKey(shape, _change(key, slips))] += count
        elif key.noisy is None or _is_kept(key.clean, key.noisy, often):
            kept[key] += count
        else:
            kept[key._replace(noisy=None, written=SAME)] += count
    return kept, shapes


def _change(key: WordKey, slips: Slips) -> str:
    """Return what became of a word, without saying which."""
    if key.noisy == key.clean:
        return profiles.WRITTEN[key.written]
    if key.noisy == "":
        return profiles.GONE
    places = len(slips.get((key.clean, key.noisy or ""), ()))
    return profiles.LETTERS[min(places, len(profiles.LETTERS) - 1)] or profiles.OTHER


def _is_kept(clean: str, noisy: str, often: set[Form]) -> bool:
    if clean == noisy:
        return True
    if len(noisy) > FORM_MAX or len(token_spans(noisy)) > GAP_WORDS_MAX or _breaks(noisy):
        return False
    is_slip = OSA.distance(clean, noisy) <= min(SLIP_MAX, len(clean) - 1)
    return is_slip or (clean, noisy) in often


def _kept_gaps(gaps: Counter[GapKey], often: set[Form]) -> Counter[GapKey]:
    """Return the gaps that are kept, with the words to their right that are."""
    kept: Counter[GapKey] = Counter()
    for key, count in gaps.items():
        if (key.gap, None) not in often or not _fits(key.gap):
            continue
        right = key.right if key.right == END or (key.right, None) in often else ""
        noisy, written = key.noisy, key.written
        if noisy != key.gap and not ((key.gap, noisy) in often and _fits(noisy or "")):
            noisy, written = None, SAME
        kept[GapKey(right, key.initial, key.gap, noisy, written)] += count
    return kept


def _fits(gap: str) -> bool:
    words = sum(gap[start].isalnum() for start, _ in token_spans(gap))
    return len(gap) <= FORM_MAX and words <= GAP_WORDS_MAX and not _breaks(gap)


def _breaks(text: str) -> bool:
    return text != "".join(text.splitlines())


# Letters.


def letter_changes(clean: str, noisy: str) -> list[LetterKey]:
    """Return the parts that differ, none if the words are too unlike for a slip.

    They are those of a shortest alignment; two letters that changed places are one part.

    >>> letter_changes("receive", "recieve")
    [LetterKey(before='c', clean='ei', after='v', noisy='ie')]
    """
    spans: list[tuple[int, int, int, int]] = []  # in the one word, in the other
    for step in Levenshtein.opcodes(clean, noisy):
        if step.tag == "equal":
            continue
        start, noisy_start = step.src_start, step.dest_start
        if spans:
            first, last, noisy_first, _ = spans[-1]
            ours, theirs = clean[first : step.src_end], noisy[noisy_first : step.dest_end]
            if start == last or (len(ours) == 2 and ours == theirs[::-1]):
                spans.pop()
                start, noisy_start = first, noisy_first
        spans.append((start, step.src_end, noisy_start, step.dest_end))
    framed = profiles.START + clean + END
    changes = [
        LetterKey(framed[start], clean[start:stop], framed[stop + 1], noisy[noisy_start:noisy_stop])
        for start, stop, noisy_start, noisy_stop in spans
    ]
    sizes = [(len(change.clean), len(change.noisy)) for change in changes]
    is_slip = sum(map(max, sizes)) <= max(1, UNLIKE_MAX * max(len(clean), len(noisy)))
    fit = all(ours <= profiles.LETTERS_MAX and theirs <= WRITTEN_MAX for ours, theirs in sizes)
    return changes if is_slip and fit else []


def _sites(word: str, parts: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Yield every part of a word that is among `parts`, between its neighbours."""
    framed = profiles.START + word + END
    for start in range(1, len(framed)):
        for size in range(min(profiles.LETTERS_MAX, len(framed) - 1 - start) + 1):
            part = framed[start : start + size]
            if part in parts:
                yield framed[start - 1], part, framed[start + size]


def _letters(slips: Slips, words: Iterable[str]) -> Counter[LetterKey]:
    """Count for parts of words in their contexts how often they changed, each word once."""
    counts = Counter(change for changes in slips.values() for change in changes)
    parts = frozenset(key.clean for key in counts)
    contexts = {key[:3] for key in counts}
    contexts_seen = Counter(site for word in words for site in set(_sites(word, parts)))
    for (before, part, after), count in contexts_seen.items():
        if count >= CONTEXT_MIN or (before, part, after) in contexts:
            counts[LetterKey(before, part, after, part)] = count
    return counts
