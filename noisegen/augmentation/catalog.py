"""The catalog of transforms and recipes: what is known about each, for people and programs."""

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
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.lexicon import head_of
from noisegen.noising.recipe import Recipe, recipe_names
from noisegen.noising.registry import Settings
from noisegen.report.blocks import Block, Cell, Row, Table, figure
from noisegen.report.blocks import Text as Paragraph
from noisegen.testing import noise_with
from noisegen.text.alignment import character_errors, word_errors
from noisegen.text.resources import DEMO, DICTIONARIES, RECIPES


@dataclass(frozen=True)
class TransformInfo:
    """One transform: what it does, languages, parameters with defaults, data, place in code."""

    name: str
    summary: str
    languages: list[str]
    parameters: dict[str, Any]
    data: list[dict[str, str]]
    source: str
    keeps_meaning: bool

    @property
    def examples(self) -> list[tuple[str, str]]:
        """The examples of the summary: before, after."""
        return registry.examples_in(self.summary)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def list_transforms() -> list[TransformInfo]:
    """Return what is known about every transform, plug-ins included."""
    return [info(name) for name in registry.names()]


def info(name: str) -> TransformInfo:
    """Return what is known about one transform; raises UsageError for an unknown name."""
    transform = registry.get(name)
    packaged = sorted(path.name for path in DICTIONARIES.glob("??"))
    langs = [lang for lang in transform.languages() if lang != "*"] or packaged
    paths = dict.fromkeys(path for lang in langs for path in transform.data(Settings(lang), {}))
    return TransformInfo(
        name=name,
        summary=transform.summary,
        languages=transform.languages(),
        parameters={key: parameter.default for key, parameter in transform.parameters.items()},
        data=[{"file": _short(path), **head_of(path)} for path in paths],
        source=transform.source,
        keeps_meaning=transform.keeps_meaning,
    )


LIST_MAX = 12  # characters of a list of languages; more are counted


def _short(path: Path) -> str:
    """Return a packaged file's path from its package down, any other path as it is."""
    if path.is_relative_to(DICTIONARIES):
        return path.relative_to(DICTIONARIES.parent).as_posix()
    return str(path).rpartition("/site-packages/")[2]


def table(transforms: list[TransformInfo]) -> Group:
    """Return transforms as a table for the terminal."""
    shown = RichTable("name", "what it does", box=None, header_style="bold", pad_edge=False)
    shown.add_column("languages", justify="right", no_wrap=True)
    for known in transforms:
        caution = "" if known.keeps_meaning else " May add or drop content."
        languages = _languages(known)
        short = languages if len(languages) <= LIST_MAX else f"{len(known.languages)} languages"
        shown.add_row(Text(known.name, "bold cyan"), f"{known.summary}{caution}", short)
    return Group(
        shown, Text("\nParameters, data and more examples: noisegen transforms NAME", "dim")
    )


def _languages(known: TransformInfo) -> str:
    return "any" if known.languages == ["*"] else " ".join(known.languages)


def describe(known: TransformInfo) -> Group:
    """Return one transform for the terminal, with examples from the bundled text."""
    rows = [("languages", _languages(known))]
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
    """Return the shortest bundled sentences that a transform changes when every rate is 1.

    One that needs a file of the user has none.
    """
    lang = "en" if {"en", "*"} & set(known.languages) else known.languages[0]
    texts = sorted(set(demo_texts().get(lang, ())), key=lambda text: (len(text), text))
    try:
        pairs = zip(texts, noise_with(known.name, texts, lang=lang), strict=True)
    except UsageError:
        return []
    return [(clean, noisy) for clean, noisy in pairs if clean != noisy][:count]


def demo_texts() -> dict[str, list[str]]:
    """Return the bundled texts by language."""
    texts: dict[str, list[str]] = {}
    for line in DEMO.read_text("utf-8").splitlines()[1:]:
        text, _, lang = line.split("\t")
        texts.setdefault(lang, []).append(text)
    return texts


# Recipes.

RATE_ROWS = 4_000  # noisy rows that error rates are measured on
RATE_TEXTS_MIN = 20  # of a language, for its error rates


@dataclass(frozen=True)
class ErrorRates:
    """The noise of a recipe on the bundled texts of a language."""

    texts: int
    changed: float  # share of the rows
    cer: float
    wer: float

    def cells(self) -> list[Cell]:
        """Return the shares as cells of a table."""
        return [figure(share, ".1%") for share in (self.changed, self.cer, self.wer)]


@dataclass(frozen=True)
class RecipeInfo:
    """One recipe: what it is for, its steps, the data it has for languages, its error rates.

    `languages` counts the transforms that have data for a language; "*": for any. `mixes` has the
    languages with steps and writers of their own.
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
        """Return plain data."""
        return asdict(self)


def list_recipes() -> list[RecipeInfo]:
    """Return what is known about the packaged recipes, with their error rates in English."""
    return [recipe_info(name, ["en"]) for name in recipe_names()]


def recipe_info(name: str, langs: Collection[str] | None = None) -> RecipeInfo:
    """Return what is known about a packaged recipe, that of a YAML file, or one transform.

    Error rates are those of `langs`, by default of all languages with enough bundled text.
    """
    recipe = Recipe.named(name)
    known = [registry.get(step.transform) for step in recipe.steps()]
    transforms = {transform.name: set(transform.languages()) for transform in known}
    spoken = sorted(set.union(*transforms.values()) - {"*"})
    languages = {
        lang: sum(not {lang, "*"}.isdisjoint(has) for has in transforms.values())
        for lang in (*spoken, "*")
        if lang not in recipe.languages
    }
    summary, _, about = _comment(name).partition("\n")
    content = recipe.to_dict()
    rates: dict[str, ErrorRates] = {}
    for lang, texts in demo_texts().items():
        if len(texts) >= RATE_TEXTS_MIN and lang in (langs or [lang]):
            with suppress(UsageError):  # nothing in the recipe has data for the language
                rates[lang] = error_rates(recipe, texts, lang)
    return RecipeInfo(
        recipe.name, summary, about, content["steps"], content["strength"],
        content.get("writers", {}), len(transforms), languages, content.get("languages", {}), rates,
    )  # fmt: skip


def _comment(name: str) -> str:
    """Return the comment at the head of a recipe file."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else RECIPES / f"{name}.yaml"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return "\n".join(x.lstrip("# ") for x in takewhile(lambda line: line.startswith("#"), lines))


def error_rates(recipe: Recipe, texts: Sequence[str], lang: str) -> ErrorRates:
    """Measure a recipe on texts of a language, each of them noised several times."""
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
    """Return a list of recipes as blocks of a report."""
    rows: list[Row] = [(known.name, known.summary, *known.rates["en"].cells()) for known in recipes]
    heads = ("name", "what it is", *RATES)
    return [
        Table("", heads, rows),
        Paragraph(f"{MEASURED} Details: noisegen recipes NAME", "quiet"),
    ]


RATES = ("changed", "CER", "WER")
MEASURED = "Share of rows changed and error rates, measured on the bundled demo text."


def describe_recipe(known: RecipeInfo) -> list[Block]:
    """Return one recipe as blocks of a report."""
    total = sum(known.strength.values())
    factors = ", ".join(f"{of:g} ({n / total:.0%})" for of, n in known.strength.items())
    counts = {lang: f"{count} of {known.transforms}" for lang, count in known.languages.items()}
    rates: list[Row] = [
        (
            lang,
            "its own mix" if lang in known.mixes else counts.get(lang, counts["*"]),
            *measured.cells(),
        )
        for lang, measured in known.rates.items()
    ]
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
    """Return a table of the writers of a recipe with their shares and habits, if it has some."""
    if not writers:
        return []
    shares, rows = _shares(writers), list[Row]()
    for name, writer in writers.items():
        habits = (
            f"{step} {habit['p']:g}" + f" x{habit['strength']:g}" * (habit["strength"] != 1)
            for step, habit in writer["habits"].items()
        )
        rows.append((name, shares[name], ", ".join(habits)))
    said = "Each row draws a writer, who has other chances of these steps (x: times the rates)."
    return [Paragraph(said), Table("", ("writer", "rows", "chances"), rows)]


def _shares(writers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return how many of the rows each writer gets."""
    total = sum(writer["weight"] for writer in writers.values())
    return {name: f"{writer['weight'] / total:.0%}" for name, writer in writers.items()}


def _mixes(mixes: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """Return a table of the mixes that languages have of their own, if some have."""
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
    """Yield a line for each member of a recipe: name, chance and parameters, summary."""
    for member in members:
        kind = next(iter(member))
        is_group = isinstance(member[kind], list)
        options = {k: v for k, v in member.items() if k != kind} if is_group else member[kind]
        given = " ".join(f"{name}={value}" for name, value in options.items())
        what = "" if is_group else registry.get(kind).summary.partition(":")[0]
        yield "  " * depth + kind, given, what
        if is_group:
            yield from _steps(member[kind], depth + 1)
