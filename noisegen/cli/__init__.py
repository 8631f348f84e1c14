"""The command line: a file per group of commands; each parses, calls the library once, prints."""

import ast
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import cast

import click

from noisegen.errors import NoisegenError, UsageError, naming_extras, one_line
from noisegen.version import __version__

GROUPS = {  # of the commands, each with the file that it is in
    "Noise": {
        "augment": "augment", "preview": "catalog", "recipes": "catalog", "transforms": "catalog",
        "calibrate": "realism",
    },
    "Mine": {
        "prepare": "mine", "mine-wiki": "mine", "mine-lang8": "mine", "mine-pairs": "mine",
        "dictionary": "dictionary", "learn": "realism",
    },
    "Measure": {
        "stats": "catalog", "realism": "realism", "review": "review", "evaluate": "evaluate",
        "evaluate-task": "evaluate",
    },
    "Train": {"train": "train", "quickstart": "train"},
    "Shell": {"completion": "completion"},
}  # fmt: skip
COMPLETE = "_NOISEGEN_COMPLETE"  # the environment variable by which a shell asks, named by click
_MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}
_EXAMPLES = """\b
Examples:
  noisegen preview "See you tomorrow, my friend." --recipe ugc --seed 7
  noisegen augment news.txt -o out --seed 7

Options of a command: noisegen COMMAND --help
"""


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each imported when it is needed."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"noisegen.cli.{_MODULES[name]}")
        return cast(click.Command, getattr(module, name.replace("-", "_")))

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Program(click.Group):
    """A group that imports no command to list them: their docstrings are read from the source."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; while a line is being completed, with the values of its parameters."""
        command = super().get_command(ctx, cmd_name)
        if command and ctx.resilient_parsing:
            from noisegen.cli.completion import add_values

            add_values(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first line of the docstring of every command, by groups."""
        lines: dict[str, str] = {}
        for module in set(_MODULES.values()):
            tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8"))
            functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
            lines |= {node.name: ast.get_docstring(node) or "" for node in functions}
        width = max(map(len, _MODULES))
        for title, names in GROUPS.items():
            summaries = [lines[name.replace("-", "_")].partition("\n")[0] for name in names]
            padded = [name.ljust(width) for name in names]
            with formatter.section(title):
                formatter.write_dl(list(zip(padded, summaries, strict=True)))


@click.group(
    cls=_Program, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXAMPLES
)
@click.version_option(__version__, prog_name="noisegen")
def noisegen() -> None:
    """Make and mine realistic noisy text; train encoders that are robust to it."""


noisegen.commands = _Commands()  # type: ignore[assignment] # click only reads it


def main() -> None:
    """Run the program; see `run` for what its exit codes mean."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up as Ctrl-C does
    sys.unraisablehook = _heard_again
    warnings.showwarning = lambda message, *_: click.echo(
        f"warning: {one_line(message)}", sys.stderr, err=True
    )
    if COMPLETE in os.environ:
        import_module("noisegen.cli.completion")  # for what it knows of shells
    sys.exit(run(sys.argv[1:]))


def _heard_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more when an interrupt fell into a destructor, which can only ignore it."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    import threading

    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    with suppress(RuntimeError):  # the program has ended
        timer.start()


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 done, 1 an error to act on, 2 wrong usage, 3 damaged input was salvaged, 130 interrupted.
    """
    try:
        with naming_extras():
            code = noisegen(arguments, "noisegen", standalone_mode=False, obj=arguments) or 0
        if sys.stdout:
            sys.stdout.flush()
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"error: {one_line(_reworded(error))}", err=True)
        return error.exit_code
    except NoisegenError as error:
        click.echo(f"error: {one_line(error)}", err=True)
        return 2 if isinstance(error, UsageError) else 1
    except (click.Abort, KeyboardInterrupt):
        kept = "; what is finished is kept: run again with --resume"
        click.echo(f"interrupted{kept if _can_resume(arguments) else ''}", err=True)
        return 130
    except UnicodeEncodeError as error:
        if "\ud800" <= error.object[error.start] <= "\udfff":  # a byte that no character has
            click.echo("error: an argument is not valid UTF-8", err=True)
            return 2
        shown = f"standard output is {error.encoding}, which lacks a character of the text"
        click.echo(f"error: {shown}; set PYTHONIOENCODING=utf-8", err=True)
        return 1
    except (BrokenPipeError, SystemExit):  # the reader of a pipe has had enough; click then exits
        _drop_stdout()
        return 0
    except OSError as error:
        _drop_stdout()
        what = error.filename or "cannot write the output"
        click.echo(f"error: {one_line(what)}: {error.strerror}", err=True)
        return 1


def _reworded(error: click.ClickException) -> str:
    """Return what click found wrong with a command line, what may be meant, and where to look."""
    near = getattr(error, "possibilities", None)
    message = (error.message if near else error.format_message()).removesuffix(".")
    context = getattr(error, "ctx", None)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    see = f"; see: {context.command_path} --help" if context and not hint else ""
    return f"{message[:1].lower()}{message[1:]}{hint}{see}"


def _can_resume(arguments: list[str]) -> bool:
    """Tell whether a command has begun a run that --resume continues."""
    name, *rest = arguments or [""]
    if name not in _MODULES:
        return False
    command = noisegen.commands[name]
    given = command.make_context(name, list(rest), resilient_parsing=True).params
    writes = "resume" in given and bool(given.get("out")) and not given.get("dry_run")
    return writes and Path(given["out"]).is_dir()


def _drop_stdout() -> None:
    """Discard what is still buffered, so that exiting does not fail on it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
