"""The bootstrap: equal to resampling row by row, right in its level, the same for a seed."""

import time

import numpy as np
import pytest
from scipy.stats import spearmanr

from noisegen.errors import UsageError
from noisegen.evaluation import (
    mean_differences,
    mean_intervals,
    spearman_differences,
    spearman_intervals,
)


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


def resamples(count, seed, times):
    """Rows of each resample, drawn as the package draws them."""
    return generator(seed).integers(0, count, (times, count), np.int64)


def test_mean_intervals_are_those_of_rows_drawn_again():
    values = generator(1).standard_normal((40, 2))
    found = mean_intervals({"a": values[:, 0], "b": values[:, 1]}, seed=5, resamples=500)
    drawn = values[resamples(40, 5, 500)].mean(axis=1)
    for place, name in enumerate("ab"):
        low, high = np.percentile(drawn[:, place], (2.5, 97.5))
        assert found[name].value == pytest.approx(values[:, place].mean())
        assert (found[name].low, found[name].high) == pytest.approx((low, high))


def test_mean_differences_are_paired_and_p_is_that_of_the_other_side_of_zero():
    ours, theirs = generator(2).standard_normal((2, 30))
    ours += 0.3
    found = mean_differences({"m": ours}, {"m": theirs}, seed=5, resamples=500)["m"]
    drawn = (ours - theirs)[resamples(30, 5, 500)].mean(axis=1)
    assert found.value == pytest.approx((ours - theirs).mean())
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, (2.5, 97.5))))
    assert found.p == pytest.approx(2 * (min((drawn <= 0).sum(), (drawn >= 0).sum()) + 1) / 501)


def test_spearman_of_a_resample_is_scipys_with_ties():
    draws = generator(3)
    ours, theirs = draws.integers(0, 6, (2, 25)) / 5
    scores = draws.integers(0, 4, 25).astype(float)
    rows = resamples(25, 7, 200)
    drawn = [
        [spearmanr(side[one], scores[one]).statistic for one in rows] for side in (ours, theirs)
    ]
    interval = spearman_intervals({"s": ours}, scores, seed=7, resamples=200)["s"]
    assert interval.value == pytest.approx(spearmanr(ours, scores).statistic)
    assert (interval.low, interval.high) == pytest.approx(
        tuple(np.percentile(drawn[0], (2.5, 97.5)))
    )
    found = spearman_differences({"s": ours}, {"s": theirs}, scores, seed=7, resamples=200)["s"]
    differences = np.subtract(*drawn)
    assert found.value == pytest.approx(
        spearmanr(ours, scores).statistic - spearmanr(theirs, scores).statistic
    )
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(differences, (2.5, 97.5))))


def test_a_seed_gives_the_same_interval_in_several_blocks():
    values = generator(4).standard_normal(20_000)  # a block has 52 resamples
    found = mean_intervals({"a": values}, resamples=300)
    assert mean_intervals({"a": values}, resamples=300) == found
    assert mean_intervals({"a": values}, resamples=300, seed=1) != found
    means = values[resamples(20_000, 0, 300)].mean(axis=1)
    assert found["a"].low == pytest.approx(np.percentile(means, 2.5))


def test_p_is_small_exactly_where_the_interval_excludes_zero():
    draws = generator(5)
    for shift in np.linspace(0, 1, 40):
        ours = draws.standard_normal(30) + shift
        found = mean_differences({"m": ours}, {"m": np.zeros(30)}, resamples=2_000)["m"]
        if abs(found.p - 0.05) > 0.005:
            assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_under_no_difference_p_is_below_5_per_cent_about_as_often():
    draws = generator(6)
    count, small = 400, 0
    for seed in range(count):
        ours, theirs = draws.standard_normal((2, 100))
        found = mean_differences({"m": ours}, {"m": theirs}, seed=seed, resamples=400)
        small += found["m"].p < 0.05
    expected, deviation = 0.055 * count, (count * 0.055 * 0.945) ** 0.5
    assert abs(small - expected) < 3 * deviation


def test_equal_models_do_not_differ():
    values = {"m": generator(7).standard_normal(20)}
    found = mean_differences(values, values)["m"]
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_similarities_without_any_spread_count_as_no_correlation():
    found = spearman_intervals({"s": np.ones(5)}, np.arange(5))["s"]
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_ten_thousand_resamples_of_a_thousand_sentences_take_less_than_a_second():
    columns = {name: generator(8).standard_normal(1_000) for name in "abcdefgh"}
    other = {name: values[::-1] for name, values in columns.items()}
    seconds = []
    for _ in range(3):  # other work on the machine slows some
        start = time.process_time()
        mean_differences(columns, other)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ({"a": np.ones(3)}, {"b": np.ones(3)}, "metrics of two models differ: a, b"),
        ({"a": np.ones(3)}, {"a": np.ones(2)}, "3 sentences of one model, 2 of the other"),
        ({"a": np.ones(3), "b": np.ones(2)}, {"a": np.ones(3), "b": np.ones(2)}, "same number"),
        ({"a": np.ones(0)}, {"a": np.ones(0)}, "at least one"),
    ],
)
def test_what_is_not_paired_is_refused(ours, theirs, message):
    with pytest.raises(UsageError, match=message):
        mean_differences(ours, theirs)
    with pytest.raises(UsageError, match=message):
        spearman_differences(ours, theirs, np.ones(3))


def test_scores_must_be_as_many_as_similarities():
    with pytest.raises(UsageError, match="2 scores, but another number"):
        spearman_intervals({"s": np.ones(3)}, [1, 2])
