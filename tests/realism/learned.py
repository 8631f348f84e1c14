"""Profiles for tests: learned from sentences with noise of known kinds."""

from functools import cache

import pyarrow as pa

from noisegen.data.pairs import Pairs
from noisegen.noise.recipe import Recipe
from noisegen.realism.learn import profile_of


def noised_by(texts, recipe, seed=0, lang="en"):
    """Texts with the noise of a recipe's steps."""
    table = pa.table({"clean": texts})
    table = Recipe.named(recipe).noise_batch(table, seed=seed, lang=lang, tagger="rule")
    return table["noisy"].to_pylist()


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
