"""`noisegen evaluate`."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json
from noisegen.cli.progress import counted_progress


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), required=True,
              metavar="REPORT", help="Folder for metrics.json, metrics.csv and report.html.",
)  # fmt: skip
@click.option("--baseline", metavar="SPEC",
              help="What the models are compared with; else the teacher of the first model, if it "
              "is a student of noisegen train, else the first model.")  # fmt: skip
@click.option("--pairs", multiple=True, metavar="SOURCE",
              help="Natural noisy and clean text: tables, M2 files, folders; repeatable.",
)  # fmt: skip
@click.option("--source", multiple=True, metavar="SOURCE", help="Clean text that is noised.")
@click.option("--transforms", multiple=True, default=["all"], show_default=True, metavar="NAMES",
              help="For --source: transforms and recipes, parted by commas; all: those of RoLASER, "
              "those of posts, mix_all and ugc.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True,
              help="For --source: generation seeds, from 100 on.")  # fmt: skip
@click.option("--strengths", default="0,0.5,1,1.5", show_default=True, metavar="FACTORS",
              help="For --source: factors on the rates of recipes; '' for none.")  # fmt: skip
@click.option("--sts", multiple=True, metavar="SOURCE",
              help="Columns sentence1, sentence2, score.")  # fmt: skip
@click.option("--retrieval", multiple=True, metavar="SOURCE", help="Columns source, target.")
@click.option("--labelled", multiple=True, metavar="SOURCE",
              help="Columns text, label, or sentence1, sentence2, label.")  # fmt: skip
@click.option("--noise", default="ugc", show_default=True, metavar="NAME|FILE.yaml",
              help="Recipe that noises --sts and --labelled.")  # fmt: skip
@click.option("--lang", default="en", show_default=True, help="Language of the text.")
@click.option("--limit", type=click.IntRange(2), default=1_000, show_default=True,
              help="Rows of each set, at most.")  # fmt: skip
@click.option("--hard/--no-hard", default=True, show_default=True,
              help="xSIM also among hard negatives.")  # fmt: skip
@click.option("--paper-stats", is_flag=True, help="t-tests over the seeds, as in RoLASER.")
@click.option("--noisy-column", default="noisy", show_default=True, help="Of --pairs.")
@click.option("--clean-column", default="clean", show_default=True, help="Of --pairs.")
@click.option("--clean-file", type=click.Path(), metavar="FILE",
              help="--pairs is a text file; this has the clean version of every line.")  # fmt: skip
@click.option("--text-column", default="text", show_default=True, help="Of --source.")
@click.option("--force", is_flag=True, help="Replace the report that is in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no table.")
def evaluate(
    models: tuple[str, ...], out: Path, strengths: str, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Measure encoders on noisy text, against a baseline: figures, significance, a report.

    A MODEL is minilm, use, a folder, hf:NAME, laser2:FOLDER or npy:FILE; NAME=MODEL names it in
    the tables, as NAME=SOURCE does with sets.

    Example: noisegen evaluate run/student -o report --pairs pairs.tsv --source news.txt
    """  # fmt: skip
    from noisegen.evaluation.run import evaluate as run

    with counted_progress(quiet, "reading", _line) as tick:
        found = run(models, out, progress=tick, strengths=_factors(strengths), **options)
    for note in found.settings["notes"]:
        click.echo(f"note: {note}", err=True)
    if as_json:
        print_json(found.metrics())
    elif not quiet:
        from noisegen.cli.terminal import Terminal
        from noisegen.evaluation.tables import render

        render(found, Terminal())
        click.echo(f"wrote {out / 'report.html'}", err=True)
    for line in found.settings["damaged"]:
        click.echo(f"damaged: {line}", err=True)
    return 3 if found.settings["damaged"] else 0


def _factors(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as 0,0.5,1", param_hint="--strengths"
        ) from error


def _line(what: str, done: int, total: int) -> str:
    return f"{what}, {done:,} of {total:,} texts" if total else what
