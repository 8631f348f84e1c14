"""`train`: one run of a method, from DATA to RUN."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from noisegen.encoders.encoder import find_device
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
    RunSettings,
    TrainOptions,
    load_settings,
)
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
