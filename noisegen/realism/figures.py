"""How noisy a set of pairs is and in which ways: rates, histograms, and their divergences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.measures import character_errors, word_errors
from noisegen.realism import respelling
from noisegen.realism.alignment import Edit, edits, token_spans
from noisegen.realism.kinds import KINDS, kind_of
from noisegen.tally import ratio

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
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoiseFigures:
    """The noise of some pairs; a ratio is None where there is nothing to divide by.

    `cer` and `wer` are errors over the characters and words of the clean side. `edits_per_row`
    counts rows with 0, 1, ... 10 or more edits; the other histograms count edits: by kind, by the
    tenth of the clean text they lie in, and by what they touch of a word (marks do not count).
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
        """All edits."""
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
    """What every row adds to the figures.

    `histograms` has, for each name in `HISTOGRAMS`, one line of counts a row; `sums` has a line a
    row with the columns of `SUMS`.
    """

    histograms: dict[str, F64]
    sums: F64

    def __len__(self) -> int:
        return len(self.sums)


SUMS = ("changed", "character_errors", "characters", "word_errors", "words")


def measure(clean: Sequence[str], noisy: Sequence[str], lang: str = "") -> NoiseFigures:
    """Return the figures of pairs; `lang` is that of `kinds.kind_of`.

    Raises ValueError if the two sides have different numbers of rows.
    """
    return figures(count(clean, noisy, lang), clean, noisy)


def divergences(real: NoiseFigures, synthetic: NoiseFigures) -> dict[str, float]:
    """Return the Jensen-Shannon divergence of every histogram: 0 the same, 1 nothing in common.

    That of a set without edits and one with edits is 1.
    """
    return {
        name: float(jensen_shannon(_line(real, name), _line(synthetic, name))[0])
        for name in HISTOGRAMS
    }


def _line(found: NoiseFigures, name: str) -> F64:
    return np.array([found.histogram(name)], float)


def jensen_shannon(ours: F64, theirs: F64) -> F64:
    """Return the Jensen-Shannon divergence (base 2) of each line of counts and its partner."""
    ours, theirs = _shares(ours), _shares(theirs)
    middle = (ours + theirs) / 2
    found = (_divergence(ours, middle) + _divergence(theirs, middle)) / 2
    empty = ours.sum(axis=1) + theirs.sum(axis=1)  # 0: both, 1: one of them
    clipped: F64 = np.where(empty < 1.5, np.round(empty), np.clip(found, 0, 1))
    return clipped


def _shares(counts: F64) -> F64:
    totals = counts.sum(axis=1, keepdims=True)
    shares: F64 = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    return shares


def _divergence(ours: F64, middle: F64) -> F64:
    quotient = np.divide(ours, middle, out=np.ones_like(ours), where=ours > 0)
    shares: F64 = (ours * np.log2(quotient)).sum(axis=1)
    return shares


# Counting.


def count(clean: Sequence[str], noisy: Sequence[str], lang: str = "") -> RowCounts:
    """Count the edits and errors of every row."""
    lines = {name: np.zeros((len(clean), width)) for name, width in _WIDTHS.items()}
    sums = np.zeros((len(clean), len(SUMS)))
    for row, (ours, theirs) in enumerate(zip(clean, noisy, strict=True)):
        sums[row] = (0, 0, len(ours), 0, len(ours.split()))
        found = edits(ours, theirs) if ours != theirs else []
        lines["edits_per_row"][row, min(len(found), EDITS_MAX)] = 1
        if ours != theirs:
            errors = character_errors(ours, theirs), word_errors(ours, theirs)
            sums[row, 0], sums[row, 1], sums[row, 3] = 1, *errors
        for edit in found:
            lines["kinds"][row, _KIND_NUMBERS[kind_of(ours, theirs, edit, lang)]] += 1
            lines["sentence_positions"][row, sentence_bin(ours, edit)] += 1
            place = word_place(ours, theirs, edit)
            if place is not None:
                lines["word_positions"][row, WORD_PLACES.index(place)] += 1
    return RowCounts(lines, sums)


def sentence_bin(clean: str, edit: Edit) -> int:
    """Return the tenth of the clean text that the middle of an edit lies in, from 0."""
    middle = (edit.clean_start + edit.clean_stop) / 2
    return min(int(middle * SENTENCE_BINS / max(len(clean), 1)), SENTENCE_BINS - 1)


def word_place(clean: str, noisy: str, edit: Edit) -> str | None:
    """Return what an edit touches of a word, of `WORD_PLACES`; None if it has no letter or digit.

    What the two forms share at both ends is taken off; what is left touches the start, the end,
    neither (inside) or both (whole).
    """
    before = clean[edit.clean_start : edit.clean_stop]
    after = noisy[edit.noisy_start : edit.noisy_stop]
    if not any(character.isalnum() for character in before + after):
        return None
    head = respelling.common_prefix(before, after)
    most = min(len(before), len(after)) - head
    tail = min(respelling.common_prefix(before[::-1], after[::-1]), most)
    return _PLACES[head > 0, tail > 0]


_PLACES = {
    (False, True): "start",
    (True, True): "inside",
    (True, False): "end",
    (False, False): "whole",
}


def figures(counts: RowCounts, clean: Sequence[str], noisy: Sequence[str]) -> NoiseFigures:
    """Return the figures of rows that were counted."""
    lines = counts.histograms.items()
    totals = {name: counted.sum(axis=0).astype(int).tolist() for name, counted in lines}
    sums = dict(zip(SUMS, counts.sums.sum(axis=0).tolist(), strict=True))
    sides = _side_words(clean), _side_words(noisy)
    types = set(sides[0]), set(sides[1])
    unseen = sum(word not in types[0] for word in sides[1])
    return NoiseFigures(
        rows=len(counts),
        changed_share=ratio(sums["changed"], len(counts)),
        cer=ratio(sums["character_errors"], sums["characters"]),
        wer=ratio(sums["word_errors"], sums["words"]),
        edits_per_row=tuple(totals["edits_per_row"]),
        kinds=dict(zip(KINDS, totals["kinds"], strict=True)),
        sentence_positions=tuple(totals["sentence_positions"]),
        word_positions=dict(zip(WORD_PLACES, totals["word_positions"], strict=True)),
        oov_ratio=ratio(unseen, len(sides[1])),
        type_token_ratio=ratio(len(types[1]), len(sides[1])),
        clean_type_token_ratio=ratio(len(types[0]), len(sides[0])),
    )


def _side_words(texts: Sequence[str]) -> list[str]:
    """Return the words of all texts in lower case, without marks."""
    found = (text[slice(*span)].lower() for text in texts for span in token_spans(text))
    return [word for word in found if any(character.isalnum() for character in word)]
