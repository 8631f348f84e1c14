"""`noisegen stats`."""

from pathlib import Path

import click

from noisegen.cli.options import print_json


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png|.html",
    help="Draw the figures into a file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def stats(out: Path, plot: Path | None, as_json: bool) -> int:
    """Show what a run did: rows changed, CER, WER, transforms per row, kinds of edit.

    Example: noisegen stats out --plot out.html
    """  # fmt: skip
    from noisegen import statistics
    from noisegen.cli.terminal import Terminal

    found = statistics.measure(out)
    if as_json:
        print_json(found.to_dict())
    else:
        statistics.render(found, Terminal())
    if plot:
        statistics.plot(found, plot)
        click.echo(f"wrote {plot}", err=True)
    return 0
