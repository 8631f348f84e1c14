"""McNemar, Holm and t-tests against their definitions."""

from math import comb

import numpy as np
import pytest
from scipy.stats import t, ttest_ind

from noisegen.errors import UsageError
from noisegen.evaluation import holm, mcnemar
from noisegen.evaluation.statistics import one_sample_t, stars, two_sample_t


def hits(repaired, broken, both=3):
    """What ours and theirs got right."""
    ours = [True] * repaired + [False] * broken + [True] * both
    theirs = [False] * repaired + [True] * broken + [True] * both
    return np.array(ours, bool), np.array(theirs, bool)


def test_mcnemar_is_the_exact_toss_of_a_coin():
    for repaired in range(13):
        for broken in range(13):
            found = mcnemar(*hits(repaired, broken))
            count, least = repaired + broken, min(repaired, broken)
            tail = sum(comb(count, one) for one in range(least + 1)) / 2**count
            assert (found.repaired, found.broken) == (repaired, broken)
            assert found.p == pytest.approx(min(1, 2 * tail))


def test_mcnemar_of_many_items_neither_overflows_nor_vanishes():
    assert mcnemar(*hits(60_000, 60_000)).p == 1
    assert 0 < mcnemar(*hits(600, 400)).p < 1e-9
    assert mcnemar(*hits(0, 0)).p == 1


def test_holm_is_the_step_down_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1, 1]
    assert holm([0.02]).tolist() == [0.02]
    assert holm([]).tolist() == []


def test_holm_never_turns_the_order_round_nor_lowers_p():
    draws = np.random.Generator(np.random.PCG64(3))
    for _ in range(100):
        given = draws.random(int(draws.integers(1, 15))) ** 3
        found = holm(given)
        assert (found >= given).all()
        assert (np.diff(found[np.argsort(given)]) >= 0).all()
        assert found.min() == pytest.approx(min(1, len(given) * given.min()))


def test_the_papers_t_tests_are_scipys():
    one, other = [2.0, 2.2, 1.9, 2.4], [2.5, 2.6, 2.2, 2.9]
    assert two_sample_t(one, other) == ttest_ind(one, other, equal_var=True).pvalue


def test_one_sample_is_compared_with_its_null_by_the_formula():
    values = np.array([1.02, 0.99, 1.04, 1.01, 1.03])
    for null in (0.0, 1.0, 1.018):
        statistic = (values.mean() - null) / (values.std(ddof=1) / len(values) ** 0.5)
        wanted = 2 * t.sf(abs(statistic), len(values) - 1)
        assert one_sample_t(values, null) == pytest.approx(wanted)
    assert one_sample_t([0, 0, 0], 0) == 1
    assert one_sample_t([2, 2, 2], 0) == 0
    with pytest.raises(UsageError, match="at least two noise seeds"):
        one_sample_t([1], 0)


def test_figures_that_never_vary_are_equal_or_not():
    assert two_sample_t([1, 1, 1], [1, 1, 1]) == 1
    assert two_sample_t([1, 1, 1], [2, 2, 2]) == 0


def test_one_side_may_be_all_one_figure():
    """Figures such as 25/3 are not what their mean is, to the last bit."""
    constant, other = [25 / 3, 25 / 3], [25 / 3, 10.0]
    wanted = two_sample_t([0, 0], [0, 5])
    assert two_sample_t(constant, other) == pytest.approx(wanted)
    assert two_sample_t(other, constant) == pytest.approx(wanted)


def test_one_seed_is_too_few_for_a_t_test():
    with pytest.raises(UsageError, match="at least two noise seeds"):
        two_sample_t([1], [2, 3])


def test_models_must_have_seen_the_same_items():
    with pytest.raises(UsageError, match="2 items of one model, 3 of the other"):
        mcnemar(np.ones(2, bool), np.ones(3, bool))


def test_a_star_for_each_level():
    counts = [len(stars(p)) for p in (0.2, 0.05, 0.049, 0.01, 0.009, 0.0009)]
    assert counts == [0, 0, 1, 1, 2, 3]
    assert stars(0.0009) == "***"
