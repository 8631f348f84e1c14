"""Row factors: how much noisier than average each row is, fitted to the edits of all rows.

Errors come in heaps: some rows have many, many rows have none. One factor scales the chances of a
row's words, another the chances of its gaps. The pairs of factors are a mixture on a grid, fitted
by maximum likelihood (Kiefer and Wolfowitz, 1956; Laird, 1978) with the EM algorithm. Each pair is
in the mixture twice: free, and forced for rows that must change. If chance hits nothing in a forced
row, the word or gap that came nearest to a hit is changed. The pair (0, 0) is for rows that stay
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

ROWS_MAX = 10_000  # rows that factors are fitted to
EDITS_MAX = 8  # changed words of a row, or gaps; more count as this many
STEPS = 300  # steps of the EM algorithm
_FACTORS = np.array(profiles.FACTORS)


class RowEdits(NamedTuple):
    """A clean text, the numbers of its changed words and gaps, and how often the pair occurs."""

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
    """Return the share of writers, out of 256, who write a word in the same way each time.

    The number of words that changed at both occurrences is compared with two expectations: 0 for
    the number that independent decisions would give, 256 for the number that one decision per word
    would give. The share is interpolated between them.
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
    # Rows with changes change their words more often than all rows.
    more = once / max(1e-9, sum(count * shares[word] for word, count in pairs.items()))
    twice = sum(count * min(1.0, shares[word] * more) ** 2 for word, count in pairs.items())
    share = (both - twice) / (once - twice) if once > twice else 0.0
    return int(min(max(share, 0.0), 1.0) * (1 << profiles.FACTOR_BITS))


def row_factors(profile: Profile, rows: Sequence[RowEdits]) -> list[Factor]:
    """Return the factors, with weights, that best explain the changed words and gaps of rows."""
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
    """Return the weights of a mixture that make the rows most likely.

    `likelihoods` has shape (rows, parts of the mixture); rows that no part explains are left out.
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
    """Return the likelihood of each row's edits under each pair of factors, free and forced.

    `edits` has shape (rows, 2): changed words and changed gaps. The result has a row per text and a
    column per free, then per forced pair.
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
    """Words or gaps that may change, sorted by row, and the chance of each."""

    rows: I64
    chances: F64


def _expected_hits(places: _Places, count: int) -> F64:
    """Return the expected number of hits, shape (rows, factors)."""
    hits: F64 = np.bincount(places.rows, places.chances, count)[:, None] * _FACTORS
    return hits


def _row_places(profile: Profile, texts: Texts) -> tuple[_Places, _Places]:
    """Return the words and phrases of texts that may change, and their gaps."""
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
    """Return the chance of 0, 1, ... `EDITS_MAX` or more hits, shape (rows, factors, hits)."""
    hits = np.zeros((count, len(_FACTORS), EDITS_MAX + 1))
    hits[:, :, 0] = 1
    numbers = ordinals(places.rows)
    for number in range(int(numbers.max(initial=-1)) + 1):
        here = np.flatnonzero(numbers == number)  # at most one place of each row
        rows = places.rows[here]
        chance = np.minimum(places.chances[here, None] * _FACTORS, 1)[:, :, None]
        before = hits[rows]
        after = before * (1 - chance)
        after[:, :, 1:] += before[:, :, :-1] * chance
        after[:, :, -1:] += before[:, :, -1:] * chance
        hits[rows] = after
    return hits
