"""Options that the mine-* commands share, what they mean, and what a run prints."""

import shlex
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from noisegen.cli.options import print_json

F = TypeVar("F", bound=Callable[..., Any])
PROFILES = ("rcp", "strict", "all")

_OPTIONS = (
    click.option("-o", "--out", type=click.Path(file_okay=False), required=True,
                 help="Folder for pairs and dictionary."),
    click.option("--profile", type=click.Choice(PROFILES), default="rcp", show_default=True,
                 help="Which pairs are kept: as the RCP paper, only the surest, or all sentences."),
    click.option("--max-char-distance", metavar="N|none",
                 help="Edits between the words of a pair, at most; else that of the profile."),
    click.option("--fuzzy-pinyin", is_flag=True,
                 help="Chinese: take zh/z, sh/s, ch/c, n/l and -ng/-n for the same sound."),
    click.option("--min-pages", type=int, metavar="N",
                 help="Dictionary: pages (or rows) that a word pair needs."),
    click.option("--min-count", type=int, metavar="N",
                 help="Dictionary: sentence pairs that a word pair needs."),
    click.option("--balance", type=int, metavar="N",
                 help="Dictionary: how many times its reverse a word pair must be; 0 for any."),
    click.option("--frequency", type=int, metavar="N",
                 help="Dictionary: how many times as frequent in the corrected sentences the right "
                 "word must be; 0 for any."),
    click.option("--top", type=int, metavar="N",
                 help="Dictionary: wrong forms kept of a word; 0 for all."),
    click.option("--workers", type=int, help="Processes; one a CPU if not given."),
    click.option("--executor", default="processes", show_default=True,
                 metavar="processes|serial|dask:ADDRESS"),
    click.option("--part", metavar="I/N", help="Mine every N-th file, from the I-th: 1/4 ... 4/4."),
    click.option("--resume", is_flag=True, help="Go on with a run of the same configuration."),
    click.option("--force", is_flag=True, help="Write over a folder that is not empty."),
    click.option("--strict", is_flag=True, help="Take damaged input for an error."),
    click.option("--json", "as_json", is_flag=True, help="Print the totals as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="No progress, no summary."),
)  # fmt: skip


splitter_option = click.option(
    "--splitter", type=click.Choice(["sentencex", "punkt", "spacy"]), default="sentencex",
    show_default=True, help="What splits text into sentences.",
)  # fmt: skip


def mining_options(function: F) -> F:
    """Add the options of every mine-* command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def mine_and_report(
    function: Callable[..., Any], sources: tuple[str, ...], options: dict[str, Any], **own: Any
) -> tuple[int, Any]:
    """Call a mining function, print the summary, and return exit code and manifest.

    `own` are the options of one command alone. The code is 3 for damaged input.
    """
    from noisegen.cli.progress import mining_progress
    from noisegen.generation import cpus

    out, quiet = options["out"], options["quiet"]
    with mining_progress(quiet) as (advance, running):
        made = function(
            sources,
            out,
            workers=cpus() if options["workers"] is None else options["workers"],
            progress=advance,
            running=running,
            command=shlex.join(["noisegen", *(click.get_current_context().obj or sys.argv[1:])]),
            **{name: options[name] for name in _PASSED},
            **own,
        )
    if options["as_json"]:
        after = {"dictionary": made.dictionary, "missing_tasks": made.missing_tasks}
        print_json({"out": out, "shards": len(made.shards), **made.totals, **after})
    elif not quiet:
        for line in made.damage[:DAMAGE_SHOWN]:
            click.echo(f"damaged: {line}", err=True)
        click.echo(f"{out}: {made.summary()}", err=True)
    return (3 if made.totals["damaged"] else 0), made


def tell(options: dict[str, Any]) -> Callable[[str], None] | None:
    """Return what prints a line on standard error, None when nothing is to be printed."""
    return None if options["quiet"] else partial(click.echo, err=True)


_PASSED = (
    "profile", "max_char_distance", "fuzzy_pinyin",
    "min_pages", "min_count", "balance", "frequency", "top",
    "executor", "part", "resume", "force", "strict",
)  # fmt: skip
DAMAGE_SHOWN = 10  # lines; all are in the manifest
