"""`train --dry-run`: estimates the cost of a run by timing its updates for a second."""

import time
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from noisegen.runs.estimate import SAMPLE_SECONDS
from noisegen.training.clock import Clock
from noisegen.training.trainer import C, Method, Trainer


def dry_run(method: Method[C], sources: Sequence[str], clock: Clock) -> dict[str, Any]:
    """Return the estimated cost of a run: its sizes, its number of updates, its time in seconds.

    `seconds` is the time of the whole run, `prepared` the time before its first update; both count
    from the start of the command. Raises the errors that a run raises.
    """
    with TemporaryDirectory() as folder:
        method.read(sources, Path(folder))
        began = time.monotonic()
        rehearsal = method.rehearse()
        rehearsed = time.monotonic() - began
        chunk = method.chunk(0, 0)
        assert chunk is not None  # each epoch has at least one chunk
        prepared = clock.seconds - rehearsed + rehearsal.vectors
        trainer = Trainer(method, Path(folder), clock=clock)
        update, validation, pace = _timings(trainer, chunk)
        validation *= rehearsal.shortened
    sizes, settings = method.estimate(chunk), method.settings
    every = min(settings.validate_every, method.validation_interval)
    limit = settings.limit and settings.limit / pace
    if limit:
        left = limit - prepared - 2 * validation
        updates = max(1, int(left / (update + validation / every)))
        seconds = limit
    else:
        updates = settings.steps or ceil((settings.epochs or 0) * sizes["updates_per_epoch"])
        validations = 2 + int(updates // every)
        seconds = prepared + updates * update + validations * validation
    return {
        **sizes,
        "updates": updates,
        "seconds": round(seconds, 1),
        "prepared": round(prepared, 1),
        "update_seconds": update,
        "validation_seconds": validation,
    }


def _timings(trainer: Trainer[C], chunk: C) -> tuple[float, float, float]:
    """Return seconds per update, seconds per validation, and CPU seconds per wall second.

    Updates are timed on the batches in `chunk`. The last figure converts a CPU limit to wall time;
    it is 1 for a run without a CPU limit.
    """
    clock = trainer.clock
    trainer.method.network.train()
    steps = cycle((chunk, batches) for batches in chunk.steps)
    speed(trainer, islice(steps, 1), SAMPLE_SECONDS)  # not timed: the first update takes longer
    spent, began = clock.spent, clock.seconds
    update = 1 / speed(trainer, steps, SAMPLE_SECONDS)["updates"]
    pace = (clock.spent - spent) / (clock.seconds - began) if clock.counts_cpu else 1.0
    began = time.monotonic()
    trainer.method.validate()
    return update, time.monotonic() - began, pace


Speed = dict[str, float]  # updates, tokens, computed (tokens with padding) and rows per second


def speed(trainer: Trainer[C], steps: Iterable[tuple[Any, ...]], seconds: float) -> Speed:
    """Do updates for about `seconds`, at least one update; return their speed.

    `steps` yields the arguments of `Trainer.update`: a chunk, and batches of row indices in it.
    """
    device = trainer.workers.device
    settle = torch.cuda.synchronize if device.type == "cuda" else lambda device: None
    trainer.window.clear()
    settle(device)
    began = time.perf_counter()
    for step in steps:
        trainer.update(*step)
        trainer.window["updates"] += 1
        if time.perf_counter() - began >= seconds:
            break
    settle(device)
    took = time.perf_counter() - began
    return {name: trainer.window[name] / took for name in ("updates", "tokens", "computed", "rows")}
