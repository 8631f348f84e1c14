"""The registry of transforms: name -> how to make its kernel, its parameters, languages, examples.

A transform is registered as data (`lexical`), as one plain function (`transform`), or, inside the
package, as a function that makes a kernel (`kernel`). All three are found in the same way.
"""

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from noisegen.characters import Variants, strengths
from noisegen.draws import I64, U64, GapTables, fraction, threshold
from noisegen.edits import Edits
from noisegen.errors import NoisegenError, UsageError, did_you_mean
from noisegen.parameters import Parameter, Value, parameters_of
from noisegen.spans import Spans
from noisegen.text import Texts

ENTRY_POINTS = "noisegen.transforms"
DICTIONARIES = Path(__file__).parent / "dictionaries"
_LANGUAGE = re.compile("[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
F = TypeVar("F", bound=Callable[..., Any])


class Kernel(Protocol):
    """What the engine runs: proposes the edits of neighbouring rows."""

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Return the edits of all rows; `keys` and each of `variants` have one entry a row."""
        ...


@runtime_checkable
class SparingKernel(Kernel, Protocol):
    """A kernel that must know what is protected before it chooses."""

    def sparing(self, spans: Spans) -> Kernel:
        """Return the kernel that proposes nothing within these spans of the texts to come."""
        ...


@dataclass(frozen=True)
class Settings:
    """What a kernel is made for."""

    lang: str = "en"
    factors: tuple[Fraction, ...] = (Fraction(1),)
    nlaug_data: Path | None = None
    tagger: str = "auto"

    def __post_init__(self) -> None:
        """Raise UsageError for what is no code of a language: it names folders of word lists."""
        if not _LANGUAGE.fullmatch(self.lang):
            raise UsageError(f"no language code: {self.lang!r}; write one such as en, pt-BR or zh")

    def rates(self, rate: float) -> tuple[Fraction, ...]:
        """Return a rate at every strength of the recipe."""
        return strengths(fraction(rate), self.factors)

    def limits(self, rate: float) -> I64:
        """Return the 48-bit threshold of a rate at every strength of the recipe."""
        return np.array([threshold(part) for part in self.rates(rate)], np.int64)

    def gaps(self, rate: float) -> GapTables:
        """Return the gap tables of a rate at every strength of the recipe."""
        return GapTables(self.rates(rate))


Data = Callable[[Settings, Mapping[str, Any]], list[Path]]  # the files read for these values


@dataclass(frozen=True)
class Transform:
    """One named kind of noise. `make` gives its kernel for settings and parameter values."""

    name: str
    summary: str
    parameters: dict[str, Parameter]
    make: Callable[[Settings, Mapping[str, Any]], Kernel] = field(repr=False)
    languages: Callable[[], list[str]] = field(repr=False)
    data: Data = field(repr=False, default=lambda *_: [])
    source: str = field(repr=False, default="")  # where it is defined, as file:line
    keeps_meaning: bool = True

    def values(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Return the value of every parameter; raises UsageError for an unknown or wrong one."""
        for name in given:
            if name not in self.parameters:
                near = (
                    did_you_mean(name, self.parameters) or f"; it has {', '.join(self.parameters)}"
                )
                raise UsageError(f"{self.name} has no parameter {name!r}{near}")
        return {
            name: parameter.read(self.name, given[name]) if name in given else parameter.default
            for name, parameter in self.parameters.items()
        }

    def check_language(self, lang: str) -> None:
        """Raise UsageError naming the languages, unless there is data for this one."""
        known = self.languages()
        if lang not in known and "*" not in known:
            raise UsageError(
                f"{self.name} has no data for language {lang!r}; it has {', '.join(known)}"
            )


_REGISTERED: dict[str, Transform] = {}
_CODE: dict[Path, tuple[str, set[str]]] = {}  # digest of a file that ran, and what it registered


def register(made: Transform) -> None:
    """Add a transform; raises UsageError for a name that is taken by another."""
    if made.name in _REGISTERED:
        raise UsageError(f"a transform named {made.name!r} is registered already")
    _REGISTERED[made.name] = made


def names() -> list[str]:
    """Return the names of all transforms, plug-ins included, sorted."""
    _load_built_ins()
    return sorted({*_REGISTERED, *_entry_points()})


def get(name: str) -> Transform:
    """Return a transform; raises UsageError with the nearest name."""
    _load_built_ins()
    if name not in _REGISTERED and name in _entry_points():
        _load_entry_point(name)
    if name not in _REGISTERED and name.startswith("nlaugmenter:"):
        from noisegen.transforms import nlaugmenter

        register(nlaugmenter.adapt(name))
    if name not in _REGISTERED:
        near = did_you_mean(name, names()) or f"; known: {', '.join(names())}"
        raise UsageError(f"no transform named {name!r}{near}")
    return _REGISTERED[name]


def _load_built_ins() -> None:
    import noisegen.transforms  # noqa: F401 - registers them


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _load_entry_point(name: str) -> None:
    """Import a plug-in; a function that did not register itself is registered under the name."""
    try:
        function = _entry_points()[name].load()
    except Exception as error:
        raise NoisegenError(f"plug-in {name!r} cannot be imported: {error!r}") from error
    if name not in _REGISTERED:
        transform(name)(function)


def load_code(path: str | Path) -> None:
    """Run a Python file that registers transforms (`--code`); not again unless it has changed."""
    import runpy

    file = Path(path).resolve()
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"--code {path} cannot be read: {error.strerror}") from error
    before, names = _CODE.get(file, ("", set()))
    if before == digest:
        return
    for name in names:
        _REGISTERED.pop(name, None)
    _load_built_ins()
    known = set(_REGISTERED)
    try:
        runpy.run_path(str(file), run_name=f"noisegen_code_{file.stem}")
    except NoisegenError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"--code {path} failed: {type(error).__name__}: {error}") from error
    finally:
        _CODE[file] = "", set(_REGISTERED) - known
    _CODE[file] = digest, _CODE[file][1]


def transform(
    name: str, langs: Sequence[str] | str = ("*",), keeps_meaning: bool = True
) -> Callable[[F], F]:
    """Register a plain function `(text, draws, *, rate, ...) -> str` as a transform.

    The first line of its docstring is its help; its keyword-only parameters are its options, and
    those named rate or *_rate are scaled by the strength that a recipe draws. `keeps_meaning` is
    False where content may be added or dropped.
    """
    spoken = [langs] if isinstance(langs, str) else list(langs)

    def add(function: F) -> F:
        from noisegen.rowwise import RowFunction

        register(
            Transform(
                name, summary_of(function), parameters_of(function),
                lambda settings, given: RowFunction(name, function, dict(given), settings.factors),
                lambda: spoken, source=defined_at(function), keeps_meaning=keeps_meaning,
            )
        )  # fmt: skip
        return function

    return add


def kernel(
    name: str, data: Data, languages: Callable[[], list[str]], keeps_meaning: bool = True
) -> Callable[[F], F]:
    """Register a function `(settings, *, rate, ...) -> Kernel` as a transform.

    `keeps_meaning` is False where content may be added or dropped.
    """

    def add(function: F) -> F:
        register(
            Transform(
                name, summary_of(function), parameters_of(function),
                lambda settings, values: function(settings, **values),
                languages, data, defined_at(function), keeps_meaning,
            )
        )  # fmt: skip
        return function

    return add


def lexical(
    name: str, path: str | Path, *, rate: float = 1.0, summary: str = "", tags: str = "",
) -> None:  # fmt: skip
    """Register a word list as a transform: each match is replaced with chance `rate`.

    `path` is a TSV (its head names source, license and lang) or a mined dictionary in Parquet;
    '{lang}' in it stands for the language. `tags` is '' (any), 'equal' (the entry's part of speech
    must be that of the match), 'no-verb' (the match must not be a verb) or 'clitic' (a replacement
    that ends in one, such as "you've", needs a word after it).
    """
    from noisegen.wordlists import (
        LexicalSource,
        languages_of,
        register_lexicon,
        summary_of_list,
    )

    where = Path(path)
    source = LexicalSource(name, lambda: where, tags, langs=languages_of(where))
    register_lexicon(source, rate, summary or summary_of_list(where), called_from(1))


def defined_at(made: Callable[..., Any]) -> str:
    """Return file:line of a function or class, '' where its source is not at hand."""
    try:
        return f"{inspect.getsourcefile(made)}:{inspect.getsourcelines(made)[1]}"
    except (OSError, TypeError):
        return ""


def called_from(depth: int) -> str:
    """Return file:line of a caller; 1 is the caller of the function that asks."""
    frame = inspect.stack(0)[depth + 1]
    return f"{frame.filename}:{frame.lineno}"


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(function) or "").split("\n")[0]


_EXAMPLE = re.compile(r"'([^']+(?:'\w[^']*)*)' -> '([^']+(?:'\w[^']*)*)'")


def examples_in(summary: str) -> list[tuple[str, str]]:
    """Return the examples of a summary, written 'before' -> 'after'."""
    return _EXAMPLE.findall(summary)
