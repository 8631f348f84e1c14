"""The trainer of all methods: one loop of updates, with validation, checkpoints and a log.

A `Method` defines the network, its data and its loss; `Trainer.run` is the loop.
"""

import json
import math
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
from noisegen.errors import NoisegenError
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
from noisegen.training.clock import UNLIMITED, Clock
from noisegen.training.computation import Computation, Workers
from noisegen.training.log import SmoothedLoss
from noisegen.training.settings import LAST, RunSettings, Sink, Tell

LOG_EVERY = 10  # updates per row of the log
# Time for files at the end of a run, in multiples of the time to save the best weights: 3 to write
# a checkpoint, 1 to read the best weights, 1 to write the student.
_FILES_AT_END = 5
_NO_SCALER = torch.amp.GradScaler("cpu", enabled=False)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Chunk:
    """Part of an epoch; `steps` has the batches of each update, as arrays of row indices."""

    steps: list[list[Rows]]


@dataclass(frozen=True)
class Rehearsal:
    """Result of a shortened preparation, from which a dry run estimates the cost of a run.

    `vectors`: estimated seconds that a run takes for results that a dry run replaces by random
    ones, such as the teacher's vectors. `shortened`: held-out pairs of a run per held-out pair of
    the dry run.
    """

    vectors: float = 0.0
    shortened: float = 1.0


C = TypeVar("C", bound=Chunk)


class Method(ABC, Generic[C]):
    """A training method: how it reads data, computes gradients, validates and writes its files.

    The constructor opens the models, and raises UsageError for unusable settings. The optimizer
    updates the weights of `network`, and checkpoints contain these weights.
    """

    is_resumable: ClassVar[bool] = True  # true if the trainer writes checkpoints
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.AdamW
    settings: RunSettings
    workers: Workers
    start: Encoder  # the teacher, the frozen encoder, or the network before training
    network: nn.Module
    pairs_read: int
    rows: int  # training pairs per epoch; held-out pairs are not counted
    computation: Computation | None = None
    validation_interval: float = math.inf  # maximum number of updates between validations
    # Validation figure whose minimum chooses the weights, or LAST: the weights at the end.
    selects_by = "loss"
    # Validation figures of the network before `prepare` changed it; None if it was not changed.
    before: Mapping[str, float] | None = None
    changes_best_weights = False  # true if `export` changes the best weights before it saves them

    @abstractmethod
    def __init__(self, settings: Any, workers: Workers, tell: Tell) -> None: ...

    @abstractmethod
    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Copy DATA into the folder, unless a resumed run has the copy; return a summary."""

    @abstractmethod
    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Compute everything that the first update needs, such as the teacher's vectors."""

    @abstractmethod
    def rehearse(self) -> Rehearsal:
        """Prepare for a dry run, which times some updates and a short validation.

        Slow results, such as the teacher's vectors, are replaced by random ones.
        """

    @abstractmethod
    def estimate(self, chunk: C) -> dict[str, Any]:
        """Return the sizes of the network and the data; `chunk` is the first chunk of the data."""

    @abstractmethod
    def chunk(self, epoch: int, number: int) -> C | None:
        """Return the chunk with index `number` of an epoch; None after the last chunk.

        A second thread calls this while the trainer uses the previous chunk.
        """

    def load(self, chunk: C, batches: list[Rows], update: int) -> Any:
        """Return what `backward` needs on the device, besides the chunk, for an update.

        `update` is the number of updates before. A second thread calls this during the previous
        update.
        """
        return None

    @abstractmethod
    def backward(self, trainer: "Trainer[C]", chunk: C, batches: list[Rows], loaded: Any) -> int:
        """Compute the gradient of an update over all processes; return its number of pairs.

        `batches` has the batches of the update for all processes: arrays of row indices in `chunk`.
        `loaded` is the result of `load`.
        """

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Return validation figures by name, among them `loss` and the name in `selects_by`."""

    def check(self, trainer: "Trainer[C]", figures: Mapping[str, float]) -> None:
        """Raise NoisegenError if a run with these validation figures must stop."""

    @abstractmethod
    def export(self, trainer: "Trainer[C]") -> dict[str, Any]:
        """Write the results of the run into RUN; return the content of metrics.json."""


def adam(
    kind: type[torch.optim.Optimizer], network: nn.Module, settings: RunSettings
) -> torch.optim.Optimizer:
    """Return an optimizer of class `kind`, Adam or AdamW, for a network's trainable weights."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    options: dict[str, Any] = {"betas": settings.betas, "eps": settings.eps, "fused": True}
    return kind(weights, lr=settings.lr, weight_decay=settings.weight_decay, **options)  # type: ignore[call-arg]


class Trainer(Generic[C]):
    """Runs a method in the folder RUN: from the start or a checkpoint to the end of training."""

    def __init__(
        self,
        method: Method[C],
        out: Path,
        recorded: Mapping[str, Any] | None = None,
        clock: Clock = UNLIMITED,
    ) -> None:
        self.method, self.settings, self.workers = method, method.settings, method.workers
        self.out, self.folder, self.clock = out, out / "checkpoints", clock
        self.recorded = dict(recorded or {})  # the content of config.yaml
        inputs = [self.recorded, method.pairs_read, method.start.digest]
        self.config = sha256(json.dumps(inputs).encode()).hexdigest()
        self.sinks: list[Sink] = []  # each takes every row of the log
        self.optimizer = adam(method.optimizer_class, method.network, self.settings)
        self.progress, self.position = RunProgress(), Position()
        self.validations: list[Validation] = []
        self.window: dict[str, Any] = defaultdict(float)  # sums since the last row of the log
        self._smoothed = SmoothedLoss()
        self._start = RunProgress()  # progress before the first update of this session
        self._logged = RunProgress()  # progress at the last row of the log
        # Updates, their gradient norms, and whether these are logged; not yet read from the device.
        self._norms: list[tuple[int, Tensor, bool]] = []
        self._meeting = 0  # number of updates at the next exchange of times and signals
        self._best_weights: dict[str, Tensor] = {}  # empty for methods with checkpoints
        self._saved = -1  # number of updates at the last checkpoint
        self._validated = -1  # number of updates at the last validation
        self._since_best = 0  # number of validations after the best one

    def run(self) -> None:
        """Train to the end, then load the best weights.

        Raises NoisegenError if a gradient is not finite, and the errors of `Method.check`;
        checkpoints keep the last good weights. Ctrl-C and SIGTERM wait for the end of an update and
        a checkpoint, then raise KeyboardInterrupt; a second signal raises it at once.
        """
        self.method.network.train()
        with deferred_interrupts() as interrupted, closing(self.steps()) as steps:
            if not self.progress.updates:
                self.validate()
            self._begin()
            while not self.is_done:
                before = self.progress.done
                self.update(*next(steps))
                self._close_update(before, interrupted)
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

    def _close_update(self, before: float, interrupted: Callable[[], bool]) -> None:
        """Log, validate and stop after an update, each when it is time.

        `before` is the share of the run that was done before the update.
        """
        meets = self._meets()
        self._advance(meets=meets)
        if self.progress.updates % LOG_EVERY == 0 or self.progress.updates == 1:
            self._log()
        if self._needs_validation(before):
            self.validate()
            self.checkpoint()
            self._advance()
        if meets:
            self._stop_if(interrupted)

    def resume(self) -> None:
        """Continue from the newest checkpoint, if there is one; raises OutputError."""
        if not checkpoints(self.folder):
            return
        state = load_checkpoint(self.folder, self.method.network, self.optimizer, self.config)
        self._scaler.load_state_dict(state.scaler)
        self.progress, self.position = state.progress, state.position
        self.validations = list(state.validations)
        self._since_best = self._validations_since_best()
        self.clock.add(self.progress.seconds, self.progress.cpu)
        self._saved = self.progress.updates

    def steps(self) -> Generator[tuple[C, list[Rows], Any], None, None]:
        """Yield the data of each update, without end: arguments of `update`.

        Begins with the update at `position`; before each yield, `position` moves to the next
        update. Threads make the next chunk, and load the next batches of the current chunk, while
        the current ones are in use.
        """

        def make(at: Position) -> tuple[Position, C]:
            chunk = self.method.chunk(at.epoch, at.chunk)
            if chunk is None:
                at = Position(at.epoch + 1)
                chunk = self.method.chunk(at.epoch, 0)
            assert chunk is not None  # each epoch has at least one chunk
            return at, chunk

        with ThreadPoolExecutor(2) as ahead:
            coming = ahead.submit(make, self.position)
            while True:
                began = time.monotonic()
                at, chunk = coming.result()
                self.window["wait"] += time.monotonic() - began
                coming = ahead.submit(make, Position(at.epoch, at.chunk + 1))
                updates, loading = self.progress.updates - at.step, None
                for number, batches in enumerate(chunk.steps[at.step :], at.step):
                    began = time.monotonic()
                    if loading is None:
                        loading = ahead.submit(self.method.load, chunk, batches, updates + number)
                    loaded, loading = loading.result(), None
                    self.window["wait"] += time.monotonic() - began
                    if number + 1 < len(chunk.steps):
                        after = chunk.steps[number + 1], updates + number + 1
                        loading = ahead.submit(self.method.load, chunk, *after)
                    self.position = replace(at, step=number + 1)
                    yield chunk, batches, loaded

    def update(self, chunk: C, batches: list[Rows], loaded: Any = None) -> None:
        """Do this process's part of an update; `loaded` is the result of `Method.load`, if known.

        Raises NoisegenError if a gradient is not finite, up to `LOG_EVERY` updates later.
        """
        done = self.progress
        if loaded is None:
            loaded = self.method.load(chunk, batches, done.updates)
        pairs = self.method.backward(self, chunk, batches, loaded)
        self.step(self.optimizer)
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + pairs)
        if len(self._norms) >= LOG_EVERY:
            self._check_gradients()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Clip the gradients of the optimizer's weights, and update the weights."""
        settings = self.settings
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        scaler = self._scaler
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(weights, settings.clip)
        # The norm stays on the device: reading it would wait for the GPU.
        self._norms.append((self.progress.updates + 1, norm, optimizer is self.optimizer))
        for group in optimizer.param_groups:
            group["lr"] = self._learning_rate()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)

    @property
    def _scaler(self) -> torch.amp.GradScaler:
        """The scaler of fp16; it does nothing in other precisions, and for heads."""
        computation = self.method.computation
        return _NO_SCALER if computation is None else computation.scaler

    def _check_gradients(self) -> None:
        """Read the gradient norms since the last call; raise NoisegenError if one is not finite.

        In fp16, an update with such a norm is skipped, and the next one has a smaller scale. Only a
        scale below 1 is an error then.
        """
        norms, self._norms = self._norms, []
        if not norms:
            return
        values = torch.stack([norm for _, norm, _ in norms]).tolist()
        may_skip = self._scaler.is_enabled() and self._scaler.get_scale() >= 1
        for (update, _, is_logged), norm in zip(norms, values, strict=True):
            if may_skip and not math.isfinite(norm):
                continue
            if not math.isfinite(norm):
                message = f"the gradient of step {update} is {norm}"
                if self.method.is_resumable:
                    message += f"; the last good weights are in {self.folder}"
                message += "; use a lower lr"
                if self.method.computation is not None:
                    message += ", or fp32"
                raise NoisegenError(message)
            self.window["grad_norm"] += norm * is_logged
            self.window["norms"] += is_logged

    def _learning_rate(self) -> float:
        """Return the learning rate of the next update: a linear warm-up, then the `schedule`."""
        settings, done = self.settings, self.progress
        warmed = (done.updates + 1) / max(1, settings.warmup)
        rate = settings.lr * min(1.0, warmed)
        if settings.schedule == "linear":
            return rate * (1 - done.done)
        if settings.schedule == "inverse_sqrt":
            return float(rate * max(1.0, warmed) ** -0.5)
        return rate

    def count(self, loss: Tensor, parts: Mapping[str, Tensor], share: float = 1.0) -> None:
        """Multiply a loss and its parts by `share`, and add them to the sums for the log."""
        named = {"loss": loss, **{f"loss_{name}": part for name, part in parts.items()}}
        for name, value in named.items():
            # The sum stays on the device: converting to a float would wait for the GPU.
            self.window[name] += value.detach().double() * share

    def validate(self) -> None:
        """Validate, and keep the weights if they are the best; raises the errors of `Method.check`.

        Also estimates the time needed at the end of the run, from the time that this takes;
        `progress.closing` is the largest estimate so far.
        """
        self._check_gradients()
        began, now = self.clock.spent, self.progress
        figures = self.method.validate()
        validated = self.clock.spent
        named = {f"validation_{name}": value for name, value in figures.items()}
        self.report({"step": now.updates, **named})
        self.validations.append(Validation(now.updates, now.seconds - now.prepared, figures))
        self._validated = now.updates
        self.method.check(self, figures)
        since_best = self._validations_since_best()
        if since_best == 0:
            self._keep_best()
        self._since_best = int(self.workers.maximum(since_best))  # maximum over all processes
        closing_seconds = validated - began
        if self.method.changes_best_weights:
            closing_seconds *= 2  # `export` validates again, with changed weights
        closing_seconds += _FILES_AT_END * (self.clock.spent - validated)
        closing_seconds = max(now.closing, self.workers.maximum(closing_seconds))
        self.progress = replace(now, closing=closing_seconds)

    def _validations_since_best(self) -> int:
        """Return the number of validations after the best one."""
        return len(self.validations) - 1 - self._best_index()

    def _best_index(self) -> int:
        """Return the index of the validation whose weights are kept, as `selects_by` names it."""
        name = self.method.selects_by
        if name == LAST:
            return len(self.validations) - 1
        figures = [validation.figures[name] for validation in self.validations]
        return figures.index(min(figures))

    def _keep_best(self) -> None:
        """Keep the weights as the best: on disk, or in memory for a method without checkpoints."""
        if not self.method.is_resumable:
            state = self.method.network.state_dict()
            self._best_weights = {name: value.detach().clone() for name, value in state.items()}
        elif self.workers.leads:
            save_best(self.method.network, self.folder)

    def checkpoint(self) -> None:
        """Write a checkpoint, unless the last checkpoint has the same number of updates."""
        if not self.method.is_resumable:
            return
        self._check_gradients()
        if self.workers.leads and self._saved != self.progress.updates:
            scaler = self._scaler.state_dict()
            validations = tuple(self.validations)
            state = State(self.progress, self.position, self.config, validations, scaler)
            network, keep = self.method.network, self.settings.keep
            save_checkpoint(self.folder, network, self.optimizer, state, keep)
        self._saved = self.progress.updates
        self.workers.wait()

    def _needs_validation(self, before: float) -> bool:
        """Return whether to validate now.

        `before` is the share of the run that was done before the last update. A run with a limit
        also validates halfway, since the forecast after the run uses the loss at that time. There
        is no validation if the time left is enough for only one more, at the end of the run.
        """
        now = self.progress
        every = min(self.settings.validate_every, self.method.validation_interval)
        is_half = self.settings.limit and before < 0.5 <= now.done < 1
        has_time = self.clock.limit - self._spent(now) >= 2 * now.closing
        return has_time and bool(now.updates % every == 0 or is_half)

    def _stop_if(self, interrupted: Callable[[], bool]) -> None:
        """Write a checkpoint and raise KeyboardInterrupt if any process was interrupted."""
        if self.workers.maximum(float(interrupted())):
            self.checkpoint()
            raise KeyboardInterrupt

    @property
    def is_done(self) -> bool:
        """Whether the run is at its end."""
        return self.progress.done >= 1 or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether the run ends early: `patience` validations in a row brought no new best."""
        patience = self.settings.patience
        return patience is not None and self._since_best >= patience and self.progress.done < 1

    def _begin(self) -> None:
        """Record the time of the first update: the time before it counts as preparation."""
        last, now = self.progress, self._timed()
        prepared = last.prepared + now.seconds - last.seconds
        cpu_prepared = last.cpu_prepared + now.cpu - last.cpu
        self._start = replace(now, prepared=prepared, cpu_prepared=cpu_prepared)
        self._start = replace(self._start, done=self._share_done(self._start))
        self.progress = self._logged = self._start

    def _meets(self) -> bool:
        """Return whether the processes exchange times and signals after this update.

        A process alone always does. Several do at every row of the log, and about once a second.
        """
        updates = self.progress.updates
        return self.workers.world == 1 or updates >= self._meeting or updates % LOG_EVERY == 0

    def _advance(self, *, meets: bool = True) -> None:
        """Update the share of the run that is done, and if the processes meet, the times."""
        now = self._timed() if meets else self.progress
        self.progress = replace(now, done=self._share_done(now))
        if meets:
            self._meeting = now.updates + self._updates_to_meeting()

    def _updates_to_meeting(self) -> int:
        """Return the number of updates until the processes meet again: about a second's."""
        if self.workers.world == 1:
            return 1
        updates = self.progress.updates - self._start.updates
        seconds = self.progress.seconds - self._start.seconds
        return min(LOG_EVERY, max(1, int(updates / max(seconds, 1e-9))))

    def _timed(self) -> RunProgress:
        """Return the progress with the current times, each the maximum over all processes."""
        seconds = self.workers.maximum(self.clock.seconds)
        cpu = self.workers.maximum(self.clock.cpu)
        return replace(self.progress, seconds=seconds, cpu=cpu)

    def _share_done(self, now: RunProgress) -> float:
        """Return the share of the run that is done, from 0 to 1.

        The last seconds before a limit are reserved for the last validation and saving. The share
        is 1 if the updates until the processes meet again would not end before these seconds.
        """
        settings, start = self.settings, self._start
        if settings.steps is not None:
            return min(1.0, now.updates / settings.steps)
        if settings.epochs is not None:
            return min(1.0, now.pairs / (settings.epochs * self.method.rows))
        spent = self._spent(now) - self._spent(start)
        update = spent / max(1, now.updates - start.updates) * self._updates_to_meeting()
        seconds = max(self.clock.limit - self._spent(start) - now.closing - update, 1e-3)
        return max(now.done, min(1.0, start.done + (1 - start.done) * spent / seconds))

    def _spent(self, now: RunProgress) -> float:
        """Return the CPU seconds in `now` under a CPU limit, else the wall seconds in `now`."""
        return now.cpu if self.clock.counts_cpu else now.seconds

    def _log(self) -> None:
        """Send a row of figures to all sinks: means over the updates since the last row.

        Memory that the process has freed is returned to the system; else it would add up.
        """
        release_memory()
        self._check_gradients()
        window, self.window = _on_host(self.window), defaultdict(float)
        now, last, self._logged = self.progress, self._logged, self.progress
        updates = max(1, now.updates - last.updates)
        losses = {}
        for name in sorted(name for name in window if name.startswith("loss")):
            losses[name] = self.workers.summed(window[name]) / updates
        row = {
            "step": now.updates,
            **losses,
            "smoothed_loss": self._smoothed.add(losses["loss"], updates),
            "grad_norm": window["grad_norm"] / max(1, window["norms"]),
            "lr": self.optimizer.param_groups[0]["lr"],
            "pairs": now.pairs,
            "epoch": self.position.epoch,
            **self._speed(window, last),
            "done": now.done,
            "seconds": now.seconds,
        }
        self.report(row)

    def _speed(self, window: Mapping[str, Any], last: RunProgress) -> dict[str, float]:
        """Return the figures on speed since the last row of the log, such as tokens per second.

        `window` has sums of figures since that row, `last` the progress at that row. Methods that
        train on a frozen encoder's vectors read no tokens; their only figure is pairs per second.
        """
        seconds = max(1e-9, self.progress.seconds - last.seconds)
        computation = self.method.computation
        if computation is None:
            return {"pairs_per_second": (self.progress.pairs - last.pairs) / seconds}
        tokens, world = window["tokens"], self.workers.world
        figures = {"tokens": tokens * world, "tokens_per_second": tokens / seconds * world}
        mfu = computation.mfu(tokens / seconds, tokens / max(1, window["rows"]))
        if mfu is not None:
            figures["mfu"] = mfu
        figures["padding"] = 1 - tokens / max(1, window["computed"])
        figures["wait"] = min(1.0, window["wait"] / seconds)
        return figures

    def report(self, row: dict[str, Any]) -> None:
        """Send a row of figures to all sinks."""
        for sink in self.sinks:
            sink(row)

    @property
    def reached(self) -> dict[str, Any]:
        """Figures of the run for metrics.json.

        These are counts, times, the validation figures before training, and all validation losses.
        """
        now = self.progress
        return {
            "updates": now.updates,
            "pairs": now.pairs,
            "training_pairs": self.method.rows,
            "seconds": round(self.clock.seconds, 1),
            "prepared": round(now.prepared, 1),
            "cpu_seconds": round(self.clock.cpu, 1),
            "threads": torch.get_num_threads(),
            "planned_updates": self.planned_updates,
            "stopped_early": self.is_stopped,
            "best_step": self.best_validation.step,  # 0: no update brought a better validation
            "before": dict(self.method.before or self.validations[0].figures),
            "curve": [[round(v.seconds, 1), v.figures["loss"]] for v in self.validations],
        }

    @property
    def planned_updates(self) -> int:
        """Number of updates that the run would have made with all its threads busy all the time.

        It exceeds the actual number only under a time limit on a CPU, if other programs took CPU
        time.
        """
        now, busy = self.progress, 1.0
        if self.is_stopped:
            return now.updates
        cpu, seconds = now.cpu - now.cpu_prepared, now.seconds - now.prepared
        if self.settings.time_limit and self.workers.device.type == "cpu" and cpu > 0:
            busy = max(1.0, torch.get_num_threads() * seconds / cpu)
        return round(now.updates / (now.done or 1.0) * busy)

    @property
    def best_validation(self) -> Validation:
        """The validation of the best weights."""
        return self.validations[self._best_index()]


def _on_host(window: Mapping[str, Any]) -> dict[str, float]:
    """Return sums of figures as numbers of the host; all are copied from the device at once."""
    names = [name for name, value in window.items() if isinstance(value, Tensor)]
    sums: dict[str, float] = defaultdict(float, window)
    if names:
        sums.update(zip(names, torch.stack([window[name] for name in names]).tolist(), strict=True))
    return sums


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Defer Ctrl-C and SIGTERM in the block; yield a function that returns whether a signal came.

    A second signal raises KeyboardInterrupt at once. Python delivers signals to the main thread
    only: in another thread nothing is deferred.
    """
    came = False

    def note(*_: object) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in _SIGNALS} if is_main else {}
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
