"""`noisegen mine-wiki`."""

from itertools import zip_longest
from typing import Any

import click

from noisegen.cli.mining_options import mine_and_report, mining_options, splitter_option, tell


@click.command("mine-wiki")
@click.argument("sources", nargs=-1, required=True, metavar="DUMP...")
@click.option("--lang", default="en", show_default=True, help="Language of the wiki.")
@splitter_option
@click.option(
    "--no-skip",
    "skip",
    flag_value=False,
    default=True,
    help="Compare whole pages: slow, to check the short cuts.",
)
@mining_options
def mine_wiki(sources: tuple[str, ...], **options: Any) -> int:
    """Mine sentence pairs and a dictionary from the revision history of a wiki.

    DUMP: files, folders or globs of pages-meta-history or content history (.xml, .bz2, .7z, .gz,
    .zst, .xz).  Example: noisegen mine-wiki enwiki-*.xml.bz2 -o out --lang en
    """  # fmt: skip
    from noisegen.mining.commands import mine_wiki as mine

    own = {name: options[name] for name in ("lang", "splitter", "skip")}
    code, made = mine_and_report(mine, sources, options, tell=tell(options), **own)
    if not (options["quiet"] or options["as_json"] or made.missing_tasks):
        _show(made.totals)
    return code


def _show(totals: dict[str, Any]) -> None:
    """Print what was read and why pairs were dropped."""
    from rich.table import Table

    from noisegen.cli.terminal import Terminal

    counts = totals["read"]
    table = Table("read", "", "dropped", "", box=None)
    skipped = 1 - counts.get("changed_bytes", 0) / max(1, counts.get("text_bytes", 0))
    read = [(name, f"{counts.get(name, 0):,}") for name in _READ]
    read.append(("text skipped", f"{skipped:.1%}"))
    dropped = [(name, f"{count:,}") for name, count in totals["dropped"].items()]
    for left, right in zip_longest(read, dropped, fillvalue=("", "")):
        table.add_row(*left, *right)
    Terminal(stderr=True).print(table)


_READ = ("pages", "revisions", "text_bytes", "edits", "null_edits", "reverts", "withheld")
