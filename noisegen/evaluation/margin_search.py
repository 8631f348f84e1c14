"""xSIM: how many sentences find another than their own by margin-based cosine search.

Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings"
(ACL 2019), as LASER computes it; with hard negatives as in Chen et al., "xSIM++" (ACL 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from noisegen.errors import UsageError
from noisegen.evaluation.neighbours import Neighbours, Precision, neighbours
from noisegen.evaluation.unit_vectors import F64, I64, Bool, Vectors

Margin = Literal["ratio", "distance", "absolute"]

MARGINS = ("ratio", "distance", "absolute")
MISALIGNED = "misaligned"


@dataclass(frozen=True)
class XSim:
    """The result of a search: one entry a sentence of x.

    `predictions` are rows of y; those from len(y) on are hard negatives. `lost_to` names the kind
    of hard negative that won, `misaligned` for any other wrong line, '' for a right one. `kinds`
    counts them, those that never won included. Both are empty without hard negatives.
    """

    predictions: I64
    correct: Bool
    lost_to: tuple[str, ...] = ()
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        """How many sentences found a wrong line."""
        return int((~self.correct).sum())

    @property
    def error_rate(self) -> float:
        """The same in per cent of all."""
        return 100 * self.errors / len(self.correct)

    @property
    def kind_rates(self) -> dict[str, float]:
        """`kinds` in per cent of all sentences."""
        return {kind: 100 * count / len(self.correct) for kind, count in self.kinds.items()}


def xsim(
    x: Vectors, y: Vectors, k: int = 4, margin: Margin = "ratio",
    texts: Sequence[str] | None = None, *, precision: Precision = "auto",
) -> XSim:  # fmt: skip
    """Search every row of x in y, where row i of x belongs to row i of y; y may have more rows.

    Candidates of x_i are its k nearest y_j by cosine. Their score is cos(x_i, y_j) against the
    mean of two means: of x_i's cosines to its k nearest y, and of y_j's to its k nearest x. `ratio`
    divides by it (a score of 0 if it is 0), `distance` subtracts it, `absolute` is plain nearest
    neighbour. The best score wins, of equal ones the lowest row; equal means to twelve digits.
    `texts`, those of y, decide what is right: a line that says the same is no error, as in LASER.

    Zero vectors have cosine 0 with all. Raises UsageError for NaN, for different widths, if y has
    fewer rows than x, and for an unknown margin.
    """
    _check(x, y, k, margin, texts)
    predictions = _predictions(x, y, k, margin, precision)
    return XSim(predictions, _same(predictions, np.arange(len(x)), texts))


def xsim_hard(
    x: Vectors, y: Vectors, negatives: Vectors, *, sources: npt.NDArray[np.integer],
    kinds: Sequence[str], k: int = 4, margin: Margin = "ratio",
    texts: Sequence[str] | None = None, precision: Precision = "auto",
) -> XSim:  # fmt: skip
    """Search every row of x in y and hard negatives together; finding one of these is an error.

    Negative j is of the kind `kinds[j]` and was made of row `sources[j]` of y. Neighbours are
    those among all lines. An error counts as that kind if the line was made of the right one (or of
    one with the same text), else as misaligned. For the rest see `xsim`.
    """
    _check(x, y, k, margin, texts)
    made_of = np.asarray(sources, np.int64)
    if not len(negatives) == len(made_of) == len(kinds):
        raise UsageError(f"{len(negatives):,} hard negatives, but {len(made_of):,} sources and "
                         f"{len(kinds):,} kinds")  # fmt: skip
    if len(made_of) and not 0 <= made_of.min() <= made_of.max() < len(y):
        raise UsageError(f"a hard negative is made of a line that is not among the {len(y):,}")
    pool = np.concatenate([y, negatives]) if len(negatives) else y
    predictions = _predictions(x, pool, k, margin, precision)
    return _with_kinds(predictions, len(y), made_of, kinds, texts)


def _with_kinds(
    predictions: I64, lines: int, sources: I64, kinds: Sequence[str], texts: Sequence[str] | None
) -> XSim:
    """Tell what each wrong sentence was lost to."""
    right, negative = np.arange(len(predictions)), predictions >= lines
    made_of = np.concatenate([np.arange(lines), sources])[predictions]
    same = _same(made_of, right, texts)
    names = [MISALIGNED] * lines + list(kinds)
    lost_to = tuple(
        "" if one and not hard else names[place] if one else MISALIGNED
        for one, hard, place in zip(same, negative, predictions, strict=True)
    )
    counts = {kind: lost_to.count(kind) for kind in [*sorted(set(kinds)), MISALIGNED]}
    return XSim(predictions, same & ~negative, lost_to, counts)


def _check(x: Vectors, y: Vectors, k: int, margin: str, texts: Sequence[str] | None) -> None:
    if margin not in MARGINS:
        raise UsageError(f"no margin {margin!r}; take {', '.join(MARGINS)}")
    if k < 1:
        raise UsageError(f"k must be 1 or more, not {k}")
    if len(y) < len(x):
        raise UsageError(f"{len(x):,} vectors to search, but only {len(y):,} lines to find")
    if texts is not None and len(texts) != len(y):
        raise UsageError(f"{len(texts):,} texts for {len(y):,} lines")


def _same(one: I64, other: I64, texts: Sequence[str] | None) -> Bool:
    """Tell which lines are equal: their text, or their row where there are no texts."""
    if texts is None:
        return np.equal(one, other)
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return np.array([texts[left] == texts[right] for left, right in pairs], bool)


def _predictions(x: Vectors, y: Vectors, k: int, margin: Margin, precision: Precision) -> I64:
    found = neighbours(x, y, 1 if margin == "absolute" else k, precision)
    if margin == "absolute":
        return found.rows[:, 0]
    scores = _scores(found, _means_of_candidates(x, y, found, k, precision), margin)
    best = scores.max(axis=1, keepdims=True)
    rows: I64 = np.where(scores == best, found.rows, len(y)).min(axis=1)
    return rows


def _means_of_candidates(
    x: Vectors, y: Vectors, found: Neighbours, k: int, precision: Precision
) -> F64:
    """Return, for each candidate, the mean cosine to its k nearest x; only they are searched."""
    candidates, places = np.unique(found.rows, return_inverse=True)
    means: F64 = neighbours(y[candidates], x, k, precision).cosines.mean(axis=1)
    return means[places].reshape(found.rows.shape)


def _scores(found: Neighbours, means: F64, margin: Margin) -> F64:
    middles = (found.cosines.mean(axis=1, keepdims=True) + means) / 2
    if margin == "ratio":
        scores = np.divide(found.cosines, middles, out=0 * middles, where=middles != 0)
    else:
        scores = found.cosines - middles
    rounded: F64 = scores.round(12)
    return rounded
