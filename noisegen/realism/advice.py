"""Advice on a recipe: changes that bring its kinds of edit nearer to real noise.

`kind_transforms.tsv` has the transforms that make edits of a kind. The transforms that the recipe
has are tried one by one: a sample of the clean texts is noised with more or less of the transform,
and the share of the kind is measured again. If the recipe has none of them, they are added to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.pairs import Pairs
from noisegen.noising import registry
from noisegen.noising.mix import STEPS_MAX
from noisegen.noising.recipe import Recipe
from noisegen.realism.figures import NoiseFigures, measure
from noisegen.realism.two_sample import Auc, two_sample
from noisegen.text.resources import rows_of

KIND_TRANSFORMS = Path(__file__).with_name("kind_transforms.tsv")
KINDS_MAX = 3  # most kinds of edit that get advice
DIFFERENCE_MIN = 0.02  # kinds whose real and synthetic shares differ by less get none
TRIAL_ROWS = 500  # most rows of a trial
MORE, LESS = (2.0, 4.0), (0.5, 0.25)  # factors of a transform's noise that are tried
CHANCES = (0.1, 0.3, 1.0)  # chances that a row gets an added transform
CLOSED_MIN = 0.2  # part of the difference that a trial has to close


@dataclass(frozen=True)
class Change:
    """A change of a recipe that was tried, and the share of a kind of edit that it led to.

    `amount` is a factor for the noise of the transform. If `is_added`, the recipe lacks the
    transform, and `amount` is the chance that a row gets it.
    """

    transform: str
    amount: float
    is_added: bool
    share: float = 0.0

    def of(self, recipe: Recipe) -> Recipe:
        """Return the recipe with this change."""
        if not self.is_added:
            return recipe.with_factors({self.transform: self.amount})
        content = recipe.to_dict()
        added = {self.transform: {"p": self.amount}}
        return Recipe.from_dict({**content, "steps": [*content["steps"], added]})


@dataclass(frozen=True)
class Advice:
    """A kind of edit, its shares of all real and of all synthetic edits, and what changes it.

    `transforms` make edits of the kind in the language of the texts. `change` is a change of the
    recipe that brings the synthetic share nearer to the real one, None if none did or was tried.
    """

    kind: str
    real: float
    synthetic: float
    transforms: tuple[str, ...]
    change: Change | None = None


@dataclass(frozen=True)
class AllChanges:
    """The changes of a recipe that helped alone, and the AUCs without and with all of them.

    There is one change per transform; without changes there are no AUCs. Both AUCs are of the same
    rows. `extends` is the name or the file of the recipe, '' if it has neither.
    """

    changes: tuple[Change, ...] = ()
    before: Auc | None = None
    after: Auc | None = None
    extends: str = ""

    @property
    def has_gain(self) -> bool:
        """Tell whether the classifier is right less often, in whole percent."""
        return bool(
            self.before and self.after and round(self.after.value, 2) < round(self.before.value, 2)
        )


def differences(real: NoiseFigures, synthetic: NoiseFigures, lang: str) -> list[Advice]:
    """Return the kinds of edit whose shares differ most, at most `KINDS_MAX` of them.

    Each kind has its transforms of kind_transforms.tsv; no change is tried.
    """
    found = [
        Advice(
            kind,
            _share(real, kind),
            _share(synthetic, kind),
            tuple(name for name in names.split() if registry.get(name).has_language(lang or "en")),
        )
        for kind, names in rows_of(KIND_TRANSFORMS)
    ]
    found = [one for one in found if abs(one.real - one.synthetic) >= DIFFERENCE_MIN]
    return sorted(found, key=lambda one: -abs(one.real - one.synthetic))[:KINDS_MAX]


def advised(
    found: Sequence[Advice], recipe: Recipe, real: Pairs, lang: str, seed: int
) -> tuple[tuple[Advice, ...], AllChanges]:
    """Return advice with the changes that help, and what all of them do together.

    A change helps if it closes a part `CLOSED_MIN` of the difference in its kind of edit and the
    shares of all kinds are not further from the real ones. All noise is on the clean texts of the
    same rows of `real`, with the same draws.
    """
    recipe, noising, real = recipe.mix_of(lang), Noising(lang), real.sample(TRIAL_ROWS)

    def noised(changed: Recipe) -> Pairs:
        return Pairs(noising.noise(changed, real.clean, seed), real.clean)

    def figures(pairs: Pairs) -> NoiseFigures:
        return measure(pairs.clean, pairs.noisy, lang)[0]

    synthetic = noised(recipe)
    wanted, start = figures(real), figures(synthetic)

    def tried(advice: Advice) -> Advice:
        kind, best = advice.kind, None
        nearest = (1 - CLOSED_MIN) * abs(_share(wanted, kind) - _share(start, kind))
        for change in _trials(advice, recipe):
            now = figures(noised(change.of(recipe)))
            left = abs(_share(wanted, kind) - _share(now, kind))
            if left < nearest and _distance(wanted, now) <= _distance(wanted, start):
                nearest, best = left, replace(change, share=_share(now, kind))
        return replace(advice, change=best)

    advice = tuple(map(tried, found))
    of_transform = dict[str, Change]()  # the change for the kind of edit that differs most
    for one in advice:
        if one.change:
            of_transform.setdefault(one.change.transform, one.change)
    changes = tuple(of_transform.values())
    if not changes:
        return advice, AllChanges()
    changed = noised(reduce(lambda base, change: change.of(base), changes, recipe))
    before, after = (two_sample(real, pairs).all_rows for pairs in (synthetic, changed))
    return advice, AllChanges(changes, before, after)


def _trials(advice: Advice, recipe: Recipe) -> Iterator[Change]:
    """Yield the changes of the recipe that may bring a kind of edit nearer to its real share."""
    known = {step.transform for step in recipe.steps()}
    names = [name for name in advice.transforms if name in known]
    is_rare = advice.real > advice.synthetic
    if is_rare and not names and len(recipe.steps()) + KINDS_MAX <= STEPS_MAX:
        yield from (Change(name, p, True) for name in advice.transforms for p in CHANCES)
    factors = MORE if is_rare else LESS
    yield from (Change(name, factor, False) for name in names for factor in factors)


def _distance(real: NoiseFigures, synthetic: NoiseFigures) -> float:
    """Return the sum of the differences between the shares of all kinds of edit."""
    return sum(abs(_share(real, kind) - _share(synthetic, kind)) for kind in real.kinds)


def _share(figures: NoiseFigures, kind: str) -> float:
    """Return the share of a kind among all edits."""
    return figures.kinds[kind] / max(1, figures.edits)
