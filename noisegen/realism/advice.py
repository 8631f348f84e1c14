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
from noisegen.noising.recipe import Recipe
from noisegen.realism.figures import NoiseFigures, measure
from noisegen.realism.two_sample import Auc, two_sample
from noisegen.text.resources import rows_of

KIND_TRANSFORMS = Path(__file__).with_name("kind_transforms.tsv")
KINDS_MAX = 3  # most kinds of edit that get advice
DIFFERENCE_MIN = 0.02  # kinds whose real and synthetic shares differ by less get none
ROWS_MAX = 500  # most rows of a trial
MORE, LESS = (2.0, 4.0), (0.5, 0.25)  # factors of a transform's noise that are tried
CHANCES = (0.1, 0.3, 1.0)  # chances that a row gets an added transform
CLOSED_MIN = 0.2  # part of the difference that a trial has to close


@dataclass(frozen=True)
class Advice:
    """A kind of edit, its shares of all real and of all synthetic edits, and what changes it.

    `transforms` are transforms that make edits of the kind. If a change was tried, it is of the
    only transform: the synthetic share is `then` with `amount` times its noise or, where `is_added`
    tells that the recipe lacks the transform, if a row gets it with the chance `amount`.
    """

    kind: str
    real: float
    synthetic: float
    transforms: tuple[str, ...]
    amount: float = 1.0
    then: float | None = None
    is_added: bool = False

    def change(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the change that was tried."""
        (name,) = self.transforms
        if not self.is_added:
            return recipe.with_factors({name: self.amount})
        content = recipe.to_dict()
        return Recipe.from_dict(
            {**content, "steps": [*content["steps"], {name: {"p": self.amount}}]}
        )


@dataclass(frozen=True)
class Together:
    """AUCs of a recipe and of the recipe with all changes of the advice, on the same rows.

    `extends` is the name or the file of the recipe, '' if it has neither.
    """

    before: Auc
    after: Auc
    extends: str = ""


def differences(real: NoiseFigures, synthetic: NoiseFigures) -> list[Advice]:
    """Return the kinds of edit whose shares differ most, at most `KINDS_MAX` of them.

    Each kind has its transforms of kind_transforms.tsv; no change is tried.
    """
    found = [
        Advice(kind, _share(real, kind), _share(synthetic, kind), tuple(transforms.split()))
        for kind, transforms in rows_of(KIND_TRANSFORMS)
    ]
    found = [one for one in found if abs(one.real - one.synthetic) >= DIFFERENCE_MIN]
    return sorted(found, key=lambda one: -abs(one.real - one.synthetic))[:KINDS_MAX]


def advised(
    found: Sequence[Advice],
    recipe: Recipe,
    real: Pairs,
    synthetic: Pairs,
    lang: str,
    seed: int,
) -> tuple[tuple[Advice, ...], Together | None]:
    """Return advice with the changes that help, and what all of them do together.

    `synthetic` is noise of the recipe with this seed on the clean texts of `real`. A change helps
    if it closes a part `CLOSED_MIN` of the difference in its kind of edit and the shares of all
    kinds are not further from the real ones. Advice without such a change has no transforms.
    """
    recipe, noising = recipe.mix_of(lang), Noising(lang)
    real, synthetic = real.sample(ROWS_MAX), synthetic.sample(ROWS_MAX)
    wanted = measure(real.clean, real.noisy, lang)[0]
    start = measure(synthetic.clean, synthetic.noisy, lang)[0]

    def noised(changed: Recipe) -> Pairs:
        return Pairs(noising.noise(changed, synthetic.clean, seed), synthetic.clean)

    def tried(advice: Advice) -> Advice:
        best = replace(advice, transforms=())
        nearest = (1 - CLOSED_MIN) * abs(_share(wanted, best.kind) - _share(start, best.kind))
        for trial in _trials(advice, recipe, lang):
            pairs = noised(trial.change(recipe))
            figures = measure(pairs.clean, pairs.noisy, lang)[0]
            then = _share(figures, trial.kind)
            left = abs(_share(wanted, trial.kind) - then)
            if left < nearest and _distance(wanted, figures) <= _distance(wanted, start):
                nearest, best = left, replace(trial, then=then)
        return best

    advice = tuple(map(tried, found))
    changes = [one for one in advice if one.then is not None]
    if not changes:
        return advice, None
    changed = noised(reduce(lambda base, one: one.change(base), changes, recipe))
    before, after = (two_sample(real, pairs).all_rows for pairs in (synthetic, changed))
    return advice, Together(before, after) if before and after else None


def _trials(advice: Advice, recipe: Recipe, lang: str) -> Iterator[Advice]:
    """Yield the changes of the recipe that may bring a kind of edit nearer to its real share."""
    known = {step.transform for step in recipe.steps()}
    is_rare = advice.real > advice.synthetic
    names = [name for name in advice.transforms if name in known]
    is_added = is_rare and not names
    if is_added:
        names = [name for name in advice.transforms if registry.get(name).has_language(lang)]
    for name in names:
        for amount in CHANCES if is_added else MORE if is_rare else LESS:
            yield replace(advice, transforms=(name,), amount=amount, is_added=is_added)


def _distance(real: NoiseFigures, synthetic: NoiseFigures) -> float:
    """Return the sum of the differences between the shares of all kinds of edit."""
    return sum(abs(_share(real, kind) - _share(synthetic, kind)) for kind in real.kinds)


def _share(figures: NoiseFigures, kind: str) -> float:
    """Return the share of a kind among all edits."""
    return figures.kinds[kind] / max(1, figures.edits)
