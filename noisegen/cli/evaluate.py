"""`noisegen evaluate` and `noisegen evaluate-task`."""

from collections.abc import Callable
from typing import Any

import click

from noisegen.cli import common
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.tasks.kinds import EvaluateTaskOptions
from noisegen.options import click_options
from noisegen.runs.progress import progress_on_stderr


@click.command()
@click_options(EvaluateOptions)
@click.option("--strengths", default="0,0.5,1,1.5", show_default=True, metavar="FACTORS",
              help="For --source: factors on the rates of recipes; '' for none")  # fmt: skip
@common.as_json
@common.quiet
def evaluate(strengths: str, **options: Any) -> int:
    """Measure encoders on noisy text, against a baseline: figures, significance, a report.

    A MODEL is minilm, use, a folder, hf:NAME, laser2:FOLDER or npy:FILE; NAME=MODEL names it in
    the tables, as NAME=SOURCE does with sets.

    Example: noisegen evaluate run/student -o report --pairs pairs.tsv --source news.txt
    """
    from noisegen.evaluation.evaluate import evaluate as run
    from noisegen.evaluation.findings import render

    try:
        factors = tuple(float(part) for part in strengths.split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(
            f"{strengths!r} is no list of numbers such as 0,0.5,1", param_hint="--strengths"
        ) from error
    options["strengths"] = factors
    return _run(run, options, lambda results: render(results, common.terminal()), "report.html")


@click.command("evaluate-task")
@click_options(EvaluateTaskOptions)
@common.as_json
@common.quiet
def evaluate_task(**options: Any) -> int:
    """Fine-tune encoders on an English task; test them in other languages, clean and noisy.

    A MODEL is minilm, a Hugging Face folder, RUN/student or hf:NAME; NAME=MODEL names it in the
    table.

    Example: noisegen evaluate-task run/student -o report --train en.tsv --test es=es.tsv
    """
    from noisegen.evaluation.tasks.evaluate_task import evaluate_task as run

    def show(results: Any) -> None:
        for table in results.tables():
            common.terminal().print(table)
        click.echo(results.legend())

    return _run(run, options, show, "metrics.json")


def _run(
    function: Callable[..., Any], options: dict[str, Any], show: Callable[[Any], None], file: str
) -> int:
    """Measure, print the results, and return the exit code."""
    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    with progress_on_stderr(quiet) as progress:
        results = function(progress=progress, **options)
    common.say(results.settings["notes"], "note")
    if as_json:
        common.print_json(results.metrics())
    elif not quiet:
        show(results)
        click.echo(f"wrote {options['out']}/{file}", err=True)
    common.say(results.settings["damaged"], "damaged")
    return 3 if results.settings["damaged"] else 0
