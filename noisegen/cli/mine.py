"""`noisegen prepare`, `mine-wiki`, `mine-lang8` and `mine-pairs`."""

from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import Any

import click

from noisegen.cli import common
from noisegen.mining import mine
from noisegen.prepare import prepare as preparation
from noisegen.runs.manifest import Manifest
from noisegen.runs.progress import progress_on_stderr

DAMAGE_SHOWN = 10  # lines; all are in the manifest


@click.command()
@common.run_options(preparation.PrepareOptions)
def prepare(**given: Any) -> int:
    """Write the clean sentences of raw web or social text as Parquet shards.

    SOURCE: files, folders, globs or - (.txt .tsv .csv .jsonl .parquet, also .gz .zst .bz2 .xz), or
    hf:NAME[:CONFIG][:SPLIT].  Example: noisegen prepare crawl.jsonl.gz -o sentences --lang de
    """
    return _run(preparation.prepare, given)


@click.command("mine-wiki")
@common.run_options(mine.WikiOptions, skip={"skip"})
@click.option("--no-skip", "skip", is_flag=True, flag_value=False, default=True,
              help="Compare whole pages: slow, to check the short cuts")  # fmt: skip
def mine_wiki(**given: Any) -> int:
    """Mine sentence pairs and a dictionary from the revision history of a wiki.

    DUMP: files, folders or globs of pages-meta-history or content history (.xml, .bz2, .7z, .gz,
    .zst, .xz).  Example: noisegen mine-wiki enwiki-*.xml.bz2 -o out --lang en
    """
    return _run(mine.mine_wiki, given, tell=_tell(given))


@click.command("mine-lang8")
@common.run_options(mine.Lang8Options)
def mine_lang8(**given: Any) -> int:
    """Mine a dictionary of real errors from learners' sentences and their corrections.

    FILE: Lang-8 entries (a JSON array a line) or M2, compressed or not; its content tells which.
    Example: noisegen mine-lang8 lang-8.dat -o out --lang ja
    """
    return _run(mine.mine_lang8, given)


@click.command("mine-pairs")
@common.run_options(mine.PairsOptions)
def mine_pairs(**given: Any) -> int:
    """Mine a dictionary of real errors from parallel noisy and clean text.

    SOURCE: tables as for augment (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), or a text
    file with --clean-file.  Example: noisegen mine-pairs pairs.tsv -o out --lang en
    """
    return _run(mine.mine_pairs, given, tell=_tell(given))


def _tell(given: dict[str, Any]) -> Callable[[str], None] | None:
    return None if given["quiet"] else partial(click.echo, err=True)


def _run(function: Callable[..., Manifest], given: dict[str, Any], **callbacks: Any) -> int:
    """Call a function that writes a folder, print what it did, and return the exit code."""
    out, as_json, quiet = given["out"], given.pop("as_json"), given.pop("quiet")
    values = common.run_values(given)
    with progress_on_stderr(quiet) as show:
        manifest = function(**given, **values, **callbacks, progress=show)
    totals = manifest.totals
    if as_json:
        names = ("dictionary", "missing_tasks") if manifest.kind != "prepare" else ()
        after = {name: getattr(manifest, name) for name in names}
        common.print_json({"out": out, "shards": len(manifest.shards), **totals, **after})
    elif not quiet:
        common.say(manifest.damage[:DAMAGE_SHOWN], "damaged")
        click.echo(f"{out}: {manifest.summary()}", err=True)
        if manifest.kind == mine.WIKI and not manifest.missing_tasks:
            _print_counts(totals)
    return 3 if totals["damaged"] else 0


_READ = ("pages", "revisions", "text_bytes", "edits", "null_edits", "reverts", "withheld")


def _print_counts(totals: dict[str, Any]) -> None:
    """Print what was read and why pairs were dropped."""
    from rich.table import Table

    counts = totals["read"]
    table = Table("read", "", "dropped", "", box=None)
    skipped = 1 - counts.get("changed_bytes", 0) / max(1, counts.get("text_bytes", 0))
    read = [(name, f"{counts.get(name, 0):,}") for name in _READ]
    read.append(("text skipped", f"{skipped:.1%}"))
    dropped = [(name, f"{count:,}") for name, count in totals["dropped"].items()]
    for left, right in zip_longest(read, dropped, fillvalue=("", "")):
        table.add_row(*left, *right)
    common.terminal(stderr=True).print(table)
