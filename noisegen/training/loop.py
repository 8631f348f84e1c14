"""Distillation: batches of pairs against the teacher's vectors.

An update reads `accumulate` batches in each of `world` processes. Every loss is weighted by its
share of the sentences of all of them, so 1 process x N batches and N x 1 give the same gradient.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from noisegen.encoders.ragged import Ragged
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import NoisegenError
from noisegen.training.chunks import Chunk, Chunks
from noisegen.training.computation import Computation
from noisegen.training.log import Sink
from noisegen.training.losses import Batch, Output, Weighted
from noisegen.training.negatives import Ints, Negatives
from noisegen.training.plan import Rows
from noisegen.training.settings import Settings
from noisegen.training.teacher_vectors import TeacherVectors
from noisegen.training.trainer import Trainer
from noisegen.training.validation import Validation
from noisegen.training.workers import Workers


class Loop(Trainer[Chunk]):
    """One run of distillation, from a position to its end."""

    settings: Settings
    student: SentenceEncoder
    chunks: Chunks
    validation: Validation

    def __init__(
        self, settings: Settings, student: SentenceEncoder, chunks: Chunks,
        vectors: TeacherVectors, validation: Validation, folder: Path,
        *, negatives: Negatives | None = None, workers: Workers | None = None, config: str = "",
        report: Sink | None = None,
    ) -> None:  # fmt: skip
        workers = workers or Workers()
        self.vectors, self.negatives = vectors, negatives
        self.objective = Weighted.parse(settings.objective)
        super().__init__(
            settings, student, chunks, len(chunks.data.training),
            Computation(settings, student, workers.device), validation, folder,
            workers=workers, config=config, report=report,
        )  # fmt: skip

    def backward(self, chunk: Chunk, batches: list[Rows]) -> int:
        """Add up the gradients of the batches that are this process's part."""
        settings, total = self.settings, sum(len(batch) for batch in batches)
        each = len(batches) // self.workers.world
        first = self.workers.rank * each
        if settings.dropout:
            torch.manual_seed(settings.seed * 1_000_003 + self.progress.updates * 1_009 + first)
        for place in range(first, first + each):
            loss, parts = self.loss(chunk, batches[place], place)
            share = len(batches[place]) / total
            (loss * share).backward()  # type: ignore[no-untyped-call]
            named = {f"loss_{name}": part for name, part in parts.items()}
            self.count({"loss": loss, **named}, share)
        return total

    def loss(self, chunk: Chunk, rows: Rows, place: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch and its parts; `place` tells apart batches of one update."""
        owners = chunk.owner[rows]
        with self.computation.precision():
            noisy, clean = self._encoded(chunk.noisy.take(rows)), None
            if self.objective.needs_clean:
                clean = self._encoded(chunk.clean.take(rows))
        teacher = torch.from_numpy(self.vectors.take(owners)).to(self.workers.device)
        batch = Batch(teacher, self._negatives(owners, place), self.settings.temperature)
        return self.objective(batch, Output(noisy, clean))

    def _encoded(self, ids: Ragged) -> Tensor:
        return self.computation.vectors(self.batch(ids))

    def _negatives(self, owners: Ints, place: int) -> Tensor | None:
        if self.negatives is None or not self.objective.is_contrastive:
            return None
        found = self.negatives.take(owners, self.progress.updates, place)
        return torch.from_numpy(found).to(self.workers.device)

    def check(self, found: Mapping[str, float]) -> None:
        """Raise NoisegenError for drift above the limit."""
        drift, most = found["drift"], self.settings.max_drift
        if most is not None and drift > most:
            step, folder = self.progress.updates, self.folder / "checkpoints"
            raise NoisegenError(
                f"clean drift {drift:.3f} is above max_drift {most} at step {step}; the best "
                f"weights are in {folder / 'best.safetensors'}"
            )
