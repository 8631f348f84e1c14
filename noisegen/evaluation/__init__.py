"""Measure sentence encoders under noise, test their differences, and write the report.

The names of this package are imported when first used, so that the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers
    from noisegen.evaluation.examples import project as project
    from noisegen.evaluation.similarity import classify as classify
    from noisegen.evaluation.similarity import classify_pairs as classify_pairs
    from noisegen.evaluation.similarity import cosine_distance as cosine_distance
    from noisegen.evaluation.similarity import cosine_distances as cosine_distances
    from noisegen.evaluation.similarity import mean_class_similarity as mean_class_similarity
    from noisegen.evaluation.similarity import sts_spearman as sts_spearman
    from noisegen.evaluation.similarity import type_token_ratio as type_token_ratio
    from noisegen.evaluation.statistics import holm as holm
    from noisegen.evaluation.statistics import mcnemar as mcnemar
    from noisegen.evaluation.statistics import mean_differences as mean_differences
    from noisegen.evaluation.statistics import mean_intervals as mean_intervals
    from noisegen.evaluation.statistics import spearman_differences as spearman_differences
    from noisegen.evaluation.statistics import spearman_intervals as spearman_intervals
    from noisegen.evaluation.xsim_search import XSim as XSim
    from noisegen.evaluation.xsim_search import matching_accuracy as matching_accuracy
    from noisegen.evaluation.xsim_search import xsim as xsim
    from noisegen.evaluation.xsim_search import xsim_hard as xsim_hard

_NAMES = {  # public names by the module that defines them
    "examples": "project",
    "similarity": (
        "classify classify_pairs cosine_distance cosine_distances mean_class_similarity "
        "sts_spearman type_token_ratio"
    ),
    "statistics": (
        "holm mcnemar mean_differences mean_intervals spearman_differences spearman_intervals"
    ),
    "xsim_search": "XSim matching_accuracy xsim xsim_hard",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'noisegen.evaluation' has no attribute {name!r}")
    return getattr(import_module(f"noisegen.evaluation.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
