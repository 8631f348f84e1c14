"""Measure sentence encoders under noise, test their differences, and write the report.

The names of this package are imported when first used, so that the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisegen.evaluation.examples import project
    from noisegen.evaluation.similarity import (
        classify,
        classify_pairs,
        cosine_distance,
        cosine_distances,
        mean_class_similarity,
        sts_spearman,
        type_token_ratio,
    )
    from noisegen.evaluation.statistics import (
        holm,
        mcnemar,
        mean_differences,
        mean_intervals,
        spearman_differences,
        spearman_intervals,
    )
    from noisegen.evaluation.xsim_search import XSim, matching_accuracy, xsim, xsim_hard

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
_HOMES = ("similarity", "xsim_search", "statistics", "examples")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"noisegen.evaluation.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'noisegen.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
