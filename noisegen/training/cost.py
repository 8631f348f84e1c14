"""`train --dry-run`: what a run costs, by its own updates, timed for a second."""

import time
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from noisegen.encoders.tokens import Rows
from noisegen.runs.estimate import SAMPLE_SECONDS
from noisegen.training.trainer import C, Clock, Method, Trainer


def dry_run(method: Method[C], sources: Sequence[str], clock: Clock) -> dict[str, Any]:
    """Return the sizes of a run, and how many updates and seconds it takes.

    `seconds` are those of the whole run, `prepared` of them before the first update, with all that
    the command did until now. Raises what a run raises.
    """
    with TemporaryDirectory() as folder:
        method.read(sources, Path(folder))
        began = time.monotonic()
        rehearsal = method.rehearse()
        rehearsed = time.monotonic() - began
        chunk = method.chunk(0, 0)
        assert chunk is not None  # there are pairs to train on
        prepared = clock.seconds - rehearsed + rehearsal.vectors
        trainer = Trainer(method, Path(folder))
        method.network.train()
        steps = cycle((chunk, batches) for batches in chunk.steps)
        speed(trainer, islice(steps, 1), SAMPLE_SECONDS)  # the first one takes longer
        spent, seconds = clock.spent, clock.seconds
        update = 1 / speed(trainer, steps, SAMPLE_SECONDS)["updates"]
        elapsed = clock.seconds - seconds
        pace = (clock.spent - spent) / elapsed if clock.counts_cpu else 1.0  # CPU s per second
        began = time.monotonic()
        method.validate()
        validation = (time.monotonic() - began) * rehearsal.shortened
    cost, settings = method.estimate(chunk), method.settings
    every = min(settings.validate_every, method.unvalidated)
    if limit := settings.limit and settings.limit / pace:
        updates = max(1, int((limit - prepared - 2 * validation) / (update + validation / every)))
    else:
        updates = settings.steps or ceil((settings.epochs or 0) * cost["updates_per_epoch"])
    validations = 2 + int(updates // every)
    seconds = limit or prepared + updates * update + validations * validation
    return {
        **cost, "updates": updates, "seconds": round(seconds, 1), "prepared": round(prepared, 1),
        "update_seconds": update, "validation_seconds": validation,
    }  # fmt: skip


Speed = dict[str, float]  # per second: updates, and the log's sums: tokens, computed, rows


def speed(trainer: Trainer[C], steps: Iterable[tuple[C, list[Rows]]], seconds: float) -> Speed:
    """Do updates for so long, one at least; return how much of what is counted a second has."""
    device = trainer.workers.device
    settle = torch.cuda.synchronize if device.type == "cuda" else lambda device: None
    trainer.window.clear()
    settle(device)
    began = time.perf_counter()
    for chunk, batches in steps:
        trainer.update(chunk, batches)
        trainer.window["updates"] += 1
        if time.perf_counter() - began >= seconds:
            break
    settle(device)
    took = time.perf_counter() - began
    return {name: trainer.window[name] / took for name in ("updates", "tokens", "computed", "rows")}
