"""Profiles learned from real pairs: what happened to words, gaps, letters and rows is counted.

What is kept. A word is kept if it stands in at least `min_count` different pairs. What stands for
it is kept if it did so in as many pairs, or if it is a slip of the word itself: up to two letters
changed. A gap and what stands for it are kept by the first rule, with at most two words in them.
All else is counted without its text. So no text of over three words leaves the pairs.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import product
from math import comb, log
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rapidfuzz.distance import OSA

from noisegen.data.pairs import Pairs, read_pairs, refuse_onto
from noisegen.errors import OutputError
from noisegen.noise.profile import (
    CHANCE_BITS,
    END,
    FACTOR_BITS,
    FACTORS,
    FORMAT,
    GONE,
    HABITS,
    HEAD,
    LETTERS,
    OTHER,
    SAME,
    SMALL_CASE,
    TABLES,
    TITLE_CASE,
    UPPER_CASE,
    WEIGHT_TOTAL,
    WRITTEN,
    Channel,
    Factors,
    GapKey,
    HabitKey,
    LetterKey,
    Profile,
    ProfileHead,
    RowKey,
    ShapeKey,
    WordKey,
    compiled,
    load,
    merged,
)
from noisegen.options import Strings, argument, option, public
from noisegen.realism.compare import doubts
from noisegen.realism.learn_events import (
    GapEvent,
    LetterChange,
    WordEvent,
    events_of,
    in_context,
    letter_changes,
    sites,
)
from noisegen.runs.files import atomic, write_text
from noisegen.runs.folder import Folder, Lang, listed
from noisegen.text.alignment import token_spans
from noisegen.text.buffers import I64
from noisegen.text.case import TITLE, bare, cased, lower, shape_of
from noisegen.version import __version__

MIN_COUNT = 2  # different pairs that a word, or what stands for it, must be seen in
SLIP_MAX = 2  # edits (Damerau) of a form that is kept though it was seen once
GAP_WORDS_MAX = 2  # words in a gap that is kept
FORM_MAX = 60  # characters of a form that is kept
CONTEXT_MIN = 5  # words that have some letters between two others, for a count without changes
ROW_WORDS_MAX = 200  # longer rows count as this long
EDITS_MAX = 60
STEPS = 300  # of the EM algorithm
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LearnOptions:
    """The pairs to learn from, the folder of the profile, and how the pairs are read."""

    sources: Annotated[Strings, argument("PAIRS...")]
    out: Annotated[Folder, option("Folder for the profile", "-o", "--out", metavar="PROFILE")]
    _: KW_ONLY
    lang: Lang = "en"
    noisy_column: Annotated[str, option("Column with the noisy text")] = "noisy"
    clean_column: Annotated[str, option("Column with the clean text")] = "clean"
    clean_file: Annotated[
        str | None,
        option("Clean version of every line of PAIRS, which is a text file", metavar="FILE"),
    ] = None
    min_count: Annotated[
        int, option("Different pairs that a word, and what stands for it, must be seen in", ge=1)
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


def _learn(options: LearnOptions) -> Learned:
    """Learn from pairs (see `pairs.read_pairs`) and write the profile; raises NoisegenError."""
    check_free(options.out, options.force)
    sources = listed(options.sources)
    refuse_onto(Path(options.out), sources)
    pairs = read_pairs(
        sources,
        noisy_column=options.noisy_column,
        clean_column=options.clean_column,
        clean_file=options.clean_file,
    )
    profile = profile_of(pairs, options.lang, options.min_count)
    warnings = doubts(pairs, options.lang)
    if not profile.totals["edits"]:
        warnings.append("no pair differs: the profile makes no noise")
    save(profile, options.out)
    return Learned(profile, warnings, dict(sorted(pairs.dropped.items())), pairs.damaged)


learn = public(LearnOptions, _learn)


def merge_profiles(sources: Sequence[str | Path], out: str | Path, force: bool = False) -> Profile:
    """Add up profiles of one language and write the sum; raises NoisegenError."""
    check_free(out, force)
    profile = fitted(merged([load(source) for source in sources]))
    save(profile, out)
    return profile


def check_free(out: str | Path, force: bool) -> None:
    """Raise OutputError for a folder with files; with `force` only if they are no profile."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; a profile is a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not force:
        raise OutputError(f"{folder} is not empty; choose another folder or use --force")
    if not (folder / HEAD).is_file():
        raise OutputError(f"{folder} has files that are no profile; choose another folder")


def save(profile: Profile, folder: str | Path) -> None:
    """Write the files of a profile, rows in an order of their own; raises OutputError."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from error
    for name, (_, schema) in TABLES.items():
        counts = getattr(profile, name).items()
        rows = sorted(counts, key=lambda item: [(part is None, part) for part in item[0]])
        columns = zip(*((*key, count) for key, count in rows), strict=True) if rows else ()
        arrays = list(columns) or [()] * len(schema)
        arrays = [pa.array(a, column.type) for a, column in zip(arrays, schema, strict=True)]
        with atomic(folder / f"{name}.parquet") as file:
            pq.write_table(pa.table(arrays, schema), file, compression="zstd")
    totals = dict(sorted(profile.totals.items()))
    head = ProfileHead(FORMAT, profile.lang, __version__, profile.digest, totals, profile.factors)
    content = json.dumps(msgspec.structs.asdict(head), ensure_ascii=False)
    write_text(folder / HEAD, content + "\n")


def profile_of(pairs: Pairs, lang: str = "en", min_count: int = MIN_COUNT) -> Profile:
    """Return the profile of pairs; see the module for what is kept."""
    counts = _Counts()
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        counts.add(clean, noisy)
    return fitted(counts.profile(lang, min_count))


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
    return replace(
        profile,
        factors=_factors(
            profile.rows, *(_mean_chances(channel, counts) for counts in (words, gaps))
        ),
    )


def _mean_chances(channel: Channel, counts: Mapping[int, int]) -> F64:
    """Return the mean chance of groups at every factor of the grid, by how often they were met."""
    chances = np.array([channel.groups[group].chance / (1 << CHANCE_BITS) for group in counts])
    share = np.array(list(counts.values()), np.float64) / max(1, sum(counts.values()))
    means = [(np.minimum(chances * factor, 1) * share).sum() for factor in FACTORS]
    clipped: F64 = np.clip(np.array(means), 1e-9, 1 - 1e-9)
    return clipped


@dataclass
class _Counts:
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
        events = events_of(clean, noisy)
        words = [_word_key(event, habit) for event in events.words]
        gaps = _gap_keys(events.gaps, words)
        self.words.update(words)
        self.gaps.update(gaps)
        changed = sum(key.noisy != key.clean or key.written != SAME for key in words)
        gap_edits = sum(gap.gap != gap.noisy for gap in gaps)
        row = min(len(words), ROW_WORDS_MAX), min(changed, EDITS_MAX), min(gap_edits, EDITS_MAX)
        self.rows[RowKey(*row)] += 1
        self.totals.update(pairs=1, changed=clean != noisy, edits=events.edits, words=len(words))
        if (clean, noisy) in self.seen:
            return
        self.seen.add((clean, noisy))
        self.word_pairs.update({key.clean for key in words})
        self.form_pairs.update({(key.clean, key.noisy) for key in words if key.noisy is not None})
        self.gap_pairs.update({(key.gap, key.noisy or "") for key in gaps})

    def _habit(self, clean: str, noisy: str) -> str:
        """Return the habit that a noisy row shows, '' for none; count who could and who did."""
        shown = ""
        for habit in HABITS:
            if _could_show(habit, clean):
                is_so = noisy.isupper() if habit == "upper" else noisy == HABITS[habit](noisy)
                shows = not shown and is_so
                self.habits[HabitKey(habit, shows)] += 1
                shown = habit if shows else shown
        return shown

    def profile(self, lang: str, min_count: int) -> Profile:
        """Return what is kept."""
        known = {word for word, count in self.word_pairs.items() if count >= min_count}
        forms = {(key.clean, key.noisy) for key in self.words if key.noisy}
        slips = {pair: letter_changes(*pair) for pair in sorted(forms)}  # empty: not a slip
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
        gaps = self._kept_gaps(known | {END}, min_count)
        return Profile(lang, self.totals, words, gaps, letters, shapes, self.rows, self.habits)

    def _is_kept(self, clean: str, noisy: str, min_count: int) -> bool:
        if clean == noisy:
            return True
        if len(noisy) > FORM_MAX or len(token_spans(noisy)) > GAP_WORDS_MAX or _breaks(noisy):
            return False
        often = self.form_pairs[clean, noisy] >= min_count
        return often or OSA.distance(clean, noisy) <= min(SLIP_MAX, len(clean) - 1)

    def _kept_gaps(self, known: set[str], min_count: int) -> Counter[GapKey]:
        """Return the gaps that are kept, with the words to their right that are `known`."""
        kept: Counter[GapKey] = Counter()
        pairs = Counter[str]()
        for (gap, _), count in self.gap_pairs.items():
            pairs[gap] += count
        for key, count in self.gaps.items():
            if pairs[key.gap] < min_count or not _fits(key.gap):
                continue
            noisy = key.noisy
            if noisy is not None and noisy != key.gap:
                often = self.gap_pairs[key.gap, noisy] >= min_count
                noisy = noisy if often and _fits(noisy) else None
            right = key.right if key.right in known else ""
            written = key.written if noisy is not None else SAME
            kept[GapKey(right, key.initial, key.gap, noisy, written)] += count
        return kept


def _fits(gap: str) -> bool:
    words = sum(gap[start].isalnum() for start, _ in token_spans(gap))
    return len(gap) <= FORM_MAX and words <= GAP_WORDS_MAX and not _breaks(gap)


def _breaks(text: str) -> bool:
    return text != "".join(text.splitlines())


def _could_show(habit: str, clean: str) -> bool:
    """Tell whether a clean row has what the habit would change: twice at least."""
    if habit == "small":
        return sum(a != b for a, b in zip(clean, lower(clean), strict=True)) > 1
    if habit == "upper":
        return sum(character.islower() for character in clean) > 1
    return not clean.isascii() and sum(len(bare(c)) == 1 and bare(c) != c for c in clean) > 1


def _word_key(event: WordEvent, habit: str) -> WordKey:
    """Return what is counted of a word; what a habit of its row did to it does not count."""
    text, case, noisy = event
    clean = lower(text)
    if not noisy:
        return WordKey(clean, case, noisy, SAME)
    if habit == "bare" and noisy == bare(text):
        return WordKey(clean, case, clean, SAME)
    form = lower(noisy)
    by_habit = noisy == text or habit in ("small", "upper")
    return WordKey(clean, case, form, SAME if by_habit else _written(noisy, form, case))


def _written(noisy: str, form: str, case: int) -> int:
    """Return how a form is written: as its word's case asks, or in another."""
    if noisy == cased(form, case):
        return SAME
    if noisy == form:
        return SMALL_CASE
    if noisy == cased(form, TITLE):
        return TITLE_CASE
    return UPPER_CASE if noisy == form.upper() else SAME


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


Slips = dict[tuple[str, str], list[LetterChange]]


def _change(key: WordKey, slips: Slips) -> str:
    """Return what became of a word, without saying which."""
    if key.noisy == key.clean:
        return WRITTEN[key.written]
    if key.noisy == "":
        return GONE
    changes = slips.get((key.clean, key.noisy or ""), [])
    return LETTERS[min(len(changes), len(LETTERS) - 1)] or OTHER


def _letters(slips: Slips, words: Iterable[str]) -> Counter[LetterKey]:
    """Count for parts of words in their contexts how often they changed, each word once."""
    counts = Counter(
        LetterKey(*in_context(clean, change), change.noisy)
        for (clean, _), changes in slips.items()
        for change in changes
    )
    parts = frozenset(key.clean for key in counts)
    contexts = {key[:3] for key in counts}
    contexts_seen = Counter(site for word in words for site in set(sites(word, parts)))
    for (before, part, after), count in contexts_seen.items():
        if count >= CONTEXT_MIN or (before, part, after) in contexts:
            counts[LetterKey(before, part, after, part)] = count
    return counts


# How rows differ in noisiness. Errors come in heaps: some rows have many, many have none. The
# chances of a row's words are scaled by one factor, those of its gaps by another; the pairs of
# factors are a mixture on a grid, fitted by maximum likelihood (Kiefer and Wolfowitz, 1956; Laird,
# 1978) with the EM algorithm. The pair (0, 0) is for the rows that stay. In any other row something
# changes: where no word and no gap is hit, the one that came nearest to it is.


def _factors(rows: Mapping[RowKey, int], word_means: F64, gap_means: F64) -> Factors:
    """Return the factors that explain how many words and gaps changed in each row."""
    keys = sorted(rows)
    if not keys:
        return [(1 << FACTOR_BITS, 1 << FACTOR_BITS, WEIGHT_TOTAL)]
    sizes, word_edits, gap_edits = np.array(keys).T
    counts = np.array([rows[key] for key in keys], np.float64)
    changed = (word_edits > 0) | (gap_edits > 0)
    if not changed.any():
        return [(0, 0, WEIGHT_TOTAL)]
    of_words = _likelihoods(sizes, word_edits, word_means)[:, :, None]
    of_gaps = _likelihoods(sizes + 1, gap_edits, gap_means)[:, None, :]
    likelihoods = of_words * of_gaps
    # Where nothing is hit, the one edit of the row is made by force.
    nothing = np.power(1 - word_means, sizes[:, None])[:, :, None]
    nothing = nothing * np.power(1 - gap_means, sizes[:, None] + 1)[:, None, :]
    sums = word_means[:, None] + gap_means[None, :]
    share = word_means[:, None] / np.maximum(sums, 1e-12)
    one_word = ((word_edits == 1) & (gap_edits == 0))[:, None, None]
    one_gap = ((word_edits == 0) & (gap_edits == 1))[:, None, None]
    likelihoods += nothing * (one_word * share + one_gap * (1 - share))
    likelihoods[:, 0, 0] = 0
    unchanged = counts[~changed].sum() / counts.sum()
    likelihoods = likelihoods[changed].reshape(changed.sum(), -1)
    shares = counts[changed] / counts[changed].sum()
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(STEPS):
        mixed = likelihoods @ weights
        weights = weights * (likelihoods.T @ (shares / np.maximum(mixed, 1e-300)))
        weights /= weights.sum()
    weights *= 1 - unchanged
    weights[0] = unchanged
    whole = np.round(weights * WEIGHT_TOTAL).astype(np.int64).tolist()
    grid = [int(factor * (1 << FACTOR_BITS)) for factor in FACTORS]
    return [(*pair, w) for pair, w in zip(product(grid, grid), whole, strict=True) if w]


def _likelihoods(sizes: I64, hits: I64, means: F64) -> F64:
    """Return the binomial chance of each number of hits with each mean chance."""
    hits = np.minimum(hits, sizes)
    ways = [log(comb(n, k)) for n, k in zip(sizes.tolist(), hits.tolist(), strict=True)]
    logs = hits[:, None] * np.log(means) + (sizes - hits)[:, None] * np.log1p(-means)
    likelihoods: F64 = np.exp(logs + np.array(ways)[:, None])
    return likelihoods
