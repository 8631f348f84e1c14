"""What several commands share: options, refusals, and output as JSON, tables or lines on stderr."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
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

as_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON")
quiet = click.option("-q", "--quiet", is_flag=True, help="Print no progress and no summary")
no_progress = click.option("-q", "--quiet", is_flag=True, help="Print no progress")
settings = click.option(
    "--set", "settings", multiple=True, metavar="TRANSFORM.PARAM=VALUE",
    help="Change a parameter of the recipe; repeatable",
)  # fmt: skip


def recipe_options(function: F) -> F:
    """Add the options that choose noise."""
    return click_options(Request, only=NOISE)(settings(function))


def run_options(options: type[RunOptions], skip: Collection[str] = ()) -> Callable[[F], F]:
    """Add the options of a command that writes a folder in parts, and how it reports."""
    cpus = "Worker processes (default: one per CPU)"
    decorators = (
        click_options(options, skip={*skip, *RUN}),
        click.option("--workers", type=click.IntRange(min=1), default=_cpus, help=cpus),
        click_options(options, only=RUN[1:]),
        as_json,
        quiet,
    )

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def run_values(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of a run out of those given; return them with the command line."""
    values = {name: given.pop(name) for name in RUN if name in given}
    arguments = click.get_current_context().obj or sys.argv[1:]
    return values | {"command": shlex.join(["noisegen", *arguments])}


def _cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_settings(texts: Iterable[str]) -> dict[str, object]:
    """Read TRANSFORM.PARAM=VALUE; refuse a recipe beside transforms, which would be ignored."""
    if "recipe" in given_names() and click.get_current_context().params.get("transforms"):
        raise click.UsageError("--recipe and -t exclude each other: a recipe names its transforms")
    values: dict[str, object] = {}
    for name, equals, value in (text.partition("=") for text in texts):
        if not (equals and value and "." in name):
            raise click.UsageError(f"cannot read --set {name!r}: write TRANSFORM.PARAM=VALUE")
        values[name] = value
    return values


def given_names() -> dict[str, str]:
    """Return the parameters of this command that the user gave: their names and flags."""
    context = click.get_current_context()
    return {
        parameter.name: parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name
        and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    }


def refuse(names: Collection[str], why: str) -> None:
    """Refuse parameters that would be ignored; `why` has a place, {}, for their flag."""
    for name, flag in given_names().items():
        if name in names:
            raise click.UsageError(why.format(flag))


def say(lines: Iterable[str], kind: str) -> None:
    """Print lines on standard error, each after its kind: warning, note, damaged ..."""
    for line in lines:
        click.echo(f"{kind}: {line}", err=True)


def print_done(
    text: str, content: Mapping[str, object], as_json: bool, quiet: bool = False
) -> None:
    """Say what was made: `content` as JSON; else `text` on standard error, and what was dropped."""
    if as_json:
        print_json(content)
    elif not quiet:
        dropped = content.get("dropped") or {}
        assert isinstance(dropped, Mapping)
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
        click.echo(f"{text}; dropped: {reasons}" if reasons else text, err=True)


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
