"""`noisegen realism`."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.common import print_json, terminal
from noisegen.options import click_options
from noisegen.realism.compare import CompareOptions
from noisegen.runs.progress import progress_on_stderr


@click.command()
@click_options(CompareOptions)
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="REPORT.html",
              help="Write a page with plots")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print no progress")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON")
def realism(out: Path | None, quiet: bool, as_json: bool, **options: Any) -> int:
    """Compare synthetic noise with real noise: kinds of edit, places, and a classifier's AUC.

    Example: noisegen realism --real pairs.tsv --recipe mix_all -o report.html
    """  # fmt: skip
    from noisegen.data import pairs
    from noisegen.realism import terminal_tables
    from noisegen.realism.compare import compare

    if out:
        files = filter(None, (options["clean_file"], options["recipe"]))
        pairs.refuse_onto(out, [*options["real"], *options["synthetic"], *files])

    with progress_on_stderr(quiet) as show:
        comparison = compare(progress=show or (lambda _: None), **options)
    for line in comparison.warnings:
        click.echo(f"warning: {line}", err=True)
    if as_json:
        print_json(comparison.to_dict())
    else:
        terminal_tables.render(comparison, terminal())
    if out:
        from noisegen.realism import page

        page.write(comparison, out)
        click.echo(f"wrote {out}", err=True)
    for line in comparison.damaged:
        click.echo(f"damaged: {line}", err=True)
    return 3 if comparison.damaged else 0
