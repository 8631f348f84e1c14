"""Which character n-grams give noise away, with examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from noisegen.realism.ngrams import I64, Ngrams
from noisegen.realism.pairs import Pairs

SHOWN = 12  # n-grams of each side
_ROWS_MIN = 5  # that an n-gram must be in
_CONTEXT = 6  # characters around an example
_CANDIDATES = 400


@dataclass(frozen=True)
class Telling:
    """An n-gram that speaks for a side, the share of its rows that have it, and examples.

    A line break stands for the beginning or the end of the text.
    """

    ngram: str
    side: str
    real_share: float
    synthetic_share: float
    examples: tuple[str, ...]


def telling(
    grams: Ngrams,
    weights: npt.NDArray[np.float64],
    rows: tuple[I64, I64],
    pairs: tuple[Pairs, Pairs],
) -> Iterator[Telling]:
    """Yield the n-grams that the classifier goes by most, those of synthetic text first.

    An n-gram counts by its weight times the difference of its mean on both sides; of those that
    overlap, the first is named. `rows` are those of real and synthetic text, as are `pairs`.
    """
    means = [np.asarray(grams.weights[side].mean(axis=0)).ravel() for side in rows]
    found = [np.bincount(grams.weights[side].indices, minlength=len(weights)) for side in rows]
    gains = weights * (means[1] - means[0])
    gains[sum(found) < _ROWS_MIN] = 0
    for side, name in ((1, "synthetic"), (0, "real")):
        better = found[side] / len(rows[side]) > found[1 - side] / len(rows[1 - side])
        best = np.argsort(-gains * better, kind="stable")[:_CANDIDATES]
        chosen = [int(at) for at in best if gains[at] > 0 and better[at]]
        for at in _apart(chosen, grams.names):
            real, synthetic = (float(found[i][at]) / len(rows[i]) for i in (0, 1))
            examples = _examples(grams.names[at], pairs[side])
            yield Telling(grams.names[at], name, real, synthetic, examples)


def _apart(candidates: Sequence[int], names: Sequence[str]) -> list[int]:
    """Return the first candidates of which none is a part of another."""
    kept: list[int] = []
    for at in candidates:
        if len(kept) == SHOWN:
            break
        if not any(names[at] in names[one] or names[one] in names[at] for one in kept):
            kept.append(at)
    return kept


def _examples(ngram: str, pairs: Pairs, most: int = 2) -> tuple[str, ...]:
    """Return the surroundings of an n-gram in noisy texts that have more of it than their clean."""
    found: dict[str, None] = {}
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        framed = f"\n{noisy}\n"
        if noisy != clean and framed.count(ngram) > f"\n{clean}\n".count(ngram):
            at = framed.index(ngram)
            around = framed[max(0, at - _CONTEXT) : at + len(ngram) + _CONTEXT]
            found[around.strip("\n")] = None
        if len(found) == most:
            break
    return tuple(found)
