"""What a step makes when it is alone, as a vector, and which mix of vectors comes nearest a target.

A vector holds means a row: edits of each kind, the histogram of edits per row, edits by their place
in the text and in the word, CER and WER. That of
rows of which each draws one of several recipes is the weighted mean of theirs; that of several
light steps is close to the sum of theirs. So both mixes are least squares without negative numbers.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from noisegen.realism.figures import (
    EDITS_MAX,
    SENTENCE_BINS,
    SUMS,
    WORD_PLACES,
    RowCounts,
    count,
    jensen_shannon,
)
from noisegen.realism.kinds import KINDS

F64 = npt.NDArray[np.float64]

KIND = slice(0, len(KINDS))
EDITS = slice(len(KINDS), len(KINDS) + EDITS_MAX + 1)
TEXT = slice(EDITS.stop, EDITS.stop + SENTENCE_BINS)
WORD = slice(TEXT.stop, TEXT.stop + len(WORD_PLACES))
CER, WER = WORD.stop, WORD.stop + 1
_HISTOGRAMS = ("kinds", "edits_per_row", "sentence_positions", "word_positions")
RARE = 0.01  # added to a share before it is divided by, so that what is rare does not rule
_SWEEPS_MAX, _STILL = 500, 1e-9


def vector(clean: Sequence[str], noisy: Sequence[str], lang: str) -> F64:
    """Return the means of pairs."""
    return vector_of(count(clean, noisy, lang))


def vector_of(counts: RowCounts) -> F64:
    """Return the means of rows that were counted."""
    sums = dict(zip(SUMS, counts.sums.sum(axis=0).tolist(), strict=True))
    rates = [sums[f"{name}_errors"] / max(1.0, sums[f"{name}s"]) for name in ("character", "word")]
    lines = [counts.histograms[name].mean(axis=0) for name in _HISTOGRAMS]
    return np.concatenate([*lines, rates])


def unchanged() -> F64:
    """Return the vector of rows that stay as they are."""
    made = np.zeros(WER + 1)
    made[EDITS.start] = 1
    return made


def distance(real: F64, made: F64) -> float:
    """Return how far a vector is from that of real pairs.

    It is the sum of the divergences of the four histograms, of the miss in the share of changed
    rows, and of a quarter of the relative misses in CER and WER.
    """
    lines = [float(jensen_shannon(real[None, part], made[None, part])[0]) for part in (KIND, EDITS)]
    changed = abs(real[EDITS.start] - made[EDITS.start])
    rates = [abs(np.log(max(made[n], 1e-6) / max(real[n], 1e-6))) for n in (CER, WER)]
    return float(sum(lines) + changed + sum(rates) / 4)


def nonnegative(matrix: F64, target: F64) -> F64:
    """Return x >= 0 that minimises |matrix x - target|^2, one coordinate at a time (convex)."""
    squares, aims = matrix.T @ matrix, matrix.T @ target
    found = np.zeros(matrix.shape[1])
    live = np.flatnonzero(np.diag(squares) > 0)
    for _ in range(_SWEEPS_MAX):
        moved = 0.0
        for place in live:
            at = found[place] + (aims[place] - squares[place] @ found) / squares[place, place]
            moved = max(moved, abs(max(0.0, at) - found[place]))
            found[place] = max(0.0, at)
        if moved < _STILL:
            break
    return found
