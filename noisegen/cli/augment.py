"""`noisegen augment`."""

import os
import shlex
import sys
from typing import Any

import click
from click.core import ParameterSource

from noisegen.cli.options import (
    column_options,
    plain_examples,
    print_json,
    read_settings,
    recipe_options,
)
from noisegen.cli.progress import progress


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("-o", "--out", type=click.Path(file_okay=False), help="Folder for the shards.")
@recipe_options
@column_options
@click.option("--tokens", metavar="COLUMN", help="Column with the list of tokens of each row.")
@click.option("--labels", metavar="COLUMN", help="Column with the list of their labels.")
@click.option("--copies", type=int, default=1, show_default=True, help="Noisy copies of each row.")
@click.option("--edits", is_flag=True, help="Add the changed spans.")
@click.option("--rows-per-shard", type=int, default=100_000, show_default=True)
@click.option("--limit", type=int, help="Only the first rows of the input.")
@click.option("--workers", type=int, help="Processes; one a CPU if not given.")
@click.option(
    "--executor", default="processes", show_default=True, metavar="processes|serial|dask:ADDRESS"
)
@click.option("--part", metavar="I/N", help="Make every N-th shard, from the I-th: 1/4 ... 4/4.")
@click.option("--resume", is_flag=True, help="Go on with a run of the same configuration.")
@click.option("--force", is_flag=True, help="Write over a folder that is not empty.")
@click.option(
    "--from",
    "manifest",
    type=click.Path(),
    metavar="MANIFEST",
    help="Make the rows of an earlier run again.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and ten rows; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the totals as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def augment(sources: tuple[str, ...], **options: Any) -> int:
    """Write clean/noisy pairs as Parquet shards.

    SOURCE: files, folders, globs or - (.txt .tsv .csv .jsonl .parquet, also .gz .zst .bz2 .xz), or
    hf:NAME[:CONFIG][:SPLIT].  Example: noisegen augment news.txt -o out --seed 7
    """  # fmt: skip
    from pathlib import Path

    from noisegen.generation import carry_out, cpus
    from noisegen.request import prepare

    request = _request(sources, options)
    if options["dry_run"]:
        return _dry_run(request, options["as_json"])
    if options["out"] is None:
        raise click.UsageError("say where the shards go: -o FOLDER")
    run = prepare(request, Path(options["out"]))
    _warn(run, options)
    with progress(options["quiet"]) as advance:
        made = carry_out(
            run,
            workers=cpus() if options["workers"] is None else options["workers"],
            executor=options["executor"],
            part=options["part"],
            resume=options["resume"],
            force=options["force"],
            progress=advance,
            command=shlex.join(["noisegen", *(click.get_current_context().obj or sys.argv[1:])]),
        )
    if options["as_json"]:
        print_json({"out": options["out"], "shards": len(made.shards), **made.totals})
    elif not options["quiet"]:
        click.echo(f"{options['out']}: {made.summary()}", err=True)
    return 3 if made.totals["dropped"] else 0


def _request(sources: tuple[str, ...], options: dict[str, Any]) -> Any:
    from dataclasses import fields

    from noisegen.manifest import Manifest
    from noisegen.request import Request, request_of

    known = {field.name for field in fields(Request)}
    if options["manifest"]:
        _refuse_others(sources, known)
        return request_of(Manifest.load(options["manifest"]))
    if not sources:
        raise click.UsageError("name at least one SOURCE (or --from MANIFEST)")
    chosen = {name: value for name, value in options.items() if name in known}
    return Request(sources, values=read_settings(options["settings"]), **chosen)


def _refuse_others(sources: tuple[str, ...], known: set[str]) -> None:
    """Refuse what would change the rows of an earlier run."""
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in known | {"settings"}
        and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise click.UsageError(f"--from makes the same rows again: leave out {given[0]}")


def _warn(run: Any, options: dict[str, Any]) -> None:
    """Say on stderr what may surprise."""
    from noisegen.manifest import Manifest
    from noisegen.run_folder import difference

    if options["quiet"]:
        return
    for skipped in run.skipped:
        click.echo(f"skipped {skipped}", err=True)
    if run.left_out:
        names = ", ".join(dict.fromkeys(run.left_out))
        click.echo(f"hint: no data for language {run.request.lang!r}: left out {names}", err=True)
    if options["manifest"]:
        made = Manifest.load(options["manifest"])
        earlier = {name: getattr(made, name) for name in run.config}
        if changed := difference(earlier, run.config):
            click.echo(f"hint: the rows may differ, for this has changed: {changed}", err=True)


def _dry_run(request: Any, as_json: bool) -> int:
    from noisegen.cli.terminal import Terminal
    from noisegen.examples import examples_of, plan_of
    from noisegen.preview import render

    examples = examples_of(request, rows=10)
    if as_json:
        print_json({"plan": plan_of(request), "rows": plain_examples(examples)})
        return 0
    console = Terminal(no_color=bool(os.environ.get("NO_COLOR")) or None)
    console.print(plan_of(request), markup=False, highlight=False, soft_wrap=True)
    render(examples, console)
    return 0
