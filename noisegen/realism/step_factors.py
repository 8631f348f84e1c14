"""How much of each step: least squares over what every step makes alone, without negative numbers.

The first solution takes steps as if they did not get in each other's way; later ones begin where
the last is and make up for what was measured to be missing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from noisegen.errors import UsageError
from noisegen.realism.scaling import reach, rooms
from noisegen.realism.signatures import (
    CER,
    F64,
    KIND,
    RARE,
    TEXT,
    WER,
    WORD,
    nonnegative,
    unchanged,
)
from noisegen.recipe import Recipe

GROWTH_MAX = 100.0  # of a step against the whole recipe: no step is taken for all that it resembles
EXPRESSED = 0.02  # of a step's own edits, at least, for a kind to be one that it makes
_RATES = 0.3  # weight of a relative miss in CER and in WER beside one in the number of edits
_PLACES = 0.5  # weight of the places of edits in text and word beside their kinds
_PRIOR = 0.05  # weight of the proportions of the recipe as it was given
_CAUTION = 0.15  # weight of staying where the last round was
_ALL = 0  # the line of all edits in what `weighed` returns

Measure = Callable[[Recipe], F64]


@dataclass(frozen=True)
class StepFactors:
    """The problem: `effects` has a column a step, what it adds to the vector of clean rows.

    `factors` are arrays in the order of `labels`: 1 is the step as the recipe has it.
    """

    labels: list[str]
    effects: F64
    real: F64
    start: float
    most: F64

    @classmethod
    def of(cls, recipe: Recipe, real: F64, measure: Measure) -> "StepFactors":
        """Measure every step alone; raises UsageError if none changes the texts."""
        chances, room, effects = reach(recipe), rooms(recipe), []
        for step in recipe.steps():
            alone = measure(Recipe.of([replace(step, p=Fraction(1))], step.transform))
            effects.append(chances[step.label] * (alone - unchanged()))
        made = sum(float(effect[KIND].sum()) for effect in effects)
        if not made:
            raise UsageError(f"recipe {recipe.name} changes nothing in the clean side of the pairs")
        start = float(real[KIND].sum()) / made
        labels = [step.label for step in recipe.steps()]
        most = np.minimum(GROWTH_MAX * start, np.array([room[label] for label in labels]))
        return cls(labels, np.array(effects).T, real, start, most)

    def named(self, factors: F64) -> dict[str, float]:
        """Return factors by label."""
        return dict(zip(self.labels, factors.tolist(), strict=True))

    def shares(self, factors: F64) -> dict[str, float]:
        """Return by label which share of all edits a step makes."""
        made = self.effects[KIND].sum(axis=0) * factors
        return self.named(made / max(1e-9, made.sum()))

    def first(self) -> F64:
        """Return the factors that fit the sum of the steps, near those of the recipe."""
        start = np.full(len(self.labels), self.start)
        return self._solved(self._weighed(self.effects), self._target, start, _PRIOR)

    def corrected(self, factors: F64, touched: float, measured: F64) -> F64:
        """Return factors that make up for what the vector `measured` with `factors` is missing.

        `touched` is the share of the rows that get the steps.
        """
        made = self._weighed(self.effects) * touched
        missing = self._target - self._weighed(measured[:, None])[:, 0]
        return self._solved(made, made @ factors + missing, factors, _CAUTION)

    def _solved(self, made: F64, target: F64, near: F64, weight: float) -> F64:
        """Solve for factors that stay near some; each step counts by the edits it makes."""
        stay = np.sqrt(weight) * np.diag(made[_ALL])
        found = nonnegative(np.vstack([made, stay]), np.concatenate([target, stay @ near]))
        return np.minimum(found, self.most)

    @property
    def _expressible(self) -> F64:
        """1 for the kinds that some step makes, else 0."""
        kinds = self.effects[KIND]
        shares = kinds / np.maximum(kinds.sum(axis=0), 1e-9)
        return np.asarray(shares.max(axis=1) > EXPRESSED, np.float64)

    @property
    def _target(self) -> F64:
        """The real figures, with all edits of kinds that some step makes."""
        kinds = self.real[KIND] * self._expressible
        whole = self.real[KIND].sum() / max(1e-9, kinds.sum())
        aim = np.concatenate([kinds * whole, self.real[KIND.stop :]])
        return np.asarray(self._weighed(aim[:, None])[:, 0])

    def _weighed(self, vectors: F64) -> F64:
        """Return comparable numbers for vectors (columns): all edits, then kinds, places, CER, WER.

        Each is a share of what is real; rarer kinds weigh more, as in a chi-square.
        """
        edits = self.real[KIND].sum()
        scale = self._expressible / np.sqrt(self.real[KIND] / edits + RARE)
        kinds = vectors[KIND] / edits
        rates = [_RATES * vectors[n] / max(1e-9, self.real[n]) for n in (CER, WER)]
        places = [_PLACES * self._shared(vectors, part) for part in (TEXT, WORD)]
        return np.vstack([kinds.sum(axis=0), kinds * scale[:, None], *places, *rates])

    def _shared(self, vectors: F64, part: slice) -> F64:
        """Return counts of edits as shares of the real ones, rarer places with more weight."""
        whole = max(1e-9, self.real[part].sum())
        scale = 1 / np.sqrt(self.real[part] / whole + RARE)
        return np.asarray(vectors[part] / whole * scale[:, None])
