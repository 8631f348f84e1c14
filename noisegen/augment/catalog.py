"""The catalog of transforms: what is known about each, for people and programs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from noisegen.errors import UsageError
from noisegen.noise import registry
from noisegen.noise.lexicon import head_of
from noisegen.noise.registry import Settings
from noisegen.testing import noise_with
from noisegen.text.resources import DEMO, DICTIONARIES


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
    langs = [lang for lang in transform.languages() if lang != "*"] or ["en"]
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


def _short(path: Path) -> str:
    """Return a packaged file's path from its package down, any other path as it is."""
    if path.is_relative_to(DICTIONARIES):
        return path.relative_to(DICTIONARIES.parent).as_posix()
    return str(path).rpartition("/site-packages/")[2]


def table(transforms: list[TransformInfo]) -> Table:
    """Return transforms as a table for the terminal."""
    columns = ("name", "what it does", "parameters", "languages")
    shown = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for known in transforms:
        options = " ".join(f"{name}={value}" for name, value in known.parameters.items())
        caution = "" if known.keeps_meaning else " May add or drop content."
        row = f"{known.summary}{caution}", options, _languages(known)
        shown.add_row(f"[bold cyan]{known.name}[/]", *row)
    return shown


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
    grid = Table.grid(padding=(0, 2))
    for name, text in [*rows, ("defined in", known.source)]:
        grid.add_row(name, Text(text))
    return Group(Text(known.name, "bold cyan"), Text(known.summary), grid)


def real_examples(known: TransformInfo, count: int = 2) -> list[tuple[str, str]]:
    """Return the shortest bundled sentences that a transform changes when every rate is 1.

    One that needs a file of the user has none.
    """
    lang = "en" if {"en", "*"} & set(known.languages) else known.languages[0]
    rows = [line.split("\t") for line in DEMO.read_text("utf-8").splitlines()[1:]]
    texts = sorted({text for text, _, spoken in rows if spoken == lang}, key=lambda t: (len(t), t))
    try:
        pairs = zip(texts, noise_with(known.name, texts, lang=lang), strict=True)
    except UsageError:
        return []
    return [(clean, noisy) for clean, noisy in pairs if clean != noisy][:count]
