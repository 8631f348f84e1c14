"""Pair classification: whether cosines tell pairs that belong together from the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisegen.errors import UsageError
from noisegen.evaluation.unit_vectors import F64, I64, Vectors, cosines


@dataclass(frozen=True)
class PairClassification:
    """In per cent; `accuracy` is that of calling a pair positive from `threshold` on, the best."""

    average_precision: float
    accuracy: float
    threshold: float


def classify_pairs(x: Vectors, y: Vectors, labels: Sequence[int]) -> PairClassification:
    """Rank pairs by cosine; `labels` are 1 for pairs that belong together, else 0.

    Average precision and best accuracy are those that MTEB's AbsTaskPairClassification calls
    cosine_ap and cosine_accuracy. Raises UsageError unless both labels occur.
    """
    similarities, truth = cosines(x, y), np.asarray(labels, np.int64)
    if len(truth) != len(similarities):
        raise UsageError(f"{len(similarities):,} pairs, but {len(truth):,} labels")
    if set(truth.tolist()) != {0, 1}:
        raise UsageError("labels of pairs must be 0 and 1, and both must occur")
    accuracy, threshold = _best_accuracy(similarities, truth)
    average = average_precision(similarities, truth)
    return PairClassification(100 * average, 100 * accuracy, threshold)


def average_precision(scores: F64, truth: I64) -> float:
    """Return the mean precision at each positive, where equal scores are taken together."""
    ends, positives = _by_threshold(scores, truth)
    gained = np.diff(positives, prepend=0)
    return float((gained * positives / ends).sum() / positives[-1])


def _by_threshold(scores: F64, truth: I64) -> tuple[I64, I64]:
    """Return, for each different score from the highest, how many reach it, and positives."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    return ends + 1, np.cumsum(truth[order])[ends]


def _best_accuracy(scores: F64, truth: I64) -> tuple[float, float]:
    """Return the best accuracy and the least score that is called positive; infinity for none."""
    ends, positives = _by_threshold(scores, truth)
    negatives = len(truth) - positives[-1]
    right = np.append(2 * positives - ends, 0) + negatives
    best = int(right.argmax())
    levels = np.append(np.sort(scores)[::-1][ends - 1], np.inf)
    return float(right[best]) / len(truth), float(levels[best])
