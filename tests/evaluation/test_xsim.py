"""xSIM and hard negatives: equal to brute force, with duplicates, ties, zeros, few lines."""

import sys

import brute_force
import numpy as np
import pytest

from noisegen.errors import UsageError
from noisegen.evaluation import matching_accuracy, xsim, xsim_hard, xsim_search
from noisegen.evaluation.similarity import cosines
from noisegen.evaluation.xsim_search import LARGE, HardVectors, best_precision, neighbours


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


def vectors(draws, lines, width, kind):
    """`whole` numbers give ties, zeros and duplicates, `repeated` duplicates, `plain` none."""
    if kind == "whole":
        return draws.integers(-1, 2, (lines, width)).astype(np.float32)
    made = draws.standard_normal((lines, width)).astype(np.float32)
    return made[draws.integers(0, lines, lines)] if kind == "repeated" else made


def cases(count):
    """Yield x, y, k and margin of all sizes, y never shorter than x."""
    draws = generator(1)
    for number in range(count):
        kind = ("whole", "repeated", "plain")[number % 3]
        n, width, k = (int(draws.integers(*two)) for two in ((1, 9), (1, 6), (1, 7)))
        y = vectors(draws, n + int(draws.integers(0, 12)), width, kind)
        x = vectors(draws, n, width, kind)
        if number % 2 == 0:
            x = y[:n] + 0.5 * x
        yield x, y, k, ("ratio", "distance", "absolute")[number // 3 % 3]


@pytest.mark.parametrize(("precision", "count"), [("float32", 900), ("bfloat16", 60)])
def test_predictions_equal_brute_force_with_duplicates_ties_and_few_lines(precision, count):
    for x, y, k, margin in cases(count):
        expected = brute_force.xsim_predictions(x.tolist(), y.tolist(), k, margin)
        found = xsim(x, y, k, margin, precision=precision)
        assert found.predictions.tolist() == expected, (k, margin)
        wrong = [row != right for right, row in enumerate(expected)]
        assert found.errors == sum(wrong)
        assert found.error_rate == 100 * sum(wrong) / len(wrong)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_blocks_change_nothing(precision):
    draws = generator(2)
    x, y = vectors(draws, 2_060, 4, "whole"), vectors(draws, 20_000, 4, "whole")
    found = neighbours(x, y, 5, precision)
    for row in (0, 1, 2_047, 2_048, 2_059):  # x and y have several blocks each
        exact = cosines(np.tile(x[row], (len(y), 1)), y)
        nearest = np.argsort(-exact, kind="stable")[:5]
        np.testing.assert_array_equal(found.rows[row], nearest)
        np.testing.assert_array_equal(found.cosines[row], exact[nearest])


def test_neighbours_of_real_size_are_those_of_a_full_sort_in_both_precisions():
    draws = generator(3)
    y = draws.standard_normal((3_000, 384)).astype(np.float32)
    y[1_000:] = y[draws.integers(0, 1_000, 2_000)] + 0.01 * y[1_000:]  # hundreds that are near
    x = y[:200] + draws.standard_normal((200, 384)).astype(np.float32)
    one, other = (v.astype(np.float64) for v in (x, y))
    cosines = (one / np.linalg.norm(one, axis=1)[:, None]) @ (
        other / np.linalg.norm(other, axis=1)[:, None]
    ).T
    expected = np.argsort(-cosines, axis=1)[:, :4]
    for precision in ("float32", "bfloat16", "auto"):
        found = neighbours(x, y, 4, precision)
        np.testing.assert_array_equal(found.rows, expected)
        np.testing.assert_allclose(
            found.cosines, np.take_along_axis(cosines, expected, 1), atol=1e-11
        )


def test_auto_takes_bfloat16_for_large_searches_where_the_processor_has_it(monkeypatch):
    for units in ({}, {"avx512_bf16": True}, {"amx_bf16": True}):
        monkeypatch.setattr("torch.cpu.get_capabilities", lambda units=units: units)
        assert best_precision(LARGE - 1) == "float32"
        assert best_precision(LARGE) == ("bfloat16" if units else "float32")


def test_auto_counts_the_multiplications_of_a_search(monkeypatch):
    taken = []
    monkeypatch.setattr(xsim_search, "best_precision", lambda n: taken.append(n) or "bfloat16")
    with monkeypatch.context() as only_here:
        only_here.setitem(sys.modules, "torch", None)
        with pytest.raises(ImportError):  # products in bfloat16 need torch
            neighbours(np.eye(3), np.ones((2, 3)), 1)
    assert taken == [3 * 2 * 3]


def test_without_torch_auto_takes_float32(monkeypatch):
    with monkeypatch.context() as only_here:
        only_here.setitem(sys.modules, "torch", None)
        assert best_precision(LARGE) == "float32"


def test_of_equal_lines_the_lowest_is_found():
    y = np.array([[0, 1], [1, 0], [1, 0], [2, 0]], np.float32)
    assert xsim(y[:3], y).predictions.tolist() == [0, 1, 1]


def test_a_line_with_the_right_text_is_no_error():
    y = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], np.float32)
    by_row = xsim(y, y)
    assert by_row.errors == 1
    assert by_row.error_rate == 25
    by_text = xsim(y, y, texts=["Thanks!", "Thanks!", "see you", "ok"])
    assert by_text.errors == 0
    found = xsim(y, y, texts=["Thanks!", "thanks", "see you", "ok"])
    assert found.correct.tolist() == [True, False, True, True]


def test_the_ratio_margin_avoids_hubs_that_absolute_falls_for():
    # Line 1 is near everything; line 0 is a little farther from x_0, but near nothing else.
    x = np.array([[1, 0, 0], [0, 1, 0], [0, 0.2, 1]], np.float32)
    y = np.array([[0.75, -0.7, 0], [1, 0.8, 0.2], [0, 0.1, 1]], np.float32)
    assert xsim(x, y, k=2, margin="absolute").predictions[0] == 1
    assert xsim(x, y, k=2).predictions[0] == 0


def test_zero_vectors_have_cosine_zero_and_find_the_lowest_line():
    x, y = np.zeros((3, 4), np.float32), np.eye(4, dtype=np.float32)
    for margin in ("ratio", "distance", "absolute"):
        assert xsim(x, y, margin=margin).predictions.tolist() == [0, 0, 0]


def test_half_precision_memory_maps_give_what_their_arrays_give(tmp_path):
    draws = generator(4)
    y = draws.standard_normal((500, 32)).astype(np.float16)
    x = (y[:100] + 0.8 * draws.standard_normal((100, 32))).astype(np.float16)
    for name, array in (("x", x), ("y", y)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy"]
    expected = xsim(x.astype(np.float64), y.astype(np.float64)).predictions
    np.testing.assert_array_equal(xsim(*mapped).predictions, expected)


def test_values_beyond_float32_squares_are_no_trouble():
    y = np.eye(3, dtype=np.float32)
    for scale in (1e-30, 1e30):
        assert xsim(y * np.float32(scale), y).errors == 0


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (np.full((2, 2), np.nan), np.ones((2, 2)), {}, "vector 0 holds NaN"),
        (np.ones((2, 2)), np.array([[1, 1], [1, np.inf]]), {}, "vector 1 holds NaN or inf"),
        (np.ones((2, 2)), np.ones((2, 3)), {}, "width 2 cannot be compared with width 3"),
        (np.ones((3, 2)), np.ones((2, 2)), {}, "3 vectors to search for in only 2 lines"),
        (np.ones((0, 2)), np.ones((2, 2)), {}, "at least one text"),
        (np.ones(2), np.ones((2, 2)), {}, "shape"),
        (np.ones((2, 2)), np.ones((2, 2)), {"k": 0}, "k must be 1 or more"),
        (np.ones((2, 2)), np.ones((2, 2)), {"margin": "rank"}, "no margin 'rank'; use ratio"),
        (np.ones((2, 2)), np.ones((2, 2)), {"texts": ["a"]}, "1 texts for 2 lines"),
    ],
)
def test_what_cannot_be_searched_is_told_in_one_line(x, y, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        xsim(x, y, **options)
    assert "\n" not in str(caught.value)


def test_nan_anywhere_is_found_and_counted_from_the_start():
    y = np.ones((3_000, 8), np.float32)
    y[2_500, 3] = np.nan
    with pytest.raises(UsageError, match=r"vector 2500 holds"):
        xsim(y[:5], y)


def hard_by_hand(x, y, negatives, sources, kinds, k, texts):
    """What each sentence is lost to, by LASER's description of xSIM++."""
    pool = np.concatenate([y, negatives]).tolist()
    lost = []
    for right, chosen in enumerate(brute_force.xsim_predictions(x.tolist(), pool, k, "ratio")):
        if chosen < len(y):
            lost.append("" if texts[chosen] == texts[right] else "misaligned")
        else:
            negative = chosen - len(y)
            of_it = texts[sources[negative]] == texts[right]
            lost.append(kinds[negative] if of_it else "misaligned")
    return lost


def test_hard_negatives_equal_brute_force_and_are_counted_by_kind():
    draws = generator(5)
    for _ in range(100):
        n, m = int(draws.integers(2, 8)), int(draws.integers(1, 20))
        y = vectors(draws, n, 3, "repeated")
        x = y + 0.4 * vectors(draws, n, 3, "plain")
        texts = [str(row.tolist()) for row in y]
        sources = draws.integers(0, n, m)
        negatives = y[sources] + 0.2 * vectors(draws, m, 3, "plain")
        kinds = [("number", "entity", "causality")[one] for one in draws.integers(0, 3, m)]
        found = xsim_hard(x, y, HardVectors(negatives, sources, kinds), texts=texts)
        lost = hard_by_hand(x, y, negatives, sources, kinds, 4, texts)
        assert list(found.lost_to) == lost
        assert found.correct.tolist() == [one == "" for one in lost]
        assert found.kinds == {kind: lost.count(kind) for kind in {*kinds, "misaligned"}}
        assert sum(found.kinds.values()) == found.errors
        assert sum(found.kind_rates.values()) == pytest.approx(found.error_rate)


def test_finding_an_altered_line_is_an_error_even_at_the_same_place():
    y = np.eye(2, dtype=np.float32)
    x, hard = np.array([[1, 0.5], [0, 1]], np.float32), np.array([[1, 0.5]], np.float32)
    found = xsim_hard(x, y, HardVectors(hard, np.array([0]), ["number"]), margin="absolute")
    assert found.predictions.tolist() == [2, 1]
    assert found.lost_to == ("number", "")
    assert found.kinds == {"misaligned": 0, "number": 1}


def test_without_hard_negatives_the_search_is_the_plain_one():
    draws = generator(6)
    y = vectors(draws, 20, 4, "plain")
    x = y + vectors(draws, 20, 4, "plain")
    hard = xsim_hard(x, y, HardVectors(np.zeros((0, 4), np.float32), np.array([]), []))
    np.testing.assert_array_equal(hard.predictions, xsim(x, y).predictions)
    assert hard.kinds == {"misaligned": hard.errors}


@pytest.mark.parametrize(
    ("sources", "kinds", "message"),
    [
        ([0], ["a", "b"], "1 hard negatives, but 1 sources and 2 kinds"),
        ([3], ["a"], "from none of the 3"),
        ([-1], ["a"], "from none of the 3"),
    ],
)
def test_hard_negatives_without_their_source_are_refused(sources, kinds, message):
    y = np.eye(3)
    with pytest.raises(UsageError, match=message):
        xsim_hard(y, y, HardVectors(y[:1], np.array(sources), kinds))


def test_one_search_each_way_gives_both_errors_and_the_matches(monkeypatch):
    random = np.random.default_rng(5)
    y = random.normal(size=(60, 8)).round(1)
    y[7], y[50] = y[3], y[20]
    x = y + random.normal(scale=0.8, size=y.shape).round(1)
    texts = [f"line {row % 50}" for row in range(60)]
    wanted = xsim(x, y, texts=texts), xsim(y, x), matching_accuracy(x, y)
    searches, search = [], xsim_search.neighbours
    monkeypatch.setattr(
        xsim_search, "neighbours", lambda *given: (searches.append(given), search(*given))[1]
    )
    found = xsim_search.search_both_ways(x, y, y_texts=texts)

    assert len(searches) == 2
    assert 0 < found.forward.errors < 60
    for one, other in zip(found, wanted, strict=True):
        for name, values in vars(one).items():
            assert np.array_equal(values, getattr(other, name)), name
