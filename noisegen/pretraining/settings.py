"""What robust contrastive pre-training is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from noisegen.pretraining.contrast import FORMS
from noisegen.training.plan import CHUNK_ROWS
from noisegen.training.run_settings import (
    AT_LEAST_ONE,
    TEMPERATURE,
    ZERO_OR_MORE,
    Check,
    RunSettings,
    one_of,
)

METHOD = "pretrain"
MLM = "mlm"
OBJECTIVES = (MLM, *(f"{MLM}+{form}" for form in FORMS))


@dataclass(frozen=True)
class PretrainSettings(RunSettings):
    """All that decides a run of pre-training; `config.yaml` of the run says the same.

    An update learns from up to `batch_pairs` pairs, cut into batches of `batch_tokens` on their way
    through the network. What a backward pass needs of them is kept up to `graph_gb` gigabytes (of
    each process); the rest is computed a second time, with the same gradient.
    """

    checks: ClassVar[Mapping[str, Check]] = {
        **RunSettings.checks,
        "method": (lambda v: v == METHOD, METHOD),
        "objective": one_of(*OBJECTIVES),
        "batch_pairs": (lambda v: 2 <= v <= CHUNK_ROWS, f"from 2 to {CHUNK_ROWS:,}"),
        "batch_tokens": AT_LEAST_ONE,
        "max_length": (lambda v: v >= 8, "at least 8"),
        "graph_gb": (lambda v: v >= 0, "0 or more"),  # inf keeps all
        "memory": ZERO_OR_MORE,
        "temperature": TEMPERATURE,
        "dropout": (lambda v: 0 <= v < 1, "from 0 to below 1"),
        "precision": one_of("auto", "bf16", "fp32"),
        **dict.fromkeys(
            ("mask_rate", "validation_share"), (lambda v: 0 < v < 1, "between 0 and 1")
        ),
    }

    method: str = METHOD
    student: str = "minilm"  # SPEC of a masked-language model: minilm, a folder or hf:NAME
    objective: str = "mlm+nt_xent"  # or mlm+nt_xent:printed, or mlm alone
    noise: str = "stored"  # or recipes: noise anew in every epoch, of stored+ugc+mix_all one a row
    lang: str = "en"
    batch_pairs: int = 2048  # of an update, over all processes
    batch_tokens: int = 2048  # of one pass of one process, padding included
    graph_gb: float = 4.0
    max_length: int = 128
    mask_rate: float = 0.15
    dropout: float = 0.1
    temperature: float = 0.05
    memory: int = 0  # vectors of earlier updates that are negatives too (cross-batch memory)
    freeze: tuple[str, ...] = ()  # beginnings of names of the encoder's weights that stay
    precision: str = "auto"  # bf16, fp32
    packed: bool | None = None  # rows without padding; None: on CUDA in bf16 without dropout
    compile: ClassVar[bool] = False
    validation_share: float = 0.01  # of the pairs, and at most validation_rows
