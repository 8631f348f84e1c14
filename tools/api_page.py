"""The page of the public names for the site: signature, parameters, errors and example of each.

mkdocstrings writes signature and docstring. This module adds the table of parameters, from the help
texts of the options, and the example, from docs/reference/python.md, whose code a test runs. It
raises LookupError for a name that lacks one of them, so that the build of the site fails.
"""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import noisegen
from noisegen.options import fields_of

EXAMPLES = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
# Classes whose objects noisegen makes: nobody calls them with parameters.
MADE = ("Draws", "Manifest", "NoisegenError", "TransformInfo")
# Parameters that are no options of the command line, in every function that has them
INTERNAL = {
    "progress": "Called with each progress event, a `noisegen.runs.progress.Progress`.",
    "tell": "Called with each line for the user.",
    "values": "Values of `--set`: {'leet.rate': 0.05}.",
    "command": "Command line that the manifest names.",
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
        return parts
    return [*parts, *parameters(name, thing), *_errors(name, thing), _example(name)]


def parameters(name: str, thing: Callable[..., Any]) -> list[str]:
    """Return the table of a function's parameters, with help texts and defaults.

    Parameters that are no options of a command must be named in the docstring.
    """
    told = _told(thing)
    helps = _helps(thing)
    rows = []
    for known in inspect.signature(thing).parameters.values():
        said = helps.get(known.name, "")
        if not said and not re.search(rf"`{known.name}`|\*\*{known.name}", told):
            raise LookupError(f"noisegen.{name}: its docstring does not name `{known.name}`")
        default = f"`{getattr(known.default, '__name__', repr(known.default))}`"
        default = "" if known.default is known.empty else default
        if said:
            rows.append(f"| `{known.name}` | {said} | {default} |")
    head = ["| parameter | meaning | default |", "|---|---|---|"]
    return ["\n".join(["**Parameters**\n", *head, *rows])] if rows else []


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
    used = re.compile(rf"(?:noisegen\.|@noisegen\.){name}\b(?=[.(\n])")
    for block in _BLOCK.findall(text):
        if used.search(block):
            return str(block).strip()
    call = re.search(rf"`(noisegen\.{name}\([^`]*\))`", text)
    if not call:
        raise LookupError(f"docs/reference/python.md has no example of noisegen.{name}")
    return f"import noisegen\n\n{call[1]}"
