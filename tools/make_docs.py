"""Write the generated parts of docs: transforms.md, cli.md, gallery.md, and of the word lists.

The part of a page above its marker stays; everything below is rewritten. `--check` writes nothing,
names the pages that differ, and exits 1 if there are any. Figures and examples come from the demo
text, its English rows where a transform has data for English, with the rule tagger.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import distribution, version
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.augmentation.catalog import TransformInfo, list_transforms
from noisegen.cli import GROUPS
from noisegen.cli import noisegen as program
from noisegen.noising import neighbours, registry
from noisegen.noising import profile as profiles
from noisegen.noising.engine import Engine
from noisegen.noising.lexicon import head_of
from noisegen.noising.mix import Step
from noisegen.noising.noise import noise
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.text.alignment import error_counts
from noisegen.text.languages import codes_by_name
from noisegen.text.resources import DICTIONARIES
from noisegen.text.spans import PROTECTED, protect_kinds

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "noisegen" / "demo" / "demo.tsv"
GALLERY = ROOT / "tools" / "gallery.tsv"  # sentences in languages of which the demo text has few
MARKER = "<!-- Below: made by tools/make_docs.py; run `make docs`, do not edit. -->\n"
SHOWN, SHOWN_CHARS_MAX = 2, 90

MEANINGS = {
    "apos": "Chance per word with an apostrophe.",
    "caps": "Chance per word.",
    "channel": "Factor of all chances of the profile, up to 4; 1 is the noise it was learned from.",
    "codeswitch": "Chance per word or phrase that has a translation; at least one is replaced.",
    "diac": "Chance per word with a diacritic.",
    "emot": "Chance per end of a sentence.",
    "fill": "Chance per word.",
    "font": "Chance per word with a Latin letter.",
    "hide": "Chance per word of at least two letters.",
    "hyph": "Chance per word of at least 6 letters with a place to break.",
    "intj": "Chance per end of a sentence, start of a text, or comma between two clauses.",
    "latn": "Chance per word; leave it at 1 for one script throughout.",
    "long": "Chance per word that people often lengthen; less for other words.",
    "look": "Chance per letter that has a look-alike; in Chinese per match of the word list.",
    "mash": "Chance per word whose letters are on the keyboard.",
    "mute": "Chance per sign.",
    "nums": "Chance per number.",
    "ocr": "Factor of all chances, up to 4; 1 is as in the scans that it was learned from.",
    "phon": "Chance per match of the word list, and per other word that a rule fits.",
    "vowl": "Chance per word that stays readable without some of its vowels.",
    "wiki": "Of L tokens, 1 to ceil(min(4, rate L)) are replaced, as far as the list has them.",
    "case": "`upper` for capitals, `lower` for lower case.",
    "alphabet": "`bold`, `bold-italic`, `script`, `fraktur`, `sans`, `mono`, `circled`, `wide`, "
    "or `any`: one for each row.",
    "signs": "`zero-width`, `hyphen`, `direction` or `any`.",
    "words": "`all`, the `first` of the row, those of the `next` sentences, `i`, or `names`.",
    "comma_rate": "Chance per comma to drop it.",
    "repeat_rate": "Chance per final punctuation character to repeat it.",
    "blank_rate": "Chance per punctuation character to put a space before it.",
    "glue_rate": "Chance per punctuation character to drop the space after it.",
    "dictionary": "A mined dictionary or the folder of a mining run (default: the packaged one).",
    "into": "Language of the translations (default: English; for English text Spanish).",
    "profile": "A folder that `noisegen learn` wrote (default: the packaged one of the language).",
    "fing": "Chance per character that has a neighbouring key.",
    "leet": "Chance per character that has a look-alike.",
    "drop_rate": "Chance per space or tab to drop it.",
    "add_rate": "Chance per position between two non-space characters to add a space.",
    "by_length": "Draw rate x length letters per row, with repeats, as RoLASER's script does.",
    "layout": "Keyboard: azerty, inscript, italian, qwerty, qwertz, russian, spanish, turkish "
    "(default: that of the language).",
}
MEANINGS_OF = {  # a parameter of one transform
    ("punc", "drop_rate"): "Chance per text to drop its final punctuation.",
    ("codeswitch", "dictionary"): "A bilingual dictionary (default: the packaged one).",
    ("normalize", "recipe"): "Noise that is undone: a packaged recipe or a .yaml file.",
    ("normalize", "clean"): "Clean text like that which is meant, a file or folder.",
    ("normalize", "pairs"): "Real pairs of noisy and clean text to learn from, a file or folder.",
    ("normalize", "style"): "Write capitals and last stops too.",
}
MATCH_RATE = "Chance per match of the word list."
LISTED = 6  # languages; of more, the number is given
SENTENCES, WRITTEN = 10, 5  # sentences per language in the gallery, and noisy versions of each

Row = tuple[int, str]  # id, text


def rows_by_language(path: Path = DEMO) -> dict[str, list[Row]]:
    """Return the rows of the demo text, or another, with their numbers in the file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found: dict[str, list[Row]] = {}
    for number, row in enumerate(rows):
        found.setdefault(row["lang"], []).append((number, row["text"]))
    return found


def shown_language(one: TransformInfo, known: Iterable[str]) -> str:
    """Return the language that examples are in: English where a transform has it."""
    if {"en", "*"} & set(one.languages):
        return "en"
    return next(lang for lang in known if lang in one.languages)


def noised(name: str, rows: Sequence[Row], values: dict[str, float], lang: str = "en") -> list[str]:
    """Return the rows as one transform leaves them."""
    engine = Engine(Recipe.of([Step(name, values)]), Settings(lang, tagger="rule"))
    dice = Streams(np.array([number for number, _ in rows], np.uint64), 0)
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
    """Return the meaning of a parameter of a built-in transform."""
    known = MEANINGS_OF.get((one.name, parameter))
    return known or MEANINGS.get(one.name if parameter == "rate" else parameter) or MATCH_RATE


def examples(rows: Sequence[Row], noisy: Sequence[str], most: int) -> str:
    """Return the first changed rows as a block, or a sentence if there is none."""
    pairs = [(text, after) for (_, text), after in zip(rows, noisy, strict=True) if text != after]
    short = [pair for pair in pairs if len(pair[0]) <= SHOWN_CHARS_MAX][:most]
    if not short:
        return f"No row of at most {SHOWN_CHARS_MAX} characters changes.\n"
    blocks = "\n\n".join(f"clean  {clean}\nnoisy  {after}" for clean, after in short)
    fewer = f"\nNo other row this short changes ({len(pairs)} of {len(rows)} rows do).\n"
    return f"```text\n{blocks}\n```\n" + (fewer if len(short) < most else "")


def overview_line(one: TransformInfo) -> tuple[str, ...]:
    """Return the row of a transform in the table of all, with the first example of its summary."""
    (before, after), *_ = one.examples
    langs = one.languages
    spoken = "any" if langs == ["*"] else ", ".join(langs)
    spoken = spoken if len(langs) <= LISTED else f"{len(langs)} languages"
    return f"[{code(one.name)}](#{one.name})", one.summary.partition(":")[0], before, after, spoken


def section(one: TransformInfo, rows: Sequence[Row], lang: str) -> str:
    """Return the section of one transform."""
    lines = [(code(n), code(v), meaning(one, n)) for n, v in one.parameters.items()]
    parts = [
        f"\n## {one.name}\n\n{one.summary}\n",
        f"Languages: {'any' if one.languages == ['*'] else ', '.join(one.languages)}.\n",
        table(("parameter", "default", "meaning"), lines),
    ]
    parts += [f"Also called {', '.join(map(code, one.other_names))}.\n"] * bool(one.other_names)
    parts += (
        [] if one.keeps_meaning else ["It may add or drop content, so no packaged recipe has it.\n"]
    )
    return "\n".join([*parts, *figures(one, rows, lang), _data(one)])


def figures(one: TransformInfo, rows: Sequence[Row], lang: str) -> list[str]:
    """Return how much a transform changes, and examples."""
    rates = [p.name for p in registry.get(one.name).parameters.values() if p.is_rate]
    clean = [text for _, text in rows]
    usual = noised(one.name, rows, {}, lang)
    changed = sum(before != after for before, after in zip(clean, usual, strict=True))
    cer = error_counts(clean, usual)[0] / sum(map(len, clean))
    setting = ", ".join(f"`{name}={one.parameters[name]}`" for name in rates)
    spoken = "" if lang == "en" else f" ({lang})"
    full = noised(one.name, rows, dict.fromkeys(rates, 1.0), lang)
    parts = [
        f"At {setting}: **{changed / len(rows):.1%} of rows changed, CER {cer:.2%}**{spoken}.\n",
        "At rate 1:\n",
        examples(rows, full, SHOWN),
    ]
    if any(one.parameters[name] != 1 for name in rates):
        parts += ["At the default:\n", examples(rows, usual, 1)]
    return parts


def _data(one: TransformInfo) -> str:
    if not one.data:
        return "It uses no data.\n"
    lines = [(code(n["file"]), n.get("source", ""), n.get("license", "")) for n in one.data]
    return table(("data", "source", "licence"), lines)


def transforms_part() -> str:
    """Return the sections of docs/reference/transforms.md."""
    rows = rows_by_language()
    ours = {point.name for point in distribution("noisegen").entry_points}
    built_in = [one for one in list_transforms() if one.name in ours]
    measured = f"\nThe figures below were measured with codespell {version('codespell')}.\n"
    spoken = [shown_language(one, rows) for one in built_in]
    overview = table(
        ("name", "what it does", "before", "after", "languages"), map(overview_line, built_in)
    )
    return f"\n## All transforms\n\n{overview}{measured}" + "".join(
        section(one, rows[lang], lang) for one, lang in zip(built_in, spoken, strict=True)
    )


def cli_part() -> str:
    """Return the sections of docs/reference/cli.md."""
    group = click.Context(program, info_name="noisegen", **program.context_settings)
    links = {
        title: ", ".join(f"[{name}](#{name})" for name in names) for title, names in GROUPS.items()
    }
    sections = (_command(name, one, group) for name, one in program.commands.items())
    return "\n" + table(("for", "commands"), links.items()) + "".join(sections)


def _command(name: str, command: click.Command, group: click.Context, level: str = "##") -> str:
    context = click.Context(command, info_name=name, parent=group)
    below = command.commands if isinstance(command, click.Group) else {}
    parts = [_command(f"{name} {sub}", one, group, "###") for sub, one in below.items()]
    usage = " ".join(command.collect_usage_pieces(context))
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    text = text.replace("[", "\\[")  # no link
    options = (one for one in command.get_params(context) if isinstance(one, click.Option))
    records = (option.get_help_record(context) for option in options)
    lines = [
        (code(record[0]), record[1].replace("|", "\\|"))
        for record in records
        if record and "--help" not in record[0]  # the head of the page names it
    ]
    heading = f"\n{level} {name}\n\n```text\n{context.command_path} {usage}\n```\n\n{text}\n\n"
    _, _, examples = (command.epilog or "").partition("Example")
    shown = "\n".join(line.strip() for line in examples.splitlines()[1:])
    heading += f"```sh\n{shown}\n```\n\n" if shown else ""
    return heading + (table(("option", "meaning"), lines) if lines else "") + "".join(parts)


def gallery_part() -> str:
    """Return fifty rows of the default recipe in each language."""
    texts = {lang: rows for lang, rows in rows_by_language().items() if len(rows) >= SENTENCES}
    texts |= rows_by_language(GALLERY)
    names = {code: name.title() for name, code in reversed(codes_by_name().items())}
    langs = sorted(texts, key=names.__getitem__)
    return "\n".join(["", *(_gallery_of(texts[lang], lang, names[lang]) for lang in langs)])


def _gallery_of(rows: Sequence[Row], lang: str, name: str) -> str:
    """Return sentences of a language, below each what five writers make of it."""
    shown = [text for _, text in rows if len(text) <= SHOWN_CHARS_MAX][:SENTENCES]
    texts = [text for text in shown for _ in range(WRITTEN)]
    noisy = noise(texts, lang=lang, id=range(len(texts)))
    blocks = (
        "\n".join([text, *(f"    {line}" for line in noisy[WRITTEN * number :][:WRITTEN])])
        for number, text in enumerate(shown)
    )
    return f"### {name}\n\n```text\n" + "\n".join(blocks) + "\n```\n"


def lists_part() -> str:
    """Return the table of noisegen/dictionaries/README.md."""
    lists = map(_list_line, DICTIONARIES.glob("*/*.tsv"))
    counts = map(_counts_line, DICTIONARIES.glob(f"*/{neighbours.FILE}"))
    learned = map(_profile_line, DICTIONARIES.glob(f"*/*/{profiles.HEAD}"))
    lines = sorted([*lists, *counts, *learned])
    return "\n" + table(("file", "language", "entries", "source", "licence"), lines)


_HEAD = ("lang", "source", "license")


def _list_line(path: Path) -> tuple[str, ...]:
    lines = [line for line in path.read_text("utf-8").splitlines() if line]
    entries = sum(not line.startswith("# ") for line in lines) - 1
    name, head = path.relative_to(DICTIONARIES).as_posix(), head_of(path, *_HEAD)
    return f"[{name}]({name})", head["lang"], f"{entries:,}", head["source"], head["license"]


def _counts_line(path: Path) -> tuple[str, ...]:
    name, head = path.relative_to(DICTIONARIES).as_posix(), head_of(path, *_HEAD)
    rows = f"{pq.read_metadata(path).num_rows:,}"
    return f"[{name}]({name})", head["lang"], rows, head["source"], head["license"]


def _profile_line(path: Path) -> tuple[str, ...]:
    profile, folder = profiles.load(path.parent), path.parent.relative_to(DICTIONARIES).as_posix()
    entries = sum(len(getattr(profile, name)) for name in profiles.TABLES)
    return f"[{folder}]({folder})", profile.lang, f"{entries:,}", profile.source, profile.license


PARTS: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "reference" / "transforms.md": transforms_part,
    ROOT / "docs" / "reference" / "cli.md": cli_part,
    ROOT / "docs" / "reference" / "gallery.md": gallery_part,
    DICTIONARIES / "README.md": lists_part,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which pages differ")
    check = parser.parse_args(arguments).check
    stale = []
    for path, make in PARTS.items():
        old = path.read_text("utf-8")
        text = old.partition(MARKER)[0] + MARKER + make()
        if text != old:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(text, "utf-8", newline="\n")
    if stale:
        print("differ; run `make docs`:" if check else "wrote:", *stale, file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
