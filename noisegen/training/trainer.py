"""The trainer of every method: updates, with validation, checkpoints and a log between.

What an update learns from is a method's own: `Trainer.backward`.
"""

import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from noisegen.atomic import sync
from noisegen.encoders.packed import Packed
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.tokens import Padded
from noisegen.errors import NoisegenError
from noisegen.training.checkpoint import (
    State,
    load_checkpoint,
    save_checkpoint,
    save_weights,
    writing_weights,
)
from noisegen.training.chunks import Position
from noisegen.training.computation import Computation
from noisegen.training.interrupts import held_back
from noisegen.training.log import Sink
from noisegen.training.plan import Rows
from noisegen.training.run_settings import RunSettings
from noisegen.training.schedule import Progress, learning_rate
from noisegen.training.workers import Workers

LOG_EVERY = 10  # updates
Steps = list[list[Rows]]


class HasSteps(Protocol):
    """A part of an epoch: `steps` are its updates, each some batches of row numbers."""

    @property
    def steps(self) -> Steps:
        """The updates."""
        ...


C = TypeVar("C", bound=HasSteps)
C_co = TypeVar("C_co", bound=HasSteps, covariant=True)


class ChunkSource(Protocol[C_co]):
    """Where chunks come from, without end."""

    def from_position(self, start: Position) -> Iterator[tuple[Position, C_co]]:
        """Yield chunks, with where they are."""
        ...


class Measure(Protocol):
    """What `loss` chooses the best weights by, and other figures."""

    def measure(self, student: Any) -> dict[str, float]:
        """Return the figures of these weights."""
        ...


class Trainer(ABC, Generic[C]):
    """One run, from a position to its end; `rows` are the pairs of an epoch."""

    def __init__(
        self, settings: RunSettings, student: nn.Module, chunks: ChunkSource[C], rows: int,
        computation: Computation, validation: Measure, folder: Path,
        *, workers: Workers, config: str = "", report: Sink | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.student, self.chunks, self.rows = settings, student, chunks, rows
        self.computation, self.validation, self.folder = computation, validation, folder
        self.workers, self.config = workers, config
        self.report: Sink = report or (lambda row: None)
        self.weights = [weight for weight in student.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=settings.lr, betas=settings.betas, eps=settings.eps,
            weight_decay=settings.weight_decay, fused=True,
        )  # fmt: skip
        self.progress, self.position = Progress(), Position()
        self.best: float | None = None
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

        Raises NoisegenError for a gradient that is no number, and what `check` raises; what was
        good is kept in checkpoints. Ctrl-C and SIGTERM wait for the end of an update and a
        checkpoint, then raise KeyboardInterrupt; a second one raises it at once.
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

    def steps(self) -> Generator[tuple[C, int, list[Rows], float], None, None]:
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

    def update(self, chunk: C, batches: list[Rows]) -> None:
        """Do one update, of which this process does its part; raises NoisegenError."""
        self.optimizer.zero_grad(set_to_none=True)
        pairs = self.backward(chunk, batches)
        self.workers.sum_gradients(self.weights)
        norm = float(torch.nn.utils.clip_grad_norm_(self.weights, self.settings.clip))
        self._refuse_nan(norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, self.progress, self.rows)
        self.optimizer.step()
        self.window["grad_norm"] += norm
        done = self.progress
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + pairs)

    @abstractmethod
    def backward(self, chunk: C, batches: list[Rows]) -> int:
        """Add up this process's part of the gradient; return the pairs of the whole update."""

    def check(self, found: Mapping[str, float]) -> None:
        """Raise NoisegenError where a run with such figures is not to go on."""

    def _refuse_nan(self, norm: float) -> None:
        if not math.isfinite(norm):
            raise NoisegenError(
                f"the gradient of step {self.progress.updates + 1} is {norm}; the last good "
                f"weights are in {self.folder / 'checkpoints'}: try a lower lr, or fp32"
            )

    def count(self, losses: Mapping[str, Tensor], share: float) -> None:
        """Add losses to the means of the log; those of all processes are summed."""
        for name, value in losses.items():
            self.window[name] += value.detach().double() * share  # a float would wait for the GPU

    def batch(self, ids: Ragged) -> Padded | Packed:
        """Put rows of ids on the device, and count their tokens."""
        batch = self.computation.batch(ids)
        self.window["rows"] += len(ids)
        self.window["tokens"] += len(ids.values)
        self.window["computed"] += batch.tokens
        return batch

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
        losses = {
            name: self.workers.summed(float(value)) / updates
            for name, value in sorted(window.items()) if name.startswith("loss")
        }  # fmt: skip
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
        """Measure; keep the weights if they are the best; raises what `check` does."""
        found = self.validation.measure(self.student)
        step = self.progress.updates
        if self._validated != step:
            self.report({"step": step, **{f"validation_{k}": v for k, v in found.items()}})
        self._validated = step
        self.check(found)
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
