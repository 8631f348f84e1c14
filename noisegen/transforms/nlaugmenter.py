"""The transformations of NL-Augmenter as transforms, named `nlaugmenter:ClassName`.

They need the installed package `nlaugmenter`. NL-Augmenter draws from the global random generators
of Python and NumPy. Therefore only one transformation runs at a time. Before it runs, the
generators are seeded from the random stream of the row; afterwards, their former state is restored.
"""

import ast
import inspect
import math
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from noisegen.errors import NoisegenError, UsageError, did_you_mean
from noisegen.noising import registry
from noisegen.noising.registry import Parameter, RowFunction, Settings, Transform, Value
from noisegen.noising.rng import Draws
from noisegen.transforms.checkout import source_tree

PACKAGE = "nlaugmenter"
_INTERFACE = "SentenceOperation"
# Arguments passed to each constructor that has them.
_FIXED: dict[str, Value] = {
    "seed": 0,
    "max_outputs": 1,
}
_NO_OPTIONS = {*_FIXED, "verbose"}  # arguments of constructors that users cannot set
_ONE_AT_A_TIME = RLock()


def adapt(name: str) -> Transform:
    """Return the transform with the name 'nlaugmenter:ClassName'.

    Raises UsageError if the package is not installed or has no such sentence operation,
    NoisegenError if its code cannot be imported.
    """
    class_name = name.partition(":")[2]
    operation = _imported(name, _defining_folder(class_name), class_name)
    run = f"Run {class_name} of NL-Augmenter."
    summary = registry.summary_of(operation) if operation.__doc__ else run
    given = getattr(operation, "languages", None) or ["*"]
    codes = [given] if isinstance(given, str) else list(given)
    languages = ["*" if code.lower() == "all" else code for code in codes]
    return Transform(
        name,
        summary,
        _parameters(operation),
        make=partial(_make, name, operation),
        languages=lambda: languages,
        source=registry.defined_at(operation),
    )


def _defining_folder(class_name: str) -> str:
    """Return the name of the transformation folder whose code defines a class.

    The code is parsed, not imported. Raises UsageError if no folder defines the class.
    """
    locations = _package_folders()
    known: set[str] = set()
    files = (Path(folder).glob("transformations/*/transformation.py") for folder in locations)
    for path in sorted(chain.from_iterable(files)):
        try:
            body = source_tree(path).body
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        known |= {node.name for node in body if isinstance(node, ast.ClassDef)}
        if class_name in known:
            return path.parent.name
    near = did_you_mean(class_name, known) or f"; known: {', '.join(sorted(known)) or 'none'}"
    raise UsageError(f"nlaugmenter in {str(locations[0])!r} has no class {class_name!r}{near}")


def _package_folders() -> list[str]:
    """Return the folders of the package `nlaugmenter`; raises UsageError if it is not installed."""
    try:
        spec = find_spec(PACKAGE)
    except ValueError:  # sys.modules has a module of this name without a __spec__
        spec = None
    folders = (spec and spec.submodule_search_locations) or []
    if not folders:
        raise UsageError(
            "nlaugmenter is not installed and is on no package registry; run: git clone"
            " https://github.com/GEM-benchmark/NL-Augmenter && pip install --no-deps ./NL-Augmenter"
        )
    return list(folders)


def _imported(name: str, folder: str, class_name: str) -> type[Any]:
    """Import the class of transform `name` from a transformation folder.

    Raises UsageError if it is no sentence operation, NoisegenError if the import fails.
    """
    module = f"{PACKAGE}.transformations.{folder}"
    try:
        with _fenced(0):
            operation = getattr(import_module(f"{module}.transformation"), class_name)
            interface = getattr(import_module(f"{PACKAGE}.interfaces.{_INTERFACE}"), _INTERFACE)
    except Exception as error:
        hint = f"install what {module.replace('.', '/')} asks for"
        raise NoisegenError(f"{name} cannot be imported: {error!r}; {hint}") from error
    if not (isinstance(operation, type) and issubclass(operation, interface)):
        raise UsageError(f"{name} is no {_INTERFACE}; only these turn one text into another")
    return operation


@contextmanager
def _fenced(seed: int) -> Iterator[None]:
    """Run a block of NL-Augmenter's code with seeded global random generators.

    The code prints to stderr. After the block, the former state of the generators is restored. Only
    one block runs at a time.
    """
    with _ONE_AT_A_TIME, redirect_stdout(sys.stderr):
        of_python, of_numpy = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


def _parameters(operation: type[Any]) -> dict[str, Parameter]:
    """Return the arguments of a class's constructor that users can set as options.

    An argument is an option if its default is a number, bool or text, and it is not in
    `_NO_OPTIONS`.
    """
    parameters = {}
    for hint in inspect.signature(operation.__init__).parameters.values():
        default, kind = hint.default, type(hint.default)
        if kind is int and hint.annotation in (float, "float"):
            default, kind = float(default), float
        plain = kind in (int, bool, str) or (kind is float and math.isfinite(default))
        if plain and hint.name not in _NO_OPTIONS:
            parameters[hint.name] = Parameter(hint.name, default, kind)
    return parameters


def _make(
    name: str, operation: type[Any], settings: Settings, values: Mapping[str, Any]
) -> RowFunction:
    """Return the kernel that runs the transformation of a class.

    The class `operation` is instantiated once per set of options. The instance for `values` is made
    at once, so that errors in the options are raised before any text is read.
    """
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
        noisy: str = output if isinstance(output, str) else next(iter(output), text)
        return noisy or text

    instance(**values)
    return RowFunction(name, run, dict(values), settings.factors)
