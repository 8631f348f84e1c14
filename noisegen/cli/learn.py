"""`noisegen learn`: profiles of real noise, shown and merged."""

from pathlib import Path
from typing import Any

import click

from noisegen.cli.options import print_json

PATH = click.Path(path_type=Path)
OUT = click.Path(file_okay=False, path_type=Path)
_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
_out = click.option("-o", "--out", type=OUT, required=True, help="Folder for the profile.")
_force = click.option("--force", is_flag=True, help="Write over a profile.")


class _DefaultGroup(click.Group):
    """A group whose arguments go to `learn from` unless the first one names a command."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Put the name of the default command in front where none is given."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["from", *args]
        return super().parse_args(context, args)


@click.group(cls=_DefaultGroup)
def learn() -> None:
    """Learn a profile of noise from real noisy and clean text, show and merge profiles.

    PAIRS: tables, M2 files, folders of a run, or a text file with --clean-file. A profile serves
    the transform channel: -t channel:profile=PROFILE.

    'noisegen learn PAIRS... -o PROFILE' is short for 'noisegen learn from PAIRS... -o PROFILE'.
    Example: noisegen learn pairs.tsv -o profile --lang en
    """


@learn.command("from")
@click.argument("sources", nargs=-1, required=True, metavar="PAIRS...")
@_out
@click.option("--lang", default="en", show_default=True, help="Language of the text.")
@click.option("--noisy-column", default="noisy", show_default=True, help="Column with the noise.")
@click.option("--clean-column", default="clean", show_default=True, help="Column without.")
@click.option("--clean-file", type=click.Path(), metavar="FILE",
              help="PAIRS is a text file; this has the clean version of every line.")  # fmt: skip
@click.option("--min-count", type=click.IntRange(1), default=2, show_default=True,
              help="Different pairs that a word, and what stands for it, must be seen in.",
)  # fmt: skip
@_force
@_json
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def from_(sources: tuple[str, ...], out: Path, as_json: bool, quiet: bool, **options: Any) -> int:
    """Learn from pairs (the default); write a path as ./show if it is named as a command.

    Example: noisegen learn pairs.tsv -o profile
    """
    from noisegen.manifest import counted
    from noisegen.realism.profile_commands import learn as learn_from

    made = learn_from(sources, out, **options)
    for line in [*made.warnings, *(f"damaged: {line}" for line in made.damaged)]:
        click.echo(f"warning: {line}", err=True)
    totals = made.profile.totals
    if as_json:
        print_json({"out": str(out), **made.to_dict()})
    elif not quiet:
        said = f"{out}: {counted(totals['edits'], 'edit')} in {counted(totals['pairs'], 'pair')}"
        dropped = ", ".join(f"{reason} {count:,}" for reason, count in made.dropped.items())
        click.echo(f"{said}; dropped: {dropped}" if dropped else said, err=True)
    return 3 if made.damaged else 0


@learn.command()
@click.argument("profile", type=PATH)
@click.option("-n", "--rows", type=click.IntRange(1), default=15, show_default=True,
              help="Lines of each table.")  # fmt: skip
@_json
def show(profile: Path, rows: int, as_json: bool) -> int:
    """Show words, gaps, letters, edits per row and habits of a profile.

    Example: noisegen learn show profile -n 30
    """
    from noisegen.cli.terminal import Terminal
    from noisegen.realism import profile_files
    from noisegen.realism.profile_tables import render, to_dict

    found = profile_files.load(profile)
    if as_json:
        print_json(to_dict(found, rows))
    else:
        render(found, Terminal(), rows)
    return 0


@learn.command()
@click.argument("profiles", type=PATH, nargs=-1, required=True, metavar="PROFILE...")
@_out
@_force
@_json
def merge(profiles: tuple[Path, ...], out: Path, force: bool, as_json: bool) -> int:
    """Add up profiles of one language.

    Example: noisegen learn merge essays posts -o both
    """
    from noisegen.manifest import counted
    from noisegen.realism.profile_commands import merge_profiles

    made = merge_profiles(profiles, out, force)
    if as_json:
        print_json({"out": str(out), "digest": made.digest, "lang": made.lang, **made.totals})
    else:
        totals = made.totals
        said = f"{counted(totals['edits'], 'edit')} in {counted(totals['pairs'], 'pair')}"
        click.echo(f"{out}: {said}", err=True)
    return 0
