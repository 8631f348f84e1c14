"""Classification of vectors by logistic regression, few examples a class: MTEB's protocol."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.errors import MissingExtra, UsageError
from noisegen.evaluation.unit_vectors import F64, Vectors, check_widths

EXPERIMENTS = 10
SAMPLES_PER_LABEL = 8
SEED = 42  # MTEB's
_ITERATIONS_MAX = 100


@dataclass(frozen=True)
class Classified:
    """Means over the experiments: accuracy and macro F1 in per cent.

    `correct` is, for each text, the share of experiments that labelled it rightly.
    """

    accuracy: float
    f1: float
    correct: F64


def classify(
    train: Vectors, train_labels: Sequence[str], tests: Mapping[str, Vectors],
    test_labels: Sequence[str], *, experiments: int = EXPERIMENTS,
    samples_per_label: int = SAMPLES_PER_LABEL, seed: int = SEED,
) -> dict[str, Classified]:  # fmt: skip
    """Train on vectors of clean text and test on versions of other text, such as clean and noisy.

    As AbsTaskClassification of MTEB 2 does by default, with its own draws: in each of 10
    experiments the training rows are shuffled on, the first 8 of every label are fitted by logistic
    regression (L2 penalty of 1, at most 100 iterations, vectors as they are), and all of the test
    rows are labelled. Some of MTEB's tasks take more samples: 32 in TweetSentimentExtraction.

    Raises UsageError if there is one label only, MissingExtra without scikit-learn.
    """
    _check(train, train_labels, tests, test_labels)
    names = sorted(set(train_labels) | set(test_labels))
    numbers = {label: number for number, label in enumerate(names)}
    truth = np.array([numbers[label] for label in test_labels], np.int64)
    classes = np.array([numbers[label] for label in train_labels], np.int64)
    found: dict[str, list[npt.NDArray[np.int64]]] = {name: [] for name in tests}
    for rows in _samples(classes, experiments, samples_per_label, seed):
        model = _fitted(np.asarray(train[rows], np.float32), classes[rows])
        for name, vectors in tests.items():
            found[name].append(model.predict(np.asarray(vectors, np.float32)))
    return {name: _classified(np.stack(labels), truth) for name, labels in found.items()}


def _check(
    train: Vectors, train_labels: Sequence[str], tests: Mapping[str, Vectors],
    test_labels: Sequence[str],
) -> None:  # fmt: skip
    if len(train) != len(train_labels):
        raise UsageError(f"{len(train):,} vectors to train on, but {len(train_labels):,} labels")
    if len(set(train_labels)) < 2:
        raise UsageError("the training part has one label only; classification needs two")
    for vectors in tests.values():
        check_widths(train, vectors)
        if len(vectors) != len(test_labels):
            raise UsageError(f"{len(vectors):,} vectors to test, but {len(test_labels):,} labels")


def _samples(
    classes: npt.NDArray[np.int64], experiments: int, per_label: int, seed: int
) -> list[npt.NDArray[np.int64]]:
    """Return the training rows of each experiment.

    MTEB starts the same generator anew for each experiment but shuffles the last order on.
    """
    order = np.arange(len(classes))
    chosen = []
    for _ in range(experiments):
        np.random.RandomState(seed).shuffle(order)
        seen: dict[int, int] = {}
        kept = []
        for row in order.tolist():
            label = int(classes[row])
            seen[label] = seen.get(label, 0) + 1
            if seen[label] <= per_label:
                kept.append(row)
        chosen.append(np.array(kept, np.int64))
    return chosen


def _fitted(vectors: npt.NDArray[np.float32], classes: npt.NDArray[np.int64]) -> Any:
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtra("scikit-learn", "train") from error
    with warnings.catch_warnings():
        # The protocol stops after so many iterations, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(max_iter=_ITERATIONS_MAX).fit(vectors, classes)


def _classified(labels: npt.NDArray[np.int64], truth: npt.NDArray[np.int64]) -> Classified:
    from sklearn.metrics import f1_score

    correct = (labels == truth).mean(axis=0)
    f1 = [f1_score(truth, one, average="macro", zero_division=0) for one in labels]
    return Classified(100 * float(correct.mean()), 100 * float(np.mean(f1)), correct)
