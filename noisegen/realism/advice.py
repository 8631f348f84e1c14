"""Advice on a recipe: changes that bring its kinds of edit nearer to real noise.

`kind_transforms.tsv` has the transforms that make edits of a kind. The transforms that the recipe
has are tried one by one: a sample of the clean texts is noised with more or less of the transform,
and the share of the kind is measured again.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.pairs import Pairs
from noisegen.noising import registry
from noisegen.noising.recipe import Recipe
from noisegen.realism.figures import NoiseFigures, measure
from noisegen.text.resources import rows_of

KIND_TRANSFORMS = Path(__file__).with_name("kind_transforms.tsv")
KINDS_MAX = 3  # most kinds of edit that get advice
DIFFERENCE_MIN = 0.02  # kinds whose real and synthetic shares differ by less get none
ROWS_MAX = 500  # most rows of a trial
MORE, LESS = (2.0, 4.0), (0.5, 0.25)  # factors of a transform's noise that are tried
CLOSED_MIN = 0.2  # part of the difference that a trial has to close


@dataclass(frozen=True)
class Advice:
    """A kind of edit, its shares of all real and of all synthetic edits, and what changes it.

    `transforms` are transforms that make edits of the kind. If a transform was tried, it is the
    only one, and the synthetic share is `then` with `factor` times its noise. `is_missing` tells
    whether the recipe has none of the transforms.
    """

    kind: str
    real: float
    synthetic: float
    transforms: tuple[str, ...]
    factor: float = 1.0
    then: float | None = None
    is_missing: bool = False


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


def tried(given: Advice, recipe: Recipe, pairs: Pairs, lang: str, seed: int) -> Advice:
    """Return advice with the change that brings a kind of edit nearest to its real share.

    `pairs` are noise of the recipe with this seed. The advice has no transforms if no change of
    the recipe closes a part `CLOSED_MIN` of the difference.
    """
    known = {step.transform for step in recipe.mix_of(lang).steps()}
    factors = MORE if given.real > given.synthetic else LESS
    if factors is MORE and not known & {*given.transforms}:
        there = [name for name in given.transforms if registry.get(name).has_language(lang)]
        return replace(given, transforms=tuple(there), is_missing=True)
    clean, noising = pairs.sample(ROWS_MAX).clean, Noising(lang)
    best = replace(given, transforms=())
    nearest = (1 - CLOSED_MIN) * abs(given.real - given.synthetic)
    for name in (name for name in given.transforms if name in known):
        for factor in factors:
            noisy = noising.noise(recipe.with_factors({name: factor}), clean, seed)
            then = _share(measure(clean, noisy, lang)[0], given.kind)
            if abs(given.real - then) < nearest:
                nearest = abs(given.real - then)
                best = replace(given, transforms=(name,), factor=factor, then=then)
    return best


def _share(figures: NoiseFigures, kind: str) -> float:
    """Return the share of a kind among all edits."""
    return figures.kinds[kind] / max(1, figures.edits)
