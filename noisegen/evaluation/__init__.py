"""Metrics of sentence encoders under noise, their statistics, and the report.

The names here are imported when first used: some need torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisegen.evaluation.bootstrap import (
        mean_differences,
        mean_intervals,
        spearman_differences,
        spearman_intervals,
    )
    from noisegen.evaluation.class_similarity import mean_class_similarity
    from noisegen.evaluation.classification import classify
    from noisegen.evaluation.distances import cosine_distance, cosine_distances
    from noisegen.evaluation.margin_search import XSim, xsim, xsim_hard
    from noisegen.evaluation.matching import matching_accuracy
    from noisegen.evaluation.pair_classification import classify_pairs
    from noisegen.evaluation.projection import project
    from noisegen.evaluation.significance import holm, mcnemar
    from noisegen.evaluation.similarity import sts_spearman
    from noisegen.evaluation.type_token import type_token_ratio

_HOMES = {
    "XSim": "margin_search",
    "classify": "classification",
    "classify_pairs": "pair_classification",
    "cosine_distance": "distances",
    "cosine_distances": "distances",
    "holm": "significance",
    "matching_accuracy": "matching",
    "mcnemar": "significance",
    "mean_class_similarity": "class_similarity",
    "mean_differences": "bootstrap",
    "mean_intervals": "bootstrap",
    "project": "projection",
    "spearman_differences": "bootstrap",
    "spearman_intervals": "bootstrap",
    "sts_spearman": "similarity",
    "type_token_ratio": "type_token",
    "xsim": "margin_search",
    "xsim_hard": "margin_search",
}

__all__ = [
    "XSim",
    "classify",
    "classify_pairs",
    "cosine_distance",
    "cosine_distances",
    "holm",
    "matching_accuracy",
    "mcnemar",
    "mean_class_similarity",
    "mean_differences",
    "mean_intervals",
    "project",
    "spearman_differences",
    "spearman_intervals",
    "sts_spearman",
    "type_token_ratio",
    "xsim",
    "xsim_hard",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'noisegen.evaluation' has no attribute {name!r}")
    return getattr(import_module(f"noisegen.evaluation.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
