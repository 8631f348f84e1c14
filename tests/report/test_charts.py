"""Scales, ticks and labels of the charts against what they promise and against slow twins."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.report.blocks import Bars
from noisegen.report.charts import (
    Curve,
    Dot,
    DotRow,
    Spot,
    bars,
    between,
    curves,
    dots,
    fitting,
    mark,
    plane,
    spread,
)

positive = st.floats(1e-6, 1e6)


@given(st.lists(positive | st.just(0.0), min_size=1, max_size=20))
def test_a_scale_keeps_order_and_stays_inside(values):
    scale = fitting(values, 200, 40)
    places = [scale.at(value) for value in sorted(values)]
    assert all(40 - 1e-6 <= place <= 200 + 1e-6 for place in places)
    assert all(a >= b for a, b in pairwise(places))


@given(st.lists(positive | st.just(0.0), min_size=1, max_size=20))
def test_ticks_are_few_rising_and_on_the_scale(values):
    scale = fitting(values, 200, 40)
    ticks = scale.ticks()
    assert len(ticks) <= 9
    assert all(a < b for a, b in pairwise(ticks))
    assert all(scale.low <= tick <= scale.high * 1.0001 or tick == 0 for tick in ticks)


def test_nought_has_a_place_of_its_own_below_a_logarithmic_scale():
    scale = fitting([0, 0.4, 8], 200, 40)
    assert scale.is_log
    assert (scale.at(0), scale.ticks()[0]) == (200, 0)
    assert scale.at(0.4) < 185


def test_a_logarithmic_scale_gives_equal_factors_equal_room():
    scale = fitting([0.01, 0.1, 1], 0, 100)
    assert scale.at(0.1) - scale.at(0.01) == pytest.approx(scale.at(1) - scale.at(0.1))


def test_figures_of_one_size_begin_at_nought():
    scale = fitting([0.3, 0.5], 0, 100)
    assert not scale.is_log
    assert (scale.low, scale.at(0)) == (0, 0)


def test_a_scale_of_one_point_or_none_does_not_divide_by_nought():
    assert between(3, 3, 0, 10).at(3) == 0
    assert fitting([], 0, 10).at(0) == 0
    assert fitting([float("nan"), 0.0], 0, 10).ticks()[0] == 0


def slow_spread(places, gap):
    """Least squares under an order by its min-max formula: no pools, three loops."""
    order = np.argsort(places, kind="stable")
    moved = np.asarray(places, float)[order] - gap * np.arange(len(places))
    level = [
        max(min(moved[a : b + 1].mean() for b in range(i, len(moved))) for a in range(i + 1))
        for i in range(len(moved))
    ]
    out = np.empty(len(places))
    out[order] = np.asarray(level) + gap * np.arange(len(places))
    return out


def test_labels_are_moved_as_little_as_the_slow_twin_moves_them():
    draws = np.random.Generator(np.random.PCG64(5))
    for _ in range(2_000):
        places = draws.uniform(0, 100, draws.integers(1, 9)).tolist()
        found = spread(places, 12, -10_000, 10_000)
        np.testing.assert_allclose(found, slow_spread(places, 12), atol=1e-9)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_labels_never_touch_and_keep_their_order(places):
    found = spread(places, 10, 0, 400)
    ordered = sorted(found)
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(ordered))
    assert ordered[0] >= 0
    assert ordered[-1] <= 400 + 1e-6
    assert all(
        (a < b) <= (x <= y)
        for a, x in zip(places, found, strict=True)
        for b, y in zip(places, found, strict=True)
    )


def test_marks_of_eight_models_differ_in_shape():
    shapes = [mark(place, 0, 0, 5).replace(f"m{place}", "") for place in range(8)]
    assert len(set(shapes)) == 8


def test_a_vanishing_figure_does_not_stretch_a_logarithmic_scale():
    scale = fitting([1e-9, 0.1, 1], 200, 40)
    assert scale.at(0.1) - scale.at(1) > 30
    assert scale.at(1e-9) == pytest.approx(200)


def test_a_row_of_dots_says_its_name_its_figures_and_its_interval():
    row = DotRow([Dot(0.3, 0, (0.2, 0.4)), Dot(0.1, 1)], "leet", "0.3 → 0.1", "better", "leet: <b>")
    svg = dots([row], "distance", fitting([0.1, 0.3], 100, 300), threshold=0.2)
    assert ">leet</text>" in svg
    assert ">0.3 → 0.1</text>" in svg
    assert "leet: &lt;b&gt;" in svg
    assert svg.count('class="m0 whisker"') == 1
    assert 'class="m1 link better"' in svg
    assert svg.count('class="threshold"') == 1


def test_bars_have_a_group_for_each_label_and_a_style_for_each_series():
    svg = bars(Bars("Edits", "%", ["a", "<b>"], {"real": [1, 2], "synthetic": [3, 0]}))
    assert [svg.count(f'class="m{style} bar"') for style in (1, 2)] == [2, 2]
    assert "&lt;b&gt;, synthetic: 0 %" in svg


def test_bars_end_in_their_figures_and_counts_and_the_axes_are_named():
    shown = Bars(
        "Rows",
        "% of rows",
        ["0", "1"],
        {"all": [62.5, 37.5]},
        axis="transforms",
        counts={"all": [1_250, 750]},
    )
    svg = bars(shown)
    assert all(f">{words}</text>" in svg for words in ("transforms", "% of rows", "62.5 (1,250)"))
    assert "0: 62.5 (1,250); 1: 37.5 (750)" in svg  # for who cannot see it


@given(st.floats(1e-6, 1e6))
def test_labels_of_ticks_do_not_touch(most):
    curve = Curve("loss", 0, [(0.0, 1.0), (most, 2.0)])
    row = DotRow([Dot(most, 0)], "news")
    charts = [
        curves([curve], title="loss", x_title="step"),
        dots([row], "sets", fitting([most], 196, 368), heading="student"),
    ]
    for svg in charts:
        found = re.findall(r'<text class="small quiet" x="([\d.]+)" [^>]*"middle">([^<]+)<', svg)
        ticks = [(float(x), words) for x, words in found if words != "step"]
        assert ticks
        for (x, words), (next_x, next_words) in pairwise(ticks):
            assert next_x - x > 3.5 * (len(words) + len(next_words)), ticks


def test_a_plane_without_any_spread_is_drawn():
    assert plane([Spot(1, 1, 0), Spot(1, 1, 3)], title="all alike").count("mark soft") == 2
