"""How real synthetic noise is: the figures of two sets of pairs side by side."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError
from noisegen.realism import checks
from noisegen.realism.figures import (
    HISTOGRAMS,
    NoiseFigures,
    RowCounts,
    count,
    divergences,
    figures,
    jensen_shannon,
)
from noisegen.realism.pairs import Pairs
from noisegen.realism.two_sample import INTERVAL, RESAMPLES, TwoSample, two_sample

ROWS_MAX = 10_000  # of a side that are compared
PAIRED_MIN = 100  # rows with a clean text that both sets have, from which only those are compared
_HALVES = 50  # ways to cut the real set in two
_LANGUAGE_MAX = 0.1  # divergence of letter pairs: up to 0.045 in one language, else from 0.155
_LANGUAGE_TEXTS = 1_000
_LANGUAGE_LETTERS_MIN = 1_000

F64 = npt.NDArray[np.float64]
Progress = Callable[[str], None]


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


def compare(
    real: Pairs,
    synthetic: Pairs,
    *,
    lang: str = "",
    rows_max: int = ROWS_MAX,
    progress: Progress = lambda _: None,
) -> Realism:
    """Compare synthetic noise with real noise.

    At most `rows_max` rows of each are used, spread evenly, of both the same number. `lang` is that
    of `kinds.kind_of`; `progress` is told what comes next. Equal input gives equal figures. Raises
    UsageError for a set without pairs, MissingExtra without scikit-learn.
    """
    for name, pairs in (("real", real), ("synthetic", synthetic)):
        if not pairs:
            raise UsageError(f"the {name} set has no pairs")
    ours, theirs, is_paired = alongside(real, synthetic, rows_max)
    shared = len(ours) if is_paired else None
    doubts = tuple(_warnings(real, synthetic, shared, rows_max, lang))
    counts = []
    for name, pairs in (("real", ours), ("synthetic", theirs)):
        progress(f"aligning {len(pairs):,} {name} pairs")
        counts.append(count(pairs.clean, pairs.noisy, lang))
    found = [
        figures(counted, pairs.clean, pairs.noisy)
        for counted, pairs in zip(counts, (ours, theirs), strict=True)
    ]
    tested = two_sample(ours, theirs, progress)
    bounded = _bounded(counts[0], counts[1], divergences(*found), is_paired)
    read = len(real), len(synthetic)
    damaged = (*real.damaged, *synthetic.damaged)
    return Realism(lang, is_paired, read, found[0], found[1], bounded, tested, doubts, damaged)


def alongside(real: Pairs, synthetic: Pairs, rows_max: int) -> tuple[Pairs, Pairs, bool]:
    """Return equally many pairs of both, and whether row by row their clean texts are equal."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number in reversed(range(len(synthetic))):
        places[synthetic.clean[number]].append(number)
    partners = [
        (number, places[text].pop()) for number, text in enumerate(real.clean) if places.get(text)
    ]
    if len(partners) >= min(PAIRED_MIN, len(real), len(synthetic)):
        ours, theirs = zip(*partners, strict=True)
        return real.take(ours).sample(rows_max), synthetic.take(theirs).sample(rows_max), True
    most = min(len(real), len(synthetic), rows_max)
    return real.sample(most), synthetic.sample(most), False


# Doubts.


def _warnings(
    real: Pairs, synthetic: Pairs, shared: int | None, rows_max: int, lang: str
) -> Iterator[str]:
    """Yield the doubts; `shared` rows have a clean text that both have, None: too few."""
    for line in checks.warnings(real, lang):
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
    if is_other_language(real.clean, synthetic.clean):
        yield "the clean sides look like texts in different languages"


def is_other_language(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Tell whether two sets of texts differ in their letter pairs as languages do."""
    counts = [_letter_pairs(texts) for texts in (ours, theirs)]
    if min(sum(counted.values()) for counted in counts) < _LANGUAGE_LETTERS_MIN:
        return False
    keys = sorted(counts[0].keys() | counts[1].keys())
    lines = [np.array([[counted[key] for key in keys]], float) for counted in counts]
    return bool(jensen_shannon(*lines)[0] > _LANGUAGE_MAX)


def _letter_pairs(texts: Sequence[str]) -> Counter[str]:
    """Count neighbouring letters; those of scripts with very many letters are taken as one."""
    found: Counter[str] = Counter()
    for text in texts[:: max(1, len(texts) // _LANGUAGE_TEXTS)]:
        lowered = "".join("\u4e00" if "\u3400" <= c <= "\ud7af" else c for c in f" {text.lower()} ")
        pairs = (lowered[at : at + 2] for at in range(len(lowered) - 1))
        found.update(pair for pair in pairs if any(map(str.isalpha, pair)))
    return found


# Intervals.


def _bounded(
    real: RowCounts, synthetic: RowCounts, values: dict[str, float], is_paired: bool
) -> dict[str, Divergence]:
    """Return the divergences with intervals and floors.

    Rows are resampled, those of one clean text together. Resampling makes a divergence larger on
    average; the interval has the spread around that average, set around the value.
    """
    draws = np.random.default_rng(0)  # fixed: the interval is part of the figure
    ours = _resampled(draws, len(real))
    theirs = ours if is_paired else _resampled(draws, len(synthetic))
    halves = draws.permuted(np.tile(np.arange(len(real)) % 2, (_HALVES, 1)), axis=1).astype(float)
    found = {}
    for name in HISTOGRAMS:
        lines = real.histograms[name], synthetic.histograms[name]
        spread = jensen_shannon(ours @ lines[0], theirs @ lines[1])
        low, high = values[name] + np.percentile(spread, INTERVAL) - spread.mean()
        floor = jensen_shannon(halves @ lines[0], (1 - halves) @ lines[0]).mean()
        bounds = max(0.0, float(low)), min(1.0, float(high))
        found[name] = Divergence(values[name], *bounds, float(floor))
    return found


def _resampled(draws: np.random.Generator, rows: int) -> F64:
    """Return how often each row is taken, a line for each resample."""
    return draws.multinomial(rows, np.full(rows, 1 / rows), RESAMPLES).astype(float)
