"""A two-sample test: how well a classifier tells real noisy text from synthetic.

A logistic regression on character n-grams is trained on four fifths of the clean texts and scores
the versions of the others; the area under the ROC curve (AUC) is the chance that it scores a
synthetic text above a real one. 0.5: it cannot tell them; 1: always (Lopez-Paz and Oquab, 2017,
"Revisiting classifier two-sample tests").
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from noisegen.draws import mix, name_number
from noisegen.errors import MissingExtra
from noisegen.realism.ngrams import I64, Ngrams, ngrams
from noisegen.realism.pairs import Pairs
from noisegen.realism.telling import Telling, telling

FOLDS = 5
TEXTS_MIN = 20  # different clean texts; with fewer there is nothing to learn from
RESAMPLES = 200
INTERVAL = (2.5, 97.5)  # per cent
_INVERSE_PENALTY = 10.0  # C; from 1 to 100 the AUC of real sets changes by less than 0.02
# Both versions of a text are nearly the same, so gradients are small from the start: a solver that
# stops at small gradients, as L-BFGS does, stops at once. Dual coordinate descent does not; the
# order of its steps is drawn from a fixed state.
_SOLVER: dict[str, Any] = {
    "solver": "liblinear", "dual": True, "tol": 1e-2, "max_iter": 1_000, "random_state": 0,
}  # fmt: skip

Bool = npt.NDArray[np.bool_]
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
class TwoSample:
    """How well texts are told apart; None where there are too few of them.

    `all_rows` and `changed_rows` tell real noisy from synthetic noisy text, the latter where rows
    that equal their clean version are left out. For reference, `real_against_clean` tells real
    noisy text from its own clean version, and `clean_sides` the two clean sides (None if they are
    the same): what they differ by is topic and style, not noise. `telling` gives noise away.
    """

    all_rows: Auc | None
    changed_rows: Auc | None
    real_against_clean: Auc | None
    clean_sides: Auc | None
    telling: tuple[Telling, ...]


def two_sample(
    real: Pairs, synthetic: Pairs, progress: Callable[[str], None] = lambda _: None
) -> TwoSample:
    """Test two sets of pairs; `progress` is told what comes next.

    All versions of a clean text are in the same fold. Equal input gives equal figures. Raises
    MissingExtra without scikit-learn.
    """
    _check_installed()
    progress("counting character n-grams")
    sides = (real.noisy, synthetic.noisy, real.clean, synthetic.clean)
    given = [text for side in sides for text in side]
    places = {text: place for place, text in enumerate(dict.fromkeys(given))}
    rows = np.array([places[text] for text in given], np.int64)
    grams = ngrams(list(places))
    stops = np.cumsum([len(side) for side in sides])
    noisy, made, clean, other = np.split(np.arange(stops[-1]), stops[:-1])
    texts = Texts(grams, rows, _numbers([*real.clean, *synthetic.clean] * 2))
    progress("telling real from synthetic text")
    all_rows = auc(texts, noisy, made)
    progress("telling changed rows apart")
    changed_rows = auc(texts, noisy[_changed(real)], made[_changed(synthetic)])
    progress("telling real from clean text")
    against_clean = auc(texts, noisy, clean)
    is_same = sorted(real.clean) == sorted(synthetic.clean)
    clean_sides = None if is_same else auc(texts, clean, other)
    found: Iterable[Telling] = ()
    if all_rows:
        weights = _fitted(texts, np.concatenate([noisy, made]), _marked(noisy, made))[0]
        found = telling(grams, weights, (rows[noisy], rows[made]), (real, synthetic))
    return TwoSample(all_rows, changed_rows, against_clean, clean_sides, tuple(found))


def _check_installed() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("scikit-learn", "realism") from error


def _changed(pairs: Pairs) -> Bool:
    return np.array([a != b for a, b in zip(pairs.noisy, pairs.clean, strict=True)], bool)


def _numbers(texts: Sequence[str]) -> I64:
    """Return a number for every text, from 0 in an order that no one chose."""
    keys = {text: mix(name_number(text)) for text in dict.fromkeys(texts)}
    places = {text: place for place, text in enumerate(sorted(keys, key=lambda text: keys[text]))}
    return np.array([places[text] for text in texts], np.int64)


class Texts(NamedTuple):
    """The n-grams of different texts, and for each text of all sides its row and clean text."""

    grams: Ngrams
    rows: I64
    clean_numbers: I64


def auc(texts: Texts, ours: I64, theirs: I64) -> Auc | None:
    """Return how well a classifier tells some rows from others; None where they are too few."""
    rows, is_theirs = np.concatenate([ours, theirs]), _marked(ours, theirs)
    groups = np.unique(texts.clean_numbers[rows], return_inverse=True)[1]
    if any(len(np.unique(groups[is_theirs == side])) < TEXTS_MIN for side in (False, True)):
        return None
    size = int(groups.max()) + 1
    draws = np.random.default_rng(0)  # fixed: the interval is part of the figure
    resampled = draws.multinomial(size, np.full(size, 1 / size), RESAMPLES).astype(float)
    times = np.concatenate([np.ones((1, size)), resampled])
    found = [
        _areas(_scores(texts, rows, is_theirs, held), is_theirs[held], times[:, groups[held]])
        for held in (groups % FOLDS == fold for fold in range(FOLDS))
    ]
    means = np.mean(found, axis=0)
    low, high = np.percentile(means[1:], INTERVAL)
    return Auc(float(means[0]), float(low), float(high), len(ours), len(theirs))


def _marked(ours: I64, theirs: I64) -> Bool:
    return np.repeat([False, True], [len(ours), len(theirs)])


def _scores(texts: Texts, rows: I64, is_theirs: Bool, held: Bool) -> F64:
    """Return the scores of rows that are held back from a classifier of the others."""
    weights, start = _fitted(texts, rows[~held], is_theirs[~held])
    scores: F64 = texts.grams.weights[texts.rows[rows[held]]] @ weights + start
    return scores


def _fitted(texts: Texts, rows: I64, is_theirs: Bool) -> tuple[F64, float]:
    """Return the weight of every n-gram, high where it speaks for theirs, and the intercept."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_INVERSE_PENALTY, **_SOLVER)
    model.fit(texts.grams.weights[texts.rows[rows]], is_theirs)
    return model.coef_[0], float(model.intercept_[0])


def _areas(scores: F64, is_theirs: Bool, times: F64) -> F64:
    """Return the AUC of scores, each counted so many times: once for every line of `times`.

    Equal scores count half; without one of the sides it is 0.5.
    """
    order = np.argsort(scores, kind="stable")
    heads = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    counts = times[:, order]
    theirs = np.add.reduceat(counts * is_theirs[order], heads, axis=1)
    ours = np.add.reduceat(counts * ~is_theirs[order], heads, axis=1)
    below = np.cumsum(ours, axis=1) - ours / 2
    pairs = ours.sum(axis=1) * theirs.sum(axis=1)
    won = (theirs * below).sum(axis=1)
    areas: F64 = np.divide(won, pairs, out=np.full(len(pairs), 0.5), where=pairs > 0)
    return areas
