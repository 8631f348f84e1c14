"""`noisegen evaluate` and `noisegen evaluate-task`."""

from typing import Any

import click

from noisegen.cli.common import print_json
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.tasks.kinds import EvaluateTaskOptions
from noisegen.options import click_options
from noisegen.runs.progress import progress_on_stderr


@click.command()
@click_options(EvaluateOptions)
@click.option("--strengths", default="0,0.5,1,1.5", show_default=True, metavar="FACTORS",
              help="For --source: factors on the rates of recipes; '' for none")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no table")
def evaluate(strengths: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Measure encoders on noisy text, against a baseline: figures, significance, a report.

    A MODEL is minilm, use, a folder, hf:NAME, laser2:FOLDER or npy:FILE; NAME=MODEL names it in
    the tables, as NAME=SOURCE does with sets.

    Example: noisegen evaluate run/student -o report --pairs pairs.tsv --source news.txt
    """
    from noisegen.evaluation.evaluate import evaluate as run

    with progress_on_stderr(quiet) as show:
        results = run(progress=show, strengths=_factors(strengths), **options)
    for note in results.settings["notes"]:
        click.echo(f"note: {note}", err=True)
    if as_json:
        print_json(results.metrics())
    elif not quiet:
        from noisegen.cli.common import terminal
        from noisegen.evaluation.findings import render

        render(results, terminal())
        click.echo(f"wrote {options['out']}/report.html", err=True)
    for line in results.settings["damaged"]:
        click.echo(f"damaged: {line}", err=True)
    return 3 if results.settings["damaged"] else 0


def _factors(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as 0,0.5,1", param_hint="--strengths"
        ) from error


@click.command("evaluate-task")
@click_options(EvaluateTaskOptions)
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no table")
def evaluate_task(as_json: bool, quiet: bool, **options: Any) -> int:
    """Fine-tune encoders on an English task; test them in other languages, clean and noisy.

    A MODEL is minilm, a Hugging Face folder, RUN/student or hf:NAME; NAME=MODEL names it in the
    table.

    Example: noisegen evaluate-task run/student -o report --train en.tsv --test es=es.tsv
    """
    from noisegen.evaluation.tasks.evaluate_task import evaluate_task as run

    with progress_on_stderr(quiet) as show:
        results = run(progress=show, **options)
    for note in results.settings["notes"]:
        click.echo(f"note: {note}", err=True)
    if as_json:
        print_json(results.metrics())
    elif not quiet:
        from noisegen.cli.common import terminal

        for table in results.tables():
            terminal().print(table)
        click.echo(results.legend())
        click.echo(f"wrote {options['out']}/metrics.json", err=True)
    for line in results.settings["damaged"]:
        click.echo(f"damaged: {line}", err=True)
    return 3 if results.settings["damaged"] else 0
