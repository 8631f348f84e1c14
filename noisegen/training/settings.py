"""What distillation is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from noisegen.training.run_settings import (
    AT_LEAST_ONE,
    TEMPERATURE,
    ZERO_OR_MORE,
    Check,
    RunSettings,
    one_of,
)

METHOD = "distil"


@dataclass(frozen=True)
class Settings(RunSettings):
    """All that decides a run of distillation; `config.yaml` of the run says the same."""

    checks: ClassVar[Mapping[str, Check]] = {
        **RunSettings.checks,
        "method": (lambda v: v == METHOD, METHOD),
        **dict.fromkeys(("batch_tokens", "accumulate"), AT_LEAST_ONE),
        **dict.fromkeys(("negatives", "hard_negatives"), ZERO_OR_MORE),
        "bitext_rows": (lambda v: v is None or v >= 1, "at least 1"),
        "prepare": one_of(None, "social"),
        "pooling": one_of(None, "mean", "max", "cls"),
        "project": one_of(None, "before", "after"),
        "precision": one_of("auto", "bf16", "fp32"),
        "temperature": TEMPERATURE,
        "dropout": (lambda v: 0 <= v < 1, "from 0 to below 1"),
        "interpolate": (lambda v: 0 < v <= 1, "above 0, at most 1"),
        "max_length": (lambda v: v >= 8, "at least 8"),
        "max_drift": (lambda v: v is None or v > 0, "above 0"),
    }

    method: str = METHOD
    teacher: str = "minilm"
    student: str = "copy"  # copy, layers:0,3,5, char, or a SPEC of a folder
    objective: str = "two_term"  # names of losses.py with weights: two_term+0.2*info_nce
    noise: str = "stored"  # or recipes: noise anew every epoch; stored+ugc+stored:ugc: one a row
    lang: str = "en"  # of clean text
    bitext_rows: int | None = None  # of each language pair of each data set, the first
    prepare: str | None = None  # social: what teacher and student read, as CT-XLMR-SE's
    pooling: str | None = None  # mean, max, cls; None: the student's own
    project: str | None = None  # before, after pooling; None: no projection
    projection_bias: bool = True
    normalize: bool | None = None  # None: as the teacher
    lower: bool = False  # put text in small letters first
    freeze: tuple[str, ...] = ()  # beginnings of names of weights that are not trained
    batch_tokens: int = 2048  # of one process, padding included
    accumulate: int = 1  # batches per update
    max_length: int = 128
    dropout: float = 0.0
    temperature: float = 0.05
    negatives: int = 1024  # teacher's vectors of other texts, for contrastive objectives
    hard_negatives: int = 0  # for each text so many with one thing altered; the teacher reads them
    precision: str = "auto"  # bf16, fp32
    packed: bool | None = None  # rows without padding; None: on CUDA in bf16 without dropout
    compile: bool = False  # the network by torch.compile, for packed batches on CUDA
    interpolate: float = 1.0  # share of what was trained in the student's weights, else its start's
    max_drift: float | None = None  # stop when 1 - cos(T[clean], S[clean]) is above
