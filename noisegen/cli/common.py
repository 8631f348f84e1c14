"""Options, checks and output shared by several commands."""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from noisegen.augmentation import NOISE, NoiseRequest, Request
from noisegen.cli.parameters import click_options
from noisegen.cli.progress import progress_on_stderr
from noisegen.errors import CONTROLS, UsageError, one_line, printable
from noisegen.options import decode
from noisegen.runs.options import RunOptions, WorkerOptions
from noisegen.runs.progress import Show

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])
RUN = ("workers", "executor", "part", "resume", "force")  # options that do not affect the rows
_QUIET = f"{__name__}.quiet"  # key under which a click context stores -q


as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON")
quiet = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({_QUIET: value}),
    help="Print no progress, hints or summary",
)
overwrite = click.option("--force", is_flag=True, help="Overwrite the output file")
settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="TRANSFORM.PARAM=VALUE",
    help="Change a parameter of the recipe; repeatable",
)


def output(function: F) -> F:
    """Add the options of every command: --json and -q."""
    return as_json(quiet(function))


def recipe_options(options: type[NoiseRequest]) -> Callable[[F], F]:
    """Return a decorator that adds --set and the options that choose noise to a command."""
    return lambda function: click_options(options, only=NOISE)(settings(function))


def worker_options(function: F) -> F:
    """Add --workers and --executor."""
    return workers(click_options(WorkerOptions, only={"executor"})(function))


def run_options(options: type[RunOptions], skip: Collection[str] = ()) -> Callable[[F], F]:
    """Return a decorator that adds `options`, --json and -q to a command that writes a folder.

    -o is optional, because a dry run needs no output.
    """

    def decorate(function: F) -> F:
        function = click_options(options, only=RUN[1:])(output(function))
        return click_options(options, skip={*skip, *RUN}, optional={"out"})(workers(function))

    return decorate


def run_values(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options named in RUN from the options `given`; return them as a new mapping.

    Its key "command" has the command line of this process: 'noisegen augment a.txt -o out'.
    """
    values = {name: given.pop(name) for name in RUN if name in given}
    arguments = click.get_current_context().obj or sys.argv[1:]
    return values | {"command": shlex.join(["noisegen", *arguments])}


def _cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


workers = click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    default=_cpus,
    help="Worker processes (default: one per CPU)",
)


def read_settings(texts: Iterable[str]) -> dict[str, object]:
    """Parse the values of --set: ['channel.rate=4'] -> {'channel.rate': '4'}.

    Raises UsageError for a value that is not TRANSFORM.PARAM=VALUE, and if the user gave both
    --recipe and -t.
    """
    check_recipe()
    values: dict[str, object] = {}
    for name, equals, value in (text.partition("=") for text in texts):
        if not (equals and value and "." in name):
            raise UsageError(f"cannot read --set {name!r}: write TRANSFORM.PARAM=VALUE")
        values[name] = value
    return values


def check_recipe() -> None:
    """Raise UsageError if the user gave --recipe and -t, since the recipe would have no effect."""
    if {"--recipe", "--transform"} <= {*given_names().values()}:
        raise UsageError("--recipe and -t exclude each other: a recipe names its transforms")


def request(given: dict[str, Any]) -> Request:
    """Return the Request for noise that a command's options, --set included, describe."""
    values = read_settings(given.pop("settings"))
    return decode(Request, {**given, "values": values})


def given_names() -> dict[str, str]:
    """Return the flag of each parameter that the user set: {'text_column': '--text-column'}."""
    context = click.get_current_context()
    return {
        parameter.name: parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name
        and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    }


def refuse(names: Collection[str], why: str) -> None:
    """Raise UsageError(`why`) if the user gave an option in `names`; {} in `why` is its flag."""
    for name, flag in given_names().items():
        if name in names:
            raise UsageError(why.format(flag))


def check_file(out: Path, sources: Iterable[str | Path], force: bool | None = None) -> None:
    """Raise an error if the output file is a source, or exists and may not be replaced."""
    from noisegen.data.pairs import refuse_onto
    from noisegen.runs.atomic import refuse_existing

    refuse_onto(out, [str(source) for source in sources])
    refuse_existing(out, force)


def refuse_memory(out: str) -> None:
    """Raise UsageError if the output is in memory://, which is lost when the command ends."""
    if out.startswith("memory://"):
        raise UsageError("memory:// ends with the command: name a folder, a file or a store")


def example(*lines: str) -> str:
    """Return the examples for the end of a command's help, 'noisegen ' put before each line."""
    shown = [f"  noisegen {line}" for line in lines]
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *shown])


def is_quiet() -> bool:
    """Return whether the user gave -q."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_QUIET))


def on_stderr(text: str) -> None:
    """Print text on standard error, above the progress bar if there is one.

    If the reader of standard error, like head, has ended, the text is dropped.
    """
    # rich replaces sys.stderr while it shows a progress bar, so the stream is looked up each time.
    try:
        click.echo(printable(text), sys.stderr, err=True)
    except BrokenPipeError:  # the command goes on: its files may not be written yet
        drop(2)


def drop(stream: int) -> None:
    """Drop the output of a stream (1 or 2), which Python would write, and fail, again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def tell(text: str) -> None:
    """Print text on standard error, unless the user gave -q."""
    if not is_quiet():
        on_stderr(text)


def say(lines: Iterable[str], kind: str) -> None:
    """Print lines on standard error, each as "KIND: LINE"; -q silences hints and notes."""
    for line in lines:
        if kind not in ("hint", "note") or not is_quiet():
            on_stderr(f"{kind}: {one_line(line)}")


def hint(line: str) -> None:
    """Print a hint on standard error, unless the user gave -q."""
    say([line], "hint")


def exit_code(where: str, damaged: str, as_json: bool) -> int:
    """Return the exit code of a command that skips bad input: 3 if it did, else 0.

    `damaged` counts the skipped input by reason, such as 'dropped: not_utf8 1', or is empty.
    `where` names the output. With -q or `as_json` no summary is printed, so a warning has both.
    """
    if damaged and (as_json or is_quiet()):
        what_to_do = "correct these rows, or the options that name their columns and encoding"
        say([f"{where}: {damaged}; {what_to_do}"], "warning")
    return 3 if damaged else 0


def progress(start: str = "reading") -> AbstractContextManager[Show]:
    """Return a context manager that shows progress on standard error, unless the user gave -q."""
    return progress_on_stderr(is_quiet(), start)


def print_done(text: str, content: Mapping[str, object], as_json: bool) -> None:
    """Print a command's result: `content` as JSON if `as_json`, else `text` on standard error.

    To the text are added the counts in `content["dropped"]`: 'text; dropped: REASON COUNT'.
    """
    if as_json:
        print_json(content)
        return
    dropped = content.get("dropped") or {}
    assert isinstance(dropped, Mapping)
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
    tell(f"{text}; dropped: {reasons}" if reasons else text)


def print_json(content: object) -> None:
    """Print one JSON object on standard output, control characters escaped."""
    text = json.dumps(content, ensure_ascii=False)
    click.echo(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_lines(*lines: str) -> None:
    """Print lines on standard output."""
    click.echo(printable("\n".join(lines)))


def terminal(*, stderr: bool = False) -> "Console":
    """Return a rich console for standard output or standard error.

    The console replaces control characters. If its pipe is closed, it raises BrokenPipeError, where
    rich would exit with code 1. In a file or pipe, lines lose the spaces at their ends.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else printable(segment.text)
                yield segment._replace(text=text)

    stream: Any = sys.stderr if stderr else sys.stdout  # None if the shell closed it (>&-)
    file: Any = _Trimmed(stream) if stream is not None and not stream.isatty() else None
    return Terminal(file=file, stderr=stderr, markup=False, emoji=False)


class _Trimmed:
    """A text stream that leaves out the spaces at the ends of lines."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        self._stream.write(_LINE_END.sub("", text))


_LINE_END = re.compile(r" +$", re.MULTILINE)
