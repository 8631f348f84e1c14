"""Word lists as transforms: where they lie, what languages they have, how they are registered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from noisegen.compiled import load_table
from noisegen.errors import LexiconError
from noisegen.lexicon import Lexicon, Parser, head_of, parser_of
from noisegen.parameters import Parameter
from noisegen.phrase_kernel import LexicalKernel
from noisegen.phrases import PhraseTable
from noisegen.registry import DICTIONARIES, Settings, Transform, called_from, register
from noisegen.taggers import make_tagger


@dataclass(frozen=True)
class LexicalSource:
    """Where the word list of a transform lies: a path ('{lang}' in it is the language)."""

    name: str
    path: Callable[[], Path]
    tags: str = ""
    parser: Parser | None = None
    langs: tuple[str, ...] = ("*",)

    def files(self, settings: Settings) -> list[Path]:
        """Return the files that a kernel for these settings reads."""
        from noisegen.transforms import nlaug_data

        theirs = nlaug_data.files(settings.nlaug_data, self.name) if settings.nlaug_data else []
        return theirs or [Path(str(self.path()).replace("{lang}", settings.lang))]

    def languages(self) -> list[str]:
        """Return the languages that have a file."""
        before, found, after = str(self.path()).partition("{lang}")
        if not found:
            return list(self.langs)
        return sorted(path.parent.name for path in Path(before).glob(f"*{after}"))

    def table(self, settings: Settings) -> PhraseTable:
        """Return the compiled word list, from the user's NL-Augmenter checkout if there is one."""
        from noisegen.transforms import nlaug_data

        theirs = nlaug_data.vocabulary(settings.nlaug_data, self.name)
        if theirs is not None:
            return theirs
        path = self.files(settings)[0]
        return load_table(path, self.parser or parser_of(path))

    def kernel(self, settings: Settings, rate: float) -> LexicalKernel:
        """Make the kernel for a language and rate."""
        asks = self.tags in ("equal", "no-verb")
        tagger = make_tagger(settings.tagger, settings.lang) if asks else None
        limits = settings.limits(rate)[None]
        return LexicalKernel(self.table(settings), limits, (tagger,), (self.tags,))


def register_lexicon(
    source: LexicalSource, rate: float, summary: str, place: str | None = None
) -> None:
    """Register a word list as a transform with the default rate `rate`."""

    def make(settings: Settings, values: Mapping[str, Any]) -> LexicalKernel:
        return source.kernel(settings, float(values["rate"]))

    rates = {"rate": Parameter("rate", rate, float)}
    place = place or called_from(1)
    languages = source.languages
    register(
        Transform(
            source.name, summary, rates, make, languages,
            lambda settings, _: source.files(settings), place,
        )
    )  # fmt: skip


def languages_of(path: Path) -> tuple[str, ...]:
    """Return the languages in a word list's head; any language where it has none."""
    lang = head_of(path, "lang").get("lang", "*") if path.exists() else "*"
    return tuple(lang.split())


def summary_of_list(path: Path) -> str:
    """Return a summary with the first entry of a TSV as its example."""
    if path.suffix == ".parquet" or "{lang}" in str(path):
        return f"Replace words of {path.name}."
    first = Lexicon.load(path).entries[0]
    return f"Replace words of {path.name}: '{first.clean}' -> '{first.noisy}'."


def packaged(name: str) -> Path:
    """Return the path template of a packaged word list."""
    return DICTIONARIES / "{lang}" / f"{name}.tsv"


def codespell_dictionary() -> Path:
    """Return the dictionary file of the codespell package, without importing it."""
    spec = find_spec("codespell_lib")
    if spec is None or spec.origin is None:
        raise LexiconError("codespell is not installed; run: pip install codespell")
    return Path(spec.origin).parent / "data" / "dictionary.txt"
