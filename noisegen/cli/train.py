"""`noisegen train`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json
from noisegen.cli.progress import now_and_then

_SETTINGS = ("teacher", "student", "objective", "noise", "lang", "seed", "epochs", "steps",
             "time_limit")  # fmt: skip


@click.command()
@click.argument("data", nargs=-1)
@click.option(
    "--list", "listed", is_flag=True, help="Show the presets: paper, data, cost, command."
)
@click.option("-o", "--out", metavar="RUN", help="Folder of the run.")
@click.option(
    "--preset",
    metavar="NAME",
    help="One of --list; without it quickstart, or what the objective belongs to.",
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
    "--teacher",
    metavar="SPEC",
    help="minilm, use, e5, a folder, hf:NAME, laser2:FOLDER, npy:FILE or social:SPEC.",
)
@click.option(
    "--student", metavar="SPEC", help="copy, layers:0,3,5, char, e5, a folder or hf:NAME."
)
@click.option("--objective", metavar="NAME[+NAME]", help="Such as two_term+0.2*info_nce.")
@click.option(
    "--noise",
    metavar="stored[:RECIPE]|RECIPE",
    help="The noisy side of DATA, noise on it in its own language, or noise on clean text, anew in "
    "every epoch.",
)
@click.option("--lang", help="Language of clean text.")
@click.option("--seed", type=click.IntRange(0), help="Of batches, noise and new weights.")
@click.option("--epochs", type=float, help="Passes over the data.")
@click.option("--steps", type=click.IntRange(1), help="Updates.")
@click.option("--time-limit", metavar="10m", help="The learning rate falls to 0 in this time.")
@click.option(
    "--max-drift", type=float, help="Stop when the mean of 1 - cos(T[clean], S[clean]) is above."
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 or auto.")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint.")
@click.option("--force", is_flag=True, help="Remove the run that is in the folder.")
@click.option("--dry-run", is_flag=True, help="Print what it will cost; train nothing.")
@click.option("--bench", "timed", is_flag=True, help="Time updates and data; train nothing.")
@click.option(
    "--bench-seconds", "seconds", type=click.FloatRange(0.01), default=10.0, show_default=True,
    help="Of each figure of --bench.",
)  # fmt: skip
@click.option("--tensorboard", "boards", is_flag=True, help="Write RUN/tensorboard too.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def train(
    data: tuple[str, ...],
    listed: bool,
    out: str | None,
    given: tuple[str, ...],
    timed: bool,
    seconds: float,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Distil a robust student: noisy text where the teacher puts its clean form.

    DATA is clean text where --noise is a recipe; else pairs: folders of augment or mine, tables
    with columns noisy and clean, or bitext (A.de,B.en; deu-eng.tsv; an OPUS folder or zip).

    Example: noisegen train out -o run --time-limit 10m
    """  # fmt: skip
    from noisegen.training.methods import train as run
    from noisegen.training.setting_values import parse_values

    if listed:
        _list(as_json)
        return
    if not data:
        raise click.UsageError("Missing argument 'DATA...'.")
    values = parse_values(given)
    names = (*_SETTINGS, "max_drift")
    values |= {name: options.pop(name) for name in names if options[name] is not None}
    options = {name: value for name, value in options.items() if name not in names}
    if timed:
        where = {name: options[name] for name in ("preset", "config", "device")}
        _bench(data, seconds, quiet, as_json, values=values, **where)
        return
    if out is None and not options["dry_run"]:
        raise click.UsageError("Missing option '-o' / '--out'.")
    with progress(quiet) as (sink, tell):
        found = run(data, out or ".", values=values, sinks=[sink], tell=tell, **options)
    if as_json:
        print_json(found)
    elif options["dry_run"]:
        _print_estimate(found)
    elif found:
        _print_figures(found, Path(out or "."))


def _list(as_json: bool) -> None:
    """Print the presets."""
    from noisegen.training.preset import preset_names, read_preset

    found = [read_preset(name) for name in preset_names()]
    if as_json:
        print_json({"presets": [one.to_dict() for one in found]})
        return
    for one in found:
        click.echo(f"{click.style(one.name, bold=True)}: {one.paper}")
        for what in ("objective", "data", "cost", "command", "table"):
            click.echo(f"  {what:<10} {getattr(one, what)}")


def _bench(
    data: tuple[str, ...], seconds: float, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Time updates and data, and print the figures."""
    from noisegen.training.bench import bench

    with progress(quiet) as (_, tell):
        found = bench(data, seconds=seconds, tell=tell, **options)
    if as_json:
        print_json(found.to_dict())
        return
    how = f"{'packed' if found.packed else 'padded'} batches{', compiled' * found.compiled}"
    click.echo(
        f"{found.device}, {found.precision}, {how}: {found.tokens_per_row:.1f} tokens a row, "
        f"{found.padding:.1%} padding"
    )
    for what, speed, mfu in (
        ("updates on random ids", found.step, found.step_mfu),
        ("updates on DATA", found.data, found.mfu),
        ("noise and tokenizer alone", found.loader, None),
    ):
        click.echo(f"{what:<26}{speed:>12,.0f} tokens/s" + (f"  mfu {mfu:.1%}" if mfu else ""))
    click.echo(f"the loader costs {found.loader_cost:.1%}")


def _print_estimate(found: dict[str, Any]) -> None:
    if "padding" not in found:  # of heads
        click.echo("{weights:,} weights\n{pairs:,} pairs of {texts:,} texts".format(**found))
        return
    click.echo(
        f"{found['parameters']:,} weights, {found['trained']:,} trained "
        f"({found['weight_bytes'] / 1e9:.2f} GB with gradients and moments)\n"
        f"{found['pairs']:,} pairs of {found['tokens_per_pair']:.1f} tokens, "
        f"{found['padding']:.1%} padding\n"
        f"{found['updates_per_epoch']:,} updates an epoch, each of "
        f"{found['pairs_per_update']:.0f} pairs; {found['flop_per_token'] / 1e6:,.0f} MFLOP a token"
    )


def _print_figures(found: dict[str, Any], out: Path) -> None:
    from noisegen.training.pair_data import lost

    said = found["validation"]
    shown = [words.format(said[name]) for name, words in _WORDS.items() if name in said] or [
        f"{name.replace('_', ' ')} {round(value, 4):,}" for name, value in said.items()
    ]
    click.echo(
        f"{found['updates']:,} updates, {found['pairs']:,} pairs in {found['seconds']:,.0f} s\n"
        f"held out: {', '.join(shown)}"
    )
    if words := lost(found["dropped"], found.get("cut", 0)):
        click.echo(f"of DATA: {'; '.join(words)}")
    for name, percent in found.get("retrieval", {}).items():
        there, back = (percent[f"retrieval.{way}"] for way in ("forward", "backward"))
        click.echo(f"retrieval by {name} vectors: {there:.1f} % there, {back:.1f} % back")
    for name, path in _MADE.items():
        if (out / path).exists():
            click.echo(f"{name}: {out / path}")


_WORDS = {
    "loss_mlm_noisy": "loss under masks {:.3f} noisy",
    "loss_mlm_clean": "{:.3f} clean",
    "distance": "distance {:.4f}",
    "anchored": "to the teacher's clean vector {:.4f}",
    "drift": "drift {:.4f}",
    "missed": "nearest is another's {:.2%}",
}
_MADE = {  # by what a run may have made
    "student": "student", "heads": "heads", "language": "language", "picture": "vectors.html",
}  # fmt: skip
Sinks = tuple[Callable[[dict[str, Any]], None], Callable[[str], None]]


@contextmanager
def progress(quiet: bool) -> Iterator[Sinks]:
    """Yield what takes rows of the log and what takes lines: a live line, or one now and then."""
    if quiet:
        yield (lambda row: None), (lambda line: None)
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("reading") as status:
            yield _rows(status.update), status.update
    else:
        show = now_and_then()
        yield _rows(show), show


def _rows(show: Callable[[str], None]) -> Callable[[dict[str, Any]], None]:
    def sink(row: dict[str, Any]) -> None:
        from noisegen.training.log import line_of

        if "loss" in row:
            show(line_of(row))

    return sink
