"""What several commands share: options, refusals, and output as JSON, tables or lines on stderr."""

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

from noisegen.augmentation import NOISE, Request
from noisegen.cli.parameters import click_options
from noisegen.errors import CONTROLS, UsageError, one_line, printable
from noisegen.options import decode
from noisegen.runs.options import RunOptions, WorkerOptions
from noisegen.runs.progress import Show, progress_on_stderr

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])
RUN = ("workers", "executor", "part", "resume", "force")

_QUIET = f"{__name__}.quiet"  # in the metadata of a click context


as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON")
quiet = click.option(
    "-q", "--quiet", is_flag=True, expose_value=False, help="Print no progress, hints or summary",
    callback=lambda context, _, value: context.meta.update({_QUIET: value}),
)  # fmt: skip
overwrite = click.option("--force", is_flag=True, help="Overwrite the output file")
settings = click.option(
    "--set", "settings", multiple=True, metavar="TRANSFORM.PARAM=VALUE",
    help="Change a parameter of the recipe; repeatable",
)  # fmt: skip


def output(function: F) -> F:
    """Add the options that every command has: how it prints its result, and -q."""
    return as_json(quiet(function))


def recipe_options(function: F) -> F:
    """Add the options that choose noise."""
    return click_options(Request, only=NOISE)(settings(function))


def worker_options(function: F) -> F:
    """Add the options of how work is spread over processes or machines."""
    return workers(click_options(WorkerOptions, only={"executor"})(function))


def run_options(options: type[RunOptions], skip: Collection[str] = ()) -> Callable[[F], F]:
    """Add the options of a command that writes a folder in parts, and how it reports.

    -o is not required: a dry run needs none.
    """
    decorators = (
        click_options(options, skip={*skip, *RUN}, optional={"out"}),
        workers,
        click_options(options, only=RUN[1:]),
        output,
    )  # fmt: skip

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


workers = click.option("--workers", metavar="N", type=click.IntRange(min=1), default=_cpus,
                       help="Worker processes (default: one per CPU)")  # fmt: skip


def read_settings(texts: Iterable[str]) -> dict[str, object]:
    """Read TRANSFORM.PARAM=VALUE; refuse --recipe together with -t, which would ignore it."""
    if "recipe" in given_names() and click.get_current_context().params.get("transforms"):
        raise UsageError("--recipe and -t exclude each other: a recipe names its transforms")
    values: dict[str, object] = {}
    for name, equals, value in (text.partition("=") for text in texts):
        if not (equals and value and "." in name):
            raise UsageError(f"cannot read --set {name!r}: write TRANSFORM.PARAM=VALUE")
        values[name] = value
    return values


def request(given: dict[str, Any]) -> Request:
    """Return the request that the options of a command make, --set included."""
    values = read_settings(given.pop("settings"))
    return decode(Request, {**given, "values": values})


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
            raise UsageError(why.format(flag))


def check_file(out: Path, sources: Iterable[str | Path], force: bool | None = None) -> None:
    """Refuse a file to write that is one of the sources, or there: see `refuse_existing`."""
    from noisegen.data.pairs import refuse_onto
    from noisegen.runs.atomic import refuse_existing

    refuse_onto(out, [str(source) for source in sources])
    refuse_existing(out, force)


def refuse_memory(out: str) -> None:
    """Refuse an output that nobody could read."""
    if out.startswith("memory://"):
        raise UsageError("memory:// ends with the command: name a folder, a file or a store")


def example(*lines: str) -> str:
    """Return the end of a command's help: command lines without their first word."""
    shown = [f"  noisegen {line}" for line in lines]
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *shown])


def is_quiet() -> bool:
    """Tell whether the user gave -q."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_QUIET))


def on_stderr(text: str) -> None:
    """Print text on standard error, above the progress bar if there is one."""
    # A bar puts a stream of its own in place of sys.stderr.
    click.echo(printable(text), sys.stderr, err=True)


def tell(text: str) -> None:
    """Print text on standard error, unless the user gave -q."""
    if not is_quiet():
        on_stderr(text)


def say(lines: Iterable[str], kind: str) -> None:
    """Print lines on standard error, each after its kind; -q silences hints and notes."""
    for line in lines:
        if kind not in ("hint", "note") or not is_quiet():
            on_stderr(f"{kind}: {one_line(line)}")


def hint(line: str) -> None:
    """Print a hint on standard error, unless the user gave -q."""
    say([line], "hint")


def progress(start: str = "reading") -> AbstractContextManager[Show]:
    """Return a context that shows progress on standard error, unless the user gave -q."""
    return progress_on_stderr(is_quiet(), start)


def print_done(text: str, content: Mapping[str, object], as_json: bool) -> None:
    """Say what was made: `content` as JSON; else `text` on standard error, and what was dropped."""
    if as_json:
        print_json(content)
        return
    dropped = content.get("dropped") or {}
    assert isinstance(dropped, Mapping)
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
    tell(f"{text}; dropped: {reasons}" if reasons else text)


def print_json(content: object) -> None:
    """Print one JSON object on stdout, control characters escaped."""
    text = json.dumps(content, ensure_ascii=False)
    click.echo(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_lines(*lines: str) -> None:
    """Print lines on stdout."""
    click.echo(printable("\n".join(lines)))


def terminal(*, stderr: bool = False) -> "Console":
    """Return a rich console that raises BrokenPipeError, where rich would exit with 1.

    In a file or pipe, lines have no spaces at their end. Texts are printed as they
    are, but for control characters.
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

    stream: Any = sys.stderr if stderr else sys.stdout  # None where it is closed
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
