"""`noisegen mine-lang8`."""

from typing import Any

import click

from noisegen.cli.mining_options import mine_and_report, mining_options


@click.command("mine-lang8")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--lang", default="en", show_default=True, help="The language that is learnt.")
@click.option("--with-uncorrected", is_flag=True,
              help="Keep a sentence that nobody corrected, as a pair of itself.")  # fmt: skip
@mining_options
def mine_lang8(files: tuple[str, ...], **options: Any) -> int:
    """Mine a dictionary of real errors from learners' sentences and their corrections.

    FILE: Lang-8 entries (a JSON array a line) or M2, compressed or not; its content tells which.
    Example: noisegen mine-lang8 lang-8.dat -o out --lang ja
    """
    from noisegen.mining.commands import mine_lang8 as mine

    own = {name: options[name] for name in ("lang", "with_uncorrected")}
    return mine_and_report(mine, files, options, **own)[0]
