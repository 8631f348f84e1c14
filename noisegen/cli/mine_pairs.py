"""`noisegen mine-pairs`."""

from typing import Any

import click

from noisegen.cli.mining_options import mine_and_report, mining_options, splitter_option, tell


@click.command("mine-pairs")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--noisy-column", default="noisy", show_default=True, help="Column with the errors.")
@click.option("--clean-column", "clean_columns", multiple=True, default=("clean",),
              show_default=True, metavar="TEXT",
              help="Column with the corrected text, or lists of it; repeatable.")  # fmt: skip
@click.option("--clean-file", "clean_files", multiple=True, type=click.Path(), metavar="FILE",
              help="SOURCE is a text file; this has the correction of every line; repeatable.",
)  # fmt: skip
@click.option("--lang", default="en", show_default=True, help="Language of the text.")
@click.option("--lang-column", help="Column with the language of each row, as code or name.")
@click.option("--split", is_flag=True, help="Split rows of several sentences and align those.")
@splitter_option
@mining_options
def mine_pairs(sources: tuple[str, ...], **options: Any) -> int:
    """Mine a dictionary of real errors from parallel noisy and clean text.

    SOURCE: tables as for augment (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), or a text
    file with --clean-file.  Example: noisegen mine-pairs pairs.tsv -o out --lang en
    """  # fmt: skip
    from noisegen.mining.commands import mine_pairs as mine

    own = {name: options[name] for name in _OWN}
    return mine_and_report(mine, sources, options, tell=tell(options), **own)[0]


_OWN = (
    "lang", "splitter", "split", "noisy_column", "clean_columns", "lang_column", "clean_files",
)  # fmt: skip
