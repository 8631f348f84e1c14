"""Write the generated pages: docs/transforms.md, docs/cli.md, noisegen/dictionaries/README.md.

`--check` writes nothing, names the pages that differ, and exits 1 if there are any. Figures and
examples come from the English rows of the demo text, seed 0, id = row number in the file, with the
rule tagger: so they are the same whether or not spaCy is installed.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from noisegen import registry
from noisegen.cli import noisegen as program
from noisegen.engine import PROTECTED, Engine
from noisegen.info import TransformInfo, list_transforms
from noisegen.lexicon import CODESPELL, head_of
from noisegen.measures import error_counts
from noisegen.mixing import Dice
from noisegen.recipe import Recipe, Step
from noisegen.registry import DICTIONARIES, Settings
from noisegen.text import protect_kinds

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "noisegen" / "demo" / "demo.tsv"
MADE = "<!-- Made by tools/make_docs.py: run `make docs`; do not edit. -->"
SHOWN, SHOWN_CHARS_MAX = 3, 90

CHARACTER_RATES = {
    "fing": "Chance per character that has a neighbouring key.",
    "leet": "Chance per character that has a look-alike.",
    "drop_rate": "Chance per blank (space or tab) that it is dropped.",
    "add_rate": "Chance per place between two non-blank characters that a blank is added.",
    "layout": "Keyboard: azerty, inscript, italian, qwerty, qwertz, russian, spanish, turkish. "
    "Without it, the one of the language.",
}
MATCH_RATE = "Chance per match of the word list. Matches do not overlap; the longest one counts."

TRANSFORMS_HEAD = f"""{MADE}

# Transforms

What each built-in transform does, with figures and examples that were measured, not chosen.

**How it was measured.** The 300 English rows of `noisegen/demo/demo.tsv`, seed 0, each row under
its row number as id, urls, mentions, hashtags and e-mail addresses protected, `--tagger rule`,
codespell {{codespell}}. *Changed* is the share of rows whose noisy text differs from the clean one.
*CER* is the Levenshtein distance in characters, summed over all rows and divided by the number of
clean characters; unchanged rows count. Each transform runs alone on every row, at its defaults.
In the recipe `mix_all` a row gets it with chance 0.1, so the shares there are about a tenth.

**Examples** are the first rows of at most {SHOWN_CHARS_MAX} characters that change. At rate 1 every
match changes, so they show what a transform can do, not what a usual run looks like. See one
yourself: `noisegen preview noisegen/demo/demo.tsv -t abr1:rate=1 --tagger rule`.
"""

CLI_HEAD = f"""{MADE}

# Command line

`python -m noisegen` is the same program. Data goes to stdout, everything else to stderr. Every
command has `-h`. Colour and bars are left out where output is no terminal, or `NO_COLOR` is set.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | an error you can act on; one line on stderr says what, where and what to do |
| 2 | wrong usage: an unknown option, name or value |
| 3 | done, but rows were dropped or damaged; the counts are printed and in the manifest |
| 130 | interrupted; finished shards are kept, and `--resume` goes on |
"""

LISTS_HEAD = f"""{MADE}

# Word lists and keyboards

Every list that noisegen ships. A list names its source and licence in its first lines; one without
them does not load. *Entries* counts the lines below the header. The code is under Apache-2.0; where
a list has another licence, that licence holds for the list.

| file | language | entries | source | licence |
|---|---|---|---|---|
"""
LISTS_TAIL = f"""
`spel` has no list here: it reads `dictionary.txt` of the installed package `codespell`
({CODESPELL["license"]}), turned round from correction to misspelling.
`before.tsv` is no transform: the rule tagger reads from it what may follow a function word.
"""

Row = tuple[int, str]  # id, text


def english_rows() -> list[Row]:
    """Return the English rows of the demo text with their numbers in the file."""
    with DEMO.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(number, row["text"]) for number, row in enumerate(rows) if row["lang"] == "en"]


def noised(name: str, rows: Sequence[Row], values: dict[str, float]) -> list[str]:
    """Return the rows as one transform leaves them."""
    engine = Engine(Recipe.of([Step(name, values)]), Settings("en", tagger="rule"))
    dice = Dice(np.array([number for number, _ in rows], np.uint64), 0)
    clean = pa.array([text for _, text in rows], pa.string())
    noisy: list[str] = engine.noise(clean, dice, protect_kinds(PROTECTED)).noisy.to_pylist()
    return noisy


def table(titles: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    head = f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
    return head + "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def code(value: object) -> str:
    """Return a value as code in a table."""
    return "`" + str(value).replace("|", "\\|") + "`"


def meaning(one: TransformInfo, parameter: str) -> str:
    """Say what a parameter of a built-in transform is."""
    known = CHARACTER_RATES.get(one.name if parameter == "rate" else parameter)
    return known or MATCH_RATE


def examples(rows: Sequence[Row], noisy: Sequence[str], most: int) -> str:
    """Return the first changed rows as a block, or say that there is none."""
    pairs = [(text, after) for (_, text), after in zip(rows, noisy, strict=True) if text != after]
    short = [pair for pair in pairs if len(pair[0]) <= SHOWN_CHARS_MAX][:most]
    if not short:
        return f"No row of at most {SHOWN_CHARS_MAX} characters changes.\n"
    blocks = "\n\n".join(f"clean  {clean}\nnoisy  {after}" for clean, after in short)
    fewer = f"\nNo other row this short changes ({len(pairs)} of {len(rows)} rows do).\n"
    return f"```text\n{blocks}\n```\n" + (fewer if len(short) < most else "")


def section(one: TransformInfo, rows: Sequence[Row]) -> str:
    """Return what there is to say about one transform."""
    rates = [p.name for p in registry.get(one.name).parameters.values() if p.is_rate]
    clean = [text for _, text in rows]
    usual = noised(one.name, rows, {})
    changed = sum(before != after for before, after in zip(clean, usual, strict=True))
    cer = error_counts(clean, usual)[0] / sum(map(len, clean))
    setting = ", ".join(f"`{name}={one.parameters[name]}`" for name in rates)
    lines = [(code(n), code(v), meaning(one, n)) for n, v in one.parameters.items()]
    parts = [
        f"\n## {one.name}\n\n{one.summary}\n",
        f"Languages: {'any' if one.languages == ['*'] else ', '.join(one.languages)}.\n",
        table(("parameter", "default", "meaning"), lines),
        f"At {setting}: **{changed / len(rows):.1%} of rows changed, CER {cer:.2%}**.\n",
        "At rate 1:\n",
        examples(rows, noised(one.name, rows, dict.fromkeys(rates, 1.0)), SHOWN),
    ]
    if any(one.parameters[name] != 1 for name in rates):
        parts += ["At the default:\n", examples(rows, usual, 1)]
    return "\n".join([*parts, _data(one)])


def _data(one: TransformInfo) -> str:
    if not one.data:
        return "It uses no data.\n"
    lines = [(code(n["file"]), n.get("source", ""), n.get("license", "")) for n in one.data]
    return table(("data", "source", "licence"), lines)


def transforms_page() -> str:
    """Return docs/transforms.md."""
    rows = english_rows()
    built_in = [one for one in list_transforms() if _is_ours(one.name)]
    head = TRANSFORMS_HEAD.format(codespell=version("codespell"))
    return head + "".join(section(one, rows) for one in built_in)


def _is_ours(name: str) -> bool:
    return registry.get(name).make.__module__.startswith("noisegen.")


def cli_page() -> str:
    """Return docs/cli.md."""
    return CLI_HEAD + "".join(_command(name, one) for name, one in program.commands.items())


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"noisegen {name}", max_content_width=80)
    usage = " ".join(command.collect_usage_pieces(context))
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    records = (option.get_help_record(context) for option in command.get_params(context))
    options = [(code(record[0]), record[1].replace("|", "\\|")) for record in records if record]
    heading = f"\n## {name}\n\n```text\n{context.info_name} {usage}\n```\n\n{text}\n\n"
    return heading + table(("option", "meaning"), options)


def lists_page() -> str:
    """Return noisegen/dictionaries/README.md."""
    paths = sorted(DICTIONARIES.glob("*/*.tsv"))
    return LISTS_HEAD + "".join(map(_list_line, paths)) + LISTS_TAIL


def _list_line(path: Path) -> str:
    lines = [line for line in path.read_text("utf-8").splitlines() if line]
    langs = next(line[8:] for line in lines if line.startswith("# lang: "))
    entries = sum(not line.startswith("# ") for line in lines) - 1
    name, head = path.relative_to(DICTIONARIES).as_posix(), head_of(path)
    return f"| [{name}]({name}) | {langs} | {entries:,} | {head['source']} | {head['license']} |\n"


PAGES: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "transforms.md": transforms_page,
    ROOT / "docs" / "cli.md": cli_page,
    DICTIONARIES / "README.md": lists_page,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which pages differ")
    check = parser.parse_args(arguments).check
    stale = []
    for path, make in PAGES.items():
        text = make()
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(text, "utf-8", newline="\n")
    if stale:
        print("differ; run `make docs`:" if check else "wrote:", *stale, file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
