"""Profiles for tests: learned from sentences with noise of known kinds."""

from functools import cache

import numpy as np

from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.pairs import Pairs
from noisegen.noising.recipe import Recipe
from noisegen.realism.figures import HISTOGRAMS, jensen_shannon
from noisegen.realism.figures import measure as figures_and_counts
from noisegen.realism.learn import profile_of


def noised_by(texts, recipe, seed=0, lang="en"):
    """Texts with the noise of a recipe's steps."""
    return Noising(lang, tagger="rule").noise(Recipe.named(recipe), texts, seed)


def measure(clean, noisy, lang=""):
    """The figures of pairs."""
    return figures_and_counts(clean, noisy, lang)[0]


def divergences(real, synthetic):
    """The Jensen-Shannon divergence of every histogram of two figures."""
    sides = real, synthetic
    return {
        name: jensen_shannon(*(np.array([side.histogram(name)], float) for side in sides))[0]
        for name in HISTOGRAMS
    }


def noisy_pairs(texts):
    """(noisy, clean) with errors of several kinds."""
    return _noisy_pairs(tuple(texts))


@cache
def _noisy_pairs(texts):
    texts = list(texts)
    noisy = noised_by(texts, "mix_all", 5)
    spaced = noised_by(texts, "spac", 6)
    bare = [text.replace(",", "").rstrip(".") for text in texts]
    small = [text.lower() for text in texts]
    gone = [text.replace(" the ", " ").replace(" a ", " the ") for text in texts]
    titled = [text[:1].lower() + text[1:] for text in texts]
    sides = (noisy, spaced, bare, gone, titled, texts, small[: len(small) // 3])
    return [pair for side in sides for pair in zip(side, texts, strict=False)]


def pairs_of(pairs):
    return Pairs([noisy for noisy, _ in pairs], [clean for _, clean in pairs])


@cache
def _learned(pairs, lang, min_count):
    return profile_of(pairs_of(pairs), lang, min_count)


def learned_profile(pairs, lang="en", min_count=2):
    return _learned(tuple(pairs), lang, min_count)
