"""Figures that describe noise: error rates, histograms of edits, divergences of histograms."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import NamedTuple

import numpy as np

from noisegen.augmentation.statistics import ratio
from noisegen.errors import naming_extras
from noisegen.realism.kinds import KINDS, kind_of
from noisegen.realism.two_sample import F64, INTERVAL, resampled
from noisegen.runs.options import ALONE, WorkerOptions
from noisegen.text import alignment
from noisegen.text.alignment import TokenEdit, common_prefix, edits, token_spans

EDITS_MAX = 10  # edits per row; the last bin of the histogram has rows with this many or more
WORD_PLACES = ("start", "inside", "end", "whole")
ROWS_AT_ONCE = 2_000  # rows that a worker aligns per task
_HALVES = 50  # random splits of the real set into halves, whose mean divergence is the floor


class Histogram(NamedTuple):
    """The title of a histogram, the names of its bins, and the label of its axis."""

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


@dataclass(frozen=True)
class NoiseFigures:
    """Figures of the noise in a set of pairs; a ratio is None if its denominator is 0.

    `changed_share` is the share of changed rows. `cer` and `wer` are errors divided by the
    characters or words of the clean side. `edits_per_row` counts rows with 0, 1, ... 10 or more
    edits. Three fields count edits: `kinds` by kind, `sentence_positions` by tenth of the clean
    text, and `word_positions` by part of the word ("start", "inside", "end" or "whole").
    `oov_ratio` is the share of words on the noisy side that occur nowhere on the clean side. A
    type-token ratio is the number of different words divided by the number of words.
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
        """Return the counts of the bins of a histogram; `name` is a key of `HISTOGRAMS`."""
        counts = getattr(self, name)
        return list(counts.values() if isinstance(counts, dict) else counts)


RowCounts = dict[str, F64]  # name of a histogram -> counts of each row, shape (rows, bins)


def measure(
    clean: Sequence[str], noisy: Sequence[str], lang: str = "", workers: WorkerOptions = ALONE
) -> tuple[NoiseFigures, RowCounts]:
    """Return the figures of pairs, and the counts that each row adds to each histogram.

    `lang` is the language of the texts; some kinds of edit depend on it. Raises ValueError if
    the two sides have different numbers of rows.
    """
    rows = list(zip(clean, noisy, strict=True))
    tasks = (rows[at : at + ROWS_AT_ONCE] for at in range(0, max(1, len(rows)), ROWS_AT_ONCE))
    with closing(workers.in_order(partial(_aligned, lang), tasks)) as results:
        parts, character_errors, word_errors = zip(*results, strict=True)
    counts = {name: np.concatenate([part[name] for part in parts]) for name in HISTOGRAMS}
    totals = {name: lines.sum(axis=0).astype(int).tolist() for name, lines in counts.items()}
    clean_words, noisy_words = _words(clean), _words(noisy)
    clean_types, noisy_types = set(clean_words), set(noisy_words)
    figures = NoiseFigures(
        rows=len(rows),
        changed_share=ratio(sum(before != after for before, after in rows), len(rows)),
        cer=ratio(sum(character_errors), sum(map(len, clean))),
        wer=ratio(sum(word_errors), sum(len(text.split()) for text in clean)),
        edits_per_row=tuple(totals["edits_per_row"]),
        kinds=dict(zip(KINDS, totals["kinds"], strict=True)),
        sentence_positions=tuple(totals["sentence_positions"]),
        word_positions=dict(zip(WORD_PLACES, totals["word_positions"], strict=True)),
        oov_ratio=ratio(sum(word not in clean_types for word in noisy_words), len(noisy_words)),
        type_token_ratio=ratio(len(noisy_types), len(noisy_words)),
        clean_type_token_ratio=ratio(len(clean_types), len(clean_words)),
    )
    return figures, counts


def _words(texts: Sequence[str]) -> list[str]:
    """Return the tokens with a letter or digit in all texts, in lower case."""
    words: list[str] = []
    for text in texts:
        words += (token for token in lower_tokens(text) if any(map(str.isalnum, token)))
    return words


def lower_tokens(text: str) -> list[str]:
    """Return the tokens of a text in lower case."""
    return [text[start:stop].lower() for start, stop in token_spans(text)]


def _aligned(lang: str, rows: Sequence[tuple[str, str]]) -> tuple[RowCounts, int, int]:
    """Find and count the edits of rows (clean, noisy), as one task of `measure`.

    Return the counts that each row adds to each histogram, and the total numbers of character
    errors and word errors.
    """
    character_errors = sum(starmap(alignment.character_errors, rows))
    word_errors = sum(starmap(alignment.word_errors, rows))
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
    return counts, character_errors, word_errors


def word_place(clean: str, noisy: str, edit: TokenEdit) -> str | None:
    """Return the part of a word that an edit changes, one of `WORD_PLACES`.

    'going' -> 'goin' changes the end, 'them' -> 'em' the start, 'tomorrow' -> 'tomorow' the inside.
    If neither the first nor the last character stays, the whole word is changed. Returns None for
    an edit without a letter or digit.
    """
    before, after = edit.texts(clean, noisy)
    if not any(map(str.isalnum, before + after)):
        return None
    head = common_prefix(before, after)
    tail = common_prefix(before[head:][::-1], after[head:][::-1])
    if head:
        return "inside" if tail else "end"
    return "start" if tail else "whole"


# Divergences of histograms.


@dataclass(frozen=True)
class Divergence:
    """Jensen-Shannon divergence (base 2) of two histograms: of real noise and of synthetic noise.

    `low` and `high` bound the 95 % bootstrap interval of `value`. `floor` is the mean divergence
    between two random halves of the real set: no lower value can be expected of synthetic noise.
    """

    value: float
    low: float
    high: float
    floor: float


def row_divergences(
    real: RowCounts, synthetic: RowCounts, is_paired: bool
) -> dict[str, Divergence]:
    """Return the divergence of each histogram, with its interval and floor.

    Intervals come from resampled rows; in paired sets, the two rows of a clean text are resampled
    together. Resampling increases divergences on average. So all divergences of resamples are
    shifted by the same amount, such that their mean is the measured divergence.
    """
    rng = np.random.default_rng(0)  # a fixed seed, so that equal input gives equal intervals
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
    """Return the Jensen-Shannon divergence (base 2) of each row of `p` from the same row of `q`.

    Both arrays hold counts, shape (rows, bins). The divergence is 0 if both rows are all zeros, and
    1 if only one of them is.
    """
    with naming_extras():
        from scipy.spatial.distance import jensenshannon
    with np.errstate(invalid="ignore"):  # a row without counts gives NaN, which is replaced below
        distances = jensenshannon(p, q, base=2, axis=1)
    is_one_empty = p.any(axis=1) != q.any(axis=1)
    divergences: F64 = np.where(np.isnan(distances), is_one_empty, distances**2)
    return divergences
