"""`noisegen evaluate` and `noisegen evaluate-task`."""

from collections.abc import Callable
from typing import Any

import click

from noisegen.cli import common
from noisegen.cli.parameters import click_options
from noisegen.errors import UsageError
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.tasks.kinds import EvaluateTaskOptions


@click.command(
    epilog=common.example("evaluate run/student -o report --pairs pairs.tsv --source news.txt")
)
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="Show the published sets: paper, command, where to get it, licence",
)
@click_options(EvaluateOptions, optional=["models", "out"])
@click.option(
    "--strengths",
    default="0,0.5,1,1.5",
    show_default=True,
    metavar="FACTORS",
    help="Factors on the rates of recipes, for --source ('' for none)",
)
@common.output
def evaluate(is_list: bool, strengths: str, **options: Any) -> int:
    """Measure encoders on noisy text, against a baseline.

    Prints and writes metrics, significance and a report.

    A MODEL is minilm, use, a folder, hf:NAME, laser2:FOLDER, rolaser:FOLDER, npy:FILE or, for a
    model whose texts are normalised first, normalized:LANG:MODEL; NAME=MODEL
    names it in the tables, as NAME=SOURCE does with sets.
    """
    if is_list:
        _print_sets(options["as_json"])
        return 0
    for name, needed in (("models", "argument MODEL"), ("out", "option -o, --out")):
        if not options[name]:
            raise UsageError(f"missing {needed}")
    common.check_recipe()
    from noisegen.evaluation.evaluate import evaluate as run
    from noisegen.evaluation.findings import render

    try:
        factors = tuple(float(part) for part in strengths.split(",") if part.strip())
    except ValueError as error:
        raise UsageError(
            f"--strengths {strengths!r} is not a list of numbers such as 0,0.5,1"
        ) from error
    options["strengths"] = factors
    return _run(run, options, lambda results: render(results, common.terminal()), "report.html")


def _print_sets(as_json: bool) -> None:
    from noisegen.evaluation.metrics import published_sets

    if as_json:
        common.print_json({"sets": published_sets()})
        return
    for known in published_sets():
        click.echo(f"{click.style(known['name'], bold=True)}: {known['paper']}; {known['note']}")
        for key in ("command", "get", "licence"):
            click.echo(f"  {key:<8} {known[key]}")


@click.command(
    "evaluate-task",
    epilog=common.example("evaluate-task run/student -o report --train en.tsv --test es=es.tsv"),
)
@click_options(EvaluateTaskOptions)
@common.output
def evaluate_task(**options: Any) -> int:
    """Fine-tune encoders on a task; test them on noisy text.

    The encoders are trained on English and tested in other languages, clean and noisy.

    A MODEL is minilm, a Hugging Face folder, RUN/student or hf:NAME; NAME=MODEL names it in the
    table.
    """
    from noisegen.evaluation.tasks.evaluate_task import evaluate_task as run
    from noisegen.report.terminal import show

    def print_tables(results: Any) -> None:
        show([*results.tables()], common.terminal())
        common.print_lines(results.legend())

    return _run(run, options, print_tables, "metrics.json", "report.html")


def _run(
    function: Callable[..., Any],
    options: dict[str, Any],
    show: Callable[[Any], None],
    *files: str,
) -> int:
    """Call an evaluation function, print its results with `show`, return the exit code.

    The last printed line names `files` in the output folder: 'wrote out/report.html'.
    """
    as_json, out = options.pop("as_json"), options["out"]
    with common.progress() as progress:
        results = function(progress=progress, **options)
    common.say(results.settings["notes"], "note")
    if as_json:
        common.print_json(results.metrics())
    elif not common.is_quiet():
        show(results)
        common.tell(f"wrote {' and '.join(f'{out}/{file}' for file in files)}")
    common.say(results.settings["damaged"], "damaged")
    return 3 if results.settings["damaged"] else 0
