"""What meaning and language vectors are good for: retrieval both ways, similarity (STS).

High is wanted of meaning vectors, low of language vectors (ORACLE, Tables 3 and 4). The vectors of
the frozen encoder are computed once; heads of any number of runs are then applied to them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch

from noisegen.disentangling.heads import SIDES, Heads
from noisegen.encoders.encoder import Vectors
from noisegen.evaluation.matching import retrieval_accuracy
from noisegen.evaluation.similarity import sts_spearman

Figures = dict[str, float]
FORWARD, BACKWARD, STS = "forward", "backward", "sts"


@dataclass(frozen=True)
class Retrieval:
    """Vectors of sentences and their translations, row by row; `group` names what is averaged."""

    name: str
    source: Vectors
    target: Vectors
    group: str = "retrieval"


@dataclass(frozen=True)
class Similarity:
    """Vectors of both sentences of each pair, with the score that people gave."""

    name: str
    first: Vectors
    second: Vectors
    scores: Sequence[float]


@dataclass(frozen=True)
class Sets:
    """All that heads are measured on."""

    retrieval: Sequence[Retrieval] = ()
    similarity: Sequence[Similarity] = ()


def measure(sets: Sets, head: Callable[[Vectors], Vectors]) -> Figures:
    """Return accuracies and Spearman's correlation x 100 of each set, and their means.

    Vectors that tie share what they find: language vectors that are one constant find nothing.
    Names are GROUP.forward, GROUP.backward, GROUP.forward.NAME, ..., sts, sts.NAME.
    """
    found: Figures = {}
    for one in sets.retrieval:
        there, back = retrieval_accuracy(head(one.source), head(one.target))
        found[f"{one.group}.{FORWARD}.{one.name}"] = there
        found[f"{one.group}.{BACKWARD}.{one.name}"] = back
    for two in sets.similarity:
        found[f"{STS}.{two.name}"] = sts_spearman(head(two.first), head(two.second), two.scores)
    return {**_means(found), **found}


def _means(found: Figures) -> Figures:
    groups: dict[str, list[float]] = {}
    for name, value in found.items():
        groups.setdefault(name.rpartition(".")[0], []).append(value)
    return {name: fmean(values) for name, values in groups.items()}


def measure_heads(sets: Sets, heads: Heads) -> dict[str, Figures]:
    """Return the figures of meaning and of language vectors."""
    return {side: measure(sets, applied(heads, side)) for side in SIDES}


def applied(heads: Heads, side: str) -> Callable[[Vectors], Vectors]:
    """Return what makes meaning or language vectors of frozen ones."""
    layer = getattr(heads, side)

    def head(vectors: Vectors) -> Vectors:
        with torch.inference_mode():
            made: Vectors = layer(torch.from_numpy(vectors)).numpy()
        return made

    return head


def flat(figures: Mapping[str, Figures]) -> Figures:
    """Return figures of both sides under one name each, `meaning.sts`."""
    return {
        f"{side}.{name}": value for side, found in figures.items() for name, value in found.items()
    }


def columns_of(sets: Sets) -> list[str]:
    """Return the names of the columns of a table: of each side its groups both ways, then STS."""
    groups = dict.fromkeys(one.group for one in sets.retrieval)
    names = [f"{group}.{way}" for group in groups for way in (FORWARD, BACKWARD)]
    names += [STS] if sets.similarity else []
    return [f"{side}.{name}" for side in SIDES for name in names]
