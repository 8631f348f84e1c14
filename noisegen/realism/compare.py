"""Compare synthetic noise with real noise: rates, histograms, divergences, and a classifier."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from math import sqrt
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from noisegen.augment.on_the_fly import Noising
from noisegen.augment.statistics import ratio, wilson
from noisegen.data.pairs import Pairs, read_pairs
from noisegen.errors import UsageError
from noisegen.noise.recipe import Recipe
from noisegen.options import Strings, internal, option, public
from noisegen.realism.kinds import KINDS, kind_of
from noisegen.realism.two_sample import INTERVAL, RESAMPLES, TwoSample, two_sample
from noisegen.runs.folder import Folder, Lang, listed
from noisegen.runs.progress import Progress, Show
from noisegen.text.alignment import (
    TokenEdit,
    character_errors,
    common_prefix,
    edits,
    token_spans,
    word_errors,
)
from noisegen.text.languages import is_other_language, model_for

EDITS_MAX = 10  # of a row; the last entry of the histogram is for so many or more
SENTENCE_BINS = 10
WORD_PLACES = ("start", "inside", "end", "whole")
_WIDTHS = {
    "kinds": len(KINDS),
    "edits_per_row": EDITS_MAX + 1,
    "sentence_positions": SENTENCE_BINS,
    "word_positions": len(WORD_PLACES),
}
HISTOGRAMS = tuple(_WIDTHS)
SUMS = ("changed", "character_errors", "characters", "word_errors", "words")

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoiseFigures:
    """The noise of some pairs; a ratio is None where there is nothing to divide by.

    `cer` and `wer` are errors over the characters and words of the clean side. `edits_per_row`
    counts rows with 0, 1, ... 10 or more edits; the other histograms count edits: by kind, by the
    tenth of the clean text they lie in, and by what they touch of a word (punctuation is left out).
    `oov_ratio` is the share of the noisy side's words that the clean side does not use anywhere.
    """

    rows: int
    changed_share: float | None
    cer: float | None
    wer: float | None
    edits_per_row: tuple[int, ...]
    kinds: dict[str, int]
    sentence_positions: tuple[int, ...]
    word_positions: dict[str, int]
    oov_ratio: float | None
    type_token_ratio: float | None
    clean_type_token_ratio: float | None

    @property
    def edits(self) -> int:
        """The number of edits in all rows."""
        return sum(self.kinds.values())

    def histogram(self, name: str) -> list[int]:
        """Return the counts of one of `HISTOGRAMS`."""
        counts = getattr(self, name)
        return list(counts.values() if isinstance(counts, dict) else counts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class RowCounts:
    """What each row adds to the figures, a line of counts per row.

    `histograms` has an array for each name in `HISTOGRAMS`; the columns of `sums` are `SUMS`.
    """

    histograms: dict[str, F64]
    sums: F64

    def __len__(self) -> int:
        return len(self.sums)


def measure(clean: Sequence[str], noisy: Sequence[str], lang: str = "") -> NoiseFigures:
    """Return the figures of pairs; `lang` is that of `kinds.kind_of`.

    Raises ValueError if the two sides have different numbers of rows.
    """
    return figures(count(clean, noisy, lang), clean, noisy)


def count(clean: Sequence[str], noisy: Sequence[str], lang: str = "") -> RowCounts:
    """Count the edits and errors of every row."""
    lines = {name: np.zeros((len(clean), width)) for name, width in _WIDTHS.items()}
    sums = np.zeros((len(clean), len(SUMS)))
    for row, (before, after) in enumerate(zip(clean, noisy, strict=True)):
        sums[row, 2], sums[row, 4] = len(before), len(before.split())
        row_edits = edits(before, after)
        lines["edits_per_row"][row, min(len(row_edits), EDITS_MAX)] = 1
        if before != after:
            errors = character_errors(before, after), word_errors(before, after)
            sums[row, 0], sums[row, 1], sums[row, 3] = 1, *errors
        for edit in row_edits:
            lines["kinds"][row, KINDS.index(kind_of(before, after, edit, lang))] += 1
            lines["sentence_positions"][row, _sentence_bin(before, edit)] += 1
            position = word_place(before, after, edit)
            if position is not None:
                lines["word_positions"][row, WORD_PLACES.index(position)] += 1
    return RowCounts(lines, sums)


def _sentence_bin(clean: str, edit: TokenEdit) -> int:
    """Return the tenth of the clean text that the middle of an edit lies in, from 0."""
    middle = (edit.clean_start + edit.clean_stop) / 2
    return min(int(middle * SENTENCE_BINS / max(len(clean), 1)), SENTENCE_BINS - 1)


def word_place(clean: str, noisy: str, edit: TokenEdit) -> str | None:
    """Return what an edit touches of a word, of `WORD_PLACES`; None if it has no letter or digit.

    What the two forms share at both ends is taken off; what is left touches the start, the end,
    neither (inside) or both (whole).
    """
    before, after = edit.texts(clean, noisy)
    if not any(character.isalnum() for character in before + after):
        return None
    head = common_prefix(before, after)
    tail = min(common_prefix(before[::-1], after[::-1]), min(len(before), len(after)) - head)
    if head:
        return "inside" if tail > 0 else "end"
    return "start" if tail > 0 else "whole"


def figures(counts: RowCounts, clean: Sequence[str], noisy: Sequence[str]) -> NoiseFigures:
    """Return the figures of rows that were counted."""
    totals = {name: lines.sum(axis=0).astype(int).tolist()
              for name, lines in counts.histograms.items()}  # fmt: skip
    sums = dict(zip(SUMS, counts.sums.sum(axis=0).tolist(), strict=True))
    clean_words, noisy_words = _words(clean), _words(noisy)
    clean_types, noisy_types = set(clean_words), set(noisy_words)
    unseen = sum(word not in clean_types for word in noisy_words)
    return NoiseFigures(
        rows=len(counts),
        changed_share=ratio(sums["changed"], len(counts)),
        cer=ratio(sums["character_errors"], sums["characters"]),
        wer=ratio(sums["word_errors"], sums["words"]),
        edits_per_row=tuple(totals["edits_per_row"]),
        kinds=dict(zip(KINDS, totals["kinds"], strict=True)),
        sentence_positions=tuple(totals["sentence_positions"]),
        word_positions=dict(zip(WORD_PLACES, totals["word_positions"], strict=True)),
        oov_ratio=ratio(unseen, len(noisy_words)),
        type_token_ratio=ratio(len(noisy_types), len(noisy_words)),
        clean_type_token_ratio=ratio(len(clean_types), len(clean_words)),
    )


def _words(texts: Sequence[str]) -> list[str]:
    """Return the words of all texts in lower case, without punctuation."""
    tokens = (text[start:stop].lower() for text in texts for start, stop in token_spans(text))
    return [token for token in tokens if any(character.isalnum() for character in token)]


def divergences(real: NoiseFigures, synthetic: NoiseFigures) -> dict[str, float]:
    """Return the Jensen-Shannon divergence of every histogram: 0 the same, 1 nothing in common.

    That of a set without edits and one with edits is 1.
    """
    return {
        name: float(jensen_shannon(*(np.array([figures.histogram(name)], float)
                                     for figures in (real, synthetic)))[0])
        for name in HISTOGRAMS
    }  # fmt: skip


def jensen_shannon(p: F64, q: F64) -> F64:
    """Return the Jensen-Shannon divergence (base 2) of each line of counts in `p` and in `q`."""
    p, q = (
        np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
        for counts in (p, q)
        for total in [counts.sum(axis=1, keepdims=True)]
    )
    middle = (p + q) / 2
    divergence = (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2
    filled = p.sum(axis=1) + q.sum(axis=1)  # 0: both are empty, 1: one of them is
    clipped: F64 = np.where(filled < 1.5, np.round(filled), np.clip(divergence, 0, 1))
    return clipped


def _relative_entropy(p: F64, middle: F64) -> F64:
    quotient = np.divide(p, middle, out=np.ones_like(p), where=p > 0)
    bits: F64 = (p * np.log2(quotient)).sum(axis=1)
    return bits


ROWS_MAX = 10_000  # of a side that are compared
PAIRED_MIN = 100  # rows with a clean text that both sets have, from which only those are compared
_HALVES = 50  # ways to cut the real set in two
_LANGUAGE_MAX = 0.1  # divergence of letter pairs: up to 0.045 in one language, else from 0.155
_LANGUAGE_TEXTS = 1_000
_LANGUAGE_LETTERS_MIN = 1_000

# Pairs that are looked at for doubts.
FEW = 100  # pairs, below which a warning states how uncertain shares are
SAMPLE = 10_000  # pairs that are looked at
UNRELATED_MAX = 0.2  # share of pairs that may have little text in common; 0.04 in MuCGEC, the most
_LIKE_MIN = 0.4  # 1 - Levenshtein distance / length; chance pairs of one language have 0.2 to 0.35
_SWAPPED = 3.0  # standard errors
_OTHER_LANGUAGE_MAX = 0.2  # share of clean texts
_LANGUAGE_CHARS_MIN = 20  # shorter texts are not identified
_LANGUAGE_SAMPLE = 500


@dataclass(frozen=True)
class CompareOptions:
    """What to compare: real pairs, and synthetic ones or a recipe that noises the clean side.

    `real`, `synthetic`, the columns and `clean_file` are those of `pairs.read_pairs`; a folder of
    `synthetic` has the columns noisy and clean.
    """

    real: Annotated[
        Strings,
        option("Real noisy and clean text: tables, M2 files, folders; repeatable", metavar="PAIRS"),
    ]
    _: KW_ONLY
    synthetic: Annotated[
        Strings, option("Output of noisegen augment, or any pairs; repeatable", metavar="OUT")
    ] = ()
    recipe: Annotated[
        str | None,
        option("Noise the clean side of the real set, instead of --synthetic",
               metavar="NAME|FILE.yaml"),
    ] = None  # fmt: skip
    seed: Annotated[int, option("Seed of the recipe's noise")] = 0
    lang: Lang = "en"
    noisy_column: Annotated[str, option("Column with the noisy text")] = "noisy"
    clean_column: Annotated[str, option("Column with the clean text")] = "clean"
    clean_file: Annotated[
        Folder | None,
        option("Clean version of every line, where --real is a text file", metavar="FILE"),
    ] = None
    rows_max: Annotated[int, option("Maximum rows of each set to compare", "--rows", ge=1)] = (
        ROWS_MAX
    )
    progress: Annotated[Show, internal()] = lambda _: None

    def __post_init__(self) -> None:
        if bool(self.synthetic) == (self.recipe is not None):
            raise UsageError("give either --synthetic or --recipe")


@dataclass(frozen=True)
class Divergence:
    """A Jensen-Shannon divergence (base 2), and what is reachable.

    `low` and `high` are its 95 % interval: how far other rows of the same kind would take it.
    `floor` is that of two random halves of the real set, on average.
    """

    value: float
    low: float
    high: float
    floor: float


@dataclass(frozen=True)
class Realism:
    """How synthetic noise compares with real noise.

    `is_paired`: both sets are noise on the same clean texts; only those are compared. `warnings`
    say what makes the figures doubtful, `damaged` has a line for each loss in the input.
    """

    lang: str
    is_paired: bool
    pairs_read: tuple[int, int]
    real: NoiseFigures
    synthetic: NoiseFigures
    divergences: dict[str, Divergence]
    two_sample: TwoSample
    warnings: tuple[str, ...]
    damaged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def _compare(options: CompareOptions) -> Realism:
    """Read real pairs and compare them with synthetic ones, or with what a recipe makes of them.

    Equal input gives equal figures. Raises NoisegenError, MissingExtra without scikit-learn.
    """
    options.progress(Progress("reading"))
    clean_file = str(options.clean_file) if options.clean_file else None
    real = read_pairs(
        listed(options.real), noisy_column=options.noisy_column,
        clean_column=options.clean_column, clean_file=clean_file,
    )  # fmt: skip
    if options.recipe is None:
        synthetic = read_pairs(listed(options.synthetic))
    else:
        clean = real.sample(options.rows_max).clean
        synthetic = noised(clean, options.recipe, options.seed, options.lang)
    return compare_pairs(
        real, synthetic, lang=options.lang, rows_max=options.rows_max, progress=options.progress
    )


compare = public(CompareOptions, _compare)


def noised(clean: Sequence[str], recipe: str, seed: int, lang: str) -> Pairs:
    """Return clean texts with the noise of a recipe; row numbers are the ids.

    Steps without data for the language are left out; raises UsageError if none is left.
    """
    return Pairs(Noising(lang).noise(Recipe.named(recipe), clean, seed), list(clean))


def compare_pairs(
    real: Pairs,
    synthetic: Pairs,
    *,
    lang: str = "",
    rows_max: int = ROWS_MAX,
    progress: Show = lambda _: None,
) -> Realism:
    """Compare synthetic noise with real noise.

    At most `rows_max` rows of each are used, spread evenly, of both the same number. `lang` is that
    of `kinds.kind_of`; `progress` is told of each step. Equal input gives equal figures.
    Raises UsageError for a set without pairs, MissingExtra without scikit-learn.
    """
    for name, pairs in (("real", real), ("synthetic", synthetic)):
        if not pairs:
            raise UsageError(f"the {name} set has no pairs")
    sides = alongside(real, synthetic, rows_max)
    is_paired = sides[2]
    shared = len(sides[0]) if is_paired else None
    warnings = tuple(_warnings(real, synthetic, shared, rows_max, lang))
    counts, measured = [], []
    for name, pairs in zip(("real", "synthetic"), sides[:2], strict=True):
        progress(Progress(f"aligning {len(pairs):,} {name} pairs"))
        counts.append(count(pairs.clean, pairs.noisy, lang))
        measured.append(figures(counts[-1], pairs.clean, pairs.noisy))
    return Realism(
        lang=lang,
        is_paired=is_paired,
        pairs_read=(len(real), len(synthetic)),
        real=measured[0],
        synthetic=measured[1],
        two_sample=two_sample(sides[0], sides[1], progress),
        divergences=_bounded(counts[0], counts[1], divergences(*measured), is_paired),
        warnings=warnings,
        damaged=(*real.damaged, *synthetic.damaged),
    )


def alongside(real: Pairs, synthetic: Pairs, rows_max: int) -> tuple[Pairs, Pairs, bool]:
    """Return equally many pairs of both, and whether row by row their clean texts are equal."""
    numbers_of: defaultdict[str, list[int]] = defaultdict(list)
    for number in reversed(range(len(synthetic))):
        numbers_of[synthetic.clean[number]].append(number)
    partners = [
        (number, numbers_of[text].pop())
        for number, text in enumerate(real.clean)
        if numbers_of.get(text)
    ]
    if len(partners) >= min(PAIRED_MIN, len(real), len(synthetic)):
        ours, theirs = zip(*partners, strict=True)
        return real.take(ours).sample(rows_max), synthetic.take(theirs).sample(rows_max), True
    most = min(len(real), len(synthetic), rows_max)
    return real.sample(most), synthetic.sample(most), False


# Warnings.


def _warnings(
    real: Pairs, synthetic: Pairs, shared: int | None, rows_max: int, lang: str
) -> Iterator[str]:
    """Yield the warnings; `shared` rows have a clean text that both have, None: too few."""
    for line in doubts(real, lang):
        yield f"real set: {line}"
    for name, pairs in (("real", real), ("synthetic", synthetic)):
        for reason, lost in pairs.dropped.items():
            yield f"{name} set: dropped {lost:,} pairs: {reason}"
        if pairs.noisy == pairs.clean:
            yield f"{name} set: no row differs from its clean version: there is no noise to compare"
    if shared is not None:
        if shared < min(len(real), rows_max):
            yield (
                f"compared on the {shared:,} of {len(real):,} real pairs whose clean text "
                "the synthetic set has too"
            )
        return
    yield (
        "the sets share too few clean texts to be compared text by text: the AUC also tells their "
        "topics apart (see that of the clean sides); noise the clean side of the real set instead, "
        "or use --recipe"
    )
    if languages_differ(real.clean, synthetic.clean):
        yield "the clean sides look like texts in different languages"


def languages_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two sets of texts differ in their letter pairs as languages do."""
    counts = [_letter_pairs(texts) for texts in (a, b)]
    if min(sum(counted.values()) for counted in counts) < _LANGUAGE_LETTERS_MIN:
        return False
    keys = sorted(counts[0].keys() | counts[1].keys())
    lines = [np.array([[counted[key] for key in keys]], float) for counted in counts]
    return bool(jensen_shannon(*lines)[0] > _LANGUAGE_MAX)


def _letter_pairs(texts: Sequence[str]) -> Counter[str]:
    """Count neighbouring letters; those of scripts with very many letters are taken as one."""
    letter_pairs: Counter[str] = Counter()
    for text in texts[:: max(1, len(texts) // _LANGUAGE_TEXTS)]:
        lowered = "".join("\u4e00" if "\u3400" <= c <= "\ud7af" else c for c in f" {text.lower()} ")
        pairs = (lowered[at : at + 2] for at in range(len(lowered) - 1))
        letter_pairs.update(pair for pair in pairs if any(map(str.isalpha, pair)))
    return letter_pairs


# Intervals.


def _bounded(
    real: RowCounts, synthetic: RowCounts, values: dict[str, float], is_paired: bool
) -> dict[str, Divergence]:
    """Return the divergences with intervals and floors.

    Rows are resampled, those of one clean text together. Resampling makes a divergence larger on
    average; the interval has the spread around that average, set around the value.
    """
    rng = np.random.default_rng(0)  # fixed: the interval is part of the figure
    real_times = _resampled(rng, len(real))
    synthetic_times = real_times if is_paired else _resampled(rng, len(synthetic))
    halves = rng.permuted(np.tile(np.arange(len(real)) % 2, (_HALVES, 1)), axis=1).astype(float)
    bounded = {}
    for name in HISTOGRAMS:
        lines = real.histograms[name], synthetic.histograms[name]
        spread = jensen_shannon(real_times @ lines[0], synthetic_times @ lines[1])
        low, high = values[name] + np.percentile(spread, INTERVAL) - spread.mean()
        floor = jensen_shannon(halves @ lines[0], (1 - halves) @ lines[0]).mean()
        bounds = max(0.0, float(low)), min(1.0, float(high))
        bounded[name] = Divergence(values[name], *bounds, float(floor))
    return bounded


def _resampled(rng: np.random.Generator, rows: int) -> F64:
    """Return how often each row is taken, a line for each resample."""
    return rng.multinomial(rows, np.full(rows, 1 / rows), RESAMPLES).astype(float)


# Whether pairs are what they seem. Each check is statistical, says what it saw, changes no pair.


def doubts(pairs: Pairs, lang: str = "") -> list[str]:
    """Return a line for each doubt about the pairs, none if they look sound.

    `lang` is the language that the clean side should be in; '' asks nothing.
    """
    sample = pairs.sample(SAMPLE)
    head = pairs.take(range(min(len(pairs), SAMPLE)))  # neighbours stay neighbours
    checks = (_few(pairs), _related(head), _direction(sample), _languages(sample, lang))
    return [line for lines in checks for line in lines]


def _few(pairs: Pairs) -> Iterator[str]:
    if len(pairs) < FEW:
        changed = sum(a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True))
        low, high = wilson(changed / len(pairs), len(pairs))
        yield (
            f"only {len(pairs)} pairs: the share of changed rows is {changed / len(pairs):.0%} "
            f"(95 % interval {low:.0%} to {high:.0%}), and rarer habits are guesses; "
            f"{FEW} or more are better"
        )


def _related(pairs: Pairs) -> Iterator[str]:
    """Compare each noisy text with its own clean one, and with the next and the one before."""
    like = [_likeness(pairs, shift) for shift in (0, 1, -1)]
    unlike = sum(score < _LIKE_MIN for score in like[0]) / len(pairs)
    if unlike <= UNRELATED_MAX:
        return
    for shift, scores in zip((1, -1), like[1:], strict=True):
        if sum(score >= _LIKE_MIN for score in scores) > len(scores) / 2:
            which = "after" if shift == 1 else "before"
            yield f"the sides are out of step: most noisy texts fit the clean one {which} their own"
            return
    yield f"{unlike:.0%} of the pairs have little text in common: are these sides of the same rows?"


def _likeness(pairs: Pairs, shift: int) -> list[float]:
    clean = pairs.clean[max(0, shift) : len(pairs) + min(0, shift)]
    noisy = pairs.noisy[max(0, -shift) : len(pairs) + min(0, -shift)]
    return [
        Levenshtein.normalized_similarity(*sides, score_cutoff=_LIKE_MIN)
        for sides in zip(clean, noisy, strict=True)
    ]


def _direction(pairs: Pairs) -> Iterator[str]:
    """Count replaced words that stand in no text shared by both sides: errors are rare words."""
    known: Counter[str] = Counter()
    replaced: list[tuple[str, str]] = []
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        known.update(_word_set(noisy) & _word_set(clean))
        replaced += _replaced(clean, noisy)
    rare_noisy = sum(known[noisy] == 0 < known[clean] for clean, noisy in replaced)
    rare_clean = sum(known[clean] == 0 < known[noisy] for clean, noisy in replaced)
    if rare_clean - rare_noisy > _SWAPPED * sqrt(rare_clean + rare_noisy):
        yield (
            f"the sides look swapped: {rare_clean:,} replaced words of the clean side stand "
            f"nowhere else, and {rare_noisy:,} of the noisy side"
        )


def _word_set(text: str) -> set[str]:
    return {text[start:stop].lower() for start, stop in token_spans(text)}


def _replaced(clean: str, noisy: str) -> Iterator[tuple[str, str]]:
    """Yield the words that stand for one another, in small letters."""
    for edit in edits(clean, noisy):
        ours = clean[edit.clean_start : edit.clean_stop].lower()
        theirs = noisy[edit.noisy_start : edit.noisy_stop].lower()
        if ours != theirs and ours[:1].isalnum() and theirs[:1].isalnum():
            yield ours, theirs


def _languages(pairs: Pairs, lang: str) -> Iterator[str]:
    """Identify clean texts, where the package for it is installed."""
    if not lang or model_for(lang, "auto") is None:
        return
    texts = [text for text in pairs.clean if len(text) >= _LANGUAGE_CHARS_MIN]
    texts = texts[:: max(1, len(texts) // _LANGUAGE_SAMPLE)]
    other = sum(is_other_language(text, lang) for text in texts)
    if other > _OTHER_LANGUAGE_MAX * len(texts):
        yield f"{other:,} of {len(texts):,} clean texts are in another language than {lang!r}"
