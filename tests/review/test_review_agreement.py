"""Krippendorff's alpha against published examples and a slow twin; Wilson's interval."""

from fractions import Fraction
from itertools import permutations

import pytest

from noisegen.noising.rng import Draws
from noisegen.review.reporting import krippendorff_alpha

# Krippendorff (2011), worked examples A to C: a row an observer, a blank where a value is missing.
BINARY = ("0100000010", "1110010000")
NOMINAL = ("aabbdcccedda", "babbbccceddd")
MISSING = ("123321412   ", "1233224125 3", " 3332342251 ", "12332441251 ")


def units_of(observers: tuple[str, ...]) -> list[list[int]]:
    """Return the values of each unit as numbers, in the order of the values."""
    known = sorted({value for row in observers for value in row} - {" "})
    return [[known.index(v) for v in unit if v != " "] for unit in zip(*observers, strict=True)]


@pytest.mark.parametrize(
    ("observers", "metric", "published"),
    [
        (BINARY, "nominal", 0.095),
        (NOMINAL, "nominal", 0.692),
        (MISSING, "nominal", 0.743),
        (MISSING, "ordinal", 0.815),
    ],
)
def test_alpha_is_that_of_the_published_examples(observers, metric, published):
    units = units_of(observers)
    assert krippendorff_alpha(units, 5, metric) == pytest.approx(published, abs=5e-4)


def slow_alpha(units, metric):
    """Alpha from all pairs of values, one by one."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]

    def distance(a, b):
        if metric == "nominal":
            return int(a != b)
        low, high = min(a, b), max(a, b)
        between = sum(values.count(g) for g in range(low, high + 1))
        return (between - Fraction(values.count(a) + values.count(b), 2)) ** 2

    pairs = list(permutations(values, 2))
    expected = Fraction(sum(distance(a, b) for a, b in pairs), len(pairs)) if pairs else 0
    if not expected:
        return None
    observed = sum(
        Fraction(sum(distance(a, b) for a, b in permutations(unit, 2)), len(unit) - 1)
        for unit in units
    )
    return float(1 - observed / len(values) / expected)


@pytest.mark.parametrize("metric", ["nominal", "ordinal"])
def test_alpha_equals_its_slow_twin_with_missing_values(metric):
    draws, compared = Draws(11), 0
    for _ in range(150):
        units = [[draws.below(3) for _ in range(draws.below(5))] for _ in range(draws.below(12))]
        slow, fast = slow_alpha(units, metric), krippendorff_alpha(units, 3, metric)
        assert (fast is None) == (slow is None)
        if slow is not None:
            assert fast == pytest.approx(slow, abs=1e-9)
            compared += 1
    assert compared > 100


@pytest.mark.parametrize("units", [[], [[1]], [[1], [2]], [[1, 1], [1, 1]]])
def test_alpha_is_none_where_it_is_not_defined(units):
    assert krippendorff_alpha(units, 3, "nominal") is None


def test_alpha_of_full_agreement_is_one():
    assert krippendorff_alpha([[0, 0], [1, 1], [2, 2, 2]], 3, "ordinal") == pytest.approx(1)
