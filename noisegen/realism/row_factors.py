"""Row factors: how much noisier than average each row is, fitted to the edits of all rows.

Errors are not spread evenly: some rows have many, many rows have none. Each row therefore draws a
pair of factors: one multiplies the chances of its words to change, the other the chances of its
gaps. All pairs in a fixed grid have weights, fitted by maximum likelihood (Kiefer and Wolfowitz,
1956; Laird, 1978) with the EM algorithm. Each pair has two weights, for free and for forced rows.
In a free row, chance alone decides. In a forced row, at least one word or gap changes: if chance
changes none, the word or gap closest to a change is changed. Rows with the factors (0, 0) stay
unchanged.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from noisegen.noising import profile as profiles
from noisegen.noising.channel_model import CHANCE_BITS, channel_of
from noisegen.noising.channel_tables import ChannelTables, Units, Words
from noisegen.noising.profile import Factor, Profile, WordKey
from noisegen.realism.two_sample import F64
from noisegen.text.buffers import I64, Texts, ordinals

ROWS_MAX = 10_000  # most rows to which factors are fitted
EDITS_MAX = 8  # changed words or gaps; a row with more is counted as a row with this many
STEPS = 300  # steps of the EM algorithm
_FACTORS = np.array(profiles.FACTORS)


class RowEdits(NamedTuple):
    """A clean text and its numbers of changed words and gaps; `times` counts equal pairs."""

    clean: str
    words: int
    gaps: int
    times: int


class Repeat(NamedTuple):
    """A word that occurs twice in a text, and whether its first and second occurrence changed."""

    word: str
    first: bool
    second: bool


def consistency(repeats: Counter[Repeat], words: Counter[WordKey]) -> int:
    """Return the share of writers who write a word in the same way each time, in units of 1/256.

    It is estimated from words that occur twice in a text: 0 if their occurrences change
    independently, 256 if always both change or neither, and linear in between.
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
    # `repeats` is only from rows with a changed word, where words change more often than elsewhere
    more = once / max(1e-9, sum(count * shares[word] for word, count in pairs.items()))
    twice = sum(count * min(1.0, shares[word] * more) ** 2 for word, count in pairs.items())
    share = (both - twice) / (once - twice) if once > twice else 0.0
    return int(min(max(share, 0.0), 1.0) * (1 << profiles.FACTOR_BITS))


def row_factors(profile: Profile, rows: Sequence[RowEdits]) -> list[Factor]:
    """Fit pairs of row factors to the changed words and gaps of rows; return them with weights.

    The noise profile `profile` gives the chance of each word and gap to change.
    """
    rows = sorted(rows)[:: len(rows) // ROWS_MAX + 1]
    if not rows:
        one = 1 << profiles.FACTOR_BITS
        return [Factor(one, one, profiles.WEIGHT_TOTAL, must=True)]
    edits = np.minimum(np.array([row[1:3] for row in rows]), EDITS_MAX)
    if not edits.any():
        return [Factor(0, 0, profiles.WEIGHT_TOTAL, must=True)]
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
    """Return the mixture weights that maximise the likelihood of the rows.

    `likelihoods` has the likelihood of each row under each component, shape (rows, components);
    rows whose likelihoods are all 0 are left out. `times` has the number of times that each row
    occurs.
    """
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
    """Return the likelihood of each row's edits under each pair of factors, if free and if forced.

    `texts` are the clean texts of the rows. `edits` has the numbers of changed words and changed
    gaps, shape (rows, 2). The result has shape (rows, 2 * pairs): free pairs, then forced pairs.
    """
    words, gaps = _row_places(profile, Texts.from_strings(list(texts)))
    rows = np.arange(len(texts))
    word_hits, gap_hits = _hit_chances(words, len(texts)), _hit_chances(gaps, len(texts))
    of_words, of_gaps = word_hits[rows, :, edits[:, 0]], gap_hits[rows, :, edits[:, 1]]
    free = of_words[:, :, None] * of_gaps[:, None, :]  # (rows, word factors, gap factors)
    nothing = word_hits[:, :, None, 0] * gap_hits[:, None, :, 0]
    expected_words = _expected_hits(words, len(texts))[:, :, None]
    expected_gaps = _expected_hits(gaps, len(texts))[:, None, :]
    word_share = expected_words / np.maximum(expected_words + expected_gaps, 1e-12)
    is_one_word = (edits == [1, 0]).all(axis=1)[:, None, None]
    is_one_gap = (edits == [0, 1]).all(axis=1)[:, None, None]
    forced = free + nothing * (is_one_word * word_share + is_one_gap * (1 - word_share))
    forced[(edits == 0).all(axis=1)] = 0
    forced[:, 0, 0] = 0
    return np.stack([free, forced], axis=1).reshape(len(texts), -1)


class _Places(NamedTuple):
    """Words (or gaps) that may change: their row index and chance to change, sorted by row."""

    rows: I64
    chances: F64


def _expected_hits(places: _Places, count: int) -> F64:
    """Return the expected number of changes in each of `count` rows, for each of `_FACTORS`.

    The result has shape (rows, factors).
    """
    hits: F64 = np.bincount(places.rows, places.chances, count)[:, None] * _FACTORS
    return hits


def _row_places(profile: Profile, texts: Texts) -> tuple[_Places, _Places]:
    """Return words and phrases in the texts that may change, and gaps that may change."""
    tables = ChannelTables(channel_of(profile))
    words = Words.of(texts)
    units = Units.of(texts, words)
    groups, is_word = tables.groups(texts, words, units), units.words >= 0
    phrases = [(words.rows.take(firsts), of) for firsts, _, of in tables.phrases(words)]
    of_words = [(units.rows[is_word], groups[is_word]), *phrases]
    of_gaps = [(units.rows[~is_word], groups[~is_word])]
    found = []
    for parts in (of_words, of_gaps):
        rows, numbers = map(np.concatenate, zip(*parts, strict=True))
        chances = tables.chances.take(numbers) / (1 << CHANCE_BITS)
        order = np.argsort(rows, kind="stable")
        order = order[chances[order] > 0]
        found.append(_Places(rows[order], chances[order]))
    return found[0], found[1]


def _hit_chances(places: _Places, count: int) -> F64:
    """Return the chances of 0, 1, ... changes in each of `count` rows, for each of `_FACTORS`.

    The result has shape (rows, factors, EDITS_MAX + 1); the last column is `EDITS_MAX` or more.
    """
    hits = np.zeros((count, len(_FACTORS), EDITS_MAX + 1))
    hits[:, :, 0] = 1
    numbers = ordinals(places.rows)
    for number in range(int(numbers.max(initial=-1)) + 1):
        here = np.flatnonzero(numbers == number)  # the word (or gap) with this index in each row
        rows = places.rows[here]
        chance = np.minimum(places.chances[here, None] * _FACTORS, 1)[:, :, None]
        before = hits[rows]
        after = before * (1 - chance)
        after[:, :, 1:] += before[:, :, :-1] * chance
        after[:, :, -1:] += before[:, :, -1:] * chance
        hits[rows] = after
    return hits
