"""Measure how well a classifier tells real noisy text from synthetic text (a two-sample test).

A logistic regression on character n-grams is trained on the real and synthetic versions of four
fifths of the clean texts, and scores the versions of the other fifth. The area under the ROC curve
(AUC) is the chance that a synthetic text has a higher score than a real text: 0.5 is guessing, 1
means that all texts are told apart (Lopez-Paz and Oquab, 2017, "Revisiting classifier two-sample
tests").
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noisegen.data.pairs import Pairs
from noisegen.errors import MissingExtra
from noisegen.noising.rng import name_number, splitmix
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.alignment import edits
from noisegen.text.buffers import I64, Bool

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDS = 5  # parts of the cross-validation
TEXTS_MIN = 20  # minimum different clean texts; fewer are too few to train a classifier
RESAMPLES = 200  # bootstrap resamples for an interval
INTERVAL = (2.5, 97.5)  # percentiles of the resamples that bound an interval
SIZES = (1, 2, 3, 4)  # characters of an n-gram
ROWS_MIN = 3  # the classifier ignores an n-gram that fewer different texts have
CHARACTERS_MAX = 500  # characters of a text that are read
SHOWN = 12  # maximum n-grams in the report for each set (real, synthetic)
_SHOWN_ROWS_MIN = 5  # the report omits an n-gram that fewer noisy texts have
_CANDIDATES = 400  # n-grams per set, from which the report chooses
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_EDGE = "\n"  # added at both ends of a text, so that n-grams differ at its beginning and end
# C of LogisticRegression; values from 1 to 100 change the AUC of real sets by less than 0.02
_INVERSE_PENALTY = 10.0
# Real and synthetic versions of a text are nearly the same, so gradients are small from the start.
# A solver that stops at small gradients, such as L-BFGS, would stop at once; dual coordinate
# descent goes on. The order of its steps is drawn from a fixed state.
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
    """An AUC with the bounds of its 95 % interval, from a bootstrap over clean texts.

    `real` and `other` are the numbers of texts in the two groups that the classifier tells apart.
    """

    value: float
    low: float
    high: float
    real: int
    other: int


@dataclass(frozen=True)
class NgramExample:
    """A noisy text that contains an n-gram, at the offsets from `start` to `stop`."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class NgramContrast:
    """An n-gram that is more frequent in one of the sets; `side` is 'real' or 'synthetic'.

    `real_share` and `synthetic_share` are the shares of rows that have the n-gram. A line break in
    the n-gram stands for the beginning or the end of a text.
    """

    ngram: str
    side: str
    real_share: float
    synthetic_share: float
    example: NgramExample | None


@dataclass(frozen=True)
class TwoSample:
    """AUCs of classifiers that tell two groups of texts apart; None if there are too few texts.

    `all_rows` is for real and synthetic noisy texts, `changed_rows` only for texts that differ from
    their clean version. Two AUCs are for reference. `real_against_clean` is for real noisy texts
    and their clean versions. `clean_sides` is for the clean texts of both sets, which differ in
    topic and style but not in noise; it is None if both sets have the same clean texts. `contrasts`
    are the n-grams with the most weight in the classifier of `all_rows`.
    """

    all_rows: Auc | None
    changed_rows: Auc | None
    real_against_clean: Auc | None
    clean_sides: Auc | None
    contrasts: tuple[NgramContrast, ...]


@dataclass(frozen=True)
class NgramTexts:
    """The texts of both sets as weighted n-grams.

    `weights` has the tf-idf weights, shape (different texts, n-grams); `names` are the n-grams. All
    noisy and clean texts of both sets have indices. `real` and `synthetic` are the indices of noisy
    texts, `real_clean` and `synthetic_clean` of clean texts. `rows[i]` is the row of text i in
    `weights`. `clean_numbers[i]` identifies its clean version: equal clean texts have the same
    number.
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
        """Return the weights of the texts with these indices, shape (texts, n-grams)."""
        return self.weights[self.rows[numbers]]


def two_sample(real: Pairs, synthetic: Pairs, progress: Show = silent) -> TwoSample:
    """Measure how well classifiers tell real from synthetic pairs.

    All versions of a clean text are in the same fold. Equal input gives equal figures. `progress`
    is called with an event per step. Raises MissingExtra without scikit-learn.
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
    """Return the noisy and clean texts of both sets as weighted n-grams.

    None if there are fewer than `TEXTS_MIN` different texts.
    """
    sides = (real.noisy, synthetic.noisy, real.clean, synthetic.clean)
    everything = [text for side in sides for text in side]
    row_of = {text: row for row, text in enumerate(dict.fromkeys(everything))}
    if len(row_of) < TEXTS_MIN:
        return None
    clean = [*real.clean, *synthetic.clean]
    shuffled = sorted(dict.fromkeys(clean), key=lambda text: splitmix(name_number(text)))
    # The number of a clean text decides its fold, so clean texts are numbered in a random order
    number_of = {text: number for number, text in enumerate(shuffled)}
    weights, names = ngram_weights(list(row_of))
    rows = np.array([row_of[text] for text in everything], np.int64)
    clean_numbers = np.array([number_of[text] for text in clean * 2], np.int64)
    stops = np.cumsum([len(side) for side in sides])
    numbers = np.split(np.arange(stops[-1]), stops[:-1])
    return NgramTexts(weights, names, rows, clean_numbers, *numbers)


def ngram_weights(texts: Sequence[str]) -> tuple["csr_matrix", list[str]]:
    """Return the weights of n-grams in texts, shape (texts, n-grams), and the n-grams.

    A weight is (1 + log tf) * idf; the weights of a text are scaled to a vector of length 1. An
    n-gram in fewer than `ROWS_MIN` texts is left out. Raises ValueError if all are left out.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    # analyzer="char" would read a run of white space as one space.
    vectorizer = TfidfVectorizer(
        analyzer=_ngrams, min_df=ROWS_MIN, sublinear_tf=True, smooth_idf=False
    )
    weights = vectorizer.fit_transform(texts)
    return weights, vectorizer.get_feature_names_out().tolist()


def _ngrams(text: str) -> list[str]:
    """Return all n-grams of a text, with an edge character before and after the text."""
    framed = f"{_EDGE}{text[:CHARACTERS_MAX]}{_EDGE}"
    shifted = [framed[shift:] for shift in range(max(SIZES))]
    return [gram for size in SIZES for gram in map("".join, zip(*shifted[:size], strict=False))]


def topic_free(text: str, kept: Collection[str]) -> str:
    """Return a text with the shape of each word in its place: 'Harwick voted' -> 'Xxx xxx'.

    Words in `kept`, in lower case, and symbols stay. A shape has at most three letters.
    """

    def shape(word: re.Match[str]) -> str:
        if word[0].lower() in kept:
            return word[0]
        letters = word[0] if len(word[0]) < 4 else word[0][:2] + word[0][-1]
        return "".join("X" if c.isupper() else "0" if c.isdigit() else "x" for c in letters)

    return _WORD.sub(shape, text)


def changed(pairs: Pairs) -> Bool:
    """Return a boolean array that is True for each pair whose sides differ."""
    return np.array([a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True)], bool)


# Classifier and AUC.


def auc(texts: NgramTexts, real: I64, other: I64) -> Auc | None:
    """Return the cross-validated AUC of a classifier that tells `real` from `other` texts.

    `real` and `other` are indices of texts. Returns None if either has fewer than `TEXTS_MIN`
    different clean texts.
    """
    numbers = np.concatenate([real, other])
    is_other = np.arange(len(numbers)) >= len(real)
    groups = np.unique(texts.clean_numbers[numbers], return_inverse=True)[1]
    if any(len(np.unique(groups[is_other == side])) < TEXTS_MIN for side in (False, True)):
        return None
    rng = np.random.default_rng(0)  # a fixed seed, so that equal input gives equal intervals
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
    """Return how often each of `size` items is in each bootstrap resample.

    The result has shape (1 + RESAMPLES, size). Its first row is all ones: the original sample.
    """
    drawn = rng.multinomial(size, np.full(size, 1 / size), RESAMPLES)
    return np.concatenate([np.ones((1, size)), drawn])


def fit(texts: NgramTexts, numbers: I64, is_other: Bool) -> tuple[F64, float]:
    """Train a classifier on texts; return the coefficients of the n-grams, and the intercept.

    `numbers` are indices of texts. N-grams with a high coefficient are typical of texts whose
    `is_other` is True.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_INVERSE_PENALTY, **_SOLVER)
    model.fit(texts.of(numbers), is_other)
    return model.coef_[0], float(model.intercept_[0])


def areas(scores: F64, is_other: Bool, times: F64) -> F64:
    """Return the AUC of scores in each resample, shape (resamples,).

    `scores` and `is_other` have shape (texts,). `times` has shape (resamples, texts): how often
    each text is in each resample. A real and an other text with equal scores count 0.5. A resample
    in which one of the two groups has no text gets an AUC of 0.5.
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


# N-grams that are much more frequent in one of the sets.


def _contrasts(texts: NgramTexts, real: Pairs, synthetic: Pairs) -> Iterator[NgramContrast]:
    """Yield the n-grams that count most in a classifier of real and synthetic noisy texts.

    N-grams more frequent in synthetic texts come first, then n-grams more frequent in real texts.
    Both lists are sorted by gain, the highest first: the coefficient of the n-gram times the
    difference of its mean weights in the two sets. An n-gram is left out if it contains an n-gram
    before it in the list, or is part of one.
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
    """Return the mean weight of every n-gram over texts, shape (n-grams,)."""
    return np.asarray(weights.mean(axis=0)).ravel()


def _rows_with(weights: "csr_matrix") -> I64:
    """Return the number of texts that have each n-gram, shape (n-grams,)."""
    return np.bincount(weights.indices, minlength=weights.shape[1])


def _without_overlaps(names: Sequence[str], numbers: Sequence[int]) -> list[int]:
    """Drop n-grams that contain an n-gram kept before, or are part of one; return the others.

    N-grams are given (`numbers`) and returned as indices in the list `names`.
    """
    kept: list[int] = []
    for at in numbers:
        if not any(names[at] in names[other] or names[other] in names[at] for other in kept):
            kept.append(at)
    return kept


def _example(ngram: str, pairs: Pairs) -> NgramExample | None:
    """Return the first noisy text that has an n-gram more often than its clean version.

    The example marks the first occurrence that touches an edit; if none does, the first of all.
    """
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        framed = f"{_EDGE}{noisy}{_EDGE}"
        if noisy != clean and framed.count(ngram) > f"{_EDGE}{clean}{_EDGE}".count(ngram):
            places = [at - 1 for at in range(len(framed)) if framed.startswith(ngram, at)]
            at = next(filter(_touches(clean, noisy, len(ngram)), places), places[0])
            return NgramExample(noisy, max(0, at), min(at + len(ngram), len(noisy)))
    return None


def _touches(clean: str, noisy: str, size: int) -> Callable[[int], bool]:
    """Return a function that tells whether an edit touches the n-gram at a given offset of `noisy`.

    The n-gram has `size` characters. An edit also touches the characters before and after it.
    """
    found = edits(clean, noisy)
    return lambda at: any(edit.noisy_start <= at + size and at <= edit.noisy_stop for edit in found)
