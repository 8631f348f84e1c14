"""`noisegen augment`, `preview`, `stats` and `transforms`."""

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noisegen.augment import NOISE, AugmentOptions, Request
from noisegen.cli import common
from noisegen.options import click_options, decode
from noisegen.runs.progress import progress_on_stderr

if TYPE_CHECKING:
    from noisegen.augment.augment import AugmentPlan
    from noisegen.runs.manifest import Manifest


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("-o", "--out", type=click.Path(file_okay=False), help="Output folder for the shards")
@common.recipe_options
@common.run_options(AugmentOptions, skip={"sources", "out", *NOISE})
@click.option("--from", "manifest", type=click.Path(), metavar="MANIFEST",
              help="Make the rows of an earlier run again")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the plan and ten rows; write nothing")
def augment(
    out: str | None, manifest: str | None, dry_run: bool, as_json: bool, quiet: bool, **given: Any
) -> int:
    """Write clean/noisy pairs as Parquet shards.

    SOURCE: files, folders, globs or - (.txt .tsv .csv .jsonl .parquet, also .gz .zst .bz2 .xz), or
    hf:NAME[:CONFIG][:SPLIT].  Example: noisegen augment news.txt -o out --seed 7
    """
    from noisegen.augment.augment import make_plan, make_shards, request_of
    from noisegen.runs.manifest import Manifest

    run = common.run_values(given)
    earlier = Manifest.load(manifest, "augment") if manifest else None
    if earlier:
        binding = {field.name for field in fields(Request)} | {"settings"}
        common.refuse(binding, "--from makes the same rows again: leave out {}")
        request = request_of(earlier)
    elif not given["sources"]:
        raise click.UsageError("name at least one SOURCE (or --from MANIFEST)")
    else:
        request = _request(given)
    if dry_run:
        return _dry_run(request, as_json)
    if out is None:
        raise click.UsageError("say where the shards go: -o FOLDER")
    options = AugmentOptions(**vars(request), out=out, **run)
    plan = make_plan(options, Path(out))
    if not quiet:
        _warn(plan, earlier)
    with progress_on_stderr(quiet) as show:
        written = make_shards(plan, replace(options, progress=show))
    if as_json:
        common.print_json({"out": out, "shards": len(written.shards), **written.totals})
    elif not quiet:
        click.echo(f"{out}: {written.summary()}", err=True)
    return 3 if written.totals["dropped"] else 0


def _request(given: dict[str, Any]) -> Request:
    values = common.read_settings(given.pop("settings"))
    return decode(Request, {**given, "values": values})


def _warn(plan: "AugmentPlan", earlier: "Manifest | None") -> None:
    """Say on stderr what may surprise."""
    from noisegen.runs.folder import difference

    for skipped in plan.skipped:
        click.echo(f"skipped {skipped}", err=True)
    if plan.left_out:
        names = ", ".join(dict.fromkeys(plan.left_out))
        common.say([f"no data for language {plan.request.lang!r}: left out {names}"], "hint")
    if earlier:
        config = {name: getattr(earlier, name) for name in plan.config}
        if changed := difference(config, plan.config):
            common.say([f"the rows may differ, for this has changed: {changed}"], "hint")


def _dry_run(request: Request, as_json: bool) -> int:
    from noisegen.augment.preview import describe, examples_of, render

    examples, plan = examples_of(request, rows=10), describe(request)
    if as_json:
        common.print_json({"plan": plan, "rows": [example.to_dict() for example in examples]})
    else:
        console = common.terminal()
        console.print(plan, markup=False, highlight=False, soft_wrap=True)
        render(examples, console)
    return 0


@click.command()
@click.argument("sources", nargs=-1, metavar="[TEXT or SOURCE]")
@common.recipe_options
@click_options(Request, only=("text_column", "id_column"))
@click.option("-n", "--rows", type=click.IntRange(min=1), default=10, show_default=True,
              help="Rows to show")  # fmt: skip
@common.as_json
def preview(rows: int, as_json: bool, **given: Any) -> None:
    """Show text before and after, with the changed spans coloured; writes nothing.

    Without TEXT or SOURCE it shows the bundled demo text.
    Example: noisegen preview "See you tomorrow, my friend." -t abr1:rate=1
    """
    from noisegen.augment.preview import examples_of, render

    examples = examples_of(_request(given), rows)
    if as_json:
        common.print_json({"rows": [example.to_dict() for example in examples]})
    else:
        render(examples, common.terminal())


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.png|.html",
              help="Draw the figures into a file (.png needs the extra plot)")  # fmt: skip
@common.as_json
def stats(out: Path, plot: Path | None, as_json: bool) -> None:
    """Show what a run did: rows changed, CER, WER, transforms per row, kinds of edit.

    Example: noisegen stats out --plot out.html
    """
    from noisegen.augment import statistics

    measured = statistics.measure(out)
    if as_json:
        common.print_json(measured.to_dict())
    else:
        statistics.render(measured, common.terminal())
    if plot:
        statistics.plot(measured, plot)
        click.echo(f"wrote {plot}", err=True)


@click.command()
@click.argument("name", required=False)
@click.option("--code", multiple=True, type=click.Path(exists=True, dir_okay=False),
              metavar="FILE.py", help="Python file with transforms; repeatable")  # fmt: skip
@common.as_json
def transforms(name: str | None, code: tuple[str, ...], as_json: bool) -> None:
    """List the transforms, or show one: parameters, examples, data and licence, file:line.

    Example: noisegen transforms spac
    """
    from noisegen.augment.catalog import describe, info, list_transforms, table
    from noisegen.noise.registry import load_code

    for path in code:
        load_code(path)
    if name and as_json:
        common.print_json(info(name).to_dict())
    elif name:
        common.terminal().print(describe(info(name)), highlight=False)
    elif as_json:
        common.print_json({"transforms": [known.to_dict() for known in list_transforms()]})
    else:
        common.terminal().print(table(list_transforms()))
