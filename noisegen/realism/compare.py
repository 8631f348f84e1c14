"""Compare synthetic noise with real noise: rates, histograms, divergences, and a classifier."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from itertools import pairwise, starmap
from math import sqrt
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from noisegen.augmentation.on_the_fly import Noising
from noisegen.augmentation.statistics import ratio, wilson
from noisegen.data.pairs import Pairs, read_pairs
from noisegen.errors import NoisegenError, UsageError, naming_extras
from noisegen.noising.recipe import Recipe
from noisegen.options import Strings, decode, internal, listed, option, public
from noisegen.realism.kinds import KINDS, kind_of
from noisegen.realism.two_sample import F64, INTERVAL, TwoSample, resampled, two_sample
from noisegen.runs.manifest import Manifest, counted
from noisegen.runs.options import ALONE, Folder, Lang, WorkerOptions
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text import alignment
from noisegen.text.alignment import TokenEdit, common_prefix, edits, token_spans
from noisegen.text.languages import is_other_language, model_for

EXAMPLES = 8  # rows that are shown
EDITS_MAX = 10  # of a row; the last entry of the histogram is for so many or more
WORD_PLACES = ("start", "inside", "end", "whole")
ROWS_MAX = 10_000  # of a side that are compared
ROWS_AT_ONCE = 2_000  # of a task
PAIRED_MIN = 100  # rows with a clean text that both sets have, from which only those are compared
_HALVES = 50  # ways to cut the real set in two
_LANGUAGE_MAX = 0.1  # divergence of letter pairs: up to 0.045 in one language, else from 0.155
_LANGUAGE_TEXTS = 1_000
_LANGUAGE_LETTERS_MIN = 1_000

# Pairs that are looked at for doubts.
FEW = 100  # pairs, below which a warning states how uncertain shares are
SAMPLE = 10_000  # pairs that are looked at
UNRELATED_MAX = 0.2  # share of pairs that may have little text in common; 0.04 in MuCGEC, the most
_LIKE_CHARACTERS = 10_000  # of a text that are compared: time grows with their square
_LIKE_MIN = 0.4  # 1 - Levenshtein distance / length; chance pairs of one language have 0.2 to 0.35
_SWAPPED = 3.0  # standard errors
_OTHER_LANGUAGE_MAX = 0.2  # share of clean texts
_LANGUAGE_CHARS_MIN = 20  # shorter texts are not identified
_LANGUAGE_SAMPLE = 500


class Histogram(NamedTuple):
    """The title of a histogram, the names of its bins, and what its axis shows."""

    title: str
    bins: tuple[str, ...]
    axis: str


_EDITS = (*map(str, range(EDITS_MAX)), f"{EDITS_MAX} or more")
_TENTHS = tuple(f"{10 * tenth} to {10 * tenth + 10}%" for tenth in range(10))
HISTOGRAMS = {
    "kinds": Histogram("kinds of edit", KINDS, "kind"),
    "edits_per_row": Histogram("edits per row", _EDITS, "edits"),
    "sentence_positions": Histogram("place in the sentence", _TENTHS, "part of the text"),
    "word_positions": Histogram("place in the word", WORD_PLACES, "part of a word"),
}


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How real pairs are read, as by `pairs.read_pairs`."""

    lang: Lang = "en"
    noisy_column: Annotated[str, option("Column with the noisy text")] = "noisy"
    clean_column: Annotated[str, option("Column with the clean text")] = "clean"
    clean_file: Annotated[
        Folder | None,
        option("Clean version of every line, where the pairs are a text file", metavar="FILE"),
    ] = None

    def read(self, sources: Strings) -> Pairs:
        """Return the pairs; raises SourceError and UsageError."""
        return read_pairs(
            listed(sources), noisy_column=self.noisy_column, clean_column=self.clean_column,
            clean_file=str(self.clean_file) if self.clean_file else None,
        )  # fmt: skip


@dataclass(frozen=True)
class CompareOptions(PairOptions, WorkerOptions):
    """What to compare: real pairs, and synthetic ones or a recipe that noises the clean side.

    A folder of `synthetic` has the columns noisy and clean.
    """

    pairs: Annotated[
        Strings,
        option("Real noisy and clean text: tables, M2 files, folders; repeatable", metavar="PAIRS"),
    ]
    _: KW_ONLY
    synthetic: Annotated[
        Strings, option("Output of noisegen augment, or any pairs; repeatable", metavar="OUT")
    ] = ()
    recipe: Annotated[
        str | None, option("Noise the clean side of the pairs instead", metavar="NAME|FILE.yaml")
    ] = None
    seed: Annotated[int, option("Seed of the recipe's noise")] = 0
    limit: Annotated[
        int, option("Maximum rows of each set, spread evenly", "-n", "--limit", ge=1)
    ] = ROWS_MAX
    progress: Annotated[Show, internal()] = silent

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.synthetic) == (self.recipe is not None):
            raise UsageError("give either --synthetic or --recipe")


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
    say what makes the figures doubtful, `damaged` has a line for each loss in the input. `names`
    are those of the real and of the synthetic set. `examples` are whole rows, by version: clean,
    real, synthetic.
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
    names: tuple[str, str] = ("", "")
    examples: tuple[dict[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


@public
def compare(
    pairs: Strings,
    *,
    workers: int = 1,
    executor: str = "processes",
    lang: str = "en",
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | Path | None = None,
    synthetic: Strings = (),
    recipe: str | None = None,
    seed: int = 0,
    limit: int = 10_000,
    progress: Show = silent,
) -> Realism:
    """Read real pairs and compare them with synthetic ones, or with what a recipe makes of them.

    Equal input gives equal figures. Raises NoisegenError, MissingExtra without scikit-learn.
    """
    return _compare(decode(CompareOptions, locals()))


def _compare(options: CompareOptions) -> Realism:
    """Run `compare` with options that are checked."""
    options.progress(Progress("reading"))
    real = options.read(options.pairs)
    note = ""
    if options.recipe is None:
        synthetic = read_pairs(listed(options.synthetic))
        name = ", ".join(map(_run_name, listed(options.synthetic)))
    else:
        recipe, clean = Recipe.named(options.recipe), real.sample(options.limit).clean
        synthetic = Pairs(Noising(options.lang).noise(recipe, clean, options.seed), clean)
        name, note = f"recipe {recipe.name} (seed {options.seed})", recipe.note_on(options.lang)
    realism = compare_pairs(
        real, synthetic, lang=options.lang, limit=options.limit, progress=options.progress,
        workers=options,
    )  # fmt: skip
    clean_file = [str(options.clean_file)] if options.clean_file else []
    names = ", ".join([*listed(options.pairs), *clean_file]), name
    return replace(realism, names=names, warnings=(*filter(None, [note]), *realism.warnings))


def _run_name(source: str) -> str:
    """Return a source's name, and of an output of augment its recipe and seed."""
    try:
        manifest = Manifest.load(source, "augment")
    except NoisegenError:
        return source
    return f"{source} (recipe {manifest.recipe.get('name')}, seed {manifest.seed})"


def compare_pairs(
    real: Pairs,
    synthetic: Pairs,
    *,
    lang: str = "",
    limit: int = ROWS_MAX,
    progress: Show = silent,
    workers: WorkerOptions = ALONE,
) -> Realism:
    """Compare synthetic noise with real noise.

    At most `limit` rows of each are used, spread evenly, the same number of both. `lang` is that
    of `kinds.kind_of`; `progress` gets an event per step. Equal input gives equal figures.
    Raises UsageError for a set without pairs, MissingExtra without scikit-learn.
    """
    sides = {"real": real, "synthetic": synthetic}
    for name, pairs in sides.items():
        if not pairs:
            raise UsageError(f"the {name} set has no pairs")
    ours, theirs, is_paired = alongside(real, synthetic, limit)
    warnings = [f"real set: {line}" for line in doubts(real, lang)]
    warnings += [f"{name} set: {line}" for name in sides for line in _losses(sides[name])]
    warnings += _pairing(real, synthetic, len(ours) if is_paired else None, limit)
    measured = []
    for name, pairs in zip(sides, (ours, theirs), strict=True):
        progress(Progress(f"aligning {len(pairs):,} {name} pairs"))
        measured.append(measure(pairs.clean, pairs.noisy, lang, workers))
    return Realism(
        lang=lang,
        is_paired=is_paired,
        pairs_read=(len(real), len(synthetic)),
        real=measured[0][0],
        synthetic=measured[1][0],
        two_sample=two_sample(ours, theirs, progress),
        examples=tuple(_examples(ours, theirs, is_paired)),
        divergences=row_divergences(measured[0][1], measured[1][1], is_paired),
        warnings=tuple(warnings),
        damaged=(*real.damaged, *synthetic.damaged),
    )


def _losses(pairs: Pairs) -> Iterator[str]:
    """Yield what is missing of a set, and whether it has any noise."""
    for reason, lost in pairs.dropped.items():
        yield f"dropped {counted(lost, 'pair')}: {reason}"
    if pairs.noisy == pairs.clean:
        yield "no row differs from its clean version: there is no noise to compare"


def _pairing(real: Pairs, synthetic: Pairs, compared: int | None, limit: int) -> Iterator[str]:
    """Yield what the comparison leaves out, or what makes that of different texts doubtful.

    `compared` is the number of paired rows, None for unpaired sets.
    """
    if compared is not None:
        if compared < min(len(real), limit):
            yield (
                f"compared on the {compared:,} of {len(real):,} real pairs whose clean text "
                "is also in the synthetic set"
            )
        return
    yield (
        "the sets share too few clean texts for a paired comparison: the AUC also measures "
        "how their topics differ (see the two clean sides); use --recipe, or noise the clean "
        "side of the real pairs"
    )
    if languages_differ(real.clean, synthetic.clean):
        yield "the clean sides look like texts in different languages"


def _examples(real: Pairs, synthetic: Pairs, is_paired: bool) -> Iterator[dict[str, str]]:
    """Yield rows that both sets change; of unpaired sets, some rows of each."""
    sides = {"real": real, "synthetic": synthetic}
    sets = [sides] if is_paired else [{name: pairs} for name, pairs in sides.items()]
    most = EXAMPLES // len(sets)
    for shown in sets:
        clean, *_ = (pairs.clean for pairs in shown.values())
        noisy = {name: pairs.noisy for name, pairs in shown.items()}
        rows = [
            row
            for row, text in enumerate(clean)
            if all(side[row] != text for side in noisy.values())
        ]
        for row in rows[:: max(1, len(rows) // most)][:most]:
            yield {"clean": clean[row], **{name: side[row] for name, side in noisy.items()}}


def alongside(real: Pairs, synthetic: Pairs, limit: int) -> tuple[Pairs, Pairs, bool]:
    """Return equally many pairs of both sets, and whether their clean texts agree row by row."""
    numbers_of: defaultdict[str, list[int]] = defaultdict(list)
    for number in reversed(range(len(synthetic))):
        numbers_of[synthetic.clean[number]].append(number)
    shared = [(number, text) for number, text in enumerate(real.clean) if text in numbers_of]
    partners = [(number, numbers_of[text].pop()) for number, text in shared if numbers_of[text]]
    if len(partners) >= min(PAIRED_MIN, len(real), len(synthetic)):
        ours, theirs = zip(*partners, strict=True)
        return real.take(ours).sample(limit), synthetic.take(theirs).sample(limit), True
    most = min(len(real), len(synthetic), limit)
    return real.sample(most), synthetic.sample(most), False


# Figures.

RowCounts = dict[str, F64]  # by name of histogram a line of counts for each row


class AlignedRows(NamedTuple):
    """What each row adds to the histograms, and the errors of all of them."""

    counts: RowCounts
    character_errors: int
    word_errors: int


def measure(
    clean: Sequence[str], noisy: Sequence[str], lang: str = "", workers: WorkerOptions = ALONE
) -> tuple[NoiseFigures, RowCounts]:
    """Return the figures of pairs, and what each row adds to them; `lang` as for `kind_of`.

    Raises ValueError if the two sides have different numbers of rows.
    """
    rows = list(zip(clean, noisy, strict=True))
    tasks = (rows[at : at + ROWS_AT_ONCE] for at in range(0, max(1, len(rows)), ROWS_AT_ONCE))
    with closing(workers.in_order(partial(_aligned, lang), tasks)) as parts:
        lines, character_errors, word_errors = zip(*parts, strict=True)
    counts = {name: np.concatenate([part[name] for part in lines]) for name in HISTOGRAMS}
    totals = {name: lines.sum(axis=0).astype(int).tolist() for name, lines in counts.items()}
    clean_words, noisy_words = (
        [word for text in side for word in _tokens(text) if any(map(str.isalnum, word))]
        for side in (clean, noisy)
    )
    clean_types, noisy_types = set(clean_words), set(noisy_words)
    unseen = sum(word not in clean_types for word in noisy_words)
    words = sum(len(text.split()) for text in clean)
    figures = NoiseFigures(
        rows=len(rows),
        changed_share=ratio(sum(before != after for before, after in rows), len(rows)),
        cer=ratio(sum(character_errors), sum(map(len, clean))),
        wer=ratio(sum(word_errors), words),
        edits_per_row=tuple(totals["edits_per_row"]),
        kinds=dict(zip(KINDS, totals["kinds"], strict=True)),
        sentence_positions=tuple(totals["sentence_positions"]),
        word_positions=dict(zip(WORD_PLACES, totals["word_positions"], strict=True)),
        oov_ratio=ratio(unseen, len(noisy_words)),
        type_token_ratio=ratio(len(noisy_types), len(noisy_words)),
        clean_type_token_ratio=ratio(len(clean_types), len(clean_words)),
    )
    return figures, counts


def _aligned(lang: str, rows: Sequence[tuple[str, str]]) -> AlignedRows:
    """Align the sides of rows."""
    character_errors = sum(starmap(alignment.character_errors, rows))
    word_errors = sum(starmap(alignment.word_errors, rows))
    return AlignedRows(_histograms(rows, lang), character_errors, word_errors)


def _histograms(rows: Sequence[tuple[str, str]], lang: str) -> RowCounts:
    """Return what each row adds to each histogram."""
    counts = {name: np.zeros((len(rows), len(shown.bins))) for name, shown in HISTOGRAMS.items()}
    for row, (before, after) in enumerate(rows):
        row_edits = edits(before, after)
        counts["edits_per_row"][row, min(len(row_edits), EDITS_MAX)] = 1
        for edit in row_edits:
            middle = (edit.clean_start + edit.clean_stop) / 2
            tenth = min(int(middle * 10 / max(len(before), 1)), 9)
            counts["kinds"][row, KINDS.index(kind_of(before, after, edit, lang))] += 1
            counts["sentence_positions"][row, tenth] += 1
            if place := word_place(before, after, edit):
                counts["word_positions"][row, WORD_PLACES.index(place)] += 1
    return counts


def word_place(clean: str, noisy: str, edit: TokenEdit) -> str | None:
    """Return what an edit touches of a word, of `WORD_PLACES`; None if it has no letter or digit.

    What the two forms share at both ends is taken off; what is left touches the start, the end,
    neither (inside) or both (whole).
    """
    before, after = edit.texts(clean, noisy)
    if not any(map(str.isalnum, before + after)):
        return None
    head = common_prefix(before, after)
    tail = common_prefix(before[head:][::-1], after[head:][::-1])
    if head:
        return "inside" if tail else "end"
    return "start" if tail else "whole"


def _tokens(text: str) -> list[str]:
    return [text[start:stop].lower() for start, stop in token_spans(text)]


# Divergences.


def row_divergences(
    real: RowCounts, synthetic: RowCounts, is_paired: bool
) -> dict[str, Divergence]:
    """Return the divergences of all histograms with intervals and floors.

    Rows are resampled, those of one clean text together. Resampling makes a divergence larger on
    average; the interval has the spread around that average, set around the value.
    """
    rng = np.random.default_rng(0)  # fixed: the interval is part of the figure
    rows = len(real["kinds"])
    real_times = resampled(rng, rows)
    synthetic_times = real_times if is_paired else resampled(rng, len(synthetic["kinds"]))
    halves = rng.permuted(np.tile(np.arange(rows) % 2, (_HALVES, 1)), axis=1).astype(float)
    divergences = {}
    for name in HISTOGRAMS:
        value, *spread = jensen_shannon(
            real_times @ real[name], synthetic_times @ synthetic[name]
        ).tolist()
        low, high = value + np.percentile(spread, INTERVAL) - np.mean(spread)
        floor = jensen_shannon(halves @ real[name], (1 - halves) @ real[name]).mean()
        bounds = max(0.0, float(low)), min(1.0, float(high))
        divergences[name] = Divergence(value, *bounds, float(floor))
    return divergences


def jensen_shannon(p: F64, q: F64) -> F64:
    """Return the Jensen-Shannon divergence (base 2) of each line of counts in `p` and in `q`.

    It is 0 where both lines are empty, 1 where one of them is.
    """
    with naming_extras():
        from scipy.spatial.distance import jensenshannon
    with np.errstate(invalid="ignore"):  # of an empty line
        distances = jensenshannon(p, q, base=2, axis=1)
    divergences: F64 = np.where(np.isnan(distances), p.any(axis=1) != q.any(axis=1), distances**2)
    return divergences


def languages_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two sets of texts differ in their letter pairs as languages do."""
    counts = [_letter_pairs(texts) for texts in (a, b)]
    if min(counted.total() for counted in counts) < _LANGUAGE_LETTERS_MIN:
        return False
    keys = sorted(counts[0].keys() | counts[1].keys())
    lines = [np.array([[counted[key] for key in keys]], float) for counted in counts]
    return bool(jensen_shannon(*lines)[0] > _LANGUAGE_MAX)


def _letter_pairs(texts: Sequence[str]) -> Counter[tuple[str, str]]:
    """Count neighbouring letters; those of scripts with very many letters are taken as one."""
    letter_pairs: Counter[tuple[str, str]] = Counter()
    for text in texts[:: max(1, len(texts) // _LANGUAGE_TEXTS)]:
        letters = ["\u4e00" if "\u3400" <= c <= "\ud7af" else c for c in f" {text.lower()} "]
        letter_pairs.update(pair for pair in pairwise(letters) if any(map(str.isalpha, pair)))
    return letter_pairs


# Whether pairs are what they seem. Each check is statistical, says what it saw, changes no pair.


def doubts(pairs: Pairs, lang: str = "") -> list[str]:
    """Return a line for each doubt about the pairs, none if they look sound.

    `lang` is the language that the clean side should be in; '' asks nothing.
    """
    lines = []
    if len(pairs) < FEW:
        changed = sum(a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True)) / len(pairs)
        low, high = wilson(changed, len(pairs))
        lines.append(
            f"only {counted(len(pairs), 'pair')}: the share of changed rows is {changed:.0%} "
            f"(95% interval {low:.0%} to {high:.0%}) and rarer edits are guesses; "
            f"use {FEW} pairs or more"
        )
    sample = pairs.sample(SAMPLE)
    head = pairs.take(range(min(len(pairs), SAMPLE)))  # neighbours stay neighbours
    return [*lines, *_unrelated(head), *_swapped(sample), *_foreign(sample, lang)]


def _unrelated(pairs: Pairs) -> Iterator[str]:
    """Compare each noisy text with its own clean one, then with the next and the one before."""
    clean, noisy = pairs.clean, pairs.noisy
    unlike = 1 - _share_alike(clean, noisy)
    if unlike <= UNRELATED_MAX:
        return
    shifted = {"after": (clean[1:], noisy[:-1]), "before": (clean[:-1], noisy[1:])}
    for step, sides in shifted.items():
        if _share_alike(*sides) > 0.5:
            yield f"the sides are misaligned: most noisy texts match the clean one {step} their own"
            return
    yield f"{unlike:.0%} of the pairs have little text in common: are these sides of the same rows?"


def _share_alike(clean: Sequence[str], noisy: Sequence[str]) -> float:
    alike = [
        Levenshtein.normalized_similarity(
            ours[:_LIKE_CHARACTERS], theirs[:_LIKE_CHARACTERS], score_cutoff=_LIKE_MIN
        )
        >= _LIKE_MIN
        for ours, theirs in zip(clean, noisy, strict=True)
    ]
    return sum(alike) / max(1, len(alike))


def _swapped(pairs: Pairs) -> Iterator[str]:
    """Count replaced words that occur nowhere in what both sides share: errors are rare words."""
    known: Counter[str] = Counter()
    replaced: list[tuple[str, str]] = []
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        known.update({*_tokens(noisy)} & {*_tokens(clean)})
        for edit in edits(clean, noisy):
            before, after = (side.lower() for side in edit.texts(clean, noisy))
            if before != after and before[:1].isalnum() and after[:1].isalnum():
                replaced.append((before, after))
    rare_clean = sum(known[before] == 0 < known[after] for before, after in replaced)
    rare_noisy = sum(known[after] == 0 < known[before] for before, after in replaced)
    if rare_clean - rare_noisy > _SWAPPED * sqrt(rare_clean + rare_noisy):
        yield (
            f"the sides look swapped: {rare_clean:,} replaced words of the clean side occur "
            f"nowhere else, {rare_noisy:,} of the noisy side"
        )


def _foreign(pairs: Pairs, lang: str) -> Iterator[str]:
    """Identify clean texts, where the package for it is installed."""
    if not lang or model_for(lang, "auto") is None:
        return
    texts = [text for text in pairs.clean if len(text) >= _LANGUAGE_CHARS_MIN]
    texts = texts[:: max(1, len(texts) // _LANGUAGE_SAMPLE)]
    other = sum(is_other_language(text, lang) for text in texts)
    if other > _OTHER_LANGUAGE_MAX * len(texts):
        yield f"{other:,} of {len(texts):,} clean texts are in another language than {lang!r}"
