"""`noisegen calibrate`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json, read_settings
from noisegen.cli.progress import counted_progress


@click.command()
@click.argument("source", nargs=-1, metavar="[SOURCE...]")
@click.option("--recipe", default="mix_all", show_default=True, metavar="NAME|FILE.yaml",
              help="The recipe, or transform, to start from.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="RECIPE.yaml",
              help="File for the new recipe; else it is printed.")  # fmt: skip
@click.option("--real", multiple=True, metavar="PAIRS",
              help="Fit to noisy and clean text: a table, M2 file or folder of a run.",
)  # fmt: skip
@click.option(
    "--target-cer", type=float, metavar="SHARE", help="Scale to this character error rate."
)
@click.option("--target-wer", type=float, metavar="SHARE", help="Scale to this word error rate.")
@click.option("--lang", default="en", show_default=True, help="Language of the text.")
@click.option("--set", "settings", multiple=True, metavar="TRANSFORM.PARAM=VALUE",
              help="Change a parameter of the recipe first; repeatable.")  # fmt: skip
@click.option("--noisy-column", default="noisy", show_default=True, help="Of --real.")
@click.option("--clean-column", default="clean", show_default=True, help="Of --real.")
@click.option("--clean-file", type=click.Path(), metavar="FILE",
              help="--real is a text file; this has the clean text of every line.")  # fmt: skip
@click.option("--text-column", default="text", show_default=True, help="Of SOURCE.")
@click.option("--rounds", type=click.IntRange(1, 100), default=6, show_default=True,
              help="Rounds of measuring and correcting a fit to --real.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--protect", default="url,mention,hashtag,email", show_default=True,
              help="Kinds of span that stay as they are; 'none' for no kind.")  # fmt: skip
@click.option("--tagger", default="auto", show_default=True,
              type=click.Choice(["auto", "spacy", "rule"]),
              help="Parts of speech for slng and abr3.")  # fmt: skip
@click.option("--code", multiple=True, type=click.Path(exists=True, dir_okay=False),
              metavar="FILE.py", help="Run a file that registers transforms; repeatable.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print recipe and figures as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no table.")
def calibrate(
    source: tuple[str, ...], out: Path | None, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Make a recipe as noisy as real text is, or as strong as you ask.

    With --real it is fitted to noisy and clean text, and judged on pairs kept from the fit. With
    --target-cer or --target-wer it is scaled on SOURCE, clean text (else the bundled demo text).
    Example: noisegen calibrate --recipe ugc --target-cer 0.05 -o five.yaml
    """  # fmt: skip
    from noisegen.cli.terminal import Terminal
    from noisegen.realism.calibrated import render
    from noisegen.realism.calibration import calibrate as run
    from noisegen.realism.pairs import refuse_onto

    if out:
        refuse_onto(out, [*source, *options["real"], *filter(None, [options["clean_file"]])])
    options["values"] = read_settings(options.pop("settings"))
    options["name"] = out.stem if out else None
    with counted_progress(quiet, "measuring", _line) as tick:
        made = run(source=source, tell=_tell(quiet), tick=tick, **options)
    for line in made.warnings:
        click.echo(f"warning: {line}", err=True)
    if out:
        made.save(out)
    if as_json:
        print_json(made.to_dict())
        return 0
    if not out:
        click.echo(made.to_yaml(), nl=False)
    if not quiet:
        render(made, Terminal(stderr=True))
        if out:
            click.echo(
                f"wrote {out}; use it: noisegen augment TEXT -o OUT --recipe {out}", err=True
            )
    return 0


def _tell(quiet: bool) -> Callable[[str], None]:
    return lambda line: None if quiet else click.echo(f"hint: {line}", err=True)


def _line(what: str, done: int, total: int) -> str:
    return f"{done}{f' of {total}' if total else ''} measured: {what}"
