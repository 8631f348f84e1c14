"""`noisegen evaluate-task`."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json
from noisegen.cli.progress import counted_progress


@click.command("evaluate-task")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), required=True,
              metavar="REPORT", help="Folder for metrics.json, metrics.csv and results.json.",
)  # fmt: skip
@click.option("--task", type=click.Choice(["intent-slots", "ner", "nli"]), default="intent-slots",
              show_default=True, help="What the data is labelled with.")  # fmt: skip
@click.option("--train", required=True, metavar="FILE",
              help="Labelled data to fine-tune on: SNIPS JSON (file, folder, glob), MultiATIS++ or "
              "MultiSNIPS tables; WikiANN text; XNLI tables.")  # fmt: skip
@click.option("--test", multiple=True, required=True, metavar="LANG=CLEAN[,NOISY]",
              help="Labelled data to test on, in the same formats; repeatable.")  # fmt: skip
@click.option("--lang", default="en", show_default=True, help="Language of --train.")
@click.option("--noise", metavar="NAME",
              help="Noise clean test rows that have no noisy version, by a transform or recipe: "
              "wiki:dictionary=FILE has RCP's rate for each language.")  # fmt: skip
@click.option("--augment", metavar="RECIPE",
              help="Train every model also on data with noise, such as rcp-en-aggregate: a column "
              "MODEL+t in the table.")  # fmt: skip
@click.option("--growth", type=click.FloatRange(1), metavar="TIMES",
              help="With --augment: size of the data with its noisy copies; 5.5 for SNIPS, 3.5 "
              "for ATIS, else 2.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 5), default=3, show_default=True,
              help="How many of RCP's seeds: 1234, 1000, 2000, 3000, 4321.")  # fmt: skip
@click.option("--epochs", type=click.FloatRange(0, min_open=True),
              help="Default: RCP's. SNIPS 40 (10 with --augment), ATIS 80 (20), WikiANN 3, XNLI 5.",
)  # fmt: skip
@click.option("--lr", type=click.FloatRange(0, min_open=True),
              help="Default: RCP's, 1e-4 for SNIPS and ATIS, else 2e-5.")  # fmt: skip
@click.option("--batch-tokens", type=click.IntRange(1), default=512, show_default=True,
              help="Pieces of one update, padding included.")  # fmt: skip
@click.option("--max-length", type=click.IntRange(8),
              help="Pieces of a row. Default: 50 for SNIPS and ATIS, else 128.")  # fmt: skip
@click.option("--fast", is_flag=True,
              help="At most 3 epochs on at most 4,000 rows, to see that all works.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1.")
@click.option("--force", is_flag=True, help="Replace the figures that are in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print metrics.json.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no table.")
def evaluate_task(
    models: tuple[str, ...], out: Path, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Fine-tune encoders on an English task; test them in other languages, clean and noisy.

    A MODEL is minilm, a Hugging Face folder, RUN/student or hf:NAME; NAME=MODEL names it in the
    table.

    Example: noisegen evaluate-task run/student -o report --train en.tsv --test es=es.tsv
    """  # fmt: skip
    from noisegen.tasks.run import evaluate_task as run

    with counted_progress(quiet, "reading", _line) as tick:
        found = run(models, out, progress=tick, **options)
    for note in found.settings["notes"]:
        click.echo(f"note: {note}", err=True)
    if as_json:
        print_json(found.metrics())
    elif not quiet:
        from noisegen.cli.terminal import Terminal
        from noisegen.tasks.results import legend, tables_of

        for table in tables_of(found):
            Terminal().print(table)
        click.echo(legend(found))
        click.echo(f"wrote {out / 'metrics.json'}", err=True)
    for line in found.settings["damaged"]:
        click.echo(f"damaged: {line}", err=True)
    return 3 if found.settings["damaged"] else 0


def _line(what: str, done: int, total: int) -> str:
    return f"{what}, {done:,} of {total:,} rows" if total else what
