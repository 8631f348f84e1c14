"""The page of the public names for the site: signature, parameters, errors and example of each.

mkdocstrings writes signature and docstring. This module adds the table of parameters, from the help
texts of the options, and the example, from docs/reference/python.md, whose code a test runs. It
raises LookupError for a name that lacks one of them, so that the build of the site fails.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import noisegen
from noisegen.options import fields_of

EXAMPLES = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
# Classes whose objects noisegen makes, so that nobody calls them with parameters -> public name
# whose example in python.md shows such an object.
MADE = {
    "Draws": "transform",
    "Manifest": "Manifest",
    "NoisegenError": "NoisegenError",
    "TransformInfo": "list_transforms",
}
# Parameters that are no options of the command line, in every function that has them
INTERNAL = {
    "progress": "Called with each progress event, a `noisegen.runs.progress.Progress`.",
    "tell": "Called with each line for the user.",
    "values": "Values of `--set`: {'leet.rate': 0.05}.",
    "command": "Command line that the manifest names.",
    "began": "`time.monotonic()` and `time.process_time()` from which a limit counts.",
    "sinks": "Functions that get each row of the log.",
}
# Positional arguments and other parameters without a help text
OTHERS = {
    "sources": "Files, folders, globs, URLs or `hf:NAME`: one or a list.",
    "source": "Clean text to measure on: a file, folder or `hf:NAME`.",
    "files": "Lang-8 or M2 files, folders or globs: one or a list.",
    "dumps": "Dumps with whole histories, folders or globs: one or a list.",
    "posts": "Noisy posts: files, folders or `hf:NAME`; one or a list.",
    "data": "Clean text or pairs: files, folders or bitext; one or a list.",
    "models": "SPECs of the models, or NAME=SPEC: one or a list.",
    "strengths": "Factors of the noise in the chart of error over strength.",
    "name": "Name of the new recipe.",
}
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DECODED = re.compile(r"decode\((\w+), locals\(\)\)")


def reference() -> str:
    """Return the page of the public names: functions first, then classes."""
    modules = noisegen._MODULES
    names = sorted(modules, key=lambda name: (name[0].isupper(), name))
    parts = [part for name in names for part in section(name, modules[name])]
    return "\n\n".join(["# Python API", *parts]) + "\n"


def section(name: str, module: str) -> list[str]:
    """Return the parts of the page about one name; raises LookupError if one is missing."""
    thing = getattr(noisegen, name)
    parts = [f"::: noisegen.{module}.{name}"]
    if not (inspect.getdoc(thing) or "").strip():
        raise LookupError(f"noisegen.{name} has no docstring")
    if name in MADE:
        # The attributes of Draws are its state, which no plug-in reads.
        shown = attributes(thing) if name != "Draws" else []
        return [*parts, *shown, *subclasses(thing), _example(MADE[name])]
    return [*parts, *parameters(name, thing), *_errors(name, thing), _example(name)]


def parameters(name: str, thing: Callable[..., Any]) -> list[str]:
    """Return the table of a function's parameters, with help texts and defaults.

    Raises LookupError for a parameter without a help text, here or in the docstring.
    """
    told = _told(thing)
    helps = _helps(thing)
    rows = []
    for known in inspect.signature(thing).parameters.values():
        said = helps.get(known.name, "") or (OTHERS.get(known.name, "") if helps else "")
        if not said and not re.search(rf"`{known.name}`|\*\*{known.name}", told):
            raise LookupError(f"noisegen.{name}: its docstring does not name `{known.name}`")
        default = f"`{getattr(known.default, '__name__', repr(known.default))}`"
        default = "" if known.default is known.empty else default
        if said:
            rows.append(f"| `{known.name}` | {said} | {default} |")
    head = ["| parameter | meaning | default |", "|---|---|---|"]
    return ["\n".join(["**Parameters**\n", *head, *rows])] if rows else []


def attributes(made: type) -> list[str]:
    """Return the table of a dataclass's attributes with their types; [] for another class."""
    if not is_dataclass(made):
        return []
    rows = [f"| `{field.name}` | `{_type_of(field)}` |" for field in fields(made)]
    return ["\n".join(["**Attributes**\n", "| attribute | type |", "|---|---|", *rows])]


def subclasses(made: type) -> list[str]:
    """Return the table of a class's subclasses in its module; [] if there are none."""
    rows = [
        f"| `noisegen.errors.{each.__name__}` | {_first_line(each)} |"
        for each in made.__subclasses__()
        if each.__module__ == made.__module__
    ]
    head = ["**Subclasses**\n", "| error | raised for |", "|---|---|"]
    return ["\n".join([*head, *rows])] if rows else []


def _type_of(field: Field[Any]) -> str:
    kind = field.type if isinstance(field.type, str) else inspect.formatannotation(field.type)
    return kind.replace("|", "\\|")


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _helps(thing: Callable[..., Any]) -> dict[str, str]:
    """Return the help text of each parameter that is also an option of a command."""
    function = inspect.unwrap(thing)
    found = _DECODED.search(inspect.getsource(function))
    if not found or not inspect.isfunction(function):
        return {}
    fields = fields_of(function.__globals__[found[1]])
    helps = {name: field.meta.help.replace("|", "\\|") for name, field in fields.items()}
    return INTERNAL | {name: text for name, text in helps.items() if text}


def _told(thing: Any) -> str:
    """Return the docstring of a function, or those of a class and its methods."""
    parts = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        methods = [member for _, member in inspect.getmembers(thing, inspect.isfunction)]
        parts += [inspect.getdoc(each) or "" for each in methods]
    return " ".join(parts)


def _errors(name: str, thing: Any) -> list[str]:
    """Return the sentences of the docstring on errors; raises LookupError if there are none."""
    sentences = re.findall(r"[^.;:]*\b[Rr]aises? [^.]*", " ".join(_told(thing).split()))
    if not sentences:
        raise LookupError(f"noisegen.{name}: its docstring does not say which errors it raises")
    return [f"**Errors**\n\n{sentences[0].strip()}."]


def _example(name: str) -> str:
    return f"**Example**\n\n```python\n{example(name)}\n```"


def example(name: str) -> str:
    """Return the example of a name: a block of python.md, or a call in its table of functions."""
    text = EXAMPLES.read_text("utf-8")
    used = re.compile(rf"(?:noisegen\.|@noisegen\.){name}\b(?=[.(\n]| as )")
    for block in _BLOCK.findall(text):
        if used.search(block):
            return str(block).strip()
    call = re.search(rf"`(noisegen\.{name}\([^`]*\))`", text)
    if not call:
        raise LookupError(f"docs/reference/python.md has no example of noisegen.{name}")
    return f"import noisegen\n\n{call[1]}"
