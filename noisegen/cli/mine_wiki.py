"""`noisegen mine-wiki`."""

from itertools import zip_longest
from typing import Any

import click

from noisegen.cli.mining_options import mine_and_report, mining_options, splitter_option


@click.command("mine-wiki")
@click.argument("sources", nargs=-1, required=True, metavar="DUMP...")
@click.option("--lang", default="en", show_default=True, help="Language of the wiki.")
@splitter_option
@click.option("--no-skip", is_flag=True, help="Compare whole pages: slow, and the same pairs.")
@mining_options
def mine_wiki(sources: tuple[str, ...], **options: Any) -> int:
    """Mine sentence pairs and a dictionary from the revision history of a wiki.

    DUMP: files, folders or globs of pages-meta-history or content history (.xml, .bz2, .7z, .gz,
    .zst, .xz).  Example: noisegen mine-wiki enwiki-*.xml.bz2 -o out --lang en
    """  # fmt: skip
    from noisegen.mining.dumps import tasks_of
    from noisegen.mining.filters import profile
    from noisegen.mining.languages import language
    from noisegen.mining.wiki import WikiMiner

    spoken = language(
        options["lang"], splitter=options["splitter"], fuzzy_pinyin=options["fuzzy_pinyin"]
    )
    chosen = profile(options["profile"], options["max_char_distance"])
    tasks, left_out = tasks_of(sources, spoken.code)
    for one in () if options["quiet"] else left_out:
        click.echo(f"skipped {one}", err=True)
    miner = WikiMiner(spoken, chosen, skip=not options["no_skip"])
    config = {name: options[name] for name in _CONFIG}
    code = mine_and_report(tasks, miner, options, config=config, kind="wiki", lang=spoken.code)
    if not (options["quiet"] or options["as_json"]):
        _show(options["out"])
    return code


def _show(out: str) -> None:
    """Print what was read and why pairs were dropped, once all parts are there."""
    from pathlib import Path

    from rich.table import Table

    from noisegen.cli.terminal import Terminal
    from noisegen.mining.mined_folder import MiningManifest

    if not Path(out, "manifest.json").exists():
        return
    totals = MiningManifest.load(out).totals
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

_CONFIG = ("profile", "max_char_distance", "fuzzy_pinyin", "splitter", "no_skip")
