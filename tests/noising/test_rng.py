"""Scalar and array draws have the same bits, and both look like chance."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.noising import rng
from noisegen.noising.rng import (
    CERTAIN,
    GAPS_MAX,
    Draws,
    GapTables,
    choices,
    decisions,
    draw_array,
    fork,
    fork_array,
    gap_table,
    row_key,
    row_keys,
    splitmix,
    splitmix_array,
    stream_key,
    threshold,
)

ROWS = 200_000
U64 = st.integers(0, 2**64 - 1)


def uniform(seed: int = 1, name: str = "fing", first_id: int = 0, number: int = 0) -> np.ndarray:
    ids = np.arange(first_id, first_id + ROWS, dtype=np.uint64)
    return draw_array(row_keys(stream_key(seed, name), ids), number)


def test_splitmix64_gives_the_published_sequence():
    """Vigna's reference output for the seed 1234567."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    draws = Draws(1234567)
    assert [draws.integer() for _ in expected] == expected


@given(U64, st.text(max_size=8), st.lists(U64, min_size=1, max_size=8), st.integers(0, 2**20))
def test_arrays_have_the_bits_of_scalars(seed, name, ids, number):
    stream = stream_key(seed, name)
    keys = row_keys(stream, np.array(ids, np.uint64))
    assert keys.tolist() == [row_key(stream, row_id) for row_id in ids]
    assert fork_array(keys, "x").tolist() == [fork(int(key), "x") for key in keys]
    assert splitmix_array(keys).tolist() == [splitmix(int(key)) for key in keys]
    for key, draw in zip(keys, draw_array(keys, number), strict=True):
        draws = Draws(int(key))
        draws.number = number
        assert draws.integer() == draw


@given(
    st.lists(st.sampled_from([0, 0.001, 0.05, 0.5, 0.999, 1]), min_size=1, max_size=4),
    st.lists(st.integers(0, 3_000), max_size=30),
    st.integers(0, 2**32),
)
def test_array_hits_are_the_scalar_positions(rates, lengths, seed):
    keys = row_keys(stream_key(seed, "hits"), np.arange(len(lengths), dtype=np.uint64))
    strengths = np.arange(len(lengths)) % len(rates)
    found = GapTables([Fraction(str(rate)) for rate in rates]).hits(
        keys, np.array(lengths, np.int64), strengths
    )
    for row, length in enumerate(lengths):
        positions = list(Draws(int(keys[row])).positions(length, rates[strengths[row]]))
        assert found.positions[found.rows == row].tolist() == positions
    assert (np.diff(found.rows) >= 0).all()


def test_the_bits_of_every_draw_are_uniform():
    draws = uniform()
    for bit in range(64):
        ones = int((draws >> np.uint64(bit) & np.uint64(1)).sum())
        assert abs(ones - ROWS / 2) < 5 * math.sqrt(ROWS) / 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"first_id": 1}, id="next row"),
        pytest.param({"seed": 2}, id="next seed"),
        pytest.param({"name": "fing#2"}, id="other name"),
        pytest.param({"number": 1}, id="next draw"),
    ],
)
def test_draws_are_independent_of_neighbours(other):
    """A 64 by 64 table of the two draws' leading bits: chi-square within 5 sigma of its mean."""
    first, second = (part >> np.uint64(58) for part in (uniform(), uniform(**other)))
    counts = np.bincount((first * np.uint64(64) + second).astype(np.int64), minlength=4096)
    expected = ROWS / 4096
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi_square - 4095) < 5 * math.sqrt(2 * 4095)


def test_choice_bits_are_independent_of_decision_bits():
    draws = uniform()
    low = choices(draws[decisions(draws) < CERTAIN // 20])
    mean, sigma = 65535 / 2, 65536 / math.sqrt(12 * len(low))
    assert abs(low.mean() - mean) < 5 * sigma


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.1, 0.5])
def test_hits_have_their_rate(rate):
    keys = row_keys(stream_key(3, "rate"), np.arange(2_000, dtype=np.uint64))
    lengths = np.full(2_000, 500)
    hits = GapTables([Fraction(str(rate))]).hits(keys, lengths, np.zeros(2_000, np.int64))
    n = 2_000 * 500
    assert abs(len(hits.rows) - n * rate) < 5 * math.sqrt(n * rate * (1 - rate))


def test_the_gap_table_is_the_geometric_distribution():
    table = gap_table(0.05)
    for k in (0, 1, 10, 100):
        assert table[k] / CERTAIN == pytest.approx(1 - 0.95 ** (k + 1), abs=1e-12)
    assert len(gap_table(1)) == 1
    assert len(gap_table(0.0001)) == GAPS_MAX


def test_a_rate_is_the_decimal_that_was_written():
    assert threshold(0.1) == CERTAIN // 10
    assert (threshold(0), threshold(1), threshold(1.5)) == (0, CERTAIN, CERTAIN)


def test_rate_zero_draws_nothing_and_rate_one_always_hits():
    draws = Draws(7)
    assert not draws.hit(0)
    assert draws.number == 0
    assert all(draws.hit(1) for _ in range(100))
    assert list(draws.positions(5, 0)) == []
    assert list(draws.positions(5, 1)) == [0, 1, 2, 3, 4]


def test_pick_follows_its_weights():
    draws, n = Draws(11), 20_000
    picked = sum(draws.pick("ab", (3, 1)) == "a" for _ in range(n))
    assert abs(picked - 0.75 * n) < 5 * math.sqrt(n * 0.75 * 0.25)
    assert {draws.pick("xyz") for _ in range(100)} == set("xyz")


def test_copies_are_other_streams_and_copy_zero_is_the_seed():
    assert stream_key(5, "fing", 0) == stream_key(5, "fing")
    assert len({stream_key(5, "fing", copy) for copy in range(100)}) == 100


def test_no_global_random_state_is_touched():
    before = random.getstate()
    draws = Draws(3)
    draws.pick([1, 2, 3])
    draws.fork("x").hit(0.5)
    assert random.getstate() == before
    assert draws.seed < 2**32


def test_how_many_draws_are_made_at_once_decides_nothing(monkeypatch):
    gaps = GapTables([Fraction(1), Fraction(1, 10)])
    keys, lengths = np.arange(4, dtype=np.uint64), np.array([300, 0, 5_000, 40])
    hits = gaps.hits(keys, lengths, np.array([0, 0, 1, 1]))
    monkeypatch.setattr(rng, "DRAWS_MAX", 7)
    fewer = gaps.hits(keys, lengths, np.array([0, 0, 1, 1]))
    assert all((a == b).all() for a, b in zip(hits, fewer, strict=True))


@pytest.mark.parametrize("weight", [2**62, 2**63 - 1, 2**70])
def test_huge_weights_do_not_overflow(weight):
    assert rng.WeightedChoices.of([[weight, weight, 1]]).bounds.tolist() == [32767, 65535, 65536]


def test_windows_of_a_row_have_the_hits_of_the_row(monkeypatch):
    monkeypatch.setattr(rng, "WINDOW_BYTES", 64)
    rates = [Fraction(rate) for rate in ("1", "0.3", "0.01", "0.0001", "0")]
    gaps, key = GapTables(rates), np.array([5], np.uint64)
    for strength in range(len(rates)):
        for length in (0, 1, 64, 5_000):
            whole = gaps.hits(key, np.array([length]), np.array([strength]))
            parts = list(gaps.windows(key, length, np.array([strength])))
            assert len(parts) == -(-length // 64)
            assert all((at // 64 == number).all() for number, (_, at, _) in enumerate(parts))
            for a, columns in zip(whole, zip(*parts, strict=True), strict=bool(parts)):
                assert a.tolist() == np.concatenate(columns).tolist()
