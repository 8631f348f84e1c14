"""`noisegen calibrate`."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.common import print_json, read_settings, terminal
from noisegen.options import click_options
from noisegen.realism.calibrate import CalibrateOptions
from noisegen.runs.progress import progress_on_stderr


@click.command()
@click_options(CalibrateOptions)
@click.option("--set", "settings", multiple=True, metavar="TRANSFORM.PARAM=VALUE",
              help="Change a parameter of the recipe first; repeatable")  # fmt: skip
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="RECIPE.yaml",
              help="File for the new recipe (default: print it)")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print recipe and figures as JSON")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress and no table")
def calibrate(
    source: tuple[str, ...], settings: tuple[str, ...], out: Path | None, as_json: bool,
    quiet: bool, **options: Any,
) -> int:  # fmt: skip
    """Scale a recipe to the error rate that you ask for.

    The rate is that of the noise on SOURCE, clean text (default: the bundled demo text).
    Example: noisegen calibrate --recipe fing --target-cer 0.05 -o five.yaml
    """  # fmt: skip
    from noisegen.data.pairs import refuse_onto
    from noisegen.realism.calibrate import calibrate as run
    from noisegen.realism.terminal_tables import calibrated_table

    if out:
        refuse_onto(out, source)

    def tell(line: str) -> None:
        if not quiet:
            click.echo(f"hint: {line}", err=True)

    with progress_on_stderr(quiet, "measuring") as show:
        calibrated = run(
            source=source, values=read_settings(settings), name=out.stem if out else None,
            tell=tell, progress=show or (lambda _: None), **options,
        )  # fmt: skip
    for line in calibrated.warnings:
        click.echo(f"warning: {line}", err=True)
    if out:
        calibrated.save(out)
    if as_json:
        print_json(calibrated.to_dict())
        return 0
    if not out:
        click.echo(calibrated.to_yaml(), nl=False)
    if not quiet:
        terminal(stderr=True).print(calibrated_table(calibrated))
        if out:
            used = f"noisegen augment TEXT -o OUT --recipe {out}"
            click.echo(f"wrote {out}; use it: {used}", err=True)
    return 0
