"""The loop: batches to gradients to updates, with validation, checkpoints and a log between.

An update reads `accumulate` batches in each of `world` processes. Every loss is weighted by its
share of the sentences of all of them, so 1 process x N batches and N x 1 give the same gradient.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from noisegen.atomic import sync
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import NoisegenError
from noisegen.training.checkpoint import (
    State,
    load_checkpoint,
    save_checkpoint,
    save_weights,
    writing_weights,
)
from noisegen.training.chunks import Chunk, Chunks, Position
from noisegen.training.computation import Computation
from noisegen.training.interrupts import held_back
from noisegen.training.log import Sink
from noisegen.training.losses import Batch, Output, Weighted
from noisegen.training.negatives import Ints, Negatives
from noisegen.training.plan import Rows
from noisegen.training.schedule import Progress, learning_rate
from noisegen.training.settings import Settings
from noisegen.training.teacher_vectors import TeacherVectors
from noisegen.training.validation import Validation
from noisegen.training.workers import Workers

LOG_EVERY = 10  # updates


class Loop:
    """One run, from a position to its end."""

    def __init__(
        self, settings: Settings, student: SentenceEncoder, chunks: Chunks,
        vectors: TeacherVectors, validation: Validation, folder: Path,
        *, negatives: Negatives | None = None, workers: Workers | None = None, config: str = "",
        report: Sink | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.student, self.chunks = settings, student, chunks
        self.vectors, self.validation, self.folder = vectors, validation, folder
        self.negatives = negatives
        self.workers, self.config = workers or Workers(), config
        self.report: Sink = report or (lambda row: None)
        self.objective = Weighted.parse(settings.objective)
        self.computation = Computation(settings, student, self.workers.device)
        self.weights = [weight for weight in student.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=settings.lr, betas=settings.betas, eps=settings.eps,
            weight_decay=settings.weight_decay, fused=True,
        )  # fmt: skip
        self.progress, self.position = Progress(), Position()
        self.best: float | None = None
        self.rows = len(chunks.data.training)
        self.window: dict[str, Any] = defaultdict(float)  # sums since the last row of the log
        self._asked: Callable[[], bool] = lambda: False
        self._logged = Progress()
        self._saved = self._validated = -1

    def resume(self) -> None:
        """Take up the newest checkpoint; raises OutputError."""
        folder = self.folder / "checkpoints"
        state = load_checkpoint(folder, self.student, self.optimizer, self.config)
        self.progress, self.position, self.best = state.progress, state.position, state.best
        self._saved, self._logged = self.progress.updates, self.progress

    def run(self) -> dict[str, float]:
        """Train to the end; return the last validation's figures.

        Raises NoisegenError for a loss that is no number, or drift above the limit; what was good
        is kept in checkpoints. Ctrl-C and SIGTERM wait for the end of an update and a checkpoint,
        then raise KeyboardInterrupt; a second one raises it at once.
        """
        self.student.train()
        with held_back() as self._asked:
            if not self.progress.updates:
                self.validate()
            self._updates()
            found = self.validate()
            self.checkpoint()
            self._stop_if_asked()
        return found

    def _stop_if_asked(self) -> None:
        """Stop all processes where one of them was asked to."""
        if self.workers.agreed(float(self._asked())):
            self.checkpoint()
            raise KeyboardInterrupt

    def _updates(self) -> None:
        if self.progress.share(self.settings, self.rows) >= 1:
            return  # a run that was resumed at its end
        began = time.monotonic() - self.progress.seconds
        for chunk, number, batches, waited in self.steps():
            self.window["wait"] += waited
            self.update(chunk, batches)
            seconds = self.workers.agreed(time.monotonic() - began)
            self.progress = replace(self.progress, seconds=seconds)
            self.position = replace(self.position, step=number + 1)
            self._after_update()
            self._stop_if_asked()
            if self.progress.share(self.settings, self.rows) >= 1:
                return

    def steps(self) -> Generator[tuple[Chunk, int, list[Rows], float], None, None]:
        """Yield every step from the position on: chunk, number, batches, seconds of waiting."""
        chunks = self.chunks.from_position(self.position)
        while True:
            began = time.monotonic()
            at, chunk = next(chunks)
            waited = time.monotonic() - began
            first = self.position.step if at == replace(self.position, step=at.step) else 0
            self.position = replace(at, step=first)
            for number in range(first, len(chunk.steps)):
                yield chunk, number, chunk.steps[number], waited
                waited = 0.0

    def update(self, chunk: Chunk, batches: list[Rows]) -> None:
        """Do one update on the batches that are this process's part; raises NoisegenError."""
        settings, total = self.settings, sum(len(batch) for batch in batches)
        each = len(batches) // self.workers.world
        first = self.workers.rank * each
        if settings.dropout:
            torch.manual_seed(settings.seed * 1_000_003 + self.progress.updates * 1_009 + first)
        self.optimizer.zero_grad(set_to_none=True)
        for place in range(first, first + each):
            loss, parts = self.loss(chunk, batches[place], place)
            share = len(batches[place]) / total
            (loss * share).backward()  # type: ignore[no-untyped-call]
            self._count(loss, parts, share)
        self.workers.sum_gradients(self.weights)
        norm = float(torch.nn.utils.clip_grad_norm_(self.weights, settings.clip))
        self._refuse_nan(norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(settings, self.progress, self.rows)
        self.optimizer.step()
        self.window["grad_norm"] += norm
        done = self.progress
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + total)

    def loss(self, chunk: Chunk, rows: Rows, place: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch and its parts; `place` tells apart batches of one update."""
        owners = chunk.owner[rows]
        with self.computation.precision():
            noisy = self._encoded(chunk.noisy.take(rows))
            clean = self._encoded(chunk.clean.take(rows)) if self.objective.needs_clean else None
        teacher = torch.from_numpy(self.vectors.take(owners)).to(self.workers.device)
        batch = Batch(teacher, self._negatives(owners, place), self.settings.temperature)
        return self.objective(batch, Output(noisy, clean))

    def _encoded(self, ids: Ragged) -> Tensor:
        batch = self.computation.batch(ids)
        self.window["rows"] += len(ids)
        self.window["tokens"] += len(ids.values)
        self.window["computed"] += batch.tokens
        return self.computation.vectors(batch)

    def _negatives(self, owners: Ints, place: int) -> Tensor | None:
        if self.negatives is None or not self.objective.is_contrastive:
            return None
        found = self.negatives.take(owners, self.progress.updates, place)
        return torch.from_numpy(found).to(self.workers.device)

    def _refuse_nan(self, norm: float) -> None:
        if not math.isfinite(norm):
            raise NoisegenError(
                f"the gradient of step {self.progress.updates + 1} is {norm}; the last good "
                f"weights are in {self.folder / 'checkpoints'}: try a lower lr, or fp32"
            )

    def _count(self, loss: Tensor, parts: dict[str, Tensor], share: float) -> None:
        named = {"loss": loss.detach(), **{f"loss_{name}": part for name, part in parts.items()}}
        for name, value in named.items():
            self.window[name] += value.detach().double() * share  # a float would wait for the GPU

    def _after_update(self) -> None:
        step = self.progress.updates
        if step % LOG_EVERY == 0 or step == 1:
            self._log()
        if step % self.settings.validate_every == 0:
            self.validate()
            self.checkpoint()

    def _log(self) -> None:
        """Report the means of the updates since the last row."""
        window, self.window = self.window, defaultdict(float)
        now, last = self.progress, self._logged
        updates = max(1, now.updates - last.updates)
        seconds = max(1e-9, now.seconds - last.seconds)
        self._logged = now
        done = now.share(self.settings, self.rows)
        losses = {k: float(v) / updates for k, v in window.items() if k.startswith("loss")}
        speed = window["tokens"] / seconds
        share = self.computation.mfu(speed, window["tokens"] / max(1, window["rows"]))
        mfu = {} if share is None else {"mfu": share}
        self.report({
            "step": now.updates, **losses, "grad_norm": window["grad_norm"] / updates,
            "lr": self.optimizer.param_groups[0]["lr"], "pairs": now.pairs,
            "epoch": self.position.epoch, "tokens": window["tokens"] * self.workers.world,
            "tokens_per_second": speed * self.workers.world, **mfu,
            "padding": 1 - window["tokens"] / max(1, window["computed"]),
            "wait": min(1.0, window["wait"] / seconds), "done": done, "seconds": now.seconds,
            "eta": now.seconds * (1 - done) / max(done, 1e-9),
        })  # fmt: skip

    def validate(self) -> dict[str, float]:
        """Measure; keep the weights if they are the best; raises NoisegenError for drift."""
        found = self.validation.measure(self.student)
        step = self.progress.updates
        if self._validated != step:
            self.report({"step": step, **{f"validation_{k}": v for k, v in found.items()}})
        self._validated = step
        drift, most = found["drift"], self.settings.max_drift
        if most is not None and drift > most:
            raise NoisegenError(
                f"clean drift {drift:.3f} is above max_drift {most} at step {step}; the best "
                f"weights are in {self.folder / 'checkpoints' / 'best.safetensors'}"
            )
        if self.best is None or found["loss"] < self.best:
            self.best = found["loss"]
            self._keep_best()
        return found

    def _keep_best(self) -> None:
        if self.workers.leads:
            folder = self.folder / "checkpoints"
            folder.mkdir(parents=True, exist_ok=True)
            with writing_weights(folder / "best.safetensors"):
                save_weights(self.student, folder / "best.tmp")
                sync(folder / "best.tmp")
                (folder / "best.tmp").replace(folder / "best.safetensors")

    def checkpoint(self) -> None:
        """Write a checkpoint, unless this step has one."""
        if self.workers.leads and self._saved != self.progress.updates:
            state = State(self.progress, self.position, self.best, self.config)
            folder = self.folder / "checkpoints"
            save_checkpoint(folder, self.student, self.optimizer, state, self.settings.keep)
        self._saved = self.progress.updates
        self.workers.wait()
