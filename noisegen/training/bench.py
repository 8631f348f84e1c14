"""`train --bench`: times the updates and the data loading of a distillation; trains nothing."""

import time
from contextlib import closing
from dataclasses import replace
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from noisegen.encoders import CHUNK_ROWS
from noisegen.encoders.encoder import Ragged, precision_name
from noisegen.encoders.tokens import generator
from noisegen.errors import UsageError
from noisegen.runs.progress import Progress
from noisegen.training.computation import join_workers
from noisegen.training.cost import Speed, speed
from noisegen.training.distil import Distillation
from noisegen.training.settings import DistilSettings, TrainOptions
from noisegen.training.train import settings_of
from noisegen.training.trainer import Trainer

_WARM_UP = 3  # untimed updates before the timed updates
_CHUNKS_SEEN = 3  # chunks of DATA to load while updates are timed


def bench(options: TrainOptions, seconds: float = 10.0) -> dict[str, Any]:
    """Time updates and data loading of a distillation, `seconds` for each; nothing is written.

    Three speeds are in tokens per second, padding not counted: `step` for updates on random token
    ids, `data` for updates on the texts of DATA, `loader` for adding noise and tokenizing alone.
    `loader_cost` is 1 - `data` / `step`, the share of speed lost to loading. `padding` is the share
    of padding among the computed tokens. `step_mfu` and `mfu` are the shares of the device's bf16
    peak used at the speeds `step` and `data`; None if the peak is unknown.

    The teacher's vectors are random numbers and hard negatives are left out, which does not change
    the speed of updates. Chunks (parts of an epoch) are smaller than in a run, so that several are
    loaded within `seconds`; their additional padding does not lower `data`. Raises the errors of
    `train`.
    """
    settings = settings_of(options)
    if not isinstance(settings, DistilSettings):
        raise UsageError(
            f"--bench times distillation, but preset {settings.preset} is of another method"
        )
    workers = join_workers(options.device)
    if workers.world > 1:
        raise UsageError("--bench times one process: run it without torchrun")
    method = Distillation(settings, workers, options.tell)
    with TemporaryDirectory() as folder:
        method.read(options.sources, Path(folder))
        on_random, on_data, loader = _speeds(method, Path(folder), options, seconds)
    computation, device = method.computation, workers.device
    share = min(1.0, on_data["computed"] / on_random["computed"])
    step = on_random["tokens"]
    length = step / on_random["rows"]
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "precision": precision_name(computation.half),
        "packed": computation.packed,
        "compiled": computation.compiled,
        "parameters": sum(weight.numel() for weight in method.network.parameters()),
        "tokens_per_row": length,
        "padding": 1 - step / on_random["computed"],
        "step": step,
        "data": step * share,
        "loader": loader,
        "loader_cost": 1 - share,
        "step_mfu": computation.mfu(step, length),
        "mfu": computation.mfu(step * share, length),
    }


def _speeds(
    method: Distillation, folder: Path, options: TrainOptions, seconds: float
) -> tuple[Speed, Speed, float]:
    """Return three speeds: of updates on random token ids, of updates on DATA, of the loader."""
    settings, progress = method.settings, options.progress
    method.rehearse()
    trainer = Trainer(method, folder)
    method.network.train()
    progress(Progress("making a chunk"))
    chunk = method.chunk(0, 0)
    assert chunk is not None  # each epoch has at least one chunk
    mixed = [Ragged(generator(0).permutation(side.values), side.offsets) for side in chunk.sides]
    chunk = replace(chunk, sides=tuple(mixed))
    on_random = cycle((chunk, batches) for batches in chunk.steps)
    speed(trainer, islice(on_random, _WARM_UP), float("inf"))
    progress(Progress("updates on random ids"))
    before = speed(trainer, on_random, seconds / 2)
    rows = int(before["rows"] * seconds / _CHUNKS_SEEN)
    rows = min(max(rows, 2 * settings.accumulate), CHUNK_ROWS)
    method.pairs = replace(method.pairs, training=method.pairs.training[:rows])
    progress(Progress("updates on data"))
    with closing(trainer.steps()) as on_data:
        trainer.update(*next(on_data))  # not timed: it waits for the first chunk
        data = speed(trainer, on_data, seconds)
    # Updates on random ids are timed before and after updates on DATA: a machine's load varies.
    progress(Progress("updates on random ids again"))
    after = speed(trainer, on_random, seconds / 2)
    progress(Progress("noise and tokenizer"))
    mean = {name: (before[name] + after[name]) / 2 for name in before}
    return mean, data, _loader_speed(method, seconds)


def _loader_speed(method: Distillation, seconds: float) -> float:
    """Return the speed of adding noise, tokenizing and batching, in tokens per second.

    Makes the first chunks of epochs 1, 2, 3 and so on, until `seconds` have passed.
    """
    began, tokens = time.perf_counter(), 0
    for epoch in count(1):
        chunk = method.chunk(epoch, 0)
        assert chunk is not None  # each epoch has at least one chunk
        tokens += sum(len(side.values) for side in chunk.sides)
        if time.perf_counter() - began >= seconds:
            break
    return tokens / (time.perf_counter() - began)
