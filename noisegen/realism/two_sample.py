"""Measure how well a classifier tells real noisy text from synthetic (a two-sample test).

A logistic regression on character n-grams is trained on the versions of four fifths of the clean
texts and scores the versions of the other fifth. The area under the ROC curve (AUC) is the chance
that it scores a synthetic text above a real one: 0.5 is guessing, 1 means that it always tells them
apart (Lopez-Paz and Oquab, 2017, "Revisiting classifier two-sample tests").
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noisegen.data.pairs import Pairs
from noisegen.errors import MissingExtra
from noisegen.noising.rng import mix, name_number
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.alignment import edits
from noisegen.text.buffers import I64, Bool

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDS = 5
TEXTS_MIN = 20  # different clean texts; with fewer there is nothing to learn from
RESAMPLES = 200
INTERVAL = (2.5, 97.5)  # per cent
SIZES = (1, 2, 3, 4)  # characters of an n-gram
ROWS_MIN = 3  # different texts that an n-gram must occur in
CHARACTERS_MAX = 500  # characters of a text that are read
SHOWN = 12  # n-grams per side in the report
_SHOWN_ROWS_MIN = 5  # texts that an n-gram in the report must occur in
_CANDIDATES = 400  # n-grams per side from which the report chooses
_EDGE = "\n"  # frames a text, so that an n-gram can tell where it begins or ends
_INVERSE_PENALTY = 10.0  # C; from 1 to 100 the AUC of real sets changes by less than 0.02
# Both versions of a text are nearly the same, so gradients are small from the start: a solver that
# stops at small gradients, such as L-BFGS, stops at once. Dual coordinate descent goes on; the
# order of its steps is drawn from a fixed state.
_SOLVER: dict[str, Any] = {
    "solver": "liblinear",
    "dual": True,
    "tol": 1e-2,
    "max_iter": 1_000,
    "random_state": 0,
}

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Auc:
    """An AUC with its 95 % interval (clean texts are resampled).

    `real` and `other` are the numbers of texts that were told apart.
    """

    value: float
    low: float
    high: float
    real: int
    other: int


@dataclass(frozen=True)
class NgramExample:
    """A noisy text, and the place of an n-gram that its clean version lacks."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class NgramContrast:
    """An n-gram more frequent on one side, the share of rows with it on both, and an example.

    A line break in the n-gram stands for the beginning or the end of a text.
    """

    ngram: str
    side: str
    real_share: float
    synthetic_share: float
    example: NgramExample | None


@dataclass(frozen=True)
class TwoSample:
    """AUCs of telling texts apart; None where there are too few texts.

    `all_rows` tells real noisy from synthetic noisy text; `changed_rows` does so without rows that
    equal their clean version. For reference, `real_against_clean` tells real noisy text from its
    own clean version, and `clean_sides` tells the two clean sides apart (None if they are the
    same): those differ in topic and style, not in noise. `contrasts` are the n-grams with the most
    weight in the classifier.
    """

    all_rows: Auc | None
    changed_rows: Auc | None
    real_against_clean: Auc | None
    clean_sides: Auc | None
    contrasts: tuple[NgramContrast, ...]


@dataclass(frozen=True)
class NgramTexts:
    """The texts of both sets as n-grams.

    `weights` has a row of tf-idf weights for each different text and a column for each of `names`.
    Texts of all sides are numbered one after the other. `rows` has the row of each text number in
    `weights`, `clean_numbers` the number of its clean text. `real`, `synthetic`, `real_clean` and
    `synthetic_clean` are the text numbers of each side.
    """

    weights: "csr_matrix"
    names: list[str]
    rows: I64
    clean_numbers: I64
    real: I64
    synthetic: I64
    real_clean: I64
    synthetic_clean: I64

    def of(self, numbers: I64) -> "csr_matrix":
        """Return the weights of the texts with these numbers, a row per text."""
        return self.weights[self.rows[numbers]]


def two_sample(real: Pairs, synthetic: Pairs, progress: Show = silent) -> TwoSample:
    """Tell real from synthetic pairs with a classifier; `progress` gets an event per step.

    All versions of a clean text are in the same fold. Equal input gives equal figures. Raises
    MissingExtra without scikit-learn.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("scikit-learn", "realism") from error
    progress(Progress("counting character n-grams"))
    texts = ngram_texts(real, synthetic)
    if texts is None:
        return TwoSample(None, None, None, None, ())
    progress(Progress("classifying real against synthetic text"))
    all_rows = auc(texts, texts.real, texts.synthetic)
    progress(Progress("classifying changed rows"))
    changed_rows = auc(texts, texts.real[changed(real)], texts.synthetic[changed(synthetic)])
    progress(Progress("classifying real against clean text"))
    against_clean = auc(texts, texts.real, texts.real_clean)
    clean_sides = None
    if sorted(real.clean) != sorted(synthetic.clean):
        clean_sides = auc(texts, texts.real_clean, texts.synthetic_clean)
    contrasts = tuple(_contrasts(texts, real, synthetic)) if all_rows else ()
    return TwoSample(all_rows, changed_rows, against_clean, clean_sides, contrasts)


def ngram_texts(real: Pairs, synthetic: Pairs) -> NgramTexts | None:
    """Return the texts of all sides as n-grams; None where there are too few different texts."""
    sides = (real.noisy, synthetic.noisy, real.clean, synthetic.clean)
    everything = [text for side in sides for text in side]
    row_of = {text: row for row, text in enumerate(dict.fromkeys(everything))}
    if len(row_of) < TEXTS_MIN:
        return None
    clean = [*real.clean, *synthetic.clean]
    shuffled = sorted(dict.fromkeys(clean), key=lambda text: mix(name_number(text)))
    number_of = {text: number for number, text in enumerate(shuffled)}  # decides the fold
    weights, names = ngram_weights(list(row_of))
    rows = np.array([row_of[text] for text in everything], np.int64)
    clean_numbers = np.array([number_of[text] for text in clean * 2], np.int64)
    stops = np.cumsum([len(side) for side in sides])
    numbers = np.split(np.arange(stops[-1]), stops[:-1])
    return NgramTexts(weights, names, rows, clean_numbers, *numbers)


def ngram_weights(texts: Sequence[str]) -> tuple["csr_matrix", list[str]]:
    """Return the weights of n-grams, (1 + log tf) * idf, and the n-grams.

    The weights of a text have length 1. An n-gram in fewer than `ROWS_MIN` texts is left out.
    Raises ValueError if none is left.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    # analyzer="char" would read a run of white space as one space.
    vectorizer = TfidfVectorizer(
        analyzer=_ngrams, min_df=ROWS_MIN, sublinear_tf=True, smooth_idf=False
    )
    weights = vectorizer.fit_transform(texts)
    return weights, vectorizer.get_feature_names_out().tolist()


def _ngrams(text: str) -> list[str]:
    """Return all n-grams of a text, with an edge character before and behind it."""
    framed = f"{_EDGE}{text[:CHARACTERS_MAX]}{_EDGE}"
    shifted = [framed[shift:] for shift in range(max(SIZES))]
    return [gram for size in SIZES for gram in map("".join, zip(*shifted[:size], strict=False))]


def changed(pairs: Pairs) -> Bool:
    """Return for each pair whether its two sides differ."""
    return np.array([a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True)], bool)


# The classifier.


def auc(texts: NgramTexts, real: I64, other: I64) -> Auc | None:
    """Return the AUC of a classifier that tells `real` texts from `other` ones, cross-validated.

    Both are text numbers. None with fewer than `TEXTS_MIN` clean texts on either side.
    """
    numbers = np.concatenate([real, other])
    is_other = np.arange(len(numbers)) >= len(real)
    groups = np.unique(texts.clean_numbers[numbers], return_inverse=True)[1]
    if any(len(np.unique(groups[is_other == side])) < TEXTS_MIN for side in (False, True)):
        return None
    rng = np.random.default_rng(0)  # fixed: the interval is part of the figure
    times = resampled(rng, int(groups.max()) + 1)[:, groups]
    of_folds = []
    for fold in range(FOLDS):
        held_out = groups % FOLDS == fold
        coefficients, intercept = fit(texts, numbers[~held_out], is_other[~held_out])
        scores = texts.of(numbers[held_out]) @ coefficients + intercept
        of_folds.append(areas(scores, is_other[held_out], times[:, held_out]))
    means = np.mean(of_folds, axis=0)
    low, high = np.percentile(means[1:], INTERVAL)
    return Auc(float(means[0]), float(low), float(high), len(real), len(other))


def resampled(rng: np.random.Generator, size: int) -> F64:
    """Return bootstrap weights, shape (1 + RESAMPLES, size): a line of ones, then the resamples."""
    drawn = rng.multinomial(size, np.full(size, 1 / size), RESAMPLES)
    return np.concatenate([np.ones((1, size)), drawn])


def fit(texts: NgramTexts, numbers: I64, is_other: Bool) -> tuple[F64, float]:
    """Return the coefficient of every n-gram, high where it speaks for `other`; the intercept."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_INVERSE_PENALTY, **_SOLVER)
    model.fit(texts.of(numbers), is_other)
    return model.coef_[0], float(model.intercept_[0])


def areas(scores: F64, is_other: Bool, times: F64) -> F64:
    """Return an AUC for every line of `times`, which are weights of the scores.

    Equal scores count half; without one of the sides the AUC is 0.5.
    """
    order = np.argsort(scores, kind="stable")
    heads = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    counts = times[:, order]
    other = np.add.reduceat(counts * is_other[order], heads, axis=1)
    real = np.add.reduceat(counts * ~is_other[order], heads, axis=1)
    below = np.cumsum(real, axis=1) - real / 2
    pairs = real.sum(axis=1) * other.sum(axis=1)
    won = (other * below).sum(axis=1)
    shares: F64 = np.divide(won, pairs, out=np.full(len(pairs), 0.5), where=pairs > 0)
    return shares


# The n-grams that give noise away.


def _contrasts(texts: NgramTexts, real: Pairs, synthetic: Pairs) -> Iterator[NgramContrast]:
    """Yield the n-grams with the most weight in a classifier of all texts, synthetic ones first.

    The weight of an n-gram is its coefficient times the difference of its means on both sides. An
    n-gram that overlaps one with more weight is left out, and so is the longer of two equals.
    """
    numbers = np.concatenate([texts.real, texts.synthetic])
    is_other = np.arange(len(numbers)) >= len(texts.real)
    coefficients, _ = fit(texts, numbers, is_other)
    ours, theirs = texts.of(texts.real), texts.of(texts.synthetic)
    gains = coefficients * (_means(theirs) - _means(ours))
    our_rows, their_rows = _rows_with(ours), _rows_with(theirs)
    gains[our_rows + their_rows < _SHOWN_ROWS_MIN] = 0
    our_shares, their_shares = our_rows / ours.shape[0], their_rows / theirs.shape[0]
    sizes = [len(name) for name in texts.names]
    sides = (
        ("synthetic", synthetic, their_shares > our_shares),
        ("real", real, our_shares > their_shares),
    )
    for side, pairs, is_more in sides:
        best = np.lexsort((sizes, -gains * is_more))[:_CANDIDATES]
        best = best[(gains[best] > 0) & is_more[best]]
        for at in _without_overlaps(texts.names, best.tolist())[:SHOWN]:
            ngram = texts.names[at]
            shares = float(our_shares[at]), float(their_shares[at])
            yield NgramContrast(ngram, side, *shares, _example(ngram, pairs))


def _means(weights: "csr_matrix") -> F64:
    """Return the mean weight of every n-gram."""
    return np.asarray(weights.mean(axis=0)).ravel()


def _rows_with(weights: "csr_matrix") -> I64:
    """Return for every n-gram the number of rows that have it."""
    return np.bincount(weights.indices, minlength=weights.shape[1])


def _without_overlaps(names: Sequence[str], numbers: Sequence[int]) -> list[int]:
    """Return the numbers of n-grams that neither contain an earlier one nor lie in it."""
    kept: list[int] = []
    for at in numbers:
        if not any(names[at] in names[other] or names[other] in names[at] for other in kept):
            kept.append(at)
    return kept


def _example(ngram: str, pairs: Pairs) -> NgramExample | None:
    """Return the first noisy text that has an n-gram more often than its clean version.

    The place is the first occurrence that touches an edit, else the first of all.
    """
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        framed = f"{_EDGE}{noisy}{_EDGE}"
        if noisy != clean and framed.count(ngram) > f"{_EDGE}{clean}{_EDGE}".count(ngram):
            places = [at - 1 for at in range(len(framed)) if framed.startswith(ngram, at)]
            at = next(filter(_touches(clean, noisy, len(ngram)), places), places[0])
            return NgramExample(noisy, max(0, at), min(at + len(ngram), len(noisy)))
    return None


def _touches(clean: str, noisy: str, size: int) -> Callable[[int], bool]:
    """Return a function that tells whether `size` characters at a place touch an edit."""
    found = edits(clean, noisy)
    return lambda at: any(edit.noisy_start <= at + size and at <= edit.noisy_stop for edit in found)
