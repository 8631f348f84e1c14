"""Noise on text: keyed draws, edits, word lists, kernels, recipes and the engine that runs them."""
