"""Metrics: each declared once, and how their figures are written."""

from noisegen.evaluation.findings import listed, p_value
from noisegen.evaluation.metrics import KINDS, METRICS, metric_of

DISTANCE, XSIM, STS = METRICS["distance"], METRICS["xsim_error"], METRICS["sts_clean"]


def test_every_metric_belongs_to_known_kinds_of_sets():
    for metric in METRICS.values():
        assert set(metric.kinds) <= set(KINDS)
        assert bool(metric.headline) == bool(metric.kinds)
        assert metric.kinds or not metric.leads


def test_an_unknown_metric_goes_by_its_name():
    assert metric_of("new").title == "new"
    assert metric_of("distance") is DISTANCE


def test_numbers_have_the_digits_of_their_unit():
    assert DISTANCE.number(0.12345) == "0.123"
    assert DISTANCE.number(-0.00412) == "−0.0041"
    assert XSIM.number(2.4099) == "2.41"
    assert STS.number(74.62) == "74.6"
    assert STS.number(-0.04) == "0.0"


def test_a_difference_has_a_sign_unless_it_is_0():
    signed = " ".join(STS.signed(value) for value in (1.0, -1.0, 0.04, -0.04))
    assert signed == "+1.0 −1.0 0.0 0.0"


def test_a_change_has_its_factor_where_it_says_something():
    assert DISTANCE.change(0.3, 0.12) == "0.300 to 0.120, 2.5 times lower"
    assert DISTANCE.change(0.3, 0.29) == "0.300 to 0.290"
    assert XSIM.change(0.0, 2.0) == "0.00 to 2.00\u00a0%"
    assert STS.change(50, 57) == "50.0 to 57.0\u00a0points"


def test_small_words():
    assert p_value(0.0004) == "p\u00a0<\u00a00.001"
    assert p_value(0.0312) == "p\u00a0=\u00a00.031"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert listed(["a"]) == "a"
