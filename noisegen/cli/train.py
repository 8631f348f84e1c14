"""`noisegen train` and `noisegen quickstart`."""

import os
import re
import textwrap
import time
from pathlib import Path
from typing import Any

import click

from noisegen.cli import common
from noisegen.cli.parameters import click_options
from noisegen.demo import QuickstartOptions
from noisegen.errors import UsageError
from noisegen.options import decode, parse_values
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.training.settings import ExportOptions, TrainOptions


@click.command(epilog=common.example("train out -o run --time-limit 10m"))
@click.argument("data", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Show the presets: paper, data, cost, command")
@click_options(TrainOptions, skip=["data"])
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the preset or file; repeatable",
)
@click.option(
    "--posts",
    multiple=True,
    metavar="SOURCE",
    help="First fit the recipe to these noisy posts, and write it to RUN.yaml; repeatable",
)
@click.option("--bench", "timed", is_flag=True, help="Time updates and data loading; train nothing")
@click.option(
    "--bench-seconds",
    "seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.01),
    default=10.0,
    show_default=True,
    help="Seconds per figure of --bench",
)
@common.output
def train(
    listed: bool,
    given: tuple[str, ...],
    posts: tuple[str, ...],
    timed: bool,
    seconds: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Distil a student that encodes noisy text like clean text.

    DATA is clean text where --recipe is a recipe (de=FILE: in another language than --lang); else
    pairs: folders of augment or mine, tables with columns noisy and clean, or bitext (A.de,B.en;
    deu-eng.tsv; an OPUS folder or zip).
    """
    began = time.monotonic(), time.process_time()  # so that the import of torch is timed too
    if listed:
        _print_presets(as_json)
        return
    if not options["data"]:
        raise UsageError("missing argument DATA: text, pairs or bitext to train on")
    from noisegen.training.bench import bench
    from noisegen.training.summary import cost, lines
    from noisegen.training.train import train as run

    with common.progress() as show:
        options |= {"values": parse_values(given), "began": began}
        options |= {"progress": show, "tell": common.tell}
        if posts:
            options["recipe"] = _fitted(posts, decode(TrainOptions, options))
        metrics = bench(decode(TrainOptions, options), seconds) if timed else run(**options)
    if as_json:
        common.print_json(metrics)
    elif timed:
        _print_bench(metrics)
    elif options["dry_run"]:
        common.print_lines(*cost(metrics))
    elif metrics and not common.is_quiet():
        common.print_lines(*lines(metrics, Path(options["out"])))


def _fitted(posts: tuple[str, ...], options: TrainOptions) -> str:
    """Fit the recipe of a run to posts and write it beside the folder of the run; return its path.

    The clean text is DATA. A resumed run has its file already.
    """
    from noisegen.realism.fit import fit
    from noisegen.training.train import settings_of

    common.refuse(("timed", "dry_run"), "{} writes nothing, --posts a recipe: fit it first")
    if not options.out:
        raise UsageError("give -o RUN, the folder of the run")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise UsageError("--posts is for one process: noisegen fit first, then train --recipe FILE")
    settings = settings_of(options).to_dict()
    path, recipe = f"{options.out.rstrip('/')}.yaml", settings["recipe"]
    if not options.resume:
        fitted = fit(
            posts,
            path,
            clean=options.sources,
            extends=DEFAULT_RECIPE if recipe == "stored" else recipe,
            lang=settings["lang"],
            force=options.force,
            progress=options.progress,
        )
        common.say(fitted.warnings, "warning")
        common.tell(f"wrote {path}")
    return path


def _print_presets(as_json: bool) -> None:
    from noisegen.training.settings import preset_names, read_preset

    presets = [read_preset(name) for name in preset_names()]
    if as_json:
        common.print_json({"presets": [vars(preset) for preset in presets]})
        return
    for preset in presets:
        click.echo(f"{click.style(preset.name, bold=True)}: {preset.paper}")
        for what in ("objective", "data", "cost"):
            click.echo(f"  {what:<10} {getattr(preset, what)}")
        tables = preset.tables
        if isinstance(tables, str):
            click.echo(f"  tables     those of {tables}")
            tables = {}
        for name, command in {"train": preset.command, **tables}.items():
            click.echo(f"  {name}:\n    " + " \\\n      ".join(_wrapped(command)))


def _wrapped(command: str) -> list[str]:
    """Wrap a command at 72 characters, and keep an option and its value on one line."""
    joined = re.sub(r"( --?[\w-]+) (?=[^\s-]\S{,50}(?: |$))", "\\1\0", command)
    lines = textwrap.wrap(joined, 72, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _print_bench(speeds: dict[str, Any]) -> None:
    batches = f"{'packed' if speeds['packed'] else 'padded'} batches"
    batches += ", compiled" if speeds["compiled"] else ""
    click.echo(
        f"{speeds['device']}, {speeds['precision']}, {batches}: {speeds['tokens_per_row']:.1f} "
        f"tokens per row, {speeds['padding']:.1%} padding"
    )
    for what, speed, mfu in (
        ("updates on random ids", speeds["step"], speeds["step_mfu"]),
        ("updates on DATA", speeds["data"], speeds["mfu"]),
        ("noise and tokenizer alone", speeds["loader"], None),
    ):
        click.echo(f"{what:<26}{speed:>12,.0f} tokens/s" + (f"  mfu {mfu:.1%}" if mfu else ""))
    click.echo(f"the loader costs {speeds['loader_cost']:.1%}")


@click.command(epilog=common.example("export run/student -o robust-minilm"))
@click_options(ExportOptions)
@common.output
def export(as_json: bool, **options: Any) -> None:
    """Write a student for the Hub: safetensors, ONNX, ONNX of int8.

    STUDENT is RUN/student or another model in pieces of words. The folder opens in
    sentence-transformers, and in onnxruntime without torch; its model card shows how.
    """
    from noisegen.training.export import export as run

    with common.progress() as show:
        figures = run(**options, progress=show)
    if as_json:
        common.print_json(figures)
    elif not common.is_quiet():
        for name, file in figures.items():
            line = f"{name}: {file['bytes'] / 1e6:.1f} MB"
            if "mean" in file:
                line += f", vectors {file['mean']:.1g} from the student's (most {file['max']:.1g})"
            common.print_lines(line)
        common.print_lines(f"wrote {options['out']}")


@click.command(epilog=common.example("quickstart -o first"))
@click_options(QuickstartOptions)
@common.output
def quickstart(as_json: bool, **options: Any) -> None:
    """Train and evaluate a robust student in minutes, offline.

    The sentences are from gensim (extra demo), the teacher is minilm (extra train).
    """
    from noisegen.demo.quickstart import quickstart as run

    with common.progress() as show:
        finished = run(**options, progress=show, tell=common.tell)
    if as_json:
        common.print_json(finished.results.metrics())
        return
    out = Path(options["out"])
    if common.is_quiet():
        return
    where = f"student: {out / 'run' / 'student'}, report: {out / 'report' / 'report.html'}"
    common.print_lines(*finished.lines, where)
