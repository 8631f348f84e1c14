"""`noisegen dictionary`: show, merge, filter, export."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from noisegen.cli.options import print_json

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
FORMATS = ("parquet", "tsv", "json", "lexicon")


@click.group()
def dictionary() -> None:
    """Look at mined dictionaries, merge, filter and export them.

    DICTIONARY: a .parquet, .tsv or .json file, or the folder of a mining run, which keeps all
    counts.  Example: noisegen dictionary show out --word definitely
    """


_out = click.option("-o", "--out", type=PATH, required=True, help="File: .parquet, .tsv or .json.")
_lang = click.option("--lang", help="Only the entries of this language.")
_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
_THRESHOLDS = (
    click.option("--min-pages", type=int, default=0, show_default=True,
                 help="Pages (or rows) that a word pair needs."),
    click.option("--min-count", type=int, default=1, show_default=True,
                 help="Sentence pairs that a word pair needs."),
    click.option("--balance", type=int, default=0, show_default=True,
                 help="How many times its reverse a word pair must be; 0 for any."),
    click.option("--frequency", type=int, default=0, show_default=True,
                 help="How many times as frequent in the corrected sentences of a mining run the "
                 "right word must be; 0 for any."),
    click.option("--top", type=int, default=20, show_default=True,
                 help="Wrong forms kept of a word; 0 for all."),
)  # fmt: skip


def _thresholds(function: F) -> F:
    for option in reversed(_THRESHOLDS):
        function = option(function)
    return function


@dictionary.command()
@click.argument("source", type=PATH, metavar="DICTIONARY")
@click.option("-w", "--word", help="Only this word: all its wrong forms.")
@click.option("-n", "--rows", type=int, default=20, show_default=True, help="Entries to show.")
@_lang
@_json
def show(source: Path, word: str | None, rows: int, lang: str | None, as_json: bool) -> int:
    """Show the most frequent entries, or the wrong forms of one word.

    Example: noisegen dictionary show out -n 50
    """
    from rich.console import Console

    from noisegen.mining.dictionary_commands import entries_of, table, top

    found = entries_of(source, lang)
    chosen = [entry for entry in found if entry.clean == word] if word else top(found, rows)
    if as_json:
        print_json({"entries": len(found), "rows": [entry._asdict() for entry in chosen]})
        return 0
    if word and not chosen:
        click.echo(f"hint: {source} has no wrong form of {word!r}", err=True)
    Console().print(table(chosen))
    return 0


@dictionary.command()
@click.argument("sources", type=PATH, nargs=-1, required=True, metavar="DICTIONARY...")
@_out
@_thresholds
@_json
def merge(sources: tuple[Path, ...], out: Path, as_json: bool, **thresholds: int) -> int:
    """Add up the counts of several dictionaries, then apply thresholds.

    Example: noisegen dictionary merge out more.tsv -o both.parquet
    """
    return _filtered(sources, out, None, as_json, thresholds)


@dictionary.command("filter")
@click.argument("source", type=PATH, metavar="DICTIONARY")
@_out
@_lang
@_thresholds
@_json
def filter_(source: Path, out: Path, lang: str | None, as_json: bool, **thresholds: int) -> int:
    """Apply other thresholds; from the folder of a mining run, to all that was counted.

    Example: noisegen dictionary filter out -o sure.tsv --min-count 2 --balance 3
    """
    return _filtered((source,), out, lang, as_json, thresholds)


def _filtered(
    sources: tuple[Path, ...], out: Path, lang: str | None, as_json: bool, given: dict[str, int]
) -> int:
    from noisegen.manifest import counted
    from noisegen.mining.dictionary import Thresholds
    from noisegen.mining.dictionary_commands import save, select

    entries, left = select(sources, Thresholds(**given), lang)
    save(entries, out)
    dropped = dict(sorted(left.dropped.items()))
    if as_json:
        print_json({"out": str(out), "entries": len(entries), "words": left.words,
                    "dropped": dropped})  # fmt: skip
        return 0
    listed = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
    said = f"{out}: {counted(len(entries), 'wrong form')} of {counted(left.words, 'word')}"
    click.echo(f"{said}; dropped: {listed}" if listed else said, err=True)
    return 0


@dictionary.command()
@click.argument("source", type=PATH, metavar="DICTIONARY")
@click.option("-o", "--out", type=PATH, required=True, help="File to write.")
@click.option("--format", "kind", type=click.Choice(FORMATS),
              help="Else the ending of the file says it; json is the form of the RCP paper.",
)  # fmt: skip
@_lang
@click.option("--source", "origin", default="mined with noisegen", show_default=True,
              help="For a lexicon's head: where the counts come from.")  # fmt: skip
@click.option("--license", "licence", default="see its source", show_default=True,
              help="For a lexicon's head.")  # fmt: skip
@_json
def export(
    source: Path, out: Path, kind: str | None, lang: str | None, origin: str, licence: str,
    as_json: bool,
) -> int:  # fmt: skip
    """Write a dictionary as Parquet, TSV, the paper's JSON, or a lexicon (TSV with a head).

    Example: noisegen dictionary export out -o rcp.json
    """
    from noisegen.manifest import counted
    from noisegen.mining.dictionary_commands import entries_of, save

    entries = entries_of(source, lang)
    save(entries, out, kind, {"source": origin, "license": licence})
    if as_json:
        print_json({"out": str(out), "entries": len(entries)})
    else:
        forms = counted(len(entries), "wrong form")
        click.echo(f"{out}: {forms}", err=True)
    return 0
