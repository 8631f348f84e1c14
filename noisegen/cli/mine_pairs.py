"""`noisegen mine-pairs`."""

from typing import Any

import click

from noisegen.cli.mining_options import mine_and_report, mining_options, splitter_option


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
    from noisegen.mining.filters import profile
    from noisegen.mining.languages import language
    from noisegen.mining.parallel import PairsMiner, aligned_tasks, table_tasks

    spoken = language(
        options["lang"], splitter=options["splitter"], fuzzy_pinyin=options["fuzzy_pinyin"]
    )
    chosen = profile(options["profile"], options["max_char_distance"])
    columns = (options["noisy_column"], options["clean_columns"], options["lang_column"])
    miner = PairsMiner(spoken, chosen, *columns, options["split"])
    skipped: list[str] = []
    if options["clean_files"]:
        if len(sources) > 1:
            raise click.UsageError("--clean-file goes with one SOURCE, the noisy text file")
        tasks = aligned_tasks(sources[0], options["clean_files"])
    else:
        tasks, skipped = table_tasks(sources, miner)
    for one in () if options["quiet"] else skipped:
        click.echo(f"skipped {one}", err=True)
    config = {name: options[name] for name in _CONFIG}
    return mine_and_report(tasks, miner, options, config=config, kind="pairs", lang=spoken.code)


_CONFIG = (
    "profile", "max_char_distance", "fuzzy_pinyin", "splitter", "split",
    "noisy_column", "clean_columns", "lang_column", "clean_files",
)  # fmt: skip
