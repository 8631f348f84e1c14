"""Held-out pairs that a distilled student is validated on: pairs of DATA, and of --validation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.data.columns import in_brackets
from noisegen.data.pairs import PAIRS_ARE, Pairs, damage, read_pairs
from noisegen.encoders.encoder import Ragged, Tokenizer, Vectors
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.stored import read_json, write_json
from noisegen.evaluation.similarity import cosine_distance
from noisegen.runs.manifest import counted
from noisegen.training.computation import Workers
from noisegen.training.pair_method import xsim_error
from noisegen.training.stores import DAMAGED

SAMPLED = 10_000  # maximum pairs of --validation that are used, spread evenly over all pairs


@dataclass
class HeldOut:
    """Held-out pairs of texts, the teacher's vectors of their clean sides, and their token ids.

    The number `owners[i]` identifies the clean text of pair i: equal clean texts have equal
    numbers. `tokenize` sets the token ids, `noisy_ids` and `clean_ids`.
    """

    noisy: Sequence[str]
    clean: Sequence[str]
    teacher: Vectors
    owners: npt.NDArray[np.integer]
    noisy_ids: Ragged = field(init=False)
    clean_ids: Ragged = field(init=False)

    def tokenize(self, tokenizer: Tokenizer) -> None:
        """Compute the token ids of both sides of the pairs."""
        self.noisy_ids = tokenizer.tokenize(self.noisy)
        self.clean_ids = tokenizer.tokenize(self.clean)

    @property
    def reads_alike(self) -> bool:
        """Whether noisy and clean text have the same token ids in every pair."""
        return np.array_equal(self.noisy_ids.values, self.clean_ids.values)

    def figures(self, student: SentenceEncoder) -> dict[str, float]:
        """Return a student's validation figures on these pairs (see `Distillation.validate`)."""
        noisy, clean = student.encode_ids(self.noisy_ids), student.encode_ids(self.clean_ids)
        loss_clean = float(np.square(self.teacher - clean).sum(1).mean())
        loss_noisy = float(np.square(self.teacher - noisy).sum(1).mean())
        return {
            "loss": loss_clean + loss_noisy,
            "loss_clean": loss_clean,
            "loss_noisy": loss_noisy,
            "drift": cosine_distance(self.teacher, clean),
            "anchored": cosine_distance(self.teacher, noisy),
            "distance": cosine_distance(clean, noisy),
            "xsim_error": xsim_error(noisy, clean, self.owners),
        }


@dataclass(frozen=True)
class ValidationPairs:
    """Content of a run's validation.json: the pairs of --validation that the run uses."""

    noisy: list[str]
    clean: list[str]
    read: int  # number of pairs read from the sources, used or not
    dropped: dict[str, int]  # number of rows of the sources that give no pair, by reason

    def __post_init__(self) -> None:
        if not 0 < len(self.noisy) == len(self.clean):
            raise ValueError(f"{len(self.noisy):,} noisy and {len(self.clean):,} clean sides")

    @property
    def pairs(self) -> Pairs:
        """The noisy and the clean texts as `Pairs`."""
        return Pairs(self.noisy, self.clean)

    @property
    def summary(self) -> str:
        """Return in words how many pairs are used, and how many rows were dropped."""
        used = len(self.noisy)
        of = f"{used:,} of " if used < self.read else ""
        pairs = counted(self.read, "other pair")
        return f"{of}{pairs} to validate on{in_brackets(self.dropped)}"


def read_validation(
    sources: Sequence[str], path: Path, workers: Workers, *, resume: bool
) -> ValidationPairs:
    """Return the pairs of --validation that a run uses.

    The first process reads the sources and writes the pairs to the JSON file `path`, unless a
    resumed run has this file already; then all processes read it. Raises SourceError for sources or
    a file that cannot be read.
    """
    if workers.leads and not (resume and path.exists()):
        pairs = read_pairs(sources, advice=(PAIRS_ARE, PAIRS_ARE))
        if pairs.damaged:
            raise damage(pairs.damaged)
        used = pairs.sample(SAMPLED)
        copy = ValidationPairs(used.noisy, used.clean, len(pairs), dict(pairs.dropped))
        write_json(path, asdict(copy))
    workers.wait()
    copied: ValidationPairs = read_json(path, ValidationPairs, DAMAGED)
    return copied
