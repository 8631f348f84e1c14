"""The trainer of all methods: one loop of updates, with validation, checkpoints and a log.

A `Method` defines what is trained, and on which data.
"""

import json
import math
import re
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import Encoder
from noisegen.encoders.stored import release_memory
from noisegen.encoders.tokens import Rows
from noisegen.errors import NoisegenError, naming_extras
from noisegen.runs.atomic import write_text, writing
from noisegen.runs.progress import Show
from noisegen.training.checkpoint import (
    Position,
    RunProgress,
    State,
    Validation,
    checkpoints,
    load_checkpoint,
    load_weights,
    save_best,
    save_checkpoint,
)
from noisegen.training.computation import Computation, Workers
from noisegen.training.settings import RunSettings, Sink, Tell

LOG_EVERY = 10  # updates
SMOOTHING = 0.98  # of the loss that is shown: the weight that an update keeps at the next one
_FILES = 5  # files of weights at the end: three of a checkpoint, the best read, the student
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Clock:
    """The time since a command began, that of earlier sessions of a run included.

    CPU time is that of all threads of this process; the limit is one on it if `counts_cpu`.
    """

    def __init__(
        self, limit: float | None = None, began: tuple[float, float] | None = None,
        *, counts_cpu: bool = False,
    ) -> None:  # fmt: skip
        self.limit, self.counts_cpu = math.inf if limit is None else limit, counts_cpu
        self._began, self._cpu_began = began or (time.monotonic(), time.process_time())

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return time.monotonic() - self._began

    @property
    def cpu(self) -> float:
        """The CPU seconds so far."""
        return time.process_time() - self._cpu_began

    @property
    def spent(self) -> float:
        """The seconds so far that the limit is on."""
        return self.cpu if self.counts_cpu else self.seconds

    @property
    def left(self) -> float:
        """The seconds until the limit; infinite without one."""
        return self.limit - self.spent

    def add(self, seconds: float, cpu: float) -> None:
        """Count the time of earlier sessions."""
        self._began -= seconds
        self._cpu_began -= cpu


UNLIMITED = Clock()


@dataclass(frozen=True)
class Chunk:
    """A part of an epoch: `steps` are its updates, each a list of batches of row numbers."""

    steps: list[list[Rows]]


@dataclass(frozen=True)
class Rehearsal:
    """The seconds that a teacher's vectors will take, and by how much a validation was shortened.

    `shortened` is how many times as many pairs are held out.
    """

    vectors: float = 0.0
    shortened: float = 1.0


C = TypeVar("C", bound=Chunk)


class Method(ABC, Generic[C]):
    """A training method: how data are read, a network learns, and its files are written.

    The constructor opens the models and refuses settings that cannot be trained. The optimizer
    updates `network`, and checkpoints contain it.
    """

    is_resumable: ClassVar[bool] = True  # whether checkpoints are written
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.AdamW
    settings: RunSettings
    workers: Workers
    start: Encoder  # the teacher, or the network before training
    network: nn.Module
    pairs_read: int
    rows: int  # pairs of an epoch: those that are not held out
    computation: Computation | None = None
    unvalidated: float = math.inf  # updates between validations, at most
    selects_by = "loss"  # the validation figure whose minimum chooses the weights
    before: Mapping[str, float] | None = None  # figures before preparation changed the network
    is_altered = False  # whether the weights that are saved are others than the best

    @abstractmethod
    def __init__(self, settings: Any, workers: Workers, tell: Tell) -> None: ...

    @abstractmethod
    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read DATA into the folder, unless a resumed run has it; return a summary of it."""

    @abstractmethod
    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Compute what the first update needs, such as the teacher's vectors."""

    @abstractmethod
    def rehearse(self) -> Rehearsal:
        """Prepare so that updates and a short validation can be timed, without much computation."""

    @abstractmethod
    def estimate(self, chunk: C) -> dict[str, Any]:
        """Return the sizes of the network and the data, of which this is the first chunk."""

    @abstractmethod
    def chunk(self, epoch: int, number: int) -> C | None:
        """Return a chunk of an epoch, None after the last. Called in a thread, ahead of use."""

    @abstractmethod
    def backward(self, trainer: "Trainer[C]", chunk: C, batches: list[Rows]) -> int:
        """Add up this process's part of the gradient; return the pairs of the whole update."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Return the validation figures of the network, `loss` and `selects_by` among them."""

    def check(self, trainer: "Trainer[C]", figures: Mapping[str, float]) -> None:
        """Raise NoisegenError if a run with such figures must stop."""

    @abstractmethod
    def export(self, trainer: "Trainer[C]") -> dict[str, Any]:
        """Write the network into RUN; return the content of metrics.json."""


def adam(
    kind: type[torch.optim.Optimizer], network: nn.Module, settings: RunSettings
) -> torch.optim.Optimizer:
    """Return Adam or AdamW over the trainable weights of a network."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    options: dict[str, Any] = {"betas": settings.betas, "eps": settings.eps, "fused": True}
    return kind(weights, lr=settings.lr, weight_decay=settings.weight_decay, **options)  # type: ignore[call-arg]


class Trainer(Generic[C]):
    """One run of a method in the folder RUN, from a position to its end."""

    def __init__(
        self, method: Method[C], out: Path, recorded: Mapping[str, Any] | None = None,
        clock: Clock = UNLIMITED,
    ) -> None:  # fmt: skip
        self.method, self.settings, self.workers = method, method.settings, method.workers
        self.out, self.folder, self.clock = out, out / "checkpoints", clock
        self.recorded = dict(recorded or {})  # the content of config.yaml
        read = [self.recorded, method.pairs_read, method.start.digest]
        self.config = sha256(json.dumps(read).encode()).hexdigest()
        self.sinks: list[Sink] = []  # each takes every row of the log
        self.optimizer = adam(method.optimizer_class, method.network, self.settings)
        self.progress, self.position = RunProgress(), Position()
        self.best: float | None = None
        self.validations: list[Validation] = []
        self.window: dict[str, Any] = defaultdict(float)  # sums since the last row of the log
        self._smoothed = [0.0, 0.0]  # the weighted sum of the losses of all updates, and the weight
        self._start = RunProgress()  # when training begins, or continues
        self._best_weights: dict[str, Tensor] = {}  # of a method without checkpoints
        self._logged = RunProgress()
        self._saved = self._validated = -1
        self._since_best = 0

    @property
    def reached(self) -> dict[str, Any]:
        """The progress as in metrics.json: counts, the first figures, and the loss over time."""
        now, first = self.progress, self.validations[0]
        return {
            "updates": now.updates, "pairs": now.pairs, "training_pairs": self.method.rows,
            "seconds": round(self.clock.seconds, 1), "prepared": round(now.prepared, 1),
            "cpu_seconds": round(self.clock.cpu, 1), "threads": torch.get_num_threads(),
            "planned_updates": self.planned_updates, "stopped_early": self.is_stopped,
            "before": dict(self.method.before or first.figures),
            "curve": [[round(v.seconds, 1), v.figures["loss"]] for v in self.validations],
        }  # fmt: skip

    @property
    def planned_updates(self) -> int:
        """The updates of the whole run: of a time limit, those with all threads always computing.

        Other programs take CPU time from a run, and it makes fewer. On a GPU that is not known. One
        that ends early was to make no more.
        """
        now, busy = self.progress, 1.0
        if self.is_stopped:
            return now.updates
        cpu, seconds = now.cpu - now.cpu_prepared, now.seconds - now.prepared
        if self.settings.time_limit and self.workers.device.type == "cpu" and cpu > 0:
            busy = max(1.0, torch.get_num_threads() * seconds / cpu)
        return round(now.updates / (now.done or 1.0) * busy)

    @property
    def best_validation(self) -> Validation | None:
        """The validation of the best weights; None if an older version wrote the checkpoint."""
        name = self.method.selects_by
        return next((v for v in self.validations if v.figures[name] == self.best), None)

    @property
    def is_done(self) -> bool:
        """Whether the run is at its end."""
        return self.progress.done >= 1 or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether the run ends before its time, without a new best in `patience` validations."""
        patience = self.settings.patience
        return patience is not None and self._since_best >= patience and self.progress.done < 1

    def _share(self, now: RunProgress) -> float:
        """Return the share of the run that is done.

        The end of a limit is kept for the last validation and saving, and no update begins
        that would take longer than what is left before it.
        """
        settings, start = self.settings, self._start
        if settings.steps is not None:
            return min(1.0, now.updates / settings.steps)
        if settings.epochs is not None:
            return min(1.0, now.pairs / (settings.epochs * self.method.rows))
        spent = self._spent(now) - self._spent(start)
        update = spent / max(1, now.updates - start.updates)
        seconds = max(self.clock.limit - self._spent(start) - now.closing - update, 1e-3)
        return max(now.done, min(1.0, start.done + (1 - start.done) * spent / seconds))

    def _spent(self, now: RunProgress) -> float:
        """Return the seconds that the limit is on."""
        return now.cpu if self.clock.counts_cpu else now.seconds

    def _timed(self) -> RunProgress:
        """Return the progress with the time of now."""
        seconds, cpu = (
            self.workers.agreed(value) for value in (self.clock.seconds, self.clock.cpu)
        )
        return replace(self.progress, seconds=seconds, cpu=cpu)

    def resume(self) -> None:
        """Continue from the newest checkpoint, if there is one yet; raises OutputError."""
        if not checkpoints(self.folder):
            return
        state = load_checkpoint(self.folder, self.method.network, self.optimizer, self.config)
        self.progress, self.position, self.best = state.progress, state.position, state.best
        self.validations = list(state.validations)
        if best := self.best_validation:
            self._since_best = len(self.validations) - 1 - self.validations.index(best)
        self.clock.add(self.progress.seconds, self.progress.cpu)
        self._saved = self.progress.updates

    def _begin(self) -> None:
        """Record when training begins: the time before counts as preparation."""
        last, now = self.progress, self._timed()
        prepared = last.prepared + now.seconds - last.seconds
        cpu_prepared = last.cpu_prepared + now.cpu - last.cpu
        self._start = replace(now, prepared=prepared, cpu_prepared=cpu_prepared)
        self._start = replace(self._start, done=self._share(self._start))
        self.progress = self._logged = self._start

    def _advance(self) -> None:
        """Count the time until now."""
        now = self._timed()
        self.progress = replace(now, done=self._share(now))

    def run(self) -> None:
        """Train to the end, then load the best weights.

        Raises NoisegenError for a gradient that is not finite, and what `Method.check` raises;
        checkpoints keep the last good weights. Ctrl-C and SIGTERM wait for the end of an update and
        a checkpoint, then raise KeyboardInterrupt; a second one raises it at once.
        """
        self.method.network.train()
        with deferred_interrupts() as interrupted, closing(self.steps()) as steps:
            if not self.progress.updates:
                self.validate()
            self._begin()
            while not self.is_done:
                before = self.progress.done
                self.update(*next(steps))
                self._advance()
                if self.progress.updates % LOG_EVERY == 0 or self.progress.updates == 1:
                    self._log()
                if self._needs_validation(before):
                    self.validate()
                    self.checkpoint()
                    self._advance()
                self._stop_if(interrupted)
            if self._logged.updates != self.progress.updates:
                self._log()
            if self._validated != self.progress.updates:
                self.validate()
            self.checkpoint()
            self._stop_if(interrupted)
        if not self.workers.leads:
            return
        if self.method.is_resumable:
            load_weights(self.method.network, self.folder / "best.safetensors")
        else:
            self.method.network.load_state_dict(self._best_weights)

    def _needs_validation(self, before: float) -> bool:
        """Return whether to validate now; `before` is the share that was done an update ago.

        A run with a limit is validated in its middle too, which its outlook needs, but never
        where only the time for the last validation is left.
        """
        now, every = self.progress, min(self.settings.validate_every, self.method.unvalidated)
        is_half = self.settings.limit and before < 0.5 <= now.done < 1
        has_time = self.clock.limit - self._spent(now) >= 2 * now.closing
        return has_time and bool(now.updates % every == 0 or is_half)

    def _stop_if(self, interrupted: Callable[[], bool]) -> None:
        """Write a checkpoint and stop if any of the processes was interrupted."""
        if self.workers.agreed(float(interrupted())):
            self.checkpoint()
            raise KeyboardInterrupt

    def steps(self) -> Generator[tuple[C, list[Rows]], None, None]:
        """Yield updates from the position on, without end, each a chunk and batches of it.

        The position is then that of the next update. A chunk is prepared while the previous one is
        in use.
        """

        def make(at: Position) -> tuple[Position, C]:
            chunk = self.method.chunk(at.epoch, at.chunk)
            if chunk is None:
                at = Position(at.epoch + 1)
                chunk = self.method.chunk(at.epoch, 0)
            assert chunk is not None  # there are pairs to train on
            return at, chunk

        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(make, self.position)
            while True:
                began = time.monotonic()
                at, chunk = coming.result()
                self.window["wait"] += time.monotonic() - began
                coming = ahead.submit(make, Position(at.epoch, at.chunk + 1))
                for number in range(at.step, len(chunk.steps)):
                    self.position = replace(at, step=number + 1)
                    yield chunk, chunk.steps[number]

    def update(self, chunk: C, batches: list[Rows]) -> None:
        """Do this process's part of one update; raises NoisegenError."""
        pairs = self.method.backward(self, chunk, batches)
        self.window["grad_norm"] += self.step(self.optimizer)
        done = self.progress
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + pairs)

    def step(self, optimizer: torch.optim.Optimizer) -> float:
        """Clip the gradients of all processes and step; return their norm.

        The learning rate rises linearly in the warm-up, then follows the `schedule`. Raises
        NoisegenError if the norm is not finite.
        """
        settings, done = self.settings, self.progress
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self.workers.sum_gradients(weights)
        norm = float(nn.utils.clip_grad_norm_(weights, settings.clip))
        if not math.isfinite(norm):
            where = f"; the last good weights are in {self.folder}" * self.method.is_resumable
            raise NoisegenError(
                f"the gradient of step {done.updates + 1} is {norm}{where}; use a lower lr"
                + ", or fp32" * (self.method.computation is not None)
            )
        warmed = (done.updates + 1) / max(1, settings.warmup)
        left = {"linear": 1 - done.done, "inverse_sqrt": max(1.0, warmed) ** -0.5}
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * min(1.0, warmed) * left.get(settings.schedule, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return norm

    def count(self, loss: Tensor, parts: Mapping[str, Tensor], share: float = 1.0) -> None:
        """Add a loss and its parts to the means of the log, which sum over all processes."""
        for name, value in {"loss": loss, **{f"loss_{k}": v for k, v in parts.items()}}.items():
            self.window[name] += value.detach().double() * share  # a float would wait for the GPU

    def _log(self) -> None:
        """Report the means of the updates since the last row; bound memory."""
        release_memory()
        window, self.window = self.window, defaultdict(float)
        now, last, self._logged = self.progress, self._logged, self.progress
        updates = max(1, now.updates - last.updates)
        seconds = max(1e-9, now.seconds - last.seconds)
        losses = {
            name: self.workers.summed(float(value)) / updates
            for name, value in sorted(window.items()) if name.startswith("loss")
        }  # fmt: skip
        if (computation := self.method.computation) is None:  # of frozen vectors
            spent = {"pairs_per_second": (now.pairs - last.pairs) / seconds}
        else:
            tokens, world = window["tokens"], self.workers.world
            share = computation.mfu(tokens / seconds, tokens / max(1, window["rows"]))
            spent = {
                "tokens": tokens * world, "tokens_per_second": tokens / seconds * world,
                **({} if share is None else {"mfu": share}),
                "padding": 1 - tokens / max(1, window["computed"]),
                "wait": min(1.0, window["wait"] / seconds),
            }  # fmt: skip
        self.report({
            "step": now.updates, **losses, "smoothed_loss": self._smooth(losses["loss"], updates),
            "grad_norm": window["grad_norm"] / updates,
            "lr": self.optimizer.param_groups[0]["lr"], "pairs": now.pairs,
            "epoch": self.position.epoch, **spent, "done": now.done, "seconds": now.seconds,
        })  # fmt: skip

    def _smooth(self, loss: float, updates: int) -> float:
        """Add the mean loss of some updates; return the exponential moving average."""
        kept = SMOOTHING**updates
        total, weight = self._smoothed
        self._smoothed = [kept * total + (1 - kept) * loss, kept * weight + 1 - kept]
        return self._smoothed[0] / self._smoothed[1]

    def report(self, row: dict[str, Any]) -> None:
        """Send a row of figures to all sinks."""
        for sink in self.sinks:
            sink(row)

    def validate(self) -> None:
        """Validate, and keep the weights if they are the best; raises what `Method.check` does."""
        began, now = self.clock.spent, self.progress
        figures = self.method.validate()
        validated = self.clock.spent
        self.report({"step": now.updates, **{f"validation_{k}": v for k, v in figures.items()}})
        self.validations.append(Validation(now.updates, now.seconds - now.prepared, figures))
        self._validated = now.updates
        self.method.check(self, figures)
        self._since_best += 1
        if self.best is None or figures[self.method.selects_by] < self.best:
            self.best, self._since_best = figures[self.method.selects_by], 0
            self._keep_best()
        self._since_best = int(self.workers.agreed(self._since_best))  # so that all stop together
        took = (validated - began) * (1 + self.method.is_altered)
        took += _FILES * (self.clock.spent - validated)
        self.progress = replace(now, closing=max(now.closing, self.workers.agreed(took)))

    def _keep_best(self) -> None:
        """Keep the weights: on disk, or in memory for a method without checkpoints."""
        if not self.method.is_resumable:
            state = self.method.network.state_dict()
            self._best_weights = {name: value.detach().clone() for name, value in state.items()}
        elif self.workers.leads:
            save_best(self.method.network, self.folder)

    def checkpoint(self) -> None:
        """Write a checkpoint, unless there is one of this step."""
        if not self.method.is_resumable:
            return
        if self.workers.leads and self._saved != self.progress.updates:
            validations = tuple(self.validations)
            state = State(self.progress, self.position, self.best, self.config, validations)
            network, keep = self.method.network, self.settings.keep
            save_checkpoint(self.folder, network, self.optimizer, state, keep)
        self._saved = self.progress.updates
        self.workers.wait()


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether a signal came; a second raises KeyboardInterrupt.

    Python delivers signals to the main thread only: in another thread nothing is deferred.
    """
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in _SIGNALS} if is_main else {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def json_lines(path: Path, step: int) -> Sink:
    """Return a sink that writes one JSON line per row, its figures rounded to six digits.

    A resumed run keeps the lines up to its step, without those that were cut short.
    """
    lines = path.read_text("utf-8", "replace").splitlines() if step and path.exists() else []
    steps = ((line, re.fullmatch(r'\{"step": (\d+),.*\}', line)) for line in lines)
    write_text(path, "".join(f"{line}\n" for line, row in steps if row and int(row[1]) <= step))

    def write(row: dict[str, Any]) -> None:
        rounded = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in row.items()
        }
        with writing(path), path.open("a") as file:
            file.write(json.dumps(rounded) + "\n")

    return write


def tensorboard(folder: Path) -> Sink:
    """Return a sink for TensorBoard; raises MissingExtra."""
    with naming_extras():
        from torch.utils.tensorboard import SummaryWriter
    writer: Any = SummaryWriter(str(folder))

    def write(row: dict[str, Any]) -> None:
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                writer.add_scalar(name, value, row["step"])
        writer.flush()

    return write


_SHOWN = {
    "step": "step {:,}", "smoothed_loss": "loss {:.4f}", "validation_loss": "held out {:.4f}",
    "tokens_per_second": "{:,.0f} tokens/s", "mfu": "mfu {:.0%}",
}  # fmt: skip


def line_of(row: Mapping[str, Any]) -> str:
    """Return the figures of a step as one line, as far as its method has them."""
    return ", ".join(words.format(row[name]) for name, words in _SHOWN.items() if name in row)
