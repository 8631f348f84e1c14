"""What one model makes of one set: its figures, and the values by row that statistics need."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.encoders.encoder import Encoder, Vectors
from noisegen.evaluation.class_similarity import mean_class_similarity
from noisegen.evaluation.classification import classify
from noisegen.evaluation.distances import pair_distances
from noisegen.evaluation.margin_search import xsim, xsim_hard
from noisegen.evaluation.matching import matching_accuracy
from noisegen.evaluation.pair_classification import classify_pairs
from noisegen.evaluation.results import Dose
from noisegen.evaluation.sets import (
    DoseSet,
    EvaluationSet,
    LabelledPairSet,
    LabelledSet,
    PairSet,
    RetrievalSet,
    StsSet,
)
from noisegen.evaluation.similarity import spearman
from noisegen.evaluation.type_token import type_token_change
from noisegen.evaluation.unit_vectors import cosines
from noisegen.evaluation.vector_store import VectorStore

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
WRONG = ("xsim_error", "xsim_error_reverse", "xsim_hard_error")  # rows are 100 where wrong, else 0
RIGHT = ("accuracy_forward", "accuracy_backward")  # rows are 100 where right, else 0


@dataclass(frozen=True)
class Measured:
    """The figures of a model on a set: `seeds` has one for each generation seed, by metric.

    `rows` has, for metrics that are means over rows, the value of each row (of several seeds their
    mean). `cosines` are those of sts pairs, by metric.
    """

    seeds: dict[str, tuple[float, ...]]
    rows: dict[str, F64] = field(default_factory=dict)
    cosines: dict[str, F64] = field(default_factory=dict)


def measure(one: EvaluationSet, store: VectorStore, anchor: Vectors | None = None) -> Measured:
    """Measure a model on a set; `anchor` has the baseline's vectors of a pair set's clean texts.

    Without `anchor`, or if it is of another width, drift and anchored distance are left out.
    """
    if isinstance(one, PairSet):
        return _pairs(one, store, anchor)
    return _MEASURES[type(one)](one, store)


def type_token_ratios(one: PairSet, encoder: Encoder) -> tuple[float, ...]:
    """Return the type/token ratio of noisy over clean text by seed; () without a tokenizer."""
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        return ()
    special = set(tokenizer.tokenize([""]).values.tolist())
    clean = tokenizer.tokenize(one.clean)
    return tuple(
        type_token_change(tokenizer.tokenize(noisy), clean, without=special) for noisy in one.noisy
    )


def dose(model: str, one: DoseSet, store: VectorStore) -> Dose:
    """Return distance and xSIM error at every strength."""
    clean = store(one.clean)
    sides = [store(noisy) for noisy in one.noisy]
    distances = tuple(float((1 - cosines(noisy, clean)).mean()) for noisy in sides)
    errors = tuple(xsim(noisy, clean, texts=one.clean).error_rate for noisy in sides)
    return Dose(model, one.name, one.strengths, distances, errors)


@dataclass(frozen=True)
class _OfSeed:
    """Values by row, and figures that are no mean over all rows."""

    rows: dict[str, F64]
    figures: dict[str, float]


def _pairs(one: PairSet, store: VectorStore, anchor: Vectors | None) -> Measured:
    clean = store(one.clean)
    hard = store(one.negatives.texts) if one.negatives else None
    found = []
    for noisy, changed in zip(one.noisy, one.changed, strict=True):
        vectors = store(noisy)
        distances = pair_distances(vectors, clean, changed, anchor)
        only_changed = distances.pop("distance_changed")
        figures = {"distance_changed": float(only_changed.mean())} if len(only_changed) else {}
        rows = {**distances, **_searched(one, noisy, vectors, clean)}
        if one.negatives is not None and hard is not None:
            lost, kinds = _among_hard(one, vectors, clean, hard)
            rows["xsim_hard_error"] = lost
            figures |= kinds
        found.append(_OfSeed(rows, figures))
    return _joined(found)


def _searched(
    one: PairSet, noisy: Sequence[str], vectors: Vectors, clean: Vectors
) -> dict[str, F64]:
    """Return what searches find, both ways: 100 or 0 for each row."""
    forward = xsim(vectors, clean, texts=one.clean).correct
    reverse = xsim(clean, vectors, texts=noisy).correct
    matched = matching_accuracy(vectors, clean)
    return {
        "xsim_error": _percent(~forward),
        "xsim_error_reverse": _percent(~reverse),
        "accuracy_forward": _percent(matched.forward),
        "accuracy_backward": _percent(matched.backward),
    }


def _among_hard(
    one: PairSet, vectors: Vectors, clean: Vectors, hard: Vectors
) -> tuple[F64, dict[str, float]]:
    """Return which rows are lost among hard negatives, and the share lost to each family."""
    assert one.negatives is not None
    found = xsim_hard(
        vectors, clean, hard,
        sources=one.negatives.sources, kinds=one.negatives.kinds, texts=one.clean,
    )  # fmt: skip
    rates = {f"xsim_hard_{kind}": rate for kind, rate in found.kind_rates.items()}
    return _percent(~found.correct), rates


def _percent(where: Bool) -> F64:
    return np.where(where, 100.0, 0.0)


def _joined(found: Sequence[_OfSeed]) -> Measured:
    """Return figures by seed, and the mean over seeds of each row."""
    seeds = {name: tuple(float(one.rows[name].mean()) for one in found) for name in found[0].rows}
    for name in dict.fromkeys(name for one in found for name in one.figures):
        seeds[name] = tuple(one.figures[name] for one in found if name in one.figures)
    rows = {name: np.mean([one.rows[name] for one in found], axis=0) for name in found[0].rows}
    return Measured(seeds, rows)


def _sts(one: StsSet, store: VectorStore) -> Measured:
    first, second = store(one.first), store(one.second)
    noisy = store(one.first_noisy), store(one.second_noisy)
    found = {
        "sts_clean": cosines(first, second),
        "sts_one_noisy": cosines(noisy[0], second),
        "sts_both_noisy": cosines(*noisy),
    }
    figures: dict[str, tuple[float, ...]] = {
        name: (100 * spearman(side, one.scores),) for name, side in found.items()
    }
    return Measured(figures, cosines=found)


def _retrieval(one: RetrievalSet, store: VectorStore) -> Measured:
    found = matching_accuracy(store(one.source), store(one.target))
    sides = found.forward, found.backward
    return _joined([_OfSeed(dict(zip(RIGHT, map(_percent, sides), strict=True)), {})])


def _labelled(one: LabelledSet, store: VectorStore) -> Measured:
    clean, noisy = store(one.clean), store(one.noisy)
    train, test = (
        [label for label, held in zip(one.labels, one.tested, strict=True) if held == side]
        for side in (False, True)
    )
    tests = {"clean": clean[one.tested], "noisy": noisy[one.tested]}
    found = classify(clean[~one.tested], train, tests, test)
    rows = {f"accuracy_{side}": 100 * made.correct for side, made in found.items()}
    figures = {f"f1_{side}": made.f1 for side, made in found.items()}
    if max(Counter(one.labels).values()) > 1:
        figures["class_similarity"] = mean_class_similarity(clean, one.labels)
    return _joined([_OfSeed(rows, figures)])


def _labelled_pairs(one: LabelledPairSet, store: VectorStore) -> Measured:
    second = store(one.second)
    sides = {"clean": store(one.first), "noisy": store(one.first_noisy)}
    return Measured({
        f"average_precision_{name}": (classify_pairs(side, second, one.labels).average_precision,)
        for name, side in sides.items()
    })  # fmt: skip


_MEASURES: Mapping[type, Callable[[Any, VectorStore], Measured]] = {
    StsSet: _sts,
    RetrievalSet: _retrieval,
    LabelledSet: _labelled,
    LabelledPairSet: _labelled_pairs,
}
