"""How rows differ in noisiness: factors of the chances of whole rows, fitted to their edits.

Errors come in heaps: some rows have many, many have none. The chances of a row's words are scaled
by one factor, those of its gaps by another; the pairs of factors are a mixture on a grid, fitted by
maximum likelihood (Kiefer and Wolfowitz, 1956; Laird, 1978) with the EM algorithm. Each pair is
there twice: once for rows where nothing may be hit, once for rows that must change, in which the
word or gap that came nearest to it is hit if no other is. The pair (0, 0) is for rows that stay.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from noisegen.noising import profile as profiles
from noisegen.noising.channel_tables import ChannelTables, Units, Words
from noisegen.noising.profile import Factor, Profile, WordKey
from noisegen.realism.two_sample import F64
from noisegen.text.buffers import I64, Texts, ordinals

ROWS_MAX = 10_000  # that factors are fitted to
EDITS_MAX = 8  # of the words of a row, or of its gaps, that are told apart
STEPS = 300  # of the EM algorithm


class RowEdits(NamedTuple):
    """A clean text, how many of its words and gaps changed, and how often the pair occurs."""

    clean: str
    words: int
    gaps: int
    times: int


class Repeat(NamedTuple):
    """A word that is twice in a row of which words changed, and which of the two did."""

    word: str
    first: bool
    second: bool


def consistency(repeats: Counter[Repeat], words: Counter[WordKey]) -> int:
    """Return the share of writers, out of 256, who write a word each time in the same way.

    The words that changed both times, against those that one writer's decision or two independent
    ones would change, where words change as often as in all rows with changes.
    """
    pairs, both = Counter[str](), 0
    for repeat, count in repeats.items():
        pairs[repeat.word] += count
        both += count * (repeat.first and repeat.second)
    changed, total = Counter[str](), Counter[str]()
    for key, count in words.items():
        if key.clean in pairs:
            total[key.clean] += count
            changed[key.clean] += count * (key.noisy != key.clean)
    once = sum(count * (repeat.first + repeat.second) / 2 for repeat, count in repeats.items())
    shares = {word: changed[word] / total[word] for word in pairs}
    more = once / max(1e-9, sum(count * shares[word] for word, count in pairs.items()))
    twice = sum(count * min(1.0, shares[word] * more) ** 2 for word, count in pairs.items())
    share = (both - twice) / (once - twice) if once > twice else 0.0
    return int(min(max(share, 0.0), 1.0) * (1 << profiles.FACTOR_BITS))


def row_factors(profile: Profile, rows: Sequence[RowEdits]) -> list[Factor]:
    """Return the factors that explain how many words and gaps changed in each row."""
    rows = sorted(rows)[:: len(rows) // ROWS_MAX + 1]
    if not rows:
        return [Factor(1 << profiles.FACTOR_BITS, 1 << profiles.FACTOR_BITS, profiles.WEIGHT_TOTAL)]
    edits = np.minimum(np.array([row[1:3] for row in rows]), EDITS_MAX)
    if not edits.any():
        return [Factor(0, 0, profiles.WEIGHT_TOTAL)]
    times = np.array([row.times for row in rows], np.float64)
    weights = _fitted(_likelihoods(profile, [row.clean for row in rows], edits), times)
    whole = np.round(weights * profiles.WEIGHT_TOTAL).astype(np.int64).tolist()
    grid = [int(factor * (1 << profiles.FACTOR_BITS)) for factor in profiles.FACTORS]
    pairs = product((False, True), grid, grid)
    return [
        Factor(words, gaps, weight, must)
        for (must, words, gaps), weight in zip(pairs, whole, strict=True)
        if weight
    ]


def _fitted(likelihoods: F64, times: F64) -> F64:
    """Return the weights of a mixture, which make the rows the most likely that it can explain."""
    explained = likelihoods.any(axis=1)
    likelihoods, times = likelihoods[explained], times[explained]
    shares = times / max(1.0, times.sum())
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(STEPS):
        mixed = likelihoods @ weights
        found = weights * (likelihoods.T @ (shares / np.maximum(mixed, 1e-300)))
        weights = found / found.sum() if found.any() else weights
    return weights


def _likelihoods(profile: Profile, texts: Sequence[str], edits: I64) -> F64:
    """Return how likely the edits of each row are with each pair of factors, free and forced."""
    kinds = _row_chances(profile, Texts.from_strings(list(texts)))
    chances = [_hit_chances(*kind, len(texts)) for kind in kinds]
    of_words, of_gaps = (
        part[np.arange(len(texts)), :, count] for part, count in zip(chances, edits.T, strict=True)
    )
    free = of_words[:, :, None] * of_gaps[:, None, :]
    nothing = chances[0][:, :, None, 0] * chances[1][:, None, :, 0]
    sums = [np.bincount(kind[0], kind[1], len(texts))[:, None] for kind in kinds]
    expected = [part * np.array(profiles.FACTORS) for part in sums]
    both = expected[0][:, :, None] + expected[1][:, None, :]
    share = expected[0][:, :, None] / np.maximum(both, 1e-12)
    one_word, one_gap = ((edits == one).all(axis=1)[:, None, None] for one in ([1, 0], [0, 1]))
    forced = free + nothing * (one_word * share + one_gap * (1 - share))
    forced[(edits == 0).all(axis=1)] = 0
    forced[:, 0, 0] = 0
    return np.stack([free, forced], axis=1).reshape(len(texts), -1)


def _row_chances(profile: Profile, texts: Texts) -> list[tuple[I64, F64]]:
    """Return the rows and chances of all words and phrases, then those of all gaps."""
    tables = ChannelTables(profiles.compiled(profile))
    words = Words.of(texts)
    units = Units.of(texts, words)
    groups, is_word = tables.groups(texts, words, units), units.words >= 0
    phrases = [(words.rows.take(firsts), of) for firsts, _, of in tables.phrases(words)]
    of_words = [(units.rows[is_word], groups[is_word]), *phrases]
    found = []
    for parts in (of_words, [(units.rows[~is_word], groups[~is_word])]):
        rows, numbers = map(np.concatenate, zip(*parts, strict=True))
        chances = tables.chances.take(numbers) / (1 << profiles.CHANCE_BITS)
        order = np.argsort(rows, kind="stable")
        order = order[chances[order] > 0]
        found.append((rows[order], chances[order]))
    return found


def _hit_chances(rows: I64, chances: F64, count: int) -> F64:
    """Return for each row and factor the chance of 0, 1, ... `EDITS_MAX` or more hits."""
    hits = np.zeros((count, len(profiles.FACTORS), EDITS_MAX + 1))
    hits[:, :, 0] = 1
    numbers = ordinals(rows)
    for number in range(int(numbers.max(initial=-1)) + 1):
        here = np.flatnonzero(numbers == number)
        chance = np.minimum(chances[here, None] * np.array(profiles.FACTORS), 1)[:, :, None]
        before = hits[rows[here]]
        after = before * (1 - chance)
        after[:, :, 1:] += before[:, :, :-1] * chance
        after[:, :, -1:] += before[:, :, -1:] * chance
        hits[rows[here]] = after
    return hits
