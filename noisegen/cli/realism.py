"""`noisegen realism`."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json


@click.command()
@click.option(
    "--real",
    multiple=True,
    required=True,
    metavar="PAIRS",
    help="Real noisy and clean text: tables, M2 files, folders; repeatable.",
)
@click.option(
    "--synthetic",
    multiple=True,
    metavar="OUT",
    help="What noisegen augment wrote, or any pairs; repeatable.",
)
@click.option(
    "--recipe",
    metavar="NAME|FILE.yaml",
    help="Instead of --synthetic: noise the clean side of the real set.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the recipe's noise.")
@click.option("--lang", default="en", show_default=True, help="Language of the text.")
@click.option("--noisy-column", default="noisy", show_default=True, help="Column with the noise.")
@click.option("--clean-column", default="clean", show_default=True, help="Column without.")
@click.option(
    "--clean-file",
    type=click.Path(),
    metavar="FILE",
    help="--real is a text file; this has the clean version of every line.",
)
@click.option(
    "--rows",
    "rows_max",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Rows of each set that are compared, at most.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="REPORT.html",
    help="Write a page with plots.",
)
@click.option("--quiet", is_flag=True, help="Print no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def realism(out: Path | None, quiet: bool, as_json: bool, **options: Any) -> int:
    """Compare synthetic noise with real noise: kinds of edit, places, and a classifier's AUC.

    Example: noisegen realism --real pairs.tsv --recipe mix_all -o report.html
    """  # fmt: skip
    from noisegen.cli.terminal import Terminal
    from noisegen.realism import pairs, reading, tables

    if out:
        files = options["clean_file"], options["recipe"]
        pairs.refuse_onto(out, [*options["real"], *options["synthetic"], *filter(None, files)])
    found = reading.compare(progress=_silent if quiet else _tell, **options)
    for line in found.warnings:
        click.echo(f"warning: {line}", err=True)
    if as_json:
        print_json(found.to_dict())
    else:
        tables.render(found, Terminal())
    if out:
        from noisegen.realism import page

        page.write(found, out)
        click.echo(f"wrote {out}", err=True)
    for line in found.damaged:
        click.echo(f"damaged: {line}", err=True)
    return 3 if found.damaged else 0


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _silent(line: str) -> None:
    pass
