"""`noisegen train` and `noisegen quickstart`."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from noisegen.cli import common
from noisegen.demo.quickstart import QuickstartOptions
from noisegen.errors import UsageError
from noisegen.options import click_options, decode, parse_values
from noisegen.runs.progress import Show, progress_on_stderr
from noisegen.training.settings import TrainOptions


@click.command()
@click.argument("data", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Show the presets: paper, data, cost, command")
@click_options(TrainOptions, skip=["data"])
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE",
              help="One setting over those of the file; repeatable")  # fmt: skip
@click.option("--bench", "timed", is_flag=True, help="Time updates and data; train nothing")
@click.option("--bench-seconds", "seconds", type=click.FloatRange(0.01), default=10.0,
              show_default=True, help="Seconds for each figure of --bench")  # fmt: skip
@common.no_progress
@common.as_json
def train(
    listed: bool, given: tuple[str, ...], timed: bool, seconds: float, quiet: bool, as_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Distil a robust student: noisy text where the teacher puts its clean form.

    DATA is clean text where --noise is a recipe; else pairs: folders of augment or mine, tables
    with columns noisy and clean, or bitext (A.de,B.en; deu-eng.tsv; an OPUS folder or zip).

    Example: noisegen train out -o run --time-limit 10m
    """
    if listed:
        _print_presets(as_json)
        return
    if not options["data"]:
        raise UsageError("missing argument DATA: text, pairs or bitext to train on")
    from noisegen.training.bench import bench
    from noisegen.training.train import train as run

    with progress_on_stderr(quiet) as show:
        options |= {"values": parse_values(given), **reporting(show)}
        metrics = bench(decode(TrainOptions, options), seconds) if timed else run(**options)
    if as_json:
        common.print_json(metrics)
    elif timed:
        _print_bench(metrics)
    elif options["dry_run"]:
        _print_estimate(metrics)
    elif metrics:
        _print_metrics(metrics, Path(options["out"]))


def reporting(show: Show | None) -> dict[str, Any]:
    """Return the options by which progress is shown, and lines that stay are printed."""
    return {"progress": show, "tell": partial(click.echo, err=True)} if show else {}


def _print_presets(as_json: bool) -> None:
    from noisegen.training.settings import preset_names, read_preset

    presets = [read_preset(name) for name in preset_names()]
    if as_json:
        common.print_json({"presets": [vars(preset) for preset in presets]})
        return
    for preset in presets:
        click.echo(f"{click.style(preset.name, bold=True)}: {preset.paper}")
        for what in ("objective", "data", "cost", "command", "table"):
            click.echo(f"  {what:<10} {getattr(preset, what)}")


def _print_estimate(estimate: dict[str, Any]) -> None:
    if "padding" not in estimate:  # of heads
        click.echo("{weights:,} weights\n{pairs:,} pairs of {texts:,} texts".format(**estimate))
        return
    size, cost = estimate["weight_bytes"] / 1e9, estimate["flop_per_token"] / 1e6
    click.echo(
        "{parameters:,} weights, {trained:,} trained ({size:.2f} GB with gradients and moments)\n"
        "{pairs:,} pairs of {tokens_per_pair:.1f} tokens, {padding:.1%} padding\n"
        "{updates_per_epoch:,} updates per epoch, each of {pairs_per_update:.0f} pairs; "
        "{cost:,.0f} MFLOP per token".format(size=size, cost=cost, **estimate)
    )


def _print_bench(speeds: dict[str, Any]) -> None:
    batches = f"{'packed' if speeds['packed'] else 'padded'} batches"
    batches += ", compiled" if speeds["compiled"] else ""
    click.echo(
        f"{speeds['device']}, {speeds['precision']}, {batches}: {speeds['tokens_per_row']:.1f} "
        f"tokens a row, {speeds['padding']:.1%} padding"
    )
    for what, speed, mfu in (
        ("updates on random ids", speeds["step"], speeds["step_mfu"]),
        ("updates on DATA", speeds["data"], speeds["mfu"]),
        ("noise and tokenizer alone", speeds["loader"], None),
    ):
        click.echo(f"{what:<26}{speed:>12,.0f} tokens/s" + (f"  mfu {mfu:.1%}" if mfu else ""))
    click.echo(f"the loader costs {speeds['loader_cost']:.1%}")


def _print_metrics(metrics: dict[str, Any], out: Path) -> None:
    from noisegen.training.pairs import lost

    figures = metrics["validation"]
    shown = [words.format(figures[name]) for name, words in _WORDS.items() if name in figures] or [
        f"{name.replace('_', ' ')} {round(value, 4):,}" for name, value in figures.items()
    ]
    lines = ["{updates:,} updates, {pairs:,} pairs in {seconds:,.0f} s".format(**metrics)]
    lines.append(f"held out: {', '.join(shown)}")
    if losses := lost(metrics["dropped"], metrics.get("cut", 0)):
        lines.append(f"of DATA: {'; '.join(losses)}")
    for name, percent in metrics.get("retrieval", {}).items():
        there, back = (percent[f"retrieval.{way}"] for way in ("forward", "backward"))
        lines.append(f"retrieval by {name} vectors: {there:.1f} % there, {back:.1f} % back")
    lines += [f"{name}: {out / path}" for name, path in _WRITTEN.items() if (out / path).exists()]
    click.echo("\n".join(lines))


_WORDS = {
    "loss_mlm_noisy": "loss under masks {:.3f} noisy",
    "loss_mlm_clean": "{:.3f} clean",
    "distance": "distance {:.4f}",
    "anchored": "to the teacher's clean vector {:.4f}",
    "drift": "drift {:.4f}",
    "missed": "nearest is another's {:.2%}",
}
_WRITTEN = {  # by what a run may write
    "student": "student", "heads": "heads", "language": "language", "picture": "vectors.html",
}  # fmt: skip


@click.command()
@click_options(QuickstartOptions)
@common.as_json
@common.no_progress
def quickstart(as_json: bool, quiet: bool, **options: Any) -> None:
    """Make a robust student in minutes: augment, train and evaluate on real text, offline.

    The sentences are those that gensim ships (extra demo), the teacher is minilm (extra train).

    Example: noisegen quickstart -o first
    """
    from noisegen.demo.quickstart import quickstart as run

    with progress_on_stderr(quiet) as show:
        finished = run(**options, **reporting(show))
    if as_json:
        common.print_json(finished.results.metrics())
        return
    out = Path(options["out"])
    where = f"student: {out / 'run' / 'student'}, report: {out / 'report' / 'report.html'}"
    click.echo("\n".join([*finished.lines, where]))
