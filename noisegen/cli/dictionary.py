"""`noisegen dictionary`: show, merge, filter, export, build, translations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from noisegen.cli.options import print_json
from noisegen.cli.progress import counted_progress

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
FORMATS = ("parquet", "tsv", "json", "lexicon")


@click.group()
def dictionary() -> None:
    """Look at mined dictionaries, merge, filter and export them; build bilingual ones.

    DICTIONARY: a .parquet, .tsv or .json file, or the folder of a mining run, which keeps all
    counts. `build` and `translations` are for the bilingual dictionaries of `codeswitch`.
    Example: noisegen dictionary show out --word definitely
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


_from = click.option("--lang", required=True, help="Language of the words.")
_into = click.option("--into", required=True, help="Language of their translations.")


@dictionary.command()
@click.argument("sources", nargs=-1, required=True, metavar="BITEXT...")
@click.option("-o", "--out", type=PATH, required=True, help="File: .tsv or .parquet.")
@_from
@_into
@click.option(
    "--columns",
    metavar="A,B",
    help="The columns of both in tables that do not say their languages; numbers where there is no "
    "header line.",
)
@click.option(
    "--min-count",
    type=int,
    default=2,
    show_default=True,
    help="How often a translation must be expected, and each word occur.",
)
@click.option(
    "--min-prob",
    type=float,
    default=0.1,
    show_default=True,
    help="Share of its word that a translation needs, in both directions.",
)
@click.option("--top", type=int, default=5, show_default=True, help="Translations kept of a word.")
@click.option(
    "--source",
    "origin",
    default="built with noisegen from bitext",
    show_default=True,
    help="For the head of the file: where the sentences come from.",
)
@click.option(
    "--license",
    "licence",
    default="see its source",
    show_default=True,
    help="For the head of the file.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@_json
def build(
    sources: tuple[str, ...], out: Path, lang: str, into: str, columns: str | None, origin: str,
    licence: str, quiet: bool, as_json: bool, **thresholds: Any,
) -> int:  # fmt: skip
    """Learn the translations of words from sentence pairs, for codeswitch:dictionary=OUT.

    BITEXT: A.de,B.en, an OPUS folder or zip, or a table named deu-eng.tsv or with a column for each
    language; de-en=SOURCE where names do not say them. Words are aligned by IBM model 1.
    Example: noisegen dictionary build deu-eng.tsv --lang de --into en -o de-en.tsv
    """
    from noisegen.bilingual import building

    chosen = building.Thresholds(**thresholds)
    building.check_output(out)
    first, _, second = (columns or "").partition(",")
    sides = (first, second) if columns else None
    line = lambda what, done, total: f"{what}: round {done} of {total}"  # noqa: E731
    with counted_progress(quiet, "reading", line) as tell:
        built = building.build(
            sources, (lang, into), chosen, tell or building.silent, columns=sides
        )
    head = {"name": out.stem, "lang": lang, "into": into, "source": origin, "license": licence}
    building.write(built, out, head)
    if as_json:
        print_json({"out": str(out), **built.account()})
    else:
        click.echo(f"{out}: {built.summary()}", err=True)
    return 0


@dictionary.command()
@click.argument("source", type=PATH, metavar="[FILE]", required=False)
@_from
@click.option("--into", help="Language of the translations.")
@click.option("-w", "--word", help="Only this word: all its translations.")
@click.option("-n", "--rows", type=int, default=20, show_default=True, help="Words to show.")
@_json
def translations(
    source: Path | None, lang: str, into: str | None, word: str | None, rows: int, as_json: bool
) -> int:
    """Show what `codeswitch` reads of a bilingual dictionary, the packaged one without FILE.

    FILE: MUSE text, FreeDict's TEI, a table (.tsv, .parquet) with the columns clean and noisy, or
    with one for each language.  Example: noisegen dictionary translations --lang en -w light
    """
    from rich.console import Console

    from noisegen.bilingual import showing

    found = showing.read(source, lang, into)
    chosen = showing.chosen(found, word, rows)
    if as_json:
        print_json(showing.account(found, chosen))
        return 0
    if word and not chosen:
        click.echo(f"hint: no translation of {word!r}", err=True)
    Console().print(showing.table(chosen))
    click.echo(showing.summary(found), err=True)
    return 0
