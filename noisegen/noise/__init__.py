"""Noise: keyed randomness, edits, word lists, kernels, the registry, recipes and the engine."""

from noisegen.options import callable_package

callable_package(__name__, "noisegen.noise.engine:noise")
