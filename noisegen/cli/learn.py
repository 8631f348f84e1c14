"""`noisegen learn`: profiles of real noise, shown and merged."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noisegen.cli.common import print_json, terminal
from noisegen.options import click_options
from noisegen.realism.learn import LearnOptions

if TYPE_CHECKING:
    from noisegen.noise.profile import Profile

PATH = click.Path(path_type=Path)
_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON")


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
@click_options(LearnOptions)
@_json
@click.option("-q", "--quiet", is_flag=True, help="Print no summary")
def from_(out: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Learn from pairs (the default); write a path as ./show if it is named as a command.

    Example: noisegen learn pairs.tsv -o profile
    """
    from noisegen.realism.learn import learn as learn_from

    learned = learn_from(out=out, **options)
    for line in [*learned.warnings, *(f"damaged: {line}" for line in learned.damaged)]:
        click.echo(f"warning: {line}", err=True)
    if as_json:
        print_json({"out": out, **learned.to_dict()})
    elif not quiet:
        dropped = ", ".join(f"{reason} {count:,}" for reason, count in learned.dropped.items())
        summary = f"{out}: {_summary(learned.profile)}"
        click.echo(f"{summary}; dropped: {dropped}" if dropped else summary, err=True)
    return 3 if learned.damaged else 0


def _summary(profile: "Profile") -> str:
    from noisegen.runs.manifest import counted

    totals = profile.totals
    return f"{counted(totals['edits'], 'edit')} in {counted(totals['pairs'], 'pair')}"


@learn.command()
@click.argument("profile", type=PATH)
@click.option("-n", "--rows", type=click.IntRange(1), default=15, show_default=True,
              help="Lines per table")  # fmt: skip
@_json
def show(profile: Path, rows: int, as_json: bool) -> int:
    """Show words, gaps, letters, edits per row and habits of a profile.

    Example: noisegen learn show profile -n 30
    """
    from noisegen.noise.profile import load
    from noisegen.realism.terminal_tables import profile_to_dict, render_profile

    counts = load(profile)
    if as_json:
        print_json(profile_to_dict(counts, rows))
    else:
        render_profile(counts, terminal(), rows)
    return 0


@learn.command()
@click.argument("profiles", type=PATH, nargs=-1, required=True, metavar="PROFILE...")
@click.option("-o", "--out", type=click.Path(file_okay=False), metavar="PROFILE", required=True,
              help="Folder for the sum")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite a profile")
@_json
def merge(profiles: tuple[Path, ...], out: str, force: bool, as_json: bool) -> int:
    """Add up profiles of one language.

    Example: noisegen learn merge essays posts -o both
    """
    from noisegen.realism.learn import merge_profiles

    merged = merge_profiles(profiles, out, force)
    if as_json:
        print_json({"out": out, "digest": merged.digest, "lang": merged.lang, **merged.totals})
    else:
        click.echo(f"{out}: {_summary(merged)}", err=True)
    return 0
