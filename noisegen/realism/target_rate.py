"""A recipe scaled until its expected rate of character or word errors is the one asked for.

The rate of a text, errors over characters (or words) of its clean side, is measured with the same
draws at every factor, so it moves with the factor and not with chance. The factor is searched first
on few rows, then on as many as the standard error asks.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice

import numpy as np

from noisegen.errors import UsageError
from noisegen.measures import character_errors, word_errors
from noisegen.realism.calibrated import Calibrated, Figure
from noisegen.realism.noising import Noising, Tick
from noisegen.realism.scaling import factor_max, scaled
from noisegen.recipe import Recipe

PRECISION = 0.004  # relative standard error of the rate that is fitted
NEAR = 0.001  # relative distance from the target at which the search ends
ROUGH_ROWS, ROWS_MAX, BLOCK_ROWS = 4_000, 400_000, 20_000
FEW_TEXTS = 30
HELD_BACK = 3  # every third text is kept for the check
HALVINGS_MAX, STEPS_MAX = 40, 40
CLOSE = 1e-6  # of the logarithm of a factor: nothing lies between
FIGURES: dict[str, tuple[Callable[[str], int], Callable[[str, str], int]]] = {
    "cer": (len, character_errors),
    "wer": (lambda text: len(text.split()), word_errors),
}

Distance = Callable[[float], float]  # factor -> rate / target - 1


@dataclass(frozen=True)
class Rate:
    """An error rate, its standard errors for these texts and for others like them, and the rows."""

    value: float
    error: float
    error_between: float
    rows: int


@dataclass(frozen=True)
class Measure:
    """What is measured: errors per character (cer) or word (wer) of these texts."""

    texts: Sequence[str]
    figure: str
    noising: Noising
    seed: int

    def rate(self, recipe: Recipe, rows: int) -> Rate:
        """Return the rate over so many rows: the texts in turn, each time with new draws."""
        size, errors_of = FIGURES[self.figure]
        texts, errors = list(islice(cycle(self.texts), rows)), list[int]()
        for block, first in enumerate(range(0, rows, BLOCK_ROWS)):
            clean = texts[first : first + BLOCK_ROWS]
            noisy = self.noising.noise(recipe, clean, self.seed, block)
            errors += [errors_of(*pair) for pair in zip(clean, noisy, strict=True)]
        return _ratio(errors, [size(text) for text in self.texts])

    def rows_for(self, found: Rate) -> int:
        """Return how many rows give a rate with the standard error `PRECISION`."""
        if not found.value:
            return ROUGH_ROWS
        wanted = found.rows * (found.error / (PRECISION * found.value)) ** 2
        return int(min(ROWS_MAX, max(ROUGH_ROWS, wanted)))


def calibrate_rate(
    recipe: Recipe, texts: Sequence[str], target: float, figure: str = "cer",
    noising: Noising | None = None, name: str = "calibrated", seed: int = 0,
    tick: Tick | None = None,
) -> Calibrated:  # fmt: skip
    """Scale a recipe so that its expected CER or WER (`figure`) on `texts` is `target`.

    A third of the texts is kept from the fit, and noised with another seed for the check. Raises
    UsageError for a rate out of reach, saying what is in reach.
    """
    title = figure.upper()
    if not 0 < target < math.inf:
        raise UsageError(f"a target {title} must be above 0, not {target:g}")
    used, rest = _parted([text for text in texts if FIGURES[figure][0](text)])
    measure = Measure(used, figure, noising or Noising(), seed)
    factor, rows = _factor(recipe, measure, target, tick)
    made = replace(scaled(recipe, factor), name=name)
    reached, given = measure.rate(made, rows), measure.rate(recipe, ROUGH_ROWS)
    check = Measure(rest, figure, measure.noising, seed + 1).rate(made, rows)
    return Calibrated(
        made,
        (Figure(title, target, given.value, reached.value),),
        (
            f"{recipe.name} times {factor:.6g} for {title} {target:g} ({measure.noising.lang})",
            f"reached {reached.value:.5f} +- {1.96 * reached.error:.5f} in {rows:,} noisy rows of "
            f"{len(used):,} texts",
            f"check: {check.value:.5f} +- {1.96 * check.error_between:.5f} on {len(rest):,} other "
            "texts with another seed",
        ),
        {"factor": factor, "reached": vars(reached), "check": vars(check), "texts": len(used),
         "texts_checked": len(rest)},
        warnings=tuple(_doubts(reached, check, len(used))),
    )  # fmt: skip


def _parted(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the texts to fit on, and every third to check with; both are all if there is one."""
    if not texts:
        raise UsageError("the source has no text to noise")
    used = [text for number, text in enumerate(texts) if number % HELD_BACK]
    return (used, list(texts[::HELD_BACK])) if used else (list(texts), list(texts))


def _ratio(errors: Sequence[int], sizes: Sequence[int]) -> Rate:
    """Return a ratio of sums and its linearised standard errors: of rows alone, of whole texts."""
    numbers = np.arange(len(errors)) % len(sizes)
    whole = np.array(sizes, np.float64)[numbers]
    total, value = whole.sum(), float(np.sum(errors) / whole.sum())
    beside = np.array(errors) - value * whole
    between = np.bincount(numbers, beside, len(sizes))
    error, error_between = (float(np.sqrt(part @ part) / total) for part in (beside, between))
    return Rate(value, error, error_between, len(errors))


def _doubts(reached: Rate, check: Rate, texts: int) -> list[str]:
    """Return what makes the figures less sure than they look."""
    doubts = []
    if reached.error > 0.01 * reached.value:
        doubts.append(
            f"{reached.rows:,} rows leave a standard error of {reached.error / reached.value:.1%}"
        )
    if texts < FEW_TEXTS:
        doubts.append(f"{texts:,} texts say little of others; give more")
    elif check.error_between > 0.02 * check.value:
        doubts.append(
            f"{texts:,} texts say little of others: between texts the standard error is "
            f"{check.error_between / check.value:.1%}; give more text for less"
        )
    return doubts


def _factor(
    recipe: Recipe, measure: Measure, target: float, tick: Tick | None
) -> tuple[float, int]:
    """Return the factor that gives the target, and how many rows the last search took."""
    top = factor_max(recipe)
    if not top:
        raise UsageError(f"recipe {recipe.name} has no p or rate above 0 that could be scaled")

    rates: dict[tuple[float, int], Rate] = {}

    def far(factor: float, rows: int = ROUGH_ROWS) -> float:
        if (factor, rows) not in rates:
            rates[factor, rows] = measure.rate(scaled(recipe, factor), rows)
            if tick:
                tick(f"factor {factor:.4g}, {rows:,} rows", len(rates), 0)
        return rates[factor, rows].value / target - 1

    rough = _root(far, *_bracket(far, min(1.0, top), 2.0, top), near=0.01)
    first = rates[rough, ROUGH_ROWS]
    rows = measure.rows_for(first)
    step = 1 + max(0.02, 4 * first.error / first.value) if first.value else 2.0
    fine = partial(far, rows=rows)
    low, high = _bracket(fine, rough, step, top)
    if fine(high) < -NEAR:
        raise UsageError(_out_of_reach(recipe, measure, target, top))
    return _root(fine, low, high, near=NEAR), rows


def _bracket(far: Distance, start: float, step: float, top: float) -> tuple[float, float]:
    """Return factors below and above the target; `top`, the most, twice if it is not enough."""
    at = start
    if far(at) >= 0:
        for _ in range(HALVINGS_MAX):
            at /= step
            if far(at) < 0:
                break
        return at, at * step
    while at < top:
        below, at = at, min(top, at * step)
        if far(at) >= 0:
            return below, at
    return top, top


def _root(far: Distance, low: float, high: float, near: float) -> float:
    """Return a factor between two, at most `near` from the target if there is one.

    False position, kept off the ends of the interval so that it always shrinks.
    """
    ends = [(math.log(low), far(low)), (math.log(high), far(high))]
    for _ in range(STEPS_MAX):
        (x, below), (y, above) = ends
        nearest, place = min((abs(below), x), (abs(above), y))
        if nearest <= near or y - x < CLOSE:
            break
        share = min(0.9, max(0.1, -below / (above - below)))
        at = x + share * (y - x)
        value = far(math.exp(at))
        ends[value >= 0] = (at, value)
    return math.exp(place)


def _out_of_reach(recipe: Recipe, measure: Measure, target: float, top: float) -> str:
    rates = [measure.rate(scaled(recipe, top / 2**k), ROUGH_ROWS).value for k in range(4)]
    return (
        f"recipe {recipe.name} cannot reach {measure.figure.upper()} {target:g} on this text: with "
        f"all its chances at their most it has {max(rates):.3g}; reachable is 0 to that"
    )
