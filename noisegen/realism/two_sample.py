"""Measure how well a classifier tells real noisy text from synthetic (a two-sample test).

A logistic regression on character n-grams is trained on four fifths of the clean texts and scores
the versions of the others; the area under the ROC curve (AUC) is the chance that it scores a
synthetic text above a real one. 0.5: it cannot tell them; 1: always (Lopez-Paz and Oquab, 2017,
"Revisiting classifier two-sample tests").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
CHARACTERS_MAX = 500  # of a text; what follows is not looked at
SHOWN = 12  # n-grams of each side that give it away
_SHOWN_ROWS_MIN = 5  # that such an n-gram must be in
_CANDIDATES = 400
_EDGE = "\n"  # frames a text, so that an n-gram can tell where it begins or ends
_INVERSE_PENALTY = 10.0  # C; from 1 to 100 the AUC of real sets changes by less than 0.02
# Both versions of a text are nearly the same, so gradients are small from the start: a solver that
# stops at small gradients, as L-BFGS does, stops at once. Dual coordinate descent does not; the
# order of its steps is drawn from a fixed state.
_SOLVER: dict[str, Any] = {
    "solver": "liblinear", "dual": True, "tol": 1e-2, "max_iter": 1_000, "random_state": 0,
}  # fmt: skip

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Auc:
    """An AUC with its 95 % interval (clean texts resampled), from so many texts of both kinds."""

    value: float
    low: float
    high: float
    real: int
    other: int


@dataclass(frozen=True)
class NgramExample:
    """A noisy text that has an n-gram which its clean version lacks, and where."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class NgramContrast:
    """An n-gram more frequent on one side, its share of the rows of both, and an example.

    A line break is the beginning or the end of the text.
    """

    ngram: str
    side: str
    real_share: float
    synthetic_share: float
    example: NgramExample | None


@dataclass(frozen=True)
class TwoSample:
    """How well texts are told apart; None where there are too few of them.

    `all_rows` and `changed_rows` tell real noisy from synthetic noisy text, the latter where rows
    that equal their clean version are left out. For reference, `real_against_clean` tells real
    noisy text from its own clean version, and `clean_sides` the two clean sides (None if they are
    the same): what they differ by is topic and style, not noise. `contrasts` has the
    n-grams that the classifier goes by most.
    """

    all_rows: Auc | None
    changed_rows: Auc | None
    real_against_clean: Auc | None
    clean_sides: Auc | None
    contrasts: tuple[NgramContrast, ...]


class NgramTexts(NamedTuple):
    """The texts of all sides as n-grams.

    `weights` has a row of tf-idf weights for each different text and a column for each of `names`;
    `rows` and `clean_numbers` say for each text of all sides its row and its clean text.
    """

    weights: "csr_matrix"
    names: list[str]
    rows: I64
    clean_numbers: I64

    def of(self, numbers: I64) -> "csr_matrix":
        """Return the weights of these texts, a row each."""
        return self.weights[self.rows[numbers]]


def two_sample(real: Pairs, synthetic: Pairs, progress: Show = silent) -> TwoSample:
    """Test two sets of pairs; `progress` gets an event per step.

    All versions of a clean text are in the same fold. Equal input gives equal figures. Raises
    MissingExtra without scikit-learn.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("scikit-learn", "realism") from error
    progress(Progress("counting character n-grams"))
    found = ngram_texts(real, synthetic)
    if found is None:
        return TwoSample(None, None, None, None, ())
    texts, (ours, theirs, our_clean, their_clean) = found
    progress(Progress("classifying real against synthetic text"))
    all_rows = auc(texts, ours, theirs)
    progress(Progress("classifying changed rows"))
    changed_rows = auc(texts, ours[changed(real)], theirs[changed(synthetic)])
    progress(Progress("classifying real against clean text"))
    against_clean = auc(texts, ours, our_clean)
    is_same = sorted(real.clean) == sorted(synthetic.clean)
    clean_sides = None if is_same else auc(texts, our_clean, their_clean)
    contrasts = _contrasts(texts, (ours, theirs), (real, synthetic)) if all_rows else ()
    return TwoSample(all_rows, changed_rows, against_clean, clean_sides, tuple(contrasts))


def ngram_texts(real: Pairs, synthetic: Pairs) -> tuple[NgramTexts, list[I64]] | None:
    """Return the texts of all sides, and the numbers of real and synthetic noisy and clean ones.

    None where there are too few different texts.
    """
    sides = (real.noisy, synthetic.noisy, real.clean, synthetic.clean)
    everything = [text for side in sides for text in side]
    row_of = {text: row for row, text in enumerate(dict.fromkeys(everything))}
    if len(row_of) < TEXTS_MIN:
        return None
    clean = [*real.clean, *synthetic.clean]
    shuffled = sorted(dict.fromkeys(clean), key=lambda text: mix(name_number(text)))
    number_of = {text: number for number, text in enumerate(shuffled)}  # tells the fold
    texts = NgramTexts(
        *ngram_weights(list(row_of)),
        rows=np.array([row_of[text] for text in everything], np.int64),
        clean_numbers=np.array([number_of[text] for text in clean * 2], np.int64),
    )
    stops = np.cumsum([len(side) for side in sides])
    return texts, np.split(np.arange(stops[-1]), stops[:-1])


def ngram_weights(texts: Sequence[str]) -> tuple["csr_matrix", list[str]]:
    """Return the weights of n-grams, (1 + log tf) idf in rows of length 1, and their names.

    An n-gram in fewer than `ROWS_MIN` texts is left out. Raises ValueError if that leaves none.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Not analyzer="char": it takes runs of white space for one space.
    vectorizer = TfidfVectorizer(
        analyzer=_ngrams, min_df=ROWS_MIN, sublinear_tf=True, smooth_idf=False
    )
    weights = vectorizer.fit_transform(texts)
    return weights, vectorizer.get_feature_names_out().tolist()


def _ngrams(text: str) -> list[str]:
    framed = f"{_EDGE}{text[:CHARACTERS_MAX]}{_EDGE}"
    shifted = [framed[shift:] for shift in range(max(SIZES))]
    return [gram for size in SIZES for gram in map("".join, zip(*shifted[:size], strict=False))]


def changed(pairs: Pairs) -> Bool:
    """Return which noisy texts differ from their clean versions."""
    return np.array([a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True)], bool)


# The classifier.


def auc(texts: NgramTexts, real: I64, other: I64) -> Auc | None:
    """Return how well a classifier tells some texts from others; None where they are too few."""
    numbers = np.concatenate([real, other])
    is_other = np.arange(len(numbers)) >= len(real)
    groups = np.unique(texts.clean_numbers[numbers], return_inverse=True)[1]
    if any(len(np.unique(groups[is_other == side])) < TEXTS_MIN for side in (False, True)):
        return None
    rng = np.random.default_rng(0)  # fixed: the interval is part of the figure
    times = resampled(rng, int(groups.max()) + 1)[:, groups]
    areas = []
    for fold in range(FOLDS):
        held_out = groups % FOLDS == fold
        coefficients, intercept = _fit(texts, numbers[~held_out], is_other[~held_out])
        scores = texts.of(numbers[held_out]) @ coefficients + intercept
        areas.append(_areas(scores, is_other[held_out], times[:, held_out]))
    means = np.mean(areas, axis=0)
    low, high = np.percentile(means[1:], INTERVAL)
    return Auc(float(means[0]), float(low), float(high), len(real), len(other))


def resampled(rng: np.random.Generator, size: int) -> F64:
    """Return bootstrap weights of rows: a line of ones, then a line for each resample."""
    drawn = rng.multinomial(size, np.full(size, 1 / size), RESAMPLES)
    return np.concatenate([np.ones((1, size)), drawn])


def _fit(texts: NgramTexts, numbers: I64, is_other: Bool) -> tuple[F64, float]:
    """Return the coefficient of every n-gram, high where it speaks for other, and the intercept."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_INVERSE_PENALTY, **_SOLVER)
    model.fit(texts.of(numbers), is_other)
    return model.coef_[0], float(model.intercept_[0])


def _areas(scores: F64, is_other: Bool, times: F64) -> F64:
    """Return the AUC of weighted scores, one for every line of weights in `times`.

    Equal scores count half; without one of the sides it is 0.5.
    """
    order = np.argsort(scores, kind="stable")
    heads = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    counts = times[:, order]
    other = np.add.reduceat(counts * is_other[order], heads, axis=1)
    real = np.add.reduceat(counts * ~is_other[order], heads, axis=1)
    below = np.cumsum(real, axis=1) - real / 2
    pairs = real.sum(axis=1) * other.sum(axis=1)
    won = (other * below).sum(axis=1)
    areas: F64 = np.divide(won, pairs, out=np.full(len(pairs), 0.5), where=pairs > 0)
    return areas


# What gives noise away.


def _contrasts(
    texts: NgramTexts, numbers: tuple[I64, I64], pairs: tuple[Pairs, Pairs]
) -> Iterator[NgramContrast]:
    """Yield the n-grams that a classifier of all texts goes by most, those of synthetic text first.

    An n-gram counts by its coefficient times the difference of its mean on both sides; of those
    that overlap, the first is named, of equals the shortest. `numbers` are those of real and
    synthetic text, as are `pairs`.
    """
    is_other = np.repeat([False, True], list(map(len, numbers)))
    coefficients, _ = _fit(texts, np.concatenate(numbers), is_other)
    sides = [texts.of(side) for side in numbers]
    means = [np.asarray(side.mean(axis=0)).ravel() for side in sides]
    row_counts = [np.bincount(side.indices, minlength=len(coefficients)) for side in sides]
    gains = coefficients * (means[1] - means[0])
    gains[sum(row_counts) < _SHOWN_ROWS_MIN] = 0
    sizes = [len(name) for name in texts.names]
    shares = [rows / side.shape[0] for rows, side in zip(row_counts, sides, strict=True)]
    for side, name in ((1, "synthetic"), (0, "real")):
        is_more = shares[side] > shares[1 - side]
        best = np.lexsort((sizes, -gains * is_more))[:_CANDIDATES]
        shown: list[str] = []
        for at in best[(gains[best] > 0) & is_more[best]].tolist():
            ngram = texts.names[at]
            if any(ngram in other or other in ngram for other in shown):
                continue
            shown.append(ngram)
            example = _example(ngram, pairs[side])
            yield NgramContrast(ngram, name, float(shares[0][at]), float(shares[1][at]), example)
            if len(shown) == SHOWN:
                break


def _example(ngram: str, pairs: Pairs) -> NgramExample | None:
    """Return the first noisy text that has more of an n-gram than its clean version, and where.

    The place is the first that was edited.
    """
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        framed = f"{_EDGE}{noisy}{_EDGE}"
        if noisy != clean and framed.count(ngram) > f"{_EDGE}{clean}{_EDGE}".count(ngram):
            size = len(ngram)
            places = [at - 1 for at in range(len(framed)) if framed.startswith(ngram, at)]
            edited = [edit[2:] for edit in edits(clean, noisy)]
            new = (at for at in places if any(a <= at + size and at <= b for a, b in edited))
            at = next(new, places[0])
            return NgramExample(noisy, max(0, at), min(at + size, len(noisy)))
    return None
