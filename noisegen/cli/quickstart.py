"""`noisegen quickstart`."""

from pathlib import Path

import click

from noisegen.cli.options import print_json
from noisegen.cli.train import progress


@click.command()
@click.option("-o", "--out", required=True, type=click.Path(file_okay=False, path_type=Path),
              metavar="DIR", help="Folder for texts, pairs, run and report.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--time-limit", default="8m", show_default=True, help="Of training alone.")
@click.option("--force", is_flag=True, help="Replace what is in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json of the report.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def quickstart(
    out: Path, seed: int, time_limit: str, force: bool, as_json: bool, quiet: bool
) -> None:
    """Make a robust student in minutes: augment, train and evaluate on real text, offline.

    The sentences are those that gensim ships (extra demo), the teacher is minilm (extra train).

    Example: noisegen quickstart -o first
    """
    from noisegen.demo.run import quickstart as run

    with progress(quiet) as (sink, tell):
        found = run(out, seed=seed, time_limit=time_limit, force=force, sinks=[sink], tell=tell)
    if as_json:
        print_json(found.results.metrics())
        return
    for line in found.lines:
        click.echo(line)
    click.echo(f"student: {out / 'run' / 'student'}, report: {out / 'report' / 'report.html'}")
