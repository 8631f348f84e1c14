"""The command line: each file of this package defines related commands.

Each command parses its arguments, calls the library once and prints the result.
"""

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

GROUPS = {  # heading in the help -> commands below it -> file of this package that defines them
    "Noise": {
        "augment": "augment",
        "normalize": "augment",
        "preview": "catalog",
        "recipes": "catalog",
        "transforms": "catalog",
        "calibrate": "realism",
        "example": "catalog",
    },
    "Mine": {
        "prepare": "mine",
        "mine-wiki": "mine",
        "mine-lang8": "mine",
        "mine-pairs": "mine",
        "dictionary": "dictionary",
        "learn": "realism",
        "fit": "realism",
    },
    "Measure": {
        "stats": "catalog",
        "realism": "realism",
        "review": "review",
        "evaluate": "evaluate",
        "evaluate-task": "evaluate",
    },
    "Train": {"train": "train", "export": "train", "quickstart": "train"},
}
_MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}
_EXAMPLES = """\b
Examples:
  noisegen preview "See you tomorrow, my friend." --recipe ugc --seed 7
  noisegen augment news.txt -o out --seed 7

Options of a command: noisegen COMMAND --help
"""


class _Commands(Mapping[str, click.Command]):
    """Mapping from command names to commands; reading a command imports its file."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"noisegen.cli.{_MODULES[name]}")
        return cast(click.Command, getattr(module, name.replace("-", "_")))

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Program(click.Group):
    """The program; its help shows the docstrings of commands without importing their files."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading, and below it the first docstring line of each of its commands."""
        docstrings: dict[str, str] = {}
        for module in set(_MODULES.values()):
            tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8"))
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    docstrings[f"{module} {node.name}"] = ast.get_docstring(node) or ""
        width = max(map(len, _MODULES))
        for title, names in GROUPS.items():
            rows = []
            for name in names:
                place = f"{_MODULES[name]} {name.replace('-', '_')}"
                summary = docstrings[place].partition("\n")[0]
                rows.append((name.ljust(width), summary))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=_Program, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXAMPLES
)
@click.version_option(__version__, prog_name="noisegen")
def noisegen() -> None:
    """Make and mine realistic noisy text; train encoders that are robust to it."""


noisegen.commands = _Commands()  # type: ignore[assignment] # click only reads it


def main() -> None:
    """Run the program and exit with the code that `run` returns."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    sys.unraisablehook = _repeat_lost_interrupt
    warnings.showwarning = lambda message, *_: _show_warning(message)
    sys.exit(run(sys.argv[1:]))


def _show_warning(message: Warning | str) -> None:
    """Print a warning that Python or a package gives, as a line on standard error."""
    from noisegen.cli.common import say

    say([str(message)], "warning")


def _repeat_lost_interrupt(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt the program again if Python dropped Ctrl-C because it came inside a destructor."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    import threading

    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    with suppress(RuntimeError):  # Python cannot start a thread while it exits
        timer.start()


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0: done. 1: an error that the user can act on. 2: wrong usage. 3: done, but damaged input was
    skipped and counted. 130: interrupted.
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
        return _report_character(error)
    except (BrokenPipeError, SystemExit):  # raised once the reader of the output, like head, ends
        _drop_stdout()
        return 0
    except OSError as error:
        _drop_stdout()
        what = error.filename or "cannot write the output"
        click.echo(f"error: {one_line(what)}: {error.strerror}", err=True)
        return 1


def _report_character(error: UnicodeEncodeError) -> int:
    """Print an error about a character that cannot be written, and return the exit code."""
    # Python reads a byte of an argument that is not valid UTF-8 as one of these surrogates.
    if "\ud800" <= error.object[error.start] <= "\udfff":
        click.echo("error: an argument is not valid UTF-8", err=True)
        return 2
    shown = f"standard output is {error.encoding}, which lacks a character of the text"
    click.echo(f"error: {shown}; set PYTHONIOENCODING=utf-8", err=True)
    return 1


# Options that users guess, and what the option is called here
_OTHER_NAMES = {
    **dict.fromkeys(["--severity", "--severities", "--level", "--levels"], "--strength x0.5,x1,x2"),
    **dict.fromkeys(["-o", "--out"], "--plot FILE"),
    "--profile": "-t channel:profile=PROFILE",
    "--dictionary": "-t wiki:dictionary=DICTIONARY",
}


def _reworded(error: click.ClickException) -> str:
    """Return the message of an error of click as one line that ends with a hint.

    The hint is the nearest known name, or else the command that prints help.
    """
    near = getattr(error, "possibilities", None)
    message = (error.message if near else error.format_message()).removesuffix(".")
    context = getattr(error, "ctx", None)
    other = _OTHER_NAMES.get(getattr(error, "option_name", ""), "")
    flags = {flag for known in context.command.params for flag in known.opts} if context else {}
    near = [other] if other.partition(" ")[0] in flags else near
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    see = f"; see: {context.command_path} --help" if context and not hint else ""
    return f"{message[:1].lower()}{message[1:]}{hint}{see}"


def _can_resume(arguments: list[str]) -> bool:
    """Return whether an interrupted command left an output folder that --resume can continue."""
    name, *rest = arguments or [""]
    if name not in _MODULES:
        return False
    command = noisegen.commands[name]
    given = command.make_context(name, list(rest), resilient_parsing=True).params
    writes = "resume" in given and bool(given.get("out")) and not given.get("dry_run")
    return writes and Path(given["out"]).is_dir()


def _drop_stdout() -> None:
    """Drop buffered standard output."""
    from noisegen.cli.common import drop

    drop(1)
