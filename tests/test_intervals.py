"""The interval of a share: by the literature, and by the equation that defines it."""

import pytest

from noisegen.intervals import wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe (1998), table I, method 3: the score method without correction.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_that_of_the_literature(successes, n, low, high):
    assert wilson(successes / n, n) == pytest.approx((low, high), abs=5e-5)


# The bounds satisfy |p - bound| = z sqrt(bound (1 - bound) / n), which defines them.
@pytest.mark.parametrize(("hits", "n"), [(0, 15), (1, 15), (14, 15), (71, 75), (75, 75), (1, 2)])
def test_wilson_solves_its_equation(hits, n):
    for bound in wilson(hits / n, n):
        assert abs(hits / n - bound) == pytest.approx(
            1.959964 * (bound * (1 - bound) / n) ** 0.5, abs=1e-6
        )


def test_wilson_of_nothing_is_everything():
    assert wilson(0.0, 0) == (0.0, 1.0)
