"""Measure sentence vectors: cosines, distances, correlation, classes. Also the type/token ratio.

Vectors are matrices of shape (texts, width). Their rows need not be unit vectors: the functions
normalise them.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError, naming_extras

if TYPE_CHECKING:
    from noisegen.encoders.encoder import Ragged

Vectors = npt.NDArray[np.floating]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_BLOCK = 1 << 17  # numbers converted to float64 at a time, to fit the processor's cache


def unit(vectors: Vectors, start: int = 0) -> F32:
    """Return the rows of a matrix divided by their lengths, float32; a zero row stays zero.

    Raises UsageError for a row that holds NaN or infinity. The message gives the index of the row
    plus `start`.
    """
    units = np.empty(vectors.shape, np.float32)
    for part in _parts(vectors):
        rows = np.asarray(vectors[part], np.float64)
        lengths = _lengths(rows, start + part.start)
        np.divide(rows, np.where(lengths == 0, 1, lengths)[:, None], out=units[part])
    return units


def cosines(x: Vectors, y: Vectors) -> F64:
    """Return the cosine of row i of x and row i of y, for each i; 0 if one of them is zero.

    Cosines are rounded to twelve digits. Without this, equal cosines could differ in the last
    digits, depending on the order of summation. Raises UsageError for a row that holds NaN or
    infinity, and for different shapes.
    """
    check_pairs(x, y)
    similarities = np.empty(len(x))
    for part in _parts(x):
        rows, others = np.asarray(x[part], np.float64), np.asarray(y[part], np.float64)
        products = np.einsum("ij,ij->i", rows, others)
        lengths = _lengths(rows, part.start) * _lengths(others, part.start)
        products = np.divide(products, lengths, out=0 * products, where=lengths > 0)
        similarities[part] = products.round(12)
    return similarities


def _parts(vectors: Vectors) -> list[slice]:
    """Return slices of the rows of a matrix, each small enough for the processor's cache."""
    step = max(1, _BLOCK // max(1, vectors.shape[1]))
    return [slice(start, start + step) for start in range(0, len(vectors), step)]


def _lengths(rows: F64, start: int) -> F64:
    """Return the length of each row; raises UsageError for NaN or infinity.

    The message gives the index of the row plus `start`.
    """
    lengths: F64 = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    wrong = np.flatnonzero(~np.isfinite(lengths))
    if len(wrong):
        number = start + int(wrong[0])
        raise UsageError(f"vector {number} holds NaN or infinity; encode its text again")
    return lengths


def check_pairs(x: Vectors, y: Vectors) -> None:
    """Raise UsageError unless both are matrices of the same shape with at least one row."""
    check_widths(x, y)
    if len(x) != len(y):
        raise UsageError(f"{len(x):,} vectors on one side of the pairs, {len(y):,} on the other")


def check_widths(x: Vectors, y: Vectors) -> None:
    """Raise UsageError unless both are matrices of the same width with at least one row."""
    for vectors in (x, y):
        if vectors.ndim != 2 or not len(vectors):
            wanted = "the shape (texts, width) and at least one text"
            raise UsageError(f"vectors must have {wanted}, not {vectors.shape}")
    if x.shape[1] != y.shape[1]:
        widths = f"width {x.shape[1]} cannot be compared with width {y.shape[1]}"
        raise UsageError(f"vectors of {widths}; take both from encoders of the same width")


def cosine_distances(x: Vectors, y: Vectors) -> F64:
    """Return 1 - cosine of row i of x and row i of y, for each i; 1 where one of them is zero."""
    return 1 - cosines(x, y)


def cosine_distance(x: Vectors, y: Vectors) -> float:
    """Return the mean of 1 - cosine over all pairs of row i of x and row i of y.

    The vectors m(noisy) and m(clean) of a model m give RoLASER's distance (Table 4), m(clean) and
    baseline(clean) give the clean drift (Table 7), m(noisy) and baseline(clean) the anchored
    distance.
    """
    return float(cosine_distances(x, y).mean())


def sts_spearman(x: Vectors, y: Vectors, scores: npt.ArrayLike) -> float:
    """Return 100 x Spearman's correlation of the cosines of pairs and their human scores."""
    return 100 * spearman(cosines(x, y), np.asarray(scores, np.float64))


def spearman(x: F64, y: F64) -> float:
    """Return Spearman's rank correlation of two columns; NaN if a column has only equal values.

    Raises UsageError for columns of different length, MissingExtra without scipy.
    """
    if len(x) != len(y):
        raise UsageError(f"{len(x):,} similarities, but {len(y):,} scores")
    with naming_extras():
        from scipy.stats import rankdata

    ranks = [rankdata(column) - (len(column) + 1) / 2 for column in (x, y)]
    spread = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / spread if spread else float("nan")


def mean_class_similarity(vectors: Vectors, labels: Sequence[Hashable]) -> float:
    """Return D_avg: the mean cosine of two texts of the same class, averaged over classes.

    This is equation 2 of CT-XLMR-SE. Classes are weighted by their number of texts; classes with
    one text do not count. For the unit vectors u of a class, the cosines of all ordered pairs add
    up to |sum u|^2 - sum |u|^2, which is fast to compute. Raises UsageError if no class has two
    texts.
    """
    if len(vectors) != len(labels):
        raise UsageError(f"{len(vectors):,} vectors, but {len(labels):,} labels")
    units = unit(vectors)
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        rows[label].append(row)
    classes = [members for members in rows.values() if len(members) > 1]
    if not classes:
        raise UsageError("no class has two texts, so there is no similarity within classes")
    means = []
    for members in classes:
        of_class = units[members].astype(np.float64)
        total = of_class.sum(axis=0)
        both_ways = total @ total - np.einsum("ij,ij->", of_class, of_class)
        means.append(float(both_ways / (len(members) * (len(members) - 1))))
    return float(np.average(means, weights=list(map(len, classes))))


def classify_pairs(x: Vectors, y: Vectors, labels: Sequence[int]) -> float:
    """Return the average precision of pairs ranked by cosine, as a percentage.

    `labels` are 1 for pairs that belong together, else 0. The metric is cosine_ap in MTEB's
    AbsTaskPairClassification. Raises UsageError unless both labels occur, MissingExtra without
    scikit-learn.
    """
    similarities, truth = cosines(x, y), np.asarray(labels, np.int64)
    if len(truth) != len(similarities):
        raise UsageError(f"{len(similarities):,} pairs, but {len(truth):,} labels")
    if set(truth.tolist()) != {0, 1}:
        raise UsageError("labels of pairs must be 0 and 1, and both must occur")
    with naming_extras():
        from sklearn.metrics import average_precision_score
    return 100 * float(average_precision_score(truth, similarities))


class PrincipalAxes(NamedTuple):
    """First two principal components of vectors: their centre, and two axes of shape (2, width).

    `explained` has the share of the variance along each axis. A single vector has no axis, so both
    axes are zero.
    """

    centre: F64
    axes: F64
    explained: tuple[float, float]

    def project(self, units: Vectors) -> F64:
        """Return normalised vectors as points on the two axes, shape (rows, 2)."""
        points: F64 = (units - self.centre) @ self.axes.T
        return points


def principal_axes(units: Vectors) -> PrincipalAxes:
    """Return the first two principal components of normalised vectors.

    The sign of each axis is chosen so that its value of largest size is positive: equal data give
    equal maps.
    """
    centre = units.mean(axis=0, dtype=np.float64)
    _, spread, axes = np.linalg.svd(units - centre, full_matrices=False)
    axes, variances = axes[:2], spread**2
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    shares, filled = np.zeros(2), np.zeros((2, len(centre)))
    if (total := variances.sum()) > 0:
        shares[: len(axes)] = variances[:2] / total
    filled[: len(axes)] = axes
    return PrincipalAxes(centre, filled, (float(shares[0]), float(shares[1])))


EXPERIMENTS, SAMPLES_PER_LABEL, SEED = 10, 8, 42  # defaults of MTEB
_ITERATIONS_MAX = 100


@dataclass(frozen=True)
class Classified:
    """Accuracy and macro F1 of a classifier in per cent, as means over the experiments.

    `correct[i]` is the share (0 to 1) of experiments that gave test text i the right label.
    """

    accuracy: float
    f1: float
    correct: F64


def classify(
    train: Vectors,
    train_labels: Sequence[str],
    tests: Mapping[str, Vectors],
    test_labels: Sequence[str],
    *,
    samples_per_label: int = SAMPLES_PER_LABEL,
) -> dict[str, Classified]:
    """Train a classifier on vectors of clean text, and test it on vectors of other texts.

    `tests` maps each version of the test texts, such as clean and noisy, to its vectors. The texts
    of all versions have the labels `test_labels`. The result has the same keys as `tests`. The
    protocol and the draws are the default of AbsTaskClassification in MTEB 2. Each of 10
    experiments shuffles the training rows, fits a logistic regression on the first 8 rows of each
    label (L2 penalty of 1, at most 100 iterations, vectors not normalised), and labels all test
    rows. Some of MTEB's tasks take more samples: 32 in TweetSentimentExtractionClassification.

    Raises UsageError if there is one label only, MissingExtra without scikit-learn.
    """
    if len(train) != len(train_labels):
        raise UsageError(f"{len(train):,} vectors to train on, but {len(train_labels):,} labels")
    if len(set(train_labels)) < 2:
        raise UsageError("the training part has one label only; classification needs two")
    for vectors in tests.values():
        check_widths(train, vectors)
        if len(vectors) != len(test_labels):
            raise UsageError(f"{len(vectors):,} vectors to test, but {len(test_labels):,} labels")
    with naming_extras():
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import f1_score
    labels = np.array([*train_labels, *test_labels], np.object_)
    classes, truth = np.split(np.unique(labels, return_inverse=True)[1], [len(train)])
    results, models = {}, []
    for rows in _drawn(classes, samples_per_label):
        with warnings.catch_warnings():  # the protocol stops the fit before it converges
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=_ITERATIONS_MAX)
            models.append(model.fit(np.asarray(train[rows], np.float32), classes[rows]))
    for name, vectors in tests.items():
        answers = [model.predict(np.asarray(vectors, np.float32)) for model in models]
        correct = (np.stack(answers) == truth).mean(axis=0)
        f1 = [f1_score(truth, answer, average="macro", zero_division=0) for answer in answers]
        accuracy = 100 * float(correct.mean())
        results[name] = Classified(accuracy, 100 * float(np.mean(f1)), correct)
    return results


def _drawn(classes: I64, samples: int) -> Iterator[I64]:
    """Yield, for each experiment, the indices of the rows to train on."""
    order = np.arange(len(classes))
    for _ in range(EXPERIMENTS):
        # As in MTEB, each experiment shuffles the previous experiment's order with the same seed.
        np.random.RandomState(SEED).shuffle(order)
        of_class = [np.flatnonzero(classes[order] == number) for number in np.unique(classes)]
        yield order[np.sort(np.concatenate([places[:samples] for places in of_class]))]


def type_token_ratio(
    texts: "Sequence[str] | Ragged",
    tokens: Callable[[str], Iterable[Hashable]] = str.split,
    without: Collection[int] = (),
) -> float:
    """Return 100 x types / tokens over all texts together (RoLASER, section 5); NaN without tokens.

    `tokens` splits a text into tokens. `texts` may also be rows of token ids; then ids in
    `without`, such as the special ids of a tokenizer, are not counted.
    """
    counted: Sequence[Hashable]
    if isinstance(texts, Sequence):
        counted = [token for text in texts for token in tokens(text)]
    else:
        counted = texts.values[~np.isin(texts.values, list(without))].tolist()
    return 100 * len(set(counted)) / len(counted) if counted else float("nan")
