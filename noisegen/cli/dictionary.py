"""`noisegen dictionary`: show, merge, filter, export, translations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noisegen.cli import common
from noisegen.mining.miner import Thresholds
from noisegen.options import click_options, decode

if TYPE_CHECKING:
    from noisegen.noise.lexicon import Entry

PATH = click.Path(path_type=Path)
_FORMATS = click.Choice(["parquet", "tsv", "json", "lexicon"])
_source = click.argument("source", metavar="DICTIONARY", type=PATH)
_lang = click.option("--lang", help="Only the entries of this language")
_word = click.option("-w", "--word", help="Only this word: all its wrong forms or translations")
_rows = click.option("-n", "--rows", type=click.IntRange(0), default=20, show_default=True,
                     help="Entries or words to show")  # fmt: skip
_out = click.option("-o", "--out", required=True, type=PATH, help="File: .parquet, .tsv or .json")


@click.group()
def dictionary() -> None:
    """Show, merge, filter and export mined dictionaries; show bilingual ones.

    DICTIONARY: a .parquet, .tsv or .json file, or the folder of a mining run, which keeps all
    counts. `translations` is for the bilingual dictionaries of `codeswitch`.
    Example: noisegen dictionary show out --word definitely
    """


@dictionary.command()
@_source
@_word
@_rows
@_lang
@common.as_json
def show(source: Path, word: str | None, rows: int, lang: str | None, as_json: bool) -> None:
    """Show the most frequent entries, or the wrong forms of one word.

    Example: noisegen dictionary show out -n 50
    """
    from rich.text import Text

    from noisegen.mining.dictionary import entries_of, most_frequent

    entries = entries_of(source, lang)
    of_word = [entry for entry in entries if entry.clean == word]
    chosen = of_word if word else most_frequent(entries, rows)
    if as_json:
        rows_of = [entry._asdict() for entry in chosen]
        common.print_json({"entries": len(entries), "rows": rows_of})
        return
    if word and not chosen:
        common.say([f"{source} has no wrong form of {word!r}"], "hint")
    heads = ("lang", "correct", "wrong", "count", "pages", "reverse", "prob")
    cells = [
        (entry.lang, Text(entry.clean, "green"), Text(entry.noisy, "red"),
         *(f"{count:,}" for count in entry[3:6]), f"{entry.prob:.3f}")
        for entry in chosen
    ]  # fmt: skip
    _print(heads, cells)


@dictionary.command()
@click.argument("sources", nargs=-1, required=True, metavar="DICTIONARY...", type=PATH)
@click_options(Thresholds)
@_out
@common.as_json
def merge(sources: tuple[Path, ...], **given: Any) -> None:
    """Add up the counts of several dictionaries, then apply thresholds.

    Example: noisegen dictionary merge out more.tsv -o both.parquet
    """
    _select(sources, lang=None, **given)


@dictionary.command("filter")
@_source
@click_options(Thresholds)
@_out
@_lang
@common.as_json
def filter_(source: Path, **given: Any) -> None:
    """Apply other thresholds; from the folder of a mining run, to all that was counted.

    Example: noisegen dictionary filter out -o sure.tsv --min-count 2 --balance 3
    """
    _select([source], **given)


def _select(
    sources: Sequence[Path], out: Path, lang: str | None, as_json: bool, **thresholds: Any
) -> None:
    from noisegen.mining.dictionary import save_dictionary, select
    from noisegen.runs.manifest import counted

    entries, totals = select(sources, decode(Thresholds, thresholds), lang)
    save_dictionary(entries, out)
    size = f"{counted(len(entries), 'wrong form')} of {counted(totals.words, 'word')}"
    content = {"out": str(out), "entries": len(entries), "words": totals.words}
    content["dropped"] = dict(sorted(totals.dropped.items()))
    common.print_done(f"{out}: {size}", content, as_json)


@dictionary.command()
@_source
@click.option("-o", "--out", required=True, type=PATH, help="File to write")
@click.option("--format", "kind", type=_FORMATS, help="Format (default: by the file's ending)")
@_lang
@click.option("--source", "origin", default="mined with noisegen", show_default=True,
              help="For a lexicon's head: where the counts come from")  # fmt: skip
@click.option("--license", "licence", default="see its source", show_default=True,
              help="For a lexicon's head")  # fmt: skip
@common.as_json
def export(
    source: Path, out: Path, kind: str | None, lang: str | None, as_json: bool, **head: str
) -> None:
    """Write a dictionary as Parquet, TSV, the paper's JSON, or a lexicon (TSV with a head).

    Example: noisegen dictionary export out -o rcp.json
    """
    from noisegen.mining.dictionary import entries_of, save_dictionary
    from noisegen.runs.manifest import counted

    entries = entries_of(source, lang)
    save_dictionary(entries, out, kind, {"source": head["origin"], "license": head["licence"]})
    content = {"out": str(out), "entries": len(entries)}
    common.print_done(f"{out}: {counted(len(entries), 'wrong form')}", content, as_json)


@dictionary.command()
@click.argument("source", required=False, metavar="[FILE]")
@click.option("--lang", required=True, help="Language of the words")
@click.option("--into", help="Language of the translations")
@_word
@_rows
@common.as_json
def translations(
    source: str | None, lang: str, into: str | None, word: str | None, rows: int, as_json: bool
) -> None:
    """Show what `codeswitch` reads of a bilingual dictionary, the packaged one without FILE.

    FILE: MUSE text, FreeDict's TEI, a table (.tsv, .parquet) with the columns clean and noisy, or
    with one for each language.  Example: noisegen dictionary translations --lang en -w light
    """
    from noisegen.data.dictionaries import load_translations, source_of
    from noisegen.runs.manifest import counted

    path, other = source_of(source, lang, into)
    loaded = load_translations(path, lang, other)
    words = loaded.by_word(word, rows)
    if not as_json:
        common.say([f"no translation of {word!r}"] if word and not words else [], "hint")
        _print(("word", "translations"), [(group[0].clean, _shares(group)) for group in words])
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
    """Return the translations of a word, the most frequent first; shares where weights differ."""
    total = sum(entry.weight for entry in entries)
    are_equal = len({entry.weight for entry in entries}) == 1
    return ", ".join(
        entry.noisy if are_equal else f"{entry.noisy} {entry.weight / total:.0%}"
        for entry in sorted(entries, key=lambda entry: -entry.weight)
    )


def _print(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; columns of figures, from the fourth on, are at the right."""
    from noisegen.report.terminal import titled

    table = titled("", lines=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number > 2 else "left")
    for row in rows:
        table.add_row(*row)
    common.terminal().print(table)
