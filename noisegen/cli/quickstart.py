"""`noisegen quickstart`."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.common import print_json
from noisegen.cli.train import reporting
from noisegen.demo.quickstart import QuickstartOptions
from noisegen.options import click_options
from noisegen.runs.progress import progress_on_stderr


@click.command()
@click_options(QuickstartOptions)
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json of the report")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress")
def quickstart(as_json: bool, quiet: bool, **options: Any) -> None:
    """Make a robust student in minutes: augment, train and evaluate on real text, offline.

    The sentences are those that gensim ships (extra demo), the teacher is minilm (extra train).

    Example: noisegen quickstart -o first
    """
    from noisegen.demo.quickstart import quickstart as run

    with progress_on_stderr(quiet) as show:
        made = run(**options, **reporting(show))
    if as_json:
        print_json(made.results.metrics())
        return
    for line in made.lines:
        click.echo(line)
    out = Path(options["out"])
    click.echo(f"student: {out / 'run' / 'student'}, report: {out / 'report' / 'report.html'}")
