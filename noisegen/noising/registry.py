"""The registry of transforms by name, with their parameters, languages and makers of kernels.

A transform is registered as a word list (`noisegen.lexical`), as one plain function (`transform`),
or as a function that makes a kernel (`kernel`). Built-in transforms and plug-ins are found by entry
points. An entry point names the module or function that registers a transform, and is loaded when
the transform is first used.
"""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np

from noisegen.errors import NoisegenError, UsageError, did_you_mean
from noisegen.noising.edits import Edits
from noisegen.noising.rng import Draws, GapTables, RowDraws, Strengths, fraction, threshold
from noisegen.text.alignment import difference
from noisegen.text.buffers import I64, U64, Texts
from noisegen.text.languages import MATCHED_BY, normalize_language
from noisegen.text.resources import RECIPES
from noisegen.text.rows import Row, RowEdit
from noisegen.text.spans import NO_SPANS, Spans

ENTRY_POINTS = "noisegen.transforms"  # entry-point group: transform = module to import
FAMILIES = "noisegen.transform_families"  # group: name before ':' = maker of transforms
F = TypeVar("F", bound=Callable[..., Any])
# Kinds of transforms, which matter in recipes with writers:
# - habit: a way to write a word, the same wherever a writer uses the word;
# - slip: a single error in a word that no habit and no other slip has changed;
# - script: a habit that concerns letters, and also applies to changed words;
# - style: a change of the whole row, such as its capitals or punctuation;
# - repair: the way back, from noisy to clean text.
Kind = Literal["habit", "slip", "script", "style", "repair"]
HABIT_KINDS = ("habit", "script")  # kinds that change a word alike wherever a writer uses it


class Kernel(Protocol):
    """A transform made ready for one language and given rates; it proposes the edits of rows.

    A kernel may have an attribute `needs` of type bytes: rows that contain none of these bytes are
    never changed.
    """

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits of all rows.

        `keys` has the key of each row's random stream for this step. `strengths` maps each rate
        parameter to an array with the index of the strength that each row drew.
        """
        ...


@runtime_checkable
class RowKernel(Kernel, Protocol):
    """A kernel that can also edit a single row; `propose` must return the same edits for it."""

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits of one row."""
        ...


@runtime_checkable
class WindowedKernel(Kernel, Protocol):
    """A kernel that can propose the edits of a huge row in parts, to bound the memory."""

    def windows(self, texts: Texts, keys: U64, strengths: Strengths) -> Iterator[Edits]:
        """Yield the edits that `propose` returns, window by window; `texts` has a single row."""
        ...


@runtime_checkable
class SparingKernel(Kernel, Protocol):
    """A kernel that must know the protected spans before it proposes edits."""

    def sparing(self, spans: Spans) -> Kernel:
        """Return a kernel that proposes no edits inside the protected `spans`."""
        ...


def edits_of_one(kernel: Kernel, row: Row, draws: RowDraws) -> list[RowEdit]:
    """Return the edits of one row, made by the kernel's `propose` as it has no `edit_row`."""
    text = row.text
    if isinstance(kernel, SparingKernel):
        spans = [(len(text[:a].encode()), len(text[:b].encode())) for a, b in row.protected]
        kernel = kernel.sparing(Spans.of(spans))
    indices = {name: np.array([index]) for name, index in draws.strengths.items()}
    texts = Texts.from_strings([text])
    edits = kernel.propose(texts, np.array([draws.key], np.uint64), indices)
    content = texts.values.tobytes()
    starts, stops = (
        [len(content[:end].decode()) for end in ends.tolist()]
        for ends in (edits.starts, edits.stops)
    )
    return list(zip(starts, stops, edits.written().to_strings(), strict=True))


def proposed_by_row(
    kernel: RowKernel, texts: Texts, keys: U64, strengths: Strengths, protected: Spans = NO_SPANS
) -> Edits:
    """Return the edits of all rows, made by the kernel's `edit_row` one row after another."""
    edits: list[tuple[int, int, int]] = []
    written: list[str] = []
    cleans = zip(texts.to_strings(), texts.offsets.tolist(), keys.tolist(), strict=False)
    for number, (clean, base, key) in enumerate(cleans):
        indices = {name: of_rows[number] for name, of_rows in strengths.items()}
        row = Row(clean, protected.in_text(clean, base))
        made = kernel.edit_row(row, RowDraws(key, indices))
        places: Sequence[int] = range(len(clean) + 1)  # character -> its first byte
        if made and not clean.isascii():
            places = [0, *accumulate(len(character.encode()) for character in clean)]
        for start, stop, new in made:
            edits.append((number, base + places[start], base + places[stop]))
            written.append(new)
    rows, starts, stops = np.array(edits, np.int64).reshape(-1, 3).T
    pool = Texts.from_strings(written).to_arrow()
    return Edits(rows, starts, stops, np.arange(len(edits)), pool)


@dataclass(frozen=True)
class Settings:
    """Settings for which a kernel is made.

    `lang` is any tag that `normalize_language` knows. `factors` are the factors that may multiply a
    rate, one per strength of the recipe. `nlaug_data` is the folder of a checkout of NL-Augmenter.
    `tagger` is 'rule' or 'spacy'. With `words_alike`, a kernel changes equal words of a row alike.
    """

    lang: str = "en"
    factors: tuple[Fraction, ...] = (Fraction(1),)
    nlaug_data: Path | None = None
    tagger: str = "rule"
    words_alike: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lang", normalize_language(self.lang))

    @property
    def matched_by(self) -> str:
        """How text in the language is cut into words for word lists, see `Texts.words`."""
        return MATCHED_BY.get(self.lang, "tokens")

    def rates(self, rate: float) -> tuple[Fraction, ...]:
        """Return the rate multiplied by each factor in `self.factors`, but 1 at most.

        A rate of 1 or more means "always" and stays as it is.
        """
        asked = fraction(rate)
        return tuple(asked if asked >= 1 else min(asked * f, Fraction(1)) for f in self.factors)

    def limits(self, rate: float) -> I64:
        """Return the 48-bit threshold of a rate at every strength; a draw below it is a hit."""
        return np.array([threshold(part) for part in self.rates(rate)], np.int64)

    def gaps(self, rate: float) -> GapTables:
        """Return tables to draw gaps between hits, for a rate at every strength of the recipe."""
        return GapTables(self.rates(rate))


Value = float | int | str | bool | None

_READERS: dict[type, Callable[[Any], Value]] = {
    float: float,
    int: int,
    str: str,
    bool: lambda value: {"true": True, "false": False}[str(value).lower()],
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a transform, read from the signature of its function.

    `kind` is the type of its values. If the parameter is a rate, `most` is its largest value.
    """

    name: str
    default: Value
    kind: type
    most: float = 1

    @property
    def is_rate(self) -> bool:
        """Whether the parameter is a chance per word or character, by its name."""
        return self.name == "rate" or self.name.endswith("_rate")

    def read(self, owner: str, given: object) -> Value:
        """Convert a value given as text or number to the type of the parameter.

        `owner` is the name of the transform in errors. Raises UsageError for a wrong value.
        """
        try:
            if isinstance(given, list | dict):  # possible in a recipe file
                raise TypeError
            value: Value = _READERS[self.kind](given)
        except (ValueError, KeyError, TypeError) as error:
            wrong = f"{given!r} is not a {self.kind.__name__}"
            raise UsageError(f"{owner}.{self.name} = {wrong}") from error
        if self.is_rate and not 0 <= float(value or 0) <= self.most:
            raise UsageError(f"{owner}.{self.name} = {given} is outside 0 to {self.most}")
        return value


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the keyword-only parameters of a function by name.

    An annotation `float | None` counts as `float`. A rate may be at most 1, or at most `limit` with
    the annotation `Annotated[float, limit]`.
    """
    parameters = {}
    for hint in inspect.signature(function, eval_str=True).parameters.values():
        if hint.kind is inspect.Parameter.KEYWORD_ONLY:
            options = getattr(hint.annotation, "__args__", [hint.annotation])
            kinds = [kind for kind in options if kind in _READERS] or [type(hint.default)]
            most = getattr(hint.annotation, "__metadata__", (1,))
            parameters[hint.name] = Parameter(hint.name, hint.default, kinds[0], *most)
    return parameters


Data = Callable[[Settings, Mapping[str, Any]], list[Path]]  # returns the files a kernel reads


def no_files(*_: object) -> list[Path]:
    """Return an empty list: the `data` function of a transform that reads no files."""
    return []


@dataclass(frozen=True)
class Transform:
    """One named kind of noise.

    `make` returns the kernel for settings and parameter values. `languages` returns the codes of
    its languages ('*' for any), `data` the files that a kernel reads. `source` is the file:line of
    the definition. `keeps_meaning` is False if the transform may add or drop content.
    """

    name: str
    summary: str
    parameters: dict[str, Parameter]
    make: Callable[[Settings, Mapping[str, Any]], Kernel] = field(repr=False)
    languages: Callable[[], list[str]] = field(repr=False)
    data: Data = field(repr=False, default=no_files)
    source: str = field(repr=False, default="")
    keeps_meaning: bool = True
    kind: Kind = "slip"

    @property
    def rates(self) -> list[str]:
        """Names of the parameters that are chances per word or character."""
        return [parameter.name for parameter in self.parameters.values() if parameter.is_rate]

    def values(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Return the value of every parameter: the given value, or else the default.

        Raises UsageError for an unknown parameter or a wrong value.
        """
        if unknown := next((name for name in given if name not in self.parameters), None):
            known = f"; it has {', '.join(self.parameters) or 'none (in code they follow *)'}"
            near = did_you_mean(unknown, self.parameters) or known
            raise UsageError(f"{self.name} has no parameter {unknown!r}{near}")
        return {
            name: parameter.read(self.name, given[name]) if name in given else parameter.default
            for name, parameter in self.parameters.items()
        }

    def has_language(self, lang: str) -> bool:
        """Tell whether the transform has data for a language."""
        return not {normalize_language(lang), "*"}.isdisjoint(self.languages())

    def check_language(self, lang: str) -> None:
        """Raise UsageError, which lists the known languages, if a language has no data."""
        if not self.has_language(lang):
            known = ", ".join(self.languages())
            lacks = "counts of words" if self.kind == "repair" else "data"
            raise UsageError(f"{self.name} has no {lacks} for language {lang!r}; it has {known}")


_REGISTERED: dict[str, Transform] = {}
_CODE: dict[Path, tuple[str, set[str]]] = {}  # file of `--code` -> (hash, transforms)


def register(transform: Transform) -> None:
    """Register a transform; raises UsageError for a taken name, wrong kind or wrong default."""
    if built_in := _own_entry_points().get((ENTRY_POINTS, transform.name)):
        built_in.load()  # does nothing while the built-in registers itself
    if transform.name in _REGISTERED:
        raise UsageError(
            f"a transform named {transform.name!r} is registered already: give it another name, or "
            "load its file once, by import or as code"
        )
    if transform.kind not in get_args(Kind):
        known = ", ".join(get_args(Kind))
        raise UsageError(f"{transform.name} has no kind {transform.kind!r}; known: {known}")
    for parameter in transform.parameters.values():
        if parameter.default is not None:
            parameter.read(transform.name, parameter.default)
    _REGISTERED[transform.name] = transform


# What people and other tools call a transform -> its name.
OTHER_NAMES = {
    "abbreviation": "abr1",
    "accents": "diac",
    "acronym": "abr3",
    "apostrophe": "apos",
    "case": "caps",
    "casing": "caps",
    "code-switching": "codeswitch",
    "contraction": "cont",
    "diacritics": "diac",
    "dialect": "dial",
    "dyslexia": "dysl",
    "elongation": "long",
    "emoji": "emot",
    "emoticon": "emot",
    "filler": "fill",
    "homoglyph": "look",
    "homophone": "homo",
    "interjection": "intj",
    "keyboard": "fing",
    "leetspeak": "leet",
    "misspelling": "spel",
    "phonetic": "phon",
    "punctuation": "punc",
    "slang": "slng",
    "spacing": "spac",
    "spelling": "spel",
    "transliteration": "latn",
    "typo": "fing",
    "whitespace": "spac",
}


def own_name(name: str) -> str:
    """Return the name of a transform that people call `name`: 'fing' for 'keyboard'.

    Any other name is returned as it is, that of a plug-in too.
    """
    return OTHER_NAMES[name] if name in OTHER_NAMES and not is_name(name) else name


def names() -> list[str]:
    """Return the sorted names of all transforms, plug-ins included."""
    own = {name for group, name in _own_entry_points() if group == ENTRY_POINTS}
    return sorted({*_REGISTERED, *own, *metadata.entry_points(group=ENTRY_POINTS).names})


def is_name(name: str) -> bool:
    """Tell whether a transform with this name exists, registered or not yet loaded."""
    return name in _REGISTERED or (ENTRY_POINTS, name) in _own_entry_points() or name in names()


def get(name: str) -> Transform:
    """Return the transform with this name or other name, loaded if necessary.

    Raises UsageError, which suggests the nearest name, for an unknown name, and NoisegenError for a
    plug-in that cannot be imported.
    """
    name = own_name(name)
    family, colon, _ = name.partition(":")
    if name not in _REGISTERED:
        if colon and (point := _entry_point(FAMILIES, family)):
            register(point.load()(name))
        elif point := _entry_point(ENTRY_POINTS, name):
            try:
                loaded = point.load()
            except Exception as error:
                raise NoisegenError(f"plug-in {name!r} cannot be imported: {error!r}") from error
            if name not in _REGISTERED and callable(loaded):  # function without decorator
                transform(name)(loaded)
    if name not in _REGISTERED:
        if (RECIPES / f"{name}.yaml").is_file():
            raise UsageError(f"{name!r} is a recipe, not a transform: --recipe {name}")
        known = f"; known: {', '.join(names())}; a transform of your own needs --code FILE.py"
        near = did_you_mean(name, [*names(), *OTHER_NAMES]) or known
        raise UsageError(f"no transform named {name!r}{near}")
    return _REGISTERED[name]


@cache
def _own_entry_points() -> dict[tuple[str, str], metadata.EntryPoint]:
    """Return noisegen's own entry points by group and name; reading only these is fast."""
    try:
        points = metadata.distribution("noisegen").entry_points
    except metadata.PackageNotFoundError:
        raise NoisegenError("noisegen is not installed; run: pip install -e .") from None
    return {(point.group, point.name): point for point in points}


def _entry_point(group: str, name: str) -> metadata.EntryPoint | None:
    own = _own_entry_points().get((group, name))
    return own or next(iter(metadata.entry_points(group=group, name=name)), None)


def load_code(*paths: str | Path) -> None:
    """Run Python files that register transforms, given by `--code`.

    A file that has not changed since its last run is skipped. Raises UsageError if a file cannot be
    read or fails.
    """
    import runpy

    for path in paths:
        file = Path(path).resolve()
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise UsageError(f"--code {path} cannot be read: {error.strerror}") from error
        digest_before, registered = _CODE.get(file, ("", set()))
        if digest_before == digest:
            continue
        for name in registered:
            _REGISTERED.pop(name, None)
        # Built-in transforms that the file loads do not count among those that it registers.
        known = {*_REGISTERED, *(name for _, name in _own_entry_points())}
        _CODE[file] = "", set()
        try:
            runpy.run_path(str(file), run_name=f"noisegen_code_{file.stem}")
            _CODE[file] = digest, set()
        except NoisegenError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(f"--code {path} failed: {type(error).__name__}: {error}") from error
        finally:
            _CODE[file][1].update(_REGISTERED.keys() - known)


def transform(
    name: str, langs: Sequence[str] | str = ("*",), keeps_meaning: bool = True, kind: Kind = "slip"
) -> Callable[[F], F]:
    """Register a plain function `(text, draws, *, rate, ...) -> str` as the transform `name`.

    The first line of the function's docstring is the help text of the transform; its keyword-only
    parameters are the parameters of the transform. Parameters named rate or *_rate are multiplied
    by the strength that a row draws. `langs` are the languages of the transform (default: any).
    `keeps_meaning` is False if the transform may add or drop content. `kind` matters in recipes
    with writers: a 'slip' changes words, each at most once; a 'style' may change the whole row.
    Raises UsageError for a name that is taken or missing, and for a wrong kind or default.
    """
    if not isinstance(name, str):
        function = getattr(name, "__name__", "NAME")
        raise UsageError(f'a transform needs a name: write @noisegen.transform("{function}")')
    given = [langs] if isinstance(langs, str) else langs
    languages = [lang if lang == "*" else normalize_language(lang) for lang in given]

    def add(function: F) -> F:
        _check_positional(name, function)

        def make(settings: Settings, values: Mapping[str, Any]) -> Kernel:
            return RowFunction(name, function, dict(values), settings.factors)

        _register_function(
            function, name, make, lambda: languages, keeps_meaning=keeps_meaning, kind=kind
        )
        return function

    return add


def _check_positional(name: str, function: Callable[..., Any]) -> None:
    """Raise UsageError if the second parameter of a function, the draws, has a default."""
    parameters = inspect.signature(function).parameters.values()
    options = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
    for second in [each for each in parameters if each.kind not in options][1:2]:
        if second.default is not inspect.Parameter.empty:
            form = f"def {name}(text, draws, *, {second})"
            raise UsageError(f"{name} gets its draws as second parameter: write {form}")


def kernel(
    name: str,
    data: Data = no_files,
    languages: Callable[[], list[str]] = lambda: ["*"],
    keeps_meaning: bool = True,
    kind: Kind = "slip",
) -> Callable[[F], F]:
    """Register a function `(settings, *, rate, ...) -> Kernel` as a transform.

    The help text and the parameters are read from the function as in `transform`. `data` returns
    the files that the kernel reads (default: none), `languages` the languages of the transform
    (default: any). If `kind` is 'habit' or 'script' (see `Kind`), the kernel must change equal
    words of a row alike if `Settings.words_alike` is set.
    """

    def add(function: F) -> F:
        def make(settings: Settings, values: Mapping[str, Any]) -> Kernel:
            made: Kernel = function(settings, **values)
            return made

        _register_function(
            function, name, make, languages, data=data, keeps_meaning=keeps_meaning, kind=kind
        )
        return function

    return add


def _register_function(
    function: Callable[..., Any],
    name: str,
    make: Callable[[Settings, Mapping[str, Any]], Kernel],
    languages: Callable[[], list[str]],
    **options: Any,
) -> None:
    """Register a transform; summary, parameters and file:line come from `function`."""
    summary, parameters = summary_of(function), parameters_of(function)
    source = defined_at(function)
    register(Transform(name, summary, parameters, make, languages, source=source, **options))


@dataclass(frozen=True)
class RowFunction:
    """A plain function as a kernel: it rewrites one row after another.

    `values` are values of the function's parameters. `factors` are the factors that may multiply
    its rates, one per strength of the recipe.
    """

    name: str
    function: Callable[..., str]
    values: Mapping[str, Any]
    factors: tuple[Fraction, ...]

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Run the function on one row, and return the differences between the row and the result.

        Raises NoisegenError if the function fails or returns anything but a string.
        """
        rates = {name: self._scaled[name][index] for name, index in draws.strengths.items()}
        try:
            noisy = self.function(row.text, Draws(draws.key), **{**self.values, **rates})
            if not isinstance(noisy, str):
                raise TypeError(f"it returned {type(noisy).__name__}, not str")
            noisy.encode()
        except (Exception, SystemExit) as error:
            what = f"{row.text[:60]!r}: {type(error).__name__}: {error}"
            raise NoisegenError(f"transform {self.name!r} failed on {what}") from error
        return difference(row.text, noisy)

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Run the function on every row, and return the differences between rows and results."""
        return proposed_by_row(self, texts, keys, strengths)

    @cached_property
    def _scaled(self) -> dict[str, list[float]]:
        """Dictionary: float parameter -> its values, one per strength of the recipe."""
        settings = Settings(factors=self.factors)
        rates = {name: value for name, value in self.values.items() if isinstance(value, float)}
        return {name: list(map(float, settings.rates(rate))) for name, rate in rates.items()}


def defined_at(defined: Callable[..., Any]) -> str:
    """Return where a function or class is defined as file:line, '' if its source is unknown."""
    try:
        return f"{inspect.getsourcefile(defined)}:{inspect.getsourcelines(defined)[1]}"
    except (OSError, TypeError):
        return ""


def called_from(depth: int) -> str:
    """Return where a function was called, as file:line.

    With `depth` 1, the function is `called_from`'s caller; with 2, that caller's caller.
    """
    frame = inspect.stack(0)[depth + 1]
    return f"{frame.filename}:{frame.lineno}"


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring, which is its help text."""
    return (inspect.getdoc(function) or "").split("\n")[0]


def examples_in(summary: str) -> list[tuple[str, str]]:
    """Return the (before, after) pairs of the examples 'before' -> 'after' in a help text."""
    return re.findall(r"'([^']+(?:'\w[^']*)*)' -> '([^']+(?:'\w[^']*)*)'", summary)
