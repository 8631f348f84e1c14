"""The catalog of transforms: what is known about each, for people and programs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisegen.errors import UsageError
from noisegen.noise import registry
from noisegen.noise.lexicon import head_of
from noisegen.noise.registry import Settings
from noisegen.testing import noise_with
from noisegen.text.resources import DEMO, DICTIONARIES

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


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
    defaults = {name: parameter.default for name, parameter in transform.parameters.items()}
    langs = [lang for lang in transform.languages() if lang != "*"] or ["en"]
    paths = dict.fromkeys(path for lang in langs for path in transform.data(Settings(lang), {}))
    data = [{"file": _short(path), **head_of(path)} for path in paths]
    return TransformInfo(
        name, transform.summary, transform.languages(), defaults, data, transform.source,
        transform.keeps_meaning,
    )  # fmt: skip


def _short(path: Path) -> str:
    """Return a packaged file's path from its package down, any other path as it is."""
    if path.is_relative_to(DICTIONARIES):
        return path.relative_to(DICTIONARIES.parent).as_posix()
    parts = path.parts
    if "site-packages" in parts:
        return "/".join(parts[len(parts) - parts[::-1].index("site-packages") :])
    return str(path)


def table(transforms: list[TransformInfo]) -> "Table":
    """Return transforms as a table for the terminal."""
    from rich.table import Table

    columns = ("name", "what it does", "parameters", "languages")
    shown = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for known in transforms:
        options = " ".join(f"{name}={value}" for name, value in known.parameters.items())
        caution = "" if known.keeps_meaning else " May add or drop content."
        summary = f"{known.summary}{caution}"
        shown.add_row(f"[bold cyan]{known.name}[/]", summary, options, _languages(known))
    return shown


def _languages(known: TransformInfo) -> str:
    return "any" if known.languages == ["*"] else " ".join(known.languages)


def describe(known: TransformInfo) -> "Group":
    """Return one transform for the terminal, with examples from the bundled text."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_row("languages", Text(_languages(known)))
    for name, value in known.parameters.items():
        grid.add_row("parameter", Text(f"{name} = {value}"))
    for clean, noisy in real_examples(known):
        grid.add_row("example", Text(f"{clean}\n{noisy}"))
    for note in known.data:
        licence = f"{note.get('source', '')} ({note.get('license', 'no licence named')})"
        grid.add_row("data", Text(f"{note['file']}: {licence}"))
    if not known.keeps_meaning:
        grid.add_row("caution", "may add or drop content")
    grid.add_row("defined in", Text(known.source))
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
