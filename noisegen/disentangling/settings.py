"""What training heads on frozen vectors is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from noisegen.training.run_settings import AT_LEAST_ONE, Check, RunSettings, one_of

METHOD = "heads"


@dataclass(frozen=True)
class HeadTraining(RunSettings):
    """All that decides a run; `config.yaml` of the run says the same.

    The validation loss is taken every `validate_every` updates, at least once an epoch; training
    ends early when it was not the lowest so far `patience` times in a row.
    """

    checks: ClassVar[Mapping[str, Check]] = {
        **RunSettings.checks,
        "patience": AT_LEAST_ONE,
        "batch_pairs": (lambda v: v >= 2, "at least 2: pairs are compared with each other"),
        "keep": (lambda v: v == RunSettings.keep, "used here: of heads the best are kept"),
        "method": (lambda v: v == METHOD, METHOD),
        "labels": one_of("language", "side", "transform"),
        "languages": (
            lambda v: len(v) in (0, 2) and len(set(v)) == len(v) and all(v),
            "two names that differ, of the source's and the target's language",
        ),
    }

    preset: str = "oracle-small"
    method: str = METHOD
    teacher: str = "minilm"  # SPEC of the encoder whose vectors are frozen
    objective: str = "meat+oracle"  # names of objectives.py with weights: dream+0.5*oracle
    labels: str = "language"  # what language vectors tell apart: or side (clean, noisy), transform
    languages: tuple[str, ...] = ()  # of source and target, over what names of files say
    standardize: bool = True  # frozen vectors to mean 0 and mean square 1; the heads take them raw
    batch_pairs: int = 512
    patience: int = 10
