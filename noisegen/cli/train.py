"""`noisegen train`."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json

SECONDS_BETWEEN_LINES = 5
_SETTINGS = ("teacher", "student", "objective", "noise", "lang", "seed", "epochs", "steps",
             "time_limit")  # fmt: skip


@click.command()
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--out", required=True, metavar="RUN", help="Folder of the run.")
@click.option(
    "--preset",
    default="quickstart",
    show_default=True,
    help="quickstart, rolaser, c-rolaser or two-term.",
)
@click.option("--config", metavar="FILE.yaml", help="Settings over those of the preset.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="One setting over those of the file; repeatable.",
)
@click.option(
    "--teacher", metavar="SPEC", help="minilm, use, a folder, hf:NAME, laser2:FOLDER or npy:FILE."
)
@click.option("--student", metavar="SPEC", help="copy, layers:0,3,5, char, a folder or hf:NAME.")
@click.option("--objective", metavar="NAME[+NAME]", help="Such as two_term+0.2*info_nce.")
@click.option(
    "--noise",
    metavar="stored|RECIPE",
    help="The noisy side of DATA, or noise of a recipe, anew in every epoch.",
)
@click.option("--lang", help="Language of the recipe's noise.")
@click.option("--seed", type=click.IntRange(0), help="Of batches, noise and new weights.")
@click.option("--epochs", type=float, help="Passes over the data.")
@click.option("--steps", type=click.IntRange(1), help="Updates.")
@click.option("--time-limit", metavar="10m", help="The learning rate falls to 0 in this time.")
@click.option(
    "--max-drift", type=float, help="Stop when the mean of 1 - cos(T[clean], S[clean]) is above."
)
@click.option("--device", default="auto", show_default=True, help="cpu or cuda.")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint.")
@click.option("--force", is_flag=True, help="Remove the run that is in the folder.")
@click.option("--dry-run", is_flag=True, help="Print what it will cost; train nothing.")
@click.option("--tensorboard", "boards", is_flag=True, help="Write RUN/tensorboard too.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def train(
    data: tuple[str, ...],
    out: str,
    given: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Distil a robust student: noisy text where the teacher puts its clean form.

    DATA are folders of augment or mine, or tables with columns noisy and clean.

    Example: noisegen train out -o run --time-limit 10m
    """  # fmt: skip
    from noisegen.training.run import train as run
    from noisegen.training.settings import parse_values

    values = parse_values(given)
    names = (*_SETTINGS, "max_drift")
    values |= {name: options.pop(name) for name in names if options[name] is not None}
    options = {name: value for name, value in options.items() if name not in names}
    with _progress(quiet) as (sink, tell):
        found = run(data, out, values=values, sinks=[sink], tell=tell, **options)
    if as_json:
        print_json(found)
    elif options["dry_run"]:
        _print_estimate(found)
    elif found:
        _print_figures(found, Path(out))


def _print_estimate(found: dict[str, Any]) -> None:
    click.echo(
        f"{found['parameters']:,} weights, {found['trained']:,} trained "
        f"({found['weight_bytes'] / 1e9:.2f} GB with gradients and moments)\n"
        f"{found['pairs']:,} pairs of {found['tokens_per_pair']:.1f} tokens, "
        f"{found['padding']:.1%} padding\n"
        f"{found['updates_per_epoch']:,} updates an epoch, each of "
        f"{found['pairs_per_update']:.0f} pairs; {found['flop_per_token'] / 1e6:,.0f} MFLOP a token"
    )


def _print_figures(found: dict[str, Any], out: Path) -> None:
    said = found["validation"]
    click.echo(
        f"{found['updates']:,} updates, {found['pairs']:,} pairs in {found['seconds']:,.0f} s\n"
        f"held out: distance {said['distance']:.4f}, to the teacher's clean vector "
        f"{said['anchored']:.4f}, drift {said['drift']:.4f}, nearest is another's "
        f"{said['missed']:.2%}\n"
        f"student: {out / 'student'}"
    )


Sinks = tuple[Callable[[dict[str, Any]], None], Callable[[str], None]]


@contextmanager
def _progress(quiet: bool) -> Iterator[Sinks]:
    """Yield what takes rows of the log and what takes lines: a live line, or one now and then."""
    if quiet:
        yield (lambda row: None), (lambda line: None)
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("reading") as status:
            yield _rows(status.update), status.update
    else:
        now_and_then = _now_and_then()
        yield _rows(now_and_then), now_and_then


def _rows(show: Callable[[str], None]) -> Callable[[dict[str, Any]], None]:
    def sink(row: dict[str, Any]) -> None:
        from noisegen.training.log import line_of

        if "loss" in row:
            show(line_of(row))

    return sink


def _now_and_then() -> Callable[[str], None]:
    last = 0.0

    def show(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            click.echo(line, err=True)

    return show
