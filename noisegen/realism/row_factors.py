"""How rows differ in noisiness: factors of the chances of their words and gaps, with weights.

Errors come in heaps: some rows have many, many have none. The chances of a row's words are scaled
by one factor, those of its gaps by another; the pairs of factors are a mixture on a grid, fitted by
maximum likelihood (Kiefer and Wolfowitz, 1956; Laird, 1978) with the EM algorithm. The pair (0, 0)
is for the rows that stay. In any other row something changes: where no word and no gap is hit, the
one that came nearest to it is.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import comb, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from noisegen.draws import I64
from noisegen.realism.profile import RowKey

FACTOR_BITS = 8  # of the fraction of a factor
FACTORS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 18.0)
WEIGHT_TOTAL = 1 << 16
STEPS = 300  # of the EM algorithm
F64 = npt.NDArray[np.float64]
Factors = list[tuple[int, int, int]]  # of words and of gaps, in 1/256; weight out of 2^16


class Chances(NamedTuple):
    """Chances of words or gaps, and how often each was seen."""

    chances: F64
    counts: F64


def fitted(rows: Mapping[RowKey, int], words: Chances, gaps: Chances) -> Factors:
    """Return the factors that explain how many words and gaps changed in each row."""
    keys = sorted(rows)
    if not keys:
        return [(1 << FACTOR_BITS, 1 << FACTOR_BITS, WEIGHT_TOTAL)]
    sizes, word_edits, gap_edits = np.array(keys).T
    counts = np.array([rows[key] for key in keys], np.float64)
    of_words = _likelihoods(sizes, word_edits, words)
    of_gaps = _likelihoods(sizes + 1, gap_edits, gaps)
    unchanged = counts[(word_edits == 0) & (gap_edits == 0)].sum() / counts.sum()
    likelihoods = of_words[:, :, None] * of_gaps[:, None, :]
    likelihoods += _forced(sizes, word_edits, gap_edits, words, gaps)
    likelihoods[:, 0, 0] = 0
    changed = (word_edits > 0) | (gap_edits > 0)
    if not changed.any():
        return [(0, 0, WEIGHT_TOTAL)]
    mixed = _mixture(likelihoods[changed].reshape(changed.sum(), -1), counts[changed])
    mixed *= 1 - unchanged
    mixed[0] = unchanged
    return _whole(mixed)


def _forced(sizes: I64, word_edits: I64, gap_edits: I64, words: Chances, gaps: Chances) -> F64:
    """Return the chance that nothing was hit, for rows with the one edit that is then made."""
    grids = [_means(seen) for seen in (words, gaps)]
    missed = [
        np.power(1 - grid, count[:, None])
        for grid, count in zip(grids, (sizes, sizes + 1), strict=True)
    ]
    both = missed[0][:, :, None] * missed[1][:, None, :]
    share = grids[0][:, None] / np.maximum(grids[0][:, None] + grids[1][None, :], 1e-12)
    of_word = ((word_edits == 1) & (gap_edits == 0))[:, None, None] * share
    of_gap = ((word_edits == 0) & (gap_edits == 1))[:, None, None] * (1 - share)
    found: F64 = both * (of_word + of_gap)
    return found


def _means(seen: Chances) -> F64:
    """Return the mean chance at every factor."""
    share = seen.counts / max(1.0, seen.counts.sum())
    mean = np.array([(np.minimum(seen.chances * factor, 1) * share).sum() for factor in FACTORS])
    found: F64 = np.clip(mean, 1e-9, 1 - 1e-9)
    return found


def _likelihoods(sizes: I64, hits: I64, seen: Chances) -> F64:
    """Return the binomial chance of each number of hits with each factor."""
    mean = _means(seen)
    hits = np.minimum(hits, sizes)
    ways = [log(comb(n, k)) for n, k in zip(sizes.tolist(), hits.tolist(), strict=True)]
    logs = hits[:, None] * np.log(mean) + (sizes - hits)[:, None] * np.log1p(-mean)
    found: F64 = np.exp(logs + np.array(ways)[:, None])
    return found


def _mixture(likelihoods: F64, counts: F64) -> F64:
    """Return the weights of the columns that make the rows likeliest."""
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    shares = counts / counts.sum()
    for _ in range(STEPS):
        mixed = likelihoods @ weights
        weights = weights * (likelihoods.T @ (shares / np.maximum(mixed, 1e-300)))
        weights /= weights.sum()
    return weights


def _whole(weights: F64) -> Factors:
    """Return the pairs of factors with whole weights; what is below half of one is left out."""
    whole = np.round(weights * WEIGHT_TOTAL).astype(np.int64)
    grid = [int(factor * (1 << FACTOR_BITS)) for factor in FACTORS]
    pairs: Sequence[tuple[int, int]] = list(product(grid, grid))
    return [(*pair, int(w)) for pair, w in zip(pairs, whole, strict=True) if w]
