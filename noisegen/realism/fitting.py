"""The fit of a recipe to the figures of real pairs: a factor for every step, and tiers of rows.

The fitted recipe is one of a few tiers for each row, the same steps at different factors, and no
tier for the rest; and the steps' p may be traded for their rates. The factors and the tiers' shares
are convex least squares; rounds of measuring the whole and correcting what is missing account for
steps that get in each other's way. All rounds use the same draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from noisegen.realism.noising import Noising, Tick
from noisegen.realism.scaling import evened, with_factors, without
from noisegen.realism.signatures import F64, distance, vector
from noisegen.realism.step_factors import StepFactors
from noisegen.realism.tiers import LADDER, Tier, chosen, mixed
from noisegen.recipe import STEPS_MAX, Group, Recipe

SIGNATURE_ROWS, ROUND_ROWS = 1_000, 2_000
EVENNESS = (0.0, 0.5, 1.0)  # how far a step's p is traded for its rates: 1 is a step for all rows
NEGLIGIBLE = 0.002  # of all edits: a step that makes fewer is left out
_WEIGHTS = 1_000  # what the weights of the tiers add up to, nearly


@dataclass(frozen=True)
class Fit:
    """Factors of the steps that are left, by label, tiers, and the vector of the whole."""

    factors: dict[str, float]
    tiers: tuple[Tier, ...]
    measured: F64
    evenness: float = 0.0

    @property
    def touched(self) -> float:
        """The share of rows that are in a tier."""
        return sum(tier.share for tier in self.tiers)

    @property
    def mean(self) -> float:
        """The mean factor of rows that are in a tier."""
        return sum(tier.share * tier.factor for tier in self.tiers) / self.touched


@dataclass(frozen=True)
class Bench:
    """The texts that noise is tried on, and how."""

    clean: Sequence[str]
    noising: Noising
    seed: int = 0

    def measure(self, recipe: Recipe, every: int = 1) -> F64:
        """Return the vector of a recipe on every n-th text."""
        clean = self.clean[::every]
        return vector(clean, self.noising.noise(recipe, clean, self.seed), self.noising.lang)


def fit(recipe: Recipe, real: F64, bench: Bench, rounds: int, tick: Tick | None = None) -> Fit:
    """Fit factors and tiers to the vector of real pairs; the best round counts.

    The first round tries every `EVENNESS`, the others keep to the best. Raises UsageError if the
    recipe changes none of the texts.
    """
    every = max(1, len(bench.clean) // SIGNATURE_ROWS)
    total = len(recipe.steps()) + (rounds - 1 + len(EVENNESS)) * len(LADDER)
    done = _counted(tick, total)
    steps = StepFactors.of(recipe, real, lambda one: done(bench.measure(one, every), one.name))
    factors, fits = steps.first(), list[Fit]()
    for number in range(1, rounds + 1):
        kept = _kept(steps, factors)
        tried = []
        for evenness in (fits[-1].evenness,) if fits else EVENNESS:
            made = [_at(recipe, kept, factor, evenness) for factor in LADDER]
            ladder = [done(bench.measure(one), f"round {number} of {rounds}") for one in made]
            tiers = chosen(real, ladder, most=STEPS_MAX // len(kept))
            tried.append(Fit(kept, tiers, mixed(ladder, tiers), evenness))
        best = min(tried, key=lambda found: distance(real, found.measured))
        fits.append(best)
        factors = steps.corrected(factors * best.mean, best.touched, best.measured)
    return min(fits, key=lambda found: distance(real, found.measured))


def _kept(steps: StepFactors, factors: F64) -> dict[str, float]:
    """Return the factors of steps that are not negligible; all if no step helps at all."""
    named, shares = steps.named(factors), steps.shares(factors)
    return {k: f for k, f in named.items() if shares[k] >= NEGLIGIBLE} or named


def tiered(recipe: Recipe, found: Fit) -> Recipe:
    """Return the recipe as it was fitted: one of the tiers for a row, with their shares."""
    p = Fraction(f"{min(1.0, found.touched):.4f}")
    roots = [_at(recipe, found.factors, tier.factor, found.evenness).root for tier in found.tiers]
    weights = [max(1, round(_WEIGHTS * tier.share / found.touched)) for tier in found.tiers]
    if len(roots) == 1:
        whole = replace(roots[0], p=p)
    else:
        pairs = zip(roots, weights, strict=True)
        whole = Group("one_of", tuple(replace(root, weight=weight) for root, weight in pairs), p)
    return replace(recipe, root=Group("sequence", (whole,))).with_values({})


def _at(recipe: Recipe, factors: dict[str, float], factor: float, evenness: float) -> Recipe:
    """Return the recipe with only the steps that have a factor, all times another, and evened."""
    made = with_factors(recipe, {label: one * factor for label, one in factors.items()})
    return without(
        evened(made, evenness), [step.label for step in recipe.steps() if step.label not in factors]
    )


def _counted(tick: Tick | None, total: int) -> Callable[[F64, str], F64]:
    """Return a function that hands on a measurement and reports it."""
    numbers = iter(range(1, total + 1))

    def done(measured: F64, what: str) -> F64:
        if tick:
            tick(what, next(numbers), total)
        return measured

    return done
