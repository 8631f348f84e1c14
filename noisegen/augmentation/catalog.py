"""Catalog of the transforms and recipes, as data and as tables for the terminal."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice, takewhile
from operator import ne
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from noisegen.augmentation.on_the_fly import Noising
from noisegen.errors import UsageError, did_you_mean
from noisegen.noising import registry
from noisegen.noising.lexicon import head_of
from noisegen.noising.recipe import Recipe, recipe_names
from noisegen.noising.registry import Settings
from noisegen.report.blocks import Block, Cell, Row, Table, figure
from noisegen.report.blocks import Text as Paragraph
from noisegen.testing import noise_with
from noisegen.text.alignment import character_errors, word_errors
from noisegen.text.resources import DEMO, DICTIONARIES, EXAMPLE_CASUAL, EXAMPLE_PAIRS, RECIPES


@dataclass(frozen=True)
class TransformInfo:
    """Description of a transform.

    `other_names` has what people and other tools call it; these names work as well. `parameters`
    maps the names of its parameters to their defaults. `data` lists the word lists that it reads,
    with their sources and licences. `source` is the file and line of its code.
    """

    name: str
    other_names: list[str]
    summary: str
    languages: list[str]
    parameters: dict[str, Any]
    data: list[dict[str, str]]
    source: str
    keeps_meaning: bool

    @property
    def examples(self) -> list[tuple[str, str]]:
        """The examples in the summary of the transform, as pairs of clean and noisy text."""
        return registry.examples_in(self.summary)

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        return asdict(self)


def list_transforms() -> list[TransformInfo]:
    """Describe every transform, plug-ins included; raises NoisegenError for a broken plug-in."""
    return [info(name) for name in registry.names()]


def info(name: str) -> TransformInfo:
    """Describe one transform; raises UsageError for an unknown name."""
    transform = registry.get(name)
    packaged = sorted(path.name for path in DICTIONARIES.glob("??"))
    langs = [lang for lang in transform.languages() if lang != "*"] or packaged
    paths = dict.fromkeys(path for lang in langs for path in transform.data(Settings(lang), {}))
    return TransformInfo(
        name=transform.name,
        other_names=[other for other, own in registry.OTHER_NAMES.items() if own == transform.name],
        summary=transform.summary,
        languages=transform.languages(),
        parameters={key: parameter.default for key, parameter in transform.parameters.items()},
        data=[{"file": _short(path), **head_of(path)} for path in paths],
        source=transform.source,
        keeps_meaning=transform.keeps_meaning,
    )


LIST_MAX = 12  # characters of a list of languages; of a longer list only their number is shown


def _short(path: Path) -> str:
    """Return the path of a packaged file within its package; any other path is returned whole."""
    if path.is_relative_to(DICTIONARIES):
        return path.relative_to(DICTIONARIES.parent).as_posix()
    return str(path).rpartition("/site-packages/")[2]


def table(transforms: list[TransformInfo]) -> Group:
    """Return a table of transforms for the terminal."""
    shown = RichTable("name", "what it does", box=None, header_style="bold", pad_edge=False)
    shown.add_column("languages", justify="right", no_wrap=True)
    for known in transforms:
        notes = "" if known.keeps_meaning else " May add or drop content."
        notes += f" Also: {', '.join(known.other_names)}." if known.other_names else ""
        languages = _languages(known)
        short = languages if len(languages) <= LIST_MAX else f"{len(known.languages)} languages"
        shown.add_row(Text(known.name, "bold cyan"), f"{known.summary}{notes}", short)
    return Group(
        shown, Text("\nParameters, data and more examples: noisegen transforms NAME", "dim")
    )


def _languages(known: TransformInfo) -> str:
    return "any" if known.languages == ["*"] else " ".join(known.languages)


def describe(known: TransformInfo) -> Group:
    """Return the description of one transform for the terminal, with examples from demo texts."""
    rows = [("also", ", ".join(known.other_names))] if known.other_names else []
    rows.append(("languages", _languages(known)))
    rows += [("parameter", f"{name} = {value}") for name, value in known.parameters.items()]
    rows += [("example", f"{clean}\n{noisy}") for clean, noisy in real_examples(known)]
    for note in known.data:
        licence = f"{note.get('source', '')} ({note.get('license', 'no licence named')})"
        rows.append(("data", f"{note['file']}: {licence}"))
    rows += [("caution", "may add or drop content")] * (not known.keeps_meaning)
    grid = RichTable.grid(padding=(0, 2))
    for name, text in [*rows, ("defined in", known.source)]:
        grid.add_row(name, Text(text))
    return Group(Text(known.name, "bold cyan"), Text(known.summary), grid)


def real_examples(known: TransformInfo, count: int = 2) -> list[tuple[str, str]]:
    """Return the shortest demo sentences that a transform changes, before and after.

    Every rate of the transform is 1. A transform that needs a file of the user has no examples.
    """
    lang = "en" if {"en", "*"} & set(known.languages) else known.languages[0]
    texts = sorted(set(demo_texts().get(lang, ())), key=lambda text: (len(text), text))
    try:
        pairs = zip(texts, noise_with(known.name, texts, lang=lang), strict=True)
    except UsageError:
        return []
    return [(clean, noisy) for clean, noisy in pairs if clean != noisy][:count]


def demo_texts() -> dict[str, list[str]]:
    """Return the demo texts by language."""
    texts: dict[str, list[str]] = {}
    for line in DEMO.read_text("utf-8").splitlines()[1:]:
        text, _, lang = line.split("\t")
        texts.setdefault(lang, []).append(text)
    return texts


# Recipes.

RATE_ROWS = 4_000  # noisy rows on which an error rate is measured
RATE_TEXTS_MIN = 20  # demo texts that a language needs, at least, for its error rates to be shown


# Packaged example data by name: what it is. All of it was written for noisegen.
EXAMPLES = {
    "text": "clean English sentences, one per line",
    "casual": "3,990 casual English texts without errors, to train on, one per line",
    "posts": "English posts as people write them, one per line",
    "pairs": "the same posts and their clean form, a table with columns noisy and clean",
}
EXAMPLES_FROM = "written for noisegen, Apache-2.0"  # source and licence


def example(name: str) -> str:
    """Return the packaged example data of a name in EXAMPLES; raises UsageError for another."""
    if name not in EXAMPLES:
        near = did_you_mean(name, EXAMPLES) or f"; known: {', '.join(EXAMPLES)}"
        raise UsageError(f"no example {name!r}{near}")
    if name == "text":
        return "".join(f"{text}\n" for text in demo_texts()["en"])
    if name == "casual":
        return EXAMPLE_CASUAL.read_text("utf-8")
    pairs = EXAMPLE_PAIRS.read_text("utf-8")
    if name == "pairs":
        return pairs
    _, *rows = pairs.splitlines()
    noisy = (row.partition("\t")[0] for row in rows)
    return "".join(f"{text}\n" for text in noisy)


def example_table() -> Table:
    """Return a table of the example data: name, description, source and licence."""
    rows = [[name, what, EXAMPLES_FROM] for name, what in EXAMPLES.items()]
    return Table("example data", ["name", "what it is", "source"], rows)


@dataclass(frozen=True)
class ErrorRates:
    """Error rates of a recipe, measured on the demo texts of a language.

    `texts` is the number of demo texts, `changed` the share of rows that the recipe changes.
    """

    texts: int
    changed: float
    cer: float
    wer: float

    def cells(self) -> list[Cell]:
        """Return three cells of a table: the share of changed rows, CER and WER."""
        return [figure(share, ".1%") for share in (self.changed, self.cer, self.wer)]


@dataclass(frozen=True)
class RecipeInfo:
    """Description of a recipe.

    `transforms` is the number of its transforms. `languages` counts, for each language, the
    transforms with data for it; "*" stands for any other language. `mixes` maps languages for which
    the recipe has other steps to these steps and to their writers (chances of the steps).
    """

    name: str
    summary: str
    about: str
    steps: list[Any]
    strength: dict[float, int]
    writers: dict[str, dict[str, Any]]
    transforms: int
    languages: dict[str, int]
    mixes: dict[str, dict[str, Any]]
    rates: dict[str, ErrorRates]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        return asdict(self)


def list_recipes() -> list[RecipeInfo]:
    """Describe the packaged recipes, with their error rates in English."""
    return [recipe_info(name, ["en"]) for name in recipe_names()]


def recipe_info(name: str, langs: Collection[str] | None = None) -> RecipeInfo:
    """Describe a packaged recipe, the recipe of a YAML file, or a single transform as a recipe.

    Error rates are measured in `langs` (default: all languages with enough demo texts).
    """
    recipe = Recipe.named(name)
    used = [registry.get(step.transform) for step in recipe.steps()]
    transforms = {transform.name: set(transform.languages()) for transform in used}
    languages: dict[str, int] = {}
    for lang in (*sorted(set.union(*transforms.values()) - {"*"}), "*"):
        if lang not in recipe.languages:
            with_data = [known for known in transforms.values() if {lang, "*"} & known]
            languages[lang] = len(with_data)
    summary, _, about = _comment(name).partition("\n")
    content = recipe.to_dict()
    rates: dict[str, ErrorRates] = {}
    for lang, texts in demo_texts().items():
        if len(texts) >= RATE_TEXTS_MIN and lang in (langs or [lang]):
            with suppress(UsageError):  # raised if no transform has data for the language
                rates[lang] = error_rates(recipe, texts, lang)
    return RecipeInfo(
        name=recipe.name,
        summary=summary,
        about=about,
        steps=content["steps"],
        strength=content["strength"],
        writers=content.get("writers", {}),
        transforms=len(transforms),
        languages=languages,
        mixes=content.get("languages", {}),
        rates=rates,
    )


def _comment(name: str) -> str:
    """Return the comment at the beginning of a recipe file; '' for a name without a file."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else RECIPES / f"{name}.yaml"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return "\n".join(x.lstrip("# ") for x in takewhile(lambda line: line.startswith("#"), lines))


def error_rates(recipe: Recipe, texts: Sequence[str], lang: str) -> ErrorRates:
    """Measure a recipe on texts of a language; each text is noised several times."""
    clean = list(islice(cycle(texts), RATE_ROWS))
    noisy = Noising(lang).noise(recipe, clean)
    words = sum(len(text.split()) for text in clean)
    return ErrorRates(
        texts=len(texts),
        changed=sum(map(ne, clean, noisy)) / len(clean),
        cer=sum(map(character_errors, clean, noisy)) / sum(map(len, clean)),
        wer=sum(map(word_errors, clean, noisy)) / words,
    )


def recipe_table(recipes: Sequence[RecipeInfo]) -> list[Block]:
    """Return a table of recipes with their error rates, and a note, as blocks of a report."""
    rows: list[Row] = [(known.name, known.summary, *known.rates["en"].cells()) for known in recipes]
    heads = ("name", "what it is", *RATES)
    return [
        Table("", heads, rows),
        Paragraph(f"{MEASURED} Details: noisegen recipes NAME", "quiet"),
    ]


RATES = ("changed", "CER", "WER")
MEASURED = "Share of rows changed and error rates, measured on the bundled demo text."


def describe_recipe(known: RecipeInfo) -> list[Block]:
    """Return the description of one recipe as blocks of a report."""
    total = sum(known.strength.values())
    shares = {factor: weight / total for factor, weight in known.strength.items()}
    factors = ", ".join(f"{factor:g} ({share:.0%})" for factor, share in shares.items())
    counts = {lang: f"{count} of {known.transforms}" for lang, count in known.languages.items()}
    rates: list[Row] = []
    for lang, measured in known.rates.items():
        data = "its own mix" if lang in known.mixes else counts.get(lang, counts["*"])
        rates.append((lang, data, *measured.cells()))
    others = [
        f"{lang} {counts[lang]}"
        for lang, count in known.languages.items()
        if count and lang not in known.rates
    ]
    return [
        Paragraph(known.name, "lead"),
        Paragraph(f"{known.summary} {' '.join(known.about.split())}".strip()),
        Table("", ("step", "chance and parameters", "what it does"), list(_steps(known.steps))),
        Paragraph(f"Strength, a factor on all rates, drawn for each row: {factors}"),
        *_writers(known.writers),
        *_mixes(known.mixes),
        Table("", ("language", "transforms", *RATES), rates),
        Paragraph(f"Other languages (* is any): {', '.join(others)}"),
        Paragraph(MEASURED, "quiet"),
    ]


def _writers(writers: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """Return a table of a recipe's writers: their shares of rows, and their chance of each step.

    Without writers the list of blocks is empty.
    """
    if not writers:
        return []
    shares, rows = _shares(writers), list[Row]()
    for name, writer in writers.items():
        habits = []
        for step, habit in writer["habits"].items():
            strength = "" if habit["strength"] == 1 else f" x{habit['strength']:g}"
            habits.append(f"{step} {habit['p']:g}{strength}")
        rows.append((name, shares[name], ", ".join(habits)))
    said = "Each row draws a writer, who has other chances of these steps (x: times the rates)."
    return [Paragraph(said), Table("", ("writer", "rows", "chances"), rows)]


def _shares(writers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the share of rows of each writer, as text."""
    total = sum(writer["weight"] for writer in writers.values())
    return {name: f"{writer['weight'] / total:.0%}" for name, writer in writers.items()}


def _mixes(mixes: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """Return a table of the languages for which a recipe has other steps, with these steps.

    Without such languages the list of blocks is empty.
    """
    if not mixes:
        return []
    rows: list[Row] = []
    for lang, mix in mixes.items():
        shares = map(" ".join, _shares(mix.get("writers", {})).items())
        steps = (name for name, _, _ in _steps(mix["steps"]))
        rows.append((lang, ", ".join(map(str.strip, steps)), ", ".join(shares)))
    said = "These languages have steps and writers of their own instead (all: --json)."
    return [Paragraph(said), Table("", ("language", "steps", "writers"), rows)]


def _steps(members: list[Any], depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield name, parameters and summary of each step and group in a recipe.

    A group comes before its steps, whose names are indented.
    """
    for member in members:
        kind = next(iter(member))
        is_group = isinstance(member[kind], list)
        options = {k: v for k, v in member.items() if k != kind} if is_group else member[kind]
        given = " ".join(f"{name}={value}" for name, value in options.items())
        what = "" if is_group else registry.get(kind).summary.partition(":")[0]
        yield "  " * depth + kind, given, what
        if is_group:
            yield from _steps(member[kind], depth + 1)
