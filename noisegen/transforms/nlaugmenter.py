"""NL-Augmenter's own transformations as ours, where its package is importable; seeded per row.

They draw from the global generators, so every call runs with these seeded from the row's stream,
one call at a time, and leaves them as they were.
"""

import ast
import inspect
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from noisegen.draws import Draws
from noisegen.errors import NoisegenError, UsageError, did_you_mean
from noisegen.parameters import Parameter, Value
from noisegen.registry import Settings, Transform, defined_at, summary_of
from noisegen.rowwise import RowFunction
from noisegen.transforms.nlaug_data import source_tree

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
    found = _imported(name, _source_of(class_name).parent.name, class_name)
    summary = summary_of(found) if found.__doc__ else f"Run {class_name} of NL-Augmenter."
    return Transform(
        name, summary, _parameters(found), partial(_make, name, found),
        partial(_languages, found), source=defined_at(found),
    )  # fmt: skip


def class_names() -> list[str]:
    """Return the sentence operations of the package, sorted; none if it is not importable."""
    return sorted({name for path in _sources() for name in _sentence_operations(path)})


def _locations() -> list[Path]:
    """Return the folders of the package, none if it is not importable."""
    try:
        spec = find_spec(PACKAGE)
    except ValueError:  # a module put into sys.modules by hand has no spec
        return []
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or []]


def _sources() -> list[Path]:
    pattern = "transformations/*/transformation.py"
    return sorted(path for folder in _locations() for path in folder.glob(pattern))


def _classes(path: Path) -> list[ast.ClassDef]:
    """Return the classes that a file defines; a file that does not parse has none."""
    try:
        return [node for node in source_tree(path).body if isinstance(node, ast.ClassDef)]
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []


def _sentence_operations(path: Path) -> list[str]:
    """Return the classes of a file that derive from the interface, as its text says."""
    known = [_INTERFACE]
    for node in _classes(path):
        bases = {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
        if not bases.isdisjoint(known):
            known.append(node.name)
    return known[1:]


def _source_of(class_name: str) -> Path:
    """Find the file that defines a class, without importing any."""
    if not _locations():
        raise UsageError(
            "nlaugmenter is not installed and is on no package registry; run: git clone"
            " https://github.com/GEM-benchmark/NL-Augmenter && pip install --no-deps ./NL-Augmenter"
        )
    for path in _sources():
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
            found = getattr(import_module(f"{module}.transformation"), class_name)
            interface = getattr(import_module(f"{PACKAGE}.interfaces.{_INTERFACE}"), _INTERFACE)
    except ImportError as error:
        what = f"{name} cannot be imported: {error}"
        raise UsageError(f"{what}; install what {module.replace('.', '/')} asks for") from error
    except Exception as error:
        raise NoisegenError(f"{name} cannot be imported: {error!r}") from error
    if not (isinstance(found, type) and issubclass(found, interface)):
        raise UsageError(f"{name} is no {_INTERFACE}; only these turn one text into another")
    return found


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


def _parameters(found: type[Any]) -> dict[str, Parameter]:
    """Return the options of a constructor: what has a plain default and is not ours to set."""
    hints = inspect.signature(found.__init__).parameters.values()
    made = (_parameter(hint) for hint in hints if hint.name not in _OURS)
    return {parameter.name: parameter for parameter in made if parameter}


def _parameter(hint: inspect.Parameter) -> Parameter | None:
    default, kind = hint.default, type(hint.default)
    if kind is int and hint.annotation in (float, "float"):
        default, kind = float(default), float
    if kind not in (float, int, bool, str) or (kind is float and not math.isfinite(default)):
        return None
    return Parameter(hint.name, default, kind)


def _languages(found: type[Any]) -> list[str]:
    """Return the language codes; NL-Augmenter writes 'All' for '*'."""
    given = getattr(found, "languages", None) or ["*"]
    codes = [given] if isinstance(given, str) else list(given)
    return ["*" if code.lower() == "all" else code for code in codes]


def _make(
    name: str, found: type[Any], settings: Settings, values: Mapping[str, Any]
) -> RowFunction:
    """Return the kernel; an instance is made once for each set of options, the first one now."""
    instance = cache(partial(_construct, name, found))
    instance(**values)
    return RowFunction(name, _row_function(instance), dict(values), settings.factors)


def _construct(name: str, found: type[Any], **options: Value) -> Any:
    accepted = inspect.signature(found.__init__).parameters
    fixed = {key: value for key, value in _FIXED.items() if key in accepted}
    try:
        with _fenced(0):
            return found(**fixed, **options)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise NoisegenError(f"{name} cannot be set up with {options}: {what}") from error


def _row_function(instance: Callable[..., Any]) -> Callable[..., str]:
    def run(text: str, draws: Draws, **options: Value) -> str:
        operation = instance(**options)
        with _fenced(draws.seed):
            operation.seed = draws.seed
            return _first(operation.generate(text), text)

    return run


def _first(output: Any, text: str) -> str:
    """Return the first output, or the text itself if there is none."""
    first = output if isinstance(output, str) else next(iter(output), text)
    if not isinstance(first, str):
        raise TypeError(f"generate returned {type(first).__name__}, not text")
    return first or text
