"""`noisegen prepare`."""

import shlex
import sys
from typing import Any

import click

from noisegen.cli.mining_options import splitter_option
from noisegen.cli.options import column_options, print_json
from noisegen.cli.progress import progress


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-o", "--out", type=click.Path(file_okay=False), required=True,
              help="Folder for the shards.")  # fmt: skip
@click.option("--lang", default="en", show_default=True, help="Language of the text.")
@column_options
@splitter_option
@click.option("--chars-min", type=int, default=10, show_default=True,
              help="Characters of a sentence, at least.")  # fmt: skip
@click.option("--chars-max", type=int, default=1_000, show_default=True,
              help="Characters of a sentence, at most.")  # fmt: skip
@click.option("--common-min", type=float, default=0.9, show_default=True, metavar="SHARE",
              help="Share of common characters of the language, at least.")  # fmt: skip
@click.option("--identify", type=click.Choice(["auto", "yes", "no"]), default="auto",
              show_default=True, help="Drop what a model takes for another language; auto: if "
              "noisegen[lid] is installed.")  # fmt: skip
@click.option("--duplicates", type=click.Choice(["near", "exact", "keep"]), default="near",
              show_default=True, help="Which to drop.")  # fmt: skip
@click.option("--similarity", type=float, default=0.75, show_default=True, metavar="SHARE",
              help="Of near duplicates, at least: shared character sequences.")  # fmt: skip
@click.option("--rows-per-shard", type=int, default=100_000, show_default=True)
@click.option("--limit", type=int, help="Only the first rows of the input.")
@click.option("--workers", type=int, help="Processes; one a CPU if not given.")
@click.option("--executor", default="processes", show_default=True,
              metavar="processes|serial|dask:ADDRESS")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with a run of the same configuration.")
@click.option("--force", is_flag=True, help="Write over a folder that is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the totals as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def prepare(sources: tuple[str, ...], out: str, **options: Any) -> int:
    """Write the clean sentences of raw web or social text as Parquet shards.

    SOURCE: files, folders, globs or - (.txt .tsv .csv .jsonl .parquet, also .gz .zst .bz2 .xz), or
    hf:NAME[:CONFIG][:SPLIT].  Example: noisegen prepare crawl.jsonl.gz -o sentences --lang de
    """  # fmt: skip
    from noisegen.generation import cpus
    from noisegen.preparing import prepare as run

    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    options["workers"] = cpus() if options["workers"] is None else options["workers"]
    words = shlex.join(["noisegen", *(click.get_current_context().obj or sys.argv[1:])])
    with progress(quiet, "sentences") as advance:
        made = run(sources, out, progress=advance, command=words, **options)
    if as_json:
        print_json({"out": out, "shards": len(made.shards), **made.totals})
    elif not quiet:
        click.echo(f"{out}: {made.summary()}", err=True)
    return 3 if made.totals["damaged"] else 0
