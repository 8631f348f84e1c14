"""The trainer of every method: one loop of updates, with validation, checkpoints and a log.

A `Method` says what is trained, and on what.
"""

import json
import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from noisegen.encoders.tokens import Rows
from noisegen.errors import MissingExtra, NoisegenError
from noisegen.runs.files import write_text, writing
from noisegen.runs.progress import Progress, Show
from noisegen.training.batches import Position
from noisegen.training.checkpoint import (
    RunProgress,
    State,
    load_checkpoint,
    load_weights,
    save_best,
    save_checkpoint,
)
from noisegen.training.computation import Computation, Workers
from noisegen.training.settings import RunSettings, Sink, Tell

LOG_EVERY = 10  # updates
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class EpochPart(Protocol):
    """A part of an epoch: `steps` are its updates, each some batches of row numbers."""

    @property
    def steps(self) -> list[list[Rows]]:
        """The updates."""
        ...


C = TypeVar("C", bound=EpochPart)


class Method(ABC, Generic[C]):
    """A way of training: how data are read, a network learns, and its files are written.

    An object opens its models when it is made, and refuses settings that cannot be trained. Its
    `network` is what the optimizer updates and checkpoints keep.
    """

    is_resumable: ClassVar[bool] = True  # whether checkpoints are written
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.AdamW
    settings: RunSettings
    workers: Workers
    network: nn.Module
    pairs_read: int
    rows: int  # pairs of an epoch: those that are not held out
    computation: Computation | None = None
    patience: float = math.inf  # validations without a new best after which a run ends

    @abstractmethod
    def __init__(self, settings: Any, workers: Workers, tell: Tell) -> None: ...

    @property
    @abstractmethod
    def digest(self) -> str:
        """A hex digest of the models that a run begins with."""

    @property
    def validate_every(self) -> int:
        """Updates between validations."""
        return self.settings.validate_every

    @abstractmethod
    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read DATA into the folder, unless a resumed run has it; return a summary of it."""

    @abstractmethod
    def estimate(self) -> dict[str, Any]:
        """Return what a run on the data that were read will cost."""

    @abstractmethod
    def prepare(self, folder: Path, progress: Show) -> None:
        """Make everything else that the first update needs, such as the teacher's vectors."""

    @abstractmethod
    def chunks(self, start: Position) -> Iterator[tuple[Position, C]]:
        """Yield chunks without end, with where they are."""

    @abstractmethod
    def backward(self, trainer: "Trainer[C]", chunk: C, batches: list[Rows]) -> int:
        """Add up this process's part of the gradient; return the pairs of the whole update."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Return figures of the network as it is; `loss` chooses the best weights."""

    def check(self, trainer: "Trainer[C]", figures: Mapping[str, float]) -> None:
        """Raise NoisegenError where a run with such figures is not to go on."""

    @abstractmethod
    def export(
        self, out: Path, recorded: Mapping[str, Any], reached: Mapping[str, Any],
        best: Mapping[str, float],
    ) -> dict[str, Any]:  # fmt: skip
        """Write the network as it is into RUN; return what metrics.json says.

        `recorded` is what config.yaml says, `reached` the updates, pairs and seconds, `best` the
        figures of the best validation with its step.
        """


def adam(
    kind: type[torch.optim.Optimizer], network: nn.Module, settings: RunSettings
) -> torch.optim.Optimizer:
    """Return Adam or AdamW over the weights of a network that are trained."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    options: dict[str, Any] = {"betas": settings.betas, "eps": settings.eps, "fused": True}
    return kind(weights, lr=settings.lr, weight_decay=settings.weight_decay, **options)  # type: ignore[call-arg]


def learning_rate(settings: RunSettings, progress: RunProgress, rows: int) -> float:
    """Return the rate of the next update: a linear warm-up, then a linear fall or none."""
    warm = min(1.0, (progress.updates + 1) / max(1, settings.warmup))
    fall = 1 - progress.share(settings, rows) if settings.schedule == "linear" else 1.0
    return settings.lr * warm * fall


class Trainer(Generic[C]):
    """One run of a method in the folder RUN, from a position to its end."""

    def __init__(
        self, method: Method[C], folder: Path, *, config: str = "", sinks: Sequence[Sink] = ()
    ) -> None:
        self.method, self.settings, self.workers = method, method.settings, method.workers
        self.folder, self.config = folder / "checkpoints", config
        self.sinks = list(sinks)  # each takes every row of the log
        self.optimizer = adam(method.optimizer_class, method.network, self.settings)
        self.progress, self.position = RunProgress(), Position()
        self.best: float | None = None
        self.best_figures: dict[str, float] = {}
        self.window: dict[str, Any] = defaultdict(float)  # sums since the last row of the log
        self._best_weights: dict[str, Tensor] = {}  # of a method without checkpoints
        self._interrupted: Callable[[], bool] = lambda: False
        self._logged = RunProgress()
        self._saved = self._validated = -1
        self._since_best = 0

    def report(self, row: dict[str, Any]) -> None:
        """Give a row of figures to all sinks."""
        for sink in self.sinks:
            sink(row)

    @property
    def is_done(self) -> bool:
        """Whether the run is at its end."""
        share = self.progress.share(self.settings, self.method.rows)
        return share >= 1 or self._since_best >= self.method.patience

    def resume(self) -> None:
        """Take up the newest checkpoint; raises OutputError."""
        state = load_checkpoint(self.folder, self.method.network, self.optimizer, self.config)
        self.progress, self.position, self.best = state.progress, state.position, state.best
        self._saved, self._logged = self.progress.updates, self.progress

    def run(self) -> None:
        """Train to the end, then take up the best weights.

        Raises NoisegenError for a gradient that is no number, and what `Method.check` raises; what
        was good is kept in checkpoints. Ctrl-C and SIGTERM wait for the end of an update and a
        checkpoint, then raise KeyboardInterrupt; a second one raises it at once.
        """
        self.method.network.train()
        with deferred_interrupts() as self._interrupted:
            if not self.progress.updates:
                self.validate()
            if not self.is_done:
                self._train()
            if self._validated != self.progress.updates:
                self.validate()
            self.checkpoint()
            self._stop_if_asked()
        if self.workers.leads:
            if self.method.is_resumable:
                load_weights(self.method.network, self.folder / "best.safetensors")
            else:
                self.method.network.load_state_dict(self._best_weights)

    def _train(self) -> None:
        began = time.monotonic() - self.progress.seconds
        for chunk, number, batches, waited in self.steps():
            self.window["wait"] += waited
            self.update(chunk, batches)
            seconds = self.workers.agreed(time.monotonic() - began)
            self.progress = replace(self.progress, seconds=seconds)
            self.position = replace(self.position, step=number + 1)
            step = self.progress.updates
            if step % LOG_EVERY == 0 or step == 1:
                self._log()
            if step % self.method.validate_every == 0:
                self.validate()
                self.checkpoint()
            self._stop_if_asked()
            if self.is_done:
                return

    def _stop_if_asked(self) -> None:
        """Stop all processes where one of them was asked to."""
        if self.workers.agreed(float(self._interrupted())):
            self.checkpoint()
            raise KeyboardInterrupt

    def steps(self) -> Generator[tuple[C, int, list[Rows], float], None, None]:
        """Yield every step from the position on: chunk, number, batches, seconds of waiting."""
        chunks = self.method.chunks(self.position)
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
        pairs = self.method.backward(self, chunk, batches)
        self.window["grad_norm"] += self.step(self.optimizer)
        done = self.progress
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + pairs)

    def step(self, optimizer: torch.optim.Optimizer) -> float:
        """Clip the gradients of all processes and step; return their norm.

        Raises NoisegenError where that is no number.
        """
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self.workers.sum_gradients(weights)
        norm = float(nn.utils.clip_grad_norm_(weights, self.settings.clip))
        if not math.isfinite(norm):
            kept = f"; the last good weights are in {self.folder}" * self.method.is_resumable
            raise NoisegenError(
                f"the gradient of step {self.progress.updates + 1} is {norm}{kept}: try a lower lr"
                + ", or fp32" * (self.method.computation is not None)
            )
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, self.progress, self.method.rows)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return norm

    def count(self, losses: Mapping[str, Tensor], share: float = 1.0) -> None:
        """Add losses to the means of the log; those of all processes are summed."""
        for name, value in losses.items():
            self.window[name] += value.detach().double() * share  # a float would wait for the GPU

    def _log(self) -> None:
        """Report the means of the updates since the last row."""
        window, self.window = self.window, defaultdict(float)
        now, last, self._logged = self.progress, self._logged, self.progress
        updates = max(1, now.updates - last.updates)
        seconds = max(1e-9, now.seconds - last.seconds)
        done = now.share(self.settings, self.method.rows)
        losses = {
            name: self.workers.summed(float(value)) / updates
            for name, value in sorted(window.items()) if name.startswith("loss")
        }  # fmt: skip
        self.report({
            "step": now.updates, **losses, "grad_norm": window["grad_norm"] / updates,
            "lr": self.optimizer.param_groups[0]["lr"], "pairs": now.pairs,
            "epoch": self.position.epoch, **self._speed(window, now.pairs - last.pairs, seconds),
            "done": done, "seconds": now.seconds,
            "eta": now.seconds * (1 - done) / max(done, 1e-9),
        })  # fmt: skip

    def _speed(self, window: Mapping[str, Any], pairs: int, seconds: float) -> dict[str, float]:
        """Return tokens per second and what they were spent on, or pairs of frozen vectors."""
        if self.method.computation is None:
            return {"pairs_per_second": pairs / seconds}
        speed, world = window["tokens"] / seconds, self.workers.world
        share = self.method.computation.mfu(speed, window["tokens"] / max(1, window["rows"]))
        return {
            "tokens": window["tokens"] * world, "tokens_per_second": speed * world,
            **({} if share is None else {"mfu": share}),
            "padding": 1 - window["tokens"] / max(1, window["computed"]),
            "wait": min(1.0, window["wait"] / seconds),
        }  # fmt: skip

    def validate(self) -> None:
        """Measure; keep the weights if they are the best; raises what `Method.check` does."""
        figures, step = self.method.validate(), self.progress.updates
        self.report({"step": step, **{f"validation_{k}": v for k, v in figures.items()}})
        self._validated = step
        self.method.check(self, figures)
        if self.best is not None and figures["loss"] >= self.best:
            self._since_best += 1
            return
        self.best, self._since_best = figures["loss"], 0
        self.best_figures = {**figures, "step": step}
        if not self.method.is_resumable:
            state = self.method.network.state_dict()
            self._best_weights = {name: value.detach().clone() for name, value in state.items()}
        elif self.workers.leads:
            save_best(self.method.network, self.folder)

    def checkpoint(self) -> None:
        """Write a checkpoint, unless this step has one."""
        if not self.method.is_resumable:
            return
        if self.workers.leads and self._saved != self.progress.updates:
            state = State(self.progress, self.position, self.best, self.config)
            save_checkpoint(
                self.folder, self.method.network, self.optimizer, state, self.settings.keep
            )
        self._saved = self.progress.updates
        self.workers.wait()


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield what tells whether a signal asked to stop; a second one raises KeyboardInterrupt.

    Python hands signals to the main thread alone: in another one nothing is held back.
    """
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in _SIGNALS} if main else {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


class JsonLines:
    """A line a row; a resumed run goes on after the step it resumes from."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        rows = [line for line in kept if _step(line) <= step] if step else []
        write_text(path, "".join(f"{line}\n" for line in rows))

    def __call__(self, row: dict[str, Any]) -> None:
        """Write it, rounded to six digits."""
        with writing(self.path), self.path.open("a") as file:
            file.write(json.dumps({key: _rounded(value) for key, value in row.items()}) + "\n")


def _step(line: str) -> float:
    """Return the step of a line; a line that was cut short belongs to none."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def tensorboard(folder: Path) -> Sink:
    """Return a sink for TensorBoard; raises MissingExtra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("tensorboard", "tensorboard") from error
    writer: Any = SummaryWriter(str(folder))

    def write(row: dict[str, Any]) -> None:
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                writer.add_scalar(name, value, row["step"])
        writer.flush()

    return write


def shown_steps(progress: Show) -> Sink:
    """Return a sink that shows the rows of updates."""
    return lambda row: progress(Progress(line_of(row))) if "loss" in row else None


_SHOWN = (
    ("tokens_per_second", "{:,.0f} tok/s"),
    ("pairs_per_second", "{:,.0f} pairs/s"),
    ("padding", "pad {:.1%}"),
    ("mfu", "mfu {:.0%}"),
    ("wait", "wait {:.0%}"),
    ("done", "{:.0%}"),
)  # figures of a row, those that its method has


def line_of(row: dict[str, Any]) -> str:
    """Return the figures of a step in one line."""
    parts = " ".join(
        f"{name.removeprefix('loss_')} {row[name]:.4f}"
        for name in row
        if name.startswith("loss_") and len([n for n in row if n.startswith("loss_")]) > 1
    )
    shown = [f"step {row['step']:,}", f"loss {row['loss']:.4f}" + (f" ({parts})" if parts else "")]
    shown += [words.format(row[name]) for name, words in _SHOWN if row.get(name) is not None]
    shown.append(f"eta {clock(row['eta'])}")
    return "  ".join(shown)


def clock(seconds: float) -> str:
    """Return 1h02m, 6m12s or 9s."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{left:02d}s" if minutes else f"{left}s"
