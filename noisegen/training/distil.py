"""Distillation: a student learns to put noisy text where its teacher puts the clean form.

An update reads `accumulate` batches in each of `world` processes. Every loss is weighted by its
share of the sentences of all of them, so 1 process x N batches and N x 1 give the same gradient.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from noisegen.encoders.encoder import Ragged, Vectors, uses_bf16
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import Rows
from noisegen.errors import NoisegenError, UsageError
from noisegen.evaluation.similarity import cosines, unit
from noisegen.runs.progress import Progress, Show
from noisegen.text.resources import cache_folder
from noisegen.training.batches import VALIDATION_EPOCH, Chunk, Chunks, NoiseSource, Position
from noisegen.training.computation import Computation, Workers, estimate
from noisegen.training.losses import Batch, Output
from noisegen.training.objectives import WeightedSum
from noisegen.training.pairs import Reading
from noisegen.training.settings import DistilSettings, Tell
from noisegen.training.stores import (
    Negatives,
    TeacherVectors,
    TextStore,
    open_hard_texts,
    teacher_vectors,
    write_hard_texts,
)
from noisegen.training.students import (
    STUDENT_CARD,
    PairMethod,
    interpolate,
    make_student,
    open_teacher,
)
from noisegen.training.trainer import Trainer


class Distillation(PairMethod[Chunk]):
    """A student that learns from a teacher's vectors of clean text, on noisy and clean pairs."""

    card = STUDENT_CARD
    settings: DistilSettings
    network: SentenceEncoder
    computation: Computation
    batches: Chunks
    vectors: TeacherVectors
    negatives: Negatives
    held_out: tuple[Ragged, Ragged, Vectors]  # noisy and clean ids, vectors of the teacher

    def __init__(self, settings: DistilSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers = settings, workers
        self.teacher = open_teacher(settings)
        self.network = make_student(settings, self.teacher).to(workers.device)
        self.objective = WeightedSum.parse(settings.objective)
        if settings.hard_negatives and not self.objective.needs("negatives"):
            raise UsageError(
                f"hard_negatives are for info_nce: add +0.2*info_nce to {settings.objective}"
            )
        self.noise = NoiseSource(settings.noise, settings.seed, settings.lang)
        self.computation = Computation(settings, self.network, workers.device)

    @property
    def digest(self) -> str:
        """The teacher's."""
        return self.teacher.digest

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read pairs, or clean text where the noise is a recipe's alone; raises SourceError."""
        settings = self.settings
        reading = Reading(
            not self.noise.is_stored, settings.lang, settings.bitext_rows,
            held_out=settings.validation_rows, seed=settings.seed,
        )  # fmt: skip
        pairs = self.read_pairs(sources, folder, reading, resume=resume)
        self.batches = Chunks(
            pairs, self.noise, self.network.tokenizer, budget=settings.batch_tokens,
            seed=settings.seed, world=self.workers.world * settings.accumulate,
            both_sides=self.objective.needs("clean"),
        )  # fmt: skip
        return pairs.summary

    def estimate(self) -> dict[str, Any]:
        """Measure the first chunk of the data and count the student's weights."""
        chunk = self.batches.first()
        sides = [chunk.noisy, chunk.clean] if self.batches.both_sides else [chunk.noisy]
        rows = len(chunk.owner)
        return estimate(self.network, self.network, self.rows, rows, sides, chunk.steps)

    def prepare(self, folder: Path, progress: Show) -> None:
        """Compute the teacher's vectors; noise the held-out pairs once, as no epoch does."""
        settings = self.settings
        if isinstance(self.teacher, SentenceEncoder):
            self.teacher.to(self.workers.device)
        self.vectors = self._vectors(self.pairs.clean, "teacher's vectors", progress)
        hard = None
        if settings.hard_negatives:
            if self.workers.leads and not (folder / "hard.rows").exists():
                progress(Progress("hard negatives"))
                write_hard_texts(
                    folder, self.pairs.clean, settings.hard_negatives, settings.seed, settings.lang
                )
            self.workers.wait()
            texts = open_hard_texts(folder)
            if len(texts.texts):
                what = "vectors of hard negatives"
                hard = texts, self._vectors(texts.texts, what, progress)
        self.negatives = Negatives(self.vectors, settings.negatives, settings.seed, hard)
        rows = self.pairs.validation[: settings.validation_rows]
        noisy, clean, owner = self.batches.tokens(rows, VALIDATION_EPOCH, both_sides=True)
        self.held_out = noisy, clean, self.vectors.take(owner)

    def _vectors(self, texts: TextStore, what: str, progress: Show) -> TeacherVectors:
        """Return the teacher's vectors; a network computes them in the precision of the student.

        In bf16 MiniLM's are off by 1 - cos = 1e-5, a thousandth of what light noise does to them.
        """
        device, teacher = self.workers.device, self.teacher
        half = isinstance(teacher, SentenceEncoder) and uses_bf16(self.settings.precision, device)
        folder = cache_folder() / ("vectors-bf16" if half else "vectors")
        if self.workers.leads:  # the others then find them in the cache
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                vectors = teacher_vectors(teacher, texts, folder, what, progress)
        self.workers.wait()
        return vectors if self.workers.leads else teacher_vectors(teacher, texts, folder)

    def chunks(self, start: Position) -> Iterator[tuple[Position, Chunk]]:
        """Yield noisy and clean token ids in batches."""
        return self.batches.from_position(start)

    def backward(self, trainer: Trainer[Chunk], chunk: Chunk, batches: list[Rows]) -> int:
        """Add up the gradients of the batches that are this process's part."""
        settings, updates = self.settings, trainer.progress.updates
        total = sum(len(batch) for batch in batches)
        each = len(batches) // self.workers.world
        first = self.workers.rank * each
        if settings.dropout:
            torch.manual_seed(settings.seed * 1_000_003 + updates * 1_009 + first)
        for number in range(first, first + each):
            rows = batches[number]
            loss, parts = self._loss(chunk, rows, trainer, number)
            share = len(rows) / total
            (loss * share).backward()  # type: ignore[no-untyped-call]
            trainer.count({"loss": loss, **{f"loss_{k}": v for k, v in parts.items()}}, share)
        return total

    def _loss(
        self, chunk: Chunk, rows: Rows, trainer: Trainer[Chunk], number: int
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch and its parts; `number` counts the batches of an update."""
        owners, device = chunk.owner[rows], self.workers.device
        with self.computation.precision():
            noisy, clean = self._encoded(chunk.noisy.take(rows), trainer), None
            if self.objective.needs("clean"):
                clean = self._encoded(chunk.clean.take(rows), trainer)
        negatives = None
        if self.objective.needs("negatives"):
            others = self.negatives.take(owners, trainer.progress.updates, number)
            negatives = torch.from_numpy(others).to(device)
        teacher = torch.from_numpy(self.vectors.take(owners)).to(device)
        batch = Batch(teacher, negatives, self.settings.temperature)
        return self.objective(batch, Output(noisy, clean))

    def _encoded(self, ids: Ragged, trainer: Trainer[Chunk]) -> Tensor:
        return self.computation.vectors(self.computation.batch(ids, trainer.window))

    def validate(self) -> dict[str, float]:
        """Return the two-term loss of RoLASER, clean drift, distances and xSIM hits lost.

        `loss`: MSE(T[clean], S[clean]) + MSE(T[clean], S[noisy]), means over all entries, times the
        width (RoLASER, section 5.1; the factor keeps figures readable). `drift`, `anchored`,
        `distance`: mean 1 - cosine of S[clean] and T[clean], S[noisy] and T[clean], S[noisy] and
        S[clean]. `missed`: share of noisy sides whose nearest teacher vector is another's.
        """
        teacher = self.held_out[2]
        noisy, clean = (self.network.encode_ids(side) for side in self.held_out[:2])
        of_clean, of_noisy = (
            float(np.square(teacher - side).sum(1).mean()) for side in (clean, noisy)
        )
        return {
            "loss": of_clean + of_noisy, "loss_clean": of_clean, "loss_noisy": of_noisy,
            "drift": distance(teacher, clean), "anchored": distance(teacher, noisy),
            "distance": distance(clean, noisy), "missed": missed(noisy, teacher),
        }  # fmt: skip

    def check(self, trainer: Trainer[Chunk], figures: Mapping[str, float]) -> None:
        """Raise NoisegenError for drift above the limit."""
        drift, limit = figures["drift"], self.settings.max_drift
        if limit is not None and drift > limit:
            raise NoisegenError(
                f"clean drift {drift:.3f} is above max_drift {limit} at step "
                f"{trainer.progress.updates}; the best weights are in "
                f"{trainer.folder / 'best.safetensors'}"
            )

    def export(
        self, out: Path, recorded: Mapping[str, Any], reached: Mapping[str, Any],
        best: Mapping[str, float],
    ) -> dict[str, Any]:  # fmt: skip
        """Write RUN/student, its weights drawn back where that was asked for."""
        if self.settings.interpolate < 1:
            start = make_student(self.settings, self.teacher)
            interpolate(self.network, start, self.settings.interpolate)
        return super().export(out, recorded, reached, best)

    def save(self, folder: Path) -> None:
        """Write the student for SentenceTransformer and `open_encoder`."""
        save_folder(self.network.cpu(), folder)


def distance(one: Vectors, other: Vectors) -> float:
    """Return the mean of 1 - cosine, row by row."""
    return float(1 - cosines(one, other).mean())


def missed(noisy: Vectors, clean: Vectors) -> float:
    """Return the share of rows with another row's clean vector nearer than their own."""
    scores = unit(noisy) @ unit(clean).T
    return float((scores.max(1) > np.diag(scores) + 1e-6).mean())
