"""The trainer of every method: one loop of updates, with validation, checkpoints and a log.

A `Method` says what is trained, and on what.
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
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import Encoder
from noisegen.encoders.tokens import Rows
from noisegen.errors import NoisegenError, naming_extras
from noisegen.runs.atomic import write_text, writing
from noisegen.runs.progress import Show
from noisegen.training.checkpoint import (
    Position,
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


@dataclass(frozen=True)
class Chunk:
    """A part of an epoch: `steps` are its updates, each some batches of row numbers."""

    steps: list[list[Rows]]


C = TypeVar("C", bound=Chunk)


class Method(ABC, Generic[C]):
    """A way of training: how data are read, a network learns, and its files are written.

    An object opens its models when it is made, and refuses settings that cannot be trained. Its
    `network` is what the optimizer updates and checkpoints keep.
    """

    is_resumable: ClassVar[bool] = True  # whether checkpoints are written
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.AdamW
    settings: RunSettings
    workers: Workers
    start: Encoder  # what the run begins with: the teacher, or the network as it is
    network: nn.Module
    pairs_read: int
    rows: int  # pairs of an epoch: those that are not held out
    computation: Computation | None = None
    patience: float = math.inf  # validations without a new best after which a run ends
    unvalidated: float = math.inf  # updates between validations, at most

    @abstractmethod
    def __init__(self, settings: Any, workers: Workers, tell: Tell) -> None: ...

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
    def chunk(self, epoch: int, number: int) -> C | None:
        """Return a chunk of an epoch; None where it has no more. Called in a thread, ahead."""

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
        self, out: Path, trainer: "Trainer[C]", recorded: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Write the network as it is into RUN; return what metrics.json says.

        `recorded` is what config.yaml says.
        """


def adam(
    kind: type[torch.optim.Optimizer], network: nn.Module, settings: RunSettings
) -> torch.optim.Optimizer:
    """Return Adam or AdamW over the weights of a network that are trained."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    options: dict[str, Any] = {"betas": settings.betas, "eps": settings.eps, "fused": True}
    return kind(weights, lr=settings.lr, weight_decay=settings.weight_decay, **options)  # type: ignore[call-arg]


class Trainer(Generic[C]):
    """One run of a method in the folder RUN, from a position to its end."""

    def __init__(self, method: Method[C], folder: Path, *, config: str = "") -> None:
        self.method, self.settings, self.workers = method, method.settings, method.workers
        self.folder, self.config = folder / "checkpoints", config
        self.sinks: list[Sink] = []  # each takes every row of the log
        self.optimizer = adam(method.optimizer_class, method.network, self.settings)
        self.progress, self.position = RunProgress(), Position()
        self.best: float | None = None
        self.best_figures: dict[str, float] = {}
        self.window: dict[str, Any] = defaultdict(float)  # sums since the last row of the log
        self._best_weights: dict[str, Tensor] = {}  # of a method without checkpoints
        self._logged = RunProgress()
        self._saved = self._validated = -1
        self._since_best = 0

    @property
    def reached(self) -> dict[str, float]:
        """What metrics.json says of the progress."""
        return {**asdict(self.progress), "seconds": round(self.progress.seconds, 1)}

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
        with deferred_interrupts() as interrupted, closing(self.steps()) as steps:
            if not self.progress.updates:
                self.validate()
            began = time.monotonic() - self.progress.seconds
            while not self.is_done:
                self.update(*next(steps))
                seconds = self.workers.agreed(time.monotonic() - began)
                self.progress = replace(self.progress, seconds=seconds)
                step = self.progress.updates
                if step % LOG_EVERY == 0 or step == 1:
                    self._log()
                if step % min(self.settings.validate_every, self.method.unvalidated) == 0:
                    self.validate()
                    self.checkpoint()
                self._stop_if(interrupted)
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

    def _stop_if(self, interrupted: Callable[[], bool]) -> None:
        """Stop all processes where one of them was asked to."""
        if self.workers.agreed(float(interrupted())):
            self.checkpoint()
            raise KeyboardInterrupt

    def steps(self) -> Generator[tuple[C, list[Rows]], None, None]:
        """Yield the updates from the position on, without end, each a chunk and batches of it.

        The position is then that of the next one. A chunk is made while the one before is trained
        on.
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
        """Do one update, of which this process does its part; raises NoisegenError."""
        pairs = self.method.backward(self, chunk, batches)
        self.window["grad_norm"] += self.step(self.optimizer)
        done = self.progress
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + pairs)

    def step(self, optimizer: torch.optim.Optimizer) -> float:
        """Clip the gradients of all processes and step; return their norm.

        The learning rate rises linearly in the warm-up, then falls linearly or stays. Raises
        NoisegenError where the norm is no number.
        """
        settings, done = self.settings, self.progress
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self.workers.sum_gradients(weights)
        norm = float(nn.utils.clip_grad_norm_(weights, settings.clip))
        if not math.isfinite(norm):
            where = f"; the last good weights are in {self.folder}" * self.method.is_resumable
            raise NoisegenError(
                f"the gradient of step {done.updates + 1} is {norm}{where}: try a lower lr"
                + ", or fp32" * (self.method.computation is not None)
            )
        warm = min(1.0, (done.updates + 1) / max(1, settings.warmup))
        is_linear = settings.schedule == "linear"
        left = 1 - done.share(settings, self.method.rows) if is_linear else 1.0
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * warm * left
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return norm

    def count(self, loss: Tensor, parts: Mapping[str, Tensor], share: float = 1.0) -> None:
        """Add a loss and its parts to the means of the log; those of all processes are summed."""
        for name, value in {"loss": loss, **{f"loss_{k}": v for k, v in parts.items()}}.items():
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
            "step": now.updates, **losses, "grad_norm": window["grad_norm"] / updates,
            "lr": self.optimizer.param_groups[0]["lr"], "pairs": now.pairs,
            "epoch": self.position.epoch, **spent, "done": done, "seconds": now.seconds,
            "eta": now.seconds * (1 - done) / max(done, 1e-9),
        })  # fmt: skip

    def report(self, row: dict[str, Any]) -> None:
        """Give a row of figures to all sinks."""
        for sink in self.sinks:
            sink(row)

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
            network, keep = self.method.network, self.settings.keep
            save_checkpoint(self.folder, network, self.optimizer, state, keep)
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

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in _SIGNALS} if is_main else {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def json_lines(path: Path, step: int) -> Sink:
    """Return a sink that writes a line a row, its figures rounded to six digits.

    What a resumed run wrote up to the step that it resumes from stays; lines cut short do not.
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
    "tokens_per_second": "{:,.0f} tok/s", "pairs_per_second": "{:,.0f} pairs/s",
    "padding": "pad {:.1%}", "mfu": "mfu {:.0%}", "wait": "wait {:.0%}", "done": "{:.0%}",
}  # fmt: skip


def line_of(row: Mapping[str, Any]) -> str:
    """Return the figures of a step in one line, those that its method has."""
    losses = [name for name in row if name.startswith("loss_")]
    parts = " ".join(f"{name.removeprefix('loss_')} {row[name]:.4f}" for name in losses)
    return "  ".join([
        f"step {row['step']:,}", f"loss {row['loss']:.4f}" + f" ({parts})" * (len(losses) > 1),
        *(words.format(row[name]) for name, words in _SHOWN.items() if row.get(name) is not None),
        f"eta {timedelta(seconds=round(row['eta']))}",
    ])  # fmt: skip
