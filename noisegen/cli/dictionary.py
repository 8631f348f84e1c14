"""`noisegen dictionary`: show, merge, filter, export, translations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from noisegen.cli.common import print_json
from noisegen.mining.miner import Thresholds
from noisegen.options import argument, click_options, decode, option

if TYPE_CHECKING:
    from noisegen.noise.lexicon import Entry

Source = Annotated[str, argument("DICTIONARY")]
OutFile = Annotated[str, option("File: .parquet, .tsv or .json", "-o", "--out")]
EntryLang = Annotated[str | None, option("Only the entries of this language")]
AsJson = Annotated[bool, option("Print as JSON", "--json")]


@click.group()
def dictionary() -> None:
    """Show, merge, filter and export mined dictionaries; show bilingual ones.

    DICTIONARY: a .parquet, .tsv or .json file, or the folder of a mining run, which keeps all
    counts. `translations` is for the bilingual dictionaries of `codeswitch`.
    Example: noisegen dictionary show out --word definitely
    """


@dataclass(frozen=True)
class ShowOptions:
    """What `show` prints."""

    source: Source
    word: Annotated[
        str | None, option("Only this word: all its wrong forms", "-w", "--word")
    ] = None  # fmt: skip
    rows: Annotated[int, option("Entries to show", "-n", "--rows", ge=0)] = 20
    lang: EntryLang = None
    as_json: AsJson = False


@dictionary.command()
@click_options(ShowOptions)
def show(**given: Any) -> int:
    """Show the most frequent entries, or the wrong forms of one word.

    Example: noisegen dictionary show out -n 50
    """
    from rich.text import Text

    from noisegen.mining.dictionary import entries_of, most_frequent

    options = decode(ShowOptions, given)
    entries = entries_of(Path(options.source), options.lang)
    of_word = [entry for entry in entries if entry.clean == options.word]
    chosen = of_word if options.word else most_frequent(entries, options.rows)
    if options.as_json:
        print_json({"entries": len(entries), "rows": [entry._asdict() for entry in chosen]})
        return 0
    if options.word and not chosen:
        click.echo(f"hint: {options.source} has no wrong form of {options.word!r}", err=True)
    numbers = ("count", "pages", "reverse", "prob")
    rows = [
        [entry.lang, Text(entry.clean, "green"), Text(entry.noisy, "red"),
         *(f"{number:,}" for number in entry[3:6]), f"{entry.prob:.3f}"]
        for entry in chosen
    ]  # fmt: skip
    _print_table(("lang", "correct", "wrong", *numbers), rows, numbers)
    return 0


@dataclass(frozen=True, kw_only=True)
class FilterOptions(Thresholds):
    """Which entries of dictionaries are written, and where."""

    sources: Annotated[tuple[str, ...], argument("DICTIONARY...")]
    out: OutFile
    lang: EntryLang = None
    as_json: AsJson = False


@dictionary.command()
@click_options(FilterOptions, skip=("lang",))
def merge(**given: Any) -> int:
    """Add up the counts of several dictionaries, then apply thresholds.

    Example: noisegen dictionary merge out more.tsv -o both.parquet
    """
    return _filter(decode(FilterOptions, given))


@dictionary.command("filter")
@click.argument("source", metavar="DICTIONARY")
@click_options(FilterOptions, skip=("sources",))
def filter_(**given: Any) -> int:
    """Apply other thresholds; from the folder of a mining run, to all that was counted.

    Example: noisegen dictionary filter out -o sure.tsv --min-count 2 --balance 3
    """
    return _filter(decode(FilterOptions, {"sources": given.pop("source"), **given}))


def _filter(options: FilterOptions) -> int:
    from noisegen.mining.dictionary import save_dictionary, select
    from noisegen.runs.manifest import counted

    entries, totals = select([Path(source) for source in options.sources], options, options.lang)
    save_dictionary(entries, Path(options.out))
    dropped = dict(sorted(totals.dropped.items()))
    if options.as_json:
        print_json({"out": options.out, "entries": len(entries), "words": totals.words,
                    "dropped": dropped})  # fmt: skip
        return 0
    size = (
        f"{options.out}: {counted(len(entries), 'wrong form')} of {counted(totals.words, 'word')}"
    )
    click.echo(_with_dropped(size, dropped), err=True)
    return 0


@dataclass(frozen=True)
class ExportOptions:
    """What `export` writes; origin and licence are for the head of a lexicon."""

    source: Source
    out: Annotated[str, option("File to write", "-o", "--out")]
    kind: Annotated[
        Literal["parquet", "tsv", "json", "lexicon"] | None,
        option("Format; json is the form of the RCP paper (default: by the file's ending)",
               "--format"),
    ] = None  # fmt: skip
    lang: EntryLang = None
    origin: Annotated[
        str, option("For a lexicon's head: where the counts come from", "--source")
    ] = "mined with noisegen"
    licence: Annotated[str, option("For a lexicon's head", "--license")] = "see its source"
    as_json: AsJson = False


@dictionary.command()
@click_options(ExportOptions)
def export(**given: Any) -> int:
    """Write a dictionary as Parquet, TSV, the paper's JSON, or a lexicon (TSV with a head).

    Example: noisegen dictionary export out -o rcp.json
    """
    from noisegen.mining.dictionary import entries_of, save_dictionary
    from noisegen.runs.manifest import counted

    options = decode(ExportOptions, given)
    entries = entries_of(Path(options.source), options.lang)
    head = {"source": options.origin, "license": options.licence}
    save_dictionary(entries, Path(options.out), options.kind, head)
    if options.as_json:
        print_json({"out": options.out, "entries": len(entries)})
    else:
        click.echo(f"{options.out}: {counted(len(entries), 'wrong form')}", err=True)
    return 0


@dataclass(frozen=True)
class TranslationsOptions:
    """Which translations are printed."""

    lang: Annotated[str, option("Language of the words")]
    source: Annotated[str | None, argument("[FILE]")] = None
    into: Annotated[str | None, option("Language of the translations")] = None
    word: Annotated[
        str | None, option("Only this word: all its translations", "-w", "--word")
    ] = None  # fmt: skip
    rows: Annotated[int, option("Words to show", "-n", "--rows", ge=0)] = 20
    as_json: AsJson = False


@dictionary.command()
@click_options(TranslationsOptions)
def translations(**given: Any) -> int:
    """Show what `codeswitch` reads of a bilingual dictionary, the packaged one without FILE.

    FILE: MUSE text, FreeDict's TEI, a table (.tsv, .parquet) with the columns clean and noisy, or
    with one for each language.  Example: noisegen dictionary translations --lang en -w light
    """
    from noisegen.data.dictionaries import load_translations, source_of
    from noisegen.runs.manifest import counted

    options = decode(TranslationsOptions, given)
    path, other = source_of(options.source, options.lang, options.into)
    loaded = load_translations(path, options.lang, other)
    words = loaded.by_word(options.word, options.rows)
    dropped = dict(sorted(loaded.dropped.items()))
    if options.as_json:
        entries = [{"clean": entry.clean, "noisy": entry.noisy, "weight": entry.weight}
                   for group in words for entry in group]  # fmt: skip
        print_json({"words": loaded.words, "translations": len(loaded.entries), "dropped": dropped,
                    "rows": entries})  # fmt: skip
        return 0
    if options.word and not words:
        click.echo(f"hint: no translation of {options.word!r}", err=True)
    _print_table(("word", "translations"), [(group[0].clean, _shares(group)) for group in words])
    size = f"{counted(len(loaded.entries), 'translation')} of {counted(loaded.words, 'word')}"
    click.echo(_with_dropped(size, dropped), err=True)
    return 0


def _shares(entries: "Sequence[Entry]") -> str:
    """Return the translations of a word, the most frequent first; shares where weights differ."""
    total, are_equal = sum(entry.weight for entry in entries), len({e.weight for e in entries}) == 1
    ranked = sorted(entries, key=lambda entry: -entry.weight)
    return ", ".join(
        entry.noisy if are_equal else f"{entry.noisy} {entry.weight / total:.0%}"
        for entry in ranked
    )


def _with_dropped(text: str, dropped: Mapping[str, int]) -> str:
    listed = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
    return f"{text}; dropped: {listed}" if listed else text


def _print_table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[str] = ()
) -> None:
    from rich.console import Console

    from noisegen.report.terminal import titled

    table = titled("", None)
    for name in names:
        table.add_column(name, justify="right" if name in numbers else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
