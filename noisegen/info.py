"""What the registry knows about each transform, for people and programs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from noisegen import registry
from noisegen.engine import Engine
from noisegen.errors import UsageError
from noisegen.examples import DEMO
from noisegen.lexicon import head_of
from noisegen.mixing import Dice
from noisegen.recipe import Recipe, Step
from noisegen.registry import DICTIONARIES, Settings, Transform

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
    return TransformInfo(
        name, transform.summary, transform.languages(), defaults, _data(transform),
        transform.source, transform.keeps_meaning,
    )  # fmt: skip


def _data(transform: Transform) -> list[dict[str, str]]:
    langs = [lang for lang in transform.languages() if lang != "*"] or ["en"]
    paths = dict.fromkeys(path for lang in langs for path in transform.data(Settings(lang), {}))
    return [{"file": _short(path), **head_of(path)} for path in paths]


def _short(path: Path) -> str:
    """Return a packaged file's path from its package down, any other path as it is."""
    if path.is_relative_to(DICTIONARIES):
        return path.relative_to(DICTIONARIES.parent).as_posix()
    parts = path.parts
    if "site-packages" in parts:
        return "/".join(parts[len(parts) - parts[::-1].index("site-packages") :])
    return str(path)


def at_rate(name: str, texts: list[str], lang: str = "en", rate: float = 1) -> list[str]:
    """Return texts as a transform leaves them when every rate is 1, or another."""
    transform = registry.get(name)
    rates: dict[str, Any] = {p.name: rate for p in transform.parameters.values() if p.is_rate}
    engine = Engine(Recipe.of([Step(name, rates)]), Settings(lang))
    dice = Dice(np.arange(len(texts), dtype=np.uint64), 0)
    noisy: list[str] = engine.noise(pa.array(texts, pa.string()), dice).noisy.to_pylist()
    return noisy


def table(found: list[TransformInfo]) -> "Table":
    """Return the list as a table for the terminal."""
    from rich.table import Table

    shown = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("name", "what it does", "parameters", "languages"):
        shown.add_column(column)
    for one in found:
        options = " ".join(f"{name}={value}" for name, value in one.parameters.items())
        summary = one.summary if one.keeps_meaning else f"{one.summary} May add or drop content."
        shown.add_row(f"[bold cyan]{one.name}[/]", summary, options, _languages(one))
    return shown


def _languages(one: TransformInfo) -> str:
    return "any" if one.languages == ["*"] else " ".join(one.languages)


def describe(one: TransformInfo) -> "Group":
    """Return one transform for the terminal, with examples from the bundled text."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_row("languages", Text(_languages(one)))
    for name, value in one.parameters.items():
        grid.add_row("parameter", Text(f"{name} = {value}"))
    for clean, noisy in real_examples(one):
        grid.add_row("example", Text(f"{clean}\n{noisy}"))
    for note in one.data:
        licence = f"{note.get('source', '')} ({note.get('license', 'no licence named')})"
        grid.add_row("data", Text(f"{note['file']}: {licence}"))
    if not one.keeps_meaning:
        grid.add_row("caution", "may add or drop content")
    grid.add_row("defined in", Text(one.source))
    return Group(Text(one.name, "bold cyan"), Text(one.summary), grid)


def real_examples(one: TransformInfo, count: int = 2) -> list[tuple[str, str]]:
    """Return the shortest bundled sentences that a transform changes when every rate is 1.

    One that needs a file of the user has none.
    """
    lang = "en" if {"en", "*"} & set(one.languages) else one.languages[0]
    rows = [line.split("\t") for line in DEMO.read_text("utf-8").splitlines()[1:]]
    texts = sorted({text for text, _, spoken in rows if spoken == lang}, key=lambda t: (len(t), t))
    try:
        pairs = zip(texts, at_rate(one.name, texts, lang), strict=True)
    except UsageError:
        return []
    return [(clean, noisy) for clean, noisy in pairs if clean != noisy][:count]
