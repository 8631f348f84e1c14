"""`noisegen train`: runs a training method on DATA, and writes the folder RUN."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from noisegen.encoders.encoder import find_device
from noisegen.encoders.stored import write_json
from noisegen.errors import NoisegenError, OutputError, SourceError, UsageError, resumable
from noisegen.noising.registry import load_code
from noisegen.options import Strings, decode, public
from noisegen.runs.atomic import write_text
from noisegen.runs.folder import CONFIG, Layout, RunFolder, read_config
from noisegen.runs.manifest import counted
from noisegen.runs.progress import Progress, Show, reading, silent
from noisegen.training.clock import Clock
from noisegen.training.computation import Workers, join_workers
from noisegen.training.cost import dry_run
from noisegen.training.disentangle import Disentangling
from noisegen.training.distil import Distillation
from noisegen.training.log import json_lines, line_of, tensorboard
from noisegen.training.objectives import preset_for
from noisegen.training.pretrain import Pretraining
from noisegen.training.settings import OPTIONS, RunSettings, Sink, Tell, TrainOptions, load_settings
from noisegen.training.trainer import Method, Trainer
from noisegen.version import __version__

FEW_PAIRS = 1_000  # a run on fewer training pairs begins with a warning
PAIRS_MIN = 50  # a run on fewer training pairs needs --force-small

METHODS: Mapping[str, type[Method[Any]]] = {
    "distil": Distillation,
    "pretrain": Pretraining,
    "heads": Disentangling,
}
LAYOUT: Layout[None] = Layout(
    "train",
    whole={
        CONFIG: r"version: [^\n]*\ndata:\n- ",
        "metrics.json": r'\{\n "validation": ',
        "log.jsonl": "",
        "vectors.html": "",
        **dict.fromkeys(("data", "checkpoints", "student", "tensorboard", "heads", "language"), ""),
    },
)


def settings_of(options: TrainOptions) -> RunSettings:
    """Return the settings of a run from the options of `noisegen train`; raises UsageError.

    Files of the option --code run first, so that they can register objectives.
    """
    for path in options.code:
        load_code(path)
    values = dict(options.values or {})
    for name in OPTIONS:
        value = getattr(options, name)
        if value not in (None, ()):
            values[name] = value
    preset = options.preset or preset_for(str(values.get("objective", "")))
    settings: RunSettings = load_settings(preset, options.config, values)
    return settings


@public
def train(
    data: Strings,
    out: str | None = None,
    preset: str | None = None,
    config: str | None = None,
    values: Mapping[str, Any] | None = None,
    teacher: str | None = None,
    student: str | None = None,
    objective: str | None = None,
    recipe: str | None = None,
    lang: str | None = None,
    text_column: str | None = None,
    seed: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    time_limit: str | None = None,
    cpu_limit: str | None = None,
    validation: tuple[str, ...] = (),
    max_drift: float | None = None,
    code: tuple[str, ...] = (),
    device: str = "auto",
    resume: bool = False,
    force: bool = False,
    force_small: bool = False,
    dry_run: bool = False,
    boards: bool = False,
    began: tuple[float, float] | None = None,
    sinks: Sequence[Sink] = (),
    tell: Tell = silent,
    progress: Show = silent,
) -> dict[str, Any]:
    """Train a student, or heads on a frozen encoder, and return the metrics of the run.

    `data` is clean text if `recipe` names recipes, else pairs: folders of augment or mine, tables
    with the columns noisy and clean, or bitext. `values` are settings that override the preset and
    the file `config` (`noisegen.training.settings`). Writes RUN/student (RUN/heads for heads),
    checkpoints, log.jsonl, config.yaml and metrics.json. With `dry_run` some updates are timed,
    nothing is written, and the estimated cost is returned. A time or CPU limit includes the
    teacher's vectors, validation and saving; it counts from `began` (values of `time.monotonic()`
    and `time.process_time()`; default: now). `sinks` get each row of the log, `tell` gets messages,
    `progress` gets progress events. Fewer than 50 pairs need `force_small`. Raises UsageError,
    SourceError, OutputError, and NoisegenError if training cannot continue.
    """
    return _train(decode(TrainOptions, locals()))


def _train(options: TrainOptions) -> dict[str, Any]:
    """Run `train` with decoded options."""
    settings = settings_of(options)
    clock = Clock(settings.limit, options.began, counts_cpu=settings.cpu_limit is not None)
    kind = METHODS[settings.to_dict()["method"]]
    _refuse_conflicts(options, kind)
    if options.dry_run:
        workers = Workers(device=find_device(options.device))
        return dry_run(kind(settings, workers, options.tell), options.sources, clock)
    workers = join_workers(options.device)
    if not workers.leads:
        options = replace(options, tell=silent, progress=silent)
    with workers.together():
        return _run(kind(settings, workers, options.tell), options, clock)


def _run(method: Method[Any], options: TrainOptions, clock: Clock) -> dict[str, Any]:
    """Train in this process of a run; return the metrics in the first process, else nothing."""
    with _opened(method, options) as folder:
        trainer = _open_run(method, folder, options, clock)
        trainer.sinks += _sinks(trainer, options)
        with resumable() if method.is_resumable else nullcontext():
            trainer.run()
        if not method.workers.leads:
            return {}
        options.progress(Progress("saving"))
        metrics = method.export(trainer)
        write_json(trainer.out / "metrics.json", metrics)
        return metrics


def _refuse_conflicts(options: TrainOptions, kind: type[Method[Any]]) -> None:
    if options.resume and options.force:
        raise UsageError(
            "--force overwrites the run in the folder, --resume continues it: give one of them"
        )
    if options.out is None and not options.dry_run:
        raise UsageError("give -o RUN, the folder of the run")
    if options.resume and not kind.is_resumable:
        raise UsageError("runs of heads cannot be resumed: start over with --force")


@contextmanager
def _opened(method: Method[Any], options: TrainOptions) -> Iterator[RunFolder[None]]:
    """Lock the folder of a new or a resumed run until the block ends; yield the folder.

    Only the first process locks the folder, and writes config.yaml for a new run.
    """
    out = Path(options.out or ".")
    recorded = {"version": __version__, "data": list(options.sources), **method.settings.to_dict()}
    if options.resume:
        recorded = _same_settings(out, recorded)
    folder = RunFolder(out, LAYOUT, recorded)
    opened = folder.opened(
        resume=options.resume,
        force=options.force,
        can_resume=method.is_resumable,
        show=options.progress,
    )
    with opened if method.workers.leads else nullcontext():
        if method.workers.leads and not options.resume:
            config = yaml.safe_dump(recorded, sort_keys=False, allow_unicode=True)
            write_text(out / CONFIG, config)
        method.workers.wait()
        yield folder


def _open_run(
    method: Method[Any], folder: RunFolder[None], options: TrainOptions, clock: Clock
) -> Trainer[Any]:
    """Read DATA, prepare training, and return the trainer of a new or a resumed run.

    A new run that fails here leaves no files. Raises NoisegenError if the preparation takes longer
    than the limit of the run.
    """
    out, workers, resume = folder.out, method.workers, options.resume
    is_new = workers.leads and not resume
    with folder.removed_on_error() if is_new else nullcontext():
        with reading(options.progress, "reading DATA"):
            summary = method.read(options.sources, out / "data", resume=resume)
        options.tell(summary)
        if method.rows < PAIRS_MIN and not (options.force_small or resume):
            raise SourceError(
                f"{counted(method.rows, 'pair')} to train on: a student needs at least "
                f"{PAIRS_MIN}, and learns from thousands; give more DATA, or add --force-small"
            )
        if method.rows < FEW_PAIRS:
            options.tell(
                f"warning: {counted(method.rows, 'pair')} to train on: with fewer than "
                f"{FEW_PAIRS:,} a student learns them by heart, and little for other texts"
            )
        method.prepare(out / "data", options.progress, clock)
        trainer = Trainer(method, out, dict(folder.config), clock)
        if workers.maximum(-clock.left) >= 0:
            kind = "CPU" if clock.counts_cpu else "time"
            raise NoisegenError(
                f"the {kind} limit of {clock.limit:g} s is over after {clock.spent:.0f} s of "
                f"preparation, before the first update: give a longer --{kind.lower()}-limit, two "
                "minutes or more, or less data (the teacher's vectors of texts are cached)"
            )
    if resume:
        trainer.resume()
        if not trainer.progress.updates:
            options.tell("there is no checkpoint yet: training begins with the first update")
    return trainer


def _sinks(trainer: Trainer[Any], options: TrainOptions) -> list[Sink]:
    """Return the sinks of the log: the caller's sinks, the progress line, and log files."""
    latest: dict[str, Any] = {}  # newest value of each figure of the log

    def show(row: dict[str, Any]) -> None:
        latest.update(row)
        if "loss" in row:
            share, note = row["done"], line_of(latest)
            options.progress(Progress("training", row["pairs"], 0, "pairs", share=share, note=note))

    sinks = [*options.sinks, show]
    if trainer.workers.leads:
        sinks.append(json_lines(trainer.out / "log.jsonl", trainer.progress.updates))
        if options.boards:
            sinks.append(tensorboard(trainer.out / "tensorboard"))
    return sinks


def _same_settings(out: Path, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of config.yaml in `out`, the folder of the run to resume.

    Raises OutputError if it differs from `recorded`, the content that this command would write.
    """
    if (written := read_config(out)) is None:
        raise OutputError(
            f"{out} has no run to resume: its {CONFIG} cannot be read; train in another folder"
        )
    for name, value in recorded.items():
        if written.get(name) != value:
            raise OutputError(
                f"{out} was trained with {name} {written.get(name)!r}, not {value!r}; resume "
                "with the same settings, or use another folder"
            )
    return written
