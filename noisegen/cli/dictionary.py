"""`noisegen dictionary`: show, merge, filter, export, translations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noisegen.cli import common
from noisegen.cli.parameters import click_options
from noisegen.errors import printable
from noisegen.mining.miner import Thresholds
from noisegen.options import decode

if TYPE_CHECKING:
    from noisegen.noising.lexicon import Entry

PATH = click.Path(path_type=Path)
_FORMATS = click.Choice(["parquet", "tsv", "json", "lexicon"])
_source = click.argument("source", metavar="DICTIONARY", type=PATH)
_lang = click.option("--lang", metavar="LANG", help="Only entries of this language")
_word = click.option("-w", "--word", metavar="WORD", help="Show all forms of this word")
_limit = click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Maximum entries or words to show",
)
_out = click.option(
    "-o",
    "--out",
    required=True,
    metavar="FILE",
    type=PATH,
    help="Output file: .parquet, .tsv or .json",
)


@click.group(epilog=common.example("dictionary show out --word definitely"))
def dictionary() -> None:
    """Show, merge, filter and export dictionaries.

    DICTIONARY: a .parquet, .tsv or .json file, or the folder of a mining run, which keeps all
    counts. `translations` is for the bilingual dictionaries of `codeswitch`.
    """


@dictionary.command(epilog=common.example("dictionary show out -n 50"))
@_source
@_word
@_limit
@_lang
@common.output
def show(source: Path, word: str | None, limit: int, lang: str | None, as_json: bool) -> None:
    """Show the most frequent entries, or the forms of a word."""
    from rich.text import Text

    from noisegen.mining.dictionary import entries_of, most_frequent

    entries = entries_of(source, lang)
    of_word = [entry for entry in entries if entry.clean == word]
    chosen = of_word if word else most_frequent(entries, limit)
    if as_json:
        rows_of = [entry._asdict() for entry in chosen]
        common.print_json({"entries": len(entries), "rows": rows_of})
        return
    if word and not chosen:
        common.say([f"{source} has no wrong form of {word!r}"], "hint")
    heads = ("lang", "correct", "wrong", "count", "pages", "reverse", "prob")
    cells = [
        (
            entry.lang,
            Text(printable(entry.clean), "green"),
            Text(printable(entry.noisy), "red"),
            *(f"{count:,}" for count in entry[3:6]),
            f"{entry.prob:.3f}",
        )
        for entry in chosen
    ]
    _print(heads, cells)


@dictionary.command(epilog=common.example("dictionary merge out more.tsv -o both.parquet"))
@click.argument("sources", nargs=-1, required=True, metavar="DICTIONARY...", type=PATH)
@click_options(Thresholds)
@_out
@common.overwrite
@common.output
def merge(sources: tuple[Path, ...], **given: Any) -> None:
    """Add up the counts of several dictionaries.

    Thresholds such as --min-count are applied to the sums.
    """
    _select(sources, lang=None, **given)


@dictionary.command(
    "filter", epilog=common.example("dictionary filter out -o sure.tsv --min-count 2 --balance 3")
)
@_source
@click_options(Thresholds)
@_out
@_lang
@common.overwrite
@common.output
def filter_(source: Path, **given: Any) -> None:
    """Apply other thresholds, such as --min-count.

    In the folder of a mining run they select from all counted forms, not only from the dictionary.
    """
    _select([source], **given)


def _select(
    sources: Sequence[Path],
    out: Path,
    lang: str | None,
    force: bool,
    as_json: bool,
    **thresholds: Any,
) -> None:
    from noisegen.mining.dictionary import save_dictionary, select
    from noisegen.runs.manifest import counted

    common.check_file(out, sources, force)
    entries, totals = select(sources, decode(Thresholds, thresholds), lang)
    save_dictionary(entries, out)
    size = f"{counted(len(entries), 'wrong form')} of {counted(totals.words, 'word')}"
    content = {"out": str(out), "entries": len(entries), "words": totals.words}
    content["dropped"] = dict(sorted(totals.dropped.items()))
    common.print_done(f"{out}: {size}", content, as_json)


@dictionary.command(epilog=common.example("dictionary export out -o rcp.json"))
@_source
@click.option("-o", "--out", metavar="FILE", required=True, type=PATH, help="Output file")
@click.option("--format", "kind", type=_FORMATS, help="Format (default: by the ending of the file)")
@_lang
@click.option(
    "--origin",
    metavar="TEXT",
    default="mined with noisegen",
    show_default=True,
    help="Source of the counts, for the head of a lexicon",
)
@click.option(
    "--license",
    "licence",
    metavar="TEXT",
    default="see its source",
    show_default=True,
    help="License, for the head of a lexicon",
)
@common.overwrite
@common.output
def export(
    source: Path,
    out: Path,
    kind: str | None,
    lang: str | None,
    force: bool,
    as_json: bool,
    **head: str,
) -> None:
    """Write it as Parquet, TSV, the paper's JSON, or a lexicon.

    A lexicon is TSV with a head that names its source and license.
    """
    from noisegen.mining.dictionary import entries_of, save_dictionary
    from noisegen.runs.manifest import counted

    common.check_file(out, [source], force)
    entries = entries_of(source, lang)
    save_dictionary(entries, out, kind, {"source": head["origin"], "license": head["licence"]})
    content = {"out": str(out), "entries": len(entries)}
    common.print_done(f"{out}: {counted(len(entries), 'wrong form')}", content, as_json)


@dictionary.command(epilog=common.example("dictionary translations --lang en -w light"))
@click.argument("source", required=False, metavar="[FILE]")
@click.option("--lang", metavar="LANG", required=True, help="Language of the words")
@click.option("--into", metavar="LANG", help="Language of the translations")
@_word
@_limit
@common.output
def translations(
    source: str | None, lang: str, into: str | None, word: str | None, limit: int, as_json: bool
) -> None:
    """Show the translations that codeswitch reads.

    FILE: MUSE text, FreeDict's TEI, or a table (.tsv, .parquet) with the columns clean and noisy,
    or with a column per language (default: the packaged dictionary).
    """
    from noisegen.data.dictionaries import load_translations, source_of
    from noisegen.runs.manifest import counted

    path, other = source_of(source, lang, into)
    loaded = load_translations(path, lang, other)
    words = loaded.by_word(word, limit)
    if not as_json:
        common.say([f"no translation of {word!r}"] if word and not words else [], "hint")
        rows = [(printable(group[0].clean), _shares(group)) for group in words]
        _print(("word", "translations"), rows)
    size = f"{counted(len(loaded.entries), 'translation')} of {counted(loaded.words, 'word')}"
    content = {
        "words": loaded.words,
        "translations": len(loaded.entries),
        "dropped": dict(sorted(loaded.dropped.items())),
        "rows": [
            {"clean": entry.clean, "noisy": entry.noisy, "weight": entry.weight}
            for group in words
            for entry in group
        ],
    }
    common.print_done(size, content, as_json)


def _shares(entries: "Sequence[Entry]") -> str:
    """Return the translations of one word by decreasing weight: 'Auto 70%, Wagen 30%'.

    The percentages are left out if all weights are equal.
    """
    total = sum(entry.weight for entry in entries)
    are_equal = len({entry.weight for entry in entries}) == 1
    return ", ".join(
        printable(entry.noisy) + ("" if are_equal else f" {entry.weight / total:.0%}")
        for entry in sorted(entries, key=lambda entry: -entry.weight)
    )


def _print(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; the fourth and later columns hold numbers and are right-aligned."""
    from noisegen.report.terminal import titled

    table = titled(lines=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number > 2 else "left")
    for row in rows:
        table.add_row(*row)
    common.terminal().print(table)
