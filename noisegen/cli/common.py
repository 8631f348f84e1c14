"""Options that several commands share, and how they print: JSON, or colours and tables."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from noisegen.augment import NOISE, Request
from noisegen.options import click_options
from noisegen.runs.folder import RunOptions

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])
RUN = ("workers", "executor", "part", "resume", "force")


def some_options(options: type, names: Collection[str]) -> Callable[[F], F]:
    """Return a decorator that adds the options of these fields, in the order of the dataclass."""
    return click_options(options, skip={field.name for field in fields(options)} - {*names})


def recipe_options(function: F) -> F:
    """Add the options that choose noise."""
    values = click.option(
        "--set", "settings", multiple=True, metavar="TRANSFORM.PARAM=VALUE",
        help="Change a parameter of the recipe; repeatable",
    )  # fmt: skip
    return some_options(Request, NOISE)(values(function))


def column_options(function: F) -> F:
    """Add the options that choose columns."""
    return some_options(Request, ("text_column", "id_column"))(function)


def run_options(options: type[RunOptions]) -> Callable[[F], F]:
    """Add the options of a run that writes a folder in parts, and how it reports."""
    decorators = (
        click.option("--workers", type=click.IntRange(min=1),
                     help="Worker processes (default: one per CPU)"),
        some_options(options, RUN[1:]),
        click.option("--json", "as_json", is_flag=True, help="Print the totals as JSON"),
        click.option("-q", "--quiet", is_flag=True, help="No progress, no summary"),
    )  # fmt: skip

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def run_values(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of a run out of those given; return them with the command line."""
    values = {name: given.pop(name) for name in RUN if name in given}
    values["workers"] = values["workers"] or _cpus()
    arguments = click.get_current_context().obj or sys.argv[1:]
    return values | {"command": shlex.join(["noisegen", *arguments])}


def _cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_settings(settings: tuple[str, ...]) -> dict[str, object]:
    """Read TRANSFORM.PARAM=VALUE; refuse a recipe beside transforms, which would be ignored."""
    context = click.get_current_context()
    named = context.get_parameter_source("recipe") is not ParameterSource.DEFAULT
    if named and context.params.get("transforms"):
        raise click.UsageError("--recipe and -t exclude each other: a recipe names its transforms")
    pairs = [text.partition("=") for text in settings]
    for name, equals, value in pairs:
        if not (equals and value and "." in name):
            raise click.UsageError(f"cannot read --set {name!r}: write TRANSFORM.PARAM=VALUE")
    return {name: value for name, _, value in pairs}


def print_json(content: object) -> None:
    """Print one JSON object on stdout."""
    click.echo(json.dumps(content, ensure_ascii=False))


def terminal(*, stderr: bool = False) -> "Console":
    """Return a rich console that raises BrokenPipeError, where rich would exit with 1."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Terminal(stderr=stderr)
