"""`train`: one run of a method, from DATA to RUN."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from hashlib import sha256
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import yaml

from noisegen.encoders.encoder import Ragged, find_device
from noisegen.encoders.tokens import CHUNK_ROWS, Rows, generator
from noisegen.errors import OutputError, UsageError
from noisegen.noise.registry import load_code
from noisegen.options import public
from noisegen.runs.atomic import write_text
from noisegen.runs.folder import CONFIG, Layout, RunFolder, read_config
from noisegen.runs.progress import Progress
from noisegen.training.computation import Workers, join_workers
from noisegen.training.disentangle import Disentangling
from noisegen.training.distil import Distillation
from noisegen.training.objectives import preset_for
from noisegen.training.pretrain import Pretraining
from noisegen.training.settings import (
    OPTIONS,
    DistilSettings,
    RunSettings,
    TrainOptions,
    load_settings,
)
from noisegen.training.stores import BLOCK_ROWS, Negatives, TeacherVectors
from noisegen.training.students import PairChunk
from noisegen.training.trainer import Method, Trainer, json_lines, line_of, tensorboard
from noisegen.version import __version__

METHODS: Mapping[str, type[Method[Any]]] = {
    "distil": Distillation,
    "pretrain": Pretraining,
    "heads": Disentangling,
}
LAYOUT: Layout[None] = Layout(
    "train", CONFIG, frozenset({"version", "data", "preset"}),
    whole=("log.jsonl", "metrics.json", "vectors.html", "data", "checkpoints", "student",
           "tensorboard", "heads", "language", CONFIG),
)  # fmt: skip


def settings_of(options: TrainOptions) -> RunSettings:
    """Return the settings that options make, after the files of `--code`; raises UsageError."""
    for path in options.code:
        load_code(path)
    given = ((name, getattr(options, name)) for name in OPTIONS)
    values = dict(options.values or {}) | {k: v for k, v in given if v is not None}
    preset = options.preset or preset_for(str(values.get("objective", "")))
    settings: RunSettings = load_settings(preset, options.config, values)
    return settings


def _train(options: TrainOptions) -> dict[str, Any]:
    """Train what the preset says, by default what the objective belongs to; return its metrics.

    `data`: clean text where noise is made by recipes, else pairs: folders of augment or mine,
    tables with columns noisy and clean, or bitext. `values` are settings over those of the preset
    and the file (`noisegen.training.settings`). Writes RUN/student (of heads RUN/heads too),
    checkpoints, log.jsonl, config.yaml and metrics.json. With `dry_run` nothing is trained: the
    estimate is returned. `sinks` take every row of the log, `tell` lines that are said once,
    `progress` events. Raises UsageError, SourceError, OutputError, and NoisegenError where training
    cannot go on.
    """
    resume, force, tell = options.resume, options.force, options.tell
    if resume and force:
        raise UsageError("--force removes the run that is there, --resume goes on: choose one")
    if options.out is None and not options.dry_run:
        raise UsageError("give -o RUN, the folder of the run")
    settings, out = settings_of(options), Path(options.out or ".")
    values = settings.to_dict()
    kind = METHODS[values["method"]]
    if resume and not kind.is_resumable:
        raise UsageError("heads train in seconds to minutes: begin anew with --force, not --resume")
    device = options.device
    workers = Workers(device=find_device(device)) if options.dry_run else join_workers(device)
    method = kind(settings, workers, tell)
    if options.dry_run:
        with TemporaryDirectory() as folder:
            method.read(options.sources, Path(folder))
            return method.estimate()
    recorded = {"version": __version__, "data": list(options.sources), **values}
    run, is_new = RunFolder(out, LAYOUT, recorded), workers.leads and not resume
    if resume:
        _refuse_other_settings(out, recorded)
    elif is_new:
        run.open(resume=False, force=force, can_resume=method.is_resumable)
        config = yaml.safe_dump(recorded, sort_keys=False, allow_unicode=True)
        write_text(out / CONFIG, config)
    workers.wait()
    with run.removed_on_error() if is_new else nullcontext():
        tell(method.read(options.sources, out / "data", resume=resume))
        method.prepare(out / "data", options.progress)
        digest = sha256(json.dumps([recorded, method.pairs_read, method.start.digest]).encode())
        trainer = Trainer(method, out, config=digest.hexdigest())
    if resume:
        trainer.resume()

    def show(row: dict[str, Any]) -> None:
        if "loss" in row:
            options.progress(Progress(line_of(row)))

    trainer.sinks += [*options.sinks, show]
    if workers.leads:
        trainer.sinks.append(json_lines(out / "log.jsonl", trainer.progress.updates))
        trainer.sinks += [tensorboard(out / "tensorboard")] if options.boards else []
    trainer.run()
    if not workers.leads:
        return {}
    metrics = method.export(out, trainer, recorded)
    write_text(out / "metrics.json", json.dumps(metrics, indent=1) + "\n")
    return metrics


train = public(TrainOptions, _train)


def _refuse_other_settings(out: Path, recorded: Mapping[str, Any]) -> None:
    """Raise OutputError unless the folder has a run of these settings to resume."""
    if (theirs := read_config(out)) is None:
        raise OutputError(
            f"{out} has no run to resume: its {CONFIG} cannot be read; train anew in another folder"
        )
    name = next((key for key in recorded if theirs.get(key) != recorded[key]), None)
    if name is not None:
        raise OutputError(
            f"{out} was trained with {name} {theirs.get(name)!r}, not {recorded[name]!r}; resume "
            "with the same settings, or use another folder"
        )


_WARM_UP = 3  # updates
_CHUNKS_SEEN = 3  # that are made while updates on data are timed
Steps = Iterator[tuple[PairChunk, list[Rows]]]


def bench(options: TrainOptions, seconds: float = 10.0) -> dict[str, Any]:
    """Time the updates of such a run, `seconds` for each figure; nothing is share of it.

    `step`, `data` and `loader` are real tokens per second: of updates on random ids, on DATA, and
    of noise and tokenizer alone. `padding` is the share of computed tokens that are none,
    `loader_cost` that of the speed which is lost where ids come from DATA. `step_mfu` and `mfu`:
    the share of the device's bf16 peak on random ids and on DATA, None where it is not known.

    Vectors of the teacher are random numbers here, and there are no hard negatives: neither
    changes the speed of a run whose vectors are there. Updates on DATA see so few rows of it that
    some chunks go by, as in a long run; few rows have more padding, which is left out of account.
    Raises what `train` raises.
    """
    settings = settings_of(options)
    if not isinstance(settings, DistilSettings):
        raise UsageError(f"bench times distillation; preset {settings.preset} is of another method")
    workers = join_workers(options.device)
    if workers.world > 1:
        raise UsageError("bench times one process: start it without torchrun")
    method, progress = Distillation(settings, workers, options.tell), options.progress
    with TemporaryDirectory() as folder:
        method.read(options.sources, Path(folder))
        block = generator(0).standard_normal((BLOCK_ROWS, method.teacher.width))
        block = (block / np.sqrt(method.teacher.width)).astype(np.float16)  # stands for all
        method.vectors = TeacherVectors([block] * -(-len(method.pairs.clean) // BLOCK_ROWS))
        method.negatives = Negatives(method.vectors, settings.negatives, settings.seed)
        trainer = Trainer(method, Path(folder))
        method.network.train()
        progress(Progress("making a chunk"))
        chunk, random = method.chunk(0, 0), generator(0)
        assert chunk is not None  # there are pairs to train on
        mixed = [Ragged(random.permutation(side.values), side.offsets) for side in chunk.sides]
        chunk = replace(chunk, sides=tuple(mixed))
        on_random = cycle((chunk, batches) for batches in chunk.steps)
        _speed(trainer, islice(on_random, _WARM_UP), float("inf"))
        progress(Progress("updates on random ids"))
        before = _speed(trainer, on_random, seconds / 2)
        rows = int(before["rows"] * seconds / _CHUNKS_SEEN)
        rows = min(max(rows, 2 * settings.accumulate), CHUNK_ROWS)
        method.pairs = replace(method.pairs, training=method.pairs.training[:rows])
        progress(Progress("updates on data"))
        with closing(trainer.steps()) as on_data:
            trainer.update(*next(on_data))  # waits for the first chunk, as a run does once
            data = _speed(trainer, on_data, seconds)
        # Before and after: other load on a machine varies.
        progress(Progress("updates on random ids again"))
        after = _speed(trainer, on_random, seconds / 2)
        mean = {name: (before[name] + after[name]) / 2 for name in before}
        progress(Progress("noise and tokenizer"))
        loader = _loader_speed(method, seconds)
    share = min(1.0, data["computed"] / mean["computed"])  # of the speed on random ids
    computation, step, device = method.computation, mean["tokens"], workers.device
    length = step / mean["rows"]
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "precision": "bf16" if computation.bf16 else "fp32",
        "packed": computation.packed, "compiled": computation.compiled,
        "parameters": sum(weight.numel() for weight in method.network.parameters()),
        "tokens_per_row": length, "padding": 1 - step / mean["computed"],
        "step": step, "data": step * share, "loader": loader, "loader_cost": 1 - share,
        "step_mfu": computation.mfu(step, length), "mfu": computation.mfu(step * share, length),
    }  # fmt: skip


def _speed(trainer: Trainer[PairChunk], steps: Steps, seconds: float) -> dict[str, float]:
    """Do updates for so long; return the log's sums per second: tokens, computed, rows."""
    device = trainer.workers.device
    settle = torch.cuda.synchronize if device.type == "cuda" else lambda device: None
    trainer.window.clear()
    settle(device)
    began = time.perf_counter()
    for chunk, batches in steps:
        trainer.update(chunk, batches)
        if time.perf_counter() - began >= seconds:
            break
    settle(device)
    took = time.perf_counter() - began
    return {name: trainer.window[name] / took for name in ("tokens", "computed", "rows")}


def _loader_speed(method: Distillation, seconds: float) -> float:
    """Return tokens per second of noise, tokenizer and plan, epoch after epoch."""
    began, tokens = time.perf_counter(), 0
    for epoch in count(1):
        chunk = method.chunk(epoch, 0)
        assert chunk is not None  # there are pairs to train on
        tokens += sum(len(side.values) for side in chunk.sides)
        if time.perf_counter() - began >= seconds:
            break
    return tokens / (time.perf_counter() - began)
