"""NL-Augmenter: its vocabularies from a user's checkout, and its transformations as ours.

For `--nlaug-data` nothing of the checkout is imported or run: its data files are parsed, and a
dictionary that lives in code is taken from the syntax tree. What the matcher cannot find is left
out. `nlaugmenter:ClassName` runs the package where it is importable; its transformations draw from
the global generators, so every call runs with these seeded from the row's stream, one call at a
time, and leaves them as they were.
"""

import ast
import inspect
import json
import math
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from noisegen.errors import LexiconError, NoisegenError, UsageError, did_you_mean
from noisegen.noise.lexicon import Entry, Lexicon, matchable
from noisegen.noise.phrases import PhraseTable, build
from noisegen.noise.registry import (
    Parameter,
    RowFunction,
    Settings,
    Transform,
    Value,
    defined_at,
    summary_of,
)
from noisegen.noise.rng import Draws
from noisegen.text.buffers import WORD_BYTES_MAX
from noisegen.text.case import fold, is_upper

Reader = Callable[[Path], Iterable[Entry]]

_SCAR = "[email\u00a0protected]"  # what a scraper of web pages left of an address
_CUT = re.compile(r"[^\w .+$%-]")  # where abr2 cuts the lower-cased text: other rules never fire
_NEIGHBOURS = ("key_approx", "keyApprox")  # names of the table of keys


@dataclass(frozen=True)
class OriginalWords:
    """The vocabulary of the transform of this name, one of `WORD_LISTS`."""

    name: str

    def files(self, folder: Path) -> list[Path]:
        """Return the files of a checkout that it is read from."""
        return original_files(folder, self.name)

    def table(self, folder: Path) -> PhraseTable:
        """Return it compiled.

        Raises UsageError if the folder is no checkout, LexiconError if a file is missing or
        damaged.
        """
        paths = self.files(folder)
        entries = [
            entry
            for entry in _read(self.name, paths)
            if matchable(entry.clean)
            and all(len(word.encode()) <= WORD_BYTES_MAX for word in entry.clean.split())
        ]
        # Of keys that differ only in case, the one with fewest capitals.
        keys = sorted((entry.clean for entry in entries), key=lambda key: -sum(map(is_upper, key)))
        spelled = {fold(key): key for key in keys}
        entries = [entry for entry in entries if spelled[fold(entry.clean)] == entry.clean]
        source = ", ".join(map(str, paths))
        head = {"name": self.name, "lang": "en", "source": source, "license": "see the checkout"}
        return build(Lexicon(head, _weighted(entries, paths)))


def original_characters(folder: Path | None, name: str) -> list[Entry] | None:
    """Return a character's weighted replacements in a checkout, None without one.

    Raises the errors of `OriginalWords.table`.
    """
    if folder is None:
        return None
    paths = original_files(folder, name)
    return _weighted((entry for entry in _read(name, paths) if len(entry.clean) == 1), paths)


def original_files(folder: Path | None, name: str) -> list[Path]:
    """Return the files of a checkout that a transform is read from, none without one."""
    if folder is None:
        return []
    paths = [_root(folder) / _SOURCES[name].folder / file for file in _SOURCES[name].readers]
    for path in paths:
        if not path.is_file():
            raise LexiconError(f"no file {str(path)!r}; is this a whole checkout of NL-Augmenter?")
    return paths


def _root(folder: Path) -> Path:
    """Return the folder of transformations: in the newer layout, the older one, or as given."""
    if not folder.is_dir():
        raise UsageError(f"no folder {str(folder)!r}; give the root of an NL-Augmenter checkout")
    for nested in (folder / "nlaugmenter" / "transformations", folder / "transformations"):
        if nested.is_dir():
            return nested
    if any((folder / source.folder).is_dir() for source in _SOURCES.values()):
        return folder
    raise UsageError(f"no transformations folder in {str(folder)!r}; give the root of a checkout")


def _read(name: str, paths: list[Path]) -> Iterator[Entry]:
    """Read the entries of all files, without those that change nothing or hold nothing."""
    for path, reader in zip(paths, _SOURCES[name].readers.values(), strict=True):
        try:
            entries = list(reader(path))
        except (OSError, ValueError, TypeError, SyntaxError, RecursionError) as error:
            raise LexiconError(f"cannot read {path}: {error}; check the file out again") from error
        for entry in entries:
            empty = not entry.noisy.strip() or fold(entry.noisy) == fold(entry.clean)
            if not empty and _SCAR not in entry.noisy:
                yield entry


def _weighted(entries: Iterable[Entry], paths: list[Path]) -> list[Entry]:
    """Count equal entries into one with their number as weight, in the order of the file."""
    counts = Counter(entries)
    if not counts:
        raise LexiconError(f"no usable entry in {paths[0]}; check the file out again")
    return [entry._replace(weight=count) for entry, count in counts.items()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _lines(path: Path) -> list[str]:
    """Return the lines that are not empty, stripped."""
    return [line.strip() for line in _text(path).split("\n") if line.strip()]


def _json(path: Path) -> dict[str, object]:
    data = json.loads(_text(path))
    if not isinstance(data, dict):
        raise ValueError(f"{type(data).__name__} where a dictionary belongs")
    return data


def _strings(data: object) -> dict[str, str]:
    """Check that this is a dictionary of strings; raises ValueError for any other thing."""
    pairs = data.items() if isinstance(data, dict) else [(data, None)]
    for pair in pairs:
        if not all(isinstance(part, str) for part in pair):
            raise ValueError(f"{str(pair)[:60]} where two strings belong")
    return dict(pairs)


def _source_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file; raises what `ast.parse` and reading raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes in code of others
        return ast.parse(_text(path), path.name)


def _assignments(path: Path) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield target and value of every assignment, wherever it is."""
    for node in ast.walk(_source_tree(path)):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise ValueError(f"line {node.lineno} is no plain value") from error


def _assigned(path: Path, name: str) -> dict[str, str]:
    """Return the dictionary assigned to a name or an attribute."""
    for target, value in _assignments(path):
        if name in (getattr(target, "id", ""), getattr(target, "attr", "")):
            return _strings(_literal(value))
    raise ValueError(f"nothing is assigned to {name!r}")


def _entries(pairs: dict[str, str]) -> list[Entry]:
    return [Entry(clean, noisy) for clean, noisy in pairs.items()]


def _inverse(pairs: dict[str, str]) -> dict[str, str]:
    return {value: key for key, value in pairs.items()}


def _rules(path: Path) -> list[Entry]:
    """Read `noisy = clean` rules of abr2; the one with most elements wins, then the first.

    An element is `word`, `"x"`, `word+`, `(optional)` or `w(h)ole`.
    """
    split = (line.replace("\t", " ").partition(" = ") for line in _lines(path) if line[0] != "#")
    rules = [(" ".join(left.split()), right.split()) for left, equals, right in split if equals]
    labels: dict[str, str] = {}
    for label, elements in sorted(rules, key=lambda rule: -len(rule[1])):
        for chosen in product(*map(_choices, elements)):
            labels.setdefault(" ".join(filter(None, chosen)), label)
    return [
        Entry(clean, label)
        for clean, label in labels.items()
        if clean == clean.lower() and not _CUT.search(clean)
    ]


def _choices(element: str) -> list[str]:
    optional = re.fullmatch(r"([^()]*)\(([^()]+)\)([^()]*)", element)
    if optional is None:
        return [element.rstrip("+*").strip('"')]
    before, inside, after = optional.groups()
    return [before + after, before + inside.strip('"') + after]


def _acronyms(path: Path) -> list[Entry]:
    """Read `SHORT:long form` lines; either becomes the other, whatever its case, the first wins."""
    to_long: dict[str, str] = {}
    to_short: dict[str, str] = {}
    for line in _lines(path):
        short, colon, long = line.partition(":")
        if not colon:
            raise ValueError(f"no colon in {line[:60]!r}")
        to_long.setdefault(fold(short), long.lower())
        to_short.setdefault(fold(long), short)
    return [*_entries(to_long), *_entries(to_short)]


def _contractions(path: Path) -> list[Entry]:
    """Read `{contracted: expanded}` from code; either becomes the other."""
    expanded = _assigned(path, "contraction_map")
    return [*_entries(expanded), *_entries(_inverse(expanded))]


def _swaps(path: Path) -> list[Entry]:
    """Read `{group: {word: word}}`; either becomes the other, the second first where both could."""
    groups = _json(path).values()
    forward = {word: other for group in groups for word, other in _strings(group).items()}
    return _entries(forward | _inverse(forward))


def _misspellings(path: Path) -> Iterator[Entry]:
    """Read `{word: [misspelling, ...]}`, an underscore for a space; repeats weigh."""
    for word, wrongs in _json(path).items():
        if not isinstance(wrongs, list) or not all(isinstance(wrong, str) for wrong in wrongs):
            raise ValueError(f"no list of strings at {word!r}")
        yield from (Entry(word.replace("_", " "), wrong.replace("_", " ")) for wrong in wrongs)


def _slang(pos: str, columns: int) -> Reader:
    """Return the reader of `lemma,slang[,plural of slang]` rows; other rows are skipped.

    The list has lemmas and the matcher words, so a plural of slang is for the regular plural.
    """

    def read(path: Path) -> Iterator[Entry]:
        for line in _lines(path):
            fields = [part.strip() for part in line.split(",")]
            if len(fields) != columns or not all(fields):
                continue
            noun = fields[0]
            yield Entry(noun, fields[1], pos=pos)
            if noun.endswith(("s", "x", "z", "ch", "sh")):
                plural = noun + "es"
            else:
                plural = noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"
            yield from (Entry(plural, slang, pos=pos) for slang in fields[2:])

    return read


def _neighbours(path: Path) -> Iterator[Entry]:
    """Read `key_approx["q"] = "qw..."` lines; a capital has the neighbours of its letter."""
    for target, value in _assignments(path):
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in _NEIGHBOURS:
            for letter, others in _strings({_literal(target.slice): _literal(value)}).items():
                yield from (Entry(letter, other) for other in others)
                if letter != letter.upper():
                    yield from (Entry(letter.upper(), other.upper()) for other in others)


class _Source(NamedTuple):
    """The folder of a transform, and a reader for each of its files."""

    folder: str
    readers: dict[str, Reader]


def _flat(path: Path) -> list[Entry]:
    """Read `{clean: noisy}`."""
    return _entries(_strings(_json(path)))


_CODE = "transformation.py"
WORD_LISTS = {
    "abr1": _Source("abbreviation_transformation", {
        "phrase_abbrev_dict.json": _flat, "word_abbrev_dict.json": _flat,
    }),
    "abr2": _Source("insert_abbreviation", {"replacement_rules_en.txt": _rules}),
    "abr3": _Source("replace_abbreviation_and_acronyms", {"abbreviations.txt": _acronyms}),
    "cont": _Source("contraction_expansions", {_CODE: _contractions}),
    "dysl": _Source("dyslexia_words_swap", {"data.json": _swaps}),
    "slng": _Source("slangificator", {
        "Slang_Nouns.txt": _slang("NOUN", 3), "Slang_Adjectives.txt": _slang("ADJ", 2),
        "Slang_Adverbs.txt": _slang("ADV", 2),
    }),
    "spel": _Source("replace_spelling", {"spell_errors.json": _misspellings}),
    "week": _Source("weekday_month_abbreviation", {
        "weekday_month_abb_en.json": _flat, "weekday_month_exp_en.json": _flat,
    }),
}  # fmt: skip
_SOURCES = WORD_LISTS | {
    "fing": _Source("butter_fingers_perturbation", {_CODE: _neighbours}),
    "leet": _Source("leet_letters", {
        _CODE: lambda path: _entries(_assigned(path, "leet_letter_mappings")),
    }),
}  # fmt: skip


# The package.

PACKAGE = "nlaugmenter"
_INTERFACE = "SentenceOperation"
_FIXED: dict[str, Value] = {"seed": 0, "max_outputs": 1}
_OURS = {*_FIXED, "verbose"}  # keywords that are no options of the transform
_ONE_AT_A_TIME = RLock()


def adapt(name: str) -> Transform:
    """Return the transform 'nlaugmenter:ClassName'.

    Raises UsageError if the package is not importable or has no such sentence operation.
    """
    class_name = name.partition(":")[2]
    operation = _imported(name, _defining_file(class_name).parent.name, class_name)
    summary = summary_of(operation) if operation.__doc__ else f"Run {class_name} of NL-Augmenter."
    given = getattr(operation, "languages", None) or ["*"]
    codes = [given] if isinstance(given, str) else list(given)
    languages = ["*" if code.lower() == "all" else code for code in codes]
    return Transform(
        name, summary, _parameters(operation), partial(_make, name, operation),
        lambda: languages, source=defined_at(operation),
    )  # fmt: skip


def class_names() -> list[str]:
    """Return the sentence operations of the package, sorted; none if it is not importable."""
    names = set()
    for path in _files():
        known = {_INTERFACE}
        for node in _classes(path):
            bases = {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
            known |= set() if bases.isdisjoint(known) else {node.name}
        names |= known - {_INTERFACE}
    return sorted(names)


def _locations() -> list[Path]:
    """Return the folders of the package, none if it is not importable."""
    try:
        spec = find_spec(PACKAGE)
    except ValueError:  # a module put into sys.modules by hand has no spec
        return []
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or []]


def _files() -> list[Path]:
    pattern = f"transformations/*/{_CODE}"
    return sorted(path for folder in _locations() for path in folder.glob(pattern))


def _classes(path: Path) -> list[ast.ClassDef]:
    """Return the classes that a file defines; a file that does not parse has none."""
    try:
        return [node for node in _source_tree(path).body if isinstance(node, ast.ClassDef)]
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []


def _defining_file(class_name: str) -> Path:
    """Return the file that defines a class, without importing any; raises UsageError."""
    if not _locations():
        raise UsageError(
            "nlaugmenter is not installed and is on no package registry; run: git clone"
            " https://github.com/GEM-benchmark/NL-Augmenter && pip install --no-deps ./NL-Augmenter"
        )
    for path in _files():
        if class_name in (node.name for node in _classes(path)):
            return path
    known = class_names()
    near = did_you_mean(class_name, known) or f"; known: {', '.join(known) or 'none'}"
    raise UsageError(f"nlaugmenter in {str(_locations()[0])!r} has no class {class_name!r}{near}")


def _imported(name: str, folder: str, class_name: str) -> type[Any]:
    """Import a class; raises UsageError unless it is a sentence operation."""
    module = f"{PACKAGE}.transformations.{folder}"
    try:
        with _fenced(0):
            operation = getattr(import_module(f"{module}.transformation"), class_name)
            interface = getattr(import_module(f"{PACKAGE}.interfaces.{_INTERFACE}"), _INTERFACE)
    except ImportError as error:
        what = f"{name} cannot be imported: {error}"
        raise UsageError(f"{what}; install what {module.replace('.', '/')} asks for") from error
    except Exception as error:
        raise NoisegenError(f"{name} cannot be imported: {error!r}") from error
    if not (isinstance(operation, type) and issubclass(operation, interface)):
        raise UsageError(f"{name} is no {_INTERFACE}; only these turn one text into another")
    return operation


@contextmanager
def _fenced(seed: int) -> Iterator[None]:
    """Seed the global generators for code of others, send its prints to stderr, restore all."""
    with _ONE_AT_A_TIME:
        of_python, of_numpy = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


def _parameters(operation: type[Any]) -> dict[str, Parameter]:
    """Return the options of a constructor: what has a plain default and is not ours to set."""
    parameters = {}
    for hint in inspect.signature(operation.__init__).parameters.values():
        default, kind = hint.default, type(hint.default)
        if kind is int and hint.annotation in (float, "float"):
            default, kind = float(default), float
        plain = kind in (int, bool, str) or (kind is float and math.isfinite(default))
        if plain and hint.name not in _OURS:
            parameters[hint.name] = Parameter(hint.name, default, kind)
    return parameters


def _make(
    name: str, operation: type[Any], settings: Settings, values: Mapping[str, Any]
) -> RowFunction:
    """Return the kernel; an instance is made once for each set of options, the first one now."""
    accepted = inspect.signature(operation.__init__).parameters
    fixed = {key: value for key, value in _FIXED.items() if key in accepted}

    @cache
    def instance(**options: Value) -> Any:
        try:
            with _fenced(0):
                return operation(**fixed, **options)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise NoisegenError(f"{name} cannot be set up with {options}: {what}") from error

    def run(text: str, draws: Draws, **options: Value) -> str:
        transformation = instance(**options)
        with _fenced(draws.seed):
            transformation.seed = draws.seed
            output = transformation.generate(text)
            noisy = output if isinstance(output, str) else next(iter(output), text)
        if not isinstance(noisy, str):
            raise TypeError(f"generate returned {type(noisy).__name__}, not text")
        return noisy or text

    instance(**values)
    return RowFunction(name, run, dict(values), settings.factors)
