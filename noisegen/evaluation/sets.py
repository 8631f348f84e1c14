"""The sets of an evaluation: what is encoded, and what is known about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from noisegen.evaluation.negatives import HardNegatives

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PairSet:
    """Clean texts and, for each generation seed, their noisy forms; natural pairs have no seeds.

    `group` names the rows: sets with the same clean texts are resampled together.
    """

    name: str
    kind: str  # pairs or noise
    clean: Sequence[str]
    noisy: tuple[Sequence[str], ...]
    group: str
    seeds: tuple[int, ...] = ()
    negatives: HardNegatives | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.clean)

    @cached_property
    def changed(self) -> tuple[Bool, ...]:
        """Which rows differ from their clean form, for each seed."""
        return tuple(
            np.array([one != other for one, other in zip(side, self.clean, strict=True)], np.bool_)
            for side in self.noisy
        )

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded."""
        return chain(self.clean, *self.noisy, self.negatives.texts if self.negatives else ())


@dataclass(frozen=True)
class DoseSet:
    """Clean texts with the noise of a recipe at several strengths, factors on its rates."""

    name: str
    clean: Sequence[str]
    strengths: tuple[float, ...]
    noisy: tuple[Sequence[str], ...]

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded."""
        return chain(self.clean, *self.noisy)


@dataclass(frozen=True)
class StsSet:
    """Pairs of sentences with a human score, and both sides with noise."""

    name: str
    first: Sequence[str]
    second: Sequence[str]
    first_noisy: Sequence[str]
    second_noisy: Sequence[str]
    scores: npt.NDArray[np.float64]
    note: str = ""
    kind: str = field(default="sts", init=False)

    def __len__(self) -> int:
        return len(self.first)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded."""
        return chain(self.first, self.second, self.first_noisy, self.second_noisy)


@dataclass(frozen=True)
class RetrievalSet:
    """Sentences and their translations, row by row."""

    name: str
    source: Sequence[str]
    target: Sequence[str]
    note: str = ""
    kind: str = field(default="retrieval", init=False)

    def __len__(self) -> int:
        return len(self.source)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded."""
        return chain(self.source, self.target)


@dataclass(frozen=True)
class LabelledSet:
    """Texts with labels, and the same with noise; `tested` are held back from training."""

    name: str
    clean: Sequence[str]
    noisy: Sequence[str]
    labels: Sequence[str]
    tested: Bool
    note: str = ""
    kind: str = field(default="classification", init=False)

    def __len__(self) -> int:
        return len(self.clean)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded."""
        return chain(self.clean, self.noisy)


@dataclass(frozen=True)
class LabelledPairSet:
    """Pairs of sentences labelled 1 (they belong together) or 0; the first side also with noise."""

    name: str
    first: Sequence[str]
    second: Sequence[str]
    first_noisy: Sequence[str]
    labels: Sequence[int]
    note: str = ""
    kind: str = field(default="pair_classification", init=False)

    def __len__(self) -> int:
        return len(self.first)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded."""
        return chain(self.first, self.second, self.first_noisy)


EvaluationSet = PairSet | StsSet | RetrievalSet | LabelledSet | LabelledPairSet
