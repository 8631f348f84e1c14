"""The map of the baseline's space: principal components, arrows, kept order of distances."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from noisegen.evaluation import project


@pytest.fixture
def draws():
    return np.random.Generator(np.random.PCG64(17))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def test_points_are_those_of_sklearns_components_of_the_baselines_clean_vectors(draws):
    clean, noisy, other_clean, other_noisy = draws.standard_normal((4, 40, 6)) * np.arange(1, 7)
    texts = [(f"clean {one}", f"noisy {one}") for one in range(40)]
    found = project(
        "posts", texts, clean, {"teacher": (clean, noisy), "student": (other_clean, other_noisy)}
    )
    fitted = PCA(2, random_state=0).fit(unit(clean))
    sides = {"teacher": (clean, noisy), "student": (other_clean, other_noisy)}
    for name, (one, other) in sides.items():
        expected = np.concatenate([fitted.transform(unit(side)) for side in (one, other)], axis=1)
        points = np.array(found.points[name])
        np.testing.assert_allclose(np.abs(points), np.abs(expected), atol=1e-5)
    assert found.explained == pytest.approx(tuple(fitted.explained_variance_ratio_), abs=1e-6)
    assert found.texts == tuple(texts)
    assert found.dataset == "posts"


def test_the_order_of_distances_is_compared_over_all_points(draws):
    clean, noisy = draws.standard_normal((2, 30, 5))
    found = project("p", [("a", "b")] * 30, clean, {"m": (clean, noisy)})
    points = np.array(found.points["m"])
    before = pdist(np.concatenate([unit(clean), unit(noisy)]))
    after = pdist(np.concatenate([points[:, :2], points[:, 2:]]))
    assert found.spearman == pytest.approx(spearmanr(before, after).statistic, abs=1e-4)


def test_a_flat_space_is_kept_whole(draws):
    clean = np.concatenate([draws.standard_normal((30, 2)), np.zeros((30, 5))], axis=1)
    found = project("p", [("a", "b")] * 30, clean, {"m": (clean, clean)})
    assert sum(found.explained) == pytest.approx(1)
    assert found.spearman == pytest.approx(1, abs=1e-6)
    assert all(point[:2] == point[2:] for point in found.points["m"])


def test_the_same_vectors_give_the_same_map_whatever_the_sign_of_an_axis(draws, monkeypatch):
    clean = draws.standard_normal((20, 4))
    first = project("p", [("a", "b")] * 20, clean, {"m": (clean, clean)})
    real = np.linalg.svd

    def turned(*given, **options):
        u, s, axes = real(*given, **options)
        return -u, s, -axes

    monkeypatch.setattr(np.linalg, "svd", turned)
    assert project("p", [("a", "b")] * 20, clean, {"m": (clean, clean)}) == first


def test_many_pairs_are_taken_at_even_steps(draws):
    clean, noisy = draws.standard_normal((2, 6_000, 3))
    texts = [(str(one), "n") for one in range(6_000)]
    found = project("p", texts, clean, {"m": (clean, noisy)})
    assert [one for one, _ in found.texts] == [str(one) for one in range(0, 6_000, 30)]
    assert len(found.points["m"]) == 200


def test_a_model_of_another_width_is_left_out(draws):
    clean, wide = draws.standard_normal((5, 3)), draws.standard_normal((5, 4))
    found = project("p", [("a", "b")] * 5, clean, {"one": (clean, clean), "wide": (wide, wide)})
    assert list(found.points) == ["one"]


@pytest.mark.parametrize(
    "clean", [np.ones((1, 3)), np.ones((6, 3)), np.ones((4, 1)), np.zeros((3, 2))]
)
def test_a_space_without_any_spread_still_has_a_map(clean):
    found = project("p", [("a", "b")] * len(clean), clean, {"m": (clean, clean)})
    assert found.spearman == 0
    assert found.explained == (0, 0)
    assert np.isfinite(np.array(found.points["m"])).all()
