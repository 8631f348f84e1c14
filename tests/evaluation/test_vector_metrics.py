"""Distances, matching, similarity, D_avg and type/token ratio equal their obvious versions."""

import sys

import brute_force
import numpy as np
import pytest
from scipy.stats import spearmanr

from noisegen.encoders.encoder import Ragged
from noisegen.errors import MissingExtra, UsageError
from noisegen.evaluation import (
    classify_pairs,
    cosine_distance,
    cosine_distances,
    matching_accuracy,
    mean_class_similarity,
    sts_spearman,
    type_token_ratio,
)
from noisegen.evaluation.measure import pair_distances
from noisegen.evaluation.similarity import spearman
from noisegen.evaluation.xsim_search import retrieval_accuracy


@pytest.fixture
def draws():
    return np.random.Generator(np.random.PCG64(11))


def test_distances_are_those_of_a_loop_at_any_scale_and_type(draws):
    noisy, clean = draws.standard_normal((2, 50, 7))
    expected = [1 - brute_force.cosine(a, b) for a, b in zip(noisy, clean, strict=True)]
    np.testing.assert_allclose(cosine_distances(noisy, 9 * clean), expected, atol=1e-12)
    half = cosine_distances(noisy.astype(np.float16), clean.astype(np.float16))
    np.testing.assert_allclose(half, expected, atol=5e-3)
    assert cosine_distance(noisy, clean) == pytest.approx(np.mean(expected))


def test_equal_vectors_have_distance_zero_exactly(draws):
    vectors = draws.standard_normal((200, 384)).astype(np.float32)
    assert not cosine_distances(vectors, vectors).any()


def test_drift_and_anchored_distance_are_against_the_baselines_clean_vectors(draws):
    noisy, clean, anchor = draws.standard_normal((3, 5, 4))
    found = pair_distances(noisy, clean, anchor)
    assert list(found) == ["distance", "drift", "anchored_distance"]
    np.testing.assert_array_equal(found["drift"], cosine_distances(clean, anchor))
    np.testing.assert_array_equal(found["anchored_distance"], cosine_distances(noisy, anchor))


def test_a_baseline_of_another_width_gives_no_drift(draws):
    noisy, clean = draws.standard_normal((2, 5, 4))
    assert list(pair_distances(noisy, clean, draws.standard_normal((5, 8)))) == ["distance"]


def test_matching_counts_ties_as_correct_and_equals_a_double_loop(draws):
    for number in range(200):
        n, width = int(draws.integers(1, 12)), int(draws.integers(1, 5))
        x, y = draws.integers(-1, 2, (2, n, width)).astype(np.float32)
        if number % 2:
            x = y + draws.standard_normal((n, width)).astype(np.float32)
        found = matching_accuracy(x, y)
        assert found.forward.tolist() == brute_force.matching(x.tolist(), y.tolist())
        assert found.backward.tolist() == brute_force.matching(y.tolist(), x.tolist())


def chance(x, y):
    """The mean chance that a nearest row of y, drawn among those that tie, is a row's own."""
    shares = []
    for row, one in enumerate(x):
        found = [round(brute_force.cosine(one, other), 9) for other in y]
        best = [place for place, cosine in enumerate(found) if cosine == max(found)]
        shares.append((row in best) / len(best))
    return 100 * sum(shares) / len(shares)


def test_retrieval_shares_ties_and_equals_a_double_loop(draws):
    for number in range(200):
        n, width = int(draws.integers(1, 12)), int(draws.integers(1, 5))
        x, y = draws.integers(-1, 2, (2, n, width)).astype(np.float32)
        if number % 2:
            x = y + draws.standard_normal((n, width)).astype(np.float32)
        found = retrieval_accuracy(x, y)
        assert found == pytest.approx(
            (chance(x.tolist(), y.tolist()), chance(y.tolist(), x.tolist()))
        )


def test_retrieval_among_many_rows_equals_one_product(draws):
    y = draws.integers(-2, 3, (2_500, 4)).astype(np.float64)  # more cosines than one block has
    y[:, 3] = 3
    x = y + draws.standard_normal(y.shape)
    one, other = (side / np.linalg.norm(side, axis=1)[:, None] for side in (x, y))
    products = (one @ other.T).round(12)
    expected = []
    for seen in (products, products.T):
        own, best = np.diagonal(seen), seen.max(axis=1)
        ties = (seen == best[:, None]).sum(axis=1)
        expected.append(100 * np.where(own == best, 1 / ties, 0).mean())
    assert retrieval_accuracy(x, y) == pytest.approx(expected)


@pytest.mark.parametrize(("noise", "least"), [(0, 0.2), (1e-6, 0), (1e-4, 0)])
def test_vectors_that_are_nearly_one_constant_find_next_to_nothing(draws, noise, least):
    constant = draws.standard_normal(16)
    x, y = (constant + noise * draws.standard_normal((2, 500, 16))).astype(np.float32)
    assert all(least <= share <= 2 for share in retrieval_accuracy(x, y))


def test_matching_gives_per_cent_both_ways_and_their_mean():
    x = np.array([[1, 0], [1, 0.1], [0, 1]])
    y = np.array([[1, 0], [1, 0], [0, 1]])
    found = matching_accuracy(x, y)
    assert found.accuracy_forward == 100
    assert found.accuracy_backward == pytest.approx(200 / 3)
    assert found.accuracy == pytest.approx(250 / 3)


def test_ranks_and_correlation_with_ties_are_scipys(draws):
    for _ in range(100):
        n = int(draws.integers(2, 40))
        one, other = draws.integers(0, 6, (2, n)).astype(float)
        one[0], other[0] = 7, 9  # not all equal
        assert spearman(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert np.isnan(spearman(np.ones(3), np.arange(3.0)))


def test_sts_is_a_hundred_times_the_correlation_of_cosine_and_score(draws):
    x, y = draws.standard_normal((2, 30, 4))
    cosines = [brute_force.cosine(a, b) for a, b in zip(x, y, strict=True)]
    scores = draws.integers(0, 6, 30)
    assert sts_spearman(x, y, scores) == pytest.approx(100 * spearmanr(cosines, scores).statistic)
    with pytest.raises(UsageError, match="30 similarities, but 29 scores"):
        sts_spearman(x, y, scores[1:])


def test_class_similarity_equals_the_double_loop(draws):
    for _ in range(50):
        n = int(draws.integers(4, 30))
        vectors = draws.standard_normal((n, 5)) + 0.5
        vectors[0] = 0
        labels = [*"aabb", *(str(one) for one in draws.integers(0, 5, n - 4))]
        expected = brute_force.class_similarity(vectors.tolist(), labels)
        assert mean_class_similarity(vectors, labels) == pytest.approx(expected, abs=1e-6)


def test_classes_of_one_text_have_no_weight():
    vectors = np.array([[1.0, 0], [1, 0], [0, 1], [1, 1]])
    assert mean_class_similarity(vectors, ["a", "a", "b", "c"]) == 1
    with pytest.raises(UsageError, match="no class has two texts"):
        mean_class_similarity(vectors, ["a", "b", "c", "d"])
    with pytest.raises(UsageError, match="4 vectors, but 1 labels"):
        mean_class_similarity(vectors, ["a"])


def test_type_token_ratio_is_over_all_texts_together():
    assert type_token_ratio(["see you", "see me see"]) == 60
    assert type_token_ratio(["abc", "ab"], list) == 60
    assert np.isnan(type_token_ratio([]))


def test_special_ids_are_no_tokens():
    cut = Ragged.of([[101, 7, 8, 102], [101, 7, 102], [101, 102]])
    assert type_token_ratio(cut, without={101, 102}) == pytest.approx(200 / 3)
    assert type_token_ratio(cut) == pytest.approx(400 / 9)


@pytest.mark.parametrize("metric", [cosine_distance, matching_accuracy])
def test_sides_that_are_no_pairs_are_refused(metric):
    with pytest.raises(UsageError, match="3 vectors on one side of the pairs, 2 on the other"):
        metric(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(UsageError, match="width 2 cannot be compared with width 3"):
        metric(np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(UsageError, match="vector 1 holds NaN"):
        metric(np.array([[1, 2], [np.nan, 0]]), np.ones((2, 2)))


@pytest.mark.parametrize("package", ["scipy", "sklearn"])
def test_a_package_that_is_not_there_is_named(monkeypatch, draws, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    x, y = draws.standard_normal((2, 4, 3))
    measure = {"scipy": sts_spearman, "sklearn": classify_pairs}[package]
    with pytest.raises(MissingExtra, match=package):
        measure(x, y, [0, 1, 0, 1])
